"""`traceconv.opening` as a browser sees it: a real client on a real socket."""

from __future__ import annotations

import contextlib
import http.client
import queue
import socket
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import HANG_S
from traceconv import opening
from traceconv.errors import InputError, OutputError
from traceconv.opening import PUBLIC, Ui

CONTENT = b"\x0a\x02\x08\x01" * 1000


class Session:
    """A `serve()` that runs in a thread, and what a client needs to know of it."""

    def __init__(self, file: Path, timeout_s: float, ui: Ui, is_held: bool = False) -> None:
        self.goes_on = threading.Event()
        if not is_held:
            self.goes_on.set()
        self.links: queue.Queue[str] = queue.Queue()
        self.results: list[bool] = []
        self.origin = ui.origin
        self.thread = threading.Thread(target=self._run, args=(file, timeout_s, ui))
        self.thread.start()
        self.link = self.links.get(timeout=HANG_S)
        fragment = urllib.parse.urlsplit(self.link).fragment
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(fragment.removeprefix("!")).query)
        self.url = urllib.parse.urlsplit(query["url"][0])
        assert self.url.port is not None
        self.port = self.url.port

    def _run(self, file: Path, timeout_s: float, ui: Ui) -> None:
        done = opening.serve(file, ui=ui, timeout_s=timeout_s, on_ready=self._ready, port=0)
        self.results.append(done)

    def _ready(self, link: str, port: int) -> None:
        self.links.put(link)
        self.goes_on.wait(HANG_S)

    def request(self, method: str = "GET", path: str = "", **headers: str) -> tuple[http.client.HTTPResponse, bytes]:
        """Sends one request as the UI does; underscores in names of headers stand for hyphens, "" leaves one out."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANG_S)
        headers = {"Origin": self.origin} | headers
        sent = {name.replace("_", "-"): value for name, value in headers.items() if value}
        try:
            connection.request(method, path or self.url.path, headers=sent)
            response = connection.getresponse()
            return response, response.read()
        finally:
            connection.close()

    def get_request(self) -> bytes:
        """A fetch as it goes over the wire."""
        lines = [f"GET {self.url.path} HTTP/1.1", f"Host: 127.0.0.1:{self.port}", f"Origin: {PUBLIC.origin}"]
        return "".join(f"{line}\r\n" for line in [*lines, ""]).encode()

    def fetch(self) -> bytes:
        return self.request()[1]

    def result(self) -> bool:
        self.thread.join(HANG_S)
        assert not self.thread.is_alive()
        return self.results[0]


Start = Callable[..., Session]


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> list[opening._Server]:
    """All servers of the test: a port does not tell whether one listens, as another process may have it by now."""
    found: list[opening._Server] = []
    listen = opening._listen

    def listening(file: Path, ui: Ui, port: int) -> opening._Server:
        found.append(listen(file, ui, port))
        return found[-1]

    monkeypatch.setattr(opening, "_listen", listening)
    return found


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    monkeypatch.setattr(opening, "IDLE_S", 0.3)
    # However long the machine leaves a client alone, it is waited for.
    monkeypatch.setattr(opening, "LINGER_S", HANG_S)
    monkeypatch.setattr(opening._Handler, "timeout", HANG_S)
    sessions: list[Session] = []

    def begin(
        content: bytes = CONTENT,
        name: str = "out.pftrace",
        timeout_s: float = HANG_S,
        ui: Ui = PUBLIC,
        is_held: bool = False,
    ) -> Session:
        file = tmp_path / name
        file.write_bytes(content)
        sessions.append(Session(file, timeout_s, ui, is_held))
        return sessions[-1]

    yield begin
    for session in sessions:
        if session.thread.is_alive():
            session.fetch()
            session.result()


def test_the_ui_fetches_the_file_and_the_server_ends(start: Start, servers: list[opening._Server]) -> None:
    session = start()
    (server,) = servers
    response, body = session.request(Origin=PUBLIC.origin)
    assert response.status == 200
    assert body == CONTENT
    assert response.headers["Access-Control-Allow-Origin"] == "https://ui.perfetto.dev"
    assert session.result() is True
    assert server.fileno() == -1


def test_link(start: Start) -> None:
    session = start(name="réseau 1+2%#&.pftrace")
    assert session.link.startswith("https://ui.perfetto.dev/#!/?url=http://127.0.0.1:")
    assert session.url.hostname == "127.0.0.1"
    assert urllib.parse.unquote(session.url.path).endswith("/réseau 1+2%#&.pftrace")
    assert session.fetch() == CONTENT
    assert session.result() is True


def test_each_link_is_another(start: Start) -> None:
    secrets = {start(name=name).url.path.split("/")[1] for name in "abc"}
    assert len(secrets) == 3
    assert min(map(len, secrets)) >= 20


@pytest.mark.parametrize("content", [b"", bytes(range(256)) * 50_000], ids=["empty", "large"])
def test_sizes(start: Start, content: bytes) -> None:
    session = start(content)
    assert session.fetch() == content
    assert session.result() is True


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": ""},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://ui.perfetto.dev"},
        {"Host": "evil.example:9001", "Origin": PUBLIC.origin},
        {"Host": "127.0.0.1", "Origin": PUBLIC.origin},
    ],
    ids=str,
)
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "POST"])
def test_foreign_requests_get_nothing(start: Start, method: str, headers: dict[str, str]) -> None:
    session = start()
    response, body = session.request(method, **headers)
    assert response.status == 404
    assert body == b""
    assert "Access-Control-Allow-Origin" not in response.headers
    assert session.thread.is_alive()


@pytest.mark.parametrize("path", ["/", "/out.pftrace", "/status", "/../out.pftrace"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_other_paths(start: Start, method: str, path: str) -> None:
    session = start()
    assert session.request(method, path, Origin=PUBLIC.origin)[0].status == 404
    assert session.request(method, session.url.path + "x")[0].status == 404
    assert session.thread.is_alive()


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "TRACE", "NONSENSE"])
def test_other_methods(start: Start, method: str) -> None:
    response, body = start().request(method)
    assert (response.status, response.headers["Allow"], body) == (405, "GET, HEAD, OPTIONS", b"")


def test_head_tells_the_size_and_is_no_fetch(start: Start) -> None:
    session = start()
    response, body = session.request("HEAD")
    assert (response.status, response.headers["Content-Length"], body) == (200, str(len(CONTENT)), b"")
    assert session.thread.is_alive()


@pytest.mark.parametrize("private", [True, False])
def test_preflight(start: Start, private: bool) -> None:
    headers = {"Origin": PUBLIC.origin, "Access_Control_Request_Method": "GET"}
    if private:
        headers["Access_Control_Request_Private_Network"] = "true"
    response, _ = start().request("OPTIONS", **headers)
    assert response.status == 204
    assert response.headers["Access-Control-Allow-Origin"] == PUBLIC.origin
    assert "GET" in response.headers["Access-Control-Allow-Methods"]
    assert response.headers["Access-Control-Allow-Private-Network"] == ("true" if private else None)


@pytest.mark.parametrize("size", [100_000, 30_000_000], ids=["in-the-buffers", "large"])
def test_disconnect_in_the_middle(start: Start, size: int, capfd: pytest.CaptureFixture[str]) -> None:
    """A fetch that breaks off does not count, is not reported, and the next one works."""
    content = bytes(size)
    session = start(content)
    with socket.create_connection(("127.0.0.1", session.port), timeout=HANG_S) as client:
        client.sendall(session.get_request())
        assert client.recv(1000).startswith(b"HTTP/1.0 200")
    time.sleep(0.3)
    assert session.thread.is_alive()
    assert session.fetch() == content
    assert session.result() is True
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "request_", [b"\x16\x03\x01\x02\x00\r\n\r\n", b"GET\r\n\r\n", b"G" * 70_000 + b"\r\n\r\n", b""]
)
def test_garbage(start: Start, request_: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    session = start()
    with socket.create_connection(("127.0.0.1", session.port), timeout=HANG_S) as client:
        client.sendall(request_)
        client.shutdown(socket.SHUT_WR)
        answer = client.recv(1000)
    assert b"200" not in answer
    assert session.fetch() == CONTENT
    assert session.result() is True
    assert capfd.readouterr() == ("", "")


def test_an_idle_connection_does_not_block(start: Start) -> None:
    session = start()
    with socket.create_connection(("127.0.0.1", session.port)):
        assert session.fetch() == CONTENT
        assert session.result() is True


def test_many_slow_clients_take_few_threads_and_do_not_block(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "MAX_CONNECTIONS", 4)
    session, before = start(), threading.active_count()
    until = time.monotonic() + HANG_S
    clients = [socket.create_connection(("127.0.0.1", session.port), timeout=HANG_S) for _ in range(40)]
    for client in clients:
        client.sendall(b"GET")
    for client in clients[:-4]:
        with contextlib.suppress(ConnectionError):
            assert client.recv(1) == b""  # closed for a later one
    while threading.active_count() > before + 4 and time.monotonic() < until:
        time.sleep(0.01)
    assert threading.active_count() <= before + 4
    assert session.fetch() == CONTENT
    assert session.result()
    for client in clients:
        client.close()


def test_a_fetch_is_not_given_up_for_others(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "MAX_CONNECTIONS", 1)
    session = start(content=bytes(50_000_000))
    with socket.create_connection(("127.0.0.1", session.port), timeout=HANG_S) as fetching:
        fetching.sendall(session.get_request())
        received = len(fetching.recv(1000))
        with socket.create_connection(("127.0.0.1", session.port), timeout=HANG_S) as other:
            assert other.recv(1) == b""
        while data := fetching.recv(1 << 20):
            received += len(data)
    assert received > 50_000_000
    assert session.result()


def test_a_slow_fetch_outlives_the_timeout(start: Start) -> None:
    """The time begins to run when the fetch has begun, however long that takes."""
    content = bytes(30_000_000)
    session = start(content, timeout_s=0.2, is_held=True)
    with socket.create_connection(("127.0.0.1", session.port), timeout=HANG_S) as client:
        client.sendall(session.get_request())
        first = client.recv(1000)
        session.goes_on.set()
        time.sleep(1)
        with client.makefile("rb") as stream:
            assert (first + stream.read()).endswith(content)
    assert session.result() is True


def test_timeout(start: Start) -> None:
    assert start(timeout_s=0.2).result() is False


def test_ctrl_c_is_no_timeout(tmp_path: Path, servers: list[opening._Server]) -> None:
    file = tmp_path / "x.json"
    file.write_bytes(b"{}")

    def interrupt(link: str, port: int) -> None:
        assert servers[0].fileno() != -1
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        opening.serve(file, on_ready=interrupt, port=0)
    assert servers[0].fileno() == -1


def test_busy_port(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_bytes(b"{}")
    with socket.create_server(("127.0.0.1", 0)) as busy, pytest.raises(OutputError, match="in use") as error:
        opening.serve(file, port=busy.getsockname()[1])
    assert "\n" not in error.value.message
    assert "ui.perfetto.dev" in error.value.hint


@pytest.mark.parametrize(("name", "problem"), [("absent.json", "No such file"), (".", "Is a directory")])
def test_unreadable_file(tmp_path: Path, name: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        opening.serve(tmp_path / name, port=0)


@pytest.fixture
def beside(tmp_path: Path) -> Ui:
    """A UI that is served beside the file."""
    (tmp_path / "web" / "v1").mkdir(parents=True)
    files = {name: tmp_path / "web" / name for name in ("index.html", "v1/frontend_bundle.js", "v1/a b.wasm")}
    for name, path in files.items():
        path.write_text(name)
    return Ui("here", files=files)


def test_a_ui_beside_the_file(start: Start, beside: Ui, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock stands until all was asked for, then each look at it is a second later."""
    clock, step = iter(range(10**9)), threading.Event()
    now = SimpleNamespace(monotonic=lambda: next(clock) if step.is_set() else 0, sleep=time.sleep)
    monkeypatch.setattr(opening, "time", now)
    session = start(ui=beside)
    page = urllib.parse.urlsplit(session.link)
    assert (page.scheme, page.netloc) == ("http", session.url.netloc)
    assert page.path == session.url.path.removesuffix("out.pftrace") + "ui/"
    for name, type_, body in (
        ("", "text/html", b"index.html"),
        ("index.html?x=1", "text/html", b"index.html"),
        ("v1/frontend_bundle.js", "text/javascript", b"v1/frontend_bundle.js"),
        ("v1/a%20b.wasm", "application/wasm", b"v1/a b.wasm"),
    ):
        response, found = session.request(path=page.path + name)
        assert (response.status, response.headers["Content-Type"], found) == (200, type_, body)
        assert "default-src 'self'" in response.headers["Content-Security-Policy"]
    assert session.thread.is_alive()
    response, found = session.request()
    assert (response.headers["Content-Type"], found) == ("application/octet-stream", CONTENT)
    # What the UI asks for after the trace still comes, then the server ends.
    assert session.request(path=page.path)[0].status == 200
    step.set()
    assert session.result() is True


@pytest.mark.parametrize(
    ("name", "headers"),
    [
        ("v1/", {}),
        ("v1", {}),
        ("../out.pftrace/", {}),
        ("%2e%2e/out.pftrace", {}),
        ("v1/../index.html", {}),
        ("v1//frontend_bundle.js", {}),
        ("other.js", {}),
        ("", {"Origin": "https://evil.example"}),
        ("", {"Origin": PUBLIC.origin}),
        ("", {"Origin": "null"}),
        ("", {"Host": "evil.example:9001"}),
        ("", {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors"}),
        ("index.html", {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}),
    ],
    ids=str,
)
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "POST"])
def test_a_ui_beside_the_file_gives_away_nothing_else(
    start: Start, beside: Ui, method: str, name: str, headers: dict[str, str]
) -> None:
    session = start(ui=beside)
    page = urllib.parse.urlsplit(session.link).path
    response, body = session.request(method, page + name, **headers)
    assert (response.status, body) == (404, b"")
    assert session.request(method, page.replace("/ui/", "x/ui/"))[0].status == 404
    assert session.request(method, "/ui/")[0].status == 404


def test_a_link_to_the_ui_beside_the_file_may_be_on_any_page(start: Start, beside: Ui) -> None:
    session = start(ui=beside)
    page = urllib.parse.urlsplit(session.link).path
    assert session.request(path=page, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate")[0].status == 200


def test_a_ui_beside_the_file_takes_another_port_than_a_busy_one(tmp_path: Path, beside: Ui) -> None:
    file = tmp_path / "x.json"
    file.write_bytes(b"{}")
    ports: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as busy:
        port = busy.getsockname()[1]
        opening.serve(file, ui=beside, timeout_s=0.1, on_ready=lambda _, port: ports.append(port), port=port)
    assert ports != [port]

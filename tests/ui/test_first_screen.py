"""What is on the first screen of `traceconv open`, read back from the running UI: work, and the framework's thread."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.golden import ROOT, Case, written
from tests.ui.fixtures import Shot
from tests.ui.opened import Opened

pytestmark = pytest.mark.slow

#: By golden merge, one of those with the same files: the thread whose calls lead to all the rest, below its process, as
#: the UI calls the two.
THREADS = {
    "attributed": r".+ / .+",
    "gloo-ranks": r"rank 0 .*python.* / python",
    "kineto-onednn-perf": r"python 26046 / python",
    "log-separate": r"MXNet.* / MXNet C API",
    "mxnet-dnnl": r"MXNet.* / MXNet C API",
    "nccl-ranks": r"rank 0 .*python.* / .*",
    "nsight": r"python3 4100 / pt_main_thread",
    "nvprof-summary": r"Process 4711 / thread",
    "two-recordings": r"python 31854 / python",
}
#: Six minutes apart: no window shows both.
APART = {"two-recordings"}


@pytest.mark.parametrize("name", THREADS)
def test_first_screen(ui_shot: Shot, tmp_path: Path, name: str) -> None:
    case = Case(ROOT / "merge" / name)
    trace = tmp_path / "out.pftrace"
    trace.write_bytes(written(case.merged(case.traces(tmp_path)), "perfetto"))
    with Opened(trace, "--offline") as command:
        report = ui_shot(trace, tmp_path / "x.png", link=command.link)
    assert report.problems == []
    shown = {row.name: row for row in report.rows}
    threads = [row for row in report.rows if re.match(THREADS[name], row.name) and row.slices]
    assert threads, shown
    # From its first slice to its last: what waits between two steps has no slices.
    assert name in APART or max(row.spanned for row in threads) >= 0.5, shown

"""The README's merge, as its reader sees it.

The picture beside it, docs/merge.png, is of one step of that merge (then reduced to 256 colours):

    python -m tests.ui.shot out.pftrace docs/merge.png --size 1400 860 --span 96_850_000 99_500_000 \\
        --collapse "Perf Counters"
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_docs import README, command_in
from tests.ui.fixtures import Shot
from traceconv.api import merge

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent


def test_the_merge_of_the_readme_opens_in_the_ui(ui_shot: Shot, tmp_path: Path) -> None:
    arguments = command_in(README, "traceconv merge golden")
    files = [ROOT / argument for argument in arguments[1 : arguments.index("-o")]]
    output = tmp_path / "out.pftrace"
    trace = merge(files, output).trace
    report = ui_shot(output, tmp_path / "out.png")
    assert report.problems == []
    assert (report.start, report.end) == trace.span()
    outline = report.outline()
    assert [line for line in outline if line.startswith("python")] == ["python 26046"]  # one process
    below = outline[outline.index("python 26046") + 1 :]
    end = next(number for number, line in enumerate(below) if not line.startswith(" "))
    assert [line.strip() for line in below[:end]] == [
        "Process Callstacks",
        "python 26046",
        "python Callstacks 26046",
        "python 26046",
        "oneDNN primitives (cpu)",
        "· Marks",
        "Spans · PyTorch Profiler",
        "Global events",
    ]

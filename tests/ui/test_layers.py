"""What the layers of a process cost, as a person sees it in the UI.

The picture docs/layers.png is of two rounds of that merge:

    python -m tests.ui.shot layers.pftrace docs/layers.png --size 1100 760 --span 60_000_000 660_000_000 \\
        --area "Process Callstacks" --collapse System --collapse "Perf Counters"
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.answers.test_attributed import FILES, SAME_MACHINE
from tests.ui.fixtures import Shot
from traceconv.api import Output, merge

pytestmark = pytest.mark.slow


def test_slices_have_args_and_samples_a_flame_graph(ui_shot: Shot, tmp_path: Path) -> None:
    output = tmp_path / "layers.pftrace"
    merge(FILES, Output(output, layer_counters=True), constraints=SAME_MACHINE)
    slices = ui_shot(output, tmp_path / "slice.png", select="conv")
    assert slices.problems == []
    arguments = slices.details.replace("arrow_drop_down", "").partition("Arguments")[2].split("\n")
    shown = dict(zip(arguments[2::2], arguments[3::2], strict=False))
    assert shown["samples"] == shown["samples_total"] == "156"
    assert (shown["cpu-clock"], shown["page-faults/period=10/"]) == ("78000000", "260")
    outline = [line.strip() for line in slices.outline()]
    assert {"cpu-clock by layer (5509)", "page-faults/period=10/ by layer (5509)"} <= set(outline)
    stacks = ui_shot(output, tmp_path / "area.png", area=["Process Callstacks"])
    assert stacks.problems == []
    assert "Perf Sample Flamegraph" in stacks.details

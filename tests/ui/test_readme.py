"""The README's merge, as its reader sees it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_docs import readme_command
from tests.ui.fixtures import Shot
from traceconv.api import merge

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent


def test_the_merge_of_the_readme_opens_in_the_ui(ui_shot: Shot, tmp_path: Path) -> None:
    arguments = readme_command("bin/traceconv merge")
    files = [ROOT / argument for argument in arguments[1 : arguments.index("-o")]]
    output = tmp_path / "out.pftrace"
    trace = merge(files, output).trace
    report = ui_shot(output, tmp_path / "out.png")
    assert report.problems == []
    assert (report.start, report.end) == trace.span()
    outline = [line.strip() for line in report.outline()]
    assert outline.count("oneDNN") == 1
    assert outline[outline.index("oneDNN") + 1] == "cpu"
    assert "python 26046" in outline

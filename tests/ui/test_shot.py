"""The pictures themselves: they must tell a sound trace from one that the UI complains about."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.ui.fixtures import Shot

pytestmark = pytest.mark.slow

SLICES = [
    {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "proc"}},
    {"ph": "X", "name": "a", "pid": 1, "tid": 2, "ts": 1.5, "dur": 10.25},
    {"ph": "X", "name": "b", "pid": 1, "tid": 3, "ts": 2, "dur": 3},
]


def write(path: Path, events: list[dict[str, Any]]) -> Path:
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def test_sound_trace(ui_shot: Shot, tmp_path: Path) -> None:
    trace = write(tmp_path / "a b+c.json", SLICES)
    png = tmp_path / "x.png"
    report = ui_shot(trace, png, size=(800, 600), span_ns=(0, 5000), select="b", pin=["Thread 2"], tall=True)
    assert report.problems == []
    assert (report.start, report.end) == (1500, 11750)
    # A thread is a group; its slices are a track of the same name in it.
    assert report.outline() == ["proc 1", "  Thread 2", "    Thread 2", "  Thread 3", "    Thread 3"]
    data = png.read_bytes()
    assert data.startswith(b"\x89PNG")
    assert int.from_bytes(data[16:20], "big") == 800


def test_import_error(ui_shot: Shot, tmp_path: Path) -> None:
    timeless = {"ph": "X", "name": "c", "pid": 1, "tid": 2, "dur": 5}
    report = ui_shot(write(tmp_path / "x.json", [*SLICES, timeless]), tmp_path / "x.png")
    assert report.dialog is None
    assert report.import_errors == 1
    assert len(report.problems) == 1


def test_refused_trace(ui_shot: Shot, tmp_path: Path) -> None:
    trace = tmp_path / "x.json"
    trace.write_text('{"traceEvents": [{"ph": "X", "name": "unescaped " quote"}]}')
    report = ui_shot(trace, tmp_path / "x.png")
    assert report.dialog is not None
    assert "parsing JSON" in report.dialog
    assert report.problems

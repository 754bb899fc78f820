"""The section on logs, against counts by hand."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import traceconv
from tests.golden import ROOT
from traceconv.answers.slice_tables import SliceTable
from traceconv.answers.summaries import logs
from traceconv.api import read
from traceconv.model.trace import Level

#: What is refused has no trace.
#: Those that are not refused, and need no options.
LOGS = sorted(
    path
    for case in (ROOT / "timed-log").iterdir()
    if case.name not in ("no-form", "pattern", "shuffled")
    for path in case.glob("input.*")
)


@pytest.mark.parametrize("path", LOGS, ids=[path.parent.name for path in LOGS])
def test_warnings_and_errors_are_counted_by_text(path: Path) -> None:
    trace = read(path, format="timed-log")
    section = logs(SliceTable(trace))
    span = trace.span()
    assert span is not None
    counts: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], int] = {}
    entries = trace.logs
    for at, level, text in zip(entries.ts.tolist(), entries.level.tolist(), entries.text.tolist(), strict=True):
        if level in (Level.WARNING, Level.ERROR, Level.FATAL):
            key = (Level(level).name.lower(), trace.strings[text])
            counts[key] += 1
            first[key] = min(first.get(key, at), at)
    found = {(row["level"], row["text"]): (row["count"], row["first_ns"]) for row in section.records()}
    assert found == {key: (count, first[key] - span[0]) for key, count in counts.items()}
    assert len(found) == len(section.rows)
    order = [(-Level[str(row["level"]).upper()], -row["count"], row["first_ns"]) for row in section.records()]
    assert order == sorted(order)
    assert section.rows or section.notes


def test_an_input_without_a_log_is_named(tmp_path: Path) -> None:
    silent = ROOT / "onednn-verbose" / "torch-convnet-process" / "input.log"
    assert logs(SliceTable(read(silent))).notes == ["no input holds log entries"]
    text = tmp_path / "run.log"
    text.write_text("2026-11-24T10:00:00.000Z INFO all is well\n2026-11-24T10:00:01.000Z INFO still is\n")
    (section,) = traceconv.report([text], traceconv.Questions(sections=("logs",)))
    assert section.rows == []
    assert section.notes == ["none of 2 log entries is a warning or an error"]
    text.write_text("2026-11-24T10:00:00.000Z INFO begins\n" + "2026-11-24T10:00:01.500Z ERROR is lost\n" * 2)
    (section,) = traceconv.report([text, silent], traceconv.Questions(sections=("logs",)))
    note, far_away = section.notes
    assert far_away.startswith("warning: run.log: it does not overlap")
    assert note == f"{section_name(silent)}: holds no log entries"
    ((level, shown, count, _, _),) = section.rows
    assert (level, shown, count) == ("error", "is lost", 2)


def section_name(path: Path) -> str:
    return read(path).sources[0].name

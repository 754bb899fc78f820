"""The section `overview`: the inputs with balance, clock, verdict and losses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from traceconv.align.receipt import ReceiptLine
from traceconv.answers.section import Column, Section, Unit
from traceconv.model.ordering import chunks
from traceconv.model.trace import Trace

_COLUMNS = (
    Column("input", "input", Unit.TEXT),
    Column("format", "format", Unit.TEXT),
    Column("clock", "clock", Unit.TEXT),
    Column("method", "placed by", Unit.TEXT),
    Column("verdict", "verdict", Unit.TEXT),
    Column("bound_ns", "within", Unit.NS),
    Column("start_ns", "start", Unit.NS),
    Column("span_ns", "span", Unit.NS),
    Column("tracks", "tracks", Unit.COUNT),
    Column("slices", "slices", Unit.COUNT),
    Column("lost", "lost", Unit.COUNT),
)

#: The most left-out files that are named.
_MOST_LEFT_OUT = 20


def overview(trace: Trace, receipt: Sequence[ReceiptLine]) -> Section:
    """Return a row for each input and clock; `start_ns` counts from the first event of the trace."""
    section = Section("overview", _COLUMNS)
    whole = trace.span()
    slices = np.zeros(len(trace.tracks), np.int64)
    for rows in chunks(len(trace.slices.track)):
        slices += np.bincount(trace.slices.track[rows], minlength=len(slices))
    extents = trace.extents()
    for number, source in enumerate(trace.sources):
        tracks_of_input = [index for index, track in enumerate(trace.tracks) if track.source == number]
        found = [extents[index] for index in tracks_of_input if index in extents]
        start = min((first for first, _ in found), default=None)
        end = max((last for _, last in found), default=None)
        lines: list[ReceiptLine | None] = [line for line in receipt if line.file == source.name]
        for line in lines or [None]:
            section.rows.append(
                (
                    source.name,
                    source.format,
                    line.clock if line else "",
                    line.method if line else "nothing to place",
                    line.verdict if line else "",
                    line.bound_ns if line else None,
                    None if start is None or whole is None else start - whole[0],
                    None if start is None or end is None else end - start,
                    len(tracks_of_input),
                    int(slices[tracks_of_input].sum()),
                    source.diagnostics.lost,
                )
            )
        section.notes += [f"{source.name}: {note}" for note in source.notes]
    left_out = list(trace.left_out.items())
    section.notes += [f"left out: {path}: {reason}" for path, reason in left_out[:_MOST_LEFT_OUT]]
    if len(left_out) > _MOST_LEFT_OUT:
        section.notes.append(f"left out: {len(left_out) - _MOST_LEFT_OUT} more files")
    return section

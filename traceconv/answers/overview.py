"""The section `overview`: the inputs with balance, clock, verdict and losses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from traceconv.align.receipt import ReceiptLine
from traceconv.answers.inputs_of import Inputs
from traceconv.answers.section import Column, Section, Unit
from traceconv.model.clocks import Run
from traceconv.model.ordering import chunks
from traceconv.model.trace import I64, Trace

_COLUMNS = (
    Column("input", "input", Unit.TEXT),
    Column("format", "format", Unit.TEXT),
    Column("clock", "clock", Unit.TEXT),
    Column("method", "placed by", Unit.TEXT, whole=True),
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
    starts, ends, slices = _of_inputs(trace)
    without_line = "nothing to place" if receipt else "not known"
    for number, source in enumerate(trace.sources):
        start, end = (None, None) if starts[number] > ends[number] else (int(starts[number]), int(ends[number]))
        lines: list[ReceiptLine | None] = [line for line in receipt if line.file == source.name]
        for line in lines or [None]:
            section.rows.append(
                (
                    source.name,
                    source.format,
                    line.clock if line else "",
                    line.method if line else without_line,
                    line.verdict if line else "",
                    line.bound_ns if line else None,
                    None if start is None or whole is None else start - whole[0],
                    None if start is None or end is None else end - start,
                    sum(track.source == number for track in trace.tracks),
                    int(slices[number]),
                    source.diagnostics.lost,
                )
            )
        section.notes += [f"{source.name}: {note}" for note in source.notes]
    left_out = list(trace.left_out.items())
    section.notes += [f"left out: {path}: {reason}" for path, reason in left_out[:_MOST_LEFT_OUT]]
    if len(left_out) > _MOST_LEFT_OUT:
        section.notes.append(f"left out: {len(left_out) - _MOST_LEFT_OUT} more files")
    return section


def _of_inputs(trace: Trace) -> tuple[I64, I64, I64]:
    """Return the first and the last time (ns) of the events of each input, reversed without events, and its slices."""
    count = len(trace.sources)
    starts, ends = np.full(count, np.iinfo(np.int64).max), np.full(count, np.iinfo(np.int64).min)
    slices = np.zeros(count, np.int64)
    without_times = np.array(
        [
            trace.clocks[one.clock].run is Run.TOTALS or bool(trace.sources[one.source].belongs_to)
            for one in trace.tracks
        ],
        bool,
    )
    for name, table in trace.timed_tables():
        inputs_of = Inputs(trace, name)
        for rows in chunks(len(table.ts)):
            inputs, ts = inputs_of.of(rows), table.ts[rows]
            if name == "instants" and np.any(untimed := without_times[table.track[rows]]):
                inputs, ts = inputs[~untimed], ts[~untimed]
            np.minimum.at(starts, inputs, ts)
            np.maximum.at(ends, inputs, ts + table.dur[rows] if name == "slices" else ts)
            if name == "slices":
                slices += np.bincount(inputs, minlength=count)
        trace.forget()
    return starts, ends, slices

"""The section `overview`: the inputs with balance, clock, verdict and losses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from traceconv.align.receipt import ReceiptLine
from traceconv.answers.section import Column, Section, Unit
from traceconv.answers.tables import SliceTable
from traceconv.io.shown import quantity
from traceconv.model.counted import SLICES
from traceconv.model.inputs_of import Inputs
from traceconv.model.ordering import chunks
from traceconv.model.stated import by_stated_inputs
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

#: The most left-out files that are named, and inputs of an output of traceconv.
_MOST_NAMED = 20


def overview(trace: Trace, receipt: Sequence[ReceiptLine]) -> Section:
    """Return a row for each input and clock; the events of an input are counted in its first row.

    `start_ns` counts from the first event of the trace. Inputs without real times have no start and no span. A note
    names the inputs that an output of traceconv states, with their slices.
    """
    section = Section("overview", _COLUMNS)
    whole = trace.span()
    by_input = by_stated_inputs(trace)
    starts, ends, slices = _of_inputs(by_input)
    stated = len(trace.sources)
    tracks_of = np.bincount(trace.tracks.column("source"), minlength=stated)
    for _, track in trace.tracks.special():
        tracks_of[list({carried for _, carried, _ in track.carries} - {track.source})] += 1
    for number, source in enumerate(trace.sources):
        if source.stated:
            own = slice(stated, stated := stated + len(source.stated))
            starts[number] = min(starts[number], np.min(starts[own]))
            ends[number] = max(ends[number], np.max(ends[own]))
            made_of = [
                f"{one.name} ({one.format}): {quantity(int(count), SLICES)}"
                for one, count in zip(source.stated[:_MOST_NAMED], slices[own].tolist(), strict=False)
            ]
            more = len(source.stated) - _MOST_NAMED
            section.notes.append(
                f"{source.name}: made of {'; '.join(made_of)}{f'; and {more} more' if more > 0 else ''}"
            )
            slices[number] += np.sum(slices[own])
        start, end = (None, None) if starts[number] > ends[number] else (int(starts[number]), int(ends[number]))
        lines: list[ReceiptLine | None] = [line for line in receipt if line.file == source.name]
        tracks = int(tracks_of[number])
        events: tuple[int | None, ...] = (
            None if start is None or whole is None else start - whole[0],
            None if start is None or end is None else end - start,
            tracks,
            int(slices[number]),
            source.diagnostics.lost,
        )
        for line in lines or [None]:
            section.rows.append(
                (
                    source.name,
                    source.format,
                    line.clock if line else "",
                    line.method if line else "not known" if tracks and not receipt else "nothing to place",
                    line.verdict if line else "",
                    line.bound_ns if line else None,
                    *events,
                )
            )
            events = (None,) * len(events)
        section.notes += [f"{source.name}: {note}" for note in source.notes]
    left_out = list(trace.left_out.items())
    section.notes += [f"left out: {path}: {reason}" for path, reason in left_out[:_MOST_NAMED]]
    if len(left_out) > _MOST_NAMED:
        section.notes.append(f"left out: {len(left_out) - _MOST_NAMED} more files")
    return section


def _of_inputs(trace: Trace) -> tuple[I64, I64, I64]:
    """Return the first and the last time (ns) of the events of each input, and the number of its slices.

    The times are real ones; of an input without any, the first is after the last.
    """
    count = len(trace.sources)
    starts, ends = np.full(count, np.iinfo(np.int64).max), np.full(count, np.iinfo(np.int64).min)
    slices = np.zeros(count, np.int64)
    in_time = SliceTable(trace).drawn_in_time
    for name, table in trace.timed_tables():
        inputs_of = Inputs(trace, name)
        for rows in chunks(len(table.ts)):
            inputs, ts = inputs_of.of(rows), table.ts[rows]
            last = ts + table.dur[rows] if name == "slices" else ts
            if name == "slices":
                slices += np.bincount(inputs, minlength=count)
            if np.any(untimed := ~in_time[table.track[rows]]):
                inputs, ts, last = inputs[~untimed], ts[~untimed], last[~untimed]
            np.minimum.at(starts, inputs, ts)
            np.maximum.at(ends, inputs, last)
        trace.forget()
    return starts, ends, slices

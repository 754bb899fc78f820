"""Draw a run of each side of a comparison on one axis, step below step, with the differences of the steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from msgspec import Struct, structs

from traceconv.answers.section import Cell
from traceconv.answers.slice_tables import Rows, SliceTable
from traceconv.answers.step_parts import DISJOINT, step_parts
from traceconv.comparison.run_values import Part, compared_steps, run_values
from traceconv.comparison.runs import Recorded
from traceconv.io.shown import one_line, quantity
from traceconv.model.args import with_more_args
from traceconv.model.builder import Builder
from traceconv.model.clocks import ClockDomain, Run, Zero
from traceconv.model.columns import I64
from traceconv.model.diagnostics import SLICES
from traceconv.model.layout import lay_out, validate
from traceconv.model.marks import DIFFERENCE
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import Trace
from traceconv.model.trace_inputs import concatenate_traces
from traceconv.model.track_table import NO_TRACK

#: The axis of the picture: no clock, since steps of both sides begin together.
_AXIS = ClockDomain("steps of both sides", Zero.UNKNOWN, Run.NONE)
_HELP = "after - before, of the step of each side that begins here, or of the whole run"
#: The UI orders groups of tracks by name.
_SIDES = ("1 before: ", "2 after: ")


class _Drawn(Struct, frozen=True):
    """A run that stands for its side.

    Attributes:
        name: its name.
        table: its slices.
        steps: the compared steps of the thread that has the most, by time.
    """

    name: str
    table: SliceTable
    steps: Rows

    @property
    def starts(self) -> I64:
        """The times from which slices belong to each step, ns: its start; without steps, that of the run."""
        starts: I64 = self.table.trace.slices.ts[self.steps]
        return starts if len(starts) else np.array([self.table.start], np.int64)


def _drawn(recorded: Recorded, part: Part) -> _Drawn:
    table = recorded.table
    steps = compared_steps(table, part)
    track = table.row_of_track[table.trace.slices.track[steps]]
    threads, count = np.unique(track, return_counts=True)
    chosen = steps[track == threads[np.argmax(count)]] if len(threads) else steps
    return _Drawn(recorded.name, table, chosen[np.argsort(table.trace.slices.ts[chosen], kind="stable")])


def side_by_side(before: Recorded, after: Recorded, *, part: Part) -> Trace:
    """Return the trace of two runs: step n of both begins at one time, and a process has the differences.

    What begins in a step, or after it, moves with it. So a slice that reaches into the next step is longer by the gap
    that the picture has between them; its arg `gap_ns` has that. If one run has no steps, whole runs begin together.

    Args:
        before, after: the runs.
        part: what of them is compared.
    """
    sides = [_drawn(recorded, part) for recorded in (before, after)]
    if not all(len(side.steps) for side in sides):
        sides = [structs.replace(side, steps=np.empty(0, np.int64)) for side in sides]
    starts = [side.starts for side in sides]
    count = min(map(len, starts))
    first = max(int(times[0]) - side.table.start for times, side in zip(starts, sides, strict=True))
    places = first + np.append(0, np.cumsum(np.maximum(*(np.diff(times[:count]) for times in starts))))
    moved = [
        _moved(sides[0], places, _SIDES[0], 0, 0),
        _moved(sides[1], places, _SIDES[1], len(before.table.trace.sources), len(before.table.trace.tracks)),
    ]
    trace = concatenate_traces([*moved, _differences(sides, places, sum(len(trace.sources) for trace in moved))])
    trace = trace.with_tables(clocks=[_AXIS])
    validate(trace)
    return trace


def _moved(side: _Drawn, places: I64, prefix: str, inputs_before: int, tracks_before: int) -> Trace:
    """Return the trace of a side on the axis, its tracks named by the side, below those of the side before it."""
    trace, slices, starts = side.table.trace, side.table.trace.slices, side.starts[: len(places)]
    shifts = places - starts

    def shift(ts: I64, edge: Literal["left", "right"]) -> I64:
        found: I64 = shifts[np.maximum(np.searchsorted(starts, ts, edge) - 1, 0)]
        return found

    tables = {name: replace(table, ts=table.ts + shift(table.ts, "right")) for name, table in trace.timed_tables()}
    gap = np.maximum(shift(slices.ts + slices.dur, "left") - shift(slices.ts, "right"), 0)
    tables["slices"] = replace(tables["slices"], dur=slices.dur + gap)
    tracks = trace.tracks.replaced(
        clock=np.zeros(len(trace.tracks), np.int32), source=trace.tracks.column("source") + inputs_before
    )
    top = np.flatnonzero(trace.tracks.column("parent") == NO_TRACK).tolist()
    top.sort(key=lambda number: (trace.tracks[number].rank is None, trace.tracks[number].rank or 0, number))
    for rank, number in enumerate(top, 1 + tracks_before):
        tracks.put(number, structs.replace(tracks[number], name=f"{prefix}{tracks[number].name}", rank=rank))
    for number, track in trace.tracks.special():
        carries = tuple(
            (table, source + inputs_before, since + int(shift(np.array([since]), "right")[0]))
            for table, source, since in track.carries
        )
        tracks.put(number, structs.replace(tracks[number], carries=carries))
    sources = [source.copy() for source in trace.sources]
    longer = np.flatnonzero(gap)
    if len(longer):
        reach = quantity(len(longer), SLICES)
        sources[0].notes.append(f"longer by gaps between steps, which the arg gap_ns has: {reach}")
    trace = trace.with_tables(**tables, sources=sources, tracks=tracks)
    return with_more_args(trace, longer.tolist(), ({"gap_ns": ns} for ns in gap[longer].tolist()))


def _differences(sides: Sequence[_Drawn], places: I64, number: int) -> Trace:
    """Return the trace of the differences: a slice for each step, and counters of it and of its parts."""
    builder = Builder(SourceInfo("differences", "diff", unit="step"), _AXIS)
    process = builder.tracks.process("difference", description=f"{_HELP}: " + " and ".join(side.name for side in sides))
    builder.tracks[process].rank = 0
    measure, times_of = _compared(sides)
    track = builder.tracks.thread(process, None, measure)
    before, after = (times[: len(places)] for times in times_of)
    names = [[one_line(_name(side, at)) for at in range(len(places))] for side in sides]
    for at, (ts, *times) in enumerate(zip(places.tolist(), before, after, strict=True)):
        change = times[1] - times[0]
        args = {"before": names[0][at], "after": names[1][at], "before_ns": times[0], "after_ns": times[1]}
        word = "longer" if change > 0 else "shorter" if change else "as long"
        builder.slice(track, ts, max(times), word, DIFFERENCE, args | {"difference_ns": change}, at)
    of_parts = [_parts(side, len(places)) for side in sides]
    counters = {measure: (before, after)} | {
        name: tuple(parts.get(name, [0] * len(places)) for parts in of_parts)
        for name in dict.fromkeys(name for parts in of_parts for name in parts)
    }
    for name, (old, new) in counters.items():
        if name == measure or any(old) or any(new):
            counter = builder.tracks.counter(f"{name}: after - before", process, unit="ns", description=_HELP)
            for at, ts in enumerate(places.tolist()):
                builder.counter(counter, ts, new[at] - old[at], at)
    builder.balance.read = builder.balance.written = len(places) * (1 + len(counters))
    trace = lay_out(builder.finish())
    return trace.with_tables(tracks=trace.tracks.replaced(source=np.full(len(trace.tracks), number, np.int32)))


def _compared(sides: Sequence[_Drawn]) -> tuple[str, list[list[int]]]:
    """Return what the table compares first, and its times on each side, ns: the steps, or one time of a whole run."""
    if all(len(side.steps) for side in sides):
        return "step", [side.table.trace.slices.dur[side.steps].tolist() for side in sides]
    values = [run_values(side.table, ("name",), Part.WHOLE) for side in sides]
    measure = next((each for each in values[0] if each in values[1]), "")
    return measure, [[found[measure].total if measure else 0] for found in values]


def _name(side: _Drawn, at: int) -> str:
    return side.table.trace.strings[side.table.trace.slices.name[side.steps[at]]] if len(side.steps) else side.name


def _parts(side: _Drawn, count: int) -> Mapping[str, list[int]]:
    """Return the time of each part in each of the first steps, by its name; of several devices, with their number."""
    if not len(side.steps):
        return {}
    table, slices = side.table, side.table.trace.slices
    section = step_parts(table.choosing(None))
    start, span, track, device = map(section.place, ("start_ns", "span_ns", "track", "device"))
    thread = table.title(int(table.row_of_track[slices.track[side.steps[0]]]))
    spans = slices.dur[side.steps[:count]].tolist()
    at_step: dict[tuple[Cell, ...], int] = {
        (int(ts) - table.start, dur): at for at, (ts, dur) in enumerate(zip(side.starts, spans, strict=False))
    }
    rows = [row for row in section.rows if (row[start], row[span]) in at_step and row[track] == thread]
    devices = list(dict.fromkeys(row[device] for row in rows))
    parts: dict[str, list[int]] = {}
    for row in rows:
        number = f", device {1 + devices.index(row[device])}" if len(devices) > 1 else ""
        for column in map(section.place, DISJOINT):
            name = f"{section.columns[column].title}{number}"
            parts.setdefault(name, [0] * count)[at_step[row[start], row[span]]] = int(row[column] or 0)
    return parts

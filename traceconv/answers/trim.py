"""Trim a trace to a window of time: `--trim`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from traceconv.align.constraint_parser import input_named, names_several
from traceconv.answers.between import check_between, window_of
from traceconv.answers.cut import flows_among
from traceconv.answers.section import Window
from traceconv.answers.tables import SliceTable
from traceconv.errors import UsageError
from traceconv.io.shown import quantity
from traceconv.model.counted import COUNTER_VALUES, FLOWS, INSTANTS, LOG_ENTRIES, SAMPLES, SLICES
from traceconv.model.diagnostics import skipped
from traceconv.model.inputs_of import inputs_of
from traceconv.model.layout import drop_unused_tracks
from traceconv.model.times import format_time
from traceconv.model.trace import TIMED, Counters, SourceInfo, Trace, take

OPTION = "--trim"
OUTSIDE = skipped("trim.outside", "events outside of the time that --trim asks for")

Chosen = npt.NDArray[np.bool_]


def check_trim(text: str, files: Sequence[str]) -> None:
    """Raise UsageError if a window has invalid times and is not one of the files, or is the name of several files."""
    if text and _input(text, files) is None:
        check_between(text, OPTION)


def trimmed(trace: Trace, text: str) -> Trace:
    """Return the part of a trace in a window; its inputs count the rest as skipped by design.

    Slices that cross its edges stay whole, and the counter values that hold at its start are kept. Flows are kept if
    both of their slices are.

    Args:
        trace: a trace on one clock, as `merge` returns it. Its inputs count the events left out.
        text: a window in the form of `report --between`, or an input: from its first to its last time.

    Raises:
        UsageError: there is no such window, or it has no events.
    """
    window = _window(trace, text)
    slices, ends = trace.slices, trace.slices.ts + trace.slices.dur
    kept = {name: window.holds(table.ts) for name, table in trace.timed_tables()}
    kept["slices"] |= (slices.ts < window.start) & (ends > window.start)
    if not any(np.any(chosen) for chosen in kept.values()):
        first, last = (format_time(instant - window.origin) for instant in (window.start, window.end))
        raise UsageError(f"{OPTION} {text!r}: nothing was recorded from {first} to {last} after the start")
    kept["counters"] |= _holding(trace.counters, window)
    rows = np.flatnonzero(kept["slices"])
    flows = flows_among(trace.flows, rows, len(ends))
    of_flows = kept["slices"][trace.flows.from_slice] & kept["slices"][trace.flows.to_slice]
    _count(trace, kept | {"flows": of_flows})
    tables = {name: take(table, np.flatnonzero(kept[name])) for name, table in trace.timed_tables()}
    return drop_unused_tracks(trace.with_tables(**tables, flows=flows))


def _input(text: str, files: Sequence[str]) -> int | None:
    """Return the number of the input with a name, None without one. Raises UsageError if several have it."""
    try:
        return input_named(text, files, OPTION)
    except UsageError:
        if names_several(text, files):
            raise
        return None


def _window(trace: Trace, text: str) -> Window:
    table = SliceTable(trace)
    number = _input(text, [source.path or source.name for source in trace.sources])
    if number is None:
        return window_of(table, text, OPTION)
    starts, ends = [], []
    for name, events in trace.timed_tables():
        own = np.flatnonzero(inputs_of(trace, name) == number)
        if len(own):
            starts.append(int(np.min(events.ts[own])))
            ends.append(int(np.max((events.ts + events.dur if name == "slices" else events.ts)[own])))
    if not starts:
        raise UsageError(f"{OPTION} {text}: this input has no events")
    return Window(text, min(starts), max(ends) + 1, table.start)


def _holding(counters: Counters, window: Window) -> Chosen:
    """Return a mask of the counter values that hold at the start of the window: the last one before, by track."""
    before = np.flatnonzero(counters.ts < window.start)
    last = np.append(np.diff(counters.track[before]) != 0, True)[: len(before)]
    holding = np.zeros(len(counters.ts), bool)
    holding[before[last]] = True
    return holding


def _count(trace: Trace, kept: dict[str, Chosen]) -> None:
    """Count the rows that are left out of each input, and in its balance the events without any remaining row."""
    labels = dict(zip((*TIMED, "flows"), (SLICES, INSTANTS, COUNTER_VALUES, SAMPLES, LOG_ENTRIES, FLOWS), strict=True))
    sources = {name: inputs_of(trace, name) for name in kept}
    for number, source in enumerate(trace.sources):
        of_source = {name: sources[name] == number for name in kept}
        gone = {name: int(np.sum(mine & ~kept[name])) for name, mine in of_source.items()}
        if any(gone.values()):
            left_out = ", ".join(quantity(count, labels[name]) for name, count in gone.items() if count)
            without = _origins(trace, {name: mine & ~kept[name] for name, mine in of_source.items()})
            left = _origins(trace, {name: mine & kept[name] for name, mine in of_source.items()})
            _leave_out(source, left_out, sum(gone.values()), len(without - left))


def _origins(trace: Trace, chosen: dict[str, Chosen]) -> set[int]:
    """Return the origins of the chosen rows: the numbers of events in their input."""
    return {origin for name, rows in chosen.items() for origin in getattr(trace, name).origin[rows].tolist()}


def _leave_out(source: SourceInfo, left_out: str, rows: int, events: int) -> None:
    events = min(events, source.balance.written)
    source.problem(OUTSIDE, left_out, count=rows, skipped=events)
    source.balance.written -= events
    source.balance.skipped[OUTSIDE.skipped] += events

"""The section `memory`: the peaks of allocated memory."""

from __future__ import annotations

import re

import numpy as np

from traceconv.answers.section import Cell, Column, Section, Unit
from traceconv.answers.tables import SliceTable
from traceconv.answers.totals import stated_peaks, title
from traceconv.io.shown import quantity
from traceconv.model.counted import VALUES
from traceconv.model.trace import TrackKind

_COLUMNS = (
    Column("counter", "counter", Unit.TEXT),
    Column("peak_bytes", "peak", Unit.BYTES),
    Column("peak_at_ns", "first at", Unit.NS),
    Column("first_bytes", "first", Unit.BYTES),
    Column("last_bytes", "last", Unit.BYTES),
    Column("values", "values", Unit.COUNT),
    Column("input", "input", Unit.TEXT, spare=True),
)


def memory(table: SliceTable) -> Section:
    """Return a row for each counter of memory, the largest peak first, and the peaks that tables of sums state.

    The formats of the inputs declare the counters. `peak_at_ns` is the first time of the peak, from the first event of
    the trace, None if the input states no times. Sums cannot be divided: with a window, those of tables are left out.
    """
    trace, counters = table.trace, table.trace.counters
    section = Section("memory", _COLUMNS)
    order = np.lexsort((np.arange(len(counters.ts)), counters.ts, counters.track))
    bounds = np.searchsorted(counters.track[order], np.arange(len(trace.tracks) + 1)).tolist()
    telling: set[int] = set()
    rows: list[tuple[Cell, ...]] = []
    for number, track in enumerate(trace.tracks):
        source = trace.sources[track.source]
        of_counter = order[bounds[number] : bounds[number + 1]]
        if track.kind is not TrackKind.COUNTER or not len(of_counter) or not source.marks.memory:
            continue
        if not re.fullmatch(source.marks.memory, track.name):
            continue
        telling.add(track.source)
        whole = of_counter[counters.is_integer[of_counter] == 1]
        if len(whole) < len(of_counter):
            section.notes.append(
                f"{table.title(number)}: left out: {quantity(len(of_counter) - len(whole), VALUES)} not in whole bytes"
            )
        if not len(whole):
            continue
        times, inside = counters.ts[whole], len(whole)
        if window := table.window:
            # The value at the start of the window was set before it.
            first, last = np.searchsorted(times, (window.start, window.end)).tolist()
            inside = last - first
            first -= first > 0 and (not inside or int(times[first]) > window.start)
            whole, times = whole[first:last], np.maximum(times[first:last], window.start)
            if not len(whole):
                section.notes.append(f"{table.title(number)}: has no value before the end of the window")
                continue
        values = counters.integer[whole]
        top = int(np.argmax(values))
        ends = (int(values[0]), int(values[-1]))
        at = int(times[top]) - table.start if table.drawn_in_time[number] else None
        rows.append((table.title(number), int(values[top]), at, *ends, inside, table.input_of(number)))
    of_sums = stated_peaks(table)
    telling |= {trace.tracks[one.track].source for one in of_sums}
    if table.window is None:
        for one in of_sums:
            name, source = f"{title(table, one.track)} / {one.name}", trace.sources[trace.tracks[one.track].source]
            rows.append((name, one.peak, None, None, None, one.changes, source.name))
    else:
        names = dict.fromkeys(trace.sources[trace.tracks[one.track].source].name for one in of_sums)
        section.notes += [f"{name}: its sums cannot be divided: they are left out" for name in names]
    section.rows = sorted(rows, key=lambda row: (-int(row[1] or 0), str(row[0])))
    silent = [source.name for number, source in enumerate(trace.sources) if number not in telling]
    if not telling:
        section.notes.append("no input tells how much memory is held")
        return section
    section.notes += [f"{name}: does not tell how much memory is held" for name in silent]
    if rows:
        section.notes.append(
            "a peak between two values is not seen; counters may count the same memory: they do not add up"
        )
    if any(row[2] is None for row in rows):
        section.notes.append("an empty time: the input states none")
    return section

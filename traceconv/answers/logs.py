"""The section `logs`: warnings and errors in the inputs, with their number."""

from __future__ import annotations

import numpy as np

from traceconv.answers.section import Column, Section, Unit
from traceconv.answers.tables import SliceTable
from traceconv.model.inputs_of import inputs_of
from traceconv.model.stated import by_stated_inputs
from traceconv.model.trace import Level

_COLUMNS = (
    Column("level", "level", Unit.TEXT),
    Column("text", "text", Unit.TEXT),
    Column("count", "count", Unit.COUNT),
    Column("first_ns", "first", Unit.NS),
    Column("input", "input", Unit.TEXT),
)


def logs(table: SliceTable) -> Section:
    """Return a row for each text, level and input, from WARNING on, the most severe first.

    `first_ns` counts from the first event of the trace; it is None if the entries have no real times.
    """
    trace, entries = table.trace, table.trace.logs
    section = Section("logs", _COLUMNS)
    source = inputs_of(trace, "logs")
    silent = sorted(set(range(len(trace.sources))) - set(source.tolist()))
    if not len(source):
        section.notes.append("no input holds log entries")
        return section
    section.notes += [f"{trace.sources[number].name}: holds no log entries" for number in silent]
    in_window = table.in_window(entries.ts)
    rows = np.flatnonzero(in_window & (entries.level >= Level.WARNING))
    if not len(rows):
        section.notes.append(f"none of {np.count_nonzero(in_window)} log entries is a warning or an error")
        return section
    stated = by_stated_inputs(trace)
    of_stated = inputs_of(stated, "logs")[rows]
    keys = np.stack((-entries.level[rows].astype(np.int64), entries.text[rows].astype(np.int64), of_stated))
    groups, numbers, counts = np.unique(keys, axis=1, return_inverse=True, return_counts=True)
    in_time = table.drawn_in_time[entries.track[rows]]
    first = np.full(len(counts), np.iinfo(np.int64).max)
    np.minimum.at(first, numbers.reshape(-1), entries.ts[rows])
    known = np.zeros(len(counts), bool)
    known[numbers.reshape(-1)[in_time]] = True
    first -= table.start
    for at in np.lexsort((first, -counts, groups[0])).tolist():
        level, text, number = groups[:, at].tolist()
        name = Level(-level).name.lower()
        begin = int(first[at]) if known[at] else None
        section.rows.append((name, trace.strings[text], int(counts[at]), begin, stated.sources[number].name))
    if not all(known):
        section.notes.append("an empty time: the input states none")
    return section

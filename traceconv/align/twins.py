"""Two inputs that are one and the same recording."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import combinations
from typing import Any

import numpy as np

from traceconv.ir.trace import TABLES, Trace, Track

METHOD = "the same recording, given twice"
#: Fewer events than this may be equal by chance.
_LEAST_EVENTS = 8
#: Where something stands in the file is no part of what was recorded.
_PLACES = ("args_at", "origin")


def same_recording(one: Trace, other: Trace) -> bool:
    """Whether two traces say the same of the same things: all events with times as written, values, stacks and args.

    Almost all pairs differ in what is compared first, which costs next to nothing.
    """
    if one.sources[0].format != other.sources[0].format or one.counts() != other.counts():
        return False
    if sum(one.counts().values()) < _LEAST_EVENTS:
        return False
    if one.strings != other.strings or one.frames != other.frames or _tracks(one) != _tracks(other):
        return False
    tables = [(getattr(one, name), getattr(other, name)) for name in TABLES]
    return all(_same_columns(*pair) for pair in tables) and all(_same_args(one, other, *pair) for pair in tables)


def _tracks(trace: Trace) -> list[Track]:
    """The tracks of one input; those that are called like its file without that name."""
    file = trace.sources[0].name
    return [replace(track, name="") if track.name == file else track for track in trace.tracks]


def _same_columns(table: Any, other: Any) -> bool:
    columns = [column.name for column in fields(table) if column.name not in _PLACES]
    return all(np.array_equal(getattr(table, column), getattr(other, column)) for column in columns)


def _same_args(one: Trace, other: Trace, table: Any, its: Any) -> bool:
    """Whether the args of rows that are otherwise equal, and so are as long, have the same bytes."""
    if not hasattr(table, "args_at"):
        return True
    rows = np.flatnonzero(table.args_len)
    places = (column[rows].tolist() for column in (table.args_at, its.args_at, table.args_len))
    return all(one.args.get(here, n) == other.args.get(there, n) for here, there, n in zip(*places, strict=True))


def notes_on_twins(traces: Sequence[Trace]) -> dict[int, list[str]]:
    """For inputs that are the same recording as an earlier one, notes that say so."""
    notes: dict[int, list[str]] = defaultdict(list)
    for (_, one), (index, other) in combinations(enumerate(traces), 2):
        if same_recording(one, other):
            notes[index].append(f"its events are those of {one.sources[0].name}: the same recording was given twice")
    return notes

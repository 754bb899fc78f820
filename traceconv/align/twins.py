"""Two inputs that are one and the same recording."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from traceconv.ir.trace import Trace

METHOD = "the same recording, given twice"
#: Fewer events than this may be equal by chance.
_LEAST_EVENTS = 8
_COLUMNS = ("ts", "dur", "track", "name")


def same_recording(one: Trace, other: Trace) -> bool:
    """Whether all events of two traces are equal, times as written included."""
    if one.sources[0].format != other.sources[0].format or one.strings != other.strings:
        return False
    tables = [(table, getattr(other, name)) for name, table in one.timed_tables()]
    if sum(len(table.ts) for table, _ in tables) < _LEAST_EVENTS:
        return False
    return all(
        np.array_equal(getattr(table, column), getattr(its, column))
        for table, its in tables
        for column in _COLUMNS
        if hasattr(table, column)
    )


def note_twins(traces: Sequence[Trace]) -> None:
    """Say on an input that another one is the same recording."""
    for one, other in combinations(traces, 2):
        if same_recording(one, other):
            note = f"its events are those of {one.sources[0].name}: the same recording was given twice"
            if note not in other.sources[0].notes:
                other.sources[0].notes.append(note)

"""Compare the table of sums that a tool prints with the events of its run, if both are inputs."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import numpy as np

from traceconv.answers.nesting import NO_PARENT
from traceconv.answers.tables import Rows, SliceTable
from traceconv.model.arg_values import ABSENT, arg_values
from traceconv.model.marks import TotalsMarks

#: The relative tolerance: tools print four digits or more.
_CLOSE = 5e-4
#: The end of a name that was cut.
_CUT = "..."
_SHOWN = 3
_Key = tuple[str, str]


class _Row(NamedTuple):
    """A row of a table: name and category, number of calls, and possible total times, ns."""

    name: str
    category: str
    calls: int
    totals: list[float]


def compared(table: SliceTable) -> list[str]:
    """Return a sentence for each input that is a table of sums: the number of rows that agree with the events.

    A row agrees if the number of calls is equal, and the total to four digits, either with all calls of its name, or
    with those that are not directly inside another one.
    """
    sources = table.trace.sources
    if not any(source.marks.totals for source in sources):
        return []
    by_input = [_calls(table, number) for number in range(len(sources))]
    found = []
    for number, source in enumerate(sources):
        marks = source.marks.totals
        rows = list(_printed(table, number, marks)) if marks else []
        keys = [[_key(row, names) for row in rows] for names in by_input]
        other = max(range(len(keys)), key=lambda one: len(rows) - keys[one].count(None))
        pairs = [(row, key and by_input[other][key]) for row, key in zip(rows, keys[other], strict=True)]
        missing = [row.name for row, slices in pairs if slices is None]
        if len(missing) == len(rows):
            continue
        wrong = [row.name for row, slices in pairs if slices is not None and not _agrees(table, slices, row)]
        agree = len(rows) - len(wrong) - len(missing)
        sentence = f"{source.name}: {agree} of {len(rows)} rows agree with {sources[other].name}"
        found.append("; ".join([sentence, *_some(wrong, "differ"), *_some(missing, "have no slices there")]))
    return found


def _some(names: list[str], what: str) -> list[str]:
    if not names:
        return []
    return [f"{len(names)} {what}: {', '.join(names[:_SHOWN])}{', ...' if len(names) > _SHOWN else ''}"]


def _calls(table: SliceTable, number: int) -> dict[_Key, Rows]:
    """Return the recorded slices of an input by name and category, and by name alone."""
    strings, slices = table.trace.strings, table.trace.slices
    rows = table.recorded[table.of_source(number)[table.recorded]]
    found: dict[_Key, list[int]] = {}
    columns = (rows, slices.name[rows], slices.category[rows])
    for row, name, category in zip(*(column.tolist() for column in columns), strict=True):
        for text in {strings[category], ""}:
            found.setdefault((strings[name], text), []).append(row)
    return {key: np.array(some, np.intp) for key, some in found.items()}


def _key(row: _Row, names: Collection[_Key]) -> _Key | None:
    """Return the key of a row; for a name that was cut, only if it is unique."""
    if (row.name, row.category) in names:
        return row.name, row.category
    start = row.name.removesuffix(_CUT)
    keys = [key for key in names if start != row.name and key[0].startswith(start) and key[1] == row.category]
    return keys[0] if len(keys) == 1 else None


def _printed(table: SliceTable, number: int, marks: TotalsMarks) -> Iterator[_Row]:
    """Yield the rows of an input that is a table of sums."""
    instants, strings = table.trace.instants, table.trace.strings
    of_input = np.array([track.source == number for track in table.trace.tracks], bool)
    rows = np.flatnonzero(of_input[instants.track])
    keys = [marks.calls, *marks.totals]
    numbers, values = arg_values(table.trace.args, instants.args_at[rows], instants.args_len[rows], keys)
    for row, at in zip(rows.tolist(), numbers.tolist(), strict=True):
        calls, *totals = values[at]
        times = [float(total) * marks.unit_ns for total in totals if _is_number(total)]
        if _is_number(calls) and times:
            yield _Row(strings[instants.name[row]], strings[instants.category[row]], int(calls), times)


def _is_number(value: Any) -> bool:
    return value is not ABSENT and isinstance(value, int | float) and not isinstance(value, bool)


def _agrees(table: SliceTable, rows: Rows, printed: _Row) -> bool:
    """Return whether all of the slices, or the outermost ones, agree with the calls and one of the totals."""
    parent, slices = table.nesting.parent, table.trace.slices
    outermost = rows[(parent[rows] == NO_PARENT) | (slices.name[parent[rows]] != slices.name[rows])]
    sums = {int(slices.dur[some].sum()) for some in (rows, outermost) if len(some) == printed.calls}
    return any(abs(whole - total) <= _CLOSE * abs(total) for whole in sums for total in printed.totals)

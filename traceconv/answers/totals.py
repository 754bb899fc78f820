"""Compare the table of sums that a tool prints with the events of its run, if both are inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    with those that are not directly inside another one. A name may be that of several kinds of slices, such as ranges
    on the host and their copies on a device, and a name that was cut may stand for several names: the row agrees if
    one of them does.
    """
    sources = table.trace.sources
    if not any(source.marks.totals for source in sources):
        return []
    found = []
    for number, source in enumerate(sources):
        marks = source.marks.totals
        if marks is None:
            continue
        rows = list(_printed(table, number, marks))
        by_input = (_calls(table, one, marks) for one in range(len(sources)))
        slices_of = [[_named(row, calls) for row in rows] for calls in by_input]
        other = max(range(len(sources)), key=lambda one: sum(map(bool, slices_of[one])))
        pairs = list(zip(rows, slices_of[other], strict=True))
        missing = [row.name for row, named in pairs if not named]
        if len(missing) == len(rows):
            continue
        wrong = [row.name for row, named in pairs if named and not any(_agrees(table, one, row) for one in named)]
        agree = len(rows) - len(wrong) - len(missing)
        sentence = f"{source.name}: {agree} of {len(rows)} rows agree with {sources[other].name}"
        found.append("; ".join([sentence, *_some(wrong, "differ"), *_some(missing, "have no slices there")]))
    return found


def _some(names: list[str], what: str) -> list[str]:
    if not names:
        return []
    return [f"{len(names)} {what}: {', '.join(names[:_SHOWN])}{', ...' if len(names) > _SHOWN else ''}"]


def _calls(table: SliceTable, number: int, marks: TotalsMarks) -> dict[_Key, list[Rows]]:
    """Return the slices of an input by the name of their row and category.

    By name alone, there is one group for each category, and one of all slices but the copies of others.
    """
    strings, slices = table.trace.strings, table.trace.slices
    rows = np.flatnonzero(table.of_source(number))
    by_kind: dict[_Key, list[int]] = {}
    for row, name, category in zip(
        *(part.tolist() for part in (rows, slices.name[rows], slices.category[rows])), strict=True
    ):
        by_kind.setdefault((marks.name_of(strings[name]), strings[category]), []).append(row)
    found: dict[_Key, list[Rows]] = {}
    for (name, category), some in by_kind.items():
        for key in {(name, category), (name, "")}:
            found.setdefault(key, []).append(np.array(some, np.intp))
    for (_, category), groups in found.items():
        if not category and len(groups) > 1:
            groups.append(np.intersect1d(np.concatenate(groups), table.recorded))
    return found


def _named(row: _Row, calls: Mapping[_Key, list[Rows]]) -> list[Rows]:
    """Return the slices that a row may stand for, in groups; for a name that was cut, those of all names that fit."""
    if (row.name, row.category) in calls:
        return calls[row.name, row.category]
    start = row.name.removesuffix(_CUT)
    if start == row.name:
        return []
    fitting = (key for key in calls if key[0].startswith(start) and key[1] == row.category)
    return [some for key in fitting for some in calls[key]]


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

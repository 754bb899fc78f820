"""Compare the table of sums that a tool prints with the events of its run, if both are inputs."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from traceconv.answers.nesting import NO_PARENT
from traceconv.answers.tables import Rows, SliceTable
from traceconv.model.arg_values import ABSENT, arg_values
from traceconv.model.marks import TotalsMarks
from traceconv.model.ordering import like_next, stable_order

#: The relative tolerance: tools print four digits or more.
_CLOSE = 5e-4
#: The end of a name that was cut.
_CUT = "..."
_SHOWN = 3
_Key = tuple[str, str]
#: A pattern of the names that a table sums up in one row, and the name of that row; None without any.
_Joined = tuple[str, str] | None


class _Row(NamedTuple):
    """A row of a table: name and category, number of calls, and possible total times, ns."""

    name: str
    category: str
    calls: int
    totals: list[float]


class _Calls(NamedTuple):
    """The slices of an input, in groups by the name of their row and category, and these keys in order."""

    groups: dict[_Key, list[Rows]]
    keys: list[_Key]


def compared(table: SliceTable) -> list[str]:
    """Return a sentence for each input that is a table of sums: the number of rows that agree with the events.

    A row agrees if the number of calls is equal, and the total to four digits, either with all calls of its name, or
    with those that are not directly inside another one. Totals leave out durations that were not recorded. A name may
    be that of several kinds of slices, such as ranges on the host and their copies on a device, and a name that was cut
    may stand for several names: the row agrees if one of them does.
    """
    sources = table.trace.sources
    if not any(source.marks.totals for source in sources):
        return []
    notes = []
    known: dict[_Joined, list[_Calls]] = {}
    for number, source in enumerate(sources):
        marks = source.marks.totals
        if marks is None:
            continue
        rows = list(_printed(table, number, marks))
        if marks.joined not in known:
            known[marks.joined] = [_calls(table, one, marks) for one in range(len(sources))]
        slices_of = [[_named(row, calls) for row in rows] for calls in known[marks.joined]]
        other = max(range(len(sources)), key=lambda one: sum(map(bool, slices_of[one])))
        pairs = list(zip(rows, slices_of[other], strict=True))
        missing = [row.name for row, named in pairs if not named]
        if len(missing) == len(rows):
            continue
        wrong = [row.name for row, named in pairs if named and not any(_agrees(table, one, row) for one in named)]
        agree = len(rows) - len(wrong) - len(missing)
        sentence = f"{source.name}: {agree} of {len(rows)} rows agree with {sources[other].name}"
        notes.append("; ".join([sentence, *_some(wrong, "differ"), *_some(missing, "have no slices there")]))
    return notes


def _some(names: list[str], what: str) -> list[str]:
    if not names:
        return []
    return [f"{len(names)} {what}: {', '.join(names[:_SHOWN])}{', ...' if len(names) > _SHOWN else ''}"]


def _calls(table: SliceTable, number: int, marks: TotalsMarks) -> _Calls:
    """Return the slices of an input by the name of their row and category.

    By name alone, there is one group for each category, and one of all slices but the copies of others.
    """
    strings, slices, rows = table.trace.strings, table.trace.slices, table.rows_of(number)
    if not len(rows):
        return _Calls({}, [])
    names, categories = slices.name[rows], slices.category[rows]
    order = stable_order([names, categories], table.trace.forget)
    edges = np.flatnonzero(~like_next(order, names, categories)) + 1
    by_kind: dict[_Key, list[Rows]] = {}
    for some in np.split(rows[order], edges):
        key = marks.name_of(strings[slices.name[some[0]]]), strings[slices.category[some[0]]]
        by_kind.setdefault(key, []).append(some)
    rows_of: dict[_Key, list[Rows]] = {}
    for (name, category), parts in by_kind.items():
        for key in {(name, category), (name, "")}:
            rows_of.setdefault(key, []).append(np.concatenate(parts))
    recorded = np.zeros(len(slices.ts), bool)
    recorded[table.recorded] = True
    for (_, category), groups in rows_of.items():
        if not category and len(groups) > 1:
            every = np.concatenate(groups)
            groups.append(every[recorded[every]])
    return _Calls(rows_of, sorted(rows_of))


def _named(row: _Row, calls: _Calls) -> list[Rows]:
    """Return the slices that a row may stand for, in groups; for a name that was cut, those of all names that fit."""
    if (row.name, row.category) in calls.groups:
        return calls.groups[row.name, row.category]
    start = row.name.removesuffix(_CUT)
    if start == row.name:
        return []
    groups: list[Rows] = []
    for at in range(bisect_left(calls.keys, (start, "")), len(calls.keys)):
        name, category = calls.keys[at]
        if not name.startswith(start):
            break
        groups += calls.groups[name, category] if category == row.category else []
    return groups


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
    """Return whether all of the slices, or the outermost ones, agree with the calls and one of the totals.

    The total is that of the slices whose duration was recorded.
    """
    parent, slices = table.nesting.parent, table.trace.slices
    outermost = rows[(parent[rows] == NO_PARENT) | (slices.name[parent[rows]] != slices.name[rows])]
    counted = [some for some in (rows, outermost) if len(some) == printed.calls]
    sums = {int(slices.dur[some[table.timed[some]]].sum()) for some in counted}
    return any(abs(whole - total) <= _CLOSE * abs(total) for whole in sums for total in printed.totals)

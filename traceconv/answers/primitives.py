"""The section `primitives`: the implementations of library primitives and their speed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

import numpy as np

from traceconv.answers.operations import rounded
from traceconv.answers.section import Cell, Column, Section, Unit
from traceconv.answers.tables import SliceTable
from traceconv.io.shown import quantity
from traceconv.model.arg_values import ABSENT, arg_values
from traceconv.model.counted import CALLS
from traceconv.model.inputs_of import inputs_of
from traceconv.model.marks import PrimitiveMarks

_COLUMNS = (
    Column("kind", "kind", Unit.TEXT),
    Column("implementation", "implementation", Unit.TEXT),
    Column("count", "count", Unit.COUNT),
    Column("total_ns", "total", Unit.NS),
    Column("mean_ns", "mean", Unit.NS),
    Column("primitives_share", "of primitives", Unit.SHARE),
    Column("reference", "reference", Unit.TEXT),
    Column("reorder", "reorder", Unit.TEXT),
    Column("gflop_per_s", "GFLOP/s", Unit.RATE),
    Column("gb_per_s", "GB/s", Unit.RATE),
)
#: Duration in ns, operations, and moved bytes; None if not known.
_Call = tuple[int, float | None, float | None]


def primitives(table: SliceTable) -> Section:
    """Return a row for each kind and implementation of the primitives that formats declare, the most time first."""
    section = Section("primitives", _COLUMNS)
    trace = table.trace
    calls: dict[tuple[PrimitiveMarks, str, str | None], list[_Call]] = {}
    without_duration = 0
    for number, source in enumerate(trace.sources):
        if source.marks.primitives is not None:
            _collect(table, number, source.marks.primitives, calls)
            without_duration += _untimed(table, number, source.marks.primitives)
    if without_duration:
        section.notes.append(f"left out: {quantity(without_duration, CALLS)} without a duration in the input")
    if not calls:
        section.notes.append("no primitives found, or the inputs do not name their implementation")
        return section
    whole = sum(dur for works in calls.values() for dur, _, _ in works)
    rows: list[tuple[Cell, ...]] = []
    for (marks, kind, implementation), works in calls.items():
        total = sum(dur for dur, _, _ in works)
        known = implementation is not None
        rows.append(
            (
                kind,
                implementation,
                len(works),
                total,
                rounded(total, len(works)),
                total / whole if whole else None,
                _yes(re.search(marks.reference, implementation or "") is not None) if known else None,
                _yes(re.fullmatch(marks.reorders, kind) is not None),
                _rate([(dur, gflop) for dur, gflop, _ in works], 10**9),
                _rate([(dur, size) for dur, _, size in works], 1),
            )
        )
    section.rows = sorted(rows, key=lambda row: (-int(row[3] or 0), str(row[0]), str(row[1])))
    section.notes.append("of primitives: a share of the sum of all durations; calls of several threads may overlap")
    for formula in dict.fromkeys(marks.formula for marks, _, _ in calls):
        section.notes.append(f"GFLOP/s: {formula}; of calls with known shapes{_left_out(calls.values(), 1)}")
        section.notes.append(
            f"GB/s: source, weights and destination once each; of calls with known sizes{_left_out(calls.values(), 2)}"
        )
    section.notes += table.synthetic_notes(trace.slices.track)
    return section


def _collect(
    table: SliceTable,
    number: int,
    marks: PrimitiveMarks,
    calls: dict[tuple[PrimitiveMarks, str, str | None], list[_Call]],
) -> None:
    """Add the calls of one input to `calls`, by kind and implementation."""
    slices, strings = table.trace.slices, table.trace.strings
    is_call = table.of_source(number) & table.of_categories(marks.calls)
    rows = table.counted[(is_call & table.timed)[table.counted]]
    numbers, values = arg_values(
        table.trace.args, slices.args_at[rows], slices.args_len[rows], [marks.implementation, marks.gflop, marks.size]
    )
    names, durations = slices.name[rows].tolist(), slices.dur[rows].tolist()
    for name, dur, at in zip(names, durations, numbers.tolist(), strict=True):
        implementation, *work = values[at]
        key = marks, strings[name], None if implementation is ABSENT else str(implementation)
        gflop, size = (None if one is ABSENT else float(one) for one in work)
        calls.setdefault(key, []).append((dur, gflop, size))


def _untimed(table: SliceTable, number: int, marks: PrimitiveMarks) -> int:
    """Return the number of calls of an input without a recorded duration: instants, and slices."""
    trace = table.trace
    slices = np.count_nonzero(
        (table.of_source(number) & table.of_categories(marks.calls) & ~table.timed)[table.counted]
    )
    categories = {at for at, text in enumerate(trace.strings) if text in marks.calls}
    of_input = inputs_of(trace, "instants") == number
    return int(
        slices
        + np.count_nonzero(
            of_input & np.isin(trace.instants.category, list(categories)) & table.in_window(trace.instants.ts)
        )
    )


def _rate(works: list[tuple[int, float | None]], scale: int) -> float | None:
    """Return the work of calls per ns, times a scale; calls without known work or a time count in neither."""
    known = [(one, dur) for dur, one in works if one is not None and dur > 0]
    return math.fsum(one for one, _ in known) * scale / sum(dur for _, dur in known) if known else None


def _left_out(calls: Iterable[list[_Call]], which: int) -> str:
    """Return how many calls the speed of their row leaves out: the work is number 1 or 2 of a call."""
    known = [[call[which] is not None and call[0] > 0 for call in works] for works in calls]
    count = sum(works.count(False) for works in known if any(works))
    return f"; in rows with a speed, {quantity(count, CALLS)} left out" if count else ""


def _yes(value: bool) -> str:
    return "yes" if value else "no"

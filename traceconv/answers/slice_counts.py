"""Collect hardware counts of single slices: of layers, of kernels, and in rows of tables without times."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from traceconv.answers.tables import Rows, SliceTable
from traceconv.model.inputs_of import inputs_of
from traceconv.model.json_values import decode_json
from traceconv.model.marks import CountMarks
from traceconv.model.trace import Instants, Slices

NO_CALL = -1
#: The units of times that inputs count, in ns.
UNITS_NS = {"ns": 1, "msec": 1_000_000}


@dataclass
class Counts:
    """The counts of one event in one input.

    Attributes:
        slices: the rows of the slices that have a count.
        amounts: the counts of the slices, then those of the rows of tables.
        layers: the name of the layer of each row of tables.
        calls: the call of each of these rows; NO_CALL for a sum of several.
        unit: the unit of the amounts; "" for plain counts.
    """

    slices: list[int] = field(default_factory=list)
    layers: list[str] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    amounts: list[float] = field(default_factory=list)
    unit: str = ""

    def values(self) -> npt.NDArray[Any]:
        """Return the amounts, as integers if all are."""
        whole = all(float(amount).is_integer() for amount in self.amounts)
        return np.array(self.amounts, np.int64 if whole else np.float64)


class _Found(NamedTuple):
    """A count in the args of a row."""

    row: int
    name: str
    amount: float
    unit: str


def counts_of(table: SliceTable) -> tuple[dict[tuple[str, int], Counts], dict[int, set[str]]]:
    """Return the counts of slices and rows of tables, and the names of what was measured, but is no count.

    The counts are by event and number of the input, the names by that number.
    """
    trace = table.trace
    counts: dict[tuple[str, int], Counts] = {}
    others: dict[int, set[str]] = {}
    for number, source in enumerate(trace.sources):
        marks = source.marks.counts
        if marks is None:
            continue
        of_input = table.of_source(number)
        if source.join_category:  # the rows were moved into slices of another input
            of_input |= table.of_categories((source.join_category,))
        counted = (of_input & table.of_categories(marks.categories))[table.recorded]
        no_counts = others.setdefault(number, set())
        slices = [] if marks.layer else _counted(table, trace.slices, table.recorded[counted], marks, no_counts)
        for row, event, amount, unit in slices:
            one = counts.setdefault((event, number), Counts(unit=unit))
            one.slices.append(row)
            one.amounts.append(amount)
        categories = [at for at, text in enumerate(trace.strings) if text in marks.categories]
        instants = trace.instants
        rows = np.flatnonzero((inputs_of(trace, "instants") == number) & np.isin(instants.category, categories))
        for row, layer, amount, unit in _counted(table, instants, rows, marks, no_counts):
            name = trace.strings[instants.name[row]]
            event, layer = (name, layer) if marks.layer else (layer, name)
            one = counts.setdefault((event, number), Counts(unit=unit))
            one.layers.append(layer)
            one.calls.append(row if marks.rows_are_calls else NO_CALL)
            one.amounts.append(amount)
    return counts, others


def _counted(
    table: SliceTable, events: Slices | Instants, rows: Rows, marks: CountMarks, others: set[str]
) -> list[_Found]:
    """Return each count in the args of rows, by event (or layer, in tables of layers); times in ns.

    Negative counts mark values that the tool could not read. What is measured, but no count, is added to `others`.
    """
    is_count, is_other = re.compile(marks.names).fullmatch, re.compile(marks.others or "(?!)").fullmatch
    known: dict[str, bool] = {}
    counted: list[_Found] = []
    for row in rows[events.args_len[rows] > 0].tolist():
        args = decode_json(table.trace.args.view(int(events.args_at[row]), int(events.args_len[row])))
        layer = args.get(marks.layer)
        members = args.get(marks.inside) if marks.inside else args
        for name, value in members.items() if isinstance(members, dict) else ():
            if name not in known:
                known[name] = is_count(name) is not None
                if not known[name] and is_other(name) and _is_amount(value):
                    others.add(name)
            if known[name] and (not marks.layer or isinstance(layer, str)):
                amount, unit = _amount(value, marks)
                if _is_amount(amount):
                    counted.append(_Found(row, str(layer) if marks.layer else name, amount, unit))
    return counted


def _amount(value: Any, marks: CountMarks) -> tuple[Any, str]:
    """Return the amount and the unit of a count."""
    if not marks.value:
        return value, ""
    if not isinstance(value, dict):
        return None, ""
    amount: Any = value.get(marks.value)
    unit = str(value.get(marks.unit, ""))
    if unit in UNITS_NS and _is_amount(amount):
        return round(amount * UNITS_NS[unit]), "ns"
    return amount, unit


def _is_amount(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < 1 << 62 and math.isfinite(value)


def rows_of(counts: Sequence[Counts]) -> Rows:
    """Return the rows of all slices that have counts, sorted."""
    rows: Rows = np.unique(np.array([row for one in counts for row in one.slices], np.int64))
    return rows

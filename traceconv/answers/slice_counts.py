"""Collect hardware counts of single slices: of layers, of kernels, and in rows of tables without times."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from traceconv.answers.tables import Rows, SliceTable
from traceconv.model.inputs_of import inputs_of
from traceconv.model.json_values import decode_json
from traceconv.model.marks import CountMarks
from traceconv.model.trace import Instants, Slices

NO_CALL = -1


@dataclass
class Counts:
    """The counts of one event in one input.

    Attributes:
        slices: the rows of the slices that have a count.
        amounts: the counts of the slices, then those of the rows of tables.
        layers: the name of the layer of each row of tables.
        calls: the call of each of these rows; NO_CALL for a sum of several.
    """

    slices: list[int] = field(default_factory=list)
    layers: list[str] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    amounts: list[float] = field(default_factory=list)

    def values(self) -> npt.NDArray[Any]:
        """Return the amounts, as integers if all are."""
        whole = all(float(amount).is_integer() for amount in self.amounts)
        return np.array(self.amounts, np.int64 if whole else np.float64)


def counts_of(table: SliceTable) -> dict[tuple[str, int], Counts]:
    """Return the counts of slices and rows of tables, by event and number of the input."""
    trace = table.trace
    counts: dict[tuple[str, int], Counts] = {}
    for number, source in enumerate(trace.sources):
        marks = source.marks.counts
        if marks is None:
            continue
        of_input = table.of_source(number)
        if source.join_category:  # the rows were moved into slices of another input
            of_input |= table.of_categories((source.join_category,))
        counted = (of_input & table.of_categories(marks.categories))[table.recorded]
        slices = [] if marks.layer else _counted(table, trace.slices, table.recorded[counted], marks)
        for row, event, amount in slices:
            one = counts.setdefault((event, number), Counts())
            one.slices.append(row)
            one.amounts.append(amount)
        categories = [at for at, text in enumerate(trace.strings) if text in marks.categories]
        instants = trace.instants
        rows = np.flatnonzero((inputs_of(trace, "instants") == number) & np.isin(instants.category, categories))
        for row, layer, amount in _counted(table, instants, rows, marks):
            name = trace.strings[instants.name[row]]
            event, layer = (name, layer) if marks.layer else (layer, name)
            one = counts.setdefault((event, number), Counts())
            one.layers.append(layer)
            one.calls.append(row if marks.rows_are_calls else NO_CALL)
            one.amounts.append(amount)
    return counts


def _counted(
    table: SliceTable, events: Slices | Instants, rows: Rows, marks: CountMarks
) -> list[tuple[int, str, float]]:
    """Return row, event (or layer, in tables of layers) and amount of each count in the args of rows.

    Negative counts mark values that the tool could not read.
    """
    is_count = re.compile(marks.names).fullmatch
    known: dict[str, bool] = {}
    counted: list[tuple[int, str, float]] = []
    for row in rows[events.args_len[rows] > 0].tolist():
        args = decode_json(table.trace.args.view(int(events.args_at[row]), int(events.args_len[row])))
        layer = args.get(marks.layer)
        members = args.get(marks.inside) if marks.inside else args
        for name, value in members.items() if isinstance(members, dict) else ():
            if name not in known:
                known[name] = is_count(name) is not None
            if known[name] and (not marks.layer or isinstance(layer, str)) and _is_amount(value):
                counted.append((row, str(layer) if marks.layer else name, value))
    return counted


def _is_amount(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < 1 << 62 and math.isfinite(value)


def rows_of(counts: Sequence[Counts]) -> Rows:
    """Return the rows of all slices that have counts, sorted."""
    rows: Rows = np.unique(np.array([row for one in counts for row in one.slices], np.int64))
    return rows

"""The section `stacks`: the call tree of the samples of one layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from traceconv.answers.layers import Costs, called, columns_of, counted_samples, events_of, main_event
from traceconv.answers.section import Cell, Column, Section, Unit
from traceconv.errors import UsageError
from traceconv.io.shown import quantity
from traceconv.model.counted import SAMPLES
from traceconv.model.trace import I64, Frame

_COLUMNS = (
    Column("depth", "depth", Unit.COUNT, detail=True),
    Column("frame", "frame", Unit.TEXT, detail=True),
    Column("file", "file", Unit.TEXT, detail=True),
    Column("samples", "samples", Unit.COUNT),
    Column("self_samples", "self", Unit.COUNT),
    Column("share", "of the layer", Unit.SHARE),
)
_TREE = Column("tree", "tree", Unit.TEXT)
_NO_STACK = "(no call stack)"
_SHOWN_NAMES = 5


def stacks(costs: Costs, layer: str) -> Section:
    """Return a row for each frame, below its caller, of the samples while a layer ran; the most CPU first.

    Unknown functions of one file below one caller are one row.

    Args:
        costs: the layers.
        layer: the layer, by its text in the first column of `layers`.

    Raises:
        UsageError: there is no such layer.
    """
    table, sums, names = costs.table, costs.sums, costs.names
    groups = [at for at, texts in enumerate(names) if texts[0] == layer]
    if not groups:
        known = ", ".join(dict.fromkeys(texts[0] for texts in names[:_SHOWN_NAMES]))
        raise UsageError(f"--stacks: there is no layer {layer!r}", hint=f"layers are, among others: {known}")
    sampled, samples = costs.sampled, table.trace.samples
    taken = [column.name for column in (*_COLUMNS, _TREE)]
    events = events_of(sums, sampled, [], taken)
    mine = sampled.rows[sums.during(groups)[sampled.segment]]
    kinds, weights = samples.name[mine], samples.weight[mine]
    counted = np.isin(mine, counted_samples(sums, sampled, events).rows)
    amounts = [counted.astype(np.int64), *(np.where(kinds == one.number, weights, 0) for one in events.values())]
    tree = _Tree(table.trace.frames, samples.stack[mine], amounts)
    main = 1 + list(events).index(main_event(events)) if events else 0
    main = main if np.any(amounts[main]) else 0
    shown = [columns_of(name, event)[0] for name, event in events.items()] if len(events) > 1 else []
    section = Section("stacks", (*_COLUMNS, *shown, _TREE))
    if not len(mine):
        section.notes.append(f"no sample while {layer} ran" if len(samples.ts) else "no input has samples")
        return section
    everything = float(np.sum(amounts[main], dtype=np.float64))
    section.rows = tree.rows(main, everything, len(shown))
    ran = f"{quantity(int(np.count_nonzero(counted)), SAMPLES)} while {layer} ran, with all inside it"
    of_what = f", {list(events)[main - 1]}" if main and shown else ""
    section.notes.append(f"{ran}; of the layer: the share of them{of_what}; self: samples in the function itself")
    return section


class _Tree:
    """Call stacks as a tree, and what was sampled in each node with all that it called.

    Args:
        frames: of the trace.
        stack: the innermost frame of each sample, -1 for none.
        amounts: of each sample: how many samples it is (1), and how much of each event.
    """

    def __init__(self, frames: Sequence[Frame], stack: I64 | npt.NDArray[np.int32], amounts: list[I64]) -> None:
        numbers, at = np.unique(stack, return_inverse=True)
        known: dict[tuple[int, str, str], int] = {}
        of_frame = {-1: -1}
        for number in self._with_callers(frames, numbers.tolist()):
            frame = frames[number]
            key = of_frame[frame.parent], called(frame), frame.category
            of_frame[number] = known.setdefault(key, len(known))
        #: Of each node its caller, what it is called, and its file.
        self._nodes = list(known)
        node = np.array([of_frame[number] for number in numbers.tolist()], np.int64)[at.reshape(-1)]
        own = np.zeros((len(self._nodes) + 1, len(amounts)), object)
        for place, column in enumerate(amounts):
            np.add.at(own[:, place], node, column.astype(object))
        #: The amounts of each node itself. The last row is of samples without a call stack.
        self._own: list[list[Any]] = own.tolist()
        self._whole = [list(row) for row in self._own]
        self._callees: dict[int, list[int]] = {}
        for number in range(len(self._nodes) - 1, -1, -1):  # a caller has a smaller number than what it calls
            caller = self._nodes[number][0]
            self._callees.setdefault(caller, []).append(number)
            if caller >= 0:
                self._whole[caller] = [
                    one + more for one, more in zip(self._whole[caller], self._whole[number], strict=True)
                ]

    @staticmethod
    def _with_callers(frames: Sequence[Frame], numbers: Sequence[int]) -> list[int]:
        """Return frames and all their callers, each once, callers first."""
        callers: set[int] = set()
        for number in numbers:
            while number >= 0 and number not in callers:
                callers.add(number)
                number = frames[number].parent
        return sorted(callers)

    def rows(self, main: int, everything: float, events: int) -> list[tuple[Cell, ...]]:
        """Return the rows of the table, each below its caller; those with most of the main amount come first."""

        def row(depth: int, name: str, file: str, number: int) -> tuple[Cell, ...]:
            whole = self._whole[number]
            amounts = [whole[0], self._own[number][0], whole[main] / everything, *whole[1 : 1 + events]]
            return depth, name, file, *amounts, "  " * depth + name

        def in_order(caller: int) -> list[int]:
            return sorted(
                self._callees.get(caller, []), key=lambda one: (self._whole[one][main], self._whole[one][0], -one)
            )

        rows = []
        todo = [(0, number) for number in in_order(-1)]
        while todo:
            depth, number = todo.pop()
            rows.append(row(depth, *self._nodes[number][1:], number))
            todo += [(depth + 1, callee) for callee in in_order(number)]
        return [*rows, row(0, _NO_STACK, "", -1)] if self._own[-1][0] else rows

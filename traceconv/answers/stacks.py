"""The section `stacks`: the call tree of the samples of one layer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from traceconv.answers.layers import layers_of
from traceconv.answers.section import Cell, Column, Section, Unit
from traceconv.answers.slice_counts import counts_of
from traceconv.answers.tables import SliceTable
from traceconv.errors import UsageError

_COLUMNS = (
    Column("depth", "depth", Unit.COUNT, detail=True),
    Column("frame", "frame", Unit.TEXT, detail=True),
    Column("file", "file", Unit.TEXT, detail=True),
    Column("samples", "samples", Unit.COUNT),
    Column("self_samples", "self", Unit.COUNT),
    Column("share", "of the layer", Unit.SHARE),
    Column("tree", "tree", Unit.TEXT),
)
_NO_STACK = "(no call stack)"
_SHOWN_NAMES = 5


def stacks(table: SliceTable, layer: str, by: Sequence[str] = ("name",)) -> Section:
    """Return a row for each frame, below its caller, of the samples while a layer ran; most samples first.

    Args:
        table: the slices.
        layer: the layer, by its text in the first column of `layers`.
        by: the keys that layers are grouped by.

    Raises:
        UsageError: there is no such layer.
    """
    section = Section("stacks", _COLUMNS)
    sums, names = layers_of(table, by, counts_of(table))
    groups = [at for at, texts in enumerate(names) if texts[0] == layer]
    if not groups:
        known = ", ".join(dict.fromkeys(texts[0] for texts in names[:_SHOWN_NAMES]))
        raise UsageError(f"--stacks: there is no layer {layer!r}", hint=f"layers are, among others: {known}")
    sampled = sums.samples()
    mine = sampled.rows[sums.during(groups)[sampled.segment]]
    numbers, counts = np.unique(table.trace.samples.stack[mine], return_counts=True)
    own = dict(zip(numbers.tolist(), counts.tolist(), strict=True))
    without, frames = own.pop(-1, 0), table.trace.frames
    whole = dict(own)
    callees: dict[int, set[int]] = {}
    for number in own:
        while (caller := frames[number].parent) not in callees or number not in callees[caller]:
            callees.setdefault(caller, set()).add(number)
            if caller < 0:
                break
            number = caller
    # Callers have smaller numbers than the frames that they call.
    for number in sorted({one for found in callees.values() for one in found}, reverse=True):
        if frames[number].parent >= 0:
            whole[frames[number].parent] = whole.get(frames[number].parent, 0) + whole[number]
    rows: list[tuple[Cell, ...]] = []
    todo = [(0, number) for number in _by_samples(callees.get(-1, set()), whole)]
    while todo:
        depth, number = todo.pop()
        name = frames[number].name
        count = whole[number]
        place = depth, name, frames[number].category
        rows.append((*place, count, own.get(number, 0), count / len(mine), "  " * depth + name))
        todo += [(depth + 1, callee) for callee in _by_samples(callees.get(number, set()), whole)]
    if without:
        rows.append((0, _NO_STACK, "", without, without, without / len(mine), _NO_STACK))
    section.rows = rows
    section.notes.append(f"{len(mine)} samples while {layer} ran, with all inside it; self: the innermost function")
    return section


def _by_samples(numbers: set[int], whole: dict[int, int]) -> list[int]:
    """Return frames, sorted by their samples, ascending."""
    return sorted(numbers, key=lambda number: (whole[number], -number))

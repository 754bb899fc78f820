"""Compute parents, depths and self times of slices, as the trace processor does for a `.pftrace` of traceconv."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from traceconv import kernel
from traceconv.model.ordering import Order, chunks
from traceconv.model.trace import I32, I64, Slices

NO_PARENT = -1
_SMALL = 1 << 31


class Nesting(Struct, frozen=True):
    """The nesting of the slices of a laid-out trace; arrays with one value for each slice.

    Attributes:
        parent: the row of the slice around it on its track, NO_PARENT without one; of 4 bytes if that is enough.
        depth: the number of slices around it.
        self_ns: its duration minus the durations of the slices directly inside it, ns.
    """

    parent: Order
    depth: I32
    self_ns: I64


def nesting_of(slices: Slices) -> Nesting:
    """Return the nesting of slices that are sorted by track and start, longer first, and nested.

    A slice of duration 0 contains none, and a slice that starts at the end of another one is not inside it. Rows are
    nested in chunks, which takes little memory beside the result.
    """
    count = len(slices.ts)
    parent = np.full(count, NO_PARENT, np.int32 if count < _SMALL else np.int64)
    depth = np.zeros(count, np.int32)
    self_ns = np.array(slices.dur, np.int64)
    compiled = kernel.module("nesting")
    if compiled is not None:
        columns = map(np.ascontiguousarray, (slices.track, slices.ts, slices.dur))
        compiled.nesting(*columns, parent, depth, self_ns)
        return Nesting(parent, depth, self_ns)
    around = np.empty(0, np.int64)  # the slices around the first row of a chunk: with them the chunk is complete
    for chunk in chunks(count):
        rows = np.concatenate([around, np.arange(chunk.start, chunk.stop)])
        track, ts, dur = slices.track[rows].astype(np.int64), slices.ts[rows], slices.dur[rows]
        level, above = _levels(track, ts, dur)
        inner = np.flatnonzero(level[len(around) :]) + len(around)
        depth[chunk] = level[len(around) :]
        parent[rows[inner]] = rows[above[inner]]
        np.subtract.at(self_ns, rows[above[inner]], dur[inner])
        if chunk.stop < count:
            around = rows[(track == slices.track[chunk.stop]) & (ts + dur > slices.ts[chunk.stop])]
    return Nesting(parent, depth, self_ns)


def _levels(track: I64, ts: I64, dur: I64) -> tuple[I64, I64]:
    """Return depth and parent of each slice; the parent is undefined at depth 0."""
    count = len(ts)
    rows = np.arange(count)
    depth = rows - _ended_before(track, ts, dur)
    # Among the rows one level higher on the track, the last one before the row is its parent.
    lane = track * (int(np.max(depth)) + 2) + depth
    level = np.argsort(lane, kind="stable")
    keys = lane * count + rows
    parent: I64 = level[np.searchsorted(keys[level], keys - count) - 1]
    return depth, parent


def _ended_before(track: I64, ts: I64, dur: I64) -> I64:
    """Return, for each row, the number of earlier rows on other tracks, or that end by its start."""
    count = len(ts)
    order = np.lexsort((np.arange(2 * count) >= count, np.concatenate([ts + dur, ts]), np.concatenate([track, track])))
    ends_so_far = np.cumsum(order < count)
    ended = np.empty(count, np.int64)
    starts = order >= count
    ended[order[starts] - count] = ends_so_far[starts]
    # Slices of duration 0 with the same start that do not come before a row (itself included) also end at its start.
    opens = np.append(True, (np.diff(track) != 0) | (np.diff(ts) != 0))
    last = np.append(np.flatnonzero(opens)[1:], count)[np.cumsum(opens) - 1]
    empty_so_far = np.append(0, np.cumsum(dur == 0))
    result: I64 = ended - (empty_so_far[last] - empty_so_far[:-1])
    return result

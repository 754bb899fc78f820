"""Compute parents, depths and self times of slices, as the trace processor does for a `.pftrace` of traceconv."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceconv.model.trace import I32, I64, Slices

NO_PARENT = -1


@dataclass(frozen=True, slots=True)
class Nesting:
    """The nesting of the slices of a laid-out trace; arrays with one value for each slice.

    Attributes:
        parent: the row of the slice around it on its track, NO_PARENT without one.
        depth: the number of slices around it.
        self_ns: its duration minus the durations of the slices directly inside it, ns.
    """

    parent: I64
    depth: I32
    self_ns: I64


def nesting_of(slices: Slices) -> Nesting:
    """Return the nesting of slices that are sorted by track and start, longer first, and nested.

    A slice of duration 0 contains none, and a slice that starts at the end of another one is not inside it.
    """
    count = len(slices.ts)
    parent = np.full(count, NO_PARENT, np.int64)
    depth = np.zeros(count, np.int32)
    if not count:
        return Nesting(parent, depth, np.empty(0, np.int64))
    rows = np.arange(count)
    ended = _ended_before(slices)
    depth[:] = rows - ended
    # Among the rows one level higher on the track, the last one before the row is its parent.
    level = np.lexsort((rows, depth, slices.track))
    inner = np.flatnonzero(depth)
    scale = np.int64(int(np.max(depth)) + 2)
    keys = (slices.track * scale + depth) * np.int64(count) + rows
    wanted = keys[inner] - np.int64(count)
    parent[inner] = level[np.searchsorted(keys[level], wanted) - 1]
    inside = np.zeros(count, np.int64)
    np.add.at(inside, parent[inner], slices.dur[inner])
    return Nesting(parent, depth, slices.dur - inside)


def _ended_before(slices: Slices) -> I64:
    """Return, for each row, the number of earlier rows on other tracks, or that end by its start."""
    count = len(slices.ts)
    track = np.concatenate([slices.track, slices.track])
    times = np.concatenate([slices.ts + slices.dur, slices.ts])
    order = np.lexsort((np.arange(2 * count) >= count, times, track))
    ends_so_far = np.cumsum(order < count)
    ended = np.empty(count, np.int64)
    starts = order >= count
    ended[order[starts] - count] = ends_so_far[starts]
    # Slices of duration 0 with the same start that do not come before a row (itself included) also end at its start.
    opens = np.append(True, (np.diff(slices.track) != 0) | (np.diff(slices.ts) != 0))
    last = np.append(np.flatnonzero(opens)[1:], count)[np.cumsum(opens) - 1]
    empty_so_far = np.append(0, np.cumsum(slices.dur == 0))
    result: I64 = ended - (empty_so_far[last] - empty_so_far[:-1])
    return result

"""Sets of times as intervals, in exact integers.

A set is two int64 arrays of equal length, starts and ends in ns: half-open [start, end), sorted, disjoint, not empty.
`union` makes such a set from any intervals; the other functions take and return such sets.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from traceconv.model.trace import I64


class Intervals(NamedTuple):
    """A set of times: sorted, disjoint, non-empty intervals [start, end), ns."""

    starts: I64
    ends: I64

    @property
    def length(self) -> int:
        """Return the sum of the durations, ns."""
        return int(np.sum(self.ends - self.starts))


NOTHING = Intervals(np.empty(0, np.int64), np.empty(0, np.int64))


def union(starts: I64, ends: I64) -> Intervals:
    """Return the union of intervals, which may overlap and be in any order."""
    not_empty = ends > starts
    starts, ends = starts[not_empty], ends[not_empty]
    if not len(starts):
        return NOTHING
    order = np.argsort(starts, kind="stable")
    starts, reach = starts[order], np.maximum.accumulate(ends[order])
    opens = np.append(True, starts[1:] > reach[:-1])
    return Intervals(starts[opens], reach[np.append(opens[1:], True)])


def length_in_groups(group: I64, starts: I64, ends: I64) -> int:
    """Return the sum of the lengths of the unions of groups of intervals; `group` numbers them from 0, ascending."""
    not_empty = ends > starts
    group, starts, ends = group[not_empty], starts[not_empty], ends[not_empty]
    order = np.lexsort((starts, group))
    group, starts, ends = group[order], starts[order], ends[order]
    by_end = np.argsort(ends)
    rank = np.empty_like(by_end)
    rank[by_end] = np.arange(len(ends))
    # The furthest end so far in the group, by its rank: those of later groups are all larger.
    before = group * len(ends)
    reach = ends[by_end][np.maximum.accumulate(rank + before) - before]
    opens = np.append(True, (group[1:] != group[:-1]) | (starts[1:] > reach[:-1]))[: len(ends)]
    return int(np.sum(reach[np.append(opens[1:], True)[: len(ends)]]) - np.sum(starts[opens]))


def intersect(a: Intervals, b: Intervals) -> Intervals:
    """Return the intersection of two sets."""
    # Each interval of b overlaps a run of intervals of a: those that end behind its start and start before its end.
    first = np.searchsorted(a.ends, b.starts, "right")
    last = np.searchsorted(a.starts, b.ends, "left")
    counts = np.maximum(last - first, 0)
    which_b = np.repeat(np.arange(len(counts)), counts)
    which_a = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(first, counts)
    return Intervals(np.maximum(a.starts[which_a], b.starts[which_b]), np.minimum(a.ends[which_a], b.ends[which_b]))


def gaps(a: Intervals, start: int, end: int) -> Intervals:
    """Return the times of [start, end) outside of a set."""
    if end <= start:
        return NOTHING
    inside = intersect(a, Intervals(np.array([start]), np.array([end])))
    starts, ends = np.append(start, inside.ends), np.append(inside.starts, end)
    not_empty = ends > starts
    return Intervals(starts[not_empty], ends[not_empty])


def subtract(a: Intervals, b: Intervals) -> Intervals:
    """Return the times of `a` outside of `b`."""
    if not len(a.starts):
        return NOTHING
    return intersect(a, gaps(b, int(a.starts[0]), int(a.ends[-1])))


def shares(a: Intervals, start: int, end: int, parts: int) -> list[float]:
    """Return the share of each of the equal parts of [start, end), at least 1 ns each, that lies in a set."""
    parts = min(parts, end - start)
    edges = np.array([start + (end - start) * number // parts for number in range(parts + 1)], np.int64)
    before = np.append(0, np.cumsum(a.ends - a.starts))
    begun = np.searchsorted(a.starts, edges, "right")
    behind = np.maximum(np.append(0, a.ends)[begun] - edges, 0)  # of the last interval that has started
    shares: list[float] = (np.diff(before[begun] - np.where(begun > 0, behind, 0)) / np.diff(edges)).tolist()
    return shares

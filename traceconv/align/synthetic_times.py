"""Where slices go that have a duration and an order, but no time, once it is known what some of them are part of.

A matched slice lies inside its parent, an unmatched one between its neighbours. Nothing is stretched; what is too long
for its place is shortened, and says so. The order is kept and nothing overlaps. All times are int64 ns.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from traceconv.align.estimate import Array
from traceconv.align.messages import Text
from traceconv.model.trace import I32, I64


class Place(IntEnum):
    """Where a slice was laid."""

    INSIDE = 0
    BETWEEN = 1
    BEFORE = 2
    AFTER = 3


@dataclass(frozen=True, slots=True)
class Layout:
    """Where slices lie.

    Attributes:
        ts, dur: ns, in the order of the slices.
        place: a Place for each slice.
        parent: the row of the parent, -1 for none.
        shortened: which slices are shorter than they really were.
    """

    ts: I64
    dur: I64
    place: I32
    parent: I64
    shortened: Array


def lay_inside(dur: I64, pairs: tuple[Array, Array], parent_ts: I64, parent_dur: I64) -> Layout:
    """Lay the slices of one track inside and between what they were matched to.

    Slices of one parent lie side by side in the middle of it. If the next parent begins before its end, the place ends
    there. Parents that begin together count as one.
    Slices before the first matched one and after the last one lie end to end.

    Args:
        dur: how long each slice is, ns, in the order of the slices.
        pairs: rows of parents, not decreasing, and the rows of slices that they were matched to, ascending.
        parent_ts, parent_dur: the parents in order of their start, ns.

    Raises:
        ValueError: there is no pair, the rows are not in order, or the parents are not.
    """
    parents, rows = (np.asarray(side, np.int64) for side in pairs)
    starts = np.asarray(parent_ts, np.int64)[parents]
    if not len(rows) or (np.diff(rows) <= 0).any() or (np.diff(starts) < 0).any():
        raise ValueError("expected pairs in order of the slices, with parents in order of their start")
    segment = _segments(len(dur), rows, starts)
    bounds = np.concatenate(([0], np.flatnonzero(np.diff(segment)) + 1, [len(dur)]))
    kinds = segment[bounds[:-1]]
    before = np.concatenate((np.zeros(1, np.int64), np.cumsum(dur, dtype=np.int64)))
    total = before[bounds[1:]] - before[bounds[:-1]]
    first = np.flatnonzero(np.diff(starts, prepend=starts[0] - 1))
    ends = np.maximum.reduceat(starts + np.asarray(parent_dur, np.int64)[parents], first)
    low, high = _rooms(kinds, total, starts[first], ends)
    ts, short = _placed(before, bounds, low, high, total)
    part = np.repeat(np.arange(len(kinds)), np.diff(bounds))
    inside = segment % 2 == 1
    of_row = np.full(len(dur), -1, np.int64)
    of_row[inside] = parents[first][segment[inside] // 2]
    of_row[rows] = parents
    place = np.where(inside, Place.INSIDE, Place.BETWEEN).astype(np.int32)
    place[segment == 0] = Place.BEFORE
    place[segment == 2 * len(first)] = Place.AFTER
    return Layout(ts[:, 0], ts[:, 1] - ts[:, 0], place, of_row, short[part] & (ts[:, 1] - ts[:, 0] < dur))


def _segments(count: int, rows: I64, starts: I64) -> I64:
    """For each slice the part of the track it is in: 2 g + 1 inside parent g, 2 g before it, 2 g + 2 after it."""
    group = np.cumsum(np.diff(starts, prepend=starts[0] - 1) != 0) - 1
    passed = np.searchsorted(rows, np.arange(count), "right")
    latest = np.where(passed > 0, group[np.maximum(passed - 1, 0)], -1)
    coming = np.searchsorted(rows, np.arange(count), "left")
    following = np.where(coming < len(rows), group[np.minimum(coming, len(rows) - 1)], -2)
    segments: I64 = 2 * latest + np.where(latest == following, 1, 2)
    return segments


def _rooms(kinds: I64, total: I64, starts: I64, ends: I64) -> tuple[I64, I64]:
    """Where the slices of each part of the track begin, and before when they end, ns."""
    low, high = np.empty(len(kinds), np.int64), np.empty(len(kinds), np.int64)
    inside = np.flatnonzero(kinds % 2 == 1)
    limit = np.minimum(ends, np.append(starts[1:], ends[-1]))
    low[inside] = starts + np.maximum(0, limit - starts - total[inside]) // 2
    high[inside] = np.minimum(limit, low[inside] + total[inside])
    for part in np.flatnonzero(kinds % 2 == 0).tolist():
        if kinds[part] == 0:
            high[part] = low[part + 1]
            low[part] = high[part] - total[part]
        elif part + 1 == len(kinds):
            low[part] = high[part - 1]
            high[part] = low[part] + total[part]
        else:
            begins, room = high[part - 1], low[part + 1] - high[part - 1]
            low[part] = begins + max(0, room - total[part]) // 2
            high[part] = low[part] + min(room, total[part])
    return low, high


def _placed(before: I64, bounds: Array, low: I64, high: I64, total: I64) -> tuple[I64, Array]:
    """The begin and the end of each slice, and which parts of the track are shortened."""
    count = np.diff(bounds)
    base = np.repeat(before[bounds[:-1]], count)
    times = np.stack((before[:-1] - base, before[1:] - base), axis=1) + np.repeat(low, count)[:, None]
    short = total > high - low
    for part in np.flatnonzero(short).tolist():
        rows = slice(int(bounds[part]), int(bounds[part + 1]))
        room, whole, begin = int(high[part] - low[part]), int(total[part]), int(low[part])
        edges = [
            begin + (int(edge) - int(before[rows.start])) * room // whole for edge in before[rows.start : rows.stop + 1]
        ]
        times[rows, 0], times[rows, 1] = edges[:-1], edges[1:]
    return times, short


_WORDS = {Place.BETWEEN: Text.PLACED_BETWEEN, Place.BEFORE: Text.PLACED_BEFORE, Place.AFTER: Text.PLACED_AFTER}


def placed_args(laid: Layout, dur: I64, parent_names: list[str]) -> list[dict[str, object]]:
    """What each slice says about its place: {"placed": ...}, and its real duration if it was shortened.

    Args:
        laid: where the slices lie.
        dur: how long they really are, ns.
        parent_names: the name of each parent, by row.
    """
    inside = [str(Text.PLACED_INSIDE(parent=name)) for name in parent_names]
    elsewhere = {place: str(text()) for place, text in _WORDS.items()}
    said: list[dict[str, object]] = []
    columns = laid.place.tolist(), laid.parent.tolist(), laid.shortened.tolist(), dur.tolist()
    for place, parent, short, real in zip(*columns, strict=True):
        text = inside[parent] if place == Place.INSIDE else elsewhere[Place(place)]
        cut = str(Text.PLACED_SHORTENED(placed=text)) if short else ""
        said.append({"placed": cut, "real_dur_ns": real} if short else {"placed": text})
    return said

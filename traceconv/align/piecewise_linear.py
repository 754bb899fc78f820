"""Relate two clocks by several lines: one of them was slewed, or set, while both recorded.

The start of the two logs fits along a line, and the rest does not. From there on the events are followed block by
block, each along the line of the block before: a clock that runs at another rate strays slowly. If a block does not fit
at all, a clock was set, and the rest is aligned anew. Between such steps the lines are found by dynamic programming
over medians of blocks, as few as the noise allows (with a penalty after Schwarz for each further one). Each line needs
its own evidence, enough pairs within feasible bounds; without it there is no estimate.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from traceconv.align.estimate import Events
from traceconv.align.geometry import F64, Chain, Line
from traceconv.align.matching import NEAR_NS, Matcher, Pairs, containment, sure_region
from traceconv.align.robust import robust_line, spread_of
from traceconv.model.clocks import SLEWED_DRIFT

# Each with its unit. All but those that say "not tuned" were chosen on seeds below 1000 of tests/benchmarks/alignment,
# pairs whose clocks were slewed or set while both recorded, as docs/alignment.md says of all thresholds.

_US = 1e3

#: The fewest pairs for a line.
LEAST_PAIRS = 20
#: The most events of a block, unless a line needs more.
_BLOCK_EVENTS = 100
#: The longest block, ns: no clock strays far in it. Not tuned: 200 µs at 1000 ppm.
_BLOCK_NS = 2e8
#: Pairs are first searched within this distance of the line of the block before, ns.
_STRAYED_NS = 150 * _US
#: The least share of a block, and of a part without steps, that must match.
_LEAST_SHARE = 0.5
#: The least spread of starts about the medians of their classes, ns: times are printed in whole microseconds.
_LEAST_SPREAD_NS = 2 * _US
#: The most medians along a part. Not tuned: limits time, which is quadratic in it.
_MOST_MEDIANS = 240
#: The fewest pairs of a median, if there are as many. Not tuned: some pairs are wrong.
_PAIRS_OF_MEDIAN = 8
#: The fewest medians of a line. Not tuned: any two are on a line.
_LEAST_MEDIANS = 3
#: The most consecutive lines without a step. Not tuned: limits time.
_MOST_LINES = 8
#: The least noise of a median, ns.
_LEAST_NOISE_NS = 0.3 * _US
#: Lines that miss each other by no more than this where they meet are one bent line, ns.
CONTINUOUS_NS = 10 * _US
#: Lines that miss each other by less are not taken for a jump, ns; and a jump that is this many times greater than the
#: scatter of pairs is seen at each of them.
_LEAST_JUMP_NS, _TIMES_SCATTER = 1 * _US, 6.0
#: The tightest share of the distances between starts, and between ends, that the bounds ignore.
_TIGHT = 0.1
#: The penalty for a further line, in logarithms of the number of medians. Not tuned: twice that of Schwarz for three
#: parameters.
_PENALTY = 6


def followed(a: Events, b: Events, line: Line) -> tuple[Chain, int]:
    """Return the relation from the start of b on, and the row of b from which on it no longer fits."""
    matcher = Matcher(a, b)
    first = int(np.searchsorted(b.start, float(line.map(a.start[:1])[0]) - _STRAYED_NS))
    lines = [line]
    while first < len(b) and float(b.start[first]) <= last_time(a, lines[-1]):
        block = next_block(b, first)
        fitted = _along(a, block, matcher, lines[-1])
        if fitted is None:
            break
        knot = max(float(fitted.back(block.start[:1])[0]), lines[-1].begin)
        lines.append(replace(fitted, begin=knot))
        first += len(block)
    return Chain(tuple(lines)), first


def last_time(a: Events, line: Line) -> float:
    """Return the last time at which events of b may lie in events of a, ns of b."""
    return float(line.map(np.array([a.span[1]]))[0]) + _STRAYED_NS


def next_block(b: Events, first: int) -> Events:
    """Return the next events: enough for a line, over a time in which no clock strays far."""
    until = int(np.searchsorted(b.start, b.start[first] + _BLOCK_NS, "right"))
    return b.take(slice(first, max(min(until, first + _BLOCK_EVENTS), first + LEAST_PAIRS)))


def _along(a: Events, block: Events, matcher: Matcher, line: Line) -> Line | None:
    """Return the line of a block near to that of the block before it; None if it does not fit."""
    within = matcher.part(block)
    for tolerance in (_STRAYED_NS, NEAR_NS):
        pairs = Pairs.of(a, block, within.holding(line, tolerance), line)
        if len(pairs) < max(_LEAST_SHARE * len(block), _LEAST_MEDIANS):
            return None
        x = a.start[pairs.a]
        wanted = pairs.begin + line.drift * (x - line.x0)
        _, drift, _ = robust_line(x, wanted, _LEAST_SPREAD_NS, SLEWED_DRIFT, SLEWED_DRIFT)
        line = Line(line.offset + line.drift * (float(x.mean()) - line.x0), drift, float(x.mean()))
        line = replace(line, offset=line.offset + _middle(a, block, pairs, line))
    return line


def _middle(a: Events, b: Events, pairs: Pairs, line: Line) -> float:
    """Return by how much the middle of the bounds lies later, ns: latencies are one-sided."""
    early = b.start[pairs.b] - line.map(a.start[pairs.a])
    late = line.map(a.end[pairs.a]) - b.end[pairs.b]
    return float(np.quantile(early, _TIGHT) - np.quantile(late, _TIGHT)) / 2


def step_between(a: Events, b: Events, rows: slice, old: Line, new: Line) -> tuple[tuple[float, float], float]:
    """Return the times of clock x between which one line ends and the next one starts, and the step of y there, ns.

    The clock may have been set at any time from the end of the last event on the old line to the start of the first one
    on the new line.
    """
    part = b.take(rows)
    matcher = Matcher(a, b).part(part)
    fits_old, fits_new = (matcher.holding(line, NEAR_NS) >= 0 for line in (old, new))
    before = np.concatenate(([0], np.cumsum(fits_old.astype(np.int64) - fits_new)))
    split = int(np.argmax(before))
    old_rows, new_rows = np.flatnonzero(fits_old[:split]), split + np.flatnonzero(fits_new[split:])
    last = float(old.back(part.end[old_rows[-1] if len(old_rows) else 0]))
    after = new.back(part.start[new_rows])
    first = float(min(after[after >= last], default=last))  # an event that fits both may lie before the step
    knot = (last + first) / 2
    return (last, first), float(new.map(np.array([knot]))[0] - old.map(np.array([knot]))[0])


# -- as few lines as it takes ----------------------------------------------------------------------------------------


def lines_of(a: Events, b: Events, rough: Chain) -> tuple[Line, ...]:
    """Return the lines of a part without steps, each with its region; None if one of them has too little evidence."""
    if not len(b):
        return ()
    pairs = Pairs.of(a, b, Matcher(a, b).holding(rough, NEAR_NS), rough)
    if len(pairs) < LEAST_PAIRS or len(pairs) < _LEAST_SHARE * len(b):
        return ()
    x = a.start[pairs.a]
    order = np.argsort(x, kind="stable")
    pairs, x = pairs.where(order), x[order]
    apart = rough.map(x) - x + pairs.begin
    borders = _borders(x, apart)
    lines = [_line(x[low:high], apart[low:high]) for low, high in pairwise(borders)]
    knots = [_knot(x, at, one, other) for at, (one, other) in zip(borders[1:-1], pairwise(lines), strict=True)]
    doubts: list[tuple[float, float] | None] = [None]
    for at, (one, other) in enumerate(pairwise(lines)):
        doubt = _jump(x, apart, (borders[at], borders[at + 2]), (knots[at], borders[at + 1]), one, other)
        knots[at] = knots[at] if doubt is None else sum(doubt) / 2
        doubts.append(doubt)
    rows = np.searchsorted(np.array(knots), x, "right")
    begins = [-np.inf, *knots]
    parts = [pairs.where(rows == number) for number in range(len(lines))]
    lines_of_parts = [_within(a, b, *one) for one in zip(parts, lines, begins, strict=True)]
    lines_of_parts = [line and replace(line, doubt=doubt) for line, doubt in zip(lines_of_parts, doubts, strict=True)]
    sure = tuple(line for line in lines_of_parts if line is not None)
    return sure if len(sure) == len(lines_of_parts) else ()


def _within(a: Events, b: Events, pairs: Pairs, line: Line, begin: float) -> Line | None:
    """Return the line in the middle of the region of its pairs; None if they are too few or allow no line."""
    if len(pairs) < LEAST_PAIRS:
        return None
    region, _ = sure_region(containment(a, b, pairs), line, 2 * SLEWED_DRIFT)
    if region is None:
        return None
    x = a.start[pairs.a]
    middle = region.middle((float(x[0]), max(float(x[-1]), float(x[0]) + 1)))
    return Line(*middle, line.x0, begin, region, len(pairs))


def _line(x: F64, apart: F64) -> Line:
    offset, drift, _ = robust_line(x, apart, _LEAST_SPREAD_NS, 2 * SLEWED_DRIFT, SLEWED_DRIFT)
    return Line(offset, drift, float(x.mean()))


def _knot(x: F64, at: int, one: Line, other: Line) -> float:
    """Return the time at which two lines meet near the first pair of the second one.

    If they do not meet there, return the time of that pair.
    """
    around = x[max(at - _BLOCK_EVENTS, 0)], x[min(at + _BLOCK_EVENTS, len(x) - 1)]
    if one.drift != other.drift:
        # one.offset + one.drift * (t - one.x0) = other.offset + other.drift * (t - other.x0)
        moved = other.offset - other.drift * other.x0 - one.offset + one.drift * one.x0
        meet = moved / (one.drift - other.drift)
        if around[0] <= meet <= around[1]:
            return float(meet)
    return float(x[at])


def _jump(
    x: F64, apart: F64, rows: tuple[int, int], knot: tuple[float, int], one: Line, other: Line
) -> tuple[float, float] | None:
    """Return the times between which a clock was set, if two lines do not meet; None if they do.

    Args:
        x, apart: the times of the pairs, and how far the clocks are apart there, ns.
        rows: the first row of one line, and that after the last row of the other one.
        knot: the time where the lines meet or the second one starts, and the first row of the second one.
        one, other: the lines.
    """
    at = np.array([knot[0]])
    jump = abs(float(other.map(at)[0] - one.map(at)[0]))
    if jump <= _LEAST_JUMP_NS:
        return None
    low, high = max(knot[1] - _BLOCK_EVENTS, rows[0]), min(knot[1] + _BLOCK_EVENTS, rows[1])
    near = x[low:high]
    off = [np.abs(line.map(near) - near - apart[low:high]) for line in (one, other)]
    after = low + int(np.argmax(np.concatenate(([0], np.cumsum(np.where(off[0] < off[1], 1, -1))))))
    # Pairs scatter. If they do so by less than the clock was set, each shows on which side of that it is.
    aside = 0 if jump > _TIMES_SCATTER * spread_of(np.minimum(*off)) else _PAIRS_OF_MEDIAN
    first, last = max(after - 1 - aside, rows[0]), min(after + aside, rows[1] - 1)
    return float(x[first]), float(x[last])


def _borders(x: F64, apart: F64) -> list[int]:
    """Return the first row of each line, and the number of rows.

    The rows are found by exact dynamic programming over blocks.
    """
    size = max(len(x) // _MOST_MEDIANS, min(_PAIRS_OF_MEDIAN, len(x) // _LEAST_MEDIANS))
    starts = np.arange(0, len(x) - size + 1, size)
    blocks = np.split(np.arange(len(x)), starts[1:])
    t = np.array([float(np.median(x[rows])) for rows in blocks])
    y = np.array([float(np.median(apart[rows])) for rows in blocks])
    noise = max(_noise(t, y), _LEAST_NOISE_NS)
    t, y = (t - t[0]) / max(float(t[-1] - t[0]), 1.0), (y - y.mean()) / noise
    cost = _costs(t, y)
    count = len(t)
    penalty = _PENALTY * np.log(max(count, 2))
    best = np.full((_MOST_LINES + 1, count + 1), np.inf)
    best[0, 0] = 0.0
    came = np.zeros((_MOST_LINES + 1, count + 1), np.int64)
    for lines in range(1, _MOST_LINES + 1):
        total = best[lines - 1][:, None] + cost
        came[lines], best[lines] = np.argmin(total, axis=0), np.min(total, axis=0)
    lines = int(np.argmin(best[:, count] + penalty * np.arange(_MOST_LINES + 1)))
    borders = [count]
    for number in range(lines, 0, -1):
        borders.append(int(came[number, borders[-1]]))
    return [int(starts[border]) if border < count else len(x) for border in reversed(borders)]


def _noise(t: F64, y: F64) -> float:
    """Return the standard deviation of the medians about a smooth curve.

    It is taken from second differences, which are 0 on a line.
    """
    if len(t) < 4:
        return 0.0
    share = (t[1:-1] - t[:-2]) / np.maximum(t[2:] - t[:-2], 1.0)
    bend = y[1:-1] - (y[:-2] + share * (y[2:] - y[:-2]))
    return spread_of(bend) / float(np.sqrt(1.5))


def _costs(t: F64, y: F64) -> F64:
    """Return the sum of squares about a line, by first and last block but one; infinite for too few blocks."""
    sums = [np.concatenate(([0.0], np.cumsum(values))) for values in (np.ones(len(t)), t, y, t * t, t * y, y * y)]
    n, st, sy, stt, sty, syy = (total[None, :] - total[:, None] for total in sums)
    with np.errstate(divide="ignore", invalid="ignore"):
        vt, vty, vy = stt - st * st / n, sty - st * sy / n, syy - sy * sy / n
        cost = vy - np.where(vt > 0, vty * vty / vt, 0.0)
    return np.where(n >= min(_LEAST_MEDIANS, len(t)), np.maximum(cost, 0.0), np.inf)

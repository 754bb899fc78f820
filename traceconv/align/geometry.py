"""The set of clock relations that constraints allow.

Times of a clock x map to y = x + o + d * (x - x0), with the offset o (ns, at x0) and the drift d (a ratio, 1e-6 is 1
ppm). Each constraint is a half plane in (o, d): "the mapped x is at least y" is o + d * (x - x0) >= y - x. Together
they leave a convex polygon. At each x it allows an interval of y, which is wider outside of the evidence.

The method is that of Duda et al. (1987), two hulls between two clouds of points, here by clipping a box. Only the few
dozen constraints on the hulls matter, so that no library for linear programmes is needed.

All coordinates are differences to a first time, small enough for doubles (2**53 ns are 104 days).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from traceconv.model.clocks import DRIFT_UNIT, ClockMap, Step, Verdict

F64 = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
_FAR = 1e16
_LEAST_DRIFT = 1e-12  # a polygon needs an area; over 1000 s this makes 1 ns


class Region(Struct, frozen=True):
    """A convex set of (offset, drift) at x0.

    Attributes:
        x0: the time of clock x at which the offsets hold, ns.
        offsets: ns, one per vertex, counterclockwise.
        drifts: ratios, one per vertex.
    """

    x0: float
    offsets: F64
    drifts: F64

    def bounds(self, x: F64 | float) -> tuple[F64, F64]:
        """Return the least and greatest y - x that the region allows at times x, ns."""
        at = np.atleast_1d(np.asarray(x, np.float64)) - self.x0
        values = self.offsets[:, None] + self.drifts[:, None] * at[None, :]
        return values.min(axis=0), values.max(axis=0)

    def middle(self, span: tuple[float, float]) -> tuple[float, float]:
        """Return the line (offset at x0, drift) through the middles of the intervals at both ends of a span."""
        low, high = self.bounds(np.array(span))
        first, last = (low + high) / 2
        drift = float((last - first) / (span[1] - span[0])) if span[1] > span[0] else 0.0
        return float(first - drift * (span[0] - self.x0)), drift

    def offsets_at(self, drift: float) -> tuple[float, float] | None:
        """Return the least and greatest offset at x0 for a drift; None if the region has no line of that drift."""
        rest, step = drift - self.drifts, np.roll(self.drifts, -1) - self.drifts
        share = np.divide(rest, step, out=np.zeros(len(rest)), where=step != 0)
        crosses = (share >= 0) & (share <= 1) & ((step != 0) | (rest == 0))
        offsets = (self.offsets + share * (np.roll(self.offsets, -1) - self.offsets))[crosses]
        return (float(np.min(offsets)), float(np.max(offsets))) if len(offsets) else None

    def width(self, x: float) -> float:
        """Return the distance of the bounds at x, ns."""
        low, high = self.bounds(x)
        return float(high[0] - low[0])

    def widened(self, by: float) -> Region:
        """Return the region with offsets that are less or more by up to some ns."""
        if not by:
            return self
        points = np.column_stack((np.concatenate((self.offsets - by, self.offsets + by)), np.tile(self.drifts, 2)))
        return Region(self.x0, *convex_hull(points).T)

    def clipped(self, offset: float, drift: float, limit: float) -> Region | None:
        """Return the part of the region where offset * o + drift * d <= limit; None if it is empty."""
        beyond = offset * self.offsets + drift * self.drifts - limit
        if (beyond <= 0).all():
            return self
        corners = np.column_stack((self.offsets, self.drifts))
        kept = []
        for i in range(len(corners)):
            j = (i + 1) % len(corners)
            if beyond[i] <= 0:
                kept.append(corners[i])
            if beyond[i] < 0 < beyond[j] or beyond[j] < 0 < beyond[i]:
                kept.append(corners[i] + beyond[i] / (beyond[i] - beyond[j]) * (corners[j] - corners[i]))
        return Region(self.x0, *np.array(kept).T) if kept else None

    def at(self, x0: float) -> Region:
        """Return the same set with offsets at another time."""
        return Region(x0, self.offsets + self.drifts * (x0 - self.x0), self.drifts)

    def intersection(self, other: Region) -> Region | None:
        """Return the intersection with another region; None if it is empty."""
        moved = other.at(self.x0)
        area = float(np.sum(moved.offsets * np.roll(moved.drifts, -1) - np.roll(moved.offsets, -1) * moved.drifts))
        order = slice(None) if area >= 0 else slice(None, None, -1)
        offsets, drifts = moved.offsets[order], moved.drifts[order]
        region: Region | None = self
        steps = np.roll(offsets, -1) - offsets, np.roll(drifts, -1) - drifts
        for offset, drift, step_o, step_d in zip(offsets, drifts, *steps, strict=True):
            if (step_o or step_d) and region is not None:  # the inside lies to the left of each edge
                region = region.clipped(step_d, -step_o, step_d * offset - step_o * drift)
        return region


class Line(Struct, frozen=True):
    """A relation of two clocks: y = x + offset + drift * (x - x0), ns.

    Attributes:
        begin: the time of clock x from which it holds, if it is one of several, ns; minus infinity for the first.
        region: all lines that the evidence allows; None if that is not known.
        matches: the number of pairs that it uses.
        doubt: if the relation jumps, the times of clock x between which it began to hold: a time between them may be on
            this line or on the one before. None if the lines meet.
    """

    offset: float
    drift: float
    x0: float
    begin: float = -np.inf
    region: Region | None = None
    matches: int = 0
    doubt: tuple[float, float] | None = None

    def map(self, x: F64) -> F64:
        """Return times of clock x on clock y."""
        return x + self.offset + self.drift * (x - self.x0)

    def back(self, y: F64) -> F64:
        """Return times of clock y on clock x."""
        return self.x0 + (y - self.offset - self.x0) / (1 + self.drift)

    def shifted(self, by: float) -> Line:
        """Return the line with an offset that is greater by some ns."""
        return replace(self, offset=self.offset + by)

    def in_doubt(self, x: F64) -> Flags:
        """Return which times of clock x may be on this line or on the one before it."""
        first, last = self.doubt or (np.inf, -np.inf)
        return np.asarray((x > first) & (x < last))


class Chain(Struct, frozen=True):
    """A relation of two clocks by one or more lines that hold one after the other; mostly one."""

    lines: tuple[Line, ...] = (Line(0.0, 0.0, 0.0),)

    @property
    def begins(self) -> list[float]:
        """The times of clock x from which the second and later lines hold."""
        return [line.begin for line in self.lines[1:]]

    @property
    def bounded(self) -> bool:
        """Whether the evidence bounds the relation."""
        return all(line.region is not None for line in self.lines)

    def map(self, x: F64) -> F64:
        """Return times of clock x on clock y."""
        mapped = np.empty(np.shape(x))
        for line, holds in zip(self.lines, _parts(x, self.begins), strict=True):
            mapped[holds] = line.map(x[holds])
        return mapped

    def back(self, y: F64, *, in_order: bool = False) -> F64:
        """Return times of clock y on clock x, each by the line that holds before it.

        Args:
            in_order: whether no result may lie after the start of the next line. An event in a jump may be from before
                it: to find its match, its own line counts.
        """
        mapped = np.empty(np.shape(y))
        parts = _parts(y, [float(line.map(np.array(line.begin))) for line in self.lines[1:]])
        for line, end, holds in zip(self.lines, [*self.begins, np.inf], parts, strict=True):
            mapped[holds] = np.minimum(line.back(y[holds]), end if in_order else np.inf)
        return mapped

    def bounds(self, x: F64 | float) -> tuple[F64, F64]:
        """Return the interval of y - x at times x, ns; infinite without a region."""
        at = np.atleast_1d(np.asarray(x, np.float64))
        low, high = np.full(at.shape, -np.inf), np.full(at.shape, np.inf)
        for line, holds in zip(self.lines, _parts(at, self.begins), strict=True):
            if line.region is not None:
                low[holds], high[holds] = line.region.bounds(at[holds])
        for before, line in pairwise(self.lines):
            between = line.in_doubt(at)
            for region in (before.region, line.region):
                if region is not None and between.any():
                    least, most = region.bounds(at[between])
                    low[between], high[between] = np.minimum(low[between], least), np.maximum(high[between], most)
        return low, high


def _parts(times: F64, begins: Sequence[float]) -> Iterator[Flags]:
    """Return a mask of the times that each line holds for."""
    number = np.searchsorted(np.array(begins), times, "right")
    return (number == which for which in range(len(begins) + 1))


def box(x0: float, low: float, high: float, max_drift: float) -> Region:
    """Return the region of offsets between two values, with drifts up to a limit on either side."""
    most = max(max_drift, _LEAST_DRIFT)
    return Region(x0, np.array([low, high, high, low], np.float64), np.array([-most, -most, most, most], np.float64))


def convex_hull(points: F64) -> F64:
    """Return the corners of the convex set around points (x, y), counterclockwise."""
    ordered = np.unique(points, axis=0).tolist()
    if len(ordered) < 3:
        return np.array(ordered)
    chains = []
    for chain in (ordered, ordered[::-1]):
        corners: list[tuple[float, float]] = []
        for point in chain:
            while len(corners) > 1 and not _turns_left(corners[-2], corners[-1], point):
                corners.pop()
            corners.append(point)
        chains.append(corners[:-1])
    return np.array([*chains[0], *chains[1]])


def everything(x0: float, max_drift: float) -> Region:
    """Return the region of any offset, with drifts up to a limit."""
    return box(x0, -_FAR, _FAR, max_drift)


class LinearConstraints(Struct, frozen=True):
    """Bounds on y at times x: at_least has y - x >= value, at_most has y - x <= value; x and value are equally long."""

    lower_x: F64
    lower: F64
    upper_x: F64
    upper: F64

    def __len__(self) -> int:
        return len(self.lower) + len(self.upper)

    def trimmed(self, drift: float, x0: float, share: float, share_high: float | None = None) -> LinearConstraints:
        """Return the constraints without the tightest at a drift, some of which come from wrong pairs.

        A share of the lower ones is left out, and of the upper ones the same or another one.
        """
        share_high = share if share_high is None else share_high
        low, high = self.slack(0.0, drift, x0)
        keep_low = np.argsort(-low)[: len(low) - math.ceil(share * len(low))]
        keep_high = np.argsort(-high)[: len(high) - math.ceil(share_high * len(high))]
        return LinearConstraints(
            self.lower_x[keep_low], self.lower[keep_low], self.upper_x[keep_high], self.upper[keep_high]
        )

    def slack(self, offset: float, drift: float, x0: float) -> tuple[F64, F64]:
        """Return the distance of a line from each lower and each upper bound, ns; negative where it breaks one."""
        low = offset + drift * (self.lower_x - x0) - self.lower
        high = self.upper - (offset + drift * (self.upper_x - x0))
        return low, high


def feasible(constraints: LinearConstraints, start: Region) -> Region | None:
    """Return the part of a region that all constraints allow; None if there is none."""
    region: Region | None = start
    for x, value in _hull(constraints.lower_x - start.x0, constraints.lower):
        region = region.clipped(-1.0, -x, -value) if region is not None else None
    for x, value in _hull(constraints.upper_x - start.x0, -constraints.upper):
        region = region.clipped(1.0, x, -value) if region is not None else None
    return region


def _hull(x: F64, y: F64) -> Iterable[tuple[float, float]]:
    """Return the points on the upper hull: those that a line above all points can touch."""
    order = np.lexsort((-y, x))
    x, y = _without_dents(x[order], y[order])
    hull: list[tuple[float, float]] = []
    for point in zip(x.tolist(), y.tolist(), strict=True):
        if hull and hull[-1][0] == point[0]:
            continue  # a higher one at the same x came first
        while len(hull) > 1 and _turns_left(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    return hull


def _without_dents(x: F64, y: F64) -> tuple[F64, F64]:
    """Return the points without most of those below a line between two others, fast; x ascends."""
    while len(x) > 100:
        step_x, step_y = np.diff(x), np.diff(y)
        keep = np.ones(len(x), bool)
        keep[1:-1] = step_y[:-1] * step_x[1:] > step_y[1:] * step_x[:-1]
        if keep.sum() > 0.9 * len(x):
            break
        x, y = x[keep], y[keep]
    return x, y


def _turns_left(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]) >= 0


def line_through(
    readings: Sequence[tuple[int, int, int]],
    span: tuple[int, int],
    max_drift: float,
    step: Step,
    verdict: Verdict = Verdict.OK,
) -> ClockMap | None:
    """Return the middle of all lines through several readings of two clocks, as a map; None if there is no such line.

    Args:
        readings: a time on each clock of one instant, and how far the two can be apart, ns.
        span: the times on the first clock for which the bound must hold.
        max_drift: the greatest drift, as a ratio.
        step, verdict: the source of the relation and its verdict, for the map.
    """
    x0, y0, _ = readings[0]
    x = np.array([first - x0 for first, _, _ in readings], np.float64)
    apart = np.array([(second - y0) - (first - x0) for first, second, _ in readings], np.float64)
    within = np.array([bound for _, _, bound in readings], np.float64) + 0.5
    start = box(0.0, -within[0], within[0], max_drift)
    region = feasible(LinearConstraints(x, apart - within, x, apart + within), start)
    if region is None:
        return None
    first, last = float(np.min(x)), float(np.max(x))
    offset, drift = region.middle((first, last))
    if np.min(region.drifts) <= 0 <= np.max(region.drifts) and np.ptp(region.drifts) >= max_drift:
        # The readings tell nothing of a drift: what their middle makes of that would be noise.
        offset, drift = float(sum(bound[0] for bound in region.bounds((first + last) / 2))) / 2, 0.0
    ends = np.array([min(span[0] - x0, first), max(span[1] - x0, last)], np.float64)
    low, high = region.bounds(ends)
    there = offset + drift * ends
    bound = int(np.ceil(max(np.max(high - there), np.max(there - low))))
    return ClockMap(y0 - x0 + round(offset), bound, (step,), verdict, round(drift / DRIFT_UNIT), x0)


# -- Lines, margins and correlations that tolerate some wrong values -------------------------------------------------

Array = npt.NDArray[Any]
#: For `hidden_step`: the fewest and the most pairs on either side, the sigmas of a step beyond chance (simulated: none
#: is seen in 200 pairs without one), and the standard error of a median of one value, in standard deviations.
_LEAST_OF_STEP, _MOST_OF_STEP, _SIGMAS_OF_STEP, _ERROR_OF_MEDIAN = 20, 200, 6.0, 1.2533
_TUKEY = 4.685  # Beyond this many spreads a value has no weight: Tukey's constant for an efficiency of 95 %.
_TO_SIGMA = 1.4826  # The standard deviation of a normal distribution for each median deviation.
_ENOUGH_NS = 10.0  # The iteration ends when the line moves by less than this, ns.
#: The least log-likelihood ratio per sigma of a margin, nats: five sigma are 20 nats, a ratio of 5e8.
_NATS_OF_A_SIGMA = 4.0


def median(values: F64) -> float:
    """Return the median, faster than numpy for hundreds of values."""
    high = len(values) // 2
    low = (len(values) - 1) // 2
    ordered = np.partition(values, (low, high))
    return float((ordered[low] + ordered[high]) / 2) if low != high else float(ordered[high])


def quantile(values: F64, share: float) -> float:
    """Return a quantile as numpy does by default, ten times as fast."""
    at = (len(values) - 1) * share
    low = int(at)
    high, part = min(low + 1, len(values) - 1), at - low
    ordered = np.partition(values, (low, high))
    step = ordered[high] - ordered[low]
    return float(ordered[high] - step * (1 - part) if part >= 0.5 else ordered[low] + step * part)


def spread_of(deviations: F64) -> float:
    """Return the standard deviation of values about 0, estimated from their median size; 0 without values."""
    return _TO_SIGMA * median(np.abs(deviations)) if len(deviations) else 0.0


def robust_line(x: F64, y: F64, least_scale: float, max_drift: float, prior_drift: float) -> tuple[float, float, float]:
    """Return a line y = a + b * (x - mean(x)) by iterated reweighting (Tukey), with a ridge on the slope.

    These are a, b and the standard deviation of the residuals, by times and differences of two clocks, ns.

    Args:
        least_scale: the least plausible standard deviation of a residual, ns.
        max_drift: the greatest slope on either side.
        prior_drift: the prior standard deviation of the slope; it matters for a short span.
    """
    middle = float(x.mean())
    centred = x - middle
    longest = float(np.max(np.abs(centred)))
    squared, product = centred * centred, centred * y
    a, b, scale = median(y), 0.0, least_scale
    for _ in range(20):
        residual = y - a - b * centred
        size = np.abs(residual)
        scale = max(_TO_SIGMA * median(size), least_scale)
        share = size / (_TUKEY * scale)
        root = np.maximum(1 - share * share, 0.0)
        weight = root * root
        total = float(weight.sum())
        if total < 3:
            break
        sx, sy = float(weight @ centred), float(weight @ y)
        sxx, sxy = float(weight @ squared) + (scale / prior_drift) ** 2, float(weight @ product)
        determinant = total * sxx - sx * sx
        before = a, b
        b = min(max((total * sxy - sx * sy) / determinant, -max_drift), max_drift)
        a = (sy - b * sx) / total
        if abs(a - before[0]) + abs(b - before[1]) * longest < _ENOUGH_NS:
            break
    return a, b, scale


def hidden_step(x: F64, early: F64, late: F64) -> float:
    """Return the greatest step along the trace that the residuals about a line show, ns; 0 if they show none.

    A clock that was set moves starts and ends in one direction. Latencies that change move only one of them, or both
    apart.

    Args:
        x: the times of the pairs.
        early: by how much the start of each inner event is later than usual, ns.
        late: by how much its end is, ns.
    """
    order = np.argsort(x, kind="stable")
    columns = [values[order] for values in (early, late)]
    scatter = [max(spread_of(values - median(values)), 1.0) for values in columns] if len(x) else []
    greatest = 0.0
    for at in range(_LEAST_OF_STEP, len(x) - _LEAST_OF_STEP + 1, _LEAST_OF_STEP):
        near = slice(max(at - _MOST_OF_STEP, 0), at), slice(at, at + _MOST_OF_STEP)
        counts = [min(at, _MOST_OF_STEP), min(len(x) - at, _MOST_OF_STEP)]
        steps = [median(values[near[1]]) - median(values[near[0]]) for values in columns]
        sure = [
            abs(step) > _SIGMAS_OF_STEP * _ERROR_OF_MEDIAN * spread * math.sqrt(1 / counts[0] + 1 / counts[1])
            for step, spread in zip(steps, scatter, strict=True)
        ]
        if all(sure) and steps[0] * steps[1] > 0:
            greatest = max(greatest, min(map(abs, steps)))
    return greatest


def margin_of(better: F64, blocks: int, spread_of_one: float) -> float:
    """Return by how many standard deviations one explanation beats another one.

    The standard deviation is that of sums over blocks, since neighbours are similar. Two explanations that are equal
    except for rounding differ by nearly the same amount everywhere, with a standard deviation near 0. So it is at least
    that of events each of which may be wrong by `spread_of_one`, and each sigma must be worth some nats.

    Args:
        better: the log-likelihood ratio of each event, in order of time, nats.
        blocks: the number of blocks.
        spread_of_one: the least standard deviation of the ratio of one event, nats.
    """
    total = float(better.sum())
    sums = np.add.reduceat(better, np.arange(blocks) * len(better) // blocks) if len(better) >= blocks else better
    spread = max(math.sqrt(len(sums)) * float(sums.std(ddof=1)), math.sqrt(len(better)) * spread_of_one)
    return min(total / spread, total / _NATS_OF_A_SIGMA)


def null_margin(best: float, random: Sequence[float], events: int, spread_of_one: float) -> float:
    """Return by how many standard deviations the score of some events, nats, beats those of random offsets.

    The floors are those of `margin_of`.
    """
    better = best - float(np.mean(random))
    spread = max(float(np.std(random)), math.sqrt(events) * spread_of_one)
    return min(better / spread, better / _NATS_OF_A_SIGMA)


def since_last(kinds: tuple[Array, ...], *columns: F64) -> list[F64]:
    """Return by how much each value differs from the one before of its kind, a combination of some columns.

    All runs of a program do the same work. Only the changes of its durations are peculiar to one run.
    """
    order = np.lexsort(kinds)
    again = np.all([kind[order][1:] == kind[order][:-1] for kind in kinds], axis=0)
    return [np.diff(values[order])[again] for values in columns]


def vary_together(x: F64, y: F64) -> tuple[float, int]:
    """Return the rank correlation, and the number of values that count: equal ones of a coarse clock do not."""
    return rank_correlation(x, y), min(_varying(x), _varying(y))


def _varying(values: F64) -> int:
    """Return the number of values that differ from the most frequent one."""
    counts = np.unique(values, return_counts=True)[1]
    return len(values) - (int(np.max(counts)) if len(values) else 0)


def rank_correlation(x: F64, y: F64) -> float:
    """Return the rank correlation (Spearman's) of values of any unit; 0 if all of one side are equal."""
    if not len(x) or np.ptp(x) == 0 or np.ptp(y) == 0:
        return 0.0
    return float(np.corrcoef(_ranks(x), _ranks(y))[0, 1])


def _ranks(values: F64) -> F64:
    """Return the rank of each value; equal ones share the mean of theirs."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    shared: F64 = (np.cumsum(count) - (count - 1) / 2)[place]
    return shared

"""Lines, margins and correlations that tolerate some wrong values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from traceconv.align.geometry import F64

Array = npt.NDArray[Any]
#: For `hidden_step`: the fewest and the most pairs on either side, the sigmas of a step beyond chance (simulated: none
#: is seen in 200 pairs without one), and the standard error of a median of one value, in standard deviations.
_LEAST_OF_STEP, _MOST_OF_STEP, _SIGMAS_OF_STEP, _ERROR_OF_MEDIAN = 20, 200, 6.0, 1.2533
#: Beyond this many spreads a value has no weight: Tukey's constant for an efficiency of 95 %.
_TUKEY = 4.685
#: The standard deviation of a normal distribution for each median deviation.
_TO_SIGMA = 1.4826
#: The iteration ends when the line moves by less than this, ns.
_ENOUGH_NS = 10.0
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

    Args:
        x: ns.
        y: differences of two clocks, ns.
        least_scale: the least plausible standard deviation of a residual, ns.
        max_drift: the greatest slope on either side.
        prior_drift: the prior standard deviation of the slope; it matters for a short span.

    Returns:
        a, b and the standard deviation of the residuals.
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
            abs(step) > _SIGMAS_OF_STEP * _ERROR_OF_MEDIAN * one * math.sqrt(1 / counts[0] + 1 / counts[1])
            for step, one in zip(steps, scatter, strict=True)
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


def null_margin(best: float, others: Sequence[float], events: int, spread_of_one: float) -> float:
    """Return by how many standard deviations a score beats those of random offsets; floors as in `margin_of`.

    Args:
        best: the score, nats.
        others: the scores of random offsets, nats.
        events: the number of events in a score.
        spread_of_one: the least standard deviation of the share of one event, nats.
    """
    better = best - float(np.mean(others))
    spread = max(float(np.std(others)), math.sqrt(events) * spread_of_one)
    return min(better / spread, better / _NATS_OF_A_SIGMA)


def since_last(kinds: tuple[Array, ...], *columns: F64) -> list[F64]:
    """Return by how much each value differs from the one before of its kind.

    All runs of a program do the same work. Only the changes of its durations are peculiar to one run.

    Args:
        kinds: columns; a kind is a combination of their values.
        columns: the values.
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

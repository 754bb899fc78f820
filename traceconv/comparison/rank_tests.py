"""Compare two groups of runs by ranks: tests, intervals, many tests at once, and how many runs find a change.

The test is that of Mann and Whitney, the interval that of Hodges and Lehmann, the adjustment for many tests that of
Benjamini and Hochberg. The value of a run is one sample; calls inside a run are not, since they share what differs
between runs.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

#: The share of false findings that is accepted, of one test and, by `adjusted`, of all findings of a table.
LEVEL = 0.05
#: With so many runs on both sides together, the test is exact.
MOST_EXACT = 50
#: The share of true changes that a stated power finds.
POWER = 0.95
#: How many comparisons a simulation draws, the largest change that it tries, in standard deviations, and its steps.
_DRAWS, _MOST_SPREADS, _STEP = 1000, 20.0, 0.02
#: The most runs a side that `runs_to_find` proposes.
_MOST_RUNS = 100
_NORMAL = NormalDist()
_F64 = npt.NDArray[np.float64]


class Shift(NamedTuple):
    """How many times as long one group takes as the other one, with its interval of 95 %.

    Attributes:
        ratio: the estimate of Hodges and Lehmann: the median of the ratios of all pairs.
        low, high: the interval that the test does not reject; None with too few runs.
    """

    ratio: float
    low: float | None
    high: float | None


@lru_cache(maxsize=256)
def _ways(ranks: tuple[int, ...], count: int) -> npt.NDArray[np.int64]:
    """Return how many choices of `count` of some ranks have a sum of at most 0, 1, and so on (Mann and Whitney, 1947).

    Args:
        ranks: twice the ranks of all values, in ascending order; equal values share the mean of theirs.
        count: the number of values in a group.
    """
    ways = np.zeros((count + 1, sum(ranks[len(ranks) - count :]) + 1), np.int64)
    ways[0, 0] = 1
    for rank in ranks:
        ways[1:, rank:] += ways[:-1, :-rank]
    return np.cumsum(ways[count])


def _ways_to(u: float, ranks: tuple[int, ...], count: int) -> int:
    """Return how many choices have a U of at most `u`; the arguments are those of `_ways`."""
    ways, least = _ways(ranks, count), count * (count + 1)
    return 0 if u < 0 else int(ways[min(least + math.floor(2 * u), len(ways) - 1)])


def _normal_tail(before: int, after: int, ties: Sequence[int] = ()) -> Callable[[float], float]:
    """Return the probability of U at most so large by the normal distribution, with continuity correction."""
    count = before + after
    lost = sum(tie**3 - tie for tie in ties) / (count * (count - 1))
    spread = math.sqrt(max(before * after / 12 * (count + 1 - lost), 0))
    middle = before * after / 2
    return lambda u: _NORMAL.cdf((u + 0.5 - middle) / spread) if spread else 1.0


def _tail(before: int, after: int) -> Callable[[float], float]:
    """Return the probability of U at most so large without a difference and equal values: exact if there are few."""
    count = before + after
    if count > MOST_EXACT:
        return _normal_tail(before, after)
    ranks = tuple(range(2, 2 * count + 1, 2))
    return lambda u: _ways_to(u, ranks, before) / math.comb(count, before)


def u_test(before: Sequence[float], after: Sequence[float]) -> float:
    """Return the two-sided p of the test by Mann and Whitney of two non-empty groups; 1 if all values are equal.

    It is the share of the ways to divide the values into such groups that are as far from the middle, or further.
    """
    first, second = np.array(before, float), np.array(after, float)
    values = np.sort(np.concatenate([first, second]))
    low, high = (np.searchsorted(values, values, side) for side in ("left", "right"))
    ranks = tuple((low + high + 1).tolist())
    signs = np.sign(second[None, :] - first[:, None])
    below = float(np.sum(signs < 0) + np.sum(signs == 0) / 2)  # U of the group before
    pairs = len(first) * len(second)
    seen = min(below, pairs - below)
    if len(values) > MOST_EXACT:
        _, ties = np.unique(values, return_counts=True)
        return min(1.0, 2 * _normal_tail(len(first), len(second), ties.tolist())(seen))
    ways = math.comb(len(values), len(first))
    nearer = _ways_to(pairs - seen - 0.5, ranks, len(first)) - _ways_to(seen, ranks, len(first))
    return min(1.0, (ways - nearer) / ways)


def shift(before: Sequence[float], after: Sequence[float]) -> Shift | None:
    """Return the ratio of two non-empty groups of positive values with the interval that belongs to `u_test`.

    None if a value is not positive. If all values are equal, the interval is 1.
    """
    first, second = np.array(before, float), np.array(after, float)
    if np.any(first <= 0) or np.any(second <= 0):
        return None
    ratios = np.sort((second[None, :] / first[:, None]).reshape(-1))
    if ratios[0] == ratios[-1] == 1:
        return Shift(1.0, 1.0, 1.0)
    tail = _tail(len(first), len(second))
    rejected = 0
    while rejected < len(ratios) // 2 and 2 * tail(rejected) <= LEVEL:
        rejected += 1
    ratio = math.exp(float(np.median(np.log(ratios))))
    if not rejected:
        return Shift(ratio, None, None)
    return Shift(ratio, float(ratios[rejected - 1]), float(ratios[len(ratios) - rejected]))


def adjusted(values: Sequence[float]) -> list[float]:
    """Return each p adjusted for the number of tests, by the method of Benjamini and Hochberg (1995)."""
    p = np.array(values, float)
    order = np.argsort(p, kind="stable")
    scaled = p[order] * len(p) / np.arange(1, len(p) + 1)
    lowest = np.minimum.accumulate(scaled[::-1])[::-1]
    result = np.empty(len(p))
    result[order] = np.minimum(lowest, 1)
    return [float(value) for value in result]


def found_change(before: int, after: int, spread: float, tests: int, least: float = 0.0) -> float | None:
    """Return the smallest relative change that POWER of comparisons find, if it is the only one of so many tests.

    Simulated, with normal noise of the logarithms and always the same random numbers.

    Args:
        before, after: the runs of each side.
        spread: the standard deviation between runs, relative.
        tests: how many rows are tested.
        least: the smallest relative change that counts: what the runs show has to be above it.

    Returns:
        The change; None if no change can be found.
    """
    floor = math.log1p(least) / spread if spread else 0.0
    low, high = floor, floor + _MOST_SPREADS
    if _power(before, after, high, tests, floor) < POWER:
        return None
    while high - low > _STEP:
        middle = (low + high) / 2
        low, high = (middle, high) if _power(before, after, middle, tests, floor) < POWER else (low, middle)
    return math.expm1(high * spread) if spread else least


def runs_to_find(change: float, spread: float, tests: int, least: float = 0.0) -> int | None:
    """Return how many runs a side find a relative change, as `found_change` states it; None beyond _MOST_RUNS."""
    size, floor = (math.log1p(each) / spread if spread else 0.0 for each in (change, least))
    size = size if spread else _MOST_SPREADS
    runs = range(2, _MOST_RUNS + 1)
    at = bisect_left(runs, True, key=lambda count: _power(count, count, size, tests, floor) >= POWER)
    return runs[at] if at < len(runs) else None


def _power(before: int, after: int, size: float, tests: int, floor: float) -> float:
    """Return how often a change of `size` is found, one of so many tests, and seen to be above `floor`.

    Both are in standard deviations between runs.
    """
    tail = _tail(before, after)
    level = LEVEL / max(tests, 1) / 2
    most = bisect_left(range(before * after // 2 + 1), True, key=lambda u: tail(u) > level) - 1
    if most < 0:
        return 0.0
    random = np.random.default_rng(0)
    first, second = random.normal(size=(_DRAWS, 1, before)), random.normal(size, size=(_DRAWS, after, 1))
    below = np.count_nonzero(second < first, axis=(1, 2))
    seen = np.mean(second, axis=(1, 2)) - np.mean(first, axis=(1, 2))
    return float(np.mean((np.minimum(below, before * after - below) <= most) & (seen > floor)))

"""Find where a series of values changed: hierarchical division by the energy statistic (E-divisive).

The method is that of Matteson and James, "A nonparametric approach for multiple change point analysis of multivariate
data" (2014), with their exponent 1: it divides where the two sides differ the most in distribution, and a permutation
test says whether they differ more than by chance. The later side may end before the series does, so that a level that
comes back is found. The values of a series are one run each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from traceconv.comparison.rank_tests import LEVEL, adjusted

#: The fewest values of a side: fewer may be runs astray.
LEAST = 3
#: How many orders are drawn at most, and until so many divide as well.
_DRAWS, _ENOUGH = 9_999, 10
#: How many distances are looked at together: 512 KB.
_TOGETHER = 1 << 16
_F64 = npt.NDArray[np.float64]


class Division(NamedTuple):
    """Where a series is divided: the number of the first value of the later side, and the p of the test."""

    at: int
    p: float


def change_points(series: Sequence[Sequence[float]]) -> list[list[Division]]:
    """Return where each of several series changed, in order.

    The p of the first divisions of all series are adjusted together after Benjamini and Hochberg, whose limit is that
    of the further ones, too: if no series has a change, one is found anywhere in 5 % of cases.
    """
    found = [_division(np.array(values, float)) for values in series]
    first = [division for division in found if division is not None]
    accepted = sum(p <= LEVEL for p in adjusted([division.p for division in first]))
    limit = LEVEL * accepted / max(len(first), 1)
    return [
        _divided(np.array(values, float), division, limit) if division is not None and division.p <= limit else []
        for values, division in zip(series, found, strict=True)
    ]


def can_show(count: int, series: int) -> bool:
    """Return whether a change of one of several series alone, which has two levels, can be found in so many values.

    With the change in the middle, the order of the values and the reverse are the only ones that divide as well.
    """
    least = max(2 / math.comb(count, count // 2), 1 / (1 + _DRAWS))
    return count >= 2 * LEAST and least <= LEVEL / series


def _divided(values: _F64, division: Division, limit: float) -> list[Division]:
    """Return a division of a series, and those of its sides whose p is at most the limit, in order."""
    sides = (0, values[: division.at]), (division.at, values[division.at :])
    divided: list[list[Division]] = []
    for start, side in sides:
        inner = _division(side)
        found = _divided(side, inner, limit) if inner is not None and inner.p <= limit else []
        divided.append([Division(start + each.at, each.p) for each in found])
    return [*divided[0], division, *divided[1]]


def _division(values: _F64) -> Division | None:
    """Return the division between the most different sides; None if the series is too short, or all are equal."""
    count = len(values)
    if count < 2 * LEAST or np.all(values == values[0]):
        return None
    distances = np.abs(values[:, None] - values[None, :])
    differences = _differences(distances)
    best = np.max(differences)
    random, drawn, as_good = np.random.default_rng(0), 0, 0
    while drawn < _DRAWS and as_good < _ENOUGH:
        together = min(max(1, _TOGETHER // count**2), _DRAWS - drawn)
        orders = np.array([random.permutation(count) for _ in range(together)])
        found = np.max(_differences(distances[orders[:, :, None], orders[:, None, :]]), axis=(1, 2)) >= best
        good = np.flatnonzero(found)[: _ENOUGH - as_good]
        as_good += len(good)
        drawn += int(good[-1]) + 1 if as_good == _ENOUGH else together
    at = int(np.argmax(np.max(differences, axis=1)))
    return Division(at, (1 + as_good) / (1 + drawn))


def _differences(distances: _F64) -> _F64:
    """Return by how much the first values and those that follow them differ: their energy statistic.

    Args:
        distances: ... x n x n, between the values in their order; in several orders at once.

    Returns:
        ... x n + 1 x n + 1: for each number of first values, and each end of those that follow; 0 where either are too
        few.
    """
    *orders, count, _ = distances.shape
    sums = np.zeros((*orders, count + 1, count + 1))
    np.cumsum(np.cumsum(distances, axis=-2), axis=-1, out=sums[..., 1:, 1:])
    of_first = np.diagonal(sums, axis1=-2, axis2=-1)
    first, end = np.arange(count + 1)[:, None], np.arange(count + 1)[None, :]
    later = end - first
    between = sums - of_first[..., :, None]
    of_later = of_first[..., None, :] - 2 * sums + of_first[..., :, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        energy = 2 * between / (first * later) - (
            of_first[..., :, None] / (first * (first - 1)) + of_later / (later * (later - 1))
        )
        found = np.where((first >= LEAST) & (later >= LEAST), first * later / (first + later) * energy, 0.0)
    return np.asarray(found, np.float64)

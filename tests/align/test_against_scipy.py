"""The mathematics of alignment against SciPy, which the package itself does not need."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from traceconv.align.geometry import LinearConstraints, box, convex_hull, feasible, rank_correlation, robust_line

optimize = pytest.importorskip("scipy.optimize")
spatial = pytest.importorskip("scipy.spatial")
stats = pytest.importorskip("scipy.stats")

SEEDS = range(20)
#: The constants of Tukey's weights and of a deviation from a median, as any book has them.
TUKEY, TO_SIGMA = 4.685, 1.4826


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("digits", [0, 6])
def test_the_rank_correlation_is_that_of_spearman(seed: int, digits: int) -> None:
    """Also with many equal values."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=50).round(digits)
    y = (x * rng.uniform(-1, 1) + rng.normal(size=50)).round(digits)
    assert rank_correlation(x, y) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_convex_hull_has_the_same_corners(seed: int) -> None:
    points = np.random.default_rng(seed).normal(size=(60, 2)).round(1 + seed % 3)
    wanted = spatial.ConvexHull(points)
    found = convex_hull(points)
    corners = {tuple(corner) for corner in points[wanted.vertices].tolist()}
    assert corners <= {tuple(corner) for corner in found.tolist()}
    assert spatial.ConvexHull(found).volume == pytest.approx(wanted.volume)
    x, y = found.T
    assert np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y) / 2 == pytest.approx(wanted.volume)  # counterclockwise


@pytest.mark.parametrize("seed", SEEDS)
def test_what_constraints_leave_is_that_of_linear_programmes(seed: int) -> None:
    """The least and the greatest difference of two clocks at some times."""
    rng = np.random.default_rng(seed)
    count, offset, drift = 40, rng.uniform(-1e5, 1e5), rng.uniform(-5e-5, 5e-5)
    x = rng.uniform(0, 1e9, (2, count))
    true = offset + drift * x
    constraints = LinearConstraints(
        x[0], true[0] - rng.exponential(2e4, count), x[1], true[1] + rng.exponential(2e4, count)
    )
    region = feasible(constraints, box(0.0, -1e6, 1e6, 1e-4))
    assert region is not None
    rows = np.concatenate((np.stack((-np.ones(count), -x[0] / 1e9), 1), np.stack((np.ones(count), x[1] / 1e9), 1)))
    limits = np.concatenate((-constraints.lower, constraints.upper))
    for at in (-5e8, 0.0, 4e8, 1.7e9):
        low, high = region.bounds(at)
        for sign, found in ((1, low[0]), (-1, high[0])):
            aim = sign * np.array([1.0, at / 1e9])
            wanted = optimize.linprog(aim, A_ub=rows, b_ub=limits, bounds=[(-1e6, 1e6), (-1e5, 1e5)], method="highs")
            assert found == pytest.approx(sign * wanted.fun, abs=0.01)


def test_constraints_that_contradict_each_other_leave_nothing() -> None:
    constraints = LinearConstraints(np.array([0.0, 1e6]), np.array([10.0, 10.0]), np.array([5e5]), np.array([-100.0]))
    assert feasible(constraints, box(0.0, -1e6, 1e6, 1e-4)) is None
    rows, limits = [[-1, 0.0], [-1, -1.0], [1, 0.5]], [-10.0, -10.0, -100.0]
    assert not optimize.linprog([1, 0], A_ub=rows, b_ub=limits, bounds=[(-1e6, 1e6), (-100, 100)]).success


@pytest.mark.parametrize("seed", SEEDS)
def test_no_line_near_the_robust_one_has_a_smaller_loss(seed: int) -> None:
    """A fifth of the values is wrong by far, which least squares do not survive."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(0, 1e9, 200))
    wrong = rng.random(200) < 0.2
    y = 5000 + 2e-5 * x + rng.normal(0, 300, 200) + np.where(wrong, rng.uniform(-1e6, 1e6, 200), 0)
    prior = 1e-4
    a, b, scale = robust_line(x, y, 1.0, 1e-3, prior)
    centred = x - x.mean()

    def loss(line: Any) -> float:
        share = np.minimum(np.abs(y - line[0] - line[1] / 1e9 * centred) / (TUKEY * scale), 1)
        ridge = (line[1] / 1e9 / prior) ** 2 / 2
        return float((TUKEY**2 / 6 * (1 - (1 - share**2) ** 3)).sum() + ridge)

    best = optimize.minimize(loss, (a, b * 1e9), method="Nelder-Mead", options={"xatol": 0.1, "fatol": 1e-9})
    assert best.x[0] == pytest.approx(a, abs=20)
    assert best.x[1] == pytest.approx(b * 1e9, abs=100)
    assert scale == pytest.approx(TO_SIGMA * np.median(np.abs(y - a - b * centred)), rel=0.05)
    true = 5000 + 2e-5 * x.mean()
    assert abs(a - true) < 150
    assert abs(stats.linregress(centred, y).intercept - true) > abs(a - true)

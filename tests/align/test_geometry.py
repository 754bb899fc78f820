"""Regions of clock relations: what constraints leave, and what they allow at each time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traceconv.align.geometry import LinearConstraints, Region, box, everything, feasible, robust_line

X0 = 5e8


def constraints_of(rng: np.random.Generator, offset: float, drift: float, n: int, slack: float) -> LinearConstraints:
    """True relations with one-sided errors: what launches before kernels give, and ends before returns."""
    x = rng.uniform(0, 1e9, n)
    true = offset + drift * (x - X0)
    below, above = rng.exponential(slack, n), rng.exponential(slack, n)
    return LinearConstraints(x, true - below, x, true + above)


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10**6), st.floats(-1e9, 1e9), st.floats(-50e-6, 50e-6))
def test_the_truth_is_inside(seed: int, offset: float, drift: float) -> None:
    made = constraints_of(np.random.default_rng(seed), offset, drift, 300, 2000)
    region = feasible(made, everything(X0, 200e-6))
    assert region is not None
    for x in (-1e9, 0.0, X0, 1e9, 3e9):
        low, high = region.bounds(x)
        true = offset + drift * (x - X0)
        assert low[0] - 1 <= true <= high[0] + 1
    assert region.width(X0) < region.width(3e9), "less is known outside of the evidence"
    assert region.width(X0) < 2000
    a, b = region.middle((0.0, 1e9))
    assert abs(a - offset) < 1000
    assert abs(b - drift) < 2e-6


def test_contradictions_leave_nothing() -> None:
    x = np.array([0.0, 1e9])
    made = LinearConstraints(x, np.array([10.0, 10.0]), x, np.array([5.0, 5.0]))
    assert feasible(made, everything(X0, 200e-6)) is None


def test_trimming_takes_the_tightest() -> None:
    rng = np.random.default_rng(1)
    made = constraints_of(rng, 1000.0, 1e-5, 400, 2000)
    wrong = LinearConstraints(made.lower_x, made.lower.copy(), made.upper_x, made.upper.copy())
    wrong.lower[:4] += 50_000
    assert feasible(wrong, everything(X0, 200e-6)) is None
    region = feasible(wrong.trimmed(1e-5, X0, 0.03), everything(X0, 200e-6))
    assert region is not None
    low, high = region.bounds(X0)
    assert low[0] <= 1000 <= high[0]


def test_a_drift_beyond_the_limit_is_infeasible() -> None:
    made = constraints_of(np.random.default_rng(2), 0.0, 300e-6, 200, 500)
    assert feasible(made, everything(X0, 200e-6)) is None
    assert feasible(made, everything(X0, 500e-6)) is not None


@pytest.mark.parametrize("flip", [False, True])
def test_intersection(flip: bool) -> None:
    one, other = box(0.0, -100, 100, 1e-6), box(1e9, 50, 300, 2e-6)
    both = other.intersection(one) if flip else one.intersection(other)
    assert both is not None
    for x in (-1e9, 0.0, 1e9, 5e9):
        low, high = both.bounds(x)
        for part in (one, other):
            part_low, part_high = part.bounds(x)
            assert low[0] >= part_low[0] - 1e-6
            assert high[0] <= part_high[0] + 1e-6
    assert box(0.0, 0, 1, 0.0).intersection(box(0.0, 5, 6, 0.0)) is None


def test_offsets_move_along_the_drift() -> None:
    region = Region(0.0, np.array([0.0, 10.0, 10.0]), np.array([0.0, 0.0, 1e-6]))
    moved = region.at(1e9)
    assert np.allclose(moved.bounds(1e9), region.bounds(1e9))
    assert np.allclose(moved.bounds(-7e9), region.bounds(-7e9))


def test_a_line_through_points_of_which_a_fifth_is_wrong() -> None:
    rng = np.random.default_rng(3)
    x = rng.uniform(0, 1e9, 500)
    y = 1234.0 + 3e-6 * (x - x.mean()) + rng.normal(0, 300, 500)
    y[::5] += rng.uniform(1e4, 1e6, 100)
    a, b, scale = robust_line(x, y, 100, 300e-6, 100e-6)
    assert abs(a - 1234) < 60
    assert abs(b - 3e-6) < 2e-7
    assert 200 < scale < 450


def test_the_prior_decides_a_short_span() -> None:
    x = np.linspace(0, 1e6, 50)
    y = np.random.default_rng(4).normal(0, 1000, 50)
    _, b, _ = robust_line(x, y, 1000, 300e-6, 10e-6)
    assert abs(b) < 20e-6

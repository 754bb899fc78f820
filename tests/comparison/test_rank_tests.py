"""The statistics of comparisons, beside their definitions computed by enumeration and by simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from traceconv.comparison.rank_tests import LEVEL, adjusted, found_change, runs_to_find, shift, u_test


def _exact_p(before: list[float], after: list[float]) -> float:
    """Return the two-sided p over all ways to divide the values into groups of these sizes."""
    values = before + after

    def least(chosen: set[int]) -> float:
        first = [value for at, value in enumerate(values) if at in chosen]
        second = [value for at, value in enumerate(values) if at not in chosen]
        above = sum((b > a) + (b == a) / 2 for a in first for b in second)
        return min(above, len(first) * len(second) - above)

    seen = least(set(range(len(before))))
    ways = [least(set(chosen)) for chosen in itertools.combinations(range(len(values)), len(before))]
    return sum(each <= seen for each in ways) / len(ways)


def _shift(before: list[float], after: list[float]) -> tuple[float, float, float]:
    found = shift(before, after)
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    return found.ratio, found.low, found.high


@pytest.mark.parametrize("sizes", [(1, 1), (2, 2), (2, 5), (4, 4), (5, 3), (6, 6)])
def test_p_is_the_share_of_divisions_that_are_as_far_apart(sizes: tuple[int, int]) -> None:
    random = np.random.default_rng(sum(sizes))
    for move in (0, 1, 3):
        before, after = random.normal(0, 1, sizes[0]).tolist(), random.normal(move, 1, sizes[1]).tolist()
        for ties in (False, True):  # as with steps of a clock
            before, after = (list(map(round, side)) if ties else side for side in (before, after))
            assert u_test(before, after) == pytest.approx(_exact_p(before, after))
            assert u_test(after, before) == u_test(before, after)


@pytest.mark.parametrize(
    ("runs", "p"), [(4, 0.0286), (5, 0.00794), (6, 0.00216), (7, 0.000583), (8, 0.000155), (10, 0.0000108)]
)
def test_the_smallest_p_of_a_number_of_runs(runs: int, p: float) -> None:
    assert u_test(range(runs), range(100, 100 + runs)) == pytest.approx(p, rel=0.01)


def test_equal_values_make_no_p_smaller() -> None:
    assert u_test([5, 5, 5], [5, 5, 5]) == 1
    assert u_test([100] * 3, [110] * 3) == pytest.approx(0.1)
    assert u_test([1, 1, 1, 2, 2, 2, 3, 3], [3, 3, 4, 4, 4, 5, 5, 5]) < 0.002


def test_many_runs_use_the_normal_distribution() -> None:
    random = np.random.default_rng(3)
    before, after = random.normal(0, 1, 25).tolist(), random.normal(0.8, 1, 25).tolist()
    exact, normal = u_test(before, after), u_test([*before, 0.1], [*after, 0.2])
    assert exact == pytest.approx(normal, rel=0.3)


def test_swapped_sides_keep_p_and_invert_the_ratio() -> None:
    random = np.random.default_rng(1)
    for _ in range(20):
        before, after = random.lognormal(0, 0.1, 7).tolist(), random.lognormal(0.1, 0.1, 9).tolist()
        there, back = _shift(before, after), _shift(after, before)
        assert u_test(before, after) == u_test(after, before)
        assert there == pytest.approx((1 / back[0], 1 / back[2], 1 / back[1]))


@pytest.mark.parametrize("runs", [4, 5, 6, 8, 12, 30])
def test_the_interval_leaves_out_no_change_if_and_only_if_the_test_rejects_it(runs: int) -> None:
    random = np.random.default_rng(runs)
    rejected = 0
    for _ in range(200):
        before, after = random.lognormal(0, 0.05, runs).tolist(), random.lognormal(0.04, 0.05, runs).tolist()
        ratio, low, high = _shift(before, after)
        assert low <= ratio <= high
        is_rejected = u_test(before, after) <= LEVEL
        assert is_rejected == (not low <= 1 <= high)
        rejected += is_rejected
    assert 0 < rejected < 200


def test_the_interval_holds_the_true_ratio_in_95_percent() -> None:
    random = np.random.default_rng(0)
    held = 0
    for _ in range(1000):
        _, low, high = _shift(random.lognormal(0, 0.1, 8).tolist(), random.lognormal(0.2, 0.1, 8).tolist())
        held += low <= math.exp(0.2) <= high
    assert 940 <= held <= 985


def test_too_few_runs_have_no_interval() -> None:
    for found in (shift([1.0], [2.0]), shift([1, 2, 3], [2, 4, 6])):
        assert found is not None
        assert (found.low, found.high) == (None, None)
        assert found.ratio == pytest.approx(2)
    assert shift([0, 1, 2, 3], [1, 2, 3, 4]) is None


def test_adjusted_p_follow_their_definition() -> None:
    random = np.random.default_rng(5)
    p = random.uniform(0, 0.2, 50).tolist()
    ordered = sorted(p)
    wanted = [min(1, *(ordered[j] * len(p) / (j + 1) for j in range(ordered.index(each), len(p)))) for each in p]
    assert adjusted(p) == pytest.approx(wanted)
    assert adjusted([]) == []


def test_equal_sides_have_a_finding_in_five_percent() -> None:
    random = np.random.default_rng(7)
    findings = 0
    for _ in range(300):
        runs = random.lognormal(0, 0.02, (40, 16))
        findings += min(adjusted([u_test(row[:8], row[8:]) for row in runs.tolist()])) <= LEVEL
    assert findings <= 300 * LEVEL * 1.7


@pytest.mark.parametrize(("runs", "tests"), [(6, 1), (8, 20), (10, 100), (30, 100)])
def test_a_change_as_large_as_stated_is_found_in_95_percent(runs: int, tests: int) -> None:
    spread = 0.015
    change = found_change(runs, runs, spread, tests)
    assert change is not None
    random, found = np.random.default_rng(tests), 0
    for _ in range(400):
        before, after = (random.lognormal(mean, spread, runs).tolist() for mean in (0, math.log1p(change)))
        found += u_test(before, after) <= LEVEL / tests
    assert 0.92 <= found / 400 <= 0.98


def test_how_many_runs_a_change_needs() -> None:
    assert found_change(5, 5, 0.015, 100) is None
    assert found_change(4, 4, 0.01, 1) is not None
    runs = runs_to_find(0.05, 0.015, 100)
    assert runs is not None
    enough, fewer = (found_change(count, count, 0.015, 100) for count in (runs, runs - 1))
    assert enough is not None
    assert fewer is not None
    assert enough <= 0.05 < fewer
    assert runs_to_find(0.001, 0.1, 1) is None

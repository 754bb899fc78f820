"""Sets of intervals against a raster of single nanoseconds."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from traceconv.answers.slice_tables import Intervals, gaps, intersect, lengths_in_groups, shares, subtract, union

LENGTH = 60
SETS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 15)), max_size=12)


def made(pairs: list[tuple[int, int]]) -> Intervals:
    starts = np.array([start for start, _ in pairs], np.int64)
    return union(starts, starts + np.array([length for _, length in pairs], np.int64))


def raster(one: Intervals) -> list[bool]:
    found = [False] * LENGTH
    for start, end in zip(one.starts.tolist(), one.ends.tolist(), strict=True):
        assert start < end
        for at in range(start, end):
            assert not found[at]
            found[at] = True
    return found


@given(SETS)
def test_union_holds_each_instant_once(pairs: list[tuple[int, int]]) -> None:
    expected = [any(start <= at < start + length for start, length in pairs) for at in range(LENGTH)]
    assert raster(made(pairs)) == expected
    assert made(pairs).length == sum(expected)


@given(SETS, SETS)
def test_sets_are_combined_instant_by_instant(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> None:
    one, other = made(a), made(b)
    both = list(zip(raster(one), raster(other), strict=True))
    assert raster(intersect(one, other)) == [x and y for x, y in both]
    assert raster(subtract(one, other)) == [x and not y for x, y in both]


@given(SETS, st.integers(0, 30), st.integers(0, 59))
def test_gaps_and_the_set_fill_the_window(pairs: list[tuple[int, int]], start: int, end: int) -> None:
    one = made(pairs)
    expected = [start <= at < end and not there for at, there in enumerate(raster(one))]
    assert raster(gaps(one, start, end)) == expected


@given(SETS, st.integers(0, 30), st.integers(1, 29), st.integers(1, 9))
def test_shares_of_equal_parts(pairs: list[tuple[int, int]], start: int, length: int, parts: int) -> None:
    there = raster(made(pairs))
    parts = min(parts, length)
    edges = [start + length * number // parts for number in range(parts + 1)]
    expected = [sum(there[low:high]) / (high - low) for low, high in itertools.pairwise(edges)]
    assert shares(made(pairs), start, start + length, parts) == expected


@given(st.lists(SETS, max_size=4))
def test_lengths_of_groups_are_those_of_their_unions(groups: list[list[tuple[int, int]]]) -> None:
    group = np.array([number for number, pairs in enumerate(groups) for _ in pairs], np.int64)
    starts = np.array([start for pairs in groups for start, _ in pairs], np.int64)
    ends = np.array([start + length for pairs in groups for start, length in pairs], np.int64)
    assert lengths_in_groups(group, starts, ends, len(groups)).tolist() == [made(pairs).length for pairs in groups]

"""Slices without times inside and between those that they were matched to."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traceconv.align.duration_layout import Layout, Place, lay_inside, placed_args


def column(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def laid(dur: list[int], pairs: list[tuple[int, int]], parents: list[tuple[int, int]]) -> Layout:
    rows = np.array(pairs, np.int64).reshape(-1, 2)
    made = np.array(parents, np.int64).reshape(-1, 2)
    return lay_inside(column(*dur), (rows[:, 0], rows[:, 1]), made[:, 0], made[:, 1])


def test_a_matched_slice_is_centred_in_its_parent() -> None:
    found = laid([40], [(0, 0)], [(1000, 100)])
    assert (found.ts.tolist(), found.dur.tolist()) == ([1030], [40])
    assert found.place.tolist() == [Place.INSIDE]


def test_a_slice_longer_than_its_parent_is_shortened_and_says_so() -> None:
    found = laid([150], [(0, 0)], [(1000, 100)])
    assert (found.ts.tolist(), found.dur.tolist(), found.shortened.tolist()) == ([1000], [100], [True])
    assert placed_args(found, column(150), ["conv"]) == [{"placed": "inside conv, shortened", "real_dur_ns": 150}]


def test_several_in_one_parent_lie_in_order() -> None:
    found = laid([10, 20, 30], [(0, 0), (0, 2)], [(1000, 100)])
    assert found.ts.tolist() == [1020, 1030, 1050]
    assert found.place.tolist() == [Place.INSIDE] * 3
    assert found.parent.tolist() == [0, 0, 0]


def test_unmatched_slices_lie_between_their_neighbours() -> None:
    found = laid([100, 10, 20, 100], [(0, 0), (1, 3)], [(1000, 100), (1200, 100)])
    assert found.ts.tolist() == [1000, 1135, 1145, 1200]
    assert found.place.tolist() == [Place.INSIDE, Place.BETWEEN, Place.BETWEEN, Place.INSIDE]
    assert not found.shortened.any()
    assert placed_args(found, column(100, 10, 20, 100), ["a", "b"])[1] == {"placed": "between neighbours"}


def test_too_long_unmatched_slices_share_the_gap() -> None:
    found = laid([100, 100, 300, 100], [(0, 0), (1, 3)], [(1000, 100), (1200, 100)])
    assert found.ts.tolist() == [1000, 1100, 1125, 1200]
    assert found.dur.tolist() == [100, 25, 75, 100]
    assert found.shortened.tolist() == [False, True, True, False]


def test_the_first_and_last_ones_lie_end_to_end() -> None:
    found = laid([5, 6, 100, 7, 8], [(0, 2)], [(1000, 100)])
    assert found.ts.tolist() == [989, 994, 1000, 1100, 1107]
    assert found.place.tolist() == [Place.BEFORE, Place.BEFORE, Place.INSIDE, Place.AFTER, Place.AFTER]
    assert found.dur.tolist() == [5, 6, 100, 7, 8]


def test_a_parent_ends_where_the_next_one_begins() -> None:
    found = laid([80, 40], [(0, 0), (1, 1)], [(1000, 200), (1050, 50)])
    assert found.ts.tolist() == [1000, 1055]
    assert found.dur.tolist() == [50, 40]
    assert found.shortened.tolist() == [True, False]


def test_long_times_are_exact() -> None:
    start, length = 1_795_245_461_050_843_001, 10**15
    found = laid([3 * length, 3 * length + 1], [(0, 0), (0, 1)], [(start, length)])
    assert found.ts[0] == start
    assert found.ts[1] == start + 3 * length * length // (6 * length + 1)
    assert found.ts[1] + found.dur[1] == start + length


@pytest.mark.parametrize("pairs", [[], [(0, 1), (1, 0)], [(1, 0), (0, 1)], [(0, 1), (1, 1)]])
def test_pairs_out_of_order_are_refused(pairs: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match="in order"):
        laid([1, 1], pairs, [(0, 10), (20, 10)])


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[int], list[tuple[int, int]], list[tuple[int, int]]]:
    parents = draw(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 200)), min_size=1, max_size=12))
    dur = draw(st.lists(st.integers(0, 150), min_size=1, max_size=15))
    rows = sorted(draw(st.sets(st.integers(0, len(dur) - 1), min_size=1)))
    chosen = sorted(draw(st.integers(0, len(parents) - 1)) for _ in rows)
    return dur, list(zip(chosen, rows, strict=True)), sorted(parents)


@settings(deadline=None, max_examples=300)
@given(cases())
def test_nothing_overlaps_is_stretched_or_leaves_its_parent(
    case: tuple[list[int], list[tuple[int, int]], list[tuple[int, int]]],
) -> None:
    dur, pairs, parents = case
    found = laid(dur, pairs, parents)
    assert found.ts.dtype == found.dur.dtype == np.int64
    assert (found.dur >= 0).all()
    assert (found.dur <= dur).all()
    assert (found.ts[1:] >= found.ts[:-1] + found.dur[:-1]).all()
    assert (found.shortened == (found.dur < np.array(dur))).all()
    for parent, row in pairs:
        longest = max(length for start, length in parents if start == parents[parent][0])
        assert found.place[row] == Place.INSIDE
        assert found.parent[row] == parent
        assert parents[parent][0] <= found.ts[row]
        assert found.ts[row] + found.dur[row] <= parents[parent][0] + longest

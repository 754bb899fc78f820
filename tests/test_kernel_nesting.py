"""Nesting of slices: the kernel, its source uncompiled, and the code without it agree."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels import using, variants
from traceconv.answers.slice_tables import nesting_of
from traceconv.model import layout as lanes
from traceconv.model.trace import Slices


def _slices(rows: list[tuple[int, int, int, int]]) -> Slices:
    """Slices of these tracks, begins, durations and origins."""
    track, ts, dur, origin = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    none = np.zeros(len(rows), np.int32)
    return Slices(ts, dur, track.astype(np.int32), none, none, none.astype(np.int64), none, origin)


ROWS = st.lists(
    st.tuples(st.sampled_from([0, 1, 70_000]), st.integers(0, 12), st.integers(0, 6), st.integers(0, 3)),
    min_size=1,
    max_size=30,
)


@settings(deadline=None)
@given(ROWS, st.integers(1, 4))
def test_first_crossing(rows: list[tuple[int, int, int, int]], depth: int) -> None:
    rows.sort(key=lambda row: (row[0], row[1], -row[2]))
    slices = _slices(rows)
    found = {
        kernel.first_crossing(slices.track, slices.ts, slices.dur, 0, len(rows), depth)
        for kernel in variants("nesting").values()
    }
    (row,) = found
    with pytest.MonkeyPatch.context() as patch, using("nesting", None):
        patch.setattr(lanes, "MAX_DEPTH", depth)
        nest_until = [_all_nest(slices, stop) for stop in range(1, len(rows) + 1)]
    assert nest_until == [stop <= row for stop in range(1, len(rows) + 1)]


def _all_nest(slices: Slices, stop: int) -> bool:
    """Whether on each track the slices before `stop` nest."""
    bounds = [0, *(np.flatnonzero(np.diff(slices.track[:stop])) + 1).tolist(), stop]
    return all(
        lanes._first_crossing(slices, first, end, lanes.MAX_DEPTH) == end for first, end in itertools.pairwise(bounds)
    )


@settings(deadline=None)
@given(ROWS, st.integers(1, 4), st.integers(0, 3))
def test_lanes(rows: list[tuple[int, int, int, int]], depth: int, resolution: int) -> None:
    _compare_lanes([(ts, dur) for _, ts, dur, _ in rows], depth, resolution)


@pytest.mark.parametrize(("length", "depth"), [(3, 500), (50, 500), (1000, 3), (1000, 500), (100_000, 2)])
def test_many_lanes(length: int, depth: int) -> None:
    random_ = random.Random(length)
    slices = [(random_.randrange(2000), random_.randrange(length)) for _ in range(3000)]
    _compare_lanes(slices, depth, resolution=length % 7)


def _compare_lanes(slices: list[tuple[int, int]], depth: int, resolution: int) -> None:
    """The lanes of one track do not depend on the kernel."""
    ts, ends = np.array(sorted((ts, -ts - dur) for ts, dur in slices), np.int64).T
    results = []
    for module in (*variants("nesting").values(), None):
        starts, stops = ts.copy(), -ends
        with pytest.MonkeyPatch.context() as patch, using("nesting", module):
            patch.setattr(lanes, "MAX_DEPTH", depth)
            found = lanes._assign(starts, stops, resolution)
        results.append([column.tolist() for column in (starts, stops, *found)])
    assert all(result == results[0] for result in results)


def test_columns_of_different_lengths_have_no_lanes() -> None:
    for kernel in variants("nesting").values():
        for ends, lane, marks, depth in ((2, 2, 3, 1), (2, 1, 2, 1), (3, 2, 2, 1), (2, 2, 2, 0)):
            columns = np.zeros(ends, np.int64), 0, depth, (1, 2, 4), np.zeros(lane, np.int32), np.zeros(marks, np.uint8)
            with pytest.raises(ValueError, match="lengths"):
                kernel.assign(np.zeros(2, np.int64), *columns)


@settings(deadline=None)
@given(ROWS)
def test_nesting(rows: list[tuple[int, int, int, int]]) -> None:
    """The kernel and Python find the same parents, depths and self times."""
    rows.sort(key=lambda row: (row[0], row[1], -row[2]))
    slices = _slices(rows)
    nested = []  # those of the first lane of each track
    for _, own in itertools.groupby(range(len(rows)), key=lambda row: rows[row][0]):
        at = list(own)
        ends = slices.ts[at] + slices.dur[at]
        nested += [
            row for row, lane in zip(at, lanes._assign(slices.ts[at], ends, 0)[0].tolist(), strict=True) if lane == 0
        ]
    slices = _slices([rows[row] for row in nested])
    results = []
    for module in (*variants("nesting").values(), None):
        with using("nesting", module):
            nesting = nesting_of(slices)
        columns = (nesting.parent, nesting.depth, nesting.self_ns)
        results.append([(column.dtype, column.tolist()) for column in columns])
    assert all(result == results[0] for result in results)


def test_columns_of_different_lengths() -> None:
    none, zeros = np.full(2, -1, np.int32), np.zeros(2, np.int64)
    for kernel in variants("nesting").values():
        with pytest.raises(ValueError, match="lengths"):
            kernel.nesting(none, zeros, zeros, none, none[:1].copy(), zeros.copy())

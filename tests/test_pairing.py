"""Begins and ends are paired as they should be, whatever their order, with the kernel and without it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels import without
from traceconv import kernel
from traceconv.model.event_tables import Marks


def _pairs(marks: list[tuple[int, bool, int]]) -> list[tuple[int, int]]:
    found = Marks()
    for row, (track, is_begin, name) in enumerate(marks):
        found.add(track, row, is_begin, name, 0, (0, 0), row)
    found.settle()
    begin, end, _ = found.pairs()
    return list(zip(begin.tolist(), end.tolist(), strict=True))


def _expected(marks: list[tuple[int, bool, int]]) -> list[tuple[int, int]]:
    """The same, with a look at all open slices for each end."""
    pairs = []
    for track in sorted({track for track, _, _ in marks}):
        open_rows: list[int] = []
        for row, (on_track, is_begin, name) in enumerate(marks):
            if on_track != track:
                continue
            if is_begin:
                open_rows.append(row)
                continue
            named = [other for other in open_rows if name and marks[other][2] == name] or open_rows
            pairs.append((named[-1] if named else -1, row))
            if named:
                open_rows.remove(named[-1])
        pairs += [(row, -1) for row in open_rows]
    return pairs


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.integers(0, 3)), min_size=1, max_size=40))
def test_pairs(marks: list[tuple[int, bool, int]]) -> None:
    assert _pairs(marks) == _expected(marks)
    with without():
        assert _pairs(marks) == _expected(marks)


def test_many_open() -> None:
    marks = [(0, True, n % 3 + 1) for n in range(3000)] + [(0, False, n % 4) for n in range(2900)]
    assert _pairs(marks) == _expected(marks)
    with without():
        assert _pairs(marks) == _expected(marks)


def test_no_marks() -> None:
    assert _pairs([]) == []


@pytest.mark.skipif(not kernel.COMPILED, reason="the kernel is not compiled")
def test_places_outside_are_refused() -> None:
    def pair(order: list[int], name: int) -> None:
        zeros, room = np.zeros(1, np.int32), np.zeros(1, np.int64)
        names = np.array([name], np.int32)
        kernel.module("nesting").pair(np.array(order), zeros, zeros.astype(np.uint8), names, 4, 0, room, room.copy())

    for order, name in (([0], 4), ([0], -1), ([1], 1), ([-1], 1)):
        with pytest.raises(IndexError, match="no such"):
            pair(order, name)
    with pytest.raises(IndexError, match="lengths"):
        pair([0, 0], 1)

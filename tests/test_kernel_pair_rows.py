"""Begins and ends are paired alike by the kernel and without it."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels import variants
from traceconv.model import pairing

KERNELS = variants("pair_rows")


def _pairs(pair: object, marks: list[tuple[int, bool, int]], order: list[int] | None = None) -> list[tuple[int, int]]:
    track, is_begin, name = (np.array(column, np.int32) for column in zip(*marks, strict=True))
    rows = np.array(order, np.int64) if order is not None else np.argsort(track, kind="stable")
    begins, ends = np.zeros(len(marks), np.int64), np.zeros(len(marks), np.int64)
    count = pair(rows, track, is_begin.astype(np.uint8), name, 4, 0, begins, ends)  # type: ignore[operator]
    return list(zip(begins[:count].tolist(), ends[:count].tolist(), strict=True))


@settings(max_examples=500, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.integers(0, 3)), min_size=1, max_size=40))
def test_same_pairs(marks: list[tuple[int, bool, int]]) -> None:
    for name, module in KERNELS.items():
        assert _pairs(module.pair, marks) == _pairs(pairing._pair, marks), name


def test_many_open() -> None:
    marks = [(0, True, n % 3 + 1) for n in range(3000)] + [(0, False, n % 4) for n in range(2900)]
    for name, module in KERNELS.items():
        assert _pairs(module.pair, marks) == _pairs(pairing._pair, marks), name


@pytest.mark.parametrize("module", KERNELS.values(), ids=list(KERNELS))
def test_places_outside_are_refused(module: ModuleType) -> None:
    for marks, order in (([(0, True, 4)], [0]), ([(0, True, -1)], [0]), ([(0, True, 1)], [1]), ([(0, True, 1)], [-1])):
        with pytest.raises(IndexError, match="no such"):
            _pairs(module.pair, marks, order)
    with pytest.raises(IndexError, match="lengths"):
        _pairs(module.pair, [(0, True, 1)], [0, 0])

"""Protobuf's wire format, as it is written."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from traceconv.families.common import wire_writer as wire


@given(st.lists(st.integers(0, 2**63 - 1) | st.integers(0, 300), max_size=200), st.integers(1, 3000))
def test_many_integers_are_written_as_single_ones(values: list[int], field: int) -> None:
    assert wire.integers(field, np.array(values, np.int64)) == [wire.integer(field, value) for value in values]

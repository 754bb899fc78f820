"""Every golden input with odd numbers in its numeric fields: only our own errors and counted losses come out.

A field is what stands behind one key or between the same characters. Its values are replaced in one place, or in all.

TRACECONV_MUTATIONS=500 pytest tests/test_number_mutations.py -n 2      # more of them, and other ones each time
"""

from __future__ import annotations

import re
import tempfile
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.golden import Case
from tests.test_mutations import DATABASES, OTHERS, PLACE, Edit, check, copied, run
from traceconv.api import read, report
from traceconv.check import check_file
from traceconv.errors import TraceconvError

VALUES = [
    *(b"inf", b"-Infinity", b"nan", b"1e400", b"-1e400", b"1e-400", b"1e308", b"1e9999999999999999999", b"1e5"),
    *(b"9" * 5000, b"-" + b"9" * 5000, b"1" + b"0" * 400, b"9" * 19, b"18446744073709551615", b"9" * 20),
    *("²".encode(), "١٢".encode(), "１２".encode(), b"1_0", b"0x1f", b"1,5", b"1.", b".5", b".", b"-", b"0.1.2", b"+5"),
    *(b"", b" ", b"x", b"-1", b"-0", b"1.5", b"null", b"true", b"{}", b"[]"),
    *(b"[" * 1100 + b"]" * 1100, b"[" * 5000, b"a" * 140_000),
    *(b'"' + b"9" * 5000 + b'"', '"²"'.encode(), b'"1e400"', b'"inf"'),
]
CELLS = [
    *(float("inf"), 1e300, "9" * 5000, "²", "١٢", "1e400", "inf", "[" * 2000, -1, 2**63 - 1, -(2**63), "", "x", None)
]
_NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_KEY = re.compile(rb'"([^"]*)"\s*:\s*"?$')
#: The bytes before and behind a number that tell its field, if no key does.
_BEFORE, _BEHIND, _MOST_BYTES = 10, 2, 1 << 21


@cache
def fields(path: Path) -> list[list[tuple[int, int]]]:
    """The places of the numbers of an input, by field."""
    data = path.read_bytes()
    by_field = defaultdict(list)
    for match in _NUMBER.finditer(data):
        before = re.sub(rb"[0-9.]+", b"0", data[max(0, match.start() - 24) : match.start()])
        key = _KEY.search(before)
        behind = data[match.end() : match.end() + _BEHIND]
        by_field[key[1] if key else before[-_BEFORE:], re.sub(rb"[0-9]+", b"0", behind)].append(match.span())
    return list(by_field.values())


@dataclass(frozen=True)
class OddNumber:
    """A value in the place of one number of a field, or of all; places are shares in millionths."""

    field: int
    place: int
    everywhere: bool
    value: bytes

    def spans(self, path: Path) -> list[tuple[int, int]]:
        """The places of an input that get the value."""
        known = fields(path)
        if not known:
            return []
        spans = known[self.field * len(known) // 10**6]
        few = spans[: 1 + _MOST_BYTES // (1 + len(self.value))]
        return few if self.everywhere else [spans[self.place * len(spans) // 10**6]]


@dataclass(frozen=True)
class Placed:
    """A value in some places."""

    spans: list[tuple[int, int]]
    value: bytes

    def apply(self, data: bytes) -> bytes:
        parts, at = [], 0
        for start, end in self.spans:
            parts += [data[at:start], self.value]
            at = end
        return b"".join([*parts, data[at:]])


ODD = st.builds(OddNumber, PLACE, PLACE, st.booleans(), st.sampled_from(VALUES))
ODD_CELLS = st.builds(
    Edit,
    st.just("set"),
    PLACE,
    PLACE,
    st.sampled_from(["", "WHERE rowid % 2", "WHERE rowid = 1"]),
    st.sampled_from(CELLS),
)


@pytest.mark.parametrize("case", OTHERS, ids=[case.name for case in OTHERS])
@run(2)
@given(odd=ODD)
def test_odd_numbers_are_errors_of_ours_or_counted(case: Case, odd: OddNumber) -> None:
    mutation = Placed(odd.spans(case.input), odd.value)
    check(case, [mutation])
    answer(case, [mutation])


@pytest.mark.parametrize("case", DATABASES, ids=[case.name for case in DATABASES])
@run(4)
@given(edit=ODD_CELLS)
def test_odd_cells_of_databases(case: Case, edit: Edit) -> None:
    check(case, [edit])
    answer(case, [edit])


def answer(case: Case, mutations: list[Placed] | list[Edit]) -> None:
    """Ask all questions about an input, and check it."""
    with tempfile.TemporaryDirectory() as folder:
        path = copied(case, Path(folder), mutations)
        with suppress(TraceconvError):
            check_file(path)
        try:
            trace = read(path, format=case.format, options=case.options)
        except TraceconvError:
            return
        report(trace)

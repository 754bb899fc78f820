"""Every golden input with odd numbers in its numeric fields: only our own errors and counted losses come out.

TRACECONV_MUTATIONS=500 pytest tests/test_number_mutations.py -n 2      # more of them, and other ones each time
"""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import damage
from tests.damage import Edit, OddNumber
from tests.golden import Case
from tests.test_mutations import DATABASES, OTHERS, PLACE, check, copied, run
from traceconv.api import read, report
from traceconv.check import check_file
from traceconv.errors import TraceconvError

ODD = st.builds(OddNumber, PLACE, PLACE, st.booleans(), st.sampled_from(damage.ODD_NUMBERS))
CELLS = st.builds(
    Edit,
    st.just("set"),
    PLACE,
    PLACE,
    st.sampled_from(["", "WHERE rowid % 2", "WHERE rowid = 1"]),
    st.sampled_from(damage.ODD_CELLS),
)


@pytest.mark.parametrize("case", OTHERS, ids=[case.name for case in OTHERS])
@run(2)
@given(odd=ODD)
def test_odd_numbers_are_errors_of_ours_or_counted(case: Case, odd: OddNumber) -> None:
    check(case, [odd])
    answer(case, [odd])


@pytest.mark.parametrize("case", DATABASES, ids=[case.name for case in DATABASES])
@run(4)
@given(edit=CELLS)
def test_odd_cells_of_databases(case: Case, edit: Edit) -> None:
    check(case, [edit])
    answer(case, [edit])


def answer(case: Case, mutations: list[OddNumber] | list[Edit]) -> None:
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

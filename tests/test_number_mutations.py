"""Every golden input with odd numbers in its numeric fields: only our own errors and counted losses come out.

TRACECONV_MUTATIONS=500 pytest tests/test_number_mutations.py -n 2      # more of them, and other ones each time
"""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tests import damage
from tests.damage import Edit, OddValue
from tests.golden import Case, by_format
from tests.test_mutations import DATABASES, OTHERS, PLACE, check, copied, each_changed
from traceconv.api import read, report
from traceconv.check import check_file
from traceconv.errors import TraceconvError

ODD = st.builds(OddValue, PLACE, PLACE, st.booleans(), st.sampled_from(damage.ODD_NUMBERS))
CELLS = st.builds(
    Edit,
    st.just("set"),
    PLACE,
    PLACE,
    st.sampled_from(["", "WHERE rowid % 2", "WHERE rowid = 1"]),
    st.sampled_from(damage.ODD_CELLS),
)


@by_format(OTHERS)
def test_odd_numbers_are_errors_of_ours_or_counted(cases: list[Case]) -> None:
    each_changed(cases, 1, st.lists(ODD, min_size=1, max_size=1), check_and_answer)


@by_format(DATABASES)
def test_odd_cells_of_databases(cases: list[Case]) -> None:
    each_changed(cases, 2, st.lists(CELLS, min_size=1, max_size=1), check_and_answer)


def check_and_answer(case: Case, mutations: list[Any]) -> None:
    check(case, mutations)
    answer(case, mutations)


def answer(case: Case, mutations: list[OddValue] | list[Edit]) -> None:
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

"""The mutants replace functions that there are, and name tests in files that there are."""

from __future__ import annotations

import importlib
from functools import reduce
from pathlib import Path

from tests.mutants import MUTANTS
from tests.together import together


def test_a_mutant_has_a_target_and_tests() -> None:
    with together() as each:
        for mutant in MUTANTS:
            with each(mutant.target):
                module, _, name = mutant.target.partition(":")
                assert callable(reduce(getattr, name.split("."), importlib.import_module(f"traceconv.{module}")))
                assert mutant.tests
                assert all((Path(__file__).parents[1] / test.partition("::")[0]).is_file() for test in mutant.tests)

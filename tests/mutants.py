"""Check that tests notice when a step of the product does nothing: `python -m tests.mutants [NAME ...]`.

Each mutant replaces one function by one that returns a valid, but empty or unchanged value; then the tests that are to
notice it run. It is killed if an assertion of a test fails: a crash shows only that the value was not a valid one.
The exit code is 1 if a mutant lives or crashes.
"""

from __future__ import annotations

import importlib
import multiprocessing
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

LIVES, CRASHES = "lives", "crashes"
ALIGN = "tests/align/test_golden_align.py"


@dataclass(frozen=True)
class Mutant:
    """A function that is replaced.

    Attributes:
        target: the module and the function, or the class and the method, below `traceconv`.
        returns: what is returned instead, given the arguments and the original.
        tests: what is to notice it.
    """

    target: str
    returns: Callable[..., Any]
    tests: tuple[str, ...] = (ALIGN,)


def nothing(_original: Callable[..., Any], *_args: Any, **_kwargs: Any) -> None:
    """Return None, as if nothing was found."""


def unchanged(_original: Callable[..., Any], first: Any, *_args: Any, **_kwargs: Any) -> Any:
    """Return the first argument as it is."""
    return first


def empty(_original: Callable[..., Any], *_args: Any, **_kwargs: Any) -> list[Any]:
    return []


def second(_original: Callable[..., Any], _first: Any, value: Any, *_args: Any, **_kwargs: Any) -> Any:
    """Return the second argument as it is."""
    return value


def third(_original: Callable[..., Any], _first: Any, _second: Any, value: Any, *_args: Any) -> Any:
    """Return the third argument as it is."""
    return value


def avoid_nothing(_original: Callable[..., Any], *_args: Any, **_kwargs: Any) -> Any:
    """Return that samples tell nothing."""
    from traceconv.align.estimate import Estimate, Method
    from traceconv.align.messages import Text
    from traceconv.model.clocks import Verdict

    return Estimate(Method.SAMPLING_GAPS, Verdict.AMBIGUOUS, Text.SAMPLES_AVOID_NOTHING())


def without_pairs(original: Callable[..., Any], inputs: Any, *args: Any, **kwargs: Any) -> Any:
    """Return what is estimated for no two clocks."""
    from dataclasses import replace

    return replace(original(inputs, *args, **kwargs), estimates=())


def moved_nothing(_original: Callable[..., Any], pair: Any, *_args: Any) -> Any:
    """Return a clock of the pair, and an empty message, as if a zone explained the contradiction."""
    from traceconv.align.messages import Text

    return pair.a, Text.BOTH_FILES_SAY()


def nothing_together(_original: Callable[..., Any], view: Any) -> Any:
    """Return that no process is in two inputs."""
    from traceconv.align.identity import Together

    return Together(view.recordings, [])


def unchecked(_original: Callable[..., Any], *_args: Any) -> Any:
    """Return no checks."""
    from traceconv.align.checks import Causality

    return Causality(())


class Watcher:
    """Note the first failure of a run of pytest, and whether an assertion of a test failed."""

    def __init__(self) -> None:
        self.failed = ""
        self.is_killed = False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
        report = yield
        if report.failed and not self.failed:
            self.failed = item.nodeid
            error = call.excinfo
            self.is_killed = error is not None and error.errisinstance(AssertionError) and _is_in_tests(error)
        return report


def _is_in_tests(error: pytest.ExceptionInfo[BaseException]) -> bool:
    """Return whether an error was raised by a test, and not by the product."""
    return Path(error.traceback[-1].path).is_relative_to(Path(__file__).parent)


def outcome(number: int) -> str:
    """Return how a mutant ends: the test that kills it, or "lives", or "crashes" with the test."""
    mutant = MUTANTS[number]
    apply(mutant)
    watcher = Watcher()
    arguments = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "--tb=no", *mutant.tests]
    sys.stdout = open("/dev/null", "w")  # noqa: SIM115
    code = pytest.main(arguments, plugins=[watcher])
    if not watcher.failed:
        return LIVES if code == pytest.ExitCode.OK else f"{CRASHES}: pytest ended with {code}"
    return watcher.failed if watcher.is_killed else f"{CRASHES}: {watcher.failed}"


def apply(mutant: Mutant) -> None:
    """Replace the function wherever it was imported."""
    module, _, path = mutant.target.partition(":")
    owner: Any = importlib.import_module(f"traceconv.{module}")
    *classes, name = path.split(".")
    for part in classes:
        owner = getattr(owner, part)
    original = getattr(owner, name)

    def replaced(*args: Any, **kwargs: Any) -> Any:
        return mutant.returns(original, *args, **kwargs)

    setattr(owner, name, replaced)
    for other in [other for key, other in sys.modules.items() if key.startswith("traceconv")]:
        for key, value in list(vars(other).items()):
            if value is original:
                setattr(other, key, replaced)


MUTANTS: Sequence[Mutant] = (
    Mutant("align.contradictions:contradiction", lambda *_args, **_kwargs: (None, ())),
    Mutant("align.contradictions:doubted", second),
    Mutant("align.contradictions:_doubt", nothing),
    Mutant("align.contradictions:moved_by_zone", moved_nothing),
    Mutant("align.contradictions:refuse_early_work", nothing),
    Mutant("align.estimates:estimates", without_pairs),
    Mutant("align.collective_hosts:with_hosts_related", unchanged),
    Mutant("align.collective_hosts:_with_hosts_related", unchanged),
    Mutant("align.placement:_refuse_far", nothing),
    Mutant("align.duration_placement:with_durations", second),
    Mutant("align.decide:_overruled", lambda *_args, **_kwargs: (set(), [])),
    Mutant("align.identity:identified", nothing_together),
    Mutant("align.causality:causality", unchecked),
    Mutant("align.causality:believed", unchanged),
    Mutant("align.device_skew:skews_of", lambda _original, inputs: [{} for _ in inputs.traces]),
    Mutant("align.device_skew:allowed_for", second),
    Mutant("align.other_processes:with_others_apart", second),
    Mutant("align.input_warnings:warnings_of_jobs", empty),
    Mutant("align.input_warnings:warnings_of_no_overlap", empty),
    Mutant("align.duplicates:warnings_of_duplicates", empty),
    Mutant("align.sampling_gaps:align_interruptions", avoid_nothing),
    Mutant("align.nesting:possible", nothing),
    Mutant("align.nesting:_narrowed", third),
)


def main(names: Sequence[str]) -> int:
    numbers = [at for at, mutant in enumerate(MUTANTS) if not names or any(name in mutant.target for name in names)]
    failed = 0
    with multiprocessing.get_context("fork").Pool(maxtasksperchild=1) as pool:
        for number, ended in zip(numbers, pool.imap(outcome, numbers), strict=True):
            failed += ended.startswith((LIVES, CRASHES))
            print(f"{MUTANTS[number].target:48} {ended}", flush=True)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

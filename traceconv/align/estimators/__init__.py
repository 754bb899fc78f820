"""The estimators: each says from the events of two clocks how these relate, or why it cannot.

To add one, write a module with a class as `Estimator` describes, and put it into `ESTIMATORS`. They are asked in this
order, from the surest kind of evidence that two traces can have in common to the boldest. What is known beforehand,
however roughly, narrows the search: it turns a weak but right answer into a certain one.
"""

from __future__ import annotations

from typing import Final, Protocol

from traceconv.align.estimate import Method
from traceconv.align.estimators.activity import ActivityEstimator
from traceconv.align.estimators.duplicates import DuplicateEstimator
from traceconv.align.estimators.launches import LaunchEstimator
from traceconv.align.estimators.named_events import NamedEventEstimator
from traceconv.align.inputs import ClockInput
from traceconv.align.names import NameMap
from traceconv.align.pairs import PairEstimate
from traceconv.model.clocks import ClockMap, Verdict


class Estimator(Protocol):
    """Relates two clocks by their events.

    Attributes:
        method: what it compares.
        settles: with these verdicts it settles the matter, and no later estimator is asked. With no verdicts at all,
            none is asked where this one applies.
        explains: where several answers are as good, such as where all are refused, that of the estimator with the least
            number is reported.
    """

    method: Method
    settles: frozenset[Verdict]
    explains: int

    def applies(self, a: ClockInput, b: ClockInput) -> bool:
        """Whether the two have what it compares. Cheap, and may be wrong where `estimate` then says None."""
        ...

    def estimate(self, a: ClockInput, b: ClockInput, known: ClockMap | None, names: NameMap) -> PairEstimate | None:
        """Return how the two relate, or why that cannot be told; None if they have nothing in common to compare.

        Args:
            a, b: the two clocks.
            known: a rough relation from a to b, None if there is none.
            names: which names mean the same work.
        """
        ...


ESTIMATORS: Final[tuple[Estimator, ...]] = (
    DuplicateEstimator(),
    LaunchEstimator(),
    NamedEventEstimator(),
    ActivityEstimator(),
)


def estimate_pair(a: ClockInput, b: ClockInput, known: ClockMap | None, names: NameMap) -> PairEstimate | None:
    """Return what the events of two clocks say; None if they have nothing in common that could say anything.

    The arguments are those of `Estimator.estimate`.
    """
    found: list[tuple[int, PairEstimate]] = []
    for estimator in ESTIMATORS:
        if not estimator.applies(a, b):
            continue
        pair = estimator.estimate(a, b, known, names)
        if pair is not None:
            found.append((estimator.explains, pair))
        if not estimator.settles or (pair is not None and pair.estimate.verdict in estimator.settles):
            break
    return min(found, key=_rank, default=(0, None))[1]


def _rank(answer: tuple[int, PairEstimate]) -> tuple[bool, bool, int]:
    """By which the best answer comes first: accepted ones, and within these and the others what explains most."""
    explains, pair = answer
    verdict = pair.estimate.verdict
    return verdict.refused, verdict is not Verdict.OK, explains

"""Input and output of an estimator.

An estimator gets the events of two clocks and what is known of their relation. It answers with an Estimate: offset,
drift, the region that the evidence allows, residuals, rivals and a verdict. It knows nothing of files or formats.

All times are float64 ns relative to the first time of their clock: small enough to be exact to well below 1 ns.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from traceconv.align.geometry import F64, Chain, Line, Region
from traceconv.model.clocks import FREE_DRIFT, Verdict
from traceconv.model.columns import I32

Array = npt.NDArray[Any]
#: The most rivals that an estimate lists.
MOST_RIVALS = 10


@dataclass(frozen=True, slots=True)
class Events:
    """Intervals on one clock, in order of their start.

    Attributes:
        start: ns from `zero_ns`.
        dur: ns; 0 where unknown.
        kind: the kind of work of each event, numbered as on the other side; only events of one kind match.
        zero_ns: the time on the clock that `start` counts from.
        quantum_ns: the resolution of the times as printed.
        mean: whether durations are means of several runs, which say nothing about one run.
        label: a finer class of each event, numbered for this side alone. Events of one label take about the same time,
            such as those of one operator with one shape. None if only the kind is known.
    """

    start: F64
    dur: F64
    kind: I32
    zero_ns: int
    quantum_ns: float = 1.0
    mean: bool = False
    label: I32 | None = None

    def __len__(self) -> int:
        return len(self.start)

    def take(self, rows: Array | slice) -> Events:
        """Return the chosen events."""
        label = None if self.label is None else self.label[rows]
        return replace(self, start=self.start[rows], dur=self.dur[rows], kind=self.kind[rows], label=label)

    @property
    def labels(self) -> I32:
        """The label of each event; its kind if there are no labels."""
        return self.kind if self.label is None else self.label

    @property
    def end(self) -> F64:
        """The end of each event, ns from zero."""
        return self.start + self.dur

    @property
    def span(self) -> tuple[float, float]:
        """The first start and the last end, ns from zero."""
        return float(self.start[0]), float(np.max(self.end))


def some_of(rows: Array, most: int) -> Array:
    """Return the rows, or as many of them at random as `most` allows, in order.

    A choice at equal distances could follow the period of the workload.
    """
    if len(rows) <= most:
        return rows
    chosen: Array = np.sort(np.random.default_rng(0).choice(rows, most, replace=False))
    return chosen


@dataclass(frozen=True, slots=True)
class Samples:
    """Instants at which a thread or device was seen busy or idle.

    Attributes:
        t: ns from `zero_ns`, ascending.
        busy: whether it was busy.
        zero_ns: the time on the clock that `t` counts from.
    """

    t: F64
    busy: Array
    zero_ns: int


@dataclass(frozen=True, slots=True)
class Bins:
    """The deltas of a counter, each between two times.

    Attributes:
        edge: ns from `zero_ns`, ascending, one more than `amount`.
        amount: the count between edge i and edge i + 1.
        zero_ns: the time on the clock that `edge` counts from.
    """

    edge: F64
    amount: F64
    zero_ns: int


@dataclass(frozen=True, slots=True)
class SampledThreads:
    """Threads that read one clock and were sampled on another one.

    Attributes:
        threads: for each thread the times of its readings, ns from `zero_reads_ns`, and of its samples, ns from
            `zero_ns`; both ascend.
        zero_reads_ns: the zero of the readings, on their clock.
        zero_ns: the zero of the samples, on their clock.
        quantum_ns: the resolution of the readings as printed.
    """

    threads: tuple[tuple[F64, F64], ...]
    zero_reads_ns: int
    zero_ns: int
    quantum_ns: float = 1.0

    @property
    def period(self) -> float:
        """The usual time between two samples of a thread, ns."""
        return max(float(np.median(np.concatenate([np.diff(samples) for _, samples in self.threads]))), 1.0)


@dataclass(frozen=True, slots=True)
class Prior:
    """The known limits of the relation y = x + offset + drift * (x - x0), relative to the zeros.

    Attributes:
        low, high: the least and greatest offset at x0, ns; infinite if not known.
        max_drift: the greatest drift on either side, as a ratio.
    """

    low: float = -np.inf
    high: float = np.inf
    max_drift: float = FREE_DRIFT

    @property
    def known(self) -> bool:
        """Whether the offset has a bound."""
        return bool(np.isfinite(self.low) and np.isfinite(self.high))


@dataclass(frozen=True, slots=True)
class Residuals:
    """How well matched events agree, ns."""

    n: int
    median: float
    p95: float
    p99: float

    @classmethod
    def of(cls, values: F64) -> Residuals:
        """Return the spread of the differences, signed or not."""
        if not len(values):
            return cls(0, 0.0, 0.0, 0.0)
        size = np.abs(values)
        return cls(len(values), *(float(np.percentile(size, share)) for share in (50, 95, 99)))


@dataclass(frozen=True, slots=True)
class Rival:
    """Another offset at which the traces fit."""

    offset_ns: float
    score: float

    @staticmethod
    def listed(places: Iterable[tuple[float, float]]) -> tuple[Rival, ...]:
        """Return the best rivals from offsets and their scores, as many as an estimate lists."""
        return tuple(Rival(*place) for place in islice(places, MOST_RIVALS))


class Method(enum.StrEnum):
    """The kind of evidence of an estimate. The values stand in reports."""

    LAUNCHES = "launches and their kernels"
    SEQUENCE = "sequence of named events"
    DURATIONS = "sequence of durations"
    ACTIVITY = "activity"
    SAMPLING_GAPS = "sampling interrupts"
    DUPLICATE = "the same recording, given twice"

    @property
    def compared(self) -> str:
        """The compared evidence, in words for users."""
        return _COMPARED[self]


_COMPARED = {
    Method.LAUNCHES: "kernels and the calls that launched them",
    Method.SEQUENCE: "the same events in both",
    Method.ACTIVITY: "the same activity in both",
    Method.SAMPLING_GAPS: "the gaps around sampling interrupts",
    Method.DURATIONS: "durations of the same work",
    Method.DUPLICATE: "the same recording, given twice",
}


@dataclass(frozen=True, slots=True)
class Estimate:
    """The relation of clock x to clock y, relative to the zeros of the two.

    Attributes:
        method: the kind of evidence.
        verdict: how far it can be believed.
        reason: a sentence that gives the reason, and for a refusal what would settle it.
        chain: the lines, each with the region that the evidence allows; mostly one.
        matches: the number of pairs or samples that it uses.
        dropped: the number of those that contradict it and were left out.
        wrong: the share of the pairs that may be wrong, and so may contradict the bounds.
        residuals: of the pairs.
        margin: how far it is ahead of the best rival, in the unit of the estimator (z or nats).
        rivals: the best other offsets, the best first.
        landscape: offsets and their scores, for the picture.
        pairs: the matched rows of x and of y at the best offset, also if it is refused.
        residual_times, residual_values: of the pairs, for the picture, ns.
    """

    method: Method
    verdict: Verdict
    reason: str
    chain: Chain = field(default_factory=Chain)
    matches: int = 0
    dropped: int = 0
    residuals: Residuals = field(default_factory=lambda: Residuals(0, 0.0, 0.0, 0.0))
    margin: float = 0.0
    rivals: tuple[Rival, ...] = ()
    landscape: tuple[F64, F64] | None = None
    pairs: tuple[Array, Array] | None = None
    residual_times: F64 | None = None
    residual_values: F64 | None = None
    wrong: float = 0.0

    @property
    def line(self) -> Line:
        """The line, or the first of several."""
        return self.chain.lines[0]

    @property
    def region(self) -> Region | None:
        """All lines that the evidence allows; None if there are several lines or the estimator gives no region."""
        return self.line.region if len(self.chain.lines) == 1 else None


#: An explanation for recordings of which little fits.
OTHER_RUN = "perhaps two runs, two parts of one run, or a clock that was set in between"


def insufficient(method: Method, reason: str) -> Estimate:
    """Return an estimate that is refused for lack of evidence, with the reason."""
    return Estimate(method, Verdict.INSUFFICIENT, reason)

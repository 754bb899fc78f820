"""Input and output of an estimator.

An estimator gets the events of two clocks and what is known of their relation. It answers with an Estimate: offset,
drift, the region that the evidence allows, residuals, rivals and a verdict. It knows nothing of files or formats.

All times are float64 ns relative to the first time of their clock: small enough to be exact to well below 1 ns.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field
from msgspec.structs import replace

from traceconv.align.domains import Key
from traceconv.align.geometry import F64, Chain, Line, Region
from traceconv.align.inputs import ClockInput
from traceconv.io.shown import listed
from traceconv.model.clocks import DRIFT_UNIT, FREE_DRIFT, Bend, ClockMap, Provenance, Step, Verdict
from traceconv.model.columns import I32
from traceconv.model.numbers import earlier_or_later

Array = npt.NDArray[Any]
MOST_RIVALS = 10  # The most rivals that an estimate lists.


class Events(Struct, frozen=True):
    """Intervals on one clock, in order of their start.

    Attributes:
        start: ns from `zero_ns`.
        dur: ns; 0 where unknown.
        kind: the kind of work of each event, numbered as on the other side; only events of one kind match.
        zero_ns: the time on the clock that `start` counts from.
        quantum_ns: the resolution of the times as printed.
        label: a finer class of each event, numbered for this side alone. Events of one label take about the same time,
            such as those of one operator with one shape. None if only the kind is known.
    """

    start: F64
    dur: F64
    kind: I32
    zero_ns: int
    quantum_ns: float = 1.0
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

    def scaled(self, rate: float) -> Events:
        """Return them on a clock that runs slower by this ratio."""
        return replace(self, start=self.start / rate, dur=self.dur / rate)


def some_of(rows: Array, most: int) -> Array:
    """Return the rows, or as many of them at random as `most` allows, in order.

    A choice at equal distances could follow the period of the workload.
    """
    if len(rows) <= most:
        return rows
    chosen: Array = np.sort(np.random.default_rng(0).choice(rows, most, replace=False))
    return chosen


class Samples(Struct, frozen=True):
    """Instants at which a thread or device was seen busy or idle.

    Attributes:
        t: ns from `zero_ns`, ascending.
        busy: whether it was busy.
        zero_ns: the time on the clock that `t` counts from.
    """

    t: F64
    busy: Array
    zero_ns: int

    def scaled(self, rate: float) -> Samples:
        """Return them on a clock that runs slower by this ratio."""
        return replace(self, t=self.t / rate)


class Bins(Struct, frozen=True):
    """The deltas of a counter, each between two times.

    Attributes:
        edge: ns from `zero_ns`, ascending, one more than `amount`.
        amount: the count between edge i and edge i + 1.
        zero_ns: the time on the clock that `edge` counts from.
    """

    edge: F64
    amount: F64
    zero_ns: int

    def scaled(self, rate: float) -> Bins:
        """Return them on a clock that runs slower by this ratio."""
        return replace(self, edge=self.edge / rate)


class SampledThreads(Struct, frozen=True):
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


class Prior(Struct, frozen=True):
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


class Residuals(Struct, frozen=True):
    """How well matched events agree, ns."""

    n: int
    median: float
    p95: float
    p99: float

    @classmethod
    def of_differences(cls, values: F64) -> Residuals:
        """Return the spread of the differences, signed or not."""
        if not len(values):
            return cls(0, 0.0, 0.0, 0.0)
        size = np.abs(values)
        return cls(len(values), *(float(np.percentile(size, share)) for share in (50, 95, 99)))


class Rival(Struct, frozen=True):
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


class Estimate(Struct, frozen=True):
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


# -- The estimate for two clocks of inputs, with the maps between them that follow from it ---------------------------

_MOST_NAMED = 4  # Messages name this many rivals at most.


class PairEstimate(Struct, frozen=True, eq=False):  # arrays have no equality: it is that of the object
    """What the events of two clocks say about their relation.

    Attributes:
        a, b: the two clocks.
        estimate: the answer of an estimator. Its clock x, the one with the outer events, is a; or b, if `swapped`.
        zero_a, zero_b: the times of a and b that the numbers of the estimate count from, ns.
        clock_map: the map from a to b, with the bound over all events of a.
        back_bound_ns: the bound of the map from b to a over all events of b; None if it is not known.
        known: the map from a to b that was known before; None if there was none.
        swapped: whether clock x of the estimate is b instead of a.
        rows: the matched slices, as rows in the traces of a and b; None if the estimator matches no slices.
        taken: whether the alignment uses the estimate.
    """

    a: ClockInput
    b: ClockInput
    estimate: Estimate
    zero_a: int
    zero_b: int
    clock_map: ClockMap
    back_bound_ns: int | None = None
    known: ClockMap | None = None
    swapped: bool = False
    rows: tuple[Array, Array] | None = None
    taken: bool = False

    @property
    def keys(self) -> tuple[Key, Key]:
        """The numbers of the two clocks."""
        return self.a.key, self.b.key

    def carries(self, clock_map: ClockMap) -> bool:
        """Return whether a map rests on this estimate."""
        return self.taken and frozenset(self.keys) in clock_map.rests_on

    @property
    def has_offset(self) -> bool:
        """Whether the estimate has an offset, even a refused one."""
        return not self.estimate.verdict.unusable or self.estimate.landscape is not None

    @property
    def bound_ns(self) -> int:
        """How wrong the map from a to b is at most, over the events of a, ns."""
        return self.clock_map.uncertainty

    @property
    def back(self) -> ClockMap:
        """The map from b to a."""
        return replace(self.clock_map.inverse(), bound_ns=self.back_bound_ns)

    def rival_offsets(self) -> list[int]:
        """Return the other offsets from clock x to clock y that fit, each less the best one, ns."""
        return [round(rival.offset_ns - self.estimate.line.offset) for rival in self.estimate.rivals]

    def rival_moves(self, moved: ClockInput) -> list[int]:
        """Return by how much one of the two clocks is later at each rival than at the best offset, ns.

        The other clock is at rest. A greater offset from x to y moves the events of x later, and those of y earlier.
        """
        x = self.b if self.swapped else self.a
        return [offset if moved.key == x.key else -offset for offset in self.rival_offsets()]

    def why_refused(self, moved: ClockInput) -> str:
        """Return the reason of the verdict, with the strongest rivals as moves of one of the two clocks."""
        rivals = self.rival_moves(moved)[:_MOST_NAMED]
        if not rivals:
            return self.estimate.reason
        moves = listed(map(earlier_or_later, rivals))
        return f"{self.estimate.reason}; other offsets of {moved.name}, relative to the best one: {moves}"


#: Compares two clocks, the first one as clock x. The map is what is known from the first to the second.
OneWay = Callable[[ClockInput, ClockInput, ClockMap | None], Sequence[PairEstimate]]


def pair_estimate(
    a: ClockInput, b: ClockInput, estimate: Estimate, zeros: tuple[int, int], known: ClockMap | None
) -> PairEstimate:
    """Return the estimate for two clocks, the first of which is its clock x, with the maps in both directions.

    Args:
        zeros: the times of a and b that the numbers of the estimate count from, ns.
        known: the map from a to b that was known before.
    """
    chain = estimate.chain
    jumps = any(line.doubt is not None for line in chain.lines)
    # Without a jump, the error is greatest at the first or the last time. The zero is taken out of the integers: times
    # since 1970 are not exact as float64.
    all_times = (np.sort(side.times()) if jumps else np.array(side.span, np.int64) for side in (a, b))
    times, times_b = ((ts - zero).astype(np.float64) for ts, zero in zip(all_times, zeros, strict=True))
    first, *later = chain.lines
    start = _in_integers(first, first.x0, zeros)
    clock_map = ClockMap(
        start.offset_ns,
        _bound(chain, times),
        (Step(estimate.method.compared, Provenance.ESTIMATED),),
        estimate.verdict,
        start.drift,
        start.at_ns,
        tuple(_in_integers(line, line.begin, zeros) for line in later),
        rests_on=rests_on(a, b),
    )
    return PairEstimate(a, b, estimate, *zeros, clock_map, _bound(chain, chain.back(times_b, in_order=True)), known)


def swapped(pair: PairEstimate) -> PairEstimate:
    """Return the same estimate with a and b exchanged."""
    return replace(
        pair,
        a=pair.b,
        b=pair.a,
        zero_a=pair.zero_b,
        zero_b=pair.zero_a,
        clock_map=pair.back,
        back_bound_ns=pair.clock_map.bound_ns,
        known=pair.known.inverse() if pair.known else None,
        swapped=not pair.swapped,
        rows=(pair.rows[1], pair.rows[0]) if pair.rows else None,
    )


def relined(pair: PairEstimate, line: Line) -> PairEstimate:
    """Return the estimate with another line, which its region holds."""
    if pair.swapped:
        return swapped(relined(swapped(pair), line))
    estimate = replace(pair.estimate, chain=Chain((line,)))
    return replace(pair_estimate(pair.a, pair.b, estimate, (pair.zero_a, pair.zero_b), pair.known), rows=pair.rows)


def in_both_orders(one_way: OneWay, a: ClockInput, b: ClockInput, known: ClockMap | None) -> list[PairEstimate]:
    """Return the estimates with a as clock x, then those with b as clock x."""
    return [*one_way(a, b, known), *map(swapped, one_way(b, a, known.inverse() if known else None))]


def common_times(a: ClockInput, b: ClockInput, known: ClockMap | None) -> tuple[int, int]:
    """Return the first and the last time of clock a at which both have events, ns.

    Without a map from a to b, it is the whole span of a.
    """
    first, last = a.span
    if known is None:
        return first, last
    first_b, last_b = map(known.inverse().at, b.span)
    return max(first, first_b), min(last, last_b)


def refused_unless_narrower(pair: PairEstimate, give: str, them: str) -> PairEstimate:
    """Return the estimate, refused if its bound is not smaller than the one that was known before.

    Args:
        give, them: for the reason, what gives the bound, and the pronoun for it.
    """
    known = pair.known.bound_ns if pair.known else None
    if known is None or pair.estimate.verdict.unusable or pair.bound_ns < known:
        return pair
    reason = f"{give} ±{pair.bound_ns / 1e3:.0f} µs, no better than what is known without {them}"
    return replace(pair, estimate=insufficient(pair.estimate.method, reason))


def is_accepted(estimate: Estimate, *, same_run: bool = False) -> bool:
    """Return whether an estimate is certain enough, also if the user states that all inputs are of one run."""
    return estimate.verdict is Verdict.OK or (same_run and estimate.verdict is Verdict.UNVERIFIED)


def stated_outer(a: ClockInput, b: ClockInput) -> ClockInput | None:
    """Return the clock whose slices lie around those of the other one, as the formats state; None if they do not."""
    if a.layer is None or b.layer is None or a.layer is b.layer:
        return None
    return a if a.layer < b.layer else b


def rests_on(a: ClockInput, b: ClockInput) -> frozenset[frozenset[Key]]:
    """Return the value of `ClockMap.rests_on` for a map that is estimated from two clocks."""
    return frozenset({frozenset({a.key, b.key})})


def _in_integers(line: Line, at: float, zeros: tuple[int, int]) -> Bend:
    """Return a line in integer ns, with the offset that it has at a time of clock a (ns from the zero of a)."""
    offset = line.offset + line.drift * (round(at) - line.x0)
    return Bend(zeros[0] + round(at), round(offset) + zeros[1] - zeros[0], round(line.drift / DRIFT_UNIT))


def _bound(chain: Chain, x: F64) -> int | None:
    """Return how wrong a relation is at most over the span of some times, ns; None without a region."""
    if not chain.bounded:
        return None
    begins = np.array(chain.begins)
    begins = begins[(begins > x[0]) & (begins < x[-1])]
    around = np.concatenate((begins, np.nextafter(begins, -np.inf)))  # both sides of each line's start
    for line in chain.lines:  # beside a jump, an event may be on either side of it
        around = around[~line.in_doubt(around)]
    x = np.concatenate((x, around))
    low, high = chain.bounds(x)
    moved = chain.map(x) - x
    return int(np.ceil(max(float(np.max(high - moved)), float(np.max(moved - low))))) + 1

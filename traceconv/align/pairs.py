"""What the events of two clocks say about their relation, in times of the two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from traceconv.align.domains import Key
from traceconv.align.estimate import Array, Estimate, refused
from traceconv.align.geometry import F64, Chain, Line
from traceconv.align.inputs import ClockInput
from traceconv.align.messages import Message, Text
from traceconv.model.clocks import DRIFT_UNIT, Bend, ClockMap, Provenance, Step, Verdict

#: So many rivals are named.
_MOST_NAMED = 4


@dataclass(frozen=True, slots=True)
class PairEstimate:
    """What the events of two clocks say about their relation.

    Attributes:
        a, b: the two.
        estimate: the answer, with a as clock x, the outer one; or with b, if it is turned.
        zero_a, zero_b: what its numbers are relative to, ns.
        way: the map from a to b that follows, with the bound over all events of a.
        back_bound_ns: the bound of the way back over all events of b; None: not known.
        known: what was known before, as a map from a to b; None if nothing was.
        turned: whether clock x of the estimate, the one with the outer events, is b instead of a.
        rows: the matched slices, as rows in the traces of a and b; None if the estimate does not tell.
        taken: whether the two are put together on it.
    """

    a: ClockInput
    b: ClockInput
    estimate: Estimate
    zero_a: int
    zero_b: int
    way: ClockMap
    back_bound_ns: int | None = None
    known: ClockMap | None = None
    turned: bool = False
    rows: tuple[Array, Array] | None = None
    taken: bool = False

    @property
    def keys(self) -> tuple[Key, Key]:
        """The numbers of the two clocks."""
        return self.a.key, self.b.key

    def carries(self, found: ClockMap) -> bool:
        """Return whether a map rests on it."""
        return self.taken and frozenset(self.keys) in found.rests_on

    @property
    def found(self) -> bool:
        """Whether it names a place, be it a refused one."""
        return not self.estimate.verdict.refused or self.estimate.landscape is not None

    @property
    def bound_ns(self) -> int:
        """How wrong the map is at most, over the events of a."""
        return self.way.uncertainty

    @property
    def back(self) -> ClockMap:
        """The way from b to a."""
        return replace(self.way.inverse(), bound_ns=self.back_bound_ns)

    def bound_of(self, side: ClockInput) -> int | None:
        """Return how wrong the events of one of the two clocks are at most where they are moved to the other one."""
        return self.way.bound_ns if side.key == self.a.key else self.back_bound_ns

    def rival_offsets(self) -> list[int]:
        """Return the other places where the traces fit, as differences to the best one, ns."""
        return [round(rival.offset_ns - self.estimate.line.offset) for rival in self.estimate.rivals]

    def why_refused(self) -> Message | str:
        """Return the reason, with the strongest rivals."""
        rivals = self.rival_offsets()[:_MOST_NAMED]
        return Text.OTHER_PLACES(reason=self.estimate.reason, rivals=rivals) if rivals else self.estimate.reason


#: What some evidence says with its first clock as clock x, by what is known from the first one to the second one.
OneWay = Callable[[ClockInput, ClockInput, ClockMap | None], Sequence[PairEstimate]]


def made(
    a: ClockInput, b: ClockInput, estimate: Estimate, zeros: tuple[int, int], known: ClockMap | None
) -> PairEstimate:
    """Return an estimate, whose numbers are relative to zeros, with the maps that follow."""
    way = _way(estimate, *zeros)
    jumps = any(line.doubt is not None for line in estimate.chain.lines)
    # The first and the last time, or every one, ns from a zero: times since 1970 are not exact as float64.
    all_times = (np.sort(side.times()) if jumps else np.array(side.span(), np.int64) for side in (a, b))
    times, times_b = ((ts - zero).astype(np.float64) for ts, zero in zip(all_times, zeros, strict=True))
    back_bound = _bound(estimate.chain, estimate.chain.back(times_b, in_order=True))
    way = replace(way, bound_ns=_bound(estimate.chain, times), rests_on=rests_on(a, b))
    return PairEstimate(a, b, estimate, *zeros, way, back_bound, known)


def turned(pair: PairEstimate) -> PairEstimate:
    """Return the same estimate, seen from the other side."""
    known = pair.known.inverse() if pair.known else None
    rows = (pair.rows[1], pair.rows[0]) if pair.rows else None
    return replace(
        pair,
        a=pair.b,
        b=pair.a,
        zero_a=pair.zero_b,
        zero_b=pair.zero_a,
        way=pair.back,
        back_bound_ns=pair.way.bound_ns,
        known=known,
        turned=not pair.turned,
        rows=rows,
    )


def both_ways(one_way: OneWay, a: ClockInput, b: ClockInput, known: ClockMap | None) -> list[PairEstimate]:
    """Return what is found with a as clock x, then what is found with b as clock x."""
    return [*one_way(a, b, known), *map(turned, one_way(b, a, known.inverse() if known else None))]


def common_times(a: ClockInput, b: ClockInput, known: ClockMap | None) -> tuple[int, int]:
    """Return the first and the last time of clock a at which both have events, as far as is known, ns."""
    first, last = a.span()
    if known is None:
        return first, last
    first_b, last_b = map(known.inverse().at, b.span())
    return max(first, first_b), min(last, last_b)


def narrowing(pair: PairEstimate, no_more: Text) -> PairEstimate:
    """Return the estimate, refused with a reason if it tells no more than what was known."""
    known = pair.known.bound_ns if pair.known else None
    if known is None or pair.estimate.verdict.refused or pair.bound_ns < known:
        return pair
    reason = no_more(bound=pair.bound_ns)
    return replace(pair, estimate=refused(pair.estimate.method, Verdict.INSUFFICIENT, reason))


def is_accepted(estimate: Estimate, *, same_run: bool = False) -> bool:
    """Return whether traces are put together on it; `same_run`: the user says that they are of one run."""
    return estimate.verdict is Verdict.OK or (same_run and estimate.verdict is Verdict.UNVERIFIED)


def stated_outer(a: ClockInput, b: ClockInput) -> ClockInput | None:
    """Return the side around the other one, as their formats say; None if they say nothing, or the same of both."""
    if a.layer is None or b.layer is None or a.layer is b.layer:
        return None
    return a if a.layer < b.layer else b


def rests_on(a: ClockInput, b: ClockInput) -> frozenset[frozenset[Key]]:
    """Return what a map rests on that is estimated from two clocks."""
    return frozenset({frozenset({a.key, b.key})})


def _way(estimate: Estimate, zero_a: int, zero_b: int) -> ClockMap:
    """Return the map that an estimate means, in integers."""
    begin, *later = estimate.chain.lines
    first = _line(begin, begin.x0, zero_a, zero_b)
    bends = tuple(_line(line, line.begin, zero_a, zero_b) for line in later)
    step = Step(estimate.method.compared, Provenance.ESTIMATED)
    return ClockMap(first.offset_ns, None, (step,), estimate.verdict, first.drift, first.at_ns, bends)


def _line(line: Line, at: float, zero_a: int, zero_b: int) -> Bend:
    """Return a line in integers, with the offset that holds at a time of clock a from its zero."""
    offset = line.offset + line.drift * (round(at) - line.x0)
    return Bend(zero_a + round(at), round(offset) + zero_b - zero_a, round(line.drift / DRIFT_UNIT))


def _bound(chain: Chain, x: F64) -> int | None:
    """Return how wrong a relation is at most at times of clock x, and between the first and the last.

    None without a region.

    Beside a jump it may be as wrong as that is high, if there is an event whose side of it nothing tells.
    """
    if not chain.bounded:
        return None
    begins = np.array(chain.begins)
    begins = begins[(begins > x[0]) & (begins < x[-1])]
    around = np.concatenate((begins, np.nextafter(begins, -np.inf)))
    for line in chain.lines:
        around = around[~line.in_doubt(around)]
    x = np.concatenate((x, around))
    low, high = chain.bounds(x)
    moved = chain.map(x) - x
    return int(np.ceil(max(float(np.max(high - moved)), float(np.max(moved - low))))) + 1

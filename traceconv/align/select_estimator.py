"""The ladder of evidence for two clocks that nothing relates, or that are related only roughly.

From the surest kind of evidence that two traces have in common to the boldest: causes in one and their effects in the
other, then the same sequence of named events, then the same activity. What is known beforehand, however roughly,
narrows the search: it turns a weak but right answer into a certain one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

import numpy as np

from traceconv.align.activity import align_bins, align_samples
from traceconv.align.activity_views import bins_of, busy_slices, libraries_of, sampled_threads, samples_of
from traceconv.align.drift_correction import Known
from traceconv.align.duplicate_inputs import same_recording
from traceconv.align.estimate import (
    Array,
    Bins,
    Estimate,
    Events,
    Method,
    Piece,
    Prior,
    SampledThreads,
    Samples,
    insufficient,
    refused,
)
from traceconv.align.features import SharedWork, nested_work, shared_work
from traceconv.align.geometry import F64
from traceconv.align.launches import align_launches, launches_of
from traceconv.align.messages import Text
from traceconv.align.names import NameMap
from traceconv.align.sampling_gaps import align_interruptions
from traceconv.align.sequences import align_sequences
from traceconv.clocks import DRIFT_UNIT, FREE_DRIFT, Bend, ClockMap, Provenance, Step, Verdict
from traceconv.ir.trace import I64, Layer, Trace
from traceconv.times import earlier_or_later

_MOST_VIEWS = 4
#: What is known is searched as a whole if it is no wider than this on either side, in pieces.
_NARROW_NS = 12_000_000
_PIECE_NS = 2_000_000
#: So far from where labels say, on either side, interruptions are looked at: where labels were certain, of 24
#: recordings the worst was off by 60 µs, and a quarter of a millisecond off begins what looks alike at 4 kHz.
_CERTAIN_NS = 150_000
_AROUND_NS = 400_000
_Seen = TypeVar("_Seen", Samples, Bins)


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """A clock of an input, with the events on it. Each is made once and is equal to itself only.

    Attributes:
        index: which input.
        clock: which of its clocks.
        trace: the input.
    """

    index: int
    clock: int
    trace: Trace

    @property
    def name(self) -> str:
        """The file."""
        return self.trace.sources[0].name

    @property
    def layer(self) -> Layer | None:
        """Where in a stack of software its slices were written down, if its format says so."""
        return self.trace.sources[0].layer

    @property
    def key(self) -> tuple[int, int]:
        """The numbers of the input and of the clock."""
        return self.index, self.clock

    def span(self) -> tuple[int, int]:
        """The first and the last time on this clock, ns."""
        times = self.times()
        return int(np.min(times)), int(np.max(times))

    def times(self) -> I64:
        """All times on this clock, those of the ends of slices, too, ns."""
        clocks = np.array([int(track.clock) for track in self.trace.tracks] or [0])
        times = [table.ts[clocks[table.track] == self.clock] for _, table in self.trace.timed_tables()]
        slices = self.trace.slices
        return np.concatenate([*times, (slices.ts + slices.dur)[clocks[slices.track] == self.clock]])


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

    a: Side
    b: Side
    estimate: Estimate
    zero_a: int
    zero_b: int
    way: ClockMap
    back_bound_ns: int | None = None
    known: ClockMap | None = None
    turned: bool = False
    rows: tuple[Array, Array] | None = None
    taken: bool = False

    def carries(self, found: ClockMap) -> bool:
        """Whether a map rests on it."""
        return self.taken and frozenset({self.a.key, self.b.key}) in found.rests_on

    @property
    def found(self) -> bool:
        """Whether it names a place, be it a refused one."""
        return not self.estimate.verdict.refused or self.estimate.landscape is not None

    @property
    def bound_ns(self) -> int:
        """How wrong the map is at most, over the events of a."""
        return self.way.bound_ns if self.way.bound_ns is not None else 2**62

    @property
    def back(self) -> ClockMap:
        """The way from b to a."""
        return replace(self.way.inverse(), bound_ns=self.back_bound_ns)

    def bound_of(self, side: Side) -> int | None:
        """How wrong the events of one of the two sides are at most where they are moved to the other one."""
        return self.way.bound_ns if side.key == self.a.key else self.back_bound_ns

    def rival_offsets(self) -> list[int]:
        """The other places where the traces fit, as differences to the best one, ns."""
        return [round(rival.offset_ns - self.estimate.offset_ns) for rival in self.estimate.rivals]

    def why_refused(self) -> str:
        """The reason, with the strongest rivals."""
        rivals = ", ".join(earlier_or_later(offset) for offset in self.rival_offsets()[:4])
        return f"{self.estimate.reason}{f'; other places, seen from the best one: {rivals}' if rivals else ''}"


def estimate_pair(a: Side, b: Side, known: ClockMap | None, names: NameMap) -> PairEstimate | None:
    """What the events say about two clocks; None if they have nothing in common that could say anything.

    Args:
        a, b: the two clocks.
        known: a rough relation from a to b, None if there is none.
        names: which names mean the same work.
    """
    if same_recording(a.trace, b.trace):
        return _the_same(a, b, known) if a.clock == b.clock else None
    by_launches = _by_launches(a, b, known)
    if by_launches is not None and by_launches.estimate.verdict is Verdict.OK:
        return by_launches
    by_sequence = _by_sequence(a, b, known, names)
    if by_sequence is not None and not by_sequence.estimate.verdict.refused:
        return by_sequence
    by_activity = _by_activity(a, b, known)
    if by_activity is not None and not by_activity.estimate.verdict.refused:
        return by_activity
    if by_launches is not None and not by_launches.estimate.verdict.refused:
        return by_launches
    return by_sequence or by_launches or by_activity


def _by_launches(a: Side, b: Side, known: ClockMap | None) -> PairEstimate | None:
    """What calls in one say about the work of a device in the other one."""
    back = known.inverse() if known else None
    found = [_launches(a, b, known), *map(_turned, filter(None, [_launches(b, a, back)]))]
    pairs = [pair for pair in found if pair is not None]
    return min(pairs, key=lambda pair: pair.estimate.verdict.refused, default=None)


def _launches(a: Side, b: Side, known: ClockMap | None) -> PairEstimate | None:
    pairs = launches_of(a.trace, a.clock, b.trace, b.clock)
    if pairs is None:
        return None
    zeros = pairs.zero_x, pairs.zero_y
    before = Known.of(known, _common(a, b, known), zeros)
    estimate = align_launches(before.evened(pairs), before.prior)
    return _narrowing(_made(a, b, before.restored(estimate), zeros, known))


def _the_same(a: Side, b: Side, known: ClockMap | None) -> PairEstimate:
    """One recording twice: equal times are one instant."""
    events = sum(len(table.ts) for _, table in a.trace.timed_tables())
    estimate = Estimate(Method.DUPLICATE, Verdict.OK, Text.ALL_EQUAL(events=events), matches=events)
    way = ClockMap(0, 0, (Step(Method.DUPLICATE, Provenance.ESTIMATED),), rests_on=_of(a, b))
    return PairEstimate(a, b, estimate, 0, 0, way, 0, known)


def _by_activity(a: Side, b: Side, known: ClockMap | None) -> PairEstimate | None:
    """What samples or counters of one say about the busy times of the other: the first that is certain, else the best.

    There may be several views of a recording (threads, runtimes, counters). If two of them are certain of different
    places, none is believed.
    """
    back = known.inverse() if known else None
    found = [*_activity(a, b, known), *map(_turned, _activity(b, a, back))]
    certain = [pair for pair in found if not pair.estimate.verdict.refused]
    middle = sum(a.span()) // 2
    if any(abs(pair.way.at(middle) - certain[0].way.at(middle)) > 2 * _apart(pair, certain[0]) for pair in certain):
        reason = Text.VIEWS_APART()
        return replace(certain[0], estimate=refused(certain[0].estimate.method, Verdict.AMBIGUOUS, reason))
    best = certain[0] if certain else max(found, key=lambda pair: pair.estimate.margin, default=None)
    return best if best is None else _narrowing(best)


def _narrowing(pair: PairEstimate) -> PairEstimate:
    """The estimate, refused if it tells no more than what was known."""
    known = pair.known.bound_ns if pair.known else None
    if known is None or pair.estimate.verdict.refused or pair.bound_ns < known:
        return pair
    by_launches = pair.estimate.method is Method.LAUNCHES
    no_more = Text.LAUNCHES_TELL_NO_MORE if by_launches else Text.ACTIVITY_TELLS_NO_MORE
    return replace(pair, estimate=refused(pair.estimate.method, Verdict.INSUFFICIENT, no_more(bound=pair.bound_ns)))


def _apart(one: PairEstimate, other: PairEstimate) -> int:
    return one.bound_ns + other.bound_ns


def _activity(a: Side, b: Side, known: ClockMap | None) -> list[PairEstimate]:
    """Busy times of a against each view of what b saw; the surest first."""
    slices = busy_slices(a.trace, a.clock)
    if slices is None:
        return []
    labelled, counted = samples_of(b.trace, b.clock, libraries_of(a.trace)), bins_of(b.trace, b.clock)
    by_samples = [_pair(a, b, slices, seen, known, align_samples) for seen in labelled[:_MOST_VIEWS]]
    by_bins = [_pair(a, b, slices, seen, known, align_bins) for seen in counted[:_MOST_VIEWS]]
    return [*_interruptions(a, b, known, by_samples), *by_samples, *by_bins]


def _interruptions(a: Side, b: Side, known: ClockMap | None, rough: list[PairEstimate]) -> list[PairEstimate]:
    """Where the samples of b keep away from the slices of a: within what is known, else near what the labels say."""
    narrow = known if known is not None and known.bound_ns is not None and known.bound_ns <= _NARROW_NS else None
    certain = [pair for pair in rough if not pair.estimate.verdict.refused and _half_width(pair) <= _AROUND_NS]
    found = []
    for sampled in sampled_threads(a.trace, a.clock, b.trace, b.clock):
        # What is known may span some sampling periods, which look alike, where labels tell one from the next.
        tries = [_within(sampled, narrow)] if narrow else []
        tries += [_near(sampled, certain, certain=True)] if certain else []
        tries = tries or [_near(sampled, rough, certain=False)]
        for windows in filter(None, tries):
            estimate = align_interruptions(sampled, windows, FREE_DRIFT, hard=bool(narrow or certain))
            found.append(_made(a, b, estimate, (sampled.zero_reads_ns, sampled.zero_ns), known))
            if not estimate.verdict.refused:
                break
    return found


def _half_width(pair: PairEstimate) -> float:
    """How far from the estimate the offset may be in the middle of the evidence, ns: a drift adds to it elsewhere."""
    region = pair.estimate.region
    return np.inf if region is None else region.width(region.x0) / 2


def _offset(sampled: SampledThreads, way: ClockMap) -> float:
    """What a map adds to the readings in the middle of the samples, both from their zeros."""
    middle = sampled.zero_ns + round(max(float(np.median(samples)) for _, samples in sampled.threads))
    return float(middle - way.inverse().at(middle) - sampled.zero_ns + sampled.zero_reads_ns)


def _within(sampled: SampledThreads, known: ClockMap) -> list[tuple[float, float]]:
    """All offsets that are possible by what is known."""
    offset, bound = _offset(sampled, known), known.bound_ns or 0
    pieces = max(1, -(-2 * bound // _PIECE_NS))
    return list(pairwise(np.linspace(offset - bound, offset + bound, pieces + 1).tolist()))


def _near(sampled: SampledThreads, rough: list[PairEstimate], *, certain: bool) -> list[tuple[float, float]]:
    """The offsets around those that labels find good: the best ones if they are certain of them, else all."""
    around = [
        (_offset(sampled, pair.way) + away, max(_CERTAIN_NS, _half_width(pair)) if certain else _AROUND_NS)
        for pair in rough
        if pair.estimate.landscape is not None
        for away in (0, *(() if certain else pair.rival_offsets()))
    ]
    windows: list[tuple[float, float]] = []
    for low, high in sorted((place - reach, place + reach) for place, reach in around):
        if windows and low <= windows[-1][1]:
            low, last = windows.pop()
            high = max(high, last)
        windows.append((low, high))
    return windows


def _by_sequence(a: Side, b: Side, known: ClockMap | None, names: NameMap) -> PairEstimate | None:
    views = shared_work(a.trace, a.clock, b.trace, b.clock, names)
    if views is None:
        return None
    stated = stated_outer(a, b)
    if stated is not None and Layer.DEVICE in (a.layer, b.layer):
        return _made(a, b, insufficient(Method.SEQUENCE, Text.QUEUED()), (0, 0), known)
    outer = stated or (a if _typical(views[0].events) >= _typical(views[1].events) else b)
    if outer is a:
        return _nested(a, b, views, known, inside=stated is not None)
    return _turned(_nested(b, a, (views[1], views[0]), known.inverse() if known else None, inside=stated is not None))


def stated_outer(a: Side, b: Side) -> Side | None:
    """The side around the other one, by what their formats say; None if that is nothing, or the same for both."""
    if a.layer is None or b.layer is None or a.layer is b.layer:
        return None
    return a if a.layer < b.layer else b


def _nested(
    a: Side, b: Side, views: tuple[SharedWork, SharedWork], known: ClockMap | None, *, inside: bool
) -> PairEstimate:
    """What the work of b says that lies inside that of a.

    Args:
        a, b: the outer one and the inner one.
        views: what both know.
        known: what is known beforehand.
        inside: whether the formats say that it does lie inside; else that has to be seen.
    """
    one, other = (view.events for view in views)
    before = Known.of(known, _common(a, b, known), (one.zero_ns, other.zero_ns))
    nest = nested_work(a.trace, b.trace, views)
    estimate = align_sequences(one, before.evened(other), before.prior, nest and before.evened(nest), inside=inside)
    made = _made(a, b, before.restored(estimate), (one.zero_ns, other.zero_ns), known)
    matched = estimate.pairs
    return made if matched is None else replace(made, rows=(views[0].rows[matched[0]], views[1].rows[matched[1]]))


def _typical(events: Events) -> float:
    """How long the events are, kind by kind: those of the outer trace are longer, unless work runs in a queue."""
    return float(sum(np.median(events.dur[events.kind == kind]) for kind in np.unique(events.kind).tolist()))


def _pair(
    a: Side,
    b: Side,
    one: Events,
    other: _Seen,
    known: ClockMap | None,
    estimator: Callable[[Events, _Seen, Prior], Estimate],
) -> PairEstimate:
    zeros = one.zero_ns, other.zero_ns
    before = Known.of(known, _common(a, b, known), zeros)
    return _made(a, b, before.restored(estimator(one, before.evened(other), before.prior)), zeros, known)


def _common(a: Side, b: Side, known: ClockMap | None) -> tuple[int, int]:
    """The times of clock a at which both have events, as far as is known."""
    first, last = a.span()
    if known is None:
        return first, last
    first_b, last_b = map(known.inverse().at, b.span())
    return max(first, first_b), min(last, last_b)


def _made(a: Side, b: Side, estimate: Estimate, zeros: tuple[int, int], known: ClockMap | None) -> PairEstimate:
    """An estimate, whose numbers are relative to zeros, with the maps that follow."""
    way = _way(estimate, *zeros)
    jumps = any(piece.doubt is not None for piece in estimate.pieces)
    times, times_b = (_from_zero(side, zero, every=jumps) for side, zero in ((a, zeros[0]), (b, zeros[1])))
    back_bound = _bound(estimate, estimate.back(times_b))
    way = replace(way, bound_ns=_bound(estimate, times), rests_on=_of(a, b))
    return PairEstimate(a, b, estimate, *zeros, way, back_bound, known)


def _of(a: Side, b: Side) -> frozenset[frozenset[tuple[int, int]]]:
    """What a map rests on that is estimated from two clocks."""
    return frozenset({frozenset({a.key, b.key})})


def _from_zero(side: Side, zero: int, *, every: bool) -> F64:
    """The first and the last time, or every one, ns from a zero: times since 1970 are not exact as float64."""
    times = np.sort(side.times()) if every else np.array(side.span(), np.int64)
    return (times - zero).astype(np.float64)


def _way(estimate: Estimate, zero_a: int, zero_b: int) -> ClockMap:
    """The map that an estimate means, in integers."""
    begin, *later = estimate.pieces or (Piece(0.0, estimate.offset_ns, estimate.drift, estimate.x0, None, 0),)
    first = _line(begin, begin.x0, zero_a, zero_b)
    bends: list[Bend] = []
    for piece in later:
        bends.append(_line(piece, piece.begin, zero_a, zero_b))
    step = Step(estimate.method.compared, Provenance.ESTIMATED)
    return ClockMap(first.offset_ns, None, (step,), estimate.verdict, first.drift, first.at_ns, tuple(bends))


def _line(piece: Piece, at: float, zero_a: int, zero_b: int) -> Bend:
    """A line in integers, with the offset that holds at a time of clock a from its zero."""
    offset = piece.offset + piece.drift * (round(at) - piece.x0)
    return Bend(zero_a + round(at), round(offset) + zero_b - zero_a, round(piece.drift / DRIFT_UNIT))


def _bound(estimate: Estimate, x: F64) -> int | None:
    """How wrong an estimate is at most at times of clock x, and between the first and the last; None without a region.

    Beside a jump it may be as wrong as that is high, if there is an event whose side of it nothing tells.
    """
    if not estimate.bounded:
        return None
    begins = np.array([piece.begin for piece in estimate.pieces[1:]])
    begins = begins[(begins > x[0]) & (begins < x[-1])]
    around = np.concatenate((begins, np.nextafter(begins, -np.inf)))
    for piece in estimate.pieces:
        around = around[~estimate.in_doubt(around, piece)]
    x = np.concatenate((x, around))
    low, high = estimate.bounds(x)
    line = estimate.map(x) - x
    return int(np.ceil(max(float(np.max(high - line)), float(np.max(line - low))))) + 1


def _turned(pair: PairEstimate) -> PairEstimate:
    """The same estimate, seen from the other side."""
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


def is_accepted(estimate: Estimate, *, same_run: bool = False) -> bool:
    """Whether traces are put together on it; `same_run` is the word of the user that they are of one run."""
    return estimate.verdict is Verdict.OK or (same_run and estimate.verdict is Verdict.UNVERIFIED)

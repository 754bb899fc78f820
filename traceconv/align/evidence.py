"""The estimators. Each relates two clocks by their events, or says why it cannot.

`estimate_pair` asks them from the surest kind of evidence to the weakest. A relation that is roughly known narrows the
search, which makes a weak but right answer certain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from traceconv.align.activity import align_bins, align_samples, set_clock
from traceconv.align.constraints import NameMap
from traceconv.align.duplicates import same_recording
from traceconv.align.estimate import (
    Bins,
    Estimate,
    Events,
    Method,
    PairEstimate,
    Prior,
    Rival,
    SampledThreads,
    Samples,
    common_times,
    in_both_orders,
    insufficient,
    pair_estimate,
    refused_unless_narrower,
    rests_on,
    stated_outer,
    swapped,
)
from traceconv.align.features import (
    SharedWork,
    bins_of,
    busy_slices,
    libraries_of,
    nested_work,
    sampled_threads,
    samples_of,
    shared_work,
)
from traceconv.align.geometry import Chain, Line, Region
from traceconv.align.inputs import ClockInput
from traceconv.align.launches import align_launches, launches_of
from traceconv.align.matching import ThreadStretches
from traceconv.align.sampling_gaps import align_interruptions
from traceconv.align.sequences import align_at, align_sequences
from traceconv.model.clocks import DRIFT_UNIT, FREE_DRIFT, ClockMap, Provenance, Step, Verdict
from traceconv.model.numbers import earlier_or_later
from traceconv.model.source_info import MARK_NS, Layer

#: The most views of a recording (threads, runtimes, counters) that are tried, the surest first. Not tuned: real
#: recordings have one to three.
_MOST_VIEWS = 4
#: Sampling gaps are searched at all known offsets if these reach no further than this to either side, ns.
_NARROW_NS = 12_000_000
#: The length of the windows that such a search is cut into, ns. Not tuned: it bounds the memory of one search.
_WINDOW_NS = 2_000_000
#: How far sampling gaps are searched to either side of an offset by labels that is certain, ns. The worst of 24
#: recordings was 60 µs off.
_CERTAIN_NS = 150_000
#: And of one that is not certain, ns: at 4 kHz, offsets a quarter of a millisecond apart look the same.
_AROUND_NS = 400_000


class Known(Struct, frozen=True):
    """What is known of two clocks before their events are compared. A known drift is taken out of the events first.

    Otherwise an estimator would have to search a window that the drift makes wide over the recording, and would find
    other iterations there. With a known drift d, times of clock y are divided by 1 + d: y = (1 + d) * y'. The estimator
    answers y' = x + o' + d' * (x - x0). So y = x + (1 + d) * o' + d * x0 + (d + (1 + d) * d') * (x - x0).

    Attributes:
        prior: the possible offsets and drifts of the times of clock y, divided by `rate`.
        drift: by how much clock y runs faster than clock x, as a ratio.
    """

    prior: Prior
    drift: float

    @classmethod
    def of_map(cls, known: ClockMap | None, span: tuple[int, int], zeros: tuple[int, int]) -> Known:
        """Return what a map from clock x to clock y says between two times of clock x, ns.

        Args:
            zeros: the times of x and y that the estimator counts from, ns.
        """
        if known is None or known.bound_ns is None:
            return cls(Prior(max_drift=FREE_DRIFT), 0.0)
        drift = 0.0 if known.bends else known.drift * DRIFT_UNIT
        knots = [bend.at_ns for bend in known.bends if min(span) < bend.at_ns < max(span)]
        # Where a clock was set, the offset is that of either side of the step.
        times = [*span, *knots, *(knot - 1 for knot in knots)]
        offsets = [(known.at(ts) - zeros[1]) / (1 + drift) - (ts - zeros[0]) for ts in times]
        return cls(Prior(min(offsets) - known.bound_ns, max(offsets) + known.bound_ns, FREE_DRIFT), drift)

    @property
    def rate(self) -> float:
        """What times of clock y are divided by, to take the known drift out."""
        return 1 + self.drift

    def with_drift(self, estimate: Estimate) -> Estimate:
        """Return the estimate for clock y, from the one for its times without drift."""
        if not self.drift:
            return estimate
        moved, landscape = self.drift * estimate.line.x0, estimate.landscape
        return replace(
            estimate,
            chain=Chain(tuple(map(self._line, estimate.chain.lines))),
            rivals=tuple(Rival(self.rate * rival.offset_ns + moved, rival.score) for rival in estimate.rivals),
            landscape=landscape and (self.rate * landscape[0] + moved, landscape[1]),
        )

    def _line(self, line: Line) -> Line:
        rate, old = self.rate, line.region
        region = old and Region(old.x0, rate * old.offsets + self.drift * old.x0, self.drift + rate * old.drifts)
        offset, drift = rate * line.offset + self.drift * line.x0, self.drift + rate * line.drift
        return replace(line, offset=offset, drift=drift, region=region)


def _pair(
    a: ClockInput, b: ClockInput, zeros: tuple[int, int], known: ClockMap | None, align: Callable[[Known], Estimate]
) -> PairEstimate:
    """Return the estimate for two clocks, with the known drift taken out before and put back after the comparison."""
    before = Known.of_map(known, common_times(a, b, known), zeros)
    return pair_estimate(a, b, before.with_drift(align(before)), zeros, known)


def by_equality(a: ClockInput, b: ClockInput, known: ClockMap | None) -> PairEstimate | None:
    """Return the estimate that both are one clock of one recording; None for two clocks, or without common times."""
    form = a.trace.sources[0].form if b.trace.sources[0].form != a.trace.sources[0].form else None
    if form is None:
        if a.clock != b.clock:
            return None
        matches, within = sum(len(table.ts) for _, table in a.trace.timed_tables()), 0
        reason = f"all {matches} events are equal, to the ns"
    else:
        if not form.timed or any(len(side.trace.spans) > 1 for side in (a, b)):
            return None
        matches, within = len(form.marks(a.trace) & form.marks(b.trace)), MARK_NS
        reason = f"both are forms of one recording: {matches} events are equal, to the microsecond"
    estimate = Estimate(Method.DUPLICATE, Verdict.OK, reason, matches=matches)
    clock_map = ClockMap(0, within, (Step(Method.DUPLICATE, Provenance.ESTIMATED),), rests_on=rests_on(a, b))
    return PairEstimate(a, b, estimate, 0, 0, clock_map, within, known)


# -- launches on a host, and the device work with the same correlation ids --------------------------------------------


def by_launches(a: ClockInput, b: ClockInput, known: ClockMap | None) -> PairEstimate | None:
    """Return the estimate by launches in one trace of device work in the other one; either may be the host."""
    if not _may_launch(a, b):
        return None
    found = in_both_orders(_by_launches, a, b, known)
    return min(found, key=lambda pair: pair.estimate.verdict.unusable, default=None)


def _may_launch(a: ClockInput, b: ClockInput) -> bool:
    return all(side.trace.sources[0].marks.launches is not None for side in (a, b))


def _by_launches(host: ClockInput, device: ClockInput, known: ClockMap | None) -> list[PairEstimate]:
    """Return the estimate for launches on the host of work of the device; empty without common correlation ids."""
    launches = launches_of(host.trace, host.clock, device.trace, device.clock)
    if launches is None:
        return []
    zeros = launches.zero_x, launches.zero_y
    pair = _pair(host, device, zeros, known, lambda before: align_launches(launches.scaled(before.rate), before.prior))
    return [refused_unless_narrower(pair, "launches give", "them")]


# -- slices of the same names: those of one trace lie inside those of the other one -----------------------------------


def by_statement(a: ClockInput, b: ClockInput, known: ClockMap, names: NameMap) -> PairEstimate | None:
    """Return the estimate by calls inside operators at the offset that files state; None without such work in both.

    Where it confirms the statement, no other offset need be searched; where it does not, that says nothing yet.
    """
    if stated_outer(a, b) is None or known.bends or same_recording(a.trace, b.trace) or _may_launch(a, b):
        return None
    return by_names(a, b, known, names, search=False)


def by_names(
    a: ClockInput, b: ClockInput, known: ClockMap | None, names: NameMap, *, search: bool = True
) -> PairEstimate | None:
    """Return the estimate by the sequence of named slices; None without common names.

    The formats state which clock has the outer slices. If they do not, it is the one with the longer slices, and
    durations must show that the others lie inside them.
    """
    views = shared_work(a.trace, a.clock, b.trace, b.clock, names)
    if views is None:
        return None
    stated = stated_outer(a, b)
    if stated is not None and Layer.DEVICE in (a.layer, b.layer):
        reason = (
            "both name the same work, but a device runs it later, not inside the calls; launch ids in both files would "
            "settle it"
        )
        return pair_estimate(a, b, insufficient(Method.SEQUENCE, reason), (0, 0), known)
    outer = stated or (a if _usual_length(views[0].events) >= _usual_length(views[1].events) else b)
    estimator = partial(align_sequences, inside=stated is not None) if search else align_at
    if outer is a:
        return _nested(a, b, views, known, estimator)
    back = known.inverse() if known else None
    return swapped(_nested(b, a, (views[1], views[0]), back, estimator))


def _nested(
    a: ClockInput,
    b: ClockInput,
    views: tuple[SharedWork, SharedWork],
    known: ClockMap | None,
    estimator: Callable[[Events, Events, Prior, ThreadStretches | None], Estimate],
) -> PairEstimate:
    """Return the estimate for slices of b inside slices of a."""
    outer, inner = (view.events for view in views)
    nest = nested_work(a.trace, b.trace, views)

    def align(before: Known) -> Estimate:
        calls = nest and nest.scaled(before.rate)
        return estimator(outer, inner.scaled(before.rate), before.prior, calls)

    pair = _pair(a, b, (outer.zero_ns, inner.zero_ns), known, align)
    matched = pair.estimate.pairs
    return pair if matched is None else replace(pair, rows=(views[0].rows[matched[0]], views[1].rows[matched[1]]))


def _usual_length(events: Events) -> float:
    """Return the sum over all kinds of the median duration, ns; it is greater for outer events."""
    return float(sum(np.median(events.dur[events.kind == kind]) for kind in np.unique(events.kind).tolist()))


# -- busy times of one trace, and samples or counters of the other one ------------------------------------------------


def by_activity(a: ClockInput, b: ClockInput, known: ClockMap | None) -> PairEstimate | None:
    """Return the first certain estimate of busy times with samples or counters; refused if two differ.

    Without a certain one the best is returned; None if there is nothing to compare.
    """
    found = in_both_orders(_by_activity, a, b, known)
    certain = [pair for pair in found if not pair.estimate.verdict.unusable]
    middle = sum(a.span) // 2
    for pair in certain:
        apart = abs(pair.clock_map.at(middle) - certain[0].clock_map.at(middle))
        if apart > 2 * (pair.bound_ns + certain[0].bound_ns):
            reason = "two comparisons of the activity give different offsets, each with certainty"
            estimate = Estimate(certain[0].estimate.method, Verdict.AMBIGUOUS, reason)
            return replace(certain[0], estimate=estimate)
    best = certain[0] if certain else max(found, key=lambda pair: pair.estimate.margin, default=None)
    return None if best is None else refused_unless_narrower(best, "the activity gives", "it")


def _by_activity(a: ClockInput, b: ClockInput, known: ClockMap | None) -> list[PairEstimate]:
    """Return the estimates by sampling gaps, then for each view of b: the samples of a thread or runtime, a counter."""
    is_watched = len(b.trace.samples.ts) or len(b.trace.counters.ts)
    slices = busy_slices(a.trace, a.clock) if is_watched else None
    if slices is None:
        return []
    labelled = samples_of(b.trace, b.clock, libraries_of(a.trace))[:_MOST_VIEWS]
    views: list[Samples | Bins] = [*labelled, *bins_of(b.trace, b.clock)[:_MOST_VIEWS]]
    pairs = [_pair(a, b, (slices.zero_ns, seen.zero_ns), known, partial(_compared, slices, seen)) for seen in views]
    pairs = [*_by_gaps(a, b, known, pairs[: len(labelled)]), *pairs]
    return [pair if pair.estimate.verdict.unusable else _unless_set(pair, slices, labelled) for pair in pairs]


def _unless_set(pair: PairEstimate, slices: Events, views: Sequence[Samples]) -> PairEstimate:
    """Return an estimate, as inconsistent if samples show that a clock was set in the recording."""
    middle = sum(slices.span) / 2
    at = slices.zero_ns + round(middle)
    for seen in views:
        offset = pair.clock_map.at(at) - at - (seen.zero_ns - slices.zero_ns)
        found = set_clock(slices, seen, Line(offset, pair.clock_map.drift * DRIFT_UNIT, middle))
        if found is not None:
            few, move = found
            reason = (
                f"{pair.estimate.reason}; but {few} of {len(seen.t)} samples at one end fit only if moved, best "
                f"{earlier_or_later(round(move))}, as if a clock was set"
            )
            estimate = replace(pair.estimate, verdict=Verdict.INCONSISTENT, reason=reason)
            return replace(pair, estimate=estimate, clock_map=replace(pair.clock_map, verdict=Verdict.INCONSISTENT))
    return pair


def _compared(slices: Events, activity: Samples | Bins, before: Known) -> Estimate:
    """Return the estimate for slices and one view."""
    if isinstance(activity, Samples):
        return align_samples(slices, activity.scaled(before.rate), before.prior)
    return align_bins(slices, activity.scaled(before.rate), before.prior)


def _by_gaps(a: ClockInput, b: ClockInput, known: ClockMap | None, rough: Sequence[PairEstimate]) -> list[PairEstimate]:
    """Return the estimates by the gaps around samples of b in the clock readings of a."""
    narrow = known if known is not None and known.bound_ns is not None and known.bound_ns <= _NARROW_NS else None
    certain = [pair for pair in rough if not pair.estimate.verdict.unusable and _half_width(pair) <= _AROUND_NS]
    pairs = []
    for sampled in sampled_threads(a.trace, a.clock, b.trace, b.clock):
        # The known offsets may span several sampling periods, which look the same. Labels then tell which one it is.
        tries = []
        if narrow is not None:
            offset, bound = _offset(sampled, narrow), narrow.bound_ns or 0
            count = max(1, -(-2 * bound // _WINDOW_NS))
            tries = [list(pairwise(np.linspace(offset - bound, offset + bound, count + 1).tolist()))]
        tries += [_near(sampled, certain, certain=True)] if certain else []
        tries = tries or [_near(sampled, rough, certain=False)]
        for windows in filter(None, tries):
            estimate = align_interruptions(sampled, windows, FREE_DRIFT, hard=bool(narrow or certain))
            pairs.append(pair_estimate(a, b, estimate, (sampled.zero_reads_ns, sampled.zero_ns), known))
            if not estimate.verdict.unusable:
                break
    return pairs


def _half_width(pair: PairEstimate) -> float:
    """Return the greatest error of the offset in the middle of the evidence, ns; drift adds to it elsewhere."""
    region = pair.estimate.region
    return np.inf if region is None else region.width(region.x0) / 2


def _offset(sampled: SampledThreads, clock_map: ClockMap) -> float:
    """Return the offset of a map in the middle of the samples, between times that count from both zeros, ns."""
    middle = sampled.zero_ns + round(max(float(np.median(samples)) for _, samples in sampled.threads))
    return float(middle - clock_map.inverse().at(middle) - sampled.zero_ns + sampled.zero_reads_ns)


def _near(sampled: SampledThreads, rough: Sequence[PairEstimate], *, certain: bool) -> list[tuple[float, float]]:
    """Return windows of offsets to search: around the best ones by labels, and around their rivals unless certain."""
    around = [
        (_offset(sampled, pair.clock_map) + away, max(_CERTAIN_NS, _half_width(pair)) if certain else _AROUND_NS)
        for pair in rough
        if pair.estimate.landscape is not None
        for away in (0, *(() if certain else pair.rival_offsets()))
    ]
    windows: list[tuple[float, float]] = []
    for low, high in sorted((offset - reach, offset + reach) for offset, reach in around):
        if windows and low <= windows[-1][1]:
            low, last = windows.pop()
            high = max(high, last)
        windows.append((low, high))
    return windows


def estimate_pair(a: ClockInput, b: ClockInput, known: ClockMap | None, names: NameMap) -> PairEstimate | None:
    """Return the relation of two clocks by their events, or a refusal with its reason; None without events to compare.

    A rough map from a to b narrows the search.
    """
    if same_recording(a.trace, b.trace):
        return by_equality(a, b, known)
    launched = by_launches(a, b, known)
    if launched is not None and launched.estimate.verdict is Verdict.OK:
        return launched
    have_slices = all(len(side.trace.slices.ts) for side in (a, b))
    named = by_names(a, b, known, names) if have_slices else None
    is_settled = named is not None and not named.estimate.verdict.unusable
    active = None if is_settled else by_activity(a, b, known)
    # Users understand names best: of equally good answers they are reported.
    found = [pair for pair in (named, launched, active) if pair is not None]
    return min(
        found,
        key=lambda pair: (pair.estimate.verdict.unusable, pair.estimate.verdict is not Verdict.OK),
        default=None,
    )

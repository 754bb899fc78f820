"""Busy times of one trace against what samples or counters saw in the other one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

import numpy as np

from traceconv.align.activity import align_bins, align_samples
from traceconv.align.activity_views import bins_of, busy_slices, libraries_of, sampled_threads, samples_of
from traceconv.align.drift_correction import Known
from traceconv.align.estimate import Bins, Estimate, Events, Method, Prior, SampledThreads, Samples, refused
from traceconv.align.inputs import ClockInput
from traceconv.align.messages import Text
from traceconv.align.names import NameMap
from traceconv.align.pairs import PairEstimate, both_ways, common_times, made, narrowing
from traceconv.align.sampling_gaps import align_interruptions
from traceconv.model.clocks import FREE_DRIFT, ClockMap, Verdict
from traceconv.model.trace import Trace

#: So many views of a recording are tried (threads, runtimes, counters), the surest first. Not tuned: real recordings
#: have one to three.
_MOST_VIEWS = 4
#: What is known is searched as a whole for gaps of sampling if it is no wider than this on either side, ns.
_NARROW_NS = 12_000_000
#: It is searched in windows of this length, ns. Not tuned: it bounds the memory of one search.
_WINDOW_NS = 2_000_000
#: So far on either side of where labels are certain, gaps are looked for, ns: the worst of 24 recordings was off by
#: 60 µs.
_CERTAIN_NS = 150_000
#: So far on either side of where labels are not certain, ns: at 4 kHz, a quarter of a millisecond off looks alike.
_AROUND_NS = 400_000

_Seen = TypeVar("_Seen", Samples, Bins)


class ActivityEstimator:
    """See `Estimator`. Gaps that sampling leaves in slices are part of it: where to look for them, labels tell."""

    method = Method.ACTIVITY
    settles = frozenset(verdict for verdict in Verdict if not verdict.refused)
    explains = 3

    def applies(self, a: ClockInput, b: ClockInput) -> bool:
        """Whether one has slices and the other one samples or counters."""
        return any(_has_slices(one.trace) and _was_watched(other.trace) for one, other in ((a, b), (b, a)))

    def estimate(self, a: ClockInput, b: ClockInput, known: ClockMap | None, names: NameMap) -> PairEstimate | None:
        """Return the first view that is certain, else the best one. Two that are certain of two places are refused."""
        found = both_ways(_views, a, b, known)
        certain = [pair for pair in found if not pair.estimate.verdict.refused]
        middle = sum(a.span()) // 2
        for pair in certain:
            apart = abs(pair.way.at(middle) - certain[0].way.at(middle))
            if apart > 2 * (pair.bound_ns + certain[0].bound_ns):
                estimate = refused(certain[0].estimate.method, Verdict.AMBIGUOUS, Text.VIEWS_APART())
                return replace(certain[0], estimate=estimate)
        best = certain[0] if certain else max(found, key=lambda pair: pair.estimate.margin, default=None)
        return None if best is None else narrowing(best, Text.ACTIVITY_TELLS_NO_MORE)


def _has_slices(trace: Trace) -> bool:
    return bool(len(trace.slices.ts))


def _was_watched(trace: Trace) -> bool:
    return bool(len(trace.samples.ts) or len(trace.counters.ts))


def _views(a: ClockInput, b: ClockInput, known: ClockMap | None) -> list[PairEstimate]:
    """Busy times of a against each view of what b saw; the surest first."""
    slices = busy_slices(a.trace, a.clock)
    if slices is None:
        return []
    labelled, counted = samples_of(b.trace, b.clock, libraries_of(a.trace)), bins_of(b.trace, b.clock)
    by_samples = [_pair(a, b, slices, seen, known, align_samples) for seen in labelled[:_MOST_VIEWS]]
    by_bins = [_pair(a, b, slices, seen, known, align_bins) for seen in counted[:_MOST_VIEWS]]
    return [*_by_gaps(a, b, known, by_samples), *by_samples, *by_bins]


def _pair(
    a: ClockInput,
    b: ClockInput,
    one: Events,
    other: _Seen,
    known: ClockMap | None,
    estimator: Callable[[Events, _Seen, Prior], Estimate],
) -> PairEstimate:
    zeros = one.zero_ns, other.zero_ns
    before = Known.of(known, common_times(a, b, known), zeros)
    return made(a, b, before.with_drift(estimator(one, before.without_drift(other), before.prior)), zeros, known)


def _by_gaps(a: ClockInput, b: ClockInput, known: ClockMap | None, rough: Sequence[PairEstimate]) -> list[PairEstimate]:
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
            found.append(made(a, b, estimate, (sampled.zero_reads_ns, sampled.zero_ns), known))
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
    """All offsets that are possible by what is known, in windows."""
    offset, bound = _offset(sampled, known), known.bound_ns or 0
    windows = max(1, -(-2 * bound // _WINDOW_NS))
    return list(pairwise(np.linspace(offset - bound, offset + bound, windows + 1).tolist()))


def _near(sampled: SampledThreads, rough: Sequence[PairEstimate], *, certain: bool) -> list[tuple[float, float]]:
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

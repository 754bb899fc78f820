"""Two logs of the same work, both with timestamps of clocks that are not related.

The outer log (a: a framework) has an event around each event of the inner one (b: the library below); some are missing
on either side. All places where the two fit are candidates, since iterations repeat:

1. Impulses of each kind are correlated by FFT, over a chunk that is short enough for a drift not to smear it.
2. The best peaks are refined by matching the nearest events of a kind and a robust line, within ever smaller distances.
3. Each candidate is scored event by event, by start and duration. The best one must beat every other one by a margin,
   block by block (a paired test after Vuong): repetition makes wrong places fit nearly as well as the right one.
4. The window grows by doubling, so that the drift is known from the whole trace and never smears.
5. What contains what (an inner event begins after and ends before its outer one) bounds the relation; the middle of the
   bounds is the estimate, since latencies are one-sided and bias a fit.

A margin says nothing about two runs of one programme: so a good share of b must match, closely, within feasible bounds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceconv.align.estimate import Array, Estimate, Events, Prior, Residuals, Rival, refused
from traceconv.align.geometry import F64, Constraints, Region, everything, feasible
from traceconv.align.matching import Matcher, one_to_one
from traceconv.align.robust import robust_line
from traceconv.clocks import Verdict

METHOD = "sequence of named events"
_US = 1e3
_BIN = 100 * _US
_MAX_BINS = 1 << 23
_CHUNK = 1.5e9
_CHUNK_EVENTS = 400
_CANDIDATES = 60
_LEAST_EVENTS = 8
_LEAST_SCALE = 2 * _US
_PRIOR_DRIFT = 100e-6
_DRIFT_LIMIT = 1.5  # how far beyond the prior a fit may go before the region cuts it back
#: A candidate must beat the best rival by this many standard deviations of the sum over blocks.
LEAST_MARGIN = 5.0
#: The only candidate in a window that is known beforehand must beat random places by this many.
LEAST_NULL_MARGIN = 6.0
_BLOCK_EVENTS = 40
#: Matched pairs may contradict this share of the tightest bounds: some matches are wrong.
TRIM = 0.03
_LEAST_SHARE = 0.5
_GREATEST_RESIDUAL = 5 * _US
_SAME_PLACE = 200 * _US


@dataclass(slots=True)
class _Candidate:
    """A place where the two may fit: the line, and the log-likelihood of each event of b there."""

    offset: float
    drift: float
    scale: float
    score: F64


def align_sequences(a: Events, b: Events, prior: Prior) -> Estimate:
    """How the clock of a relates to that of b.

    Args:
        a: the outer events.
        b: the inner events.
        prior: what is known beforehand; it narrows the search.
    """
    if len(a) < _LEAST_EVENTS or len(b) < _LEAST_EVENTS:
        reason = f"only {min(len(a), len(b))} events of common kinds, {_LEAST_EVENTS} are needed"
        return refused(METHOD, Verdict.INSUFFICIENT, reason)
    chunk = _chunk(b, prior)
    part = b.take(chunk)
    x0 = _middle(a, part, prior)
    offsets, heights = _correlation(a, part, prior)
    if not len(offsets):
        return refused(METHOD, Verdict.INSUFFICIENT, "the traces do not overlap where their clocks allow it")
    candidates = _candidates(a, part, x0, prior, _peaks(offsets, heights))
    if not candidates:
        return refused(METHOD, Verdict.INSUFFICIENT, "no place was found where the events of both fit")
    best, *rivals = candidates
    margin = min((_margin(best.score, rival.score) for rival in rivals), default=np.inf)
    null = _null_margin(a, part, x0, best, offsets)
    grown = _grown(a, b, best, x0, float(part.start[-1]), prior)
    return _judged(a, b, x0, grown, prior, margin, null, rivals, (offsets, heights))


# -- candidates -----------------------------------------------------------------------------------------------------


def _chunk(b: Events, prior: Prior) -> Array:
    """The first events of b: many enough to tell iterations apart, few enough for the drift not to smear them."""
    longest = max(_CHUNK, 4 * _BIN / max(prior.max_drift, 1e-7) / 2)
    enough = b.start[min(len(b), _CHUNK_EVENTS) - 1]
    until = min(max(_CHUNK, float(enough)), longest)
    return np.arange(max(int(np.searchsorted(b.start, until, "right")), min(len(b), _LEAST_EVENTS)))


def _middle(a: Events, part: Events, prior: Prior) -> float:
    """A time of clock a near the evidence."""
    if prior.known:
        return float(np.mean(part.span)) - (prior.low + prior.high) / 2
    return float(np.mean(a.span))


def _correlation(a: Events, b: Events, prior: Prior) -> tuple[F64, F64]:
    """How many events of a kind fall together for each offset, in steps of a bin, within what the prior allows."""
    first_a, last_a = float(a.start[0]), float(a.start[-1])
    if prior.known:
        slack = _BIN + prior.max_drift * (last_a - first_a + b.start[-1] - b.start[0])
        keep = (a.start >= b.start[0] - prior.high - slack) & (a.start <= b.start[-1] - prior.low + slack)
        if not keep.any():
            return np.empty(0), np.empty(0)
        a = a.take(np.flatnonzero(keep))
        first_a, last_a = float(a.start[0]), float(a.start[-1])
    first_b = float(b.start[0])
    width = max(_BIN, (last_a - first_a + b.start[-1] - first_b) / _MAX_BINS)
    bins_a, bins_b = ((a.start - first_a) / width).astype(np.int64), ((b.start - first_b) / width).astype(np.int64)
    size_a, size_b = int(bins_a[-1]) + 1, int(bins_b[-1]) + 1
    size = 1 << (size_a + size_b).bit_length()
    total = np.zeros(size // 2 + 1, np.complex128)
    for kind in np.unique(b.kind).tolist():
        of_a, of_b = bins_a[a.kind == kind], bins_b[b.kind == kind]
        if len(of_a) and len(of_b):
            total += np.fft.rfft(np.bincount(of_b, minlength=size)) * np.conj(
                np.fft.rfft(np.bincount(of_a, minlength=size))
            )
    heights = np.fft.irfft(total, size)
    lags = np.arange(-size_a + 1, size_b)
    heights = heights[lags]
    offsets = lags * width + (first_b - first_a)
    if prior.known:
        allowed = (offsets >= prior.low - 2 * width) & (offsets <= prior.high + 2 * width)
        offsets, heights = offsets[allowed], heights[allowed]
    return offsets, heights


def _peaks(offsets: F64, heights: F64) -> F64:
    """The offsets of the highest peaks, each higher than what is within three bins of it."""
    padded = np.pad(heights, 3, constant_values=-np.inf)
    around = np.max(np.lib.stride_tricks.sliding_window_view(padded, 7), axis=1)
    tops = np.flatnonzero(heights >= around)
    best = tops[np.argsort(-heights[tops], kind="stable")[:_CANDIDATES]]
    return offsets[best]


def _candidates(a: Events, b: Events, x0: float, prior: Prior, peaks: F64) -> list[_Candidate]:
    """The refined places, the best first, each once."""
    matcher = Matcher(a, b)
    lines: list[tuple[float, float, float]] = []
    for peak in peaks.tolist():
        line = _refined(a, b, matcher, peak, x0, prior)
        if line is not None and all(abs(line[0] - other[0]) > _SAME_PLACE for other in lines):
            lines.append(line)
    found = [
        _Candidate(offset, drift, scale, _score(a, b, matcher, offset, drift, x0, scale))
        for offset, drift, scale in lines
    ]
    return sorted(found, key=lambda candidate: -float(candidate.score.sum()))


def _refined(
    a: Events, b: Events, matcher: Matcher, offset: float, x0: float, prior: Prior
) -> tuple[float, float, float] | None:
    """The line near an offset; None if too few events match on the way."""
    drift, scale = 0.0, _LEAST_SCALE
    for tolerance in (4 * _BIN, 2 * _BIN, _BIN, 50 * _US, 20 * _US):
        match = matcher.nearest(offset, drift, x0, tolerance)
        hits = np.flatnonzero(match >= 0)
        if len(hits) < 5:
            return None
        offset, drift, scale = _fit(a.start[match[hits]], b.start[hits], x0, prior)
    return offset, drift, scale


def _fit(x: F64, y: F64, x0: float, prior: Prior) -> tuple[float, float, float]:
    """The robust line through pairs, with the offset at x0."""
    spread = min(_PRIOR_DRIFT, max(prior.max_drift, 1e-9))
    value, drift, scale = robust_line(x, y - x, _LEAST_SCALE, _DRIFT_LIMIT * prior.max_drift, spread)
    return value + drift * (x0 - float(x.mean())), drift, scale


def _score(a: Events, b: Events, matcher: Matcher, offset: float, drift: float, x0: float, scale: float) -> F64:
    """The log-likelihood of each event of b: a match that is close in start and duration, or none."""
    tolerance = 2 * _BIN
    match = matcher.nearest(offset, drift, x0, tolerance)
    unmatched = np.log(0.3) - np.log(2 * tolerance) - np.log(1e6)
    score = np.full(len(b), unmatched)
    hits = np.flatnonzero(match >= 0)
    if not len(hits):
        return score
    rows = match[hits]
    start = b.start[hits] - (a.start[rows] + offset + drift * (a.start[rows] - x0))
    width = max(scale, _LEAST_SCALE)
    fit = np.log(0.7) - np.abs(start) / width - np.log(2 * width)
    longer = b.dur[hits] - a.dur[rows]
    spread = 3 * _US
    fit += -np.abs(longer - np.median(longer)) / spread - np.log(2 * spread)
    score[hits] = np.logaddexp(unmatched, fit)
    return score


def _margin(best: F64, rival: F64) -> float:
    """By how many standard deviations the best place beats another one, over blocks of events."""
    count = max(5, len(best) // _BLOCK_EVENTS)
    blocks = np.array([block.sum() for block in np.array_split(best - rival, count)])
    return float(blocks.sum() / (np.sqrt(count) * blocks.std() + 1e-9))


def _null_margin(a: Events, b: Events, x0: float, best: _Candidate, offsets: F64) -> float:
    """By how many standard deviations the best place beats random ones."""
    rng = np.random.default_rng(0)
    matcher = Matcher(a, b)
    low, high = min(float(offsets[0]), best.offset - 5e8), max(float(offsets[-1]), best.offset + 5e8)
    places = rng.uniform(low, high, 60)
    places = places[np.abs(places - best.offset) > _SAME_PLACE]
    scores = [float(_score(a, b, matcher, place, best.drift, x0, best.scale).sum()) for place in places[:40].tolist()]
    return (float(best.score.sum()) - float(np.mean(scores))) / (float(np.std(scores)) + 1e-9)


# -- the whole trace ------------------------------------------------------------------------------------------------


def _grown(a: Events, b: Events, seed: _Candidate, x0: float, until: float, prior: Prior) -> tuple[float, float, float]:
    """The line through all of b, from that through its first part, by doubling."""
    offset, drift, scale = seed.offset, seed.drift, seed.scale
    last = float(b.start[-1])
    while until < last:
        until = min(2 * max(until, 1e6), last)
        part = b.take(np.arange(int(np.searchsorted(b.start, until, "right"))))
        matcher = Matcher(a, part)
        for tolerance in (_BIN, 30 * _US):
            match = matcher.nearest(offset, drift, x0, tolerance)
            hits = np.flatnonzero(match >= 0)
            if len(hits) < 5:
                break
            offset, drift, scale = _fit(a.start[match[hits]], part.start[hits], x0, prior)
    return offset, drift, scale


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Matched events: rows of a and b, the residual of the starts, the share of b that could match and does."""

    a: Array
    b: Array
    residual: F64
    share: float


def _pairs(a: Events, b: Events, x0: float, line: tuple[float, float, float]) -> _Pairs:
    offset, drift, scale = line
    match = Matcher(a, b).nearest(offset, drift, x0, max(6 * scale, 20 * _US))
    rows = np.maximum(match, 0)
    mapped = a.start[rows] + offset + drift * (a.start[rows] - x0)
    residual = b.start - mapped
    inside = b.dur <= a.dur[rows] + 2 * max(a.quantum_ns, b.quantum_ns, _US)
    used = one_to_one(match, residual, inside)
    first, last = (t + offset + drift * (t - x0) for t in a.span)
    possible = int(((b.start >= first - _BIN) & (b.start <= last + _BIN)).sum())
    return _Pairs(match[used], used, residual[used], len(used) / max(possible, 1))


def containment(a: Events, b: Events, rows_a: Array, rows_b: Array) -> Constraints:
    """What it means that events of b lie inside events of a: the mapped start is not after, the mapped end not before.

    Printed times are cut to their resolution, so each may be later by that: one for a start, two for an end.
    """
    quantum_a, quantum_b = max(a.quantum_ns, 1.0), max(b.quantum_ns, 1.0)
    start, end = a.start[rows_a], a.end[rows_a] + 2 * quantum_a
    return Constraints(end, b.end[rows_b] - end, start, b.start[rows_b] + quantum_b - start)


def _region(a: Events, b: Events, pairs: _Pairs, x0: float, drift: float, prior: Prior) -> tuple[Region | None, int]:
    """The relations that the pairs allow, and how many of their bounds were left out."""
    if len(pairs.b) < 5:
        return None, 0
    bounds = containment(a, b, pairs.a, pairs.b)
    kept = bounds.trimmed(drift, x0, TRIM)
    return feasible(kept, everything(x0, _DRIFT_LIMIT * prior.max_drift)), len(bounds) - len(kept)


def _judged(
    a: Events,
    b: Events,
    x0: float,
    line: tuple[float, float, float],
    prior: Prior,
    margin: float,
    null: float,
    rivals: list[_Candidate],
    landscape: tuple[F64, F64],
) -> Estimate:
    """The verdict over the best place."""
    pairs = _pairs(a, b, x0, line)
    region, dropped = _region(a, b, pairs, x0, line[1], prior)
    offset, drift = line[0], line[1]
    if region is not None:
        offset, drift = region.middle(_overlap(a, b, line, x0))
    residuals = Residuals.of(pairs.residual)
    verdict, reason = _verdict(region, pairs, residuals, prior, margin, null, rivals)
    return Estimate(
        METHOD,
        verdict,
        reason,
        offset,
        drift,
        x0,
        region,
        len(pairs.b),
        dropped,
        residuals,
        margin,
        tuple(Rival(rival.offset, float(rival.score.sum())) for rival in rivals[:10]),
        landscape,
        (pairs.a, pairs.b),
        a.start[pairs.a],
        pairs.residual,
    )


def _overlap(a: Events, b: Events, line: tuple[float, float, float], x0: float) -> tuple[float, float]:
    """The times of clock a at which both have events."""
    first_b, last_b = (t - line[0] - line[1] * (t - line[0] - x0) for t in b.span)
    first_a, last_a = a.span
    return max(first_a, first_b), max(min(last_a, last_b), max(first_a, first_b) + 1)


def _verdict(
    region: Region | None,
    pairs: _Pairs,
    residuals: Residuals,
    prior: Prior,
    margin: float,
    null: float,
    rivals: list[_Candidate],
) -> tuple[Verdict, str]:
    same_run = region is not None and pairs.share >= _LEAST_SHARE and residuals.median <= _GREATEST_RESIDUAL
    if not same_run:
        return Verdict.INSUFFICIENT, (
            f"only {pairs.share:.0%} of the events match, {residuals.median / _US:.1f} µs apart"
            f"{'' if region is not None else ', and contradict each other'}: these look like two different runs"
        )
    if rivals and margin < LEAST_MARGIN:
        spacing = min(abs(rival.offset - rivals[0].offset) for rival in rivals[1:]) if len(rivals) > 1 else 0.0
        return Verdict.AMBIGUOUS, (
            f"the traces fit nearly as well in {len(rivals)} other places (margin {margin:.1f} of {LEAST_MARGIN:.0f}"
            f"{f', {spacing / 1e6:.3f} ms apart' if spacing else ''})"
        )
    if not rivals and null < LEAST_NULL_MARGIN:
        return Verdict.AMBIGUOUS, f"the traces hardly fit better there than at random places ({null:.1f} sigma)"
    if not rivals and not prior.known and len(pairs.b) < 2 * _LEAST_EVENTS:
        return Verdict.INSUFFICIENT, f"only {len(pairs.b)} events match"
    return Verdict.OK, f"{len(pairs.b)} events match, {pairs.share:.0%} of those that could"

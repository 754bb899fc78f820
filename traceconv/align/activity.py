"""Estimate an offset from activity in two recordings: slices on one side, samples or counter deltas on the other.

While slices last the runtime is busy: most samples are in it then, and counters grow faster. The agreement at an offset
is a likelihood: of the label of each sample, given whether it falls into a slice; of each delta, given how long slices
last in its interval. A coarse correlation proposes offsets. The likelihood in steps of microseconds around them
decides.

A repeated workload fits nearly as well one repetition later. So the best offset must beat each other one by a margin
(Vuong's test on blocks of samples). The interval comes from drawing blocks with replacement: the likelihood alone gives
one that is several times too narrow, since wrong labels occur in clusters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceconv.align.activity_likelihood import LEAST_SHARE, Busy, Counted, Evidence, Sampled
from traceconv.align.estimate import Array, Bins, Estimate, Events, Method, Prior, Rival, Samples, insufficient
from traceconv.align.geometry import F64, Chain, Line, box
from traceconv.align.robust import margin_of, null_margin
from traceconv.model.clocks import Verdict
from traceconv.model.numbers import format_short

# "Scenarios" are those of tests/benchmarks/alignment/measure_activity.py. "Not tuned" means that nothing tells that
# other values were tried; what follows is the reason for the size.

LEAST_MARGIN = 2.5  # Standard deviations over blocks by which the best offset must beat others. Set with the scenarios.
#: Standard deviations by which it must beat random offsets in a narrow window: of 80 simulated pairs of one run most
#: reach 4, of 80 pairs of two runs none does. (Such scores are far from normal: busy and idle stretches.)
LEAST_NULL_MARGIN = 4.0
_NARROW_NS = 20e6  # The widest narrow window, ns: it may hold one candidate only. Not tuned: 7 of those of scenarios.
_LEAST_SAMPLES = 60  # The least number of samples. Not tuned: three for each block of the interval.
_LEAST_INTERVALS = 20  # The least number of intervals of a counter. Not tuned: one for each block.
#: The least difference of the shares of busy samples in and out of slices (of counters: of rates, in 3 sigma of noise).
#: Not tuned.
_LEAST_CONTRAST = 0.3
#: The least standard deviation of what one sample or delta says, nats. Not tuned: less than the 1.0 of named
#: events, as most samples fit anywhere, and not 0, as labels are wrong in clusters.
_SPREAD_OF_ONE = 0.3
# The number of best offsets for which the drift is searched, too. Not tuned: it takes as long as many offsets.
_REFINED = 4
_MOST_RIVALS = 12  # The number of best offsets that may be rivals. Not tuned: the first ones decide.
# The number of samples that a search uses; the verdict uses all. Not tuned: six seconds at 1 kHz.
_MOST_SEARCHED = 6000
_SMEAR_NS = 20e3  # The drift is searched if it may move the ends by more than this, ns. Not tuned: the error to reach.
_USUAL_DRIFT = 100e-6  # The prior standard deviation of drifts, as a ratio. Not tuned: usual for computers.
_BLOCKS = 20  # The number of blocks to draw from for an interval. Not tuned: longer than clusters of wrong labels.
_DRAWS = 200  # The number of draws. Not tuned: five draws lie beyond either end of a 95 % interval.
# The number of random offsets that the best one must beat. Not tuned: enough for a mean and a deviation.
_RANDOM_PLACES = 40
# The least number of blocks of a margin, if there are as many values. Not tuned: fewer have no known spread.
_LEAST_VUONG_BLOCKS = 10
_MOST_VUONG_BLOCKS = 200  # The most blocks, of ten values each or more. Not tuned: as long as clusters of errors.
#: For `set_clock`: how far from the offset the first or the last samples are looked for, ns (as far as the calls of
#: logs), in how many steps, the most parts of a recording, and the fewest samples of one. Not tuned.
_SET_REACH_NS, _SET_STEPS, _SET_PARTS, _SET_SAMPLES = 100e6, 5000, 40, 8
#: The least distance there, ns. Recorded samples without a step fit better up to 0.3 ms away.
_LEAST_SET_NS = 1e6
#: The fewest samples at an end: 9 of a recording without a step fit 6 nats better elsewhere by chance.
_LEAST_AT_END = 16
#: By how much they fit worse than others here, and better there, nats, and the least share of the former that the
#: latter is. Without a step none of 180 simulated pairs reaches 3, nor of 138 recorded ones with as many samples.
_LEAST_GAIN, _LEAST_OF_GAP = 4.0, 0.8


@dataclass(frozen=True, slots=True)
class _Place:
    """A relation of the clocks, and the log-likelihood of each sample or delta."""

    offset: float
    drift: float
    score: F64

    @property
    def total(self) -> float:
        return float(self.score.sum())


def align_samples(slices: Events, samples: Samples, prior: Prior) -> Estimate:
    """Estimate the relation of the clock of slices (x) to that of samples (y).

    Args:
        slices: the work of a runtime; they may overlap and nest.
        samples: the samples, with labels for whether the runtime was busy.
        prior: the known limits of offset and drift.
    """
    if (refusal := _too_little(slices, "samples", len(samples.t), _LEAST_SAMPLES)) is not None:
        return refusal
    share = float(np.mean(samples.busy))
    if not LEAST_SHARE <= share <= 1 - LEAST_SHARE:
        return insufficient(Method.ACTIVITY, f"{share:.0%} of the samples are busy, so no start or end is visible")
    return _align(Sampled.of(Busy.of(slices), samples), prior)


def align_bins(slices: Events, bins: Bins, prior: Prior) -> Estimate:
    """Estimate the relation of the clock of slices (x) to that of the intervals of a counter (y).

    Args:
        slices: the work of a runtime; they may overlap and nest.
        bins: the deltas of the counter.
        prior: the known limits of offset and drift.
    """
    if (refusal := _too_little(slices, "intervals", len(bins.amount), _LEAST_INTERVALS)) is not None:
        return refusal
    if float(np.ptp(bins.amount)) == 0:
        return insufficient(Method.ACTIVITY, "the counter grows evenly, so no start or end is visible")
    return _align(Counted.of(Busy.of(slices), bins), prior)


def set_clock(slices: Events, samples: Samples, line: Line) -> tuple[int, float] | None:
    """Return how many of the first or the last samples fit at another offset only, and by how much later, ns.

    They fit worse than the others at the offset, and nearly as well as these elsewhere, where these do not fit: a clock
    was set in between. None if no samples do. Samples before or behind all slices tell nothing: what ran then was not
    recorded. A clock that was set by less than 1 ms or more than 100 ms is not looked for, nor are fewer than 16
    samples or more than half of them.

    Args:
        slices, samples: as for `align_samples`.
        line: the relation of their clocks.
    """
    evidence = Sampled.of(Busy.of(slices), samples)
    offset, drift = line.offset + line.drift * (evidence.busy.middle - line.x0), line.drift
    t = evidence.busy.times(evidence.t, offset, drift)
    recorded = np.flatnonzero((t >= evidence.busy.start[0]) & (t <= evidence.busy.end[-1]))
    every = max(1, -(-len(recorded) // _MOST_SEARCHED))
    rows = recorded[::every]
    count, parts = len(rows), min(_SET_PARTS, len(rows) // _SET_SAMPLES)
    if count < _LEAST_SAMPLES:
        return None
    evidence = evidence.learned(offset, drift)
    grid = _SET_REACH_NS / _SET_STEPS * np.arange(-_SET_STEPS, _SET_STEPS + 1, dtype=np.float64)
    table = np.vstack([evidence.profile(offset, drift, grid, part) for part in np.array_split(rows, parts)])
    away, total = np.abs(grid), float(table[:, _SET_STEPS].sum())
    sizes, found = np.array([len(part) for part in np.array_split(rows, parts)]), []
    for order in (slice(None, None, -1), slice(None)):
        fits, few = (np.cumsum(one[order], axis=0)[: parts // 2] for one in (table, sizes))
        here = fits[:, _SET_STEPS]
        worse, better = ((total - here) / (count - few) * few - here)[:, None], fits - here[:, None]
        # The more offsets are as near, the better the best of them fits by chance.
        gain = np.minimum(better - np.log1p(away / evidence.near), worse)
        gain[(better < _LEAST_OF_GAP * worse) | (away < _LEAST_SET_NS) | (few < _LEAST_AT_END)[:, None]] = -np.inf
        # Where all others fit there as well, the activity repeats, or they do not tell: nothing shows that any moved.
        others = table.sum(axis=0) - fits
        gain[others[:, _SET_STEPS, None] - others < _LEAST_GAIN] = -np.inf
        at, place = np.unravel_index(np.argmax(gain), gain.shape)
        found.append((float(gain[at, place]), int(few[at]), -float(grid[place])))
    gained, few_at, move = max(found)
    return (every * few_at, move) if gained >= _LEAST_GAIN else None


def _too_little(slices: Events, noun: str, count: int, needed: int) -> Estimate | None:
    """Return the refusal for too few samples or intervals, or for slices without duration; None if there is enough."""
    if count >= needed and float(np.max(slices.dur, initial=0.0)) > 0:
        return None
    return insufficient(Method.ACTIVITY, f"only {count} {noun}, expected at least {needed}")


def _align(evidence: Evidence, prior: Prior) -> Estimate:
    places: list[_Place] = []
    for _ in range(2):  # once with the prior shares, once with those learned from the data
        offsets, heights = evidence.coarse()
        step = float(offsets[1] - offsets[0])
        near = (offsets >= prior.low - step) & (offsets <= prior.high + step)
        offsets, heights = offsets[near], heights[near]
        if not len(offsets):
            return insufficient(Method.ACTIVITY, "the traces do not overlap at any offset that their clocks allow")
        if not places and isinstance(evidence, Counted):  # counters have no prior rates
            evidence = evidence.learned(float(offsets[np.argmax(heights)]), 0.0)
        places = _places(evidence, offsets, heights, prior)
        evidence = evidence.learned(places[0].offset, places[0].drift)
    if evidence.contrast < _LEAST_CONTRAST:
        return insufficient(Method.ACTIVITY, "at no offset is there more activity inside the slices than between them")
    aligned = [_with_drift(evidence, place, prior) for place in places[:_REFINED]]
    best = max(aligned, key=lambda place: place.total)
    evidence = evidence.learned(best.offset, best.drift)
    best = _with_drift(evidence, best, prior)
    best = _place(evidence, best.offset, best.drift)
    rivals = _rivals(evidence, best, [*aligned, *places[_REFINED:_MOST_RIVALS]], prior)
    return _judged(evidence, best, rivals, prior, (offsets, heights))


def _places(evidence: Evidence, offsets: F64, heights: F64, prior: Prior) -> list[_Place]:
    """Return the offsets with the best coarse fit, refined, the best first."""
    padded = np.pad(heights, 2, constant_values=-np.inf)
    around = np.max(np.lib.stride_tricks.sliding_window_view(padded, 5), axis=1)
    tops = np.flatnonzero(heights >= around)
    tops = tops[np.argsort(-heights[tops], kind="stable")[: evidence.candidates]]
    reach = 2.5 * (float(offsets[1] - offsets[0]) if len(offsets) > 1 else evidence.near)
    refined = [_refined(evidence, top, 0.0, reach, prior) for top in offsets[tops].tolist()]
    apart: list[_Place] = []
    for place in sorted(refined, key=lambda place: -place.total):
        if all(abs(place.offset - other.offset) > evidence.near for other in apart):
            apart.append(place)
    return apart


def _some(evidence: Evidence) -> Array:
    """Return all rows, or evenly spaced ones if there are many."""
    return np.arange(0, len(evidence.t), max(1, -(-len(evidence.t) // _MOST_SEARCHED)))


def _place(evidence: Evidence, offset: float, drift: float) -> _Place:
    """Return an offset with the likelihood of all samples or deltas."""
    return _Place(offset, drift, evidence.at(offset, drift, np.arange(len(evidence.t))))


def _refined(evidence: Evidence, offset: float, drift: float, reach: float, prior: Prior) -> _Place:
    """Return the best offset within `reach` (ns): the middle of its plateau."""
    some, step = _some(evidence), max(evidence.step, reach / evidence.fineness)
    grid = _grid(reach, step)
    best = _best_on(offset + grid, evidence.profile(offset, drift, grid, some)[0], prior)
    if step > evidence.step:
        grid = _grid(3 * step, max(evidence.step, step / 10))
        best = _best_on(best + grid, evidence.profile(best, drift, grid, some)[0], prior)
    return _Place(best, drift, evidence.at(best, drift, some))


def _grid(reach: float, step: float) -> F64:
    steps = round(reach / step)
    return np.asarray(np.arange(-steps, steps + 1) * step, np.float64)


def _best_on(offsets: F64, total: F64, prior: Prior) -> float:
    allowed = _within(offsets, prior)
    if not allowed.any():
        return float(np.clip(offsets[np.argmax(total)], prior.low, prior.high))
    total = np.where(allowed, total, -np.inf)
    first = last = int(np.argmax(total))
    while last + 1 < len(total) and total[last + 1] >= total[first] - 1e-9:
        last += 1
    return float(offsets[first] + offsets[last]) / 2


def _within(offsets: F64, prior: Prior) -> Array:
    return np.asarray((offsets >= prior.low) & (offsets <= prior.high))


def _rivals(evidence: Evidence, best: _Place, places: list[_Place], prior: Prior) -> list[_Place]:
    """Return the rivals of the best offset, each with the drift that fits it best, the best first."""
    rivals = []
    for place in places:
        if abs(place.offset - best.offset) > evidence.beside:
            tried = (_place(evidence, place.offset, drift) for drift in dict.fromkeys((place.drift, best.drift)))
            rivals.append(max(tried, key=lambda one: one.total))
    if isinstance(evidence, Counted):
        rivals += _neighbours(evidence, best, prior)
    return sorted(rivals, key=lambda place: -place.total)


def _neighbours(evidence: Evidence, best: _Place, prior: Prior) -> list[_Place]:
    """Return the best offset on either side, just beyond those that count as the same as the best one."""
    reach = 8 * evidence.near
    grid = _grid(reach, max(evidence.step, reach / 200))
    total, offsets = evidence.profile(best.offset, best.drift, grid, _some(evidence))[0], best.offset + grid
    neighbours = []
    for side in (offsets > best.offset + evidence.near, offsets < best.offset - evidence.near):
        rows = np.flatnonzero(side & _within(offsets, prior))
        if len(rows):
            neighbours.append(_place(evidence, float(offsets[rows[np.argmax(total[rows])]]), best.drift))
    return neighbours


def _with_drift(evidence: Evidence, place: _Place, prior: Prior) -> _Place:
    """Return the offset with the drift that fits best, over a span that doubles until it covers everything."""
    half = float(evidence.t[-1] - evidence.t[0]) / 2
    if prior.max_drift * half <= _SMEAR_NS:
        return place
    most, middle, x0 = prior.max_drift, float(np.mean(evidence.t)), evidence.busy.middle
    drift = place.drift
    offset = place.offset + drift * (middle - place.offset - x0)  # the offset holds in the middle of the evidence
    span, grid = min(half, 25 * _SMEAR_NS / most), _grid(5 * _SMEAR_NS, max(evidence.step, 2e3))
    while True:
        rows = np.flatnonzero(np.abs(evidence.t - middle) <= span)
        rows = rows[:: -(-len(rows) // _MOST_SEARCHED)] if len(rows) else rows
        resolution = _SMEAR_NS / span
        steps = np.ceil(most / resolution)
        results = []
        tried = drift + np.arange(-steps, steps + 1) * resolution
        for one in np.unique(np.clip(tried, -prior.max_drift, prior.max_drift)).tolist():
            shift = one * (middle - offset - x0)
            total = evidence.profile(offset - shift, one, grid, rows)[0] - 0.5 * (one / _USUAL_DRIFT) ** 2
            best = int(np.argmax(total))
            results.append((float(total[best]), one, float(offset - shift + grid[best]) + shift))
        _, drift, offset = max(results)
        if span >= half:
            break
        most, span = 2 * resolution, min(2 * span, half)
    return _refined(evidence, offset - drift * (middle - offset - x0), drift, 2 * _SMEAR_NS, prior)


# -- the verdict ----------------------------------------------------------------------------------------------------


def _margin(best: F64, rival: F64) -> float:
    """Return the margin of the best offset over another one, in standard deviations over blocks."""
    blocks = max(_LEAST_VUONG_BLOCKS, min(_MOST_VUONG_BLOCKS, len(best) // 10))
    return margin_of(best - rival, blocks, _SPREAD_OF_ONE)


def _null_margin(evidence: Evidence, best: _Place) -> float:
    """Return the margin of the best offset over random ones, in standard deviations."""
    half = max(float(evidence.t[-1] - evidence.t[0]) / 2, 10 * evidence.near)
    shifts = np.random.default_rng(0).uniform(-half, half, 3 * _RANDOM_PLACES // 2)
    shifts = shifts[np.abs(shifts) > evidence.near][:_RANDOM_PLACES]
    rows = _some(evidence)
    scores = [float(evidence.at(best.offset + shift, best.drift, rows).sum()) for shift in shifts.tolist()]
    return null_margin(float(best.score[rows].sum()), scores, len(rows), _SPREAD_OF_ONE)


def _interval(evidence: Evidence, best: _Place, prior: Prior) -> tuple[float, float]:
    """Return the 95 % interval of the offset: the best offsets for blocks drawn with replacement."""
    grid = _grid(
        evidence.beside, evidence.step if isinstance(evidence, Sampled) else max(evidence.step, evidence.beside / 50)
    )
    offsets = best.offset + grid
    table = evidence.profile(best.offset, best.drift, grid, np.arange(len(evidence.t)), _BLOCKS)
    allowed = _within(offsets, prior)
    weights = np.random.default_rng(0).multinomial(_BLOCKS, np.full(_BLOCKS, 1 / _BLOCKS), _DRAWS)
    total = np.where(allowed | ~allowed.any(), weights @ table, -np.inf)
    top = total >= total.max(axis=1, keepdims=True) - 1e-3
    first = offsets[np.argmax(top, axis=1)]
    last = offsets[len(offsets) - 1 - np.argmax(top[:, ::-1], axis=1)]
    return float(np.percentile(first, 2.5)), float(np.percentile(last, 97.5))


def _judged(
    evidence: Evidence, best: _Place, rivals: list[_Place], prior: Prior, landscape: tuple[F64, F64]
) -> Estimate:
    margin = min((_margin(best.score, rival.score) for rival in rivals), default=np.inf)
    low, high = _interval(evidence, best, prior)
    endless = (
        evidence.beside > evidence.near
        and max(high - best.offset, best.offset - low) >= evidence.beside - evidence.step
    )
    beyond = max(evidence.busy.quantum_ns, evidence.beyond)
    low, high = min(low, best.offset) - beyond, max(high, best.offset) + beyond
    # The offset is known in the middle of the evidence; away from it, the drift is known only to its limit.
    middle = float(np.mean(evidence.busy.times(evidence.t[[0, -1]], best.offset, best.drift)))
    shift = best.drift * (middle - evidence.busy.middle)
    region = box(middle, low + shift, high + shift, prior.max_drift)
    verdict, reason = Verdict.OK, f"{len(evidence.t)} {evidence.noun} fit, to within {format_short(high - low)}"
    doubt = _doubt(evidence, best, rivals, margin, prior)
    if doubt is not None:
        verdict, reason = doubt
    elif endless:
        verdict, reason = (
            Verdict.AMBIGUOUS,
            f"the {evidence.noun} fit nearly as well up to {format_short(evidence.beside)} away",
        )
    return Estimate(
        Method.ACTIVITY,
        verdict,
        reason,
        Chain((Line(best.offset, best.drift, evidence.busy.middle, region=region),)),
        len(evidence.t),
        margin=margin,
        rivals=Rival.listed((rival.offset, rival.total) for rival in rivals),
        landscape=landscape,
    )


def _doubt(
    evidence: Evidence, best: _Place, rivals: list[_Place], margin: float, prior: Prior
) -> tuple[Verdict, str] | None:
    """Return the verdict and reason to refuse the best offset, whatever its interval; None to accept it."""
    if evidence.contrast < _LEAST_CONTRAST:
        return Verdict.INSUFFICIENT, "at no offset is there more activity inside the slices than between them"
    if margin < LEAST_MARGIN:
        away = abs(rivals[0].offset - best.offset)
        return Verdict.AMBIGUOUS, f"the {evidence.noun} fit nearly as well {format_short(away)} away"
    narrow = prior.known and prior.high - prior.low <= _NARROW_NS
    if narrow and _null_margin(evidence, best) < LEAST_NULL_MARGIN:
        return Verdict.AMBIGUOUS, f"the {evidence.noun} hardly fit better at the best offset than at random ones"
    return None

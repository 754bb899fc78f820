"""Estimate an offset from the gaps between the samples and the clock readings of one thread.

A sample is taken in an interrupt. While that is handled the thread stands still, and cannot read the clock for the
start or the end of a slice. So around each sample there is a moment without any reading (some µs, in a virtual machine
some tens). At the true offset the differences of samples and readings have a gap around zero. At any other offset they
are as dense as chance makes them. That needs no labels, no names and no idle time.

At each offset and drift, the samples close to a reading are counted and compared with the counts at other offsets
nearby. The emptiest offset is believed if chance would make none as empty among all that were tried, and if no other
one comes near it. The lines through its gap are the region. Where in the gap the true offset lies is not known:
nothing tells how an interrupt divides into the parts before and after its time stamp.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from traceconv.align.estimate import Array, Estimate, Method, Rival, SampledThreads
from traceconv.align.geometry import F64, Chain, Line, LinearConstraints, Region, box, feasible
from traceconv.model.clocks import Verdict
from traceconv.model.numbers import format_short

# "Recordings" are those of ONNX Runtime and perf at 1 kHz, tests/benchmarks/alignment/recordings/ort_perf_*. "Not
# tuned" means that nothing tells that other values were tried; what follows is the reason for the size.

_STEP_NS = 1e3  # The step of the offsets that are tried, ns: what most tools print.
#: How close to a reading a sample counts as close on either side, ns: the greatest first, it needs the fewest steps.
#: Set with the recordings, which are placed to within 25 µs.
_CLOSE_NS = (12e3, 5e3, 2e3)
#: The gap must be rarer than one in exp(this) among as many offsets as were tried. Of 1,000 simulated pairs of
#: different runs the rarest reached 4, of the recordings the commonest 40.
LEAST_SURPRISE = 12.0
MOST_OF_BEST = 0.5  # The share of its surprise that no other offset may have. Not tuned: with regular work many do.
#: The usual number of close samples is counted within this many times the close distance. Not tuned: wide enough for a
#: mean, and less than a sampling period.
_AROUND = 16
_APART_NS = 60e3  # Offsets nearer to each other are one, ns. Not tuned: a gap is as wide as an interrupt is long.
_WIDE_NS = 60e3  # Pairs around the gap within this bound it, ns. Not tuned: as wide as a gap may be.
_TRIM = 0.03  # The share of tightest bounds on each side that is left out. Not tuned: some readings are late.
_FEWEST_DRIFTS = 150  # Drifts on either side for the part that is searched first. Not tuned: nine seconds at 200 ppm.
_ENOUGH_PAIRS = 20_000  # A part with more pairs is not made longer, for speed. Not tuned: few pairs take little time.
#: The least samples among the readings. Those within the close distance of each other count as one, since they are
#: close to a reading together. Not tuned: a surprise is no greater than their number.
_LEAST_SAMPLES = 20
#: The most windows that are searched, and the most echoes, for speed. Not tuned: a label has 10 rivals at most.
_MOST_WINDOWS = 24
_MOST_PLACES = 5  # The number of offsets reported for a window. Not tuned: the best one and its strongest rivals.
_ECHOES = 3  # Echoes are searched this many periods on either side of a guessed offset. Not tuned: 3 ms at 1 kHz.
_ECHO_SIGMAS = 2.0  # Standard deviations by which an echo must have more close samples. Not tuned: 95 % of them do.


class _Gap(Struct, frozen=True):
    """A relation of the clocks."""

    offset: float
    drift: float
    surprise: float
    close: float


class _Tried(Struct, frozen=True):
    """The best gap of a window, the best others in it, and the number of tried offsets and pairs."""

    middle: float
    places: tuple[_Gap, ...]
    count: float
    pairs: int
    landscape: tuple[F64, F64]


class _Differences:
    """The differences of each sample to the readings of its thread within reach."""

    def __init__(
        self, sampled: SampledThreads, low: float, high: float, part: tuple[float, float], close: float
    ) -> None:
        self.count, found = 0, []
        for reads, samples in sampled.threads:
            seen = samples[(samples >= part[0]) & (samples <= part[1])]
            self.count += int(np.sum(np.searchsorted(reads, seen - low) - np.searchsorted(reads, seen - high)))
            apart = np.diff(reads) > 2 * close  # nearer ones are joined: the same samples are close, at a lower cost
            first, last = reads[np.append(True, apart)], reads[np.append(apart, True)]
            which, row = _in_reach(first, last, seen, low, high)
            at = seen[which]
            found.append((at - last[row] - close, at - first[row] + close, at))
        #: Where a sample comes close to joined readings, and where it leaves them, and its time.
        self.begin, self.end, self.at = map(np.concatenate, zip(*found, strict=True))

    def close(self, middle: float, drift: float, low: float, size: int) -> F64:
        """Return the number of samples close to a reading at each offset, in steps from the lowest one."""
        moved = drift * (self.at - middle) + low
        enters, leaves = (
            np.ceil((edge - moved) / _STEP_NS).clip(0, size).astype(np.int64) for edge in (self.begin, self.end)
        )
        counts = np.bincount(enters, minlength=size + 1) - np.bincount(leaves, minlength=size + 1)
        return np.cumsum(counts)[:size].astype(np.float64)


def align_interruptions(
    sampled: SampledThreads, windows: Sequence[tuple[float, float]], max_drift: float, *, hard: bool
) -> Estimate:
    """Return the relation of the clock of readings (x) to that of samples (y).

    Args:
        sampled: the readings and the samples of each thread.
        windows: where to search: the least and the greatest offset in the middle of the samples, ns.
        max_drift: the greatest drift on either side, as a ratio.
        hard: whether the offset is surely in one of the windows; otherwise they are guesses.
    """
    why: str | None = None
    closest = _CLOSE_NS if any(len(samples) > 1 for _, samples in sampled.threads) else ()  # else there is no period
    for close in closest:
        tried = _all_windows(sampled, windows, max_drift, close, hard=hard)
        if not tried:
            break
        best = max(tried, key=lambda window: window.places[0].surprise)
        rivals = _rivals(tried, best)
        chance = float(np.log(sum(window.count for window in tried) * len(_CLOSE_NS)))
        if best.places[0].surprise - chance < LEAST_SURPRISE:
            why = why or "at no offset do samples avoid the starts and ends of slices more than by chance"
            continue
        rival = _too_good(best.places[0], rivals, sampled.period)
        if rival is None:
            return _answer(sampled, best, rivals, chance, max_drift)
        why = (
            "samples avoid the starts and ends of slices as well at an offset "
            f"{format_short(abs(rival.offset - best.places[0].offset))} away"
        )
    return Estimate(Method.SAMPLING_GAPS, Verdict.AMBIGUOUS, why or "too few samples lie among the slices")


def _all_windows(
    sampled: SampledThreads, windows: Sequence[tuple[float, float]], max_drift: float, close: float, *, hard: bool
) -> list[_Tried]:
    """Return the search results of each window; for guesses, also of windows at the echoes of the best gap."""
    looked = list(windows[:_MOST_WINDOWS])
    tried = list(filter(None, (_window(sampled, *window, max_drift, close) for window in looked)))
    while tried and not hard and len(looked) < 2 * _MOST_WINDOWS:
        best = max((window.places[0] for window in tried), key=lambda place: place.surprise)
        echoes = [best.offset + turn * sampled.period for turn in range(-_ECHOES, _ECHOES + 1)]
        around = [
            (echo - _APART_NS, echo + _APART_NS)
            for echo in echoes
            if not any(low <= echo <= high for low, high in looked)
        ]
        if not around:
            break
        looked += around
        tried += filter(None, (_window(sampled, *window, max_drift, close) for window in around))
    return tried


def _rivals(tried: Sequence[_Tried], best: _Tried) -> list[_Gap]:
    """Return the best gaps other than the best one, the best first."""
    places = [*best.places[1:], *(place for window in tried if window is not best for place in window.places)]
    apart = [place for place in places if abs(place.offset - best.places[0].offset) > _APART_NS]
    return sorted(apart, key=lambda place: -place.surprise)


def _too_good(best: _Gap, rivals: Sequence[_Gap], period: float) -> _Gap | None:
    """Return a rival that is nearly as good as the best gap; None if there is none."""
    # A whole number of sampling periods away, each sample meets the gap of the one before. Such an echo is nearly as
    # good as its origin, and worse only where the thread did not run all the time.
    for rival in rivals:
        turns = (rival.offset - best.offset) / period
        echo = abs(turns - round(turns)) * period < _APART_NS
        noise = np.sqrt(rival.close + best.close + 1)
        worse = rival.close - best.close > _ECHO_SIGMAS * noise and rival.surprise < best.surprise - LEAST_SURPRISE
        if rival.surprise > MOST_OF_BEST * best.surprise and not (echo and worse):
            return rival
    return None


def _window(sampled: SampledThreads, low: float, high: float, max_drift: float, close: float) -> _Tried | None:
    """Return the search result of a window; None if too few samples lie among the readings there."""
    seen = [samples[(samples >= reads[0] + low) & (samples <= reads[-1] + high)] for reads, samples in sampled.threads]
    times = np.sort(np.concatenate(seen))
    if np.count_nonzero(np.diff(times // close, prepend=-np.inf)) < _LEAST_SAMPLES:
        return None
    first, last = float(times[0]), float(times[-1])
    middle, half, resolution = (first + last) / 2, (last - first) / 2, close / 2
    # Over a long recording many drifts would have to be tried: a part is searched, then longer ones around its result.
    span = min(half, _FEWEST_DRIFTS * resolution / max_drift)
    tried = _search(sampled, middle, span, (low, high), _grid(0.0, max_drift, resolution / span), close)
    while span < half and tried.pairs <= _ENOUGH_PAIRS:  # where little happens a longer part costs little
        span = min(2 * span, half)
        tried = _search(sampled, middle, span, (low, high), _grid(0.0, max_drift, resolution / span), close)
    best = tried.places[0]
    while span < half:
        step, span = resolution / span, min(2 * span, half)
        drifts = _grid(best.drift, 2 * step, resolution / span).clip(-max_drift, max_drift)
        around = (best.offset - 2 * _APART_NS, best.offset + 2 * _APART_NS)
        best = _search(sampled, middle, span, around, drifts, close).places[0]
    return replace(tried, places=(best, *tried.places[1:]))


def _grid(middle: float, reach: float, step: float) -> F64:
    steps = np.ceil(reach / step)
    return np.asarray(middle + np.arange(-steps, steps + 1) * step, np.float64)


def _search(
    sampled: SampledThreads, middle: float, span: float, window: tuple[float, float], drifts: F64, close: float
) -> _Tried:
    """Return the gaps at all offsets of a window and each drift, for the samples within a span of a middle."""
    around, near = round(_AROUND * close / _STEP_NS), round(2 * close / _STEP_NS)
    size = max(int((window[1] - window[0]) / _STEP_NS), 1) + 2 * around
    begin = window[0] - around * _STEP_NS
    smear = float(np.max(np.abs(drifts))) * span + close
    reach = (begin - smear, begin + size * _STEP_NS + smear)
    pairs = _Differences(sampled, *reach, (middle - span, middle + span), close)
    rows = np.arange(around, size - around)
    offsets = np.asarray(begin + rows * _STEP_NS, np.float64)
    surprises, counts = np.empty((len(drifts), len(rows))), np.empty((len(drifts), len(rows)))
    for number, drift in enumerate(drifts.tolist()):
        count = pairs.close(middle, drift, begin, size)
        total = np.concatenate(([0.0], np.cumsum(count)))
        around_counts = total[rows + around] - total[rows + near] + total[rows - near] - total[rows - around]
        counts[number] = count[rows]
        # The rarity of so few close samples given the usual number, in nats (one-sided Poisson deviance).
        few, usual = count[rows], around_counts / (2 * (around - near))
        ratio = np.log(np.maximum(few, 1e-9) / np.maximum(usual, 1e-9))
        surprises[number] = np.where(few < usual, usual - few + few * ratio, 0.0)
    heights = np.asarray(surprises.max(axis=0), np.float64)
    places: list[_Gap] = []
    open_ = np.ones(len(offsets), bool)
    while open_.any() and len(places) < _MOST_PLACES:
        at = int(np.argmax(np.where(open_, heights, -1.0)))
        row = int(np.argmax(surprises[:, at]))
        places.append(_Gap(float(offsets[at]), float(drifts[row]), float(heights[at]), float(counts[row, at])))
        open_ &= np.abs(offsets - offsets[at]) > _APART_NS
    tried = len(offsets) * len(drifts) * _STEP_NS / close
    return _Tried(middle, tuple(places), tried, pairs.count, (offsets, heights))


def _answer(
    sampled: SampledThreads, tried: _Tried, rivals: Sequence[_Gap], chance: float, max_drift: float
) -> Estimate:
    place = tried.places[0]
    region = _region(sampled, place, tried.middle, max_drift)
    if region is None:
        return Estimate(
            Method.SAMPLING_GAPS, Verdict.INCONSISTENT, "no straight line fits into the gap between samples and slices"
        )
    span = (min(float(reads[0]) for reads, _ in sampled.threads), max(float(reads[-1]) for reads, _ in sampled.threads))
    samples = sum(len(samples) for _, samples in sampled.threads)
    reason = (
        f"{samples} samples keep a distance from the starts and ends of slices, which relates the "
        f"files within ±{format_short(region.width(region.x0) / 2)}"
    )
    return Estimate(
        Method.SAMPLING_GAPS,
        Verdict.OK,
        reason,
        Chain((Line(*region.middle(span), region.x0, region=region),)),
        samples,
        margin=place.surprise - chance,
        rivals=Rival.listed((rival.offset, rival.surprise) for rival in rivals),
        landscape=tried.landscape,
    )


def _region(sampled: SampledThreads, place: _Gap, middle: float, max_drift: float) -> Region | None:
    """Return the lines through the gap: above nearly all differences below it, and below nearly all above it."""
    x0 = middle - place.offset
    limits = []
    for reads, samples in sampled.threads:
        back = samples - place.offset - place.drift * (samples - middle)
        which, row = _in_reach(reads, reads, back, -_WIDE_NS, _WIDE_NS)
        limits.append((reads[row], samples[which] - reads[row]))
    x, y = map(np.concatenate, zip(*limits, strict=True))
    above = y > place.offset + place.drift * (x - x0)
    slack = 2 * sampled.quantum_ns  # both ends of a slice are cut to the resolution
    bounds = LinearConstraints(x[~above], y[~above] - slack, x[above], y[above] + slack)
    start = box(x0, place.offset - _WIDE_NS, place.offset + _WIDE_NS, max_drift)
    return feasible(bounds.trimmed(place.drift, x0, _TRIM), start)


def _in_reach(first: F64, last: F64, samples: F64, low: float, high: float) -> tuple[Array, Array]:
    """Return pairs of a sample and a range of readings, as rows, that have a difference between two values."""
    begin, end = np.searchsorted(last, samples - high), np.searchsorted(first, samples - low)
    count = end - begin
    which = np.repeat(np.arange(len(samples)), count)
    return which, np.repeat(end - 1 + np.cumsum(count) - count, count) - np.arange(int(count.sum()))

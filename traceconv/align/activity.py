"""How well samples, or the deltas of a counter, fit to slices at an offset: their log-likelihood.

A sample has a label: whether the runtime was busy. It is more probable inside of a slice. A delta is greater the longer
slices last in its interval.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from traceconv.align.estimate import Array, Bins, Estimate, Events, Method, Prior, Rival, Samples, insufficient
from traceconv.align.geometry import F64, Chain, Line, box, margin_of, null_margin
from traceconv.model.clocks import Verdict
from traceconv.model.numbers import format_short

# "Scenarios" are those of tests/benchmarks/alignment/measure_activity.py. "Not tuned" means that nothing tells that
# other values were tried; what follows is the reason for the size.

LEAST_SHARE = 0.02  # The least share of busy and of idle samples, also in the model. Not tuned: none is ever certain.
_FREEDOM = 4.0  # Degrees of freedom (Student's) of the noise of deltas. Not tuned: usual where some are far off.
_TRANSFORM = 1 << 22  # The largest transform of a coarse search. Not tuned: 32 MiB for each array.
_MOST_COARSE_STEPS = _TRANSFORM - 4  # The most steps: each recording has up to two bins more.
#: The least and the greatest such step by samples, ns; half their period in between. Not tuned: slices are as short.
_COARSE_STEP_NS = (50e3, 500e3)
#: Offsets of counters nearer to each other are one, in intervals. Not tuned: the error to reach is a twentieth.
_COUNTED_ONE_PLACE = 0.25
#: The systematic error of the labels of counters, as a part of their interval. Not tuned: with twenty short blocks the
#: interval of the offset is too narrow.
_BEYOND_PART = 100


class Busy(Struct, frozen=True):
    """The union of slices: intervals that neither overlap nor touch, ns.

    Attributes:
        before: the busy time before each start.
        middle: of all slices; the offset holds there.
    """

    start: F64
    end: F64
    before: F64
    middle: float
    quantum_ns: float

    @classmethod
    def of_slices(cls, slices: Events) -> Busy:
        start, end = slices.start, np.maximum.accumulate(slices.end)
        rows = np.flatnonzero(np.concatenate(([True], start[1:] > end[:-1])))
        begins, ends = start[rows], end[np.concatenate((rows[1:] - 1, [len(start) - 1]))]
        lasting = ends > begins
        begins, ends = begins[lasting], ends[lasting]
        before = np.concatenate(([0.0], np.cumsum(ends - begins)))
        return cls(begins, ends, before, float(np.mean(slices.span)), slices.quantum_ns)

    def until(self, t: F64) -> F64:
        """Return the busy time until t, ns."""
        rows = np.searchsorted(self.start, t, "right")
        over = np.where(rows > 0, np.maximum(0.0, self.end[np.maximum(rows - 1, 0)] - t), 0.0)
        return np.asarray(self.before[rows] - over, np.float64)

    def inside(self, t: F64) -> Array:
        """Return whether each t is in a slice."""
        rows = np.searchsorted(self.start, t, "right") - 1
        return np.asarray((rows >= 0) & (t < self.end[np.maximum(rows, 0)]))

    def finest(self, t: F64) -> float:
        """Return the smallest step of offsets at which times t may reach other slices, ns."""
        return float(self.end[-1] - self.start[0] + (t[-1] - t[0])) / _MOST_COARSE_STEPS

    def binned(self, t: F64, width: float) -> tuple[F64, _Lags]:
        """Return the busy share of bins of a width, and the lags of times t."""
        first = float(self.start[0])
        size_a, size_b = (int((end - begin) / width) + 2 for begin, end in ((first, self.end[-1]), (t[0], t[-1])))
        share = np.diff(self.until(first + np.arange(size_a + 1, dtype=np.float64) * width)) / width
        return share, _Lags(size_a, size_b, width, float(t[0]) - first)

    def times(self, y: F64, offset: float, drift: float) -> F64:
        """Return times of the other clock on that of the slices."""
        return y - offset - drift / (1 + drift) * (y - offset - self.middle)


class _Lags(Struct, frozen=True):
    """The lags of a coarse search, in bins: all at which two recordings overlap.

    Attributes:
        size_a, size_b: the bins of slices and of the other recording.
        width: of a bin, ns.
        offset: at lag 0, ns.
    """

    size_a: int
    size_b: int
    width: float
    offset: float

    @property
    def transform(self) -> int:
        """The size of a transform in which no lag wraps around."""
        return 1 << (self.size_a + self.size_b - 1).bit_length()

    def offsets(self) -> F64:
        """Return the offset at each lag, ns."""
        return np.asarray(np.arange(-self.size_a + 1, self.size_b) * self.width + self.offset, np.float64)

    def picked(self, correlation: F64) -> F64:
        """Return a correlation at each lag, from one that wraps around."""
        return np.concatenate((correlation[-self.size_a + 1 :], correlation[: self.size_b]))


class Sampled(Struct, frozen=True):
    """The likelihood of labelled samples.

    Attributes:
        t, label: the time of each sample, and whether the runtime was busy.
        period: the usual time between two samples.
        inside_share, outside_share: the share of busy samples inside and outside of slices.
    """

    noun: ClassVar[str] = "samples"
    #: Tops of a coarse search that are refined. Not tuned: tens of iterations look the same.
    candidates: ClassVar[int] = 40
    #: The finest step of offsets, ns: the resolution of most tools.
    step: ClassVar[float] = 1e3
    #: First steps around a candidate, on either side. Not tuned: some are of a microsecond then.
    fineness: ClassVar[int] = 300
    #: Offsets nearer to each other than this are one, ns. Not tuned: a fifth of the period at 1 kHz.
    near: ClassVar[float] = 200e3
    #: Offsets up to this far from the best one are not rivals, ns: samples near few starts and ends cannot distinguish
    #: them. Chosen on other short recordings than those named short_*, and then verified on these.
    beside: ClassVar[float] = 8 * near
    #: The margin of the interval on either side, ns, for the systematic error of labels: a runtime works for tens of µs
    #: around its slices, and no sample is taken while it records a time. Of 24 attempts with the recordings ort_perf_*,
    #: the worst interval missed by 40 µs.
    beyond: ClassVar[float] = 50e3

    busy: Busy
    t: F64
    label: Array
    period: float
    inside_share: float = 0.95  # before they are learned; not tuned: most busy samples are in slices
    outside_share: float = 0.1

    @classmethod
    def of_samples(cls, busy: Busy, samples: Samples) -> Sampled:
        period = max(float(np.median(np.diff(samples.t))), 1.0)
        return cls(busy, samples.t, np.asarray(samples.busy, bool), period)

    def learned(self, offset: float, drift: float) -> Sampled:
        """Return a copy with the shares that the samples show at an offset."""
        inside = self.busy.inside(self.busy.times(self.t, offset, drift))
        return replace(self, inside_share=self._share(inside), outside_share=self._share(~inside))

    def _share(self, rows: Array) -> float:
        """Return the share of busy samples, by Laplace's rule."""
        share = (float(self.label[rows].sum()) + 1) / (int(rows.sum()) + 2)
        return min(max(share, LEAST_SHARE), 1 - LEAST_SHARE)

    @property
    def contrast(self) -> float:
        """The difference of the shares of busy samples inside and outside of slices."""
        return self.inside_share - self.outside_share

    def _gain(self, rows: Array) -> tuple[F64, F64]:
        """Return the log-likelihoods of samples inside and outside of slices."""
        p, q, label = self.inside_share, self.outside_share, self.label[rows].astype(np.int64)
        return np.log([1 - p, p])[label], np.log([1 - q, q])[label]

    def coarse(self) -> tuple[F64, F64]:
        """Return offsets, and the correlation of the labels at each with the busy share of bins of slices."""
        finest = self.busy.finest(self.t)
        width = min(max(self.period / 2, finest, _COARSE_STEP_NS[0]), max(_COARSE_STEP_NS[1], finest))
        share, lags = self.busy.binned(self.t, width)
        size = lags.transform
        bins = ((self.t - self.t[0]) / width).astype(np.int64)
        total = np.zeros(size // 2 + 1, np.complex128)
        for label in (True, False):
            chance = self.outside_share + self.contrast * share
            chance, rest = (chance, self.outside_share) if label else (1 - chance, 1 - self.outside_share)
            product = np.fft.rfft(np.log(chance) - np.log(rest), size)  # in place: these are the largest arrays
            np.conjugate(product, out=product)
            product *= np.fft.rfft(np.bincount(bins[self.label == label], minlength=size))
            total += product
        heights = lags.picked(np.fft.irfft(total, size))
        return lags.offsets(), heights

    def at(self, offset: float, drift: float, rows: Array) -> F64:
        """Return the log-likelihood of samples."""
        inside, outside = self._gain(rows)
        return np.where(self.busy.inside(self.busy.times(self.t[rows], offset, drift)), inside, outside)

    def profile(self, offset: float, drift: float, grid: F64, rows: Array, blocks: int = 1) -> F64:
        """Return the log-likelihood of each block of samples at offsets around one, a row per block.

        As the offset passes the distance of a sample to a border, the sample moves into a slice or out of it. These
        changes are summed in order of the offset, so that the cost does not depend on the number of steps.
        """
        t = self.busy.times(self.t[rows], offset, drift)
        inside, outside = self._gain(rows)
        low, high, step = grid[0], grid[-1], grid[1] - grid[0]
        block = _blocks(len(t), blocks)
        total = np.bincount(block, np.where(self.busy.inside(t - low), inside, outside), minlength=blocks)
        change = np.zeros(blocks * (len(grid) + 1))
        for borders, sign in ((self.busy.start, -1.0), (self.busy.end, 1.0)):
            first, last = np.searchsorted(borders, t - high), np.searchsorted(borders, t - low)
            count = last - first
            which = np.repeat(np.arange(len(t)), count)
            border = np.repeat(first - np.cumsum(count) + count, count) + np.arange(int(count.sum()))
            cell = np.ceil((t[which] - borders[border] - low) / step).astype(np.int64).clip(0, len(grid))
            change += np.bincount(
                block[which] * (len(grid) + 1) + cell, sign * (inside - outside)[which], minlength=len(change)
            )
        return np.asarray(total[:, None] + np.cumsum(change.reshape(blocks, -1)[:, :-1], axis=1), np.float64)


class Counted(Struct, frozen=True):
    """The likelihood of deltas: a rate while idle, another one while busy, and noise with heavy tails.

    Attributes:
        busy: the slices.
        edge, t, width: the ends, the middle and the length of each interval.
        rate: the count per ns in it.
        period: the usual length.
        idle, slope: the rate while idle, and the increase of the rate while busy.
        scale: the scale of the noise.
    """

    noun: ClassVar[str] = "intervals"
    candidates: ClassVar[int] = 13  # a third of those of samples, since each one takes longer
    step: ClassVar[float] = 5e3  # not tuned: a thousandth of a short interval
    fineness: ClassVar[int] = 25  # fewer than for samples, since each one takes longer

    busy: Busy
    edge: F64
    t: F64
    width: F64
    rate: F64
    period: float
    near: float
    beside: float
    beyond: float
    idle: float
    slope: float
    scale: float

    @classmethod
    def of_bins(cls, busy: Busy, bins: Bins) -> Counted:
        width = np.diff(bins.edge)
        rate = bins.amount / np.maximum(width, 1.0)
        middles = (bins.edge[1:] + bins.edge[:-1]) / 2
        period, scale = float(np.median(width)), max(float(np.std(rate)), 1e-12)
        near, idle = _COUNTED_ONE_PLACE * period, float(np.median(rate))
        beyond = period / _BEYOND_PART
        return cls(busy, bins.edge, middles, width, rate, period, near, near, beyond, idle, 0.0, scale)

    def learned(self, offset: float, drift: float) -> Counted:
        """Return a copy with the rates and the noise that the deltas show at an offset, by iterated reweighting."""
        share = self._share(offset, drift, np.arange(len(self.t)))
        weight, idle, slope, scale = np.ones(len(share)), self.idle, self.slope, self.scale
        for _ in range(10):
            total = weight.sum()
            mean_x, mean_y = weight @ share / total, weight @ self.rate / total
            spread = weight @ (share - mean_x) ** 2
            slope = float(weight @ ((share - mean_x) * (self.rate - mean_y)) / spread) if spread > 0 else 0.0
            idle = float(mean_y - slope * mean_x)
            rest = self.rate - idle - slope * share
            scale = max(float(np.sqrt(np.mean(weight * rest * rest))), 1e-3 * abs(slope), 1e-12)
            weight = (_FREEDOM + 1) / (_FREEDOM + (rest / scale) ** 2)
        return replace(self, idle=idle, slope=slope, scale=scale)

    def _share(self, offset: float, drift: float, rows: Array) -> F64:
        """Return the busy share of each interval."""
        first = self.busy.until(self.busy.times(self.edge[rows], offset, drift))
        last = self.busy.until(self.busy.times(self.edge[rows + 1], offset, drift))
        return np.asarray((last - first) / np.maximum(self.width[rows], 1.0), np.float64)

    @property
    def contrast(self) -> float:
        """The increase of the rate while busy, in units of three standard deviations of the noise."""
        return self.slope / self.scale / 3

    def coarse(self) -> tuple[F64, F64]:
        """Return offsets and the correlation of rates with the busy share, in steps of a fraction of an interval."""
        width = max(self.period / 10, self.busy.finest(self.edge))
        share, lags = self.busy.binned(self.edge, width)
        size, size_b = lags.transform, lags.size_b
        at = self.edge[0] + (np.arange(size_b) + 0.5) * width
        rows = (np.searchsorted(self.edge, at, "right") - 1).clip(0, len(self.rate) - 1)
        rate = self.rate[rows] - self.rate.mean()
        spectrum = np.fft.rfft(rate, size)
        seen = np.fft.rfft(np.ones(size_b), size)
        sums = [
            lags.picked(np.fft.irfft(left * np.conj(np.fft.rfft(right, size)), size))
            for left, right in ((spectrum, share), (seen, share), (seen, share * share))
        ]
        spread = np.maximum(sums[2] - sums[1] ** 2 / size_b, 1e-2 * size_b * max(float(np.var(share)), 1e-6))
        return lags.offsets(), np.asarray(sums[0] / np.sqrt(spread), np.float64)

    def at(self, offset: float, drift: float, rows: Array) -> F64:
        """Return the log-likelihood of deltas."""
        rest = (self.rate[rows] - self.idle - self.slope * self._share(offset, drift, rows)) / self.scale
        return np.asarray(-(_FREEDOM + 1) / 2 * np.log1p(rest * rest / _FREEDOM), np.float64)

    def profile(self, offset: float, drift: float, grid: F64, rows: Array, blocks: int = 1) -> F64:
        """Return the log-likelihood of each block of deltas, a row each, at offsets around one."""
        block = _blocks(len(rows), blocks)
        scores = (self.at(offset + shift, drift, rows) for shift in grid.tolist())
        return np.column_stack([np.bincount(block, score, minlength=blocks) for score in scores])


Evidence = Sampled | Counted


def _blocks(count: int, blocks: int) -> Array:
    """Return the number of the block of each sample or delta."""
    return (np.arange(count) * blocks // max(count, 1)).astype(np.int64)


# -- Estimate an offset from activity in two recordings: slices on one side, samples or counter deltas on the other --

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
_EVEN = "at no offset is there more activity inside the slices than between them"
#: The least standard deviation of what one sample or delta says, nats. Not tuned: less than the 1.0 of named
#: events, as most samples fit anywhere, and not 0, as labels are wrong in clusters.
_SPREAD_OF_ONE = 0.3
# The digits of correlations that count: far more than they tell, and fewer than Fourier transforms keep.
_DIGITS = 9
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


class _Place(Struct, frozen=True):
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
    return _align(Sampled.of_samples(Busy.of_slices(slices), samples), prior)


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
    return _align(Counted.of_bins(Busy.of_slices(slices), bins), prior)


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
    evidence = Sampled.of_samples(Busy.of_slices(slices), samples)
    offset, drift = line.offset + line.drift * (evidence.busy.middle - line.x0), line.drift
    t = evidence.busy.times(evidence.t, offset, drift)
    recorded = np.flatnonzero((t >= evidence.busy.start[0]) & (t <= evidence.busy.end[-1]))
    stride = max(1, -(-len(recorded) // _MOST_SEARCHED))
    rows = recorded[::stride]
    count, parts = len(rows), min(_SET_PARTS, len(rows) // _SET_SAMPLES)
    if count < _LEAST_SAMPLES:
        return None
    evidence = evidence.learned(offset, drift)
    grid = _SET_REACH_NS / _SET_STEPS * np.arange(-_SET_STEPS, _SET_STEPS + 1, dtype=np.float64)
    split = np.array_split(rows, parts)
    table = np.vstack([evidence.profile(offset, drift, grid, part) for part in split])
    away, total = np.abs(grid), float(table[:, _SET_STEPS].sum())
    sizes, found = np.array([len(part) for part in split]), []
    for order in (slice(None, None, -1), slice(None)):
        fits, few = (np.cumsum(values[order], axis=0)[: parts // 2] for values in (table, sizes))
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
    return (stride * few_at, move) if gained >= _LEAST_GAIN else None


def _too_little(slices: Events, noun: str, count: int, needed: int) -> Estimate | None:
    """Return the refusal for too few samples or intervals, or for slices without duration; None if there is enough."""
    if count >= needed and float(np.max(slices.dur, initial=0.0)) > 0:
        return None
    return insufficient(Method.ACTIVITY, f"only {count} {noun}, expected at least {needed}")


def _align(evidence: Evidence, prior: Prior) -> Estimate:
    places: list[_Place] = []
    offsets = heights = np.zeros(0)
    for _ in range(2):  # once with the prior shares, once with those learned from the data
        del offsets, heights  # the largest arrays: those of the first search are not needed any more
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
        return insufficient(Method.ACTIVITY, _EVEN)
    aligned = [_with_drift(evidence, place, prior) for place in places[:_REFINED]]
    best = max(aligned, key=lambda place: place.total)
    evidence = evidence.learned(best.offset, best.drift)
    best = _with_drift(evidence, best, prior)
    best = _place(evidence, best.offset, best.drift)
    rivals = _rivals(evidence, best, [*aligned, *places[_REFINED:_MOST_RIVALS]], prior)
    return _judged(evidence, best, rivals, prior, (offsets, heights))


def _places(evidence: Evidence, offsets: F64, heights: F64, prior: Prior) -> list[_Place]:
    """Return the offsets with the best coarse fit, refined, best first; how Fourier transforms round does not count."""
    heights = np.rint(heights / (np.max(np.abs(heights), initial=0.0) or 1.0) * 10.0**_DIGITS)
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
            rivals.append(max(tried, key=lambda place: place.total))
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
        for trial in np.unique(np.clip(tried, -prior.max_drift, prior.max_drift)).tolist():
            shift = trial * (middle - offset - x0)
            total = evidence.profile(offset - shift, trial, grid, rows)[0] - 0.5 * (trial / _USUAL_DRIFT) ** 2
            best = int(np.argmax(total))
            results.append((float(total[best]), trial, float(offset - shift + grid[best]) + shift))
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
    step = evidence.step if isinstance(evidence, Sampled) else max(evidence.step, evidence.beside / 50)
    grid = _grid(evidence.beside, step)
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
    reach = max(high - best.offset, best.offset - low)
    beyond = max(evidence.busy.quantum_ns, evidence.beyond)
    low, high = min(low, best.offset) - beyond, max(high, best.offset) + beyond
    # The offset is known in the middle of the evidence; away from it, the drift is known only to its limit.
    middle = float(np.mean(evidence.busy.times(evidence.t[[0, -1]], best.offset, best.drift)))
    shift = best.drift * (middle - evidence.busy.middle)
    region = box(middle, low + shift, high + shift, prior.max_drift)
    verdict, reason = Verdict.OK, f"{len(evidence.t)} {evidence.noun} fit, to within {format_short(high - low)}"
    if (doubt := _doubt(evidence, best, rivals, margin, reach, prior)) is not None:
        verdict, reason = doubt
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
    evidence: Evidence, best: _Place, rivals: list[_Place], margin: float, reach: float, prior: Prior
) -> tuple[Verdict, str] | None:
    """Return verdict and reason to refuse the best offset, given the reach of its interval (ns); None to accept it."""
    if evidence.contrast < _LEAST_CONTRAST:
        return Verdict.INSUFFICIENT, _EVEN
    if margin < LEAST_MARGIN:
        away = abs(rivals[0].offset - best.offset)
        return Verdict.AMBIGUOUS, f"the {evidence.noun} fit nearly as well {format_short(away)} away"
    narrow = prior.known and prior.high - prior.low <= _NARROW_NS
    if narrow and _null_margin(evidence, best) < LEAST_NULL_MARGIN:
        return Verdict.AMBIGUOUS, f"the {evidence.noun} hardly fit better at the best offset than at random ones"
    if evidence.beside > evidence.near and reach >= evidence.beside - evidence.step:
        away = evidence.beside
        return Verdict.AMBIGUOUS, f"the {evidence.noun} fit nearly as well up to {format_short(away)} away"
    return None

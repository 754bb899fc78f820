"""How well samples, or the deltas of a counter, fit to slices at an offset: their log-likelihood.

A sample has a label: whether the runtime was busy. It is more probable inside of a slice. A delta is greater the longer
slices last in its interval.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from traceconv.align.estimate import Array, Bins, Events, Samples
from traceconv.align.geometry import F64

# "Scenarios" are those of tests/benchmarks/alignment/measure_activity.py. "Not tuned" means that nothing tells that
# other values were tried; what follows is the reason for the size.

LEAST_SHARE = 0.02  # The least share of busy and of idle samples, also in the model. Not tuned: none is ever certain.
_FIRST_INSIDE_SHARE = 0.95  # The share of busy samples in slices, before it is learned. Not tuned: most are.
_FIRST_OUTSIDE_SHARE = 0.1  # The share of busy samples out of slices, before it is learned. Not tuned: few are.
_FREEDOM = 4.0  # Degrees of freedom (Student's) of the noise of deltas. Not tuned: usual where some are far off.
_MOST_COARSE_STEPS = 1 << 22  # The most steps of a coarse search. Not tuned: 32 MiB for each array.
#: The least and the greatest such step by samples, ns; half their period in between. Not tuned: slices are as short.
_COARSE_STEP_NS = (50e3, 500e3)
#: Tops of a coarse search by samples that are refined. Not tuned: tens of iterations look the same.
_SAMPLED_CANDIDATES = 40
_COUNTED_CANDIDATES = 13  # The same for counters: a third, since each one takes longer.
_SAMPLED_FINENESS = 300  # First steps around a candidate, on either side. Not tuned: some are of a microsecond then.
_COUNTED_FINENESS = 25  # The same for counters: fewer, since each one takes longer.
_SAMPLED_STEP_NS = 1e3  # The finest step of offsets by samples, ns: the resolution of most tools.
_COUNTED_STEP_NS = 5e3  # The finest step of offsets by counters, ns. Not tuned: a thousandth of a short interval.
_ONE_PLACE_NS = 200e3  # Offsets nearer to each other are one by samples, ns. Not tuned: a fifth of the period at 1 kHz.
_COUNTED_ONE_PLACE = 0.25  # The same for counters, in intervals. Not tuned: the error to reach is a twentieth.
#: Offsets within this many times that distance are not rivals: samples near few starts and ends cannot distinguish
#: them. Chosen on other short recordings than those named short_*, and then verified on these.
_VICINITY = 8.0
#: The systematic error of labels, ns: a runtime works for tens of µs around its slices, and no sample is taken while it
#: records a time. Of 24 attempts with the recordings ort_perf_*, the worst interval missed by 40 µs.
_BEYOND_SLICES_NS = 50e3
# The same for counters, as a share of their interval. Not tuned: with twenty short blocks the interval is too narrow.
_BEYOND_PART = 100


@dataclass(frozen=True, slots=True)
class Busy:
    """The union of slices: intervals that neither overlap nor touch, ns.

    Attributes:
        start, end: of each interval.
        before: the busy time before each start.
        middle: of all slices; the offset holds there.
        quantum_ns: the resolution of the times as printed.
    """

    start: F64
    end: F64
    before: F64
    middle: float
    quantum_ns: float

    @classmethod
    def of(cls, slices: Events) -> Busy:
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

    def binned(self, t: F64, width: float) -> tuple[F64, Array, int, F64]:
        """Return the busy share of bins of a width, the lags of times t, the size of a transform, and the offsets."""
        first = float(self.start[0])
        size_a, size_b = (int((end - begin) / width) + 2 for begin, end in ((first, self.end[-1]), (t[0], t[-1])))
        share = np.diff(self.until(first + np.arange(size_a + 1, dtype=np.float64) * width)) / width
        lags = np.arange(-size_a + 1, size_b)
        offsets = np.asarray(lags * width + float(t[0]) - first, np.float64)
        return share, lags, 1 << (size_a + size_b).bit_length(), offsets

    def times(self, y: F64, offset: float, drift: float) -> F64:
        """Return times of the other clock on that of the slices."""
        return y - offset - drift / (1 + drift) * (y - offset - self.middle)


@dataclass(frozen=True, slots=True)
class Sampled:
    """The likelihood of labelled samples.

    Attributes:
        busy: the slices.
        t, label: the time of each sample, and whether the runtime was busy.
        period: the usual time between two samples.
        inside_share, outside_share: the share of busy samples inside and outside of slices.
        near: offsets nearer to each other than this are one, ns.
        beside: offsets up to this far from the best one are not rivals, ns: they may be the same offset, less exactly.
        beyond: the margin of the interval on either side, ns.
    """

    noun: ClassVar[str] = "samples"
    candidates: ClassVar[int] = _SAMPLED_CANDIDATES
    step: ClassVar[float] = _SAMPLED_STEP_NS
    fineness: ClassVar[int] = _SAMPLED_FINENESS
    near: ClassVar[float] = _ONE_PLACE_NS
    beside: ClassVar[float] = _VICINITY * _ONE_PLACE_NS
    beyond: ClassVar[float] = _BEYOND_SLICES_NS

    busy: Busy
    t: F64
    label: Array
    period: float
    inside_share: float = _FIRST_INSIDE_SHARE
    outside_share: float = _FIRST_OUTSIDE_SHARE

    @classmethod
    def of(cls, busy: Busy, samples: Samples) -> Sampled:
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
        share, lags, size, offsets = self.busy.binned(self.t, width)
        p = self.outside_share + self.contrast * share
        bins = ((self.t - self.t[0]) / width).astype(np.int64)
        total = np.zeros(size // 2 + 1, np.complex128)
        for label, chance, rest in ((True, p, self.outside_share), (False, 1 - p, 1 - self.outside_share)):
            seen = np.bincount(bins[self.label == label], minlength=size)
            total += np.fft.rfft(seen) * np.conj(np.fft.rfft(np.log(chance) - np.log(rest), size))
        return offsets, np.fft.irfft(total, size)[lags]

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


@dataclass(frozen=True, slots=True)
class Counted:
    """The likelihood of deltas: a rate while idle, another one while busy, and noise with heavy tails.

    Attributes:
        busy: the slices.
        edge, t, width: the ends, the middle and the length of each interval.
        rate: the count per ns in it.
        period: the usual length.
        near, beside, beyond: as in `Sampled`.
        idle, slope: the rate while idle, and the increase of the rate while busy.
        scale: the scale of the noise.
    """

    noun: ClassVar[str] = "intervals"
    candidates: ClassVar[int] = _COUNTED_CANDIDATES
    step: ClassVar[float] = _COUNTED_STEP_NS
    fineness: ClassVar[int] = _COUNTED_FINENESS

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
    def of(cls, busy: Busy, bins: Bins) -> Counted:
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
        share, lags, size, offsets = self.busy.binned(self.edge, width)
        size_b = int(lags[-1]) + 1
        at = self.edge[0] + (np.arange(size_b) + 0.5) * width
        rows = (np.searchsorted(self.edge, at, "right") - 1).clip(0, len(self.rate) - 1)
        rate = self.rate[rows] - self.rate.mean()
        spectrum = np.fft.rfft(rate, size)
        seen = np.fft.rfft(np.ones(size_b), size)
        sums = [
            np.fft.irfft(one * np.conj(np.fft.rfft(other, size)), size)[lags]
            for one, other in ((spectrum, share), (seen, share), (seen, share * share))
        ]
        spread = np.maximum(sums[2] - sums[1] ** 2 / size_b, 1e-2 * size_b * max(float(np.var(share)), 1e-6))
        return offsets, np.asarray(sums[0] / np.sqrt(spread), np.float64)

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

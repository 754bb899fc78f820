"""The same activity seen by two tools: slices on one side, samples or deltas of a counter on the other.

A runtime is busy while its slices last: then most samples fall into it and counters grow faster. How well two clocks
agree at an offset is a likelihood: of the label of each sample, given whether it falls into a slice there; of each
delta, given how long slices last in its interval. A coarse correlation proposes offsets, the likelihood in steps of
microseconds around them decides.

A repeated workload fits nearly as well one repetition later. So the best place must beat each other one by a margin
(Vuong's test on blocks of samples), and the interval comes from drawing blocks with replacement: the likelihood itself
is too sure by several times, since labels are wrong in clusters and not at random.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from traceconv.align.estimate import Array, Bins, Estimate, Events, Method, Prior, Rival, Samples, insufficient
from traceconv.align.geometry import F64, box
from traceconv.align.robust import margin_of, null_margin
from traceconv.clocks import Verdict
from traceconv.times import format_short

_US = 1e3
_MS = 1e6
#: The best place must beat any other one by this many standard deviations of the sum over blocks.
LEAST_MARGIN = 2.5
#: In a narrow window that is known beforehand it must beat random places, too. Their scores are far from normal (busy
#: and idle stretches): of 80 simulated pairs of one run most reach 4, of 80 pairs of two runs none does.
LEAST_NULL_MARGIN = 4.0
#: A window up to this wide may hold one candidate only; a wider one is a search like any other.
_NARROW = 20 * _MS
_LEAST_SAMPLES = 60
_LEAST_BINS = 20
_MOST_BINS = 1 << 22
_CANDIDATES = 40
_REFINED = 4  # candidates whose drift is searched for
_MOST_RIVALS = 12
#: Samples of few begins and ends hardly tell places so near to each other apart, in units of what counts as one place:
#: they are one place then, and the interval says how well it is known.
_VICINITY = 8.0
#: What one sample or delta says varies by no less than this, nats: most fit anywhere, and labels are wrong in clusters.
_SPREAD_OF_ONE = 0.3
_MOST_POINTS = 6000  # samples that a search looks at; the verdict looks at all
_STEPS = 600
_LEAST_CONTRAST = 0.3  # between the shares of busy samples inside and outside of slices
_SMEAR = 20 * _US  # what the drift may move the ends of the evidence by before it is searched for
_BLOCKS, _DRAWS = 20, 200
#: What labels cannot tell: a runtime works for some tens of µs before its first slice and after its last one, and no
#: sample is taken while it writes down the time of a slice. Of 24 recordings the worst interval missed by 40 µs.
_BEYOND_SLICES = 50 * _US
_FREEDOM = 4.0  # of Student's distribution, for deltas: some are far off

#: Log-likelihoods of each sample (or delta), one row for each offset.
_Score = Callable[[F64, F64], F64]


@dataclass(frozen=True, slots=True)
class _Busy:
    """The union of slices: intervals that neither overlap nor touch."""

    start: F64
    end: F64
    before: F64  # how long slices lasted before each start

    @classmethod
    def of(cls, slices: Events) -> _Busy:
        start, end = slices.start, np.maximum.accumulate(slices.end)
        first = np.concatenate(([True], start[1:] > end[:-1]))
        rows = np.flatnonzero(first)
        begins, ends = start[rows], end[np.concatenate((rows[1:] - 1, [len(start) - 1]))]
        lasting = ends > begins
        begins, ends = begins[lasting], ends[lasting]
        return cls(begins, ends, np.concatenate(([0.0], np.cumsum(ends - begins))))

    def until(self, t: F64) -> F64:
        """How long slices lasted until t, ns."""
        rows = np.searchsorted(self.start, t, "right")
        over = np.where(rows > 0, np.maximum(0.0, self.end[np.maximum(rows - 1, 0)] - t), 0.0)
        return np.asarray(self.before[rows] - over, np.float64)

    def inside(self, t: F64) -> Array:
        """Whether each t is in a slice."""
        rows = np.searchsorted(self.start, t, "right") - 1
        return np.asarray((rows >= 0) & (t < self.end[np.maximum(rows, 0)]))


@dataclass(frozen=True, slots=True)
class _Place:
    """A relation of the clocks, and the log-likelihood of each sample or delta there."""

    offset: float
    drift: float
    score: F64

    @property
    def total(self) -> float:
        return float(self.score.sum())


class _Sampled:
    """The likelihood of labelled samples."""

    def __init__(self, busy: _Busy, samples: Samples, x0: float) -> None:
        self._busy, self._x0 = busy, x0
        self.t, self.label = samples.t, np.asarray(samples.busy, bool)
        self.inside_share, self.outside_share = 0.95, 0.1
        self.period = max(float(np.median(np.diff(self.t))), 1.0)

    def __len__(self) -> int:
        return len(self.t)

    def _gain(self, rows: Array) -> tuple[F64, F64]:
        """Log-likelihoods of samples inside and outside of slices."""
        p, q, label = self.inside_share, self.outside_share, self.label[rows]
        return np.where(label, np.log(p), np.log(1 - p)), np.where(label, np.log(q), np.log(1 - q))

    def learn(self, place: _Place) -> None:
        """Take the shares of busy samples in and out of slices from a place; neither is ever certain."""
        inside = self._busy.inside(_back(self.t, place.offset, place.drift, self._x0))
        for name, rows in (("inside_share", inside), ("outside_share", ~inside)):
            share = (float(self.label[rows].sum()) + 1) / (int(rows.sum()) + 2)
            setattr(self, name, min(max(share, 0.02), 0.98))

    @property
    def contrast(self) -> float:
        return self.inside_share - self.outside_share

    def coarse(self) -> tuple[F64, F64]:
        """Offsets and how well the busy share of each bin of slices fits the samples there."""
        first, last = float(self._busy.start[0]), float(self._busy.end[-1])
        reach = last - first + float(self.t[-1] - self.t[0])
        width = max(self.period / 2, reach / _MOST_BINS)
        width = min(max(width, 50 * _US), max(500 * _US, reach / _MOST_BINS))
        size_a, size_b = int((last - first) / width) + 2, int((self.t[-1] - self.t[0]) / width) + 2
        edges: F64 = first + np.arange(size_a + 1, dtype=np.float64) * width
        share = np.diff(self._busy.until(edges)) / width
        p = self.outside_share + (self.inside_share - self.outside_share) * share
        bins = ((self.t - self.t[0]) / width).astype(np.int64)
        size = 1 << (size_a + size_b).bit_length()
        total = np.zeros(size // 2 + 1, np.complex128)
        for label, chance, rest in ((True, p, self.outside_share), (False, 1 - p, 1 - self.outside_share)):
            seen = np.bincount(bins[self.label == label], minlength=size)
            total += np.fft.rfft(seen) * np.conj(np.fft.rfft(np.log(chance) - np.log(rest), size))
        lags = np.arange(-size_a + 1, size_b)
        return np.asarray(lags * width + float(self.t[0]) - first, np.float64), np.fft.irfft(total, size)[lags]

    def at(self, offset: float, drift: float, rows: Array) -> F64:
        """The log-likelihood of samples."""
        inside, outside = self._gain(rows)
        return np.where(self._busy.inside(_back(self.t[rows], offset, drift, self._x0)), inside, outside)

    def profile(
        self, offset: float, drift: float, reach: float, step: float, blocks: int, rows: Array
    ) -> tuple[F64, F64]:
        """Offsets within a reach of one, and the log-likelihood of each block of samples there.

        A sample moves into a slice or out of it as the offset passes the distance to each border: the changes are
        summed up in order of the offset, so that the cost does not depend on the number of steps.
        """
        t = _back(self.t[rows], offset, drift, self._x0)
        inside, outside = self._gain(rows)
        grid = np.arange(-round(reach / step), round(reach / step) + 1) * step
        low, high = grid[0], grid[-1]
        block = (np.arange(len(t)) * blocks // max(len(t), 1)).astype(np.int64)
        table = np.bincount(block, np.where(self._busy.inside(t - low), inside, outside), minlength=blocks)[
            :, None
        ] * np.ones((1, len(grid)))
        change = np.zeros(blocks * (len(grid) + 1))
        for borders, sign in ((self._busy.start, -1.0), (self._busy.end, 1.0)):
            first, last = np.searchsorted(borders, t - high), np.searchsorted(borders, t - low)
            count = last - first
            which = np.repeat(np.arange(len(t)), count)
            border = np.repeat(first - np.cumsum(count) + count, count) + np.arange(int(count.sum()))
            cell = np.ceil((t[which] - borders[border] - low) / step).astype(np.int64).clip(0, len(grid))
            change += np.bincount(
                block[which] * (len(grid) + 1) + cell, sign * (inside - outside)[which], minlength=len(change)
            )
        table += np.cumsum(change.reshape(blocks, -1)[:, :-1], axis=1)
        return np.asarray(offset + grid, np.float64), table


class _Counted:
    """The likelihood of deltas: a rate while idle, another one while busy, and noise with heavy tails."""

    def __init__(self, busy: _Busy, bins: Bins, x0: float) -> None:
        self._busy, self._x0 = busy, x0
        self.edge = bins.edge
        self.width = np.diff(bins.edge)
        self.rate = bins.amount / np.maximum(self.width, 1.0)
        self.period = float(np.median(self.width))
        self.t = (bins.edge[1:] + bins.edge[:-1]) / 2
        self.idle, self.slope = float(np.median(self.rate)), 0.0
        self.scale = max(float(np.std(self.rate)), 1e-12)

    def __len__(self) -> int:
        return len(self.rate)

    def _share(self, offset: float, drift: float, rows: Array) -> F64:
        """Which part of intervals slices last."""
        first = self._busy.until(_back(self.edge[rows], offset, drift, self._x0))
        last = self._busy.until(_back(self.edge[rows + 1], offset, drift, self._x0))
        return np.asarray((last - first) / np.maximum(self.width[rows], 1.0), np.float64)

    def learn(self, place: _Place) -> None:
        """Take the rates and the noise from a place."""
        share = self._share(place.offset, place.drift, np.arange(len(self)))
        weight = np.ones(len(share))
        for _ in range(10):
            total = weight.sum()
            mean_x, mean_y = weight @ share / total, weight @ self.rate / total
            spread = weight @ (share - mean_x) ** 2
            self.slope = float(weight @ ((share - mean_x) * (self.rate - mean_y)) / spread) if spread > 0 else 0.0
            self.idle = float(mean_y - self.slope * mean_x)
            rest = self.rate - self.idle - self.slope * share
            self.scale = max(float(np.sqrt(np.mean(weight * rest * rest))), 1e-3 * abs(self.slope), 1e-12)
            weight = (_FREEDOM + 1) / (_FREEDOM + (rest / self.scale) ** 2)

    @property
    def contrast(self) -> float:
        """How much faster it grows while busy, in standard deviations of the noise."""
        return self.slope / self.scale / 3

    def coarse(self) -> tuple[F64, F64]:
        """Offsets and the correlation of rates with the busy share, in steps of a part of an interval."""
        first, last = float(self._busy.start[0]), float(self._busy.end[-1])
        reach = last - first + float(self.edge[-1] - self.edge[0])
        width = max(self.period / 10, reach / _MOST_BINS)
        size_a, size_b = int((last - first) / width) + 2, int((self.edge[-1] - self.edge[0]) / width) + 2
        share = np.diff(self._busy.until(np.asarray(first + np.arange(size_a + 1) * width, np.float64))) / width
        at = self.edge[0] + (np.arange(size_b) + 0.5) * width
        rows = (np.searchsorted(self.edge, at, "right") - 1).clip(0, len(self.rate) - 1)
        rate = self.rate[rows] - self.rate.mean()
        size = 1 << (size_a + size_b).bit_length()
        spectrum = np.fft.rfft(rate, size)
        seen = np.fft.rfft(np.ones(size_b), size)
        lags = np.arange(-size_a + 1, size_b)
        sums = [
            np.fft.irfft(one * np.conj(np.fft.rfft(other, size)), size)[lags]
            for one, other in ((spectrum, share), (seen, share), (seen, share * share))
        ]
        spread = np.maximum(sums[2] - sums[1] ** 2 / size_b, 1e-2 * size_b * max(float(np.var(share)), 1e-6))
        return np.asarray(lags * width + float(self.edge[0]) - first, np.float64), sums[0] / np.sqrt(spread)

    def at(self, offset: float, drift: float, rows: Array) -> F64:
        """The log-likelihood of deltas."""
        return self._likelihood(self.rate[rows], self._share(offset, drift, rows))

    def _likelihood(self, rate: F64, share: F64) -> F64:
        rest = (rate - self.idle - self.slope * share) / self.scale
        return np.asarray(-(_FREEDOM + 1) / 2 * np.log1p(rest * rest / _FREEDOM), np.float64)

    def profile(
        self, offset: float, drift: float, reach: float, step: float, blocks: int, rows: Array
    ) -> tuple[F64, F64]:
        """Offsets within a reach of one, and the log-likelihood of each block of deltas there."""
        grid = np.arange(-round(reach / step), round(reach / step) + 1) * step
        block = (np.arange(len(rows)) * blocks // max(len(rows), 1)).astype(np.int64)
        table = np.empty((blocks, len(grid)))
        for column, shift in enumerate(grid.tolist()):
            score = self._likelihood(self.rate[rows], self._share(offset + shift, drift, rows))
            table[:, column] = np.bincount(block, score, minlength=blocks)
        return np.asarray(offset + grid, np.float64), table


_Evidence = _Sampled | _Counted


def align_samples(slices: Events, samples: Samples, prior: Prior) -> Estimate:
    """How the clock of slices (x) relates to that of samples (y).

    Args:
        slices: what a runtime does; they may overlap and nest.
        samples: whether it was seen at work.
        prior: what is known beforehand.
    """
    share = float(np.mean(samples.busy)) if len(samples.t) else 0.0
    if len(samples.t) < _LEAST_SAMPLES or not len(slices) or not float(np.max(slices.dur)) > 0:
        return insufficient(Method.ACTIVITY, f"only {len(samples.t)} samples, {_LEAST_SAMPLES} are needed")
    if not 0.02 <= share <= 0.98:
        return insufficient(Method.ACTIVITY, f"{share:.0%} of the samples are busy: nothing begins or ends")
    x0 = float(np.mean(slices.span))
    return _align(slices, _Sampled(_Busy.of(slices), samples, x0), x0, prior, _US)


def align_bins(slices: Events, bins: Bins, prior: Prior) -> Estimate:
    """How the clock of slices (x) relates to that of the intervals of a counter (y).

    Args:
        slices: what a runtime does; they may overlap and nest.
        bins: what a counter counted in each interval.
        prior: what is known beforehand.
    """
    if len(bins.amount) < _LEAST_BINS or not len(slices) or not float(np.max(slices.dur)) > 0:
        return insufficient(Method.ACTIVITY, f"only {len(bins.amount)} intervals, {_LEAST_BINS} are needed")
    if float(np.ptp(bins.amount)) == 0:
        return insufficient(Method.ACTIVITY, "the counter grows evenly: nothing begins or ends")
    x0 = float(np.mean(slices.span))
    return _align(slices, _Counted(_Busy.of(slices), bins, x0), x0, prior, 5 * _US)


def _back(y: F64, offset: float, drift: float, x0: float) -> F64:
    """Times of clock y on clock x."""
    return y - offset - drift / (1 + drift) * (y - offset - x0)


# -- the search -----------------------------------------------------------------------------------------------------


def _align(slices: Events, seen: _Evidence, x0: float, prior: Prior, step: float) -> Estimate:
    near = seen.period / 4 if isinstance(seen, _Counted) else 200 * _US
    best: _Place | None = None
    for _ in range(2):  # once with usual labels, once with those of these data
        offsets, heights = _allowed(*seen.coarse(), prior)
        if not len(offsets):
            return insufficient(Method.ACTIVITY, "the traces do not overlap where their clocks allow it")
        if best is None and isinstance(seen, _Counted):
            seen.learn(_Place(float(offsets[np.argmax(heights)]), 0.0, np.empty(0)))
        places = _places(seen, offsets, heights, prior, step, near)
        best = places[0]
        seen.learn(best)
    if seen.contrast < _LEAST_CONTRAST:
        return insufficient(Method.ACTIVITY, "nowhere are the slices busier than the time between them")
    best, rivals = _settled(seen, places, prior, x0, step, near)
    return _judged(slices, seen, best, rivals, prior, x0, step, near, (offsets, heights))


def _allowed(offsets: F64, heights: F64, prior: Prior) -> tuple[F64, F64]:
    step = float(offsets[1] - offsets[0])
    keep = (offsets >= prior.low - step) & (offsets <= prior.high + step)
    return offsets[keep], heights[keep]


def _places(seen: _Evidence, offsets: F64, heights: F64, prior: Prior, step: float, near: float) -> list[_Place]:
    """The places where the coarse fit is best, refined, the best first."""
    padded = np.pad(heights, 2, constant_values=-np.inf)
    around = np.max(np.lib.stride_tricks.sliding_window_view(padded, 5), axis=1)
    tops = np.flatnonzero(heights >= around)
    tops = tops[
        np.argsort(-heights[tops], kind="stable")[: _CANDIDATES if isinstance(seen, _Sampled) else _CANDIDATES // 3]
    ]
    width = float(offsets[1] - offsets[0]) if len(offsets) > 1 else near
    found: list[_Place] = []
    for top in offsets[tops].tolist():
        found.append(_refined(seen, top, 0.0, 2.5 * width, prior, step))
    found.sort(key=lambda place: -place.total)
    apart: list[_Place] = []
    for place in found:
        if all(abs(place.offset - other.offset) > near for other in apart):
            apart.append(place)
    return apart


def _subset(seen: _Evidence) -> Array:
    """Evenly chosen rows, if there are many."""
    return np.arange(0, len(seen), max(1, -(-len(seen) // _MOST_POINTS)))


def _place(seen: _Evidence, offset: float, drift: float) -> _Place:
    """A place, judged by all samples or deltas."""
    return _Place(offset, drift, seen.at(offset, drift, np.arange(len(seen))))


def _refined(seen: _Evidence, offset: float, drift: float, reach: float, prior: Prior, step: float) -> _Place:
    """The best offset within a reach, the middle of the plateau."""
    coarse = max(step, reach / (_STEPS / 2))
    if isinstance(seen, _Counted):
        coarse = max(step, reach / 25)
    best = _best_on(*seen.profile(offset, drift, reach, coarse, 1, _subset(seen)), prior)
    if coarse > step:
        best = _best_on(*seen.profile(best, drift, 3 * coarse, max(step, coarse / 10), 1, _subset(seen)), prior)
    return _Place(best, drift, seen.at(best, drift, _subset(seen)))


def _best_on(offsets: F64, table: F64, prior: Prior) -> float:
    total = table.sum(axis=0)
    allowed = (offsets >= prior.low) & (offsets <= prior.high)
    if not allowed.any():
        return float(np.clip(offsets[np.argmax(total)], prior.low, prior.high))
    total = np.where(allowed, total, -np.inf)
    first = int(np.argmax(total))
    last = first
    while last + 1 < len(total) and total[last + 1] >= total[first] - 1e-9:
        last += 1
    return float(offsets[first] + offsets[last]) / 2


def _settled(
    seen: _Evidence, places: list[_Place], prior: Prior, x0: float, step: float, near: float
) -> tuple[_Place, list[_Place]]:
    """The best place and its rivals, with the drift that fits best."""
    found = [_with_drift(seen, place, prior, x0, step) for place in places[:_REFINED]]
    best = max(found, key=lambda place: place.total)
    seen.learn(best)
    best = _with_drift(seen, best, prior, x0, step)
    best = _place(seen, best.offset, best.drift)
    rivals = []
    beside = _beside(seen, near)
    for place in [*found, *places[_REFINED:_MOST_RIVALS]]:
        if abs(place.offset - best.offset) > beside:
            ways = (_place(seen, place.offset, drift) for drift in dict.fromkeys((place.drift, best.drift)))
            rivals.append(max(ways, key=lambda way: way.total))
    if isinstance(seen, _Counted):
        rivals += _neighbours(seen, best, prior, step, near)
    return best, sorted(rivals, key=lambda place: -place.total)


def _beside(seen: _Evidence, near: float) -> float:
    """How far from the best place another one is no rival: it may be the same place, less exactly known."""
    return near if isinstance(seen, _Counted) else _VICINITY * near


def _neighbours(seen: _Evidence, best: _Place, prior: Prior, step: float, near: float) -> list[_Place]:
    """The best places a little further away than what counts as the same place, on either side."""
    reach = 8 * near
    offsets, table = seen.profile(best.offset, best.drift, reach, max(step, reach / 200), 1, _subset(seen))
    total = table.sum(axis=0)
    found = []
    for side in (offsets > best.offset + near, offsets < best.offset - near):
        rows = np.flatnonzero(side & (offsets >= prior.low) & (offsets <= prior.high))
        if len(rows):
            offset = float(offsets[rows[np.argmax(total[rows])]])
            found.append(_place(seen, offset, best.drift))
    return found


def _with_drift(seen: _Evidence, place: _Place, prior: Prior, x0: float, step: float) -> _Place:
    """The place with the drift that fits best, over a span that doubles until it holds everything."""
    half = float(seen.t[-1] - seen.t[0]) / 2
    if prior.max_drift * half <= _SMEAR:
        return place
    grid_end = prior.max_drift
    middle, drift = float(np.mean(seen.t)), place.drift
    offset = place.offset + drift * (middle - place.offset - x0)  # where it holds: the middle of the evidence
    span = min(half, 25 * _SMEAR / prior.max_drift)
    while True:
        rows = np.flatnonzero(np.abs(seen.t - middle) <= span)
        rows = rows[:: -(-len(rows) // _MOST_POINTS)] if len(rows) else rows
        resolution = _SMEAR / span
        tried = drift + np.arange(-np.ceil(grid_end / resolution), np.ceil(grid_end / resolution) + 1) * resolution
        tried = np.unique(np.clip(tried, -prior.max_drift, prior.max_drift))
        results = []
        for one in tried.tolist():
            at_x0 = offset - one * (middle - offset - x0)
            reach = 5 * _SMEAR
            offsets, table = seen.profile(at_x0, one, reach, max(step, 2 * _US), 1, rows)
            total = table.sum(axis=0) - 0.5 * (one / 100e-6) ** 2
            best = int(np.argmax(total))
            results.append((float(total[best]), one, float(offsets[best]) + one * (middle - offset - x0)))
        _, drift, offset = max(results)
        if span >= half:
            break
        grid_end, span = 2 * resolution, min(2 * span, half)
    return _refined(seen, offset - drift * (middle - offset - x0), drift, 2 * _SMEAR, prior, step)


# -- the verdict ----------------------------------------------------------------------------------------------------


def _margin(best: F64, rival: F64) -> float:
    """By how many standard deviations the best place beats another one, over blocks."""
    count = max(10, min(200, len(best) // 10))
    return margin_of(best - rival, count, _SPREAD_OF_ONE)


def _null_margin(seen: _Evidence, best: _Place, near: float) -> float:
    """By how many standard deviations the best place beats random ones."""
    rng = np.random.default_rng(0)
    half = max(float(seen.t[-1] - seen.t[0]) / 2, 10 * near)
    shifts = rng.uniform(-half, half, 60)
    shifts = shifts[np.abs(shifts) > near][:40]
    rows = _subset(seen)
    scores = [float(seen.at(best.offset + shift, best.drift, rows).sum()) for shift in shifts.tolist()]
    return null_margin(float(best.score[rows].sum()), scores, len(rows), _SPREAD_OF_ONE)


def _interval(seen: _Evidence, best: _Place, prior: Prior, step: float, reach: float) -> tuple[float, float]:
    """The 95 % interval of the offset: where the best place lies when blocks are drawn with replacement."""
    fine = step if isinstance(seen, _Sampled) else max(step, reach / 50)
    offsets, table = seen.profile(best.offset, best.drift, reach, fine, _BLOCKS, np.arange(len(seen)))
    allowed = (offsets >= prior.low) & (offsets <= prior.high)
    weights = np.random.default_rng(0).multinomial(_BLOCKS, np.full(_BLOCKS, 1 / _BLOCKS), _DRAWS)
    total = np.where(allowed, weights @ table, -np.inf) if allowed.any() else weights @ table
    top = total >= total.max(axis=1, keepdims=True) - 1e-3
    first = offsets[np.argmax(top, axis=1)]
    last = offsets[len(offsets) - 1 - np.argmax(top[:, ::-1], axis=1)]
    return float(np.percentile(first, 2.5)), float(np.percentile(last, 97.5))


def _judged(
    slices: Events,
    seen: _Evidence,
    best: _Place,
    rivals: list[_Place],
    prior: Prior,
    x0: float,
    step: float,
    near: float,
    landscape: tuple[F64, F64],
) -> Estimate:
    margin = min((_margin(best.score, rival.score) for rival in rivals), default=np.inf)
    null = _null_margin(seen, best, near)
    reach = _beside(seen, near)
    low, high = _interval(seen, best, prior, step, reach)
    endless = isinstance(seen, _Sampled) and max(high - best.offset, best.offset - low) >= reach - step
    # Twenty blocks of few intervals draw too narrow an interval.
    floor = max(slices.quantum_ns, _BEYOND_SLICES if isinstance(seen, _Sampled) else seen.period / 100)
    low, high = min(low, best.offset) - floor, max(high, best.offset) + floor
    # The evidence tells the offset in its own middle; how the clocks drift from there is known to the limit only.
    middle = float(np.mean(_back(seen.t[[0, -1]], best.offset, best.drift, x0)))
    shift = best.drift * (middle - x0)
    region = box(middle, low + shift, high + shift, prior.max_drift)
    verdict, reason = _verdict(seen, prior, margin, null, high - low, rivals, best)
    if verdict is Verdict.OK and endless:
        verdict, reason = Verdict.AMBIGUOUS, f"the samples fit nearly as well up to {format_short(reach)} away"
    return Estimate(
        Method.ACTIVITY,
        verdict,
        reason,
        best.offset,
        best.drift,
        x0,
        region,
        len(seen),
        margin=margin,
        rivals=tuple(Rival(rival.offset, rival.total) for rival in rivals[:10]),
        landscape=landscape,
    )


def _verdict(
    seen: _Evidence, prior: Prior, margin: float, null: float, width: float, rivals: list[_Place], best: _Place
) -> tuple[Verdict, str]:
    what = "samples" if isinstance(seen, _Sampled) else "intervals"
    if seen.contrast < _LEAST_CONTRAST:
        return Verdict.INSUFFICIENT, "nowhere are the slices busier than the time between them"
    if margin < LEAST_MARGIN:
        away = abs(rivals[0].offset - best.offset)
        return Verdict.AMBIGUOUS, (f"the {what} fit nearly as well {format_short(away)} away")
    narrow = prior.known and prior.high - prior.low <= _NARROW
    if narrow and null < LEAST_NULL_MARGIN:
        return Verdict.AMBIGUOUS, f"the {what} hardly fit better at the best place than at random ones"
    return Verdict.OK, f"{len(seen)} {what} fit, to within {format_short(width)}"

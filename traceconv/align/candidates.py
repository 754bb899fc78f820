"""Relate two clocks by several lines: one of them was slewed, or set, while both recorded.

The start of the two logs fits along a line, and the rest does not. From there on the events are followed block by
block, each along the line of the block before: a clock that runs at another rate strays slowly. If a block does not fit
at all, a clock was set, and the rest is aligned anew. Between such steps the lines are found by dynamic programming
over medians of blocks, as few as the noise allows (with a penalty after Schwarz for each further one). Each line needs
its own evidence, enough pairs within feasible bounds; without it there is no estimate.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from traceconv.align.estimate import Array, Events, Prior, some_of
from traceconv.align.geometry import F64, Chain, Line, margin_of, null_margin, quantile, robust_line, spread_of
from traceconv.align.matching import (
    BIN_NS,
    FEWEST_PAIRS,
    NEAR_NS,
    TRIM,
    Matcher,
    Pairs,
    bounds_of,
    containment,
    sure_region,
)
from traceconv.model.clocks import SLEWED_DRIFT

# Each with its unit. All but those that say "not tuned" were chosen on seeds below 1000 of tests/benchmarks/alignment,
# pairs whose clocks were slewed or set while both recorded, as docs/alignment.md says of all thresholds.

_US = 1e3

LEAST_PAIRS = 20  # The fewest pairs for a line.
_BLOCK_EVENTS = 100  # The most events of a block, unless a line needs more.
_BLOCK_NS = 2e8  # The longest block, ns: no clock strays far in it. Not tuned: 200 µs at 1000 ppm.
_STRAYED_NS = 150 * _US  # Pairs are first searched within this distance of the line of the block before, ns.
_LEAST_SHARE = 0.5  # The least share of a block, and of a part without steps, that must match.
#: The least spread of starts about the medians of their classes, ns: times are printed in whole microseconds.
_LEAST_SPREAD_NS = 2 * _US
_MOST_MEDIANS = 240  # The most medians along a part. Not tuned: limits time, which is quadratic in it.
_PAIRS_OF_MEDIAN = 8  # The fewest pairs of a median, if there are as many. Not tuned: some pairs are wrong.
_LEAST_MEDIANS = 3  # The fewest medians of a line. Not tuned: any two are on a line.
_MOST_LINES = 8  # The most consecutive lines without a step. Not tuned: limits time.
_LEAST_NOISE_NS = 0.3 * _US  # The least noise of a median, ns.
CONTINUOUS_NS = 10 * _US  # Lines that miss each other by no more than this where they meet are one bent line, ns.
#: Lines that miss each other by less are not taken for a jump, ns; and a jump that is this many times greater than the
#: scatter of pairs is seen at each of them.
_LEAST_JUMP_NS, _TIMES_SCATTER = 1 * _US, 6.0
_TIGHT = 0.1  # The tightest share of the distances between starts, and between ends, that the bounds ignore.
#: The penalty for a further line, in logarithms of the number of medians. Not tuned: twice that of Schwarz for three
#: parameters.
_PENALTY = 6


def followed(a: Events, b: Events, line: Line) -> tuple[Chain, int]:
    """Return the relation from the start of b on, and the row of b from which on it no longer fits."""
    matcher = Matcher(a, b)
    first = int(np.searchsorted(b.start, float(line.map(a.start[0])) - _STRAYED_NS))
    lines = [line]
    while first < len(b) and float(b.start[first]) <= last_time(a, lines[-1]):
        block = next_block(b, first)
        fitted = _along(a, block, matcher, lines[-1])
        if fitted is None:
            break
        lines.append(replace(fitted, begin=max(float(fitted.back(block.start[0])), lines[-1].begin)))
        first += len(block)
    return Chain(tuple(lines)), first


def last_time(a: Events, line: Line) -> float:
    """Return the last time at which events of b may lie in events of a, ns of b."""
    return float(line.map(np.array(a.span[1]))) + _STRAYED_NS


def next_block(b: Events, first: int) -> Events:
    """Return the next events: enough for a line, over a time in which no clock strays far."""
    until = int(np.searchsorted(b.start, b.start[first] + _BLOCK_NS, "right"))
    return b.take(slice(first, max(min(until, first + _BLOCK_EVENTS), first + LEAST_PAIRS)))


def _along(a: Events, block: Events, matcher: Matcher, line: Line) -> Line | None:
    """Return the line of a block near to that of the block before it; None if it does not fit."""
    for tolerance in (_STRAYED_NS, NEAR_NS):
        pairs = matcher.part(block).pairs(line, tolerance)
        if len(pairs) < max(_LEAST_SHARE * len(block), _LEAST_MEDIANS):
            return None
        x = a.start[pairs.a]
        wanted = pairs.begin + line.drift * (x - line.x0)
        _, drift, _ = robust_line(x, wanted, _LEAST_SPREAD_NS, SLEWED_DRIFT, SLEWED_DRIFT)
        line = Line(line.offset + line.drift * (float(x.mean()) - line.x0), drift, float(x.mean()))
        line = line.shifted(_middle(a, block, pairs, line))
    return line


def _middle(a: Events, b: Events, pairs: Pairs, line: Line) -> float:
    """Return by how much the middle of the bounds lies later, ns: latencies are one-sided."""
    early = b.start[pairs.b] - line.map(a.start[pairs.a])
    late = line.map(a.end[pairs.a]) - b.end[pairs.b]
    return float(np.quantile(early, _TIGHT) - np.quantile(late, _TIGHT)) / 2


def step_between(a: Events, b: Events, rows: slice, old: Line, new: Line) -> tuple[tuple[float, float], float]:
    """Return the times of clock x between which one line ends and the next one starts, and the step of y there, ns.

    The clock may have been set at any time from the end of the last event on the old line to the start of the first one
    on the new line.
    """
    part = b.take(rows)
    matcher = Matcher(a, b).part(part)
    fits_old, fits_new = (matcher.holding(line, NEAR_NS) >= 0 for line in (old, new))
    before = np.concatenate(([0], np.cumsum(fits_old.astype(np.int64) - fits_new)))
    split = int(np.argmax(before))
    old_rows, new_rows = np.flatnonzero(fits_old[:split]), split + np.flatnonzero(fits_new[split:])
    last = float(old.back(part.end[old_rows[-1] if len(old_rows) else 0]))
    after = new.back(part.start[new_rows])
    first = float(min(after[after >= last], default=last))  # an event that fits both may lie before the step
    knot = (last + first) / 2
    return (last, first), float(new.map(np.array(knot)) - old.map(np.array(knot)))


# -- as few lines as it takes ----------------------------------------------------------------------------------------


def lines_of(a: Events, b: Events, rough: Chain) -> tuple[Line, ...]:
    """Return the lines of a part without steps, each with its region; None if one of them has too little evidence."""
    if not len(b):
        return ()
    pairs = Matcher(a, b).pairs(rough, NEAR_NS)
    if len(pairs) < LEAST_PAIRS or len(pairs) < _LEAST_SHARE * len(b):
        return ()
    x = a.start[pairs.a]
    order = np.argsort(x, kind="stable")
    pairs, x = pairs.where(order), x[order]
    apart = rough.map(x) - x + pairs.begin
    borders = _borders(x, apart)
    lines = [_line(x[low:high], apart[low:high]) for low, high in pairwise(borders)]
    parts = lines[:1]
    for number, (earlier, later) in enumerate(pairwise(lines), 1):
        knot = _knot(x, borders[number], earlier, later)
        doubt = _jump(x, apart, borders[number - 1 : number + 2], knot, earlier, later)
        parts.append(replace(later, begin=knot if doubt is None else sum(doubt) / 2, doubt=doubt))
    rows = np.searchsorted([line.begin for line in parts[1:]], x, "right")
    found = [_within(a, b, pairs.where(rows == number), line) for number, line in enumerate(parts)]
    sure = tuple(line for line in found if line is not None)
    return sure if len(sure) == len(found) else ()


def _within(a: Events, b: Events, pairs: Pairs, line: Line) -> Line | None:
    """Return the line in the middle of the region of its pairs; None if they are too few or allow no line."""
    if len(pairs) < LEAST_PAIRS:
        return None
    region, _ = sure_region(containment(a, b, pairs), line, 2 * SLEWED_DRIFT)
    if region is None:
        return None
    x = a.start[pairs.a]
    offset, drift = region.middle((float(x[0]), max(float(x[-1]), float(x[0]) + 1)))
    return replace(line, offset=offset, drift=drift, region=region, matches=len(pairs))


def _line(x: F64, apart: F64) -> Line:
    offset, drift, _ = robust_line(x, apart, _LEAST_SPREAD_NS, 2 * SLEWED_DRIFT, SLEWED_DRIFT)
    return Line(offset, drift, float(x.mean()))


def _knot(x: F64, at: int, earlier: Line, later: Line) -> float:
    """Return the time at which two lines meet near the first pair of the later one, else the time of that pair."""
    around = x[max(at - _BLOCK_EVENTS, 0)], x[min(at + _BLOCK_EVENTS, len(x) - 1)]
    if earlier.drift != later.drift:
        moved = later.offset - later.drift * later.x0 - earlier.offset + earlier.drift * earlier.x0
        meet = moved / (earlier.drift - later.drift)
        if around[0] <= meet <= around[1]:
            return float(meet)
    return float(x[at])


def _jump(
    x: F64, apart: F64, borders: list[int], knot: float, earlier: Line, later: Line
) -> tuple[float, float] | None:
    """Return the times between which a clock was set, if two lines do not meet at a knot; None if they do."""
    at = np.array(knot)
    jump = abs(float(later.map(at) - earlier.map(at)))
    if jump <= _LEAST_JUMP_NS:
        return None
    begin, middle, end = borders
    low, high = max(middle - _BLOCK_EVENTS, begin), min(middle + _BLOCK_EVENTS, end)
    near = x[low:high]
    off = [np.abs(line.map(near) - near - apart[low:high]) for line in (earlier, later)]
    after = low + int(np.argmax(np.concatenate(([0], np.cumsum(np.where(off[0] < off[1], 1, -1))))))
    # Pairs scatter. If they do so by less than the clock was set, each shows on which side of that it is.
    aside = 0 if jump > _TIMES_SCATTER * spread_of(np.minimum(*off)) else _PAIRS_OF_MEDIAN
    first, last = max(after - 1 - aside, begin), min(after + aside, end - 1)
    return float(x[first]), float(x[last])


def _borders(x: F64, apart: F64) -> list[int]:
    """Return the first row of each line, by exact dynamic programming over blocks, and the number of rows."""
    size = max(len(x) // _MOST_MEDIANS, min(_PAIRS_OF_MEDIAN, len(x) // _LEAST_MEDIANS))
    starts = np.arange(0, len(x) - size + 1, size)
    blocks = np.split(np.arange(len(x)), starts[1:])
    t = np.array([float(np.median(x[rows])) for rows in blocks])
    y = np.array([float(np.median(apart[rows])) for rows in blocks])
    noise = max(_noise(t, y), _LEAST_NOISE_NS)
    t, y = (t - t[0]) / max(float(t[-1] - t[0]), 1.0), (y - y.mean()) / noise
    cost = _costs(t, y)
    count = len(t)
    penalty = _PENALTY * np.log(max(count, 2))
    best = np.full((_MOST_LINES + 1, count + 1), np.inf)
    best[0, 0] = 0.0
    came = np.zeros((_MOST_LINES + 1, count + 1), np.int64)
    for lines in range(1, _MOST_LINES + 1):
        total = best[lines - 1][:, None] + cost
        came[lines], best[lines] = np.argmin(total, axis=0), np.min(total, axis=0)
    lines = int(np.argmin(best[:, count] + penalty * np.arange(_MOST_LINES + 1)))
    borders = [count]
    for number in range(lines, 0, -1):
        borders.append(int(came[number, borders[-1]]))
    return [int(starts[border]) if border < count else len(x) for border in reversed(borders)]


def _noise(t: F64, y: F64) -> float:
    """Return the standard deviation of the medians about a smooth curve, by second differences: 0 on a line."""
    if len(t) < 4:
        return 0.0
    share = (t[1:-1] - t[:-2]) / np.maximum(t[2:] - t[:-2], 1.0)
    bend = y[1:-1] - (y[:-2] + share * (y[2:] - y[:-2]))
    return spread_of(bend) / float(np.sqrt(1.5))


def _costs(t: F64, y: F64) -> F64:
    """Return the sum of squares about a line, by first and last block but one; infinite for too few blocks."""
    sums = [np.concatenate(([0.0], np.cumsum(values))) for values in (np.ones(len(t)), t, y, t * t, t * y, y * y)]
    n, st, sy, stt, sty, syy = (total[None, :] - total[:, None] for total in sums)
    with np.errstate(divide="ignore", invalid="ignore"):
        vt, vty, vy = stt - st * st / n, sty - st * sy / n, syy - sy * sy / n
        cost = vy - np.where(vt > 0, vty * vty / vt, 0.0)
    return np.where(n >= min(_LEAST_MEDIANS, len(t)), np.maximum(cost, 0.0), np.inf)


# -- Find candidates for the offset of two logs of the same work, and the margin of the best one ---------------------

# Each with its unit and what it was chosen on, in the terms of `sequences`: simulated, tuned and few iterations.

_MOST_BINS = 1 << 23  # The most bins of the search. Not tuned: limits memory, to 128 MiB for each spectrum.
#: With more bins than this, only those near a pair of events are computed if these are fewer. Not tuned: limits time,
#: since recordings may be days apart.
_MANY_BINS = 1 << 20
_PEAK_BINS = 3  # A peak is higher than all within this many bins. Not tuned: the flanks of a peak are a bin or two.
#: The duration of the chunk that is searched first, ns (simulated: drifts of 50 ppm do not smear it beyond a bin).
_CHUNK_NS = 1.5e9
_LEAST_CHUNK_EVENTS = 400  # With fewer events the chunk may be longer (simulated: enough to distinguish iterations).
_MOST_CHUNK_EVENTS = 4000  # With more events the chunk is cut. Not tuned: limits time.
_CANDIDATES = 60  # The number of peaks that are refined (simulated).
#: In addition, all peaks within this many standard deviations of the highest count (simulated: equal layers without
#: jitter).
_AS_HIGH_SIGMA = 2.0
_MOST_CANDIDATES = 300  # The most peaks that are refined. Not tuned: limits time.
_TRIED_SOONER = 4  # The number of best offsets that are also tried earlier (simulated, tuned).
#: Earlier by this, ns: peaks are too late by the latency of work (tuned).
_SOONER_NS = (100 * _US, 200 * _US, 400 * _US)
_FIRST_LOOK_EVENTS = 400  # The inner events of a first comparison. Not tuned: it halves the time of the search.
#: The number of best candidates that are compared closely, besides equally good ones. Not tuned: limits time.
_CLOSELY_SEEN = 10
#: The distances within which pairs are searched one after the other in a first comparison, in bins (simulated).
_FIRST_LOOK_BINS = (4.0, 2.0, 1.0)
_NEARER_NS = 50 * _US  # The distance after these, and before `NEAR_NS`, ns (simulated).
_LEAST_SPREAD_OF_ENDS_NS = 3 * _US  # The least spread of ends about the medians of their classes, ns (simulated).
#: The share of events that match by chance, in the model that scores them. Not tuned: some tenths are missing.
_BY_CHANCE = 0.3
#: The range of the ends of events that match by chance, in that model, ns. Not tuned: about the length of an operator.
_CHANCE_END_NS = 1e6
_FIT_PAIRS = 5000  # The approximate greatest number of pairs of a fit. Not tuned: limits time.
#: The least margin of the best offset over all others, in standard deviations over blocks (simulated: none wrong).
LEAST_MARGIN = 5.0
#: Random offsets are drawn up to this far from the best one, ns. Not tuned: far beyond an iteration.
_RANDOM_WITHIN_NS = 5e8
#: The number of random offsets drawn. Not tuned: more than are used, since some are the best offset itself.
_RANDOM_DRAWN = 60
_RANDOM_PLACES = 40  # The most random offsets used. Not tuned: their spread is known to a tenth then.
_LEAST_PLACES = 10  # The fewest random offsets. Not tuned: their spread is known to a quarter then.
_LEAST_BLOCKS = 8  # The fewest blocks. Not tuned: with fewer their spread is hardly known.
_MOST_OF_AN_EVENT = 8.0  # The greatest log-likelihood ratio of one event, nats (tuned): a single event is not evidence.
#: The least spread of the ratio of one event, nats (simulated: equal layers): times are cut, and models are not exact.
_SPREAD_OF_AN_EVENT = 1.0
#: The factor by which a fit may exceed the prior drift, before the region limits it. Not tuned: any slack does.
DRIFT_SLACK = 1.5
#: The prior standard deviation of a drift, as a ratio. Not tuned: clocks of one machine run within 100 ppm.
PRIOR_DRIFT = 100e-6
SAME_PLACE_NS = 200 * _US  # Offsets no further apart than this are one, ns. Not tuned: two bins.
BLOCK_EVENTS = 40  # The events of a block, since neighbours are similar (simulated).


class Candidate(Struct, frozen=True):
    """An offset at which the two may fit.

    Attributes:
        line, scale: as refined.
        score: the log-likelihood of each event of the chunk.
    """

    line: Line
    scale: float
    score: F64


class Chunk(Struct, frozen=True):
    """The events that candidates are compared on: all of one side and the first events of the other one.

    Attributes:
        a, b: the events; one of them is cut.
        of_b: whether it is b.
        bin: the resolution of the search, ns: a drift does not smear more than that over the chunk.
        matcher: of a and b.
        span: that of a.
        refined: the offsets that were refined before, by their first estimates; shared by chunks of equal events.
    """

    a: Events
    b: Events
    of_b: bool
    bin: float
    matcher: Matcher
    span: tuple[float, float]
    refined: dict[tuple[Line, tuple[float, ...]], tuple[Line, float] | None] = {}

    @classmethod
    def starts(cls, a: Events, b: Events, prior: Prior) -> Iterator[Chunk]:
        """Yield the chunk of the start of b, and that of the start of a."""
        of_b = cls.start(a, b, prior, of_b=True)
        yield of_b
        of_a = cls.start(a, b, prior, of_b=False)
        are_equal = len(of_b.b) == len(b) and len(of_a.a) == len(a) and of_a.bin == of_b.bin
        yield replace(of_b, of_b=False) if are_equal else of_a

    @classmethod
    def start(cls, a: Events, b: Events, prior: Prior, *, of_b: bool) -> Chunk:
        """Return the start of a side: enough events to tell iterations apart, too few for the drift to smear them."""
        whole = b if of_b else a
        few, many = (min(len(whole), count) - 1 for count in (_LEAST_CHUNK_EVENTS, _MOST_CHUNK_EVENTS))
        until = min(max(float(whole.start[0]) + _CHUNK_NS, float(whole.start[few])), float(whole.start[many]))
        part = whole.take(slice(0, int(np.searchsorted(whole.start, until, "right"))))
        a, b = (a, part) if of_b else (part, b)
        width = max(BIN_NS, prior.max_drift * (until - float(whole.start[0])) / 3)
        return cls(a, b, of_b, width, Matcher(a, b), a.span)

    def thinned(self) -> Chunk:
        """Return the chunk with some of its inner events, enough to choose the candidates for a closer look."""
        return replace(self, b=self.b.take(some_of(np.arange(len(self.b)), _FIRST_LOOK_EVENTS)))

    def pairs(self, line: Line, tolerance: float) -> Pairs:
        """Return the pairs on a line; rows of b count from its first event."""
        first, last = line.map(np.array(self.span))
        begin, end = np.searchsorted(self.b.start, (first - tolerance, last + tolerance)).tolist()
        pairs = self.matcher.part(self.b.take(slice(begin, end))).pairs(line, tolerance)
        return replace(pairs, b=pairs.b + begin)

    def score(self, line: Line, scale: float) -> F64:
        """Return the log-likelihood of each event of the chunk.

        An event is near the usual position of its class, or matches by chance.
        """
        tolerance = 2 * self.bin
        pairs = self.pairs(line, tolerance)
        chance = np.log(_BY_CHANCE) - np.log(2 * tolerance) - np.log(_CHANCE_END_NS)
        width, spread = max(scale, _LEAST_SPREAD_NS), max(spread_of(pairs.end), _LEAST_SPREAD_OF_ENDS_NS)
        fit = np.log(1 - _BY_CHANCE) - np.abs(pairs.begin) / width - np.log(2 * width)
        fit += -np.abs(pairs.end) / spread - np.log(2 * spread)
        fit = np.logaddexp(chance, fit)
        score = np.full(len(self.b) if self.of_b else len(self.a), chance)
        if self.of_b:
            score[pairs.b] = fit
        else:
            np.maximum.at(score, pairs.a, fit)
        return score


def correlation(chunk: Chunk, prior: Prior) -> tuple[F64, F64]:
    """Return how many events of a kind coincide at each offset within the prior, in steps of a bin.

    Far from every peak, offsets at which no events coincide may be left out.
    """
    a, b = _chunks_within(chunk, prior)
    if not len(a) or not len(b):
        return np.empty(0), np.empty(0)
    first_a, last_a, first_b, last_b = (float(side.start[at]) for side in (a, b) for at in (0, -1))
    bins = (last_a - first_a + last_b - first_b) / chunk.bin
    few = bins > _MANY_BINS and _pairs_of_a_kind(a, b) * (2 * _PEAK_BINS + 1) < min(bins, _MOST_BINS)
    width = chunk.bin if few else max(chunk.bin, chunk.bin * bins / _MOST_BINS)
    lags, heights = (_counted if few else _transformed)(a, b, width)
    offsets: F64 = np.asarray(lags * width + (first_b - first_a), np.float64)
    if prior.known:
        allowed = (offsets >= prior.low - 2 * width) & (offsets <= prior.high + 2 * width)
        offsets, heights = offsets[allowed], heights[allowed]
    return offsets, heights


def _pairs_of_a_kind(a: Events, b: Events) -> int:
    """Return how many pairs of an event of a and one of b are of one kind."""
    kinds = 1 + int(max(np.max(a.kind), np.max(b.kind)))
    return int(np.bincount(a.kind, minlength=kinds) @ np.bincount(b.kind, minlength=kinds))


def _bins(events: Events, width: float) -> Array:
    """Return the bin of each event; the first event is in bin 0."""
    bins: Array = ((events.start - events.start[0]) / width).astype(np.int64)
    return bins


def _counted(a: Events, b: Events, width: float) -> tuple[Array, F64]:
    """Return the lags, in bins, near those at which events of a kind coincide, and how many do so, pair by pair."""
    bins_a, bins_b = _bins(a, width), _bins(b, width)
    kinds = np.intersect1d(a.kind, b.kind).tolist()
    coincide = [np.subtract.outer(bins_b[b.kind == kind], bins_a[a.kind == kind]).ravel() for kind in kinds]
    found, counts = np.unique(np.concatenate([np.empty(0, np.int64), *coincide]), return_counts=True)
    low, high = -int(bins_a[-1]), int(bins_b[-1])  # the first and the last possible lag are among them
    lags = np.unique(np.concatenate((found, (low, high))))
    lags = np.unique(np.concatenate([lags + shift for shift in range(-_PEAK_BINS, _PEAK_BINS + 1)]))
    lags = lags[(lags >= low) & (lags <= high)]
    heights = np.zeros(len(lags))
    heights[np.searchsorted(lags, found)] = counts
    return lags, heights


def _transformed(a: Events, b: Events, width: float) -> tuple[Array, F64]:
    """Return all possible lags, in bins, and how many events of a kind coincide at each, by Fourier transforms."""
    bins_a, bins_b = _bins(a, width), _bins(b, width)
    size_a, size_b = int(bins_a[-1]) + 1, int(bins_b[-1]) + 1
    size = 1 << (size_a + size_b).bit_length()
    total = np.zeros(size // 2 + 1, np.complex128)
    for kind in np.unique(b.kind).tolist():
        of_a, of_b = bins_a[a.kind == kind], bins_b[b.kind == kind]
        if len(of_a) and len(of_b):
            spectrum_a = np.fft.rfft(np.bincount(of_a, minlength=size))
            total += np.fft.rfft(np.bincount(of_b, minlength=size)) * np.conj(spectrum_a)
    lags = np.arange(-size_a + 1, size_b)
    # The counts are whole, so that equal ones stay equal whatever the library of the transforms rounds.
    return lags, np.rint(np.fft.irfft(total, size)[lags])


def _chunks_within(chunk: Chunk, prior: Prior) -> tuple[Events, Events]:
    """Return the events that can coincide with others within the prior."""
    a, b = chunk.a, chunk.b
    if not prior.known:
        return a, b
    slack = 2 * chunk.bin + prior.max_drift * (a.start[-1] - a.start[0] + b.start[-1] - b.start[0])
    a = a.take(slice(*np.searchsorted(a.start, (b.start[0] - prior.high - slack, b.start[-1] - prior.low + slack))))
    if len(a):
        b = b.take(slice(*np.searchsorted(b.start, (a.start[0] + prior.low - slack, a.start[-1] + prior.high + slack))))
    return a, b


def _peaks(offsets: F64, heights: F64) -> F64:
    """Return the offsets of the highest peaks; each is higher than all within `_PEAK_BINS` of it."""
    around = np.pad(heights, _PEAK_BINS, constant_values=-np.inf)
    within = heights
    for shift in range(2 * _PEAK_BINS + 1):
        within = np.maximum(within, around[shift : shift + len(heights)])
    tops = np.flatnonzero((heights >= within) & (heights > 0.5))
    tops = tops[np.argsort(-heights[tops], kind="stable")]
    if len(tops) > _CANDIDATES:
        highest = float(heights[tops[0]])
        as_high = int(np.count_nonzero(heights[tops] >= highest - _AS_HIGH_SIGMA * np.sqrt(highest)))
        tops = tops[: min(max(_CANDIDATES, as_high), _MOST_CANDIDATES)]
    return offsets[tops]


def candidates(chunk: Chunk, x0: float, prior: Prior, offsets: F64, heights: F64) -> list[Candidate]:
    """Return the refined offsets, the best first, each once.

    Work starts later than its operator, so that a peak is too late. If operators follow closely, refining it may match
    each event to the next operator. So refining also starts from earlier offsets near the best ones.
    """
    thin = chunk.thinned()
    candidates = _distinct(
        [_candidate(thin, Line(peak, 0.0, x0), prior, _FIRST_LOOK_BINS) for peak in _peaks(offsets, heights).tolist()]
    )
    again = [
        sooner
        for place in candidates[:_TRIED_SOONER]
        for by in _SOONER_NS
        if (sooner := _candidate(thin, place.line.shifted(-by), prior, _FIRST_LOOK_BINS))
        and len(thin.pairs(sooner.line, NEAR_NS)) >= len(thin.pairs(place.line, NEAR_NS))
    ]
    places = _distinct([*candidates, *again])
    kept = [
        place
        for number, place in enumerate(places)
        if number < _CLOSELY_SEEN or margin_over(places[0].score, place.score) < LEAST_MARGIN
    ]
    return _distinct([_candidate(chunk, place.line, prior, ()) for place in kept])


def _distinct(places: list[Candidate | None]) -> list[Candidate]:
    """Return the candidates, the best first, without those near a better one."""
    distinct: list[Candidate] = []
    for place in sorted(filter(None, places), key=lambda place: -float(place.score.sum())):
        if all(abs(place.line.offset - better.line.offset) > SAME_PLACE_NS for better in distinct):
            distinct.append(place)
    return distinct


def _candidate(chunk: Chunk, line: Line, prior: Prior, bins: tuple[float, ...]) -> Candidate | None:
    """Return the candidate near a line, refined in ever smaller distances; None if too few events match on the way."""
    key = line, bins
    if key not in chunk.refined:
        chunk.refined[key] = _refined(chunk, line, prior, bins)
    refined = chunk.refined[key]
    return refined and Candidate(*refined, chunk.score(*refined))


def _refined(chunk: Chunk, line: Line, prior: Prior, bins: tuple[float, ...]) -> tuple[Line, float] | None:
    """Return the line and the scale of a candidate, whichever chunk scores it."""
    scale = _LEAST_SPREAD_NS
    for tolerance in (*(count * chunk.bin for count in bins), _NEARER_NS, NEAR_NS):
        pairs = chunk.pairs(line, tolerance)
        if len(pairs) < FEWEST_PAIRS:
            return None
        line, scale = fitted(chunk.a, chunk.b, pairs, line, prior)
    return centred(chunk.a, chunk.b, pairs, line, prior), scale


def fitted(a: Events, b: Events, pairs: Pairs, line: Line, prior: Prior) -> tuple[Line, float]:
    """Return the line whose drift brings the delays of each class together; its offset is the middle of the bounds."""
    step = len(pairs) // _FIT_PAIRS + 1
    x = a.start[pairs.a[::step]]
    spread = min(PRIOR_DRIFT, max(prior.max_drift, 1e-9))
    wanted = pairs.begin[::step] + line.drift * (x - line.x0)
    _, drift, scale = robust_line(x, wanted, _LEAST_SPREAD_NS, DRIFT_SLACK * prior.max_drift, spread)
    bounds = containment(a, b, pairs)
    highest = quantile(bounds.upper - drift * (bounds.upper_x - line.x0), 2 * TRIM)
    lowest = quantile(bounds.lower - drift * (bounds.lower_x - line.x0), 1 - 2 * TRIM)
    return Line((highest + lowest) / 2, drift, line.x0), scale


def centred(a: Events, b: Events, pairs: Pairs, line: Line, prior: Prior) -> Line:
    """Return the line in the middle of what the pairs allow; the given line if they allow none."""
    bounds = bounds_of(a, b, pairs)
    region = sure_region(bounds, line, DRIFT_SLACK * prior.max_drift)[0] if bounds is not None else None
    return line if region is None else Line(*region.middle(overlap(a, b, line)), line.x0)


def overlap(a: Events, b: Events, line: Line) -> tuple[float, float]:
    """Return the times of clock a at which both have events."""
    first_b, last_b = line.back(np.array(b.span))
    first_a, last_a = a.span
    return max(first_a, first_b), max(min(last_a, last_b), max(first_a, first_b) + 1)


def margin_over(best: F64, rival: F64) -> float:
    """Return by how many standard deviations the best candidate beats another one, over blocks of events.

    With few blocks the standard deviation is not well known: the margin is reduced, about as in Student's distribution.
    """
    count = max(_LEAST_BLOCKS, len(best) // BLOCK_EVENTS)
    better = np.clip(best - rival, -_MOST_OF_AN_EVENT, _MOST_OF_AN_EVENT)
    return margin_of(better, count, _SPREAD_OF_AN_EVENT) / (1 + 3 / (count - 1))


def margin_over_random(chunk: Chunk, best: Candidate, offsets: F64) -> float:
    """Return by how many standard deviations the best candidate beats random offsets; 0 if these are too few.

    Only offsets at which the two overlap count: without overlap all scores are equal.
    """
    rng = np.random.default_rng(0)
    (first_a, last_a), (first_b, last_b) = chunk.span, chunk.b.span
    low = max(min(float(offsets[0]), best.line.offset - _RANDOM_WITHIN_NS), first_b - last_a)
    high = min(max(float(offsets[-1]), best.line.offset + _RANDOM_WITHIN_NS), last_b - first_a)
    if low >= high:
        return 0.0
    places = rng.uniform(low, high, _RANDOM_DRAWN)
    places = places[np.abs(places - best.line.offset) > SAME_PLACE_NS][:_RANDOM_PLACES]
    if len(places) < _LEAST_PLACES:
        return 0.0
    scores = [float(chunk.score(replace(best.line, offset=place), best.scale).sum()) for place in places.tolist()]
    return null_margin(float(best.score.sum()), scores, len(best.score), _SPREAD_OF_AN_EVENT)

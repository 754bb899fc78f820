"""Match a log that states durations and order, but no times, with a trace of the same work that has times.

The outer trace (a: a framework) has an event around most events of the inner log (b: the library below). b is aligned
with a by dynamic programming: each event of b is matched with one of its kind in a, in order, or is extra; events of a
may be skipped, and b may start and end anywhere in a. The score of a match is a likelihood ratio in nats: the agreement
of two durations against the frequency of that duration among its kind.

1. A model (how much longer outer durations are, how far they vary, how many events are missing) is learned from a part
   of b, starting with wide assumptions.
2. A forward and a backward pass give the best score through each position. The margin of an event of b is the loss of
   the best path if it has to pass at least half an iteration away, since wrong iterations fit nearly as well.
3. The margin does not recognise two runs of one program, which fit as well. So the durations of each operator must vary
   together on both sides from iteration to iteration, as they do in one run only.

Large inputs are searched in a band around a path that grows from a part of b (the seed) that was searched in all of a.
Memory holds one block of rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, pairwise, repeat

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from traceconv.align.estimate import OTHER_RUN, Array, Estimate, Events, Method, Residuals, Rival, insufficient
from traceconv.align.geometry import F64, spread_of
from traceconv.align.iterations import correlation_of_deviations, log_durations, period_of
from traceconv.io.shown import counted
from traceconv.model.clocks import Verdict
from traceconv.model.numbers import format_short

# Each with its unit and what it was chosen on. "Simulated": seeds below 1000 of tests/benchmarks/alignment, "tuned":
# recordings that `TUNED` names there, as docs/alignment.md says of all thresholds.

_US = 1e3

#: The fewest events with durations on either side, and the fewest of a kind to model it (simulated).
_LEAST_EVENTS = 8
#: The rows of b in memory at once. Not tuned: limits memory.
_BLOCK_ROWS = 256
#: Above this many pairs of events, only a band is searched. Not tuned: limits time.
_MOST_CELLS = 5e7
#: The rows of the seed, which is searched in all of a. Not tuned: some iterations of most workloads.
_SEED_ROWS = 600
#: The fewest rows of the seed, also if a is short. Not tuned: fewer would be little evidence.
_LEAST_SEED_ROWS = 64
#: The number of seeds, evenly spaced in b. Not tuned: b may start or end outside of a.
_SEEDS = 5
#: The half width of the band, in iterations. Not tuned: a rival half an iteration away must lie in it.
_BAND_ITERATIONS = 2
#: The least half width, in events of a. Not tuned: leaves room for missing events.
_LEAST_BAND_EVENTS = 64
#: The events that count as an iteration where nothing repeats. Not tuned: rivals are two events away then.
_NO_PERIOD_EVENTS = 4
#: The longest iteration, in events. Not tuned: limits time, since a template is matched with all of it.
_LONGEST_PERIOD_EVENTS = 4000
#: A window extends this much further than the usual rate, as a factor. Not tuned: some slack.
_LOOK_AHEAD = 1.3

#: The first assumption: this share of the events of a, among those that b spans, is in b (simulated).
_FIRST_MATCHED = 0.6
#: The first assumption: this share of b is not in a (simulated).
_FIRST_EXTRA = 0.06
#: The first assumption: outer durations are longer by this, ns (simulated).
_FIRST_BIAS_NS = 3 * _US
#: The first assumption: the noise of that difference, ns (simulated).
_FIRST_NOISE_NS = 5 * _US
#: The first assumption: that noise as a share of a duration (simulated).
_FIRST_RELATIVE = 0.1
#: The least spread of logarithms of durations of a kind. Not tuned: keeps the background finite.
_LEAST_SPREAD = 0.1
#: The finest resolution of durations to believe in, ns. Not tuned: reading a clock varies by as much.
_LEAST_RESOLUTION_NS = 500.0
#: The greatest cost of a misfit of durations against the background, nats: some are disturbed (simulated).
_WORST_FIT = -4.0
#: The number of times that the model is learned from the best path. Not tuned: each costs a search of the seed.
_LEARNINGS = 3
#: Isolated matches are found by counting the matches this many rows before and after (simulated).
_AROUND_ROWS = 16
#: A match is isolated with less than this share of the usual count (simulated).
_ALONE = 0.5
#: Durations disagree beyond this many times the noise (simulated).
_DISAGREES = 8.0

#: The least margin of the best path over those at least half an iteration away, nats (simulated: none wrong).
LEAST_MARGIN = 5.0
#: The least margin if a lacks much of b, nats: then the choice of missing events looks like evidence (simulated).
_LEAST_MARGIN_IF_INCOMPLETE = 10.0
#: "Much" is from this share of b on (simulated).
_MUCH_EXTRA = 0.2
#: A pair is used if the best path loses this many nats without it (simulated).
_LEAST_ALONE = 2.0
#: The least correlation of deviations of durations for one run (simulated: no two other runs are accepted).
_SAME_RUN = 0.8
#: Below this correlation they look like two runs (simulated).
_PERHAPS_SAME_RUN = 0.3
#: The fewest deviations for a correlation (simulated).
_LEAST_DEVIATIONS = 20
#: The least share of a good seed that matches; half of this share of the shorter log must match for certain
#: (simulated).
_LEAST_SHARE = 0.5
#: The correlation must be this many sigma above zero (simulated).
_LEAST_SIGMA = 3.0
#: The advice in every refusal.
_SETTLE = "a log with times would settle it"


class _Kind(Struct, frozen=True):
    """The model of the durations of one kind."""

    bias: float
    noise: float
    middle: float
    spread: float


class _Model(Struct, frozen=True):
    """The model of the differences between the two logs."""

    kinds: dict[int, _Kind]
    relative: float
    matched: float = _FIRST_MATCHED
    extra: float = _FIRST_EXTRA

    def biases(self, kinds: Array) -> F64:
        """Return the bias of each event, by its kind."""
        return np.array([self.kinds[kind].bias for kind in kinds.tolist()])


class _Window(Struct, frozen=True):
    """Rows of b, and the positions in a that are searched for them: position j is before event j."""

    first: int
    last: int
    low: int
    high: int


class _Table:
    """The dynamic programming table: a row of scores for each event of b, a column for each position in a.

    Scores are "tilted": the cost of skipping all events of a before a position is subtracted, so that skipping is a
    running maximum.
    """

    def __init__(self, a: Events, b: Events, model: _Model) -> None:
        #: The score of an event of a that is not in b, and of one of b that is not in a.
        self.tilt, self.skip_b = float(np.log(1 - model.matched)), float(np.log(model.extra))
        self._dur, self._kind = b.dur, b.kind
        self._bonus = float(np.log(model.matched)) - self.tilt
        self._model = model
        self._columns: dict[int, tuple[Array, F64, F64, F64]] = {}
        for kind, usual in model.kinds.items():
            rows = np.flatnonzero(a.kind == kind)
            width = np.hypot(model.relative * a.dur[rows], usual.noise)
            self._columns[kind] = rows, a.dur[rows] - usual.bias, 1 / width, -np.log(2 * width)

    def entered(self, new: _Window, passed: tuple[_Window, F64] | None = None) -> F64:
        """Return the (tilted) scores before the first row of a window, from the one before; at first all are equal."""
        if passed is None:
            return np.asarray(np.arange(new.low, new.high + 1, dtype=np.float64) * -self.tilt, np.float64)
        old, scores = passed
        fresh = np.full(new.high - new.low + 1, -np.inf)
        low, high = max(old.low, new.low), min(old.high, new.high)
        if low <= high:
            fresh[low - new.low : high + 1 - new.low] = scores[low - old.low : high + 1 - old.low]
        if new.low > old.high:
            fresh[:] = scores[-1]
        return np.maximum.accumulate(fresh)

    def rows(self, scores: F64, window: _Window) -> Iterator[F64]:
        """Yield the scores after each row of a window."""
        columns = {kind: self._cut(kind, window) for kind in np.unique(self._kind[window.first : window.last]).tolist()}
        for row in range(window.first, window.last):
            kind = int(self._kind[row])
            at, outer, inverse, height = columns[kind]
            following = scores + self.skip_b
            if len(at):
                dur, usual = float(self._dur[row]), self._model.kinds[kind]
                size = max(dur, 1.0)
                off = (float(np.log(size)) - usual.middle) / usual.spread
                background = -0.5 * off * off - float(np.log(usual.spread * size * 2.5066))
                fit = np.maximum(height - np.abs(outer - dur) * inverse - background, _WORST_FIT)
                matched = scores[at] + (fit + self._bonus)
                following[at + 1] = np.maximum(following[at + 1], matched)
            scores = np.maximum.accumulate(following)
            yield scores

    def _cut(self, kind: int, window: _Window) -> tuple[Array, F64, F64, F64]:
        at, outer, inverse, height = self._columns[kind]
        part = slice(int(np.searchsorted(at, window.low)), int(np.searchsorted(at, window.high)))
        return at[part] - window.low, outer[part], inverse[part], height[part]

    def untilted(self, scores: F64, window: _Window) -> F64:
        """Return scores without the tilt."""
        return np.asarray(scores + np.arange(window.low, window.high + 1) * self.tilt, np.float64)


class _Path(Struct, frozen=True):
    """The best path of b along a."""

    match: Array
    margin: F64
    alone: F64
    score: float
    ends: Array
    heights: F64

    @property
    def rows(self) -> Array:
        """The matched rows of b."""
        return np.flatnonzero(self.match >= 0)

    @property
    def usual_margin(self) -> float:
        """The loss if half of the events are half an iteration away, nats."""
        return float(np.median(self.margin[self.rows])) if len(self.rows) else 0.0


def align_durations(a: Events, b: Events) -> Estimate:
    """Match events of b, which have durations and an order only, with events of a.

    The result is in the pairs; the offset has no meaning, since b has no clock. The offsets of rivals and of the
    landscape are distances between ends of b: from the best path to the other one, ns of a.

    Args:
        a: the outer events, with times.
        b: the inner events, in order; their starts are ignored.
    """
    known = int(min((a.dur > 0).sum(), (b.dur > 0).sum()))
    if known < _LEAST_EVENTS:
        return insufficient(
            Method.DURATIONS,
            f"both files have durations of the same kinds of work for {counted(known, 'slice')} only, "
            f"expected at least {_LEAST_EVENTS}",
        )
    period = period_of(a)
    if period is not None and period > _LONGEST_PERIOD_EVENTS:
        period = None
    seed = _learned(a, b)
    windows = _windows(a, b, seed, period)
    half = max(1, (period or _NO_PERIOD_EVENTS) // 2)
    path = _path(a, b, seed[0], windows, half, margins=False)
    model = _refitted(a, b, path.match, seed[0])
    path = _path(a, b, model, windows, half)
    path.match[_strays(path.match)] = -1
    return _judged(a, b, model, path, period)


# -- what is usual --------------------------------------------------------------------------------------------------


#: The result for a part of b: the model, the first row of the part, and the row in a of each of its rows, -1 for none.
_Seed = tuple[_Model, int, Array]


def _learned(a: Events, b: Events) -> _Seed:
    """Return the seed: the part of b that fits best, with the model that it gives.

    A part is much shorter than a, since a may contain only a part of b. If a is long, later parts of b are tried only
    if the first one does not fit.
    """
    size = min(_SEED_ROWS, max(_LEAST_SEED_ROWS, len(a) // 2))
    starts = np.linspace(0, max(len(b) - size, 0), _SEEDS).astype(int)
    if len(a) * len(b) > _MOST_CELLS:
        starts = starts // _BLOCK_ROWS * _BLOCK_ROWS
    seeds = []
    for first in dict.fromkeys(starts.tolist()):
        part = b.take(np.arange(first, min(first + size, len(b))))
        model, match = _wide(a, b), np.full(len(part), -1)
        everywhere = _blocks(len(part), lambda _: (0, len(a)))
        for _ in range(_LEARNINGS):
            path = _path(a, part, model, everywhere, 1, margins=False)
            match, model = path.match, _refitted(a, part, path.match, model)
        seeds.append((path.score / len(part), (model, first, match)))
        if size == _SEED_ROWS and (match >= 0).mean() >= _LEAST_SHARE:
            break
    return max(seeds, key=lambda seed: seed[0])[1]


def _wide(a: Events, b: Events) -> _Model:
    """Return the model of the first assumptions."""
    quantum = max(a.quantum_ns, b.quantum_ns)
    kinds = {}
    for kind in np.unique(b.kind).tolist():
        logs = log_durations(b.take(np.flatnonzero(b.kind == kind)))
        middle = float(np.median(logs))
        spread = max(_LEAST_SPREAD, spread_of(logs - middle))
        kinds[kind] = _Kind(_FIRST_BIAS_NS, max(_FIRST_NOISE_NS, 2 * quantum), middle, spread)
    return _Model(kinds, _FIRST_RELATIVE)


def _refitted(a: Events, b: Events, match: Array, model: _Model) -> _Model:
    """Return the model learned from matched events."""
    rows = np.flatnonzero(match >= 0)
    if len(rows) < _LEAST_EVENTS:
        return model
    floor = max(a.quantum_ns, b.quantum_ns, _LEAST_RESOLUTION_NS) / 2
    size, kind = a.dur[match[rows]], b.kind[rows]
    longer = size - b.dur[rows]
    kinds = {}
    for number, usual in model.kinds.items():
        those = longer[kind == number]
        those = those if len(those) >= _LEAST_EVENTS else longer
        bias = float(np.median(those))
        kinds[number] = replace(usual, bias=bias, noise=max(floor, float(np.median(np.abs(those - bias))) / np.log(2)))
    # The relative noise is that of the longest events; that of the others is in the noise of their kinds.
    long = size >= np.percentile(size, 75)
    off = np.abs(longer - _Model(kinds, 0.0).biases(kind))[long]
    relative = float(np.clip(np.median(off / size[long]) / np.log(2) / 2, 0.002, 0.1))
    # The matched share of a and the extra share of b, between the first and the last match.
    spanned_a, spanned_b = int(match[rows[-1]] - match[rows[0]]) + 1, int(rows[-1] - rows[0]) + 1
    matched, extra = np.clip(len(rows) / spanned_a, 0.05, 0.97), np.clip(1 - len(rows) / spanned_b, 0.02, 0.6)
    return _Model(kinds, relative, float(matched), float(extra))


# -- where to search ------------------------------------------------------------------------------------------------


def _blocks(rows: int, places: Callable[[int], tuple[int, int]]) -> list[_Window]:
    """Return a window for each block of rows; `places` returns the range of positions by the number of the block."""
    firsts = range(0, rows, _BLOCK_ROWS)
    return [_Window(first, min(first + _BLOCK_ROWS, rows), *places(at)) for at, first in enumerate(firsts)]


def _windows(a: Events, b: Events, seed: _Seed, period: int | None) -> list[_Window]:
    """Return the windows to search: all positions, or a band."""
    if len(a) * len(b) <= _MOST_CELLS:
        return _blocks(len(b), lambda _: (0, len(a)))
    model, first, match = seed
    rows = np.flatnonzero(match >= 0)
    rate, at = len(a) / len(b), 0
    if len(rows):
        rate = (match[rows[-1]] - match[rows[0]] + 1) / (rows[-1] - rows[0] + 1)
        at = max(int(match[rows[0]] - rate * rows[0]), 0)
    pad = max(_LEAST_BAND_EVENTS, _BAND_ITERATIONS * (period or _NO_PERIOD_EVENTS))
    centres = _followed(a, b.take(np.arange(first, len(b))), model, at, rate, pad)
    if first:
        sooner = _followed(_reversed(a), _reversed(b.take(np.arange(first))), model, len(a) - at, rate, pad)
        centres = [*(len(a) - place for place in reversed(sooner[1:])), *centres]
    spans = [(max(0, min(ends) - pad), min(len(a), max(ends) + pad)) for ends in pairwise(centres)]
    return _blocks(len(b), spans.__getitem__)


def _followed(a: Events, b: Events, model: _Model, at: int, rate: float, pad: int) -> list[int]:
    """Return the start of each block of b in a, and the end of the last one, along the best path so far."""
    table, passed = _Table(a, b, model), None
    followed = [at]
    for first in range(0, len(b), _BLOCK_ROWS):
        last = min(first + _BLOCK_ROWS, len(b))
        ahead = int(rate * (last - first) * _LOOK_AHEAD)
        window = _Window(first, last, max(0, min(at, len(a)) - pad), max(1, min(len(a), at + ahead + pad)))
        (scores,) = deque(table.rows(table.entered(window, passed), window), 1)
        at = window.low + int(np.argmax(table.untilted(scores, window)))
        followed.append(at)
        passed = window, scores
    return followed


def _reversed(events: Events) -> Events:
    return events.take(np.arange(len(events))[::-1])


# -- the best way ---------------------------------------------------------------------------------------------------


def _path(a: Events, b: Events, model: _Model, windows: list[_Window], half: int, margins: bool = True) -> _Path:
    """Return the best path of b along a; the backward pass computes the rows of a block again, to save memory."""
    table, passed = _Table(a, b, model), None
    before: list[F64] = []
    for window in windows:
        before.append(table.entered(window, passed))
        (scores,) = deque(table.rows(before[-1], window), 1)
        passed = window, scores
    heights = table.untilted(scores, windows[-1])
    end = int(np.argmax(heights))
    match, margin, alone = np.full(len(b), -1), np.full(len(b), np.inf), np.full(len(b), np.inf)
    behind: Iterable[F64 | None] = _behind(a, b, model, windows) if margins else repeat(None)
    place = windows[-1].low + end
    for window, first, after in zip(reversed(windows), reversed(before), behind, strict=False):
        made = np.array([first, *table.rows(first, window)])
        left, right, place = _traced(made, window, place, table.skip_b, match)
        if after is not None:
            rows = slice(window.first, window.last)
            margin[rows], alone[rows] = _compared(made + after, left, right, half)
    ends = np.arange(windows[-1].low, windows[-1].high + 1)
    return _Path(match, margin, alone, float(heights[end]), ends, heights)


def _traced(made: F64, window: _Window, place: int, skip_b: float, match: Array) -> tuple[Array, Array, int]:
    """Trace the path back through a block, and note the matches."""
    count = window.last - window.first
    left, right = np.empty(count, np.int64), np.empty(count, np.int64)
    at = place - window.low
    for row in range(count - 1, -1, -1):
        right[row] = at
        after, previous = made[row + 1], made[row]
        at = int(np.searchsorted(after, after[at]))
        left[row] = at
        if previous[at] + skip_b != after[at]:
            at -= 1
            match[window.first + row] = window.low + at
    return left, right, window.low + at


def _behind(a: Events, b: Events, model: _Model, windows: Sequence[_Window]) -> Iterator[F64]:
    """Yield, from the last window to the first, the best scores of the rest of b from each position."""
    table = _Table(_reversed(a), _reversed(b), model)
    passed = None
    for window in reversed(windows):
        turned = _Window(len(b) - window.last, len(b) - window.first, len(a) - window.high, len(a) - window.low)
        made = [table.entered(turned, passed)]
        made += table.rows(made[0], turned)
        passed = turned, made[-1]
        yield np.array(made[::-1])[:, ::-1]


def _compared(total: F64, left: Array, right: Array, half: int) -> tuple[F64, F64]:
    """Return the loss of the best path if it has to pass elsewhere, for each row of a block."""
    away, alone = np.empty(len(left)), np.empty(len(left))
    for row, (first, last) in enumerate(zip(left.tolist(), right.tolist(), strict=True)):
        before, after = total[row], total[row + 1]
        best = after[first]
        far = max(_highest(after[: max(0, first - half + 1)]), _highest(after[last + half :]))
        away[row], alone[row] = best - far, best - max(_highest(after[:first]), _highest(before[first:]))
    return away, alone


def _highest(scores: F64) -> float:
    return float(np.max(scores, initial=-np.inf))


def _strays(match: Array) -> Array:
    """Drop isolated matches: beyond the end of a, a few rows of later iterations still fit."""
    rows = np.flatnonzero(match >= 0)
    if not len(rows):
        return rows
    passed = np.concatenate((np.zeros(_AROUND_ROWS + 1), np.cumsum(match >= 0), np.full(_AROUND_ROWS, len(rows))))
    at = rows + _AROUND_ROWS
    around = np.maximum(passed[at] - passed[at - _AROUND_ROWS], passed[at + 1 + _AROUND_ROWS] - passed[at + 1])
    return np.asarray(rows[around < _ALONE * np.median(around)])


# -- the verdict ----------------------------------------------------------------------------------------------------


def _judged(a: Events, b: Events, model: _Model, path: _Path, period: int | None) -> Estimate:
    """Return the estimate with the certain pairs and its verdict."""
    matched = path.rows
    least = LEAST_MARGIN if model.extra < _MUCH_EXTRA else _LEAST_MARGIN_IF_INCOMPLETE
    placed = matched[path.margin[matched] >= least]
    good = placed[(path.alone[placed] >= _LEAST_ALONE) & _agrees(a, b, model, path.match, placed)]
    rivals, landscape = _rivals(a, path, max(1, (period or _NO_PERIOD_EVENTS) // 2))
    verdict, reason = _verdict(a, b, path, placed, len(good), period, len(rivals), least)
    if verdict is Verdict.AMBIGUOUS:  # no pair is certain if all of them could be an iteration away
        good = matched[_agrees(a, b, model, path.match, matched)]
    pairs = path.match[good], good
    residual = b.dur[good] + model.biases(b.kind[good]) - a.dur[pairs[0]]
    return Estimate(
        Method.DURATIONS,
        verdict,
        reason,
        matches=len(good),
        dropped=len(matched) - len(good),
        residuals=Residuals.of_differences(residual),
        margin=path.usual_margin,
        rivals=rivals,
        landscape=landscape,
        pairs=pairs,
        residual_times=a.start[pairs[0]],
        residual_values=residual,
    )


def _agrees(a: Events, b: Events, model: _Model, match: Array, rows: Array) -> Array:
    """Return a mask of the matched rows whose durations agree."""
    noise = np.array([model.kinds[kind].noise for kind in b.kind[rows].tolist()])
    outer = a.dur[match[rows]]
    off = np.abs(outer - model.biases(b.kind[rows]) - b.dur[rows])
    return np.asarray(off <= _DISAGREES * np.hypot(model.relative * outer, noise))


def _rivals(a: Events, path: _Path, half: int) -> tuple[tuple[Rival, ...], tuple[F64, F64]]:
    """Return the best other positions where b may end, and the landscape."""
    times = np.concatenate((a.start[:1], a.end))[path.ends]
    best = int(np.argmax(path.heights))
    offsets = times - times[best]

    def places() -> Iterator[tuple[float, float]]:
        left = path.heights.copy()
        while np.isfinite(left[at := int(np.argmax(left))]):
            yield float(offsets[at]), float(path.heights[at])
            left[max(0, at - half) : at + half + 1] = -np.inf

    return Rival.listed(islice(places(), 1, None)), (offsets, path.heights)


def _verdict(
    a: Events, b: Events, path: _Path, placed: Array, used: int, period: int | None, rivals: int, least: float
) -> tuple[Verdict, str]:
    """Return the verdict and its reason."""
    if path.usual_margin < least:
        spacing = 0.0  # the duration of an iteration where b was matched
        if period is not None and len(a) > period:
            spacing = float(np.median(a.start[period:] - a.start[:-period]))
        apart = f", {format_short(spacing)} apart" if spacing else ""
        return Verdict.AMBIGUOUS, (
            f"the durations fit nearly as well at {rivals} other offsets{apart}; {_SETTLE}, and so would "
            "a log that starts when the profile starts"
        )
    matches = f"{used} of {len(b)} events match with certainty"
    if used < max(_LEAST_EVENTS, _LEAST_SHARE * min(len(a), len(b)) / 2):
        return Verdict.INSUFFICIENT, f"only {matches}; {_SETTLE}"
    if period is None:
        return Verdict.UNVERIFIED, f"{matches}; no iteration repeats, so another run would match as well"
    correlation = correlation_of_deviations(a, b, (path.match[placed], placed), period)
    if correlation is None:
        return Verdict.INSUFFICIENT, (
            "the iterations differ too much, or lack too many events, to show that both files are of one "
            f"run: {_SETTLE}"
        )
    same, count = correlation
    sure = same * np.sqrt(max(count - 1, 0)) >= _LEAST_SIGMA
    together = f"in both files, the changes of durations between iterations are correlated to {max(same, 0):.0%}"
    if same < _PERHAPS_SAME_RUN or not sure:
        return Verdict.INSUFFICIENT, f"{matches}, but {together} only: {OTHER_RUN}; {_SETTLE}"
    if count < _LEAST_DEVIATIONS:
        return Verdict.UNVERIFIED, f"{matches}; too few iterations ({count}) can be compared to exclude another run"
    if same < _SAME_RUN:
        return Verdict.UNVERIFIED, f"{matches}; {together}, too little to be certain of one run"
    return Verdict.OK, f"{matches}; {together} ({count} compared)"

"""Matching of the events of two traces along a line between their clocks, and the bounds that follow from it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from traceconv.align.estimate import Array, Events, some_of
from traceconv.align.geometry import (
    F64,
    Chain,
    Line,
    LinearConstraints,
    Region,
    convex_hull,
    everything,
    feasible,
    spread_of,
)
from traceconv.model.columns import I32

NONE = -1
_LEAST_OF_A_CLASS = 4  # Fewer pairs of one class than this say too little about where events of that class lie.

# Each with its unit and what it was chosen on, in the terms of `sequences`: simulated pairs and tuned.

_US = 1e3

#: The least resolution of the search, ns. Not tuned: about the latency of a call, below the length of most operators.
BIN_NS = 100 * _US
#: An inner event belongs to an outer one that it sticks out of by no more than this, ns (simulated, tuned).
NEAR_NS = 20 * _US
FEWEST_PAIRS = 5  # The fewest pairs for a line. Not tuned: a line has two parameters, and some pairs are wrong.
#: At most this share of the tightest bounds, and its standard deviation, is left out: some pairs are wrong (simulated).
TRIM = 0.03
_UNUSUAL = 6  # A pair further than this many spreads from the median of its class is not used as a bound (simulated).
#: A profiler without events for this long may have paused, ns (simulated: pauses between captures).
_LEAST_PAUSE_NS = 10e6
_TIMES_USUAL_PAUSE = 10  # Or for this many times the 99th percentile of its pauses (simulated).


class Matcher:
    """Finds for each event of b the event of a, of the same kind, that it lies in; both are in order of their start.

    Several events of b may lie in one event of a: an operator runs several primitives.
    """

    def __init__(self, a: Events, b: Events) -> None:
        self._a, self._b = a, b
        # kinds are put one after the other on one axis, further apart than any two times, so that one search finds all
        self._apart = 4 * (float(np.ptp(a.start)) + float(np.ptp(b.start)) + float(np.max(a.dur, initial=0.0)) + 1e9)
        self._rows = np.lexsort((a.start, a.kind))
        self._starts = a.start[self._rows]
        self._ends = a.end[self._rows]
        self._axis = self._starts - float(a.start[0]) + self._apart * a.kind[self._rows]
        self._zero = float(a.start[0])
        self._kinds = a.kind[self._rows]

    def part(self, b: Events) -> Matcher:
        """Return the matcher for other events of b, whose kinds are among those of the first ones."""
        made = Matcher.__new__(Matcher)
        vars(made).update(vars(self), _b=b)
        return made

    def holding(self, line: Line | Chain, tolerance: float) -> Array:
        """Return the row of a that holds each event of b; NONE if it sticks out of the best one by more, ns."""
        b = self._b
        first, last = line.back(b.start), line.back(b.end)
        near = np.minimum(np.maximum(first - self._zero, -self._apart / 3), self._apart / 3)
        after = np.searchsorted(self._axis, near + self._apart * b.kind, "right")
        holders = np.full(len(b), NONE)
        least = np.full(len(b), tolerance)
        for row in (np.minimum(after, len(self._rows) - 1), np.maximum(after - 1, 0)):
            out = np.maximum(np.maximum(self._starts[row] - first, last - self._ends[row]), 0)
            better = (out <= least) & (self._kinds[row] == b.kind)
            holders[better] = self._rows[row[better]]
            least[better] = out[better]
        return holders

    def pairs(self, line: Line | Chain, tolerance: float) -> Pairs:
        """Return the pairs of the events of b with those that hold them."""
        return Pairs.of_match(self._a, self._b, self.holding(line, tolerance), line)


class Pairs(Struct, frozen=True):
    """Matched events, and where the inner ones lie within the outer ones.

    Attributes:
        a, b: rows, of equal length; a row of a may occur several times.
        begin: the delay of each inner start in the outer event, less the median delay of its class, ns. A class is the
            label of the inner event with that of the outer one.
        end: the time from each inner end to the outer end, less the median of its class, ns.
    """

    a: Array
    b: Array
    begin: F64
    end: F64

    @classmethod
    def of_match(cls, a: Events, b: Events, match: Array, line: Line | Chain) -> Pairs:
        """Return the pairs of a match along a line."""
        rows_b = np.flatnonzero(match >= 0)
        rows_a = match[rows_b]
        before = b.start[rows_b] - line.map(a.start[rows_a])
        after = a.dur[rows_a] - b.dur[rows_b] - before
        labels_b, labels_a = b.labels[rows_b].astype(np.int64), a.labels[rows_a].astype(np.int64)
        fine = labels_b * (1 + int(np.max(labels_a, initial=0))) + labels_a
        usual_before, usual_after = _medians((before, after), fine, b.kind[rows_b])
        return cls(rows_a, rows_b, before - usual_before, after - usual_after)

    def __len__(self) -> int:
        return len(self.b)

    def where(self, kept: Array) -> Pairs:
        """Return the chosen pairs."""
        return Pairs(self.a[kept], self.b[kept], self.begin[kept], self.end[kept])


def _medians(values: tuple[F64, F64], fine: Array, coarse: Array) -> list[F64]:
    """Return for each value the median of its fine class, or of its coarse one if the fine one has few members."""
    ordered = np.sort(fine)
    count = np.searchsorted(ordered, fine, "right") - np.searchsorted(ordered, fine, "left")
    index = np.where(count < _LEAST_OF_A_CLASS, coarse, fine + int(coarse.max(initial=0)) + 1)
    classes = np.sort(index)
    is_last = np.ones(len(classes), bool)
    is_last[:-1] = classes[1:] != classes[:-1]
    ends = np.flatnonzero(is_last) + 1
    first = np.concatenate((np.zeros(1, np.int64), ends))[:-1]
    size = ends - first
    low, high = first + (size - 1) // 2, first + size // 2
    medians = []
    for value in values:
        order = np.lexsort((value, index))
        ordered, usual = value[order], np.empty(len(order))
        usual[order] = np.repeat((ordered[low] + ordered[high]) / 2, size)
        medians.append(usual)
    return medians


# -- what matches mean ---------------------------------------------------------------------------------------------


def could_match(a: Events, b: Events, line: Line | Chain) -> Array:
    """Return for each event of b whether it could match: it could not in a pause of a's profiler."""
    at = line.back(b.start)
    latest = np.maximum.accumulate(a.end)
    before = np.searchsorted(a.start, at, "right") - 1
    possible = (at >= a.start[0] - BIN_NS) & (at <= latest[-1] + BIN_NS)
    pauses = a.start[1:] - latest[:-1]
    usual = float(np.quantile(pauses, 0.99)) if len(pauses) else 0.0
    long = max(_LEAST_PAUSE_NS, _TIMES_USUAL_PAUSE * usual)
    paused = np.append(pauses, 0.0)[before] > long
    within = (at > latest[before] + BIN_NS) & (at < a.start[np.minimum(before + 1, len(a) - 1)] - BIN_NS)
    return np.asarray(possible & ~(paused & within))


def containment(a: Events, b: Events, pairs: Pairs) -> LinearConstraints:
    """Return the constraints of events of b that lie inside events of a: no earlier start, no later end.

    Printed times are cut to their resolution. So a true start may be later by one resolution, a true end by two.
    """
    quantum_a, quantum_b = max(a.quantum_ns, 1.0), max(b.quantum_ns, 1.0)
    start, begins = a.start[pairs.a], b.start[pairs.b]
    end = start + a.dur[pairs.a] + 2 * quantum_a
    return LinearConstraints(end, begins + b.dur[pairs.b] - end, start, begins + quantum_b - start)


def _alone(b: Events, pairs: Pairs) -> Array:
    """Return for each pair whether no other inner event overlaps it in its outer event: a thread does one at a time."""
    order = np.lexsort((b.start[pairs.b], pairs.a))
    rows, holders = pairs.b[order], pairs.a[order]
    meet = (holders[1:] == holders[:-1]) & (b.start[rows[1:]] < b.end[rows[:-1]])
    alone = np.ones(len(order), bool)
    alone[order[1:][meet]] = False
    alone[order[:-1][meet]] = False
    return alone


def bounds_of(a: Events, b: Events, pairs: Pairs) -> LinearConstraints | None:
    """Return the constraints of the pairs, without pairs that may be wrong; None if too few are left.

    A pair may be wrong if its delay is far from the median of its class.
    """
    usual = pairs.where(
        (np.abs(pairs.begin) <= max(_UNUSUAL * spread_of(pairs.begin), NEAR_NS))
        & (np.abs(pairs.end) <= max(_UNUSUAL * spread_of(pairs.end), NEAR_NS))
    )
    usual = usual.where(_alone(b, usual))
    return containment(a, b, usual) if len(usual) >= FEWEST_PAIRS else None


def sure_region(bounds: LinearConstraints, line: Line, max_drift: float) -> tuple[Region | None, LinearConstraints]:
    """Return the region that all constraints but the tightest allow, and these constraints."""
    kept = bounds.trimmed(line.drift, line.x0, TRIM + np.sqrt(TRIM / len(bounds.lower)))
    return feasible(kept, everything(line.x0, max_drift)), kept


# -- Test shifts of a clock by nesting: a library call lies in an operator, but in none that this operator calls -----

UNNAMED = -1  # The kind of work that only the library has a name for.
UNMOVED = Line(0.0, 0.0, 0.0)  # The relation of a clock to itself.

# Each with its unit and what it was chosen on, in the terms of `sequences`: simulated pairs and tuned.

_COARSE_NS = 4 * _US  # The first step between lines near a candidate, ns. Not tuned: shorter than most stretches.
_FINE_NS = 0.2 * _US  # The last step, ns. Not tuned: below the aim of 1 µs.
_MOST_SHIFTS = 160  # The most shifts that are tried. Not tuned: limits time.
_MOST_DRIFTS = 120  # The most drifts that are tried. Not tuned: limits time.
_FEW_CALLS = 400  # The most calls that are tested near a candidate. Not tuned: limits time.
_MANY_CALLS = 4000  # The most calls that are tested for the final region. Not tuned: limits time.
_STEP_NS = 2 * _US  # The step between shifts over a long reach, ns. Not tuned: shorter than most stretches.
_LOOK_NS = 10_000 * _US  # The part of the reach that is tried at once, ns. Not tuned: limits memory.
_LOOKS = 3  # The number of times that a region is narrowed. Not tuned: each costs time.
LEAST_FITTING = 0.9  # The least share of calls within one stretch each, for a trace where this method applies (tuned).
#: A line is possible with this many misfits more than twice those of the best one: calls that do not fit there may be
#: wrong, and as many wrong ones may fit there by chance (tuned).
CHANCE = 3


class Stretches(Struct, frozen=True):
    """Times in which a thread was in one slice and in none inside it, or in no slice at all; they do not overlap.

    Attributes:
        begin, end: ns from the zero of the outer events, ascending.
        kind: that of the slice, numbered as in the events; UNNAMED for others and for none.
    """

    begin: F64
    end: F64
    kind: I32


class ThreadStretches(Struct, frozen=True):
    """The threads of an outer trace that have work of both traces, and all calls of an inner one.

    Attributes:
        calls: the inner events, in order of their start, of kind UNNAMED if the outer trace has no such kind.
        quantum_ns: the resolution of the outer times.
    """

    threads: tuple[Stretches, ...]
    calls: Events
    quantum_ns: float

    def scaled(self, rate: float) -> ThreadStretches:
        """Return them with the calls on a clock that runs slower by this ratio."""
        return replace(self, calls=self.calls.scaled(rate))


class _Allowed(Struct, frozen=True):
    """The stretches that may hold each call."""

    call: Array
    begin: F64
    end: F64

    @classmethod
    def near(cls, nest: ThreadStretches, calls: Events, line: Line, reach: float) -> _Allowed:
        """Return the stretches within a distance (ns) of each call, of its kind and long enough."""
        first, last = line.back(calls.start) - reach, line.back(calls.end) + reach
        slack = 2 * nest.quantum_ns + calls.quantum_ns
        near = []
        for thread in nest.threads:
            low, high = np.searchsorted(thread.end, first), np.searchsorted(thread.begin, last, "right")
            count = np.maximum(high - low, 0)
            call = np.repeat(np.arange(len(calls)), count)
            row = np.arange(len(call)) - np.repeat(np.cumsum(count) - count, count) + np.repeat(low, count)
            kind = calls.kind[call]
            fits = thread.end[row] - thread.begin[row] + slack >= calls.dur[call]
            fits &= (kind == UNNAMED) | (kind == thread.kind[row])
            near.append((call[fits], thread.begin[row[fits]], thread.end[row[fits]]))
        call, begin, end = (np.concatenate(column) for column in zip(*near, strict=True))
        return cls(call, begin, end)


class Grid(Struct, frozen=True):
    """Lines to try: each shift of a line with each drift.

    Attributes:
        line: the middle one.
        shifts: ns at its x0, evenly spaced.
        drifts: ratios, evenly spaced.
    """

    line: Line
    shifts: F64
    drifts: F64

    @classmethod
    def around(cls, line: Line, reach: float, drifts: tuple[float, float], half_span: float, step: float) -> Grid:
        """Return the grid of shifts up to a reach on either side and of drifts between two; all but drifts are in ns.

        Neighbours differ by about a step at the ends of the evidence, which are half a span from x0.
        """
        low, high = drifts
        shifts = np.linspace(-reach, reach, int(min(2 * reach / step + 2, _MOST_SHIFTS)))
        count = int(min((high - low) * half_span / step + 2, _MOST_DRIFTS)) if high > low else 1
        return cls(line, shifts, np.linspace(low, high, count))

    def fitting(self, nest: ThreadStretches, calls: Events) -> npt.NDArray[np.int32]:
        """Return how many calls lie in a stretch, by drift and shift."""
        ends = self.line.back(calls.start[[0, -1]]) - self.line.x0
        turned = float(np.max(np.abs(self.drifts - self.line.drift)) * np.max(np.abs(ends)))
        allowed = _Allowed.near(nest, calls, self.line, float(self.shifts[-1]) + turned)
        counts = np.zeros((len(self.drifts), len(self.shifts)), np.int32)
        for row, drift in enumerate(self.drifts.tolist()):
            counts[row] = self._fitting(nest, calls, allowed, drift)
        return counts

    def _fitting(self, nest: ThreadStretches, calls: Events, allowed: _Allowed, drift: float) -> Array:
        low, high = _shifts(nest, calls, allowed, Line(self.line.offset, drift, self.line.x0))
        count, step = len(self.shifts), self.shifts[1] - self.shifts[0]
        first = np.clip(np.ceil((low - self.shifts[0]) / step), 0, count).astype(np.int64)
        after = np.clip(np.floor((high - self.shifts[0]) / step) + 1, 0, count).astype(np.int64)
        some = after > first
        call, first, after = allowed.call[some], first[some], after[some]
        if len(nest.threads) == 1:
            # the later a stretch, the smaller its shifts; those of neighbours overlap by the resolution of their times
            same = call[1:] == call[:-1]
            after[1:][same] = np.maximum(np.minimum(after[1:], first[:-1])[same], first[1:][same])
            changes = np.bincount(first, minlength=count + 1) - np.bincount(after, minlength=count + 1)
            depth: Array = np.cumsum(changes)[:-1]
            return depth
        size = len(calls) * (count + 1)
        changes = np.bincount(call * (count + 1) + first, minlength=size)
        changes -= np.bincount(call * (count + 1) + after, minlength=size)
        covered: Array = (np.cumsum(changes.reshape(len(calls), count + 1), axis=1)[:, :-1] > 0).sum(axis=0)
        return covered


def _shifts(nest: ThreadStretches, calls: Events, allowed: _Allowed, line: Line) -> tuple[F64, F64]:
    """Return the shifts of a line at which a call lies in a stretch, given the resolution of the times, ns."""
    start = calls.start[allowed.call]
    low = start + calls.dur[allowed.call] - line.map(allowed.end + 2 * max(nest.quantum_ns, 1.0))
    return low, start + max(calls.quantum_ns, 1.0) - line.map(allowed.begin)


def fits_on(nest: ThreadStretches, rows: Array, line: Line) -> npt.NDArray[np.bool_]:
    """Return for each of some calls whether it lies in a stretch on a line."""
    calls = nest.calls.take(rows)
    allowed = _Allowed.near(nest, calls, line, 3 * max(nest.quantum_ns, calls.quantum_ns))
    low, high = _shifts(nest, calls, allowed, line)
    fits = np.zeros(len(calls), bool)
    fits[allowed.call[(low <= 0) & (high >= 0)]] = True
    return fits


def sticking_out(nest: ThreadStretches, calls: Events) -> F64:
    """Return by how much each call sticks out of the nearest stretch of its kind, ns; times are on the outer clock.

    It is 0 for a call inside a stretch, and infinite if no thread has a stretch of its kind.
    """
    outside = np.full(len(calls), np.inf)
    slack = 2 * max(nest.quantum_ns, 1.0), max(calls.quantum_ns, 1.0)
    for kind in np.unique(calls.kind).tolist():
        rows = np.flatnonzero(calls.kind == kind)
        first, last = calls.start[rows] + slack[1], calls.end[rows] - slack[0]
        for thread in nest.threads:
            begin, end = (column[thread.kind == kind] for column in (thread.begin, thread.end))
            after = np.searchsorted(begin, first)
            for near in (after - 1, after) if len(begin) else ():
                row = np.clip(near, 0, len(begin) - 1)
                out = np.maximum(np.maximum(begin[row] - first, last - end[row]), 0.0)
                outside[rows] = np.minimum(outside[rows], out)
    return outside


def most_fitting(nest: ThreadStretches, calls: Events, reach: float) -> tuple[int, float]:
    """Return the greatest number of calls in stretches for any move within reach, and that move, ns.

    A positive move makes the calls later. Of equally good moves the least one counts.
    """
    found = []
    half = _LOOK_NS / 2
    shifts = np.arange(-half, half + _STEP_NS, _STEP_NS)
    for middle in np.arange(-reach, reach, _LOOK_NS) + half:
        fitting = Grid(Line(middle, 0.0, 0.0), shifts, np.zeros(1)).fitting(nest, calls)[0]
        most = int(np.max(fitting))
        places = -(middle + shifts[fitting == most])
        move = float(places[np.argmin(np.abs(places))])
        found.append((most, -abs(move), move))
    most, _, move = max(found)
    return most, move


def best_near(nest: ThreadStretches, rows: Array, line: Line, reach: float, drifts: tuple[float, float]) -> Line:
    """Return the line within reach of another one, ns, with the most calls in stretches.

    Of equally good lines it is the middle one. Of more than some hundred rows a choice is compared.
    """
    calls = nest.calls.take(some_of(rows, _FEW_CALLS))
    grid = Grid.around(line, reach, drifts, float(calls.start[-1] - calls.start[0]) / 2, _COARSE_NS)
    fitting = grid.fitting(nest, calls)
    drift, shift = np.nonzero(fitting == np.max(fitting))
    row = int(drift[np.argmin(np.abs(drift - np.median(drift)))])
    return Line(line.offset + float(np.median(grid.shifts[shift[drift == row]])), float(grid.drifts[row]), line.x0)


def possible(nest: ThreadStretches, line: Line, span: tuple[float, float], region: Region) -> Region | None:
    """Return the part of a region on which nearly all calls lie in a stretch; None if too many do not.

    Args:
        line: a line in the region.
        span: the times of the outer clock at which both have events, ns.
    """
    first, last = line.map(np.array(span))
    rows = np.flatnonzero((nest.calls.start >= first) & (nest.calls.end <= last))
    calls = nest.calls.take(some_of(rows, _MANY_CALLS))
    if len(calls) < 2:
        return None
    found: Region | None = region.at((span[0] + span[1]) / 2)
    for _ in range(_LOOKS):
        found = found and _narrowed(nest, calls, found, (span[1] - span[0]) / 2)
    return found and region.intersection(found)


def _narrowed(nest: ThreadStretches, calls: Events, region: Region, half_span: float) -> Region | None:
    """Return the distinct lines of a region on which nearly as many calls fit as on the best one."""
    low, high = float(np.min(region.offsets)), float(np.max(region.offsets))
    drifts = float(np.min(region.drifts)), float(np.max(region.drifts))
    centre = Line((low + high) / 2, (drifts[0] + drifts[1]) / 2, region.x0)
    reach = max((high - low) / 2, _FINE_NS)
    grid = Grid.around(centre, reach, drifts, half_span, max(_FINE_NS, reach / _MOST_SHIFTS))
    fitting = grid.fitting(nest, calls)
    offsets = centre.offset + grid.shifts
    step = float(grid.shifts[1] - grid.shifts[0])
    for end in (-half_span, half_span):
        bottom, top = region.bounds(region.x0 + end)
        there = offsets[None, :] + (grid.drifts * end)[:, None]
        fitting[(there < bottom - step) | (there > top + step)] = 0
    misfits = len(calls) - fitting
    fewest = int(np.min(misfits))
    if fewest > (1 - LEAST_FITTING) * len(calls):
        return None
    drift, shift = np.nonzero(misfits <= 2 * fewest + CHANCE)
    between = float(grid.drifts[1] - grid.drifts[0]) if len(grid.drifts) > 1 else 0.0
    # The convex set around these lines, each of which stands for all up to the next ones.
    left, turns = offsets[shift], grid.drifts[drift]
    points = np.array(
        [
            (offset + aside * step, turn + turned * between)
            for turn in np.unique(turns).tolist()
            for offset in (float(left[turns == turn].min()), float(left[turns == turn].max()))
            for aside in (-1, 1)
            for turned in (-1, 1)
        ]
    )
    return Region(region.x0, *convex_hull(points).T)

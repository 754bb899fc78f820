"""Matching of the events of two traces along a line between their clocks, and the bounds that follow from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceconv.align.estimate import Array, Events
from traceconv.align.geometry import F64, Chain, Line, LinearConstraints, Region, everything, feasible
from traceconv.align.robust import spread_of

NONE = -1
#: Fewer pairs of one class than this say too little about where events of that class lie.
_LEAST_OF_A_CLASS = 4

# Each with its unit and what it was chosen on, in the terms of `sequences`: simulated pairs and tuned.

_US = 1e3

#: The least resolution of the search, ns. Not tuned: about the latency of a call, below the length of most operators.
BIN_NS = 100 * _US
#: An inner event belongs to an outer one that it sticks out of by no more than this, ns (simulated, tuned).
NEAR_NS = 20 * _US
#: The fewest pairs for a line. Not tuned: a line has two parameters, and some pairs are wrong.
FEWEST_PAIRS = 5
#: At most this share of the tightest bounds, and its standard deviation, is left out: some pairs are wrong (simulated).
TRIM = 0.03
#: A pair further than this many spreads from the median of its class is not used as a bound (simulated).
_UNUSUAL = 6
#: A profiler without events for this long may have paused, ns (simulated: pauses between captures).
_LEAST_PAUSE_NS = 10e6
#: Or for this many times the 99th percentile of its pauses (simulated).
_TIMES_USUAL_PAUSE = 10


class Matcher:
    """Finds for each event of b the event of a, of the same kind, that it lies in.

    Several events of b may lie in one event of a: an operator runs several primitives.

    Args:
        a, b: events in order of their start, with common kinds.
    """

    def __init__(self, a: Events, b: Events) -> None:
        self._b = b
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


@dataclass(frozen=True, slots=True)
class Pairs:
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
    def of(cls, a: Events, b: Events, match: Array, line: Line | Chain) -> Pairs:
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
    medians = []
    _, fine_index, count = np.unique(fine, return_inverse=True, return_counts=True)
    rare = count[fine_index] < _LEAST_OF_A_CLASS
    index = np.where(rare, coarse, fine_index + int(coarse.max(initial=0)) + 1)
    for value in values:
        order = np.lexsort((value, index))
        classes, ordered, usual = index[order], value[order], np.empty(len(order))
        is_last = np.ones(len(order), bool)
        is_last[:-1] = classes[1:] != classes[:-1]
        ends = np.flatnonzero(is_last) + 1
        size = np.diff(ends, prepend=0)
        first = ends - size
        usual[order] = np.repeat((ordered[first + (size - 1) // 2] + ordered[first + size // 2]) / 2, size)
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
    """Return for each pair whether no other inner event overlaps it in the same outer event.

    A thread does one thing at a time: if two overlap, one is recorded twice or belongs elsewhere.
    """
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

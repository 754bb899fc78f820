"""Find the calls in a log that are of another process or thread than the operators beside it.

A log of a library may hold the calls of several processes, and names none of them. A call of the process that was
recorded lies in an operator. Calls in no operator may have other causes: an operator without a name in common, or a
time that was not recorded. But a thread does one thing at a time: if many of them overlap calls that lie in operators,
they are of others. Such a call may lie in an operator by chance: where two calls of one thread overlap, the one that
starts less usually in its operator is of others, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from traceconv.align.estimate import Array, Events, Method
from traceconv.align.features import nest_of, shared_work
from traceconv.align.geometry import F64
from traceconv.align.inputs import ClockInput, Inputs
from traceconv.align.matching import Matcher, Pairs, could_match
from traceconv.align.messages import Text
from traceconv.align.names import NameMap
from traceconv.align.nesting import UNMOVED, sticking_out
from traceconv.align.pairs import stated_outer
from traceconv.align.placed import Placed
from traceconv.model.clocks import ClockMap
from traceconv.model.trace import I64, Layer

#: Logs and frameworks with more slices are looked at only if their events were compared, and many lie in no operator.
_MOST_SLICES = 50_000
#: Clocks that are known less exactly do not tell which calls lie in operators, ns: some operators last 20 µs.
_EXACT_NS = 20_000
#: The fewest calls of others, and their least share of all. Not tuned: as for matches in `sequences`.
_FEWEST, _LEAST_SHARE = 16, 0.1
#: The least share of the calls of others that overlap calls in operators (simulated: about half do).
_LEAST_OVERLAP = 0.1


def with_others_apart(inputs: Inputs, placed: Placed, names: NameMap) -> Placed:
    """Return the clocks with the rows of the calls of other processes, and a warning about each log that holds some.

    Args:
        inputs: the clocks.
        placed: the clocks on trace time.
        names: which names mean the same work.
    """
    sides = [one for one in inputs.clocks if one.key in placed.maps and one.layer in (Layer.FRAMEWORK, Layer.LIBRARY)]
    others, warnings = dict(placed.others), list(placed.warnings)
    for inner in sides:
        outers = [outer for outer in sides if stated_outer(outer, inner) is outer and _is_telling(outer, inner, placed)]
        found = _of_others(outers, inner, placed, names) if inner.trace.sources[0].runs_in and outers else None
        if found is not None:
            rows, checked = found
            files = tuple(outer.name for outer in outers)
            others[inner.index] = rows
            warnings.append((inner.key, Text.CALLS_OF_OTHERS(count=len(rows), checked=checked, files=files)))
    return replace(placed, others=others, warnings=warnings)


def _is_telling(outer: ClockInput, inner: ClockInput, placed: Placed) -> bool:
    """Return whether two clocks are so well known that calls lie in the operators that made them."""
    clock_map = _between(outer, inner, placed)
    if clock_map.bound_ns is None or clock_map.verdict.refused or clock_map.bound_ns > _EXACT_NS:
        return False
    if max(len(side.trace.slices.ts) for side in (outer, inner)) <= _MOST_SLICES:
        return True
    pairs = (pair for pair in placed.pairs if set(pair.keys) == {outer.key, inner.key} and pair.taken)
    return any(pair.estimate.method is Method.SEQUENCE and pair.estimate.wrong > _LEAST_SHARE for pair in pairs)


def _between(outer: ClockInput, inner: ClockInput, placed: Placed) -> ClockMap:
    """Return the map from the clock of a log to that of a framework."""
    return placed.maps[inner.key].then(placed.maps[outer.key].inverse())


def _of_others(
    outers: Sequence[ClockInput], inner: ClockInput, placed: Placed, names: NameMap
) -> tuple[I64, int] | None:
    """Return the rows of the calls of others in a log, and the number of calls that were compared; None without any."""
    count = len(inner.trace.slices.ts)
    compared, inside, odd = np.zeros(count, bool), np.zeros(count, bool), np.full(count, np.inf)
    threads = 0
    for outer in outers:
        clock_map = _between(outer, inner, placed)
        views = shared_work(outer.trace, outer.clock, inner.trace, inner.clock, names)
        if views is None:
            continue
        operators, rows = views[0].events, views[1].rows
        start = (clock_map.apply(inner.trace.slices.ts[rows]) - operators.zero_ns).astype(np.float64)
        calls = replace(views[1].events, start=start, zero_ns=operators.zero_ns)
        nest = nest_of(outer.trace, inner.trace, views)
        steps = sum(side.domain.resolution_ns for side in (outer, inner))
        within = clock_map.stated_bound_ns + steps
        out = sticking_out(nest, calls)
        compared[rows] |= could_match(operators, calls, UNMOVED) & np.isfinite(out)
        inside[rows] |= out <= within
        odd[rows] = np.minimum(odd[rows], _oddness(operators, calls, within))
        threads += len(nest.threads)
    ts, dur = inner.trace.slices.ts, inner.trace.slices.dur
    is_in, is_out = np.flatnonzero(compared & inside), np.flatnonzero(compared & ~inside)
    if len(is_out) < max(_FEWEST, _LEAST_SHARE * (len(is_in) + len(is_out))):
        return None
    if np.count_nonzero(_overlap(ts, dur, is_in, is_out)) < _LEAST_OVERLAP * len(is_out):
        return None
    by_chance = _second_of_two(ts, dur, is_in, odd) if threads == 1 else np.empty(0, np.int64)
    return np.sort(np.concatenate((is_out, by_chance))), len(is_in) + len(is_out)


def _oddness(operators: Events, calls: Events, within: float) -> F64:
    """Return for each call how unusual its start in its operator is, ns; inf if none holds it."""
    pairs = Pairs.of(operators, calls, Matcher(operators, calls).holding(UNMOVED, within), UNMOVED)
    odd = np.full(len(calls), np.inf)
    odd[pairs.b] = np.maximum(np.abs(pairs.begin), np.abs(pairs.end))
    return odd


def _overlap(ts: I64, dur: I64, one: Array, other: Array) -> Array:
    """Return which rows of the second set overlap a row of the first one in time."""
    one = one[np.argsort(ts[one], kind="stable")]
    latest = np.maximum.accumulate(np.append(np.iinfo(np.int64).min, (ts + dur)[one]))
    begun = np.searchsorted(ts[one], (ts + dur)[other])
    return np.asarray(latest[begun] > ts[other])


def _second_of_two(ts: I64, dur: I64, rows: Array, odd: F64) -> Array:
    """Return of each two calls that overlap the odder one."""
    kept: list[int] = []
    others: list[int] = []
    for row in rows[np.argsort(ts[rows], kind="stable")].tolist():
        if kept and ts[row] < ts[kept[-1]] + dur[kept[-1]]:
            if odd[row] >= odd[kept[-1]]:
                others.append(row)
                continue
            others.append(kept.pop())
        kept.append(row)
    return np.array(others, np.int64)

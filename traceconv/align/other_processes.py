"""Find the calls in a log that are of another process or thread than the operators beside it.

A log of a library may hold the calls of several processes, and names none of them. A call of the process that was
recorded starts in an operator; it may end behind it, as work does that goes on by itself. Calls that start in no
operator may have other causes: an operator without a name in common, or a time that was not recorded. But a thread does
one thing at a time: if many of them start during calls that lie in operators, they are of others. Such a call may start
in an operator by chance, at any time in it, while calls of the recorded process start soon. So one that starts
unusually late and ends behind its operator is of others, too. Where one starts during a call that lies in an operator,
the less usual one is.
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
from traceconv.align.names import NameMap
from traceconv.align.nesting import UNMOVED, sticking_out
from traceconv.align.pairs import stated_outer
from traceconv.align.placed import Placed
from traceconv.align.robust import spread_of
from traceconv.align.wording import listed
from traceconv.model.clocks import ClockMap
from traceconv.model.columns import I64
from traceconv.model.source_info import Layer

#: Logs and frameworks with more slices are looked at only if their events were compared, and many lie in no operator.
_MOST_SLICES = 50_000
#: Clocks that are known less exactly do not tell which calls lie in operators, ns: some operators last 20 µs.
_EXACT_NS = 20_000
#: The fewest calls of others, and their least share of all. Not tuned: as for matches in `sequences`.
_FEWEST, _LEAST_SHARE = 16, 0.1
#: A call that ends behind its operator is of others if it starts in it this many spreads away from the usual delay
#: (simulated: 99.5 % of own calls are nearer, 5 % of others).
_UNUSUAL = 3
#: The least share of the calls of others that start during calls in operators (simulated: 0.6, recorded: 0.27; where
#: operators are missing: less than 0.01).
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
            warnings.append(
                (
                    inner.key,
                    (
                        f"{len(rows)} of {checked} calls are drawn apart, as of another process or thread: they do "
                        f"not fit into operators of {listed(files, ' and ')}, or start during calls that fit better"
                    ),
                )
            )
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
    compared, begun, inside = np.zeros(count, bool), np.zeros(count, bool), np.zeros(count, bool)
    odd = np.full(count, np.inf)
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
        out, late = (sticking_out(nest, one) for one in (_starts(calls), calls))
        compared[rows] |= could_match(operators, calls, UNMOVED) & np.isfinite(out)
        begun[rows] |= out <= within
        inside[rows] |= late <= within
        odd[rows] = np.minimum(odd[rows], _oddness(operators, calls, within))
        threads += len(nest.threads)
    ts, dur = inner.trace.slices.ts, inner.trace.slices.dur
    of_others = np.flatnonzero(compared & ~begun)
    whole, checked = np.flatnonzero(compared & inside), int(np.count_nonzero(compared))
    if len(of_others) < max(_FEWEST, _LEAST_SHARE * checked):
        return None
    if np.count_nonzero(_begun_within(ts, dur, whole, of_others)) < _LEAST_OVERLAP * len(of_others):
        return None
    by_chance = compared & begun & ~inside & np.isfinite(odd) & (odd > _UNUSUAL)
    second = np.empty(0, np.int64)
    if threads == 1:
        second = _second_of_two(ts, np.where(inside, dur, 0), np.flatnonzero(compared & begun & ~by_chance), odd)
    return np.sort(np.concatenate((of_others, np.flatnonzero(by_chance), second))), checked


def _starts(calls: Events) -> Events:
    """Return the starts of calls, as calls without a length."""
    return replace(calls, dur=np.zeros_like(calls.dur))


def _oddness(operators: Events, calls: Events, within: float) -> F64:
    """Return for each call how unusual its times are in its operator, in spreads of all starts.

    Of a call that ends behind its operator only the start counts. inf if none holds its start.
    """
    matcher, both = Matcher(operators, calls), (_starts(calls), calls)
    begun, whole = (Pairs.of(operators, one, matcher.part(one).holding(UNMOVED, within), UNMOVED) for one in both)
    odd, spread = np.full(len(calls), np.inf), max(spread_of(begun.begin), within)
    odd[begun.b] = np.abs(begun.begin) / spread
    odd[whole.b] = np.maximum(np.abs(whole.begin), np.abs(whole.end)) / spread
    return odd


def _begun_within(ts: I64, dur: I64, one: Array, other: Array) -> Array:
    """Return which rows of the second set begin during a row of the first one."""
    one = one[np.argsort(ts[one], kind="stable")]
    latest = np.maximum.accumulate(np.append(np.iinfo(np.int64).min, (ts + dur)[one]))
    begun = np.searchsorted(ts[one], ts[other])
    return np.asarray(latest[begun] > ts[other])


def _second_of_two(ts: I64, dur: I64, rows: Array, odd: F64) -> Array:
    """Return of each two calls, of which one starts during the other, the odder one."""
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

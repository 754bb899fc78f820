"""Check that the calls of a library lie inside the operators of a framework, however the clocks were related.

A framework calls the library inside an operator, on the thread of that operator, and the operator ends after the call.
So on right clocks each call lies in a stretch of an operator of its kind (`matching`), and each such operator holds a
call. A wrong clock causes both calls in no operator and operators without a call. One of the two alone has other
causes: a thread or a time that was not recorded, or operators whose work another library did. So it says nothing about
clocks, with one exception: at the start or the end, many operators in a row hold no call while the log goes on.

Calls of one kind may follow each other so closely that many lie in some operator at any offset. So the offset is
compared with the best one nearby, for all calls and for each part of the recording. Clocks that events relate are
checked, too: most events match on one line, and the others show that a clock was set.

The constants were chosen on 25 recordings of PyTorch and MXNet with oneDNN logs. On right clocks all calls of kinds
with operators of their name lie in these, and no recording is contradicted. Moved by 0.5 to 20 ms, none stays `ok`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from traceconv.align.checks import Breaches, Check, Contradiction, Limit, Rule, place_of
from traceconv.align.constraints import KEEP_CLOCKS, NameMap, place_it
from traceconv.align.estimate import Array, Events, Method, some_of, stated_outer
from traceconv.align.features import SharedWork, nest_of, shared_work
from traceconv.align.geometry import F64, spread_of
from traceconv.align.inputs import ClockInput, Inputs, Placed, allowed_ns, resolutions_ns
from traceconv.align.matching import (
    CHANCE,
    LEAST_FITTING,
    NONE,
    UNMOVED,
    Matcher,
    Pairs,
    ThreadStretches,
    could_match,
    most_fitting,
    sticking_out,
)
from traceconv.io.shown import listed
from traceconv.model.clocks import WELL_KNOWN_NS, ClockMap, Verdict
from traceconv.model.columns import I64
from traceconv.model.numbers import earlier_or_later
from traceconv.model.source_info import Layer
from traceconv.model.trace import Trace, take

if TYPE_CHECKING:
    from traceconv.align import Alignment


# These limit the cost, which is some microseconds for each slice.
#: Of a trace with more slices than this, only this many windows of time are checked, evenly spread.
_MOST_SLICES, _WINDOWS = 50_000, 5
#: The most calls of a recording that are checked, chosen at random, and the most of them in a search of offsets.
_MOST_CALLS, _MOST_SEARCHED = 1000, 400

# These decide, with two constants of `matching` that were chosen on the recordings above: LEAST_FITTING (the share of
# calls that lie in operators on right clocks) and CHANCE (how many may be odd there).
#: Fewer calls, or fewer of a kind, say nothing. Not tuned: with fewer, one odd call is more than a tenth.
_FEWEST_CALLS = 8
#: How far a call may stick out beyond the bounds of the clocks, ns. On right clocks none does, and a log that is moved
#: by 0.5 ms is still found.
_STICKING_OUT_NS = 20_000

# For `_fits_elsewhere`.
#: The most parts of a recording that are checked, and the fewest calls of a part: a clock may be set on the way.
_PARTS, _CALLS_OF_A_PART = 8, 24
#: How far from the stated offset better ones are searched, ns: five times as far as logs were moved.
_REACH_NS = 100_000_000

_WHY = "a clock is wrong or was set in between, or the files are of two processes"

# For `_belong_elsewhere`.
#: Of the operators into which a move puts calls, the least share that hold no call otherwise, and how many times it is
#: greater than that of all operators. A move puts calls of a right log into operators that hold calls.
_SHARE_EMPTY, _TIMES_AS_EMPTY = 0.5, 2.0


class _Calls(Struct, frozen=True):
    """Calls of a library, and the operators of a framework, of the kinds that both have. All times are on one clock."""

    outer: ClockInput
    inner: ClockInput
    nest: ThreadStretches
    operators: Events
    calls: Events
    rows: Array
    log: Events
    within: int
    others: Array


class _Reason(Struct, frozen=True):
    """Why calls contradict their clock."""

    verdict: Verdict
    text: str
    move_ns: int | None


def check_of_calls(traces: Sequence[Trace], alignment: Alignment, names: NameMap) -> Iterator[Check]:
    """Yield a check of each log of a library, against the framework whose operators hold the most of its calls."""
    sides = [
        ClockInput(index, clock, trace)
        for index, trace in enumerate(traces)
        for clock in alignment.maps[index]
        if trace.sources[0].layer in (Layer.FRAMEWORK, Layer.LIBRARY) and not trace.clocks[clock].synthetic
    ]
    for inner in sides:
        outers = [outer for outer in sides if outer.index != inner.index and stated_outer(outer, inner) is outer]
        checks = [check for outer in outers if (check := _check_of_pair(outer, inner, alignment, names)) is not None]
        if checks:
            yield max(checks, key=lambda check: check.checked - check.beyond)


def _check_of_pair(outer: ClockInput, inner: ClockInput, alignment: Alignment, names: NameMap) -> Check | None:
    """Return the check of one log against one framework; None if files do not relate them, or without common work."""
    maps = [alignment.maps[side.index][side.clock] for side in (outer, inner)]
    ranks = {side.trace.sources[0].rank for side in (outer, inner)} - {None}
    # Events did not place a clock that files or user state, nor were two hosts taken for one.
    stated = all(
        (clock_map.bound_ns is not None or clock_map.verdict is Verdict.OK)
        and clock_map.verdict in (Verdict.OK, Verdict.ASSUMED)
        and not clock_map.two_hosts
        for clock_map in maps
    )
    if len(ranks) > 1 or not stated:
        return None
    clock_map = maps[1].then(maps[0].inverse())
    by_user, others = clock_map.by_user, np.empty(0, np.int64)
    if by_user or clock_map.rests_on:
        others = alignment.others.get(inner.index, others)
    calls = _calls(outer, inner, clock_map, names, others)
    if calls is None:
        return None
    check, reason = _check(_at_best(calls) if by_user else calls)
    if reason is None:
        return check
    hint = place_it(inner.name)
    if reason.move_ns is not None and not by_user:  # no --offset is right for a clock that was set in between
        moved = _calls(outer, inner, clock_map.then(ClockMap(reason.move_ns)), names, others)
        hint = KEEP_CLOCKS if moved is None or _check(moved)[1] is not None else hint
    said = Contradiction(reason.verdict, (inner.index,), inner.name, reason.text, hint, by_user)
    return replace(check, contradictions=(said,))


def _calls(outer: ClockInput, inner: ClockInput, clock_map: ClockMap, names: NameMap, others: Array) -> _Calls | None:
    """Return the common work of two clocks, by the map from the inner to the outer one; None without any."""
    outer, inner, taken = _in_windows(outer, inner, clock_map)
    others = np.flatnonzero(np.isin(taken, others))
    work = _common_work(outer, inner, clock_map, names)
    if work is None:
        return None
    views, calls = work
    operators, rows = views[0].events, views[1].rows
    could = np.flatnonzero(could_match(operators, calls, UNMOVED))
    if not len(could):
        return None
    some = some_of(could, _MOST_CALLS)
    nest = nest_of(outer.trace, inner.trace, views)
    within = allowed_ns(clock_map, outer, inner) + _STICKING_OUT_NS
    return _Calls(outer, inner, nest, operators, calls.take(some), rows[some], calls, within, others)


def _common_work(
    outer: ClockInput, inner: ClockInput, clock_map: ClockMap, names: NameMap
) -> tuple[tuple[SharedWork, SharedWork], Events] | None:
    """Return the common work of two clocks, and its calls on the outer clock, to which the map leads; None without."""
    views = shared_work(outer.trace, outer.clock, inner.trace, inner.clock, names)
    if views is None:
        return None
    zero_ns, times = views[0].events.zero_ns, clock_map.apply(inner.trace.slices.ts[views[1].rows])
    return views, replace(views[1].events, start=(times - zero_ns).astype(np.float64), zero_ns=zero_ns)


def _at_best(calls: _Calls) -> _Calls:
    """Return the calls where most fit within the bound of the user, and by how much they may stick out there.

    A rough option must not hide the calls that fit at no offset that it allows. Unchanged if too few fit exactly.
    """
    steps = resolutions_ns(calls.outer, calls.inner)
    reach = calls.within - steps - _STICKING_OUT_NS
    if not _STICKING_OUT_NS < reach <= _REACH_NS:
        return calls
    some = calls.calls.take(some_of(np.arange(len(calls.calls)), _MOST_SEARCHED))
    fitting, move = most_fitting(calls.nest, some, reach)
    if fitting < LEAST_FITTING * len(some):
        return calls
    moved, log = (replace(events, start=events.start + move) for events in (calls.calls, calls.log))
    return replace(calls, calls=moved, log=log, within=steps + 2 * _STICKING_OUT_NS)


def _in_windows(outer: ClockInput, inner: ClockInput, clock_map: ClockMap) -> tuple[ClockInput, ClockInput, Array]:
    """Return two clocks with some windows of time, if either has too many slices, and rows left of the inner one."""
    slices, calls = outer.trace.slices, inner.trace.slices
    if max(len(slices.ts), len(calls.ts)) <= _MOST_SLICES:
        return outer, inner, np.arange(len(calls.ts))
    times, others = np.sort(slices.ts), clock_map.apply(calls.ts)
    count = max(_MOST_SLICES // _WINDOWS * min(1, len(times) / max(len(calls.ts), 1)), 1)
    first = np.linspace(0, max(len(times) - 1 - count, 0), _WINDOWS).astype(np.int64)
    start, end = times[first], times[np.minimum(first + int(count), len(times) - 1)]

    def within(ts: I64) -> Array:
        return np.flatnonzero(((ts[:, None] >= start) & (ts[:, None] <= end)).any(axis=1))

    rows = within(others)
    return _part(outer, within(slices.ts)), _part(inner, rows), rows


def _part(side: ClockInput, rows: Array) -> ClockInput:
    """Return the clock with some of the slices of its trace, by row."""
    no_flows = take(side.trace.flows, np.empty(0, np.int64))
    return replace(side, trace=side.trace.with_tables(slices=take(side.trace.slices, rows), flows=no_flows))


def _check(calls: _Calls) -> tuple[Check, _Reason | None]:
    """Return the check of some calls, and why they contradict their clock, if so; with too few it has no pairs."""
    files = calls.outer.name, calls.inner.name
    out = sticking_out(calls.nest, calls.calls)
    # Operators without a length hold nothing: where a kind has no others, its calls tell nothing.
    some = np.flatnonzero(_of_telling_kinds(calls, out > calls.within) & np.isfinite(out))
    if len(some) < _FEWEST_CALLS:
        operators = _operators(calls)
        reason = _belong_elsewhere(calls, *operators) or _empty_at_an_end(calls, *operators)
        return Check(Rule.CALL, files, 0, Breaches(0, 0), alone=len(calls.calls)), reason
    calls, out = replace(calls, calls=calls.calls.take(some), rows=calls.rows[some]), out[some]
    beyond = out > calls.within
    reason = _contradiction(calls, beyond)
    outside, worst, after = int(np.count_nonzero(beyond)), int(np.argmax(out)), Breaches(0, 0)
    believed = 0 if reason is None else outside
    if believed:
        after = Breaches(outside, round(float(out[worst])), _place(calls, worst))
    checked, limit = len(out) - outside + believed, Limit(calls.within)
    return Check(Rule.CALL, files, checked, after, limit=limit, beyond=believed, alone=outside - believed), reason


def _of_telling_kinds(calls: _Calls, beyond: Array) -> Array:
    """Return for each call whether calls of its kind lie in operators of that kind, at the stated offset or nearby.

    Calls of other kinds tell nothing: a library reorders a tensor in any operator, though the framework has operators
    that only reorder. If no kind tells, such as where a clock was set on the way, all count.
    """
    telling = np.zeros(len(beyond), bool)
    for kind in np.unique(calls.calls.kind).tolist():
        rows = np.flatnonzero(calls.calls.kind == kind)
        inside = len(rows) - int(np.count_nonzero(beyond[rows]))
        if len(rows) >= _FEWEST_CALLS:
            telling[rows] = inside >= LEAST_FITTING * len(rows) or _best(calls, rows)[0] >= LEAST_FITTING
    return telling if telling.any() else ~telling


def _best(found: _Calls, rows: Array) -> tuple[float, int]:
    """Return the greatest share of some calls that lie in operators at one offset nearby, and that offset, ns."""
    calls = found.calls.take(some_of(rows, _MOST_SEARCHED))
    fitting, move = most_fitting(found.nest, calls, _REACH_NS)
    return fitting / len(calls), round(move)


def _place(calls: _Calls, call: int) -> str:
    """Return the position of a call in its file, for messages."""
    return place_of(calls.inner.trace, int(calls.rows[call]))


# -- contradictions ---------------------------------------------------------------------------------------------------


def _contradiction(calls: _Calls, beyond: Array) -> _Reason | None:
    """Return the worst contradiction of the two clocks; None if the calls fit as well as at any offset nearby."""
    operators, holding = _operators(calls)
    empty, several = operators.start[~holding], np.count_nonzero(beyond) > CHANCE
    reason = _fits_elsewhere(calls, beyond, empty) if several else None
    reason = reason or _belong_elsewhere(calls, operators, holding)
    reason = reason or _outside_of_all(calls, beyond & ~_may_be_of_others(calls), empty)
    return reason or _empty_at_an_end(calls, operators, holding)


def _may_be_of_others(calls: _Calls) -> Array:
    """Return the calls that tell nothing of the clocks, since they may be of another process; none if no call is.

    These are those that are set apart, and those that start in an operator by chance and end behind it.
    """
    if not len(calls.others):
        return np.zeros(len(calls.rows), bool)
    begun = sticking_out(calls.nest, _starts(calls.calls)) <= calls.within
    return begun | np.isin(calls.rows, calls.others)


def _operators(calls: _Calls) -> tuple[Events, Array]:
    """Return the operators of the kinds of the checked calls, and for each whether it holds a call."""
    holding = np.zeros(len(calls.operators), bool)
    rows = Matcher(calls.operators, calls.log).holding(UNMOVED, float(calls.within))
    holding[rows[rows != NONE]] = True
    regular = np.flatnonzero(np.isin(calls.operators.kind, np.unique(calls.calls.kind)))
    return calls.operators.take(regular), holding[regular]


def _fits_elsewhere(calls: _Calls, beyond: Array, empty: F64) -> _Reason | None:
    """Return a reason if all calls, or those of a part, fit into operators at another offset only."""
    count = len(beyond)
    parts = np.array_split(np.arange(count), max(1, min(_PARTS, count // _CALLS_OF_A_PART)))
    for part in (np.arange(count), *(parts if len(parts) > 1 else []), *_from_change(beyond)):
        outside = int(np.count_nonzero(beyond[part]))
        if outside <= CHANCE or _during(calls, empty, part) <= CHANCE:
            continue
        share, move = _best(calls, part)
        fitting = round(share * len(part))
        if share >= LEAST_FITTING and outside > 2 * (len(part) - fitting) + CHANCE:
            where = f", from {_place(calls, int(part[0]))} on," if len(part) < count else ""
            text = (
                f"with these clocks, only {len(part) - outside} of {len(part)} calls{where} lie in operators "
                f"of {calls.outer.name}; {fitting} would if placed {earlier_or_later(move)}: {_WHY}"
            )
            return _Reason(Verdict.UNVERIFIED, text, move)
    return None


def _from_change(beyond: Array) -> tuple[Array, Array]:
    """Return the calls before and after where most of those in no operator begin or end: a clock was set there."""
    more = np.cumsum(beyond - beyond.mean())
    at = int(np.argmax(np.abs(more))) + 1
    return np.arange(at), np.arange(at, len(beyond))


def _outside_of_all(calls: _Calls, beyond: Array, empty: F64) -> _Reason | None:
    """Return a reason if operators hold no call while calls lie in none, though no offset is better."""
    outside, without = int(np.count_nonzero(beyond)), _during(calls, empty, np.arange(len(beyond)))
    if min(outside, without) <= CHANCE:
        return None
    text = (
        f"with these clocks, {outside} of {len(beyond)} calls lie in no operator of {calls.outer.name}"
        f"; {without} operators hold no call: {_WHY}"
    )
    return _Reason(Verdict.UNVERIFIED if 2 * outside > len(beyond) else Verdict.ASSUMED, text, None)


def _empty_at_an_end(calls: _Calls, operators: Events, holding: Array) -> _Reason | None:
    """Return a reason if many operators in a row at the start or the end hold no call.

    Only operators during the log count. None if few of them hold a call, or if many in the middle hold none, too.
    """
    holds = holding[(operators.start >= calls.log.start[0]) & (operators.end <= calls.log.start[-1])]
    held = np.flatnonzero(holds)
    if len(held) <= CHANCE or holds[held[0] : held[-1] + 1].mean() < LEAST_FITTING:
        return None
    empty = max(int(held[0]), len(holds) - 1 - int(held[-1]))
    if empty <= CHANCE:
        return None
    verdict = Verdict.UNVERIFIED if 2 * empty > len(holds) else Verdict.ASSUMED
    text = (
        f"{empty} operators of {calls.outer.name} in a row hold no call while the log goes on: a clock was set in "
        "between, lines are missing, or other code did their work"
    )
    return _Reason(verdict, text, 0)


def _belong_elsewhere(calls: _Calls, operators: Events, holding: Array) -> _Reason | None:
    """Return a reason if calls in no operator belong into operators without calls: a clock was set.

    Those among, before and after the operators are tried separately. A log that goes on for longer than the trace has
    such calls, too, but then there are no operators without calls into which one move puts them.
    """
    empty = ~holding
    if np.count_nonzero(empty) <= CHANCE:
        return None
    log = calls.log.take(np.isin(calls.log.kind, np.unique(operators.kind)))
    out = sticking_out(calls.nest, log) > calls.within
    before, after = log.end < operators.start[0], log.start > np.max(operators.end)
    for where, part in (
        ("in no operator", ~before & ~after),
        ("before all operators", before),
        ("after all operators", after),
    ):
        rows = np.flatnonzero(out & part)
        if len(rows) < _FEWEST_CALLS:
            continue
        loose = log.take(rows[-_MOST_SEARCHED:] if part is before else rows[:_MOST_SEARCHED])
        fitting, move = most_fitting(calls.nest, loose, _REACH_NS)
        held = Matcher(operators, replace(loose, start=loose.start + move)).holding(UNMOVED, float(calls.within))
        held = np.unique(held[held != NONE])
        without = int(np.count_nonzero(empty[held]))
        telling = max(_SHARE_EMPTY, _TIMES_AS_EMPTY * float(empty.mean()))
        if fitting >= LEAST_FITTING * len(loose) and without > max(CHANCE, telling * len(held)):
            text = (
                f"{len(loose)} calls lie {where} of {calls.outer.name}; {fitting} of them would lie in "
                f"operators if placed {earlier_or_later(round(move))}, {without} of which hold no call "
                "otherwise: a clock was set in between"
            )
            return _Reason(Verdict.UNVERIFIED, text, round(move))
    return None


def _during(calls: _Calls, starts: F64, part: Array) -> int:
    """Return how many of some operators start while some calls last, given the starts of the operators, ns."""
    first, last = float(calls.calls.start[part[0]]), float(np.max(calls.calls.end[part]))
    return int(np.count_nonzero((starts >= first - calls.within) & (starts <= last)))


# -- Find the calls in a log that are of another process or thread than the operators beside it ----------------------

#: Logs and frameworks with more slices are looked at only if their events were compared, and many lie in no operator.
_MOST_UNCOMPARED = 50_000
#: The fewest calls of others, and their least share of all. Not tuned: as for matches in `sequences`.
_FEWEST, _LEAST_SHARE = 16, 0.1
#: A call that ends behind its operator is of others if it starts in it this many spreads away from the usual delay
#: (simulated: 99.5 % of own calls are nearer, 5 % of others).
_UNUSUAL = 3
#: The least share of the calls of others that start during calls in operators (simulated: 0.6, recorded: 0.27; where
#: operators are missing: less than 0.01).
_LEAST_OVERLAP = 0.1


def with_others_apart(inputs: Inputs, placed: Placed, names: NameMap) -> Placed:
    """Return the clocks with the rows of the calls of other processes, and a warning about each log that holds some."""
    sides = [clock for clock in inputs.clocks if clock.key in placed.maps]
    sides = [clock for clock in sides if clock.layer in (Layer.FRAMEWORK, Layer.LIBRARY)]
    others, warnings = dict(placed.others), list(placed.warnings)
    for inner in sides:
        outers = [outer for outer in sides if stated_outer(outer, inner) is outer and _is_telling(outer, inner, placed)]
        found = _of_others(outers, inner, placed, names) if inner.trace.sources[0].runs_in and outers else None
        if found is not None:
            rows, checked = found
            files = tuple(outer.name for outer in outers)
            others[inner.index] = rows
            text = (
                f"{len(rows)} of {checked} calls are drawn apart, as of another process or thread: they do not fit "
                f"into operators of {listed(files, ' and ')}, or start during calls that fit better"
            )
            warnings.append((inner.key, text))
    return replace(placed, others=others, warnings=warnings)


def _is_telling(outer: ClockInput, inner: ClockInput, placed: Placed) -> bool:
    """Return whether two clocks are so well known that calls lie in the operators that made them."""
    clock_map = _between(outer, inner, placed)
    if clock_map.bound_ns is None or clock_map.verdict.unusable or clock_map.bound_ns > WELL_KNOWN_NS:
        return False
    if max(len(side.trace.slices.ts) for side in (outer, inner)) <= _MOST_UNCOMPARED:
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
    compared, begun, inside = np.zeros((3, count), bool)
    odd, threads = np.full(count, np.inf), 0
    for outer in outers:
        clock_map = _between(outer, inner, placed)
        work = _common_work(outer, inner, clock_map, names)
        if work is None:
            continue
        views, calls = work
        operators, rows = views[0].events, views[1].rows
        nest = nest_of(outer.trace, inner.trace, views)
        within = allowed_ns(clock_map, outer, inner)
        out, late = (sticking_out(nest, events) for events in (_starts(calls), calls))
        compared[rows] |= could_match(operators, calls, UNMOVED) & np.isfinite(out)
        begun[rows] |= out <= within
        inside[rows] |= late <= within
        odd[rows] = np.minimum(odd[rows], _oddness(operators, calls, within))
        threads += len(nest.threads)
    ts, dur = inner.trace.slices.ts, inner.trace.slices.dur
    of_others = np.flatnonzero(compared & ~begun)
    whole, checked = np.flatnonzero(compared & inside), int(np.count_nonzero(compared))
    few = len(of_others) < max(_FEWEST, _LEAST_SHARE * checked)
    if few or np.count_nonzero(_begun_within(ts, dur, whole, of_others)) < _LEAST_OVERLAP * len(of_others):
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
    """Return how unusual the times of each call in its operator are, in spreads; ends count only if inside."""
    matcher = Matcher(operators, calls)
    begun, whole = (
        Pairs.of_match(operators, events, matcher.part(events).holding(UNMOVED, within), UNMOVED)
        for events in (_starts(calls), calls)
    )
    odd, spread = np.full(len(calls), np.inf), max(spread_of(begun.begin), within)
    odd[begun.b] = np.abs(begun.begin) / spread
    odd[whole.b] = np.maximum(np.abs(whole.begin), np.abs(whole.end)) / spread
    return odd


def _begun_within(ts: I64, dur: I64, outer: Array, inner: Array) -> Array:
    """Return which rows of the second set begin during a row of the first one."""
    outer = outer[np.argsort(ts[outer], kind="stable")]
    latest = np.maximum.accumulate(np.append(np.iinfo(np.int64).min, (ts + dur)[outer]))
    begun = np.searchsorted(ts[outer], ts[inner])
    return np.asarray(latest[begun] > ts[inner])


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

"""Whether the calls of a library lie inside the operators of a framework, where files state both clocks.

A framework calls the library inside an operator, on the thread of that operator, and the operator ends after the call.
So on right clocks each call lies in a stretch of an operator of its kind (`nesting`), and each such operator holds a
call. Where a clock is wrong there are both: calls in no operator, and operators without a call. Calls alone may be of a
thread or a time that was not recorded, operators alone of work that another library did, and neither says anything of
clocks. Calls of one kind may follow each other so closely that many lie in some operator wherever the log is moved. So
the stated place is compared with the best one nearby, for all calls and for each part of the recording.

The constants were chosen on 25 recordings with oneDNN logs, of PyTorch and MXNet. On right clocks all calls of kinds
that lie in operators of their name do so, and no recording is contradicted. Moved by 0.5 to 20 ms, none stays `ok`.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from traceconv.align.causality import Breaches, Check, Contradiction, Limit, Rule, place_of
from traceconv.align.estimate import Array, Events, some_of
from traceconv.align.features import SharedWork, nest_of, shared_work
from traceconv.align.geometry import F64
from traceconv.align.matching import NONE, Matcher
from traceconv.align.names import NameMap
from traceconv.align.nesting import CHANCE, LEAST_FITTING, UNMOVED, Nest, most_fitting, sticking_out
from traceconv.align.network import UNSTATED_BOUND_NS
from traceconv.align.select_estimator import Side, stated_outer
from traceconv.align.sequences import could_match
from traceconv.clocks import ClockMap, Verdict
from traceconv.ir.trace import I64, Layer, Trace, take
from traceconv.times import earlier_or_later

if TYPE_CHECKING:
    from traceconv.align import Alignment

#: Of traces with more slices some stretches of time are looked at, since each slice costs some microseconds.
_MOST_SLICES, _WINDOWS = 50_000, 5
#: So many calls of a recording are looked at, evenly spread, and so many of them where a better place is looked for.
_MOST_CALLS, _MOST_SEARCHED = 1000, 400
#: Fewer calls, or fewer of a kind, say nothing; nor do fewer operators without calls.
_FEWEST_CALLS = 8
#: A recording is looked at in so many parts, each of so many calls or more.
_PARTS, _CALLS_OF_A_PART = 8, 24
#: So much more than the clocks are off a call may stick out, ns.
_STICKING_OUT_NS = 20_000
#: So far from the stated place better ones are looked for, ns.
_REACH_NS = 100_000_000
_WRONG = "a clock is wrong or was set meanwhile, or they are of two processes"


@dataclass(frozen=True, slots=True)
class _Calls:
    """Calls of a library beside the operators of a framework.

    Attributes:
        outer, inner: the two clocks.
        nest: the stretches of the framework's threads.
        operators: the operators of kinds that both know, in order of their start.
        calls: those of such kinds at which the framework was recorded, on its clock, in order of their start.
        rows: the rows of these calls in the slices of the inner trace.
        log: all calls of such kinds, on the same clock, in order of their start.
        within: how far each call may stick out, ns.
    """

    outer: Side
    inner: Side
    nest: Nest
    operators: Events
    calls: Events
    rows: Array
    log: Events
    within: int


def check_of_calls(traces: Sequence[Trace], alignment: Alignment, names: NameMap) -> Iterator[Check]:
    """Check each log of a library against the framework of this merge whose operators hold most of its calls.

    Args:
        traces: the inputs.
        alignment: how they are put on one time axis.
        names: which names mean the same work.
    """
    sides = [
        Side(index, clock, trace)
        for index, trace in enumerate(traces)
        for clock in alignment.maps[index]
        if trace.sources[0].layer in (Layer.FRAMEWORK, Layer.LIBRARY) and not trace.clocks[clock].synthetic
    ]
    for inner in sides:
        found = [
            check
            for outer in sides
            if outer.index != inner.index and stated_outer(outer, inner) is outer
            for check in _checks(outer, inner, alignment, names)
        ]
        if found:
            yield max(found, key=lambda check: check.checked - check.beyond)


def _checks(outer: Side, inner: Side, alignment: Alignment, names: NameMap) -> Iterator[Check]:
    """The check of one log against one framework, if files relate the two and enough calls can be looked at."""
    ways = [alignment.maps[side.index][side.clock] for side in (outer, inner)]
    ranks = {side.trace.sources[0].rank for side in (outer, inner)} - {None}
    if len(ranks) > 1 or not all(_is_stated(way) for way in ways):
        return
    way = ways[1].then(ways[0].inverse())
    found = _calls(*_in_windows(outer, inner, way), way, names)
    if found is not None:
        yield _check(found)


def _is_stated(way: ClockMap) -> bool:
    """Whether a clock is where files put it, alone: neither the user nor events, nor two hosts taken for one."""
    known = way.bound_ns is not None or way.verdict is Verdict.OK
    return known and way.verdict in (Verdict.OK, Verdict.ASSUMED) and not (way.by_user or way.two_hosts or way.rests_on)


def _calls(outer: Side, inner: Side, way: ClockMap, names: NameMap) -> _Calls | None:
    """What both clocks know, by a map from the inner one to the outer one; None if it is nothing."""
    views = shared_work(outer.trace, outer.clock, inner.trace, inner.clock, names)
    if views is None:
        return None
    operators, calls = views[0].events, _on_other_clock(views[1], inner.trace, way, views[0].events.zero_ns)
    could = np.flatnonzero(could_match(operators, calls, UNMOVED))
    if not len(could):
        return None
    some = some_of(could, _MOST_CALLS)
    bound = UNSTATED_BOUND_NS if way.bound_ns is None else way.bound_ns
    steps = sum(side.trace.clocks[side.clock].resolution_ns for side in (outer, inner))
    nest = nest_of(outer.trace, inner.trace, views)
    within = bound + steps + _STICKING_OUT_NS
    return _Calls(outer, inner, nest, operators, calls.take(some), views[1].rows[some], calls, within)


def _on_other_clock(view: SharedWork, trace: Trace, way: ClockMap, zero: int) -> Events:
    """The events of a view at the times of another clock, from another zero."""
    start = (way.apply(trace.slices.ts[view.rows]) - zero).astype(np.float64)
    return replace(view.events, start=start, zero_ns=zero)


def _in_windows(outer: Side, inner: Side, way: ClockMap) -> tuple[Side, Side]:
    """The two with what happened in some stretches of time, evenly spread, if either has too many slices."""
    slices, calls = outer.trace.slices, inner.trace.slices
    if max(len(slices.ts), len(calls.ts)) <= _MOST_SLICES:
        return outer, inner
    times, others = np.sort(slices.ts), way.apply(calls.ts)
    count = max(_MOST_SLICES // _WINDOWS * min(1, len(times) / max(len(calls.ts), 1)), 1)
    first = np.linspace(0, max(len(times) - 1 - count, 0), _WINDOWS).astype(np.int64)
    begin, end = times[first], times[np.minimum(first + int(count), len(times) - 1)]

    def within(ts: I64) -> Array:
        return np.flatnonzero(((ts[:, None] >= begin) & (ts[:, None] <= end)).any(axis=1))

    return _part(outer, within(slices.ts)), _part(inner, within(others))


def _part(side: Side, rows: Array) -> Side:
    """The same clock with some of the slices."""
    nothing = take(side.trace.flows, np.empty(0, np.int64))
    return Side(side.index, side.clock, side.trace.with_tables(slices=take(side.trace.slices, rows), flows=nothing))


def _check(found: _Calls) -> Check:
    """What the calls say; that they are too few, if so."""
    files = found.outer.name, found.inner.name
    out = sticking_out(found.nest, found.calls)
    some = np.flatnonzero(_of_telling_kinds(found, out > found.within))
    if len(some) < _FEWEST_CALLS:
        return Check(Rule.CALL, files, 0, Breaches(0, 0), alone=len(found.calls))
    found, out = replace(found, calls=found.calls.take(some), rows=found.rows[some]), out[some]
    beyond = out > found.within
    contradictions = tuple(_contradictions(found, beyond))
    outside = int(np.count_nonzero(beyond))
    believed = outside if any(one.verdict is not Verdict.OK for one in contradictions) else 0
    return Check(
        Rule.CALL,
        files,
        len(out) - outside + believed,
        _breaches(found, out, beyond) if believed else Breaches(0, 0),
        limit=Limit(found.within),
        beyond=believed,
        alone=outside - believed,
        contradictions=contradictions,
    )


def _breaches(found: _Calls, out: F64, beyond: Array) -> Breaches:
    """The calls that lie in no operator of their kind."""
    worst = int(np.argmax(np.where(np.isinf(out), -1.0, out)))
    return Breaches(int(np.count_nonzero(beyond)), round(float(out[worst])), _place(found, worst))


def _of_telling_kinds(found: _Calls, beyond: Array) -> Array:
    """For each call whether those of its kind lie in operators of that kind, here or at another place nearby.

    A library reorders a tensor in any operator, also where the framework has operators that do nothing but that. If no
    kind does, as where a clock was set in the middle, all tell.
    """
    telling = np.zeros(len(beyond), bool)
    for kind in np.unique(found.calls.kind).tolist():
        rows = np.flatnonzero(found.calls.kind == kind)
        inside = len(rows) - int(np.count_nonzero(beyond[rows]))
        if len(rows) >= _FEWEST_CALLS:
            telling[rows] = inside >= LEAST_FITTING * len(rows) or _best(found, rows)[0] >= LEAST_FITTING
    return telling if telling.any() else ~telling


def _best(found: _Calls, rows: Array) -> tuple[float, int]:
    """The greatest share of some calls that lies in operators at one place nearby, and by how much to move them, ns."""
    calls = found.calls.take(some_of(rows, _MOST_SEARCHED))
    fitting, move = most_fitting(found.nest, calls, _REACH_NS)
    return fitting / len(calls), round(move)


def _place(found: _Calls, call: int) -> str:
    return place_of(found.inner.trace, int(found.rows[call]))


def _contradictions(found: _Calls, beyond: Array) -> Iterator[Contradiction]:
    """What is said against the two clocks, the worst alone; nothing where the calls fit as well as anywhere nearby.

    Args:
        found: the calls.
        beyond: whether each sticks out of all operators of its kind by more than is possible.
    """
    count, others = len(beyond), found.outer.name
    stated = f"operators of {others} as the two clocks are stated"
    regular, holding = _holding(found)
    parts = np.array_split(np.arange(count), max(1, min(_PARTS, count // _CALLS_OF_A_PART)))
    for part in (np.arange(count), *(parts if len(parts) > 1 else [])):
        outside = int(np.count_nonzero(beyond[part]))
        if outside <= CHANCE or _without_calls(found, regular, holding, part) <= CHANCE:
            continue
        share, move = _best(found, part)
        fitting = round(share * len(part))
        if share >= LEAST_FITTING and outside > 2 * (len(part) - fitting) + CHANCE:
            inside = len(part) - outside
            where = f", from {_place(found, int(part[0]))} on," if len(part) < count else ""
            text = (
                f"only {inside} of {len(part)} calls{where} lie in {stated}, and {fitting} would "
                f"{earlier_or_later(move)}: {_WRONG}"
            )
            yield _contradiction(found, Verdict.UNVERIFIED, text)
            return
    outside, without = int(np.count_nonzero(beyond)), _without_calls(found, regular, holding, np.arange(count))
    if outside > CHANCE and without > CHANCE:
        text = f"{outside} of {count} calls lie in no {stated}, and {without} operators hold no call: {_WRONG}"
        yield _contradiction(found, Verdict.ASSUMED, text)
        return
    empty = _empty_at_an_end(found, regular, holding)
    if empty >= _FEWEST_CALLS:
        text = (
            f"{empty} operators of {others} in a row hold no call while the log goes on: a clock was set meanwhile, "
            "lines are missing, or something else did their work"
        )
        yield _contradiction(found, Verdict.OK, text)


def _holding(found: _Calls) -> tuple[Array, Array]:
    """For each operator whether some of its kind hold a call, and whether it does."""
    holding = np.zeros(len(found.operators), bool)
    rows = Matcher(found.operators, found.log).holding(UNMOVED, float(found.within))
    holding[rows[rows != NONE]] = True
    regular = np.isin(found.operators.kind, np.unique(found.calls.kind))
    return regular, holding


def _without_calls(found: _Calls, regular: Array, holding: Array, part: Array) -> int:
    """How many operators hold no call, of those that begin while some calls last."""
    first, last = float(found.calls.start[part[0]]), float(np.max(found.calls.end[part]))
    during = (found.operators.start >= first - found.within) & (found.operators.start <= last)
    return int(np.count_nonzero(during & regular & ~holding))


def _empty_at_an_end(found: _Calls, regular: Array, holding: Array) -> int:
    """How many operators hold no call, before the first that holds one or after the last, while the log goes on.

    Returns:
        0 where few hold one, or where operators between those two hold none, either.
    """
    during = (found.operators.start >= found.log.start[0]) & (found.operators.end <= found.log.start[-1])
    holds = holding[regular & during]
    held = np.flatnonzero(holds)
    if len(held) < _FEWEST_CALLS or holds[held[0] : held[-1] + 1].mean() < LEAST_FITTING:
        return 0
    return max(int(held[0]), len(holds) - 1 - int(held[-1]))


def _contradiction(found: _Calls, verdict: Verdict, text: str) -> Contradiction:
    file = shlex.quote(found.inner.name)
    hint = (
        f"--offset {file}=TIME says where it belongs (0ns: where its own times put it); --on-ambiguous best leaves it "
        "here and says so beside it"
    )
    return Contradiction(verdict, (found.inner.index,), found.inner.name, text, hint)

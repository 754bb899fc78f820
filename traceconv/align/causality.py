"""Whether effects come after their causes on the common time axis: a check that needs no knowledge of any clock.

Four things can be told from the events alone. The flows in a file: a kernel does not start before the call that
launches it, and a receive is not over before its send begins. The same where one file has the calls and another one
the kernels, by the ids that both wrote down. The matched slices of two files: the work of a library lies inside the
call of the framework around it. And what several ranks of a job do together: none leaves a collective before all have
entered it. Flows join slices of one file, so that a flow that runs backwards is a fault of the recording as long as
both its ends are on one clock. What two files have in common judges the alignment: an event that breaks a rule by more
than the stated bound contradicts it, and an alignment that its own checks contradict is refused (`believed`).

Times are cut to the resolution of their clock when they are printed, so each is up to that later than it says: between
two clocks a start may seem early by one step, an end late by two (start and duration are both cut).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from traceconv.align.checks import Breaches, Causality, Check, Contradiction, Limit, Rule
from traceconv.align.domains import Key
from traceconv.align.messages import Message, Text
from traceconv.align.names import NameMap
from traceconv.errors import InconsistentClocks, UnverifiedAlignment
from traceconv.model.clocks import UNSTATED_BOUND_NS, ClockMap, Verdict
from traceconv.model.trace import I64, Layer, Trace

if TYPE_CHECKING:
    from traceconv.align import Alignment
    from traceconv.align.estimate import Array
    from traceconv.align.launches import Joined
    from traceconv.align.pairs import PairEstimate


def causality(traces: Sequence[Trace], alignment: Alignment, names: NameMap | None = None) -> Causality:
    """Check the order of cause and effect on the time axis of an alignment.

    Args:
        traces: the inputs, as the alignment got them.
        alignment: how they are put on one time axis.
        names: which names mean the same work; those that are built in if it is None.
    """
    checks = [check for trace, maps in zip(traces, alignment.maps, strict=True) for check in _flows(trace, maps)]
    checks += _inside(alignment)
    checks += _launches(traces, alignment)
    if {Layer.FRAMEWORK, Layer.LIBRARY} <= {trace.sources[0].layer for trace in traces}:
        from traceconv.align.containment import check_of_calls

        checks += check_of_calls(traces, alignment, names or NameMap())
    matched = None
    if sum(trace.collectives is not None for trace in traces) > 1:
        from traceconv.align.collective_matching import match_collectives  # most merges have no use for it
        from traceconv.align.ranks import check_of_ranks

        matched = match_collectives(traces, alignment.maps)
        checks += check_of_ranks(traces, alignment, matched) if matched else []
    return Causality(tuple(checks), matched)


def _pairs_of(alignment: Alignment, clocks: tuple[Key, Key]) -> list[PairEstimate]:
    """Return what was estimated of two clocks."""
    return [pair for pair in alignment.pairs if {pair.a.key, pair.b.key} == set(clocks)]


def _limit(alignment: Alignment, clocks: tuple[Key, Key], wrong: float) -> Limit:
    """Return what pairs of two clocks are measured against: how far off they may be by what the two maps rest on.

    A clock that lies beside the others, or that the user placed where nothing says how exactly, contradicts nothing.
    Where files call two clocks one, or say nothing of their bound, these are no better than such clocks were measured.
    """
    ways = [alignment.maps[index][clock] for index, clock in clocks]
    if Verdict.SEPARATE in (way.verdict for way in ways):
        return Limit()
    pairs = _pairs_of(alignment, clocks)
    resting = [pair.bound_ns for pair in pairs if any(pair.carries(way) for way in ways)]
    if resting:
        return Limit(min(resting), wrong)
    stated = [way.bound_ns for way in ways if way.bound_ns is not None]
    if len(stated) == len(ways):
        return Limit(max(sum(stated), UNSTATED_BOUND_NS), wrong)
    return Limit(UNSTATED_BOUND_NS, wrong) if all(way.verdict is Verdict.OK for way in ways) else Limit()


def _with_contradictions(check: Check, alignment: Alignment, clocks: tuple[Key, Key]) -> Check:
    """Return the check; it contradicts the two clocks if more pairs are beyond its limit than may be wrong."""
    if not check.exceeds:
        return check
    placed = [index for index, clock in clocks if alignment.maps[index][clock].by_user]
    last = placed[-1] if placed else clocks[-1][0]
    mine, other = (alignment.files[index] for index in (last, *(index for index, _ in clocks if index != last)))
    text = Text.CONTRADICTS_ITS_PLACE(other=other, check=check.describe())
    verdict = Verdict.ASSUMED if placed else check.limit.verdict
    hint = Text.SAY_WHERE_IT_BELONGS(name=check.files[-1])
    return replace(check, contradictions=(Contradiction(verdict, (last,), mine, text, hint),))


def believed(alignment: Alignment, found: Causality, on_ambiguous: str = "fail") -> Alignment:
    """Return the alignment, with the verdicts that are left of it where its checks contradict it.

    Args:
        alignment: how inputs were put together.
        found: what was checked then.
        on_ambiguous: as `Policy` has it; "best" leaves them where they are.

    Raises:
        InconsistentClocks: events contradict what is known of the clocks, beyond its bounds.
        UnverifiedAlignment: they contradict what was assumed of them.
    """
    contradictions = [one for check in found.checks for one in check.contradictions]
    against = [one for one in contradictions if one.verdict not in (Verdict.OK, Verdict.ASSUMED)]
    if against and on_ambiguous != "best":
        worst = max(against, key=lambda one: one.verdict.badness)
        error = InconsistentClocks if worst.verdict is Verdict.INCONSISTENT else UnverifiedAlignment
        raise error(worst.sentence, hint=worst.hint, pairs=alignment.pairs)
    for one in contradictions:
        alignment = alignment.doubted(one.inputs, one.verdict, str(one.text))
    return alignment


# -- flows in a file -----------------------------------------------------------------------------------------------


def _flows(trace: Trace, maps: dict[int, ClockMap]) -> Iterator[Check]:
    """Yield a check for each kind of flow in a trace; synthetic positions are not looked at."""
    flows, slices = trace.flows, trace.slices
    clock_of_track = np.array([int(track.clock) for track in trace.tracks] or [0])
    real = np.array([not trace.clocks[clock].synthetic for clock in clock_of_track.tolist()], bool)
    used = np.flatnonzero(real[slices.track[flows.from_slice]] & real[slices.track[flows.to_slice]])
    source, target = flows.from_slice[used], flows.to_slice[used]
    clock_source, clock_target = clock_of_track[slices.track[source]], clock_of_track[slices.track[target]]
    starts = on_trace_time(slices.ts[source], clock_source, maps)
    target_starts = on_trace_time(slices.ts[target], clock_target, maps)
    target_ends = on_trace_time(slices.ts[target] + slices.dur[target], clock_target, maps)
    steps = np.array([clock.resolution_ns for clock in trace.clocks], np.int64)[clock_target]
    slack = np.where(clock_source == clock_target, 0, steps)
    rules = _rules(trace, used)
    for number, rule in enumerate((Rule.LAUNCH, Rule.RECEIVE, Rule.FLOW)):
        rows = np.flatnonzero(rules == number)
        if len(rows):
            reached = target_ends if rule is Rule.RECEIVE else target_starts
            late = starts[rows] - reached[rows] - slack[rows]
            breaches, _ = _breaches(late, (trace, target[rows]), (trace, source[rows]))
            yield Check(rule, (trace.sources[0].name,), len(rows), breaches)


def _rules(trace: Trace, rows: Array) -> Array:
    """Return for each of some flows the number of its rule, told by its name and category as its format means them."""
    marks = trace.sources[0].marks
    nothing = r"(?!)"
    patterns = (marks.launch_flows or nothing, marks.receive_flows or nothing)
    launched, sent = (re.compile(pattern, re.IGNORECASE) for pattern in patterns)
    codes = trace.flows.name[rows].astype(np.int64) * len(trace.strings) + trace.flows.category[rows]
    different, kind_of = np.unique(codes, return_inverse=True)
    kinds = []
    for code in different.tolist():
        text = " ".join(trace.strings[part] for part in divmod(code, len(trace.strings)))
        kinds.append(0 if launched.search(text) else 1 if sent.search(text) else 2)
    return np.array(kinds, np.int64)[kind_of]


def on_trace_time(ts: I64, clocks: Array, maps: Mapping[int, ClockMap]) -> I64:
    """Return times of several clocks on trace time, by the clock of each and the maps of these."""
    mapped = ts.copy()
    for clock, way in maps.items():
        own = clocks == clock
        mapped[own] = way.apply(ts[own])
    return mapped


# -- calls in one file, their work in another one -------------------------------------------------------------------


def _launches(traces: Sequence[Trace], alignment: Alignment) -> Iterator[Check]:
    """Yield a check for the two files of which one alone has calls that launched work, the other one alone the work."""
    from traceconv.align.launches import (  # conversions have no use for them
        LEAST_SHARE,
        WRONG_IDS,
        host_and_device,
        joined,
    )

    apart = host_and_device(traces)
    if apart is None:
        return
    host, device = apart
    for clock_host in alignment.maps[host]:
        for clock_device in alignment.maps[device]:
            both = joined(traces[host], clock_host, traces[device], clock_device)
            if both is None or both.share < LEAST_SHARE:
                continue
            clocks = (host, clock_host), (device, clock_device)
            wrong = max(WRONG_IDS, *(pair.estimate.wrong for pair in _pairs_of(alignment, clocks)), 0.0)
            limit = _limit(alignment, clocks, wrong)
            known = _known(alignment, clocks)
            ways = alignment.maps[host][clock_host], alignment.maps[device][clock_device]
            after, beyond = _early(traces[host], traces[device], both, ways, limit.bound_ns)
            before = None if known is None else _early(traces[host], traces[device], both, known)[0]
            files = (traces[host].sources[0].name, traces[device].sources[0].name)
            check = Check(Rule.LAUNCH, files, len(both.calls), after, before, limit=limit, beyond=beyond)
            yield _with_contradictions(check, alignment, clocks)


def _known(alignment: Alignment, clocks: tuple[Key, Key]) -> tuple[ClockMap, ClockMap] | None:
    """Return the maps of two clocks to a common time, by what the files themselves say; None if they say nothing."""
    for pair in _pairs_of(alignment, clocks):
        if pair.known is None:
            return None
        return (pair.known, ClockMap()) if pair.a.key == clocks[0] else (ClockMap(), pair.known)
    host, device = (alignment.maps[index][clock] for index, clock in clocks)
    return None if host.by_user or device.by_user else (host, device)


def _early(
    host: Trace, device: Trace, both: Joined, ways: tuple[ClockMap, ClockMap], bound_ns: int | None = None
) -> tuple[Breaches, int]:
    """Return how much work begins before its call, and how much of it by more than is possible."""
    launched = ways[0].apply(host.slices.ts[both.calls])
    began = ways[1].apply(device.slices.ts[both.work])
    clock = int(device.tracks[int(device.slices.track[both.work[0]])].clock)
    late = launched - began - max(device.clocks[clock].resolution_ns, 1)
    return _breaches(late, (device, both.work), (host, both.calls), bound_ns)


# -- matched slices of two files ------------------------------------------------------------------------------------


def _inside(alignment: Alignment) -> Iterator[Check]:
    """Yield whether the inner slices of each pair lie inside the outer ones.

    Slices were matched that have times of their own: not those that were laid into others.
    """
    for pair in alignment.pairs:
        sides, clocks = (pair.a, pair.b), pair.keys
        placed = all(side.clock in alignment.maps[side.index] and not side.domain.synthetic for side in sides)
        if pair.rows is None or not len(pair.rows[0]) or pair.estimate.verdict.refused or not placed:
            continue
        if pair.b.index not in alignment.placements:
            limit = _limit(alignment, clocks, pair.estimate.wrong) if pair.taken else Limit()
            way_a, way_b = (alignment.maps[index][clock] for index, clock in clocks)
            after, beyond = _outside(pair, pair.rows, (way_a, way_b), limit.bound_ns)
            before = None if pair.known is None else _outside(pair, pair.rows, (pair.known, ClockMap()))[0]
            files, count = (pair.a.name, pair.b.name), len(pair.rows[0])
            check = Check(Rule.INSIDE, files, count, after, before, limit=limit, beyond=beyond)
            yield _with_contradictions(check, alignment, clocks)


def _outside(
    pair: PairEstimate, rows: tuple[Array, Array], ways: tuple[ClockMap, ClockMap], bound_ns: int | None = None
) -> tuple[Breaches, int]:
    """Return how many inner slices stick out of the outer ones, and how many of them by more than is possible."""
    sides = [(side.trace, own, way) for side, own, way in zip((pair.a, pair.b), rows, ways, strict=True)]
    steps = [max(side.domain.resolution_ns, 1) for side in (pair.a, pair.b)]
    times = [
        (way.apply(trace.slices.ts[own]), way.apply(trace.slices.ts[own] + trace.slices.dur[own]))
        for trace, own, way in sides
    ]
    outer, inner = (1, 0) if pair.turned else (0, 1)
    early = times[outer][0] - times[inner][0] - steps[inner]
    late = times[inner][1] - times[outer][1] - 2 * steps[outer]
    return _breaches(np.maximum(early, late), sides[inner][:2], sides[outer][:2], bound_ns)


def _breaches(
    by: I64, effects: tuple[Trace, Array], causes: tuple[Trace, Array], bound_ns: int | None = None
) -> tuple[Breaches, int]:
    """Return what is wrong, from how much each pair is, and how much of it is so by more than is possible.

    Args:
        by: by how much each pair breaks its rule, ns: not at all if that is 0 or less.
        effects, causes: the rows of both in the slices of their traces.
        bound_ns: what is possible; None if nothing is said of that.
    """
    count = int((by > 0).sum())
    if not count:
        return Breaches(0, 0), 0
    worst = int(np.argmax(by))
    effect, cause = (place_of(trace, int(rows[worst])) for trace, rows in (effects, causes))
    beyond = 0 if bound_ns is None else int((by > bound_ns).sum())
    return Breaches(count, int(by[worst]), Text.EFFECT_AND_CAUSE(effect=effect, cause=cause)), beyond


def place_of(trace: Trace, row: int) -> Message:
    """Return where a slice stands in its file, and its name, for messages."""
    slices = trace.slices
    place = trace.place(int(slices.track[row]), int(slices.origin[row]))
    return Text.SLICE_AT(place=place, name=trace.strings[slices.name[row]])

"""Check that effects come after their causes on trace time, independently of the evidence for the alignment.

- Flows in a file: a kernel does not start before the call that launches it, and a receive does not end before its send
  starts. Both ends are mostly on one clock, so that a flow backwards in time is a fault of the recording.
- Launches in one file and kernels in another one, with the same correlation ids: the same holds; and a call that waits
  for work does not return before the work ends.
- Matched slices of two files: the work of a library lies inside the call of the framework around it.
- Ranks of a job: none leaves a collective before all have entered it (`collectives`).
- Calls of a library: each lies in an operator of its framework (`containment`).

All but the flows check the alignment: pairs that break a rule by more than the bounds of the clocks contradict it, and
`believed` refuses an alignment that its checks contradict.

Recorders cut times to the resolution of their clock, so that a true time may be up to one step later. Between two
clocks a start may seem one step too early, and an end two steps too late: start and duration are both cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from traceconv.align.checks import Breaches, Causality, Check, Contradiction, Limit, Rule, place_of
from traceconv.align.constraints import NameMap, place_it
from traceconv.align.domains import Key, clocks_of_tracks, on_trace_time
from traceconv.errors import InconsistentClocks, UnverifiedAlignment
from traceconv.model.clocks import UNSTATED_BOUND_NS, ClockMap, Verdict
from traceconv.model.columns import I64
from traceconv.model.source_info import Layer
from traceconv.model.trace import Trace

if TYPE_CHECKING:
    from traceconv.align import Alignment
    from traceconv.align.estimate import Array, PairEstimate
    from traceconv.align.launches import Joined


def causality(traces: Sequence[Trace], alignment: Alignment, names: NameMap | None = None) -> Causality:
    """Check the order of causes and effects on the time axis of an alignment.

    Args:
        names: which names mean the same work; None for the built-in classes of names.
    """
    checks = [check for trace, maps in zip(traces, alignment.maps, strict=True) for check in _flows(trace, maps)]
    checks += _inside(alignment)
    checks += _launches(traces, alignment)
    if {Layer.FRAMEWORK, Layer.LIBRARY} <= {trace.sources[0].layer for trace in traces}:
        from traceconv.align.containment import check_of_calls

        checks += check_of_calls(traces, alignment, names or NameMap())
    matched = None
    if sum(trace.collectives is not None for trace in traces) > 1:
        from traceconv.align.collective_matching import match_collectives  # few merges need it
        from traceconv.align.collectives import check_of_ranks

        matched = match_collectives(traces, alignment)
        checks += check_of_ranks(traces, alignment, matched) if not matched.is_empty else []
    return Causality(tuple(checks), matched)


def _pairs_of(alignment: Alignment, clocks: tuple[Key, Key]) -> list[PairEstimate]:
    """Return the estimates for two clocks."""
    return [pair for pair in alignment.pairs if set(pair.keys) == set(clocks)]


def _limit(alignment: Alignment, clocks: tuple[Key, Key], wrong: float) -> Limit:
    """Return what the bounds of two clocks allow.

    If the maps rest on an estimate for the two, its bound counts. Otherwise both bounds are added. Bounds that files do
    not state, or state as 0, count as UNSTATED_BOUND_NS, which is how exact such clocks were measured to be. There is
    no limit for a clock that is drawn beside the others, or that the user placed without a bound.
    """
    maps = [alignment.maps[index][clock] for index, clock in clocks]
    if Verdict.SEPARATE in (clock_map.verdict for clock_map in maps):
        return Limit()
    pairs = _pairs_of(alignment, clocks)
    resting = [pair.bound_ns for pair in pairs if any(pair.carries(clock_map) for clock_map in maps)]
    if resting:
        return Limit(min(resting), wrong)
    stated = [clock_map.bound_ns for clock_map in maps if clock_map.bound_ns is not None]
    if len(stated) == len(maps):
        return Limit(max(sum(stated), UNSTATED_BOUND_NS), wrong)
    return Limit(UNSTATED_BOUND_NS, wrong) if all(clock_map.verdict is Verdict.OK for clock_map in maps) else Limit()


def _with_contradictions(check: Check, alignment: Alignment, clocks: tuple[Key, Key]) -> Check:
    """Return the check, with a contradiction of the two clocks if more pairs are beyond its limit than may be."""
    if not check.exceeds:
        return check
    placed = [index for index, clock in clocks if alignment.maps[index][clock].by_user]
    last = placed[-1] if placed else clocks[-1][0]
    name, other_name = (alignment.files[index] for index in (last, *(index for index, _ in clocks if index != last)))
    text = f"aligned with {other_name}, its events break a rule: {check.describe()}"
    verdict = Verdict.ASSUMED if placed else check.limit.verdict
    hint = place_it(check.files[-1])
    return replace(check, contradictions=(Contradiction(verdict, (last,), name, text, hint),))


def believed(alignment: Alignment, causality: Causality, on_ambiguous: str = "fail") -> Alignment:
    """Return the alignment, with lower verdicts for the clocks that its checks contradict.

    Args:
        on_ambiguous: see `Policy`; with "best" nothing is refused.

    Raises:
        InconsistentClocks: events contradict the clocks beyond their bounds.
        UnverifiedAlignment: they contradict an assumption about the clocks.
    """
    against = [found for found in causality.contradictions if found.refuses]
    if against and on_ambiguous != "best":
        worst = max(against, key=lambda found: found.verdict.badness)
        error = InconsistentClocks if worst.verdict is Verdict.INCONSISTENT else UnverifiedAlignment
        raise error(worst.sentence, hint=worst.hint, pairs=alignment.pairs, checks=causality)
    for found in causality.contradictions:
        alignment = alignment.doubted(found.inputs, found.verdict, found.text)
    return alignment


# -- flows in a file -----------------------------------------------------------------------------------------------


def _flows(trace: Trace, maps: dict[int, ClockMap]) -> Iterator[Check]:
    """Yield a check for each kind of flow in a trace, without flows whose times are synthetic."""
    flows, slices = trace.flows, trace.slices
    clock_of_track = clocks_of_tracks(trace)
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
    """Return 0 for each flow whose name or category has the pattern of launches, 1 for that of receives, else 2."""
    marks = trace.sources[0].marks
    matches_nothing = r"(?!)"
    patterns = (marks.launch_flows or matches_nothing, marks.receive_flows or matches_nothing)
    launched, sent = (re.compile(pattern, re.IGNORECASE) for pattern in patterns)
    codes = trace.flows.name[rows].astype(np.int64) * len(trace.strings) + trace.flows.category[rows]
    different, kind_of = np.unique(codes, return_inverse=True)
    kinds = []
    for code in different.tolist():
        text = " ".join(trace.strings[part] for part in divmod(code, len(trace.strings)))
        kinds.append(0 if launched.search(text) else 1 if sent.search(text) else 2)
    return np.array(kinds, np.int64)[kind_of]


# -- launches in one file, their work in another one ----------------------------------------------------------------


def _launches(traces: Sequence[Trace], alignment: Alignment) -> Iterator[Check]:
    """Yield the checks of two files, one of which has the launches and the other one the launched work."""
    from traceconv.align.launches import LEAST_SHARE, WRONG_IDS, host_and_device, joined, waits_for  # few need it

    apart = host_and_device(traces)
    if apart is None:
        return
    host, device = (traces[index] for index in apart)
    for clock_host, clock_device in product(*(alignment.maps[index] for index in apart)):
        pairs = joined(host, clock_host, device, clock_device)
        if pairs is None or pairs.share < LEAST_SHARE:
            continue
        clocks = (apart[0], clock_host), (apart[1], clock_device)
        wrong = max(WRONG_IDS, *(pair.estimate.wrong for pair in _pairs_of(alignment, clocks)), 0.0)
        limit, known = _limit(alignment, clocks, wrong), _known(alignment, clocks)
        maps = alignment.maps[apart[0]][clock_host], alignment.maps[apart[1]][clock_device]
        files, waits = (host.sources[0].name, device.sources[0].name), waits_for(host, clock_host, device, pairs)
        for rule, count, breaches_by in (
            (Rule.LAUNCH, len(pairs.calls), partial(_early, host, device, pairs)),
            (Rule.WAIT, len(waits[0]), partial(_returned_early, host, device, pairs, waits)),
        ):
            if count:
                after, beyond = breaches_by(maps, limit.bound_ns)
                before = None if known is None else breaches_by(known)[0]
                check = Check(rule, files, count, after, before, limit=limit, beyond=beyond)
                yield _with_contradictions(check, alignment, clocks)


def _known(alignment: Alignment, clocks: tuple[Key, Key]) -> tuple[ClockMap, ClockMap] | None:
    """Return the maps of two clocks to a common one by the files alone; None if files do not relate them."""
    for pair in _pairs_of(alignment, clocks):
        if pair.known is None:
            return None
        return (pair.known, ClockMap()) if pair.a.key == clocks[0] else (ClockMap(), pair.known)
    host, device = (alignment.maps[index][clock] for index, clock in clocks)
    return None if host.by_user or device.by_user else (host, device)


def _early(
    host: Trace, device: Trace, pairs: Joined, maps: tuple[ClockMap, ClockMap], bound_ns: int | None = None
) -> tuple[Breaches, int]:
    """Return the breaches of work that starts before its launch, and how many of them are beyond the bound."""
    launched = maps[0].apply(host.slices.ts[pairs.calls])
    started = maps[1].apply(device.slices.ts[pairs.work])
    clock = int(device.tracks[int(device.slices.track[pairs.work[0]])].clock)
    late = launched - started - max(device.clocks[clock].resolution_ns, 1)
    return _breaches(late, (device, pairs.work), (host, pairs.calls), bound_ns)


def _returned_early(
    host: Trace,
    device: Trace,
    pairs: Joined,
    waits: tuple[Array, Array],
    maps: tuple[ClockMap, ClockMap],
    bound_ns: int | None = None,
) -> tuple[Breaches, int]:
    """Return the breaches of calls that return before the work that they wait for ends, and how many are beyond."""
    rows, work = waits[0], pairs.work[waits[1]]
    returned = maps[0].apply(host.slices.ts[rows] + host.slices.dur[rows])
    ended = maps[1].apply(device.slices.ts[work] + device.slices.dur[work])
    clock = int(host.tracks[int(host.slices.track[rows[0]])].clock)
    late = ended - returned - 2 * max(host.clocks[clock].resolution_ns, 1)
    return _breaches(late, (host, rows), (device, work), bound_ns)


# -- matched slices of two files ------------------------------------------------------------------------------------


def _inside(alignment: Alignment) -> Iterator[Check]:
    """Yield a check for each two clocks with matched slices that have times: the inner lie inside the outer ones."""
    for pair in alignment.pairs:
        sides, clocks = (pair.a, pair.b), pair.keys
        placed = all(side.clock in alignment.maps[side.index] and not side.domain.synthetic for side in sides)
        if pair.rows is None or not len(pair.rows[0]) or pair.estimate.verdict.unusable or not placed:
            continue
        if pair.b.index not in alignment.placements:
            check = _check_of_inside(alignment, pair, pair.rows)
            if check.verdict is Verdict.OK and not alignment.others.keys().isdisjoint((pair.a.index, pair.b.index)):
                check = _check_of_inside(alignment, pair, _rows_not_apart(alignment, pair))
            yield _with_contradictions(check, alignment, clocks)


def _check_of_inside(alignment: Alignment, pair: PairEstimate, rows: tuple[Array, Array]) -> Check:
    """Return the check of some of the matched slices of a pair."""
    limit = _limit(alignment, pair.keys, pair.estimate.wrong) if pair.taken else Limit()
    way_a, way_b = (alignment.maps[index][clock] for index, clock in pair.keys)
    after, beyond = _outside(pair, rows, (way_a, way_b), limit.bound_ns)
    before = None if pair.known is None else _outside(pair, rows, (pair.known, ClockMap()))[0]
    files = pair.a.name, pair.b.name
    return Check(Rule.INSIDE, files, len(rows[0]), after, before, limit=limit, beyond=beyond)


def _rows_not_apart(alignment: Alignment, pair: PairEstimate) -> tuple[Array, Array]:
    """Return the matched slices without those that are drawn as of other processes: these match by chance."""
    rows_a, rows_b = pair.rows or (np.empty(0, np.int64),) * 2
    kept = np.ones(len(rows_a), bool)
    for side, rows in ((pair.a, rows_a), (pair.b, rows_b)):
        kept &= ~np.isin(rows, alignment.others.get(side.index, []))
    return rows_a[kept], rows_b[kept]


def _outside(
    pair: PairEstimate, rows: tuple[Array, Array], maps: tuple[ClockMap, ClockMap], bound_ns: int | None = None
) -> tuple[Breaches, int]:
    """Return the breaches of inner slices outside their outer ones, and how many of them are beyond the bound."""
    sides = list(zip((pair.a.trace, pair.b.trace), rows, maps, strict=True))
    steps = [max(side.domain.resolution_ns, 1) for side in (pair.a, pair.b)]
    times = [
        (way.apply(trace.slices.ts[matched]), way.apply(trace.slices.ts[matched] + trace.slices.dur[matched]))
        for trace, matched, way in sides
    ]
    outer, inner = (1, 0) if pair.swapped else (0, 1)
    early = times[outer][0] - times[inner][0] - steps[inner]
    late = times[inner][1] - times[outer][1] - 2 * steps[outer]
    return _breaches(np.maximum(early, late), sides[inner][:2], sides[outer][:2], bound_ns)


def _breaches(
    by: I64, effects: tuple[Trace, Array], causes: tuple[Trace, Array], bound_ns: int | None = None
) -> tuple[Breaches, int]:
    """Return the breaches of a rule, and how many of them are beyond the bound."""
    count = int((by > 0).sum())
    if not count:
        return Breaches(0, 0), 0
    worst = int(np.argmax(by))
    effect, cause = (place_of(trace, int(rows[worst])) for trace, rows in (effects, causes))
    beyond = 0 if bound_ns is None else int((by > bound_ns).sum())
    return Breaches(count, int(by[worst]), f"{effect}, {cause}"), beyond

"""What the events say about the clocks of several inputs, and what of that is believed.

Loaded only when it is asked: most merges, and all conversions, know their clocks without the events.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import TYPE_CHECKING

import numpy as np

from traceconv.align.contradictions import (
    WELL_KNOWN_NS,
    Accepted,
    contradiction,
    contradicts,
    doubt,
    early_work_doubt,
    overrule,
    refuse_early_work,
    relate_all,
)
from traceconv.align.duplicate_inputs import same_recording
from traceconv.align.duration_layout import Placement, placement_in
from traceconv.align.duration_placement import placement_of
from traceconv.align.launches import host_and_device
from traceconv.align.select_estimator import PairEstimate, Side, estimate_pair, is_accepted
from traceconv.clocks import ClockDomain, ClockGraph, ClockMap, Provenance, Run, Step, Verdict
from traceconv.errors import AmbiguousAlignment
from traceconv.ir.trace import Trace

if TYPE_CHECKING:
    from traceconv.align import Policy
    from traceconv.align.constraints import Stated, Warnings

#: All pairs of so many inputs are asked for what their events say.
_ALL_PAIRS = 6
_BADNESS = list(Verdict)


def estimated(
    traces: Sequence[Trace],
    domains: list[list[ClockDomain]],
    used: list[dict[int, int]],
    graph: ClockGraph,
    target: ClockDomain,
    policy: Policy,
    placed: set[int],
    offsets: Mapping[int, int],
    said: Stated,
) -> list[PairEstimate]:
    """Relate clocks by the events on them, where files and user do not do it well enough; adds to the graph.

    Args:
        placed: the inputs that the user has placed; nobody contradicts the user.
        offsets: what the user adds to the times of inputs, ns; the graph does not know of it.
        said: what else the user says; its warnings get what is overruled.
    """
    sides = [
        (domain, Side(index, number, trace))
        for index, (trace, own, first) in enumerate(zip(traces, domains, used, strict=True))
        for number, domain in ((number, own[number]) for number in first)
        if not domain.synthetic and index not in placed
    ]
    sides = [one for one in sides if not (one[1].index in said.corrections and _is_related(one, sides, graph))]
    _check_launches(traces, sides, _Relations(graph, target, said.walls))
    made, accepted, overruled = _pairs(sides, graph, target, policy, said)
    left_out = {(pair.a, pair.b) for pair in relate_all(sides, accepted, graph, target, overruled, said.warnings)}
    made = [replace(pair, taken=pair.taken and (pair.a, pair.b) not in left_out) for pair in made]
    known = graph.maps_to(target)
    for domain, side in sides:
        if domain not in known:
            begin = min(
                known[its].at(first) + offsets.get(index, 0)
                for index, (own, clocks) in enumerate(zip(domains, used, strict=True))
                for its, first in ((own[number], first) for number, first in clocks.items())
                if its in known
            )
            warning = _settle(side, domain, target, begin, sides, made, graph, policy, said)
            said.warnings[side.key] += [warning] if warning else []
    return made


def _is_related(one: tuple[ClockDomain, Side], sides: list[tuple[ClockDomain, Side]], graph: ClockGraph) -> bool:
    """Whether a clock is related to that of any other input."""
    known = graph.maps_to(one[0])
    return any(domain in known for domain, side in sides if side.index != one[1].index)


def _correction(side: Side, said: Stated) -> ClockMap:
    return said.corrections.get(side.index, {}).get(side.clock, ClockMap())


def _with_drifts(pair: PairEstimate, said: Stated) -> PairEstimate:
    """The estimate between clocks as the graph has them: their stated drifts are taken out, and leave no other one.

    In the middle of a side the bound over all its events holds, and without a drift it holds everywhere.
    """
    if not {pair.a.index, pair.b.index} & set(said.corrections):
        return pair
    middle, bound = sum(pair.a.span()) // 2, pair.way.bound_ns
    if pair.back_bound_ns is not None and (bound is None or pair.back_bound_ns < bound):
        middle, bound = pair.back.at(sum(pair.b.span()) // 2), pair.back_bound_ns
    at, there = _correction(pair.a, said).at(middle), _correction(pair.b, said).at(pair.way.at(middle))
    way = ClockMap(there - at, bound, pair.way.steps, pair.way.verdict, rests_on=pair.way.rests_on)
    return replace(pair, way=way, back_bound_ns=way.bound_ns)


class _Relations:
    """How the clocks of a graph become times of each other.

    By way of trace time, mostly. Two clocks of another host than that of trace time are related by way of its wall
    clock: how well the clocks of the hosts agree has nothing to do with how these two do.

    Args:
        graph: the clocks.
        target: trace time.
        walls: for each input the wall clock of its host.
    """

    def __init__(self, graph: ClockGraph, target: ClockDomain, walls: Sequence[ClockDomain]) -> None:
        self._graph, self._known, self._walls = graph, graph.maps_to(target), walls
        self._to: dict[ClockDomain, dict[ClockDomain, ClockMap]] = {}

    def __contains__(self, domain: ClockDomain) -> bool:
        """Whether a clock is related to trace time."""
        return domain in self._known

    def between(self, one: tuple[ClockDomain, Side], other: tuple[ClockDomain, Side]) -> ClockMap | None:
        """From the one to the other; None unless both are related to trace time."""
        if one[0] not in self or other[0] not in self:
            return None
        way, there = self._known[one[0]], self._known[other[0]]
        wall, its = (self._walls[side.index] for _, side in (one, other))
        if way.two_hosts and there.two_hosts and wall == its:
            if wall not in self._to:
                self._to[wall] = self._graph.maps_to(wall)
            known = self._to[wall]
            way, there = known.get(one[0], way), known.get(other[0], there)
        return way.then(there.inverse())

    def to_trace_time(self, domain: ClockDomain) -> ClockMap:
        """From a clock that is related to it."""
        return self._known[domain]


def _check_launches(traces: Sequence[Trace], sides: list[tuple[ClockDomain, Side]], known: _Relations) -> None:
    """Hold what files state against the order of calls in one file and the work in another one that they launched."""
    files = host_and_device(traces)
    if files is not None:
        hosts, devices = ([one for one in sides if one[1].index == index and one[0] in known] for index in files)
        for (clock, host), (other, device) in product(hosts, devices):
            way = known.between((clock, host), (other, device))
            if way is not None:
                refuse_early_work(host, device, (way, ClockMap()))


def _pairs(
    sides: list[tuple[ClockDomain, Side]], graph: ClockGraph, target: ClockDomain, policy: Policy, said: Stated
) -> tuple[list[PairEstimate], list[Accepted], set[int]]:
    """What the events say about each two clocks, which of that is believed, and which clocks it overrules.

    With a few inputs all pairs are asked, though fewer would connect them: what lies on a loop can be checked.
    """
    made: list[PairEstimate] = []
    accepted: list[Accepted] = []
    overruled: set[int] = set()
    work = graph.copy()
    declared = _Relations(work.copy(), target, said.walls)
    everything = len({side.index for _, side in sides}) <= _ALL_PAIRS
    done: set[tuple[int, int]] = set()
    progress = True
    while progress:
        progress = False
        known = _Relations(work.copy(), target, said.walls)
        for (i, (domain, side)), (j, (other, partner)) in combinations(enumerate(sides), 2):
            lost = domain not in known and other not in known
            if side.index == partner.index or (i, j) in done or (lost and not everything):
                continue
            done.add((i, j))
            # What events of other pairs say is no reason to be content: it could not be checked.
            there = declared if everything else known
            rough = there.between((domain, side), (other, partner))
            if rough is not None:
                rough = _correction(side, said).then(rough).then(_correction(partner, said).inverse())
            if rough is not None and (rough.two_hosts or _of_one_tool(side, partner)):
                continue
            if _of_other_processes(side, partner, sides, said):
                continue
            exact = rough is not None and rough.uncertainty <= WELL_KNOWN_NS
            pair = None if exact else estimate_pair(side, partner, rough, policy.names)
            believed = pair is not None and is_accepted(pair.estimate, same_run=policy.same_run)
            if believed and pair is not None and pair.way.verdict is Verdict.UNVERIFIED:
                pair = replace(pair, way=replace(pair.way, verdict=Verdict.ASSUMED))  # the user says that it is one run
            against = None
            if rough is not None and (not believed or rough.bound_ns is None):
                against = contradiction(side, partner, rough, policy, pair, said.warnings)
            if rough is not None and against is not None:
                made.append(replace(against, taken=True))
                ways = [there.to_trace_time(one) for one in (domain, other)]
                wrong = overrule(against, rough, ways, said.warnings)
                overruled.add(i if wrong is side else j)
                accepted.append(Accepted(i, j, against))
            elif pair is not None and believed:
                taken = not contradicts(pair, said.instants)
                made.append(replace(pair, taken=taken))
                if taken:
                    accepted.append(Accepted(i, j, _with_drifts(pair, said)))
                    work.relate(domain, other, accepted[-1].pair.way, accepted[-1].pair.back)
                    progress = True
            elif pair is not None:
                made.append(pair)
    return made, accepted, overruled


def _of_one_tool(one: Side, other: Side) -> bool:
    """Whether two recordings cannot have seen the same events, however alike their work is: two ranks of a job.

    A tool that records a process records each event once, so what is alike there are different events, and how far
    apart they are says nothing about the clocks.
    """
    sources = [side.trace.sources[0] for side in (one, other)]
    one_tool = sources[0].format == sources[1].format and not sources[0].marks.any_tool
    return one_tool and not same_recording(one.trace, other.trace)


def _of_other_processes(one: Side, other: Side, sides: Sequence[tuple[ClockDomain, Side]], said: Stated) -> bool:
    """Whether two recordings are of two ranks, or of two hosts of which either has another recording.

    What ranks of a job do is alike, and not the same. Two hosts by name may be one, where one of two tools runs in a
    container: only where nothing else is of their hosts their events may tell.
    """
    ranks = {side.trace.sources[0].rank for side in (one, other)} - {None}
    if len(ranks) > 1:
        return True
    walls = [said.walls[side.index].owner for side in (one, other)]
    if walls[0] == walls[1]:
        return False
    inputs = {side.index: said.walls[side.index].owner for _, side in sides}
    return any(list(inputs.values()).count(wall) > 1 for wall in walls)


def _settle(
    side: Side,
    domain: ClockDomain,
    target: ClockDomain,
    begin: int,
    sides: list[tuple[ClockDomain, Side]],
    made: list[PairEstimate],
    graph: ClockGraph,
    policy: Policy,
    said: Stated,
) -> str:
    """What to do with a clock whose place nothing tells for certain; `begin` is that of all others on trace time.

    Returns:
        What speaks against the place that it gets; "" if it gets none.
    """
    tried = [pair for pair in made if side in (pair.a, pair.b)]
    fitting = [pair for pair in tried if pair.found]
    if policy.on_ambiguous == "best" and fitting:
        best = min(fitting, key=lambda pair: (_BADNESS.index(pair.estimate.verdict), -pair.estimate.matches))
        domain_of = {one: its for its, one in sides}
        graph.relate(domain_of[best.a], domain_of[best.b], replace(_with_drifts(best, said).way, bound_ns=None))
        _take(best, made)
        return _taken_as_best(best)
    if policy.on_ambiguous == "separate":
        graph.relate(domain, target, _beside(begin - side.span()[0]))
        return _not_aligned(tried)
    for pair in tried:
        if pair.estimate.verdict is Verdict.AMBIGUOUS:
            raise _ambiguous(pair, made)
    return ""


def _take(pair: PairEstimate, made: list[PairEstimate]) -> None:
    """Note that two inputs are put together on an estimate."""
    number = next(number for number, one in enumerate(made) if one is pair)
    made[number] = replace(pair, taken=True)


def _beside(offset: int) -> ClockMap:
    """The map of a clock that nothing relates and that stands beside the others."""
    nothing = Step("nothing: beside the others, from their begin on", Provenance.ASSUMED)
    return ClockMap(offset, None, (nothing,), Verdict.SEPARATE)


def _taken_as_best(pair: PairEstimate) -> str:
    return (
        f"it lies where it fits best, though that is {pair.estimate.verdict}, since --on-ambiguous best asks for it: "
        f"{pair.why_refused()}"
    )


def _not_aligned(tried: Sequence[PairEstimate]) -> str:
    why = f" ({tried[0].estimate.reason})" if tried else ""
    return f"not aligned: its times have nothing to do with those of the other files{why}"


def doubts(
    traces: Sequence[Trace],
    domains: list[list[ClockDomain]],
    maps: list[dict[int, ClockMap]],
    offsets: Mapping[int, int],
    policy: Policy,
    pairs: list[PairEstimate],
    said: Stated,
) -> None:
    """Add what the events say against the word of the user to the warnings, and to the pairs what is certain."""
    sides = [
        Side(index, number, trace)
        for index, (trace, own, found) in enumerate(zip(traces, domains, maps, strict=True))
        for number in found
        if not own[number].synthetic and found[number].verdict is not Verdict.SEPARATE
    ]
    doubted: set[tuple[int, int]] = set()
    for side, other in combinations(sides, 2):
        ways = [maps[one.index][one.clock] for one in (side, other)]
        placed = [way.by_user for way in ways]
        if side.index == other.index or not any(placed) or _of_one_tool(side, other):
            continue
        found = doubt(side, other, ways[0].then(ways[1].inverse()), policy.names, pairs, said.instants)
        if found is not None:
            pairs += [] if found.pair in pairs else [found.pair]
            one = other if placed[1] else side
            if one.key not in doubted:
                said.warnings[one.key].append(found.against(one, offsets.get(one.index)))
            doubted.add(one.key)
    files = host_and_device(traces)
    hosts, devices = ([side for side in sides if files and side.index == files[end]] for end in (0, 1))
    for host, device in product(hosts, devices):
        ways_of_two = (maps[host.index][host.clock], maps[device.index][device.clock])
        placed_here = [one for one, way in zip((host, device), ways_of_two, strict=True) if way.by_user]
        text = early_work_doubt(host, device, ways_of_two) if placed_here else ""
        if text and placed_here[-1].key not in doubted:
            said.warnings[placed_here[-1].key].append(text)


def _ambiguous(pair: PairEstimate, made: Sequence[PairEstimate]) -> AmbiguousAlignment:
    """Why two traces are not put together although they fit."""
    names = f"{pair.a.name} and {pair.b.name}"
    files = " ".join(shlex.quote(name) for name in (pair.a.name, pair.b.name))
    settle = (
        f"`traceconv clocks {files}` says what would relate their clocks; or say it: --offset FILE=TIME, --anchor; "
        "--on-ambiguous best takes the best place and says so beside it"
    )
    return AmbiguousAlignment(f"{names} cannot be lined up: {pair.why_refused()}", hint=settle, pairs=made)


def placed_by_durations(
    traces: Sequence[Trace],
    domains: list[list[ClockDomain]],
    used: list[dict[int, int]],
    maps: list[dict[int, ClockMap]],
    policy: Policy,
    pairs: list[PairEstimate],
    warnings: Warnings,
) -> dict[int, Placement]:
    """Put inputs without times where their durations say that they belong; adds to maps, pairs and warnings."""
    hosts = [
        Side(index, number, trace)
        for index, (trace, own, found) in enumerate(zip(traces, domains, maps, strict=True))
        for number in found
        if not own[number].synthetic and found[number].verdict is not Verdict.SEPARATE
    ]
    placements: dict[int, Placement] = {}
    for index, (trace, own, first) in enumerate(zip(traces, domains, used, strict=True)):
        alone = [number for number in first if number not in maps[index] and own[number].run is Run.NONE]
        if not alone or maps[index]:
            continue
        guest = Side(index, alone[0], trace)
        ways = {host: maps[host.index][host.clock] for host in hosts}
        found = placement_of(guest, ways, policy.names, same_run=policy.same_run)
        pairs += found
        best, placement = _best_placement(found)
        accepted = best is not None and is_accepted(best.estimate, same_run=policy.same_run)
        if best is not None and placement is not None and (accepted or policy.on_ambiguous == "best"):
            placements[index] = placement
            _take(best, pairs)
            begin = ways[best.a].at(best.a.span()[0])
            verdict = Verdict.ASSUMED if accepted else best.estimate.verdict
            durations = Step(f"durations of the same work in {best.a.name}", Provenance.ESTIMATED)
            way = ClockMap(begin, None, (durations,), verdict)
            warning = "" if accepted else _taken_as_best(best)
        elif policy.on_ambiguous == "separate" and hosts:
            way = _beside(min(way.at(host.span()[0]) for host, way in ways.items()))
            warning = _not_aligned(found)
        else:
            continue
        for number in alone:
            maps[index][number] = replace(way, offset_ns=way.offset_ns - first[number])
            warnings[index, number] += [warning] if warning else []
    _warn_of_shared_slices(traces, placements, maps, warnings)
    return placements


def _warn_of_shared_slices(
    traces: Sequence[Trace],
    placements: Mapping[int, Placement],
    maps: list[dict[int, ClockMap]],
    warnings: Warnings,
) -> None:
    """Two logs of one tool in the same slices: a tool prints what it does once, so one of them is of another run."""
    for one, other in combinations(placements, 2):
        parents = placements[one].parents(), placements[other].parents()
        shared = len(np.intersect1d(parents[0], parents[1]))
        sources = [traces[index].sources[0] for index in (one, other)]
        alike = placements[one].host == placements[other].host and sources[0].format == sources[1].format
        if not alike or 2 * shared <= min(map(len, parents)) or same_recording(traces[one], traces[other]):
            continue
        for index, beside in ((one, sources[1].name), (other, sources[0].name)):
            words = f"it lies in the same slices as {beside}, so one of the two must be of another run"
            for number in maps[index]:
                warnings[index, number].append(words)


def _best_placement(found: Sequence[PairEstimate]) -> tuple[PairEstimate | None, Placement | None]:
    """The first estimate by which a log can be laid somewhere, and where."""
    for pair in found:
        if pair.rows is not None and len(pair.rows[0]):
            placement = placement_in(pair.a.trace, pair.a.index, pair.b.trace, pair.b.clock, pair.rows)
            if placement is not None:
                return pair, placement
    return None, None

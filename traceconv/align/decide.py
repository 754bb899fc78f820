"""One time axis for all clocks, from what files and user say and from what the events say, or a refusal.

What the events say is checked against each other and against the files. A clock that nothing places for certain is
refused, or placed as the user asks for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from traceconv.align.contradictions import moved_by_zone
from traceconv.align.domains import Key, Warnings
from traceconv.align.estimates import Finding, Findings, without_drifts
from traceconv.align.inputs import ClockInput, Inputs, Policy
from traceconv.align.messages import Message, Text
from traceconv.align.network import Edge, Loop, Solution, solve
from traceconv.align.pairs import PairEstimate
from traceconv.align.placement import Placed, beside, not_aligned, related_ways, taken_as_best
from traceconv.errors import AmbiguousAlignment, InconsistentClocks
from traceconv.model.clocks import ClockDomain, ClockGraph, ClockMap, Verdict


def decide(inputs: Inputs, findings: Findings, policy: Policy) -> Placed:
    """Return where each clock lies on trace time; those that nothing relates are left out.

    Raises:
        AmbiguousAlignment: the events of a clock fit in several places.
        InconsistentClocks: what files, user and events say contradicts itself.
    """
    overruled, warnings = _overruled(findings.found)
    accepted = [
        without_drifts(finding.pair) if finding.known is None else finding.pair
        for finding in findings.found
        if finding.pair.taken
    ]
    related = relate_all(findings.clocks, accepted, inputs.graph, inputs.target, overruled)
    left_out = {pair.keys for pair in related.left_out}
    pairs = [
        replace(finding.pair, taken=finding.pair.taken and finding.pair.keys not in left_out)
        for finding in findings.found
    ]
    settled = _settled(inputs, findings.clocks, pairs, related.graph, policy)
    said = [*findings.warnings, *warnings, *related.warnings, *settled.warnings]
    return replace(settled, warnings=said)


def _overruled(findings: Sequence[Finding]) -> tuple[set[Key], list[tuple[Key, Message]]]:
    """Return the clocks that do not lie where their files put them, and what is to be said of them."""
    overruled: set[Key] = set()
    warnings: list[tuple[Key, Message]] = []
    for finding in findings:
        if finding.known is not None:
            both = zip((finding.pair.a, finding.pair.b), finding.ways, strict=True)
            assumed = [clock for clock, way in both if way.verdict is Verdict.ASSUMED]
            wrong, text = moved_by_zone(finding.pair, finding.known, assumed)
            overruled.add(wrong.key)
            warnings.append((wrong.key, text))
    return overruled, warnings


# -- all relations at once --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Related:
    """The clocks with what their events say.

    Attributes:
        graph: what files and user say, and the estimates.
        left_out: the estimates that contradict all others.
        warnings: what is to be said of clocks.
    """

    graph: ClockGraph
    left_out: Sequence[PairEstimate] = ()
    warnings: Warnings = ()


def relate_all(
    clocks: Sequence[ClockInput],
    accepted: Sequence[PairEstimate],
    graph: ClockGraph,
    target: ClockDomain,
    overruled: set[Key],
) -> Related:
    """Return the graph with what the events say, after a check against each other and against the files.

    Args:
        clocks: the clocks.
        accepted: what their events say.
        graph: what files and user say.
        target: the clock that all shall be put on.
        overruled: clocks whose place was only assumed, and wrongly.

    Raises:
        InconsistentClocks: it contradicts itself, and it is not clear which estimate is wrong.
    """
    graph = graph.copy()
    if not accepted:
        return Related(graph)
    number = {one.key: at for at, one in enumerate(clocks)}
    stated = _stated_edges(clocks, graph, target, {number[key] for key in overruled})
    edges = list(stated)
    edges += [
        Edge(number[pair.a.key], number[pair.b.key], pair.way, pair.a.span(), back_way=pair.back) for pair in accepted
    ]
    solution = solve(range(len(clocks)), edges, len(clocks))
    if solution.verdict is Verdict.INCONSISTENT:
        raise _inconsistent(solution, clocks, target, accepted)
    warnings = [text for row in solution.dropped for text in _dropped(row, edges, clocks, accepted, solution.worst)]
    warnings += [text for loop in solution.strained for text in _strained(loop, clocks, target)]
    kept = [pair for row, pair in enumerate(accepted, len(stated)) if row not in solution.dropped]
    for pair in kept:
        if not solution.loops or number[pair.a.key] not in solution.maps:
            graph.relate(pair.a.domain, pair.b.domain, pair.way, pair.back)
    if solution.loops:
        for at in sorted({number[key] for pair in kept for key in pair.keys} & set(solution.maps)):
            graph.relate(clocks[at].domain, target, solution.maps[at])
    return Related(graph, [accepted[row - len(stated)] for row in solution.dropped if row >= len(stated)], warnings)


def _stated_edges(
    clocks: Sequence[ClockInput], graph: ClockGraph, target: ClockDomain, overruled: set[int]
) -> list[Edge]:
    """Return what files and user say, as few edges as it takes.

    There is one for each clock but the first of those that are related.
    """
    edges: list[Edge] = []
    placed = set(overruled)
    for root, domain in [(len(clocks), target), *((at, one.domain) for at, one in enumerate(clocks))]:
        if root in placed:
            continue
        placed.add(root)
        known = graph.maps_to(domain)
        for at, one in enumerate(clocks):
            if at in placed or one.domain not in known:
                continue
            placed.add(at)
            edges.append(_stated_edge(at, root, known[one.domain], one))
            if known[one.domain].two_hosts:
                # The others of that host are related to this one, by what is known of the clocks of one host.
                there = {its: way for its, way in graph.maps_to(one.domain).items() if not way.two_hosts}
                same = [n for n, other in enumerate(clocks) if n not in placed and other.domain in there]
                edges += [_stated_edge(n, at, there[clocks[n].domain], clocks[n]) for n in same]
                placed.update(same)
    return edges


def _stated_edge(at: int, root: int, way: ClockMap, clock: ClockInput) -> Edge:
    return Edge(at, root, way, clock.span(), way.by_user or way.verdict is Verdict.OK)


def _inconsistent(
    solution: Solution, clocks: Sequence[ClockInput], target: ClockDomain, pairs: Sequence[PairEstimate]
) -> InconsistentClocks:
    """Return which loop does not close, and by how much."""
    loop = solution.worst
    names = _names(loop, clocks, target)
    files = tuple(dict.fromkeys(name for name, at in zip(names, loop.clocks, strict=True) if at < len(clocks)))
    return InconsistentClocks(
        Text.LOOP_DOES_NOT_CLOSE(files=files, path=names, apart=abs(loop.misclosure_ns), most=loop.bound_ns),
        hint=Text.ONE_RELATION_IS_WRONG(file=PurePath(files[-1]).name),
        pairs=pairs,
    )


def _names(loop: Loop, clocks: Sequence[ClockInput], target: ClockDomain) -> tuple[str, ...]:
    """Return what a loop leads through."""
    return tuple(clocks[at].name if at < len(clocks) else target.name for at in loop.clocks)


def _strained(loop: Loop, clocks: Sequence[ClockInput], target: ClockDomain) -> Warnings:
    path = _names(loop, clocks, target)
    text = Text.LOOP_IS_STRAINED(path=path, apart=abs(loop.misclosure_ns), most=loop.bound_ns)
    return [(clocks[at].key, text) for at in sorted({at for at in loop.clocks if at < len(clocks)})]


def _dropped(
    row: int, edges: Sequence[Edge], clocks: Sequence[ClockInput], accepted: Sequence[PairEstimate], worst: Loop
) -> Warnings:
    """Return what is said of a relation that is left out: of an estimate, or of a clock whose place was assumed."""
    apart = abs(worst.misclosure_ns)
    first = len(edges) - len(accepted)
    if row < first:
        return [(clocks[edges[row].a].key, Text.ASSUMED_IS_OFF(method=edges[row].way.method, apart=apart))]
    pair = accepted[row - first]
    text = Text.PAIR_LEFT_OUT(a=pair.a.name, b=pair.b.name, apart=apart)
    return [(key, text) for key in pair.keys]


# -- what nothing places for certain ----------------------------------------------------------------------------------


def _settled(
    inputs: Inputs, clocks: Sequence[ClockInput], pairs: Sequence[PairEstimate], graph: ClockGraph, policy: Policy
) -> Placed:
    """Return where clocks lie, once it is decided what to do with those whose place nothing tells for certain.

    Raises:
        AmbiguousAlignment: one fits in several places, and the user does not say what to do.
    """
    graph, found, warnings = graph.copy(), list(pairs), list[tuple[Key, Message]]()
    known = graph.maps_to(inputs.target)
    for one in clocks:
        if one.domain in known:
            continue
        tried = [pair for pair in found if one.key in pair.keys]
        fitting = [pair for pair in tried if pair.has_offset]
        if policy.on_ambiguous == "best" and fitting:
            best = min(fitting, key=lambda pair: (pair.estimate.verdict.badness, -pair.estimate.matches))
            way = replace(without_drifts(best).way, bound_ns=None)
            graph.relate(best.a.domain, best.b.domain, way)
            found = [replace(pair, taken=pair.taken or pair is best) for pair in found]
            warnings.append((one.key, taken_as_best(best)))
        elif policy.on_ambiguous == "separate":
            start = min(
                known[its.domain].at(its.span()[0]) + (its.offset.offset_ns if its.offset else 0)
                for its in inputs.clocks
                if its.domain in known
            )
            graph.relate(one.domain, inputs.target, beside(start - one.span()[0]))
            warnings.append((one.key, not_aligned(tried)))
        else:
            for pair in tried:
                if pair.estimate.verdict is Verdict.AMBIGUOUS:
                    raise AmbiguousAlignment(
                        Text.CANNOT_BE_LINED_UP(a=pair.a.name, b=pair.b.name, why=pair.why_refused()),
                        hint=Text.SETTLE_AMBIGUITY(files=(pair.a.path, pair.b.path)),
                        pairs=found,
                    )
    return Placed(related_ways(inputs, graph), found, warnings)

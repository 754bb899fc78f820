"""Put all clocks on one time axis, by what files and user state and by the estimates, or refuse to.

The estimates are checked against each other and against the files. A clock whose relation is not certain is refused, or
placed as the user asks for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from traceconv.align.contradictions import moved_by_zone
from traceconv.align.domains import Key, Warnings
from traceconv.align.estimates import Finding, Findings, without_drifts
from traceconv.align.inputs import ClockInput, Inputs, Policy
from traceconv.align.network import Edge, Loop, Solution, solve
from traceconv.align.pairs import PairEstimate
from traceconv.align.placed import Placed, beside, not_aligned, related_maps, taken_as_best
from traceconv.align.wording import listed, quoted
from traceconv.errors import AmbiguousAlignment, InconsistentClocks
from traceconv.model.clocks import ClockDomain, ClockGraph, ClockMap, Verdict
from traceconv.model.numbers import format_time


def decide(inputs: Inputs, findings: Findings, policy: Policy) -> Placed:
    """Return the map of each clock to trace time; clocks that nothing relates have none.

    Raises:
        AmbiguousAlignment: the events of a clock fit at several offsets.
        InconsistentClocks: files, user and events contradict each other.
    """
    overruled, warnings = _overruled(findings.estimates)
    accepted = [
        without_drifts(finding.pair) if finding.known is None else finding.pair
        for finding in findings.estimates
        if finding.pair.taken
    ]
    related = relate_all(findings.clocks, accepted, inputs.graph, inputs.target, overruled)
    left_out = {pair.keys for pair in related.left_out}
    pairs = [
        replace(finding.pair, taken=finding.pair.taken and finding.pair.keys not in left_out)
        for finding in findings.estimates
    ]
    settled = _settled(inputs, findings.clocks, pairs, related.graph, policy)
    return replace(settled, warnings=[*findings.warnings, *warnings, *related.warnings, *settled.warnings])


def _overruled(findings: Sequence[Finding]) -> tuple[set[Key], list[tuple[Key, str]]]:
    """Return the clocks whose local time was read in a wrong zone, as their events show, and a warning for each.

    Raises:
        InconsistentClocks: events contradict files by something else than a zone.
    """
    overruled: set[Key] = set()
    warnings: list[tuple[Key, str]] = []
    for finding in findings:
        if finding.known is not None:
            both = zip((finding.pair.a, finding.pair.b), finding.maps, strict=True)
            assumed = [clock for clock, clock_map in both if clock_map.verdict is Verdict.ASSUMED]
            wrong, text = moved_by_zone(finding.pair, finding.known, assumed)
            overruled.add(wrong.key)
            warnings.append((wrong.key, text))
    return overruled, warnings


# -- all relations at once --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Related:
    """All relations between clocks.

    Attributes:
        graph: the relations that files and user state, and those of the estimates.
        left_out: the estimates that contradict all others and are not in the graph.
        warnings: warnings, each with its clock.
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
    """Return the graph with the accepted estimates, after they were checked against each other and against the files.

    Args:
        clocks: the clocks.
        accepted: the estimates that are used.
        graph: the relations that files and user state.
        target: the clock domain of trace time.
        overruled: clocks whose relation to trace time was assumed, and is wrong.

    Raises:
        InconsistentClocks: relations contradict each other, and it is not clear which one is wrong.
    """
    graph = graph.copy()
    if not accepted:
        return Related(graph)
    number = {one.key: at for at, one in enumerate(clocks)}
    stated = _stated_edges(clocks, graph, target, {number[key] for key in overruled})
    edges = list(stated)
    edges += [
        Edge(number[pair.a.key], number[pair.b.key], pair.clock_map, pair.a.span, back_map=pair.back)
        for pair in accepted
    ]
    solution = solve(edges, len(clocks))
    if solution.verdict is Verdict.INCONSISTENT:
        raise _inconsistent(solution, clocks, target, accepted)
    warnings = [text for row in solution.dropped for text in _dropped(row, edges, clocks, accepted, solution.worst)]
    warnings += [text for loop in solution.strained for text in _strained(loop, clocks, target)]
    kept = [pair for row, pair in enumerate(accepted, len(stated)) if row not in solution.dropped]
    for pair in kept:
        if not solution.loops or number[pair.a.key] not in solution.maps:
            graph.relate(pair.a.domain, pair.b.domain, pair.clock_map, pair.back)
    if solution.loops:
        for at in sorted({number[key] for pair in kept for key in pair.keys} & set(solution.maps)):
            graph.relate(clocks[at].domain, target, solution.maps[at])
    return Related(graph, [accepted[row - len(stated)] for row in solution.dropped if row >= len(stated)], warnings)


def _stated_edges(
    clocks: Sequence[ClockInput], graph: ClockGraph, target: ClockDomain, overruled: set[int]
) -> list[Edge]:
    """Return the fewest edges that express how files and user relate the clocks.

    In each group of related clocks all have an edge to the first one: trace time, if it is in the group. Clocks of
    another host have one to the first clock of that host.

    Args:
        clocks: the clocks; their numbers are those of the edges, and trace time has the next one.
        graph: the relations that files and user state.
        target: the clock domain of trace time.
        overruled: the numbers of clocks that get no edge.
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
                on_host = graph.maps_to(one.domain, of_one_host=True)
                same = [n for n, other in enumerate(clocks) if n not in placed and other.domain in on_host]
                edges += [_stated_edge(n, at, on_host[clocks[n].domain], clocks[n]) for n in same]
                placed.update(same)
    return edges


def _stated_edge(at: int, root: int, clock_map: ClockMap, clock: ClockInput) -> Edge:
    """Return the edge from one clock to another one, by their numbers; it is exact unless it was assumed."""
    return Edge(at, root, clock_map, clock.span, clock_map.by_user or clock_map.verdict is Verdict.OK)


def _inconsistent(
    solution: Solution, clocks: Sequence[ClockInput], target: ClockDomain, pairs: Sequence[PairEstimate]
) -> InconsistentClocks:
    """Return the error for the loop that misses its start by most."""
    loop = solution.worst
    names = _names(loop, clocks, target)
    files = tuple(dict.fromkeys(name for name, at in zip(names, loop.clocks, strict=True) if at < len(clocks)))
    return InconsistentClocks(
        f"the clocks of {listed(files)} contradict each other: a time mapped along "
        f"{listed(names, ' -> ')} comes back {format_time(abs(loop.misclosure_ns))} off, expected "
        f"{format_time(loop.bound_ns)} at most",
        hint=(
            "one of these relations is wrong, but it is not clear which: leave a file out, or place one "
            f"by --offset {PurePath(files[-1]).name}=TIME"
        ),
        pairs=pairs,
    )


def _names(loop: Loop, clocks: Sequence[ClockInput], target: ClockDomain) -> tuple[str, ...]:
    """Return the files that a loop leads through, and the name of trace time if it does, too."""
    return tuple(clocks[at].name if at < len(clocks) else target.name for at in loop.clocks)


def _strained(loop: Loop, clocks: Sequence[ClockInput], target: ClockDomain) -> Warnings:
    """Return a warning for each clock of a loop that misses its start by a little more than its bounds allow."""
    path = _names(loop, clocks, target)
    text = (
        f"a time mapped along {listed(path, ' -> ')} comes back {format_time(abs(loop.misclosure_ns))}"
        f" off, expected {format_time(loop.bound_ns)} at most: one of these relations is less "
        "accurate than stated"
    )
    return [(clocks[at].key, text) for at in sorted({at for at in loop.clocks if at < len(clocks)})]


def _dropped(
    row: int, edges: Sequence[Edge], clocks: Sequence[ClockInput], accepted: Sequence[PairEstimate], worst: Loop
) -> Warnings:
    """Return the warnings for an edge that is left out: the assumed relation of a clock, or an estimate.

    Args:
        row: the number of the edge.
        edges: all edges; those of the estimates come last.
        clocks: the clocks.
        accepted: the estimates that are used.
        worst: the loop that misses its start by most.
    """
    apart = abs(worst.misclosure_ns)
    first = len(edges) - len(accepted)
    if row < first:
        return [
            (
                clocks[edges[row].a].key,
                (
                    f"{edges[row].clock_map.method}: its events show that this is {format_time(apart)} off; the "
                    "events are used"
                ),
            )
        ]
    pair = accepted[row - first]
    text = (
        f"the events of {pair.a.name} and {pair.b.name} were left out: alone they place the two "
        f"{format_time(apart)} from where all others place them"
    )
    return [(key, text) for key in pair.keys]


# -- clocks without a certain relation --------------------------------------------------------------------------------


def _settled(
    inputs: Inputs, clocks: Sequence[ClockInput], pairs: Sequence[PairEstimate], graph: ClockGraph, policy: Policy
) -> Placed:
    """Return the maps of all clocks to trace time, with clocks that lack a certain one treated as the user asks for.

    Args:
        inputs: the clocks, with the relations that files and user state.
        clocks: the clocks that were compared.
        pairs: the estimates.
        graph: all relations that are certain.
        policy: what to do with the other clocks.

    Raises:
        AmbiguousAlignment: a clock fits at several offsets, and the user does not say what to do.
    """
    graph, settled, warnings = graph.copy(), list(pairs), list[tuple[Key, str]]()
    known = graph.maps_to(inputs.target)
    for one in clocks:
        if one.domain in known:
            continue
        tried = [pair for pair in settled if one.key in pair.keys]
        fitting = [pair for pair in tried if pair.has_offset]
        if policy.on_ambiguous == "best" and fitting:
            best = min(fitting, key=lambda pair: (pair.estimate.verdict.badness, -pair.estimate.matches))
            clock_map = replace(without_drifts(best).clock_map, bound_ns=None)
            graph.relate(best.a.domain, best.b.domain, clock_map)
            settled = [replace(pair, taken=pair.taken or pair is best) for pair in settled]
            warnings.append((one.key, taken_as_best(best, one)))
        elif policy.on_ambiguous == "separate":
            start = min(
                known[its.domain].at(its.span[0]) + (its.offset.offset_ns if its.offset else 0)
                for its in inputs.clocks
                if its.domain in known
            )
            graph.relate(one.domain, inputs.target, beside(start - one.span[0]))
            warnings.append((one.key, not_aligned(tried)))
        else:
            for pair in tried:
                if pair.estimate.verdict is Verdict.AMBIGUOUS:
                    raise AmbiguousAlignment(
                        _cannot_be_lined_up(pair, one, [two for two in tried if _partner(two, one).domain in known]),
                        hint=(
                            f"`traceconv clocks {quoted((pair.a.path, pair.b.path))}` lists what would help; if you "
                            "know the offset: --offset FILE=TIME or --anchor; --on-ambiguous best takes the best "
                            "offset and marks it"
                        ),
                        pairs=settled,
                    )
    return Placed(related_maps(inputs, graph), settled, warnings)


def _cannot_be_lined_up(pair: PairEstimate, lost: ClockInput, tried: Sequence[PairEstimate]) -> str:
    """Return why a clock fits at several offsets.

    If it was compared with several files of one tool, such as the cycles of a profiler's schedule, that is the reason:
    each of them is compared by itself.

    Args:
        pair: an ambiguous estimate of the clock.
        lost: the clock.
        tried: all estimates of the clock with clocks that are related to one another.
    """
    why, tool = pair.why_refused(lost), _partner(pair, lost).trace.sources[0].format
    partners = (_partner(other, lost) for other in tried)
    parts = tuple(dict.fromkeys(one.name for one in partners if one.trace.sources[0].format == tool))
    if len(parts) > 1:
        return (
            f"{listed(parts, ' and ')} are on one clock, but each is compared by itself, and has too "
            f"little in common with {lost.name}: {why}"
        )
    return f"{pair.a.name} and {pair.b.name} cannot be aligned: {why}"


def _partner(pair: PairEstimate, one: ClockInput) -> ClockInput:
    """Return the clock with which a clock was compared."""
    return pair.b if pair.a.key == one.key else pair.a

"""Decide where each clock lies, by all that files and user state and that events say, or refuse to (`decide`).

First the relations are checked against each other, as a network with more of them than connect the clocks. A relation
on a loop can be checked: a time that is taken around the loop must come back to itself, as far as the bounds allow. A
relation on no loop (a bridge) cannot be checked.

The maps along the best paths are corrected: offsets and drifts of all clocks are fitted together by weighted least
squares (weight 1 / bound^2). So the maps stay integers, and the corrections, in doubles, are small. If the sum of
squares is too large for the number of loops, one relation after the other is left out on trial. It is dropped if its
absence alone explains the contradiction. Otherwise it would be a guess which one is wrong, and none is dropped.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Sequence
from itertools import takewhile
from pathlib import PurePath

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from traceconv.align.comparison import Finding, Findings, moved_by_zone, without_drifts
from traceconv.align.domains import Key, Warnings
from traceconv.align.estimate import PairEstimate
from traceconv.align.geometry import F64, Flags
from traceconv.align.inputs import ClockInput, Inputs, Placed, Policy, beside, not_aligned, related_maps, taken_as_best
from traceconv.errors import AmbiguousAlignment, InconsistentClocks
from traceconv.io.shown import listed, quoted
from traceconv.model.clocks import DRIFT_UNIT, UNSTATED_BOUND_NS, ClockDomain, ClockGraph, ClockMap, Verdict
from traceconv.model.numbers import format_time

#: By how much the sum of squares, in units of the bounds, must be worse without any other relation for one to be
#: dropped: as much as one relation adds that is off by five of its bounds.
LEAST_LEAD = 25.0
#: The standard normal value that one right network in a thousand exceeds.
_RARE = 3.09
#: The least bound, ns: weights are 1 / bound^2, and times are integers.
_LEAST_BOUND = 1.0
#: The error of a map by rounding to integers, ns.
_ROUNDING_NS = 2
#: The bound of a relation whose bound is not known, ns: it has so little weight that it checks nothing.
_WEIGHTLESS_NS = 1e12


class Edge(Struct, frozen=True):
    """A relation between two clocks.

    Attributes:
        a, b: the numbers of the clocks.
        span: the first and the last time of clock a that the relation is known from, ns.
        exact: whether files or the user state it; such a relation is never dropped.
        back_map: the map from b to a, if it has another bound.
    """

    a: int
    b: int
    clock_map: ClockMap
    span: tuple[int, int]
    exact: bool = False
    back_map: ClockMap | None = None

    @property
    def back(self) -> ClockMap:
        """The map from b to a."""
        return self.back_map or self.clock_map.inverse()

    @property
    def bound(self) -> float:
        """The unit of its residuals, ns: its bound, or a value for a bound that is not known."""
        if self.clock_map.bound_ns is None:
            return UNSTATED_BOUND_NS if self.exact and self.clock_map.verdict is Verdict.OK else _WEIGHTLESS_NS
        return max(float(self.clock_map.bound_ns), _LEAST_BOUND)


class Loop(Struct, frozen=True):
    """A closed path through the network.

    Attributes:
        edges: the numbers of its edges; the last one closes it.
        clocks: the numbers of its clocks, with the first one again at the end.
        misclosure_ns: by how much a time that is taken around it misses itself, in the middle of the last edge's span.
        bound_ns: the sum of the bounds, ns: the greatest misclosure that they allow.
    """

    edges: tuple[int, ...]
    clocks: tuple[int, ...]
    misclosure_ns: int
    bound_ns: int
    bounded: bool = True


class Solution(Struct, frozen=True):
    """The solution of a network.

    Attributes:
        verdict: OK, or INCONSISTENT: then the maps are those along the best paths, and are not to be used.
        dropped: the numbers of the edges that contradict all others.
        loops: one for each edge beyond those that connect the clocks; also with dropped edges.
        chi2: the sum of squares that remains, in units of the bounds, without the dropped edges.
        limit: the greatest sum of squares of a consistent network.
    """

    maps: dict[int, ClockMap]
    verdict: Verdict
    dropped: tuple[int, ...] = ()
    loops: tuple[Loop, ...] = ()
    chi2: float = 0.0
    limit: float = 0.0

    @property
    def strained(self) -> list[Loop]:
        """The loops without dropped edges whose misclosure exceeds their bounds, though the sum of squares does not.

        One of their relations is less exact than its bound says.
        """
        return [
            loop
            for loop in self.loops
            if loop.bounded
            and abs(loop.misclosure_ns) > loop.bound_ns + _ROUNDING_NS * len(loop.edges)
            and not set(loop.edges) & set(self.dropped)
        ]

    @property
    def worst(self) -> Loop:
        """The loop with the greatest misclosure, as a multiple of the greatest that its bounds allow."""
        return max(self.loops, key=lambda loop: abs(loop.misclosure_ns) / max(loop.bound_ns, 1))


def solve(edges: Sequence[Edge], reference: int) -> Solution:
    """Return the maps of all clocks to a reference, after a check of their relations.

    Args:
        edges: the relations between the clocks. Those that are not connected to the reference are ignored.
    """
    net = _Network(edges, reference)
    tree = net.tree(range(len(edges)))
    rows = [row for row, edge in enumerate(edges) if edge.a in tree and edge.b in tree]
    if len(rows) < len(tree):  # without a loop nothing can be checked
        return Solution({node: reached.clock_map for node, reached in tree.items()}, Verdict.OK)
    fit = net.fit(rows)
    loops = net.loops(rows)
    if fit.chi2 <= fit.limit:
        return Solution(net.placed(rows, fit), Verdict.OK, (), loops, fit.chi2, fit.limit)
    on_loops = {row for loop in loops for row in loop.edges}
    culprit = net.single_explanation(rows, on_loops)
    if culprit is None:
        maps = {node: reached.clock_map for node, reached in net.tree(rows).items()}
        return Solution(maps, Verdict.INCONSISTENT, (), loops, fit.chi2, fit.limit)
    rest = [row for row in rows if row != culprit]
    fit = net.fit(rest)
    return Solution(net.placed(rest, fit), Verdict.OK, (culprit,), loops, fit.chi2, fit.limit)


class _Reached(Struct, frozen=True):
    """The best path from the reference to a clock: the map of the clock to the reference, the edges and the clocks."""

    clock_map: ClockMap
    path: tuple[int, ...]
    clocks: tuple[int, ...]


class _Fit(Struct, frozen=True):
    """The corrections of the maps along the best paths by least squares."""

    chi2: float
    limit: float
    offset: dict[int, float] = {}
    drift: dict[int, float] = {}
    spread: dict[int, float] = {}
    epoch: int = 0


class _Network(Struct, frozen=True):
    """The edges, by number, and the number of the reference."""

    edges: Sequence[Edge]
    reference: int

    def tree(self, rows: Iterable[int]) -> dict[int, _Reached]:
        """Return for each clock the path to the reference with the smallest bound, along some edges (Dijkstra)."""
        neighbours: dict[int, list[tuple[int, int]]] = {}
        for row in rows:
            edge = self.edges[row]
            neighbours.setdefault(edge.a, []).append((edge.b, row))
            neighbours.setdefault(edge.b, []).append((edge.a, row))
        found: dict[int, _Reached] = {}
        queue = [(0, 0, self.reference, _Reached(ClockMap(), (), (self.reference,)))]
        pushed = 0
        while queue:
            _, _, node, reached = heapq.heappop(queue)
            if node in found:
                continue
            found[node] = reached
            for other, row in neighbours.get(node, ()):
                if other not in found:
                    edge = self.edges[row]
                    clock_map = (edge.clock_map if edge.a == other else edge.back).then(reached.clock_map)
                    pushed += 1
                    step = _Reached(clock_map, (*reached.path, row), (*reached.clocks, other))
                    heapq.heappush(queue, (clock_map.uncertainty, pushed, other, step))
        return found

    def _residuals(self, rows: Sequence[int], tree: dict[int, _Reached]) -> tuple[F64, F64, int]:
        """Return the residuals of some edges at both ends (by clock b less by a, ns), and the times of these."""
        edges = [self.edges[row] for row in rows]
        by_a = [[tree[edge.a].clock_map.at(ts) for ts in edge.span] for edge in edges]
        by_b = [[tree[edge.b].clock_map.at(edge.clock_map.at(ts)) for ts in edge.span] for edge in edges]
        epoch = (min(map(min, by_a)) + max(map(max, by_a))) // 2
        apart = [[b - a for a, b in zip(*ends, strict=True)] for ends in zip(by_a, by_b, strict=True)]
        return np.array(apart, np.float64), np.array([[ts - epoch for ts in ends] for ends in by_a], np.float64), epoch

    def fit(self, rows: Sequence[int]) -> _Fit:
        """Return the corrections of all clocks but the reference, by least squares over some edges."""
        tree = self.tree(rows)
        unknown = {node: i for i, node in enumerate(sorted(set(tree) - {self.reference}))}
        limit = _limit(len(rows), len(rows) - len(unknown))
        if len(rows) == len(unknown):
            return _Fit(0.0, limit)
        apart, time, epoch = self._residuals(rows, tree)
        reach = max(float(np.abs(time).max()), 1.0)
        bound = np.array([self.edges[row].bound for row in rows])
        weight = np.repeat(1 / (np.sqrt(2) * bound), 2)  # each edge counts once, half at either end
        matrix = np.zeros((2 * len(rows), 2 * len(unknown)))
        for i, row in enumerate(rows):
            for node, sign in ((self.edges[row].b, 1.0), (self.edges[row].a, -1.0)):
                if node in unknown and self.edges[row].a != self.edges[row].b:
                    matrix[2 * i : 2 * i + 2, 2 * unknown[node]] += sign
                    matrix[2 * i : 2 * i + 2, 2 * unknown[node] + 1] += sign * time[i] / reach
        scaled, goal = matrix * weight[:, None], -apart.ravel() * weight
        solved = _least_squares(scaled, goal, np.repeat(bound >= _WEIGHTLESS_NS, 2))
        spread = np.linalg.norm(np.linalg.pinv(scaled, rcond=1e-14), axis=1)
        return _Fit(
            float(np.sum((scaled @ solved - goal) ** 2)),
            limit,
            {node: float(solved[2 * i]) for node, i in unknown.items()},
            {node: float(solved[2 * i + 1]) / reach for node, i in unknown.items()},
            {node: float(spread[2 * i]) for node, i in unknown.items()},
            epoch,
        )

    def single_explanation(self, rows: Sequence[int], on_loops: set[int]) -> int | None:
        """Return the only edge without which all others agree; None if there are several, none, or it is exact."""
        tried = ((self.fit([other for other in rows if other != row]).chi2, row) for row in rows if row in on_loops)
        (best, culprit), *others = sorted(tried)
        limit = _limit(len(rows) - 1, len(rows) - len(self.tree(rows)))
        alone = not others or others[0][0] - best > LEAST_LEAD
        return culprit if alone and best <= limit and not self.edges[culprit].exact else None

    def loops(self, rows: Sequence[int]) -> tuple[Loop, ...]:
        """Return a loop for each edge that is on no best path: the edge, and the best paths to both of its clocks."""
        tree = self.tree(rows)
        on_paths = {row for reached in tree.values() for row in reached.path}
        return tuple(self._loop(row, tree) for row in rows if row not in on_paths)

    def _loop(self, row: int, tree: dict[int, _Reached]) -> Loop:
        """Return the loop that an edge closes: from clock a to b along the best paths, and back by the edge."""
        edge = self.edges[row]
        first, second = tree[edge.a], tree[edge.b]
        paths = zip(first.path, second.path, strict=False)
        shared = sum(1 for _ in takewhile(lambda rows: rows[0] == rows[1], paths))
        edges = (*reversed(first.path[shared:]), *second.path[shared:], row)
        clocks = (*reversed(first.clocks[shared:]), *second.clocks[shared + 1 :], edge.a)
        middle = (edge.span[0] + edge.span[1]) // 2
        apart = second.clock_map.at(edge.clock_map.at(middle)) - first.clock_map.at(middle)
        sides = [self.edges[number] for number in edges]
        known = [side.clock_map.bound_ns for side in sides]
        bound = sum(round(side.bound) if stated is None else stated for side, stated in zip(sides, known, strict=True))
        return Loop(edges, clocks, apart, bound, None not in known)

    def placed(self, rows: Sequence[int], fit: _Fit) -> dict[int, ClockMap]:
        """Return the maps along the best paths, corrected."""
        tree = self.tree(rows)
        maps = {node: reached.clock_map for node, reached in tree.items()}
        moved = [node for node in tree if fit.offset.get(node)]
        return maps | {node: self._corrected(node, maps[node], rows, tree, fit) for node in moved}

    def _corrected(
        self, node: int, clock_map: ClockMap, rows: Sequence[int], tree: dict[int, _Reached], fit: _Fit
    ) -> ClockMap:
        """Return the corrected map of a clock, with a bound that follows from all relations."""
        offset, drift = fit.offset[node], fit.drift[node]
        allowed = self._allowed(node, rows, tree)
        if allowed is not None:
            offset = min(max(offset, allowed[0]), allowed[1])
        moved = replace(
            clock_map.then(ClockMap(round(offset), drift=round(drift / DRIFT_UNIT), at_ns=fit.epoch)),
            bound_ns=clock_map.bound_ns,
        )
        if clock_map.bound_ns is None:
            return moved
        at = clock_map.inverse().at(fit.epoch)
        edges = [self.edges[row] for row in rows]
        times = [ts for edge in edges if node == edge.a for ts in edge.span]
        times += [edge.clock_map.at(ts) for edge in edges if node == edge.b != edge.a for ts in edge.span]
        turned = max((abs(drift * (ts - at)) for ts in times), default=0.0)
        bound = clock_map.bound_ns + abs(offset)
        if allowed is not None:
            bound = min(bound, max(allowed[1] - offset, offset - allowed[0], fit.spread[node]))
        return replace(moved, bound_ns=int(np.ceil(bound + turned)) + 1)

    def _allowed(self, node: int, rows: Sequence[int], tree: dict[int, _Reached]) -> tuple[float, float] | None:
        """Return the range of the correction of a clock that all bounds allow, ns; None if they contradict each other.

        Each relation limits the difference of the corrections of its two clocks, by its residual and bound. The limits
        between the reference and the clock are the shortest paths through these differences.
        """
        apart, _, _ = self._residuals(rows, tree)
        steps: list[tuple[int, int, float]] = []
        for i, row in enumerate(rows):
            edge = self.edges[row]
            middle, slack = -float(apart[i].mean()), edge.bound + float(np.ptp(apart[i])) / 2
            steps += [(edge.a, edge.b, middle + slack), (edge.b, edge.a, slack - middle)]
        there, back = _shortest(self.reference, steps, len(tree)), _shortest(node, steps, len(tree))
        return None if there is None or back is None else (-back[self.reference], there[node])


def _least_squares(matrix: F64, goal: F64, last: Flags) -> F64:
    """Return the least squares solution in two steps: some rows come last, and decide only what the others leave open.

    These have so little weight that in one step rounding errors of the others would make offsets of milliseconds.
    """
    first = ~last
    solved: F64 = np.linalg.lstsq(matrix[first], goal[first], rcond=None)[0]
    if not last.any():
        return solved
    _, sizes, directions = np.linalg.svd(matrix[first])
    least = max(matrix.shape) * np.finfo(np.float64).eps * np.max(sizes, initial=0.0)
    left_open = directions[np.count_nonzero(sizes > least) :].T
    misses = goal[last] - matrix[last] @ solved
    moved: F64 = solved + left_open @ np.linalg.lstsq(matrix[last] @ left_open, misses, rcond=None)[0]
    return moved


def _shortest(start: int, steps: Sequence[tuple[int, int, float]], nodes: int) -> dict[int, float] | None:
    """Return the lengths of the shortest paths (Bellman-Ford); None if there is a loop of negative length."""
    reached = {start: 0.0}
    for _ in range(nodes + 1):
        changed = False
        for a, b, length in steps:
            if a in reached and reached[a] + length < reached.get(b, np.inf):
                reached[b], changed = reached[a] + length, True
        if not changed:
            return reached
    return None


def _limit(edges: int, loops: int) -> float:
    """Return the greatest sum of squares of a consistent network.

    With bounds that hold for certain it is the number of edges. But most bounds are probable ones. So the quantile of
    chi^2 is added that one right network in a thousand exceeds (by Wilson and Hilferty).
    """
    if loops <= 0:
        return float(edges)
    part = 2 / (9 * loops)
    return float(edges + loops * (1 - part + _RARE * np.sqrt(part)) ** 3)


# -- Put all clocks on one time axis, by what files and user state and by the estimates, or refuse to ----------------


def decide(inputs: Inputs, findings: Findings, policy: Policy) -> Placed:
    """Return the map of each clock to trace time; clocks that nothing relates have none.

    Raises:
        AmbiguousAlignment: the events of a clock fit at several offsets.
        InconsistentClocks: files, user and events contradict each other.
    """
    overruled, warnings = _overruled(findings.estimates)
    accepted = [
        without_drifts(finding.pair) if finding.contradicted is None else finding.pair
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
    """Return the clocks whose local time was read in a wrong zone, as their events show, and a warning for each."""
    overruled: set[Key] = set()
    warnings: list[tuple[Key, str]] = []
    for finding in findings:
        if (against := finding.contradicted) is not None:
            sides = zip((finding.pair.a, finding.pair.b), against.maps, strict=True)
            assumed = [clock for clock, clock_map in sides if clock_map.verdict is Verdict.ASSUMED]
            wrong, text = moved_by_zone(finding.pair, against.known, assumed)
            overruled.add(wrong.key)
            warnings.append((wrong.key, text))
    return overruled, warnings


class Related(Struct, frozen=True):
    """All relations between clocks.

    Attributes:
        graph: the relations that files and user state, and those of the estimates.
        left_out: the estimates that contradict all others and are not in the graph.
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
        overruled: clocks whose relation to trace time was assumed, and is wrong.

    Raises:
        InconsistentClocks: relations contradict each other, and it is not clear which one is wrong.
    """
    graph = graph.copy()
    if not accepted:
        return Related(graph)
    number = {clock.key: at for at, clock in enumerate(clocks)}
    stated = _stated_edges(clocks, graph, target, {number[key] for key in overruled})
    estimated = [
        Edge(number[pair.a.key], number[pair.b.key], pair.clock_map, pair.a.span, back_map=pair.back)
        for pair in accepted
    ]
    edges = [*stated, *estimated]
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
    """
    edges: list[Edge] = []
    placed = set(overruled)
    for root, domain in [(len(clocks), target), *((at, clock.domain) for at, clock in enumerate(clocks))]:
        if root in placed:
            continue
        placed.add(root)
        known = graph.maps_to(domain)
        for at, clock in enumerate(clocks):
            if at in placed or clock.domain not in known:
                continue
            placed.add(at)
            edges.append(_stated_edge(at, root, known[clock.domain], clock))
            if known[clock.domain].two_hosts:
                on_host = graph.maps_to(clock.domain, of_one_host=True)
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
        f"the clocks of {listed(files)} contradict each other: {_comes_back(loop, names)}",
        hint="one of these relations is wrong, but it is not clear which: leave a file out, or place one by --offset "
        f"{PurePath(files[-1]).name}=TIME",
        pairs=pairs,
    )


def _comes_back(loop: Loop, names: Sequence[str]) -> str:
    """Return the words for how far a loop, which leads through these clocks, misses its start."""
    off, most = format_time(abs(loop.misclosure_ns)), format_time(loop.bound_ns)
    return f"a time mapped along {listed(names, ' -> ')} comes back {off} off, expected {most} at most"


def _names(loop: Loop, clocks: Sequence[ClockInput], target: ClockDomain) -> tuple[str, ...]:
    """Return the files that a loop leads through, and the name of trace time if it does, too."""
    return tuple(clocks[at].name if at < len(clocks) else target.name for at in loop.clocks)


def _strained(loop: Loop, clocks: Sequence[ClockInput], target: ClockDomain) -> Warnings:
    """Return a warning for each clock of a loop that misses its start by a little more than its bounds allow."""
    missed = _comes_back(loop, _names(loop, clocks, target))
    text = f"{missed}: one of these relations is less accurate than stated"
    return [(clocks[at].key, text) for at in sorted({at for at in loop.clocks if at < len(clocks)})]


def _dropped(
    row: int, edges: Sequence[Edge], clocks: Sequence[ClockInput], accepted: Sequence[PairEstimate], worst: Loop
) -> Warnings:
    """Return the warnings for an edge that is left out: the assumed relation of a clock, or an estimate."""
    apart, first = format_time(abs(worst.misclosure_ns)), len(edges) - len(accepted)
    if row < first:
        edge = edges[row]
        text = f"{edge.clock_map.method}: its events show that this is {apart} off; the events are used"
        return [(clocks[edge.a].key, text)]
    pair = accepted[row - first]
    text = (
        f"the events of {pair.a.name} and {pair.b.name} were left out: alone they place the two "
        f"{apart} from where all others place them"
    )
    return [(key, text) for key in pair.keys]


def _settled(
    inputs: Inputs, clocks: Sequence[ClockInput], pairs: Sequence[PairEstimate], graph: ClockGraph, policy: Policy
) -> Placed:
    """Return the maps of all clocks to trace time, with clocks that lack a certain one treated as the user asks for.

    Clocks that are related to one another stay so: they are placed together.
    """
    graph, settled, warnings = graph.copy(), list(pairs), list[tuple[Key, str]]()
    known = graph.maps_to(inputs.target)
    reached = set(known)
    for lost in clocks:
        if lost.domain in reached:
            continue
        group = graph.maps_to(lost.domain)
        tried = _leading_out(settled, lost, group)
        fitting = [pair for pair in tried if pair.has_offset]
        if policy.on_ambiguous == "best" and fitting:
            best = min(fitting, key=lambda pair: (pair.estimate.verdict.badness, -pair.estimate.matches))
            clock_map = replace(without_drifts(best).clock_map, bound_ns=None)
            graph.relate(best.a.domain, best.b.domain, clock_map)
            settled = [replace(pair, taken=pair.taken or pair is best) for pair in settled]
            warnings.append((lost.key, taken_as_best(best, lost)))
            if _partner(best, lost).domain in reached:
                reached |= set(group)
        elif policy.on_ambiguous == "separate":
            start = min(
                known[placed.domain].at(placed.span[0]) + (placed.offset.offset_ns if placed.offset else 0)
                for placed in inputs.clocks
                if placed.domain in known
            )
            together = [clock for clock in clocks if clock.domain in group]
            first = min(group[clock.domain].at(clock.span[0]) for clock in together)
            graph.relate(lost.domain, inputs.target, beside(start - first))
            warnings += [(clock.key, not_aligned(_leading_out(settled, clock, group))) for clock in together]
            reached |= set(group)
        else:
            for pair in tried:
                if pair.estimate.verdict is Verdict.AMBIGUOUS:
                    raise AmbiguousAlignment(
                        _cannot_be_lined_up(
                            pair, lost, [two for two in tried if _partner(two, lost).domain in reached]
                        ),
                        hint=(
                            f"`traceconv clocks {quoted((pair.a.path, pair.b.path))}` lists what would help; if you "
                            "know the offset: --offset FILE=TIME or --anchor; --on-ambiguous best takes the best "
                            "offset and marks it"
                        ),
                        pairs=settled,
                    )
    return Placed(related_maps(inputs, graph), settled, warnings)


def _leading_out(
    pairs: Sequence[PairEstimate], clock: ClockInput, group: Collection[ClockDomain]
) -> list[PairEstimate]:
    """Return the estimates of a clock with those that are not related to it."""
    return [pair for pair in pairs if clock.key in pair.keys and _partner(pair, clock).domain not in group]


def _cannot_be_lined_up(pair: PairEstimate, lost: ClockInput, tried: Sequence[PairEstimate]) -> str:
    """Return why a clock fits at several offsets.

    If it was compared with several files of one tool, such as the cycles of a profiler's schedule, that is the reason:
    each of them is compared by itself.
    """
    why, tool = pair.why_refused(lost), _partner(pair, lost).trace.sources[0].format
    partners = (_partner(other, lost) for other in tried)
    parts = tuple(dict.fromkeys(partner.name for partner in partners if partner.trace.sources[0].format == tool))
    if len(parts) > 1:
        return (
            f"{listed(parts, ' and ')} are on one clock, but each is compared by itself, and has too "
            f"little in common with {lost.name}: {why}"
        )
    return f"{pair.a.name} and {pair.b.name} cannot be aligned: {why}"


def _partner(pair: PairEstimate, lost: ClockInput) -> ClockInput:
    """Return the clock with which a clock was compared."""
    return pair.b if pair.a.key == lost.key else pair.a

"""Several clocks and more relations than it takes to connect them: do they agree, and where does each clock stand?

Relations between clocks form a network. One that lies on a loop can be checked against the others: going around must
lead back to where it began, as far as the bounds allow. One that lies on no loop (a bridge) cannot be checked.

Offsets and drifts of all clocks are fitted together by weighted least squares (weight 1 / bound^2) to a correction of
the maps along the best paths. The maps stay integers, and what is fitted in doubles is small. If the sum of squares is
too large for the loops there are, one relation is left out at a time: it is dropped if it alone explains the
contradiction. Otherwise nothing is, since it would be a guess which of them is wrong.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

import numpy as np

from traceconv.align.geometry import F64
from traceconv.model.clocks import DRIFT_UNIT, UNSTATED_BOUND_NS, ClockMap, Verdict

#: The next best explanation must be worse by this sum of squares, in units of the bounds, for a relation to be dropped:
#: by as much as one relation that is off by five of its bounds.
LEAST_LEAD = 25.0
#: Of a standard normal: one right network in a thousand is beyond it.
_RARE = 3.09
#: No bound counts as less, ns: weights are 1 / bound^2, and times are integers.
_LEAST_BOUND = 1.0
#: What a map is off by integers alone, ns.
_ROUNDING_NS = 2
#: What a relation is measured by whose bound nobody knows, ns: with so little weight it checks nothing.
_WEIGHTLESS_NS = 1e12


@dataclass(frozen=True, slots=True)
class Edge:
    """A relation between two clocks.

    Attributes:
        a, b: the clocks.
        way: how times of a become times of b, with its bound.
        span: the first and last time of clock a that it is known from, ns.
        exact: whether files say so; such a relation is never dropped.
        back_way: the way back, where its bound is another one.
    """

    a: int
    b: int
    way: ClockMap
    span: tuple[int, int]
    exact: bool = False
    back_way: ClockMap | None = None

    @property
    def back(self) -> ClockMap:
        """How times of b become times of a."""
        return self.back_way or self.way.inverse()

    @property
    def bound(self) -> float:
        """What its residuals are measured by, ns."""
        if self.way.bound_ns is None:
            return UNSTATED_BOUND_NS if self.exact and self.way.verdict is Verdict.OK else _WEIGHTLESS_NS
        return max(float(self.way.bound_ns), _LEAST_BOUND)


@dataclass(frozen=True, slots=True)
class Loop:
    """A way around.

    Attributes:
        edges: the numbers of its edges; the last one closes it.
        clocks: what it leads through, the start again at the end.
        misclosure_ns: how far from the start it ends, in the middle of where the last edge is known from.
        bound_ns: the sum of the bounds: how far it may be.
        bounded: whether all bounds are known.
    """

    edges: tuple[int, ...]
    clocks: tuple[int, ...]
    misclosure_ns: int
    bound_ns: int
    bounded: bool = True


@dataclass(frozen=True, slots=True)
class Solution:
    """What a network of relations says.

    Attributes:
        maps: for each clock that is connected to the reference, its map to it.
        verdict: OK, or INCONSISTENT: then the maps are those along the best paths, and worth nothing.
        dropped: the numbers of the edges that contradict all others.
        loops: one for each edge more than it takes to connect the clocks; with the edges that were dropped.
        chi2: the sum of squares that is left, in units of the bounds, without the edges that were dropped.
        limit: how large it may be.
    """

    maps: dict[int, ClockMap]
    verdict: Verdict
    dropped: tuple[int, ...] = ()
    loops: tuple[Loop, ...] = ()
    chi2: float = 0.0
    limit: float = 0.0

    @property
    def strained(self) -> list[Loop]:
        """The loops without dropped edges that miss their start by more than their bounds allow, if by little.

        One of the relations is less exact than it says; the sum of squares leaves room for that.
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
        """The loop that misses its start by most, in units of what it may."""
        return max(self.loops, key=lambda loop: abs(loop.misclosure_ns) / max(loop.bound_ns, 1))


def solve(nodes: Iterable[int], edges: Sequence[Edge], reference: int) -> Solution:
    """Check a network of clocks and place all of them.

    Args:
        nodes: the clocks.
        edges: their relations; what is not connected to the reference is left alone.
        reference: the clock that the maps lead to.
    """
    net = _Network(edges, reference)
    tree = net.tree(range(len(edges)))
    rows = [row for row, edge in enumerate(edges) if edge.a in tree and edge.b in tree]
    if len(rows) < len(tree):  # no way around, so that nothing checks them
        return Solution({node: place.way for node, place in tree.items()}, Verdict.OK)
    fit = net.fit(rows)
    loops = net.loops(rows)
    if fit.chi2 <= fit.limit:
        return Solution(net.placed(rows, fit), Verdict.OK, (), loops, fit.chi2, fit.limit)
    on_loops = {row for loop in loops for row in loop.edges}
    culprit = net.single_explanation(rows, on_loops)
    if culprit is None:
        maps = {node: place.way for node, place in net.tree(rows).items()}
        return Solution(maps, Verdict.INCONSISTENT, (), loops, fit.chi2, fit.limit)
    rest = [row for row in rows if row != culprit]
    fit = net.fit(rest)
    return Solution(net.placed(rest, fit), Verdict.OK, (culprit,), loops, fit.chi2, fit.limit)


@dataclass(frozen=True, slots=True)
class _Reached:
    """How a clock is reached from the reference: its map there, and the edges on the way."""

    way: ClockMap
    path: tuple[int, ...]
    clocks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Fit:
    """What least squares add to the maps of a tree: for each clock an offset, a drift, and the spread of the offset."""

    chi2: float
    limit: float
    offset: dict[int, float] = field(default_factory=dict)
    drift: dict[int, float] = field(default_factory=dict)
    spread: dict[int, float] = field(default_factory=dict)
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class _Network:
    edges: Sequence[Edge]
    reference: int

    def tree(self, rows: Iterable[int]) -> dict[int, _Reached]:
        """Return for each clock the path to the reference with the smallest bound."""
        beside: dict[int, list[tuple[int, int]]] = {}
        for row in rows:
            edge = self.edges[row]
            beside.setdefault(edge.a, []).append((edge.b, row))
            beside.setdefault(edge.b, []).append((edge.a, row))
        found: dict[int, _Reached] = {}
        queue = [(0, 0, self.reference, _Reached(ClockMap(), (), (self.reference,)))]
        pushed = 0
        while queue:
            _, _, node, place = heapq.heappop(queue)
            if node in found:
                continue
            found[node] = place
            for other, row in beside.get(node, ()):
                if other not in found:
                    edge = self.edges[row]
                    there = (edge.way if edge.a == other else edge.back).then(place.way)
                    pushed += 1
                    step = _Reached(there, (*place.path, row), (*place.clocks, other))
                    heapq.heappush(queue, (there.uncertainty, pushed, other, step))
        return found

    def _residuals(self, rows: Sequence[int], tree: dict[int, _Reached]) -> tuple[F64, F64, int]:
        """Return for each edge and both ends of its span: by how much its two clocks miss each other, and the time, ns.

        Times count from one of the reference in the middle of all evidence, which comes third.
        """
        edges = [self.edges[row] for row in rows]
        here = [[tree[edge.a].way.at(ts) for ts in edge.span] for edge in edges]
        there = [[tree[edge.b].way.at(edge.way.at(ts)) for ts in edge.span] for edge in edges]
        epoch = (min(map(min, here)) + max(map(max, here))) // 2
        apart = [[b - a for a, b in zip(*both, strict=True)] for both in zip(here, there, strict=True)]
        return np.array(apart, np.float64), np.array([[ts - epoch for ts in both] for both in here], np.float64), epoch

    def fit(self, rows: Sequence[int]) -> _Fit:
        """Fit all clocks but the reference by least squares."""
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
        solved = np.linalg.lstsq(scaled, goal, rcond=None)[0]
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
        """Return the edge without which everything agrees, if there is only one such edge and it may be dropped."""
        tried = sorted(
            (self.fit([other for other in rows if other != row]).chi2, row) for row in rows if row in on_loops
        )
        (best, culprit), *others = tried
        limit = _limit(len(rows) - 1, len(rows) - len(self.tree(rows)))
        alone = not others or others[0][0] - best > LEAST_LEAD
        return culprit if alone and best <= limit and not self.edges[culprit].exact else None

    def loops(self, rows: Sequence[int]) -> tuple[Loop, ...]:
        """Return a loop for each edge that no best path takes."""
        tree = self.tree(rows)
        on_paths = {row for place in tree.values() for row in place.path}
        return tuple(self._loop(row, tree) for row in rows if row not in on_paths)

    def _loop(self, row: int, tree: dict[int, _Reached]) -> Loop:
        """Return the way from one clock of an edge to the other one along the best paths, and back by the edge."""
        edge = self.edges[row]
        one, other = tree[edge.a], tree[edge.b]
        both = zip(one.path, other.path, strict=False)
        shared = sum(1 for _ in takewhile(lambda rows: rows[0] == rows[1], both))
        edges = (*reversed(one.path[shared:]), *other.path[shared:], row)
        clocks = (*reversed(one.clocks[shared:]), *other.clocks[shared + 1 :], edge.a)
        middle = (edge.span[0] + edge.span[1]) // 2
        apart = other.way.at(edge.way.at(middle)) - one.way.at(middle)
        ways = [self.edges[number] for number in edges]
        bound = sum(round(one.bound) if one.way.bound_ns is None else one.way.bound_ns for one in ways)
        bounded = all(one.way.bound_ns is not None for one in ways)
        return Loop(edges, clocks, apart, bound, bounded)

    def placed(self, rows: Sequence[int], fit: _Fit) -> dict[int, ClockMap]:
        """Return the maps along the best paths, corrected."""
        tree = self.tree(rows)
        return {
            node: self._corrected(node, place.way, rows, tree, fit) if fit.offset.get(node) else place.way
            for node, place in tree.items()
        }

    def _corrected(
        self, node: int, way: ClockMap, rows: Sequence[int], tree: dict[int, _Reached], fit: _Fit
    ) -> ClockMap:
        """Return a map moved to where all relations together put it, within what they allow, with what is left."""
        offset, drift = fit.offset[node], fit.drift[node]
        allowed = self._allowed(node, rows, tree)
        if allowed is not None:
            offset = min(max(offset, allowed[0]), allowed[1])
        moved = replace(
            way.then(ClockMap(round(offset), drift=round(drift / DRIFT_UNIT), at_ns=fit.epoch)), bound_ns=way.bound_ns
        )
        if way.bound_ns is None:
            return moved
        at = way.inverse().at(fit.epoch)
        edges = [self.edges[row] for row in rows]
        times = [ts for edge in edges if node == edge.a for ts in edge.span]
        times += [edge.way.at(ts) for edge in edges if node == edge.b != edge.a for ts in edge.span]
        turned = max((abs(drift * (ts - at)) for ts in times), default=0.0)
        bound = way.bound_ns + abs(offset)
        if allowed is not None:
            bound = min(bound, max(allowed[1] - offset, offset - allowed[0], fit.spread[node]))
        return replace(moved, bound_ns=int(np.ceil(bound + turned)) + 1)

    def _allowed(self, node: int, rows: Sequence[int], tree: dict[int, _Reached]) -> tuple[float, float] | None:
        """Return the range of the correction of a clock within all bounds; None if they contradict each other.

        Each relation says that the corrections of its two clocks differ by no more than its residual and bound; the
        shortest path through these differences is the tightest that follows.
        """
        apart, _, _ = self._residuals(rows, tree)
        steps: list[tuple[int, int, float]] = []
        for i, row in enumerate(rows):
            edge = self.edges[row]
            middle, slack = -float(apart[i].mean()), edge.bound + float(np.ptp(apart[i])) / 2
            steps += [(edge.a, edge.b, middle + slack), (edge.b, edge.a, slack - middle)]
        there, back = _shortest(self.reference, steps, len(tree)), _shortest(node, steps, len(tree))
        return None if there is None or back is None else (-back[self.reference], there[node])


def _shortest(start: int, steps: Sequence[tuple[int, int, float]], nodes: int) -> dict[int, float] | None:
    """Return the lengths of the shortest paths (Bellman-Ford); None if there is a way around of negative length."""
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
    """Return how large a sum of squares may be.

    Bounds that hold let it be as large as the number of edges; most are only probable ones, so what one right network
    in a thousand exceeds by chance comes on top (the quantile of chi^2 by Wilson and Hilferty).
    """
    if loops <= 0:
        return float(edges)
    part = 2 / (9 * loops)
    return float(edges + loops * (1 - part + _RARE * np.sqrt(part)) ** 3)

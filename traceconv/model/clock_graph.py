"""The graph of clock domains, whose edges are snapshots and estimates, and the shortest paths in it."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from itertools import combinations, count

from traceconv.model.clocks import IN_STEP, ClockDomain, ClockMap, ClockSnapshot, Verdict


class ClockGraph:
    """The domains of all inputs with the snapshots between them.

    An estimate that is accepted becomes an edge like all others (`relate`).
    """

    def __init__(self, domains: Iterable[ClockDomain], snapshots: Iterable[ClockSnapshot]) -> None:
        # For each domain its neighbours, each with the map from the neighbour to the domain.
        self._edges: dict[ClockDomain, list[tuple[ClockDomain, ClockMap]]] = {domain: [] for domain in domains}
        for snap in snapshots:
            verdict = Verdict.ASSUMED if snap.assumed else Verdict.OK
            clock_map = ClockMap(snap.other_ts - snap.ts, snap.bound_ns, (snap.step,), verdict)
            self.relate(snap.clock, snap.other, clock_map)
        self._join_equal_timebases()

    def relate(self, clock: ClockDomain, other: ClockDomain, clock_map: ClockMap, back: ClockMap | None = None) -> None:
        """Add an edge: `clock_map` maps times of `clock` to `other`; `back` is its inverse, if its bound differs."""
        self._edges.setdefault(other, []).append((clock, clock_map))
        self._edges.setdefault(clock, []).append((other, back or clock_map.inverse()))

    def relate_instead(self, clock: ClockDomain, other: ClockDomain, clock_map: ClockMap) -> None:
        """Add an edge between the wall clocks of two hosts; remove the assumption that the first agrees with others."""
        self._separate(clock)
        self.relate(clock, other, clock_map)

    def _separate(self, wall: ClockDomain) -> None:
        """Remove the assumption that a wall clock agrees with those of other hosts."""
        for neighbour, clock_map in self._edges[wall]:
            if clock_map.two_hosts:
                kept = [(one, its) for one, its in self._edges[neighbour] if one != wall or not its.two_hosts]
                self._edges[neighbour] = kept
        self._edges[wall] = [(one, its) for one, its in self._edges[wall] if not its.two_hosts]

    def join_hosts(self) -> dict[str, str]:
        """Remove the assumption that wall clocks agree for each host that a relation joins to an earlier one.

        Returns:
            For each such host, by the owner of its wall clock, the first host of its group.
        """
        joined: dict[str, str] = {}
        seen: set[ClockDomain] = set()
        for first in self._edges:
            if first in seen or not first.is_wall_clock or not first.owner:
                continue
            seen.add(first)
            queue = [first]
            while queue:
                domain = queue.pop()
                if domain.synthetic:
                    continue  # synthetic times relate no other clocks
                if domain.is_wall_clock and domain.owner not in ("", first.owner):
                    joined[domain.owner] = first.owner
                for neighbour, clock_map in self._edges[domain]:
                    if neighbour not in seen and not clock_map.two_hosts:
                        seen.add(neighbour)
                        queue.append(neighbour)
        for domain in self._edges:
            if domain.is_wall_clock and domain.owner in joined:
                self._separate(domain)
        return joined

    def copy(self) -> ClockGraph:
        """Return an independent copy."""
        other = ClockGraph((), ())
        other._edges = {domain: list(edges) for domain, edges in self._edges.items()}
        return other

    def _join_equal_timebases(self) -> None:
        """Relate domains that are the same clock, and the wall clocks of two hosts, these without a bound.

        A wall clock without an owner stands for that of the first host.
        """
        shared = [domain for domain in self._edges if domain.is_wall_clock or not domain.owner]
        by_place: dict[
            tuple[bool, str], list[int]
        ] = {}  # others are no same clocks, and there may be thousands of hosts
        for number, domain in enumerate(shared):
            if domain.is_wall_clock:
                by_place.setdefault((True, domain.owner), []).append(number)
            if domain.host and not domain.owner:
                by_place.setdefault((False, domain.host), []).append(number)
        for one, other in sorted({pair for numbers in by_place.values() for pair in combinations(numbers, 2)}):
            if shared[one].same_timebase(shared[other]):
                self.relate(shared[one], shared[other], ClockMap())
        walls: dict[str, ClockDomain] = {}
        for domain in shared:
            if domain.is_wall_clock:
                walls.setdefault(domain.owner, domain)
        anybodys = walls.pop("", None)
        first = next(iter(walls.values()), None)
        if first is not None and anybodys is not None:
            self.relate(anybodys, first, ClockMap())
        for wall in walls.values():
            if first is not None and wall != first:
                self.relate(wall, first, IN_STEP)

    def maps_to(self, target: ClockDomain, *, of_one_host: bool = False) -> dict[ClockDomain, ClockMap]:
        """Return the map with the smallest bound to `target`, for each domain that a path connects with it.

        With `of_one_host`, no path rests on the assumption that the wall clocks of hosts agree.
        """
        best: dict[ClockDomain, ClockMap] = {}
        queue: list[tuple[int, int, int, ClockDomain, ClockMap]] = [(0, 0, 0, target, ClockMap())]
        pushed = count(1)
        while queue:
            _, hops, _, domain, path = heapq.heappop(queue)
            if domain in best:
                continue
            best[domain] = path
            if domain.synthetic and domain != target:
                continue  # synthetic times relate no other clocks
            for neighbour, edge in self._edges.get(domain, ()):
                if neighbour not in best and not (of_one_host and edge.two_hosts):
                    back = edge.then(path)
                    heapq.heappush(queue, (back.uncertainty, hops + 1, next(pushed), neighbour, back))
        return best

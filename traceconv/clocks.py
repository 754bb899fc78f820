"""Clock domains, snapshots, and the graph that relates them.

A clock domain says what the numbers of a file count. A snapshot is a reading of two domains at one instant; it is an
edge between them, good to a stated bound. Two files can be put on one time axis when a path of edges connects their
domains; the bound of the result is the sum of the bounds along the path.
"""

from __future__ import annotations

import enum
import heapq
from collections.abc import Iterable
from dataclasses import dataclass, replace


class Zero(enum.Enum):
    """What instant a domain calls zero."""

    UNIX_EPOCH = "Unix epoch"
    BOOT = "boot of the machine"
    BOOT_AND_SLEEP = "boot of the machine, sleep included"
    RUN_START = "start of the recording"
    UNKNOWN = "unknown"


class Run(enum.Enum):
    """How a domain runs."""

    WALL = "wall clock"
    MONOTONIC = "monotonic"
    UNKNOWN = "unknown"
    NONE = "no clock: order and durations only"
    TOTALS = "no times: totals only"


@dataclass(frozen=True, slots=True)
class ClockDomain:
    """A timebase.

    Attributes:
        name: what the domain is called in messages and metadata, such as "CLOCK_REALTIME".
        zero: what instant is zero.
        run: how it runs; NONE for formats that print durations only, whose positions are synthetic; TOTALS for
            tables of sums, which have no place in time at all.
        resolution_ns: the smallest step of the numbers as printed.
        machine: the host it lives on, or "" when the file does not say.
        owner: the file that a private domain belongs to; "" for a domain that files can share.
    """

    name: str
    zero: Zero
    run: Run
    resolution_ns: int = 1
    machine: str = ""
    owner: str = ""

    @property
    def synthetic(self) -> bool:
        """Whether positions in this domain were invented."""
        return self.run in (Run.NONE, Run.TOTALS)

    def describe(self) -> str:
        """For messages: "CLOCK_REALTIME (wall clock, zero at Unix epoch)"."""
        if self.synthetic:
            return f"{self.name} ({self.run.value})"
        if self.zero is Zero.UNKNOWN:
            return f"{self.name} ({'unknown clock' if self.run is Run.UNKNOWN else self.run.value})"
        return f"{self.name} ({self.run.value}, zero at {self.zero.value})"

    def owned_by(self, owner: str) -> ClockDomain:
        """The same domain as the private one of a file."""
        return replace(self, owner=owner)

    def same_timebase(self, other: ClockDomain) -> bool:
        """Whether equal numbers of the two mean the same instant, as far as the files themselves say.

        Wall clocks count as one on all machines: how well they agree is up to their synchronisation. Clocks since
        boot agree only on one machine, and only if both say which.
        """
        if self == other:
            return True
        if self.owner or other.owner or self.zero is not other.zero:
            return False
        if self.zero is Zero.UNIX_EPOCH:
            return True
        return self.zero in SINCE_BOOT and bool(self.machine) and self.machine == other.machine


_WORST = 2**63

#: Between these a number of ns can only be a time since 1970: 2001 and 2096. A clock since boot would need 31 years.
_UNIX_TIMES = range(10**18, 4 * 10**18)


def looks_like_unix_time(ns: int) -> bool:
    """Whether a time is so large that it can only count from 1970."""
    return ns in _UNIX_TIMES


#: Where clocks that files of one machine can share begin. The two differ by the time that the machine slept.
SINCE_BOOT = (Zero.BOOT, Zero.BOOT_AND_SLEEP)

#: The wall clock of a machine, nanoseconds since 1970 (UTC).
REALTIME = ClockDomain("CLOCK_REALTIME", Zero.UNIX_EPOCH, Run.WALL)
#: The other clocks of Linux (clock_gettime(2)). The raw one is not slewed, so it is related to no other by definition.
MONOTONIC = ClockDomain("CLOCK_MONOTONIC", Zero.BOOT, Run.MONOTONIC)
MONOTONIC_RAW = ClockDomain("CLOCK_MONOTONIC_RAW", Zero.UNKNOWN, Run.MONOTONIC)
BOOTTIME = ClockDomain("CLOCK_BOOTTIME", Zero.BOOT_AND_SLEEP, Run.MONOTONIC)
TAI = ClockDomain("CLOCK_TAI", Zero.UNKNOWN, Run.WALL)


#: Where the rows of a table without times stand.
NO_TIME = ClockDomain("none", Zero.UNKNOWN, Run.TOTALS)


@dataclass(frozen=True, slots=True)
class ClockSnapshot:
    """Two clocks read at one instant.

    Attributes:
        clock: a domain, and `ts` its reading in ns.
        other: another domain, and `other_ts` its reading in ns.
        bound_ns: how far apart the readings can be at most: |true - stated| <= bound_ns; None when nobody knows.
        method: where this is known from, for the receipt: "baseTimeNanoseconds of the file".
        assumed: whether this rests on the word of the user or on an assumption, and not on the file.
    """

    clock: ClockDomain
    ts: int
    other: ClockDomain
    other_ts: int
    bound_ns: int | None
    method: str
    assumed: bool = False

    def between(self, clock: ClockDomain, other: ClockDomain) -> ClockSnapshot:
        """The same reading, of domains by other names."""
        return replace(self, clock=clock, other=other)


@dataclass(frozen=True, slots=True)
class ClockMap:
    """Turns times of one domain into another: t' = t + offset_ns, at most bound_ns wrong (None: not known)."""

    offset_ns: int = 0
    bound_ns: int | None = 0
    method: str = "same clock"
    assumed: bool = False

    @property
    def uncertainty(self) -> int:
        """The bound as something to compare: a map without one is worse than any other."""
        return _WORST if self.bound_ns is None else self.bound_ns

    def then(self, after: ClockMap) -> ClockMap:
        """This map followed by another one; an identity adds nothing to the method."""
        methods = [m.method for m in (self, after) if m.method != "same clock"]
        return ClockMap(
            self.offset_ns + after.offset_ns,
            None if self.bound_ns is None or after.bound_ns is None else self.bound_ns + after.bound_ns,
            ", then ".join(methods) or "same clock",
            self.assumed or after.assumed,
        )


class ClockGraph:
    """The domains of all inputs with the snapshots between them.

    This is the seam for estimated alignment: an estimator adds edges (snapshots with a bound and a method), the
    search stays the same.
    """

    def __init__(self, domains: Iterable[ClockDomain], snapshots: Iterable[ClockSnapshot]) -> None:
        self._edges: dict[ClockDomain, list[tuple[ClockDomain, ClockMap]]] = {}
        for domain in domains:
            self._edges.setdefault(domain, [])
        for snapshot in snapshots:
            self._add(snapshot)
        self._join_equal_timebases()

    def _add(self, snap: ClockSnapshot) -> None:
        offset = snap.other_ts - snap.ts
        there = ClockMap(offset, snap.bound_ns, snap.method, snap.assumed)
        back = ClockMap(-offset, snap.bound_ns, snap.method, snap.assumed)
        self._edges.setdefault(snap.clock, []).append((snap.other, there))
        self._edges.setdefault(snap.other, []).append((snap.clock, back))

    def _join_equal_timebases(self) -> None:
        domains = list(self._edges)
        for i, one in enumerate(domains):
            for other in domains[i + 1 :]:
                if one.same_timebase(other):
                    self._edges[one].append((other, ClockMap()))
                    self._edges[other].append((one, ClockMap()))

    def maps_to(self, target: ClockDomain) -> dict[ClockDomain, ClockMap]:
        """For each domain that is related to `target`, the map with the smallest bound."""
        best: dict[ClockDomain, ClockMap] = {}
        queue: list[tuple[int, int, int, ClockDomain, ClockMap]] = [(0, 0, 0, target, ClockMap())]
        pushed = 0
        while queue:
            _, hops, _, domain, path = heapq.heappop(queue)
            if domain in best:
                continue
            best[domain] = path
            for neighbour, edge in self._edges.get(domain, ()):
                if neighbour not in best:
                    pushed += 1
                    # The edge leads away from the target: its reverse comes first on the way back.
                    back = ClockMap(-edge.offset_ns, edge.bound_ns, edge.method, edge.assumed).then(path)
                    heapq.heappush(queue, (back.uncertainty, hops + 1, pushed, neighbour, back))
        return best

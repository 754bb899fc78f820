"""Clock domains, snapshots, and the graph that relates them.

A clock domain says what the numbers of a file count. A snapshot is a reading of two domains at one instant; it is an
edge between them, good to a stated bound. Two files can be put on one time axis when a path of edges connects their
domains; the bound of the result is the sum of the bounds along the path.
"""

from __future__ import annotations

import enum
import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from traceconv.align.messages import Message

I64 = npt.NDArray[np.int64]


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


class Provenance(enum.StrEnum):
    """Who says how two clocks relate."""

    METADATA = "the files"
    USER = "the user"
    ASSUMED = "nobody: it was assumed"
    ESTIMATED = "the events of both"


@dataclass(frozen=True, slots=True)
class Step:
    """One step from a clock to another one.

    Attributes:
        text: where it is known from, for people.
        provenance: who says so.
    """

    text: Message | str
    provenance: Provenance = Provenance.METADATA


class Verdict(enum.StrEnum):
    """How far to trust an alignment, from the best to the worst."""

    OK = "ok"
    ASSUMED = "assumed"
    UNVERIFIED = "unverified"
    AMBIGUOUS = "ambiguous"
    INSUFFICIENT = "insufficient"
    INCONSISTENT = "inconsistent"
    SEPARATE = "separate"  # of places only: beside the others, since the user asked for that instead of a refusal

    @property
    def refused(self) -> bool:
        """Whether the traces are not put together on this."""
        return self not in (Verdict.OK, Verdict.ASSUMED, Verdict.UNVERIFIED)

    @property
    def badness(self) -> int:
        """How many verdicts are better."""
        return _BADNESS[self]


_BADNESS = {verdict: badness for badness, verdict in enumerate(Verdict)}

#: What machines without a name call themselves: many are called so, so it tells none from another.
_NO_NAMES = frozenset(("", "localhost", "localhost.localdomain", "(none)"))

#: Clocks of Linux that differ from each other, by the names that importers use.
OS_CLOCKS = {"CLOCK_MONOTONIC", "CLOCK_MONOTONIC_RAW", "CLOCK_BOOTTIME", "CLOCK_TAI"}


def machine_name(host: str) -> str:
    """Return a name that tells a host from others; "" for what hosts without a name are called."""
    return "" if host.lower() in _NO_NAMES else host


class LocalForm(enum.Enum):
    """What local times state besides the time of day; none states its zone."""

    DATED = "date and time"
    YEARLESS = "day and time, without the year"
    TIME_OF_DAY = "time of day"


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
        owner: the file that a private domain belongs to; "" for a domain that files can share. Of wall clocks where
            there are several: the host, or the file if it states none.
        exact_durations: whether durations are printed in finer steps than times: none is cut to fit another slice.
        local: what its times state, where they are local times; None where they are not.
    """

    name: str
    zero: Zero
    run: Run
    resolution_ns: int = 1
    machine: str = ""
    owner: str = ""
    exact_durations: bool = False
    local: LocalForm | None = None

    @property
    def synthetic(self) -> bool:
        """Whether positions in this domain are synthetic: of durations laid end to end."""
        return self.run in (Run.NONE, Run.TOTALS)

    @property
    def host(self) -> str:
        """The host it lives on by a name that tells it from others, "" without one."""
        return machine_name(self.machine)

    def describe(self) -> str:
        """Return a description for messages: "CLOCK_REALTIME (wall clock, zero at Unix epoch)"."""
        if self.synthetic:
            return f"{self.name} ({self.run.value})"
        if self.zero is Zero.UNKNOWN:
            return f"{self.name} ({'unknown clock' if self.run is Run.UNKNOWN else self.run.value})"
        return f"{self.name} ({self.run.value}, zero at {self.zero.value})"

    @property
    def is_wall_clock(self) -> bool:
        """Whether it counts from 1970."""
        return self.zero is Zero.UNIX_EPOCH

    def owned_by(self, owner: str) -> ClockDomain:
        """Return the same domain as the private one of a file."""
        return replace(self, owner=owner)

    @property
    def shared(self) -> bool:
        """Whether files can have this very clock in common, because it is known which one it is."""
        on_a_machine = self.zero in SINCE_BOOT or self.name in OS_CLOCKS
        return self.run is Run.TOTALS or self.zero is Zero.UNIX_EPOCH or (on_a_machine and bool(self.host))

    def same_timebase(self, other: ClockDomain) -> bool:
        """Return whether equal numbers of the two mean the same instant, as far as the files themselves say.

        Wall clocks are one unless it is known that they are of two hosts. Clocks since boot agree only on one machine,
        and only if both say which; so do those of the system of equal name.
        """
        if self == other:
            return True
        if self.is_wall_clock and other.is_wall_clock:
            return self.owner == other.owner
        if self.owner or other.owner:
            return False
        if not self.host or self.host != other.host:
            return False
        if {self.name, other.name} <= OS_CLOCKS:
            return self.name == other.name
        return self.zero in SINCE_BOOT and self.zero is other.zero


#: Stands for a bound that nobody knows where bounds are compared, ns: greater than any.
NO_BOUND_NS = 2**62
#: Sums of two times below this fit into 64 bits.
_FITS = 2**62
#: How far off files can be that state how their clocks relate, but not how well, ns: like those that were measured.
UNSTATED_BOUND_NS = 40_000
#: What none of these is off, ns, however far that is from what was measured.
MOST_UNSTATED_NS = 10**9
#: Drifts are counted in these: 2**-40 is 9e-13, that is 1 ns in 18 minutes.
_DRIFT_BITS = 40
DRIFT_UNIT = 2.0**-_DRIFT_BITS
#: The largest drift that maps can be applied with, in these units: 1953 ppm.
MOST_DRIFT = 2**31 - 1
#: How fast two clocks may run apart, as a ratio. Two that nobody corrects: oscillators of computers are within 100 ppm.
FREE_DRIFT = 200e-6
#: Two clocks of one machine: its kernel slews the wall clock by no more than this.
SLEW_DRIFT = 500e-6
#: A clock while it is slewed, beside one with an oscillator of its own.
SLEWED_DRIFT = 700e-6

#: Between these a number of ns can only be a time since 1970: 2001 and 2096. A clock since boot would need 31 years.
_UNIX_TIMES = range(10**18, 4 * 10**18)


def worse(one: Verdict, other: Verdict) -> Verdict:
    """Return the one of two verdicts that is less to be trusted."""
    return max(one, other, key=_BADNESS.__getitem__)


def looks_like_unix_time(ns: int) -> bool:
    """Return whether a time is so large that it can only count from 1970."""
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


#: How the wall clocks of two hosts are taken for one.
TWO_HOSTS = "the wall clocks of two hosts, taken for one"

#: Where the rows of a table without times stand.
NO_TIME = ClockDomain("none", Zero.UNKNOWN, Run.TOTALS)


def as_one(domain: ClockDomain) -> ClockDomain:
    """Return a clock that files share as what they have in common: each may print it by another resolution.

    Wall clocks are one unless they are known to be of two hosts, as in `ClockDomain.same_timebase`.
    """
    if domain.is_wall_clock:
        return replace(REALTIME, owner=domain.owner)
    return domain if domain.owner else replace(domain, resolution_ns=1, exact_durations=False)


@dataclass(frozen=True, slots=True)
class LocalTime:
    """What a local time without a zone was taken for.

    Attributes:
        ahead_ns: how far ahead of UTC, ns.
        guessed: whether nobody said so.
    """

    ahead_ns: int
    guessed: bool = False


@dataclass(frozen=True, slots=True)
class ClockSnapshot:
    """Two clocks read at one instant.

    Attributes:
        clock: a domain, and `ts` its reading in ns.
        other: another domain, and `other_ts` its reading in ns.
        bound_ns: how far apart the readings can be at most: |true - stated| <= bound_ns; None when nobody knows.
        method: where this is known from, for the receipt: "baseTimeNanoseconds of the file".
        local: what a local time was taken for, where it rests on one.
        provenance: who says so; a local time that was interpreted is assumed.
    """

    clock: ClockDomain
    ts: int
    other: ClockDomain
    other_ts: int
    bound_ns: int | None
    method: Message | str
    local: LocalTime | None = None
    provenance: Provenance = Provenance.METADATA

    @property
    def assumed(self) -> bool:
        """Whether this rests on what the user states or on an assumption, and not on the file."""
        return self.provenance is not Provenance.METADATA

    @property
    def step(self) -> Step:
        """Where it is known from."""
        return Step(self.method, self.provenance)

    def between(self, clock: ClockDomain, other: ClockDomain) -> ClockSnapshot:
        """Return the same reading, of domains by other names."""
        return replace(self, clock=clock, other=other)


@dataclass(frozen=True, slots=True)
class Bend:
    """Where a map goes on along another line: from `at_ns` on, t' = t + offset_ns + drift * (t - at_ns).

    Attributes:
        at_ns: the first time on the new line.
        offset_ns: what is added there.
        drift: in units of DRIFT_UNIT.
    """

    at_ns: int
    offset_ns: int
    drift: int = 0


@dataclass(frozen=True, slots=True)
class ClockMap:
    """Turns times of one domain into another: t' = t + offset_ns + drift * (t - at_ns), up to the first bend.

    Times never change their order: where the line of a bend begins below that before it, the latter stays level until
    there. Everything is in integers, and exact for all times that fit into 64 bits.

    Attributes:
        offset_ns: what is added at `at_ns`.
        bound_ns: how wrong the result is at most; None: not known.
        steps: where it is known from, step by step; none where both are the same clock.
        verdict: how far to trust it.
        drift: how much faster the other clock runs, in units of DRIFT_UNIT: the times stay integers.
        at_ns: where the offset holds; of no account without drift.
        bends: where one of the clocks was slewed or set, in order; later ones begin at no smaller results.
        rests_on: the pairs of clocks whose events it was estimated from, each as the keys of both.
        two_hosts: whether it takes the wall clocks of two hosts for one: then the bound is not known.
        in_step_ns: how wrong the result would be at most if these agreed; None without them, or where it is not known.
    """

    offset_ns: int = 0
    bound_ns: int | None = 0
    steps: tuple[Step, ...] = ()
    verdict: Verdict = Verdict.OK
    drift: int = 0
    at_ns: int = 0
    bends: tuple[Bend, ...] = ()
    rests_on: frozenset[frozenset[tuple[int, int]]] = field(default=frozenset(), compare=False)
    two_hosts: bool = False
    in_step_ns: int | None = None

    @property
    def lines(self) -> tuple[Bend, ...]:
        """The lines of the map, the first one from its beginning on: its `at_ns` is not where it begins."""
        return (Bend(self.at_ns, self.offset_ns, self.drift), *self.bends)

    @property
    def changes_nothing(self) -> bool:
        """Whether times stay what they are."""
        return not (self.offset_ns or self.drift or self.bends)

    def apply(self, ts: I64) -> I64:
        """Return times of the one domain in the other, ns; their order does not change.

        Raises:
            OverflowError: a result does not fit into 64 bits.
        """
        lines = self.lines
        reach = max(-int(np.min(ts)), int(np.max(ts))) if len(ts) else 0
        if reach + max(abs(line.at_ns) + abs(line.offset_ns) for line in lines) >= _FITS:
            return np.array([self.at(int(t)) for t in ts], np.int64)
        found = _on_line(ts, lines[0])
        for number, bend in enumerate(self.bends):
            later = ts >= bend.at_ns
            np.minimum(found, bend.at_ns + bend.offset_ns, out=found, where=~later)
            here = later if number + 1 == len(self.bends) else later & (ts < self.bends[number + 1].at_ns)
            found[here] = _on_line(ts[here], bend)
        return found

    def at(self, ts: int) -> int:
        """Return one time of the one domain in the other, ns."""
        number = self._line(ts)
        mapped = _mapped(ts, self.lines[number])
        if number == len(self.bends):
            return mapped
        following = self.bends[number]
        return min(mapped, following.at_ns + following.offset_ns)

    def _bends_with(self, after: ClockMap) -> Iterator[tuple[int, int, int]]:
        """Yield where this map followed by another one bends, and the numbers of their lines from there on."""
        back = self.inverse() if after.bends else self
        begins = [(bend.at_ns, 0) for bend in self.bends]
        begins += [(back.at(bend.at_ns), number) for number, bend in enumerate(after.bends, 1)]
        number = 0
        for begin in sorted({begin for begin, _ in begins}):
            line = self.lines[self._line(begin)]
            there = [other for at, other in begins if at == begin]  # told by number: going back rounds
            number = max(number, after._line(_mapped(begin, line)), *there)
            yield begin, self._line(begin), number

    def _line(self, ts: int) -> int:
        """Return which line a time is on."""
        return sum(1 for bend in self.bends if bend.at_ns <= ts)

    @property
    def drift_ppm(self) -> float:
        """The drift in parts per million, for people; that of the first line if there are several."""
        return self.drift * DRIFT_UNIT * 1e6

    def inverse(self) -> ClockMap:
        """Return the way back."""
        at = self.at_ns + self.offset_ns if self.drift else 0
        bends = (Bend(bend.at_ns + bend.offset_ns, -bend.offset_ns, _back(bend.drift)) for bend in self.bends)
        return replace(self, offset_ns=-self.offset_ns, drift=_back(self.drift), at_ns=at, bends=tuple(bends))

    @property
    def method(self) -> str:
        """Where it is known from, for people."""
        return ", then ".join(str(step.text) for step in self.steps) or "same clock"

    @property
    def by_user(self) -> bool:
        """Whether the user says it, at least in part."""
        return any(step.provenance is Provenance.USER for step in self.steps)

    @property
    def bound_in_step_ns(self) -> int | None:
        """The bound, or what it would be if the wall clocks of all hosts agreed."""
        return self.in_step_ns if self.two_hosts else self.bound_ns

    @property
    def uncertainty(self) -> int:
        """The bound as something to compare: a map without one is worse than any other."""
        return NO_BOUND_NS if self.bound_ns is None else self.bound_ns

    @property
    def stated_bound_ns(self) -> int:
        """The bound; where none is stated, as for similar files."""
        return UNSTATED_BOUND_NS if self.bound_ns is None else self.bound_ns

    def then(self, after: ClockMap) -> ClockMap:
        """Return this map followed by another one."""
        two_hosts = self.two_hosts or after.two_hosts
        first, other = self.lines[0], after.lines[0]
        at = first.at_ns if first.drift else other.at_ns - first.offset_ns if other.drift else 0
        first = _chained(at, first, other)
        bends = [_chained(begin, self.lines[i], after.lines[j]) for begin, i, j in self._bends_with(after)]
        return ClockMap(
            first.offset_ns,
            _sum(self.bound_ns, after.bound_ns),
            self.steps + after.steps,
            worse(self.verdict, after.verdict),
            first.drift,
            first.at_ns,
            tuple(bends),
            self.rests_on | after.rests_on,
            two_hosts,
            _sum(self.bound_in_step_ns, after.bound_in_step_ns) if two_hosts else None,
        )


def _sum(one: int | None, other: int | None) -> int | None:
    """Return the sum of two bounds, ns; None if one is unknown."""
    return None if one is None or other is None else one + other


#: From the wall clock of one host to that of another one.
_IN_STEP = ClockMap(0, None, (Step(TWO_HOSTS, Provenance.ASSUMED),), Verdict.ASSUMED, two_hosts=True, in_step_ns=0)


def _on_line(ts: I64, line: Bend) -> I64:
    """Return times moved along one line, exactly, without leaving 64 bits: drifts are below 2**31."""
    if not line.drift:
        return ts + np.int64(line.offset_ns)
    away = ts - np.int64(line.at_ns)
    high, low = away >> 31, away & 0x7FFFFFFF
    return ts + np.int64(line.offset_ns) + ((high * line.drift + ((low * line.drift) >> 31)) >> (_DRIFT_BITS - 31))


def _back(drift: int) -> int:
    """Return the drift of the inverse map, in units of DRIFT_UNIT."""
    rate = drift * DRIFT_UNIT
    return round(-rate / (1 + rate) / DRIFT_UNIT)


def _mapped(ts: int, line: Bend) -> int:
    """Return one time moved along one line."""
    return ts + line.offset_ns + ((ts - line.at_ns) * line.drift >> _DRIFT_BITS)


def _chained(at: int, line: Bend, after: Bend) -> Bend:
    """Return two lines one after the other, as one whose offset holds at a time."""
    rate, more = line.drift * DRIFT_UNIT, after.drift * DRIFT_UNIT
    return Bend(at, _mapped(_mapped(at, line), after) - at, round((rate + more + rate * more) / DRIFT_UNIT))


class ClockGraph:
    """The domains of all inputs with the snapshots between them.

    What is estimated becomes an edge like all others (`relate`), once it is believed: the search stays the same.
    """

    def __init__(self, domains: Iterable[ClockDomain], snapshots: Iterable[ClockSnapshot]) -> None:
        # For each domain those beside it, each with how its times become times of the first.
        self._edges: dict[ClockDomain, list[tuple[ClockDomain, ClockMap]]] = {}
        for domain in domains:
            self._edges.setdefault(domain, [])
        for snapshot in snapshots:
            self._add(snapshot)
        self._join_equal_timebases()

    def _add(self, snap: ClockSnapshot) -> None:
        offset = snap.other_ts - snap.ts
        verdict = Verdict.ASSUMED if snap.assumed else Verdict.OK
        self.relate(snap.clock, snap.other, ClockMap(offset, snap.bound_ns, (snap.step,), verdict))

    def relate(self, clock: ClockDomain, other: ClockDomain, way: ClockMap, back: ClockMap | None = None) -> None:
        """Add an edge: how times of `clock` become times of `other`, and back, if that has another bound."""
        self._edges.setdefault(other, []).append((clock, way))
        self._edges.setdefault(clock, []).append((other, back or way.inverse()))

    def copy(self) -> ClockGraph:
        """Return the same domains and edges; what is added to the one is not in the other."""
        other = ClockGraph((), ())
        other._edges = {domain: list(edges) for domain, edges in self._edges.items()}
        return other

    def _join_equal_timebases(self) -> None:
        """Relate what is the same clock; wall clocks of two hosts are related, too, but nobody knows how well.

        The wall clock of nobody stands for that of the first host.
        """
        domains = list(self._edges)
        for i, one in enumerate(domains):
            for other in domains[i + 1 :]:
                if one.same_timebase(other):
                    self._edges[one].append((other, ClockMap()))
                    self._edges[other].append((one, ClockMap()))
        walls: dict[str, ClockDomain] = {}
        for domain in domains:
            if domain.is_wall_clock:
                walls.setdefault(domain.owner, domain)
        anybodys = walls.pop("", None)
        first = next(iter(walls.values()), None)
        if first is not None and anybodys is not None:
            self.relate(anybodys, first, ClockMap())
        for wall in walls.values():
            if first is not None and wall != first:
                self.relate(wall, first, _IN_STEP)

    def maps_to(self, target: ClockDomain) -> dict[ClockDomain, ClockMap]:
        """Return for each domain that is related to `target`, the map with the smallest bound."""
        best: dict[ClockDomain, ClockMap] = {}
        queue: list[tuple[int, int, int, ClockDomain, ClockMap]] = [(0, 0, 0, target, ClockMap())]
        pushed = 0
        while queue:
            _, hops, _, domain, path = heapq.heappop(queue)
            if domain in best:
                continue
            best[domain] = path
            if domain.synthetic and domain != target:
                continue  # what is tied to synthetic positions is not tied to anything else by them
            for neighbour, edge in self._edges.get(domain, ()):
                if neighbour not in best:
                    pushed += 1
                    back = edge.then(path)
                    heapq.heappush(queue, (back.uncertainty, hops + 1, pushed, neighbour, back))
        return best

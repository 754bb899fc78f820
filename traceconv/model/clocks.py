"""Clock domains, snapshots, and the maps between them.

A clock domain defines what the times of a file count. A snapshot is a reading of two domains at one instant: an edge
between them, with a bound. Two files can be put on one time axis when a path of edges connects their domains; the bound
of the result is the sum of the bounds along the path.
"""

from __future__ import annotations

import enum
import heapq
from collections.abc import Iterable, Iterator
from itertools import combinations, count, groupby

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

I64 = npt.NDArray[np.int64]


class Zero(enum.Enum):
    """The instant at which a clock domain is zero."""

    UNIX_EPOCH = "Unix epoch"
    BOOT = "boot of the machine"
    BOOT_AND_SLEEP = "boot of the machine, sleep included"
    RUN_START = "start of the recording"
    UNKNOWN = "unknown"


class Run(enum.Enum):
    """The way in which a clock domain runs."""

    WALL = "wall clock"
    MONOTONIC = "monotonic"
    UNKNOWN = "unknown"
    NONE = "no clock: order and durations only"
    TOTALS = "no times: totals only"


class Provenance(enum.StrEnum):
    """The source of a relation between two clocks."""

    METADATA = "the files"
    USER = "the user"
    ASSUMED = "nobody: it was assumed"
    ESTIMATED = "the events of both"


class Step(Struct, frozen=True):
    """One step from a clock to another one: the source of the relation, for people, and its kind."""

    text: str
    provenance: Provenance = Provenance.METADATA


class Verdict(enum.StrEnum):
    """How far to trust an alignment, from the best to the worst."""

    OK = "ok"
    ASSUMED = "assumed"
    UNVERIFIED = "unverified"
    AMBIGUOUS = "ambiguous"
    INSUFFICIENT = "insufficient"
    INCONSISTENT = "inconsistent"
    # drawn beside the others without alignment, since the user asked for that instead of a refusal
    SEPARATE = "separate"

    @property
    def unusable(self) -> bool:
        """Whether there is no offset that may be used: none was found, several fit, or it is contradicted.

        That of UNVERIFIED may be, if the inputs are of one run: see `align.estimate.is_accepted`.
        """
        return self not in (Verdict.OK, Verdict.ASSUMED, Verdict.UNVERIFIED)

    @property
    def badness(self) -> int:
        """The number of better verdicts."""
        return list(Verdict).index(self)


#: Host names that many machines have, so that they identify none.
_NO_NAMES = frozenset(("", "localhost", "localhost.localdomain", "(none)"))

#: Clocks of Linux that differ from each other, by the names that importers use.
OS_CLOCKS = {"CLOCK_MONOTONIC", "CLOCK_MONOTONIC_RAW", "CLOCK_BOOTTIME", "CLOCK_TAI"}


def machine_name(host: str) -> str:
    """Return the name of a host, or "" for a name such as "localhost" that identifies none."""
    return "" if host.lower() in _NO_NAMES else host


class LocalForm(enum.Enum):
    """The parts of a local time that a format states besides the time of day; the zone is never stated."""

    DATED = "date and time"
    YEARLESS = "day and time, without the year"
    TIME_OF_DAY = "time of day"


class ClockDomain(Struct, frozen=True):
    """A clock: what times count.

    Attributes:
        name: the name in messages and metadata, such as "CLOCK_REALTIME".
        run: how it runs; NONE for formats that state durations only: their times are synthetic; TOTALS for tables of
            sums, which have no times at all.
        resolution_ns: the smallest step of the numbers as printed.
        machine: the host that it belongs to, "" if the file does not state one.
        owner: the file that a private domain belongs to; "" for a domain that files can share. For wall clocks of
            several hosts: the host, or the file if it states none.
        exact_durations: whether durations have a finer resolution than times: then none is cut to fit another slice.
        local: the form of its local times; None if its times are not local.
        seconds_assumed: whether nothing states the unit of its times, which were taken as seconds.
    """

    name: str
    zero: Zero
    run: Run
    resolution_ns: int = 1
    machine: str = ""
    owner: str = ""
    exact_durations: bool = False
    local: LocalForm | None = None
    seconds_assumed: bool = False

    @property
    def synthetic(self) -> bool:
        """Whether times of this domain are synthetic: slices laid end to end."""
        return self.run in (Run.NONE, Run.TOTALS)

    @property
    def host(self) -> str:
        """The host that it belongs to, by a name that identifies it; "" without one."""
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
        """Whether its zero is 1970."""
        return self.zero is Zero.UNIX_EPOCH

    def owned_by(self, owner: str) -> ClockDomain:
        """Return a copy that is private to a file."""
        return replace(self, owner=owner)

    @property
    def shared(self) -> bool:
        """Whether different files can share this clock, since its definition identifies it."""
        on_a_machine = self.zero in SINCE_BOOT or self.name in OS_CLOCKS
        return self.run is Run.TOTALS or self.zero is Zero.UNIX_EPOCH or (on_a_machine and bool(self.host))

    def same_timebase(self, other: ClockDomain) -> bool:
        """Return whether equal times in both domains are the same instant, as far as the files state.

        Wall clocks are the same unless they are known to be of two hosts. Clocks since boot, and system clocks of equal
        name, are the same only on one machine that both files name.
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


#: Replaces an unknown bound in comparisons, ns: greater than any known one.
NO_BOUND_NS = 2**62
#: Sums of two times below this fit into 64 bits.
_FITS = 2**62
#: The bound of files that state the relation of their clocks without a bound, ns; as measured on such files.
UNSTATED_BOUND_NS = 40_000
#: The largest error that is conceivable for such files, ns.
MOST_UNSTATED_NS = 10**9
#: Clocks that are related within this bound, ns, are well known: by named events they would not be known better, and
#: calls lie in the operators that made them, of which some last no longer. PyTorch profiles are just well known.
WELL_KNOWN_NS = 20_000
#: The unit of drifts is 2**-40, that is 9e-13, or 1 ns in 18 minutes.
_DRIFT_BITS = 40
DRIFT_UNIT = 2.0**-_DRIFT_BITS
#: The largest drift that a map can apply, in this unit: 1953 ppm.
MOST_DRIFT = 2**31 - 1
#: The largest drift between two clocks, as a ratio. Between two free-running ones: computer oscillators are within 100
#: ppm.
FREE_DRIFT = 200e-6
#: Between two clocks of one machine: the kernel slews the wall clock by no more than this.
SLEW_DRIFT = 500e-6
#: The largest drift that is believed between the wall clocks of two hosts, and between two clocks of one host: the
#: network's time corrects wall clocks, and clocks of one host count one oscillator. More contradicts the evidence.
HOSTS_DRIFT = 100e-6
ONE_HOST_DRIFT = 50e-6
#: Between a clock that is being slewed and one with another oscillator.
SLEWED_DRIFT = 700e-6

#: Times in this range (the years 2001 to 2096) can only count from 1970: a clock since boot would need 31 years.
UNIX_TIMES = 10**18, 4 * 10**18


def worse(first: Verdict, other: Verdict) -> Verdict:
    """Return the worse of two verdicts."""
    return first if first is other else max(first, other, key=lambda verdict: verdict.badness)


def looks_like_unix_time(ns: int) -> bool:
    """Return whether a time (ns) is so large that it can only count from 1970."""
    return UNIX_TIMES[0] <= ns < UNIX_TIMES[1]


#: The zeros of clocks that files of one machine can share. They differ by the time that the machine slept.
SINCE_BOOT = (Zero.BOOT, Zero.BOOT_AND_SLEEP)

#: The wall clock of a machine, nanoseconds since 1970 (UTC).
REALTIME = ClockDomain("CLOCK_REALTIME", Zero.UNIX_EPOCH, Run.WALL)
#: The other clocks of Linux (clock_gettime(2)). The raw one is not slewed, so no definition relates it to another.
MONOTONIC = ClockDomain("CLOCK_MONOTONIC", Zero.BOOT, Run.MONOTONIC)
MONOTONIC_RAW = ClockDomain("CLOCK_MONOTONIC_RAW", Zero.UNKNOWN, Run.MONOTONIC)
BOOTTIME = ClockDomain("CLOCK_BOOTTIME", Zero.BOOT_AND_SLEEP, Run.MONOTONIC)
TAI = ClockDomain("CLOCK_TAI", Zero.UNKNOWN, Run.WALL)


#: The clock domain of the rows of a table without times.
NO_TIME = ClockDomain("none", Zero.UNKNOWN, Run.TOTALS)


def as_one(domain: ClockDomain) -> ClockDomain:
    """Return a shared clock without the properties in which files differ, such as the printed resolution.

    Wall clocks are the same unless they are known to be of two hosts, as in `ClockDomain.same_timebase`.
    """
    if domain.is_wall_clock:
        return replace(REALTIME, owner=domain.owner)
    return domain if domain.owner else replace(domain, resolution_ns=1, exact_durations=False)


class LocalTime(Struct, frozen=True):
    """The zone that a local time without one was interpreted in: its offset from UTC, positive to the east.

    Attributes:
        guessed: whether neither the file nor the user states the zone.
        question: the note of the input that asks for the zone; "" for none.
    """

    ahead_ns: int
    guessed: bool = False
    question: str = ""


class ClockSnapshot(Struct, frozen=True):
    """Two clocks read at one instant.

    Attributes:
        clock: a domain, and `ts` its reading in ns.
        other: another domain, and `other_ts` its reading in ns.
        bound_ns: how far apart the readings can be: |true - stated| <= bound_ns; None if not known.
        method: the source, for the receipt: "baseTimeNanoseconds of the file".
        local: the zone that was taken for the local time that it rests on; None if it rests on none.
        provenance: the kind of the source; ASSUMED for a local time whose zone was guessed.
    """

    clock: ClockDomain
    ts: int
    other: ClockDomain
    other_ts: int
    bound_ns: int | None
    method: str
    local: LocalTime | None = None
    provenance: Provenance = Provenance.METADATA

    @property
    def assumed(self) -> bool:
        """Whether this rests on an option or an assumption, and not on the file."""
        return self.provenance is not Provenance.METADATA

    @property
    def step(self) -> Step:
        """The source, as a step of a clock map."""
        return Step(self.method, self.provenance)

    def between(self, clock: ClockDomain, other: ClockDomain) -> ClockSnapshot:
        """Return the same readings for two other clock domains."""
        return replace(self, clock=clock, other=other)


class Bend(Struct, frozen=True):
    """A point from which a map follows another line: t' = t + offset_ns + drift * (t - at_ns) for t >= at_ns."""

    at_ns: int
    offset_ns: int
    drift: int = 0


class ClockMap(Struct, frozen=True):
    """Converts times of one domain to another: t' = t + offset_ns + drift * (t - at_ns), up to the first bend.

    A map is monotonic: where the line of a bend starts below the end of the line before it, times before the bend are
    limited to its start. All arithmetic is in integers, and exact for all times that fit into 64 bits.

    Attributes:
        offset_ns: the offset at `at_ns`.
        bound_ns: how wrong the result can be, ns; None if not known.
        steps: the sources of the map, one for each edge of its path; empty if both are the same clock.
        verdict: how far to trust it.
        drift: how much faster the other clock runs, in units of DRIFT_UNIT, so that times stay integers.
        at_ns: the time at which the offset holds; ignored if the drift is 0.
        bends: the points at which one of the clocks was slewed or set, in order; their results never decrease.
        rests_on: the pairs of clocks (by key) whose events it was estimated from.
        two_hosts: whether it takes the wall clocks of two hosts for one clock; then the bound is not known.
        in_step_ns: with `two_hosts`: the bound if these wall clocks agreed; else, or if not known, None.
    """

    offset_ns: int = 0
    bound_ns: int | None = 0
    steps: tuple[Step, ...] = ()
    verdict: Verdict = Verdict.OK
    drift: int = 0
    at_ns: int = 0
    bends: tuple[Bend, ...] = ()
    rests_on: frozenset[frozenset[tuple[int, int]]] = frozenset()
    two_hosts: bool = False
    in_step_ns: int | None = None

    @property
    def lines(self) -> tuple[Bend, ...]:
        """The lines of the map. The first one holds for all times before the first bend, also before its `at_ns`."""
        return (Bend(self.at_ns, self.offset_ns, self.drift), *self.bends)

    @property
    def changes_nothing(self) -> bool:
        """Whether the map is the identity."""
        return not (self.offset_ns or self.drift or self.bends)

    def apply(self, ts: I64) -> I64:
        """Convert times (ns) of one domain to the other, in order. OverflowError: a result is beyond 64 bits."""
        lines = self.lines
        reach = max(-int(np.min(ts)), int(np.max(ts))) if len(ts) else 0
        if reach + max(abs(line.at_ns) + abs(line.offset_ns) for line in lines) >= _FITS:
            return np.array([self.at(int(t)) for t in ts], np.int64)
        mapped = _on_line(ts, lines[0])
        for number, bend in enumerate(self.bends):
            later = ts >= bend.at_ns
            np.minimum(mapped, bend.at_ns + bend.offset_ns, out=mapped, where=~later)
            here = later if number + 1 == len(self.bends) else later & (ts < self.bends[number + 1].at_ns)
            mapped[here] = _on_line(ts[here], bend)
        return mapped

    def at(self, ts: int) -> int:
        """Convert one time (ns) of one domain to the other."""
        number = self._line(ts)
        mapped = _mapped(ts, self.lines[number])
        if number == len(self.bends):
            return mapped
        following = self.bends[number]
        return min(mapped, following.at_ns + following.offset_ns)

    def _bends_with(self, after: ClockMap) -> Iterator[tuple[int, int, int]]:
        """Yield the bends of this map followed by another one: time, and the numbers of both lines from there on."""
        back = self.inverse() if after.bends else self
        begins = [(bend.at_ns, 0) for bend in self.bends]
        begins += [(back.at(bend.at_ns), number) for number, bend in enumerate(after.bends, 1)]
        number = 0
        for begin in sorted({begin for begin, _ in begins}):
            line = self.lines[self._line(begin)]
            there = [other for at, other in begins if at == begin]  # compared by number, since the inverse rounds
            number = max(number, after._line(_mapped(begin, line)), *there)
            yield begin, self._line(begin), number

    def _line(self, ts: int) -> int:
        """Return the number of the line that holds at a time."""
        return sum(1 for bend in self.bends if bend.at_ns <= ts)

    @property
    def drift_ppm(self) -> float:
        """The drift in parts per million, for people; that of the first line if there are several."""
        return self.drift * DRIFT_UNIT * 1e6

    def inverse(self) -> ClockMap:
        """Return the inverse map."""
        at = self.at_ns + self.offset_ns if self.drift else 0
        bends = (Bend(bend.at_ns + bend.offset_ns, -bend.offset_ns, _back(bend.drift)) for bend in self.bends)
        return replace(self, offset_ns=-self.offset_ns, drift=_back(self.drift), at_ns=at, bends=tuple(bends))

    @property
    def method(self) -> str:
        """The sources of the map, for people; equal ones in a row are named once."""
        return ", then ".join(text for text, _ in groupby(str(step.text) for step in self.steps)) or "same clock"

    @property
    def by_user(self) -> bool:
        """Whether it rests, at least in part, on an option of the user."""
        return any(step.provenance is Provenance.USER for step in self.steps)

    @property
    def estimated(self) -> bool:
        """Whether it rests, at least in part, on events."""
        return any(step.provenance is Provenance.ESTIMATED for step in self.steps)

    @property
    def bound_in_step_ns(self) -> int | None:
        """The bound; with `two_hosts`, the bound if their wall clocks agreed."""
        return self.in_step_ns if self.two_hosts else self.bound_ns

    @property
    def uncertainty(self) -> int:
        """The bound by which maps are compared with each other: NO_BOUND_NS if not known."""
        return NO_BOUND_NS if self.bound_ns is None else self.bound_ns

    @property
    def stated_bound_ns(self) -> int:
        """The bound by which events are compared with the map: UNSTATED_BOUND_NS if none is stated."""
        return UNSTATED_BOUND_NS if self.bound_ns is None else self.bound_ns

    @property
    def stated_bound_in_step_ns(self) -> int:
        """The same for `bound_in_step_ns`."""
        return UNSTATED_BOUND_NS if self.bound_in_step_ns is None else self.bound_in_step_ns

    def then(self, after: ClockMap) -> ClockMap:
        """Return the composition: this map, then `after`."""
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


def _sum(bound: int | None, other: int | None) -> int | None:
    """Return the sum of two bounds, ns; None if one is unknown."""
    return None if bound is None or other is None else bound + other


#: The map between the wall clocks of two hosts.
_AGREE = Step("the assumption that the wall clocks of the hosts agree", Provenance.ASSUMED)
IN_STEP = ClockMap(0, None, (_AGREE,), Verdict.ASSUMED, two_hosts=True, in_step_ns=0)


def _on_line(ts: I64, line: Bend) -> I64:
    """Apply one line to times (ns), exactly and within 64 bits, since drifts are below 2**31."""
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
    """Apply one line to one time (ns)."""
    return ts + line.offset_ns + ((ts - line.at_ns) * line.drift >> _DRIFT_BITS)


def _chained(at: int, line: Bend, after: Bend) -> Bend:
    """Return the composition of two lines, as a line whose `at_ns` is `at`."""
    rate, more = line.drift * DRIFT_UNIT, after.drift * DRIFT_UNIT
    return Bend(at, _mapped(_mapped(at, line), after) - at, round((rate + more + rate * more) / DRIFT_UNIT))


# -- graph ------------------------------------------------------------------------------------------------------------


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
                kept = [(clock, edge) for clock, edge in self._edges[neighbour] if clock != wall or not edge.two_hosts]
                self._edges[neighbour] = kept
        self._edges[wall] = [(clock, edge) for clock, edge in self._edges[wall] if not edge.two_hosts]

    def join_hosts(self) -> dict[str, str]:
        """Remove the assumption that wall clocks agree for each host that a relation joins to an earlier one.

        Return for each such host, by the owner of its wall clock, the first host of its group.
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
        for earlier, later in sorted({pair for numbers in by_place.values() for pair in combinations(numbers, 2)}):
            if shared[earlier].same_timebase(shared[later]):
                self.relate(shared[earlier], shared[later], ClockMap())
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

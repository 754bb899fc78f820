"""The clock domains of inputs, and the machines that they are from."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from shlex import quote

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from traceconv.align.constraints import ClockConstraint, ClockKind, Constraints
from traceconv.errors import InconsistentClocks, UsageError
from traceconv.io.shown import listed
from traceconv.model.clocks import (
    BOOTTIME,
    MONOTONIC,
    MONOTONIC_RAW,
    OS_CLOCKS,
    REALTIME,
    SINCE_BOOT,
    SLEW_DRIFT,
    ClockDomain,
    ClockMap,
    ClockSnapshot,
    LocalForm,
    Run,
    Zero,
    looks_like_unix_time,
)
from traceconv.model.columns import I32, I64
from traceconv.model.numbers import format_time
from traceconv.model.trace import Trace

#: A clock of an input: the number of the input, and the number of the clock in its trace.
Key = tuple[int, int]
#: A warning for a clock.
ClockWarning = tuple[Key, str]
Warnings = Sequence[ClockWarning]
#: The clock domains that --clock can name.
STATED_CLOCKS = {
    ClockKind.REALTIME: REALTIME,
    ClockKind.MONOTONIC: MONOTONIC,
    ClockKind.MONOTONIC_RAW: MONOTONIC_RAW,
    ClockKind.BOOTTIME: BOOTTIME,
    ClockKind.PERF: ClockDomain("perf clock", Zero.UNKNOWN, Run.MONOTONIC),
}


def with_domains(trace: Trace, named: Callable[[ClockDomain], ClockDomain]) -> Trace:
    """Return the trace with a function applied to each clock domain, also in its snapshots."""
    snapshots = [snap.between(named(snap.clock), named(snap.other)) for snap in trace.snapshots]
    return trace.with_tables(clocks=[named(domain) for domain in trace.clocks], snapshots=snapshots)


def with_own_domains(trace: Trace, index: int) -> Trace:
    """Return the trace with its private clock domains marked as those of input `index`.

    Domains that files can share, such as CLOCK_REALTIME, stay as they are.
    """
    owner = f"{index}:{trace.sources[0].name}"
    return with_domains(trace, lambda domain: domain if domain.shared else domain.owned_by(owner))


def ends_of(trace: Trace) -> list[ClockDomain]:
    """Return both clocks of each snapshot of a trace."""
    return [end for snap in trace.snapshots for end in (snap.clock, snap.other)]


def rows_on(trace: Trace, clock: int, tracks: I32) -> I64:
    """Return the rows of a table that are on a clock, given the track of each row."""
    return np.flatnonzero(clocks_of_tracks(trace)[tracks] == clock)


def clocks_of_tracks(trace: Trace) -> I64:
    """Return the number of the clock of each track; one number even without tracks, so that it can be indexed."""
    return trace.tracks.column("clock").astype(np.int64) if len(trace.tracks) else np.zeros(1, np.int64)


def on_trace_time(ts: I64, clocks: I64, maps: Mapping[int, ClockMap]) -> I64:
    """Return times of several clocks on trace time, ns."""
    if len(maps) == 1 and (clocks == next(iter(maps))).all():
        return next(iter(maps.values())).apply(ts)
    mapped = ts.copy()
    for clock, clock_map in maps.items():
        is_on_clock = clocks == int(clock)
        mapped[is_on_clock] = clock_map.apply(ts[is_on_clock])
    return mapped


def zone_advice(trace: Trace, domain: ClockDomain) -> str | None:
    """Return advice on the options that relate local times to the wall clock; None for other times."""
    if domain.local is None:
        return None
    file = quote(trace.sources[0].name)
    date = f" --date {file}=DAY" if domain.local is LocalForm.TIME_OF_DAY else ""
    return f"if you know the zone of its local times: --tz {file}=+HH:MM{date}"


def is_definition(snap: ClockSnapshot) -> bool:
    """Return whether a snapshot defines the zero of a clock, and is not a reading of it."""
    return snap.ts == 0 and snap.clock.zero is not Zero.RUN_START


def base_of(trace: Trace, domain: ClockDomain) -> ClockSnapshot | None:
    """Return the snapshot by which a file states the zero of a clock as a wall-clock time; None if there is none."""
    stated = (snap for snap in trace.snapshots if snap.clock == domain and not snap.assumed)
    return next((snap for snap in stated if is_definition(snap) and snap.other.is_wall_clock), None)


def against_clock(
    trace: Trace, domain: ClockDomain, span: tuple[int, int] | None, constraint: ClockConstraint
) -> str | None:
    """Return the reason why a clock cannot be the one that --clock names, from its file and times; None if it can.

    Args:
        span: the first and the last time on it, ns; None without events.
    """
    base, wanted = base_of(trace, domain), STATED_CLOCKS[constraint.kind]
    is_unix = domain.is_wall_clock or (span is not None and looks_like_unix_time(span[0]))
    if domain.synthetic:
        return "it has no times"
    if domain.zero is Zero.RUN_START or (wanted is not REALTIME and domain.local is not None):
        return f"its times count {domain.describe()}"
    if base is not None and domain.zero is Zero.UNKNOWN:
        return None if wanted is REALTIME else f"it states where its times are on the wall clock ({base.method})"
    if (wanted is REALTIME) != is_unix and span is not None:
        return f"its first time is {format_time(span[0])} after zero"
    if domain.name in OS_CLOCKS - {wanted.name}:
        return f"it states that it is {domain.describe()}"
    if constraint.machine and domain.machine and constraint.machine != domain.machine:
        return f"it states that it is of {domain.machine}"
    return None


def timed_clocks(trace: Trace, used: Iterable[int]) -> list[int]:
    """Return the clocks among `used` (numbers) that have times; without any, those that have an order."""
    ordered = [index for index in used if trace.clocks[index].run is not Run.TOTALS]
    return [index for index in ordered if not trace.clocks[index].synthetic] or ordered


def main_clock(trace: Trace, option: str) -> int:
    """Return the number of the only clock of an input.

    Raises:
        UsageError: the input has no clock with times, or several.
    """
    name = trace.sources[0].name
    chosen = timed_clocks(trace, trace.spans) or timed_clocks(trace, range(len(trace.clocks)))
    if len(chosen) == 1:
        return chosen[0]
    if not chosen:
        raise UsageError(f"{option}: {name} holds totals only, no times", hint=f"leave {name} out of {option}")
    clocks = tuple(trace.clocks[index].name for index in chosen)
    raise UsageError(
        f"{option}: {name} holds times of several clocks ({listed(clocks)})",
        hint=f"name an event on the clock you mean: --anchor '{name}:NAME#1.start=OTHER@TIME'",
    )


# -- The host, machine and boot of the clocks and processes of each input, as files and user state them --------------

# These stand for names of machines. No host has such a name, with spaces and in brackets.
#: The machine of inputs without a name that, as the user states, use the same clock since boot.
UNNAMED = "(the same machine)"
_UNNAMED = "(nobody names one)"
#: The wall clock may have been set by this much between two readings, ns, in addition to slewing.
_SET_NS = 10**9


def with_wall_clocks_of_hosts(
    traces: Sequence[Trace], constraints: Constraints
) -> tuple[list[Trace], list[ClockDomain]]:
    """Return the traces with a wall clock for each host, if they are of several hosts or may be.

    Returns:
        The traces, and the wall clock of the host of each.
    """
    said = [constraints.clocks[index].machine if index in constraints.clocks else "" for index in range(len(traces))]
    hosts = [trace.host or machine for trace, machine in zip(traces, said, strict=True)]
    ranks = [trace.sources[0].rank for trace in traces]
    unnamed = any(rank is not None and not host for rank, host in zip(ranks, hosts, strict=True))
    several = len({host for host in hosts if host}) > 1 or (unnamed and len({*ranks} - {None}) > 1)
    if constraints.same_machine or not several:
        return list(traces), [REALTIME] * len(traces)
    walls = [REALTIME.owned_by(hosts[index] or _unnamed(index, trace)) for index, trace in enumerate(traces)]
    return [_with_wall_clock(trace, wall) for trace, wall in zip(traces, walls, strict=True)], walls


def called(wall: ClockDomain, traces: Sequence[Trace], walls: Sequence[ClockDomain]) -> str:
    """Return the name of the host of a wall clock, for people: that of its input where nobody names the host."""
    index = walls.index(wall)
    return traces[index].sources[0].name if wall.owner == _unnamed(index, traces[index]) else wall.owner


def _unnamed(index: int, trace: Trace) -> str:
    """Return an identifier for the host of an input that nobody names: no other host has it."""
    return f"{index}:{trace.sources[0].name}"


def _with_wall_clock(trace: Trace, wall: ClockDomain) -> Trace:
    """Return the trace with its wall clock replaced by the given one."""
    return with_domains(trace, lambda domain: domain.owned_by(wall.owner) if domain.is_wall_clock else domain)


class _Boot(Struct, frozen=True):
    """The boot of the machine of an input."""

    id: str
    times: dict[str, tuple[int, int]]

    def is_same(self, other: _Boot) -> bool | None:
        """Return whether two boots are one; None if nothing tells."""
        if self.id and other.id:
            return self.id == other.id
        common = [(*self.times[name], *other.times[name]) for name in self.times.keys() & other.times.keys()]
        if not common:
            return None
        return all(abs(zero - begin) <= _SET_NS + SLEW_DRIFT * abs(read - then) for zero, read, begin, then in common)


def with_clocks_of_boots(traces: Sequence[Trace]) -> tuple[list[Trace], dict[int, list[str]], dict[int, str]]:
    """Return the inputs with clocks for each boot, where several boots of one machine were recorded.

    Returns:
        The inputs; notes on some of them, by number; for these also the name of their boot.
    """
    with_boots, notes, named = list(traces), defaultdict[int, list[str]](list), dict[int, str]()
    for machine, told in _boots(traces).items():
        same = {pair: told[pair[0]].is_same(told[pair[1]]) for pair in combinations(sorted(told), 2)}
        if all(is_same is not False for is_same in same.values()):
            continue
        boots = _together(sorted(told), [pair for pair, is_same in same.items() if is_same])
        if len(boots) == 1:
            continue
        boots.sort(key=lambda boot: _began([told[index] for index in boot]))
        for number, boot in enumerate(boots, 1):
            for index in boot:
                other = next(other for other in told if other not in boot)
                named[index] = f"{machine} (boot {number})"
                with_boots[index] = _of_boot(with_boots[index], machine, named[index])
                notes[index].append(
                    f"it was recorded in another boot of {machine} than {traces[other].sources[0].name}, so only "
                    "the wall clock relates their clocks since boot"
                )
    return with_boots, notes, named


def _began(boot: Sequence[_Boot]) -> tuple[int, str]:
    """Return the earliest known start of a boot (ns) and its id, which order boots whatever the order of the inputs."""
    return min((zero for told in boot for zero, _ in told.times.values()), default=0), max(told.id for told in boot)


def _boots(traces: Sequence[Trace]) -> dict[str, dict[int, _Boot]]:
    """Return the boots that inputs tell of, by machine and input."""
    boots: dict[str, dict[int, _Boot]] = defaultdict(dict)
    for index, trace in enumerate(traces):
        id, readings = trace.sources[0].boot_id, _readings(trace)
        clocks = [*(trace.clocks if id else ()), *(clock for clock, _, _ in readings)]
        for machine in dict.fromkeys(clock.machine for clock in clocks if _is_since_boot(clock)):
            read = [reading for reading in readings if reading[0].machine == machine]
            boots[machine][index] = _Boot(id, {clock.name: (wall - ts, wall) for clock, ts, wall in reversed(read)})
    return boots


def _is_since_boot(clock: ClockDomain) -> bool:
    """Return whether a clock counts from the boot of a machine with a name."""
    return clock.zero in SINCE_BOOT and bool(clock.host) and not clock.owner


def _readings(trace: Trace) -> list[tuple[ClockDomain, int, int]]:
    """Return the readings of clocks since boot of named machines beside the wall clock."""
    sides = [((snap.clock, snap.ts), (snap.other, snap.other_ts)) for snap in trace.snapshots]
    return [
        (clock, ts, wall)
        for side, two in sides
        for (clock, ts), (other, wall) in ((side, two), (two, side))
        if _is_since_boot(clock) and other.is_wall_clock
    ]


def _together(members: Sequence[int], pairs: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Return groups of members that pairs join, directly or through others."""
    groups = {member: frozenset((member,)) for member in members}
    for first, second in pairs:
        joined = groups[first] | groups[second]
        groups |= dict.fromkeys(joined, joined)
    return [sorted(group) for group in dict.fromkeys(groups.values())]


def _of_boot(trace: Trace, machine: str, boot: str) -> Trace:
    """Return the trace with all clocks of the machine, except the wall clock, marked as those of a boot."""

    def named(domain: ClockDomain) -> ClockDomain:
        is_of_machine = domain.machine == machine and not domain.owner and not domain.is_wall_clock
        return replace(domain, machine=boot) if is_of_machine else domain

    return with_domains(trace, named)


class Basis(enum.StrEnum):
    """How it is known that two inputs are of one machine; the surest comes first."""

    BOOT = "boot id"
    HOST = "host name"
    USER = "stated by the user"
    OTHERS = "assumed: not named, and all others agree"
    NOBODY = "assumed: no input names its machine"

    @property
    def assumed(self) -> bool:
        """Whether neither files nor user state it."""
        return self in (Basis.OTHERS, Basis.NOBODY)


class Machine(Struct, frozen=True):
    """The machine of an input.

    Attributes:
        key: equal for inputs of one machine; "" if it is not known.
        by_user: whether the user states that all inputs are of one machine.
    """

    key: str
    host: str = ""
    boot: str = ""
    by_user: bool = False

    def same_as(self, other: Machine) -> Basis | None:
        """Return how it is known that another machine is the same; None if it is another one."""
        if not self.key or self.key != other.key:
            return None
        if self.boot and self.boot == other.boot:
            return Basis.BOOT
        if self.host and other.host:
            return Basis.HOST if self.host == other.host else Basis.USER if self.by_user else Basis.BOOT
        if self.by_user:
            return Basis.USER
        return Basis.NOBODY if self.key == _UNNAMED else Basis.OTHERS


def machines_of(
    traces: Sequence[Trace], stated: Sequence[Trace], constraints: Constraints, boots: dict[int, str]
) -> list[Machine]:
    """Return the machine of each input.

    Args:
        stated: the same with the snapshots that follow from the constraints.
        boots: the names of boots that were told apart by their start, by input.

    Raises:
        InconsistentClocks: the user states that inputs of several boots are of one machine.
    """
    hosts = [next(filter(None, _names(trace, index, constraints)), "") for index, trace in enumerate(traces)]
    # The user states for some inputs the clock of a machine that no input names.
    unnamed = [any(end.machine == UNNAMED for end in ends_of(trace)) for trace in stated]
    by_clock = [not host and said for host, said in zip(hosts, unnamed, strict=True)]
    stated_ids = [trace.sources[0].boot_id for trace in traces]
    called = {stated_ids[index]: name for index, name in boots.items() if stated_ids[index]}
    ids = [boots.get(index) or called.get(id, id) for index, id in enumerate(stated_ids)]
    # Boot ids count first. For inputs without one the name counts, unless machines of several boots have it: then the
    # machine is ambiguous.
    named = [host or UNNAMED * said for host, said in zip(hosts, by_clock, strict=True)]
    alone = _boot_of_host(zip(named, ids, strict=True))
    known_ids = [boot or alone.get(host, "") for host, boot in zip(named, ids, strict=True)]
    keys = [f"boot {boot}" if boot else host for host, boot in zip(named, known_ids, strict=True)]
    if constraints.same_machine:
        first = next((index for index, boot in enumerate(ids) if boot), 0)
        for trace, boot in zip(traces, ids, strict=True):
            if boot not in ("", ids[first]):
                raise InconsistentClocks(
                    f"--same-machine: {traces[first].sources[0].name} and {trace.sources[0].name} are of two boots",
                    hint="leave it out: clocks since boot and pids hold only within one boot of a machine",
                )
        keys = [next(filter(None, keys), UNNAMED)] * len(keys)
    known = {key for key in keys if key}
    assumed = _UNNAMED if not known else known.pop() if len(known) == 1 else ""
    return [
        Machine(key or assumed, host, boot, constraints.same_machine or said)
        for key, host, boot, said in zip(keys, hosts, ids, by_clock, strict=True)
    ]


def with_one_name(traces: Sequence[Trace]) -> list[Trace]:
    """Return the inputs with one name for each machine: if equal boot ids have several names, the first of them."""
    pairs = [(host, trace.sources[0].boot_id) for trace in traces for host in _names(trace, -1, Constraints())]
    name_of = {boot: host for host, boot in reversed(pairs) if host}
    renamed = {host: name_of[boot] for host, boot in _boot_of_host(pairs).items()}
    if all(host == name for host, name in renamed.items()):
        return list(traces)
    return [
        with_domains(trace, lambda domain: replace(domain, machine=renamed.get(domain.machine, domain.machine)))
        for trace in traces
    ]


def _names(trace: Trace, index: int, constraints: Constraints) -> Iterator[str]:
    yield from (domain.host for domain in trace.clocks)
    if index in constraints.clocks:
        yield constraints.clocks[index].machine
    yield from (end.host for end in ends_of(trace))


def _boot_of_host(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the boot of each host name that belongs to one boot only."""
    boots_of: dict[str, set[str]] = {}
    for host, boot in pairs:
        if host and boot:
            boots_of.setdefault(host, set()).add(boot)
    return {host: next(iter(boots)) for host, boots in boots_of.items() if len(boots) == 1}

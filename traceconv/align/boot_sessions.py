"""Clocks since boot are one clock only within one boot.

Files name the host, hardly ever the boot. But files that hold readings of such a clock beside the wall clock tell when
the machine was booted: where they tell of several boots, each boot has clocks of its own. What files of one boot have
in common does not depend on which other files there are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from traceconv.align.domains import with_domains
from traceconv.align.messages import Message, Text
from traceconv.model.clocks import SINCE_BOOT, SLEW_DRIFT, ClockDomain
from traceconv.model.trace import Trace

#: The wall clock may have been set by so much in between, beside what it was slewed.
_SET_NS = 10**9


@dataclass(frozen=True, slots=True)
class _Boot:
    """What an input tells of the boot of its machine.

    Attributes:
        id: what the system calls it, "" if the file does not say.
        times: for each clock since boot, by name, when it was zero on the wall clock, and when it was read, ns.
    """

    id: str
    times: dict[str, tuple[int, int]]

    def is_same(self, other: _Boot) -> bool | None:
        """Whether it is one boot; None if nothing tells."""
        if self.id and other.id:
            return self.id == other.id
        common = [(self.times[name], other.times[name]) for name in self.times.keys() & other.times.keys()]
        if not common:
            return None
        return all(abs(zero - its) <= _SET_NS + SLEW_DRIFT * abs(read - then) for (zero, read), (its, then) in common)


@dataclass(frozen=True, slots=True)
class Boots:
    """Inputs as they are told apart by the boots that they were recorded in.

    Attributes:
        traces: with clocks for each boot where several boots of one machine were recorded.
        notes: for some inputs, notes on that.
        named: for these inputs, what their boot is called.
    """

    traces: list[Trace]
    notes: dict[int, list[Message]]
    named: dict[int, str] = field(default_factory=dict)


def with_clocks_of_boots(traces: Sequence[Trace]) -> Boots:
    """The inputs, told apart by boots."""
    found, notes, named = list(traces), defaultdict[int, list[Message]](list), dict[int, str]()
    for machine, told in _boots(traces).items():
        same = {pair: told[pair[0]].is_same(told[pair[1]]) for pair in combinations(sorted(told), 2)}
        if all(one is not False for one in same.values()):
            continue
        boots = _together(sorted(told), [pair for pair, one in same.items() if one])
        if len(boots) == 1:
            continue
        boots.sort(key=lambda boot: _began([told[index] for index in boot]))
        for number, boot in enumerate(boots, 1):
            for index in boot:
                other = next(other for other in told if other not in boot)
                named[index] = f"{machine} (boot {number})"
                found[index] = _of_boot(found[index], machine, named[index])
                notes[index].append(Text.ANOTHER_BOOT(machine=machine, other=traces[other].sources[0].name))
    return Boots(found, notes, named)


def _began(boot: Sequence[_Boot]) -> tuple[int, str]:
    """What boots are numbered by, whatever the order of the inputs: when they began, as far as it is known."""
    return min((zero for one in boot for zero, _ in one.times.values()), default=0), max(one.id for one in boot)


def _boots(traces: Sequence[Trace]) -> dict[str, dict[int, _Boot]]:
    """For each machine the inputs that tell of its boot, with what they tell."""
    found: dict[str, dict[int, _Boot]] = defaultdict(dict)
    for index, trace in enumerate(traces):
        id, readings = trace.sources[0].boot_id, _readings(trace)
        clocks = [*(trace.clocks if id else ()), *(clock for clock, _, _ in readings)]
        for machine in dict.fromkeys(clock.machine for clock in clocks if _is_since_boot(clock)):
            its = [reading for reading in readings if reading[0].machine == machine]
            found[machine][index] = _Boot(id, {clock.name: (wall - ts, wall) for clock, ts, wall in reversed(its)})
    return found


def _is_since_boot(clock: ClockDomain) -> bool:
    """Whether a clock counts from a boot of a machine that has a name."""
    return clock.zero in SINCE_BOOT and bool(clock.host) and not clock.owner


def _readings(trace: Trace) -> list[tuple[ClockDomain, int, int]]:
    """Clocks since boot of a named machine, each with a reading and that of the wall clock at the same instant."""
    sides = [((snap.clock, snap.ts), (snap.other, snap.other_ts)) for snap in trace.snapshots]
    return [
        (clock, ts, wall)
        for one, two in sides
        for (clock, ts), (other, wall) in ((one, two), (two, one))
        if _is_since_boot(clock) and other.is_wall_clock
    ]


def _together(members: Sequence[int], pairs: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Members that pairs tie together, directly or by way of others."""
    groups = {member: frozenset((member,)) for member in members}
    for one, other in pairs:
        both = groups[one] | groups[other]
        groups |= dict.fromkeys(both, both)
    return [sorted(group) for group in dict.fromkeys(groups.values())]


def _of_boot(trace: Trace, machine: str, boot: str) -> Trace:
    """The trace; all clocks of the machine but the wall clock are those of one boot of it."""

    def named(domain: ClockDomain) -> ClockDomain:
        is_its = domain.machine == machine and not domain.owner and not domain.is_wall_clock
        return replace(domain, machine=boot) if is_its else domain

    return with_domains(trace, named)

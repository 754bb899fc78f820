"""Clocks since boot are one clock only within one boot.

Files name the host, hardly ever the boot. But files that hold readings of such a clock beside the wall clock tell when
the machine was booted: where two of them tell different times, their clocks are two, and each file keeps its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from traceconv.clocks import SINCE_BOOT, SLEW_DRIFT, ClockDomain, Zero
from traceconv.ir.trace import Trace
from traceconv.times import format_time

#: The wall clock may have been set by so much in between, beside what it was slewed.
_SET_NS = 10**9


def apart_by_boot(traces: Sequence[Trace]) -> list[Trace]:
    """The traces; clocks since different boots of one machine become private ones of their files."""
    boots: dict[ClockDomain, dict[int, tuple[int, int]]] = defaultdict(dict)
    for index, trace in enumerate(traces):
        for clock, ts, wall in _readings(trace):
            boots[replace(clock, resolution_ns=1)].setdefault(index, (wall - ts, wall))
    found = list(traces)
    for clock, told in boots.items():
        times = sorted(told.values())
        apart = times[-1][0] - times[0][0]
        if apart > _SET_NS + SLEW_DRIFT * abs(times[-1][1] - times[0][1]):
            for index in told:
                found[index] = _with_own_clock(found[index], clock, index, apart)
    return found


def _readings(trace: Trace) -> list[tuple[ClockDomain, int, int]]:
    """Clocks since boot of a named machine, each with a reading and that of the wall clock at the same instant."""
    found = []
    for snap in trace.snapshots:
        sides = ((snap.clock, snap.ts), (snap.other, snap.other_ts))
        for (clock, ts), (other, wall) in (sides, sides[::-1]):
            if clock.zero in SINCE_BOOT and clock.machine and not clock.owner and other.zero is Zero.UNIX_EPOCH:
                found.append((clock, ts, wall))
    return found


def _with_own_clock(trace: Trace, clock: ClockDomain, index: int, apart: int) -> Trace:
    name = trace.sources[0].name

    def own(domain: ClockDomain) -> ClockDomain:
        same = replace(domain, resolution_ns=1) == clock
        return replace(domain, machine="", owner=f"{index}:{name}") if same else domain

    trace.sources[0].notes.append(
        f"{clock.name} of {clock.machine} began {format_time(apart)} apart in the inputs: another boot, so each file "
        "is placed by its own readings"
    )
    snapshots = [replace(snap, clock=own(snap.clock), other=own(snap.other)) for snap in trace.snapshots]
    return trace.with_tables(clocks=[own(domain) for domain in trace.clocks], snapshots=snapshots)

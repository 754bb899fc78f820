"""The clocks of a trace as the alignment sees them: which are its own, which are used, when."""

from __future__ import annotations

import shlex
from dataclasses import replace

import numpy as np

from traceconv.clocks import MONOTONIC, OS_CLOCKS, SINCE_BOOT, ClockDomain, Run, Zero, looks_like_unix_time
from traceconv.errors import UsageError
from traceconv.ir.trace import Trace, occurring


def own(domain: ClockDomain, trace: Trace, index: int) -> ClockDomain:
    """A domain of the input of that index: as it is if files can share it, else as the private one of the input."""
    return domain if domain.shared else domain.owned_by(f"{index}:{trace.sources[0].name}")


def with_own_domains(trace: Trace, index: int) -> Trace:
    """The trace with its private domains marked as its own, also in its snapshots."""
    snapshots = [
        replace(snap, clock=own(snap.clock, trace, index), other=own(snap.other, trace, index))
        for snap in trace.snapshots
    ]
    return trace.with_tables(clocks=[own(domain, trace, index) for domain in trace.clocks], snapshots=snapshots)


def spans(trace: Trace) -> dict[int, tuple[int, int]]:
    """For each clock that events use, the first start and the last end on it, ns."""
    clock_of_track = np.array([int(track.clock) for track in trace.tracks] or [0])
    found: dict[int, tuple[int, int]] = {}
    for name, table in trace.timed_tables():
        clocks = clock_of_track[table.track]
        ends = table.ts + table.dur if name == "slices" else table.ts
        for clock in occurring(clocks):
            on_it = clocks == clock
            first, last = int(np.min(table.ts[on_it])), int(np.max(ends[on_it]))
            before = found.get(clock, (first, last))
            found[clock] = min(first, before[0]), max(last, before[1])
    return dict(sorted(found.items()))


def may_share_boot(one: ClockDomain, other: ClockDomain) -> bool:
    """Whether two clocks count from the boot of one machine, for all that the files say."""
    elsewhere = one.host and other.host and one.host != other.host
    return one.zero in SINCE_BOOT and one.zero is other.zero and not elsewhere


def is_local(domain: ClockDomain) -> bool:
    """Whether a domain is that of local times whose zone is not known."""
    return domain.run is Run.WALL and domain.zero is Zero.UNKNOWN and "local" in domain.name


def zone_option(trace: Trace, domain: ClockDomain) -> str:
    """The options that put local times on the wall clock, as a clause; "" for other times."""
    if not is_local(domain):
        return ""
    name = shlex.quote(trace.sources[0].name)
    day = f" --date {name}=DAY" if "time of day" in domain.name else ""
    return f"if you know the zone of its local times: --tz {name}=+HH:MM{day}"


def one_clock_options(one: Trace, clock: ClockDomain, other: Trace, other_clock: ClockDomain) -> str:
    """The options under which two inputs count the monotonic clock of one machine, which their times do not exclude.

    Returns:
        Options to be typed, "" if one of the two counts something else, or if their times do not overlap as they are.
    """
    sides = [(one, clock, _span_on(one, clock)), (other, other_clock, _span_on(other, other_clock))]
    if not all(span is not None and _may_be_monotonic(domain, span) for _, domain, span in sides):
        return ""
    first, last = (max(span[0] for *_, span in sides if span), min(span[1] for *_, span in sides if span))
    missing = [trace for trace, domain, _ in sides if not (domain.machine and domain.name == MONOTONIC.name)]
    if first > last or any(_is_on_the_wall_clock(trace, domain) for trace, domain, _ in sides):
        return ""
    return " ".join(f"--clock {shlex.quote(trace.sources[0].name)}=monotonic" for trace in missing)


def one_machine_advice(one: Trace, clock: ClockDomain, other: Trace, other_clock: ClockDomain) -> str:
    """What relates two inputs if they are of one machine, as a clause; "" if nothing does."""
    options = one_clock_options(one, clock, other, other_clock)
    if options:
        return f"if both count the monotonic clock of one machine: {options}"
    if may_share_boot(clock, other_clock):
        return "if both are of one machine, and it was not restarted in between: --same-machine"
    return ""


def _span_on(trace: Trace, clock: ClockDomain) -> tuple[int, int] | None:
    return next((span for number, span in spans(trace).items() if trace.clocks[number] == clock), None)


def _is_on_the_wall_clock(trace: Trace, domain: ClockDomain) -> bool:
    """Whether a file says itself where a clock of unknown zero is on the wall clock: --clock cannot say otherwise."""
    said = (snap for snap in trace.snapshots if snap.clock == domain and snap.ts == 0 and not snap.assumed)
    return domain.zero is Zero.UNKNOWN and any(snap.other.zero is Zero.UNIX_EPOCH for snap in said)


def _may_be_monotonic(domain: ClockDomain, span: tuple[int, int]) -> bool:
    if domain.synthetic or domain.name in OS_CLOCKS - {MONOTONIC.name} or looks_like_unix_time(span[0]):
        return False
    unknown = domain.zero is Zero.UNKNOWN and domain.run in (Run.MONOTONIC, Run.UNKNOWN)
    return domain.zero is Zero.BOOT or (unknown and "local" not in domain.name)


def main_clock(trace: Trace, option: str) -> int:
    """The one clock that the times of an input count, by index.

    Raises:
        UsageError: there is none, or more than one; `option` is what asks for it.
    """
    name = trace.sources[0].name
    used = [index for index in spans(trace) if trace.clocks[index].run is not Run.TOTALS]
    used = used or [index for index, domain in enumerate(trace.clocks) if domain.run is not Run.TOTALS]
    timed = [index for index in used if not trace.clocks[index].synthetic]
    chosen = timed or used
    if len(chosen) == 1:
        return chosen[0]
    if not chosen:
        raise UsageError(f"{option}: {name} holds totals only, without any time", hint=f"leave {name} out of {option}")
    clocks = ", ".join(trace.clocks[index].name for index in chosen)
    raise UsageError(
        f"{option}: {name} holds times of several clocks ({clocks})",
        hint=f"name an event on the one that is meant: --anchor '{name}:NAME#1.start=OTHER@TIME'",
    )

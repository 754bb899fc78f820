"""Queries about the clock domains of one trace: their events, time spans, definitions, and what they can be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from shlex import quote

import numpy as np

from traceconv.align.constraint_parser import ClockConstraint, ClockKind
from traceconv.align.wording import listed
from traceconv.errors import UsageError
from traceconv.model.clocks import (
    BOOTTIME,
    MONOTONIC,
    MONOTONIC_RAW,
    OS_CLOCKS,
    REALTIME,
    ClockDomain,
    ClockMap,
    ClockSnapshot,
    LocalForm,
    Run,
    Zero,
    looks_like_unix_time,
)
from traceconv.model.columns import I32, I64, chunks, occurring
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
    """Return times of several clocks on trace time, ns.

    Args:
        ts: the times, ns.
        clocks: the number of the clock of each time.
        maps: the map of each clock to trace time.
    """
    if len(maps) == 1 and (clocks == next(iter(maps))).all():
        return next(iter(maps.values())).apply(ts)
    mapped = ts.copy()
    for clock, clock_map in maps.items():
        is_on_clock = clocks == int(clock)
        mapped[is_on_clock] = clock_map.apply(ts[is_on_clock])
    return mapped


def spans(trace: Trace) -> dict[int, tuple[int, int]]:
    """Return the first start and the last end (ns) on each clock that has events, by the number of the clock."""
    clock_of_track = clocks_of_tracks(trace)
    spans_of_clocks: dict[int, tuple[int, int]] = {}
    for name, table in trace.timed_tables():
        for rows in chunks(len(table.ts)):
            clocks, starts = clock_of_track[table.track[rows]], table.ts[rows]
            ends = starts + table.dur[rows] if name == "slices" else starts
            for clock in occurring(clocks):
                on_it = clocks == clock
                first, last = int(np.min(starts[on_it])), int(np.max(ends[on_it]))
                before = spans_of_clocks.get(clock, (first, last))
                spans_of_clocks[clock] = min(first, before[0]), max(last, before[1])
    return dict(sorted(spans_of_clocks.items()))


def zone_option(trace: Trace, domain: ClockDomain) -> str | None:
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
    definitions = (
        snap for snap in trace.snapshots if snap.clock == domain and not snap.assumed and is_definition(snap)
    )
    return next((snap for snap in definitions if snap.other.is_wall_clock), None)


def against_clock(
    trace: Trace, domain: ClockDomain, span: tuple[int, int] | None, constraint: ClockConstraint
) -> str | None:
    """Return the reason why a clock cannot be the one that --clock names, from its file and times; None if it can.

    Args:
        trace: the input.
        domain: the clock.
        span: the first and the last time on it, ns; None without events.
        constraint: the statement of the user.
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

    Args:
        trace: the input.
        option: the option that refers to that clock, for the message.

    Raises:
        UsageError: the input has no clock with times, or several.
    """
    name = trace.sources[0].name
    chosen = timed_clocks(trace, spans(trace)) or timed_clocks(trace, range(len(trace.clocks)))
    if len(chosen) == 1:
        return chosen[0]
    if not chosen:
        raise UsageError(f"{option}: {name} holds totals only, no times", hint=f"leave {name} out of {option}")
    clocks = tuple(trace.clocks[index].name for index in chosen)
    raise UsageError(
        f"{option}: {name} holds times of several clocks ({listed(clocks)})",
        hint=f"name an event on the clock you mean: --anchor '{name}:NAME#1.start=OTHER@TIME'",
    )

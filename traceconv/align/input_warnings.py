"""Warn about whole inputs: ranks of two jobs or without a host, no overlap with any other input.

An input that overlaps with no other one most often has local times that were read in a wrong zone. It is not moved: the
warning has the option to type.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from shlex import quote

from msgspec import Struct

from traceconv.align.constraint_parser import Constraints
from traceconv.align.domains import spans
from traceconv.align.wording import listed
from traceconv.model.clocks import ClockDomain, ClockMap, LocalTime, Run, Verdict
from traceconv.model.numbers import format_long
from traceconv.model.trace import Trace
from traceconv.model.track_table import TrackKind

_MINUTE_NS = 60 * 10**9
_HOUR_NS = 60 * _MINUTE_NS
_DAY_NS = 24 * _HOUR_NS
#: The offsets of zones from UTC that exist, ns: whole hours, and these others, in minutes (tz database, since 2010).
_OTHER_ZONES = (-570, -270, -210, -150, 210, 270, 330, 345, 390, 525, 570, 630, 690, 765, 825)
_ZONES = tuple(sorted((*(hours * _HOUR_NS for hours in range(-12, 15)), *(one * _MINUTE_NS for one in _OTHER_ZONES))))
#: From this many fitting zones on, they are not listed.
_MOST_ZONES = 4


# -- jobs and hosts ---------------------------------------------------------------------------------------------------


def warnings_of_jobs(traces: Sequence[Trace]) -> Iterator[tuple[int, str]]:
    """Yield a warning for each input that states another size of its job than the first one."""
    sources = enumerate(trace.sources[0] for trace in traces)
    stated = [(index, source) for index, source in sources if source.world_size is not None]
    for index, source in stated[1:]:
        _, first = stated[0]
        if source.world_size != first.world_size:
            yield (
                index,
                (
                    f"it is from a job of {source.world_size} ranks, and {first.name} from one of "
                    f"{first.world_size}: collectives of two jobs are not compared"
                ),
            )


def warnings_of_unnamed_hosts(traces: Sequence[Trace], walls: Sequence[ClockDomain]) -> Iterator[tuple[int, str]]:
    """Yield a warning for each rank whose input does not state its host, with the number of the input."""
    for index, (trace, wall) in enumerate(zip(traces, walls, strict=True)):
        if wall.owner and not trace.host and trace.sources[0].rank is not None:
            yield (
                index,
                (
                    "it states no name that identifies its host, so its clock may not be that of the other "
                    "ranks; if all are of one host: --same-machine"
                ),
            )


# -- inputs that overlap with no other one ----------------------------------------------------------------------------


class _OnTraceTime(Struct, frozen=True):
    """An input on trace time.

    Attributes:
        index: the number of the input.
        name: the name of the file.
        begin, end: its first and last time, ns.
        bound_ns: how wrong these can be, ns; 0 if not known.
        clock: the number of its first clock.
        local: the zone in which its local time was read; None if it is not placed by a local time.
    """

    index: int
    name: str
    begin: int
    end: int
    bound_ns: int
    clock: int
    local: LocalTime | None

    def gap(self, other: _OnTraceTime, shift: int = 0) -> int:
        """Return the distance of the two if this one is moved by `shift`, ns; 0 or less if they overlap."""
        return max(other.begin - self.end - shift, self.begin + shift - other.end)

    def meets(self, other: _OnTraceTime, shift: int) -> bool:
        """Return whether the two may overlap, within their bounds, if this one is moved by `shift` (ns)."""
        return self.gap(other, shift) <= self.bound_ns + other.bound_ns


def zone_text(ahead_ns: int) -> str:
    """Return a zone in the form of --tz, such as "+05:30"."""
    minutes = abs(ahead_ns) // _MINUTE_NS
    return f"{'-' if ahead_ns < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}" if minutes else "UTC"


def zone_behind(local: LocalTime, shift: int, within_ns: int) -> int | None:
    """Return the offset from UTC (ns) of the zone in which a local time would be later by `shift`; None without one."""
    ahead = min(_ZONES, key=lambda zone: abs(local.ahead_ns - zone - shift))
    fits = ahead != local.ahead_ns and abs(local.ahead_ns - ahead - shift) <= within_ns
    return ahead if fits else None


def local_time_of(trace: Trace, clock: int) -> LocalTime | None:
    """Return the zone in which the local time that places a clock was read; None if none places it."""
    return next((snap.local for snap in trace.snapshots if snap.clock == trace.clocks[clock] and snap.local), None)


class NoOverlap(str):
    """The warning for an input that overlaps with no other one.

    Attributes:
        told: the numbers of the inputs of which it tells what other zones of their local times would do.
        both: equal to that of the warning for the other input that says the same.
    """

    __slots__ = ("both", "told")
    told: frozenset[int]
    both: Hashable


def warnings_of_no_overlap(
    traces: Sequence[Trace], maps: Sequence[Mapping[int, ClockMap]], constraints: Constraints, without: set[int]
) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield a warning for each input that overlaps with no other one, with the numbers of the input and its clock.

    Args:
        traces: the inputs.
        maps: for each the maps of its clocks to trace time.
        constraints: the statements of the user, for the day.
        without: inputs to leave out, since their events are laid into others.
    """
    placed = [one for one in _placed(traces, maps) if one.index not in without]
    alone = [one for one in placed if len(placed) > 1 and all(one.gap(other) > 0 for other in placed if other != one)]
    for one in alone:
        others = [other for other in placed if other != one]
        if any(_of_one_process(one, other, traces, maps) for other in others):
            continue  # such as the cycles of a profiler's schedule
        near = min(others, key=one.gap)
        text = (
            f"it does not overlap in time with any other input, and is {format_long(one.gap(near))} away "
            f"from {near.name}: is it another run, or is its clock wrong?"
        )
        hints = {one.index: _hint(one, others, constraints)}
        for other in others:
            if other not in alone:
                hints[other.index] = _hint(other, [one], constraints, only_if_some=True)
        told = {index: hint for index, hint in hints.items() if hint}
        warning = NoOverlap(listed((text, *told.values()), "; "))
        warning.told = frozenset(told)
        warning.both = frozenset((one.name, near.name)), one.gap(near), tuple(told.values())
        yield (one.index, one.clock), warning


def _of_one_process(
    one: _OnTraceTime, other: _OnTraceTime, traces: Sequence[Trace], maps: Sequence[Mapping[int, ClockMap]]
) -> bool:
    """Return whether two inputs are of one tool in one process, on one clock as their files state it."""
    sides = [traces[side.index] for side in (one, other)]
    sources = [trace.sources[0] for trace in sides]
    pids = [{track.pid for track in trace.tracks if track.kind is TrackKind.PROCESS} - {None} for trace in sides]
    by_files = [maps[side.index][side.clock] for side in (one, other)]
    return (
        sources[0].format == sources[1].format
        and all(source.real_ids for source in sources)
        and bool(sides[0].host)
        and sides[0].host == sides[1].host
        and bool(pids[0] & pids[1])
        and sides[0].clocks[one.clock].name == sides[1].clocks[other.clock].name
        and all(clock_map.verdict is Verdict.OK and not clock_map.rests_on for clock_map in by_files)
    )


def _placed(traces: Sequence[Trace], maps: Sequence[Mapping[int, ClockMap]]) -> Iterator[_OnTraceTime]:
    for index, (trace, maps_of) in enumerate(zip(traces, maps, strict=True)):
        timed = [number for number in maps_of if trace.clocks[number].run is not Run.TOTALS]
        spanned = spans(trace)
        ends = [maps_of[number].at(end) for number in timed for end in spanned[number]]
        if ends:
            locals_ = [local for number in timed if (local := local_time_of(trace, number))]
            bound = max(maps_of[number].bound_ns or 0 for number in timed)
            name = trace.sources[0].name
            yield _OnTraceTime(index, name, min(ends), max(ends), bound, timed[0], locals_[0] if locals_ else None)


def _hint(
    one: _OnTraceTime, others: Sequence[_OnTraceTime], constraints: Constraints, *, only_if_some: bool = False
) -> str | None:
    """Return how the local time of an input was read, and the options with which it would overlap with another one.

    Returns:
        None if it is not placed by a local time; with `only_if_some`, also if there are no such options.
    """
    if one.local is None:
        return None
    options, zone = _options(one, one.local, others, constraints.dates.get(one.index)), zone_text(one.local.ahead_ns)
    if options is not None:
        return f"the local time of {one.name} was read as {zone}: {options} would make them overlap"
    return (
        None
        if only_if_some
        else f"the local time of {one.name} was read as {zone}, and no other zone would make them overlap"
    )


def _options(one: _OnTraceTime, local: LocalTime, others: Sequence[_OnTraceTime], day: date | None) -> str | None:
    """Return the options with a day or zones with which an input would overlap with another one.

    Return None if there are none.
    """
    for days in (-1, 1):
        if day is not None and any(one.meets(other, days * _DAY_NS) for other in others):
            return f"--date {quote(one.name)}={day + timedelta(days)}"
    zones = [
        ahead
        for ahead in _ZONES
        if ahead != local.ahead_ns and any(one.meets(other, local.ahead_ns - ahead) for other in others)
    ]
    if len(zones) > _MOST_ZONES:
        return f"--tz {quote(one.name)}=ZONE with any of {len(zones)} zones"
    options = tuple(f"--tz {quote(one.name)}={zone_text(ahead)}" for ahead in zones)
    return listed(options, " or ") if options else None

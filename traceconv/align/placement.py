"""Complete the maps to trace time: offsets of the user, tracks without times, totals; refuse what nothing relates.

It also warns about whole inputs: ranks of two jobs or without a host, and times that overlap with no other input, with
the zones in which local times would.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from shlex import quote

from msgspec import Struct
from msgspec.structs import replace

from traceconv.align.constraints import ClockConstraint, ClockKind, Constraints
from traceconv.align.domains import UNNAMED, Key, against_clock, zone_advice
from traceconv.align.inputs import ClockInput, Inputs, Maps, Placed, Policy, is_related
from traceconv.errors import InconsistentClocks, UnrelatedClocks, UsageError
from traceconv.io.shown import listed, quoted
from traceconv.model.clocks import (
    DRIFT_UNIT,
    MONOTONIC,
    MOST_DRIFT,
    SINCE_BOOT,
    ClockDomain,
    ClockMap,
    LocalTime,
    Provenance,
    Run,
    Step,
    Verdict,
    Zero,
)
from traceconv.model.numbers import DAY_NS, LIMIT_NS, MINUTE_NS, format_drift, format_long
from traceconv.model.trace import Trace
from traceconv.model.track_table import TrackKind


def place(inputs: Inputs, decided: Placed, policy: Policy) -> Placed:
    """Return all clocks on trace time.

    Args:
        decided: those with times that are related to trace time.
        policy: whether durations are compared, and what to do with a log that they do not place for certain.

    Raises:
        UnrelatedClocks: nothing relates the clocks of two inputs.
        InconsistentClocks: the statements about a clock make it drift more than any clock does.
        UsageError: a time is farther from zero than can be written.
    """
    maps = _with_synthetic(inputs, decided.maps)
    for clock in inputs.clocks:
        if clock.offset is not None:
            maps[clock.key] = maps.get(clock.key, clock.correction).then(clock.offset)
    placed = replace(decided, maps=maps)
    if policy.estimate and any(not is_related(inputs, maps, index) for index in range(len(inputs.traces))):
        from traceconv.align.duration_layout import with_durations  # few merges need it

        placed = with_durations(inputs, placed, policy)
    placed = replace(placed, maps=_with_totals(inputs, placed.maps))
    _refuse_unrelated(inputs, placed, policy)
    _refuse_far(inputs, placed.maps)
    return placed


def _with_synthetic(inputs: Inputs, maps: Maps) -> dict[Key, ClockMap]:
    """Return the maps, also of tracks without times: they start with the tracks of their file that have times."""
    step, placed = Step("no times in the file: placed at its first timed event", Provenance.ASSUMED), dict(maps)
    for lost in inputs.clocks:
        if lost.key not in maps and lost.domain.synthetic:
            starts = [maps[clock.key].at(clock.span[0]) for clock in inputs.clocks_of(lost.index) if clock.key in maps]
            if starts:
                placed[lost.key] = ClockMap(min(starts), 0, (step,))
    return placed


def _with_totals(inputs: Inputs, maps: Maps) -> Maps:
    """Return the maps, also of tables of totals: they start where everything with times does."""
    totals = [clock.key for clock in inputs.clocks if clock.domain.run is Run.TOTALS]
    timed = [clock for clock in inputs.clocks if clock.key in maps and clock.domain.run is not Run.TOTALS]
    if not timed or not totals:
        return maps
    step = Step("totals have no times: placed at the start of the trace", Provenance.ASSUMED)
    start = min(maps[clock.key].at(clock.span[0]) for clock in timed)
    return {**maps, **dict.fromkeys(totals, ClockMap(start, 0, (step,)))}


def _refuse_unrelated(inputs: Inputs, placed: Placed, policy: Policy) -> None:
    """Refuse the first input with a clock that has no map, with advice on what would relate it."""
    lost = next((clock for clock in inputs.clocks if clock.key not in placed.maps), None)
    if lost is None:
        return
    clock = lost.describe()
    other = next(clock for clock in inputs.clocks if clock.key in placed.maps)
    target = other.describe() if other.domain == inputs.target else inputs.target.describe()
    if other.index == lost.index:
        raise UnrelatedClocks(
            f"{lost.name} holds times of two unrelated clocks: {target}, and {clock}",
            hint="split it where the second recording starts, and merge the parts with --offset",
        )
    form = lost.trace.sources[0].form
    duplicates = [side for side in inputs.clocks if inputs.are_one_recording(side.index, lost.index)]
    duplicate = next((side for side in duplicates if side.index != lost.index), None)
    if duplicate is not None and form is not None and not form.timed:
        raise UnrelatedClocks(
            f"{duplicate.name} and {lost.name} have no common clock: both are forms of one recording, in which the "
            f"times differ ({duplicate.name}: {duplicate.describe()}; {lost.name}: {clock})",
            hint="leave one of the two out",
            pairs=placed.pairs,
        )
    estimates = [pair.estimate for pair in placed.pairs if lost.index in (pair.a.index, pair.b.index)]
    tried = [estimate for estimate in estimates if estimate.verdict is not Verdict.OK]  # the others are of lost inputs
    one_run = not policy.same_run and any(estimate.verdict is Verdict.UNVERIFIED for estimate in tried)
    of_one_format = other.trace.sources[0].format == lost.trace.sources[0].format
    advice = (
        one_machine_advice(other, lost),
        "if both are of one run: --same-run" if one_run else "",
        zone_advice(lost.trace, lost.domain),
        f"`traceconv clocks {quoted(inputs.paths)}` lists what would help",
        f"if you know the offset, --offset {quote(lost.name)}=TIME adds it to all times of that file",
        "--on-ambiguous separate draws it from the start of the others on, and marks it",
        "if they are two runs, `traceconv diff` compares them" if of_one_format else "",
    )
    events = f", and their events do not determine the offset: {tried[0].reason}" if tried else ""
    moved = listed([clock.name for clock in (other, lost) if clock.offset is not None], " and ")
    events = f", and events are not compared where --offset moves a file ({moved})" if moved and not tried else events
    raise UnrelatedClocks(
        f"{other.name} and {lost.name} have no common clock{events} ({other.name}: {target}; {lost.name}: {clock})",
        hint=listed(filter(None, advice), "; "),
        pairs=placed.pairs,
        verdict=Verdict.UNVERIFIED.value if one_run else "",
    )


def _refuse_far(inputs: Inputs, maps: Maps) -> None:
    """Refuse a clock with a greater drift than any clock has, and times that cannot be written."""
    for clock in inputs.clocks:
        if clock.key not in maps:
            continue
        drift = max(abs(line.drift) for line in maps[clock.key].lines)
        if drift > MOST_DRIFT:
            raise InconsistentClocks(
                f"{clock.name}: the known relations of its clock contradict each other: its drift would be "
                f"{format_drift(drift * DRIFT_UNIT * 1e6)}",
                hint="leave a file out, or place this one with --offset",
            )
        if any(abs(maps[clock.key].at(end)) > LIMIT_NS for end in clock.span):
            raise UsageError(
                f"{clock.name}: after the move, its times are more than 146 years from zero",
                hint="check --offset and the unit of the times (-O ts_unit=...)",
            )


def one_machine_advice(first: ClockInput, second: ClockInput) -> str | None:
    """Return what the user can state if two inputs are of one machine; None if that would not relate them."""
    sides, domain, other_domain = (first, second), first.domain, second.domain
    begin, end = (pick(side.span[at] for side in sides) for at, pick in ((0, max), (1, min)))
    named = {side.counted.host for side in sides if side.counted.name == MONOTONIC.name} - {"", UNNAMED}
    if begin <= end and len(named) < len(sides):
        machine = next(iter(named), UNNAMED)
        missing = [side for side in sides if (side.counted.name, side.counted.host) != (MONOTONIC.name, machine)]
        if missing and all(_may_be_monotonic(side, machine) for side in missing):
            options = [f"--clock {quote(side.name)}=monotonic" for side in missing]
            if machine != UNNAMED:
                options = [f"--clock {quote(side.name)}=monotonic@{quote(machine)}" for side in missing]
            return f"if both count the monotonic clock of one machine: {listed(options, ' ')}"
    hosts = {side.counted.host for side in sides} - {""}
    same_boot = domain.zero in SINCE_BOOT and domain.zero is other_domain.zero and len(hosts) < len(sides)
    return "if both are of one machine, and it was not restarted in between: --same-machine" if same_boot else None


def _may_be_monotonic(side: ClockInput, machine: str) -> bool:
    """Return whether a clock can be CLOCK_MONOTONIC of a machine, by what its file and the user state."""
    may_be = side.domain.zero in (Zero.BOOT, Zero.UNKNOWN) and side.domain.run is not Run.WALL
    if not may_be or (side.by_user is not None and side.counted.name != MONOTONIC.name):
        return False
    stated = ClockConstraint(ClockKind.MONOTONIC, "" if machine == UNNAMED else machine)
    return against_clock(side.trace, side.domain, side.span, stated) is None


# -- Warn about whole inputs: ranks of two jobs or without a host, no overlap with any other input -------------------

#: The offsets of zones from UTC that exist, ns: whole hours, and these others, in minutes (tz database, since 2010).
_OTHER_ZONES = (-570, -270, -210, -150, 210, 270, 330, 345, 390, 525, 570, 630, 690, 765, 825)
_ZONES = sorted(minutes * MINUTE_NS for minutes in (*range(-12 * 60, 15 * 60, 60), *_OTHER_ZONES))
#: From this many fitting zones on, they are not listed.
_MOST_ZONES = 4


def warnings_of_jobs(traces: Sequence[Trace]) -> Iterator[tuple[int, str]]:
    """Yield a warning for each input that states another size of its job than the first one."""
    sources = enumerate(trace.sources[0] for trace in traces)
    stated = [(index, source) for index, source in sources if source.world_size is not None]
    for index, source in stated[1:]:
        _, first = stated[0]
        if source.world_size != first.world_size:
            text = f"it is from a job of {source.world_size} ranks, and {first.name} from one of {first.world_size}"
            yield index, f"{text}: collectives of two jobs are not compared"


def warnings_of_unnamed_hosts(traces: Sequence[Trace], walls: Sequence[ClockDomain]) -> Iterator[tuple[int, str]]:
    """Yield a warning for each rank whose input does not state its host, with the number of the input."""
    for index, (trace, wall) in enumerate(zip(traces, walls, strict=True)):
        if wall.owner and not trace.host and trace.sources[0].rank is not None:
            text = "it states no name that identifies its host, so its clock may not be that of the other ranks"
            yield index, f"{text}; if all are of one host: --same-machine"


class _OnTraceTime(Struct, frozen=True):
    """An input on trace time."""

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
    minutes = abs(ahead_ns) // MINUTE_NS
    return f"{'-' if ahead_ns < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}" if minutes else "UTC"


def zone_behind(local: LocalTime, shift: int, within_ns: int) -> int | None:
    """Return the offset from UTC (ns) of the zone in which a local time would be later by `shift`; None without one."""
    ahead = min(_ZONES, key=lambda zone: abs(local.ahead_ns - zone - shift))
    fits = ahead != local.ahead_ns and abs(local.ahead_ns - ahead - shift) <= within_ns
    return ahead if fits else None


def local_time_of(trace: Trace, clock: int) -> LocalTime | None:
    """Return the zone in which the local time that places a clock was read; None if none places it."""
    return next((snap.local for snap in trace.snapshots if snap.clock == trace.clocks[clock] and snap.local), None)


class NoOverlap(Struct, frozen=True):
    """The warning for an input that overlaps with no other one.

    Attributes:
        told: the numbers of the inputs of which it tells what other zones of their local times would do.
        gap: equal to that of the warning for the other input that says the same.
    """

    text: str
    told: frozenset[int]
    gap: Hashable

    def __str__(self) -> str:
        return self.text


def warnings_of_no_overlap(
    traces: Sequence[Trace], maps: Sequence[Mapping[int, ClockMap]], constraints: Constraints, without: set[int]
) -> Iterator[tuple[Key, NoOverlap]]:
    """Yield a warning for each input that overlaps with no other one, with the numbers of the input and its clock.

    Args:
        maps: for each the maps of its clocks to trace time.
        without: inputs to leave out, since their events are laid into others.
    """
    placed = [side for side in _placed(traces, maps) if side.index not in without]
    alone = [side for side in placed if all(side.gap(other) > 0 for other in placed if other != side)]
    for side in alone if len(placed) > 1 else ():
        others = [other for other in placed if other != side]
        if any(_of_one_process(side, other, traces, maps) for other in others):
            continue  # such as the cycles of a profiler's schedule
        near = min(others, key=side.gap)
        text = (
            f"it does not overlap in time with any other input, and is {format_long(side.gap(near))} away "
            f"from {near.name}: is it another run, or is its clock wrong?"
        )
        hints = {side.index: _hint(side, others, constraints)}
        for other in others:
            if other not in alone:
                hints[other.index] = _hint(other, [side], constraints, only_if_some=True)
        told = {index: hint for index, hint in hints.items() if hint}
        gap = frozenset((side.name, near.name)), side.gap(near), tuple(told.values())
        yield (side.index, side.clock), NoOverlap(listed((text, *told.values()), "; "), frozenset(told), gap)


def _of_one_process(
    first: _OnTraceTime, second: _OnTraceTime, traces: Sequence[Trace], maps: Sequence[Mapping[int, ClockMap]]
) -> bool:
    """Return whether two inputs are of one tool in one process, on one clock as their files state it."""
    sides = [traces[side.index] for side in (first, second)]
    sources = [trace.sources[0] for trace in sides]
    pids = [{track.pid for track in trace.tracks if track.kind is TrackKind.PROCESS} - {None} for trace in sides]
    by_files = [maps[side.index][side.clock] for side in (first, second)]
    return (
        sources[0].format == sources[1].format
        and all(source.real_ids for source in sources)
        and bool(sides[0].host)
        and sides[0].host == sides[1].host
        and bool(pids[0] & pids[1])
        and sides[0].clocks[first.clock].name == sides[1].clocks[second.clock].name
        and all(clock_map.verdict is Verdict.OK and not clock_map.rests_on for clock_map in by_files)
    )


def _placed(traces: Sequence[Trace], maps: Sequence[Mapping[int, ClockMap]]) -> Iterator[_OnTraceTime]:
    for index, (trace, maps_of) in enumerate(zip(traces, maps, strict=True)):
        timed = [number for number in maps_of if trace.clocks[number].run is not Run.TOTALS]
        ends = [maps_of[number].at(end) for number in timed for end in trace.spans[number]]
        if ends:
            locals_ = [local for number in timed if (local := local_time_of(trace, number))]
            bound = max(maps_of[number].bound_ns or 0 for number in timed)
            name = trace.sources[0].name
            yield _OnTraceTime(index, name, min(ends), max(ends), bound, timed[0], locals_[0] if locals_ else None)


def _hint(
    side: _OnTraceTime, others: Sequence[_OnTraceTime], constraints: Constraints, *, only_if_some: bool = False
) -> str | None:
    """Return how the local time of an input was read, and the options with which it would overlap with another one."""
    if side.local is None:
        return None
    options = _options(side, side.local, others, constraints.dates.get(side.index))
    read = f"the local time of {side.name} was read as {zone_text(side.local.ahead_ns)}"
    if options is not None:
        return f"{read}: {options} would make them overlap"
    return None if only_if_some else f"{read}, and no other zone would make them overlap"


def _options(side: _OnTraceTime, local: LocalTime, others: Sequence[_OnTraceTime], day: date | None) -> str | None:
    """Return the options with a day or zones with which an input would overlap with another one; None without any."""
    for days in (-1, 1):
        if day is not None and any(side.meets(other, days * DAY_NS) for other in others):
            return f"--date {quote(side.name)}={day + timedelta(days)}"
    zones = [zone for zone in _ZONES if any(side.meets(other, local.ahead_ns - zone) for other in others)]
    zones = [zone for zone in zones if zone != local.ahead_ns]
    if len(zones) > _MOST_ZONES:
        return f"--tz {quote(side.name)}=ZONE with any of {len(zones)} zones"
    options = [f"--tz {quote(side.name)}={zone_text(zone)}" for zone in zones]
    return listed(options, " or ") if options else None

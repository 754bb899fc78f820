"""Gather what files and user state about the clocks of inputs: relations, drifts, zones, days, repeated readings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from math import ceil
from shlex import quote

from msgspec import Struct
from msgspec.structs import replace

from traceconv.align.anchors import (
    Instant,
    Relation,
    anchored,
    disagreement,
    far_away,
    graph_of,
    instant_of,
    without_guesses,
)
from traceconv.align.constraints import ClockConstraint, ClockKind, Constraints, zone_ns
from traceconv.align.domains import (
    STATED_CLOCKS,
    UNNAMED,
    ClockWarning,
    Machine,
    against_clock,
    base_of,
    ends_of,
    is_definition,
    main_clock,
)
from traceconv.align.geometry import line_through
from traceconv.errors import InconsistentClocks, UsageError
from traceconv.families.importer import Importer
from traceconv.families.registry import importer_class, option_names
from traceconv.io.shown import listed
from traceconv.model.clocks import (
    DRIFT_UNIT,
    REALTIME,
    SLEW_DRIFT,
    ClockDomain,
    ClockMap,
    ClockSnapshot,
    LocalForm,
    LocalTime,
    Provenance,
    Run,
    Step,
    Verdict,
    Zero,
    as_one,
)
from traceconv.model.numbers import DAY_NS, format_drift, format_time
from traceconv.model.trace import Trace

#: The distance between the clock of perf and CLOCK_MONOTONIC at boot, ns, at most. It grows, since the kernel slews
#: only the latter, by up to SLEW_DRIFT (on a virtual machine without NTP: 10.9 ms after 8.2 hours, 0.4 ppm).
_PERF_APART_AT_BOOT_NS = 10_000_000


class Stated(Struct, frozen=True):
    """The inputs, with the statements of the user.

    Attributes:
        traces: the inputs, with private domains marked as their own and the snapshots that follow from the constraints.
        relations: edges for `ClockGraph.relate`.
        corrections: maps that take out stated drifts, by input and clock; applied before all others.
        warnings: doubts about constraints, each with its clock.
        notes: other remarks, by input.
    """

    traces: list[Trace]
    relations: list[Relation] = []
    corrections: dict[int, dict[int, ClockMap]] = {}
    instants: list[Instant] = []
    warnings: list[ClockWarning] = []
    machines: list[Machine] = []
    walls: list[ClockDomain] = []
    notes: dict[int, list[str]] = {}


def state(traces: Sequence[Trace], constraints: Constraints, walls: Sequence[ClockDomain]) -> Stated:
    """Return the inputs with the constraints of the user.

    Args:
        traces: the inputs, as read with `importer_options`, with private domains marked as their own.
        constraints: the statements; offsets must agree with anchors.

    Raises:
        UsageError: a constraint does not fit its input.
        InconsistentClocks: the constraints contradict themselves or the files.
    """
    if not (constraints.anchors or constraints.drifts or constraints.clocks or constraints.zones or constraints.dates):
        return Stated(list(traces), walls=list(walls))
    dated = [_with_date(trace, index, constraints, walls[index]) for index, trace in enumerate(traces)]
    clocked = _with_clocks(dated, constraints, walls)
    instants = [instant_of(anchor, clocked) for anchor in constraints.anchors]
    corrections = _corrections(clocked, constraints, instants)
    corrected = [_corrected(trace, corrections.get(index, {})) for index, trace in enumerate(clocked)]
    anchored_traces, relations, dropped = anchored(corrected, instants, corrections, constraints.offsets)
    warnings = [*_unknown_machines(dated, constraints), *far_away(clocked, instants), *dropped]
    return Stated(anchored_traces, relations, corrections, instants, warnings, walls=list(walls))


def moved_by_user(constraints: Constraints) -> dict[int, ClockMap]:
    """Return for each input with an --offset its map; the bound is that of the digits."""
    step = Step("--offset", Provenance.USER)
    return {
        index: ClockMap(ns, constraints.offsets_within.get(index, 0), (step,), Verdict.ASSUMED)
        for index, ns in constraints.offsets.items()
    }


def importer_options(constraints: Constraints, index: int, cls: type[Importer]) -> dict[str, str]:
    """Return the options that hand --tz and --date of an input to its importer, if it takes them."""
    zone, day = constraints.zones.get(index), constraints.dates.get(index)
    known = option_names(cls)
    options = {"utc_offset": zone} if zone is not None and "utc_offset" in known else {}
    if day is not None and "date" in known:
        return options | {"date": day.isoformat()}
    return options | {"year": str(day.year)} if day is not None and "year" in known else options


def _with_date(trace: Trace, index: int, constraints: Constraints, wall: ClockDomain) -> Trace:
    """Return an input with its local times related to the wall clock of its host, unless its importer has done so."""
    zone, day = constraints.zones.get(index), constraints.dates.get(index)
    if zone is None and day is None:
        return trace
    option, other = ("--date", "--tz") if zone is None else ("--tz", "--date")
    source = trace.sources[0]
    handed = importer_options(constraints, index, importer_class(source.format))
    if handed:
        if day is not None and not {"date", "year"} & set(handed):
            raise UsageError(f"--date: {source.name} ({source.format}) states its date itself", hint="leave it out")
        if not any(domain.is_wall_clock for domain in (*trace.clocks, *ends_of(trace))):
            raise UsageError(
                f"{option} does not give {source.name} ({source.format}) times since 1970",
                hint=f"it holds no local time, or {other} is needed, too",
            )
        return trace
    domain = trace.clocks[main_clock(trace, option)]
    if domain.local is None:
        raise UsageError(
            f"{option}: {source.name} ({source.format}) has no local times, since they count {domain.describe()}",
            hint="--offset and --anchor place any file",
        )
    snapshot = _midnight(domain, wall, zone, day, source.name)
    return trace.with_tables(snapshots=[*trace.snapshots, snapshot])


def _midnight(domain: ClockDomain, wall: ClockDomain, zone: str | None, day: date | None, name: str) -> ClockSnapshot:
    """Return the snapshot of the zero of a domain of local times."""
    if domain.local is LocalForm.YEARLESS:
        raise UsageError(f"--date: the times of {name} have a day but no year, so a date cannot complete them")
    without_date = domain.local is LocalForm.TIME_OF_DAY
    if zone is None or (day is None and without_date):
        missing = "--tz" if zone is None else "--date"
        raise UsageError(f"{name}: {missing} is needed, too, since its times count {domain.describe()}")
    if day is not None and not without_date:
        raise UsageError(f"--date: the times of {name} have a date already", hint="leave it out")
    start = (day - date(1970, 1, 1)).days * DAY_NS if day is not None else 0
    method = f"local time read as {zone}, from {day} on" if day else f"local time read as {zone}"
    local = LocalTime(zone_ns(zone))
    return ClockSnapshot(domain, 0, wall, start - local.ahead_ns, 0, method, local, Provenance.ASSUMED)


def _with_clocks(traces: Sequence[Trace], constraints: Constraints, walls: Sequence[ClockDomain]) -> list[Trace]:
    """Return the inputs with the clocks that --clock states, each checked against those before it."""
    named = {domain.host for trace in traces for domain in trace.clocks if domain.host}
    machine = UNNAMED if not named else named.pop() if len(named) == 1 else ""
    with_clocks = list(traces)
    for index, constraint in sorted(constraints.clocks.items()):
        with_clocks[index] = _with_clock(with_clocks, index, constraint, walls[index], machine)
    if any(constraint.kind is ClockKind.PERF for constraint in constraints.clocks.values()):
        return [_with_perf_clock(trace, machine) for trace in with_clocks]
    return with_clocks


def _unknown_machines(traces: Sequence[Trace], constraints: Constraints) -> Iterator[ClockWarning]:
    """Yield a warning for each machine of --clock that no input names while others are named: it may be mistyped."""
    named = {domain.machine for trace in traces for domain in trace.clocks if domain.machine}
    for index, constraint in sorted(constraints.clocks.items()):
        if constraint.machine and named and constraint.machine not in named:
            text = f"--clock names the machine {constraint.machine}, but inputs name {listed(sorted(named))} only"
            yield (index, main_clock(traces[index], "--clock")), f"{text}: is the name right?"


def _with_clock(
    traces: Sequence[Trace], index: int, constraint: ClockConstraint, wall: ClockDomain, only_machine: str
) -> Trace:
    """Return an input with the clock that the user states."""
    trace = traces[index]
    number = main_clock(trace, "--clock")
    domain, name = trace.clocks[number], trace.sources[0].name
    if constraint.kind is ClockKind.NONE:
        order = ClockDomain(f"order of {name}", Zero.UNKNOWN, Run.NONE, domain.resolution_ns, "", f"{index}:{name}")
        clocks = [order if clock == domain else clock for clock in trace.clocks]
        kept = [snap for snap in trace.snapshots if domain not in (snap.clock, snap.other)]
        return trace.with_tables(clocks=clocks, snapshots=kept)
    span, base = trace.spans.get(number), base_of(trace, domain)
    _refuse_clock(against_clock(trace, domain, span, constraint), name, constraint)
    if constraint.kind is ClockKind.REALTIME and (domain.is_wall_clock or base is not None):
        return trace if base is None else _with_word_for_size(trace, base)
    stated = _stated_clock(constraint, domain, wall, only_machine, name)
    if domain.same_timebase(stated):
        return trace
    apart = 0
    if domain.name == STATED_CLOCKS[ClockKind.PERF].name and constraint.kind is ClockKind.MONOTONIC:
        slewed_ms = ceil(SLEW_DRIFT * max(span or (0, 0)) / 1e6)
        apart = _PERF_APART_AT_BOOT_NS + slewed_ms * 1_000_000
    snapshot = _by_user(domain, stated, apart, _is_clock(stated, apart))
    first = span[0] if span else 0
    wrong = disagreement(replace(snapshot, ts=first, other_ts=first), [without_guesses(earlier) for earlier in traces])
    _refuse_clock(wrong and f"its first time is {wrong[1]}: was the machine restarted in between?", name, constraint)
    return trace.with_tables(snapshots=[*trace.snapshots, snapshot])


def _is_clock(stated: ClockDomain, apart_ns: int = 0) -> str:
    """Return the method of a clock that --clock states, for the receipt; perf's is off by up to `apart_ns`."""
    if apart_ns:
        return f"--clock states {stated.name} (perf's clock may be {format_time(apart_ns)} away from it at this uptime)"
    machine = "one machine" if stated.machine == UNNAMED else stated.machine
    return f"--clock states {stated.name} of {machine}" if machine else f"--clock states {stated.name}"


def _by_user(domain: ClockDomain, stated: ClockDomain, bound_ns: int, method: str) -> ClockSnapshot:
    """Return the snapshot that two clocks are the same, as the user states."""
    return ClockSnapshot(domain, 0, stated, 0, bound_ns, method, provenance=Provenance.USER)


def _with_word_for_size(trace: Trace, base: ClockSnapshot) -> Trace:
    """Return an input without the assumption of its importer, by the size of the times, about what the user states."""
    if base.bound_ns is not None or base.ts != base.other_ts:
        return trace
    exact = replace(base, bound_ns=0, method=_is_clock(REALTIME), provenance=Provenance.USER)
    return trace.with_tables(snapshots=[exact if snap is base else snap for snap in trace.snapshots])


def _stated_clock(
    constraint: ClockConstraint, domain: ClockDomain, wall: ClockDomain, only_machine: str, name: str
) -> ClockDomain:
    """Return the clock domain that --clock names."""
    machine = constraint.machine or domain.host or only_machine
    if constraint.kind is ClockKind.REALTIME:
        return replace(wall, machine=constraint.machine or domain.machine)
    if not machine:
        raise UsageError(
            f"--clock: the inputs name several machines, and {name} may be from any of them",
            hint=f"name it: --clock {quote(name)}={constraint.kind}@HOST",
        )
    return replace(STATED_CLOCKS[constraint.kind], machine=machine)


def _refuse_clock(against: str | None, name: str, constraint: ClockConstraint) -> None:
    """Raise InconsistentClocks if there is a reason against a --clock."""
    if against is not None:
        stated = f"{constraint.kind}@{constraint.machine}" if constraint.machine else str(constraint.kind)
        raise InconsistentClocks(
            f"the clock of {name} cannot be {stated}: {against}", hint="leave --clock out, or use --offset or --anchor"
        )


def _with_perf_clock(trace: Trace, only_machine: str) -> Trace:
    """Return an input with its perf clock related to the one that --clock states for other files."""
    wanted = STATED_CLOCKS[ClockKind.PERF]
    more = [
        _by_user(domain, replace(wanted, machine=machine), 0, "--clock: recorded by perf")
        for domain in trace.clocks
        if domain.name == wanted.name and (machine := domain.host or only_machine)
    ]
    return trace.with_tables(snapshots=[*trace.snapshots, *more])


def _corrections(
    traces: Sequence[Trace], constraints: Constraints, instants: Sequence[Instant]
) -> dict[int, dict[int, ClockMap]]:
    """Return the maps that take out stated drifts, by input and clock.

    A drift holds for all files that count the same clock. The map leaves the time of a reading or an anchor of that
    clock as it is, or without one the first time of the file that the drift is stated for.
    """
    corrections: dict[int, dict[int, ClockMap]] = {}
    for index, drift in constraints.drifts.items():
        number = main_clock(traces[index], "--drift")
        domain = traces[index].clocks[number]
        _refuse_other_drift(traces, traces[index], domain, drift)
        same = {  # the files that count the same clock; a drift of the wall clock is of that file alone
            (input, clock): counted
            for input, trace in enumerate(traces)
            for clock, counted in enumerate(trace.clocks)
            if ((input, clock) == (index, number) if domain.is_wall_clock else counted.same_timebase(domain))
        }
        at = [ts for instant in instants for key, ts in instant.sides if key in same]
        read = [snap for trace in traces for snap in trace.snapshots if snap.clock in same.values()]
        at += [snap.ts for snap in read if not is_definition(snap)]
        at += [traces[index].spans.get(number, (0, 0))[0]]
        clock_map = ClockMap(0, 0, (Step("--drift", Provenance.USER),), Verdict.ASSUMED, drift, at[0])
        for input, clock in same:
            if corrections.setdefault(input, {}).setdefault(clock, clock_map).drift != drift:
                name = traces[index].sources[0].name
                raise InconsistentClocks(
                    f"--drift: {name} counts {domain.name}, but another drift is given for another file on that clock",
                    hint="give the drift of a clock for one file only: it holds for all files on that clock",
                )
    return corrections


def _corrected(trace: Trace, corrections: Mapping[int, ClockMap]) -> Trace:
    """Return the input with the readings of its clocks moved by the maps that take out stated drifts."""
    by_domain = {trace.clocks[number]: clock_map for number, clock_map in corrections.items()}
    moved = [
        snap if is_definition(snap) else replace(snap, ts=by_domain.get(snap.clock, ClockMap()).at(snap.ts))
        for snap in trace.snapshots
    ]
    return trace.with_tables(snapshots=moved) if by_domain else trace


def _refuse_other_drift(traces: Sequence[Trace], trace: Trace, domain: ClockDomain, drift: int) -> None:
    """Raise InconsistentClocks if repeated readings of the clock beside the wall clock exclude a drift."""
    names = [snap.other for snap in trace.snapshots if snap.clock == domain and snap.provenance is Provenance.USER]
    read = [
        snap
        for reading in traces
        for snap in reading.snapshots
        if any(snap.clock.same_timebase(name) for name in (domain, *names))
        and snap.other.is_wall_clock
        and snap.bound_ns is not None
        and not (snap.assumed or is_definition(snap))
    ]
    read.sort(key=lambda snap: (snap.ts, snap.other_ts, snap.bound_ns))
    if not read or read[0].ts == read[-1].ts:
        return
    first, last = read[0], read[-1]
    passed = last.ts - first.ts
    ppm = ((last.other_ts - first.other_ts) / passed - 1) * 1e6
    within = ((first.bound_ns or 0) + (last.bound_ns or 0) + 1) / passed * 1e6
    stated = drift * DRIFT_UNIT * 1e6
    if abs(stated - ppm) > within:
        name = trace.sources[0].name
        raise InconsistentClocks(
            f"--drift states {format_drift(stated)} for the clock of {name}, but its readings ("
            f"{first.method}) show {format_drift(ppm)}, within ±{within:.3f} ppm",
            hint="leave --drift out: the readings are used",
        )


# -- Check repeated snapshots of two clocks against each other, and replace them by a line ---------------------------

#: Two clocks of a snapshot, in an order that is the same for all files.
Clocks = tuple[ClockDomain, ClockDomain]


class _Reading(Struct, frozen=True):
    """A snapshot, with its two clocks in a fixed order."""

    ts: int
    other_ts: int
    bound_ns: int
    step: Step
    file: str

    def ahead(self) -> int:
        """Return by how much the second clock is ahead of the first, ns."""
        return self.other_ts - self.ts


def with_readings_of_set_clocks(traces: Sequence[Trace]) -> tuple[list[Trace], dict[Clocks, str]]:
    """Return the traces with wider bounds for readings of clocks that were set or stood still between the readings.

    The time of the step is not known. So each reading that no common line fits is exact only to the size of the step.
    The order of the files does not matter.

    Returns:
        The traces, and a warning for each two such clocks.
    """
    moved: dict[Clocks, int] = {}
    words: dict[Clocks, str] = {}
    for clocks, group in _groups(traces).items():
        if len(group) > 1 and _line(group, ()) is None:
            least, most = min(group, key=_Reading.ahead), max(group, key=_Reading.ahead)
            files = tuple(dict.fromkeys(reading.file for reading in group if reading in (least, most)))
            moved[clocks] = most.ahead() - least.ahead()
            words[clocks] = (
                f"{clocks[0].name} and {clocks[1].name} moved apart by {format_time(moved[clocks])} between "
                f"the readings in {listed(files, ' and ')}, more than clocks drift: one of them was set or "
                "stood still, so the bound in between is as wide"
            )

    def less_sure(snap: ClockSnapshot) -> ClockSnapshot:
        more = moved.get(_clocks(snap)) if _is_reading(snap) else None
        if more is None:
            return snap
        return replace(snap, bound_ns=(snap.bound_ns or 0) + more, method=f"{snap.method} (set in between)")

    if not moved:
        return list(traces), words
    return [trace.with_tables(snapshots=list(map(less_sure, trace.snapshots))) for trace in traces], words


def warnings_of_set_clocks(
    traces: Sequence[Trace], relations: Sequence[Relation], words: Mapping[Clocks, str]
) -> Iterator[ClockWarning]:
    """Yield a warning for each input whose events are related to others through clocks that were set."""
    for clocks, text in words.items():
        graph = graph_of(clocks, traces, [edge for edge in relations if (edge.clock, edge.other) != clocks])
        reached = {domain for clock in clocks if not clock.is_wall_clock for domain in graph.maps_to(clock)}
        for index, trace in enumerate(traces):
            for number in trace.spans:
                if trace.clocks[number] in reached and not trace.clocks[number].is_wall_clock:
                    yield (index, number), text


def lines_of_readings(traces: Sequence[Trace]) -> tuple[list[Trace], list[Relation]]:
    """Return a line with a drift for each two clocks that were read several times, each time within a bound.

    The line replaces the snapshots in the traces. Its bound holds for all events on the first clock, and at least from
    one span of the readings before the first reading to one span after the last.

    Raises:
        InconsistentClocks: a stated drift leaves no line through the readings.
    """
    relations: dict[Clocks, Relation] = {}
    for clocks, group in _groups(traces).items():
        if len(group) < 2:
            continue
        clock_map = _line(group, [end for trace in traces for end in _ends(trace, clocks[0])])
        if clock_map is None:
            files = tuple(sorted({reading.file for reading in group}))
            text = f"{listed(files)}: no constant drift fits the readings of {clocks[0].name} and {clocks[1].name}"
            raise InconsistentClocks(text, hint="leave --drift out: the readings are used")
        relations[clocks] = Relation(*clocks, clock_map)
    kept = [
        [snap for snap in trace.snapshots if not _is_reading(snap) or _clocks(snap) not in relations]
        for trace in traces
    ]
    with_lines = [trace.with_tables(snapshots=snapshots) for trace, snapshots in zip(traces, kept, strict=True)]
    return with_lines, list(relations.values())


def _groups(traces: Sequence[Trace]) -> dict[Clocks, list[_Reading]]:
    """Return the readings of each two clocks by all inputs, in order of time, each once."""
    groups: dict[Clocks, dict[tuple[int, int, int], _Reading]] = defaultdict(dict)
    for trace in traces:
        for snap in filter(_is_reading, trace.snapshots):
            clocks = _clocks(snap)
            in_order = clocks[0] == as_one(snap.clock)
            ts, other_ts = (snap.ts, snap.other_ts) if in_order else (snap.other_ts, snap.ts)
            reading = _Reading(ts, other_ts, snap.bound_ns or 0, snap.step, trace.sources[0].name)
            place = ts, other_ts, reading.bound_ns
            groups[clocks][place] = min(reading, groups[clocks].get(place, reading), key=lambda reading: reading.file)
    return {
        clocks: [group[place] for place in sorted(group)] for clocks, group in groups.items() if clocks[0] != clocks[1]
    }


def _is_reading(snap: ClockSnapshot) -> bool:
    return snap.bound_ns is not None and not snap.assumed


def _clocks(snap: ClockSnapshot) -> Clocks:
    """Return the two clocks of a snapshot in an order that is the same for all files: the wall clock is last."""
    first, other = sorted(
        map(as_one, (snap.clock, snap.other)),
        key=lambda clock: (clock.is_wall_clock, clock.name, clock.machine, clock.owner),
    )
    return first, other


def _line(group: Sequence[_Reading], ends: Sequence[int]) -> ClockMap | None:
    """Return the line through readings in order of time, with a bound between two ends; None if there is none."""
    first, last = group[0].ts, group[-1].ts
    span = min([2 * first - last, *ends]), max([2 * last - first, *ends])
    readings = [(reading.ts, reading.other_ts, reading.bound_ns) for reading in group]
    max_drift = SLEW_DRIFT if first != last else 0.0  # one instant does not determine the drift
    step = group[0].step
    return line_through(readings, span, max_drift, replace(step, text=f"{step.text}, read {len(group)} times"))


def _ends(trace: Trace, clock: ClockDomain) -> list[int]:
    """Return the first and the last time of events on a clock, whatever its resolution; empty without events."""
    same = [number for number, domain in enumerate(trace.clocks) if domain == clock or domain.same_timebase(clock)]
    return [end for number, span in trace.spans.items() if number in same for end in span]

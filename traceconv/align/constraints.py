"""What the user says about clocks becomes domains, snapshots and relations of the clock graph.

All of it is assumed: it rests on the word of the user. It must agree with itself and with what the files say, within
the bounds of both and what clocks drift apart between the instants that are compared.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import combinations, product
from typing import Any

import numpy as np

from traceconv.align.constraint_parser import (
    Anchor,
    ClockFact,
    ClockKind,
    EventPoint,
    Facts,
    Point,
    zone_ns,
)
from traceconv.align.domains import is_local, main_clock, spans, with_own_domains
from traceconv.align.machines import UNNAMED, Machine
from traceconv.clocks import (
    BOOTTIME,
    DRIFT_UNIT,
    FREE_DRIFT,
    MONOTONIC,
    MONOTONIC_RAW,
    OS_CLOCKS,
    REALTIME,
    SLEW_DRIFT,
    ClockDomain,
    ClockGraph,
    ClockMap,
    ClockSnapshot,
    LocalTime,
    Provenance,
    Run,
    Step,
    Verdict,
    Zero,
    looks_like_unix_time,
)
from traceconv.errors import InconsistentClocks, UsageError
from traceconv.ir.trace import Trace
from traceconv.registry import Importer, importer_class, option_names
from traceconv.times import format_drift, format_long, format_option, format_time

_ANCHOR = Step("--anchor", Provenance.USER)
#: How far the clock of perf can be from CLOCK_MONOTONIC: both count from boot, but with steps of their own.
_PERF_APART_NS = 10_000_000
#: What no snapshot whose bound nobody knows is off.
_UNSTATED_BOUND_NS = 10**9
#: So far from the events of its file an anchor can be, however short the recording is.
_NEAR_ANCHOR_NS = 10 * 10**9
#: So many names of a kind are looked through for similar ones.
_MOST_NAMES = 2000
_STATED = {
    ClockKind.REALTIME: REALTIME,
    ClockKind.MONOTONIC: MONOTONIC,
    ClockKind.MONOTONIC_RAW: MONOTONIC_RAW,
    ClockKind.BOOTTIME: BOOTTIME,
    ClockKind.PERF: ClockDomain("perf clock", Zero.UNKNOWN, Run.MONOTONIC),
}
#: What is to be said of the place of clocks, by the numbers of the input and of the clock.
Warnings = dict[tuple[int, int], list[str]]
_ZONE_OPTIONS, _DATE_OPTIONS = ("utc_offset",), ("date", "year")


@dataclass(frozen=True, slots=True)
class Relation:
    """An edge of the clock graph that has a drift.

    Attributes:
        clock, other: the two.
        way: how times of the one become times of the other, with the bound for the events on the first.
        back: the way back, with the bound for the events on the second; None: the bound is that of the way.
    """

    clock: ClockDomain
    other: ClockDomain
    way: ClockMap
    back: ClockMap | None = None


@dataclass(frozen=True, slots=True)
class Instant:
    """An anchor, as times.

    Attributes:
        one, other: the number of an input and that of a clock of it; the first is the lesser.
        ts, other_ts: the times on these that are one instant, ns.
        within_ns: how far apart they can be.
        text: as the user wrote it.
    """

    one: tuple[int, int]
    other: tuple[int, int]
    ts: int
    other_ts: int
    within_ns: int
    text: str


@dataclass(frozen=True, slots=True)
class Stated:
    """The inputs with what the user says about them.

    Attributes:
        traces: with domains marked as their own, and with the snapshots that follow from the facts.
        relations: edges between clocks, for `ClockGraph.relate`.
        corrections: for each input, by clock, what comes before all other maps because of a stated drift.
        instants: the anchors, on the clocks as the files have them.
        warnings: what is strange about a fact, by input and clock.
        machines: for each input its machine.
        walls: for each input the wall clock of its host.
        notes: for some inputs, what else is to be known about them.
    """

    traces: list[Trace]
    relations: list[Relation] = field(default_factory=list)
    corrections: dict[int, dict[int, ClockMap]] = field(default_factory=dict)
    instants: list[Instant] = field(default_factory=list)
    warnings: Warnings = field(default_factory=lambda: defaultdict(list))
    machines: list[Machine] = field(default_factory=list)
    walls: list[ClockDomain] = field(default_factory=list)
    notes: dict[int, list[str]] = field(default_factory=dict)


def state(
    traces: Sequence[Trace], facts: Facts, walls: Sequence[ClockDomain], offsets: Mapping[int, int] | None = None
) -> Stated:
    """Add the facts to the inputs.

    Args:
        traces: the inputs, as read with `importer_options`.
        facts: what the user says.
        walls: for each input the wall clock of its host.
        offsets: the values of --offset by input, ns; they must leave anchors where they are.

    Raises:
        UsageError: a fact does not fit its input.
        InconsistentClocks: the facts contradict themselves or the files.
    """
    found = Stated([with_own_domains(trace, index) for index, trace in enumerate(traces)], walls=list(walls))
    for index in sorted({*facts.zones, *facts.dates}):
        found.traces[index] = _with_date(found.traces[index], index, facts, walls[index])
    machine = _machine_of_all(found.traces)
    for index, fact in sorted(facts.clocks.items()):
        found.traces[index] = _with_clock(found, index, fact, machine)
    if any(fact.kind is ClockKind.PERF for fact in facts.clocks.values()):
        found.traces[:] = [_with_perf_clock(trace, machine) for trace in found.traces]
    anchored = [_resolved(anchor, found.traces) for anchor in facts.anchors]
    for index, drift in sorted(facts.drifts.items()):
        _drift(found, index, drift, anchored)
    _anchor(found, anchored, facts, offsets or {})
    return found


# -- what importers are told ------------------------------------------------------------------------------------------


def importer_options(facts: Facts, index: int, cls: type[Importer]) -> dict[str, str]:
    """The options by which an importer takes the zone and the date of its input itself."""
    known = option_names(cls)
    options: dict[str, str] = {}
    zone, day = facts.zones.get(index), facts.dates.get(index)
    if zone is not None:
        options |= {key: zone for key in _ZONE_OPTIONS if key in known}
    if day is not None and "date" in known:
        options["date"] = day.isoformat()
    elif day is not None and "year" in known:
        options["year"] = str(day.year)
    return options


# -- zones and dates --------------------------------------------------------------------------------------------------


def _with_date(trace: Trace, index: int, facts: Facts, wall: ClockDomain) -> Trace:
    """An input whose local times are put on the wall clock of its host, unless its importer has done so."""
    option = "--tz" if index in facts.zones else "--date"
    name = trace.sources[0].name
    handed = importer_options(facts, index, importer_class(trace.sources[0].format))
    if handed:
        if index in facts.dates and not set(handed) & set(_DATE_OPTIONS):
            raise UsageError(f"--date: {name} ({trace.sources[0].format}) states its date itself", hint="leave it out")
        if not _knows_unix_time(trace):
            other = "--date" if index in facts.zones and index not in facts.dates else "--tz"
            raise UsageError(
                f"{option}: that does not give {name} ({trace.sources[0].format}) a time since 1970",
                hint=f"it holds no local time, or {other} is needed, too",
            )
        return trace
    number = main_clock(trace, option)
    domain = trace.clocks[number]
    if not is_local(domain):
        raise UsageError(
            f"{option}: {name} ({trace.sources[0].format}) has no local times: they count {domain.describe()}",
            hint="--offset and --anchor place any file",
        )
    snapshot = _midnight(domain, wall, facts.zones.get(index), facts.dates.get(index), name)
    return trace.with_tables(snapshots=[*trace.snapshots, snapshot])


def _knows_unix_time(trace: Trace) -> bool:
    domains = [*trace.clocks, *(end for snap in trace.snapshots for end in (snap.clock, snap.other))]
    return any(domain.zero is Zero.UNIX_EPOCH for domain in domains)


def _midnight(domain: ClockDomain, wall: ClockDomain, zone: str | None, day: date | None, name: str) -> ClockSnapshot:
    """What zero of a domain of local times is."""
    if "year and" in domain.name:
        raise UsageError(f"--date: the times of {name} have a day but no year: they cannot be placed by a date")
    without_date = "time of day" in domain.name
    if zone is None or (day is None and without_date):
        missing = "--tz" if zone is None else "--date"
        raise UsageError(f"{name}: its times count {domain.describe()}: {missing} is needed, too")
    if day is not None and not without_date:
        raise UsageError(f"--date: the times of {name} have a date already", hint="leave it out")
    start = (day.toordinal() - date(1970, 1, 1).toordinal()) * 86400 * 10**9 if day is not None else 0
    method = f"local time read as {zone}" + (f", from {day} on" if day else "")
    local = LocalTime(zone_ns(zone))
    return ClockSnapshot(domain, 0, wall, start - zone_ns(zone), 0, method, assumed=True, local=local)


# -- what a clock is --------------------------------------------------------------------------------------------------


def _machine_of_all(traces: Sequence[Trace]) -> str:
    """The machine that the inputs name, if it is one; "" if there are several, a word if there is none."""
    named = {domain.host for trace in traces for domain in trace.clocks if domain.host}
    return UNNAMED if not named else named.pop() if len(named) == 1 else ""


def _with_clock(found: Stated, index: int, fact: ClockFact, only_machine: str) -> Trace:
    trace = found.traces[index]
    name = trace.sources[0].name
    number = main_clock(trace, "--clock")
    domain = trace.clocks[number]
    if fact.kind is ClockKind.NONE:
        order = ClockDomain(f"order of {name}", Zero.UNKNOWN, Run.NONE, domain.resolution_ns, "", f"{index}:{name}")
        clocks = [order if one == domain else one for one in trace.clocks]
        kept = [snap for snap in trace.snapshots if domain not in (snap.clock, snap.other)]
        return trace.with_tables(clocks=clocks, snapshots=kept)
    _note_unknown_machine(found, index, number, fact)
    base = _base(trace, domain)
    _refuse_other_clock(trace, number, fact, base)
    if fact.kind is ClockKind.REALTIME and (domain.zero is Zero.UNIX_EPOCH or base is not None):
        return trace if base is None else _with_word_for_size(trace, base)
    stated = _stated_clock(fact, domain, found.walls[index], only_machine, name)
    if domain == stated or domain.same_timebase(stated):
        return trace
    method = f"--clock: it is {stated.name}" + (f" of {stated.machine}" if stated.machine else "")
    user = Provenance.USER
    snapshot = ClockSnapshot(domain, 0, stated, 0, _apart_ns(domain, fact), method, assumed=True, provenance=user)
    _refuse_other_place(found, index, number, snapshot)
    return trace.with_tables(snapshots=[*trace.snapshots, snapshot])


def _note_unknown_machine(found: Stated, index: int, number: int, fact: ClockFact) -> None:
    """Say that no input names the machine that the user does, where inputs name others: it may be mistyped."""
    named = {domain.machine for trace in found.traces for domain in trace.clocks if domain.machine}
    if fact.machine and named and fact.machine not in named:
        found.warnings[index, number].append(
            f"--clock says that it is of {fact.machine}, but the inputs name {', '.join(sorted(named))} only: "
            "is the name right?"
        )


def _with_word_for_size(trace: Trace, base: ClockSnapshot) -> Trace:
    """An input whose times were taken as those of the wall clock for their size alone: now the user says so."""
    if base.bound_ns is not None or base.ts != base.other_ts:
        return trace
    method = f"--clock: it is {REALTIME.name}"
    exact = replace(base, bound_ns=0, method=method, assumed=True, provenance=Provenance.USER)
    return trace.with_tables(snapshots=[exact if snap is base else snap for snap in trace.snapshots])


def _refuse_other_place(found: Stated, index: int, number: int, snapshot: ClockSnapshot) -> None:
    """Refuse a clock on which the times of the input lie elsewhere than the files say."""
    trace = found.traces[index]
    ts = spans(trace).get(number, (0, 0))[0]
    others = [snap for one in found.traces for snap in one.snapshots if not _is_guess(snap)]
    wrong = _disagreement(found, others, (snapshot.clock, ts), (snapshot.other, ts), snapshot.bound_ns or 0)
    if wrong is not None:
        stated = f"{snapshot.other.name} of {snapshot.other.machine}"
        raise InconsistentClocks(
            f"the clock of {trace.sources[0].name} cannot be {stated}: its first "
            f"time is {format_time(abs(wrong.apart))} away from where it belongs ({wrong.method}), expected "
            f"{format_time(wrong.allowed)} at most",
            hint="was the machine started anew in between? Leave --clock out, or use --offset or --anchor",
        )


def _apart_ns(domain: ClockDomain, fact: ClockFact) -> int:
    is_perf = domain.name == _STATED[ClockKind.PERF].name
    return _PERF_APART_NS if is_perf and fact.kind is ClockKind.MONOTONIC else 0


def _stated_clock(fact: ClockFact, domain: ClockDomain, wall: ClockDomain, only_machine: str, name: str) -> ClockDomain:
    machine = fact.machine or domain.host or only_machine
    if fact.kind is ClockKind.REALTIME:
        return replace(wall, machine=fact.machine or domain.machine)
    if not machine:
        raise UsageError(
            f"--clock: the inputs name several machines, and not which of them {name} is from",
            hint=f"say it: --clock {name}={fact.kind}@HOST",
        )
    return replace(_STATED[fact.kind], machine=machine)


def _base(trace: Trace, domain: ClockDomain) -> ClockSnapshot | None:
    """Where a file says itself when zero of its times was; None if it does not."""
    said = (snap for snap in trace.snapshots if snap.clock == domain and not snap.assumed and _is_definition(snap))
    return next((snap for snap in said if snap.other.zero is Zero.UNIX_EPOCH), None)


def _refuse_other_clock(trace: Trace, number: int, fact: ClockFact, base: ClockSnapshot | None) -> None:
    """Refuse what the file itself, or the size of its times, speaks against."""
    domain, span = trace.clocks[number], spans(trace).get(number)
    name = trace.sources[0].name
    is_unix = domain.zero is Zero.UNIX_EPOCH or (span is not None and looks_like_unix_time(span[0]))
    wanted = _STATED[fact.kind]
    reason = ""
    if domain.synthetic:
        reason = "it has no times"
    elif domain.zero is Zero.RUN_START or (wanted is not REALTIME and "local" in domain.name):
        reason = f"its times count {domain.describe()}"
    elif base is not None and domain.zero is Zero.UNKNOWN:
        reason = "" if wanted is REALTIME else f"it says itself where its times are on the wall clock ({base.method})"
    elif (wanted is REALTIME) != is_unix and span is not None:
        reason = f"its first time is {format_time(span[0])} after zero"
    elif domain.name in OS_CLOCKS - {wanted.name}:
        reason = f"it says itself that it is {domain.describe()}"
    elif fact.machine and domain.machine and fact.machine != domain.machine:
        reason = f"it says itself that it is of {domain.machine}"
    if reason:
        said = f"{fact.kind}@{fact.machine}" if fact.machine else str(fact.kind)
        raise InconsistentClocks(
            f"the clock of {name} cannot be {said}: {reason}", hint="leave --clock out, or use --offset or --anchor"
        )


def _with_perf_clock(trace: Trace, only_machine: str) -> Trace:
    """Join the clock that recordings of perf have with that of files of which the user says that it is this one."""
    wanted = _STATED[ClockKind.PERF]
    said = "--clock: recorded by perf"
    more = [
        ClockSnapshot(domain, 0, replace(wanted, machine=machine), 0, 0, said, assumed=True, provenance=Provenance.USER)
        for domain in trace.clocks
        if domain.name == wanted.name and (machine := domain.host or only_machine)
    ]
    return trace.with_tables(snapshots=[*trace.snapshots, *more])


# -- drifts -----------------------------------------------------------------------------------------------------------


def _drift(found: Stated, index: int, drift: int, anchored: Sequence[_Pair]) -> None:
    """Correct the rate of an input, in such a way that readings and anchors of its clock keep their place."""
    trace = found.traces[index]
    number = main_clock(trace, "--drift")
    domain = trace.clocks[number]
    _refuse_other_drift(found, trace, domain, drift)
    at = [side.ts for pair in anchored for side in pair.sides if (side.input, side.clock) == (index, number)]
    readings = [snap for snap in trace.snapshots if snap.clock == domain and not _is_definition(snap)]
    at += [snap.ts for snap in readings]
    first = spans(trace).get(number, (0, 0))[0]
    way = ClockMap(0, 0, (Step("--drift", Provenance.USER),), Verdict.ASSUMED, drift, (at or [first])[0])
    found.corrections[index] = {number: way}
    moved = [replace(snap, ts=way.at(snap.ts)) if snap in readings else snap for snap in trace.snapshots]
    found.traces[index] = trace.with_tables(snapshots=moved)


def _refuse_other_drift(found: Stated, trace: Trace, domain: ClockDomain, drift: int) -> None:
    """Refuse a drift that the clock does not have: it was read beside the wall clock more than once."""
    is_it = [domain]
    is_it += [snap.other for snap in trace.snapshots if snap.clock == domain and _by_user(snap)]
    read = [
        (snap.ts, snap.other_ts, snap.bound_ns or 0, snap.method)
        for snap in (snap for trace in found.traces for snap in trace.snapshots)
        if any(snap.clock == one or snap.clock.same_timebase(one) for one in is_it)
        and snap.other.zero is Zero.UNIX_EPOCH
        and snap.bound_ns is not None
        and not (snap.assumed or _is_definition(snap))
    ]
    if not read or min(read)[0] == max(read)[0]:
        return
    (x0, y0, before, method), (x1, y1, after, _) = min(read), max(read)
    ppm, within = ((y1 - y0) / (x1 - x0) - 1) * 1e6, (before + after + 1) / (x1 - x0) * 1e6
    stated = drift * DRIFT_UNIT * 1e6
    if abs(stated - ppm) > within:
        raise InconsistentClocks(
            f"--drift says that the clock of {trace.sources[0].name} drifts by {format_drift(stated)}, "
            f"but it was read more than once ({method}): it drifts by {format_drift(ppm)}, within ±{within:.3f} ppm",
            hint="leave --drift out: what was read is used",
        )


# -- anchors ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Side:
    """A point of an anchor: a time in ns on a clock of an input, known to `step_ns`."""

    input: int
    clock: int
    ts: int
    step_ns: int


@dataclass(frozen=True, slots=True)
class _Pair:
    """An anchor whose points have times; the sides are in order of the inputs."""

    sides: tuple[_Side, _Side]
    within_ns: int
    text: str


def _resolved(anchor: Anchor, traces: Sequence[Trace]) -> _Pair:
    one, other = sorted(
        (_side(point, traces, anchor.text) for point in (anchor.one, anchor.other)),
        key=lambda side: (side.input, side.clock),
    )
    within = one.step_ns + other.step_ns if anchor.within_ns is None else anchor.within_ns
    return _Pair((one, other), within, anchor.text)


def _side(point: Point, traces: Sequence[Trace], text: str) -> _Side:
    trace = traces[point.input]
    if isinstance(point, EventPoint):
        clock, ts = _event(point, trace, text)
        return _Side(point.input, clock, ts, trace.clocks[clock].resolution_ns)
    clock = main_clock(trace, "--anchor")
    return _Side(point.input, clock, point.ts, max(point.step_ns, trace.clocks[clock].resolution_ns))


def _event(point: EventPoint, trace: Trace, text: str) -> tuple[int, int]:
    """The clock of an event, and its time. What has that name as a slice comes before what has it otherwise."""
    name = trace.sources[0].name
    for table, rows in _named(point.name, trace):
        if not len(rows):
            continue
        if abs(point.number) > len(rows):
            raise UsageError(
                f"--anchor {text!r}: {name} has {len(rows)} events of the name {point.name!r}, not {abs(point.number)}",
                hint=f"the first is #1, the last is #{len(rows)} or #-1",
            )
        rows = rows[np.lexsort((table.origin[rows], table.ts[rows]))]
        row = rows[point.number - 1 if point.number > 0 else point.number]
        clock = int(trace.tracks[table.track[row]].clock)
        if trace.clocks[clock].run is Run.TOTALS:
            raise UsageError(f"--anchor {text!r}: {point.name!r} in {name} is a row of a table without times")
        dur = int(trace.slices.dur[row]) if table is trace.slices and point.at_end else 0
        return clock, int(table.ts[row]) + dur
    raise UsageError(f"--anchor {text!r}: {name} has no event of the name {point.name!r}", hint=_similar(point, trace))


def _named(name: str, trace: Trace) -> Iterator[tuple[Any, Any]]:
    """The tables, each with the rows of that name: entries of a log by their text, samples also by their function."""
    wanted = trace.strings.index(name) if name in trace.strings else -1
    yield trace.slices, np.flatnonzero(trace.slices.name == wanted)
    yield trace.instants, np.flatnonzero(trace.instants.name == wanted)
    yield trace.logs, np.flatnonzero(trace.logs.text == wanted)
    frames = [number for number, frame in enumerate(trace.frames) if frame.name == name]
    samples = trace.samples
    yield samples, np.flatnonzero((samples.name == wanted) | np.isin(samples.stack, frames))
    tracks = [number for number, track in enumerate(trace.tracks) if track.name == name]
    yield trace.counters, np.flatnonzero(np.isin(trace.counters.track, tracks))


def _similar(point: EventPoint, trace: Trace) -> str:
    import difflib  # for this message alone

    tables = (trace.slices.name, trace.instants.name, trace.logs.text, trace.samples.name)
    used = {trace.strings[number] for names in tables for number in np.unique(names)[:_MOST_NAMES]}
    used |= {trace.frames[number].name for number in np.unique(trace.samples.stack)[:_MOST_NAMES] if number >= 0}
    used |= {trace.tracks[number].name for number in np.unique(trace.counters.track)}
    names = sorted(used - {""})
    close = difflib.get_close_matches(point.name, names, 3, 0.5) or names[:3]
    return f"it has, for instance, {', '.join(map(repr, close))}" if close else "it has no events at all"


def _anchor(found: Stated, pairs: Sequence[_Pair], facts: Facts, offsets: Mapping[int, int]) -> None:
    """One relation for each two clocks that anchors tie together."""
    groups: dict[tuple[int, int, int, int], list[_Pair]] = defaultdict(list)
    for pair in pairs:
        one, other = pair.sides
        groups[one.input, one.clock, other.input, other.clock].append(_corrected(pair, found))
        found.instants.append(
            Instant((one.input, one.clock), (other.input, other.clock), one.ts, other.ts, pair.within_ns, pair.text)
        )
        _note_far_away(found, pair)
    alone: list[tuple[int, _Pair]] = []
    for (one_input, one_clock, other_input, other_clock), said in groups.items():
        _refuse_moved(found.traces, said[0], offsets)
        _refuse_two_at_once(found.traces, said)
        _check(found, said)
        group = _one_for_each_instant(said)
        domains = found.traces[one_input].clocks[one_clock], found.traces[other_input].clocks[other_clock]
        fixed = bool({one_input, other_input} & set(facts.drifts)) or any(domain.synthetic for domain in domains)
        known = None if fixed else _related(found, *domains)
        if len(group) == 1:
            way = _through(group[0], known)
            relation = Relation(*domains, way, way.inverse())
        else:
            relation = Relation(*domains, *_ways(group, found.traces, 0.0 if fixed else SLEW_DRIFT))
        if len(group) == 1 and not (fixed or known):
            alone.append((len(found.relations), group[0]))
        found.relations.append(relation)
    # What was checked is at the instant: only now all of them are known.
    for at, pair in alone:
        found.relations[at] = _less_sure_away(found.relations[at], pair, found.traces)


def _one_for_each_instant(group: Sequence[_Pair]) -> list[_Pair]:
    """The anchors, those of one instant of the first clock, which agree, as one that holds what all of them allow."""
    found: dict[int, _Pair] = {}
    for pair in group:
        one, other = pair.sides
        same = found.get(one.ts)
        if same is None:
            found[one.ts] = pair
            continue
        low = max(side.ts - within for side, within in ((other, pair.within_ns), (same.sides[1], same.within_ns)))
        high = min(side.ts + within for side, within in ((other, pair.within_ns), (same.sides[1], same.within_ns)))
        found[one.ts] = replace(
            same, sides=(one, replace(other, ts=(low + high) // 2)), within_ns=(high - low + 1) // 2
        )
    return list(found.values())


def _less_sure_away(relation: Relation, pair: _Pair, traces: Sequence[Trace]) -> Relation:
    """One instant says nothing of the drift: the farther from it, the less is known."""
    spanned = [spans(traces[side.input]).get(side.clock, (side.ts,) * 2) for side in pair.sides]
    away = [max(abs(end - side.ts) for end in its) for side, its in zip(pair.sides, spanned, strict=True)]
    step = Step(f"--anchor, with up to {FREE_DRIFT * 1e6:.0f} ppm of drift away from its instant", Provenance.USER)
    way, back = (
        replace(way, bound_ns=pair.within_ns + round(FREE_DRIFT * far), steps=(step,))
        for way, far in zip((relation.way, relation.way.inverse()), away, strict=True)
    )
    return replace(relation, way=way, back=back)


def _related(found: Stated, clock: ClockDomain, other: ClockDomain) -> ClockMap | None:
    """How the files relate two clocks at all times, within a bound; None if they do not."""
    snapshots = [snap for trace in found.traces for snap in trace.snapshots]
    graph = ClockGraph([REALTIME, *(domain for trace in found.traces for domain in trace.clocks)], snapshots)
    way = graph.maps_to(other).get(clock)
    return way if way is not None and way.bound_ns is not None else None


def _through(pair: _Pair, known: ClockMap | None) -> ClockMap:
    """The relation of two clocks by one anchor.

    If the files relate them at all times, only less exactly, the anchor holds at all times, too.
    """
    one, other = pair.sides
    if known is None:
        return ClockMap(other.ts - one.ts, pair.within_ns, (_ANCHOR,), Verdict.ASSUMED)
    way = known.then(ClockMap(other.ts - known.at(one.ts)))
    return replace(way, bound_ns=pair.within_ns, steps=(_ANCHOR,), verdict=Verdict.ASSUMED)


def _ways(group: Sequence[_Pair], traces: Sequence[Trace], max_drift: float) -> tuple[ClockMap, ClockMap]:
    """The line through several anchors of two clocks, and the way back, each with its bound for the events there."""
    ends, other_ends = (spans(traces[side.input]).get(side.clock, (side.ts,) * 2) for side in group[0].sides)
    way = _way(group, ends, traces, max_drift)
    first, last = (way.inverse().at(end) for end in other_ends)
    return way, _way(group, (first, last), traces, max_drift).inverse()


def _corrected(pair: _Pair, found: Stated) -> _Pair:
    """The anchor on clocks whose stated drift is taken out."""
    one, other = (
        replace(side, ts=found.corrections.get(side.input, {}).get(side.clock, ClockMap()).at(side.ts))
        for side in pair.sides
    )
    return replace(pair, sides=(one, other))


def _way(group: Sequence[_Pair], span: tuple[int, int], traces: Sequence[Trace], max_drift: float) -> ClockMap:
    """The line through several anchors of two clocks; its bound holds for the whole span of the first one."""
    readings = [(pair.sides[0].ts, pair.sides[1].ts, pair.within_ns) for pair in group]
    way = line(readings, span, replace(_ANCHOR, text=f"{len(group)} x {_ANCHOR.text}"), max_drift, Verdict.ASSUMED)
    if way is None:
        raise _contradict_each_other(group, traces, max_drift)
    return way


def _contradict_each_other(group: Sequence[_Pair], traces: Sequence[Trace], max_drift: float) -> InconsistentClocks:
    """Anchors through which no line goes, told by the two that are farthest apart."""
    early, late = min(group, key=lambda pair: pair.sides[0].ts), max(group, key=lambda pair: pair.sides[0].ts)
    passed = [second.ts - first.ts for first, second in zip(early.sides, late.sides, strict=True)]
    names = [traces[side.input].sources[0].name for side in early.sides]
    timeless = [
        name for name, side in zip(names, early.sides, strict=True) if traces[side.input].clocks[side.clock].synthetic
    ]
    if max_drift:
        why = f"which is more than their bounds and a drift of {max_drift * 1e6:g} ppm allow"
    elif timeless:
        why = f"and their bounds allow for less; {timeless[0]} has no clock, so no drift explains it"
    else:
        why = "and their bounds allow for less besides --drift"
    return InconsistentClocks(
        f"the anchors contradict each other: between {early.text!r} and {late.text!r} pass {format_time(passed[0])} in "
        f"{names[0]}, but {format_time(passed[1])} in {names[1]}, {why}",
        hint="one of them is wrong, or less exact than it says: put ~TIME behind it",
    )


def line(
    readings: Sequence[tuple[int, int, int]],
    span: tuple[int, int],
    step: Step,
    max_drift: float = SLEW_DRIFT,
    verdict: Verdict = Verdict.OK,
) -> ClockMap | None:
    """The middle of all lines through several readings of two clocks; None if there is no such line.

    Args:
        readings: a time on the one clock, the same instant on the other one, and how far they can be apart, ns.
        span: of times on the first clock for which the bound has to hold.
        step: where the readings are from.
        max_drift: the greatest drift, as a ratio.
        verdict: how far to trust them.
    """
    from traceconv.align.geometry import Constraints, box, feasible

    x0, y0, _ = readings[0]
    x = np.array([one - x0 for one, _, _ in readings], np.float64)
    apart = np.array([(other - y0) - (one - x0) for one, other, _ in readings], np.float64)
    within = np.array([bound for _, _, bound in readings], np.float64) + 0.5
    start = box(0.0, -within[0], within[0], max_drift)
    region = feasible(Constraints(x, apart - within, x, apart + within), start)
    if region is None:
        return None
    offset, drift = region.middle((float(np.min(x)), float(np.max(x))))
    if np.min(region.drifts) <= 0 <= np.max(region.drifts) and np.ptp(region.drifts) >= max_drift:
        # The readings tell nothing of a drift: what their middle makes of that would be noise.
        middle = float(np.min(x) + np.max(x)) / 2
        offset, drift = float(sum(bound[0] for bound in region.bounds(middle))) / 2, 0.0
    first, last = min(one for one, _, _ in readings), max(one for one, _, _ in readings)
    ends = np.array([min(span[0], first) - x0, max(span[1], last) - x0], np.float64)
    low, high = region.bounds(ends)
    there = offset + drift * ends
    bound = int(np.ceil(max(np.max(high - there), np.max(there - low))))
    return ClockMap(y0 - x0 + round(offset), bound, (step,), verdict, round(drift / DRIFT_UNIT), x0)


# -- contradictions ---------------------------------------------------------------------------------------------------


def _refuse_moved(traces: Sequence[Trace], pair: _Pair, offsets: Mapping[int, int]) -> None:
    one, other = (traces[side.input].sources[0].name for side in pair.sides)
    apart = offsets.get(pair.sides[0].input, 0) - offsets.get(pair.sides[1].input, 0)
    if abs(apart) > pair.within_ns:
        raise InconsistentClocks(
            f"--offset moves {one} and {other} {format_time(abs(apart))} away from their anchor {pair.text!r}",
            hint="say only one of the two",
        )


def _refuse_two_at_once(traces: Sequence[Trace], group: Sequence[_Pair]) -> None:
    """Refuse two anchors that say different things of one instant of a file."""
    for (one, two), at in product(combinations(group, 2), (0, 1)):
        apart = abs(one.sides[1 - at].ts - two.sides[1 - at].ts)
        if one.sides[at].ts == two.sides[at].ts and apart > one.within_ns + two.within_ns:
            name, other = (traces[one.sides[side].input].sources[0].name for side in (at, 1 - at))
            raise UsageError(
                f"--anchor {one.text!r} and {two.text!r} are about one instant of {name}, but put it at two of "
                f"{other}, {format_time(apart)} apart, expected {format_time(one.within_ns + two.within_ns)} at most",
                hint="leave one of them out, or say how exact they are: put ~TIME behind them",
            )


def _note_far_away(found: Stated, pair: _Pair) -> None:
    """Say that a time lies far outside of its recording: what was meant may be another unit, or the other file."""
    for side in pair.sides:
        trace = found.traces[side.input]
        span = spans(trace).get(side.clock)
        if span is None:
            continue
        first, last = span
        away = max(first - side.ts, side.ts - last)
        if away > max(last - first, _NEAR_ANCHOR_NS):
            where = "before its first" if side.ts < first else "after its last"
            found.warnings[side.input, side.clock].append(
                f"--anchor {pair.text!r} names a time {format_long(away)} {where} event: is it of this file, and is "
                "its unit right?"
            )


def _check(found: Stated, group: Sequence[_Pair]) -> None:
    """Refuse anchors that contradict the files; guesses of importers that contradict them are dropped."""
    for pair in group:
        wrong = _wrong(found, pair, assumed=False)
        if wrong:
            raise _contradiction(found, pair, wrong)
        wrong = _wrong(found, pair, assumed=True)
        if wrong:
            for side in pair.sides:
                _drop_guesses(found, side, pair, wrong)


def _drop_guesses(found: Stated, side: _Side, pair: _Pair, wrong: _Wrong) -> None:
    """Leave out what an importer assumed of a file, and say so."""
    trace = found.traces[side.input]
    guesses = [snap for snap in trace.snapshots if _is_guess(snap)]
    found.traces[side.input] = trace.with_tables(snapshots=[snap for snap in trace.snapshots if snap not in guesses])
    found.warnings[side.input, side.clock] += [
        f"{guess.method}: {format_time(abs(wrong.apart))} away from --anchor {pair.text!r}, which is believed"
        for guess in guesses
    ]


def moved_by_user(offset_ns: int, within_ns: int) -> ClockMap:
    """The step that --offset says."""
    return ClockMap(offset_ns, within_ns, (Step("--offset", Provenance.USER),), Verdict.ASSUMED)


def _is_guess(snap: ClockSnapshot) -> bool:
    """Whether an importer assumed the snapshot, and not the user."""
    given = _by_user(snap) or (snap.local is not None and not snap.local.guessed)
    return snap.assumed and not given


def _by_user(snap: ClockSnapshot) -> bool:
    return snap.provenance is Provenance.USER


def _is_definition(snap: ClockSnapshot) -> bool:
    """Whether the snapshot says what zero of a clock is, rather than what it showed when it was read."""
    return snap.ts == 0 and snap.clock.zero is not Zero.RUN_START


def _wrong(found: Stated, pair: _Pair, *, assumed: bool) -> _Wrong | None:
    """What is wrong with an anchor, seen from the snapshots and the anchors before it."""
    snapshots = [snap for trace in found.traces for snap in trace.snapshots if assumed or not _is_guess(snap)]
    one, other = ((found.traces[side.input].clocks[side.clock], side.ts) for side in pair.sides)
    return _disagreement(found, snapshots, one, other, pair.within_ns)


def _contradiction(found: Stated, pair: _Pair, wrong: _Wrong) -> InconsistentClocks:
    first, second = (found.traces[side.input].sources[0].name for side in pair.sides)
    return InconsistentClocks(
        f"the anchor {pair.text!r} puts {first} and {second} {format_time(abs(wrong.apart))} away from where they "
        f"belong ({wrong.method}), expected {format_time(wrong.allowed)} at most",
        hint="check the anchor; if the clocks of two machines were apart, "
        f"--offset {shlex.quote(first)}={format_option(wrong.apart)} moves the file",
    )


@dataclass(frozen=True, slots=True)
class _Wrong:
    """By how much a statement is off, ns, by how much it may be, and what speaks against it."""

    apart: int
    allowed: int
    method: str


def _disagreement(
    found: Stated,
    snapshots: Sequence[ClockSnapshot],
    one: tuple[ClockDomain, int],
    other: tuple[ClockDomain, int],
    within_ns: int,
) -> _Wrong | None:
    """What the snapshots say against two times of two clocks being one instant."""
    graph = ClockGraph([REALTIME, *(clock for trace in found.traces for clock in trace.clocks)], snapshots)
    for relation in found.relations:
        graph.relate(relation.clock, relation.other, relation.way, relation.back)
    way = graph.maps_to(other[0]).get(one[0])
    if way is None:
        return None
    apart = other[1] - way.at(one[1])
    bound = _UNSTATED_BOUND_NS if way.bound_ns is None else way.bound_ns
    allowed = within_ns + bound + sum(_drifted_ns(ts, domain, snapshots) for domain, ts in (one, other))
    method = f"known from {way.method}" if way.steps else "both count the same clock"
    return _Wrong(apart, allowed, method) if abs(apart) > allowed else None


def _drifted_ns(ts: int, domain: ClockDomain, snapshots: Sequence[ClockSnapshot]) -> int:
    """How far a clock can have drifted from the wall clock since it was read last; 0 if it was only defined."""
    if domain.zero is Zero.UNIX_EPOCH:
        return 0
    known = [snap for snap in snapshots if not snap.assumed and not _is_definition(snap)]
    readings = [snap.ts for snap in known if snap.clock == domain]
    readings += [snap.other_ts for snap in known if snap.other == domain]
    return round(min((abs(ts - read) for read in readings), default=0) * SLEW_DRIFT)

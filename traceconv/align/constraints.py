"""What the user says about clocks becomes domains, snapshots and relations of the clock graph.

All of it is assumed: it rests on the word of the user. It must agree with itself and with what the files say, within
the bounds of both and what clocks drift apart between the instants that are compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import combinations, product
from typing import Any

import numpy as np

from traceconv.align.constraint_parser import Anchor, ClockFact, ClockKind, EventPoint, Facts, Point, zone_ns
from traceconv.align.domains import (
    STATED_CLOCKS,
    Key,
    Said,
    against_clock,
    base_of,
    ends_of,
    is_definition,
    main_clock,
    spans,
)
from traceconv.align.geometry import line_through
from traceconv.align.machines import UNNAMED, Machine
from traceconv.align.messages import Message, Text
from traceconv.errors import InconsistentClocks, UsageError
from traceconv.families.registry import Importer, importer_class, option_names
from traceconv.model.clocks import (
    DRIFT_UNIT,
    FREE_DRIFT,
    MOST_UNSTATED_NS,
    REALTIME,
    SLEW_DRIFT,
    ClockDomain,
    ClockGraph,
    ClockMap,
    ClockSnapshot,
    LocalForm,
    LocalTime,
    Provenance,
    Run,
    Step,
    Verdict,
    Zero,
)
from traceconv.model.trace import Trace

#: How far the clock of perf can be from CLOCK_MONOTONIC: both count from boot, but with steps of their own.
_PERF_APART_NS = 10_000_000
#: So far from the events of its file an anchor can be, however short the recording is.
_NEAR_ANCHOR_NS = 10 * 10**9
#: So many names of a kind are looked through for similar ones.
_MOST_NAMES = 2000
_DAY_NS = 86400 * 10**9


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

    one: Key
    other: Key
    ts: int
    other_ts: int
    within_ns: int
    text: str

    @property
    def sides(self) -> tuple[tuple[Key, int], tuple[Key, int]]:
        """Both clocks, each with its time."""
        return (self.one, self.ts), (self.other, self.other_ts)

    def names(self, traces: Sequence[Trace]) -> tuple[str, str]:
        """The files of both clocks."""
        return traces[self.one[0]].sources[0].name, traces[self.other[0]].sources[0].name

    def domains(self, traces: Sequence[Trace]) -> tuple[ClockDomain, ClockDomain]:
        """Both clocks."""
        return traces[self.one[0]].clocks[self.one[1]], traces[self.other[0]].clocks[self.other[1]]


@dataclass(frozen=True, slots=True)
class Stated:
    """The inputs with what the user says about them.

    Attributes:
        traces: with domains marked as their own, and with the snapshots that follow from the facts.
        relations: edges between clocks, for `ClockGraph.relate`.
        corrections: for each input, by clock, what comes before all other maps because of a stated drift.
        instants: the anchors, on the clocks as the files have them.
        warnings: what is strange about a fact, each with its clock.
        machines: for each input its machine.
        walls: for each input the wall clock of its host.
        notes: for some inputs, what else is to be known about them.
    """

    traces: list[Trace]
    relations: list[Relation] = field(default_factory=list)
    corrections: dict[int, dict[int, ClockMap]] = field(default_factory=dict)
    instants: list[Instant] = field(default_factory=list)
    warnings: list[Said] = field(default_factory=list)
    machines: list[Machine] = field(default_factory=list)
    walls: list[ClockDomain] = field(default_factory=list)
    notes: dict[int, list[Message]] = field(default_factory=dict)


def state(traces: Sequence[Trace], facts: Facts, walls: Sequence[ClockDomain]) -> Stated:
    """Add the facts to the inputs.

    Args:
        traces: the inputs, as read with `importer_options`, with domains marked as their own.
        facts: what the user says; its offsets must leave anchors where they are.
        walls: for each input the wall clock of its host.

    Raises:
        UsageError: a fact does not fit its input.
        InconsistentClocks: the facts contradict themselves or the files.
    """
    both = enumerate(zip(traces, walls, strict=True))
    dated = [_with_date(trace, index, facts, wall) for index, (trace, wall) in both]
    clocked = _with_clocks(dated, facts, walls)
    instants = [_instant(anchor, clocked) for anchor in facts.anchors]
    corrections = _corrections(clocked, facts, instants)
    corrected = [_corrected(trace, corrections.get(index, {})) for index, trace in enumerate(clocked)]
    found, relations, dropped = _anchored(corrected, instants, corrections, facts.offsets)
    warnings = [*_unknown_machines(dated, facts), *_far_away(clocked, instants), *dropped]
    return Stated(found, relations, corrections, instants, warnings, walls=list(walls))


def moved_by_user(offset_ns: int, within_ns: int) -> ClockMap:
    """The step that --offset says."""
    return ClockMap(offset_ns, within_ns, (Step("--offset", Provenance.USER),), Verdict.ASSUMED)


# -- what importers are told ------------------------------------------------------------------------------------------


def importer_options(facts: Facts, index: int, cls: type[Importer]) -> dict[str, str]:
    """The options by which an importer takes the zone and the date of its input itself."""
    zone, day = facts.zones.get(index), facts.dates.get(index)
    known = option_names(cls)
    options = {"utc_offset": zone} if zone is not None and "utc_offset" in known else {}
    if day is not None and "date" in known:
        return options | {"date": day.isoformat()}
    return options | {"year": str(day.year)} if day is not None and "year" in known else options


# -- zones and dates --------------------------------------------------------------------------------------------------


def _with_date(trace: Trace, index: int, facts: Facts, wall: ClockDomain) -> Trace:
    """An input whose local times are put on the wall clock of its host, unless its importer has done so."""
    zone, day = facts.zones.get(index), facts.dates.get(index)
    if zone is None and day is None:
        return trace
    option, other = ("--date", "--tz") if zone is None else ("--tz", "--date")
    source = trace.sources[0]
    handed = importer_options(facts, index, importer_class(source.format))
    if handed:
        if day is not None and not {"date", "year"} & set(handed):
            raise UsageError(Text.DATE_IN_FILE(file=source.name, format=source.format), hint=Text.LEAVE_IT_OUT())
        if not any(domain.is_wall_clock for domain in (*trace.clocks, *ends_of(trace))):
            raise UsageError(
                Text.GIVES_NO_UNIX_TIME(option=option, file=source.name, format=source.format),
                hint=Text.NO_LOCAL_TIME_OR_MORE_NEEDED(option=other),
            )
        return trace
    domain = trace.clocks[main_clock(trace, option)]
    if domain.local is None:
        raise UsageError(
            Text.NO_LOCAL_TIMES(option=option, file=source.name, format=source.format, clock=domain.describe()),
            hint=Text.OFFSET_AND_ANCHOR_PLACE_ANY(),
        )
    snapshot = _midnight(domain, wall, zone, day, source.name)
    return trace.with_tables(snapshots=[*trace.snapshots, snapshot])


def _midnight(domain: ClockDomain, wall: ClockDomain, zone: str | None, day: date | None, name: str) -> ClockSnapshot:
    """What zero of a domain of local times is."""
    if domain.local is LocalForm.YEARLESS:
        raise UsageError(Text.DAY_WITHOUT_YEAR(file=name))
    without_date = domain.local is LocalForm.TIME_OF_DAY
    if zone is None or (day is None and without_date):
        missing = "--tz" if zone is None else "--date"
        raise UsageError(Text.NEEDED_TOO(file=name, clock=domain.describe(), option=missing))
    if day is not None and not without_date:
        raise UsageError(Text.DATE_IN_TIMES(file=name), hint=Text.LEAVE_IT_OUT())
    start = (day - date(1970, 1, 1)).days * _DAY_NS if day is not None else 0
    method = Text.LOCAL_TIME_READ_FROM(zone=zone, day=day) if day else Text.LOCAL_TIME_READ(zone=zone)
    local = LocalTime(zone_ns(zone))
    return ClockSnapshot(domain, 0, wall, start - local.ahead_ns, 0, method, local, Provenance.ASSUMED)


# -- what a clock is --------------------------------------------------------------------------------------------------


def _with_clocks(traces: Sequence[Trace], facts: Facts, walls: Sequence[ClockDomain]) -> list[Trace]:
    """The inputs with what --clock says, each checked against those before it."""
    named = {domain.host for trace in traces for domain in trace.clocks if domain.host}
    machine = UNNAMED if not named else named.pop() if len(named) == 1 else ""
    found = list(traces)
    for index, fact in sorted(facts.clocks.items()):
        found[index] = _with_clock(found, index, fact, walls[index], machine)
    if any(fact.kind is ClockKind.PERF for fact in facts.clocks.values()):
        return [_with_perf_clock(trace, machine) for trace in found]
    return found


def _unknown_machines(traces: Sequence[Trace], facts: Facts) -> Iterator[Said]:
    """Say where no input names the machine that the user does, and inputs name others: it may be mistyped."""
    named = {domain.machine for trace in traces for domain in trace.clocks if domain.machine}
    for index, fact in sorted(facts.clocks.items()):
        if fact.machine and named and fact.machine not in named:
            text = Text.MACHINE_OF_NO_INPUT(machine=fact.machine, named=tuple(sorted(named)))
            yield (index, main_clock(traces[index], "--clock")), text


def _with_clock(traces: Sequence[Trace], index: int, fact: ClockFact, wall: ClockDomain, only_machine: str) -> Trace:
    """One input, whose times count what the user says; `only_machine` is where they do if nothing names one."""
    trace = traces[index]
    number = main_clock(trace, "--clock")
    domain, name = trace.clocks[number], trace.sources[0].name
    if fact.kind is ClockKind.NONE:
        order = ClockDomain(f"order of {name}", Zero.UNKNOWN, Run.NONE, domain.resolution_ns, "", f"{index}:{name}")
        clocks = [order if one == domain else one for one in trace.clocks]
        kept = [snap for snap in trace.snapshots if domain not in (snap.clock, snap.other)]
        return trace.with_tables(clocks=clocks, snapshots=kept)
    span, base = spans(trace).get(number), base_of(trace, domain)
    _refuse_clock(against_clock(trace, domain, span, fact), name, fact)
    if fact.kind is ClockKind.REALTIME and (domain.is_wall_clock or base is not None):
        return trace if base is None else _with_word_for_size(trace, base)
    stated = _stated_clock(fact, domain, wall, only_machine, name)
    if domain.same_timebase(stated):
        return trace
    is_perf = domain.name == STATED_CLOCKS[ClockKind.PERF].name
    apart = _PERF_APART_NS if is_perf and fact.kind is ClockKind.MONOTONIC else 0
    snapshot = _by_user(domain, stated, apart, _is_clock(stated))
    first = span[0] if span else 0
    wrong = _disagreement(replace(snapshot, ts=first, other_ts=first), [_without_guesses(one) for one in traces])
    _refuse_clock(wrong and Text.FIRST_TIME_ELSEWHERE(away=wrong[1]), name, fact)
    return trace.with_tables(snapshots=[*trace.snapshots, snapshot])


def _is_clock(stated: ClockDomain) -> Message:
    """How it is known what a clock is."""
    if stated.machine:
        return Text.CLOCK_IS_OF(clock=stated.name, machine=stated.machine)
    return Text.CLOCK_IS(clock=stated.name)


def _by_user(domain: ClockDomain, stated: ClockDomain, bound_ns: int, method: Message) -> ClockSnapshot:
    """The snapshot by which one clock is another one, on the word of the user."""
    return ClockSnapshot(domain, 0, stated, 0, bound_ns, method, provenance=Provenance.USER)


def _with_word_for_size(trace: Trace, base: ClockSnapshot) -> Trace:
    """An input whose times were taken as those of the wall clock for their size alone: now the user says so."""
    if base.bound_ns is not None or base.ts != base.other_ts:
        return trace
    exact = replace(base, bound_ns=0, method=_is_clock(REALTIME), provenance=Provenance.USER)
    return trace.with_tables(snapshots=[exact if snap is base else snap for snap in trace.snapshots])


def _stated_clock(fact: ClockFact, domain: ClockDomain, wall: ClockDomain, only_machine: str, name: str) -> ClockDomain:
    """The clock that the user means."""
    machine = fact.machine or domain.host or only_machine
    if fact.kind is ClockKind.REALTIME:
        return replace(wall, machine=fact.machine or domain.machine)
    if not machine:
        raise UsageError(Text.SEVERAL_MACHINES(file=name), hint=Text.SAY_WHICH_MACHINE(file=name, clock=fact.kind))
    return replace(STATED_CLOCKS[fact.kind], machine=machine)


def _refuse_clock(against: Message | None, name: str, fact: ClockFact) -> None:
    """Refuse what --clock says of a file if something speaks against it."""
    if against is not None:
        said = f"{fact.kind}@{fact.machine}" if fact.machine else str(fact.kind)
        raise InconsistentClocks(
            Text.CLOCK_CANNOT_BE(file=name, clock=said, reason=against), hint=Text.LEAVE_CLOCK_OUT()
        )


def _with_perf_clock(trace: Trace, only_machine: str) -> Trace:
    """Join the clock that recordings of perf have with that of files of which the user says that it is this one."""
    wanted = STATED_CLOCKS[ClockKind.PERF]
    more = [
        _by_user(domain, replace(wanted, machine=machine), 0, Text.RECORDED_BY_PERF())
        for domain in trace.clocks
        if domain.name == wanted.name and (machine := domain.host or only_machine)
    ]
    return trace.with_tables(snapshots=[*trace.snapshots, *more])


# -- drifts -----------------------------------------------------------------------------------------------------------


def _corrections(traces: Sequence[Trace], facts: Facts, instants: Sequence[Instant]) -> dict[int, dict[int, ClockMap]]:
    """The stated drifts of clocks, by input and clock: that of one file holds for all files that count the same clock.

    Times keep their place at a reading or an anchor of that clock, else where the file of which it is said begins.
    """
    found: dict[int, dict[int, ClockMap]] = {}
    for index, drift in facts.drifts.items():
        number = main_clock(traces[index], "--drift")
        domain = traces[index].clocks[number]
        _refuse_other_drift(traces, traces[index], domain, drift)
        same = {  # that count the same; of the wall clock a drift is of that file alone
            (input, clock): its
            for input, trace in enumerate(traces)
            for clock, its in enumerate(trace.clocks)
            if ((input, clock) == (index, number) if domain.is_wall_clock else its.same_timebase(domain))
        }
        at = [ts for instant in instants for key, ts in instant.sides if key in same]
        read = [snap for trace in traces for snap in trace.snapshots if snap.clock in same.values()]
        at += [snap.ts for snap in read if not is_definition(snap)]
        at += [spans(traces[index]).get(number, (0, 0))[0]]
        way = ClockMap(0, 0, (Step("--drift", Provenance.USER),), Verdict.ASSUMED, drift, at[0])
        for input, clock in same:
            if found.setdefault(input, {}).setdefault(clock, way).drift != drift:
                name = traces[index].sources[0].name
                raise InconsistentClocks(Text.TWO_DRIFTS(file=name, clock=domain.name), hint=Text.SAY_ONE_DRIFT())
    return found


def _corrected(trace: Trace, corrections: Mapping[int, ClockMap]) -> Trace:
    """The input, with readings of its clocks as they are once stated drifts are taken out."""
    by_domain = {trace.clocks[number]: way for number, way in corrections.items()}
    moved = [
        snap if is_definition(snap) else replace(snap, ts=by_domain.get(snap.clock, ClockMap()).at(snap.ts))
        for snap in trace.snapshots
    ]
    return trace.with_tables(snapshots=moved) if by_domain else trace


def _refuse_other_drift(traces: Sequence[Trace], trace: Trace, domain: ClockDomain, drift: int) -> None:
    """Refuse a drift that the clock does not have: it was read beside the wall clock more than once."""
    is_it = [domain]
    is_it += [snap.other for snap in trace.snapshots if snap.clock == domain and snap.provenance is Provenance.USER]
    read = [
        snap
        for one in traces
        for snap in one.snapshots
        if any(snap.clock.same_timebase(its) for its in is_it)
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
            Text.READ_WITH_OTHER_DRIFT(file=name, stated=stated, method=first.method, read=ppm, within=within),
            hint=Text.LEAVE_DRIFT_OUT(),
        )


# -- the points of anchors --------------------------------------------------------------------------------------------


def _instant(anchor: Anchor, traces: Sequence[Trace]) -> Instant:
    """The times of the two points of an anchor."""
    points = [_time(point, traces[point.input], anchor.text) for point in (anchor.one, anchor.other)]
    (one, ts, step), (other, other_ts, its_step) = sorted(points, key=lambda point: point[0])
    within = step + its_step if anchor.within_ns is None else anchor.within_ns
    return Instant(one, other, ts, other_ts, within, anchor.text)


def _time(point: Point, trace: Trace, text: str) -> tuple[Key, int, int]:
    """The clock of a point, its time on it, and to how many ns that is known."""
    if isinstance(point, EventPoint):
        clock, ts = _event(point, trace, text)
        return (point.input, clock), ts, trace.clocks[clock].resolution_ns
    clock = main_clock(trace, "--anchor")
    return (point.input, clock), point.ts, max(point.step_ns, trace.clocks[clock].resolution_ns)


def _event(point: EventPoint, trace: Trace, text: str) -> tuple[int, int]:
    """The clock of an event, and its time. What has that name as a slice comes before what has it otherwise."""
    name = trace.sources[0].name
    named = ((table, np.flatnonzero(found)) for table, found in _named(point.name, trace) if np.any(found))
    table, rows = next(named, (None, ()))
    if table is None:
        raise UsageError(Text.NO_SUCH_EVENT(anchor=text, file=name, name=point.name), hint=_similar(point, trace))
    if abs(point.number) > len(rows):
        raise UsageError(
            Text.FEWER_EVENTS(anchor=text, file=name, count=len(rows), name=point.name, number=abs(point.number)),
            hint=Text.FIRST_AND_LAST(count=len(rows)),
        )
    in_order = rows[np.lexsort((table.origin[rows], table.ts[rows]))]
    row = in_order[point.number - 1 if point.number > 0 else point.number]
    clock = int(trace.tracks[table.track[row]].clock)
    if trace.clocks[clock].run is Run.TOTALS:
        raise UsageError(Text.ROW_WITHOUT_TIME(anchor=text, name=point.name, file=name))
    dur = int(trace.slices.dur[row]) if table is trace.slices and point.at_end else 0
    return clock, int(table.ts[row]) + dur


def _named(name: str, trace: Trace) -> Iterator[tuple[Any, Any]]:
    """The tables, each with which of its rows have a name: entries of a log by their text, samples also by function."""
    wanted = trace.strings.index(name) if name in trace.strings else -1
    yield trace.slices, trace.slices.name == wanted
    yield trace.instants, trace.instants.name == wanted
    yield trace.logs, trace.logs.text == wanted
    frames = [number for number, frame in enumerate(trace.frames) if frame.name == name]
    yield trace.samples, (trace.samples.name == wanted) | np.isin(trace.samples.stack, frames)
    tracks = [number for number, track in enumerate(trace.tracks) if track.name == name]
    yield trace.counters, np.isin(trace.counters.track, tracks)


def _similar(point: EventPoint, trace: Trace) -> Message:
    """Names of the input that are like the wanted one, else some."""
    import difflib  # for this message alone

    tables = (trace.slices.name, trace.instants.name, trace.logs.text, trace.samples.name)
    used = {trace.strings[number] for names in tables for number in np.unique(names)[:_MOST_NAMES]}
    used |= {trace.frames[number].name for number in np.unique(trace.samples.stack)[:_MOST_NAMES] if number >= 0}
    used |= {trace.tracks[number].name for number in np.unique(trace.counters.track)}
    names = sorted(used - {""})
    close = difflib.get_close_matches(point.name, names, 3, 0.5) or names[:3]
    return Text.HAS_FOR_INSTANCE(names=tuple(map(repr, close))) if close else Text.HAS_NO_EVENTS()


# -- anchors ----------------------------------------------------------------------------------------------------------


def _anchored(
    traces: Sequence[Trace],
    instants: Sequence[Instant],
    corrections: Mapping[int, Mapping[int, ClockMap]],
    offsets: Mapping[int, int],
) -> tuple[list[Trace], list[Relation], list[Said]]:
    """Relate each two clocks that anchors tie together.

    Returns:
        The inputs, without the guesses of importers that contradict anchors, the relations, and what is to be said.
    """
    groups: dict[tuple[Key, Key], list[Instant]] = defaultdict(list)
    for instant in instants:
        ts, other_ts = (corrections.get(key[0], {}).get(key[1], ClockMap()).at(ts) for key, ts in instant.sides)
        groups[instant.one, instant.other].append(replace(instant, ts=ts, other_ts=other_ts))
    found, relations, said = list(traces), list[Relation](), list[Said]()
    exact: list[Relation] = []  # as they are at the instants: there they are checked
    for group in groups.values():
        _refuse_moved(found, group[0], offsets)
        _refuse_two_at_once(found, group)
        for instant in group:
            found, dropped = _checked(found, exact, instant)
            said += dropped
        drifts = not any(key[0] in corrections for key, _ in group[0].sides)
        at_instant, everywhere = _relations(found, _one_for_each_instant(group), drifts=drifts)
        exact.append(at_instant)
        relations.append(everywhere)
    return found, relations, said


def _one_for_each_instant(group: Sequence[Instant]) -> list[Instant]:
    """The anchors, those of one instant of the first clock, which agree, as one that holds what all of them allow."""
    found: dict[int, Instant] = {}
    for one in group:
        both = (one, found.get(one.ts, one))
        low = max(each.other_ts - each.within_ns for each in both)
        high = min(each.other_ts + each.within_ns for each in both)
        found[one.ts] = replace(both[1], other_ts=(low + high) // 2, within_ns=(high - low + 1) // 2)
    return list(found.values())


def _relations(traces: Sequence[Trace], group: Sequence[Instant], *, drifts: bool) -> tuple[Relation, Relation]:
    """The relation of two clocks by anchors: at their instants, and everywhere.

    Args:
        traces: the inputs.
        group: all anchors of the two clocks.
        drifts: whether the clocks may drift by what nobody states.

    Raises:
        InconsistentClocks: the anchors contradict each other.
    """
    domains = group[0].domains(traces)
    drifts = drifts and not any(domain.synthetic for domain in domains)
    if len(group) > 1:
        relation = Relation(*domains, *_ways(group, traces, SLEW_DRIFT if drifts else 0.0))
        return relation, relation
    (one,) = group
    known = graph_of([REALTIME], traces).maps_to(domains[1]).get(domains[0]) if drifts else None
    holds = known is not None and known.bound_ns is not None  # at all times, as files relate them, only less exactly
    way = known if known is not None and holds else ClockMap()
    way = way.then(ClockMap(one.other_ts - way.at(one.ts)))
    steps = (Step("--anchor", Provenance.USER),)
    relation = Relation(*domains, replace(way, bound_ns=one.within_ns, steps=steps, verdict=Verdict.ASSUMED))
    return relation, relation if holds or not drifts else _less_sure_away(relation, one, traces)


def _less_sure_away(relation: Relation, one: Instant, traces: Sequence[Trace]) -> Relation:
    """One instant says nothing of the drift: the farther from it, the less is known."""
    step = Step(Text.ANCHOR_AND_FREE_DRIFT(ppm=FREE_DRIFT * 1e6), Provenance.USER)
    far = [max(abs(end - ts) for end in _span(traces, key, ts)) for key, ts in one.sides]
    way, back = (
        replace(way, bound_ns=one.within_ns + round(FREE_DRIFT * away), steps=(step,))
        for way, away in zip((relation.way, relation.way.inverse()), far, strict=True)
    )
    return replace(relation, way=way, back=back)


def _span(traces: Sequence[Trace], key: Key, ts: int) -> tuple[int, int]:
    """The first and the last time of the events on a clock; without any, the given one."""
    return spans(traces[key[0]]).get(key[1], (ts, ts))


def _ways(group: Sequence[Instant], traces: Sequence[Trace], max_drift: float) -> tuple[ClockMap, ClockMap]:
    """The line through several anchors of two clocks, and the way back, each with its bound for the events there."""
    readings = [(one.ts, one.other_ts, one.within_ns) for one in group]
    step = Step(f"{len(group)} x --anchor", Provenance.USER)

    def line(span: tuple[int, int]) -> ClockMap:
        way = line_through(readings, span, max_drift, step, Verdict.ASSUMED)
        if way is None:
            raise _contradict_each_other(group, traces, max_drift)
        return way

    ends, its_ends = (_span(traces, key, ts) for key, ts in group[0].sides)
    way = line(ends)
    back = way.inverse()
    return way, line((back.at(its_ends[0]), back.at(its_ends[1]))).inverse()


# -- contradictions ---------------------------------------------------------------------------------------------------


def _contradict_each_other(group: Sequence[Instant], traces: Sequence[Trace], max_drift: float) -> InconsistentClocks:
    """Anchors through which no line goes, told by the two that are farthest apart."""
    early, late = min(group, key=lambda one: one.ts), max(group, key=lambda one: one.ts)
    file, other = early.names(traces)
    timeless = [name for name, domain in zip((file, other), early.domains(traces), strict=True) if domain.synthetic]
    reason = Text.LESS_BESIDES_DRIFT()
    if max_drift:
        reason = Text.MORE_THAN_DRIFT_ALLOWS(ppm=max_drift * 1e6)
    elif timeless:
        reason = Text.LESS_WITHOUT_CLOCK(file=timeless[0])
    text = Text.ANCHORS_CONTRADICT(
        early=early.text,
        late=late.text,
        passed=late.ts - early.ts,
        file=file,
        its_passed=late.other_ts - early.other_ts,
        other=other,
        reason=reason,
    )
    return InconsistentClocks(text, hint=Text.ONE_ANCHOR_WRONG())


def _refuse_moved(traces: Sequence[Trace], instant: Instant, offsets: Mapping[int, int]) -> None:
    """Refuse offsets that move two inputs apart that an anchor ties together."""
    apart = abs(offsets.get(instant.one[0], 0) - offsets.get(instant.other[0], 0))
    if apart > instant.within_ns:
        file, other = instant.names(traces)
        raise InconsistentClocks(
            Text.OFFSET_MOVES_ANCHOR(file=file, other=other, apart=apart, anchor=instant.text),
            hint=Text.SAY_ONE_OF_TWO(),
        )


def _refuse_two_at_once(traces: Sequence[Trace], group: Sequence[Instant]) -> None:
    """Refuse two anchors that say different things of one instant of a file."""
    for (one, two), at in product(combinations(group, 2), (0, 1)):
        apart, allowed = abs(one.sides[1 - at][1] - two.sides[1 - at][1]), one.within_ns + two.within_ns
        if one.sides[at][1] == two.sides[at][1] and apart > allowed:
            file, other = one.names(traces)[:: -1 if at else 1]
            raise UsageError(
                Text.ONE_INSTANT_AT_TWO(
                    one=one.text, two=two.text, file=file, other=other, apart=apart, allowed=allowed
                ),
                hint=Text.ONE_ANCHOR_WRONG(),
            )


def _far_away(traces: Sequence[Trace], instants: Sequence[Instant]) -> Iterator[Said]:
    """Say that a time lies far outside of its recording: what was meant may be another unit, or the other file."""
    for instant in instants:
        for key, ts in instant.sides:
            first, last = _span(traces, key, ts)
            away = max(first - ts, ts - last)
            if away > max(last - first, _NEAR_ANCHOR_NS):
                text = Text.ANCHOR_BEFORE_EVENTS if ts < first else Text.ANCHOR_AFTER_EVENTS
                yield key, text(anchor=instant.text, away=away)


def _checked(traces: list[Trace], relations: Sequence[Relation], instant: Instant) -> tuple[list[Trace], list[Said]]:
    """Refuse an anchor that contradicts the files; guesses of importers that contradict it are dropped.

    Returns:
        The inputs without these guesses, and what is to be said of that.
    """
    one, other = instant.domains(traces)
    stated = ClockSnapshot(one, instant.ts, other, instant.other_ts, instant.within_ns, "")
    sure = [_without_guesses(trace) for trace in traces]
    wrong = _disagreement(stated, sure, relations)
    if wrong is not None:
        apart, away = wrong
        file, its_file = instant.names(traces)
        raise InconsistentClocks(
            Text.ANCHOR_ELSEWHERE(anchor=instant.text, file=file, other=its_file, away=away),
            hint=Text.CHECK_ANCHOR(file=file, move=apart),
        )
    wrong = _disagreement(stated, traces, relations)
    if wrong is None:
        return traces, []
    said = [
        (key, Text.ANCHOR_BELIEVED(guess=guess.method, apart=abs(wrong[0]), anchor=instant.text))
        for key, _ in instant.sides
        for guess in filter(_is_guess, traces[key[0]].snapshots)
    ]
    tied = {key[0] for key, _ in instant.sides}
    return [sure[index] if index in tied else trace for index, trace in enumerate(traces)], said


def _without_guesses(trace: Trace) -> Trace:
    """The input without what its importer assumed."""
    return trace.with_tables(snapshots=[snap for snap in trace.snapshots if not _is_guess(snap)])


def _is_guess(snap: ClockSnapshot) -> bool:
    """Whether an importer assumed the snapshot, and not the user."""
    given = snap.provenance is Provenance.USER or (snap.local is not None and not snap.local.guessed)
    return snap.assumed and not given


def graph_of(domains: Iterable[ClockDomain], traces: Sequence[Trace], relations: Sequence[Relation] = ()) -> ClockGraph:
    """Some domains and the clocks of all inputs, with what relates them."""
    snapshots = [snap for trace in traces for snap in trace.snapshots]
    graph = ClockGraph([*domains, *(clock for trace in traces for clock in trace.clocks)], snapshots)
    for relation in relations:
        graph.relate(relation.clock, relation.other, relation.way, relation.back)
    return graph


def _disagreement(
    stated: ClockSnapshot, traces: Sequence[Trace], relations: Sequence[Relation] = ()
) -> tuple[int, Message] | None:
    """How far what is known is from two times of two clocks being one instant, ns, and that in words; None if near."""
    way = graph_of([REALTIME], traces, relations).maps_to(stated.other).get(stated.clock)
    if way is None:
        return None
    apart = stated.other_ts - way.at(stated.ts)
    allowed = (stated.bound_ns or 0) + (MOST_UNSTATED_NS if way.bound_ns is None else way.bound_ns)
    allowed += _drifted_ns(stated.ts, stated.clock, traces) + _drifted_ns(stated.other_ts, stated.other, traces)
    if abs(apart) <= allowed:
        return None
    return apart, Text.AWAY_FROM_KNOWN(apart=abs(apart), method=way.method, allowed=allowed)


def _drifted_ns(ts: int, domain: ClockDomain, traces: Sequence[Trace]) -> int:
    """How far a clock can have drifted from the wall clock since it was read last; 0 if it was only defined."""
    if domain.is_wall_clock:
        return 0
    snapshots = (snap for trace in traces for snap in trace.snapshots)
    known = [snap for snap in snapshots if not snap.assumed and not is_definition(snap)]
    readings = [snap.ts for snap in known if snap.clock == domain]
    readings += [snap.other_ts for snap in known if snap.other == domain]
    return round(min((abs(ts - read) for read in readings), default=0) * SLEW_DRIFT)

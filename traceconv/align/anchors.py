"""Apply anchors, which state that points of two files are one instant, and check them against other evidence.

All anchors of two clocks give one line between them. It must agree with the other anchors and with what the files
state, within all bounds and the drift between the instants that are compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, product
from shlex import quote
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from traceconv.align.constraints import Anchor, EventPoint, Point
from traceconv.align.domains import ClockWarning, Key, is_definition, main_clock
from traceconv.align.geometry import line_through
from traceconv.errors import InconsistentClocks, UsageError
from traceconv.io.shown import listed
from traceconv.model.clocks import (
    FREE_DRIFT,
    MOST_UNSTATED_NS,
    REALTIME,
    SLEW_DRIFT,
    ClockDomain,
    ClockGraph,
    ClockMap,
    ClockSnapshot,
    Provenance,
    Run,
    Step,
    Verdict,
)
from traceconv.model.numbers import format_long, format_option, format_time, format_uncertainty
from traceconv.model.trace import Slices, Trace

#: An anchor may be this far outside of the events of its file, ns, however short the recording is.
_NEAR_ANCHOR_NS = 10 * 10**9
#: The most names of a kind that are searched for similar ones.
_MOST_NAMES = 2000
_LESS_ACCURATE = "one of them is wrong, or less accurate than stated: append ~TIME, its uncertainty"


class Relation(Struct, frozen=True):
    """An edge of the clock graph, with a drift.

    Attributes:
        clock_map: the map from the first to the second, with the bound for the events on the first.
        back: the map from the second to the first, with the bound for the events on the second; None if the bounds are
            equal.
    """

    clock: ClockDomain
    other: ClockDomain
    clock_map: ClockMap
    back: ClockMap | None = None


class Instant(Struct, frozen=True):
    """An anchor, with its points as times.

    Attributes:
        clock, other: the input and the clock of each point, as numbers; the first is the lesser.
        ts, other_ts: the times of the points on these clocks, ns.
        within_ns: how far apart the two instants can be, ns.
    """

    clock: Key
    other: Key
    ts: int
    other_ts: int
    within_ns: int
    text: str

    @property
    def sides(self) -> tuple[tuple[Key, int], tuple[Key, int]]:
        """Both clocks, each with its time."""
        return (self.clock, self.ts), (self.other, self.other_ts)

    def names(self, traces: Sequence[Trace]) -> tuple[str, str]:
        """Return the files of both clocks."""
        return traces[self.clock[0]].sources[0].name, traces[self.other[0]].sources[0].name

    def domains(self, traces: Sequence[Trace]) -> tuple[ClockDomain, ClockDomain]:
        """Return both clocks."""
        return traces[self.clock[0]].clocks[self.clock[1]], traces[self.other[0]].clocks[self.other[1]]


def instant_of(anchor: Anchor, traces: Sequence[Trace]) -> Instant:
    """Return the times of the two points of an anchor."""
    points = [_time(point, traces[point.input], anchor.text) for point in (anchor.point, anchor.other)]
    (key, ts, step), (other, other_ts, other_step) = sorted(points, key=lambda point: point[0])
    within = step + other_step if anchor.within_ns is None else anchor.within_ns
    return Instant(key, other, ts, other_ts, within, anchor.text)


def _time(point: Point, trace: Trace, text: str) -> tuple[Key, int, int]:
    """Return the clock of a point, its time in ns, and the uncertainty of that in ns."""
    if isinstance(point, EventPoint):
        clock, ts = _event(point, trace, text)
        return (point.input, clock), ts, trace.clocks[clock].resolution_ns
    clock = main_clock(trace, "--anchor")
    return (point.input, clock), point.ts, max(point.step_ns, trace.clocks[clock].resolution_ns)


def _event(point: EventPoint, trace: Trace, text: str) -> tuple[int, int]:
    """Return the clock of an event and its time in ns. Slices of a name come before other events of that name."""
    name = trace.sources[0].name
    named = ((table, np.flatnonzero(is_named)) for table, is_named in _named(point.name, trace) if np.any(is_named))
    table, rows = next(named, (None, ()))
    if table is None:
        raise UsageError(f"--anchor {text!r}: {name} has no event named {point.name!r}", hint=_similar(point, trace))
    if abs(point.number) > len(rows):
        raise UsageError(
            f"--anchor {text!r}: {name} has {len(rows)} events named {point.name!r}, not {abs(point.number)}",
            hint=f"the first is #1, the last is #{len(rows)} or #-1",
        )
    in_order = rows[np.lexsort((table.origin[rows], table.ts[rows]))]
    row = in_order[point.number - 1 if point.number > 0 else point.number]
    clock = int(trace.tracks[table.track[row]].clock)
    if trace.clocks[clock].run is Run.TOTALS:
        raise UsageError(f"--anchor {text!r}: {point.name!r} in {name} is a row of a table without times")
    dur = int(trace.slices.dur[row]) if isinstance(table, Slices) and point.at_end else 0
    return clock, int(table.ts[row]) + dur


def _named(name: str, trace: Trace) -> Iterator[tuple[Any, Any]]:
    """Yield tables, each with a mask of the rows of a name: of log entries the text, of samples also functions."""
    wanted = trace.strings.index(name) if name in trace.strings else -1
    yield trace.slices, trace.slices.name == wanted
    yield trace.instants, trace.instants.name == wanted
    yield trace.logs, trace.logs.text == wanted
    frames = [number for number, frame in enumerate(trace.frames) if frame.name == name]
    yield trace.samples, (trace.samples.name == wanted) | np.isin(trace.samples.stack, frames)
    tracks = [number for number, track in enumerate(trace.tracks) if track.name == name]
    yield trace.counters, np.isin(trace.counters.track, tracks)


def _similar(point: EventPoint, trace: Trace) -> str:
    """Return names of the input similar to the given one; without any, some of its names."""
    import difflib  # imported here, since only this message needs it

    tables = (trace.slices.name, trace.instants.name, trace.logs.text, trace.samples.name)
    used = {trace.strings[number] for names in tables for number in np.unique(names)[:_MOST_NAMES]}
    used |= {trace.frames[number].name for number in np.unique(trace.samples.stack)[:_MOST_NAMES] if number >= 0}
    used |= {trace.tracks[number].name for number in np.unique(trace.counters.track)}
    names = sorted(used - {""})
    close = difflib.get_close_matches(point.name, names, 3, 0.5) or names[:3]
    return f"its events include {listed(map(repr, close))}" if close else "it has no events at all"


def anchored(
    traces: Sequence[Trace],
    instants: Sequence[Instant],
    corrections: Mapping[int, Mapping[int, ClockMap]],
    offsets: Mapping[int, int],
) -> tuple[list[Trace], list[Relation], list[ClockWarning]]:
    """Return the inputs with the relations that anchors state.

    Returns:
        The inputs, without assumptions of importers that contradict anchors; the relations; the warnings.
    """
    groups: dict[tuple[Key, Key], list[Instant]] = defaultdict(list)
    for instant in instants:
        ts, other_ts = (corrections.get(key[0], {}).get(key[1], ClockMap()).at(ts) for key, ts in instant.sides)
        groups[instant.clock, instant.other].append(replace(instant, ts=ts, other_ts=other_ts))
    related, relations, warnings = list(traces), list[Relation](), list[ClockWarning]()
    exact: list[Relation] = []  # without drift allowance: they are checked at the instants themselves
    for group in groups.values():
        _refuse_moved(related, group[0], offsets)
        _refuse_two_at_once(related, group)
        for instant in group:
            related, dropped = _checked(related, exact, instant)
            warnings += dropped
        drifts = not any(key[0] in corrections for key, _ in group[0].sides)
        at_instant, everywhere = _relations(related, _per_instant(group), drifts=drifts)
        exact.append(at_instant)
        relations.append(everywhere)
    return related, relations, warnings


def _per_instant(group: Sequence[Instant]) -> list[Instant]:
    """Return the anchors; those at the same time of the first clock become one that satisfies all of them."""
    by_instant: dict[int, Instant] = {}
    for instant in group:
        equal = (instant, by_instant.get(instant.ts, instant))
        low = max(anchor.other_ts - anchor.within_ns for anchor in equal)
        high = min(anchor.other_ts + anchor.within_ns for anchor in equal)
        by_instant[instant.ts] = replace(equal[1], other_ts=(low + high) // 2, within_ns=(high - low + 1) // 2)
    return list(by_instant.values())


def _relations(traces: Sequence[Trace], group: Sequence[Instant], *, drifts: bool) -> tuple[Relation, Relation]:
    """Return the relations of two clocks by their anchors."""
    domains = group[0].domains(traces)
    drifts = drifts and not any(domain.synthetic for domain in domains)
    if len(group) > 1:
        relation = Relation(*domains, *_maps_of(group, traces, SLEW_DRIFT if drifts else 0.0))
        return relation, relation
    (instant,) = group
    known = graph_of([REALTIME], traces).maps_to(domains[1]).get(domains[0]) if drifts else None
    # the files relate the clocks at all times, only less exactly
    holds = known is not None and known.bound_ns is not None
    clock_map = known if known is not None and holds else ClockMap()
    clock_map = clock_map.then(ClockMap(instant.other_ts - clock_map.at(instant.ts)))
    steps = (Step("--anchor", Provenance.USER),)
    relation = Relation(*domains, replace(clock_map, bound_ns=instant.within_ns, steps=steps, verdict=Verdict.ASSUMED))
    return relation, relation if holds or not drifts else _less_sure_away(relation, instant, traces)


def _less_sure_away(relation: Relation, instant: Instant, traces: Sequence[Trace]) -> Relation:
    """Return the relation with a bound that grows with the distance from its only anchor: the drift is not known."""
    step = Step(f"--anchor, with up to {FREE_DRIFT * 1e6:.0f} ppm of drift away from its instant", Provenance.USER)
    far = [max(abs(end - ts) for end in _span(traces, key, ts)) for key, ts in instant.sides]
    bounds = [instant.within_ns + round(FREE_DRIFT * away) for away in far]
    clock_map = replace(relation.clock_map, bound_ns=bounds[0], steps=(step,))
    return replace(relation, clock_map=clock_map, back=replace(clock_map.inverse(), bound_ns=bounds[1]))


def _span(traces: Sequence[Trace], key: Key, ts: int) -> tuple[int, int]:
    """Return the first and the last time of events on a clock, ns; the given time if there are none."""
    return traces[key[0]].spans.get(key[1], (ts, ts))


def _maps_of(group: Sequence[Instant], traces: Sequence[Trace], max_drift: float) -> tuple[ClockMap, ClockMap]:
    """Return the line through several anchors of two clocks, and its inverse, each with its bound for the events."""
    readings = [(instant.ts, instant.other_ts, instant.within_ns) for instant in group]
    step = Step(f"{len(group)} x --anchor", Provenance.USER)

    def line(span: tuple[int, int]) -> ClockMap:
        clock_map = line_through(readings, span, max_drift, step, Verdict.ASSUMED)
        if clock_map is None:
            raise _contradict_each_other(group, traces, max_drift)
        return clock_map

    ends, other_ends = (_span(traces, key, ts) for key, ts in group[0].sides)
    clock_map = line(ends)
    back = clock_map.inverse()
    return clock_map, line((back.at(other_ends[0]), back.at(other_ends[1]))).inverse()


def _contradict_each_other(group: Sequence[Instant], traces: Sequence[Trace], max_drift: float) -> InconsistentClocks:
    """Return the error for anchors that no line fits; it names the two that contradict each other most."""
    early, late = min(group, key=lambda instant: instant.ts), max(group, key=lambda instant: instant.ts)
    file, other = early.names(traces)
    timeless = [name for name, domain in zip((file, other), early.domains(traces), strict=True) if domain.synthetic]
    reason = "and their bounds and --drift do not explain the difference"
    if max_drift:
        reason = f"and neither their bounds nor a drift of {max_drift * 1e6:g} ppm explain the difference"
    elif timeless:
        reason = f"and their bounds do not explain the difference; {timeless[0]} has no clock, so it has no drift"
    return InconsistentClocks(
        f"the anchors contradict each other: from {early.text!r} to {late.text!r}, "
        f"{format_time(late.ts - early.ts)} pass in {file}, but "
        f"{format_time(late.other_ts - early.other_ts)} in {other}, {reason}",
        hint=_LESS_ACCURATE,
    )


def _refuse_moved(traces: Sequence[Trace], instant: Instant, offsets: Mapping[int, int]) -> None:
    """Raise InconsistentClocks if offsets contradict an anchor of two inputs."""
    apart = abs(offsets.get(instant.clock[0], 0) - offsets.get(instant.other[0], 0))
    if apart > instant.within_ns:
        file, other = instant.names(traces)
        raise InconsistentClocks(
            f"--offset moves {file} and {other} {format_time(apart)} away from their anchor {instant.text!r}",
            hint="use only one of the two",
        )


def _refuse_two_at_once(traces: Sequence[Trace], group: Sequence[Instant]) -> None:
    """Raise InconsistentClocks if two anchors contradict each other about one instant of a file."""
    for (first, second), at in product(combinations(group, 2), (0, 1)):
        apart, allowed = abs(first.sides[1 - at][1] - second.sides[1 - at][1]), first.within_ns + second.within_ns
        if first.sides[at][1] == second.sides[at][1] and apart > allowed:
            file, other = first.names(traces)[:: -1 if at else 1]
            raise UsageError(
                f"--anchor {first.text!r} and {second.text!r} put one instant of {file} at two instants of {other}"
                f", {format_time(apart)} apart, expected {format_time(allowed)} at most",
                hint=_LESS_ACCURATE,
            )


def far_away(traces: Sequence[Trace], instants: Sequence[Instant]) -> Iterator[ClockWarning]:
    """Yield warnings for points far outside of their recording: perhaps of another unit or file."""
    for instant in instants:
        for key, ts in instant.sides:
            first, last = _span(traces, key, ts)
            away = max(first - ts, ts - last)
            if away > max(last - first, _NEAR_ANCHOR_NS):
                where = "before its first event" if ts < first else "after its last event"
                yield (
                    key,
                    f"--anchor {instant.text!r} names a time {format_long(away)} {where}: check file and unit",
                )


def _checked(
    traces: list[Trace], relations: Sequence[Relation], instant: Instant
) -> tuple[list[Trace], list[ClockWarning]]:
    """Check an anchor against the files; drop assumptions of importers that contradict it."""
    domain, other = instant.domains(traces)
    stated = ClockSnapshot(domain, instant.ts, other, instant.other_ts, instant.within_ns, "")
    sure = [without_guesses(trace) for trace in traces]
    wrong = disagreement(stated, sure, relations)
    if wrong is not None:
        apart, away = wrong
        file, other_file = instant.names(traces)
        raise InconsistentClocks(
            f"the anchor {instant.text!r} puts {file} and {other_file} {away}",
            hint=(
                f"check the anchor; if the clocks of two machines differed, --offset {quote(file)}="
                f"{format_option(apart)}~{format_uncertainty(instant.within_ns)} moves the file"
            ),
        )
    wrong = disagreement(stated, traces, relations)
    if wrong is None:
        return traces, []
    warnings = [
        (key, f"{guess.method}: {format_time(abs(wrong[0]))} away from --anchor {instant.text!r}, which is used")
        for key, _ in instant.sides
        for guess in filter(_is_guess, traces[key[0]].snapshots)
    ]
    tied = {key[0] for key, _ in instant.sides}
    return [sure[index] if index in tied else trace for index, trace in enumerate(traces)], warnings


def without_guesses(trace: Trace) -> Trace:
    """Return the input without the assumptions of its importer."""
    return trace.with_tables(snapshots=[snap for snap in trace.snapshots if not _is_guess(snap)])


def _is_guess(snap: ClockSnapshot) -> bool:
    """Return whether a snapshot is an assumption of an importer."""
    is_stated = snap.provenance is Provenance.USER or (snap.local is not None and not snap.local.guessed)
    return snap.assumed and not is_stated


def graph_of(domains: Iterable[ClockDomain], traces: Sequence[Trace], relations: Sequence[Relation] = ()) -> ClockGraph:
    """Return the graph of some domains and of the clocks of all inputs, with their relations."""
    snapshots = [snap for trace in traces for snap in trace.snapshots]
    graph = ClockGraph([*domains, *(clock for trace in traces for clock in trace.clocks)], snapshots)
    for relation in relations:
        graph.relate(relation.clock, relation.other, relation.clock_map, relation.back)
    return graph


def disagreement(
    stated: ClockSnapshot, traces: Sequence[Trace], relations: Sequence[Relation] = ()
) -> tuple[int, str] | None:
    """Return by how much (ns), and a sentence how, other relations contradict that two times are one instant.

    Returns:
        None if nothing contradicts it.
    """
    clock_map = graph_of([REALTIME], traces, relations).maps_to(stated.other).get(stated.clock)
    if clock_map is None:
        return None
    apart = stated.other_ts - clock_map.at(stated.ts)
    allowed = (stated.bound_ns or 0) + (MOST_UNSTATED_NS if clock_map.bound_ns is None else clock_map.bound_ns)
    allowed += _drifted_ns(stated.ts, stated.clock, traces) + _drifted_ns(stated.other_ts, stated.other, traces)
    if abs(apart) <= allowed:
        return None
    return apart, (
        f"{format_time(abs(apart))} away from the known relation ({clock_map.method}), expected "
        f"{format_time(allowed)} at most"
    )


def _drifted_ns(ts: int, domain: ClockDomain, traces: Sequence[Trace]) -> int:
    """Return the greatest drift of a clock since its last reading, ns; 0 if its zero is defined instead."""
    if domain.is_wall_clock:
        return 0
    snapshots = (snap for trace in traces for snap in trace.snapshots)
    known = [snap for snap in snapshots if not snap.assumed and not is_definition(snap)]
    readings = [snap.ts for snap in known if snap.clock == domain]
    readings += [snap.other_ts for snap in known if snap.other == domain]
    return round(min((abs(ts - read) for read in readings), default=0) * SLEW_DRIFT)

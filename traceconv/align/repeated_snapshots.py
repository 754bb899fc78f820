"""Clocks that were read beside each other more than once, in one file or in several: do the readings agree?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace

from traceconv.align.constraints import Relation, Warnings, map_along
from traceconv.align.domains import own, spans
from traceconv.align.geometry import line_through
from traceconv.clocks import SLEW_DRIFT, ClockDomain, ClockGraph, ClockMap, ClockSnapshot, Step, as_one
from traceconv.errors import InconsistentClocks
from traceconv.ir.trace import Trace
from traceconv.times import format_time

#: Two clocks that were read beside each other, in the order that all files have in common.
Clocks = tuple[ClockDomain, ClockDomain]


@dataclass(frozen=True, slots=True)
class _Reading:
    """A snapshot, with its two clocks in the order of their group."""

    ts: int
    other_ts: int
    bound_ns: int
    step: Step
    file: str

    @property
    def apart(self) -> int:
        """By how much the second clock is ahead, ns."""
        return self.other_ts - self.ts


def with_set_clocks(traces: Sequence[Trace]) -> tuple[list[Trace], dict[Clocks, str]]:
    """The traces; readings of two clocks of which one was set or stood still in between are less sure, which is said.

    Nobody knows when it was set, so the readings through which no line goes are all good only to what it moved by. It
    does not matter which of the files comes first.

    Returns:
        The traces, and for each two such clocks what is to be said of them.
    """
    moved: dict[Clocks, int] = {}
    words: dict[Clocks, str] = {}
    for clocks, group in _groups(traces).items():
        if len(group) > 1 and _line(group, ()) is None:
            least, most = min(group, key=lambda one: one.apart), max(group, key=lambda one: one.apart)
            moved[clocks] = most.apart - least.apart
            files = " and in ".join(dict.fromkeys(one.file for one in sorted((least, most), key=astuple)))
            words[clocks] = (
                f"{clocks[0].name} and {clocks[1].name} moved against each other by {format_time(moved[clocks])} "
                f"between the readings in {files}, more than clocks drift: one of them was set or stood still, and "
                "nothing in between is known better than by that"
            )

    def less_sure(snap: ClockSnapshot, index: int) -> ClockSnapshot:
        more = moved.get(_clocks(snap, traces[index], index)) if _is_reading(snap) else None
        if more is None:
            return snap
        return replace(snap, bound_ns=(snap.bound_ns or 0) + more, method=f"{snap.method} (set in between)")

    found = [
        trace.with_tables(snapshots=[less_sure(snap, index) for snap in trace.snapshots]) if moved else trace
        for index, trace in enumerate(traces)
    ]
    return found, words


def warn_of_set_clocks(
    traces: Sequence[Trace], relations: Sequence[Relation], words: Mapping[Clocks, str], warnings: Warnings
) -> None:
    """Tell the inputs whose events are related to others by way of clocks that were set.

    Args:
        traces: the inputs, without the snapshots that lines stand for.
        relations: all of them.
        words: what is to be said, by clocks.
        warnings: gets it.
    """
    for clocks, text in words.items():
        others = [one for one in relations if (one.clock, one.other) != clocks]
        domains = [domain for trace in traces for domain in trace.clocks]
        graph = ClockGraph([*clocks, *domains], [snap for trace in traces for snap in trace.snapshots])
        for one in others:
            graph.relate(one.clock, one.other, one.way, one.back)
        reached = {domain for clock in clocks if not clock.is_wall_clock for domain in graph.maps_to(clock)}
        for index, trace in enumerate(traces):
            for number in spans(trace):
                if trace.clocks[number] in reached and not trace.clocks[number].is_wall_clock:
                    warnings[index, number].append(text)


def lines_of_readings(traces: Sequence[Trace]) -> tuple[list[Trace], list[Relation]]:
    """Two clocks that were read several times, each time within a bound, are related by a line with a drift.

    The snapshots of these are taken out of the traces. The bound holds over all events on the first clock, and at least
    from as long before the first reading as the last one is after it, to as long after the last one.

    Raises:
        InconsistentClocks: what the user says of the drift leaves no line through them.
    """
    relations: dict[Clocks, Relation] = {}
    for clocks, group in _groups(traces).items():
        if len(group) < 2:
            continue
        way = _line(group, [end for trace in traces for end in _ends(trace, clocks[0])])
        if way is None:
            files = ", ".join(sorted({one.file for one in group}))
            raise InconsistentClocks(
                f"{files}: no even drift leads through the readings of {clocks[0].name} and {clocks[1].name}",
                hint="leave --drift out: what was read is used",
            )
        relations[clocks] = Relation(*clocks, way)
    kept = [
        trace.with_tables(
            snapshots=[
                snap
                for snap in trace.snapshots
                if not _is_reading(snap) or _clocks(snap, trace, index) not in relations
            ]
        )
        for index, trace in enumerate(traces)
    ]
    return kept, list(relations.values())


def _groups(traces: Sequence[Trace]) -> dict[Clocks, list[_Reading]]:
    """For each two clocks what all inputs read of them, in order of time, each reading once."""
    found: dict[Clocks, set[_Reading]] = defaultdict(set)
    for index, trace in enumerate(traces):
        for snap in filter(_is_reading, trace.snapshots):
            clocks = _clocks(snap, trace, index)
            in_order = clocks[0] == as_one(own(snap.clock, trace, index))
            ts, other_ts = (snap.ts, snap.other_ts) if in_order else (snap.other_ts, snap.ts)
            found[clocks].add(_Reading(ts, other_ts, snap.bound_ns or 0, snap.step, trace.sources[0].name))
    return {clocks: _once(sorted(group, key=astuple)) for clocks, group in found.items() if clocks[0] != clocks[1]}


def _once(group: Sequence[_Reading]) -> list[_Reading]:
    """What two files say alike is one reading."""
    return list({(one.ts, one.other_ts, one.bound_ns): one for one in reversed(group)}.values())[::-1]


def _is_reading(snap: ClockSnapshot) -> bool:
    return snap.bound_ns is not None and not snap.assumed


def _clocks(snap: ClockSnapshot, trace: Trace, index: int) -> Clocks:
    """The two clocks of a snapshot in the order that all files have in common: the wall clock comes last."""
    one, other = sorted(
        (as_one(own(clock, trace, index)) for clock in (snap.clock, snap.other)),
        key=lambda clock: (clock.is_wall_clock, clock.name, clock.machine, clock.owner),
    )
    return one, other


def _line(group: Sequence[_Reading], ends: Sequence[int]) -> ClockMap | None:
    """The line through readings in order of time, good for all times between some ends; None if there is none."""
    first, last = group[0].ts, group[-1].ts
    span = min([2 * first - last, *ends]), max([2 * last - first, *ends])
    readings = [(one.ts, one.other_ts, one.bound_ns) for one in group]
    max_drift = SLEW_DRIFT if first != last else 0.0  # one instant says nothing of the drift
    step = group[0].step
    line = line_through(readings, span, max_drift)
    return None if line is None else map_along(line, replace(step, text=f"{step.text}, read {len(group)} times"))


def _ends(trace: Trace, clock: ClockDomain) -> list[int]:
    """The first and the last time of events on a clock, by whatever resolution its file has; empty without any."""
    same = [number for number, domain in enumerate(trace.clocks) if domain == clock or domain.same_timebase(clock)]
    return [end for number, span in spans(trace).items() if number in same for end in span]

"""Check repeated snapshots of two clocks against each other, and replace them by a line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from msgspec import Struct

from traceconv.align.anchors import Relation, graph_of
from traceconv.align.domains import ClockWarning, spans
from traceconv.align.geometry import line_through
from traceconv.align.wording import listed
from traceconv.errors import InconsistentClocks
from traceconv.model.clocks import SLEW_DRIFT, ClockDomain, ClockMap, ClockSnapshot, Step, as_one
from traceconv.model.numbers import format_time
from traceconv.model.trace import Trace

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
            files = tuple(dict.fromkeys(one.file for one in group if one in (least, most)))
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
    """Yield a warning for each input whose events are related to others through clocks that were set.

    Args:
        traces: the inputs, without the snapshots that lines replace.
        relations: all relations.
        words: the warnings, by pair of clocks.
    """
    for clocks, text in words.items():
        graph = graph_of(clocks, traces, [one for one in relations if (one.clock, one.other) != clocks])
        reached = {domain for clock in clocks if not clock.is_wall_clock for domain in graph.maps_to(clock)}
        for index, trace in enumerate(traces):
            for number in spans(trace):
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
            files = tuple(sorted({one.file for one in group}))
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
            one = _Reading(ts, other_ts, snap.bound_ns or 0, snap.step, trace.sources[0].name)
            place = ts, other_ts, one.bound_ns
            groups[clocks][place] = min(one, groups[clocks].get(place, one), key=lambda one: one.file)
    return {
        clocks: [group[place] for place in sorted(group)] for clocks, group in groups.items() if clocks[0] != clocks[1]
    }


def _is_reading(snap: ClockSnapshot) -> bool:
    return snap.bound_ns is not None and not snap.assumed


def _clocks(snap: ClockSnapshot) -> Clocks:
    """Return the two clocks of a snapshot in an order that is the same for all files: the wall clock is last."""
    one, other = sorted(
        map(as_one, (snap.clock, snap.other)),
        key=lambda clock: (clock.is_wall_clock, clock.name, clock.machine, clock.owner),
    )
    return one, other


def _line(group: Sequence[_Reading], ends: Sequence[int]) -> ClockMap | None:
    """Return the line through readings in order of time, with a bound between two ends; None if there is none."""
    first, last = group[0].ts, group[-1].ts
    span = min([2 * first - last, *ends]), max([2 * last - first, *ends])
    readings = [(one.ts, one.other_ts, one.bound_ns) for one in group]
    max_drift = SLEW_DRIFT if first != last else 0.0  # one instant does not determine the drift
    step = group[0].step
    text = f"{step.text}, read {len(group)} times"
    return line_through(readings, span, max_drift, replace(step, text=text))


def _ends(trace: Trace, clock: ClockDomain) -> list[int]:
    """Return the first and the last time of events on a clock, whatever its resolution; empty without events."""
    same = [number for number, domain in enumerate(trace.clocks) if domain == clock or domain.same_timebase(clock)]
    return [end for number, span in spans(trace).items() if number in same for end in span]

"""List the clocks of all inputs and their relations, with advice where relations are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, islice
from shlex import quote
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from traceconv.align.constraints import NO_CONSTRAINTS, Constraints
from traceconv.align.domains import Key, timed_clocks, zone_advice
from traceconv.align.inputs import ClockInput, HostsApart, Inputs, gathered
from traceconv.align.placement import one_machine_advice
from traceconv.align.statements import moved_by_user
from traceconv.families.registry import importer_class
from traceconv.io.shown import quoted
from traceconv.model.clocks import REALTIME, ClockDomain, ClockMap, Run, Zero
from traceconv.model.trace import Trace

if TYPE_CHECKING:
    from traceconv.align.devices import Behind

#: Up to this many inputs, all pairs are listed; beyond it, only those with the first one.
_MOST_PAIRED = 16


class ClockLine(Struct, frozen=True):
    """A clock of an input.

    Attributes:
        events: whether events use it; else it only relates other clocks.
        realtime: the map to CLOCK_REALTIME, of its own host if there are several; None if nothing relates the two.
        warnings: what the events of the input say against the clock.
    """

    file: str
    clock: ClockDomain
    host: str
    events: bool
    realtime: ClockMap | None
    warnings: tuple[str, ...] = ()


class PairLine(Struct, frozen=True):
    """Two inputs: the relation of their events, or advice to relate them.

    Attributes:
        clock_map: the map from the first to the other; None if nothing relates them.
        advice: sentences on how to relate them; empty if they are related.
    """

    file: str
    other: str
    clock_map: ClockMap | None
    advice: tuple[str, ...] = ()


class Survey(Struct, frozen=True):
    """The clocks of inputs and their relations.

    Attributes:
        pairs: the pairs of inputs that have events with times.
        only_with_first: whether `pairs` holds only pairs with the first input, since there are too many inputs.
    """

    clocks: list[ClockLine]
    pairs: list[PairLine]
    hosts: Sequence[HostsApart] = ()
    only_with_first: bool = False


def survey(traces: Sequence[Trace], constraints: Constraints = NO_CONSTRAINTS) -> Survey:
    """Return the known relations of the clocks of inputs; missing ones are not an error.

    Collectives that contradict each other, or fit at several offsets, relate no hosts here.

    Raises:
        InconsistentClocks: the constraints contradict themselves or the files.
        UsageError: a constraint does not fit its input.
    """
    from traceconv.align.collective_hosts import with_hosts_related
    from traceconv.align.devices import devices_behind, skews_of

    inputs = gathered(traces, constraints)
    inputs = with_hosts_related(replace(inputs, skews=skews_of(inputs)), leave_contradictions=True)
    # Hosts may have refined the offsets of inputs with events.
    offsets = moved_by_user(constraints) | {clock.index: clock.offset for clock in inputs.clocks}
    behind = devices_behind(inputs)
    maps = _RelatedMaps(inputs, {index: offset for index, offset in offsets.items() if offset is not None})
    used = {clock.key: clock for clock in inputs.clocks}
    clocks = [
        ClockLine(
            trace.sources[0].name,
            domain,
            domain.machine or traces[index].host,
            (index, number) in used,
            _within(behind, maps.to(inputs.stated.walls[index], index, domain), (index, number)),
            (behind[index, number].said,) if (index, number) in behind else (),
        )
        for index, trace in enumerate(inputs.traces)
        for number, domain in enumerate(trace.clocks)
        if (index, number) in used or domain.run is not Run.TOTALS
    ]
    timed = ((index, timed_clocks(trace, trace.spans)[:1]) for index, trace in enumerate(inputs.traces))
    sides = [used[index, number] for index, first in timed for number in first]
    anchored = any(trace.sources[0].marks.reads_clocks for trace in traces)
    pairs, many = [], len(sides) > _MOST_PAIRED
    for side, other in islice(combinations(sides, 2), len(sides) - 1 if many else None):
        clock_map = _within(behind, maps.between(side, other), side.key, other.key)
        advice = [] if clock_map is not None else _advice(side, other, maps, anchored=anchored)
        pairs.append(PairLine(side.name, other.name, clock_map, tuple(advice)))
    return Survey(clocks, pairs, inputs.hosts_apart, many)


def _within(behind: Mapping[Key, Behind], clock_map: ClockMap | None, *clocks: Key) -> ClockMap | None:
    """Return the map with a bound that contains the skew of the devices of some clocks."""
    for clock in clocks:
        if clock_map is not None and clock in behind:
            clock_map = behind[clock].within(clock_map)
    return clock_map


class _RelatedMaps(Struct, frozen=True):
    """The relations of clocks, with the offsets of the user."""

    inputs: Inputs
    offsets: Mapping[int, ClockMap]

    def to(self, target: ClockDomain, index: int, domain: ClockDomain) -> ClockMap | None:
        """Return the map from a clock of an input to another clock; an --offset alone also relates them."""
        offset, graph = self.offsets.get(index), self.inputs.graph
        known = graph.maps_to(target).get(domain)
        return known if offset is None else (known or ClockMap()).then(offset)

    def between(self, clock: ClockInput, other: ClockInput) -> ClockMap | None:
        """Return the map from the clock of one input to that of another one, with their --offset."""
        graph = self.inputs.graph
        if not {clock.index, other.index} & set(self.offsets):
            return graph.maps_to(other.domain).get(clock.domain)
        known = graph.maps_to(REALTIME)
        stays = clock if other.index in self.offsets else other
        target = REALTIME if clock.domain in known or other.domain in known else stays.domain
        maps = [self.to(target, side.index, side.domain) for side in (clock, other)]
        return None if maps[0] is None or maps[1] is None else maps[0].then(maps[1].inverse())


def _advice(first: ClockInput, second: ClockInput, maps: _RelatedMaps, *, anchored: bool) -> list[str]:
    """Return advice to relate two inputs: that of their formats first, then the options of the user."""
    lost = [side for side in (first, second) if maps.to(REALTIME, side.index, side.domain) is None]
    advice = ((side, importer_class(side.trace.sources[0].format).line_up) for side in lost)
    words = [f"{side.name}: {line_up.replace('FILE=', f'{quote(side.name)}=')}" for side, line_up in advice]
    zones = [(side, zone_advice(side.trace, side.domain)) for side in lost]
    words += [f"{side.name}: {zone}" for side, zone in zones if zone is not None]
    one_machine = one_machine_advice(first, second)
    if one_machine is not None:
        words.append(one_machine)
    else:
        words += [
            f"if {side.name} counts the monotonic clock of this machine: --clock {quote(side.name)}=monotonic"
            for side, other in ((first, second), (second, first))
            if side in lost and side.counted.zero is Zero.BOOT and not side.counted.machine
            if any(domain.zero is Zero.BOOT for domain in maps.inputs.graph.maps_to(other.domain))
        ]
    if Zero.BOOT in (first.domain.zero, second.domain.zero) and not anchored:
        words.append("next time, read the clocks around the run: traceconv anchor -o anchor.json -- COMMAND")
    command = f"traceconv align {quoted((first.path, second.path))}"
    return [
        f"their events may determine the offset: {command} (if it refuses, use one of the following)",
        *words,
        f"if you know an instant that both recorded: --anchor {quote(_anchor(first, second))}",
        f"if you know how far apart they are: --offset {quote(lost[-1].name)}=TIME",
    ]


def _anchor(first: ClockInput, second: ClockInput) -> str:
    """Return an example of an anchor for two inputs: by events if both have named ones, else by times."""
    named = all(len(side.trace.slices.ts) or len(side.trace.instants.ts) for side in (first, second))
    point = ":NAME#1.start" if named else "@TIME"
    return f"{first.name}{point}={second.name}{point}"

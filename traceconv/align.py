"""Which time axis the inputs are put on, how each gets there, and how sure that is.

Evidence so far, from the surest: the same clock; what the files themselves say (snapshots); what the user says
(`--offset`). Each is an edge of the clock graph or a correction after it; an estimator would add edges of its own.
Without evidence there is no output: a plausible wrong timeline is the worst that this tool can make.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from traceconv.clocks import REALTIME, SINCE_BOOT, ClockDomain, ClockGraph, ClockMap, Run, Zero
from traceconv.errors import UnrelatedClocks
from traceconv.ir.trace import Trace

_SAME_CLOCK = ClockMap().method


@dataclass(frozen=True, slots=True)
class ReceiptLine:
    """How one clock of one input was put on trace time.

    Attributes:
        file: the input.
        format: its importer.
        clock: the name of the domain.
        method: where the relation is known from.
        offset_ns: what was added to each time of that clock.
        bound_ns: how wrong the position can be at most, the resolution of the clock included; None: not known.
        verdict: "ok" when the file says so; "assumed" when it rests on the word of the user or on an assumption, or
            when positions are synthetic.
    """

    file: str
    format: str
    clock: str
    method: str
    offset_ns: int
    bound_ns: int | None
    verdict: str

    def as_json(self) -> dict[str, Any]:
        """For metadata."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Alignment:
    """A trace time, and for each input a map from each of its clocks to it.

    Attributes:
        clock: what the times of the output count.
        maps: for each input, by clock index, the map of each clock that events use.
        receipt: a line for each of these maps.
    """

    clock: ClockDomain
    maps: list[dict[int, ClockMap]]
    receipt: list[ReceiptLine]


def align(traces: Sequence[Trace], offsets: Mapping[int, int] | None = None) -> Alignment:
    """Relate the clocks of all inputs.

    Args:
        traces: the inputs, as read.
        offsets: for some inputs, by index, ns to add to each of their times.

    Raises:
        UnrelatedClocks: two inputs have clocks that nothing relates.
    """
    domains = [_own_domains(trace, index) for index, trace in enumerate(traces)]
    graph = _graph(traces, domains)
    used = [_first_times(trace) for trace in traces]
    target = _trace_time(domains, used, graph)
    known = graph.maps_to(target)
    maps = []
    for index, (clocks, first) in enumerate(zip(domains, used, strict=True)):
        found = {number: known[clocks[number]] for number in first if clocks[number] in known}
        _place_synthetic(found, clocks, first)
        _apply_offset(found, clocks, first, (offsets or {}).get(index))
        maps.append(found)
    _place_totals(domains, used, maps)
    _refuse_unrelated(traces, domains, used, maps, target)
    receipt = [
        _receipt_line(trace, clocks[number], found[number])
        for trace, clocks, found in zip(traces, domains, maps, strict=True)
        for number in sorted(found)
    ]
    return Alignment(target, maps, receipt)


def _own_domains(trace: Trace, index: int) -> list[ClockDomain]:
    """The domains of a trace; those that other files cannot share become its own."""
    return [_own(domain, trace, index) for domain in trace.clocks]


def _own(domain: ClockDomain, trace: Trace, index: int) -> ClockDomain:
    if domain.run is Run.TOTALS or domain.zero is Zero.UNIX_EPOCH or (domain.zero in SINCE_BOOT and domain.machine):
        return domain
    return domain.owned_by(f"{index}:{trace.sources[0].name}")


def _graph(traces: Sequence[Trace], domains: list[list[ClockDomain]]) -> ClockGraph:
    snapshots = [
        snapshot.between(_own(snapshot.clock, trace, index), _own(snapshot.other, trace, index))
        for index, trace in enumerate(traces)
        for snapshot in trace.snapshots
    ]
    return ClockGraph([REALTIME, *(domain for own in domains for domain in own)], snapshots)


def _first_times(trace: Trace) -> dict[int, int]:
    """For each clock that events use, the first time on it in ns."""
    clock_of_track = np.array([int(track.clock) for track in trace.tracks] or [0])
    first: dict[int, int] = {}
    for _, table in trace.timed_tables():
        clocks = clock_of_track[table.track]
        for clock in (int(c) for c in np.unique(clocks)):
            earliest = int(np.min(table.ts[clocks == clock]))
            first[clock] = min(earliest, first.get(clock, earliest))
    return dict(sorted(first.items()))


def _trace_time(domains: list[list[ClockDomain]], used: list[dict[int, int]], graph: ClockGraph) -> ClockDomain:
    """Unix time if any input knows it, else the clock of the first input."""
    known = graph.maps_to(REALTIME)
    found = [clocks[number] for clocks, first in zip(domains, used, strict=True) for number in first]
    events_on = [domain for domain in found if domain.run is not Run.TOTALS] or found
    if not events_on or any(domain in known for domain in events_on):
        return REALTIME
    return events_on[0]


def _place_synthetic(found: dict[int, ClockMap], clocks: list[ClockDomain], first: dict[int, int]) -> None:
    """Tracks without times, beside others of the same file that have times: from the first of these on."""
    starts = [first[number] + found[number].offset_ns for number in found]
    for number in first:
        if starts and number not in found and clocks[number].synthetic:
            found[number] = ClockMap(min(starts), 0, "no times in the file: placed at its first timed event")


def _place_totals(
    domains: list[list[ClockDomain]], used: list[dict[int, int]], maps: list[dict[int, ClockMap]]
) -> None:
    """Tables without times stand at the begin of everything that has times."""
    starts = [
        first[number] + found[number].offset_ns
        for clocks, first, found in zip(domains, used, maps, strict=True)
        for number in found
        if clocks[number].run is not Run.TOTALS
    ]
    if not starts:
        return
    for clocks, first, found in zip(domains, used, maps, strict=True):
        for number in first:
            if clocks[number].run is Run.TOTALS:
                found[number] = ClockMap(min(starts), 0, "totals have no times: placed at the begin of the trace")


def _apply_offset(
    found: dict[int, ClockMap], clocks: list[ClockDomain], first: dict[int, int], offset: int | None
) -> None:
    if offset is not None:
        for number in first:
            found[number] = found.get(number, ClockMap()).then(ClockMap(offset, 0, "--offset", assumed=True))


def _refuse_unrelated(
    traces: Sequence[Trace],
    domains: list[list[ClockDomain]],
    used: list[dict[int, int]],
    maps: list[dict[int, ClockMap]],
    target: ClockDomain,
) -> None:
    for trace, clocks, first, found in zip(traces, domains, used, maps, strict=True):
        lost = [number for number in first if number not in found]
        if not lost:
            continue
        name, clock = trace.sources[0].name, clocks[lost[0]].describe()
        other = next(index for index, found_there in enumerate(maps) if found_there)
        if traces[other] is trace:
            raise UnrelatedClocks(
                f"{name} holds times of two clocks that nothing relates: {target.describe()}, and {clock}",
                hint="split it where the second recording begins, and merge the parts with --offset",
            )
        start = min(used[other][number] + maps[other][number].offset_ns for number in maps[other])
        shift = start - first[lost[0]]
        raise UnrelatedClocks(
            f"the clocks of {traces[other].sources[0].name} and {name} cannot be related: the first counts "
            f"{target.describe()}, the second {clock}",
            hint=f"say how: --offset {name}=TIME adds TIME to all times of that file, for instance "
            f"--offset {shlex.quote(name)}={shift:+d}ns to let both begin together; or record with a wall clock",
        )


def _receipt_line(trace: Trace, clock: ClockDomain, found: ClockMap) -> ReceiptLine:
    source = trace.sources[0]
    method = "its own times" if found.method == _SAME_CLOCK else found.method
    bound = None if found.bound_ns is None else found.bound_ns + clock.resolution_ns
    return ReceiptLine(
        source.name,
        source.format,
        clock.name,
        method,
        found.offset_ns,
        bound,
        "assumed" if clock.synthetic or found.assumed else "ok",
    )

"""Bound how far the clock of a device is from that of its host, within one file.

Profilers convert the times of a device to the clock of the host. What remains is the skew: a device time plus the skew
is the time of the host. No kernel begins before the call that launched it, so the skew is at least launch - begin. A
call that waits for the device returns after its kernels, so the skew is at most return - end. The skew drifts by no
more than two clocks of one host do.

A skew that hides in the latency of launches cannot be seen, and is allowed for. A device that is ahead shows longer
latencies: so it is ahead by the shortest one at most. A device that is behind shows shorter ones: by what they cannot
be shorter than on a device that is idle at times, and if all are long, by as much as it may be ahead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, structs

from traceconv.align.geometry import F64
from traceconv.align.host_clocks import host_intervals
from traceconv.align.launches import WRONG_IDS, launched_work, waits_within
from traceconv.model.clocks import HOSTS_DRIFT, ClockMap
from traceconv.model.columns import I64
from traceconv.model.numbers import format_time
from traceconv.model.trace import Trace
from traceconv.model.track_table import processes

if TYPE_CHECKING:
    from traceconv.align.collectives import Occurrences
    from traceconv.align.domains import Key
    from traceconv.align.inputs import Inputs, Placed
    from traceconv.align.receipt import Alignment


#: The greatest of the shortest latencies on a device that is idle at times, ns (recorded: 2 to 20 µs); also what the
#: profiler is believed to without launches.
_LATENCY_NS = 50_000
#: The error of the times of profilers, ns.
PROFILER_NS = 20_000
_UNKNOWN = float(2**61)


class DeviceSkew(Struct, frozen=True):
    """The limits of the skew of a device, by launches and waits.

    Attributes:
        begin, launched: the times of kernels, ascending, and by how much each began before its launch, ns.
        end, waited: the ends of kernels, ascending, and how long after each a wait for it returned, ns.
    """

    begin: F64
    launched: F64
    end: F64
    waited: F64

    @property
    def is_behind(self) -> bool:
        """Whether kernels begin before their launches by more than profilers are wrong."""
        return bool(np.max(self.launched, initial=0) > PROFILER_NS)

    def at(self, ts: I64) -> tuple[I64, I64]:
        """Return the least and the greatest skew at some times, ns."""
        if not len(self.begin):
            return np.full(len(ts), -_LATENCY_NS), np.full(len(ts), _LATENCY_NS)
        times = ts.astype(np.float64)
        seen = -_least(self.begin, -self.launched, times)
        unseen = np.maximum(-seen, 0)
        least = np.where(seen > 0, seen, -unseen)
        most = np.maximum(seen, 0) + np.maximum(unseen, _LATENCY_NS)
        most = np.maximum(np.minimum(most, _least(self.end, self.waited, times)), least)
        return np.floor(least).astype(np.int64), np.ceil(most).astype(np.int64)


#: The limits where nothing was recorded.
NOTHING_KNOWN = DeviceSkew(*(np.zeros(0),) * 4)


def _least(at: F64, values: F64, times: F64) -> F64:
    """Return the least limit at some times: a value, plus the drift for the time between."""
    if not len(at):
        return np.full(len(times), _UNKNOWN)
    before = np.append(_UNKNOWN, np.minimum.accumulate(values - HOSTS_DRIFT * at))
    after = np.append(np.minimum.accumulate((values + HOSTS_DRIFT * at)[::-1])[::-1], _UNKNOWN)
    place = np.searchsorted(at, times)
    least: F64 = np.minimum(before[place] + HOSTS_DRIFT * times, after[place] - HOSTS_DRIFT * times)
    return least


def skews(trace: Trace, clock: int, *, waits: bool = True) -> Mapping[int, DeviceSkew]:
    """Return the skew of each device whose work has launches on the same clock, by the track of the device.

    Args:
        waits: whether to look for the calls that wait, which only the greatest skew needs.
    """
    calls, work = launched_work(trace, clock)
    if not len(calls):
        return {}
    none = np.empty(0, np.intp)
    wait_rows, waited = waits_within(trace, clock, calls, work) if waits else (none, none)
    slices, ends = trace.slices, trace.slices.ts + trace.slices.dur
    device = processes(trace.tracks)[slices.track[work]]
    found: dict[int, DeviceSkew] = {}
    for track in np.unique(device).tolist():
        rows = np.flatnonzero(device == track)
        started = slices.ts[work[rows]]
        begin, early = _in_order(started, slices.ts[calls[rows]] - started)
        wrong = int(WRONG_IDS * len(early))
        kept = early <= np.partition(early, len(early) - 1 - wrong)[len(early) - 1 - wrong]
        of_device = np.flatnonzero(np.isin(waited, rows))
        ended, returned = (ends[work[waited[of_device]]], ends[wait_rows[of_device]])
        found[track] = DeviceSkew(begin[kept], early[kept], *_in_order(ended, returned - ended))
    return found


def skews_of(inputs: Inputs) -> list[dict[int, Mapping[int, DeviceSkew]]]:
    """Return for each input the skews of the devices on each clock that has launches and their work.

    Of a single input only launches count: nothing uses the greatest skew.
    """
    found: list[dict[int, Mapping[int, DeviceSkew]]] = []
    waits = len(inputs.traces) > 1
    for index, trace in enumerate(inputs.traces):
        marks, texts = trace.sources[0].marks.launches, set(trace.strings)
        has_both = marks is not None and not texts.isdisjoint(marks.calls) and not texts.isdisjoint(marks.work)
        clocks = [clock.clock for clock in inputs.clocks_of(index)] if has_both else []
        found.append({clock: skews(trace, clock, waits=waits) for clock in clocks})
    return found


class Behind(Struct, frozen=True):
    """The devices of a clock whose kernels begin before their launches.

    Attributes:
        bound_ns: the least bound of the clock that contains their skew, ns.
    """

    said: str
    bound_ns: int

    def within(self, clock_map: ClockMap) -> ClockMap:
        """Return the map with a bound that contains their skew, if it has a bound."""
        known = clock_map.bound_ns
        return clock_map if known is None else structs.replace(clock_map, bound_ns=max(known, self.bound_ns))


def devices_behind(inputs: Inputs) -> Mapping[Key, Behind]:
    """Return the devices that are behind, by the clock of their host."""
    behind: dict[Key, Behind] = {}
    for clock in inputs.clocks:
        seen = [skew for skew in inputs.skews[clock.index].get(clock.clock, {}).values() if skew.is_behind]
        if seen:
            launched = np.concatenate([skew.launched for skew in seen])
            early, worst = int((launched > 0).sum()), int(np.max(launched))
            text = (
                f"{early} of {len(launched)} kernels start before the calls that launched them, by up to "
                f"{format_time(worst)}: the clock of its device is behind, which the bound allows for"
            )
            behind[clock.key] = Behind(text, PROFILER_NS + worst + _LATENCY_NS)
    return behind


def allowed_for(inputs: Inputs, placed: Placed) -> Placed:
    """Return the clocks with bounds that contain the skews that are seen, and warnings about these."""
    maps, warnings = dict(placed.maps), list(placed.warnings)
    for key, behind in devices_behind(inputs).items():
        if key in maps:
            warnings.append((key, behind.said))
            maps[key] = behind.within(maps[key])
    return structs.replace(placed, maps=maps, warnings=warnings)


def _in_order(at: I64, values: I64) -> tuple[F64, F64]:
    """Return times in ascending order, with their values."""
    order = np.argsort(at, kind="stable")
    return at[order].astype(np.float64), values[order].astype(np.float64)


# -- Bound how far the clocks of devices are from each other, by the collectives that they ran -----------------------

#: To limit the cost, a device is compared together with so many others at a time.
_TOGETHER = 16


class DeviceBound(Struct, frozen=True):
    """How wrong the times of a device can be, as drawn, against those of another one.

    Attributes:
        beside: the input of the other device.
        host: the number of the host of the device.
        bound_ns: the bound, ns; for that device itself the error of its profiler.
    """

    beside: int
    host: int
    bound_ns: int


def with_device_bounds(alignment: Alignment, records: Occurrences) -> Alignment:
    """Return the alignment with the bounds between the devices of several hosts.

    Args:
        records: the matched collectives in which all wait for all, on trace time.
    """
    hosts = [machine.key or str(index) for index, machine in enumerate(alignment.machines)]
    if len({hosts[index] for index in np.unique(records.input).tolist()}) < 2:
        return alignment
    bounds = _bounds(_on_one_device(records), alignment.related)
    several = {beside for index, (beside, _) in bounds.items() if hosts[index] != hosts[beside]}
    known = {
        index: DeviceBound(beside, hosts.index(hosts[index]), bound)
        for index, (beside, bound) in bounds.items()
        if beside in several
    }
    receipt = [
        replace(line, device_bound_ns=known[index].bound_ns) if index in known else line
        for index, lines in enumerate(alignment.lines)
        for line in lines
    ]
    return structs.replace(alignment, receipt=receipt, device_bounds=known)


def among_devices(records: Occurrences, bounds: Mapping[int, DeviceBound]) -> Occurrences:
    """Return the records with the bounds between devices in the collectives of devices of several hosts.

    Args:
        records: the records, in the order of their collectives.
    """
    if not bounds or not len(records.row):
        return records
    inputs = [bounds.get(index, DeviceBound(-1, 0, 0)) for index in range(int(np.max(records.input)) + 1)]
    beside, host, bound = np.array([structs.astuple(of_input) for of_input in inputs], np.int64)[records.input].T
    first = np.flatnonzero(np.diff(records.number, prepend=-1))
    nearest, farthest = np.minimum.reduceat(beside, first), np.maximum.reduceat(beside, first)
    apart = np.minimum.reduceat(host, first) < np.maximum.reduceat(host, first)
    taken = (nearest >= 0) & (nearest == farthest) & apart
    taken = np.repeat(taken, np.diff(np.append(first, len(records.row))))
    return structs.replace(records, bound=np.where(taken, bound, records.bound))


def _on_one_device(records: Occurrences) -> Occurrences:
    """Return the records of the inputs whose collectives all ran on one device."""
    seen = np.unique(np.stack((records.input, records.device)), axis=1)
    inputs, count = np.unique(seen[0], return_counts=True)
    several = np.concatenate((inputs[count > 1], seen[0][seen[1] == 0]))
    return records.where(~np.isin(records.input, several))


def _bounds(records: Occurrences, related: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Return for inputs the first input that is related to it, and the bound against its device, ns."""
    order = np.argsort(records.group, kind="stable")
    begins = np.flatnonzero(np.diff(records.group[order], prepend=-1))
    groups = [records.where(rows) for rows in np.split(order, begins[1:])] if len(order) else []
    members = [np.unique(group.input).tolist() for group in groups]
    known: dict[int, tuple[int, int]] = {}
    for first in sorted(set().union(*members)):
        if first in known or related[first] < 0:
            continue
        known[first] = first, PROFILER_NS
        waiting = list(range(len(groups)))
        before: list[int] = []
        while waiting != before:  # one that is compared may relate others
            before, waiting = waiting, []
            for number in before:
                there = [input for input in members[number] if input in known and known[input][0] == first]
                if not there:
                    waiting.append(number)
                    continue
                by = min(there, key=lambda input: (known[input][1], input))
                others = [input for input in members[number] if input not in known and related[input] == related[first]]
                for other, apart in _apart(groups[number], by, others):
                    known[other] = first, known[by][1] + apart
    return known


def _apart(records: Occurrences, by: int, others: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield inputs with how far their devices may be from that of another one, ns, where there is a limit."""
    for begin in range(0, len(others), _TOGETHER - 1):
        part = [by, *others[begin : begin + _TOGETHER - 1]]
        some = records.where(np.isin(records.input, part))
        column = np.zeros(max(part) + 1, np.int64)
        column[part] = np.arange(len(part))
        numbers, row = np.unique(some.number, return_inverse=True)
        place, zero = (row.reshape(-1), column[some.input]), int(np.min(some.start))
        entered, left = np.full((len(numbers), len(part)), np.nan), np.full((len(numbers), len(part)), np.nan)
        np.fmax.at(entered, place, (some.start - zero - PROFILER_NS).astype(np.float64))
        np.fmin.at(left, place, (some.end - zero + PROFILER_NS).astype(np.float64))
        intervals = host_intervals(entered, left, (0.0, float(np.max(some.end) - zero)))
        if intervals.contradicting:
            continue
        for at, other in enumerate(part[1:], 1):
            if intervals.known(at):
                off = max(float(np.max(intervals.most[:, at])), float(np.max(-intervals.least[:, at])), 0.0)
                yield other, int(np.ceil(off)) + PROFILER_NS

"""Bound how far the clocks of devices are from each other, by the collectives that they ran.

The bound of a host contains how far the clocks of devices may be from that of their host (`device_skew`). Who came last
to a collective of devices is told by their own clocks alone, and those of two devices of one host may differ. So each
device is compared as a host is (`host_intervals`), to the first device of its job, directly or through others that
share groups with both. Devices of one host are taken to agree as their files state, and need no such bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from traceconv.align.device_skew import PROFILER_NS
from traceconv.align.host_intervals import host_intervals

if TYPE_CHECKING:
    from traceconv.align.collectives import Occurrences
    from traceconv.align.receipt import Alignment

#: To limit the cost, a device is compared together with so many others at a time.
_TOGETHER = 16


@dataclass(frozen=True, slots=True)
class DeviceBound:
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
        alignment: the alignment.
        records: the matched collectives in which all wait for all, on trace time.
    """
    hosts = [one.key or str(index) for index, one in enumerate(alignment.machines)]
    if len({hosts[index] for index in np.unique(records.input).tolist()}) < 2:
        return alignment
    bounds = _bounds(_on_one_device(records), alignment.related)
    several = {beside for index, (beside, _) in bounds.items() if hosts[index] != hosts[beside]}
    known = {
        index: DeviceBound(beside, hosts.index(hosts[index]), bound)
        for index, (beside, bound) in bounds.items()
        if beside in several
    }
    lines = iter(alignment.receipt)
    receipt = [
        replace(line, device_bound_ns=known[index].bound_ns) if index in known else line
        for index, maps in enumerate(alignment.maps)
        for line in islice(lines, len(maps))
    ]
    return replace(alignment, receipt=receipt, device_bounds=known)


def among_devices(records: Occurrences, bounds: Mapping[int, DeviceBound]) -> Occurrences:
    """Return the records with the bounds between devices in the collectives of devices of several hosts.

    Args:
        records: the records, in the order of their collectives.
        bounds: the bound of the device of each input that has one.
    """
    if not bounds or not len(records.row):
        return records
    inputs = [bounds.get(index, DeviceBound(-1, 0, 0)) for index in range(int(np.max(records.input)) + 1)]
    beside = np.array([one.beside for one in inputs], np.int64)[records.input]
    host = np.array([one.host for one in inputs], np.int64)[records.input]
    bound = np.array([one.bound_ns for one in inputs], np.int64)[records.input]
    first = np.flatnonzero(np.diff(records.number, prepend=-1))
    nearest, farthest = np.minimum.reduceat(beside, first), np.maximum.reduceat(beside, first)
    apart = np.minimum.reduceat(host, first) < np.maximum.reduceat(host, first)
    taken = (nearest >= 0) & (nearest == farthest) & apart
    taken = np.repeat(taken, np.diff(np.append(first, len(records.row))))
    return replace(records, bound=np.where(taken, bound, records.bound))


def _on_one_device(records: Occurrences) -> Occurrences:
    """Return the records of the inputs whose collectives all ran on one device."""
    seen = np.unique(np.stack((records.input, records.device)), axis=1)
    inputs, count = np.unique(seen[0], return_counts=True)
    several = np.concatenate((inputs[count > 1], seen[0][seen[1] == 0]))
    return records.where(~np.isin(records.input, several))


def _bounds(records: Occurrences, related: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Return for inputs the first input that is related to it, and the bound against its device, ns.

    Args:
        records: the collectives of devices.
        related: for each input a number, equal for inputs that are related within a bound; negative without one.
    """
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
                there = [one for one in members[number] if one in known and known[one][0] == first]
                if not there:
                    waiting.append(number)
                    continue
                by = min(there, key=lambda one: (known[one][1], one))
                others = [one for one in members[number] if one not in known and related[one] == related[first]]
                for other, apart in _apart(groups[number], by, others):
                    known[other] = first, known[by][1] + apart
    return known


def _apart(records: Occurrences, by: int, others: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield inputs with how far their devices may be from that of another one, ns; those without a limit are left out.

    Args:
        records: the collectives of a group.
        by: the input that they are compared to.
        others: the inputs.
    """
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

"""The section `launches`: what the calls that launch device work cost, and whether the work came in time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from traceconv.answers.attribution import NONE, grouped
from traceconv.answers.device_work import devices, without_work, work
from traceconv.answers.section import Cell, Column, Section, Unit
from traceconv.answers.slice_tables import Rows, SliceTable, median_of

Mask = npt.NDArray[np.bool_]
_COLUMNS = (
    Column("name", "launch call", Unit.TEXT),
    Column("count", "calls", Unit.COUNT),
    Column("host_ns", "host time", Unit.NS),
    Column("host_p50_ns", "call p50", Unit.NS, detail=True),
    Column("kernels", "kernels", Unit.COUNT),
    Column("device_ns", "device", Unit.NS),
    Column("latency_p50_ns", "latency p50", Unit.NS),
    Column("latency_max_ns", "latency max", Unit.NS),
    Column("queue_p50_ns", "queue time p50", Unit.NS),
    Column("queue_max_ns", "queue time max", Unit.NS, detail=True),
    Column("ahead", "while busy", Unit.COUNT, detail=True),
    Column("late", "came late", Unit.COUNT),
    Column("late_share", "of calls late", Unit.SHARE),
)
NO_LAUNCH = "(no launch)"


def launches(table: SliceTable) -> Section:
    """Return a row for each name of launch calls, the most device time first; work counts that starts in the window.

    Work without a recorded launch is a row, too, so that kernels and device time add up to those of `kernels`. A call
    was made while its device was busy if work that started before the first one that it launched ended after it began;
    else it came late. The call of the first work of a device is neither.
    """
    section = Section("launches", _COLUMNS)
    found = work(table)
    slices = table.trace.slices
    some = np.flatnonzero(table.in_window(slices.ts[found.rows]))
    if not np.any(found.launch[some] != NONE):
        section.notes.append("no launch of device work is recorded" if len(some) else without_work(table))
        return section
    was_busy, known = in_time(table)
    launched = found.launch[some] != NONE
    for name, positions in grouped(np.where(launched, slices.name[found.launch[some]], NONE)):
        of_name = some[positions]
        section.rows.append(_row(table, table.trace.strings[name], of_name, was_busy, known))
    section.rows.sort(key=lambda row: (-int(row[section.place("device_ns")] or 0), str(row[0])))
    without = some[~launched]
    if len(without):
        device_ns = int(np.sum(slices.dur[found.rows[without]]))
        unknown: dict[str, Cell] = {"name": NO_LAUNCH, "kernels": len(without), "device_ns": device_ns}
        section.rows.append(tuple(unknown.get(column.name) for column in _COLUMNS))
    section.legend += [
        "latency: from the start of the call to that of the work; queue time: from its end",
        "while busy: the call began before all earlier work of the device was done; came late: after that; that of the "
        "first work of a device is neither",
    ]
    return section


def _row(table: SliceTable, name: str, positions: Rows, was_busy: Mask, known: Mask) -> tuple[Cell, ...]:
    """Return the row of some of the work; the masks, which are about all work, tell when calls came."""
    found, slices = work(table), table.trace.slices
    rows, launch = found.rows[positions], found.launch[positions]
    by_start = np.lexsort((slices.ts[rows], launch))
    calls, at = np.unique(launch[by_start], return_index=True)
    first = positions[by_start[at]]
    late, told = int(np.sum(~was_busy[first] & known[first])), int(np.sum(known[first]))
    ended = calls[table.timed[calls]]
    timed = table.timed[launch]
    queued = np.maximum(slices.ts[rows[timed]] - table.ends(launch[timed]), 0)
    latency = slices.ts[rows] - slices.ts[launch]
    return (
        name,
        len(calls),
        int(np.sum(slices.dur[ended])) if len(ended) else None,
        median_of(slices.dur[ended]),
        len(rows),
        int(np.sum(slices.dur[rows])),
        median_of(latency),
        int(np.max(latency)),
        median_of(queued),
        int(np.max(queued)) if len(queued) else None,
        told - late,
        late,
        late / told if told else None,
    )


def in_time(table: SliceTable) -> tuple[Mask, Mask]:
    """Return of all device work whether its device was busy when its launch call began, and whether that is known."""
    found, ts = work(table), table.trace.slices.ts
    was_busy, known = np.zeros(len(found.rows), bool), np.zeros(len(found.rows), bool)
    for device in devices(table):
        starts, launch = ts[found.rows[device.work]], found.launch[device.work]
        order = np.argsort(starts, kind="stable")
        ended = np.maximum.accumulate(table.ends(found.rows[device.work])[order])
        before = np.searchsorted(starts[order], starts, "left") - 1
        known[device.work] = (before >= 0) & (launch != NONE)
        was_busy[device.work] = ended[before] > ts[launch]
    return was_busy, known

"""The table `step_parts`: what each step was spent on, in exact integers that add up to its duration."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from traceconv.answers.attribution import grouped
from traceconv.answers.device_time import Gaps, gaps_of, longest_of
from traceconv.answers.device_work import Device, devices, work
from traceconv.answers.section import Cell, Column, Section, Unit
from traceconv.answers.slice_tables import Intervals, Rows, SliceTable, gaps, subtract, union
from traceconv.answers.steps import row_behind, runs_nothing, timed_steps
from traceconv.model.columns import I64
from traceconv.model.trace_inputs import by_stated_inputs, inputs_of

_CAUSES = ("host_late", "launch_call", "dispatch", "device_wait", "unknown")
#: The columns whose times add up to the duration of a step.
DISJOINT = (
    *("compute_ns", "exposed_comm_ns", "exposed_copy_ns", *(f"{cause}_ns" for cause in _CAUSES)),
    *("host_ns", "wait_ns", "untraced_ns"),
)
_PARTS = (
    Column("name", "step", Unit.TEXT),
    Column("device", "device", Unit.TEXT, spare=True),
    Column("start_ns", "start", Unit.NS, detail=True),
    Column("span_ns", "span", Unit.NS),
    Column("compute_ns", "computation", Unit.NS),
    Column("exposed_comm_ns", "exposed communication", Unit.NS),
    Column("exposed_copy_ns", "exposed copies", Unit.NS),
    Column("idle_ns", "idle", Unit.NS),
    *(Column(f"{cause}_ns", cause.replace("_", " "), Unit.NS, detail=True) for cause in _CAUSES),
    Column("longest_gap_ns", "longest gap", Unit.NS, detail=True),
    Column("longest_gap_at_ns", "from", Unit.NS, detail=True),
    Column("host_ns", "host", Unit.NS),
    Column("wait_ns", "waits", Unit.NS),
    Column("untraced_ns", "not recorded", Unit.NS),
    Column("track", "track", Unit.TEXT, detail=True),
    Column("input", "input", Unit.TEXT, detail=True),
)


class _OfDevice(Struct, frozen=True):
    """The times of a device by what it did; together they are all times from the first step to the last one."""

    title: str
    compute: Intervals
    exposed_communication: Intervals
    exposed_copies: Intervals
    causes: tuple[Intervals, ...]
    idle: Intervals


def step_parts(table: SliceTable, dispatch_limit: int) -> Section:
    """Return a row for each step and device: how long it computed, communicated, copied, and was idle, by cause.

    Steps of inputs without work of a device are parted by what their thread ran: operations, waits, or nothing that was
    recorded. If nothing lies inside any step of a track, by what all threads of its process ran.

    Args:
        table: the slices.
        dispatch_limit: work that starts within this time after its launch call was dispatched at once, ns.
    """
    section = Section("step_parts", _PARTS)
    steps = timed_steps(table)
    steps = steps[np.isin(steps, table.counted)]
    if not len(steps):
        return section
    trace, slices = table.trace, table.trace.slices
    stated = by_stated_inputs(trace)
    inputs = inputs_of(stated, "slices")[steps].tolist()
    starts, ends = slices.ts[steps], table.ends(steps)
    window = int(np.min(starts)), int(np.max(ends))
    of_input: defaultdict[str, list[_OfDevice]] = defaultdict(list)
    for device in devices(table):
        of_input[device.source].append(_of_device(table, device, window, dispatch_limit))
    hosts: I64 | None = None
    for number, row in enumerate(steps.tolist()):
        start, end = int(starts[number]), int(ends[number])
        name, track = trace.strings[slices.name[row]], table.title(int(table.row_of_track[slices.track[row]]))
        source = stated.sources[inputs[number]].name
        for parts in of_input[source]:
            sets = (parts.compute, parts.exposed_communication, parts.exposed_copies, *parts.causes)
            lengths = [_within(times, start, end) for times in sets]
            idle = sum(lengths[3:])
            longest = longest_of(_cut(parts.idle, start, end), start)
            cells: tuple[Cell, ...] = (*lengths[:3], idle, *lengths[3:], *longest, None, None, None)
            section.rows.append((name, parts.title, start - table.start, end - start, *cells, track, source))
        if not of_input[source]:
            hosts = _host_parts(table, steps) if hosts is None else hosts
            on_host = hosts[number].tolist()
            section.rows.append((name, "", start - table.start, end - start, *(None,) * 11, *on_host, track, source))
    if len({row[1] for row in section.rows if row[1]}) < 2:
        section.columns = tuple(replace(column, detail=column.detail or column.name == "device") for column in _PARTS)
    parted = []
    if any(of_input.values()):
        parted.append("computation + exposed communication + exposed copies + idle = span")
    if hosts is not None:
        parted.append("without a device: host + waits + not recorded = span")
    section.legend.append("; ".join(parted))
    return section


def _of_device(table: SliceTable, device: Device, window: tuple[int, int], dispatch_limit: int) -> _OfDevice:
    found = work(table)
    rows, launch = found.rows[device.work], found.launch[device.work]
    is_copy, is_communication = found.is_copy[device.work], found.is_communication[device.work]
    runs = table.busy(rows)
    compute = table.busy(rows[~is_copy & ~is_communication])
    communication = table.busy(rows[is_communication])
    copies = table.busy(rows[is_copy & ~is_communication])
    causes = _causes(gaps_of(table, rows, launch, runs, window, dispatch_limit))
    return _OfDevice(
        device.title,
        compute,
        subtract(communication, compute),
        subtract(subtract(copies, compute), communication),
        causes,
        gaps(runs, *window),
    )


def _causes(waits: Gaps) -> tuple[Intervals, ...]:
    """Return the idle times of each cause, in the order of _CAUSES."""
    known, quick = waits.known, waits.known & waits.picked_up
    slow = known & ~waits.picked_up
    edges = (
        (waits.starts[known], waits.late[known]),
        (waits.late[known], waits.called[known]),
        (waits.called[quick], waits.ends[quick]),
        (waits.called[slow], waits.ends[slow]),
        (waits.starts[~known], waits.ends[~known]),
    )
    return tuple(union(*pair) for pair in edges)


def _cut(times: Intervals, start: int, end: int) -> Intervals:
    """Return the part of a set in [start, end)."""
    some = slice(np.searchsorted(times.ends, start, "right"), np.searchsorted(times.starts, end))
    return Intervals(np.maximum(times.starts[some], start), np.minimum(times.ends[some], end))


def _within(times: Intervals, start: int, end: int) -> int:
    """Return how long a set is inside [start, end), ns."""
    first, last = np.searchsorted(times.ends, start, "right"), np.searchsorted(times.starts, end)
    if first >= last:
        return 0
    starts, ends = times.starts[first:last], times.ends[first:last]
    whole = int(np.sum(ends - starts))
    return whole - max(start - int(starts[0]), 0) - max(int(ends[-1]) - end, 0)


def _host_parts(table: SliceTable, steps: Rows) -> I64:
    """Return how long each step ran operations, waits, and nothing that was recorded, ns: three columns."""
    slices = table.trace.slices
    nothing, behind = runs_nothing(table), np.array([row_behind(table, row) for row in steps.tolist()], np.int64)
    self_ns = np.where(table.timed & ~nothing, table.nesting.self_ns, 0)
    parts = np.zeros((len(steps), 3), np.int64)
    parts[:, 0] = _sums(np.where(table.is_wait, 0, self_ns), steps, behind)
    parts[:, 1] = _sums(np.where(table.is_wait, self_ns, 0), steps, behind)
    held = _sums(~nothing, steps, behind) > 0
    of_process: dict[int, tuple[Intervals, Intervals]] = {}
    for _, members in grouped(table.row_of_track[slices.track[steps]]):
        if not np.any(held[members]):
            for number in members.tolist():
                row = int(steps[number])
                process = int(table.processes[slices.track[row]])
                if process not in of_process:
                    of_process[process] = _ran_in(table, process)
                start, end = int(slices.ts[row]), int(slices.ts[row] + slices.dur[row])
                parts[number, :2] = [_within(times, start, end) for times in of_process[process]]
    parts[:, 2] = slices.dur[steps] - parts[:, 0] - parts[:, 1]
    return parts


def _sums(values: npt.NDArray[Any], first: I64, behind: I64) -> I64:
    """Return the sums of the values in ranges [first, behind)."""
    until = np.append(0, np.cumsum(values, dtype=np.int64))
    sums: I64 = until[behind] - until[first]
    return sums


def _ran_in(table: SliceTable, process: int) -> tuple[Intervals, Intervals]:
    """Return when any thread of a process ran operations, and when threads of it only waited."""
    rows = table.recorded[table.timed[table.recorded]]
    rows = rows[table.processes[table.trace.slices.track[rows]] == process]
    rows = rows[~runs_nothing(table, rows) & ~np.isin(rows, work(table).rows)]
    waiting = table.is_wait[rows]
    busy = table.busy(rows[~waiting])
    return busy, subtract(table.busy(rows[waiting]), busy)

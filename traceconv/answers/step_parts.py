"""The tables `step_parts` and `step_differences`: what each step was spent on, and what made slow steps slow.

Everything is in exact integers: the parts of a step add up to its duration, and the differences between a step and the
median step add up to the difference of their durations.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from traceconv.answers.attribution import grouped
from traceconv.answers.device_time import Gaps, gaps_of
from traceconv.answers.device_work import Device, devices, work
from traceconv.answers.section import Cell, Column, Section, Unit
from traceconv.answers.slice_tables import Intervals, Rows, SliceTable, subtract, union
from traceconv.answers.steps import is_span, is_step, step_rows
from traceconv.model.columns import I64
from traceconv.model.trace_inputs import by_stated_inputs, inputs_of

_CAUSES = ("host_late", "launch_call", "dispatch", "device_wait", "unknown")
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
    Column("host_ns", "host", Unit.NS),
    Column("wait_ns", "waits", Unit.NS),
    Column("untraced_ns", "not recorded", Unit.NS),
    Column("track", "track", Unit.TEXT, detail=True),
    Column("input", "input", Unit.TEXT, detail=True),
)
_DIFFERENCES = (
    Column("step", "step", Unit.TEXT),
    Column("start_ns", "start", Unit.NS, detail=True),
    Column("usual_step", "median step", Unit.TEXT),
    Column("name", "name", Unit.TEXT),
    Column("kind", "kind", Unit.TEXT),
    Column("time_ns", "time", Unit.NS),
    Column("usual_ns", "in the median step", Unit.NS),
    Column("difference_ns", "difference", Unit.NS),
    Column("track", "track", Unit.TEXT, detail=True),
    Column("input", "input", Unit.TEXT, detail=True),
)
#: A step is slow if it takes this many times the median of its track, and the track has this many steps.
SLOW, LEAST_STEPS = 1.25, 3
#: The name and the kind of the time in which a step runs nothing that was recorded.
NOT_RECORDED = "(nothing recorded)"


class _OfDevice(Struct, frozen=True):
    """The times of a device by what it did; together they are all times from the first step to the last one."""

    title: str
    compute: Intervals
    exposed_communication: Intervals
    exposed_copies: Intervals
    causes: tuple[Intervals, ...]


def step_parts(table: SliceTable, dispatch_limit: int) -> Section:
    """Return a row for each step and device: how long it computed, communicated, copied, and was idle, by cause.

    Steps of inputs without work of a device are parted by what their thread ran: operations, waits, or nothing that was
    recorded. If nothing lies inside any step of a track, by what all threads of its process ran.

    Args:
        table: the slices.
        dispatch_limit: work that starts within this time after its launch call was dispatched at once, ns.
    """
    section = Section("step_parts", _PARTS)
    steps = _timed_steps(table)
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
            cells: tuple[Cell, ...] = (*lengths[:3], idle, *lengths[3:], None, None, None)
            section.rows.append((name, parts.title, start - table.start, end - start, *cells, track, source))
        if not of_input[source]:
            hosts = _host_parts(table, steps) if hosts is None else hosts
            on_host = hosts[number].tolist()
            section.rows.append((name, "", start - table.start, end - start, *(None,) * 9, *on_host, track, source))
    if len({row[1] for row in section.rows if row[1]}) < 2:
        section.columns = tuple(replace(column, detail=column.detail or column.name == "device") for column in _PARTS)
    parted = []
    if any(of_input.values()):
        parted.append("computation + exposed communication + exposed copies + idle = span")
    if hosts is not None:
        parted.append("without a device: host + waits + not recorded = span")
    section.legend.append("; ".join(parted))
    return section


def _timed_steps(table: SliceTable) -> Rows:
    """Return the steps with a duration in the window of the table, by time, also those that a condition leaves out."""
    slices = table.trace.slices
    rows = step_rows(table)
    rows = rows[table.timed[rows] & table.in_window(slices.ts[rows]) & table.drawn_in_time[slices.track[rows]]]
    ordered: Rows = rows[np.lexsort((slices.track[rows], slices.ts[rows]))]
    return ordered


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
    parts = np.zeros((len(steps), 3), np.int64)
    duration = slices.dur[steps]
    of_process: dict[int, tuple[Intervals, Intervals]] = {}
    for _, members in grouped(table.row_of_track[slices.track[steps]]):
        inside = [_self_inside(table, row) for row in steps[members].tolist()]
        if any(not np.all(_runs_nothing(table, rows)) for rows, _ in inside):
            for number, (rows, self_ns) in zip(members.tolist(), inside, strict=True):
                waiting, nothing = table.is_wait[rows], _runs_nothing(table, rows)
                parts[number, 1:] = np.sum(self_ns[waiting & ~nothing]), np.sum(self_ns[nothing])
        else:
            for number in members.tolist():
                row = int(steps[number])
                process = int(table.processes[slices.track[row]])
                if process not in of_process:
                    of_process[process] = _ran_in(table, process)
                start, end = int(slices.ts[row]), int(slices.ts[row] + slices.dur[row])
                busy, waited = (_within(times, start, end) for times in of_process[process])
                parts[number, 1:] = waited, int(duration[number]) - busy - waited
    parts[:, 0] = duration - parts[:, 1] - parts[:, 2]
    return parts


def _runs_nothing(table: SliceTable, rows: Rows) -> npt.NDArray[np.bool_]:
    """Return which slices are steps or spans: their self time is that of nothing recorded."""
    nothing: npt.NDArray[np.bool_] = is_step(table)[rows] | is_span(table)[rows]
    return nothing


def _ran_in(table: SliceTable, process: int) -> tuple[Intervals, Intervals]:
    """Return when any thread of a process ran operations, and when threads of it only waited."""
    rows = table.recorded[table.timed[table.recorded]]
    rows = rows[table.processes[table.trace.slices.track[rows]] == process]
    rows = rows[~_runs_nothing(table, rows) & ~np.isin(rows, work(table).rows)]
    waiting = table.is_wait[rows]
    busy = table.busy(rows[~waiting])
    return busy, subtract(table.busy(rows[waiting]), busy)


def _self_inside(table: SliceTable, row: int) -> tuple[Rows, I64]:
    """Return a step and the slices inside it on its track, and the self time of each, ns; the step is the first.

    The self times add up to the duration of the step. Slices whose duration was not recorded have none.
    """
    slices = table.trace.slices
    start, track = int(slices.ts[row]), slices.track[row]
    last = row + int(np.searchsorted(slices.track[row:], track, "right"))
    last = row + int(np.searchsorted(slices.ts[row:last], start + int(slices.dur[row]), "left"))
    rows = np.arange(row, max(last, row + 1))
    self_ns = np.where(table.timed[rows], table.nesting.self_ns[rows], 0)
    self_ns[0] = slices.dur[row] - np.sum(self_ns[1:])
    return rows, self_ns


def step_differences(table: SliceTable) -> Section:
    """Return what the slow steps of each track ran longer or shorter than its median step, a row for each name.

    Slow are those that take SLOW times the median or longer; the median step is one that occurred.
    Times are self times on the thread of the step. The differences of a step add up to that of the durations.
    """
    section = Section("step_differences", _DIFFERENCES)
    trace, slices = table.trace, table.trace.slices
    stated = by_stated_inputs(trace)
    inputs = inputs_of(stated, "slices")
    of_track: defaultdict[int, list[int]] = defaultdict(list)
    for row in _timed_steps(table).tolist():
        of_track[int(table.row_of_track[slices.track[row]])].append(row)
    slow: list[tuple[int, int]] = []
    for rows in of_track.values():
        if len(rows) >= LEAST_STEPS:
            ordered = sorted(rows, key=lambda row: int(slices.dur[row]))
            usual = ordered[(len(ordered) - 1) // 2]
            limit = SLOW * int(slices.dur[usual])
            slow += [(row, usual) for row in ordered if int(slices.dur[row]) >= limit and row != usual]
    shown = set(table.counted[np.isin(table.counted, [row for row, _ in slow])].tolist())
    slow = [pair for pair in slow if pair[0] in shown]
    slow.sort(key=lambda pair: int(slices.dur[pair[1]]) - int(slices.dur[pair[0]]))
    launching = [info.marks.launches for info in trace.sources if info.marks.launches is not None]
    calls = {category for marks in launching for category in marks.calls}
    for row, usual in slow:
        times, usual_times = (_by_name(table, step, calls) for step in (row, usual))
        keys = sorted(
            times.keys() | usual_times.keys(), key=lambda key: (usual_times.get(key, 0) - times.get(key, 0), key)
        )
        step, usual_step = (trace.strings[slices.name[at]] for at in (row, usual))
        track, source = table.title(int(table.row_of_track[slices.track[row]])), stated.sources[inputs[row]].name
        start = int(slices.ts[row]) - table.start
        for name, kind in keys:
            time, before = times.get((name, kind), 0), usual_times.get((name, kind), 0)
            section.rows.append((step, start, usual_step, name, kind, time, before, time - before, track, source))
    if section.rows:
        section.legend.append(
            f"steps of {SLOW:g} times the median or more, beside the step of median duration; "
            "the differences of a step add up to that of the durations"
        )
    return section


def _by_name(table: SliceTable, step: int, calls: set[str]) -> dict[tuple[str, str], int]:
    """Return the self time inside a step by name and kind, ns."""
    trace, slices = table.trace, table.trace.slices
    rows, self_ns = _self_inside(table, step)
    times: defaultdict[tuple[str, str], int] = defaultdict(int)
    nothing = dict(zip(rows.tolist(), _runs_nothing(table, rows).tolist(), strict=True))
    for row, amount in zip(rows.tolist(), self_ns.tolist(), strict=True):
        if nothing[row]:
            key = NOT_RECORDED, ""
        else:
            is_call = trace.strings[slices.category[row]] in calls
            kind = "wait" if table.is_wait[row] else "call of the device" if is_call else "operation"
            key = trace.strings[slices.name[row]], kind
        times[key] += amount
    return {key: amount for key, amount in times.items() if amount}

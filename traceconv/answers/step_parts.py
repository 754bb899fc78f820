"""The table `step_parts`: what each step was spent on, in exact integers that add up to its duration."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from traceconv.answers.attribution import NONE, Timelines, grouped, launch_rows, run_parts, timelines
from traceconv.answers.device_time import CAUSES, Gaps, gaps_of, longest_of
from traceconv.answers.device_work import KINDS, Device, devices, work
from traceconv.answers.section import Cell, Column, Section, Unit, Unnamed
from traceconv.answers.slice_tables import Intervals, Rows, SliceTable, gaps, subtract, union
from traceconv.answers.steps import (
    DIFFERENCES,
    OTHERS,
    device_of_step,
    differences_of,
    exchanges,
    holding_tracks,
    largest,
    ran_in,
    runs_nothing,
    slow_steps,
    telling_apart,
    timed_steps,
)
from traceconv.model.columns import I64
from traceconv.model.trace_inputs import by_stated_inputs, inputs_of

#: The columns whose times add up to the duration of a step.
DISJOINT = (
    *("compute_ns", "exposed_comm_ns", "exposed_copy_ns", *(f"{cause}_ns" for cause in CAUSES)),
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
    *(Column(f"{cause}_ns", cause.replace("_", " "), Unit.NS, detail=True) for cause in CAUSES),
    Column("longest_gap_ns", "longest gap", Unit.NS, detail=True),
    Column("longest_gap_at_ns", "from", Unit.NS, detail=True),
    Column("host_ns", "host", Unit.NS),
    Column("wait_ns", "waits", Unit.NS),
    Column("untraced_ns", "not recorded", Unit.NS),
    Column("track", "track", Unit.TEXT, detail=True),
    Column("input", "input", Unit.TEXT, detail=True),
)


_KERNELS = (
    *DIFFERENCES[:3],
    Column("device", "device", Unit.TEXT, spare=True),
    Column("launched_difference_ns", "launched", Unit.NS, detail=True),
    *DIFFERENCES[3:],
)
#: What a device does, the first one where it does nothing.
_DOES = ("idle", *KINDS)
_IDLE = -1
_NO_LAUNCHES = np.zeros(0, np.int64), np.zeros(1, np.int64)


class _OfDevice(Struct, frozen=True):
    """The times of a device by what it did; together they are all times from the first step to the last one.

    `rows` is its work by kind.
    """

    title: str
    path: str
    rows: tuple[Rows, ...]
    compute: Intervals
    exposed_communication: Intervals
    exposed_copies: Intervals
    causes: tuple[Intervals, ...]
    idle: Intervals


def step_parts(table: SliceTable, *, on_threads: bool = False) -> Section:
    """Return a row for each step and device: how long it computed, communicated, copied, and was idle, by cause.

    Steps of inputs without work of a device are parted by what their thread ran: operations, or else communication of
    any thread of its process, waits, or nothing that was recorded. If nothing lies inside any step of a track, by what
    all threads of its process ran.

    Args:
        table: the slices.
        on_threads: whether it is what their thread ran, although nothing lies inside any of them.
    """
    section = Section("step_parts", _PARTS)
    steps = timed_steps(table)
    steps = steps[table.is_counted[steps]]
    if not len(steps):
        return section
    trace, slices = table.trace, table.trace.slices
    stated = by_stated_inputs(trace)
    inputs = inputs_of(stated, "slices")[steps].tolist()
    starts, ends = slices.ts[steps], table.ends(steps)
    of_input = table.once(_devices_of_inputs)
    hosts: I64 | None = None
    of_steps = np.asarray(inputs)
    within: dict[tuple[int, int], dict[int, list[int]]] = {}  # by device and input, for each of its steps
    for number, row in enumerate(steps.tolist()):
        start, end = int(starts[number]), int(ends[number])
        name, track = trace.strings[slices.name[row]], table.title(int(table.row_of_track[slices.track[row]]))
        source = stated.sources[inputs[number]].name
        for parts in _of_step(table, row, of_input.get(source, [])):
            key = id(parts), inputs[number]
            if key not in within:
                sets = (parts.compute, parts.exposed_communication, parts.exposed_copies, *parts.causes)
                some = np.flatnonzero(of_steps == inputs[number])
                columns = [_within(times, starts[some], ends[some]).tolist() for times in sets]
                within[key] = dict(zip(some.tolist(), map(list, zip(*columns, strict=True)), strict=True))
            lengths = within[key][number]
            idle = sum(lengths[3:])
            longest = longest_of(_cut(parts.idle, start, end), start)
            cells: tuple[Cell, ...] = (*lengths[:3], idle, *lengths[3:], *longest, None, None, None)
            section.rows.append((name, parts.title, start - table.start, end - start, *cells, track, source))
        if source not in of_input:
            hosts = _host_parts(table, steps, on_threads) if hosts is None else hosts
            communication, *on_host = hosts[number].tolist()
            exposed = communication if stated.sources[inputs[number]].marks.exchanges else None
            cells = (None, exposed, *(None,) * 9, *on_host)
            section.rows.append((name, "", start - table.start, end - start, *cells, track, source))
    section.columns = _naming_devices(table, section)
    parted = []
    if of_input:
        parted.append("computation + exposed communication + exposed copies + idle = span")
    if hosts is not None:
        parted.append("without a device: host + exposed communication + waits + not recorded = span")
    section.legend.append("; ".join(parted))
    return section


def step_kernels(table: SliceTable) -> Section:
    """Return what each device did longer or shorter in slow steps than in the median step of their track.

    An instant is of the kernel or copy that the device runs, of that which started last if there are several, in the
    order computation, communication, copies. With idle time, the differences add up to that of the durations. Of each
    kind, the names that differ most have a row each, as in `step_differences`, with how much longer all work of the
    kind is that each step launched: a device that runs behind its host also runs what earlier steps launched.
    """
    section = Section("step_kernels", _KERNELS)
    slices, line = table.trace.slices, np.zeros(len(table.trace.tracks), np.int64)
    ran: dict[int, tuple[Timelines, ...]] = {}  # of devices, which have all steps in common
    launches: dict[int, tuple[dict[int, tuple[I64, I64]], ...]] = {}
    did: dict[tuple[int, int], tuple[I64, I64]] = {}  # by device, in median steps, which slow steps have in common
    for slow in slow_steps(table):
        for device in _of_step(table, slow.row, table.once(_devices_of_inputs).get(str(slow.end[-1]), [])):
            if id(device) not in ran:
                ran[id(device)] = tuple(timelines(slices, rows, line) for rows in device.rows)
            usual = id(device), slow.usual
            if usual not in did:
                did[usual] = _did(table, device, ran[id(device)], slow.usual)
            step = _did(table, device, ran[id(device)], slow.row)
            found = differences_of(table.trace.strings, step, did[usual], _DOES, {_IDLE: Unnamed.IDLE})
            by_kind = [largest([part for part in found if part.kind == kind], kind) for kind in _DOES]
            parts = sorted(chain(*by_kind), key=lambda part: (part.name is OTHERS, part.usual - part.time))
            if id(device) not in launches:
                launches[id(device)] = tuple(_launches(table, rows) for rows in device.rows)
            launched = {
                kind: _launched(table, known, slow.row) - _launched(table, known, slow.usual)
                for kind, known in zip(KINDS, launches[id(device)], strict=True)
                if known
            }
            section.rows += [row for part in parts for row in slow.cells([part], device.title, launched.get(part.kind))]
    section.columns = _naming_devices(table, section)
    if section.rows:
        section.legend.append("the differences of a step and device add up to that of the durations")
    return section


def _launches(table: SliceTable, rows: Rows) -> dict[int, tuple[I64, I64]]:
    """Return by process the times at which work was launched, sorted, and how long the work up to each of them is."""
    slices, launch = table.trace.slices, launch_rows(table)[rows]
    rows, launch = rows[launch != NONE], launch[launch != NONE]
    found = {}
    for process, members in grouped(table.processes[slices.track[launch]]):
        members = members[np.argsort(slices.ts[launch[members]], kind="stable")]
        found[process] = slices.ts[launch[members]], np.append(0, np.cumsum(slices.dur[rows[members]]))
    return found


def _launched(table: SliceTable, launches: dict[int, tuple[I64, I64]], step: int) -> int:
    """Return how long the work is that a step launched, ns."""
    slices = table.trace.slices
    times, lengths = launches.get(int(table.processes[slices.track[step]]), _NO_LAUNCHES)
    first, last = np.searchsorted(times, [slices.ts[step], slices.ts[step] + slices.dur[step]])
    return int(lengths[last] - lengths[first])


def _did(table: SliceTable, device: _OfDevice, ran: tuple[Timelines, ...], step: int) -> tuple[I64, I64]:
    """Return the numbers of names and of _DOES in a step, _IDLE for nothing, and how long a device did each, ns."""
    slices = table.trace.slices
    start, duration = int(slices.ts[step]), int(slices.dur[step])
    codes, lengths = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    exclusive = device.compute, device.exposed_communication, device.exposed_copies
    for kind, (times, of_kind) in enumerate(zip(exclusive, ran, strict=True), 1):
        inside = _cut(times, start, start + duration)
        if len(inside.starts):
            _, rows, length = run_parts(of_kind, np.zeros(len(inside.starts), np.int64), *inside)
            codes.append(slices.name[rows].astype(np.int64) * len(_DOES) + kind)
            lengths.append(length)
    code, ns = np.concatenate(codes), np.concatenate(lengths)
    return np.append(code, _IDLE), np.append(ns, duration - int(np.sum(ns)))


def _naming_devices(table: SliceTable, section: Section) -> tuple[Column, ...]:
    """Return the columns of a table about steps and devices; people see the devices if there are several."""
    at = section.place("device")
    several = len({row[at] for row in section.rows if row[at]}) > 1
    return tuple(
        replace(column, detail=column.detail or not several) if column.name == "device" else column
        for column in telling_apart(table, section.columns)
    )


def _of_step(table: SliceTable, step: int, of_input: Sequence[_OfDevice]) -> list[_OfDevice]:
    """Return which of the devices of its input a step is about."""
    path = device_of_step(table, step)
    return [device for device in of_input if path in ("", device.path)]


def _devices_of_inputs(table: SliceTable) -> dict[str, list[_OfDevice]]:
    """Return the devices with work by the name of their input, from the first step to the end of the last one."""
    steps = timed_steps(table)
    window = int(np.min(table.trace.slices.ts[steps])), int(np.max(table.ends(steps)))
    of_input: dict[str, list[_OfDevice]] = {}
    for device in devices(table):
        of_input.setdefault(device.source, []).append(_of_device(table, device, window))
    return of_input


def _of_device(table: SliceTable, device: Device, window: tuple[int, int]) -> _OfDevice:
    found = work(table)
    rows, launch = found.rows[device.work], found.launch[device.work]
    is_copy, is_communication = found.is_copy[device.work], found.is_communication[device.work]
    runs = table.busy(rows)
    by_kind = rows[~is_copy & ~is_communication], rows[is_communication], rows[is_copy & ~is_communication]
    compute, communication, copies = map(table.busy, by_kind)
    causes = _causes(gaps_of(table, rows, launch, runs, window))
    return _OfDevice(
        device.title,
        device.path,
        by_kind,
        compute,
        subtract(communication, compute),
        subtract(subtract(copies, compute), communication),
        causes,
        gaps(runs, *window),
    )


def _causes(waits: Gaps) -> tuple[Intervals, ...]:
    """Return the idle times of each cause, in the order of CAUSES."""
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


def _within(times: Intervals, starts: I64, ends: I64) -> I64:
    """Return how long a set is inside each [start, end), ns."""
    before = np.append(0, np.cumsum(times.ends - times.starts))
    edges = []
    for edge in (starts, ends):
        at = np.searchsorted(times.ends, edge, "right")  # the first interval that ends later
        begin = np.append(times.starts, np.iinfo(np.int64).max)[at]
        edges.append(before[at] + edge - np.minimum(begin, edge))
    length: I64 = edges[1] - edges[0]
    return length


def _host_parts(table: SliceTable, steps: Rows, on_threads: bool) -> I64:
    """Return how long each step communicated, ran operations, waited, and recorded nothing, ns: four columns."""
    slices = table.trace.slices
    parts = np.zeros((len(steps), 4), np.int64)
    held = np.isin(table.row_of_track[slices.track[steps]], list(table.once(holding_tracks)))
    for process, members in grouped(table.processes[slices.track[steps]]):
        rows = exchanges(table)
        exchanging = table.busy(rows[table.processes[slices.track[rows]] == process])
        alone = members[held[members] | on_threads]
        for number, row in zip(alone.tolist(), steps[alone].tolist(), strict=True):
            communication = _cut(exchanging, int(slices.ts[row]), int(slices.ts[row] + slices.dur[row]))
            times = _told_apart(table, *ran_in(table, steps[[number]])[1:], communication)
            parts[number, :3] = [each.length for each in times]
        others = members[~held[members] & (not on_threads)]
        if len(others):
            edges = slices.ts[steps[others]], table.ends(steps[others])
            times = _ran_in(table, process, exchanging)
            parts[others, :3] = np.transpose([_within(each, *edges) for each in times])
    parts[:, 3] = slices.dur[steps] - np.sum(parts, 1)
    return parts


def _ran_in(table: SliceTable, process: int, exchanging: Intervals) -> tuple[Intervals, ...]:
    """Return what `_told_apart` does, of all threads of a process."""
    slices = table.trace.slices
    rows = table.recorded[table.processes[slices.track[table.recorded]] == process]
    rows = rows[~np.isin(rows, work(table).rows)]
    ran = timelines(slices, rows, np.arange(len(table.trace.tracks)))
    some = ran.rows != NONE
    return _told_apart(table, ran.rows[some], ran.starts[some], ran.ends[some], exchanging)


def _told_apart(table: SliceTable, rows: Rows, starts: I64, ends: I64, exchanging: Intervals) -> tuple[Intervals, ...]:
    """Return when else threads communicated, when operations ran, and when else there were waits only.

    Args:
        table: the slices.
        rows: the innermost slices.
        starts, ends: the times of each of them.
        exchanging: when threads of the process communicate.
    """
    runs = table.timed[rows] & ~runs_nothing(table, rows)
    waits = runs & table.is_wait[rows]
    operates = runs & ~waits & ~table.is_exchange[rows]
    busy = union(starts[operates], ends[operates])
    communication = subtract(exchanging, busy)
    waiting = subtract(union(starts[waits], ends[waits]), busy)
    return communication, busy, subtract(waiting, communication)

"""The time of each device, exactly parted into work and waiting, and what the idle ones wait for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from traceconv.answers.attribution import NONE, run_parts, timelines
from traceconv.answers.device_work import Device, Work, devices, first_above, without_work, work
from traceconv.answers.section import Activity, Cell, Column, Section, Unit, Unnamed
from traceconv.answers.slice_tables import (
    Intervals,
    Rows,
    SliceTable,
    gaps,
    intersect,
    median_of,
    shares,
    subtract,
    sums_by,
    union,
)
from traceconv.answers.steps import device_of_step, names, runs_nothing, timed_steps
from traceconv.io.shown import quantity
from traceconv.model.columns import I64, distinct_values
from traceconv.model.diagnostics import SLICES
from traceconv.model.marks import INPUT_DATA, JOINT
from traceconv.model.numbers import format_short
from traceconv.model.trace_inputs import by_stated_inputs, inputs_of

#: The causes of idle time, in the order of `Gaps.sums`.
CAUSES = ("host_late", "launch_call", "dispatch", "device_wait", "unknown")
_COLUMNS = (
    Column("device", "device", Unit.TEXT),
    Column("queue", "queue", Unit.TEXT),
    Column("window_ns", "window", Unit.NS),
    Column("busy_ns", "busy", Unit.NS),
    Column("compute_ns", "computation", Unit.NS),
    Column("exposed_comm_ns", "exposed communication", Unit.NS),
    Column("exposed_copy_ns", "exposed copies", Unit.NS),
    Column("idle_ns", "idle", Unit.NS),
    Column("utilisation", "utilisation", Unit.SHARE),
    *(Column(f"{cause}_ns", cause.replace("_", " "), Unit.NS) for cause in CAUSES),
    Column("gaps", "gaps", Unit.COUNT, detail=True),
    Column("longest_gap_ns", "longest gap", Unit.NS, detail=True),
    Column("longest_gap_at_ns", "from", Unit.NS, detail=True),
    Column("comm_ns", "communication", Unit.NS, detail=True),
    Column("overlap_share", "communication hidden", Unit.SHARE, detail=True),
    Column("launches", "launches", Unit.COUNT, detail=True),
    Column("launch_latency_p50_ns", "launch latency p50", Unit.NS, detail=True),
    Column("queue_time_p50_ns", "queue time p50", Unit.NS, detail=True),
    Column("negative", "before their launch", Unit.COUNT, detail=True),
    Column("input", "input", Unit.TEXT, detail=True),
)
#: Work that starts within this time after the end of its launch call was dispatched at once, ns.
DISPATCH_LIMIT = 10_000
_PLOTTED = 200  # the parts of the window


def device(table: SliceTable) -> list[Section]:
    """Return the tables `device`, and `host_late` where hosts were: a row for each device, then one for each queue.

    A device with one queue has one row; queues of a device come in the order of their busy time. The window of a
    device is that of the table, else from the start of its first work to the end of its last. The four parts
    computation, exposed communication, exposed copies and idle add up to it; the parts of idle add up to idle. What is
    exposed depends on
    all queues: rows of queues leave it empty. Gaps are divided as a whole, then cut to the window, so that the results
    for adjacent windows add up.

    Args:
        table: the slices.
    """
    section = Section("device", _COLUMNS)
    found = work(table)
    section.notes += found.notes
    if not len(found.rows):
        section.notes += found.untimed or ([] if section.notes else [without_work(table)])
        return [section]
    start, end = _window(table, found.rows)
    idle: list[tuple[Device, int]] = []
    of_queues: list[tuple[Cell, ...]] = []
    busy_ns, idle_ns = section.place("busy_ns"), section.place("idle_ns")
    for device in devices(table):
        row = _row(table, found, device.work, (device.title, None, device.source))
        section.rows.append(row)
        idle.append((device, int(row[idle_ns] or 0)))
        if end > start:
            busy = shares(table.busy(found.rows[device.work]), start, end, _PLOTTED)
            section.over_time.append(Activity(device.title, start - table.start, end - start, busy))
        rows = []
        for track, numbers in device.queues.items() if len(device.queues) > 1 else ():
            path = table.path(track)
            queue = path.removeprefix(device.path).removeprefix(" / ").removeprefix(JOINT) or path
            rows.append(_row(table, found, numbers, (device.title, queue, device.source)))
        of_queues += sorted(rows, key=lambda row: -int(row[busy_ns] or 0))
    section.rows += of_queues
    shown = "that of --between" if table.window else "from the first work of the device or queue to its last"
    parts_of_queues = "; of a queue: busy + idle = window" if of_queues else ""
    section.legend.append(
        f"window: {shown}; computation + exposed communication + exposed copies + "
        f"idle = window{parts_of_queues}; idle = host late + launch call + dispatch + device wait + unknown"
    )
    started = table.in_window(table.trace.slices.ts[found.rows])
    section.notes += [f"{note}: idle may include them" for note in found.untimed]
    without = int(np.sum(started & (found.launch < 0)))
    if without:
        section.notes.append(
            f"no launch is recorded for {without} of {quantity(int(np.sum(started)), SLICES)} of device work: "
            "the gaps before them are unknown"
        )
    latency = _latency(table, found, np.flatnonzero(started & (found.launch >= 0)))
    if np.any(latency < 0):
        section.notes.append(
            f"kernels and copies that start before their launch: {np.sum(latency < 0)}; "
            f"the clocks of host and device differ by {format_short(int(-np.min(latency)))} or more"
        )
    late = host_late(table, idle)
    return [section, late] if late.rows else [section]


def _window(table: SliceTable, rows: Rows) -> tuple[int, int]:
    """Return the window of the table, or else from the first start of the rows to their last end, ns."""
    if table.window:
        return table.window.start, table.window.end
    return int(np.min(table.trace.slices.ts[rows])), int(np.max(table.ends(rows)))


def _latency(table: SliceTable, found: Work, numbers: Rows) -> I64:
    """Return the time from the start of the launch call to the start of slices, ns; undefined without a launch."""
    ts = table.trace.slices.ts
    latency: I64 = ts[found.rows[numbers]] - ts[found.launch[numbers]]
    return latency


def _row(table: SliceTable, found: Work, numbers: Rows, names: tuple[str, str | None, str]) -> tuple[Cell, ...]:
    """Return the row of some of the work, numbers in ns, shares as fractions."""
    slices = table.trace.slices
    rows = found.rows[numbers]
    start, end = _window(table, rows)
    window = Intervals(np.array([start]), np.array([end]))
    runs = table.busy(rows)
    busy = intersect(runs, window)
    communication = intersect(table.busy(rows[found.is_communication[numbers]]), window)
    copies = intersect(table.busy(rows[found.is_copy[numbers]]), window)
    compute = intersect(table.busy(rows[~found.is_copy[numbers] & ~found.is_communication[numbers]]), window)
    exposed = subtract(communication, compute)
    exposed_copies = subtract(subtract(copies, compute), communication)
    idle = gaps(busy, start, end)
    causes = gaps_of(table, rows, found.launch[numbers], runs, (start, end))
    launched = numbers[(found.launch[numbers] >= 0) & table.in_window(slices.ts[rows])]
    known = bool(np.any(found.launch[numbers] >= 0))
    latency = _latency(table, found, launched)
    ended = launched[table.timed[found.launch[launched]]]
    queued = slices.ts[found.rows[ended]] - table.ends(found.launch[ended])
    hidden = communication.length - exposed.length
    tells_copies, tells_communication = (
        bool(np.all(told[numbers])) for told in (found.tells_copies, found.tells_communication)
    )
    device_name, queue, source = names
    exposes = queue is None
    return (
        device_name,
        queue or "",
        end - start,
        busy.length,
        compute.length,
        exposed.length if exposes and tells_communication else None,
        exposed_copies.length if exposes and tells_copies else None,
        idle.length,
        busy.length / (end - start) if end > start else None,
        *(causes.sums() if known else (None, None, None, None, idle.length)),
        len(idle.starts),
        *longest_of(idle, start),
        communication.length if tells_communication else None,
        hidden / communication.length if exposes and communication.length else None,
        len(launched),
        median_of(latency),
        median_of(np.maximum(queued, 0)),
        int(np.sum(latency < 0)) if known else None,
        source,
    )


def longest_of(idle: Intervals, start: int) -> tuple[int, int | None]:
    """Return the length of the longest interval, and when it begins after `start`, ns; 0 and None without one."""
    lengths = idle.ends - idle.starts
    if not len(lengths):
        return 0, None
    at = int(np.argmax(lengths))
    return int(lengths[at]), int(idle.starts[at]) - start


# -- What idle devices wait for: each gap split by the launch of the work that ends it, and what the host did instead

_HOST_LATE = (
    Column("device", "device", Unit.TEXT),
    Column("name", "the host ran", Unit.TEXT),
    Column("time_ns", "time", Unit.NS),
    Column("idle_share", "of idle", Unit.SHARE),
    Column("gaps", "gaps", Unit.COUNT),
    Column("input_data_ns", "loading input data", Unit.NS, detail=True),
    Column("steps_ns", "in steps", Unit.NS, detail=True, spare=True),
    Column("steps_input_data_ns", "loading in steps", Unit.NS, detail=True),
    Column("thread", "thread", Unit.TEXT, detail=True),
    Column("input", "input", Unit.TEXT, detail=True),
)
NOTHING_RAN = Unnamed.NOTHING_RAN


class Gaps(Struct, frozen=True):
    """The gaps of a device or queue in a window, and where their parts end.

    Attributes:
        starts, late, called, ends: when each gap starts, and its parts end: the host is late, the launch call, the
            rest; ns, cut to the window.
        known: whether the launch of the work that ends the gap is recorded, with its duration; of other gaps all is
            unknown.
        picked_up: whether the rest is short: dispatch.
        call: the row of the launch call; meaningless where it is not known.
    """

    starts: I64
    late: I64
    called: I64
    ends: I64
    known: npt.NDArray[np.bool_]
    picked_up: npt.NDArray[np.bool_]
    call: Rows

    def sums(self) -> tuple[int, int, int, int, int]:
        """Return host late, launch call, dispatch, device wait and unknown, ns: they add up to the idle time."""
        rest = self.ends - self.called
        return (
            int((self.late - self.starts)[self.known].sum()),
            int((self.called - self.late)[self.known].sum()),
            int(rest[self.known & self.picked_up].sum()),
            int(rest[self.known & ~self.picked_up].sum()),
            int((self.ends - self.starts)[~self.known].sum()),
        )


def gaps_of(table: SliceTable, rows: Rows, launch: Rows, runs: Intervals, window: tuple[int, int]) -> Gaps:
    """Return the gaps in some work of a device. They are split as a whole, then cut to the window.

    Args:
        table: the slices.
        rows: the work.
        launch: the row of the call that launched each of them, NONE if none was recorded.
        runs: the instants at which that work runs.
        window: from when to when, ns.
    """
    idle = gaps(runs, min(table.start, window[0]), int(np.max(runs.ends, initial=window[1])))
    ts = table.trace.slices.ts
    begins = ts[rows]
    started = np.where(launch == NONE, np.iinfo(np.int64).min, ts[launch])
    # Of all the work that starts at the end of a gap, the one that was launched last.
    order = np.lexsort((started, begins))
    next_one = order[np.searchsorted(begins[order], idle.ends, "right") - 1]
    call, call_start = launch[next_one], started[next_one]
    # No work ends the last gap.
    known = (call != NONE) & table.timed[call] & (begins[next_one] == idle.ends) & (call_start <= idle.ends)
    late = np.clip(call_start, idle.starts, idle.ends)
    called = np.maximum(np.clip(table.ends(call), idle.starts, idle.ends), late)
    starts, late_until, called_until, ends = (np.clip(edge, *window) for edge in (idle.starts, late, called, idle.ends))
    return Gaps(starts, late_until, called_until, ends, known, idle.ends - called <= DISPATCH_LIMIT, call)


def host_late(table: SliceTable, idle_of: Sequence[tuple[Device, int]]) -> Section:
    """Return what the threads that launch work ran while they were late, a row for each device, thread and name.

    Args:
        table: the slices.
        idle_of: the devices, each with its idle time in its window, ns.
    """
    section = Section("host_late", _HOST_LATE)
    slices, thread_of, found = table.trace.slices, table.row_of_track, work(table)
    steps_of = _steps_by_device(table, [device for device, _ in idle_of])
    waits_of = [_gaps_and_steps(table, device, steps) for (device, _), steps in zip(idle_of, steps_of, strict=True)]
    launching, running = np.zeros((2, len(table.trace.tracks)), bool)
    for waits in waits_of:
        launching[thread_of[slices.track[waits.call[waits.known]]]] = True
    lasting = (slices.dur > 0) & table.timed
    lasting[runs_nothing(table)] = False  # a step alone says nothing about what ran in it
    lasting &= launching[thread_of[slices.track]]
    busy = table.recorded[lasting[table.recorded]]
    busy = busy[_meets(slices.ts[busy], table.ends(busy), waits_of)]  # timelines take much memory
    running[thread_of[slices.track[busy]]] = True
    of_thread = np.where(running, np.cumsum(running) - 1, NONE)
    ran = timelines(slices, busy, of_thread[thread_of])
    of_slices = names(table)
    texts = [*of_slices.texts, NOTHING_RAN]
    loads = np.append(first_above(table, np.arange(len(slices.ts)), table.naming(INPUT_DATA)) != NONE, False)
    for (device, idle), waits, steps in zip(idle_of, waits_of, steps_of, strict=True):
        late = waits.known & (waits.late > waits.starts)
        starts, ends, thread = waits.starts[late], waits.late[late], thread_of[slices.track[waits.call[late]]]
        window = Intervals(*(np.array([edge]) for edge in _window(table, found.rows[device.work])))
        parts = []
        for times in (window, steps):
            inside = intersect(Intervals(starts, ends), times)
            gap_of = np.searchsorted(starts, inside.starts, "right") - 1
            part, row, length = run_parts(ran, of_thread[thread[gap_of]], inside.starts, inside.ends)
            name = np.where(row == NONE, len(texts) - 1, of_slices.numbers[row])
            parts.append(
                (thread[gap_of[part]] * len(texts) + name, gap_of[part], np.where(loads[row], length, 0), length)
            )
        groups = np.unique(np.concatenate([codes for codes, *_ in parts]))
        (of_window, gap, *_), _ = parts
        gaps_in = distinct_values(np.searchsorted(groups, of_window) * len(starts) + gap) // max(len(starts), 1)
        in_gaps = np.bincount(gaps_in, minlength=len(groups)).tolist()
        sums = [sums_by(np.searchsorted(groups, codes), ns, len(groups)) for codes, _, *times in parts for ns in times]
        for code, gaps_of_row, loading, time, loading_in_steps, in_steps in zip(
            groups.tolist(), in_gaps, *(column.tolist() for column in sums), strict=True
        ):
            track, text = divmod(code, len(texts))
            counts = time, time / idle if idle else None, gaps_of_row, loading, in_steps, loading_in_steps
            section.rows.append((device.title, texts[text], *counts, table.title(track), device.source))
    time_ns, steps_ns, of_threads = map(section.place, ("time_ns", "steps_ns", "thread"))
    section.rows.sort(key=lambda row: -max(int(row[time_ns] or 0), int(row[steps_ns] or 0)))
    shown = {"thread"} if len({row[of_threads] for row in section.rows}) > 1 else set()
    if any(int(row[steps_ns] or 0) > int(row[time_ns] or 0) for row in section.rows):
        shown.add("steps_ns")
    section.columns = tuple(replace(column, detail=column.detail and column.name not in shown) for column in _HOST_LATE)
    if section.rows:
        section.legend.append(
            "the innermost slices of the launching thread while the device was idle; they add up to host late"
        )
    return section


def _gaps_and_steps(table: SliceTable, device: Device, steps: Intervals) -> Gaps:
    """Return the gaps of a device in its window and in steps, which may begin before its first work."""
    found = work(table)
    rows = found.rows[device.work]
    start, end = _window(table, rows)
    if not table.window and len(steps.starts):
        start, end = min(start, int(steps.starts[0])), max(end, int(steps.ends[-1]))
    return gaps_of(table, rows, found.launch[device.work], table.busy(rows), (start, end))


def _steps_by_device(table: SliceTable, devices: Sequence[Device]) -> list[Intervals]:
    """Return the times of the steps of each device: those of its input, or its own."""
    stated = by_stated_inputs(table.trace)
    rows = timed_steps(table)
    owners: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for row, number in zip(rows.tolist(), inputs_of(stated, "slices")[rows].tolist(), strict=True):
        owners[stated.sources[number].name, device_of_step(table, row)].append(row)
    return [
        table.busy(np.array(owners[device.source, ""] + owners[device.source, device.path], np.intp))
        for device in devices
    ]


def _meets(starts: I64, ends: I64, devices: Sequence[Gaps]) -> npt.NDArray[np.bool_]:
    """Return which intervals have an instant at which a host is late for one of the devices."""
    late = union(
        np.concatenate([waits.starts[waits.known] for waits in devices]),
        np.concatenate([waits.late[waits.known] for waits in devices]),
    )
    meets: npt.NDArray[np.bool_] = np.searchsorted(late.ends, starts, "right") < np.searchsorted(late.starts, ends)
    return meets

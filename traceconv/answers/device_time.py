"""The time of each device, exactly parted into work and waiting, and what the idle ones wait for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from traceconv.answers.attribution import NONE, Timelines, expanded, grouped, launches, timelines, work_of
from traceconv.answers.operations import step_rows
from traceconv.answers.section import Activity, Cell, Column, Section, Unit
from traceconv.answers.slice_tables import Intervals, Rows, SliceTable, gaps, intersect, shares, subtract, union
from traceconv.io.shown import quantity
from traceconv.model.columns import I64, distinct_values
from traceconv.model.diagnostics import SLICES
from traceconv.model.marks import JOINT
from traceconv.model.numbers import format_short
from traceconv.model.track_table import NO_TRACK, Track, TrackKind

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
    Column("host_late_ns", "host late", Unit.NS),
    Column("launch_call_ns", "launch call", Unit.NS),
    Column("dispatch_ns", "dispatch", Unit.NS),
    Column("device_wait_ns", "device wait", Unit.NS),
    Column("unknown_ns", "unknown", Unit.NS),
    Column("gaps", "gaps", Unit.COUNT),
    Column("comm_ns", "communication", Unit.NS),
    Column("overlap_share", "communication hidden", Unit.SHARE),
    Column("launches", "launches", Unit.COUNT),
    Column("launch_latency_p50_ns", "launch latency p50", Unit.NS),
    Column("queue_time_p50_ns", "queue time p50", Unit.NS),
    Column("negative", "before their launch", Unit.COUNT),
    Column("input", "input", Unit.TEXT, detail=True),
)
#: Work that starts within this time after the end of its launch call was dispatched at once, ns.
DISPATCH_LIMIT = 10_000
_PLOTTED = 200  # the parts of the window


class _Work(Struct, frozen=True):
    """The work of all devices, with its kind and its launch calls."""

    rows: Rows
    is_copy: npt.NDArray[np.bool_]
    is_communication: npt.NDArray[np.bool_]
    tells_copies: npt.NDArray[np.bool_]
    tells_communication: npt.NDArray[np.bool_]
    launch: I64


def device(table: SliceTable, dispatch_limit: int = DISPATCH_LIMIT, step_name: str = "") -> list[Section]:
    """Return the tables `device`, and `host_late` where hosts were: a row for each device, then one for each queue.

    A device with one queue has one row; its queues come in the order of their busy time. The window of a device is that
    of the table, else from the start of its first work to the end of its last. The four parts computation, exposed
    communication, exposed copies and idle add up to it; the parts of idle add up to idle. What is exposed depends on
    all queues: rows of queues leave it empty. Gaps are divided as a whole, then cut to the window, so that the results
    for adjacent windows add up.

    Args:
        table: the slices.
        dispatch_limit: work that starts within this time after its launch call counts as dispatched at once, ns.
        step_name: a pattern of the whole names of steps; "" for the steps that formats declare.
    """
    section = Section("device", _COLUMNS)
    work, untimed = _work(table)
    section.notes += _undivided(table)
    if not len(work.rows):
        section.notes += untimed or ([] if section.notes else ["no work of a device is recorded"])
        return [section]
    queue = table.row_of_track[table.trace.slices.track[work.rows]]
    of_queue = dict(grouped(queue))
    queues_of: dict[int, list[int]] = {}
    for track in of_queue:
        queues_of.setdefault(_device_of(table, track), []).append(track)
    start, end = _window(table, work.rows)
    idle: list[tuple[tuple[str, str], Gaps, int]] = []
    busy_ns, idle_ns = section.place("busy_ns"), section.place("idle_ns")
    for track_of_device, queues_of_device in sorted(queues_of.items()):
        of_device = np.sort(np.concatenate([of_queue[at] for at in queues_of_device]))
        device_path = table.device_path(track_of_device)
        name, source = table.title(track_of_device, device_path), table.input_of(track_of_device)
        row, gaps_of_device = _row(table, work, of_device, (name, None, source), dispatch_limit)
        section.rows.append(row)
        idle.append(((name, source), gaps_of_device, int(row[idle_ns] or 0)))
        if end > start:
            busy = shares(table.busy(work.rows[of_device]), start, end, _PLOTTED)
            section.over_time.append(Activity(name, end - start, busy))
        rows = []
        for at in queues_of_device if len(queues_of_device) > 1 else []:
            path = table.path(at)
            queue_name = path.removeprefix(device_path).removeprefix(" / ").removeprefix(JOINT) or path
            rows.append(_row(table, work, of_queue[at], (name, queue_name, source), dispatch_limit)[0])
        section.rows += sorted(rows, key=lambda row: -int(row[busy_ns] or 0))
    shown = "that of --between" if table.window else "from the first work of the device or queue to its last"
    of_queues = "; of a queue: busy + idle = window" if any(row[section.place("queue")] for row in section.rows) else ""
    section.notes.append(
        f"window: {shown}; computation + exposed communication + exposed copies + "
        f"idle = window{of_queues}; idle = host late + launch call + dispatch + device wait + unknown"
    )
    started = table.in_window(table.trace.slices.ts[work.rows])
    section.notes += [f"{note}: idle may include them" for note in untimed]
    without = int(np.sum(started & (work.launch < 0)))
    if without:
        section.notes.append(
            f"no launch is recorded for {without} of {quantity(int(np.sum(started)), SLICES)} of device work: "
            "the gaps before them are unknown"
        )
    latency = _latency(table, work, np.flatnonzero(started & (work.launch >= 0)))
    if np.any(latency < 0):
        section.notes.append(
            f"kernels and copies that start before their launch: {np.sum(latency < 0)}; "
            f"the clocks of host and device differ by {format_short(int(-np.min(latency)))} or more"
        )
    late = host_late(table, idle, step_name)
    return [section, late] if late.rows else [section]


def _window(table: SliceTable, rows: Rows) -> tuple[int, int]:
    """Return the window of the table, or else from the first start of the rows to their last end, ns."""
    if table.window:
        return table.window.start, table.window.end
    return int(np.min(table.trace.slices.ts[rows])), int(np.max(table.ends(rows)))


def _device_of(table: SliceTable, queue: int) -> int:
    """Return the track of the device of a queue.

    It is the innermost one from which on the path of the queue is that of a device, as its format declares. Without
    one, it is the outermost track that is not a process of the system: a device can be drawn as one.
    """
    tracks = table.trace.tracks
    marks, path = table.trace.sources[tracks[queue].source].marks.devices, table.path(queue)
    parent, is_work = tracks[queue].parent, re.compile(marks.queues).fullmatch if marks else None
    while parent != NO_TRACK and not _is_of_system(tracks[parent]):
        if is_work and is_work(path.removeprefix(table.path(parent)).removeprefix(" / ")):
            break
        queue, parent = parent, tracks[parent].parent
    return queue


def _is_of_system(track: Track) -> bool:
    return track.kind is TrackKind.PROCESS and (track.pid is not None or track.stated.without_pid)


def _work(table: SliceTable) -> tuple[_Work, list[str]]:
    """Return the device work that the formats of the inputs declare, and a note on work of unknown duration."""
    trace = table.trace
    slices = trace.slices
    is_work = np.zeros(len(slices.ts), bool)
    copies, communication, tells_copies, tells_communication = (is_work.copy() for _ in range(4))
    for number, info in enumerate(trace.sources):
        work = work_of(table, number)
        if not len(work):
            continue
        is_work[work] = True
        by_id, by_track = info.marks.launches, info.marks.devices
        in_categories = table.of_categories(by_id.work if by_id is not None else (), work)
        if by_id is not None:
            copies[work] |= table.of_categories(by_id.copies_work, work)
            tells_copies[work] |= in_categories & bool(by_id.copies_work)
        if by_track is not None and by_track.copies:
            copies[work] |= table.naming(by_track.copies, work)
            tells_copies[work] |= ~in_categories
        for marks, of_marks in ((by_id, in_categories), (by_track, ~in_categories)):
            if marks is not None and marks.communication:
                communication[work] |= table.naming(marks.communication, work)
                tells_communication[work] |= of_marks
    rows = np.flatnonzero(is_work)
    untimed = table.untimed_notes(rows[table.in_window(slices.ts[rows])])
    rows = rows[table.timed[rows]]
    return _Work(
        rows,
        copies[rows],
        communication[rows],
        tells_copies[rows],
        tells_communication[rows],
        launches(table)[rows],
    ), untimed


def _undivided(table: SliceTable) -> list[str]:
    """Return a note for each category of slices on devices in which work and waits are not told apart."""
    found: dict[str, int] = {}
    for number, info in enumerate(table.trace.sources):
        categories = info.marks.launches.undivided if info.marks.launches is not None else ()
        rows = table.rows_of(number) if categories else np.empty(0, np.intp)
        rows = rows[table.in_window(table.trace.slices.ts[rows])]
        for category in categories:
            found[category] = found.get(category, 0) + int(np.sum(table.of_categories((category,), rows)))
    return [
        f"not counted: {quantity(count, SLICES)} of devices in the category {category}, where work and waits are not "
        "told apart"
        for category, count in found.items()
        if count
    ]


def _latency(table: SliceTable, work: _Work, numbers: Rows) -> I64:
    """Return the time from the start of the launch call to the start of slices, ns; undefined without a launch."""
    ts = table.trace.slices.ts
    latency: I64 = ts[work.rows[numbers]] - ts[work.launch[numbers]]
    return latency


def _row(
    table: SliceTable, work: _Work, numbers: Rows, names: tuple[str, str | None, str], dispatch_limit: int
) -> tuple[tuple[Cell, ...], Gaps]:
    """Return the row of some of the work, numbers in ns, shares as fractions, and its gaps."""
    slices = table.trace.slices
    rows = work.rows[numbers]
    start, end = _window(table, rows)
    window = Intervals(np.array([start]), np.array([end]))
    runs = table.busy(rows)
    busy = intersect(runs, window)
    communication = intersect(table.busy(rows[work.is_communication[numbers]]), window)
    copies = intersect(table.busy(rows[work.is_copy[numbers]]), window)
    compute = intersect(table.busy(rows[~work.is_copy[numbers] & ~work.is_communication[numbers]]), window)
    exposed = subtract(communication, compute)
    exposed_copies = subtract(subtract(copies, compute), communication)
    idle = gaps(busy, start, end)
    causes = gaps_of(table, rows, work.launch[numbers], runs, (start, end), dispatch_limit)
    launched = numbers[(work.launch[numbers] >= 0) & table.in_window(slices.ts[rows])]
    known = bool(np.any(work.launch[numbers] >= 0))
    latency = _latency(table, work, launched)
    ended = launched[table.timed[work.launch[launched]]]
    queued = slices.ts[work.rows[ended]] - table.ends(work.launch[ended])
    hidden = communication.length - exposed.length
    tells_copies, tells_communication = (
        bool(np.all(told[numbers])) for told in (work.tells_copies, work.tells_communication)
    )
    device_name, queue, source = names
    exposes = queue is None
    row = (
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
        communication.length if tells_communication else None,
        hidden / communication.length if exposes and communication.length else None,
        len(launched),
        _median(latency),
        _median(np.maximum(queued, 0)),
        int(np.sum(latency < 0)) if known else None,
        source,
    )
    return row, causes


def _median(values: I64) -> int | None:
    """Return the nearest-rank median, None without values."""
    return int(np.sort(values)[(len(values) - 1) // 2]) if len(values) else None


# -- What idle devices wait for: each gap split by the launch of the work that ends it, and what the host did instead

_HOST_LATE = (
    Column("device", "device", Unit.TEXT),
    Column("name", "the host ran", Unit.TEXT),
    Column("time_ns", "time", Unit.NS),
    Column("idle_share", "of idle", Unit.SHARE),
    Column("gaps", "gaps", Unit.COUNT),
    Column("thread", "thread", Unit.TEXT, detail=True),
    Column("input", "input", Unit.TEXT, detail=True),
)
_NOTHING = "(none recorded)"  # not longer than the narrowest column of names, so that it is never cut


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


def gaps_of(
    table: SliceTable, rows: Rows, launch: Rows, runs: Intervals, window: tuple[int, int], dispatch_limit: int
) -> Gaps:
    """Return the gaps in some work of a device. They are split as a whole, then cut to the window.

    Args:
        table: the slices.
        rows: the work.
        launch: the row of the call that launched each of them, NONE if none was recorded.
        runs: the instants at which that work runs.
        window: from when to when, ns.
        dispatch_limit: how long after its launch call work may start and count as picked up at once, ns.
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
    return Gaps(starts, late_until, called_until, ends, known, idle.ends - called <= dispatch_limit, call)


def host_late(table: SliceTable, devices: Sequence[tuple[tuple[str, str], Gaps, int]], step_name: str = "") -> Section:
    """Return what the threads that launch work ran while they were late, a row for each device, thread and name.

    Args:
        table: the slices.
        devices: of each its name with its input, its gaps, and its idle time, ns.
        step_name: a pattern of the whole names of steps; "" for the steps that formats declare.
    """
    section = Section("host_late", _HOST_LATE)
    slices, thread_of = table.trace.slices, table.row_of_track
    launching, running = np.zeros((2, len(table.trace.tracks)), bool)
    for _, waits, _ in devices:
        launching[thread_of[slices.track[waits.call[waits.known]]]] = True
    lasting = (slices.dur > 0) & table.timed
    lasting[step_rows(table, step_name)] = False  # a step alone says nothing about what ran in it
    lasting &= launching[thread_of[slices.track]]
    busy = table.recorded[lasting[table.recorded]]
    # Timelines take much memory.
    busy = busy[_meets(slices.ts[busy], table.ends(busy), [waits for _, waits, _ in devices])]
    running[thread_of[slices.track[busy]]] = True
    of_thread = np.where(running, np.cumsum(running) - 1, NONE)
    ran = timelines(slices, busy, of_thread[thread_of])
    names = [*table.trace.strings, _NOTHING]
    for (device, source), waits, idle in devices:
        late = waits.known & (waits.late > waits.starts)
        starts, ends, thread = waits.starts[late], waits.late[late], thread_of[slices.track[waits.call[late]]]
        gap, row, length = _running(ran, of_thread[thread], starts, ends)
        name = np.where(row == NONE, len(names) - 1, slices.name[row])
        groups, group = np.unique(thread[gap] * len(names) + name, return_inverse=True)
        time = np.zeros(len(groups), np.int64)
        np.add.at(time, group, length)
        in_gaps = np.bincount(distinct_values(group * len(starts) + gap) // max(len(starts), 1), minlength=len(groups))
        for at in range(len(groups)):
            track, text = divmod(int(groups[at]), len(names))
            amount = int(time[at])
            counts = amount, amount / idle, int(in_gaps[at])
            section.rows.append((device, names[text], *counts, table.title(track), source))
    section.rows.sort(key=lambda row: -int(row[section.place("time_ns")] or 0))
    if len({row[section.place("thread")] for row in section.rows}) > 1:
        section.columns = tuple(replace(column, detail=column.name == "input") for column in _HOST_LATE)
    if section.rows:
        section.notes.append(
            "the innermost slices of the launching thread while the device was idle; they add up to host late"
        )
    return section


def _meets(starts: I64, ends: I64, devices: Sequence[Gaps]) -> npt.NDArray[np.bool_]:
    """Return which intervals have an instant at which a host is late for one of the devices."""
    late = union(
        np.concatenate([waits.starts[waits.known] for waits in devices]),
        np.concatenate([waits.late[waits.known] for waits in devices]),
    )
    meets: npt.NDArray[np.bool_] = np.searchsorted(late.ends, starts, "right") < np.searchsorted(late.starts, ends)
    return meets


def _running(ran: Timelines, line: I64, starts: I64, ends: I64) -> tuple[I64, Rows, I64]:
    """Return the parts of intervals by what ran in them: the number of the interval, the slice, and the length, ns."""
    some, none = np.flatnonzero(line != NONE), np.flatnonzero(line == NONE)
    low, high = (ran.locate(line[some], at[some]) for at in (starts, ends - 1))
    which, segment = expanded(low, high + 1)
    gap = some[which]
    length = np.minimum(ran.ends[segment], ends[gap]) - np.maximum(ran.starts[segment], starts[gap])
    return (
        np.append(gap, none),
        np.append(ran.rows[segment], np.full(len(none), NONE)),
        np.append(length, (ends - starts)[none]),
    )

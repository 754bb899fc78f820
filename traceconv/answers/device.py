"""Whether a device works or waits: an exact partition of the time of each device, and what its gaps come from.

The definitions are in docs/answers.md. A queue is a track with work of a device; a device is what its queues belong to.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from traceconv.answers.intervals import Intervals, gaps, shares, subtract
from traceconv.answers.section import Activity, Cell, Column, Section, Unit
from traceconv.answers.tables import Rows, SliceTable
from traceconv.model.times import format_short
from traceconv.model.trace import I64, NO_TRACK, TrackKind

_COLUMNS = (
    Column("device", "device", Unit.TEXT),
    Column("queue", "queue", Unit.TEXT),
    Column("window_ns", "window", Unit.NS),
    Column("busy_ns", "busy", Unit.NS),
    Column("compute_ns", "computation", Unit.NS),
    Column("exposed_comm_ns", "exposed communication", Unit.NS),
    Column("exposed_copy_ns", "exposed copies", Unit.NS),
    Column("idle_ns", "idle", Unit.NS),
    Column("utilisation", "busy", Unit.SHARE),
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
)
#: A device that starts work within this time of the end of its launch call picked it up at once, ns.
DISPATCH_LIMIT = 10_000
_PLOTTED = 200  # parts of the window


@dataclass(frozen=True, slots=True)
class _Work:
    """The work of all devices: rows of slices, and for each what it is and by which call it was launched.

    Attributes:
        rows: rows of the slices.
        is_copy, is_communication: what kind of work; what is neither computes.
        launch: for each row the row of its launch call, -1 if none was recorded.
    """

    rows: Rows
    is_copy: npt.NDArray[np.bool_]
    is_communication: npt.NDArray[np.bool_]
    launch: I64


def device(table: SliceTable, dispatch_limit: int = DISPATCH_LIMIT) -> Section:
    """Return a row for each device, followed by one for each of its queues if it has several.

    The window of a device is from the start of its first work to the end of its last one. The four parts computation,
    exposed communication, exposed copies and idle add up to it; the parts of idle add up to idle.

    Args:
        table: the slices.
        dispatch_limit: how long after its launch call work may start and count as picked up at once, ns.
    """
    section = Section("device", _COLUMNS)
    work = _work(table)
    if not len(work.rows):
        section.notes.append("no work of a device is recorded")
        return section
    queue = table.row_of_track[table.trace.slices.track[work.rows]]
    owner = np.array([_device_of(table, track) for track in queue.tolist()], np.int64)
    start, end = int(np.min(table.trace.slices.ts[work.rows])), int(np.max(table.ends[work.rows]))
    for one in np.unique(owner).tolist():
        of_device = owner == one
        queues = np.unique(queue[of_device]).tolist()
        section.rows.append(_row(table, work, np.flatnonzero(of_device), (table.path(one), ""), dispatch_limit))
        if end > start:
            busy = shares(table.busy(work.rows[of_device]), start, end, _PLOTTED)
            section.over_time.append(Activity(table.path(one), end - start, busy))
        for other in queues if len(queues) > 1 else []:
            name = table.path(other).removeprefix(table.path(one)).removeprefix(" / ") or table.path(other)
            section.rows.append(
                _row(table, work, np.flatnonzero(queue == other), (table.path(one), name), dispatch_limit)
            )
    section.notes.append(
        "window: from the first work of the device to its last; computation + exposed communication + exposed copies + "
        "idle = window; idle = host late + launch call + dispatch + device wait + unknown"
    )
    without = int(np.sum(work.launch < 0))
    if without:
        section.notes.append(
            f"{without} of {len(work.rows)} slices of the device have no recorded launch: gaps before them are unknown"
        )
    early = int(np.sum(_latency(table, work)[work.launch >= 0] < 0))
    if early:
        most = int(-np.min(_latency(table, work)[work.launch >= 0]))
        section.notes.append(
            f"{early} slices of the device start before their launch: "
            f"the clocks of host and device differ by {format_short(most)} or more"
        )
    return section


def _device_of(table: SliceTable, queue: int) -> int:
    """Return the outermost track around a queue that is not a process."""
    tracks = table.trace.tracks
    parent = tracks[queue].parent
    while parent != NO_TRACK and tracks[parent].kind is not TrackKind.PROCESS:
        queue, parent = parent, tracks[parent].parent
    return queue


def _work(table: SliceTable) -> _Work:
    """Return the work of devices, as the formats of the inputs tell it."""
    trace = table.trace
    slices = trace.slices
    found = np.zeros(len(slices.ts), bool)
    copies, communication = found.copy(), found.copy()
    launched_by = np.full(len(slices.ts), -1, np.int64)
    flows = trace.flows
    for number, info in enumerate(trace.sources):
        marks = info.marks.launches
        if marks is None:
            continue
        mine = table.of_source(number)
        work = mine & table.of_categories(marks.work)
        found |= work
        copies |= work & table.of_categories(marks.copies_work)
        communication |= work & table.naming(marks.communication) if marks.communication else False
        pattern = re.compile(info.marks.launch_flows)
        texts = [bool(info.marks.launch_flows) and pattern.fullmatch(text) is not None for text in trace.strings]
        says = np.array(texts, bool)
        launches = (says[flows.name] | says[flows.category]) & work[flows.to_slice]
        launched_by[flows.to_slice[launches]] = flows.from_slice[launches]
    rows = np.flatnonzero(found & (slices.dur >= 0))
    return _Work(rows, copies[rows], communication[rows], launched_by[rows])


def _latency(table: SliceTable, work: _Work) -> I64:
    """Return how long after its launch call each slice of the device starts, ns; without a launch it means nothing."""
    ts = table.trace.slices.ts
    latency: I64 = ts[work.rows] - ts[work.launch]
    return latency


def _row(table: SliceTable, work: _Work, mine: Rows, names: tuple[str, str], dispatch_limit: int) -> tuple[Cell, ...]:
    """Return the row of some of the work: numbers in ns, shares as fractions."""
    slices = table.trace.slices
    rows = work.rows[mine]
    busy = table.busy(rows)
    start, end = int(np.min(slices.ts[rows])), int(np.max(table.ends[rows]))
    communication = table.busy(rows[work.is_communication[mine]])
    copies = table.busy(rows[work.is_copy[mine]])
    compute = table.busy(rows[~work.is_copy[mine] & ~work.is_communication[mine]])
    exposed = subtract(communication, compute)
    exposed_copies = subtract(subtract(copies, compute), communication)
    idle = gaps(busy, start, end)
    launched = mine[work.launch[mine] >= 0]
    latency = _latency(table, work)[launched]
    queued = slices.ts[work.rows[launched]] - table.ends[work.launch[launched]]
    hidden = communication.length - exposed.length
    return (
        *names,
        end - start,
        busy.length,
        compute.length,
        exposed.length,
        exposed_copies.length,
        idle.length,
        busy.length / (end - start) if end > start else None,
        *_causes(table, work, mine, idle, dispatch_limit),
        len(idle.starts),
        communication.length,
        hidden / communication.length if communication.length else None,
        len(launched),
        _median(latency),
        _median(queued[queued > 0]),
        int(np.sum(latency < 0)),
    )


def _median(values: I64) -> int | None:
    """Return the nearest-rank median, None of nothing."""
    return int(np.sort(values)[(len(values) - 1) // 2]) if len(values) else None


def _causes(
    table: SliceTable, work: _Work, mine: Rows, idle: Intervals, dispatch_limit: int
) -> tuple[int, int, int, int, int]:
    """Split each gap by the launch of the work that ends it; return the sums of the parts, ns.

    Returns:
        Host late, launch call, dispatch, device wait, unknown. They add up to the length of the gaps.
    """
    if not len(idle.starts):
        return 0, 0, 0, 0, 0
    ts = table.trace.slices.ts
    begins = ts[work.rows[mine]]
    launch = work.launch[mine]
    called = np.where(launch >= 0, ts[launch], np.iinfo(np.int64).min)
    # Of several slices that start at the end of a gap, the one that was launched last.
    order = np.lexsort((called, begins))
    next_one = order[np.searchsorted(begins[order], idle.ends, "right") - 1]
    known = launch[next_one] >= 0
    call_start, call_end = called[next_one], table.ends[launch[next_one]]
    known &= call_start <= idle.ends
    split = np.clip(call_start, idle.starts, idle.ends), np.clip(call_end, idle.starts, idle.ends)
    host_late = np.where(known, split[0] - idle.starts, 0)
    in_call = np.where(known, np.maximum(split[1], split[0]) - split[0], 0)
    rest = np.where(known, idle.ends - np.maximum(split[1], split[0]), 0)
    picked_up = rest <= dispatch_limit
    lengths = idle.ends - idle.starts
    return (
        int(host_late.sum()),
        int(in_call.sum()),
        int(rest[picked_up].sum()),
        int(rest[~picked_up].sum()),
        int(lengths[~known].sum()),
    )

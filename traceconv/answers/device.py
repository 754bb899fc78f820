"""Whether a device works or waits: an exact partition of the time of each device, and what its gaps come from.

The definitions are in docs/answers.md. A queue is a track with work of a device; a device is what its queues belong to.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from traceconv.answers.intervals import Intervals, gaps, intersect, shares, subtract
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

    The window of a device is that of the table, else from the start of its first work to the end of its last one. The
    four parts computation, exposed communication, exposed copies and idle add up to it; the parts of idle add up to
    idle. Gaps are split as a whole, then cut to the window: what two windows say adds up to what both say as one.

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
    used, number = np.unique(queue, return_inverse=True)
    owner = np.array([_device_of(table, track) for track in used.tolist()], np.int64)[number.reshape(-1)]
    start, end = _window(table, work.rows)
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
    shown = "that of the table" if table.window else "from the first work of the device to its last"
    section.notes.append(
        f"window: {shown}; computation + exposed communication + exposed copies + "
        "idle = window; idle = host late + launch call + dispatch + device wait + unknown"
    )
    started = table.in_window(table.trace.slices.ts[work.rows])
    without = int(np.sum(started & (work.launch < 0)))
    if without:
        section.notes.append(
            f"{without} of {np.sum(started)} kernels and copies have no recorded launch: gaps before them are unknown"
        )
    latency = _latency(table, work)[started & (work.launch >= 0)]
    if np.any(latency < 0):
        section.notes.append(
            f"{np.sum(latency < 0)} kernels and copies start before their launch: "
            f"the clocks of host and device differ by {format_short(int(-np.min(latency)))} or more"
        )
    return section


def _window(table: SliceTable, rows: Rows) -> tuple[int, int]:
    """Return the window of the table, or else from the first start of the rows to their last end, ns."""
    if table.window:
        return table.window.start, table.window.end
    return int(np.min(table.trace.slices.ts[rows])), int(np.max(table.ends[rows]))


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
    for number, info in enumerate(trace.sources):
        marks = info.marks.launches
        if marks is None:
            continue
        mine = table.of_source(number)
        work = mine & table.of_categories(marks.work)
        found |= work
        copies |= work & table.of_categories(marks.copies_work)
        communication |= work & table.naming(marks.communication) if marks.communication else False
    rows = np.flatnonzero(found & (slices.dur >= 0))
    return _Work(rows, copies[rows], communication[rows], launches(table)[rows])


def launches(table: SliceTable) -> I64:
    """Return for each slice the row of the call that launched it on a device, -1 if none is recorded."""
    trace = table.trace
    flows = trace.flows
    launched_by = np.full(len(trace.slices.ts), -1, np.int64)
    for number, info in enumerate(trace.sources):
        marks = info.marks.launches
        if marks is None:
            continue
        work = table.of_source(number) & table.of_categories(marks.work)
        pattern = re.compile(info.marks.launch_flows)
        texts = [bool(info.marks.launch_flows) and pattern.search(text) is not None for text in trace.strings]
        says = np.array(texts, bool)
        mine = (says[flows.name] | says[flows.category]) & work[flows.to_slice]
        launched_by[flows.to_slice[mine]] = flows.from_slice[mine]
    return launched_by


def _latency(table: SliceTable, work: _Work) -> I64:
    """Return how long after its launch call each slice of the device starts, ns; without a launch it means nothing."""
    ts = table.trace.slices.ts
    latency: I64 = ts[work.rows] - ts[work.launch]
    return latency


def _row(table: SliceTable, work: _Work, mine: Rows, names: tuple[str, str], dispatch_limit: int) -> tuple[Cell, ...]:
    """Return the row of some of the work: numbers in ns, shares as fractions."""
    slices = table.trace.slices
    rows = work.rows[mine]
    start, end = _window(table, rows)
    window = Intervals(np.array([start]), np.array([end]))
    runs = table.busy(rows)
    busy = intersect(runs, window)
    communication = intersect(table.busy(rows[work.is_communication[mine]]), window)
    copies = intersect(table.busy(rows[work.is_copy[mine]]), window)
    compute = intersect(table.busy(rows[~work.is_copy[mine] & ~work.is_communication[mine]]), window)
    exposed = subtract(communication, compute)
    exposed_copies = subtract(subtract(copies, compute), communication)
    idle = gaps(busy, start, end)
    launched = mine[(work.launch[mine] >= 0) & table.in_window(slices.ts[rows])]
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
        *_causes(table, work, mine, runs, dispatch_limit),
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
    table: SliceTable, work: _Work, mine: Rows, runs: Intervals, dispatch_limit: int
) -> tuple[int, int, int, int, int]:
    """Split each gap by the launch of the work that ends it; return the sums of the parts in the window, ns.

    Args:
        table: the slices.
        work: the work of all devices.
        mine: which of it is meant.
        runs: the instants at which that runs.
        dispatch_limit: as of `device`.

    Returns:
        Host late, launch call, dispatch, device wait, unknown. They add up to the idle time of the window.
    """
    window = _window(table, work.rows[mine])
    idle = gaps(runs, min(table.start, window[0]), int(np.max(runs.ends, initial=window[1])))
    if not len(idle.starts):
        return 0, 0, 0, 0, 0
    ts = table.trace.slices.ts
    begins = ts[work.rows[mine]]
    launch = work.launch[mine]
    called = np.where(launch >= 0, ts[launch], np.iinfo(np.int64).min)
    # Of all the work that starts at the end of a gap, the one that was launched last.
    order = np.lexsort((called, begins))
    next_one = order[np.searchsorted(begins[order], idle.ends, "right") - 1]
    known = (launch[next_one] >= 0) & (begins[next_one] == idle.ends)  # no work ends the last gap
    call_start, call_end = called[next_one], table.ends[launch[next_one]]
    known &= call_start <= idle.ends
    late_until = np.clip(call_start, idle.starts, idle.ends)
    called_until = np.maximum(np.clip(call_end, idle.starts, idle.ends), late_until)
    picked_up = idle.ends - called_until <= dispatch_limit
    edges = [np.clip(edge, *window) for edge in (idle.starts, late_until, called_until, idle.ends)]
    late, call, rest = (after - before for before, after in pairwise(edges))
    return (
        int(late[known].sum()),
        int(call[known].sum()),
        int(rest[known & picked_up].sum()),
        int(rest[known & ~picked_up].sum()),
        int((edges[3] - edges[0])[~known].sum()),
    )

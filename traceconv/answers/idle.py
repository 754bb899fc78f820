"""What idle devices wait for: each gap split by the launch of the work that ends it, and what the host did instead.

The definitions are in docs/answers.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from traceconv.answers.attribution import NONE, Timelines, expanded, timelines
from traceconv.answers.intervals import Intervals, gaps, union
from traceconv.answers.section import Column, Section, Unit
from traceconv.answers.steps import step_rows
from traceconv.answers.tables import Rows, SliceTable
from traceconv.model.ordering import distinct_values
from traceconv.model.trace import I64

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
        section.columns = tuple(replace(one, detail=one.name == "input") for one in _HOST_LATE)
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
    """Return the parts of intervals by what ran in them: the number of the interval, the slice, and the length, ns.

    Args:
        ran: what threads ran.
        line: the thread of each interval; NONE for one that ran nothing.
        starts, ends: the intervals, none empty.
    """
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

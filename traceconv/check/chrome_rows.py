"""The slices, flows and threads of a Chrome JSON file, as viewers read them."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence

import numpy as np

from traceconv.check.findings import Rows, data_loss, notice, refusal
from traceconv.model.columns import I64
from traceconv.model.diagnostics import Code
from traceconv.model.numbers import fits_int64, number_of, whole_of

FLOW_NO_START = notice("check-json.flow_without_start", "a flow is continued, but was never started")
FLOW_NO_END = notice("check-json.flow_without_end", "a flow is started, but never ends")
FLOW_BACKWARD = data_loss(
    "check-json.flow_backward", "a flow ends before it starts, by time or place in the file: Perfetto does not draw it"
)
FLOW_REVERSED = notice(
    "check-json.flow_reversed",
    "a flow leads to a slice that began earlier: viewers draw it in the other direction, from that slice",
)
FLOW_TWICE = refusal("check-json.flow_started_twice", "a flow id is started again; Perfetto counts that as an error")
FLOW_LOOSE = data_loss("check-json.flow_without_slice", "a flow has no slice to attach to at its time on its thread")
FLOW_LATE = notice(
    "check-json.flow_late",
    "a flow has no slice at its time on its thread: Perfetto draws it at the one that was open last",
)
MAX_EXACT_INT = 2**53
_MAX_TASK = 2**32 - 1
INTEGER = re.compile(rb"-?\d{1,30}")
_SOME_ROWS = 1 << 14
_EARLIEST = np.iinfo(np.int64).min
_MOST_THREADS = 1 << 17


class Slices:
    """The slices of one thread, as columns: a million tuples would take five times as much.

    Attributes:
        starts, ends, positions: the times in ns, and where the slices are in the file.
        complete: how many of them are complete events; they come first.
    """

    def __init__(self) -> None:
        self.complete = 0
        self.starts = array("q")
        self.ends = array("q")
        self.positions = array("q")

    def add(self, start: int, end: int, position: int) -> None:
        self.starts.append(start)
        self.ends.append(end)
        self.positions.append(position)

    def overlapping(self) -> Iterator[int]:
        """Yield the positions of slices that start inside another one and end after it."""
        starts = np.array(self.starts, np.int64)
        ends = np.array(self.ends, np.int64)
        order = np.lexsort((np.array(self.positions, np.int64), -ends, starts))
        stack = array("q")
        for at in range(0, len(order), _SOME_ROWS):
            some = order[at : at + _SOME_ROWS]
            for start, end, row in zip(starts[some].tolist(), ends[some].tolist(), some.tolist(), strict=True):
                while stack and stack[-1] <= start:
                    stack.pop()
                if stack and end > stack[-1]:
                    yield self.positions[row]
                else:
                    stack.append(end)

    def cut_by_complete(self, open_ones: Sequence[tuple[int, int]], latest: int) -> Iterator[int]:
        """Yield the positions of pairs that begin with a complete event which lasts, but ends before them.

        Args:
            open_ones: start and position of slices without end.
            latest: the time of the last event.
        """
        starts, ends, positions = (np.array(column, np.int64) for column in (self.starts, self.ends, self.positions))
        complete = self.complete
        kept = np.flatnonzero(ends[:complete] > starts[:complete])
        kept = kept[np.lexsort((ends[kept], starts[kept]))]
        begun = np.append(starts[complete:], [start for start, _ in open_ones])
        ended = np.append(ends[complete:], np.full(len(open_ones), latest, np.int64))
        places = np.append(positions[complete:], [position for _, position in open_ones])
        at = np.searchsorted(starts[kept], begun)
        inside = at < len(kept)
        shortest = kept[at[inside]]
        inside[inside] = (starts[shortest] == begun[inside]) & (ends[shortest] < ended[inside])
        yield from places[inside].astype(np.int64).tolist()

    def without_slice(self, hooks: Rows) -> Iterator[tuple[Code, int]]:
        """Yield the positions of flow ends without a slice around their time (or later, where that is meant).

        A complete event that was open at the last start or end event before is enough.
        """
        starts, ends = np.array(self.starts, np.int64), np.array(self.ends, np.int64)
        order = np.argsort(starts, kind="stable")
        starts, ends, is_pair = starts[order], ends[order], order >= self.complete
        times, positions, to_next = map(hooks.column, range(3))
        last = np.searchsorted(starts, times, "right") - 1  # -1: before all
        has_next = np.searchsorted(starts, times) < len(starts)
        ended = _latest(np.where(is_pair, ends, _EARLIEST))[last]
        start = np.append(starts, _EARLIEST)[last]
        start = np.where(ended > start, ended + 1, start)  # an end event ends what ends at its time
        is_behind = (to_next == 0) & (_latest(ends)[last] < times)
        stays = (last >= 0) & (_latest(np.where(is_pair, _EARLIEST, ends))[last] >= start)
        is_lost = np.where(to_next > 0, ~has_next, is_behind & ~stays)
        yield from ((FLOW_LOOSE, position) for position in positions[is_lost].tolist())
        yield from ((FLOW_LATE, position) for position in positions[is_behind & ~is_lost].tolist())

    def begun(self, hooks: Rows) -> tuple[I64, I64]:
        """Return the starts of the slices that flow ends attach to, and the positions of these ends.

        That is the slice of the thread that began last, or the next one. Ends behind a start and end event are left
        out: they attach to what is around that slice.
        """
        starts = np.array(self.starts, np.int64)
        order = np.argsort(starts, kind="stable")
        starts = starts[order]
        times, positions, to_next = map(hooks.column, range(3))
        last = np.searchsorted(starts, times, "right") - 1
        row = np.where(to_next > 0, np.searchsorted(starts, times), last)
        known = np.flatnonzero((row >= 0) & (row < len(starts)))
        slices = order[row[known]]
        ended = (slices >= self.complete) & (np.array(self.ends, np.int64)[slices] <= times[known])
        known = known[~ended]
        return starts[row[known]], positions[known]


def _latest(ends: I64) -> I64:
    """Return the latest of the ends so far (ns), and behind them the earliest time, for no slice."""
    return np.append(np.maximum.accumulate(ends), _EARLIEST)


def flow_problems(positions: array[int], starts: bytearray) -> Iterator[tuple[Code, int]]:
    """Yield the problems of one flow id, given by its points in the order of time and file."""
    first = starts.find(1)
    if first < 0:
        yield from ((FLOW_NO_START, position) for position in positions)
        return
    if 0 not in starts[first:]:
        yield FLOW_BACKWARD if first else FLOW_NO_END, positions[first]
    else:  # those before it may be of another flow
        yield from ((FLOW_NO_START, position) for position in positions[:first])
    yield from ((FLOW_TWICE, positions[row]) for row in range(first + 1, len(starts)) if starts[row])


def reversed_flows(points: Rows, hooked: Rows) -> I64:
    """Return the positions of the points of flows whose slice began before that of the point before.

    Args:
        points: the points of all flows: time, position, whether it is a start, id.
        hooked: the start of the slice of a point, and its position.
    """
    order = np.argsort(hooked.column(1), kind="stable")
    known, begun = hooked.column(1)[order], hooked.column(0)[order]
    rows = np.lexsort((points.column(0), points.column(3)))
    position, is_start, flow = (points.column(number)[rows] for number in (1, 2, 3))
    at = np.minimum(np.searchsorted(known, position), len(known) - 1)
    begin = begun[at]
    is_next = (flow[1:] == flow[:-1]) & (known[at[1:]] == position[1:]) & (known[at[:-1]] == position[:-1])
    first = np.maximum.accumulate(np.where(np.append(True, flow[1:] != flow[:-1]), np.arange(len(flow)), 0))
    back = is_next & (begin[1:] < begin[:-1]) & (is_start[first[1:]] > 0)
    return np.sort(position[1:][back])


class Tasks:
    """The identification of processes and threads by Perfetto."""

    def __init__(self) -> None:
        self._threads: dict[tuple[bytes, bytes], tuple[bytes | None, bool]] = {}
        self._first: dict[bytes, bytes] = {}

    def thread(self, pid: bytes, tid: bytes) -> tuple[bytes | None, bool]:
        """Return the identity of a thread, and whether it, or its process, collides with another one of the file.

        The identity is None for threads beyond the limit.
        """
        known = self._threads.get((pid, tid))
        if known is None and len(self._threads) >= _MOST_THREADS:
            return None, False
        if known is None:
            process, thread = _number(pid), _number(tid)
            thread = process + b"/" + (process if thread == b"0" else thread)
            merged = self._first.setdefault(process, pid) != pid
            merged |= self._first.setdefault(thread, pid + b"/" + tid) != pid + b"/" + tid
            known = self._threads[pid, tid] = thread, merged
        return known


def _number(task: bytes) -> bytes:
    """Return a pid or tid as Perfetto reads it."""
    if task[:1] == b'"':
        return task
    number = number_of(task.decode("latin-1"))
    return b"%d" % int(number) if number is not None and 0 <= number <= _MAX_TASK else b"0"


def is_task(text: bytes) -> bool:
    """Return whether Perfetto keeps a pid or tid; texts are names."""
    if text.isdigit() and len(text) < 10:
        return True
    if not text.removeprefix(b"-").isdigit():
        return True
    number = whole_of(text)
    return number is not None and 0 <= number <= _MAX_TASK


def is_int64(text: bytes) -> bool:
    return INTEGER.fullmatch(text) is not None and fits_int64(whole_of(text))


def is_big(id: bytes) -> bool:
    digits = id.removeprefix(b"-")
    if len(digits) < 16 or not digits.isdigit():
        return False
    number = whole_of(digits)
    return number is None or number >= MAX_EXACT_INT

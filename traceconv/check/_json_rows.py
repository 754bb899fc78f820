"""The slices, flows and threads of a Chrome JSON file, as viewers read them."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence

import numpy as np

from traceconv.check._report import declare
from traceconv.check._rows import Rows
from traceconv.model.diagnostics import Code, Severity
from traceconv.model.numbers import fits_int64, number_of, whole_of

FLOW_NO_START = declare("check-json.flow_without_start", Severity.NOTICE, "a flow is continued, but was never started")
FLOW_NO_END = declare("check-json.flow_without_end", Severity.NOTICE, "a flow is started, but never ends")
FLOW_TWICE = declare(
    "check-json.flow_started_twice", Severity.ERROR, "a flow id is started again; Perfetto counts that as an error"
)
MAX_EXACT_INT = 2**53
_MAX_TASK = 2**32 - 1
INTEGER = re.compile(rb"-?\d{1,30}")
_SOME_ROWS = 1 << 14
_MOST_THREADS = 1 << 17


class Slices:
    """The slices of one thread, as columns: a million tuples would take five times as much."""

    def __init__(self) -> None:
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

    def cut_by_complete(self, complete: int, open_ones: Sequence[tuple[int, int]], latest: int) -> Iterator[int]:
        """Yield the positions of pairs that begin with a complete event which lasts, but ends before them.

        Args:
            complete: how many of the slices are complete events; they come first.
            open_ones: start and position of slices without end.
            latest: the time of the last event.
        """
        starts, ends, positions = (np.array(column, np.int64) for column in (self.starts, self.ends, self.positions))
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

    def without_slice(self, hooks: Rows) -> Iterator[int]:
        """Yield the positions of flow ends without a slice at their time (or later, where that is enough)."""
        starts = np.sort(np.array(self.starts, np.int64))
        ends = np.maximum.accumulate(np.array(self.ends, np.int64)[np.argsort(self.starts, kind="stable")])
        times, positions, to_next = map(hooks.column, range(3))
        count = np.searchsorted(starts, times, "right")
        # Of the slices started so far, the one that lasts longest is open, or none is.
        is_open = count > 0
        is_open[is_open] = ends[count[is_open] - 1] >= times[is_open]
        yield from positions[~is_open & ~((to_next > 0) & (count < len(starts)))].tolist()


def flow_problems(times: array[int], positions: array[int], starts: bytearray) -> Iterator[tuple[Code, int]]:
    """Yield the problems of one flow id.

    A finish at the time of the start, but before it in the file, is not a problem.
    """
    first = starts.find(1)
    if first < 0:
        yield from ((FLOW_NO_START, position) for position in positions)
        return
    if 0 not in starts:
        yield FLOW_NO_END, positions[first]
    before = bisect_left(times, times[first])
    yield from ((FLOW_NO_START, position) for position in positions[:before])
    yield from ((FLOW_TWICE, positions[row]) for row in range(first + 1, len(starts)) if starts[row])


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

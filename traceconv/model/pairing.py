"""Pair starts and ends that are separate events.

Files are not sorted by time in general, so pairing starts after the last event, and goes through each track by time, at
equal times by the number of the event or line. An end with a name closes the innermost open slice of that name and
leaves the others open: two slices that cross keep their durations, and are drawn on two lanes.

Traces may hold millions of these events: they are kept in columns, without an object for each.
"""

from __future__ import annotations

import mmap
from array import array
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from traceconv import kernel
from traceconv.io.spill import forget
from traceconv.model.columns import Column, finished
from traceconv.model.ordering import chunks, stable_order
from traceconv.model.trace import I32, I64, U8

_UNNAMED = 0  # the interned string ""
#: At most this many marks are Python integers at a time.
_CHUNK = 1 << 13
_TYPES: dict[str, Any] = {
    "track": np.int32,
    "ts": np.int64,
    "at": np.int64,
    "is_begin": np.uint8,
    "name": np.int32,
    "category": np.int32,
    "args_at": np.int64,
    "args_len": np.int32,
}


class Pairs(NamedTuple):
    """Pairs of a start and an end, as rows of `Marks`; -1 where one of the two is missing.

    Attributes:
        misnamed: whether the name of the end differs from that of its start.
    """

    begin: I64
    end: I64
    misnamed: npt.NDArray[np.bool_]


class Marks:
    """The starts and ends of all tracks in input order, one row each.

    Attributes:
        columns: the growing columns, until `settle`.
        track, ts, at: set by `settle`: the track, the time in ns, and the number of the event or line.
        name, category: set by `settle`: interned strings.
        args_at, args_len: set by `settle`: the position of the args in those of the trace.
    """

    track: memoryview
    ts: memoryview
    at: memoryview
    name: memoryview
    category: memoryview
    args_at: memoryview
    args_len: memoryview
    _is_begin: memoryview

    def __init__(self) -> None:
        self.columns = {name: Column(dtype) for name, dtype in _TYPES.items()}
        self._mappings: tuple[mmap.mmap, ...] = ()

    def __len__(self) -> int:
        return len(self.columns["ts"])

    def add(
        self, track: int, ts: int, is_begin: bool, name: int, category: int, args: tuple[int, int], at: int
    ) -> None:
        """Add a mark, in input order; `args` holds the position and length of its args.

        Raises:
            TypeError: the time is not an integer.
        """
        columns = self.columns
        columns["ts"].append(ts)
        columns["track"].append(track)
        columns["at"].append(at)
        columns["is_begin"].append(is_begin)
        columns["name"].append(name)
        columns["category"].append(category)
        columns["args_at"].append(args[0])
        columns["args_len"].append(args[1])

    def extend(
        self, track: I32, ts: I64, is_begin: U8, name: I32, category: I32, args_at: I64, args_len: I32, at: I64
    ) -> None:
        """Add many marks, in input order."""
        columns = self.columns
        columns["ts"].put(ts)
        columns["track"].put(track)
        columns["at"].put(at)
        columns["is_begin"].put(is_begin)
        columns["name"].put(name)
        columns["category"].put(category)
        columns["args_at"].put(args_at)
        columns["args_len"].put(args_len)

    def settle(self) -> None:
        """Finish adding: the columns can be read from here on."""
        columns = list(self.columns.values())
        arrays, self._mappings = finished(columns, in_file=any(column.is_spilled for column in columns))
        by_column = {name: values.data for name, values in zip(self.columns, arrays, strict=True)}
        self.track, self.ts, self.at = by_column["track"], by_column["ts"], by_column["at"]
        self.name, self.category, self._is_begin = by_column["name"], by_column["category"], by_column["is_begin"]
        self.args_at, self.args_len = by_column["args_at"], by_column["args_len"]

    def forget(self) -> None:
        """Drop the resident pages of columns in files."""
        for mapping in self._mappings:
            forget(mapping)

    def plain_pairs(self, begin: I64, end: I64) -> tuple[npt.NDArray[Any], ...]:
        """Return the columns of the slices of complete pairs."""
        ts = np.frombuffer(self.ts, np.int64)
        return (
            ts[begin],
            ts[end] - ts[begin],
            np.frombuffer(self.track, np.int32)[begin],
            np.frombuffer(self.name, np.int32)[begin],
            np.frombuffer(self.category, np.int32)[begin],
            np.frombuffer(self.args_at, np.int64)[begin],
            np.frombuffer(self.args_len, np.int32)[begin],
            np.frombuffer(self.at, np.int64)[begin],
        )

    def span(self) -> tuple[int, ...]:
        """Return the first and the last time (ns) of all marks, before `settle`; empty without marks."""
        times = self.columns["ts"].numbers() if len(self) else ()
        return (int(np.min(times)), int(np.max(times))) if len(times) else ()

    def pairs(self) -> Pairs:
        """Return all pairs, by track and in the order of ends; then the starts without an end, outermost first."""
        columns = np.frombuffer(self.track, np.int32), np.frombuffer(self._is_begin, np.uint8)
        names = np.frombuffer(self.name, np.int32)
        keys = np.frombuffer(self.at, np.int64), np.frombuffer(self.ts, np.int64), columns[0]
        order = stable_order(keys, self.forget).astype(np.int64)
        nesting = kernel.module("nesting")
        if nesting is None:
            begin, end = _pair(order, *columns, names)
        else:
            begin, end = np.empty((2, len(order)), np.int64)
            count = nesting.pair(order, *columns, names, 1 + int(np.max(names, initial=0)), _UNNAMED, begin, end)
            begin, end = begin[:count], end[:count]
        del order
        misnamed = np.zeros(len(begin), bool)
        for rows in chunks(len(begin)):
            own, other = names[begin[rows]], names[end[rows]]
            misnamed[rows] = (begin[rows] >= 0) & (end[rows] >= 0) & (other != _UNNAMED) & (other != own)
        self.forget()
        return Pairs(begin, end, misnamed)


def _pair(order: I64, track: I32, is_begin: npt.NDArray[np.uint8], name: I32) -> tuple[I64, I64]:
    """Pair each end with the innermost open start of its name, or else with the innermost one.

    Args:
        order: the rows of the other columns, by track and time.
        track, is_begin, name: the columns of the marks.

    Returns:
        The rows of the start and the end of each pair, see `Marks.pairs`; -1 where one is missing.
    """
    begins, ends, track_before = array("q"), array("q"), -1
    # The stack of open slices, outermost first: their rows (-1 for one that ended before those inside of it), their
    # names, and for each the position of the next outer one with the same name.
    opened, own_names, outer = array("q"), array("i"), array("q")
    innermost: dict[int, int] = {}
    for start in range(0, len(order), _CHUNK):
        rows = order[start : start + _CHUNK]
        columns = (rows, track[rows], is_begin[rows], name[rows])
        for row, on_track, begin, own in zip(*(column.tolist() for column in columns), strict=True):
            if on_track != track_before:
                _put_rest(opened, begins, ends)
                track_before, opened, own_names, outer, innermost = on_track, array("q"), array("i"), array("q"), {}
            if begin:
                outer.append(innermost.get(own, -1))
                innermost[own] = len(opened)
                opened.append(row)
                own_names.append(own)
                continue
            place = innermost.get(own, -1) if own != _UNNAMED else -1
            if place < 0:
                place = len(opened) - 1
            ends.append(row)
            if place < 0:
                begins.append(-1)
                continue
            begins.append(opened[place])
            innermost[own_names[place]] = outer[place]
            opened[place] = -1
            while opened and opened[-1] < 0:
                del opened[-1], own_names[-1], outer[-1]
    _put_rest(opened, begins, ends)
    return np.frombuffer(begins, np.int64), np.frombuffer(ends, np.int64)


def _put_rest(opened: array[int], begins: array[int], ends: array[int]) -> None:
    """Add the starts without an end."""
    rest = [row for row in opened if row >= 0]
    begins.extend(rest)
    ends.extend([-1] * len(rest))

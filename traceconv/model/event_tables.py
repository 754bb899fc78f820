"""The growing tables of an input, and the slices that are paired from separate starts and ends.

Files are not sorted by time in general, so pairing starts after the last event, and goes through each track by time, at
equal times by the number of the event or line. An end with a name closes the innermost open slice of that name and
leaves the others open: two slices that cross keep their durations, and are drawn on two lanes.
"""

from __future__ import annotations

import mmap
import sys
from array import array
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from traceconv import kernel
from traceconv.io.spill import Memory, forget
from traceconv.model.args import AnyArgs, Args, as_bytes, join_args
from traceconv.model.columns import I32, I64, Column, Strings, chunks, finished, stable_order
from traceconv.model.diagnostics import JOINED_ENDS, absent, repaired
from traceconv.model.drawable import possible_slice
from traceconv.model.numbers import LIMIT_NS
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import TABLES, TIMED, SliceId, column_types
from traceconv.model.track_table import Tracks

# -- starts and ends --------------------------------------------------------------------------------------------------

_UNNAMED = 0  # the interned string ""
#: At most this many marks are Python integers at a time.
_CHUNK = 1 << 13
_MARK_TYPES: dict[str, Any] = {
    "track": np.int32,
    "ts": np.int64,
    "is_begin": np.uint8,
    "name": np.int32,
    "category": np.int32,
    "args_at": np.int64,
    "args_len": np.int32,
    "at": np.int64,
}


class Marks:
    """The starts and ends of all tracks in input order, one row each.

    Until `settle`, `columns` grow; then the attributes can be read: the track, the time in ns, the number of the event
    or line, interned strings, and the position of the args in those of the trace.
    """

    track: memoryview
    ts: memoryview
    at: memoryview
    name: memoryview
    category: memoryview
    args_at: memoryview
    args_len: memoryview

    def __init__(self) -> None:
        self.columns = {name: Column(dtype) for name, dtype in _MARK_TYPES.items()}
        self._arrays: dict[str, npt.NDArray[Any]] = {}
        self._mappings: tuple[mmap.mmap, ...] = ()

    def __len__(self) -> int:
        return len(self.columns["ts"])

    def add(
        self, track: int, ts: int, is_begin: bool, name: int, category: int, args: tuple[int, int], at: int
    ) -> None:
        """Add a mark, in input order; `args` holds the position and length of its args. TypeError for a float `ts`."""
        self.columns["ts"].append(ts)
        self.columns["track"].append(track)
        self.columns["is_begin"].append(is_begin)
        self.columns["name"].append(name)
        self.columns["category"].append(category)
        self.columns["args_at"].append(args[0])
        self.columns["args_len"].append(args[1])
        self.columns["at"].append(at)

    def extend(self, *values: npt.NDArray[Any]) -> None:
        """Add many marks, in input order, given as values of all columns in their order."""
        for column, added in zip(self.columns.values(), values, strict=True):
            column.put(added)

    def settle(self) -> None:
        """Finish adding: the columns can be read from here on."""
        columns = list(self.columns.values())
        arrays, self._mappings = finished(columns, in_file=any(column.is_spilled for column in columns))
        self._arrays = dict(zip(self.columns, arrays, strict=True))
        for name, values in self._arrays.items():
            setattr(self, name, values.data)

    def forget(self) -> None:
        """Drop the resident pages of columns in files."""
        for mapping in self._mappings:
            forget(mapping)

    def plain_pairs(self, begin: I64, end: I64) -> tuple[npt.NDArray[Any], ...]:
        """Return the columns of the slices of complete pairs."""
        ts = self._arrays["ts"]
        others = ("track", "name", "category", "args_at", "args_len", "at")
        return ts[begin], ts[end] - ts[begin], *(self._arrays[name][begin] for name in others)

    def without_args(self, rows: I64) -> npt.NDArray[np.bool_]:
        """Return a mask of the rows that have no args."""
        return self._arrays["args_len"][rows] == 0  # type: ignore[no-any-return]

    def span(self) -> tuple[int, ...]:
        """Return the first and the last time (ns) of all marks, before `settle`; empty without marks."""
        times = self.columns["ts"].numbers() if len(self) else ()
        return (int(np.min(times)), int(np.max(times))) if len(times) else ()

    def pairs(self) -> tuple[I64, I64, npt.NDArray[np.bool_]]:
        """Return all pairs, by track and in the order of ends; then the starts without an end, outermost first."""
        order = stable_order([self._arrays[key] for key in ("at", "ts", "track")], self.forget).astype(np.int64)
        columns = [self._arrays[key] for key in ("track", "is_begin", "name")]
        names = columns[2]
        nesting = kernel.module("nesting")
        if nesting is None:
            begin, end = _pair(order, *columns)
        else:
            begin, end = np.empty((2, len(order)), np.int64)
            count = nesting.pair(order, *columns, 1 + int(np.max(names, initial=0)), _UNNAMED, begin, end)
            begin, end = begin[:count], end[:count]
        del order
        misnamed = np.zeros(len(begin), bool)
        for rows in chunks(len(begin)):
            begun, ended = names[begin[rows]], names[end[rows]]
            misnamed[rows] = (begin[rows] >= 0) & (end[rows] >= 0) & (ended != _UNNAMED) & (ended != begun)
        self.forget()
        return begin, end, misnamed


def _pair(order: I64, track: I32, is_begin: npt.NDArray[np.uint8], name: I32) -> tuple[I64, I64]:
    """Pair each end with the innermost open start of its name, or else with the innermost one; see `Marks.pairs`.

    The rows of `order` are those of the other columns, by track and time. This is the specification of the kernel.
    """
    begins, ends, track_before = array("q"), array("q"), -1
    # The stack of open slices, outermost first: their rows (-1 for one that ended before those inside of it), their
    # names, and for each the position of the next outer one with the same name.
    opened, own_names, outer = array("q"), array("i"), array("q")
    innermost: dict[int, int] = {}
    for start in range(0, len(order), _CHUNK):
        rows = order[start : start + _CHUNK]
        columns = (rows, track[rows], is_begin[rows], name[rows])
        for row, on_track, begin, called in zip(*(column.tolist() for column in columns), strict=True):
            if on_track != track_before:
                _put_rest(opened, begins, ends)
                track_before, opened, own_names, outer, innermost = on_track, array("q"), array("i"), array("q"), {}
            if begin:
                outer.append(innermost.get(called, -1))
                innermost[called] = len(opened)
                opened.append(row)
                own_names.append(called)
                continue
            place = innermost.get(called, -1) if called != _UNNAMED else -1
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


# -- tables -----------------------------------------------------------------------------------------------------------

_PART_BYTES = 4 << 20
#: The place and length of empty args.
_NO_ARGS = 0, 0
#: Single args are compared with this many recent ones, if they have at most this many bytes, to be kept once.
_MOST_RECENT, _LONGEST_RECENT = 1 << 14, 1 << 10
#: Fewer rows are never spilled: there may be thousands of small inputs, and each file counts as an open one.
_WORTH_A_FILE = 1 << 12
#: The approximate bytes of a track, and of a row that an importer keeps.
_TRACK_BYTES, _WAITING_BYTES = 300, 48
#: The rows between two checks of the memory.
_ROWS_BETWEEN_LOOKS = 1 << 14


def _any_size(count: int) -> None:
    """Allow args of any size: they are of no file."""


class Enough(Exception):
    """Raised when an importer has read as many rows as `Tables.stop_at` asked for."""


class Tables:
    """The rows of one input, spilled to temporary files when memory is short. OutputError: they cannot be written.

    Attributes:
        columns: the columns by table and name.
        marks: the starts and ends that are not paired yet.
        kept_columns: columns of equal length that the importer itself keeps; they are spilled as those of the tables.
        slice_count: the number of slices so far, and the id of the next one.
        first_paired: from this number on, slices were paired from starts and ends.
        string: a function that interns a string and returns its index.
        allow_args: a function that raises InputError if args of so many bytes are too many.
    """

    def __init__(self, memory: Memory) -> None:
        self.columns = {
            table: {name: Column(dtype) for name, dtype in column_types(cls).items()} for table, cls in TABLES.items()
        }
        # What these tables have besides a duration or a level, in order.
        self._shared = {
            table: [column for name, column in self.columns[table].items() if name not in ("dur", "level")]
            for table in ("slices", "instants", "logs")
        }
        self.tracks = Tracks()
        self.marks = Marks()
        self.slice_count = self._rows = 0
        self.first_paired = sys.maxsize
        self._waiting = 0  # rows that the importer itself keeps
        self.kept_columns: Sequence[Column] = ()
        self._strings = Strings([""])
        self.string = self._strings.number
        self.numbers = self._strings.numbers
        self._args = bytearray()  # of events that came one at a time, since the last part
        self._memory = memory
        self._args_parts = memory.parts()
        self._args_before = 0  # bytes in the parts
        self.allow_args: Callable[[int], None] = _any_size
        self._recent_args: dict[bytes, tuple[int, int]] = {}
        self._look_at = _ROWS_BETWEEN_LOOKS  # rows
        self._most_rows = 0

    def strings(self) -> Sequence[str]:
        """Return at least the strings interned so far, by index."""
        return self._strings.for_reading()

    def put(self, table: str, ts: int, track: int, name: int, category: int, args: tuple[int, int], at: int) -> None:
        """Add an instant, a slice without its duration, or a log entry without its level.

        Of a log entry, `name` is the text and `category` the source; `args` holds the position and length of the args.
        """
        to_ts, to_track, to_name, to_category, to_args_at, to_args_len, to_origin = self._shared[table]
        to_ts.append(ts)
        to_track.append(track)
        to_name.append(name)
        to_category.append(category)
        to_args_at.append(args[0])
        to_args_len.append(args[1])
        to_origin.append(at)
        self.added(1)

    def put_slice(
        self, ts: int, dur: int, track: int, name: int, category: int, args: tuple[int, int], at: int
    ) -> SliceId:
        """Add a slice."""
        self.columns["slices"]["dur"].append(dur)
        self.put("slices", ts, track, name, category, args, at)
        self.slice_count += 1
        return SliceId(self.slice_count - 1)

    def put_log(self, ts: int, track: int, level: int, text: int, source: int, args: tuple[int, int], at: int) -> None:
        """Add a log entry; `args` is as in `put`."""
        self.columns["logs"]["level"].append(level)
        self.put("logs", ts, track, text, source, args, at)

    def stop_at(self, rows: int) -> None:
        """Make the tables raise `Enough` when they have this many rows; once, so that they can be finished."""
        self._look_at = self._most_rows = rows

    def added(self, rows: int) -> None:
        """Count added rows, and spill columns if memory is short."""
        self._rows += rows
        if self._rows >= self._look_at:
            self._look_at = self._rows + _ROWS_BETWEEN_LOOKS
            if self._most_rows:
                self._most_rows = 0  # what is left is finished
                raise Enough
            self._tell_size()
            self._spill_columns_if_short()

    def kept_rows(self, count: int) -> None:
        """Note that the columns of the importer have `count` rows, and spill columns if memory is short."""
        if count % _ROWS_BETWEEN_LOOKS == 0:
            self._tell_size()
            self._spill_columns_if_short()

    def _rows_in_columns(self) -> int:
        return self._rows + max(map(len, self.kept_columns), default=0)

    def _tell_size(self) -> None:
        """Report the size of the columns to `Memory`."""
        columns = sum(column.nbytes for column in self._growing())
        texts = self._strings.nbytes + _TRACK_BYTES * len(self.tracks)
        self._args_parts.rows = self._rows_in_columns() + self._waiting
        self._args_parts.row_bytes = columns + texts + _WAITING_BYTES * self._waiting

    def _spill_columns_if_short(self) -> None:
        if self._exceeds_memory():
            for column in self._growing():
                column.spill()

    def keep_args(self, args: AnyArgs) -> tuple[int, int]:
        """Keep the args of one or several events; return their position and length.

        Args equal to recent ones are kept once: programs repeat few different operations.
        """
        if not args:
            return _NO_ARGS
        args = as_bytes(args)
        place = self._recent_args.get(args)
        if place is None:
            if len(self._args) > _PART_BYTES:
                self.args_part(b"")
            place = self._args_before + len(self._args), len(args)
            self._args += args
            if len(args) <= _LONGEST_RECENT:
                if len(self._recent_args) >= _MOST_RECENT:
                    self._recent_args.clear()
                self._recent_args[args] = place
        return place

    def args_part(self, part: bytes | bytearray, waiting: int = 0) -> int:
        """Keep the args of many events, one behind the other, without a copy; return the position of the first byte.

        The importer itself holds `waiting` rows. InputError: the args are far more than the input.
        """
        self.allow_args(self._args_before + len(self._args) + len(part))
        self._waiting = waiting
        self._tell_size()
        for added in (self._args, part):
            self._args_parts.append(added)
            self._args_before += len(added)
        self._args = bytearray()
        self._spill_columns_if_short()
        return self._args_before - len(part)

    def kept_args(self, in_file: bool = False) -> Args:
        """Return all args so far; others may be added later. With `in_file`, move them to a file first."""
        self.args_part(b"")
        if in_file:
            self._args_parts.spill()
        return Args(self._args_parts.so_far())

    def extend(self, table: str, *values: npt.NDArray[Any]) -> None:
        """Append rows, given as values of all columns in their order."""
        for column, added in zip(self.columns[table].values(), values, strict=True):
            column.put(added)
        self.slice_count += len(values[-1]) if table == "slices" else 0
        self.added(len(values[-1]))

    def drop(self, table: str, rows: npt.NDArray[np.intp]) -> None:
        """Remove rows of a table."""
        columns = list(self.columns[table].values())
        kept = np.ones(len(columns[0]), bool)
        kept[rows] = False
        for column in columns:
            numbers = column.numbers()
            column.replace([numbers[part][kept[part]] for part in chunks(len(numbers))])
        self.slice_count -= len(rows) if table == "slices" else 0
        self._rows -= len(rows)

    def renumber_slices(self, numbers: I64) -> None:
        """Give the ends of flows the new numbers of their slices; remove flows with an end whose number is -1."""
        ends = [self.columns["flows"][name] for name in ("from_slice", "to_slice")]
        for end in ends:
            old = end.numbers()
            end.replace([numbers[old[part]] for part in chunks(len(old))])
        gone = np.flatnonzero(np.any([end.numbers() < 0 for end in ends], axis=0))
        if len(gone):
            self.drop("flows", gone)
        self.first_paired = int(np.count_nonzero(numbers[: self.first_paired] >= 0))

    def slice_columns(self, *names: str) -> list[npt.NDArray[Any]]:
        """Return columns of the slices so far, to be read only, and without a copy, until a slice is added."""
        return [self.columns["slices"][name].numbers() for name in names]

    def _exceeds_memory(self) -> bool:
        """Return whether the columns have to be spilled."""
        return self._rows_in_columns() >= _WORTH_A_FILE and self._memory.is_short_for_columns()

    def _growing(self) -> list[Column]:
        return [*self._all_columns(), *self.marks.columns.values(), *self.kept_columns]

    def _all_columns(self) -> list[Column]:
        return [column for columns in self.columns.values() for column in columns.values()]

    def first_ts(self) -> int:
        """Return the first time so far, ns; 0 without events."""
        earliest = [int(np.min(table["ts"].numbers())) for table in self._timed_tables()]
        return min([*earliest, *self.marks.span()], default=0)

    def last_ts(self) -> int:
        """Return the last time so far, ns; 0 without events."""
        slices = self.columns["slices"]
        latest = [int(np.max(table["ts"].numbers())) for table in self._timed_tables()]
        if len(slices["ts"]):
            ts, dur = slices["ts"].numbers(), slices["dur"].numbers()
            latest += [int(np.max(ts[rows] + np.maximum(dur[rows], 0))) for rows in chunks(len(ts))]
        return max([*latest, *self.marks.span()], default=0)

    def _timed_tables(self) -> list[dict[str, Column]]:
        tables = [self.columns[table] for table in TIMED]
        return [table for table in tables if len(table["ts"])]

    def take_marks(self) -> Marks:
        """Remove and return the starts and ends so far."""
        marks, self.marks = self.marks, Marks()
        self.first_paired = min(self.first_paired, self.slice_count)
        self._rows -= len(marks)
        self._look_at = self._rows + _ROWS_BETWEEN_LOOKS
        marks.settle()
        return marks

    def take_args(self) -> Args:
        """Remove and return all args."""
        self.args_part(b"")
        return Args(self._args_parts.take())

    def take_columns(self) -> tuple[dict[str, Any], tuple[mmap.mmap, ...]]:
        """Remove and return the finished tables, and the mappings of the files that their columns are in."""
        columns = self._all_columns()
        in_file = self._exceeds_memory() or any(column.is_spilled for column in columns)
        arrays, mappings = finished(columns, in_file=in_file)
        each = iter(arrays)
        tables = {name: cls(**{column: next(each) for column in self.columns[name]}) for name, cls in TABLES.items()}
        self.columns, self._shared = {}, {}
        return tables, mappings


# -- pairing ----------------------------------------------------------------------------------------------------------

_MANY = 64  # from this many slices on, columns are cheaper than single calls
_PAIRS_AT_A_TIME = 1 << 13

UNBEGUN_END = absent(
    "slice.end_without_begin",
    "an end has no start on its track: the recording started inside the slice, so its start is not known",
)
UNENDED = absent(
    "slice.begin_without_end",
    "a start has no end: the slice was closed at the last instant of the trace and is marked `unfinished`",
)
MISNAMED_END = repaired(
    "slice.end_name_differs",
    "an end names no open slice of its track: it was taken as the end of the innermost one",
)


class PairedSlices:
    """Pairs the starts and ends of a builder, and adds the slices to it."""

    def __init__(self, tables: Tables, info: SourceInfo) -> None:
        self._tables, self._info = tables, info
        self._close_at = tables.last_ts()
        first, last = tables.marks.span()
        self._is_short = last - first <= LIMIT_NS
        self._marks, self._kept, self._texts = tables.take_marks(), tables.kept_args(), tables.strings()

    def add(self) -> None:
        """Add all slices."""
        marks = self._marks
        begin, end, misnamed = marks.pairs()
        # Complete pairs are added together.
        is_plain = np.zeros(len(begin), bool)
        if self._is_short:
            for rows in chunks(len(begin)):
                is_pair = (begin[rows] >= 0) & (end[rows] >= 0) & ~misnamed[rows]
                is_plain[rows] = is_pair & marks.without_args(end[rows])
        done = 0
        for odd in np.flatnonzero(~is_plain).tolist():
            self._whole(begin[done:odd], end[done:odd])
            self._odd(int(begin[odd]), int(end[odd]), bool(misnamed[odd]))
            done = odd + 1
        self._whole(begin[done:], end[done:])

    def _odd(self, begin: int, end: int, misnamed: bool) -> None:
        marks, texts = self._marks, self._texts
        if begin < 0:
            name = texts[marks.name[end]]
            self._info.skip(UNBEGUN_END, marks.at[end], repr(name) if name else "")
            return
        name = texts[marks.name[begin]]
        if end < 0:
            self._info.problem(UNENDED, marks.at[begin], repr(name))
            self._slice(begin, self._close_at, b'{"unfinished":true}')
            return
        if misnamed:
            self._info.problem(MISNAMED_END, marks.at[end], f"{texts[marks.name[end]]!r} ends {name!r}")
        more_args = self._kept.get(marks.args_at[end], marks.args_len[end])
        self._slice(begin, marks.ts[end], more_args)
        self._info.balance.merged[JOINED_ENDS] += 1

    def _whole(self, begins: I64, ends: I64) -> None:
        """Add the slices of complete pairs, as columns if there are many."""
        marks = self._marks
        if len(begins) < _MANY:
            for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
                self._slice(begin, marks.ts[end], b"")
        else:
            for at in range(0, len(begins), _PAIRS_AT_A_TIME):
                columns = marks.plain_pairs(begins[at : at + _PAIRS_AT_A_TIME], ends[at : at + _PAIRS_AT_A_TIME])
                self._tables.extend("slices", *columns)
                marks.forget()
            self._info.balance.written += len(begins)
        if len(begins):
            self._info.balance.merged[JOINED_ENDS] += len(begins)

    def _slice(self, begin: int, end_ts: int, more_args: bytes) -> None:
        """Add the slice of a start, with its args, which the trace holds already, and those of its end."""
        marks, tables = self._marks, self._tables
        ts, dur, at = marks.ts[begin], end_ts - marks.ts[begin], marks.at[begin]
        place = marks.args_at[begin], marks.args_len[begin]
        if more_args or dur > LIMIT_NS:
            ts, dur, args = possible_slice(self._info, ts, dur, join_args(self._kept.get(*place), more_args), at)
            place = tables.keep_args(args)
        self._info.balance.written += 1
        tables.put_slice(ts, dur, marks.track[begin], marks.name[begin], marks.category[begin], place, at)

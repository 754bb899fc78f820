"""The growing tables of a trace: their columns, and the strings and args that these refer to."""

from __future__ import annotations

import mmap
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from traceconv.io.spill import Memory
from traceconv.model.arg_bytes import Args
from traceconv.model.args import AnyArgs, as_bytes
from traceconv.model.columns import Column, finished
from traceconv.model.ordering import chunks
from traceconv.model.pairing import Marks
from traceconv.model.strings import Strings
from traceconv.model.trace import I64, TABLES, TIMED, Instants, Logs, SliceId, column_types
from traceconv.model.tracks import Tracks

_PART_BYTES = 4 << 20
#: The place and length of empty args.
_NO_ARGS = 0, 0
#: Single args are compared with this many recent ones, if they have at most this many bytes, to be kept once.
_MOST_RECENT, _LONGEST_RECENT = 1 << 14, 1 << 10
#: Fewer rows are never spilled: there may be thousands of small inputs, and each file counts as an open one.
_WORTH_A_FILE = 1 << 12
#: The approximate bytes of a track, and of a row that an importer keeps.
_TRACK_BYTES, _WAITING_BYTES = 450, 48
#: The rows between two checks of the memory.
_ROWS_BETWEEN_LOOKS = 1 << 14


def _any_size(count: int) -> None:
    """Allow args of any size: they are of no file."""


class Enough(Exception):
    """Raised when an importer has read as many rows as `Tables.stop_at` asked for."""


class Tables:
    """The rows of one input, spilled to temporary files when memory is short.

    Attributes:
        columns: the columns by table and name.
        tracks: the tracks declared so far.
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
        names = column_types(Instants)
        self._named = {table: [self.columns[table][name] for name in names] for table in ("slices", "instants")}
        self._logs = [self.columns["logs"][name] for name in column_types(Logs)]
        self.tracks = Tracks()
        self.marks = Marks()
        self.slice_count = self._rows = 0
        self.first_paired = sys.maxsize
        self._waiting = 0  # rows that the importer itself keeps
        self.kept_columns: Sequence[Column] = ()
        self._strings = Strings([""])
        self.string = self._strings.number
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
        """Add an instant, or a slice without its duration; `args` holds the position and length of its args."""
        to_ts, to_track, to_name, to_category, to_args_at, to_args_len, to_origin = self._named[table]
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
        to_ts, to_track, to_level, to_text, to_source, to_args_at, to_args_len, to_origin = self._logs
        to_ts.append(ts)
        to_track.append(track)
        to_level.append(level)
        to_text.append(text)
        to_source.append(source)
        to_args_at.append(args[0])
        to_args_len.append(args[1])
        to_origin.append(at)
        self.added(1)

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
        """Keep the args of many events without a copy; return the position of the first byte.

        Args:
            part: JSON objects, one behind the other.
            waiting: how many rows the importer itself holds, for the memory budget.

        Raises:
            OutputError: memory is short, and the temporary file cannot be written.
            InputError: the args are far more than the input.
        """
        self.allow_args(self._args_before + len(self._args) + len(part))
        self._waiting = waiting
        self._tell_size()
        for one in (self._args, part):
            self._args_parts.append(one)
            self._args_before += len(one)
        self._args = bytearray()
        self._spill_columns_if_short()
        return self._args_before - len(part)

    def kept_args(self, in_file: bool = False) -> Args:
        """Return all args so far; others may be added later.

        Args:
            in_file: whether to move all to a file, and to add others to it, as where memory is short.
        """
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
        """Return columns of the slices so far, without a copy, to be read only.

        No slice may be added while the result is in use.

        Raises:
            OutputError: the columns are in a temporary file that cannot be written.
        """
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
            latest += [int(np.max(ts[rows] + dur[rows])) for rows in chunks(len(ts))]
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
        self.columns, self._named = {}, {}
        return tables, mappings

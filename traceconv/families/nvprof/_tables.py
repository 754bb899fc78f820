"""Row access to a database of nvprof: columns by name, times checked, damage and losses counted.

nvprof creates every table up front, and each release adds some tables and columns. So a table or column may be absent
in an older file; an absent column reads as NULL. Nothing is taken from what a type is declared to be: SQLite stores any
value in any column, so what is no number where numbers are wanted reads as NULL, too, and is counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from traceconv.errors import InputError
from traceconv.io.sqlite import Kind, as_text, quoted, typed
from traceconv.io.sqlite_columns import Block
from traceconv.model.builder import Builder
from traceconv.model.diagnostics import absent, lost
from traceconv.model.times import LIMIT_NS

if TYPE_CHECKING:
    from traceconv.io.sqlite import Database

NO_TIME = lost(
    "nvprof.no_time",
    "a row has no usable start or end (both 0: the device buffer was too small to collect them): left out",
)
NO_END = absent(
    "nvprof.no_end",
    "a row ends at 0 although it has a start (still running when the recording stopped): drawn with length 0",
)
DAMAGED = lost(
    "nvprof.damaged_table",
    "the database is damaged inside this table (cut, or still being written): the rows before the damage were read",
)
NO_STRING = absent("nvprof.no_string", "a row names a string that StringTable does not hold: shown by its number")

ODD_VALUE = lost(
    "nvprof.odd_value",
    "a column of numbers or bytes holds something else in a row: taken for none, the rest of the row was read",
)

PREFIX = "CUPTI_ACTIVITY_KIND_"
#: Columns of kernels that are shown only, as far as they hold anything, by their names in the args.
SHAPE = {
    "registersPerThread": "registers_per_thread",
    "staticSharedMemory": "static_shared_memory_bytes",
    "dynamicSharedMemory": "dynamic_shared_memory_bytes",
    "localMemoryPerThread": "local_memory_per_thread_bytes",
    "localMemoryTotal": "local_memory_total_bytes",
    "sharedMemoryExecuted": "shared_memory_executed_bytes",
}
GRID = ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ")
#: All other columns are numbers. Times are looked at by `_timed` and its like, values by those who show them.
_KINDS = {
    **dict.fromkeys(("start", "end", "timestamp", "value", "payload", "uuid", "data", *SHAPE, *GRID), Kind.ANY),
    "objectId": Kind.BYTES,
}
_BATCH = 1 << 13
Row = tuple[Any, ...]


class Spans(NamedTuple):
    """Some rows with times that can be drawn: (id, start, end, ...) each, and their starts and lengths in ns."""

    rows: Sequence[Row]
    ts: Sequence[int]
    dur: Sequence[int]


def spans_of(piece: Block | Spans) -> Spans:
    """The same rows one by one."""
    if isinstance(piece, Spans):
        return piece
    starts, ends = piece.columns[1:3, : piece.length]
    return Spans(piece.rows(), starts.tolist(), (ends - starts).tolist())


class Activities:
    """The activity tables of one database.

    Attributes:
        columns: the columns of each table, by the name of the table without PREFIX.
        version: what the table Version says, None if it says nothing that is a number or a text.
        found: whether any row could be read.
        error: the first damage, None if there is none.
    """

    def __init__(self, database: Database, out: Builder) -> None:
        self._database = database
        self._out = out
        self.found = False
        self.error: InputError | None = None
        self.columns = {
            name.removeprefix(PREFIX): columns for name, columns in database.tables.items() if name.startswith(PREFIX)
        }
        strings = self._all("StringTable", ("_id_", "value"))
        self._strings: dict[Any, str] = {number: as_text(text) for number, text in strings if text is not None}
        versions = (row[0] for row in self._all("Version", ("version",)))
        self.version = next((version for version in versions if isinstance(version, int | str)), None)
        self._is_read: set[str] = set()

    def text(self, number: Any, at: str) -> str:
        """The string of that number, "" for none; a number without a string stays visible."""
        if not number:
            return ""
        found = self._strings.get(number)
        if found is None:
            self._out.problem(NO_STRING, at, f"string {number!s:.20}")
            return f"string {number!s:.20}"
        return found

    def unread(self) -> dict[str, int]:
        """The number of rows of each table that nobody asked for."""
        counts = {name: self._count(name) for name in self.columns if name not in self._is_read}
        return {name: count for name, count in counts.items() if count}

    def count(self, *tables: str) -> int:
        """How many rows the tables have together."""
        return sum(self._count(table) for table in tables if table in self.columns)

    def _count(self, table: str) -> int:
        counted = self._database.rows(f"SELECT count(*) FROM {quoted(PREFIX + table)}")
        return sum(row[0] for row in self._guarded(table, counted))

    def rows(self, table: str, columns: Iterable[str], order: str = "") -> Iterator[Row]:
        """All rows of a table: its row id, then the columns asked for; each is counted as read."""
        for batch in self._batches(table, columns, order):
            yield from batch

    def spans(self, table: str, columns: Iterable[str]) -> Iterator[Spans]:
        """The rows that have a start and an end: row id, start, end, then the columns asked for."""
        for rows in self._batches(table, ("start", "end", *columns)):
            spans = self._timed(table, rows)
            if spans.rows:
                yield spans

    def pieces(self, table: str, columns: Iterable[str]) -> Iterator[Block | Spans]:
        """The same rows: as columns, which begin with those of `spans`, where they are nothing but integers and NULL,
        and have times that can be drawn."""
        wanted = ("start", "end", *columns)
        taken = 0
        for block in self._database.blocks(PREFIX + table, wanted) if table in self.columns else ():
            taken += block.length
            self._out.balance.read += block.length
            self.found = True
            starts, ends = block.columns[1:3, : block.length]
            if np.min(starts) > 0 and np.max(ends) < LIMIT_NS and np.all(starts <= ends):
                yield block
            else:
                spans = self._timed(table, block.rows())
                if spans.rows:
                    yield spans
        for rows in self._batches(table, wanted, skip=taken):
            spans = self._timed(table, rows)
            if spans.rows:
                yield spans

    def place(self, table: str, row: Any) -> str:
        """Where a row is, for messages."""
        return f"{self._out.info.name}:{table} row {row}"

    # -- reading ------------------------------------------------------------------------------------------------

    def _batches(self, table: str, columns: Iterable[str], order: str = "", skip: int = 0) -> Iterator[Sequence[Row]]:
        self._is_read.add(table)
        known = self.columns.get(table)
        if known is None:
            return
        columns = tuple(columns)
        key = self._database.row_id(PREFIX + table)
        wanted = [key, *(quoted(name) if name in known else "NULL" for name in columns)]
        sorted_by = [quoted(order), key] if order in known else []
        found = self._database.batches(PREFIX + table, wanted, _BATCH, order=sorted_by, skip=skip)
        for rows in self._guarded(table, found):
            self._out.balance.read += len(rows)
            self.found = True
            yield self._typed(table, columns, rows)

    def _guarded(self, table: str, found: Iterator[Any]) -> Iterator[Any]:
        """What is there up to where the database is damaged."""
        try:
            yield from found
        except InputError as error:
            self.error = self.error or error
            self._out.problem(DAMAGED, f"{self._out.info.name}:{table}", str(error).rpartition(": ")[2])

    def _typed(self, table: str, columns: Sequence[str], rows: list[Row]) -> Sequence[Row]:
        """The rows, the numbers of rows first, with nothing in them but what the columns are to hold."""
        kinds = [Kind.ANY, *(_KINDS.get(name, Kind.WHOLE) for name in columns)]

        def report(row: int, column: int, value: object) -> None:
            place = f"{self.place(table, rows[row][0])} {columns[column - 1]}"
            self._out.problem(ODD_VALUE, place, f"{value!r:.40}")

        checked = typed(rows, kinds, report)
        return [(0, *row[1:]) for row in checked] if checked[0][0] is None else checked

    def _all(self, table: str, columns: Sequence[str]) -> Iterator[Row]:
        """The rows of one of the tables that hold no activities."""
        known = self._database.tables.get(table, ())
        if all(column in known for column in columns):
            for rows in self._guarded(table, self._database.batches(table, [quoted(one) for one in columns], _BATCH)):
                yield from rows

    # -- times --------------------------------------------------------------------------------------------------

    def _timed(self, table: str, rows: Sequence[Row]) -> Spans:
        times = [row[1] for row in rows], [row[2] for row in rows]
        if all(set(map(type, column)) == {int} for column in times):
            starts, ends = np.array(times, np.int64)
            usable = (starts > 0) & (ends > 0) & (starts < LIMIT_NS) & (ends < LIMIT_NS)
            if usable.all():
                return Spans(rows, starts.tolist(), (ends - starts).tolist())
        rows = [row for row in rows if self._has_time(table, row)]
        lengths = [self._length(table, row) for row in rows]
        return Spans(rows, [row[1] for row in rows], lengths)

    def _has_time(self, table: str, row: Row) -> bool:
        usable = type(row[1]) is int and type(row[2]) is int and (row[1], row[2]) != (0, 0)
        if not usable:
            self._out.skip(NO_TIME, self.place(table, row[0]))
        return usable

    def _length(self, table: str, row: Row) -> int:
        if row[2] == 0:
            self._out.problem(NO_END, self.place(table, row[0]))
            return 0
        return int(row[2] - row[1])

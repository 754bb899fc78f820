"""Row access to a database of nvprof: columns by name, times checked, damage and losses counted.

nvprof creates every table up front, and each release adds some tables and columns. So a table or column may be absent
in an older file; an absent column reads as NULL. Nothing is taken from what a type is declared to be: SQLite stores any
value in any column.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from traceconv.diagnostics import ProblemKind, declare
from traceconv.errors import InputError
from traceconv.ir.builder import Builder
from traceconv.sqlite import quoted
from traceconv.sqlite_columns import Block
from traceconv.times import LIMIT_NS

if TYPE_CHECKING:
    from traceconv.sqlite import Database

NO_TIME = declare(
    "nvprof.no_time",
    ProblemKind.LOST,
    "a row has no usable start or end (both 0: the device buffer was too small to collect them): left out",
)
NO_END = declare(
    "nvprof.no_end",
    ProblemKind.ABSENT,
    "a row ends at 0 although it has a start (still running when the recording stopped): drawn with length 0",
)
DAMAGED = declare(
    "nvprof.damaged_table",
    ProblemKind.LOST,
    "the database is damaged inside this table (cut, or still being written): the rows before the damage were read",
)
NO_STRING = declare(
    "nvprof.no_string",
    ProblemKind.ABSENT,
    "a row names a string that StringTable does not hold: shown by its number",
)

PREFIX = "CUPTI_ACTIVITY_KIND_"
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
        version: what the table Version says, None if it says nothing.
        found: whether any row could be read.
        error: the first damage, None if there is none.
    """

    def __init__(self, database: Database, out: Builder) -> None:
        self._database = database
        self._out = out
        self.found = False
        self.error: InputError | None = None
        self._damaged = 0
        self.columns = {
            name.removeprefix(PREFIX): columns for name, columns in database.tables.items() if name.startswith(PREFIX)
        }
        self._strings: dict[Any, Any] = dict(self._all("StringTable", ("_id_", "value")))
        self.version = next((row[0] for row in self._all("Version", ("version",))), None)
        self._is_read: set[str] = set()

    def text(self, number: Any, at: str) -> str:
        """The string of that number, "" for none; a number without a string stays visible."""
        if not number:
            return ""
        found = self._strings.get(number)
        if found is None:
            self._out.problem(NO_STRING, at, f"string {number!s:.20}")
            return f"string {number!s:.20}"
        return str(found)

    def unread(self) -> dict[str, int]:
        """The number of rows of each table that nobody asked for."""
        counts = {name: self._count(name) for name in self.columns if name not in self._is_read}
        return {name: count for name, count in counts.items() if count}

    def count(self, *tables: str) -> int:
        """How many rows the tables have together."""
        return sum(self._count(table) for table in tables if table in self.columns)

    def _count(self, table: str) -> int:
        return sum(row[0] for row in self._guarded(table, f"SELECT count(*) FROM {quoted(PREFIX + table)}"))

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
        last = None
        for block in self._blocks(table, wanted):
            last = int(block.columns[0, block.length - 1])
            self._out.balance.read += block.length
            self.found = True
            starts, ends = block.columns[1:3, : block.length]
            if np.min(starts) > 0 and np.max(ends) < LIMIT_NS and np.all(starts <= ends):
                yield block
            else:
                spans = self._timed(table, block.rows())
                if spans.rows:
                    yield spans
        for rows in self._batches(table, wanted, after=last):
            spans = self._timed(table, rows)
            if spans.rows:
                yield spans

    def place(self, table: str, row: Any) -> str:
        """Where a row is, for messages."""
        return f"{self._out.info.name}:{table} row {row}"

    # -- reading ------------------------------------------------------------------------------------------------

    def _blocks(self, table: str, columns: Sequence[str]) -> Iterator[Block]:
        known = self.columns.get(table)
        return iter(()) if known is None else self._database.blocks(PREFIX + table, columns, _key(known))

    def _batches(
        self, table: str, columns: Iterable[str], order: str = "", after: int | None = None
    ) -> Iterator[list[Row]]:
        self._is_read.add(table)
        known = self.columns.get(table)
        if known is None:
            return
        key = _key(known)
        wanted = ", ".join([key, *(quoted(name) if name in known else "NULL" for name in columns)])
        ordered = f" ORDER BY {quoted(order)}, {key}" if order in known else ""
        query = f"SELECT {wanted} FROM {quoted(PREFIX + table)}"
        rest = f" WHERE {key} > {after}" if after is not None else ""
        damaged = self._damaged
        found = self._guarded(table, f"{query}{rest}{ordered}")
        while rows := list(islice(found, _BATCH)):
            after = rows[-1][0]
            yield self._counted(rows)
        if self._damaged > damaged and not ordered and isinstance(after, int | None):
            yield from self._before_damage(query, key, after)

    def _counted(self, rows: list[Row]) -> list[Row]:
        self._out.balance.read += len(rows)
        self.found = True
        return rows

    def _before_damage(self, query: str, key: str, after: int | None) -> Iterator[list[Row]]:
        """The last row before the damage: Python has asked for the one behind it already, and dropped it then."""
        rest = f" WHERE {key} > {after}" if after is not None else ""
        with suppress(InputError):
            rows = list(self._database.rows(f"{query}{rest} LIMIT 1"))
            if rows:
                yield self._counted(rows)

    def _guarded(self, table: str, sql: str) -> Iterator[Row]:
        """The rows up to where the database is damaged."""
        try:
            yield from self._database.rows(sql)
        except InputError as error:
            self.error = self.error or error
            self._damaged += 1
            self._out.problem(DAMAGED, f"{self._out.info.name}:{table}", str(error).rpartition(": ")[2])

    def _all(self, table: str, columns: Sequence[str]) -> Iterator[Row]:
        """The rows of one of the tables that hold no activities."""
        known = self._database.tables.get(table, ())
        if all(column in known for column in columns):
            yield from self._guarded(table, f"SELECT {', '.join(columns)} FROM {quoted(table)}")

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


def _key(columns: Sequence[str]) -> str:
    """The column that numbers the rows."""
    return "_id_" if "_id_" in columns else "rowid"

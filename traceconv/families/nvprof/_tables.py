"""Row access to a database of nvprof: columns by name, times checked, damage and losses counted.

nvprof creates every table up front, and each release adds some tables and columns. So a table or column may be absent
in an older file; an absent column reads as NULL. Nothing is taken from what a type is declared to be: SQLite stores any
value in any column, so what is not a number where numbers are wanted reads as NULL, too, and is counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from traceconv.errors import InputError
from traceconv.families.common.sqlite_tables import PORTION, Row, Spans, Tables, whole
from traceconv.io.sqlite import Database, Kind, as_text, quoted
from traceconv.model.builder import Builder
from traceconv.model.diagnostics import Code, absent, lost
from traceconv.model.never_set import NEVER_SET
from traceconv.model.times import LIMIT_NS
from traceconv.model.trace import I64

NO_TIME = lost("nvprof.no_time", "a row has no start or end that is a whole number: left out")
DAMAGED = lost(
    "nvprof.damaged_table",
    "the database is damaged inside this table (cut, or still being written): the rows before the damage were read",
)
NO_STRING = absent(
    "nvprof.no_string", "a row refers to a string that StringTable does not hold: its number is shown instead"
)

ODD_VALUE = lost(
    "nvprof.odd_value",
    "a column of numbers or bytes holds another value: it was left out, the rest of the row was read",
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
#: All other columns are numbers. `_timed` checks times; values are checked where they are shown.
_KINDS = {
    **dict.fromkeys(("start", "end", "timestamp", "value", "payload", "uuid", "data", *SHAPE, *GRID), Kind.ANY),
    "objectId": Kind.BYTES,
}


class Activities(Tables):
    """The activity tables of one database.

    Attributes:
        version: what the table Version says, None if it says nothing that is a number or a text.
        has_rows: whether any row could be read.
    """

    prefix: ClassVar[str] = PREFIX
    damaged: ClassVar[Code] = DAMAGED
    odd_value: ClassVar[Code] = ODD_VALUE
    kinds: ClassVar[dict[str, Kind]] = _KINDS
    other_kind: ClassVar[Kind] = Kind.WHOLE

    def __init__(self, database: Database, out: Builder) -> None:
        super().__init__(database, out)
        self.has_rows = False
        strings = self._all("StringTable", ("_id_", "value"))
        self._strings: dict[Any, str] = {number: as_text(text) for number, text in strings if text is not None}
        versions = (row[0] for row in self._all("Version", ("version",)))
        self.version = next((version for version in versions if isinstance(version, int | str)), None)
        self._is_read: set[str] = set()

    def text(self, number: Any, at: str) -> str:
        """Return the string of that number, "" for none; a number without a string stays visible."""
        if not number:
            return ""
        known = self._strings.get(number)
        if known is None:
            self._out.problem(NO_STRING, at, f"string {number!s:.20}")
            return f"string {number!s:.20}"
        return known

    def unread(self) -> dict[str, int]:
        """Return the number of rows of each table that was not read."""
        counts = {name: self.count(name) for name in self.tables if name not in self._is_read}
        return {name: count for name, count in counts.items() if count}

    def rows(self, table: str, columns: Sequence[str], order: str = "") -> Iterator[Row]:
        """Yield all rows of a table: its row id, then the columns asked for; each is counted as read."""
        for rows in self._portions(table, columns, order):
            yield from rows

    def spans(self, table: str, columns: Sequence[str]) -> Iterator[Spans]:
        """Yield the rows that have a start and an end: row id, start, end, then the columns asked for."""
        for rows in self._portions(table, ("start", "end", *columns)):
            spans = self._timed(table, rows)
            if spans.rows:
                yield spans

    def place(self, table: str, number: Any = "") -> str:
        """Return where a row is, or a table, for messages."""
        return f"{self._out.info.name}:{super().place(table, number)}"

    # -- reading ------------------------------------------------------------------------------------------------

    def _portions(self, table: str, columns: Sequence[str], order: str = "") -> Iterator[Sequence[Row]]:
        self._is_read.add(table)
        if table not in self.tables:
            return
        key = self._database.row_id(PREFIX + table)
        sorted_by = [quoted(order), key] if self.has(table, order) else []
        for _, rows in self.portions(table, columns, order=sorted_by, number=key):
            self._out.balance.read += len(rows)
            self.has_rows = True
            yield [(0, *row[1:]) for row in rows] if rows[0][0] is None else rows

    def _all(self, table: str, columns: Sequence[str]) -> Iterator[Row]:
        """Yield the rows of one of the tables that hold no activities."""
        known = self._database.tables.get(table, ())
        if all(column in known for column in columns):
            try:
                for rows in self._database.batches(table, [quoted(one) for one in columns], PORTION):
                    yield from rows
            except InputError as error:
                self._damage(error, self.place(table))

    # -- times --------------------------------------------------------------------------------------------------

    def _timed(self, table: str, rows: Sequence[Row]) -> Spans:
        starts, ends = whole([row[1] for row in rows]), whole([row[2] for row in rows])
        if starts is not None and ends is not None and _all_usable(starts) and _all_usable(ends):
            return Spans(rows, [row[0] for row in rows], starts, ends - starts)
        rows = [row for row in rows if self._has_time(table, row)]
        lengths = [row[2] - row[1] for row in rows]
        return Spans(rows, [row[0] for row in rows], [row[1] for row in rows], lengths)

    def _has_time(self, table: str, row: Row) -> bool:
        usable = type(row[1]) is int and type(row[2]) is int
        if not usable:
            self._out.skip(NO_TIME, self.place(table, row[0]))
        return usable

    def is_time(self, table: str, number: Any, ts: Any) -> bool:
        """Return whether the time of a row without a length was set; else the row is counted as left out."""
        is_set = type(ts) is int and ts != 0
        if not is_set:
            self._out.skip(NEVER_SET if ts == 0 else NO_TIME, self.place(table, number))
        return is_set


def _all_usable(times: I64) -> bool:
    return bool(np.min(times) > 0 and np.max(times) < LIMIT_NS)

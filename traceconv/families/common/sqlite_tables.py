"""Read the tables of CUDA profilers in SQLite databases: rows in batches, repeated values, launches.

Tables and columns depend on the version and the recording: a missing column reads as None, a missing table has no rows.
A damaged table ends at the damage. SQLite stores any value in any column: a value of a wrong type reads as None, and is
counted.

Rows repeat: the same kernel with the same grid occurs thousands of times. So the result for a combination of values is
computed once (`Known`), and a row costs a look-up.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from traceconv.errors import InputError
from traceconv.io.sqlite import Database, Kind, quoted, typed
from traceconv.model.builder import Builder
from traceconv.model.columns import I64
from traceconv.model.diagnostics import Code

Row = tuple[Any, ...]
#: The rows of a batch: enough to amortise the cost of a call, few enough for the caches of the processor.
PORTION = 1 << 11
#: Correlation ids are unsigned 32-bit numbers below this; 0 is not an id.
IDS_END = 1 << 32
_MOST_KNOWN = 1 << 16
_Entry = TypeVar("_Entry")


class Known(Generic[_Entry]):
    """A cache of results for combinations of values."""

    def __init__(self, find: Callable[[Row], _Entry]) -> None:
        self._find = find
        self._known: dict[Any, _Entry] = {}

    def entries(self, keys: Sequence[Any], rows: Sequence[Row]) -> list[_Entry]:
        """Return the result for the combination of each row."""
        known = self._known
        try:
            return list(map(known.__getitem__, keys))
        except KeyError:
            if len(known) > _MOST_KNOWN:
                known.clear()
            for key, row in zip(keys, rows, strict=True):
                if key not in known:
                    known[key] = self._find(row)
        return list(map(known.__getitem__, keys))


class Described(NamedTuple):
    """The properties that rows share: names are interned, `args` is the repeated part, `process` a number for it."""

    track: int
    name: int
    category: int
    args: bytes
    process: int = 0


class Spans(NamedTuple):
    """Rows with valid times: the numbers of the rows, their starts and durations in ns."""

    rows: Sequence[Row]
    numbers: Sequence[int]
    ts: Sequence[int] | I64
    dur: Sequence[int] | I64

    def each(self) -> Iterator[tuple[Row, int, int]]:
        """Yield each row with its start and its duration, ns."""
        return zip(self.rows, map(int, self.ts), map(int, self.dur), strict=True)

    def add_to(self, out: Builder, kinds: Sequence[Described], args: Sequence[bytes]) -> tuple[I64, I64]:
        """Add the rows as slices; return their numbers, and their processes."""
        tracks, names, categories, _, processes = zip(*kinds, strict=True)
        first = out.tables.slice_count
        out.bulk.slices(tracks, self.ts, self.dur, names, categories, args, self.numbers)
        out.balance.written += len(kinds)
        return np.arange(first, first + len(kinds)), np.array(processes, np.int64)


def whole(values: Sequence[Any]) -> I64 | None:
    """Return the values as a column; None if one of them is not an integer."""
    try:
        return np.frombuffer(array("q", values), np.int64)
    except TypeError:
        return None


class Tables:
    """The tables of a database: the columns of each by its name without the prefix of the profiler, the first error."""

    prefix: ClassVar[str] = ""
    damaged: ClassVar[Code]
    odd_value: ClassVar[Code]
    kinds: ClassVar[dict[str, Kind]] = {}
    other_kind: ClassVar[Kind] = Kind.ANY

    def __init__(self, database: Database, out: Builder) -> None:
        self._database = database
        self._out = out
        self.error: InputError | None = None
        begin = len(self.prefix)
        self.tables = {name[begin:]: made for name, made in database.tables.items() if name.startswith(self.prefix)}

    def place(self, table: str, number: Any = "") -> str:
        """Return the position of a row or table, for messages."""
        return table if number == "" else f"{table} row {number}"

    def has(self, table: str, *columns: str) -> bool:
        """Return whether there is such a table with such columns."""
        known = {name.lower() for name in self.tables.get(table, ())}
        return bool(known) and all(column.lower() in known for column in columns)

    def count(self, table: str) -> int:
        """Return the number of rows; 0 if they cannot be counted."""
        try:
            return sum(row[0] for row in self._database.rows(f"SELECT count(*) FROM {quoted(self.prefix + table)}"))
        except InputError as error:
            self._damage(error, self.place(table))
            return 0

    def portions(
        self, table: str, columns: Sequence[str], *, where: str = "", order: Sequence[str] = (), number: str = ""
    ) -> Iterator[tuple[int, Sequence[Row]]]:
        """Yield the rows of a table in batches, each with the position of its first row (from 1).

        Args:
            columns: the columns of the rows; a column that the table lacks reads as None.
            where: the SQL condition on rows, on columns that the table is known to have.
            order: the columns to sort by, which the table is known to have.
            number: the SQL expression of the row number, which is prepended to the columns; "" for the position.
        """
        known = {name.lower(): name for name in self.tables.get(table, ())}
        if not known:
            return
        wanted = [quoted(known[name.lower()]) if name.lower() in known else "NULL" for name in columns]
        kinds = [self.kinds.get(name, self.other_kind) if name.lower() in known else Kind.ANY for name in columns]
        if number:
            wanted, kinds, columns = [number, *wanted], [Kind.ANY, *kinds], ["", *columns]
        first = 1

        def report(row: int, column: int, value: object) -> None:
            at = rows[row][0] if number else first + row
            self._out.problem(self.odd_value, f"{self.place(table, at)} {columns[column]}", f"{value!r:.40}")

        try:
            for rows in self._database.batches(self.prefix + table, wanted, PORTION, rest=where, order=order):
                yield first, self._possible(columns, typed(rows, kinds, report), report)
                first += len(rows)
        except InputError as error:
            self._damage(error, self.place(table) if number else self.place(table, first))

    def _possible(
        self, columns: Sequence[str], rows: Sequence[Row], report: Callable[[int, int, object], None]
    ) -> Sequence[Row]:
        """Return the rows with None for values of the right type but out of range."""
        del columns, report
        return rows

    def _damage(self, error: InputError, at: str) -> None:
        self.error = self.error or error
        self._out.problem(self.damaged, at, error.message.rpartition(": ")[2])


class Launches:
    """Connects calls with the work that they launched, by process and correlation id."""

    def __init__(self) -> None:
        self._calls: list[tuple[I64, I64, I64]] = []
        self._work: list[tuple[I64, I64, I64]] = []

    def add_calls(self, processes: I64, ids: I64, slices: I64) -> None:
        """Add the slices of calls; of several with one id, the first one counts."""
        self._calls.append((processes, ids, slices))

    def add_work(self, processes: I64, ids: I64, slices: I64) -> None:
        """Add the slices of device work."""
        self._work.append((processes, ids, slices))

    def pairs(self) -> tuple[I64, I64, I64, int]:
        """Return the slices of calls, the slices of their work, the ids, and the amount of work without a call.

        Without any call, no work counts as without one.
        """
        nothing = np.empty(0, np.int64)
        if not self._calls or not self._work:
            return nothing, nothing, nothing, 0
        processes, ids, calls = (np.concatenate(column) for column in zip(*self._calls, strict=True))
        work_processes, work_ids, work = (np.concatenate(column) for column in zip(*self._work, strict=True))
        _, numbers = np.unique(np.concatenate([processes, work_processes]), return_inverse=True)
        keys = ids | numbers[: len(ids)] << 32
        wanted = work_ids | numbers[len(ids) :] << 32
        if not np.all(keys[1:] > keys[:-1]):
            order = np.argsort(keys, kind="stable")
            keys, calls = keys[order], calls[order]
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        is_pair = (keys[at] == wanted) & (work_ids > 0) if len(keys) else np.zeros(len(wanted), bool)
        missing = int(np.count_nonzero((work_ids > 0) & ~is_pair))
        return calls[at[is_pair]], work[is_pair], work_ids[is_pair], missing

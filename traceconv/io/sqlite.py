"""Read SQLite databases safely: nothing is written, and nothing in them is executed.

A database may be hostile: it is opened read only and immutable; triggers, views and functions of its schema are never
used (`trusted_schema` off, an authorizer that allows reads of tables only); extensions are off; each statement is ours.
Damage raises InputError. Source of the precautions: sqlite.org/security.html.

A program that was killed, or still runs, leaves files beside its database: `NAME-wal` holds commits that are not in the
database yet, `NAME-journal` the old content that an open transaction has overwritten. Reading the database alone would
miss the former, and include changes that were never committed. So all files are copied, and SQLite recovers the copy,
as it would recover the database itself on the next write; the input is never changed.

SQLite treats damage in a log as its end. Here a header with a wrong checksum, commits behind the end, and a journal
that is too short for its records raise errors. Source: "The Write-Ahead Log" and "The Rollback Journal" of
sqlite.org/fileformat2.html.
"""

from __future__ import annotations

import contextlib
import enum
import shutil
import sqlite3
import struct
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from traceconv.errors import InputError
from traceconv.io import progress
from traceconv.io.spill import failures

MAGIC = b"SQLite format 3\x00"
_ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION}
_MAX_TABLES = 1000
_SORTED_AT_ONCE = 1 << 13
_ROW_IDS = ("_rowid_", "rowid", "oid")
#: More rows than any file holds: the number is one of the rows, not how many there are.
_MOST_ROWS = 1 << 40
_MAX_VALUE_BYTES = 64 << 20


Row = tuple[Any, ...]


class Kind(enum.Enum):
    """The expected type of the values of a column: SQLite stores any value in any column.

    ANY: unchanged. WHOLE: integers. BYTES: blobs. TEXT: texts; numbers and blobs are converted.
    """

    ANY = frozenset((int, float, str, bytes, type(None)))
    WHOLE = frozenset((int, type(None)))
    TEXT = frozenset((str, type(None)))
    BYTES = frozenset((bytes, type(None)))


def typed(rows: Sequence[Row], kinds: Sequence[Kind], report: Callable[[int, int, object], None]) -> Sequence[Row]:
    """Return rows with None in place of each value that is not of the expected type.

    Args:
        rows: some rows.
        kinds: the expected type of each column.
        report: called in row order for each dropped value, with its row, its column and the value.
    """
    checked = [(place, kind) for place, kind in enumerate(kinds) if kind is not Kind.ANY]
    if not checked or not rows or _all_fit(rows, checked):
        return rows
    columns: list[Sequence[Any]] = list(zip(*rows, strict=True))
    odd: list[tuple[int, int, object]] = []
    for place, kind in checked:
        column = columns[place]
        if kind is Kind.TEXT:
            columns[place] = [None if value is None else as_text(value) for value in column]
            continue
        odd += [(at, place, value) for at, value in enumerate(column) if type(value) not in kind.value]
        columns[place] = [value if type(value) in kind.value else None for value in column]
    for found in sorted(odd, key=lambda found: found[:2]):
        report(*found)
    return list(zip(*columns, strict=True))


def _all_fit(rows: Sequence[Row], checked: Sequence[tuple[int, Kind]]) -> bool:
    """Return whether all values in the checked columns are of the expected types; fast, without a loop over values."""
    places = [place for place, _ in checked]
    values = map(itemgetter(*places, places[0]), rows)  # with two columns at least, so that itemgetter returns tuples
    return set(map(type, chain.from_iterable(values))) <= frozenset.intersection(*(kind.value for _, kind in checked))


def as_text(value: object) -> str:
    """Return a value as a text."""
    return _text(value) if isinstance(value, bytes) else str(value)


class Database:
    """An open database.

    Attributes:
        tables: the names of the columns of each table, in their order.
        notes: remarks for the user.
        position: how far it was read, if progress is displayed and rows were read.
    """

    def __init__(self, connection: sqlite3.Connection, file: DatabaseFile) -> None:
        self._connection = connection
        self._display = file.display
        self._path = file.path
        self.position: _Position | None = None
        self.notes = list(file.notes)
        self.tables: dict[str, list[str]] = {}
        self._names: dict[str, set[str]] = {}
        self._read_tables()
        # Views are never read: one with the name of a table could run forever.
        views = [str(row[0]) for row in self.rows("SELECT name FROM sqlite_master WHERE type = 'view' LIMIT 1000")]
        if views:
            self.notes.append(f"{len(views)} views of the database are not read: {', '.join(views[:3])}")
        connection.set_authorizer(_authorize)

    def _read_tables(self) -> None:
        statement = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'create table%' LIMIT ?"
        for (table,) in list(self.rows(statement, _MAX_TABLES)):
            # The columns of the result: number, name, type, not null, default, primary key, hidden.
            columns = [(str(row[1]), row[6]) for row in self.rows(f"PRAGMA table_xinfo({quoted(table)})")]
            self._names[table] = {name.lower() for name, _ in columns}
            self.tables[table] = [name for name, hidden in columns if not hidden]

    def row_id(self, table: str) -> str:
        """Return the SQL expression for the row number of a table; "NULL" if it has none."""
        for name in _ROW_IDS:
            if name not in self._names[table]:
                with contextlib.suppress(InputError):
                    list(self.rows(f"SELECT {name} FROM {quoted(table)} LIMIT 0"))
                    return name
        return "NULL"

    def batches(
        self, table: str, columns: Sequence[str], size: int, *, rest: str = "", order: Sequence[str] = ()
    ) -> Iterator[list[Row]]:
        """Yield the rows of a table in batches. No index is used, since it may be damaged where the table is not.

        Args:
            table: one of the tables.
            columns: SQL expressions.
            size: the rows of a batch.
            rest: the end of the statement.
            order: the SQL expressions of the columns to sort by.

        Raises:
            InputError: the database is damaged; all rows before the damage have been yielded, also with `order`.
        """
        if self.position is None and progress.is_on():
            self.position = _Position(self._path.stat().st_size, sum(map(self._last_row, self.tables)))
            progress.note(self._display, self.position)
        wanted = ", ".join((*columns, *order))
        statement = f"SELECT {wanted} FROM {quoted(table)} NOT INDEXED {rest}"
        if order:
            statement += f" ORDER BY {', '.join(order)}"
        is_sorted = False
        try:
            for batch in self._up_to_damage(statement, size):
                is_sorted = True
                yield [row[: len(columns)] for row in batch] if order else batch
        except InputError:
            if order and not is_sorted:  # SQLite would sort before it returns any row
                yield from self._sorted_before_damage(table, columns, rest, order)
            raise

    def _up_to_damage(self, statement: str, size: int) -> Iterator[list[Row]]:
        taken = 0
        with self._telling_damage():
            rows = self._execute(statement)
        while True:
            batch: list[Row] = []
            try:
                with self._telling_damage():
                    batch.extend(islice(rows, size))
            except InputError:
                # Python fetches one row ahead, and drops the row before it if that fails.
                with contextlib.suppress(InputError):
                    batch += self.rows(f"{statement} LIMIT 1 OFFSET {taken + len(batch)}")
                if batch:
                    yield batch
                raise
            if not batch:
                return
            yield batch
            taken += len(batch)
            if self.position is not None:
                self.position.rows += len(batch)

    def _sorted_before_damage(
        self, table: str, columns: Sequence[str], rest: str, order: Sequence[str]
    ) -> Iterator[list[Row]]:
        wanted = ", ".join((*columns, *order))
        rows: list[Row] = []
        with contextlib.suppress(InputError):
            for batch in self._up_to_damage(
                f"SELECT {wanted} FROM {quoted(table)} NOT INDEXED {rest}", _SORTED_AT_ONCE
            ):
                rows += batch
        for place, column in reversed(list(enumerate(order, len(columns)))):
            rows.sort(key=partial(_sort_key, place), reverse=column.endswith(" DESC"))
        if rows:
            yield [row[: len(columns)] for row in rows]

    def _last_row(self, table: str) -> int:
        """Return the last row number of a table, which is about its number of rows; 0 if it is not known."""
        if (row_id := self.row_id(table)) == "NULL":
            return 0
        with contextlib.suppress(InputError):
            for (largest,) in self.rows(f"SELECT max({row_id}) FROM {quoted(table)}"):
                return largest if isinstance(largest, int) and 0 < largest < _MOST_ROWS else 0
        return 0

    def rows(self, sql: str, *parameters: Any) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query.

        Raises:
            InputError: the database is damaged; rows before the damage have been yielded.
        """
        with self._telling_damage():
            yield from self._execute(sql, *parameters)

    def _execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
        # SQLite checks a page only when it loads it into its cache.
        self._connection.execute("PRAGMA shrink_memory")
        return self._connection.execute(sql, parameters)

    @contextlib.contextmanager
    def _telling_damage(self) -> Iterator[None]:
        try:
            yield
        # the last one: an error message that quotes damaged text
        except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:
            raise InputError(
                f"the database cannot be read: {error}",
                hint="was the profiler stopped before it had closed the file? Try: sqlite3 FILE .recover",
                at=self._display,
            ) from None


def _sort_key(place: int, row: Row) -> tuple[int, Any]:
    """Return a sort key for a value of a row, in the order of SQLite: NULL, numbers, texts, blobs."""
    value = row[place]
    if value is None:
        return 0, 0
    return (1, value) if isinstance(value, int | float) else (2 if isinstance(value, str) else 3, value)


def quoted(name: str) -> str:
    """Return the name of a table or column, quoted for SQL."""
    return '"' + name.replace('"', '""') + '"'


def _authorize(action: int, name: str | None, detail: str | None, database: str | None, inner: str | None) -> int:
    """Allow reads of tables only; `inner` is the view or trigger that the access comes from, if any."""
    allowed = action in _ALLOWED or (action == sqlite3.SQLITE_PRAGMA and name == "shrink_memory")
    return sqlite3.SQLITE_OK if allowed and inner is None else sqlite3.SQLITE_DENY


class _Position(Struct):
    """How far a database was read, for the display of progress: its bytes, by the share of its rows that were read."""

    size: int
    all_rows: int
    rows: int = 0

    def tell(self) -> int:
        """Return the position in bytes."""
        return self.size * min(self.rows, self.all_rows) // max(self.all_rows, 1)


class DatabaseFile(NamedTuple):
    """A file that SQLite can open directly.

    Attributes:
        path: its path.
        display: the input as the user named it.
        notes: remarks for the user.
    """

    path: Path
    display: str
    notes: tuple[str, ...] = ()


@contextlib.contextmanager
def open_database(file: DatabaseFile) -> Iterator[Database]:
    """Yield the database in a file.

    Raises:
        InputError: the file is not a database, or is damaged.
    """
    with contextlib.ExitStack() as stack:
        _refuse_cut(file.path, file.display)
        uri = f"{file.path.absolute().as_uri()}?mode=ro&immutable=1"
        try:
            connection = stack.enter_context(contextlib.closing(sqlite3.connect(uri, uri=True)))
            connection.text_factory = _text
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA cell_size_check = ON")
            connection.execute("PRAGMA mmap_size = 0")
        except sqlite3.Error as error:
            raise InputError(f"cannot be opened as an SQLite database: {error}", at=file.display) from None
        database = Database(connection, file)
        yield database
        if database.position is not None:
            database.position.rows = database.position.all_rows  # importers do not read all tables


def _refuse_cut(path: Path, display: str) -> None:
    """Raise InputError for a database that was cut: SQLite reads missing pages as zeros, which look like empty rows."""
    with path.open("rb") as file:
        header = file.read(100)
    size = path.stat().st_size
    page_size = int.from_bytes(header[16:18], "big")
    expected = (65536 if page_size == 1 else page_size) * int.from_bytes(header[28:32], "big")
    if header.startswith(MAGIC) and size < expected:
        raise InputError(
            f"the database is cut off: {size} of {expected} bytes",
            hint="copy it again, once the profiler has ended; or try: sqlite3 FILE .recover",
            at=display,
        )


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


LOG, JOURNAL = "-wal", "-journal"

_LOG_MAGIC = 0x377F0682  # the last bit is the byte order of checksums
_LOG_HEADER = struct.Struct(">8I")
_FRAME_HEADER = struct.Struct(">4I8x")
_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
_JOURNAL_HEADER = struct.Struct(">8s5I")
_ALL_RECORDS = 0xFFFFFFFF  # as many as the file holds
_BESIDE_PAGE = 8  # the page number and the checksum of a journal record
_LARGEST_PAGE = 65536


def beside(path: Path) -> list[Path]:
    """Return the log and journal files beside a database that hold changes of it.

    Args:
        path: the database, with links resolved, as SQLite does.
    """
    log, journal = (path.with_name(path.name + ending) for ending in (LOG, JOURNAL))
    with contextlib.suppress(OSError):
        logs = [log] if log.is_file() and log.stat().st_size else []
        return logs + ([journal] if journal.is_file() and _is_hot(journal) else [])
    return []


def _is_hot(journal: Path) -> bool:
    """Return whether a journal has something to undo: after a commit its header is zeroed or gone."""
    with journal.open("rb") as file:
        return file.read(1).strip(b"\0") != b""


def completed(path: Path, others: list[Path], display: str, folder: Path) -> Path:
    """Return the path of a copy of a database that SQLite has recovered with the files beside it.

    Args:
        path: the database.
        others: the result of `beside`.
        display: the database as the user named it.
        folder: the folder for the copy.

    Raises:
        InputError: the files are damaged or do not belong together.
        OutputError: there is no room for the copy.
    """
    names = " and ".join(other.name for other in others)
    copy = folder / "input.sqlite"
    with failures():
        shutil.copyfile(path, copy)
        for other in others:
            shutil.copyfile(other, copy.with_name(copy.name + other.name[len(path.name) :]))
    wrong = _complete(copy)
    if wrong:
        raise InputError(
            f"the database was not closed, and does not match {names}: {wrong}",
            hint=f"move {names} away to read the database without the changes in them, or try: sqlite3 COPY .recover",
            at=display,
        )
    return copy


def _complete(copy: Path) -> str:
    """Make SQLite apply and remove the files beside a copy; return the error, "" if there is none."""
    log, journal = (copy.with_name(copy.name + ending) for ending in (LOG, JOURNAL))
    wrong = _wrong_journal(journal) if journal.exists() else ""
    if wrong:
        return wrong
    header = _log_header(log) if log.exists() else b""
    if header is None:
        return "the header of the write-ahead log is damaged"
    try:
        with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as connection:
            for setting in ("trusted_schema = OFF", "ignore_check_constraints = ON", "mmap_size = 0"):
                connection.execute(f"PRAGMA {setting}")
            connection.execute("PRAGMA schema_version").fetchone()
            frames = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[1]
            if header and _has_commits(log, header, max(frames, 0)):
                return f"the write-ahead log is damaged behind frame {max(frames, 0)}"
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
            (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return str(error)
    if pages * page_bytes != copy.stat().st_size:  # each commit, and the first page, state the number of pages
        return f"it makes {copy.stat().st_size} bytes of a database of {pages} pages"
    return "" if verdict == "ok" else " ".join(str(verdict).split())


def _wrong_journal(journal: Path) -> str:
    """Return the reason why SQLite must not apply a journal, "" if it may."""
    size = journal.stat().st_size
    with journal.open("rb") as file:
        magic, records, _, _, sector_bytes, page_bytes = _JOURNAL_HEADER.unpack(
            file.read(_JOURNAL_HEADER.size).ljust(_JOURNAL_HEADER.size, b"\0")
        )
        file.seek(max(size - len(_JOURNAL_MAGIC), 0))
        end = file.read()
    if magic != _JOURNAL_MAGIC:
        return "the header of the journal is damaged"
    if size > len(_JOURNAL_MAGIC) and end == _JOURNAL_MAGIC:  # SQLite may delete the file that such a journal names
        return "the journal is part of a transaction over several databases"
    is_cut = records != _ALL_RECORDS and size < sector_bytes + records * (page_bytes + _BESIDE_PAGE)
    return "the journal is cut" if is_cut else ""


def _log_header(log: Path) -> bytes | None:
    """Return the header of a write-ahead log; None if the file is not one."""
    with log.open("rb") as file:
        header = file.read(_LOG_HEADER.size)
    if len(header) < _LOG_HEADER.size or int.from_bytes(header[:4], "big") & ~1 != _LOG_MAGIC:
        return None
    words = struct.unpack(">6I" if header[3] & 1 else "<6I", header[:24])
    first = second = 0
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return header if (first, second) == _LOG_HEADER.unpack(header)[6:] else None


def _has_commits(log: Path, header: bytes, frames: int) -> bool:
    """Return whether commits of this log follow the first `frames`, which SQLite has accepted."""
    _, _, page_bytes, _, *salts = _LOG_HEADER.unpack(header)[:6]
    frame_bytes = _FRAME_HEADER.size + (page_bytes if 512 <= page_bytes <= _LARGEST_PAGE else 512)
    with log.open("rb") as file:
        for at in range(_LOG_HEADER.size + frames * frame_bytes, log.stat().st_size - _FRAME_HEADER.size, frame_bytes):
            file.seek(at)
            _, pages, *frame_salts = _FRAME_HEADER.unpack(file.read(_FRAME_HEADER.size))
            if frame_salts == salts and pages:
                return True
    return False

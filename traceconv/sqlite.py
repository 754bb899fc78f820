"""SQLite databases as inputs: read only, and nothing in them can run.

The input itself is never written to, nor anything beside it: a database that was not closed is completed as a copy (see
`sqlite_recovery`), and one that is compressed or comes through a pipe is copied as well.

A database comes from outside and may be hostile: it is opened read only and immutable, triggers, views and functions
of its schema are never used (`trusted_schema` off, an authorizer that allows reads of tables only), extensions are
off, and each statement is one of ours. What is damaged turns into an InputError.
See sqlite.org/security.html for what to guard against.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from traceconv import sqlite_recovery
from traceconv.errors import InputError
from traceconv.spill import failures
from traceconv.sqlite_columns import Block, Column, Layout, blocks

if TYPE_CHECKING:
    from traceconv.source import Source

MAGIC = b"SQLite format 3\x00"
_ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION}
_MAX_TABLES = 1000
_MAX_VALUE_BYTES = 64 << 20


class Database:
    """An open database.

    Attributes:
        tables: the names of the columns of each table, in their order.
        notes: what the user should know about it.
    """

    def __init__(self, connection: sqlite3.Connection, display: str, file: _File) -> None:
        self._connection = connection
        self._display = display
        self._path = file.path
        self.notes = list(file.notes)
        self._layouts = self._read_layouts()
        self.tables: dict[str, list[str]] = {
            table: [column.name for column in layout.columns if not column.hidden]
            for table, layout in self._layouts.items()
        }
        # Views are never read: they could stand for tables, and run for ever.
        views = [str(row[0]) for row in self.rows("SELECT name FROM sqlite_master WHERE type = 'view' LIMIT 1000")]
        if views:
            self.notes.append(f"{len(views)} views of the database are not read: {', '.join(views[:3])}")
        connection.set_authorizer(_authorize)

    def _read_layouts(self) -> dict[str, Layout]:
        tables = list(
            self.rows(
                "SELECT name, rootpage FROM sqlite_master WHERE type = 'table' AND sql LIKE 'create table%' LIMIT ?",
                _MAX_TABLES,
            )
        )
        indexed = {table for (table,) in self.rows("SELECT DISTINCT tbl_name FROM sqlite_master WHERE type = 'index'")}
        found = {}
        for table, root in tables:
            # Number, name, type, whether it may be null, default, key, hidden.
            columns = [
                Column(str(row[1]), str(row[2]), row[5], row[6])
                for row in self.rows(f"PRAGMA table_xinfo({quoted(table)})")
            ]
            found[table] = Layout(root if isinstance(root, int) else 0, columns, table in indexed)
        return found

    def blocks(self, table: str, columns: Sequence[str], key: str) -> Iterator[Block]:
        """The first rows of a table, as far as they hold nothing but integers and NULL where it matters.

        Args:
            table: one of the tables.
            columns: the names of columns; what the table lacks reads as NULL.
            key: the name of the column that may be the row id.
        """
        return blocks(self._path, self._layouts[table], columns, key)

    def rows(self, sql: str, *parameters: Any) -> Iterator[tuple[Any, ...]]:
        """The rows of a query.

        Raises:
            InputError: the database is damaged; rows before the damage have been handed on.
        """
        try:
            yield from self._connection.execute(sql, parameters)
        except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:  # the last: a message that quotes damage
            raise InputError(
                f"{self._display}: the database cannot be read: {error}",
                hint="was the profiler stopped before it had closed the file? Try: sqlite3 FILE .recover",
            ) from None


def quoted(name: str) -> str:
    """The name of a table or column as it stands in a statement."""
    return '"' + name.replace('"', '""') + '"'


def _authorize(action: int, one: str | None, other: str | None, database: str | None, inner: str | None) -> int:
    """Only reads; `inner` names the view or trigger that wants something."""
    return sqlite3.SQLITE_OK if action in _ALLOWED and inner is None else sqlite3.SQLITE_DENY


@contextlib.contextmanager
def open_database(source: Source) -> Iterator[Database]:
    """The database of an input, which may be compressed or come through a pipe.

    Raises:
        InputError: it is none, or is damaged.
    """
    with contextlib.ExitStack() as stack:
        file = _file(source)
        _refuse_cut(file.path, source.display)
        uri = f"{file.path.absolute().as_uri()}?mode=ro&immutable=1"
        try:
            connection = stack.enter_context(contextlib.closing(sqlite3.connect(uri, uri=True)))
            connection.text_factory = _text
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA cell_size_check = ON")
            connection.execute("PRAGMA mmap_size = 0")
        except sqlite3.Error as error:
            raise InputError(f"{source.display}: cannot be opened as an SQLite database: {error}") from None
        yield Database(connection, source.display, file)


class _File(NamedTuple):
    """The file that is read for an input, and what is to be said about it."""

    path: Path
    notes: tuple[str, ...] = ()


#: A file that had to be copied is copied once, and goes with its source.
_copies: weakref.WeakKeyDictionary[Source, _File] = weakref.WeakKeyDictionary()


def _file(source: Source) -> _File:
    """The input itself, or a copy of what is compressed, came through a pipe or was not closed."""
    if source in _copies:
        return _copies[source]
    path = source.path.resolve() if source.path is not None and not source.is_packed else None
    others = sqlite_recovery.beside(path) if path is not None else []
    if path is not None and not others:
        return _File(path)
    with failures():
        folder = Path(tempfile.mkdtemp(prefix="traceconv-"))
    weakref.finalize(source, shutil.rmtree, folder, ignore_errors=True)
    if path is None:
        found = _File(folder / "input.sqlite")
        with source.open() as stream, failures(), found.path.open("wb") as file:
            shutil.copyfileobj(stream, file)
    else:
        words = " and ".join(other.name for other in others)
        note = (
            f"the database was not closed: {words} beside it was applied to a copy, which was read; nothing was changed"
        )
        found = _File(sqlite_recovery.completed(path, others, source.display, folder), (note,))
    _copies[source] = found
    return found


def _refuse_cut(path: Path, display: str) -> None:
    """SQLite reads what is missing of a page as zeros, which look like rows without values."""
    with path.open("rb") as file:
        header = file.read(100)
    size = path.stat().st_size
    page_size = int.from_bytes(header[16:18], "big")
    expected = (65536 if page_size == 1 else page_size) * int.from_bytes(header[28:32], "big")
    if header.startswith(MAGIC) and size < expected:
        raise InputError(
            f"{display}: the database is cut off: {size} of {expected} bytes",
            hint="copy it again, once the profiler has ended; or try: sqlite3 FILE .recover",
        )


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def table_names(source: Source) -> tuple[str, ...]:
    """The names of the tables, () if the database is too damaged to tell."""
    try:
        with open_database(source) as database:
            return tuple(database.tables)
    except InputError:
        return ()

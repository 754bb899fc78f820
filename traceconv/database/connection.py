"""A connection to DuckDB that reads no files, and the views of a trace in it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from traceconv.answers.frames import Frames
from traceconv.database.views import ROW, View
from traceconv.model.trace import needed

if TYPE_CHECKING:
    import pyarrow

_Result = TypeVar("_Result")
#: No Python variables, no extensions, no files for what does not fit into memory.
_SETTINGS = {
    "python_enable_replacements": "false",
    "python_scan_all_frames": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_unsigned_extensions": "false",
    "temp_directory": "",
}


@contextlib.contextmanager
def connect() -> Iterator[Any]:
    """Yield a connection to an empty database in memory.

    Raises:
        UsageError: DuckDB or pyarrow is not installed.
        MemoryError: DuckDB gets no memory.
    """
    needed("pyarrow", "sql")
    needed("pyarrow.dataset", "sql")  # if a thread of DuckDB 1.4 loads it, both wait for each other forever
    duckdb = needed("duckdb", "sql")
    try:
        with duckdb.connect(":memory:", config=_SETTINGS) as connection:
            connection.execute("set enable_progress_bar = false")  # it would go to the standard output
            yield connection
    except duckdb.OutOfMemoryException:
        raise MemoryError from None


def interruptible(connection: Any, work: Callable[[], _Result]) -> _Result:
    """Return the result of work that queries a connection, in a thread of its own, so that signals can end it.

    DuckDB looks at no signal while it works. What the handler of a signal raises interrupts the work, and is raised.
    """
    pool, result = ThreadPoolExecutor(1), None
    try:
        result = pool.submit(work)
        return result.result()
    except BaseException:
        while result is not None and not result.done():  # an interrupt before the query begins is lost
            connection.interrupt()
            wait([result], timeout=0.05)
        raise
    finally:
        pool.shutdown(wait=False)


def literal(text: str) -> str:
    """Return a text as a literal in SQL."""
    return "'" + text.replace("'", "''") + "'"


def add_view(connection: Any, frames: Frames, view: View) -> pyarrow.Table:
    """Make a view of a table, which is shared with DuckDB, and return it; only the columns that it needs are built."""
    wanted = {column for shown in view.columns for column in shown.needs}
    frame, table = f"frame {view.name}", frames.part(view.name, wanted)
    if ROW in wanted:
        table = table.append_column(ROW, needed("pyarrow", "sql").array(np.arange(table.num_rows)))
    connection.register(frame, table)
    connection.execute(view.statement(frame))
    return table


def text_lengths(column: pyarrow.ChunkedArray) -> Iterator[pyarrow.Array]:
    """Yield the bytes of the text of each row, by chunks, of a column that holds each text once; of others nothing."""
    if needed("pyarrow", "arrow").types.is_dictionary(column.type):
        for chunk in column.chunks:
            yield needed("pyarrow.compute", "arrow").binary_length(chunk.dictionary).take(chunk.indices)


def text_bytes(table: pyarrow.Table) -> int:
    """Return the bytes of the texts that the table holds once, as often as they stand in its rows."""
    total = needed("pyarrow.compute", "arrow").sum
    return sum(total(lengths).as_py() or 0 for column in table.columns for lengths in text_lengths(column))

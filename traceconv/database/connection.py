"""A connection to DuckDB that reads no files, and the views of a trace in it."""

from __future__ import annotations

from typing import Any

import numpy as np

from traceconv.answers.frames import Frames
from traceconv.database.views import ROW, View
from traceconv.model.trace import needed

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


def connect() -> Any:
    """Return a connection to an empty database in memory, to be closed.

    Raises:
        UsageError: DuckDB or pyarrow is not installed.
    """
    needed("pyarrow", "sql")
    needed("pyarrow.dataset", "sql")  # if a thread of DuckDB 1.4 loads it, both wait for each other forever
    return needed("duckdb", "sql").connect(":memory:", config=_SETTINGS)


def literal(text: str) -> str:
    """Return a text as a literal in SQL."""
    return "'" + text.replace("'", "''") + "'"


def add_view(connection: Any, frames: Frames, view: View) -> None:
    """Make a view of a table, which is shared with DuckDB; only the columns that it needs are built."""
    wanted = {column for shown in view.columns for column in shown.needs}
    frame, table = f"frame {view.name}", frames.part(view.name, wanted)
    if ROW in wanted:
        table = table.append_column(ROW, needed("pyarrow", "sql").array(np.arange(table.num_rows)))
    connection.register(frame, table)
    connection.execute(view.statement(frame))

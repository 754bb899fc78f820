"""Write the tables of a trace to files that stay: folders of Parquet, CSV or Arrow files, or a DuckDB database."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import quote

import numpy as np

from traceconv.answers.frames import Frames
from traceconv.database.connection import add_view, connect, literal, text_bytes, text_lengths
from traceconv.database.views import VIEWS
from traceconv.errors import OutputError, UsageError
from traceconv.io.output import check_folder, check_target, part_of, write_folder, write_output
from traceconv.model.trace import needed
from traceconv.writers import outgrown, room_of

if TYPE_CHECKING:
    import pyarrow

#: The row group size of DuckDB, rows.
_ROW_GROUP = 122_880
#: About the most bytes of texts that a batch of CSV rows repeats.
_BATCH_BYTES = 64 << 20
_DATABASE = ".duckdb"
_INSTEAD = "a .parquet holds each text once; "


class Partition(StrEnum):
    """The column by which tables of events are divided into folders."""

    RANK = "rank"
    INPUT = "input"


def check_tables(
    target: str, kind: str | None, partition: Partition | None, args: Sequence[str], *, force: bool
) -> None:
    """Raise the errors of `write_tables` that are known before the work is done."""
    ending = _ending(target, kind)
    if ending == _DATABASE:
        if partition:
            raise UsageError("a database is one file", hint="--by is for folders: end the output in .parquet")
        if args:
            raise UsageError("args are no columns of databases", hint=f"args->>'$.\"{args[0]}\"' is the value in SQL")
        needed("duckdb", "sql")
        check_target(target, binary=True, force=force)
        return
    if ending not in _FOLDERS:
        from traceconv.answers.stack_files import FORMS

        hint = f"end it in {', '.join((*_FOLDERS, _DATABASE))}; a file of stacks in {', '.join(FORMS)}"
        raise UsageError(f"{target}: the ending is not of a kind of table", hint=hint)
    needed("pyarrow", "arrow")
    check_folder(target, force=force)


def write_tables(frames: Frames, target: str, kind: str | None, partition: Partition | None, *, force: bool) -> None:
    """Write the tables to a folder, or to a database, which appears whole or not at all.

    Args:
        frames: the tables.
        target: the folder, or the file of the database.
        kind: the ending of files or of the database, without its point; None for that of the target.
        partition: the column by which tables of events are divided. Their times are then those of the clocks of the
            inputs (`clock_ns`): `add_ns` of `recordings` moves them to one axis.
        force: whether to replace what is there.

    Raises:
        UsageError: the kind is unknown, the target exists and force is not given, two inputs of a partitioned output
            have one name, or pyarrow or DuckDB is missing.
        OutputError: the target cannot be written, or is a folder with other files; no partial output remains.
    """
    check_tables(target, kind, partition, frames.args, force=force)
    ending = _ending(target, kind)
    if ending == _DATABASE:
        write_output(target, partial(_write_database, frames, target), binary=True, force=force)
    else:
        write_folder(target, partial(_write_folder, frames, ending, partition), force=force)


def _ending(target: str, kind: str | None) -> str:
    return f".{kind}" if kind else os.path.splitext(os.path.normpath(target))[1]


def _write_folder(frames: Frames, ending: str, partition: Partition | None, folder: Path) -> list[str]:
    """Write a file for each table, or for each part of one; return their names in the folder."""
    names, room, write = [], room_of(frames.trace), _FOLDERS[ending]
    zeros = _zeros(frames) if partition else {}
    for name, frame in frames.items():
        table = frame.to_arrow()
        if partition is None or "start_ns" not in table.column_names:
            names.append(f"{name}{ending}")
            write(table, folder / names[-1], room)
            continue
        for value, part in _parts(_on_own_clocks(name, table, zeros), partition):
            names.append(f"{name}/{partition}={value}/0{ending}")
            (folder / names[-1]).parent.mkdir(parents=True)
            write(part, folder / names[-1], room)
    return names


# -- Parts of tables, on the clocks of their inputs ------------------------------------------------------------------


def _zeros(frames: Frames) -> dict[str, int]:
    """Return the start of the trace on the clock of each input, ns. Raises UsageError: two have one name."""
    recordings = frames.recordings.to_arrow()
    names, add_ns = recordings["input"].to_pylist(), recordings["add_ns"].to_pylist()
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"several inputs are called {twice}: their parts could not be told apart")
    return {name: -add for name, add in zip(names, add_ns, strict=True)}


def _on_own_clocks(name: str, table: pyarrow.Table, zeros: dict[str, int]) -> pyarrow.Table:
    """Return a table with times of the clocks of inputs; slices are numbered, since they lie in several parts."""
    pa = needed("pyarrow", "arrow")
    inputs = table["input"].combine_chunks()
    zero = np.array([zeros[text] for text in inputs.dictionary.to_pylist()], np.int64)
    start = table["start_ns"].to_numpy()
    times = start + zero[inputs.indices.to_numpy()] if len(start) else start
    table = table.set_column(table.column_names.index("start_ns"), "clock_ns", pa.array(times))
    return table.append_column("slice", pa.array(np.arange(len(start)))) if name == "slices" else table


def _parts(table: pyarrow.Table, partition: Partition) -> Iterator[tuple[str, pyarrow.Table]]:
    """Yield each value of a column, as the name of a folder has it, and the rows that have it, without the column."""
    column = table[partition].combine_chunks()
    encoded = column if hasattr(column, "dictionary") else column.dictionary_encode()
    numbers = encoded.indices.to_numpy()
    order = np.argsort(numbers, kind="stable")
    edges = np.searchsorted(numbers[order], np.arange(len(encoded.dictionary) + 1))
    rest = table.drop_columns([partition])
    for value, since, until in zip(encoded.dictionary.to_pylist(), edges, edges[1:], strict=False):
        if until > since:
            # Quoted letters of other scripts have nine characters each, and a name has 255 bytes at most.
            yield "".join(c if c.isalnum() else quote(c, safe="") for c in str(value)), rest.take(order[since:until])


# -- Files -----------------------------------------------------------------------------------------------------------


def _write_parquet(table: pyarrow.Table, path: Path, _: int) -> None:
    needed("pyarrow.parquet", "arrow").write_table(table, path, row_group_size=_ROW_GROUP, compression="zstd")


def _write_csv(table: pyarrow.Table, path: Path, room: int) -> None:
    """Write a table as CSV, texts unchanged: a spreadsheet reads one that starts with =, +, - or @ as a formula."""
    pa = needed("pyarrow", "arrow")
    text, is_text = pa.large_string(), pa.types.is_dictionary
    schema = pa.schema([field.with_type(text) if is_text(field.type) else field for field in table.schema])
    # In batches, since CSV repeats texts that the table holds once.
    rows = max(1, min(_ROW_GROUP, _BATCH_BYTES // (1 + sum(map(_longest, table.columns)))))
    with pa.OSFile(os.fspath(path), "wb") as file, needed("pyarrow.csv", "arrow").CSVWriter(file, schema) as writer:
        for start in range(0, table.num_rows, rows):
            writer.write_table(table.slice(start, rows).cast(schema))
            if room and file.tell() > room:
                raise outgrown(room, _INSTEAD)


def _longest(column: pyarrow.ChunkedArray) -> int:
    largest = needed("pyarrow.compute", "arrow").max
    return max((largest(lengths).as_py() or 0 for lengths in text_lengths(column)), default=0)


def _write_arrow(table: pyarrow.Table, path: Path, _: int) -> None:
    with needed("pyarrow", "arrow").ipc.new_file(path, table.schema) as sink:
        sink.write_table(table)


_FOLDERS: dict[str, Callable[[pyarrow.Table, Path, int], None]] = {
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    ".arrow": _write_arrow,
}


def _write_database(frames: Frames, target: str, sink: BinaryIO) -> None:
    """Write a DuckDB database: a table for each view of `traceconv query`, and `properties` of the trace.

    DuckDB writes files by their paths, so it writes another one, which is copied.
    """
    duckdb = needed("duckdb", "sql")
    with part_of(f"{os.path.realpath(target)}.parts", folder=True) as folder:
        path = os.path.join(folder, "tables")
        try:
            _fill(frames, path)
        except duckdb.IOException as error:
            raise OutputError(f"{target}: {str(error).splitlines()[0]}") from None
        with open(path, "rb") as written:
            shutil.copyfileobj(written, sink, 1 << 20)


def _fill(frames: Frames, path: str) -> None:
    """Make a database in the form of DuckDB 1.0, which later versions read."""
    properties = frames.recordings.to_arrow().schema.metadata
    room, taken = room_of(frames.trace), 0
    with connect() as connection:
        connection.execute(f"attach {literal(path)} as written (storage_version 'v1.0.0')")
        for view in VIEWS:
            taken += text_bytes(add_view(connection, frames, view))
            if room and taken > room:
                raise outgrown(room, _INSTEAD)
            connection.execute(f'create table written."{view.name}" as from "{view.name}"')
        connection.execute("create table written.properties (key varchar, value varchar)")
        for pair in properties.items():
            values = ", ".join(literal(text.decode()) for text in pair)
            connection.execute(f"insert into written.properties values ({values})")
        connection.execute("detach written")

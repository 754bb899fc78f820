"""Write the tables of a trace to a folder of files: Parquet, CSV or Arrow."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from traceconv.answers.frames import Frames
from traceconv.errors import UsageError
from traceconv.io.output import check_folder, write_folder
from traceconv.model.tabular import needed
from traceconv.writers.sink import outgrown, room_of

if TYPE_CHECKING:
    import pyarrow

#: The row group size of DuckDB, rows.
_ROW_GROUP = 122_880
#: About the most bytes of texts that a batch of CSV rows repeats.
_BATCH_BYTES = 64 << 20


def _write_parquet(table: pyarrow.Table, path: Path, _: int) -> None:
    needed("pyarrow.parquet", "arrow").write_table(table, path, row_group_size=_ROW_GROUP, compression="zstd")


def _write_csv(table: pyarrow.Table, path: Path, room: int) -> None:
    """Write a table as CSV, texts unchanged: a spreadsheet reads one that starts with =, +, - or @ as a formula.

    Raises:
        OutputError: the file takes more than `room` bytes, if that is not 0.
    """
    pa = needed("pyarrow", "arrow")
    text, is_text = pa.large_string(), pa.types.is_dictionary
    schema = pa.schema([field.with_type(text) if is_text(field.type) else field for field in table.schema])
    # In batches, since CSV repeats texts that the table holds once.
    rows = max(1, min(_ROW_GROUP, _BATCH_BYTES // (1 + sum(map(_longest, table.columns)))))
    with pa.OSFile(os.fspath(path), "wb") as file, needed("pyarrow.csv", "arrow").CSVWriter(file, schema) as writer:
        for start in range(0, table.num_rows, rows):
            writer.write_table(table.slice(start, rows).cast(schema))
            if room and file.tell() > room:
                raise outgrown(room, "a .parquet holds each text once; ")


def _longest(column: pyarrow.ChunkedArray) -> int:
    """Return the bytes of the longest text of a column that holds each text once, else 0."""
    pa = needed("pyarrow", "arrow")
    if not pa.types.is_dictionary(column.type) or not column.num_chunks:
        return 0
    lengths = needed("pyarrow.compute", "arrow").binary_length
    texts = [lengths(chunk.dictionary).to_numpy(zero_copy_only=False) for chunk in column.chunks]
    return max(int(np.max(one, initial=0)) for one in texts)


def _write_arrow(table: pyarrow.Table, path: Path, _: int) -> None:
    with needed("pyarrow", "arrow").ipc.new_file(path, table.schema) as sink:
        sink.write_table(table)


_KINDS: dict[str, Callable[[pyarrow.Table, Path, int], None]] = {
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    ".arrow": _write_arrow,
}


def check_export(target: str, kind: str | None, *, force: bool) -> None:
    """Raise the errors of `write_frames` that are known before the work is done."""
    if _ending(target, kind) not in _KINDS:
        raise UsageError(f"{target}: the ending is not of a kind of table", hint=f"end it in {', '.join(_KINDS)}")
    needed("pyarrow", "arrow")
    check_folder(target, force=force)


def write_frames(frames: Frames, target: str, kind: str | None, *, force: bool) -> None:
    """Write a file for each table to a folder, which appears whole or not at all.

    Args:
        frames: the tables.
        target: the folder.
        kind: parquet, csv or arrow; None for the ending of the folder.
        force: whether to replace tables in the folder.

    Raises:
        UsageError: the kind is unknown, the folder exists and force is not given, or pyarrow is missing.
        OutputError: the folder cannot be written, or holds other files; no partial output remains.
    """
    check_export(target, kind, force=force)
    write_folder(target, partial(_write_all, frames, _ending(target, kind)), force=force)


def _ending(target: str, kind: str | None) -> str:
    return f".{kind}" if kind else os.path.splitext(os.path.normpath(target))[1]


def _write_all(frames: Frames, ending: str, folder: Path) -> list[str]:
    names, room = [], room_of(frames.trace)
    for name, frame in frames.items():
        names.append(f"{name}{ending}")
        _KINDS[ending](frame.to_arrow(), folder / names[-1], room)
    return names

"""Tables of integers of an SQLite database as columns, out of the pages of the file.

SQLite makes an object of each value; for millions of rows that costs more than all that is done with them. So plain
tables are read as sqlite.org/fileformat2.html describes them, by `traceconv.kernel.pages`, up to the first page that
is not plain or seems damaged: the rows from there on are SQLite's to read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from traceconv import kernel
from traceconv.model.trace import I64

#: Stands for NULL in the columns.
NULL = -(1 << 63)
_ROWS = 1 << 14
_MAX_DEPTH = 20
_RUN_PAGES = 64
_INTERIOR, _LEAF = 5, 13
_INTERIOR_HEADER_BYTES = 12


class Column(NamedTuple):
    """A column as its table declares it.

    Attributes:
        name: its name.
        type: the declared type.
        key: its place in the primary key, 0 for none.
        hidden: not 0 for what is computed.
    """

    name: str
    type: str
    key: int
    hidden: int


class Layout(NamedTuple):
    """Where a table is.

    Attributes:
        root: the number of its first page.
        columns: in the order of the records.
        key_indexed: whether the primary key has an index of its own, and so is not the row id.
    """

    root: int
    columns: Sequence[Column]
    key_indexed: bool

    @property
    def key(self) -> str:
        """The column that is the row id, "" for none."""
        keys = [column for column in self.columns if column.key]
        is_row_id = len(keys) == 1 and keys[0].type.upper() == "INTEGER" and not self.key_indexed
        return keys[0].name if is_row_id else ""

    def slots(self, wanted: Sequence[str]) -> tuple[npt.NDArray[np.intc], int] | None:
        """For each column the place among those wanted (0 is the row id), and which is the row id, -1 for none.

        None if the records may hold something else than what SQLite makes of them.
        """
        names, key = [column.name for column in self.columns], self.key
        plain = not any(column.hidden for column in self.columns)
        plain = plain and bool(key or not any(column.key for column in self.columns))
        declared = (column.type.upper() for column in self.columns if column.name in wanted)
        if not plain or not all("INT" in one for one in declared) or len({*wanted, key}) != len(wanted) + 1:
            return None
        places = {name: place for place, name in enumerate(wanted, 1)} | ({key: 0} if key else {})
        return np.array([places.get(name, -1) for name in names], np.intc), names.index(key) if key else -1


class Block(NamedTuple):
    """Some rows of a table, valid until the next ones are read.

    Attributes:
        columns: the row id, then what was asked for; the rows beyond `length` mean nothing.
        length: how many rows there are.
    """

    columns: I64
    length: int

    def rows(self) -> list[tuple[Any, ...]]:
        """As SQLite gives them."""
        columns: list[list[Any]] = self.columns[:, : self.length].tolist()
        for place, column in enumerate(columns):
            if NULL in column:
                columns[place] = [None if value == NULL else value for value in column]
        return list(zip(*columns, strict=True))

    def column(self, place: int) -> I64:
        """One of the columns, as far as it has rows; a copy, which stays."""
        return self.columns[place, : self.length].copy()

    def groups(self, *places: int) -> tuple[list[tuple[Any, ...]], npt.NDArray[np.intc]]:
        """The first row of each combination of values in some columns; for each row, which of them is like it."""
        found = np.empty(self.length, np.intc)
        first = kernel.module("pages").groups(self.columns, np.array(places, np.intc), self.length, found)
        return Block(np.ascontiguousarray(self.columns[:, first]), len(first)).rows(), found

    def objects(
        self, places: Sequence[int], heads: list[bytes], ends: list[bytes], end_of: npt.NDArray[np.intc]
    ) -> tuple[bytes, I64]:
        """JSON objects, one for each row, and their lengths.

        Args:
            places: columns without negative numbers, which become members.
            heads: what stands before each of them.
            ends: what stands behind the last, for each of `end_of`.
        """
        lengths = np.empty(self.length, np.int64)
        chosen = np.array(places, np.intc)
        objects = kernel.module("pages").objects
        return objects(self.columns, chosen, heads, ends, end_of, self.length, lengths), lengths


def can_read(layout: Layout, wanted: Sequence[str]) -> bool:
    """Whether `blocks` can be used for these columns of a table."""
    return kernel.module("pages") is not None and layout.slots(wanted) is not None


def blocks(path: Path, layout: Layout, wanted: Sequence[str]) -> Iterator[Block]:
    """The rows of a table in the order of their ids, up to where it is not plain.

    Args:
        path: the database.
        layout: where the table is; `can_read` it.
        wanted: the names of columns; what the table lacks reads as NULL.
    """
    pages, plan = kernel.module("pages"), layout.slots(wanted)
    assert plan is not None
    slots, key_place = plan
    columns = np.full((1 + len(wanted), _ROWS), NULL, np.int64)
    with path.open("rb") as file:
        reader = _Reader(file)
        rows = pages.Rows(reader.page_bytes, reader.usable, slots, key_place, columns)
        for data in reader.leaves(layout.root):
            at = 0
            while at < len(data):
                at = rows.read(data, at)
                if at < len(data):  # a page does not fit in, or is not plain
                    if not rows.count:
                        return
                    yield Block(columns, rows.count)
                    rows.clear()
        if rows.count:
            yield Block(columns, rows.count)


class _Reader:
    """Finds the pages of a table."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        header = file.read(100).ljust(100, b"\0")
        size = int.from_bytes(header[16:18], "big")
        self.page_bytes = 65536 if size == 1 else size
        self.usable = self.page_bytes - header[20]
        self._pages = file.seek(0, 2) // self.page_bytes if self.page_bytes >= 512 else 0

    def leaves(self, root: int) -> Iterator[bytes]:
        """The leaf pages of a table in order, some at once; nothing if its tree is not as it should be."""
        numbers = self._leaf_numbers(root)
        runs = groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])
        for _, run in runs:
            together = [number for _, number in run]
            for at in range(0, len(together), _RUN_PAGES):
                yield self._read(together[at], len(together[at : at + _RUN_PAGES]))

    def _read(self, number: int, count: int = 1) -> bytes:
        self._file.seek((number - 1) * self.page_bytes)
        return self._file.read(count * self.page_bytes).ljust(count * self.page_bytes, b"\0")

    def _leaf_numbers(self, root: int) -> list[int]:
        """Level by level: which pages of a level are leaves, its first page tells, as all are equally deep."""
        level, seen = [root], 0
        for _ in range(_MAX_DEPTH):
            seen += len(level)
            if seen > self._pages or not all(2 <= number <= self._pages for number in level):
                return []
            first = self._read(level[0])
            if first[0] == _LEAF:
                return level
            below: list[int] = []
            for number in level:
                children = self._children(self._read(number))
                if children is None:
                    return []
                below += children
            level = below
        return []

    def _children(self, page: bytes) -> list[int] | None:
        """The pages below an interior page, None if it is none."""
        cells = int.from_bytes(page[3:5], "big")
        if page[0] != _INTERIOR or _INTERIOR_HEADER_BYTES + 2 * cells > self.usable:
            return None
        at = struct.unpack_from(f">{cells}H", page, _INTERIOR_HEADER_BYTES)
        if any(not _INTERIOR_HEADER_BYTES + 2 * cells <= one <= self.usable - 5 for one in at):
            return None
        found = [int.from_bytes(page[one : one + 4], "big") for one in at]
        return [*found, int.from_bytes(page[8:12], "big")]

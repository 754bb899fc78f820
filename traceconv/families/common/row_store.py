"""Rows that an importer keeps until it has seen all of them: encoded, and in a file when memory is short."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from traceconv.io.spill import forget
from traceconv.model.arg_bytes import Args
from traceconv.model.builder import Builder
from traceconv.model.columns import Column, kept_rows

#: The rows that are read at a time.
_BLOCK = 1 << 13

_PART_BYTES = 4 << 20

T = TypeVar("T")


class RowStore(Generic[T]):
    """Rows of one type by number. All are added before the first one is read.

    Args:
        out: the builder of the input; the rows count in its memory until it is finished.
        row_type: the type of a row, which msgspec can encode.
    """

    def __init__(self, out: Builder, row_type: type[T]) -> None:
        self._out = out
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(row_type).decode
        self._at, self._length = Column(np.int64), Column(np.int32)
        self._arrays: list[npt.NDArray[Any]] = []
        self._mappings: tuple[mmap.mmap, ...] = ()
        self._parts = out.tables.temporary_parts()
        self._encoded = bytearray()  # since the last part
        self._before = 0  # bytes in the parts
        self._kept = Args()
        self._reads = 0
        out.tables.kept_columns = [*out.tables.kept_columns, self._at, self._length]

    def add(self, row: T) -> int:
        """Keep a row; return its number."""
        encoded = self._encode(row)
        self._at.append(self._before + len(self._encoded))
        self._length.append(len(encoded))
        self._encoded += encoded
        if len(self._encoded) >= _PART_BYTES:
            self._part()
        self._out.tables.kept_rows(len(self._at))
        return len(self._at) - 1

    def close(self) -> None:
        """End adding."""
        own, tables = [self._at, self._length], self._out.tables
        tables.kept_columns = [column for column in tables.kept_columns if column not in own]
        if len(self._at):
            self._part()
            self._arrays, self._mappings = kept_rows(own)
            if self._mappings:
                self._parts.spill()
            self._kept = Args(self._parts.take())

    def _part(self) -> None:
        """Move the rows since the last part to the parts."""
        self._parts.append(self._encoded)
        self._before += len(self._encoded)
        self._encoded = bytearray()

    def rows(self, numbers: range | npt.NDArray[np.int64]) -> Iterator[T]:
        """Yield the rows with these numbers, a copy of each."""
        for start in range(0, len(numbers), _BLOCK):
            here = numbers[start : start + _BLOCK]
            place = slice(here.start, here.stop) if isinstance(here, range) else here
            for at, length in zip(*(array[place].tolist() for array in self._arrays), strict=True):
                yield self._decode(self._kept.view(at, length))
            self._drop_pages()

    def row(self, number: int) -> T:
        """Return the row with a number, a copy."""
        self._reads += 1
        if self._reads % _BLOCK == 0:
            self._drop_pages()
        at, length = (int(array[number]) for array in self._arrays)
        return self._decode(self._kept.view(at, length))

    def _drop_pages(self) -> None:
        for mapping in self._mappings:
            forget(mapping)

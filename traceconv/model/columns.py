"""Growing columns: in memory, and moved to temporary files when memory is short."""

from __future__ import annotations

import mmap
import shutil
import weakref
from array import array
from collections.abc import Iterable, Sequence
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from traceconv.io.spill import close, failures, temporary_file

_TYPECODES = {np.int64: "q", np.int32: "i", np.float64: "d", np.uint8: "B"}
_COPIED = 1 << 20
#: More rows that an importer keeps are in a file while it draws them: what it draws needs as much memory again.
_MOST_KEPT = 1 << 20
_ALIGNED = 8


class Column:
    """A growing array of numbers of one type.

    Attributes:
        append: a function that adds one number; replaced by each `spill`.
        frombytes: a function that adds the numbers in the bytes of an array of the same type; replaced by each `spill`.
    """

    __slots__ = ("__weakref__", "_before", "_file", "_tail", "append", "frombytes")

    def __init__(self, dtype: Any) -> None:
        self._tail: array[Any] = array(_TYPECODES[dtype])  # the numbers that are not in the file
        self._file: IO[bytes] | None = None
        self._before = 0  # how many numbers are in the file
        self._bind()

    def _bind(self) -> None:
        """Expose the methods of the array itself: a wrapper call for each number would cost more than they do."""
        self.append, self.frombytes = self._tail.append, self._tail.frombytes

    def __len__(self) -> int:
        return self._before + len(self._tail)

    @property
    def nbytes(self) -> int:
        """The bytes of all numbers."""
        return len(self) * self._tail.itemsize

    @property
    def is_spilled(self) -> bool:
        """Whether some numbers are in a file."""
        return self._file is not None

    def put(self, values: npt.NDArray[Any]) -> None:
        """Append the numbers of an array of this type."""
        self.frombytes(np.ascontiguousarray(values, self._tail.typecode).view(np.uint8).data)

    def spill(self) -> None:
        """Move all numbers to the file.

        Raises:
            OutputError: the temporary file cannot be written.
        """
        if not self._tail:
            return
        with failures():
            if self._file is None:
                self._file = temporary_file()
                weakref.finalize(self, close, self._file)
            self._file.write(self._tail)
        self._before += len(self._tail)
        self._tail = array(self._tail.typecode)  # a view of the old array keeps it alive
        self._bind()

    def replace(self, parts: Iterable[npt.NDArray[Any]]) -> None:
        """Replace all numbers by those of some arrays, which may be made of the former ones.

        Raises:
            OutputError: the temporary file cannot be written.
        """
        file, self._file, self._before = self._file, None, 0
        self._tail = array(self._tail.typecode)
        self._bind()
        for part in parts:
            self.put(part)
            if file is not None:
                self.spill()
        if file is not None:
            close(file)

    def numbers(self) -> npt.NDArray[Any]:
        """Return all numbers without a copy. Do not write to them if the column `is_spilled`.

        A column in memory cannot grow while the result is in use; Python raises BufferError.

        Raises:
            OutputError: the temporary file cannot be written.
        """
        if self._file is None:
            return np.frombuffer(self._tail, self._tail.typecode)
        self.spill()
        with failures():
            self._file.flush()
            return np.frombuffer(mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ), self._tail.typecode)

    def move_to(self, file: IO[bytes]) -> tuple[str, int, int]:
        """Append all numbers to a file; return their type, their count, and the offset of the first one."""
        start = -file.tell() % _ALIGNED + file.tell()
        file.seek(start)
        if self._file is not None:
            self._file.seek(0)
            shutil.copyfileobj(self._file, file, _COPIED)
            self._file.close()
        file.write(self._tail)
        place = self._tail.typecode, len(self), start
        self._tail = array(self._tail.typecode)
        self._bind()  # otherwise the methods keep the old array
        return place


def finished(
    columns: Sequence[Column], *, in_file: bool
) -> tuple[list[npt.NDArray[Any]], tuple[()] | tuple[mmap.mmap]]:
    """Return the numbers of columns, which are consumed; with `in_file` in a mapped file, and its mapping.

    Raises:
        OutputError: the temporary file cannot be written.
    """
    if not in_file:
        return [column.numbers() for column in columns], ()
    arrays, mapping = in_one_file(columns)
    return arrays, (mapping,)


def kept_rows(columns: Sequence[Column]) -> tuple[list[npt.NDArray[Any]], tuple[()] | tuple[mmap.mmap]]:
    """Return the numbers of columns, which are consumed, as `finished` does; in a file if there are many rows.

    Raises:
        OutputError: the temporary file cannot be written.
    """
    in_file = len(columns[0]) > _MOST_KEPT or any(column.is_spilled for column in columns)
    return finished(columns, in_file=in_file)


def in_one_file(columns: Sequence[Column]) -> tuple[list[npt.NDArray[Any]], mmap.mmap]:
    """Move the numbers of columns, which are consumed, to one file; return them as writable arrays, and its mapping.

    There must be at least one number.

    It is one file, since each mapping takes one of the few open files that a process may have.

    Raises:
        OutputError: the temporary file cannot be written.
    """
    with failures():
        file = temporary_file()
        with file:
            places = [column.move_to(file) for column in columns]
            file.flush()
            mapping = mmap.mmap(file.fileno(), 0)
    arrays = [
        np.frombuffer(mapping, dtype, count, start) if count else np.empty(0, dtype) for dtype, count, start in places
    ]
    return arrays, mapping

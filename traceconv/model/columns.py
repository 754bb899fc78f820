"""Growing columns of numbers, in memory or in files; how columns are sorted and scanned; and interned strings."""

from __future__ import annotations

import mmap
import operator
import shutil
import weakref
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import IO, Any, overload

import numpy as np
import numpy.typing as npt

from traceconv import kernel
from traceconv.io.spill import close, failures, temporary_file

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
U8 = npt.NDArray[np.uint8]
F64 = npt.NDArray[np.float64]

_TYPECODES = {np.int64: "q", np.int32: "i", np.float64: "d", np.uint8: "B"}
_COPIED = 1 << 20
#: More rows that an importer keeps are in a file while it draws them: what it draws needs as much memory again.
_MOST_KEPT = 1 << 20
_ALIGNED = 8


class Column:
    """A growing array of numbers of one type.

    Methods that write to its temporary file raise OutputError if they cannot.

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
        """Move all numbers to the file."""
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
        """Replace all numbers by those of some arrays, which may be made of the former ones."""
        file, self._file, self._before = self._file, None, 0
        self._tail = array(self._tail.typecode)
        self._bind()
        for part in parts:
            self.put(part)
            if file is not None:
                self.spill()
        if file is not None:
            close(file)

    def change(self, rows: I64, values: npt.NDArray[Any]) -> None:
        """Replace the numbers at some rows, which are in order."""
        numbers = self.numbers()

        def parts() -> Iterator[npt.NDArray[Any]]:
            for part in chunks(len(numbers)):
                here, changed = slice(*np.searchsorted(rows, [part.start, part.stop])), numbers[part].copy()
                changed[rows[here] - part.start] = values[here]
                yield changed

        self.replace(parts())

    def numbers(self) -> npt.NDArray[Any]:
        """Return all numbers without a copy. Do not write to them if the column `is_spilled`.

        A column in memory cannot grow while the result is in use; Python raises BufferError.
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
    """Return the numbers of columns, which are consumed; with `in_file` in a mapped file, and its mapping."""
    if not in_file:
        return [column.numbers() for column in columns], ()
    arrays, mapping = in_one_file(columns)
    return arrays, (mapping,)


def kept_rows(columns: Sequence[Column]) -> tuple[list[npt.NDArray[Any]], tuple[()] | tuple[mmap.mmap]]:
    """Return the numbers of columns, which are consumed, as `finished` does; in a file if there are many rows."""
    in_file = len(columns[0]) > _MOST_KEPT or any(column.is_spilled for column in columns)
    return finished(columns, in_file=in_file)


def in_one_file(columns: Sequence[Column]) -> tuple[list[npt.NDArray[Any]], mmap.mmap]:
    """Move the numbers of columns, which are consumed, to one file; return them as writable arrays, and its mapping.

    There must be a number. It is one file, since each mapping takes one of the few open files that a process may have.
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


# -- order ------------------------------------------------------------------------------------------------------------

#: The rows of a chunk.
_CHUNK = 1 << 18
_SMALL, _RADIX = 1 << 31, 1 << 16

#: The row numbers of a column in another order, in 4 bytes each if that is enough.
Order = npt.NDArray[Any]


def chunks(count: int) -> Iterator[slice]:
    """Yield consecutive ranges of rows that cover a column of `count` rows."""
    return (slice(start, min(start + _CHUNK, count)) for start in range(0, count, _CHUNK))


def occurring(numbers: npt.NDArray[Any]) -> list[int]:
    """Return the distinct numbers in ascending order; none may be negative.

    `np.unique` would do, but it sorts all numbers and loads numpy's masked arrays, which takes longer than a small
    conversion.
    """
    occurs = np.zeros(1 + int(np.max(numbers, initial=-1)), bool)
    for rows in chunks(len(numbers)):
        occurs[numbers[rows]] = True
    ascending: list[int] = np.flatnonzero(occurs).tolist()
    return ascending


def distinct_values(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the distinct values in ascending order.

    `np.unique` would do, but it loads numpy's masked arrays, and takes several times as long for many values.
    """
    values = np.sort(values)
    distinct: npt.NDArray[Any] = values[np.append(True, values[1:] != values[:-1])[: len(values)]]
    return distinct


def stable_order(keys: Sequence[npt.NDArray[Any]], forget: Callable[[], None]) -> Order:
    """Return the stable order of rows by several columns; numbers of 32 bits must not be negative.

    The result is that of `np.lexsort`, with a third of the memory, and faster where columns are sorted already.

    Args:
        keys: the columns; the last one is the primary key.
        forget: drops the resident pages of columns in files.
    """
    order: Order | None = None
    for key in keys:
        values = key if order is None else gathered(key, order)
        forget()
        if _ascends(values):
            continue
        if values.dtype == np.int32 and int(np.max(values)) < _RADIX:
            values = values.astype(np.uint16)  # numbers of 16 bits are sorted without comparisons
        step = _small(np.argsort(values, kind="stable"))
        del values
        order = step if order is None else gathered(order, step)
        forget()
    return np.arange(len(keys[0]), dtype=np.int32 if len(keys[0]) < _SMALL else np.int64) if order is None else order


def _ascends(values: npt.NDArray[Any]) -> bool:
    return all(bool(np.all(values[rows][1:] >= values[rows][:-1])) for rows in overlapping_chunks(len(values)))


def overlapping_chunks(count: int) -> Iterator[slice]:
    """Yield ranges of rows as `chunks` does, each with the last row of the range before it."""
    return (slice(max(rows.start - 1, 0), rows.stop) for rows in chunks(count))


def _small(order: npt.NDArray[np.int64]) -> Order:
    return order.astype(np.int32) if len(order) < _SMALL else order


def gathered(values: npt.NDArray[Any], order: Order) -> npt.NDArray[Any]:
    """Return `values[order]` in chunks; numpy would convert the whole order to 8 bytes a row first."""
    values_in_order = np.empty(len(order), values.dtype)
    for rows in chunks(len(order)):
        values_in_order[rows] = values[order[rows]]
    return values_in_order


def is_as_it_was(order: Order) -> bool:
    """Return whether an order is the identity."""
    return all(bool(np.all(order[rows] == np.arange(rows.start, rows.stop))) for rows in chunks(len(order)))


def like_next(order: Order, *columns: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return, for each row of an order but the last one, whether the next row equals it in all columns."""
    equal = np.ones(max(len(order) - 1, 0), bool)
    for rows in overlapping_chunks(len(order)):
        at = order[rows]
        for column in columns:
            values = column[at]
            equal[rows.start : rows.stop - 1] &= values[1:] == values[:-1]
    return equal


# -- strings ----------------------------------------------------------------------------------------------------------

#: The strings that are objects. Without the kernel all of them are.
_MOST_OBJECTS = 1 << 16
#: The approximate bytes of a string that is an object, and of another one; with what its importer keeps of it.
_OBJECT_BYTES, _BYTES = 250, 100


class Strings(Sequence[str]):
    """Distinct strings with numbers, from 0 on in the order in which they came.

    The first strings are objects, which is fastest: almost all traces have few. A trace in which each event has a name
    of its own has millions, and a str with its place in a dict takes 200 bytes. So further strings are UTF-8 in the
    kernel.
    """

    __slots__ = ("_numbers", "_objects", "_rest")

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._numbers: dict[str, int] = {}
        self._objects: list[str] = []
        self._rest: Any = None  # the strings that are no objects
        for text in texts:
            self.number(text)

    def number(self, text: str) -> int:
        """Return the number of a string, which gets one if it has none."""
        number = self._numbers.get(text)
        return self._further(text) if number is None else number

    def numbers(self, texts: Sequence[str]) -> list[int]:
        """Return the numbers of strings, as `number` does."""
        if self._rest is None:
            return [*map(self.number, texts)]
        found = [*map(self._numbers.get, texts)]
        further = [utf8(text) for text, number in zip(texts, found, strict=True) if number is None]
        rest = iter(self._rest.numbers(further))
        return [len(self._objects) + next(rest) if number is None else number for number in found]

    def _further(self, text: str) -> int:
        if self._rest is None and len(self._objects) >= _MOST_OBJECTS:
            module = kernel.module("strings")
            self._rest = None if module is None else module.Texts()
        if self._rest is not None:
            number: int = self._rest.number(utf8(text), True)
            return len(self._objects) + number
        number = self._numbers[text] = len(self._objects)
        self._objects.append(text)
        return number

    def for_reading(self) -> Sequence[str]:
        """Return the strings by number: a list if all are objects, which is faster and does not grow; else these."""
        return list(self._objects) if self._rest is None else self

    @property
    def nbytes(self) -> int:
        """The approximate bytes of all strings."""
        return _OBJECT_BYTES * len(self._objects) + _BYTES * (len(self) - len(self._objects))

    def __len__(self) -> int:
        return len(self._objects) + (0 if self._rest is None else len(self._rest))

    @overload
    def __getitem__(self, number: int) -> str: ...
    @overload
    def __getitem__(self, number: slice) -> list[str]: ...
    def __getitem__(self, number: int | slice) -> str | list[str]:
        if isinstance(number, slice):
            return [self[at] for at in range(*number.indices(len(self)))]
        at, objects = operator.index(number), self._objects
        if 0 <= at < len(objects):
            return objects[at]
        at += len(self) if at < 0 else 0
        if not 0 <= at < len(self):
            raise IndexError(f"no string has the number {number}")
        return objects[at] if at < len(objects) else self._rest.text(at - len(objects))

    def __iter__(self) -> Iterator[str]:
        """Yield the strings that there are now; others may be added while this is read."""
        count, objects = len(self), len(self._objects)
        yield from islice(self._objects, objects)
        if self._rest is not None:
            yield from map(self._rest.text, range(count - objects))

    def __contains__(self, text: object) -> bool:
        return self._find(text) >= 0

    def index(self, text: str, start: int = 0, stop: int | None = None) -> int:
        """Return the number of a string. Raises ValueError if none from `start` to before `stop` is."""
        number = self._find(text)
        if number not in range(*slice(start, stop).indices(len(self))):
            raise ValueError(f"{text!r} is not among the strings")
        return number

    def _find(self, text: object) -> int:
        if not isinstance(text, str):
            return -1
        number = self._numbers.get(text, -1)
        if number < 0 and self._rest is not None:
            known = self._rest.number(utf8(text), False)
            return len(self._objects) + known if known >= 0 else -1
        return number

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(map(operator.eq, self, other))

    __hash__ = None  # type: ignore[assignment]


class ByKey:
    """Numbers from 0 on by keys of bytes, as in a dict, whose keys and values take 150 bytes: there may be millions."""

    __slots__ = ("_keys", "_numbers")

    def __init__(self) -> None:
        module = kernel.module("strings")
        self._keys = _Keys() if module is None else module.Texts()
        self._numbers = array("i")

    def get(self, key: bytes) -> int:
        """Return the number of a key; -1 if it has none."""
        at: int = self._keys.number(key, False)
        return self._numbers[at] if at >= 0 else -1

    def put(self, key: bytes, number: int) -> None:
        """Set the number of a key."""
        at = self._keys.number(key, True)
        if at < len(self._numbers):
            self._numbers[at] = number
        else:
            self._numbers.append(number)

    def values(self) -> Iterator[int]:
        """Yield the numbers, in the order in which their keys came."""
        return iter(self._numbers)

    def items(self) -> Iterator[tuple[bytes, int]]:
        """Yield the keys with their numbers, in the order in which they came."""
        return ((utf8(self._keys.text(at)), number) for at, number in enumerate(self.values()))


class _Keys:
    """Distinct keys with numbers; the specification of the kernel."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._keys: list[bytes] = []

    def number(self, key: bytes, add: bool) -> int:
        number = self._numbers.get(key, -1)
        if number < 0 and add:
            number = self._numbers[key] = len(self._keys)
            self._keys.append(key)
        return number

    def text(self, number: int) -> str:
        return self._keys[number].decode("utf-8", "surrogatepass")


def utf8(text: str) -> bytes:
    """Return a text in UTF-8; a surrogate without its other half keeps its code."""
    return text.encode("utf-8", "surrogatepass")

"""Sort and scan columns in chunks, with little memory beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

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

"""Rows that are kept until the last event, as columns: a million tuples take five times the memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter

import numpy as np

from traceconv.model.columns import I64

_SOME = 1 << 14
_MOST_TEXTS = 1 << 16


class Texts:
    """Numbers texts by their hashes, and keeps some of them for messages."""

    def __init__(self) -> None:
        self._known: dict[int, bytes] = {0: b""}

    def number(self, text: bytes) -> int:
        """Return the same number for the same text; 0 for an empty one."""
        number = hash(text)
        if number not in self._known and len(self._known) < _MOST_TEXTS:
            self._known[number] = text
        return number

    def text(self, number: int) -> bytes:
        """Return the text of a number, b"" if it was not kept."""
        return self._known.get(number, b"...")


class Rows:
    """Rows of integers; the first integer is a time."""

    def __init__(self, columns: int) -> None:
        self._columns = [array("q") for _ in range(columns)]

    def __len__(self) -> int:
        return len(self._columns[0])

    def add(self, *values: int) -> None:
        """Add a row."""
        for column, value in zip(self._columns, values, strict=True):
            column.append(value)

    def extend(self, *columns: I64) -> None:
        """Add rows, given by their columns."""
        for column, values in zip(self._columns, columns, strict=True):
            column.frombytes(values.astype(np.int64).tobytes())

    def column(self, number: int) -> I64:
        """Return the values of a column, in the order of adding."""
        return np.frombuffer(self._columns[number], np.int64)

    def in_order(self) -> Iterator[tuple[int, ...]]:
        """Yield the rows sorted by time, at equal times in the order of adding."""
        return self._some(np.argsort(self.column(0), kind="stable"))

    def _some(self, order: I64) -> Iterator[tuple[int, ...]]:
        for at in range(0, len(order), _SOME):
            some = order[at : at + _SOME]
            columns = [self.column(number)[some].tolist() for number in range(len(self._columns))]
            yield from zip(*columns, strict=True)

    def groups(self) -> Iterator[Iterator[tuple[int, ...]]]:
        """Yield the rows of each group, given by the last column, sorted by time.

        Groups are in the order of their first row.
        """
        if not len(self):
            return
        _, first, group = np.unique(self.column(-1), return_index=True, return_inverse=True)
        rank = first[group]
        del first, group
        order = np.lexsort((self.column(0), rank))
        del rank
        for _, rows in groupby(self._some(order), itemgetter(-1)):
            yield rows

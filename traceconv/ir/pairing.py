"""Begins and ends that arrive as separate events become slices.

Writers do not promise order, so pairing waits until everything is known and goes through each track in order of time
(events of the same time in their order in the input). An end with a name closes the innermost open slice of that
name and leaves the others open: two slices that cross keep their true lengths, and lanes draw them apart.

Traces may hold millions of these events: they are kept in columns, as numbers, and no object is made for any of them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from traceconv.ir.trace import I32, I64

#: So many marks are Python integers at a time.
_CHUNK = 1 << 13


class Pair(NamedTuple):
    """A begin with its end, by their rows; one of them may be missing, which is -1.

    Attributes:
        misnamed: whether the end names another slice than the one that it was taken to close.
    """

    begin: int
    end: int
    misnamed: bool


class MarkColumns(NamedTuple):
    """Slices made of a begin and an end; times in ns, name and category as numbers of Marks, args as places there."""

    track: I32
    ts: I64
    dur: I64
    name: I32
    category: I32
    args_at: I64
    args_len: I32
    at: I64


class Marks:
    """The begins and ends of all tracks, in the order of the input: one row for each.

    Attributes:
        track, ts, at: as the importer gave them; ts in ns.
        args: the bytes of all args, one after the other.
    """

    def __init__(self) -> None:
        self.track = array("i")
        self.ts = array("q")
        self.at = array("q")
        self.args = bytearray()
        self._is_begin = bytearray()
        self._name = array("i")
        self._category = array("i")
        self._args_end = array("q", [0])
        self._strings: dict[str, int] = {}
        self._texts: list[str] = []

    def add(self, track: int, ts: int, is_begin: bool, name: str, category: str, args: bytes, at: int) -> None:
        """Add a mark, in the order of the input. Raises TypeError for a time that is no integer."""
        self.ts.append(ts)
        self.track.append(track)
        self.at.append(at)
        self._is_begin.append(is_begin)
        self._name.append(self._string(name))
        self._category.append(self._string(category))
        self.args += args
        self._args_end.append(len(self.args))

    def extend(
        self,
        track: I32,
        ts: I64,
        is_begin: npt.NDArray[np.uint8],
        texts: Sequence[str],
        name: I32,
        category: I32,
        args: bytes,
        args_len: I64,
        at: I64,
    ) -> None:
        """Add many marks, in the order of the input; `name` and `category` are places in `texts`."""
        own = np.zeros(len(texts), np.int32)
        for used in np.unique(np.concatenate((name, category))).tolist():
            own[used] = self._string(texts[used])
        self.ts.frombytes(ts.tobytes())
        self.track.frombytes(track.tobytes())
        self.at.frombytes(at.tobytes())
        self._is_begin += is_begin.tobytes()
        self._name.frombytes(own[name].tobytes())
        self._category.frombytes(own[category].tobytes())
        self._args_end.frombytes((np.cumsum(args_len) + len(self.args)).tobytes())
        self.args += args

    def plain_pairs(self, begins: array[int], ends: array[int]) -> MarkColumns:
        """The slices of whole pairs, as columns."""
        begin, end = np.frombuffer(begins, np.int64), np.frombuffer(ends, np.int64)
        ts = np.frombuffer(self.ts, np.int64)
        args_end = np.frombuffer(self._args_end, np.int64)
        return MarkColumns(
            np.frombuffer(self.track, np.int32)[begin],
            ts[begin],
            ts[end] - ts[begin],
            np.frombuffer(self._name, np.int32)[begin],
            np.frombuffer(self._category, np.int32)[begin],
            args_end[begin],
            (args_end[begin + 1] - args_end[begin]).astype(np.int32),
            np.frombuffer(self.at, np.int64)[begin],
        )

    def text(self, number: int) -> str:
        """A name or category of `plain_pairs`."""
        return self._texts[number]

    def _string(self, text: str) -> int:
        number = self._strings.get(text)
        if number is None:
            number = self._strings[text] = len(self._texts)
            self._texts.append(text)
        return number

    def name(self, row: int) -> str:
        """The name of a mark."""
        return self._texts[self._name[row]]

    def category(self, row: int) -> str:
        """The category of a mark."""
        return self._texts[self._category[row]]

    def args_at(self, row: int) -> int:
        """Where in `args` those of a mark begin."""
        return self._args_end[row]

    def args_len(self, row: int) -> int:
        """The length of the args of a mark."""
        return self._args_end[row + 1] - self._args_end[row]

    def args_of(self, row: int) -> bytes:
        """The args of a mark."""
        return bytes(memoryview(self.args)[self._args_end[row] : self._args_end[row + 1]])

    def span(self) -> tuple[int, ...]:
        """The first and the last instant of all marks in ns; empty without marks."""
        return (min(self.ts), max(self.ts)) if self.ts else ()

    def pairs(self) -> Iterator[Pair]:
        """All pairs, track by track, in the order of their ends; then those that never end, outermost first."""
        open_slices = _OpenSlices()
        track_before = -1
        unnamed = self._strings.get("", -1)
        for row, track, is_begin, name in self._in_order():
            if track != track_before:
                yield from open_slices.rest()
                track_before, open_slices = track, _OpenSlices()
            if is_begin:
                open_slices.add(row, name)
                continue
            begin = open_slices.take(-1 if name == unnamed else name)
            yield Pair(begin, row, begin >= 0 and name not in (unnamed, self._name[begin]))
        yield from open_slices.rest()

    def _in_order(self) -> Iterator[tuple[int, int, int, int]]:
        """Row, track, kind and name of all marks, by track, then by time, then by their order in the input."""
        tracks, names = np.frombuffer(self.track, np.int32), np.frombuffer(self._name, np.int32)
        kinds = np.frombuffer(self._is_begin, np.uint8)
        order = np.lexsort((np.frombuffer(self.ts, np.int64), tracks))
        for begin in range(0, len(order), _CHUNK):
            rows = order[begin : begin + _CHUNK]
            columns = (rows, tracks[rows], kinds[rows], names[rows])
            yield from zip(*(column.tolist() for column in columns), strict=True)


class _OpenSlices:
    """The open slices of a track, from the outermost to the innermost; each step takes constant time."""

    def __init__(self) -> None:
        self._name_of: dict[int, int] = {}
        self._by_name: dict[int, list[int]] = {}

    def add(self, row: int, name: int) -> None:
        """Open a slice inside the others."""
        self._name_of[row] = name
        self._by_name.setdefault(name, []).append(row)

    def take(self, name: int) -> int:
        """Close the innermost one of that name, or the innermost one if there is none; -1 if none is open."""
        named = self._by_name.get(name)
        if named:
            row = named.pop()
            del self._name_of[row]
            return row
        if not self._name_of:
            return -1
        row, its_name = self._name_of.popitem()
        self._by_name[its_name].pop()
        return row

    def rest(self) -> Iterator[Pair]:
        """Those that are still open."""
        return (Pair(row, -1, False) for row in self._name_of)

"""Begins and ends that arrive as separate events become slices.

Writers do not promise order, so pairing waits until everything is known and goes through each track in order of time
(events of the same time in their order in the input: by the number of the event or line). An end with a name closes
the innermost open slice of that name and leaves the others open: two slices that cross keep their true lengths, and
lanes draw them apart.

Traces may hold millions of these events: they are kept in columns, as numbers, and no object is made for any of them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from traceconv.model.trace import I32, I64

_UNNAMED = 0  # the interned string ""
#: So many marks are Python integers at a time.
_CHUNK = 1 << 13


class Pairs(NamedTuple):
    """Begins with their ends, by their rows; one of the two may be missing, which is -1.

    Attributes:
        misnamed: whether the end names another slice than the one that it was taken to close.
    """

    begin: I64
    end: I64
    misnamed: npt.NDArray[np.bool_]


class MarkColumns(NamedTuple):
    """Slices made of a begin and an end; times in ns, name and category as interned strings."""

    track: I32
    ts: I64
    dur: I64
    name: I32
    category: I32
    args_at: I64
    args_len: I32
    origin: I64


class Marks:
    """The begins and ends of all tracks, in the order of the input: one row for each.

    Attributes:
        track, ts, at: as the importer gave them; ts in ns.
        name, category: interned strings.
        args_at, args_len: where the args are among those of the trace.
    """

    def __init__(self) -> None:
        self.track = array("i")
        self.ts = array("q")
        self.at = array("q")
        self.name = array("i")
        self.category = array("i")
        self.args_at = array("q")
        self.args_len = array("i")
        self._is_begin = bytearray()

    def add(
        self, track: int, ts: int, is_begin: bool, name: int, category: int, args: tuple[int, int], at: int
    ) -> None:
        """Add a mark, in the order of the input; `args` tells where they are kept, and their length.

        Raises:
            TypeError: for a time that is no integer.
        """
        self.ts.append(ts)
        self.track.append(track)
        self.at.append(at)
        self._is_begin.append(is_begin)
        self.name.append(name)
        self.category.append(category)
        self.args_at.append(args[0])
        self.args_len.append(args[1])

    def extend(
        self,
        track: I32,
        ts: I64,
        is_begin: npt.NDArray[np.uint8],
        name: I32,
        category: I32,
        args_at: I64,
        args_len: I32,
        at: I64,
    ) -> None:
        """Add many marks, in the order of the input."""
        self.ts.frombytes(ts.tobytes())
        self.track.frombytes(track.tobytes())
        self.at.frombytes(at.tobytes())
        self._is_begin += is_begin.tobytes()
        self.name.frombytes(name.tobytes())
        self.category.frombytes(category.tobytes())
        self.args_at.frombytes(args_at.tobytes())
        self.args_len.frombytes(args_len.tobytes())

    def plain_pairs(self, begin: I64, end: I64) -> MarkColumns:
        """The slices of whole pairs, as columns."""
        ts = np.frombuffer(self.ts, np.int64)
        return MarkColumns(
            np.frombuffer(self.track, np.int32)[begin],
            ts[begin],
            ts[end] - ts[begin],
            np.frombuffer(self.name, np.int32)[begin],
            np.frombuffer(self.category, np.int32)[begin],
            np.frombuffer(self.args_at, np.int64)[begin],
            np.frombuffer(self.args_len, np.int32)[begin],
            np.frombuffer(self.at, np.int64)[begin],
        )

    def span(self) -> tuple[int, ...]:
        """The first and the last instant of all marks in ns; empty without marks."""
        return (min(self.ts), max(self.ts)) if self.ts else ()

    def pairs(self) -> Pairs:
        """All pairs, track by track, in the order of their ends; then those that never end, outermost first."""
        track, name = np.frombuffer(self.track, np.int32), np.frombuffer(self.name, np.int32)
        keys = np.frombuffer(self.at, np.int64), np.frombuffer(self.ts, np.int64), track
        in_order = bool(np.all(keys[0][1:] >= keys[0][:-1]))
        order = np.lexsort(keys[1:] if in_order else keys)
        begin, end = _pair(order, track, np.frombuffer(self._is_begin, np.uint8), name)
        misnamed = (begin >= 0) & (end >= 0) & (name[end] != _UNNAMED) & (name[end] != name[begin])
        return Pairs(begin, end, misnamed)


def _pair(order: I64, track: I32, is_begin: npt.NDArray[np.uint8], name: I32) -> tuple[I64, I64]:
    """Join each end with its begin: the innermost open one of that name, or else the innermost one.

    Args:
        order: the rows of the other columns, track by track and in order of time.
        track, is_begin, name: the begins and ends.

    Returns:
        The rows of each pair, see `Marks.pairs`; -1 stands for what is missing.
    """
    open_slices, track_before = _OpenSlices(), -1
    begins, ends = array("q"), array("q")
    for start in range(0, len(order), _CHUNK):
        rows = order[start : start + _CHUNK]
        columns = (rows, track[rows], is_begin[rows], name[rows])
        for row, on_track, begin, own in zip(*(column.tolist() for column in columns), strict=True):
            if on_track != track_before:
                begins.extend(open_slices.rest())
                track_before, open_slices = on_track, _OpenSlices()
                ends.extend([-1] * (len(begins) - len(ends)))
            if begin:
                open_slices.add(row, own)
            else:
                begins.append(open_slices.take(-1 if own == _UNNAMED else own))
                ends.append(row)
    begins.extend(open_slices.rest())
    ends.extend([-1] * (len(begins) - len(ends)))
    return np.frombuffer(begins, np.int64), np.frombuffer(ends, np.int64)


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

    def rest(self) -> Iterable[int]:
        """Those that are still open."""
        return self._name_of

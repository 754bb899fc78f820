"""Begins and ends that arrive as separate events become slices.

Writers do not promise order, so pairing waits until everything is known and goes through each track in order of time
(events of the same time in their order in the input). An end with a name closes the innermost open slice of that
name and leaves the others open: two slices that cross keep their true lengths, and lanes draw them apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter


@dataclass(frozen=True, slots=True)
class Mark:
    """One begin or end event, as it came."""

    track: int
    ts: int
    is_begin: bool
    name: str
    category: str
    args: bytes
    at: int


@dataclass(frozen=True, slots=True)
class Pair:
    """A begin with its end; one of them may be missing.

    Attributes:
        misnamed: whether the end names another slice than the one that it was taken to close.
    """

    begin: Mark | None
    end: Mark | None
    misnamed: bool = False


class Pairing:
    """Collects the marks of all tracks."""

    def __init__(self) -> None:
        self._marks: list[Mark] = []

    def add(self, mark: Mark) -> None:
        """Add one mark, in the order of the input."""
        self._marks.append(mark)

    def last_ts(self) -> int:
        """The last instant of all marks in ns, or 0."""
        return max((mark.ts for mark in self._marks), default=0)

    def pairs(self) -> Iterator[Pair]:
        """All pairs, track by track; the marks are forgotten."""
        marks = sorted(self._marks, key=attrgetter("track", "ts"))
        self._marks = []
        for _, on_track in groupby(marks, key=attrgetter("track")):
            yield from _pairs_of_track(on_track)


def _pairs_of_track(marks: Iterator[Mark]) -> Iterator[Pair]:
    open_slices: list[Mark] = []
    for mark in marks:
        if mark.is_begin:
            open_slices.append(mark)
        elif not open_slices:
            yield Pair(None, mark)
        else:
            index = _index_of(open_slices, mark.name)
            misnamed = index is None
            yield Pair(open_slices.pop(-1 if index is None else index), mark, misnamed)
    for begin in open_slices:
        yield Pair(begin, None)


def _index_of(open_slices: list[Mark], name: str) -> int | None:
    """The innermost open slice that an end of this name closes."""
    for index in range(len(open_slices) - 1, -1, -1):
        if not name or open_slices[index].name == name:
            return index
    return None

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

    def span(self) -> tuple[int, ...]:
        """The first and the last instant of all marks in ns; empty without marks."""
        times = [mark.ts for mark in self._marks]
        return (min(times), max(times)) if times else ()

    def pairs(self) -> Iterator[Pair]:
        """All pairs, track by track; the marks are forgotten."""
        marks = sorted(self._marks, key=attrgetter("track", "ts"))
        self._marks = []
        for _, on_track in groupby(marks, key=attrgetter("track")):
            yield from _pairs_of_track(on_track)


def _pairs_of_track(marks: Iterator[Mark]) -> Iterator[Pair]:
    open_slices = _OpenSlices()
    for mark in marks:
        if mark.is_begin:
            open_slices.add(mark)
        else:
            begin = open_slices.take(mark.name)
            yield Pair(begin, mark, misnamed=bool(begin and mark.name and mark.name != begin.name))
    for begin in open_slices:
        yield Pair(begin, None)


class _OpenSlices:
    """The open slices of a track, from the outermost to the innermost; each step takes constant time."""

    def __init__(self) -> None:
        self._all: dict[int, Mark] = {}
        self._by_name: dict[str, list[int]] = {}
        self._added = 0

    def add(self, mark: Mark) -> None:
        """Open a slice inside the others."""
        self._added += 1
        self._all[self._added] = mark
        self._by_name.setdefault(mark.name, []).append(self._added)

    def take(self, name: str) -> Mark | None:
        """Close the innermost one of that name, or the innermost one if there is none or the name is empty."""
        if name and (named := self._by_name.get(name)):
            return self._all.pop(named.pop())
        if not self._all:
            return None
        _, mark = self._all.popitem()
        self._by_name[mark.name].pop()
        return mark

    def __iter__(self) -> Iterator[Mark]:
        return iter(self._all.values())

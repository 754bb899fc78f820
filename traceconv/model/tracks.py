"""A compact sequence of tracks: a trace may have millions."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import overload

from traceconv.model.trace import ClockId, Track, TrackId, TrackKind

_KINDS = list(TrackKind)
_NO_NUMBER = -(2**63)
_PROCESS = int(TrackKind.PROCESS)


class Tracks(Sequence[Track]):
    """Tracks by number: usual ones are rows of columns, those with other attributes or with changes are objects."""

    def __init__(self, tracks: Iterable[Track] = ()) -> None:
        self._kinds = bytearray()
        self._names: list[str] = []
        self._descriptions: list[str] = []
        self._parents, self._clocks, self._sources = array("i"), array("i"), array("i")
        self._numbers = array("q")  # pids of processes, tids of the others
        self._objects: dict[int, Track] = {}
        for track in tracks:
            self.append(track)

    def append(self, track: Track) -> None:
        """Add a copy of a track; to change it later, use `own`."""
        number = track.pid if track.kind is TrackKind.PROCESS else track.tid
        if number is None or not _NO_NUMBER < number <= -(_NO_NUMBER + 1):
            number = _NO_NUMBER
        self._kinds.append(track.kind)
        self._names.append(track.name)
        self._descriptions.append(track.description)
        self._parents.append(track.parent)
        self._clocks.append(track.clock)
        self._sources.append(track.source)
        self._numbers.append(number)
        if self._of_columns(len(self) - 1) != track:
            self._objects[len(self) - 1] = track

    def own(self, index: int) -> Track:
        """Return a track by number, as an object whose changes are kept."""
        return self._objects.setdefault(index, self[index])

    def _of_columns(self, index: int) -> Track:
        return _track(
            self._kinds[index],
            self._names[index],
            TrackId(self._parents[index]),
            self._numbers[index],
            self._descriptions[index],
            ClockId(self._clocks[index]),
            self._sources[index],
        )

    def __len__(self) -> int:
        return len(self._kinds)

    @overload
    def __getitem__(self, index: int) -> Track: ...

    @overload
    def __getitem__(self, index: slice) -> list[Track]: ...

    def __getitem__(self, index: int | slice) -> Track | list[Track]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        if index < 0:
            index += len(self)
        return self._objects.get(index) or self._of_columns(index)

    def __iter__(self) -> Iterator[Track]:
        columns = self._kinds, self._names, self._parents, self._numbers, self._descriptions, self._clocks
        if not self._objects:
            return map(_track, *columns, self._sources)
        return map(self.__getitem__, range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(Track.__eq__, self, other))

    __hash__ = None  # type: ignore[assignment]


def _track(kind: int, name: str, parent: TrackId, number: int, description: str, clock: ClockId, source: int) -> Track:
    known = None if number == _NO_NUMBER else number
    pid, tid = (known, None) if kind == _PROCESS else (None, known)
    return Track(_KINDS[kind], name, parent, pid, tid, "", description, None, (), clock, source)

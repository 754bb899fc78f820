"""Tracks, the rows of the timeline, and a compact table of them: a trace may have millions."""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NewType, TypeVar, overload

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from traceconv.model.columns import I32, I64
from traceconv.model.numbers import EVER

_Number = TypeVar("_Number", np.int32, np.int64)

TrackId = NewType("TrackId", int)
ClockId = NewType("ClockId", int)
NO_TRACK = TrackId(-1)


class TrackKind(enum.IntEnum):
    """The kind of a track.

    PROCESS and THREAD are those of the operating system, COUNTER holds values, TRACK is anything else: a device queue,
    a lane, a group of tracks.
    """

    PROCESS = 0
    THREAD = 1
    TRACK = 2
    COUNTER = 3


class StatedTrack(Struct, frozen=True):
    """What an output of traceconv states about a track.

    Attributes:
        input: its input, an index into `SourceInfo.stated`.
        carries: as `Track.carries`, with such indices.
        without_pid: whether the pid is not known, and was made up for pictures or is not shown.
    """

    input: int = 0
    carries: tuple[tuple[str, int, int], ...] = ()
    without_pid: bool = False


NOT_STATED = StatedTrack()


class Track(Struct):
    """A row of the timeline, or a group of rows.

    Attributes:
        name: the name, "" if that of a process or thread is not known.
        parent: the track that it belongs to, declared before it; NO_TRACK at the top.
        pid: PROCESS only: the number of the operating system, None if there is none.
        tid: THREAD only: the number of the operating system, None if there is none.
        unit: COUNTER only: "bytes", "count", ...
        rank: position among its siblings; smaller is higher, None comes last in order of creation.
        labels: PROCESS only: short remarks beside the name.
        clock: the domain of the times on it, an index into Trace.clocks.
        source: the input that it comes from, an index into Trace.sources.
        carries: in a merge, where a thread that several inputs record is one track: a table, an input, and the time
            (ns) from which the rows of that table on this track are of that input, in order of time; all others are
            of `source`.
        lane_of: set on an overflow lane: the track whose overlapping slices it takes.
        shares_lanes: whether the track may be put on one lane with others of the same name and parent that do not
            overlap it in time (used for asynchronous operations, which have a track for each id).
        unknown: PROCESS only: whether it stands for the unknown processes of its threads.
        shown: the name in pictures, if it differs; "" for `name`.
        name_in_rank: the name below a process that names the rank of the input, if it differs; "" for `name`.
        doubts: why its place in time is uncertain, such as "not aligned", on the topmost tracks of a clock.
        stated: what an output of traceconv that was read states about it.
        synthetic: whether its times are synthetic although its clock is not: in a merge, all tracks have one clock.
    """

    kind: TrackKind
    name: str
    parent: TrackId = NO_TRACK
    pid: int | None = None
    tid: int | None = None
    unit: str = ""
    description: str = ""
    rank: int | None = None
    labels: tuple[str, ...] = ()
    clock: ClockId = ClockId(0)
    source: int = 0
    carries: tuple[tuple[str, int, int], ...] = ()
    lane_of: TrackId = NO_TRACK
    shares_lanes: bool = False
    unknown: bool = False
    shown: str = ""
    name_in_rank: str = ""
    doubts: tuple[str, ...] = ()
    stated: StatedTrack = NOT_STATED
    synthetic: bool = False

    def inputs_over_time(self, table: str) -> list[tuple[int, int]]:
        """Return the inputs of the rows of a table on it, each with the time (ns) from which rows are of it."""
        return [(EVER, self.source), *((since, source) for name, source, since in self.carries if name == table)]


#: The number of a track that has none, and of one whose number is beyond 64 bits.
NO_NUMBER, BEYOND = -(2**63), -(2**63) + 1
#: The attributes that are numbers in columns, and those that are texts.
Attribute = Literal["kind", "shares_lanes", "parent", "clock", "source", "lane_of"]
Text = Literal["name", "description"]

_KINDS = list(TrackKind)
_MAX_NUMBER = 2**31 - 1
_PROCESS = int(TrackKind.PROCESS)
#: The numbers of a track; the last one is the pid of a process or the tid of another track.
_ROW = struct.Struct("<BBiiiq")
_NAMES = ("kind", "shares_lanes", "parent", "clock", "source", "number")
_DTYPE = np.dtype(list(zip(_NAMES, ("u1", "u1", "<i4", "<i4", "<i4", "<i8"), strict=True)))


class Tracks(Sequence[Track]):
    """Tracks by number: usual ones are rows of columns, those with other attributes or with changes are objects.

    A pass over all tracks should take the columns that it needs: `column`, `texts` and `numbers` create no objects.
    """

    def __init__(self, tracks: Iterable[Track] = ()) -> None:
        self._rows = bytearray()
        self._texts: dict[str, list[str]] = {"name": [], "description": []}
        self._objects: dict[int, Track] = {}
        if isinstance(tracks, Tracks):
            self.extend(tracks)
        else:
            for track in tracks:
                self.append(track)

    # -- one track ----------------------------------------------------------------------------------------------

    def append(self, track: Track) -> None:
        """Add a copy of a track; to change it later, use `changeable`."""
        self._rows += _ROW.pack(*_numbers(track))
        for name, texts in self._texts.items():
            texts.append(getattr(track, name))
        index = len(self) - 1
        if self._of_columns(index) != track:
            self._objects[index] = track

    def add(
        self,
        kind: TrackKind,
        name: str,
        parent: TrackId,
        number: int,
        description: str,
        clock: ClockId,
        source: int = 0,
        *,
        shares_lanes: bool = False,
    ) -> TrackId:
        """Add a track with nothing but columns; `number` is a pid or tid of at most 64 bits, or NO_NUMBER."""
        self._rows += _ROW.pack(kind, shares_lanes, parent, clock, source, number)
        names = self._texts["name"]
        names.append(name)
        self._texts["description"].append(description)
        return TrackId(len(names) - 1)

    def rename(self, index: int, name: str) -> None:
        """Change the name of a track."""
        track = self._objects.get(index)
        if track is None:
            self._texts["name"][index] = name
        else:
            track.name = name

    def put(self, index: int, track: Track) -> None:
        """Replace a track."""
        self._objects[index] = track

    def changeable(self, index: int) -> Track:
        """Return a track by number, as an object whose changes are kept."""
        return self._objects.setdefault(index, self[index])

    def settle(self) -> None:
        """Move what was changed into the columns, where possible: objects that `changeable` returned are let go."""
        objects, self._objects = self._objects, {}
        for index, track in objects.items():
            _ROW.pack_into(self._rows, index * _ROW.size, *_numbers(track))
            for name, texts in self._texts.items():
                texts[index] = getattr(track, name)
            if self._of_columns(index) != track:
                self._objects[index] = track

    def _of_columns(self, index: int) -> Track:
        row = _ROW.unpack_from(self._rows, index * _ROW.size)
        return _track(row, self._texts["name"][index], self._texts["description"][index])

    def _columns(self) -> npt.NDArray[Any]:
        """Return the numbers of all tracks, which cannot grow while the result is in use."""
        return np.frombuffer(self._rows, _DTYPE)

    def __len__(self) -> int:
        return len(self._texts["name"])

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
        if not self._objects:
            return map(_track, _ROW.iter_unpack(self._rows), *self._texts.values())
        return map(self.__getitem__, range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(Track.__eq__, self, other))

    __hash__ = None  # type: ignore[assignment]

    # -- all tracks ---------------------------------------------------------------------------------------------

    def column(self, attribute: Attribute) -> I32:
        """Return an attribute of all tracks, as a new column."""
        is_stored = attribute in _NAMES
        values = np.array(self._columns()[attribute] if is_stored else np.full(len(self), NO_TRACK), np.int32)
        for index, track in self._objects.items():
            values[index] = getattr(track, attribute)
        return values

    def texts(self, attribute: Text) -> list[str]:
        """Return a text of all tracks, as a new list."""
        texts = list(self._texts[attribute])
        for index, track in self._objects.items():
            texts[index] = getattr(track, attribute)
        return texts

    def numbers(self) -> I64:
        """Return the pids of processes and the tids of the others; NO_NUMBER for none, BEYOND beyond 64 bits."""
        values = np.array(self._columns()["number"], np.int64)
        for index, track in self._objects.items():
            number = track.pid if track.kind is TrackKind.PROCESS else track.tid
            values[index] = BEYOND if number is not None and _number(track) == NO_NUMBER else _number(track)
        return values

    def special(self) -> Iterator[tuple[int, Track]]:
        """Yield the tracks that have more than columns hold, by number and in order: labels, a rank, lanes, a unit."""
        return ((index, self._objects[index]) for index in sorted(self._objects))

    def special_of(self, index: int) -> Track | None:
        """Return a track if it has more than columns hold."""
        return self._objects.get(index)

    def replaced(self, **columns: Sequence[Any] | npt.NDArray[Any]) -> Tracks:
        """Return a copy with the given attributes replaced, such as `source=...`: a value for each track.

        It shares what is not replaced: append to a copy of it, `Tracks(...)`.
        """
        copy = Tracks()
        copy._rows, copy._texts = self._rows, dict(self._texts)
        if not columns.keys() <= self._texts.keys():
            copy._rows = bytearray(self._rows)
        for name, values in columns.items():
            if name in self._texts:
                copy._texts[name] = list(values)
            elif name in _NAMES:
                copy._columns()[name] = values
        for index, track in self._objects.items():
            copy._objects[index] = replace(track, **{name: _plain(values[index]) for name, values in columns.items()})
        return copy

    def taken(self, rows: npt.NDArray[Any]) -> Tracks:
        """Return the given tracks in that order, with their parents and the tracks of lanes renumbered.

        The parents and the tracks of lanes must be among them.
        """
        new_number = np.full(len(self) + 1, NO_TRACK, np.int32)  # the last one is for NO_TRACK
        new_number[rows] = np.arange(len(rows))
        taken = Tracks()
        columns = self._columns()[rows]
        columns["parent"] = new_number[columns["parent"]]
        taken._rows += columns.tobytes()
        for name, texts in self._texts.items():
            taken._texts[name] = [texts[row] for row in rows.tolist()]
        for index, track in self._objects.items():
            if new_number[index] != NO_TRACK:
                parent, lane_of = (TrackId(int(new_number[above])) for above in (track.parent, track.lane_of))
                taken._objects[int(new_number[index])] = replace(track, parent=parent, lane_of=lane_of)
        return taken

    def extend(self, tracks: Tracks) -> None:
        """Add other tracks behind, with their parents and the tracks of lanes renumbered."""
        by = len(self)
        columns = tracks._columns().copy()
        columns["parent"][columns["parent"] != NO_TRACK] += by
        self._rows += columns.tobytes()
        for name, texts in self._texts.items():
            texts += tracks._texts[name]
        for index, track in tracks._objects.items():
            if by:
                parent, lane_of = (
                    TrackId(above + by if above != NO_TRACK else above) for above in (track.parent, track.lane_of)
                )
                track = replace(track, parent=parent, lane_of=lane_of)
            self._objects[index + by] = track


def _number(track: Track) -> int:
    """Return the number of a track as a column holds it; NO_NUMBER also for one that does not fit."""
    number = track.pid if track.kind is TrackKind.PROCESS else track.tid
    return NO_NUMBER if number is None or not BEYOND < number <= -(NO_NUMBER + 1) else number


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, np.integer) else value


def _numbers(track: Track) -> tuple[int, ...]:
    """Return the numbers of a track as its row holds them."""
    return track.kind, track.shares_lanes, track.parent, track.clock, track.source, _number(track)


def _track(row: tuple[int, ...], name: str, description: str) -> Track:
    kind, shares_lanes, parent, clock, source, number = row
    known = None if number == NO_NUMBER else number
    pid, tid = (known, None) if kind == _PROCESS else (None, known)
    above, domain = TrackId(parent), ClockId(clock)
    track = Track(_KINDS[kind], name, above, pid, tid, "", description, None, (), domain, source)
    if shares_lanes:
        track.shares_lanes = True
    return track


def possible(numbers: I64) -> npt.NDArray[np.bool_]:
    """Return which numbers a process or thread can have, as viewers know it: 0 is the idle task, negative is none."""
    return (numbers > 0) & (numbers <= _MAX_NUMBER)


def processes(tracks: Tracks) -> I64:
    """Return the process of each track, as the number of a track; the topmost track above it if it has none."""
    parent, number = tracks.column("parent"), np.arange(len(tracks))
    return topmost(np.where((parent == NO_TRACK) | (tracks.column("kind") == TrackKind.PROCESS), number, parent))


def topmost(above: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
    """Return for each track the one at the top of it, given the one above each; one at the top is above itself."""
    top = above
    while not np.array_equal(higher := top[top], top):
        top = higher
    return top

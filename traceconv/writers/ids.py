"""Choose pids, tids and names of processes and threads, the same for all writers.

A pid or tid of the input is kept where viewers can show it: from 1 to 2**31 - 1, a pid once in the trace, a tid once in
its process. All others are replaced by numbers above the largest pid of Linux (2**22), in track order; the original
number is put into the name. A track with neither number nor name is named "process" or "thread", since viewers would
show no title, or the replacement. Chrome JSON has processes and threads only: there each other track gets such a
number, too.

The UI of Perfetto (v52) shows the number of each process and thread, so there only what has one is written as such. All
else is a group or a row, with the number of the input in its name. Replacements are seen in two cases: Perfetto takes
log entries and samples on processes and threads only, where 0 or none would be the idle task. And all processes with
one pid, as ranks in containers have, are processes, since a group shows nothing while it is shut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count, islice
from typing import Any, overload

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from traceconv.model.columns import I32, I64, occurring
from traceconv.model.trace import Trace
from traceconv.model.track_table import NO_NUMBER, NO_TRACK, Track, TrackKind, Tracks, possible, topmost

_FIRST_INVENTED = 10_000_000
_MAX_RANK = 2**62


class Identity(Struct):
    """The process, numbers and name of a track for viewers.

    Attributes:
        process: the process that it belongs to (its own index for a process); without one, its topmost track.
        pid: the number of that process.
        tid: the number of the track as a thread; 0 for a counter.
        name: its name, with the original number if that was replaced; "" only for a track with a number of its own, or
            that is not a process or thread.
        title: the name with the doubts behind it.
        native: PROCESS and THREAD only: whether to write it as a process or thread with a number. A track whose number
            viewers cannot show, and without events that need one, is written without.
        parent: the track that it is shown inside of; a lane is beside its main track, or inside it if that is native.
        position: its position among its siblings, from 0.
    """

    process: int
    pid: int = 0
    tid: int = 0
    name: str = ""
    title: str = ""
    native: bool = False
    parent: int = NO_TRACK
    position: int = 0


class Identities(Sequence[Identity]):
    """The identities of all tracks of a trace, in columns: a pass over all tracks takes these."""

    def __init__(self, trace: Trace) -> None:
        tracks = self._tracks = trace.tracks
        kind, parent, lane_of = tracks.column("kind"), tracks.column("parent"), tracks.column("lane_of")
        self._parent_of, self._lane_of = parent.data, lane_of.data
        is_lane = lane_of != NO_TRACK
        above = np.where(is_lane, lane_of, parent)
        is_top = ~is_lane & ((parent == NO_TRACK) | (kind == TrackKind.PROCESS))
        self.process: I32 = topmost(np.where(is_top, np.arange(len(tracks), dtype=np.int32), above))
        self.names = tracks.texts("name")
        numbers = tracks.numbers()
        invented = _unused(numbers)
        own_pid = self._number_processes(tracks, kind, is_top, numbers, invented)
        self.pid: I32 = own_pid[self.process]
        self.tid: I32 = self._number_threads(tracks, kind, lane_of, numbers, invented)
        self.native = self._natives(trace, kind, numbers)
        beside = is_lane & ~self.native[lane_of]
        self.parent: I32 = np.where(beside, parent[lane_of], parent)
        self.position = _positions(tracks, self.parent, lane_of)

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, index: int) -> Identity: ...

    @overload
    def __getitem__(self, index: slice) -> list[Identity]: ...

    def __getitem__(self, index: int | slice) -> Identity | list[Identity]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        return Identity(
            int(self.process[index]),
            int(self.pid[index]),
            int(self.tid[index]),
            self.names[index],
            self.title(index),
            bool(self.native[index]),
            int(self.parent[index]),
            int(self.position[index]),
        )

    def title(self, index: int) -> str:
        """Return the name of a track with the doubts behind it; for a lane, those of its main track."""
        track = self._tracks.special_of(index)
        if track is not None and track.lane_of != NO_TRACK:
            track = self._tracks.special_of(track.lane_of)
        return self.names[index] if track is None else with_doubts(self.names[index], track, track.doubts)

    def groups_above(self, process: int) -> list[str]:
        """Return the names of the tracks around a process, outermost first, which viewers cannot show."""
        names = []
        at = self._parent_of[process]
        while at != NO_TRACK:
            names.append(self._tracks[at].name)
            at = self._parent_of[at]
        return names[::-1]

    def path_below_process(self, index: int) -> str:
        """Return the names of the tracks from below the process of a track down to it, joined by " / "."""
        names: list[str] = []
        at, process = index, self.process[index]
        if self._lane_of[index] != NO_TRACK:
            at = self._lane_of[index]
        while at != process:
            names.append(self.title(at) or f"tid {self.tid[at]}")
            at = self._parent_of[at]
        return " / ".join(reversed(names)) or self.title(index)

    def _number_processes(
        self, tracks: Tracks, kind: I32, is_top: npt.NDArray[np.bool_], numbers: I64, invented: Iterator[int]
    ) -> I32:
        """Return the pids of processes and of tracks without one; name those whose numbers are replaced."""
        is_process = kind == TrackKind.PROCESS
        keeps = _first_of_each(numbers, is_top & is_process & possible(numbers))
        new = np.flatnonzero(is_top & ~keeps)
        pids = np.where(keeps, numbers, 0).astype(np.int32)
        pids[new] = np.fromiter(islice(invented, len(new)), np.int32, len(new))
        for index in new[is_process[new]].tolist():
            pid = None if numbers[index] == NO_NUMBER else tracks[index].pid
            self.names[index] = _with_original(self.names[index], "pid", pid) or "process"
        return pids

    def _number_threads(self, tracks: Tracks, kind: I32, lane_of: I32, numbers: I64, invented: Iterator[int]) -> I32:
        """Return the tids of all tracks but counters; name those whose numbers are replaced."""
        is_thread, is_counter, is_lane = kind == TrackKind.THREAD, kind == TrackKind.COUNTER, lane_of != NO_TRACK
        keeps = _first_of_each(self.pid.astype(np.int64) << 32 | numbers, is_thread & ~is_lane & possible(numbers))
        new = np.flatnonzero(~is_counter & ~keeps)
        tids = np.where(keeps, numbers, 0).astype(np.int32)
        tids[new] = np.fromiter(islice(invented, len(new)), np.int32, len(new))
        for index in new[(is_thread | is_lane)[new]].tolist():
            if is_lane[index]:
                self.names[index] = self.names[lane_of[index]]
            else:
                tid = None if numbers[index] == NO_NUMBER else tracks[index].tid
                self.names[index] = _with_original(self.names[index], "tid", tid) or "thread"
        return tids

    def _natives(self, trace: Trace, kind: I32, numbers: I64) -> npt.NDArray[np.bool_]:
        # Perfetto accepts call stacks and log entries of threads only.
        native = np.zeros(len(self), bool)
        native[[*occurring(trace.samples.track), *occurring(trace.logs.track)]] = True
        native[self.process[native]] = True
        native |= (kind == TrackKind.PROCESS) & possible(numbers)
        native |= (kind == TrackKind.THREAD) & (self.tid == numbers) & native[self.process]
        return native


def _unused(numbers: I64) -> Iterator[int]:
    """Yield the numbers to invent: those that no process or thread of the trace has."""
    taken = set(numbers[numbers >= _FIRST_INVENTED].tolist())
    return (number for number in count(_FIRST_INVENTED) if number not in taken)


def _first_of_each(keys: I64, among: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return for each row that is `among` those to look at whether it is the first one of its key."""
    rows = np.flatnonzero(among)
    order = rows[np.argsort(keys[rows], kind="stable")]
    first = np.zeros(len(keys), bool)
    first[order[:1]] = True
    first[order[1:][keys[order[1:]] != keys[order[:-1]]]] = True
    return first


def _with_original(name: str, kind: str, number: int | None) -> str:
    if number is None:
        return name
    return f"{name} ({kind} {number})" if name else f"{kind} {number}"


def _positions(tracks: Tracks, parent: I32, lane_of: I32) -> I32:
    """Return the positions of tracks among those with the same parent: by rank, if any, then in order of creation.

    A lane follows its main track.
    """
    all_tracks = np.arange(len(tracks), dtype=np.int32)
    has_rank, rank = np.zeros(len(tracks), bool), np.zeros(len(tracks), np.int64)
    for index, track in tracks.special():
        if track.rank is not None:
            has_rank[index], rank[index] = True, max(-_MAX_RANK, min(track.rank, _MAX_RANK))
    main = np.where(lane_of == NO_TRACK, all_tracks, lane_of)
    order = np.lexsort((all_tracks, main, rank[main], ~has_rank[main], parent))
    return numbered(order, parent)


def numbered(order: npt.NDArray[np.intp], *groups: npt.NDArray[Any]) -> I32:
    """Return the position of each row among those with equal values in `groups`, in an order that has them together."""
    starts = np.zeros(len(order), bool)
    starts[:1] = True
    for group in groups:
        starts[1:] |= group[order[1:]] != group[order[:-1]]
    first = np.maximum.accumulate(np.where(starts, np.arange(len(order)), 0))
    positions = np.empty(len(order), np.int32)
    positions[order] = np.arange(len(order)) - first
    return positions


def tree_order(ids: Identities) -> I64:
    """Return the position of each track in the tree of all tracks: parents before children, siblings by position."""
    parents, sizes = ids.parent.data, np.ones(len(ids), np.int64)
    size = sizes.data
    for number in range(len(ids) - 1, -1, -1):  # parents come before their children
        if parents[number] != NO_TRACK:
            size[parents[number]] += size[number]
    order = np.lexsort((ids.position, ids.parent))
    before = np.zeros(len(ids), np.int64)  # the tracks below earlier siblings
    before[order] = np.cumsum(sizes[order]) - sizes[order]
    first = order[ids.position[order] == 0]
    starts = np.zeros(len(ids) + 1, np.int64)  # the last one is for NO_TRACK
    starts[ids.parent[first]] = before[first]
    places = before - starts[ids.parent]
    place = places.data
    for number, parent in enumerate(parents):
        if parent != NO_TRACK:
            place[number] += place[parent] + 1
    return places


def with_doubts(name: str, track: Track, doubts: Sequence[str]) -> str:
    """Return a name of a track with doubts behind it: "python (not aligned)"; without a name its number is the name."""
    if not doubts:
        return name
    return " ".join(filter(None, (name or _numbered(track), *(f"({doubt})" for doubt in doubts))))


def without_doubts(name: str, track: Track, doubts: Sequence[str]) -> str:
    """Return the name of a track from its name with doubts, as `with_doubts` returns it."""
    name = name.removesuffix(with_doubts("", Track(TrackKind.TRACK, ""), doubts)).removesuffix(" ")
    return "" if name == _numbered(track) else name


def _numbered(track: Track) -> str:
    """Return "process 7" or "thread 8"; "" for a track without a number."""
    number = track.tid if track.kind is TrackKind.THREAD else track.pid
    return "" if number is None else f"{track.kind.name.lower()} {number}"

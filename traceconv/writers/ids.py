"""Choose pids, tids and names of processes and threads, the same for all writers.

A pid or tid of the input is kept where viewers can show it: from 1 to 2**31 - 1, a pid once in the trace, a tid once in
its process. All others are replaced by numbers above the largest pid of Linux (2**22), in track order; the original
number is put into the name. A track with neither number nor name is named "process" or "thread", since viewers would
show no title, or the replacement. Perfetto takes log entries and samples on processes and threads only, its UI (v52)
always shows their numbers, and 0 or none would be the idle task: there, replacements are seen. Chrome JSON has
processes and threads only: there each other track gets such a number, too.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TypeGuard

from traceconv.model.ordering import occurring
from traceconv.model.trace import NO_TRACK, Trace, Track, TrackKind

_FIRST_INVENTED = 10_000_000
_MAX_NUMBER = 2**31 - 1


@dataclass(slots=True)
class Identity:
    """The process, numbers and name of a track for viewers.

    Attributes:
        process: the process that it belongs to (its own index for a process); without one, its topmost track.
        pid: the number of that process.
        tid: the number of the track as a thread; 0 for a counter.
        name: its name, with the original number if that was replaced; "" only for a track with a number of its own, or
            that is not a process or thread.
        title: the name with the doubts behind it.
        native: PROCESS and THREAD only: whether to write it as a process or thread with a number. A track without a
            number in the input, and without events that need one, is written without.
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


def identities(trace: Trace) -> list[Identity]:
    """Return the identity of each track."""
    by_track: list[Identity] = []
    for index, track in enumerate(trace.tracks):
        by_track.append(Identity(_process_of(trace, by_track, index), name=track.name))
    numbers = _Numbers(trace.tracks)
    _number_processes(trace, by_track, numbers)
    _number_threads(trace, by_track, numbers)
    _mark_natives(trace, by_track)
    for track, identity in zip(trace.tracks, by_track, strict=True):
        main = track.lane_of
        beside = main != NO_TRACK and not by_track[main].native
        identity.parent = int(trace.tracks[main].parent if beside else track.parent)
        shown = track if main == NO_TRACK else trace.tracks[main]
        identity.title = with_doubts(identity.name, shown, shown.doubts)
    _place(trace, by_track)
    return by_track


def _process_of(trace: Trace, identities: list[Identity], index: int) -> int:
    track = trace.tracks[index]
    if track.lane_of != NO_TRACK:
        return identities[track.lane_of].process
    if track.parent == NO_TRACK or track.kind is TrackKind.PROCESS:
        return index
    return identities[track.parent].process


class _Numbers:
    """A generator of numbers that no process or thread of the trace has."""

    def __init__(self, tracks: Sequence[Track]) -> None:
        self._taken = {number for track in tracks for number in (track.pid, track.tid) if number is not None}
        self._next: Iterator[int] = count(_FIRST_INVENTED)

    def invent(self) -> int:
        return next(number for number in self._next if number not in self._taken)


def _number_processes(trace: Trace, identities: list[Identity], numbers: _Numbers) -> None:
    used: set[int] = set()
    for index, (track, identity) in enumerate(zip(trace.tracks, identities, strict=True)):
        if identity.process != index:
            identity.pid = identities[identity.process].pid
            continue
        real = track.pid if track.kind is TrackKind.PROCESS else None
        if _valid(real) and real not in used:
            identity.pid = real
            used.add(real)
        else:
            identity.pid = numbers.invent()
            if track.kind is TrackKind.PROCESS:
                identity.name = _with_original(track.name, "pid", real) or "process"


def _number_threads(trace: Trace, identities: list[Identity], numbers: _Numbers) -> None:
    used: set[int] = set()
    for track, identity in zip(trace.tracks, identities, strict=True):
        if track.kind is TrackKind.COUNTER:
            continue
        real = track.tid if track.kind is TrackKind.THREAD else None
        if track.lane_of != NO_TRACK:
            identity.tid, identity.name = numbers.invent(), identities[track.lane_of].name
        elif _valid(real) and identity.pid << 32 | real not in used:
            identity.tid = real
            used.add(identity.pid << 32 | real)
        else:
            identity.tid = numbers.invent()
            if track.kind is TrackKind.THREAD:
                identity.name = _with_original(track.name, "tid", real) or "thread"


def _valid(number: int | None) -> TypeGuard[int]:
    return number is not None and 0 < number <= _MAX_NUMBER


def _with_original(name: str, kind: str, number: int | None) -> str:
    if number is None:
        return name
    return f"{name} ({kind} {number})" if name else f"{kind} {number}"


def _mark_natives(trace: Trace, identities: list[Identity]) -> None:
    # Perfetto accepts call stacks and log entries of threads only.
    threads = {*occurring(trace.samples.track), *occurring(trace.logs.track)}
    for index, (track, identity) in enumerate(zip(trace.tracks, identities, strict=True)):
        own = track.lane_of == NO_TRACK
        if track.kind is TrackKind.PROCESS and own and (track.pid is not None or index in threads):
            identity.native = True
        if (track.kind is TrackKind.THREAD and own and track.tid is not None) or index in threads:
            identity.native = True
            identities[identity.process].native = True


def _place(trace: Trace, identities: list[Identity]) -> None:
    ranked = {
        identity.parent
        for track, identity in zip(trace.tracks, identities, strict=True)
        if track.rank is not None or track.lane_of != NO_TRACK
    }
    siblings: dict[int, list[int]] = defaultdict(list)
    counts = array("i", bytes(4 * (len(identities) + 1)))  # by parent; the last one is for NO_TRACK
    for index, identity in enumerate(identities):
        if identity.parent in ranked:
            siblings[identity.parent].append(index)
        else:  # in creation order
            identity.position = counts[identity.parent]
            counts[identity.parent] += 1
    for indexes in siblings.values():
        indexes.sort(key=lambda index: _rank(trace.tracks, index))
        for position, index in enumerate(indexes):
            identities[index].position = position


def _rank(tracks: Sequence[Track], index: int) -> tuple[bool, int, int, int]:
    """Sort key: the given rank, then the order of creation; a lane follows its main track."""
    main = index if tracks[index].lane_of == NO_TRACK else int(tracks[index].lane_of)
    rank = tracks[main].rank
    return rank is None, rank or 0, main, index


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


def groups_above(trace: Trace, process: int) -> list[str]:
    """Return the names of the tracks around a process, outermost first, which viewers cannot show."""
    names = []
    at = trace.tracks[process].parent
    while at != NO_TRACK:
        names.append(trace.tracks[at].name)
        at = trace.tracks[at].parent
    return names[::-1]


def path_below_process(trace: Trace, identities: list[Identity], index: int) -> str:
    """Return the names of the tracks from below the process of a track down to it, joined by " / "."""
    names: list[str] = []
    at = index if trace.tracks[index].lane_of == NO_TRACK else int(trace.tracks[index].lane_of)
    while at != identities[index].process:
        names.append(identities[at].title or f"tid {identities[at].tid}")
        at = trace.tracks[at].parent
    return " / ".join(reversed(names)) or identities[index].title

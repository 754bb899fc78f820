"""Put the tracks of several inputs under the processes and threads that they share (`traceconv.align.identity`).

If two inputs record the same thread, and the events of one come before all of the other, they share its track. Slices
that overlap in time get a track beside it. Samples and log entries are always on the thread itself, since they cross
nothing, so that samples can be queried by the slices around them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from traceconv.align.identity import Span, Together, Why, gap
from traceconv.model.columns import I64, occurring
from traceconv.model.diagnostics import ProblemKind, declare
from traceconv.model.layout import drop_unused_tracks, renumbered, sort_events
from traceconv.model.numbers import EVER
from traceconv.model.trace import Trace
from traceconv.model.track_table import NO_TRACK, Track, TrackId, TrackKind, Tracks

SAME_PID = declare(
    "merge.same_pid",
    ProblemKind.NOTED,
    "another input has a process of the same pid at the same time; they were kept apart, since "
    "no input shows that both pids are of one machine and one pid namespace; if they are: --same-machine",
)

#: The name of the process of calls that lie in no operator of the recorded one.
OTHERS = "another process or thread"
#: The tables that are always on the thread itself.
_CROSS_NOTHING = ("samples", "logs")


def put_together(trace: Trace, together: Together, starts: Sequence[int]) -> Trace:
    """Return the trace with shared processes and threads once.

    Args:
        trace: the concatenated inputs.
        together: the processes and threads that they share.
        starts: for each input the number of its first track.
    """
    goes_under: dict[int, TrackId] = {}
    for one in together.identities:
        first, *others = one.tracks
        if one.why is Why.UNSAID:
            mine, other = (together.recordings[seen.input].source.name for seen in one.tracks)
            trace.sources[first.input].diagnostics.add(SAME_PID, f"{mine}: pid {first.number}, also in {other}")
        if isinstance(one.why, Why):
            continue
        into = starts[first.input] + first.track
        if not first.is_process:
            into = int(trace.tracks[into].parent)
        goes_under |= {starts[seen.input] + seen.track: TrackId(into) for seen in others}
    if not goes_under:
        return drop_unused_tracks(trace)
    moved = _Moves(trace, goes_under).made()
    return drop_unused_tracks(sort_events(renumbered(moved, _parents_first(moved.tracks))))


def set_apart(trace: Trace, rows: I64) -> Trace:
    """Return the trace of one log with some slices on tracks like their own, below a process of their own.

    Args:
        trace: the log, laid out.
        rows: the slices, which are of another process or thread than the rest.
    """
    tracks = list(trace.tracks)
    goes_to = np.arange(len(tracks), dtype=np.int32)
    wanted: set[int] = set()
    for number in occurring(trace.slices.track[rows]):
        while number != NO_TRACK:
            wanted.add(number)
            number = int(tracks[number].parent if tracks[number].lane_of == NO_TRACK else tracks[number].lane_of)
    apart = TrackId(len(tracks))
    tracks.append(Track(TrackKind.PROCESS, OTHERS, source=tracks[min(wanted)].source, clock=tracks[min(wanted)].clock))
    for number in sorted(wanted):
        track = tracks[number]
        goes_to[number] = len(tracks)
        parent = apart if track.parent == NO_TRACK else TrackId(int(goes_to[track.parent]))
        lane_of = track.lane_of if track.lane_of == NO_TRACK else TrackId(int(goes_to[track.lane_of]))
        tracks.append(replace(track, parent=parent, lane_of=lane_of))
    of_rows = np.array(trace.slices.track)
    of_rows[rows] = goes_to[of_rows[rows]]
    slices = replace(trace.slices, track=of_rows)
    return sort_events(trace.with_tables(tracks=Tracks(tracks), slices=slices))


class _Thread(Struct, frozen=True):
    """A thread that several inputs record: its track, and by input the time span of its slices, None without slices."""

    track: int
    spans: dict[int, Span | None] = {}

    def has_room(self, span: Span | None) -> bool:
        """Return whether slices in a time span overlap none of the thread."""
        return span is None or all(other is None or gap(span, other) >= 0 for other in self.spans.values())


class _Moves:
    """The new parents and numbers of tracks.

    Args:
        trace: the concatenated inputs.
        goes_under: the process of another input that a track belongs to, by track.
    """

    def __init__(self, trace: Trace, goes_under: dict[int, TrackId]) -> None:
        self._trace = trace
        self._goes_under = goes_under
        self._shared = set(goes_under.values())
        self._sliced = trace.extents(("slices",))
        self._tracks = list(trace.tracks)
        self._events_to = list(range(len(self._tracks)))
        self._on_thread_to = list(range(len(self._tracks)))
        self._threads: dict[tuple[TrackId, int], _Thread] = {}

    def made(self) -> Trace:
        """Return the trace with all tracks moved; parents may come after their children."""
        late = self._late()
        for number in sorted(range(len(self._tracks)), key=lambda number: (number in late, number)):
            self._move(number)
        tables: dict[str, Any] = {}
        for name, table in self._trace.timed_tables():
            goes_to = np.array(self._on_thread_to if name in _CROSS_NOTHING else self._events_to, np.int32)
            self._carry(name, goes_to)
            tables[name] = replace(table, track=goes_to[table.track])
        return self._trace.with_tables(tracks=Tracks(self._tracks), **tables)

    def _carry(self, name: str, goes_to: npt.NDArray[np.int32]) -> None:
        """Note at the tracks which rows of a table are of which input.

        Of inputs whose rows are not one after the other in time, none is noted: all count for the input of the track.
        """
        spans: dict[int, list[tuple[int, int, int]]] = {}
        firsts, lasts = self._trace.extents((name,))
        for number in np.flatnonzero(firsts <= lasts).tolist():
            span = int(firsts[number]), int(lasts[number])
            spans.setdefault(int(goes_to[number]), []).append((*span, self._tracks[number].source))
        for number, parts in spans.items():
            track = self._tracks[number]
            parts.sort()
            if any(last > first for (_, last, _), (first, *_) in pairwise(parts)):
                continue
            inputs = [(name, source, first if at else EVER) for at, (first, _, source) in enumerate(parts)]
            if parts[0][2] == track.source:
                inputs = inputs[1:]
            if inputs:
                self._tracks[number] = replace(track, carries=(*track.carries, *inputs))

    def _late(self) -> set[int]:
        """Return the tracks that move below another one, and their descendants."""
        late: set[int] = set()
        for number, track in enumerate(self._tracks):
            if number in self._goes_under or int(track.parent) in late or int(track.lane_of) in late:
                late.add(number)
        return late

    def _move(self, number: int) -> None:
        track = self._trace.tracks[number]
        under = self._goes_under.get(number)
        if track.kind is TrackKind.PROCESS:
            if under is not None:
                self._tracks[number] = self._beside(track, under, "process")
                self._name(under, track.name)
            return
        parent = self._parent(track) if under is None else under
        lane_of = TrackId(self._events_to[track.lane_of]) if track.lane_of != NO_TRACK else NO_TRACK
        self._tracks[number] = replace(track, parent=parent, lane_of=lane_of)
        if track.kind is TrackKind.THREAD and track.tid is not None and parent in self._shared:
            self._share(number, self._tracks[number], parent, track.tid)

    def _parent(self, track: Track) -> TrackId:
        above = int(track.parent)
        if above == NO_TRACK:
            return self._goes_under.get(int(track.lane_of), NO_TRACK)
        if above in self._goes_under and self._trace.tracks[above].kind is TrackKind.PROCESS:
            return self._goes_under[above]
        return TrackId(self._events_to[above])

    def _share(self, number: int, track: Track, parent: TrackId, tid: int) -> None:
        """Merge a thread into the one with its tid, if there is one of another input."""
        same = self._threads.setdefault((parent, tid), _Thread(number))
        first, last = (int(times[number]) for times in self._sliced)
        slices = (first, last) if first <= last else None
        if track.source in same.spans:
            return
        if same.track != number:
            self._on_thread_to[number] = same.track
            self._name(same.track, track.name)
        if same.has_room(slices):
            self._events_to[number] = same.track
            same.spans[track.source] = slices
        else:
            self._tracks[number] = self._beside(track, TrackId(same.track), f"thread {tid}")

    def _name(self, number: int, name: str) -> None:
        """Name a process or thread by another input, if its own input does not."""
        if not self._tracks[number].name:
            self._tracks[number] = replace(self._tracks[number], name=name)

    def _beside(self, track: Track, parent: TrackId, role: str) -> Track:
        name = f"{self._trace.sources[track.source].format}: {track.name or role}"
        return replace(track, kind=TrackKind.TRACK, parent=parent, name=name, pid=None, tid=None, labels=())


def _parents_first(tracks: Sequence[Track]) -> list[int]:
    """Return the numbers of tracks in order, but each after its parent and after the track whose lane it is."""
    order: dict[int, None] = {}
    for number in range(len(tracks)):
        above = [number]
        while above:
            track = tracks[above[-1]]
            missing = [n for n in (int(track.parent), int(track.lane_of)) if n != NO_TRACK and n not in order]
            if missing:
                above.append(missing[0])
            else:
                order.setdefault(above.pop())
    return list(order)

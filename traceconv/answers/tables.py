"""A trace as sections see it: the slices, with cached derived columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from traceconv.answers.intervals import NOTHING, Intervals, union
from traceconv.answers.nesting import Nesting, nesting_of
from traceconv.answers.section import Window
from traceconv.model.ordering import chunks, gathered, like_next, stable_order
from traceconv.model.trace import I64, NO_TRACK, Trace, TrackKind, processes

Rows = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Uncut:
    """The whole recording, the rows of its slices that remain in a window, and the window."""

    table: SliceTable
    rows: Rows
    window: Window


@dataclass(frozen=True)
class SliceTable:
    """The slices of a laid-out trace.

    Attributes:
        trace: the trace; of several inputs it is on one clock.
        chosen: returns a mask of the slices that tables count; None for all.
        window: tables count slices that start in it; None for all.
        uncut: the whole recording, if the trace was cut to a window.
    """

    trace: Trace
    chosen: Callable[[SliceTable], npt.NDArray[np.bool_]] | None = None
    window: Window | None = None
    uncut: Uncut | None = None

    @cached_property
    def start(self) -> int:
        """Return the first time of the trace, ns on its clock."""
        span = self.trace.span()
        return span[0] if span else 0

    @cached_property
    def nesting(self) -> Nesting:
        """Return parent and depth of each slice."""
        return nesting_of(self.trace.slices)

    def ends(self, rows: Rows) -> I64:
        """Return the ends of slices, ns."""
        found: I64 = self.trace.slices.ts[rows] + self.trace.slices.dur[rows]
        return found

    @cached_property
    def row_of_track(self) -> I64:
        """Return the main track of each track, since lanes count as their main track."""
        lane_of = [
            index if track.lane_of == NO_TRACK else track.lane_of for index, track in enumerate(self.trace.tracks)
        ]
        return np.array(lane_of, np.int64)

    @cached_property
    def drawn_in_time(self) -> npt.NDArray[np.bool_]:
        """Return whether the times of each track are real; others are synthetic."""
        clocks = self.trace.clocks
        return np.array([not clocks[track.clock].synthetic for track in self.trace.tracks], bool)

    @cached_property
    def counted(self) -> Rows:
        """Return the rows of the slices that tables count: the chosen ones in the window."""
        rows = self.recorded
        if self.window is not None:
            rows = rows[self.in_window(self.trace.slices.ts[rows])]
        return rows if self.chosen is None else rows[self.chosen(self)[rows]]

    @cached_property
    def launches(self) -> I64:
        """Return for each slice the row of the call that launched it on a device, -1 if none is recorded."""
        from traceconv.answers.launches import launches  # needs this module

        return launches(self)

    def in_window(self, instants: I64) -> npt.NDArray[np.bool_]:
        """Return a mask of the times (ns) in the window."""
        return np.ones(len(instants), bool) if self.window is None else self.window.holds(instants)

    @cached_property
    def recorded(self) -> Rows:
        """Return the rows of all slices except those that a format declares as asides."""
        aside = np.zeros(len(self.trace.slices.ts), bool)
        for number, source in enumerate(self.trace.sources):
            if source.marks.asides:
                aside |= self.of_source(number) & self.of_categories(source.marks.asides)
        return np.flatnonzero(~aside)

    def of_source(self, number: int) -> npt.NDArray[np.bool_]:
        """Return a mask of the slices of an input."""
        return np.array([track.source == number for track in self.trace.tracks], bool)[self.trace.slices.track]

    def busy(self, rows: Rows) -> Intervals:
        """Return the times at which at least one of the slices runs."""
        ts = self.trace.slices.ts
        of_parts = [union(ts[some], self.ends(some)) for some in (rows[part] for part in chunks(len(rows)))]
        return union(*(np.concatenate(edges) for edges in zip(NOTHING, *of_parts, strict=True)))

    def busy_by_track(self, rows: Rows) -> dict[int, Intervals]:
        """Return, by track with its lanes, the times at which at least one of the slices runs."""
        tracks = gathered(self.row_of_track.astype(np.int32), gathered(self.trace.slices.track, rows))
        order = stable_order([tracks], self.trace.forget)
        first = np.flatnonzero(np.append(True, ~like_next(order, tracks))) if len(rows) else np.empty(0, np.intp)
        groups = zip(first.tolist(), [*first[1:].tolist(), len(rows)], strict=True) if len(rows) else ()
        return {int(tracks[order[start]]): self.busy(rows[order[start:end]]) for start, end in groups}

    @cached_property
    def processes(self) -> I64:
        """Return the process of each track; the topmost track above it if it has none."""
        return processes(self.trace.tracks)

    def process_of(self, track: int) -> int:
        """Return the process of a track; the topmost track above it if it has none."""
        return int(self.processes[track])

    def path(self, track: int) -> str:
        """Return the path of a track for people: "python 26046 / stream 7"."""
        tracks = self.trace.tracks
        names = []
        while track != NO_TRACK:
            one = tracks[track]
            number = one.pid if one.kind is TrackKind.PROCESS else one.tid
            kind = one.kind.name.lower() if number is not None else ""
            names.append(" ".join(filter(None, (one.name or kind, "" if number is None else str(number)))))
            track = one.parent
        return " / ".join(name for name in reversed(names) if name)

    def named(self, pattern: str) -> npt.NDArray[np.bool_]:
        """Return a mask of the slices whose whole name matches the pattern."""
        return self._strings_matching(re.compile(pattern).fullmatch)[self.trace.slices.name]

    def naming(self, pattern: str) -> npt.NDArray[np.bool_]:
        """Return a mask of the slices whose name contains a match of the pattern."""
        return self._strings_matching(re.compile(pattern).search)[self.trace.slices.name]

    def of_categories(self, categories: Iterable[str]) -> npt.NDArray[np.bool_]:
        """Return a mask of the slices with one of the categories."""
        wanted = frozenset(categories)
        return self._strings_matching(wanted.__contains__)[self.trace.slices.category]

    def on_tracks(self, pattern: str) -> npt.NDArray[np.bool_]:
        """Return which slices are on tracks, or their lanes, whose path the pattern matches as a whole."""
        matches = re.compile(pattern).fullmatch
        tracks = np.unique(self.row_of_track).tolist()
        found = [track for track in tracks if matches(self.path(track))]
        return np.isin(self.row_of_track, found)[self.trace.slices.track]

    def _strings_matching(self, accepts: Any) -> npt.NDArray[np.bool_]:
        return np.fromiter((bool(accepts(text)) for text in self.trace.strings), bool, len(self.trace.strings))


def interval_counters(trace: Trace) -> list[int]:
    """Return the tracks of counters whose values are counts of intervals."""
    patterns = [trace.sources[track.source].marks.interval_counts for track in trace.tracks]
    return [
        at
        for at, (track, pattern) in enumerate(zip(trace.tracks, patterns, strict=True))
        if track.kind is TrackKind.COUNTER and pattern and re.fullmatch(pattern, track.name)
    ]

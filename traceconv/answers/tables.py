"""The slices of a trace with all that the sections need of them, computed once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from traceconv.answers.intervals import Intervals, union
from traceconv.answers.nesting import Nesting, nesting_of
from traceconv.answers.section import Window
from traceconv.model.trace import I64, NO_TRACK, Trace, TrackKind

Rows = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Uncut:
    """All that was recorded, the rows of its slices that are left in a window, and the window."""

    table: SliceTable
    rows: Rows
    window: Window


@dataclass(frozen=True)
class SliceTable:
    """A laid-out trace, seen from its slices.

    Attributes:
        trace: the trace; of several inputs it is on one clock.
        chosen: tells which slices tables count; None for all.
        window: tables count what starts in it; None for all.
        uncut: all that was recorded, where the trace is what happened in a window.
    """

    trace: Trace
    chosen: Callable[[SliceTable], npt.NDArray[np.bool_]] | None = None
    window: Window | None = None
    uncut: Uncut | None = None

    @cached_property
    def start(self) -> int:
        """Return the first instant of the trace, ns on its clock."""
        span = self.trace.span()
        return span[0] if span else 0

    @cached_property
    def nesting(self) -> Nesting:
        """Return parent and depth of each slice."""
        return nesting_of(self.trace.slices)

    @cached_property
    def ends(self) -> I64:
        """Return the end of each slice, ns."""
        return self.trace.slices.ts + self.trace.slices.dur

    @cached_property
    def row_of_track(self) -> I64:
        """Return for each track the track that its lane belongs to: lanes count as one track."""
        lane_of = [
            index if track.lane_of == NO_TRACK else track.lane_of for index, track in enumerate(self.trace.tracks)
        ]
        return np.array(lane_of, np.int64)

    @cached_property
    def drawn_in_time(self) -> npt.NDArray[np.bool_]:
        """Return for each track whether the input states its times; positions on others are synthetic."""
        clocks = self.trace.clocks
        return np.array([not clocks[track.clock].synthetic for track in self.trace.tracks], bool)

    @cached_property
    def counted(self) -> Rows:
        """Return the rows of the slices that tables count: of those in the window those that are chosen."""
        rows = self.recorded[self.in_window(self.trace.slices.ts[self.recorded])]
        return rows if self.chosen is None else rows[self.chosen(self)[rows]]

    def in_window(self, instants: I64) -> npt.NDArray[np.bool_]:
        """Return which instants lie in the window."""
        return np.ones(len(instants), bool) if self.window is None else self.window.holds(instants)

    @cached_property
    def recorded(self) -> Rows:
        """Return the rows of all slices but what a format calls an aside."""
        aside = np.zeros(len(self.ends), bool)
        for number, source in enumerate(self.trace.sources):
            if source.marks.asides:
                aside |= self.of_source(number) & self.of_categories(source.marks.asides)
        return np.flatnonzero(~aside)

    def of_source(self, number: int) -> npt.NDArray[np.bool_]:
        """Return which slices come from an input."""
        return np.array([track.source == number for track in self.trace.tracks], bool)[self.trace.slices.track]

    def busy(self, rows: Rows) -> Intervals:
        """Return the instants at which at least one of the slices runs."""
        return union(self.trace.slices.ts[rows], self.ends[rows])

    def busy_by_track(self, rows: Rows) -> dict[int, Intervals]:
        """Return for each track, with its lanes, the instants at which at least one of the slices runs on it."""
        tracks = self.row_of_track[self.trace.slices.track[rows]]
        order = np.argsort(tracks, kind="stable")
        first = np.flatnonzero(np.append(True, np.diff(tracks[order]) != 0)) if len(rows) else np.empty(0, np.intp)
        groups = np.split(rows[order], first[1:]) if len(rows) else []
        return {int(tracks[order][at]): self.busy(group) for at, group in zip(first, groups, strict=True)}

    def process_of(self, track: int) -> int:
        """Return the process that a track belongs to; the topmost track if it belongs to none."""
        tracks = self.trace.tracks
        while tracks[track].parent != NO_TRACK and tracks[track].kind is not TrackKind.PROCESS:
            track = tracks[track].parent
        return track

    def path(self, track: int) -> str:
        """Return how people find a track: "python 26046 / stream 7"."""
        tracks = self.trace.tracks
        names = []
        while track != NO_TRACK:
            one = tracks[track]
            number = one.pid if one.kind is TrackKind.PROCESS else one.tid
            names.append(" ".join(filter(None, (one.name, "" if number is None else str(number)))))
            track = one.parent
        return " / ".join(name for name in reversed(names) if name)

    def named(self, pattern: str) -> npt.NDArray[np.bool_]:
        """Return which slices have a name that the pattern matches as a whole."""
        return self._strings_matching(re.compile(pattern).fullmatch)[self.trace.slices.name]

    def naming(self, pattern: str) -> npt.NDArray[np.bool_]:
        """Return which slices have a name that the pattern is found in."""
        return self._strings_matching(re.compile(pattern).search)[self.trace.slices.name]

    def of_categories(self, categories: Iterable[str]) -> npt.NDArray[np.bool_]:
        """Return which slices have one of the categories."""
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

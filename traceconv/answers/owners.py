"""Choose the slices that are layers, and attribute events of other files to the layer that their thread ran."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable
from functools import cached_property

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from traceconv.answers.attribution import NONE, Timelines, grouped, launch_rows, timelines, work_of
from traceconv.answers.slice_tables import Rows, SliceTable
from traceconv.model.columns import I64
from traceconv.model.numbers import whole
from traceconv.model.source_info import Layer, Placing, unshared
from traceconv.model.trace_inputs import inputs_of, placings_of
from traceconv.model.track_table import NO_TRACK, TrackKind

Pool = tuple[int, ...]


class Outside(enum.Enum):
    """Why events belong to no thread with layers."""

    NO_LAYERS = "their processes have no layers"
    UNKNOWN = "it is not known which of {processes} processes with layers they are from, if any: {file} states no pid"
    UNRELATED = "their input is not aligned with the layers, or of another host"


class Owners(Struct, frozen=True, dict=True):
    """The layers of a trace, and the rules of attribution.

    A layer is a slice of a framework on a thread; if no input has any, of a library. Tracks of a process that are not
    threads of the system count as one thread: there, slices that a format declares as innermost are inside the others.
    """

    table: SliceTable

    @cached_property
    def rows(self) -> Rows:
        """Return the rows of the slices that are layers."""
        framework = self._slices_of((Layer.FRAMEWORK, None))
        return framework if len(framework) or self._of_framework else self._slices_of((Layer.LIBRARY,))

    @cached_property
    def _of_framework(self) -> bool:
        """Whether the layers of the whole recording are slices of a framework."""
        uncut = self.table.uncut
        return uncut is not None and len(Owners(uncut.table)._slices_of((Layer.FRAMEWORK, None))) > 0

    def _slices_of(self, layers: Iterable[Layer | None]) -> Rows:
        trace = self.table.trace
        chosen = np.zeros(len(trace.slices.ts), bool)
        on_thread = np.array([self._thread_above(at) != NO_TRACK for at in range(len(trace.tracks))], bool)
        for number, source in enumerate(trace.sources):
            if source.layer not in layers:
                continue
            of_input = self.table.rows_of(number)
            if source.layer is None:
                of_input = of_input[on_thread[trace.slices.track[of_input]]]
            chosen[of_input] = True
            chosen[work_of(self.table, number)] = False
        rows = self.table.recorded
        return rows[chosen[rows] & (trace.slices.dur[rows] > 0) & self.table.timed[rows]]

    def _thread_above(self, track: int) -> int:
        """Return the thread of a track with slices: itself, or that of a lane or a track beside it; else NO_TRACK."""
        tracks = self.table.trace.tracks
        candidate = int(self.table.row_of_track[track])
        above = tracks[candidate].parent
        if (
            tracks[candidate].kind is not TrackKind.THREAD
            and above != NO_TRACK
            and tracks[above].source != tracks[candidate].source
        ):
            candidate = int(above)
        return candidate if tracks[candidate].kind is TrackKind.THREAD else NO_TRACK

    @cached_property
    def _lines(self) -> tuple[I64, list[int], list[set[int]]]:
        """Return the timeline of each track; for each timeline its track, and the inputs of its layers."""
        trace = self.table.trace
        numbers: dict[tuple[int, int], int] = {}
        line_of = np.full(len(trace.tracks), NONE, np.int64)
        tracks: list[int] = []
        sources: list[set[int]] = []
        # A thread whose layers are outside of a window is still a thread with layers.
        whole = self if self.table.uncut is None else Owners(self.table.uncut.table)
        inputs = inputs_of(whole.table.trace, "slices")[whole.rows]
        for track, rows in grouped(whole.table.trace.slices.track[whole.rows].astype(np.int64)):
            thread, of_track = self._thread_above(track), np.unique(inputs[rows]).tolist()
            rest = (int(self.table.processes[track]), of_track[0])
            line = line_of[track] = numbers.setdefault(rest if thread == NO_TRACK else (thread, NONE), len(numbers))
            if line == len(tracks):
                tracks.append(track if thread == NO_TRACK else thread)
                sources.append(set())
            sources[line].update(of_track)
            if thread != NO_TRACK:
                line_of[thread] = line
        return line_of, tracks, sources

    @property
    def tracks(self) -> list[int]:
        """The track of each timeline: its thread, or one of those that count as one."""
        return self._lines[1]

    @cached_property
    def timelines(self) -> Timelines:
        """Return the timelines of the layers."""
        uncut = self.table.uncut
        if uncut is None:
            return timelines(self.table.trace.slices, self.rows, self._lines[0], self._innermost)
        whole = Owners(uncut.table).timelines.between(uncut.window.start, uncut.window.end)
        row_of = np.full(len(uncut.table.trace.slices.ts) + 1, NONE, np.int64)  # with no layer at the end
        row_of[uncut.rows] = np.arange(len(uncut.rows))
        return replace(whole, rows=row_of[whole.rows])

    @cached_property
    def _innermost(self) -> npt.NDArray[np.bool_] | None:
        """Return a mask of the slices that are innermost on tracks that are not threads; None if there are none."""
        declared = [at for at, source in enumerate(self.table.trace.sources) if source.marks.innermost]
        if not declared:
            return None
        innermost = np.zeros(len(self.table.trace.slices.ts), bool)
        for number in declared:
            rows = self.table.rows_of(number)
            innermost[rows] = self.table.of_categories(self.table.trace.sources[number].marks.innermost, rows)
        no_thread = [self._thread_above(at) == NO_TRACK for at in range(len(self.table.trace.tracks))]
        innermost &= np.array(no_thread, bool)[self.table.trace.slices.track]
        return innermost

    @cached_property
    def line_of_layer(self) -> I64:
        """Return the timeline of each layer, in the order of `rows`."""
        lines: I64 = self._lines[0][self.table.trace.slices.track[self.rows]]
        return lines

    def pool(self, track: int, source: int) -> tuple[Pool, bool]:
        """Return the timelines for the events of an input on a track, and whether the track is of one of these threads.

        Events of a thread with layers belong to this thread. Those of other threads, or with a process only, belong to
        the threads with layers of the process; those without a process to all threads with layers. Never to another
        host, or to layers that are not on the same clock.
        """
        candidates, is_own = self._candidates(track)
        return self._related(source, candidates), is_own

    def _candidates(self, track: int) -> tuple[Pool, bool]:
        """Return what `pool` returns, also if the clock or the host differs."""
        line_of, _, _ = self._lines
        tracks = self.table.trace.tracks
        while track != NO_TRACK and tracks[track].kind is TrackKind.COUNTER:
            track = tracks[track].parent
        thread = NO_TRACK if track == NO_TRACK else self._thread_above(track)
        if thread != NO_TRACK and line_of[thread] != NONE:
            return (int(line_of[thread]),), True
        process = NO_TRACK if track == NO_TRACK else int(self.table.processes[track])
        if process in self._of_process:
            return self._of_process[process], False
        if process == NO_TRACK or tracks[process].kind is not TrackKind.PROCESS:
            return tuple(range(len(self.timelines))), False
        return self._guessed(track, process), False

    def outside(self, track: int) -> Outside:
        """Return why the samples of a track that have no timeline belong to no thread with layers."""
        if self._candidates(track)[0]:
            return Outside.UNRELATED
        return Outside.UNKNOWN if len(self._of_process) > 1 and self.without_pid else Outside.NO_LAYERS

    @property
    def processes(self) -> int:
        """The number of processes with layers."""
        return len(self._of_process)

    @cached_property
    def without_pid(self) -> str:
        """The first input with layers in a process whose pid it does not state; "" if there is none."""
        trace = self.table.trace
        processes = (trace.tracks[process] for process in self._of_process if trace.tracks[process].pid is None)
        return next((trace.sources[track.source].name for track in processes), "")

    def can_be_renamed(self, track: int) -> bool:
        """Return whether another file has layers with the pid or tid of a track: under another name of the machine."""
        trace = self.table.trace
        process = int(self.table.processes[track])
        ids, placings = (trace.tracks[process].pid, trace.tracks[track].tid), self._placings
        source = trace.tracks[track].source
        for at in self._lines[1]:
            thread, above = trace.tracks[at], trace.tracks[self.table.processes[at]]
            if any(a is not None and a == b for a, b in zip(ids, (above.pid, thread.tid), strict=True)) and (
                thread.source != source and not set(placings[thread.source]) & set(placings[source])
            ):
                return True
        return False

    def counted(self, counter: int) -> tuple[Pool, bool]:
        """Return the timelines for counts of intervals, and whether a thread or process is named.

        Counts of a thread get the timelines of its samples.
        """
        tracks = self.table.trace.tracks
        source, above = tracks[counter].source, tracks[counter].parent
        pattern = self.table.trace.sources[source].marks.interval_threads
        match = re.fullmatch(pattern, tracks[above].name) if pattern and above != NO_TRACK else None
        if match is None:
            named = above != NO_TRACK and tracks[self.table.processes[above]].kind is TrackKind.PROCESS
            return self.pool(counter, source)[0], named
        tid = whole(match["tid"])
        threads = {self._thread_above(at) for at, track in enumerate(tracks) if track.tid == tid} - {NO_TRACK}
        if threads:
            return self.pool(threads.pop(), source)[0] if len(threads) == 1 else (), True
        if len(self._of_process) != 1:
            return (), True
        ((framework, lines),) = self._of_process.items()
        is_one = tracks[framework].pid is None or match["name"] in self._names(framework)
        return self._related(source, lines) if is_one else (), True

    def _names(self, process: int) -> set[str]:
        """Return the names of a process and its threads."""
        tracks = self.table.trace.tracks
        return {tracks[process].name} | {
            track.name for track in tracks if track.kind is TrackKind.THREAD and track.parent == process
        }

    def launched_in(self, rows: Rows) -> I64:
        """Return the segment in which each slice was launched, or lies; the number of segments for none."""
        trace, lines = self.table.trace, self.timelines
        if not len(rows):
            return np.empty(0, np.int64)
        calls = launch_rows(self.table)[rows]
        at = np.where(calls == NONE, rows, calls)
        line_of = self._lines[0]
        line = np.full(len(rows), NONE, np.int64)
        for track, numbers in grouped(trace.slices.track[at].astype(np.int64)):
            thread = self._thread_above(track)
            line[numbers] = line_of[track if thread == NO_TRACK else thread]
        segment = np.full(len(rows), len(lines.rows), np.int64)
        known = line != NONE
        segment[known] = lines.locate(line[known], trace.slices.ts[at][known])
        return segment

    @cached_property
    def _of_process(self) -> dict[int, Pool]:
        by_process: dict[int, list[int]] = {}
        for line, track in enumerate(self._lines[1]):
            by_process.setdefault(int(self.table.processes[track]), []).append(line)
        return {process: tuple(lines) for process, lines in by_process.items()}

    def _guessed(self, track: int, process: int) -> Pool:
        """Return the timelines for a process without layers: those of the only other process, if either has no pid.

        A thread of an unknown process must have the name of that process or of one of its threads.
        """
        if len(self._of_process) != 1:
            return ()
        tracks = self.table.trace.tracks
        ((framework, lines),) = self._of_process.items()
        if tracks[process].unknown:
            return lines if tracks[track].name in self._names(framework) else ()
        source = tracks[process].source
        others = [other for other in self._busy_processes if tracks[other].source == source and tracks[other].pid]
        return lines if tracks[framework].pid is None and others == [process] else ()

    @cached_property
    def _busy_processes(self) -> list[int]:
        """Return the processes with samples or slices between the first layer and the last one."""
        slices, samples = self.table.trace.slices, self.table.trace.samples
        first, last = np.min(slices.ts[self.rows]), np.max(self.table.ends(self.rows))
        sampled = [
            np.unique(events.track[(events.ts >= first) & (events.ts < last)]).tolist() for events in (slices, samples)
        ]
        processes = {int(self.table.processes[track]) for tracks in sampled for track in tracks}
        return [process for process in processes if self.table.trace.tracks[process].kind is TrackKind.PROCESS]

    # -- how certain it is ------------------------------------------------------------------------------------------

    @cached_property
    def _placings(self) -> list[tuple[Placing, ...]]:
        """Return how each input was placed."""
        return placings_of(self.table.trace)

    def _related(self, source: int, pool: Pool) -> Pool:
        """Return the timelines of a pool with the clock and the host of an input, without synthetic times."""
        _, track_of, sources_of = self._lines
        return tuple(
            line
            for line in pool
            if all(
                source == other or (self.table.drawn_in_time[track_of[line]] and self._is_related(source, other))
                for other in sources_of[line]
            )
        )

    def _is_related(self, source: int, other: int) -> bool:
        steps = unshared(self._placings[source], self._placings[other])
        return source == other or not (
            any(step.apart for step in steps) or len({*(step.host for step in steps)} - {""}) > 1
        )

    def bound(self, sources: Iterable[int], line: int) -> int | None:
        """Return the uncertainty of events of one of the inputs on a timeline, ns; None if not known.

        It is 0 within one input, but not known if that can hold several: a file that traceconv or any tool wrote.
        """
        most = 0
        for number in sources:
            source = self.table.trace.sources[number]
            if number in self._lines[2][line] and (source.written or source.marks.any_tool):
                return None
            for other in self._lines[2][line] - {number}:
                total = 0
                for step in unshared(self._placings[number], self._placings[other]):
                    if step.bound_ns is None:
                        return None
                    total += step.bound_ns
                most = max(most, total)
        return most

"""A trace as sections see it: the slices with cached derived columns, their nesting, and sets of times as intervals."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from functools import cached_property, lru_cache, partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from traceconv import kernel
from traceconv.answers.section import Window
from traceconv.errors import InputError
from traceconv.io.limits import UserPattern
from traceconv.io.shown import quantity
from traceconv.model.args import arg_values, durations_recorded
from traceconv.model.columns import I32, I64, Order, chunks, distinct_values
from traceconv.model.diagnostics import SLICES
from traceconv.model.dump import as_shown
from traceconv.model.marks import JOINT, WAITS
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import Slices, Trace
from traceconv.model.trace_inputs import by_stated_inputs
from traceconv.model.track_table import NO_TRACK, Track, TrackKind, processes

#: Patterns remember so many names of a trace.
_REMEMBERED = 1 << 10

# -- Sets of times as intervals, in exact integers -------------------------------------------------------------------


class Intervals(NamedTuple):
    """A set of times: sorted, disjoint, non-empty intervals [start, end), ns."""

    starts: I64
    ends: I64

    @property
    def length(self) -> int:
        """Return the sum of the durations, ns."""
        return int(np.sum(self.ends - self.starts))


NOTHING = Intervals(np.empty(0, np.int64), np.empty(0, np.int64))


def union(starts: I64, ends: I64) -> Intervals:
    """Return the union of intervals, which may overlap and be in any order."""
    not_empty = ends > starts
    starts, ends = starts[not_empty], ends[not_empty]
    if not len(starts):
        return NOTHING
    order = np.argsort(starts, kind="stable")
    starts, reach = starts[order], np.maximum.accumulate(ends[order])
    opens = np.append(True, starts[1:] > reach[:-1])
    return Intervals(starts[opens], reach[np.append(opens[1:], True)])


def lengths_in_groups(group: I64, starts: I64, ends: I64, count: int) -> I64:
    """Return the length of the union of each of `count` groups of intervals; `group` numbers them from 0."""
    lengths = np.zeros(count, np.int64)
    not_empty = ends > starts
    group, starts, ends = group[not_empty], starts[not_empty], ends[not_empty]
    order = np.lexsort((starts, group))
    group, starts, ends = group[order], starts[order], ends[order]
    by_end = np.argsort(ends)
    rank = np.empty_like(by_end)
    rank[by_end] = np.arange(len(ends))
    # The furthest end so far in the group, by its rank: those of later groups are all larger.
    before = group * len(ends)
    reach = ends[by_end][np.maximum.accumulate(rank + before) - before]
    opens = np.append(True, (group[1:] != group[:-1]) | (starts[1:] > reach[:-1]))[: len(ends)]
    np.add.at(lengths, group[opens], reach[np.append(opens[1:], True)[: len(ends)]] - starts[opens])
    return lengths


def sums_by(codes: npt.NDArray[Any], values: I64, count: int) -> I64:
    """Return the exact sum of the values of each of `count` codes."""
    sums = np.zeros(count, np.int64)
    np.add.at(sums, codes, values)
    return sums


def median_of(values: I64 | Sequence[int]) -> int | None:
    """Return the nearest-rank median, which is one of the values; None without any."""
    return int(np.sort(values)[(len(values) - 1) // 2]) if len(values) else None


def intersect(a: Intervals, b: Intervals) -> Intervals:
    """Return the intersection of two sets."""
    # Each interval of b overlaps a run of intervals of a: those that end behind its start and start before its end.
    first = np.searchsorted(a.ends, b.starts, "right")
    last = np.searchsorted(a.starts, b.ends, "left")
    counts = np.maximum(last - first, 0)
    which_b = np.repeat(np.arange(len(counts)), counts)
    which_a = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(first, counts)
    return Intervals(np.maximum(a.starts[which_a], b.starts[which_b]), np.minimum(a.ends[which_a], b.ends[which_b]))


def gaps(a: Intervals, start: int, end: int) -> Intervals:
    """Return the times of [start, end) outside of a set."""
    if end <= start:
        return NOTHING
    inside = intersect(a, Intervals(np.array([start]), np.array([end])))
    starts, ends = np.append(start, inside.ends), np.append(inside.starts, end)
    not_empty = ends > starts
    return Intervals(starts[not_empty], ends[not_empty])


def subtract(a: Intervals, b: Intervals) -> Intervals:
    """Return the times of `a` outside of `b`."""
    if not len(a.starts):
        return NOTHING
    return intersect(a, gaps(b, int(a.starts[0]), int(a.ends[-1])))


def shares(a: Intervals, start: int, end: int, parts: int) -> list[float]:
    """Return the share of each of the equal parts of [start, end), at least 1 ns each, that lies in a set."""
    parts = min(parts, end - start)
    edges = np.array([start + (end - start) * number // parts for number in range(parts + 1)], np.int64)
    before = np.append(0, np.cumsum(a.ends - a.starts))
    begun = np.searchsorted(a.starts, edges, "right")
    behind = np.maximum(np.append(0, a.ends)[begun] - edges, 0)  # of the last interval that has started
    shares: list[float] = (np.diff(before[begun] - np.where(begun > 0, behind, 0)) / np.diff(edges)).tolist()
    return shares


# -- Compute parents, depths and self times of slices, as the trace processor does for a `.pftrace` of traceconv -----

NO_PARENT = -1
_SMALL = 1 << 31


class Nesting(Struct, frozen=True):
    """The nesting of the slices of a laid-out trace; arrays with one value for each slice.

    Attributes:
        parent: the row of the slice around it on its track, NO_PARENT without one; of 4 bytes if that is enough.
        depth: the number of slices around it.
        self_ns: its duration minus the durations of the slices directly inside it, ns.
    """

    parent: Order
    depth: I32
    self_ns: I64


def nesting_of(slices: Slices) -> Nesting:
    """Return the nesting of slices that are sorted by track and start, longer first, and nested.

    A slice of duration 0 contains none, and a slice that starts at the end of another one is not inside it.
    """
    count = len(slices.ts)
    parent = np.full(count, NO_PARENT, np.int32 if count < _SMALL else np.int64)
    depth = np.zeros(count, np.int32)
    self_ns = np.array(slices.dur, np.int64)
    compiled = kernel.module("nesting")
    if compiled is not None:
        contiguous = map(np.ascontiguousarray, (slices.track, slices.ts, slices.dur))
        compiled.nesting(*contiguous, parent, depth, self_ns)
        return Nesting(parent, depth, self_ns)
    open_slices: list[tuple[int, int]] = []  # rows and ends, outermost first
    on_track = NO_TRACK
    for chunk in chunks(count):
        columns = slices.track[chunk].tolist(), slices.ts[chunk].tolist(), slices.dur[chunk].tolist()
        for row, (track, start, dur) in enumerate(zip(*columns, strict=True), chunk.start):
            if track != on_track:
                on_track, open_slices = track, []
            while open_slices and open_slices[-1][1] <= start:
                open_slices.pop()
            if open_slices:
                parent[row] = open_slices[-1][0]
                depth[row] = len(open_slices)
                self_ns[parent[row]] -= dur
            open_slices.append((row, start + dur))
    return Nesting(parent, depth, self_ns)


# -- A trace as sections see it: the slices, with cached derived columns ---------------------------------------------

Rows = npt.NDArray[np.intp]
Some = Rows | slice
ALL = slice(None)
#: Larger numbers of calls are no counts.
_MOST_CALLS = 1 << 40
#: The most names that a hint suggests, and that are compared for it, and the longest one: more would take long.
_MOST_NEAR, _MOST_COMPARED, _LONGEST_NEAR = 3, 5000, 100


class Uncut(Struct, frozen=True):
    """The whole recording, the rows of its slices that remain in a window, and the window."""

    table: SliceTable
    rows: Rows
    window: Window


#: Sums of times fit into 64 bits, also after the rounding of their estimate.
_MOST_NS, _YEAR_S = 2**63 - 2**53, 365.25 * 24 * 3600


class SliceTable(Struct, frozen=True, dict=True):
    """The slices of a laid-out trace.

    Attributes:
        trace: the trace; of several inputs it is on one clock.
        chosen: returns a mask of the slices that tables count; None for all.
        window: tables count slices that start in it; None for all.
        uncut: the whole recording, if the trace was cut to a window.
        step_name: a pattern of the whole names of steps; "" for the steps that formats declare.
    """

    trace: Trace
    chosen: Callable[[SliceTable], npt.NDArray[np.bool_]] | None = None
    window: Window | None = None
    uncut: Uncut | None = None
    step_name: str = ""

    def choosing(self, chosen: Callable[[SliceTable], npt.NDArray[np.bool_]] | None) -> SliceTable:
        """Return the table of some of its slices, None for all; both share what is computed from all."""
        if chosen is self.chosen:
            return self
        table = replace(self, chosen=chosen)
        vars(table).update(nesting=self.nesting, timed=self.timed)
        return table

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
        ends: I64 = self.trace.slices.ts[rows] + self.trace.slices.dur[rows]
        return ends

    @cached_property
    def row_of_track(self) -> I64:
        """Return the main track of each track, since lanes count as their main track."""
        lane_of = self.trace.tracks.column("lane_of").astype(np.int64)
        return np.where(lane_of == NO_TRACK, np.arange(len(lane_of)), lane_of)

    @cached_property
    def drawn_in_time(self) -> npt.NDArray[np.bool_]:
        """Return whether the times of each track are real; others are synthetic."""
        tracks = self.trace.tracks
        in_time = ~np.array([clock.synthetic for clock in self.trace.clocks], bool)[tracks.column("clock")]
        for number, track in tracks.special():
            in_time[number] &= not track.synthetic
        return in_time

    @cached_property
    def counted(self) -> Rows:
        """Return the rows of the slices that tables count: the chosen ones in the window."""
        rows = self.recorded
        if self.window is not None:
            rows = rows[self.in_window(self.trace.slices.ts[rows])]
        return rows if self.chosen is None else rows[self.chosen(self)[rows]]

    @cached_property
    def is_counted(self) -> npt.NDArray[np.bool_]:
        """Return a mask of all slices: whether tables count them."""
        mask = np.zeros(len(self.trace.slices.ts), bool)
        mask[self.counted] = True
        return mask

    def check_sums(self) -> None:
        """Raise InputError if the recorded durations of all slices add up to more than 64 bits of ns hold."""
        dur = self.trace.slices.dur
        whole = sum(float(np.sum(dur[rows], where=self.timed[rows], dtype=np.float64)) for rows in chunks(len(dur)))
        if whole > _MOST_NS:
            raise InputError(
                f"the durations of the slices add up to {whole / 1e9 / _YEAR_S:,.0f} years: sums are exact up to 292",
                hint="if the times of an input are not in its usual unit, an option of its format says so",
            )

    @cached_property
    def timed(self) -> npt.NDArray[np.bool_]:
        """Return a mask of the slices whose duration was recorded; others are drawn without a recorded end."""
        if self.uncut is not None:  # the args of a slice that crosses the start of the window are gone
            return self.uncut.table.timed[self.uncut.rows]
        return durations_recorded(self.trace.slices, self.trace.args)

    @cached_property
    def calls(self) -> I64 | None:
        """Return the number of calls that each slice sums up; None if no format declares slices as sums."""
        if self.uncut is not None:  # as for `timed`
            whole = self.uncut.table.calls
            return None if whole is None else whole[self.uncut.rows]
        slices = self.trace.slices
        per_row = None
        for number, source in enumerate(self.trace.sources):
            marks = source.marks.sums
            if marks is None:
                continue
            rows = self.rows_of(number)
            rows = rows[self.of_categories(marks.categories, rows)]
            numbers, values = arg_values(self.trace.args, slices.args_at[rows], slices.args_len[rows], [marks.calls])
            calls = [count if type(count) is int and 0 < count <= _MOST_CALLS else 1 for (count,) in values]
            per_row = np.ones(len(slices.ts), np.int64) if per_row is None else per_row
            per_row[rows] = np.array(calls, np.int64)[numbers]
        return per_row

    @cached_property
    def several(self) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]] | None:
        """Return masks of the slices that are means of calls, and sums over calls whose number is not stated.

        None if no format declares such slices.
        """
        if not any(source.marks.several for source in stated_inputs(self.trace)):
            return None
        table = replace(self, trace=by_stated_inputs(self.trace))
        means, wholes = np.zeros(len(self.trace.slices.ts), bool), np.zeros(len(self.trace.slices.ts), bool)
        for number, source in enumerate(table.trace.sources):
            if (marks := source.marks.several) is not None:
                rows = table.rows_of(number)
                pattern = marks.tracks.replace(" / ", f"(?: / |{JOINT})")
                (means if marks.means else wholes)[rows[table.on_tracks(pattern, rows)]] = True
        return means, wholes

    def synthetic_notes(self, tracks: npt.NDArray[np.int32]) -> list[str]:
        """Return a note if some of the tracks have no real times."""
        if np.all(self.drawn_in_time[tracks]):
            return []
        return ["some positions are synthetic: durations are real, starts are not"]

    def untimed_notes(self, rows: Rows, start: str = "times leave out") -> list[str]:
        """Return a note on those of the slices whose duration was not recorded, if there are some."""
        count = int(np.count_nonzero(~self.timed[rows]))
        return [f"{start} {quantity(count, SLICES)} whose duration was not recorded"] if count else []

    def once(self, function: Callable[..., Any], *args: Hashable) -> Any:
        """Return the result of a function of this table and of args, which is called once with them."""
        if (function, args) not in self._results:
            self._results[function, args] = function(self, *args)
        return self._results[function, args]

    def in_window(self, instants: I64) -> npt.NDArray[np.bool_]:
        """Return a mask of the times (ns) in the window."""
        return np.ones(len(instants), bool) if self.window is None else self.window.holds(instants)

    @cached_property
    def recorded(self) -> Rows:
        """Return the rows of all slices except those that a format declares as asides."""
        aside = np.zeros(len(self.trace.slices.ts), bool)
        for number, source in enumerate(self.trace.sources):
            if source.marks.asides:
                rows = self.rows_of(number)
                aside[rows] = self.of_categories(source.marks.asides, rows)
        return np.flatnonzero(~aside)

    def rows_of(self, number: int) -> Rows:
        """Return the rows of the slices of an input."""
        parts = self._parts_of_inputs.get(number, ())
        return np.concatenate([np.empty(0, np.intp), *(np.arange(start, end) for start, end in parts)])

    @cached_property
    def _parts_of_inputs(self) -> dict[int, list[tuple[int, int]]]:
        """Return the first row and the row after the last of each part of the slices that is of one input, by input."""
        slices, tracks = self.trace.slices, self.trace.tracks
        starts = np.searchsorted(slices.track, np.arange(len(tracks) + 1))
        shared = [number for number, track in tracks.special() if track.carries]
        of_track, is_shared = tracks.column("source"), np.zeros(len(tracks), bool)
        is_shared[shared] = True
        changes = (np.diff(of_track, prepend=-1) != 0) | is_shared
        changes[1:] |= is_shared[:-1]
        first = np.flatnonzero(changes)  # the first track of each run of one input; those with several are runs
        parts: dict[int, list[tuple[int, int]]] = {}
        starts_of, ends_of = starts[first], starts[np.append(first[1:], len(tracks))[: len(first)]]
        for number, start, end in zip(first.tolist(), starts_of.tolist(), ends_of.tolist(), strict=True):
            inputs = tracks[number].inputs_over_time("slices")
            later = (
                np.searchsorted(slices.ts[start:end], np.array([since for since, _ in inputs[1:]], np.int64)) + start
            )
            for (_, source), (begin, stop) in zip(inputs, pairwise([start, *later.tolist(), end]), strict=True):
                if begin < stop:
                    parts.setdefault(source, []).append((begin, stop))
        return parts

    def of_source(self, number: int) -> npt.NDArray[np.bool_]:
        """Return a mask of the slices of an input."""
        mask = np.zeros(len(self.trace.slices.ts), bool)
        for start, end in self._parts_of_inputs.get(number, ()):
            mask[start:end] = True
        return mask

    def busy(self, rows: Rows) -> Intervals:
        """Return the times at which at least one of the slices runs."""
        ts = self.trace.slices.ts
        of_parts = [union(ts[some], self.ends(some)) for some in (rows[part] for part in chunks(len(rows)))]
        return union(*(np.concatenate(edges) for edges in zip(NOTHING, *of_parts, strict=True)))

    @cached_property
    def processes(self) -> I64:
        """Return the process of each track; the topmost track above it if it has none."""
        return processes(self.trace.tracks)

    def path(self, track: int) -> str:
        """Return the path of a track for people: "python 26046 / stream 7"."""
        tracks, names = self.trace.tracks, []
        while track != NO_TRACK:
            names.append(_name_of(tracks[track]))
            track = tracks[track].parent
        return " / ".join(name for name in reversed(names) if name)

    def device_path(self, device: int) -> str:
        """Return the path of a device; of an output of traceconv without the queues whose names were joined to its."""
        track, path = self.trace.tracks[device], self.path(device)
        if not self.trace.sources[track.source].marks.is_output:
            return path
        joined = track.name.partition(JOINT)[2]
        return path.removesuffix(f"{JOINT}{joined}") if joined else path

    def title(self, track: int, path: str = "") -> str:
        """Return the path of a track; if tracks of several inputs have that path, with its input before it.

        All sections name tracks by it. Equal tracks of one input have one title.

        Args:
            track: the track.
            path: what is shown as its path, such as its `device_path`; "" for its path.
        """
        path = path or self.path(track)
        if track not in self._with_shared_paths:
            return path
        return f"{self.trace.sources[self.trace.tracks[track].source].name}{JOINT}{path}"

    def input_of(self, track: int) -> str:
        """Return the name of the input that a track is from, as `--by input` shows it."""
        return self._stated.sources[self._stated.tracks[track].source].name

    @cached_property
    def _stated(self) -> Trace:
        return by_stated_inputs(self.trace)

    @cached_property
    def _with_shared_paths(self) -> set[int]:
        """Return the tracks that have the path, or could have the device path, of a track of another input."""
        tracks, sources = self.trace.tracks, self.trace.sources
        main = np.unique(self.row_of_track).tolist()
        source_of = tracks.column("source").tolist()
        if len(set(source_of)) < 2:
            return set()
        numbers: dict[tuple[int, str], int] = {}  # of paths, since a long one can be that of many tracks
        path_of = {NO_TRACK: 0}
        for track in main:
            above = [track]
            while above[-1] not in path_of:
                above.append(tracks[above[-1]].parent)
            for inner, outer in pairwise(reversed(above)):
                name, path = _name_of(tracks[outer]), path_of[inner]
                if sources[source_of[outer]].marks.is_output:
                    name = name.partition(JOINT)[0]
                path_of[outer] = numbers.setdefault((path, name), len(numbers) + 1) if name else path
        first: dict[int, int] = {}
        shared = {path_of[at] for at in main if first.setdefault(path_of[at], source_of[at]) != source_of[at]}
        return {track for track in main if path_of[track] in shared}

    @property
    def names(self) -> list[str]:
        """The names of the recorded slices."""
        trace = self.trace
        return [trace.strings[number] for number in np.unique(trace.slices.name[self.recorded]).tolist()]

    def near_names(self, text: str) -> list[str]:
        """Return up to three names of recorded slices that are spelled like a text, without very long names."""
        short = [name for name in self.names if len(name) <= _LONGEST_NEAR]
        return get_close_matches(text, short[:_MOST_COMPARED], _MOST_NEAR)

    def named(self, pattern: str, rows: Some = ALL) -> npt.NDArray[np.bool_]:
        """Return a mask of the slices, or some of them, whose whole name matches the pattern."""
        return self._strings_matching("named", pattern)[self.trace.slices.name[rows]]

    def named_as(self, pattern: UserPattern) -> npt.NDArray[np.bool_]:
        """Return a mask of the slices whose whole name matches a pattern of the user.

        Raises:
            UsageError: the pattern takes too long.
        """
        mask = self._results.get(pattern)
        if mask is None:
            mask = np.zeros(len(self.trace.strings), bool)
            numbers = distinct_values(self.trace.slices.name)
            mask[numbers] = pattern.accepted([self.trace.strings[number] for number in numbers.tolist()], whole=True)
            self._results[pattern] = mask
        return mask[self.trace.slices.name]

    @cached_property
    def is_wait(self) -> npt.NDArray[np.bool_]:
        """Return a mask of the slices in which a thread only waits, by their names."""
        mask = self.named(WAITS)
        for number, source in enumerate(self.trace.sources):
            if source.marks.waits:
                rows = self.rows_of(number)
                mask[rows] |= self.named(source.marks.waits, rows)
        return mask

    @cached_property
    def is_exchange(self) -> npt.NDArray[np.bool_]:
        """Return a mask of the slices in which a thread exchanges data with other ranks, by their names."""
        mask = np.zeros(len(self.trace.slices.ts), bool)
        for number, source in enumerate(self.trace.sources):
            if source.marks.exchanges:
                rows = self.rows_of(number)
                mask[rows] = self.naming(source.marks.exchanges, rows)
        return mask

    @cached_property
    def drawn_names(self) -> tuple[I32, Sequence[str]]:
        """Return the name of each slice in a `.pftrace` as the number of a text, and the texts."""
        drawn = as_shown(self.trace)
        return drawn.slices.name, drawn.strings

    def naming(self, pattern: str, rows: Some = ALL) -> npt.NDArray[np.bool_]:
        """Return a mask of the slices, or some of them, whose name contains a match of the pattern."""
        return self._strings_matching("naming", pattern)[self.trace.slices.name[rows]]

    def categorised(self, pattern: str, rows: Some = ALL) -> npt.NDArray[np.bool_]:
        """Return a mask of the slices, or some of them, whose whole category matches the pattern."""
        return self._strings_matching("named", pattern)[self.trace.slices.category[rows]]

    def of_categories(self, categories: Iterable[str], rows: Some = ALL) -> npt.NDArray[np.bool_]:
        """Return a mask of the slices, or some of them, with one of the categories."""
        return self._strings_matching("categories", frozenset(categories))[self.trace.slices.category[rows]]

    def on_tracks(self, pattern: str, rows: Some = ALL) -> npt.NDArray[np.bool_]:
        """Return which slices, or some, are on tracks, or their lanes, whose path the pattern matches as a whole."""
        mask = self._results.get(("tracks", pattern))
        if mask is None:
            matches = re.compile(pattern).fullmatch
            matching = [track for track in np.unique(self.row_of_track).tolist() if matches(self.path(track))]
            mask = self._results["tracks", pattern] = np.isin(self.row_of_track, matching)
        return mask[self.trace.slices.track[rows]]

    @cached_property
    def _results(self) -> dict[Any, Any]:
        """Return the results of functions, and the masks by the question; inputs of one format ask the same ones."""
        return {}

    @cached_property
    def _strings_of_slices(self) -> I64:
        """Return the numbers of the strings that are names or categories of slices."""
        slices = self.trace.slices
        return np.unique(np.append(distinct_values(slices.name), distinct_values(slices.category))).astype(np.int64)

    def _strings_matching(self, kind: str, wanted: Any) -> npt.NDArray[np.bool_]:
        mask = self._results.get((kind, wanted))
        if mask is None:
            strings, used = self.trace.strings, self._strings_of_slices
            accepts: Callable[[str], object]
            if kind == "categories":
                accepts = wanted.__contains__
            elif len(used) <= _REMEMBERED:
                accepts = partial(_matches, wanted, kind == "named")
            else:
                accepts = re.compile(wanted).fullmatch if kind == "named" else re.compile(wanted).search
            mask = np.zeros(len(strings), bool)
            mask[used] = np.fromiter((bool(accepts(strings[number])) for number in used.tolist()), bool, len(used))
            self._results[kind, wanted] = mask
        return mask


@lru_cache(maxsize=16 * _REMEMBERED)
def _matches(pattern: str, whole: bool, text: str) -> bool:
    """Return whether a pattern matches a text, or a part of it; many runs of a program have the same names."""
    compiled = re.compile(pattern)
    return bool(compiled.fullmatch(text) if whole else compiled.search(text))


def _name_of(track: Track) -> str:
    """Return the name of a track with its number; of one without a name its kind with its number, if it has one."""
    number = track.pid if track.kind is TrackKind.PROCESS else track.tid
    if number is None:
        return track.name
    return f"{track.name or track.kind.name.lower()} {number}"


def interval_counters(trace: Trace) -> list[int]:
    """Return the tracks of counters whose values are counts of intervals."""
    tracks, patterns = trace.tracks, [source.marks.interval_counts for source in trace.sources]
    if not any(patterns):
        return []
    counters = np.flatnonzero(tracks.column("kind") == TrackKind.COUNTER).tolist()
    return [
        at for at in counters if (pattern := patterns[tracks[at].source]) and re.fullmatch(pattern, tracks[at].name)
    ]


def stated_inputs(trace: Trace) -> Iterator[SourceInfo]:
    """Yield the inputs; in place of an output of traceconv those that it states."""
    for source in trace.sources:
        yield from source.stated or (source,)


def table_by_stated_inputs(table: SliceTable) -> SliceTable:
    """Return the table with the tracks of outputs of traceconv assigned to the inputs that these state."""
    if not any(source.stated for source in table.trace.sources):
        return table
    uncut = table.uncut
    if uncut is not None:
        uncut = Uncut(table_by_stated_inputs(uncut.table), uncut.rows, uncut.window)
    return replace(table, trace=by_stated_inputs(table.trace), uncut=uncut)

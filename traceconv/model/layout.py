"""The layout of one trace: order, lanes, no empty tracks.

After `lay_out` these hold, and the writers rely on them:

- slices are sorted by (track, ts, longer first, input order), the other events by (track, ts, origin);
- the slices of one track nest: two of them are disjoint, or one contains the other. A slice that crosses another one
  goes to a lane, a sibling track of the same name; viewers draw the siblings as one;
- no track is deeper than MAX_DEPTH slices (Perfetto drops slices beyond 512);
- slices that a format declares as asides (`FormatMarks.asides`), such as host ranges repeated on a device, are on a
  track of their own above that of the work: around it, work inside would be one level deeper than work outside;
- tracks without events and without children with events are gone.

Some tools round times and durations to whole microseconds independently, so that a child may seem to end a microsecond
after its parent. An overlap of at most the resolution of the clock is taken for such rounding: the child is trimmed,
and that is counted. Where durations have a finer resolution than times, none is trimmed: only the starts are inexact.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import structs

from traceconv import kernel
from traceconv.model.columns import (
    I32,
    I64,
    U8,
    Order,
    chunks,
    gathered,
    is_as_it_was,
    like_next,
    occurring,
    overlapping_chunks,
    stable_order,
)
from traceconv.model.diagnostics import Diagnostics, noted, repaired, skipped
from traceconv.model.trace import NO_CPU, TABLES, TEXTS, TIMED, Slices, Table, Trace, column_types, take
from traceconv.model.track_table import NO_TRACK, TrackId, TrackKind, Tracks

MAX_DEPTH = 500

OVERLAPPING = noted(
    "lanes.overlap",
    "slices of one track cross each other: they were put on overflow lanes beside it, with their times unchanged",
    quiet=True,
)
TRIMMED = repaired(
    "lanes.trimmed",
    "slices ended after the slice around them, by at most the resolution of their clock: they were cut to fit",
)
TOO_DEEP = noted("lanes.too_deep", f"slices nested deeper than {MAX_DEPTH} levels were put on overflow lanes")
EMPTY_TRACKS = skipped("lanes.empty_track", "tracks that the input declares but never uses were left out", quiet=True)

_CUT, _CROSSES, _DEEP = 1, 2, 4
#: Ends beyond all times, for an empty lane, where any slice fits, and for one of full depth, where none does.
_FREE, _FULL = 2**64, -(2**64)

#: Where more than one slice in this many has the same start as the next one, all are sorted by length, not the ties
#: alone.
_MANY_TIED = 8


def lay_out(trace: Trace) -> Trace:
    """Return the trace laid out as the module describes; diagnostics go to the first source.

    The columns are sorted in place, without the memory for a second set: the argument is consumed.
    """
    diagnostics = trace.sources[0].diagnostics
    trace = _asides_apart(_share_lanes(trace))
    trace = sort_events(trace, in_place=True)
    trace = _split_overlaps(trace, diagnostics)
    _report_unused_tracks(trace, diagnostics)
    return drop_unused_tracks(trace)


# -- order --------------------------------------------------------------------------------------------------------


def sort_events(trace: Trace, *, in_place: bool = False) -> Trace:
    """Return the trace with all tables sorted as the module describes, and the rows in flows adapted."""
    sort = partial(_put_in_order, trace) if in_place else take
    slices, flows = trace.slices, trace.flows
    order = _slice_order(slices, trace.forget)
    if len(flows.from_slice):
        new_row = np.empty(len(order), np.int64)
        for rows in chunks(len(order)):
            new_row[order[rows]] = np.arange(rows.start, rows.stop)
        flows = replace(flows, from_slice=new_row[flows.from_slice], to_slice=new_row[flows.to_slice])
    tables = {"slices": sort(slices, order)}
    del order
    for name, table in trace.timed_tables():
        if name != "slices":  # by track and time, and at equal times in input order
            tables[name] = sort(table, stable_order((table.origin, table.ts, table.track), trace.forget))
    return trace.with_tables(**tables, flows=flows)


def _put_in_order(trace: Trace, table: Table, order: Order) -> Table:
    """Reorder a table in place, as `take` does in a copy; columns in files are in memory one at a time."""
    if is_as_it_was(order):
        return table
    for column in fields(table):
        values = getattr(table, column.name)
        values[:] = gathered(values, order)
        trace.forget()
    return table


def _slice_order(slices: Slices, forget: Callable[[], None]) -> Order:
    """Return the order of slices by track, start, longer first, and input order."""
    order = stable_order((slices.origin, slices.ts, slices.track), forget)
    same = like_next(order, slices.ts, slices.track)
    forget()
    if _MANY_TIED * np.count_nonzero(same) > len(order):
        return stable_order((slices.origin, -slices.dur, slices.ts, slices.track), forget)
    if same.any():
        tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
        rows = order[tied]
        group = np.cumsum(np.append(True, ~same)[tied])
        order[tied] = rows[np.lexsort((slices.origin[rows], -slices.dur[rows], group))]
        forget()
    return order


# -- tracks that may share lanes ------------------------------------------------------------------------------------


def _share_lanes(trace: Trace) -> Trace:
    """Put the tracks with `shares_lanes` on as few lanes as their extents in time allow."""
    tracks = trace.tracks
    sharing = np.flatnonzero(tracks.column("shares_lanes"))
    if not len(sharing):
        return trace
    groups: dict[tuple[int, str, int], list[int]] = {}
    parent, names, clock = tracks.column("parent").data, tracks.texts("name"), tracks.column("clock").data
    for number in sharing.tolist():
        groups.setdefault((parent[number], names[number], clock[number]), []).append(number)
    first, last = _extents(trace)
    lane_of = np.arange(len(tracks), dtype=np.int32)
    for members in groups.values():
        if len(members) == 1:
            continue
        free: list[tuple[int, int]] = []  # (end of the lane so far, its track)
        for number in sorted(members, key=lambda member: (int(first[member]), member)):
            if free and free[0][0] <= first[number]:
                _, lane = heapq.heappop(free)
            else:
                lane = number
            lane_of[number] = lane
            heapq.heappush(free, (int(last[number]), lane))
    return trace.with_tables(
        slices=replace(trace.slices, track=lane_of[trace.slices.track]),
        instants=replace(trace.instants, track=lane_of[trace.instants.track]),
    )


def _extents(trace: Trace) -> tuple[I64, I64]:
    """Return the first and last time (ns) of the slices and instants of each track; an instant counts as 1 ns long."""
    first = np.full(len(trace.tracks), np.iinfo(np.int64).max)
    last = np.full(len(trace.tracks), np.iinfo(np.int64).min)
    slices, instants = trace.slices, trace.instants
    np.minimum.at(first, slices.track, slices.ts)
    np.maximum.at(last, slices.track, slices.ts + np.maximum(slices.dur, 1))
    np.minimum.at(first, instants.track, instants.ts)
    np.maximum.at(last, instants.track, instants.ts + 1)
    return first, last


# -- asides ---------------------------------------------------------------------------------------------------------


def _asides_apart(trace: Trace) -> Trace:
    """Put asides beside the work of a queue on a track of their own, in front of it; threads keep theirs."""
    marked = {name for source in trace.sources for name in source.marks.asides}
    asides = [number for number, text in enumerate(trace.strings) if text in marked] if marked else []
    rows = np.flatnonzero(np.isin(trace.slices.category, asides)) if asides else np.empty(0, np.int64)
    if not len(rows):
        return trace
    of_slices = trace.slices.track, trace.slices.track[rows]
    all_on, asides_on = (np.bincount(column, minlength=len(trace.tracks)) for column in of_slices)
    is_queue = trace.tracks.column("kind") == TrackKind.TRACK
    mixed = np.flatnonzero((asides_on > 0) & (asides_on < all_on) & is_queue)
    tracks, goes_to = Tracks(trace.tracks), np.arange(len(trace.tracks), dtype=np.int32)
    for number in mixed.tolist():
        goes_to[number] = len(tracks)
        tracks.append(
            structs.replace(tracks[number], name=f"ranges on {tracks[number].name}", shown="", name_in_rank="")
        )
    track = trace.slices.track.copy()
    track[rows] = goes_to[track[rows]]
    places = np.concatenate((np.arange(len(trace.tracks)), mixed - 0.5))
    moved = trace.with_tables(tracks=tracks, slices=replace(trace.slices, track=track))
    return renumbered(moved, np.argsort(places, kind="stable"))


# -- overlaps -------------------------------------------------------------------------------------------------------


def _split_overlaps(trace: Trace, diagnostics: Diagnostics) -> Trace:
    """Put slices that cross others on lanes, in the columns of the trace itself."""
    slices, tracks = trace.slices, trace.tracks
    crossing = [
        (begin, end)
        for begin, end in _tracks_with_overlaps(trace)
        if _first_crossing(slices, begin, end, MAX_DEPTH) < end
    ]
    if not crossing:
        return trace
    added = Tracks(tracks)
    trimmed: list[tuple[int, int, str, int]] = []  # by track: the largest change, ns, its row, its place, and the count
    for begin, end in crossing:
        number = TrackId(int(slices.track[begin]))
        rows = slice(begin, end)
        ends = slices.ts[rows] + slices.dur[rows]
        clock = trace.clocks[tracks[number].clock]
        lane, marks = _assign(slices.ts[rows], ends, 0 if clock.exact_durations else clock.resolution_ns)
        for code, mark in ((OVERLAPPING, _CROSSES), (TOO_DEEP, _DEEP)):
            is_marked = (marks & mark) != 0
            if is_marked.any():
                place = _place(trace, begin + int(np.argmax(is_marked)))
                diagnostics.add(code, place, int(np.count_nonzero(is_marked)))
        dur = ends - slices.ts[rows]
        if cuts := int(np.count_nonzero(marks & _CUT)):
            cut = slices.dur[rows] - dur
            row = begin + int(np.argmax(cut))
            trimmed.append((int(np.max(cut)), row, _place(trace, row), cuts))  # before the track changes
        slices.dur[rows] = dur
        numbers = np.array([number, *_add_lanes(added, number, int(np.max(lane)))], np.int32)
        slices.track[rows] = gathered(numbers, lane)
        del lane, marks, ends, dur  # before the columns for sorting
    for most, _, place, cuts in sorted(trimmed, key=lambda track: (-track[0], track[1])):  # the largest change first
        diagnostics.add(TRIMMED, f"{place}: at most {most} ns", cuts)
    return sort_events(trace.with_tables(tracks=added), in_place=True)


def _tracks_with_overlaps(trace: Trace) -> list[tuple[int, int]]:
    """Return the first row, and the one behind the last, of each track whose slices are not disjoint."""
    slices = trace.slices
    starts, overlaps = [np.zeros(1, np.intp)], [np.empty(0, np.intp)]
    for rows in overlapping_chunks(len(slices.ts)):
        track, ts, dur = slices.track[rows], slices.ts[rows], slices.dur[rows]
        same = track[1:] == track[:-1]
        starts.append(rows.start + 1 + np.flatnonzero(~same))
        overlaps.append(rows.start + np.flatnonzero(same & (ts[1:] < ts[:-1] + dur[:-1])))
        trace.forget()
    firsts, overlapping = np.concatenate(starts), np.concatenate(overlaps)
    tracks = occurring(np.searchsorted(firsts, overlapping, "right") - 1)
    lasts = np.append(firsts[1:], len(slices.ts))[tracks]
    return list(zip(firsts[tracks].tolist(), lasts.tolist(), strict=True))


def _first_crossing(slices: Slices, begin: int, end: int, depth: int) -> int:
    """Return the first of the rows of one track that crosses another slice or is nested too deep; `end` for none."""
    nesting = kernel.module("nesting")
    if nesting is not None:
        columns = map(np.ascontiguousarray, (slices.track, slices.ts, slices.dur))
        return int(nesting.first_crossing(*columns, begin, end, depth))
    open_ends: list[int] = []
    starts = slices.ts[begin:end]
    ends = starts + slices.dur[begin:end]
    for row, (start, stop) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True), begin):
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        if open_ends and (stop > open_ends[-1] or len(open_ends) >= depth):
            return row
        open_ends.append(stop)
    return end


def _assign(new_ts: I64, new_ends: I64, resolution: int) -> tuple[I32, U8]:
    """Return the lanes and marks of the slices of one track, sorted by start; trimmed ones are changed in place.

    Lane 0 is the track itself. Marks tell whether a slice was trimmed, or moved since it crosses another or for its
    depth. There may be millions of slices.
    """
    count, nesting = len(new_ts), kernel.module("nesting")
    lanes, all_marks = np.zeros(count, np.int32), np.zeros(count, np.uint8)
    if nesting is not None:
        nesting.assign(new_ts, new_ends, resolution, MAX_DEPTH, (_CUT, _CROSSES, _DEEP), lanes, all_marks)
        return lanes, all_marks
    earliest, starts, ends = new_ts.copy().data, new_ts.data, new_ends.data
    lane, marks = lanes.data, all_marks.data
    delayed: list[tuple[int, int, int]] = []  # a heap: they come at their new starts
    open_slices, upcoming = _OpenSlices(), 0
    while upcoming < count or delayed:
        if delayed and (upcoming == count or delayed[0] <= (starts[upcoming], -ends[upcoming], upcoming)):
            index = heapq.heappop(delayed)[2]
        else:
            index, upcoming = upcoming, upcoming + 1
        around = open_slices.around(starts[index])
        if ends[index] - around in range(1, resolution + 1):
            ends[index] = around
            marks[index] |= _CUT
        elif ends[index] > around and around - earliest[index] <= resolution:
            starts[index] = around  # handled again in the order of its new start
            marks[index] |= _CUT
            heapq.heappush(delayed, (around, -ends[index], index))
            continue
        lane[index] = open_slices.place(ends[index])
        if lane[index] > 0:
            marks[index] |= _CROSSES if ends[index] > around else _DEEP
    return lanes, all_marks


class _OpenSlices:
    """The open slices of each lane. Finds the first lane on which a slice fits in logarithmic time.

    Most slices fit on the first lane, which is a stack of its own. The others are in a tree, an array: the children of
    node n are 2n and 2n + 1, and the second half are the lanes. A node holds the latest end that a slice may have on
    any lane below it.
    """

    def __init__(self) -> None:
        self._first = list[int]()  # the ends of the open slices of the first lane, outermost first
        self._ends: list[list[int]] = [[]]
        self._latest = [_FREE, _FREE]
        self._closing: list[tuple[int, int]] = []  # a heap of (end, lane) of the open slices in the tree

    def around(self, ts: int) -> int:
        """Close the slices that end by `ts` (ns); return the end of the innermost slice on the first lane."""
        first, closing = self._first, self._closing
        while first and first[-1] <= ts:
            first.pop()
        while closing and closing[0][0] <= ts:
            lane = heapq.heappop(closing)[1]
            self._ends[lane].pop()
            self._update(lane)
        return first[-1] if first else _FREE

    def place(self, end: int) -> int:
        """Open a slice on the first lane on which it nests or is disjoint; return the lane."""
        first = self._first
        if not first or (end <= first[-1] and len(first) < MAX_DEPTH):
            first.append(end)
            return 0
        if self._latest[1] < end:
            self._grow()
        latest, node = self._latest, 1
        while node < len(self._ends):
            node *= 2
            if latest[node] < end:
                node += 1
        lane = node - len(self._ends)
        self._ends[lane].append(end)
        self._update(lane)
        heapq.heappush(self._closing, (end, lane))
        return lane + 1

    def _update(self, lane: int) -> None:
        ends, latest, node = self._ends[lane], self._latest, lane + len(self._ends)
        value = _FREE if not ends else ends[-1] if len(ends) < MAX_DEPTH else _FULL
        while node and latest[node] != value:
            latest[node] = value
            value = max(value, latest[node ^ 1]) if node > 1 else value
            node //= 2

    def _grow(self) -> None:
        """Double the number of lanes."""
        count = len(self._ends)
        leaves = self._latest[count:] + [_FREE] * count
        self._ends += [[] for _ in range(count)]
        self._latest = [_FREE] * (2 * count) + leaves
        for node in range(2 * count - 1, 0, -1):
            self._latest[node] = max(self._latest[2 * node], self._latest[2 * node + 1])


def _place(trace: Trace, row: int) -> str:
    return f"{trace.place_of_slice(row)}: {trace.strings[trace.slices.name[row]]!r}"


def _add_lanes(tracks: Tracks, number: TrackId, count: int) -> list[int]:
    """Add lanes to a track, as children of a thread or process, else as siblings; return their numbers."""
    track = tracks[number]
    is_os = track.kind in (TrackKind.PROCESS, TrackKind.THREAD)
    lane = structs.replace(
        track,
        kind=TrackKind.TRACK,
        parent=number if is_os else track.parent,
        name=track.name or "overlapping",
        tid=None,
        pid=None,
        lane_of=number,
    )
    for _ in range(count):
        tracks.append(lane)
    return list(range(len(tracks) - count, len(tracks)))


# -- empty tracks ---------------------------------------------------------------------------------------------------


def _report_unused_tracks(trace: Trace, diagnostics: Diagnostics) -> None:
    used = _used_tracks(trace)
    used |= trace.tracks.column("shares_lanes") > 0
    unused = np.flatnonzero(~used).tolist()
    if unused:
        names = ", ".join(repr(trace.tracks[n].name) for n in unused[:3])
        diagnostics.add(EMPTY_TRACKS, f"{trace.sources[0].name}: {names}", len(unused))


def _used_tracks(trace: Trace) -> npt.NDArray[np.bool_]:
    """Return a mask of the tracks that have events or descendants with events."""
    used = np.zeros(len(trace.tracks), bool)
    for _, table in trace.timed_tables():
        used[table.track] = True
    parent, lane_of, is_used = trace.tracks.column("parent").data, trace.tracks.column("lane_of").data, used.data
    for number in range(len(used) - 1, -1, -1):  # parents come before their children, tracks before their lanes
        if is_used[number]:
            for needed in (parent[number], lane_of[number]):
                if needed != NO_TRACK:
                    is_used[needed] = True
    return used


def drop_unused_tracks(trace: Trace) -> Trace:
    """Return the trace without the tracks that have neither events nor descendants with events."""
    used = _used_tracks(trace)
    if used.all():
        return trace
    return _with_tracks(trace, np.flatnonzero(used))


def renumbered(trace: Trace, order: Sequence[int] | npt.NDArray[Any]) -> Trace:
    """Return the trace with its tracks in another order, in which parents come before their children.

    Events are not sorted: call `sort_events` after it.
    """
    rows = np.array(order, np.int64)
    if is_as_it_was(rows):
        return trace
    return _with_tracks(trace, rows)


def _with_tracks(trace: Trace, numbers: I64) -> Trace:
    """Return the trace with some of its tracks in a new order; the others have neither events nor descendants."""
    new_number = np.full(len(trace.tracks), NO_TRACK, np.int32)
    new_number[numbers] = np.arange(len(numbers))
    tables: dict[str, Any] = {}
    for name, table in trace.timed_tables():
        tables[name] = replace(table, track=new_number[table.track])
    return trace.with_tables(tracks=trace.tracks.taken(numbers), **tables)


# -- rules ------------------------------------------------------------------------------------------------------------


class InvalidTrace(AssertionError):
    """A trace breaks a rule of the representation, which the argument names."""


def validate(trace: Trace) -> None:
    """Check a laid-out trace: columns, references, order, nesting, balance. Costs a few passes over the columns.

    InvalidTrace tells the rule that is broken and the first row that breaks it.
    """
    _check_tracks(trace)
    _check_frames(trace)
    for name in TABLES:
        _check_columns(name, getattr(trace, name))
        for rule, holds, columns in _rules(trace, name):
            _require_of_rows(rule, holds, [getattr(getattr(trace, name), column) for column in columns])
            trace.forget()
    _check_nesting(trace)
    trace.forget()
    for source in trace.sources:
        if not source.balance.even:
            raise InvalidTrace(f"the balance of {source.name} is not even: {source.balance.describe()}")


def _rules(trace: Trace, name: str) -> Iterator[tuple[str, Callable[..., Any], tuple[str, ...]]]:
    """Yield the rules for the rows of a table: the rule in words, a function of columns, and the names of these."""
    if name in TIMED:
        yield f"{name}: track out of range", _in_range(len(trace.tracks)), ("track",)
        yield f"{name}: not sorted by track and time", _sorted, ("track", "ts")
    for text in TEXTS:
        if text in column_types(TABLES[name]):
            yield f"{name}: {text} out of range", _in_range(len(trace.strings)), (text,)
    if name in ("slices", "instants", "logs"):
        size = len(trace.args)
        yield f"{name}: args out of range", lambda at, length: _in_range(size + 1)(at + length), ("args_at", "args_len")
        yield f"{name}: args out of range", lambda at, length: (at >= 0) & (length >= 0), ("args_at", "args_len")
    if name == "slices":
        yield "slices: negative duration", lambda dur: dur >= 0, ("dur",)
    elif name == "flows":
        for column in ("from_slice", "to_slice"):
            yield "flows: slice out of range", _in_range(len(trace.slices.ts)), (column,)
    elif name == "logs":
        kind = trace.tracks.column("kind")
        on_lines = (kind != TrackKind.PROCESS) & (kind != TrackKind.COUNTER)
        yield "logs: on the track of a process or counter", on_lines.__getitem__, ("track",)
    elif name == "samples":
        yield "samples: stack out of range", lambda stack: _in_range(len(trace.frames) + 1)(stack + 1), ("stack",)
        yield "samples: cpu out of range", lambda cpu: cpu >= NO_CPU, ("cpu",)


def _require_of_rows(rule: str, holds: Callable[..., Any], columns: Sequence[Any]) -> None:
    """Check a rule in chunks of rows; chunks overlap by one row for rules about neighbours. Raises InvalidTrace."""
    for rows in overlapping_chunks(len(columns[0])):
        holding = holds(*(column[rows] for column in columns))
        if not np.all(holding):
            raise InvalidTrace(f"{rule} (row {rows.start + int(np.argmin(holding))})")


def _in_range(size: int) -> Callable[[Any], Any]:
    return lambda column: (column >= 0) & (column < size)


def _sorted(track: Any, ts: Any) -> Any:
    step = np.diff(track)
    return (step > 0) | ((step == 0) & (np.diff(ts) >= 0))


def _check_columns(name: str, table: Any) -> None:
    lengths = {column: len(getattr(table, column)) for column in column_types(type(table))}
    if len(set(lengths.values())) > 1:
        raise InvalidTrace(f"{name}: columns of different lengths: {lengths}")


def _check_frames(trace: Trace) -> None:
    for number, frame in enumerate(trace.frames):
        if not -1 <= frame.parent < number:
            raise InvalidTrace(f"frame {number} ({frame.name!r}) does not stand behind its parent, {frame.parent}")


def _check_tracks(trace: Trace) -> None:
    tracks = trace.tracks
    kind, parent, lane_of = tracks.column("kind"), tracks.column("parent"), tracks.column("lane_of")
    number = np.arange(len(tracks))
    _require_of_tracks(trace, "lane_of out of range", _in_range(len(tracks) + 1)(lane_of + 1))
    _require_of_tracks(trace, "clock out of range", _in_range(len(trace.clocks))(tracks.column("clock")))
    _require_of_tracks(trace, "source out of range", _in_range(len(trace.sources))(tracks.column("source")))
    _require_of_tracks(trace, "parent out of range", parent >= NO_TRACK)
    _require_of_tracks(trace, "stands before its parent", parent < number)
    _require_of_tracks(trace, "a process has a parent", (kind != TrackKind.PROCESS) | (parent == NO_TRACK))
    in_process = (parent != NO_TRACK) & (kind[parent] == TrackKind.PROCESS)
    _require_of_tracks(trace, "a thread belongs to no process", (kind != TrackKind.THREAD) | in_process)


def _require_of_tracks(trace: Trace, rule: str, holds: npt.NDArray[np.bool_]) -> None:
    if not np.all(holds):
        number = int(np.argmin(holds))
        raise InvalidTrace(f"track {number} ({trace.tracks[number].name!r}): {rule}")


def _check_nesting(trace: Trace) -> None:
    """Check that each slice ends no later than the slice around it. Raises InvalidTrace."""
    slices = trace.slices
    for begin, end in _tracks_with_overlaps(trace):
        row = _first_crossing(slices, begin, end, end - begin)
        if row < end:
            raise InvalidTrace(f"slice {row} crosses the slice around it on track {slices.track[row]}")

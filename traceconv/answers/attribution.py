"""Find the layer that each thread ran at each time, attribute events to layers, and launches to device work.

Layers are the slices that events are attributed to. A timeline is a thread with layers, divided into segments at the
edges of its layers; each segment has its innermost layer, or none. docs/answers.md has the definitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from traceconv.align.launches import OwnIds, group_numbers, own_ids, with_ids
from traceconv.answers.slice_tables import NO_PARENT, Rows, SliceTable, lengths_in_groups, nesting_of, sums_by
from traceconv.model.columns import I64, distinct_values
from traceconv.model.marks import LaunchMarks, of_launches
from traceconv.model.trace import Slices, take

#: Before and after all times, ns; a bound can be added without overflow.
BEFORE, BEHIND = -(1 << 62), 1 << 62
NONE = -1


class Divided(NamedTuple):
    """Parts of intervals: the number of the interval, the segment of the part, and its share of the interval.

    The parts of an interval are consecutive. `outside` is the share of each interval in which no layer ran.
    """

    interval: I64
    segment: I64
    share: npt.NDArray[np.float64]
    outside: npt.NDArray[np.float64]


class Timelines(Struct, frozen=True, dict=True):
    """The segments of all timelines, concatenated.

    Attributes:
        first: the number of the first segment of each timeline, then the number of all segments.
        starts: the start of each segment, ns; it lasts until the next one of its timeline. The first one is BEFORE.
        rows: the innermost layer of each segment, a row of the slices; NONE for none.
    """

    first: I64
    starts: I64
    rows: I64

    def __len__(self) -> int:
        """Return the number of timelines."""
        return len(self.first) - 1

    @cached_property
    def ends(self) -> I64:
        """Return the end of each segment, ns; the last one of a timeline is BEHIND."""
        ends = np.append(self.starts[1:], BEHIND)
        ends[self.first[1:] - 1] = BEHIND
        return ends

    def between(self, start: int, end: int) -> Timelines:
        """Return the timelines limited to a window (ns); outside of it they run no layer."""
        first, starts, rows = [0], [self.starts[:0]], [self.rows[:0]]
        for span in map(self.span, range(len(self))):
            at, running = self.starts[span], self.rows[span]
            inside = (at > start) & (at < end)
            already = running[int(np.searchsorted(at, start, "right")) - 1]
            starts.append(np.concatenate([[BEFORE, start], at[inside], [end]]))
            rows.append(np.concatenate([[NONE, already], running[inside], [NONE]]))
            first.append(first[-1] + len(starts[-1]))
        return Timelines(np.array(first, np.int64), np.concatenate(starts), np.concatenate(rows))

    def span(self, line: int) -> slice:
        """Return the range of the segments of a timeline."""
        return slice(int(self.first[line]), int(self.first[line + 1]))

    def locate(self, lines: I64, times: I64) -> I64:
        """Return the segments of timelines at times (ns)."""
        positions = np.empty(len(times), np.int64)
        for line, rows in grouped(lines):
            span = self.span(line)
            positions[rows] = np.searchsorted(self.starts[span], times[rows], "right") - 1 + span.start
        return positions

    def runs(self, line: int) -> tuple[I64, I64]:
        """Return the starts and ends of the times in which a timeline runs any layer, ns."""
        span = self.span(line)
        edges = np.diff((self.rows[span] != NONE).astype(np.int8), prepend=0, append=0)
        starts, ends = np.flatnonzero(edges > 0), np.flatnonzero(edges < 0) - 1
        return self.starts[span][starts], self.ends[span][ends]

    def chosen(self, pool: Sequence[int], times: I64) -> tuple[I64, npt.NDArray[np.bool_]]:
        """Choose a timeline of a pool for each of some sorted times; return also at which several were running.

        It is the one that runs a layer; if several do, they take turns. If none does, it is the one with the nearest
        layer.
        """
        if len(pool) == 1:
            return np.full(len(times), pool[0], np.int64), np.zeros(len(times), bool)
        at, line = _within(times, [*map(self.runs, pool)])
        order = np.lexsort((line, at))
        at, line = at[order], line[order]
        count = np.bincount(at, minlength=len(times))
        several = count > 1
        turn = np.where(several, (np.cumsum(several) - 1) % np.maximum(count, 1), 0)
        lines = np.full(len(times), NONE, np.int64)
        running = np.flatnonzero(count)
        lines[running] = line[(np.cumsum(count) - count + turn)[running]]
        idle = np.flatnonzero(lines == NONE)
        lines[idle] = self._nearest(pool, times[idle])
        return np.array(pool, np.int64)[lines], several

    def _nearest(self, pool: Sequence[int], times: I64) -> I64:
        """Return the timeline of the pool with the nearest edge, for each time."""
        edges = [np.concatenate(self.runs(line)) for line in pool]
        at, line = np.concatenate(edges), np.repeat(np.arange(len(pool)), [*map(len, edges)])
        if not len(at):
            return np.zeros(len(times), np.int64)
        order = np.argsort(at, kind="stable")
        at, line = at[order], line[order]
        behind = np.minimum(np.searchsorted(at, times), len(at) - 1)
        before = np.maximum(behind - 1, 0)
        nearest: I64 = line[np.where(times - at[before] <= np.abs(at[behind] - times), before, behind)]
        return nearest

    def divided(self, pool: Sequence[int], starts: I64, ends: I64) -> Divided:
        """Divide sorted, disjoint, non-empty intervals into the segments of a pool of timelines.

        While several timelines run layers, each has an equal share.
        """
        if not any(len(since) for since, _ in map(self.runs, pool)):
            nothing = np.empty(0, np.int64)
            return Divided(nothing, nothing, np.empty(0), np.ones(len(starts)))
        running = _Running(*(np.concatenate(edges) for edges in zip(*map(self.runs, pool), strict=True)))
        parts = []
        for line in pool:
            span = self.span(line)
            segments = np.flatnonzero(self.rows[span] != NONE) + span.start
            low = np.searchsorted(ends, self.starts[segments], "right")
            high = np.searchsorted(starts, self.ends[segments], "left")
            which, interval = expanded(low, high)
            segment = segments[which]
            since = np.maximum(self.starts[segment], starts[interval])
            until = np.minimum(self.ends[segment], ends[interval])
            amount = running.turns(until) - running.turns(since)
            parts.append((interval, segment, amount / (ends - starts)[interval]))
        interval, segment, share = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.lexsort((segment, interval))
        idle = (ends - starts) - (running.time(ends) - running.time(starts))
        return Divided(interval[order], segment[order], share[order], idle / (ends - starts))


class _Running:
    """The number of timelines that run at each time, given the times in which each one runs."""

    def __init__(self, starts: I64, ends: I64) -> None:
        self._at, at = np.unique(np.concatenate([starts, ends]), return_inverse=True)
        change = np.repeat(np.array([1, -1]), len(starts))
        steps = np.zeros(len(self._at), np.int64)
        np.add.at(steps, at, change)
        self._count = np.cumsum(steps)
        lengths = np.diff(self._at)
        busy = self._count[:-1] > 0
        self._time = np.append(0, np.cumsum(np.where(busy, lengths, 0)))
        self._turns = np.append(0, np.cumsum(np.where(busy, lengths / np.maximum(self._count[:-1], 1), 0)))

    def _step(self, times: I64) -> tuple[I64, I64]:
        """Return the step that each time lies in, and the time since its start, ns."""
        step = np.maximum(np.searchsorted(self._at, times, "right") - 1, 0)
        return step, np.maximum(times - self._at[step], 0)

    def time(self, times: I64) -> I64:
        """Return the time in which any of them has run up to each time, ns."""
        step, past = self._step(times)
        time: I64 = self._time[step] + np.where(self._count[step] > 0, past, 0)
        return time

    def turns(self, times: I64) -> npt.NDArray[np.float64]:
        """Return the time that each has run up to each time, ns; time in which n run counts as 1/n."""
        step, past = self._step(times)
        count = self._count[step]
        turns: npt.NDArray[np.float64] = self._turns[step] + np.where(count > 0, past / np.maximum(count, 1), 0)
        return turns


def grouped(numbers: I64) -> Iterator[tuple[int, I64]]:
    """Yield each distinct number except NONE with its rows, in order."""
    order = np.argsort(numbers, kind="stable")
    first = np.flatnonzero(np.append(True, np.diff(numbers[order]) != 0)) if len(numbers) else order
    for at, end in zip(first.tolist(), [*first[1:].tolist(), len(numbers)], strict=False):
        if numbers[order[at]] != NONE:
            yield int(numbers[order[at]]), order[at:end]


def expanded(low: I64, high: I64) -> tuple[I64, I64]:
    """Return all pairs of a row and a number in its range [low, high)."""
    counts = np.maximum(high - low, 0)
    which = np.repeat(np.arange(len(counts)), counts)
    return which, np.arange(len(which)) - (np.cumsum(counts) - counts - low)[which]


def distinct(group: I64, low: I64, high: I64) -> tuple[I64, I64, I64]:
    """Return the ranges [low, high) of each group, sorted, without parts that an earlier range of the group covers."""
    order = np.lexsort((low, group))
    group, low, high = group[order], low[order], np.maximum(high, low)[order]
    scale = np.int64(int(np.max(high, initial=0)) + 1)
    reach = np.maximum.accumulate(group * scale + high) if len(group) else high
    before = np.append(0, reach[:-1])[: len(group)] - group * scale
    low = np.minimum(np.maximum(low, before), high)
    return group, low, high


def timelines(
    slices: Slices, rows: I64, line_of_track: I64, inwards: npt.NDArray[np.bool_ | np.int8] | None = None
) -> Timelines:
    """Return the timelines of layers.

    If layers run on several tracks of a timeline, the innermost is the one that started last.

    Args:
        slices: the slices, laid out.
        rows: the layers, sorted.
        line_of_track: the number of the timeline of each track; NONE for tracks without layers.
        inwards: those of more are inside those of other tracks that have less, whichever started last.
    """
    rows = rows[slices.dur[rows] > 0]
    layers = take(slices, rows)
    count = len(rows)
    parent = nesting_of(layers).parent
    outer = np.where(parent == NO_PARENT, NONE, rows[parent]) if count else parent
    times = np.concatenate([layers.ts + layers.dur, layers.ts])
    inner = np.concatenate([outer, rows])
    # At one time inner layers end first, then outer ones start first: the last entry is the running layer.
    rank = np.concatenate([-np.arange(count), count + np.arange(count)])
    track = np.concatenate([layers.track, layers.track])
    order = np.lexsort((rank, times, track))
    times, inner, track = times[order], inner[order], track[order]
    last = np.append((np.diff(times) != 0) | (np.diff(track) != 0), True)[: 2 * count]
    times, inner, track = times[last], inner[last], track[last].astype(np.int64)
    merged = []
    for _, on_line in grouped(line_of_track[track]):
        tracks = [
            (np.append(BEFORE, times[on_line[on_track]]), np.append(NONE, inner[on_line[on_track]]))
            for _, on_track in grouped(track[on_line])
        ]
        while len(tracks) > 1:
            tracks = [_latest(slices, tracks[at : at + 2], inwards) for at in range(0, len(tracks), 2)]
        merged.append(tracks[0])
    starts, inside = zip(*merged, strict=True) if merged else ((np.empty(0, np.int64),), (np.empty(0, np.int64),))
    first = np.cumsum([0, *(len(edges) for edges, _ in merged)])
    return Timelines(first.astype(np.int64), np.concatenate(starts), np.concatenate(inside))


def _latest(
    slices: Slices, tracks: Sequence[tuple[I64, I64]], inwards: npt.NDArray[np.bool_ | np.int8] | None
) -> tuple[I64, I64]:
    """Merge one or two tracks, given as starts and rows of segments, into one; `inwards` as in `timelines`.

    Of two layers that run, the one further inwards counts, else the one that started last, else the shorter one.
    """
    if len(tracks) == 1:
        return tracks[0]
    starts = distinct_values(np.concatenate((tracks[0][0], tracks[1][0])))
    left, right = (rows[np.searchsorted(at, starts, "right") - 1] for at, rows in tracks)
    since = [np.where(rows == NONE, BEFORE, slices.ts[rows]) for rows in (left, right)]
    is_right = (since[1] > since[0]) | ((since[1] == since[0]) & (slices.dur[right] < slices.dur[left]))
    if inwards is not None:
        first, second = (np.where(rows == NONE, NONE, inwards[rows]) for rows in (left, right))
        is_right = np.where(first == second, is_right, second > first)
    return starts, np.where(is_right, right, left)


def run_parts(ran: Timelines, line: I64, starts: I64, ends: I64) -> tuple[I64, Rows, I64]:
    """Return the parts of intervals by what ran in them: the number of the interval, the slice, and the length, ns."""
    some, none = np.flatnonzero(line != NONE), np.flatnonzero(line == NONE)
    low, high = (ran.locate(line[some], at[some]) for at in (starts, ends - 1))
    which, segment = expanded(low, high + 1)
    gap = some[which]
    length = np.minimum(ran.ends[segment], ends[gap]) - np.maximum(ran.starts[segment], starts[gap])
    return (
        np.append(gap, none),
        np.append(ran.rows[segment], np.full(len(none), NONE)),
        np.append(length, (ends - starts)[none]),
    )


def self_lengths(table: SliceTable, rows: Rows, group: I64, count: int) -> I64:
    """Return for each of `count` groups of slices how long a thread runs one of them itself, of each process, ns."""
    slices, parent, tracks = table.trace.slices, table.nesting.parent, len(table.trace.tracks)
    if len(np.unique(slices.track[rows])) == len(np.unique(table.processes[slices.track[rows]])):
        return sums_by(group, table.nesting.self_ns[rows], count)
    group_of = np.full(len(slices.ts) + 1, NONE, np.int64)  # NO_PARENT is the last one
    group_of[rows] = group
    ran = timelines(slices, np.flatnonzero((group_of[:-1] != NONE) | (group_of[parent] != NONE)), np.arange(tracks))
    number = group_of[ran.rows]  # NONE is the last one
    some = number != NONE
    process = table.processes[slices.track[ran.rows[some]]]
    pair, number_of_pair = np.unique(number[some] * tracks + process, return_inverse=True)
    lengths = lengths_in_groups(number_of_pair.reshape(-1), ran.starts[some], ran.ends[some], len(pair))
    return sums_by(pair // tracks, lengths, count)


def _within(times: I64, intervals: Sequence[tuple[I64, I64]]) -> tuple[I64, I64]:
    """Return all pairs of a sorted time and a set of intervals that contains it, by their numbers."""
    numbers = [expanded(np.searchsorted(times, starts), np.searchsorted(times, ends))[1] for starts, ends in intervals]
    return np.concatenate(numbers), np.repeat(np.arange(len(numbers)), [*map(len, numbers)])


# -- Find the host call that launched each slice of device work ------------------------------------------------------


def work_of(table: SliceTable, number: int) -> Rows:
    """Return the rows of the slices of an input that are device work."""
    marks = table.trace.sources[number].marks
    rows = table.rows_of(number) if marks.launches is not None or marks.devices is not None else np.empty(0, np.intp)
    is_work = np.zeros(len(rows), bool)
    if marks.launches is not None:
        is_work |= table.of_categories(marks.launches.work, rows) & ~table.named(marks.launches.pauses, rows)
    if marks.devices is not None:
        is_work |= table.on_tracks(marks.devices.queues, rows)
    return rows[is_work]


def launch_rows(table: SliceTable) -> I64:
    """Return the row of the launch call of each slice, NONE if not recorded; the array is shared.

    Work and its call share an id, which is unique in their process. Flows are used where no id is stated, several calls
    have it, or the process of a device is not known. They are less reliable: several slices can start at the time of a
    flow, and of a graph only one slice may have a flow.
    """
    found: I64 = table.once(_launches)
    return found


def _launches(table: SliceTable) -> I64:
    trace = table.trace
    launch = np.full(len(trace.slices.ts), NONE, np.int64)
    works = [work_of(table, number) for number in range(len(trace.sources))]
    by_flows: dict[str, list[Rows]] = {}
    for work, info in zip(works, trace.sources, strict=True):
        if len(work):
            by_flows.setdefault(info.marks.launch_flows, []).append(work)
    for pattern, some in by_flows.items():
        _add_by_flows(launch, table, pattern, np.concatenate(some))
    _add_by_flows_of_outputs(launch, table, works)
    numbers: dict[tuple[str, ...], I64] = {}
    no_ranks = np.zeros(len(trace.strings), np.int64)  # calls on the tracks of hosts have any category
    for number, (work, info) in enumerate(zip(works, trace.sources, strict=True)):
        if not len(work):
            continue
        by_track, by_category = info.marks.devices, info.marks.launches
        if by_track is not None and by_track.ids:
            rows = table.rows_of(number)
            rows = rows[table.on_tracks(by_track.hosts, rows)]
            _add_by_ids(launch, table, work, rows, LaunchMarks(calls=("",), ids=by_track.ids), no_ranks)
        if by_category is not None:
            if by_category.calls not in numbers:
                numbers[by_category.calls] = group_numbers(trace.strings, by_category.calls)
            _add_by_ids(launch, table, work, table.rows_of(number), by_category, numbers[by_category.calls])
    return launch


def _add_by_ids(launch: I64, table: SliceTable, work: Rows, hosts: Rows, marks: LaunchMarks, rank_of: I64) -> None:
    """Add the calls with the ids of device work."""
    rows, ids = with_ids(table.trace, work, marks)
    calls = own_ids(table.trace, hosts, marks, rank_of, table.processes, len(marks.calls))
    if not len(calls.ids) or not len(rows):
        return
    device = table.processes[table.trace.slices.track[rows]]
    process = _processes(launch, table, device, rows, calls)[device]
    known = process != NONE
    # The ids of the calls of each process, in one ascending order.
    values, number = np.unique(np.concatenate((calls.ids, ids)), return_inverse=True)
    number = number.reshape(-1)
    of_call, of_work = number[: len(calls.ids)], number[len(calls.ids) :]
    keys = calls.process * len(values) + of_call
    order = np.argsort(keys)
    wanted = process[known] * len(values) + of_work[known]
    at = order[np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)]
    same = keys[at] == wanted
    launch[rows[known][same]] = calls.rows[at[same]]
    # Each process counts from 1: two devices with one id may be of two processes, of which one has no calls here.
    id_of_pair, device_of_pair = _distinct_pairs(of_work, device)
    shares = np.bincount(id_of_pair, minlength=len(values)) > 1
    apart = ~np.isin(device, device_of_pair[shares[id_of_pair]])
    only = calls.of_one_process()
    rest = np.flatnonzero(~known & apart & (launch[rows] == NONE))
    if len(only.ids) and len(rest):
        at = np.minimum(np.searchsorted(only.ids, ids[rest]), len(only.ids) - 1)
        same = only.ids[at] == ids[rest]
        launch[rows[rest[same]]] = only.rows[at[same]]


def _processes(launch: I64, table: SliceTable, device: I64, rows: Rows, calls: OwnIds) -> I64:
    """Return, for each track that is a device, the process that launches its work: NONE if unknown, or one of several.

    It is the process that the device is drawn in, if this has calls, or else that from which all its flows come.
    """
    result = np.full(len(table.trace.tracks), NONE, np.int64)
    by_flow = launch[rows] != NONE
    launched, by = device[by_flow], table.processes[table.trace.slices.track[launch[rows[by_flow]]]]
    launched, by = _distinct_pairs(launched, by)
    devices, first, count = np.unique(launched, return_index=True, return_counts=True)
    result[devices[count == 1]] = by[first[count == 1]]
    result[calls.process] = calls.process
    return result


def _distinct_pairs(first: I64, second: I64) -> tuple[I64, I64]:
    """Return the distinct pairs of two columns of numbers that are not negative, in ascending order."""
    count = int(np.max(second, initial=0)) + 1
    pairs = distinct_values(first.astype(np.int64) * count + second)
    return pairs // count, pairs % count


def _add_by_flows(launch: I64, table: SliceTable, pattern: str, work: Rows) -> None:
    """Add the starts of flows that end at device work and have the names of launch flows."""
    flows = table.trace.flows
    is_work = np.zeros(len(launch), bool)
    is_work[work] = True
    says = of_launches(pattern, table.trace.strings)
    launching = (says[flows.name] | says[flows.category]) & is_work[flows.to_slice]
    launch[flows.to_slice[launching]] = flows.from_slice[launching]


def _add_by_flows_of_outputs(launch: I64, table: SliceTable, works: list[Rows]) -> None:
    """Add the starts of flows in outputs of traceconv, where Perfetto's format drops the names of flows.

    They are launches if they lead from what is no device work to device work of one stated input, and the format of
    that input declares launch flows.
    """
    trace = table.trace
    flows, of_slice = trace.flows, trace.slices.track
    unnamed = np.array([not text for text in trace.strings], bool)
    stated = np.array([track.stated.input for track in trace.tracks], np.int64)
    for number, (work, info) in enumerate(zip(works, trace.sources, strict=True)):
        launching = [at for at, source in enumerate(info.stated) if source.marks.launch_flows]
        if not len(work) or not launching or not len(flows.from_slice):
            continue
        is_work, of_input = np.zeros(len(launch), bool), np.zeros(len(launch), bool)
        is_work[work], of_input[table.rows_of(number)] = True, True
        begin, end = flows.from_slice, flows.to_slice
        inputs = stated[of_slice[end]]
        found = unnamed[flows.name] & unnamed[flows.category] & is_work[end] & of_input[begin] & ~is_work[begin]
        found &= np.isin(inputs, launching) & (stated[of_slice[begin]] == inputs) & (launch[end] == NONE)
        launch[end[found]] = begin[found]

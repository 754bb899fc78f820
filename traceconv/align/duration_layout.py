"""Lay the slices of a log without times along the slices of another input that they were matched to.

The order of a log holds over all of its tracks: events printed between two matched slices lie between these. Before the
first match and after the last one the position is not known: there events are laid end to end, in order, on tracks
whose names state that the times are not measured.

A matched slice lies inside its parent, an unmatched one between its neighbours. No slice is stretched; one that is too
long for its interval is shortened, with a note in its args. The order is kept, and nothing overlaps. All times are
int64 ns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import IntEnum
from itertools import combinations
from typing import Any

import numpy as np
from msgspec import Struct, structs

from traceconv.align.constraints import NameMap
from traceconv.align.domains import Key, Warnings
from traceconv.align.duplicates import same_recording
from traceconv.align.durations import align_durations
from traceconv.align.estimate import Array, PairEstimate, is_accepted, some_of
from traceconv.align.features import shared_work
from traceconv.align.inputs import (
    ClockInput,
    Inputs,
    Maps,
    Placed,
    Policy,
    beside,
    is_related,
    is_timed,
    not_aligned,
    of_other_pids,
    taken_as_best,
)
from traceconv.io.shown import listed
from traceconv.model.args import AnyArgs, with_more_args
from traceconv.model.clocks import ClockMap, Provenance, Run, Step, Verdict
from traceconv.model.columns import I32, I64
from traceconv.model.layout import sort_events
from traceconv.model.numbers import format_short
from traceconv.model.trace import Trace
from traceconv.model.track_table import NO_TRACK, Track, TrackId, TrackKind, Tracks

_SYNTHETIC = " (synthetic)"
_NOT_KNOWN = (
    "Slices before the first and after the last match. Their order and durations are real, their times are not known."
)


# -- the slices of one track ------------------------------------------------------------------------------------------


class Place(IntEnum):
    """The kind of position of a slice."""

    INSIDE = 0
    BETWEEN = 1
    BEFORE = 2
    AFTER = 3


class Layout(Struct, frozen=True):
    """The positions of slices.

    Attributes:
        ts, dur: start and duration, ns, in the order of the slices.
        place: a Place for each slice.
        parent: the row of the parent, -1 for none.
    """

    ts: I64
    dur: I64
    place: I32
    parent: I64
    shortened: Array


def lay_inside(dur: I64, pairs: tuple[Array, Array], parent_ts: I64, parent_dur: I64) -> Layout:
    """Lay the slices of one track inside and between the parents that they were matched to.

    The slices of one parent lie side by side in its middle. If the next parent starts before its end, the interval ends
    there. Parents with the same start count as one. Slices before the first matched one and after the last one lie end
    to end.

    Args:
        dur: the duration of each slice, ns, in order.
        pairs: rows of parents, not decreasing, and the rows of the matched slices, ascending.
        parent_ts, parent_dur: the parents in order of their start, ns.

    Raises:
        ValueError: there is no pair, or rows or parents are not in order.
    """
    parents, rows = (np.asarray(side, np.int64) for side in pairs)
    starts = np.asarray(parent_ts, np.int64)[parents]
    if not len(rows) or (np.diff(rows) <= 0).any() or (np.diff(starts) < 0).any():
        raise ValueError("expected pairs in order of the slices, with parents in order of their start")
    segment = _segments(len(dur), rows, starts)
    bounds = np.concatenate(([0], np.flatnonzero(np.diff(segment)) + 1, [len(dur)]))
    kinds = segment[bounds[:-1]]
    before = np.concatenate((np.zeros(1, np.int64), np.cumsum(dur, dtype=np.int64)))
    total = before[bounds[1:]] - before[bounds[:-1]]
    first = np.flatnonzero(np.diff(starts, prepend=starts[0] - 1))
    ends = np.maximum.reduceat(starts + np.asarray(parent_dur, np.int64)[parents], first)
    low, high = _rooms(kinds, total, starts[first], ends)
    ts, short = _placed(before, bounds, low, high, total)
    part = np.repeat(np.arange(len(kinds)), np.diff(bounds))
    inside = segment % 2 == 1
    of_row = np.full(len(dur), -1, np.int64)
    of_row[inside] = parents[first][segment[inside] // 2]
    of_row[rows] = parents
    place = np.where(inside, Place.INSIDE, Place.BETWEEN).astype(np.int32)
    place[segment == 0] = Place.BEFORE
    place[segment == 2 * len(first)] = Place.AFTER
    return Layout(ts[:, 0], ts[:, 1] - ts[:, 0], place, of_row, short[part] & (ts[:, 1] - ts[:, 0] < dur))


def _segments(count: int, rows: I64, starts: I64) -> I64:
    """Return the segment of the track for each slice: 2 g + 1 inside parent g, 2 g before it, 2 g + 2 after it."""
    group = np.cumsum(np.diff(starts, prepend=starts[0] - 1) != 0) - 1
    passed = np.searchsorted(rows, np.arange(count), "right")
    latest = np.where(passed > 0, group[np.maximum(passed - 1, 0)], -1)
    coming = np.searchsorted(rows, np.arange(count), "left")
    following = np.where(coming < len(rows), group[np.minimum(coming, len(rows) - 1)], -2)
    segments: I64 = 2 * latest + np.where(latest == following, 1, 2)
    return segments


def _rooms(kinds: I64, total: I64, starts: I64, ends: I64) -> tuple[I64, I64]:
    """Return the start and the end of the interval for the slices of each segment, ns."""
    low, high = np.zeros((2, len(kinds)), np.int64)
    inside = np.flatnonzero(kinds % 2 == 1)
    limit = np.minimum(ends, np.append(starts[1:], ends[-1]))
    low[inside] = starts + np.maximum(0, limit - starts - total[inside]) // 2
    high[inside] = np.minimum(limit, low[inside] + total[inside])
    gaps = np.flatnonzero(kinds % 2 == 0)
    following = low[np.minimum(gaps + 1, len(kinds) - 1)]
    begin = np.where(gaps > 0, high[gaps - 1], following - total[gaps])
    space = np.where(gaps + 1 < len(kinds), following - begin, total[gaps])
    low[gaps] = begin + np.maximum(0, space - total[gaps]) // 2
    high[gaps] = low[gaps] + np.minimum(space, total[gaps])
    return low, high


def _placed(before: I64, bounds: Array, low: I64, high: I64, total: I64) -> tuple[I64, Array]:
    """Return the start and the end of each slice, ns, and which segments are shortened."""
    count = np.diff(bounds)
    base = np.repeat(before[bounds[:-1]], count)
    times = np.stack((before[:-1] - base, before[1:] - base), axis=1) + np.repeat(low, count)[:, None]
    short = total > high - low
    for part in np.flatnonzero(short).tolist():
        rows = slice(int(bounds[part]), int(bounds[part + 1]))
        space, whole, begin = int(high[part] - low[part]), int(total[part]), int(low[part])
        edges = [
            begin + (int(edge) - int(before[rows.start])) * space // whole
            for edge in before[rows.start : rows.stop + 1]
        ]
        times[rows, 0], times[rows, 1] = edges[:-1], edges[1:]
    return times, short


_WORDS = {
    Place.BETWEEN: "between neighbours",
    Place.BEFORE: "before the first match",
    Place.AFTER: "after the last match",
}


def placed_args(laid: Layout, dur: I64, parent_names: list[str]) -> list[dict[str, object]]:
    """Return the args of each slice about its position: {"placed": ...}, and its real duration if it was shortened.

    Args:
        dur: the real durations, ns.
        parent_names: the name of each parent, by row.
    """
    args: list[dict[str, object]] = []
    columns = laid.place.tolist(), laid.parent.tolist(), laid.shortened.tolist(), dur.tolist()
    for place, parent, short, real in zip(*columns, strict=True):
        text = f"inside {parent_names[parent]}" if place == Place.INSIDE else _WORDS[Place(place)]
        args.append({"placed": f"{text}, shortened", "real_dur_ns": real} if short else {"placed": text})
    return args


# -- a log ------------------------------------------------------------------------------------------------------------


class Order(Struct, frozen=True):
    """Slices of a log in its order; none of them contains or overlaps another one.

    Attributes:
        rows: the slices.
        parents: the row in the host that each one was matched to, -1 for none.
        tracks: for each track of the log the number of its root, -1 if it belongs to another sequence.
    """

    rows: Array
    parents: Array
    tracks: Array


class Placement(Struct, frozen=True):
    """The position of an input without times in another one.

    Attributes:
        host: the number of the other input.
        note: the numbers of slices by kind of position, for the receipt.
    """

    host: int
    sequences: tuple[Order, ...]
    matches: int
    note: str

    def parents(self) -> Array:
        """Return the rows of the host that contain slices of the log."""
        parents: Array = np.unique(np.concatenate([sequence.parents for sequence in self.sequences]))
        return parents[parents >= 0]


def placement_in(host: Trace, number: int, guest: Trace, clock: int, pairs: tuple[Array, Array]) -> Placement | None:
    """Return the position of a log in a host of a number; None if the order of the matched slices is not known.

    Args:
        guest, clock: the log, and the number of its clock without times.
        pairs: matched rows of the slices of host and guest.
    """
    parents = np.full(len(guest.slices.ts), -1, np.int64)
    parents[pairs[1]] = pairs[0]
    sequences = tuple(_sequences(guest, clock, parents))
    if not sequences:
        return None
    return Placement(
        number, sequences, int(sum((order.parents >= 0).sum() for order in sequences)), _note(guest, host, sequences)
    )


def _sequences(guest: Trace, clock: int, parents: Array) -> Iterable[Order]:
    """Yield a log as one sequence; or, if its tracks overlap, a sequence for each track with matches."""
    roots = np.array(
        [_root(guest, number) if int(track.clock) == clock else -1 for number, track in enumerate(guest.tracks)]
    )
    whole = _leaves(guest, roots)
    if whole is not None:
        if (parents[whole] >= 0).any():  # else only slices that contain others were matched, which cannot be laid
            yield Order(whole, parents[whole], roots)
        return
    for track in np.unique(guest.slices.track[parents >= 0]).tolist():
        alone = np.where(np.arange(len(roots)) == track, roots, -1)
        rows = _leaves(guest, alone)
        if rows is not None and (parents[rows] >= 0).any():
            yield Order(rows, parents[rows], alone)


def _root(trace: Trace, number: int) -> int:
    """Return the topmost track above a track, except processes: each run of a log has a root track of its own."""
    track = trace.tracks[number]
    while track.parent != NO_TRACK and trace.tracks[track.parent].kind is not TrackKind.PROCESS:
        number = int(track.parent)
        track = trace.tracks[number]
    return number


def _leaves(trace: Trace, roots: Array) -> Array | None:
    """Return the slices that contain no other one, in log order; None if slices of one root overlap."""
    slices = trace.slices
    root = roots[slices.track]
    rows = np.flatnonzero(root >= 0)
    end = slices.ts + slices.dur
    long = rows[slices.dur[rows] > 0]
    long = long[np.lexsort((-end[long], slices.ts[long], root[long]))]
    first, second = long[:-1], long[1:]
    holds = (root[first] == root[second]) & (slices.ts[second] < end[first]) & (end[second] <= end[first])
    rows = np.setdiff1d(rows, first[holds])
    rows = rows[np.lexsort((slices.origin[rows], slices.ts[rows], root[rows]))]
    same = root[rows][1:] == root[rows][:-1]
    if not len(rows) or (same & (slices.ts[rows][1:] < end[rows][:-1])).any():
        return None
    return rows[np.argsort(slices.origin[rows], kind="stable")]


def _layout(sequence: Order, guest: Trace, host: Trace) -> tuple[Layout, Array]:
    """Return the positions of the slices of a sequence on the clock of the host, and the rows of their parents."""
    matched = np.flatnonzero(sequence.parents >= 0)
    wanted, place = np.unique(sequence.parents[matched], return_inverse=True)
    order = np.argsort(host.slices.ts[wanted], kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    wanted = wanted[order]
    of_parent = rank[place]
    in_order = np.maximum.accumulate(of_parent) == of_parent  # matches that cross each other are dropped
    pairs = of_parent[in_order], matched[in_order]
    dur = guest.slices.dur[sequence.rows]
    return lay_inside(dur, pairs, host.slices.ts[wanted], host.slices.dur[wanted]), wanted


def _note(guest: Trace, host: Trace, sequences: tuple[Order, ...]) -> str:
    """Return the sentence for the receipt: the numbers of slices by kind of position, and their uncertainty."""
    laid = [_layout(sequence, guest, host) for sequence in sequences]
    layouts = [layout for layout, _ in laid]
    place = np.concatenate([layout.place for layout in layouts])
    inside, between = int((place == Place.INSIDE).sum()), int((place == Place.BETWEEN).sum())
    apart = len(place) - inside - between
    uncertainty = ""
    if inside:
        rooms = [_room(layout, parents, host) for layout, parents in laid]
        half, nearly_all = np.quantile(np.concatenate(rooms), (0.5, 0.95)).tolist()
        uncertainty = (
            f" (if the matches are right, half of them within ±{format_short(half)}, 19 of 20 within ±"
            f"{format_short(nearly_all)})"
        )
    words = [
        f"{inside} of {len(place)} slices lie inside the slices of {host.sources[0].name} that they match{uncertainty}"
    ]
    if between:
        words.append(f"{between} without a match are laid in order between their neighbours")
    if apart:
        rows = np.concatenate([order.rows[_is_apart(laid)] for order, laid in zip(sequences, layouts, strict=True)])
        numbers = np.unique(guest.slices.track[rows]).tolist()
        tracks = [repr(_apart_name(guest.tracks[number])) for number in numbers]
        words.append(f"{apart} before the first or after the last match are laid in order on {listed(tracks, ' and ')}")
    return listed(words)


def _room(layout: Layout, parents: Array, host: Trace) -> Array:
    """Return how far each slice inside a parent may be from its true position, ns: anywhere in the parent."""
    rows = np.flatnonzero(layout.place == Place.INSIDE)
    holder = parents[layout.parent[rows]]
    begin, end = host.slices.ts[holder], host.slices.ts[holder] + host.slices.dur[holder]
    away: Array = np.maximum(layout.ts[rows] - begin, end - layout.ts[rows] - layout.dur[rows])
    return away


def _is_apart(layout: Layout) -> Array:
    apart: Array = (layout.place == Place.BEFORE) | (layout.place == Place.AFTER)
    return apart


def laid_inside(guest: Trace, host: Trace, placement: Placement) -> Trace:
    """Return the log laid along the slices of its host, both on trace time; also emptied tracks keep their numbers."""
    added_args: dict[int, AnyArgs] = {}
    times = {name: table.ts.copy() for name, table in guest.timed_tables()}
    apart = {name: np.zeros(len(ts), bool) for name, ts in times.items()}
    dur = guest.slices.dur.copy()
    for sequence in placement.sequences:
        layout, wanted = _layout(sequence, guest, host)
        for name, rows, begin, end, out in _moves(guest, sequence, layout):
            times[name][rows], apart[name][rows] = begin, out
            if name == "slices":
                dur[rows] = end - begin
        names = [host.strings[name] for name in host.slices.name[wanted].tolist()]
        around = np.flatnonzero(sequence.tracks[guest.slices.track] >= 0).tolist()
        added_args |= {row: {"placed": "around the events inside"} for row in around}
        rows = sequence.rows
        added_args |= dict(zip(rows.tolist(), placed_args(layout, guest.slices.dur[rows], names), strict=True))
    moved: dict[str, Any] = {name: replace(table, ts=times[name]) for name, table in guest.timed_tables()}
    moved["slices"] = replace(moved["slices"], dur=dur)
    laid = with_more_args(guest.with_tables(**moved), added_args.keys(), added_args.values())
    return sort_events(_set_apart(laid, apart))


def _moves(guest: Trace, sequence: Order, layout: Layout) -> Iterator[tuple[str, Array, I64, I64, Array]]:
    """Yield the new times of a sequence, and of the other events on its tracks, which keep their place in the order."""
    slices, rows_laid = guest.slices, sequence.rows
    root, is_apart = sequence.tracks[slices.track[rows_laid]], _is_apart(layout)
    known = np.flatnonzero(~is_apart)
    first, last = int(layout.ts[known[0]]), int(layout.ts[known[-1]] + layout.dur[known[-1]])
    for name, table in guest.timed_tables():
        for number in np.unique(root).tolist():
            rows = np.flatnonzero(sequence.tracks[table.track] == number)
            laid = root == number
            before = slices.ts[rows_laid[laid]], slices.dur[rows_laid[laid]]
            after = layout.ts[laid], layout.dur[laid]
            start = _carried(table.ts[rows], before, after, begins=name == "slices")
            end = start
            if name == "slices":
                end = np.maximum(start, _carried(table.ts[rows] + table.dur[rows], before, after, begins=False))
            yield name, rows, start, end, (end <= first) | (start >= last)
    yield "slices", rows_laid, layout.ts, layout.ts + layout.dur, is_apart


def _carried(ts: I64, before: tuple[I64, I64], after: tuple[I64, I64], *, begins: bool) -> I64:
    """Return times of a log, moved like the slices around them."""
    start, dur = before
    at = np.maximum(np.searchsorted(start, ts, "right" if begins else "left") - 1, 0)
    into = np.clip(ts - start[at], 0, dur[at])
    share = after[1][at] / np.maximum(dur[at], 1)
    carried: I64 = after[0][at] + np.minimum(np.round(into * share).astype(np.int64), after[1][at])
    return carried


def _apart_name(track: Track) -> str:
    """Return the name of the track for events whose times are not known."""
    name = track.name.removesuffix(_SYNTHETIC) or ("" if track.tid is None else f"thread {track.tid}")
    return f"{name} (times not measured)".strip()


def _set_apart(trace: Trace, apart: dict[str, Array]) -> Trace:
    """Move events whose times are not known to tracks of their own, beside their old tracks."""
    tables = {name: table for name, table in trace.timed_tables() if name not in ("logs", "samples")}
    wanted = {number for name, table in tables.items() for number in np.unique(table.track[apart[name]]).tolist()}
    tracks = list(trace.tracks)
    goes_to = np.arange(len(tracks))
    for number in sorted(wanted):
        track = tracks[number]
        kind = track.kind if track.kind is TrackKind.COUNTER else TrackKind.TRACK
        words = "\n".join(filter(None, (_NOT_KNOWN, track.description)))
        goes_to[number] = len(tracks)
        name = _apart_name(track)
        tracks.append(
            structs.replace(track, kind=kind, name=name, tid=None, lane_of=TrackId(NO_TRACK), description=words)
        )
    changed = {
        name: replace(table, track=np.where(apart[name], goes_to[table.track], table.track).astype(np.int32))
        for name, table in tables.items()
    }
    return trace.with_tables(tracks=Tracks(tracks), **changed)


# -- Find the input whose slices contain the work of a log without times ---------------------------------------------

#: The number of slices that are compared to see whether two hosts agree.
_LOOKED_AT = 200


def with_durations(inputs: Inputs, placed: Placed, policy: Policy) -> Placed:
    """Return the clocks on trace time, also those of logs without times that durations place inside other inputs."""
    hosts = {clock: placed.maps[clock.key] for clock in inputs.clocks if is_timed(clock, placed.maps)}
    maps, pairs, warnings = dict(placed.maps), list(placed.pairs), list(placed.warnings)
    placements: dict[int, Placement] = {}
    for index in range(len(inputs.traces)):
        alone = [clock for clock in inputs.clocks_of(index) if clock.domain.run is Run.NONE]
        if not alone or is_related(inputs, placed.maps, index):
            continue
        around = {host: way for host, way in hosts.items() if not of_other_pids(alone[0], host, inputs.clocks)}
        tried = _tried(alone[0], around, policy.names, same_run=policy.same_run)
        best, placement = _best(tried)
        accepted = best is not None and is_accepted(best.estimate, same_run=policy.same_run)
        if best is not None and placement is not None and (accepted or policy.on_ambiguous == "best"):
            placements[index] = placement
            step = Step(f"durations of the same work in {best.a.name}", Provenance.ESTIMATED)
            verdict = Verdict.ASSUMED if accepted else best.estimate.verdict
            clock_map = ClockMap(hosts[best.a].at(best.a.span[0]), None, (step,), verdict)
            texts = [] if accepted else [taken_as_best(best, best.b)]
            tried = [structs.replace(pair, taken=pair is best) for pair in tried]
        elif policy.on_ambiguous == "separate":
            drawn = hosts or {clock: placed.maps[clock.key] for clock in inputs.clocks if clock.key in placed.maps}
            clock_map, texts = beside(min(way.at(host.span[0]) for host, way in drawn.items())), [not_aligned(tried)]
        else:
            pairs += tried
            continue
        pairs += tried
        for clock in alone:
            maps[clock.key] = structs.replace(clock_map, offset_ns=clock_map.offset_ns - clock.span[0])
            warnings += [(clock.key, text) for text in texts]
    warnings += _shared_slices(inputs.traces, placements, maps)
    return Placed(maps, pairs, warnings, placements)


def _best(tried: Sequence[PairEstimate]) -> tuple[PairEstimate | None, Placement | None]:
    """Return the first estimate by which a log can be laid inside slices, and how it lies there; None without any."""
    for pair in tried:
        if pair.rows is not None and len(pair.rows[0]):
            placement = placement_in(pair.a.trace, pair.a.index, pair.b.trace, pair.b.clock, pair.rows)
            if placement is not None:
                return pair, placement
    return None, None


def _shared_slices(traces: Sequence[Trace], placements: Mapping[int, Placement], maps: Maps) -> Warnings:
    """Return a warning for each two logs of one tool in the same slices: it prints each event once."""
    warnings: list[tuple[Key, str]] = []
    for first, second in combinations(placements, 2):
        parents = placements[first].parents(), placements[second].parents()
        shared = len(np.intersect1d(parents[0], parents[1]))
        sources = [traces[index].sources[0] for index in (first, second)]
        same_kind = placements[first].host == placements[second].host and sources[0].format == sources[1].format
        if same_kind and 2 * shared > min(map(len, parents)) and not same_recording(traces[first], traces[second]):
            names = {first: sources[1].name, second: sources[0].name}
            warnings += [
                (key, f"it lies in the same slices as {names[key[0]]}, so one of the two must be of another run")
                for key in maps
                if key[0] in names
            ]
    return warnings


def _tried(
    guest: ClockInput, hosts: Mapping[ClockInput, ClockMap], names: NameMap, *, same_run: bool
) -> list[PairEstimate]:
    """Return the estimates of a log by each host, best first; accepted ones are ambiguous unless they agree."""
    pairs: list[PairEstimate] = []
    for host in hosts:
        views = shared_work(host.trace, host.clock, guest.trace, guest.clock, names)
        if views is None:
            continue
        outer, inner = views
        estimate = align_durations(outer.events, inner.events)
        matched = estimate.pairs
        rows = None if matched is None else (outer.rows[matched[0]], inner.rows[matched[1]])
        step = Step("durations of the same work", Provenance.ESTIMATED)
        clock_map = ClockMap(steps=(step,), verdict=estimate.verdict)
        zeros = outer.events.zero_ns, inner.events.zero_ns
        pairs.append(PairEstimate(host, guest, estimate, *zeros, clock_map, rows=rows))
    pairs.sort(key=lambda pair: (pair.estimate.verdict.badness, -pair.estimate.margin))
    accepted = [pair for pair in pairs if is_accepted(pair.estimate, same_run=same_run)]
    rivals = [pair for pair in accepted[1:] if _is_rival(pair, accepted[0], hosts)]
    if not rivals:
        return pairs
    files = [pair.a.name for pair in (accepted[0], *rivals)]
    why = f"its durations match {listed(files, ' and ')}, at different times"
    refused = [
        structs.replace(
            pair,
            estimate=structs.replace(pair.estimate, verdict=Verdict.AMBIGUOUS, reason=why),
            clock_map=structs.replace(pair.clock_map, verdict=Verdict.AMBIGUOUS),
        )
        for pair in accepted
    ]
    return [*refused, *pairs[len(accepted) :]]


def _is_rival(other: PairEstimate, best: PairEstimate, hosts: Mapping[ClockInput, ClockMap]) -> bool:
    """Return whether another host fits as well as the best one, at other times.

    Only verdicts are compared: margins compare positions within one host, and not two hosts. Two recordings of one run
    are not rivals: in both, the events of the guest lie at the same times.
    """
    if best.estimate.verdict is not other.estimate.verdict:
        return False
    if best.rows is None or other.rows is None:
        return True
    _, at, at_other = np.intersect1d(best.rows[1], other.rows[1], return_indices=True)
    seen = some_of(np.arange(len(at)), _LOOKED_AT)
    rows = zip(best.rows[0][at[seen]].tolist(), other.rows[0][at_other[seen]].tolist(), strict=True)
    spans = ((_interval(best.a, row, hosts), _interval(other.a, other_row, hosts)) for row, other_row in rows)
    overlapping = sum(first[0] <= second[1] and second[0] <= first[1] for first, second in spans)
    return 2 * overlapping <= len(seen)


def _interval(host: ClockInput, row: int, hosts: Mapping[ClockInput, ClockMap]) -> tuple[int, int]:
    """Return the start and the end of a slice on trace time, ns."""
    start, dur = int(host.trace.slices.ts[row]), int(host.trace.slices.dur[row])
    return hosts[host].at(start), hosts[host].at(start + dur)

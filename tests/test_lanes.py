"""The layout: whatever the intervals, the slices of each track nest, and nothing is lost or moved in time."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests import GROWTH_S
from traceconv.model.builder import Builder
from traceconv.model.clocks import ClockDomain, Run, Zero
from traceconv.model.layout import (
    EMPTY_TRACKS,
    MAX_DEPTH,
    OVERLAPPING,
    TOO_DEEP,
    TRIMMED,
    _slice_order,
    lay_out,
    validate,
)
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import SliceId, Slices, Trace
from traceconv.model.track_table import NO_TRACK, Track, TrackId, TrackKind

Interval = tuple[int, int]


def builder(resolution: int = 0, *, exact: bool = False) -> Builder:
    clock = ClockDomain("test", Zero.UNKNOWN, Run.MONOTONIC, resolution, exact_durations=exact)
    return Builder(SourceInfo("test", "test"), clock)


def laid_out(intervals: list[Interval], resolution: int = 0, *, exact: bool = False) -> Trace:
    """All intervals (ts, dur) on one track, each with its position as origin."""
    out = builder(resolution, exact=exact)
    track = out.tracks.add("track")
    for at, (ts, dur) in enumerate(intervals):
        out.slice(track, ts, dur, str(at), at=at)
    trace = lay_out(out.finish())
    validate(trace)
    return trace


def times(trace: Trace) -> dict[int, Interval]:
    table = trace.slices
    return dict(zip(table.origin.tolist(), zip(table.ts.tolist(), table.dur.tolist(), strict=True), strict=True))


def lanes(trace: Trace) -> list[int]:
    """For each slice in the order of the input its track."""
    return [track for _, track in sorted(zip(trace.slices.origin.tolist(), trace.slices.track.tolist(), strict=True))]


def found(trace: Trace, code: Any) -> int:
    return trace.sources[0].diagnostics.count(code)


some_intervals = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 20)), max_size=40)


@given(
    st.lists(
        st.tuples(st.sampled_from([0, 1, 70_000]), st.integers(0, 12), st.integers(0, 6), st.integers(0, 3)),
        min_size=1,
        max_size=30,
    )
)
def test_slices_are_in_order(rows: list[tuple[int, int, int, int]]) -> None:
    """By track, begin, length from the longest on, and place in the input."""
    track, ts, dur, origin = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    none = np.zeros(len(rows), np.int32)
    slices = Slices(ts, dur, track.astype(np.int32), none, none, none.astype(np.int64), none, origin)
    expected = np.lexsort((origin, -dur, ts, track))
    assert _slice_order(slices, lambda: None).tolist() == expected.tolist()


@given(some_intervals, st.sampled_from([(0, False), (1, True), (8, True)]))
def test_any_intervals_nest_and_keep_their_times(intervals: list[Interval], clock: tuple[int, bool]) -> None:
    """Without a resolution, or where only starts are coarse and lengths are exact."""
    trace = laid_out(intervals, clock[0], exact=clock[1])
    assert times(trace) == dict(enumerate(intervals))
    assert found(trace, TRIMMED) == 0


@settings(max_examples=500)
@given(some_intervals, st.integers(1, 8))
@example([(0, 10), (9, 11), (9, 6)], 1)  # the second begins later when it is cut, and then the third would cross it
def test_what_is_cut_is_cut_by_the_resolution_at_most(intervals: list[Interval], resolution: int) -> None:
    trace = laid_out(intervals, resolution)
    moved = 0
    for at, (ts, dur) in times(trace).items():
        was_ts, was_dur = intervals[at]
        assert 0 <= ts - was_ts <= resolution
        assert 0 <= was_ts + was_dur - ts - dur <= resolution
        assert (dur > 0) == (was_dur > 0)
        moved += (ts, dur) != (was_ts, was_dur)
    assert moved == found(trace, TRIMMED)
    most = max(dur - times(trace)[at][1] for at, (_, dur) in enumerate(intervals)) if moved else 0
    places = [place for entry in trace.sources[0].diagnostics if entry.code is TRIMMED for place in entry.places]
    assert [place.split(": ")[-1] for place in places] == ([f"at most {most} ns"] if moved else [])
    assert len(trace.slices.ts) == len(intervals)


def test_the_most_that_was_cut_is_told_first() -> None:
    out = builder(resolution=100)
    cuts = [3, 5, 90, 7, 20]
    for number, cut in enumerate(cuts):
        track = out.tracks.add(f"track {number}")
        out.slice(track, 0, 1000, "around")
        out.slice(track, 10, 10 + cut, "by the start")
        out.slice(track, 15, 5 + cut + 2, "inside", at=number)
        out.slice(track, 500, 500 + cut, "at the end", at=10 + number)
    trace = lay_out(out.finish())
    (entry,) = [entry for entry in trace.sources[0].diagnostics if entry.code is TRIMMED]
    assert entry.count == 2 * len(cuts)
    assert entry.places == [
        "test:event 12: 'at the end': at most 90 ns",
        "test:event 14: 'at the end': at most 20 ns",
        "test:event 13: 'at the end': at most 7 ns",
    ]


@given(some_intervals)
def test_the_layout_is_stable(intervals: list[Interval]) -> None:
    trace = laid_out(intervals)
    assert lanes(trace) == lanes(laid_out(intervals))
    again = lay_out(trace)
    for column in ("ts", "dur", "track", "origin"):
        assert getattr(again.slices, column).tolist() == getattr(trace.slices, column).tolist()


def first_fit(intervals: list[Interval]) -> list[int]:
    """For each interval the first lane where it nests or follows, by the definition."""
    placed: list[list[Interval]] = []
    chosen = {}
    for at, (ts, dur) in sorted(enumerate(intervals), key=lambda item: (item[1][0], -item[1][1])):
        end = ts + dur
        fits = [all(end <= other or ts >= other for _, other in lane) for lane in placed]
        if True not in fits:
            placed.append([])
        chosen[at] = fits.index(True) if True in fits else len(placed) - 1
        placed[chosen[at]].append((ts, end))
    return [chosen[at] for at in range(len(intervals))]


@given(some_intervals)
def test_each_slice_takes_the_first_lane_that_fits(intervals: list[Interval]) -> None:
    assert lanes(laid_out(intervals)) == first_fit(intervals)


@pytest.mark.parametrize(
    ("intervals", "expected"),
    [
        ([(0, 10), (10, 10)], [0, 0]),
        ([(0, 10), (2, 3), (5, 5)], [0, 0, 0]),
        ([(0, 10), (5, 10)], [0, 1]),
        ([(5, 10), (0, 10)], [1, 0]),
        ([(0, 10), (5, 10), (10, 10), (15, 10)], [0, 1, 0, 1]),
        ([(0, 10), (5, 10), (6, 2)], [0, 1, 0]),
        ([(0, 10), (0, 10), (0, 0), (10, 0)], [0, 0, 0, 0]),
        ([(0, 30), (1, 30), (2, 30), (3, 30), (32, 1)], [0, 1, 2, 3, 0]),
    ],
)
def test_lanes_are_few(intervals: list[Interval], expected: list[int]) -> None:
    trace = laid_out(intervals)
    assert lanes(trace) == expected
    assert found(trace, OVERLAPPING) == sum(lane > 0 for lane in expected)


def test_equal_slices_keep_the_order_of_the_input() -> None:
    trace = laid_out([(0, 5)] * 10)
    assert trace.slices.origin.tolist() == list(range(10))


def test_overflow_lanes_are_siblings_of_the_same_name() -> None:
    out = builder()
    group = out.tracks.add("device")
    track = out.tracks.append(Track(TrackKind.TRACK, "queue", group, description="help", rank=3))
    for ts in (0, 5):
        out.slice(track, ts, 10, "x")
    trace = lay_out(out.finish())
    lane = trace.tracks[2]
    assert (lane.name, lane.parent, lane.lane_of, lane.rank) == ("queue", group, track, 3)


@pytest.mark.parametrize("name", ["worker", ""])
def test_overflow_lanes_of_a_thread_lie_under_it(name: str) -> None:
    out = builder()
    thread = out.tracks.thread(out.tracks.process("p", pid=1), 2, name)
    for ts in (0, 5):
        out.slice(thread, ts, 10, "x")
    trace = lay_out(out.finish())
    lane = trace.tracks[2]
    assert (lane.kind, lane.parent, lane.lane_of, lane.tid) == (TrackKind.TRACK, thread, thread, None)
    assert lane.name == (name or "overlapping")
    validate(trace)


def test_depth_is_limited() -> None:
    deep = 2 * MAX_DEPTH + 10
    trace = laid_out([(at, 10_000 - 2 * at) for at in range(deep)])
    assert Counter(lanes(trace)) == {0: MAX_DEPTH, 1: MAX_DEPTH, 2: 10}
    assert found(trace, TOO_DEEP) == deep - MAX_DEPTH
    assert found(trace, OVERLAPPING) == 0


@given(some_intervals, st.data())
def test_flows_follow_their_slices(intervals: list[Interval], data: st.DataObject) -> None:
    out = builder()
    tracks = [out.tracks.add("a"), out.tracks.add("b")]
    for at, (ts, dur) in enumerate(intervals):
        out.slice(tracks[at % 2], ts, dur, str(at), at=at)
    numbers = st.integers(0, len(intervals) - 1)
    pairs = data.draw(st.lists(st.tuples(numbers, numbers))) if intervals else []
    for at, (one, other) in enumerate(pairs):
        out.flow(SliceId(one), SliceId(other), at=at)
    trace = lay_out(out.finish())
    validate(trace)
    origin, flows = trace.slices.origin, trace.flows
    assert list(zip(origin[flows.from_slice].tolist(), origin[flows.to_slice].tolist(), strict=True)) == pairs
    assert flows.origin.tolist() == list(range(len(pairs)))


def test_other_events_are_sorted_and_stable() -> None:
    out = builder()
    tracks = [out.tracks.add("a"), out.tracks.add("b")]
    values = [out.tracks.counter("c"), out.tracks.counter("d")]
    stack = out.frame("f")
    for at, ts in enumerate([5, 1, 5, 3, 1, 5]):
        out.instant(tracks[at % 2], ts, "i", at=at)
        out.counter(values[at % 2], ts, at, at=at)
        out.sample(tracks[at % 2], ts, stack, at=at)
    trace = lay_out(out.finish())
    validate(trace)
    for table in (trace.instants, trace.counters, trace.samples):
        assert table.origin.tolist() == [4, 0, 2, 1, 3, 5]


# -- tracks that share lanes ------------------------------------------------------------------------------------------


@given(
    st.lists(
        st.tuples(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 5)), max_size=3), st.integers(0, 60)),
        max_size=12,
    )
)
@example([([], 0), ([], 1), ([(2, 3)], 4)])
def test_tracks_that_share_lanes_never_mix(groups: list[tuple[list[Interval], int]]) -> None:
    out = builder()
    for number, (intervals, instant) in enumerate(groups):
        track = out.tracks.append(Track(TrackKind.TRACK, "async", shares_lanes=True))
        for ts, dur in intervals:
            out.slice(track, ts, dur, str(number), at=number)
        out.instant(track, instant, "i", at=number)
    trace = lay_out(out.finish())
    validate(trace)
    extents: dict[int, dict[int, list[int]]] = {}  # for each lane and group all its instants
    for table, lengths in ((trace.slices, trace.slices.dur), (trace.instants, [1] * len(groups))):
        for track, group, ts, dur in zip(table.track, table.origin, table.ts, lengths, strict=True):
            root = trace.tracks[track].lane_of if trace.tracks[track].lane_of != NO_TRACK else track
            extents.setdefault(int(root), {}).setdefault(int(group), []).extend([int(ts), int(ts + max(dur, 1))])
    for by_group in extents.values():
        spans = sorted((min(instants), max(instants)) for instants in by_group.values())
        assert all(one[1] <= other[0] for one, other in itertools.pairwise(spans))
    assert sum(len(by_group) for by_group in extents.values()) == len(groups)


def test_sharing_takes_no_more_lanes_than_needed() -> None:
    out = builder()
    for number in range(100):
        track = out.tracks.append(Track(TrackKind.TRACK, "async", shares_lanes=True))
        out.slice(track, 10 * number, 25, "x")
    trace = lay_out(out.finish())
    assert len(trace.tracks) == 3
    assert len(trace.sources[0].diagnostics) == 0


def test_only_equal_tracks_share() -> None:
    out = builder()
    other_clock = out.clocks.add(ClockDomain("other", Zero.UNKNOWN, Run.UNKNOWN))
    parents = [out.tracks.add("a"), out.tracks.add("b")]
    tracks = [Track(TrackKind.TRACK, "x", parents[0], shares_lanes=True), Track(TrackKind.TRACK, "x", parents[1])]
    tracks += [Track(TrackKind.TRACK, name, parents[0], shares_lanes=True) for name in ("x", "y")]
    tracks += [Track(TrackKind.TRACK, "x", parents[0], clock=other_clock, shares_lanes=True)]
    for number, track in enumerate(tracks):
        out.slice(out.tracks.append(track), 100 * number, 10, str(number))
    trace = lay_out(out.finish())
    # 0 and 2 agree in all; 3 has another name, 1 another parent, 4 another clock.
    used = trace.slices.track.tolist()
    by_name = {trace.strings[name]: track for name, track in zip(trace.slices.name, used, strict=True)}
    assert by_name["0"] == by_name["2"]
    assert len(set(used)) == 4


# -- empty tracks -----------------------------------------------------------------------------------------------------


def test_unused_tracks_go_and_are_told() -> None:
    out = builder()
    unused = out.tracks.add("unused")
    out.tracks.add("child", unused)
    group = out.tracks.add("group")
    track = out.tracks.add("used", group)
    out.slice(track, 0, 5, "x")
    out.slice(track, 2, 5, "y")
    out.counter(out.tracks.counter("values", group), 0, 1)
    out.tracks.counter("no values", group)
    trace = lay_out(out.finish())
    validate(trace)
    assert [(t.name, t.parent, t.lane_of) for t in trace.tracks] == [
        ("group", NO_TRACK, NO_TRACK),
        ("used", TrackId(0), NO_TRACK),
        ("values", TrackId(0), NO_TRACK),
        ("used", TrackId(0), TrackId(1)),
    ]
    assert found(trace, EMPTY_TRACKS) == 3


def test_an_empty_trace() -> None:
    trace = lay_out(builder().finish())
    validate(trace)
    assert trace.span() is None
    assert trace.tracks == []


# -- speed ------------------------------------------------------------------------------------------------------------


def seconds(intervals: list[Interval]) -> float:
    out = builder(1)
    track = out.tracks.add("track")
    starts, lengths = zip(*intervals, strict=True)
    count = len(intervals)
    out.bulk.slices([track] * count, starts, lengths, [0] * count, [0] * count, [b""] * count, range(count))
    trace = out.finish()
    begin = time.process_time()
    assert len(lay_out(trace).slices.ts) == count
    return time.process_time() - begin


@pytest.mark.parametrize(
    "intervals",
    [
        [(10 * at, 35) for at in range(200_000)],
        [(at * 100, 100_000_000 + at * 50) for at in range(40_000)],
        [(at * 10, 1_000_000_000) for at in range(40_000)],
    ],
    ids=["a few lanes", "crossing and shorter", "all cross"],
)
def test_time_grows_with_the_number_of_slices(intervals: list[Interval]) -> None:
    """Generous for a slow machine; what is quadratic takes minutes."""
    assert seconds(intervals) < GROWTH_S

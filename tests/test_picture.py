"""The judge of pictures sees what is wrong, and finds nothing wrong with merges of ranks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from tests import oracle
from tests.golden import written
from tests.make_ranks import write_ranks
from tests.oracle.fixtures import OpenTrace
from tests.picture import Picture, assert_equal, json_picture, perfetto_picture, seen
from traceconv.align import Policy, align
from traceconv.api import read
from traceconv.merging.traces import merge_traces
from traceconv.model.trace import Trace
from traceconv.model.track_table import Tracks

Show = Callable[[Trace, str], Picture]


@pytest.fixture
def show(trace_processor: OpenTrace, tmp_path: Path) -> Show:
    """Write a trace and ask the trace processor about it."""

    def opened(trace: Trace, format: str) -> Picture:
        path = tmp_path / "out"
        path.write_bytes(written(trace, format))
        with trace_processor(path) as tp:
            assert oracle.import_problems(tp) == []
            return seen(tp, trace, json=format == "chrome-json")

    return opened


def merged_ranks(folder: Path, ranks: int, devices: int) -> Trace:
    traces = [read(path) for path in write_ranks(folder, ranks, devices)]
    return merge_traces(traces, align(traces, policy=Policy(on_ambiguous="best")))


@pytest.mark.parametrize("devices", [1, 2, 3])
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_merged_ranks(ranks: int, devices: int, show: Show, tmp_path: Path) -> None:
    trace = merged_ranks(tmp_path, ranks, devices)
    assert trace.counts()["flows"] == 24 * ranks
    assert any(track.lane_of >= 0 for track in trace.tracks)
    assert_equal(show(trace, "perfetto"), perfetto_picture(trace))
    assert_equal(show(trace, "chrome-json"), json_picture(trace))


def other_name(trace: Trace) -> Trace:
    names = trace.slices.name.copy()
    names[0], names[-1] = names[-1], names[0]
    return trace.with_tables(slices=dataclasses.replace(trace.slices, name=names))


def other_time(trace: Trace) -> Trace:
    ts = trace.slices.ts.copy()
    ts[-1] += 1
    return trace.with_tables(slices=dataclasses.replace(trace.slices, ts=ts))


def other_flow(trace: Trace) -> Trace:
    ends = trace.flows.to_slice.copy()
    ends[:2] = ends[1::-1]
    return trace.with_tables(flows=dataclasses.replace(trace.flows, to_slice=ends))


def other_value(trace: Trace) -> Trace:
    values = trace.counters.integer.copy()
    values[0] += 1
    return trace.with_tables(counters=dataclasses.replace(trace.counters, integer=values))


def other_namesake(trace: Trace) -> Trace:
    """What stands on two tracks with equal paths, exchanged: nothing but what stands beside them tells."""
    one, other = [n for n, track in enumerate(trace.tracks) if track.name == "stream 7" and track.lane_of < 0]
    track = trace.slices.track.copy()
    track[trace.slices.track == one], track[trace.slices.track == other] = other, one
    return trace.with_tables(slices=dataclasses.replace(trace.slices, track=track))


def without_lane(trace: Trace) -> Trace:
    tracks = [structs.replace(track, lane_of=-1) for track in trace.tracks]
    return dataclasses.replace(trace, tracks=Tracks(tracks))


@pytest.mark.parametrize("change", [other_name, other_time, other_flow, other_value, other_namesake, without_lane])
def test_what_is_wrong_is_seen(change: Callable[[Trace], Trace], show: Show, tmp_path: Path) -> None:
    trace = merged_ranks(tmp_path, 2, 1)
    wrong = show(change(trace), "perfetto")
    assert_equal(wrong, perfetto_picture(change(trace)))
    with pytest.raises(AssertionError):
        assert_equal(wrong, perfetto_picture(trace))

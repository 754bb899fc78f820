"""How the ranks of a job are shown: named, in their order, with all of their file below."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.golden import written
from tests.make_ranks import write_ranks
from tests.oracle.fixtures import OpenTrace
from tests.picture import assert_equal, perfetto_picture, seen
from tests.ui.fixtures import Shot
from traceconv.align import Policy, align
from traceconv.api import read
from traceconv.merging.traces import merge_traces
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME
from traceconv.model.layout import lay_out
from traceconv.model.trace import NO_TRACK, SourceInfo, Trace, TrackKind
from traceconv.model.validate import validate


def merged(traces: Sequence[Trace]) -> Trace:
    trace = merge_traces(traces, align(traces, {}, Policy(on_ambiguous="best")))
    validate(trace)
    return trace


def edited(path: Path, **top: Any) -> Path:
    path.write_text(json.dumps(json.loads(path.read_text()) | top))
    return path


def top(trace: Trace) -> list[str]:
    """The names of the tracks at the top, in the order in which they are shown."""
    tracks = [track for track in trace.tracks if track.parent == NO_TRACK]
    return [track.name for track in sorted(tracks, key=lambda track: track.rank or 0)]


def below(trace: Trace, name: str) -> set[str]:
    (number,) = [number for number, track in enumerate(trace.tracks) if track.name == name]
    return {track.name for track in trace.tracks if track.parent == number}


def test_names_begin_with_rank_and_host(tmp_path: Path) -> None:
    hosts = {0: "node7", 1: "node8", 2: ""}
    paths = write_ranks(tmp_path, 3, 2)
    trace = merged([read(edited(path, host_name=hosts[rank])) for rank, path in enumerate(paths)])
    assert top(trace) == ["rank 0 · node7 · python", "rank 1 · node8 · python", "rank 2 · python"]
    assert {track.pid for track in trace.tracks if track.kind is TrackKind.PROCESS} == {100}
    assert all("rank 1" not in track.labels for track in trace.tracks)


def test_devices_are_below_their_rank(tmp_path: Path) -> None:
    trace = merged([read(path) for path in write_ranks(tmp_path, 2, 2)])
    assert top(trace) == ["rank 0 · python", "rank 1 · python"]
    devices = {"GPU 0 (NVIDIA A100)", "GPU 1 (NVIDIA A100)"}
    assert below(trace, "rank 1 · python") > devices | {"Spans", "Profiler overhead", "Global events", "python"}


@pytest.mark.parametrize("order", [(2, 1, 0), (1, 2, 0)])
def test_ranks_are_in_order_whatever_that_of_the_files(order: tuple[int, ...], tmp_path: Path) -> None:
    paths = write_ranks(tmp_path, 3, 1)
    trace = merged([read(paths[rank]) for rank in order])
    assert top(trace) == [f"rank {rank} · python" for rank in range(3)]


def test_names_of_many_ranks_sort_by_rank(tmp_path: Path) -> None:
    paths = write_ranks(tmp_path, 11, 1)
    names = top(merged([read(paths[rank]) for rank in (10, 9, 2)]))
    assert names == ["rank 02 · python", "rank 09 · python", "rank 10 · python"]
    assert names == sorted(names)


def test_one_rank_is_shown_as_it_is(tmp_path: Path) -> None:
    path = write_ranks(tmp_path, 2, 1)[1]
    alone = merged([read(path)])
    assert "python" in top(alone)
    assert "GPU 0 (NVIDIA A100), rank 1" in top(alone)
    again = tmp_path / "again.json"
    again.write_text(path.read_text().replace('"pid": 100', '"pid": 200'))
    assert not any(name.startswith("rank") for name in top(merged([read(path), read(again)])))


def other(name: str, rank: int | None, pids: Sequence[int]) -> Trace:
    """An input with some processes, and a queue that belongs to none of them."""
    out = Builder(SourceInfo(name, f"format of {name}", real_ids=True, rank=rank), REALTIME)
    tracks = [out.tracks.process(name="job", pid=pid) for pid in pids] + [out.tracks.add(f"queue, rank {rank}")]
    for number, track in enumerate(tracks):
        out.slice(track, 1_790_857_026_001_000_000, 1000, f"work {number}")
    return lay_out(out.finish())


def test_what_is_of_several_processes_stays_beside_them() -> None:
    trace = merged([other("x", None, [3]), other("b", 1, [1, 2]), other("a", 0, [1])])
    assert top(trace) == ["rank 0 · job", "rank 1 · job", "rank 1 · job", "queue, rank 1", "job", "queue, rank None"]
    assert below(trace, "rank 0 · job") == {"queue"}


def test_what_is_not_aligned_says_so(tmp_path: Path) -> None:
    paths = write_ranks(tmp_path, 2, 1)
    edited(paths[1], baseTimeNanoseconds=None)
    traces = [read(path) for path in paths]
    trace = merge_traces(traces, align(traces, {}, Policy(on_ambiguous="separate")))
    assert top(trace) == ["rank 0 · python", "rank 1 · python (not aligned)"]


@pytest.mark.parametrize("format", ["perfetto", "chrome-json"])
def test_perfetto_shows_it(format: str, trace_processor: OpenTrace, tmp_path: Path) -> None:
    trace = merged([read(path) for path in reversed(write_ranks(tmp_path, 2, 2))])
    path = tmp_path / "out"
    path.write_bytes(written(trace, format))
    with trace_processor(path) as tp:
        names = [row.name for row in tp.query("select name from process where name like 'rank%' order by name")]
        assert names == ["rank 0 · python (pid 100)", "rank 1 · python"]
        if format == "perfetto":
            assert_equal(seen(tp, trace), perfetto_picture(trace))


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["pftrace", "json"])
def test_the_ui_shows_ranks_in_order(suffix: str, ui_shot: Shot, tmp_path: Path) -> None:
    trace = merged([read(path) for path in reversed(write_ranks(tmp_path, 2, 2))])
    path = tmp_path / f"out.{suffix}"
    path.write_bytes(written(trace, "perfetto" if suffix == "pftrace" else "chrome-json"))
    report = ui_shot(path, tmp_path / "out.png")
    assert report.problems == []
    ranks = [line for line in report.outline() if line.startswith("rank")]
    assert ranks == ["rank 0 · python (pid 100) 10000000", "rank 1 · python 100"]
    assert not any(line.startswith("GPU") for line in report.outline())

"""How the ranks of a job are shown: named, in their order, with all of their file below, and their collectives."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.golden import written
from tests.make_ranks import write_ranks
from tests.oracle.fixtures import OpenTrace
from tests.picture import assert_equal, json_picture, perfetto_picture, seen
from tests.ui.fixtures import Shot
from traceconv import cli
from traceconv.align import Policy, align
from traceconv.align.causality import causality
from traceconv.align.constraints import Constraints
from traceconv.api import read
from traceconv.merging.traces import merge_traces
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME
from traceconv.model.layout import lay_out, validate
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import Trace
from traceconv.model.track_table import NO_TRACK, TrackKind


def merged(traces: Sequence[Trace]) -> Trace:
    trace = merge_traces(traces, align(traces, policy=Policy(on_ambiguous="best")))
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
    """An input with some processes, and two tracks of none of them: a queue, and one named after another rank."""
    out = Builder(SourceInfo(name, f"format of {name}", real_ids=True, rank=rank), REALTIME)
    tracks = [out.tracks.process(name="job", pid=pid) for pid in pids] + [out.tracks.add(f"queue, rank {rank}")]
    out.tracks[tracks[-1]].name_in_rank = "queue"
    tracks.append(out.tracks.add(f"from, rank {rank}"))
    for number, track in enumerate(tracks):
        out.slice(track, 1_790_857_026_001_000_000, 1000, f"work {number}")
    return lay_out(out.finish())


def test_what_is_of_several_processes_stays_beside_them() -> None:
    trace = merged([other("x", None, [3]), other("b", 1, [1, 2]), other("a", 0, [1])])
    of_one, of_none = (["queue, rank 1", "from, rank 1"], ["job", "queue, rank None", "from, rank None"])
    assert top(trace) == ["rank 0 · job", "rank 1 · job", "rank 1 · job", *of_one, *of_none]
    assert below(trace, "rank 0 · job") == {"queue", "from, rank 0"}


def test_what_is_not_aligned_says_so(tmp_path: Path) -> None:
    paths = write_ranks(tmp_path, 2, 1)
    edited(paths[1], baseTimeNanoseconds=None)
    traces = [read(path) for path in paths]
    trace = merge_traces(traces, align(traces, policy=Policy(on_ambiguous="separate")))
    assert top(trace) == ["rank 0 · python", "rank 1 · python"]
    assert [track.doubts for track in trace.tracks if track.parent == NO_TRACK] == [(), ("not aligned",)]


@pytest.mark.parametrize("format", ["perfetto", "chrome-json"])
def test_perfetto_shows_it(format: str, trace_processor: OpenTrace, tmp_path: Path) -> None:
    trace = merged([read(path) for path in reversed(write_ranks(tmp_path, 2, 2))])
    path = tmp_path / "out"
    path.write_bytes(written(trace, format))
    with trace_processor(path) as tp:
        names = [row.name for row in tp.query("select name from process where name like 'rank%' order by name")]
        assert names == ["rank 0 · python", "rank 1 · python (pid 100)"]
        if format == "perfetto":
            assert_equal(seen(tp, trace), perfetto_picture(trace))


def test_threads_of_a_device_stay_together_in_json(tmp_path: Path) -> None:
    """The UI sorts threads by their numbers."""
    trace = merged([read(path) for path in write_ranks(tmp_path, 2, 2)])
    events = json.loads(written(trace, "chrome-json"))["traceEvents"]
    named = {(event["pid"], event["tid"]): event["args"]["name"] for event in events if event["name"] == "thread_name"}
    devices = [named[task].partition(" / ")[0] for task in sorted(named) if named[task].startswith("GPU")]
    assert len(devices) == 16
    assert devices == 2 * [f"GPU {device} (NVIDIA A100)" for device in (0, 1) for _ in range(4)]


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["pftrace", "json"])
def test_the_ui_shows_ranks_in_order(suffix: str, ui_shot: Shot, tmp_path: Path) -> None:
    trace = merged([read(path) for path in reversed(write_ranks(tmp_path, 2, 2))])
    path = tmp_path / f"out.{suffix}"
    path.write_bytes(written(trace, "perfetto" if suffix == "pftrace" else "chrome-json"))
    report = ui_shot(path, tmp_path / "out.png")
    assert report.problems == []
    ranks = [line for line in report.outline() if line.startswith("rank")]
    assert ranks == ["rank 0 · python 100", "rank 1 · python (pid 100) 10000000"]
    assert not any(line.startswith("GPU") for line in report.outline())


# -- flows between the members of a collective ------------------------------------------------------------------------


def drawn(traces: Sequence[Trace]) -> tuple[Trace, list[tuple[str, str, int, int]]]:
    """The merged trace; of each flow between ranks the processes, and the numbers of both collectives."""
    alignment = align(traces, policy=Policy(on_ambiguous="best"))
    trace = merge_traces(traces, alignment, flows_of=causality(traces, alignment))
    validate(trace)
    found = []
    for source, target, name in zip(trace.flows.from_slice, trace.flows.to_slice, trace.flows.name, strict=True):
        if trace.strings[name] == "collective":
            ends = [(top_of(trace, int(trace.slices.track[row])), seq(trace, int(row))) for row in (source, target)]
            found.append((ends[0][0], ends[1][0], ends[0][1], ends[1][1]))
    return trace, found


def top_of(trace: Trace, track: int) -> str:
    while trace.tracks[track].parent != NO_TRACK:
        track = int(trace.tracks[track].parent)
    return trace.tracks[track].name.partition(" · ")[0]


def seq(trace: Trace, row: int) -> int:
    args = json.loads(trace.args.get(int(trace.slices.args_at[row]), int(trace.slices.args_len[row])))
    return int(args["Seq"])


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_collectives_are_chained_in_order_of_rank(order: tuple[int, ...], tmp_path: Path) -> None:
    paths = write_ranks(tmp_path, 3, 2, collectives=5)
    trace, found = drawn([read(paths[rank]) for rank in order])
    expected = [(f"rank {rank}", f"rank {rank + 1}", number, number) for number in range(5) for rank in range(2)]
    assert sorted(found) == sorted(expected)
    assert "10 flows are drawn between the members of 5 collectives" in trace.sources[0].notes
    assert trace.counts()["flows"] == 10 + 24 * 3


def test_without_the_option_there_are_none(tmp_path: Path) -> None:
    trace = merged([read(path) for path in write_ranks(tmp_path, 2, 1, collectives=5)])
    assert trace.counts()["flows"] == 24 * 2
    assert not any("collective" in note for source in trace.sources for note in source.notes)


def changed(path: Path, change: Callable[[list[Any]], object]) -> Trace:
    """A rank of which the collectives are changed."""
    profile = json.loads(path.read_text())
    ours = [event for event in profile["traceEvents"] if "Collective name" in event.get("args", ())]
    profile["traceEvents"] = [event for event in profile["traceEvents"] if event not in ours]
    change(ours)
    profile["traceEvents"] += ours
    path.write_text(json.dumps(profile))
    return read(path)


NOT_CERTAIN: dict[str, tuple[Callable[[list[Any]], object], int]] = {
    "no numbers": (lambda ours: [event["args"].pop("Seq") for event in ours], 0),
    "another group": (lambda ours: [event["args"].update({"Process Group Ranks": "[1, 2]"}) for event in ours], 0),
    "one was not recorded": (lambda ours: ours.pop(2), 4),
    "one is there twice": (lambda ours: ours.append(ours[2]), 4),
    "another kind": (lambda ours: ours[2]["args"].update({"Collective name": "barrier"}) or rename(ours[2]), 4),
}


def rename(event: Any) -> None:
    event["name"] = "ncclDevKernel_Generic(x)"


@pytest.mark.parametrize("case", NOT_CERTAIN)
def test_what_is_not_certain_is_not_drawn(case: str, tmp_path: Path) -> None:
    change, count = NOT_CERTAIN[case]
    paths = write_ranks(tmp_path, 2, 1, collectives=5)
    trace, found = drawn([read(paths[0]), changed(paths[1], change)])
    assert len(found) == count
    note = f"{count} flows are drawn" if count else "no flows are drawn between collectives: it is not certain"
    assert any(note in text for text in trace.sources[0].notes)


@pytest.mark.parametrize(("same_machine", "lacks", "count"), [(True, 0, 10), (True, 1, 9), (False, 0, 0)])
def test_without_numbers_their_order_tells_if_clocks_are_related(
    same_machine: bool, lacks: int, count: int, tmp_path: Path
) -> None:
    """Else all can have happened by chance, a step off. Where one rank began later, a single shift fits."""

    def unnumbered(ours: list[Any]) -> None:
        for number, event in enumerate(ours):
            event["args"] |= {"Seq": f"none: {number}"}

    def later(ours: list[Any]) -> None:
        unnumbered(ours)
        del ours[:lacks]

    paths = write_ranks(tmp_path, 2, 1, collectives=10)
    traces = [changed(path, change) for path, change in zip(paths, (unnumbered, later), strict=True)]
    alignment = align(
        traces,
        policy=Policy(on_ambiguous="best", estimate=same_machine),
        constraints=Constraints(same_machine=same_machine),
    )
    trace = merge_traces(traces, alignment, flows_of=causality(traces, alignment))
    validate(trace)
    flows = trace.flows
    ours = [row for row, name in enumerate(flows.name) if trace.strings[name] == "collective"]
    ends = [[text_of(trace, int(column[row])) for column in (flows.from_slice, flows.to_slice)] for row in ours]
    assert len(ends) == count
    assert all(one == other for one, other in ends)


def text_of(trace: Trace, row: int) -> str:
    args = json.loads(trace.args.get(int(trace.slices.args_at[row]), int(trace.slices.args_len[row])))
    return str(args["Seq"])


def test_the_option_of_merge(tmp_path: Path) -> None:
    paths = [str(path) for path in write_ranks(tmp_path, 2, 2, collectives=5)]
    arguments = ["merge", *paths, "-o", str(tmp_path / "out.json"), "--collective-flows", "--same-machine"]
    result = CliRunner().invoke(cli.cli, arguments)
    assert result.exit_code == 0
    assert "  note: 5 flows are drawn between the members of 5 collectives" in result.stderr
    assert "53 flows" in result.stderr


@pytest.mark.parametrize("format", ["perfetto", "chrome-json"])
def test_perfetto_draws_them(format: str, trace_processor: OpenTrace, tmp_path: Path) -> None:
    """It takes the direction from the times: here in every second collective the higher rank enters first."""
    trace, _ = drawn([read(path) for path in write_ranks(tmp_path, 3, 2, collectives=4)])
    path = tmp_path / "out"
    path.write_bytes(written(trace, format))
    with trace_processor(path) as tp:
        query = """select a.ts as first, b.ts as second, a.name as source, b.name as target,
            extract_arg(a.arg_set_id, 'args.Seq') as one, extract_arg(b.arg_set_id, 'args.Seq') as other,
            extract_arg(a.arg_set_id, 'debug.Seq') as mine, extract_arg(b.arg_set_id, 'debug.Seq') as its
            from flow join slice a on a.id = flow.slice_out join slice b on b.id = flow.slice_in
            where a.name like 'nccl%'"""
        rows = list(tp.query(query))
        assert len(rows) == 8
        assert all(row.first <= row.second and row.source == row.target for row in rows)
        assert all(row.one == row.other and row.mine == row.its for row in rows)
        picture = perfetto_picture(trace) if format == "perfetto" else json_picture(trace)
        assert_equal(seen(tp, trace, json=format == "chrome-json"), picture)

"""The PyTorch importer, beyond what the golden cases show."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests import GROWTH_S
from traceconv.families.pytorch.kineto import PytorchKineto
from traceconv.families.registry import Certainty
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME, Zero
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import Trace
from traceconv.model.track_table import NO_TRACK, TrackKind

GOLDEN = Path(__file__).parents[2] / "golden" / "pytorch-kineto"
CASES = sorted(path.name for path in GOLDEN.iterdir())
DAMAGED = ("cut",)
BASE = 1790857026000000000


def read(path: Path) -> Trace:
    out = Builder(SourceInfo(path.name, PytorchKineto.name, marks=PytorchKineto.marks), PytorchKineto.clock)
    PytorchKineto().read(Source(path), out)
    return out.finish()


def written(tmp_path: Path, *events: dict[str, Any], **top: Any) -> Path:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [], **top, "traceEvents": list(events)}))
    return path


def x(cat: str, name: str, pid: int, tid: int, ts: float, dur: float) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": {}}


def m(name: str, pid: Any, value: Any, tid: int = 0) -> dict[str, Any]:
    key = {"labels": "labels", "index": "sort_index"}.get(name.split("_")[-1], "name")
    return {"ph": "M", "name": name, "pid": pid, "tid": tid, "ts": 0, "args": {key: value}}


def path_of(trace: Trace, track: int) -> str:
    one = trace.tracks[track]
    name = one.name or f"{one.kind.name.lower()} {one.pid if one.tid is None else one.tid}"
    return name if one.parent == NO_TRACK else f"{path_of(trace, one.parent)}/{name}"


def places(trace: Trace) -> dict[str, str]:
    table = trace.slices
    return {trace.strings[name]: path_of(trace, track) for name, track in zip(table.name, table.track, strict=True)}


def kinds(trace: Trace) -> dict[str, str]:
    return {path_of(trace, i): track.kind.name for i, track in enumerate(trace.tracks)}


def diagnostics(trace: Trace) -> dict[str, int]:
    return {entry.code.name: entry.count for entry in trace.sources[0].diagnostics}


def sniff(text: str) -> Certainty:
    return PytorchKineto().sniff(Head(text.encode(), False, "x")).certainty


@pytest.mark.parametrize("case", CASES)
def test_every_event_is_accounted_for(case: str) -> None:
    source = read(GOLDEN / case / "input.json").sources[0]
    assert source.balance.even
    assert (source.diagnostics.lost == 0) == (case not in DAMAGED)


def test_sniff() -> None:
    assert (
        sniff('{"traceEvents": [{"ph": "X", "cat": "Kernel", "name": "k", "args": {"external id": 0}}]}')
        is Certainty.YES
    )
    assert sniff('{"schemaVersion": 1, "deviceProperties": [') is Certainty.YES
    assert sniff('{"schemaVersion": 1, "traceEvents": [') is Certainty.YES
    assert sniff('{"schemaVersion": 1, "x": [') is Certainty.NO
    event = '{"ph": "X", "cat": "cpu_op", "args": {"External id": 1}}'
    assert sniff('{"traceEvents": [' + event) is Certainty.YES
    assert sniff('{"traceEvents": [' + event.replace("cpu_op", "op")) is Certainty.NO
    assert sniff('{"traceEvents": [' + event.replace("External id", "id")) is Certainty.NO
    assert sniff('{"viztracer_metadata": {}, "schemaVersion": 1, "traceEvents": [') is Certainty.NO
    assert sniff('{"displayTimeUnit":"ns","metadata":{"highres-ticks":true},"traceEvents":[' + event) is Certainty.NO
    assert sniff("schemaVersion deviceProperties") is Certainty.NO


def test_times_count_from_the_base(tmp_path: Path) -> None:
    path = written(tmp_path, x("cpu_op", "a", 9, 9, 4388431254040.035, 1), baseTimeNanoseconds=BASE, host_name="node7")
    trace = read(path)
    (snapshot,) = trace.snapshots
    assert int(trace.slices.ts[0]) == 4388431254040035
    assert (snapshot.clock, snapshot.ts, snapshot.other, snapshot.other_ts) == (trace.clocks[0], 0, REALTIME, BASE)
    assert 12_311 <= snapshot.bound_ns < 100_000
    assert (trace.clocks[0].machine, trace.clocks[0].resolution_ns) == ("node7", 1)


def test_times_of_the_recording_agree_with_the_calls_inside() -> None:
    # The program read CLOCK_REALTIME inside of each annotation, before and after its work.
    calls = {
        "step#0": (1795245457254216915, 1795245457257046771),
        "step#1": (1795245457260207296, 1795245457262456016),
        "step#2": (1795245457265600023, 1795245457267818571),
        "step#3": (1795245457270961364, 1795245457273117668),
    }
    trace = read(GOLDEN / "torch-convnet-process" / "input.json")
    (snapshot,) = trace.snapshots
    for ts, dur, name in zip(trace.slices.ts, trace.slices.dur, trace.slices.name, strict=True):
        if trace.strings[name] in calls:
            begin, end = calls.pop(trace.strings[name])
            start = int(ts) + snapshot.other_ts
            assert start - snapshot.bound_ns <= begin
            assert end <= start + int(dur) + snapshot.bound_ns
    assert calls == {}


@pytest.mark.parametrize("top", [{}, {"baseTimeNanoseconds": BASE}])
def test_times_since_1970(tmp_path: Path, top: dict[str, Any]) -> None:
    trace = read(written(tmp_path, x("cpu_op", "a", 9, 9, 1711711711000000, 5), **top))
    (snapshot,) = trace.snapshots
    assert (snapshot.ts, snapshot.other, snapshot.other_ts, snapshot.bound_ns) == (0, REALTIME, 0, 20_000)
    assert trace.clocks[0].resolution_ns == 1000
    assert any("not added" in note for note in trace.sources[0].notes) == bool(top)


def test_small_times_without_a_base_say_nothing(tmp_path: Path) -> None:
    trace = read(written(tmp_path, x("cpu_op", "a", 9, 9, 10, 5)))
    assert (trace.clocks[0].zero, trace.snapshots) == (Zero.UNKNOWN, [])


def test_a_process_with_the_number_of_a_device(tmp_path: Path) -> None:
    trace = read(
        written(
            tmp_path,
            x("kernel", "on device", 1, 1, 12, 5),
            x("cpu_op", "on host", 1, 1, 10, 5),
            m("process_sort_index", 1, 16777217),
            m("process_labels", 1, "GPU 1"),
            m("process_name", 1, "python"),
            m("process_labels", 1, "CPU"),
            m("process_sort_index", 1, 1),
            m("thread_name", 1, "stream 1 ", tid=1),
            m("thread_name", 1, "thread 1 (main)", tid=1),
            deviceProperties=[{"id": 1, "name": "H200"}, {"id": 2}, None],
        )
    )
    assert places(trace) == {"on device": "GPU 1 (H200)/stream 1", "on host": "python/main"}
    assert kinds(trace) == {
        "GPU 1 (H200)": "TRACK",
        "GPU 1 (H200)/stream 1": "TRACK",
        "python": "PROCESS",
        "python/main": "THREAD",
    }
    ranks = {track.name: track.rank for track in trace.tracks if track.parent == NO_TRACK}
    assert ranks == {"GPU 1 (H200)": 16777217, "python": 1}
    assert [track.labels for track in trace.tracks if track.pid == 1] == [("CPU",)]


def test_a_device_known_by_its_label_only(tmp_path: Path) -> None:
    trace = read(
        written(
            tmp_path,
            m("process_name", 0, "python"),
            m("process_labels", 0, "HPU 0"),
            m("process_labels", 44, "CPU"),
            x("hpu_op", "matmul", 0, 3, 10, 5),
            x("cpu_op", "aten::mm", 44, 44, 5, 5),
        )
    )
    assert places(trace) == {"matmul": "HPU 0/stream 3", "aten::mm": "process 44/thread 44"}
    assert kinds(trace)["HPU 0"] == kinds(trace)["HPU 0/stream 3"] == "TRACK"
    assert [(track.pid, track.tid) for track in trace.tracks if track.kind is TrackKind.TRACK] == [(None, None)] * 2


def test_devices_without_events_have_no_track(tmp_path: Path) -> None:
    names = [event for n in range(8) for event in (m("process_name", n, "python"), m("process_labels", n, f"GPU {n}"))]
    trace = read(written(tmp_path, *names, x("kernel", "k", 3, 7, 1, 1)))
    assert [track.name for track in trace.tracks] == ["GPU 3", "stream 7"]
    assert trace.sources[0].balance.merged["metadata"] == 16


def test_rank_even_when_the_job_is_described_at_length(tmp_path: Path) -> None:
    info = {"rank": 17, "pg_config": ["x" * 20_000]}
    trace = read(written(tmp_path, x("cpu_op", "a", 9, 9, 1, 1), distributedInfo=info))
    assert [track.labels for track in trace.tracks if track.kind is TrackKind.PROCESS] == [("rank 17",)]


def memory(ts: float, kind: Any, index: int, **values: Any) -> dict[str, Any]:
    args = {"Device Type": kind, "Device Id": index, **values}
    event = {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 9, "tid": 9}
    return {**event, "ts": ts, "args": args}


def test_memory_of_each_device(tmp_path: Path) -> None:
    trace = read(
        written(
            tmp_path,
            memory(1, 0, -1, **{"Total Allocated": 64}),
            memory(2, 1, 0, **{"Total Allocated": 128, "Total Reserved": 2**54 + 1}),
            memory(3, 1, 1, **{"Total Allocated": None}),
            memory(4, 77, 2, **{"Total Allocated": 5}),
            memory(5, 0, -1, Bytes=-64),
        )
    )
    table = trace.counters
    assert [
        (trace.tracks[track].name, ts, value)
        for track, ts, value in zip(table.track.tolist(), table.ts.tolist(), table.integer.tolist(), strict=True)
    ] == [
        ("Total Allocated (CPU)", 1000, 64),
        ("Total Allocated (GPU 0)", 2000, 128),
        ("Total Reserved (GPU 0)", 2000, 2**54 + 1),
        ("Total Allocated (device type 77 2)", 4000, 5),
    ]
    assert len(trace.instants.ts) == 5
    assert {track.unit for track in trace.tracks if track.kind is TrackKind.COUNTER} == {"bytes"}


def flow(phase: str, number: int, pid: int, tid: int, ts: float, cat: str = "ac2g") -> dict[str, Any]:
    event = {"ph": phase, "id": number, "pid": pid, "tid": tid, "ts": ts, "cat": cat, "name": cat}
    return {**event, "bp": "e"} if phase == "f" else event


def test_frames_of_the_host_on_the_pid_of_a_device(tmp_path: Path) -> None:
    # Public recordings of torch 2.4 and later have frames of unnamed threads there.
    trace = read(
        written(
            tmp_path,
            m("process_name", 0, "python3"),
            m("process_labels", 0, "GPU 0"),
            m("thread_name", 0, "thread 0 (python3)"),
            x("python_function", "threading.py(1032): _bootstrap", 0, 0, 10, 100),
            x("kernel", "gemm", 0, 7, 15, 5),
            deviceProperties=[{"id": 0, "name": "NVIDIA H100"}],
        )
    )
    assert places(trace) == {
        "threading.py(1032): _bootstrap": "python3/python3",
        "gemm": "GPU 0 (NVIDIA H100)/stream 7",
    }
    assert kinds(trace)["python3"] == "PROCESS"
    assert kinds(trace)["python3/python3"] == "THREAD"


@pytest.mark.parametrize(
    ("category", "name", "stream"),
    [
        ("ac2g", "ac2g", 7),
        ("async_cpu_to_gpu", "async_gpu", 7),
        ("async_gpu", "cudaLaunchKernel", 7),
        ("async", "launch", "stream 7"),
    ],
)
def test_launches_of_all_versions(tmp_path: Path, category: str, name: str, stream: Any) -> None:
    trace = read(
        written(
            tmp_path,
            x("cuda_runtime", "cudaLaunchKernel", 100, 101, 10, 5),
            x("kernel", "gemm", 3, stream, 20, 7),
            {"ph": "s", "id": 7, "pid": 100, "tid": 101, "ts": 10, "cat": category, "name": name},
            {"ph": "f", "id": 7, "pid": 3, "tid": stream, "ts": 20, "cat": category, "name": name, "bp": "e"},
        )
    )
    assert places(trace)["gemm"] == "GPU 3/stream 7"
    assert [(int(a), int(b)) for a, b in zip(trace.flows.from_slice, trace.flows.to_slice, strict=True)] == [(0, 1)]
    assert not diagnostics(trace)


def launch(number: int, name: str, ts: float, dur: float, cat: str = "cuda_runtime", pid: int = 9) -> dict[str, Any]:
    return x(cat, name, pid, pid, ts, dur) | {"args": {"correlation": number}}


def kernel(number: int, name: str, ts: float, pid: int = 0) -> list[dict[str, Any]]:
    """A kernel and the end of its flow."""
    return [x("kernel", name, pid, 7, ts, 5) | {"args": {"correlation": number}}, flow("f", number, pid, 7, ts)]


def flows_of(trace: Trace) -> list[tuple[str, str]]:
    names = [trace.strings[name] for name in trace.slices.name]
    return sorted((names[a], names[b]) for a, b in zip(trace.flows.from_slice, trace.flows.to_slice, strict=True))


@pytest.mark.parametrize("dur", [0, 2, 5, 9])
@pytest.mark.parametrize("turn", [1, -1])
def test_a_launch_starts_in_the_time_of_another_call(dur: float, turn: int, tmp_path: Path) -> None:
    calls = [launch(1, "cudaFuncSetAttribute", 10, dur), launch(2, "cudaLaunchKernel", 10, 5)][::turn]
    trace = read(written(tmp_path, *calls, flow("f", 1, 9, 9, 10), flow("s", 2, 9, 9, 10), *kernel(2, "k", 30)))
    assert flows_of(trace) == [("cudaLaunchKernel", "k")]
    assert diagnostics(trace) == {"kineto.half_flow": 1}
    assert trace.sources[0].balance.even


def test_two_launches_of_one_time_in_each_of_two_processes_with_the_same_ids(tmp_path: Path) -> None:
    events: list[dict[str, Any]] = []
    for pid, device in ((8, 0), (9, 1)):
        for number in (1, 2):
            events += [launch(number, f"launch {pid} {number}", 10, 5, pid=pid), flow("s", number, pid, pid, 10)]
            events += kernel(number, f"kernel {device} {number}", 20 + 10 * number + device, device)
    trace = read(written(tmp_path, *events))
    # Flows of equal category, name and id are one: which start belongs to which end is not stated, but the ids are.
    assert all(call[-1] == work[-1] for call, work in flows_of(trace))
    assert len(trace.flows.from_slice) == 4
    assert trace.sources[0].balance.even


def test_of_a_call_within_a_call_with_the_same_id_the_outer_one_is_the_launch(tmp_path: Path) -> None:
    calls = [launch(2, "cuLaunchKernel", 10, 4, "cuda_driver"), launch(2, "cudaLaunchKernel", 10, 5)]
    trace = read(written(tmp_path, *calls, flow("s", 2, 9, 9, 10), *kernel(2, "k", 30)))
    assert flows_of(trace) == [("cudaLaunchKernel", "k")]


def test_without_ids_the_innermost_slice_counts(tmp_path: Path) -> None:
    calls = [x("cuda_runtime", name, 9, 9, 10, dur) for name, dur in (("inner", 3), ("outer", 5))]
    ends = [x("kernel", "k", 0, 7, 30, 5), flow("f", 2, 0, 7, 30)]
    assert flows_of(read(written(tmp_path, *calls, flow("s", 2, 9, 9, 10), *ends))) == [("inner", "k")]


def test_an_annotation_as_long_as_its_kernel(tmp_path: Path) -> None:
    note = x("gpu_user_annotation", "note", 0, 7, 30, 5)
    call = [launch(2, "cudaLaunchKernel", 10, 5), flow("s", 2, 9, 9, 10)]
    assert flows_of(read(written(tmp_path, *call, *kernel(2, "k", 30), note))) == [("cudaLaunchKernel", "k")]


@pytest.mark.parametrize("id", [2, 1, 77])  # 2 is what Kineto writes; other writers number their flows otherwise
def test_ids_of_call_and_kernel_count_before_that_of_the_flow(id: int, tmp_path: Path) -> None:
    calls = [launch(1, "cudaFuncSetAttribute", 10, 0), launch(2, "cudaLaunchKernel", 10, 5), flow("s", id, 9, 9, 10)]
    work = [kernel(2, "k", 30)[0], flow("f", id, 0, 7, 30)]
    assert flows_of(read(written(tmp_path, *calls, *work))) == [("cudaLaunchKernel", "k")]


def test_both_ends_at_times_of_several_slices(tmp_path: Path) -> None:
    calls = [launch(1, "cudaFuncSetAttribute", 10, 0), launch(2, "cudaLaunchKernel", 10, 5), flow("s", 2, 9, 9, 10)]
    work = [*kernel(2, "k", 30), launch(5, "other", 30, 1, "kernel", 0) | {"tid": 7}]
    assert flows_of(read(written(tmp_path, *calls, *work))) == [("cudaLaunchKernel", "k")]


@pytest.mark.parametrize("phase", ["s", "f"])
def test_each_kernel_of_a_graph_has_its_flow(phase: str, tmp_path: Path) -> None:
    """A call that Kineto knows as a launch has a start, another one, such as hipGraphLaunch, an end."""
    kernels = [one for number in range(50) for one in kernel(2, f"kernel {number:02}", 30 + 10 * number)]
    before = [launch(1, "hipGetDevice", 10, 0), flow("f", 1, 9, 9, 10)]
    trace = read(written(tmp_path, *before, *kernels, launch(2, "graph", 10, 5), flow(phase, 2, 9, 9, 10)))
    assert flows_of(trace) == [("graph", f"kernel {number:02}") for number in range(50)]
    assert diagnostics(trace) == {"kineto.half_flow": 1}
    assert trace.sources[0].balance.even


def test_ends_at_kernels_only_are_not_drawn(tmp_path: Path) -> None:
    trace = read(written(tmp_path, launch(3, "other", 10, 5), *kernel(2, "a", 30), *kernel(2, "b", 40)))
    assert flows_of(trace) == []
    assert diagnostics(trace) == {"kineto.half_flow": 2}
    assert trace.sources[0].balance.even


def test_many_launches_of_one_time_take_linear_time(tmp_path: Path) -> None:
    """Made by hand: each launch is looked up among all that start with it."""
    events: list[dict[str, Any]] = []
    for number in range(1, 10_001):
        events += [launch(number, f"call {number}", 10, 0), flow("s", number, 9, 9, 10)]
        events += kernel(number, f"kernel {number}", 20 + 10 * number)
    path = written(tmp_path, *events)
    begin = time.process_time()
    trace = read(path)
    assert time.process_time() - begin < GROWTH_S
    assert all(call[5:] == work[7:] for call, work in flows_of(trace))
    assert len(trace.flows.from_slice) == 10_000


def test_flows_of_one_number_in_two_categories(tmp_path: Path) -> None:
    trace = read(
        written(
            tmp_path,
            x("kernel", "k", 0, 7, 30, 5),
            flow("f", 4, 0, 7, 30),
            x("cpu_op", "forward", 9, 9, 10, 5),
            flow("s", 4, 9, 9, 10, "fwdbwd"),
            x("cpu_op", "backward", 9, 10, 50, 5),
            flow("f", 4, 9, 10, 50, "fwdbwd"),
            x("cuda_runtime", "launch", 9, 9, 20, 5),
            flow("s", 4, 9, 9, 20),
            flow("f", 5, 0, 7, 30),
            flow("s", 6, 9, 9, 20),
        )
    )
    names = [trace.strings[name] for name in trace.slices.name]
    flows = {(names[a], names[b]) for a, b in zip(trace.flows.from_slice, trace.flows.to_slice, strict=True)}
    assert flows == {("launch", "k"), ("forward", "backward")}
    assert diagnostics(trace) == {"kineto.half_flow": 2}
    assert trace.sources[0].balance.even


def test_what_is_no_process(tmp_path: Path) -> None:
    # Everything that is not a process stays at the top as a track of its own.
    trace = read(
        written(
            tmp_path,
            {**x("Trace", "span", 0, 0, 1, 5), "pid": "Spans", "tid": "PyTorch Profiler"},
            x("overhead", "Buffer Flush", -1, 0, 1, 5),
            m("process_name", -1, "CUPTI Overhead"),
            {"ph": "C", "name": "SM Active (%)", "pid": "GPU 0 Counters", "tid": 0, "ts": 3, "args": {"": 80.5}},
            {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 9},
        )
    )
    assert kinds(trace) == {
        "Spans": "TRACK",
        "Spans/PyTorch Profiler": "TRACK",
        "CUPTI Overhead": "TRACK",
        "GPU 0 Counters": "TRACK",
        "GPU 0 Counters/SM Active (%)": "COUNTER",
        "Global events": "TRACK",
    }
    assert places(trace)["Buffer Flush"] == "CUPTI Overhead"


def test_many_labels_take_linear_time(tmp_path: Path) -> None:
    """Made by hand: each process was compared with all metadata of the file."""
    labels = [m("process_labels", number, f"GPU {number}") for number in range(20_000)]
    path = written(tmp_path, x("hpu_op", "a", 1, 1, 1, 2), *labels)
    begin = time.process_time()
    assert kinds(read(path)) == {"GPU 1": "TRACK", "GPU 1/stream 1": "TRACK"}
    assert time.process_time() - begin < GROWTH_S


@pytest.mark.parametrize(
    ("info", "place"),
    [
        ({"rank": 0, "world_size": 2}, (0, 2)),
        ({"rank": "3", "world_size": "8", "pg_config": ["x" * 50_000]}, (3, 8)),
        ({"rank": 1}, (1, None)),
        ({"rank": -1, "world_size": 2.5}, (None, None)),
        ({"rank": True}, (None, None)),
        ({"rank": 10**30, "world_size": "9" * 20}, (None, None)),
        ({"rank": 0, "world_size": 2, "pg_config": [7, {"ranks": [None]}, {"ranks": "[x]"}], "pg_count": "1"}, (0, 2)),
        ([1, 2], (None, None)),
    ],
)
def test_rank_and_world_size_are_stated(info: Any, place: tuple[int | None, int | None], tmp_path: Path) -> None:
    trace = read(written(tmp_path, x("cpu_op", "aten::mm", 1, 1, 5.0, 1.0), distributedInfo=info, host_name="node7"))
    assert (trace.sources[0].rank, trace.sources[0].world_size) == place
    labels = [track.labels for track in trace.tracks if track.kind is TrackKind.PROCESS]
    assert labels == [() if place[0] is None else (f"rank {place[0]}",)]
    assert trace.host == "node7"


@pytest.mark.parametrize("name", ["", "localhost", "(none)", "LocalHost"])
def test_a_name_that_many_machines_have_is_no_host(name: str, tmp_path: Path) -> None:
    assert read(written(tmp_path, x("cpu_op", "aten::mm", 1, 1, 5.0, 1.0), host_name=name)).host == ""

"""Events whose time the writer could not measure and left at 0 are counted, and neither drawn nor in any table."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import traceconv
from tests import make_nsight, oracle
from tests.golden import ROOT
from tests.make_perfetto import MONOTONIC, Packets, snapshot
from tests.make_xplane import START, Plane
from traceconv.answers.device_time import device
from traceconv.answers.slice_tables import SliceTable
from traceconv.check import check_file
from traceconv.errors import NothingRead
from traceconv.io.spill import Memory
from traceconv.model.builder import Builder
from traceconv.model.clocks import BOOTTIME, REALTIME, ClockDomain, Run, Zero
from traceconv.model.drawable import AtZero, BulkOfTimes, UnsureSlices
from traceconv.model.marks import ANY_TOOL_MARKS, GPU_LAUNCHES, NO_MARKS, FormatMarks
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import StackId, Trace

KINETO = ROOT / "pytorch-kineto"
NO_ONES = ClockDomain("some time", Zero.UNKNOWN, Run.UNKNOWN)
S, MS = 10**9, 10**6
Events = list[dict[str, Any]]


def device_of(path: Path) -> dict[str, Any]:
    """The row of the only device of a file."""
    section = device(SliceTable(traceconv.read(path)))[0]
    (row,) = section.records()
    return row


def runtime_call(ts: float, dur: float, name: str = "cudaEventQuery") -> dict[str, Any]:
    return event(name, ts, dur, cat="cuda_runtime")


def write_kineto(folder: Path, events: Events) -> Path:
    path = folder / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


def write(folder: Path, events: Events) -> Path:
    path = folder / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def event(name: str, ts: float, dur: float | None = None, ph: str = "X", **more: Any) -> dict[str, Any]:
    length = {} if dur is None else {"dur": dur}
    return {"ph": ph, "name": name, "pid": 1, "tid": 2, "ts": ts, **length, **more}


def codes(trace: Trace) -> dict[str, int]:
    return {entry.code.name: entry.count for entry in trace.sources[0].diagnostics}


def names(trace: Trace) -> list[str]:
    return [trace.strings[number] for number in trace.slices.name.tolist()]


def found(path: Path) -> dict[str, int]:
    return {problem.code: problem.count for problem in check_file(path).problems}


# -- what files show --------------------------------------------------------------------------------------------------


def test_kernels_without_a_time_count_in_no_answer() -> None:
    path = KINETO / "never-set-kernels" / "input.json"
    row = device_of(path)
    assert (row["window_ns"], row["busy_ns"]) == (9_980_000, 7_200_000)
    assert (row["launches"], row["negative"]) == (89, 0)
    trace = traceconv.read(path)
    gemm = np.array(names(trace)) == "gemm"
    assert (int(gemm.sum()), set(trace.slices.dur[gemm].tolist())) == (90, {80_000})
    assert codes(trace) == {"time.never_set": 10}


@pytest.mark.parametrize(("case", "count"), [("kernels", 10), ("absolute", 1), ("base", 2)])
def test_check_names_them_in_traces_of_other_tools(case: str, count: int) -> None:
    assert found(KINETO / f"never-set-{case}" / "input.json")["check.never_set"] == count


@pytest.mark.parametrize("case", ["kernels", "absolute", "base"])
def test_the_picture_has_nothing_at_zero(case: str, tmp_path: Path, trace_processor: Any) -> None:
    path = tmp_path / "out.pftrace"
    traceconv.convert(KINETO / f"never-set-{case}" / "input.json", path)
    with trace_processor(path) as tp:
        assert oracle.import_problems(tp) == []
        (shown,) = oracle.rows(tp, "select min(ts) as first, max(ts + dur) as last from slice")
        assert oracle.rows(tp, "select id from flow") == []  # the only flow leads to the kernel without a time
    assert 0 < shown["last"] - shown["first"] < 10 * MS
    assert "check.never_set" not in found(path)


def test_kernels_of_nsight_change_no_window(tmp_path: Path) -> None:
    some, none = tmp_path / "some.sqlite", tmp_path / "none.sqlite"
    make_nsight.never_set(some)
    make_nsight.never_set(none, ())
    few, all = device_of(some), device_of(none)
    assert few["window_ns"] == all["window_ns"] == 4_980_000
    assert (few["busy_ns"], all["busy_ns"]) == (47 * 80_000, 50 * 80_000)
    assert (few["launches"], all["launches"]) == (47, 50)


def test_flows_lead_to_the_slices_that_they_led_to(tmp_path: Path) -> None:
    path = tmp_path / "trace.sqlite"
    make_nsight.never_set(path)
    trace = traceconv.read(path)
    origin, name = trace.slices.origin, names(trace)
    calls, work = trace.flows.from_slice, trace.flows.to_slice
    assert len(calls) == 47
    assert origin[calls].tolist() == origin[work].tolist()
    assert {name[row] for row in calls.tolist()} == {"cudaLaunchKernel"}


def test_a_flow_to_a_slice_that_was_left_out_is_counted_at_its_start(tmp_path: Path) -> None:
    base = 1_790_000_000_000_000
    events = [
        event("lost", 0, 0, tid=3),
        event("f", 0, ph="f", tid=3, id=1, bp="e", cat="c"),
        event("call", base, 5),
        event("f", base, ph="s", id=1, cat="c"),
        event("call", base + 20, 5),
        event("f", base + 20, ph="s", id=2, cat="c"),
        event("work", base + 30, 5, tid=3),
        event("f", base + 30, ph="f", tid=3, id=2, bp="e", cat="c"),
    ]
    trace = traceconv.read(write(tmp_path, events))
    assert codes(trace) == {"time.never_set": 2, "chrome.flow_unpaired": 1}
    ends = [names(trace)[int(rows[0])] for rows in (trace.flows.from_slice, trace.flows.to_slice)]
    assert ends == ["call", "work"]


def test_flows_stated_by_slices_follow_them(tmp_path: Path) -> None:
    base = 1_790_000_000_000_000
    events = [
        event("lost", 0, 0, bind_id="7", flow_in=True),
        event("a", base, 5, bind_id="8", flow_out=True),
        event("b", base + 10, 5, bind_id="8", flow_in=True),
    ]
    trace = traceconv.read(write(tmp_path, events))
    assert codes(trace) == {"time.never_set": 1}
    assert (trace.flows.from_slice.tolist(), trace.flows.to_slice.tolist()) == ([0], [1])


def test_all_flows_may_be_without_a_time(tmp_path: Path) -> None:
    base = 1_790_000_000_000_000
    flow = [event("f", 0, ph=phase, id=1, cat="c") for phase in "sf"]
    trace = traceconv.read(write(tmp_path, [event("lost", 0, 0), *flow, event("a", base, 5)]))
    assert codes(trace) == {"time.never_set": 3}
    assert (names(trace), len(trace.flows.origin)) == (["a"], 0)


@pytest.mark.parametrize(("as_written", "base"), [(write, 1_790_000_000_000_000), (write_kineto, 2_452_000_000)])
def test_instants_and_counters_at_zero(as_written: Callable[..., Path], base: int, tmp_path: Path) -> None:
    events = [
        event("[memory]", 0, ph="i", s="t", args={"Total Allocated": 1, "Device Id": 0, "Device Type": 1}),
        event("used", 0, ph="C", args={"a": 1, "b": 2}),
        event("used", base, ph="C", args={"a": 3, "b": 4}),
        event("run", base, 10),
    ]
    path = as_written(tmp_path, events)
    trace = traceconv.read(path)
    assert codes(trace)["time.never_set"] == 2
    assert (len(trace.instants.ts), trace.counters.value.tolist()) == (0, [3.0, 4.0])
    assert trace.sources[0].balance.even
    assert found(path)["check.never_set"] == 2


def test_samples_and_logs_at_zero() -> None:
    out = Builder(SourceInfo("x", "test"), BOOTTIME)
    thread = out.tracks.add("thread")
    for at, ts in enumerate((0, 0, 5_000 * S), 1):
        out.sample(thread, ts, StackId(-1), "cycles", at=at)
        out.log(thread, ts, "line", at=at)
        out.balance.read += 2
        out.balance.written += 2
    trace = out.finish()
    assert (trace.samples.ts.tolist(), trace.logs.ts.tolist()) == ([5_000 * S], [5_000 * S])
    assert codes(trace) == {"time.never_set": 4}
    assert trace.sources[0].balance.even


def test_samples_of_another_tool_at_zero(tmp_path: Path) -> None:
    packets = Packets()
    snapshot(packets, (MONOTONIC, 5_000 * S), (6, 5_000 * S), primary=6)
    for ts in (0, 5_000 * S, 5_001 * S):
        packets.add(timestamp=ts).perf_sample.tid = 7
    path = tmp_path / "trace.pftrace"
    path.write_bytes(packets.bytes())
    assert found(path)["check.never_set"] == 1
    trace = traceconv.read(path)
    assert (trace.samples.ts.tolist(), codes(trace)["time.never_set"]) == ([5_000 * S, 5_001 * S], 1)


def test_events_of_an_xspace(tmp_path: Path) -> None:
    plane = Plane("/device:GPU:0")
    plane.line("Stream #7", START, plane.event("gemm", 1_000, 2_000), plane.event("gemm", 9_000, 2_000))
    plane.line("Stream #8", 0, plane.event("lost", 0), plane.event("lost, too", 0, producer_id=3))
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(plane.bytes())
    trace = traceconv.read(path)
    assert codes(trace)["time.never_set"] == 2
    assert (names(trace), len(trace.instants.ts)) == (["gemm", "gemm"], 0)
    assert trace.snapshots[0].other == REALTIME


def test_a_perfetto_trace_of_another_tool(tmp_path: Path) -> None:
    packets = Packets(clock=MONOTONIC)
    snapshot(packets, (MONOTONIC, 5_000 * S), (6, 5_000 * S), primary=6)
    packets.descriptor(5, "queue")
    packets.slice(0, 0, "lost")
    packets.slice(5_000 * S, 10 * MS, "kernel")
    path = tmp_path / "trace.pftrace"
    path.write_bytes(packets.bytes())
    assert found(path)["check.never_set"] == 1
    trace = traceconv.read(path)
    assert (names(trace), codes(trace)) == (["kernel"], {"time.never_set": 1})


def test_records_of_rocprof_that_are_no_kernels(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    rows = ['"HIP_API","hipMalloc",7,8,{},{},{}'.format(*row) for row in [(1, 5 * 10**14, 5 * 10**14 + 9), (2, 0, 0)]]
    head = '"Domain","Function","Process_Id","Thread_Id","Correlation_Id","Start_Timestamp","End_Timestamp"'
    path.write_text("\n".join([head, *rows, ""]))
    trace = traceconv.read(path)
    assert (len(trace.slices.ts), codes(trace)) == (1, {"time.never_set": 1})


STARTLESS = [
    [event("open", 0, 5400e6 + 500)],
    [event("open", 0, ph="b", cat="c", id=1), event("open", 5400e6 + 500, ph="e", cat="c", id=1)],
    [event("open", 0, ph="B"), event("open", 5400e6 + 500, ph="E")],
    [event("open", 0, 1_790_000_000_000_000.0)],
]


@pytest.mark.parametrize("startless", STARTLESS)
def test_a_slice_whose_start_was_never_set(startless: Events, tmp_path: Path) -> None:
    work = [event("work", 5400e6 + number * 1000, 500) for number in range(2)]
    path = write(tmp_path, startless + work)
    trace = traceconv.read(path)
    assert (names(trace), codes(trace)) == (["work", "work"], {"time.never_set": 1})
    assert trace.sources[0].balance.even
    assert found(path)["check.never_set"] == 1


def test_a_kernel_of_nsight_whose_start_was_never_set(tmp_path: Path) -> None:
    """The recording begins before all kernels, so none begins with it, however near the others are."""
    path = tmp_path / "trace.sqlite"
    make_nsight.never_set(path, ends=True)
    row = device_of(path)
    assert (row["window_ns"], row["busy_ns"], row["launches"]) == (4_980_000, 47 * 80_000, 47)
    assert codes(traceconv.read(path)) == {"time.never_set": 3}


def test_kernels_near_the_others(tmp_path: Path) -> None:
    """A file whose times were made to begin at 0: the call that begins it is measured, the kernels at 0 are not."""
    whole = json.loads((KINETO / "never-set-kernels" / "input.json").read_bytes())
    first = min(one["ts"] for one in whole["traceEvents"] if one.get("ts"))
    for one in whole["traceEvents"]:
        one["ts"] -= first if one.get("ts") else 0
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(whole))
    assert codes(traceconv.read(path)) == {"time.never_set": 10}
    assert found(path)["check.never_set"] == 10


def test_async_slices_at_zero(tmp_path: Path) -> None:
    pair = [event("lost", 0, ph=phase, cat="c", id=1) for phase in "be"]
    path = write(tmp_path, [*pair, event("run", 1_790_000_000_000_000, 10)])
    assert codes(traceconv.read(path)) == {"time.never_set": 1}
    assert found(path)["check.never_set"] == 1


@pytest.mark.parametrize("ph", ["B", "b"])
@pytest.mark.parametrize(("first", "left_out"), [(1_700_000_000_000_000, 1), (5400e6, 0), (100, 0)])
def test_a_start_at_zero_without_an_end(ph: str, first: float, left_out: int, tmp_path: Path) -> None:
    """It may last as long as the trace; it is left out only where nothing is at 0."""
    work = [event("work", first + 10 * number, 5) for number in range(30)]
    path = write(tmp_path, [event("open", 0, ph=ph, cat="some", id=1, tid=9), *work])
    trace = traceconv.read(path)
    assert (len(trace.slices.ts), codes(trace).get("time.never_set", 0)) == (31 - left_out, left_out)
    assert found(path).get("check.never_set", 0) == left_out


@pytest.mark.parametrize("at", [3, 10, 19])
@pytest.mark.parametrize(("category", "first"), [("kernel", 5e11), ("kernel", 0), ("cuda_runtime", 0)])
def test_a_start_that_was_never_set_wherever_its_slice_ends(
    category: str, first: float, at: int, tmp_path: Path
) -> None:
    """In a trace since boot, and in one of Kineto with the 0 of the device before its own."""
    begin = 0 if first else -2452e6
    events = [event("aten::mm", first + number * 1000, 500, cat="cpu_op") for number in range(20)]
    events += [event("gemm", first + number * 1000 + 100, 300, cat="kernel", tid=7) for number in range(20)]
    events.append(event("lost", begin, first - begin + at * 1000 + 50, cat=category, tid=8))
    path = (write if first else write_kineto)(tmp_path, events)
    assert codes(traceconv.read(path))["time.never_set"] == 1
    assert found(path)["check.never_set"] == 1


@pytest.mark.parametrize("dur", [0, 2457e6])
def test_kernels_never_set_in_a_long_recording(dur: float, tmp_path: Path) -> None:
    events = [event("gemm", number * 1e6, 300, cat="kernel") for number in range(2400)]
    path = write_kineto(tmp_path, [*events, event("lost", -2452e6, dur, cat="kernel", tid=7)])
    assert codes(traceconv.read(path))["time.never_set"] == 1
    assert device_of(path)["window_ns"] == 2399 * S + 300_000
    assert found(path) == {"check.never_set": 1}


@pytest.mark.parametrize("category", ["xpu_runtime", "mtia_runtime", "privateuse1_driver"])
def test_calls_of_kineto_for_any_device(category: str, tmp_path: Path) -> None:
    events = [event("op", number * 1000, 5, cat="cpu_op") for number in range(20)]
    path = write_kineto(tmp_path, [*events, event("lost", -2452e6, 0, cat=category)])
    assert codes(traceconv.read(path)) == {"time.never_set": 1}


def test_a_runtime_call_of_nsight_whose_start_was_never_set(tmp_path: Path) -> None:
    """Calls that end among the others, with the recording begun before them; what the system does at 0 is kept."""
    path, string = tmp_path / "trace.sqlite", make_nsight.Strings()
    calls = [make_nsight.call(string, "cudaLaunchKernel", make_nsight.MAIN0, 3 * S + at * MS, 5000) for at in range(30)]
    lost = make_nsight.call(string, "cudaLaunchKernel", make_nsight.MAIN0, 0, 3 * S + 15 * MS)
    system = make_nsight.call(string, "poll", make_nsight.MAIN0, 0, 3 * S + 15 * MS)
    tables = {"CUPTI_ACTIVITY_KIND_RUNTIME": [*calls, lost], "OSRT_API": [system], "StringIds": string.rows()}
    make_nsight.build(path, tables, enums={})
    trace = traceconv.read(path)
    assert codes(trace)["time.never_set"] == 1
    assert Counter(names(trace)) == {"cudaLaunchKernel": 30, "poll": 1}


def test_a_kernel_of_rocprof_before_the_zero_of_its_clock(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("Index,KernelName,gpu-id,queue-id,BeginNs,EndNs\n0,a,1,0,5000,6000\n1,b,1,0,-1,-1\n")
    trace = traceconv.read(path)
    assert (names(trace), len(trace.instants.ts), codes(trace)) == (["a"], 0, {"time.never_set": 1})


def test_kernels_of_rocprof_without_any_time_are_named(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("Index,KernelName,gpu-id,queue-id,BeginNs,EndNs\n0,a,1,0,0,0\n1,b,1,0,0,0\n")
    with pytest.raises(NothingRead, match=r"2 x the time of an event was never set") as refused:
        traceconv.read(path)
    assert not refused.value.hint  # no other format has their times


@pytest.mark.parametrize(("reading", "left_out"), [(5_000, 1), (0, 0)])
def test_a_perfetto_trace_counts_from_boot_if_its_clocks_say_so(reading: int, left_out: int, tmp_path: Path) -> None:
    packets = Packets(clock=MONOTONIC)
    snapshot(packets, (MONOTONIC, reading * S), (6, reading * S), primary=6)
    packets.descriptor(5, "queue")
    packets.slice(0, 0, "begin")
    packets.slice(5_000 * S, 10 * MS, "kernel")
    path = tmp_path / "trace.pftrace"
    path.write_bytes(packets.bytes())
    assert found(path).get("check.never_set", 0) == left_out
    assert codes(traceconv.read(path)).get("time.never_set", 0) == left_out


@pytest.mark.parametrize("ts", [0.5, -5])
@pytest.mark.parametrize("count", [1, 10])
def test_events_astray_do_not_hide_the_bulk(ts: float, count: int, tmp_path: Path) -> None:
    astray = [event("astray", ts + number / 100, 0.001) for number in range(count)]
    work = [event("work", 1_700_000_000_000_000 + 10 * number, 5) for number in range(30)]
    path = write(tmp_path, [event("lost", 0, 3), *astray, *work])
    assert codes(traceconv.read(path)) == {"time.never_set": 1}
    assert found(path)["check.never_set"] == 1


@pytest.mark.parametrize("own", ["pftrace", "json"])
def test_outputs_of_traceconv_have_no_such_events(own: str, tmp_path: Path) -> None:
    """The event astray is at 0 in the output, where nothing but the origin of the output shows that it is measured."""
    work = [event("work", 1_700_000_000_000_000 + 10 * number, 5) for number in range(30)]
    path, output = write(tmp_path, [event("astray", -5, 1), *work]), tmp_path / f"out.{own}"
    traceconv.convert(path, output)
    assert "check.never_set" not in found(output)
    assert len(traceconv.read(output).slices.ts) == 31
    if own == "json":
        output.write_text(json.dumps(json.loads(output.read_bytes()) | {"metadata": {}}))
        assert found(output)["check.never_set"] == 1


@pytest.mark.parametrize("own", ["pftrace", "json"])
def test_an_input_that_the_user_places_at_1970_is_there(own: str, tmp_path: Path) -> None:
    work = [event("work", 1_700_000_000_000_000 + 10 * number, 5) for number in range(30)]
    path, output, placed = write(tmp_path, work), tmp_path / f"out.{own}", tmp_path / "placed.json"
    placed.write_text(json.dumps({"traceEvents": [event("first", 0, 5)]}))
    traceconv.merge([path, placed], output, constraints=traceconv.Constraints(offsets={1: 0}))
    assert "check.never_set" not in found(output)
    trace = traceconv.read(output)
    assert (len(trace.slices.ts), min(trace.slices.ts)) == (31, 0)


def test_a_flow_at_zero_beside_a_slice_without_a_time(tmp_path: Path) -> None:
    events = [
        event("op", 0, 50, cat="cpu_op"),
        event("lost", 0, 0, cat="gpu_memset"),
        event("lost, too", 0, 0, cat="gpu_memset", tid=4),
        event("back", 100, 50, cat="cpu_op", tid=3),
        event("fwdbwd", 0, ph="s", cat="fwdbwd", id=5),
        event("fwdbwd", 100, ph="f", cat="fwdbwd", id=5, tid=3, bp="e"),
        event("ac2g", 100, ph="s", cat="ac2g", id=6, tid=3),
        event("ac2g", 0, ph="f", cat="ac2g", id=6, tid=4, bp="e"),
    ]
    trace = traceconv.read(write_kineto(tmp_path, events))
    assert codes(trace).items() >= {"time.never_set": 3, "kineto.half_flow": 1}.items()
    assert "chrome.flow_unbound" not in codes(trace)
    assert flows_of(trace) == {("op", 0, "back", 100_000): 1}


def test_kernels_at_zero_far_from_all_others(tmp_path: Path) -> None:
    """Kernels with a length, or at the 0 of a device on the clock of the host, count as those without a length at 0."""
    whole = json.loads((KINETO / "never-set-kernels" / "input.json").read_bytes())
    lost = [one for one in whole["traceEvents"] if one.get("ts") == 0]
    path = tmp_path / "trace.json"
    for change in ({"dur": 80}, {"ts": -2_452_000_000.0, "dur": 0}):
        for one in lost:
            one |= change
        path.write_text(json.dumps(whole))
        assert codes(traceconv.read(path)) == {"time.never_set": 10}
        assert device_of(path)["window_ns"] == 9_980_000
        assert found(path) == {"check.never_set": 10}


# -- recordings of which some times are taken away: they answer as without these events --------------------------------


def tables_of(path: Path) -> dict[str, Any]:
    """The rows of all answers; their order may depend on that of the tracks."""
    sections = [one for one in traceconv.report([path]) if one.name not in ("overview", "unanswered")]
    return {section.name: Counter(section.rows) for section in sections}


def flows_of(trace: Trace) -> Counter[tuple[str, int, str, int]]:
    """The names and times of the ends of flows."""
    name, ts = np.array(names(trace)), trace.slices.ts
    ends = [(name[rows].tolist(), ts[rows].tolist()) for rows in (trace.flows.from_slice, trace.flows.to_slice)]
    return Counter(zip(*ends[0], *ends[1], strict=True))


def assert_as_without(zeroed: Path, without: Path, count: int) -> None:
    trace, other = traceconv.read(zeroed), traceconv.read(without)
    assert codes(trace)["time.never_set"] == count > 0
    assert trace.sources[0].balance.even
    assert (trace.span(), Counter(names(trace))) == (other.span(), Counter(names(other)))
    assert flows_of(trace) == flows_of(other)
    assert tables_of(zeroed) == tables_of(without)


@pytest.mark.parametrize("case", ["cuda-graph", "cuda-streams", "launches-of-2022", "nccl-rank0"])
def test_recordings_of_torch(case: str, tmp_path: Path) -> None:
    trace = json.loads((KINETO / case / "input.json").read_bytes())
    work = [one for one in trace["traceEvents"] if one.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    places = {(one["pid"], one["tid"], one["ts"]) for one in work[: len(work) // 3 + 1] if one["ph"] == "X"}
    kept: Events = []
    zeroed: Events = []
    for one in trace["traceEvents"]:
        is_lost = (one in work or one["ph"] == "f") and (one["pid"], one["tid"], one["ts"]) in places
        zeroed.append(one | {"ts": 0} | ({"dur": 0} if one["ph"] == "X" else {}) if is_lost else one)
        kept += [] if is_lost else [one]
    paths = [tmp_path / name / "trace.json" for name in ("zeroed", "without")]
    for path, events in zip(paths, (zeroed, kept), strict=True):
        path.parent.mkdir()
        path.write_text(json.dumps(trace | {"traceEvents": events}))
    assert_as_without(*paths, count=len(zeroed) - len(kept))


@pytest.mark.parametrize("case", ["nsight-systems/h100_2023", "nsight-systems/session", "nvprof/streams-and-ranges"])
def test_recordings_in_databases(case: str, tmp_path: Path) -> None:
    (source,) = (ROOT / case).glob("input.*")
    count, paths = 0, [tmp_path / name / source.name for name in ("zeroed", "without")]
    for path, change in zip(paths, ("UPDATE {} SET start = 0, end = 0", "DELETE FROM {}"), strict=True):
        path.parent.mkdir()
        path.write_bytes(source.read_bytes())
        count = 0
        with closing(sqlite3.connect(path)) as database, database:
            (tables,) = zip(*database.execute("SELECT name FROM sqlite_master WHERE type = 'table'"), strict=True)
            for kind in ("KERNEL", "CONCURRENT_KERNEL", "MEMCPY", "MEMSET", "RUNTIME"):
                table = f"CUPTI_ACTIVITY_KIND_{kind}"
                if table in tables:
                    count += database.execute(f"{change.format(table)} WHERE rowid % 5 = 2").rowcount
    assert_as_without(*paths, count=count)


def test_recordings_of_rocprof(tmp_path: Path) -> None:
    text = (ROOT / "rocprof" / "sdk" / "input.json").read_text()
    whole = json.loads(text)
    paths = [tmp_path / name / "input.json" for name in ("zeroed", "without")]
    for path in paths:
        (tool,) = json.loads(text)["rocprofiler-sdk-tool"]
        records = tool["buffer_records"]["kernel_dispatch"]
        records[0] |= {"start_timestamp": 0, "end_timestamp": 0}
        if path is paths[1]:
            del records[0]
        path.parent.mkdir()
        path.write_text(json.dumps(whole | {"rocprofiler-sdk-tool": [tool]}))
    assert_as_without(*paths, count=1)


# -- all formats with times of devices --------------------------------------------------------------------------------

CALLS_US = range(0, 3000, 100)
Kernels = list[tuple[int, int]]


def kernels_of(unset: str, first: int) -> Kernels:
    """Starts and ends (µs) of kernels. One in ten lacks what is to be unset: start, end, both; or it is not there."""
    kernels = []
    for number, ts in enumerate(range(first, first + CALLS_US.stop, CALLS_US.step)):
        is_unset = number % 10 == 9
        start, end = (
            0 if is_unset and unset in (what, "both") else ts + of for what, of in (("start", 10), ("end", 50))
        )
        kernels += [] if is_unset and not unset else [(start, end)]
    return kernels


def as_kineto(path: Path, kernels: Kernels, first: int, base: int) -> None:
    calls = [event("cudaLaunchKernel", first - base + ts, 5, cat="cuda_runtime") for ts in CALLS_US]
    work = [event("gemm", start - base, end - start, cat="kernel", tid=7) for start, end in kernels]
    path.write_text(json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": base * 1000, "traceEvents": calls + work}))


def as_onnxruntime(path: Path, kernels: Kernels, first: int, base: int) -> None:
    nodes = [event(f"c{ts}_kernel_time", first - base + ts, 9, cat="Node", args={"op_name": "c"}) for ts in CALLS_US]
    work = [
        event("gemm", start - base, end - start, cat="Kernel", args={"stream": "7"}) | {"pid": -1, "tid": -1}
        for start, end in kernels
    ]
    path.write_text("[\n" + ",\n".join(json.dumps(one | {"args": one["args"]}) for one in nodes + work) + "\n]\n")


def as_rocprof(path: Path, kernels: Kernels, first: int, base: int) -> None:
    head = "Kind,Agent_Id,Queue_Id,Kernel_Name,Correlation_Id,Start_Timestamp,End_Timestamp"
    rows = [f"KERNEL_DISPATCH,4,1,gemm,1,{start * 1000},{end * 1000}" for start, end in kernels]
    path.write_text("\n".join([head, *rows, ""]))


def as_old_rocprof(path: Path, kernels: Kernels, first: int, base: int) -> None:
    calls = [(2, 9, "hipLaunchKernel", first + ts, first + ts + 5) for ts in CALLS_US]
    label = event("process_name", 0, ph="M", args={"name": "GPU0"}) | {"pid": 6}
    rows = [
        event(name, start, end - start or 1, args={"BeginNs": str(start * 1000), "EndNs": str(end * 1000)})
        | {"pid": pid, "tid": tid}
        for pid, tid, name, start, end in [*calls, *((6, 0, "gemm", *times) for times in kernels)]
    ]
    path.write_text(json.dumps({"traceEvents": [{}, label, *rows]}))


def as_nsight(path: Path, kernels: Kernels, first: int, base: int) -> None:
    string = make_nsight.Strings()
    rows = [
        make_nsight.kernel(string, "gemm", start * 1000, (end - start) * 1000, globalPid=make_nsight.RANK0)
        for start, end in kernels
    ]
    tables = {"CUPTI_ACTIVITY_KIND_KERNEL": rows, "StringIds": string.rows()}
    make_nsight.build(path, tables, enums={})


BOOT_US, NOW_US = 5 * 10**11, 1_790_000_000_000_000
FORMATS = {
    "pytorch-kineto, absolute": (as_kineto, NOW_US, 0),
    "pytorch-kineto, converted": (as_kineto, NOW_US, NOW_US - 2_452_000_000),
    "onnxruntime, since boot": (as_onnxruntime, BOOT_US, BOOT_US),
    "onnxruntime, since 1970": (as_onnxruntime, NOW_US, NOW_US),
    "rocprof": (as_rocprof, BOOT_US, 0),
    "rocprof, soon after boot": (as_rocprof, 5_000_000, 0),
    "rocprof, Chrome JSON": (as_old_rocprof, BOOT_US, 0),
    "nsight-systems": (as_nsight, 3_000, 0),
}


@pytest.mark.parametrize("unset", ["both", "start", "end"])
@pytest.mark.parametrize("name", FORMATS)
def test_times_of_kernels(name: str, unset: str, tmp_path: Path) -> None:
    write_as, first, base = FORMATS[name]
    paths = [tmp_path / folder / "trace" for folder in ("unset", "without")]
    for path, what in zip(paths, (unset, ""), strict=True):
        path.parent.mkdir()
        write_as(path, kernels_of(what, first), first, base)
    trace = traceconv.read(paths[0])
    assert trace.sources[0].format == name.split(",")[0]
    if unset == "end":
        assert codes(trace)["slice.end_never_set"] == 3
        columns = "window_ns", "busy_ns", "idle_ns"
        answers = [{column: device_of(path)[column] for column in columns} for path in paths]
        assert answers[0] == answers[1]
    else:
        assert_as_without(*paths, count=3)
        if write_as in (as_kineto, as_onnxruntime, as_old_rocprof):
            assert found(paths[0])["check.never_set"] == 3


# -- what is left alone -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "events",
    [
        [event("first", 0, 0), event("next", 5, 3)],
        [event("first", 0, 0), event("next", 90e6, 3), event("last", 190e6, 3)],
        [event("whole", 0, 200e6), event("first", 0, 0), event("next", 190e6, 3)],
        [event("begin", 0, ph="i", s="g"), event("next", 90e6, 3)],
        [event("begin", 0, 0), event("next", 90e6, 3)],
        [event("begin", 0, 0, cat="cpu_op"), event("next", 5, 3, args={"Ev Idx": 1})],
        [event("only", 0, 0)],
        [event("first", 0, ph="B"), event("first", 90e6, ph="E"), event("next", 90e6, 3)],
        [event("first", 0, ph="b", id=1), event("next", 90e6, 3)],
        [event("whole", 0, 90e6 + 5), event("next", 90e6, 3)],
        [event("load", 0, 100.5e6), event("step", 100e6, 90e3), event("step", 104.9e6, 90e3)],
        [
            event("load", 0, ph="B"),
            event("load", 100.5e6, ph="E"),
            event("step", 100e6, 1, tid=2),
            event("s", 105e6, 1),
        ],
        [event("load", 0, 5400e6 + 500), event("step", 5400e6, 3), event("step", 5406e6, 3)],
        [event("load", 0, 3000e6 + 500), event("step", 3000e6, 3), event("step", 3000e6 + 900, 3)],
        [
            event("load", 0, 5400e6 + 500),
            event("open", 1, 3),
            *(event("step", 5400e6 + at, 3) for at in (0, 900, 1800)),
        ],
    ],
)
def test_zero_is_a_time_where_a_trace_begins(events: Events, tmp_path: Path) -> None:
    path = write(tmp_path, events)
    trace = traceconv.read(path)
    assert "time.never_set" not in codes(trace)
    assert trace.sources[0].balance.skipped.total() == 0
    assert "check.never_set" not in found(path)


@pytest.mark.parametrize("first", [0, -50e6, -100e6, -9000e6])
def test_calls_without_a_length_near_the_others(first: float, tmp_path: Path) -> None:
    events = [event("op", first + 100 * number + 20, 5, cat="cpu_op") for number in range(5)]
    events += [runtime_call(first + 100 * number, 0) for number in range(5)]
    path = write_kineto(tmp_path, events)
    assert codes(traceconv.read(path)) == {}
    assert found(path) == ({"check-json.negative_time": 10} if first else {})


def test_rows_without_times_are_at_no_zero() -> None:
    out = Builder(SourceInfo("x", "test"), BOOTTIME)
    out.totals(out.tracks.totals("sums"), "a row")
    out.slice(out.tracks.add("queue"), 500 * S, 10, "kernel")
    out.balance.read = out.balance.written = 2
    assert len(out.finish().instants.ts) == 1


# -- the rule ---------------------------------------------------------------------------------------------------------


KINETO_MARKS = FormatMarks(GPU_LAUNCHES, unmeasured="kernel", early_at_zero=True)
CUPTI = FormatMarks(GPU_LAUNCHES, unmeasured=".*")
GPU_TOOL = FormatMarks(GPU_LAUNCHES, unmeasured=".*", zero_before_work=True)
ANY_TOOL = FormatMarks(any_tool=True)


def at_zero(first: int, last: int, marks: FormatMarks = NO_MARKS, **more: Any) -> AtZero:
    """What makes 0 no time beside events from the first to the last of these times; none if they are not in order."""
    times, is_any = BulkOfTimes(), [first] if first <= last else []
    times.add(np.array(is_any, np.int64), np.array([last] * len(is_any), np.int64))
    return AtZero(times, marks, **more)


def slices(*dur: int, category: str = "") -> UnsureSlices:
    """Slices at 0 with these durations."""
    return UnsureSlices(np.zeros(len(dur), np.int64), np.array(dur, np.int64), np.zeros(len(dur), np.int64), [category])


@pytest.mark.parametrize(
    ("shown", "dur", "is_no_time"),
    [
        (at_zero(17 * 10**17, 17 * 10**17 + S), [5], True),
        (at_zero(100 * S, 101 * S, KINETO_MARKS), [0], True),
        (at_zero(100 * S, 101 * S), [0], False),
        (at_zero(100 * S, 101 * S, KINETO_MARKS), [0, 5], False),
        (at_zero(100 * S, 101 * S, KINETO_MARKS), [0, 100 * S + 5], False),
        (at_zero(100 * S, 101 * S, KINETO_MARKS), [], True),
        (at_zero(100 * S, 200 * S, KINETO_MARKS), [0], True),
        (at_zero(100 * S, 201 * S, KINETO_MARKS), [0], False),
        (at_zero(59 * S, 60 * S, KINETO_MARKS), [0], False),
        (at_zero(100 * S, 1000 * S, zero=Zero.BOOT), [5], True),
        (at_zero(100 * S, 1000 * S, ANY_TOOL, zero=Zero.BOOT), [0], False),
        (at_zero(100 * S, 1000 * S, ANY_TOOL, zero=Zero.BOOT, since_boot=True), [0], True),
        (at_zero(59 * S, 60 * S, zero=Zero.BOOT), [0], False),
        (at_zero(-5, 100 * S, KINETO_MARKS), [0], False),
        (at_zero(2**63 - 1, 0, KINETO_MARKS, zero=Zero.BOOT), [0], False),
    ],
)
def test_what_makes_zero_no_time(shown: AtZero, dur: list[int], is_no_time: bool) -> None:
    assert shown.is_no_time(slices(*dur)) is is_no_time


@pytest.mark.parametrize(
    ("shown", "some", "count"),
    [
        (at_zero(100 * S, 101 * S), slices(0, 5, 100 * S, 100 * S + 1, 101 * S - 1, 101 * S, 200 * S), 0),
        (at_zero(100 * S, 101 * S, KINETO_MARKS), slices(5, 100 * S, 100 * S + 1, 101 * S, category="kernel"), 4),
        (at_zero(59 * S, 60 * S, KINETO_MARKS), slices(5, 59 * S + 1, category="kernel"), 0),
        (at_zero(10, 20, CUPTI), slices(0, 5, category="cuda_runtime"), 0),
        (
            at_zero(100 * S, 101 * S, CUPTI),
            slices(0, 5, category="cuda_runtime"),
            1,
        ),
        (at_zero(5400 * S, 5401 * S), slices(0, 5, 5400 * S, 5400 * S + 1, 5401 * S - 1, 5401 * S, 9000 * S), 2),
        (at_zero(100 * S, 111 * S), slices(105 * S), 0),
        (at_zero(100 * S, 101 * S, ANY_TOOL_MARKS), slices(0, 5, category="kernel"), 1),
        (at_zero(100 * S, 101 * S, ANY_TOOL_MARKS), slices(0, 5, category="Kernel"), 1),
        (at_zero(100 * S, 101 * S, ANY_TOOL_MARKS), slices(0, 5, category="begin"), 0),
        (at_zero(10, 20, ANY_TOOL_MARKS), slices(0, 5, category="kernel"), 0),
        (at_zero(59 * S, 60 * S), slices(59 * S + 1), 0),
        (at_zero(10, 20), slices(17 * 10**17), 1),
        (at_zero(10, 20, KINETO_MARKS), slices(0, 5, 15, category="kernel"), 1),
        (at_zero(10, 20, KINETO_MARKS), slices(0, category="cpu_op"), 0),
        (at_zero(10, 20, GPU_TOOL, zero=Zero.RUN_START), slices(0, 5, 15, category="kernel"), 3),
        (at_zero(10, 20, GPU_TOOL, zero=Zero.RUN_START), slices(0, 5, 15, category="cuda_runtime"), 2),
        (at_zero(10, 20, GPU_TOOL, zero=Zero.RUN_START), slices(0, 5, 15, category="nvtx"), 1),
        (at_zero(10, 20, CUPTI), slices(0, 5, category="kernel"), 1),
    ],
)
def test_which_slices_have_no_time(shown: AtZero, some: UnsureSlices, count: int) -> None:
    assert int(shown.never_set(some).sum()) == count


@pytest.mark.parametrize(("categories", "left"), [("kernel|memcpy", 1), ("", 2)])
def test_a_format_declares_what_its_writer_leaves(categories: str, left: int) -> None:
    out = Builder(SourceInfo("x", "test", marks=FormatMarks(unmeasured=categories)), NO_ONES)
    queue = out.tracks.add("queue")
    for ts, dur, category in ((0, 0, "kernel"), (0, 0, "api"), (S, 10, "kernel")):
        out.slice(queue, ts, dur, category, category)
        out.balance.read += 1
        out.balance.written += 1
    trace = out.finish()
    assert int((trace.slices.ts == 0).sum()) == left
    assert trace.sources[0].balance.even


@pytest.mark.parametrize(
    ("count", "first", "last"),
    [(0, 2**63 - 1, 0), (1, 0, 5), (2, 0, 15), (3, 10, 15), (30, 100, 195), (500, 100, 4895)],
)
def test_the_bulk_of_times(count: int, first: int, last: int) -> None:
    bulk, times = BulkOfTimes(), np.random.default_rng(1).permutation(count) * 10
    for some in np.array_split(times, 7):
        bulk.add(some, some + 5)
    assert (bulk.first, bulk.last) == (first, last)


@pytest.mark.parametrize(
    ("first", "last", "near"), [(95, 137, (95, 137)), (0, 3600, (100, 129)), (-500, 170, (100, 170))]
)
def test_which_times_are_near_the_bulk(first: int, last: int, near: tuple[int, int]) -> None:
    bulk, times = BulkOfTimes(), np.array([first, *range(100, 130), last]) * S
    bulk.add(times, times)
    assert bulk.near == tuple(time * S for time in near)


def test_clocks_of_one_input_are_judged_apart() -> None:
    out = Builder(SourceInfo("x", "test"), NO_ONES)
    near = out.tracks.add("near")
    far = out.tracks.add("far", clock=out.clocks.add(BOOTTIME))
    for track, ts, dur in ((near, 0, 0), (near, 10, 5), (far, 0, 0), (far, 500 * S, 10)):
        out.slice(track, ts, dur, "a")
        out.balance.read += 1
        out.balance.written += 1
    assert out.finish().slices.ts.tolist() == [0, 10, 500 * S]


@pytest.mark.parametrize("base", [1, 59e6, 61e6, 1_790_000_000_000_000])
def test_an_end_that_was_never_set(base: float, tmp_path: Path) -> None:
    trace = traceconv.read(
        write(tmp_path, [event("open", base, -base), event("back", base + 9, -5), event("a", base, 9)])
    )
    assert codes(trace) == {"slice.end_never_set": 1, "slice.negative_duration": 1}
    assert [trace.slices.dur[names(trace).index(name)] for name in ("open", "back")] == [0, 0]
    row = names(trace).index("open")
    assert trace.args.get(int(trace.slices.args_at[row]), int(trace.slices.args_len[row])) == b'{"unfinished":true}'


@pytest.mark.parametrize("budget", [1, 1 << 30])
def test_columns_in_files_lose_the_same_rows(budget: int) -> None:
    out = Builder(SourceInfo("x", "test"), NO_ONES, Memory(budget))
    track = out.tracks.add("queue")
    base, count = 17 * 10**17, 40_000
    for number in range(count):
        is_set = number % 4 != 1
        out.slice(
            track, base + number if is_set else 0, (-5 if number % 4 == 2 else 1) if is_set else 0, "a", at=number
        )
        if number % 4 == 2:
            out.flow(number - 2, number, at=number)
            out.flow(number - 1, number, at=number)
    out.balance.read = out.balance.written = count
    trace = out.finish()
    assert trace.slices.origin.tolist() == [number for number in range(count) if number % 4 != 1]
    assert trace.slices.origin[trace.flows.from_slice].tolist() == list(range(0, count, 4))
    assert trace.slices.origin[trace.flows.to_slice].tolist() == list(range(2, count, 4))
    assert (int(trace.slices.dur.sum()), codes(trace)["slice.negative_duration"]) == (count // 2, count // 4)
    assert trace.args.get(int(trace.slices.args_at[-2]), int(trace.slices.args_len[-2])) == b'{"negative_dur_ns":-5}'
    balance = trace.sources[0].balance
    assert (balance.written, balance.skipped.total(), balance.even) == (count * 3 // 4, count // 4, True)


@pytest.mark.parametrize(("begin", "left_out"), [(-100e6, 0), (-50e6, 0), (0.5, 3)])
def test_a_device_record_is_left_out_only_long_before_all_others(begin: float, left_out: int, tmp_path: Path) -> None:
    """Calls of length 0 among their neighbours have a time, however far below 0 all of them are."""
    runtime = {"cat": "cuda_runtime", "args": {"correlation": 1}}
    events = [event("cudaEventQuery", begin + 100 * at, 0, **runtime) for at in range(5)]
    events += [event("aten::mm", begin + 100 * at + 5, 20, cat="cpu_op") for at in range(5)]
    events += [event("kernel", -2452e6, 0, **runtime)] * left_out
    (tmp_path / "x.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    trace = traceconv.read(tmp_path / "x.json")
    assert trace.sources[0].format == "pytorch-kineto"
    assert codes(trace).get("time.never_set", 0) == left_out
    assert found(tmp_path / "x.json").get("check.never_set", 0) == left_out

"""What a report begins with: for each rule a trace that fires it, and one that nearly does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import traceconv
from tests.align.test_ranks import kernel
from tests.answers.test_ranks import MS, SCHEMA, US, collective, write
from tests.answers.test_sections import Events, event, kineto, launched
from tests.golden import ROOT
from traceconv.align.receipt import Aligned
from traceconv.answers import Questions, answers
from traceconv.answers.render import json as as_json
from traceconv.answers.render import markdown, text
from traceconv.answers.section import Section, Unnamed
from traceconv.answers.summary import LIMITING

COPY = {"cat": "gpu_memcpy"}


def summary_of(path: Path, events: Events, step_name: str = "") -> tuple[dict[str, dict[str, Any]], list[Any]]:
    """The findings by their id, and the questions without an answer."""
    table = kineto(path / "a.json", events)
    found, unanswered = answers(table.trace, Aligned(), Questions(["summary"], step_name=step_name))
    ids = [row["id"] for row in found.records()]
    assert len(ids) == len(set(ids))
    return {row["id"]: row for row in found.records()}, unanswered.rows


def work(*times: tuple[str, float, float], begin: float = 1000) -> Events:
    """Work of one stream: names, starts and ends in µs, launched at once before all of it."""
    events: Events = []
    for number, (name, start, end) in enumerate(times, 1):
        call = begin - 300 + number, begin - 300 + number + 0.5
        more: dict[str, Any] = {"cat": "gpu_memcpy"} if name.startswith("Memcpy") else {}
        one = launched(number, call, (begin + start, begin + end), **more)
        one[1]["name"] = name
        events += one
    return events


def late(call: tuple[float, float], *more: dict[str, Any], end: float = 90) -> Events:
    """A kernel of 60 µs, one from `end` to 100 µs that a call launches, and what the host ran; from 1 ms on."""
    second = launched(2, (1000 + call[0], 1000 + call[1]), (1000 + end, 1100))
    return [*work(("gemm", 0, 60)), *second, *more]


def limit(path: Path, events: Events) -> dict[str, Any]:
    found = summary_of(path, events)[0]["limit"]
    numbers: dict[str, Any] = found["numbers"]
    parts = ("compute_ns", "exposed_comm_ns", "exposed_copy_ns", "idle_ns")
    assert sum(numbers[part] for part in parts) == numbers["window_ns"]
    assert numbers["busy_ns"] + numbers["idle_ns"] == numbers["window_ns"]
    return found


LIGHTNING = "[pl][profile][_TrainingEpochLoop].train_dataloader_next"


def loader(
    start: float, end: float, name: str = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
) -> dict[str, Any]:
    return event(name, 1000 + start, end - start, cat="user_annotation")


@pytest.mark.parametrize(
    ("events", "expected", "words"),
    [
        # Idle: 30 % of the window or more.
        (late((85, 88)), "host", "The host limited the "),
        (late((85, 88), end=89.999), "computation", "Work on the device limited the "),
        # Loaders run in half of the time in which the host is late, 25 µs, or in less.
        (late((85, 88), loader(70, 82.5)), "input data", "Input data limited the "),
        (late((85, 88), loader(70, 82.499)), "host", "The host limited the "),
        (late((85, 88), loader(70, 85, LIGHTNING)), "input data", "Input data limited the "),
        (late((85, 88), loader(70, 85, "## next_batch ##")), "input data", "Input data limited the "),
        (late((85, 88), loader(70, 85, "## wait_for_batch ##")), "host", "The host limited the "),
        # Other causes of idle time.
        (late((62, 88)), "host", ", 26.0 % during launch calls"),
        (late((40, 45)), "device_wait", "Idle time limited the "),
        (work(("gemm", 0, 60))[1:2] + work(("gemm", 90, 100))[1:2], "unknown", "for reasons not known"),
        # Launched when the first one ends, and picked up within 10 µs.
        (
            [*work(("gemm", 0, 20)), *launched(2, (1018, 1020), (1030, 1033))],
            "dispatch",
            "Starting launched work limited the ",
        ),
        (
            [*work(("gemm", 0, 20)), *launched(2, (1018, 1020), (1030, 1034))],
            "computation",
            "29.4 % idle (largest part: ",
        ),
        # Exposed communication and copies.
        (
            work(("gemm", 0, 70), ("ncclDevKernel_AllReduce", 70, 100)),
            "communication",
            "Communication limited the ",
        ),
        (work(("gemm", 0, 70), ("ncclDevKernel_AllReduce", 70, 99.9)), "computation", "communication alone"),
        (work(("gemm", 0, 70), ("Memcpy DtoH", 70, 100)), "copies", "Copies limited the "),
        (work(("gemm", 0, 70), ("Memcpy DtoH", 70, 99.9)), "computation", "Work on the device limited the "),
        # No part takes 30 %, but one takes more than computation.
        (
            work(("gemm", 0, 20), ("ncclDevKernel_AllReduce", 20, 48), ("Memcpy DtoH", 48, 73), ("gemm", 99, 100)),
            "communication",
            "21.0 % computation, 26.0 % idle",
        ),
    ],
)
def test_what_limited_a_device(events: Events, expected: str, words: str, tmp_path: Path) -> None:
    found = limit(tmp_path, events)
    assert found["numbers"]["limit"] == expected
    assert words in found["text"]
    assert found["section"] == "device"


def test_what_ran_while_the_host_was_late_has_its_share(tmp_path: Path) -> None:
    found = limit(tmp_path, late((85, 88), event("tokenize", 1062, 10)))
    assert ": 25.0 % while the host launched nothing, 3.0 % during launch calls; " in found["text"]
    late_for = "of the time in which the host launched nothing"
    assert found["text"].endswith(f"; for 60.0 % {late_for}, nothing is recorded on the launching thread.")
    assert (found["numbers"]["host_ran_ns"], found["numbers"]["host_late_ns"]) == (15_000, 25_000)
    found = limit(tmp_path, late((85, 88), event("tokenize", 1062, 16)))
    assert found["text"].endswith(f"64.0 % {late_for}, tokenize ran.")
    assert found["numbers"]["host_ran"] == "tokenize"


def test_a_slice_may_have_the_name_of_no_slice(tmp_path: Path) -> None:
    found = limit(tmp_path, late((85, 88), event(Unnamed.NOTHING_RAN.value, 1062, 16)))
    assert found["text"].endswith("for 64.0 % of the time in which the host launched nothing, (none recorded) ran.")
    events = [*work(("gemm", 0, 90)), event(Unnamed.NO_OPERATOR.value, 700.9, 0.7)]
    named = summary_of(tmp_path, events)[0]["operator"]
    assert named["text"].startswith("(no operator) launched the most device time: 90 µs in 1 of ")


@pytest.mark.parametrize(
    ("times", "place"),
    [
        ((0, 10, 60, 65, 115, 120), "in the middle"),  # half of the idle time is one gap, or less
        ((0, 10, 60, 65, 115.1, 120), "in the middle"),
        ((0, 10, 59.9, 65, 115, 120), "in the middle"),
        ((0, 10, 59.9, 65, 115, 115), ""),
        ((0, 1.2, 60, 61, 63, 120), "at the start"),
        ((0, 1.3, 60, 61, 63, 120), "in the middle"),
        ((0, 40, 42, 43, 118.8, 120), "at the end"),
        ((0, 0.5, 119.6, 119.7, 119.8, 120), "at the end"),  # near the start, too
        ((0, 40, 42, 43, 118.7, 120), "in the middle"),
    ],
)
def test_one_gap_is_told_apart(times: tuple[float, ...], place: str, tmp_path: Path) -> None:
    first, second, third = zip(times[::2], times[1::2], strict=True)
    events = work(("gemm", *first), ("gemm", *second), ("gemm", *third))
    if not place:  # two gaps of nearly half
        events = work(("gemm", 0, 1), ("gemm", 34, 35), ("gemm", 68, 69), ("gemm", 102, 103))
    found = limit(tmp_path, events)
    longest = max(second[0] - first[1], third[0] - second[1])
    idle = found["numbers"]["idle_ns"]
    assert (f"one gap {place} lasts " in found["text"]) is bool(place)
    assert found["numbers"].get("longest_gaps_ns") == (round(1000 * longest) if place else None)
    if place:
        assert f"{100_000 * longest / idle:.1f} % of the idle time (busy " in found["text"]


def test_limits_of_several_devices(tmp_path: Path) -> None:
    def on_second(events: Events) -> Events:
        changed = []
        for number, one in enumerate(events, 100):
            args = dict(one.get("args", {}))
            args |= {"correlation": args["correlation"] + 100} if "correlation" in args else {}
            if one["pid"] == 0:
                args |= {"device": 1} if "device" in args else {}
                one = one | {"pid": 1_000_001}
            changed.append(one | ({"args": args} if args else {}) | ({"id": number} if "id" in one else {}))
        return [one for one in changed if one["ph"] == "X"]

    same = work(("gemm", 0, 100))
    communicates = work(("gemm", 0, 70), ("ncclDevKernel_AllReduce", 70, 100))
    found, _ = summary_of(tmp_path, [*same, *on_second(communicates)])
    assert found["limits"]["text"] == (
        "The limit differs between devices: communication for GPU 1000001; work on the device for GPU 0."
    )
    assert found["limits"]["numbers"] == {"devices": {"computation": ["GPU 0"], "communication": ["GPU 1000001"]}}
    found, _ = summary_of(
        tmp_path, [*same, *on_second(work(("gemm", 0, 70.1), ("ncclDevKernel_AllReduce", 70.1, 100)))]
    )
    assert "limits" not in found


@pytest.mark.parametrize(("alone", "said"), [(10, True), (9.9, False)])
def test_work_without_an_operator_is_said(alone: float, said: bool, tmp_path: Path) -> None:
    launching = work(("gemm", 0, 90 - 40), ("add", 50, 100 - alone))
    unknown = work(("early", 100 - alone, 100))[1:2]
    events = [*launching, *unknown, event("aten::mm", 700.9, 0.7), event("aten::add", 701.9, 0.7)]
    unknown[0]["args"] = {"device": 0, "stream": 7, "correlation": 77}
    found, _ = summary_of(tmp_path, events)
    text = found["operator"]["text"]
    # 50 µs of aten::mm, 40 of aten::add: what no operator launched decides which one is first only if it is more.
    assert ("; for 10.0 % neither operator nor call is recorded." in text) is said
    assert ("no_call_ns" in found["operator"]["numbers"]) is said
    unknown = work(("early", 100, 115))[1:2]
    unknown[0]["args"] = {"device": 0, "stream": 7, "correlation": 77}
    found, _ = summary_of(tmp_path, [*events, *unknown])
    assert "neither operator nor call is recorded, more than its lead over aten::add." in found["operator"]["text"]


@pytest.mark.parametrize(("length", "said"), [(33.333, True), (33.334, False)])
def test_time_of_steps_without_an_operation(length: float, said: bool, tmp_path: Path) -> None:
    """Each step has 10 µs before and after its operation."""
    found, _ = summary_of(tmp_path, in_steps((length, length)))
    assert ("not_recorded" in found) is said
    if said:
        assert found["not_recorded"]["text"].startswith(
            "For 30.0 % of 66.7 µs (2 steps), nothing that the steps ran is recorded: 20 µs"
        )


@pytest.mark.parametrize(("length", "said"), [(30, True), (29.999, False)])
def test_communication_beside_the_thread_of_steps(length: float, said: bool, tmp_path: Path) -> None:
    """The thread of the steps runs an operation for 50 of 100 µs, and then waits for what another thread exchanges."""
    events = [event("ProfilerStep#1", 1000, 100, cat="user_annotation"), event("conv", 1000, 50)]
    gloo = event("gloo:all_reduce", 1050, length, tid=2, cat="user_annotation")
    found, _ = summary_of(tmp_path, [*events, gloo])
    assert ("communication" in found) is said
    assert "not_recorded" not in found
    if said:
        assert found["communication"]["numbers"] == {"span_ns": 100_000, "exposed_comm_ns": 30_000}
        assert found["communication"]["text"] == (
            "Communication took 30.0 % of 100 µs (1 step), while the steps ran no other operation: 30 µs."
        )
    found, _ = summary_of(tmp_path, [*events, gloo | {"pid": 9}])
    assert "communication" not in found, "another process is none of the step"


def test_samples_and_counts_alone() -> None:
    def found_in(*paths: str) -> dict[str, Any]:
        return {row["id"]: row for row in traceconv.report([ROOT / path for path in paths])[0].records()}

    (samples,) = found_in("perf-script/torch-convnet-process/input.txt").values()
    assert samples["numbers"]["samples"] == 36
    assert samples["text"].startswith("Samples of 166 ms are recorded, and no slices: 36")
    assert "; threads with most cpu-clock: 81 % threads seen by perf / python 26046, 19 % " in samples["text"]
    (counts,) = found_in("perf-stat/csv/input.csv").values()
    assert (counts["id"], counts["section"]) == ("counts", "run_ratios")
    assert counts["text"].startswith("Counts of the whole run")
    kineto, perf = "pytorch-kineto/torch-convnet-process/input.json", "perf-script/torch-convnet-process/input.txt"
    assert not {"samples", "counts"} & found_in(kineto, perf).keys()


@pytest.mark.parametrize(("total", "said"), [("801.70", True), ("331.00", True), ("330.00", False)])
def test_how_much_of_a_run_a_profile_of_tvm_holds(total: str, said: bool, tmp_path: Path) -> None:
    source = (ROOT / "tvm-profile" / "vm-text" / "input.txt").read_text()
    path = tmp_path / "report.txt"
    path.write_text(source.replace("801.70", total))
    found = {row["id"]: row for row in traceconv.report([path])[0].records()}
    assert ("part_of_run" in found) == said
    if said:
        assert found["part_of_run"]["numbers"] == {"recorded_ns": 297_730, "run_ns": int(float(total) * 1000)}
    if total == "801.70":
        assert found["part_of_run"]["text"].startswith("What is recorded takes 37.1 % of the 802 µs that report.txt")


def test_steps_are_what_limits_are_of(tmp_path: Path) -> None:
    """Before the first step the device is idle for long, which no step waits for."""
    steps = [event(f"ProfilerStep#{at}", 1000 + 50 * at, 50, cat="user_annotation") for at in range(2)]
    events = [*work(("gemm", -600, -590), ("gemm", 0, 100)), *steps]
    found = limit(tmp_path, events)
    assert (found["section"], found["numbers"]["limit"]) == ("step_parts", "computation")
    assert "busy 100.0 % of 100 µs (2 steps, 14.3 % of the recording)" in found["text"]
    found = limit(tmp_path, events[:-2])
    assert (found["section"], found["numbers"]["limit"], found["numbers"]["steps"]) == ("device", "device_wait", 0)


@pytest.mark.parametrize(
    ("between", "section", "words"),
    [
        ("", "step_parts", "busy 100.0 % of 100 µs (2 steps, 14.3 % of the recording)"),
        ("585us..700us", "step_parts", "busy 100.0 % of 100 µs (2 steps, 87.0 % of the window)"),
        ("595us..690us", "device", "busy 94.7 % of 95 µs;"),  # the second step ends later
    ],
)
def test_limits_are_of_steps_in_the_window(between: str, section: str, words: str, tmp_path: Path) -> None:
    steps = [event(f"ProfilerStep#{at}", 1000 + 50 * at, 50, cat="user_annotation") for at in range(2)]
    table = kineto(tmp_path / "a.json", [event("load", 400, 10), *work(("gemm", 0, 100)), *steps])
    found, _ = answers(table.trace, Aligned(), Questions(["summary"], between=between))
    assert (limit := found.records()[0])["section"] == section
    assert words in limit["text"]


def test_limits_are_of_all_devices(tmp_path: Path) -> None:
    """Only one of the ranks has marked its step."""
    own = {0: [event("ProfilerStep#1", 1000, 100, cat="user_annotation"), *work(("gemm", 0, 90))]}
    ranks = own | {1: work(("gemm", 0, 40), ("gemm", 90, 100))}
    found = traceconv.report(write(tmp_path, ranks))[0].records()[0]
    assert (found["section"], found["numbers"]["devices"]) == ("device", 2)


def test_devices_of_one_name_are_not_one(tmp_path: Path) -> None:
    def on(element: object, ts: float) -> dict[str, Any]:
        return event("Execution", ts, 40, cat="NPU", tid=element, args={"pe_index": 0})

    # an element with a number is of the NPU without a pid, the other one of the NPU with this pid
    events = [on(10_000_000, 0), on("x", 10), on(10_000_000, 60), on("x", 160)]
    (tmp_path / "a.json").write_text(json.dumps(events))
    found = traceconv.report(traceconv.read(tmp_path / "a.json", format="furiosa"))
    by_name = {section.name: section for section in found}
    assert [(row["device"], row["window_ns"]) for row in by_name["device"].records()] == [
        *(("NPU", 100_000), ("NPU (2)", 190_000))
    ]
    limited = by_name["summary"].records()[0]
    assert (limited["numbers"]["devices"], limited["numbers"]["idle_ns"]) == (2, 130_000)
    assert "the longest gaps of each last" in limited["text"]


def test_steps_without_work_leave_the_limit_to_the_whole_device(tmp_path: Path) -> None:
    steps = [event(f"ProfilerStep#{at}", 600 + 50 * at, 50, cat="user_annotation") for at in range(2)]
    found = limit(tmp_path, [*work(("gemm", 0, 100)), *steps])
    assert (found["section"], found["numbers"]["limit"]) == ("device", "computation")


def test_the_kernel_and_the_operator_with_the_most_device_time(tmp_path: Path) -> None:
    events = [*work(("gemm", 0, 50), ("add", 50, 80), ("add", 80, 100)), event("aten::mm", 700.9, 0.7)]
    found, unanswered = summary_of(tmp_path, [*events, event("aten::add", 701.9, 1.7)])
    kernel, operator = found["kernel"]["numbers"], found["operator"]["numbers"]
    assert (kernel["name"], kernel["total_ns"], kernel["kernel_share"], kernel["operator"]) == (
        "add",
        50_000,
        0.5,
        "aten::add",
    )
    assert (operator["name"], operator["device_ns"], operator["kernels"]) == ("aten::add", 50_000, 2)
    assert found["operator"]["text"].endswith("50 µs in 2 of the kernels and copies, 50.0 % of their time.")
    assert [question for question, _ in unanswered] == ["Which step was slow?"]
    found, unanswered = summary_of(tmp_path, [one for one in work(("Memcpy DtoD", 0, 9)) if one.get("pid") == 0])
    assert found["kernel"]["text"].startswith(
        "One kind of copy takes 100.0 % of the time of kernels and copies: Memcpy"
    )
    assert "operator" not in found
    assert ("Which operator launched the kernels?", "No launches inside of operators are recorded.") in unanswered


def test_launch_calls_are_no_operators(tmp_path: Path) -> None:
    """Calls outside of operators launch 60 % of the device time, or with an operator around one 40 %."""
    question = "Which operator launched the kernels?", "No launches inside of operators are recorded."
    events = work(("gemm", 0, 60), ("add", 60, 100))
    found, unanswered = summary_of(tmp_path, events)
    assert found["operator"]["text"] == (
        "Calls of cudaLaunchKernel outside of operators launched the most device time: 100 µs in 2 of the kernels and "
        "copies, 100.0 % of their time."
    )
    assert question in unanswered
    found, unanswered = summary_of(tmp_path, [*events, event("aten::add", 701.9, 1.7)])
    assert found["operator"]["text"].startswith("Calls of cudaLaunchKernel outside of operators")
    assert question not in unanswered
    found, _ = summary_of(tmp_path, [*events, event("aten::mm", 700.9, 0.7)])
    assert found["operator"]["text"].startswith("aten::mm launched the most device time: 60 µs")
    assert found["operator"]["text"].endswith("60.0 % of their time.")


def test_a_pattern_that_matches_no_step_leaves_a_question(tmp_path: Path) -> None:
    events = [event("stage", 0, 5), event("stage", 10, 5)]
    for pattern, why in (
        ("", "No input marks steps; if slices of the input are steps, name them: --step-name REGEX."),
        ("stag", "--step-name stag: no slice has a whole name that matches; there is stage."),
        ("stage", None),
    ):
        _, unanswered = summary_of(tmp_path, events, pattern)
        assert dict(unanswered).get("Which step was slow?") == why
    events += [event("conv", 6, 2)]
    trace = kineto(tmp_path / "a.json", events).trace
    _, section = answers(trace, Aligned(), Questions(["summary"], step_name="stage", between="5.5us..9us"))
    assert dict(section.rows)["Which step was slow?"] == "No step is left."  # type: ignore[arg-type]


@pytest.mark.parametrize(("seconds", "said"), [(("A", "B"), True), (("A", "A"), False)])
def test_the_kind_of_operations_with_most(seconds: tuple[str, str], said: bool, tmp_path: Path) -> None:
    """Of nodes of ONNX Runtime: one of another kind takes the most, all of two kinds or of one take more or as much."""
    nodes = [("a_kernel_time", "Conv", 30), *((f"{name}_kernel_time", "MatMul", 20) for name in seconds)]
    events = [
        {"cat": "Node", "ph": "X", "pid": 1, "tid": 1, "ts": at * 50, "dur": dur, "name": name}
        | {"args": {"op_name": kind, "provider": "CPUExecutionProvider"}}
        for at, (name, kind, dur) in enumerate(nodes)
    ]
    whole = {"cat": "Session", "ph": "X", "pid": 1, "tid": 1, "ts": 0, "dur": 160, "name": "model_run", "args": {}}
    path = tmp_path / "a.json"
    path.write_text(json.dumps([whole, *events]))
    found = {row["id"]: row for row in traceconv.report([path], Questions(["summary"]))[0].records()}
    assert ("kind" in found) is said
    if said:
        assert found["operation"]["numbers"]["name"] == "a"
        assert found["kind"]["text"] == (
            "Of the kinds of operations, MatMul takes the most: 25.0 % of the time of steps in 2 calls "
            "(--by arg:op_name)."
        )


def test_a_function_of_python_keeps_the_end_of_its_name(tmp_path: Path) -> None:
    found, _ = summary_of(tmp_path, [event(f"/{'folder/' * 20}module.py(12): call", 0, 5, cat="python_function")])
    assert "lder/folder/module.py(12): call takes 100.0 %" in found["operation"]["text"]


@pytest.mark.parametrize(("waited", "said"), [(30, True), (29.9, False)])
def test_a_thread_that_waits(waited: float, said: bool, tmp_path: Path) -> None:
    events = [event("conv", 1000, 70), event("cudaDeviceSynchronize", 1070, waited, cat="cuda_runtime")]
    found, unanswered = summary_of(tmp_path, events)
    assert ("wait" in found) is said
    assert found["operation"]["numbers"]["name"] == "conv"
    assert found["operation"]["text"].startswith("conv takes 100.0 % of the time of all operations: 70 µs of its own")
    assert ("Did a device limit the run?", "No work of a device is recorded.") in unanswered
    if said:
        assert found["wait"]["numbers"]["thread_share"] == LIMITING
        assert "waited 30.0 % of its recorded time in cudaDeviceSynchronize (30 µs)" in found["wait"]["text"]


def test_the_waits_of_a_thread_count_together(tmp_path: Path) -> None:
    waits = [
        event(name, 1060 + 20 * at, 20, cat="cuda_runtime")
        for at, name in enumerate(("cudaDeviceSynchronize", "cudaStreamSynchronize"))
    ]
    found, _ = summary_of(tmp_path, [event("conv", 1000, 60), *waits])
    assert "waited 40.0 % of its recorded time, most of it in cuda" in found["wait"]["text"]
    assert found["wait"]["numbers"]["waited_ns"] == 40_000
    found, _ = summary_of(tmp_path, [event("conv", 1000, 60), *waits, waits[1] | {"ts": 1070}])
    assert found["wait"]["numbers"]["waited_ns"] == 40_000, "an instant counts once in which two wait, on lanes"


def in_steps(lengths: Sequence[float], name: str = "ProfilerStep#{}") -> Events:
    events = []
    for at, length in enumerate(lengths):
        start = 1000 + 200 * at
        events += [event(name.format(at), start, length, cat="user_annotation"), event("conv", start + 1, length - 10)]
    return events


def test_overhead_of_the_profiler_is_no_work(tmp_path: Path) -> None:
    overhead = [event("Activity Buffer Request", at, 80, cat="overhead") for at in (1005, 1205, 1405)]
    found, _ = summary_of(tmp_path, [*in_steps((100, 100, 100)), *overhead])
    assert found["operation"]["text"].startswith("conv takes 10.0 % of the time of steps: 30 µs")


def test_a_slow_step_and_what_made_it_slow(tmp_path: Path) -> None:
    found, unanswered = summary_of(tmp_path, in_steps((100, 100, 125, 100, 100)))
    slow = found["slow_step"]
    assert (
        slow["text"]
        == "ProfilerStep#2 took 125 µs, 25 µs more than the median step (ProfilerStep#3); 25 µs longer: conv."
    )
    assert slow["numbers"]["difference_ns"] == 25_000
    assert "steps" not in found
    assert not [question for question, _ in unanswered if "step" in question]
    found, _ = summary_of(tmp_path, in_steps((100, 100, 124.9, 100, 100)))
    assert "slow_step" not in found
    assert found["steps"]["text"] == "5 steps took 100 µs each (median); the slowest one 125 µs."
    found, _ = summary_of(tmp_path, in_steps((100, 200)))
    assert not {"slow_step", "steps"} & found.keys(), "two steps have no median"


def test_a_step_in_which_nothing_begins_is_slow(tmp_path: Path) -> None:
    """A thread beside that of the steps runs one slice from before the first step until after the last one."""
    starts, lengths = (1000, 1100, 1200, 1350), (100, 100, 150, 100)
    steps = [
        event(f"ProfilerStep#{number}", *times, cat="user_annotation")
        for number, times in enumerate(zip(starts, lengths, strict=True))
    ]
    found, _ = summary_of(tmp_path, [*steps, event("worker", 900, 1000, tid=2)])
    assert found["slow_step"]["text"].endswith("(ProfilerStep#1); 50 µs longer: (in parallel).")


def test_a_step_that_many_names_made_slow_names_none(tmp_path: Path) -> None:
    """Ten names are shorter by 5 µs each, and sixty longer by 4 µs each: the ten differ most."""
    events, at = [], 1000.0
    for step in range(3):
        lengths = [(f"short{name}", 5.0 if step == 2 else 10.0) for name in range(10)]
        lengths += [(f"long{name}", 8.0 if step == 2 else 4.0) for name in range(60)]
        events.append(event(f"ProfilerStep#{step}", at, sum(length for _, length in lengths), cat="user_annotation"))
        for name, length in lengths:
            events.append(event(name, at, length))
            at += length
    found, _ = summary_of(tmp_path, events)
    assert found["slow_step"]["text"].endswith(
        "190 µs more than the median step (ProfilerStep#1); each of many names was a little longer."
    )


def test_differences_beside_the_largest_are_said(tmp_path: Path) -> None:
    events = in_steps((100, 100, 160, 100))
    found, _ = summary_of(tmp_path, [*events, event("relu", 1402 + 120, 20)])
    assert found["slow_step"]["text"].endswith("; 40 µs longer: conv; others 20 µs longer.")


@pytest.mark.parametrize(
    ("name", "length", "said"),
    [
        ("gemm", 75, "50 µs longer: computation on GPU 0, with gemm 50 µs longer."),
        ("gemm2", 75, "50 µs longer: computation on GPU 0, with gemm2 75 µs longer and others 25 µs shorter."),
        (
            "ncclDevKernel_AllReduce",
            50,
            "25 µs longer: communication on GPU 0, with ncclDevKernel_AllReduce 25 µs longer; others 25 µs longer.",
        ),
        ("gemm", 49.9, "50 µs longer: conv."),
    ],
)
def test_the_device_work_that_made_a_step_slow(name: str, length: float, said: str, tmp_path: Path) -> None:
    """The slow step takes 50 µs more; half of it or less is the kernel."""
    events = in_steps((100, 150, 100))
    for at in range(3):
        kernels = launched(
            at, (1002 + 200 * at, 1003 + 200 * at), (1010 + 200 * at, 1010 + 200 * at + (length if at == 1 else 25))
        )
        kernels[1]["name"] = "gemm" if name == "gemm2" and at != 1 else name
        events += kernels
    found, _ = summary_of(tmp_path, events)
    assert found["slow_step"]["text"].endswith(f"; {said}")
    assert found["slow_step"]["section"] == ("step_differences" if "conv" in said else "step_kernels")


@pytest.mark.parametrize(("length", "said"), [(298, True), (300, False)])
def test_what_hosts_ran_where_devices_had_little_work(length: float, said: bool, tmp_path: Path) -> None:
    """The device has work for so long, 299 µs after its launch: in less than half of the recording, or in more."""
    found, _ = summary_of(tmp_path, [event("cudaFree", 710, 100, cat="cuda_runtime"), *work(("gemm", 0, length))])
    assert ("host" in found) is said
    if said:
        assert found["host"]["text"].startswith("The work of devices spans 49.9 % of the recording.")
        assert "Hosts ran cudaFree the longest" in found["host"]["text"]


def test_work_of_earlier_steps_makes_no_step_slow(tmp_path: Path) -> None:
    """Each step launches 100 µs of work in 60 µs; in the last one, the host waits for what is left of it all."""
    events = []
    for at in range(4):
        begin = 1000 + 60 * at
        events.append(event(f"ProfilerStep#{at}", begin, 60 if at < 3 else 240, cat="user_annotation"))
        events += launched(at, (begin + 2, begin + 7), (1010 + 100 * at, 1110 + 100 * at))
        events[-3]["name"] = "gemm"
    events.append(event("cudaDeviceSynchronize", 1190, 225, cat="cuda_runtime"))
    found, _ = summary_of(tmp_path, events)
    assert "longer: cudaDeviceSynchronize" in found["slow_step"]["text"]
    rows = traceconv.report([tmp_path / "a.json"], Questions(["step_kernels"]))
    (kernels,) = (section.records() for section in rows if section.name == "step_kernels")
    assert {(row["name"], row["launched_difference_ns"]) for row in kernels} == {("gemm", 0), ("(idle)", None)}


def test_the_rank_of_a_slow_step_is_said(tmp_path: Path) -> None:
    found = traceconv.report(write(tmp_path, {0: in_steps((100, 100, 100)), 1: in_steps((100, 150, 100))}))
    slow = {row["id"]: row for row in found[0].records()}["slow_step"]
    assert slow["text"].startswith("ProfilerStep#1 of rank 1 took 150 µs, ")
    assert slow["numbers"]["input"] == "rank1.json"


def test_steps_of_two_tracks_have_two_medians(tmp_path: Path) -> None:
    events = [event(f"ProfilerStep#{at}", 1000 + 100 * at, 100, cat="user_annotation") for at in range(3)]
    events += [event(f"ProfilerStep#{at}", 1000 + 900 * at, 900, cat="user_annotation", tid=2) for at in range(3)]
    found, _ = summary_of(tmp_path, events)
    assert found["steps"]["text"] == (
        "3 steps of each of 2 tracks took 100 µs to 900 µs (medians of the tracks); the slowest one 900 µs "
        "(ProfilerStep#0 of process 1 / thread 2)."
    )


def test_one_step_of_each_of_several_tracks_has_no_median(tmp_path: Path) -> None:
    ranks = [event("ProfilerStep#7", 1000, 100 + 10 * at, cat="user_annotation", pid=at) for at in range(1, 4)]
    found, _ = summary_of(tmp_path, ranks)
    assert found["steps"]["text"] == "1 step of each of 3 tracks took 110 µs to 130 µs."


@pytest.mark.parametrize(("before", "said"), [(11.12, True), (11.11, False)])
def test_steps_that_cover_less_than_most_of_a_recording(before: float, said: bool, tmp_path: Path) -> None:
    """The step lasts 100 µs; nine tenths of the recording are its."""
    step = event("ProfilerStep#1", 700, 400, cat="user_annotation")
    found = limit(tmp_path, [*work(("gemm", 0, 100)), step, event("import", 700 - 4 * before, 1)])
    assert found["text"].startswith(f"Idle time limited the {'steps' if said else 'run'}: ")
    assert ("(1 step, 90.0 % of the recording)" in found["text"]) is said
    assert ("steps_share" in found["numbers"]) is said


@pytest.mark.parametrize(("length", "said"), [(97.7, ""), (97.8, "90.0 %"), (1_000_000, "less than 0.1 %")])
def test_a_device_with_work_in_less_than_most_of_a_recording(length: float, said: str, tmp_path: Path) -> None:
    """It has work for 88 µs."""
    found = limit(tmp_path, [*launched(1, (1000, 1001), (1002, 1090)), event("aten::mm", 1000, length)])
    what = "time from the first to the last work" if said else "run"
    assert found["text"].startswith(f"Work on the device limited the {what}: ")
    assert (f"of 88 µs ({said} of the recording)" in found["text"]) is bool(said)
    assert ("window_share" in found["numbers"]) is bool(said)


def test_steps_of_one_name_are_counted(tmp_path: Path) -> None:
    found, _ = summary_of(tmp_path, in_steps((100, 100, 100), "run"), "run")
    assert found["steps"]["numbers"]["steps"] == 3
    found, _ = summary_of(tmp_path, in_steps((100, 150, 100, 130, 100), "run"), "run")
    assert (found["slow_step"]["numbers"]["span_ns"], found["slow_step"]["numbers"]["slower_by_ns"]) == (
        150_000,
        50_000,
    )


@pytest.mark.parametrize(("others", "said"), [(2, True), (4, False)])
def test_a_rank_that_the_others_wait_for(others: int, said: bool, tmp_path: Path) -> None:
    """Each rank comes last to one collective: with two it caused half of the waiting, with four a quarter."""
    members = str(list(range(others)))
    ranks = {
        rank: [
            collective(
                number * MS + (400 * US if number == rank else 0),
                (100 if number == rank else 500) * US,
                number,
                members,
            )
            for number in range(others)
        ]
        for rank in range(others)
    }
    sections = traceconv.report(write(tmp_path, ranks, others))
    found = {row["id"]: row for row in sections[0].records()}
    shares = [row["caused_share"] for row in next(one for one in sections if one.name == "ranks").records()]
    assert shares == pytest.approx([1 / others] * others)
    assert ("late_rank" in found) is said
    assert "Which rank did the others wait for?" not in dict(sections[1].rows)
    if said:
        assert (
            "caused 50.0 % of the waiting in collectives: the others waited 400 µs for it."
            in found["late_rank"]["text"]
        )
        assert found["late_rank"]["text"].endswith(" Rank 1 caused 50.0 %.")


@pytest.mark.parametrize(
    ("count", "begins", "said"), [(2, 300, True), (2, 100, False), (9, 300, True), (9, 100, False)]
)
def test_a_rank_whose_recording_begins_late(count: int, begins: int, said: bool, tmp_path: Path) -> None:
    """All run nothing before the collective, and rank 1 comes 400 µs later, since it began later or not."""
    members = str(list(range(count)))
    ranks = {
        rank: [
            kernel((begins if rank == 1 else 0) * US, 10 * US, "gemm"),
            collective((900 if rank == 1 else 500) * US, (100 if rank == 1 else 500) * US, 1, members),
        ]
        for rank in range(count)
    }
    sections = traceconv.report(write(tmp_path, ranks, count))
    (late,) = (row for row in sections[0].records() if row["id"] == "late_rank")
    assert late["text"].startswith("Rank 1 caused 100.0 % of the waiting")
    assert late["text"].endswith(f" Its recording begins {begins} µs later than theirs.") is said
    causes = next(one for one in sections if one.name == "late_causes").records()
    assert {row["name"]: row["time_ns"] for row in causes}[Unnamed.NOT_BEGUN] == begins * US
    assert sum(row["extra_ns"] for row in causes) == 400 * US


@pytest.mark.parametrize(("later", "said"), [(500, False), (1000, True)])
def test_recordings_that_follow_one_another_may_be_runs(later: int, said: bool, tmp_path: Path) -> None:
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    for path, begins in zip(paths, (0, later), strict=True):
        event = {"ph": "X", "pid": 1, "tid": 1, "name": "work", "ts": 1_790_000_000_000_000 + begins, "dur": 1000}
        path.write_text(json.dumps({"traceEvents": [event]}))
    found = {row["id"]: row for row in traceconv.report(paths)[0].records()}
    assert ("runs" in found) is said
    if said:
        assert found["runs"]["text"].startswith("The 2 recordings follow one another")
        assert (found["runs"]["section"], found["runs"]["numbers"]) == ("overview", {"recordings": 2})


def test_without_launches_idle_time_has_no_cause(tmp_path: Path) -> None:
    alone = [one for one in work(("gemm", 0, 60), ("gemm", 90, 100)) if one.get("pid") == 0 and one["ph"] == "X"]
    _, unanswered = summary_of(tmp_path, alone)
    assert (
        "Why was the device idle?",
        "No launch of the device work is known, so idle time has no cause.",
    ) in unanswered
    early = [one for one in late((85, 88)) if one["name"] != "kernel 2"]
    assert "Why was the device idle?" not in [question for question, _ in summary_of(tmp_path, early)[1]]
    later = summary_of(tmp_path, [*work(("gemm", 0, 60)), *launched(2, (1092, 1093), (1090, 1100))])[1]
    why = "No recorded launch explains 100.0 % of the idle time; 1 of 2 launched kernels and copies start before their "
    assert ("Why was the device idle?", f"{why}launch.") in later


def test_the_summary_is_of_all_whatever_is_chosen() -> None:
    trace = traceconv.read(ROOT / "pytorch-kineto" / "cuda-graph" / "input.json")
    plain, *_ = answers(trace, Aligned(), Questions())
    for asked in (Questions(["summary"]), Questions(where="name~sum"), Questions(by=["category"], sort="count")):
        found, *_ = answers(trace, Aligned(), asked)
        assert found.rows == plain.rows
    within, *_ = answers(trace, Aligned(), Questions(between="ProfilerStep#3"))
    assert within.records()[0]["numbers"]["steps"] == 1


def test_the_forms_of_a_summary(tmp_path: Path) -> None:
    sections = traceconv.report([ROOT / "pytorch-kineto" / "cuda-graph" / "input.json"])
    summary = sections[0]
    assert summary.name == "summary"
    assert 2 <= len(summary.rows) <= 8
    sentences = [f"{row['text']} ({row['section']})" for row in summary.records()]
    shown = text([summary], 0)
    assert all(f"  {one}\n" in shown for one in sentences)
    assert markdown([summary], 0).count("\n- ") == len(sentences) + len(summary.notes)
    document = json.loads(as_json(sections, 0))
    jsonschema.validate(document, SCHEMA)
    assert document["summary"] == summary.records()
    assert isinstance(document["summary"][0]["numbers"], dict)
    names = {section.name for section in sections}
    assert {row["section"] for row in summary.records()} <= names
    assert summary.to_pandas()["text"].tolist() == [row["text"] for row in summary.records()]


@pytest.mark.parametrize("case", sorted(path.parent.name for path in (ROOT / "pytorch-kineto").glob("*/input.json")))
def test_sentences_of_recordings_repeat_numbers_of_their_tables(case: str) -> None:
    sections = traceconv.report([ROOT / "pytorch-kineto" / case / "input.json"])
    tables: dict[str, Section] = {section.name: section for section in sections}
    for row in tables["summary"].records():
        assert row["section"] in tables
        assert tables[row["section"]].rows, row["id"]
        assert row["text"].endswith(".")
        numbers = row["numbers"]
        if row["id"] == "kernel":
            assert any(numbers.items() <= of_kernel.items() for of_kernel in tables["kernels"].records())
        elif row["id"] in ("operator", "operation"):
            same = {key: value for key, value in numbers.items() if key not in ("of", "no_call_ns")}
            assert any(same.items() <= of_name.items() for of_name in tables["operations"].records())
        elif row["id"] == "limit":
            assert numbers["busy_ns"] + numbers["idle_ns"] == numbers["window_ns"]

"""The sections of a report, against sums by hand and by brute force."""

from __future__ import annotations

import gzip
import importlib
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from msgspec.structs import astuple

from tests.golden import ROOT
from tests.make_nsight import MAIN0, MAIN1, RANK0, RANK1, Strings, build, call, kernel
from traceconv import cli
from traceconv.align.inputs import Policy
from traceconv.align.receipt import Aligned
from traceconv.answers import SECTION_OF, SECTIONS, Questions, answers
from traceconv.answers.attribution import launch_rows
from traceconv.answers.device_time import device
from traceconv.answers.operations import operations, waits
from traceconv.answers.render import page, text
from traceconv.answers.section import Column, Section, Unit, shown_cell
from traceconv.answers.slice_tables import SliceTable
from traceconv.answers.steps import NOT_RECORDED, steps
from traceconv.api import convert, merge, read, report
from traceconv.errors import InputError, UsageError
from traceconv.io.shown import shortened, shortened_column, told_apart
from traceconv.model import columns
from traceconv.model.trace import take

CUDA = ROOT / "pytorch-kineto" / "cuda-streams" / "input.json"
DISPATCH_NS, MS = 10_000, 10**6
Events = list[dict[str, Any]]
KINETO = {"schemaVersion": 1, "deviceProperties": [], "displayTimeUnit": "ms"}


def kineto(path: Path, events: list[dict[str, Any]]) -> SliceTable:
    path.write_text(json.dumps(KINETO | {"traceEvents": events}))
    return SliceTable(read(path, format="pytorch-kineto"))


def event(name: str, ts: float, dur: float, **more: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur} | more


def launched(number: int, call: tuple[float, float], work: tuple[float, float], **more: Any) -> list[dict[str, Any]]:
    """A call that launches work on a stream of a device, and the flow between; times in µs, as from and to."""
    at = {"correlation": number}
    device = {"cat": "kernel", "pid": 0, "tid": 7, "args": {"device": 0, "stream": 7} | at} | more
    found = [
        event("cudaLaunchKernel", call[0], call[1] - call[0], cat="cuda_runtime", args=at),
        event(f"kernel {number}", work[0], work[1] - work[0], **device),
    ]
    flow = {"id": number, "cat": "ac2g", "name": "ac2g"}
    found.append(flow | {"ph": "s", "pid": 1, "tid": 1, "ts": call[0]})
    found.append(flow | {"ph": "f", "bp": "e", "pid": device["pid"], "tid": device["tid"], "ts": work[0]})
    return found


def only(section: Section, **wanted: Any) -> dict[str, Any]:
    (row,) = [row for row in section.records() if all(row[key] == value for key, value in wanted.items())]
    return row


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_chunks_of_rows_change_nothing(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Questions(by=("name", "shape", "arg:stream"), where="args.correlation>3 or name~.")
    whole = answers(read(CUDA), Aligned(), asked)
    trace = read(CUDA)
    monkeypatch.setattr(columns, "_CHUNK", rows)
    assert answers(trace, Aligned(), asked) == whole


def test_calls_of_the_system_wait_in_all_formats(tmp_path: Path) -> None:
    """Others are calls of Nsight Systems, and may be functions of the program elsewhere."""
    names = [
        "futex",
        "pthread_cond_wait",
        "epoll_wait",
        "KernelAndDeviceFunc::Run",
        "zeEventHostSynchronize",
        "urQueueFinish",
        "poll",
        "select",
        "sleep",
        "futexes",
    ]
    events = [
        {"ph": "X", "name": name, "ts": at, "dur": 1, "pid": 1, "tid": 1, "args": {}} for at, name in enumerate(names)
    ]
    (tmp_path / "a.json").write_text(json.dumps(events))
    found = [
        {row["name"] for row in report([tmp_path / "a.json"], Questions([name]))[0].records()}
        for name in ("waits", "operations")
    ]
    assert found == [set(names[:6]), set(names[6:])]


def test_synchronization_waits_and_states_of_threads_are_no_work() -> None:
    """Of Nsight Systems and nvprof: what a stream or context waits for, and whether a thread has a CPU."""
    for case, names in (
        ("nsight-systems/session/input.sqlite", {"Stream sync", "Context sync"}),
        ("nsight-systems/h100_2023/input.sqlite", {"Synchronization"}),
        ("nvprof/streams-and-ranges/input.nvvp", {"context synchronize"}),
    ):
        worked, waiting = answers(read(ROOT / case), Aligned(), Questions(["waits", "operations"]))
        assert {row["name"] for row in waiting.records()} >= names
        assert not {row["name"] for row in worked.records()} & {*names, "Running", "Interruptible"}


@pytest.mark.parametrize(
    "sort",
    [
        "name",
        "thread",
        "device",
        "kernels",
        "count",
        "total",
        "self_ns",
        "mean",
        "p50_ns",
        "max",
        "of host",
        "of steps",
    ],
)
def test_operations_are_sorted_by_any_column(sort: str) -> None:
    table = SliceTable(read(CUDA))
    section = operations(table, ("name", "thread"), sort)
    (at,) = [number for number, column in enumerate(section.columns) if sort in (column.name, column.title)]
    cells = [row[at] or 0 if section.columns[at].unit is not Unit.TEXT else row[at] for row in section.rows]
    assert cells == sorted(cells, reverse=not isinstance(cells[0], str))  # type: ignore[type-var]
    assert set(section.rows) == set(operations(table, ("name", "thread")).rows)


def test_operations_add_up(tmp_path: Path) -> None:
    table = kineto(
        tmp_path / "a.json",
        [
            event("outer", 0, 10),
            event("again", 1, 8),
            event("again", 2, 4),
            event("leaf", 3, 1),
            event("outer", 20, 30),
            event("leaf", 60, 0.001),
        ],
    )
    section = operations(table)
    assert [row["name"] for row in section.records()] == ["outer", "again", "leaf"]
    row = only(section, name="again")
    assert (row["count"], row["total_ns"], row["self_ns"], row["mean_ns"]) == (2, 8000, 7000, 6000)
    assert (row["p50_ns"], row["p99_ns"], row["max_ns"]) == (4000, 8000, 8000)
    assert only(section, name="leaf")["mean_ns"] == 500  # of 1,001 ns: rounded half to even
    assert sum(row["host_share"] for row in section.records()) == pytest.approx(1)
    assert [row["count"] for row in operations(table, ("category", "thread")).records()] == [6]


def test_times_of_operations_leave_out_slices_without_a_recorded_duration(tmp_path: Path) -> None:
    unfinished = {"args": {"unfinished": True}}
    section = operations(
        kineto(
            tmp_path / "a.json",
            [
                event("send", 0, 100, **unfinished),
                event("send", 10, 6),
                event("send", 20, 2),
                event("wait", 200, 50, **unfinished),
                event("said", 300, 4, args={"text": "unfinished", "unfinished": False, "deep": {"unfinished": True}}),
            ],
        )
    )
    row = only(section, name="send")
    assert (row["count"], row["no_duration"], row["total_ns"], row["self_ns"]) == (3, 1, 8_000, 8_000)
    assert (row["mean_ns"], row["p50_ns"], row["max_ns"]) == (4_000, 2_000, 6_000)
    row = only(section, name="wait")
    assert (row["count"], row["no_duration"]) == (1, 1)
    assert {value for key, value in row.items() if key.endswith(("_ns", "_share"))} == {None}
    assert only(section, name="said")["total_ns"] == 4_000
    assert sum(row["host_share"] or 0 for row in section.records()) == pytest.approx(1)
    assert "times leave out 2 slices whose duration was not recorded" in section.notes


def test_each_call_of_a_slice_that_sums_up_several_is_counted(tmp_path: Path) -> None:
    path = ROOT / "tvm-profile" / "vm-text" / "input.txt"
    convert(path, tmp_path / "again.pftrace")
    for trace in (read(path), read(tmp_path / "again.pftrace")):
        section = operations(SliceTable(trace))
        row = only(section, name="VM::AllocStorage")
        assert (row["count"], row["total_ns"], row["mean_ns"]) == (8, 37_430, 4_679)
        assert (row["p50_ns"], row["p99_ns"], row["max_ns"]) == (None, None, None)
        row = only(section, name="VM::AllocTensor")  # rows of the table with 2, 3, 1, 1 and 1 calls
        assert (row["count"], row["total_ns"], row["mean_ns"], row["p50_ns"]) == (8, 50_400, 6_300, None)
        row = only(section, name="vm_mod_fused_nn_softmax")
        assert (row["count"], row["mean_ns"], row["p50_ns"], row["max_ns"]) == (1, 4_400, 4_400, 4_400)
        assert sum(row["count"] for row in section.records()) == 40  # of the row Sum
        assert any(
            note.startswith("count is the number of calls; 4 slices with several calls") for note in section.notes
        )
        row = only(operations(SliceTable(trace), ("category",)))
        assert (row["count"], row["mean_ns"], row["max_ns"]) == (40, 7_443, None)


def test_layers_count_each_call_of_a_slice_that_sums_up_several(tmp_path: Path) -> None:
    text = (ROOT / "tvm-profile" / "counters-and-locale" / "input.log").read_text()
    (tmp_path / "a.log").write_text(text.replace("cuda0      1    float32[1, 4]  ", "cuda0      3    float32[1, 4]  "))
    (section,) = (one for one in answers(read(tmp_path / "a.log"), Aligned(), Questions(("layers",))) if one.rows)
    assert only(section, name="fused_conv")["calls"] == 3
    assert only(section, name="fused_in")["calls"] == 1


def test_the_number_of_lines_of_a_log_is_no_duration(tmp_path: Path) -> None:
    (path,) = (ROOT / "deepsparse" / "v030-mix-stdout").glob("input.*")
    convert(path, tmp_path / "own.pftrace")
    for section in (operations(SliceTable(read(path))), operations(SliceTable(read(tmp_path / "own.pftrace")))):
        timed = {row["name"] for row in section.records() if row["count"] > row["no_duration"]}
        assert timed == {"compute_func"}


def test_operations_by_an_arg(tmp_path: Path) -> None:
    events = [event("conv", at, 1, args={"Input Dims": [[1, at % 20]], "text": "x"}) for at in (0, 10, 20)]
    table = kineto(tmp_path / "a.json", [*events, event("other", 30, 1)])
    found = {row["arg:Input Dims"]: row["count"] for row in operations(table, ("arg:Input Dims",)).records()}
    assert found == {"[[1,0]]": 2, "[[1,10]]": 1, "": 1}
    with pytest.raises(UsageError, match="'nmae' is not a key"):
        operations(table, ("nmae",))


@pytest.mark.parametrize(
    ("case", "name", "shape"),
    [
        (
            "tvm-profile/graph-csv",
            "tvmgen_default_fused_split_sigmoid_tanh_concatenate_layout_transform",
            "float32[1, ",
        ),
        ("onednn-verbose/torch-convnet-process", "convolution", "mb8_ic3oc16_ih32"),
        ("pytorch-kineto/torch-convnet-process", "aten::convolution_backward", "[[8,32,12,12],[8,16,14,14],"),
    ],
)
def test_operations_by_shape(case: str, name: str, shape: str, tmp_path: Path) -> None:
    (path,) = (ROOT / case).glob("input.*")
    rows = operations(SliceTable(read(path)), ("name", "shape")).records()
    assert any(row["name"].startswith(name) and row["shape"].startswith(shape) for row in rows)
    convert(path, tmp_path / "own.pftrace")
    own = operations(SliceTable(read(tmp_path / "own.pftrace")), ("name", "shape")).records()
    assert [row["self_ns"] for row in own] == [row["self_ns"] for row in rows]


ABSENT = [("rank", "a rank"), ("arg:x", "the arg x")]


def test_formats_without_shapes_are_said_to_have_none() -> None:
    section = operations(SliceTable(read(ROOT / "mxnet" / "copies" / "input.json")), ("shape",))
    assert "--by shape: no slice here has a shape" in section.notes
    assert section.shown(section.rows[-1], 0) == "(no shape)"
    section = operations(SliceTable(read(ROOT / "mxnet" / "copies" / "input.json")), ("name", "rank", "arg:x"))
    said = [note for note in section.notes if note.startswith("--by")]
    assert said == [f"--by {key}: no slice here has {words}" for key, words in ABSENT]
    ranked = operations(SliceTable(read(ROOT / "pytorch-kineto" / "gloo-rank0" / "input.json")), ("rank",))
    assert not any(note.startswith("--by") for note in ranked.notes)


@pytest.mark.parametrize(
    ("case", "words", "of_calls", "alone"),
    [
        ("deepsparse/v180-analysis/input.json", "means of several calls: 7 slices", 7, 0),
        ("tensorrt/profile/input.json", "means of several calls: 3 slices", 3, 0),
        ("tvm-debugger/two-ranks/input.log", "means of several calls: 15 slices", 15, 0),
        ("tvm-execution-trace/alone/input.json", "means of several calls: 7 slices", 7, 0),
        ("vtune/call_tree/input.csv", "sums of several calls: 7 slices", 7, 0),
        ("tvm-debugger/start-and-end-times/input.log", "", 0, 8),
    ],
)
def test_means_and_sums_have_no_percentiles(case: str, words: str, of_calls: int, alone: int, tmp_path: Path) -> None:
    """Nodes of TVM with two times were timed one by one."""
    convert(ROOT / case, tmp_path / "a.pftrace")
    for path in (ROOT / case, tmp_path / "a.pftrace"):
        section = operations(SliceTable(read(path)))
        assert [note.split(";")[0] for note in section.notes if "of several calls" in note] == [words] * bool(words)
        rows = section.records()
        several = [row for row in rows if row["max_ns"] is None]
        assert len(rows) - len(several) == alone
        assert {(row["p50_ns"], row["p99_ns"]) for row in several} == ({(None, None)} if several else set())
        is_sum = words.startswith("sums")
        assert all((row["count"] is None) == (row["mean_ns"] is None) == is_sum for row in several)
        assert is_sum or sum(row["count"] for row in several) == of_calls


def test_what_a_format_does_not_tell_apart_is_not_zero(tmp_path: Path) -> None:
    """Executions of Furiosa's NPU are one piece: what of them copies or communicates is not known."""
    path = ROOT / "furiosa" / "two-queries" / "input.json"
    convert(path, tmp_path / "a.pftrace")
    keys = ("exposed_comm_ns", "exposed_copy_ns", "comm_ns")
    for one in (path, tmp_path / "a.pftrace"):
        rows = device(SliceTable(read(one)))[0].records()
        assert {tuple(row[key] for key in keys) for row in rows} == {(None, None, None)}
        assert all(row["compute_ns"] + row["idle_ns"] == row["window_ns"] for row in rows)
    rows = device(SliceTable(read(CUDA)))[0].records()
    assert all(rows[0][key] is not None for key in keys)


def test_times_of_synthetic_positions_are_empty() -> None:
    """A log of OpenVINO has warnings without times; a report of TVM has rows on two clocks, counted once."""
    logs, overview = report([ROOT / "openvino" / "log" / "input.txt"], Questions(["overview", "logs"]))
    (row,) = overview.records()
    assert (row["start_ns"], row["span_ns"], row["bound_ns"], row["slices"]) == (None, None, None, 3)
    assert row["method"] == "no times in the file: positions are synthetic"
    assert [row["first_ns"] for row in logs.records()] == [None, None]
    assert "an empty time: the input states none" in logs.notes
    (overview,) = report([ROOT / "nsight-compute" / "no_kernels" / "input.csv"], Questions(["overview"]))
    assert [row["method"] for row in overview.records()] == ["nothing to place"]
    (overview,) = report([ROOT / "tvm-profile" / "graph-text" / "input.txt"], Questions(["overview"]))
    assert [(row["tracks"], row["slices"], row["lost"]) for row in overview.records()] == [(3, 8, 0), (None,) * 3]


def test_steps_are_timed_and_outliers_explained(tmp_path: Path) -> None:
    events = []
    for number in range(8):
        slow = 9 if number == 5 else 0
        events.append(event(f"ProfilerStep#{number}", number * 30, 20 + slow, cat="user_annotation"))
        events.append(event("load", number * 30 + 1, 5))
        events.append(event("conv", number * 30 + 8, 6 + slow))
    section, times = steps(kineto(tmp_path / "a.json", events))
    assert [row["step"] for row in section.records()] == [f"ProfilerStep#{number}" for number in range(8)]
    assert [row["interval_ns"] for row in section.records()] == [30_000] * 7 + [None]
    row = only(section, state="outlier")
    assert (row["step"], row["duration_ns"]) == ("ProfilerStep#5", 29_000)
    assert (row["slower_operation"], row["slower_by_ns"]) == ("conv", 9000)
    assert times.rows[0][1:] == (8, 8, 20_000, 29_000, 29_000, 29_000, "a.json")
    named, *_ = steps(structs.replace(kineto(tmp_path / "b.json", events), step_name="conv"))
    assert len(named.rows) == 8
    (one,) = steps(
        structs.replace(kineto(tmp_path / "c.json", events), step_name="ProfilerStep#5")
    )  # one step has no percentiles
    assert one.notes == []
    with pytest.raises(UsageError, match="--step-name"):
        steps(structs.replace(kineto(tmp_path / "b.json", events), step_name="("))


@pytest.mark.parametrize("case", ["nsight-systems/session", "nvprof/unified-memory", "pytorch-kineto/cuda-streams"])
def test_overhead_that_cupti_states_is_no_operation(case: str) -> None:
    (path,) = (ROOT / case).glob("input.*")
    trace = read(path)
    slices = trace.slices
    stated = {trace.strings[name] for name in slices.name[slices.category == trace.strings.index("overhead")]}
    assert stated
    assert stated.isdisjoint(row["name"] for row in operations(SliceTable(trace)).records())


def test_a_step_that_is_recorded_twice_is_one(tmp_path: Path) -> None:
    events = [event(f"ProfilerStep#{at}", 30 * at, 20, cat="user_annotation") for at in range(3)]
    events += [event("conv", 30 * at + 1, 9) for at in range(3)]
    one_repeats = steps(kineto(tmp_path / "a.json", [*events, events[0] | {"cat": "cpu_op"}]))
    assert one_repeats[0].notes == ["left out: 1 slice that repeats a step"]
    once = steps(kineto(tmp_path / "a.json", events))
    twice = steps(kineto(tmp_path / "a.json", [*events, *(one | {"cat": "cpu_op"} for one in events[:3])]))
    assert [section.rows for section in twice] == [section.rows for section in once]
    assert (once[0].notes, twice[0].notes) == ([], ["left out: 3 slices that repeat a step"])


@pytest.mark.parametrize(
    ("dense", "alone", "reason"),
    [
        (2_900, 3_000, ("dense", 2_400_000)),
        (500, 5_000, (NOT_RECORDED, 2_000_000)),
        (900, 4_500, (NOT_RECORDED, 1_500_000)),
    ],
)
def test_the_own_time_of_a_step_is_compared_with_that_of_the_others(
    dense: int, alone: int, reason: tuple[str, int], tmp_path: Path
) -> None:
    events = []
    for number in range(8):
        inner, own = (dense, alone) if number == 4 else (500, 3_000)
        start = number * 20_000
        events.append(event(f"ProfilerStep#{number}", start, 7_000 + inner + own, cat="user_annotation"))
        events.append(event("conv", start + 100, 7_000))
        events.append(event("dense", start + 7_200, inner))
    row = only(steps(kineto(tmp_path / "a.json", events))[0], state="outlier")
    assert (row["slower_operation"], row["slower_by_ns"]) == reason


@pytest.mark.parametrize(
    ("case", "names"),
    [
        ("tensorflow-profiler/jax", [f"train {number}" for number in range(3)]),
        ("tensorflow-profiler/jax-gpu", [f"train {number}" for number in range(5)]),
        ("tensorflow-profiler/jax-perfetto", [f"train {number}" for number in range(3)]),
        ("xplane/jax-gpu", [f"train {number}" for number in range(5)]),
        ("xplane/tensorflow-2.18", ["step 0", "step 1"]),
    ],
)
def test_steps_of_jax_and_tensorflow_are_known_by_their_arg(case: str, names: list[str], tmp_path: Path) -> None:
    """The user names them as they like; a `.pftrace`, also one of a `.pftrace`, keeps them."""
    (path,) = (ROOT / case).glob("input.*")
    found = steps(SliceTable(read(path)))[0].records()
    assert [row["step"] for row in found] == names
    convert(path, tmp_path / "a.pftrace")
    convert(tmp_path / "a.pftrace", tmp_path / "b.pftrace")
    assert [steps(SliceTable(read(tmp_path / one)))[0].records() for one in ("a.pftrace", "b.pftrace")] == [found] * 2


@pytest.mark.parametrize(("case", "names"), [("device", ["train 4"]), ("cut", ["0"])])
def test_steps_of_devices_are_not_listed_beside_those_of_hosts(case: str, names: list[str], tmp_path: Path) -> None:
    """A device has a line Steps, whose slices have the arg, too: steps where hosts mark none."""
    paths = [ROOT / "xplane" / case / "input.pb", tmp_path / "a.pftrace", tmp_path / "b.pftrace"]
    for path, saved in pairwise(paths):
        convert(path, saved)
    for path in paths:
        section, *_ = report([path], Questions(["steps"]))
        assert [row["step"] for row in section.records()] == names


def test_iterations_of_deepsparse_are_steps_without_a_start(tmp_path: Path) -> None:
    """The analysis states how long each of five iterations took, and no times."""
    path = ROOT / "deepsparse" / "v180-analysis" / "input.json"
    milliseconds = json.loads(path.read_text())["iteration_times"]
    expected = [(f"iteration {number}", round(ms * 10**6)) for number, ms in enumerate(milliseconds)]
    convert(path, tmp_path / "a.pftrace")
    for one in (path, tmp_path / "a.pftrace"):
        section, *_ = report([one], Questions(["steps"]))
        rows = section.records()
        assert [(row["step"], row["duration_ns"]) for row in rows] == expected
        assert {(row["start_ns"], row["interval_ns"]) for row in rows} == {(None, None)}
        assert "some positions are synthetic: durations are real, starts are not" in section.notes
    html = page(report([path], Questions(["steps"])), 10)
    assert "How long steps take" in html
    assert "Steps over time" not in html


def test_where_no_steps_are_marked_none_are_invented(tmp_path: Path) -> None:
    section, *_ = steps(kineto(tmp_path / "a.json", [event("conv", 0, 1)]))
    assert section.rows == []
    assert section.notes == ["no input marks steps; if slices of the input are steps, name them: --step-name REGEX"]


@pytest.mark.parametrize(("years", "is_exact"), [(97, True), (98, False)])
def test_sums_that_64_bits_do_not_hold_are_refused(tmp_path: Path, years: int, is_exact: bool) -> None:
    """Of three threads; 292 years fit. What has no recorded end is in no sum."""
    us = years * 365.25 * 24 * 3600e6
    events: list[dict[str, Any]] = [{"ph": "X", "name": "a", "pid": 1, "tid": t, "ts": 5, "dur": us} for t in (1, 2, 3)]
    events += [{"ph": "B", "name": "b", "pid": 1, "tid": t, "ts": 5} for t in (4, 5, 6)]
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"traceEvents": events}))
    if is_exact:
        (section,) = report([path], Questions(["operations"]))
        assert section.records()[0]["total_ns"] == 3000 * us
        return
    for command in (["report"], ["diff", str(path)], ["export", "-o", str(tmp_path / "a.folded")]):
        error = CliRunner().invoke(cli.cli, [*command, str(path)]).exception
        assert isinstance(error, InputError)
        assert "add up to 294 years: sums are exact up to 292" in error.message


@pytest.mark.parametrize(
    ("pattern", "near"),
    [("ste", "; there is step#0, step#1"), ("stpe#0", "; there is step#0, step#1"), ("[0-9]+x", "")],
)
def test_names_near_a_pattern_that_matches_none_are_named(tmp_path: Path, pattern: str, near: str) -> None:
    table = kineto(tmp_path / "a.json", [event("step#0", 0, 1), event("step#1", 5, 1), event("x", 8, 1)])
    section, *_ = steps(structs.replace(table, step_name=pattern))
    assert section.rows == []
    assert section.notes == [f"--step-name {pattern}: no slice has a whole name that matches{near}"]


def test_names_near_a_text_are_few_and_not_long(tmp_path: Path) -> None:
    names = ["step 1", "step 2", "step 3", "step 4", f"step 5 {'x' * 200}", "other"]
    table = kineto(tmp_path / "a.json", [event(name, 2 * at, 1) for at, name in enumerate(names)])
    assert sorted(table.names) == sorted(names)
    near = table.near_names("step 5")
    assert len(near) == 3
    assert set(near) < set(names[:4])


# -- devices ----------------------------------------------------------------------------------------------------------


def gap(tmp_path: Path, *events: list[dict[str, Any]]) -> dict[str, Any]:
    return device(kineto(tmp_path / "a.json", [one for some in events for one in some]))[0].records()[0]


def parts(row: dict[str, Any]) -> tuple[int, ...]:
    return tuple(row[f"{name}_ns"] or 0 for name in ("host_late", "launch_call", "dispatch", "device_wait", "unknown"))


def test_a_gap_is_split_by_the_launch_of_what_ends_it(tmp_path: Path) -> None:
    row = gap(tmp_path, launched(1, (0, 2), (5, 100)), launched(2, (130, 133), (140, 150)))
    assert (row["window_ns"], row["busy_ns"], row["idle_ns"], row["gaps"]) == (145_000, 105_000, 40_000, 1)
    assert parts(row) == (30_000, 3_000, 7_000, 0, 0)


def test_idle_of_a_recorded_run_is_split_as_its_definition_says() -> None:
    """Four steps of torch 2.11 on an H100, between which the program sleeps 2 ms; computed here from the file alone."""
    path = ROOT.parent / "tests" / "data" / "own_tables" / "torch_cuda.json.gz"
    calls: dict[int, tuple[int, int]] = {}
    work = []
    for one in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]:
        if one.get("cat") in ("cuda_driver", "cuda_runtime", "kernel", "gpu_memcpy", "gpu_memset") and one["ph"] == "X":
            begin, dur = round(1000 * one["ts"]), round(1000 * one["dur"])
            if one["cat"].startswith("cuda"):
                calls[one["args"]["correlation"]] = begin, begin + dur
            else:
                work.append((begin, begin + dur, one["args"]["correlation"]))
    work.sort()
    sums, late = dict.fromkeys(("idle", "host_late", "launch_call", "dispatch", "device_wait"), 0), []
    gaps = []
    end = work[0][0]
    for begin, after, number in work:
        if begin > end:
            called, returned = (min(max(end, at), begin) for at in calls[number])
            late.append(called - end)
            gaps.append(begin - end)
            sums["idle"] += begin - end
            sums["host_late"] += called - end
            sums["launch_call"] += returned - called
            sums["device_wait" if begin - returned > DISPATCH_NS else "dispatch"] += begin - returned
        end = max(end, after)
    devices, host_late = device(SliceTable(read(path)))
    row = devices.records()[0]
    assert {cause: row[f"{cause}_ns"] for cause in sums} == sums
    assert row["window_ns"] == end - work[0][0]
    assert row["busy_ns"] == row["window_ns"] - sums["idle"]
    assert row["gaps"] == len(late)
    assert row["longest_gap_ns"] == max(gaps)
    latency = sorted(begin - calls[number][0] for begin, _, number in work)
    assert row["launch_latency_p50_ns"] == latency[(len(latency) - 1) // 2]
    assert sum(gap > 2 * MS for gap in late) == 3
    most = host_late.records()[0]
    assert most["name"] == "(none recorded)"
    assert most["time_ns"] > 3 * 2 * MS


def test_work_that_was_launched_and_waits_is_a_wait_of_the_device(tmp_path: Path) -> None:
    row = gap(tmp_path, launched(1, (0, 2), (5, 100)), launched(2, (10, 12), (140, 150)))
    assert parts(row) == (0, 0, 0, 40_000, 0)


def test_a_launch_call_in_a_gap_is_part_of_it(tmp_path: Path) -> None:
    row = gap(tmp_path, launched(1, (0, 2), (5, 100)), launched(2, (100.001, 100.005), (100.9, 101)))
    assert parts(row) == (1, 4, 895, 0, 0)


def test_overlapping_kernels_leave_no_gap_twice(tmp_path: Path) -> None:
    row = gap(
        tmp_path,
        launched(1, (0, 1), (10, 1010)),
        launched(2, (1, 2), (110, 210)),
        launched(3, (3, 4), (1110, 1120)),
    )
    assert (row["idle_ns"], row["busy_ns"], row["compute_ns"]) == (100_000, 1_010_000, 1_010_000)


@pytest.mark.parametrize(("category", "name"), [("async_cpu_to_gpu", "async_gpu"), ("async_gpu", "async_gpu")])
def test_launches_of_older_versions_are_launches(tmp_path: Path, category: str, name: str) -> None:
    events = launched(1, (0, 2), (5, 100)) + launched(2, (130, 133), (140, 150))
    for one in events:
        if one["ph"] != "X":
            one |= {"cat": category, "name": name}
    assert parts(gap(tmp_path, events)) == (30_000, 3_000, 7_000, 0, 0)


def test_launches_are_known_by_their_ids_without_flows(tmp_path: Path) -> None:
    events = launched(1, (0, 2), (5, 100)) + launched(2, (130, 133), (140, 150))
    assert parts(gap(tmp_path, [one for one in events if one["ph"] == "X"])) == (30_000, 3_000, 7_000, 0, 0)


def test_each_kernel_of_a_graph_is_launched_by_its_one_call(tmp_path: Path) -> None:
    events = launched(1, (0, 2), (5, 100))
    events += [launched(1, (0, 2), work)[1] for work in ((120, 130), (130, 140))]
    row = gap(tmp_path, events)
    assert (row["launches"], parts(row)) == (3, (0, 0, 0, 20_000, 0))


@pytest.mark.parametrize("case", ["xplane/jax-gpu", "tensorflow-profiler/jax-gpu"])
def test_launches_on_tracks_without_categories_are_known_by_their_ids(case: str, tmp_path: Path) -> None:
    (path,) = (ROOT / case).glob("input.*")
    convert(path, tmp_path / "again.pftrace")
    for trace in (read(path), read(tmp_path / "again.pftrace")):
        table = SliceTable(trace)
        names, slices = np.array(trace.strings), trace.slices
        calls = np.flatnonzero(np.char.startswith(names[slices.name], "cuGraphLaunch"))
        launched = launch_rows(table)[launch_rows(table) >= 0]
        assert np.unique(launched, return_counts=True)[1].tolist() == [8] * len(calls)  # kernels of each graph
        assert set(launched.tolist()) == set(calls.tolist())
        section, _ = device(table)
        row = section.records()[0]
        assert (row["launches"], row["negative"], row["unknown_ns"]) == (40, 0, 0)
        parts = ("host_late_ns", "launch_call_ns", "dispatch_ns", "device_wait_ns")
        assert sum(row[key] for key in parts) == row["idle_ns"]
        assert not any("no recorded launch" in note for note in section.notes)


@pytest.mark.parametrize("case", ["tensorflow-profiler/jax-gpu", "tensorflow-profiler/device"])
def test_devices_are_known_beside_a_log_that_is_not_aligned(case: str, tmp_path: Path) -> None:
    """What is not aligned says so in pictures, also of an output that was read; names of tracks stay as recorded."""
    (path,) = (ROOT / case).glob("input.*")
    log = ROOT / "onednn-verbose" / "torch-convnet-process" / "input.log"
    policy = Policy(on_ambiguous="separate")
    merge([path, log], tmp_path / "both.pftrace", policy=policy)
    convert(tmp_path / "both.pftrace", tmp_path / "again.json")
    assert "(not aligned)" in (tmp_path / "again.json").read_text()
    alone, *others = (
        [list(row.values())[1:] for row in section.records()]
        for inputs in ([path], [path, log], [tmp_path / "both.pftrace"])
        for section in report(inputs, Questions(["device"]), policy=policy)[:1]
    )
    assert alone
    assert others == [alone, alone]


def test_queue_time_is_of_all_launches_and_no_longer_than_their_latency(tmp_path: Path) -> None:
    events = launched(1, (0, 10), (5, 20)) + launched(2, (30, 40), (35, 50)) + launched(3, (60, 70), (170, 180))
    (section, *_) = device(kineto(tmp_path / "a.json", events))
    row = section.records()[0]
    assert (row["launch_latency_p50_ns"], row["queue_time_p50_ns"]) == (5_000, 0)


def test_an_id_is_surer_than_a_flow_from_a_time_at_which_two_calls_start(tmp_path: Path) -> None:
    events = launched(1, (0, 2), (5, 100)) + launched(2, (130, 133), (140, 150))
    events.append(event("cudaFuncSetAttribute", 130, 0, cat="cuda_runtime", args={"correlation": 9}))
    assert parts(gap(tmp_path, events)) == (30_000, 3_000, 7_000, 0, 0)


def test_flows_tell_launches_where_two_processes_have_the_same_ids(tmp_path: Path) -> None:
    events = launched(1, (0, 2), (5, 100)) + launched(2, (130, 133), (140, 150))
    events.append(event("cudaLaunchKernel", 50, 3, cat="cuda_runtime", pid=2, args={"correlation": 2}))
    assert parts(gap(tmp_path, events)) == (30_000, 3_000, 7_000, 0, 0)
    without = gap(tmp_path, [one for one in events if one["ph"] == "X"])
    assert parts(without) == (0, 0, 0, 0, 40_000)


def of_rank(rank: int, category: str, number: int, call: tuple[float, float], work: tuple[float, float]) -> Events:
    """A launch of one of several ranks in one file: a process and a device of its own."""
    found = launched(number, call, work)
    for one in found:
        is_work = one.get("cat") == "kernel" or one["ph"] == "f"
        one |= {"pid": rank} if is_work else {"pid": 1000 + rank}
    found[0]["cat"] = category
    found[1]["args"]["device"] = rank
    for one in found[2:]:
        one["id"] = 100 * rank + number
    return found


def ranks_of_one_file() -> Events:
    """Two processes with the same ids: one has calls of the runtime, the other of the driver, as Triton makes them."""
    found = of_rank(0, "cuda_runtime", 1, (0, 2), (5, 100)) + of_rank(0, "cuda_runtime", 2, (130, 133), (140, 150))
    return found + of_rank(1, "cuda_driver", 1, (1, 2), (5, 100)) + of_rank(1, "cuda_driver", 2, (110, 113), (140, 150))


def device_rows(tmp_path: Path, events: Events) -> list[dict[str, Any]]:
    return [row for row in device(kineto(tmp_path / "a.json", events))[0].records() if not row["queue"]]


def test_each_process_has_ids_of_its_own(tmp_path: Path) -> None:
    rows = device_rows(tmp_path, ranks_of_one_file())
    assert [parts(row) for row in rows] == [(30_000, 3_000, 7_000, 0, 0), (10_000, 3_000, 0, 27_000, 0)]
    assert [row["launches"] for row in rows] == [2, 2]


def test_an_export_of_two_ranks(tmp_path: Path) -> None:
    """Work that is drawn in its process has the calls of this process, also with equal ids and without flows."""
    string = Strings()
    calls, work = [], []
    for number in range(1, 21):
        at = number * 100_000
        for rank, main, name, start in (
            (RANK0, MAIN0, "cudaLaunchKernel_v7000", at),
            (RANK1, MAIN1, "cuLaunchKernel", at + 50_000),
        ):
            calls.append(call(string, name, main, start, 10_000, correlationId=number))
            more = {"correlationId": number, "globalPid": rank, "deviceId": int(rank == RANK1)}
            work.append(kernel(string, name, start + 15_000, 30_000, **more))
    tables = {"CUPTI_ACTIVITY_KIND_RUNTIME": calls, "CUPTI_ACTIVITY_KIND_KERNEL": work}
    build(tmp_path / "two.sqlite", {"StringIds": string.rows(), **tables})
    trace = read(tmp_path / "two.sqlite")
    for flows in (trace.flows, take(trace.flows, np.arange(0))):
        rows = device(SliceTable(replace(trace, flows=flows)))[0].records()
        assert [(row["launches"], row["launch_latency_p50_ns"]) for row in rows] == [(20, 15_000)] * 2


def test_without_flows_equal_ids_of_two_devices_tell_no_call(tmp_path: Path) -> None:
    """The second device may be of a process whose calls are not in the file, and the first one too."""
    events = [one for one in ranks_of_one_file() if one["ph"] == "X"]
    alone = [one for one in events if one["cat"] != "cuda_driver"]
    for made in (events, alone):
        assert [parts(row) for row in device_rows(tmp_path, made)] == [(0, 0, 0, 0, 40_000)] * 2
    first = [one for one in alone if one["pid"] != 1]
    assert [parts(row) for row in device_rows(tmp_path, first)] == [(30_000, 3_000, 7_000, 0, 0)]


def test_without_flows_ids_of_two_devices_of_one_process(tmp_path: Path) -> None:
    events = launched(1, (0, 2), (5, 100)) + launched(2, (130, 133), (140, 150))
    events += launched(3, (3, 4), (5, 100), pid=1000) + launched(4, (110, 113), (140, 150), pid=1000)
    rows = device_rows(tmp_path, [one for one in events if one["ph"] == "X"])
    assert [parts(row) for row in rows] == [(30_000, 3_000, 7_000, 0, 0), (10_000, 3_000, 0, 27_000, 0)]


@pytest.mark.parametrize(
    ("case", "devices", "queues"),
    [
        ("rocprof/sdk", ["GPU 1: AMD Instinct MI210", "Agent 105"], {"Memory copies", "Queue 1"}),
        ("onnxruntime/gpu-streams", ["GPU"], {"stream 7", "stream 13"}),
        ("furiosa/exported", ["NPU"], {"PE 0", "PE 1"}),
        ("furiosa/two-queries", ["npu:0:0-1"], {"PE 0", "PE 1"}),
        ("furiosa/async-pairs", ["npu:0:0-1"], set()),
        ("xplane/collectives", ["/device:GPU:0"], set()),
        ("tensorflow-profiler/device", ["/device:GPU:0"], set()),
        (
            "nvprof/streams-and-ranges",
            ["trainer 4711 / GPU 0: Tesla V100-SXM2-16GB"],
            {"Context 1 / Stream 7", "Context 1 / Stream 13: copies"},
        ),
        ("nsight-systems/export_2022", ["process 4100 / GPU 0 NVIDIA A100-SXM4-40GB"], set()),
        ("pytorch-kineto/cuda-graph", ["GPU 0 (NVIDIA H100 80GB HBM3)"], set()),
    ],
)
def test_devices_of_formats_and_their_queues(case: str, devices: list[str], queues: set[str], tmp_path: Path) -> None:
    (path,) = (ROOT / case).glob("input.*")
    section = device(SliceTable(read(path)))[0]
    assert [row["device"] for row in section.records() if not row["queue"]] == devices
    assert {row["queue"] for row in section.records()} - {""} == queues
    assert sum(row["busy_ns"] for row in section.records()) > 0
    convert(path, tmp_path / "own.pftrace")
    own = device(SliceTable(read(tmp_path / "own.pftrace")))[0]
    assert [row[1:] for row in own.rows] == [row[1:] for row in section.rows], "with the launches"
    names = zip(own.records(), section.records(), strict=True)
    assert all(one["device"].rpartition(" / ")[2] == other["device"].rpartition(" / ")[2] for one, other in names)


def test_events_of_mtia_are_work_copies_or_pauses(tmp_path: Path) -> None:
    def on_device(name: str, ts: int, dur: int) -> dict[str, Any]:
        cat, args = "mtia_ccp_events", {"stream": 102}
        return {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": 102, "ts": ts, "dur": dur, "args": args}

    def call(name: str, ts: int, dur: int) -> dict[str, Any]:
        return {"ph": "X", "cat": "mtia_runtime", "name": name, "pid": 7, "tid": 7, "ts": ts, "dur": dur}

    source = json.loads((ROOT / "pytorch-kineto" / "mtia-hccl" / "input.json").read_text())
    source["traceEvents"] += [
        *(on_device("fc-dtype_Float", 500, 40), on_device("dma_request", 545, 5), on_device("event_wait", 560, 100)),
        *(on_device("event_record", 660, 1), on_device("relu-dtype_Float", 670, 30)),
        *(call("synchronizeStream", 480, 200), call("runFunction", 450, 20)),
    ]
    path = tmp_path / "mtia.json"
    path.write_text(json.dumps(source))
    table = SliceTable(read(path))
    (row,) = [row for row in device(table)[0].records() if not row["queue"]]
    parts = ("window_ns", "compute_ns", "exposed_comm_ns", "exposed_copy_ns", "idle_ns")
    assert [row[part] for part in parts] == [500_000, 70_000, 94_500, 5_000, 330_500]
    names = {row["name"].partition(":")[2] or row["name"] for row in operations(table).records()}
    assert names == {"(no operator)", "all_reduce", "allgather", "broadcast", "runFunction"}
    assert [row["name"] for row in waits(table).records()] == ["synchronizeStream"]


@pytest.mark.parametrize("category", ["cuda_profiler_range", "cuda_event"])
def test_ranges_of_cupti_and_events_of_cuda_are_no_operations_of_the_host(tmp_path: Path, category: str) -> None:
    events = [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7, "ts": 1, "dur": 100},
        {"ph": "X", "cat": category, "name": "sgemm", "pid": 0, "tid": 0, "ts": 2, "dur": 300},
    ]
    (tmp_path / "k.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    convert(tmp_path / "k.json", tmp_path / "own.pftrace")
    for name in ("k.json", "own.pftrace"):
        table = SliceTable(read(tmp_path / name))
        assert [row["name"] for row in operations(table).records()] == ["aten::mm"]
        assert category in device(table)[0].notes[0]


def test_gpus_of_rocprof_in_one_process_without_a_pid_stay_apart(tmp_path: Path) -> None:
    """Made from a golden input: kernels on two GPUs, of a process whose pid was not recorded."""
    document = json.loads((ROOT / "rocprof" / "sdk" / "input.json").read_text(encoding="utf-8"))
    (process,) = document["rocprofiler-sdk-tool"]
    del process["metadata"]["pid"]
    first = process["agents"][1]
    process["agents"].append(first | {"id": {"handle": first["id"]["handle"] + 50}, "logical_node_id": 2})
    kernels = process["buffer_records"]["kernel_dispatch"]
    kernels += json.loads(json.dumps(kernels).replace('"handle": 104', '"handle": 154'))
    path = tmp_path / "input.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    rows = []
    for one, another in ((path, "a.pftrace"), (tmp_path / "a.pftrace", "b.pftrace")):
        rows.append(device(SliceTable(read(one)))[0].rows)
        convert(one, tmp_path / another)
    devices = {str(row[0]) for row in rows[0]}
    assert {"GPU 1: AMD Instinct MI210", "GPU 2: AMD Instinct MI210"} < devices
    assert {str(row[0]).rpartition(" / ")[2] for row in rows[1]} == devices
    assert [row[1:9] for row in rows[1]] == [row[1:9] for row in rows[0]]


def test_devices_inside_a_process_without_a_pid_stay_apart(tmp_path: Path) -> None:
    """The writer puts devices into the only process, which in the .pftrace is a track like others."""
    path, own = tmp_path / "input.json", tmp_path / "own.pftrace"
    document = json.loads((ROOT / "tensorflow-profiler" / "device" / "input.json").read_text(encoding="utf-8"))
    first = [one for one in document["traceEvents"] if one]
    (pid,) = {one["pid"] for one in first if "/device:GPU:0" in str(one.get("args"))}
    second = json.loads(
        json.dumps([one | {"pid": pid + 1} for one in first if one["pid"] == pid]).replace("GPU:0", "GPU:1")
    )
    path.write_text(json.dumps(document | {"traceEvents": first + second}), encoding="utf-8")
    convert(path, own)
    rows = [device(SliceTable(read(one)))[0].rows for one in (path, own)]
    assert [row[0] for row in rows[0]] == ["/device:GPU:0", "/device:GPU:1"]
    assert [row[1:9] for row in rows[1]] == [row[1:9] for row in rows[0]]


def test_processes_without_a_name_are_said_to_be_processes() -> None:
    section = device(SliceTable(read(ROOT / "nvprof-text" / "gpu-trace" / "input.log")))[0]
    assert section.records()[0]["device"] == "process 9319 / GPU 0: Tesla T4"


LATE = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12), st.sampled_from("abc")), max_size=10)


@given(LATE, st.lists(st.tuples(st.integers(1, 9), st.integers(1, 5), st.integers(1, 9)), min_size=1, max_size=4))
def test_what_late_hosts_ran_is_that_of_a_raster(
    tmp_path_factory: pytest.TempPathFactory, ran: list[tuple[int, int, str]], launches: list[tuple[int, int, int]]
) -> None:
    """Each launch comes after the work before has ended: all up to it is late, by what is innermost on the thread."""
    events = [event(name, 10 * at, 10 * length) for at, length, name in ran]
    call, late = 0, []
    for number, (after, short, length) in enumerate(launches):
        late += range(call, call + after) if number else []
        call += after
        events += launched(number + 1, (10 * call, 10 * call), (10 * (call + short), 10 * (call + short + length)))
        call += short + length
    table = kineto(tmp_path_factory.mktemp("late") / "a.json", events)
    found = device(table)
    slices, start = table.trace.slices, 10_000 * launches[0][0]
    origin = int(np.min(slices.ts[table.named("cudaLaunchKernel")]))
    wanted: dict[str, int] = {}
    for at in late:
        now = origin - start + 10_000 * at
        inside = [
            row
            for row in np.flatnonzero((slices.ts <= now) & (now < slices.ts + slices.dur)).tolist()
            if table.trace.strings[slices.name[row]] in "abc"
        ]
        name = (
            table.trace.strings[slices.name[max(inside, key=lambda row: (slices.ts[row], -slices.dur[row], row))]]
            if inside
            else ""
        )
        wanted[name or "(none recorded)"] = wanted.get(name or "(none recorded)", 0) + 10_000
    rows = found[1].records() if len(found) > 1 else []
    assert {row["name"]: row["time_ns"] for row in rows} == wanted
    assert sum(wanted.values()) == found[0].records()[0]["host_late_ns"]


@pytest.mark.parametrize("name", ["", "python"])
def test_a_pftrace_knows_that_lanes_are_of_the_thread_that_launches(name: str, tmp_path: Path) -> None:
    """Ranges and Python calls may overlap: one of them is on a lane."""
    events = [event("f", 0, 100), event("range", 50, 150, cat="user_annotation"), event("g", 110, 200)]
    events += launched(1, (5, 7), (10, 20)) + launched(2, (250, 252), (260, 270))
    events += [{"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": name}}] if name else []
    path = tmp_path / "a.json"
    kineto(path, events)
    convert(path, tmp_path / "a.pftrace")
    for one in (path, tmp_path / "a.pftrace"):
        rows = device(SliceTable(read(one)))[1].records()
        assert {row["name"]: row["time_ns"] for row in rows} == {"g": 140_000, "range": 60_000, "f": 30_000}


def test_named_steps_are_not_what_a_late_host_ran(tmp_path: Path) -> None:
    events = launched(1, (0, 2), (5, 100)) + launched(2, (130, 133), (140, 150))
    table = kineto(tmp_path / "a.json", [*events, event("my step", 0, 200)])
    for step_name, ran in (("", "my step"), ("my .*", "(none recorded)")):
        late = answers(table.trace, Aligned(), Questions(("device",), step_name=step_name))[1]
        assert [(row["name"], row["time_ns"]) for row in late.records()] == [(ran, 30_000)]


class Counted(list[str]):
    """Strings that count how often all of them are read."""

    reads = 0

    def __iter__(self) -> Iterator[str]:
        self.reads += 1
        return super().__iter__()


def test_inputs_of_one_format_read_the_strings_once(tmp_path: Path) -> None:
    trace = kineto(tmp_path / "a.json", launched(1, (0, 2), (5, 100)) + launched(2, (130, 133), (140, 150))).trace
    reads = []
    for inputs in (1, 40):
        strings = Counted(trace.strings)
        table = SliceTable(replace(trace, strings=strings, sources=trace.sources * inputs))
        assert parts(device(table)[0].records()[0]) == (30_000, 3_000, 7_000, 0, 0)
        assert len(steps(table)[0].rows) == 0
        reads.append(strings.reads)
    assert reads[0] == reads[1]


class Elements(np.ndarray[Any, Any]):
    """An array that counts the elements of all that is computed from it, and of what is selected."""

    seen = 0

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        Elements.seen += sum(map(np.size, inputs))
        plain = [one.view(np.ndarray) if isinstance(one, Elements) else one for one in inputs]
        found = getattr(ufunc, method)(*plain, **options)
        return found.view(Elements) if isinstance(found, np.ndarray) else found

    def __getitem__(self, key: Any) -> Any:
        Elements.seen += np.size(key)
        return super().__getitem__(key)


def test_queues_are_read_once_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row for each queue looks at its own work, not at that of all queues, hundreds of times as much."""
    at = {"ph": "X", "cat": "kernel", "name": "k", "dur": 3}
    module = importlib.import_module("traceconv.answers.device_work")
    work = module._work

    def counting(table: SliceTable) -> Any:
        found = work(table)
        counted = [array.view(Elements) if isinstance(array, np.ndarray) else array for array in astuple(found)]
        return type(found)(*counted)

    monkeypatch.setattr(module, "_work", counting)

    def seen(queues: int) -> int:
        events = [
            at | {"pid": 0, "tid": one, "ts": one * 5, "args": {"device": 0, "stream": one}} for one in range(queues)
        ]
        trace = kineto(tmp_path / f"{queues}.json", events).trace
        repeated = np.ones(len(trace.slices.ts), np.int64)
        repeated[0] = 100_000
        table = SliceTable(replace(trace, slices=take(trace.slices, np.repeat(np.arange(len(repeated)), repeated))))
        vars(table)["row_of_track"] = table.row_of_track.view(Elements)
        Elements.seen = 0
        assert len(device(table)[0].rows) == queues + 1
        return Elements.seen

    few, many = seen(20), seen(2_000)
    assert 100_000 < few < many < 2 * few


def test_without_a_launch_a_gap_is_unknown(tmp_path: Path) -> None:
    row = gap(tmp_path, launched(1, (0, 2), (5, 100)), launched(2, (30, 33), (140, 150))[1:2])
    assert parts(row) == (0, 0, 0, 0, 40_000)


def test_without_any_launch_no_cause_is_zero(tmp_path: Path) -> None:
    row = gap(tmp_path, launched(1, (0, 2), (5, 100))[1:2], launched(2, (30, 33), (140, 150))[1:2])
    causes = [row[f"{name}_ns"] for name in ("host_late", "launch_call", "dispatch", "device_wait", "unknown")]
    assert causes == [None, None, None, None, 40_000]
    assert (row["launches"], row["negative"], row["launch_latency_p50_ns"]) == (0, None, None)


def test_work_before_its_launch_is_said_and_not_hidden(tmp_path: Path) -> None:
    events = launched(1, (10, 12), (4, 100)) + launched(2, (20, 22), (120, 130))
    section = device(kineto(tmp_path / "a.json", events))[0]
    assert section.records()[0]["negative"] == 1
    assert any("clocks of host and device differ by 6 µs or more" in note for note in section.notes)


WORK = st.tuples(st.integers(0, 60), st.integers(1, 20), st.integers(0, 2), st.integers(0, 1))


@given(st.lists(WORK, min_size=1, max_size=12))
def test_the_parts_of_a_device_add_up(tmp_path_factory: pytest.TempPathFactory, work: list[tuple[int, ...]]) -> None:
    """Computation before communication before copies, instant by instant, over all streams."""
    kinds = [("kernel", "gemm"), ("kernel", "ncclDevKernel_AllReduce"), ("gpu_memcpy", "Memcpy DtoD")]
    events = []
    for number, (start, length, kind, stream) in enumerate(work):
        category, name = kinds[kind]
        at = {"cat": category, "pid": 0, "tid": stream, "args": {"device": 0, "stream": stream, "correlation": number}}
        events.append(event(name, 10 * start, 10 * length, **at))  # overlaps of 1 µs would be trimmed
    table = kineto(tmp_path_factory.mktemp("device") / "a.json", events)
    row = device(table)[0].records()[0]
    start, end = min(one[0] for one in work), max(one[0] + one[1] for one in work)
    found = [0, 0, 0, 0]
    for at in range(start, end):
        running = {kind for begin, length, kind, _ in work if begin <= at < begin + length}
        found[min(running) if running else 3] += 10_000
    names = ("compute_ns", "exposed_comm_ns", "exposed_copy_ns", "idle_ns")
    assert [row[name] for name in names] == found
    assert sum(found) == row["window_ns"]
    assert sum(parts(row)) == row["idle_ns"]


def test_only_a_device_says_what_is_exposed(tmp_path: Path) -> None:
    """Communication has a queue of its own: alone it would seem to be exposed, though computation hides half of it."""
    at: dict[str, Any] = {"cat": "kernel", "pid": 0}
    events = [event("gemm", 0, 100, tid=7, args={"device": 0, "stream": 7}, **at)]
    events += [event("ncclDevKernel_AllReduce", 50, 100, tid=8, args={"device": 0, "stream": 8}, **at)]
    section = device(kineto(tmp_path / "a.json", events))[0]
    names = ("compute_ns", "comm_ns", "exposed_comm_ns", "exposed_copy_ns", "overlap_share", "busy_ns", "idle_ns")
    rows = {row["queue"]: [row[name] for name in names] for row in section.records()}
    assert rows == {
        "": [100_000, 100_000, 50_000, 0, 0.5, 150_000, 0],
        "stream 7": [100_000, 0, None, None, None, 100_000, 0],
        "stream 8": [0, 100_000, None, None, None, 100_000, 0],
    }
    assert "of a queue: busy + idle = window" in section.legend[0]
    busy = page([section], 0).partition("Busy and idle")[2].partition("</figure>")[0]
    assert "exposed communication: 50 µs" in busy
    assert "stream" not in busy


def test_all_sections_of_real_recordings() -> None:
    for case in ("pytorch-kineto/torch-convnet-process", "nsight-systems/session", "tvm-debugger/header-only"):
        (path,) = (ROOT / case).glob("input.*")
        trace = read(path)
        sections = answers(trace, Aligned(), Questions())
        found = [section.name for section in sections if section.name not in SECTION_OF]
        first = ["summary", "device"] if case.startswith("nsight") else ["summary", "steps", "operations", "layers"]
        assert found == [*first, *(name for name in found if name not in first)]
        assert sorted(found) == sorted(SECTIONS)
        for section in sections:
            assert section.rows or section.notes or section.name == "unanswered"
    with pytest.raises(UsageError, match="no section 'devcie'"):
        answers(trace, Aligned(), Questions(sections=("devcie",)))


def test_help_and_hint_list_all_names_of_sections_and_tables() -> None:
    with pytest.raises(UsageError) as refused:
        Questions(sections=("devcie",)).check()
    shown = CliRunner().invoke(cli.cli, ["report", "--help"]).output
    for name in (*SECTIONS, *SECTION_OF):
        Questions(sections=(name,)).check()
        for listed in (refused.value.hint, shown):
            assert re.search(rf"\b{name}\b", listed)


# -- names in text ----------------------------------------------------------------------------------------------------

COMMON = "void at::native::vectorized_elementwise_kernel<4, at::native::"
TAIL = ">(int, std::array<char*, 2ul>, at::native::memory::StoreWithCast<1>)"


@pytest.mark.parametrize("width", [0, 60, 80, 200])
def test_names_with_a_long_common_start_show_where_they_differ(width: int) -> None:
    names = [f"{COMMON}{one}{TAIL}" for one in ("MulFunctor", "AddFunctor", "AddFunctorOnSelf")] + ["conv"]
    section = Section("operations", (Column("name", "name", Unit.TEXT), Column("count", "count", Unit.COUNT)))
    section.rows = [(name, 1) for name in names]
    shown = [line.split("  ")[1] for line in text([section], 0, width).splitlines()[2:]]
    assert len(set(shown)) == 4
    assert max(map(len, shown)) <= (width or 60)
    assert shown[3] == "conv"
    if width < 200:
        assert [one for one in ("Mul", "Add") if one in shown[0]] == ["Mul"]
        assert shown[0].startswith("void at::nat")


@pytest.mark.parametrize(
    ("ns", "shown"),
    [
        (3_599 * 10**9, "3599 s"),
        (3_600 * 10**9, "1 h"),
        (166_859 * 10**9, "1 d 22 h"),
        (-3_599 * 10**9, "-3599 s"),
        (-7_200 * 10**9, "-2 h"),
        (-4_000 * 10**9, "-1 h 6 min"),
    ],
)
def test_hours_are_shown_as_such(ns: int, shown: str) -> None:
    assert shown_cell(ns, Unit.NS) == shown


@given(st.lists(st.text("ab(…2", max_size=12), max_size=12), st.integers(1, 10))
def test_texts_told_apart_are_no_longer_and_differ(texts: list[str], width: int) -> None:
    shown = told_apart(texts, [shortened(one, width) for one in texts])
    assert all(len(one) <= width for one in shown)
    for one, cut in zip(texts, shown, strict=True):
        alike = {other for other in texts if shortened(other, width) == shortened(one, width)}
        assert cut == shortened(one, width) or len(alike) > 1
        assert cut == one or len(one) > width
    assert width < 4 or len(set(shown)) == len(set(texts))


@given(st.lists(st.text("ab(…2", max_size=12), max_size=12), st.text("ab(", max_size=8), st.integers(4, 10))
def test_columns_with_a_common_end_are_no_wider_and_differ(starts: list[str], end: str, width: int) -> None:
    texts = [start + end for start in starts]
    shown = shortened_column(texts, width)
    assert all(len(one) <= width for one in shown)
    assert all(cut == one or len(one) > width for one, cut in zip(texts, shown, strict=True))
    assert len(set(shown)) == len(set(texts))


@given(st.sets(st.tuples(*[st.sampled_from(["one", "two", "six"])] * 5), min_size=2), st.integers(16, 60))
def test_texts_that_differ_at_several_places_stay_different(names: set[tuple[str, ...]], width: int) -> None:
    texts = [("y" * 30).join(parts) for parts in names]
    assert len(set(told_apart(texts, [shortened(one, width) for one in texts]))) == len(texts)


def test_two_places_at_which_texts_differ_are_shown() -> None:
    texts = [f"k{'y' * 40}{middle:05d}{'z' * 40}{end}" for middle in range(3) for end in range(2)]
    shown = told_apart(texts, [shortened(one, 20) for one in texts])
    assert shown[:3] == ["kyy…0zzzzz…0", "kyy…0zzzzz…1", "kyy…1zzzzz…0"]
    assert len(set(shown)) == 6


def test_texts_that_differ_at_too_many_places_are_numbered() -> None:
    texts = ["".join(f"{'y' * 20}{bit}" for bit in f"{number:06b}") for number in range(64)]
    shown = told_apart(texts, [shortened(one, 16) for one in texts])
    assert len(set(shown)) == 64
    assert shown[7:10] == ["y…1y…1y…1", "y…0y…0y…0…2", "y…0y…0y…1…2"]


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (-1024, "-1 KiB"),
        (1536, "1.5 KiB"),
        (1_245_240, "1.188 MiB"),
        ((1 << 20) - 1, "1 MiB"),
        ((1 << 63) - 1, "8192 PiB"),
    ],
)
def test_bytes_are_shown_with_a_binary_unit(number: int, shown: str) -> None:
    assert shown_cell(number, Unit.BYTES) == shown


def test_a_text_that_is_cut_at_its_end_says_so() -> None:
    names = [f"onnxruntime 11220 / mem_{what} (CPUExecutionProvider)" for what in ("held", "used", "peak")]
    shown = told_apart(names, [shortened(name, 20) for name in names])
    assert all(text.endswith("…") and len(text) <= 20 for text in shown)
    assert len(set(shown)) == 3

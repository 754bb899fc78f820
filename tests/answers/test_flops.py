"""How fast products, convolutions and attention ran: exact numbers from the shapes of calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import traceconv
from traceconv import Questions, UsageError
from traceconv.answers.peaks import PEAKS, parse_peak
from traceconv.answers.section import Section


def call(name: str, ts: int, dims: list[list[int]], concrete: list[str], type: str = "c10::BFloat16") -> dict[str, Any]:
    types = [type if size else "Scalar" for size in dims]
    args = {"Input Dims": dims, "Input type": types, "Concrete Inputs": concrete}
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": 10, "args": args}


def launched(number: int, ts: int, dur: int) -> list[dict[str, Any]]:
    """A launch call within the call at `ts`, and its kernel."""
    common = {"ph": "X", "args": {"correlation": number, "device": 0, "stream": 7}}
    return [
        common | {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": ts + 1, "dur": 2},
        common | {"cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": ts + 5, "dur": dur},
    ]


def flops(folder: Path, events: list[dict[str, Any]], peak: str = "") -> Section:
    path = folder / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    (section,) = traceconv.report([path], Questions(["flops"], peak=peak))
    return section


@pytest.mark.parametrize(
    ("name", "dims", "concrete", "flop", "elements"),
    [
        ("aten::mm", [[8, 16], [16, 32]], ["", ""], 2 * 8 * 16 * 32, 8 * 16 + 16 * 32 + 8 * 32),
        ("aten::addmm", [[32], [8, 16], [16, 32]], ["", "", ""], 2 * 8 * 16 * 32, 32 + 8 * 16 + 16 * 32 + 8 * 32),
        ("aten::mv", [[8, 16], [16]], ["", ""], 2 * 8 * 16, 8 * 16 + 16 + 8),
        ("aten::dot", [[16], [16]], ["", ""], 2 * 16, 16 + 16 + 1),
        ("aten::addbmm", [[8, 32], [3, 8, 16], [3, 16, 32]], [""] * 3, 3 * 2 * 8 * 16 * 32, 3 * 640 + 2 * 8 * 32),
        ("aten::bmm", [[3, 8, 16], [3, 16, 32]], ["", ""], 3 * 2 * 8 * 16 * 32, 3 * (8 * 16 + 16 * 32 + 8 * 32)),
        (
            "aten::cudnn_convolution",
            [[2, 3, 9, 9], [4, 3, 3, 3], [], [], []],
            ["", "", "[1, 1]", "[2, 2]", "[1, 1]"],
            2 * 2 * 4 * 5 * 5 * 3 * 3 * 3,
            2 * 3 * 9 * 9 + 4 * 3 * 3 * 3 + 2 * 4 * 5 * 5,
        ),
        (
            "aten::_flash_attention_forward",
            [[2, 7, 3, 64], [2, 7, 3, 64], [2, 7, 3, 32]] + [[]] * 7,
            [""] * 8 + ["False", ""],
            2 * 2 * 3 * 7 * 7 * (64 + 32),
            2 * 7 * 3 * (2 * 64 + 2 * 32),
        ),
        (
            "aten::_flash_attention_forward",
            [[2, 7, 3, 64]] * 3 + [[]] * 7,
            [""] * 8 + ["False", ""],
            4 * 2 * 3 * 7 * 7 * 64,
            4 * 2 * 7 * 3 * 64,
        ),
        (
            "aten::_flash_attention_forward",
            [[2, 7, 3, 64]] * 3 + [[]] * 7,
            [""] * 8 + ["True", ""],
            2 * 2 * 3 * 7 * 7 * 64,
            4 * 2 * 7 * 3 * 64,
        ),
        (
            "aten::_efficient_attention_forward",
            [[2, 7, 3, 64]] * 3 + [[]] * 8,
            [""] * 9 + ["1", "False"],
            2 * 2 * 3 * 7 * 7 * 64,
            4 * 2 * 7 * 3 * 64,
        ),
        (
            "aten::_flash_attention_backward",
            [[2, 7, 3, 64]] * 5 + [[2, 3, 7]] + [[]] * 8,
            [""] * 11 + ["False", "", ""],
            10 * 2 * 3 * 7 * 7 * 64,
            8 * 2 * 7 * 3 * 64,
        ),
        (
            "aten::convolution",
            [[2, 3, 9, 9], [4, 3, 3, 3], *[[]] * 7],
            ["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"],
            2 * 2 * 4 * 5 * 5 * 3 * 3 * 3,
            2 * 3 * 9 * 9 + 4 * 3 * 3 * 3 + 2 * 4 * 5 * 5,
        ),
        (
            "aten::convolution_backward",
            [[2, 4, 5, 5], [2, 3, 9, 9], [4, 3, 3, 3], *[[]] * 8],
            [*[""] * 7, "False", "[0, 0]", "1", "[True, True, False]"],
            2 * (2 * 2 * 4 * 5 * 5 * 3 * 3 * 3),
            2 * 4 * 5 * 5 + 2 * (2 * 3 * 9 * 9 + 4 * 3 * 3 * 3),
        ),
        (
            "aten::convolution_backward",
            [[2, 4, 5, 5], [2, 3, 9, 9], [4, 3, 3, 3], *[[]] * 8],
            [*[""] * 7, "False", "[0, 0]", "1", "[False, True, True]"],
            2 * 2 * 4 * 5 * 5 * 3 * 3 * 3,
            2 * 4 * 5 * 5 + 2 * 3 * 9 * 9 + 4 * 3 * 3 * 3,
        ),
    ],
)
def test_the_work_of_a_call(
    name: str, dims: list[list[int]], concrete: list[str], flop: int, elements: int, tmp_path: Path
) -> None:
    (row,) = flops(tmp_path, [call(name, 0, dims, concrete), *launched(1, 0, 4)], "1,1").records()
    assert row["gflop"] == pytest.approx(flop / 1e9)
    assert row["time_ns"] == 4000
    assert row["tflop_per_s"] == pytest.approx(flop / 4000 / 1000)
    assert row["flop_per_byte"] == pytest.approx(flop / (2 * elements))
    assert row["limit_share"] == pytest.approx(max(flop / 1e3, 2 * elements) / 4000)


def test_calls_beside_a_device_that_launch_nothing_are_left_out(tmp_path: Path) -> None:
    dims = [[8, 16], [16, 32]]
    section = flops(tmp_path, [call("aten::mm", at, dims, ["", ""]) for at in (0, 100)] + launched(1, 0, 4))
    assert [row["count"] for row in section.records()] == [1]
    assert section.notes == ["left out: 1 call without recorded work on the device beside them"]
    section = flops(tmp_path, [call("aten::mm", at, dims, ["", ""]) for at in (0, 100)])
    assert [(row["count"], row["time_ns"]) for row in section.records()] == [(2, 20_000)]


def test_calls_beside_a_device_have_no_times_of_the_host(tmp_path: Path) -> None:
    """A call may end before its work, so its duration is no time of the work, whether launches are recorded or not."""
    product = call("aten::mm", 0, [[4096, 4096], [4096, 4096]], ["", ""])
    _, kernel = launched(1, 0, 500)
    for work in ([kernel], [{key: value for key, value in kernel.items() if key != "dur"}]):
        section = flops(tmp_path, [product, *work])
        assert section.rows == []
        assert "left out: 1 call without recorded work on the device beside them" in section.notes


def test_inputs_without_a_device_have_times_of_the_host(tmp_path: Path) -> None:
    product, paths = call("aten::mm", 0, [[8, 16], [16, 32]], ["", ""]), [tmp_path / "a.json", tmp_path / "b.json"]
    for path, work in zip(paths, (launched(1, 0, 4), []), strict=True):
        events = {"schemaVersion": 1, "traceEvents": [product, *work], "baseTimeNanoseconds": 0, "host_name": "a"}
        path.write_text(json.dumps(events))
    same_machine = traceconv.Constraints(same_machine=True)
    traceconv.merge(paths, tmp_path / "both.pftrace", constraints=same_machine)
    for inputs in (paths, [tmp_path / "both.pftrace"]):
        (section,) = traceconv.report(inputs, Questions(["flops"]), constraints=same_machine)
        assert [(row["count"], row["time_ns"]) for row in section.records()] == [(2, 14_000)]


def test_a_type_that_is_not_stated_has_no_share(tmp_path: Path) -> None:
    events = [call("aten::mm", 0, [[8, 16], [16, 32]], ["", ""], ""), *launched(1, 0, 4)]
    section = flops(tmp_path, events, "L4")
    assert section.notes == ["no share of the limit for calls without a stated type: --peak is about float16, bfloat16"]


@pytest.mark.parametrize(
    ("name", "dims", "concrete"),
    [
        ("aten::mm", [[8, 16], [17, 32]], ["", ""]),
        ("aten::mm", [[8, 4.5], [4.5, 32]], ["", ""]),
        ("aten::convolution", [[2, 4, 5, 5], [4, 3, 3, 3], *[[]] * 7], [*["", "", ""], *["[1, 1]"] * 3, "True"]),
        ("aten::_flash_attention_backward", [[2, 7, 3, 64]] * 5, [""] * 14),
        ("aten::_efficient_attention_forward", [*[[1, 7, 3, 64]] * 3, [], [5], [5]], [""] * 9 + ["0"]),
    ],
)
def test_shapes_that_do_not_tell_the_work_are_counted(
    name: str, dims: list[list[int]], concrete: list[str], tmp_path: Path
) -> None:
    section = flops(tmp_path, [call(name, 0, dims, concrete), *launched(1, 0, 4)])
    assert (section.rows, section.notes) == (
        [],
        [f"left out: 1 call whose work is not computed, 4 µs in all: {name}"],
    )


def test_calls_without_recorded_shapes_are_counted_apart(tmp_path: Path) -> None:
    product = call("aten::mm", 0, [], []) | {"args": {}}
    section = flops(tmp_path, [product])
    how = "record_shapes=True of the profiler records them"
    assert section.notes == [f"left out: 1 call without recorded shapes ({how}), 10 µs in all: aten::mm"]


def node(operation: str, outputs: list[int], inputs: list[list[int]]) -> dict[str, Any]:
    args = {"op_name": operation, "provider": "CPUExecutionProvider", "output_type_shape": [{"float": outputs}]}
    args |= {"input_type_shape": [{"float": shape} for shape in inputs]}
    common = {"cat": "Node", "pid": 1, "tid": 1, "ph": "X"}
    return common | {"ts": 5, "dur": 4, "name": "n_kernel_time", "args": args}


@pytest.mark.parametrize(
    ("operation", "outputs", "inputs", "flop", "elements"),
    [
        ("Conv", [2, 4, 5, 5], [[2, 3, 9, 9], [4, 3, 3, 3], [4]], 2 * 200 * 27, 2 * 243 + 108 + 200),
        ("FusedConv", [2, 4, 5, 5], [[2, 4, 5, 5], [4], [2, 4, 5, 5]], 0, 0),  # no weight among the inputs
        ("Conv", [4, 4, 5, 5], [[4, 3, 9, 9], [4, 4, 5, 5]], 0, 0),  # which may be what is added
        ("MatMul", [3, 8, 32], [[3, 8, 16], [3, 16, 32]], 3 * 2 * 8 * 16 * 32, 3 * (8 * 16 + 16 * 32 + 8 * 32)),
        ("MatMul", [3, 8, 32], [[3, 8, 16]], 3 * 2 * 8 * 16 * 32, 3 * (8 * 16 + 8 * 32) + 16 * 32),
        ("FusedMatMul", [8, 32], [[16, 8], [32, 16]], 2 * 8 * 16 * 32, 8 * 16 + 16 * 32 + 8 * 32),
        ("Gemm", [8, 32], [[8, 16], [32]], 2 * 8 * 16 * 32, 8 * 16 + 16 * 32 + 8 * 32),
        ("MatMul", [3, 8], [[3, 8, 16], [16]], 0, 0),
        ("Einsum", [8, 32], [[8, 16], [16, 32]], 0, 0),
    ],
)
def test_the_work_of_a_node_of_onnx_runtime(
    operation: str, outputs: list[int], inputs: list[list[int]], flop: int, elements: int, tmp_path: Path
) -> None:
    fence = node(operation, [], []) | {"ts": 4, "dur": 1, "name": "n_fence_before", "args": {"op_name": operation}}
    path = tmp_path / "trace.json"
    path.write_text(json.dumps([fence, node(operation, outputs, inputs)]))
    traceconv.convert(path, tmp_path / "same.pftrace")
    for file in (path, tmp_path / "same.pftrace"):
        (section,) = traceconv.report([file], Questions(["flops"]))
        found = [(row["name"], row["gflop"] * 1e9, row["flop_per_byte"], row["time_ns"]) for row in section.records()]
        assert found == ([(operation, flop, pytest.approx(flop / (4 * elements)), 4000)] if flop else [])
        assert section.notes == (
            [] if flop else [f"left out: 1 call whose work is not computed, 4 µs in all: {operation}"]
        )


def test_a_call_that_holds_another_one_does_not_count(tmp_path: Path) -> None:
    """The work of the outer call is that of the inner one, and the kernel of another operator is of none of these."""
    dims: list[list[int]] = [[2, 3, 9, 9], [4, 3, 3, 3]]
    outer = call("aten::_convolution", 0, dims, ["", "", "", *["[1, 1]"] * 3, "False"]) | {"dur": 20}
    inner = call("aten::cudnn_convolution", 5, dims, ["", "", *["[1, 1]"] * 3])
    section = flops(
        tmp_path,
        [outer, inner, *launched(1, 5, 30), call("aten::relu", 40, [[2, 3]], [""]), *launched(2, 40, 10)],
    )
    assert [(row["name"], row["time_ns"]) for row in section.records()] == [("aten::cudnn_convolution", 30_000)]
    assert section.notes == ["75.0 % of the time of launched device work is that of these calls"]


def test_the_peak_of_a_named_device_is_that_of_its_types(tmp_path: Path) -> None:
    dims = [[8, 16], [16, 32]]
    for name, types in (("H100-SXM", {"c10::BFloat16", "c10::Half"}), ("v100-sxm", {"c10::Half"})):
        for element in ("c10::BFloat16", "c10::Half", "float"):
            events = [call("aten::mm", 0, dims, ["", ""], element), *launched(1, 0, 4)]
            (row,) = flops(tmp_path, events, name).records()
            (of_numbers,) = flops(tmp_path, events, "989.5,3350" if name == "H100-SXM" else "125,900").records()
            assert row["limit_share"] == (of_numbers["limit_share"] if element in types else None)
            assert of_numbers["limit_share"] > 0


def test_an_unknown_device_is_answered_by_the_known_ones() -> None:
    with pytest.raises(UsageError) as raised:
        parse_peak("H100")
    assert "H100-PCIe, H100-SXM" in raised.value.hint
    assert all(parse_peak(name) == parse_peak(name.upper()) == peak for name, peak in PEAKS.items())


@pytest.mark.parametrize("peak", ["989", "989,", "0,1", "inf,1", "a,b", "1,2,3", "H100", "A100"])
def test_a_peak_is_two_numbers(peak: str) -> None:
    with pytest.raises(UsageError, match="it is neither two numbers nor a known device"):
        Questions(peak=peak).check()

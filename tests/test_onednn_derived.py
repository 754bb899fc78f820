"""What is derived from oneDNN's problem texts, and sums of durations as users of the logs make them."""

from __future__ import annotations

import json
from collections import defaultdict
from decimal import Decimal
from pathlib import Path

import pytest

from tests.golden import ROOT
from traceconv.api import read
from traceconv.families.onednn.grammar import NO_WORK, Work, work_of
from traceconv.model.trace import Trace

F32 = b"src:f32::blocked:abcd::f0 wei:f32::blocked:abcd::f0 bia:f32::blocked:a::f0 dst:f32::blocked:abcd::f0"
OLD = b"src_f32::blocked:abcd:f0 wei_f32::blocked:abcd:f0 dst_f32::blocked:abcd:f0"


@pytest.mark.parametrize(
    ("primitive", "memory", "problem", "operations", "size"),
    [
        # 4 images, 20 -> 50 channels, 8 x 8 results of 5 x 5 taps
        (
            b"convolution",
            OLD,
            b"mb4_ic20oc50_ih12oh8kh5sh1dh0ph0_iw12ow8kw5sw1dw0pw0",
            2 * 4 * 50 * 8 * 8 * 20 * 5 * 5,
            4 * (4 * 20 * 12 * 12 + 50 * 20 * 5 * 5 + 4 * 50 * 8 * 8),
        ),
        # depthwise: each result channel sees one source channel
        (
            b"convolution",
            F32,
            b"g32mb4_ic32oc32_ih15oh15kh3sh1dh0ph1_iw15ow15kw3sw1dw0pw1",
            2 * 4 * 32 * 15 * 15 * 3 * 3,
            4 * (4 * 32 * 15 * 15 + 32 * 3 * 3 + 4 * 32 * 15 * 15),
        ),
        # one dimension of space, negative padding, bf16 into f32
        (
            b"convolution",
            b"diff_src:bf16::blocked:acb::f0 wei:bf16::blocked:acb::f0 diff_dst:f32::blocked:acb::f0",
            b"mb1_g2ic4oc6_iw10ow7kw3sw1dw0pw-1",
            2 * 1 * 6 * 7 * 2 * 3,
            2 * (4 * 10) + 2 * (6 * 2 * 3) + 4 * (6 * 7),
        ),
        # three dimensions
        (
            b"convolution",
            OLD,
            b"mb1_ic2oc3_id4od2kd3sd1dd0pd0_ih5oh3kh3sh1dh0ph0_iw6ow4kw3sw1dw0pw0",
            2 * 3 * (2 * 3 * 4) * 2 * 27,
            4 * (2 * 4 * 5 * 6 + 3 * 2 * 27 + 3 * 2 * 3 * 4),
        ),
        # each source element meets each tap of each result channel
        (
            b"deconvolution",
            OLD,
            b"mb1_ic2oc3_ih4oh8kh2sh2dh0ph0_iw4ow8kw2sw2dw0pw0",
            2 * 2 * 4 * 4 * 3 * 2 * 2,
            4 * (2 * 4 * 4 + 2 * 3 * 2 * 2 + 3 * 8 * 8),
        ),
        (b"inner_product", OLD, b"mb8ic3200oc10", 2 * 8 * 3200 * 10, 4 * (8 * 3200 + 3200 * 10 + 8 * 10)),
        (
            b"inner_product",
            OLD,
            b"mb2_ic3_ih4_iw5_oc7",
            2 * 2 * 3 * 4 * 5 * 7,
            4 * (2 * 60 + 60 * 7 + 2 * 7),
        ),
        (
            b"matmul",
            b"src:u8::blocked:ab::f0 wei:s4::blocked:ab::f0 dst:bf16::blocked:ab::f0",
            b"3x5:5x7:3x7",
            2 * 3 * 5 * 7,
            15 + 18 + 2 * 21,
        ),
        (b"matmul", OLD, b"128x256:256x512", 2 * 128 * 256 * 512, 4 * (128 * 256 + 256 * 512 + 128 * 512)),
        # batches: one of weights serves all
        (b"matmul", OLD, b"8x2x3:1x3x4", 2 * 8 * 2 * 3 * 4, 4 * (48 + 12 + 64)),
        (b"reorder", b"src:f32::blocked:abcd::f0 dst:bf16::blocked:AcdB16a2b::f0", b"32x32x3x3", 0, 9216 * 6),
        (b"reorder", b"in:f32_nchw out:f32_nChw8c", b"8x3x28x28", 0, 18816 * 8),
        # the first versions print no data types with convolutions
        (b"convolution", b"fsrc:nchw fwei:oihw fbia:x fdst:nchw", b"mb1_ic1oc1_iw3ow1kw3sw1dw0pw0", 6, 0),
    ],
)
def test_work(primitive: bytes, memory: bytes, problem: bytes, operations: int, size: int) -> None:
    assert work_of(primitive, memory, problem) == Work(operations, size)


@pytest.mark.parametrize(
    ("primitive", "memory", "problem"),
    [
        (b"eltwise", F32, b"8x8"),
        (b"matmul", F32, b"*x256:256x512:*x512"),
        (b"matmul", F32, b"-9223372036854775808x256:256x512"),
        (b"matmul", F32, b"2x3:4x5"),
        (b"matmul", F32, b"8:8"),
        (b"matmul", b"src:f32::csr:f32:s32::f0 wei:f32::blocked:ab::f0 dst:f32::blocked:ab::f0", b"2x3:3x5"),
        (b"convolution", F32, b"mb1_ic3oc64"),
        (b"convolution", F32, b"g2mb1_ic3oc1_iw3ow1kw3sw1dw0pw0"),
        (b"convolution", F32, b"#"),
        (b"inner_product", F32, b""),
        (b"reorder", F32, b"4x0x"),
        (b"reorder", b"src:f32::blocked:a::f0 dst:x16::blocked:a::f0", b"8"),
        (b"reorder", b"src:f32::blocked:a::f0 dst:f32::blocked:a::f0", b"999999999999999999x999999999"),
    ],
)
def test_nothing_is_derived_where_it_is_not_well_defined(primitive: bytes, memory: bytes, problem: bytes) -> None:
    assert work_of(primitive, memory, problem) == NO_WORK


def one_line(tmp_path: Path, duration: str) -> dict[str, object]:
    path = tmp_path / "onednn.log"
    path.write_text(
        "onednn_verbose,v1,primitive,exec,cpu,matmul,ref,undef,src:f32::blocked:ab::f0 wei:f32::blocked:ab::f0 "
        f"dst:f32::blocked:ab::f0,,,1000x1000:1000x1000:1000x1000,{duration}\n"
    )
    trace = read(path)
    args: dict[str, object] = json.loads(trace.args.get(int(trace.slices.args_at[0]), int(trace.slices.args_len[0])))
    return {key: value for key, value in args.items() if key.startswith("derived_")}


def test_rates_are_those_of_the_duration(tmp_path: Path) -> None:
    assert one_line(tmp_path, "2.5") == {
        "derived_gflop": 2.0,
        "derived_bytes": 12_000_000,
        "derived_gflops_per_s": 800,
        "derived_gb_per_s": 4.8,
    }


@pytest.mark.parametrize("duration", ["0", "-0.000976562"])
def test_no_rate_without_a_duration(tmp_path: Path, duration: str) -> None:
    assert one_line(tmp_path, duration).keys() == {"derived_gflop", "derived_bytes"}


# -- sums of durations ----------------------------------------------------------------------------------------------


def by_awk(log: Path, words: bytes, field: int) -> tuple[Decimal, int]:
    """grep "words" | awk 'BEGIN{FS=","} {SUM+=$field} END {print SUM}', and the number of lines."""
    found = [line.split(b",") for line in log.read_bytes().splitlines() if words in line]
    return sum((Decimal(fields[field - 1].decode()) for fields in found), Decimal(0)), len(found)


def by_slices(trace: Trace, operation: str) -> dict[str, list[tuple[int, Decimal]]]:
    """Of each primitive the durations: in ns as drawn, in ms as printed."""
    table = trace.slices
    group, _, cache = operation.partition(":")
    found = defaultdict(list)
    for row in range(len(table.ts)):
        args = json.loads(trace.args.get(int(table.args_at[row]), int(table.args_len[row])), parse_float=Decimal)
        if trace.strings[table.category[row]] == group and args.get("cache", "") == cache:
            found[trace.strings[table.name[row]].removeprefix("create ")].append(
                (int(table.dur[row]), Decimal(args["dur_ms"]))
            )
    return found


@pytest.mark.parametrize(
    ("case", "words", "field"),
    [
        # as in the tutorial of MXNet: field 11 of versions 1.1 to 2.0
        ("dnnl-v2", "exec,cpu,{}", 11),
        ("dnnl-v2", "create:cache_miss,cpu,{}", 11),
        ("mkldnn-v1", "exec,cpu,{}", 10),
        ("v1-no-ts", "exec,cpu,{}", 13),
    ],
)
def test_sums_agree_with_the_line_of_awk(case: str, words: str, field: int) -> None:
    log = ROOT / "onednn-verbose" / case / "input.log"
    found = by_slices(read(log), words.partition(",")[0])
    assert found
    for primitive, durations in found.items():
        total, lines = by_awk(log, f"{words.format(primitive)},".encode(), field)
        assert lines == len(durations)
        assert total == sum(ms for _, ms in durations)
        # As drawn, each is the true number of whole microseconds next to the printed one.
        assert abs(total * 10**6 - sum(ns for ns, _ in durations)) <= 500 * lines

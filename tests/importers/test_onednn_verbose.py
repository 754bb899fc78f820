"""The oneDNN importer: line grammars, times, runs, mixed and broken text."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from traceconv.errors import MalformedInput
from traceconv.families.onednn.verbose import OnednnVerbose
from traceconv.families.registry import Certainty
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import Run, Zero
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import Trace
from traceconv.model.track_table import TrackKind

GOLDEN = Path(__file__).parents[2] / "golden" / "onednn-verbose"
CASES = sorted(path.name for path in GOLDEN.iterdir())
TS = 1795244047598493000


def read_file(path: Path, **options: Any) -> Trace:
    builder = Builder(SourceInfo(path.name, OnednnVerbose.name), OnednnVerbose.clock)
    OnednnVerbose(**options).read(Source(path), builder)
    return builder.finish()


@pytest.fixture
def read(tmp_path: Path) -> Any:
    def read_text(text: str | bytes, **options: Any) -> Trace:
        path = tmp_path / "run.log"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_file(path, **options)

    return read_text


def golden(name: str) -> Trace:
    return read_file(GOLDEN / name / "input.log")


def rows(trace: Trace, table: str = "slices") -> list[dict[str, Any]]:
    events = getattr(trace, table)
    found = []
    for i in range(len(events.ts)):
        track = trace.tracks[events.track[i]]
        found.append(
            {
                "ts": int(events.ts[i]),
                "dur": int(events.dur[i]) if table == "slices" else None,
                "name": trace.strings[events.name[i]],
                "category": trace.strings[events.category[i]],
                "track": track.name,
                "clock": trace.clocks[track.clock],
                "line": int(events.origin[i]),
                "args": json.loads(trace.args.get(int(events.args_at[i]), int(events.args_len[i])) or b"{}"),
            }
        )
    return found


def problems(trace: Trace) -> dict[str, int]:
    return {entry.code.name: entry.count for entry in trace.sources[0].diagnostics}


def head(text: bytes) -> Head:
    return Head(text, True, "unknown")


CONV = "alg:convolution_direct,mb8_ic3oc20"
FIELDS = {"impl": "jit:x", "prop_kind": "forward_inference", "aux": "alg:convolution_direct", "problem": "mb8_ic3oc20"}
GRAPH_FIELDS = {
    "engine": "cpu",
    "partition_id": 100022,
    "partition_kind": "convolution_post_ops",
    "op_names": "aten::_convolution;aten::relu",
    "data_formats": "data:NCX; filter:OIX;;",
    "tensors": "in0_f32:0 out0_f32:9",
    "fpmath_mode": "strict",
    "backend": "dnnl_backend",
}
GRAPH = (
    "cpu,100022,convolution_post_ops,aten::_convolution;aten::relu,data:NCX; filter:OIX;;,in0_f32:0 out0_f32:9,"
    "fpm:strict"
)

GRAMMARS = [
    (
        "mkldnn 0.x",
        f"mkldnn_verbose,exec,convolution,jit:x,forward_inference,fsrc:nchw fwei:oihw,{CONV},1.05884",
        "exec",
        {**FIELDS, "memory": "fsrc:nchw fwei:oihw"},
    ),
    (
        "mkldnn 1.0",
        f"mkldnn_verbose,create,cpu,convolution,jit:x,forward_inference,src_f32::blocked:abcd:f0,{CONV},1.05884",
        "create",
        {**FIELDS, "engine": "cpu", "memory": "src_f32::blocked:abcd:f0"},
    ),
    (
        "dnnl before 1.1",
        f"dnnl_verbose,create:cache_miss,cpu,convolution,jit:x,forward_inference,src_f32::blocked:a:f0,{CONV},1.05884",
        "create",
        {**FIELDS, "engine": "cpu", "memory": "src_f32::blocked:a:f0", "cache": "cache_miss"},
    ),
    (
        "dnnl 1.1",
        f"dnnl_verbose,create:cache_miss,cpu,convolution,jit:x,forward_inference,src_f32::blocked:a:f0,,{CONV},1.05884",
        "create",
        {**FIELDS, "engine": "cpu", "memory": "src_f32::blocked:a:f0", "cache": "cache_miss"},
    ),
    (
        "dnnl 2.1 with quotes in attributes",
        "dnnl_verbose,1795244047598.493000,exec,cpu,convolution,jit:x,forward_inference,src_f32::blocked:a:f0,"
        f"oscale:2;post_ops:'eltwise_relu;sum'; ,{CONV},1.05884",
        "exec",
        {
            **FIELDS,
            "engine": "cpu",
            "memory": "src_f32::blocked:a:f0",
            "attrs": "oscale:2;post_ops:'eltwise_relu;sum';",
        },
    ),
    (
        "onednn 2.5 to 3.2",
        "onednn_verbose,1795244047598.492920,exec,cpu,convolution,jit:x,forward_inference,src_f32::blocked:a:f0,"
        f"attr-scratchpad:user ,{CONV},1.05884",
        "exec",
        {**FIELDS, "engine": "cpu", "memory": "src_f32::blocked:a:f0", "attrs": "attr-scratchpad:user"},
    ),
    (
        "onednn 3.3 to 3.5",
        "onednn_verbose,1795244047598.492920,primitive,create:from_cache_blob,cpu,convolution,jit:x,forward_inference,"
        f"src_f32:a:blocked:a::f0,,{CONV},1.05884",
        "create",
        {
            **FIELDS,
            "component": "primitive",
            "engine": "cpu",
            "memory": "src_f32:a:blocked:a::f0",
            "cache": "from_cache_blob",
        },
    ),
    (
        "onednn v1",
        "onednn_verbose,v1,1795244047598.492920,primitive,exec:external,cpu,convolution,jit:x,forward_inference,"
        f"src:f32:a:blocked:a::f0 bia:undef::undef:::,,{CONV},1.05884",
        "exec",
        {
            **FIELDS,
            "component": "primitive",
            "variant": "external",
            "engine": "cpu",
            "memory": "src:f32:a:blocked:a::f0 bia:undef::undef:::",
        },
    ),
    (
        "nested creation of debug builds",
        "onednn_verbose,v1,primitive,create_nested:cache_hit,cpu,convolution,jit:x,forward_inference,"
        f"src:f32::blocked:a::f0,,{CONV},1.05884",
        "create",
        {
            **FIELDS,
            "component": "primitive",
            "op": "create_nested",
            "cache": "cache_hit",
            "engine": "cpu",
            "memory": "src:f32::blocked:a::f0",
        },
    ),
    (
        "digits in groups",
        "onednn_verbose,exec,cpu,convolution,jit:x,forward_inference,src_f32::blocked:a:f0,,"
        "alg:convolution_direct,mb8_ic1,024oc20,1.05884",
        "exec",
        {**FIELDS, "engine": "cpu", "memory": "src_f32::blocked:a:f0", "problem": "mb8_ic1,024oc20"},
    ),
    (
        "graph 3.3",
        f"onednn_verbose,1795244047598.492920,graph,exec,{GRAPH},dnnl_backend,1.05884",
        "graph",
        {**GRAPH_FIELDS, "component": "graph"},
    ),
    (
        "graph v1",
        f"onednn_verbose,v1,1795244047598.492920,graph,compile:cache_miss,{GRAPH},conv_fwd_t,dnnl_backend,1.05884",
        "compile",
        {**GRAPH_FIELDS, "component": "graph", "cache": "cache_miss", "impl": "conv_fwd_t"},
    ),
    (
        "graph 3.13",
        f"onednn_verbose,v1,graph,exec,{GRAPH},conv_fwd_t,scratchpad:4096,dnnl_backend,1.05884",
        "graph",
        {**GRAPH_FIELDS, "component": "graph", "impl": "conv_fwd_t", "scratchpad": 4096},
    ),
    ("graph marker", f"onednn_graph_verbose,exec,{GRAPH},dnnl_backend,1.05884", "graph", GRAPH_FIELDS),
    (
        "graph marker with counts",
        f"onednn_graph_verbose,exec,{GRAPH},dnnl_backend,1.05884,12,3",
        "graph",
        {**GRAPH_FIELDS, "counts": "12,3"},
    ),
    (
        "comma in an op name",
        f"onednn_verbose,v1,graph,exec,{GRAPH.replace('aten::relu', 'my,relu')},dnnl_backend,1.05884",
        "graph",
        {**GRAPH_FIELDS, "component": "graph", "op_names": "aten::_convolution;my,relu"},
    ),
    (
        "generated partition in another layout",
        "onednn_verbose,v1,graph,exec,cpu,18446744073709551615,convolution_post_ops,{a,b},{c},dnnl_backend,1.05884",
        "graph",
        {
            "component": "graph",
            "engine": "cpu",
            "partition_id": 2**64 - 1,
            "partition_kind": "convolution_post_ops",
            "details": "{a,b},{c}",
            "backend": "dnnl_backend",
        },
    ),
]


@pytest.mark.parametrize(("line", "category", "args"), [case[1:] for case in GRAMMARS], ids=[c[0] for c in GRAMMARS])
def test_grammar(read: Any, line: str, category: str, args: dict[str, Any]) -> None:
    trace = read(line + "\n")
    (row,) = rows(trace)
    work = "convolution" if "partition_id" not in args else "convolution_post_ops"
    assert row["name"] == (f"{category} {work}" if category in ("create", "compile") else work)
    assert row["category"] == category
    assert row["dur"] == 1_059_000
    assert row["args"] == {"dur_ms": 1.05884, **args}
    assert row["line"] == 1
    if "1795244047598" in line:
        assert row["ts"] == TS
        assert row["clock"].zero is Zero.UNIX_EPOCH
    else:
        assert row["clock"].run is Run.NONE
    assert not problems(trace)


@pytest.mark.parametrize("name", CASES)
def test_every_line_is_counted_once(name: str) -> None:
    trace = golden(name)
    balance = trace.sources[0].balance
    assert balance.even, balance.describe()
    assert balance.unit == "lines"
    data = (GOLDEN / name / "input.log").read_bytes()
    assert balance.read == data.count(b"\n") + (not data.endswith(b"\n"))


REAL = [
    "mkldnn-v0",
    "mkldnn-v1",
    "dnnl-v2",
    "v2-threads-ts",
    "v35-tensorflow-ts",
    "v1-mixed-ts",
    "v1-no-ts",
    "graph-ts",
    "graph-no-ts",
    "filter-ts",
    "v313-openvino-ts",
    "torch-convnet-process",
    "mxnet-dnnl-process",
]


@pytest.mark.parametrize("case", REAL)
def test_totals_are_those_of_the_last_fields(case: str) -> None:
    expected: dict[str, Decimal] = defaultdict(Decimal)
    count: dict[str, int] = defaultdict(int)
    for line in (GOLDEN / case / "input.log").read_text().splitlines():
        _, marker, rest = line.partition("_verbose,")
        fields = rest.split(",")
        at = next((i for i, field in enumerate(fields) if field.split(":")[0] in ("exec", "create", "compile")), None)
        if not marker or at is None:
            continue
        in_graph = fields[at - 1] == "graph" and at > 0
        skip = 1 if case == "mkldnn-v0" else 3 if in_graph else 2
        group = fields[at].split(":")[0]
        name = fields[at + skip] if group == "exec" else f"{group} {fields[at + skip]}"
        expected[name] += Decimal(fields[-1]) * 1_000_000
        count[name] += 1
    actual: dict[str, int] = defaultdict(int)
    for row in rows(golden(case)):
        actual[row["name"]] += row["dur"]
    assert set(actual) == set(expected)
    for primitive, total in expected.items():
        assert abs(actual[primitive] - total) <= 500 * count[primitive]


TIMED = [name for name in REAL if name.endswith(("-ts", "process")) and "no-ts" not in name]


@pytest.mark.parametrize("name", TIMED)
def test_wall_clock_is_recovered_to_the_microsecond(name: str) -> None:
    trace = golden(name)
    text = (GOLDEN / name / "input.log").read_bytes().decode().split("\n")
    for row in rows(trace):
        printed = next(field for field in text[row["line"] - 1].split(",") if field.startswith("17952"))
        printed_ns = Decimal(printed) * 1_000_000
        assert row["ts"] % 1000 == 0
        # A double of this size steps by 244 ns, so the print is at most half of that away.
        assert abs(row["ts"] - printed_ns) <= 123
        assert row["clock"].resolution_ns == 1000


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("0", 0),
        ("0.000976562", 1_000),
        ("0.00195312", 2_000),
        ("0.0100098", 10_000),
        ("12.9661", 12_966_000),
        ("35.489", 35_489_000),
        ("1234.56", 1_234_560_000),
        ("1e-05", 10),  # no difference of two microsecond clocks: kept as printed
        ("0.0123", 12_300),
    ],
)
def test_durations(read: Any, text: str, ns: int) -> None:
    (row,) = rows(read(f"onednn_verbose,exec,cpu,matmul,brg:x,undef,src_f32::blocked:a:f0,,,8x8:8x8,{text}\n"))
    assert row["dur"] == ns
    assert row["args"]["dur_ms"] == float(text)


def test_gpu_durations_are_kept_to_the_digit(read: Any) -> None:
    (row,) = rows(read("onednn_verbose,exec,gpu,matmul,ocl:x,undef,src_f32::blocked:a:f0,,,8x8:8x8,0.0100098\n"))
    assert row["dur"] == 10_010


def exec_line(ts: str, name: str, dur: str) -> str:
    stamp = f"{ts}," if ts else ""
    return f"onednn_verbose,v1,{stamp}primitive,exec,cpu,{name},jit:x,undef,src:f32::blocked:ab::f0,,,32,{dur}"


def test_without_timestamps_slices_follow_each_other_per_engine(read: Any) -> None:
    lines = [exec_line("", name, "0.25") for name in ("reorder", "matmul")]
    lines.insert(1, exec_line("", "softmax", "0.5").replace(",cpu,", ",gpu,"))
    trace = read("\n".join(lines) + "\n")
    found = [(row["name"], row["ts"], row["track"]) for row in rows(trace)]
    assert found == [
        ("reorder", 0, "cpu (synthetic)"),
        ("softmax", 0, "gpu (synthetic)"),
        ("matmul", 250_000, "cpu (synthetic)"),
    ]
    assert [clock.run for clock in trace.clocks] == [Run.NONE]
    track = next(track for track in trace.tracks if "synthetic" in track.name)
    assert "durations are real, positions are not" in track.description
    assert any("ONEDNN_VERBOSE_TIMESTAMP=1" in note for note in trace.sources[0].notes)


def test_synthetic_partition_covers_the_primitives_that_fit() -> None:
    found = rows(golden("graph-no-ts"))
    partitions = [row for row in found if row["category"] == "graph"]
    assert len(partitions) == 6
    first, second = partitions[0], partitions[1]
    # The first partition ran three primitives that are printed before it; the sum of theirs is less than its own time.
    inner = [row for row in found if row["category"] == "exec" and first["ts"] <= row["ts"] < first["ts"] + 136_000]
    assert [row["name"] for row in inner] == ["reorder", "reorder", "convolution"]
    assert second["ts"] >= first["ts"] + first["dur"]
    exec_rows = sorted((row["ts"], row["dur"]) for row in found if row["category"] == "exec")
    assert all(a[0] + a[1] <= b[0] for a, b in pairwise(exec_rows))


def test_a_partition_that_is_shorter_covers_only_the_last_ones(read: Any) -> None:
    lines = [exec_line("", "reorder", "0.5"), exec_line("", "matmul", "0.25")]
    lines.append(f"onednn_verbose,v1,graph,exec,{GRAPH},conv_fwd_t,dnnl_backend,0.375")
    found = {row["name"]: (row["ts"], row["dur"]) for row in rows(read("\n".join(lines) + "\n"))}
    assert found["convolution_post_ops"] == (500_000, 375_000)


def test_partitions_enclose_their_primitives_in_time() -> None:
    found = rows(golden("graph-ts"))
    for outer in (row for row in found if row["category"] == "graph"):
        inner = [r for r in found if r["category"] == "exec" and outer["ts"] <= r["ts"] < outer["ts"] + outer["dur"]]
        assert inner
        assert all(row["ts"] + row["dur"] <= outer["ts"] + outer["dur"] for row in inner)


def test_text_of_the_program_does_not_matter() -> None:
    trace = golden("glued")
    found = [(row["line"], row["name"], row["args"]["problem"]) for row in rows(trace)]
    assert found == [
        (1, "reorder", "16x3"),
        (2, "reorder", "16x4"),
        (3, "matmul", "8x8:8x8"),
        (4, "eltwise", "32"),
        (4, "eltwise", "33"),
        (5, "softmax", "64x96"),
        (8, "pooling", "mb1ic2_ih4oh2"),
    ]
    assert problems(trace) == {"onednn.cut_line": 1, "onednn.other_line": 2}
    assert trace.sources[0].balance.written == 6


def test_marker_glued_to_a_letter(read: Any) -> None:
    trace = read(b"done" + exec_line("1795244047598.492920", "matmul", "0.25").encode() + b"\n")
    assert [row["name"] for row in rows(trace)] == ["matmul"]


def test_decimal_comma() -> None:
    trace = golden("decimal-comma")
    assert [(row["ts"], row["dur"]) for row in rows(trace)] == [
        (1795245228507134000, 133_000),
        (1795245228520302000, 0),
        (1795245228521024000, 12_966_000),
        (1795245228540000000, 98),
        (1795245228541000000, 250_000),
    ]
    assert rows(trace)[-1]["args"]["problem"] == "1,024x128:128x96"
    assert problems(trace) == {"onednn.decimal_comma": 5}


def test_an_integer_problem_is_no_decimal_comma(read: Any) -> None:
    trace = read(exec_line("1795244047598.492920", "reorder", "5") + "\n")
    assert [(row["dur"], row["args"]["problem"]) for row in rows(trace)] == [(5_000_000, "32")]
    assert not problems(trace)


@pytest.mark.parametrize("text", ["nan", "-nan(ind)", "inf", "", "abc", "1e+300", "0x10", "1e", "--1", "1.5.2"])
def test_bad_duration_is_left_out_and_counted(read: Any, text: str) -> None:
    trace = read(exec_line("1795244047598.492920", "reorder", text) + "\n")
    assert not rows(trace)
    assert problems(trace) == {"onednn.bad_duration": 1}
    assert trace.sources[0].balance.skipped["skipped (onednn.bad_duration)"] == 1
    (entry,) = trace.sources[0].diagnostics
    assert "run.log:line 1" in entry.places[0]


def test_negative_duration_has_no_length_and_keeps_its_value(read: Any) -> None:
    trace = read(exec_line("1795244047598.492920", "reorder", "-0.000976562") + "\n")
    (row,) = rows(trace)
    assert (row["dur"], row["args"]["negative_dur_ns"]) == (0, -1000)
    assert problems(trace) == {"slice.negative_duration": 1}


WHOLE = exec_line("1795244047598.492920", "reorder", "0.133057")


@pytest.mark.parametrize("length", range(len("onednn_verbose,") + 1, len(WHOLE)))
def test_a_cut_last_line_never_becomes_a_slice(read: Any, length: int) -> None:
    trace = read(exec_line("1795244047598.400000", "matmul", "0.25") + "\n" + WHOLE[:length])
    assert [row["name"] for row in rows(trace)] == ["matmul"]
    assert problems(trace) == {"onednn.cut_line": 1}
    assert trace.sources[0].balance.even


@pytest.mark.parametrize("dur", ["0.133057", "0.25", "0.0078125", "12.9661"])
def test_a_complete_last_line_needs_no_line_end(read: Any, dur: str) -> None:
    trace = read(exec_line("1795244047598.492920", "reorder", dur))
    assert len(rows(trace)) == 1
    assert not problems(trace)


@pytest.mark.parametrize(
    "line", ["primitive,exec,cpu,reorder,jit:x,undef,src:f32::blocked:a::f0,,,16", "primitive,exec,cpu,reorder,5"]
)
def test_too_few_fields_are_no_slice_even_if_a_number_is_last(read: Any, line: str) -> None:
    trace = read(f"onednn_verbose,v1,{line}\n")
    assert not rows(trace)
    assert problems(trace) == {"onednn.cut_line": 1}


@pytest.mark.parametrize(
    ("fields", "is_whole"),
    [
        ("exec,cpu,inner_product,gemm:jit,forward_inference,src_f32::blocked:ab:f0,,mb8ic3200oc10,0.065918", True),
        ("exec,cpu,reorder,jit:uni,undef,src_f32::blocked:a:f0 dst_f32::blocked:a:f0,num:1,16,1e-05", True),
        ("exec,cpu,reorder,jit:uni,undef,src_f32::blocked:a:f0 dst_f32::blocked:a:f0,num:1,16,2", True),
        ("exec,gpu,reorder,ocl:ref,undef,src_f32::blocked:a:f0 dst_f32::blocked:a:f0,num:1,16,0.5", True),
        # cut before the duration: what is last is the problem
        ("exec,cpu,reorder,jit:uni,undef,src_f32::blocked:a:f0 dst_f32::blocked:a:f0,,num:1,16", False),
        ("exec,cpu,reorder,jit:uni,undef,src_f32::blocked:a:f0,oscale:0:0.5;,num:1,2x16x7x7", False),
        ("exec,cpu,reorder,jit:uni,undef,src_f32::blocked:a:f0,attr-scratchpad:user,,16", False),
    ],
)
def test_dnnl_lines_without_attributes(fields: str, is_whole: bool, read: Any) -> None:
    trace = read(f"dnnl_verbose,{fields}\n{exec_line('', 'matmul', '0.25')}\n")
    assert [row["name"] for row in rows(trace)] == ([fields.split(",")[2]] if is_whole else []) + ["matmul"]
    assert problems(trace) == ({} if is_whole else {"onednn.cut_line": 1})


def test_version_0_of_the_manual_is_known(read: Any) -> None:
    trace = read(exec_line("1795244047598.492920", "reorder", "0.133057").replace(",v1,", ",v0,") + "\n")
    assert [row["name"] for row in rows(trace)] == ["reorder"]
    assert not problems(trace)


def test_unknown_operations_that_end_in_a_duration_are_kept() -> None:
    row = rows(golden("bad-durations"))[-1]
    assert (row["name"], row["dur"], row["args"]["op"]) == ("reorder", 250_000, "reset")
    assert problems(golden("bad-durations"))["onednn.unknown_line"] == 1


def test_messages_become_instants() -> None:
    found = rows(golden("all-ts"), "instants")
    assert found[0]["name"] == "dispatch convolution"
    assert found[0]["category"] == "dispatch"
    assert found[0]["ts"] == 1795244029310403000
    assert found[0]["track"] == "messages"
    assert found[0]["args"]["source"] == "src/cpu/x64/jit_brdgmm_dw_conv.cpp:181"
    padding = next(row for row in found if "padding" in row["args"]["message"])
    assert padding["args"]["message"] == "unsupported feature for padding: f,t,l padding not supported"
    check = next(row for row in found if row["category"] == "check")
    assert check["args"]["message"] == "unused primitive execution argument (80)"


@pytest.mark.parametrize(
    ("line", "name", "category"),
    [
        ("v1,common,error,runtime,bad argument,src\\common\\x.cpp:12", "error runtime", "error"),
        ("v1,primitive,create:check,matmul,bad, argument", "check matmul", "check"),
        ("error,jit,no memory", "error jit", "error"),
        ("v1,common,warning,thing,it is slow", "warning thing", "warning"),
        ("gpu,ocl_error,-5", "ocl_error", "error"),
        ("jit_perf,error,cannot open", "error", "error"),
    ],
)
def test_error_lines(read: Any, line: str, name: str, category: str) -> None:
    trace = read(exec_line("1795244047598.492920", "matmul", "0.25") + f"\nonednn_verbose,{line}\n")
    if not line.startswith("v1"):  # another grammar: another library, with a run of its own
        trace = read(
            exec_line("1795244047598.492920", "matmul", "0.25").replace("v1,", "") + f"\nonednn_verbose,{line}\n"
        )
    (row,) = rows(trace, "instants")
    assert (row["name"], row["category"]) == (name, category)
    assert row["ts"] == TS  # no time of its own: where the last timed event stands
    assert len(rows(trace)) == 1


def test_only_info_lines() -> None:
    trace = golden("info-only")
    assert not rows(trace)
    (run,) = trace.metadata["onednn_runs"]
    assert (run["version"], run["nthr"], run["cpu_runtime"], run["gpu_runtime"]) == ("3.12.0", 2, "OpenMP", "none")
    assert run["isa"] == "Intel AVX10.1 and Intel AMX with bfloat16, float16 and 8-bit integer support"
    assert run["commit"].startswith("80afa710")
    assert "ONEDNN_VERBOSE=1" in trace.sources[0].notes[0]


@pytest.mark.parametrize(
    ("name", "library", "version", "isa"),
    [
        ("mkldnn-v0", "Intel(R) MKL-DNN", "0.19.0", "Intel(R) AVX512-Deep Learning Boost (Intel(R) AVX512-DL Boost)"),
        ("mkldnn-v1", "Intel MKL-DNN", "1.0.4", "Intel AVX-512 with Intel DL Boost and bfloat16 support"),
        ("dnnl-v2", "oneDNN", "2.4.4", "Intel AVX-512 with Intel DL Boost and bfloat16 support"),
    ],
)
def test_headers_of_old_versions(name: str, library: str, version: str, isa: str) -> None:
    (run,) = golden(name).metadata["onednn_runs"]
    assert (run["library"], run["version"], run["isa"]) == (library, version, isa)


def test_a_device_name_with_a_version_is_no_header(read: Any) -> None:
    device = "gpu,engine,0,name:Some GPU v2.1, 16 GB,driver_version:1.2.3"
    trace = read(f"onednn_verbose,v1,info,oneDNN v3.12.0 (commit N/A)\nonednn_verbose,v1,info,{device}\n")
    (run,) = trace.metadata["onednn_runs"]
    assert (run["version"], run["info"]) == ("3.12.0", [device])


def test_durations_that_overflow_are_left_out(read: Any) -> None:
    trace = read((exec_line("", "reorder", "4e+12") + "\n") * 5)
    assert problems(trace)["onednn.bad_duration"] == 4
    assert len(rows(trace)) == 1


def test_a_filter_is_said_aloud() -> None:
    assert any("sums are partial" in note for note in golden("filter-ts").sources[0].notes)


def test_runs_keep_their_own_clock() -> None:
    trace = golden("two-runs")
    assert [track.name for track in trace.tracks if track.parent == -1] == [
        "oneDNN run 1",
        "oneDNN run 2",
        "oneDNN run 3",
    ]
    found = rows(trace)
    assert [row["clock"].run for row in found] == [Run.NONE, Run.NONE, Run.WALL, Run.WALL, Run.WALL]
    assert [row["ts"] for row in found][:2] == [0, 1000]
    parents = [trace.tracks[track.parent].name for track in trace.tracks if track.parent != -1]
    assert parents == ["oneDNN run 1", "oneDNN run 2", "oneDNN run 3"]
    # The header of the second library comes after its first line, and the first library goes on behind it.
    assert trace.metadata["onednn_runs"][2]["version"] == "3.12.0"
    assert trace.tracks[trace.slices.track[4]].parent == trace.tracks[trace.slices.track[2]].parent


def test_unusable_timestamps_are_not_taken() -> None:
    trace = golden("gemm-api")
    found = [(row["name"], row["track"], row["ts"]) for row in rows(trace)]
    assert found == [
        ("gemm_api", "cpu (synthetic)", 0),
        ("eltwise", "cpu", 1795245461050514000),
        ("gemm_api", "cpu (synthetic)", 10_000),
    ]
    assert rows(trace)[2]["args"]["problem"] == "16x8:8x8"
    assert problems(trace) == {"onednn.unusable_timestamp": 2}


def test_windows_counts_from_boot() -> None:
    trace = golden("boot-clock")
    assert [(row["ts"], row["dur"]) for row in rows(trace)] == [(86400123456700, 12_300), (86400124000100, 1_500_000)]
    assert [clock.zero for clock in trace.clocks] == [Zero.BOOT]


def test_gpu_calls_without_duration_are_instants() -> None:
    trace = golden("gpu")
    convolution = rows(trace, "instants")[0]
    assert (convolution["name"], convolution["args"]["problem"]) == ("convolution", "mb2_ic16oc16")
    assert problems(trace) == {"onednn.no_duration": 1}
    assert {row["track"] for row in rows(trace)} == {"gpu:1 (synthetic)", "cpu2gpu (synthetic)"}


def test_a_step_of_the_clock_is_said() -> None:
    assert problems(golden("clock-step")) == {"onednn.time_step": 1}
    assert not problems(golden("v2-threads-ts")).get("onednn.time_step")


def test_a_version_to_come_is_read_like_v1() -> None:
    trace = golden("new-version")
    assert [(row["name"], row["dur"]) for row in rows(trace)] == [("matmul", 4000), ("brgemm", 2000)]
    assert problems(trace) == {"onednn.unknown_version": 1}


def test_crlf_reads_like_lf(read: Any) -> None:
    data = (GOLDEN / "crlf" / "input.log").read_bytes()
    assert data.count(b"\r\n") == data.count(b"\n") > 0
    assert rows(read(data)) == rows(read(data.replace(b"\r\n", b"\n")))


def test_tracks_under_a_process() -> None:
    trace = read_file(GOLDEN / "under-a-process" / "input.log", pid=4242)
    assert (trace.tracks[0].kind, trace.tracks[0].pid) == (TrackKind.PROCESS, 4242)
    assert (trace.tracks[1].name, trace.tracks[1].parent) == ("oneDNN", 0)
    assert "oneDNN 3.12.0" in trace.tracks[1].description


@pytest.mark.parametrize("text", ["", "hello\n", "onednn_verbose is on\n", "MKL_VERBOSE,x\nmkl_verbose,y\n"])
def test_no_line_of_ours_at_all(read: Any, text: str) -> None:
    with pytest.raises(MalformedInput, match="no oneDNN line found"):
        read(text)


@pytest.mark.parametrize("name", [name for name in CASES if name not in ("glued", "bad-durations")])
def test_sniff_knows_its_own(name: str) -> None:
    data = (GOLDEN / name / "input.log").read_bytes()
    assert OnednnVerbose().sniff(head(data)).certainty is Certainty.YES


LINE = exec_line("1795244047598.492920", "matmul", "0.25").encode()


@pytest.mark.parametrize(
    ("text", "certainty"),
    [
        (b"", Certainty.NO),
        (b"some text\n", Certainty.NO),
        (b"the marker is onednn_verbose, as you know\n", Certainty.NO),
        (b"onednn_verbose,hello\n", Certainty.NO),
        (b"MKL_VERBOSE,x\nmkl_verbose,y\n", Certainty.NO),
        (b"step 1: " + LINE + b"\n", Certainty.MAYBE),
        (b"text\n" + LINE + b"\n", Certainty.YES),
        (b"\xef\xbb\xbf" + LINE + b"\r\n", Certainty.YES),
        (b"{'loss': 0.5}\n" + LINE + b"\n", Certainty.YES),
        (b"onednn_verbose,v1,info,oneDNN v3.12.0 (commit N/A)\n", Certainty.YES),
        (b'{"traceEvents": [{"ph": "X", "name": "\n' + LINE + b'\n"}]}', Certainty.NO),
        (b'[{"ph": "X", "name": "' + LINE + b'"}]', Certainty.NO),
        (b'{"log": "' + LINE + b'"}', Certainty.NO),
    ],
)
def test_sniff(text: bytes, certainty: Certainty) -> None:
    assert OnednnVerbose().sniff(head(text)).certainty is certainty


def test_long_lines_take_linear_time(read: Any) -> None:
    for chunk in (b"onednn_verbose,", b"1,", b"exec,", b"\x1b[", b"v1,9", b"a"):
        trace = read(LINE + b"\n" + b"onednn_verbose," + chunk * 50_000 + b"\n")
        assert trace.sources[0].balance.even


def test_damaged_logs_never_raise(read: Any) -> None:
    chance = random.Random(1)
    for name in ("graph-ts", "all-ts", "decimal-comma", "old-graph-marker", "gpu", "two-runs", "mkldnn-v0"):
        data = (GOLDEN / name / "input.log").read_bytes()[:6000]
        for _ in range(40):
            damaged = bytearray(data)
            for _ in range(chance.randrange(1, 60)):
                at = chance.randrange(len(damaged))
                damaged[at : at + chance.randrange(3)] = chance.choice(
                    [b",", b"", b"9", b":", b"e+99", b"\xff", b"\n", b"\r"]
                )
            trace = read(LINE + b"\n" + bytes(damaged))
            assert trace.sources[0].balance.even
            rows(trace)
            rows(trace, "instants")
            assert OnednnVerbose().sniff(head(bytes(damaged)))

"""The tables that tools print themselves, against `operations` of the events of the same run.

The recordings in tests/data/own_tables are our own: torch 2.13 (export_chrome_trace and key_averages().table() of one
run), MXNet 1.9.1 (dump() and dumps() of one run, as text and as JSON), and torch 2.11 on an NVIDIA H100
(`tests/record_gpu/train.py late`).
"""

from __future__ import annotations

import gzip
import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import traceconv
from tests import GROWTH_S
from tests.golden import ROOT
from traceconv import Questions
from traceconv.answers import summaries
from traceconv.answers.render import RENDERERS, page
from traceconv.answers.section import Section
from traceconv.answers.slice_tables import Rows, SliceTable
from traceconv.errors import UsageError
from traceconv.model.marks import TotalsMarks
from traceconv.model.trace import Trace

OWN = Path(__file__).parent.parent / "data" / "own_tables"
CUDA = OWN / "torch_cuda.json.gz"
TVM = ROOT / "tvm-debugger" / "means-of-repeats" / "input.log"
FURIOSA = ROOT / "furiosa" / "two-queries" / "input.json"


def operations(*paths: Path, **asked: Any) -> list[dict[str, Any]]:
    return traceconv.report(list(paths), Questions(["operations"], **asked))[0].records()


def printed(path: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    trace = traceconv.read(path)
    rows = trace.instants
    for name, category, at, size in zip(rows.name, rows.category, rows.args_at, rows.args_len, strict=True):
        args = json.loads(bytes(trace.args.view(int(at), int(size))))
        yield trace.strings[name], trace.strings[category], args


def digits(ns: int) -> int:
    """Return what the last of three decimals counts, in the unit that PyTorch chooses."""
    return 10**6 if ns >= 10**9 else 10**3 if ns >= 10**6 else 1


def test_key_averages_are_rows_of_operations() -> None:
    ours = {row["name"]: row for row in operations(OWN / "torch.json")}
    with_ranges = operations(OWN / "torch.json", by=("name", "range"))  # which are no rows by name alone
    ours |= {row["name"]: row for row in with_ranges if row["name"] not in ours}
    rows = list(printed(OWN / "torch.table.txt"))
    assert len(rows) == 20
    for name, _, args in rows:
        row = ours[name]
        for key, column in (("self_cpu_ns", "self_ns"), ("cpu_total_ns", "total_ns")):
            assert abs(args[key] - row[column]) <= digits(args[key]) / 2 + 0.5, (name, key)
        if name != "aten::div_":  # calls itself: PyTorch shows the two calls as one
            assert args["calls"] == row["count"]
            assert abs(args["cpu_time_avg_ns"] - row["mean_ns"]) <= digits(args["cpu_time_avg_ns"])


@pytest.mark.parametrize(("table", "places"), [("mxnet.dumps.txt", 4), ("mxnet.dumps.json", None)])
def test_aggregate_statistics_of_mxnet_are_rows_of_operations(table: str, places: int | None) -> None:
    ours = {(row["name"], row["category"]): row for row in operations(OWN / "mxnet.json", by=("name", "category"))}
    waits, *_ = traceconv.report([OWN / "mxnet.json"], Questions(["waits"]))
    for row in waits.records():
        ours[row["name"], "MXNET_C_API"] = row | {"mean_ns": row["total_ns"] / row["count"]}
    compared = 0
    for name, category, args in printed(OWN / table):
        if "total_ms" not in args:
            continue
        row = ours[name, category]
        compared += 1
        assert args["count"] == row["count"]
        for key, column in (("total_ms", "total_ns"), ("max_ms", "max_ns"), ("avg_ms", "mean_ns")):
            ms = row[column] / 1e6
            digit = 10.0**-places if places else 10.0 ** (len(str(int(ms))) - 4)  # JSON: four digits in all
            assert args[key] == pytest.approx(ms, abs=digit * 0.51), (name, key)
    assert compared == 14


def test_the_debug_table_of_tvm_is_rows_of_operations() -> None:
    lines = [line.split() for line in TVM.read_text(encoding="utf-8").splitlines()]
    rows = {line[0]: (line[2], float(line[3])) for line in lines if line[0].startswith("tvmgen")}
    ours = {row["name"]: row for row in operations(TVM)}
    assert ours.keys() == rows.keys()
    for name, (us, percent) in rows.items():
        assert ours[name]["total_ns"] == round(1000 * float(us))
        # TVM computes the share from times that it rounds, to 0.001 us, only for printing.
        rounding = 0.0005 + 100 * 0.0005 / 143.376
        assert 100 * ours[name]["host_share"] == pytest.approx(percent, abs=rounding)


def test_inferences_of_furiosa_are_steps() -> None:
    section, times, *_ = traceconv.report([FURIOSA], Questions(["steps"]))
    events = [one for one in json.loads(FURIOSA.read_text(encoding="utf-8")) if one.get("name") == "Inference"]
    assert len(section.rows) == len(events) == 2
    assert [row["count"] for row in times.records()] == [2]


@pytest.mark.parametrize(
    ("trace", "table", "rows"),
    [
        ("torch.json", "torch.table.txt", 20),
        ("mxnet.json", "mxnet.dumps.txt", 14),
        ("mxnet.json", "mxnet.dumps.json", 14),
    ],
)
def test_a_table_among_the_inputs_is_compared(trace: str, table: str, rows: int, tmp_path: Path) -> None:
    (section,) = traceconv.report([OWN / trace, OWN / table], Questions(["operations"]))
    assert f"{table}: {rows} of {rows} rows agree with {trace}" in section.notes
    traceconv.merge([OWN / trace, OWN / table], tmp_path / "both.pftrace")
    (again,) = traceconv.report([tmp_path / "both.pftrace"], Questions(["operations"]))
    assert f"{table}: {rows} of {rows} rows agree with {trace}" in again.notes


def test_key_averages_of_a_gpu_are_rows_of_operations() -> None:
    """Counts and times of torch 2.11 in ns, except where PyTorch counts otherwise; steps, waits and kernels apart."""
    ours: defaultdict[tuple[str, bool], Counter[str]] = defaultdict(Counter)
    tables = {section.name: section.records() for section in traceconv.report([CUDA])}
    names = {row["name"] for row in tables["operations"]}
    ranges = [row for row in operations(CUDA, by=("name", "range")) if row["count"] and row["name"] not in names]
    for row in (*tables["operations"], *ranges, *tables["waits"]):
        ours[row["name"], False].update({key: row[key] for key in ("count", "total_ns", "self_ns")})
    for row in tables["kernels"]:
        times = {"total_ns": row["total_ns"], "self_ns": row["total_ns"]}
        ours[row["name"], True].update({"count": row["count"]} | times)
    spans = [row["span_ns"] for row in tables["step_parts"]]
    others = set()
    sums = json.loads(gzip.decompress((OWN / "torch_cuda.key_averages.json.gz").read_bytes()))
    for one in sums:
        device = one["device_type"] == "DeviceType.CUDA"
        times = ("device_time_total", "self_device_time_total") if device else ("cpu_time_total", "self_cpu_time_total")
        printed = [round(1000 * one[key]) for key in times]
        if (one["key"], device) == ("ProfilerStep*", False):
            assert (one["count"], printed[0]) == (len(spans), sum(spans))
            continue
        row = ours.pop((one["key"], device), Counter())
        assert device or [row["total_ns"], row["self_ns"]] == printed
        if [row["count"], row["total_ns"], row["self_ns"]] != [one["count"], *printed]:
            others.add((one["key"], device))
    assert not ours
    assert len(sums) == 218
    called_again = {("aten::mean", False), ("aten::div", False)}
    copies = ("## load batch ##", "## forward ##", "## backward ##", "Optimizer.step#AdamW.step", "ProfilerStep*")
    assert others == called_again | {(name, True) for name in copies}


def test_a_table_of_a_gpu_is_compared() -> None:
    """Of ranges on the device, Kineto writes the end 2 ns later, which makes the shortest ones differ."""
    (section,) = traceconv.report([CUDA, OWN / "torch_cuda.table.txt.gz"], Questions(["operations"]))
    said = "torch_cuda.table.txt.gz: 216 of 218 rows agree with torch_cuda.json.gz"
    about = "compared: calls and total, but not what host rows took on the device"
    assert f"{said}; 2 differ: ## backward ##, ProfilerStep*; {about}" in section.notes
    printed_ns = {"## backward ##": 4128, "ProfilerStep*": 3776}
    ranges = [one for one in json.loads(gzip.decompress(CUDA.read_bytes()))["traceEvents"] if one.get("dur")]
    for name, total in printed_ns.items():
        some = [one for one in ranges if one["cat"] == "gpu_user_annotation" and one["name"].startswith(name[:12])]
        assert sum(round(1000 * one["dur"]) - 2 for one in some) == total


def test_rows_that_differ_are_named(tmp_path: Path) -> None:
    text = (OWN / "torch.table.txt").read_text(encoding="utf-8")
    changed = tmp_path / "changed.txt"
    text = re.sub(r"(aten::linear.*)1\.396ms", r"\g<1>1.398ms", text)
    text = re.sub(r"(aten::addmm .*)2( +\n)", r"\g<1>3\2", text)
    changed.write_text(text.replace("         aten::relu", "         aten::rely"), encoding="utf-8")
    (section,) = traceconv.report([OWN / "torch.json", changed], Questions(["operations"]))
    said = "changed.txt: 17 of 20 rows agree with torch.json; 2 differ: aten::linear, aten::addmm; "
    assert f"{said}1 have no slices there: aten::rely" in section.notes


def test_a_table_of_another_run_is_not_compared() -> None:
    section, stated = traceconv.report([OWN / "mxnet.json", OWN / "torch.table.txt"], Questions(["operations"]))
    assert not any("agree" in note for note in section.notes)
    assert section.records()[0]["count"]
    assert len(stated.rows) == 20
    assert "what tools summed up themselves is in the table stated_totals" in section.notes


#: Of each format of tables one row, with all that the tool states in ns, or in the share.
ALONE = {
    "nvprof-text/summary/input.log": {
        "name": "cudaMalloc",
        "table": "Profiling result",
        "count": 3,
        "total_ns": 148_310_000,
        "mean_ns": 49_437_000,
        "min_ns": 5_100,
        "max_ns": 148_300_000,
        "stated_share": 0.981,
        "category": "API calls",
    },
    "pytorch-table/cuda-graph/input.txt": {
        "name": "aten::_local_scalar_dense",
        "table": "PyTorch key averages",
        "count": 4,
        "total_ns": 704_145,
        "self_ns": 20_297,
        "mean_ns": 176_036,
        "device_total_ns": 6_046,
        "device_self_ns": 6_046,
    },
    "mxnet-table/v1.9-text/input.txt": {
        "name": "FullyConnected",
        "table": "MXNet totals: operator",
        "count": 4,
        "total_ns": 1_658_000,
        "mean_ns": 414_500,
        "min_ns": 10_000,
        "max_ns": 1_557_000,
        "category": "operator",
    },
    "furiosa-table/printed/input.txt": {
        "name": "LowLevelConv2d",
        "table": "Furiosa NPU operators",
        "count": 60,
        "mean_ns": 5_328,
    },
    "rocprof/stats/input.csv": {
        "name": "hipMalloc",
        "table": "ROCm statistics",
        "count": 3,
        "total_ns": 525_000,
        "mean_ns": 175_000,
        "min_ns": 150_000,
        "max_ns": 210_000,
        "stated_share": 0.385,
        "category": "statistics",
    },
    "vtune/hotspots/input.csv": {
        "name": "std::sort<int*, less>",
        "table": "VTune by Function",
        "self_ns": 1_250_000_000,
        "category": "vtune",
    },
    "perf-report/three_events_with_counts/input.txt": {
        "name": "gc_collect_main",
        "table": "perf report: cpu-clock/freq=499/",
        "count": 8,
        "stated_share": 0.0408,
        "category": "libpython3.11.so.1.0",
    },
    "nsight-compute/h100_live/input.csv": {
        "name": "void reduce_block<float, 256>(const T1 *, T1 *, int)",
        "table": "Nsight Compute",
        "count": 2,
        "total_ns": 28_832 + 29_024,
        "mean_ns": 28_928,
        "min_ns": 28_832,
        "max_ns": 29_024,
        "category": "kernel_metrics",
    },
    "nsight-compute/h100_raw/input.csv": {
        "name": "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_aligna4_alignc4"
        "_execute_kernel__5x_cublas",
        "table": "Nsight Compute",
        "count": 1,
        "total_ns": 7_360,
        "mean_ns": 7_360,
        "min_ns": 7_360,
        "max_ns": 7_360,
        "category": "kernel_metrics",
    },
    "nsight-compute/summary/input.csv": {
        "name": "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128>(T1::Params)",
        "table": "Nsight Compute",
        "count": 3,
        "mean_ns": 20_700,
        "min_ns": 20_100,
        "max_ns": 21_300,
        "category": "kernel_metrics",
    },
    "openvino/csv-sorted/input.csv": {
        "name": "conv",
        "table": "OpenVINO layers by time",
        "mean_ns": 24_000,
        "category": "Convolution",
    },
}


@pytest.mark.parametrize("name", ALONE)
def test_a_table_alone_is_listed_as_its_tool_states_it(name: str, tmp_path: Path) -> None:
    """What the tool does not state is not known; a `.pftrace` of the table has the same answer."""
    path = ROOT / name
    operations, stated = traceconv.report([path], Questions(["operations"]))
    assert not operations.rows
    wanted: dict[str, Any] = dict.fromkeys(column.name for column in stated.columns)
    wanted |= {"category": "", "input": path.name} | ALONE[name]
    (row,) = (one for one in stated.records() if one["name"] == wanted["name"] and one["table"] == wanted["table"])
    assert row == wanted
    assert f"as {path.name} states them, not computed from events; empty: not stated" in stated.notes
    traceconv.convert(path, tmp_path / "a.pftrace")
    traceconv.convert(tmp_path / "a.pftrace", tmp_path / "b.pftrace")
    for saved in ("a.pftrace", "b.pftrace"):
        again = traceconv.report([tmp_path / saved], Questions(["operations"]))[1]
        assert [row[:-1] for row in again.rows] == [row[:-1] for row in stated.rows]


@pytest.mark.parametrize(("case", "kernels"), [("details_all_nvtx", 2), ("cut", 0), ("no_kernels", 0)])
def test_a_table_of_rows_without_times_says_so(case: str, kernels: int) -> None:
    operations = traceconv.report([ROOT / "nsight-compute" / case / "input.csv"], Questions(["operations"]))[0]
    said = [note for note in operations.notes if "states a time" in note]
    assert said == [f"input.csv: none of its {kernels} rows states a time or a share"] * (kernels > 0)


def test_rows_about_one_call_are_added_up() -> None:
    stated = traceconv.report([ROOT / "furiosa-table" / "printed" / "input.txt"], Questions(["operations"]))[1]
    row = next(row for row in stated.records() if row["name"] == "Inference")
    assert [row[key] for key in ("count", "total_ns", "mean_ns", "min_ns", "max_ns")] == [
        2,
        3_027_309 + 2_111_363,
        2_569_336,
        2_111_363,
        3_027_309,
    ]
    assert "rows about a single call were added up by name" in stated.notes


def test_rows_inside_others_and_rows_without_times_are_left_out() -> None:
    stated = traceconv.report([ROOT / "nvprof-text" / "unified-and-nvtx" / "input.log"], Questions(["operations"]))[1]
    assert any("about a part of another one: left out" in note for note in stated.notes)
    stated = traceconv.report([ROOT / "mxnet-table" / "v1.9-text" / "input.txt"], Questions(["operations"]))[1]
    assert "2 rows without a time or a share: left out" in stated.notes
    assert "1 row about memory: in the section memory" in stated.notes
    assert not any(row["name"].startswith("Memory") for row in stated.records())


def test_sums_are_neither_divided_nor_shown_twice() -> None:
    table = OWN / "torch.table.txt"
    (section,) = traceconv.report([OWN / "mxnet.json", table], Questions(["operations"], where="dur>1us"))
    assert "torch.table.txt: its sums cannot be divided: they are left out" in section.notes
    (section,) = traceconv.report([OWN / "torch.json", table], Questions(["operations"]))
    assert section.name == "operations"


def test_the_largest_total_is_first_unless_another_column_is_asked_for() -> None:
    path = ROOT / "nvprof-text" / "summary" / "input.log"
    by_total, by_count = (
        traceconv.report([path], Questions(["operations"], sort=sort))[1].records() for sort in ("", "count")
    )
    assert [row["total_ns"] for row in by_total] == sorted((row["total_ns"] for row in by_total), reverse=True)
    assert [row["count"] for row in by_count] == sorted((row["count"] for row in by_count), reverse=True)
    assert by_total != by_count


def stated_of(*paths: Path, **asked: Any) -> tuple[Section, Section]:
    """Return the operations, and the rows of tables of sums."""
    operations, stated = traceconv.report(list(paths), Questions(["operations"], **asked))
    return operations, stated


@pytest.mark.parametrize(
    ("name", "text", "too_large"),
    [
        ("vtune.csv", "Function,CPU Time,Module\na,1e305,m\nb,2,m\nc,99999999999,m\n", 2),
        (
            "rocprof.csv",
            '"Name","Calls","TotalDurationNs","AverageNs","Percentage"\n'
            '"a",99999999999999999999,1e308,99999999999999999999,1e308\n"b",3,525,175,38.5\n',
            4,
        ),
        (
            "mxnet.json",
            '{"Time": {"operator": {"a": {"Count": 1, "Total": 1e305, "Min": 1.0, "Max": 1.0, "Avg": 1.0}}}, '
            '"Unit": {"Time": "ms"}}',
            1,
        ),
    ],
)
def test_numbers_that_no_time_can_have_are_not_stated(name: str, text: str, too_large: int, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    operations, stated = stated_of(path)
    number = "1 number" if too_large == 1 else f"{too_large} numbers"
    assert f"{name}: {number} of its sums too large: taken as not stated" in operations.notes
    assert stated.rows
    assert stated.to_arrow().num_rows == len(stated.rows)
    assert max(map(len, RENDERERS["text"]([stated], 0).splitlines())) < 200


def test_a_sum_of_single_calls_that_is_too_large_is_not_known(tmp_path: Path) -> None:
    path = tmp_path / "furiosa.txt"
    rows = [("", "trace_id", "span_id", "thread.id", "dur")]
    rows += [(str(at), f"{at + 1:032x}", f"{at + 1:016x}", "1", str(4 * 10**18)) for at in range(3)]
    path.write_text(
        "".join(f"{at:2}{trace:>34}{span:>18}{thread:>11}{dur:>21}\n" for at, trace, span, thread, dur in rows)
    )
    _, stated = stated_of(path)
    (row,) = stated.records()
    assert (row["count"], row["total_ns"], row["max_ns"]) == (3, None, 4 * 10**18)
    assert stated.to_arrow().num_rows == 1


def test_a_share_has_the_digits_that_the_tool_printed(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('"Name","Calls","TotalDurationNs","AverageNs","Percentage"\n"a",3,525,175,16.33\n')
    assert 16.33 / 100 != 0.1633
    assert stated_of(path)[1].records()[0]["stated_share"] == 0.1633


def test_stacks_of_a_function_are_parts_of_it(tmp_path: Path) -> None:
    """VTune prints a function once, then the time of the calls from each stack; rows with both have no such sum."""
    _, stated = stated_of(ROOT / "vtune" / "callstacks_text" / "input.txt")
    assert [(row["name"], row["self_ns"]) for row in stated.records()] == [
        ("intersect", 5_436_000_000),
        ("fill", 2_500_000_000),
    ]
    assert "2 rows about a part of another one: left out" in stated.notes
    path = tmp_path / "a.csv"
    path.write_text("Function,Function Stack,CPU Time,Module\nf,,5,m\n,g,3,m\nf,h,2,m\nk,a,4,m\nk,b,1,m\n")
    _, stated = stated_of(path)
    assert [(row["name"], row["self_ns"] // 10**9) for row in stated.records()] == [("f", 5), ("k", 4), ("k", 1)]


def test_parts_of_ranges_and_callers_are_not_listed_beside_the_whole() -> None:
    """NVTX results list once more what ran in a range; in a profile from the bottom up, the outermost time is self."""
    _, stated = stated_of(ROOT / "nvprof-text" / "unified-and-nvtx" / "input.log")
    rows = {(row["name"], row["table"]): (row["total_ns"], row["self_ns"]) for row in stated.records()}
    profile = "CPU profiling result (bottom up)"
    assert rows == {
        ("k(float*)", "Profiling result"): (19_930, None),
        ("forward", "NVTX result"): (1_200_000, None),
        ("Host To Device", "Unified Memory profiling result"): (14_816, None),
        ("Gpu page fault groups", "Unified Memory profiling result"): (510_000, None),
        ("main", profile): (None, 500_000_000),
        ("clock_gettime", profile): (None, 200_000_000),
    }
    assert "2 rows about a part of another one: left out" in stated.notes


@pytest.mark.parametrize(("mode", "column"), [("flat", "self_ns"), ("bottom up", "self_ns"), ("top down", "total_ns")])
def test_the_mode_of_a_cpu_profile_says_which_time_it_states(mode: str, column: str, tmp_path: Path) -> None:
    """Written by hand: each sample of a flat profile counts for the function that ran, not for its callers."""
    log = tmp_path / "nvprof.log"
    rows = " 71.43%     500ms  matmul\n 28.57%     200ms  clock_gettime\n"
    log.write_text(f"======== CPU profiling result ({mode}):\nTime(%)      Time  Name\n{rows}\n")
    _, stated = stated_of(log)
    assert {row["name"]: row[column] for row in stated.records()} == {
        "matmul": 500 * 10**6,
        "clock_gettime": 200 * 10**6,
    }
    other = ({"self_ns", "total_ns"} - {column}).pop()
    assert {row[other] for row in stated.records()} == {None}


def test_spans_without_names_are_not_inferences() -> None:
    """The table lists all spans of a trace id; the table below it says which of the times are inferences."""
    _, stated = stated_of(ROOT / "furiosa-table" / "pandas-legacy" / "input.txt")
    rows = {(row["name"], row["table"]): row["count"] for row in stated.records()}
    assert rows["(name not shown)", "Furiosa spans"] == 6
    assert rows["Inference", "Furiosa NPU operators"] == 2
    assert not any(table == "Furiosa inferences" for _, table in rows)


def test_columns_that_only_tables_have_sort_them() -> None:
    path = ROOT / "nvprof-text" / "summary" / "input.log"
    _, stated = stated_of(path, sort="min")
    shortest = [row["min_ns"] for row in stated.records() if row["min_ns"] is not None]
    assert shortest == sorted(shortest, reverse=True)
    operations, _ = stated_of(OWN / "mxnet.json", OWN / "torch.table.txt", sort="device total")
    assert "--sort: only stated_totals has the column device total: the order is as without it" in operations.notes
    for sections in (["operations"], []):
        with pytest.raises(UsageError, match="there is no column 'min'"):
            traceconv.report([OWN / "mxnet.json"], Questions(sections, sort="min"))


def test_several_tables_name_their_inputs(tmp_path: Path) -> None:
    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for path in paths:
        path.write_bytes((OWN / "torch.table.txt").read_bytes())
    _, stated = stated_of(*paths, by=("category",))
    assert "as 2 inputs state them, not computed from events; empty: not stated" in stated.notes
    assert "--by category does not apply to this table: its sums cannot be divided" in stated.notes
    lines = RENDERERS["text"]([stated], 0).splitlines()
    assert {line.split()[-1] for line in lines if " aten::addmm " in line} == {"a.txt", "b.txt"}
    _, alone = stated_of(paths[0])
    assert "a.txt" not in RENDERERS["text"]([alone], 0).replace("as a.txt states them", "")
    assert not any("--by" in note for note in alone.notes)


def test_the_rows_of_all_tables_are_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [tmp_path / f"table{number}.txt" for number in range(5)]
    for path in paths:
        path.write_bytes((OWN / "torch.table.txt").read_bytes())
    read: list[int] = []
    rows_of = summaries._rows

    def counting(trace: Trace, rows: Rows, marks: TotalsMarks) -> Iterator[summaries._Row]:
        read.append(len(rows))
        return rows_of(trace, rows, marks)

    monkeypatch.setattr(summaries, "_rows", counting)
    _, stated = stated_of(*paths)
    assert read == [100]
    assert Counter(row["input"] for row in stated.records()) == {path.name: 20 for path in paths}


def test_a_page_shows_the_columns_that_a_tool_states() -> None:
    stated = traceconv.report([ROOT / "nvprof-text" / "summary" / "input.log"], Questions(["operations"]))[1]
    shown = page([stated], 0)
    assert "cudaMalloc" in shown
    assert "API calls" in shown
    assert "device total" not in shown


def test_a_table_without_times_has_no_span() -> None:
    (alone,) = traceconv.report([ROOT / "nvprof-text" / "summary" / "input.log"], Questions(["overview"]))
    (row,) = alone.records()
    assert (row["method"], row["start_ns"], row["span_ns"], row["bound_ns"]) == ("totals have no times", *[None] * 3)


def test_the_overview_of_tables_is_their_receipt() -> None:
    paths = [ROOT / "nvprof-text" / "summary" / "input.log", ROOT / "rocprof" / "stats" / "input.csv"]
    for inputs in (paths, [*paths, OWN / "torch.json"]):
        (section,) = traceconv.report(inputs, Questions(["overview"]))
        receipt = traceconv.merge(inputs).receipt
        assert [(row["clock"], row["method"], row["verdict"], row["bound_ns"]) for row in section.records()] == [
            (line.clock, line.method, line.verdict, line.bound_ns) for line in receipt
        ]
        assert {line.bound_ns for line in receipt[:2]} == {None}
        assert all(line.method.startswith("totals have no times") for line in receipt[:2])


def test_a_name_that_was_cut_is_the_only_one_that_begins_so(tmp_path: Path) -> None:
    text = (OWN / "torch.table.txt").read_text(encoding="utf-8")
    cut = tmp_path / "cut.txt"
    cut.write_text(text.replace("aten::mkldnn_convolution", "    aten::mkldnn_conv..."), encoding="utf-8")
    (section,) = traceconv.report([OWN / "torch.json", cut], Questions(["operations"]))
    assert "cut.txt: 20 of 20 rows agree with torch.json" in section.notes


def test_slices_are_grouped_once_for_all_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The slices of an input are not grouped anew for each table."""
    tables = [tmp_path / f"table{number}.txt.gz" for number in range(3)]
    for table in tables:
        table.write_bytes((OWN / "torch_cuda.table.txt.gz").read_bytes())
    searched: list[int] = []
    calls = summaries._calls

    def counting(table: SliceTable, number: int, marks: TotalsMarks) -> summaries._Calls:
        searched.append(number)
        return calls(table, number, marks)

    monkeypatch.setattr(summaries, "_calls", counting)
    (section,) = traceconv.report([CUDA, *tables], Questions(["operations"]))
    assert sum("216 of 218 rows agree with torch_cuda.json.gz" in note for note in section.notes) == 3
    assert searched == [0, 1, 2, 3]


def test_many_ranges_with_copies_are_compared_in_seconds(tmp_path: Path) -> None:
    """It took 24 s when all rows were sorted once for each name; now it takes 0.1 s."""
    path = tmp_path / "a.json"
    kinds = {"user_annotation": 1, "gpu_user_annotation": 0}
    events = [
        {
            "ph": "X",
            "cat": kind,
            "name": f"range{name}",
            "pid": pid,
            "tid": 7,
            "ts": 10 * (name + 4000 * call),
            "dur": 5,
        }
        for name in range(4000)
        for call in range(10)
        for kind, pid in kinds.items()
    ]
    path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [], "traceEvents": events}))
    table = SliceTable(traceconv.read(path, format="pytorch-kineto"))
    marks = traceconv.read(OWN / "torch.table.txt").sources[0].marks.totals
    assert marks is not None
    began = time.process_time()
    found = summaries._calls(table, 0, marks).groups["range7", ""]
    assert time.process_time() - began < GROWTH_S
    assert [len(rows) for rows in found] == [10, 10, 10]
    (host,) = (rows for rows in found[:2] if table.of_categories(["user_annotation"], rows).all())
    assert sorted(found[2]) == sorted(host)


def test_shares_of_two_kinds_in_one_table_are_told_apart() -> None:
    log = ROOT / "nvprof-text" / "summary" / "input.log"
    _, stated = traceconv.report([log], Questions(["operations"]))
    shown = RENDERERS["text"]([stated], 0)
    assert re.search(r"\[CUDA memcpy HtoD\].* GPU activities$", shown, re.MULTILINE)
    assert re.search(r"cudaMalloc .* API calls$", shown, re.MULTILINE)
    _, stated = traceconv.report([OWN / "mxnet.json", OWN / "torch.table.txt"], Questions(["operations"]))
    assert "category" not in [column.name for column in stated.columns if not column.detail]

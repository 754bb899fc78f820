"""Aggregate tables without times: MXNet's dumps() and PyTorch's key_averages(), against the tools' own arithmetic."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.golden import ROOT
from traceconv.align import align
from traceconv.api import read
from traceconv.errors import MalformedInput, UnrecognizedFormat
from traceconv.families.common.text_lines import OpenTables, text_of_line
from traceconv.families.mxnet.aggregates import row_of
from traceconv.families.pytorch.table import cell
from traceconv.merging.traces import merge_traces
from traceconv.model.numbers import number_of
from traceconv.model.trace import Trace

MXNET = ROOT / "mxnet-table"
PYTORCH = ROOT / "pytorch-table"
#: Half a unit of the last decimal that MXNet prints, and what single precision adds.
PRINTED_MS = 0.00005
MXNET_TEXTS = ["v1.9-user-objects", "v1.6-custom", "two-ranks", "v1.3-memory-as-time"]


def rows(trace: Trace) -> list[tuple[str, str, dict[str, Any]]]:
    """Category, name and args of all rows."""
    table = trace.instants
    return [
        (
            trace.strings[table.category[i]],
            trace.strings[table.name[i]],
            msgspec.json.decode(trace.args.get(int(table.args_at[i]), int(table.args_len[i]))),
        )
        for i in range(len(table.ts))
    ]


def golden(case: Path) -> Path:
    (path,) = case.glob("input.*")
    return path


# -- MXNet ------------------------------------------------------------------------------------------------------------


def test_mxnet_text_and_json_of_one_dump_give_the_same_rows() -> None:
    """The two were printed one after the other; JSON has four significant digits."""
    text = rows(read(golden(MXNET / "v1.9-text")))
    as_json = {(section, name): args for section, name, args in rows(read(golden(MXNET / "v1.9-json")))}
    assert len(text) == len(as_json) > 10
    for section, name, args in text:
        other = as_json[section, name]
        assert args.keys() == other.keys()
        for key, value in args.items():
            assert other[key] == pytest.approx(value, rel=5e-4, abs=2 * PRINTED_MS), (name, key)


@pytest.mark.parametrize("case", MXNET_TEXTS)
def test_mxnet_count_times_average_is_the_total(case: str) -> None:
    times = [args for _, _, args in rows(read(golden(MXNET / case))) if "avg_ms" in args]
    assert times
    for args in times:
        rounding = PRINTED_MS * (args["count"] + 1) + 1e-6 * args["total_ms"]
        assert abs(args["count"] * args["avg_ms"] - args["total_ms"]) <= rounding, args


@pytest.mark.parametrize("case", MXNET_TEXTS)
def test_mxnet_counters_and_memory_have_half_their_range_as_average(case: str) -> None:
    others = [
        args for _, _, args in rows(read(golden(MXNET / case))) if "half_range" in args or "half_range_kB" in args
    ]
    assert others
    for args in others:
        unit = "_use_kB" if "half_range_kB" in args else ""
        half = args["half_range_kB"] if unit else args["half_range"]
        assert half == pytest.approx((args[f"max{unit}"] - args[f"min{unit}"]) / 2, abs=0.51 if not unit else 0.001)


def test_mxnet_counters_of_the_user_are_counts_again() -> None:
    """The program set its counter to 0, 3, 4 ... 10; MXNet prints it divided by 1000."""
    found = {name: args for _, name, args in rows(read(golden(MXNET / "v1.9-user-objects")))}
    assert (found["queue"]["max"], found["queue"]["half_range"]) == (10, 5)
    assert found["load, batch"].keys() == {"count", "total_ms", "min_ms", "max_ms", "avg_ms"}


def test_mxnet_a_row_that_can_be_both_is_a_time() -> None:
    assert row_of("operator", "a", 2, [0.1, 0.0, 0.1, 0.05], False).kind == "time"
    assert row_of("my domain", "b", 5, [0.01, 0.0, 0.01, 0.005], False).kind == "counter"


def test_mxnet_tables_come_under_the_process_of_the_profile() -> None:
    table = read(golden(MXNET / "v1.9-text"))
    traces = [read(golden(ROOT / "mxnet" / "infer-1.6"), options={"pid": "42"}), table]
    merged = merge_traces(traces, align(traces))
    assert len(merged.instants.ts) == len(traces[0].instants.ts) + len(table.instants.ts)
    totals = [track for track in merged.tracks if track.name.startswith("MXNet totals: ")]
    assert len(totals) == 3
    assert all(merged.tracks[track.parent].pid == 42 and "(no timeline)" in track.name for track in totals)


@pytest.mark.parametrize("count", ["9" * 19, str(2**64), "9" * 20])
def test_mxnet_rows_whose_count_is_too_large_are_lost(count: str, tmp_path: Path) -> None:
    (table,) = (path.read_text() for path in (MXNET / "v1.9-text").glob("input*"))
    log = tmp_path / "a.log"
    log.write_text(re.sub(r"(?m)^(DeleteVariable +)\d+", rf"\g<1>{count}", table))
    kept = read(log)
    assert "DeleteVariable" not in {name for _, name, _ in rows(kept)}
    assert kept.sources[0].balance.skipped["skipped (mxnet-table.bad_row)"] == 1


def test_mxnet_a_log_without_tables_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("Profile Statistics: none\n")
    with pytest.raises(UnrecognizedFormat):
        read(log)
    log.write_text("nothing\n")
    with pytest.raises(MalformedInput, match="no table"):
        read(log, format="mxnet-table")


# -- PyTorch ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("heading", "text", "expected"),
    [
        ("CPU total", "15.320ms", ("cpu_total_ns", 15320000)),
        ("Self CUDA", "1.345s", ("self_cuda_ns", 1345000000)),
        ("XPU time avg", "0.001us", ("xpu_time_avg_ns", 1)),
        ("Self CPU %", "0.22%", ("self_cpu_percent", 0.22)),
        ("CPU total %", "0", ("cpu_total_percent", 0.0)),
        ("CPU total %", "NaN", None),
        ("CUDA Mem", "4.10 Gb", ("cuda_mem_bytes", round(4.10 * 2**30))),
        ("Self CPU Mem", "-106.30 KB", ("self_cpu_mem_bytes", -108851)),
        ("Self CPU Mem", "-164 B", ("self_cpu_mem_bytes", -164)),
        ("Total MFLOPs", "1.500", ("total_flops", 1500000)),
        ("Total FLOPs", "--", None),
        ("# of Calls", "160", ("calls", 160)),
        ("Number of Calls", "1", ("calls", 1)),
        ("Input Shapes", "[[1, 3]]", ("input_shapes", "[[1, 3]]")),
    ],
)
def test_pytorch_cells(heading: str, text: str, expected: tuple[str, Any] | None) -> None:
    assert cell(heading, text) == expected


@pytest.mark.parametrize(("heading", "text"), [("CPU total", "x"), ("CPU Mem", "1 us"), ("# of Calls", "1.5")])
def test_pytorch_cells_of_the_wrong_kind(heading: str, text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        cell(heading, text)


def test_pytorch_self_times_sum_up_to_the_footer() -> None:
    """All rows of this table were printed, so their own times are all there is; each is rounded to its unit."""
    trace = read(golden(PYTORCH / "conv"))
    (footer,) = trace.metadata["pytorch_tables"]
    total = sum(args["self_cpu_ns"] for _, _, args in rows(trace))
    assert total == pytest.approx(footer["self_cpu_time_total_ns"], rel=0.01)


def test_pytorch_percentages_calls_and_averages_agree() -> None:
    trace = read(golden(PYTORCH / "conv"))
    (footer,) = trace.metadata["pytorch_tables"]
    for _, name, args in rows(trace):
        assert args["cpu_total_ns"] == pytest.approx(args["calls"] * args["cpu_time_avg_ns"], rel=0.001), name
        share = 100 * args["cpu_total_ns"] / footer["self_cpu_time_total_ns"]
        assert share == pytest.approx(args["cpu_total_percent"], abs=0.02), name


def test_pytorch_prefix_of_a_logger_on_the_first_line_only() -> None:
    trace = read(golden(PYTORCH / "ranks-and-loggers"))
    assert [table.get("self_cpu_time_total_ns") for table in trace.metadata["pytorch_tables"]] == [
        20296000,
        3184000,
        20296000,
    ]


# -- what they share --------------------------------------------------------------------------------------------------


def test_lines_as_text() -> None:
    assert text_of_line(b"\x1b[1;32mName\x1b[0m  x\r\n") == "Name  x"
    assert text_of_line(b" 10%|#\r 20%|##\rName\n") == "Name"
    assert text_of_line(b"\xff\n") == "\ufffd"


@pytest.mark.parametrize(("text", "number"), [("12", 12), ("1.5", 1.5), ("nan", None), ("inf", None), ("x", None)])
def test_numbers(text: str, number: float | None) -> None:
    assert number_of(text) == number


def test_lines_find_their_table_by_prefix() -> None:
    tables: OpenTables[str] = OpenTables()
    assert tables.find("anything") is None
    tables.open("[rank0]: ", "zero")
    tables.open("[rank1]: ", "one")
    assert tables.find("[rank0]: a") == ("[rank0]: ", "zero", "a")
    assert tables.find("[rank1]: a") == ("[rank1]: ", "one", "a")
    assert tables.find("a") == ("[rank1]: ", "one", "a")
    tables.open("10:00:01 ", "timed")
    assert tables.find("10:00:02 a") == ("10:00:01 ", "timed", "a")

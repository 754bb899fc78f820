"""The importers of TVM's outputs, beyond what the golden cases show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.golden import ROOT
from traceconv import api
from traceconv.errors import UsageError
from traceconv.families.registry import Certainty, answers, identify
from traceconv.io.source import Source
from traceconv.model.trace import Trace

GRAPH = "dump/_tvmdbg_device_CPU_0/_tvmdbg_graph_dump.json"


def args_of(trace: Trace, row: int) -> dict[str, Any]:
    raw = trace.args.get(int(trace.slices.args_at[row]), int(trace.slices.args_len[row]))
    return dict(json.loads(raw)) if raw else {}


def slices_of(trace: Trace) -> list[tuple[str, int, dict[str, Any]]]:
    """Name, length in ns and args of each slice."""
    names = [trace.strings[name] for name in trace.slices.name.tolist()]
    return [
        (name, dur, args_of(trace, row)) for row, (name, dur) in enumerate(zip(names, trace.slices.dur, strict=True))
    ]


# -- the table of the debugger ------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["means-of-repeats", "means-with-log", "crlf-prefix-colours", "measurements-and-dump"])
def test_percentages_agree_with_the_slices(case: str) -> None:
    # Time(%) is rounded to 3 decimals, the times it was made of to 3 decimals of a microsecond.
    slices = slices_of(api.read(next((ROOT / "tvm-debugger" / case).glob("input.*"))))
    total = sum(dur for _, dur, _ in slices)
    assert len(slices) > 5
    for name, dur, args in slices:
        assert 100 * dur / total == pytest.approx(args["percent"], abs=0.002), name


def test_percentages_of_the_old_table_agree_with_its_times() -> None:
    slices = slices_of(api.read(ROOT / "tvm-debugger" / "start-and-end-times" / "input.log"))
    total = sum(args["time_us"] for _, _, args in slices)
    for name, dur, args in slices:
        first, over_both_runs = args["percent_by_table"]
        assert 100 * args["time_us"] / total == pytest.approx(first, abs=0.1), name  # truncated to 2 decimals
        assert over_both_runs < first
        assert dur >= 1000 * args["time_us"]


def test_means_are_those_of_the_measurements() -> None:
    slices = slices_of(api.read(ROOT / "tvm-debugger" / "means-of-repeats" / "input.log"))
    for name, dur, args in slices:
        values = args["measurements_us"]
        assert len(values) == 5
        assert dur == pytest.approx(1000 * sum(values) / 5, abs=1), name
        assert (args["min_us"], args["max_us"]) == (min(values), max(values))


def test_the_total_row_is_the_sum_of_the_slices() -> None:
    trace = api.read(ROOT / "tvm-debugger" / "means-of-repeats" / "input.log")
    (table,) = trace.metadata["tvm_tables"]
    assert float(table["total_time_us"]) * 1000 == pytest.approx(int(trace.slices.dur.sum()), abs=8)


def test_a_dump_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no _tvmdbg_graph_dump"):
        api.read(ROOT / "tvm-debugger" / "means-of-repeats" / "input.log", options={"dump": str(tmp_path)})


def test_a_dump_named_by_the_user() -> None:
    case = ROOT / "tvm-debugger" / "measurements-and-dump"
    for dump in ("beside/dump", "beside/dump/_tvmdbg_device_CPU_0", "beside", f"beside/{GRAPH}"):
        trace = api.read(case / "input.log", options={"dump": str(case / dump)})
        assert len(trace.flows.from_slice) == 8, dump
        assert trace.metadata["tvm_graph"]["operators"] == 8


def test_days_that_are_none() -> None:
    with pytest.raises(UsageError, match="2018-10-26"):
        api.read(ROOT / "tvm-debugger" / "midnight" / "input.log", options={"date": "26.10.2018"})


def test_execution_trace_and_table_tell_the_same() -> None:
    table = slices_of(api.read(ROOT / "tvm-debugger" / "measurements-and-dump" / "input.log"))
    trace = slices_of(api.read(ROOT / "tvm-execution-trace" / "with-graph" / "input.json"))
    assert {name: dur for name, dur, _ in table} == pytest.approx({name: dur for name, dur, _ in trace}, abs=1)


def test_nodes_of_one_name_are_told_apart_by_their_shape(tmp_path: Path) -> None:
    nodes = [
        {"op": "tvm_op", "name": "relu", "inputs": [], "attrs": {"func_name": "f"}, "shape": [n]} for n in (1, 2, 3)
    ]
    (tmp_path / "_tvmdbg_graph_dump.json").write_text(json.dumps({"nodes": nodes}))
    header = "Node Name  Ops  Time(us)  Time(%)  Shape  Inputs  Outputs\n"
    rows = [f"relu  f  {time}  1.0  ({shape},)  0  1\n" for time, shape in ((9.5, 3), (8.5, 1), (7.5, 2))]
    (tmp_path / "tvm.log").write_text(header + "".join(rows))
    trace = api.read(tmp_path / "tvm.log")
    assert [(dur, args["shape"]) for _, dur, args in slices_of(trace)] == [
        (8500, "(1,)"),
        (7500, "(2,)"),
        (9500, "(3,)"),
    ]
    assert not trace.sources[0].diagnostics.lost


# -- reports ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["graph-text", "graph-unsorted-text", "vm-text"])
def test_percentages_of_a_report_agree_with_its_total(case: str) -> None:
    trace = api.read(next((ROOT / "tvm-profile" / case).glob("input.*")))
    totals = {
        trace.strings[name]: args for name, args in zip(trace.instants.name.tolist(), totals_of(trace), strict=True)
    }
    slices = slices_of(trace)
    for name, dur, args in slices:
        assert dur / 10 / totals["Total cpu0"]["duration_us"] == pytest.approx(args["percent"], abs=0.01), name
    assert sum(args["count"] for _, _, args in slices) == totals["Sum"]["count"]
    assert sum(dur for _, dur, _ in slices) == pytest.approx(
        1000 * totals["Sum"]["duration_us"], abs=5 * len(slices) + 5
    )


def totals_of(trace: Trace) -> list[dict[str, Any]]:
    columns = zip(trace.instants.args_at.tolist(), trace.instants.args_len.tolist(), strict=True)
    return [json.loads(trace.args.get(at, length)) for at, length in columns]


def test_the_three_forms_tell_the_same() -> None:
    text, csv, json_form = (
        {(name, args["duration_us"]): dur for name, dur, args in slices_of(api.read(path))}
        for path in (
            ROOT / "tvm-profile" / "graph-unsorted-text" / "input.txt",
            ROOT / "tvm-profile" / "graph-csv" / "input.csv",
            ROOT / "tvm-profile" / "graph-json" / "input.json",
        )
    )
    assert csv == json_form
    assert [name for name, _ in text] == [name for name, _ in csv]
    assert list(text.values()) == pytest.approx(list(csv.values()), abs=5)


@pytest.mark.parametrize(
    ("thousands", "decimal"),
    [(",", "."), (".", ","), (" ", ","), ("\u00a0", ","), ("\u202f", ","), ("'", "."), ("", ".")],
)
def test_numbers_of_any_locale(thousands: str, decimal: str, tmp_path: Path) -> None:
    rows = [
        ["Name", "Duration (us)", "Percent", "Device", "Count"],
        ["f", f"1{thousands}234{thousands}567{decimal}89", f"99{decimal}50", "cpu0", f"1{thousands}000"],
        ["g", f"0{decimal}12", f"0{decimal}50", "cpu0", "1"],
    ]
    widths = [max(len(row[column].encode()) for row in rows) for column in range(5)]
    pad = [[" " * (width - len(cell.encode())) for cell, width in zip(row, widths, strict=True)] for row in rows]
    lines = [
        row[0] + space[0] + "  " + "".join(s + cell + "  " for cell, s in zip(row[1:], space[1:], strict=True))
        for row, space in zip(rows, pad, strict=True)
    ]
    path = tmp_path / "report.txt"
    path.write_text("\n".join(lines) + "\n")
    slices = slices_of(api.read(path))
    assert [(name, dur) for name, dur, _ in slices] == [("f", 1_234_567_890), ("g", 120)]
    assert (slices[0][2]["percent"], slices[0][2]["count"], slices[0][2]["mean_us"]) == (99.5, 1000, 1234.567)


@pytest.mark.parametrize(("last", "starts"), [(7.5, [0, 5000, 0]), (6.5, [0, 5000, 7000])])
def test_calls_that_contain_others(last: float, starts: list[int], tmp_path: Path) -> None:
    calls = [
        {"Name": {"string": name}, "Duration (us)": {"microseconds": us}}
        for name, us in (("a", 5), ("b", 2), ("main", last))
    ]
    path = tmp_path / "report.json"
    path.write_text(json.dumps({"calls": calls, "device_metrics": {"cpu0": {"Duration (us)": {"microseconds": 8}}}}))
    trace = api.read(path)
    names = [trace.strings[name] for name in trace.slices.name.tolist()]
    placed = dict(zip(names, trace.slices.ts.tolist(), strict=True))
    assert [placed[name] for name in ("a", "b", "main")] == starts
    assert any("more than Total" in note for note in trace.sources[0].notes)


def test_a_log_with_both_tables(tmp_path: Path) -> None:
    report = (ROOT / "tvm-profile" / "graph-text" / "input.txt").read_bytes()
    path = tmp_path / "both.log"
    path.write_bytes((ROOT / "tvm-debugger" / "means-of-repeats" / "input.log").read_bytes() + report)
    trace = api.read(path)
    assert trace.sources[0].format == "tvm-debugger"
    assert any("--from tvm-profile" in note for note in trace.sources[0].notes)
    assert len(api.read(path, format="tvm-profile").slices.ts) == len(trace.slices.ts) == 8


# -- which importer ------------------------------------------------------------------------------------------------


def test_a_chrome_trace_of_nodes_is_tvm_s() -> None:
    source = Source(ROOT / "tvm-execution-trace" / "alone" / "input.json")
    assert identify(source)[0].name == "tvm-execution-trace"
    assert answers(source)["chrome-trace"].certainty is Certainty.MAYBE


@pytest.mark.parametrize(
    "change", [("1.5", "1.75"), ('"pid": 1', '"pid": 2'), ('"tid"', '"args": {}, "tid"'), ("0.0", "3.0")]
)
def test_other_chrome_traces_are_not(change: tuple[str, str], tmp_path: Path) -> None:
    text = '{"displayTimeUnit": "ns", "traceEvents": [' + ", ".join(
        f'{{"ts": {ts}, "tid": 1, "pid": 1, "name": "{name}", "ph": "{phase}"}}'
        for ts, name, phase in (("0.0", "a", "B"), ("1.5", "a", "E"), ("1.5", "b", "B"), ("2.5", "b", "E"))
    )
    path = tmp_path / "x.json"
    path.write_text(text + "]}")
    assert identify(Source(path))[0].name == "tvm-execution-trace"
    path.write_text(text.replace(*change, 1) + "]}")
    assert identify(Source(path))[0].name == "chrome-trace"

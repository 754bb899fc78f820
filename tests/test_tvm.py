"""The importers of TVM's outputs, beyond what the golden cases show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.golden import ROOT
from traceconv import api
from traceconv.errors import UsageError
from traceconv.ir.trace import Trace
from traceconv.registry import Certainty, answers, identify
from traceconv.source import Source


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
    for dump in ("beside/dump", "beside/dump/_tvmdbg_device_CPU_0", "beside"):
        trace = api.read(case / "input.log", options={"dump": str(case / dump)})
        assert len(trace.flows.from_slice) == 8, dump
        assert trace.metadata["tvm_graph"]["operators"] == 8


@pytest.mark.parametrize("options", [{"date": "26.10.2018"}, {"date": "2018-10-26", "utc_offset": "CET"}])
def test_days_that_are_none(options: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="2018-10-26"):
        api.read(ROOT / "tvm-debugger" / "midnight" / "input.log", options=options)


def test_execution_trace_and_table_tell_the_same() -> None:
    table = slices_of(api.read(ROOT / "tvm-debugger" / "measurements-and-dump" / "input.log"))
    trace = slices_of(api.read(ROOT / "tvm-execution-trace" / "with-graph" / "input.json"))
    assert {name: dur for name, dur, _ in table} == pytest.approx({name: dur for name, dur, _ in trace}, abs=1)


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

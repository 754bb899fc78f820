"""The Furiosa importers: what the goldens do not pin. All inputs are synthetic, see make_furiosa."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests import make_furiosa as make
from traceconv.align import align
from traceconv.api import read
from traceconv.families.furiosa import LOST_PARENT, WRAPPED, id_number, unwrapped, whole_number
from traceconv.families.furiosa_table import (
    ELIDED_ROWS,
    FLOAT_TIMES,
    WAIT_DIFFERS,
    box_columns,
    csv_columns,
    is_missing,
    is_ours,
    known_column,
    wait_of,
)
from traceconv.merging.traces import merge_traces
from traceconv.model.clocks import Run, Zero
from traceconv.model.diagnostics import Code
from traceconv.model.drawable import OUT_OF_RANGE
from traceconv.model.trace import Trace

START = make.EXPORTER_START + 1_000_000
SPANS = make.query(1, START) + make.query(2, START + 400_000, pe=1)
WAIT = 18446744073709540605


def saved(tmp_path: Path, data: bytes | str, name: str = "input") -> Path:
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def slices(trace: Trace) -> list[tuple[str, int, int, str, dict[str, Any]]]:
    """Name, start, length, track and args of all slices, in order of time."""
    table = trace.slices
    rows = [
        (
            trace.strings[table.name[i]],
            int(table.ts[i]),
            int(table.dur[i]),
            trace.tracks[table.track[i]].name,
            msgspec.json.decode(trace.args.get(int(table.args_at[i]), int(table.args_len[i])) or b"{}"),
        )
        for i in range(len(table.ts))
    ]
    return sorted(rows, key=lambda row: (row[1], -row[2], row[0], row[3]))


def totals(trace: Trace) -> list[dict[str, Any]]:
    table = trace.instants
    return [
        msgspec.json.decode(trace.args.get(int(at), int(length)))
        for at, length in zip(table.args_at, table.args_len, strict=True)
    ]


def flows(trace: Trace) -> set[tuple[str, str]]:
    names = [trace.strings[name] for name in trace.slices.name]
    return {(names[a], names[b]) for a, b in zip(trace.flows.from_slice, trace.flows.to_slice, strict=True)}


def count(trace: Trace, code: Code) -> int:
    return trace.sources[0].diagnostics.count(code)


# -- waits and wrap-around --------------------------------------------------------------------------------------------


def test_the_wait_of_an_execution_is_total_minus_run(tmp_path: Path) -> None:
    trace = read(saved(tmp_path, make.runtime_json(SPANS)))
    executions = [(dur, args) for name, _, dur, _, args in slices(trace) if name == "Execution"]
    operators = [one.dur for one in SPANS[:8] if one.cat == "NPU" and one.name.startswith("LowLevel")]
    assert len(executions) == 2
    for dur, args in executions:
        assert args["npu_total_ns"] == dur == 119145
        assert args["npu_run_ns"] == sum(operators) == 108134
        assert args["npu_iowait_ns"] == dur - sum(operators) == unwrapped(WAIT) * -1


@pytest.mark.parametrize(
    ("total", "run", "printed", "wait", "code"),
    [
        (119145, 108134, WAIT, 11011, WRAPPED),  # 0.10: run - total in unsigned 64 bits
        (10902, 8559, 2343, 2343, None),  # 0.9
        (100, 120, 2**64 - 20, -20, WRAPPED),  # total - run, if it had been unsigned
        (100, 120, -20, -20, None),
        (100, 120, 20, -20, WAIT_DIFFERS),
        (100, 90, None, 10, None),
        (None, None, WAIT, -11011, WRAPPED),  # nothing to check it with: the number that it is
        (None, 90, 7, 7, None),
        (None, None, None, None, None),
    ],
)
def test_waits(total: int | None, run: int | None, printed: int | None, wait: int | None, code: Code | None) -> None:
    assert wait_of(total, run, printed) == (wait, code)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, 0), (2**63 - 1, 2**63 - 1), (2**63, -(2**63)), (WAIT, -11011), (2**64 - 1, -1), (2**64, 2**64), (-5, -5)],
)
def test_unwrapping(value: int, expected: int) -> None:
    assert unwrapped(value) == expected


def test_printed_waits_are_counted(tmp_path: Path) -> None:
    columns = ["trace_id", "span_id", "pe_index", "execution_index", "NPU Total", "NPU Run", "NPU IoWait"]
    rows = [[f"{n:032x}", f"{n:016x}", "0", "0", str(108134 + n), "108134", str(2**64 - n)] for n in range(1, 6)]
    trace = read(saved(tmp_path, make.box(columns, rows)))
    assert [args["npu_iowait_ns"] for args in totals(trace)] == [1, 2, 3, 4, 5]
    assert count(trace, WRAPPED) == 5


# -- the same spans from all outputs ----------------------------------------------------------------------------------


def test_an_execution_at_an_impossible_time_is_drawn_at_a_possible_one(tmp_path: Path) -> None:
    args = {"start_ts": "9999999999999999999", "end_ts": "9999999999999999999", "trace_id": "1", "span_id": "2"}
    event = {"ph": "X", "cat": "NPU", "name": "Execution", "pid": 1, "tid": 1, "ts": 1.0, "dur": 0.0, "args": args}
    trace = read(saved(tmp_path, json.dumps([event])), format="furiosa")
    assert [row[0] for row in slices(trace)] == ["Execution"]
    assert trace.sources[0].balance.even
    assert count(trace, OUT_OF_RANGE) == 1


def in_common(trace: Trace) -> list[tuple[str, int, int, dict[str, Any]]]:
    """Slices without the names of their tracks, which the data frame does not have."""
    return [(name, ts, dur, args) for name, ts, dur, _, args in slices(trace)]


def test_csv_and_json_give_the_same_spans(tmp_path: Path) -> None:
    from_json = read(saved(tmp_path, make.runtime_json(SPANS), "a.json"))
    from_csv = read(saved(tmp_path, make.csv_of(make.frame(SPANS)), "a.csv"))
    assert in_common(from_json) == in_common(from_csv)
    assert flows(from_json) == flows(from_csv)


def test_float_times_lose_up_to_256_ns(tmp_path: Path) -> None:
    rows = [row | {key: float(row[key]) for key in ("start", "end")} for row in make.frame(SPANS)]
    trace = read(saved(tmp_path, make.csv_of(rows)))
    found = [ts for _, ts, _, _, _ in slices(trace)]
    assert all(abs(ts - span) <= 256 for ts, span in zip(found, sorted(span.start for span in SPANS), strict=True))
    assert count(trace, FLOAT_TIMES) == 16
    assert trace.clocks[0].resolution_ns == 256


# -- joining ----------------------------------------------------------------------------------------------------------


def test_flows_go_from_callers_to_other_tracks_and_from_a_query_to_its_execution(tmp_path: Path) -> None:
    trace = read(saved(tmp_path, make.runtime_json(SPANS)))
    assert flows(trace) == {("Inference", "Quantize"), ("Inference", "Dequantize"), ("Inference", "Execution")}
    assert len(trace.flows.from_slice) == 6


def test_no_flow_where_a_trace_has_two_queries(tmp_path: Path) -> None:
    again = make.query(1, START)[-1]
    again.span, again.start = "00000000000000aa", START + 500_000
    trace = read(saved(tmp_path, make.runtime_json([*make.query(1, START), again])))
    assert ("Inference", "Execution") not in flows(trace)


def test_the_same_span_id_in_two_traces_is_two_spans(tmp_path: Path) -> None:
    one, other = make.query(1, START), make.query(2, START + 400_000)
    for span, same in zip(other, one, strict=True):
        span.span, span.parent = same.span, same.parent
    other[2].dur = 50_000
    trace = read(saved(tmp_path, make.runtime_json([*one, *other])))
    assert [args["npu_run_ns"] for name, _, _, _, args in slices(trace) if name == "Execution"] == [108134, 58134]


def test_a_dropped_parent_is_counted_and_its_children_are_drawn(tmp_path: Path) -> None:
    spans = [one for one in make.query(1, START) if one.name != "Execution"]
    trace = read(saved(tmp_path, make.runtime_json(spans)))
    assert len(trace.slices.ts) == len(spans)
    assert count(trace, LOST_PARENT) == 4


# -- clocks and tracks ------------------------------------------------------------------------------------------------


def test_the_runtime_counts_from_1970_and_the_export_from_its_first_span(tmp_path: Path) -> None:
    runtime = read(saved(tmp_path, make.runtime_json(SPANS)))
    exported = read(saved(tmp_path, make.exported_json(SPANS)))
    assert runtime.clocks[0].zero is Zero.UNIX_EPOCH
    assert runtime.span()[0] == START  # type: ignore[index]
    assert (exported.clocks[0].zero, exported.clocks[0].run) == (Zero.RUN_START, Run.WALL)
    assert [(n, ts - START, d) for n, ts, d, _, _ in slices(runtime)] == [s[:3] for s in slices(exported)]


def test_devices_are_tracks_with_their_processing_elements(tmp_path: Path) -> None:
    trace = read(saved(tmp_path, make.runtime_json(SPANS)))
    where = {(name, track) for name, _, _, track, _ in slices(trace)}
    assert {("Execution", "PE 0"), ("Execution", "PE 1")} <= where
    (device,) = [number for number, track in enumerate(trace.tracks) if track.name == "npu:0:0-1"]
    assert {track.name for track in trace.tracks if track.parent == device} == {"PE 0", "PE 1"}


def test_tables_without_times_come_under_the_trace_of_the_same_run(tmp_path: Path) -> None:
    table = make.box(["name", "average_elapsed (ns)", "count"], [["LowLevelConv2d", "5327.8", "60"]])
    traces = [read(saved(tmp_path, make.runtime_json(SPANS), "a")), read(saved(tmp_path, table, "b"))]
    assert traces[1].sources[0].belongs_to == ("furiosa",)
    merged = merge_traces(traces, align(traces))
    (number,) = [n for n, track in enumerate(merged.tracks) if track.name.startswith("Furiosa NPU operators")]
    above = number
    while merged.tracks[above].parent >= 0:
        above = merged.tracks[above].parent
    assert merged.tracks[above].pid == make.HOST_PID


# -- chunks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("7", 7),
        ("7.0", 7),
        (7.0, 7),
        ("-3", -3),
        (2**63, 2**63),
        ("7.5", "7.5"),
        ("0x10", "0x10"),
        ("²", "²"),
        ("--17", "--17"),
    ],
)
def test_whole_numbers(value: object, expected: object) -> None:
    assert whole_number(value) == expected


@pytest.mark.parametrize("value", ["", "NaN", "null", "None", "<NA>", " "])
def test_missing_cells(value: str) -> None:
    assert is_missing(value)
    assert not is_missing("0")


@pytest.mark.parametrize(
    ("text", "number"), [("5a692d6d2100cc4d", 0x5A692D6D2100CC4D), ("", 0), ("5a…", 0), ("f" * 17, 0)]
)
def test_ids(text: str, number: int) -> None:
    assert id_number(text) == number


def test_headings_of_boxes_over_several_lines() -> None:
    lines = [["trace_id", "NPU", "…", "execution"], ["---", "Total", "", "_index"], ["str", "---", "", "---"]]
    assert box_columns(lines) == ["trace_id", "NPU Total", "", "execution_index"]


def test_which_tables_are_ours() -> None:
    assert is_ours(["trace_id", "span_id", "dur"])
    assert is_ours(["trace_id", "", "dur"])
    assert not is_ours(["name", "count"])
    assert not is_ours(["trace_id", "span_id", "service.name"])  # of another tracer
    assert known_column("average_elapsed (ns)") == known_column("average elapsed(ns)") == "average elapsed(ns)"


def test_headings_of_csv() -> None:
    assert csv_columns(",".join(make.COLUMNS)) == make.COLUMNS
    assert csv_columns("trace_id,span_id,dur") == []


def test_rows_that_the_shape_counts_and_the_log_does_not_hold(tmp_path: Path) -> None:
    rows = [[f"{n:032x}", f"{n:016x}", "1", "5"] for n in (1, 2, 3)]
    text = "shape: (1_000, 4)\n" + make.box(["trace_id", "span_id", "thread.id", "dur"], rows)
    trace = read(saved(tmp_path, text))
    assert (len(totals(trace)), count(trace, ELIDED_ROWS)) == (3, 997)


def test_another_tracers_json_is_not_ours(tmp_path: Path) -> None:
    event = {"ph": "X", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "cat": "app"}
    trace = read(saved(tmp_path, json.dumps([event | {"args": {"trace_id": "1", "span_id": "2"}}])))
    assert trace.sources[0].format == "chrome-trace"

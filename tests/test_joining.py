"""Tables of totals in a merge: where they go, and which rows become args of slices."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from traceconv.align import align
from traceconv.merging.processes import COUNTS_DIFFER, plain_name
from traceconv.merging.traces import merge_traces
from traceconv.model.builder import Builder
from traceconv.model.clocks import NO_TIME, REALTIME
from traceconv.model.layout import lay_out, validate
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import Trace
from traceconv.model.track_table import NO_TRACK

T = 1_700_000_000_000_000_000


def recording(name: str = "run.json", format: str = "profiler", kernels: tuple[str, ...] = ("a", "b", "a")) -> Trace:
    """Kernels one after the other, launched in the opposite order."""
    out = Builder(SourceInfo(name, format), REALTIME)
    process = out.tracks.process("python", pid=7)
    thread, stream = out.tracks.thread(process, 8, "main"), out.tracks.add("stream", process)
    for number, kernel in enumerate(kernels):
        launch = out.slice(thread, T - 100 * number, 10, "launch")
        ran = out.slice(stream, T + 1000 * number, 500, f"void ns::{kernel}<4>(int)", "kernel", {"number": number})
        out.flow(launch, ran)
    out.balance.read = out.balance.written = len(kernels)
    return lay_out(out.finish())


def table(rows: tuple[str, ...], *, join: str = "", formats: tuple[str, ...] = ("profiler",)) -> Trace:
    out = Builder(SourceInfo("table.csv", "table", "row"), NO_TIME)
    track = out.tracks.totals("metrics")
    for number, name in enumerate(rows):
        out.totals(track, name, args={"row": number}, at=number)
    out.belongs_to(formats, join_category=join)
    out.balance.read = out.balance.written = len(rows)
    return lay_out(out.finish())


def merged(*traces: Trace) -> Trace:
    trace = merge_traces(traces, align(traces))
    validate(trace)
    return trace


def kernel_args(trace: Trace) -> list[dict[str, Any]]:
    table = trace.slices
    rows = [row for row in range(len(table.ts)) if trace.strings[table.category[row]] == "kernel"]
    rows.sort(key=lambda row: int(table.ts[row]))
    return [json.loads(trace.args.get(int(table.args_at[row]), int(table.args_len[row]))) for row in rows]


@pytest.mark.parametrize("table_first", [False, True])
def test_a_table_comes_under_the_process_of_its_run(table_first: bool) -> None:
    inputs = [recording(), table(("x", "y"))]
    trace = merged(*(reversed(inputs) if table_first else inputs))
    (track,) = (track for track in trace.tracks if track.name == "metrics (no timeline)")
    assert trace.tracks[track.parent].name == "python"
    assert trace.instants.ts.tolist() == [T - 200, T - 200 + 1000]
    assert any("shown with run.json" in note for source in trace.sources for note in source.notes)
    assert any("2 of the 2 names" in note for source in trace.sources for note in source.notes)


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ([table(("x",)), recording(), recording("other.json")], "run.json or other.json"),
        ([table(("x",), formats=("absent",)), recording()], "no absent input"),
    ],
)
def test_without_a_single_run_it_stands_alone(inputs: list[Trace], words: str) -> None:
    trace = merged(*inputs)
    (track,) = (track for track in trace.tracks if track.name == "metrics (no timeline)")
    assert track.parent == NO_TRACK
    assert any(words in note for note in trace.sources[0].notes)


def test_tables_alone() -> None:
    trace = merged(table(("x",)), replace(table(("y",))))
    assert trace.instants.ts.tolist() == [0, 0]
    assert trace.clocks == [NO_TIME]


def test_rows_become_args_in_order_of_launch() -> None:
    host, rows = recording(), table(("a", "b", "a"), join="kernel")
    for _ in range(2):  # nothing of the inputs changes
        trace = merged(host, rows)
        # The last kernel was launched first.
        assert kernel_args(trace) == [{"number": 0, "row": 2}, {"number": 1, "row": 1}, {"number": 2, "row": 0}]
        assert len(trace.instants.ts) == 0
        assert trace.sources[1].balance.merged == {"rows joined onto the slices of run.json": 3}


def test_rows_of_which_nobody_knows_the_slice_stay() -> None:
    trace = merged(recording(), table(("a", "b", "c"), join="kernel"))
    assert kernel_args(trace) == [{"number": 0}, {"number": 1, "row": 1}, {"number": 2}]
    assert [trace.strings[name] for name in trace.instants.name] == ["a", "c"]
    assert trace.sources[1].diagnostics.count(COUNTS_DIFFER) == 2


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("void at::native::(anonymous namespace)::add_kernel<float, 4>(int, float*)", "add_kernel"),
        ("sgemm_128x64", "sgemm_128x64"),
        ("ns::f(int)", "f"),
        ("Conv", "Conv"),
        ("<<<", "<<<"),
        ("[memset]", "[memset]"),
    ],
)
def test_plain_names(name: str, plain: str) -> None:
    assert plain_name(name) == plain


def test_merging_changes_none_of_its_inputs() -> None:
    inputs = [recording(), recording("other.json", "unrelated"), table(("a", "b", "c"), join="kernel")]

    def told(traces: list[Trace]) -> list[tuple[list[str], int, dict[str, int]]]:
        sources = [trace.sources[0] for trace in traces]
        return [(list(one.notes), len(one.diagnostics), dict(one.balance.merged)) for one in sources]

    before = told(inputs)
    first, second = merged(*inputs), merged(*inputs)
    assert told(inputs) == before
    assert [one.notes for one in first.sources] == [one.notes for one in second.sources]
    assert any(one.notes for one in first.sources)


def test_totals_of_the_format_of_other_totals_belong_to_the_recording() -> None:
    tables = [table((name,), formats=("profiler", "table")) for name in ("x", "y")]
    trace = merged(recording(), *tables)
    notes = [note for source in trace.sources for note in source.notes if "the table is shown" in note]
    assert notes == ["the table is shown with run.json"] * 2
    alone = merged(*tables)
    assert [source.notes[-1] for source in alone.sources] == [
        "the table is shown on its own: no profiler or table input"
    ] * 2

"""Nsight Systems and Nsight Compute, beyond what the golden cases pin. The databases are those of make_nsight."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

from tests import make_nsight
from tests.make_nsight import MAIN0, global_id
from tests.together import together
from traceconv.align import align
from traceconv.api import read
from traceconv.families.common import torch_ranges
from traceconv.families.common.text_lines import decimal_mark, number_of
from traceconv.families.nsight import exported as schema
from traceconv.families.nsight.activity_tables import SWAPPED
from traceconv.families.nsight.exported import ODD_VALUE
from traceconv.families.nsight.systems import NO_CORRELATION, NsightSystems
from traceconv.families.registry import Certainty, identify
from traceconv.io.source import Source
from traceconv.merging.traces import merge_traces
from traceconv.model.clocks import REALTIME
from traceconv.model.layout import lay_out, validate
from traceconv.model.trace import Trace
from traceconv.model.track_table import TrackKind

SESSION = make_nsight.GOLDEN / "session" / "input.sqlite"


def names(trace: Trace, category: str) -> list[str]:
    rows = range(len(trace.slices.ts))
    return [trace.strings[trace.slices.name[row]] for row in rows if category_of(trace, row) == category]


def category_of(trace: Trace, row: int) -> str:
    return trace.strings[trace.slices.category[row]]


def names_of(trace: Trace, row: int) -> str:
    return trace.strings[trace.slices.name[row]]


def args_of(trace: Trace, row: int) -> dict[str, Any]:
    table = trace.slices
    return json.loads(trace.args.get(int(table.args_at[row]), int(table.args_len[row])) or b"{}")


def process_of(trace: Trace, row: int) -> int | None:
    """The pid of the process that a slice belongs to."""
    track = trace.tracks[trace.slices.track[row]]
    while track.kind is not TrackKind.PROCESS:
        if track.parent < 0:
            return None
        track = trace.tracks[track.parent]
    return track.pid


def query(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as database, database:
        return database.execute(sql).fetchall()


# -- the golden inputs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["session", "export_2020", "odd_rows", "emit_nvtx", "never_set", "empty"])
def test_golden_inputs_are_what_the_helper_makes(case: str, tmp_path: Path) -> None:
    made = tmp_path / "made.sqlite"
    make_nsight.CASES[case](made)
    dumps = []
    for path in (made, make_nsight.GOLDEN / case / "input.sqlite"):
        with closing(sqlite3.connect(path)) as database, database:
            dumps.append(list(database.iterdump()))
    assert dumps[0] == dumps[1]


# -- sums -------------------------------------------------------------------------------------------------------------


def test_totals_are_those_of_the_database() -> None:
    trace = read(SESSION)
    sums: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for row in range(len(trace.slices.ts)):
        category = category_of(trace, row)
        counts[category] += 1
        sums[category] += int(trace.slices.dur[row])
        sizes[category] += args_of(trace, row).get("bytes", 0)
    for category, table in {
        "kernel": "KERNEL",
        "memcpy": "MEMCPY",
        "memset": "MEMSET",
        "cuda_sync": "SYNCHRONIZATION",
    }.items():
        ((count, total),) = query(SESSION, f"SELECT count(*), sum(end - start) FROM CUPTI_ACTIVITY_KIND_{table}")
        assert (counts[category], sums[category]) == (count, total)
    assert sizes["memcpy"] == query(SESSION, "SELECT sum(bytes) FROM CUPTI_ACTIVITY_KIND_MEMCPY")[0][0]
    calls = query(SESSION, "SELECT count(*), sum(end - start) FROM CUPTI_ACTIVITY_KIND_RUNTIME")[0]
    assert (counts["cuda_runtime"] + counts["cuda_driver"], sums["cuda_runtime"] + sums["cuda_driver"]) == calls


def test_flows_stay_within_a_process() -> None:
    trace = read(SESSION)
    assert query(SESSION, "SELECT count(DISTINCT correlationId), count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL")[0] == (2, 3)
    for call, work in zip(trace.flows.from_slice, trace.flows.to_slice, strict=True):
        assert process_of(trace, call) == process_of(trace, work) is not None
        assert args_of(trace, call)["correlation"] == args_of(trace, work)["correlation"]
        assert trace.slices.ts[call] <= trace.slices.ts[work]
    work = "SELECT globalPid AS p, correlationId AS c FROM CUPTI_ACTIVITY_KIND_"
    union = " UNION ALL ".join(work + table for table in ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE"))
    same = "r.correlationId = c AND (r.globalTid & ~16777215) = p"
    joined = f"SELECT count(*) FROM ({union}) JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON {same}"
    assert len(trace.flows.from_slice) == query(SESSION, joined)[0][0] == 7


def test_the_session_is_anchored_to_utc() -> None:
    (snapshot,) = read(SESSION).snapshots
    assert (snapshot.ts, snapshot.other, snapshot.other_ts) == (0, REALTIME, make_nsight.UTC_NS)
    assert snapshot.bound_ns is None
    assert snapshot.clock.machine == "node17"


def test_os_runtime_calls_can_be_left_out() -> None:
    trace = read(SESSION, options={"os_runtime": "false"})
    assert names(trace, "osrt") == []
    assert trace.sources[0].balance.skipped["skipped (nsys.os_runtime)"] == 2
    assert trace.sources[0].balance.even


# -- ids --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hardware", [0, 0x7F, 0x80, 0xFF])
def test_global_ids_may_be_negative(hardware: int) -> None:
    number = global_id(0xABCDEF, 0x123456, hardware=hardware, vm=0xFE)
    assert (number < 0) == (hardware >= 0x80)
    assert (schema.pid_of(number), schema.tid_of(number)) == (0xABCDEF, 0x123456)
    assert schema.process_of(number) == global_id(0xABCDEF, hardware=hardware, vm=0xFE)


# -- layouts ----------------------------------------------------------------------------------------------------------


def thinned(tmp_path: Path, table: str, keep: Any) -> Path:
    """The session without the table, or with the chosen columns of it only."""
    path = tmp_path / "thinned.sqlite"
    path.write_bytes(SESSION.read_bytes())
    with closing(sqlite3.connect(path)) as database, database:
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
        kept = [column for number, column in enumerate(columns) if keep(number)]
        database.execute(f"ALTER TABLE {table} RENAME TO old")
        if kept:
            database.execute(f"CREATE TABLE {table} ({', '.join(map(repr, kept))})")
            database.execute(f"INSERT INTO {table} SELECT {', '.join(kept)} FROM old")
        database.execute("DROP TABLE old")
    database.close()
    return path


@pytest.mark.parametrize("keep", [lambda number: False, lambda number: number % 2, lambda number: number < 3])
def test_any_table_and_column_may_be_missing(keep: Any, tmp_path: Path) -> None:
    with together() as each:
        for table in make_nsight.SCHEMA.keys() - {"StringIds"}:
            folder = tmp_path / table
            folder.mkdir()
            with each(table):
                trace = read(thinned(folder, table, keep), format="nsight-systems")
                validate(lay_out(trace))
                assert trace.counts()["slices"]


# -- memory -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("swapped", [False, True])
def test_swapped_allocations_and_frees_are_found(swapped: bool, tmp_path: Path) -> None:
    """Of each address: allocated, freed, allocated again."""
    path = tmp_path / "memory.sqlite"
    times = [(step, address) for step in range(3) for address in range(4)]
    rows = [
        {"start": 100 * step + address, "deviceId": 0, "address": address, "bytes": 8, "memKind": 2}
        | {"globalPid": make_nsight.RANK0, "memoryOperationType": (step + swapped) % 2}
        for step, address in times
    ]
    make_nsight.build(path, {"StringIds": [], "META_DATA_EXPORT": [], "CUDA_GPU_MEMORY_USAGE_EVENTS": rows})
    trace = read(path)
    assert trace.sources[0].diagnostics.count(SWAPPED) == swapped
    assert trace.counters.value.tolist() == [8, 16, 24, 32, 24, 16, 8, 0, 8, 16, 24, 32]


# -- hostile databases ------------------------------------------------------------------------------------------------


def test_nothing_in_a_database_runs(tmp_path: Path) -> None:
    """Views with the names of tables, triggers, generated columns, and names that look like statements."""
    path = tmp_path / "hostile.sqlite"
    path.write_bytes(SESSION.read_bytes())
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
    endless += ' SELECT i AS start, i AS "end", i AS globalTid FROM n'
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f"CREATE VIEW CUDNN_EVENTS AS {endless}")
        database.execute("CREATE TRIGGER t AFTER DELETE ON StringIds BEGIN DELETE FROM PROCESSES; END")
        database.execute("""CREATE TABLE "x""; DROP TABLE StringIds; --" ("start", "end", globalTid, "a""b")""")
        database.execute("""INSERT INTO "x""; DROP TABLE StringIds; --" VALUES (1, 2, ?, 'harmless')""", [MAIN0])
    database.close()
    before = path.read_bytes()
    assert identify(Source(path))[1].certainty is Certainty.YES
    trace = read(path)
    assert "harmless" not in names(trace, "cudnn")
    assert trace.counts()["slices"] == read(SESSION).counts()["slices"] + 1
    assert path.read_bytes() == before
    assert sorted(tmp_path.iterdir()) == [path]


def test_other_databases_are_not_claimed(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(path)) as database, database:
        for table in ("StringTable", "Version", "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_KERNEL"):
            database.execute(f"CREATE TABLE {table} (_id_ INTEGER PRIMARY KEY, value)")
    database.close()
    assert NsightSystems().sniff(Source(path).head()).certainty is Certainty.NO


# -- many rows --------------------------------------------------------------------------------------------------------


def test_rows_of_many_portions_keep_their_order_and_flows(tmp_path: Path) -> None:
    count = 45_000
    path = tmp_path / "many.sqlite"
    make_nsight.many_kernels(path, count)
    trace = read(path)
    assert trace.counts()["slices"] == 2 * count
    assert trace.counts()["flows"] == count
    starts = trace.slices.ts
    assert set((starts[trace.flows.to_slice] - starts[trace.flows.from_slice]).tolist()) == {2_000}


# -- Nsight Compute ---------------------------------------------------------------------------------------------------

METRICS = make_nsight.GOLDEN.parent / "nsight-compute"


def merged_metrics(tmp_path: Path, metrics: str) -> Trace:
    path = tmp_path / "metrics.csv"
    path.write_text(metrics, encoding="utf-8")
    traces = [read(SESSION), read(path)]
    return merge_traces(traces, align(traces))


def test_metrics_come_to_the_kernels_in_order_of_launch(tmp_path: Path) -> None:
    trace = merged_metrics(tmp_path, (METRICS / "raw" / "input.csv").read_text())
    found = {
        (process_of(trace, row), names_of(trace, row)[:12]): args_of(trace, row)["ncu"]["id"]
        for row in range(len(trace.slices.ts))
        if category_of(trace, row) == "kernel"
    }
    # The launches stand at 20 and 30 us in the first process, at 21 us in the second.
    assert found == {(4100, "void cutlass"): 0, (4100, "void at::nat"): 1, (4200, "void cutlass"): 2}
    assert trace.sources[1].balance.even


def test_metrics_of_another_number_of_launches_stay_in_their_table(tmp_path: Path) -> None:
    lines = (METRICS / "raw" / "input.csv").read_text().splitlines()
    trace = merged_metrics(tmp_path, "\n".join(lines[:-1]))
    kernels = [row for row in range(len(trace.slices.ts)) if category_of(trace, row) == "kernel"]
    assert sum("ncu" in args_of(trace, row) for row in kernels) == 1
    assert len(trace.instants.ts) == read(SESSION).counts()["instants"] + 1


DETAILS = '"ID","Process ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value","Rule Name"\n'


def metrics_of(tmp_path: Path, rows: str) -> dict[str, Any]:
    path = tmp_path / "metrics.csv"
    path.write_text(DETAILS + rows, encoding="utf-8")
    trace = read(path, format="nsight-compute")
    return dict(json.loads(trace.args.get(int(trace.instants.args_at[0]), int(trace.instants.args_len[0])))["ncu"])


def test_rows_of_metrics_end_behind_the_value(tmp_path: Path) -> None:
    rows = '"0","1","k","S","a","%","1,234.5",\n"0","1","k","S","b","","n/a"\n"0","1","k","S","","","","rule"\n'
    assert metrics_of(tmp_path, rows) == {
        "id": 0,
        "process": 1,
        "S": {"a (%)": 1234.5, "b": "n/a"},
        "rules": [{"section": "S", "name": "rule"}],
    }


def test_values_of_one_name_stay_beside_each_other(tmp_path: Path) -> None:
    rows = "".join(f'"0","1","k","{section}","a","","{value}",\n' for section, value in (("S", 1), ("S", 2), ("S", 1)))
    by_name = '"0","1","k","Command line profiler metrics","S","","3",\n"0","1","k","id","a","","4",\n'
    found = metrics_of(tmp_path, rows + by_name)
    assert found == {"id": 0, "process": 1, "S": {"a": 1, "a (again)": [2]}, "S (again)": [3], "id (again)": [{"a": 4}]}


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("1,215,000,000.00", "."),
        ("1.215.000.000,00", ","),
        ("27.595.520", ","),
        ("27,595,520", "."),
        ("65,77", ","),
        ("0.123", "."),
        ("1234,567", ","),
        ("1 234,5", ","),
        ("1,234", ""),
        ("117.344", ""),
        ("42", ""),
        ("n/a", ""),
        ("(256, 1, 1)", ""),
        ("8.0.1", ","),
        ("", ""),
    ],
)
def test_the_mark_of_a_locale(text: str, mark: str) -> None:
    assert decimal_mark(text) == mark


@pytest.mark.parametrize(
    ("text", "mark", "number"),
    [
        ("1,215,000,000.50", ".", 1215000000.5),
        ("1.215.000.000,50", ",", 1215000000.5),
        ("117.344", ",", 117344),
        ("117.344", ".", 117.344),
        ("1\u202f234", ".", 1234),
        ("1'234.5", ".", 1234.5),
        ("-5", ".", -5),
        ("1e3", ".", 1000.0),
        ("inf", ".", None),
        ("1e999", ".", None),
        ("nan", ".", None),
        (".", ".", None),
        ("CachePreferNone", ".", None),
        ("9" * 100, ".", None),
    ],
)
def test_numbers_of_a_locale(text: str, mark: str, number: float | None) -> None:
    found = number_of(text, mark)
    assert found == number
    assert type(found) is type(number)


# -- values and columns that no export should have ----------------------------------------------------------------


def changed(tmp_path: Path, *statements: str) -> Path:
    path = tmp_path / "session.sqlite"
    path.write_bytes(SESSION.read_bytes())
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return path


def test_a_text_where_a_number_is_wanted_is_counted(tmp_path: Path) -> None:
    path = changed(tmp_path, "UPDATE NVTX_EVENTS SET uint64Value = 'text' WHERE eventType = 59")
    trace, untouched = read(path), read(SESSION)
    assert trace.counts() == untouched.counts()
    (problem,) = [one for one in trace.sources[0].diagnostics if one.code is ODD_VALUE]
    with closing(sqlite3.connect(SESSION)) as connection:
        (ranges,) = connection.execute("SELECT count(*) FROM NVTX_EVENTS WHERE eventType = 59").fetchone()
    assert problem.count == ranges
    assert "uint64Value: 'text'" in problem.places[0]


@pytest.mark.parametrize("column", ["correlationId", "globalPid", "streamId", "shortName"])
def test_kernels_are_drawn_without_a_column(tmp_path: Path, column: str) -> None:
    path = changed(tmp_path, f"ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN {column}")
    trace = read(path)
    assert sorted(names(trace, "kernel")) == sorted(names(read(SESSION), "kernel"))
    said = [one.places for one in trace.sources[0].diagnostics if one.code is NO_CORRELATION]
    assert said == ([["CUPTI_ACTIVITY_KIND_KERNEL"]] if column == "correlationId" else [])


@pytest.mark.slow
@pytest.mark.parametrize("part", [0, 1])
def test_any_table_may_lack_any_column(part: int, tmp_path: Path) -> None:
    """Each column is left out in turn, of every second table at a time; also where others are joined by it."""
    with closing(sqlite3.connect(SESSION)) as connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        columns = [
            [f'ALTER TABLE {table} DROP COLUMN "{row[1]}"' for row in info if not row[5]]
            for table in tables[part::2]
            if (info := connection.execute(f"PRAGMA table_info({table})"))
        ]
    for statements in zip_longest(*columns):
        dropped = [statement for statement in statements if statement]
        trace = read(changed(tmp_path, *dropped), format="nsight-systems")
        assert trace.sources[0].balance.even, dropped


@pytest.mark.parametrize("epoch", ["9223372036854775807", "1", "-5", "'text'", "NULL"])
def test_a_session_that_cannot_have_begun_then_has_no_anchor(tmp_path: Path, epoch: str) -> None:
    trace = read(changed(tmp_path, f"UPDATE TARGET_INFO_SESSION_START_TIME SET utcEpochNs = {epoch}"))
    assert not trace.snapshots
    assert any("states no valid start" in note for note in trace.sources[0].notes)


def test_times_that_no_session_can_have_are_counted(tmp_path: Path) -> None:
    path = changed(tmp_path, "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 9223372036854775807 WHERE rowid = 1")
    trace = read(path)
    merged = merge_traces([trace, read(SESSION)], align([trace, read(SESSION)]))
    assert len(names(trace, "kernel")) == len(names(read(SESSION), "kernel")) - 1
    assert len(names(merged, "kernel")) == 2 * len(names(trace, "kernel")) + 1


@pytest.mark.parametrize("value", ["X'fffe'", "1.5", "9e999", "NULL"])
def test_info_about_an_export_can_be_anything(tmp_path: Path, value: str) -> None:
    path = changed(tmp_path, f"UPDATE META_DATA_EXPORT SET value = {value}")
    json.dumps(read(path).metadata, allow_nan=False)


def test_a_payload_that_is_nested_too_deeply_stays_a_text(tmp_path: Path) -> None:
    deep = "[" * 100_000
    path = changed(tmp_path, f"UPDATE NVTX_EVENTS SET jsonText = '{deep}', uint64Value = NULL WHERE eventType = 34")
    assert read(path).counts() == read(SESSION).counts()


@pytest.mark.parametrize(
    ("text", "name", "args"),
    [
        ("aten::view, op_id = 314290", "aten::view", {"op_id": 314290}),
        ("aten::to, seq = 0, op_id = 7", "aten::to", {"Sequence number": 0, "op_id": 7}),
        ("a, b, seq = 12", "a, b", {"Sequence number": 12}),
        ("aten::add, seq = 1, sizes = [[2, 3], []]", "aten::add", {"Sequence number": 1, "Input Dims": [[2, 3], []]}),
        (
            "f, op_id = 9, sizes = [], input_op_ids = [(0,-1), (8,0)]",
            "f",
            {"op_id": 9, "Input Dims": [], "input_op_ids": "[(0,-1), (8,0)]"},
        ),
        ("f, sizes = [[1, -]]", "f", {"Input Dims": "[[1, -]]"}),
        ("x, seq = 1, seq = 2", "x, seq = 1", {"Sequence number": 2}),
    ],
)
def test_text_of_a_range_of_pytorch(text: str, name: str, args: dict[str, Any]) -> None:
    assert torch_ranges.described(text) == (name, "cpu_op", args)


@pytest.mark.parametrize(
    ("name", "is_operator"),
    [("## forward ##", False), ("Optimizer.step#SGD.step", False), ("a, b", False), ("record_param_comms", True)],
)
def test_text_of_a_range_of_record_function(name: str, is_operator: bool) -> None:
    category = "cpu_op" if is_operator else "nvtx"
    assert torch_ranges.described(f"{name}, op_id = 12") == (name, category, {"op_id": 12})
    assert torch_ranges.described(f"{name}, seq = 3, op_id = 12")[1] == "cpu_op"


@pytest.mark.parametrize(
    "text", ["forward", ", seq = 1", "lr, seq = x", "a, op_id = 1, seq = 2 more", "a, op_id = 1 ", "a, sizes = [[2, "]
)
def test_text_of_another_range(text: str) -> None:
    assert torch_ranges.described(text) == (text, "nvtx", {})

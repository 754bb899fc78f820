"""Tables of databases: rows as SQLite says, whatever stands in them and wherever they are damaged."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import make_nsight
from tests.benchmarks import nvprof as benchmark
from tests.golden import cases
from traceconv.api import read
from traceconv.errors import InputError, TraceconvError
from traceconv.families.common import sqlite_tables
from traceconv.families.common.sqlite_tables import Launches, whole
from traceconv.families.nvprof.activities import PREFIX
from traceconv.io.source import Source
from traceconv.io.sqlite import open_database
from traceconv.model.trace import TABLES, Trace

RUN = settings(deadline=None, max_examples=25, suppress_health_check=list(HealthCheck))
CASES = [case for case in cases() if case.format in ("nvprof", "nsight-systems")]
SCHEMA = "CREATE TABLE t (_id_ INTEGER PRIMARY KEY AUTOINCREMENT, a INT, b INT NOT NULL, c TEXT, d REAL, e BIGINT)"


def _make(path: Path, count: int, schema: str = SCHEMA) -> Path:
    rng = random.Random(count)
    values = [None, 0, 1, -1, 200, -30_000, 1 << 20, -(1 << 30), 1 << 40, (1 << 63) - 1, -(1 << 63), "text", 0.5]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA page_size = 512")
        connection.execute(schema)
        rows = [[rng.choice(values) for _ in "acde"] for _ in range(count)]
        connection.executemany("INSERT INTO t (a, b, c, d, e) VALUES (?, 7, ?, ?, ?)", rows)
    return path


def _change(path: Path, statement: str, *values: Any) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement, values)


@pytest.mark.parametrize("index", ["(e)", "(e, a, b)", "(b DESC)"])
def test_indexes_change_nothing(index: str, tmp_path: Path) -> None:
    path = _make(tmp_path / "db", 500)
    _change(path, f"CREATE INDEX other ON t {index}")
    with open_database(Source(path).database()) as database:
        (rows,) = database.batches("t", ["_rowid_", "e", "a", "NULL", "b"], 1000)
        assert [row[0] for row in rows] == list(range(1, 501))
        assert [row for batch in database.batches("t", ["_rowid_", "e", "a", "NULL", "b"], 90) for row in batch] == rows


@pytest.mark.parametrize(
    ("key", "number"),
    [("", "_rowid_"), ("_id_ INTEGER, ", "_rowid_"), ("_rowid_ TEXT, ", "rowid"), ("_rowid_ , rowid, oid, ", "NULL")],
)
def test_what_numbers_the_rows(key: str, number: str, tmp_path: Path) -> None:
    path = _make(tmp_path / "db", 3, SCHEMA.replace("_id_ INTEGER PRIMARY KEY AUTOINCREMENT, ", key))
    with open_database(Source(path).database()) as database:
        assert database.row_id("t") == number


@RUN
@given(st.data())
def test_rows_before_damage_are_read(tmp_path: Path, data: st.DataObject) -> None:
    """However many are asked for at once."""
    (tmp_path / "db").unlink(missing_ok=True)
    whole_file = bytearray(_make(tmp_path / "db", 120).read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        whole_file[data.draw(st.integers(512, len(whole_file) - 1))] = data.draw(st.integers(0, 255))
    (tmp_path / "db").write_bytes(whole_file)
    found = [_all_rows(tmp_path / "db", size) for size in (1, 7, 50, 1000)]
    assert all(one == found[0] for one in found)


def _all_rows(path: Path, size: int) -> tuple[list[tuple[Any, ...]], str]:
    """The rows that there are up to the damage, and what the damage is."""
    rows: list[tuple[Any, ...]] = []
    try:
        with open_database(Source(path).database()) as database:
            for batch in database.batches("t", ["_rowid_", "e", "a", "NULL", "c"], size):
                rows += batch
    except (InputError, KeyError) as error:  # the schema may be damaged
        return rows, str(error)
    return rows, ""


@pytest.mark.parametrize("other", [None, 0.5, 1.0, "1", b"1"])
def test_columns_are_whole_or_none(other: object) -> None:
    found = whole([-(1 << 63), 5, (1 << 63) - 1])
    assert found is not None
    assert found.tolist() == [-(1 << 63), 5, (1 << 63) - 1]
    assert whole([1, other, 2]) is None


ID = st.integers(1, 6)


@given(st.lists(st.tuples(ID, ID)), st.lists(st.tuples(ID, ID | st.just(0))))
def test_launches(calls: list[tuple[int, int]], work: list[tuple[int, int]]) -> None:
    """In the order of the work, from the first call of its process and id."""
    launches = Launches()
    for add, rows, at in ((launches.add_calls, calls, 0), (launches.add_work, work, 1000)):
        for begin in range(0, len(rows), 3):
            part = np.array(rows[begin : begin + 3], np.int64)
            add(part[:, 0] - 3, part[:, 1], np.arange(len(part)) + begin + at)
    sources, targets, ids, missing = launches.pairs()
    first = {key: number for number, key in reversed(list(enumerate(calls)))}
    expected = [(first[key], number) for number, key in enumerate(work, 1000) if key[1] and key in first]
    assert list(zip(sources.tolist(), targets.tolist(), strict=True)) == expected
    assert ids.tolist() == [work[number - 1000][1] for _, number in expected]
    assert missing == (sum(bool(key[1]) and key not in first for key in work) if calls else 0)


# -- recordings ---------------------------------------------------------------------------------------------------


def _said(path: Path) -> Any:
    """All that a reader tells, args by what they say and not by where they are kept."""
    try:
        trace = read(path)
    except TraceconvError as error:
        return error.message, error.hint
    about = trace.sources[0]
    # Which of two problems is met first depends on how many rows are read at once.
    problems = sorted((one.code.name, one.count, one.places) for one in about.diagnostics)
    info = (trace.tracks, trace.clocks, trace.metadata)
    return info, about.balance, problems, about.notes, {name: _rows(trace, name) for name in TABLES}


def _rows(trace: Trace, name: str) -> dict[str, Any]:
    table = getattr(trace, name)
    columns = {column.name: getattr(table, column.name).tolist() for column in fields(table)}
    for column in columns.keys() & {"name", "category"}:
        columns[column] = [trace.strings[number] for number in columns[column]]
    if "args_at" in columns:
        places = zip(columns.pop("args_at"), columns["args_len"], strict=True)
        columns["args"] = [trace.args.get(*place) for place in places]
    return columns


def _same(path: Path) -> None:
    """What a recording says does not depend on how many rows are read at once."""
    told = []
    for rows in (1, 90, 1 << 14):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sqlite_tables, "PORTION", rows)
            told.append(_said(path))
    for one in told[1:]:
        assert one == told[0]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.format}-{case.name}")
def test_portions_change_nothing(case: Any) -> None:
    _same(case.input)


TAMPERED = {
    f"{PREFIX}RUNTIME": ("cbid", "start", "end", "processId", "threadId", "correlationId", "returnValue"),
    f"{PREFIX}CONCURRENT_KERNEL": (
        *("start", "end", "completed", "queued", "submitted", "streamId", "gridX", "localMemoryTotal"),
        *("correlationId", "gridId", "name", "launchType"),
    ),
}
TAMPERED_NSIGHT = {
    "CUPTI_ACTIVITY_KIND_RUNTIME": ("start", "end", "globalTid", "correlationId", "nameId", "returnValue"),
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        *("start", "end", "globalPid", "streamId", "greenContextId", "gridX", "correlationId", "gridId"),
        "demangledName",
    ),
}
VALUES = st.none() | st.integers(-2, 3) | st.sampled_from([1 << 31, 1 << 40, -(1 << 63), 0.5, "text", b"\0"])


@RUN
@given(st.data())
def test_recordings_that_somebody_changed(tmp_path: Path, data: st.DataObject) -> None:
    tampered = data.draw(st.sampled_from((TAMPERED, TAMPERED_NSIGHT)))
    path = tmp_path / "recording"
    (benchmark.generate if tampered is TAMPERED else make_nsight.many_kernels)(path, 300)
    for _ in range(data.draw(st.integers(0, 3))):
        table = data.draw(st.sampled_from(sorted(tampered)))
        column = data.draw(st.sampled_from(tampered[table]))
        rows = data.draw(st.sampled_from(("= 150", "> 100", "< 9")))
        _change(path, f"UPDATE OR IGNORE {table} SET {column} = ? WHERE _rowid_ {rows}", data.draw(VALUES))
    _same(path)

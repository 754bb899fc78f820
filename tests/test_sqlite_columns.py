"""Tables read out of the pages of the file hold what SQLite says, in the kernel as compiled and as Python."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.benchmarks import nvprof as benchmark
from tests.golden import cases
from tests.kernels import using, variants
from traceconv.api import read
from traceconv.errors import InputError, TraceconvError
from traceconv.families.nvprof import _tables as _nvprof_tables
from traceconv.io import sqlite_columns
from traceconv.io.source import Source
from traceconv.io.sqlite import open_database
from traceconv.io.sqlite_columns import NULL, Block
from traceconv.model.trace import TABLES, Trace

RUN = settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
CASES = [case for case in cases() if case.format == "nvprof"]
SCHEMA = "CREATE TABLE t (_id_ INTEGER PRIMARY KEY AUTOINCREMENT, a INT, b INT NOT NULL, c TEXT, d REAL, e BIGINT)"
WANTED = ("e", "a", "absent", "b")
ANY = st.integers(-(1 << 63), (1 << 63) - 1) | st.sampled_from([0, 1, 127, 128, -129, 1 << 23, 1 << 47, -1 << 47])
ROWS = st.lists(st.tuples(st.none() | ANY, ANY, st.none() | st.text(max_size=300), st.none() | st.floats(), ANY))


KERNELS = variants("pages")


@pytest.fixture(params=KERNELS)
def pages(request: pytest.FixtureRequest) -> Iterator[ModuleType]:
    with using("pages", KERNELS[request.param]):
        yield KERNELS[request.param]


def _make(path: Path, rows: list[tuple[Any, ...]], schema: str = SCHEMA, page_bytes: int = 512) -> Path:
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA page_size = {page_bytes}")
    connection.execute(schema)
    connection.executemany(f"INSERT INTO t (a, b, c, d, e) VALUES ({', '.join('?' * 5)})", rows)
    connection.commit()
    connection.close()
    return path


def _read(path: Path, wanted: tuple[str, ...] = WANTED) -> list[tuple[Any, ...]]:
    """What the pages tell of the rows."""
    with open_database(Source(path)) as database:
        return [row for block in database.blocks("t", wanted) for row in block.rows()]


def _asked(path: Path) -> list[tuple[Any, ...]]:
    """What SQLite tells."""
    with open_database(Source(path)) as database:
        return list(database.rows("SELECT _id_, e, a, NULL, b FROM t"))


def _plain(count: int) -> list[tuple[Any, ...]]:
    rng = random.Random(count)
    values = [None, 0, 1, -1, 200, -30_000, 1 << 20, -(1 << 30), 1 << 40, (1 << 63) - 1, -(1 << 63) + 1]
    return [
        (rng.choice(values), rng.choice(values[1:]), rng.choice(["", None, "x" * 70]), rng.random(), rng.choice(values))
        for _ in range(count)
    ]


@pytest.mark.parametrize("page_bytes", [512, 4096, 65536])
@pytest.mark.parametrize("count", [0, 1, 9, 3000])
def test_all_rows_of_a_plain_table(count: int, page_bytes: int, pages: ModuleType, tmp_path: Path) -> None:
    path = _make(tmp_path / "db", _plain(count), page_bytes=page_bytes)
    assert _read(path) == _asked(path)
    assert len(_asked(path)) == count


@RUN
@given(ROWS, st.sampled_from(sorted(KERNELS)))
@example([(1, 2, "x" * 300, 1.5, 3), (1, 2, "x" * 3000, 1.5, 3), (4, 5, "", 1.5, 6)], "uncompiled")
@example([(1, 2, "", 1.5, -(1 << 63)), (4, 5, "", 1.5, 6)], "uncompiled")
def test_the_first_rows_of_any_table(tmp_path: Path, rows: list[tuple[Any, ...]], name: str) -> None:
    path = _make(tmp_path / "db", rows)
    with using("pages", KERNELS[name]):
        found = _read(path)
    assert found == _asked(path)[: len(found)]
    if all(len(row[2] or "") < 100 and NULL not in (row[0], row[1], row[4]) for row in rows):
        assert len(found) == len(rows)


@pytest.mark.parametrize(
    ("schema", "more"),
    [
        (SCHEMA.replace("a INT", "a REAL"), ""),  # 1 reads as 1.0
        (SCHEMA.replace("a INT", "a"), ""),
        (SCHEMA.replace("INTEGER PRIMARY KEY AUTOINCREMENT", "INT PRIMARY KEY"), ""),
        (SCHEMA.replace(" AUTOINCREMENT", " DESC"), ""),
        (SCHEMA.replace("INTEGER PRIMARY KEY AUTOINCREMENT", "INTEGER").replace("a INT", "a INTEGER PRIMARY KEY"), ""),
        (SCHEMA.replace("a INT", "g INT AS (b + 1), a INT"), ""),
        (SCHEMA.replace(" AUTOINCREMENT", "") + " WITHOUT ROWID", "INSERT INTO t VALUES (1, 2, 3, '', 0.5, 4)"),
        (SCHEMA, "ALTER TABLE t ADD COLUMN f INT DEFAULT 7"),
    ],
)
def test_what_is_not_plain_is_left_to_sqlite(schema: str, more: str, pages: ModuleType, tmp_path: Path) -> None:
    rows = [] if "WITHOUT" in schema else [(number, number, "", 0.5, number) for number in range(20)]
    path = _make(tmp_path / "db", rows, schema)
    with sqlite3.connect(path) as connection:
        connection.execute(more)
    connection.close()
    assert _read(path) == []


@pytest.mark.parametrize("value", ["'text'", "1.5", "x'00'"])
def test_rows_up_to_one_that_holds_no_integer(value: str, pages: ModuleType, tmp_path: Path) -> None:
    path = _make(tmp_path / "db", _plain(500))
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE t SET a = {value} WHERE _id_ = 300")
    connection.close()
    found = _read(path)
    assert 250 < len(found) < 300
    assert found == _asked(path)[: len(found)]
    without = _read(path, wanted=("e", "b"))
    assert len(without) == 500


@pytest.mark.parametrize("index", ["(e)", "(e, a, b)", "(b DESC)"])
def test_indexes_change_nothing(index: str, pages: ModuleType, tmp_path: Path) -> None:
    path = _make(tmp_path / "db", _plain(500))
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE INDEX other ON t {index}")
    connection.close()
    with open_database(Source(path)) as database:
        (rows,) = database.batches("t", ["_rowid_", "e", "a", "NULL", "b"], 1000)
    assert _read(path) == rows
    assert [row[0] for row in rows] == list(range(1, 501))


def test_rows_that_were_deleted_and_ids_that_are_no_ids(pages: ModuleType, tmp_path: Path) -> None:
    path = _make(tmp_path / "db", _plain(900))
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM t WHERE _id_ % 3 = 1 OR _id_ BETWEEN 200 AND 400")
    connection.close()
    assert _read(path) == _asked(path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE t SET _id_ = -5 WHERE _id_ = 2")
    connection.close()
    assert _read(path) == []


@pytest.mark.parametrize("key", ["", "_id_ INTEGER, ", "rowid TEXT, "])
def test_without_a_key_rows_are_counted_by_sqlite(key: str, pages: ModuleType, tmp_path: Path) -> None:
    schema = SCHEMA.replace("_id_ INTEGER PRIMARY KEY AUTOINCREMENT, ", key)
    path = _make(tmp_path / "db", _plain(300), schema)
    with open_database(Source(path)) as database:
        assert database.row_id("t") == "_rowid_"
        asked = list(database.rows("SELECT _rowid_, e, a, NULL, b FROM t"))
    assert _read(path) == asked


@RUN
@given(st.data())
def test_damage_is_no_matter(tmp_path: Path, data: st.DataObject) -> None:
    """Whatever the pages hold: the same rows come out, with both kernels and without."""
    whole = bytearray(_make(tmp_path / "db", _plain(120)).read_bytes())
    first = len(whole) if data.draw(st.booleans()) else 512 * 5
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(512, first - 1))
        whole[at] = data.draw(st.integers(0, 255))
    (tmp_path / "db").write_bytes(whole)
    found = []
    for module in (None, *KERNELS.values()):
        with using("pages", module):
            found.append(_all_rows(tmp_path / "db"))
    assert all(one == found[0] for one in found)


def _all_rows(path: Path) -> tuple[list[tuple[Any, ...]], str]:
    """The rows that there are up to the damage, out of the pages as long as they are plain, and what the damage is."""
    rows: list[tuple[Any, ...]] = []
    columns = [name if name != "absent" else "NULL" for name in ("_rowid_", *WANTED)]
    try:
        with open_database(Source(path)) as database:
            for block in database.blocks("t", WANTED):
                rows += block.rows()
            for batch in database.batches("t", columns, 50, skip=len(rows)):
                rows += batch
    except (InputError, KeyError) as error:  # the schema may be damaged
        return rows, str(error)
    return rows, ""


@RUN
@given(st.binary(max_size=2048), st.integers(0, 600), st.integers(-2, 3))
def test_any_bytes_are_pages(data: bytes, usable: int, key: int) -> None:
    slots, told = np.array([1, 0, -1, 2], np.intc), []
    for module in KERNELS.values():
        for head in (b"", b"\x0d\x00\x00\x00\x03\x00\x00\x00\x00\x40\x00\x50\x01\x00"):
            columns = np.zeros((3, 40), np.int64)
            rows = module.Rows(512, usable, slots, key, columns)
            told.append((head, rows.read(head + data, 0), rows.count, columns.tolist()))
    assert told[:2] == told[-2:]


def test_places_outside_are_refused() -> None:
    slots, columns = np.array([1, 0, -1, 2], np.intc), np.zeros((3, 40), np.int64)
    for module in KERNELS.values():
        with pytest.raises(ValueError, match="no such column"):
            module.Rows(512, 512, slots, 0, columns[:2])
        with pytest.raises(ValueError, match="before the first"):
            module.Rows(512, 512, slots, 0, columns).read(bytes(512), -1)


@RUN
@given(st.lists(st.tuples(ANY, st.integers(-1, 2), st.integers(0, 1)), min_size=1, max_size=50))
def test_groups_and_objects(rows: list[tuple[int, int, int]]) -> None:
    columns = np.array(rows, np.int64).T.copy()
    for module in KERNELS.values():
        with using("pages", module):
            block = Block(columns, len(rows))
            kinds, found = block.groups(1, 2)
            assert [kinds[number][1:] for number in found] == [row[1:] for row in rows]
            assert [row[1:] for row in kinds] == list(dict.fromkeys(row[1:] for row in rows))
            assert len(block.groups(0)[0]) == len({row[0] for row in rows})
            if min(min(row) for row in rows) >= 0:
                ends = [b',"e":%d}' % number for number in range(len(kinds))]
                made, lengths = block.objects([0, 2], [b'{"a":', b',"b":'], ends, found)
                wanted = [
                    b'{"a":%d,"b":%d,"e":%d}' % (row[0], row[2], kind) for row, kind in zip(rows, found, strict=True)
                ]
                assert made == b"".join(wanted)
                assert lengths.tolist() == [len(one) for one in wanted]


# -- databases of nvprof ------------------------------------------------------------------------------------------


def _said(path: Path) -> Any:
    """All that a reader tells, args by what they say and not by where they are kept."""
    try:
        trace = read(path, format="nvprof")
    except TraceconvError as error:
        return error.message, error.hint
    about = trace.sources[0]
    # Which of two problems is met first depends on how many rows are read at once.
    problems = sorted((one.code.name, one.count, one.places) for one in about.diagnostics)
    facts = (trace.strings, trace.tracks, trace.clocks, trace.metadata)
    return facts, about.balance, problems, about.notes, {name: _rows(trace, name) for name in TABLES}


def _rows(trace: Trace, name: str) -> dict[str, Any]:
    table = getattr(trace, name)
    columns = {column.name: getattr(table, column.name).tolist() for column in fields(table)}
    if "args_at" in columns:
        places = zip(columns.pop("args_at"), columns["args_len"], strict=True)
        columns["args"] = [trace.args.get(*place) for place in places]
    return columns


def _same(path: Path, rows: int = 1 << 14) -> None:
    told = []
    for module in (None, *KERNELS.values()):
        with pytest.MonkeyPatch.context() as patch, using("pages", module):
            patch.setattr(sqlite_columns, "_ROWS", rows)
            patch.setattr(_nvprof_tables, "_BATCH", rows)
            told.append(_said(path))
    for one in told[1:]:
        assert one == told[0]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("rows", [1 << 14, 90])
def test_databases_of_nvprof(case: Any, rows: int) -> None:
    _same(case.input, rows)


def test_databases_as_nvprof_writes_them_are_plain(pages: ModuleType, tmp_path: Path) -> None:
    """Each of their tables has an index."""
    benchmark.generate(tmp_path / "profile.nvvp", 300)
    with open_database(Source(tmp_path / "profile.nvvp")) as database:
        for table in TAMPERED:
            blocks = database.blocks(_nvprof_tables.PREFIX + table, ("start", "end", "correlationId"))
            assert sum(block.length for block in blocks) == 300


TAMPERED = {
    "RUNTIME": ("cbid", "start", "end", "processId", "threadId", "correlationId", "returnValue"),
    "CONCURRENT_KERNEL": (
        *("start", "end", "completed", "queued", "submitted", "streamId", "gridX", "localMemoryTotal"),
        *("correlationId", "gridId", "name", "launchType"),
    ),
}
VALUES = st.none() | st.integers(-2, 3) | st.sampled_from([1 << 31, 1 << 40, -(1 << 63), 0.5, "text", b"\0"])


@settings(deadline=None, max_examples=25, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_databases_of_nvprof_that_somebody_changed(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "profile.nvvp"
    benchmark.generate(path, 300)
    connection = sqlite3.connect(path)
    for _ in range(data.draw(st.integers(0, 3))):
        table = data.draw(st.sampled_from(sorted(TAMPERED)))
        column, rows = (
            data.draw(st.sampled_from(TAMPERED[table])),
            data.draw(st.sampled_from(("= 150", "> 100", "< 9"))),
        )
        connection.execute(
            f"UPDATE OR IGNORE {_nvprof_tables.PREFIX}{table} SET {column} = ? WHERE _id_ {rows}", [data.draw(VALUES)]
        )
    connection.commit()
    connection.close()
    _same(path, 90)

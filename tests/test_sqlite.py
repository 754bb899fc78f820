"""Databases from outside: opened read only, and nothing in them runs."""

from __future__ import annotations

import gzip
import os
import sqlite3
from pathlib import Path

import pytest

from traceconv.errors import InputError
from traceconv.source import Source
from traceconv.sqlite import open_database, quoted


def make(path: Path, *statements: str) -> Path:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    return make(
        tmp_path / "plain.db",
        "CREATE TABLE kernels (start INTEGER, name TEXT)",
        "INSERT INTO kernels VALUES (1, 'a'), (2, CAST(x'ff41' AS TEXT))",
    )


def test_rows_and_tables(plain: Path) -> None:
    before = plain.stat().st_mtime_ns, plain.read_bytes(), sorted(os.listdir(plain.parent))
    source = Source(plain)
    assert source.head().tables == ("kernels",)
    with open_database(source) as database:
        assert database.tables == {"kernels": ["start", "name"]}
        assert list(database.rows("SELECT start, name FROM kernels WHERE start > ?", 0)) == [(1, "a"), (2, "\ufffdA")]
    assert (plain.stat().st_mtime_ns, plain.read_bytes(), sorted(os.listdir(plain.parent))) == before


def test_compressed(plain: Path, tmp_path: Path) -> None:
    packed = tmp_path / "packed.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert Source(packed).head().tables == ("kernels",)


def test_text_has_no_tables(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("hello", encoding="utf-8")
    assert Source(path).head().tables == ()


def test_views_in_place_of_tables_are_not_seen(tmp_path: Path) -> None:
    path = make(tmp_path / "db", "CREATE VIEW kernels AS SELECT load_extension('/tmp/evil') AS start")
    with open_database(Source(path)) as database:
        assert database.tables == {}
        with pytest.raises(InputError, match="cannot be read"):
            list(database.rows("SELECT start FROM kernels"))


def test_virtual_tables_are_not_seen(tmp_path: Path) -> None:
    path = make(tmp_path / "db", "CREATE VIRTUAL TABLE kernels USING fts5(name)")
    with open_database(Source(path)) as database:
        assert "kernels" not in database.tables


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM kernels",
        "INSERT INTO kernels VALUES (3, 'x')",
        "ATTACH 'other.db' AS other",
        "PRAGMA journal_mode",
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 9) SELECT x FROM c",
    ],
)
def test_only_reads(plain: Path, statement: str) -> None:
    with open_database(Source(plain)) as database, pytest.raises(InputError, match="cannot be read"):
        list(database.rows(statement))


def test_a_huge_generated_value_is_refused(tmp_path: Path) -> None:
    huge = "CREATE TABLE kernels (start INTEGER, name TEXT AS (hex(zeroblob(100000000))))"
    path = make(tmp_path / "db", huge, "INSERT INTO kernels VALUES (1)")
    with open_database(Source(path)) as database, pytest.raises(InputError, match="cannot be read"):
        list(database.rows("SELECT name FROM kernels"))


@pytest.mark.parametrize("keep", [20, 100, 4096, 5000])
def test_a_cut_database(plain: Path, keep: int) -> None:
    plain.write_bytes(plain.read_bytes()[:keep])
    source = Source(plain)
    source.head()
    with pytest.raises(InputError, match=r"plain\.db"), open_database(source) as database:
        list(database.rows("SELECT * FROM kernels"))


def test_names_are_quoted() -> None:
    assert quoted('a"b') == '"a""b"'

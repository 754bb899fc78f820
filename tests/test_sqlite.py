"""Databases from outside: opened read only, and nothing in them runs."""

from __future__ import annotations

import contextlib
import gzip
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from traceconv.api import identify, read
from traceconv.errors import InputError, TraceconvError
from traceconv.io.source import Source
from traceconv.io.sqlite import open_database, quoted


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
    with open_database(source.database()) as database:
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
    with open_database(Source(path).database()) as database:
        assert database.tables == {}
        with pytest.raises(InputError, match="cannot be read"):
            list(database.rows("SELECT start FROM kernels"))


def test_virtual_tables_are_not_seen(tmp_path: Path) -> None:
    path = make(tmp_path / "db", "CREATE VIRTUAL TABLE kernels USING fts5(name)")
    with open_database(Source(path).database()) as database:
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
    with open_database(Source(plain).database()) as database, pytest.raises(InputError, match="cannot be read"):
        list(database.rows(statement))


def test_a_huge_generated_value_is_refused(tmp_path: Path) -> None:
    huge = "CREATE TABLE kernels (start INTEGER, name TEXT AS (hex(zeroblob(100000000))))"
    path = make(tmp_path / "db", huge, "INSERT INTO kernels VALUES (1)")
    with open_database(Source(path).database()) as database, pytest.raises(InputError, match="cannot be read"):
        list(database.rows("SELECT name FROM kernels"))


@pytest.mark.parametrize("keep", [20, 100, 4096, 5000])
def test_a_cut_database(plain: Path, keep: int) -> None:
    plain.write_bytes(plain.read_bytes()[:keep])
    source = Source(plain)
    source.head()
    with pytest.raises(InputError, match=r"plain\.db"), open_database(source.database()) as database:
        list(database.rows("SELECT * FROM kernels"))


# -- not closed -------------------------------------------------------------------------------------------------------

GOLDEN = Path(__file__).parent.parent / "golden"
UNCLOSED = {
    "nvprof": (GOLDEN / "nvprof" / "vector-add" / "input.nvvp", "CUPTI_ACTIVITY_KIND_DRIVER"),
    "nsight-systems": (GOLDEN / "nsight-systems" / "session" / "input.sqlite", "CUPTI_ACTIVITY_KIND_KERNEL"),
}


def unclosed(folder: Path, format: str, ending: str) -> Path:
    """A golden database whose last transaction is in the file beside it.

    With "-wal" it has committed the rows of a table a second time, with "-journal" it was killed while it did so.
    """
    golden, table = UNCLOSED[format]
    open_one = folder / "open"
    shutil.copy(golden, open_one)
    connection = sqlite3.connect(open_one, isolation_level=None)
    columns = ", ".join(row[1] for row in connection.execute(f"PRAGMA table_info({table})") if row[1] != "_id_")
    # Without syncing, a journal can be read before the end of its transaction.
    for statement in (f"journal_mode = {'wal' if ending == '-wal' else 'delete'}", "synchronous = OFF"):
        connection.execute(f"PRAGMA {statement}")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute("BEGIN")
    connection.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM {table}")
    path = folder / golden.name
    if ending == "-wal":
        connection.execute("COMMIT")
        shutil.copy(f"{open_one}{ending}", f"{path}{ending}")
    else:
        shutil.copy(f"{open_one}{ending}", f"{path}{ending}")
        connection.execute("COMMIT")
    shutil.copy(open_one, path)
    connection.close()
    for left in folder.glob("open*"):
        left.unlink()
    return path


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("format", UNCLOSED)
def test_rows_in_a_write_ahead_log_are_read(tmp_path: Path, format: str) -> None:
    golden, table = UNCLOSED[format]
    with contextlib.closing(sqlite3.connect(golden)) as connection:
        (rows,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    path = unclosed(tmp_path, format, "-wal")
    before = contents(tmp_path)
    assert identify(path)[0] == format
    trace = read(path)
    assert trace.sources[0].balance.written == read(golden).sources[0].balance.written + rows
    assert f"{path.name}-wal beside it was applied to a copy" in " ".join(trace.sources[0].notes)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("format", UNCLOSED)
def test_a_transaction_that_never_ended_is_undone(tmp_path: Path, format: str) -> None:
    path = unclosed(tmp_path, format, "-journal")
    before = contents(tmp_path)
    trace = read(path)
    assert trace.counts() == read(UNCLOSED[format][0]).counts()
    assert "was not closed" in " ".join(trace.sources[0].notes)
    assert contents(tmp_path) == before
    path.with_name(path.name + "-journal").unlink()
    assert read(path).counts() != trace.counts()


@pytest.mark.parametrize("ending", ["-wal", "-journal"])
def test_what_was_emptied_changes_nothing(tmp_path: Path, ending: str) -> None:
    path = Path(shutil.copy(UNCLOSED["nvprof"][0], tmp_path))
    path.with_name(path.name + ending).write_bytes(b"" if ending == "-wal" else bytes(512))
    assert not any("not closed" in note for note in read(path).sources[0].notes)


def damaged_log(data: bytes) -> dict[str, bytes]:
    return {
        "header": data[:17] + bytes([data[17] ^ 1]) + data[18:],
        "page": data[:200] + bytes([data[200] ^ 1]) + data[201:],
        "cut": data[:-100],
        "short": data[:20],
        "noise": bytes(range(1, 251)) * 20,
    }


DAMAGED_JOURNAL = {
    "header": lambda data: b"x" + data[1:],
    "cut": lambda data: data[:8] + ((len(data) - 512) // (512 + 8)).to_bytes(4, "big") + data[12:-50],
    "names another file": lambda data: data + b"/etc/x" + bytes(15) + b"\6" + bytes(4) + data[:8],
}


@pytest.mark.parametrize("format", UNCLOSED)
@pytest.mark.parametrize("kind", damaged_log(bytes(300)))
def test_a_damaged_log_is_no_empty_log(tmp_path: Path, format: str, kind: str) -> None:
    refused_with(unclosed(tmp_path, format, "-wal"), "-wal", lambda data: damaged_log(data)[kind])


@pytest.mark.parametrize("kind", DAMAGED_JOURNAL)
def test_a_damaged_journal_is_not_obeyed(tmp_path: Path, kind: str) -> None:
    refused_with(unclosed(tmp_path, "nvprof", "-journal"), "-journal", DAMAGED_JOURNAL[kind])


def test_the_log_of_another_database(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = unclosed(tmp_path / "other", "nsight-systems", "-wal")
    log = other.with_name(other.name + "-wal").read_bytes()
    refused_with(unclosed(tmp_path, "nvprof", "-wal"), "-wal", lambda _: log)


def refused_with(path: Path, ending: str, change: Callable[[bytes], bytes]) -> None:
    beside = path.with_name(path.name + ending)
    beside.write_bytes(change(beside.read_bytes()))
    before = contents(path.parent)
    with pytest.raises(TraceconvError, match=f"{path.name}: the database was not closed.*{beside.name}") as error:
        read(path)
    assert f"move {beside.name} away" in error.value.hint
    assert contents(path.parent) == before


def test_a_log_is_looked_for_beside_the_database_itself(tmp_path: Path) -> None:
    path = unclosed(tmp_path, "nvprof", "-wal")
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.nvvp"
    link.symlink_to(path)
    assert read(link).counts() == read(path).counts()


def test_names_are_quoted() -> None:
    assert quoted('a"b') == '"a""b"'

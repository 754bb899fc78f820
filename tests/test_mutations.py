"""Every golden input, damaged at random: only our own errors and counted losses come out, the same without the kernel.

Bytes are changed in any input, and in databases also what a statement can change: values into other types, columns and
tables that go or get other names.

TRACECONV_MUTATIONS=500 pytest tests/test_mutations.py -n 2      # more of them, and other ones each time
TRACECONV_MUTATIONS=2000 pytest tests/test_mutations.py -k "nvprof or nsight"
"""

from __future__ import annotations

import io
import os
import random
import re
import shutil
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import kernels
from tests.golden import ROOT, Case, cases, written
from traceconv import kernel
from traceconv.align import align
from traceconv.api import identify, read
from traceconv.errors import TraceconvError, UnrelatedClocks
from traceconv.families.outputs import writer_named
from traceconv.io.sqlite import MAGIC, quoted
from traceconv.merging.traces import merge_traces
from traceconv.model.validate import validate

CASES = [case for case in cases() if case.format != "merge"]
MERGES = [case for case in cases() if case.format == "merge"]
WANTED = int(os.environ.get("TRACECONV_MUTATIONS", "0"))
DATABASES = [case for case in CASES if case.input.read_bytes().startswith(MAGIC)]
OTHERS = [case for case in CASES if case not in DATABASES]


def run(count: int) -> settings:
    """Few by default, for there are hundreds of inputs; the same ones each time, so that a failure is found again."""
    return settings(
        max_examples=WANTED or count,
        derandomize=not WANTED,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


@dataclass(frozen=True)
class Mutation:
    """One kind of damage; places are shares of the length of the input, in millionths."""

    kind: str
    first: int
    second: int
    junk: bytes

    def apply(self, data: bytes) -> bytes:
        one, other = sorted((self.first * len(data) // 10**6, self.second * len(data) // 10**6))
        match self.kind:
            case "cut":
                return data[:one]
            case "behead":
                return data[one:]
            case "remove":
                return data[:one] + data[other:]
            case "duplicate":
                return data[:other] + data[one:]
            case "swap":
                middle = (one + other) // 2
                return data[:one] + data[middle:other] + data[one:middle] + data[other:]
            case "overwrite":
                return data[:one] + self.junk + data[one + len(self.junk) :]
            case "insert":
                return data[:one] + self.junk + data[one:]
            case "bits":
                flipped = bytes(byte ^ 1 << self.second % 8 for byte in data[one : one + len(self.junk)])
                return data[:one] + flipped + data[one + len(flipped) :]
            case "retype":
                numbers = list(_NUMBER.finditer(data, one)) or list(_NUMBER.finditer(data))
                if not numbers:
                    return data
                number = numbers[self.second % min(len(numbers), _NEAR)]
                return data[: number.start()] + self.other_type(number[0]) + data[number.end() :]
            case "lines":
                lines = data.splitlines(keepends=True)
                at, with_ = (share * len(lines) // 10**6 for share in (self.first, self.second))
                if lines:
                    lines[at], lines[with_] = lines[with_], lines[at]
                return b"".join(lines)
            case "shuffle":
                lines = data.split(b"\n")
                random.Random(self.first).shuffle(lines)
                return b"\n".join(lines)
            case "respace":
                return data.replace(b"\n", b"\r\n") if one % 2 else data.replace(b":", b" : ")
        raise ValueError(self.kind)

    def other_type(self, number: bytes) -> bytes:
        """What may stand in the place of a number."""
        values = [
            b'"%b"' % number,
            b"-" + number,
            number + b".5",
            number + b"e3",
            b"0" + number,
            b"0x" + number,
            *_VALUES,
        ]
        return values[(self.first + self.second) % len(values)]


@dataclass(frozen=True)
class Edit:
    """One statement on a database; tables and columns are shares of their number, in millionths.

    Attributes:
        kind: what is done.
        table, column: where.
        rows: which rows, as the end of a statement.
        value: what is put there.
    """

    kind: str
    table: int
    column: int
    rows: str
    value: Any

    def apply(self, data: bytes) -> bytes:
        """The database as it is afterwards; as it was if SQLite refuses."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "database"
            path.write_bytes(data)
            try:
                with closing(sqlite3.connect(path, isolation_level=None)) as connection:
                    self._change(connection)
            except (sqlite3.Error, UnicodeDecodeError):
                return data
            return path.read_bytes()

    def _change(self, connection: sqlite3.Connection) -> None:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        if not tables:
            return
        name = tables[self.table * len(tables) // 10**6]
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({quoted(name)})")]
        table, column = quoted(name), quoted(columns[self.column * len(columns) // 10**6])
        match self.kind:
            case "set":
                connection.execute(f"UPDATE OR IGNORE {table} SET {column} = ? {self.rows}", [self.value])
            case "delete":
                connection.execute(f"DELETE FROM {table} {self.rows}")
            case "drop column":
                connection.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
            case "drop table":
                connection.execute(f"DROP TABLE {table}")
            case "rename column":
                connection.execute(f"ALTER TABLE {table} RENAME COLUMN {column} TO other")
            case "rename table":
                connection.execute(f"ALTER TABLE {table} RENAME TO {quoted('other_' + name)}")
            case "untype":  # what is declared without a type keeps any value as it is
                connection.execute("PRAGMA writable_schema = ON")
                for kind in ("INTEGER NOT NULL", "INTEGER", "INT", "TEXT", "BLOB"):
                    connection.execute(
                        "UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE name = ?",
                        (f"{columns[-1]} {kind}", columns[-1], name),
                    )


_NUMBER = re.compile(rb"\d+(?:\.\d+)?")
#: One of so many numbers behind a place is replaced.
_NEAR = 20
_VALUES = (
    b"null",
    b"true",
    b"[]",
    b"{}",
    b'""',
    b"",
    b"x",
    b"NaN",
    b"inf",
    b"-0",
    b"1e400",
    b"1e-400",
    b"9" * 19,
    b"9" * 40,
)
KINDS = [
    *("cut", "behead", "remove", "duplicate", "swap", "overwrite", "insert", "bits", "retype"),
    *("lines", "shuffle", "respace"),
]
JUNK = st.one_of(
    st.binary(min_size=1, max_size=8),
    st.sampled_from([b"\xff", b"\x00", b'"', b"{", b"]", b"\n", b",", b"-", b"9" * 30, b"1e999", b"NaN", b"\x1b[31m"]),
)
PLACE = st.integers(0, 10**6 - 1)
MUTATIONS = st.builds(Mutation, st.sampled_from(KINDS), PLACE, PLACE, JUNK)
#: Changes that leave the size as it is: of a database with another size little is read.
IN_PLACE = st.builds(Mutation, st.sampled_from(["bits", "overwrite"]), PLACE, PLACE, JUNK)
VALUES = st.sampled_from(
    [
        *(None, 0, -1, 1, 2**31, 2**32, 2**63 - 1, -(2**63), 1_511_000_000_000_000_000),
        *(1.5, 1e300, float("inf"), "", "text", "9" * 30, "a\x00b", "[" * 2000, b"", b"\xff\xfe", bytes(200)),
    ]
)
EDITS = st.builds(
    Edit,
    st.sampled_from(
        [*["set"] * 12, "delete", "drop column", "drop table", "rename column", "rename table", "untype", "untype"]
    ),
    PLACE,
    PLACE,
    st.sampled_from(["", "", "WHERE rowid % 2", "WHERE rowid = 1", "WHERE rowid > 3"]),
    VALUES,
)


@pytest.mark.parametrize("case", OTHERS, ids=[case.name for case in OTHERS])
@run(6)
@given(mutations=st.lists(MUTATIONS, min_size=1, max_size=3))
def test_damage_is_an_error_of_ours_or_counted(case: Case, mutations: list[Mutation]) -> None:
    check(case, mutations)


@pytest.mark.parametrize("case", DATABASES, ids=[case.name for case in DATABASES])
@run(25)
@given(mutations=st.lists(EDITS | EDITS | IN_PLACE | MUTATIONS, min_size=1, max_size=4))
def test_a_changed_database_is_read_or_refused(case: Case, mutations: list[Mutation | Edit]) -> None:
    check(case, mutations)


@pytest.mark.parametrize("case", MERGES, ids=[case.name for case in MERGES])
@run(6)
@given(which=st.integers(0, 5), mutations=st.lists(MUTATIONS, min_size=1, max_size=2))
def test_a_merge_with_a_damaged_input(case: Case, which: int, mutations: list[Mutation]) -> None:
    """What belongs to merges: clocks, ranks, samples as args of layers, windows."""
    parts = [Case(ROOT / name) for name in case.about["inputs"]]
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number, part in enumerate(parts):
            path = copied(part, Path(folder) / str(number), mutations if number == which % len(parts) else [])
            paths.append(path)
        found = merge_outcome(case, parts, paths)
        if kernel.COMPILED:
            with kernels.without():
                assert merge_outcome(case, parts, paths) == found


def merge_outcome(case: Case, parts: list[Case], paths: list[Path]) -> list[Any]:
    """A refusal, or both outputs."""
    try:
        inputs = zip(parts, paths, strict=True)
        traces = [read(path, format=part.format, options=part.options) for part, path in inputs]
        merged = case.merged(traces)
    except TraceconvError as error:
        check_one_line(error)
        return [type(error), error.message, error.hint]
    return [merged.counts(), merged.metadata, *(written(merged, output) for output in ("perfetto", "chrome-json"))]


def copied(case: Case, folder: Path, mutations: list[Any]) -> Path:
    """The input with some changes, in a folder with what lies beside it."""
    data = case.input.read_bytes()
    for mutation in mutations:
        data = mutation.apply(data)
    folder.mkdir(exist_ok=True)
    if (case.folder / "beside").is_dir():
        shutil.copytree(case.folder / "beside", folder, dirs_exist_ok=True)
    path = folder / case.about.get("file_name", case.input.name)
    path.write_bytes(data)
    return path


def check(case: Case, mutations: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = copied(case, Path(folder), mutations)
        data = path.read_bytes()
        identify_or_refuse(path)
        found = outcome(path, case)
        if kernel.COMPILED:
            with kernels.without():
                assert outcome(path, case) == found
        assert path.read_bytes() == data


def check_one_line(error: TraceconvError) -> None:
    assert "\n" not in error.message + error.hint


def check_refusal(error: TraceconvError, path: Path) -> None:
    check_one_line(error)
    assert path.name in error.message


def identify_or_refuse(path: Path) -> None:
    try:
        identify(path)
    except TraceconvError as error:
        check_refusal(error, path)


def outcome(path: Path, case: Case) -> list[Any]:
    """Everything that comes out of an input: a refusal, or the trace, what became of each event, and both outputs."""
    try:
        trace = read(path, format=case.format, options=case.options)
    except TraceconvError as error:
        check_refusal(error, path)
        return [type(error), error.message, error.hint]
    for text in [*trace.strings, *(track.name for track in trace.tracks)]:
        text.encode()  # no lone surrogate
    source = trace.sources[0]
    balance = source.balance
    assert balance.even
    counts = (balance.read, balance.written, dict(balance.merged), dict(balance.skipped))
    diagnostics = sorted(entry.message() for entry in source.diagnostics)
    found = [trace.counts(), counts, diagnostics, trace.metadata, trace.snapshots]
    try:
        merged = merge_traces([trace], align([trace]))
    except UnrelatedClocks as error:
        return [*found, error.message]
    validate(merged)
    for output in ("perfetto", "chrome-json"):
        data = io.BytesIO()
        counted = writer_named(output).write(merged, data)
        assert (counted.slices, counted.logs) == (len(merged.slices.ts), len(merged.logs.ts))
        found.append(data.getvalue())
    return found

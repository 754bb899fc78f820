"""Damage that is done to inputs: to their bytes, to the values of their fields, and to the cells of databases."""

from __future__ import annotations

import random
import re
import sqlite3
import tempfile
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from traceconv.io.sqlite import quoted

_NUMBER = re.compile(rb"\d+(?:\.\d+)?")
#: One of so many numbers behind a place is replaced.
_NEAR = 20
_OTHER = (
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
JUNK = [b"\xff", b"\x00", b'"', b"{", b"]", b"\n", b",", b"-", b"9" * 30, b"1e999", b"NaN", b"\x1b[31m"]
EDIT_KINDS = [*["set"] * 12, "delete", "drop column", "drop table", "rename column", "rename table", "untype", "untype"]
ROWS = ["", "WHERE rowid % 2", "WHERE rowid = 1", "WHERE rowid > 3"]
CELLS = [
    *(None, 0, -1, 1, 2**31, 2**32, 2**63 - 1, -(2**63), 1_511_000_000_000_000_000),
    *(1.5, 1e300, float("inf"), "", "text", "9" * 30, "a\x00b", "[" * 2000, b"", b"\xff\xfe", bytes(200)),
]
ODD_NUMBERS = [
    *(b"inf", b"-Infinity", b"nan", b"1e400", b"-1e400", b"1e-400", b"1e308", b"1e9999999999999999999", b"1e5"),
    *(b"9" * 5000, b"-" + b"9" * 5000, b"9" * 309, b"1" + b"0" * 400, b"9" * 19, b"18446744073709551615", b"9" * 20),
    *("²".encode(), "١٢".encode(), "１２".encode(), b"1_0", b"0x1f", b"1,5", b"1.", b".5", b".", b"-", b"0.1.2", b"+5"),
    *(b"", b" ", b"x", b"-1", b"-0", b"1.5", b"null", b"true", b"{}", b"[]"),
    *(b"[" * 1100 + b"]" * 1100, b"[" * 5000, b"a" * 140_000),
    *(b'"' + b"9" * 5000 + b'"', '"²"'.encode(), b'"1e400"', b'"inf"'),
]
ODD_CELLS = [
    *(float("inf"), 1e300, "9" * 5000, "9" * 309, "²", "١٢", "1e400", "inf", "[" * 2000),
    *(-1, 2**63 - 1, -(2**63), "", "x", None),
]
#: Values of JSON that a member may not have, or not twice: sums exceed 64 bits and doubles.
ODD_VALUES = [
    *(b"null", b"true", b"[]", b"[[]]", b"{}", b'{"a":1}', b"5", b"1.5", b"-1", b'""', b'"x"', b'"\\ud800"'),
    *(b"9223372036854775813", b"-9223372036854775808", b"9" * 30, b"1e308", b"1e400", b"NaN"),
]
#: A member of JSON whose value is plain, or an object or list without others in it.
_MEMBER = re.compile(rb'"([^"\\\n]{1,40})"\s*:\s*(?=("(?:[^"\\\n]|\\.)*+"|[-+.\w]++|\{[^{}]*+\}|\[[^\[\]]*+\]))')
_FIELD = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_KEY = re.compile(rb'"([^"]*)"\s*:\s*"?$')
#: The bytes before and behind a number that tell its field, if no key does.
_BEFORE, _BEHIND, _MOST_BYTES = 10, 2, 1 << 21


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
            *_OTHER,
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


@lru_cache(4)
def fields(data: bytes) -> dict[Any, list[tuple[int, int]]]:
    """The places of the numbers of an input, by field: what stands behind one key or between the same characters."""
    by_field = defaultdict(list)
    for match in _FIELD.finditer(data):
        before = re.sub(rb"[0-9.]+", b"0", data[max(0, match.start() - 24) : match.start()])
        key = _KEY.search(before)
        behind = data[match.end() : match.end() + _BEHIND]
        by_field[key[1] if key else before[-_BEFORE:], re.sub(rb"[0-9]+", b"0", behind)].append(match.span())
    return by_field


@lru_cache(4)
def members(data: bytes) -> dict[bytes, list[tuple[int, int]]]:
    """The places of the values of JSON in an input, by key."""
    by_key = defaultdict(list)
    for match in _MEMBER.finditer(data):
        by_key[match[1]].append(match.span(2))
    return by_key


@dataclass(frozen=True)
class OddValue:
    """A value in the place of one value of a field, or of all; places are shares in millionths.

    Attributes:
        find: the function that finds the fields, such as `fields` for numbers.
    """

    field: int
    place: int
    everywhere: bool
    value: bytes
    find: Callable[[bytes], dict[Any, list[tuple[int, int]]]] = fields

    def apply(self, data: bytes) -> bytes:
        """The input with the value."""
        known = list(self.find(data).values())
        if not known:
            return data
        spans = known[self.field * len(known) // 10**6]
        return with_value(data, spans if self.everywhere else [spans[self.place * len(spans) // 10**6]], self.value)


def with_value(data: bytes, spans: list[tuple[int, int]], value: bytes) -> bytes:
    """The input with a value in some places."""
    parts, at = [], 0
    for start, end in spans[: 1 + _MOST_BYTES // (1 + len(value))]:
        if start >= at:  # else inside of the one before
            parts += [data[at:start], value]
            at = end
    return b"".join([*parts, data[at:]])

"""Helpers for importers of texts: lines, tables between other lines, rows and fields of CSV, numbers of any locale.

An importer states what it reads. All other lines are output of other programs: it counts them with `others`, at the
price of its own tests of a line, which therefore begin with a cheap one.

A table is printed within the output of a program, which may colour it, put a prefix before each line (a logger's time,
`[rank0]: `) and mix the lines of several ranks. The prefix of a table is the text before its heading.

    "0","1234","app","1,215,000,000.00"     an English locale
    "0","1234","app","1.215.000.000,00"     a German one
    0;1234;app;1215000000,00                saved again by a spreadsheet

`1.234` is ambiguous: the decimal mark of a file follows from its unambiguous numbers; without any, it is the English
one.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

from traceconv.families.common.ansi import plain, plain_text
from traceconv.io.shown import Counted
from traceconv.io.source import Source
from traceconv.model.builder import Builder
from traceconv.model.diagnostics import Code
from traceconv.model.numbers import number_of as plain_number_of

#: The note on an input that holds tables only.
NO_TIMELINE = (
    "the file holds totals only and no times: they are shown beside the trace of the same run, if that is merged, too"
)

_DIGIT = re.compile(r"\d")
_Table = TypeVar("_Table")

DELIMITERS = (",", ";", "\t")

# 1,215,000,000.00 | -27.595.520 | 65,77 | 1e-05; groups of three may also be separated by spaces or apostrophes
_NUMBER = re.compile(r"[+-]?(?=[\d.,])(\d*(?:[.,]\d+)*[.,]?)([eE][+-]?\d{1,4})?", re.ASCII)
_SPACES = str.maketrans("", "", " \u00a0\u202f\u2009'\u2019")
#: A field in quotes, the last of which may be missing at the end of the line.
_QUOTED = re.compile(r'"((?:[^"]|"")*+)"?+')
_MAX_LENGTH = 60
_GROUP = 3


class TextLines:
    """The lines of a text, counted in a builder."""

    def __init__(self, out: Builder) -> None:
        self.others = 0  # lines of other programs
        self._out = out

    def read(self, source: Source, *, keep_ends: bool = False, again: bool = False) -> Iterator[tuple[int, bytes]]:
        """Yield the lines with their numbers, without their ends unless they are to be kept.

        They are counted as read, unless they were read before and are read `again`.
        """
        for numbers, lines in source.batches():
            self._out.balance.read += 0 if again else len(lines)
            yield from zip(numbers, lines if keep_ends else [line.rstrip(b"\r\n") for line in lines], strict=True)

    def tell_others(self, code: Code, skipped: Counted | None = None) -> None:
        """Count the lines of other programs, if any, as a problem; `skipped` is their name in the balance."""
        if self.others and skipped:
            self._out.balance.skipped[skipped] += self.others
            self._out.problem(code, count=self.others)
        elif self.others:
            self._out.skip(code, count=self.others)


def csv_rows(source: Source, broken: Callable[[csv.Error], list[str]]) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of the rows of a CSV, and the number of the last line of each; cells may contain line ends.

    `broken` returns the cells of a row that cannot be parsed.
    """
    number = 0

    def texts() -> Iterator[str]:
        nonlocal number
        for numbers, lines in source.batches():
            for number, line in zip(numbers, lines, strict=True):  # noqa: B007
                text = plain_text(line.decode("utf-8", "replace"))
                if "\r" in text[:-2]:
                    yield from io.StringIO(text, newline="")
                else:
                    yield text

    reader = csv.reader(texts())
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            cells = broken(error)
        yield number, cells


def text_of_line(line: bytes) -> str:
    """Return a line as text, without its end, colours, and characters that a carriage return has overwritten."""
    text = (plain(line) if b"\x1b" in line else line).decode("utf-8", "replace").rstrip("\r\n")
    return text.rpartition("\r")[2] if "\r" in text else text


class OpenTables(Generic[_Table]):
    """The tables that are not complete yet, by the prefix of their lines."""

    def __init__(self) -> None:
        self._tables: dict[str, _Table] = {}

    def open(self, prefix: str, table: _Table) -> None:
        """Open a table; one with the same prefix is replaced, as it has ended."""
        self._tables[prefix] = table

    def close(self, prefix: str) -> _Table | None:
        """Close the table with a prefix and return it; None if there is none."""
        return self._tables.pop(prefix, None)

    def all(self) -> list[_Table]:
        """Return the open tables, in the order of the first use of their prefixes."""
        return list(self._tables.values())

    def find(self, line: str) -> tuple[str, _Table, str] | None:
        """Return the prefix and the table that a line belongs to, and the line without the prefix.

        Return None if no table is open.

        A prefix may contain numbers that change from line to line, such as times, so one that differs only in digits
        fits, too, after an equal one. Loggers print one prefix before the first line of a message only: a line without
        a prefix belongs to the table that was opened last.
        """
        if not self._tables:
            return None
        by_length = sorted(self._tables, key=len, reverse=True)
        for prefix in by_length:
            if prefix and line.startswith(prefix):
                return prefix, self._tables[prefix], line[len(prefix) :]
        for prefix in by_length:
            if prefix and _DIGIT.sub("0", line[: len(prefix)]) == _DIGIT.sub("0", prefix):
                return prefix, self._tables[prefix], line[len(prefix) :]
        latest = "" if "" in self._tables else next(reversed(self._tables))
        return latest, self._tables[latest], line


def fields_of(line: str, delimiter: str) -> list[str]:
    """Return the fields of a line: quoted or not, with quotes doubled inside."""
    if line and '"' not in line:
        return line.split(delimiter)
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:  # a field above 128 KiB, or a line break outside of quotes
        return _split(line, delimiter)


def _split(line: str, delimiter: str) -> list[str]:
    """Return the same for any line."""
    fields, at = [], 0
    while at <= len(line):
        quoted = _QUOTED.match(line, at)
        begin = quoted.end() if quoted else at
        end = line.find(delimiter, begin)
        end = len(line) if end < 0 else end
        fields.append((quoted[1].replace('""', '"') if quoted else "") + line[begin:end])
        at = end + len(delimiter)
    return fields


def decimal_mark(text: str) -> str:
    """Return the decimal mark of a number.

    It is "." or ","; "" if ambiguous, or if the text is not a number.

    >>> decimal_mark("1.215.000,5"), decimal_mark("27.595.520"), decimal_mark("1,234")
    (',', ',', '')
    """
    match = _NUMBER.fullmatch(text.translate(_SPACES)) if 0 < len(text) < _MAX_LENGTH else None
    if match is None:
        return ""
    body = match[1]
    marks = [mark for mark in body if mark in ".,"]
    if not marks:
        return ""
    if len(set(marks)) == 2:
        return marks[-1]
    if len(marks) > 1:
        return "," if marks[0] == "." else "."
    before, after = re.split("[.,]", body)
    is_group = len(after) == _GROUP and 0 < len(before) <= _GROUP and before.lstrip("0") != ""
    return "" if is_group and match[2] is None else marks[0]


def find_decimal_mark(texts: Iterable[str]) -> str:
    """Return the decimal mark of a file from its first unambiguous number; "." if there is none."""
    return next((mark for mark in map(decimal_mark, texts) if mark), ".")


def number_of(text: str, mark: str) -> int | float | None:
    """Return the number in a field of a file with that decimal mark; None if it is not a number."""
    if not 0 < len(text) < _MAX_LENGTH:
        return None
    compact = text.translate(_SPACES)
    if _NUMBER.fullmatch(compact) is None:
        return None
    return plain_number_of(compact.replace("," if mark == "." else ".", ""), mark)

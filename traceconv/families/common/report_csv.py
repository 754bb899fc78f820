"""Parse CSV reports of vendors' tools: fields, and numbers of any locale.

    "0","1234","app","1,215,000,000.00"     an English locale
    "0","1234","app","1.215.000.000,00"     a German one
    0;1234;app;1215000000,00                saved again by a spreadsheet

`1.234` is ambiguous: the decimal mark of a file follows from its unambiguous numbers; without any, it is the English
one.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable

from traceconv.model.numbers import number_of as plain_number_of

DELIMITERS = (",", ";", "\t")

# 1,215,000,000.00 | -27.595.520 | 65,77 | 1e-05; groups of three may also be separated by spaces or apostrophes
_NUMBER = re.compile(r"[+-]?(?=[\d.,])(\d*(?:[.,]\d+)*[.,]?)([eE][+-]?\d{1,4})?", re.ASCII)
_SPACES = str.maketrans("", "", " \u00a0\u202f\u2009'\u2019")
#: A field in quotes, the last of which may be missing at the end of the line.
_QUOTED = re.compile(r'"((?:[^"]|"")*+)"?+')
_MAX_LENGTH = 60
_GROUP = 3


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
    """Return the number in a field, None if it is not a number.

    Args:
        mark: the decimal mark of the file.
    """
    if not 0 < len(text) < _MAX_LENGTH:
        return None
    compact = text.translate(_SPACES)
    if _NUMBER.fullmatch(compact) is None:
        return None
    return plain_number_of(compact.replace("," if mark == "." else ".", ""), mark)

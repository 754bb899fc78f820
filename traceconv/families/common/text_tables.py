"""Helpers for importers of printed tables: lines as text, and the open tables of a log.

A table is printed within the output of a program, which may colour it, put a prefix before each line (a logger's time,
`[rank0]: `) and mix the lines of several ranks. The prefix of a table is the text before its heading.
"""

from __future__ import annotations

import re
from typing import Generic, TypeVar

from traceconv.families.common.ansi import plain

#: The note on an input that holds tables only.
NO_TIMELINE = (
    "the file holds totals only and no times: they are shown beside the trace of the same run, if that is merged, too"
)

_DIGIT = re.compile(r"\d")
_Table = TypeVar("_Table")


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

"""What all importers of printed tables share: lines as text, and the tables that are open in a log.

A table is printed amid the output of a program, which may colour it, put a prefix before each line (a logger's time,
`[rank0]: `) and mix the lines of several ranks. The heading of a table tells its prefix: the text left of it.
"""

from __future__ import annotations

import re
from typing import Generic, TypeVar

from traceconv.families.common.ansi import plain

#: What the user reads about an input of tables alone.
NO_TIMELINE = (
    "the file holds totals only and no times: they are shown beside the trace of the same run, if that is merged, too"
)

_DIGIT = re.compile(r"\d")
_Table = TypeVar("_Table")


def text_of_line(line: bytes) -> str:
    """Return a line as text, without its end, without colours, and without what a carriage return has overwritten."""
    text = plain(line).decode("utf-8", "replace").rstrip("\r\n")
    return text.rpartition("\r")[2]


class OpenTables(Generic[_Table]):
    """The tables whose end has not been seen, by the prefix of their lines."""

    def __init__(self) -> None:
        self._tables: dict[str, _Table] = {}

    def open(self, prefix: str, table: _Table) -> None:
        """Open a table; another one with the same prefix has ended."""
        self._tables[prefix] = table

    def close(self, prefix: str) -> _Table | None:
        """Close the table with that prefix and return it; None if there is none."""
        return self._tables.pop(prefix, None)

    def all(self) -> list[_Table]:
        """Return the tables that are open, in the order of their prefixes' first use."""
        return list(self._tables.values())

    def find(self, line: str) -> tuple[str, _Table, str] | None:
        """Return the prefix and the table that a line belongs to, and the line without the prefix.

        None if none is open.

        A prefix may count up from line to line, as times do, so one that differs only in its digits is taken too, but
        the very same one goes first. Loggers print a message of several lines with one prefix, before the first:
        a line without any prefix belongs to the table that began last.
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

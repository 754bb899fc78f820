"""Helpers for the text outputs of TVM: lines of a log with colours, prefixes and other output between them."""

from __future__ import annotations

import re

import msgspec

from traceconv.families.common.ansi import plain
from traceconv.model.diagnostics import lost, noted, repaired, skipped
from traceconv.model.numbers import LIMIT_NS, US, parse_ns

OTHER_LINE = skipped(
    "tvm.other_line", "lines outside of TVM's tables are the program's own output and were left out", quiet=True
)
CUT_ROW = lost("tvm.cut_row", "a row of a table is cut, wrapped or otherwise incomplete, and was left out")
BAD_DURATION = repaired(
    "tvm.bad_duration",
    "a duration is not a number, below zero or too large: drawn as an instant, the text is kept in the args",
)
SUM_DIFFERS = noted(
    "tvm.sum_differs",
    "the durations do not add up to the printed total: rows are missing, or several rows are of one node",
)

#: The header of a table of the debugger; those of a profiling report, and of the table of sums before 0.8.
TABLE_HEADER = re.compile(
    rb"Node Name\s+(?P<ops>Ops)\s+Time\(us\)\s+Time\(%\)\s+(?P<clock>Start Time\s+End Time\s+)?Shape\s+Inputs\s+Outputs"
    rb"(?P<measured>\s+Measurements\(us\))?\s*$"
)
REPORT_HEADER = re.compile(rb"(?<![A-Za-z0-9_])Name\s+Duration \(us\)\s+Percent(?=\s|$)")
SUMS_HEADER = re.compile(rb"#OpName\s+#InvokeCount\s+#Duration\(us\): Sum/Mean/Min/Max")

#: Longer lines belong to no table.
MAX_LINE = 1 << 16

_JSON_START = re.compile(rb"\{\s*[\"}]|\[\s*[\[{\"]")
_DASHES = re.compile(rb"-{2,}(?:\s+-{2,})*")
#: Dates and times in a prefix, which differ from line to line; a rank or a pid does not.
_TIMES = re.compile(rb"(?<!\d)\d++(?:[-:.,/TZ ]++\d++)+")


def clean(line: bytes) -> bytes:
    """Return a line without colours, line end, and what a progress bar wrote over; tabs are two spaces."""
    line = plain(line.rstrip(b"\r\n"))
    if b"\r" in line:
        line = line[line.rindex(b"\r") + 1 :]
    return line.replace(b"\t", b"  ") if b"\t" in line else line


def is_json(data: bytes) -> bool:
    """Return whether the head of a file begins like JSON; a line may begin with [rank0]."""
    return _JSON_START.match(data) is not None


def is_dashes(text: bytes) -> bool:
    """Return whether a line underlines a header."""
    return _DASHES.fullmatch(text.strip()) is not None


def prefix_key(prefix: bytes) -> bytes:
    """Return the part of a prefix that differs between two loggers or ranks; times do not count."""
    return _TIMES.sub(b"#", prefix).strip()


def begins_report(line: bytes) -> bool:
    """Return whether a table of a profiling report begins with this line."""
    return (REPORT_HEADER.search(line) or SUMS_HEADER.search(line)) is not None


def as_json(number: bytes) -> msgspec.Raw | str:
    """Return a number as printed; as text if JSON has no such number."""
    try:
        msgspec.json.decode(number, type=float)
    except msgspec.MsgspecError:
        return number.decode("utf-8", "replace")
    return msgspec.Raw(number)


def length_ns(number: bytes) -> int | None:
    """Return the ns of a text in microseconds; None for an invalid duration."""
    try:
        length = parse_ns(number, US)
    except ValueError:
        return None
    return length if 0 <= length < LIMIT_NS >> 20 else None

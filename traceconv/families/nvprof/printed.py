"""Parse the output of nvprof: lines with a prefix, header rows, rows in columns or as CSV, values.

    ==4711== Profiling result:
       Start  Duration            Grid Size      Block Size     Regs*  ...        Device   Context  Name
    326.63ms  1.6782ms          (32768 1 1)      (1024 1 1)        14  ...  TITAN Xp (0)         1  k(int*) [128]

    "Start","Duration",...,"Name"
    us,us,...,
    0.000000,1.888000,...,"[CUDA memset]"

The prefix is the pid, or "========" when nvprof shows a file that it has written before. Tables differ by version and
by what happened, so columns are known by the words of the header row. Cells of a row stand two or more spaces apart,
with "-" where there is none; the last one is the name, up to the end of the line. Source: console samples
of CUDA 6 to 11.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import Any

from traceconv.model.numbers import MS, NS, US, S, decimal_of, parse_ns

#: ==4711== Profiling result:   |   ======== Profiling result:
PREFIX = re.compile(
    rb"==(?P<pid>\d{1,10})== ?(?P<text>.*)|"
    rb"======== (?P<imported>(?:Profiling|API calls|Unified Memory|NVTX|Event|Metric|CPU profiling|Dependency|OpenACC|"
    rb"Warning|Error|NVPROF|Thread|Domain|Range|  ).*)"
)
_GAP = re.compile(r"\s{2,}")
#: A cell of CSV: in quotes up to a quote that ends it (quotes in names are not doubled), or plain.
_CELL = re.compile(r'"((?:[^"]|"(?!\s*(?:,|$)))*)"\s*(?:,|$)|([^,]*)(?:,|$)')
_VALUE = re.compile(r"(?a)(-?\d[\d.]*(?:,\d+)?(?:[eE][+-]?\d+)?)\s*([a-zA-Zµ%/]*)")
_UNIT = re.compile(r"%|ns|us|µs|ms|s|[KMGT]?B(?:/s)?")

#: First words of the header rows of tables that are known, in the order of the columns.
_STARTS = (
    ("Start", "Duration"),
    ("Time(%)", "Time"),
    ("Type", "Time(%)"),
    ("Invocations",),
    ("Device", "Kernel", "Invocations"),
    ("Device", "Count"),
    ("Count", "Avg Size"),
    ("Critical path(%)",),
)
_FIRST = tuple({start[0] for start in _STARTS})
_LAST = ("Name", "Correlation_ID", "Avg", "Total", "Total Time", "Max")

_TIMES = {"ns": NS, "us": US, "µs": US, "ms": MS, "s": S}
_SIZES = {"B": 0, "KB": 10, "MB": 20, "GB": 30, "TB": 40}
_SHORT = {"Regs": "Registers Per Thread", "SSMem": "Static SMem", "DSMem": "Dynamic SMem"}


@dataclass(frozen=True)
class Header:
    """A header row."""

    columns: tuple[str, ...]  # the words, without footnote marks
    csv: bool  # whether the table is CSV

    @cached_property
    def timed(self) -> bool:
        """Whether the rows have times."""
        return self.columns[:2] == ("Start", "Duration")

    @cached_property
    def correlated(self) -> bool:
        """Whether the last column is the correlation id."""
        return self.columns[-1] == "Correlation_ID"

    @cached_property
    def name_at(self) -> int:
        """The column of the name, which may hold the separator of columns; the last one in tables of text."""
        for word in ("Name", "Kernel"):
            if word in self.columns:
                return self.columns.index(word)
        return len(self.columns) - 1


def header_of(line: str) -> Header | None:
    """Return a line as a header row; None if it is not one."""
    text = line.strip()
    if not text.lstrip('"').startswith(_FIRST):
        return None
    csv = text.startswith('"')
    words = cells_of_csv(text) if csv else _GAP.split(text)
    columns = tuple(_SHORT.get(word.strip().rstrip("*"), word.strip().rstrip("*")) for word in words)
    # A metric of each launch has a column of its own, after the name.
    known = "Name" in columns if columns[:2] == ("Start", "Duration") else columns[-1] in _LAST
    if known and len(columns) > 1 and any(columns[: len(start)] == start for start in _STARTS):
        return Header(columns, csv)
    return None


def units_of(line: str, header: Header, header_line: str) -> dict[str, str] | None:
    """Return the units row below a header row: the unit of each column that has one."""
    if header.csv:
        cells = line.strip().split(",")
        if len(cells) != len(header.columns) or not any(cells) or not all(_is_unit(cell) for cell in cells):
            return None
        return {column: cell for column, cell in zip(header.columns, cells, strict=True) if cell}
    words = list(re.finditer(r"\S+", line))
    if not words or not all(_UNIT.fullmatch(word[0]) for word in words):
        return None
    ends = {}  # columns stand flush right
    at = 0
    for word in _GAP.split(header_line.strip()):
        at = header_line.index(word, at) + len(word)
        ends[at] = word.rstrip("*")
    return {_SHORT.get(ends[word.end()], ends[word.end()]): word[0] for word in words if word.end() in ends}


def _is_unit(cell: str) -> bool:
    return not cell or _UNIT.fullmatch(cell) is not None


def cells_of_csv(line: str) -> list[str]:
    """Return the cells of a line of CSV as nvprof writes it."""
    if '"' not in line:
        return line.split(",") if line else []
    cells, at = [], 0
    while at < len(line):
        match = _CELL.match(line, at)
        if match is None or match.end() == at:
            cells.append(line[at:])
            break
        cells.append(match[1] if match[1] is not None else match[2])
        at = match.end()
        if at == len(line) and line.endswith(","):
            cells.append("")
    return cells


def cells_of(line: str, header: Header) -> list[str] | None:
    """Return the cells of a row, one for each column; None if there are fewer."""
    wanted = len(header.columns)
    if not header.csv:
        cells = _GAP.split(line.strip(), maxsplit=wanted - 1 if header.name_at == wanted - 1 else 0)
        return cells if len(cells) == wanted else None
    return joined(cells_of_csv(line.strip()), header)


def joined(cells: list[str], header: Header) -> list[str] | None:
    """Return the cells of a CSV row, one for each column; None if there are fewer."""
    wanted = len(header.columns)
    spare = len(cells) - wanted
    if spare > 0:  # the name has commas between quotes
        at = header.name_at
        cells = [*cells[:at], '","'.join(cells[at : at + spare + 1]), *cells[at + spare + 1 :]]
    return cells if len(cells) == wanted else None


def split_value(text: str, unit: str = "") -> tuple[str, str] | None:
    """Return number and unit of "1.6782ms"; a number without unit has that of its column."""
    match = _VALUE.fullmatch(text.strip())
    return (match[1].replace(",", "."), match[2] or unit) if match else None


@lru_cache(maxsize=1 << 12)
def time_ns(text: str, unit: str = "") -> tuple[int, int] | None:
    """Return a time and its resolution, both ns; None for other texts."""
    match = _VALUE.fullmatch(text)
    exponent = _TIMES.get(match[2] or unit) if match else None
    if match is None or exponent is None:
        return None
    number = match[1].replace(",", ".")
    decimals = len(number.partition(".")[2])
    try:
        return parse_ns(number.encode(), exponent), 10 ** max(exponent - decimals, 0)
    except ValueError:
        return None


@lru_cache(maxsize=1 << 12)
def value_of(text: str, unit: str = "") -> tuple[str, Any]:
    """Return the suffix of the key and the value for the args: ("_ns", 1678200), ("_bytes", 4096), ("", "Low (2)")."""
    parts = split_value(text, unit)
    if parts is None:
        return "", text
    number, found_unit = parts
    base, slash, _ = found_unit.partition("/")
    try:
        if found_unit in _TIMES:
            return "_ns", parse_ns(number.encode(), _TIMES[found_unit])
    except ValueError:
        return "", text
    exact = decimal_of(number)
    if exact is None:
        return "", text
    if found_unit == "%":
        return "_percent", _plain(exact)
    if base in _SIZES and abs(exact) < 10**15:
        size = exact * (1 << _SIZES[base])
        return ("_gb_per_s", round(float(size) / 1e9, 4)) if slash else ("_bytes", round(size))
    return ("", _plain(exact)) if not found_unit else ("", text)


def _plain(number: Decimal) -> int | float | str:
    """Return a JSON number: whole where it is."""
    if number == number.to_integral_value() and abs(number) < 2**63:
        return int(number)
    value = float(number)
    return value if abs(value) < 1e308 else str(number)


@lru_cache(maxsize=1 << 10)
def key_of(column: str) -> str:
    """Return the name of a column as a key of args: "Time(%)" -> "time"."""
    return re.sub(r"[^a-z0-9]+", "_", column.replace("(%)", "").lower()).strip("_")

"""Tables of the PyTorch profiler: `print(prof.key_averages().table())`, of CPU and devices.

    -------------------  ------------  ------------  ------------  ------------  ------------  ------------
                   Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg    # of Calls
    -------------------  ------------  ------------  ------------  ------------  ------------  ------------
           aten::conv2d         0.22%      45.232us        75.48%      15.320ms       3.830ms             4
    -------------------  ------------  ------------  ------------  ------------  ------------  ------------
    Self CPU time total: 20.296ms

Source: the source (torch/autograd/profiler_util.py, profiler.py before 1.9) and recordings of torch 2.13. The dashes
state the columns; a value that is too long pushes the rest of its row to the right. Times have their unit in each cell
(us, ms, s), memory too (b, Kb, Mb, Gb; newer: B, KB, MB, GB; of 1024), operations in the heading (Total KFLOPs).
Columns of a device carry its name: CUDA, XPU, HPU, MTIA, a private one. Names longer than 55 characters end in `...`.
With stacks each row is followed by one line for each frame; with stacks and operations, torch prints the headings of
these two columns in the wrong order. By default only the first 100 rows are printed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from traceconv.families.common.text_lines import NO_TIMELINE, OpenTables, TextLines, text_of_line
from traceconv.families.importer import Importer, Match, Signature
from traceconv.io.shown import Counted
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import NO_TIME
from traceconv.model.diagnostics import LINES, TABLE_HEADINGS, absent, lost, noted, skipped
from traceconv.model.marks import FormatMarks, TotalsMarks
from traceconv.model.numbers import MS, NS, US, S, decimal, double, parse_ns, whole
from traceconv.model.track_table import TrackId

STACK_LINES = Counted("line of a call stack", "lines of call stacks")
FOOTERS = Counted("footer kept as metadata", "footers kept as metadata")

OTHER_LINE = skipped(
    "pytorch-table.other_line", "lines outside of the tables are the program's own output and were left out", quiet=True
)
BAD_ROW = lost("pytorch-table.bad_row", "a row does not fit the columns of its table (a cut or mixed up line)")
BAD_CELL = noted("pytorch-table.bad_cell", "a cell does not fit its column: kept as text")
SHORTENED = absent(
    "pytorch-table.shortened_name",
    "PyTorch cut a name and appended ... (max_name_column_width): several rows may have the same name",
)
CUT = absent("pytorch-table.cut", "a table has no end: the text was cut, or something is mixed in")

_GAP = "  "
_RULE = re.compile(r"(?<!-)-{4,}+(?: {2}-{4,}+){3,}")
_HEADING = re.compile(r"\s*Name {2,}(?:Overload Name {2,})?Self \w[\w ]*? (?:total )?%")
#: Self CPU time total: 20.296ms     Self CUDA time total: 1.5s     (before 1.8: CUDA time total: 1.5s)
_FOOTER = re.compile(r"((?:Self )?\w+ time total): (-?[\d.]++ ?[A-Za-z]\w*+)\s*")
_TIME = re.compile(r"(-?\d+(?:\.\d+)?)(ns|us|ms|s)")
_MEMORY = re.compile(r"(-?\d+(?:\.\d+)?) ?([KMGT]?)[Bb]")
_PERCENT = re.compile(r"(-?\d+(?:\.\d+)?)%?")  # asynchronous events have a 0 without unit
_TIME_UNITS = {"ns": NS, "us": US, "ms": MS, "s": S}
_MEMORY_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_FLOPS_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_FLOPS = re.compile(r"Total ([KMGTP]?)FLOPs")
_MISSING = ("", "--", "NaN")
_TEXTS = ("Overload Name", "Input Shapes", "Source Location")
_CALLS = ("# of Calls", "Number of Calls")
_HELP = "Sums over the recording (key_averages().table()). Totals of an operator include those that it calls."


@lru_cache(maxsize=1 << 10)
def _key(heading: str) -> str:
    return re.sub(r"\W+", "_", heading.replace("# of Calls", "calls").replace("%", "percent")).strip("_").lower()


@lru_cache(maxsize=1 << 12)  # most values occur in many rows
def cell(heading: str, text: str) -> tuple[str, Any] | None:
    """Return the arg of a cell: its key with the unit, its number; None for an empty cell.

    Raises ValueError if the cell does not fit its column.

    >>> cell("CPU time avg", "3.830ms")
    ('cpu_time_avg_ns', 3830000)
    """
    if text in _MISSING:
        return None
    key = _key(heading)
    flops = _FLOPS.fullmatch(heading)
    if heading in _TEXTS:
        return key, text
    if heading in _CALLS or heading == "Node ID":
        return ("calls" if heading in _CALLS else key), whole(text)
    if heading.endswith("%"):
        return key, double(_matched(_PERCENT, text)[1])
    if heading.endswith(" Mem"):
        amount = _matched(_MEMORY, text)
        return f"{key}_bytes", round(decimal(amount[1]) * _MEMORY_UNITS[amount[2]])
    if flops is not None:
        return "total_flops", round(decimal(text) * _FLOPS_UNITS[flops[1]])
    time = _matched(_TIME, text)
    return f"{key}_ns", parse_ns(time[1].encode(), _TIME_UNITS[time[2]])


def _matched(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    match = pattern.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a value of this column")
    return match


def _in_order(headings: list[str]) -> list[str]:
    """Return the headings in the order of the values: torch swaps the last two."""
    if len(headings) > 1 and headings[-2] == "Source Location" and _FLOPS.fullmatch(headings[-1]):
        return [*headings[:-2], headings[-1], headings[-2]]
    return headings


class _Row(msgspec.Struct):
    """A row, with the frames of its stack that follow it."""

    number: int
    name: str
    args: dict[str, Any]
    stack: list[str] = msgspec.field(default_factory=list)


class _Table(msgspec.Struct):
    number: int
    starts: list[int]  # the start of each column, by the dashes
    headings: list[str] = msgspec.field(default_factory=list)  # the columns; empty before the line with the headings
    rules: int = 1
    track: TrackId | None = None  # None before the first row
    pending: _Row | None = None  # the last row, whose stack may follow
    totals: dict[str, int] = msgspec.field(default_factory=dict)

    @property
    def ended(self) -> bool:
        """Whether the dashes below the rows were seen; footers may follow."""
        return self.rules > 2

    def cells(self, line: str) -> list[str] | None:
        """Return the cells of a line; None if it does not have as many as the table."""
        line = line.rstrip()
        ends = [*self.starts[1:], None]
        cells = [line[start:end] for start, end in zip(self.starts, ends, strict=True)]
        if all(not chunk or chunk.endswith(_GAP) for chunk in cells[:-1]):
            return [chunk.strip() for chunk in cells] if len(line) > self.starts[-1] else None
        # A value that is too long has shifted the following ones: only the name and the last column contain two spaces.
        parts = re.split(r" {2,}", line.strip())
        more = len(parts) - len(self.starts)
        return [_GAP.join(parts[: more + 1]), *parts[more + 1 :]] if more >= 0 else None


class _Reader:
    def __init__(self, out: Builder) -> None:
        self._out = out
        self._tables: OpenTables[_Table] = OpenTables()
        self._count = 0
        self._totals: list[dict[str, int]] = []
        self._lines = TextLines(out)

    def read(self, source: Source) -> None:
        for number, line in self._lines.read(source):
            if not self._line(number, text_of_line(line)):
                self._lines.others += 1
        for table in self._tables.all():
            self._end(table)
        if not self._count:
            raise source.malformed(
                "no table of key_averages() found, expected dashes and a heading Name, Self CPU %, ... between them",
                hint=f"record one with {PytorchTable.record}",
            )
        self._lines.tell_others(OTHER_LINE)
        self._out.note(NO_TIMELINE)
        self._out.metadata["pytorch_tables"] = self._totals

    def _line(self, number: int, line: str) -> bool:
        """Read a line; False if it belongs to no table."""
        rule = _RULE.search(line)
        if rule is not None:
            return self._rule(line[: rule.start()], rule)
        heading = self._tables.find(line)
        if heading is None:
            return False
        prefix, table, rest = heading
        footer = _FOOTER.fullmatch(rest)
        if footer is not None and table.headings:
            return self._footer(number, table, footer)
        if table.headings and not table.ended:
            return self._row(number, table, rest)
        headings = table.cells(rest) if not table.headings and _HEADING.match(rest) else None
        if headings is None or headings[0] != "Name" or len(headings) != len(table.starts):
            self._tables.close(prefix)
            self._end(table)
            return False
        table.headings = _in_order(headings)
        self._count += 1
        return self._merged(TABLE_HEADINGS)

    def _merged(self, kind: Counted) -> bool:
        self._out.balance.merged[kind] += 1
        return True

    def _rule(self, prefix: str, rule: re.Match[str]) -> bool:
        """Read a line of dashes: the first opens a table, the second is below its headings, the third ends it."""
        starts = [match.start() for match in re.finditer("-+", rule[0])]
        heading = self._tables.find(prefix + rule[0])
        table = heading[1] if heading is not None and prefix in (heading[0], "") else None
        if table is not None and table.starts == starts and not table.ended:
            table.rules += 1
            self._write_pending(table)
            return self._merged(TABLE_HEADINGS)
        for closed in (heading[0] if heading is not None and table is not None else prefix, prefix):
            before = self._tables.close(closed)
            if before is not None:
                self._end(before)
        self._tables.open(prefix, _Table(self._count + 1, starts))
        return self._merged(TABLE_HEADINGS)

    # -- rows -------------------------------------------------------------------------------------------------

    def _row(self, number: int, table: _Table, line: str) -> bool:
        cells = table.cells(line)
        if not line.strip() and table.pending is not None and "Source Location" in table.headings:
            return self._merged(STACK_LINES)
        if cells is None or len(cells) != len(table.headings):
            return self._misfit(number, table, line)
        values = dict(zip(table.headings, cells, strict=True))
        frame = values.get("Source Location", "")
        if table.pending is not None and frame and not any(text for key, text in values.items() if key not in _TEXTS):
            table.pending.stack.append(frame)
            return self._merged(STACK_LINES)
        if not values["Name"]:
            return self._misfit(number, table, line)
        self._write_pending(table)
        table.pending = _Row(number, values.pop("Name"), self._args(number, values))
        return True

    def _misfit(self, number: int, table: _Table, line: str) -> bool:
        """Count a line that is not a row: as a cut row if it looks like one, else as other output."""
        if not line.strip() or not re.search(r"\d%(?: |$)|\d[um]?s(?: |$)", line):
            return False
        self._out.skip(BAD_ROW, number, line.strip()[:60])
        return True

    def _args(self, number: int, values: dict[str, str]) -> dict[str, Any]:
        args: dict[str, Any] = {}
        for heading, text in values.items():
            try:
                parsed = cell(heading, text)
            except ValueError:
                self._out.problem(BAD_CELL, number, f"{heading}: {text[:40]!r}")
                parsed = heading, text
            if parsed is not None:
                args[parsed[0]] = parsed[1]
        return args

    def _write_pending(self, table: _Table) -> None:
        row, table.pending = table.pending, None
        if row is None:
            return
        if table.track is None:
            title = "PyTorch key averages" + (f", table {table.number}" if table.number > 1 else "")
            table.track = self._out.tracks.totals(title, description=_HELP)
        if row.name.endswith("..."):
            self._out.problem(SHORTENED, row.number, row.name)
        if row.stack:
            row.args["stack"] = [row.args.pop("source_location", ""), *row.stack]
        self._out.totals(table.track, row.name, "", row.args, row.number)
        self._out.balance.written += 1

    # -- the end ----------------------------------------------------------------------------------------------

    def _footer(self, number: int, table: _Table, footer: re.Match[str]) -> bool:
        """Keep a footer such as `Self CPU time total: 20.296ms`, even when the dashes above it were lost."""
        time = _TIME.fullmatch(footer[2].replace(" ", ""))
        if time is None:
            self._out.problem(BAD_CELL, number, footer[0].strip())
            return self._merged(FOOTERS)
        key = footer[1].replace(" ", "_").lower() + "_ns"
        try:
            table.totals[key] = parse_ns(time[1].encode(), _TIME_UNITS[time[2]])
        except ValueError as error:
            self._out.problem(BAD_CELL, number, str(error))
        return self._merged(FOOTERS)

    def _end(self, table: _Table) -> None:
        """Write the rest of a table, and report if its end is missing."""
        self._write_pending(table)
        if not table.headings:
            return
        if not table.ended:
            self._out.problem(CUT, f"{self._out.info.name}: table {table.number}")
        self._totals.append({"table": table.number, **table.totals})


@dataclass(frozen=True)
class PytorchTable(Importer):
    name = "pytorch-table"
    title = "PyTorch profiler table (key_averages().table())"
    url = "https://docs.pytorch.org/tutorials/recipes/recipes/profiler_recipe.html"
    versions = "torch 1.4 to 2.13; CPU and devices, memory, operations, shapes, stacks"
    signature = Signature("----  ---- & self")
    clock = NO_TIME
    record = "with torch.profiler.profile() as prof: ...; print(prof.key_averages().table())"
    skips = (OTHER_LINE,)

    line_up = "Merged with the trace of the run (export_chrome_trace), it is shown under its process."
    becomes = (
        ("row", "instant without a time, with times in ns, memory in bytes and the rest of its columns as args"),
        ("table", "track"),
        ("call stack below a row", "arg `stack`"),
        ("totals below a table", "metadata"),
    )
    lost = (
        "PyTorch prints 100 rows by default, and does not say how many it left out.",
        "Names, shapes and paths are cut to the width of their column; times have three decimals of their unit.",
    )
    marks = FormatMarks(
        totals=TotalsMarks(
            calls=("calls",),
            total=("cpu_total_ns",),
            self_time=("self_cpu_ns", "self_cpu_total_ns"),
            mean=("cpu_time_avg_ns",),
            device_total=("cuda_total_ns", "xpu_total_ns"),
            device_self_time=("self_cuda_ns", "self_xpu_ns"),
            joined=(r"ProfilerStep#\d+", "ProfilerStep*"),
            as_slices=True,
        )
    )

    def sniff(self, head: Head) -> Match:
        """Return YES for the headings of the table between lines of dashes."""
        if b"Self " not in head.data or b"----" not in head.data:
            return Match.no("no line of dashes with a heading Name, Self CPU % below it")
        below: str | None = None
        for raw in head.data.splitlines():
            line = text_of_line(raw)
            if below is not None and _HEADING.match(line.removeprefix(below)):
                return Match.yes("the headings of key_averages() below a line of dashes")
            rule = _RULE.search(line)
            below = line[: rule.start()] if rule is not None else None
        return Match.no("no line of dashes with a heading Name, Self CPU % below it")

    def read(self, source: Source, out: Builder) -> None:
        """Read the whole log. Raises MalformedInput when it holds no table."""
        out.counts(LINES)
        out.belongs_to(("pytorch-kineto",))
        _Reader(out).read(source)

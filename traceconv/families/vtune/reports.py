"""Intel VTune Profiler: the reports that it prints, and the CSV with external data that it reads.

    timeBin,Bin Start Time,Bin End Time,CPU Time:Self
    0,0.000000,0.166667,0.120000

    Function Stack,CPU Time:Total,CPU Time:Self,Module
    Total,100.000000,0.000000,
     main,96.000000,0.100000,app
      "std::map<int,int>::find",92.000000,2.300000,libstdc++.so.6

    Function Stack     CPU Time:Total  CPU Time:Self  Module
    -----------------  --------------  -------------  ------
    Total                     100.000%             0s
     main                      96.000%         0.100s  app

Result folders are closed and bound to a version; `vtune -report NAME -format csv` (`amplxe-cl` before 2020) prints what
is in them. Of the reports only the timeline has times, in bins, counted from the start of the collection. Hotspots,
hardware events and the summary are sums; a call tree is drawn as nested slices on a track that says that it is no
timeline. The CSV with external data, which other collectors write for VTune to show, is in `external`.

Without `-format csv` the columns are aligned. Values of time are seconds, but the columns `...:Total` of a top-down
report are shares of the whole in per cent, with a sign as text and without one in CSV. They say nothing about seconds
that `...:Self` does not say: what a function took with all that it called is the sum over its rows. A call tree is
indented by a space for each level, outside of the quotes as well. Delimiter and decimal mark are what the user and the
locale chose.

Described at https://www.intel.com/content/www/us/en/docs/vtune-profiler/user-guide/2025-1/overview.html.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from traceconv.families.common.text_lines import (
    NO_TIMELINE,
    TextLines,
    fields_of,
    find_decimal_mark,
    number_of,
    text_of_line,
)
from traceconv.families.importer import Importer, Match, Signature, option
from traceconv.families.vtune import external
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import ClockDomain, Run, Zero
from traceconv.model.diagnostics import HEADINGS, LINES, absent, lost, repaired, skipped
from traceconv.model.marks import FormatMarks, SeveralMarks, TotalsMarks
from traceconv.model.numbers import LIMIT_NS, S, format_time, parse_ns
from traceconv.model.track_table import NO_TRACK, TrackId

RUN_CLOCK = ClockDomain("VTune collection", Zero.RUN_START, Run.MONOTONIC, 1000)
TREE_CLOCK = ClockDomain("sums of a VTune call tree", Zero.UNKNOWN, Run.NONE)

OTHER_LINE = skipped(
    "vtune.other_line", "lines outside of the report are VTune's own messages, and were left out", quiet=True
)
BAD_ROW = lost(
    "vtune.bad_row",
    "a row has fewer fields than the heading, or invalid numbers: it is cut, or mixed with other output",
)
NO_NUMBER = lost("vtune.no_number", "a value of the timeline is not a number: its counter was not drawn there")
SHARES_ONLY = (
    "the report holds shares of the whole in per cent and no seconds: they are args of rows without times; "
    '`-column="CPU Time:Self"` adds the seconds'
)
BAD_INDENT = repaired(
    "vtune.bad_indentation",
    "a row of a call tree is more than one level below the previous row: drawn one level below",
)

ROWS_MISSING = absent(
    "vtune.rows_missing",
    "the seconds of a function and its callees do not add up to its percentage: the report omits rows "
    "(-limit, -filter), and lengths are those of the rows that are there",
)

#: What the first column of a report can be; the second element of a pair tells that the report is surely VTune's.
_FIRST = (
    "Function Stack",
    "Function",
    "timeBin",
    "Hierarchy Level",
    "Task Type",
    "Task Domain",
    "Module",
    "Process",
    "Thread",
    "Source File",
    "Source Line",
    "Source Computing Task",
    "Computing Task",
    "Hardware Event Type",
    "Sync Object",
    "Package",
    "CPU",
)
_METRIC = re.compile(
    r"CPU Time|Clockticks|Instructions Retired|Hardware Event (?:Count|Sample)|Task (?:Time|Count)|Elapsed Time|"
    r"CPI Rate|Wait (?:Time|Count)|Total Time|Spin (?:and Overhead )?Time|Effective Time"
)
_RULE = re.compile(r" *-{2,}(?: +-{2,})+ *")
_DASHES = re.compile(r"-+")
_TITLE_LINES = 3
#: Messages of VTune may precede a report.
_LINES = 200
_DELIMITERS = (",", ";", "\t", "|")
_LONGER_DELIMITER = re.compile(r"[^\w\s\"]{1,8}")
#: Columns that hold seconds: CPU Time:Self, Task Time, Wait Time; not CPU Time:Total (%), not Task Count.
_SECONDS = re.compile(r"(?:.*\bTime\b(?!.*(?:%|Stamp|Count)).*)|.*\(s\)")
#: How far from 100 the total of a report in per cent can be, printed with few digits.
_ROUNDED = 0.05
_ALL = 100
_FAR = 0.5
_MOST = 1e9
_TREE_HELP = "Sums of a call tree, not a timeline: the lengths are real, the order and the places are not."


class Report(msgspec.Struct, frozen=True):
    """A heading, taken apart."""

    delimiter: str  # the separator of the columns; empty where they are aligned
    columns: tuple[str, ...]
    starts: tuple[int, ...] = ()  # where the columns begin in a line, if they are aligned
    has_shares: bool = False  # whether columns that end with :Total are per cent of the whole, known from the rows

    @property
    def kind(self) -> str:
        """Return "timeline", "tree", "summary" or "table"."""
        known = {"Function Stack": "tree", "Hierarchy Level": "summary"}
        if "Bin Start Time" in self.columns and "Bin End Time" in self.columns:
            return "timeline"
        return known.get(self.columns[0], "table")

    @property
    def is_certain(self) -> bool:
        """Whether no other tool prints such a heading."""
        return self.kind != "table"


def heading_of(line: str) -> Report | None:
    """Parse a heading; return None for another line."""
    text = line.strip().lstrip("\ufeff")
    if not text.strip('"').startswith(_FIRST):
        return None
    first = next(name for name in _FIRST if text.strip('"').startswith(name))
    rest = text.removeprefix('"').removeprefix(first).removeprefix('"')
    longer = _LONGER_DELIMITER.match(rest)
    for delimiter in (*_DELIMITERS, *([longer[0]] if longer else [])):
        columns = [column.strip() for column in _fields(text, delimiter)]
        if len(columns) > 1 and columns[0] == first and _is_heading(columns):
            return Report(delimiter, tuple(columns))
    return None


def heading_above(lines: Sequence[str], rule: str) -> Report | None:
    """Parse the lines above a line of dashes as a heading of aligned columns; return None if they are not one.

    A title that is too wide goes on in the next line.
    """
    if not _RULE.fullmatch(rule):
        return None
    starts = tuple(match.start() for match in _DASHES.finditer(rule))
    for first in range(len(lines) - 1, max(-1, len(lines) - 1 - _TITLE_LINES), -1):
        parts = zip(*(_aligned(line, starts) for line in lines[first:]), strict=True)
        columns = [" ".join(" ".join(column).split()).replace(": ", ":") for column in parts]
        if columns[0] in _FIRST and _is_heading(columns):
            return Report("", tuple(columns), starts)
    return None


def _aligned(line: str, starts: Sequence[int]) -> list[str]:
    """Return the texts that begin at certain places of a line; the first one keeps what it is indented by."""
    ends = [*starts[1:], None]
    first, *others = (line[start:end] for start, end in zip(starts, ends, strict=True))
    return [first.rstrip(), *(text.strip() for text in others)]


def _is_heading(columns: list[str]) -> bool:
    if columns[0] == "Hierarchy Level":
        return columns[1:3] == ["Metric Name", "Metric Value"]
    return "Bin Start Time" in columns or any(_METRIC.match(column) for column in columns[1:])


def _fields(text: str, delimiter: str) -> list[str]:
    return fields_of(text, delimiter) if len(delimiter) == 1 else [field.strip('"') for field in text.split(delimiter)]


class _Node(msgspec.Struct):
    """A function of a call tree, or a part of it that one caller led to."""

    name: str
    line: int
    parent: int  # its place among the functions, which come before those that they call; -1 for no caller
    total: int | None  # the time with what it calls, ns; None if it is not stated
    self_ns: int  # the time without
    share: float | None  # the per cent of the whole, None if not stated
    args: dict[str, Any]
    length: int = 0  # how long it is drawn, ns


def _measure(nodes: Sequence[_Node]) -> int:
    """Find out how long each function is drawn; return the sum of those that no other one has called, ns.

    A function is at least as long as its callees, whose sum may exceed its own rounded time.
    """
    callees = [0] * len(nodes)  # how long they are together
    whole = 0
    for at in reversed(range(len(nodes))):
        node, inside = nodes[at], callees[at]
        node.length = min(max(node.self_ns + inside if node.total is None else node.total, inside, 0), LIMIT_NS + 1)
        if node.parent < 0:
            whole += node.length
        else:
            callees[node.parent] = min(callees[node.parent] + node.length, LIMIT_NS + 1)
    return whole


class _Reader:
    def __init__(self, source: Source, out: Builder) -> None:
        self._source = source
        self._out = out
        self._mark = "."
        self._begin = 0  # the line of the heading, its last one

    def read(self) -> None:
        report = self._heading()
        self._mark = find_decimal_mark(self._numbers(report))
        report = msgspec.structs.replace(report, has_shares=self._has_shares(report))
        if report.kind == "timeline":
            self._timeline(report)
        elif report.kind == "tree" and self._times(report) != (None, None):
            self._tree(report)
        else:
            self._table(report)

    # -- lines ----------------------------------------------------------------------------------------------------

    def _heading(self) -> Report:
        """Return the heading, and remember the number of its last line."""
        above: list[str] = []
        for line in self._source.lines():
            text = text_of_line(line.text)
            report = heading_of(text) or heading_above(above, text)
            if report is not None and report.delimiter == ":":
                raise self._source.malformed(
                    "the fields are separated by colons, but names of metrics hold colons, too",
                    hint="write the report with -csv-delimiter comma",
                    where=f"line {line.number}",
                )
            if report is not None:
                self._begin = line.number
                return report
            above = [*above, text][-_TITLE_LINES:]
        raise self._source.malformed(
            "no heading of a VTune report found, expected one that begins with Function, timeBin, name,start_tsc, ...",
            hint="vtune -report hotspots -format csv -csv-delimiter comma -r RESULT",
        )

    def _rows(self, report: Report, *, count: bool = True) -> Iterator[tuple[int, int, list[str]]]:
        """Yield number, indentation and fields of each row; all else is counted."""
        out = self._out
        wanted = 0 if report.kind == "summary" else len(report.columns)
        for number, line in TextLines(out).read(self._source, again=not count):
            text = text_of_line(line)
            if number == self._begin or heading_of(text) is not None:
                out.balance.merged[HEADINGS] += count
            elif number > self._begin and text.strip() and not text.startswith(("vtune: ", "amplxe: ")):
                indent, fields = _indented(text, report)
                if len(fields) >= wanted:
                    yield number, indent, fields
                elif count:
                    out.skip(BAD_ROW, number, f"{len(fields)} fields, expected {wanted}")
            elif count:
                out.skip(OTHER_LINE, number)

    def _numbers(self, report: Report) -> Iterable[str]:
        return (field for _, _, fields in self._rows(report, count=False) for field in fields[1:])

    def _has_shares(self, report: Report) -> bool:
        """Return whether the columns that end with :Total are per cent.

        By a sign, or since all is 100, but not in seconds.
        """
        total, self_at = _time_columns(report)
        if report.kind != "tree" or total is None:
            return False
        whole = seconds = 0.0
        for _, indent, fields in self._rows(report, count=False):
            if fields[total].strip()[-1:] in ("%", "s"):
                return fields[total].strip().endswith("%")
            if indent == 0:
                whole += number_of(fields[total].strip(), self._mark) or 0
            if self_at is not None:
                seconds += number_of(fields[self_at].strip().removesuffix("s"), self._mark) or 0
        return abs(whole - _ALL) <= _ROUNDED and abs(seconds - _ALL) > _ROUNDED

    def _times(self, report: Report) -> tuple[int | None, int | None]:
        """Return where a function's inclusive and own time stand in seconds, None where the report has none."""
        total, self_at = _time_columns(report)
        if self_at is not None and any(
            fields[self_at].strip().endswith("%") for _, _, fields in self._rows(report, count=False)
        ):
            self_at = None
        return None if report.has_shares else total, self_at

    def _time(self, text: str) -> int:
        """Return the nanoseconds of a number of seconds; raises ValueError."""
        compact = text.strip().removesuffix("s").replace("\u00a0", "").replace(" ", "")
        compact = compact.replace("," if self._mark == "." else ".", "").replace(self._mark, ".")
        return parse_ns(compact.encode(), S)

    def _args(self, report: Report, fields: list[str]) -> dict[str, Any]:
        """Return the columns behind the first; numbers as numbers, seconds with their unit in the key."""
        args: dict[str, Any] = {}
        for column, text in zip(report.columns[1:], fields[1:], strict=False):
            if not text.strip():
                continue
            number, unit = self._value(column, text)
            if report.has_shares and column.endswith(":Total"):
                unit = "%"
            known = number is None or not unit or f"({unit})" in column
            args[column if known else f"{column} ({unit})"] = text.strip() if number is None else number
        return args

    def _value(self, column: str, text: str) -> tuple[int | float | None, str]:
        """Return the number in a field and its unit, which stands behind it or follows from the column."""
        plain = text.strip()
        if plain.endswith("%"):
            return number_of(plain.removesuffix("%").strip(), self._mark), "%"
        if _SECONDS.fullmatch(column):
            return number_of(plain.removesuffix("s").strip(), self._mark), "s"
        return number_of(plain, self._mark), ""

    # -- timeline -------------------------------------------------------------------------------------------------

    def _timeline(self, report: Report) -> None:
        out = self._out
        out.clocks.set_default(RUN_CLOCK.owned_by(out.info.name))
        start_at, end_at = report.columns.index("Bin Start Time"), report.columns.index("Bin End Time")
        groups = [at for at in range(1, len(report.columns)) if at < start_at]
        metrics = [at for at in range(len(report.columns)) if at > max(start_at, end_at)]
        tracks: dict[tuple[str, ...], TrackId] = {}
        ends: dict[TrackId, tuple[int, int]] = {}
        widths: set[int] = set()
        for number, _, fields in self._rows(report):
            try:
                start, end = self._time(fields[start_at]), self._time(fields[end_at])
            except ValueError as error:
                out.skip(BAD_ROW, number, str(error))
                continue
            widths.add(end - start)
            whose = tuple(fields[at].strip() for at in groups)
            for at in metrics:
                value, unit = self._value(report.columns[at], fields[at])
                if value is not None:
                    track = self._counter(tracks, whose, report.columns[at], unit)
                    out.counter(track, start, value, number)
                    ends[track] = max((end, number), ends.get(track, (end, number)))
                elif fields[at].strip():
                    out.problem(NO_NUMBER, number, f"{report.columns[at]}: {fields[at].strip():.40}")
            out.balance.written += 1
        for track, (end, number) in ends.items():
            out.counter(track, end, 0, number)
        width = format_time(max(widths, default=0))
        out.note(
            f"a timeline in bins of {width}: the counters are 0 after the last bin; times count from the start of the "
            "collection (vtune -report summary prints it): give it with --offset to merge"
        )

    def _counter(
        self, tracks: dict[tuple[str, ...], TrackId], whose: tuple[str, ...], metric: str, unit: str
    ) -> TrackId:
        key = (*whose, metric)
        if key not in tracks:
            parent = NO_TRACK
            for depth in range(len(whose)):
                group = ("group", *whose[: depth + 1])
                if group not in tracks:
                    tracks[group] = self._out.tracks.add(whose[depth] or "[unknown]", parent)
                parent = tracks[group]
            tracks[key] = self._out.tracks.counter(metric, parent, unit=unit or ("%" if "%" in metric else ""))
        return tracks[key]

    # -- call trees -------------------------------------------------------------------------------------------------

    def _tree(self, report: Report) -> None:
        out = self._out
        clock = TREE_CLOCK.owned_by(out.info.name)
        out.clocks.set_default(clock)
        nodes = self._nodes(report)
        whole = _measure(nodes)
        if whole > LIMIT_NS:
            raise self._source.malformed("the times sum up to more than 146 years")
        self._check_shares(nodes, whole)
        track = out.tracks.add("Call tree (synthetic)", description=_TREE_HELP)
        free = [0] * (len(nodes) + 1)  # where the next callee of each starts; the last is of those without caller
        for at, node in enumerate(nodes):
            start = free[at] = free[node.parent]
            free[node.parent] += node.length
            out.slice(track, start, node.length, node.name, "function", node.args, node.line)
        out.balance.written += len(nodes)
        out.note("sums of a call tree, drawn as nested slices of real lengths; the file does not state when they ran")

    def _check_shares(self, nodes: Sequence[_Node], whole: int) -> None:
        """Report contradictions between shares and lengths."""
        for node in nodes if whole else ():
            computed = node.length * _ALL / whole
            if node.share is not None and abs(node.share - computed) > _FAR:
                shown = f"{node.name:.60}: {node.share:g} %, its rows have {computed:.3f} %"
                self._out.problem(ROWS_MISSING, node.line, shown)

    def _nodes(self, report: Report) -> list[_Node]:
        columns = self._times(report)
        share = f"{report.columns[_time_columns(report)[0] or 0]} (%)" if report.has_shares else ""
        nodes: list[_Node] = []
        path: list[int] = []
        for number, indent, fields in self._rows(report):
            try:
                times = [self._time(fields[at]) if at is not None and fields[at].strip() else None for at in columns]
            except ValueError as error:
                self._out.skip(BAD_ROW, number, str(error))
                continue
            if indent > len(path):
                self._out.problem(BAD_INDENT, number, f"{indent} spaces, expected at most {len(path)}")
                indent = len(path)
            del path[indent:]
            args = self._args(report, fields)
            percent = args.get(share)
            percent = max(-_MOST, min(percent, _MOST)) if isinstance(percent, int | float) else None
            parent = path[-1] if path else -1
            path.append(len(nodes))
            name = fields[0].strip() or "[unknown]"
            nodes.append(_Node(name, number, parent, times[0], times[1] or 0, percent, args))
        return nodes

    # -- tables -----------------------------------------------------------------------------------------------------

    def _table(self, report: Report) -> None:
        out = self._out
        title = f"VTune {report.kind}" if report.kind == "summary" else f"VTune by {report.columns[0]}"
        track = out.tracks.totals(title)
        path: list[str] = []
        stack_at = report.columns.index("Function Stack") if "Function Stack" in report.columns else 0
        above = ""  # the function of the row above, in a report of call stacks
        whole = ""  # the function whose row sums up the stacks that follow
        for number, indent, fields in self._rows(report):
            if report.kind == "summary":
                name, args = self._fact(path, fields)
            else:
                name, args = fields[0].strip() or above, self._args(report, fields)
                if stack_at:
                    stack, above = fields[stack_at].strip(), name
                    if whole and name == whole and (stack or not fields[0].strip()):
                        indent = indent or 1
                    else:
                        whole = "" if stack else name
                if indent:
                    args = {"level": indent, **args}
            out.totals(track, name or "[unknown]", "vtune", args, number)
            out.balance.written += 1
        out.note(SHARES_ONLY if report.has_shares else NO_TIMELINE)

    def _fact(self, path: list[str], fields: list[str]) -> tuple[str, dict[str, Any]]:
        """Return a line of the summary: its level, a name, and one value or those of a table in it."""
        level = number_of(fields[0], ".")
        depth = level if isinstance(level, int) and 0 <= level <= len(path) else len(path)
        name = fields[1].strip() if len(fields) > 1 else ""
        path[depth:] = [name]
        values = [number_of(text, self._mark) for text in fields[2:]]
        shown = [text.strip() if value is None else value for text, value in zip(fields[2:], values, strict=True)]
        args: dict[str, Any] = {"value": shown[0]} if len(shown) == 1 else {"values": shown} if shown else {}
        if args.get("value") == "":
            del args["value"]
        return " / ".join(path), args


def _time_columns(report: Report) -> tuple[int | None, int | None]:
    """Return the columns with what a function took with and without those that it called, None where there are none."""
    total = self_at = None
    for at, column in enumerate(report.columns[1:], 1):
        compact = column.replace(": ", ":")
        if compact == "CPU Time:Total" and total is None:
            total = at
        elif compact in ("CPU Time:Self", "CPU Time") and self_at is None:
            self_at = at
    return total, self_at


def _indented(text: str, report: Report) -> tuple[int, list[str]]:
    """Return the level of a row, and its fields; the spaces may stand before or inside the quotes."""
    if report.starts:
        fields = _aligned(text, report.starts)
        return len(fields[0]) - len(fields[0].lstrip(" ")), fields
    row = text.lstrip(" ")
    indent = len(text) - len(row)
    fields = _fields(row, report.delimiter)
    if fields:
        indent += len(fields[0]) - len(fields[0].lstrip(" "))
    surplus = len(fields) - len(report.columns)
    if surplus > 0 and report.kind != "summary":  # a name with delimiters that nobody quoted
        fields = [report.delimiter.join(fields[: surplus + 1]), *fields[surplus + 1 :]]
    return indent, fields


@dataclass(frozen=True)
class Vtune(Importer):
    name = "vtune"
    title = "Intel VTune Profiler: timeline, hotspots and call trees as text or CSV, external data"
    url = "https://www.intel.com/content/www/us/en/docs/vtune-profiler/user-guide/2025-1/overview.html"
    versions = "reports of 2017 to 2025 as text and CSV, external data with any clock (from documents)"
    signature = Signature(
        "cpu time | clockticks | instructions retired | hardware event | task time | task count | elapsed time | "
        "cpi rate | wait time | wait count | total time | spin time | spin and overhead time | effective time | "
        "bin start time | metric name | tsc.",
        (rb"-- +--",),
    )
    clock = RUN_CLOCK
    record = (
        "vtune -collect hotspots -r result -- ./app && "
        "vtune -r result -report timeline -report-knob column-by=CPUTime -report-knob bin-count=1000 -format csv "
        "-csv-delimiter comma -report-output timeline.csv"
    )
    skips = (external.FOREIGN_LINE, OTHER_LINE)
    frequency_hz: int | None = option(
        None,
        "for external data in ticks (QPC, TSC): how many of them a second has; the file does not say it.",
    )

    line_up = (
        "The timeline counts from the start of the collection, which `vtune -report summary` prints to the second: "
        "use --offset. External data in UTC is on the wall clock."
    )
    becomes = (
        ("bin of the timeline report", "value of a counter for each metric and group"),
        (
            "row of a call tree (Function Stack)",
            "slice inside its caller, as long as its own and their seconds, synthetic",
        ),
        ("share in per cent (`...:Total`)", "arg; no slice where there are no seconds"),
        ("row of hotspots, hardware events, tasks, summary", "row of a table without times"),
        ("external task", "slice on its thread, or on its process"),
        ("external frame", "slice on the track Frames"),
        ("external counter", "counter; of a running total, its increases"),
    )
    lost = (
        "Reports other than the timeline hold no times; the resolution of the timeline is its bins.",
        "Single samples, calls and states of threads are only in the result folder, whose format is closed.",
    )
    unrecorded = "VTune could not be installed, and no whole public report was found."
    #: CPU time; that of a function is without the functions that it calls.
    marks = FormatMarks(
        totals=TotalsMarks(
            total=("CPU Time:Total (s)",),
            self_time=("CPU Time (s)", "CPU Time:Self (s)"),
            unit_ns=10**9,
            nested=("level",),
        ),
        several=SeveralMarks(r"(?:.* / )?Call tree \(synthetic\)", means=False),
    )

    def sniff(self, head: Head) -> Match:
        """Recognise headings that no other tool prints; a table by function with CPU Time may be someone else's."""
        maybe = False
        lines = [text_of_line(line) for line in head.text.splitlines()[:_LINES]]
        for number, text in enumerate(lines):
            if external.heading_of(text) is not None:
                return Match.yes("the heading of external data for VTune")
            report = heading_of(text) or heading_above(lines[:number], text)
            if report is not None and report.is_certain:
                return Match.yes(f"the heading of a VTune report ({report.kind})")
            maybe |= report is not None
        if maybe:
            return Match.maybe("a heading with a column of VTune (CPU Time, Clockticks, ...)")
        return Match.no("no heading of a VTune report or of external data")

    def read(self, source: Source, out: Builder) -> None:
        out.counts(LINES)
        for line in source.head().text.splitlines()[:_LINES]:
            if external.heading_of(text_of_line(line)) is not None:
                external.read_external(source, out, self.frequency_hz)
                return
        _Reader(source, out).read()

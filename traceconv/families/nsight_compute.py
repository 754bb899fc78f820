"""CSV printed by Nsight Compute (`ncu --csv`): metrics of each kernel, without any time.

    ==PROF== Connected to process 1234 (/usr/bin/app)
    "ID","Process ID","Process Name",...,"Kernel Name",...,"Section Name","Metric Name","Metric Unit","Metric Value"
    "0","1234","app",...,"add(float *)",...,"GPU Speed Of Light Throughput","Memory Throughput","%","45.70"

The page of details, the default, has a row for each metric of a kernel, and rows of advice without a metric. Rows of
metrics end behind the value and a comma; only rows of advice fill the columns of rules. `--print-details all` adds the
column Body Item Label: metrics of one name stand below several labels. `--nvtx` adds columns with the open ranges. With
`--page raw` there is a row for each kernel and a column for each metric, and the row behind the heading holds units.
Numbers follow the locale. The kernels are replayed, several times each, one after the other: their durations are not
those of the program, and nothing says when they ran. What the rows are good for is to stand beside the kernels of a
recording of the same program: the nth launch of a name there is the nth one here.

Described at https://docs.nvidia.com/nsight-compute/NsightComputeCli/index.html. Checked against public outputs of
ncu 2020 to 2025 (docs/formats.md names them): columns, ragged rows, units, groups of thousands. The page of raw metrics
and other locales were seen in excerpts only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from sys import intern
from typing import Any

import msgspec

from traceconv.errors import MalformedInput
from traceconv.families.common import cupti as _cupti
from traceconv.families.common.text_lines import (
    DELIMITERS,
    TextLines,
    fields_of,
    find_decimal_mark,
    number_of,
    text_of_line,
)
from traceconv.families.importer import Importer, Match, Signature
from traceconv.io.shown import Counted
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import NO_TIME
from traceconv.model.diagnostics import HEADINGS, LINES, lost, skipped
from traceconv.model.marks import CountMarks, FormatMarks, TotalsMarks
from traceconv.model.numbers import LIMIT_NS, whole_or_text

ROWS_OF_KERNELS = Counted("row joined to its kernel", "rows joined to their kernel")

OTHER_LINE = skipped(
    "ncu.other_line",
    "lines outside of the table, printed by ncu itself or by the program, were left out",
    quiet=True,
)
BAD_ROW = lost(
    "ncu.bad_row",
    "a row has too few fields for a metric or a rule, an unclosed quote, or no kernel: it is cut, or "
    "mixed with other output",
)

#: The columns that identify a launch, and their names in the args.
_LAUNCH = {
    "ID": "id",
    "Process ID": "process",
    "Process Name": "process_name",
    "Host Name": "host",
    "Kernel Name": "",
    "Kernel Time": "kernel_time",
    "Context": "context",
    "Stream": "stream",
    "Block Size": "block",
    "Grid Size": "grid",
    "Device": "device",
    "CC": "compute_capability",
    "Invocations": "invocations",
}
_DETAIL = ("Section Name", "Body Item Label", "Metric Name", "Metric Unit", "Metric Value")
_RULE = {
    "Rule Name": "name",
    "Rule Type": "type",
    "Rule Description": "text",
    "Estimated Speedup Type": "speedup_type",
    "Estimated Speedup": "speedup_percent",
}
_SUMMARY = ("Minimum", "Maximum", "Average")
#: The metrics that state how long a kernel ran, the surest first; their units, ns.
_DURATIONS = ("gpu__time_duration.sum", "Duration", "gpu__time_duration.avg", "gpu__time_duration.max")
_UNITS = dict.fromkeys(("ns", "nsecond"), 1) | dict.fromkeys(("us", "usecond"), 10**3)
_UNITS |= dict.fromkeys(("ms", "msecond"), 10**6) | dict.fromkeys(("s", "second"), 10**9)
#: The section of metrics that were asked for by name: these are known by their names alone.
_BY_NAME = "Command line profiler metrics"
# "ID","Process ID", | ID;Process ID; | "Process ID","Process Name",...,"Kernel Name","Context","Stream"
_HEADING = re.compile(
    r'"?(?:ID"?[,;\t]"?)?Process ID"?[,;\t].{0,500}?"?Kernel Name"?[,;\t]|"?ID"?[,;\t].{0,500}?"?Kernel Name"?[,;\t]'
)
_HEADING_BYTES = re.compile(
    rb'(?:^|\W)(?:ID"?[,;\t]"?(?:Process ID|Kernel Name)|Process ID"?[,;\t])[^\n]{0,500}?Kernel Name"?[,;\t]'
)
# ==PROF== Profiling "add" - 0: 0%....50%....100% - 9 passes | ==ERROR== ERR_NVGPUCTRPERM - The user does not have ...
_MESSAGE = re.compile(r"==(PROF|WARNING|ERROR)== (.*)")
_MESSAGE_BYTES = re.compile(rb"^==(?:PROF|WARNING|ERROR)== ", re.MULTILINE)
# (256, 1, 1)
_TRIPLE = re.compile(r"\(([0-9]+), ?([0-9]+), ?([0-9]+)\)")
# 45.70 (44.00; 46.10; 47.00)
_INSTANCES = re.compile(r"(\S+) \(([^;\n]*;.*)\)")
# thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg | Id:Domain:Start/Stop_Range:PL_Type:...
_NVTX_COLUMN = re.compile(r"\w+(?: Domain|:Domain):(?:Push/Pop|Start/Stop)_Range:.*")
_NOTES = 5
_HELP = "Metrics of kernels that were replayed one after the other, not a timeline."


class _Heading(msgspec.Struct, dict=True):
    """A heading: the prefix of its lines, and its columns."""

    prefix: str
    delimiter: str
    columns: list[str]
    number: int
    units: list[str] | None = None

    @cached_property
    def is_raw(self) -> bool:
        """Whether each metric has a column of its own."""
        return "Metric Name" not in self.columns

    def is_value(self, column: str) -> bool:
        return not self.is_info(column) if self.is_raw else column in ("Metric Value", *_SUMMARY)

    def is_info(self, column: str) -> bool:
        if self.is_raw:
            return column in _LAUNCH or _NVTX_COLUMN.fullmatch(column) is not None
        return column not in (*_DETAIL, *_RULE, *_SUMMARY)

    @cached_property
    def info(self) -> tuple[tuple[str, str], ...]:
        """The columns that say something about the launch itself, and what it is called."""
        columns = {column: _LAUNCH.get(column, column) for column in self.columns if self.is_info(column)}
        return tuple((column, name) for column, name in columns.items() if name)

    @cached_property
    def values(self) -> tuple[tuple[int, str], ...]:
        """The columns that hold measured numbers, and where they stand."""
        return tuple((at, column) for at, column in enumerate(self.columns) if self.is_value(column))

    @cached_property
    def durations(self) -> tuple[tuple[int, str], ...]:
        """The columns that hold how long a kernel ran, the surest first, and where they stand."""
        return tuple((self.columns.index(name), name) for name in _DURATIONS if name in self.columns)

    @cached_property
    def needed(self) -> int:
        """How many fields a row of a metric has at least: the columns of rules behind it may be missing."""
        if self.is_raw:
            return len(self.columns)
        columns = ("Metric Name", "Metric Value", *_SUMMARY)
        return 1 + max(self.columns.index(name) for name in columns if name in self.columns)

    @cached_property
    def launch_at(self) -> tuple[int, ...]:
        positions = {column: at for at, column in enumerate(self.columns)}
        return tuple(positions[column] for column in _LAUNCH if column in positions)

    @cached_property
    def name_at(self) -> int:
        return len(self.columns) - 1 - self.columns[::-1].index("Kernel Name")

    @property
    def is_summary(self) -> bool:
        """Whether the rows are about several launches at once."""
        return "ID" not in self.columns


class _Kernel(msgspec.Struct):
    """A launch, or several of a summary, with durations by the name of the arg, ns.

    `stated_by` is the metric that states these, as a place in _DURATIONS.
    """

    name: str
    line: int
    launch: dict[str, Any]
    durations: dict[str, int] = msgspec.field(default_factory=dict)
    stated_by: int = len(_DURATIONS)
    metrics: dict[str, Any] = msgspec.field(default_factory=dict)
    rules: list[dict[str, Any]] = msgspec.field(default_factory=list)

    def args(self) -> dict[str, Any]:
        """Return the args under one key, since they may be added to other args."""
        args = self.launch | self.durations
        for key, value in self.metrics.items():
            _put(args, key, value)
        if self.rules:
            _put(args, "rules", self.rules)
        return {"ncu": args}


class _Reader:
    def __init__(self, out: Builder, source: Source) -> None:
        self._out = out
        self._source = source
        self._headings: list[_Heading] = []
        self._track = out.tracks.totals("Nsight Compute", description=_HELP)
        self._kernels: dict[str, _Kernel] = {}  # by heading and cells of the launch
        self._mark = "."
        self._lines = TextLines(out)
        self._messages: dict[str, None] = {}

    def read(self) -> None:
        self._mark = find_decimal_mark(self._values())
        self._headings.clear()
        balance = self._out.balance
        for number, line in self._lines.read(self._source):
            heading, text = self._place(text_of_line(line), number)
            if heading is None:
                self._other_line(text)
            elif heading.number == number or self._units(heading, text):
                balance.merged[HEADINGS] += 1
            else:
                self._row(heading, text, number)
        if not self._headings:
            self._refuse()
        self._finish()

    def _values(self) -> Iterator[str]:
        """Yield the measured values, which may tell the locale."""
        for number, line in self._lines.read(self._source, again=True):
            heading, text = self._place(text_of_line(line), number)
            if heading is not None and heading.number != number:
                row = zip(heading.columns, fields_of(text, heading.delimiter), strict=False)
                yield from (_first(value) for column, value in row if heading.is_value(column))

    def _place(self, line: str, number: int) -> tuple[_Heading | None, str]:
        """Return the heading that a line belongs to, and the line without the text before the table."""
        match = _HEADING.search(line) if "Kernel Name" in line else None
        if match is not None:
            heading = _heading(line[: match.start()], line[match.start() :], number)
            if heading is not None:
                self._headings = [known for known in self._headings if known.prefix != heading.prefix] + [heading]
                return heading, line
        for heading in self._headings:
            if line.startswith(heading.prefix) and _looks_like_a_row(line[len(heading.prefix) :], heading):
                return heading, line[len(heading.prefix) :]
        return None, line

    def _other_line(self, text: str) -> None:
        self._lines.others += 1
        message = _MESSAGE.search(text)
        if message is not None and message[1] != "PROF":
            self._messages[f"ncu {message[1].lower()}: {message[2]:.300}"] = None

    def _units(self, heading: _Heading, text: str) -> bool:
        """Return whether this is the row of units of a page of raw metrics: it has no launch."""
        if not heading.is_raw or heading.units is not None:
            return False
        row = fields_of(text, heading.delimiter)
        is_units = len(row) == len(heading.columns) and not row[heading.columns.index("Kernel Name")]
        heading.units = row if is_units else [""] * len(heading.columns)
        return is_units

    def _row(self, heading: _Heading, text: str, number: int) -> None:
        row = fields_of(text, heading.delimiter)
        wrong = _wrong(row, text, heading)
        if wrong:
            self._out.skip(BAD_ROW, number, wrong)
            return
        row = (row + [""] * len(heading.columns))[: len(heading.columns)]
        if not row[heading.name_at]:
            self._out.skip(BAD_ROW, number, "no name of a kernel")
        elif heading.is_raw and not self._kernels:  # nothing else of it follows
            self._write(self._joined(None, heading, row, number))
        else:  # on the page of raw metrics each launch has one row
            cells = [number] if heading.is_raw else [heading.number, *(row[at] for at in heading.launch_at)]
            launch = "\n".join(map(str, cells))
            self._kernels[launch] = self._joined(self._kernels.get(launch), heading, row, number)

    def _joined(self, kernel: _Kernel | None, heading: _Heading, row: list[str], number: int) -> _Kernel:
        """Add a row to its kernel; return the kernel, which is a new one for the first row."""
        values = dict(zip(heading.columns, row, strict=True))
        if kernel is None:
            launch = {name: _launch_value(name, values[column]) for column, name in heading.info if values[column]}
            kernel = _Kernel(values["Kernel Name"], number, launch)
        else:
            self._out.balance.merged[ROWS_OF_KERNELS] += 1
        if heading.is_raw:
            self._raw(kernel, heading, row)
        else:
            self._detail(kernel, values)
        return kernel

    def _raw(self, kernel: _Kernel, heading: _Heading, row: Sequence[str]) -> None:
        units = heading.units or [""] * len(heading.columns)
        for at, column in heading.durations:
            self._duration(kernel, column, units[at], {"duration_ns": row[at]})
        for at, column in heading.values:
            if row[at]:
                self._metric(kernel.metrics, column, units[at], row[at])

    def _detail(self, kernel: _Kernel, values: dict[str, str]) -> None:
        section, label, metric, unit, _ = (values.get(column, "") for column in _DETAIL)
        if metric:
            where = kernel.metrics
            for group in (section if section != _BY_NAME else "", label):
                where = _group(where, group) if group else where
            if "Metric Value" in values:
                self._metric(where, metric, unit, values["Metric Value"])
                self._duration(kernel, metric, unit, {"duration_ns": values["Metric Value"]})
            else:
                summary = {word.lower(): values.get(word, "") for word in _SUMMARY}
                self._duration(kernel, metric, unit, {f"{word}_ns": text for word, text in summary.items()})
                _put(where, _key(metric, unit), {word: self._value(text) for word, text in summary.items() if text})
        rule = {name: values.get(column, "") for column, name in _RULE.items()}
        if any(rule.values()):
            rule_args = {name: self._value(text) if name == "speedup_percent" else text for name, text in rule.items()}
            about = {"section": section} if section and not metric else {}
            kernel.rules.append({name: value for name, value in (about | rule_args).items() if value != ""})

    def _duration(self, kernel: _Kernel, metric: str, unit: str, texts: dict[str, str]) -> None:
        """Take over how long a kernel ran, if the metric states it, and no surer one did before."""
        if metric not in _DURATIONS[: kernel.stated_by] or unit not in _UNITS:
            return
        values = {name: number_of(_first(text), self._mark) for name, text in texts.items()}
        if all(value is not None and 0 <= value * _UNITS[unit] <= LIMIT_NS for value in values.values()):
            kernel.durations = {name: round((value or 0) * _UNITS[unit]) for name, value in values.items()}
            kernel.stated_by = _DURATIONS.index(metric)

    def _metric(self, where: dict[str, Any], metric: str, unit: str, text: str) -> None:
        several = _INSTANCES.fullmatch(text)
        if several is not None:
            _put(where, f"{_key(metric, unit)} of each", [self._value(each.strip()) for each in several[2].split(";")])
            text = several[1]
        _put(where, _key(metric, unit), self._value(text))

    def _value(self, text: str) -> int | float | str:
        number = number_of(text, self._mark)
        return text if number is None else number

    def _refuse(self) -> None:
        reason = "no table found, expected a heading with the columns ID and Kernel Name"
        if self._messages:
            reason += f" ({next(iter(self._messages))})"
        raise MalformedInput(
            self._source.display,
            "",
            reason,
            hint=f"record one with: {NsightCompute.record}, or import a report: ncu "
            "--import report.ncu-rep --page raw --csv",
        )

    def _write(self, kernel: _Kernel) -> None:
        self._out.balance.written += 1
        self._out.totals(self._track, kernel.name, "kernel_metrics", kernel.args(), kernel.line)

    def _finish(self) -> None:
        out = self._out
        for kernel in self._kernels.values():
            self._write(kernel)
        is_summary = any(heading.is_summary for heading in self._headings)
        out.belongs_to(("nvprof", "nsight-systems"), join_category="" if is_summary else _cupti.KERNEL)
        self._lines.tell_others(OTHER_LINE)
        for text in list(self._messages)[:_NOTES]:
            out.note(text)
        if not out.balance.written:
            out.note("the table holds no kernel: was a filter (--kernel-name, --launch-skip) too narrow?")
        out.note(
            "Nsight Compute replays kernels to measure them: durations are those of replays, and nothing says when the "
            "kernels ran. Merge it with an nvprof or Nsight Systems recording of the same program to see the metrics "
            "beside its kernels"
        )


def _heading(prefix: str, text: str, number: int) -> _Heading | None:
    for delimiter in DELIMITERS:
        columns = fields_of(text, delimiter)
        if "Kernel Name" in columns and len(columns) > 2:
            return _Heading(prefix, delimiter, columns, number)
    return None


def _looks_like_a_row(text: str, heading: _Heading) -> bool:
    """Return whether a line is quoted, or has as many delimiters as a row: other output stands between rows."""
    return text.startswith('"') or text.count(heading.delimiter) >= heading.needed - 1


def _wrong(row: Sequence[str], text: str, heading: _Heading) -> str:
    """Return the problem of a row, "" if there is none."""
    if text.count('"') % 2:
        return "a quote is not closed"
    columns = heading.columns
    is_metric = not heading.is_raw and any(row[columns.index("Metric Name") :][:1])
    needed = heading.needed if is_metric else len(columns)
    if len(row) < needed or any(row[len(columns) :]):
        return f"{len(row)} fields, expected {needed if len(row) < needed else len(columns)}"
    return ""


def _group(where: dict[str, Any], key: str) -> dict[str, Any]:
    """Return the group of metrics below a key, which a metric may have taken already."""
    group = where.setdefault(key, {})
    return group if isinstance(group, dict) else _group(where, f"{key} (group)")


def _put(where: dict[str, Any], key: str, value: Any) -> None:
    """Add a value; further ones under the same key stay beside the first."""
    if where.setdefault(key, value) == value:
        return
    further = where.setdefault(f"{key} (again)", [])
    if isinstance(further, list):
        further.append(value)
    else:  # there is a metric of that name
        _put(where, f"{key} (again)", value)


def _first(text: str) -> str:
    """Return the value itself, of one that lists those of all instances."""
    several = _INSTANCES.fullmatch(text)
    return several[1] if several else text


def _key(metric: str, unit: str) -> str:
    return intern(f"{metric} ({unit})" if unit else metric)  # one text for all kernels


def _launch_value(name: str, text: str) -> Any:
    """Return the number of an id or size, which follows no locale."""
    triple = _TRIPLE.fullmatch(text)
    if triple is not None:
        return [whole_or_text(size) for size in triple.groups()]
    return text if name == "compute_capability" else whole_or_text(text)


@dataclass(frozen=True)
class NsightCompute(Importer):
    name = "nsight-compute"
    title = "NVIDIA Nsight Compute, CSV of the details or raw page"
    url = "https://docs.nvidia.com/nsight-compute/NsightComputeCli/index.html"
    versions = "ncu 2019 to 2025: pages details and raw, summaries, any locale"
    signature = Signature("kernel name | ==prof== | ==warning== | ==error==")
    clock = NO_TIME
    record = "ncu --csv --page raw --log-file metrics.csv python run.py"
    skips = (OTHER_LINE,)

    line_up = (
        "Merged with one nvprof or Nsight Systems recording of the program, the nth row of a kernel becomes args of "
        "the nth launch of that name."
    )
    becomes = (
        ("launch of a kernel with its metrics", "row of a table without times, or args (`ncu`) of the kernel's slice"),
        ("metric", "arg, with its unit in the key, below its section"),
        ("duration", "arg duration_ns; in summaries average_ns, minimum_ns, maximum_ns"),
        ("rule", "entry of the arg `rules`"),
    )
    lost = ("The file does not state when a kernel ran; its duration is that of a replay.",)
    marks = FormatMarks(
        counts=CountMarks(
            ("kernel_metrics", _cupti.KERNEL),
            r"\w+\.sum(?: \(.*\))?",
            inside="ncu",
            rows_are_calls=True,
            others=_cupti.NO_COUNTS,
        ),
        totals=TotalsMarks(
            calls=("invocations",),
            mean=("average_ns",),
            least=("minimum_ns",),
            most=("maximum_ns",),
            single=("duration_ns",),
            inside="ncu",
        ),
    )

    def sniff(self, head: Head) -> Match:
        """Recognise the heading; lines that begin with ==PROF== may precede one."""
        if _HEADING_BYTES.search(head.data):
            return Match.yes("a heading with ID or Process ID, and Kernel Name")
        if _MESSAGE_BYTES.search(head.data):
            return Match.maybe("lines that begin with ==PROF==")
        return Match.no("no heading with ID and Kernel Name, no line of ncu")

    def read(self, source: Source, out: Builder) -> None:
        out.counts(LINES)
        _Reader(out, source).read()

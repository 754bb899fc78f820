"""The three forms of TVM's profiling Report, as calls with cells: text table, CSV, JSON. See `profile`.

Text: the first column is left-aligned, all others end where their header ends, cells may be blank; offsets are bytes.
Numbers carry the separators of the user's locale; Percent has none but the decimal sign. CSV: columns in alphabetical
order, strings in quotes that nothing escapes. JSON: {"calls":[{column: {kind: value}}],"device_metrics":{device: {}}}.
The profiler of the virtual machine before 0.8 printed sums only:

    #OpName                 #InvokeCount    #Duration(us): Sum/Mean/Min/Max
    fused_nn_dense          2               12.5/6.25/6/6.5

Source: src/runtime/profiling.cc of tags v0.8 to v0.23, src/runtime/vm/profiler of 0.6 and 0.7, and recordings.
"""

from __future__ import annotations

import mmap
import re
from collections import Counter
from itertools import pairwise
from typing import NamedTuple

import msgspec
from msgspec import Raw

from traceconv.families.chrome.document import misread_backslashes
from traceconv.families.chrome.event import Hopeless, Incomplete, repair_value, text_of
from traceconv.families.common.json_document import JsonDocument
from traceconv.families.common.text_lines import TextLines
from traceconv.families.tvm import text
from traceconv.io.shown import Counted
from traceconv.io.source import Source
from traceconv.model.builder import Builder
from traceconv.model.diagnostics import LINES_OUTSIDE, TABLE_LINES, lost, repaired
from traceconv.model.numbers import MAX_DEPTH, flatten

CONFIGURATION_LINES = Counted(
    "line of the configuration kept as metadata", "lines of the configuration kept as metadata"
)

REPAIRED = repaired(
    "tvm.repaired",
    "TVM does not escape quotes and backslashes in names: invalid JSON was read as TVM meant it",
)
CUT_REPORT = lost("tvm.cut_report", "the JSON of a report ends early: the complete calls were read")

NAME, DURATION, PERCENT, DEVICE, COUNT = "Name", "Duration (us)", "Percent", "Device", "Count"
_OTHERS = "other columns"
#: Columns whose cells are text, even if they look like numbers.
_TEXTS = frozenset((NAME, DEVICE, "Hash", "Argument Shapes", "VM::Argument Shapes", "Bound", _OTHERS))
_KINDS = {DURATION: "microseconds", PERCENT: "percent", COUNT: "count"}

# fused_nn_dense    2    12.5/6.25/6/6.5
_SUMS_ROW = re.compile(
    rb"\s*+(?P<name>\S(?:.*?\S)??)\s++(?P<count>\d+)\s+(?P<sum>[^/\s]+)/(?P<mean>[^/\s]+)/(?P<min>[^/\s]+)/(?P<max>\S+)\s*"
)
_SUMS_TOTAL = re.compile(rb"\s*Total Duration:? (?P<sum>\S+) us\..*")
_TITLE = re.compile(rb"\S+(?: \S+)*")
_JSON = re.compile(rb'\{\s*"(?:calls"\s*:\s*\[|device_metrics"\s*:|configuration"\s*:)')
_CELL = re.compile(rb'"(?:microseconds|count|percent|ratio)"\s*:|"Duration \(us\)"\s*:')
#: A quote ends a field only before a separator, behind which a field begins at once; other quotes are of the text.
_CSV_CELL = re.compile(rb'(?:"(?P<text>.*?)"(?=,(?:["\d,-]|nan|inf|$)|$)|(?P<plain>[^,"]*))(?:,|$)')
_PLAIN_ROW = re.compile(
    rb"(?P<name>\S(?:.*?\S)??)\s++(?P<duration>[\d.,']++)\s++(?P<percent>\d++[.,]\d++)\s++(?P<device>\w++)\s++"
    rb"(?P<count>\d++)(?:\s++(?P<shapes>\w++\[[^\[\]]*+\](?:, \w++\[[^\[\]]*+\])*+))?(?:\s++(?P<rest>\S.*+))?"
)
_PLAIN_TOTAL = re.compile(rb"(?P<name>Total|Sum)\s++(?P<duration>[\d.,']++)(?:\s++(?P<rest>\S.*+))?")
_SETTING = re.compile(rb"(?P<key>[^:]{1,80}): (?P<value>.*)")
#: The levels of a cell that are not made a text.
_CELL_DEPTH = MAX_DEPTH // 2 - 3
_LAST_CALL = re.compile(rb"\}\s*\}\s*(?=,\s*\{|\]\s*,\s*\")")
_GROUPING = " \u00a0\u202f'\u2019.,"
_NUMBER = re.compile(r"(?a)-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_WHOLE = re.compile(rb"-?\d+")


class Cell(NamedTuple):
    """One cell: its kind as in JSON (microseconds, count, percent, ratio, string), and its text or number as text."""

    kind: str
    value: bytes

    @property
    def is_number(self) -> bool:
        return self.kind != "string"


class Call(msgspec.Struct):
    """One row: a call, several calls of equal shapes (Count), or a total."""

    at: int  # the number of its line or of the call
    cells: dict[str, Cell] = msgspec.field(default_factory=dict)
    is_total: bool = False  # whether it is Sum, or the Total of a device
    dur: int | None = None  # its duration in ns, after `Report.measure`; None for one that has none, and for a total
    ts: int = 0  # where it is drawn, ns

    def text(self, column: str) -> str:
        """Return the text of a cell; empty if there is none."""
        return self.cells[column].value.decode("utf-8", "replace") if column in self.cells else ""


class Report(msgspec.Struct):
    at: int
    #: whether the calls are in the order in which they were completed; None if the form leaves that open
    in_order: bool | None = None
    #: the rows without Sum, and Total of each device, which are `totals`
    calls: list[Call] = msgspec.field(default_factory=list)
    totals: list[Call] = msgspec.field(default_factory=list)
    configuration: dict[str, str] = msgspec.field(default_factory=dict)  # the settings that TVM prints
    #: how often each character stands where a percentage, or without percentages a duration, may have its
    #: decimal sign; None if the form states the kinds of its cells
    signs: tuple[Counter[str], Counter[str]] | None = None

    def add(self, row: Call) -> None:
        if self.signs is not None:
            percents, durations = self.signs
            if PERCENT in row.cells:
                percents[_sign(row.text(PERCENT))] += 1
            elif DURATION in row.cells and not percents:
                durations[_sign(row.text(DURATION))] += 1
        (self.totals if row.is_total else self.calls).append(row)

    def measure(self) -> None:
        """Find out which cells are numbers, the durations, and whether the calls are in order; all rows were read."""
        if self.signs is not None:
            signs = self.signs[0] or self.signs[1]
            self._find_numbers(signs.most_common(1)[0][0] if signs else ".")
        for call in self.calls:
            call.dur = text.length_ns(call.cells[DURATION].value) if DURATION in call.cells else None
        if self.in_order is None:  # only the order of the rows tells if it was printed with sort=False, aggregate=False
            known = [call.dur or 0 for call in self.calls if DURATION in call.cells]
            is_sorted = len(self.calls) > 1 and all(dur >= below for dur, below in pairwise(known))
            self.in_order = not is_sorted and all(call.text(COUNT) in ("1", "") for call in self.calls)

    def _find_numbers(self, decimal: str) -> None:
        """Give the cells of a text their kinds: all of a column are numbers or none, but for the known columns."""
        rows = [*self.calls, *self.totals]
        numbers = [{column: _number(row.text(column), decimal) for column in row.cells} for row in rows]
        texts = {column for row in numbers for column, number in row.items() if number is None} - _KINDS.keys() | _TEXTS
        for row, known in zip(rows, numbers, strict=True):
            for column, number in known.items():
                if number is not None and column not in texts:
                    row.cells[column] = Cell(_KINDS.get(column) or _kind_of(number), number)


def form_of(head: bytes) -> str:
    """Return the form of a report by the head of its file: json, csv, text; or an empty text."""
    if head[:1] == b"{":
        return "json" if _JSON.match(head) and (_CELL.search(head) or b'"device_metrics"' in head) else ""
    titles = head.split(b"\n", 1)[0].rstrip(b"\r").split(b",")
    if {NAME.encode(), DURATION.encode(), PERCENT.encode()} <= set(titles):
        return "csv"
    for line in head.splitlines():
        if b"Duration" in line and text.begins_report(text.clean(line)):
            return "text"
    return ""


# -- JSON -------------------------------------------------------------------------------------------------------


class _File(msgspec.Struct):
    """A report of the file."""

    calls: Raw = Raw(b"[]")
    device_metrics: dict[str, dict[str, Raw]] = {}
    configuration: dict[str, Raw] = {}


_decode_row = msgspec.json.Decoder(dict[str, Raw]).decode


def read_json(source: Source, out: Builder) -> list[Report]:
    """Return the report of a JSON file. Raises MalformedInput when it cannot be read."""
    document = JsonDocument(source)
    report = Report(1, in_order=True)
    try:
        file = _decode(document.text, out)
        document.drop_pages()
        count = 0
        for count, call in enumerate(document.elements(file.calls), 1):
            report.add(Call(count, _cells(_decode_row(call))))
    except (Hopeless, msgspec.MsgspecError) as error:
        place = f"byte {error.at}" if isinstance(error, Hopeless) else ""
        raise source.malformed(
            f"not a report of TVM: {error}",
            hint="names with quotes break the JSON of TVM; report.csv() and str(report) hold the same calls",
            where=place,
        ) from None
    for number, (device, row) in enumerate(file.device_metrics.items(), count + 1):
        total = Call(number, _cells(row), True)
        total.cells.setdefault(DEVICE, Cell("string", device.encode()))
        report.add(total)
    report.configuration = {
        key: cell.value.decode("utf-8", "replace") for key, cell in _cells(file.configuration).items()
    }
    out.balance.read += len(report.calls) + len(report.totals)
    return [report]


def _decode(text: bytes | mmap.mmap, out: Builder) -> _File:
    """Decode a report, repaired where needed. Raises Hopeless or MsgspecError."""
    try:
        return msgspec.json.decode(text, type=_File)
    except (msgspec.MsgspecError, RecursionError):
        data = flatten(bytes(text).strip(), MAX_DEPTH // 2)
    try:
        return msgspec.json.decode(data, type=_File)
    except msgspec.MsgspecError:
        pass
    repairs: Counter[str] = Counter()
    file = msgspec.json.decode(_repaired(data, repairs, out), type=_File)
    if repairs:
        kinds = ", ".join(f"{count} x {kind}" for kind, count in repairs.items())
        out.problem(REPAIRED, kinds, count=repairs.total())
    return file


def _repaired(data: bytes, repairs: Counter[str], out: Builder) -> bytes:
    """Return valid JSON; of a file that ends early, the calls that are whole."""
    try:
        return repair_value(data, 0, repairs)[0]
    except Incomplete:
        pass
    ends = [match.end() for match in _LAST_CALL.finditer(data)]
    if not ends:
        raise Hopeless("the text ends inside the first call", len(data))
    out.balance.read += 1
    out.skip(CUT_REPORT, f"{out.info.name}:byte {len(data)}")
    repairs.clear()
    try:
        return repair_value(data[: ends[-1]] + b"]}", 0, repairs)[0]
    except Incomplete:
        raise Hopeless("a text that does not end", len(data)) from None


def _cells(row: dict[str, Raw]) -> dict[str, Cell]:
    return {column: _cell(flatten(bytes(raw), _CELL_DEPTH)) for column, raw in row.items()}


def _cell(raw: bytes) -> Cell:
    """Return the cell {"count":1}; older examples have a bare string."""
    if raw[:1] == b"{":
        members = msgspec.json.decode(raw, type=dict[str, Raw])
        if len(members) == 1:
            ((kind, value),) = members.items()
            cell = _cell(bytes(value))
            return Cell(kind, cell.value) if cell.is_number else cell
    elif raw[:1] == b'"':
        return Cell("string", misread_backslashes(text_of(raw)).encode("utf-8", "replace"))
    return _plain_cell(raw)


def _plain_cell(value: bytes) -> Cell:
    if _NUMBER.fullmatch(value.decode("utf-8", "replace")) is None:
        return Cell("string", value)
    return Cell(_kind_of(value), value)


def _kind_of(number: bytes) -> str:
    return "count" if _WHOLE.fullmatch(number) else "ratio"


# -- CSV --------------------------------------------------------------------------------------------------------


def read_csv(source: Source, out: Builder) -> list[Report]:
    report = Report(1, in_order=True)
    titles: list[str] = []
    for number, line in TextLines(out).read(source):
        if not titles:
            titles = line.strip().decode("utf-8", "replace").split(",")
            out.balance.merged[TABLE_LINES] += 1
            continue
        cells = _csv_cells(line)
        if len(cells) != len(titles) or not line:
            out.skip(text.CUT_ROW, number, f"{len(cells)} fields, expected {len(titles)}")
            continue
        call = Call(number)
        for title, cell in zip(titles, cells, strict=True):
            if cell is not None:
                call.cells[title] = _typed(title, cell)
        report.add(call)
    return [report]


def _csv_cells(line: bytes) -> list[Cell | None]:
    """Return the fields of a line; None for those that the call does not have."""
    if b'"' not in line:
        return [Cell("count", value) if value else None for value in line.split(b",")]
    cells: list[Cell | None] = []
    at = 0
    while at <= len(line):
        match = _CSV_CELL.match(line, at)
        if match is None:
            return []
        if match["text"] is not None:
            cells.append(Cell("string", match["text"]))
        else:
            cells.append(Cell("count", match["plain"]) if match["plain"] else None)
        if not match[0].endswith(b","):
            break
        at = match.end()
    return cells


def _typed(title: str, cell: Cell) -> Cell:
    """Return a field without quotes: its kind by its column."""
    if cell.kind == "string":
        return cell
    kind = {DURATION: "microseconds", PERCENT: "percent"}.get(title)
    plain = _plain_cell(cell.value)
    return Cell(kind, cell.value) if kind and plain.is_number else plain


# -- text -------------------------------------------------------------------------------------------------------


class _Columns(msgspec.Struct):
    """Where the columns of a table end, in bytes."""

    titles: list[str]
    ends: list[int]
    prefix: bytes  # the text before the header on its line: of a logger, mostly on the first line only

    def without_prefix(self, line: bytes) -> bytes:
        """Return a row without the prefix, if it has the same as the header but for times."""
        head = line[: len(self.prefix)]
        return line[len(head) :] if head and text.prefix_key(head) == text.prefix_key(self.prefix) else line


class TextReader:
    def __init__(self, out: Builder) -> None:
        self._out = out
        self.reports: list[Report] = []
        self._columns: _Columns | None = None
        self._in_totals = False
        self._settings: dict[str, str] | None = None
        self._sums: Report | None = None  # the table of a version before 0.8 that is being read
        self._lines = TextLines(out)

    def read(self, source: Source) -> list[Report]:
        for number, line in self._lines.read(source):
            content = text.clean(line)
            if len(content) > text.MAX_LINE or not self._take(number, content):
                self._lines.others += 1
        self._lines.tell_others(text.OTHER_LINE, LINES_OUTSIDE)
        return self.reports

    def _take(self, number: int, line: bytes) -> bool:
        header = text.REPORT_HEADER.search(line) if b"Duration (us)" in line else None
        if header is not None:
            self._columns = _columns_of(line, header.start())
            self._in_totals, self._settings, self._sums = False, None, None
            self.reports.append(self._report(number))
            return self._merged(TABLE_LINES)
        if b"#OpName" in line and text.SUMS_HEADER.search(line):
            self._columns = self._settings = None
            self._sums = self._report(number, in_order=False)
            self.reports.append(self._sums)
            return self._merged(TABLE_LINES)
        if self._sums is not None and _sums_row(number, line, self._sums):
            return True
        if not self.reports:
            return False
        stripped = line.strip()
        if not stripped:
            return self._blank()
        if stripped == b"Configuration":
            self._columns, self._settings = None, self.reports[-1].configuration
            return self._merged(TABLE_LINES)
        if self._settings is not None:
            return self._setting(stripped)
        return self._columns is not None and self._row(number, line, self._columns)

    def _report(self, number: int, in_order: bool | None = None) -> Report:
        return Report(number, in_order, signs=(Counter(), Counter()))

    def _merged(self, kind: Counted) -> bool:
        self._out.balance.merged[kind] += 1
        return True

    def _blank(self) -> bool:
        """Read an empty line, which ends the rows, and the settings if there were any."""
        if self._columns is None and not self._settings:
            return False
        self._columns = self._settings = None
        return self._merged(TABLE_LINES)

    def _setting(self, line: bytes) -> bool:
        setting = _SETTING.fullmatch(line)
        if setting is not None and self._settings is not None:
            self._settings[setting["key"].decode("utf-8", "replace")] = setting["value"].decode("utf-8", "replace")
            return self._merged(CONFIGURATION_LINES)
        if text.is_dashes(line) and not self._settings:
            return self._merged(TABLE_LINES)
        self._settings = None
        return False

    def _row(self, number: int, line: bytes, columns: _Columns) -> bool:
        if text.is_dashes(columns.without_prefix(line)):
            self._in_totals = True
            return self._merged(TABLE_LINES)
        line = columns.without_prefix(line)
        cells = _aligned(line, columns) or _collapsed(line)
        if cells is None:
            if line[:1].isspace() or b"  " not in line.strip():
                return False
            self._out.skip(text.CUT_ROW, number, line.strip()[:60].decode("utf-8", "replace"))
            return True
        call = Call(number, {title: Cell("string", value) for title, value in cells.items()})
        call.is_total = self._in_totals or (call.text(NAME) == "Total" and PERCENT not in call.cells)
        self.reports[-1].add(call)
        return True


def _sums_row(number: int, line: bytes, report: Report) -> bool:
    """Read a row of a table before 0.8; return False for another line."""
    row, total = _SUMS_ROW.fullmatch(line), _SUMS_TOTAL.fullmatch(line)
    if row is not None:
        cells = {
            NAME: "name",
            COUNT: "count",
            DURATION: "sum",
            "Mean (us)": "mean",
            "Min (us)": "min",
            "Max (us)": "max",
        }
        report.add(Call(number, {title: Cell("string", row[key]) for title, key in cells.items()}))
    elif total is not None:
        report.add(Call(number, {NAME: Cell("string", b"Total"), DURATION: Cell("string", total["sum"])}, True))
    return row is not None or total is not None


def _columns_of(line: bytes, start: int) -> _Columns:
    matches = list(_TITLE.finditer(line, start))
    if len(matches) < 3:  # a paste in which the spaces between columns have collapsed
        return _Columns([], [], line[:start])
    titles = [title[0].decode("utf-8", "replace") for title in matches]
    return _Columns(titles, [title.end() - start for title in matches], line[:start])


def _aligned(line: bytes, columns: _Columns) -> dict[str, bytes] | None:
    """Return the cells of a line that is cut at the ends of the headers, blank ones left out.

    None if one does not fit.
    """
    if not columns.ends or line[:1].isspace():
        return None
    cells: dict[str, bytes] = {}
    before = 0
    for title, end in zip(columns.titles[1:], columns.ends[1:], strict=True):
        value = line[before:end].strip()
        if line[end : end + 2].strip() or (value and line[end - 1 : end] in (b" ", b"")):
            return None
        if before == 0:
            name, _, value = value.rpartition(b"  ")
            cells[NAME] = name.strip()
        if value:
            cells[title] = value
        before = end
    return cells if cells[NAME] and cells.get(DURATION, b"")[-1:].isalnum() else None


def _collapsed(line: bytes) -> dict[str, bytes] | None:
    """Return the cells of a row whose columns do not stand below their headers.

    Those behind the shapes stay together.
    """
    match = _PLAIN_ROW.fullmatch(line.strip()) or _PLAIN_TOTAL.fullmatch(line.strip())
    if match is None:
        return None
    names = {"name": NAME, "duration": DURATION, "percent": PERCENT, "device": DEVICE, "count": COUNT}
    names |= {"shapes": "Argument Shapes", "rest": _OTHERS}
    return {names[key]: value for key, value in match.groupdict().items() if value}


def _sign(number: str) -> str:
    """Return the decimal sign: the character before the last digits; a point if nothing does."""
    return next((char for char in reversed(number) if not char.isdigit()), ".")


def _number(printed: str, decimal: str) -> bytes | None:
    """Return a number without the separators of a locale; None if it is none."""
    if decimal == "." and _NUMBER.fullmatch(printed):  # nearly all
        return printed.encode()
    plain = "".join(char for char in printed if char == decimal or char not in _GROUPING)
    plain = plain.replace(decimal, ".")
    return plain.encode() if _NUMBER.fullmatch(plain) else None

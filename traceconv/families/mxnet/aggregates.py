"""Aggregate tables of the MXNet profiler: what `mx.profiler.dumps()` returns and programs print, as text or JSON.

    Profile Statistics:
        Note the difference in units for different entries.
    operator
    =================
    Name                          Total Count        Time (ms)    Min Time (ms)    Max Time (ms)    Avg Time (ms)
    ----                          -----------        ---------    -------------    -------------    -------------
    Convolution                             4           0.8430           0.0850           0.3280           0.2107

Source: the source (src/profiler/aggregate_stats.cc) and from runs of 1.6 and 1.9: names overflow their column, so
rows are read from the right. Memory comes in kB of 1000 bytes with three numbers, up to 1.4 with four under headings of
time. Counters (`MXNet C API Calls`, those of the user) are printed divided by 1000 as if they were ms; that is undone.
What is called average there, and for memory, is half the difference of maximum and minimum. A minimum that was never
set shows as 2147483.647. The same work stands in several sections, so sections must not be added.

In JSON (1.5 and later) every entry is `"name": {` with one `"Count": 4,` a line, in four significant digits, and names
are not escaped. The tables hold no times of day: there is no timeline.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from traceconv.families.common.text_lines import NO_TIMELINE, OpenTables, TextLines, text_of_line
from traceconv.families.importer import Importer, Match, Signature
from traceconv.io.shown import Counted
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import NO_TIME
from traceconv.model.diagnostics import LINES, TABLE_HEADINGS, absent, lost, skipped
from traceconv.model.marks import FormatMarks, TotalsMarks
from traceconv.model.numbers import double, double_of, number_of, whole
from traceconv.model.track_table import TrackId

JSON_LINES = Counted("line of JSON around the numbers", "lines of JSON around the numbers")

OTHER_LINE = skipped(
    "mxnet-table.other_line", "lines outside of the tables are the program's own output and were left out", quiet=True
)
BAD_ROW = lost("mxnet-table.bad_row", "a row does not have the numbers of its heading (a cut or mixed up line)")
CUT = lost("mxnet-table.cut", "the JSON ends inside an entry: those before it were kept")
NEVER_SET = absent("mxnet-table.minimum_never_set", "MXNet never set a minimum (2147483.647): it was left out")

_BEGIN = re.compile(r"Profile Statistics[.:]")
_HEADING = re.compile(r"Name {2,}Total Count {2,}(?:Time|Min Use) (?:(?!Name {2}).)*\((?:ms|kB)\)\s*")
_UNIT = re.compile(r"\((?:ms|kB)\)")
_NOTE = re.compile(r"\s*Note\b.*|.*counter items are counter values.*")
_RULE = re.compile(r"=+\s*|-[- ]*")
# Memory: cpu/0                          16           0.0000        3604.7681        1802.3840
_ROW = {
    n: re.compile(r"((?:.*?\S)??)\s++([0-9]{1,18})" + r"\s++(-?[0-9]{1,300}\.[0-9]{4})" * n + r"\s*+") for n in (3, 4)
}
_LIKE_A_ROW = re.compile(r"\S.*\s\s\d")

_JSON_BEGIN = re.compile(r'((?:.*?\S)??)\s*+\{?\s*+"(Time|Memory)"\s*:\s*\{\s*')
_JSON_HEAD = re.compile(
    rb'"(?:Time|Memory)"\s*:\s*\{.{0,2000}?'
    rb'(?:"Count"\s*:\s*\d+\s*,\s*"(?:Total|Min)"|"Avg"\s*:\s*[\d.]+\s*,\s*"Count")\s*:',
    re.DOTALL,
)
#         "Convolution": {  |  "Count": 4,  |  "Time": "ms",  |  },
_JSON_LINE = re.compile(
    r'\s*"(?P<opened>.*)"\s*:\s*\{\s*|'
    r'\s*"(?P<key>Count|Total|Min|Max|Avg)"\s*:\s*(?P<value>-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)\s*+,?\s*+|'
    r'\s*"(?P<kind>Time|Memory)"\s*:\s*"(?P<unit>[^"]*)"\s*+,?\s*+|[\s},]*'
)

_MEMORY = "Device Storage"
_COUNTERS = ("MXNet C API Calls", "MXNet C API Concurrency")
_NO_MINIMUM = 2147483.6
#: The args of a row, by the kind of its numbers.
_KEYS = {
    "time": ("total_ms", "min_ms", "max_ms", "avg_ms"),
    "memory": ("", "min_use_kB", "max_use_kB", "half_range_kB"),
    "counter": ("total", "min", "max", "half_range"),
}
_HELP = "Sums of profiler.dumps(), not a timeline. Sections overlap: the same work can stand in several of them."


class Row(msgspec.Struct):
    """One line of a table, or one entry of the JSON."""

    section: str
    name: str
    kind: str  # "time", "memory" or "counter", which is what the numbers mean
    count: int
    #: total, min, max and avg as printed, None where one is not printed or was never set
    numbers: tuple[float | None, float | None, float | None, float | None]

    def args(self) -> dict[str, Any]:
        """Return the numbers with their units in the keys."""
        printed = zip(_KEYS[self.kind], self.numbers, strict=True)
        values = {key: value for key, value in printed if value is not None}
        if self.kind == "counter":  # MXNet divides their values by 1000
            values = {key: _exact(round(value * 1000, 3)) for key, value in values.items()}
        return {"count": self.count, **values}


def _exact(value: float) -> float:
    return round(value) if value.is_integer() else value


def row_of(section: str, name: str, count: int, printed: Sequence[float | None], is_memory: bool) -> Row:
    """Return a row with the kind of its numbers: total, min, max, avg, or the last three of them."""
    total, low, high, average = (None, *printed) if len(printed) == 3 else printed
    if is_memory or section == _MEMORY:
        kind = "memory"
    elif name in _COUNTERS or _averages_its_range(count, total, low, high, average):
        kind = "counter"
    else:
        kind = "time"
    return Row(section, name, kind, count, (None if kind == "memory" else total, low, high, average))


def _averages_its_range(
    count: int, total: float | None, low: float | None, high: float | None, average: float | None
) -> bool:
    """Return whether the average is half the range, beyond what rounding explains."""
    if total is None or low is None or high is None or average is None or low >= _NO_MINIMUM:
        return False
    rounding = 0.0001 + 0.001 * abs(average)
    return abs(average * count - total) > count * rounding and abs((high - low) / 2 - average) <= rounding


class _Text(msgspec.Struct):
    dump: int  # the number of the call of dumps() in the log
    section: str = ""
    title: str = ""  # the line before, which may be the title of a section
    numbers: int = 0  # how many numbers the rows have behind the count; 0 outside of the rows
    is_memory: bool = False


class _Json(msgspec.Struct):
    """A JSON dump that is being read line by line."""

    dump: int
    prefix: str  # what a logger put before the first line
    first: str  # the kind that it begins with: "Time", if nobody sorted the keys
    path: list[str]  # the names of the objects around the line: kind, section, entry
    values: dict[str, str] = msgspec.field(default_factory=dict)  # what the innermost entry holds

    def goes_on_with(self, kind: str) -> bool:
        """Return whether an object of that name is a part of this dump; else it begins the next one."""
        return kind != self.first and (not self.path or kind == "Memory")


class _Reader:
    def __init__(self, out: Builder) -> None:
        self._out = out
        self._tables: OpenTables[_Text] = OpenTables()
        self._json: _Json | None = None
        self._dumps = 0
        self._tracks: dict[tuple[int, str], TrackId] = {}
        self._units: dict[str, str] = {}
        self._lines = TextLines(out)
        self._before = ""  # the line before the current one

    def read(self, source: Source) -> None:
        for number, line in self._lines.read(source):
            text = text_of_line(line)
            if not self._line(number, text):
                self._lines.others += 1
            self._before = text
        if self._json is not None:
            self._out.problem(CUT, f"{source.name}: inside {' / '.join(self._json.path)!r}")
        if not self._dumps:
            raise source.malformed(
                "no table of profiler.dumps() found, expected a line `Profile Statistics:` or JSON with Time and Count",
                hint=f"record one with {MxnetTable.record}",
            )
        self._finish()

    def _finish(self) -> None:
        self._lines.tell_others(OTHER_LINE)
        if self._dumps > 1:
            self._out.note(
                f"{self._dumps} dumps in one log: each has its own tracks; unless dumps(reset=True) was called, they "
                "count from the start of the profile, so that later ones contain the earlier ones"
            )
        self._out.note(NO_TIMELINE)
        if self._units:
            self._out.metadata["mxnet_units"] = self._units

    def _line(self, number: int, line: str) -> bool:
        """Read a line; False if it belongs to no table."""
        if '"Time"' in line or '"Memory"' in line:
            begin = _JSON_BEGIN.fullmatch(line)
            if begin is not None and not (self._json is not None and self._json.goes_on_with(begin[2])):
                self._begin_json(begin[1], begin[2])
                return self._merged(JSON_LINES)
            if begin is None and '"Count"' in line:
                return self._compact_json(number, line)
        if self._json is not None:
            return self._json_line(number, line.removeprefix(self._json.prefix), self._json)
        begin = _BEGIN.search(line)
        if begin is not None:
            self._dumps += 1
            self._tables.open(line[: begin.start()], _Text(self._dumps))
            return self._merged(TABLE_HEADINGS)
        heading = self._tables.find(line)
        if heading is None:
            return False
        return self._table_line(number, heading[2], heading[1])

    def _merged(self, kind: Counted, count: int = 1) -> bool:
        self._out.balance.merged[kind] += count
        return True

    # -- text -------------------------------------------------------------------------------------------------

    def _table_line(self, number: int, line: str, table: _Text) -> bool:
        """Read a line of an open table; return whether it is known."""
        if _RULE.fullmatch(line):
            return self._rule(line, table)
        if _HEADING.fullmatch(line):
            table.numbers, table.is_memory = len(_UNIT.findall(line)), "(kB)" in line
            return self._merged(TABLE_HEADINGS)
        if not line.strip() or _NOTE.fullmatch(line):
            table.numbers = 0
            return self._merged(TABLE_HEADINGS)
        if not table.numbers:
            table.title = line.strip()
            return False
        row = _ROW[3 if table.numbers == 3 else 4].fullmatch(line)
        if row is not None:
            numbers = [double(text) for text in row.groups()[2:]]
            self._write(number, table.dump, row_of(table.section, row[1], whole(row[2]), numbers, table.is_memory))
        elif _LIKE_A_ROW.match(line):
            self._out.skip(BAD_ROW, number, line[:60])
        else:
            return False
        return True

    def _rule(self, line: str, table: _Text) -> bool:
        """Read a rule: one of = stands below the title of a section, one of - below the heading."""
        if line.startswith("=") and table.title:
            table.section, table.title = table.title, ""
            self._lines.others -= 1  # the title itself
            self._merged(TABLE_HEADINGS)
        return self._merged(TABLE_HEADINGS)

    def _write(self, number: int, dump: int, row: Row) -> None:
        track = self._tracks.get((dump, row.section))
        if track is None:
            title = f"MXNet totals: {row.section}" + (f", dump {dump}" if dump > 1 else "")
            track = self._tracks[dump, row.section] = self._out.tracks.totals(title, description=_HELP)
        low = row.numbers[1]
        if row.kind != "memory" and low is not None and low >= _NO_MINIMUM:
            self._out.problem(NEVER_SET, number, repr(row.name))
            row.numbers = (row.numbers[0], None, *row.numbers[2:])
        self._out.totals(track, row.name, row.section, row.args(), number)
        self._out.balance.written += 1

    # -- JSON -------------------------------------------------------------------------------------------------

    def _begin_json(self, prefix: str, kind: str) -> None:
        if self._json is not None:
            self._out.problem(CUT, f"inside {' / '.join(self._json.path)!r}")
        if self._before.removeprefix(prefix).strip() == "{":
            self._lines.others -= 1  # the bracket that opens the document
            self._merged(JSON_LINES)
        self._dumps += 1
        self._json = _Json(self._dumps, prefix.removesuffix("{"), kind, [kind])

    def _json_line(self, number: int, line: str, document: _Json) -> bool:
        match = _JSON_LINE.fullmatch(line)
        if match is None:
            return False
        if match["opened"] is not None:
            document.path.append(match["opened"])
            document.values = {}
        elif match["key"]:
            document.values[match["key"]] = match["value"]
        elif match["kind"]:
            self._units[match["kind"]] = match["unit"]
        else:
            return self._close(number, line.count("}"), document)
        return self._merged(JSON_LINES)

    def _close(self, number: int, brackets: int, document: _Json) -> bool:
        """Close objects; the line that closes an entry stands for it in the balance."""
        counted = False
        for _ in range(brackets):
            if not document.path:
                self._json = None
                break
            if len(document.path) == 3:
                counted = self._entry(number, document.dump, document.path, document.values)
            document.path.pop()
        return counted or self._merged(JSON_LINES)

    def _entry(self, number: int, dump: int, path: list[str], values: dict[str, Any]) -> bool:
        kind, section, name = path
        keys = ("Min", "Max", "Avg") if kind == "Memory" else ("Total", "Min", "Max", "Avg")
        numbers = [double_of(str(values.get(key, ""))) for key in keys]
        count = number_of(str(values.get("Count", "")))
        if not isinstance(count, int) or None in numbers:
            self._out.skip(BAD_ROW, number, f"{section} / {name}: {', '.join(values) or 'nothing'}")
        else:
            self._write(number, dump, row_of(section, name, count, numbers, kind == "Memory"))
        return True

    def _compact_json(self, number: int, line: str) -> bool:
        """Read a whole document in one line, as programs print it that decode it first."""
        try:
            document = msgspec.json.decode(line[line.index("{") :].strip())
            entries = [
                ([kind, section, name], values)
                for kind in ("Time", "Memory")
                for section, members in document.get(kind, {}).items()
                for name, values in members.items()
            ]
        except (ValueError, AttributeError, msgspec.DecodeError, RecursionError):
            self._out.skip(BAD_ROW, number, "JSON that does not end in its line, or is of another form")
            return True
        self._dumps += 1
        self._out.balance.read += len(entries)
        for path, values in entries:
            self._entry(number, self._dumps, path, values if isinstance(values, dict) else {})
        units = document.get("Unit")
        if isinstance(units, dict):
            self._units |= units
        return self._merged(JSON_LINES)


@dataclass(frozen=True)
class MxnetTable(Importer):
    name = "mxnet-table"
    title = "MXNet aggregate tables (profiler.dumps())"
    url = "https://mxnet.apache.org/versions/1.9.1/api/python/docs/api/mxnet/profiler/index.html"
    versions = "1.2 to 2.0; text and JSON, between other output, several dumps in one log"
    signature = Signature('profile statistics | "count" & "total" | "count" & "min" | "count" & "avg"')
    clock = NO_TIME
    record = (
        "mx.profiler.set_config(aggregate_stats=True, profile_all=True); mx.profiler.set_state('run'); ...; "
        "print(mx.profiler.dumps())"
    )
    skips = (OTHER_LINE,)

    line_up = "Merged with the profile.json of the run, it is shown under its process."
    becomes = (
        ("row of a table, entry of the JSON", "instant without a time, with the numbers as args"),
        ("section (operator, MXNET_C_API, Device Storage, user's domain)", "track"),
        ("counter printed as ms", "args without unit, multiplied by 1000 again"),
        ("units of the JSON", "metadata"),
    )
    lost = (
        "A user's counter whose half range equals its average cannot be distinguished from a time.",
        "JSON dumps have only four significant digits.",
    )
    marks = FormatMarks(
        totals=TotalsMarks(
            calls=("count",),
            total=("total_ms",),
            mean=("avg_ms",),
            least=("min_ms",),
            most=("max_ms",),
            peak=("max_use_kB",),
            unit_ns=10**6,
            unit_bytes=1000,
            as_slices=True,
        )
    )

    def sniff(self, head: Head) -> Match:
        """Return YES for the line that MXNet prints above its tables with a heading, or for its JSON."""
        if _JSON_HEAD.search(head.data) and b'"ph"' not in head.data:
            return Match.yes("JSON with Time, Count and Total as profiler.dumps() makes it")
        if b"Profile Statistics" not in head.data or b"Total Count" not in head.data:
            return Match.no("no `Profile Statistics` with a heading `Name  Total Count`")
        lines = [text_of_line(line) for line in head.data.splitlines()]
        begins = any(_BEGIN.search(line) for line in lines)
        if begins and any("Total Count" in line and _HEADING.search(line) for line in lines):
            return Match.yes("`Profile Statistics` and a heading `Name  Total Count`")
        return Match.no("`Profile Statistics` without a heading `Name  Total Count`")

    def read(self, source: Source, out: Builder) -> None:
        """Read the whole log. Raises MalformedInput when it holds no table."""
        out.counts(LINES)
        out.belongs_to(("mxnet",))
        _Reader(out).read(source)

"""Importer of the output of nvprof: GPU trace, API trace, summary, events, metrics; in columns or as CSV.

    ==4711== NVPROF is profiling process 4711, command: ./a.out
    Success!==4711== Profiling application: ./a.out
    ==4711== Profiling result:
       Start  Duration            Grid Size      Block Size     Regs*  ...        Device   Context  Name
    326.63ms  1.6782ms          (32768 1 1)      (1024 1 1)        14  ...  TITAN Xp (0)         1  k(int*) [128]

    "Start","Duration",...,"Name"
    us,us,...,
    0.000000,1.888000,...,"[CUDA memset]"

Tables differ by version and by what happened, so columns are known by the words of the header row. Cells of a row stand
two or more spaces apart, with "-" where there is none; the last one is the name, up to the end of the line.

Only the two traces have times: relative ones, with about five digits, so that from one second on a start is good to
10 us and from ten on to 100 us. Zero is the start of profiling; when nvprof shows a file that it has written before
(the prefix is "========"), each table begins at its own first row. Threads are not printed. All other tables are totals
without a place in time. Source: console samples of CUDA 6 to 11.

The lines of several processes can alternate; rows carry no pid, so each is taken for the process whose title came last.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
from msgspec import structs

from traceconv.families.common import cupti as _cupti
from traceconv.families.common.ansi import plain
from traceconv.families.common.text_lines import TextLines
from traceconv.families.importer import Importer, Match, Signature
from traceconv.io.shown import Counted
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import ClockDomain, ClockSnapshot, Provenance, Run, Zero
from traceconv.model.diagnostics import BLANK_LINES, LINES, absent, lost, repaired, skipped
from traceconv.model.marks import GPU_MARKS, CountMarks, TotalsMarks
from traceconv.model.numbers import MS, NS, US, S, decimal_of, is_digits, parse_ns, whole_of, whole_or_text
from traceconv.model.source_info import Layer
from traceconv.model.trace import SliceId
from traceconv.model.track_table import NO_TRACK, ClockId, TrackId

TITLES = Counted("title or message", "titles and messages")
HEADER_ROWS = Counted("header row", "header rows")
PROGRAM_LINES = Counted("line of the program", "lines of the program")

OTHER_LINE = skipped(
    "nvprof-text.other_line",
    "lines that nvprof did not print are the program's own output and were left out",
    quiet=True,
)
CUT_ROW = lost(
    "nvprof-text.cut_row",
    "a row of a table has fewer cells than its header (cut, or mixed with text of another process): left out",
)
BAD_ROW = lost("nvprof-text.bad_row", "a row of a trace has a start but no valid duration: left out")
NO_LINE_END = absent("nvprof-text.no_line_end", "the text ends inside a line: the name in the last row may be cut")
MOVED_START = repaired(
    "nvprof-text.moved_start",
    "a start has so few digits that it lies inside the slice before it: it was moved to the end of that "
    "slice, by at most one unit of its last digit",
)

#: The title of a CPU profile whose outermost rows are times of functions without those that they call: each sample
#: counts for the function that ran. From the top down it counts for all functions on the stack.
_EXCLUSIVE = re.compile(r"CPU profiling result \((?:bottom up|flat)\)")
_TITLE = re.compile(r"(?P<title>(?=.*?(?:result|calls|analysis)\b).*):\s*$", re.IGNORECASE)
_COMMAND = re.compile(r"(?:NVPROF is profiling process \d+, command|Profiling application): (?P<command>.*)")
#: Range "forward", below Domain and Thread; Device "Tesla T4 (0)"; Kernel: vectorAdd(float*)
#: Total CPU Page faults: 9; No kernels were profiled.; Regs: Number of registers used per CUDA thread.
_ABOUT = re.compile(
    r'\s*(?P<key>Thread|Domain|Range|Device) "(?P<name>.*)"(?: \(id = (?P<id>-?\d+)\))?\s*$|\s*Kernel: (?P<kernel>.*)$|'
    r"Total (?P<what>.*): (?P<count>\d+)\s*$|(?P<empty>No .* were profiled\.)|"
    r"(?P<legend>(?:Regs|SSMem|DSMem|SrcMemType|DstMemType|CPU|GPU|\*)[^:]{0,30}: |\(\*\))"
)
_NO_TEXT = re.compile(rb"\{\s*[\"}]|\[\s*[\[{\"]|SQLite format")
#: The type of rows, once for all of them, and the lines of a tree: " API calls:   12.1%", "  | | 5.00%  10ms".
_GROUP = re.compile(r"\s*(?:(?P<type>[A-Z][A-Za-z ]*(?: \((?:excl|incl)\))?):\s{2,})?(?P<tree>[|\s]*)(?P<row>.*)")
_CORRELATION = re.compile(r"(?P<name>.*) \[(?P<id>\d+)\]")
_LAUNCH = re.compile(r"(?P<name>\w+) \((?P<kernel>.*) \[(?P<id>\d+)\]\)")
_DIM = re.compile(r"\((\d+) (\d+) (\d+)\)")

_ARGS = {
    "Registers Per Thread": "registers_per_thread",
    "Static SMem": "static_shared_memory",
    "Dynamic SMem": "dynamic_shared_memory",
    "Size": "",
    "Throughput": "throughput",
    "SrcMemType": "src",
    "DstMemType": "dst",
    "Src Dev": "src_device",
    "Src Ctx": "src_context",
    "Dst Dev": "dst_device",
    "Dst Ctx": "dst_context",
    "Unified Memory": "unified_memory",
    "Virtual Address": "address",
}
_PLACED = frozenset(
    (
        *("Start", "Duration", "Name", "Device", "Context", "Stream", "Grid Size", "Block Size", "Correlation_ID"),
        *(f"{what} {axis}" for what in ("Grid", "Block") for axis in "XYZ"),
    )
)
_CLOCK = ClockDomain("start of nvprof", Zero.RUN_START, Run.MONOTONIC)
_DEVICE = re.compile(r"(?P<name>.*) \((?P<number>\d+)\)")
_UNIFIED = "[Unified Memory"
_NONE = ("", "-")

#: ==4711== Profiling result:   |   ======== Profiling result:
_PREFIX = re.compile(
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


class _Header(NamedTuple):
    line: str
    columns: tuple[str, ...]  # the words, without footnote marks
    csv: bool  # whether the table is CSV
    timed: bool  # whether the rows have times
    correlated: bool  # whether the last column is the correlation id
    name_at: int  # the column of the name, which may hold the separator of columns; the last one in tables of text


def header_of(line: str) -> _Header | None:
    """Return a line as a header row; None if it is not one."""
    text = line.strip()
    if not text.lstrip('"').startswith(_FIRST):
        return None
    csv = text.startswith('"')
    words = cells_of_csv(text) if csv else _GAP.split(text)
    columns = tuple(_SHORT.get(word.strip().rstrip("*"), word.strip().rstrip("*")) for word in words)
    timed = columns[:2] == ("Start", "Duration")
    # A metric of each launch has a column of its own, after the name.
    known = "Name" in columns if timed else columns[-1] in _LAST
    if not known or len(columns) < 2 or all(columns[: len(start)] != start for start in _STARTS):
        return None
    name_at = next((columns.index(word) for word in ("Name", "Kernel") if word in columns), len(columns) - 1)
    return _Header(line, columns, csv, timed, columns[-1] == "Correlation_ID", name_at)


def units_of(line: str, header: _Header) -> dict[str, str] | None:
    """Return the units row below a header row: the unit of each column that has one."""
    if header.csv:
        cells = line.strip().split(",")
        if len(cells) != len(header.columns) or not any(cells):
            return None
        is_units = all(not cell or _UNIT.fullmatch(cell) for cell in cells)
        return {column: cell for column, cell in zip(header.columns, cells, strict=True) if cell} if is_units else None
    words = list(re.finditer(r"\S+", line))
    if not words or not all(_UNIT.fullmatch(word[0]) for word in words):
        return None
    ends, at = {}, 0  # columns stand flush right
    for word in _GAP.split(header.line.strip()):
        at = header.line.index(word, at) + len(word)
        ends[at] = word.rstrip("*")
    return {_SHORT.get(ends[word.end()], ends[word.end()]): word[0] for word in words if word.end() in ends}


def cells_of_csv(line: str) -> list[str]:
    """Return the cells of a line of CSV as nvprof writes it."""
    cells = [quoted or plain for quoted, plain in _CELL.findall(line)]
    return cells if line.endswith(",") else cells[:-1]


def cells_of(line: str, header: _Header) -> list[str]:
    """Return the cells of a row: one for each column, unless it is cut or mixed with other text."""
    wanted, at = len(header.columns), header.name_at
    if not header.csv:
        return _GAP.split(line.strip(), maxsplit=wanted - 1 if at == wanted - 1 else 0)
    cells = cells_of_csv(line.strip())
    behind = len(cells) - wanted + at + 1  # the name may have commas between quotes
    return [*cells[:at], '","'.join(cells[at:behind]), *cells[behind:]] if len(cells) > wanted else cells


def split_value(text: str, unit: str = "") -> tuple[str, str] | None:
    """Return number and unit of "1.6782ms"; a number without unit has that of its column."""
    match = _VALUE.fullmatch(text.strip())
    return (match[1].replace(",", "."), match[2] or unit) if match else None


@lru_cache(maxsize=1 << 12)
def time_ns(text: str, unit: str = "") -> tuple[int, int] | None:
    """Return a time and its resolution, both ns; None for other texts."""
    number, unit = split_value(text, unit) or ("", "")
    try:
        exponent = _TIMES[unit]
        return parse_ns(number.encode(), exponent), 10 ** max(exponent - len(number.partition(".")[2]), 0)
    except (KeyError, ValueError):
        return None


@lru_cache(maxsize=1 << 12)
def value_of(text: str, unit: str = "") -> tuple[str, Any]:
    """Return the suffix of the key and the value for the args: ("_ns", 1678200), ("_bytes", 4096), ("", "Low (2)")."""
    time = time_ns(text, unit)
    if time is not None:
        return "_ns", time[0]
    number, found_unit = split_value(text, unit) or ("", "")
    exact = None if found_unit in _TIMES else decimal_of(number)
    if exact is None:
        return "", text
    if found_unit in ("%", ""):
        is_whole = exact == exact.to_integral_value() and abs(exact) < 2**63
        return "_percent" if found_unit else "", int(exact) if is_whole else float(exact)
    base, slash, _ = found_unit.partition("/")
    if base in _SIZES and abs(exact) < 10**15:
        size = exact * (1 << _SIZES[base])
        return ("_gb_per_s", round(float(size) / 1e9, 4)) if slash else ("_bytes", round(size))
    return "", text


@lru_cache(maxsize=1 << 10)
def key_of(column: str) -> str:
    """Return the name of a column as a key of args: "Time(%)" -> "time"."""
    return re.sub(r"[^a-z0-9]+", "_", column.replace("(%)", "").lower()).strip("_")


class _Shape(NamedTuple):
    """What rows have in common that differ only in their times and names: args, and the names of their tracks."""

    args: dict[str, Any]
    path: tuple[str, ...]  # device, context, stream
    has_device: bool


class _Table(msgspec.Struct):
    """The table that rows belong to. It has no pid when nvprof showed a file."""

    pid: int | None = None
    title: str = ""
    header: _Header | None = None
    units: dict[str, str] | None = None  # None until the line below the header is read
    group: str = ""  # the type of the rows, such as "API calls"
    context: dict[str, str] = msgspec.field(default_factory=dict)  # thread, domain, range, device, kernel
    clock: ClockId | None = None
    shapes: dict[tuple[str, ...], _Shape] = msgspec.field(default_factory=dict)


class _TextTracks:
    """Creates tracks on first use; keeps the commands of processes, and the domain of each clock."""

    def __init__(self, out: Builder) -> None:
        self.commands: dict[int | None, str] = {}
        self.clocks: dict[ClockId, ClockDomain] = {}
        self._out = out
        self._tracks: dict[tuple[Any, ...], TrackId] = {}

    def _process(self, pid: int | None) -> TrackId:
        command, key = self.commands.get(pid, ""), ("process", pid)
        if key not in self._tracks and (pid is not None or command):
            self._tracks[key] = self._out.tracks.process(pid=pid, description=command)
        return self._tracks.get(key, NO_TRACK)

    def clock(self, table: _Table) -> ClockId:
        """Return the clock of a table, with a zero of its own for each process, or for each table of a file."""
        if table.clock is None:
            words = f"of process {table.pid}" if table.pid is not None else f"table {len(self.clocks) + 1}"
            domain = ClockDomain(f"{_CLOCK.name}, {words}", _CLOCK.zero, _CLOCK.run, 1, "", self._out.info.name)
            if not self.clocks:
                self._out.clocks.set_default(domain)
            table.clock = self._out.clocks.add(domain)
            self.clocks[table.clock] = domain
        return table.clock

    def track(self, table: _Table, path: tuple[str, ...], clock: ClockId) -> TrackId:
        key = ("track", table.pid, path, clock)
        if key not in self._tracks:
            parent = self.track(table, path[:-1], clock) if len(path) > 1 else self._process(table.pid)
            self._tracks[key] = self._out.tracks.add(path[-1], parent, clock=clock)
        return self._tracks[key]

    def totals(self, table: _Table) -> TrackId:
        """Return a track for totals, below the process only if it has traces: tables alone are attached later."""
        title = table.title or "nvprof"
        key = ("totals", table.pid, title)
        if key not in self._tracks:
            process = self._tracks.get(("process", table.pid), NO_TRACK)
            if process == NO_TRACK and len(self.commands) > 1 and table.pid is not None:
                title = f"{title} of process {table.pid}"
            about = f"process {table.pid}: " if table.pid is not None else ""
            command = self.commands.get(table.pid, "")
            description = f"{about}{command}." if command else ""
            self._tracks[key] = self._out.tracks.totals(title, process, description=description)
        return self._tracks[key]


class _Row(NamedTuple):
    slice: SliceId
    ts: int  # its start, ns
    clock: ClockId
    at: int


def _closest(pairs: list[tuple[_Row, _Row]], clock: ClockId, reference: ClockId) -> tuple[int, int] | None:
    """Return the times on two clocks, one of calls and one of work, of the launch with the least time to its work."""
    for calls, work in ((clock, reference), (reference, clock)):
        between = [pair for pair in pairs if pair[0].clock == calls and pair[1].clock == work]
        if between:
            call, row = max(between, key=lambda pair: pair[0].ts - pair[1].ts)
            return (call.ts, row.ts) if calls == clock else (row.ts, call.ts)
    return None


class _Reader:
    def __init__(self, out: Builder) -> None:
        self._out = out
        self._kept = out.balance.merged
        self._table = _Table()
        self._tracks = _TextTracks(out)
        self._ends: dict[TrackId, int] = {}
        #: Calls and the work that they launched, by process and correlation id; of calls with one id the last counts.
        self._calls: dict[tuple[int | None, int], _Row] = {}
        self._work: list[tuple[tuple[int | None, int], _Row]] = []
        self._step = 1
        self._dur_step = 1 << 62  # larger than the last digit of any duration, ns
        self._rows = 0
        self._tables: list[str] = []
        self._lines = TextLines(out)

    def read(self, source: Source) -> None:
        line = b""
        for number, line in self._lines.read(source, keep_ends=True):
            self._line(number, plain(line.rstrip(b"\r\n")))
        if not line.endswith(b"\n") and self._table.header is not None and not self._table.header.csv:
            self._out.problem(NO_LINE_END)
        if not self._tables and not self._tracks.commands:
            raise source.malformed(
                "no table of nvprof found, expected a header row such as Start Duration ... Name",
                hint=f"record one with {NvprofText.record}",
            )
        self._finish()

    def _line(self, number: int, line: bytes) -> None:
        prefix = _PREFIX.search(line) if b"==" in line else None
        text = line.decode("utf-8", "replace")
        if prefix is not None:
            self._prefixed(prefix)
            self._kept[TITLES] += 1
        elif not text.strip():
            self._kept[BLANK_LINES] += 1
        elif self._is_header(text):
            self._kept[HEADER_ROWS] += 1
        elif self._table.header is None or not self._row(number, text, self._table.header):
            self._other_line(number, text)

    def _other_line(self, number: int, text: str) -> None:
        table, about = self._table, _ABOUT.match(text)
        if about is not None and about["count"] and table.title:
            args = {"count": whole_or_text(about["count"])}
            self._out.totals(self._tracks.totals(table), f"Total {about['what']}", args=args, at=number)
            self._out.balance.written += 1
        elif about and (self._is_context(about) or about["empty"] or (about["legend"] and table.header is not None)):
            self._kept[TITLES] += 1
        else:
            self._lines.others += 1

    def _prefixed(self, prefix: re.Match[bytes]) -> None:
        pid = whole_of(prefix["pid"]) if prefix["pid"] else None
        text = (prefix["text"] if prefix["pid"] else prefix["imported"]).decode("utf-8", "replace")
        command, about = _COMMAND.match(text), _ABOUT.match(text)
        if command is not None:
            self._tracks.commands.setdefault(pid, command["command"].strip())
        elif text.startswith(("Warning:", "Error:", "Internal profiling error")):
            self._out.note(f"nvprof says: {text.strip()}")
        elif about is not None and self._is_context(about):
            self._table.pid = pid
        elif title := _TITLE.match(text):
            group = {"API calls": "API calls", "Profiling result": "GPU activities"}.get(title["title"].strip(), "")
            self._table = _Table(pid, title["title"].strip(), group=group)

    def _is_context(self, about: re.Match[str]) -> bool:
        """Take over what the following rows are about; return whether the line says it."""
        context, inner = self._table.context, ("Thread", "Domain", "Range")
        if about["key"] in inner:  # a new thread ends the domain and the range of the one before
            for key in inner[inner.index(about["key"]) :]:
                context.pop(key.lower(), None)
        if about["key"]:
            context[about["key"].lower()] = about["name"]
            if about["id"]:
                context["thread_id"] = about["id"]
        is_kernel = about["kernel"] is not None and self._table.header is not None
        if is_kernel:
            context["kernel"] = about["kernel"].strip()
        return bool(about["key"]) or is_kernel

    def _is_header(self, text: str) -> bool:
        """Return whether a line is a header row, or the row of units below one."""
        table = self._table
        if table.units is None and table.header is not None:
            units = units_of(text, table.header)
            table.units = units or {}
            if units is not None:
                return True
        header = header_of(text)
        if header is None:
            return False
        if table.header is not None and header.timed:  # another table below the same title has a zero of its own
            table = self._table = _Table(table.pid, table.title, group=table.group)
        table.header, table.units = header, None
        self._tables.append(f"{table.title or 'table'}: {', '.join(header.columns)}")
        return True

    def _row(self, number: int, text: str, header: _Header) -> bool:
        is_row = self._timed_row(number, text, header) if header.timed else self._total(number, text, header)
        self._rows += is_row
        return is_row

    def _unit(self, column: str) -> str:
        return (self._table.units or {}).get(column, "")

    def _timed_row(self, number: int, text: str, header: _Header) -> bool:
        if not is_digits(text.lstrip(' \t"-')[:1]):
            return False
        cells = cells_of(text, header)
        start = time_ns(cells[0] if header.csv else text.split(None, 1)[0], self._unit("Start"))
        if start is None:
            return False
        if len(cells) != len(header.columns):
            self._out.skip(CUT_ROW, number, f"{len(cells)} of {len(header.columns)} cells" if header.csv else "")
            return True
        length = cells[1].strip()
        dur = time_ns(length, self._unit("Duration"))
        if dur is None and length not in _NONE:
            self._out.skip(BAD_ROW, number, f"duration {cells[1]!r:.40}")
            return True
        self._step = max(self._step, start[1])
        self._event(number, header, cells, start, dur)
        return True

    def _event(
        self, number: int, header: _Header, cells: list[str], start: tuple[int, int], dur: tuple[int, int] | None
    ) -> None:
        """Draw a row: a slice, or an instant if it has no duration (page faults of the CPU)."""
        table = self._table
        name = cells[header.name_at].strip()
        shape = self._shape(header, cells)
        args = dict(shape.args)
        if header.correlated and is_digits(cells[-1].strip()):
            args["correlation_id"] = whole_or_text(cells[-1].strip())
        on_device = shape.has_device or name.startswith("[")
        name = self._correlated(name, args, on_device)
        clock = self._tracks.clock(table)
        path = shape.path if on_device else ("CUDA API",)
        if on_device and name.startswith(_UNIFIED):
            path = (*path[: shape.has_device], "Unified memory")
        track = self._tracks.track(table, path, clock)
        category = _category(name, on_device)
        self._out.balance.written += 1
        if dur is None:
            self._out.instant(track, start[0], name, category, args, number)
            return
        self._dur_step = min(self._dur_step, dur[1])
        # Work of one stream and calls of one thread follow each other; what unified memory does overlaps.
        ts = start[0] if category == "unified_memory" else self._moved(track, start, dur[0], number)
        kept = self._out.slice(track, ts, dur[0], name, category, args, number)
        correlation = args.get("correlation_id")
        if isinstance(correlation, int):
            row = _Row(kept, ts, clock, number)
            if on_device:
                self._work.append(((table.pid, correlation), row))
            else:
                self._calls[table.pid, correlation] = row

    def _shape(self, header: _Header, cells: list[str]) -> _Shape:
        """Return the shape of the cells other than times and name, mostly a cached one."""
        table = self._table
        key = (*cells[2 : header.name_at], *cells[header.name_at + 1 : -1 if header.correlated else None])
        shape = table.shapes.get(key)
        if shape is None:
            if len(table.shapes) == 1 << 14:
                table.shapes.clear()
            row = dict(zip(header.columns, cells, strict=True))
            has_device = row.get("Device", "-").strip() not in _NONE
            shape = table.shapes[key] = _Shape(self._args(row), _path(row), has_device)
        return shape

    def _correlated(self, name: str, args: dict[str, Any], on_device: bool) -> str:
        """Return the name without the correlation id, which stands at its end where it has no column."""
        pattern = _CORRELATION if on_device else _LAUNCH
        match = pattern.fullmatch(name) if name.endswith(("]", "])")) else None
        if match is None:
            return name
        args |= {"correlation_id": whole_or_text(match["id"])} | ({} if on_device else {"kernel": match["kernel"]})
        return match["name"]

    def _args(self, row: dict[str, str]) -> dict[str, Any]:
        args: dict[str, Any] = {}
        for what in ("Grid", "Block"):
            size = _DIM.fullmatch(row.get(f"{what} Size", "").strip())
            axes = size.groups() if size else [row.get(f"{what} {axis}", "") for axis in "XYZ"]
            sizes = [whole_of(axis) for axis in axes]
            if None not in sizes:
                args[what.lower()] = sizes
        for column, cell in row.items():
            text, key = cell.strip(), _ARGS.get(column, column)
            if column in _PLACED or text in _NONE:
                continue
            ending, value = value_of(text, self._unit(column)) if key != "address" else ("", text)
            if column not in _ARGS and ending == "_percent":  # a metric, under its own name
                ending, value = "", text
            if key in ("src", "dst") and isinstance(value, str):
                value = value.lower()
            args[f"{key}{ending}".strip("_")] = value
        return args

    def _moved(self, track: TrackId, start: tuple[int, int], dur: int, number: int) -> int:
        """Return the start, behind the slice before it if only rounding has put it inside."""
        ts, step = start
        before = self._ends.get(track, ts)
        if ts < before <= ts + step:
            self._out.problem(MOVED_START, number)
            ts = before
        self._ends[track] = max(ts + dur, before)
        return ts

    def _total(self, number: int, text: str, header: _Header) -> bool:
        """Read a row of sums; return whether the line is one."""
        depth = 0
        if not header.csv and (group := _GROUP.match(text)):
            self._table.group = group["type"] or self._table.group
            depth, text = group["tree"].count("|"), group["row"]
            text = f"{self._table.group or '-'}  {text.strip()}" if header.columns[0] == "Type" else text
        cells = cells_of(text, header)
        if len(cells) != len(header.columns):
            return False
        row = dict(zip(header.columns, cells, strict=True))
        counted = next(column for column in header.columns if column not in ("Type", "Device", "Kernel"))
        if split_value(row[counted]) is None:
            return False
        name = next((row.pop(key) for key in ("Name", "Metric Name", "Event Name") if key in row), self._table.title)
        category = row.pop("Type", "") or self._table.group
        if "range" in self._table.context and category != "Range":
            depth = depth or 1  # what ran in a range, a part of what ran in all
        is_exclusive = not depth and _EXCLUSIVE.search(self._table.title) is not None
        args: dict[str, Any] = {**self._table.context, **({"depth": depth} if depth else {})}
        for column, cell in row.items():
            if cell.strip() not in _NONE:
                ending, value = value_of(cell, self._unit(column))
                prefix = "self_" if is_exclusive and column == "Time" else ""
                args[f"{prefix}{key_of(column)}{ending}"] = value
        self._out.totals(self._tracks.totals(self._table), name.strip(), category, args, number)
        self._out.balance.written += 1
        return True

    def _finish(self) -> None:
        self._lines.tell_others(OTHER_LINE, PROGRAM_LINES)
        self._draw_launches()
        commands = {str(pid) if pid is not None else "": command for pid, command in self._tracks.commands.items()}
        self._out.metadata["nvprof_text"] = {"commands": commands, "tables": self._tables[:50]}
        if not self._tracks.clocks:
            self._out.belongs_to(("nvprof", "nsight-systems"))
        if len(self._tracks.clocks) == 1:
            (clock,) = self._tracks.clocks.values()
            exact = self._dur_step < self._step
            self._out.clocks.set_default(structs.replace(clock, resolution_ns=self._step, exact_durations=exact))
        if self._step > 1000:
            self._out.note(
                f"starts are printed in steps of up to {self._step} ns: their order within one is that of the lines"
            )
        if not self._rows:
            self._out.note("no table has a row: the program used no GPU, or was stopped before nvprof printed")

    def _draw_launches(self) -> None:
        """Draw the flows from calls to their work, and relate each clock to the first one by them."""
        pairs = [(self._calls[key], row) for key, row in self._work if key in self._calls]
        launch = [self._out.tables.string(_cupti.LAUNCH_FLOW)] * len(pairs)
        sources, targets = [call.slice for call, _ in pairs], [row.slice for _, row in pairs]
        self._out.bulk.flows(sources, targets, launch, launch, [row.at for _, row in pairs])
        clocks = list(self._tracks.clocks.items())
        for clock, domain in clocks[1:]:
            reference, first = clocks[0]
            times, method = _closest(pairs, clock, reference), "no kernel starts before its launch"
            if times is None:
                times, method = (0, 0), "as if all tables began together"
                self._out.note(
                    f"{domain.name} and {first.name} have different zeros that the text does not relate: drawn as if "
                    "they were one"
                )
            snapshot = ClockSnapshot(domain, times[0], first, times[1], None, method, provenance=Provenance.ASSUMED)
            self._out.clocks.snapshot(snapshot)


def _path(row: dict[str, str]) -> tuple[str, ...]:
    """Return the names of the tracks of a row: of its device, and of its context and stream if it has them."""
    device, *inner = (row.get(column, "-").strip() for column in ("Device", "Context", "Stream"))
    match = _DEVICE.fullmatch(device)
    name = f"GPU {match['number']}: {match['name']}" if match else device.strip("- ") or "GPU"
    words = zip(("Context", "Stream"), inner, strict=True)
    return (name, *(f"{kind} {word}" for kind, word in words if word not in _NONE))


def _category(name: str, on_device: bool) -> str:
    if not on_device:
        return _cupti.DRIVER_API if re.match(r"cu[A-Z]", name) else _cupti.RUNTIME_API
    if name.startswith(_UNIFIED):
        return "unified_memory"
    if name.startswith("[CUDA memcpy"):
        return _cupti.MEMCPY
    return _cupti.MEMSET if name.startswith("[CUDA memset") else _cupti.KERNEL


@dataclass(frozen=True)
class NvprofText(Importer):
    name = "nvprof-text"
    title = "nvprof console output and CSV (traces, summary, metrics)"
    url = "https://docs.nvidia.com/cuda/archive/12.9.1/profiler-users-guide/"
    versions = "nvprof of CUDA 5 to 12"
    signature = Signature("nvprof is profiling | time(%) | invocations", (rb'(?m)^[\s"]*start["\s]',))
    clock = _CLOCK
    layer = Layer.DEVICE
    record = "nvprof --print-gpu-trace --print-api-trace --csv -u ns --log-file nvprof.%p.csv python run.py"
    skips = (OTHER_LINE,)

    line_up = (
        "Times count from the start of profiling: --offset FILE=TIME. A database (nvprof -o FILE) counts from 1970."
    )
    becomes = (
        ("GPU trace", "slices on their stream, with grid, block, registers, bytes, throughput and metrics as args"),
        ("row without a duration (page fault of the CPU)", "instant"),
        ("API trace", "slices on one track for each process"),
        ("correlation ids", "flows from the call to the kernel"),
        ("summary, events, metrics, NVTX, unified memory, CPU profile", "rows on tracks without a timeline"),
    )
    lost = (
        "The API trace does not name the calling thread; overlapping calls go to lanes.",
        "Console text has five digits, so starts after the first second are coarse (use --csv -u ns).",
    )
    unrecorded = "nvprof runs on GPUs up to compute capability 7; none was at hand. Public logs were read, too."
    marks = msgspec.structs.replace(
        GPU_MARKS,
        counts=CountMarks(("",), "total", layer="kernel"),
        totals=TotalsMarks(
            calls=("calls", "count"),
            total=("time_ns", "total_time_ns"),
            self_time=("self_time_ns",),
            mean=("avg_ns",),
            least=("min_ns",),
            most=("max_ns",),
            percent=("time_percent",),
            nested=("depth",),
        ),
    )

    def sniff(self, head: Head) -> Match:
        """Recognise a title with its prefix and a header row; a header row alone may be another tool's."""
        if _NO_TEXT.match(head.text):
            return Match.no("JSON or SQLite, no text")
        titled = header = profiling = False
        for line in head.data.splitlines():
            prefix = _PREFIX.search(line) if b"==" in line else None
            if prefix is not None:
                text = prefix["text"] or prefix["imported"] or b""
                profiling |= text.startswith(b"NVPROF is profiling process")
                titled |= _TITLE.match(text.decode("utf-8", "replace")) is not None
            elif b"Start" in line or b"Time(%)" in line or b"Invocations" in line:
                header |= header_of(line.decode("utf-8", "replace")) is not None
        if profiling or (titled and header):
            return Match.yes("a line of nvprof with its prefix" + (", a header row" if header else ""))
        return Match.maybe("a header row like those of nvprof") if header else Match.no("no title or table of nvprof")

    def read(self, source: Source, out: Builder) -> None:
        out.info.real_ids = True
        out.counts(LINES)
        _Reader(out).read(source)

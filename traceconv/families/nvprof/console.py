"""Importer of the output of nvprof: GPU trace, API trace, summary, events, metrics; in columns or as CSV.

    ==4711== NVPROF is profiling process 4711, command: ./a.out
    Success!==4711== Profiling application: ./a.out
    ==4711== Profiling result:
       Start  Duration  Name
    65.366ms     757ns  cuDeviceGetCount

Only the two traces have times: relative ones, with about five digits, so that from one second on a start is good to
10 us and from ten on to 100 us. Zero is the start of profiling; when nvprof shows a file that it has written before
(the prefix is "========"), each table begins at its own first row. Threads are not printed. All other tables are totals
without a place in time. The grammar is in `printed`.

The lines of several processes can alternate; rows carry no pid, so each is taken for the process whose title came last.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import msgspec

from traceconv.families.common import cupti as _cupti
from traceconv.families.common.ansi import plain
from traceconv.families.common.text_lines import TextLines
from traceconv.families.identification import Signature
from traceconv.families.importer import Importer, Match
from traceconv.families.nvprof import printed
from traceconv.families.nvprof.printed import Header
from traceconv.io.shown import Counted
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import ClockDomain, ClockSnapshot, Provenance, Run, Zero
from traceconv.model.diagnostics import BLANK_LINES, LINES, absent, lost, repaired, skipped
from traceconv.model.marks import GPU_MARKS, CountMarks, TotalsMarks
from traceconv.model.numbers import is_digits, whole_of, whole_or_text
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
#: The type of rows that are NVTX ranges; the others of such a table ran in them.
_RANGE = "Range"
_TITLE = re.compile(r"(?P<title>(?=.*?(?:result|calls|analysis)\b).*):\s*$", re.IGNORECASE)
_COMMAND = re.compile(r"NVPROF is profiling process (?P<pid>\d+), command: (?P<command>.*)")
_APPLICATION = re.compile(r"Profiling application: (?P<command>.*)")
#: Range "forward", below Domain and Thread; Device "Tesla T4 (0)"; Kernel: vectorAdd(float*)
_CONTEXT = re.compile(r'\s*(?P<key>Thread|Domain|Range|Device) "(?P<name>.*)"(?: \(id = (?P<id>-?\d+)\))?\s*$')
_KERNEL = re.compile(r"\s*Kernel: (?P<name>.*)$")
_LEGEND = re.compile(r"(?:Regs|SSMem|DSMem|SrcMemType|DstMemType|CPU|GPU|\*)[^:]{0,30}: |\(\*\)")
_FAULTS = re.compile(r"Total (?P<what>.*): (?P<count>\d+)\s*$")
_EMPTY = re.compile(r"No .* were profiled\.")
#: The first words of these lines.
_ABOUT = (
    *("Thread", "Domain", "Range", "Device", "Kernel", "Regs", "SSMem", "DSMem", "SrcMem", "DstMem", "CPU", "GPU"),
    *("*", "(*)", "Total", "No "),
)
_NO_TEXT = re.compile(rb"\{\s*[\"}]|\[\s*[\[{\"]|SQLite format")
_DEPTH = re.compile(r"[|\s]*")
_GROUP = re.compile(r"\s*(?P<type>[A-Z][A-Za-z ]*(?: \((?:excl|incl)\))?):\s{2,}(?P<row>.*)")
_CORRELATION = re.compile(r"(?P<name>.*) \[(?P<id>\d+)\]")
_LAUNCH = re.compile(r"(?P<call>\w+) \((?P<kernel>.*) \[(?P<id>\d+)\]\)")
_DIM = re.compile(r"\((\d+) (\d+) (\d+)\)")
_UNIFIED_MEMORY = "unified_memory"
#: Larger than the last digit of any duration, ns.
_NO_STEP = 1 << 62

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
_LOWER = ("src", "dst")
_MAX_SHAPES = 1 << 14
CLOCK = ClockDomain("start of nvprof", Zero.RUN_START, Run.MONOTONIC)
_DEVICE = re.compile(r"(?P<name>.*) \((?P<number>\d+)\)")
UNIFIED = "[Unified Memory"
NONE = ("", "-")


class Shape(NamedTuple):
    """The properties of rows that differ only in their times and names: their args, and device, context, stream."""

    args: dict[str, Any]
    place: tuple[str, ...]


class Table(msgspec.Struct):
    """The table that rows belong to. It has no pid when nvprof showed a file."""

    pid: int | None = None
    title: str = ""
    header: Header | None = None
    header_line: str = ""
    units: dict[str, str] | None = None
    group: str = ""  # the type of the rows, such as "API calls"
    #: Thread, domain, range, device and kernel that the rows are about.
    context: dict[str, str] = msgspec.field(default_factory=dict)
    totals: TrackId = NO_TRACK
    clock: ClockId | None = None
    awaits_units: bool = False
    shapes: dict[tuple[str, ...], Shape] = msgspec.field(default_factory=dict)


class TextTracks:
    """Creates tracks on first use; keeps the commands of processes, and the domain of each clock."""

    def __init__(self, out: Builder) -> None:
        self.commands: dict[int | None, str] = {}
        self.clocks: dict[ClockId, ClockDomain] = {}
        self._out = out
        self._tracks: dict[tuple[Any, ...], TrackId] = {}

    def _process(self, table: Table) -> TrackId:
        pid = table.pid
        command = self.commands.get(pid, "")
        if pid is None and not command:
            return NO_TRACK
        key = ("process", pid)
        if key not in self._tracks:
            self._tracks[key] = self._out.tracks.process(pid=pid, description=command)
        return self._tracks[key]

    def clock(self, table: Table) -> ClockId:
        """Return the clock of a table, with a zero of its own for each process, or for each table of a file."""
        if table.clock is None:
            words = f"of process {table.pid}" if table.pid is not None else f"table {len(self.clocks) + 1}"
            domain = ClockDomain(f"{CLOCK.name}, {words}", CLOCK.zero, CLOCK.run, 1, "", self._out.info.name)
            if not self.clocks:
                self._out.clocks.set_default(domain)
            table.clock = self._out.clocks.add(domain)
            self.clocks[table.clock] = domain
        return table.clock

    def track(self, table: Table, path: tuple[str, ...], clock: ClockId) -> TrackId:
        """Return the track of that path below the process."""
        key = ("track", table.pid, path, clock)
        if key not in self._tracks:
            parent = self.track(table, path[:-1], clock) if len(path) > 1 else self._process(table)
            self._tracks[key] = self._out.tracks.add(path[-1], parent, clock=clock)
        return self._tracks[key]

    def stream(self, table: Table, shape: Shape, name: str, clock: ClockId) -> TrackId:
        """Return the track of the stream, or of the unified memory, that a row is about."""
        unified = name.startswith(UNIFIED)
        words = shape.place
        key = ("stream", table.pid, words, unified, clock)
        if key not in self._tracks:
            device = _DEVICE.fullmatch(words[0])
            on_a_device = words[0] not in NONE
            path = [f"GPU {device['number']}: {device['name']}" if device else words[0].strip("- ") or "GPU"]
            if unified:
                path = [*path[:on_a_device], "Unified memory"]
            else:
                kinds = zip(("Context", "Stream"), words[1:], strict=True)
                path += [f"{kind} {word}" for kind, word in kinds if word not in NONE]
            self._tracks[key] = self.track(table, tuple(path), clock)
        return self._tracks[key]

    def totals(self, table: Table) -> TrackId:
        """Return a track for totals, below the process only if it has traces: tables alone are attached later."""
        if table.totals == NO_TRACK:
            title = table.title or "nvprof"
            key = ("totals", table.pid, title)
            if key not in self._tracks:
                process = self._tracks.get(("process", table.pid), NO_TRACK)
                if process == NO_TRACK and len(self.commands) > 1 and table.pid is not None:
                    title = f"{title} of process {table.pid}"
                about = f"process {table.pid}: " if table.pid is not None else ""
                command = self.commands.get(table.pid, "")
                self._tracks[key] = self._out.tracks.totals(
                    title, process, description=f"{about}{command}." if command else ""
                )
            table.totals = self._tracks[key]
        return table.totals


class Row(NamedTuple):
    """A slice with its start (ns) on a clock, and its line."""

    slice: SliceId
    ts: int
    clock: ClockId
    at: int


class Launches:
    """The calls of an API trace and the work of a GPU trace that they launched, by process and correlation id."""

    def __init__(self) -> None:
        self._calls: dict[tuple[int | None, int], Row] = {}
        self._work: list[tuple[tuple[int | None, int], Row]] = []

    def add(self, pid: int | None, correlation: int, row: Row, on_device: bool) -> None:
        """Add the slice of a call or of work; of several calls with one id, the last one counts."""
        if on_device:
            self._work.append(((pid, correlation), row))
        else:
            self._calls[pid, correlation] = row

    def draw(self, out: Builder) -> list[tuple[Row, Row]]:
        """Draw the flows from calls to their work; return both, in the order of the work."""
        pairs = [(self._calls[key], row) for key, row in self._work if key in self._calls]
        launch = [out.tables.string(_cupti.LAUNCH_FLOW)] * len(pairs)
        sources, targets = [call.slice for call, _ in pairs], [row.slice for _, row in pairs]
        out.bulk.flows(sources, targets, launch, launch, [row.at for _, row in pairs])
        return pairs


def _closest(pairs: list[tuple[Row, Row]], clock: ClockId, reference: ClockId) -> tuple[int, int] | None:
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
        self._table = Table()
        self._tracks = TextTracks(out)
        self._ends: dict[TrackId, int] = {}
        self._launches = Launches()
        self._step = 1
        self._dur_step = _NO_STEP
        self._rows = 0
        self._timed = 0
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
        prefix = printed.PREFIX.search(line) if b"==" in line else None
        if prefix is not None:
            self._prefixed(prefix)
            self._keep(TITLES)
            return
        text = line.decode("utf-8", "replace")
        if not text.strip():
            self._keep(BLANK_LINES)
        elif self._is_header(text):
            self._keep(HEADER_ROWS)
        elif self._table.header is None or not self._row(number, text):
            self._other_line(number, text)

    def _keep(self, kind: Counted) -> None:
        self._out.balance.merged[kind] += 1

    def _other_line(self, number: int, text: str) -> None:
        if not text.lstrip().startswith(_ABOUT):
            self._lines.others += 1
            return
        total = _FAULTS.match(text)
        if total is not None and self._table.title:
            self._out.totals(
                self._tracks.totals(self._table),
                f"Total {total['what']}",
                args={"count": whole_or_text(total["count"])},
                at=number,
            )
            self._out.balance.written += 1
        elif self._is_context(text) or _EMPTY.match(text) or (self._table.header is not None and _LEGEND.match(text)):
            self._keep(TITLES)
        else:
            self._lines.others += 1

    def _prefixed(self, prefix: re.Match[bytes]) -> None:
        pid = whole_of(prefix["pid"]) if prefix["pid"] else None
        text = (prefix["text"] if prefix["pid"] else prefix["imported"]).decode("utf-8", "replace")
        command = _COMMAND.match(text) or _APPLICATION.match(text)
        if command is not None:
            self._tracks.commands.setdefault(pid, command["command"].strip())
        elif text.startswith(("Warning:", "Error:", "Internal profiling error")):
            self._out.note(f"nvprof says: {text.strip()}")
        elif self._is_context(text):
            self._table.pid = pid
        elif title := _TITLE.match(text):
            group = {"API calls": "API calls", "Profiling result": "GPU activities"}.get(title["title"].strip(), "")
            self._table = Table(pid, title["title"].strip(), group=group)

    def _is_context(self, text: str) -> bool:
        """Read a line with the context of the following rows; return whether it is one."""
        match = _CONTEXT.match(text)
        if match is not None:
            inner = ("Thread", "Domain", "Range")
            if match["key"] in inner:  # a new thread ends the domain and the range of the one before
                for key in inner[inner.index(match["key"]) :]:
                    self._table.context.pop(key.lower(), None)
            self._table.context[match["key"].lower()] = match["name"]
            if match["id"]:
                self._table.context["thread_id"] = match["id"]
            return True
        kernel = _KERNEL.match(text)
        if kernel is not None and self._table.header is not None:
            self._table.context["kernel"] = kernel["name"].strip()
            return True
        return False

    def _is_header(self, text: str) -> bool:
        """Return whether a line is a header row, or the row of units below one."""
        table = self._table
        if table.awaits_units and table.header is not None:
            table.awaits_units = False
            table.units = printed.units_of(text, table.header, table.header_line)
            if table.units is not None:
                return True
        header = printed.header_of(text)
        if header is None:
            return False
        if table.header is not None and header.timed:  # another table below the same title has a zero of its own
            table = self._table = Table(table.pid, table.title, group=table.group)
        table.header, table.header_line, table.units, table.awaits_units = header, text, None, True
        self._tables.append(f"{table.title or 'table'}: {', '.join(header.columns)}")
        return True

    def _row(self, number: int, text: str) -> bool:
        header = self._table.header
        assert header is not None
        written = self._timed_row(number, text, header) if header.timed else self._total(number, text, header)
        self._rows += written
        return written

    def _unit(self, column: str) -> str:
        return (self._table.units or {}).get(column, "")

    def _timed_row(self, number: int, text: str, header: Header) -> bool:
        if not is_digits(text.lstrip(' \t"-')[:1]):
            return False
        first = printed.cells_of_csv(text.strip()) if header.csv else text.split(None, 1)
        start = printed.time_ns(first[0], self._unit("Start"))
        if start is None:
            return False
        cells = printed.joined(first, header) if header.csv else printed.cells_of(text, header)
        if cells is None:
            self._out.skip(CUT_ROW, number, f"{len(first)} of {len(header.columns)} cells" if header.csv else "")
            return True
        no_length = cells[1].strip() in NONE
        dur = None if no_length else printed.time_ns(cells[1].strip(), self._unit("Duration"))
        if dur is None and not no_length:
            self._out.skip(BAD_ROW, number, f"duration {cells[1]!r:.40}")
            return True
        self._step = max(self._step, start[1])
        self._event(number, header, cells, start, dur)
        return True

    def _event(
        self, number: int, header: Header, cells: list[str], start: tuple[int, int], dur: tuple[int, int] | None
    ) -> None:
        """Draw a row: a slice, or an instant if it has no duration (page faults of the CPU)."""
        table = self._table
        name = cells[header.name_at].strip()
        shape = self._shape(header, cells)
        args = dict(shape.args)
        if header.correlated and is_digits(cells[-1].strip()):
            args["correlation_id"] = whole_or_text(cells[-1].strip())
        on_device = shape.place[0] not in NONE or name.startswith("[")
        name = self._correlated(name, args, on_device)
        clock = self._tracks.clock(table)
        if on_device:
            track = self._tracks.stream(table, shape, name, clock)
        else:
            track = self._tracks.track(table, ("CUDA API",), clock)
        category = _category(name, on_device)
        self._out.balance.written += 1
        self._timed += 1
        if dur is None:
            self._out.instant(track, start[0], name, category, args, number)
            return
        self._dur_step = min(self._dur_step, dur[1])
        # Work of one stream and calls of one thread follow each other; what unified memory does overlaps.
        ts = start[0] if category == _UNIFIED_MEMORY else self._moved(track, start, dur[0], number)
        kept = self._out.slice(track, ts, dur[0], name, category, args, number)
        correlation = args.get("correlation_id")
        if isinstance(correlation, int):
            self._launches.add(table.pid, correlation, Row(kept, ts, clock, number), on_device)

    def _shape(self, header: Header, cells: list[str]) -> Shape:
        """Return the shape of the cells other than times and name, mostly a cached one."""
        table = self._table
        key = (*cells[2 : header.name_at], *cells[header.name_at + 1 : -1 if header.correlated else None])
        shape = table.shapes.get(key)
        if shape is None:
            if len(table.shapes) == _MAX_SHAPES:
                table.shapes.clear()
            row = dict(zip(header.columns, cells, strict=True))
            place = tuple(row.get(column, "-").strip() for column in ("Device", "Context", "Stream"))
            shape = table.shapes[key] = Shape(self._args(row), place)
        return shape

    def _correlated(self, name: str, args: dict[str, Any], on_device: bool) -> str:
        """Return the name without the correlation id, which stands at its end where it has no column."""
        if not name.endswith(("]", "])")):
            return name
        match = (_CORRELATION if on_device else _LAUNCH).fullmatch(name)
        if match is None:
            return name
        args["correlation_id"] = whole_or_text(match["id"])
        if on_device:
            return match["name"]
        args["kernel"] = match["kernel"]
        return match["call"]

    def _args(self, row: dict[str, str]) -> dict[str, Any]:
        args: dict[str, Any] = {}
        for what in ("Grid", "Block"):
            size = _DIM.fullmatch(row.get(f"{what} Size", "").strip())
            axes = size.groups() if size else [row.get(f"{what} {axis}", "") for axis in "XYZ"]
            sizes = [whole_of(axis) for axis in axes]
            if None not in sizes:
                args[what.lower()] = sizes
        for column, text in row.items():
            if column not in _PLACED and text.strip() not in NONE:
                self._add_arg(args, column, text.strip())
        return args

    def _add_arg(self, args: dict[str, Any], column: str, text: str) -> None:
        key = _ARGS.get(column, column)
        if key == "address":
            args[key] = text
            return
        ending, value = printed.value_of(text, self._unit(column))
        if column not in _ARGS and ending == "_percent":  # a metric, under its own name
            ending = ""
            value = text
        args[f"{key}{ending}".strip("_")] = value.lower() if key in _LOWER and isinstance(value, str) else value

    def _moved(self, track: TrackId, start: tuple[int, int], dur: int, number: int) -> int:
        """Return the start, behind the slice before it if only rounding has put it inside."""
        ts, step = start
        before = self._ends.get(track, ts)
        if ts < before <= ts + step:
            self._out.problem(MOVED_START, number)
            ts = before
        self._ends[track] = max(ts + dur, before)
        return ts

    def _total(self, number: int, text: str, header: Header) -> bool:
        """Read a row of sums; return whether the line is one."""
        depth = 0
        if not header.csv:
            text, depth = self._without_group(text)
        cells = printed.cells_of(text, header)
        if cells is None:
            return False
        row = dict(zip(header.columns, cells, strict=True))
        counted = next(column for column in header.columns if column not in ("Type", "Device", "Kernel"))
        if printed.split_value(row[counted]) is None:
            return False
        name = next((row.pop(key) for key in ("Name", "Metric Name", "Event Name") if key in row), self._table.title)
        category = row.pop("Type", "") or self._table.group
        if "range" in self._table.context and category != _RANGE:
            depth = depth or 1  # what ran in a range, a part of what ran in all
        is_exclusive = not depth and _EXCLUSIVE.search(self._table.title) is not None
        args: dict[str, Any] = {**self._table.context, **({"depth": depth} if depth else {})}
        for column, cell in row.items():
            if cell.strip() not in NONE:
                ending, value = printed.value_of(cell, self._unit(column))
                prefix = "self_" if is_exclusive and column == "Time" else ""
                args[f"{prefix}{printed.key_of(column)}{ending}"] = value
        self._out.totals(self._tracks.totals(self._table), name.strip(), category, args, number)
        self._out.balance.written += 1
        return True

    def _without_group(self, text: str) -> tuple[str, int]:
        """Return a row without the type before it ("API calls:", once for all its rows) and the lines of a tree."""
        header = self._table.header
        assert header is not None
        group = _GROUP.match(text)
        if group is not None:
            self._table.group = group["type"]
            text = group["row"]
        tree = _DEPTH.match(text)
        depth = tree[0].count("|") if tree else 0
        text = text[tree.end() :] if tree and depth else text
        return (f"{self._table.group or '-'}  {text.strip()}" if header.columns[0] == "Type" else text), depth

    def _finish(self) -> None:
        self._lines.tell_others(OTHER_LINE, PROGRAM_LINES)
        self._relate_clocks(self._launches.draw(self._out))
        commands = {str(pid) if pid is not None else "": command for pid, command in self._tracks.commands.items()}
        self._out.metadata["nvprof_text"] = {"commands": commands, "tables": self._tables[:50]}
        if not self._timed:
            self._out.belongs_to(("nvprof", "nsight-systems"))
        if len(self._tracks.clocks) == 1:
            (clock,) = self._tracks.clocks.values()
            exact = self._dur_step < self._step
            self._out.clocks.set_default(replace(clock, resolution_ns=self._step, exact_durations=exact))
        if self._step > 1000:
            self._out.note(
                f"starts are printed in steps of up to {self._step} ns: their order within one is that of the lines"
            )
        if not self._rows:
            self._out.note("no table has a row: the program used no GPU, or was stopped before nvprof printed")

    def _relate_clocks(self, launches: list[tuple[Row, Row]]) -> None:
        """Relate each clock to the first one: by common launches, else as if they were one."""
        clocks = self._tracks.clocks
        known = list(clocks)
        for clock in known[1:]:
            pair = _closest(launches, clock, known[0])
            if pair is not None:
                method = "no kernel starts before its launch"
            else:
                pair, method = (0, 0), "as if all tables began together"
                self._out.note(
                    f"{clocks[clock].name} and {clocks[known[0]].name} have different zeros that the text "
                    "does not relate: drawn as if they were one"
                )
            domains = clocks[clock], clocks[known[0]]
            self._out.clocks.snapshot(
                ClockSnapshot(domains[0], pair[0], domains[1], pair[1], None, method, provenance=Provenance.ASSUMED)
            )


def _category(name: str, on_device: bool) -> str:
    if not on_device:
        return _cupti.DRIVER_API if re.match(r"cu[A-Z]", name) else _cupti.RUNTIME_API
    if name.startswith(UNIFIED):
        return _UNIFIED_MEMORY
    if name.startswith("[CUDA memcpy"):
        return _cupti.MEMCPY
    return _cupti.MEMSET if name.startswith("[CUDA memset") else _cupti.KERNEL


@dataclass(frozen=True)
class NvprofText(Importer):
    """Importer of what nvprof prints."""

    name = "nvprof-text"
    title = "nvprof console output and CSV (traces, summary, metrics)"
    url = "https://docs.nvidia.com/cuda/archive/12.9.1/profiler-users-guide/"
    versions = "nvprof of CUDA 5 to 12"
    signature = Signature("nvprof is profiling | time(%) | invocations", rb'(?m)^[\s"]*start["\s]')
    clock = CLOCK
    layer = Layer.DEVICE
    record = "nvprof --print-gpu-trace --print-api-trace --csv -u ns --log-file nvprof.%p.csv python run.py"
    skips = (OTHER_LINE,)

    line_up = (
        "Times count from the start of profiling: --offset FILE=TIME. Better record a database (nvprof -o FILE), whose "
        "times count from 1970."
    )
    becomes = (
        ("GPU trace", "slices on their stream, with grid, block, registers, bytes, throughput and metrics as args"),
        ("row of a trace without a duration (page fault of the CPU)", "instant"),
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
            own=("self_time_ns",),
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
            prefix = printed.PREFIX.search(line) if b"==" in line else None
            if prefix is not None:
                text = prefix["text"] or prefix["imported"] or b""
                profiling |= text.startswith(b"NVPROF is profiling process")
                titled |= _TITLE.match(text.decode("utf-8", "replace")) is not None
            elif b"Start" in line or b"Time(%)" in line or b"Invocations" in line:
                header |= printed.header_of(line.decode("utf-8", "replace")) is not None
        if profiling or (titled and header):
            return Match.yes("a line of nvprof with its prefix" + (", a header row" if header else ""))
        return Match.maybe("a header row like those of nvprof") if header else Match.no("no title or table of nvprof")

    def read(self, source: Source, out: Builder) -> None:
        """Read the whole text."""
        out.info.real_ids = True
        out.counts(LINES)
        _Reader(out).read(source)

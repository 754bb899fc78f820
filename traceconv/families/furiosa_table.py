"""Tables of the Furiosa profiler: the data frame as CSV, and what its print functions print.

    trace_id,parent_span_id,span_id,start,end,cat,name,thread.id,dram_base,pe_index,execution_index,...,dur
    c772,0000000000000000,5a692d6d2100cc4d,1795244784926050005,1795244784928257084,,inner,1,,,,,,2207079

    │ trace_id                        ┆ span_id          ┆ … ┆ dur   │
    ╞═════════════════════════════════╪══════════════════╪═══╪═══════╡
    │ 7cf3d3b7439cf4c3fac1a479987831… ┆ 78b065c19c3675e0 ┆ … ┆ 10000 │

    leader_device,name,cycle
    npu0pe0-3,Tokenwise(TokenwiseBucket { input_size: 8 }) #0,812000

Source: the SDK's documentation and Python sources (0.5 to 0.10), and what pandas and polars print. All times are ns;
`start` and `end` count from 1970. The tables of the print functions have durations only: they are totals without times.
Missing integers turn a column of pandas into floats, which lose up to 256 ns of a time since 1970.

In a narrow terminal polars breaks cells into several lines: a line in which a cell is empty goes on with the row
before, since only a category or a name can be empty. It shows `…` for rows and columns that it leaves out, and pandas
`...`; pandas breaks wide tables into blocks of columns, whose headings end in a backslash. Both say how many rows and
columns there are when they show less.

The last form is that of RNGD devices (EDF_PROFILER_OUTPUT_PATH): a row for each stage that ran, with cycles of a clock
that the file does not name, and no times.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from traceconv.families.common.text_lines import NO_TIMELINE, fields_of, text_of_line
from traceconv.families.furiosa import EXECUTION, IDS, INDICES, WRAPPED, Span, Spans, Tracks, unwrapped, whole_number
from traceconv.families.importer import Importer, Match, Signature, option
from traceconv.io.shown import Counted
from traceconv.io.source import Head, Source
from traceconv.model.args import as_bytes
from traceconv.model.builder import Builder
from traceconv.model.clocks import NO_TIME, REALTIME
from traceconv.model.diagnostics import HEADINGS, LINES, TABLE_HEADINGS, Code, absent, lost, noted, skipped
from traceconv.model.marks import FormatMarks, TotalsMarks
from traceconv.model.numbers import NS, is_digits, number_of, parse_ns, whole, whole_of
from traceconv.model.track_table import TrackId

CONTINUED_ROWS = Counted("line that goes on with a row", "lines that go on with a row")
SUMMARY_LINES = Counted("line of a summary", "lines of a summary")

BAD_ROW = lost("furiosa-table.bad_row", "a row does not fit the columns of its table (a cut or mixed up line)")
OTHER_TABLE = skipped(
    "furiosa-table.other_table", "lines of other tables than the profiler's were left out", quiet=True
)
OTHER_LINE = skipped(
    "furiosa-table.other_line", "lines outside of the tables are the program's own output and were left out", quiet=True
)
ELIDED_ROWS = absent(
    "furiosa-table.elided_rows",
    "rows were left out when the table was printed, or cut off later (print all of them, or use CSV)",
)
ELIDED_COLUMNS = absent(
    "furiosa-table.elided_columns",
    "columns were left out when the table was printed (print all of them, or use CSV)",
)
FLOAT_TIMES = noted(
    "furiosa-table.float_times",
    "times are floats, as pandas writes columns with gaps: they are off by up to 256 ns",
)
DURATION_DIFFERS = noted(
    "furiosa-table.duration_differs",
    "the duration of a row differs from end - start: the difference is used, the printed duration is in the args",
)
WAIT_DIFFERS = noted(
    "furiosa-table.wait_differs",
    "the wait of a row differs from total - run: the difference is used, the printed wait is in the args",
)

COLUMNS = (
    *("trace_id", "parent_span_id", "span_id", "start", "end", "cat", "name", "thread.id", "dram_base", "pe_index"),
    *("execution_index", "instruction_index", "operator_index", "dur"),
)
TOTAL, RUN, WAIT, AVERAGE, COUNT = "NPU Total", "NPU Run", "NPU IoWait", "average elapsed(ns)", "count"
_OF_THE_NPU = {"pe_index", "execution_index", "instruction_index"}
#: A table with one of these is one of this profiler.
_TELLING = {"trace_id", "thread.id", "pe_index", TOTAL, WAIT, AVERAGE}
_MAY_BE_EMPTY = ("cat", "name", "")  # cells of a box
_ELLIPSES = ("…", "...", "..")
_MISSING = ("nan", "none", "null", "<na>", "")
_FLOAT_NS = 256
_INFERENCES, _SPANS = "Furiosa inferences", "Furiosa spans"
_NOT_SHOWN = "(name not shown)"

_SUMMARY = re.compile(
    r"(?P<what>Inference counts|(?:Min|Max|Mean|Median) latency \(ns\)|"
    r"(?<![\d.])[\d.]++ percentile latency \(ns\))\s*:\s*"
    r"(?P<value>-?\d+(?:\.\d+)?)\s*",
    re.IGNORECASE,
)
#: A document, or lines of them; Kineto begins with a line for the brace alone.
_JSON = re.compile(rb'\[\{|\{\s*"')
_DEVICE_CYCLES = re.compile(rb"leader_device,name,cycle\s")
_SHAPE = re.compile(r"shape: \(([0-9][0-9_,]{0,20}), ([0-9]{1,9})\)\s*")
_PANDAS_SHAPE = re.compile(r"\[([0-9]{1,18}) rows x ([0-9]{1,9}) columns\]\s*")
_ALL_COLUMNS = (*COLUMNS, TOTAL, RUN, WAIT, AVERAGE, COUNT)
_NAMES = "|".join(re.escape(name) for name in (*_ALL_COLUMNS, "average_elapsed (ns)", "..."))
_NAME = re.compile(rf"(?<!\S)(?:{_NAMES})(?!\S)")
_PANDAS = re.compile(rf"\s*(?:{_NAMES})(?:\s+(?:{_NAMES}))*\s*\\?\s*")
_LAST_WORDS = {name.rpartition(" ")[2] for name in (*_ALL_COLUMNS, "(ns)", "...")}


_LETTERS = str.maketrans("", "", " _()")
_KNOWN = {name.translate(_LETTERS).lower(): name for name in _ALL_COLUMNS}


def known_column(name: str) -> str:
    """Return the name of a column as other versions and broken headings spell it; "" for those that were left out."""
    return "" if name in _ELLIPSES else _KNOWN.get(name.translate(_LETTERS).lower(), name)


def is_ours(columns: Collection[str]) -> bool:
    """Return whether a table with these columns is one of this profiler: one of them must tell that."""
    known = set(columns).intersection(_ALL_COLUMNS)
    return len(known) > 1 and bool(known & _TELLING) and all(name in known or not name for name in columns)


def csv_columns(line: str) -> list[str]:
    """Return the columns of a CSV of the data frame; empty if the line is not its heading."""
    columns = [name.strip().strip('"') for name in line.split(",")] if "parent_span_id" in line else []
    return columns if {"parent_span_id", "execution_index", "start"} <= set(columns) else []


def _pandas_columns(line: str) -> list[str]:
    """Return the columns of a heading that pandas prints; only a line that ends like one is looked at closely."""
    is_close = line.rstrip(" \\").rpartition(" ")[2] in _LAST_WORDS and len(line) < 1000
    return [known_column(name[0]) for name in _NAME.finditer(line)] if is_close and _PANDAS.fullmatch(line) else []


def _box_cells(line: str) -> list[str]:
    cells = [cell.strip() for cell in re.split("[│┆]", line.strip())]
    return cells[1:-1] if line.rstrip().endswith("│") else cells[1:]


def box_columns(lines: list[list[str]]) -> list[str]:
    """Return the columns of a box from the lines above its double rule: names, dashes, types, each on several lines."""
    columns = []
    for at in range(max((len(line) for line in lines), default=0)):
        chunks = [line[at] for line in lines if at < len(line)]
        columns.append(known_column("".join(chunks[: chunks.index("---")] if "---" in chunks else chunks)))
    return columns


def describes_tables(lines: list[str]) -> str:
    """Describe the first table of this profiler in the lines; return "" if there is none."""
    heading: list[list[str]] = []
    for line in lines:
        if line.startswith("│"):
            heading.append(_box_cells(line))
        elif line.startswith("╞") and is_ours(box_columns(heading)):
            return f"a box with columns such as {', '.join(name for name in box_columns(heading)[:3] if name)}"
        else:
            heading.clear()
        if csv_columns(line):
            return "CSV with parent_span_id and execution_index"
        if is_ours(_pandas_columns(line)):
            return "columns of the profiler's data frame"
    return ""


def wait_of(total: int | None, run: int | None, printed: int | None) -> tuple[int | None, Code | None]:
    """Return the wait of an NPU in ns, and the problem with the printed number, if any.

    >>> wait_of(119145, 108134, 18446744073709540605)[0]
    11011
    """
    if total is None or run is None:
        return (None, None) if printed is None else (unwrapped(printed), WRAPPED if printed >= 2**63 else None)
    wait = total - run
    if printed is None or printed == wait:
        return wait, None
    return wait, WRAPPED if printed in (wait % 2**64, -wait % 2**64) and printed >= 2**63 else WAIT_DIFFERS


def is_missing(cell: str) -> bool:
    """Return whether a cell is empty, or holds what libraries print for a missing value."""
    return not cell or (cell[0] in "nN< " and cell.strip().lower() in _MISSING)


def _nanoseconds(cell: str) -> int:
    """Return a number of ns. Raises ValueError for other values."""
    text = cell.strip()
    number = whole_of(text)
    return parse_ns(text.encode(), NS) if number is None else number


def _integer(cell: str) -> int | None:
    """Return a number of ns, also if it wrapped around or became a float; None for an empty or other cell."""
    if is_missing(cell):
        return None
    try:
        return _nanoseconds(cell)
    except ValueError:
        number = number_of(cell)
        return None if number is None or abs(number) >= 2**64 else round(number)


class _Rows:
    """Turns rows of tables into spans, or into totals if they have no time."""

    def __init__(self, out: Builder, pid: int | None) -> None:
        self._out = out
        self._pid = pid
        self._tracks = Tracks(out)
        self.spans = Spans(out)
        self.totals: list[tuple[str, int, str, bytes, int]] = []
        #: The trace ids of each table of inferences, and the tables that have one twice: they list all spans.
        self._traces: set[tuple[int, str]] = set()
        self._of_spans: set[int] = set()

    def add(self, cells: dict[str, str], at: int, table: int) -> bool:
        """Add a row, given its cells by column; return whether it could be read."""
        given = {key: cell for key, cell in cells.items() if not is_missing(cell)}
        if "start" not in given:
            return self._total(cells.keys(), given, at, table)
        try:
            start = _nanoseconds(given["start"])
            end = self._end(given, start, at)
        except ValueError:
            return False
        if not is_digits(given["start"].strip()):
            self._out.problem(FLOAT_TIMES, at)
        args = {key: whole_number(given[key]) for key in INDICES if key in given}
        args |= {key: cell for key, cell in given.items() if key not in COLUMNS and key}
        thread = whole_number(given.get("thread.id", ""))
        name = given.get("name", "" if "name" in cells else _NOT_SHOWN)
        ids = (given.get(key, "") for key in IDS)
        span = Span(start, end, name, given.get("cat", ""), thread, args, at, *ids)
        if span.is_npu or args.keys() & _OF_THE_NPU:
            self.spans.add(span, self._tracks.element(None, args.get("pe_index")))
        else:
            self.spans.add(span, self._tracks.thread(self._pid, thread))
        return True

    def _end(self, cells: dict[str, str], start: int, at: int) -> int:
        """Return the end of a span, by its end or its duration. Raises ValueError if it has neither."""
        dur = _integer(cells.get("dur", ""))
        if "end" not in cells:
            if dur is None:
                raise ValueError("neither end nor dur")
            return start + self.signed(dur, at, "dur ")
        end = _nanoseconds(cells["end"])
        if dur is None or dur == end - start:
            return end
        if unwrapped(dur) == end - start:
            self.signed(dur, at, "dur ")
        elif abs(dur - (end - start)) > 2 * _FLOAT_NS or is_digits(cells["start"]):
            self._out.problem(DURATION_DIFFERS, at, f"dur {dur}, end - start {end - start}")
            cells["printed_dur_ns"] = str(dur)
        return end

    def signed(self, value: int, at: int, label: str = "") -> int:
        """Return a duration, whose wrap-around is undone and counted."""
        if unwrapped(value) != value:
            self._out.problem(WRAPPED, at, f"{label}{value}: {unwrapped(value)} ns")
        return unwrapped(value)

    def _total(self, columns: Collection[str], cells: dict[str, str], at: int, table: int) -> bool:
        name = cells.get("name", "")
        if TOTAL in columns or WAIT in columns:
            title, name = "Furiosa NPU executions", EXECUTION
        elif AVERAGE in columns:
            title = "Furiosa NPU operators"
        elif "operator_index" in columns:
            title = "Furiosa CPU operators"
        else:
            title, name = (_SPANS, name) if "name" in columns else (_INFERENCES, "Inference")
        args = self._total_args(cells, at)
        if not args.keys() & {"dur_ns", "npu_total_ns", "npu_iowait_ns", "average_elapsed_ns"}:
            return False
        self.totals.append((title, table, name or "(no name)", as_bytes(args), at))
        if title == _INFERENCES:
            trace = (table, args.get("trace_id", ""))
            if trace in self._traces:
                self._of_spans.add(table)
            self._traces.add(trace)
        return True

    def _total_args(self, cells: dict[str, str], at: int) -> dict[str, Any]:
        args: dict[str, Any] = {key: cells[key] for key in IDS if key in cells}
        for key in ("thread.id", *INDICES, COUNT):
            if key in cells:
                args[key.removesuffix(".id")] = whole_number(cells[key])
        dur = _integer(cells.get("dur", ""))
        if dur is not None:
            args["dur_ns"] = self.signed(dur, at)
        average = number_of(cells.get(AVERAGE, ""))
        if average is not None:
            args["average_elapsed_ns"] = average
        total, run, printed = (_integer(cells.get(key, "")) for key in (TOTAL, RUN, WAIT))
        wait, problem = wait_of(total, run, printed)
        durations = {"npu_total_ns": total, "npu_run_ns": run, "npu_iowait_ns": wait}
        if problem is not None:
            self._out.problem(problem, at, f"{WAIT} {printed}: {wait} ns")
        if problem is WAIT_DIFFERS:
            args["printed_iowait_ns"] = str(printed)
        return args | {key: value for key, value in durations.items() if value is not None}

    def write_totals(self) -> None:
        """Write the rows without times; each table in the log has a track of its own."""
        help = "What the functions of the profiler print: durations and sums, not a timeline."
        tracks: dict[tuple[str, int], TrackId] = {}
        kinds: Counter[str] = Counter()
        for title, table, name, args, at in self.totals:
            if title == _INFERENCES and table in self._of_spans:
                title, name = _SPANS, _NOT_SHOWN
            if (title, table) not in tracks:
                kinds[title] += 1
                shown = f"{title}, table {kinds[title]}" if kinds[title] > 1 else title
                tracks[title, table] = self._out.tracks.totals(shown, description=help)
            self._out.totals(tracks[title, table], name, "", args, at)
            self._out.balance.written += 1


class _Table:
    """A table that is being read. `columns` are "" for those that were left out."""

    def __init__(self, log: _Log, columns: list[str]) -> None:
        self._log, self._out = log, log.out
        self.columns = columns
        self._shape, log.shape = log.shape, None
        log.count += 1
        self._number = log.count
        self._place = f"{log.out.info.name}: table {log.count}"
        self._shown = self._gaps = 0

    def line(self, number: int, line: str) -> bool:
        """Read a line that is no heading; return whether it belongs to the table."""
        raise NotImplementedError

    def close(self) -> None:
        """Count rows and columns that were not printed."""
        if not is_ours(self.columns):
            return
        missing = self._shape[0] - self._shown if self._shape else self._gaps
        if missing > 0:
            known = "" if self._shape else "how many, the text does not say"
            self._out.problem(ELIDED_ROWS, self._place, known, count=missing)
        if "" in self.columns[1:]:
            hidden = self._shape[1] - len(list(filter(None, self.columns))) if self._shape else 1
            self._out.problem(ELIDED_COLUMNS, self._place, count=max(1, hidden))

    def _merged(self, kind: Counted = TABLE_HEADINGS) -> bool:
        self._out.balance.merged[kind] += 1
        return True

    def _row(self, cells: dict[str, str], at: int) -> None:
        self._shown += 1
        cells.pop("", None)
        if not is_ours(cells):
            self._out.skip(OTHER_TABLE, at)
        elif not self._log.rows.add(cells, at, self._number):
            self._out.skip(BAD_ROW, at, " ".join(cells.values())[:60])


class _Box(_Table):
    def __init__(self, log: _Log) -> None:
        super().__init__(log, [])
        self._heading: list[list[str]] = []
        self._pending: list[str] = []  # the last row, which may go on
        self._pending_at = 0

    def line(self, number: int, line: str) -> bool:
        if not line.startswith(("├", "╞", "└", "│")):
            return False
        if line[0] == "│":
            self._cells(number, _box_cells(line))
            return True
        if line[0] == "╞" and not self.columns:
            self.columns = box_columns(self._heading)
            self._out.balance.merged[TABLE_HEADINGS] += len(self._heading)
        elif line[0] == "└":
            self._log.close()
        return self._merged()

    def _cells(self, number: int, cells: list[str]) -> None:
        if not self.columns:
            self._heading.append(cells)
        elif len(cells) != len(self.columns):
            self._shown += 1
            self._out.skip(BAD_ROW, number, f"{len(cells)} cells, expected {len(self.columns)}")
        elif all(cell in _ELLIPSES for cell in cells):
            self._flush()
            self._gaps += self._merged()
        elif self._pending and any(not cells[at] for at, name in enumerate(self.columns) if name not in _MAY_BE_EMPTY):
            self._pending = [before + rest for before, rest in zip(self._pending, cells, strict=True)]
            self._merged(CONTINUED_ROWS)
        else:
            self._flush()
            self._pending, self._pending_at = cells, number

    def _flush(self) -> None:
        """Add the row before, which is complete."""
        if self._pending:
            self._row(dict(zip(self.columns, self._pending, strict=True)), self._pending_at)
        self._pending = []

    def close(self) -> None:
        self._flush()
        if not self.columns and self._heading:
            code = BAD_ROW if is_ours(box_columns(self._heading)) else OTHER_TABLE
            self._out.skip(code, self._place, "a heading without rows", count=len(self._heading))
        super().close()


class _Pandas(_Table):
    """Blocks of columns, one below the other."""

    def __init__(self, log: _Log) -> None:
        super().__init__(log, [])
        self._ends: list[int] = []  # where the names of the current block end, and so do its values
        self._more = self._over = self._in_block = False  # whether another block follows; whether only the shape may
        self._at = 0  # the row of the current block that comes next
        self._read: list[tuple[int, str, dict[str, str]]] = []  # line, index, cells

    @property
    def awaits_block(self) -> bool:
        return self._more and not self._in_block

    def begin_block(self, line: str, columns: list[str]) -> None:
        self.columns += columns
        self._ends = [name.end() for name in _NAME.finditer(line)]
        self._at, self._in_block, self._more = 0, True, line.rstrip().endswith("\\")

    def line(self, number: int, line: str) -> bool:
        """Read a row, the name of the index, the shape, or the end of a block."""
        shape = _PANDAS_SHAPE.fullmatch(line)
        if shape is not None:
            self._shape = whole(shape[1]), whole(shape[2])
        elif line.strip() and not self._over:
            if line.strip() == "name" and not self._at:
                return self._merged()
            return self._in_block and self._values(number, line)
        elif not self._over and (self._more or self._gaps or "" in self.columns):
            self._in_block, self._over = False, not self._more
            return self._merged()
        self._log.close()
        return (shape is not None or not line.strip()) and self._merged()

    def _values(self, number: int, line: str) -> bool:
        if len(line.rstrip()) > self._ends[-1] or len(line.split()) < 2:
            return False
        block = self.columns[-len(self._ends) :]
        is_first = len(block) == len(self.columns)
        if set(line) == {" ", "."}:
            self._gaps += is_first
            return self._merged()
        starts = [0, *self._ends[:-1]]
        cells = [line[start:end].strip() for start, end in zip(starts, self._ends, strict=True)]
        index, _, cells[0] = cells[0].rpartition(" ")
        values = dict(zip(block, cells, strict=True))
        if is_first:
            self._read.append((number, index.strip(), values))
        elif self._at < len(self._read) and self._read[self._at][1] == index.strip():
            self._read[self._at][2].update(values)
            self._merged(CONTINUED_ROWS)
        else:
            return False
        self._at += 1
        return True

    def close(self) -> None:
        """Add the rows, whose blocks are all read."""
        for number, index, cells in self._read:
            if AVERAGE in cells and "name" not in cells:
                cells["name"] = index
            self._row(cells, number)
        super().close()


class _Csv(_Table):
    def line(self, number: int, line: str) -> bool:
        """Read a row. A line with another number of cells is a row that was cut if it begins like one."""
        cells = fields_of(line, ",")
        if len(cells) == len(self.columns):
            if not self._log.rows.add(dict(zip(self.columns, cells, strict=True)), number, self._number):
                self._out.skip(BAD_ROW, number, line[:60])
            return True
        at = self.columns.index("trace_id") if "trace_id" in self.columns else 0
        if at >= len(cells) or re.fullmatch(r"[0-9a-f]{4,}", cells[at].strip()) is None:
            return False
        self._out.skip(BAD_ROW, number, f"{len(cells)} cells, expected {len(self.columns)}")
        return True


class _Log:
    """Reads the lines of a CSV, or of a log with printed tables."""

    def __init__(self, out: Builder, rows: _Rows) -> None:
        self.out, self.rows = out, rows
        self.count = 0
        self.shape: tuple[int, int] | None = None
        self._table: _Table | None = None
        self._summary: dict[str, Any] = {}
        self._summary_at = 0

    def read(self, source: Source) -> None:
        others = 0
        for number, line in source.lines():
            self.out.balance.read += 1
            text = text_of_line(line)
            if self._summary_line(number, text):
                continue
            if self._heading(text):
                self.out.balance.merged[TABLE_HEADINGS] += 1
            elif self._table is None or not self._table.line(number, text):
                others += 1
        self.close()
        self._end_summary()
        if others:
            self.out.skip(OTHER_LINE, count=others)

    def close(self) -> None:
        table, self._table = self._table, None
        if table is not None:
            table.close()

    def _heading(self, line: str) -> bool:
        """Read a heading, a shape or the like; return whether it is such a line."""
        title = line.strip()
        if title == "DataFrame is empty.":
            self.out.note("the profiler printed that its data frame was empty: nothing was recorded")
        if title in ("Inference Results Summary", "DataFrame is empty."):
            return True
        shape = _SHAPE.fullmatch(line)
        if shape is not None:
            self.shape = whole(re.sub("[_,]", "", shape[1])), whole(shape[2])
            return True
        columns = csv_columns(line)
        if columns or line.startswith("┌"):
            self.close()
            self._table = _Csv(self, columns) if columns else _Box(self)
            return True
        columns = _pandas_columns(line)
        if isinstance(self._table, _Pandas) and self._table.awaits_block and columns:
            self._table.begin_block(line, columns)
            return True
        if not is_ours(columns):
            return False
        self.close()
        self._table = _Pandas(self)
        self._table.begin_block(line, columns)
        return True

    def _summary_line(self, number: int, line: str) -> bool:
        """Read a line of print_summary, all of which are one row; return whether it is such a line."""
        match = _SUMMARY.search(line) if " : " in line or "latency" in line.lower() else None
        if match is None or match.end() != len(line):
            return False
        words = match["what"].lower().split()
        key = "inference_count" if words[0] == "inference" else f"{words[0]}_latency_ns"
        if words[1] == "percentile":
            key = f"p{key.replace('.0_', '_')}"
        if key in self._summary:
            self._end_summary()
        if self._summary:
            self.out.balance.merged[SUMMARY_LINES] += 1
        else:
            self._summary_at = number
        value = number_of(match["value"])
        self._summary[key] = self.rows.signed(value, number) if isinstance(value, int) else value
        return True

    def _end_summary(self) -> None:
        if self._summary:
            at, title = self._summary_at, "Inference Results Summary"
            self.rows.totals.append(("Furiosa summary", -at, title, as_bytes(self._summary), at))
            self._summary = {}


def _read_cycles(source: Source, out: Builder) -> None:
    """Read the stages that ran on RNGD devices: rows without times, with the cycles that each took."""
    out.clocks.set_default(NO_TIME)
    out.belongs_to(("furiosa",))
    tracks: dict[str, TrackId] = {}
    for number, line in source.lines():
        out.balance.read += 1
        text = text_of_line(line)
        device, _, rest = text.partition(",")
        name, _, cycles = rest.rpartition(",")  # names have commas, whether or not they are quoted
        count = number_of(cycles)
        if isinstance(count, int):
            if device not in tracks:
                tracks[device] = out.tracks.totals(f"RNGD {device}")
            name = name[1:-1].replace('""', '"') if name[:1] == name[-1:] == '"' else name
            out.totals(tracks[device], name or "[unknown]", "stage", {"cycles": count}, number)
            out.balance.written += 1
        elif _DEVICE_CYCLES.fullmatch(text.encode() + b"\n"):
            out.balance.merged[HEADINGS] += 1
        else:
            out.skip(BAD_ROW, number, text[:60])
    out.note("cycles of RNGD devices: the file names neither when a stage ran nor the frequency of the clock")


@dataclass(frozen=True)
class FuriosaTable(Importer):
    name = "furiosa-table"
    title = "Furiosa profiler tables (data frame as CSV, printed tables, summary)"
    url = "https://furiosa-ai.github.io/docs/latest/en/software/profiler.html"
    versions = "SDK 0.5 to 0.10: CSV, boxes of polars, columns of pandas (from documents)"
    signature = Signature(
        "leader_device,name,cycle | inference counts | parent_span_id | ╞ | trace_id | thread.id | pe_index | "
        "npu total | npu iowait | average elapsed(ns) | average_elapsed (ns)"
    )
    clock = REALTIME
    record = "with profile(format=RecordFormat.PandasDataFrame) as p: ...; p.get_pandas_dataframe().to_csv(FILE)"
    skips = (OTHER_TABLE, OTHER_LINE)
    pid: int | None = option(None, "the number that the process had, which the data frame does not say.")

    line_up = (
        "start and end count from 1970: nothing is needed. Merged with the JSON of the run, tables without times are "
        "shown under its process."
    )
    becomes = (
        ("row with a start", "slice on a thread of the host or on a processing element of the NPU"),
        ("parent on another track, one host span at the top of the trace", "flow"),
        ("row without a start, summary", "instant without a time, with its durations in ns as args"),
        ("NPU Total, NPU Run, NPU IoWait", "args; the wait is total - run, whatever was printed"),
        ("stage of an RNGD device (leader_device,name,cycle)", "instant without a time, with its cycles as arg"),
    )
    lost = (
        "Not read, since none was seen: Parquet, names with line breaks in CSV, tables with a logger's prefix.",
        "Rows, columns and ends of ids that a printed table omits are counted.",
        "Tables of the print functions have no times.",
        "The data frame has no pid and no name of the NPU.",
        "Stages of an RNGD device have cycles of an unknown frequency, and no starts.",
    )
    unrecorded = "no NPU was at hand, and no public file of one was found."
    marks = FormatMarks(
        totals=TotalsMarks(
            calls=("count", "inference_count"),
            mean=("average_elapsed_ns", "mean_latency_ns"),
            least=("min_latency_ns",),
            most=("max_latency_ns",),
            single=("dur_ns", "npu_total_ns"),
        )
    )

    def sniff(self, head: Head) -> Match:
        """Return YES for headings that only this profiler has."""
        if _DEVICE_CYCLES.match(head.text):
            return Match.yes("cycles of an RNGD device")
        text = head.text
        if _JSON.match(text) or (text[:1] == b"[" and b'"ph"' in text):
            return Match.no("JSON")
        lines = [text_of_line(line) for line in head.data.splitlines()]
        if described := describes_tables(lines):
            return Match.yes(described)
        summary = " ".join(line for line in lines if _SUMMARY.search(line))
        if "Inference counts" in summary and "percentile" in summary:
            return Match.yes("the summary of the profiler")
        return Match.no("no table with trace_id, thread.id, NPU Total or the like, and no summary of inferences")

    def read(self, source: Source, out: Builder) -> None:
        """Read all tables. Raises MalformedInput when there is none."""
        out.counts(LINES)
        if _DEVICE_CYCLES.match(source.head().text):
            _read_cycles(source, out)
            return
        rows = _Rows(out, self.pid)
        _Log(out, rows).read(source)
        rows.spans.finish()
        if not rows.spans.count and not rows.totals:
            raise source.malformed(
                "no row of a table of the Furiosa profiler found, expected columns such as trace_id, span_id, dur",
                hint=f"record them: {self.record}",
            )
        if not rows.spans.count:
            out.belongs_to(("furiosa",))
            out.clocks.set_default(NO_TIME)
            out.note(NO_TIMELINE)
        elif out.info.diagnostics.count(FLOAT_TIMES):
            out.clocks.set_default(replace(REALTIME, resolution_ns=_FLOAT_NS))
        rows.write_totals()

"""Tables of the Furiosa profiler: the data frame as CSV or Parquet, and what its print functions print.

    trace_id,parent_span_id,span_id,start,end,cat,name,thread.id,dram_base,pe_index,execution_index,...,dur
    c772,0000000000000000,5a692d6d2100cc4d,1795244784926050005,1795244784928257084,,inner,1,,,,,,2207079

    ┌──────────┬──────────────────┬──────────┬─────────────────┬───────────┬─────────┬──────────────────────┐
    │ trace_id ┆ span_id          ┆ pe_index ┆ execution_index ┆ NPU Total ┆ NPU Run ┆ NPU IoWait           │
    ╞══════════╪══════════════════╪══════════╪═════════════════╪═══════════╪═════════╪══════════════════════╡
    │ 8f6f     ┆ 3e1e4a76523cbf89 ┆ 0        ┆ 0               ┆ 119145    ┆ 108134  ┆ 18446744073709540605 │

    Inference counts               : 4
    90.0 percentile Latency (ns)   : 2752525

    leader_device,name,cycle
    npu0pe0-3,Tokenwise(TokenwiseBucket { input_size: 8 }) #0,812000

Source: the SDK's documentation and Python sources (0.5 to 0.10). All times are ns; `start` and `end` count from
1970, so rows that have them are drawn on the timeline. The tables of print_inferences, print_npu_executions,
print_npu_operators, print_external_operators and print_summary have durations only: they are totals without times.
Missing integers turn a column of pandas into floats, which lose up to 256 ns of a time since 1970.

The last form is that of RNGD devices (EDF_PROFILER_OUTPUT_PATH): a row for each stage that ran, with cycles of a clock
that the file does not name. It has no times, and cycles stay cycles.

`_tables` reads the printed tables, `_spans` writes the spans.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, ClassVar, NamedTuple

import numpy as np

from traceconv.errors import InputError
from traceconv.families.common.idle_lines import DIGIT, SPACE, IdleLines, holds, lines_but
from traceconv.families.common.row_store import RowStore
from traceconv.families.common.text_tables import NO_TIMELINE, text_of_line
from traceconv.families.furiosa._spans import (
    EXECUTION,
    INDICES,
    WRAPPED,
    Span,
    Spans,
    Tracks,
    is_missing,
    unwrapped,
    whole_number,
)
from traceconv.families.furiosa._tables import (
    AVERAGE,
    BAD_ROW,
    COLUMNS,
    COUNT,
    OTHER_TABLE,
    RUN,
    TOTAL,
    WAIT,
    TextTables,
    describes_tables,
)
from traceconv.families.importer import Match, option
from traceconv.io.source import Head, Source
from traceconv.model.args import as_bytes
from traceconv.model.builder import Builder
from traceconv.model.clocks import NO_TIME, REALTIME, ClockDomain
from traceconv.model.counted import HEADINGS, LINES, ROWS, SUMMARY_LINES, TABLE_HEADINGS
from traceconv.model.diagnostics import Code, noted, skipped
from traceconv.model.marks import FormatMarks, TotalsMarks
from traceconv.model.numbers import is_digits, number_of, whole_of
from traceconv.model.times import NS, parse_ns
from traceconv.model.trace import TrackId

OTHER_LINE = skipped(
    "furiosa-table.other_line", "lines outside of the tables are the program's own output and were left out", quiet=True
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

_HOST_CLOCK = REALTIME
_FLOAT_NS = 256
#: Inference counts               : 4        99.9 percentile Latency (ns)   : 3024561
_SUMMARY = re.compile(
    r"(?P<what>Inference counts|(?:Min|Max|Mean|Median) latency \(ns\)|"
    r"(?<![\d.])[\d.]++ percentile latency \(ns\))\s*:\s*"
    r"(?P<value>-?\d+(?:\.\d+)?)\s*",
    re.IGNORECASE,
)
_SUMMARY_TITLE = "Inference Results Summary"
_EMPTY_FRAME = "DataFrame is empty."
_OF_THE_NPU = {"pe_index", "execution_index", "instruction_index"}
_DEVICE_CYCLES = re.compile(rb"leader_device,name,cycle\s")
#: Rows of them that are cut, or other lines.
_NO_CYCLES = lines_but(holds(b",") + holds(DIGIT), b"leader", or_blank=True)
#: What lines of a summary hold.
_KNOWN = holds(b" : ") + b"|" + holds(b"(?i:latency)") + b"|" + SPACE + b"*(?:Inference Results|DataFrame)"
_PARQUET = b"PAR1"
_BATCH = 1 << 16
_HELP = "What the functions of the profiler print: durations and sums, not a timeline."
_EXECUTIONS, _OPERATORS = "Furiosa NPU executions", "Furiosa NPU operators"
_EXTERNAL, _INFERENCES, _SPANS = "Furiosa CPU operators", "Furiosa inferences", "Furiosa spans"
#: The name of spans in a table without names.
_NOT_SHOWN = "(name not shown)"


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


def _nanoseconds(value: object) -> int:
    """Return a number of ns from a cell. Raises ValueError for other values."""
    text = str(value).strip()
    number = whole_of(text)
    return parse_ns(text.encode(), NS) if number is None else number


def _integer(value: object) -> int | None:
    """Return a number of ns, also if it wrapped around or became a float; None for an empty or other cell."""
    if is_missing(value):
        return None
    try:
        return _nanoseconds(value)
    except ValueError:
        number = number_of(str(value))
        return None if number is None or abs(number) >= 2**64 else round(number)


class _Total(NamedTuple):
    """A row without a time, of a numbered table with a title; `args` are JSON, `trace` is a hash of the trace id."""

    title: str
    table: int
    name: str
    args: bytes
    at: int
    trace: int


class _Rows:
    """Turns rows of tables into spans, or into totals if they have no time."""

    def __init__(self, out: Builder, pid: int | None) -> None:
        self._out = out
        self._pid = pid
        self._lines = Tracks(out)
        self.spans = Spans(out)
        self._totals = RowStore(out, _Total)
        self.total_count = 0
        self.has_floats = False
        self._has_inferences = False

    def add(self, cells: dict[str, Any], at: int, table: int) -> bool:
        """Add a row, given its cells by column; return whether it could be read."""
        if is_missing(cells.get("start")):
            return self._total(cells, at, table)
        try:
            start = _nanoseconds(cells["start"])
            end = self._end(cells, start, at)
        except ValueError:
            return False
        if not is_digits(str(cells["start"]).strip()):
            self.has_floats = True
            self._out.problem(FLOAT_TIMES, at)
        self._span(cells, start, end, at)
        return True

    # -- spans ------------------------------------------------------------------------------------------------

    def _end(self, cells: dict[str, Any], start: int, at: int) -> int:
        """Return the end of a span, by its end or its duration. Raises ValueError if it has neither."""
        dur = _integer(cells.get("dur"))
        if is_missing(cells.get("end")):
            if dur is None:
                raise ValueError("neither end nor dur")
            if unwrapped(dur) != dur:
                self._out.problem(WRAPPED, at, f"dur {dur}: {unwrapped(dur)} ns")
            return start + unwrapped(dur)
        end = _nanoseconds(cells["end"])
        if dur is None or dur == end - start:
            return end
        if dur >= 2**63 and unwrapped(dur) == end - start:
            self._out.problem(WRAPPED, at, f"dur {dur}: {unwrapped(dur)} ns")
        elif abs(dur - (end - start)) > 2 * _FLOAT_NS or is_digits(str(cells["start"])):
            self._out.problem(DURATION_DIFFERS, at, f"dur {dur}, end - start {end - start}")
            cells["printed_dur_ns"] = str(dur)
        return end

    def _span(self, cells: dict[str, Any], start: int, end: int, at: int) -> None:
        texts = {key: "" if is_missing(cells.get(key)) else str(cells[key]) for key in ("cat", "name")}
        ids = [
            "" if is_missing(cells.get(key)) else str(cells[key]) for key in ("trace_id", "span_id", "parent_span_id")
        ]
        args = {key: whole_number(cells[key]) for key in INDICES if not is_missing(cells.get(key))}
        args |= {key: cells[key] for key in cells if key not in COLUMNS and key and not is_missing(cells[key])}
        thread = whole_number(cells.get("thread.id", ""))
        name = texts["name"] if "name" in cells else _NOT_SHOWN
        span = Span(start, end, name, texts["cat"], thread, ids[0], ids[1], ids[2], args, at)
        on_npu = span.is_npu or bool(args.keys() & _OF_THE_NPU)
        element = args.get("pe_index")
        self.spans.add(span, self._lines.element(None, element) if on_npu else self._lines.thread(self._pid, thread))

    # -- totals -----------------------------------------------------------------------------------------------

    def _total(self, cells: dict[str, Any], at: int, table: int) -> bool:
        named = "" if is_missing(cells.get("name")) else str(cells["name"])
        if TOTAL in cells or WAIT in cells:
            title, name = _EXECUTIONS, EXECUTION
        elif AVERAGE in cells:
            title, name = _OPERATORS, named
        elif "operator_index" in cells:
            title, name = _EXTERNAL, named
        else:
            title, name = (_SPANS, named) if "name" in cells else (_INFERENCES, "Inference")
        args = self._total_args(cells, at)
        if not args.keys() & {"dur_ns", "npu_total_ns", "npu_iowait_ns", "average_elapsed_ns"}:
            return False
        self.totals_row(title, table, name or "(no name)", args, at)
        self._has_inferences |= title == _INFERENCES
        return True

    def _total_args(self, cells: dict[str, Any], at: int) -> dict[str, Any]:
        args: dict[str, Any] = {}
        for key in ("trace_id", "span_id", "parent_span_id"):
            if not is_missing(cells.get(key)):
                args[key] = str(cells[key])
        for key in ("thread.id", *INDICES, COUNT):
            if not is_missing(cells.get(key)):
                args[key.replace("thread.id", "thread")] = whole_number(cells[key])
        dur = _integer(cells.get("dur"))
        if dur is not None:
            args["dur_ns"] = self.signed(dur, at)
        average = number_of(str(cells.get(AVERAGE, "")))
        if average is not None:
            args["average_elapsed_ns"] = average
        total, run, printed = (_integer(cells.get(key)) for key in (TOTAL, RUN, WAIT))
        wait, problem = wait_of(total, run, printed)
        durations = {"npu_total_ns": total, "npu_run_ns": run, "npu_iowait_ns": wait}
        if problem is not None:
            self._out.problem(problem, at, f"{WAIT} {printed}: {wait} ns")
        if problem is WAIT_DIFFERS:
            args["printed_iowait_ns"] = str(printed)
        return args | {key: value for key, value in durations.items() if value is not None}

    def signed(self, value: int, at: int) -> int:
        """Return a duration, whose wrap-around is undone and counted."""
        if unwrapped(value) != value:
            self._out.problem(WRAPPED, at, f"{value}: {unwrapped(value)} ns")
        return unwrapped(value)

    def totals_row(self, title: str, table: int, name: str, args: dict[str, Any], at: int) -> None:
        """Add a row of a table of that title."""
        trace = _hash(args.get("trace_id", "")) if title == _INFERENCES else 0
        self.total_count = 1 + self._totals.add(_Total(title, table, name, as_bytes(args), at, trace))

    def write_totals(self) -> None:
        """Write the rows without times; each table in the log has a track of its own."""
        tracks: dict[tuple[str, int], TrackId] = {}
        kinds: Counter[str] = Counter()
        self._totals.close()
        of_spans = self._tables_of_spans() if self._has_inferences else set()
        for title, table, name, args, at, _ in self._totals.rows(range(self.total_count)):
            if title == _INFERENCES and table in of_spans:
                title, name = _SPANS, _NOT_SHOWN
            if (title, table) not in tracks:
                kinds[title] += 1
                shown = f"{title}, table {kinds[title]}" if kinds[title] > 1 else title
                tracks[title, table] = self._out.tracks.totals(shown, description=_HELP)
            self._out.totals(tracks[title, table], name, "", args, at)
            self._out.balance.written += 1

    def _tables_of_spans(self) -> set[int]:
        """Return the tables without names that list all spans: in one of inferences, each trace id has one row."""
        rows = self._totals.rows(range(self.total_count))
        pairs = ((row.table, row.trace) for row in rows if row.title == _INFERENCES)
        found, counts = np.unique(np.fromiter(pairs, [("table", "i8"), ("trace", "i8")]), return_counts=True)
        return set(found["table"][counts > 1].tolist())


def _hash(text: str) -> int:
    digest = blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


class _Log:
    """Reads a CSV, or a log with printed tables."""

    def __init__(self, out: Builder, rows: _Rows) -> None:
        self._out = out
        self._rows = rows
        self._tables = TextTables(out, self._row)
        self._summary: dict[str, Any] = {}
        self._summary_at = 0
        self._summaries = 0

    def read(self, source: Source) -> None:
        lines = IdleLines(self._out)
        for number, line in lines.read(source):
            text = text_of_line(line)
            if self._summary_line(number, text):
                continue
            if self._tables.line(number, text):
                continue
            if self._tables.changed:
                lines.others += 1
            else:
                known, or_blank = self._tables.known(), not self._tables.ends_blank
                lines.other(lines_but(_KNOWN, *known, or_blank=or_blank) if known else b"")
        self._tables.end()
        self._end_summary()
        lines.tell_others(OTHER_LINE)

    def _row(self, cells: dict[str, str], at: int, table: int) -> bool:
        return self._rows.add(cells, at, table)

    def _summary_line(self, number: int, line: str) -> bool:
        """Read a line of print_summary, all of which are one row; return whether it is such a line."""
        if line.strip() == _SUMMARY_TITLE or line.strip() == _EMPTY_FRAME:
            if line.strip() == _EMPTY_FRAME:
                self._out.note("the profiler printed that its data frame was empty: nothing was recorded")
            self._out.balance.merged[TABLE_HEADINGS] += 1
            return True
        match = _SUMMARY.search(line) if " : " in line or "latency" in line.lower() else None
        if match is None or match.end() != len(line):
            return False
        key = _summary_key(match["what"])
        if key in self._summary:
            self._end_summary()
        if self._summary:
            self._out.balance.merged[SUMMARY_LINES] += 1
        else:
            self._summary_at = number
        value = number_of(match["value"])
        self._summary[key] = self._rows.signed(value, number) if isinstance(value, int) else value
        return True

    def _end_summary(self) -> None:
        if self._summary:
            self._summaries += 1
            self._rows.totals_row("Furiosa summary", -self._summaries, _SUMMARY_TITLE, self._summary, self._summary_at)
            self._summary = {}


def _summary_key(what: str) -> str:
    """Return the key of a line of the summary: inference_count, mean_latency_ns, p99.9_latency_ns."""
    words = what.lower().split()
    if words[0] == "inference":
        return "inference_count"
    return f"p{words[0].removesuffix('.0')}_latency_ns" if words[1] == "percentile" else f"{words[0]}_latency_ns"


def _read_parquet(source: Source, out: Builder, rows: _Rows) -> None:
    """Read the data frame of a Parquet file. Raises InputError without pyarrow, MalformedInput for another table."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise InputError(
            "a Parquet file, but pyarrow is not installed",
            hint="pip install 'traceconv[parquet]', or save the data frame with to_csv",
            at=source.display,
        ) from None
    with source.open() as stream:
        data = pyarrow.BufferReader(stream.read())
    try:
        file = parquet.ParquetFile(data)
        known = [name for name in file.schema_arrow.names if name in COLUMNS]
        if not {"start", "name"} <= set(known) or not {"end", "dur"} & set(known):
            raise source.malformed(
                f"a Parquet file with columns {', '.join(file.schema_arrow.names[:8])}, expected start, end and name",
                hint="save the data frame of the profiler: get_pandas_dataframe().to_parquet(FILE)",
            )
        for row in _parquet_rows(file, known, pyarrow):
            out.balance.read += 1
            if not rows.add(row, out.balance.read, 1):
                out.skip(BAD_ROW, out.balance.read, f"start {row['start']}, name {row['name']}")
    except (pyarrow.ArrowException, OSError) as error:
        raise source.malformed(f"a damaged Parquet file: {error}", hint="write it again") from None


def _parquet_rows(file: Any, columns: list[str], pyarrow: Any) -> Iterator[dict[str, Any]]:
    for batch in file.iter_batches(batch_size=_BATCH, columns=columns):
        values = {}
        for name in columns:
            column = batch.column(name)
            if pyarrow.types.is_timestamp(column.type):
                column = column.cast(pyarrow.timestamp("ns")).cast(pyarrow.int64())
            values[name] = column.to_pylist()
        for cells in zip(*values.values(), strict=True):
            yield dict(zip(columns, cells, strict=True))


def _read_cycles(source: Source, out: Builder) -> None:
    """Read the stages that ran on RNGD devices: rows without times, with the cycles that each took."""
    out.clocks.set_default(NO_TIME)
    out.belongs_to(("furiosa",))
    out.balance.unit, out.info.unit = LINES, "line"
    tracks: dict[str, TrackId] = {}
    lines = IdleLines(out)
    for number, line in lines.read(source):
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
            lines.skip(BAD_ROW, number, text[:60], _NO_CYCLES)
    out.note("cycles of RNGD devices: the file names neither when a stage ran nor the frequency of the clock")


@dataclass(frozen=True)
class FuriosaTable:
    """Importer of the tables of the Furiosa profiler."""

    pid: int | None = option(None, "the number that the process had, which the data frame does not say.")

    name: ClassVar[str] = "furiosa-table"
    title: ClassVar[str] = "Furiosa profiler tables (data frame as CSV or Parquet, printed tables, summary)"
    url: ClassVar[str] = "https://furiosa-ai.github.io/docs/latest/en/software/profiler.html"
    versions: ClassVar[str] = "SDK 0.5 to 0.10; CSV, Parquet (traceconv[parquet]), boxes of polars, columns of pandas"
    clock: ClassVar[ClockDomain] = _HOST_CLOCK
    marks: ClassVar[FormatMarks] = FormatMarks(
        totals=TotalsMarks(
            calls=("count", "inference_count"),
            mean=("average_elapsed_ns", "mean_latency_ns"),
            least=("min_latency_ns",),
            most=("max_latency_ns",),
            single=("dur_ns", "npu_total_ns"),
        )
    )
    record: ClassVar[str] = (
        "with profile(format=RecordFormat.PandasDataFrame) as p: ...; p.get_pandas_dataframe().to_csv(FILE)"
    )
    becomes: ClassVar[tuple[tuple[str, str], ...]] = (
        ("row with a start", "slice on a thread of the host or on a processing element of the NPU"),
        ("parent on another track, one host span at the top of the trace", "flow"),
        ("row without a start, summary", "instant without a time, with its durations in ns as args"),
        ("NPU Total, NPU Run, NPU IoWait", "args; the wait is total - run, whatever was printed"),
        ("stage of an RNGD device (leader_device,name,cycle)", "instant without a time, with its cycles as arg"),
    )
    skips = (OTHER_TABLE, OTHER_LINE)
    lost: ClassVar[tuple[str, ...]] = (
        "Rows, columns and ends of ids that a printed table omits are counted, but cannot be recovered.",
        "Tables of the print functions have no times: they are summaries, not timelines.",
        "The data frame has no pid and no name of the NPU.",
        "The file of an RNGD device counts cycles of an unknown frequency. It is not known when a stage ran.",
    )
    line_up: ClassVar[str] = (
        "start and end count from 1970: nothing is needed. Merged with the profiler's JSON of the same run, "
        "tables without times are shown under its process."
    )
    unrecorded = (
        "no NPU was at hand, and no public file of one was found. "
        "Goldens are made by hand after the sources in docs/formats.md."
    )
    checked: ClassVar[tuple[tuple[str, str, str], ...]] = (
        (
            "SDK 0.5 to 0.10 (Warboy)",
            "profiler.rst and profiler.py of furiosa-ai/furiosa-sdk; printed with pandas and polars",
            "columns, units, printing, the subtraction that wraps; no file of an NPU could be found",
        ),
        (
            "runtime of 2026 (RNGD)",
            "a measurement report in a public repository (89,639 rows described, three shown)",
            "columns, names of devices and stages; how names with commas are quoted is not known: both are read",
        ),
    )

    def sniff(self, head: Head) -> Match:
        """Return YES for headings that only this profiler has."""
        if head.data[:4] == _PARQUET:
            if head.complete and (b"parent_span_id" not in head.data or b"thread.id" not in head.data):
                return Match.no("a Parquet file without the columns of the profiler")
            return Match.maybe("a Parquet file; what is in it is known only when it is read")
        if _DEVICE_CYCLES.match(head.text):
            return Match.yes("cycles of an RNGD device")
        text = head.text
        if text[:2] in (b"[{", b'{"') or (text[:1] == b"[" and b'"ph"' in text):
            return Match.no("JSON")
        lines = [text_of_line(line) for line in head.data.splitlines()]
        described = describes_tables(lines)
        if described:
            return Match.yes(described)
        counts = any("Inference counts" in line and _SUMMARY.search(line) for line in lines)
        if counts and any("percentile" in line and _SUMMARY.search(line) for line in lines):
            return Match.yes("the summary of the profiler")
        return Match.no("no table with trace_id, thread.id, NPU Total or the like, and no summary of inferences")

    def read(self, source: Source, out: Builder) -> None:
        """Read all tables. Raises MalformedInput when there is none."""
        rows = _Rows(out, self.pid)
        head = source.head()
        if _DEVICE_CYCLES.match(head.text):
            _read_cycles(source, out)
            return
        if head.data[:4] == _PARQUET:
            out.balance.unit, out.info.unit = ROWS, "row"
            _read_parquet(source, out, rows)
        else:
            out.balance.unit, out.info.unit = LINES, "line"
            _Log(out, rows).read(source)
        rows.spans.finish()
        if not len(rows.spans) and not rows.total_count:
            raise source.malformed(
                "no row of a table of the Furiosa profiler found, expected columns such as trace_id, span_id, dur",
                hint=f"record them: {self.record}",
            )
        _set_clock(out, rows)
        rows.write_totals()


def _set_clock(out: Builder, rows: _Rows) -> None:
    if not len(rows.spans):
        out.belongs_to(("furiosa",))
        out.clocks.set_default(NO_TIME)
        out.note(NO_TIMELINE)
    elif rows.has_floats:
        out.clocks.set_default(replace(_HOST_CLOCK, resolution_ns=_FLOAT_NS))

"""The table that the TVM debugger prints, between other output of the program: mean time of each node of the graph.

    Node Name    Ops          Time(us)  Time(%)  Shape               Inputs  Outputs  Measurements(us)
    ---------    ---          --------  -------  -----               ------  -------  ----------------
    fused_conv   fused_conv   36.672    25.577   (1, 1, 32, 32, 16)  3       1        [37.216, 38.212, 34.588]
    Total_time   -            143.376   -        -                   -       -        -

0.5 has the columns Start Time and End Time before Shape (local time of day, whole microseconds, without a fraction when
that is 0) and prints rows in order of execution. Later there are only means, rows are sorted by time and a total row
follows; since 0.9 the single measurements are printed, too. The debugger runs each node alone, often several times: no
later table says when a node ran, and the sum is not what `run()` takes.

A node with several outputs has a row for each of them, with the same time. Names of nodes are not unique. In 0.5 the
column Shape is of another node. When `run()` is called again there, the table repeats the rows of the first run, with
percentages of the sum over all runs.

On standard error stand the single measurements, in order of execution:

    [07:21:54] .../graph_executor_debug.cc:95: Op #0 fused_conv:
    [07:21:54] .../graph_executor_debug.cc:98: Iteration: 0: 36.0865 us/iter

Source: python/tvm/contrib/debugger/debug_result.py of tags v0.5 to v0.19 and from recordings; described at
https://tvm.apache.org/docs/v0.16.0/arch/debugger.html.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from msgspec import Struct

from traceconv.errors import UsageError
from traceconv.families.common.local_time import date_option, local_ns, local_time, zone_of, zone_option
from traceconv.families.common.row_store import RowStore
from traceconv.families.common.text_lines import TextLines
from traceconv.families.importer import Match, option
from traceconv.families.tvm import _dump as dumps
from traceconv.families.tvm import _report as reports
from traceconv.families.tvm import _table as tables
from traceconv.families.tvm import _text as text
from traceconv.families.tvm._dump import Dump
from traceconv.families.tvm._table import Row, Table
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME, ClockDomain, ClockSnapshot, LocalForm, Provenance, Run, Zero
from traceconv.model.counted import LINES, LINES_OUTSIDE, MEASUREMENT_LINES, REPEATED_ROWS
from traceconv.model.diagnostics import noted
from traceconv.model.marks import FormatMarks, SeveralMarks
from traceconv.model.times import LIMIT_NS, format_us
from traceconv.model.trace import I64, NO_TRACK, ClockId, Layer, SliceId, TrackId

TIME_OF_DAY = ClockDomain(
    "local time of day, without a date", Zero.UNKNOWN, Run.WALL, 1000, local=LocalForm.TIME_OF_DAY
)
NO_CLOCK = ClockDomain("order of TVM nodes", Zero.UNKNOWN, Run.NONE)

REPEATED_TABLE = noted(
    "tvm.repeated_table",
    "TVM 0.5 prints the rows of the first run again when run() is called again: drawn once; Time(%) of "
    "the repeated table, a share of all runs, is in the arg percent_by_table",
)
CLOCK_STEP = noted("tvm.clock_step", "a Start Time is before that of the row above: the clock was set back")
OTHER_SHAPE = noted(
    "tvm.other_shape",
    "the column Shape differs from the graph (TVM before 0.12 takes it from another node): the args hold "
    "the shape of the graph, and that of the table as table_shape",
)

_DAY_NS = 24 * 3600 * 10**9
_HALF_DAY_NS = _DAY_NS // 2
#: The total and the rows are rounded to 3 decimals, the rows of some versions to 2.
_ROUNDING_NS = 6
_MEANS_HELP = (
    "Each slice is as long as the mean time of its node, which the debugger measured by running the node alone. "
    "Positions are synthetic: one after the other, in the order of "
)
_CLOCK_HELP = (
    "From Start Time to End Time of each node, taken around its call from Python: a little longer than Time(us), which "
    "is in the args."
)


class _Drawing(Struct):
    """The state of drawing a table.

    Attributes:
        order: the rows in the order in which they are drawn; None for that of the table.
        ordered_by: a description of that order.
        run: the measurement lines of the same run, if the log has them, and the place there of each row.
    """

    table: Table
    order: I64 | None
    ordered_by: str
    dump: Dump | None
    run: tuple[Table, I64] | None

    def rows(self) -> Iterator[tuple[int, Row]]:
        """Yield the rows in order, each with its index, and with the measurements of the run if it has none."""
        indexes: Iterable[int] = range(len(self.table)) if self.order is None else map(int, self.order)
        rows = self.table.rows(self.order)
        if self.run is None:
            yield from zip(indexes, rows, strict=True)
            return
        run, places = self.run
        others = run.rows(places if self.order is None else places[self.order])
        for index, row, other in zip(indexes, rows, others, strict=True):
            row.measured = row.measured or other.measured
            yield index, row

    @property
    def device(self) -> str:
        """Where the nodes ran, as far as the name of the dump folder tells."""
        return self.dump.device if self.dump else ""


class _Writer:
    """Draws the tables of one log."""

    def __init__(self, source: Source, out: Builder, dump: str) -> None:
        self._source = source
        self._out = out
        self._dump = dump
        self._dumps: dict[tuple[dumps.Wanted, ...], Dump | None] = {}
        self._has_clock = False
        self._roots: list[TrackId] = []

    def draw(self, table: Table, run: tuple[Table, I64] | None) -> None:
        """Draw a table, with the measurement lines of the same run if there are any."""
        if run is not None:
            self._out.balance.merged[MEASUREMENT_LINES] += len(run[0])
        if table.is_log:
            table.sum_ns = sum(row.dur or 0 for row in table.rows())
        dump = self._find_dump(table)
        drawing = self._arranged(table, run, dump)
        root = self._root(table)
        self._roots.append(root)
        rows = self._clock_rows(drawing, root) if table.has_clock else self._mean_rows(drawing, root)
        if dump is not None:
            dump.draw_flows(self._out, {dump.nodes[index].index: row for index, row in rows.items()})
        self._check_total(table)

    def finish(self) -> None:
        """Give each run a number if there are several."""
        if len(self._roots) > 1:
            for number, root in enumerate(self._roots, 1):
                self._out.tracks[root].name += f" run {number}"

    def _find_dump(self, table: Table) -> Dump | None:
        """Return the dump folder that fits the rows; looked for once for all runs of a graph."""
        if not len(table) or not dumps.graph_files(self._source, self._dump):
            return None
        trusted = not table.has_clock  # the shapes of 0.5 are of other nodes
        wanted = tuple(
            dumps.Wanted(row.name, row.op, row.shapes[0] if row.shapes and trusted else "") for row in table.rows()
        )
        if wanted not in self._dumps:
            self._dumps[wanted] = dumps.find_dump(self._source, self._out, self._dump, wanted)
        return self._dumps[wanted]

    def _arranged(self, table: Table, run: tuple[Table, I64] | None, dump: Dump | None) -> _Drawing:
        order: I64 | None = None
        if table.has_clock:
            by = "their times"
        elif dump is not None:
            order, by = np.argsort([node.index for node in dump.nodes], kind="stable"), "the graph"
        elif run is not None:
            order, by = np.argsort(run[1], kind="stable"), "the measurement lines (order of execution)"
        elif table.is_sorted:
            by = "the table, which is sorted by time"
        else:
            by = "the lines (order of execution)"
        return _Drawing(table, order, by, dump, run)

    # -- tracks -----------------------------------------------------------------------------------------------

    def _root(self, table: Table) -> TrackId:
        clock = self._clock_id((TIME_OF_DAY if table.has_clock else NO_CLOCK).owned_by(self._out.info.name))
        total = table.sum_ns
        mean = "" if table.has_clock else "mean "
        description = f"{len(table)} nodes, their {mean}times add up to {format_us(total)} us"
        if table.prefix:
            description += f"; lines with prefix {table.prefix.decode('utf-8', 'replace')}"
        return self._out.tracks.add("TVM debugger", NO_TRACK, description=description, clock=clock)

    def _clock_id(self, clock: ClockDomain) -> ClockId:
        if not self._has_clock:
            self._out.clocks.set_default(clock)
            self._has_clock = True
        return self._out.clocks.add(clock)

    def _track(self, name: str, root: TrackId, description: str) -> TrackId:
        return self._out.tracks.add(name, root, description=description, clock=self._out.tracks[root].clock)

    # -- rows -------------------------------------------------------------------------------------------------

    def _mean_rows(self, drawing: _Drawing, root: TrackId) -> dict[int, SliceId]:
        """Draw slices one after the other; with a dump, return them by index of their row."""
        track = self._track(f"{drawing.device or 'nodes'} (synthetic)", root, _MEANS_HELP + drawing.ordered_by)
        slices = {}
        ts = 0
        for index, row in drawing.rows():
            dur = row.dur
            args = self._args(row, drawing, index)
            self._out.balance.written += 1
            if dur is None or ts + dur > LIMIT_NS:
                self._bad_duration(track, ts, row, args)
                continue
            kept = self._out.slice(track, ts, dur, row.name, "node", args, row.at)
            ts += dur
            if drawing.dump is not None:
                slices[index] = kept
        return slices

    def _clock_rows(self, drawing: _Drawing, root: TrackId) -> dict[int, SliceId]:
        """Draw slices where the table says; with a dump, return them by index of their row.

        A step back of more than half a day is midnight.
        """
        track = self._track(drawing.device or "nodes", root, _CLOCK_HELP)
        slices = {}
        midnight, last = 0, None
        for index, row in drawing.rows():
            assert row.times is not None  # the table has the columns
            start, end = row.times
            if last is not None and last - start > _HALF_DAY_NS:
                midnight += _DAY_NS
            elif last is not None and start < last:
                self._out.problem(CLOCK_STEP, row.at, f"{format_us(last - start)} us back")
            last = start
            dur = end - start + (_DAY_NS if start - end > _HALF_DAY_NS else 0)
            args = self._args(row, drawing, index)
            self._out.balance.written += 1
            kept = self._out.slice(track, midnight + start, dur, row.name, "node", args, row.at)
            if drawing.dump is not None:
                slices[index] = kept
        return slices

    def _bad_duration(self, track: TrackId, ts: int, row: Row, args: dict[str, Any]) -> None:
        self._out.problem(text.BAD_DURATION, row.at, f"{row.name}: {row.time.decode()!r}")
        self._out.instant(track, ts, row.name, "node", args, row.at)

    def _args(self, row: Row, drawing: _Drawing, index: int) -> dict[str, Any]:
        """Return the args of a node, from the table and the graph."""
        args = row.args()
        if drawing.dump is None:
            return args
        info = drawing.dump.args_of(drawing.dump.nodes[index])
        printed = args.get("shape")
        if printed is not None and info.get("shape") not in (None, printed):
            args["table_shape"] = printed
            self._out.problem(OTHER_SHAPE, row.at, f"{printed} instead of {info['shape']}")
        return args | info

    def _check_total(self, table: Table) -> None:
        if not table.total:
            return
        total = tables.length_ns(table.total)
        off = None if total is None else total - table.sum_ns
        if off is None or abs(off) > _ROUNDING_NS * (len(table) + 1):
            self._out.problem(
                text.SUM_DIFFERS,
                table.at,
                f"Total_time {table.total.decode()} us, the rows add up to {format_us(table.sum_ns)} us",
            )


def _join_repeated(tables: list[Table], out: Builder) -> list[Table]:
    """Return the tables without those that only repeat the rows of one before; their percentages go to its rows."""
    kept: list[Table] = []
    firsts: dict[tuple[bytes, bytes], Table] = {}
    similar = Counter((table.prefix, len(table)) for table in tables if table.has_clock and len(table))
    for table in tables:
        first = None
        if table.has_clock and similar[table.prefix, len(table)] > 1:
            key = table.prefix, table.digest()
            first = firsts.get(key)
            firsts.setdefault(key, table)
        if first is None:
            kept.append(table)
            continue
        first.repeats.append(table)
        out.problem(REPEATED_TABLE, table.at)
        out.balance.merged[REPEATED_ROWS] += len(table)
    return kept


@dataclass(frozen=True)
class TvmDebugger:
    """Importer of the tables and measurement lines of the TVM debugger."""

    dump: str = option(
        "",
        "the dump folder (`dump_root`) or its graph file; without it, the one beside the log is used if it fits.",
    )
    date: str = option("", "the day of the first Start Time (0.5), as 2018-10-26: the table has times of day only.")
    utc_offset: str = option("", "the time zone of the machine that recorded, as +02:00; for `date`.")

    name: ClassVar[str] = "tvm-debugger"
    title: ClassVar[str] = "TVM debugger table (standard output) and measurement lines"
    url: ClassVar[str] = "https://tvm.apache.org/docs/v0.16.0/arch/debugger.html"
    versions: ClassVar[str] = "0.5 to 0.19: all variants of the columns, single measurements, dump folder"
    clock: ClassVar[ClockDomain] = NO_CLOCK
    layer: ClassVar[Layer] = Layer.FRAMEWORK
    marks: ClassVar[FormatMarks] = FormatMarks(
        libraries="libtvm", shapes=("shape",), several=SeveralMarks(r".* / .* \(synthetic\)", means=True)
    )
    record: ClassVar[str] = (
        "python run.py > tvm.log 2>&1  # run.py calls "
        "debug_executor.create(lib.get_graph_json(), lib, dev, dump_root='dump').run()"
    )
    becomes: ClassVar[tuple[tuple[str, str], ...]] = (
        ("row of the table", "slice of its mean time, in order of execution if graph or measurement lines tell it"),
        ("row with Start Time and End Time (0.5)", "slice between them"),
        ("measurement lines (Op #, Iteration)", "args of the row; slices if the log has no table"),
        ("graph dump beside the log", "args (inputs, shape, dtype, storage_id), flows from producer to consumer"),
        ("output_tensors.params beside the log", "args and metadata: names, shapes, dtypes, sizes"),
        ("Total_time", "metadata; compared with the sum of the rows"),
    )
    skips = (text.OTHER_LINE,)
    lost: ClassVar[tuple[str, ...]] = (
        "Since 0.6 the table has only mean times. It is not known when a node ran, and positions are synthetic.",
        "Start Time and End Time have no date and no time zone.",
        "The data of output tensors is never read.",
    )
    line_up: ClassVar[str] = (
        "Tables have no clock: place one with --offset or --anchor. Those of 0.5 have the local time of day: "
        "--date FILE=2018-10-26 --tz FILE=+02:00 puts them on the wall clock."
    )

    def sniff(self, head: Head) -> Match:
        """Return YES for the header of the table, or a measurement line of the debugger."""
        if text.is_json(head.text):
            return Match.no("JSON")
        for line in head.data.splitlines():
            if b"Node Name" in line and tables.HEADER.search(text.clean(line)):
                return Match.yes("the header of a debugger table")
            if b"Op #" in line and tables.OP_LINE.search(text.clean(line)):
                return Match.yes("a measurement line of the debugger")
        return Match.no("no header with Node Name, Ops, Time(us), and no line with Op #")

    def read(self, source: Source, out: Builder) -> None:
        """Read the whole log."""
        midnight = self._midnight()
        out.info.unit = "line"
        out.balance.unit = LINES
        store = RowStore(out, Row)
        table_reader, log = tables.TableReader(out, store), tables.LogReader(out, store)
        _read_lines(source, out, table_reader, log)
        for table in (*table_reader.tables, *log.runs):
            table.keep_last()
        store.close()
        if not table_reader.tables and not log.runs:
            raise source.malformed(
                "no table found, expected a header line with Node Name, Ops, Time(us)",
                hint=f"record one with {self.record}",
            )
        joined = _join_repeated(table_reader.tables, out)
        run_of, others = tables.joined(joined, log.runs)
        writer = _Writer(source, out, self.dump)
        for table in (*joined, *others):
            writer.draw(table, run_of.get(table.at))
        writer.finish()
        self._say(joined, others, out)
        if midnight is not None and any(table.has_clock for table in joined):
            zone = zone_of(self.name, self.utc_offset)
            method = f"local time read as {zone}, from {self.date} on"
            clock = TIME_OF_DAY.owned_by(out.info.name)
            local = local_time(zone, guessed=not self.utc_offset)
            out.clocks.snapshot(ClockSnapshot(clock, 0, REALTIME, midnight, 1000, method, local, Provenance.ASSUMED))

    def _midnight(self) -> int | None:
        """Return the Unix time in ns of the midnight that Start Time counts from, if the user gives the day."""
        zone = zone_of(self.name, self.utc_offset)
        if not self.date:
            if self.utc_offset:
                raise UsageError(f"the time zone of {self.name} needs the day, too", hint="--date FILE=2018-10-26")
            return None
        try:
            return local_ns(f"{self.date} 00:00:00", zone)
        except ValueError:
            raise UsageError(f"option date of {self.name} is a day such as 2018-10-26, not {self.date!r}") from None

    def _say(self, tables: list[Table], runs: list[Table], out: Builder) -> None:
        """Add notes about what the times mean, and info of each table."""
        info = [{"line": table.at, "nodes": len(table), "sum_us": format_us(table.sum_ns)} for table in tables]
        for fact, table in zip(info, tables, strict=True):
            if table.total:
                fact["total_time_us"] = table.total.decode()
        if info:
            out.metadata["tvm_tables"] = info
        if any(not len(table) for table in tables):
            out.note("a table has no rows: the run failed, or its output was cut")
        if any(table.is_sorted and not table.total and not table.has_clock for table in tables):
            out.note("a table that is sorted by time has no row Total_time: its end is missing")
        if any(not table.has_clock and len(table) for table in (*tables, *runs)):
            out.note("durations are means, measured node by node; positions are synthetic: the log has no times")
        has_clock = any(table.has_clock for table in tables)
        if self.date and not has_clock:
            out.note("the option date was not used: no table has Start Time and End Time")
        if has_clock and not self.date:
            out.note(
                "Start Time and End Time are local times of day: to align them with other files, give the day: "
                f"{date_option(out.info.name)} {zone_option(out.info.name)}"
            )


def _read_lines(source: Source, out: Builder, table_reader: tables.TableReader, log: tables.LogReader) -> None:
    """Read the lines, each counted once; those of neither reader are the program's own."""
    lines = TextLines(out)
    for number, line in lines.read(source, keep_ends=True):
        content = text.clean(line)
        if len(content) > text.MAX_LINE or not (
            log.take(number, content) or table_reader.take(number, content, line.endswith(b"\n"))
        ):
            if b"Duration" in content and reports.is_header(content):
                out.note(f"line {number} begins a profiling report: read it with --from tvm-profile")
            lines.others += 1
    lines.tell_others(text.OTHER_LINE, LINES_OUTSIDE)

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

Columns are two or more spaces apart; pastes often have fewer.

Source: python/tvm/contrib/debugger/debug_result.py of tags v0.5 to v0.19 and from recordings; described at
https://tvm.apache.org/docs/v0.16.0/arch/debugger.html.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import msgspec

from traceconv.errors import UsageError
from traceconv.families.common.local_time import date_option, local_ns, local_time, zone_of, zone_option
from traceconv.families.common.text_lines import TextLines
from traceconv.families.importer import Importer, Match, Signature, option
from traceconv.families.tvm import text
from traceconv.families.tvm.debugger_files import Dump, Wanted, find_dump, graph_files
from traceconv.io.shown import Counted
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME, ClockDomain, ClockSnapshot, LocalForm, Provenance, Run, Zero
from traceconv.model.diagnostics import LINES, LINES_OUTSIDE, TABLE_LINES, noted
from traceconv.model.marks import FormatMarks, SeveralMarks
from traceconv.model.numbers import DAY_NS, LIMIT_NS, S, format_us, parse_ns, whole
from traceconv.model.source_info import Layer
from traceconv.model.trace import SliceId
from traceconv.model.track_table import NO_TRACK, TrackId

MEASUREMENT_LINES = Counted("measurement line joined to the table", "measurement lines joined to the table")
REPEATED_ROWS = Counted("row that repeats one of the first run", "rows that repeat those of the first run")
TOTAL_ROWS = Counted("total row kept as metadata", "total rows kept as metadata")
SINGLE_MEASUREMENTS = Counted("single measurement joined to its op", "single measurements joined to their op")
OUTPUT_ROWS = Counted("row of a further output of a node", "rows of further outputs of a node")

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

_HALF_DAY_NS = DAY_NS // 2
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

_NUMBER = rb"[-+]?(?:\d[\d.]*(?:[eE][-+]?\d+)?|nan|inf)|-"
_TIME = rb"\d\d?:\d\d:\d\d(?:\.\d{1,6})?"
# fused_conv  fused_conv  42.91  2.08  07:26:43.473544  07:26:43.473592  (1, 1, 32, 32, 3)  3  1  [37.216, 38.212]
_ROW = re.compile(
    rb"(?<!\S)(?P<name>\S++)\s++(?P<op>\S++)\s++(?P<time>" + _NUMBER + rb")\s++(?P<percent>" + _NUMBER + rb")\s++"
    rb"(?:(?P<start>" + _TIME + rb")\s++(?P<end>" + _TIME + rb")\s++)?"
    rb"(?P<shape>\([^()]*\)|\[[^\[\]]*\]|None|-)\s++(?P<inputs>\d{1,9})\s++(?P<outputs>\d{1,9})"
    rb"(?:\s++(?P<measured>\[[^\[\]]*\]))?\s*$"
)
_TOTAL = re.compile(rb"(?<!\S)Total_time\s+-\s+(?P<total>" + _NUMBER + rb")\s+-")
#: Op #26 fused_nn_softmax: 36.0865 us/iter | Op #26 fused_nn_softmax:
OP_LINE = re.compile(rb"(?<!\S)Op #(?P<number>\d{1,9}) (?P<name>\S+):\s*+(?:(?P<time>" + _NUMBER + rb") us/iter)?\s*$")
# Iteration: 0: 36.0865 us/iter (0.9 and later, after its op) | Iteration: 0 (before the ops)
_ITERATION = re.compile(rb"(?<!\S)Iteration: (?P<number>\d{1,9})(?:: (?P<time>" + _NUMBER + rb") us/iter)?\s*$")


class Row(msgspec.Struct, eq=False):
    """One node of a table, or one op of the measurement lines."""

    name: str
    op: str
    at: int  # the number of its line
    time: bytes = b""  # Time(us) as printed; empty in measurement lines
    percents: list[bytes] = msgspec.field(default_factory=list)  # Time(%), of each table that has this row
    times: tuple[int, int] | None = None  # Start Time and End Time in ns since midnight
    #: Shape, of each row of the node: a node with several outputs has as many rows
    shapes: list[str] = msgspec.field(default_factory=list)
    inputs: int = -1  # inputs, outputs: how many there are; -1 in measurement lines
    outputs: int = -1
    measured: list[bytes] = msgspec.field(default_factory=list)  # the single measurements, in us as printed

    @property
    def dur(self) -> int | None:
        """The mean time of the node in ns; None when that is not a length. Of measurement lines, once all are read."""
        return text.length_ns(self.time) if self.time or not self.measured else self._mean()

    def _mean(self) -> int | None:
        """Return the mean of the single measurements, rounded half up."""
        values = [text.length_ns(value) for value in self.measured]
        known = [value for value in values if value is not None]
        return (2 * sum(known) + len(known)) // (2 * len(known)) if len(known) == len(values) else None

    @property
    def key(self) -> tuple[object, ...]:
        """The key that rows of one node share."""
        return self.name, self.op, self.time, self.times, self.inputs, self.outputs, tuple(self.measured)

    def args(self) -> dict[str, Any]:
        args: dict[str, Any] = {"op": self.op} if self.op else {}
        if self.time:
            args["time_us"] = text.as_json(self.time)
        if len(self.percents) == 1:
            args["percent"] = text.as_json(self.percents[0])
        elif self.percents:
            args["percent_by_table"] = [text.as_json(percent) for percent in self.percents]
        if self.shapes:
            args |= {"shape": self.shapes[0]} if len(self.shapes) == 1 else {"shapes": self.shapes}
        if self.inputs >= 0:
            args |= {"num_inputs": self.inputs, "num_outputs": self.outputs}
        return args | self._measurements()

    def _measurements(self) -> dict[str, Any]:
        if not self.measured:
            return {}
        args: dict[str, Any] = {"measurements_us": [text.as_json(value) for value in self.measured]}
        known = [(ns, value) for value in self.measured if (ns := text.length_ns(value)) is not None]
        if len(known) > 1:
            args |= {"min_us": text.as_json(min(known)[1]), "max_us": text.as_json(max(known)[1])}
        return args


class Table(msgspec.Struct, eq=False):
    """One table, or the measurement lines of one run."""

    at: int  # the number of its first line
    is_log: bool = False  # whether these are measurement lines
    prefix: bytes = b""  # the text before the header on its line, without times: a rank, a logger
    prefix_length: int = 0
    ops_column: int = 0
    has_clock: bool = False
    has_measurements: bool = False
    rows: list[Row] = msgspec.field(default_factory=list)
    total: bytes = b""  # Total_time in us as printed; only tables that are sorted by time have it

    @property
    def sum_ns(self) -> int:
        """The time of all nodes."""
        return sum(row.dur or 0 for row in self.rows)

    @property
    def is_sorted(self) -> bool:
        """Whether the rows are in order of time, largest first, and not in order of execution."""
        if self.is_log or self.total or len(self.rows) < 2:
            return bool(self.total)
        return all((row.dur or 0) >= (below.dur or 0) for row, below in pairwise(self.rows))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its nodes, sorted."""
        return tuple(sorted(row.name for row in self.rows))


def _since_midnight(time: bytes) -> int:
    hours, minutes, seconds = time.split(b":")
    return (whole(hours) * 60 + whole(minutes)) * 60 * 10**9 + parse_ns(seconds, S)


def _row_of(match: re.Match[bytes], number: int) -> Row:
    return Row(
        match["name"].decode("utf-8", "replace"),
        match["op"].decode("utf-8", "replace"),
        number,
        match["time"],
        [match["percent"]],
        (_since_midnight(match["start"]), _since_midnight(match["end"])) if match["start"] else None,
        [match["shape"].decode("utf-8", "replace")],
        whole(match["inputs"]),
        whole(match["outputs"]),
        [value.strip() for value in (match["measured"] or b"[]")[1:-1].split(b",") if value.strip()],
    )


# -- lines ------------------------------------------------------------------------------------------------------


class _TableReader:
    def __init__(self, out: Builder) -> None:
        self._out = out
        self.tables: list[Table] = []
        self._open: dict[bytes, Table] = {}  # by prefix, the last one at the end
        self._lengths: dict[int, None] = {}  # of their prefixes

    def take(self, number: int, line: bytes, ended: bool) -> bool:
        """Take a line that belongs to a table, False for any other; `ended` tells whether it has a line end."""
        header = text.TABLE_HEADER.search(line) if b"Node Name" in line else None
        if header is not None:
            self._begin(number, line, header)
            return self._merged(TABLE_LINES)
        table = self._current(line)
        if table is None:
            return False
        if table.prefix and text.prefix_key(line[: table.prefix_length]) == table.prefix:
            line = line[table.prefix_length :]
        total = _TOTAL.search(line) if b"Total_time" in line else None
        if total is not None:
            table.total = total["total"]
            del self._open[table.prefix]
            return self._merged(TOTAL_ROWS)
        if not table.rows and text.is_dashes(line):
            return self._merged(TABLE_LINES)
        return self._row(number, line, table, ended)

    def _merged(self, kind: Counted) -> bool:
        self._out.balance.merged[kind] += 1
        return True

    def _begin(self, number: int, line: bytes, header: re.Match[bytes]) -> None:
        prefix = line[: header.start()]
        key = text.prefix_key(prefix)
        has_clock, has_measurements = header["clock"] is not None, header["measured"] is not None
        ops_column = header.start("ops") - len(prefix)
        table = Table(number, False, key, len(prefix), ops_column, has_clock, has_measurements)
        self.tables.append(table)
        self._open.pop(key, None)
        self._open[key] = table
        self._lengths[len(prefix)] = None

    def _current(self, line: bytes) -> Table | None:
        """Return the open table that a line continues, by its prefix; else the last one."""
        for length in self._lengths:
            table = self._open.get(text.prefix_key(line[:length]))
            if table is not None:
                return table
        return next(reversed(self._open.values()), None)

    def _row(self, number: int, line: bytes, table: Table, ended: bool) -> bool:
        match = _ROW.search(line)
        if (
            match is None
            or table.has_clock != (match["start"] is not None)
            or table.has_measurements != (match["measured"] is not None)
        ):
            return self._cut_row(number, line, table, ended)
        row = _row_of(match, number)
        before = line[: match.start()].lstrip()
        if before and not table.prefix:  # the name of a node that holds spaces
            row.name = before.decode("utf-8", "replace") + row.name
        last = table.rows[-1] if table.rows else None
        if last is not None and len(last.shapes) < last.outputs and last.key == row.key:
            last.shapes += row.shapes
            return self._merged(OUTPUT_ROWS)
        table.rows.append(row)
        return True

    def _cut_row(self, number: int, line: bytes, table: Table, ended: bool) -> bool:
        """Count a row that is not whole; False for any other line.

        Its second word stands below `Ops`, or the file ends inside its name.
        """
        column = table.ops_column
        begun = line.strip()
        below = line[column - 1 : column].isspace() and not line[column : column + 1].isspace() and column < len(line)
        in_name = not ended and b" " not in begun and bool(table.rows) and table.rows[-1].at == number - 1
        if not begun or not (below or in_name):
            return False
        self._out.skip(text.CUT_ROW, number, begun[:60].decode("utf-8", "replace"))
        return True


class _LogReader:
    """Collects the measurement lines of a log, which stand on standard error, line by line."""

    def __init__(self, out: Builder) -> None:
        self._out = out
        self.runs: list[Table] = []
        self._rows: dict[int, Row] = {}  # the ops of the last run by their number
        self._last: int | None = None  # the number of the op that lines with single measurements belong to
        self._iteration = 0

    def take(self, number: int, line: bytes) -> bool:
        """Take a line with a measurement; False for any other."""
        if b"Op #" not in line and b"Iteration: " not in line:
            return False
        op = OP_LINE.search(line)
        if op is not None:
            self._op(number, op)
            return True
        iteration = _ITERATION.search(line)
        if iteration is None or (iteration["time"] and self._last is None):
            return False
        if iteration["time"]:
            self._measured(self.runs[-1].rows[-1], iteration["time"])
            return True
        self._iteration = whole(iteration["number"])
        self._last = None
        if self._iteration == 0:
            self._new_run(number)
        self._out.balance.merged[TABLE_LINES] += 1
        return True

    def _measured(self, row: Row, time: bytes) -> None:
        row.measured.append(time)
        self._out.balance.merged[SINGLE_MEASUREMENTS] += 1

    def _new_run(self, number: int) -> None:
        self.runs.append(Table(number, is_log=True))
        self._rows = {}

    def _op(self, number: int, match: re.Match[bytes]) -> None:
        op, name = whole(match["number"]), match["name"].decode("utf-8", "replace")
        before = self._rows.get(op)
        if before is not None and self._iteration and match["time"] and before.name == name:
            self._measured(before, match["time"])
            return
        if not self.runs or (self._last is not None and op <= self._last) or before is not None:
            self._new_run(number)
        row = self._rows[op] = Row(name, "", number, measured=[match["time"]] if match["time"] else [])
        self.runs[-1].rows.append(row)
        self._last = op


def _read_lines(source: Source, out: Builder) -> tuple[list[Table], list[Table]]:
    """Return the tables of a log and the runs of its measurement lines; each line is counted once."""
    table_reader, log, lines = _TableReader(out), _LogReader(out), TextLines(out)
    for number, line in lines.read(source, keep_ends=True):
        content = text.clean(line)
        if len(content) > text.MAX_LINE or not (
            log.take(number, content) or table_reader.take(number, content, line.endswith(b"\n"))
        ):
            if b"Duration" in content and text.begins_report(content):
                out.note(f"line {number} begins a profiling report: read it with --from tvm-profile")
            lines.others += 1
    lines.tell_others(text.OTHER_LINE, LINES_OUTSIDE)
    return table_reader.tables, log.runs


# -- tables -----------------------------------------------------------------------------------------------------


def _join_repeated(tables: list[Table], out: Builder) -> list[Table]:
    """Return the tables without those that only repeat the rows of one before; their percentages go to its rows."""
    kept: list[Table] = []
    firsts: dict[tuple[object, ...], Table] = {}
    similar = Counter((table.prefix, len(table.rows)) for table in tables if table.has_clock and table.rows)
    for table in tables:
        first = table
        if table.has_clock and similar[table.prefix, len(table.rows)] > 1:
            first = firsts.setdefault((table.prefix, *(row.key for row in table.rows)), table)
        if first is table:
            kept.append(table)
            continue
        for row, again in zip(first.rows, table.rows, strict=True):
            row.percents += again.percents
        out.problem(REPEATED_TABLE, table.at)
        out.balance.merged[REPEATED_ROWS] += len(table.rows)
    return kept


def _join_runs(tables: list[Table], runs: list[Table], out: Builder) -> tuple[dict[int, list[int]], list[Table]]:
    """Give tables the measurements of the runs that they were made of, which have the same nodes; both in their order.

    Return the place of each row in its run, by the line of the table; and the other runs.
    """
    waiting: dict[tuple[str, ...], deque[Table]] = defaultdict(deque)
    for run in runs:
        waiting[run.names].append(run)
    places: dict[int, list[int]] = {}
    for table in tables:
        same = waiting.get(table.names) if table.rows else None
        if not same:
            continue
        run = same.popleft()
        by_name: dict[str, deque[int]] = defaultdict(deque)
        for place, row in enumerate(run.rows):
            by_name[row.name].append(place)
        places[table.at] = [by_name[row.name].popleft() for row in table.rows]
        for row, place in zip(table.rows, places[table.at], strict=True):
            row.measured = row.measured or run.rows[place].measured
        out.balance.merged[MEASUREMENT_LINES] += len(run.rows)
    others = {run.at for runs_left in waiting.values() for run in runs_left}
    return places, [run for run in runs if run.at in others]


# -- slices -----------------------------------------------------------------------------------------------------


class _Writer:
    def __init__(self, source: Source, out: Builder, dump: str) -> None:
        self._source = source
        self._out = out
        self._dump = dump
        self._dumps: dict[tuple[Wanted, ...], Dump | None] = {}
        self._has_clock = False
        self._roots: list[TrackId] = []

    def draw(self, table: Table, places: list[int] | None) -> None:
        """Draw a table; `places` are those of its rows in the measurement lines of the same run, if there are any."""
        dump = self._find_dump(table)
        root = self._root(table)
        self._roots.append(root)
        if table.has_clock:
            slices = self._clock_rows(table, dump, root)
        else:
            order, by = _order(table, dump, places)
            slices = self._mean_rows(table, dump, root, order, by)
        if dump is not None:
            dump.draw_flows(self._out, {dump.nodes[place].index: row for place, row in slices.items()})
        self._check_total(table)

    def finish(self) -> None:
        """Give each run a number if there are several."""
        if len(self._roots) > 1:
            for number, root in enumerate(self._roots, 1):
                self._out.tracks[root].name += f" run {number}"

    def _find_dump(self, table: Table) -> Dump | None:
        """Return the dump folder that fits the rows; looked for once for all runs of a graph."""
        if not table.rows or not graph_files(self._source, self._dump):
            return None
        trusted = not table.has_clock  # the shapes of 0.5 are of other nodes
        wanted = tuple(Wanted(row.name, row.op, row.shapes[0] if row.shapes and trusted else "") for row in table.rows)
        if wanted not in self._dumps:
            self._dumps[wanted] = find_dump(self._source, self._out, self._dump, wanted)
        return self._dumps[wanted]

    def _root(self, table: Table) -> TrackId:
        domain = (TIME_OF_DAY if table.has_clock else NO_CLOCK).owned_by(self._out.info.name)
        if not self._has_clock:
            self._out.clocks.set_default(domain)
            self._has_clock = True
        mean = "" if table.has_clock else "mean "
        description = f"{len(table.rows)} nodes, their {mean}times add up to {format_us(table.sum_ns)} us"
        if table.prefix:
            description += f"; lines with prefix {table.prefix.decode('utf-8', 'replace')}"
        clock = self._out.clocks.add(domain)
        return self._out.tracks.add("TVM debugger", NO_TRACK, description=description, clock=clock)

    def _track(self, name: str, root: TrackId, description: str) -> TrackId:
        return self._out.tracks.add(name, root, description=description, clock=self._out.tracks[root].clock)

    def _mean_rows(
        self, table: Table, dump: Dump | None, root: TrackId, order: Sequence[int], by: str
    ) -> dict[int, SliceId]:
        """Draw slices one after the other; return them by the place of their row."""
        track = self._track(f"{_device(dump) or 'nodes'} (synthetic)", root, _MEANS_HELP + by)
        slices = {}
        ts = 0
        for place in order:
            row = table.rows[place]
            dur, args = row.dur, self._args(row, dump, place)
            self._out.balance.written += 1
            if dur is None or ts + dur > LIMIT_NS:
                self._out.problem(text.BAD_DURATION, row.at, f"{row.name}: {row.time.decode()!r}")
                self._out.instant(track, ts, row.name, "node", args, row.at)
                continue
            slices[place] = self._out.slice(track, ts, dur, row.name, "node", args, row.at)
            ts += dur
        return slices

    def _clock_rows(self, table: Table, dump: Dump | None, root: TrackId) -> dict[int, SliceId]:
        """Draw slices where the table says; a step back of more than half a day is midnight."""
        track = self._track(_device(dump) or "nodes", root, _CLOCK_HELP)
        slices = {}
        midnight, last = 0, None
        for place, row in enumerate(table.rows):
            assert row.times is not None  # the table has the columns
            start, end = row.times
            if last is not None and last - start > _HALF_DAY_NS:
                midnight += DAY_NS
            elif last is not None and start < last:
                self._out.problem(CLOCK_STEP, row.at, f"{format_us(last - start)} us back")
            last = start
            dur = end - start + (DAY_NS if start - end > _HALF_DAY_NS else 0)
            args = self._args(row, dump, place)
            self._out.balance.written += 1
            slices[place] = self._out.slice(track, midnight + start, dur, row.name, "node", args, row.at)
        return slices

    def _args(self, row: Row, dump: Dump | None, place: int) -> dict[str, Any]:
        """Return the args of a node, from the table and the graph."""
        args = row.args()
        if dump is None:
            return args
        info = dump.args_of(dump.nodes[place])
        printed = args.get("shape")
        if printed is not None and info.get("shape") not in (None, printed):
            args["table_shape"] = printed
            self._out.problem(OTHER_SHAPE, row.at, f"{printed} instead of {info['shape']}")
        return args | info

    def _check_total(self, table: Table) -> None:
        if not table.total:
            return
        total = text.length_ns(table.total)
        if total is None or abs(total - table.sum_ns) > _ROUNDING_NS * (len(table.rows) + 1):
            self._out.problem(
                text.SUM_DIFFERS,
                table.at,
                f"Total_time {table.total.decode()} us, the rows add up to {format_us(table.sum_ns)} us",
            )


def _device(dump: Dump | None) -> str:
    """Return where the nodes ran, as far as the name of the dump folder tells."""
    return dump.device if dump else ""


def _order(table: Table, dump: Dump | None, places: list[int] | None) -> tuple[Sequence[int], str]:
    """Return the order in which the rows are drawn, and what it follows."""
    order = range(len(table.rows))
    if dump is not None:
        return sorted(order, key=[node.index for node in dump.nodes].__getitem__), "the graph"
    if places is not None:
        return sorted(order, key=places.__getitem__), "the measurement lines (order of execution)"
    return order, "the table, which is sorted by time" if table.is_sorted else "the lines (order of execution)"


@dataclass(frozen=True)
class TvmDebugger(Importer):
    """Importer of the tables and measurement lines of the TVM debugger."""

    name = "tvm-debugger"
    title = "TVM debugger table (standard output) and measurement lines"
    url = "https://tvm.apache.org/docs/v0.16.0/arch/debugger.html"
    versions = "0.5 to 0.19: all variants of the columns, single measurements, dump folder"
    signature = Signature("node name | op #")
    clock = NO_CLOCK
    layer = Layer.FRAMEWORK
    record = (
        "python run.py > tvm.log 2>&1  # run.py calls "
        "debug_executor.create(lib.get_graph_json(), lib, dev, dump_root='dump').run()"
    )
    skips = (text.OTHER_LINE,)
    dump: str = option(
        "",
        "the dump folder (`dump_root`) or its graph file; without it, the one beside the log is used if it fits.",
    )
    date: str = option("", "the day of the first Start Time (0.5), as 2018-10-26: the table has times of day only.")
    utc_offset: str = option("", "the time zone of the machine that recorded, as +02:00; for `date`.")

    line_up = (
        "It has no clock: use --offset or --anchor. Tables of 0.5 have the local time of day: --date FILE=2018-10-26 "
        "--tz FILE=+02:00."
    )
    becomes = (
        ("row of the table", "slice of its mean time, in order of execution if graph or measurement lines tell it"),
        ("row with Start Time and End Time (0.5)", "slice between them"),
        ("measurement lines (Op #, Iteration)", "args of the row; slices if the log has no table"),
        ("graph dump beside the log", "args (inputs, shape, dtype, storage_id), flows from producer to consumer"),
        ("output_tensors.params beside the log", "args and metadata: names, shapes, dtypes, sizes"),
        ("Total_time", "metadata; compared with the sum of the rows"),
    )
    lost = (
        "Since 0.6 the table has only mean times: positions are synthetic.",
        "Start Time and End Time have no date and no time zone.",
        "The data of output tensors is never read.",
    )
    marks = FormatMarks(
        libraries="libtvm", shapes=("shape",), several=SeveralMarks(r"(?:(?! / ).)* / .* \(synthetic\)", means=True)
    )

    def sniff(self, head: Head) -> Match:
        """Return YES for the header of the table, or a measurement line of the debugger."""
        if text.is_json(head.text):
            return Match.no("JSON")
        for line in head.data.splitlines():
            if b"Node Name" in line and text.TABLE_HEADER.search(text.clean(line)):
                return Match.yes("the header of a debugger table")
            if b"Op #" in line and OP_LINE.search(text.clean(line)):
                return Match.yes("a measurement line of the debugger")
        return Match.no("no header with Node Name, Ops, Time(us), and no line with Op #")

    def read(self, source: Source, out: Builder) -> None:
        midnight = self._midnight()
        out.counts(LINES)
        read, runs = _read_lines(source, out)
        if not read and not runs:
            raise source.malformed(
                "no table found, expected a header line with Node Name, Ops, Time(us)",
                hint=f"record one with {self.record}",
            )
        tables = _join_repeated(read, out)
        places, others = _join_runs(tables, runs, out)
        writer = _Writer(source, out, self.dump)
        for table in (*tables, *others):
            writer.draw(table, places.get(table.at))
        writer.finish()
        self._say(tables, others, out)
        if midnight is not None and any(table.has_clock for table in tables):
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
        info = [{"line": table.at, "nodes": len(table.rows), "sum_us": format_us(table.sum_ns)} for table in tables]
        for fact, table in zip(info, tables, strict=True):
            if table.total:
                fact["total_time_us"] = table.total.decode()
        if info:
            out.metadata["tvm_tables"] = info
        if any(not table.rows for table in tables):
            out.note("a table has no rows: the run failed, or its output was cut")
        if any(table.is_sorted and not table.total and not table.has_clock for table in tables):
            out.note("a table that is sorted by time has no row Total_time: its end is missing")
        if any(not table.has_clock and table.rows for table in (*tables, *runs)):
            out.note("durations are means, measured node by node; positions are synthetic: the log has no times")
        has_clock = any(table.has_clock for table in tables)
        if self.date and not has_clock:
            out.note("the option date was not used: no table has Start Time and End Time")
        if has_clock and not self.date:
            out.note(
                "Start Time and End Time are local times of day: to align them with other files, give the day: "
                f"{date_option(out.info.name)} {zone_option(out.info.name)}"
            )

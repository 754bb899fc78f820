"""The rows of the TVM debugger's table, and the lines of single measurements that it logs.

    Node Name    Ops          Time(us)  Time(%)  Start Time       End Time         Shape               Inputs  Outputs
    fused_conv   fused_conv   42.91     2.08     07:26:43.473544  07:26:43.473592  (1, 1, 32, 32, 16)  3       1
    [10:57:23] .../graph_runtime_debug.cc:97: Op #1 fused_nn_softmax: 36.0865 us/iter

Columns are two or more spaces apart; pastes often have fewer. See `tvm_debugger` for what the columns mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from traceconv.families.common.idle_lines import holds
from traceconv.families.tvm import _text as text
from traceconv.model.builder import Builder
from traceconv.model.times import LIMIT_NS, US, S, parse_ns

HEADER = re.compile(
    rb"Node Name\s+(?P<ops>Ops)\s+Time\(us\)\s+Time\(%\)\s+(?P<clock>Start Time\s+End Time\s+)?Shape\s+Inputs\s+Outputs"
    rb"(?P<measured>\s+Measurements\(us\))?\s*$"
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
OP_LINE = re.compile(rb"(?<!\S)Op #(?P<number>\d{1,9}) (?P<name>\S+):\s*(?:(?P<time>" + _NUMBER + rb") us/iter)?\s*$")
# Iteration: 0: 36.0865 us/iter (0.9 and later, after its op) | Iteration: 0 (before the ops)
_ITERATION = re.compile(rb"(?<!\S)Iteration: (?P<number>\d{1,9})(?:: (?P<time>" + _NUMBER + rb") us/iter)?\s*$")


class Row(msgspec.Struct, eq=False):
    """One node of a table, or one op of the measurement lines.

    Attributes:
        time: Time(us) as printed; empty in measurement lines.
        times: Start Time and End Time in ns since midnight.
        percents: Time(%), of each table that has this row.
        shapes: Shape, of each row of the node: a node with several outputs has as many rows.
        inputs, outputs: how many there are; -1 in measurement lines.
        measured: the single measurements, in us as printed.
        at: the number of its line.
    """

    name: str
    op: str
    at: int
    time: bytes = b""
    percents: list[bytes] = msgspec.field(default_factory=list)
    times: tuple[int, int] | None = None
    shapes: list[str] = msgspec.field(default_factory=list)
    inputs: int = -1
    outputs: int = -1
    measured: list[bytes] = msgspec.field(default_factory=list)
    _dur: tuple[int | None] | None = None

    @property
    def dur(self) -> int | None:
        """The mean time of the node in ns; None when that is not a length. Known once all lines are read."""
        if self._dur is None:
            self._dur = (length_ns(self.time) if self.time or not self.measured else self._mean(),)
        return self._dur[0]

    def _mean(self) -> int | None:
        """Return the mean of the single measurements, rounded half up."""
        values = [length_ns(value) for value in self.measured]
        known = [value for value in values if value is not None]
        return (2 * sum(known) + len(known)) // (2 * len(known)) if len(known) == len(values) else None

    @property
    def key(self) -> tuple[object, ...]:
        """The key that rows of one node share."""
        return self.name, self.op, self.time, self.times, self.inputs, self.outputs, tuple(self.measured)

    def args(self) -> dict[str, Any]:
        """Return the args, under the names of the columns."""
        args: dict[str, Any] = {"op": self.op} if self.op else {}
        if self.time:
            args["time_us"] = as_json(self.time)
        if len(self.percents) == 1:
            args["percent"] = as_json(self.percents[0])
        elif self.percents:
            args["percent_by_table"] = [as_json(percent) for percent in self.percents]
        if self.shapes:
            args |= {"shape": self.shapes[0]} if len(self.shapes) == 1 else {"shapes": self.shapes}
        if self.inputs >= 0:
            args |= {"num_inputs": self.inputs, "num_outputs": self.outputs}
        return args | self._measurements()

    def _measurements(self) -> dict[str, Any]:
        if not self.measured:
            return {}
        args: dict[str, Any] = {"measurements_us": [as_json(value) for value in self.measured]}
        known = [(ns, value) for value in self.measured if (ns := length_ns(value)) is not None]
        if len(known) > 1:
            args |= {"min_us": as_json(min(known)[1]), "max_us": as_json(max(known)[1])}
        return args


class Table(msgspec.Struct, eq=False):
    """One table, or the measurement lines of one run.

    Attributes:
        at: the number of its first line.
        is_log: whether these are measurement lines.
        prefix: the text before the header on its line, without times: a rank, a logger.
        total: Total_time in us as printed; only tables that are sorted by time have it.
    """

    at: int
    is_log: bool = False
    prefix: bytes = b""
    prefix_length: int = 0
    ops_column: int = 0
    has_clock: bool = False
    has_measurements: bool = False
    rows: list[Row] = msgspec.field(default_factory=list)
    total: bytes = b""

    @property
    def is_sorted(self) -> bool:
        """Whether the rows are in order of time, largest first, and not in order of execution."""
        durations = [row.dur or 0 for row in self.rows]
        descending = durations == sorted(durations, reverse=True) and len(durations) > 1
        return not self.is_log and (bool(self.total) or descending)

    def names(self) -> tuple[str, ...]:
        """Return the names of its nodes, in alphabetical order."""
        return tuple(sorted(row.name for row in self.rows))

    def sum_ns(self) -> int:
        """Return the time of all nodes."""
        return sum(row.dur or 0 for row in self.rows)


def as_json(number: bytes) -> msgspec.Raw | str:
    """Return a number as printed; as text if JSON has no such number."""
    try:
        msgspec.json.decode(number, type=float)
    except msgspec.MsgspecError:
        return number.decode("utf-8", "replace")
    return msgspec.Raw(number)


def length_ns(number: bytes) -> int | None:
    """Return the ns of a text in microseconds; None for an invalid duration."""
    try:
        length = parse_ns(number, US)
    except ValueError:
        return None
    return length if 0 <= length < LIMIT_NS >> 20 else None


def _since_midnight(time: bytes) -> int:
    hours, minutes, seconds = time.split(b":")
    return (int(hours) * 60 + int(minutes)) * 60 * 10**9 + parse_ns(seconds, S)


def _row_of(match: re.Match[bytes], number: int) -> Row:
    return Row(
        match["name"].decode("utf-8", "replace"),
        match["op"].decode("utf-8", "replace"),
        number,
        match["time"],
        [match["percent"]],
        (_since_midnight(match["start"]), _since_midnight(match["end"])) if match["start"] else None,
        [match["shape"].decode("utf-8", "replace")],
        int(match["inputs"]),
        int(match["outputs"]),
        [value.strip() for value in (match["measured"] or b"[]")[1:-1].split(b",") if value.strip()],
    )


class TableReader:
    """Collects the tables of a log, line by line."""

    def __init__(self, out: Builder) -> None:
        self._out = out
        self.tables: list[Table] = []
        self._open: dict[bytes, Table] = {}  # by prefix, the last one at the end
        self._lengths: dict[int, None] = {}  # of their prefixes

    def take(self, number: int, line: bytes, ended: bool) -> bool:
        """Take a line that belongs to a table; False for any other.

        Args:
            ended: whether it has a line end; the last one of a cut file has none.
        """
        header = HEADER.search(line) if b"Node Name" in line else None
        if header is not None:
            self._begin(number, line, header)
            return self._merged("table lines without values")
        table = self._current(line)
        if table is None:
            return False
        if table.prefix and text.prefix_key(line[: table.prefix_length]) == table.prefix:
            line = line[table.prefix_length :]
        total = _TOTAL.search(line) if b"Total_time" in line else None
        if total is not None:
            table.total = total["total"]
            del self._open[table.prefix]
            return self._merged("total rows kept as metadata")
        if not table.rows and text.is_dashes(line):
            return self._merged("table lines without values")
        return self._row(number, line, table, ended)

    def known(self) -> bytes:
        """Return a pattern that matches only lines of the open table, b"" if there is none."""
        if len(self._open) > 1:
            return b""
        if not self._open:
            return holds(b"Node Name")
        (table,) = self._open.values()
        below = rb"[^\n]{%d}" % (table.ops_column + 1)
        return b"|".join((holds(rb"(?:Total_time|--|\t)"), below, holds(rb"[ \f\v]", 6)))

    def _merged(self, kind: str) -> bool:
        self._out.balance.merged[kind] += 1
        return True

    def _begin(self, number: int, line: bytes, header: re.Match[bytes]) -> None:
        prefix = line[: header.start()]
        key = text.prefix_key(prefix)
        has_clock, has_measurements = header["clock"] is not None, header["measured"] is not None
        table = Table(number, False, key, len(prefix), header.start("ops") - len(prefix), has_clock, has_measurements)
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
        whole = match is not None and (
            table.has_clock == (match["start"] is not None)
            and table.has_measurements == (match["measured"] is not None)
        )
        if match is None or not whole:
            return self._cut_row(number, line, table, ended)
        row = _row_of(match, number)
        before = line[: match.start()].lstrip()
        if before and not table.prefix:  # the name of a node that holds spaces
            row.name = before.decode("utf-8", "replace") + row.name
        last = table.rows[-1] if table.rows else None
        if last is not None and len(last.shapes) < last.outputs and last.key == row.key:
            last.shapes += row.shapes
            return self._merged("rows of further outputs of a node")
        table.rows.append(row)
        return True

    def _cut_row(self, number: int, line: bytes, table: Table, ended: bool) -> bool:
        """Count a row that is not whole; False for any other line.

        Its second word stands below `Ops`, or the file ends inside its name.
        """
        column = table.ops_column
        begun = line.strip()
        below = line[column - 1 : column].isspace() and not line[column : column + 1].isspace() and column < len(line)
        in_name = not ended and begun == begun.split(b" ")[0] and bool(table.rows) and table.rows[-1].at == number - 1
        if not begun or not (below or in_name):
            return False
        self._out.skip(text.CUT_ROW, number, begun[:60].decode("utf-8", "replace"))
        return True


class LogReader:
    """Collects the measurement lines of a log, which stand on standard error, line by line."""

    def __init__(self, out: Builder) -> None:
        self._out = out
        self.runs: list[Table] = []
        self._numbers: dict[int, Row] = {}
        self._last: tuple[int, Row] | None = None
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
            assert self._last is not None
            return self._measured(self._last[1], iteration["time"])
        self._iteration = int(iteration["number"])
        self._last = None
        if self._iteration == 0:
            self._new_run(number)
        self._out.balance.merged["table lines without values"] += 1
        return True

    def _measured(self, row: Row, value: bytes) -> bool:
        row.measured.append(value)
        self._out.balance.merged["single measurements joined to their op"] += 1
        return True

    def _new_run(self, number: int) -> None:
        self.runs.append(Table(number, is_log=True))
        self._numbers = {}

    def _op(self, number: int, match: re.Match[bytes]) -> None:
        place, name = int(match["number"]), match["name"].decode("utf-8", "replace")
        before = self._numbers.get(place)
        if before is not None and self._iteration and match["time"] and before.name == name:
            self._measured(before, match["time"])
            return
        if not self.runs or (self._last is not None and place <= self._last[0]) or before is not None:
            self._new_run(number)
        row = Row(name, "", number, measured=[match["time"]] if match["time"] else [])
        self.runs[-1].rows.append(row)
        self._numbers[place] = row
        self._last = (place, row)

    def join(self, tables: list[Table]) -> Iterator[tuple[Table, Table]]:
        """Yield the tables with the run that each was made of, in order.

        Both have the same nodes. Leaves the other runs.
        """
        waiting: dict[tuple[str, ...], list[Table]] = {}
        for run in reversed(self.runs):
            waiting.setdefault(run.names(), []).append(run)
        for table in tables:
            runs = waiting.get(table.names())
            if runs and table.rows:
                yield table, runs.pop()
        left = {id(run) for runs in waiting.values() for run in runs}
        self.runs = [run for run in self.runs if id(run) in left]

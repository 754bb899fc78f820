"""The rows of the TVM debugger's table, and the lines of single measurements that it logs.

    Node Name    Ops          Time(us)  Time(%)  Start Time       End Time         Shape               Inputs  Outputs
    fused_conv   fused_conv   42.91     2.08     07:26:43.473544  07:26:43.473592  (1, 1, 32, 32, 16)  3       1
    [10:57:23] .../graph_runtime_debug.cc:97: Op #1 fused_nn_softmax: 36.0865 us/iter

Columns are two or more spaces apart; pastes often have fewer. See `tvm_debugger` for what the columns mean.
"""

from __future__ import annotations

import hashlib
import re
from array import array
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from traceconv.families.common.row_store import RowStore
from traceconv.families.tvm import _text as text
from traceconv.io.shown import Counted
from traceconv.model.builder import Builder
from traceconv.model.counted import OUTPUT_ROWS, SINGLE_MEASUREMENTS, TABLE_LINES, TOTAL_ROWS
from traceconv.model.numbers import whole
from traceconv.model.times import LIMIT_NS, US, S, parse_ns
from traceconv.model.trace import I64

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
OP_LINE = re.compile(rb"(?<!\S)Op #(?P<number>\d{1,9}) (?P<name>\S+):\s*+(?:(?P<time>" + _NUMBER + rb") us/iter)?\s*$")
# Iteration: 0: 36.0865 us/iter (0.9 and later, after its op) | Iteration: 0 (before the ops)
_ITERATION = re.compile(rb"(?<!\S)Iteration: (?P<number>\d{1,9})(?:: (?P<time>" + _NUMBER + rb") us/iter)?\s*$")


class Row(msgspec.Struct, eq=False, array_like=True):
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

    @property
    def dur(self) -> int | None:
        """The mean time of the node in ns; None when that is not a length. Of measurement lines, once all are read."""
        return length_ns(self.time) if self.time or not self.measured else self._mean()

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
        store: holds its rows.
        is_log: whether these are measurement lines.
        prefix: the text before the header on its line, without times: a rank, a logger.
        numbers: of its rows in the store, all but the last one while lines are read.
        last: the row that further lines may belong to.
        further, further_of: measurements that came after their row: their numbers in the store, and the places of
            their rows in the table.
        repeats: the tables that repeat the rows of this one.
        total: Total_time in us as printed; only tables that are sorted by time have it.
        sum_ns: the time of all nodes.
        is_descending: whether no row is longer than the one before.
    """

    at: int
    store: RowStore[Row]
    is_log: bool = False
    prefix: bytes = b""
    prefix_length: int = 0
    ops_column: int = 0
    has_clock: bool = False
    has_measurements: bool = False
    numbers: array[int] = msgspec.field(default_factory=lambda: array("q"))
    last: Row | None = None
    further: array[int] = msgspec.field(default_factory=lambda: array("q"))
    further_of: array[int] = msgspec.field(default_factory=lambda: array("q"))
    repeats: list[Table] = msgspec.field(default_factory=list)
    total: bytes = b""
    sum_ns: int = 0
    is_descending: bool = True
    _shortest: int = LIMIT_NS

    def __len__(self) -> int:
        return len(self.numbers) + (self.last is not None)

    @property
    def is_sorted(self) -> bool:
        """Whether the rows are in order of time, largest first, and not in order of execution."""
        return not self.is_log and (bool(self.total) or (self.is_descending and len(self) > 1))

    def add(self, row: Row) -> None:
        """Add a row; no line can belong to the one before any more."""
        self.keep_last()
        self.last = row

    def keep_last(self) -> None:
        """Move the last row to the store."""
        row, self.last = self.last, None
        if row is None:
            return
        self.numbers.append(self.store.add(row))
        if not self.is_log:
            dur = row.dur or 0
            self.sum_ns += dur
            self.is_descending &= dur <= self._shortest
            self._shortest = dur

    def rows(self, order: I64 | None = None) -> Iterator[Row]:
        """Yield the rows, in an order if one is given; all lines were read."""
        numbers = np.frombuffer(self.numbers, np.int64)
        found = self.store.rows(numbers if order is None else numbers[order])
        if len(self.further):
            found = self._with_further(found, np.arange(len(numbers)) if order is None else order)
        if self.repeats:
            repeated = [table.rows(order) for table in self.repeats]
            for row, *again in zip(found, *repeated, strict=True):
                row.percents += [percent for other in again for percent in other.percents]
                yield row
        else:
            yield from found

    def _with_further(self, rows: Iterator[Row], places: I64) -> Iterator[Row]:
        """Yield rows with the measurements that came after them."""
        of = np.array(self.further_of, np.int64)
        by_place = np.argsort(of, kind="stable")
        numbers, of = np.array(self.further, np.int64)[by_place], of[by_place]
        starts, ends = (np.searchsorted(of, places, side) for side in ("left", "right"))
        for row, start, end in zip(rows, starts.tolist(), ends.tolist(), strict=True):
            for other in self.store.rows(numbers[start:end]):
                row.measured += other.measured
            yield row

    def digest(self) -> bytes:
        """Return what tables with equal rows have in common."""
        digest = hashlib.blake2b()
        for row in self.rows():
            digest.update(msgspec.msgpack.encode(row.key))
        return digest.digest()

    def digest_of_names(self) -> bytes:
        """Return what tables with nodes of the same names have in common."""
        return hashlib.blake2b(msgspec.msgpack.encode(sorted(row.name for row in self.rows()))).digest()


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


class TableReader:
    """Collects the tables of a log, line by line."""

    def __init__(self, out: Builder, store: RowStore[Row]) -> None:
        self._out, self._store = out, store
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
            return self._merged(TABLE_LINES)
        table = self._current(line)
        if table is None:
            return False
        if table.prefix and text.prefix_key(line[: table.prefix_length]) == table.prefix:
            line = line[table.prefix_length :]
        total = _TOTAL.search(line) if b"Total_time" in line else None
        if total is not None:
            table.total = total["total"]
            table.keep_last()
            del self._open[table.prefix]
            return self._merged(TOTAL_ROWS)
        if not len(table) and text.is_dashes(line):
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
        table = Table(number, self._store, False, key, len(prefix), ops_column, has_clock, has_measurements)
        self.tables.append(table)
        before = self._open.pop(key, None)
        if before is not None:
            before.keep_last()
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
        last = table.last
        if last is not None and len(last.shapes) < last.outputs and last.key == row.key:
            last.shapes += row.shapes
            return self._merged(OUTPUT_ROWS)
        table.add(row)
        return True

    def _cut_row(self, number: int, line: bytes, table: Table, ended: bool) -> bool:
        """Count a row that is not whole; False for any other line.

        Its second word stands below `Ops`, or the file ends inside its name.
        """
        column = table.ops_column
        begun = line.strip()
        below = line[column - 1 : column].isspace() and not line[column : column + 1].isspace() and column < len(line)
        in_name = not ended and begun == begun.split(b" ")[0] and table.last is not None and table.last.at == number - 1
        if not begun or not (below or in_name):
            return False
        self._out.skip(text.CUT_ROW, number, begun[:60].decode("utf-8", "replace"))
        return True


class LogReader:
    """Collects the measurement lines of a log, which stand on standard error, line by line."""

    def __init__(self, out: Builder, store: RowStore[Row]) -> None:
        self._out, self._store = out, store
        self.runs: list[Table] = []
        self._places: dict[int, int] = {}  # of the ops of the last run by their number
        self._names: list[str] = []
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
            row = self.runs[-1].last
            assert row is not None
            row.measured.append(iteration["time"])
            return self._measured()
        self._iteration = whole(iteration["number"])
        self._last = None
        if self._iteration == 0:
            self._new_run(number)
        self._out.balance.merged[TABLE_LINES] += 1
        return True

    def _measured(self) -> bool:
        self._out.balance.merged[SINGLE_MEASUREMENTS] += 1
        return True

    def _new_run(self, number: int) -> None:
        if self.runs:
            self.runs[-1].keep_last()
        self.runs.append(Table(number, self._store, is_log=True))
        self._places, self._names = {}, []

    def _op(self, number: int, match: re.Match[bytes]) -> None:
        op, name = whole(match["number"]), match["name"].decode("utf-8", "replace")
        place = self._places.get(op)
        if place is not None and self._iteration and match["time"] and self._names[place] == name:
            run = self.runs[-1]
            run.further.append(self._store.add(Row("", "", number, measured=[match["time"]])))
            run.further_of.append(place)
            self._measured()
            return
        if not self.runs or (self._last is not None and op <= self._last) or place is not None:
            self._new_run(number)
        run = self.runs[-1]
        self._places[op] = len(run)
        self._names.append(name)
        run.add(Row(name, "", number, measured=[match["time"]] if match["time"] else []))
        self._last = op


def joined(tables: list[Table], runs: list[Table]) -> tuple[dict[int, tuple[Table, I64]], list[Table]]:
    """Relate tables to the runs that they were made of, which have the same nodes; both in their order.

    Returns:
        By the line of a table its run, with the place there of each row; and the other runs.
    """
    waiting: dict[bytes, list[Table]] = {}
    for run in reversed(runs):
        waiting.setdefault(run.digest_of_names(), []).append(run)
    found: dict[int, tuple[Table, I64]] = {}
    for table in tables:
        same = waiting.get(table.digest_of_names()) if runs and len(table) else None
        if same:
            run = same.pop()
            found[table.at] = run, _places_in(run, table)
    used = {run.at for run, _ in found.values()}
    return found, [run for run in runs if run.at not in used]


def _places_in(run: Table, table: Table) -> I64:
    """Return the place in a run of each row of a table; of equal names the first is the first."""
    known: dict[str, int] = {}
    numbers = [
        np.array([known.setdefault(row.name, len(known)) for row in one.rows()], np.int64) for one in (table, run)
    ]
    order, other_order = (np.argsort(one, kind="stable") for one in numbers)
    places = np.empty(len(order), np.int64)
    places[order] = other_order
    return places

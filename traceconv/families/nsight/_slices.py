"""Rows of a table of Nsight Systems become slices, a portion at a time, and launches are joined to what they launched.

A row is the times, the columns that choose the track, those that describe the event, and those that differ from row to
row. Launches repeat: the same kernel with the same grid comes thousands of times. So tracks and descriptions are made
once for each combination of values, and a row costs two look-ups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from traceconv.families.common.cupti import LAUNCH_FLOW, THROUGHPUT, throughput_gb_per_s
from traceconv.families.nsight import _schema as schema
from traceconv.families.nsight._export import Row, encoded
from traceconv.model.builder import Builder
from traceconv.model.diagnostics import ProblemKind, declare
from traceconv.model.trace import TrackId

NO_TIME = declare(
    "nsys.no_time",
    ProblemKind.LOST,
    "a row has no start, or one that is no whole number: it cannot be placed and was left out",
)
OPEN_END = declare(
    "nsys.open_end",
    ProblemKind.ABSENT,
    "a row has a start and no end: the slice was closed at the last instant of the trace and is marked `unfinished`",
)

#: Correlation ids are unsigned 32-bit numbers; what is larger is none.
_MAX_CORRELATION = 2**32


class Described(Struct, frozen=True):
    """What an event is called, its category and its args."""

    name: str
    category: str
    args: dict[str, Any]


class Shape(Struct, frozen=True):
    """How the rows of a table are read.

    Attributes:
        table: its name.
        place: the columns that choose the track; the first is a global id.
        described: the columns that describe the event.
        varying: columns of whole numbers that differ from row to row, and their names in the args; if one of them
            is "correlationId" it is the first.
        track: the track for the values of `place`.
        describe: the event for the values of `described`, by column.
        role: "call" and "work" are joined by correlationId, "" is not.
        copies: whether the throughput is shown; then "bytes" is the last of `varying`.
    """

    table: str
    place: tuple[str, ...]
    described: tuple[str, ...]
    varying: tuple[tuple[str, str], ...]
    track: Callable[..., TrackId]
    describe: Callable[[dict[str, Any]], Described]
    role: str = ""
    copies: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns, in the order of a row."""
        return ("start", "end", *self.place, *self.described, *(column for column, _ in self.varying))


class Slices:
    """Writes rows as slices; an end of 0 behind a later start is none (exports from before 2021 have no NULL)."""

    def __init__(self, out: Builder) -> None:
        self._out = out
        self._open: list[tuple[Shape, int, Row]] = []
        self.links = Links()

    def add(self, shape: Shape, first: int, rows: Sequence[Row]) -> None:
        """A portion of a table whose first row has the number `first`."""
        self.add_numbered(shape, range(first, first + len(rows)), rows)

    def add_numbered(self, shape: Shape, numbers: Sequence[int], rows: Sequence[Row]) -> None:
        """Rows with their numbers."""
        self._out.balance.read += len(rows)
        if not _all_whole(rows):
            numbers, rows = self._whole(shape, numbers, rows)
        self._write(shape, numbers, rows)

    def _whole(self, shape: Shape, numbers: Sequence[int], rows: Sequence[Row]) -> tuple[list[int], list[Row]]:
        """Those with both times; the others are skipped, or closed later."""
        kept_numbers, kept = [], []
        for number, row in zip(numbers, rows, strict=True):
            start, end = row[0], row[1]
            if type(start) is int and start > 0 and end == 0:
                end = None
            if type(start) is not int or not (end is None or type(end) is int):
                self._out.skip(NO_TIME, f"{shape.table} row {number}", f"start {start!r:.40}, end {end!r:.40}")
            elif end is None:
                self._open.append((shape, number, row))
            else:
                kept_numbers.append(number)
                kept.append(row)
        return kept_numbers, kept

    def _write(self, shape: Shape, numbers: Sequence[int], rows: Sequence[Row], extra: bytes = b"") -> None:
        if not rows:
            return
        out = self._out
        before = out.tables.slice_count
        placed_to = 2 + len(shape.place)
        described_to = placed_to + len(shape.described)
        names, categories, heads = self._described(shape, [row[placed_to:described_to] for row in rows])
        out.bulk.slices(
            self._placed(shape, [row[2:placed_to] for row in rows]),
            [row[0] for row in rows],
            [row[1] - row[0] for row in rows],
            names,
            categories,
            [_closed(args + extra) for args in _with_numbers(shape, heads, rows, described_to)],
            numbers,
        )
        out.balance.written += len(rows)
        if shape.role:
            self.links.add(shape.role, before, rows, described_to)

    def _placed(self, shape: Shape, keys: list[Row]) -> list[int]:
        known: dict[Row, int] = {}
        for key in dict.fromkeys(keys):
            known[key] = shape.track(*key)
        return [known[key] for key in keys]

    def _described(self, shape: Shape, keys: list[Row]) -> tuple[list[int], list[int], list[bytes]]:
        known: dict[Row, tuple[int, int, bytes]] = {}
        string = self._out.tables.string
        for key in dict.fromkeys(keys):
            event = shape.describe(dict(zip(shape.described, key, strict=True)))
            known[key] = (string(event.name), string(event.category), encoded(event.args))
        found = [known[key] for key in keys]
        return [one[0] for one in found], [one[1] for one in found], [one[2] for one in found]

    def close(self) -> None:
        """Write the slices that have no end, up to the last instant of all that is there."""
        last = max([self._out.tables.last_ts(), *(row[0] for _, _, row in self._open)], default=0)
        for shape, number, row in self._open:
            self._out.problem(OPEN_END, f"{shape.table} row {number}")
            self._write(shape, [number], [(row[0], last, *row[2:])], b',"unfinished":true')
        self._open.clear()

    def join(self) -> int:
        """Arrows from the calls to what they started; how many."""
        calls, works = self.links.pairs()
        name, category = self._out.tables.string("launch"), self._out.tables.string(LAUNCH_FLOW)
        count = len(calls)
        (origins,) = self._out.tables.slice_columns("origin")
        self._out.bulk.flows(calls, works, [name] * count, [category] * count, origins[works])
        return count


def _all_whole(rows: Sequence[Row]) -> bool:
    """Whether all have times as they should be: looks at the types of all at once."""
    return {type(time) for row in rows for time in row[:2]} == {int} and all(row[1] for row in rows)


def _with_numbers(shape: Shape, heads: list[bytes], rows: Sequence[Row], at: int) -> Iterable[bytes]:
    """The args with the numbers of each row, still without the closing brace."""
    result = heads
    for at_column, (column, name) in enumerate(shape.varying, at):
        form = b',"' + name.encode() + b'":%d'
        none = 0 if column == "correlationId" else None
        result = [
            head + form % row[at_column] if type(row[at_column]) is int and row[at_column] != none else head
            for head, row in zip(result, rows, strict=True)
        ]
    if shape.copies:
        rates = (throughput_gb_per_s(row[-1], row[1] - row[0]) if type(row[-1]) is int else None for row in rows)
        form = b',"' + THROUGHPUT.encode() + b'":%a'
        result = [head if rate is None else head + form % rate for head, rate in zip(result, rates, strict=True)]
    return result


def _closed(args: bytes) -> bytes:
    """A JSON object from what was put together for it; nothing for an empty one."""
    if args == b"{":
        return b""
    return b"{" + args[2:] + b"}" if args[:2] == b"{," else args + b"}"


_I64 = npt.NDArray[np.int64]
#: Stands for what is no number; no global id is the smallest one.
_NONE = -(2**63)


def _whole_numbers(values: list[Any]) -> _I64:
    """The numbers as a column, _NONE in the place of all else."""
    if {type(value) for value in values} != {int}:
        values = [value if type(value) is int else _NONE for value in values]
    return np.array(values, np.int64)


class Links:
    """Which slice is which call, and which work belongs to it: by process and correlation id."""

    def __init__(self) -> None:
        self._parts: dict[str, list[tuple[_I64, _I64, _I64]]] = {"call": [], "work": []}
        #: The process of works whose rows do not say it.
        self.process_of_work: int | None = None

    def add(self, role: str, first_slice: int, rows: Sequence[Row], correlation_at: int) -> None:
        """Slices with consecutive ids from `first_slice` on."""
        only = self.process_of_work
        processes = _whole_numbers([only if row[2] is None else row[2] for row in rows])
        correlations = _whole_numbers([row[correlation_at] for row in rows])
        joinable = (processes != _NONE) & (correlations > 0) & (correlations < _MAX_CORRELATION)
        slices = np.flatnonzero(joinable) + first_slice
        self._parts[role].append((processes[joinable] & schema.PROCESS_MASK, correlations[joinable], slices))

    def pairs(self) -> tuple[list[int], list[int]]:
        """The slices of the calls, and beside them those of the work; of several calls with one id the first."""
        call_keys, call_slices, work_keys, work_slices = self._keys()
        if not len(call_keys) or not len(work_keys):
            return [], []
        order = np.argsort(call_keys, kind="stable")
        call_keys, call_slices = call_keys[order], call_slices[order]
        at = np.searchsorted(call_keys, work_keys)
        at[at == len(call_keys)] = 0
        matched = call_keys[at] == work_keys
        return call_slices[at[matched]].tolist(), work_slices[matched].tolist()

    def _keys(self) -> tuple[_I64, _I64, _I64, _I64]:
        empty = np.empty(0, np.int64)
        columns = {
            role: [np.concatenate([empty, *(part[i] for part in parts)]) for i in range(3)]
            for role, parts in self._parts.items()
        }
        (call_process, call_ids, call_slices), (work_process, work_ids, work_slices) = columns["call"], columns["work"]
        _, number = np.unique(np.concatenate([call_process, work_process]), return_inverse=True)
        keys = number.astype(np.int64) * _MAX_CORRELATION + np.concatenate([call_ids, work_ids])
        return keys[: len(call_ids)], call_slices, keys[len(call_ids) :], work_slices

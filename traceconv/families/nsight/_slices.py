"""Turn rows of tables of Nsight Systems into slices, in batches, and connect launches with their work.

A row has times, columns that select the track, columns that describe the event, and columns that differ in each row.
Tracks and descriptions are created once for each combination of values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from traceconv.families.common import sqlite_tables
from traceconv.families.common.cupti import LAUNCH_FLOW, THROUGHPUT, throughput_gb_per_s
from traceconv.families.common.sqlite_tables import IDS_END, Known, Launches, Row, Spans, whole
from traceconv.families.nsight import _schema as schema
from traceconv.families.nsight._export import Export
from traceconv.model.builder import Builder
from traceconv.model.diagnostics import ProblemKind, declare
from traceconv.model.trace import I64, TrackId

NO_TIME = declare(
    "nsys.no_time",
    ProblemKind.LOST,
    "a row has no start, or one that is not a whole number: it cannot be placed and was left out",
)
OPEN_END = declare(
    "nsys.open_end",
    ProblemKind.ABSENT,
    "a row has a start and no end: the slice was closed at the last instant of the trace and is marked `unfinished`",
)

#: Of rows without a process; no global id is the smallest number.
_NO_PROCESS = -(2**63)
_encode = msgspec.json.Encoder(enc_hook=str).encode


class Described(NamedTuple):
    """The name, category and args of an event."""

    name: str
    category: str
    args: dict[str, Any]


class Shape(NamedTuple):
    """The mapping of a table to slices.

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


class Slices:
    """Writes the rows of a table as slices; an end of 0 behind a later start is none, as exports had it before 2021."""

    def __init__(self, shape: Shape, timeline: Timeline) -> None:
        self.shape = shape
        self._timeline = timeline
        self._out = timeline.out
        self._varying_at = 2 + len(shape.place) + len(shape.described)
        self._kinds = Known(self._kind)
        numbers = b",".join(b'"%b":%%d' % name.encode() for _, name in shape.varying)
        self._form = b"%b" + numbers + b"}"

    def _kind(self, key: Row) -> sqlite_tables.Described:
        """Return the description of rows with that key: the columns of the track, then those of the event."""
        place, described = key[: len(self.shape.place)], key[len(self.shape.place) :]
        event = self.shape.describe(dict(zip(self.shape.described, described, strict=True)))
        comma = b"," if event.args and self.shape.varying else b""
        args = _encode(event.args)[:-1] + comma
        name, category = self._out.tables.string(event.name), self._out.tables.string(event.category)
        process = self._timeline.process_of_work if key[0] is None else key[0]
        known = schema.process_of(process) if isinstance(process, int) else _NO_PROCESS
        return sqlite_tables.Described(self.shape.track(*place), name, category, args, known)

    def read(self, export: Export, start: str = "start", end: str = "end") -> None:
        """Read all rows of the table; they are instants if no column of ends is named."""
        table, columns = self.shape.table, (*self.shape.place, *self.shape.described)
        if end:
            varying = (column for column, _ in self.shape.varying)
            for first, rows in export.portions(table, (start, end, *columns, *varying)):
                self.add(range(first, first + len(rows)), rows)
            return
        placed_to = 1 + len(self.shape.place)
        for first, rows in export.portions(table, (start, *columns)):
            self._out.balance.read += len(rows)
            for number, row in enumerate(rows, first):
                if type(row[0]) is not int:
                    self._out.skip(NO_TIME, f"{table} row {number}", f"{start} {row[0]!r:.40}")
                    continue
                event = self.shape.describe(dict(zip(self.shape.described, row[placed_to:], strict=True)))
                track = self.shape.track(*row[1:placed_to])
                self._out.instant(track, row[0], event.name, event.category, event.args, number)
                self._out.balance.written += 1

    def add(self, numbers: Sequence[int], rows: Sequence[Row]) -> None:
        """Add some rows and their numbers."""
        self._out.balance.read += len(rows)
        starts, ends = whole([row[0] for row in rows]), whole([row[1] for row in rows])
        if starts is None or ends is None or not ends.all():
            numbers, rows = self._placed(numbers, rows)
            starts, ends = (np.array([row[at] for row in rows], np.int64) for at in (0, 1))
        self.write(Spans(rows, numbers, starts, ends - starts))

    def _placed(self, numbers: Sequence[int], rows: Sequence[Row]) -> tuple[list[int], list[Row]]:
        """Return the rows with start and end, and their numbers; the others are skipped, or closed later."""
        kept_numbers, kept = [], []
        for number, row in zip(numbers, rows, strict=True):
            start, end = row[0], row[1]
            if type(start) is int and start > 0 and end == 0:
                end = None
            if type(start) is not int or not (end is None or type(end) is int):
                place = f"{self.shape.table} row {number}"
                self._out.skip(NO_TIME, place, f"start {start!r:.40}, end {end!r:.40}")
            elif end is None:
                self._timeline.open.append((self, number, row))
            else:
                kept_numbers.append(number)
                kept.append(row)
        return kept_numbers, kept

    def write(self, spans: Spans, more: bytes = b"") -> None:
        """Write rows with times; `more` is appended to their args."""
        if not spans.rows:
            return
        keys = [row[2 : self._varying_at] for row in spans.rows]
        kinds = self._kinds.of(keys, keys)
        slices, processes = spans.add_to(self._out, kinds, self._args(spans, kinds, more))
        if self.shape.role:
            ids = [row[self._varying_at] for row in spans.rows]
            self._timeline.link(self.shape.role, processes, ids, slices)

    def _args(self, spans: Spans, kinds: Sequence[sqlite_tables.Described], more: bytes) -> list[bytes]:
        at, form = self._varying_at, self._form
        pairs = list(zip(kinds, spans.rows, strict=True))
        is_plain = not (more or self.shape.copies)
        if is_plain and not self.shape.varying:
            return [form % kind.args if len(kind.args) > 1 else b"" for kind in kinds]
        if is_plain and all(row[at] for row in spans.rows):
            try:
                return [form % (kind.args, *row[at:]) for kind, row in pairs]
            except TypeError:  # one of the numbers is none
                pass
        lengths = map(int, spans.dur)
        return [self._args_of(kind.args, row, dur, more) for (kind, row), dur in zip(pairs, lengths, strict=True)]

    def _args_of(self, head: bytes, row: Row, dur: int, more: bytes) -> bytes:
        """Return the args of one row; nothing for an empty object."""
        members = []
        for value, (column, name) in zip(row[self._varying_at :], self.shape.varying, strict=True):
            if type(value) is int and (value or column != "correlationId"):
                members.append(b'"%b":%d' % (name.encode(), value))
        rate = throughput_gb_per_s(row[-1], dur) if self.shape.copies and type(row[-1]) is int else None
        if rate is not None:
            members.append(b'"%b":%a' % (THROUGHPUT.encode(), rate))
        members += [more] if more else []
        inside = b",".join([head[1:].removesuffix(b",")] * (len(head) > 1) + members)
        return b"{" + inside + b"}" if inside else b""


class Timeline:
    """The state shared by the slices of all tables: open slices, and launches."""

    def __init__(self, out: Builder) -> None:
        self.out = out
        self.open: list[tuple[Slices, int, Row]] = []
        #: The process of works whose rows do not say it.
        self.process_of_work: int | None = None
        self._launches = Launches()

    def link(self, role: str, processes: I64, ids: Sequence[int | None], slices: I64) -> None:
        """Register slices as calls or work, to be linked."""
        correlations = whole(ids)
        numbers = np.array([number or 0 for number in ids], np.int64) if correlations is None else correlations
        joinable = (processes != _NO_PROCESS) & (numbers > 0) & (numbers < IDS_END)
        add = self._launches.add_calls if role == "call" else self._launches.add_work
        add(processes[joinable], numbers[joinable], slices[joinable])

    def close(self) -> None:
        """Write the slices without an end, up to the last time of the recording."""
        last = max([self.out.tables.last_ts(), *(row[0] for _, _, row in self.open)], default=0)
        for slices, number, row in self.open:
            self.out.problem(OPEN_END, f"{slices.shape.table} row {number}")
            slices.write(Spans([row], [number], [row[0]], [last - row[0]]), b'"unfinished":true')
        self.open.clear()

    def join(self) -> None:
        """Add flows from calls to the work that they launched."""
        calls, works, _, _ = self._launches.pairs()
        name, category = self.out.tables.string("launch"), self.out.tables.string(LAUNCH_FLOW)
        (origins,) = self.out.tables.slice_columns("origin")
        self.out.bulk.flows(calls, works, np.full(len(calls), name), np.full(len(calls), category), origins[works])

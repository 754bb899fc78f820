"""The tables `allocations` and `memory_steps`: memory by the operator that allocated it, and in each step."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from traceconv.answers.attribution import NONE, grouped, timelines
from traceconv.answers.device_work import first_above, is_operator, work
from traceconv.answers.operations import (
    ARG,
    AROUND,
    KEYS,
    NO_OPERATOR,
    OF_TRACKS,
    combined,
    is_around,
    key_of,
    key_of_tracks,
)
from traceconv.answers.section import Cell, Column, Section, Unit
from traceconv.answers.slice_tables import Rows, SliceTable, sums_by, table_by_stated_inputs
from traceconv.answers.steps import timed_steps
from traceconv.answers.summaries import memory_counters
from traceconv.io.shown import Counted, quantity
from traceconv.model.args import ABSENT, arg_values, as_text
from traceconv.model.columns import I64
from traceconv.model.marks import AllocationMarks
from traceconv.model.trace import Trace
from traceconv.model.trace_inputs import by_stated_inputs, inputs_of

ALLOCATIONS = Counted("event of the allocator", "events of the allocator")

# -- The table `allocations`: memory by the operator that ran when it was allocated or freed -------------------------

_ALLOCATIONS = (
    Column("device", "device", Unit.TEXT),
    Column("allocated_bytes", "allocated", Unit.BYTES),
    Column("allocated_total_bytes", "with those inside", Unit.BYTES),
    Column("freed_bytes", "freed", Unit.BYTES),
    Column("count", "allocations", Unit.COUNT),
    Column("largest_bytes", "largest", Unit.BYTES),
    Column("at_peak_bytes", "held at the peak", Unit.BYTES),
    Column("held_bytes", "held at the end", Unit.BYTES),
)
#: The most bytes of one allocation: sums of them fit 63 bits. And in place of a size that is larger, or no number.
_MOST_BYTES, _UNREADABLE = 1 << 48, 1 << 49


class _Events(Struct, frozen=True):
    """What the allocators of the inputs did, in order of time.

    Attributes:
        rows: the instants.
        size: the bytes, negative where they were freed.
        held: whether the memory was allocated, and its address not used again.
        at_peak: whether the memory was held when its process first held the most on that device, the start included.
        device: the number of the device of each in `devices`.
        operator: the number in `operators` of the operator that the file states of each, NONE without one.
        without_address, unreadable: the number of events whose address, or size, is not stated; the latter are left
            out.
    """

    rows: Rows
    size: I64
    held: npt.NDArray[np.bool_]
    at_peak: npt.NDArray[np.bool_]
    device: I64
    devices: list[str]
    operator: I64
    operators: list[str]
    without_address: int
    unreadable: int


def allocations(table: SliceTable, by: Sequence[str] = ("name",)) -> Section:
    """Return a row for each value of the keys and device with what was allocated and freed, the most at the peak first.

    The operator is the one that the file states, else the innermost one on the thread of the event; memory outside of
    operators is in the row NO_OPERATOR. Columns add up to all events, but `allocated_total_bytes`, which also counts
    what operators inside allocated, each event once for a row.

    Args:
        table: the slices; events in its window count, also if it chooses slices.
        by: the keys, as in `operations`. An arg is that of the event, else that of its operator.

    Raises:
        UsageError: a key is not known.
    """
    section = Section("allocations", (*(Column(key, key, Unit.TEXT) for key in by), *_ALLOCATIONS))
    table = table_by_stated_inputs(table)
    events = _events(table)
    if not len(events.rows):
        return section
    around = _Around(table, events, by)
    keys = [around.key(key) for key in by]
    code, texts_of = combined([(numbers, texts) for numbers, texts, _ in keys])
    count = len(events.rows)
    counts = np.all(np.stack([has_value for _, _, has_value in keys]), axis=0)
    counts[:count] = True
    event = np.append(np.arange(count), around.outer_event)[counts]
    groups, group = np.unique(
        np.stack((code[counts].astype(np.int64), events.device[event])), axis=1, return_inverse=True
    )
    group, innermost = group.reshape(-1), group.reshape(-1)[:count]
    count = groups.shape[1]
    allocated, size = np.maximum(events.size, 0), events.size
    pairs = np.unique(np.stack((group, event)), axis=1)
    largest = np.zeros(count, np.int64)
    np.maximum.at(largest, innermost, allocated)
    columns = {
        "allocated": sums_by(innermost, allocated, count),
        "total": sums_by(pairs[0], allocated[pairs[1]], count),
        "freed": sums_by(innermost, np.maximum(-size, 0), count),
        "count": sums_by(innermost, (size > 0).astype(np.int64), count),
        "largest": largest,
        "at_peak": sums_by(innermost, np.where(events.at_peak, size, 0), count),
        "held": sums_by(innermost, np.where(events.held, size, 0), count),
    }
    numbers = zip(*(column.tolist() for column in columns.values()), strict=True)
    for key, at, (*some, most, at_peak, held) in zip(*groups.tolist(), numbers, strict=True):
        known = (None, None) if events.without_address else (at_peak, held)
        cells: tuple[Cell, ...] = (*some, most or None, *known)
        section.rows.append((*texts_of(key), events.devices[at], *cells))
    order = [section.place(name) for name in ("at_peak_bytes", "allocated_bytes", "allocated_total_bytes")]
    section.rows.sort(key=lambda row: (*(-int(row[at] or 0) for at in order), *map(str, row[: len(by) + 1])))
    if events.unreadable:
        section.notes.append(f"left out: {quantity(events.unreadable, ALLOCATIONS)} without a size in bytes")
    if events.without_address:
        section.notes.append("what is held at the peak and at the end is not known: events state no address")
    section.legend.append(
        "allocated, freed: while the operator was the innermost one of its thread; held: allocated there, and its "
        "address not freed or used again; at the peak: when its process held the most on that device"
    )
    return section


def _events(table: SliceTable) -> _Events:
    """Return the events of all allocators in the window."""
    trace, instants = table.trace, table.trace.instants
    inputs, in_window = inputs_of(trace, "instants"), table.in_window(instants.ts)
    addresses, devices, operators, unreadable = _Numbers(), _Numbers(), _Numbers(), 0
    parts: list[tuple[I64, ...]] = []
    for number, source in enumerate(trace.sources):
        marks = source.marks.allocations
        if marks is None:
            continue
        rows = np.flatnonzero((inputs == number) & in_window)
        rows = rows[_named(trace, marks.names, rows)]
        where = instants.args_at[rows], instants.args_len[rows]
        at, values = arg_values(trace.args, *where, [marks.size, marks.address])
        keys = [*marks.device, *([marks.operator] if marks.operator else [])]
        owner, owners = arg_values(trace.args, *where, keys)
        size = np.array([_size(value) for value, _ in values], np.int64)[at]
        direction = np.where(_named(trace, marks.frees, rows), -1, 1)
        columns = (
            addresses.put(_place(value) for _, value in values)[at],
            devices.put(_device(marks, value[: len(marks.device)]) for value in owners)[owner],
            operators.put(_operator(marks, value[-1]) if marks.operator else None for value in owners)[owner],
        )
        kept = np.flatnonzero(size != _UNREADABLE)
        unreadable += len(rows) - len(kept)
        parts.append((rows[kept], (size * direction)[kept], *(column[kept] for column in columns)))
    nothing = (np.empty(0, np.int64),) * 5
    together = [np.concatenate(column) for column in zip(nothing, *parts, strict=True)]
    order = np.argsort(instants.ts[together[0]], kind="stable")
    rows, size, address, device_of, operator = (column[order] for column in together)
    space = table.processes[instants.track[rows]] * np.int64(len(devices.texts)) + device_of
    until = _until(space, address)
    at_peak = np.zeros(len(rows), bool)
    for _, part in grouped(space):
        number = int(np.argmax(np.append(0, np.cumsum(size[part]))))
        if number:  # else the most was held at the start, all of it from before
            peak = part[number - 1]
            at_peak[part] = (part <= peak) & (until[part] > peak)
    return _Events(
        rows,
        size,
        (until == len(rows)) & (size > 0),
        at_peak & (size > 0),
        device_of,
        devices.texts,
        operator,
        operators.texts,
        int(np.count_nonzero(address == NONE)),
        unreadable,
    )


def _named(trace: Trace, pattern: str, rows: Rows) -> npt.NDArray[np.bool_]:
    """Return which instants have a whole name that matches the pattern; none if it is ""."""
    names, at = np.unique(trace.instants.name[rows], return_inverse=True)
    accepts = [bool(pattern) and re.fullmatch(pattern, trace.strings[name]) is not None for name in names.tolist()]
    return np.array(accepts, bool)[at.reshape(-1)]


def _size(value: Any) -> int:
    return value if type(value) is int and abs(value) <= _MOST_BYTES else _UNREADABLE


def _place(address: Any) -> int | str | None:
    """Return an address as a key, None if the event states none."""
    return None if address is ABSENT else address if type(address) is int else as_text(address)


def _operator(marks: AllocationMarks, value: Any) -> str | None:
    return None if value is ABSENT or value == marks.no_operator else as_text(value) or None


def _until(space: I64, address: I64) -> I64:
    """Return for each event the number of the next one at its address, the number of all events if there is none."""
    order = np.lexsort((address, space))
    until = np.full(len(order), len(order), np.int64)
    again = (np.diff(address[order]) == 0) & (np.diff(space[order]) == 0)
    until[order[:-1][again]] = order[1:][again]
    return until


def _device(marks: AllocationMarks, values: Sequence[Any]) -> str:
    """Return the device of an event for people; -1 is no number."""
    kind, *rest = ("" if value is ABSENT else value for value in values)
    known = marks.devices.get(kind) if type(kind) is int else None
    unknown = f"device type {kind}" if marks.devices and type(kind) is int else as_text(kind)
    return " ".join(filter(None, (known or unknown, *(as_text(value) for value in rest if value != -1))))


class _Numbers:
    """Texts, or addresses, by number, in the order in which they come."""

    def __init__(self) -> None:
        self._known: dict[Any, int] = {}

    def put(self, texts: Iterable[int | str | None]) -> I64:
        """Return the number of each text; NONE for None."""
        known = self._known
        return np.array([NONE if text is None else known.setdefault(text, len(known)) for text in texts], np.int64)

    @property
    def texts(self) -> list[str]:
        return list(self._known)


class _Around:
    """The values of keys for events, and for each of the slices around them.

    Attributes:
        outer_event: the event of each of these slices.
    """

    def __init__(self, table: SliceTable, events: _Events, by: Sequence[str]) -> None:
        self._table, self._events, self._by = table, events, by
        counts = is_operator(table).copy()
        for key in AROUND.intersection(by):
            counts |= is_around(table, key)
        counts[work(table).rows] = False
        counts &= table.timed & (table.trace.slices.dur > 0)
        self._inner = self._innermost(np.flatnonzero(counts))
        above = np.full(len(counts), NONE, np.int64)
        rows = np.flatnonzero(counts)
        above[rows] = first_above(table, table.nesting.parent[rows], counts)
        event, at = np.arange(len(self._inner)), self._inner
        found = [(event[:0], at[:0])]
        while np.any(some := at != NONE):
            event, at = event[some], at[some]
            found.append((event, at))
            at = above[at]
        self.outer_event, self._outer = (np.concatenate(column) for column in zip(*found, strict=True))

    def _innermost(self, rows: Rows) -> I64:
        """Return the innermost one of some slices around each event on its thread, NONE without one."""
        slices, line_of = self._table.trace.slices, self._table.row_of_track
        instants = self._table.trace.instants
        thread = line_of[instants.track[self._events.rows]]
        rows = rows[np.isin(line_of[slices.track[rows]], thread)]
        lines = timelines(slices, rows, line_of)
        number = np.full(len(line_of), NONE, np.int64)
        used = np.unique(line_of[slices.track[rows]])
        number[used] = np.arange(len(used))
        line = number[thread]
        inner = np.full(len(line), NONE, np.int64)
        known = line != NONE
        inner[known] = lines.rows[lines.locate(line[known], instants.ts[self._events.rows[known]])]
        return inner

    def key(self, key: str) -> tuple[I64, list[str], npt.NDArray[np.bool_]]:
        """Return the number of the value of a key, the texts, and which have one: of all events, then of the slices."""
        table, events = self._table, self._events
        if key in OF_TRACKS:
            numbers, shown = key_of_tracks(table, key, table.title, "instants")
            of_event = numbers[events.rows].astype(np.int64)
            return np.append(of_event, of_event[self.outer_event]), list(shown), np.ones(self._count, bool)
        rows = np.append(self._inner, self._outer)
        if key not in AROUND:
            rows = first_above(table, rows, is_operator(table))
        numbers, shown = key_of(table, key)
        values, at = np.unique(np.append(numbers, NONE)[rows], return_inverse=True)  # the last one is that of NONE
        texts = _Numbers()
        nothing = NO_OPERATOR if key == self._by[0] and key not in AROUND else ""
        found = texts.put(nothing if value == NONE else shown[value] for value in values.tolist())[at.reshape(-1)]
        of_events = found[: len(events.rows)]
        at, of_number = self._stated(key)
        stated = texts.put([*of_number, None])[at]  # the last one is for NONE
        of_events[:] = np.where(stated == NONE, of_events, stated)
        empty = np.array([text in ("", nothing) for text in texts.texts], bool)
        return found, texts.texts, ~empty[found]

    @property
    def _count(self) -> int:
        return len(self._inner) + len(self._outer)

    def _stated(self, key: str) -> tuple[npt.NDArray[np.intp], Sequence[str | None]]:
        """Return the number of what each event itself states for a key, NONE if nothing, and the texts."""
        if key == "name":
            return self._events.operator, self._events.operators
        if key not in KEYS:  # an arg
            instants, rows = self._table.trace.instants, self._events.rows
            where = instants.args_at[rows], instants.args_len[rows]
            numbers, values = arg_values(self._table.trace.args, *where, [key.removeprefix(ARG)])
            return numbers, [None if value is ABSENT else as_text(value) for (value,) in values]
        return np.full(len(self._events.rows), NONE), ()


# -- The table `memory_steps`: the most memory that was held in each step --------------------------------------------

_STEPS = (
    Column("name", "step", Unit.TEXT),
    Column("counter", "counter", Unit.TEXT),
    Column("peak_bytes", "peak", Unit.BYTES),
    Column("first_bytes", "first", Unit.BYTES),
    Column("last_bytes", "last", Unit.BYTES),
    Column("track", "track", Unit.TEXT, detail=True),
    Column("input", "input", Unit.TEXT, detail=True),
)


def memory_steps(table: SliceTable) -> Section:
    """Return a row for each step and counter of memory of its input: the peak, and what was held at its ends.

    Counters that stay at 0, and values that are not whole bytes, are left out.
    """
    section = Section("memory_steps", _STEPS)
    trace, slices = table.trace, table.trace.slices
    steps = np.sort(timed_steps(table))
    steps = steps[table.in_window(slices.ts[steps])]
    counters = [
        (track, trace.counters.ts[whole], trace.counters.integer[whole])
        for track, values in memory_counters(table)
        if len(steps) and np.any(trace.counters.integer[whole := values[trace.counters.is_integer[values] == 1]])
    ]
    if not counters:
        return section
    stated = by_stated_inputs(trace)
    names = [source.name for source in stated.sources]
    for step, number in zip(steps.tolist(), inputs_of(stated, "slices")[steps].tolist(), strict=True):
        start, end = int(slices.ts[step]), int(slices.ts[step] + slices.dur[step])
        title = table.title(int(table.row_of_track[slices.track[step]]))
        for track, times, held in counters:
            if table.input_of(track) != names[number]:
                continue
            first = int(np.searchsorted(times, start, "right")) - 1
            known = held[max(first, 0) : int(np.searchsorted(times, end))]
            if len(known):
                sizes = int(np.max(known)), int(known[0]), int(known[-1])
                name = trace.strings[slices.name[step]]
                section.rows.append((name, table.title(track), *sizes, title, names[number]))
    if section.rows:
        section.legend.append("first: what was held when the step began, else its first value; last: when it ended")
    return section

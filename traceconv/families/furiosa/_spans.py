"""Spans of the Furiosa profiler, from any of its outputs: their tracks, callers, and the waits of an NPU.

Source: the SDK's documentation and Python sources (0.5 to 0.10); runs without an NPU confirmed those of the host.

* A span is known by its trace id and span id and names its parent, all as hex text; a parent of zeros means none.
* Host spans stand on a small thread number of a process. Spans of an NPU stand on a processing element (`pe_index`).
* `Execution` is a run of the NPU; `Load`, `Store` and operators (`LowLevelConv2d`) are its children by span id.
* Total is the duration of an Execution. Run is the sum of the durations of its operators, without Load and Store. Wait
  is total - run. Version 0.10 subtracts the other way round in unsigned 64 bits and prints 2^64 minus the wait.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from traceconv.io.spill import forget
from traceconv.model.args import join_args
from traceconv.model.builder import Builder
from traceconv.model.columns import Column, kept_rows
from traceconv.model.diagnostics import Code, absent, noted, repaired
from traceconv.model.numbers import hex_of, whole_of
from traceconv.model.ordering import chunks, like_next, stable_order
from traceconv.model.times import LIMIT_NS
from traceconv.model.trace import I64, NO_TRACK, TrackId

WRAPPED = repaired(
    "furiosa.wrapped_difference",
    "a duration of 2^63 or more is a negative difference in unsigned 64 bits: it was read as negative",
)
LOST_PARENT = absent(
    "furiosa.parent_missing",
    "the parent of a span is not in the file (the exporter drops spans when its channel is full): drawn without it",
)
SAME_ID = noted(
    "furiosa.same_span_id", "two spans of one trace have the same span id: children were assigned to the first"
)

NPU = "NPU"
EXECUTION = "Execution"
#: Spans of an NPU that are not computation.
TRANSFERS = (EXECUTION, "Load", "Store")
#: Spans of an NPU that the host sent.
_SENT_NAMES = ("Task", EXECUTION)
#: The kind of a span: of the host; of an NPU: sent by the host, a transfer, a computation.
_HOST, _SENT, _TRANSFER, _WORK = range(4)
#: The columns of a span; and of an execution, which waits for its operators: `number` is that of its span.
_SPAN = {
    **dict.fromkeys(("trace", "span", "parent", "row", "dur", "at"), np.int64),
    "track": np.int32,
    "kind": np.uint8,
}
_EXECUTION = {**dict.fromkeys(("number", "start", "args_at"), np.int64), "args_len": np.int32}
_SHORTENED = ("…", "...")  # a printed id whose end is missing stands for several traces
NO_PARENT = 0
#: Numbers of a span that the outputs print as text, or as floats with .0 behind them.
INDICES = ("pe_index", "execution_index", "instruction_index", "operator_index", "dram_base")
#: Larger process ids do not exist on Linux: such a pid was invented for a device.
LARGEST_PID = 2**22
_WRAP, _HALF = 2**64, 2**63
_MISSING = ("", "nan", "none", "null", "<na>", "nat")
_MISSING_BEGIN = "nN< "


def unwrapped(value: int) -> int:
    """Return an unsigned 64-bit number as a signed one.

    >>> unwrapped(18446744073709540605)
    -11011
    """
    return value - _WRAP if _HALF <= value < _WRAP else value


def is_missing(value: object) -> bool:
    """Return whether a cell is empty, or holds what libraries print for a missing value."""
    if isinstance(value, str):
        return not value or (value[0] in _MISSING_BEGIN and value.strip().lower() in _MISSING)
    return value is None or value != value


def whole_number(value: object) -> int | str:
    """Return an integer, also from text or with .0 behind it; else the text."""
    text = str(value).strip()
    number = whole_of(text.removesuffix(".0"))
    return text if number is None else number


def id_number(text: str) -> int:
    """Return a span id as a number; 0 without one, and for other than 64-bit hex numbers."""
    return hex_of(text) or NO_PARENT


class Span(Struct):
    """One span as an output holds it.

    Attributes:
        start, end: ns.
        thread: the thread number of the output, of a host span.
        trace, span, parent: the ids as text; empty if the output does not have them.
        args: its other fields.
        at: its event, line or row.
    """

    start: int
    end: int
    name: str
    category: str
    thread: int | str
    trace: str
    span: str
    parent: str
    args: dict[str, Any]
    at: int

    @property
    def is_npu(self) -> bool:
        return self.category == NPU


class Tracks:
    """The tracks of a recording: threads of processes, processing elements of devices."""

    def __init__(self, out: Builder) -> None:
        self._out = out
        self.processes: dict[int | None, TrackId] = {}
        self.devices: dict[int | None, TrackId] = {}
        self._threads: dict[tuple[TrackId, int | str], TrackId] = {}

    def process(self, pid: int | None) -> TrackId:
        """Return the recorded process; `pid` is None if not stated."""
        if pid not in self.processes:
            self.processes[pid] = self._out.tracks.process("furiosa host", pid=pid)
        return self.processes[pid]

    def thread(self, pid: int | None, thread: int | str) -> TrackId:
        """Return a thread of the host.

        Its number is local to the process, not a tid of the operating system.
        """
        process = self.process(pid)
        if (process, thread) not in self._threads:
            name = "threads that the table does not show" if thread == "" else f"thread {thread}"
            self._threads[process, thread] = self._out.tracks.thread(process, None, name)
        return self._threads[process, thread]

    def device(self, pid: int | None) -> TrackId:
        """Return an NPU by its invented pid; `pid` is None if there is none."""
        if pid not in self.devices:
            self.devices[pid] = self._out.tracks.add("NPU")
        return self.devices[pid]

    def element(self, pid: int | None, index: int | str | None) -> TrackId:
        """Return a processing element of an NPU; an index of None is the whole NPU."""
        device = self.device(pid)
        if index is None:
            return device
        if (device, index) not in self._threads:
            track = self._threads[device, index] = self._out.tracks.add(f"PE {index}", device)
            self._out.tracks[track].rank = index if isinstance(index, int) and index < 2**31 else None
        return self._threads[device, index]

    def name_thread(self, pid: int | None, thread: int | str, name: str) -> None:
        """Give a thread the name that it has in the recording; names of thread pools are all the same."""
        track = self._threads.get((self.processes.get(pid, NO_TRACK), thread))
        if track is not None and name:
            self._out.tracks[track].name = f"{name} (thread {thread})"


class Spans:
    """Writes spans, and at the end waits of executions, and flows from callers to callees."""

    def __init__(self, out: Builder) -> None:
        self._out = out
        self._traces: dict[str, int] = {"": 0}
        self._spans = {name: Column(dtype) for name, dtype in _SPAN.items()}
        self._executions = {name: Column(dtype) for name, dtype in _EXECUTION.items()}
        self._count = 0
        out.tables.kept_columns = [*out.tables.kept_columns, *self._spans.values(), *self._executions.values()]

    def __len__(self) -> int:
        return self._count

    def add(self, span: Span, track: TrackId) -> None:
        """Write a span on its track; executions wait for their operators."""
        difference = span.end - span.start
        dur = unwrapped(difference % 2**64)
        if dur != difference:
            self._out.problem(WRAPPED, span.at, f"{span.name!r} ends {difference} ns after its start: {dur} ns")
        span.args.update({key: text for key, text in _ids(span) if text})
        row = -1
        if span.is_npu and span.name == EXECUTION and span.span and abs(span.start) <= LIMIT_NS:
            args_at, args_len = self._out.tables.keep_args(span.args)
            _append(self._executions, (self._count, span.start, args_at, args_len))
        else:
            row = self._out.slice(track, span.start, dur, span.name, span.category, span.args, span.at)
        trace = self._traces.setdefault(span.trace, len(self._traces))
        own, parent = (id_number(span.span), id_number(span.parent)) if span.trace else (NO_PARENT, NO_PARENT)
        kind = _HOST
        if span.is_npu:
            kind = _SENT if span.name in _SENT_NAMES else _TRANSFER if span.name in TRANSFERS else _WORK
        _append(self._spans, (trace, unwrapped(own), unwrapped(parent), row, dur, span.at, track, kind))
        self._count += 1
        self._out.tables.kept_rows(self._count)
        self._out.balance.written += 1

    def finish(self) -> None:
        """Connect the spans by their ids, after all of them were added."""
        tables = self._out.tables
        own = [*self._spans.values(), *self._executions.values()]
        tables.kept_columns = [column for column in tables.kept_columns if column not in own]
        if not self._count:
            return
        arrays, mappings = kept_rows(own)
        if mappings:
            tables.kept_args(in_file=True)
        spans = dict(zip(_SPAN, arrays, strict=False))
        executions = dict(zip(_EXECUTION, arrays[len(_SPAN) :], strict=True))
        kind, track, row = (spans[name] for name in ("kind", "track", "row"))

        def drop_pages() -> None:
            for mapping in mappings:
                forget(mapping)

        parent = self._parents(spans, drop_pages)
        self._write_executions(spans, executions, parent)
        drop_pages()
        called = np.flatnonzero((parent >= 0) & (track != track[parent]))
        begins = (spans["parent"] == NO_PARENT) & (kind == _HOST)
        roots, launched = self._launches(spans["trace"], begins, (parent < 0) & (kind == _SENT))
        drop_pages()
        self._draw(row[np.concatenate([parent[called], roots])], row[np.concatenate([called, launched])])

    def _parents(self, spans: dict[str, npt.NDArray[Any]], drop_pages: Callable[[], None]) -> I64:
        """Return the number of the parent of each span, or -1."""
        trace, span, parent = (spans[name] for name in ("trace", "span", "parent"))
        order = stable_order((span, trace), drop_pages)
        first = order[np.append(True, ~like_next(order, trace, span))]
        is_first = np.zeros(len(order), bool)
        is_first[first] = True
        del order
        self._report(SAME_ID, spans["at"], np.flatnonzero(~is_first & (span != NO_PARENT)))
        known = np.unique(span[first])
        keys = trace[first] * len(known) + np.searchsorted(known, span[first])  # ascending
        drop_pages()
        found = np.full(len(trace), -1)
        for rows in chunks(len(trace)):
            wanted = parent[rows]
            at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
            key = trace[rows] * len(known) + at
            place = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
            is_there = (wanted != NO_PARENT) & (known[at] == wanted) & (keys[place] == key)
            self._report(LOST_PARENT, spans["at"], rows.start + np.flatnonzero((wanted != NO_PARENT) & ~is_there))
            is_other = first[place] != np.arange(rows.start, rows.stop)
            found[rows] = np.where(is_there & is_other, first[place], -1)
            drop_pages()
        return found

    def _report(self, code: Code, at: I64, spans: npt.NDArray[np.intp]) -> None:
        for number in spans.tolist():
            self._out.problem(code, int(at[number]))

    def _write_executions(
        self, spans: dict[str, npt.NDArray[Any]], executions: dict[str, npt.NDArray[Any]], parent: I64
    ) -> None:
        """Draw executions with run time (of their operators) and wait time (the rest)."""
        numbers = executions["number"]
        if not len(numbers):
            return
        row, dur = spans["row"], spans["dur"]
        work = np.flatnonzero((spans["kind"] == _WORK) & (parent >= 0))
        run = np.zeros(len(parent), np.int64)
        np.add.at(run, parent[work], np.maximum(dur[work], 0))
        operators = np.bincount(parent[work], minlength=len(parent))
        kept = self._out.tables.kept_args()
        for rows in chunks(len(numbers)):
            of = numbers[rows]
            columns = (of, *(spans[name][of] for name in ("track", "dur", "at")), run[of], operators[of])
            own = (executions[name][rows] for name in ("start", "args_at", "args_len"))
            for number, track, total, at, ran, count, start, args_at, args_len in zip(
                *(column.tolist() for column in (*columns, *own)), strict=True
            ):
                args = kept.get(args_at, args_len)
                if count:
                    args = join_args(args, {"npu_total_ns": total, "npu_run_ns": ran, "npu_iowait_ns": total - ran})
                row[number] = self._out.slice(track, start, total, EXECUTION, NPU, args, at)

    def _launches(
        self, trace: I64, begins: npt.NDArray[np.bool_], sent: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Return the spans sent to the NPU without a parent, each with the only host span that starts its trace."""
        whole = np.array([bool(text) and not text.endswith(_SHORTENED) for text in self._traces])
        roots = np.flatnonzero(begins & whole[trace])
        counts = np.bincount(trace[roots], minlength=len(self._traces))
        root_of = np.zeros(len(self._traces), np.intp)
        root_of[trace[roots]] = roots
        launched = np.flatnonzero(sent & (counts[trace] == 1))
        return root_of[trace[launched]], launched

    def _draw(self, sources: I64, targets: I64) -> None:
        tables = self._out.tables
        name, category = (np.full(len(sources), tables.string(text), np.int32) for text in ("", "furiosa"))
        origins = tables.slice_columns("origin")[0][targets]
        self._out.bulk.flows(sources, targets, name, category, origins)


def _append(columns: dict[str, Column], values: Sequence[int]) -> None:
    for column, value in zip(columns.values(), values, strict=True):
        column.append(value)


def _ids(span: Span) -> tuple[tuple[str, str], ...]:
    parent = span.parent if span.parent.strip("0") else ""
    return (("trace_id", span.trace), ("span_id", span.span), ("parent_span_id", parent))

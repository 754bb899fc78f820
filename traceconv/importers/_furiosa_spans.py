"""Spans of the Furiosa profiler, of any of its outputs: what runs where, who called whom, how long an NPU waited.

Facts from the SDK's documentation and Python sources (0.5 to 0.10); runs without an NPU confirmed those of the host.

* A span is known by its trace id and span id and names its parent, all as hex text; a parent of zeros means none.
* Host spans stand on a small thread number of a process. Spans of an NPU stand on a processing element (`pe_index`).
* `Execution` is a run of the NPU; `Load`, `Store` and operators (`LowLevelConv2d`) are its children by span id.
* Total is the duration of an Execution. Run is the sum of the durations of its operators, without Load and Store. Wait
  is total - run. Version 0.10 subtracts the other way round in unsigned 64 bits and prints 2^64 minus the wait.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from traceconv.diagnostics import Severity, declare
from traceconv.ir.builder import Builder
from traceconv.ir.trace import I64, NO_TRACK, TrackId

WRAPPED = declare(
    "furiosa.wrapped_difference",
    Severity.NOTICE,
    "a duration of 2^63 or more is a difference that wrapped around in unsigned 64 bits: read as the number that it is",
)
LOST_PARENT = declare(
    "furiosa.parent_missing",
    Severity.NOTICE,
    "the parent of a span is not in the file (the exporter drops spans when its channel is full): drawn without it",
)
SAME_ID = declare(
    "furiosa.same_span_id",
    Severity.NOTICE,
    "two spans of one trace have the same span id: children were given to the first",
)

NPU = "NPU"
EXECUTION = "Execution"
#: Spans of an NPU that are no computation.
TRANSFERS = (EXECUTION, "Load", "Store")
#: Spans of an NPU that the host waits for.
_SENT = ("Task", EXECUTION)
_SHORTENED = ("…", "...")  # a printed id whose end is missing stands for several traces
NO_PARENT = 0
#: Numbers of a span that the outputs print as text, or as floats with .0 behind them.
INDICES = ("pe_index", "execution_index", "instruction_index", "operator_index", "dram_base")
#: Larger process ids do not exist on Linux: such a pid was invented for a device.
LARGEST_PID = 2**22
_WRAP, _HALF = 2**64, 2**63
_MISSING = ("", "nan", "none", "null", "<na>", "nat")


def unwrapped(value: int) -> int:
    """The signed number that an unsigned one of 64 bits stands for.

    >>> unwrapped(18446744073709540605)
    -11011
    """
    return value - _WRAP if _HALF <= value < _WRAP else value


def is_missing(value: object) -> bool:
    """Whether a cell is empty, in the words of the libraries that print tables."""
    return value is None or (isinstance(value, str) and value.strip().lower() in _MISSING) or value != value


def whole_number(value: object) -> int | str:
    """The whole number that a value is, also as text or with .0 behind it; else its text."""
    text = str(value).strip()
    digits = text.removesuffix(".0")
    return int(digits) if digits.lstrip("-").isdecimal() and len(digits) < 24 else text


def id_number(text: str) -> int:
    """A span id as a number; 0 for none and for what is no hex number of 64 bits."""
    try:
        value = int(text, 16)
    except ValueError:
        return NO_PARENT
    return value if 0 <= value < _WRAP else NO_PARENT


@dataclass(slots=True)
class Span:
    """One span as an output holds it.

    Attributes:
        start, end: ns.
        thread: the thread number of the output, of a host span.
        trace, span, parent: the ids as text; empty if the output does not have them.
        args: what else it says.
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
        """The process that was recorded; None if the output does not say its pid."""
        if pid not in self.processes:
            self.processes[pid] = self._out.process("furiosa host", pid=pid)
        return self.processes[pid]

    def thread(self, pid: int | None, thread: int | str) -> TrackId:
        """A thread of the host. Its number counts the threads of the process, it is none of the operating system."""
        process = self.process(pid)
        if (process, thread) not in self._threads:
            name = "threads that the table does not show" if thread == "" else f"thread {thread}"
            self._threads[process, thread] = self._out.thread(process, None, name)
        return self._threads[process, thread]

    def device(self, pid: int | None) -> TrackId:
        """An NPU, known by the pid that was invented for it; None if there is none."""
        if pid not in self.devices:
            self.devices[pid] = self._out.track("NPU")
        return self.devices[pid]

    def element(self, pid: int | None, index: int | str | None) -> TrackId:
        """A processing element of an NPU; None for what concerns all of it."""
        device = self.device(pid)
        if index is None:
            return device
        if (device, index) not in self._threads:
            track = self._threads[device, index] = self._out.track(f"PE {index}", device)
            self._out.track_info(track).rank = index if isinstance(index, int) and index < 2**31 else None
        return self._threads[device, index]

    def name_thread(self, pid: int | None, thread: int | str, name: str) -> None:
        """Give a thread the name that it has in the recording; names of thread pools are all alike."""
        track = self._threads.get((self.processes.get(pid, NO_TRACK), thread))
        if track is not None and name:
            self._out.track_info(track).name = f"{name} (thread {thread})"


@dataclass(slots=True)
class _Columns:
    """The spans so far, one row each: what joins them."""

    trace: array[int] = field(default_factory=lambda: array("q"))
    span: array[int] = field(default_factory=lambda: array("Q"))
    parent: array[int] = field(default_factory=lambda: array("Q"))
    track: array[int] = field(default_factory=lambda: array("q"))
    row: array[int] = field(default_factory=lambda: array("q"))
    dur: array[int] = field(default_factory=lambda: array("q"))
    is_npu: bytearray = field(default_factory=bytearray)
    is_work: bytearray = field(default_factory=bytearray)
    is_sent: bytearray = field(default_factory=bytearray)
    at: array[int] = field(default_factory=lambda: array("q"))


class Spans:
    """Writes spans, and at the end what joins them: waits of executions, arrows from callers to what they called."""

    def __init__(self, out: Builder) -> None:
        self._out = out
        self._columns = _Columns()
        self._traces: dict[str, int] = {"": 0}
        self._executions: list[tuple[int, TrackId, Span, int]] = []

    def __len__(self) -> int:
        return len(self._columns.row)

    def add(self, span: Span, track: TrackId) -> None:
        """Write a span on its track; executions wait for their operators."""
        difference = span.end - span.start
        dur = unwrapped(difference % 2**64)
        if dur != difference:
            self._out.problem(WRAPPED, span.at, f"{span.name!r} ends {difference} ns after its start: {dur} ns")
        columns = self._columns
        span.args.update({key: text for key, text in _ids(span) if text})
        columns.trace.append(self._traces.setdefault(span.trace, len(self._traces)))
        columns.span.append(id_number(span.span) if span.trace else NO_PARENT)
        columns.parent.append(id_number(span.parent) if span.trace else NO_PARENT)
        columns.track.append(track)
        columns.dur.append(dur)
        columns.is_npu.append(span.is_npu)
        columns.is_work.append(span.is_npu and span.name not in TRANSFERS)
        columns.is_sent.append(span.name in _SENT)
        columns.at.append(span.at)
        if span.is_npu and span.name == EXECUTION and span.span:
            self._executions.append((len(columns.row), track, span, dur))
            columns.row.append(-1)
        else:
            columns.row.append(self._out.slice(track, span.start, dur, span.name, span.category, span.args, span.at))
        self._out.balance.written += 1

    def finish(self) -> None:
        """Join the spans by their ids. All of them must be there."""
        if not len(self):
            return
        columns = self._columns
        trace, span = np.array(columns.trace, np.int64), np.array(columns.span, np.uint64)
        parent = self._parents(trace, span, np.array(columns.parent, np.uint64))
        self._write_executions(parent)
        row, track = np.array(columns.row, np.int64), np.array(columns.track, np.int64)
        called = np.flatnonzero((parent >= 0) & (track != track[parent]))
        sources, targets = [row[parent[called]]], [row[called]]
        roots, launched = self._launches(trace, parent < 0)
        self._draw(np.concatenate([*sources, row[roots]]), np.concatenate([*targets, row[launched]]))

    def _parents(self, trace: I64, span: npt.NDArray[np.uint64], parent: npt.NDArray[np.uint64]) -> I64:
        """For each span the number of its parent among the spans, or -1."""
        known, place = np.unique(span, return_inverse=True)
        keys, first = np.unique(trace * len(known) + place, return_index=True)
        named = np.flatnonzero(span != NO_PARENT)
        repeated = np.setdiff1d(named, first)
        self._report(SAME_ID, repeated)
        at = np.minimum(np.searchsorted(known, parent), len(known) - 1)
        wanted = trace * len(known) + at
        found = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        is_there = (parent != NO_PARENT) & (known[at] == parent) & (keys[found] == wanted)
        self._report(LOST_PARENT, np.flatnonzero((parent != NO_PARENT) & ~is_there))
        return np.where(is_there & (first[found] != np.arange(len(trace))), first[found], -1)

    def _report(self, code: Any, spans: npt.NDArray[np.intp]) -> None:
        for number in spans.tolist():
            self._out.problem(code, self._columns.at[number])

    def _write_executions(self, parent: I64) -> None:
        """Executions with the time that their operators ran, and the rest, which is what they waited."""
        columns = self._columns
        work = np.flatnonzero(np.frombuffer(columns.is_work, np.uint8).astype(bool) & (parent >= 0))
        run = np.zeros(len(parent), np.int64)
        np.add.at(run, parent[work], np.maximum(np.array(columns.dur, np.int64)[work], 0))
        operators = np.bincount(parent[work], minlength=len(parent))
        for number, track, span, total in self._executions:
            if operators[number]:
                ran = int(run[number])
                span.args |= {"npu_total_ns": total, "npu_run_ns": ran, "npu_iowait_ns": total - ran}
            args = (span.name, span.category, span.args, span.at)
            columns.row[number] = self._out.slice(track, span.start, total, *args)

    def _launches(self, trace: I64, top: npt.NDArray[np.bool_]) -> tuple[I64, I64]:
        """What was sent to the NPU and has no parent in the file, and the one host span that begins its trace."""
        columns = self._columns
        is_npu = np.frombuffer(columns.is_npu, np.uint8).astype(bool)
        is_sent = np.frombuffer(columns.is_sent, np.uint8).astype(bool)
        whole = np.array([bool(text) and not text.endswith(_SHORTENED) for text in self._traces])
        begins = (np.array(columns.parent, np.uint64) == NO_PARENT) & ~is_npu & whole[trace]
        roots = np.flatnonzero(begins)
        counts = np.bincount(trace[roots], minlength=len(self._traces))
        root_of = np.zeros(len(self._traces), np.int64)
        root_of[trace[roots]] = roots
        launched = np.flatnonzero(top & is_npu & is_sent & (counts[trace] == 1))
        return root_of[trace[launched]], launched

    def _draw(self, sources: I64, targets: I64) -> None:
        count = len(sources)
        origins = np.array(self._out.slice_columns()["origin"], np.int64)[targets].tolist()
        name, category = [self._out.string("")] * count, [self._out.string("furiosa")] * count
        self._out.flows(sources.tolist(), targets.tolist(), name, category, origins)


def _ids(span: Span) -> tuple[tuple[str, str], ...]:
    parent = span.parent if span.parent.strip("0") else ""
    return (("trace_id", span.trace), ("span_id", span.span), ("parent_span_id", parent))

"""Spans of the Furiosa profiler, from any of its outputs: their tracks, callers, and the waits of an NPU.

Source: the SDK's documentation and Python sources (0.5 to 0.10); runs without an NPU confirmed those of the host.

* A span is known by its trace id and span id and names its parent, all as hex text; a parent of zeros means none.
* Host spans stand on a small thread number of a process. Spans of an NPU stand on a processing element (`pe_index`).
* `Execution` is a run of the NPU; `Load`, `Store` and operators (`LowLevelConv2d`) are its children by span id.
* Total is the duration of an Execution. Run is the sum of the durations of its operators, without Load and Store. Wait
  is total - run. Version 0.10 subtracts the other way round in unsigned 64 bits and prints 2^64 minus the wait.
"""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from traceconv.model.builder import Builder
from traceconv.model.diagnostics import Code, absent, noted, repaired
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
_WIDTH = 8
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
    text = value if isinstance(value, str) else str(value)
    if text.isdecimal() and len(text) < 24:  # nearly all
        return int(text)
    text = text.strip()
    digits = text.removesuffix(".0")
    return int(digits) if digits.removeprefix("-").isdecimal() and len(digits) < 24 else text


def id_number(text: str) -> int:
    """Return a span id as a number; 0 without one, and for other than 64-bit hex numbers."""
    try:
        value = int(text, 16)
    except ValueError:
        return NO_PARENT
    return value if 0 <= value < _WRAP else NO_PARENT


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
        self._fields = array("q")  # _WIDTH of them for each span
        self._traces: dict[str, int] = {"": 0}
        self._executions: list[tuple[int, TrackId, Span, int]] = []
        self._at = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self._fields) // _WIDTH

    def add(self, span: Span, track: TrackId) -> None:
        """Write a span on its track; executions wait for their operators."""
        difference = span.end - span.start
        dur = unwrapped(difference % 2**64)
        if dur != difference:
            self._out.problem(WRAPPED, span.at, f"{span.name!r} ends {difference} ns after its start: {dur} ns")
        span.args.update({key: text for key, text in _ids(span) if text})
        row = -1
        if span.is_npu and span.name == EXECUTION and span.span:
            self._executions.append((len(self), track, span, dur))
        else:
            row = self._out.slice(track, span.start, dur, span.name, span.category, span.args, span.at)
        trace = self._traces.setdefault(span.trace, len(self._traces))
        own, parent = (id_number(span.span), id_number(span.parent)) if span.trace else (NO_PARENT, NO_PARENT)
        kind = _HOST
        if span.is_npu:
            kind = _SENT if span.name in _SENT_NAMES else _TRANSFER if span.name in TRANSFERS else _WORK
        self._fields.extend((trace, unwrapped(own), unwrapped(parent), track, row, dur, kind, span.at))
        self._out.balance.written += 1

    def finish(self) -> None:
        """Connect the spans by their ids, after all of them were added."""
        if not len(self):
            return
        fields = np.array(self._fields, np.int64).reshape(-1, _WIDTH).T
        trace, span, named, track, row, dur, kind, self._at = fields
        parent = self._parents(trace, span, named)
        self._write_executions(row, parent, dur, kind)
        called = np.flatnonzero((parent >= 0) & (track != track[parent]))
        roots, launched = self._launches(trace, (named == NO_PARENT) & (kind == _HOST), (parent < 0) & (kind == _SENT))
        self._draw(row[np.concatenate([parent[called], roots])], row[np.concatenate([called, launched])])

    def _parents(self, trace: I64, span: I64, parent: I64) -> I64:
        """Return the number of the parent of each span, or -1."""
        known, place = np.unique(span, return_inverse=True)
        keys, first = np.unique(trace * len(known) + place, return_index=True)
        named = np.flatnonzero(span != NO_PARENT)
        repeated = np.setdiff1d(named, first)
        self._report(SAME_ID, repeated)
        at = np.minimum(np.searchsorted(known, parent), len(known) - 1)
        wanted = trace * len(known) + at
        positions = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        is_there = (parent != NO_PARENT) & (known[at] == parent) & (keys[positions] == wanted)
        self._report(LOST_PARENT, np.flatnonzero((parent != NO_PARENT) & ~is_there))
        return np.where(is_there & (first[positions] != np.arange(len(trace))), first[positions], -1)

    def _report(self, code: Code, spans: npt.NDArray[np.intp]) -> None:
        for number in spans.tolist():
            self._out.problem(code, int(self._at[number]))

    def _write_executions(self, row: I64, parent: I64, dur: I64, kind: I64) -> None:
        """Draw executions with run time (of their operators) and wait time (the rest)."""
        work = np.flatnonzero((kind == _WORK) & (parent >= 0))
        run = np.zeros(len(parent), np.int64)
        np.add.at(run, parent[work], np.maximum(dur[work], 0))
        operators = np.bincount(parent[work], minlength=len(parent))
        for number, track, span, total in self._executions:
            if operators[number]:
                ran = int(run[number])
                span.args |= {"npu_total_ns": total, "npu_run_ns": ran, "npu_iowait_ns": total - ran}
            row[number] = self._out.slice(track, span.start, total, span.name, span.category, span.args, span.at)

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
        count = len(sources)
        origins = self._out.tables.slice_columns("origin")[0][targets].tolist()
        name, category = [self._out.tables.string("")] * count, [self._out.tables.string("furiosa")] * count
        self._out.bulk.flows(sources.tolist(), targets.tolist(), name, category, origins)


def _ids(span: Span) -> tuple[tuple[str, str], ...]:
    parent = span.parent if span.parent.strip("0") else ""
    return (("trace_id", span.trace), ("span_id", span.span), ("parent_span_id", parent))

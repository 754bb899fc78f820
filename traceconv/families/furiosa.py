"""Traces of the Furiosa profiler (Warboy): `FURIOSA_PROFILER_OUTPUT_PATH`, `profile(file=f)`, `export_chrome_trace`.

    [{"args":{"end_ts":"1795244784928257084","parent_span_id":"0000000000000000","span_id":"5a692d6d2100cc4d",
     "start_ts":"1795244784926050005","thread.id":"1","trace_id":"c772"},"cat":"","dur":2207.079,"name":"inner",
     "ph":"X","pid":17251,"tid":1,"ts":1926.087}
    ,{"args":{"name":"0x5"},"name":"thread_name","ph":"M","pid":17251,"tid":5}
    ]

Source: the SDK's sources and documentation (0.5 to 0.10), and runs of the runtimes 0.10.0 to 0.10.4 without an NPU: the
args hold the start and the end in ns since 1970, as text; `ts` and `dur` count microseconds from the start of the
exporter. All numbers in args are text. An NPU has an invented pid beyond those of processes, named `npu:0:0-1`.
Metadata come last. The file is written when the program ends, so a killed program leaves it empty.

`export_chrome_trace` writes less: microseconds from the first span, no ids, one pid for all, and an NPU as threads from
10000000 on.

* A span is known by its trace id and span id and names its parent, all as hex text; a parent of zeros means none.
* Host spans stand on a small thread number of a process. Spans of an NPU stand on a processing element (`pe_index`).
* `Execution` is a run of the NPU; `Load`, `Store` and operators (`LowLevelConv2d`) are its children by span id.
* Total is the duration of an Execution. Run is the sum of the durations of its operators, without Load and Store. Wait
  is total - run. Version 0.10 subtracts the other way round in unsigned 64 bits and prints 2^64 minus the wait.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from traceconv.families.chrome import document
from traceconv.families.chrome.event import ABSENT, Event, members_of, text_of
from traceconv.families.chrome.events import EMPTY_EVENT, ChromeEvents, args_of
from traceconv.families.chrome.json_reader import ChromeReader
from traceconv.families.importer import Importer, Match, Signature
from traceconv.io.source import Head, Source
from traceconv.io.spill import forget
from traceconv.model.args import join_args
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME, ClockDomain, Run, Zero
from traceconv.model.columns import I64, Column, chunks, kept_rows, like_next, stable_order
from traceconv.model.diagnostics import METADATA, Code, absent, noted, repaired
from traceconv.model.marks import DeviceMarks, FormatMarks
from traceconv.model.numbers import LIMIT_NS, decimal_of, decode_json, hex_of, whole_of
from traceconv.model.track_table import NO_TRACK, TrackId

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
TIMES_DIFFER = noted(
    "furiosa.times_differ",
    "ts and dur of a span differ from start_ts and end_ts in its args by more than 1 µs: the latter were used",
)
BAD_SPAN_TIME = repaired(
    "furiosa.bad_span_time", "start_ts or end_ts of a span is not a number: ts and dur were used instead"
)

NPU = "NPU"
EXECUTION = "Execution"
#: Numbers of a span that the outputs print as text, or as floats with .0 behind them.
INDICES = ("pe_index", "execution_index", "instruction_index", "operator_index", "dram_base")
IDS = ("trace_id", "span_id", "parent_span_id")
_TIMES = ("start_ts", "end_ts")
#: Larger process ids do not exist on Linux: such a pid was invented for a device.
_LARGEST_PID = 2**22
#: Threads from here on are processing elements, in the export of the data frame.
_ELEMENTS = 10_000_000
_SLACK_NS = 1000  # ts and dur are floats
_SHORTENED = ("…", "...")  # a printed id whose end is missing stands for several traces
_NO_PARENT = 0
_MISSING = ("", "nan", "none", "null", "<na>", "nat")
#: The kind of a span: of the host; of an NPU: sent by the host, a transfer, a computation.
_HOST, _SENT, _TRANSFER, _WORK = range(4)
_NPU_KINDS = {"Task": _SENT, EXECUTION: _SENT, "Load": _TRANSFER, "Store": _TRANSFER}
#: The columns of a span; and of an execution, which waits for its operators: `number` is that of its span.
_SPAN = {
    **dict.fromkeys(("trace", "span", "parent", "row", "dur", "at"), np.int64),
    "track": np.int32,
    "kind": np.uint8,
}
_EXECUTION = {**dict.fromkeys(("number", "start", "args_at"), np.int64), "args_len": np.int32}
_EXPORTED = re.compile(rb'"cat"\s*:\s*"Nux"|"cat"\s*:\s*"NPU"[^{}]{0,2000}"tid"\s*:\s*1000\d{4}\b')
_FROM_FIRST = ClockDomain("Furiosa profiler time", Zero.RUN_START, Run.WALL)


def unwrapped(value: int) -> int:
    """Return an unsigned 64-bit number as a signed one.

    >>> unwrapped(18446744073709540605)
    -11011
    """
    return value - 2**64 if 2**63 <= value < 2**64 else value


def is_missing(value: object) -> bool:
    """Return whether a cell is empty, or holds what libraries print for a missing value."""
    if isinstance(value, str):
        return not value or (value[0] in "nN< " and value.strip().lower() in _MISSING)
    return value is None or value != value


def whole_number(value: object) -> int | str:
    """Return an integer, also from text or with .0 behind it; else the text."""
    text = str(value).strip()
    number = whole_of(text.removesuffix(".0"))
    return text if number is None else number


def id_number(text: str) -> int:
    """Return a span id as a number; 0 without one, and for other than 64-bit hex numbers."""
    return hex_of(text) or _NO_PARENT


class Span(Struct):
    """One span as an output holds it: its start and end in ns, its ids as text ("" if the output has none).

    `at` is its event, line or row.
    """

    start: int
    end: int
    name: str
    category: str
    thread: int | str
    args: dict[str, Any]
    at: int
    trace: str
    span: str
    parent: str

    @property
    def is_npu(self) -> bool:
        return self.category == NPU

    def ids(self) -> dict[str, str]:
        parent = self.parent if self.parent.strip("0") else ""
        return {key: text for key, text in zip(IDS, (self.trace, self.span, parent), strict=True) if text}


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
        """Return a thread of the host, whose number is local to the process: it is no tid."""
        process = self.process(pid)
        if (process, thread) not in self._threads:
            name = "threads that the table does not show" if thread == "" else f"thread {thread}"
            self._threads[process, thread] = self._out.tracks.thread(process, None, name)
        return self._threads[process, thread]

    def device(self, pid: int | None) -> TrackId:
        """Return an NPU by its invented pid; `pid` is None if there is none."""
        if pid not in self.devices:
            self.devices[pid] = self._out.tracks.add(NPU)
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

    def rename(self, kind: str, pid: int, thread: int | str, name: str) -> None:
        """Give a device, process or thread the name in the recording; names of thread pools are all the same."""
        tracks = self._out.tracks
        if kind == "process_name" and pid in self.devices:
            tracks[self.devices[pid]].name = name or NPU
        elif kind == "process_name" and pid in self.processes:
            tracks[self.processes[pid]].name = name or "furiosa host"
        elif kind == "thread_name" and name:
            track = self._threads.get((self.processes.get(pid, NO_TRACK), thread))
            if track is not None:
                tracks[track].name = f"{name} (thread {thread})"


class Spans:
    """Writes spans, and at the end waits of executions, and flows from callers to callees."""

    def __init__(self, out: Builder) -> None:
        self._out = out
        self._traces: dict[str, int] = {"": 0}
        self._spans = {name: Column(dtype) for name, dtype in _SPAN.items()}
        self._executions = {name: Column(dtype) for name, dtype in _EXECUTION.items()}
        self.count = 0
        out.tables.kept_columns = [*out.tables.kept_columns, *self._spans.values(), *self._executions.values()]

    def add(self, span: Span, track: TrackId) -> None:
        """Write a span on its track; executions wait for their operators."""
        difference = span.end - span.start
        dur = unwrapped(difference % 2**64)
        if dur != difference:
            self._out.problem(WRAPPED, span.at, f"{span.name!r} ends {difference} ns after its start: {dur} ns")
        span.args.update(span.ids())
        row = -1
        if span.is_npu and span.name == EXECUTION and span.span and abs(span.start) <= LIMIT_NS:
            _append(self._executions, (self.count, span.start, *self._out.tables.keep_args(span.args)))
        else:
            row = self._out.slice(track, span.start, dur, span.name, span.category, span.args, span.at)
        trace = self._traces.setdefault(span.trace, len(self._traces))
        number, parent = (id_number(text) if span.trace else _NO_PARENT for text in (span.span, span.parent))
        kind = _NPU_KINDS.get(span.name, _WORK) if span.is_npu else _HOST
        _append(self._spans, (trace, unwrapped(number), unwrapped(parent), row, dur, span.at, track, kind))
        self.count += 1
        self._out.tables.kept_rows(self.count)
        self._out.balance.written += 1

    def finish(self) -> None:
        """Connect the spans by their ids, after all of them were added."""
        tables = self._out.tables
        columns = [*self._spans.values(), *self._executions.values()]
        tables.kept_columns = [column for column in tables.kept_columns if column not in columns]
        if not self.count:
            return
        arrays, mappings = kept_rows(columns)
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
        begins = (spans["parent"] == _NO_PARENT) & (kind == _HOST)
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
        self._report(SAME_ID, spans["at"], np.flatnonzero(~is_first & (span != _NO_PARENT)))
        known = np.unique(span[first])
        keys = trace[first] * len(known) + np.searchsorted(known, span[first])  # ascending
        drop_pages()
        found = np.full(len(trace), -1)
        for rows in chunks(len(trace)):
            wanted = parent[rows]
            at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
            key = trace[rows] * len(known) + at
            place = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
            is_there = (wanted != _NO_PARENT) & (known[at] == wanted) & (keys[place] == key)
            self._report(LOST_PARENT, spans["at"], rows.start + np.flatnonzero((wanted != _NO_PARENT) & ~is_there))
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
        if not len(executions["number"]):
            return
        row, dur = spans["row"], spans["dur"]
        work = np.flatnonzero((spans["kind"] == _WORK) & (parent >= 0))
        run = np.zeros(len(parent), np.int64)
        np.add.at(run, parent[work], np.maximum(dur[work], 0))
        operators = np.bincount(parent[work], minlength=len(parent))
        kept = self._out.tables.kept_args()
        for rows in chunks(len(executions["number"])):
            numbers = executions["number"][rows]
            columns = [numbers, *(spans[name][numbers] for name in ("track", "dur", "at")), run[numbers]]
            columns += [operators[numbers], *(executions[name][rows] for name in ("start", "args_at", "args_len"))]
            for number, track, total, at, ran, count, start, *place in zip(
                *(column.tolist() for column in columns), strict=True
            ):
                args = kept.get(*place)
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


def _append(columns: dict[str, Column], values: tuple[int, ...]) -> None:
    for column, value in zip(columns.values(), values, strict=True):
        column.append(value)


class FuriosaEvents(ChromeEvents):
    def __init__(self, out: Builder) -> None:
        super().__init__(out)
        self._spans = Spans(out)
        self._tracks = Tracks(out)
        #: Times since 1970 less `ts`, ns; 0 if no event states both, None before the first one.
        self.offset: int | None = None
        self._names: list[tuple[str, int | str, int | str, str]] = []
        others = {phase: handler for phase, handler in self._handlers.items() if phase != "X"}
        self._handlers |= {phase: self._shifted(handler) for phase, handler in others.items()}

    def add(self, batch: list[Event]) -> None:
        """Add the events of a batch. The first span with both of its times gives their offset."""
        if self.offset is None and batch:
            self.offset = self._find_offset(batch)
        super().add(batch)

    def _find_offset(self, batch: list[Event]) -> int:
        for event in batch:
            times = _stated_times(members_of(event)) if event.ph == "X" else None
            try:
                if times is not None:
                    return times[0] - self.time(bytes(event.ts))
            except ValueError:
                continue
        return 0

    def _shifted(self, handler: Any) -> Any:
        return lambda event, ts, number: handler(event, ts + (self.offset or 0), number)

    def finish(self, frames: dict[str, Any] | None = None) -> None:
        """Join the spans and name the tracks."""
        self._spans.finish()
        super().finish(frames)
        for kind, pid, tid, name in self._names:
            if isinstance(pid, int):
                self._tracks.rename(kind, pid, tid, name)

    def complete(self, event: Event, ts: int, number: int) -> None:
        """Read X: a span, by the times in its args if it has them."""
        args = members_of(event)
        if event.extra or event.id is not ABSENT or (not args and event.args is not ABSENT):
            args = decode_json(args_of(self.out, event, number) or b"{}")
        stated = _stated_times(args)
        start = ts + (self.offset or 0)
        times = self._span_times(event, start, stated, args, number)
        if times is None:
            super().complete(event, start, number)
            return
        pid, tid = _numbers(event)
        used = (*IDS, "thread.id", *(_TIMES if stated is not None else ()))
        rest = {key: value for key, value in args.items() if key not in used}
        rest |= {key: whole_number(rest[key]) for key in INDICES if key in rest}
        thread = whole_number(args.get("thread.id", tid))
        span = Span(*times, event.name, event.cat, thread, rest, number, *(str(args.get(key, "")) for key in IDS))
        self._spans.add(span, self._place(span, pid if isinstance(pid, int) else None, tid))

    def _span_times(
        self, event: Event, start: int, stated: tuple[int, int] | None, args: dict[str, Any], number: int
    ) -> tuple[int, int] | None:
        """Return start and end of a span in ns, those that its args state if any; None if it has no duration."""
        if stated is None and "start_ts" in args:
            self.out.problem(BAD_SPAN_TIME, number, f"start_ts {args['start_ts']!r}, end_ts {args.get('end_ts')!r}")
        try:
            end = start + self._duration(event, number)
        except ValueError:
            return stated
        if stated is None or not self.offset:
            return start, end
        if max(abs(stated[0] - start), abs(unwrapped((stated[1] - stated[0]) % 2**64) - (end - start))) > _SLACK_NS:
            self.out.problem(TIMES_DIFFER, number, f"{event.name!r}: start {stated[0] - start} ns off")
        return stated

    def _duration(self, event: Event, number: int) -> int:
        """Return `dur` in ns, also if it wrapped around. Raises ValueError if it is not a number."""
        raw = bytes(event.dur)
        try:
            return self.time(raw)
        except ValueError:
            exact = decimal_of(text_of(raw))
            value = -1 if exact is None else int(exact * 1000)
            if not 2**63 <= value < 2**64:
                raise
            if "start_ts" not in members_of(event):
                self.out.problem(WRAPPED, number, f"{event.name!r} has dur {text_of(raw)}: {unwrapped(value)} ns")
            return unwrapped(value)

    def _place(self, span: Span, pid: int | None, tid: int | str) -> TrackId:
        if not span.is_npu:
            return self._tracks.thread(pid, span.thread)
        if isinstance(tid, int) and tid >= _ELEMENTS:
            return self._tracks.element(None, span.args.get("pe_index", tid - _ELEMENTS))
        return self._tracks.element(pid, span.args.get("pe_index"))

    def new_process(self, pid: int | str) -> TrackId:
        """Return a process, or a device if no process can have such a number."""
        if isinstance(pid, str):
            return super().new_process(pid)
        is_device = pid in self._tracks.devices or pid > _LARGEST_PID
        return self._tracks.device(pid) if is_device else self._tracks.process(pid)

    def new_thread(self, process: TrackId, pid: int | str, tid: int | str) -> TrackId:
        """Return a thread of the host, or the part beside the processing elements of a device."""
        if process in self._tracks.devices.values():
            return self._tracks.element(pid if isinstance(pid, int) else None, None)
        return self._tracks.thread(pid, tid) if isinstance(pid, int) else super().new_thread(process, pid, tid)

    def metadata(self, event: Event, number: int) -> None:
        """Read M: names come last in the file; they are given when all tracks are known."""
        if event.name not in ("process_name", "thread_name", "thread_sort_index", "process_sort_index"):
            super().metadata(event, number)
            return
        self.out.balance.merged[METADATA] += 1
        self._names.append((event.name, *_numbers(event), str(members_of(event).get("name") or "")))


def _numbers(event: Event) -> tuple[int | str, int | str]:
    return whole_number(text_of(bytes(event.pid))), whole_number(text_of(bytes(event.tid)))


def _stated_times(args: dict[str, Any]) -> tuple[int, int] | None:
    """Return start and end in ns since 1970, as the args of a span hold them."""
    start, end = (whole_number(args.get(key, "")) for key in _TIMES)
    if isinstance(start, int) and isinstance(end, int) and min(start, end) >= 0 and max(start, end) < 2**64:
        return start, end
    return None


@dataclass(frozen=True)
class Furiosa(Importer):
    name = "furiosa"
    title = "Furiosa profiler trace (Warboy NPU)"
    url = "https://furiosa-ai.github.io/docs/latest/en/software/profiler.html"
    versions = "SDK 0.5 to 0.10; the file of the runtime and export_chrome_trace (tried without an NPU)"
    signature = Signature('"parent_span_id" | "nux" | "npu"')
    clock = REALTIME
    record = "FURIOSA_PROFILER_OUTPUT_PATH=trace.json python run.py"
    skips = (EMPTY_EVENT,)

    line_up = (
        "The file of the runtime counts from 1970: nothing is needed. That of export_chrome_trace counts from its "
        "first span: use --offset."
    )
    becomes = (
        ("host: query, operator on the CPU, record() of the user", "slice on its thread"),
        ("NPU: execution, load, store, operator", "slice on its processing element"),
        ("durations of the operators of an execution", "args npu_total_ns, npu_run_ns, npu_iowait_ns of the execution"),
        ("parent on another track, one host span at the top of the trace", "flow"),
        ("async pair", "slice on a track of its own"),
    )
    lost = (
        "Spans that the exporter dropped (channel full) show only as missing parents.",
        "export_chrome_trace keeps no ids and no absolute time: no flows, no waits, no clock.",
        "Threads are numbered from 1: the file holds no tids.",
    )
    unrecorded = "no NPU was at hand, and no public file of one was found: spans of the host are all that was recorded."
    marks = FormatMarks(steps="Inference", devices=DeviceMarks(r".* / PE [^/(]*"))

    def sniff(self, head: Head) -> Match:
        """Return YES by the args of the runtime's file, or by categories and threads of the exporter."""
        text = head.text
        if text[:1] not in (b"[", b"{") or b'"ph"' not in text:
            return Match.no("no JSON with events (ph)")
        if all(f'"{key}"'.encode() in text for key in (*IDS, *_TIMES)):
            return Match.yes("spans with start_ts, end_ts, span_id, parent_span_id and trace_id")
        if _EXPORTED.search(text):
            return Match.yes("category Nux, or NPU on threads from 10000000 on")
        return Match.no("no spans with start_ts and parent_span_id, no category Nux")

    def read(self, source: Source, out: Builder) -> None:
        """Read all events. Raises MalformedInput when nothing can be read."""
        if not source.head().data:
            raise source.malformed(
                "the file is empty, expected a JSON array",
                hint="the profiler writes it when the program exits normally; was it killed?",
            )
        reader = ChromeReader(source, out)
        events = FuriosaEvents(out)
        for batch in reader.batches():
            events.add(batch)
        document.top_level(reader, out)
        events.finish()
        if not events.offset:
            out.clocks.set_default(_FROM_FIRST)
            out.note("the file has no start_ts (export_chrome_trace): its times count from the first span")

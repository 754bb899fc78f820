"""Traces of the Furiosa profiler (Warboy): `FURIOSA_PROFILER_OUTPUT_PATH`, `profile(file=f)`, `export_chrome_trace`.

    [{"args":{"end_ts":"1795244784928257084","parent_span_id":"0000000000000000","span_id":"5a692d6d2100cc4d",
     "start_ts":"1795244784926050005","thread.id":"1","trace_id":"c772"},"cat":"","dur":2207.079,"name":"inner",
     "ph":"X","pid":17251,"tid":1,"ts":1926.087}
    ,{"args":{"name":"0x5"},"name":"thread_name","ph":"M","pid":17251,"tid":5}
    ]

Source: the SDK's sources and documentation, and from runs of the runtimes 0.10.0 to 0.10.4 without an NPU: the args
hold the start and the end in ns since 1970, as text; `ts` and `dur` count microseconds from the start of the exporter.
All numbers in args are text. An NPU has an invented pid beyond those of processes, named `npu:0:0-1`. Metadata come
last. The file is written when the program ends, so a killed program leaves it empty.

`export_chrome_trace` writes less: microseconds from the first span, no ids, one pid for all, and an NPU as threads from
10000000 on.

`_spans` connects the spans.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from traceconv.families.chrome import document
from traceconv.families.chrome.event import ABSENT, Event, members_of, text_of
from traceconv.families.chrome.events import EMPTY_EVENT, ChromeEvents, args_of
from traceconv.families.chrome.json_reader import ChromeReader
from traceconv.families.furiosa._spans import (
    INDICES,
    LARGEST_PID,
    NPU,
    WRAPPED,
    Span,
    Spans,
    Tracks,
    unwrapped,
    whole_number,
)
from traceconv.families.importer import Match
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME, ClockDomain, Run, Zero
from traceconv.model.counted import METADATA
from traceconv.model.diagnostics import noted, repaired
from traceconv.model.json_values import decode_json
from traceconv.model.marks import DeviceMarks, FormatMarks
from traceconv.model.numbers import decimal_of
from traceconv.model.trace import TrackId

TIMES_DIFFER = noted(
    "furiosa.times_differ",
    "ts and dur of a span differ from start_ts and end_ts in its args by more than 1 µs: the latter were used",
)
BAD_SPAN_TIME = repaired(
    "furiosa.bad_span_time", "start_ts or end_ts of a span is not a number: ts and dur were used instead"
)

_WALL = replace(REALTIME)
_FROM_FIRST = ClockDomain("Furiosa profiler time", Zero.RUN_START, Run.WALL)
_SLACK_NS = 1000  # ts and dur are floats
#: Threads from here on are processing elements, in the export of the data frame.
_ELEMENTS = 10_000_000
_TIMES = ("start_ts", "end_ts")
_IDS = ("trace_id", "span_id", "parent_span_id", "thread.id")
_USED = (*_IDS, *_TIMES)
_KEYS = tuple(f'"{key}"'.encode() for key in ("start_ts", "end_ts", "span_id", "parent_span_id", "trace_id"))
_EXPORTED = re.compile(rb'"cat"\s*:\s*"Nux"|"cat"\s*:\s*"NPU"[^{}]{0,2000}"tid"\s*:\s*1000\d{4}\b')


class FuriosaEvents(ChromeEvents):
    """Turns the events of one trace into rows."""

    def __init__(self, out: Builder) -> None:
        super().__init__(out)
        self.spans = Spans(out)
        self._tracks = Tracks(out)
        self._offset: int | None = None
        self._names: list[tuple[str, int | str, int | str, dict[str, Any]]] = []
        others = {phase: handler for phase, handler in self._handlers.items() if phase != "X"}
        self._handlers |= {phase: self._shifted(handler) for phase, handler in others.items()}

    @property
    def absolute(self) -> bool:
        """Whether times count from 1970."""
        return bool(self._offset)

    def add(self, batch: list[Event]) -> None:
        """Add the events of a batch. The first span with both of its times gives their offset."""
        if self._offset is None and batch:
            self._offset = self._find_offset(batch)
        super().add(batch)

    def _find_offset(self, batch: list[Event]) -> int:
        """Return the offset of `ts` to the time since 1970, ns; 0 if no event states both."""
        for event in batch:
            times = _own_times(members_of(event)) if event.ph == "X" else None
            try:
                if times is not None:
                    return times[0] - self.time(bytes(event.ts))
            except ValueError:
                continue
        return 0

    def _shifted(self, handler: Any) -> Any:
        return lambda event, ts, number: handler(event, ts + (self._offset or 0), number)

    def finish(self, frames: dict[str, Any] | None = None) -> None:
        """Join the spans and name the tracks."""
        self.spans.finish()
        super().finish(frames)
        for kind, pid, tid, args in self._names:
            self._name(kind, pid, tid, args)

    # -- spans ------------------------------------------------------------------------------------------------

    def complete(self, event: Event, ts: int, number: int) -> None:
        """Read X: a span, by the times in its args if it has them."""
        args = members_of(event)
        if event.extra or event.id is not ABSENT or (not args and event.args is not ABSENT):
            args = decode_json(args_of(self.out, event, number) or b"{}")
        own = _own_times(args)
        times = self._span_times(event, ts, own, args, number)
        if times is None:
            super().complete(event, ts + (self._offset or 0), number)
            return
        pid, tid = (whole_number(text_of(bytes(raw))) for raw in (event.pid, event.tid))
        thread = whole_number(args.get("thread.id", tid))
        ids = [str(args.get(key, "")) for key in ("trace_id", "span_id", "parent_span_id")]
        used = _USED if own is not None else _IDS
        rest = {key: value for key, value in args.items() if key not in used}
        rest |= {key: whole_number(rest[key]) for key in INDICES if key in rest}
        span = Span(*times, event.name, event.cat, thread, ids[0], ids[1], ids[2], rest, number)
        self.spans.add(span, self._place(span, pid, tid))

    def _span_times(
        self, event: Event, ts: int, own: tuple[int, int] | None, args: dict[str, Any], number: int
    ) -> tuple[int, int] | None:
        """Start and end of a span in ns, by its `own` times in the args; None if its duration cannot be read."""
        if own is None and "start_ts" in args:
            self.out.problem(BAD_SPAN_TIME, number, f"start_ts {args['start_ts']!r}, end_ts {args.get('end_ts')!r}")
        start = ts + (self._offset or 0)
        try:
            end = start + self._duration(event, number)
        except ValueError:
            return own
        if own is None or not self._offset:
            return start, end
        if max(abs(own[0] - start), abs(unwrapped((own[1] - own[0]) % 2**64) - (end - start))) > _SLACK_NS:
            self.out.problem(TIMES_DIFFER, number, f"{event.name!r}: start {own[0] - start} ns off")
        return own

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

    def _place(self, span: Span, pid: int | str, tid: int | str) -> TrackId:
        if not span.is_npu:
            return self._tracks.thread(pid if isinstance(pid, int) else None, span.thread)
        if isinstance(tid, int) and tid >= _ELEMENTS:
            return self._tracks.element(None, span.args.get("pe_index", tid - _ELEMENTS))
        return self._tracks.element(pid if isinstance(pid, int) else None, span.args.get("pe_index"))

    # -- tracks of other events -------------------------------------------------------------------------------

    def new_process(self, pid: int | str) -> TrackId:
        """Return a process, or a device if no process can have such a number."""
        if isinstance(pid, str):
            return super().new_process(pid)
        return (
            self._tracks.device(pid) if pid in self._tracks.devices or pid > LARGEST_PID else self._tracks.process(pid)
        )

    def new_thread(self, process: TrackId, pid: int | str, tid: int | str) -> TrackId:
        """Return a thread of the host, or the part beside the processing elements of a device."""
        if process in self._tracks.devices.values():
            return self._tracks.element(pid if isinstance(pid, int) else None, None)
        return self._tracks.thread(pid, tid) if isinstance(pid, int) else super().new_thread(process, pid, tid)

    # -- names ------------------------------------------------------------------------------------------------

    def metadata(self, event: Event, number: int) -> None:
        """Read M: names come last in the file; they are given when all tracks are known."""
        if event.name not in ("process_name", "thread_name", "thread_sort_index", "process_sort_index"):
            super().metadata(event, number)
            return
        self.out.balance.merged[METADATA] += 1
        pid, tid = (whole_number(text_of(bytes(raw))) for raw in (event.pid, event.tid))
        self._names.append((event.name, pid, tid, members_of(event)))

    def _name(self, kind: str, pid: int | str, tid: int | str, args: dict[str, Any]) -> None:
        if not isinstance(pid, int):
            return
        name = str(args.get("name") or "")
        if kind == "process_name" and pid in self._tracks.devices:
            self.out.tracks[self._tracks.devices[pid]].name = name or NPU
        elif kind == "process_name" and pid in self._tracks.processes:
            self.out.tracks[self._tracks.processes[pid]].name = name or "furiosa host"
        elif kind == "thread_name":
            self._tracks.name_thread(pid, tid, name)


def _own_times(args: dict[str, Any]) -> tuple[int, int] | None:
    """Start and end in ns since 1970, as the args of a span hold them."""
    start, end = (whole_number(args.get(key, "")) for key in _TIMES)
    both = isinstance(start, int) and isinstance(end, int) and min(start, end) >= 0 and max(start, end) < 2**64
    return (start, end) if both else None  # type: ignore[return-value]


@dataclass(frozen=True)
class Furiosa:
    """Importer of Furiosa profiler traces."""

    name: ClassVar[str] = "furiosa"
    title: ClassVar[str] = "Furiosa profiler trace (Warboy NPU)"
    url: ClassVar[str] = "https://furiosa-ai.github.io/docs/latest/en/software/profiler.html"
    versions: ClassVar[str] = "SDK 0.5 to 0.10; the file of the runtime and export_chrome_trace (tried without an NPU)"
    clock: ClassVar[ClockDomain] = _WALL
    record: ClassVar[str] = "FURIOSA_PROFILER_OUTPUT_PATH=trace.json python run.py"
    marks = FormatMarks(steps="Inference", devices=DeviceMarks(r".* / PE [^/(]*"))
    becomes: ClassVar[tuple[tuple[str, str], ...]] = (
        ("span of the host: query, operator on the CPU, record() of the user", "slice on its thread"),
        ("span of the NPU: execution, load, store, operator", "slice on its processing element"),
        ("durations of the operators of an execution", "args npu_total_ns, npu_run_ns, npu_iowait_ns of the execution"),
        ("parent on another track, one host span at the top of the trace", "flow"),
        ("async pair", "slice on a track of its own"),
    )
    skips = (EMPTY_EVENT,)
    lost: ClassVar[tuple[str, ...]] = (
        "Spans that the exporter dropped because its channel was full show only as missing parents.",
        "export_chrome_trace keeps no ids and no absolute time: no flows, no waits, no clock.",
        "Threads are numbered from 1; the file does not hold their tids.",
    )
    line_up: ClassVar[str] = (
        "Times in the file of the runtime count from 1970: nothing is needed. Those of export_chrome_trace "
        "count from its first span: use --offset."
    )
    unrecorded = (
        "no NPU was at hand, and no public file of one was found: spans of the host are all that was recorded. "
        "Goldens are made by hand after the sources in docs/formats.md."
    )
    checked: ClassVar[tuple[tuple[str, str, str], ...]] = (
        (
            "furiosa-native-runtime 0.10.0 to 0.10.4",
            "recorded without an NPU",
            "layout, fields, clock and threads of host spans",
        ),
        (
            "SDK 0.5 to 0.10",
            "documentation and Python sources of furiosa-ai/furiosa-sdk; no file of an NPU could be found",
            "fields of NPU spans, what export_chrome_trace writes",
        ),
        (
            "furiosa-native-runtime 2026.2.1 (RNGD)",
            "texts in the library of the wheel",
            "the exporter names the same fields; nothing could be recorded without an NPU",
        ),
    )

    def sniff(self, head: Head) -> Match:
        """Return YES by the args of the runtime's file, or by categories and threads of the exporter."""
        text = head.text
        if text[:1] not in (b"[", b"{") or b'"ph"' not in text:
            return Match.no("no JSON with events (ph)")
        if all(key in text for key in _KEYS):
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
        if not events.absolute:
            out.clocks.set_default(_FROM_FIRST)
            out.note("the file has no start_ts (export_chrome_trace): its times count from the first span")

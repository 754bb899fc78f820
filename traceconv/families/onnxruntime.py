"""ONNX Runtime profiles: what `SessionOptions.enable_profiling` writes.

    [
    {"cat" : "Session","pid" :11,"tid" :11,"dur" :952,"ts" :3,"ph" : "X","name" :"model_loading_uri","args" : {}},
    {"cat" : "Node","pid" :11,"tid" :11,"dur" :235,"ts" :34961,"ph" : "X","name" :"conv1_kernel_time",
     "args" : {"op_name" : "Conv","node_index" : "32","output_type_shape" : [{"float":[1,32,32,32]}]}},

Source: the source (core/common/profiler.cc, gpu_profiler_common.h) and from runs of 0.3 to 1.31: one event per line
with these fields only, whole microseconds since the profiler started, every arg a string unless it begins with { or [.
Up to 1.30 names are written without escapes, so a quote in a node name breaks the JSON; the shared reader repairs it.
GPU events have pid and tid -1 and follow the event that launched them.

A fork (AlexanderPuckhaber/onnxruntime) adds Linux perf counters to each `_kernel_time` event, among the other args,
under names that the user chose: every unknown key with an unsigned integer is taken for one.

When the profiler started is not in the file. On Linux it is a reading of the wall clock, which the program can print
(`get_profiling_start_time_ns`, option start_ns); the name of the file has it as local time, in seconds, since 1.25 in
milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Raw

from traceconv.families.chrome import document
from traceconv.families.chrome.event import Event, text_of
from traceconv.families.chrome.events import EMPTY_EVENT, ChromeEvents, args_of
from traceconv.families.chrome.json_reader import ChromeReader
from traceconv.families.common.local_time import local_time, refuse_zone, seconds_since_1970, zone_of, zone_option
from traceconv.families.importer import Importer, Match, Signature, option
from traceconv.io.source import Head, Source
from traceconv.model.args import join_args
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME, ClockDomain, ClockSnapshot, Provenance, Run, Zero, looks_like_unix_time
from traceconv.model.diagnostics import absent, noted
from traceconv.model.marks import COMMUNICATION, NOT_COMPUTED, CountMarks, DeviceMarks, FlopMarks, FormatMarks
from traceconv.model.numbers import whole, whole_of
from traceconv.model.source_info import Layer
from traceconv.model.trace import SliceId
from traceconv.model.track_table import NO_TRACK, TrackId

#: The profiler stops recording after this many events of one session.
EVENT_LIMIT = 1_000_000

TRUNCATED = absent(
    "onnxruntime.truncated",
    "the profiler reached its limit of events and recorded nothing after that: profile fewer runs",
)
ALL_ZERO = noted(
    "onnxruntime.counters_all_zero",
    "all perf counters are 0 in every layer: the CPU has too few counters for these events; record fewer of them",
)
NO_VALUE = absent(
    "onnxruntime.counter_no_value",
    "a perf counter holds 2^64-1, which means that it could not be read: kept as text in the args only",
)
PERF_ERROR = noted(
    "onnxruntime.perf_error",
    "the perf counters of a layer could not be read; the first line of the error is the arg `perf_error`",
)

_WITHOUT_EVENTS = re.compile(rb"\[\r?\n\]\s*")
#: The fields of every event; there are no others.
_FIELDS = frozenset(("cat", "pid", "tid", "dur", "ts", "ph", "name", "args"))
_CATEGORIES = frozenset(("Session", "Node", "Kernel", "Api"))
_NAME_TIME = re.compile(r"_(\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d)(?:_(\d{1,3}))?\.json(?:\.gz)?$", re.ASCII)
#: The time from making the file name to reading the clock, ns: opening the file on a local disk.
_OPENING_NS = 40_000

_SUFFIX = "_kernel_time"
_DEVICE = b"-1"
_INTEGER = re.compile(rb'"-?(?:0|[1-9]\d{0,19})"')
_NO_READING = b'"18446744073709551615"'
_ERROR_PREFIX = "perf error"

_LEVELS = ("mem_bytes_in_use", "mem_bytes_requested_in_use", "mem_arena_held", "mem_in_use_peak")
_DELTAS = ("mem_in_use_delta", "mem_requested_in_use_delta", "mem_arena_held_delta")
_INDICES = ("graph_index", "exec_plan_index", "node_index", "stream", "ort_correlation_id")
_SIZES = ("activation_size", "parameter_size", "output_size", "dropped_event_count", "max_num_events")
_GRID = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")
_NUMBERS = frozenset((*_INDICES, *_SIZES, *_GRID, *_LEVELS, *_DELTAS))
_OTHERS = frozenset(
    ("op_name", "provider", "thread_scheduling_stats", "input_type_shape", "output_type_shape", "parent_name")
)
_KNOWN = _NUMBERS | _OTHERS

#: By the operators of ONNX and com.microsoft. Inputs lack weights that a kernel keeps in another form.
_FLOPS = FlopMarks(
    "input_type_shape",
    {
        **dict.fromkeys(("Conv", "FusedConv", "NhwcFusedConv"), ("output_convolution", ())),
        **dict.fromkeys(("MatMul", "FusedMatMul", "Gemm", "FusedGemm"), ("output_product", ())),
        **dict.fromkeys(
            (
                *("ConvTranspose", "ConvInteger", "QLinearConv", "Einsum", "MatMulInteger", "QLinearMatMul", "QGemm"),
                *("MatMulNBits", "MatMulIntegerToFloat", "DynamicQuantizeMatMul", "GemmFloat8", "LSTM", "GRU", "RNN"),
                *("Attention", "MultiHeadAttention", "GroupQueryAttention", "QAttention", "PackedAttention"),
            ),
            NOT_COMPUTED,
        ),
    },
    {
        "float": ("float32", 4),
        "double": ("float64", 8),
        "float16": ("float16", 2),
        "bfloat16": ("bfloat16", 2),
        "int32": ("int32", 4),
    },
    outputs="output_type_shape",
    calls=("op_name", "provider"),  # fences have no provider
    how="later versions record them, such as 1.12",
)
_COUNTER_HELP = (
    "perf counter per layer: drawn from the start of the layer to its end, 0 between layers. It counts only the thread "
    "that runs the layer (not the threads of its pool) and only user mode"
)
_LEVEL_HELP = "memory of the allocator of this execution provider at the end of each node"
_STEADY = ClockDomain("steady clock of ONNX Runtime", Zero.BOOT, Run.MONOTONIC)

_decode_object = msgspec.json.Decoder(dict[str, Raw]).decode
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True)
class OnnxRuntime(Importer):
    name = "onnxruntime"
    title = "ONNX Runtime profile"
    url = "https://onnxruntime.ai/docs/performance/tune-performance/profiling-tools.html"
    versions = "0.3 to 1.31; the fork with perf counters for each layer"
    signature = Signature('"cat" & "session" | "cat" & "node" | [\n] | [\r\n]')
    clock = ClockDomain("ONNX Runtime profiler time", Zero.RUN_START, Run.WALL, 1000)
    layer = Layer.FRAMEWORK
    record = "options = onnxruntime.SessionOptions(); options.enable_profiling = True; ...; session.end_profiling()"
    skips = (EMPTY_EVENT,)
    counters: bool = option(True, "draw perf counters and memory as counter tracks (they are in the args in any case).")
    utc_offset: str = option(
        "",
        'the time zone of the machine that recorded, as "+02:00": the name of the file holds local time.',
    )
    start_ns: int | None = option(
        None,
        "what `session.get_profiling_start_time_ns()` returned; better than the name of the file.",
    )

    line_up = (
        "The file is named after its start in local time (to 1 ms, 1 s before 1.25): keep the name, and give the "
        "zone with --tz FILE=+02:00. For an exact start, use -O start_ns=N with N from "
        "session.get_profiling_start_time_ns()."
    )
    with_perf = (
        "# In run.py: options.enable_profiling = True, and at the end this line, which prints NUMBER and PROFILE:\n"
        "print(session.get_profiling_start_time_ns(), session.end_profiling())\n"
        "# In a terminal:\n"
        "perf record -k CLOCK_MONOTONIC -F 999 -g -o perf.data -- python -X perf run.py\n"
        "traceconv report PROFILE perf.data -O start_ns=NUMBER -O symbols=true --same-machine --section layers"
    )
    becomes = (
        ("nodes (`_kernel_time`, `_fence_*`)", "slices on their thread, with op, provider, shapes and sizes as args"),
        ("session and model events", "slices"),
        ("GPU kernels", "slices on a track of the device"),
        ("perf counters of the fork", "args and counters for each node"),
        ("launch and kernel", "flows"),
    )
    marks = FormatMarks(
        launch_flows="launch",
        devices=DeviceMarks(
            r"(?:.* / )?GPU(?: / stream .*)?", copies="(?i:^mem(?:cpy|set))", communication=COMMUNICATION
        ),
        libraries="onnxruntime",
        shapes=("input_type_shape",),
        steps="model_run",
        spans="(?:Sequential|Parallel)Executor::Execute",
        unmeasured="Kernel",
        flops=(_FLOPS,),
        memory=rf"(?:{'|'.join(_LEVELS)})(?: \(.*\))?",
        # Every other number among the args is a counter of the fork.
        counts=CountMarks(("Node",), rf"(?!(?:{'|'.join(sorted(_KNOWN))})$).+"),
    )

    def sniff(self, head: Head) -> Match:
        """Return YES for events with the fields, the categories and the kinds of values that ONNX Runtime writes."""
        events = head.json.objects
        whole = [event for event in events if _is_event(event)]  # others are parts of damaged events
        if 10 * len(whole) > 9 * len(events) and any(event["cat"] in ("Session", "Node") for event in whole):
            return Match.yes("events of a session or of nodes, with the fields of ONNX Runtime and no others")
        if head.complete and _WITHOUT_EVENTS.fullmatch(head.text):
            return Match.maybe("an array without events, in two lines as ONNX Runtime writes it")
        return Match.no("no events, or not only such with the fields and categories of ONNX Runtime")

    def read(self, source: Source, out: Builder) -> None:
        """Read all events. Raises MalformedInput when nothing can be read."""
        out.info.real_ids = True
        zone = zone_of(self.name, self.utc_offset)
        reader = ChromeReader(source, out)
        events = OnnxRuntimeEvents(out, self.counters)
        for batch in reader.batches():
            events.add(batch)
        document.top_level(reader, out)
        events.finish()
        self._tell_start(source.name, zone, out)

    def _tell_start(self, name: str, zone: timezone, out: Builder) -> None:
        """Add the snapshot of the start of the profiler, if it is known."""
        if self.start_ns is not None:
            refuse_zone(self.name, self.utc_offset, name, "start_ns says when it began")
            method = "start time given by the user (get_profiling_start_time_ns)"
            other = REALTIME if looks_like_unix_time(self.start_ns) else _STEADY
            if other is not REALTIME:
                out.note("start_ns is not a time since 1970 (the clock of Windows and macOS): the date is not known")
            user = Provenance.USER
            out.clocks.snapshot(ClockSnapshot(self.clock, 0, other, self.start_ns, 1000, method, provenance=user))
            return
        stated = _time_in_name(name, zone)
        if stated is None:
            return
        start, step, precision = stated
        half = (step + _OPENING_NS) // 2
        method = f"start time in the file name (local time read as {zone}), good to {precision}"
        question = ""
        if not self.utc_offset:
            question = (
                "the local time in the file name was read as UTC; if the machine was in another zone, give it: "
                + zone_option(name)
            )
            out.note(question)
        local = local_time(zone, guessed=not self.utc_offset, question=question)
        out.clocks.snapshot(
            ClockSnapshot(self.clock, 0, REALTIME, start + half, half, method, local, Provenance.ASSUMED)
        )


def _is_event(event: dict[str, Any]) -> bool:
    """Return whether an event can be of this profiler, whose args are texts, shapes and statistics, never numbers."""
    args = event.get("args")
    return (
        event.keys() == _FIELDS
        and event["ph"] == "X"
        and isinstance(event["cat"], str)
        and event["cat"] in _CATEGORIES
        and all(type(event[key]) is int for key in ("pid", "tid", "dur", "ts"))
        and isinstance(args, dict)
        and all(isinstance(value, str | list | dict) for value in args.values())
    )


def _time_in_name(name: str, zone: timezone) -> tuple[int, int, str] | None:
    """Return the start in the name of a profile: Unix ns, the step of the digits in ns, and the step in words."""
    match = _NAME_TIME.search(name)
    if match is None:
        return None
    try:
        moment = datetime.strptime(match[1], "%Y-%m-%d_%H-%M-%S")
    except ValueError:
        return None
    seconds = seconds_since_1970(moment, zone)
    if match[2] is None:
        return seconds * 10**9, 10**9, "1 s"
    return seconds * 10**9 + whole(match[2]) * 10**6, 10**6, "1 ms"


class _Layer(NamedTuple):
    """One reading of the perf counters: the interval of a layer in ns, its values, its event."""

    start: int
    end: int
    values: dict[str, int]
    at: int


class _DeviceEvent(NamedTuple):
    """A GPU event to be connected with the node that launched it."""

    row: SliceId
    ts: int
    before: int  # the slice of the last host event before it in the file, if that is its parent; else -1
    parent: str  # the displayed name of the parent, if the event states it
    at: int


class OnnxRuntimeEvents(ChromeEvents):
    def __init__(self, out: Builder, counters: bool) -> None:
        super().__init__(out)
        self._draw_counters = counters
        self._layers: dict[TrackId, list[_Layer]] = {}
        self._levels: dict[tuple[TrackId, str, str], TrackId] = {}
        self._gpu = NO_TRACK
        self._streams: dict[str, TrackId] = {}
        self._device_events: list[_DeviceEvent] = []
        self._last_host: tuple[int, str, bytes] = (-1, "", b"")
        self._host_events = 0
        self._truncated = False

    def new_process(self, pid: int | str) -> TrackId:
        return self.out.tracks.process("onnxruntime", pid=pid) if isinstance(pid, int) else self.out.tracks.process(pid)

    def complete(self, event: Event, ts: int, number: int) -> None:
        """Read X: anything that the profiler records."""
        raw = args_of(self.out, event, number)
        args = _decode_object(raw) if raw else {}
        if bytes(event.pid) == _DEVICE and bytes(event.tid) == _DEVICE:
            self._device_event(event, args, ts, number)
            return
        self._host_events += 1
        try:
            dur = self.time(bytes(event.dur))
        except ValueError:
            super().complete(event, ts, number)
            return
        op_name = bytes(args.get("op_name", b""))
        track = self.place(event)
        name = event.name
        if event.cat == "Node" and name.endswith(_SUFFIX):
            name = self._node(event, args, track, ts, max(dur, 0), number)
        elif name == "profile_truncated":
            self._truncated = True
            dropped = text_of(bytes(args.get("dropped_event_count", b"")))
            self.out.problem(TRUNCATED, number, f"{dropped} events were dropped" if dropped else "")
        row = self.out.slice(track, ts, dur, name, event.cat, _typed(args), number)
        self.out.balance.written += 1
        self._last_host = (row, event.name, op_name)

    def _node(self, event: Event, args: dict[str, Raw], track: TrackId, ts: int, dur: int, number: int) -> str:
        """Return the displayed name of a node; note its counters."""
        self._perf_counters(args, track, ts, dur, number)
        if self._draw_counters:
            self._memory(args, self.process(bytes(event.pid)), ts + dur, number)
        name = event.name.removesuffix(_SUFFIX)
        if name:
            return document.misread_backslashes(name)
        args["event"] = Raw(_encode(event.name))  # a node without a name, up to 1.2
        return text_of(bytes(args.get("op_name", b""))) or event.name

    # -- counters ---------------------------------------------------------------------------------------------

    def _perf_counters(self, args: dict[str, Raw], track: TrackId, ts: int, dur: int, number: int) -> None:
        """Find the counters of the fork among the args, and make them numbers there."""
        values: dict[str, int] = {}
        for key in [key for key in args if key not in _KNOWN]:
            raw = bytes(args[key])
            if key.startswith(_ERROR_PREFIX):
                message = key.split("\n", 1)[0].removeprefix(_ERROR_PREFIX).lstrip(": ")
                del args[key]
                args["perf_error"] = Raw(_encode(message))
                self.out.problem(PERF_ERROR, number, message)
            elif raw == _NO_READING:
                self.out.problem(NO_VALUE, number, key)
            elif raw[1:2] != b"-" and (value := _number(raw)) is not None:
                values[key] = value
                args[key] = Raw(raw[1:-1])
        if values:
            self._layers.setdefault(track, []).append(_Layer(ts, ts + dur, values, number))

    def _memory(self, args: dict[str, Raw], process: TrackId, ts: int, number: int) -> None:
        """Draw the levels of memory after a node (since 1.28)."""
        provider = bytes(args.get("provider", b""))
        for key in _LEVELS:
            level = _number(bytes(args.get(key, b"")))
            if level is None:
                continue
            identity = (process, key, text_of(provider))
            track = self._levels.get(identity)
            if track is None:
                name = f"{key} ({identity[2]})" if provider else key
                track = self.out.tracks.counter(name, process, unit="bytes", description=_LEVEL_HELP)
                self._levels[identity] = track
            self.out.counter(track, ts, level, number)

    # -- devices ----------------------------------------------------------------------------------------------

    def _device_event(self, event: Event, args: dict[str, Raw], ts: int, number: int) -> None:
        """Draw a kernel or a copy: pid and tid are -1, the stream is among the args."""
        track = self._stream(text_of(bytes(args.get("stream", b""))))
        parent = text_of(bytes(args.get("parent_name", b'""')))
        op_name = bytes(args.get("op_name", b""))
        row_before, name_before, op_before = self._last_host
        fits = name_before == parent if parent else bool(op_name) and op_name == op_before
        try:
            dur, data = self.time(bytes(event.dur)), _typed(args)
        except ValueError:
            dur, data = 0, join_args(_typed(args), {"unfinished": True})
        row = self.out.slice(track, ts, dur, event.name, event.cat, data, number)
        self.out.balance.written += 1
        before = row_before if fits else -1
        self._device_events.append(_DeviceEvent(row, ts, before, parent.removesuffix(_SUFFIX), number))

    def _stream(self, stream: str) -> TrackId:
        if self._gpu == NO_TRACK:
            self._gpu = self.out.tracks.add("GPU")
        if not stream:
            return self._gpu
        track = self._streams.get(stream)
        if track is None:
            track = self._streams[stream] = self.out.tracks.add(f"stream {stream}", self._gpu)
        return track

    # -- the end ----------------------------------------------------------------------------------------------

    def finish(self, frames: dict[str, object] | None = None) -> None:
        """Add counters and flows to the GPU, which need all events, then finish as usual."""
        if self._host_events == EVENT_LIMIT and not self._truncated:
            self.out.problem(TRUNCATED, self._host_events, f"exactly {EVENT_LIMIT} events")
        layers = [layer for of_thread in self._layers.values() for layer in of_thread]
        if layers and not any(any(layer.values.values()) for layer in layers):
            self.out.problem(ALL_ZERO, ", ".join(sorted({key for layer in layers for key in layer.values})))
        if self._draw_counters:
            for thread, of_thread in self._layers.items():
                self._draw_layers(thread, of_thread)
        if self._device_events:
            self._join_devices()
        super().finish(frames)

    def _draw_layers(self, thread: TrackId, layers: list[_Layer]) -> None:
        """Draw one counter track for each counter of a thread."""
        for key in sorted({key for layer in layers for key in layer.values}):
            track = self.out.tracks.counter(key, thread, description=_COUNTER_HELP)
            for ts, value, at in _steps([layer for layer in layers if key in layer.values], key):
                self.out.counter(track, ts, value, at)

    def _join_devices(self) -> None:
        """Add flows from the nodes to what they ran on the GPU."""
        nodes = _Nodes(self.out, [self._gpu, *self._streams.values()])
        joined: list[tuple[int, _DeviceEvent]] = []
        for event in self._device_events:
            parent = event.before if event.before >= 0 else nodes.latest(event.parent, event.ts)
            if parent >= 0 and nodes.starts[parent] <= event.ts:
                joined.append((parent, event))
        for parent, event in joined:
            self.out.flow(SliceId(parent), event.row, "launch", "onnxruntime", event.at)
        self.out.note(
            f"{len(joined)} of {len(self._device_events)} GPU events were joined to the node that launched them, by "
            "name and order: the file has no correlation ids. Their times are as written; before 1.14 ONNX Runtime "
            "did not relate the clock of the GPU to its own"
        )


class _Nodes:
    """Finds slices of the host by name and time."""

    def __init__(self, out: Builder, device_tracks: list[TrackId]) -> None:
        starts, names, tracks = out.tables.slice_columns("ts", "name", "track")
        # Copies, since slices are added while these are in use.
        self.starts, self._names = starts.copy(), names.copy()
        self._on_host = ~np.isin(tracks, device_tracks)
        self._string = out.tables.string
        self._rows: dict[str, npt.NDArray[np.int64]] = {}

    def latest(self, name: str, ts: int) -> int:
        """Return the last slice of that name that begins at or before `ts`, or -1."""
        if not name:
            return -1
        if name not in self._rows:
            rows = np.flatnonzero((self._names == self._string(name)) & self._on_host)
            self._rows[name] = rows[np.argsort(self.starts[rows], kind="stable")]
        rows = self._rows[name]
        index = int(np.searchsorted(self.starts[rows], ts, side="right")) - 1
        return int(rows[index]) if index >= 0 else -1


def _number(raw: bytes) -> int | None:
    """Return the whole number in a JSON text; None for others, which stay texts."""
    return whole_of(raw[1:-1]) if _INTEGER.fullmatch(raw) else None


def _typed(args: dict[str, Raw]) -> bytes:
    """Return the args as JSON, with numbers where ONNX Runtime wrote numbers as text."""
    for key in args.keys() & _NUMBERS:
        raw = bytes(args[key])
        if _number(raw) is not None:
            args[key] = Raw(raw[1:-1])
    if bytes(args.get("thread_scheduling_stats", b"")) == b'""':
        del args["thread_scheduling_stats"]  # no thread pool
    return _encode(args) if args else b""


def _steps(layers: list[_Layer], key: str) -> Iterator[tuple[int, int, int]]:
    """Yield the steps of a counter: the value of the innermost layer at each time, 0 outside of all.

    Layers of a loop or a branch lie inside the layer of the loop. A layer that ends after the one around it (times are
    cut to microseconds) is cut to its end.
    """
    around: list[_Layer] = []

    def leave(until: int | None) -> Iterator[tuple[int, int, int]]:
        while around and (until is None or around[-1].end <= until):
            inner = around.pop()
            yield inner.end, around[-1].values[key] if around else 0, inner.at

    for layer in sorted(layers, key=lambda layer: (layer.start, -layer.end)):
        yield from leave(layer.start)
        yield layer.start, layer.values[key], layer.at
        around.append(layer._replace(end=min(layer.end, around[-1].end)) if around else layer)
    yield from leave(None)

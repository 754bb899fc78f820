"""The XSpace of the profiler of TensorFlow, JAX and XLA: `*.xplane.pb`.

Format: tsl/profiler/protobuf/xplane.proto and utils/xplane_schema.h in github.com/openxla/xla; recordings of
TensorFlow 2.13 and 2.18 and of JAX 0.10. A space holds planes (a host, a device, what is known of the run), a plane has
lines (threads, streams, "XLA Ops", "Steps"), a line events. Names stand once per plane and are referred to by id:

    XSpace  planes 1*  errors 2*  warnings 3*  hostnames 4*
    XPlane  id 1  name 2  lines 3*  event_metadata 4*  stat_metadata 5*  stats 6*
    XLine   id 1  name 2  timestamp_ns 3  events 4*  duration_ps 9  display_id 10  display_name 11
    XEvent  metadata_id 1  offset_ps 2  duration_ps 3  stats 4*  num_occurrences 5 (instead of offset_ps)
    XStat   metadata_id 1  double 2  uint64 3  int64 4  text 5  bytes 6  ref 7 (the name of another stat)

No time was never set: the collectors for CUDA and ROCm leave out what is not inside of the profile, such as a 0
(CreateXEvent in xla/backends/profiler/gpu), so the format declares nothing that its writer could not measure.

Times are picoseconds from the start of the line, and that is ns since the start of the profile; the stat
`profile_start_time` of the plane "Task Environment" tells when that was (newer versions). They are rounded to ns.

A flow is told in one of two ways. In a raw XSpace an event has the stats `_p` and `_pt` (it is the producer of a
context: its id and type), or `_c` and `_ct` (a consumer). Once it was prepared for a viewer it has the stat `flow`: two
bits for the direction (1 in, 2 out, 3 both), 56 for the id, 6 for the type of the context.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from traceconv.families.chrome.flows import FlowSteps
from traceconv.families.common.collective_kernels import declare_kernels
from traceconv.families.common.wire_reader import (
    BLOB,
    PACKET_TAG,
    VARINT,
    BadWire,
    Message,
    Value,
    as_bytes,
    as_double,
    as_text,
    fields,
    fields_until_cut,
    frame_at,
    scan,
    signed,
    unsigned,
    whole_part,
)
from traceconv.families.importer import FIELD_1, Importer, Match, Signature
from traceconv.io.source import Head, Source
from traceconv.model.args import AnyArgs
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME, ClockDomain, ClockSnapshot, Run, Zero, looks_like_unix_time
from traceconv.model.diagnostics import absent, lost, noted, repaired, skipped
from traceconv.model.marks import XLA_DEVICES, AllocationMarks, FormatMarks
from traceconv.model.source_info import Form, Layer, slices
from traceconv.model.trace import SliceId
from traceconv.model.track_table import NO_TRACK, TrackId

ROUNDED = repaired(
    "xplane.rounded",
    "starts or durations that are not whole nanoseconds were rounded to the nearest one, by less than 1 ns",
    quiet=True,
)
CUT = lost(
    "xplane.cut",
    "the file ends inside a plane: lines and events before the end were read, and the rest is lost; "
    "names that were stored after the end are shown as numbers",
)
NOT_A_MESSAGE = lost("xplane.not_a_message", "an event or line that is not a message was skipped")
NO_NAME = absent("xplane.no_name", "an event or stat refers to a name that its plane does not have")
BYTES = skipped(
    "xplane.bytes",
    "stats that hold bytes (HLO protos, options) were left out: only their writer can read them",
    quiet=True,
)
PROFILER_ERROR = noted("xplane.profiler_error", "the profiler itself reports an error")
HALF_FLOW = absent("xprof.half_flow", "an event starts or ends a flow whose other end is not in the file: not drawn")
PROFILER_WARNING = noted("xplane.profiler_warning", "the profiler itself reports a warning")

#: What is a process; other planes are devices.
HOST, DEVICE = "/host:", "/device:"
#: The names of all planes with events, by which a recording is recognised.
PLANES = (HOST, DEVICE, "Task Environment", "#Chip")
#: The arg of an iteration: of jax.profiler.StepTraceAnnotation, of tf.profiler.experimental.Trace, of Keras.
STEP_ARGS = ("step_num",)
_IN, _OUT = 1, 2
_PRODUCER, _CONSUMER = ("_p", "_pt"), ("_c", "_ct")
_FLOW = "flow"
#: The stats that tell flows.
FLOW_ARGS = (_PRODUCER[0], _CONSUMER[0], _FLOW)
#: Stats that tell about the flows or the grouping of events only.
INTERNAL = frozenset((*_PRODUCER, *_CONSUMER, "_r"))
_ENVIRONMENT = "Task Environment"
_START, _PID = "profile_start_time", "process_id"
_METHOD = "profile_start_time of the file"
_PLANE_FIELDS = {1: VARINT, 2: BLOB, 3: BLOB, 4: BLOB, 5: BLOB, 6: BLOB}
_SPACE_FIELDS = range(1, 5)
#: How the value of a stat is decoded, by its field.
_STAT_VALUES: dict[int, Callable[[Value], Any]] = {2: as_double, 3: unsigned, 4: signed, 5: as_text, 6: as_bytes}
_PS = 1000
#: What XLA's allocators name their events.
_ALLOCATOR = "MemoryAllocation|MemoryDeallocation"
#: The text of an operator that is not known, where the writer puts one.
_NO_OPERATOR = "(null)"
_MEMORY_HELP = "memory that this allocator holds"

Stats = dict[str, Any]


def step_name(name: str, args: Mapping[str, Any]) -> str:
    """Return the name of an event; that of a step has its number, as the viewers of TensorBoard show it."""
    number = args.get("step_num")
    if number is None or f" {name}".endswith(f" {number}"):
        return name
    return f"{name} {number}"


def ends_of_flows(stats: Mapping[str, Any]) -> list[tuple[str, bytes]]:
    """Return the flows that an event takes part in: "s" for a start or "f" for an end, and the key of the flow."""
    ends = []
    for phase, (id, kind) in (("s", _PRODUCER), ("f", _CONSUMER)):
        if id in stats:
            ends.append((phase, f"{stats.get(kind, 0)} {stats[id]}".encode()))
    flow = stats.get(_FLOW)
    if isinstance(flow, int):
        key = b"flow %d" % (flow >> 2)
        ends += [(phase, key) for phase, bit in (("f", _IN), ("s", _OUT)) if flow & bit]
    return ends


class Timeline:
    """Puts events on tracks: as slices, or as instants if they have neither a duration nor a flow."""

    def __init__(self, out: Builder) -> None:
        self.flows = FlowSteps(unpaired=HALF_FLOW)
        self._out = out

    def add(
        self, track: TrackId, ts: int, dur: int, name: str, args: AnyArgs, stats: Mapping[str, Any], at: int
    ) -> None:
        """Add an event; its stats tell its flows."""
        flows = ends_of_flows(stats)
        name = step_name(name, stats)
        if dur or flows:
            row = self._out.slice(track, ts, dur, name, "", args, at)
            for phase, key in flows:
                self.flows.add(("", "", key), phase, track, ts, at, row=SliceId(row), counts=False)
        else:
            self._out.instant(track, ts, name, "", args, at)
        self._out.balance.written += 1


@dataclass(frozen=True)
class Xplane(Importer):
    name = "xplane"
    title = "TensorFlow and JAX/XLA profiler, XSpace (.xplane.pb)"
    url = "https://openxla.org/xprof"
    versions = "TensorFlow 2.x, JAX, XLA"
    signature = Signature(patterns=(FIELD_1,))
    clock = ClockDomain("profiler session time", Zero.RUN_START, Run.WALL, 1)
    layer = Layer.FRAMEWORK
    record = (
        "tf.profiler.experimental.start(DIR) and stop(), or the context jax.profiler.trace(DIR); "
        "the file is DIR/plugins/profile/TIME/HOST.xplane.pb"
    )
    skips = (BYTES,)

    line_up = (
        "TensorFlow 2.18 and JAX write the start of the profile on the wall clock: nothing is needed. Older "
        "files need --offset."
    )
    becomes = (
        ("host plane (/host:CPU)", "process, with the pid if the plane has the stat process_id"),
        ("other plane (/device:GPU:0)", "track"),
        ("line (thread, stream, XLA Ops, XLA Modules, Steps)", "thread of a host, track of a device"),
        ("event with a duration", "slice, called as viewers call it (display name), steps with their number"),
        ("event without a duration", "instant; with a producer or consumer id a slice of length 0"),
        ("allocations", "also counters in bytes, for each allocator"),
        ("num_occurrences", "row of a table without times"),
        ("stats of an event and of its name", "arg, with its type"),
        ("producer and consumer ids, flow", "flow from the producer to each consumer"),
        ("profile_start_time", "clock snapshot with the wall clock"),
        ("stats of planes, host names", "metadata"),
    )
    lost = (
        "Picoseconds are rounded to nanoseconds.",
        "Stats that hold bytes (HLO modules) are left out.",
        "The file does not hold what xprof computes from the events (regions of thread pools, op statistics).",
    )
    marks = FormatMarks(
        libraries="tensorflow",
        devices=XLA_DEVICES,
        step_args=STEP_ARGS,
        memory=r"Allocated \(.*\)",
        allocations=AllocationMarks(
            _ALLOCATOR,
            "allocation_bytes",
            "addr",
            ("allocator_name",),
            frees="MemoryDeallocation",
            operator="tf_op",
            no_operator=_NO_OPERATOR,
        ),
    )

    def form(self, head: Head) -> Form:
        """Return the first form of a recording: the recording itself."""
        return Form(0, slices)

    def sniff(self, head: Head) -> Match:
        """Return YES when the first plane has the fields of a plane and one of the names that planes have."""
        return _looks_like_space(head.data)

    def read(self, source: Source, out: Builder) -> None:
        """Read all planes. Raises MalformedInput when there is none."""
        out.info.real_ids = True
        with source.open() as stream:
            space, cut = _top_level(stream.read())
        if not space:
            raise source.malformed(
                "not an XSpace, expected a message with planes",
                hint="if this is an .xplane.pb, its beginning is damaged or missing: copy or record it again",
                where="byte 0",
            )
        _Space(out).read(space, source.name)
        declare_kernels(out, "")
        if cut:
            out.problem(CUT, f"{source.name}: {cut}")


def _top_level(data: bytes) -> tuple[list[tuple[int, Value]], str]:
    """Return the complete fields of the space, and the damage behind them."""
    fields_read: list[tuple[int, Value]] = []
    problem = ""
    try:
        scan(data, fields_read)
    except BadWire as error:
        problem = str(error)
        fields_read = []
        with contextlib.suppress(BadWire):
            scan(whole_part(data, (1, 3)), fields_read)
    for place, (number, value) in enumerate(fields_read):
        if number not in _SPACE_FIELDS or not isinstance(value, bytes):
            return fields_read[:place], f"field {number} where a plane was expected"
    return fields_read, problem


class _Space:
    def __init__(self, out: Builder) -> None:
        self._out = out
        self._timeline = Timeline(out)
        self._rounded = 0
        self._bytes = 0
        self._start: int | None = None
        self._memory_tracks: dict[tuple[int, str], TrackId] = {}

    def read(self, space: list[tuple[int, Value]], name: str) -> None:
        """Read all planes, and what is said about the run."""
        out = self._out
        for number, value in space:
            if number == 1:
                self._plane(value, name)
        for number, code in ((2, PROFILER_ERROR), (3, PROFILER_WARNING)):
            for text in (as_text(value) for field, value in space if field == number):
                out.problem(code, name, text)
        hosts = [as_text(value) for number, value in space if number == 4]
        if hosts:
            out.metadata["hostnames"] = hosts
        self._timeline.flows.resolve(out)
        if self._rounded:
            out.problem(ROUNDED, name, count=self._rounded)
        if self._bytes:
            out.problem(BYTES, name, count=self._bytes)
        self._set_clock(hosts)

    def _set_clock(self, hosts: list[str]) -> None:
        out = self._out
        domain = replace(Xplane.clock, machine=hosts[0] if len(hosts) == 1 else "")
        out.clocks.set_default(domain)
        if looks_like_unix_time(out.tables.first_ts()):
            out.clocks.snapshot(
                ClockSnapshot(domain, 0, REALTIME, 0, None, "times so large that they must count from 1970")
            )
        elif self._start is not None:
            out.clocks.snapshot(ClockSnapshot(domain, 0, REALTIME, self._start, None, _METHOD))

    def _plane(self, data: Value, source: str) -> None:
        try:
            plane = _Plane(Message(data), self._out)
            stats, held = plane.stats(plane.message.all(6))
        except BadWire as error:
            self._out.problem(NOT_A_MESSAGE, source, f"a plane: {error}")
            return
        self._bytes += held
        if plane.name == _ENVIRONMENT and isinstance(stats.get(_START), int):
            self._start = stats[_START]
        if stats:
            self._out.metadata[plane.name] = stats
        lines = plane.message.all(3)
        if lines:
            self._lines(plane, lines, stats.get(_PID))

    def _lines(self, plane: _Plane, lines: list[Value], pid: object) -> None:
        is_host = plane.name.startswith(HOST)
        if is_host:
            parent = self._out.tracks.process(plane.name, pid=pid if isinstance(pid, int) else None)
        else:
            parent = self._out.tracks.add(plane.name)
        for value in lines:
            try:
                line = Message(value)
                name = line.text(11) or line.text(2) or f"line {line.signed(10) or line.signed(1)}"
                start = line.signed(3)
            except BadWire as error:
                self._out.problem(NOT_A_MESSAGE, plane.name, f"a line: {error}")
                continue
            track = self._out.tracks.thread(parent, None, name) if is_host else self._out.tracks.add(name, parent)
            self._events(plane, line.all(4), start, track, name)

    def _memory(self, track: TrackId, ts: int, stats: Mapping[str, Any], number: int) -> None:
        """Draw what an allocator holds after one of its events."""
        held, name = stats.get("bytes_allocated"), f"Allocated ({stats.get('allocator_name')})"
        if not isinstance(held, int):
            return
        process = self._out.tracks[track].parent
        if (process, name) not in self._memory_tracks:
            counter = self._out.tracks.counter(name, TrackId(process), unit="bytes", description=_MEMORY_HELP)
            self._memory_tracks[process, name] = counter
        self._out.counter(self._memory_tracks[process, name], ts, held, number)

    def _events(self, plane: _Plane, events: list[Value], start_ns: int, track: TrackId, line: str) -> None:
        balance = self._out.balance
        totals = NO_TRACK
        for value in events:
            balance.read += 1
            number = balance.read
            try:
                event = _Event(as_bytes(value))
                stats, held = plane.stats(event.stats)
                name, more = plane.event(event.metadata)
            except BadWire as error:
                self._out.skip(NOT_A_MESSAGE, number, f"{line}: {error}")
                continue
            self._bytes += held
            args = more | {key: stat for key, stat in stats.items() if key not in INTERNAL}
            if event.occurrences is not None:
                if totals == NO_TRACK:
                    totals = self._out.tracks.totals(line, track)
                self._out.totals(totals, name, args=args | {"num_occurrences": event.occurrences}, at=number)
                balance.written += 1
                continue
            start = start_ns * _PS + event.offset
            self._rounded += bool(start % _PS or event.duration % _PS)
            self._timeline.add(track, _to_ns(start), _to_ns(event.duration), name, args, stats, number)
            if name in _ALLOCATOR.split("|"):
                self._memory(track, _to_ns(start), stats, number)


class _Plane:
    """A plane with the names that its events refer to."""

    def __init__(self, message: Message, out: Builder) -> None:
        self.message = message
        self.name = message.text(2)
        self._out = out
        self._events = _entries(message.all(4))
        self._stats = {id: entry.text(2) for id, entry in _entries(message.all(5)).items()}
        self._known: dict[int, tuple[str, Stats]] = {}

    def event(self, id: int) -> tuple[str, Stats]:
        """Return the name of an event by the id of its metadata, and the args that all events of this id have."""
        known = self._known.get(id)
        if known is None:
            known = self._known[id] = self._describe(id)
        return known

    def _describe(self, id: int) -> tuple[str, Stats]:
        """Read XEventMetadata: name 2, display_name 4, stats 5*."""
        entry = self._events.get(id)
        if entry is None:
            self._out.problem(NO_NAME, self.name, f"event {id}")
            return f"(event {id})", {}
        stats, _ = self.stats(entry.all(5))
        long, short = entry.text(2), entry.text(4)
        more: Stats = {"long_name": long} if short and long and short != long else {}
        return short or long, more | stats

    def stats(self, values: Iterable[Value]) -> tuple[Stats, int]:
        """Return stats by name, and how many were left out because they hold bytes."""
        stats_read: Stats = {}
        held = 0
        for value in values:
            id = 0
            content: Any = None
            for number, inner in fields(as_bytes(value)):
                if number == 1:
                    id = signed(inner)
                else:
                    content = self._value(number, inner)
            if isinstance(content, bytes):
                held += 1
            else:
                stats_read[self._stat_name(id)] = content
        return stats_read, held

    def _value(self, number: int, value: Value) -> Any:
        if number == 7:
            return self._stat_name(unsigned(value))
        return _STAT_VALUES[number](value) if number in _STAT_VALUES else None

    def _stat_name(self, id: int) -> str:
        name = self._stats.get(id)
        if name is None:
            self._out.problem(NO_NAME, self.name, f"stat {id}")
            name = self._stats[id] = f"(stat {id})"
        return name


class _Event:
    """The fields of an XEvent."""

    __slots__ = ("duration", "metadata", "occurrences", "offset", "stats")

    def __init__(self, data: bytes) -> None:
        self.metadata = self.offset = self.duration = 0
        self.occurrences: int | None = None
        self.stats: list[Value] = []
        for number, value in fields(data):
            if number == 1:
                self.metadata = signed(value)
            elif number == 2:
                self.offset = signed(value)
            elif number == 3:
                self.duration = signed(value)
            elif number == 4:
                self.stats.append(value)
            elif number == 5:
                self.occurrences = signed(value)


def _entries(values: Iterable[Value]) -> dict[int, Message]:
    """Return a map of a protobuf message: entries {key 1, value 2}."""
    entries = (Message(value) for value in values)
    return {entry.signed(1): entry.message(2) for entry in entries}


def _to_ns(ps: int) -> int:
    """Return the nearest ns; halves are rounded away from zero, as everywhere in traceconv."""
    return (ps + _PS // 2) // _PS if ps >= 0 else -((-ps + _PS // 2) // _PS)


def _looks_like_space(data: bytes) -> Match:
    frame = frame_at(data, 0) if data[:1] == bytes([PACKET_TAG]) else None
    if frame is None or frame[1] < 0:
        return Match.no("does not begin with byte 0a, a plane")
    plane = data[frame[0] : frame[1]]
    cut = frame[1] > len(data)
    try:
        kinds = list(fields_until_cut(plane, cut))
    except BadWire:
        return Match.no("what would be the first plane is not a protobuf message")
    if any(_PLANE_FIELDS.get(number) != kind for number, kind in kinds):
        return Match.no("the first message has other fields than a plane")
    name = _name_of(plane)
    if not name.startswith(PLANES):
        return Match.no("the first message is not named like a plane")
    return Match.yes(f"an XSpace with the plane {name}")


def _name_of(plane: bytes) -> str:
    """Return the name of a plane whose end may be missing."""
    fields_read: list[tuple[int, Value]] = []
    with contextlib.suppress(BadWire):
        scan(plane, fields_read)
    return next((as_text(value) for number, value in fields_read if number == 2), "")

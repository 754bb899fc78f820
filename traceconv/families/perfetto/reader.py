"""Traces of Perfetto (`.pftrace`, `.perfetto-trace`), our own output among them.

Format: protos/perfetto/trace/*.proto in github.com/google/perfetto. A file is a series of packets:

    0a 17 | 40 f8 b5 ... timestamp | 50 01 sequence | 68 02 flags | 5a 0c track event: type, track, name, annotations
    0a 2f | 60 .. interned texts, 3c .. descriptors of tracks, 32 .. clock snapshots, in any order

Read are track events (slices, instants, counters, states, flows, log messages, args), also those of Chrome before 2021,
samples of perf (traced_perf, and any writer of PerfSample), descriptors, clock snapshots, trace attributes, and packets
compressed by deflate. Times are those that Perfetto shows, with two differences: clock snapshots are used for the whole
file; and events without a declared track or sequence are kept.

Lost: all data sources that are neither track events nor samples (ftrace, heap profiles, GPU stages, ...), counted by
kind; args that need a schema of their own; offsets inside of functions and line numbers of stack frames.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from traceconv.families.common.wire_reader import BLOB, FIXED64, VARINT, BadWire, as_bytes, fields, fields_until_cut
from traceconv.families.importer import Match, extras
from traceconv.families.index import FORMATS
from traceconv.families.perfetto._about import CLOCK, PACKET_KINDS, SIZE, SOURCES
from traceconv.families.perfetto._inputs import INPUTS, restore, stated_groups, stated_inputs
from traceconv.families.perfetto._packets import ABOUT_ITSELF, PacketReader
from traceconv.families.perfetto._rows import Emission, Shift
from traceconv.families.perfetto.view import VIEW
from traceconv.families.registry import importer_class
from traceconv.io.packets import PACKET_TAG, frame_at
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import BOOTTIME, SINCE_BOOT, ClockDomain, Run, Zero
from traceconv.model.counted import PACKETS
from traceconv.model.diagnostics import ProblemKind, declare, lost
from traceconv.model.marks import ANY_TOOL_MARKS, JOINT, DeviceMarks, FormatMarks
from traceconv.model.times import LIMIT_NS

BAD_SHIFT = lost(
    "perfetto.bad_shift",
    "the file says that its times were moved, but not by how many ns: they were not moved back",
)

SHIFT_WITHOUT_END = lost(
    "perfetto.shift_without_end",
    "the times of one of several traces in a file were moved, but where it ends is not known: they were not moved back",
)

JOINED = declare(
    "perfetto.joined",
    ProblemKind.NOTED,
    "a trace of traceconv and another trace are in one file: which input their events are from is not known",
)

#: Wire types of the fields of a packet that are not messages, texts or bytes.
_NUMBERS = {3: VARINT, 8: VARINT, 10: VARINT, 13: VARINT, 41: VARINT, 42: VARINT, 58: VARINT, 79: VARINT, 87: VARINT}
_NUMBERS |= {98: VARINT, 88: VARINT}
#: Fields that distinguish packets from other messages with the same start: these, and kinds from 16 on.
_TELLING = frozenset((*_NUMBERS, 11, 50, 60, *(kind for kind in PACKET_KINDS if kind >= 16)))
_SNAPSHOT = 6
_LARGEST_FIELD = 1000
#: The attributes of traceconv with other names than "traceconv.*"; those that it writes as JSON.
_OWN = ("alignment", "inputs")
_OWN_NAMES = "traceconv."
_OWN_JSON = (SOURCES, "alignment", "inputs", "traceconv.time_shift_ns", INPUTS)
_SHIFT = "traceconv.time_shift_ns"
_SEVERAL_CLOCKS = "clocks of several traces (unknown clock)"
_CLOCK_WORDS = re.compile(r"(?P<name>.*) \((?P<run>[^()]*?)(?:, zero at (?P<zero>[^()]*))?\)")


@dataclass(frozen=True)
class Perfetto:
    """Importer of Perfetto traces."""

    name = "perfetto"
    title = "Perfetto trace (.pftrace), of any writer and of traceconv itself"
    url = "https://perfetto.dev/docs/reference/trace-packet-proto"
    versions = "track events and perf samples of Perfetto 1 to 58; plain, gzip, deflated packets"
    clock = BOOTTIME
    marks = ANY_TOOL_MARKS
    record = (
        "perfetto -o trace.pftrace --txt -c config.txt   # data source track_event or linux.perf, "
        "builtin_data_sources { primary_trace_clock: BUILTIN_CLOCK_REALTIME }"
    )
    line_up = (
        "Traces recorded by Perfetto hold snapshots of the wall clock: nothing is needed. The same holds "
        "for other writers, if their clock is CLOCK_REALTIME or a snapshot relates it. Otherwise use --offset."
    )
    becomes = (
        ("TYPE_SLICE_BEGIN and TYPE_SLICE_END", "slice"),
        ("TYPE_INSTANT", "instant; with flow ids a slice of length 0, since flows join slices"),
        ("TYPE_COUNTER and extra counter values", "counter with its unit; differences added up, multipliers applied"),
        ("TYPE_STATE", "slice up to the next state of the track"),
        ("flow_ids, terminating_flow_ids", "flow from each event to the next one in time"),
        ("debug annotations", "args with their types; nested ones as objects and arrays"),
        ("log_message", "log entry of the thread"),
        ("source location, correlation id, call stack of an event", "args of the event"),
        ("PerfSample with a call stack", "sample; its weight is what the counter of the sampling advanced by"),
        ("track descriptors", "track: process, thread, counter, or a track in its parent; names in common make lanes"),
        ("clock snapshots", "clock snapshots: all events come to the clock of the trace"),
        ("trace attributes, system info", "metadata"),
    )
    skips = (ABOUT_ITSELF,)
    lost = (
        "Packets of other data sources (ftrace, heap profiles, GPU render stages, ...) are not read; they are counted "
        "by kind.",
        "Args of events that need their own schema are left out.",
        "Stack frames keep function and module, not offset and line.",
        "A flow has no name, and points forward in time.",
        "Packets are not read if they are compressed by zstd, or compressed more than 4 times over; of one "
        "compressed packet, at most 256 MiB are read.",
        "Flow ids of the end of a slice are left out; they are counted.",
        "If a trace of traceconv and others are joined in one file, the inputs of events are not known. Each keeps its "
        "times: those that traceconv moved are moved back, if the last packet of its trace is there.",
    )

    def sniff(self, head: Head) -> Match:
        """Return YES if the head is a series of packets with the fields of packets."""
        return _looks_like_packets(head.data)

    def read(self, source: Source, out: Builder) -> None:
        """Read all packets. Raises MalformedInput when there is none."""
        out.balance.unit, out.info.unit = PACKETS, "packet"
        with source.open() as stream:
            reader = PacketReader(out, source.unpacked)
            reader.read(stream)
        if not out.balance.read and source.head().data:
            raise source.malformed(
                "no Perfetto packet, expected byte 0a, a length, and that many bytes",
                hint="`traceconv identify` says what the file is",
                where="byte 0",
            )
        info, shifts = _joined(reader, out) if reader.is_joined else _single(reader, out)
        stated = stated_inputs(info.get(SOURCES), info.get(INPUTS), info.get("alignment"))
        if stated:
            reader.tracks.leave_out(stated_groups(info.get(INPUTS)))
        out.metadata.update({key: value for key, value in info.items() if key not in (VIEW, INPUTS, SIZE)})
        Emission(reader.rows, reader.clocks, reader.tracks, out).run(shifts)
        self._set_clock(reader, info, out)
        out.info.marks = _own_marks([one.format for one in stated])
        if out.info.marks.is_output:
            out.info.stated = stated
            restore(info.get(INPUTS), out, reader.tracks.built)

    def _set_clock(self, reader: PacketReader, info: dict[str, Any], out: Builder) -> None:
        domain = _own_domain(info.get(CLOCK)) or reader.clocks.domain
        machine = info.get("machine_name")
        if isinstance(machine, str) and domain.zero in SINCE_BOOT:
            domain = replace(domain, machine=machine)
        out.clocks.set_default(domain)
        for snapshot in reader.clocks.snapshots(domain):
            out.clocks.snapshot(snapshot)


def _single(reader: PacketReader, out: Builder) -> tuple[dict[str, Any], list[Shift]]:
    """Return the attributes of the only trace in a file, and the offsets in its times."""
    info = _decoded(reader.metadata)
    for own in reader.own:
        info |= _decoded(own.attributes)
    by = _shift(info, out)
    return info, [Shift(0, LIMIT_NS, by)] if by else []


def _joined(reader: PacketReader, out: Builder) -> tuple[dict[str, Any], list[Shift]]:
    """Return the attributes that hold for all traces in a file, and the offsets in the times of those of traceconv."""
    out.problem(JOINED, SOURCES)
    info: dict[str, Any] = {}
    shifts, clocks = [], set()
    for own in reader.own:
        stated = _decoded(own.attributes)
        clocks.add(str(stated.get(CLOCK, "")))
        by = _shift(stated, out)
        if by and own.end is not None:
            shifts.append(Shift(own.begin, own.end, by))
        elif by:
            out.problem(SHIFT_WITHOUT_END, own.begin, f"{by} ns")
        if by is None or (by and own.end is None):
            clocks.add(_SEVERAL_CLOCKS)
        info |= {key: value for key, value in stated.items() if key not in _OWN}
    info = {key: value for key, value in (info | _decoded(reader.metadata)).items() if not key.startswith(_OWN_NAMES)}
    return info | {CLOCK: clocks.pop() if len(clocks) == 1 else _SEVERAL_CLOCKS}, shifts


def _decoded(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return trace attributes; those that traceconv wrote as JSON text are decoded."""
    return {key: _fact(key, value) for key, value in attributes.items()}


def _own_marks(formats: Collection[str]) -> FormatMarks:
    """Return the declarations of the formats of the inputs, if traceconv wrote the trace; else none."""
    marks = [extras(importer_class(name)).marks for name in sorted(FORMATS.keys() & set(formats))]
    if not marks:
        return ANY_TOOL_MARKS
    return msgspec.structs.replace(
        ANY_TOOL_MARKS,
        steps="|".join(dict.fromkeys(one.steps for one in marks if one.steps)),
        step_args=tuple(dict.fromkeys(arg for one in marks for arg in one.step_args)),
        memory="|".join(dict.fromkeys(one.memory for one in marks if one.memory)),
        asides=tuple(dict.fromkeys(category for one in marks for category in one.asides)),
        primitives=next((one.primitives for one in marks if one.primitives), None),
        sums=next((one.sums for one in marks if one.sums), None),
        shapes=tuple(dict.fromkeys(arg for one in marks for arg in one.shapes)),
        devices=_devices([one.devices for one in marks if one.devices]),
        times="|".join(dict.fromkeys(one.times for one in marks if one.times)),
        is_output=True,
    )


def _devices(marks: list[DeviceMarks]) -> DeviceMarks | None:
    """Return what any of the formats says of work of devices, in paths with the joint names of traceconv's traces."""
    if not marks:
        return None
    between = f"(?: / |{JOINT})"
    marks = [
        msgspec.structs.replace(one, queues=one.queues.replace(" / ", between), hosts=one.hosts.replace(" / ", between))
        for one in marks
    ]

    def any_of(patterns: Iterable[str]) -> str:
        return "|".join(f"(?:{one})" for one in dict.fromkeys(filter(None, patterns)))

    return DeviceMarks(
        any_of(one.queues for one in marks),
        copies=any_of(one.copies for one in marks),
        communication=any_of(one.communication for one in marks),
        hosts=any_of(one.hosts for one in marks),
        ids=tuple(dict.fromkeys(arg for one in marks for arg in one.ids)),
    )


def _fact(key: str, value: Any) -> Any:
    """Return a trace attribute; those that traceconv wrote as JSON text are decoded."""
    if key in _OWN_JSON and isinstance(value, str):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _shift(stated: dict[str, Any], out: Builder) -> int | None:
    """Return the offset that, as the attributes state, was added to all times, ns; None for one that is wrong."""
    value = stated.get(_SHIFT, 0)
    if type(value) is int and -LIMIT_NS <= value <= LIMIT_NS:
        return value
    out.problem(BAD_SHIFT, _SHIFT, f"{value!r:.40}")
    return None


def _own_domain(words: object) -> ClockDomain | None:
    """Return the clock domain from the text of `ClockDomain.describe` in the output of traceconv."""
    match = _CLOCK_WORDS.fullmatch(words) if isinstance(words, str) else None
    if match is None:
        return None
    run = Run.UNKNOWN if match["run"] == "unknown clock" else _member(Run, match["run"])
    zero = Zero.UNKNOWN if match["zero"] is None else _member(Zero, match["zero"])
    return ClockDomain(match["name"], zero, run) if run is not None and zero is not None else None


def _member(enum: Any, value: str) -> Any:
    return next((member for member in enum if member.value == value), None)


def _looks_like_packets(data: bytes) -> Match:
    if data[:1] != bytes([PACKET_TAG]):
        return Match.no("does not begin with byte 0a, a packet")
    at = packets = 0
    telling = False
    while at < len(data):
        frame = frame_at(data, at)
        if frame is None:
            break
        if frame[1] < 0:
            return Match.no("no series of packets")
        try:
            for number, kind in fields_until_cut(data[frame[0] : frame[1]], frame[1] > len(data)):
                if kind != _NUMBERS.get(number, BLOB) and not (
                    number > max(PACKET_KINDS) and kind in (VARINT, FIXED64)
                ):
                    return Match.no(f"field {number} of a packet has another type")
                if not 0 < number < _LARGEST_FIELD:
                    return Match.no(f"packets have no field {number}")
                telling = telling or number in _TELLING
            telling = telling or _is_snapshot(data[frame[0] : frame[1]])
        except BadWire:
            return Match.no("a packet is not a protobuf message")
        packets += 1
        at = frame[1]
    return (
        Match.yes(f"{packets} packets of a Perfetto trace") if telling else Match.no("no field that only packets have")
    )


def _is_snapshot(packet: bytes) -> bool:
    """Return whether a packet is a clock snapshot and nothing else: clocks 1* {clock_id 1, timestamp 2}."""
    try:
        read = fields(packet)
        if [number for number, _ in read] != [_SNAPSHOT]:
            return False
        clocks = [as_bytes(value) for number, value in fields(as_bytes(read[0][1])) if number == 1]
        return bool(clocks) and all(
            {1, 2} <= {n for n, value in fields(one) if isinstance(value, int)} for one in clocks
        )
    except BadWire:
        return False

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

from collections import Counter
from collections.abc import Collection, Generator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from traceconv import kernel
from traceconv.families.common.wire_reader import (
    CPU_UNKNOWN,
    BadWire,
    Damage,
    Message,
    PacketBuffer,
    Readable,
    Value,
    as_bytes,
    fields,
    read_packets,
    unsigned,
)
from traceconv.families.importer import FIELD_1, Importer, Match, Signature
from traceconv.families.index import FORMATS
from traceconv.families.perfetto.packets import (
    ABOUT,
    BODIES,
    NAMES,
    PACKET_KINDS,
    Event,
    Inflated,
    PacketSequence,
    looks_like_packets,
    place_of,
    system_of,
)
from traceconv.families.perfetto.rows import Emission, Entry, Kind, PlainPackets, Rows, Shift, Step, Taken
from traceconv.families.perfetto.tracks import (
    DEFAULT_TRACK,
    TRACE_TIME,
    Clocks,
    Tracks,
    restore,
    stated_domain,
    stated_inputs,
)
from traceconv.families.perfetto.tree import CLOCK, INPUTS, SHIFT, SIZE, SOURCES, TO_SOURCES, VIEW, attributes_of
from traceconv.families.registry import importer_class
from traceconv.io.limits import Unpacked
from traceconv.io.shown import Counted
from traceconv.io.source import Head, Source
from traceconv.model.args import join_args
from traceconv.model.builder import Builder
from traceconv.model.clocks import BOOTTIME, SINCE_BOOT
from traceconv.model.diagnostics import PACKETS, absent, lost, noted, skipped
from traceconv.model.marks import ANY_TOOL_MARKS, FormatMarks, marks_of_output
from traceconv.model.numbers import LIMIT_NS, read_json
from traceconv.model.trace import NO_CPU, Level, StackId

DECLARATIONS = Counted("declaration of a track, clock or text", "declarations of tracks, clocks and texts")
UNPACKED_PACKETS = Counted("compressed packet unpacked", "compressed packets unpacked")

BAD_SHIFT = lost(
    "perfetto.bad_shift",
    "the file says that its times were moved, but not by how many ns: they were not moved back",
)
SHIFT_WITHOUT_END = lost(
    "perfetto.shift_without_end",
    "the times of one of several traces in a file were moved, but where it ends is not known: they were not moved back",
)
JOINED = noted(
    "perfetto.joined",
    "a trace of traceconv and another trace are in one file: which input their events are from is not known",
)
NOT_A_PACKET = lost("perfetto.not_a_packet", "a packet that is not a protobuf message was skipped")
TRUNCATED = lost(
    "perfetto.truncated", "the file ends inside a packet, which was left out; everything before it was read"
)
CORRUPT = lost("perfetto.corrupt", "no packet starts where one is expected: the rest of the file was not read")
BAD_COMPRESSION = lost(
    "perfetto.bad_compression",
    "compressed packets cannot be unpacked, or not completely: the missing part was skipped",
)
OTHER_SOURCE = lost(
    "perfetto.other_data_source",
    "packets of other data sources are not read; supported are track events, perf samples, clocks, names of processes",
)
ABOUT_ITSELF = skipped(
    "perfetto.about_recording", "packets about the recording itself hold nothing to draw", quiet=True
)
NO_STATE = absent(
    "perfetto.no_state",
    "a packet relies on texts that its sequence has not sent, or that were lost with an earlier packet: it was skipped",
)
DROPPED = absent("perfetto.packets_dropped", "the recording lost packets: its buffer was full or overwritten")
BAD_TIME = lost("perfetto.bad_time", "an event has no time, or one beyond 2^63 ns")
BAD_TYPE = lost("perfetto.unknown_event", "a track event has no type, or a phase that is not read")
NO_VALUE = lost("perfetto.counter_without_value", "a counter event has no value, or its value has no track")
FLOW_OF_END = lost(
    "perfetto.flow_of_end",
    "the end of a slice has its own flow ids, but flows connect whole slices: these ids were left out",
)
TYPED_ARGS = lost(
    "perfetto.typed_args", "args of events that need a schema of their own (extensions, args of Chrome) were left out"
)
NO_SAMPLE = absent("perfetto.lost_samples", "samples that the kernel lost or that were not unwound: no call stack")

# TracePacket
_CLOCKS, _TIMESTAMP, _SEQUENCE_ID, _EVENT, _INTERNED, _FLAGS = 6, 8, 10, 11, 12, 13
_OLD_CLEARED, _DROPPED, _PROCESS, _THREAD, _SYSTEM, _COMPRESSED = 41, 42, 43, 44, 45, 50
_CLOCK_ID, _DEFAULTS, _TRACK, _SAMPLE, _TREE, _UUID, _MACHINE, _ATTRIBUTES = 58, 59, 60, 66, 2, 89, 98, 126
_CLEARED, _NEEDS_STATE = 1, 2
# TrackEvent.type
_COUNTER = 4
_KINDS = {1: Kind.BEGIN, 2: Kind.END, 3: Kind.INSTANT, 5: Kind.STATE}

#: The fields of a packet beside its content.
_ENVELOPE = frozenset((3, 8, 10, 12, 13, 41, 42, 58, 59, 79, 87, 98))
#: The fields of a packet with nothing but a clock snapshot, which changes no state of its sequence.
_OF_SNAPSHOT = frozenset((3, _CLOCKS, _TIMESTAMP, _SEQUENCE_ID, 79))
#: The usual fields of packets, of which only the flags can change the sequence.
_USUAL = frozenset((3, _TIMESTAMP, _SEQUENCE_ID, _EVENT, _FLAGS, 79))
_SIGN = 1 << 63
#: A timestamp, and the number of its clock.
_Time = tuple[int, int]
#: Perfetto compresses packets once; each level multiplies the size that a small file can unpack to.
_MAX_NESTING = 4
#: Phases of the Trace Event Format that old traces use.
_PHASES = {"X": Kind.SLICE, **dict.fromkeys("BbS", Kind.BEGIN), **dict.fromkeys("EeF", Kind.END)}
_PHASES |= {**dict.fromkeys("iIRn", Kind.INSTANT), **dict.fromkeys("stf", Kind.STEP)}
_DIRECTIONS = {1: "f", 2: "s", 3: "t"}

#: The attributes of traceconv with other names than "traceconv.*"; those that it writes as JSON.
_UNPREFIXED = ("alignment", "inputs")
_JSON = (SOURCES, "alignment", "inputs", SHIFT, INPUTS)
_SEVERAL_CLOCKS = "clocks of several traces (unknown clock)"


@dataclass(frozen=True)
class Perfetto(Importer):
    name = "perfetto"
    title = "Perfetto trace (.pftrace), of any writer and of traceconv itself"
    url = "https://perfetto.dev/docs/reference/trace-packet-proto"
    versions = "track events and perf samples of Perfetto 1 to 58; plain, gzip, deflated packets"
    signature = Signature(patterns=(FIELD_1,))
    clock = BOOTTIME
    record = (
        "perfetto -o trace.pftrace --txt -c config.txt   # data source track_event or linux.perf, "
        "builtin_data_sources { primary_trace_clock: BUILTIN_CLOCK_REALTIME }"
    )
    skips = (ABOUT_ITSELF,)

    line_up = (
        "Nothing is needed if the clock is CLOCK_REALTIME, or if snapshots relate it, as Perfetto writes them. "
        "Otherwise use --offset."
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
    lost = (
        "Packets of other data sources (ftrace, heap profiles, GPU render stages, ...) are counted by kind, not read.",
        "Args of events that need their own schema are left out.",
        "Stack frames keep function and module, not offset and line.",
        "A flow has no name, and points forward in time.",
        "Packets compressed by zstd, or more than 4 times over, are not read; of one compressed packet, at most 256 "
        "MiB are read.",
        "Flow ids of the end of a slice are left out.",
        "In a file that joins a trace of traceconv with others, the inputs of events are not known. Times that "
        "traceconv moved are moved back, if the last packet of its trace is there.",
    )
    marks = ANY_TOOL_MARKS

    def sniff(self, head: Head) -> Match:
        """Return YES if the head is a series of packets with the fields of packets."""
        return looks_like_packets(head.data)

    def read(self, source: Source, out: Builder) -> None:
        """Read all packets. Raises MalformedInput when there is none."""
        out.counts(PACKETS)
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
            reader.tracks.leave_out_groups(info.get(INPUTS))
        out.metadata.update({key: value for key, value in info.items() if key not in (VIEW, INPUTS, SIZE)})
        Emission(reader.rows, reader.clocks, reader.tracks, out).run(shifts)
        self._set_clock(reader.clocks, info, out)
        out.info.marks = _marks_of([source.format for source in stated])
        if out.info.marks.is_output:
            out.info.stated = stated
            restore(info.get(INPUTS), out, reader.tracks.built)

    def _set_clock(self, clocks: Clocks, info: dict[str, Any], out: Builder) -> None:
        domain = stated_domain(info.get(CLOCK)) or clocks.domain
        machine = info.get("machine_name")
        if isinstance(machine, str) and domain.zero in SINCE_BOOT:
            domain = replace(domain, machine=machine)
        out.clocks.set_default(domain)
        for snapshot in clocks.snapshots(domain):
            out.clocks.snapshot(snapshot)


def _decoded(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return trace attributes; those that traceconv wrote as JSON text are decoded."""
    decoded = dict(attributes)
    for key in _JSON:
        if isinstance(text := attributes.get(key), str):
            with suppress(ValueError):
                decoded[key] = read_json(text.encode())
    return decoded


def _single(reader: PacketReader, out: Builder) -> tuple[dict[str, Any], list[Shift]]:
    """Return the attributes of the only trace in a file, and the offsets in its times."""
    info = _decoded(reader.metadata)
    for trace in reader.stated:
        info |= _decoded(trace.attributes)
    by = _shift(info, out)
    return info, [Shift(0, LIMIT_NS, by)] if by else []


def _joined(reader: PacketReader, out: Builder) -> tuple[dict[str, Any], list[Shift]]:
    """Return the attributes that hold for all traces in a file, and the offsets in the times of those of traceconv."""
    out.problem(JOINED, SOURCES)
    info: dict[str, Any] = {}
    shifts, clocks = [], set()
    for trace in reader.stated:
        stated = _decoded(trace.attributes)
        clocks.add(str(stated.get(CLOCK, "")))
        by = _shift(stated, out)
        if by and trace.end is not None:
            shifts.append(Shift(trace.begin, trace.end, by))
        elif by:
            out.problem(SHIFT_WITHOUT_END, trace.begin, f"{by} ns")
        if by is None or (by and trace.end is None):
            clocks.add(_SEVERAL_CLOCKS)
        info |= {key: value for key, value in stated.items() if key not in _UNPREFIXED}
    info = {key: value for key, value in (info | _decoded(reader.metadata)).items() if not key.startswith("traceconv.")}
    return info | {CLOCK: clocks.pop() if len(clocks) == 1 else _SEVERAL_CLOCKS}, shifts


def _marks_of(formats: Collection[str]) -> FormatMarks:
    """Return the declarations of the formats of the inputs, if traceconv wrote the trace; else none."""
    return marks_of_output([importer_class(name).marks for name in sorted(FORMATS.keys() & set(formats))])


def _shift(stated: dict[str, Any], out: Builder) -> int | None:
    """Return the offset that, as the attributes state, was added to all times, ns; None for one that is wrong."""
    value = stated.get(SHIFT, 0)
    if type(value) is int and -LIMIT_NS <= value <= LIMIT_NS:
        return value
    out.problem(BAD_SHIFT, SHIFT, f"{value!r:.40}")
    return None


@dataclass(slots=True)
class StatedTrace:
    """A trace of traceconv in the file. All its events come after its attributes."""

    begin: int  # the number of the packet with its attributes
    attributes: dict[str, Any]
    end: int | None = None  # the number of its last packet, if the file says where it ends


class PacketReader:
    """Reads all packets of one trace into rows, clocks, tracks, and metadata of the recording."""

    def __init__(self, out: Builder, unpacked: Unpacked) -> None:
        self._out, self._unpacked = out, unpacked
        self.rows, self.clocks, self.tracks = Rows(out), Clocks(), Tracks()
        self.metadata: dict[str, Any] = {}
        self.stated: list[StatedTrace] = []
        self._sequences: dict[int, PacketSequence] = {}
        self._number = self._nesting = 0
        self._others: Counter[int] = Counter()
        self._series: dict[tuple[int, int], int] = {}
        self._typed: Counter[int] = Counter()
        self._touched: list[PacketSequence] = []  # by the current packet
        module = kernel.module("packets")
        self._plain = None
        if module is not None:
            parts = self.rows, self.clocks, self.tracks, self._default_track, self._series_of
            self._plain = PlainPackets(module, *parts)

    @property
    def is_joined(self) -> bool:
        """Whether the file has a trace of traceconv and another one, before or after it."""
        if not self.stated:
            return False
        first = self.stated[0]
        return len(self.stated) > 1 or first.begin > TO_SOURCES or (first.end or self._number) < self._number

    def read(self, stream: Any) -> None:
        """Read all packets of a plain stream."""
        damage = self._read_packets(stream)
        if damage is not None:
            self._out.problem(TRUNCATED if damage.truncated else CORRUPT, f"byte {damage.at}")
        self._out.balance.read += self._number
        self._report()

    def _read_packets(self, stream: Readable) -> Damage | None:
        """Read all packets of a stream; return what is damaged at its end, None if nothing is."""
        if self._plain is None:
            return self._read_all(read_packets(stream))
        buffer = PacketBuffer(stream)
        while True:
            packet = self._plain.read(buffer)
            self._number = self._plain.number
            if packet is None or isinstance(packet, Damage):
                return packet
            if not packet:
                self._out.balance.merged[DECLARATIONS] += 1 + self._plain.pass_over_empty(buffer)
                continue
            self._read_packet(packet)
            self._plain.update(self._touched)
            self._touched.clear()

    def _read_all(self, packets: Generator[bytes, None, Damage | None]) -> Damage | None:
        """Read all packets without the kernel; the specification of it."""
        while True:
            try:
                packet = next(packets)
            except StopIteration as stop:
                damage: Damage | None = stop.value
                return damage
            self._number += 1
            if packet:
                self._read_packet(packet)
            else:
                self._out.balance.merged[DECLARATIONS] += 1

    def _read_packet(self, data: bytes) -> None:
        try:
            self._packet(data)
        except BadWire as error:
            self._out.skip(NOT_A_PACKET, self._number, str(error))

    def _packet(self, data: bytes) -> None:
        members = dict(fields(data))
        if _CLOCKS in members and members.keys() <= _OF_SNAPSHOT:
            self._snapshot(members[_CLOCKS], unsigned(members.get(_SEQUENCE_ID, 0)))
            return
        sequence = self._sequence(members)
        needs_state = unsigned(members.get(_FLAGS, 0)) & _NEEDS_STATE and _CLOCKS not in members  # as in Perfetto
        if needs_state and not sequence.cleared:
            self._out.skip(NO_STATE, self._number, f"sequence {sequence.number}")
            return
        if self._plain is not None and (_EVENT in members or _SAMPLE in members):
            self._plain.flush()
        if _EVENT in members:
            self._event(Event(as_bytes(members[_EVENT])), members, sequence)
        elif _SAMPLE in members:
            self._sample(Message(members[_SAMPLE]), members, sequence)
        elif _COMPRESSED in members:
            self._unpack(as_bytes(members[_COMPRESSED]))
        elif not self._declaration(members, sequence, unsigned(members.get(_MACHINE, 0))):
            self._others[min(members.keys() - _ENVELOPE)] += 1

    def _declaration(self, fields: dict[int, Value], sequence: PacketSequence, machine: int) -> bool:
        """Read a packet that describes events (tracks, clocks, processes); return whether it is one."""
        if _TRACK in fields:
            self.tracks.declare(fields[_TRACK], machine)
        elif _CLOCKS in fields:
            self._snapshot(fields[_CLOCKS], sequence.number)
            return True
        elif _TREE in fields:
            self.tracks.process_tree(fields[_TREE])
        elif _PROCESS in fields:
            self.tracks.legacy_process(fields[_PROCESS], machine)
        elif _THREAD in fields:
            sequence.thread = self.tracks.legacy_thread(fields[_THREAD], machine)
            sequence.time_ns = Message(fields[_THREAD]).signed(6) * 1000
        elif _ATTRIBUTES in fields:
            attributes = attributes_of(Message(fields[_ATTRIBUTES]))
            if SOURCES in attributes:
                self.stated.append(StatedTrace(self._number, attributes))
            else:
                self.metadata.update(attributes)
            if SIZE in attributes and self.stated:
                self.stated[-1].end = self._number
        elif _SYSTEM in fields:
            self.metadata.update(system_of(Message(fields[_SYSTEM])))
        elif _UUID in fields:
            uuid = Message(fields[_UUID])
            self.metadata["trace_uuid"] = f"{uuid.unsigned(1):016x}{uuid.unsigned(2):016x}"
        elif fields.keys() - _ENVELOPE:
            return False
        self._out.balance.merged[DECLARATIONS] += 1
        return True

    def _snapshot(self, data: Value, sequence: int) -> None:
        if self.clocks.snapshot(data, sequence) and self._plain is not None:
            self._touched += self._sequences.values()
        self._out.balance.merged[DECLARATIONS] += 1

    def _report(self) -> None:
        """Count the packets that were not read, by kind."""
        for code, about in ((OTHER_SOURCE, False), (ABOUT_ITSELF, True)):
            kinds = [(kind, count) for kind, count in self._others.most_common() if (kind in ABOUT) is about]
            named = {PACKET_KINDS.get(kind, f"packet field {kind}"): count for kind, count in kinds}
            if named:
                shown = ", ".join(f"{count} x {name}" for name, count in named.items())
                self._out.problem(code, shown, count=sum(named.values()))
                self._out.info.diagnostics.add(code, count=0, skipped=sum(named.values()))
                for name, count in named.items():
                    self._out.balance.skipped[f"skipped ({code.name}: {name})"] += count
        if self._typed:
            shown = ", ".join(f"{count} x field {number}" for number, count in self._typed.most_common(10))
            self._out.problem(TYPED_ARGS, shown, count=self._typed.total())

    def _unpack(self, compressed: bytes) -> None:
        at = self._number
        if self._nesting == _MAX_NESTING:
            self._out.skip(BAD_COMPRESSION, at, f"compressed more than {_MAX_NESTING} times over")
            return
        stream = Inflated(compressed, self._unpacked)
        self._nesting += 1
        damage = self._read_packets(stream)
        self._nesting -= 1
        if stream.wrong:
            self._out.skip(BAD_COMPRESSION, at, stream.wrong)
            return
        self._out.balance.merged[UNPACKED_PACKETS] += 1
        if damage is not None:
            self._out.problem(TRUNCATED if damage.truncated else CORRUPT, self._number, "inside of compressed packets")

    # -- sequences --------------------------------------------------------------------------------------------

    def _sequence(self, fields: dict[int, Value]) -> PacketSequence:
        """Return the sequence of a packet, updated by the packet."""
        number, flags = unsigned(fields.get(_SEQUENCE_ID, 0)), unsigned(fields.get(_FLAGS, 0))
        sequence = self._sequences.get(number)
        if sequence is None:
            sequence = self._sequences[number] = PacketSequence(number, self._out, self._unpacked)
        if self._plain is not None:
            self._touched.append(sequence)
        if fields.keys() <= _USUAL and sequence.has_packets and not flags & _CLEARED:
            return sequence
        if flags & _CLEARED or fields.get(_OLD_CLEARED):
            sequence.clear()
            sequence.cleared = True
        elif fields.get(_DROPPED) and sequence.has_packets:
            # The first packet of each sequence also clears the state, since earlier state is not known.
            self._out.problem(DROPPED, self._number, f"sequence {number}")
            sequence.cleared = False
        sequence.has_packets = True
        if _DEFAULTS in fields:
            sequence.set_defaults(fields[_DEFAULTS])
            sequence.clock = self.clocks.number(sequence.clock_id, number)
        if _INTERNED in fields:
            sequence.intern(fields[_INTERNED])
        return sequence

    def _time(self, fields: dict[int, Value], sequence: PacketSequence) -> _Time | None:
        """Return the timestamp of a packet; None without one."""
        if _TIMESTAMP not in fields:
            return None
        clock = sequence.clock
        if _CLOCK_ID in fields:
            clock = self.clocks.number(unsigned(fields[_CLOCK_ID]), sequence.number)
        ts = unsigned(fields[_TIMESTAMP])
        if self.clocks.is_incremental(clock):
            ts = self.clocks.advance(clock, ts)
        return (ts, clock) if ts < _SIGN else None

    # -- track events -----------------------------------------------------------------------------------------

    def _event(self, event: Event, fields: dict[int, Value], sequence: PacketSequence) -> None:
        """Read a TrackEvent of a packet with these fields."""
        time = self._time(fields, sequence) or self._old_time(event, sequence)
        if time is None or not -_SIGN <= time[0] < _SIGN:
            self._out.skip(BAD_TIME, self._number)
            return
        name = sequence.name(event.name_iid) if event.name_iid else self._out.tables.string(event.name)
        category = sequence.category(tuple(event.category_iids), event.categories)
        track = self.tracks.number(event.track) if event.track is not None else self._default_track(sequence)
        self._typed.update(event.unknown)
        if event.type == _COUNTER and event.value is not None:
            self.rows.add_value(track, time, event.value, self._series_of(sequence), self._number)
        elif event.type == _COUNTER:
            self._out.skip(NO_VALUE, self._number)
        elif event.type in _KINDS:
            self._named(event, sequence, _KINDS[event.type], track, time, name, category)
        elif event.legacy is not None:
            self._legacy(event, sequence, track, time, name, category)
        else:
            self._out.skip(BAD_TYPE, self._number, f"type {event.type}")
        if event.extra or event.double_extra:
            self._extra_values(event, sequence, time)

    def _default_track(self, sequence: PacketSequence) -> int:
        thread = ("thread", *sequence.thread) if sequence.thread else DEFAULT_TRACK
        return self.tracks.number(sequence.track or thread)

    def _old_time(self, event: Event, sequence: PacketSequence) -> _Time | None:
        """Return times of traces before 2020: microseconds since the last event of the sequence, or absolute."""
        if event.time_us is not None:
            return event.time_us * 1000, TRACE_TIME
        if event.step_us is None:
            return None
        sequence.time_ns += event.step_us * 1000
        return sequence.time_ns, TRACE_TIME

    def _named(
        self, event: Event, sequence: PacketSequence, kind: Kind, track: int, time: _Time, name: int, category: int
    ) -> None:
        """Add a start, end, instant or state, with its args, its flows and its log entry."""
        args = event.args(sequence)
        at = self._number
        entry = self._entry(event.log, event, sequence) if event.log is not None else None
        if entry is not None and kind is Kind.INSTANT:
            event_name = sequence.text(NAMES, event.name_iid) if event.name_iid else event.name
            if event_name not in ("", entry.text):
                args = join_args(args, {"event": event_name})
            self.rows.add(Kind.LOG, track, time, name, category, args, at)
            self.rows.entries[self.rows.last] = entry
            return
        # Flows connect slices: an instant with a flow becomes a slice of duration 0.
        if kind is Kind.INSTANT and event.flows:
            kind = Kind.SLICE
        self.rows.add(kind, track, time, name, category, args, at)
        if kind is Kind.END and event.flows:
            self._out.problem(FLOW_OF_END, at, f"flow {event.flows[0][0]}", count=len(event.flows))
        for id, ends in event.flows if kind is not Kind.END else ():
            self.rows.add_flow(id, ends)
        if entry is not None:
            self.rows.add(Kind.LOG, track, time, name, category, b"", at, counts=False)
            self.rows.entries[self.rows.last] = entry

    def _entry(self, log: Message, event: Event, sequence: PacketSequence) -> Entry:
        """Read LogMessage: source_location_iid 1, body_iid 2, prio 3."""
        location = sequence.location(log.unsigned(1)) if 1 in log else event.location(sequence)
        level = log.unsigned(3)
        known = Level(level) if level in Level._value2member_map_ else Level.INFO
        return Entry(sequence.text(BODIES, log.unsigned(2)), known, place_of(location) if location else "")

    def _series_of(self, sequence: PacketSequence) -> int:
        """Return the series of an incremental counter, which adds up within a sequence until its state is cleared."""
        key = sequence.number, sequence.generation
        return self._series.setdefault(key, len(self._series))

    def _extra_values(self, event: Event, sequence: PacketSequence, time: _Time) -> None:
        """Add the extra counter values of an event."""
        series = self._series_of(sequence)
        for values, uuids in (
            (event.extra, event.extra_tracks or sequence.extra),
            (event.double_extra, event.double_tracks or sequence.extra_double),
        ):
            for value, uuid in zip(values, uuids, strict=False):
                self.rows.add_value(self.tracks.number(uuid), time, value, series, self._number, counts=False)
            if len(values) > len(uuids):
                self._out.problem(NO_VALUE, self._number, count=len(values) - len(uuids))

    # -- events of Chrome before typed track events -------------------------------------------------------------

    def _legacy(
        self, event: Event, sequence: PacketSequence, track: int, time: _Time, name: int, category: int
    ) -> None:
        """Read LegacyEvent: a phase of the Trace Event Format (2), with the fields that it needs."""
        legacy = Message(event.legacy or b"")
        phase = chr(legacy.unsigned(2) & 0x7F)
        if phase not in _PHASES:
            self._out.skip(BAD_TYPE, self._number, f"phase {phase!r}")
            return
        iid = legacy.unsigned(1) or event.name_iid
        if iid:
            name = sequence.name(iid)
        if phase in "bneSF":
            pid = legacy.signed(18, (sequence.thread or (0, 0))[0])
            event_name = sequence.text(NAMES, iid) if iid else event.name
            track = self.tracks.asynchronous(pid, _legacy_id(legacy), event_name)
        elif 18 in legacy or 19 in legacy:
            pid, tid = sequence.thread or (0, 0)
            track = self.tracks.thread(legacy.signed(18, pid), legacy.signed(19, tid))
        args, at = event.args(sequence), self._number
        dur, bind, direction, encloses = (legacy.signed(field) for field in (3, 8, 13, 12))
        self.rows.add(_PHASES[phase], track, time, name, category, args, at)
        row = self.rows.last
        id = b"%d" % bind
        if phase in "stf":
            self.rows.steps.append(Step(row, phase, id, phase == "f" and not encloses, True))
            return
        if phase == "X":
            self.rows.durations[row] = dur * 1000
        for number, ends in event.flows:
            self.rows.add_flow(number, ends)
        if direction in _DIRECTIONS:
            self.rows.steps.append(Step(row, _DIRECTIONS[direction], id, False, False))

    # -- samples ----------------------------------------------------------------------------------------------

    def _sample(self, sample: Message, fields: dict[int, Value], sequence: PacketSequence) -> None:
        """Read PerfSample: cpu 1, pid 2, tid 3, callstack 4, timebase_count 6, kernel_records_lost 17, skipped 18.

        traceconv writes totals of samples without a CPU to follower_counts 7, with a suffix of the event name.
        """
        time = self._time(fields, sequence)
        if 17 in sample or 18 in sample:
            lost = sample.unsigned(17)
            self._out.skip(NO_SAMPLE, self._number, f"{lost} samples" if lost else f"pid {sample.signed(2)}")
            return
        if time is None:
            self._out.skip(BAD_TIME, self._number)
            return
        stack = sequence.stack(sample.unsigned(4)) if 4 in sample else self._out.frame("(no call stack)")
        cpu, weight = sample.unsigned(1) if 1 in sample else NO_CPU, 1
        is_hidden = 7 in sample and 6 not in sample and cpu == NO_CPU
        if 6 in sample or is_hidden:
            total = sample.unsigned(7 if is_hidden else 6)
            weight = total - sequence.sample_totals.get(cpu, 0)
            sequence.sample_totals[cpu] = total
        name = self._out.tables.string(
            sequence.sample_name.removesuffix(CPU_UNKNOWN) if is_hidden else sequence.sample_name
        )
        thread = sample.signed(2), sample.signed(3)
        self.rows.add(Kind.SAMPLE, 0, time, name, 0, b"", self._number)
        self.rows.samples[self.rows.last] = Taken(thread, StackId(stack), weight, cpu)


def _legacy_id(legacy: Message) -> str:
    """Return the id of an asynchronous event: scope 7; unscoped 6, local 10, global 11."""
    return next((f"{legacy.text(7)} {field} {legacy.unsigned(field)}" for field in (10, 6, 11) if field in legacy), "")

"""Read the packets of a Perfetto trace; those of other kinds are counted as not read.

Source: protos/perfetto/trace/trace_packet.proto and track_event/track_event.proto in github.com/google/perfetto; the
numbers below are those of the files.

Most packets of a large trace differ only in their timestamp, which comes first: ends of slices on a track, starts
without args. So the bytes after the timestamp are cached as a whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from traceconv import kernel
from traceconv.families.common.wire_reader import (
    BadWire,
    Message,
    Value,
    as_bytes,
    fields,
    unsigned,
    varint,
)
from traceconv.families.perfetto._about import (
    ABOUT,
    PACKET_KINDS,
    SIZE,
    SOURCES,
    TO_SOURCES,
    attributes_of,
    system_of,
)
from traceconv.families.perfetto._clocks import TRACE_TIME, Clocks
from traceconv.families.perfetto._event import Event, place_of
from traceconv.families.perfetto._inflate import Inflated
from traceconv.families.perfetto._plain import PlainPackets
from traceconv.families.perfetto._rows import Entry, Kind, Rows, Step, Taken
from traceconv.families.perfetto._sequence import Sequence
from traceconv.families.perfetto._tracks import DEFAULT_TRACK, Tracks
from traceconv.io.limits import Unpacked
from traceconv.io.packets import CPU_UNKNOWN, Damage, PacketBuffer, Readable, read_packets
from traceconv.model.args import join_args
from traceconv.model.builder import Builder
from traceconv.model.counted import DECLARATIONS, UNPACKED_PACKETS
from traceconv.model.diagnostics import absent, lost, skipped
from traceconv.model.trace import NO_CPU, Level, StackId

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
_BEGIN, _END, _INSTANT, _COUNTER, _STATE = 1, 2, 3, 4, 5
_KINDS = {_BEGIN: Kind.BEGIN, _END: Kind.END, _INSTANT: Kind.INSTANT, _STATE: Kind.STATE}

#: The fields of a packet beside its content.
_ENVELOPE = frozenset((3, 8, 10, 12, 13, 41, 42, 58, 59, 79, 87, 98))
#: The fields of packets that can be cached by their bytes.
_REPEATABLE = frozenset((3, _TIMESTAMP, _SEQUENCE_ID, _EVENT, _FLAGS, 79))
_MEMO = 1 << 16
_DECLARATIONS = DECLARATIONS
_SURE, _SIGN = 1 << 62, 1 << 63
#: Perfetto compresses packets once; each level multiplies the size that a small file can unpack to.
_MAX_NESTING = 4
#: Phases of the Trace Event Format that old traces use.
_PHASES = {"X": Kind.SLICE, **dict.fromkeys("BbS", Kind.BEGIN), **dict.fromkeys("EeF", Kind.END)}
_PHASES |= {**dict.fromkeys("iIRn", Kind.INSTANT), **dict.fromkeys("stf", Kind.STEP)}
_DIRECTIONS = {1: "f", 2: "s", 3: "t"}


@dataclass(slots=True)
class OwnTrace:
    """A trace of traceconv in the file. All its events come after its attributes.

    Attributes:
        begin: the number of the packet with its attributes.
        attributes: these, by name.
        end: the number of its last packet; None if the file does not say where it ends.
    """

    begin: int
    attributes: dict[str, Any]
    end: int | None = None


class PacketReader:
    """Reads all packets of one trace.

    Args:
        out: the builder.
        unpacked: counts the unpacked bytes of compressed packets.

    Attributes:
        rows, clocks, tracks: the events, clocks and tracks read so far.
        metadata: metadata of the recording.
        own: the traces of traceconv in the file.
    """

    def __init__(self, out: Builder, unpacked: Unpacked) -> None:
        self._unpacked = unpacked
        self.rows, self.clocks, self.tracks = Rows(out), Clocks(), Tracks()
        self.metadata: dict[str, Any] = {}
        self._out = out
        self._sequences: dict[int, Sequence] = {}
        self._number = self._nesting = 0
        self._known: dict[bytes, tuple[Sequence, int, int, int, int]] = {}
        self._high: dict[bytes, int] = {}
        self._others: Counter[int] = Counter()
        self._series: dict[tuple[int, int], int] = {}
        self._typed: Counter[int] = Counter()
        self._touched: list[Sequence] = []  # by the current packet
        self.own: list[OwnTrace] = []
        module = kernel.module("packets")
        self._plain = (
            PlainPackets(module, self.rows, self.clocks, self.tracks, self._default_track, self._series_of)
            if module is not None
            else None
        )

    @property
    def is_joined(self) -> bool:
        """Whether the file has a trace of traceconv and another one, before or after it."""
        own = self.own
        return bool(own) and (len(own) > 1 or own[0].begin > TO_SOURCES or (own[0].end or self._number) < self._number)

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
            return self._read_known(read_packets(stream))
        buffer = PacketBuffer(stream)
        while True:
            packet = self._plain.read(buffer)
            self._number = self._plain.number
            if packet is None or isinstance(packet, Damage):
                return packet
            if not packet:
                self._out.balance.merged[_DECLARATIONS] += 1 + self._plain.pass_over_empty(buffer)
                continue
            self._read_packet(packet, 0)
            self._plain.update(self._touched)
            self._touched.clear()

    def _read_packet(self, data: bytes, known_from: int) -> None:
        try:
            self.packet(data, known_from)
        except BadWire as error:
            self._out.skip(NOT_A_PACKET, self._number, str(error))

    def _read_known(self, packets: Generator[bytes, None, Damage | None]) -> Damage | None:
        """Read all packets: cached ones cost a lookup, others go to `packet`. Return the damage, if any."""
        known, high, rows = self._known, self._high, self.rows
        # Rows.add, inlined.
        add_ts, add_kind, add_track, add_clock = rows.ts.append, rows.kind.append, rows.track.append, rows.clock.append
        add_name, add_category, add_at = rows.name.append, rows.category.append, rows.at.append
        add_counts, args_end = rows.counts.append, rows.args_end
        end = 10  # the usual end of the timestamp of a packet
        while True:
            try:
                data = next(packets)
            except StopIteration as stop:
                damage: Damage | None = stop.value
                return damage
            self._number += 1
            if not data:
                self._out.balance.merged[_DECLARATIONS] += 1
                continue
            known_from = 0
            if data[:1] == b"\x40":  # the timestamp comes first
                rest = high.get(data[4:end])
                if rest is None:
                    end, rest = self._timestamp_end(data, end)
                if rest is not None and data[1] & data[2] & data[3] & 0x80:
                    known_from = end
                    known_packet = known.get(data[end:])
                    if known_packet is not None:
                        sequence, kind, track, name, category = known_packet
                        add_ts(rest | (data[1] & 0x7F) | (data[2] & 0x7F) << 7 | (data[3] & 0x7F) << 14)
                        add_kind(kind)
                        add_track(track)
                        add_clock(sequence.clock)
                        add_name(name)
                        add_category(category)
                        add_at(self._number)
                        add_counts(True)
                        args_end.append(args_end[-1])
                        continue
            self._read_packet(data, known_from)

    def _timestamp_end(self, data: bytes, end: int) -> tuple[int, int | None]:
        """Return the end of the timestamp at the start of a packet, and the value of its bytes after the third."""
        try:
            value, at = varint(data, 4)
        except (IndexError, BadWire):
            return end, None
        if not data[1] & data[2] & data[3] & 0x80 or value >= _SURE >> 21:
            return end, None
        if len(self._high) >= _MEMO:
            self._high.clear()
        self._high[data[4:at]] = value << 21
        return at, value << 21

    def packet(self, data: bytes, known_from: int = 0) -> None:
        """Read one packet.

        Args:
            data: the message without its frame.
            known_from: the end of its timestamp; 0 if it does not start with one.
        """
        members = dict(fields(data))
        plain = members.keys() <= _REPEATABLE
        sequence = self._sequence(members, plain)
        needs_state = unsigned(members.get(_FLAGS, 0)) & _NEEDS_STATE and _CLOCKS not in members  # as in Perfetto
        if needs_state and not sequence.cleared:
            self._out.skip(NO_STATE, self._number, f"sequence {sequence.number}")
            return
        if self._plain is not None and (_EVENT in members or _SAMPLE in members):
            self._plain.flush()
        if _EVENT in members:
            again = data[known_from:] if known_from and plain else b""
            self._event(as_bytes(members[_EVENT]), members, sequence, again)
        elif _SAMPLE in members:
            self._sample(Message(members[_SAMPLE]), members, sequence)
        elif _COMPRESSED in members:
            self._unpack(as_bytes(members[_COMPRESSED]))
        elif not self._declaration(members, sequence, unsigned(members.get(_MACHINE, 0))):
            self._other(members)

    def _declaration(self, fields: dict[int, Value], sequence: Sequence, machine: int) -> bool:
        """Read a packet that describes events (tracks, clocks, processes); return whether it is one."""
        if _TRACK in fields:
            self.tracks.declare(fields[_TRACK], machine)
        elif _CLOCKS in fields:
            if self.clocks.snapshot(fields[_CLOCKS], sequence.number) and self._plain is not None:
                self._touched += self._sequences.values()
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
                self.own.append(OwnTrace(self._number, attributes))
            else:
                self.metadata.update(attributes)
            if SIZE in attributes and self.own:
                self.own[-1].end = self._number
        elif _SYSTEM in fields:
            self.metadata.update(system_of(Message(fields[_SYSTEM])))
        elif _UUID in fields:
            uuid = Message(fields[_UUID])
            self.metadata["trace_uuid"] = f"{uuid.unsigned(1):016x}{uuid.unsigned(2):016x}"
        elif fields.keys() - _ENVELOPE:
            return False
        self._out.balance.merged[_DECLARATIONS] += 1
        return True

    def _other(self, fields: dict[int, Value]) -> None:
        self._others[min(fields.keys() - _ENVELOPE)] += 1

    def _report(self) -> None:
        """Count the packets that were not read, by kind."""
        for code, about in ((OTHER_SOURCE, False), (ABOUT_ITSELF, True)):
            kinds = {kind: n for kind, n in self._others.most_common() if (kind in ABOUT) is about}
            if kinds:
                named = {PACKET_KINDS.get(kind, f"packet field {kind}"): count for kind, count in kinds.items()}
                shown = ", ".join(f"{count} x {name}" for name, count in named.items())
                self._out.problem(code, shown, count=sum(named.values()))
                self._out.info.diagnostics.add(code, count=0, skipped=sum(named.values()))
                for name, count in named.items():
                    self._out.balance.skipped[f"skipped ({code.name}: {name})"] += count
        if self._typed:
            shown = ", ".join(f"{count} x field {number}" for number, count in self._typed.most_common(10))
            self._out.problem(TYPED_ARGS, shown, count=self._typed.total())

    def _unpack(self, compressed: bytes) -> None:
        """Read the packets inside a packet."""
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

    def _sequence(self, fields: dict[int, Value], plain: bool) -> Sequence:
        """Return the sequence of a packet, updated by the packet.

        Args:
            fields: the fields of the packet.
            plain: whether it has only the usual fields, of which only the flags can change the sequence.
        """
        number = unsigned(fields.get(_SEQUENCE_ID, 0))
        sequence = self._sequences.get(number)
        if sequence is None:
            sequence = self._sequences[number] = Sequence(number, self._out, self._unpacked)
        if self._plain is not None:
            self._touched.append(sequence)
        if plain and sequence.has_packets and not unsigned(fields.get(_FLAGS, 0)) & _CLEARED:
            return sequence
        if unsigned(fields.get(_FLAGS, 0)) & _CLEARED or fields.get(_OLD_CLEARED):
            sequence.clear()
            sequence.cleared = True
            self._known.clear()
        elif fields.get(_DROPPED) and sequence.has_packets:
            # The first packet of each sequence also clears the state, since earlier state is not known.
            self._out.problem(DROPPED, self._number, f"sequence {number}")
            sequence.cleared = False
            self._known.clear()
        sequence.has_packets = True
        if _DEFAULTS in fields:
            sequence.set_defaults(fields[_DEFAULTS])
            sequence.clock = self.clocks.number(sequence.clock_id, number)
            self._known.clear()
        if _INTERNED in fields and sequence.intern(fields[_INTERNED]):
            self._known.clear()
        return sequence

    def _time(self, fields: dict[int, Value], sequence: Sequence) -> tuple[int, int] | None:
        """Return the timestamp of a packet and the number of its clock; None without one."""
        if _TIMESTAMP not in fields:
            return None
        clock = (
            self.clocks.number(unsigned(fields[_CLOCK_ID]), sequence.number) if _CLOCK_ID in fields else sequence.clock
        )
        ts = unsigned(fields[_TIMESTAMP])
        if self.clocks.is_incremental(clock):
            ts = self.clocks.advance(clock, ts)
        return (ts, clock) if ts < _SIGN else None

    # -- track events -----------------------------------------------------------------------------------------

    def _event(self, data: bytes, fields: dict[int, Value], sequence: Sequence, rest: bytes) -> None:
        """Read a TrackEvent.

        Args:
            data: the event.
            fields: the fields of its packet.
            sequence: the sequence of the packet.
            rest: the packet after its timestamp, if it depends on no other packets than those of interned data.
        """
        event = Event(data)
        time = self._time(fields, sequence) or self._old_time(event, sequence)
        if time is None or not -_SIGN <= time[0] < _SIGN:
            self._out.skip(BAD_TIME, self._number)
            return
        name = sequence.name(event.name_iid) if event.name_iid else self._out.tables.string(event.name)
        category = (
            sequence.category(tuple(event.category_iids)) if not event.categories else self._category(event, sequence)
        )
        track = self.tracks.number(event.track) if event.track is not None else self._default_track(sequence)
        self._typed.update(event.unknown)
        if event.type == _COUNTER:
            self._value(event, sequence, track, time)
        elif event.type in _KINDS:
            self._named(event, sequence, _KINDS[event.type], track, time, name, category)
            if rest and event.is_plain and len(self._known) < _MEMO and not self.clocks.is_incremental(time[1]):
                self._known[rest] = (sequence, _KINDS[event.type], track, name, category)
        elif event.legacy is not None:
            self._legacy(event, Message(event.legacy), sequence, track, time, name, category)
        else:
            self._out.skip(BAD_TYPE, self._number, f"type {event.type}")
        if event.extra or event.double_extra:
            self._extra_values(event, sequence, time)

    def _category(self, event: Event, sequence: Sequence) -> int:
        return self._out.tables.string(",".join([*sequence.categories(event.category_iids), *event.categories]))

    def _default_track(self, sequence: Sequence) -> int:
        thread = ("thread", *sequence.thread) if sequence.thread else DEFAULT_TRACK
        return self.tracks.number(sequence.track or thread)

    def _old_time(self, event: Event, sequence: Sequence) -> tuple[int, int] | None:
        """Return times of traces before 2020: microseconds since the last event of the sequence, or absolute."""
        if event.time_us is not None:
            return event.time_us * 1000, TRACE_TIME
        if event.step_us is None:
            return None
        sequence.time_ns += event.step_us * 1000
        return sequence.time_ns, TRACE_TIME

    def _named(
        self, event: Event, sequence: Sequence, kind: Kind, track: int, time: tuple[int, int], name: int, category: int
    ) -> None:
        """Add a start, end, instant or state, with its args, its flows and its log entry."""
        args = event.args(sequence)
        at = self._number
        entry = self._entry(event.log, event, sequence) if event.log is not None else None
        if entry is not None and kind is Kind.INSTANT:
            own_name = sequence.event_name(event.name_iid) if event.name_iid else event.name
            if own_name not in ("", entry.text):
                args = join_args(args, {"event": own_name})
            self.rows.add(Kind.LOG, track, time, name, category, args, at)
            self.rows.entries[self.rows.last] = entry
            return
        # Flows connect slices: an instant with a flow becomes a slice of duration 0.
        if kind is Kind.INSTANT and event.flows:
            kind = Kind.SLICE
        self.rows.add(kind, track, time, name, category, args, at)
        if kind is Kind.END:
            if event.flows:
                self._out.problem(FLOW_OF_END, at, f"flow {event.flows[0][0]}", count=len(event.flows))
        else:
            for id, ends in event.flows:
                self.rows.add_flow(id, ends)
        if entry is not None:
            self.rows.add(Kind.LOG, track, time, name, category, b"", at, counts=False)
            self.rows.entries[self.rows.last] = entry

    def _entry(self, log: Message, event: Event, sequence: Sequence) -> Entry:
        """Read LogMessage: source_location_iid 1, body_iid 2, prio 3."""
        location = sequence.location(log.unsigned(1)) if 1 in log else event.location(sequence)
        level = log.unsigned(3)
        known = Level(level) if level in Level._value2member_map_ else Level.INFO
        return Entry(sequence.body(log.unsigned(2)), known, place_of(location) if location else "")

    def _value(self, event: Event, sequence: Sequence, track: int, time: tuple[int, int]) -> None:
        if event.value is None:
            self._out.skip(NO_VALUE, self._number)
            return
        self.rows.add_value(track, time, event.value, self._series_of(sequence), self._number)

    def _series_of(self, sequence: Sequence) -> int:
        """Return the series of an incremental counter, which adds up within a sequence until its state is cleared."""
        key = sequence.number, sequence.generation
        return self._series.setdefault(key, len(self._series))

    def _extra_values(self, event: Event, sequence: Sequence, time: tuple[int, int]) -> None:
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
        self,
        event: Event,
        legacy: Message,
        sequence: Sequence,
        track: int,
        time: tuple[int, int],
        name: int,
        category: int,
    ) -> None:
        """Read LegacyEvent: a phase of the Trace Event Format (2), with the fields that it needs."""
        phase = chr(legacy.unsigned(2) & 0x7F)
        if phase not in _PHASES:
            self._out.skip(BAD_TYPE, self._number, f"phase {phase!r}")
            return
        iid = legacy.unsigned(1) or event.name_iid
        if iid:
            name = sequence.name(iid)
        if phase in "bneSF":
            pid = legacy.signed(18, (sequence.thread or (0, 0))[0])
            track = self.tracks.asynchronous(pid, _legacy_id(legacy), sequence.event_name(iid) if iid else event.name)
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

    def _sample(self, sample: Message, fields: dict[int, Value], sequence: Sequence) -> None:
        """Read PerfSample: cpu 1, pid 2, tid 3, callstack 4, timebase_count 6, kernel_records_lost 17, skipped 18.

        Totals of samples without a CPU are in follower_counts 7, where traceconv writes them, with a suffix of the
        event name.
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

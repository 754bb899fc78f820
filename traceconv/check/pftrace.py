"""Checks Perfetto traces for what the viewer drops or misplaces, most of it without a message.

Frames are cut by hand, so that a large trace is never in memory at once; each packet is decoded by the protobuf
messages of the `perfetto` package. A packet is named by its position in the file, from 0 (packets that come out of
`compressed_packets` count on). The rules follow the trace processor of Perfetto v58 and what v52 was seen to do.
"""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, ClassVar

from google.protobuf.message import DecodeError
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TracePacket

from traceconv.check._clocks import Clocks
from traceconv.check._report import CheckReport, declare, make_report
from traceconv.check._tracks import Tracks
from traceconv.io.limits import Unpacked
from traceconv.io.packets import Readable, read_packets
from traceconv.model.diagnostics import Diagnostics, Severity

TRUNCATED = declare(
    "check-pftrace.truncated",
    Severity.DATA_LOSS,
    "the file ends inside a packet; viewers leave that out without a word",
)
CORRUPT = declare("check-pftrace.corrupt", Severity.ERROR, "no packet where one must begin; viewers stop there")
UNPACKED = declare("check-pftrace.corrupt_compression", Severity.ERROR, "compressed packets that cannot be unpacked")
NOT_A_PACKET = declare("check-pftrace.not_a_packet", Severity.ERROR, "a packet cannot be decoded")
PACKED_TWICE = declare(
    "check-pftrace.packed_twice", Severity.DATA_LOSS, "compressed packets inside of compressed packets are not read"
)
UNKNOWN_FIELDS = declare(
    "check-pftrace.unknown_fields", Severity.NOTICE, "fields that the protobuf definitions do not have"
)
NO_SEQUENCE = declare(
    "check-pftrace.no_sequence", Severity.DATA_LOSS, "events of a packet without a sequence id are dropped"
)
NOT_CLEARED = declare(
    "check-pftrace.not_cleared",
    Severity.DATA_LOSS,
    "a packet needs incremental state that its sequence never started (flag 1); it is dropped",
)
NOT_INTERNED = declare(
    "check-pftrace.not_interned", Severity.DATA_LOSS, "an interned id is used that its sequence has not defined"
)
INTERNED_ZERO = declare("check-pftrace.interned_zero", Severity.DATA_LOSS, "interned ids start at 1")
INTERNED_CHANGED = declare(
    "check-pftrace.interned_changed", Severity.DATA_LOSS, "an interned id is defined again as something else"
)
TIME_RANGE = declare(
    "check-pftrace.time_range", Severity.DATA_LOSS, "a time that is negative as int64 or on the timeline is dropped"
)
NO_TIME = declare("check-pftrace.no_time", Severity.DATA_LOSS, "an event without a timestamp is dropped")
NO_TRACK = declare("check-pftrace.no_track", Severity.NOTICE, "an event without a track goes to a default track")
NO_TYPE = declare("check-pftrace.no_type", Severity.DATA_LOSS, "an event without a type is not shown")
NO_NAME = declare("check-pftrace.no_name", Severity.NOTICE, "a slice or instant without a name")
NO_VALUE = declare("check-pftrace.no_value", Severity.DATA_LOSS, "a counter event without a value is not shown")
EXTRA_VALUES = declare(
    "check-pftrace.extra_values",
    Severity.DATA_LOSS,
    "an event with more than 8 extra counter values, or without a track for each, vanishes",
)
FLOW_ALONE = declare("check-pftrace.flow_alone", Severity.NOTICE, "a flow that only one event belongs to has no arrow")
FLOW_NO_START = declare(
    "check-pftrace.flow_without_start", Severity.NOTICE, "a flow is finished that no earlier event started"
)

_CLEARED, _NEEDS = 1, 2
_BEGIN, _END, _INSTANT, _COUNTER, _STATE = 1, 2, 3, 4, 5
_MAX_EXTRA_VALUES = 8
_MAX_TIME = 2**63 - 1

# Fields of InternedData whose ids are checked, with the field of the entry that holds what is interned.
_INTERNED = {
    "event_categories": "name",
    "event_names": "name",
    "debug_annotation_names": "name",
    "debug_annotation_string_values": "str",
    "correlation_id_str": "str",
    "source_locations": "",
    "function_names": "str",
    "mapping_paths": "str",
    "mappings": "",
    "frames": "",
    "callstacks": "",
    "log_message_body": "body",
}


class _Sequence:
    """The state of one packet sequence."""

    def __init__(self, cleared: bool = False) -> None:
        self.cleared = cleared
        self.clock: int | None = None
        self.track = 0
        self.interned: dict[str, dict[int, object]] = {field: {} for field in _INTERNED}


def check_pftrace(file: BinaryIO, unpacked: Unpacked) -> CheckReport:
    """Check a Perfetto trace, given as plain (not gzipped) stream; `unpacked` counts what compressed packets hold."""
    found = Diagnostics()
    checker = _Checker(found, unpacked)
    for data in _packets(file, found, checker.empty):
        checker.packet(data)
    return make_report("pftrace", found, checker.finish())


def _packets(file: Readable, found: Diagnostics, empty: Callable[[int], None]) -> Iterator[bytes]:
    damage = yield from read_packets(file, empty)
    if damage:
        found.add(TRUNCATED if damage.truncated else CORRUPT, f"byte {damage.at}")


class _Inflating:
    """What `compressed_packets` hold, as a stream: a small file may stand for a huge one.

    Attributes:
        error: why the stream ended before it should have; "" if it did not.
    """

    def __init__(self, compressed: bytes, unpacked: Unpacked) -> None:
        self._fed, self._count = compressed, unpacked
        self._inflate = zlib.decompressobj()
        self.error = ""

    def read(self, size: int) -> bytes:
        """At most so many bytes; none at the end only."""
        piece = b""
        while not piece and not self.error and not self._inflate.eof:
            try:
                piece = self._inflate.decompress(self._fed, size)
            except zlib.error as error:
                self.error = str(error)
            self._fed = self._inflate.unconsumed_tail
            if not piece and not self._fed and not self._inflate.eof:
                self.error = self.error or "incomplete or truncated stream"
        self._count.add(len(piece))
        return piece


class _Checker:
    """Sees each packet once, in file order, and keeps what must be compared at the end."""

    def __init__(self, found: Diagnostics, unpacked: Unpacked) -> None:
        self._found, self._unpacked = found, unpacked
        self._position = -1
        self._counts: Counter[str] = Counter()
        self._tracks = Tracks(found)
        self._clocks = Clocks(found)
        self._sequences: dict[int, _Sequence] = defaultdict(_Sequence)
        self._names: dict[object, int] = {}
        self._flows: dict[int, list[tuple[int, int, bool]]] = defaultdict(list)

    def _add(self, code: Any, detail: str = "") -> None:
        self._found.add(code, f"packet {self._position}: {detail}" if detail else f"packet {self._position}")

    def empty(self, count: int) -> None:
        """Pass empty packets, so many one after the other: they hold nothing that could be dropped."""
        self._position += count

    def packet(self, data: bytes, unpacked: bool = False) -> None:
        """Check one packet and note it.

        Args:
            data: the message without its frame.
            unpacked: whether it comes out of compressed packets, which may not hold others.
        """
        self._position += 1
        try:
            packet = TracePacket.FromString(data)
        except DecodeError:
            self._add(NOT_A_PACKET)
            return
        if packet.HasField("compressed_packets"):
            if unpacked:
                self._add(PACKED_TWICE)
                return
            self._compressed(packet.compressed_packets)
            return
        self._check_fields(packet, data)
        sequence = self._enter_sequence(packet)
        if packet.HasField("track_event"):
            self._event(packet, packet.track_event, sequence)
        elif packet.HasField("track_descriptor"):
            self._tracks.declare(packet.track_descriptor, packet.machine_id, self._position)
        elif packet.HasField("clock_snapshot"):
            self._clocks.snapshot(packet.clock_snapshot, packet.trusted_packet_sequence_id)
        elif packet.HasField("perf_sample"):
            self._sample(packet, sequence)

    def _compressed(self, compressed: bytes) -> None:
        place, stream = f"packet {self._position}", _Inflating(compressed, self._unpacked)
        for inner in _packets(stream, self._found, self.empty):
            self.packet(inner, unpacked=True)
        if stream.error:
            self._found.add(UNPACKED, f"{place}: {stream.error}")

    def _check_fields(self, packet: Any, data: bytes) -> None:
        # Without its unknown fields a packet is shorter than its bytes; but so it is when these pad their lengths.
        packet.DiscardUnknownFields()
        if packet.ByteSize() != len(data) and packet.ByteSize() != TracePacket.FromString(data).ByteSize():
            self._add(UNKNOWN_FIELDS)

    def _enter_sequence(self, packet: Any) -> _Sequence:
        id = packet.trusted_packet_sequence_id
        if not id and packet.WhichOneof("data") not in (None, "track_descriptor"):
            self._add(NO_SEQUENCE)
        sequence = self._sequences[id]
        flags = packet.sequence_flags
        if flags & _CLEARED:
            sequence = self._sequences[id] = _Sequence(cleared=True)
        elif flags & _NEEDS and not sequence.cleared:
            self._add(NOT_CLEARED)
        if packet.HasField("trace_packet_defaults"):
            defaults = packet.trace_packet_defaults
            if defaults.HasField("timestamp_clock_id"):
                sequence.clock = defaults.timestamp_clock_id
            sequence.track = defaults.track_event_defaults.track_uuid
        if packet.HasField("interned_data"):
            self._intern(packet.interned_data, sequence)
        return sequence

    # Interned data.

    def _intern(self, data: Any, sequence: _Sequence) -> None:
        for field, text in _INTERNED.items():
            table = sequence.interned[field]
            for entry in getattr(data, field):
                value = getattr(entry, text) if text else entry.SerializeToString(deterministic=True)
                if not entry.iid:
                    self._add(INTERNED_ZERO, field)
                if table.setdefault(entry.iid, value) != value:
                    self._add(INTERNED_CHANGED, f"{field} {entry.iid}")
        # What the entries themselves refer to may stand in the same packet, in any order.
        for stack in data.callstacks:
            for frame in stack.frame_ids:
                self._use(sequence, "frames", frame)
        for frame in data.frames:
            self._use(sequence, "function_names", frame.function_name_id)
            if frame.mapping_id:
                self._use(sequence, "mappings", frame.mapping_id)
        for mapping in data.mappings:
            for path in mapping.path_string_ids:
                self._use(sequence, "mapping_paths", path)

    def _use(self, sequence: _Sequence, field: str, iid: int) -> None:
        if iid not in sequence.interned[field]:
            self._add(NOT_INTERNED, f"{field} {iid}")

    def _check_references(self, event: Any, sequence: _Sequence) -> None:
        for iid in event.category_iids:
            self._use(sequence, "event_categories", iid)
        self._check_annotations(event.debug_annotations, sequence)
        if event.HasField("correlation_id_str_iid"):
            self._use(sequence, "correlation_id_str", event.correlation_id_str_iid)
        if event.HasField("source_location_iid"):
            self._use(sequence, "source_locations", event.source_location_iid)
        if event.HasField("callstack_iid"):
            self._use(sequence, "callstacks", event.callstack_iid)
        if event.HasField("log_message"):
            self._check_log(event.log_message, sequence)

    def _check_log(self, message: Any, sequence: _Sequence) -> None:
        self._counts["logs"] += 1
        self._use(sequence, "log_message_body", message.body_iid)
        if message.HasField("source_location_iid"):
            self._use(sequence, "source_locations", message.source_location_iid)

    def _check_annotations(self, annotations: Any, sequence: _Sequence) -> None:
        names = sequence.interned["debug_annotation_names"]
        for annotation in annotations:
            iid = annotation.name_iid
            if iid and iid not in names:
                self._add(NOT_INTERNED, f"debug_annotation_names {iid}")
            value = annotation.WhichOneof("value")
            if value is None:
                self._check_annotations(annotation.dict_entries, sequence)
                self._check_annotations(annotation.array_values, sequence)
            elif value == "string_value_iid":
                self._use(sequence, "debug_annotation_string_values", annotation.string_value_iid)

    # Events.

    def _event(self, packet: Any, event: Any, sequence: _Sequence) -> None:
        self._counts["events"] += 1
        ts = self._time(packet, sequence)
        self._check_references(event, sequence)
        handler = self._HANDLERS.get(event.type)
        if handler is None:
            if not event.HasField("legacy_event"):
                self._add(NO_TYPE)
            return
        uuid = event.track_uuid if event.HasField("track_uuid") else sequence.track
        if not uuid:
            self._add(NO_TRACK)
        handler(self, event, ts, uuid, self._name(event, sequence))
        self._extra_values(event)
        for id in event.flow_ids:
            self._flows[id].append((ts, self._position, False))
        for id in event.terminating_flow_ids:
            self._flows[id].append((ts, self._position, True))

    def _time(self, packet: Any, sequence: _Sequence) -> int:
        if not packet.HasField("timestamp"):
            self._add(NO_TIME)
            return 0
        clock = packet.timestamp_clock_id if packet.HasField("timestamp_clock_id") else sequence.clock
        ts = self._clocks.to_timeline(packet.timestamp, clock, packet.trusted_packet_sequence_id, self._position)
        if not 0 <= ts <= _MAX_TIME:
            self._add(TIME_RANGE, str(ts))
            return 0
        return ts

    def _name(self, event: Any, sequence: _Sequence) -> int:
        """A number for the name of an event; 0 without one."""
        name: object = event.name
        iid = event.name_iid
        if iid:
            name = sequence.interned["event_names"].get(iid)
            if name is None:
                self._add(NOT_INTERNED, f"event_names {iid}")
        return self._names.setdefault(name, len(self._names) + 1) if name else 0

    def _begin(self, event: Any, ts: int, uuid: int, name: int) -> None:
        if not name:
            self._add(NO_NAME)
        self._tracks.for_slice(uuid, self._position).edges.begin(ts, self._position, name)

    def _end(self, event: Any, ts: int, uuid: int, name: int) -> None:
        self._tracks.for_slice(uuid, self._position).edges.end(ts, self._position, name)

    def _instant(self, event: Any, ts: int, uuid: int, name: int) -> None:
        self._counts["instants"] += 1
        if not name:
            self._add(NO_NAME)
        self._tracks.for_slice(uuid, self._position)

    def _counter(self, event: Any, ts: int, uuid: int, name: int) -> None:
        self._counts["counters"] += 1
        if event.WhichOneof("counter_value_field") is None:
            self._add(NO_VALUE)
        self._tracks.for_value(uuid, self._position)

    def _state(self, event: Any, ts: int, uuid: int, name: int) -> None:
        self._counts["states"] += 1
        self._tracks.for_slice(uuid, self._position)

    _HANDLERS: ClassVar[dict[int, Callable[[_Checker, Any, int, int, int], None]]] = {
        _BEGIN: _begin,
        _END: _end,
        _INSTANT: _instant,
        _COUNTER: _counter,
        _STATE: _state,
    }

    def _extra_values(self, event: Any) -> None:
        for values, uuids in (
            (event.extra_counter_values, event.extra_counter_track_uuids),
            (event.extra_double_counter_values, event.extra_double_counter_track_uuids),
        ):
            if not values and not uuids:
                continue
            self._counts["counters"] += len(values)
            if len(values) > _MAX_EXTRA_VALUES or len(values) > len(uuids):
                self._add(EXTRA_VALUES, f"{len(values)} values, {len(uuids)} tracks")
            for uuid in uuids:
                self._tracks.for_value(uuid, self._position)

    def _sample(self, packet: Any, sequence: _Sequence) -> None:
        self._counts["samples"] += 1
        self._time(packet, sequence)
        if packet.perf_sample.HasField("callstack_iid"):
            self._use(sequence, "callstacks", packet.perf_sample.callstack_iid)

    # The end.

    def finish(self) -> dict[str, int]:
        """Check what needs all packets, and count."""
        tracks, slices = self._tracks.finish()
        for id, points in self._flows.items():
            points.sort()
            self._counts["flows"] += len(points) > 1
            for code, position in _flow_problems(points):
                self._found.add(code, f"packet {position}: flow {id}")
        counted = {what: self._counts[what] for what in ("events", "instants", "counters", "states", "flows")}
        return {
            "packets": self._position + 1,
            "tracks": tracks,
            "slices": slices,
            **counted,
            "samples": self._counts["samples"],
            "logs": self._counts["logs"],
            "sequences": len(self._sequences),
        }


def _flow_problems(points: list[tuple[int, int, bool]]) -> Iterator[tuple[Any, int]]:
    """A terminated id may be used again, as another flow."""
    members = 0
    for _, position, terminates in points:
        members += 1
        if terminates:
            if members == 1:
                yield FLOW_NO_START, position
            members = 0
    if members == 1:
        yield FLOW_ALONE, points[-1][1]

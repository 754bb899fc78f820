"""Check Perfetto traces for data that the viewer drops or misplaces, mostly silently.

A packet is named by its position in the file, from 1 (packets inside of `compressed_packets` are counted, too). Source
of the rules: the trace processor of Perfetto v58, and observations of v52.
"""

from __future__ import annotations

import contextlib
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, ClassVar

from traceconv.check.findings import CheckReport, Zeros, data_loss, make_report, notice, refusal
from traceconv.check.pftrace_fields import Decoder, Fields
from traceconv.check.pftrace_tracks import Clocks, Tracks
from traceconv.families.common.wire_reader import BadWire, Readable, read_packets
from traceconv.io.limits import Unpacked
from traceconv.io.shown import Counted
from traceconv.model.diagnostics import (
    COUNTERS,
    EVENTS,
    FLOWS,
    INSTANTS,
    PACKETS,
    SAMPLES,
    SLICES,
    TRACKS,
    Diagnostics,
)
from traceconv.model.drawable import MOST_CPUS

#: The tag of `compressed_packets`, and how many bytes of other fields (ids, times) may be before it.
_COMPRESSED, _HEAD = b"\x92\x03", 64
_AT_ONCE = 1 << 18
STATES = Counted("state", "states")
LOGS = Counted("log", "logs")
SEQUENCES = Counted("sequence", "sequences")

TRUNCATED = data_loss("check-pftrace.truncated", "the file ends inside a packet; viewers leave that out silently")
CORRUPT = refusal("check-pftrace.corrupt", "no packet where one must begin; viewers stop there")
UNPACKED = refusal("check-pftrace.corrupt_compression", "compressed packets that cannot be unpacked")
NOT_A_PACKET = refusal("check-pftrace.not_a_packet", "a packet cannot be decoded")
PACKED_TWICE = data_loss("check-pftrace.packed_twice", "compressed packets inside of compressed packets are not read")
UNKNOWN_FIELDS = notice("check-pftrace.unknown_fields", "fields that the protobuf definitions do not have")
NO_SEQUENCE = data_loss(
    "check-pftrace.no_sequence", "events, interned data and defaults of a packet without a sequence id are dropped"
)
NOT_CLEARED = data_loss(
    "check-pftrace.not_cleared",
    "a packet needs incremental state that its sequence never started (flag 1); it is dropped",
)
NOT_INTERNED = data_loss("check-pftrace.not_interned", "an interned id is used that its sequence has not defined")
INTERNED_ZERO = data_loss("check-pftrace.interned_zero", "interned ids start at 1")
INTERNED_CHANGED = data_loss("check-pftrace.interned_changed", "an interned id is defined again as something else")
TIME_RANGE = data_loss("check-pftrace.time_range", "a time that is negative as int64 or on the timeline is dropped")
NO_TIME = data_loss("check-pftrace.no_time", "an event without a timestamp is dropped")
NO_TRACK = notice("check-pftrace.no_track", "an event without a track goes to a default track")
NO_TYPE = data_loss("check-pftrace.no_type", "an event without a type is not shown")
NO_NAME = notice("check-pftrace.no_name", "a slice or instant without a name")
NO_VALUE = data_loss("check-pftrace.no_value", "a counter event without a value is not shown")
EXTRA_VALUES = data_loss(
    "check-pftrace.extra_values",
    "an event with more than 8 extra counter values, or without a track for each, vanishes",
)
CPU_RANGE = refusal("check-pftrace.cpu_range", f"a sample on a CPU from {MOST_CPUS:,} on: viewers abort")
FLOW_ALONE = notice("check-pftrace.flow_alone", "a flow with only one event is not drawn")
FLOW_NO_START = notice("check-pftrace.flow_without_start", "a flow ends, but no earlier event started it")

_CLEARED, _NEEDS = 1, 2
_BEGIN, _END, _INSTANT, _COUNTER, _STATE = 1, 2, 3, 4, 5
_MAX_EXTRA_VALUES = 8
_EXTRA_VALUES = (
    ("extra_counter_values", "extra_counter_track_uuids"),
    ("extra_double_counter_values", "extra_double_counter_track_uuids"),
)
_MAX_TIME = 2**63 - 1

# Fields of InternedData whose ids are checked, with the field of the interned value.
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
# Fields of a packet that belong to its sequence; others, such as snapshots of clocks, do without one.
_OF_SEQUENCES = frozenset(("track_event", "interned_data", "trace_packet_defaults"))
# Fields of a TrackEvent, with the interned field that they refer to.
_REFERENCES = {
    "correlation_id_str_iid": "correlation_id_str",
    "source_location_iid": "source_locations",
    "callstack_iid": "callstacks",
}


class _Sequence:
    """The state of one packet sequence, of which there may be many."""

    __slots__ = ("_interned", "cleared", "clock", "track")

    def __init__(self, cleared: bool = False) -> None:
        self.cleared = cleared
        self.clock: int | None = None
        self.track = 0
        self._interned: dict[str, dict[int, object]] | None = None

    @property
    def interned(self) -> dict[str, dict[int, object]]:
        """What was interned, by field and id."""
        if self._interned is None:
            self._interned = {field: {} for field in _INTERNED}
        return self._interned


def check_pftrace(file: BinaryIO, unpacked: Unpacked) -> CheckReport:
    """Check a Perfetto trace, given as a plain stream; `unpacked` counts the bytes of compressed packets."""
    diagnostics = Diagnostics()
    checker = _Checker(diagnostics, unpacked)
    for data in _packets(file, diagnostics, checker.empty):
        checker.packet(data)
    return make_report("pftrace", diagnostics, checker.finish())


def count_unpacked(file: BinaryIO, unpacked: Unpacked) -> None:
    """Count the bytes of compressed packets, before any is checked: to check them takes far longer.

    Raises:
        InputError: they unpack to more than the limits allow.
    """
    decoder = Decoder()
    for data in read_packets(file):
        if _COMPRESSED in data[:_HEAD]:
            with contextlib.suppress(BadWire):
                stream = _Inflating(decoder.decode("TracePacket", data).get("compressed_packets", b""), unpacked)
                while stream.read(_AT_ONCE):
                    pass


def _packets(file: Readable, diagnostics: Diagnostics, empty: Callable[[int], None]) -> Iterator[bytes]:
    damage = yield from read_packets(file, empty)
    if damage:
        diagnostics.add(TRUNCATED if damage.truncated else CORRUPT, f"byte {damage.at}")


class _Inflating:
    """A readable stream of the content of `compressed_packets`, since a small file may unpack to a huge one."""

    def __init__(self, compressed: bytes, unpacked: Unpacked) -> None:
        self._fed, self._count = compressed, unpacked
        self._inflate = zlib.decompressobj()
        self.error = ""

    def read(self, size: int) -> bytes:
        """Return at most `size` bytes; b"" only at the end."""
        chunk = b""
        while not chunk and not self.error and not self._inflate.eof:
            try:
                chunk = self._inflate.decompress(self._fed, size)
            except zlib.error as error:
                self.error = str(error)
            self._fed = self._inflate.unconsumed_tail
            if not chunk and not self._fed and not self._inflate.eof:
                self.error = self.error or "incomplete or truncated stream"
        self._count.add(len(chunk))
        return chunk


class _Checker:
    """Checks each packet once, in file order, and keeps rows for the checks at the end."""

    def __init__(self, diagnostics: Diagnostics, unpacked: Unpacked) -> None:
        self._found, self._unpacked = diagnostics, unpacked
        self._decoder = Decoder()
        self._position = 0
        self._counts: Counter[str] = Counter()
        self._tracks = Tracks(diagnostics)
        self._clocks = Clocks(diagnostics)
        self._sequences: dict[int, _Sequence] = defaultdict(_Sequence)
        self._names: dict[object, int] = {}
        self._flows: dict[int, list[tuple[int, int, bool]]] = defaultdict(list)
        self._zeros = Zeros()
        self._is_output = False

    def _add(self, code: Any, detail: str = "") -> None:
        self._found.add(code, f"packet {self._position}: {detail}" if detail else f"packet {self._position}")

    def empty(self, count: int) -> None:
        """Count a run of empty packets, which hold nothing that could be dropped."""
        self._position += count

    def packet(self, data: bytes, unpacked: bool = False) -> None:
        """Check one packet and keep its rows."""
        self._position += 1
        self._decoder.unknown = False
        try:
            packet = self._decoder.decode("TracePacket", data)
        except BadWire:
            self._add(NOT_A_PACKET)
            return
        kind = packet.get("data")
        if kind == "compressed_packets":
            if unpacked:
                self._add(PACKED_TWICE)
                return
            self._compressed(packet["compressed_packets"])
            return
        if self._decoder.unknown:
            self._add(UNKNOWN_FIELDS)
        sequence = self._enter_sequence(packet)
        if kind == "track_event":
            self._event(packet, packet["track_event"], sequence)
        elif kind == "track_descriptor":
            self._tracks.declare(packet["track_descriptor"], packet.get("machine_id", 0), self._position)
        elif kind == "clock_snapshot":
            self._clocks.snapshot(packet["clock_snapshot"], packet.get("trusted_packet_sequence_id", 0), self._position)
        elif kind == "perf_sample":
            self._sample(packet, sequence)
        elif kind == "trace_attributes":
            attributes = packet["trace_attributes"].get("attribute", ())
            self._is_output |= any(attribute.get("key") == b"traceconv.sources" for attribute in attributes)

    def _compressed(self, compressed: bytes) -> None:
        place, stream = f"packet {self._position}", _Inflating(compressed, self._unpacked)
        for inner in _packets(stream, self._found, self.empty):
            self.packet(inner, unpacked=True)
        if stream.error:
            self._found.add(UNPACKED, f"{place}: {stream.error}")

    def _enter_sequence(self, packet: Fields) -> _Sequence:
        id = packet.get("trusted_packet_sequence_id", 0)
        sequence = self._sequences[id]
        flags = packet.get("sequence_flags", 0)
        if not id and (flags & _CLEARED or not _OF_SEQUENCES.isdisjoint(packet)):
            self._add(NO_SEQUENCE)
        if flags & _CLEARED:
            sequence = self._sequences[id] = _Sequence(cleared=True)
        elif flags & _NEEDS and not sequence.cleared and packet.get("data") != "clock_snapshot":
            self._add(NOT_CLEARED)
        if "trace_packet_defaults" in packet:
            defaults = packet["trace_packet_defaults"]
            if "timestamp_clock_id" in defaults:
                sequence.clock = defaults["timestamp_clock_id"]
            sequence.track = defaults.get("track_event_defaults", {}).get("track_uuid", 0)
        if "interned_data" in packet:
            self._intern(packet["interned_data"], sequence)
        return sequence

    # Interned data.

    def _intern(self, data: Fields, sequence: _Sequence) -> None:
        for field, text in _INTERNED.items():
            table = sequence.interned[field]
            for entry in data.get(field, ()):
                iid, value = entry.get("iid", 0), entry.get(text, b"") if text else entry
                if not iid:
                    self._add(INTERNED_ZERO, field)
                if table.setdefault(iid, value) != value:
                    self._add(INTERNED_CHANGED, f"{field} {iid}")
        # Entries may refer to others in the same packet, in any order.
        for stack in data.get("callstacks", ()):
            for frame in stack.get("frame_ids", ()):
                self._use(sequence, "frames", frame)
        for frame in data.get("frames", ()):
            self._use(sequence, "function_names", frame.get("function_name_id", 0))
            if frame.get("mapping_id"):
                self._use(sequence, "mappings", frame["mapping_id"])
        for mapping in data.get("mappings", ()):
            for path in mapping.get("path_string_ids", ()):
                self._use(sequence, "mapping_paths", path)

    def _use(self, sequence: _Sequence, field: str, iid: int) -> None:
        if iid not in sequence.interned[field]:
            self._add(NOT_INTERNED, f"{field} {iid}")

    def _check_references(self, event: Fields, sequence: _Sequence) -> None:
        for iid in event.get("category_iids", ()):
            self._use(sequence, "event_categories", iid)
        if "debug_annotations" in event:
            self._check_annotations(event["debug_annotations"], sequence)
        for iid, field in _REFERENCES.items():
            if iid in event:
                self._use(sequence, field, event[iid])
        if "log_message" in event:
            self._check_log(event["log_message"], sequence)

    def _check_log(self, message: Fields, sequence: _Sequence) -> None:
        self._counts["logs"] += 1
        self._use(sequence, "log_message_body", message.get("body_iid", 0))
        if "source_location_iid" in message:
            self._use(sequence, "source_locations", message["source_location_iid"])

    def _check_annotations(self, annotations: list[Fields], sequence: _Sequence) -> None:
        names = sequence.interned["debug_annotation_names"]
        for annotation in annotations:
            if "name_iid" in annotation and (iid := annotation["name_iid"]) and iid not in names:
                self._add(NOT_INTERNED, f"debug_annotation_names {iid}")
            if "string_value_iid" in annotation:
                self._use(sequence, "debug_annotation_string_values", annotation["string_value_iid"])
            elif "value" not in annotation:
                for field in ("dict_entries", "array_values"):
                    if field in annotation:
                        self._check_annotations(annotation[field], sequence)

    # Events.

    def _event(self, packet: Fields, event: Fields, sequence: _Sequence) -> None:
        self._counts["events"] += 1
        ts = self._time(packet, sequence)
        self._check_references(event, sequence)
        handler = self._HANDLERS.get(event.get("type", 0))
        if handler is None:
            if "legacy_event" not in event:
                self._add(NO_TYPE)
            return
        uuid = event.get("track_uuid", sequence.track)
        if not uuid:
            self._add(NO_TRACK)
        handler(self, event, ts, uuid, self._name(event, sequence))
        self._extra_values(event)
        for id in event.get("flow_ids", ()):
            self._flows[id].append((ts, self._position, False))
        for id in event.get("terminating_flow_ids", ()):
            self._flows[id].append((ts, self._position, True))

    def _time(self, packet: Fields, sequence: _Sequence) -> int:
        if "timestamp" not in packet:
            self._add(NO_TIME)
            return 0
        clock, id = packet.get("timestamp_clock_id", sequence.clock), packet.get("trusted_packet_sequence_id", 0)
        ts = self._clocks.to_timeline(packet["timestamp"], clock, id, self._position)
        if not 0 <= ts <= _MAX_TIME:
            self._add(TIME_RANGE, str(ts))
            return 0
        return ts

    def _name(self, event: Fields, sequence: _Sequence) -> int:
        """Return a number for the name of an event; 0 without one."""
        name: object = event.get("name")
        iid = event.get("name_iid")
        if iid:
            name = sequence.interned["event_names"].get(iid)
            if name is None:
                self._add(NOT_INTERNED, f"event_names {iid}")
        return self._names.setdefault(name, len(self._names) + 1) if name else 0

    def _begin(self, event: Fields, ts: int, uuid: int, name: int) -> None:
        if not name:
            self._add(NO_NAME)
        self._tracks.for_slice(uuid, self._position).edges.begin(ts, self._position, name)

    def _end(self, event: Fields, ts: int, uuid: int, name: int) -> None:
        self._tracks.for_slice(uuid, self._position).edges.end(ts, self._position, name)

    def _instant(self, event: Fields, ts: int, uuid: int, name: int) -> None:
        self._counts["instants"] += 1
        if not name:
            self._add(NO_NAME)
        self._zeros.point(ts, self._position)
        self._tracks.for_slice(uuid, self._position)

    def _counter(self, event: Fields, ts: int, uuid: int, name: int) -> None:
        self._counts["counters"] += 1
        self._zeros.point(ts, self._position)
        if "counter_value_field" not in event:
            self._add(NO_VALUE)
        self._tracks.for_value(uuid, self._position)

    def _state(self, event: Fields, ts: int, uuid: int, name: int) -> None:
        self._counts["states"] += 1
        self._tracks.for_slice(uuid, self._position)

    _HANDLERS: ClassVar[dict[int, Callable[[_Checker, Fields, int, int, int], None]]] = {
        _BEGIN: _begin,
        _END: _end,
        _INSTANT: _instant,
        _COUNTER: _counter,
        _STATE: _state,
    }

    def _extra_values(self, event: Fields) -> None:
        for key, tracks in _EXTRA_VALUES:
            values, uuids = event.get(key, ()), event.get(tracks, ())
            if not values and not uuids:
                continue
            self._counts["counters"] += len(values)
            if len(values) > _MAX_EXTRA_VALUES or len(values) > len(uuids):
                self._add(EXTRA_VALUES, f"{len(values)} values, {len(uuids)} tracks")
            for uuid in uuids:
                self._tracks.for_value(uuid, self._position)

    def _sample(self, packet: Fields, sequence: _Sequence) -> None:
        self._counts["samples"] += 1
        self._zeros.point(self._time(packet, sequence), self._position)
        sample = packet["perf_sample"]
        if sample.get("cpu", 0) >= MOST_CPUS:
            self._add(CPU_RANGE, f"CPU {sample['cpu']}")
        if "callstack_iid" in sample:
            self._use(sequence, "callstacks", sample["callstack_iid"])

    # The end.

    def finish(self) -> dict[Counted, int]:
        """Make the checks that need all packets; return the counts."""
        tracks, slices = self._tracks.finish(self._zeros)
        self._zeros.report(self._found, "packet", self._clocks.tell, self._is_output)
        for id, points in self._flows.items():
            points.sort()
            self._counts["flows"] += len(points) > 1
            for code, position in _flow_problems(points):
                self._found.add(code, f"packet {position}: flow {id}")
        counted = {what: self._counts[what] for what in (EVENTS, INSTANTS, COUNTERS, STATES, FLOWS)}
        return {
            PACKETS: self._position,
            TRACKS: tracks,
            SLICES: slices,
            **counted,
            SAMPLES: self._counts["samples"],
            LOGS: self._counts["logs"],
            SEQUENCES: len(self._sequences),
        }


def _flow_problems(points: list[tuple[int, int, bool]]) -> Iterator[tuple[Any, int]]:
    """Yield the problems of a flow id; a terminated id may be reused for another flow."""
    members = 0
    for _, position, terminates in points:
        members += 1
        if terminates:
            if members == 1:
                yield FLOW_NO_START, position
            members = 0
    if members == 1:
        yield FLOW_ALONE, points[-1][1]

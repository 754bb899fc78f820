"""The decoder of the check, held against protobuf with the definitions of the installed package `perfetto`."""

from __future__ import annotations

import importlib.metadata
import random
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.message import DecodeError
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TracePacket

from tests.make_trace_fields import ASKED, TARGET, trace_fields
from traceconv.check.pftrace_fields import Decoder
from traceconv.families.common.wire_reader import BadWire, to_varint

#: Messages whose fields the check asks for by name.
READ = (
    *("TracePacket", "TracePacketDefaults", "TrackEventDefaults", "TrackEvent", "DebugAnnotation", "LogMessage"),
    *("TrackDescriptor", "ProcessDescriptor", "ThreadDescriptor", "ClockSnapshot", "ClockSnapshot.Clock"),
    *("InternedData", "PerfSample", "Frame", "Mapping", "Callstack", "InternedString", "EventName", "EventCategory"),
    *("DebugAnnotationName", "LogMessageBody", "SourceLocation", "CounterDescriptor"),
)
_NUMBERS = {"uint64", "uint32", "int32", "enum", "fixed64"}
_TYPES = ("", "double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string", "group", "message")
_MORE_TYPES = ("bytes", "uint32", "enum", "sfixed32", "sfixed64", "sint32", "sint64")
_EDGES = (0, 1, 2, 5, 127, 128, 300, 2**31 - 1, 2**31, 2**32 - 1, 2**32 + 3, 2**63, 2**64 - 1)


def fields_of(table: str) -> dict[str, set[str]]:
    """The fields of each message that have a name, as name=number."""
    return {name: set(_numbered(words)) for name, *words in map(str.split, table.splitlines()) if name != "#"}


def _numbered(words: list[str]) -> Iterator[str]:
    number = 0
    for word in words:
        name, _, stated = word.partition(":")[0].partition("=")
        number = int(stated) if stated else number + 1
        if name:
            yield f"{name}={number}"


def test_the_table_is_that_of_the_package() -> None:
    ours, theirs = TARGET.read_text("utf-8"), trace_fields()
    if f"perfetto {importlib.metadata.version('perfetto')}," in ours:
        assert ours == theirs, "if the check asks for another field: python -m tests.make_trace_fields"
    for message in READ:
        assert fields_of(ours)[message] <= fields_of(theirs)[message], message


def kind_of(field: Any) -> str:
    return (*_TYPES, *_MORE_TYPES)[field.type]


def blob(number: int, data: bytes) -> bytes:
    return to_varint(number << 3 | 2) + to_varint(len(data)) + data


class Messages:
    """Messages of all fields that a packet may have, of unknown ones, and of some that are none."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def packet(self) -> bytes:
        data = bytearray(self._message(TracePacket.DESCRIPTOR, 0))
        if data and self._random.random() < 0.2:
            data[self._random.randrange(len(data))] = self._random.randrange(256)
        return bytes(data)

    def _message(self, descriptor: Any, depth: int) -> bytes:
        fields = list(descriptor.fields)
        data = b""
        for _ in range(self._random.randint(0, 5) if fields else 0):
            if self._random.random() < 0.05:
                data += self._unknown()
                continue
            field = self._random.choice(fields)
            data += b"".join(self._field(field, depth) for _ in range(self._random.choice((1, 1, 2))))
        return data

    def _unknown(self) -> bytes:
        number, wire = self._random.randint(1, 200), self._random.choice((0, 1, 2, 3, 4, 5, 6))
        of_wire = {0: self._varint(), 1: bytes(8), 2: b"\2\0\0", 3: b"\x08\1" + to_varint(number << 3 | 4), 5: bytes(4)}
        return to_varint(number << 3 | wire) + of_wire.get(wire, b"")

    def _field(self, field: Any, depth: int) -> bytes:
        kind, number = kind_of(field), field.number
        if kind == "message":
            return blob(number, self._message(field.message_type, depth + 1) if depth < 8 else b"")
        if kind in ("string", "bytes"):
            return blob(number, self._random.randbytes(self._random.randint(0, 5)))
        width = {"double": 8, "fixed64": 8, "sfixed64": 8, "float": 4, "fixed32": 4, "sfixed32": 4}.get(kind, 0)
        packed = self._random.random() < (0.5 if field.is_repeated else 0.02)
        values = [
            self._random.randbytes(width) if width else self._varint(field.enum_type)
            for _ in range(self._random.randint(0, 3) if packed else 1)
        ]
        if packed:
            return blob(number, b"".join(values))
        return to_varint(number << 3 | {8: 1, 4: 5, 0: 0}[width]) + values[0]

    def _varint(self, enum: Any = None) -> bytes:
        if enum is not None and self._random.random() < 0.7:
            return to_varint(self._random.choice(enum.values).number & 2**64 - 1)
        return to_varint(self._random.choice((*_EDGES, self._random.getrandbits(40))))


def theirs(message: Any) -> dict[str, Any]:
    """The numbers and texts of a message of protobuf; of other values only that they are there."""
    return {
        field.name: [_theirs(field, one) for one in value] if field.is_repeated else _theirs(field, value)
        for field, value in message.ListFields()
        if not _is_map(field)
    }


def _theirs(field: Any, value: Any) -> Any:
    if field.message_type:
        return theirs(value)
    return _plain(field, value.encode() if isinstance(value, str) else value)


def ours(found: dict[str, Any], descriptor: Any) -> dict[str, Any]:
    """Likewise of what the decoder found."""

    def plain(field: Any, value: Any) -> Any:
        return ours(value, field.message_type) if field.message_type else _plain(field, value)

    assert all(found[oneof.name] in found for oneof in descriptor.oneofs if oneof.name in found)
    return {
        field.name: [plain(field, one) for one in value] if field.is_repeated else plain(field, value)
        for field in descriptor.fields
        if (value := found.get(field.name if field.name in ASKED else str(field.number))) is not None
        and value != []
        and not _is_map(field)
    }


def _plain(field: Any, value: Any) -> Any:
    return value if isinstance(value, bytes) or kind_of(field) in _NUMBERS else kind_of(field)


def _is_map(field: Any) -> bool:
    return bool(field.message_type and field.message_type.GetOptions().map_entry)


def unknown_in(packet: Any) -> bool:
    size = packet.ByteSize()
    packet.DiscardUnknownFields()
    return bool(packet.ByteSize() < size)


def packets() -> Iterator[bytes]:
    messages = Messages(1)
    for _ in range(8000):
        yield messages.packet()


def test_decodes_as_protobuf_does() -> None:
    """With the table of the installed package: those of two versions differ."""
    decoder, refused, unknown = Decoder(trace_fields()), 0, 0
    for data in packets():
        decoder.unknown = False
        try:
            packet = TracePacket.FromString(data)
        except DecodeError:
            refused += 1
            with pytest.raises(BadWire):
                decoder.decode("TracePacket", data)
            continue
        assert ours(decoder.decode("TracePacket", data), TracePacket.DESCRIPTOR) == theirs(packet), data.hex()
        if unknown_in(packet):
            unknown += 1
            assert decoder.unknown, data.hex()
    assert refused > 500, refused
    assert unknown > 500, unknown


def nested(levels: int, inner: bytes = b"") -> bytes:
    """A packet with an event with so many annotations, one in the other."""
    for _ in range(levels):
        inner = blob(11, inner)
    return blob(11, blob(4, inner))


@pytest.mark.parametrize("levels", [97, 98, 99])
@pytest.mark.parametrize("inner", [b"", b"\x0b\x0c"], ids=["message", "group"])
def test_messages_nested_as_deeply_as_protobuf_takes(levels: int, inner: bytes) -> None:
    data = nested(levels, inner)
    decoder = Decoder()
    decoder.decode("TracePacket", nested(20))  # what is kept of it is not a way around the limit
    try:
        TracePacket.FromString(data)
    except DecodeError:
        with pytest.raises(BadWire):
            decoder.decode("TracePacket", data)
    else:
        assert decoder.decode("TracePacket", data)


def test_a_message_in_chunks_leaves_what_is_kept_as_it_is() -> None:
    decoder = Decoder()
    event, chunk = blob(11, b"\x48\1"), blob(11, b"\x58\7")
    for _ in range(2):
        assert decoder.decode("TracePacket", event)["track_event"] == {"type": 1}
        assert decoder.decode("TracePacket", event + chunk)["track_event"] == {"type": 1, "track_uuid": 7}

"""Read protobuf's wire format without the definitions of messages.

A field is a tag (number * 8 + wire type) and a value: varint (type 0), 64 bits little endian (1), a length and bytes
(2), or 32 bits (5). See protobuf.dev/programming-guides/encoding. The caller knows the types: it asks for signed
integers, doubles and texts.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Generator, Iterator
from typing import NamedTuple, Protocol

_MAX_VARINT = 10
_SIGN, _WRAP = 1 << 63, 1 << 64
VARINT, FIXED64, BLOB, FIXED32 = 0, 1, 2, 5
_WIDTHS = {FIXED64: 8, FIXED32: 4}

Value = int | bytes


class BadWire(ValueError):
    """The bytes are not a protobuf message."""


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the varint at a position, and its end. Raises BadWire, or IndexError at the end of the data."""
    byte = data[at]
    if byte < 0x80:
        return byte, at + 1
    value = byte & 0x7F
    for shift in range(7, 7 * _MAX_VARINT, 7):
        at += 1
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (_WRAP - 1), at + 1
    raise BadWire("a varint of more than ten bytes")


def fields(data: bytes) -> list[tuple[int, Value]]:
    """Return number and value of each field in order; fixed widths are unsigned integers.

    Raises:
        BadWire: the data is invalid.
    """
    fields_read: list[tuple[int, Value]] = []
    scan(data, fields_read)
    return fields_read


def scan(data: bytes, fields: list[tuple[int, Value]]) -> None:
    """Append the fields to a list; after BadWire it holds all fields before the invalid byte.

    This reads every byte of a trace: a varint of one byte, the usual case, costs no call.
    `check.pftrace_fields` has such a loop, too, which decodes by a schema.
    """
    at, end, add = 0, len(data), fields.append
    try:
        while at < end:
            tag = data[at]
            at += 1
            if tag >= 0x80:
                tag, at = varint(data, at - 1)
            kind = tag & 7
            if kind in (VARINT, BLOB):
                value = data[at]
                at += 1
                if value >= 0x80:
                    value, at = varint(data, at - 1)
                if kind == VARINT:
                    add((tag >> 3, value))
                    continue
            elif kind in _WIDTHS:
                value = _WIDTHS[kind]
            else:
                raise BadWire(f"wire type {kind}")
            begin = at
            at += value
            if at > end:
                raise BadWire("a field longer than its message")
            chunk = data[begin:at]
            add((tag >> 3, chunk if kind == BLOB else int.from_bytes(chunk, "little")))
    except IndexError:
        raise BadWire("a field longer than its message") from None


def behind(data: bytes, at: int, kind: int) -> int:
    """Return where a value of a wire type ends, which may be beyond the data. Raises BadWire, or IndexError."""
    if kind == VARINT:
        return varint(data, at)[1]
    if kind == BLOB:
        size, at = varint(data, at)
        return at + size
    if kind not in _WIDTHS:
        raise BadWire(f"wire type {kind}")
    return at + _WIDTHS[kind]


def fields_until_cut(data: bytes, cut: bool) -> Iterator[tuple[int, int]]:
    """Yield number and wire type of each field; if the message is cut, of the complete ones and the last one.

    Raises:
        BadWire: at the first invalid byte, unless the message is cut there.
    """
    at, end = 0, len(data)
    try:
        while at < end:
            tag, at = varint(data, at)
            yield tag >> 3, tag & 7
            at = behind(data, at, tag & 7)
    except IndexError:
        at = end + 1
    if at > end and not cut:
        raise BadWire("a field longer than its message")


def whole_part(data: bytes, path: tuple[int, ...]) -> bytes:
    """Return the complete fields at the start of a message that is cut.

    Args:
        data: the message.
        path: the number of a field, then of a field in it, and so on: a message there that is cut is kept with its
            complete fields.
    """
    end = at = begin = tag = 0
    try:
        while at < len(data):
            end = at
            tag, begin = varint(data, at)
            at = behind(data, begin, tag & 7)
    except (IndexError, BadWire):
        return data[:end]
    if at <= len(data):
        return data
    if tag & 7 == BLOB and path and tag >> 3 == path[0]:
        inner = whole_part(data[varint(data, begin)[1] :], path[1:])
        return data[:end] + to_varint(tag) + to_varint(len(inner)) + inner
    return data[:end]


def to_varint(number: int) -> bytes:
    """Return a number that is not negative, as a varint."""
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def signed(value: Value) -> int:
    if not isinstance(value, int):
        raise BadWire("bytes where a number is expected")
    return value - _WRAP if value >= _SIGN else value


def unsigned(value: Value) -> int:
    if not isinstance(value, int):
        raise BadWire("bytes where a number is expected")
    return value


def as_double(value: Value) -> float:
    number: float = struct.unpack("<d", unsigned(value).to_bytes(8, "little"))[0]
    return number


def as_bytes(value: Value) -> bytes:
    if isinstance(value, int):
        raise BadWire("a number where bytes are expected")
    return value


def as_text(value: Value) -> str:
    """Return a string; what is not UTF-8 becomes the replacement character."""
    return as_bytes(value).decode("utf-8", "replace")


class Message:
    """All fields of a message by number, for messages that are few.

    Raises:
        BadWire: the data is invalid; methods also raise it for a value of another type.
    """

    def __init__(self, data: Value) -> None:
        self._values: dict[int, list[Value]] = {}
        for number, value in fields(as_bytes(data)):
            self._values.setdefault(number, []).append(value)

    def __contains__(self, number: int) -> bool:
        return number in self._values

    def all(self, number: int) -> list[Value]:
        return self._values.get(number, [])

    def signed(self, number: int, default: int = 0) -> int:
        values = self._values.get(number)
        return signed(values[-1]) if values else default

    def unsigned(self, number: int, default: int = 0) -> int:
        values = self._values.get(number)
        return unsigned(values[-1]) if values else default

    def text(self, number: int) -> str:
        """Return a string, "" if it is missing."""
        values = self._values.get(number)
        return as_text(values[-1]) if values else ""

    def texts(self, number: int) -> list[str]:
        return [as_text(value) for value in self.all(number)]

    def message(self, number: int) -> Message:
        values = self._values.get(number)
        return Message(values[-1] if values else b"")

    def uints(self, number: int) -> list[int]:
        """Return a repeated integer, packed or not."""
        numbers: list[int] = []
        for value in self.all(number):
            numbers += [value] if isinstance(value, int) else unpacked(value)
        return numbers


def unpacked(data: bytes) -> list[int]:
    """Return the varints of a packed field."""
    numbers = []
    at = 0
    try:
        while at < len(data):
            value, at = varint(data, at)
            numbers.append(value)
    except IndexError:
        raise BadWire("a number longer than its field") from None
    return numbers


#: The first byte of a trace, and of each packet in it.
PACKET_TAG = 0x0A
#: The suffix of the names of samples whose CPU is not known, in traces that traceconv writes.
CPU_UNKNOWN = " (CPU not known)"
_MAX_PACKET = 2**28 - 1
_READ_BYTES = 1 << 20
_EMPTY = re.compile(rb"(?:\n\x00)*+")


class Readable(Protocol):
    """A readable file object."""

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes; b"" only at the end."""


class Damage(NamedTuple):
    """The end of a series of packets before the end of the file: the byte, and whether the file is cut there."""

    at: int
    truncated: bool


class PacketBuffer:
    """A buffered part of the file: `data`, with the next packet at `at`."""

    def __init__(self, file: Readable) -> None:
        self.data = b""
        self.at = 0
        self._file, self._base = file, 0

    def pass_over_empty(self) -> int:
        """Skip the empty packets that come next, each as costly as a full one otherwise; return their number."""
        match = _EMPTY.match(self.data, self.at)
        assert match is not None  # it also matches no empty packet
        self.at = match.end()
        return len(match[0]) // 2

    def frame(self) -> tuple[int, int] | Damage | None:
        """Return start and end of the next packet in `data`, refilled as needed; else the damage; None at the end."""
        while True:
            end = len(self.data)
            frame = frame_at(self.data, self.at)
            if frame is not None and frame[1] <= end:
                return frame if frame[1] >= 0 else Damage(self._base + self.at, truncated=False)
            # A packet may be larger than one read: read at least all of it.
            more = self._file.read(max(_READ_BYTES, frame[1] - end if frame else 0))
            if not more:
                return Damage(self._base + self.at, truncated=True) if self.at < end else None
            self._base += self.at
            self.data, self.at = self.data[self.at :] + more, 0


def read_packets(file: Readable, empty: Callable[[int], None] | None = None) -> Generator[bytes, None, Damage | None]:
    """Yield the packets in file order, without tag and length; the generator returns the damage, if any.

    `empty` is called with the number of consecutive empty packets, which are not yielded then.
    """
    buffer = PacketBuffer(file)
    while True:
        data, at, end = buffer.data, buffer.at, len(buffer.data)
        # Fast path for most packets: a tag, a length of one byte, and all bytes in the buffer.
        while at + 1 < end and data[at] == PACKET_TAG and (size := data[at + 1]) < 0x80 and at + 2 + size <= end:
            if not size and empty is not None:
                buffer.at = at
                empty(buffer.pass_over_empty())
                at = buffer.at
                continue
            yield data[at + 2 : at + 2 + size]
            at += 2 + size
        buffer.at = at
        frame = buffer.frame()
        if frame is None or isinstance(frame, Damage):
            return frame
        yield buffer.data[frame[0] : frame[1]]
        buffer.at = frame[1]


def frame_at(buffer: bytes, at: int) -> tuple[int, int] | None:
    """Return start and end of the packet at a position; an end of -1: no packet; None: more bytes are needed."""
    if at >= len(buffer):
        return None
    if buffer[at] != PACKET_TAG:
        return at, -1
    length = shift = 0
    for place in range(at + 1, min(at + 6, len(buffer))):
        byte = buffer[place]
        length |= (byte & 0x7F) << shift
        if byte < 0x80:
            return place + 1, place + 1 + length if length <= _MAX_PACKET else -1
        shift += 7
    return (at, -1) if len(buffer) >= at + 6 else None

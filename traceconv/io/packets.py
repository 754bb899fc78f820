"""Split a Perfetto trace into packets.

A trace is one protobuf message that repeats field 1, so the file is a series of `0a <varint length> <packet>`.
Perfetto's SDK cannot write a packet of 2^28 bytes or more, so a greater length is taken for corruption.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from typing import NamedTuple, Protocol

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
    """A buffered part of the file.

    Attributes:
        data: the buffered bytes.
        at: the position of the next packet in `data`.
    """

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

    Args:
        file: the trace.
        empty: if given, called with the number of consecutive empty packets, which are not yielded then.
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

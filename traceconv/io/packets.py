"""Cuts a Perfetto trace into packets.

A trace is one protobuf message that repeats field 1, so the file is a series of `0a <varint length> <packet>`.
Perfetto's SDK cannot write a packet of 2^28 bytes or more, so a greater length is taken for corruption.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from typing import NamedTuple, Protocol

#: The first byte of a trace, and of each packet in it.
PACKET_TAG = 0x0A
#: The text after the name of call stack samples whose CPU is not known, in the traces that traceconv writes.
CPU_UNKNOWN = " (CPU not known)"
_MAX_PACKET = 2**28 - 1
_READ_BYTES = 1 << 20
_EMPTY = re.compile(rb"(?:\n\x00)*+")


class Readable(Protocol):
    """A file, or what is like one."""

    def read(self, size: int, /) -> bytes:
        """Return at most so many bytes; none at the end only."""


class Damage(NamedTuple):
    """Why a series of packets ended before the end of the file: at which byte, and whether the file ends there."""

    at: int
    truncated: bool


class PacketBuffer:
    """A part of the file, as it is read.

    Attributes:
        data: the part.
        at: where the next packet begins in it.
    """

    def __init__(self, file: Readable) -> None:
        self.data = b""
        self.at = 0
        self._file, self._base = file, 0

    def pass_over_empty(self) -> int:
        """Go on behind the empty packets that come next; how many there are. Each would cost as much as a full one."""
        found = _EMPTY.match(self.data, self.at)
        assert found is not None  # it matches none, too
        self.at = found.end()
        return len(found[0]) // 2

    def frame(self) -> tuple[int, int] | Damage | None:
        """Start and end of the next packet in `data`, which may be read anew; what is wrong with the rest, if any."""
        while True:
            end = len(self.data)
            frame = frame_at(self.data, self.at)
            if frame is not None and frame[1] <= end:
                return frame if frame[1] >= 0 else Damage(self._base + self.at, truncated=False)
            # A packet may be larger than one read: ask for at least all of it.
            more = self._file.read(max(_READ_BYTES, frame[1] - end if frame else 0))
            if not more:
                return Damage(self._base + self.at, truncated=True) if self.at < end else None
            self._base += self.at
            self.data, self.at = self.data[self.at :] + more, 0


def read_packets(file: Readable, empty: Callable[[int], None] | None = None) -> Generator[bytes, None, Damage | None]:
    """Yield the packets in file order, without their frame; the value of the generator is what is wrong with the rest.

    Args:
        file: what they are in.
        empty: if given, gets the number of empty packets between two others, which do not come one by one then.
    """
    buffer = PacketBuffer(file)
    while True:
        data, at, end = buffer.data, buffer.at, len(buffer.data)
        # Most packets are small: a tag, a length of one byte, and all of them in the buffer.
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
    """Start and end of the packet at a place; the end is -1 when there is none, None asks for more bytes."""
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

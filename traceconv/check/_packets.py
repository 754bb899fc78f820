"""Cuts a Perfetto trace into packets.

A trace is one protobuf message that repeats field 1, so the file is a series of `0a <varint length> <packet>`.
Perfetto's SDK cannot write a packet of 2^28 bytes or more, so a greater length is taken for corruption.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from traceconv.diagnostics import Diagnostics, Severity, declare

TRUNCATED = declare(
    "check-pftrace.truncated",
    Severity.DATA_LOSS,
    "the file ends inside a packet; viewers leave that out without a word",
)
CORRUPT = declare("check-pftrace.corrupt", Severity.ERROR, "no packet where one must begin; viewers stop there")
UNPACKED = declare("check-pftrace.corrupt_compression", Severity.ERROR, "compressed packets that cannot be unpacked")

_PACKET_TAG = 0x0A
_MAX_PACKET = 2**28 - 1
_READ_BYTES = 1 << 20


def read_packets(file: BinaryIO, found: Diagnostics) -> Iterator[bytes]:
    """The packets in file order, without their frame."""
    buffer = b""
    at = base = 0
    while True:
        frame = _frame(buffer, at)
        if frame is None or frame[1] > len(buffer):
            base += at
            rest = buffer[at:]
            # A packet may be larger than one read: ask for at least all of it.
            missing = frame[1] - len(buffer) if frame else 0
            more = file.read(max(_READ_BYTES, missing))
            if not more:
                if rest:
                    found.add(TRUNCATED, f"byte {base}")
                return
            buffer, at = rest + more, 0
            continue
        start, end = frame
        if end < 0:
            found.add(CORRUPT, f"byte {base + at}")
            return
        yield buffer[start:end]
        at = end


def _frame(buffer: bytes, at: int) -> tuple[int, int] | None:
    """Start and end of the packet at a place; the end is -1 when there is none, None asks for more bytes."""
    if at >= len(buffer):
        return None
    if buffer[at] != _PACKET_TAG:
        return at, -1
    length = shift = 0
    for place in range(at + 1, min(at + 6, len(buffer))):
        byte = buffer[place]
        length |= (byte & 0x7F) << shift
        if byte < 0x80:
            return place + 1, place + 1 + length if length <= _MAX_PACKET else -1
        shift += 7
    return (at, -1) if len(buffer) >= at + 6 else None


def unpack(compressed: bytes, place: str, found: Diagnostics) -> Iterator[bytes]:
    """The packets inside `compressed_packets`."""
    try:
        plain = zlib.decompress(compressed)
    except zlib.error as error:
        found.add(UNPACKED, f"{place}: {error}")
        return
    yield from read_packets(io.BytesIO(plain), found)

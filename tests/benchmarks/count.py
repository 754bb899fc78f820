"""Counts the slices of a Perfetto trace by looking at the wire format alone."""

from __future__ import annotations

import mmap
from pathlib import Path

_TRACK_EVENT, _TYPE, _SLICE_BEGIN = 11, 9, 1
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def count_slices(path: Path) -> int:
    """The number of packets whose track event begins a slice."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        at = count = 0
        while at < len(data):
            start, end = _length(data, at + 1)
            count += _begins_slice(data, start, end)
            at = end
    return count


def _begins_slice(data: mmap.mmap, at: int, end: int) -> bool:
    event = _find(data, at, end, _TRACK_EVENT)
    if event is None:
        return False
    start, stop = _length(data, event)
    type = _find(data, start, stop, _TYPE)
    return type is not None and data[type] == _SLICE_BEGIN


def _find(data: mmap.mmap, at: int, end: int, wanted: int) -> int | None:
    """Where the value of a field starts, or None when the message does not have it."""
    while at < end:
        tag, at = _varint(data, at)
        if tag >> 3 == wanted:
            return at
        kind = tag & 7
        if kind == _VARINT:
            _, at = _varint(data, at)
        elif kind == _BYTES:
            _, at = _length(data, at)
        elif kind in (_FIXED64, _FIXED32):
            at += 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"wire type {kind} at byte {at}")
    return None


def _length(data: mmap.mmap, at: int) -> tuple[int, int]:
    """Start and end of the content whose length stands at a place."""
    length, at = _varint(data, at)
    return at, at + length


def _varint(data: mmap.mmap, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7

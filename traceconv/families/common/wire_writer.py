"""Write protobuf's wire format, which `wire_reader` describes, as far as trace packets need it."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

_MAX_VARINT = 10
_SURROGATE = re.compile("[\ud800-\udfff]")
_STEP = 1 << 14
_LOW, _HIGH = np.divmod(np.arange(_STEP, dtype=np.uint16), 128)[::-1]
#: The varints of values below _STEP, in two bytes; no byte is 0, which would end a text of numpy.
_CONTINUED: list[bytes] = (_LOW | 0x80 | (_HIGH | 0x80) << 8).astype("<u2").view("S2").tolist()
_SMALL: list[bytes] = (_LOW | 0x80 | _HIGH << 8).astype("<u2").view("S2").tolist()
_SMALL[:128] = [bytes([value]) for value in range(128)]
#: More runs of values of equal size than this are not read one after the other.
_MANY_RUNS = 64


def varint(value: int) -> bytes:
    """Return a varint; a negative number as 64-bit two's complement, like protobuf's int32 and int64."""
    if 0 <= value < _STEP:
        return _SMALL[value]
    value &= 2**64 - 1
    out = b""
    while value >= _STEP:
        out += _CONTINUED[value % _STEP]
        value //= _STEP
    return out + _SMALL[value]


@cache
def tag(field: int, wire_type: int) -> bytes:
    """Return the bytes before a value."""
    return varint(field << 3 | wire_type)


def integer(field: int, value: int) -> bytes:
    return tag(field, 0) + varint(value)


def blob(field: int, data: bytes) -> bytes:
    size = len(data)
    return tag(field, 2) + (_SMALL[size] if size < _STEP else varint(size)) + data


def headed(field: int, chunks: list[bytes]) -> list[bytes]:
    """Return a field of large data, whose chunks are not copied."""
    return [tag(field, 2) + varint(sum(map(len, chunks))), *chunks]


def text(field: int, value: str) -> bytes:
    return blob(field, value.encode() if value.isascii() else utf8(value))


def double(field: int, value: float) -> bytes:
    return tag(field, 1) + struct.pack("<d", value)


def utf8(value: str) -> bytes:
    """Return UTF-8; lone surrogates become U+FFFD."""
    try:
        return value.encode()
    except UnicodeEncodeError:
        joined = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return _SURROGATE.sub("\ufffd", joined).encode()


def integers(field: int, values: npt.NDArray[np.int64] | npt.NDArray[np.uint64]) -> list[bytes]:
    """Return an integer field for each value; values must not be negative, and are encoded fastest in order."""
    if not len(values):
        return []
    digits, sizes = _fields(field, values)
    if np.count_nonzero(np.diff(sizes)) > _MANY_RUNS:
        fields = np.empty(len(values), object)
        for size in np.flatnonzero(np.bincount(sizes)).tolist():
            fields[sizes == size] = _rows(digits[sizes == size], size)
        return fields.tolist()
    out: list[bytes] = []
    # Runs of equal size: values in order of time have one run, seldom two.
    bounds = [0, *(np.flatnonzero(np.diff(sizes)) + 1).tolist(), len(values)]
    for start, stop in pairwise(bounds):
        out += _rows(digits[start:stop], int(sizes[start]))
    return out


def joined_integers(
    field: int, values: npt.NDArray[np.int64], head: Callable[[int], bytes] = lambda size: b""
) -> tuple[bytearray, npt.NDArray[np.int64]]:
    """Return an integer field for each value, joined, and the offset of each, with the end of the last one.

    Values must not be negative. Each field follows a head for its size; heads are of one length.
    """
    joined, bounds = bytearray(), [np.zeros(1, np.int64)]
    for start in range(0, len(values), _STEP):
        digits, sizes = _fields(field, values[start : start + _STEP])
        heads = np.array([list(head(size)) for size in range(digits.shape[1] + 1)], np.uint8)
        rows = np.hstack((heads[sizes], digits))
        widths = heads.shape[1] + sizes
        rows[np.arange(len(rows)), widths - 1] &= 0x7F
        bounds.append(len(joined) + np.cumsum(widths))
        joined += rows[np.arange(rows.shape[1]) < widths[:, np.newaxis]].tobytes()
    return joined, np.concatenate(bounds)


def _fields(field: int, values: npt.NDArray[Any]) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return integer fields in rows as if all had the most bytes, and the bytes that each needs."""
    rest, head = values.astype(np.uint64), tag(field, 0)
    sizes = np.full(len(values), len(head) + 1, np.int64)
    for size in range(1, _MAX_VARINT):
        sizes += rest >= np.uint64(1 << 7 * size) if 7 * size < 64 else 0
    digits = np.empty((len(values), len(head) + _MAX_VARINT), np.uint8)
    digits[:, : len(head)] = np.frombuffer(head, np.uint8)
    for place in range(_MAX_VARINT):
        digits[:, len(head) + place] = (rest & np.uint64(0x7F)) | np.uint64(0x80)
        rest >>= np.uint64(7)
    return digits, sizes


def _rows(digits: npt.NDArray[np.uint8], width: int) -> list[bytes]:
    block = np.ascontiguousarray(digits[:, :width])
    block[:, -1] &= 0x7F  # the last byte of a varint has no continuation bit
    rows: list[Any] = block.view(f"V{width}").ravel().tolist()
    return rows

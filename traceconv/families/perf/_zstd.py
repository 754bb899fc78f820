"""Unpack the compressed records of perf.data: one zstd stream, cut at any byte.

Python 3.14 has zstd, earlier versions need the module zstandard. A record may start in one compressed record and end in
the next.
"""

from __future__ import annotations

import importlib
import struct
from collections.abc import Iterator
from typing import Any, Protocol

from traceconv.errors import InputError
from traceconv.families.perf._file import Damage
from traceconv.io.limits import Unpacked

_CHUNK = 256  # bytes that are unpacked at once


class NoZstd(Exception):
    """No zstd decoder is installed."""


class _Stream(Protocol):
    def decompress(self, data: bytes) -> bytes: ...


def _new_stream() -> _Stream:
    for module, make in (("compression.zstd", "ZstdDecompressor"), ("zstandard", "ZstdDecompressor")):
        try:
            library: Any = getattr(importlib.import_module(module), make)()
        except ImportError:
            continue
        stream: _Stream = library if module == "compression.zstd" else library.decompressobj()
        return stream
    raise NoZstd


class Unpacker:
    """Unpacks the bodies of compressed records, in order.

    Args:
        unpacked: counts what is unpacked.
    """

    def __init__(self, unpacked: Unpacked) -> None:
        self._unpacked = unpacked
        self._stream: _Stream | None = None
        self._rest = b""
        self._broken = ""

    def add(self, body: bytes, order: str) -> bytes:
        """Unpack a body; return the records that are complete now.

        Args:
            body: the body of the next compressed record.
            order: "<" or ">", as in `struct`.

        Raises:
            NoZstd: no zstd decoder is installed.
            Damage: the stream is broken, here or earlier.
            InputError: the input unpacks to more than allowed.
        """
        if self._broken:
            raise Damage(0, self._broken)
        if self._stream is None:
            self._stream = _new_stream()
        try:
            plain = self._rest + b"".join(self._chunks(self._stream, body))
        except InputError:
            raise
        except Exception as error:  # each module has a class of its own
            self._broken = str(error)
            raise Damage(0, self._broken) from None
        end = _end_of_whole(plain, order)
        self._rest = plain[end:]
        return plain[:end]

    def _chunks(self, stream: _Stream, body: bytes) -> Iterator[bytes]:
        """Yield the unpacked body in chunks, since a few bytes may unpack to megabytes."""
        for at in range(0, len(body), _CHUNK):
            chunk = stream.decompress(body[at : at + _CHUNK])
            self._unpacked.add(len(chunk))
            yield chunk


def _end_of_whole(plain: bytes, order: str) -> int:
    """Return the end of the last complete record, or the position of an impossible size."""
    size_of = struct.Struct(f"{order}H").unpack_from
    at = 0
    while at + 8 <= len(plain):
        size = size_of(plain, at + 6)[0]
        if size < 8:
            return len(plain)
        if at + size > len(plain):
            break
        at += size
    return at

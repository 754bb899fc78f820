"""Unpack compressed packets of a Perfetto trace in chunks, since a small file may unpack to a huge one."""

from __future__ import annotations

import zlib

from traceconv.io.limits import Unpacked

#: The largest size of a packet, and the most that is unpacked of a compressed one, bytes.
MAX_UNPACKED = 1 << 28
_CHUNK = 1 << 16


class Inflated:
    """A readable stream of unpacked zlib data.

    Args:
        data: the compressed bytes.
        unpacked: counts what is unpacked.

    Attributes:
        wrong: the reason why unpacking ended early; "" if it did not.
    """

    def __init__(self, data: bytes, unpacked: Unpacked) -> None:
        self._data, self._at, self._left = data, 0, MAX_UNPACKED
        self._unpacked = unpacked
        self._inflate = zlib.decompressobj()
        self.wrong = ""

    def read(self, size: int) -> bytes:
        """Return `size` bytes; fewer only at the end."""
        chunks = []
        while size and (chunk := self._chunk(min(size, self._left + 1))):
            chunks.append(chunk)
            size -= len(chunk)
        return b"".join(chunks)

    def _chunk(self, size: int) -> bytes:
        """Return at most `size` bytes; b"" at the end."""
        inflate = self._inflate
        while not self.wrong and not inflate.eof:
            fed = inflate.unconsumed_tail
            if not fed:
                fed = self._data[self._at : self._at + _CHUNK]
                self._at += len(fed)
            try:
                chunk = inflate.decompress(fed, size)
            except zlib.error as error:
                self.wrong = str(error)
                break
            if len(chunk) > self._left:
                self.wrong = f"more than {MAX_UNPACKED >> 20} MiB"
                break
            self._left -= len(chunk)
            if chunk:
                self._unpacked.add(len(chunk))
                return chunk
            if not fed:
                self.wrong = "the compressed data is cut"
        return b""

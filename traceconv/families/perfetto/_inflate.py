"""Compressed packets of a Perfetto trace, unpacked chunk by chunk: a small file may stand for a huge one."""

from __future__ import annotations

import zlib

from traceconv.io.limits import Unpacked

#: The largest that a packet can be; so much is unpacked of one compressed packet.
MAX_UNPACKED = 1 << 28
_CHUNK = 1 << 16


class Inflated:
    """What was compressed (zlib), as a stream.

    Args:
        data: the compressed bytes.
        unpacked: counts what is unpacked.

    Attributes:
        wrong: why the stream ended before what was compressed did; "" if it did not.
    """

    def __init__(self, data: bytes, unpacked: Unpacked) -> None:
        self._data, self._at, self._left = data, 0, MAX_UNPACKED
        self._unpacked = unpacked
        self._inflate = zlib.decompressobj()
        self.wrong = ""

    def read(self, size: int) -> bytes:
        """Return so many bytes; fewer at the end only."""
        chunks = []
        while size and (chunk := self._chunk(min(size, self._left + 1))):
            chunks.append(chunk)
            size -= len(chunk)
        return b"".join(chunks)

    def _chunk(self, size: int) -> bytes:
        """Return at most so many bytes; none at the end."""
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

"""Compressed packets of a Perfetto trace, unpacked piece by piece: a small file may stand for a huge one."""

from __future__ import annotations

import zlib

from traceconv.io.limits import Unpacked

#: The largest that a packet can be; so much is unpacked of one compressed packet.
MAX_UNPACKED = 1 << 28
_PIECE = 1 << 16


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
        pieces = []
        while size and (piece := self._piece(min(size, self._left + 1))):
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def _piece(self, size: int) -> bytes:
        """Return at most so many bytes; none at the end."""
        inflate = self._inflate
        while not self.wrong and not inflate.eof:
            fed = inflate.unconsumed_tail
            if not fed:
                fed = self._data[self._at : self._at + _PIECE]
                self._at += len(fed)
            try:
                piece = inflate.decompress(fed, size)
            except zlib.error as error:
                self.wrong = str(error)
                break
            if len(piece) > self._left:
                self.wrong = f"more than {MAX_UNPACKED >> 20} MiB"
                break
            self._left -= len(piece)
            if piece:
                self._unpacked.add(len(piece))
                return piece
            if not fed:
                self.wrong = "the compressed data is cut"
        return b""

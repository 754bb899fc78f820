"""Read JSON documents that have to be read whole, with little memory beside their text.

A long array would be an object for each element. So it is decoded as one raw value, and its elements in parts: a part
ends at a comma between two elements, which is known since `[part]` is valid JSON by itself.
"""

from __future__ import annotations

import codecs
import mmap
import re
from collections.abc import Iterator
from typing import IO

import msgspec

from traceconv.io.source import Source
from traceconv.io.spill import failures, forget, spooled_file

_COPIED = 1 << 20
#: A larger text is in a file.
_IN_MEMORY = 64 << 20
#: The bytes of a part.
_PART = 1 << 22
#: The text in which commas are tried as the end of a part, and how many of them.
_WINDOW, _TRIES = 1 << 16, 32
#: The likely end of an element, by the first byte of the first one.
_ENDS = {
    b"{": re.compile(rb"\}\s*,(?=\s*\{)"),
    b"[": re.compile(rb"\]\s*,(?=\s*\[)"),
    b'"': re.compile(rb'"\s*,(?=\s*")'),
}
_COMMA = re.compile(rb",")
_BLANK = b" \t\r\n"

_decode_array = msgspec.json.Decoder(list[msgspec.Raw]).decode


class JsonDocument:
    """The text of an input: in memory, or in a temporary file if it is large.

    Bytes that are not UTF-8 are replaced, and a mark of the byte order is removed.
    """

    def __init__(self, source: Source) -> None:
        decode = codecs.getincrementaldecoder("utf-8-sig")("replace").decode
        with spooled_file() as file, source.open() as stream:
            size = 0
            while chunk := stream.read(_COPIED):
                size += _write(file, decode(chunk))
            size += _write(file, decode(b"", final=True))
            self.text = _text(file, size)

    def elements(self, array: msgspec.Raw) -> Iterator[msgspec.Raw]:
        """Return the elements of an array, of which a few are in memory at a time. Raises msgspec.ValidationError."""
        view = memoryview(array)
        if not is_array(array):
            raise msgspec.ValidationError("Expected `array`")
        return self._elements(view)

    def _elements(self, view: memoryview) -> Iterator[msgspec.Raw]:
        at, end = 1, len(view) - 1
        likely = _ENDS.get(bytes(view[at : at + _WINDOW]).lstrip(_BLANK)[:1], _COMMA)
        size = _PART
        while end - at > size:
            cut, elements = _part(view, at, at + size, likely)
            if not cut:
                size *= 2
                continue
            yield from elements
            at, size = cut, _PART
            self.drop_pages()
        yield from _decode_array(b"".join((b"[", view[at:end], b"]")))
        self.drop_pages()

    def drop_pages(self) -> None:
        """Drop the resident pages of a text in a file."""
        if isinstance(self.text, mmap.mmap):
            forget(self.text)


def is_array(value: msgspec.Raw) -> bool:
    return memoryview(value)[0] == ord("[")


def _write(file: IO[bytes], text: str) -> int:
    with failures():
        return file.write(text.encode())


def _text(file: IO[bytes], size: int) -> bytes | mmap.mmap:
    """Return what a file holds, of `size` bytes."""
    with failures():
        if size > _IN_MEMORY:
            file.flush()
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        file.seek(0)
        return file.read()


def _part(view: memoryview, at: int, about: int, likely: re.Pattern[bytes]) -> tuple[int, list[msgspec.Raw]]:
    """Return where the elements behind a part start, which begins at `at` and ends near `about`; and its elements.

    Return 0 if no end was found.
    """
    window = bytes(view[about : about + _WINDOW])
    for _, match in zip(range(_TRIES), likely.finditer(window), strict=False):
        end = about + match.end()
        try:
            return end, _decode_array(b"".join((b"[", view[at : end - 1], b"]")))
        except msgspec.DecodeError:
            continue
    return 0, []

"""Decode the list of events of a Chrome JSON trace in batches: all at once take far more memory than the file."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from traceconv.model.numbers import whole

#: The errors of the decoder, which also fails on thousands of nested brackets.
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_WINDOW_BYTES = 1 << 20
#: How far before a position a comma between events is searched, in bytes, and the most commas that are tried.
_TAIL_BYTES = 1 << 16
_MOST_CUTS = 4
_PARTS = 4
_SPACE = re.compile(rb"\s*+")
_BETWEEN_OBJECTS = re.compile(rb"\}\s*+(,)(?=\s*+\{)")
_COMMA = re.compile(rb"(,)")
_BYTE_IN_MESSAGE = re.compile(r"\(byte (\d+)\)")

_raw_list = msgspec.json.Decoder(list[msgspec.Raw])
_raw = msgspec.json.Decoder(msgspec.Raw)


class Events:
    """The events between two positions of a text.

    Args:
        text: a text with a JSON list.
        begin: the position behind the opening bracket of the list.
        end: the position where its closing bracket is, or should be.

    Attributes:
        is_output: whether traceconv wrote the trace.
    """

    def __init__(self, text: memoryview, begin: int, end: int) -> None:
        self._text, self._begin, self._end = text, begin, end
        self.is_output = False

    def batches(self) -> Iterator[list[msgspec.Raw]]:
        """Yield non-empty batches of undecoded events.

        Raises one of UNREADABLE with its position in the text if it is not a JSON list.
        """
        at, size = self._begin, _WINDOW_BYTES
        while at < self._end:
            cut, events = self._some(at, size)
            if events:
                yield events
                at, size = cut + 1, _WINDOW_BYTES
            elif cut == self._end:
                return  # an empty list
            else:
                size *= 2

    def _some(self, at: int, size: int) -> tuple[int, list[msgspec.Raw]]:
        """Return a position, of a comma or the end, and the events up to it; none if `size` bytes are not enough."""
        if at + size >= self._end:
            try:
                events = self._decode(at, self._end)
            except msgspec.DecodeError as error:
                raise _shifted(error, at - 1) from None
            if not events and at > self._begin:
                raise msgspec.DecodeError(f"JSON is malformed: trailing comma in array (byte {self._end})")
            return self._end, events
        for cut in self._cuts(at, size):
            try:
                events = self._decode(at, cut)
            except UNREADABLE:
                continue
            if events:
                return cut, events
        return at, []

    def _cuts(self, at: int, size: int) -> Iterator[int]:
        """Yield commas that may separate events: the text before one is a JSON list if it does."""
        for part in range(_PARTS, 0, -1):
            end = at + size * part // _PARTS
            begin = max(at, end - _TAIL_BYTES)
            cuts = [match.start(1) for match in _BETWEEN_OBJECTS.finditer(self._text, begin, end)]
            cuts = cuts or [match.start(1) for match in _COMMA.finditer(self._text, begin, end)]
            yield from cuts[: -1 - _MOST_CUTS : -1]

    def _decode(self, begin: int, end: int) -> list[msgspec.Raw]:
        if begin == self._begin and bytes(self._text[end : end + 1]) == b"]":
            return _raw_list.decode(self._text[begin - 1 : end + 1])  # without a copy
        return _raw_list.decode(b"".join((b"[", self._text[begin:end], b"]")))


def list_of(text: memoryview) -> tuple[Events, bool]:
    """Return the events of a text that is a list, and whether it is closed.

    Raises one of UNREADABLE for other texts.
    """
    begin = _first_place(text) + 1
    end = _without_space(text, len(text))
    try:
        _raw.decode(text)
    except msgspec.DecodeError:
        for mark in (b"]", b","):
            if end > begin and bytes(text[end - 1 : end]) == mark:
                end = _without_space(text, end - 1)
        for _ in (events := Events(text, begin, end)).batches():
            pass
        return events, False
    return Events(text, begin, end - 1), True


def is_list(text: memoryview) -> bool:
    """Return whether a text starts like a list."""
    begin = _first_place(text)
    return bytes(text[begin : begin + 1]) == b"["


def _first_place(text: memoryview) -> int:
    """Return the end of the white space at the start of a text."""
    match = _SPACE.match(text)
    return match.end() if match else 0


def byte_of(error: Exception) -> int | None:
    """Return the position in an error of the decoder."""
    match = _BYTE_IN_MESSAGE.search(str(error))
    return whole(match[1]) if match else None


def _shifted(error: msgspec.DecodeError, by: int) -> msgspec.DecodeError:
    """Return the error for a chunk of the text, with its position in the whole text."""
    return msgspec.DecodeError(_BYTE_IN_MESSAGE.sub(lambda match: f"(byte {whole(match[1]) + by})", str(error)))


def _without_space(text: memoryview, end: int) -> int:
    """Return the start of the white space before a position."""
    while end:
        begin = max(0, end - _TAIL_BYTES)
        kept = len(bytes(text[begin:end]).rstrip())
        if kept:
            return begin + kept
        end = begin
    return 0

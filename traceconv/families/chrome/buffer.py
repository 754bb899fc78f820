"""A buffer over a Chrome trace: reads on as bytes are consumed, and returns JSON values, valid or repaired."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from typing import IO

import msgspec
from msgspec import Raw

from traceconv.families.chrome.event import text_of
from traceconv.families.chrome.lenient_json import Hopeless, Incomplete, repair_value
from traceconv.io.source import CHUNK_BYTES
from traceconv.model.builder import Builder
from traceconv.model.diagnostics import repaired

BAD_ENCODING = repaired(
    "chrome.not_utf8", "bytes that are not UTF-8 were replaced by U+FFFD, the replacement character"
)

_check = msgspec.json.Decoder(Raw).decode
_SEPARATORS = re.compile(rb"[\s,\x00]*")
_SPACE = re.compile(rb"[\s\x00]*")
_SCALAR = re.compile(rb"[^,}\]\s]*")
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_REPLACEMENT = "\ufffd".encode()
_MAX_VALUE = 64 << 20
_MIN_VALUE = 1 << 10
_PRICE = 256  # the cost of a byte that was scanned in vain, see `limit`
_PAY = 64  # the credit for a consumed byte
AHEAD = 256  # enough to recognise the start of an object


class JsonBuffer:
    """A window into the file, from the first byte that is not consumed.

    Args:
        stream: the file.
        name: its name in messages.
        out: the builder, which counts problems.

    Attributes:
        data: the bytes in memory.
        pos: the position up to which they are consumed.
        dropped: the bytes of the file before them.
        at_end: whether they reach to the end of the file.
        commas: the commas that were skipped; reset by the caller that counts them.
    """

    def __init__(self, stream: IO[bytes], name: str, out: Builder) -> None:
        self.data = b""
        self.pos = self.dropped = self.commas = 0
        self.at_end = False
        self._stream = stream
        self._name = name
        self._out = out
        self._read = 0  # the bytes of the file read so far
        self._patience = _MAX_VALUE  # the limit for a value that needs repair, at the byte self._paid_until
        self._paid_until = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def bare(self) -> bytes:
        """Return a number, true, false or null."""
        while (match := _SCALAR.match(self.data, self.pos)) and match.end() == len(self.data) and self.fill():
            pass
        assert match is not None  # the pattern matches the empty text
        self.pos = max(match.end(), self.pos + 1)
        return match[0] if is_json(match[0]) else msgspec.json.encode(match[0].decode("utf-8", "replace"))

    def string(self) -> str:
        """Return the string at the position: a key or a value of the top level."""
        while True:
            match = _STRING.match(self.data, self.pos)
            if match is not None:
                self.pos = match.end()
                try:
                    return text_of(match[0])
                except msgspec.DecodeError:
                    return match[0][1:-1].decode("utf-8", "replace")
            if not self.fill():
                raise Incomplete

    def value_here(self, repairs: Counter[str]) -> tuple[bytes, int]:
        """Return the object or array at the position as valid JSON, and its end; read more bytes as needed."""
        limit = self.limit()
        while True:
            repaired: Counter[str] = Counter()
            rest = len(self.data) - self.pos
            text, start = (self.data, self.pos) if rest <= limit else (self.data[self.pos : self.pos + limit], 0)
            try:
                value, end = repair_value(text, start, repaired)
            except Incomplete:
                if rest > limit:
                    self.in_vain(limit)
                    raise Hopeless("a value that does not end", limit) from None
                if not self.fill(at_least=rest):
                    self.in_vain(rest)
                    raise
            except Hopeless as error:
                self.in_vain(error.at - start)
                raise
            else:
                repairs += repaired
                return value, self.pos + end - start

    def limit(self) -> int:
        """Return the most bytes of a value at the position that needs repair.

        Many values without an end would each be scanned to the end of the file. So bytes that are scanned in vain lower
        the limit, and consumed bytes raise it again: the time stays proportional to the size of the file.
        """
        here = self.dropped + self.pos
        self._patience = min(_MAX_VALUE, self._patience + _PAY * (here - self._paid_until))
        self._paid_until = here
        return max(_MIN_VALUE, self._patience)

    def in_vain(self, scanned: int) -> None:
        """Count bytes that were scanned in vain."""
        self._patience = max(0, self._patience - _PRICE * scanned)

    def where(self) -> str:
        """Return the position for messages."""
        return f"{self._name}:byte {self.dropped + self.pos}"

    def next_char(self, separators: bool = False) -> str:
        """Return the next character that is not white space (nor a comma, if `separators`).

        Return "" at the end of the file.
        """
        pattern = _SEPARATORS if separators else _SPACE
        while True:
            match = pattern.match(self.data, self.pos)
            assert match is not None
            self.commas += self.data.count(b",", self.pos, match.end()) if separators else 0
            self.pos = match.end()
            if self.pos < len(self.data):
                return chr(self.data[self.pos])
            if not self.fill():
                return ""

    def peek(self, count: int) -> None:
        """Read until the buffer has that many bytes, if the file has them."""
        while (missing := count - len(self.data) + self.pos) > 0 and self.fill(missing):
            pass

    def looks_like(self, start: re.Pattern[bytes]) -> re.Match[bytes] | None:
        """Return the match of a pattern of at most `AHEAD` bytes at the position; None without one."""
        self.peek(AHEAD)
        return start.match(self.data, self.pos)

    def fill(self, at_least: int = 0) -> bool:
        """Drop consumed bytes and read on; return False at the end of the file."""
        more = self._stream.read(max(CHUNK_BYTES, at_least))
        self.at_end = not more
        text = self._as_utf8(more)
        self._read += len(more)
        if text:
            self.dropped += self.pos
            self.data = b"".join((memoryview(self.data)[self.pos :], text))
            self.pos = 0
        return bool(text)

    def drop(self) -> None:
        """Drop the consumed bytes."""
        self.dropped, self.data, self.pos = self.dropped + self.pos, self.data[self.pos :], 0

    def _as_utf8(self, more: bytes) -> bytes:
        """Return the bytes with invalid UTF-8 replaced and counted.

        A character that is cut by the end of the chunk waits for its rest.
        """
        pending = self._decoder.getstate()[0]
        if more.isascii() and not pending:
            return more
        text = self._decoder.decode(more, not more).encode()
        came = pending + more
        replaced = text.count(_REPLACEMENT) - came.count(_REPLACEMENT)
        if replaced > 0:
            at = self._read - len(pending) + _not_utf8(came)
            self._out.problem(BAD_ENCODING, f"{self._name}:byte {at}", count=replaced)
        return text


def _not_utf8(text: bytes) -> int:
    """Return the position of the first invalid UTF-8; the end if there is none."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return error.start
    return len(text)


def is_json(text: bytes) -> bool:
    """Return whether a text is one valid JSON value."""
    try:
        _check(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True

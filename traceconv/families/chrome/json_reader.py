"""Read the events of a Chrome trace from valid or damaged JSON.

Source: the Trace Event Format document; what the catapult and Perfetto importers accept; real files (the goldens).

    {"displayTimeUnit": "ms", "traceEvents": [{"ph": "X", "name": "conv", "pid": 1, "tid": 1, "ts": 3.5}, ...]}
    [{"ph": "B", "name": "conv", "pid": 1, "tid": 1, "ts": 3.5},

The file is read in chunks that are cut between events; msgspec decodes a chunk at once, and leaves times and args as
bytes. Only a chunk that it refuses is read event by event, and only an event of invalid JSON goes through the lenient
scanner. So a valid file costs no more than a strict parser, and from a damaged one all readable events are read.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Generator, Iterator
from typing import IO, Any

import msgspec
from msgspec import Raw

from traceconv import kernel
from traceconv.families.chrome.event import (
    Empties,
    Event,
    Hopeless,
    Incomplete,
    Rows,
    RowScanner,
    decode_events,
    decode_member,
    decode_members,
    event_of,
    holds_event,
    repair_value,
    text_of,
)
from traceconv.io.source import CHUNK_BYTES, Source
from traceconv.model.builder import Builder
from traceconv.model.diagnostics import lost, noted, repaired
from traceconv.model.numbers import MAX_DEPTH, decode_json, flatten

BAD_ENCODING = repaired(
    "chrome.not_utf8", "bytes that are not UTF-8 were replaced by U+FFFD, the replacement character"
)
REPAIRED = repaired(
    "chrome.repaired",
    "invalid JSON (quotes, escapes, NaN, commas) was read as its writer meant it",
)
CUT = lost("chrome.cut", "the file ends inside an event, which was left out; all events before it were read")
GARBLED = lost("chrome.garbled", "text between events cannot be read as an event and was skipped")
NO_CLOSING = repaired(
    "chrome.unclosed", "the closing bracket is missing: the writer was stopped; all before that was read"
)
EXTRA_DOCUMENT = noted(
    "chrome.extra_document",
    "more events follow the end of the JSON document (several dumps or writers in one file); they were read, too",
)
REPEATED_VALUE = lost(
    "chrome.repeated_value",
    "a top-level key occurs again with another value (several documents in one file); the first value was kept",
)

_BOUNDARY = re.compile(rb"\}\s*,\s*(?=\{)")
_EVENT_START = re.compile(rb'\{\s*"(?:ph|name|cat|pid|tid|ts|dur|args|id|s|bp|traceEvents)"\s*:')
_BARE_EVENT = re.compile(rb'\{\s*"(?:ph|name|cat|pid|tid|ts|dur|args|id|s|bp)"\s*:')
_WRAPPER = re.compile(rb'\{\s*"traceEvents"\s*:\s*\[')
#: A valid element of an array that is no event, and holds none.
_ELEMENT = re.compile(
    rb'(?:null|true|false|-?\d[\d.eE+-]*|"(?:[^"\\]|\\.)*+"|\[[^\[\]{}"]*+\])(?=\s*+[,\]])', re.DOTALL
)
#: A run of empty objects: each would cost as much as an event, and a small file may unpack to millions of them.
_EMPTIES = re.compile(rb"(?:\{\s*+\}\s*+,\s*+){64,}+")
_EMPTIES_AHEAD = (b"{}," * 64, b"{}, " * 64, b"{},\n" * 64)
#: The message of msgspec for bytes after a complete value, with their position (from 1). Only speed depends on this
#: wording; a test checks it.
_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")
_POSITION = re.compile(r"\(byte (\d+)\)")
_CUT_TRIES = 16
_CUT_WINDOW = 1 << 16
_STRICT_EASE = 64  # msgspec is faster than the lenient scanner by about this factor
# the size of the first attempt: most arrays and events are shorter than the buffer
_WINDOWS = (4 << 10, 64 << 10, 1 << 20)
_SHOWN = 40
_BASE_TIME = "baseTimeNanoseconds"

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
    """A window into the file, from the first byte that is not consumed; read on as bytes are consumed.

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
        self._stream, self._name, self._out = stream, name, out
        self._read = 0  # the bytes of the file read so far
        self._patience = _MAX_VALUE  # the limit for a value that needs repair, at the byte self._paid_until
        self._paid_until = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def bare(self) -> bytes:
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

    def valid_value(self) -> tuple[bytes, int] | None:
        """Return what `value_here` does, with the white space behind; None if that may need repair, or more bytes.

        It is much faster: a file of each rank lists all ranks of the job.
        """
        text = memoryview(self.data)[self.pos : self.pos + self.limit()]
        try:
            _check(text)
            size = len(text)
        except (msgspec.DecodeError, RecursionError) as error:
            end = _TRAILING.search(str(error))
            if end is None:
                return None
            size = int(end[1]) - 1
        value = msgspec.json.format(bytes(text[:size]), indent=-1)
        return None if holds_event(value) else (value, self.pos + size)

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
        return f"{self._name}:byte {self.dropped + self.pos}"

    def next_char(self, separators: bool = False) -> str:
        """Return the next character but white space (and commas, if `separators`); "" at the end of the file."""
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
        self.dropped, self.data, self.pos = self.dropped + self.pos, self.data[self.pos :], 0

    def _as_utf8(self, more: bytes) -> bytes:
        """Return the bytes with invalid UTF-8 replaced and counted; a character that is cut waits for its rest."""
        pending = self._decoder.getstate()[0]
        if more.isascii() and not pending:
            return more
        text = self._decoder.decode(more, not more).encode()
        came = pending + more
        replaced = text.count(_REPLACEMENT) - came.count(_REPLACEMENT)
        if replaced > 0:
            try:
                came.decode()
                first = len(came)
            except UnicodeDecodeError as error:
                first = error.start
            self._out.problem(BAD_ENCODING, f"{self._name}:byte {self._read - len(pending) + first}", count=replaced)
        return text


def is_json(text: bytes) -> bool:
    try:
        _check(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


class ChromeReader:
    """Reads one Chrome trace; after all batches, `top` has the top-level values beside the events, undecoded."""

    def __init__(self, source: Source, out: Builder) -> None:
        self.top: dict[str, Raw] = {}
        self._source, self._out = source, out
        self._buffer: JsonBuffer
        self._plain_events = True
        self._repairs: Counter[str] = Counter()
        self._scanner: RowScanner | None = None
        self._in_array = False  # whether commas separate the events here
        self._behind_event = False  # whether an event of an array ends here
        self._searched = b""  # the buffer that was last searched for empty objects
        self._empties: list[int] = []  # the next position of each form of them

    def rows(self, exponent: int) -> Iterator[Rows | list[Event]]:
        """Yield the events as `batches` does, but plain ones as columns if the kernel is compiled.

        ts and dur count 10**exponent ns.
        """
        module = kernel.module("scan")
        self._scanner = RowScanner(module, exponent) if module is not None else None
        yield from self._all_batches()

    def batches(self) -> Iterator[list[Event]]:
        """Yield the events in lists, in file order, each valid until the next one; the specification of the kernel.

        The balance counts them as read. Raises MalformedInput if the file cannot be read as a Chrome trace at all.
        """
        for batch in self._all_batches():
            assert isinstance(batch, list)  # the kernel is not compiled
            yield batch

    def _all_batches(self) -> Iterator[Rows | list[Event]]:
        with self._source.open() as stream:
            self._buffer = JsonBuffer(stream, self._source.name, self._out)
            for batch in self._documents():
                self._out.balance.read += batch.size if isinstance(batch, Empties) else len(batch)
                yield batch
                if isinstance(batch, list):
                    # events reference the bytes of their chunk, which would stay in memory beside the next one
                    batch.clear()
        if self._repairs:
            kinds = ", ".join(f"{count} x {kind}" for kind, count in self._repairs.items())
            self._out.problem(REPAIRED, kinds, count=self._repairs.total())

    # -- the document -----------------------------------------------------------------------------------------

    def _documents(self) -> Iterator[Rows | list[Event]]:
        """Yield the events of all documents in the file; a valid file has one."""
        self._buffer.fill()
        self._buffer.data = self._buffer.data.removeprefix(b"\xef\xbb\xbf")
        char = self._buffer.next_char(separators=True)  # a file that lost its head may start with a comma
        if char not in ("{", "["):
            if not _EVENT_START.search(self._buffer.data):
                raise self._source.malformed(
                    "not JSON: no { or [ at the start, and no event after it",
                    hint="`traceconv identify` says what the file is",
                    where="byte 0",
                )
            self._skip_garbage("the beginning of the file is missing")
            char = self._buffer.next_char()
        yield from self._document(char)
        while char := self._buffer.next_char(separators=True):
            if char in ("{", "["):
                self._out.problem(EXTRA_DOCUMENT, self._buffer.where())
                yield from self._document(char)
            elif char == '"':
                yield from self._members()  # the end of a document whose start was overwritten
            elif char in ("]", "}"):
                self._buffer.pos += 1
            else:
                self._skip_garbage("expected an event")

    def _document(self, char: str) -> Iterator[Rows | list[Event]]:
        if char == "[":
            self._buffer.pos += 1
            if not (yield from self._events(in_array=True)):
                self._out.problem(NO_CLOSING, self._buffer.where())
        elif self._buffer.looks_like(_BARE_EVENT):
            yield from self._events(in_array=False)  # one event per line, without brackets around them
        else:
            self._buffer.pos += 1
            yield from self._members()

    def _members(self) -> Iterator[Rows | list[Event]]:
        """Yield the events of the top-level object, and read its other members, up to and with its closing bracket."""
        while (char := self._buffer.next_char(separators=True)) == '"':
            try:
                key = self._buffer.string()
            except Incomplete:
                self._buffer.pos = len(self._buffer.data)
                char = ""
                break
            if self._buffer.next_char() == ":":
                self._buffer.pos += 1
            if key == "traceEvents" and self._buffer.next_char() == "[":
                self._buffer.pos += 1
                yield from self._events(in_array=True)
            elif not self._keep_value(key):
                return
        if char == "}":
            self._buffer.pos += 1
        elif char == "":
            self._out.problem(NO_CLOSING, self._buffer.where())

    def _keep_value(self, key: str) -> bool:
        """Store the value at the position under a key; return False at the end of the file, or of its readable part."""
        char = self._buffer.next_char()
        where = f"byte {self._buffer.dropped + self._buffer.pos}"
        repairs: Counter[str] = Counter()
        try:
            if char in ("{", "["):
                value, end = self._buffer.valid_value() or self._buffer.value_here(repairs)
                if not is_json(value):
                    raise Hopeless("not JSON", end)
                self._buffer.pos = end
            elif char == '"':
                value = msgspec.json.encode(self._buffer.string())
            else:
                value = self._buffer.bare()
        except Incomplete:
            if _EVENT_START.search(self._buffer.data, self._buffer.pos + 1):
                self._skip_garbage(f"{key!r} does not end")
            else:
                self._out.problem(NO_CLOSING, f"inside {key!r}")
                self._buffer.pos = len(self._buffer.data)
            return False
        except Hopeless as error:
            self._skip_garbage(f"{key!r}: {error}")
            return False
        self._repairs += repairs
        self._keep_first(key, value, where)
        return True

    def _keep_first(self, key: str, value: bytes, where: str) -> None:
        first = bytes(self.top.setdefault(key, Raw(value)))
        if first == value:
            return
        before, again = decode_json(first), decode_json(value)
        if before == again:
            return
        if _base_time(key, before) != _base_time(key, again):
            raise self._source.malformed(
                f"two documents with different {_BASE_TIME}, expected one for all events of a file",
                hint="split the file into its documents, and merge these",
                where=where,
            )
        self._out.problem(REPEATED_VALUE, f"{self._source.name}:{where}: {key}")

    # -- the events -------------------------------------------------------------------------------------------

    def _events(self, *, in_array: bool) -> Generator[Rows | list[Event], None, bool]:
        """Yield the events from here up to the closing bracket of their array; return whether the bracket was there."""
        at_start = True
        self._in_array = in_array
        while True:
            if len(self._buffer.data) - self._buffer.pos < CHUNK_BYTES // 2:
                self._buffer.fill()
            char = self._to_event()
            if char in ("]", "}", ""):
                self._buffer.pos += char == "]"
                return char == "]"
            empties = _EMPTIES.match(self._buffer.data, self._buffer.pos) if self._in_array else None
            if empties is not None:
                self._buffer.pos = self._buffer.data.rindex(b"}", empties.start(), empties.end()) + 1
                self._behind_event = True
                yield Empties(self._buffer.data.count(b"{", empties.start(), empties.end()))
                continue
            is_document = self._buffer.looks_like(_WRAPPER) is not None
            rows = None if is_document else self._scanned()
            if rows is not None:
                yield rows
                continue
            batch = None if is_document else self._fast_batch(at_start)
            self._behind_event = bool(batch)
            at_start = False
            yield self._slow_batch() if batch is None else batch

    def _to_event(self) -> str:
        """Skip the separator of events, with missing or repeated commas counted; return the next character."""
        self._buffer.commas = 0
        char = self._buffer.next_char(separators=True)
        if self._behind_event and self._in_array:
            is_event = char == "{" and not self._buffer.looks_like(_WRAPPER)
            self._count_commas(self._buffer.commas, 1 if is_event else min(self._buffer.commas, 1))
        self._behind_event = False
        return char

    def _count_commas(self, commas: int, expected: int) -> None:
        if commas < expected:
            self._repairs["missing comma"] += 1
        elif commas > expected:
            self._repairs["stray comma"] += commas - expected

    def _scanned(self) -> Rows | None:
        """Return the complete, valid events from the position on as columns; None if the first one is not."""
        if self._scanner is None:
            return None
        until = self._next_empties()
        begin = self._buffer.pos
        data = self._buffer.data
        rows = self._scanner.scan(data[begin:until], 0) if until >= 0 else self._scanner.scan(data, begin)
        if until >= 0 and len(rows):
            self._buffer.pos += int(rows.end[-1])
        else:  # empty objects found may be inside the event here
            rows = self._scanner.scan(data, begin) if until >= 0 else rows
            if not len(rows):
                return None
            self._buffer.pos = int(rows.end[-1])
        self._behind_event = True
        if self._in_array:
            for commas in rows.odd_commas():
                self._count_commas(commas, 1)
        return rows

    def _next_empties(self) -> int:
        """Return the position of the next run of empty objects, else -1; each form is searched once in a buffer."""
        if self._buffer.data is not self._searched:
            self._searched = self._buffer.data
            self._empties = [0] * len(_EMPTIES_AHEAD)
        for form, many in enumerate(_EMPTIES_AHEAD):
            if 0 <= self._empties[form] <= self._buffer.pos:
                self._empties[form] = self._buffer.data.find(many, self._buffer.pos)
        return min((at for at in self._empties if at >= 0), default=-1)

    def _fast_batch(self, at_start: bool) -> list[Event] | None:
        """Return all complete events of the array in the buffer, decoded at once; None if they are not all valid."""
        for body in self._bodies(at_start):
            try:
                return self._take_array(body)
            except msgspec.DecodeError as error:
                array_end = _TRAILING.search(str(error))
                if array_end is not None:
                    return self._up_to_bracket(body[: int(array_end[1]) - 1])
                if not _fails_at_end(error, len(body)):
                    return None
            except RecursionError:
                return None
        return None

    def _bodies(self, at_start: bool) -> Iterator[bytes]:
        """Yield likely arrays of events: parts of the buffer for short ones, all, up to one of the last events."""
        data, pos = self._buffer.data, self._buffer.pos
        if at_start:
            for window in _WINDOWS:
                if window < len(data) - pos:
                    yield b"[" + data[pos : pos + window]
        view = memoryview(data)  # they are large: one copy instead of two
        if self._buffer.at_end:
            yield b"".join((b"[", view[pos:], b"]"))
        ends = [m.start() + 1 for m in _BOUNDARY.finditer(data, max(pos, len(data) - _CUT_WINDOW))]
        for end in reversed(ends[-_CUT_TRIES:]):
            yield b"".join((b"[", view[pos:end], b"]"))

    def _up_to_bracket(self, body: bytes) -> list[Event] | None:
        """Return the events of a complete array; its closing bracket is not consumed."""
        try:
            return self._take_array(body)
        except msgspec.DecodeError:
            return None

    def _take_array(self, body: bytes) -> list[Event] | None:
        """Return the events of an array, and consume them; None if a document stands among them."""
        events = self._decode(body)
        if events is not None:
            self._buffer.pos += len(body.rstrip()) - 2
        return events

    def _decode(self, body: bytes) -> list[Event] | None:
        if self._plain_events:
            try:
                return decode_events(body)
            except msgspec.ValidationError:
                self._plain_events = False  # rare fields: use the general decoder from here on
        objects = decode_members(body)
        return None if any(map(_is_document, objects)) else [event_of(members) for members in objects]

    def _slow_batch(self) -> list[Event]:
        """Read events one by one, until only an incomplete one is left in the buffer."""
        batch: list[Event] = []
        while char := self._to_event():
            if char in ("]", "}"):
                break
            if char == "{":
                events = self._slow_event()
                self._behind_event = bool(events)
                batch += events
            elif not (self._in_array and self._skip_element()):
                self._skip_garbage("expected {")
            if len(self._buffer.data) - self._buffer.pos < CHUNK_BYTES // 2 and not self._buffer.at_end:
                break
        return batch

    def _slow_event(self) -> list[Event]:
        """Return the event at the position; an empty list if it had to be skipped."""
        wrapper = self._buffer.looks_like(_WRAPPER)
        if wrapper is not None:  # another writer started its document in the middle of this one
            self._out.problem(EXTRA_DOCUMENT, self._buffer.where())
            self._buffer.pos = wrapper.end()
            return []
        event = self._strict_event()
        if event is not None:
            return [event]
        end = self._buffer.pos
        repairs: Counter[str] = Counter()
        try:
            value, end = self._buffer.value_here(repairs)
            event = event_of(decode_member(flatten(value, MAX_DEPTH + 1)))  # args are one level deeper
        except Incomplete:
            self._skip_cut()
            return []
        except (Hopeless, msgspec.DecodeError) as error:
            self._buffer.in_vain(end - self._buffer.pos)
            self._skip_garbage(str(error))
            return []
        self._repairs += repairs
        self._buffer.pos = end
        return [event]

    def _strict_event(self) -> Event | None:
        """Return the event at the position if it is valid JSON; else None."""
        window = _WINDOWS[0]
        while True:
            self._buffer.peek(window)
            # A large event is not copied: it may take most of the memory.
            data = memoryview(self._buffer.data) if window > CHUNK_BYTES else self._buffer.data
            text = data[self._buffer.pos : self._buffer.pos + window]
            try:
                return self._take(text)
            except msgspec.DecodeError as error:
                event_end = _TRAILING.search(str(error))
                if event_end is not None:
                    return self._take(text[: int(event_end[1]) - 1])
                if len(text) < window or not _fails_at_end(error, len(text)):
                    return None
            except RecursionError:
                return None
            window *= 8
            if window > _STRICT_EASE * self._buffer.limit():
                return None

    def _take(self, text: bytes | memoryview) -> Event:
        event = event_of(decode_member(text))
        self._buffer.pos += len(text)
        if len(text) > CHUNK_BYTES:  # the decoded event holds copies of its parts
            self._buffer.drop()
        return event

    def _skip_cut(self) -> None:
        """Skip an event that is cut by the end of the file, unless another one starts behind it."""
        if _EVENT_START.search(self._buffer.data, self._buffer.pos + 1):
            self._skip_garbage("an event that does not end")
            return
        self._out.balance.read += 1
        self._out.skip(CUT, self._buffer.where())
        self._buffer.pos = len(self._buffer.data)

    def _skip_element(self) -> bool:
        """Skip the value at the position if it is a valid element of the array; return whether it was."""
        element = _ELEMENT.match(self._buffer.data, self._buffer.pos)
        if element is None:
            return False
        shown = element[0][:_SHOWN].decode("utf-8", "replace")
        self._out.balance.read += 1
        self._out.skip(GARBLED, f"{self._buffer.where()}: expected {{, found {shown!r}")
        self._buffer.pos = element.end()
        return True

    def _skip_garbage(self, reason: str) -> None:
        """Skip to the next possible start of an event; the skipped text counts as one event, or as its values."""
        where = self._buffer.where()
        self._buffer.peek(_SHOWN)
        match = _EVENT_START.search(self._buffer.data, self._buffer.pos + 1)
        end = match.start() if match else len(self._buffer.data)
        shown = self._buffer.data[self._buffer.pos : min(end, self._buffer.pos + _SHOWN)].decode("utf-8", "replace")
        count = _count_values(self._buffer.data[self._buffer.pos : end]) if match else 1
        self._out.balance.read += count
        self._out.skip(GARBLED, f"{where}: {reason}, found {shown!r}", count=count)
        while match is None:
            self._buffer.pos = max(self._buffer.pos + 1, len(self._buffer.data) - AHEAD)
            if not self._buffer.fill():
                self._buffer.pos = len(self._buffer.data)
                return
            match = _EVENT_START.search(self._buffer.data, self._buffer.pos)
        self._buffer.pos = match.start()


def _is_document(members: dict[str, Raw]) -> bool:
    """Return whether the members are what _WRAPPER finds in the text."""
    first = next(iter(members.items()), None)
    return first is not None and first[0] == "traceEvents" and bytes(first[1]).startswith(b"[")


def _count_values(text: bytes) -> int:
    """Return the number of values in a text, separated by commas; 1 for any other text."""
    try:
        return len(msgspec.json.decode(b"[%b]" % text.strip(b", \t\r\n"), type=list[msgspec.Raw])) or 1
    except (msgspec.DecodeError, RecursionError):
        return 1


def _fails_at_end(error: msgspec.DecodeError, length: int) -> bool:
    """Return whether a text failed because it was cut at the wrong position, and not for its content."""
    if isinstance(error, msgspec.ValidationError):
        return False
    position = _POSITION.search(str(error))
    return position is None or int(position[1]) >= length - 2


def _base_time(key: str, value: Any) -> Any:
    """Return the `baseTimeNanoseconds` that a top-level value is or holds."""
    return value if key == _BASE_TIME else value.get(_BASE_TIME) if isinstance(value, dict) else None

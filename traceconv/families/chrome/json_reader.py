"""The events of a Chrome trace, out of whatever really stands in the file.

Source: the Trace Event Format document; what the catapult and Perfetto importers accept; real files (the goldens).

    {"displayTimeUnit": "ms", "traceEvents": [{"ph": "X", "name": "conv", "pid": 1, "tid": 1, "ts": 3.5}, ...]}
    [{"ph": "B", "name": "conv", "pid": 1, "tid": 1, "ts": 3.5},

The file is read in chunks that are cut between two events; each chunk is decoded at once by msgspec, which leaves the
times and the args as bytes. Only a chunk that this refuses is read event by event, and only an event that is not valid
JSON goes through the lenient scanner. So a healthy file costs no more than a strict parser, and a broken one loses
nothing that can be read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Iterator
from typing import Any

import msgspec
from msgspec import Raw

from traceconv import kernel
from traceconv.families.chrome.buffer import AHEAD, JsonBuffer, is_json
from traceconv.families.chrome.event import (
    Empties,
    Event,
    decode_events,
    decode_json,
    decode_member,
    decode_members,
    event_of,
)
from traceconv.families.chrome.lenient_json import MAX_DEPTH, Hopeless, Incomplete, flatten
from traceconv.families.chrome.rows import Rows, RowScanner
from traceconv.io.source import CHUNK_BYTES, Source
from traceconv.model.builder import Builder
from traceconv.model.diagnostics import lost, noted, repaired

REPAIRED = repaired(
    "chrome.repaired",
    "invalid JSON was read as the writer meant it (quotes, escapes, NaN, commas)",
)
CUT = lost("chrome.cut", "the file ends inside an event, which was dropped; all events before it were kept")
GARBLED = lost("chrome.garbled", "text between events that cannot be read as an event was skipped")
NO_CLOSING = repaired(
    "chrome.unclosed", "the closing bracket is missing: the writer was stopped; the text before the end was read"
)
EXTRA_DOCUMENT = noted(
    "chrome.extra_document",
    "more events follow after the end of the JSON document (several dumps or writers in one file); they were read too",
)
REPEATED_VALUE = lost(
    "chrome.repeated_value",
    "a top-level key occurs again with another value (several documents in one file); the first value was kept",
)

_BOUNDARY = re.compile(rb"\}\s*,\s*(?=\{)")
_EVENT_START = re.compile(rb'\{\s*"(?:ph|name|cat|pid|tid|ts|dur|args|id|s|bp|traceEvents)"\s*:')
_BARE_EVENT = re.compile(rb'\{\s*"(?:ph|name|cat|pid|tid|ts|dur|args|id|s|bp)"\s*:')
_WRAPPER = re.compile(rb'\{\s*"traceEvents"\s*:\s*\[')
#: Empty objects, one after the other: each costs as much as an event, and a small file may unpack to millions of them.
_EMPTIES = re.compile(rb"(?:\{\s*+\}\s*+,\s*+){64,}+")
_EMPTIES_AHEAD = (b"{}," * 64, b"{}, " * 64, b"{},\n" * 64)
#: How msgspec says that more follows after a whole value (the number counts the first byte of it, from 1), and where
#: it stopped. Nothing but speed hangs on this wording, but much of it: a test holds msgspec to it.
_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")
_POSITION = re.compile(r"\(byte (\d+)\)")
_CUT_TRIES = 16
_CUT_WINDOW = 1 << 16
_STRICT_EASE = 64  # about so much faster is msgspec than the lenient scanner
_WINDOWS = (4 << 10, 64 << 10, 1 << 20)  # of what is tried first: most arrays and events are shorter than the buffer
_SHOWN = 40
_BASE_TIME = "baseTimeNanoseconds"


class ChromeReader:
    """Reads one Chrome trace.

    Attributes:
        top: the top-level values beside the events, undecoded; complete when all batches were read.
    """

    def __init__(self, source: Source, out: Builder) -> None:
        self.top: dict[str, Raw] = {}
        self._source = source
        self._out = out
        self._buffer: JsonBuffer
        self._plain_events = True
        self._repairs: Counter[str] = Counter()
        self._scanner: RowScanner | None = None
        self._in_array = False  # whether commas stand between the events here
        self._behind_event = False  # whether one of an array ends here
        self._searched = b""  # the buffer that was searched for empty objects
        self._empties: list[int] = []  # where each form of them comes next

    def rows(self, exponent: int) -> Iterator[Rows | list[Event]]:
        """Yield the events like `batches`, plain ones as columns if the kernel is there.

        Args:
            exponent: the unit of ts and dur as a power of ten of ns.
        """
        module = kernel.module("scan")
        self._scanner = RowScanner(module, exponent) if module is not None else None
        yield from self._all_batches()

    def batches(self) -> Iterator[list[Event]]:
        """Yield the events in lists, in the order of the file.

        The balance counts them as read. A list is used only once.

        Raises:
            MalformedInput: nothing in the file can be read as a Chrome trace.
        """
        for batch in self._all_batches():
            assert isinstance(batch, list)  # there is no scanner
            yield batch

    def _all_batches(self) -> Iterator[Rows | list[Event]]:
        with self._source.open() as stream:
            self._buffer = JsonBuffer(stream, self._source.name, self._out)
            for batch in self._documents():
                self._out.balance.read += batch.size if isinstance(batch, Empties) else len(batch)
                yield batch
                if isinstance(batch, list):
                    batch.clear()  # each event holds on to the bytes of its chunk, and the next chunk comes now
        if self._repairs:
            kinds = ", ".join(f"{count} x {kind}" for kind, count in self._repairs.items())
            self._out.problem(REPAIRED, kinds, count=self._repairs.total())

    # -- the document -----------------------------------------------------------------------------------------

    def _documents(self) -> Iterator[Rows | list[Event]]:
        """Yield all documents in the file; one, if it is as it should be."""
        self._buffer.fill()
        self._buffer.data = self._buffer.data.removeprefix(b"\xef\xbb\xbf")
        char = self._buffer.next_char(separators=True)  # a file without its header may begin with a comma
        if char not in ("{", "["):
            if not _EVENT_START.search(self._buffer.data):
                raise self._source.malformed(
                    "not JSON: expected { or [ at the start, and no event behind it",
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
                yield from self._members()  # the end of a document whose beginning was overwritten
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
        """Yield the members of the top-level object, up to its closing bracket, which is consumed."""
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
        """Store the value here under its key; False when the file ends or makes no sense any more."""
        char = self._buffer.next_char()
        where = f"byte {self._buffer.dropped + self._buffer.pos}"
        try:
            if char in ("{", "["):
                value, end = self._buffer.value_here(self._repairs)
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
        """Yield the events from here up to the closing bracket of their array, which is consumed.

        Whether it was there.
        """
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
            is_document = not self._buffer.commas and self._buffer.looks_like(_WRAPPER) is not None
            rows = None if is_document else self._scanned()
            if rows is not None:
                yield rows
                continue
            batch = None if is_document else self._fast_batch(at_start)
            self._behind_event = bool(batch)
            at_start = False
            yield self._slow_batch() if batch is None else batch

    def _to_event(self) -> str:
        """Return the character after the separator of events.

        Commas between two of an array that are not one are counted.
        """
        self._buffer.commas = 0
        char = self._buffer.next_char(separators=True)
        if self._behind_event and self._in_array:
            is_event = char == "{" and (self._buffer.commas or not self._buffer.looks_like(_WRAPPER))
            self._count_commas(self._buffer.commas, 1 if is_event else min(self._buffer.commas, 1))
        self._behind_event = False
        return char

    def _count_commas(self, found: int, expected: int) -> None:
        if found < expected:
            self._repairs["missing comma"] += 1
        elif found > expected:
            self._repairs["stray comma"] += found - expected

    def _scanned(self) -> Rows | None:
        """Return the events from here on as far as they are valid and whole, as columns.

        None if the first one is not.
        """
        if self._scanner is None:
            return None
        until = self._next_empties()
        begin = self._buffer.pos
        data = self._buffer.data
        rows = self._scanner.scan(data[begin:until], 0) if until >= 0 else self._scanner.scan(data, begin)
        if until >= 0 and len(rows):
            self._buffer.pos += int(rows.end[-1])
        else:  # where empty objects come up they may be inside the event here
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
        """Return where the next run of empty objects begins in the buffer, -1 where none does.

        What a form of them was looked for in is not looked at again: what is not there is looked for once a buffer.
        """
        if self._buffer.data is not self._searched:
            self._searched = self._buffer.data
            self._empties = [0] * len(_EMPTIES_AHEAD)
        for form, many in enumerate(_EMPTIES_AHEAD):
            if 0 <= self._empties[form] <= self._buffer.pos:
                self._empties[form] = self._buffer.data.find(many, self._buffer.pos)
        return min((at for at in self._empties if at >= 0), default=-1)

    def _fast_batch(self, at_start: bool) -> list[Event] | None:
        """Return all whole events of the array that are in the buffer, decoded at once.

        None when they are not all valid.
        """
        for body in self._bodies(at_start):
            try:
                events = self._decode(body)
            except msgspec.DecodeError as error:
                array_end = _TRAILING.search(str(error))
                if array_end is not None:
                    return self._up_to_bracket(body[: int(array_end[1]) - 1])
                if not _fails_at_end(error, len(body)):
                    return None
            except RecursionError:
                return None
            else:
                self._buffer.pos += len(body.rstrip()) - 2
                return events
        return None

    def _bodies(self, at_start: bool) -> Iterator[bytes]:
        """Yield what may be a whole array of events, the likeliest first.

        An array that begins here may be a short one and many of its kind may follow, so a little of the buffer is
        tried first. Otherwise all of the buffer is, then what remains of it up to one of the last events.
        """
        data, pos = self._buffer.data, self._buffer.pos
        if at_start:
            for window in _WINDOWS:
                if window < len(data) - pos:
                    yield b"[" + data[pos : pos + window]
        view = memoryview(data)  # these are large: one copy, not two
        if self._buffer.at_end:
            yield b"".join((b"[", view[pos:], b"]"))
        ends = [m.start() + 1 for m in _BOUNDARY.finditer(data, max(pos, len(data) - _CUT_WINDOW))]
        for end in reversed(ends[-_CUT_TRIES:]):
            yield b"".join((b"[", view[pos:end], b"]"))

    def _up_to_bracket(self, body: bytes) -> list[Event] | None:
        """Return the events of a whole array; the closing bracket is left for who counts the brackets."""
        try:
            events = self._decode(body)
        except msgspec.DecodeError:
            return None
        self._buffer.pos += len(body.rstrip()) - 2
        return events

    def _decode(self, body: bytes) -> list[Event]:
        if self._plain_events:
            try:
                return decode_events(body)
            except msgspec.ValidationError:
                self._plain_events = False  # fields that are rare: take the general way from here on
        return [event_of(members) for members in decode_members(body)]

    def _slow_batch(self) -> list[Event]:
        """Read events one by one, until the buffer has only an incomplete one left."""
        batch: list[Event] = []
        while char := self._to_event():
            if char in ("]", "}"):
                break
            if char == "{":
                events = self._slow_event()
                self._behind_event = bool(events)
                batch += events
            else:
                self._skip_garbage("expected {")
            if len(self._buffer.data) - self._buffer.pos < CHUNK_BYTES // 2 and not self._buffer.at_end:
                break
        return batch

    def _slow_event(self) -> list[Event]:
        """Return the event here; none when it had to be skipped."""
        wrapper = self._buffer.looks_like(_WRAPPER)
        if wrapper is not None:  # another writer began its document in the middle of this one
            self._out.problem(EXTRA_DOCUMENT, self._buffer.where())
            self._buffer.pos = wrapper.end()
            return []
        event = self._strict_event()
        if event is not None:
            return [event]
        end = self._buffer.pos
        try:
            value, end = self._buffer.value_here(self._repairs)
            event = event_of(decode_member(flatten(value, MAX_DEPTH + 1)))  # the args begin one level further in
        except Incomplete:
            self._skip_cut()
            return []
        except (Hopeless, msgspec.DecodeError) as error:
            self._buffer.in_vain(end - self._buffer.pos)
            self._skip_garbage(str(error))
            return []
        self._buffer.pos = end
        return [event]

    def _strict_event(self) -> Event | None:
        """Return the event here if it is valid JSON."""
        window = _WINDOWS[0]
        while True:
            self._buffer.peek(window)
            # A large event is not copied: it may take most of the memory there is.
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
        if len(text) > CHUNK_BYTES:  # it holds what it is made of itself
            self._buffer.drop()
        return event

    def _skip_cut(self) -> None:
        """Skip an event in which the file ends, unless another one begins behind it."""
        if _EVENT_START.search(self._buffer.data, self._buffer.pos + 1):
            self._skip_garbage("an event that does not end")
            return
        self._out.balance.read += 1
        self._out.skip(CUT, self._buffer.where())
        self._buffer.pos = len(self._buffer.data)

    def _skip_garbage(self, reason: str) -> None:
        """Go on where the next event may start. The text before it counts as one event, or as the values that it is."""
        where = self._buffer.where()
        self._buffer.peek(_SHOWN)
        found = _EVENT_START.search(self._buffer.data, self._buffer.pos + 1)
        end = found.start() if found else len(self._buffer.data)
        shown = self._buffer.data[self._buffer.pos : min(end, self._buffer.pos + _SHOWN)].decode("utf-8", "replace")
        count = _count_values(self._buffer.data[self._buffer.pos : end]) if found else 1
        self._out.balance.read += count
        self._out.skip(GARBLED, f"{where}: {reason}, found {shown!r}", count=count)
        while found is None:
            self._buffer.pos = max(self._buffer.pos + 1, len(self._buffer.data) - AHEAD)
            if not self._buffer.fill():
                self._buffer.pos = len(self._buffer.data)
                return
            found = _EVENT_START.search(self._buffer.data, self._buffer.pos)
        self._buffer.pos = found.start()


def _count_values(text: bytes) -> int:
    """Return how many values a text holds, with commas between them; 1 if it is not such a text."""
    try:
        return len(msgspec.json.decode(b"[%b]" % text.strip(b", \t\r\n"), type=list[msgspec.Raw])) or 1
    except (msgspec.DecodeError, RecursionError):
        return 1


def _fails_at_end(error: msgspec.DecodeError, length: int) -> bool:
    """Return whether a text failed because it was cut at the wrong place, and not because of something inside it."""
    if isinstance(error, msgspec.ValidationError):
        return False
    position = _POSITION.search(str(error))
    return position is None or int(position[1]) >= length - 2


def _base_time(key: str, value: Any) -> Any:
    """Return the `baseTimeNanoseconds` that a top-level value is or holds."""
    return value if key == _BASE_TIME else value.get(_BASE_TIME) if isinstance(value, dict) else None

"""Events of a Chrome trace as they are read: objects with undecoded values, or columns; and damaged JSON, repaired.

The compiled scanner (`_scan.pyx`) reads plain events into columns. Without it, and for other events, importers read
each event as an object.

Profilers print JSON with printf: quotes in names are not escaped (ONNX Runtime up to 1.30, MXNet, Kineto), Windows
paths contain unknown escapes, counters print NaN, error texts contain raw line breaks, commas are superfluous. These
rules do not change valid JSON, and repair each defect to the evident meaning:

- a quote ends a string only if the text behind it can follow a string there: `:` after a key; `}`, `]` or a comma and
  the next key or value after a value. Other quotes belong to the text;
- an unknown escape is a backslash of the text; control characters are escaped; a lone surrogate becomes U+FFFD;
- NaN, Infinity and other bare words become strings; trailing commas are dropped;
- a string that continues with `,"ts":` (or another field of events only) lacks its closing quote;
- a key that ends with a quote and a colon, but does not begin with one, lacks its first quote (torch 1.4);
- an object with `ph` inside of another value is the next event: the value before it lacks its end, and is dropped.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Raw

from traceconv.model.columns import I64
from traceconv.model.numbers import decode_json, flatten, whole_pairs

#: The value of a field that an event does not have.
ABSENT = Raw(b"")
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")

_CAPACITY = 1 << 14
_COMMA = ord(",")
#: Two events are usually separated by a comma, a line break and indentation only.
_USUAL_GAP = 12

_SPACE = re.compile(rb"[\s\x00]*")
_BARE = re.compile(rb"[^\s,:{}\[\]\"]+")
_KEY_WITHOUT_QUOTE = re.compile(rb'([A-Za-z_]\w{0,63})"(?=\s*:)')
_NUMBER = re.compile(rb"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_KEY_AHEAD = rb'"(?:[^"\\]|\\.){0,2000}"\s*:'
_ENDS_KEY = re.compile(rb"\s*:")
_ENDS_MEMBER = re.compile(
    rb"\s*(?:[}\]]|(?:,\s*)+(?:" + _KEY_AHEAD + rb'|[}\]]|(?:ph|pid|tid|ts|dur)"\s*:))', re.DOTALL
)
_ENDS_ELEMENT = re.compile(rb'\s*(?:\]|(?:,\s*)+(?:["{\[\]]|[-\d]|true|false|null|NaN|Infinity))')
_EVENT = re.compile(rb'\{[^{}]{0,400}?"ph"\s*:\s*"')
_EVENT_FIELD = re.compile(rb'"(?:ph|pid|tid|ts|dur)"\s*:')
_NEAR = 64  # the most white space before a field
_ENDS_TEXT = re.compile(rb"\s*\Z")
_QUOTE_OR_BACKSLASH = re.compile(rb'["\\]')
_ESCAPE = re.compile(rb'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
_CONTROL = re.compile(rb"[\x00-\x1f]")


class Known(dict[_Key, _Value]):
    """A dict that makes the value of a key on first use: one lookup in loops over all events."""

    def __init__(self, make: Callable[[_Key], _Value]) -> None:
        self._make = make

    def __missing__(self, key: _Key) -> _Value:
        value = self[key] = self._make(key)
        return value


class Event(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """One event of the file; values other than texts, and all rare fields (`extra`), stay undecoded."""

    ph: str = ""
    name: str = ""
    cat: str = ""
    ts: Raw = ABSENT
    dur: Raw = ABSENT
    pid: Raw = ABSENT
    tid: Raw = ABSENT
    args: Raw = ABSENT
    id: Raw = ABSENT
    s: str = ""
    bp: str = ""
    extra: dict[str, Raw] | None = msgspec.field(default=None, name="(other fields)")


decode_events = msgspec.json.Decoder(list[Event]).decode
_decode_event = msgspec.json.Decoder(Event).decode
decode_members = msgspec.json.Decoder(list[dict[str, Raw]]).decode
decode_member = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_any = msgspec.json.Decoder().decode
_TEXT_FIELDS = ("ph", "name", "cat", "s", "bp")
_RAW_FIELDS = ("ts", "dur", "pid", "tid", "args", "id")


def decode_event(raw: bytes) -> Event:
    try:
        return _decode_event(raw)
    except msgspec.ValidationError:
        return event_of(decode_member(raw))


def compact(raw: bytes | memoryview) -> bytes:
    """Return a valid JSON text without white space between tokens."""
    return bytes(msgspec.json.format(raw, indent=-1)) if raw else b""


def event_of(members: dict[str, Raw]) -> Event:
    """Return an event from the members of a JSON object of any types."""
    event = Event()
    for key in _TEXT_FIELDS:
        if key in members:
            setattr(event, key, text_of(bytes(members.pop(key))))
    for key in _RAW_FIELDS:
        if key in members:
            setattr(event, key, members.pop(key))
    event.extra = members or None
    return event


def text_of(raw: bytes) -> str:
    """Return the content of a JSON string; for other values their JSON text without white space."""
    if raw[:1] in (b"{", b"["):
        raw = compact(flatten(raw))
    elif raw[:1] == b'"':
        value = _decode_any(raw)
        assert isinstance(value, str)
        return value
    return "" if raw in (b"null", b"") else raw.decode("utf-8", "replace")


class Empties(list[Event]):
    """A run of `size` empty objects, instead of a list of them."""

    def __init__(self, size: int) -> None:
        self.size = size


def members_of(event: Event) -> dict[str, Any]:
    raw = bytes(event.args)
    members = decode_json(raw) if raw[:1] == b"{" else None
    return members if isinstance(members, dict) else {}


def extra_of(event: Event, key: str) -> bytes:
    """Return a rare field of an event, undecoded; b"" if it is missing."""
    return bytes(event.extra[key]) if event.extra and key in event.extra else b""


# -- columns -----------------------------------------------------------------------------------------------------------


class Rows(msgspec.Struct):
    """Events of a trace in file order; valid until the next ones are read."""

    scanner: RowScanner  # the scanner, which holds texts and stands
    data: bytes  # part of the file
    phase: I64  # the phase as the number of its character; 0 for an event that is not plain
    start: I64  # start, end: the position of each event in the data
    end: I64
    ts: I64  # ts, dur: start and duration, ns; like the following ones, for plain events only
    dur: I64
    stand: I64  # the number of its pid, tid and category; see `RowScanner.stand`
    name: I64  # name, category: numbers of `RowScanner.name`
    category: I64
    id_at: I64  # id_at, id_len: the position of the id in the data
    id_len: I64
    args: bytes  # the args of all of them, without white space
    args_at: I64  # args_at, args_len: the position of the args of the event in `args`
    args_len: I64
    is_enclosing: npt.NDArray[np.bool_]  # whether `bp` is "e"

    def __len__(self) -> int:
        return len(self.phase)

    def raw(self, row: int) -> bytes:
        return self.data[self.start[row] : self.end[row]]

    def odd_commas(self) -> list[int]:
        """Return the numbers of commas between consecutive events, where it is not one."""
        text = np.frombuffer(self.data, np.uint8)
        ends, starts = self.end[:-1], self.start[1:]
        gaps = starts - ends
        commas = np.zeros(len(gaps), np.int64)
        for at in range(min(int(np.max(gaps, initial=0)), _USUAL_GAP)):
            commas += text[np.minimum(ends + at, starts)] == _COMMA  # the first event follows a bracket
        odd = np.flatnonzero((commas != 1) | (gaps > _USUAL_GAP)).tolist()
        counts = [self.data.count(b",", ends[row], starts[row]) for row in odd]
        return [count for count in counts if count != 1]

    def args_of(self, row: int) -> bytes:
        start = self.args_at[row]
        return self.args[start : start + self.args_len[row]]


class RowScanner:
    """Reads the events of one trace by the kernel module; ts and dur count 10**exponent ns."""

    def __init__(self, module: Any, exponent: int) -> None:
        self._module = module
        self._fields = np.zeros((len(module.FIELDS), _CAPACITY), np.int64)
        self._scanner = module.Scanner(self._fields, exponent)
        self._space = np.empty(0, np.uint8)
        self._pids: dict[int, bytes] = {}
        self._last_pid = -1, b""
        self._last_category = -1, ""

    def scan(self, data: bytes, start: int) -> Rows:
        """Return the complete, valid events from a position of the data on, as many as fit."""
        if len(self._space) <= len(data) - start:
            self._space = np.empty(len(data) + 1, np.uint8)
        count, _ = self._scanner.scan(data, start, self._space)
        columns = dict(zip(self._module.FIELDS, self._fields[:, :count], strict=True))
        return Rows(
            scanner=self,
            data=data,
            args=self._space[: self._scanner.args_size].tobytes(),
            is_enclosing=columns.pop("is_enclosing") != 0,
            **columns,
        )

    def values(self, rows: Rows, counters: npt.NDArray[np.intp]) -> Values:
        """Return the values of counters, which are rows with args; the phase of those that are left becomes 0."""
        at, length, stand, name = (column[counters] for column in (rows.args_at, rows.args_len, rows.stand, rows.name))
        found = np.empty((len(self._module.VALUES), int(np.sum(length)) // 5 + 1), np.int64)
        is_left = np.zeros(len(counters), np.uint8)
        count = self._scanner.values(rows.args, at, length, stand, name, found, is_left)
        rows.phase[counters[is_left == 1]] = 0
        event, series, value, is_integer, *key = found[:, :count]
        return Values(counters[event], series, value, is_integer.astype(np.uint8), *key)

    @property
    def series_count(self) -> int:
        return len(self._scanner.series)

    @property
    def text_count(self) -> int:
        return len(self._scanner.texts)

    def name(self, number: int) -> str:
        """Return a name or category by number; for a pid or tid its JSON text."""
        text: bytes = self._scanner.text(number)  # names and categories without quotes
        return text.decode() if text[:1] == b'"' else _unescaped(text)

    def names(self, numbers: Iterable[int]) -> list[str]:
        """Return names or categories by their numbers."""
        return [*map(_unescaped, map(self._scanner.text, numbers))]

    @property
    def stand_count(self) -> int:
        return len(self._scanner.stands)

    def pid(self, stand: int) -> bytes:
        pid = self._pids.get(stand)
        if pid is None:
            pid = self._pids[stand] = self.stand(stand)[0]
        return pid

    def stand(self, number: int) -> tuple[bytes, bytes, str, str]:
        """Return the pid, tid and category of an event, and its kind.

        It is what `ChromeEvents.track_of` calls `flow`, C for counters, or b for async events, with their id as tid.
        """
        pid, tid, category, kind = self._scanner.stand(number)
        if pid != self._last_pid[0]:  # consecutive stands often share the pid: one text is enough for them
            self._last_pid = pid, self._scanner.text(pid)
        if category != self._last_category[0]:
            self._last_category = category, self.name(category)
        return self._last_pid[1], self._scanner.text(tid), self._last_category[1], chr(kind) if kind else ""


def _unescaped(text: bytes) -> str:
    """Return the content of a JSON string, given without its quotes."""
    return text_of(b'"%b"' % text) if b"\\" in text else text.decode()


class Values(NamedTuple):
    """The values of plain counters, in order of their events."""

    row: I64  # the row of the event
    series: I64  # the number of its process, category, name and key together
    value: I64  # an integer, or the bits of a double
    is_integer: npt.NDArray[np.uint8]
    key_at: I64  # the position of the key in the args
    key_len: I64

    def key(self, rows: Rows, at: int) -> str:
        """Return the key of a value."""
        return rows.args[self.key_at[at] : self.key_at[at] + self.key_len[at]].decode()


# -- repair ------------------------------------------------------------------------------------------------------------


class Incomplete(Exception):
    """The text ends inside the value."""


class Hopeless(Exception):
    """The text cannot be repaired, for a reason, from a position on."""

    def __init__(self, reason: str, at: int) -> None:
        super().__init__(reason)
        self.at = at


def repair_value(data: bytes, pos: int, repairs: Counter[str]) -> tuple[bytes, int]:
    """Return the object or array at `pos` of a text, as valid JSON, and the position behind it; count repairs by kind.

    Raises:
        Incomplete: the text ends before the value does.
        Hopeless: it cannot be repaired.
    """
    out: list[bytes] = []
    open_brackets: list[bytes] = []
    while True:
        space = _SPACE.match(data, pos)
        assert space is not None  # it matches the empty text
        pos = space.end()
        char = data[pos : pos + 1]
        if not char:
            raise Incomplete
        at_key = open_brackets[-1:] == [b"{"] and out[-1] in (b"{", b",")
        if char in b"{[":
            _check_place(data, pos, out, open_brackets)
            open_brackets.append(char)
            out.append(char)
            pos += 1
        elif char in b"}]":
            _close(out, open_brackets, char, pos, repairs)
            pos += 1
            if not open_brackets:
                return b"".join(out), pos
        elif char == b'"':
            text, pos = _string(data, pos, at_key, open_brackets[-1:] == [b"["], repairs)
            out.append(text)
        elif char == b",":
            if out[-1] in (b",", b"{", b"["):
                repairs["stray comma"] += 1
            else:
                out.append(char)
            pos += 1
        elif char == b":":
            out.append(char)
            pos += 1
        elif at_key and (key := _KEY_WITHOUT_QUOTE.match(data, pos)):
            repairs["missing quote"] += 1
            out.append(b'"%b"' % key[1])
            pos = key.end()
        else:
            token = _BARE.match(data, pos)
            assert token is not None
            pos = token.end()
            out.append(_bare(token[0], repairs))


def holds_event(value: bytes) -> bool:
    """Return whether an event begins inside a value, which `repair_value` takes for the end of it."""
    return _EVENT.search(value, 1) is not None


def _check_place(data: bytes, pos: int, out: list[bytes], open_brackets: list[bytes]) -> None:
    """Raise Hopeless if an object or array cannot start here, instead of reading on to the end of the file."""
    if not open_brackets:
        return
    if out[-1] not in (b"[", b",", b":") or (open_brackets[-1] == b"{" and out[-1] != b":"):
        raise Hopeless("an object or array where none can begin", pos)
    if _EVENT.match(data, pos):
        raise Hopeless("an event that does not end", pos)


def _close(out: list[bytes], open_brackets: list[bytes], char: bytes, pos: int, repairs: Counter[str]) -> None:
    opened = open_brackets.pop()
    if (opened == b"{") != (char == b"}"):
        raise Hopeless(f"{opened.decode()} closed by {char.decode()}", pos)
    if out[-1] == b",":
        out.pop()
        repairs["stray comma"] += 1
    out.append(char)


def _bare(token: bytes, repairs: Counter[str]) -> bytes:
    if token in (b"true", b"false", b"null") or _NUMBER.fullmatch(token):
        return token
    repairs["bare word"] += 1
    return b'"' + token.replace(b"\\", b"\\\\") + b'"'


def _string(data: bytes, pos: int, is_key: bool, in_array: bool, repairs: Counter[str]) -> tuple[bytes, int]:
    """Return the string whose opening quote is at `pos`, as a valid JSON string, and the position behind it."""
    ends = _ENDS_KEY if is_key else _ENDS_ELEMENT if in_array else _ENDS_MEMBER
    chunks: list[bytes] = [b'"']
    start = pos = pos + 1
    while True:
        match = _QUOTE_OR_BACKSLASH.search(data, pos)
        if match is None:
            raise Incomplete
        pos = match.start()
        if match[0] == b"\\":
            escape = _ESCAPE.match(data, pos)
            if escape is None:
                chunks += (data[start:pos], b"\\\\")
                repairs["unknown escape"] += 1
                start = pos = pos + 1
            else:
                pos = escape.end()
        elif ends.match(data, pos + 1) or _ENDS_TEXT.match(data, pos + 1):
            chunks.append(data[start:pos])
            return _clean(b"".join(chunks), repairs) + b'"', pos + 1
        elif (comma := _missing_end(data, start, pos)) and ends is _ENDS_MEMBER:
            chunks.append(data[start:comma].rstrip())
            repairs["missing quote"] += 1
            return _clean(b"".join(chunks), repairs) + b'"', comma
        else:
            chunks += (data[start:pos], b'\\"')
            repairs["unescaped quote"] += 1
            start = pos = pos + 1


def _missing_end(data: bytes, start: int, quote: int) -> int:
    """Return the position of the comma if the quote starts a field of an event, which no text can contain; else 0."""
    before = data[max(start, quote - _NEAR) : quote].rstrip()
    last = max(start, quote - _NEAR) + len(before) - 1
    if before[-1:] == b"{" and _EVENT.match(data, last):
        raise Hopeless("a text that does not end before the next event", quote)
    return last if before[-1:] == b"," and _EVENT_FIELD.match(data, quote) else 0


def _clean(text: bytes, repairs: Counter[str]) -> bytes:
    text, controls = _CONTROL.subn(lambda m: b"\\u%04x" % m[0][0], text)
    if controls:
        repairs["raw control character"] += controls
    return whole_pairs(text)

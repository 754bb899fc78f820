"""Read Chrome JSON for the check: the text as JSON, the events in batches, and what the schema says of each of them.

The schema is compared once with each distinct shape: the part of an event that it depends on, which is the members, the
kinds of their values, and the values of the few members that it compares with constants.
"""

from __future__ import annotations

import codecs
import functools
import importlib.resources
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import msgspec
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import best_match

from traceconv.check.findings import data_loss, notice, refusal
from traceconv.model.diagnostics import Diagnostics
from traceconv.model.numbers import HALF_PAIR, whole


def schema_file(name: str) -> Traversable:
    """Return the file of a schema, such as "chrome_trace.schema.json"."""
    package = importlib.resources.files("traceconv")
    packaged = package / "schemas" / name
    if packaged.is_file():
        return packaged
    # In an editable install, the schemas are in the repository, beside the package.
    return Path(str(package)).parent / "schemas" / name


@functools.cache
def load_schema(name: str) -> dict[str, Any]:
    """Return the decoded schema, which is shared and must not be changed."""
    schema: dict[str, Any] = msgspec.json.decode(schema_file(name).read_bytes())
    return schema


_SCHEMA_NAME = "chrome_trace.schema.json"

#: An event with its values as undecoded JSON.
RawEvent = dict[str, bytes]

NUMERIC_TEXT = re.compile(rb'"-?\d+(\.\d+)?([eE][+-]?\d+)?"')
_INTEGER = re.compile(rb"-?\d+")
_NUMERIC_KEYS = frozenset(["ts", "dur", "tts", "tdur"])
_COMPARED_KEYS = frozenset(["ph", "s", "bp"])
# Phases whose args have members that the schema knows.
_ARGS_MATTER = frozenset([b'"C"', b'"M"', b'"O"', b'"c"'])
_NAMED_METADATA = frozenset(
    b'"%s"' % name
    for name in (b"process_name", b"thread_name", b"process_labels", b"process_sort_index", b"thread_sort_index")
)

raw_members = msgspec.json.Decoder(dict[str, msgspec.Raw])

#: For a larger event or member, only members that viewers know are checked, and only the kinds of large values.
LARGE_BYTES = 1 << 20
_MOST_SHAPES = 1 << 10
#: The escape of the first half of a surrogate pair, behind an even number of backslashes.
SURROGATE_ESCAPE = re.compile(rb"(?<!\\)(?:\\\\)*\\u[dD][89abAB]")
_QUOTE, _ESCAPED = ord('"'), b'"\\ud83d\\ude00"'
_EMPTY_OF = {ord("{"): b"{}", ord("["): b"[]", ord('"'): b'""'}


#: The most members of a large object that are looked at.
_MOST_MEMBERS = 1 << 10


def abbreviated(value: msgspec.Raw) -> msgspec.Raw:
    """Return a large value with its large members emptied, see `_emptied`; emptied itself if it has many members."""
    if bytes(memoryview(value)[:1]) == b"{":
        members = raw_members.decode(value)
        if len(members) <= _MOST_MEMBERS:
            kept = {
                key: _emptied(member) if memoryview(member).nbytes > LARGE_BYTES else member
                for key, member in members.items()
            }
            return msgspec.Raw(msgspec.json.encode(kept))
    return _emptied(value)


def _emptied(value: msgspec.Raw) -> msgspec.Raw:
    """Return an empty value of the same kind, or 0; an escape that stops viewers is kept in a text."""
    view = memoryview(value)
    if view[0] == _QUOTE and SURROGATE_ESCAPE.search(view):
        return msgspec.Raw(_ESCAPED)
    return msgspec.Raw(_EMPTY_OF.get(view[0], b"0"))


def members_of(raw: msgspec.Raw, size: int) -> tuple[RawEvent, bool]:
    """Return the members of an event, and whether it is too large to list all of them completely."""
    if size <= LARGE_BYTES:
        return {key: bytes(value) for key, value in raw_members.decode(raw).items()}, False
    values = msgspec.structs.asdict(_known_members().decode(raw))
    known = {key: value for key, value in values.items() if value is not msgspec.UNSET}
    large = {key: abbreviated(value) for key, value in known.items() if memoryview(value).nbytes > LARGE_BYTES}
    return {key: bytes(value) for key, value in (known | large).items()}, True


@cache
def _known_members() -> msgspec.json.Decoder[Any]:
    """Return a decoder of the members that the schema knows, as raw JSON; others are skipped."""
    names = load_schema(_SCHEMA_NAME)["$defs"]["event"]["properties"]
    fields = [(name, msgspec.Raw | msgspec.UnsetType, msgspec.UNSET) for name in names]
    return msgspec.json.Decoder(msgspec.defstruct("Event", fields))


class Shapes:
    """The verdicts of the schema on the shapes so far.

    Attributes:
        all_seen: whether each shape was compared with the schema; recordings have some tens of them.
    """

    def __init__(self) -> None:
        self._validator = Draft202012Validator(_part("event"))
        self._known = frozenset(_part("event")["properties"])  # other members are allowed, with any content
        self._verdicts: dict[object, str] = {}
        self.all_seen = True

    def verdict(self, event: RawEvent) -> str:
        """Return the violation of an event, "" if there is none."""
        shape: object = tuple([(key, _kind(key, value)) for key, value in event.items() if key in self._known])
        if event.get("ph") in _ARGS_MATTER:
            name = event.get("name")
            shape = (shape, name if name in _NAMED_METADATA else None, _inner_shape(event, "args"))
        elif "id2" in event:
            shape = (shape, _inner_shape(event, "id2"))
        known = self._verdicts.get(shape)
        if known is None and len(self._verdicts) >= _MOST_SHAPES:
            self.all_seen = False
            return ""
        if known is None:
            known = self._verdicts[shape] = self._validate(event)
        return known

    def _validate(self, event: RawEvent) -> str:
        try:
            instance = {key: msgspec.json.decode(value) for key, value in event.items()}
        except (msgspec.DecodeError, RecursionError) as error:
            return f"not readable: {error}"
        worst = best_match(self._validator.iter_errors(instance))
        return _sentence(worst) if worst else ""


def top_level_problems(info: dict[str, Any]) -> Iterator[str]:
    """Yield the violations of the object around the events (given with an empty list of events)."""
    for error in Draft202012Validator(_part("traceObject")).iter_errors(info):
        yield _sentence(error)


def _part(name: str) -> dict[str, Any]:
    """Return one definition of the schema as a schema of its own."""
    definitions = load_schema(_SCHEMA_NAME)["$defs"]
    return {**definitions[name], "$defs": definitions}


def _kind(key: str, value: bytes) -> object:
    """Return the part of a value that the schema depends on for its key."""
    first = value[0]
    if first == 0x22:  # a text
        if key in _COMPARED_KEYS:
            return value
        return bool(NUMERIC_TEXT.fullmatch(value)) if key in _NUMERIC_KEYS else "text"
    if first == 0x2D or 0x30 <= first <= 0x39:
        return "integer" if _INTEGER.fullmatch(value) else "number"
    if first in b"[{" and key in ("stack", "estack"):
        return value
    return first  # t, f, n, [ or { tell the rest


def _inner_shape(event: RawEvent, member: str) -> object:
    try:
        inner = raw_members.decode(event.get(member, b""))
    except msgspec.DecodeError:
        return None
    numeric = "ts" if event.get("ph") != b'"M"' or member == "id2" else ""
    return tuple([(key, _kind(numeric, bytes(value))) for key, value in inner.items()])


def _sentence(error: ValidationError) -> str:
    """Return a short text for a violation; the library's own quotes the whole instance."""
    where = ".".join(str(part) for part in error.absolute_path) or "event"
    if error.validator == "required":
        return f"{where}: {error.message}"[:160]
    shown = msgspec.json.encode(error.instance).decode()[:60]
    rule: Any = error.validator_value
    if error.validator == "anyOf" and all("required" in choice for choice in rule):
        return f"{where}: {' or '.join(' and '.join(choice['required']) for choice in rule)} is needed"
    title = error.schema.get("title", "") if isinstance(error.schema, Mapping) else ""
    allowed = msgspec.json.encode(rule).decode()[:120]
    return f"{where}: {shown}: expected {title.lower() or f'{error.validator} {allowed}'}"


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


NOT_JSON = refusal("check-json.not_json", "the file is not valid JSON; most viewers refuse it")
NOT_FINITE = refusal("check-json.not_finite", "NaN and Infinity are not JSON; viewers refuse the file")
BOM = refusal("check-json.bom", "the file starts with a byte order mark; viewers refuse it")
NOT_UTF8 = notice("check-json.not_utf8", "bytes that are not UTF-8 are shown as replacements")
UNCLOSED = notice(
    "check-json.unclosed_array", "the list of events is not closed, or a comma ends it; the format allows that"
)
RAW_DELETE = refusal(
    "check-json.raw_delete",
    "the character DEL (0x7f) in a text outside of the events: Perfetto refuses the file; write \\u007f",
)
LARGE_MEMBER = notice(
    "check-json.large_member",
    "an event or a member beside the events has more than a megabyte: its large values were not checked",
)
SCHEMA = data_loss("check-json.schema", "an event or member violates the Trace Event Format")
LONE_SURROGATE = refusal(
    "check-json.lone_surrogate", "half of a surrogate pair is not text; strict parsers refuse the file"
)
_UTF8_STEP = 1 << 20
_DELETE = b"\x7f"
_NOT_FINITE = re.compile(rb"-?(nan|inf)", re.IGNORECASE)


def load(data: bytes | bytearray, diagnostics: Diagnostics) -> Events | None:
    bom = len(codecs.BOM_UTF8) if data.startswith(codecs.BOM_UTF8) else 0
    if bom:
        diagnostics.add(BOM, "byte 0")
    text = memoryview(_as_utf8(data, diagnostics))[bom:]
    try:
        return _events_of(text, diagnostics)
    except UNREADABLE as error:
        if b"\\u" not in data or not (healed := _without_lone_surrogates(text, diagnostics)):
            _report_not_json(text, error, diagnostics)
            return None
    try:
        return _events_of(memoryview(healed), diagnostics)
    except UNREADABLE as error:
        _report_not_json(memoryview(healed), error, diagnostics)
        return None


def _as_utf8(data: bytes | bytearray, diagnostics: Diagnostics) -> bytes | bytearray:
    """Return the text with invalid UTF-8 replaced, as browsers do."""
    if data.isascii():
        return data
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(data), _UTF8_STEP):
            decoder.decode(data[start : start + _UTF8_STEP], start + _UTF8_STEP >= len(data))
    except UnicodeDecodeError as error:
        diagnostics.add(NOT_UTF8, f"near byte {start + error.start}")
        return data.decode("utf-8", "replace").encode()
    return data


def _without_lone_surrogates(data: memoryview, diagnostics: Diagnostics) -> bytes | None:
    """Return the text with each lone surrogate replaced, or None if there is none."""

    def replace(match: re.Match[bytes]) -> bytes:
        if match[1] is None:
            return match[0]
        diagnostics.add(LONE_SURROGATE, f"byte {match.start()}")
        return b"\\ufffd"

    healed = HALF_PAIR.sub(replace, data)
    return healed if diagnostics.count(LONE_SURROGATE) else None


def _events_of(text: memoryview, diagnostics: Diagnostics) -> Events | None:
    """Return the events, undecoded; None (and a problem) if this is not a trace at all."""
    if not is_list(text):
        return _events_of_object(text, diagnostics)
    events, closed = list_of(text)
    if not closed:
        diagnostics.add(UNCLOSED, f"byte {len(text)}")
    return events


def _events_of_object(text: memoryview, diagnostics: Diagnostics) -> Events | None:
    try:
        top = raw_members.decode(text)
    except msgspec.ValidationError:
        top = None
    inner = memoryview(top["traceEvents"]) if top and "traceEvents" in top else None
    if top is None or (inner is not None and bytes(inner[:1]) != b"["):
        diagnostics.add(SCHEMA, "the file is neither a list of events nor an object with a list traceEvents")
        return None
    info = {key: _fact(key, raw, diagnostics) for key, raw in top.items() if key != "traceEvents"}
    events = None
    if inner is not None:
        info["traceEvents"] = []
        events, _ = list_of(inner)
        events.is_output = _is_output(top.get("metadata"))
    if outside := _deletes(text) - (_deletes(inner) if inner is not None else 0):
        diagnostics.add(RAW_DELETE, "outside of traceEvents", outside)
    for problem in top_level_problems(info):
        diagnostics.add(SCHEMA, f"top level, {problem}")
    return events


def _is_output(metadata: msgspec.Raw | None) -> bool:
    """Return whether traceconv wrote a trace with these metadata; their values may be large."""
    for key in ("traceconv", "sources"):
        try:
            metadata = raw_members.decode(metadata or b"").get(key)
        except msgspec.DecodeError:
            return False
    return metadata is not None


def _fact(key: str, raw: msgspec.Raw, diagnostics: Diagnostics) -> Any:
    """Return a member beside the events for the schema; an empty value of its kind if it is large."""
    if memoryview(raw).nbytes > LARGE_BYTES:
        diagnostics.add(LARGE_MEMBER, f"top level, {key}")
        raw = abbreviated(raw)
    return msgspec.json.decode(raw)


def _deletes(text: memoryview) -> int:
    return sum(bytes(text[at : at + _UTF8_STEP]).count(_DELETE) for at in range(0, len(text), _UTF8_STEP))


def _report_not_json(data: memoryview, error: Exception, diagnostics: Diagnostics) -> None:
    place = byte_of(error)
    at = len(data) if place is None else place
    if _NOT_FINITE.match(data, at) or _NOT_FINITE.match(data, at - 1):
        diagnostics.add(NOT_FINITE, f"byte {at}")
    else:
        diagnostics.add(NOT_JSON, f"byte {at} of {len(data)}: {str(error).split(' (byte')[0]}")

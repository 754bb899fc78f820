"""Validate events with the schema of Chrome JSON, once for each distinct shape.

A shape is the part of an event that the schema depends on: its members, the kinds of their values, and the values of
the few members that the schema compares with constants. Events of equal shape get the same verdict.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import msgspec
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.exceptions import best_match

from traceconv.check._schemas import load_schema

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
            kept = {key: _emptied(one) if memoryview(one).nbytes > LARGE_BYTES else one for key, one in members.items()}
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

"""One event of a Chrome trace, undecoded, and the JSON values in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from traceconv.model.json_values import decode_json, flatten

#: The value of a field that an event does not have.
ABSENT = Raw(b"")
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class Known(dict[_Key, _Value]):
    """A dict that makes the value of a key on first use: one lookup in loops over all events."""

    def __init__(self, make: Callable[[_Key], _Value]) -> None:
        self._make = make

    def __missing__(self, key: _Key) -> _Value:
        value = self[key] = self._make(key)
        return value


class Event(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """One event of the file; values other than texts stay undecoded.

    Attributes:
        extra: all fields beyond those above, undecoded; None when there are none.
    """

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
    """Decode one event, which is valid JSON."""
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
    """Return the text of a JSON value.

    For a string its content, for other values their JSON text without white space.
    """
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
    """Return the args of an event, decoded."""
    raw = bytes(event.args)
    members = decode_json(raw) if raw[:1] == b"{" else None
    return members if isinstance(members, dict) else {}


def extra_of(event: Event, key: str) -> bytes:
    """Return a rare field of an event, undecoded; b"" if it is missing."""
    return bytes(event.extra[key]) if event.extra and key in event.extra else b""

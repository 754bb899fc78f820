"""What a JSON text holds, seen from its beginning: the same for any spacing, and for any order of its keys.

    {"a": 1, "traceEvents": [{"ph": "X", ...}, {"ph": "X", ...      members a, traceEvents; two objects
    [{"ph": "X", ...},                                              two objects
     {"ph": "X", ...}]
    {"ph": "X", ...}                                                two objects, one a line, without brackets
    {"ph": "X", ...}

Files are saved again by other programs than the one that recorded them: formatted, compacted, with sorted keys, with
the first bytes gone. So a format is recognised by the keys and values of its objects, not by how they are printed.
"""

from __future__ import annotations

import json
import re
from typing import Any

from msgspec import Struct

_SEPARATORS = re.compile(r"[\s,\x00]*")
_COLON = re.compile(r"\s*:\s*")
_FIRST_KEY = re.compile(r'\{\s*("[^"\\]*")\s*:')
#: So many objects that cannot be read are passed over: each may be read up to the end of the text in vain.
_TRIES = 64
_decoder = json.JSONDecoder(strict=False)


class Outline(Struct, frozen=True):
    """The beginning of a JSON text.

    Attributes:
        is_json: whether it begins as JSON does.
        members: of the top-level object, as far as they are whole; of an array that is cut its whole elements, of an
            object that is cut nothing (it is empty).
        objects: the objects in the top-level array, or in `traceEvents`, or one after the other without brackets.
    """

    is_json: bool = False
    members: dict[str, Any] = {}
    objects: list[dict[str, Any]] = []


def outline(head: bytes) -> Outline:
    """Return the outline of a text of which the first bytes are given. Raises nothing."""
    text = head.decode("utf-8", "replace")
    start = _skip(text, 0)
    opening = text[start : start + 1]
    if opening == "[":
        return Outline(True, {}, _objects(_elements(text, start + 1)[0]))
    if opening == '"':  # the first bytes are lost
        return Outline(True, {}, _objects(_elements(text, _next_object(text, start))[0]))
    if opening != "{":
        return Outline()
    first, end = _value(text, start)
    if isinstance(first, dict) and "traceEvents" not in first and _is_at(text, end, "{"):
        return Outline(True, {}, _objects(_elements(text, start)[0]))
    members = first if isinstance(first, dict) else _members(text, start + 1)
    events = members.get("traceEvents")
    if not isinstance(events, list):
        events = [members] if "ph" in members else []
    return Outline(True, members, _objects(events))


def _members(text: str, at: int) -> dict[str, Any]:
    """Return the members of an object that does not end in the text, from behind its bracket on."""
    members: dict[str, Any] = {}
    while _is_at(text, at, '"'):
        key, at = _value(text, _skip(text, at))
        colon = _COLON.match(text, at)
        if not isinstance(key, str) or colon is None:
            break
        at = colon.end()
        value, end = _value(text, at)
        if end == at and text[at : at + 1] == "[":
            value, end = _elements(text, at + 1)
        elif end == at:
            members[key] = {} if text[at : at + 1] == "{" else None
            break
        members[key], at = value, end
    return members


def _elements(text: str, at: int) -> tuple[list[Any], int]:
    """Return the elements of an array from behind its bracket on, and where it ends.

    What cannot be read is passed over.
    """
    found: list[Any] = []
    tries = _TRIES
    while tries and (at := _skip(text, at)) < len(text) and text[at] != "]":
        value, end = _value(text, at)
        if end == at:
            end = _next_same(text, at)
            tries -= 1
        else:
            found.append(value)
        at = end
    return found, at + 1


def _next_object(text: str, at: int) -> int:
    found = _FIRST_KEY.search(text, at)
    return found.start() if found else len(text)


def _next_same(text: str, at: int) -> int:
    """Return where the next object begins that has the same first key as the one here.

    The end of the text if none does.
    """
    key = _FIRST_KEY.match(text, at)
    if key is None:
        return len(text)
    return next((other.start() for other in _FIRST_KEY.finditer(text, at + 1) if other[1] == key[1]), len(text))


def _objects(values: list[Any]) -> list[dict[str, Any]]:
    return [value for value in values if isinstance(value, dict)]


def _value(text: str, at: int) -> tuple[Any, int]:
    """Return the value here and where it ends.

    None and `at` itself if there is none, or it does not end in the text.
    """
    try:
        return _decoder.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None, at


def _is_at(text: str, at: int, char: str) -> bool:
    return text.startswith(char, _skip(text, at))


def _skip(text: str, at: int) -> int:
    match = _SEPARATORS.match(text, at)
    assert match is not None  # it matches the empty text
    return match.end()

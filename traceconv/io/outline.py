"""The outline of the start of a JSON text; independent of spacing and of the order of keys.

    {"a": 1, "traceEvents": [{"ph": "X", ...}, {"ph": "X", ...      members a, traceEvents; two objects
    [{"ph": "X", ...},                                              two objects
     {"ph": "X", ...}]
    {"ph": "X", ...}                                                two objects, one a line, without brackets
    {"ph": "X", ...}

Other programs save recordings again: formatted, compacted, with sorted keys, without the first bytes. So a format is
recognised by the keys and values of its objects, not by their layout.
"""

from __future__ import annotations

import json
import re
from typing import Any

from msgspec import Struct

from traceconv.model.numbers import whole_pairs

_SEPARATORS = re.compile(r"[\s,\x00]*")
_COLON = re.compile(r"\s*:\s*")
_FIRST_KEY = re.compile(r'\{\s*("[^"\\]*")\s*:')
#: The most unreadable objects that are skipped: each may cost a scan to the end of the text.
_TRIES = 64
_decoder = json.JSONDecoder(strict=False)


class Outline(Struct, frozen=True):
    """The outline of the start of a JSON text.

    Attributes:
        is_json: whether the text starts like JSON.
        members: the complete members of the top-level object; an array that is cut holds its complete elements, an
            object that is cut is empty.
        objects: the objects in the top-level array, in `traceEvents`, or in a sequence without brackets.
    """

    is_json: bool = False
    members: dict[str, Any] = {}
    objects: list[dict[str, Any]] = []


def outline(head: bytes) -> Outline:
    """Return the outline of a text by its first bytes. Never raises."""
    text = whole_pairs(head).decode("utf-8", "replace")
    start = _skip(text, 0)
    opening = text[start : start + 1]
    if opening == "[":
        return Outline(True, {}, _objects(_elements(text, start + 1)[0]))
    if opening == '"':  # the first bytes of the file are missing
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
    """Return the complete members of an object that is cut; `at` is the position behind its bracket."""
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
    """Return the elements of an array, and the position of its end; `at` is the position behind its bracket.

    Unreadable elements are skipped.
    """
    elements: list[Any] = []
    tries = _TRIES
    while tries and (at := _skip(text, at)) < len(text) and text[at] != "]":
        value, end = _value(text, at)
        if end == at:
            end = _next_same(text, at)
            tries -= 1
        else:
            elements.append(value)
        at = end
    return elements, at + 1


def _next_object(text: str, at: int) -> int:
    key = _FIRST_KEY.search(text, at)
    return key.start() if key else len(text)


def _next_same(text: str, at: int) -> int:
    """Return the position of the next object with the same first key as the one at `at`.

    Without one, return the end of the text.
    """
    key = _FIRST_KEY.match(text, at)
    if key is None:
        return len(text)
    return next((other.start() for other in _FIRST_KEY.finditer(text, at + 1) if other[1] == key[1]), len(text))


def _objects(values: list[Any]) -> list[dict[str, Any]]:
    return [value for value in values if isinstance(value, dict)]


def _value(text: str, at: int) -> tuple[Any, int]:
    """Return the value at `at`, and the position of its end.

    Return None and `at` if there is no value, or if it is cut.
    """
    try:
        return _decoder.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None, at


def _is_at(text: str, at: int, char: str) -> bool:
    return text.startswith(char, _skip(text, at))


def _skip(text: str, at: int) -> int:
    match = _SEPARATORS.match(text, at)
    assert match is not None  # the pattern matches the empty text
    return match.end()

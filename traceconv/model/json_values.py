"""Decode one valid JSON value, whatever numbers it holds and however deep it is."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

#: Values nested deeper than this become text, since the limit of decoders differs between versions of Python.
MAX_DEPTH = 200

_STRING_OR_BRACKET = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.DOTALL)
_decode = msgspec.json.Decoder().decode


def may_be_deep(value: bytes) -> bool:
    """Return whether a valid JSON value has enough brackets to be nested deeper than MAX_DEPTH (a quick test)."""
    return value.count(b"[") + value.count(b"{") > MAX_DEPTH


def flatten(value: bytes, levels: int = MAX_DEPTH) -> bytes:
    """Return a JSON value in which values nested deeper than `levels` are texts, also one that never ends."""
    if not may_be_deep(value):
        return value
    out: list[bytes] = []
    depth = done = deep = 0
    for match in _STRING_OR_BRACKET.finditer(value):
        if match[0] in b"{[":
            depth += 1
            if depth == levels + 1:
                out.append(value[done : match.start()])
                deep = match.start()
        elif match[0] in b"}]":
            if depth == levels + 1:
                done = match.end()
                out.append(_as_text(value[deep:done]))
            depth -= 1
    if depth > levels:
        done = len(value)
        out.append(_as_text(value[deep:]))
    return b"".join(out) + value[done:]


def _as_text(value: bytes) -> bytes:
    return json.dumps(value.decode("utf-8", "replace"), ensure_ascii=False).encode()


def decode_json(raw: bytes | memoryview) -> Any:
    """Decode a valid JSON text. Numbers out of the range of a double, and values nested too deeply, stay text."""
    raw = flatten(bytes(raw))
    try:
        return _decode(raw)
    except msgspec.ValidationError:
        return json.loads(raw, parse_float=number_or_text, parse_int=number_or_text)


def number_or_text(text: str) -> float | str:
    """Return a number of JSON; its text if it is out of the range of a double, or an integer of over 4300 digits."""
    try:
        return _decode(text)  # type: ignore[no-any-return]
    except msgspec.ValidationError:
        return text

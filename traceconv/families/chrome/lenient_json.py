"""Repair one JSON value in damaged text.

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
_SURROGATES = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_PAIR_LENGTH = 12


class Incomplete(Exception):
    """The text ends inside the value."""


class Hopeless(Exception):
    """The text cannot be repaired.

    Args:
        reason: the reason.
        at: the position in the text where it failed.
    """

    def __init__(self, reason: str, at: int) -> None:
        super().__init__(reason)
        self.at = at


def repair_value(data: bytes, pos: int, repairs: Counter[str]) -> tuple[bytes, int]:
    """Return the value that starts at `pos`, as valid JSON, and the position behind it.

    Args:
        data: the text.
        pos: the start of an object or array.
        repairs: counts what was repaired, by kind.

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
    if b"\\ud" not in text.lower():
        return text
    return _SURROGATES.sub(lambda m: m[0] if len(m[0]) == _PAIR_LENGTH else b"\\ufffd", text)

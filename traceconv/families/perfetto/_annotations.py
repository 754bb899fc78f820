"""Encode args, the bytes of a JSON object, as the debug annotations of an event.

Types are kept: integers, doubles, bools, texts, nested objects and arrays. Values that a debug annotation cannot
express become text: null ("null"), an empty object or array ("{}", "[]"), integers beyond int64 (Perfetto shows the
upper half of uint64 as negative numbers) and doubles out of range, both with their exact digits, and values nested
deeper than 64 levels, as JSON. Of a key that occurs twice the last value counts.

Names and texts are interned, in the order of their first occurrence in the file, up to limits: a text that never
repeats costs more if interned, and is written in the event. The annotations of texts and nested values are also cached
per key, which only saves time.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from traceconv.families.perfetto import _wire as wire
from traceconv.model.json_values import number_or_text
from traceconv.model.numbers import double_of, fits_int64, whole_of

_MEMO_PER_KEY = 4096
_MEMO_BYTES = 32 << 20
_MAX_DEPTH = 64


# TrackEvent.debug_annotations = 4; the fields of DebugAnnotation; InternedData.
_ANNOTATION = 4
_NAME_IID, _BOOL, _INT, _DOUBLE, _TEXT, _NAME, _ENTRY, _ITEM, _TEXT_IID = 1, 2, 4, 5, 6, 10, 11, 12, 17
_INTERNED_NAME, _INTERNED_TEXT = 3, 29
_ANNOTATION_TAG, _INT_TAG = wire.tag(_ANNOTATION, 2), wire.tag(_INT, 0)
_LONGEST_VARINT = 10
_STEEP = 10**18  # below this an integer fits into an int64 in any case

_members = msgspec.json.Decoder(dict[str, Any]).decode
_dump = msgspec.json.Encoder().encode
_raw_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_raw_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_text = msgspec.json.Decoder(str).decode
# msgspec's errors and bad UTF-8 are ValueErrors; nesting beyond its limit is a RecursionError.
_BROKEN = (ValueError, RecursionError)


@dataclass(frozen=True)
class Limits:
    """The limits of interning: the number of names, the number of texts of a key, and the bytes of all texts.

    `text_overhead` is added to the bytes of each text.
    """

    max_keys: int = 1 << 16
    max_texts_per_key: int = 4096
    max_text_bytes: int = 32 << 20
    text_overhead: int = 64


class Interning(Protocol):
    """Assigns numbers to names and texts: an Interner, or the kernel, with equal results."""

    def name(self, key: bytes) -> int:
        """Return the number of the name of an annotation, 0 if there are too many names."""

    def text(self, value: bytes, key: int) -> int:
        """Return the number of a text under a key, which is given by its number.

        Return 0 if the text is to be written in the event.
        """

    def take_interned(self) -> bytes:
        """Return the new fields of InternedData since the last call."""


class Interner:
    """The names and texts of one packet sequence."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._names: dict[bytes, int] = {}
        self._texts: dict[bytes, int] = {}
        self._texts_of_key: defaultdict[int, int] = defaultdict(int)
        self._text_bytes = 0
        self._fields: list[bytes] = []

    def name(self, key: bytes) -> int:
        """See Interning."""
        iid = self._names.get(key)
        if iid is not None:
            return iid
        if len(self._names) >= self._limits.max_keys:
            return 0
        iid = self._names[key] = len(self._names) + 1
        self._fields.append(wire.blob(_INTERNED_NAME, wire.integer(1, iid) + wire.blob(2, key)))
        return iid

    def text(self, value: bytes, key: int) -> int:
        """See Interning."""
        iid = self._texts.get(value)
        if iid is not None:
            return iid
        limits = self._limits
        size = self._text_bytes + len(value) + limits.text_overhead
        if not key or self._texts_of_key[key] >= limits.max_texts_per_key or size > limits.max_text_bytes:
            return 0
        self._text_bytes = size
        self._texts_of_key[key] += 1
        iid = self._texts[value] = len(self._texts) + 1
        self._fields.append(wire.blob(_INTERNED_TEXT, wire.integer(1, iid) + wire.blob(2, value)))
        return iid

    def take_interned(self) -> bytes:
        """See Interning."""
        fields, self._fields = self._fields, []
        return b"".join(fields)


class Annotations:
    """Encodes the args of events of one packet sequence."""

    def __init__(self, interning: Interning) -> None:
        self._interning = interning
        self._names: dict[str, tuple[bytes, int]] = {}
        self._memos: defaultdict[str, dict[str | bytes, bytes]] = defaultdict(dict)
        self._int_heads: dict[str, list[bytes]] = {}
        self._memo_bytes = 0
        self._left_inline = 0

    def encode(self, args: bytes | memoryview) -> bytes:
        """Return the annotation fields of a TrackEvent."""
        try:
            members = _members(args)
        except _BROKEN:  # also for numbers beyond a double: the undecoded values, one by one
            return self._encode_raw(bytes(args))
        memos, heads, rare = self._memos, self._int_heads, self._rare
        chunks = []
        for key, value in members.items():
            kind = type(value)
            if kind is int and key in heads and 0 <= value < _STEEP:
                number = wire.varint(value)
                chunks.append(heads[key][len(number)] + number)
                continue
            encoded = value if kind is str else _dump(value)
            chunks.append(memos[key].get(encoded) or rare(key, encoded))
        return b"".join(chunks)

    def _encode_raw(self, args: bytes) -> bytes:
        try:
            members = _raw_members(args)
        except _BROKEN:
            members = _raw_members(_repaired(args))
        return b"".join([self._rare(key, bytes(raw)) for key, raw in members.items()])

    def _rare(self, key: str, value: str | bytes) -> bytes:
        """Encode a value that is not cached for its key: a text, or JSON."""
        name, iid = self._name(key)
        left_inline = self._left_inline
        fields = self._text(value, iid) if isinstance(value, str) else self._value(value, 0, iid)
        chunk = wire.blob(_ANNOTATION, name + fields)
        memo = self._memos[key]
        if not iid:
            del self._memos[key]
        elif fields[:1] == _INT_TAG:
            self._int_heads[key] = self._heads_of_ints(key)
        # A text that was written in an event may be interned later, under another key.
        elif left_inline == self._left_inline and len(memo) < _MEMO_PER_KEY and self._memo_bytes < _MEMO_BYTES:
            memo[value] = chunk
            self._memo_bytes += len(value) + len(chunk)
        return chunk

    def _heads_of_ints(self, key: str) -> list[bytes]:
        """Return the bytes before the varint of an integer value of this key, by the length of the varint."""
        head = self._name(key)[0] + _INT_TAG
        return [_ANNOTATION_TAG + wire.length(len(head) + size) + head for size in range(_LONGEST_VARINT + 1)]

    def _name(self, key: str) -> tuple[bytes, int]:
        """Return the field with the name, and its number, 0 if it has none."""
        known = self._names.get(key)
        if known is not None:
            return known
        data = wire.utf8(key)
        iid = self._interning.name(data)
        if not iid:
            return wire.blob(_NAME, data), 0
        self._names[key] = wire.integer(_NAME_IID, iid), iid
        return self._names[key]

    def _value(self, raw: bytes, depth: int, key: int) -> bytes:
        first = raw[:1]
        if first == b'"':
            return self._text(_decoded_text(raw), key)
        if first in (b"{", b"["):
            return self._nested(raw, depth, key)
        if first in (b"t", b"f"):
            return wire.integer(_BOOL, first == b"t")
        if first == b"n":
            return wire.text(_TEXT, "null")
        return _number(raw)

    def _nested(self, raw: bytes, depth: int, key: int) -> bytes:
        if depth >= _MAX_DEPTH or not raw[1:-1].strip():
            return wire.blob(_TEXT, raw if depth >= _MAX_DEPTH else raw[:1] + raw[-1:])
        try:
            if raw[:1] == b"[":
                items = [self._value(bytes(item), depth + 1, key) for item in _raw_items(raw)]
                return b"".join([wire.blob(_ITEM, item) for item in items])
            members = _raw_members(raw).items()
        except _BROKEN:
            return wire.text(_TEXT, raw.decode("utf-8", "replace"))
        entries = []
        for inner, value in members:
            name, iid = self._name(inner)
            entries.append(wire.blob(_ENTRY, name + self._value(bytes(value), depth + 1, iid)))
        return b"".join(entries)

    def _text(self, value: str, key: int) -> bytes:
        data = wire.utf8(value)
        iid = self._interning.text(data, key)
        if iid:
            return wire.integer(_TEXT_IID, iid)
        self._left_inline += 1
        return wire.blob(_TEXT, data)


def _number(raw: bytes) -> bytes:
    if raw.lstrip(b"-").isdigit():
        whole = whole_of(raw)
        return wire.integer(_INT, whole) if whole is not None and fits_int64(whole) else wire.blob(_TEXT, raw)
    number = double_of(raw.decode("latin-1"))
    return wire.blob(_TEXT, raw) if number is None else wire.double(_DOUBLE, number)


def _decoded_text(raw: bytes) -> str:
    try:
        return _text(raw)
    except _BROKEN:  # a lone surrogate as an escape, or bytes that are not UTF-8
        return str(json.loads(raw.decode("utf-8", "replace"), strict=False))


def _repaired(args: bytes) -> bytes:
    """Return a valid JSON object for one that strict parsers refuse, or an object that holds its text."""
    shown = args.decode("utf-8", "replace")
    try:
        members: Any = json.loads(
            shown, strict=False, parse_constant=str, parse_float=number_or_text, parse_int=number_or_text
        )
        if not isinstance(members, dict):
            members = {"args": shown}
        return wire.utf8(json.dumps(members, ensure_ascii=False))
    except _BROKEN:
        return wire.utf8(json.dumps({"args": shown}, ensure_ascii=False))

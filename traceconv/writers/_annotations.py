"""Args to debug annotations: the bytes of a JSON object to the annotations of one event.

Types stay: integers, doubles, bools, texts, nested objects and arrays. What a debug annotation cannot say becomes
text: null ("null"), an empty object or array ("{}", "[]"), integers that do not fit into an int64 (Perfetto shows
the upper half of uint64 as negative numbers) and doubles beyond the range, both with their exact digits, and what is
nested deeper than 64 levels, as JSON text. Of a key that occurs twice the last value counts.

Values of args repeat: per key, the annotation of each value is kept and found again by the value, up
to a limit. Texts within that limit are interned, those beyond it stand in the event itself.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from typing import Any

import msgspec

from traceconv.writers import _wire as wire

_MEMO_PER_KEY = 4096
_MEMO_BYTES = 32 << 20
_MAX_KEYS = 1 << 16
_MAX_DEPTH = 64
_INT64_DIGITS = 20
_INT64 = range(-(2**63), 2**63)

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


class Annotations:
    """Encodes the args of all events of one packet sequence.

    Attributes:
        interned: fields of InternedData that events encoded so far rely on and that are not written yet.
    """

    def __init__(self) -> None:
        self.interned: list[bytes] = []
        self._names: dict[str, bytes] = {}
        self._texts: dict[str, bytes] = {}
        self._memos: defaultdict[str, dict[str | int | bytes, bytes]] = defaultdict(dict)
        self._int_heads: dict[str, list[bytes]] = {}
        self._memo_bytes = 0

    def encode(self, args: bytes | memoryview) -> bytes:
        """The annotation fields of a TrackEvent."""
        try:
            members = _members(args)
        except _BROKEN:  # also numbers beyond a double: the values as they stand, one by one
            return self._encode_raw(bytes(args))
        memos, rare = self._memos, self._rare
        pieces = []
        for key, value in members.items():
            kind = type(value)
            found = value if kind is str or kind is int else _dump(value)
            pieces.append(memos[key].get(found) or rare(key, found))
        return b"".join(pieces)

    def _encode_raw(self, args: bytes) -> bytes:
        try:
            members = _raw_members(args)
        except _BROKEN:
            members = _raw_members(_repaired(args))
        return b"".join([self._rare(key, bytes(raw)) for key, raw in members.items()])

    def _rare(self, key: str, value: str | int | bytes) -> bytes:
        """A value that is not in the memo of its key: a text, an integer, or the JSON of anything else."""
        heads = self._int_heads.get(key)
        if heads is not None and type(value) is int and 0 <= value < _STEEP:
            # Ids that each event has for itself: the most frequent values that never repeat.
            number = wire.varint(value)
            return heads[len(number)] + number
        memo = self._memos[key]
        size = len(value) if isinstance(value, str | bytes) else _INT64_DIGITS
        keep = len(memo) < _MEMO_PER_KEY and self._memo_bytes + 2 * size <= _MEMO_BYTES
        piece = wire.blob(_ANNOTATION, self._name(key) + self._any(value, keep))
        if keep:
            memo[value] = piece
            self._memo_bytes += size + len(piece)
        elif len(self._int_heads) < _MAX_KEYS:
            self._int_heads[key] = self._heads_of_ints(key)
        return piece

    def _any(self, value: str | int | bytes, intern: bool) -> bytes:
        if isinstance(value, str):
            return self._text(value, intern)
        return self._value(value if isinstance(value, bytes) else b"%d" % value, 0, intern)

    def _heads_of_ints(self, key: str) -> list[bytes]:
        """What stands before the varint of an integer value of this key, by the length of the varint."""
        head = self._name(key) + _INT_TAG
        return [_ANNOTATION_TAG + wire.length(len(head) + size) + head for size in range(_LONGEST_VARINT + 1)]

    def _name(self, key: str) -> bytes:
        found = self._names.get(key)
        if found is not None:
            return found
        if len(self._names) >= _MAX_KEYS:
            return wire.text(_NAME, key)
        iid = len(self._names) + 1
        self.interned.append(wire.blob(_INTERNED_NAME, wire.integer(1, iid) + wire.text(2, key)))
        found = self._names[key] = wire.integer(_NAME_IID, iid)
        return found

    def _value(self, raw: bytes, depth: int, intern: bool) -> bytes:
        first = raw[:1]
        if first == b'"':
            return self._text(_decoded_text(raw), intern)
        if first in (b"{", b"["):
            return self._nested(raw, depth, intern)
        if first in (b"t", b"f"):
            return wire.integer(_BOOL, first == b"t")
        if first == b"n":
            return wire.text(_TEXT, "null")
        return _number(raw)

    def _nested(self, raw: bytes, depth: int, intern: bool) -> bytes:
        if depth >= _MAX_DEPTH or not raw[1:-1].strip():
            return wire.blob(_TEXT, raw if depth >= _MAX_DEPTH else raw[:1] + raw[-1:])
        try:
            if raw[:1] == b"[":
                items = [self._value(bytes(item), depth + 1, intern) for item in _raw_items(raw)]
                return b"".join([wire.blob(_ITEM, item) for item in items])
            members = _raw_members(raw).items()
        except _BROKEN:
            return wire.text(_TEXT, raw.decode("utf-8", "replace"))
        entries = [self._name(key) + self._value(bytes(value), depth + 1, intern) for key, value in members]
        return b"".join([wire.blob(_ENTRY, entry) for entry in entries])

    def _text(self, value: str, intern: bool) -> bytes:
        found = self._texts.get(value)
        if found is not None:
            return found
        if not intern:
            return wire.text(_TEXT, value)
        iid = len(self._texts) + 1
        self.interned.append(wire.blob(_INTERNED_TEXT, wire.integer(1, iid) + wire.text(2, value)))
        found = self._texts[value] = wire.integer(_TEXT_IID, iid)
        return found


def _number(raw: bytes) -> bytes:
    if raw.lstrip(b"-").isdigit():
        # Nothing longer is even turned into a number: Python limits the digits.
        fits = len(raw) <= _INT64_DIGITS and int(raw) in _INT64
        return wire.integer(_INT, int(raw)) if fits else wire.blob(_TEXT, raw)
    number = float(raw)
    return wire.double(_DOUBLE, number) if math.isfinite(number) else wire.blob(_TEXT, raw)


def _decoded_text(raw: bytes) -> str:
    try:
        return _text(raw)
    except _BROKEN:  # half of a surrogate pair as an escape, or bytes that are not UTF-8
        return str(json.loads(raw.decode("utf-8", "replace"), strict=False))


def _repaired(args: bytes) -> bytes:
    """A JSON object that says the same as one that strict parsers refuse, or that holds the text of it."""
    shown = args.decode("utf-8", "replace")
    try:
        found: Any = json.loads(shown, strict=False, parse_constant=str)
        if not isinstance(found, dict):
            found = {"args": shown}
        return wire.utf8(json.dumps(found, ensure_ascii=False))
    except _BROKEN:
        return wire.utf8(json.dumps({"args": shown}, ensure_ascii=False))

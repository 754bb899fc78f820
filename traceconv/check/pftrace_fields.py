"""Decode the packets of a Perfetto trace with the table in trace_fields.txt.

A message becomes a dict of its fields, by name if the check asks for a field of that name, else by number; a repeated
field is a list; a oneof has its name, with the key of the set field as value. Strings are bytes. Errors and unknown
fields are those of protobuf's decoder: a field of another wire type is unknown, and so is a number that is missing in
its enum.
"""

from __future__ import annotations

import copy
import importlib.resources
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from traceconv.families.common.wire_reader import BLOB, FIXED32, FIXED64, VARINT, BadWire, behind, unpacked, varint

#: A decoded message.
Fields = dict[str, Any]

_GROUP, _GROUP_END = 3, 4
_MAX_DEPTH = 100
_MAX_TAG_BYTES = 5
# The size and number of cached messages: most, such as values and ends of slices, are repeated.
_KEPT_BYTES, _KEPT = 64, 1 << 14
_MAX_INT32, _MAX_UINT32 = 2**31 - 1, 2**32 - 1
_WIDTHS = {FIXED64: 8, FIXED32: 4}
_WIRE_TYPES = {
    **dict.fromkeys(("fixed64", "sfixed64", "double"), FIXED64),
    **dict.fromkeys(("fixed32", "sfixed32", "float"), FIXED32),
    **dict.fromkeys(("int32", "int64", "uint32", "uint64", "sint32", "sint64", "bool"), VARINT),
    **dict.fromkeys(("string", "bytes"), BLOB),
}


def _int32(value: int) -> int:
    return (value & _MAX_UINT32 ^ 1 << 31) - (1 << 31)


# The conversion of large varints. Other values stay undecoded, since they are not used as numbers.
_LARGE: dict[str, Callable[[int], int]] = {"uint32": lambda value: value & _MAX_UINT32, "int32": _int32}


def _numbers(ranges: str) -> Iterator[int]:
    """Yield the numbers of "0..3,8"."""
    for part in ranges.split(","):
        start, _, end = part.partition("..")
        yield from range(int(start), int(end or start) + 1)


class _Field(NamedTuple):
    """The type of a field."""

    name: str
    repeated: bool
    oneof: str
    message: str
    values: frozenset[int] | None
    large: Callable[[int], int] | None
    packed: int | None


class Decoder:
    """Decodes messages; results are shared, and must not be changed.

    Attributes:
        unknown: whether a field was missing in the table; reset by the caller.
    """

    def __init__(self, table: str | None = None) -> None:
        """Decode with a table; None for that of trace_fields.txt."""
        self.unknown = False
        if table is None:
            table = importlib.resources.files("traceconv.check").joinpath("trace_fields.txt").read_text("utf-8")
        lines = (line.partition(" ") for line in table.splitlines())
        self._lines = {name: words for name, _, words in lines if name != "#"}
        self._shapes: dict[str, dict[int, _Field]] = {}
        self._kept: dict[tuple[str, bytes], Fields] = {}

    def decode(self, message: str, data: bytes, into: Fields | None = None, depth: int = _MAX_DEPTH) -> Fields:
        """Decode a message.

        Args:
            message: its name in the table, such as "TracePacket".
            data: its bytes.
            into: the dict that gets the fields, for a message in several parts.
            depth: the most levels of nested messages.

        Raises:
            BadWire: the data is invalid or nested too deeply.
        """
        if depth < 0:
            raise BadWire("messages nested too deeply")
        try:
            return self._decode(self._shapes.get(message) or self._shape(message), data, into or {}, depth)
        except IndexError:
            raise BadWire("a field longer than its message") from None

    def _decode(self, shape: dict[int, _Field], data: bytes, fields: Fields, depth: int) -> Fields:
        # The loop is that of `wire_reader.scan`. It is kept apart for speed, since it decodes by the schema in the same
        # pass; and it accepts groups, as Perfetto does.
        # A cached message was within the depth limit when it was decoded; only near the limit this may differ.
        kept = self._kept if depth > _KEPT_BYTES // 2 else {}
        at, end = 0, len(data)
        value: Any
        while at < end:
            tag = data[at]
            at += 1
            if tag >= 0x80:
                tag, at = _long_tag(data, at - 1)
            wire = tag & 7
            if wire in (VARINT, BLOB):
                value = data[at]
                at += 1
                if value >= 0x80:
                    value, at = varint(data, at - 1)
                if wire == BLOB:
                    begin = at
                    at += value
                    value = data[begin:at]
            elif wire in _WIDTHS:
                begin = at
                at += _WIDTHS[wire]
                value = int.from_bytes(data[begin:at], "little")
            else:
                at = _behind_group(data, at, tag, depth)
            if at > end or tag < 8:
                raise BadWire("a field longer than its message, or without a number")
            field = shape.get(tag)
            if field is None:
                self.unknown = True
                continue
            name, repeated, oneof, inner, values, large, packed = field
            if inner:
                if repeated or name not in fields:
                    value = kept.get((inner, value)) or self._inner(inner, value, depth - 1)
                else:
                    value = self.decode(inner, value, copy.deepcopy(fields[name]), depth - 1)
            elif packed is not None:
                fields.setdefault(name, []).extend(self._unpacked(value, field))
                continue
            elif large is not None and value > _MAX_INT32:
                value = large(value)
            if values is not None and value not in values:
                self.unknown = True
            elif repeated:
                fields.setdefault(name, []).append(value)
            else:
                if oneof:
                    if oneof in fields and fields[oneof] != name:
                        del fields[fields[oneof]]
                    fields[oneof] = name
                fields[name] = value
        return fields

    def _inner(self, message: str, data: bytes, depth: int) -> Fields:
        """Decode a message that is not cached, and cache it if it is short."""
        decoded = self.decode(message, data, None, depth)
        if len(data) <= _KEPT_BYTES and not self.unknown:
            if len(self._kept) == _KEPT:
                self._kept.clear()
            self._kept[message, data] = decoded
        return decoded

    def _unpacked(self, data: bytes, field: _Field) -> list[int]:
        if field.packed != VARINT:
            width = _WIDTHS[field.packed or FIXED64]
            if len(data) % width:
                raise BadWire("a number longer than its field")
            return [int.from_bytes(data[at : at + width], "little") for at in range(0, len(data), width)]
        numbers = unpacked(data)
        if field.large is not None:
            numbers = list(map(field.large, numbers))
        if field.values is not None and not field.values.issuperset(numbers):
            self.unknown = True
            numbers = [number for number in numbers if number in field.values]
        return numbers

    def _shape(self, message: str) -> dict[int, _Field]:
        """Return the fields of a message by tag (number * 8 + wire type), from its line of the table."""
        shape: dict[int, _Field] = {}
        number = 0
        for word in self._lines[message].split():
            head, _, rest = word.partition(":")
            name, _, stated = head.partition("=")
            number = int(stated) if stated else number + 1
            kind, _, oneof = rest.partition("/")
            repeated, kind = kind.endswith("*"), kind.removesuffix("*")
            place, wire, values = number << 3, _WIRE_TYPES.get(kind), None
            name = name or str(number)
            if kind.startswith("enum("):
                wire, values = VARINT, frozenset(_numbers(kind[5:-1]))
            if wire is None:
                shape[place | BLOB] = _Field(name, repeated, oneof, kind, None, None, None)
                continue
            field = _Field(name, repeated, oneof, "", values, _int32 if values else _LARGE.get(kind), None)
            shape[place | wire] = field
            if repeated and wire != BLOB:
                shape[place | BLOB] = field._replace(packed=wire)
        self._shapes[message] = shape
        return shape


def _long_tag(data: bytes, begin: int) -> tuple[int, int]:
    """Return the tag at a position, and its end."""
    tag, at = varint(data, begin)
    if at - begin > _MAX_TAG_BYTES or tag > _MAX_UINT32:
        raise BadWire("a tag beyond 32 bits")
    return tag, at


def _behind_group(data: bytes, at: int, tag: int, depth: int) -> int:
    """Return the end of a group that starts with a tag.

    Its content is skipped. Raises BadWire, or IndexError at the end of the data.
    """
    opened: list[int] = []
    while True:
        wire = tag & 7
        if wire == _GROUP and len(opened) < depth:
            opened.append(tag)
        elif wire == _GROUP_END and opened and opened[-1] == tag - 1:
            opened.pop()
        else:
            at = behind(data, at, wire)
        if tag < 8:
            raise BadWire("a field without a number")
        if not opened:
            return at
        tag, at = _long_tag(data, at)

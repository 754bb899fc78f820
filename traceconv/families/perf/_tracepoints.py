"""Parse the formats of tracepoints in the tracing data of a perf.data, and decode the raw data of samples.

The section begins with 17 08 44 "tracing", the version as text, the endianness and the size of a long, the size of a
page; then come descriptions of the ring buffer, of ftrace's own events, and of the events of each subsystem, each with
its length in front. The description of an event is the text that the kernel shows under tracing/events/*/*/format:

    name: sched_switch
    ID: 316
    format:
            field:char prev_comm[16];  offset:8;  size:16;  signed:0;
    print fmt: "prev_comm=%s prev_pid=%d ...", REC->prev_comm, ...

A field of type `__data_loc` holds the position (low half) and the length (high half) of its value in the raw data;
`__rel_loc` counts from the end of the field itself. Source: tools/perf/util/trace-event-read.c (what is read, and in
which order) and recordings by perf 6.1.
"""

from __future__ import annotations

import re
import struct

from msgspec import Struct

from traceconv.model.numbers import hex_of, whole

_MAGIC = b"\x17\x08\x44tracing"
_NAME = re.compile(r"^name:\s*(\S+)", re.MULTILINE)
_ID = re.compile(r"^ID:\s*([0-9]{1,9})\b", re.MULTILINE)
_FIELD = re.compile(
    r"^[ \t]*+field:(?P<type>[^;\n]++);\s*+offset:(?P<at>\d+);\s*+size:(?P<size>\d+);(?:\s*+signed:(?P<sign>\d);)?",
    re.M,
)
_DECLARED = re.compile(r"(?P<type>.*?)(?<!\w)(?P<name>\w++)(?P<array>\[[^\[\]]*\])?$", re.DOTALL)
# { 0x0001, "S" } of __print_flags
_FLAG = re.compile(r'\{\s*(0x[0-9a-fA-F]+|\d+),\s*"([^"]*)"\s*\}')
_CODES = {1: "b", 2: "h", 4: "i", 8: "q"}
_LOCATED = ("__data_loc", "__rel_loc")


class Field(Struct, frozen=True):
    """One field of a tracepoint: bytes `at` to `at + size` of the raw data."""

    name: str
    type: str
    at: int
    size: int
    signed: bool
    is_array: bool


class Tracepoint(Struct, frozen=True):
    """An event of the kernel.

    Attributes:
        fields: its fields, without those of all events.
        states: the names of the bits of a thread state, if it prints one.
    """

    system: str
    name: str
    fields: tuple[Field, ...]
    states: tuple[tuple[int, str], ...] = ()

    @property
    def full_name(self) -> str:
        """As users name it: "sched:sched_switch"."""
        return f"{self.system}:{self.name}"

    def values(self, raw: bytes, order: str) -> dict[str, int | str]:
        """Return the fields of a sample, without those that are absent or beyond its end."""
        values = {}
        for one in self.fields:
            value = _value(one, raw, order)
            if value is not None:
                values[one.name] = value
        return values

    def state(self, value: int) -> str:
        """Return the letters of a thread state: R, S, D, ..., or R+ for a preempted thread."""
        if not self.states:
            return str(value)
        letters = "|".join(letter for bit, letter in self.states if value & bit)
        preempted = value & 2 * max(bit for bit, _ in self.states)
        return (letters or "R") + ("+" if preempted else "")


def _value(member: Field, raw: bytes, order: str) -> int | str | None:
    chunk = raw[member.at : member.at + member.size]
    if len(chunk) < member.size or not chunk:
        return None
    if member.type.startswith(_LOCATED):
        where = int.from_bytes(chunk[:4], "little" if order == "<" else "big")
        start = (where & 0xFFFF) + (member.at + member.size if member.type.startswith("__rel_loc") else 0)
        return _shown(member, raw[start : start + (where >> 16)])
    if member.is_array or member.size not in _CODES:
        return _shown(member, chunk)
    code = _CODES[member.size]
    return int(struct.unpack(order + (code if member.signed else code.upper()), chunk)[0])


def _shown(member: Field, chunk: bytes) -> str:
    """Return a text, or other data in hexadecimal."""
    return chunk.partition(b"\0")[0].decode("utf-8", "replace") if "char" in member.type else chunk.hex()


class _Cursor:
    """Reads the section from front to back.

    Raises:
        ValueError: it ends too early.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self.order = "<"

    def take(self, size: int) -> bytes:
        chunk = self._data[self._at : self._at + size]
        if len(chunk) < size:
            raise ValueError("the tracing data ends too early")
        self._at += size
        return chunk

    def text(self) -> str:
        end = self._data.find(b"\0", self._at)
        if end < 0:
            raise ValueError("the tracing data ends inside a text")
        return self.take(end + 1 - self._at)[:-1].decode("utf-8", "replace")

    def number(self, code: str) -> int:
        layout = struct.Struct(self.order + code)
        return int(layout.unpack(self.take(layout.size))[0])

    def block(self) -> bytes:
        return self.take(self.number("Q"))


def read_tracepoints(data: bytes) -> dict[int, Tracepoint]:
    """Return the tracepoints of a section of tracing data, by the number in perf.data.

    Raises:
        ValueError: the section is invalid.
    """
    cursor = _Cursor(data)
    if cursor.take(len(_MAGIC)) != _MAGIC:
        raise ValueError("the tracing data does not begin with its mark")
    cursor.text()  # version
    cursor.order = ">" if cursor.take(1) == b"\x01" else "<"
    cursor.take(1)  # size of a long
    cursor.number("I")  # size of a page
    for _ in ("header_page", "header_event"):
        cursor.text()
        cursor.block()
    for _ in range(cursor.number("I")):  # ftrace's own events
        cursor.block()
    tracepoints = {}
    for _ in range(cursor.number("I")):
        system = cursor.text()
        for _ in range(cursor.number("I")):
            number, tracepoint = _tracepoint(system, cursor.block().decode("utf-8", "replace"))
            tracepoints[number] = tracepoint
    return tracepoints


def _tracepoint(system: str, text: str) -> tuple[int, Tracepoint]:
    name, number = _NAME.search(text), _ID.search(text)
    if name is None or number is None:
        raise ValueError("a tracepoint without name or number")
    _, _, printed = text.partition("print fmt:")
    states = tuple((_bits(bits), letter) for bits, letter in _FLAG.findall(printed)) if "prev_state" in printed else ()
    states = tuple(pair for pair in states if pair[0])
    return whole(number[1]), Tracepoint(system, name[1], tuple(_fields(text)), states)


def _bits(text: str) -> int:
    bits = hex_of(text) if text[:2] == "0x" else whole(text)
    if bits is None:
        raise ValueError("flags of more than 64 bits")
    return bits


def _fields(text: str) -> list[Field]:
    fields = []
    for match in _FIELD.finditer(text):
        declared = _DECLARED.match(match["type"].strip())
        if declared is None or declared["name"].startswith("common_"):
            continue
        type_name = declared["type"].strip()
        fields.append(
            Field(
                declared["name"],
                type_name,
                whole(match["at"]),
                whole(match["size"]),
                match["sign"] == "1",
                declared["array"] is not None or type_name.endswith("]"),
            )
        )
    return fields

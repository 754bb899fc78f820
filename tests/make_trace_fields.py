"""Writes traceconv/check/trace_fields.txt from the protobuf definitions of the installed package `perfetto`.

`python -m tests.make_trace_fields`; the first lines of the file say how it is read.
"""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TracePacket

import traceconv.check

TARGET = Path(traceconv.check.__file__).with_name("trace_fields.txt")
_HEAD = """\
# The fields of Perfetto's trace packets, of the package perfetto {version}, by `python -m tests.make_trace_fields`.
# Source: protos/perfetto/trace/perfetto_trace.proto in github.com/google/perfetto, Apache License 2.0.
# A line is a message with its fields: name=number:type. A star: the field is repeated. Behind a slash: the oneof that
# it shares with others. Only fields that the check asks for have a name. A number that is one more than the number
# before it is left out. The values of an enum are numbers and ranges.
"""
_TYPES = (
    *("", "double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string", "group", "message"),
    *("bytes", "uint32", "enum", "sfixed32", "sfixed64", "sint32", "sint64"),
)
_PREFIX = "perfetto.protos."
#: The words in quotes in the source of the check: more than the names of the fields that it asks for.
ASKED = frozenset(
    name for path in TARGET.parent.glob("*.py") for name in re.findall(r'"(\w+)"', path.read_text("utf-8"))
)


def trace_fields() -> str:
    """The text of the file, with the messages that a packet may hold."""
    lines: dict[str, str] = {}
    rest = [TracePacket.DESCRIPTOR]
    while rest:
        message = rest.pop()
        if message.full_name not in lines:
            lines[message.full_name] = " ".join([_name(message), *_fields(message)])
            rest += [field.message_type for field in message.fields if field.message_type]
    head = _HEAD.format(version=importlib.metadata.version("perfetto"))
    return head + "".join(f"{lines[name]}\n" for name in sorted(lines))


def _fields(message: Any) -> Iterator[str]:
    """Return the words for the fields of a message, in order of their numbers."""
    before = 0
    for field in sorted(message.fields, key=lambda field: field.number):
        kind = _TYPES[field.type] + "*" * field.is_repeated
        if field.enum_type:
            kind = f"enum({_ranges({value.number for value in field.enum_type.values})}){'*' * field.is_repeated}"
        elif field.message_type:
            kind = _name(field.message_type) + "*" * field.is_repeated
        oneof = field.containing_oneof
        shared = f"/{oneof.name}" if oneof and len(oneof.fields) > 1 else ""
        name = field.name if field.name in ASKED else ""
        number = "" if field.number == before + 1 else f"={field.number}"
        before = field.number
        yield f"{name}{number}:{kind}{shared}"


def _ranges(numbers: set[int]) -> str:
    """Return numbers as ranges: "0..3,8"."""
    starts = [number for number in sorted(numbers) if number - 1 not in numbers]
    ends = [number for number in sorted(numbers) if number + 1 not in numbers]
    return ",".join(f"{start}..{end}" if start < end else f"{start}" for start, end in zip(starts, ends, strict=True))


def _name(descriptor: Any) -> str:
    return str(descriptor.full_name).removeprefix(_PREFIX)


if __name__ == "__main__":
    TARGET.write_text(trace_fields(), encoding="utf-8")

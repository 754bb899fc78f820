"""Writes traceconv/check/trace_fields.txt from the protobuf definitions of the installed package `perfetto`.

`python -m tests.make_trace_fields`; the first lines of the file say how it is read.
"""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import Any

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TracePacket

import traceconv.check

TARGET = Path(traceconv.check.__file__).with_name("trace_fields.txt")
_HEAD = """\
# The fields of Perfetto's trace packets, of the package perfetto {version}, by `python -m tests.make_trace_fields`.
# Source: protos/perfetto/trace/perfetto_trace.proto in github.com/google/perfetto, Apache License 2.0.
# A line is a message with its fields: name=number:type. A star: the field is repeated. Behind a slash: the oneof that
# it shares with others.
"""
_TYPES = (
    *("", "double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string", "group", "message"),
    *("bytes", "uint32", "enum", "sfixed32", "sfixed64", "sint32", "sint64"),
)
_PREFIX = "perfetto.protos."


def trace_fields() -> str:
    """The text of the file, with the messages that a packet may hold."""
    lines: dict[str, str] = {}
    rest = [TracePacket.DESCRIPTOR]
    while rest:
        message = rest.pop()
        if message.full_name not in lines:
            lines[message.full_name] = " ".join([_name(message), *map(_field, message.fields)])
            rest += [field.message_type for field in message.fields if field.message_type]
    head = _HEAD.format(version=importlib.metadata.version("perfetto"))
    return head + "".join(f"{lines[name]}\n" for name in sorted(lines))


def _field(field: Any) -> str:
    kind = _TYPES[field.type]
    if field.enum_type:
        kind = f"enum({','.join(map(str, sorted({value.number for value in field.enum_type.values})))})"
    elif field.message_type:
        kind = _name(field.message_type)
    oneof = field.containing_oneof
    shared = f"/{oneof.name}" if oneof and len(oneof.fields) > 1 else ""
    return f"{field.name}={field.number}:{kind}{'*' * field.is_repeated}{shared}"


def _name(descriptor: Any) -> str:
    return str(descriptor.full_name).removeprefix(_PREFIX)


if __name__ == "__main__":
    TARGET.write_text(trace_fields(), encoding="utf-8")

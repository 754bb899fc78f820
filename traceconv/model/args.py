"""The args of an event as a JSON object, and more of them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import msgspec

from traceconv.io.spill import Parts
from traceconv.model.arg_bytes import Args
from traceconv.model.trace import Trace

#: A JSON object as bytes, or a dict; None for none.
AnyArgs = bytes | dict[str, Any] | None

#: The args that are in memory before the store gets them.
_CHUNK_BYTES = 1 << 20
_encode = msgspec.json.Encoder(enc_hook=str).encode


def as_bytes(args: AnyArgs) -> bytes:
    """Return args as the bytes of a JSON object; b"" for an empty dict and for None."""
    if not isinstance(args, dict):
        return args or b""
    encoded = _encode(args) if args else b""
    # JSON cannot express infinity and NaN: msgspec would write null. They are kept as text.
    return _encode(_with_text(args)) if b"null" in encoded else encoded


def _with_text(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_text(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_with_text(inner) for inner in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def join_args(first: AnyArgs, second: AnyArgs) -> bytes:
    """Return one JSON object with the members of both. A key of both stays twice: readers take the second value."""
    one, two = as_bytes(first).strip(), as_bytes(second).strip()
    if len(one) <= 2 or not one[1:-1].strip():
        return two
    if len(two) <= 2 or not two[1:-1].strip():
        return one
    return one[:-1] + b"," + two[1:]


def with_more_args(trace: Trace, rows: Iterable[int], more: Iterable[AnyArgs], kept: Parts | None = None) -> Trace:
    """Return the trace with more args of some slices.

    Args:
        trace: the trace.
        rows: the rows of the slices, each once.
        more: the new args of each.
        kept: the store for the args of these slices; None for memory.
    """
    slices, parts = trace.slices, list[bytearray]()
    args_at, args_len = slices.args_at.copy(), slices.args_len.copy()
    end, chunk, add = len(trace.args), bytearray(), parts.append if kept is None else kept.append
    for row, args in zip(rows, more, strict=True):
        new = join_args(trace.args.get(int(args_at[row]), int(args_len[row])), args)
        args_at[row], args_len[row] = end + len(chunk), len(new)
        chunk += new
        if len(chunk) >= _CHUNK_BYTES:
            add(chunk)
            end, chunk = end + len(chunk), bytearray()
    add(chunk)
    changed = replace(slices, args_at=args_at, args_len=args_len)
    added = parts if kept is None else kept.take()
    return trace.with_tables(slices=changed, args=Args([*trace.args.parts, *added]))

"""The args of an event as a JSON object."""

from __future__ import annotations

import math
from typing import Any

import msgspec

#: A JSON object as bytes, or a dict; None for none.
AnyArgs = bytes | dict[str, Any] | None

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

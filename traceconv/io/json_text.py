"""Render what commands say as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

import msgspec

from traceconv.io.shown import NOT_ON_PAGES


def as_json(document: object) -> str:
    """Return a document as JSON, with a line for each value; what must not be shown is an escape of JSON.

    So the text is complete: whoever prints or writes it changes nothing. Numbers that are not finite are null, and what
    JSON does not know is text.
    """
    try:
        text = msgspec.json.format(msgspec.json.encode(document), indent=1).decode()
    except (UnicodeEncodeError, OverflowError, TypeError):  # halves of surrogate pairs, and integers above 64 bits
        text = json.dumps(_plain(document), indent=1, ensure_ascii=False)
    return NOT_ON_PAGES.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"


def _plain(value: object) -> object:
    """Return a value as JSON can hold it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)

"""Fill in the fields of the templates of messages.

A template names its fields in braces, as `str.format` does. Behind a colon it says how to show a field:

    time    an exact time in ns: "1.5 ms"               short   three digits of it: "71.5 ms"
    long    hours or days, too: "1 h 22 min"            us      whole microseconds: "250 µs"
    move    a move in time: "1.5 ms later"              option  as options take it: "+1.5ms"
    bound   "±20 µs", "not known" for None              drift   parts per million: "+3.100 ppm"
    file    quoted for a shell                          files   several of them, with blanks between
    list    several: "a, b"                             and     several: "a and b"
    moves   several moves in time                       repr    in quotation marks, as Python writes it

    NOUN s    a count: "{n:slice s}" is "1 slice", "2 slices"
    " -> "    several, joined by this text: any text that starts or ends with a blank

Anything else is a format specification of Python. The value of a field may be a message, or "".
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from string import Formatter
from typing import Any, Final

from traceconv.model.numbers import (
    earlier_or_later,
    format_bound,
    format_drift,
    format_long,
    format_option,
    format_short,
    format_uncertainty,
)
from traceconv.model.numbers import format_time as exact_time

_SHOWN: Final[Mapping[str, Callable[[Any], str]]] = {
    "time": exact_time,
    "short": format_short,
    "long": format_long,
    "us": lambda ns: f"{ns / 1e3:.0f} µs",
    "move": earlier_or_later,
    "option": format_option,
    "within": format_uncertainty,
    "bound": format_bound,
    "drift": format_drift,
    "file": shlex.quote,
    "files": lambda names: " ".join(map(shlex.quote, names)),
    "list": lambda several: ", ".join(map(str, several)),
    "and": lambda several: " and ".join(map(str, several)),
    "moves": lambda several: ", ".join(map(earlier_or_later, several)),
    "repr": repr,
}


class _MessageFormatter(Formatter):
    """Formats fields as the head of this module says."""

    def format_field(self, value: Any, format_spec: str) -> str:
        """Return one field as text."""
        if format_spec in _SHOWN:
            return _SHOWN[format_spec](value)
        if format_spec != format_spec.strip():
            return format_spec.join(map(str, value))
        noun, counted, plural = format_spec.partition(" ")
        if counted:
            return f"{value} {noun}{'' if value == 1 else plural}"
        return format(value, format_spec) if format_spec else str(value)


def rendered(template: str, fields: Mapping[str, Any]) -> str:
    """Return a template as text, with its fields filled in."""
    return _MessageFormatter().vformat(template, (), fields)

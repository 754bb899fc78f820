"""Texts of inputs, such as names of files, where people see them: in a terminal or on a page.

Names may hold anything: what would break a line, steer a terminal, turn the order of letters round, or is not text at
all stands there as an escape, such as \\x1b.
"""

from __future__ import annotations

import re

_NOT_SHOWN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
#: The end of the noun that is counted, by what can follow it.
_PLURAL = re.compile(r"(?:ies|(?<=cess)es|(?<=[a-z])s)(?=$|,| (?:kept|of|outside|unpacked|without)\b)")
_SINGULAR = {"ies": "y", "es": "", "s": ""}
_NOT_ON_PAGES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def one_line(text: str) -> str:
    """Return the text as one line."""
    return _NOT_SHOWN.sub(_escape, text)


def quantity(count: int, plural: str) -> str:
    """Return how many of something there are: "2 log entries", "1 log entry", "1 line kept as metadata"."""
    if count != 1 or " and " in plural:
        return f"{count} {plural}"
    return f"1 {_PLURAL.sub(lambda found: _SINGULAR[found[0]], plural, count=1)}"


def lines(text: str) -> str:
    """Return the same for a text that has lines and tabs of its own, such as a page."""
    return _NOT_ON_PAGES.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape", "surrogatepass").decode("ascii")

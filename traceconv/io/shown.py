"""Texts of inputs, such as names of files, where people see them: in a terminal or on a page.

Names may hold anything: what would break a line, steer a terminal, turn the order of letters round, or is not text at
all stands there as an escape, such as \\x1b.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

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


#: Texts in a table are not made shorter than that to fit a terminal.
_LEAST_TEXT = 16


def shortened(text: str, width: int) -> str:
    """Return a text of at most `width` letters, with an ellipsis in its middle if it has more."""
    if len(text) <= width:
        return text
    first = width // 2
    return f"{text[:first]}…{text[len(text) - (width - 1 - first) :]}"


def widths_within(rows: Sequence[Sequence[str]], is_text: Sequence[bool], width: int) -> list[int] | None:
    """Return how wide the columns of a table may be so that a line fits; None if shorter texts are not enough.

    Args:
        rows: the cells, titles included.
        is_text: which columns may be shortened; the widest ones are first.
        width: of a line, without the gaps between columns.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    while (over := sum(widths) - width) > 0:
        texts = sorted({one for one, text in zip(widths, is_text, strict=True) if text and one > _LEAST_TEXT})
        if not texts:
            return None
        widest = [at for at, text in enumerate(is_text) if text and widths[at] == texts[-1]]
        lower = max([_LEAST_TEXT, texts[-1] - -(-over // len(widest)), *texts[-2:-1]])
        for at in widest:
            widths[at] = lower
    return widths

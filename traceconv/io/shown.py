"""Make texts of inputs, such as file names, safe to show in a terminal or on a page.

Control characters, line breaks, marks that change the direction of writing, and surrogates become escapes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

_NOT_SHOWN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
#: The plural ending of the counted noun, recognised by the words behind it.
_PLURAL = re.compile(r"(?:ies|(?<=cess)es|(?<=[a-z])s)(?=$|,| (?:kept|of|outside|unpacked|without)\b)")
_SINGULAR = {"ies": "y", "es": "", "s": ""}
_NOT_ON_PAGES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def one_line(text: str) -> str:
    """Return a text as one line, escaped."""
    return _NOT_SHOWN.sub(_escape, text)


def quantity(count: int, plural: str) -> str:
    """Return a count with its noun: "2 log entries", "1 log entry", "1 line kept as metadata"."""
    if count != 1 or " and " in plural:
        return f"{count} {plural}"
    return f"1 {_PLURAL.sub(lambda found: _SINGULAR[found[0]], plural, count=1)}"


def lines(text: str) -> str:
    """Return a text of several lines, escaped except for line breaks and tabs."""
    return _NOT_ON_PAGES.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape", "surrogatepass").decode("ascii")


#: The least width of a text column that is shortened to fit a terminal.
_LEAST_TEXT = 16


def shortened(text: str, width: int) -> str:
    """Return a text of at most `width` characters: a longer one gets an ellipsis in its middle."""
    if len(text) <= width:
        return text
    first = width // 2
    return f"{text[:first]}…{text[len(text) - (width - 1 - first) :]}"


def told_apart(texts: Sequence[str], shown: Sequence[str]) -> list[str]:
    """Return texts as they were shortened; those that became equal show their start and where they differ.

    Args:
        texts: the whole texts, as the names of kernels with a long common start.
        shown: the same texts, shortened.
    """
    by_shown: dict[str, set[str]] = {}
    for text, cut in zip(texts, shown, strict=True):
        by_shown.setdefault(cut, set()).add(text)
    found: dict[str, str] = {}
    for cut, several in by_shown.items():
        ordered = sorted(several) if len(several) > 1 else []
        common = [0, *(_common(*pair) for pair in pairwise(ordered)), 0]
        for at, text in enumerate(ordered):
            differs = max(common[at : at + 2])
            word = re.search(r"\w*\Z", text[:differs])
            start = word.start() if word and differs - word.start() < len(cut) // 3 else differs
            room = len(cut) - 1
            first = min(start, room // 3)
            rest = text[start : start + room - first]
            found[text] = f"{text[:first]}…{rest}" if first < start else f"{text[:first]}{rest}…"
    return [found.get(text, cut) for text, cut in zip(texts, shown, strict=True)]


def _common(one: str, other: str) -> int:
    """Return the number of characters that two texts start with."""
    return next((at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), len(one))


def widths_within(rows: Sequence[Sequence[str]], is_text: Sequence[bool], width: int) -> list[int] | None:
    """Return the widths of the columns so that a line fits; None if shortening texts is not enough.

    Args:
        rows: the cells, titles included.
        is_text: which columns may be shortened; the widest ones are shortened first.
        width: the width of a line, without the gaps between columns.
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

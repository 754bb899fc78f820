"""Make texts of inputs, such as file names, safe to show in a terminal or on a page.

Control characters, line breaks, marks that change the direction of writing, and surrogates become escapes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import count as counting
from itertools import pairwise
from shlex import quote

#: The most runs of numbers that are listed.
_MOST_RUNS = 8
_NOT_SHOWN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
#: What must not be shown in a text of several lines.
NOT_ON_PAGES = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def one_line(text: str) -> str:
    """Return a text as one line, escaped."""
    return _NOT_SHOWN.sub(_escape, text)


class Counted(str):
    """The words for what is counted: several of it, and as `single` one of it."""

    __slots__ = ("single",)
    single: str

    def __new__(cls, single: str, several: str) -> Counted:
        """Return the words for several."""
        words = super().__new__(cls, several)
        words.single = single
        return words

    def __reduce__(self) -> tuple[type[Counted], tuple[str, str]]:
        """Return how it is made again, for pickle."""
        return Counted, (self.single, str(self))


def quantity(count: int, what: Counted) -> str:
    """Return a count with its words: "2 log entries", "1 log entry", "1 end joined to its start"."""
    return f"{count} {what.single if count == 1 else what}"


def listed(several: Iterable[object], between: str = ", ") -> str:
    """Return several things, such as "a, b"."""
    return between.join(map(str, several))


def counted(count: int, noun: str, ending: str = "s") -> str:
    """Return a count with its noun, whose plural has the ending: "1 slice", "2 slices"."""
    return f"{count} {noun}{'' if count == 1 else ending}"


def quoted(names: Iterable[str]) -> str:
    """Return names as arguments for a shell."""
    return " ".join(map(quote, names))


def lines(text: str) -> str:
    """Return a text of several lines, escaped except for line breaks and tabs."""
    return NOT_ON_PAGES.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape", "surrogatepass").decode("ascii")


#: The least width of a text column that is shortened to fit a terminal.
_LEAST_TEXT = 16
#: The most places at which a shortened text shows how it differs from others.
_MOST_PLACES = 3


def shortened(text: str, width: int) -> str:
    """Return a text of at most `width` characters: a longer one gets an ellipsis in its middle."""
    if len(text) <= width:
        return text
    first = width // 2
    return f"{text[:first]}…{text[len(text) - (width - 1 - first) :]}"


def shortened_column(texts: Sequence[str], width: int) -> list[str]:
    """Return texts of at most `width` characters, which differ where the texts do.

    If the shown ends of all longer texts would be equal, they are left out, and more of the rest is shown.
    """
    long = sorted({text[::-1] for text in texts if len(text) > width})
    same = _common(long[0], long[-1]) if len(long) > 1 else 0
    shown = [shortened(text, width) for text in texts]
    if same >= (width - 1) // 2:
        rest = [shortened(text[: max(len(text) - same, width - 1)], width - 1) for text in texts]
        shown = [text if text == cut else f"{kept}…" for text, cut, kept in zip(texts, shown, rest, strict=True)]
    return told_apart(texts, shown)


def told_apart(texts: Sequence[str], shown: Sequence[str]) -> list[str]:
    """Return texts as they were shortened; those that became equal show their start and where they differ.

    Texts that differ at more places than there is room for end in a number. All that differ stay different, unless
    there is no room even for the number.

    Args:
        texts: the whole texts, as the names of kernels with a long common start.
        shown: the same texts, shortened.
    """
    shown_as = dict(zip(texts, shown, strict=True))
    width = {text: len(cut) for text, cut in shown_as.items()}
    places = {text: set[int]() for equal in _equal(shown_as) for text in equal if shown_as[text] != text}
    for _ in range(_MOST_PLACES):
        for ordered in _equal(shown_as):
            common = [0, *(_common(*pair) for pair in pairwise(ordered)), 0]
            for at, text in enumerate(ordered):
                if text in places:
                    places[text].add(max(common[at : at + 2]))
                    shown_as[text] = _excerpt(text, sorted(places[text]), width[text])
    taken = set(shown_as.values())
    for ordered in _equal(shown_as):
        numbers = counting(2)
        for text in sorted(ordered, key=places.__contains__)[1:]:
            for suffix in map("…{}".format, numbers):
                numbered = f"{shown_as[text][: width[text] - len(suffix)]}{suffix}"
                if len(suffix) > width[text]:
                    break
                if numbered not in taken:
                    shown_as[text] = numbered
                    taken.add(numbered)
                    break
    return [shown_as[text] for text in texts]


def _equal(shown_as: Mapping[str, str]) -> list[list[str]]:
    """Return the texts that are shown as equal, in groups of at least two, in order."""
    by_shown: dict[str, list[str]] = {}
    for text, cut in shown_as.items():
        by_shown.setdefault(cut, []).append(text)
    return [sorted(texts) for texts in by_shown.values() if len(texts) > 1]


def _excerpt(text: str, places: Sequence[int], width: int) -> str:
    """Return the start of a text and its parts at some places, in `width` characters.

    A part begins with the word at its place, if its start is near. It is twice as long as the start of the text.
    """
    part = width // (2 * len(places) + 1)
    starts = []
    for place in places:
        word = re.search(r"(?<!\w)\w*+\Z", text[:place])
        starts.append(word.start() if word and place - word.start() < part else place)
    room = width - len(places)
    part = room // (2 * len(places) + 1)
    end = min(starts[0], part)
    shown, room = text[:end], room - end
    for left, start in zip(reversed(range(len(starts))), starts, strict=True):
        shown += "…" if start > end else ""
        start = max(start, end)
        end = start + (2 * part if left else room)
        shown += text[start:end]
        room -= end - start
    return f"{shown[: width - 1]}…" if end < len(text) else shown


def _common(text: str, other: str) -> int:
    """Return the number of characters that two texts start with."""
    return next((at for at, pair in enumerate(zip(text, other, strict=False)) if pair[0] != pair[1]), len(text))


def widths_within(
    rows: Sequence[Sequence[str]], is_text: Sequence[bool], width: int, least: Sequence[int] = ()
) -> list[int] | None:
    """Return the widths of the columns so that a line fits; None if shortening texts is not enough.

    Args:
        rows: the cells, titles included.
        is_text: which columns may be shortened; the widest ones are shortened first.
        width: the width of a line, without the gaps between columns.
        least: how wide each column stays at least, if more than _LEAST_TEXT.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    kept = [max(_LEAST_TEXT, room) for room in least or [0] * len(widths)]
    while (over := sum(widths) - width) > 0:
        texts = sorted({size for size, text, room in zip(widths, is_text, kept, strict=True) if text and size > room})
        if not texts:
            return None
        widest = [at for at, text in enumerate(is_text) if text and widths[at] == texts[-1] > kept[at]]
        lower = max([_LEAST_TEXT, texts[-1] - -(-over // len(widest)), *texts[-2:-1]])
        for at in widest:
            widths[at] = max(lower, kept[at])
    return widths


def shown_ranks(ranks: Iterable[int]) -> str:
    """Return ranks for people, with runs as ranges: "0-3, 8"; of many ranks the first ones and their number."""
    runs: list[list[int]] = []
    for rank in sorted(ranks):
        if runs and rank == runs[-1][-1] + 1:
            runs[-1][1:] = [rank]
        else:
            runs.append([rank])
    shown = ["-".join(map(str, run)) for run in runs[:_MOST_RUNS]]
    return ", ".join(shown) + (f", ... ({len(set(ranks))} ranks)" if len(runs) > _MOST_RUNS else "")

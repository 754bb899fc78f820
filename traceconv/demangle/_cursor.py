"""A cursor over a mangled name, and the representation of types before they become text."""

from __future__ import annotations

import re
from typing import NamedTuple


class Unknown(Exception):
    """The name has an unsupported construct."""


class Type(NamedTuple):
    """The text of a type before and after its declarator; `wraps` if a declarator needs parentheses."""

    before: str
    after: str = ""
    wraps: bool = False

    def __str__(self) -> str:
        return self.before + self.after

    def declared(self, mark: str) -> Type:
        """Return a pointer or reference to it."""
        if self.wraps:
            gap = "" if self.before.endswith((" ", "(", "*", "&")) else " "
            return Type(f"{self.before}{gap}({mark}", f"){self.after}")
        return Type(self.before + mark, self.after)


#: A type, or a parameter pack of several types or none.
Arg = Type | list["Arg"]


def flat(arg: Arg) -> list[str]:
    """Return the texts of all types in nested packs."""
    if isinstance(arg, Type):
        return [str(arg)] if str(arg) else []
    return [text for one in arg for text in flat(one)]


class Cursor:
    """A position in a name; methods raise `Unknown` if a required text is missing."""

    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.at = at

    def rest(self) -> str:
        """Return the rest of the name."""
        return self.text[self.at :]

    def peek(self, size: int = 1) -> str:
        """Return the next characters, fewer at the end."""
        return self.text[self.at : self.at + size]

    def take(self, *words: str) -> str:
        """Return the first of the words that comes next, "" for none."""
        for word in words:
            if self.text.startswith(word, self.at):
                self.at += len(word)
                return word
        return ""

    def need(self, word: str) -> None:
        """Skip a required word."""
        if not self.take(word):
            raise Unknown

    def match(self, pattern: str) -> str:
        """Return the match of a required pattern."""
        match_here = re.compile(pattern).match(self.text, self.at)
        if match_here is None:
            raise Unknown
        self.at = match_here.end()
        return match_here[0]

    def index(self) -> int:
        """Return a number: _ is 0, 0_ is 1, and so on."""
        digits = self.match(r"\d{0,4}_")[:-1]
        return int(digits) + 1 if digits else 0

    def source_name(self) -> str:
        """Return an identifier that follows its length."""
        size = int(self.match(r"\d{1,5}"))
        name = self.peek(size)
        if len(name) < size or not size:
            raise Unknown
        self.at += size
        return "(anonymous namespace)" if name.startswith("_GLOBAL__N_") else name

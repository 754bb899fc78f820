"""Declared problems, counted, and the balance of what went in and what came out.

A problem is declared once, beside the code that raises it, with a severity and a sentence of help. Each occurrence
is counted; the first few of the file keep their place, in whatever order they were found, so that a file with a million
bad lines costs no more than one with three, and readers that look at a file in another order tell the same.
"""

from __future__ import annotations

import enum
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

_KEPT_PLACES = 3


class Severity(enum.IntEnum):
    """How bad a diagnostic is; the order is the order of badness."""

    INFO = 0
    NOTICE = 1
    DATA_LOSS = 2
    ERROR = 3

    @property
    def label(self) -> str:
        """The word for messages, such as "data loss"."""
        return self.name.lower().replace("_", " ")


class Code(msgspec.Struct, frozen=True):
    """A declared kind of problem.

    Attributes:
        name: "<format>.<what>", unique and stable.
        severity: DATA_LOSS means that an event of the input does not reach the output.
        help: one sentence for the user: what it means and what was done about it.
    """

    name: str
    severity: Severity
    help: str


_declared: dict[str, Code] = {}


def declare(name: str, severity: Severity, help: str) -> Code:
    """Declare a code. Raises ValueError if the name is taken."""
    if name in _declared:
        raise ValueError(f"diagnostic {name} is declared twice")
    code = _declared[name] = Code(name, severity, help)
    return code


def declared_codes() -> dict[str, Code]:
    """All codes declared by the modules that are imported so far, by name."""
    return dict(_declared)


class Diagnostic(msgspec.Struct):
    """How often one code occurred in one input, and where first.

    Attributes:
        places: in the order of the file; those without a number come behind the others, as they were found.
        numbers: of the places, by which they are in order.
    """

    code: Code
    count: int = 0
    places: list[str] = msgspec.field(default_factory=list)
    numbers: list[float] = msgspec.field(default_factory=list)

    def keep(self, place: str, number: float) -> None:
        """Keep the place if it is among the first."""
        rank = bisect_right(self.numbers, number)
        if rank < _KEPT_PLACES:
            self.places.insert(rank, place)
            self.numbers.insert(rank, number)
            del self.places[_KEPT_PLACES:], self.numbers[_KEPT_PLACES:]

    def describe(self) -> str:
        """One line: the count, the help, the first places."""
        text = f"{self.count} x {self.code.name} ({self.code.severity.label}): {self.code.help}"
        return text + (f" [{'; '.join(self.places)}]" if self.places else "")


class Diagnostics:
    """The diagnostics of one input, in the order of first occurrence."""

    def __init__(self) -> None:
        self._by_name: dict[str, Diagnostic] = {}

    def add(self, code: Code, place: str = "", count: int = 1, number: float = math.inf) -> None:
        """Count a problem; keep the place if it is among the first.

        Args:
            code: what happened.
            place: where, in words; may be empty.
            count: how many occurrences this is.
            number: of the event or line, if it has one: the lower, the earlier in the file.
        """
        entry = self._by_name.get(code.name)
        if entry is None:
            entry = self._by_name[code.name] = Diagnostic(code)
        entry.count += count
        if place:
            entry.keep(place, number)

    def extend(self, other: Diagnostics) -> None:
        """Add all of another collection about the same input."""
        for entry in other:
            self.add(entry.code, count=entry.count)
            for place, number in zip(entry.places, entry.numbers, strict=True):
                self._by_name[entry.code.name].keep(place, number)

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def count(self, code: Code) -> int:
        """How often the code occurred."""
        entry = self._by_name.get(code.name)
        return entry.count if entry else 0

    @property
    def lost(self) -> int:
        """Number of occurrences that mean lost data."""
        return sum(entry.count for entry in self if entry.code.severity >= Severity.DATA_LOSS)


@dataclass(slots=True)
class Balance:
    """Where each event (or line, or row) of an input went.

    Attributes:
        unit: what is counted: "events", "lines", "rows".
        read: how many the input holds.
        written: how many became rows of the trace.
        merged: how many became part of something else, by what ("end joined to its begin").
        skipped: how many were left out, by reason.
    """

    unit: str = "events"
    read: int = 0
    written: int = 0
    merged: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)

    @property
    def even(self) -> bool:
        """Whether the sums agree."""
        return self.read == self.written + self.merged.total() + self.skipped.total()

    def describe(self) -> str:
        """One line, such as "10 events = 8 written + 2 ends joined to their begin"."""
        parts = [f"{self.written} written"]
        parts += [f"{count} {what}" for what, count in (self.merged + self.skipped).items()]
        return f"{self.read} {self.unit} = {' + '.join(parts)}"

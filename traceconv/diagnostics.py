"""Declared problems, counted, and the balance of what went in and what came out.

A problem is declared once, beside the code that raises it, with a severity and a sentence of help. Each occurrence
is counted; the first few keep their place, so that a file with a million bad lines costs no more than one with three.
"""

from __future__ import annotations

import enum
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
    """How often one code occurred in one input, and where first."""

    code: Code
    count: int = 0
    places: list[str] = msgspec.field(default_factory=list)

    def describe(self) -> str:
        """One line: the count, the help, the first places."""
        text = f"{self.count} x {self.code.name} ({self.code.severity.label}): {self.code.help}"
        return text + (f" [{'; '.join(self.places)}]" if self.places else "")


class Diagnostics:
    """The diagnostics of one input, in the order of first occurrence."""

    def __init__(self) -> None:
        self._by_name: dict[str, Diagnostic] = {}

    def add(self, code: Code, place: str = "", count: int = 1) -> None:
        """Count a problem; keep the place if it is among the first."""
        entry = self._by_name.get(code.name)
        if entry is None:
            entry = self._by_name[code.name] = Diagnostic(code)
        entry.count += count
        if place and len(entry.places) < _KEPT_PLACES:
            entry.places.append(place)

    def extend(self, other: Diagnostics) -> None:
        """Add all of another collection."""
        for entry in other:
            self.add(entry.code, count=entry.count)
            mine = self._by_name[entry.code.name]
            mine.places.extend(entry.places[: _KEPT_PLACES - len(mine.places)])

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

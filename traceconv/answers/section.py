"""A section of a report: one table with typed columns, and what has to be said beside it."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

Cell = str | int | float | None


class Unit(enum.Enum):
    """What the numbers of a column count."""

    TEXT = "text"
    COUNT = "count"
    NS = "ns"
    SHARE = "share"


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name in data, which ends in `_ns` for times, and its title for people."""

    name: str
    title: str
    unit: Unit


@dataclass(slots=True)
class Section:
    """One table.

    Attributes:
        name: the key of the section in data and the value of `--section`.
        columns: in order; they stay, new ones are added behind them.
        rows: a cell for each column; None is not known.
        notes: sentences about what the table counts and what it leaves out.
    """

    name: str
    columns: tuple[Column, ...]
    rows: list[tuple[Cell, ...]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def records(self) -> list[dict[str, Any]]:
        """Return the rows as objects, for programs."""
        names = [column.name for column in self.columns]
        return [dict(zip(names, row, strict=True)) for row in self.rows]

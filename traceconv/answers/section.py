"""A section of a report: a table with typed columns, and notes."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct, structs

from traceconv.io.shown import one_line, quantity
from traceconv.model.columns import I64
from traceconv.model.diagnostics import MORE_ROWS, ROWS
from traceconv.model.numbers import decode_json, format_short, format_time, format_within
from traceconv.model.trace import Tabular, html_table, needed

if TYPE_CHECKING:
    import pyarrow


Cell = str | int | float | None
#: The cells of a row by the names of its columns.
Row = dict[str, Any]
#: The numbers in a sentence by their names.
Numbers = dict[str, Any]
_BYTES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
NO_NAME = "(no name)"
#: The columns in which people see that events have none of that.
_KEYS = ("name", "category", "track", "thread", "process", "rank", "input", "shape", "module", "range")
_WITHOUT = {key: f"(no {key})" for key in _KEYS} | {"class": "(no module)"}
#: If no bound is known, times with a bound are shown to this many ns.
_DIGITS_NS = 1000


class Unit(enum.Enum):
    """The unit of the numbers of a column."""

    TEXT = "text"
    COUNT = "count"
    NS = "ns"
    SHARE = "share"
    RATE = "rate"
    BYTES = "bytes"
    OBJECT = "object"


class Column(Struct, frozen=True):
    """One column.

    Attributes:
        name: the name in data; it ends in `_ns` for times, but events keep their names.
        title: the title for people.
        unit: the unit of its numbers.
        detail: whether text and Markdown leave it out, so that the table fits a terminal. A table with such columns is
            also shown without empty ones.
        spare: whether it is left out, with a note, if the terminal is too narrow.
        within: the name of the column with the uncertainty of its numbers, which count samples: people see "n ± k" in
            one cell, and nothing where `is_certain` is false.
        beside: the name of the column with the samples that its cells rest on: people see them where these are certain.
        whole: whether its texts are printed in full if no width is set.
        bound: the name of the column with the bound of its times: people see as many digits as that leaves certain.
        below: whether its texts get lines of their own if the terminal is too narrow.
    """

    name: str
    title: str
    unit: Unit
    detail: bool = False
    spare: bool = False
    within: str = ""
    beside: str = ""
    whole: bool = False
    bound: str = ""
    below: bool = False


def without(column: str) -> str:
    """Return what people see in a column where events have none of that; data has ""."""
    arg = column.removeprefix("arg:")
    return _WITHOUT.get(column, f"(no {one_line(arg)})" if arg != column else "")


def shown_cell(cell: Cell, unit: Unit, longest: int = 0) -> str:
    """Return a cell for people, a text cut to `longest` characters (0 for no limit); "" for None."""
    if cell is None:
        return ""
    if unit is Unit.NS:
        return format_short(float(cell))
    if unit is Unit.SHARE:
        return f"{100 * float(cell):z.1f} %"
    if unit is Unit.BYTES:
        return _bytes(int(cell))
    if unit is Unit.RATE:
        return f"{float(cell):.4g}"
    shown = one_line(str(cell))
    return shown if not longest or len(shown) <= longest else f"{shown[: longest - 3]}..."


def _bytes(number: int) -> str:
    """Return a number of bytes with a binary unit and up to four digits."""
    power = min(max(abs(number).bit_length() - 1, 0) // 10, len(_BYTES) - 1)
    shown = f"{number / (1 << 10 * power):.4g}"
    if shown in ("1024", "-1024") and power + 1 < len(_BYTES):
        shown, power = shown[:-3], power + 1
    return f"{shown} {_BYTES[power]}"


def is_certain(samples: int, around: int) -> bool:
    """Return whether a number of samples is not below its uncertainty: that of its edges, plus 2 √samples.

    The latter is the range of 95 % for counts of independent events.
    """
    return samples >= around and (samples - around) ** 2 >= 4 * samples


def place_of(sort: str, columns: Sequence[Column]) -> int | None:
    """Return the number of the column with a name or title, None if there is none."""
    return next((at for at, column in enumerate(columns) if sort in (column.name, column.title)), None)


def rounded(whole: int, count: int) -> int:
    """Return a mean in integer ns, rounded half to even."""
    quotient, rest = divmod(whole, count)
    return quotient + (2 * rest > count or (2 * rest == count and quotient % 2 == 1))


class Unnamed(enum.StrEnum):
    """The names of rows about no name of a recording, in which slices may have the same names."""

    TOTAL = "(total)"
    NO_OPERATOR = "(no operator)"
    #: Not longer than the narrowest column of names, so that it is never cut.
    NOTHING_RAN = "(none recorded)"
    NOT_BEGUN = "(not recorded yet)"
    NOT_RECORDED = "(nothing recorded)"
    OTHERS = "(other names)"
    NOT_CHOSEN = "(others)"
    IN_PARALLEL = "(in parallel)"
    IDLE = "(idle)"


class Window(Struct, frozen=True):
    """The time [start, end) that tables are about.

    Attributes:
        text: the text of the user.
        start, end: ns on the clock of the trace.
        origin: the first time of the trace, ns on its clock.
    """

    text: str
    start: int
    end: int
    origin: int

    def __str__(self) -> str:
        """Return the window for people, from the start of the trace."""
        first, last = (format_time(instant - self.origin) for instant in (self.start, self.end))
        return f"{one_line(self.text)}: from {first} to {last} after the start"

    def holds(self, instants: I64) -> npt.NDArray[np.bool_]:
        """Return a mask of the times (ns) in the window."""
        inside: npt.NDArray[np.bool_] = (instants >= self.start) & (instants < self.end)
        return inside


class Activity(Struct, frozen=True):
    """The busy share of something over time, for a plot.

    Attributes:
        name: its name.
        start_ns: when the plotted time starts, from the first event of the trace, ns.
        window_ns: the duration of the plotted time, ns.
        shares: the busy share of each of its equal parts, from 0 to 1.
    """

    name: str
    start_ns: int
    window_ns: int
    shares: list[float]


@dataclass(slots=True)
class Section(Tabular):
    """One table.

    Attributes:
        name: the key of the table in data, and the value of `--section`; `ranks` has several tables.
        columns: the columns, in order; later versions only append columns.
        rows: the rows, with a cell for each column; None if not known.
        notes: sentences about what the table counts and leaves out.
        legend: sentences that define its columns, for those who ask.
        over_time: the plots that pages show beside the table.
        window: the time that the table is about, if the user stated one.
        sentences: what people read in place of the table; empty for most.
    """

    name: str
    columns: tuple[Column, ...]
    rows: list[tuple[Cell, ...]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    legend: list[str] = field(default_factory=list)
    over_time: list[Activity] = field(default_factory=list)
    window: Window | None = None
    sentences: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        """Return the name and the number of rows; `print(section.to_pandas())` prints the rows."""
        return f"<Section {self.name}: {quantity(len(self.rows), ROWS)}>"

    @property
    def heading(self) -> str:
        """Return the name, and the window that the table is about."""
        return f"{self.name} (between {self.window})" if self.window else self.name

    @property
    def has_details(self) -> bool:
        """Whether text leaves out columns, and empty ones; see `Column.detail`."""
        return any(column.detail for column in self.columns)

    def place(self, name: str) -> int:
        """Return the position of a column."""
        return next(at for at, column in enumerate(self.columns) if column.name == name)

    def shown(self, row: Sequence[Cell], at: int, longest: int = 0) -> str:
        """Return a cell of a row for people, a text cut to `longest` characters (0 for no limit); "" for None."""
        column, cell = self.columns[at], row[at]
        if cell == "":
            return "" if isinstance(row[0], Unnamed) else without(column.name)
        if (column.within or column.beside) and not self._is_certain(row, column):
            return ""
        if column.within and cell is not None and (around := row[self.place(column.within)]) is not None:
            return f"{shown_cell(cell, column.unit)} ± {around}"
        if cell is None or not column.bound:
            return shown_cell(cell, column.unit, 0 if column.whole else longest)
        bound = row[self.place(column.bound)]
        return format_within(int(cell), _DIGITS_NS if bound is None else int(bound))

    def _is_certain(self, row: Sequence[Cell], column: Column) -> bool:
        """Return whether the samples that a cell rests on are more than their uncertainty."""
        at = self.place(column.beside or column.name)
        within, samples = self.columns[at].within, row[at]
        around = row[self.place(within)] if within else 0
        return samples is None or is_certain(int(samples), int(around or 0))

    def first(self, top: int) -> tuple[list[tuple[Cell, ...]], list[str]]:
        """Return the first `top` rows (0 for all), and a note on how many are left out; all that sentences are of."""
        hidden = len(self.rows) - top if top and not self.sentences else 0
        if hidden <= 0:
            return self.rows, []
        return self.rows[:top], [f"{quantity(hidden, MORE_ROWS)}: --top {len(self.rows)}"]

    def records(self, top: int = 0) -> list[dict[str, Any]]:
        """Return the first `top` rows (0 for all) as dicts, for programs."""
        names = [column.name for column in self.columns]
        records = [dict(zip(names, row, strict=True)) for row in self.first(top)[0]]
        for column in self.columns:
            if column.unit is Unit.OBJECT:
                records = [row | {column.name: decode_json(str(row[column.name]).encode())} for row in records]
        return records

    def detailed(self) -> Section:
        """Return the table with all columns displayed, except empty ones and objects, which are for programs."""
        kept = [
            at
            for at, column in enumerate(self.columns)
            if column.unit is not Unit.OBJECT and any(row[at] not in (None, "") for row in self.rows)
        ]
        names = {self.columns[at].name for at in kept}
        columns = tuple(
            structs.replace(
                column, detail=False, within="", beside="", bound=column.bound if column.bound in names else ""
            )
            for column in (self.columns[at] for at in kept)
        )
        return replace(self, columns=columns, rows=[tuple(row[at] for at in kept) for row in self.rows])

    def to_arrow(self) -> pyarrow.Table:
        """Return the rows as an Arrow table, with null for None.

        Raises:
            UsageError: pyarrow is not installed.
        """
        pa = needed("pyarrow", "arrow")
        types = {
            Unit.TEXT: pa.string(),
            Unit.OBJECT: pa.string(),
            Unit.COUNT: pa.int64(),
            Unit.BYTES: pa.int64(),
            Unit.NS: pa.int64(),
            Unit.SHARE: pa.float64(),
            Unit.RATE: pa.float64(),
        }
        schema = pa.schema([(column.name, types[column.unit]) for column in self.columns])
        return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in self.rows], schema=schema)

    def _repr_html_(self) -> str:
        """Return the name, the first rows and the notes as HTML, for notebooks; without pyarrow, too.

        Numbers have units; `to_pandas()` has them in ns.
        """
        heading = f"<h4>{escape(self.heading)}</h4>"
        if self.sentences:
            shown = "".join(f"<li>{escape(one_line(sentence))}</li>" for sentence in self.sentences)
            return f"{heading}<ul>{shown}</ul>{_paragraphs(self.notes)}"
        places = range(len(self.columns))
        rows = ([self.shown(row, at) for at in places] for row in self.rows)
        table = html_table([column.title for column in self.columns], rows, len(self.rows))
        return f"{heading}{table}{_paragraphs((*self.notes, *self.legend))}"


def _paragraphs(texts: Sequence[str]) -> str:
    return "".join(f"<p>{escape(text)}</p>" for text in texts)


class Report(list[Section]):
    """The sections of a report, in the order of the questions; notebooks show those that say something."""

    def _repr_html_(self) -> str:
        """Return the sections with rows as HTML, without empty columns."""
        return "".join(section.detailed()._repr_html_() for section in self if section.rows)


class Finding(Struct, frozen=True):
    """A sentence of the summary: its id, the text, the table that it is made of, and the numbers in it."""

    id: str
    text: str
    section: str
    numbers: Numbers


class Tables:
    """The rows of the tables that the rules read, by the name of the table; empty where a table has none.

    Attributes:
        start, end: the time that the tables are about, ns from the start of the trace.
        whole: what lasts so long: "recording" or "window".
    """

    def __init__(self, sections: Mapping[str, Section], start: int, end: int, whole: str) -> None:
        self._sections, self.start, self.end, self.whole = sections, start, end, whole

    def notes(self, name: str) -> list[str]:
        """Return the notes of a table."""
        section = self._sections.get(name)
        return section.notes if section is not None else []

    def columns(self, name: str) -> Sequence[Column]:
        """Return the columns of a table."""
        section = self._sections.get(name)
        return section.columns if section is not None else ()

    def windows(self) -> list[Row]:
        """Return when the devices had work, in rows as those of `step_parts`."""
        found = self._sections.get("device")
        times = found.over_time if found is not None else []
        return [{"start_ns": each.start_ns, "span_ns": each.window_ns} for each in times]

    def rows(self, name: str) -> list[Row]:
        """Return the rows of a table as dicts."""
        section = self._sections.get(name)
        return section.records() if section is not None else []

    def devices(self) -> list[Row]:
        """Return the rows of whole devices with a window, which is their span as in rows of `step_parts`."""
        rows = [row | {"span_ns": row["window_ns"]} for row in self.rows("device") if not row["queue"]]
        return [row for row in rows if row["span_ns"]]

"""Sections as text for a terminal, Markdown, CSV, JSON and a page."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence

import msgspec

from traceconv.answers.section import Cell, Column, Section, Unit
from traceconv.io.shown import one_line
from traceconv.model.times import format_short

#: A table of more columns is shown as a block of lines for each row; one without its details may have more.
_MOST_COLUMNS, _MOST_IN_SHORT = 11, 15
_LONGEST_TEXT = 60


def text(sections: Sequence[Section], top: int) -> str:
    """Return tables for a terminal, the first `top` rows of each; 0 is all."""
    return "\n\n".join("\n".join(_text(section, top)) for section in sections) + "\n"


def _text(section: Section, top: int) -> list[str]:
    columns, rows = _in_short(section, section.rows[:top] if top else section.rows)
    cells = [[shown_cell(cell, column.unit) for cell, column in zip(row, columns, strict=True)] for row in rows]
    titles = [column.title for column in columns]
    lines = [section.name]
    if len(titles) > (_MOST_COLUMNS if len(titles) == len(section.columns) else _MOST_IN_SHORT):
        width = max(map(len, titles))
        for row in cells:
            lines += ["", *(f"  {title:<{width}}  {cell}" for title, cell in zip(titles, row, strict=True) if cell)]
    elif cells:
        is_text = [column.unit is Unit.TEXT for column in columns]
        widths = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]
        for row in [titles, *cells]:
            parts = zip(row, widths, is_text, strict=True)
            lines.append(
                "  " + "  ".join(f"{cell:<{width}}" if left else f"{cell:>{width}}" for cell, width, left in parts)
            )
            lines[-1] = lines[-1].rstrip()
    hidden = len(section.rows) - len(rows)
    lines += [f"  {hidden} more rows: --top {len(section.rows)}"] if hidden else []
    return lines + [f"  {one_line(note)}" for note in section.notes]


def _in_short(section: Section, rows: Sequence[tuple[Cell, ...]]) -> tuple[list[Column], Sequence[tuple[Cell, ...]]]:
    """Return the columns that a terminal shows, and the rows with these cells."""
    columns = list(section.columns)
    if not any(column.detail for column in columns):
        return columns, rows
    kept = [at for at, column in enumerate(columns) if not column.detail and any(row[at] for row in rows)]
    return [columns[at] for at in kept], [tuple(row[at] for at in kept) for row in rows]


def shown_cell(cell: Cell, unit: Unit, longest: int = _LONGEST_TEXT) -> str:
    """Return a cell for people, texts of at most `longest` letters; "" for what is not known."""
    if cell is None:
        return ""
    if unit is Unit.NS:
        return format_short(float(cell))
    if unit is Unit.SHARE:
        return f"{100 * float(cell):.1f} %"
    if unit is Unit.RATE:
        return f"{float(cell):.4g}"
    shown = one_line(str(cell))
    return shown if len(shown) <= longest else f"{shown[: longest - 3]}..."


def markdown(sections: Sequence[Section], top: int) -> str:
    """Return a heading, a table and the notes of each section; the first `top` rows, 0 is all."""
    parts = []
    for section in sections:
        rows = section.rows[:top] if top else section.rows
        lines = [[column.title for column in section.columns], ["---"] * len(section.columns)]
        lines += [
            [shown_cell(cell, column.unit) for cell, column in zip(row, section.columns, strict=True)] for row in rows
        ]
        table = "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
        parts += [f"## {section.name}", table, *(f"- {one_line(note)}" for note in section.notes)]
    return "\n\n".join(parts) + "\n"


def comma_separated(sections: Sequence[Section], top: int) -> str:
    """Return one table a section, numbers in full, an empty line between tables; the first `top` rows, 0 is all.

    A text that begins with =, +, - or @ is written as it is.
    """
    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    for number, section in enumerate(sections):
        sink.write("\n" if number else "")
        writer.writerow([column.name for column in section.columns])
        for row in section.rows[:top] if top else section.rows:
            writer.writerow(["" if cell is None else one_line(cell) if isinstance(cell, str) else cell for cell in row])
    return sink.getvalue()


def json(sections: Sequence[Section], top: int) -> str:
    """Return an object with a list of rows for each section, and the notes; the first `top` rows, 0 is all."""
    rows = {section.name: section.records()[:top] if top else section.records() for section in sections}
    notes = {section.name: section.notes for section in sections if section.notes}
    document = {"schema_version": 1, **rows, "notes": notes}
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode() + "\n"


def html(sections: Sequence[Section], top: int) -> str:
    """Return a page with plots and tables that can be sorted; the first `top` rows, 0 is all."""
    from traceconv.answers.page import page  # with Jinja

    return page(sections, top)


RENDERERS: dict[str, Callable[[Sequence[Section], int], str]] = {
    "text": text,
    "markdown": markdown,
    "csv": comma_separated,
    "json": json,
    "html": html,
}

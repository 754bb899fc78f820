"""Render sections as text for a terminal, Markdown, CSV or JSON; `page` renders them as a page."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import zip_longest
from textwrap import TextWrapper, wrap

from traceconv.answers.page import page
from traceconv.answers.section import Cell, Column, Section, Unit
from traceconv.io.output import as_json
from traceconv.io.shown import lines, one_line, shortened, shortened_column, told_apart, widths_within

#: A table of more columns is turned: a line for each column. One without its details may have more.
_MOST_COLUMNS, _MOST_IN_SHORT = 11, 15
_LONGEST_TEXT = 60
#: The characters that distinguish names; if there is no room for them, spare columns are left out.
_READABLE = 28
#: Of a turned table: the width of lines without a terminal; from which width on texts have several lines, and words.
_USUAL_WIDTH, _LONGEST_TURNED, _LONGEST_WORD = 120, 20, 32
_UNLIMITED = 1 << 30
_WIDEST_NOTE = 80
#: What Markdown could take for markup: an underscore inside a word, and a sign inside a line, are none.
_MARKUP = re.compile(r"[\\`*\[\]<>&|~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|^[#+-](?= |#)|(?<=^\d)[.)](?= )")
#: Texts that can stand below their rows: their least width beside other columns, and their indentation below.
_LEAST_BESIDE, _INDENT = 32, 6
#: What needs quotes in CSV, and a row of one empty cell.
_ENDS, _NOTHING = re.compile('[",\r\n]'), '""'


#: A screen: its lines, and the rows of each table.
_SCREEN_LINES, _SCREEN_ROWS = 60, 5


def text(sections: Sequence[Section], top: int, width: int = 0, *, legends: bool = False) -> str:
    """Return tables for a terminal.

    Args:
        sections: the tables.
        top: the number of rows of each table; 0 for all.
        width: the most columns of a line, unless a table of numbers is wider; 0 for no limit.
        legends: whether the definitions of columns are among the notes.
    """
    return "\n\n".join(lines("\n".join(_text(section, top, width, legends))) for section in sections) + "\n"


def screen(sections: Sequence[Section], width: int, more: Callable[[Sequence[str]], str]) -> str:
    """Return the first rows of the first tables for a terminal, at most _SCREEN_LINES, and how to see the others.

    Args:
        sections: the tables.
        width: the most columns of a line.
        more: returns the options that print the tables of these names.
    """
    shown: list[str] = []
    hidden: list[str] = []
    left = _SCREEN_LINES - 2
    for section in sections:
        for rows in range(_SCREEN_ROWS, 0, -1):
            lines_of_section = lines("\n".join(_text(section, rows, width, legends=False)))
            taken = lines_of_section.count("\n") + 2
            if taken <= left or (rows == 1 and not shown):
                shown.append(lines_of_section)
                left -= taken
                break
        else:
            hidden.append(section.name)
    if hidden:
        shown.append("\n".join(_wrapped([f"more: {more(hidden)}"], width)))
    return "\n\n".join(shown) + "\n"


def _text(section: Section, top: int, width: int, legends: bool) -> list[str]:
    notes = [*section.notes, *section.legend] if legends else section.notes
    if section.sentences:
        return [section.heading, *_wrapped([*section.sentences, *notes], width)]
    rows, more = section.first(top)
    columns, cells = _shown(section, rows, 0 if width else _LONGEST_TEXT)
    everything = columns, cells
    below = [at for at, column in enumerate(columns) if column.below]
    below = below if width and not _has_room(columns, cells, width) else []
    texts = [[f"{columns[at].title}: {row[at]}" for at in below if row[at]] for row in cells]
    columns, cells = _without(below, columns, cells)
    columns, cells, omitted = _without_spare(columns, cells, width) if width else (columns, cells, [])
    lines, widths = [section.heading], _widths(columns, cells, width)
    most = _MOST_COLUMNS if len(everything[0]) == len(section.columns) else _MOST_IN_SHORT
    if widths is None or len(columns) > most:
        lines += _side_by_side(*everything, width)
    elif cells:
        is_text = [column.unit is Unit.TEXT for column in columns]
        titles = [
            wrap(column.title, room, break_on_hyphens=False) for column, room in zip(columns, widths, strict=True)
        ]
        folded = zip_longest(*titles, fillvalue="")
        columns_cut = [
            shortened_column(column, room) for column, room in zip(zip(*cells, strict=True), widths, strict=True)
        ]
        cells = [list(row) for row in zip(*columns_cut, strict=True)]
        for shown, under in (*((list(title), []) for title in folded), *zip(cells, texts, strict=True)):
            parts = zip(map(shortened, shown, widths), widths, is_text, strict=True)
            line = "  ".join(f"{cell:<{room}}" if left else f"{cell:>{room}}" for cell, room, left in parts)
            lines.append(f"  {line}".rstrip())
            lines += [" " * _INDENT + shortened(text, width - _INDENT) for text in under]
    lines += [f"  {note}" for note in more]
    too_narrow = "a wider terminal or --format csv shows all columns"
    narrow = [f"too narrow for {', '.join(omitted)}: {too_narrow}"] if omitted else []
    return lines + _wrapped([*narrow, *notes], width)


def _wrapped(texts: Sequence[str], width: int) -> list[str]:
    """Return indented texts, folded if the terminal has a width."""
    shown = [f"  {one_line(text)}" for text in texts]
    if not width:
        return shown
    wrapped = TextWrapper(
        min(width, _WIDEST_NOTE), subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    return [line for text in shown for line in wrapped.wrap(text)]


def _has_room(columns: Sequence[Column], cells: Sequence[Sequence[str]], width: int) -> bool:
    """Return whether the texts that can stand below their rows fit beside the other columns."""
    widths = [max(map(len, column)) for column in zip([column.title for column in columns], *cells, strict=True)]
    least = [min(room, _LEAST_BESIDE) if column.below else room for room, column in zip(widths, columns, strict=True)]
    return sum(least) + 2 * len(least) <= width


def _without(
    places: Sequence[int], columns: list[Column], cells: list[list[str]]
) -> tuple[list[Column], list[list[str]]]:
    """Return the columns and cells but for some columns."""
    kept = [at for at in range(len(columns)) if at not in places]
    return [columns[at] for at in kept], [[row[at] for at in kept] for row in cells]


def _widths(columns: Sequence[Column], cells: Sequence[Sequence[str]], width: int) -> list[int] | None:
    """Return the widths of columns in lines of at most `width` (0 for no limit); None if they do not fit."""
    titles = [column.title for column in columns]
    is_text = [column.unit is Unit.TEXT for column in columns]
    room = width - 2 * len(titles) if width else _UNLIMITED
    # A title may have several lines, of whole words.
    words = [max(title.split(), key=len, default="") for title in titles]
    least = list(map(len, words))
    return widths_within([titles, *cells], is_text, room, least) or widths_within([words, *cells], is_text, room, least)


def _without_spare(
    columns: list[Column], cells: list[list[str]], width: int
) -> tuple[list[Column], list[list[str]], list[str]]:
    """Drop spare columns, the last one first, until there is room for names; return columns, cells, dropped titles.

    If the table does not fit without any spare column, all columns stay.
    """
    all_columns, all_cells, omitted = columns, cells, list[str]()
    while True:
        widths = _widths(columns, cells, width)
        longest = max((len(row[0]) for row in cells if row), default=0)
        spare = [at for at, column in enumerate(columns) if column.spare]
        if widths and widths[0] >= min(longest, _READABLE):
            return columns, cells, omitted
        if not spare:
            return (columns, cells, omitted) if widths else (all_columns, all_cells, [])
        omitted.insert(0, columns[spare[-1]].title)
        columns, cells = _without(spare[-1:], columns, cells)


def _turned(text: str) -> int:
    """Return how wide a text is in a turned table."""
    longest = max(map(len, text.split()), default=0)
    return min(len(text), max(_LONGEST_TURNED, min(longest, _LONGEST_WORD)))


def _side_by_side(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Return a turned table: a line for each column, as many rows beside each other as fit, the others below."""
    titles = [column.title for column in columns]
    is_text = [column.unit is Unit.TEXT for column in columns]
    left = max(map(len, titles))
    room = (width or _USUAL_WIDTH) - left - 2
    widths = [
        max(1, *(_turned(cell) if text else len(cell) for cell, text in zip(row, is_text, strict=True))) for row in rows
    ]
    lines, at = [], 0
    while at < len(rows):
        end = at + 1
        while end < len(rows) and sum(widths[at : end + 1]) + 2 * (end + 1 - at) <= room:
            end += 1
        lines += [""] if at else []
        for title, *cells in zip(titles, *rows[at:end], strict=True):
            if end - at == 1 and cells[0]:
                parts = iter(wrap(cells[0], room - 2) if width else cells)
                lines += [f"  {head:<{left}}  {part}" for head, part in zip_longest([title], parts, fillvalue="")]
            elif any(cells):
                folded = zip_longest(*map(wrap, cells, widths[at:end]), fillvalue="")
                parts = ("".join(map("  {:>{}}".format, line, widths[at:end])) for line in folded)
                lines += [
                    f"  {head:<{left}}{line}".rstrip() for head, line in zip_longest([title], parts, fillvalue="")
                ]
        at = end
    return lines


def _shown(
    section: Section, rows: Sequence[Sequence[Cell]], longest: int = _LONGEST_TEXT
) -> tuple[list[Column], list[list[str]]]:
    """Return the displayed columns and the cells of rows, with texts of at most `longest` characters."""
    shown = [
        (at, column)
        for at, column in enumerate(section.columns)
        if not section.has_details or (not column.detail and any(row[at] not in (None, "") for row in section.rows))
    ]

    def cells_of(at: int, column: Column) -> list[str]:
        cells = [section.shown(row, at, longest) for row in rows]
        whole = [section.shown(row, at) for row in rows] if longest and column.unit is Unit.TEXT else cells
        return told_apart(whole, cells)

    cells = zip(*(cells_of(*which) for which in shown), strict=True) if shown else ([] for _ in rows)
    return [column for _, column in shown], [list(row) for row in cells]


def _literal(text: str) -> str:
    """Return text that Markdown displays as it is, in CommonMark and on GitHub; `snake_case` needs no escapes."""
    return _MARKUP.sub(r"\\\g<0>", one_line(text))


def markdown(sections: Sequence[Section], top: int) -> str:
    """Return a heading, a table and the notes of each section, with the first `top` rows, 0 for all."""
    parts = []
    for section in sections:
        if section.sentences:
            parts += [f"## {_literal(section.heading)}"]
            parts += [f"- {_literal(sentence)}" for sentence in (*section.sentences, *section.notes)]
            continue
        rows, more = section.first(top)
        columns, cells = _shown(section, rows)
        rule = ["---"] * len(columns)
        lines = [
            [_literal(column.title) for column in columns],
            rule,
            *([_literal(cell) for cell in row] for row in cells),
        ]
        table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        parts += [f"## {_literal(section.heading)}", table]
        parts += [f"- {_literal(note)}" for note in (*more, *section.notes, *section.legend)]
    return "\n\n".join(parts) + "\n"


def comma_separated(sections: Sequence[Section], top: int) -> str:
    """Return a table for each section, separated by empty lines, with exact numbers and `top` rows (0 for all).

    Texts are not changed, also if they start with =, +, - or @, or steer a terminal; but UTF-8 lacks surrogates.
    """
    tables = []
    for section in sections:
        lines = [[column.name for column in section.columns], *section.first(top)[0]]
        tables.append("".join(f"{','.join(map(_field, line)) or _NOTHING}\n" for line in lines))
    return "\n".join(tables).encode("utf-8", "backslashreplace").decode()


def _field(cell: Cell) -> str:
    """Return a cell in CSV: truth as JSON has it, and quotes around what would end it, also a carriage return."""
    shown = "" if cell is None else str(cell).lower() if isinstance(cell, bool) else str(cell)
    return '"' + shown.replace('"', '""') + '"' if _ENDS.search(shown) else shown


def json(sections: Sequence[Section], top: int) -> str:
    """Return an object with the rows (the first `top`, 0 for all), the notes and the window of each section."""
    rows = {section.name: section.records(top) for section in sections}
    notes = {
        section.name: said
        for section in sections
        if (said := [*section.first(top)[1], *section.notes, *section.legend])
    }
    document: dict[str, object] = {"schema_version": 2, **rows, "notes": notes}
    window = next((section.window for section in sections if section.window), None)
    if window:
        start, end = window.start - window.origin, window.end - window.origin
        document["between"] = {"asked": window.text, "start_ns": start, "end_ns": end}
    return as_json(document)


RENDERERS: dict[str, Callable[[Sequence[Section], int], str]] = {
    "text": text,
    "markdown": markdown,
    "csv": comma_separated,
    "json": json,
    "html": page,
}

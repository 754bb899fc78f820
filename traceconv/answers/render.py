"""Render sections as text for a terminal, Markdown, CSV, JSON or a page."""

from __future__ import annotations

import base64
import hashlib
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from textwrap import TextWrapper, wrap

import traceconv
from traceconv.answers.section import NO_NAME, Cell, Column, Section, Unit, shown_cell
from traceconv.io.output import as_json
from traceconv.io.shown import lines, one_line, shortened, shortened_column, told_apart, widths_within
from traceconv.model.numbers import format_short

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
_LONGEST_IN_TITLE = 10  # words of a title are broken from there on, if need be
#: Texts that can stand below their rows: their least width beside other columns, and their indentation below.
_LEAST_BESIDE, _INDENT = 32, 6


def text(sections: Sequence[Section], top: int, width: int = 0) -> str:
    """Return tables for a terminal.

    Args:
        sections: the tables.
        top: the number of rows of each table; 0 for all.
        width: the most columns of a line, unless a table of numbers is wider; 0 for no limit.
    """
    return "\n\n".join(lines("\n".join(_text(section, top, width))) for section in sections) + "\n"


def _text(section: Section, top: int, width: int) -> list[str]:
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
        titles = [wrap(column.title, room) for column, room in zip(columns, widths, strict=True)]
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
    notes = [f"  {one_line(note)}" for note in section.notes]
    if omitted:
        notes.insert(0, f"  too narrow for {', '.join(omitted)}: a wider terminal or --format csv shows all columns")
    if width:
        wrapped = TextWrapper(
            min(width, _WIDEST_NOTE), subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
        )
        notes = [line for note in notes for line in wrapped.wrap(note)]
    return lines + notes


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
    # A title may have several lines.
    words = [max(re.split(r"\s+|(?<=-)", title), key=len)[:_LONGEST_IN_TITLE] for title in titles]
    return widths_within([titles, *cells], is_text, room) or widths_within([words, *cells], is_text, room)


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
        max(_turned(cell) if text else len(cell) for cell, text in zip(row, is_text, strict=True)) for row in rows
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
        (at, column, section.place(column.within) if column.within else None)
        for at, column in enumerate(section.columns)
        if not section.has_details or (not column.detail and any(row[at] not in (None, "") for row in section.rows))
    ]

    def cell(row: Sequence[Cell], at: int, within: int | None) -> str:
        number = section.shown(row, at, longest)
        if within is None or row[at] is None or row[within] is None:
            return number
        counted, around = int(row[at] or 0), int(row[within] or 0)
        return f"{number} ± {around}" if around <= counted else f"≤ {counted + around}"  # no number is below 0

    def cells_of(at: int, column: Column, within: int | None) -> list[str]:
        cells = [cell(row, at, within) for row in rows]
        whole = [section.shown(row, at) for row in rows] if longest and column.unit is Unit.TEXT else cells
        return told_apart(whole, cells)

    cells = zip(*(cells_of(*which) for which in shown), strict=True) if shown else ([] for _ in rows)
    return [column for _, column, _ in shown], [list(row) for row in cells]


def _literal(text: str) -> str:
    """Return text that Markdown displays as it is, in CommonMark and on GitHub; `snake_case` needs no escapes."""
    return _MARKUP.sub(r"\\\g<0>", one_line(text))


def markdown(sections: Sequence[Section], top: int) -> str:
    """Return a heading, a table and the notes of each section, with the first `top` rows, 0 for all."""
    parts = []
    for section in sections:
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
        parts += [f"- {_literal(note)}" for note in (*more, *section.notes)]
    return "\n\n".join(parts) + "\n"


def comma_separated(sections: Sequence[Section], top: int) -> str:
    """Return a table for each section, separated by empty lines, with exact numbers and `top` rows (0 for all).

    Texts are not changed, also if they start with =, +, - or @.
    """
    import csv

    sink = io.StringIO()
    writer = csv.writer(sink, lineterminator="\n")
    for number, section in enumerate(sections):
        sink.write("\n" if number else "")
        writer.writerow([one_line(column.name) for column in section.columns])
        for row in section.first(top)[0]:
            writer.writerow(["" if cell is None else one_line(cell) if isinstance(cell, str) else cell for cell in row])
    return sink.getvalue()


def json(sections: Sequence[Section], top: int) -> str:
    """Return an object with the rows (the first `top`, 0 for all), the notes and the window of each section."""
    rows = {section.name: section.records(top) for section in sections}
    notes = {section.name: said for section in sections if (said := [*section.first(top)[1], *section.notes])}
    document: dict[str, object] = {"schema_version": 1, **rows, "notes": notes}
    window = next((section.window for section in sections if section.window), None)
    if window:
        start, end = window.start - window.origin, window.end - window.origin
        document["between"] = {"asked": window.text, "start_ns": start, "end_ns": end}
    return as_json(document)


_LONGEST_CELL = 2000
_LONGEST_LABEL = 200
_MOST_BARS = 15
_BINS = 12  # the most bins of steps
_MOST_TRACKS = 4
_MOST_STEPS = 1000  # the most steps that are drawn one by one


@dataclass(frozen=True, slots=True)
class Bar:
    """One row of a plot.

    Attributes:
        label: the text before it.
        value: the text after it.
        parts: the class, the start and the width (per cent), and the description of each part.
        heights: the heights of the parts, per cent; empty if all are full.
    """

    label: str
    value: str
    parts: tuple[tuple[str, float, float, str], ...]
    heights: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot of horizontal bars; the legend has the classes of parts and their meaning, if there are several."""

    title: str
    caption: str
    bars: list[Bar]
    legend: tuple[tuple[str, str], ...] = ()


def page(sections: Sequence[Section], top: int) -> str:
    """Return the page, with the first `top` rows of each table, 0 for all."""
    from markupsafe import Markup

    from traceconv.align.report import templates  # with Jinja, which other forms need not wait for

    environment = templates("answers", "align")

    def part(name: str) -> str:
        return environment.get_template(name).render()

    style, script = part("report.css") + part("page.css"), part("page.js")
    plots = [_PLOTS[section.name](section) if section.name in _PLOTS else [] for section in sections]
    tables = [table.detailed() if table.has_details else table for table in sections]
    return environment.get_template("page.html.j2").render(
        shown=[(table, *table.first(top), drawn) for table, drawn in zip(tables, plots, strict=True)],
        style=Markup(style),
        script=Markup(script),
        policy="default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"style-src '{_hash(style)}'; script-src '{_hash(script)}'",
        longest=_LONGEST_CELL,
        one_line=one_line,
        Unit=Unit,
        version=traceconv.__version__,
    )


def _hash(text: str) -> str:
    """Return the hash of a script or style for a content security policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _label(section: Section, row: Sequence[Cell]) -> str:
    """Return the label of a row: its first texts."""
    texts = []
    for column, cell in zip(section.columns, row, strict=True):
        if column.unit is not Unit.TEXT:
            break
        texts.append(shown_cell(cell, column.unit, _LONGEST_LABEL))
    return " · ".join(filter(None, texts)) or NO_NAME


def _share(part: float, whole: float) -> float:
    return round(100 * part / whole, 3) if whole else 0.0


def _operations(section: Section) -> list[Plot]:
    at, share = section.place("self_ns"), section.place("busy_share")
    measured = [(int(row[at] or 0), row) for row in section.rows if row[at]]
    if not measured:
        return []
    measured.sort(key=lambda bar: -bar[0])  # in any order of the table
    most = measured[0][0]
    bars = []
    for self_ns, row in measured[:_MOST_BARS]:
        value = f"{format_short(self_ns)} · {shown_cell(row[share], Unit.SHARE)}"
        bars.append(Bar(_label(section, row), value, (("one", 0.0, _share(self_ns, most), value),)))
    caption = "Self time, without what runs inside, and its share of the busy time, as in the table."
    return [Plot("Where the time goes", caption, bars)]


def _steps(section: Section) -> list[Plot]:
    """Return plots of the durations of steps of each track: a histogram, then each step by its start."""
    name, track, start, length, state = map(section.place, ("step", "track", "start_ns", "duration_ns", "state"))
    plots = []
    for owner in list(dict.fromkeys(row[track] for row in section.rows))[:_MOST_TRACKS]:
        rows = [row for row in section.rows if row[track] == owner and row[length] is not None]
        durations = [int(row[length] or 0) for row in rows]
        low, high = min(durations, default=0), max(durations, default=0)
        if len(rows) < 2 or low == high:
            continue
        bins = min(_BINS, len(rows))
        counts = [0] * bins
        for duration in durations:
            counts[min((duration - low) * bins // (high - low), bins - 1)] += 1
        edges = [low + (high - low) * edge / bins for edge in range(bins + 1)]
        bars = [
            Bar(
                f"{format_short(edges[bin_])} to {format_short(edges[bin_ + 1])}",
                str(count),
                (("one", 0.0, _share(count, max(counts)), f"{count} steps"),),
            )
            for bin_, count in enumerate(counts)
        ]
        caption = f"{one_line(str(owner))}: how many of the {len(rows)} steps took how long."
        plots.append(Plot("How long steps take", caption, bars))
        if len(rows) > _MOST_STEPS or any(row[start] is None for row in rows):
            continue
        begin = min(int(row[start] or 0) for row in rows)
        whole = max(int(row[start] or 0) + int(row[length] or 0) for row in rows) - begin
        parts = tuple(
            (
                "two" if row[state] == "outlier" else "five" if number % 2 else "one",
                _share(int(row[start] or 0) - begin, whole),
                _share(int(row[length] or 0), whole),
                f"{one_line(str(row[name]))}: {format_short(int(row[length] or 0))}",
            )
            for number, row in enumerate(rows)
        )
        bars = [Bar("steps", format_short(whole), parts)]
        caption = f"{one_line(str(owner))}: each step from its start to its end."
        plots.append(Plot("Steps over time", caption, bars, (("one", "steps"), ("two", "outliers"))))
    return plots


_DEVICE_PARTS = (
    ("compute_ns", "one", "computation"),
    ("exposed_comm_ns", "two", "exposed communication"),
    ("exposed_copy_ns", "three", "exposed copies"),
    ("idle_ns", "none", "idle"),
)
_IDLE_PARTS = (
    ("host_late_ns", "two", "host late"),
    ("launch_call_ns", "three", "launch call"),
    ("dispatch_ns", "one", "dispatch"),
    ("device_wait_ns", "four", "device wait"),
    ("unknown_ns", "none", "unknown"),
)


def _device(section: Section) -> list[Plot]:
    queue = section.place("queue")
    devices = replace(section, rows=[row for row in section.rows if not row[queue]])
    return [
        *_stacked(devices, _DEVICE_PARTS, "Busy and idle", "Each bar is the window of a device."),
        *_over_time(section),
        *_stacked(section, _IDLE_PARTS, "What idle devices wait for", "Each bar is the idle time, by its cause."),
    ]


def _over_time(section: Section) -> list[Plot]:
    """Return a plot of the busy share of each device in equal parts of the time; equal neighbours are joined."""
    bars = []
    for activity in section.over_time[:_MOST_BARS]:
        runs: list[tuple[int, int, float]] = []
        count = len(activity.shares)
        for number, share in enumerate(activity.shares):
            height = round(100 * share, 1)
            first = runs.pop()[0] if runs and runs[-1][2] == height else number
            runs.append((first, number + 1, height))
        parts = tuple(
            ("one", _share(first, count), _share(last - first, count), f"{height:g} % busy")
            for first, last, height in runs
        )
        bars.append(
            Bar(one_line(activity.name), format_short(activity.window_ns), parts, tuple(run[2] for run in runs))
        )
    span = f"Between {section.window}" if section.window else "From the first work of any device to the last one"
    caption = f"{span}; the height is the share of the time that is busy."
    return [Plot("Busy over time", caption, bars)] if bars else []


def _stacked(
    section: Section,
    kinds: Sequence[tuple[str, str, str]],
    title: str,
    caption: str,
    label: Callable[[Sequence[Cell]], str] | None = None,
) -> list[Plot]:
    """Return a plot with a bar for each row, with a part for each column of `kinds`."""
    places = [section.place(column) for column, _, _ in kinds]
    measured = [([int(row[place] or 0) for place in places], row) for row in section.rows[:_MOST_BARS]]
    longest = max((sum(values) for values, _ in measured), default=0)
    bars = []
    for values, row in measured:
        whole, before, parts = longest if label else sum(values), 0, []
        for value, (_, css, words) in zip(values, kinds, strict=True):
            if value:
                parts.append((css, _share(before, whole), _share(value, whole), f"{words}: {format_short(value)}"))
            before += value
        if whole:
            bars.append(Bar(label(row) if label else _label(section, row), format_short(before), tuple(parts)))
    return [Plot(title, caption, bars, tuple((css, words) for _, css, words in kinds))] if bars else []


def _host_late(section: Section) -> list[Plot]:
    at = section.place("time_ns")
    most = max((int(row[at] or 0) for row in section.rows), default=0)
    bars = []
    for row in sorted(section.rows, key=lambda row: -int(row[at] or 0))[:_MOST_BARS]:
        amount = int(row[at] or 0)
        value = f"{format_short(amount)} · {shown_cell(row[section.place('idle_share')], Unit.SHARE)}"
        bars.append(Bar(_label(section, row), value, (("two", 0.0, _share(amount, most), value),)))
    return [Plot("What late hosts did", "Time in which a device had nothing to do, and its share of idle.", bars)]


def _ranks(section: Section) -> list[Plot]:
    kinds = (("caused_ns", "two", "caused"), ("suffered_ns", "one", "suffered"))
    caption = "Of each rank the waits that it caused, and those that it suffered; all bars have one scale."
    return _stacked(section, kinds, "Who makes the others wait", caption, lambda row: f"rank {row[0]}")


def _collectives(section: Section) -> list[Plot]:
    kinds = (("transfer_ns", "one", "transfer"), ("longest_wait_ns", "two", "waited"))
    caption = "The collectives with the longest waits, and the rank that came last to them; all bars have one scale."
    last = section.place("last_rank")

    def label(row: Sequence[Cell]) -> str:
        return f"{row[0]} at {format_short(int(row[1] or 0))}, last: {'not known' if row[last] is None else row[last]}"

    return _stacked(section, kinds, "Transfer and waiting", caption, label)


_PLOTS: dict[str, Callable[[Section], list[Plot]]] = {
    "operations": _operations,
    "steps": _steps,
    "device": _device,
    "host_late": _host_late,
    "ranks": _ranks,
    "collectives": _collectives,
}


RENDERERS: dict[str, Callable[[Sequence[Section], int], str]] = {
    "text": text,
    "markdown": markdown,
    "csv": comma_separated,
    "json": json,
    "html": page,
}

"""The page of a report: the summary, a strip of the whole time, and for each table a figure and its first rows."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence

from msgspec import Struct

import traceconv
from traceconv.answers.figures import figures, readable, strip
from traceconv.answers.section import Cell, Section, Unit
from traceconv.io.shown import one_line

_LONGEST_CELL = 2000
#: A text from which length on may take several lines.
_SHORT_CELL = 24
#: The rows of a table that are seen before the others are asked for.
_FIRST_ROWS = 10
#: The most inputs in the title of a page.
_MOST_INPUTS = 3


def page(sections: Sequence[Section], top: int) -> str:
    """Return the page, with the first `top` rows of each table, 0 for all."""
    from markupsafe import Markup

    from traceconv.align.report import templates  # with Jinja, which other forms need not wait for

    environment = templates("answers", "align")

    def part(name: str) -> str:
        return environment.get_template(name).render()

    style, script = part("report.css") + part("page.css"), part("page.js")
    by_name = {section.name: section for section in sections}
    tables = [section.detailed() if section.has_details else section for section in sections if section.rows]
    shown = [
        (section, _cells(section, top), section.first(top)[1], figures(by_name[section.name]))
        for section in tables
        if not section.sentences
    ]
    return environment.get_template("page.html.j2").render(
        title=_title(by_name),
        summary=[(found.name, _findings(found, by_name), found.notes) for found in sections if found.sentences],
        strip=strip(by_name.get("steps"), by_name["device"].over_time if "device" in by_name else ()),
        shown=shown,
        empty=[section for section in sections if not section.rows and section.notes],
        first_rows=_FIRST_ROWS,
        style=Markup(style),
        script=Markup(script),
        policy="default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"style-src '{_hash(style)}'; script-src '{_hash(script)}'",
        one_line=one_line,
        Unit=Unit,
        version=traceconv.__version__,
    )


def _findings(section: Section, by_name: dict[str, Section]) -> list[tuple[str, str]]:
    """Return the sentences of a section, each with the name of the table on the page that it was made of, or ""."""
    if all(column.name != "section" for column in section.columns):
        return [(sentence, "") for sentence in section.sentences]
    text, table = section.place("text"), section.place("section")
    with_rows = {name for name, section in by_name.items() if section.rows}
    return [(str(row[text]), name if (name := str(row[table])) in with_rows else "") for row in section.rows]


class _Cell(Struct, frozen=True):
    """A cell: its text, the whole text if that is a part of it, and the value that it is sorted by if not its text."""

    text: str
    title: str = ""
    css: str = ""
    value: Cell = None


def _cells(section: Section, top: int) -> list[tuple[_Cell, ...]]:
    """Return the cells of the first rows of a table."""
    rows = section.first(top)[0]
    columns = []
    for at, column in enumerate(section.columns):
        shown = [section.shown(row, at, _LONGEST_CELL) for row in rows]
        if column.unit is not Unit.TEXT:
            values = [None if str(row[at]) == text else row[at] for text, row in zip(shown, rows, strict=True)]
            columns.append([_Cell(text, css="n", value=value) for text, value in zip(shown, values, strict=True)])
            continue
        names = shown if column.whole else readable(shown)
        styles = ["fold" if column.whole else "long" if len(name) > _SHORT_CELL else "" for name in names]
        parts = ["" if name == whole else whole for name, whole in zip(names, shown, strict=True)]
        columns.append(list(map(_Cell, names, parts, styles)))
    return list(zip(*columns, strict=True))


def _title(sections: dict[str, Section]) -> str:
    """Return what the page is about: the inputs, and their devices."""
    if "diff_runs" in sections:
        runs = sections["diff_runs"].records()
        sides = ([row["run"] for row in runs if row["side"] == side] for side in ("before", "after"))
        return one_line(" and ".join(_first_of(list(map(str, side))) for side in sides))
    if "history_runs" in sections:
        runs = sections["history_runs"].records()
        return one_line(f"{runs[0]['run']} to {runs[-1]['run']}")
    if "overview" not in sections:
        return "What took the time"
    inputs = list(dict.fromkeys(str(row[0]) for row in sections["overview"].rows))
    names = _first_of(inputs) or "What took the time"
    devices = list(dict.fromkeys(str(row[0]) for row in sections["device"].rows)) if "device" in sections else []
    on_devices = f" · {devices[0]}" if len(devices) == 1 else f" · {len(devices)} devices" if devices else ""
    return one_line(names + on_devices)


def _first_of(names: Sequence[str]) -> str:
    """Return the first of some names, and how many more there are."""
    more = [f"{len(names) - _MOST_INPUTS} more"] if len(names) > _MOST_INPUTS else []
    return ", ".join([*names[:_MOST_INPUTS], *more])


def _hash(text: str) -> str:
    """Return the hash of a script or style for a content security policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

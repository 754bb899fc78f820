"""Render sections as one page without external resources: plots, and sortable tables.

The template `page.html.j2` holds texts and layout; the style shared with the report of an alignment is `report.css`.
This module computes the plots, in per cent of the width.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

import traceconv
from traceconv.align.report import templates
from traceconv.answers.section import NO_NAME, Cell, Section, Unit, shown_cell
from traceconv.io.shown import one_line
from traceconv.model.numbers import format_short

_LONGEST_TEXT = 2000
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
    """A plot of horizontal bars.

    Attributes:
        title: its title.
        caption: an explanation.
        bars: the bars, from the top.
        legend: the classes of parts and their meaning; empty for one kind of part.
    """

    title: str
    caption: str
    bars: list[Bar]
    legend: tuple[tuple[str, str], ...] = ()


def page(sections: Sequence[Section], top: int) -> str:
    """Return the page, with the first `top` rows of each table, 0 for all."""
    environment = templates("answers", "align")

    def part(name: str) -> str:
        return environment.get_template(name).render()

    style, script = part("report.css") + part("page.css"), part("page.js")
    plots = [_PLOTS.get(section.name, _no_plots)(section) for section in sections]
    tables = [one.detailed() if one.has_details else one for one in sections]
    return environment.get_template("page.html.j2").render(
        shown=[(one, *one.first(top), drawn) for one, drawn in zip(tables, plots, strict=True)],
        style=Markup(style),
        script=Markup(script),
        policy="default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"style-src '{_hash(style)}'; script-src '{_hash(script)}'",
        longest=_LONGEST_TEXT,
        one_line=one_line,
        Unit=Unit,
        version=traceconv.__version__,
    )


def _hash(text: str) -> str:
    """Return the hash of a script or style for a content security policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _no_plots(_section: Section) -> list[Plot]:
    return []


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
    measured.sort(key=lambda one: -one[0])  # in any order of the table
    most = measured[0][0]
    bars = []
    for own, row in measured[:_MOST_BARS]:
        value = f"{format_short(own)} · {shown_cell(row[share], Unit.SHARE)}"
        bars.append(Bar(_label(section, row), value, (("one", 0.0, _share(own, most), value),)))
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
    for one in section.over_time[:_MOST_BARS]:
        runs: list[tuple[int, int, float]] = []
        for number, share in enumerate(one.shares):
            height = round(100 * share, 1)
            first = runs.pop()[0] if runs and runs[-1][2] == height else number
            runs.append((first, number + 1, height))
        parts = tuple(
            ("one", _share(first, len(one.shares)), _share(last - first, len(one.shares)), f"{height:g} % busy")
            for first, last, height in runs
        )
        bars.append(Bar(one_line(one.name), format_short(one.window_ns), parts, tuple(run[2] for run in runs)))
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
    """Return a plot with a bar for each row, with a part for each column of `kinds`.

    Args:
        section: the table.
        kinds: the columns, the classes of their parts, and their meaning.
        title, caption: those of the plot.
        label: returns the label of a row, for bars on a common scale; without it each bar is full.
    """
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

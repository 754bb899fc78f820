"""The page of a report: the summary, a strip of the whole time, and for each table a figure and its first rows."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import traceconv
from traceconv.answers.section import NO_NAME, Cell, Section, Unit, shown_cell
from traceconv.io.shown import one_line
from traceconv.model.numbers import format_short

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


#: The rows of a table that are seen before the others are asked for.
_FIRST_ROWS = 10
#: The most inputs in the title of a page, and the most lanes in its strip.
_MOST_INPUTS, _MOST_LANES = 3, 24
#: The arguments of a C++ template, without others inside; and from which length on names are shown without them.
_TEMPLATE, _LONG_NAME = re.compile(r"<[^<>]*>"), 60


def page(sections: Sequence[Section], top: int) -> str:
    """Return the page, with the first `top` rows of each table, 0 for all."""
    from markupsafe import Markup

    from traceconv.align.report import templates  # with Jinja, which other forms need not wait for

    environment = templates("answers", "align")

    def part(name: str) -> str:
        return environment.get_template(name).render()

    style, script = part("report.css") + part("page.css"), part("page.js")
    by_name = {section.name: section for section in sections}
    plots = [_PLOTS[section.name](section) if section.name in _PLOTS else [] for section in sections]
    tables = [section.detailed() if section.has_details else section for section in sections]
    shown = [
        (section, *section.first(top), drawn)
        for section, drawn in zip(tables, plots, strict=True)
        if not section.sentences and (section.rows or section.notes)
    ]
    return environment.get_template("page.html.j2").render(
        title=_title(by_name),
        summary=[(section.name, section.sentences, section.notes) for section in sections if section.sentences],
        strip=_strip(by_name),
        shown=shown,
        first_rows=_FIRST_ROWS,
        style=Markup(style),
        script=Markup(script),
        policy="default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"style-src '{_hash(style)}'; script-src '{_hash(script)}'",
        longest=_LONGEST_CELL,
        one_line=one_line,
        folded=folded,
        Unit=Unit,
        version=traceconv.__version__,
    )


def folded(name: str) -> str:
    """Return a long name without the arguments of its C++ templates: "void f<...>(...)"."""
    if len(name) <= _LONG_NAME:
        return name
    before, kept = "", name
    while before != kept:
        before, kept = kept, _TEMPLATE.sub("\0", kept)
    return re.sub("\0+", "<...>", kept)


def _title(sections: dict[str, Section]) -> str:
    """Return what the page is about: the inputs, and their devices."""
    if "overview" not in sections:
        return "What took the time"
    inputs = list(dict.fromkeys(str(row[0]) for row in sections["overview"].rows))
    more = [f"{len(inputs) - _MOST_INPUTS} more"] if len(inputs) > _MOST_INPUTS else []
    names = ", ".join([*inputs[:_MOST_INPUTS], *more]) or "What took the time"
    devices = list(dict.fromkeys(str(row[0]) for row in sections["device"].rows)) if "device" in sections else []
    on_devices = f" · {devices[0]}" if len(devices) == 1 else f" · {len(devices)} devices" if devices else ""
    return one_line(names + on_devices)


def _strip(sections: dict[str, Section]) -> list[Plot]:
    """Return a plot of the whole time: the steps of each track, and how busy each device is."""
    lanes: list[tuple[str, float, float, list[tuple[str, float, float, str, float]]]] = []
    if "steps" in sections:
        section = sections["steps"]
        name, track, start, length = map(section.place, ("step", "track", "start_ns", "duration_ns"))
        of_track: dict[Cell, list[tuple[str, float, float, str, float]]] = {}
        for row in section.rows[:_MOST_STEPS]:
            if row[start] is not None and row[length] is not None:
                css = "five" if len(of_track.get(row[track], ())) % 2 else "two"
                said = f"{one_line(str(row[name]))}: {format_short(int(row[length] or 0))}"
                part = css, int(row[start] or 0), int(row[length] or 0), said, 100.0
                of_track.setdefault(row[track], []).append(part)
        for owner, parts in of_track.items():
            first, last = min(part[1] for part in parts), max(part[1] + part[2] for part in parts)
            lanes.append((f"steps of {one_line(str(owner))}", first, last, parts))
    for activity in sections["device"].over_time if "device" in sections else ():
        width = activity.window_ns / len(activity.shares)
        parts = [
            ("one", activity.start_ns + number * width, width, f"{100 * share:.3g} % busy", 100 * share)
            for number, share in enumerate(activity.shares)
        ]
        lanes.append((one_line(activity.name), activity.start_ns, activity.start_ns + activity.window_ns, parts))
    if not lanes:
        return []
    begin, end = min(lane[1] for lane in lanes), max(lane[2] for lane in lanes)
    bars = []
    for label, _, _, parts in lanes[:_MOST_LANES]:
        drawn = tuple(
            (css, _share(since - begin, end - begin), _share(amount, end - begin), said)
            for css, since, amount, said, _ in parts
        )
        bars.append(
            Bar(
                label,
                format_short(sum(part[2] * part[4] / 100 for part in parts)),
                drawn,
                tuple(part[4] for part in parts),
            )
        )
    more = f"; {len(lanes) - _MOST_LANES} more are not drawn" if len(lanes) > _MOST_LANES else ""
    caption = f"{format_short(end - begin)} from the first to the last of them; heights are busy shares{more}."
    return [Plot("The run", caption, bars)]


def _hash(text: str) -> str:
    """Return the hash of a script or style for a content security policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _label(section: Section, row: Sequence[Cell]) -> str:
    """Return the label of a row: its first texts."""
    texts = []
    for column, cell in zip(section.columns, row, strict=True):
        if column.unit is not Unit.TEXT:
            break
        texts.append(folded(shown_cell(cell, column.unit, _LONGEST_LABEL)))
    return " · ".join(filter(None, texts)) or NO_NAME


def _share(part: float, whole: float) -> float:
    return round(100 * part / whole, 3) if whole else 0.0


def _operations(section: Section) -> list[Plot]:
    on_device = any(row[section.place("device_ns")] for row in section.rows)
    at, share = map(section.place, ("device_ns", "device_share") if on_device else ("self_ns", "host_share"))
    measured = [(int(row[at] or 0), row) for row in section.rows if row[at]]
    if not measured:
        return []
    measured.sort(key=lambda bar: -bar[0])  # in any order of the table
    most = measured[0][0]
    bars = []
    for self_ns, row in measured[:_MOST_BARS]:
        value = f"{format_short(self_ns)} · {shown_cell(row[share], Unit.SHARE)}"
        bars.append(Bar(_label(section, row), value, (("one", 0.0, _share(self_ns, most), value),)))
    caption = "Self time, without what runs inside, and its share of that of all operations."
    if on_device:
        caption = "The kernels and copies that each operation launched, and their share of all."
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
_HOST_PARTS = (
    ("host_ns", "one", "host"),
    ("wait_ns", "two", "waits"),
    ("untraced_ns", "none", "not recorded"),
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
        *_stacked(devices, _IDLE_PARTS, "What idle devices wait for", "Each bar is the idle time, by its cause."),
    ]


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


def _kernels(section: Section) -> list[Plot]:
    at, share = section.place("total_ns"), section.place("kernel_share")
    most = max((int(row[at] or 0) for row in section.rows), default=0)
    bars = []
    for row in section.rows[:_MOST_BARS]:
        amount = int(row[at] or 0)
        value = f"{format_short(amount)} · {shown_cell(row[share], Unit.SHARE)}"
        bars.append(Bar(folded(str(row[0])), value, (("one", 0.0, _share(amount, most), value),)))
    caption = "The sum of the durations of each kernel or copy, and its share of all."
    return [Plot("Kernels and copies", caption, bars)] if bars else []


def _step_parts(section: Section) -> list[Plot]:
    on_device = any(row[section.place("compute_ns")] is not None for row in section.rows)
    caption = "Each bar is a step; all bars have one scale."
    return _stacked(
        section, _DEVICE_PARTS if on_device else _HOST_PARTS, "What steps were spent on", caption, _step_name
    )


def _step_name(row: Sequence[Cell]) -> str:
    return one_line(str(row[0]))


def _host_late(section: Section) -> list[Plot]:
    at = section.place("time_ns")
    most = max((int(row[at] or 0) for row in section.rows), default=0)
    several = len({row[0] for row in section.rows}) > 1
    bars = []
    for row in sorted(section.rows, key=lambda row: -int(row[at] or 0))[:_MOST_BARS]:
        amount = int(row[at] or 0)
        value = f"{format_short(amount)} · {shown_cell(row[section.place('idle_share')], Unit.SHARE)}"
        label = _label(section, row) if several else folded(str(row[section.place("name")]))
        bars.append(Bar(label, value, (("two", 0.0, _share(amount, most), value),)))
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
    "kernels": _kernels,
    "steps": _steps,
    "step_parts": _step_parts,
    "device": _device,
    "host_late": _host_late,
    "ranks": _ranks,
    "collectives": _collectives,
}

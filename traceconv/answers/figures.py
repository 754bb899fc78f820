"""Figures of tables: bars for the first rows of a table, and a strip of the whole time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from msgspec import Struct

from traceconv.answers.device_time import CAUSES
from traceconv.answers.section import NO_NAME, Activity, Cell, Section, Unit, shown_cell
from traceconv.answers.steps import STEPS
from traceconv.io.folders import natural
from traceconv.io.shown import one_line, quantity, shortened, told_apart
from traceconv.model.numbers import decode_json, format_short

_MOST_BARS = 15
_LONGEST_LABEL = 2000
_BINS = 12  # the most bins of steps
_MOST_TRACKS = 4
_MOST_STEPS = 1000  # the most steps that are drawn one by one


#: The arguments of a C++ template, without others inside; and from which length on names are shown without them.
_TEMPLATE, _LONG_NAME = re.compile(r"<[^<>]*>"), 60
#: The most characters of a name: two lines of a figure, three of a table.
_LONGEST_NAME = 80


class Bar(Struct, frozen=True):
    """One row of a plot.

    Attributes:
        label: the text before it.
        value: the text after it.
        parts: the class, the start and the width (per cent), and the description of each part.
        outline: an area instead, as the path of an SVG of 100 x 100 units; "" without one.
    """

    label: str
    value: str
    parts: tuple[tuple[str, float, float, str], ...] = ()
    outline: str = ""


class Plot(Struct, frozen=True):
    """A plot of horizontal bars; the legend has the classes of parts and their meaning, if there are several."""

    title: str
    caption: str
    bars: list[Bar]
    legend: tuple[tuple[str, str], ...] = ()


def readable(names: Sequence[str]) -> list[str]:
    """Return names without the arguments of C++ templates and of a readable length, which differ where the names do."""
    short = {name: shortened(_folded(name), _LONGEST_NAME) for name in names}
    equal = Counter(short.values())
    kept = [cut if equal[cut] == 1 else shortened(name, _LONGEST_NAME) for name, cut in short.items()]
    return list(map(dict(zip(short, told_apart(list(short), kept), strict=True)).__getitem__, names))


def _folded(name: str) -> str:
    """Return a long name without the arguments of its C++ templates: "void f<...>(...)"."""
    if len(name) <= _LONG_NAME:
        return name
    before, kept = "", name
    while before != kept:
        before, kept = kept, _TEMPLATE.sub("\0", kept)
    return re.sub("\0+", "<...>", kept)


def figures(section: Section) -> list[Plot]:
    """Return the plots of a table."""
    return _PLOTS[section.name](section) if section.name in _PLOTS else []


_Row = tuple[Cell, ...]


def _most(rows: Sequence[_Row], amount: Callable[[_Row], int], which: str) -> tuple[list[_Row], str]:
    """Return the rows with the largest amounts, as many as are drawn, in their order; and a sentence if not all are."""
    if len(rows) <= _MOST_BARS:
        return list(rows), ""
    kept = sorted(sorted(range(len(rows)), key=lambda at: -amount(rows[at]))[:_MOST_BARS])
    return [rows[at] for at in kept], f" {_MOST_BARS} of {len(rows)} are drawn: the {which} ones."


def _label(section: Section, row: _Row) -> str:
    """Return the label of a row: its first texts."""
    texts = []
    for at, column in enumerate(section.columns):
        if column.unit is not Unit.TEXT:
            break
        texts.append(section.shown(row, at, _LONGEST_LABEL))
    return " · ".join(filter(None, texts)) or NO_NAME


def _share(part: float, whole: float) -> float:
    return round(100 * part / whole, 3) if whole else 0.0


def _outline(heights: Sequence[float], left: float, width: float) -> str:
    """Return the path around columns of equal width (per cent) side by side, whose heights are from 0 to 1."""
    ends = [f"{left + at * width:.6g}" for at in range(len(heights) + 1)]
    columns = "".join(f"V{100 - 100 * height:.3g}H{end}" for height, end in zip(heights, ends[1:], strict=True))
    return f"M{ends[0]} 100{columns}V100Z"


def _bars(rows: Sequence[tuple[str, int, Cell]], css: str = "one") -> list[Bar]:
    """Return a bar for each label, time (ns) and share, as long as its part of the longest one."""
    most = max((amount for _, amount, _ in rows), default=0)
    labels = readable([label for label, _, _ in rows[:_MOST_BARS]])
    bars = []
    for label, (_, amount, share) in zip(labels, rows, strict=False):
        value = " · ".join(filter(None, (format_short(amount), shown_cell(share, Unit.SHARE))))
        bars.append(Bar(label, value, ((css, 0.0, _share(amount, most), ""),)))
    return bars


def _operations(section: Section) -> list[Plot]:
    on_device = any(row[section.place("device_ns")] for row in section.rows)
    at, share = map(section.place, ("device_ns", "device_share") if on_device else ("self_ns", "host_share"))
    # In any order of the table.
    measured = sorted((row for row in section.rows if row[at]), key=lambda row: -int(row[at] or 0))
    if not measured:
        return []
    caption = "Self time, without what runs inside, and its share of that of all operations."
    if on_device:
        caption = "The kernels and copies that each operation launched, and their share of all."
    bars = _bars([(_label(section, row), int(row[at] or 0), row[share]) for row in measured])
    return [Plot("Where the time goes", caption, bars)]


def _steps(section: Section) -> list[Plot]:
    """Return plots of the durations of steps of each track: a histogram, then each step by its start."""
    name, track, start, length, state = map(section.place, ("step", "track", "start_ns", "duration_ns", "state"))
    plots = []
    owners = list(dict.fromkeys(row[track] for row in section.rows))
    more = f" {_MOST_TRACKS} of {len(owners)} tracks are drawn." if len(owners) > _MOST_TRACKS else ""
    for owner in owners[:_MOST_TRACKS]:
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
                (("one", 0.0, _share(count, max(counts)), ""),),
            )
            for bin_, count in enumerate(counts)
        ]
        caption = f"{one_line(str(owner))}: how many of the {len(rows)} steps took how long.{more}"
        plots.append(Plot("How long steps take", caption, bars))
        if len(rows) > _MOST_STEPS or any(row[start] is None for row in rows):
            continue
        begin = min(int(row[start] or 0) for row in rows)
        whole = max(int(row[start] or 0) + int(row[length] or 0) for row in rows) - begin
        parts = tuple(
            (
                "two" if row[state] == "outlier" else "even" if number % 2 else "odd",
                _share(int(row[start] or 0) - begin, whole),
                _share(int(row[length] or 0), whole),
                f"{one_line(str(row[name]))}: {format_short(int(row[length] or 0))}",
            )
            for number, row in enumerate(rows)
        )
        bars = [Bar("steps", format_short(whole), parts)]
        caption = f"{one_line(str(owner))}: each step from its start to its end."
        plots.append(Plot("Steps over time", caption, bars, (("odd", "steps"), ("two", "outliers"))))
    return plots


_DEVICE_PARTS = (
    ("compute_ns", "one", "computation"),
    ("exposed_comm_ns", "two", "exposed communication"),
    ("exposed_copy_ns", "three", "exposed copies"),
    ("idle_ns", "none", "idle"),
)
_HOST_PARTS = (
    ("host_ns", "one", "host"),
    ("exposed_comm_ns", "three", "exposed communication"),
    ("wait_ns", "two", "waits"),
    ("untraced_ns", "none", "not recorded"),
)
_IDLE_PARTS = tuple(
    (f"{cause}_ns", css, cause.replace("_", " "))
    for cause, css in zip(CAUSES, ("two", "three", "one", "four", "none"), strict=True)
)


def _device(section: Section) -> list[Plot]:
    queue, idle = section.place("queue"), section.place("idle_ns")
    rows, more = _most([row for row in section.rows if not row[queue]], lambda row: int(row[idle] or 0), "most idle")
    devices = replace(section, rows=rows)
    return [
        *_stacked(devices, _DEVICE_PARTS, "Busy and idle", f"Each bar is the window of a device.{more}"),
        *_stacked(
            devices, _IDLE_PARTS, "What idle devices wait for", f"Each bar is the idle time, by its cause.{more}"
        ),
    ]


def _stacked(
    section: Section,
    kinds: Sequence[tuple[str, str, str]],
    title: str,
    caption: str,
    label: Callable[[_Row], str] | None = None,
) -> list[Plot]:
    """Return a plot with a bar for each row, with a part for each column of `kinds`."""
    places = [section.place(column) for column, _, _ in kinds]
    rows, more = _most(section.rows, lambda row: sum(int(row[place] or 0) for place in places), "longest")
    measured = [([int(row[place] or 0) for place in places], row) for row in rows]
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
    legend = tuple((css, words) for _, css, words in kinds)
    return [Plot(title, caption + more, bars, legend)] if bars else []


def _kernels(section: Section) -> list[Plot]:
    name, at, share = map(section.place, ("name", "total_ns", "kernel_share"))
    bars = _bars([(section.shown(row, name), int(row[at] or 0), row[share]) for row in section.rows])
    caption = "The sum of the durations of each kernel or copy, and its share of all."
    return [Plot("Kernels and copies", caption, bars)] if bars else []


def _step_parts(section: Section) -> list[Plot]:
    on_device = any(row[section.place("compute_ns")] is not None for row in section.rows)
    kinds = _DEVICE_PARTS if on_device else _HOST_PARTS
    caption = "Each bar is a step; all bars have one scale."
    name, device, track, start = map(section.place, ("name", "device", "track", "start_ns"))
    owners = [str(row[device] or row[track] or "") for row in section.rows]
    several = len(set(owners)) > 1
    repeated = len(set(zip(owners, (row[name] for row in section.rows), strict=True))) < len(owners)

    def label(row: _Row) -> str:
        at = f" at {format_short(int(row[start] or 0))}" if repeated and row[start] is not None else ""
        return one_line(f"{row[name]}{at}{f' · {row[device] or row[track]}' if several else ''}")

    return _stacked(section, kinds, "What steps were spent on", caption, label)


def _host_late(section: Section) -> list[Plot]:
    at, share, name = map(section.place, ("time_ns", "idle_share", "name"))
    several = len({row[0] for row in section.rows}) > 1
    rows = sorted(section.rows, key=lambda row: -int(row[at] or 0))
    labels = [_label(section, row) if several else section.shown(row, name) for row in rows]
    labelled = [(label, int(row[at] or 0), row[share]) for label, row in zip(labels, rows, strict=True)]
    caption = "Time in which a device had nothing to do, and its share of idle."
    return [Plot("What late hosts did", caption, _bars(labelled, "two"))]


def _ranks(section: Section) -> list[Plot]:
    kinds = (("caused_ns", "two", "caused"), ("suffered_ns", "one", "suffered"))
    caption = "Of each rank the waits that it caused, and those that it suffered; all bars have one scale."
    return _stacked(section, kinds, "Who makes the others wait", caption, lambda row: f"rank {row[0]}")


def _collectives(section: Section) -> list[Plot]:
    kinds = (("transfer_ns", "one", "transfer"), ("longest_wait_ns", "two", "waited"))
    caption = "The collectives, and the rank that came last to them; all bars have one scale."
    last = section.place("last_rank")

    def label(row: _Row) -> str:
        return f"{row[0]} at {format_short(int(row[1] or 0))}, last: {'not known' if row[last] is None else row[last]}"

    return _stacked(section, kinds, "Transfer and waiting", caption, label)


def _history(section: Section) -> list[Plot]:
    """Return a plot with a row for each operation: a column for each run, and the first and last level."""
    first, last, changes, values = map(section.place, ("first_ns", "last_ns", "changes", "values_ns"))
    rows, _ = _most(section.rows, lambda row: int(row[changes] or 0), "")
    bars = []
    for row, label in zip(rows, readable([_label(section, row) for row in rows]), strict=True):
        times = decode_json(str(row[values]).encode())
        least, most = min(times), max(times)
        heights = [0.1 + 0.9 * (time - least) / (most - least) if most > least else 0.5 for time in times]
        level = format_short(int(row[last] or 0))
        text = f"{format_short(int(row[first] or 0))} → {level}" if row[changes] else level
        bars.append(Bar(label, text, outline=_outline(heights, 0.0, 100 / len(heights))))
    caption = (
        "A column for each run, in order; the columns of each operation reach from its shortest run to its longest one."
    )
    return [Plot("What each run took", caption, bars)]


# -- The strip: the whole time at one look ----------------------------------------------------------------------------

#: The most lanes of a strip, and the least of them that are for steps if there are more.
_MOST_LANES, _LEAST_OF_STEPS = 24, 8


class _Lane(Struct, frozen=True):
    """A lane of a strip: its label, from when to when it lasts, ns, and the text behind it; of shares their mean.

    Attributes:
        steps: the name, start and duration of each step, ns.
        shares: the busy share of each of its equal parts, from 0 to 1.
    """

    label: str
    start: int
    end: int
    value: str = ""
    steps: Sequence[tuple[str, int, int]] = ()
    shares: Sequence[float] = ()

    def bar(self, begin: int, whole: int) -> Bar:
        """Return it as a row of a plot that begins at an instant and lasts some time, ns."""
        if not self.shares:
            parts = [
                (("odd", "even")[number % 2], _share(start - begin, whole), _share(length, whole), name)
                for number, (name, start, length) in enumerate(self.steps)
            ]
            return Bar(self.label, self.value, tuple(parts))
        width = (self.end - self.start) / len(self.shares)
        busy = f"{_share(sum(self.shares) * width, whole):.1f} % busy"
        outline = _outline(self.shares, _share(self.start - begin, whole), _share(width, whole))
        return Bar(self.label, busy, outline=outline)


def strip(steps: Section | None, activities: Sequence[Activity]) -> Plot | None:
    """Return a plot of the whole time: the steps of each track, then how busy each device is; None without any.

    Args:
        steps: the table `steps`.
        activities: how busy devices are over time.
    """
    of_steps = _lanes_of_steps(steps) if steps else []
    busy = [
        _Lane(
            one_line(activity.name),
            activity.start_ns,
            activity.start_ns + activity.window_ns,
            shares=activity.shares,
        )
        for activity in activities
    ]
    lanes = of_steps[: max(_MOST_LANES - len(busy), _LEAST_OF_STEPS)]
    lanes += busy[: _MOST_LANES - len(lanes)]
    if not lanes:
        return None
    begin, end = min(lane.start for lane in lanes), max(lane.end for lane in lanes)
    hidden = len(of_steps) + len(busy) - len(lanes)
    more = f"; {hidden} more rows are not drawn" if hidden else ""
    caption = f"{format_short(end - begin)} from the first to the last of them{more}."
    if busy:
        caption += " Heights are busy shares, numbers those of the whole time."
    return Plot("The run", caption, [lane.bar(begin, end - begin) for lane in lanes])


def _lanes_of_steps(section: Section) -> list[_Lane]:
    name, track, start, length = map(section.place, ("step", "track", "start_ns", "duration_ns"))
    of_track: dict[str, list[tuple[str, int, int]]] = {}
    for row in section.rows:
        if row[start] is not None and row[length] is not None:
            begin, lasted = int(row[start] or 0), int(row[length] or 0)
            said = f"{one_line(str(row[name]))}: {format_short(lasted)}"
            of_track.setdefault(str(row[track]), []).append((said, begin, lasted))
    most = max(_MOST_STEPS // max(len(of_track), 1), 1)
    return [
        _Lane(
            f"steps of {one_line(owner)}",
            min(start for _, start, _ in parts),
            max(start + lasted for _, start, lasted in parts),
            quantity(len(parts), STEPS) + (f", {most} drawn" if len(parts) > most else ""),
            steps=[parts[at * len(parts) // most] for at in range(most)] if len(parts) > most else parts,
        )
        for owner, parts in sorted(of_track.items(), key=lambda lane: natural(lane[0]))
    ]


_PLOTS: dict[str, Callable[[Section], list[Plot]]] = {
    "operations": _operations,
    "kernels": _kernels,
    "steps": _steps,
    "step_parts": _step_parts,
    "device": _device,
    "host_late": _host_late,
    "ranks": _ranks,
    "collectives": _collectives,
    "history": _history,
}

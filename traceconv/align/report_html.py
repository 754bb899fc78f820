"""Show the report of an alignment as a page for people without knowledge of clocks.

It is one file without scripts and external resources, so that it can be sent by mail and opened years later. The
template `report.html.j2` holds texts and layout, and gets the report for programs. This module computes the pictures as
numbers in px; `report_figures.html.j2` draws and labels them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from traceconv.align.estimate import Method
from traceconv.io.shown import lines
from traceconv.model.clocks import Verdict
from traceconv.model.numbers import format_drift, format_long, format_short, format_time

Json = dict[str, Any]
Point = tuple[float, float]

#: The verdicts on a comparison that say nothing against another relation of the clocks.
_NOTHING_FOUND = (Verdict.AMBIGUOUS, Verdict.INSUFFICIENT, Verdict.UNVERIFIED)
_WIDTH, _HEIGHT, _LOW_HEIGHT = 860, 300, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 18, 34, 46
_ROW = 34
_ROW_LABEL = 230
_LETTERS = 28  # the width of the label of a row
_ROOM = 76  # the least distance between the middles of labels
_TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))


def page(report: Json) -> str:
    """Return the page for a report as `document` or `refusal_document` makes it."""
    environment = templates("align")
    environment.filters.update(
        short=_short,
        exact=format_time,
        shift=_shift,
        drift=lambda ppm: format_drift(ppm).replace("-", "−"),
        grouped="{:,}".format,
    )
    environment.tests["refused"] = lambda verdict: Verdict(verdict).refused
    pictures = {"timeline": timeline, "residuals": residuals, "landscape": landscape, "region": region}
    environment.globals.update(pictures=pictures, Method=Method, Verdict=Verdict, verdict_of=_verdict_of)
    environment.globals["found_nothing"] = _found_nothing
    return environment.get_template("report.html.j2").render(report=report)


def templates(*folders: str) -> Environment:
    """Return the environment of the templates of packages of traceconv; values are escaped."""
    return Environment(
        loader=ChoiceLoader([PackageLoader("traceconv", folder) for folder in folders]),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _shown(value: object) -> object:
    """Return a value as a page shows it: what must not be shown in a text is escaped."""
    return lines(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _short(ns: float | None) -> str:
    """Return a time with three digits."""
    return "not known" if ns is None else format_short(ns).replace("-", "−")


def _shift(ns: int) -> str:
    """Return an offset (ns) with its sign, short."""
    return f"{'+' if ns > 0 else ''}{format_long(ns).replace('-', '−')}"


def _verdict_of(file: str, clock: str, report: Json) -> str | None:
    """Return the verdict on a clock that was not placed; None if it was not compared."""
    for pair in report["pairs"]:
        if (file, clock) in ((pair[side]["file"], pair[side]["clock"]) for side in "xy"):
            return str(pair["verdict"] if Verdict(pair["verdict"]).refused else report["verdict"])
    return None


def _found_nothing(pair: Json, report: Json) -> bool:
    """Return whether a comparison only checked clocks that were placed without it, and tells nothing about them."""
    if report["refusal"] or pair["used"] or Verdict(pair["verdict"]) not in _NOTHING_FOUND:
        return False
    placed = {
        (one["file"], clock["name"]): clock["map"]["verdict"]
        for one in report["inputs"]
        for clock in one["clocks"]
        if clock["map"]
    }
    verdicts = [placed.get((pair[side]["file"], pair[side]["clock"])) for side in "xy"]
    return all(verdict is not None and not Verdict(verdict).refused for verdict in verdicts)


# -- charts -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Axis:
    """One direction of a chart.

    Attributes:
        low, high: the values at its ends.
        size: the divisor of values for tick labels.
        unit: the unit of the tick labels.
        ticks: the approximate number of ticks.
    """

    low: float
    high: float
    size: float = 1.0
    unit: str = ""
    ticks: int = 6

    def share(self, value: float) -> float:
        """Return the position of a value between the ends, from 0 to 1."""
        return (value - self.low) / (self.high - self.low)

    def marks(self) -> list[tuple[float, str]]:
        """Return values at round numbers, and their labels."""
        low, high = self.low / self.size, self.high / self.size
        step = _round_step((high - low) / self.ticks)
        digits = max(0, -math.floor(math.log10(step)))
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        return [(i * step * self.size, _number(i * step, digits)) for i in range(first, last + 1)]


def time_axis(low: float, high: float, ticks: int = 6) -> Axis:
    """Return an axis of times (ns), labelled in a unit that suits its length."""
    if high <= low:
        low, high = low - 1.0, high + 1.0
    size, unit = next((size, unit) for size, unit in _TIMES if max(abs(low), abs(high)) >= 2 * size or size == 1.0)
    return Axis(low, high, size, unit, ticks)


def _padded(values: Sequence[float], share: float) -> Point:
    """Return the least and greatest value, with a margin on both sides."""
    low, high = min(values), max(values)
    margin = (high - low) * share or max(abs(high) * share, 1e-9)
    return low - margin, high + margin


def _round_step(step: float) -> float:
    power = 10.0 ** math.floor(math.log10(step))
    return power * next(factor for factor in (1, 2, 5, 10) if factor * power >= step * 0.999)


def _number(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}"
    return text.replace("-", "−") if float(text) else text.lstrip("-")


@dataclass(frozen=True, slots=True)
class _Plane:
    """The area between two axes."""

    x: Axis
    y: Axis
    height: int = _HEIGHT

    def at(self, x: float, y: float) -> Point:
        """Return the position of a point in px."""
        bottom = self.height - _BOTTOM
        across = _LEFT + self.x.share(x) * (_WIDTH - _LEFT - _RIGHT)
        return round(across, 1), round(bottom - self.y.share(y) * (bottom - _TOP), 1)

    def all(self, points: Sequence[Point]) -> list[Point]:
        """Return the positions of points in px."""
        return [self.at(*point) for point in points]

    def frame(self) -> Json:
        """Return the frame and tick labels for the template."""
        return {
            **_frame(self.height, _LEFT, _TOP),
            "x_unit": self.x.unit,
            "y_unit": self.y.unit,
            "x_ticks": [(self.at(value, self.y.low)[0], label) for value, label in self.x.marks()],
            "y_ticks": [(self.at(self.x.low, value)[1], label) for value, label in self.y.marks()],
        }


def _frame(height: int, left: int, top: int) -> Json:
    """Return the size of a picture, and the position of the data in it."""
    ends = {"left": left, "right": _WIDTH - _RIGHT, "top": top, "bottom": height - _BOTTOM}
    return {"width": _WIDTH, "height": height, **ends}


# -- the pictures ---------------------------------------------------------------------------------------------------


def timeline(inputs: Sequence[Json]) -> Json | None:
    """Return a bar for the time span of each recording on trace time; None if there are fewer than two."""
    placed = [(one["file"], clock["map"]) for one in inputs for clock in one["clocks"] if clock["map"]]
    if len(placed) < 2:
        return None
    times = [(place["begin"]["trace_time_ns"], place["end"]["trace_time_ns"]) for _, place in placed]
    zero = min(begin for begin, _ in times)
    axis = time_axis(0.0, max(end for _, end in times) - zero)
    frame = _frame(len(placed) * _ROW + 6 + _BOTTOM, _ROW_LABEL, 4)

    def across(time: float) -> float:
        return _ROW_LABEL + axis.share(time) * (_WIDTH - _RIGHT - _ROW_LABEL)

    bars = []
    for row, ((name, _), (begin, end)) in enumerate(zip(placed, times, strict=True)):
        x = across(begin - zero)
        width = max(across(end - zero) - x, 2)
        bars.append({"name": _cut(name), "x": round(x, 1), "y": row * _ROW + 8, "width": round(width, 1)})
    ticks = [(round(across(value), 1), label) for value, label in axis.marks()]
    return {**frame, "x_unit": axis.unit, "x_ticks": ticks, "y_ticks": [], "bars": bars, "thick": _ROW - 12}


def _cut(label: str) -> str:
    return label if len(label) <= _LETTERS else f"{label[: _LETTERS // 2]}…{label[-(_LETTERS // 2) :]}"


def residuals(pair: Json) -> Json:
    """Return the residuals of a pair over time, without outliers."""
    residuals = pair["residuals_over_time"]
    values = residuals["residual_ns"]
    reach = max(1.3 * min(max(abs(value) for value in values), 2 * pair["residuals"]["p99_ns"]), 10.0)
    inside = [point for point in zip(residuals["time_ns"], values, strict=True) if abs(point[1]) <= reach]
    plane = _Plane(time_axis(*_padded([time for time, _ in inside], 0.02)), time_axis(-reach, reach))
    dots = plane.all(inside)
    return {**plane.frame(), "zero": plane.at(0, 0)[1], "dots": dots, "outside": len(values) - len(dots)}


def landscape(pair: Json) -> list[Json]:
    """Return the landscapes of a pair: all tried offsets, then, if there are any, those around the best one."""
    curves = [curve for curve in (pair["landscape"]["all"], pair["landscape"]["near"]) if curve]
    rivals = [rival["offset_ns"] for rival in pair["rivals"]]
    return [_peaks(curve, rivals, labelled=curve is curves[-1]) for curve in curves]


def _peaks(curve: Json, rivals: Sequence[int], *, labelled: bool) -> Json:
    points = list(zip(curve["offset_ns"], curve["score"], strict=True))
    low, high = points[0][0], points[-1][0]
    least, most = min(curve["score"]), max(curve["score"])
    up = Axis(least, most + 0.28 * ((most - least) or 1.0), ticks=4)
    plane = _Plane(time_axis(low, high, 8), up, _LOW_HEIGHT)
    seen = [(rival, plane.at(rival, _height(points, rival))) for rival in rivals if low <= rival <= high]
    best = plane.at(0.0, _height(points, 0)) if low <= 0 <= high else None
    return {
        **plane.frame(),
        "curve": plane.all(points),
        "rivals": [place for _, place in seen],
        "best": best,
        "labelled": labelled,
        "labels": _apart(seen, best[0]) if best and labelled else [],
    }


def _apart(places: Sequence[tuple[int, Point]], best: float) -> list[tuple[int, Point]]:
    """Return the positions that have room for a label; they are given strongest first."""
    taken, apart = [best], []
    for value, (x, y) in places:
        if all(abs(x - other) > _ROOM for other in taken):
            taken.append(x)
            apart.append((value, (x, y)))
    return apart


def _height(points: Sequence[Point], x: float) -> float:
    """Return the height of the curve at the highest of the points around x."""
    nearest = min(range(len(points)), key=lambda row: abs(points[row][0] - x))
    return max(score for _, score in points[max(nearest - 1, 0) : nearest + 2])


def region(pair: Json) -> Json:
    """Return the region of a pair: offset on the horizontal axis, drift on the vertical one."""
    corners = [(corner["offset_ns"], corner["drift_ppm"]) for corner in pair["region"]]
    answer = (0.0, pair["drift_ppm"])
    across, up = (_padded(values, 0.15) for values in zip(*corners, answer, strict=True))
    plane = _Plane(time_axis(*across), Axis(*up, ticks=5))
    return {**plane.frame(), "corners": plane.all(corners), "answer": plane.at(*answer)}

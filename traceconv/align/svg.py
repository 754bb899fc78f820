"""Charts as SVG: axes, dots, curves, areas, bars. Colours come from the style of the page around them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 860, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 18, 34, 46
_ROW = 34
_ROW_LABEL = 230
_LETTER = 7.2  # the width of a letter of a label, in px
_TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Axis:
    """One direction of a chart.

    Attributes:
        label: what it shows, with the unit.
        low, high: the values at its ends.
        unit: what a value is divided by for its tick labels.
        ticks: how many there should be, about; 0 for none.
    """

    label: str
    low: float
    high: float
    unit: float = 1.0
    ticks: int = 6

    def share(self, value: float) -> float:
        """Where a value is between the ends, from 0 to 1."""
        return (value - self.low) / (self.high - self.low)

    def marks(self) -> list[tuple[float, str]]:
        """Values at round numbers, and their labels."""
        if not self.ticks:
            return []
        low, high = self.low / self.unit, self.high / self.unit
        step = _round_step((high - low) / self.ticks)
        digits = max(0, -math.floor(math.log10(step)))
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        return [(i * step * self.unit, _number(i * step, digits)) for i in range(first, last + 1)]


def time_axis(label: str, low: float, high: float, ticks: int = 6) -> Axis:
    """An axis of ns, in the unit that suits its length."""
    if high <= low:
        low, high = low - 1.0, high + 1.0
    unit, name = next((size, name) for size, name in _TIMES if max(abs(low), abs(high)) >= 2 * size or size == 1.0)
    return Axis(f"{label}, {name}", low, high, unit, ticks)


def padded(values: Sequence[float], share: float = 0.06) -> tuple[float, float]:
    """The least and greatest value with a little room around."""
    low, high = min(values), max(values)
    room = (high - low) * share or max(abs(high) * share, 1e-9)
    return low - room, high + room


def _round_step(step: float) -> float:
    power = 10.0 ** math.floor(math.log10(step))
    return power * next(factor for factor in (1, 2, 5, 10) if factor * power >= step * 0.999)


def _number(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}"
    return text.replace("-", "−") if float(text) else text.lstrip("-")


@dataclass(frozen=True, slots=True)
class Plane:
    """The space between two axes; what is drawn on it is text."""

    x: Axis
    y: Axis
    height: int = HEIGHT

    def at(self, x: float, y: float) -> tuple[float, float]:
        """The place of a point in px."""
        bottom = self.height - _BOTTOM
        across = _LEFT + self.x.share(x) * (WIDTH - _LEFT - _RIGHT)
        return across, bottom - self.y.share(y) * (bottom - _TOP)

    def dots(self, points: Points, css: str) -> str:
        """Small round dots: one path, so that thousands stay small."""
        places = (self.at(x, y) for x, y in points)
        return f'<path class="{css}" d="{"".join(f"M{x:.1f} {y:.1f}h0" for x, y in places)}"/>'

    def line(self, points: Points, css: str, *, closed: bool = False) -> str:
        """A line through points, or the area within them."""
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in (self.at(*point) for point in points))
        return f'<path class="{css}" d="M{path}{"Z" if closed else ""}"/>'

    def area(self, points: Points, css: str) -> str:
        """What is below a line."""
        low = self.y.low
        return self.line([(points[0][0], low), *points, (points[-1][0], low)], css, closed=True)

    def across(self, y: float, css: str) -> str:
        """A horizontal line from end to end."""
        return self.line([(self.x.low, y), (self.x.high, y)], css)

    def upright(self, x: float, css: str) -> str:
        """A vertical line from end to end."""
        return self.line([(x, self.y.low), (x, self.y.high)], css)

    def ring(self, x: float, y: float, css: str, radius: float = 5) -> str:
        """A circle that marks a place."""
        across, down = self.at(x, y)
        return f'<circle class="{css}" cx="{across:.1f}" cy="{down:.1f}" r="{radius}"/>'

    def words(self, x: float, y: float, text: str, css: str, up: float = 10) -> str:
        """Text above a point, kept inside of the chart."""
        across, down = self.at(x, y)
        half = len(text) * _LETTER / 2
        across = min(max(across, _LEFT + half), WIDTH - _RIGHT - half)
        return f'<text class="{css}" x="{across:.1f}" y="{max(down - up, _TOP - 6):.1f}">{escape(text)}</text>'

    def chart(self, marks: Sequence[str], title: str) -> str:
        """The whole picture: the axes, and the marks on them."""
        grid = "".join(self._x_tick(*tick) for tick in self.x.marks()) + "".join(
            self._y_tick(*tick) for tick in self.y.marks()
        )
        bottom = self.height - _BOTTOM
        names = (
            f'<text class="axis" x="{(WIDTH + _LEFT - _RIGHT) / 2}" y="{self.height - 8}">{escape(self.x.label)}</text>'
            f'<text class="axis start" x="4" y="16">{escape(self.y.label)}</text>'
        )
        frame = f'<path class="frame" d="M{_LEFT} {_TOP}V{bottom}H{WIDTH - _RIGHT}"/>'
        return _picture(self.height, title, f"{grid}{frame}{names}{''.join(marks)}")

    def _x_tick(self, value: float, label: str) -> str:
        x, bottom = self.at(value, self.y.low)
        return (
            f'<path class="grid" d="M{x:.1f} {bottom:.1f}V{_TOP}"/>'
            f'<text class="tick" x="{x:.1f}" y="{bottom + 16:.1f}">{label}</text>'
        )

    def _y_tick(self, value: float, label: str) -> str:
        x, y = self.at(self.x.low, value)
        return (
            f'<path class="grid" d="M{x:.1f} {y:.1f}H{WIDTH - _RIGHT}"/>'
            f'<text class="tick end" x="{x - 8:.1f}" y="{y + 4:.1f}">{label}</text>'
        )


def bars(rows: Sequence[tuple[str, float, float]], axis: Axis, title: str) -> str:
    """Intervals below each other: a label, the begin and the end of each."""
    space = WIDTH - _ROW_LABEL - _RIGHT
    bottom = len(rows) * _ROW + 6
    parts = []
    for value, label in axis.marks():
        x = _ROW_LABEL + axis.share(value) * space
        parts.append(f'<path class="grid" d="M{x:.1f} 4V{bottom}"/>')
        parts.append(f'<text class="tick" x="{x:.1f}" y="{bottom + 16}">{label}</text>')
    for number, (label, begin, end) in enumerate(rows):
        x = _ROW_LABEL + axis.share(begin) * space
        width = max((axis.share(end) - axis.share(begin)) * space, 2)
        y = number * _ROW + 8
        parts.append(f'<rect class="bar" x="{x:.1f}" y="{y}" width="{width:.1f}" height="{_ROW - 12}" rx="3"/>')
        parts.append(f'<text class="label end" x="{_ROW_LABEL - 12}" y="{y + 15}">{escape(_cut(label))}</text>')
    middle = _ROW_LABEL + space / 2
    parts.append(f'<text class="axis" x="{middle}" y="{bottom + 38}">{escape(axis.label)}</text>')
    return _picture(bottom + 46, title, "".join(parts))


def _cut(label: str) -> str:
    most = int(_ROW_LABEL / _LETTER) - 3
    return label if len(label) <= most else f"{label[: most // 2]}…{label[-(most // 2) :]}"


def _picture(height: float, title: str, inside: str) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(title)}">{inside}</svg>'

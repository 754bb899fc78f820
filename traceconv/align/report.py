"""Report an alignment as a JSON document, for programs, for bug reports, and for the page that shows it.

The document follows schemas/alignment.schema.json. Times are integer ns; the schema states the origin of numbers that
do not count from the zero of their clock. Pictures get a limited number of points: of a landscape the highest score of
each interval of offsets, of residuals evenly spaced ones and the greatest.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict

from traceconv import __version__
from traceconv.align import Alignment, ReceiptLine
from traceconv.align.checks import Causality
from traceconv.align.estimate import Array, Estimate, Method, PairEstimate
from traceconv.align.geometry import F64
from traceconv.align.inputs import ClockInput
from traceconv.errors import AlignmentError, UsageError
from traceconv.io.output import as_json
from traceconv.io.shown import lines
from traceconv.model.clocks import DRIFT_UNIT, ClockDomain, ClockMap, Verdict, worse
from traceconv.model.numbers import format_drift, format_long, format_short, format_time
from traceconv.model.trace import Trace

if TYPE_CHECKING:
    from jinja2 import Environment


Json = dict[str, Any]

SCHEMA = "alignment.schema.json"
VERSION = 1
_POINTS, _NEAR_POINTS = 2000, 800
_LEAST_POINTS = 3
_FARTHEST = 200
_PAGES = (".html", ".htm")


def document(traces: Sequence[Trace], alignment: Alignment, checks: Causality) -> Json:
    """Return the report of traces that were put on one time axis."""
    inputs = [
        _input(
            trace,
            {clock: (maps[clock], line) for clock, line in zip(sorted(maps), lines, strict=True)},
            alignment.pairs,
            index,
            alignment.clock,
        )
        for index, (trace, maps, lines) in enumerate(zip(traces, alignment.maps, alignment.lines, strict=True))
    ]
    return _document(
        traces,
        str(reduce(worse, (Verdict(line.verdict) for line in alignment.receipt), Verdict.OK)),
        inputs,
        alignment.pairs,
        checks,
        clock=alignment.clock.describe(),
        hosts=[asdict(hosts) for hosts in alignment.hosts_apart],
        processes=alignment.together.as_json(),
    )


def _document(
    traces: Sequence[Trace],
    verdict: str,
    inputs: Sequence[Json],
    pairs: Sequence[PairEstimate],
    checks: Causality | None,
    **more: object,
) -> Json:
    return {
        "traceconv": __version__,
        "report_version": VERSION,
        "verdict": verdict,
        "refusal": None,
        "clock": None,
        "inputs": inputs,
        "pairs": [_pair(pair) for pair in pairs],
        "hosts": [],
        "processes": [],
        "causality": checks.as_json() if checks else [],
        "left_out": [{"file": file, "reason": reason} for trace in traces for file, reason in trace.left_out.items()],
        **more,
    }


def refusal_document(traces: Sequence[Trace], error: AlignmentError) -> Json:
    """Return the report of traces that were refused, with the estimates for their clocks and the checks of these."""
    pairs: Sequence[PairEstimate] = error.pairs
    inputs = [_input(trace, {}, pairs, index) for index, trace in enumerate(traces)]
    refusal = {"message": error.message, "hint": error.hint}
    return _document(traces, error.verdict, inputs, pairs, error.checks, refusal=refusal)


def check_ending(path: str | os.PathLike[str]) -> None:
    """Raise UsageError for a name that ends in neither .json nor .html; "-", standard output, gets JSON."""
    if not os.fspath(path).lower().endswith((".json", *_PAGES)) and path != "-":
        raise UsageError(
            f"--report {os.fspath(path)}: the name ends in neither .json nor .html",
            hint="a page to look at: --report align.html; for programs: --report align.json",
        )


def rendered(report: Json, path: str | os.PathLike[str]) -> bytes:
    """Return the bytes of a report for a file: JSON or a page, by the ending of its name.

    Raises:
        UsageError: the name ends in neither .json nor .html.
    """
    check_ending(path)
    if os.fspath(path).lower().endswith(_PAGES):
        return page(report).encode()
    return as_json(report).encode()


def _input(
    trace: Trace,
    placed: dict[int, tuple[ClockMap, ReceiptLine]],
    pairs: Sequence[PairEstimate],
    index: int,
    target: ClockDomain | None = None,
) -> Json:
    source = trace.sources[0]
    clocks = [_clock(ClockInput(index, clock, trace), placed.get(clock), pairs, target) for clock in trace.spans]
    return {
        "file": source.name,
        "format": source.format,
        "host": trace.host or None,
        "rank": source.rank,
        "world_size": source.world_size,
        "clocks": clocks,
    }


def _clock(
    side: ClockInput,
    placed: tuple[ClockMap, ReceiptLine] | None,
    pairs: Sequence[PairEstimate],
    target: ClockDomain | None,
) -> Json:
    domain, (first, last), zero_at = side.domain, side.span, None
    if placed and target and target.is_wall_clock and not domain.is_wall_clock and not domain.synthetic:
        zero_at = f"{datetime(1970, 1, 1) + timedelta(seconds=placed[0].offset_ns // 10**9)} UTC"
    return {
        "name": domain.name,
        "description": domain.describe(),
        "resolution_ns": domain.resolution_ns,
        "begin_ns": first,
        "end_ns": last,
        "map": _map(side, *placed, pairs, (first, last)) if placed else None,
        "zero_at": zero_at,
    }


def _map(
    side: ClockInput, clock_map: ClockMap, line: ReceiptLine, pairs: Sequence[PairEstimate], span: tuple[int, int]
) -> Json:
    bounds = [_bound_at(side, time, clock_map, line, pairs) for time in span]
    ends = [
        {"time_ns": time, "trace_time_ns": clock_map.at(time), "bound_ns": bound}
        for time, bound in zip(span, bounds, strict=True)
    ]
    return {
        "method": line.method,
        "verdict": line.verdict,
        "offset_ns": clock_map.offset_ns,
        "at_ns": clock_map.at_ns,
        "drift_ppm": line.drift_ppm,
        "bends": [
            {"at_ns": bend.at_ns, "offset_ns": bend.offset_ns, "drift_ppm": round(bend.drift * DRIFT_UNIT * 1e6, 4)}
            for bend in clock_map.bends
        ],
        "bound_ns": line.bound_ns,
        "two_hosts": line.two_hosts,
        "begin": ends[0],
        "end": ends[1],
        "matches": line.matches,
        "residual_ns": line.residual_ns,
        "warnings": list(line.warnings),
        "note": line.note or None,
    }


def _bound_at(
    side: ClockInput, time: int, clock_map: ClockMap, line: ReceiptLine, pairs: Sequence[PairEstimate]
) -> int | None:
    """Return the bound of a map at one time, ns; smaller than over all times if it rests on a region."""
    for pair in pairs:
        if side.key not in (pair.a.key, pair.b.key) or line.bound_ns is None or clock_map.bound_ns is None:
            continue
        bound = pair.clock_map.bound_ns if side.key == pair.a.key else pair.back_bound_ns
        if bound is None or not pair.estimate.chain.bounded:  # it rests on no region
            continue
        if clock_map.bound_ns >= bound and pair.carries(clock_map):
            low, high = _interval(pair, _on_x(pair, side, time))
            return min(line.bound_ns, line.bound_ns - bound + int(np.ceil(max(-low, high))) + 1)
    return line.bound_ns


def _x_and_y(pair: PairEstimate) -> tuple[tuple[ClockInput, int], tuple[ClockInput, int]]:
    """Return the two clocks of an estimate with their zeros, clock x first."""
    a, b = (pair.a, pair.zero_a), (pair.b, pair.zero_b)
    return (b, a) if pair.swapped else (a, b)


def _on_x(pair: PairEstimate, side: ClockInput, time: int) -> float:
    """Return a time of one of the two clocks as a time of clock x from its zero, ns."""
    (x, zero_x), (_, zero_y) = _x_and_y(pair)
    if side.key == x.key:
        return float(time - zero_x)
    return float(pair.estimate.chain.back(np.array([time - zero_y], np.float64), in_order=True)[0])


def _interval(pair: PairEstimate, x: float) -> tuple[float, float]:
    """Return the uncertainty of the line at a time of clock x: the distances below and above, ns."""
    chain = pair.estimate.chain
    low, high = chain.bounds(x)
    line = float(chain.map(np.array([x]))[0]) - x
    return float(low[0]) - line, float(high[0]) - line


def _pair(pair: PairEstimate) -> Json:
    estimate = pair.estimate
    (x, zero_x), (y, zero_y) = _x_and_y(pair)
    residuals = estimate.residuals
    return {
        "x": {"file": x.name, "clock": x.trace.clocks[x.clock].name, "zero_ns": zero_x},
        "y": {"file": y.name, "clock": y.trace.clocks[y.clock].name, "zero_ns": zero_y},
        "method": estimate.method,
        "verdict": str(estimate.verdict),
        "reason": estimate.reason,
        "used": pair.taken,
        "offset_ns": round(estimate.line.offset) + zero_y - zero_x,
        "at_ns": round(estimate.line.x0) + zero_x,
        "drift_ppm": round(estimate.line.drift * 1e6, 6),
        "lines": _lines(pair, zero_x, zero_y),
        "matches": estimate.matches,
        "dropped": estimate.dropped,
        "residuals": {
            "n": residuals.n,
            "median_ns": round(residuals.median),
            "p95_ns": round(residuals.p95),
            "p99_ns": round(residuals.p99),
        },
        "margin": _finite(estimate.margin),
        "rivals": [
            {"offset_ns": offset, "score": _finite(rival.score)}
            for offset, rival in zip(pair.rival_offsets(), estimate.rivals, strict=True)
        ],
        "bounds": _bounds(pair, x),
        "region": _region(estimate),
        "landscape": _landscape(estimate),
        "residuals_over_time": _residuals(estimate),
    }


def _lines(pair: PairEstimate, zero_x: int, zero_y: int) -> list[Json]:
    """Return the lines of an estimate that has several, each with its bound; empty for a single line."""
    lines, chain = [], pair.estimate.chain
    if len(chain.lines) == 1:
        return []
    x = _x_and_y(pair)[0][0]
    first, last = (_on_x(pair, x, time) for time in x.span)
    for line, end in zip(chain.lines, [*chain.begins, np.inf], strict=True):
        begin = max(line.begin, first)
        reach = np.array([begin, max(begin, min(np.nextafter(end, -np.inf), last))])
        low, high = chain.bounds(reach)
        moved = line.map(reach) - reach
        lines.append(
            {
                "begin_ns": round(begin) + zero_x,
                "offset_ns": round(float(moved[0])) + zero_y - zero_x,
                "drift_ppm": round(line.drift * 1e6, 6),
                "bound_ns": int(np.ceil(max(np.max(high - moved), np.max(moved - low)))) if chain.bounded else None,
                "matches": line.matches,
            }
        )
    return lines


def _finite(value: float) -> float | None:
    """Return a number for JSON, which knows neither infinity nor NaN."""
    return round(float(value), 6) if np.isfinite(value) else None


def _bounds(pair: PairEstimate, x: ClockInput) -> list[dict[str, int]] | None:
    if not pair.estimate.chain.bounded:
        return None
    bounds = []
    for time in x.span:
        low, high = _interval(pair, _on_x(pair, x, time))
        bounds.append({"time_ns": time, "low_ns": int(np.floor(low)), "high_ns": int(np.ceil(high))})
    return bounds


def _region(estimate: Estimate) -> list[dict[str, float]] | None:
    if estimate.region is None:
        return None
    region = estimate.region.at(estimate.line.x0)
    return [
        {"offset_ns": round(offset - estimate.line.offset, 3), "drift_ppm": round(drift * 1e6, 6)}
        for offset, drift in zip(region.offsets.tolist(), region.drifts.tolist(), strict=True)
    ]


def _landscape(estimate: Estimate) -> Json | None:
    """Return the landscape: all tried offsets, coarsely, and those around the best one, finely."""
    if estimate.landscape is None:
        return None
    offsets, scores = estimate.landscape[0] - estimate.line.offset, estimate.landscape[1]
    rows = np.flatnonzero(np.isfinite(scores))
    rows = rows[np.argsort(offsets[rows], kind="stable")]
    if len(rows) < _LEAST_POINTS:
        return None
    offsets, scores = offsets[rows], scores[rows]
    near = np.abs(offsets) <= _near_reach(estimate, offsets)
    is_part = _LEAST_POINTS <= near.sum() < len(offsets)
    around = _curve(offsets[near], scores[near], _NEAR_POINTS) if is_part else None
    return {"all": _curve(offsets, scores, _POINTS - _NEAR_POINTS), "near": around}


def _near_reach(estimate: Estimate, offsets: F64) -> float:
    """Return the half width of a picture that shows the best offset with its strongest rivals, ns."""
    away = [abs(rival.offset_ns - estimate.line.offset) for rival in estimate.rivals[:2]]
    step = float(np.diff(offsets[:2])[0]) if len(offsets) > 1 else 1.0
    return max(1.4 * max(away), 40 * step) if away else 200 * step


def _curve(offsets: F64, scores: F64, points: int) -> dict[str, list[Any]]:
    """Return a curve of at most `points` points: of each stretch the one with the highest score."""
    rows = np.arange(len(scores))
    if len(scores) > points:
        rows = np.array([part[np.argmax(scores[part])] for part in np.array_split(rows, points)])
    return {"offset_ns": _whole(offsets[rows]), "score": np.round(scores[rows], 3).tolist()}


def _whole(values: F64) -> list[int]:
    whole: list[int] = np.round(values).astype(np.int64).tolist()
    return whole


def _residuals(estimate: Estimate) -> dict[str, list[int]] | None:
    times, values = estimate.residual_times, estimate.residual_values
    if times is None or values is None or not len(times):
        return None
    rows = _thinned(values)
    return {"time_ns": _whole(times[rows]), "residual_ns": _whole(values[rows])}


def _thinned(values: F64) -> Array:
    """Return rows for a picture: evenly spaced ones, and those with the greatest values."""
    if len(values) <= _POINTS:
        return np.arange(len(values))
    even = np.linspace(0, len(values) - 1, _POINTS - _FARTHEST).astype(np.int64)
    farthest = np.argsort(-np.abs(values), kind="stable")[:_FARTHEST]
    return np.unique(np.concatenate((even, farthest)))


# -- Show the report of an alignment as a page for people without knowledge of clocks --------------------------------

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
    environment.tests["unusable"] = lambda verdict: Verdict(verdict).unusable
    pictures = {"timeline": timeline, "residuals": residuals, "landscape": landscape, "region": region}
    environment.globals.update(pictures=pictures, Method=Method, Verdict=Verdict, verdict_of=_verdict_of)
    environment.globals["found_nothing"] = _found_nothing
    return environment.get_template("report.html.j2").render(report=report)


def templates(*folders: str) -> Environment:
    """Return the environment of the templates of packages of traceconv; values are escaped."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined  # few runs write a page

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
    return lines(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


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
            return str(pair["verdict"] if Verdict(pair["verdict"]).unusable else report["verdict"])
    return None


def _found_nothing(pair: Json, report: Json) -> bool:
    """Return whether a comparison only checked clocks that were placed without it, and tells nothing about them."""
    if report["refusal"] or pair["used"] or Verdict(pair["verdict"]) not in _NOTHING_FOUND:
        return False
    placed = {
        (source["file"], clock["name"]): clock["map"]["verdict"]
        for source in report["inputs"]
        for clock in source["clocks"]
        if clock["map"]
    }
    verdicts = [placed.get((pair[side]["file"], pair[side]["clock"])) for side in "xy"]
    return all(verdict is not None and not Verdict(verdict).unusable for verdict in verdicts)


class Axis(Struct, frozen=True):
    """One direction of a chart.

    Attributes:
        size: the divisor of values for tick labels.
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


class _Plane(Struct, frozen=True):
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


def timeline(inputs: Sequence[Json]) -> Json | None:
    """Return a bar for the time span of each recording on trace time; None if there are fewer than two."""
    placed = [(source["file"], clock["map"]) for source in inputs for clock in source["clocks"] if clock["map"]]
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

"""Report an alignment as a JSON document, for programs, for bug reports, and for the page that shows it.

The document follows schemas/alignment.schema.json. Times are integer ns; the schema states the origin of numbers that
do not count from the zero of their clock. Pictures get a limited number of points: of a landscape the highest score of
each interval of offsets, of residuals evenly spaced ones and the greatest.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from functools import reduce
from typing import Any

import numpy as np

from traceconv import __version__
from traceconv.align import Alignment, ReceiptLine
from traceconv.align.checks import Causality
from traceconv.align.domains import spans
from traceconv.align.estimate import Array, Estimate
from traceconv.align.geometry import F64
from traceconv.align.inputs import ClockInput
from traceconv.align.pairs import PairEstimate
from traceconv.errors import AlignmentError, UsageError
from traceconv.io.output import as_json
from traceconv.model.clocks import DRIFT_UNIT, ClockDomain, ClockMap, Verdict, worse
from traceconv.model.trace import Trace

SCHEMA = "alignment.schema.json"
VERSION = 1
_POINTS = 2000
_NEAR_POINTS = 800  # the number of points
_LEAST_POINTS = 3
_FARTHEST = 200
_PAGES = (".html", ".htm")


def document(traces: Sequence[Trace], alignment: Alignment, checks: Causality) -> dict[str, Any]:
    """Return the report of traces that were put on one time axis.

    Args:
        traces: the inputs, as the alignment got them.
        alignment: how they were aligned.
        checks: the checks of cause and effect.
    """
    receipt = iter(alignment.receipt)
    inputs = [
        _input(
            trace,
            {clock: (clock_map, next(receipt)) for clock, clock_map in sorted(maps.items())},
            alignment.pairs,
            index,
            alignment.clock,
        )
        for index, (trace, maps) in enumerate(zip(traces, alignment.maps, strict=True))
    ]
    verdict = str(reduce(worse, (Verdict(line.verdict) for line in alignment.receipt), Verdict.OK))
    return {
        **_head(verdict),
        "refusal": None,
        "clock": alignment.clock.describe(),
        "inputs": inputs,
        "pairs": [_pair(pair) for pair in alignment.pairs],
        "hosts": [asdict(one) for one in alignment.hosts_apart],
        "processes": alignment.together.as_json(),
        "causality": checks.as_json(),
        "left_out": _left_out(traces),
    }


def refusal_document(traces: Sequence[Trace], error: AlignmentError, checks: Causality | None = None) -> dict[str, Any]:
    """Return the report of traces that were refused, with the estimates for their clocks.

    Args:
        traces: the inputs.
        error: the refusal; its `pairs` are the estimates.
        checks: the checks of cause and effect, if they were made.
    """
    pairs: Sequence[PairEstimate] = error.pairs
    return {
        **_head(error.verdict),
        "refusal": {"message": error.message, "hint": error.hint},
        "clock": None,
        "inputs": [_input(trace, {}, pairs, index) for index, trace in enumerate(traces)],
        "pairs": [_pair(pair) for pair in pairs],
        "hosts": [],
        "processes": [],
        "causality": checks.as_json() if checks else [],
        "left_out": _left_out(traces),
    }


def check_ending(path: str | os.PathLike[str]) -> None:
    """Raise UsageError for a name that ends in neither .json nor .html."""
    if not os.fspath(path).lower().endswith((".json", *_PAGES)):
        raise UsageError(
            f"--report {os.fspath(path)}: the name ends in neither .json nor .html",
            hint="a page to look at: --report align.html; for programs: --report align.json",
        )


def rendered(report: dict[str, Any], path: str | os.PathLike[str]) -> bytes:
    """Return the bytes of a report for a file: JSON or a page, by the ending of its name.

    Raises:
        UsageError: the name ends in neither .json nor .html.
    """
    check_ending(path)
    if os.fspath(path).lower().endswith(_PAGES):
        from traceconv.align.report_html import page  # with Jinja

        return page(report).encode()
    return as_json(report).encode()


def _left_out(traces: Sequence[Trace]) -> list[dict[str, str]]:
    return [{"file": file, "reason": reason} for trace in traces for file, reason in trace.left_out.items()]


def _head(verdict: str) -> dict[str, Any]:
    return {"traceconv": __version__, "report_version": VERSION, "verdict": verdict}


# -- inputs ---------------------------------------------------------------------------------------------------------


def _input(
    trace: Trace,
    placed: dict[int, tuple[ClockMap, ReceiptLine]],
    pairs: Sequence[PairEstimate],
    index: int,
    target: ClockDomain | None = None,
) -> dict[str, Any]:
    source = trace.sources[0]
    clocks = [_clock(ClockInput(index, clock, trace), placed.get(clock), pairs, target) for clock in spans(trace)]
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
) -> dict[str, Any]:
    domain = side.domain
    first, last = side.span
    has_zero = placed is not None and target is not None and target.is_wall_clock
    has_zero &= not domain.is_wall_clock and not domain.synthetic
    return {
        "name": domain.name,
        "description": domain.describe(),
        "resolution_ns": domain.resolution_ns,
        "begin_ns": first,
        "end_ns": last,
        "map": _map(side, *placed, pairs, (first, last)) if placed else None,
        "zero_at": _utc(placed[0].offset_ns) if placed and has_zero else None,
    }


def _utc(ns: int) -> str:
    """Return a time since 1970 as date and time of day, without fractions of a second."""
    return f"{datetime(1970, 1, 1) + timedelta(seconds=ns // 10**9)} UTC"


def _map(
    side: ClockInput, clock_map: ClockMap, line: ReceiptLine, pairs: Sequence[PairEstimate], span: tuple[int, int]
) -> dict[str, Any]:
    ends = [
        {
            "time_ns": time,
            "trace_time_ns": clock_map.at(time),
            "bound_ns": _bound_at(side, time, clock_map, line, pairs),
        }
        for time in span
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


# -- pairs ----------------------------------------------------------------------------------------------------------


def _x_and_y(pair: PairEstimate) -> tuple[tuple[ClockInput, int], tuple[ClockInput, int]]:
    """Return the two clocks of an estimate with their zeros, clock x first."""
    a, b = (pair.a, pair.zero_a), (pair.b, pair.zero_b)
    return (b, a) if pair.swapped else (a, b)


def _on_x(pair: PairEstimate, side: ClockInput, time: int) -> float:
    """Return a time of one of the two clocks as a time of clock x from its zero, ns."""
    (x, zero_x), (_, zero_y) = _x_and_y(pair)
    estimate = pair.estimate
    if side.key == x.key:
        return float(time - zero_x)
    return float(estimate.chain.back(np.array([time - zero_y], np.float64), in_order=True)[0])


def _interval(pair: PairEstimate, x: float) -> tuple[float, float]:
    """Return the uncertainty of the line at a time of clock x: the distances below and above, ns."""
    chain = pair.estimate.chain
    low, high = chain.bounds(x)
    line = float(chain.map(np.array([x]))[0]) - x
    return float(low[0]) - line, float(high[0]) - line


def _pair(pair: PairEstimate) -> dict[str, Any]:
    estimate = pair.estimate
    (x, zero_x), (y, zero_y) = _x_and_y(pair)
    residuals = estimate.residuals
    return {
        "x": {"file": x.name, "clock": x.trace.clocks[x.clock].name, "zero_ns": zero_x},
        "y": {"file": y.name, "clock": y.trace.clocks[y.clock].name, "zero_ns": zero_y},
        "method": estimate.method,
        "verdict": str(estimate.verdict),
        "reason": str(estimate.reason),
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


def _lines(pair: PairEstimate, zero_x: int, zero_y: int) -> list[dict[str, Any]]:
    """Return the lines of an estimate that has several, each with its bound; empty for a single line."""
    lines = []
    chain = pair.estimate.chain
    if len(chain.lines) == 1:
        return []
    first, last = (_on_x(pair, _x_and_y(pair)[0][0], time) for time in _x_and_y(pair)[0][0].span)
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


def _landscape(estimate: Estimate) -> dict[str, Any] | None:
    """Return the landscape: all tried offsets, coarsely, and those around the best one, finely."""
    if estimate.landscape is None:
        return None
    offsets, scores = estimate.landscape[0] - estimate.line.offset, estimate.landscape[1]
    rows = np.flatnonzero(np.isfinite(scores))
    rows = rows[np.argsort(offsets[rows], kind="stable")]
    if len(rows) < _LEAST_POINTS:
        return None
    offsets, scores = offsets[rows], scores[rows]
    reach = _near_reach(estimate, offsets)
    near = np.abs(offsets) <= reach
    return {
        "all": _curve(offsets, scores, _POINTS - _NEAR_POINTS),
        "near": _curve(offsets[near], scores[near], _NEAR_POINTS)
        if _LEAST_POINTS <= near.sum() < len(offsets)
        else None,
    }


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
    return {
        "offset_ns": np.round(offsets[rows]).astype(np.int64).tolist(),
        "score": np.round(scores[rows], 3).tolist(),
    }


def _residuals(estimate: Estimate) -> dict[str, list[int]] | None:
    times, values = estimate.residual_times, estimate.residual_values
    if times is None or values is None or not len(times):
        return None
    rows = _thinned(values)
    return {
        "time_ns": np.round(times[rows]).astype(np.int64).tolist(),
        "residual_ns": np.round(values[rows]).astype(np.int64).tolist(),
    }


def _thinned(values: F64) -> Array:
    """Return rows for a picture: evenly spaced ones, and those with the greatest values."""
    if len(values) <= _POINTS:
        return np.arange(len(values))
    even = np.linspace(0, len(values) - 1, _POINTS - _FARTHEST).astype(np.int64)
    farthest = np.argsort(-np.abs(values), kind="stable")[:_FARTHEST]
    return np.unique(np.concatenate((even, farthest)))

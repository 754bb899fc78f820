"""The report of an alignment as a page for people who have never heard of clock drift.

One file without scripts and without anything from elsewhere: it can be sent by mail and opened years later. What it
says and how it looks stands in `report.html.j2`, which gets the report as it is written for programs.
"""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from traceconv.align import charts
from traceconv.align.estimate import Method
from traceconv.model.clocks import Verdict
from traceconv.model.times import format_drift, format_short, format_time

Json = dict[str, Any]


def page(report: Json) -> str:
    """Return the page for a report as `document` or `refusal_document` makes it."""
    environment = Environment(
        loader=PackageLoader("traceconv", "align"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(short=_short, exact=format_time, shift=_shift, drift=_drift, grouped="{:,}".format)
    environment.tests["refused"] = lambda verdict: Verdict(verdict).refused
    environment.globals.update(charts=charts, Method=Method, Verdict=Verdict, verdict_of=_verdict_of)
    return environment.get_template("report.html.j2").render(report=report)


def _short(ns: float | None) -> str:
    """Return a time with three digits."""
    return "not known" if ns is None else format_short(ns).replace("-", "−")


def _shift(ns: int) -> str:
    """Return a move in time with its sign, short; whole where it is as long as the time of day of a wall clock."""
    return f"{'+' if ns > 0 else ''}{format_time(ns) if abs(ns) >= 10**15 else _short(ns)}"


def _drift(ppm: float) -> str:
    return format_drift(ppm).replace("-", "−")


def _verdict_of(file: str, clock: str, report: Json) -> str | None:
    """Return what was found about a clock that was not placed; None if it was compared with nothing."""
    for pair in report["pairs"]:
        if (file, clock) in ((pair[side]["file"], pair[side]["clock"]) for side in "xy"):
            return str(pair["verdict"] if Verdict(pair["verdict"]).refused else report["verdict"])
    return None

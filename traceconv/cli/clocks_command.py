"""`traceconv clocks`."""

from __future__ import annotations

from typing import Any

import click

from traceconv import api
from traceconv.align.clock_overview import ClockLine, PairLine
from traceconv.cli import _common as common
from traceconv.cli._json import clock_json, json_option, print_json
from traceconv.cli._limits import limit_options
from traceconv.cli._terminal import say
from traceconv.io.limits import Limits
from traceconv.model.clocks import ClockMap
from traceconv.model.times import format_bound, format_time


@click.command("clocks")
@common.recordings
@json_option
@limit_options
def command(recordings: common.Recordings, as_json: bool, limits: Limits) -> None:
    """Print which clocks recordings have, how they are related, and what would relate the rest.

    \b
      traceconv clocks perf.data profile.json onednn.log
      traceconv clocks --json perf.data profile.json
      traceconv clocks viztracer.json run.log --clock run.log=monotonic@myhost
    """
    recordings = recordings.expanded(limits)
    inputs, options = recordings.inputs()
    found = api.clocks(inputs, options=options, constraints=recordings.constraints(), limits=limits)
    if as_json:
        print_json(clocks=list(map(_clock_json, found.clocks)), pairs=list(map(_pair_json, found.pairs)))
        return
    _print_clocks(found.clocks)
    for pair in found.pairs:
        say("", err=False)
        say(*_pair(pair), err=False)


def _clock_json(line: ClockLine) -> dict[str, Any]:
    return {
        "file": line.file,
        "clock": clock_json(line.clock),
        "host": line.host,
        "events": line.events,
        "realtime": _way_json(line.realtime),
    }


def _pair_json(pair: PairLine) -> dict[str, Any]:
    return {"file": pair.file, "other": pair.other, "way": _way_json(pair.way), "advice": list(map(str, pair.advice))}


def _way_json(way: ClockMap | None) -> dict[str, Any] | None:
    if way is None:
        return None
    return {
        "method": way.method,
        "offset_ns": way.offset_ns,
        "bound_ns": way.bound_ns,
        "verdict": way.verdict.value,
        "drift_ppm": way.drift_ppm,
    }


def _print_clocks(lines: list[ClockLine]) -> None:
    rows = [("file", "clock", "zero", "steps", "machine", "to CLOCK_REALTIME by", "within")]
    for line in lines:
        clock = line.clock
        zero = clock.run.value if clock.synthetic else clock.zero.value
        way = ("nothing", "") if line.realtime is None else _way(line.realtime)
        name = clock.name if line.events else f"({clock.name})"
        rows.append((line.file, name, zero, format_time(clock.resolution_ns), line.host or "-", *way))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        say("  ".join(cells).rstrip(), err=False)


def _way(way: ClockMap) -> tuple[str, str]:
    assumed = " (assumed)" if way.verdict.value == "assumed" else ""
    return f"{way.method}{assumed}", format_bound(way.bound_ns)


def _pair(pair: PairLine) -> list[str]:
    if pair.way is None:
        return [f"{pair.file} and {pair.other}: not related", *(f"  {words}" for words in pair.advice)]
    method, bound = _way(pair.way)
    drift = f", drift {pair.way.drift_ppm:+.3f} ppm" if pair.way.drift else ""
    within = f", within {bound}"
    if pair.way.two_hosts:
        within = f", bound {bound} (clocks of two hosts)"
    elif pair.way.bound_ns is None:
        within = ", uncertainty not known"
    return [f"{pair.file} and {pair.other}: related by {method}{within}{drift}"]

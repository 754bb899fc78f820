"""`traceconv clocks`."""

from __future__ import annotations

import click

from traceconv import api
from traceconv.align.clock_overview import ClockLine, PairLine
from traceconv.cli import _common as common
from traceconv.cli._limits import limit_options
from traceconv.cli._terminal import say
from traceconv.io.limits import Limits
from traceconv.model.clocks import ClockMap
from traceconv.model.times import format_bound, format_time


@click.command("clocks")
@common.recordings
@limit_options
def command(recordings: common.Recordings, limits: Limits) -> None:
    """Print which clocks recordings have, how they are related, and what would relate the rest.

    \b
      traceconv clocks perf.data profile.json onednn.log
      traceconv clocks viztracer.json run.log --clock run.log=monotonic@myhost
    """
    recordings = recordings.expanded(limits)
    inputs, options = recordings.inputs()
    found = api.clocks(inputs, options=options, constraints=recordings.constraints(), limits=limits)
    _print_clocks(found.clocks)
    for pair in found.pairs:
        say("", err=False)
        say(*_pair(pair), err=False)


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

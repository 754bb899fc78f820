"""`traceconv clocks`."""

from __future__ import annotations

import sys
from typing import Any

import click

from traceconv import api
from traceconv.align.clock_overview import ClockLine, PairLine
from traceconv.align.messages import Text
from traceconv.cli._inputs import left_out_json
from traceconv.cli._json import clock_json, json_option, print_json
from traceconv.cli._recordings import Named, recordings_options, settings_options
from traceconv.cli._terminal import say, width_of
from traceconv.inputs import Settings
from traceconv.io.shown import shortened, widths_within
from traceconv.model.clocks import ClockMap, Zero
from traceconv.model.times import format_bound, format_time

#: Columns whose texts are shortened where the terminal is narrow.
_TEXTS = ("file", "clock", "machine", "to CLOCK_REALTIME by")
_UNLIMITED = 1 << 30


@click.command("clocks")
@recordings_options
@json_option
@settings_options()
def command(named: Named, as_json: bool, settings: Settings) -> None:
    """Print the clocks of recordings, how they are related, and what would relate the rest.

    \b
      traceconv clocks perf.data profile.json onednn.log
      traceconv clocks --json perf.data profile.json
      traceconv clocks viztracer.json run.log --clock run.log=monotonic@myhost
    """
    recordings = named.opened(settings)
    found = api.clocks(recordings)
    if as_json:
        print_json(
            clocks=list(map(_clock_json, found.clocks)),
            pairs=list(map(_pair_json, found.pairs)),
            left_out=left_out_json(recordings.expanded),
        )
        return
    _print_clocks(found.clocks)
    for pair in found.pairs:
        say("", err=False)
        say(*_pair(pair), err=False)
    if found.pairs and found.only_with_first:
        say("", f"of many inputs, only pairs with {found.pairs[0].file} are listed", err=False)
    if found.hosts:
        say("", *(one.describe() for one in found.hosts), err=False)


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
        if clock.zero is Zero.UNKNOWN and not clock.synthetic and line.realtime is not None:
            zero = "given by an offset"
        way = ("nothing", "") if line.realtime is None else _way(line.realtime)
        name = clock.name if line.events else f"({clock.name})"
        rows.append((line.file, name, zero, format_time(clock.resolution_ns), line.host or "-", *way))
    is_text = [title in _TEXTS for title in rows[0]]
    width = width_of(sys.stdout) or _UNLIMITED
    widths = widths_within(rows, is_text, width - 2 * (len(rows[0]) - 1))
    if widths is None:  # too narrow for a table
        for row in rows[1:]:
            say(*(f"{title:<20}  {cell}" for title, cell in zip(rows[0], row, strict=True)), "", err=False)
        return
    for row in rows:
        cells = (shortened(cell, room).ljust(room) for cell, room in zip(row, widths, strict=True))
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
        within = f", bound {Text.BOUND_OF_TWO_HOSTS()}"
    elif pair.way.bound_ns is None:
        within = ", uncertainty not known"
    return [f"{pair.file} and {pair.other}: related by {method}{within}{drift}"]

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
from traceconv.model.clocks import ClockMap, Provenance, Zero
from traceconv.model.times import format_bound, format_time

#: Columns whose texts are shortened where the terminal is narrow.
_TEXTS = ("file", "clock", "machine", "wall clock by")
_UNLIMITED = 1 << 30
#: What gives the zero of a clock, by the sources of its relation to the wall clock: the first of these that is one.
_GIVEN = {
    Provenance.USER: "given by an option",
    Provenance.ESTIMATED: "estimated",
    Provenance.ASSUMED: "assumed",
    Provenance.METADATA: "stated by the file",
}


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
    survey = api.clocks(recordings)
    if as_json:
        print_json(
            clocks=list(map(_clock_json, survey.clocks)),
            pairs=list(map(_pair_json, survey.pairs)),
            left_out=left_out_json(recordings.expanded),
        )
        return
    _print_clocks(survey.clocks)
    for line in survey.clocks:
        say(*(f"warning: {line.file}: {warning}" for warning in line.warnings), err=False)
    for pair in survey.pairs:
        say("", err=False)
        say(*_pair(pair), err=False)
    if survey.pairs and survey.only_with_first:
        say("", f"of many inputs, only pairs with {survey.pairs[0].file} are listed", err=False)
    if survey.hosts:
        say("", *(one.describe() for one in survey.hosts), err=False)


def _clock_json(line: ClockLine) -> dict[str, Any]:
    return {
        "file": line.file,
        "clock": clock_json(line.clock),
        "host": line.host,
        "events": line.events,
        "realtime": _map_json(line.realtime),
        "warnings": list(line.warnings),
    }


def _pair_json(pair: PairLine) -> dict[str, Any]:
    return {
        "file": pair.file,
        "other": pair.other,
        "clock_map": _map_json(pair.clock_map),
        "advice": list(map(str, pair.advice)),
    }


def _map_json(clock_map: ClockMap | None) -> dict[str, Any] | None:
    if clock_map is None:
        return None
    return {
        "method": clock_map.method,
        "offset_ns": clock_map.offset_ns,
        "bound_ns": clock_map.bound_ns,
        "verdict": clock_map.verdict.value,
        "drift_ppm": clock_map.drift_ppm,
    }


def _print_clocks(lines: list[ClockLine]) -> None:
    rows = [("file", "clock", "zero", "steps", "machine", "wall clock by", "within")]
    for line in lines:
        clock = line.clock
        clock_map = ("nothing", "") if line.realtime is None else _map_cells(line.realtime)
        name = clock.name if line.events else f"({clock.name})"
        rows.append((line.file, name, _zero(line), format_time(clock.resolution_ns), line.host or "-", *clock_map))
    is_text = [title in _TEXTS for title in rows[0]]
    width = width_of(sys.stdout) or _UNLIMITED
    widths = widths_within(rows, is_text, width - 2 * (len(rows[0]) - 1))
    if widths is None:  # too narrow for a table
        for number, row in enumerate(rows[1:]):
            gap = [""] if number else []
            say(*gap, *(f"{title:<13}  {cell}".rstrip() for title, cell in zip(rows[0], row, strict=True)), err=False)
        return
    for row in rows:
        cells = (shortened(cell, room).ljust(room) for cell, room in zip(row, widths, strict=True))
        say("  ".join(cells).rstrip(), err=False)


def _zero(line: ClockLine) -> str:
    """Return what is zero of a clock; if the clock does not define it, what gives it."""
    clock = line.clock
    if clock.synthetic:
        return clock.run.value
    if clock.zero is not Zero.UNKNOWN or line.realtime is None:
        return clock.zero.value
    given = {step.provenance for step in line.realtime.steps}
    return next(words for by, words in _GIVEN.items() if by in given or by is Provenance.METADATA)


def _map_cells(clock_map: ClockMap) -> tuple[str, str]:
    assumed = " (assumed)" if clock_map.verdict.value == "assumed" else ""
    return f"{clock_map.method}{assumed}", format_bound(clock_map.bound_ns)


def _pair(pair: PairLine) -> list[str]:
    if pair.clock_map is None:
        return [f"{pair.file} and {pair.other}: not related", *(f"  {words}" for words in pair.advice)]
    method, bound = _map_cells(pair.clock_map)
    drift = f", drift {pair.clock_map.drift_ppm:+.3f} ppm" if pair.clock_map.drift else ""
    within = f", within {bound}"
    if pair.clock_map.two_hosts:
        within = f", bound {Text.BOUND_OF_TWO_HOSTS()}"
    elif pair.clock_map.bound_ns is None:
        within = ", uncertainty not known"
    return [f"{pair.file} and {pair.other}: related by {method}{within}{drift}"]

"""`traceconv info`."""

from __future__ import annotations

import json
from typing import Any

import click

from traceconv import api
from traceconv.cli import _complete, print_error
from traceconv.cli._inputs import expanded, left_out_json
from traceconv.cli._json import clock_json, failure, json_option, print_json
from traceconv.cli._recordings import Named, from_option, importer_option, settings_options
from traceconv.cli._terminal import say
from traceconv.errors import TraceconvError
from traceconv.expanding import Expanded
from traceconv.inputs import Settings
from traceconv.io.folders import shown
from traceconv.io.shown import Counted, quantity
from traceconv.model.counted import COUNTERS, OTHERS, PROCESSES, THREADS
from traceconv.model.times import format_bound, format_time
from traceconv.model.trace import Trace, TrackKind

_LONGEST_VALUE = 100
_BALANCE = ("unit", "read", "written", "kept", "merged", "skipped")
_TITLES = {
    TrackKind.PROCESS: PROCESSES,
    TrackKind.THREAD: THREADS,
    TrackKind.TRACK: OTHERS,
    TrackKind.COUNTER: COUNTERS,
}


@click.command("info")
@click.argument("files", nargs=-1, required=True, shell_complete=_complete.files)
@importer_option
@json_option
@settings_options()
@from_option
@click.pass_context
def command(
    ctx: click.Context,
    files: tuple[str, ...],
    options: tuple[str, ...],
    format: str | None,
    as_json: bool,
    settings: Settings,
) -> None:
    """Print the content of a recording: its clock, its time span, what was read, what was lost.

    \b
      traceconv info onednn.log
      traceconv info --json onednn.log
    """
    failed, rows = 0, []
    expansion = expanded(files, settings.limits, each=True)
    for one in expansion.recordings:
        file = shown(one.path)
        named = Named((file,), options=options, format=format)
        try:
            trace = api.read(named.about(Expanded([one]), settings))
        except TraceconvError as error:
            print_error(error)
            failed = max(failed, error.exit_code)
            rows.append(failure(file, error))
        else:
            if as_json:
                rows.append(_json(file, trace))
            else:
                say(*_describe(file, trace), err=False)
    if as_json:
        print_json(files=rows, left_out=left_out_json(expansion))
    ctx.exit(failed)


def _json(file: str, trace: Trace) -> dict[str, Any]:
    source = trace.sources[0]
    stated = {"host": trace.host or None, "rank": source.rank, "world_size": source.world_size}
    start, end = trace.span() or (None, None)
    return {
        "file": file,
        "format": source.format,
        "balance": {name: getattr(source.balance, name) for name in _BALANCE},
        **{key: value for key, value in (stated | {"start_ns": start, "end_ns": end}).items() if value is not None},
        "clocks": [clock_json(clock) for clock in trace.clocks],
        "snapshots": [
            {
                "clock": snap.clock.name,
                "ts_ns": snap.ts,
                "other": snap.other.name,
                "other_ts_ns": snap.other_ts,
                "bound_ns": snap.bound_ns,
                "method": str(snap.method),
            }
            for snap in trace.snapshots
        ],
        "tracks": _track_counts(trace),
        "events": trace.counts(),
        "metadata": trace.metadata,
        "notes": source.notes,
        "diagnostics": [
            {
                "code": entry.code.name,
                "kind": entry.code.label,
                "count": entry.count,
                "skipped": entry.skipped,
                "help": entry.code.help,
                "places": entry.places,
            }
            for entry in source.diagnostics
        ],
    }


def _track_counts(trace: Trace) -> dict[Counted, int]:
    return {title: sum(track.kind is kind for track in trace.tracks) for kind, title in _TITLES.items()}


def _describe(file: str, trace: Trace) -> list[str]:
    source = trace.sources[0]
    lines = [f"{file}: {source.format}", f"  balance   {source.balance.describe()}"]
    lines += [f"  host      {trace.host}"] if trace.host else []
    lines += [f"  job       {source.place_in_job}"] if source.place_in_job else []
    lines += [f"  clock     {clock.describe()}" for clock in trace.clocks]
    for snap in trace.snapshots:
        there = f"{snap.other.name} {snap.other_ts} ns"
        lines.append(f"  snapshot  {snap.ts} ns = {there} {format_bound(snap.bound_ns)} ({snap.method})")
    span = trace.span()
    if span is not None:
        lines.append(f"  span      {format_time(span[1] - span[0])}, first event at {span[0]} ns of its clock")
    kinds = _track_counts(trace)
    lines.append("  tracks    " + ", ".join(quantity(count, kind) for kind, count in kinds.items() if count))
    lines.append("  events    " + ", ".join(quantity(count, what) for what, count in trace.counts().items() if count))
    for key, value in trace.metadata.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        lines.append(f"  metadata  {key}: {text[:_LONGEST_VALUE]}{'...' if len(text) > _LONGEST_VALUE else ''}")
    lines += [f"  note      {note}" for note in source.notes]
    lines += [f"  {entry.message()}" for entry in source.diagnostics]
    return lines

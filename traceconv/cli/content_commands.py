"""`traceconv info` and `check`."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict
from typing import Any

import click

from traceconv import api
from traceconv.check import CheckReport, check_file
from traceconv.cli import print_error
from traceconv.cli.completion import complete_files
from traceconv.cli.options import (
    HeadedCommand,
    Named,
    expanded,
    from_option,
    importer_option,
    left_out_json,
    limit_options,
    settings_options,
)
from traceconv.cli.terminal import clock_json, failure, json_option, print_json, say
from traceconv.errors import TraceconvError
from traceconv.families.registry import importer_class
from traceconv.io.folders import shown
from traceconv.io.limits import Limits
from traceconv.io.shown import Counted, quantity
from traceconv.model.clocks import Run
from traceconv.model.diagnostics import COUNTERS, THREADS
from traceconv.model.numbers import format_bound, format_time
from traceconv.model.trace import Trace
from traceconv.model.track_table import TrackKind
from traceconv.reading import Expanded, Recording, read_start
from traceconv.recordings import Settings

PROCESSES = Counted("process", "processes")
OTHERS = Counted("other", "others")

_LONGEST_VALUE = 100
_BALANCE = ("unit", "read", "written", "kept", "merged", "skipped")
_TITLES = {
    TrackKind.PROCESS: PROCESSES,
    TrackKind.THREAD: THREADS,
    TrackKind.TRACK: OTHERS,
    TrackKind.COUNTER: COUNTERS,
}


@click.command("info", cls=HeadedCommand)
@click.argument("files", nargs=-1, required=True, shell_complete=complete_files)
@importer_option
@json_option
@settings_options()
@from_option
@click.pass_context
def info_command(
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
    for recording in expansion.recordings:
        file = shown(recording.path)
        named = Named((file,), options=options, format=format)
        try:
            trace = api.read(named.about(Expanded([recording]), settings))
        except TraceconvError as error:
            print_error(error)
            failed = max(failed, error.exit_code)
            rows.append(failure(file, error))
        else:
            if as_json:
                rows.append(_info_json(file, trace))
            else:
                say(*_describe(file, trace), err=False)
    if as_json:
        print_json(files=rows, left_out=left_out_json(expansion))
    ctx.exit(failed)


def _info_json(file: str, trace: Trace) -> dict[str, Any]:
    source = trace.sources[0]
    stated = {"host": trace.host or None, "rank": source.rank, "world_size": source.world_size}
    spans = _spans(trace)
    start, end = next(iter(spans.values())) if len(spans) == 1 else (None, None)
    return {
        "file": file,
        "format": source.format,
        "balance": {name: getattr(source.balance, name) for name in _BALANCE} | {"skipped": source.balance.by_reason()},
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


def _spans(trace: Trace) -> dict[int, tuple[int, int]]:
    """Return the first and the last time (ns) on each clock with times, by the number of the clock."""
    return {clock: span for clock, span in trace.spans.items() if trace.clocks[clock].run is not Run.TOTALS}


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
    for clock, (start, end) in _spans(trace).items():
        name = trace.clocks[clock].name
        lines.append(f"  span      {format_time(end - start)}, first event at {start} ns of {name}")
    kinds = _track_counts(trace)
    lines.append("  tracks    " + ", ".join(quantity(count, kind) for kind, count in kinds.items() if count))
    lines.append("  events    " + ", ".join(quantity(count, what) for what, count in trace.counts().items() if count))
    for key, value in trace.metadata.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        lines.append(f"  metadata  {key}: {text[:_LONGEST_VALUE]}{'...' if len(text) > _LONGEST_VALUE else ''}")
    lines += [f"  note      {note}" for note in source.notes]
    lines += [f"  {entry.message()}" for entry in source.diagnostics]
    return lines


#: A file is named as convertible if so many events can be read.
_FIRST_EVENTS = 1000


@click.command("check")
@click.argument("files", nargs=-1, required=True, shell_complete=complete_files)
@json_option
@limit_options
@click.pass_context
def check_command(ctx: click.Context, files: tuple[str, ...], as_json: bool, limits: Limits) -> None:
    """Find everything that viewers drop, misplace or refuse, in Chrome JSON and Perfetto traces of any tool.

    \b
      traceconv check out.pftrace other.json
      traceconv check --json out.pftrace
    """
    failed, rows = 0, []
    expansion = expanded(files, limits, each=True)
    for recording in expansion.recordings:
        file = shown(recording.path)
        try:
            result = check_file(recording.path, limits=limits)
        except TraceconvError as error:
            print_error(error)
            failed = 1
            rows.append(failure(file, error))
            continue
        failed |= not result.ok
        name, unread = ("", None) if result.is_trace else _format_of(recording, limits)
        if as_json:
            rows.append(_check_json(file, result, "" if unread else name))
            continue
        counts = ", ".join(quantity(count, what) for what, count in result.counts.items() if count)
        what = f"{result.format}, {'ok' if result.ok else 'not ok'}: {counts or 'nothing in it'}"
        say(f"{file}: {what if result.is_trace else 'not ok: not a trace that viewers can read'}", err=False)
        for problem in result.problems:
            times = f"{problem.count} x " if problem.count > 1 else ""
            say(f"  {problem.severity.label}: {times}{problem.message} ({problem.code}) [{problem.at}]", err=False)
        if name:
            words = f"{name} ({importer_class(name).title})"
            if unread is None:
                say(f"  hint: it is {words}: traceconv convert {shlex.quote(file)} -o trace.pftrace", err=False)
            else:
                say(f"  hint: it begins like {words}: {unread.reason}", err=False)
    if as_json:
        print_json(files=rows, left_out=left_out_json(expansion))
    ctx.exit(failed)


def _check_json(file: str, result: CheckReport, name: str) -> dict[str, Any]:
    problems = [asdict(problem) | {"severity": problem.severity.label} for problem in result.problems]
    return {
        "file": file,
        "format": str(result.format),
        "ok": result.ok and result.is_trace,
        "is_trace": result.is_trace,
        "counts": result.counts,
        "problems": problems,
    } | ({"recording_of": name} if name else {})


def _format_of(recording: Recording, limits: Limits) -> tuple[str, TraceconvError | None]:
    """Return the format of a file that is not a trace, and why its start cannot be read, if so.

    "" if it is not known, or if the file was standard input, which was read already.
    """
    name = ""
    try:
        if recording.path != "-":
            recognised = recording.recognised(limits)
            name = recognised.cls.name
            read_start(recognised, _FIRST_EVENTS)
    except TraceconvError as error:
        return name, error
    return name, None

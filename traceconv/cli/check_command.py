"""`traceconv check`."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import Any

import click

from traceconv.check import CheckReport, check_file
from traceconv.cli import _complete, print_error
from traceconv.cli._inputs import expanded, left_out_json
from traceconv.cli._json import failure, json_option, print_json
from traceconv.cli._limits import limit_options
from traceconv.cli._terminal import say
from traceconv.errors import TraceconvError
from traceconv.expanding import Recording
from traceconv.families.registry import importer_class
from traceconv.io.folders import shown
from traceconv.io.limits import Limits
from traceconv.io.shown import quantity
from traceconv.reading import read_start

#: A file is named as convertible if so many events can be read.
_FIRST_EVENTS = 1000


@click.command("check")
@click.argument("files", nargs=-1, required=True, shell_complete=_complete.files)
@json_option
@limit_options
@click.pass_context
def command(ctx: click.Context, files: tuple[str, ...], as_json: bool, limits: Limits) -> None:
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
            rows.append(_json(file, result, "" if unread else name))
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


def _json(file: str, result: CheckReport, name: str) -> dict[str, Any]:
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

"""`traceconv check`."""

from __future__ import annotations

import shlex

import click

from traceconv.api import identify
from traceconv.check import check_file
from traceconv.cli import report
from traceconv.cli._inputs import recordings_in
from traceconv.cli._limits import limit_options
from traceconv.cli._terminal import say
from traceconv.errors import TraceconvError
from traceconv.families.registry import importer_class
from traceconv.io.folders import AnyPath, shown
from traceconv.io.limits import Limits


@click.command("check")
@click.argument("files", nargs=-1, required=True)
@limit_options
@click.pass_context
def command(ctx: click.Context, files: tuple[str, ...], limits: Limits) -> None:
    """Find everything that viewers drop, misplace or refuse, in Chrome JSON and Perfetto traces of any tool.

    \b
      traceconv check out.pftrace other.json
    """
    failed = 0
    for path in recordings_in(files, limits):
        file = shown(path)
        try:
            result = check_file(path, limits=limits)
        except TraceconvError as error:
            report(error)
            failed = 1
            continue
        counts = ", ".join(f"{count} {what}" for what, count in result.counts.items() if count)
        found = f"{result.format}, {'ok' if result.ok else 'not ok'}: {counts or 'nothing in it'}"
        say(f"{file}: {found if result.is_trace else 'not ok: no trace that viewers read'}", err=False)
        for problem in result.problems:
            times = f"{problem.count} x " if problem.count > 1 else ""
            say(f"  {problem.severity.label}: {times}{problem.message} ({problem.code}) [{problem.at}]", err=False)
        if not result.is_trace and (name := _format_of(path, limits)):
            words = f"{name} ({importer_class(name).title})"
            say(f"  hint: it is {words}: traceconv convert {shlex.quote(file)} -o trace.pftrace", err=False)
        failed |= not result.ok
    ctx.exit(failed)


def _format_of(file: AnyPath, limits: Limits) -> str:
    """Return the format of a file that is not a trace.

    "" if nobody knows it, or if it was standard input, which is read.
    """
    try:
        return "" if file == "-" else identify(file, limits=limits)[0]
    except TraceconvError:
        return ""

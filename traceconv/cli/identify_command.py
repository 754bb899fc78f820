"""`traceconv identify`."""

from __future__ import annotations

import click

from traceconv import api
from traceconv.cli import report
from traceconv.cli._inputs import recordings_in
from traceconv.cli._limits import limit_options
from traceconv.cli._terminal import say
from traceconv.errors import TraceconvError
from traceconv.families.registry import answers
from traceconv.io.folders import AnyPath, shown
from traceconv.io.limits import Limits
from traceconv.io.source import Source


@click.command("identify")
@click.argument("files", nargs=-1, required=True)
@click.option("--all", "show_all", is_flag=True, help="Print what each importer says about it.")
@limit_options
@click.pass_context
def command(ctx: click.Context, files: tuple[str, ...], show_all: bool, limits: Limits) -> None:
    """Print the format of a file, found by its content.

    \b
      traceconv identify *.json *.log
      traceconv identify --all strange.txt
    """
    failed = 0
    for path in recordings_in(files, limits):
        file = shown(path)
        try:
            name, reason = api.identify(path, limits=limits)
        except TraceconvError as error:
            report(error)
            failed = 1
        else:
            say(f"{file}: {name} ({reason})", err=False)
        if show_all:
            _print_answers(path, limits)
    ctx.exit(failed)


def _print_answers(file: AnyPath, limits: Limits) -> None:
    try:
        found = answers(Source(file, limits=limits))
    except TraceconvError:
        return  # told already
    width = max(map(len, found))
    for name, match in sorted(found.items(), key=lambda item: -item[1].certainty):
        say(f"  {name:{width}}  {match.certainty.name.lower():8}  {match.reason}", err=False)

"""`traceconv identify`."""

from __future__ import annotations

import click

from traceconv import api
from traceconv.cli import report
from traceconv.errors import TraceconvError


@click.command("identify")
@click.argument("files", nargs=-1, required=True)
@click.pass_context
def command(ctx: click.Context, files: tuple[str, ...]) -> None:
    """Say what format a file is, by its content.

    \b
      traceconv identify *.json *.log
    """
    failed = 0
    for file in files:
        try:
            name, reason = api.identify(file)
        except TraceconvError as error:
            report(error)
            failed = 1
        else:
            click.echo(f"{file}: {name} ({reason})")
    ctx.exit(failed)

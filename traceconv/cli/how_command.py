"""`traceconv how`."""

from __future__ import annotations

import click

from traceconv.registry import importer_class


@click.command("how")
@click.argument("format")
def command(format: str) -> None:
    """Print the command that records a file which can be merged with others.

    \b
      traceconv how onednn-verbose
    """
    cls = importer_class(format)
    click.echo(f"# {cls.title}")
    click.echo(cls.record)
    click.echo(f"# {cls.line_up}")
    if cls.name != "clock-anchor":
        click.echo(
            "# Whatever the clocks: this reads all of them around the run, into a file to be merged with the others."
        )
        click.echo("traceconv anchor -o anchor.json -- COMMAND")

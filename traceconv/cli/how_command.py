"""`traceconv how`."""

from __future__ import annotations

import click

from traceconv.cli import _complete
from traceconv.cli._terminal import say
from traceconv.families.registry import formats_called, importer_class


@click.command("how")
@click.argument("format", shell_complete=_complete.formats)
def command(format: str) -> None:
    """Print the command that records a file which can be merged with others.

    \b
      traceconv how onednn-verbose
      traceconv how perf
    """
    name, *others = formats_called(format)
    cls = importer_class(name)
    say(f"# {cls.title}", err=False)
    say(*cls.record.splitlines(), err=False)
    say(f"# {cls.line_up}", err=False)
    if cls.name != "clock-anchor":
        words = "# For any format: this reads all clocks before and after the run. Merge anchor.json with the others."
        say(words, "traceconv anchor -o anchor.json -- COMMAND", err=False)
    if others:
        say(f"# {format} is also {', '.join(others)}: traceconv how {others[0]}", err=False)

"""What the command line says: the only place that prints, so that no name of an input can steer a terminal."""

from __future__ import annotations

import click

from traceconv.io.shown import one_line


def say(*lines: str, err: bool = True) -> None:
    """Print lines, each as one: what else is in them than text is escaped.

    Args:
        lines: without line breaks at their ends.
        err: to standard error, or to standard output: what the command was asked for.
    """
    for line in lines:
        click.echo(one_line(line), err=err)

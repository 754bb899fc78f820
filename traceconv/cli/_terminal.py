"""What the command line says: the only place that prints, so that no name of an input can steer a terminal."""

from __future__ import annotations

import sys
from shutil import get_terminal_size

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


def show(line: str) -> None:
    """Show a line on the terminal in place of the one shown before, cut at its width; "" shows nothing any more."""
    sys.stderr.write(f"\r\x1b[K{one_line(line)[: get_terminal_size().columns - 1]}")
    sys.stderr.flush()

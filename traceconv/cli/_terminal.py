"""What the command line says: the only place that prints, so that no name of an input can steer a terminal."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from shutil import get_terminal_size
from textwrap import wrap
from typing import TextIO

import click

from traceconv.io.shown import one_line

#: Before the text of a line: spaces, the mark of a comment, and columns with gaps of two spaces or more.
_BEFORE = re.compile(r"(?:# *| *)(?:\S+(?: \S+)* {2,})*")


def say(*lines: str, err: bool = True, whole: bool = False) -> None:
    """Print lines: control characters are escaped, and lines that are too long for a terminal are folded.

    Args:
        lines: without line breaks at their ends.
        err: to standard error, or to standard output: what the command was asked for.
        whole: whether no line is folded: commands to be copied.
    """
    width = 0 if whole else width_of(sys.stderr if err else sys.stdout)
    for line in lines:
        text = one_line(line)
        for part in folded(text, width) if width else (text,):
            click.echo(part, err=err)


def put(rendered: str) -> None:
    """Print what was rendered as it is: who rendered it has escaped what must not be shown, each form in its way."""
    click.echo(rendered, nl=False)


def width_of(stream: TextIO) -> int:
    """Return how many columns the terminal behind a stream has; 0 for any other stream."""
    if not stream.isatty():
        return 0
    with contextlib.suppress(ValueError):
        if (columns := int(os.environ.get("COLUMNS", 0))) > 0:
            return columns
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return get_terminal_size().columns


def folded(line: str, width: int) -> list[str]:
    """Return a line in parts of at most `width` columns, folded between words, each below the text of the first one.

    A word that is longer stays whole, so that an address can be copied.
    """
    if len(line) <= width:
        return [line]
    prefix = _BEFORE.match(line, 0, width // 2)
    before = prefix[0] if prefix else ""
    later = " " * (len(before) if before.strip(" #") else len(before) + 2)
    if before.startswith("#"):
        later = f"# {' ' * (len(before) - 2)}"
    parts = wrap(
        line[len(before) :],
        width,
        initial_indent=before,
        subsequent_indent=later,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return parts or [line]


def show(line: str) -> None:
    """Show a line on the terminal in place of the one shown before, cut at its width; "" shows nothing any more."""
    sys.stderr.write(f"\r\x1b[K{one_line(line)[: width_of(sys.stderr) - 1]}")
    sys.stderr.flush()

"""What the command line says: the only place that prints, so that no name of an input can steer a terminal."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from shutil import get_terminal_size
from textwrap import wrap
from typing import TYPE_CHECKING, Any, TextIO

import click

from traceconv.io import progress
from traceconv.io.shown import lines, one_line

if TYPE_CHECKING:
    from traceconv.errors import TraceconvError
    from traceconv.io.folders import AnyPath
    from traceconv.model.clocks import ClockDomain


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
    """Print what was rendered; a terminal gets escapes for what would steer it, which CSV holds as it is."""
    click.echo(lines(rendered) if sys.stdout.isatty() else rendered, nl=False)


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


#: To be raised with each change that takes something away.
VERSION = 1

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object; schemas/commands.schema.json describes it."
)


def print_json(**members: Sequence[dict[str, Any]]) -> None:
    """Print one object with some lists."""
    from traceconv.io.output import as_json  # needs msgspec, which the help does not

    put(as_json({"schema_version": VERSION, **members}))


def failure(file: str, error: TraceconvError) -> dict[str, Any]:
    """Return the JSON object for an input that failed."""
    return {"file": file, "error": error.message} | ({"hint": error.hint} if error.hint else {})


def clock_json(clock: ClockDomain) -> dict[str, Any]:
    """Return a clock."""
    return {
        "name": clock.name,
        "zero": clock.zero.value,
        "run": clock.run.value,
        "resolution_ns": clock.resolution_ns,
        "machine": clock.machine,
    }


#: What takes no longer is not worth a line, s.
_AFTER_S = 1.0
_EVERY_S = 0.2
_UNITS = ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB"), (1, "B"))


@contextlib.contextmanager
def working(text: str, quiet: bool, inputs: Sequence[AnyPath] = ()) -> Iterator[None]:
    """Show how far the work is, if somebody looks at a terminal and it takes longer than a second.

    Args:
        text: what is done.
        quiet: whether nothing is shown.
        inputs: what is read for it.
    """
    if quiet or not sys.stderr.isatty():
        yield
        return
    from traceconv.io.folders import shown

    sizes = {shown(path): os.path.getsize(path) for path in inputs if os.path.isfile(path)}
    done = threading.Event()
    progress.start()
    thread = threading.Thread(target=_show, args=(text, sizes, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        progress.stop()


def _show(text: str, sizes: dict[str, int], done: threading.Event) -> None:
    started, printed = time.monotonic(), False
    read: dict[str, int] = {}
    while not done.wait(_EVERY_S):
        seconds, writing = time.monotonic() - started, ("", 0)
        for name, at in progress.positions():
            if name not in sizes:
                writing = (name, at or 0)
            else:  # a closed file was read to its end
                read[name] = sizes[name] if at is None else min(at, sizes[name])
        if seconds > _AFTER_S:
            show(described(text, sizes, read, progress.stage(), writing, seconds))
            printed = True
    if printed:
        show("")


def described(
    text: str, sizes: dict[str, int], read: dict[str, int], stage: str, writing: tuple[str, int], seconds: float
) -> str:
    """Return one line: what is done, and how far it is.

    Args:
        text: what is done.
        sizes: the bytes of each input.
        read: how many of them were read.
        stage: what is done besides reading and writing, "" for nothing else.
        writing: the file that is written, "" for none yet, and how many bytes it has.
        seconds: since the start.
    """
    if writing[0]:
        return f"writing {writing[0]}: {_bytes(writing[1])}, {_time(seconds)}"
    done, total = sum(read.values()), sum(sizes.values())
    if not done:
        return f"{text}: {_listed(stage, seconds)}"
    if done >= total:
        return f"{text}: {_bytes(total)} read, {_listed(stage, seconds)}"
    if stage:
        return f"{text}: {_bytes(done)} of {_bytes(total)} read, {_listed(stage, seconds)}"
    rate = done / seconds
    return f"{text}: {_bytes(done)} of {_bytes(total)}, {_bytes(rate)}/s, {_time((total - done) / rate)} left to read"


def _listed(stage: str, seconds: float) -> str:
    return ", ".join(filter(None, (stage, _time(seconds))))


def _bytes(count: float) -> str:
    size, unit = next((size, unit) for size, unit in _UNITS if count >= size or size == 1)
    return f"{count / size:.0f} {unit}" if count >= 10 * size or unit == "B" else f"{count / size:.1f} {unit}"


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02}:{rest:02}"

"""What several commands share: options, progress, the summary of what was done."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import click

from traceconv.align import ReceiptLine
from traceconv.api import Input, Result
from traceconv.diagnostics import Diagnostic, Severity
from traceconv.errors import UsageError
from traceconv.ir.trace import SourceInfo
from traceconv.times import format_bound, format_drift, format_time, parse_duration

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

Function = TypeVar("Function", bound=Callable[..., Any])

output_option = click.option(
    "-o", "--output", default="-", metavar="FILE", help="Where to write; standard output if not given."
)
to_option = click.option(
    "--to", metavar="FORMAT", help="perfetto or chrome-json; by default the ending of the output decides."
)
importer_option = click.option(
    "-O",
    "--option",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="An option of the importer; see `formats NAME`.",
)
force_option = click.option("-f", "--force", is_flag=True, help="Replace the output if it exists.")
strict_option = click.option("--strict", is_flag=True, help="Fail if anything of the input is lost.")
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print errors only.")
verbose_option = click.option("-v", "--verbose", is_flag=True, help="Print every diagnostic, also mere information.")


def inputs_of(
    paths: tuple[str, ...], formats: tuple[str, ...], offsets: tuple[str, ...], options: tuple[str, ...]
) -> tuple[list[Input], dict[str, str]]:
    """The inputs with what was said about each, and the importer options that were given without a file.

    Args:
        paths: the inputs.
        formats: the values of `--from FILE=FORMAT`.
        offsets: the values of `--offset FILE=TIME`.
        options: the values of `-O [FILE:]KEY=VALUE`.

    Raises:
        UsageError: a value has another form, names no input, or is given twice.
    """
    format_of = {_index_of(name, paths, "--from"): value for name, value in _pairs(formats, "--from").items()}
    offset_of = {_index_of(name, paths, "--offset"): _ns(value) for name, value in _pairs(offsets, "--offset").items()}
    own: list[dict[str, str]] = [{} for _ in paths]
    shared: dict[str, str] = {}
    for text, value in _pairs(options, "-O", first=True).items():
        file, colon, key = text.rpartition(":")
        (own[_index_of(file, paths, "-O")] if colon else shared)[key] = value
    inputs = [Input(path, format_of.get(i), own[i], offset_of.get(i)) for i, path in enumerate(paths)]
    return inputs, shared


def options_for(file: str, options: tuple[str, ...]) -> dict[str, str]:
    """The importer options of a single input."""
    (one,), shared = inputs_of((file,), (), (), options)
    return shared | dict(one.options)


def _pairs(texts: tuple[str, ...], option: str, *, first: bool = False) -> dict[str, str]:
    """The values of a repeated option of the form NAME=VALUE, cut at the last `=` or at the first one."""
    values: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=") if first else text.rpartition("=")
        if not equals or not name:
            raise UsageError(f"{option} {text!r}: expected {_FORMS[option]}")
        if name in values:
            raise UsageError(f"{option} is given twice for {name!r}")
        values[name] = value
    return values


_FORMS = {"--from": "FILE=FORMAT", "--offset": "FILE=TIME", "-O": "KEY=VALUE or FILE:KEY=VALUE"}


def _index_of(name: str, paths: tuple[str, ...], option: str) -> int:
    """Which input a name means: the path as given, or the file name if only one input has it."""
    name = "-" if name == "<stdin>" else name
    exact = [index for index, path in enumerate(paths) if path == name]
    found = exact or [index for index, path in enumerate(paths) if os.path.basename(path) == name]
    if len(found) != 1:
        problem = "is none of the inputs" if not found else "fits several inputs"
        raise UsageError(f"{option}: {name!r} {problem}", hint=f"the inputs: {', '.join(paths)}")
    return found[0]


def _ns(text: str) -> int:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise UsageError(f"--offset: {error}") from None


def console() -> Console:
    """Standard error; wide when nobody looks, so that lines stay whole in logs."""
    from rich.console import Console  # costs more to import than small conversions take

    return Console(
        stderr=True, markup=False, highlight=False, soft_wrap=True, width=None if sys.stderr.isatty() else 200
    )


@contextlib.contextmanager
def working(text: str, quiet: bool) -> Iterator[None]:
    """Show that something is going on, if somebody looks at a terminal."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.text import Text

    with console().status(Text(text)):
        yield


def print_summary(result: Result, output: str, *, quiet: bool, verbose: bool) -> None:
    """Say what was read, what was lost, how it was aligned and what was written."""
    if quiet:
        return
    for source in result.trace.sources:
        print_source(source, verbose)
    if len(result.trace.sources) > 1:
        click.echo(f"\nOn one time axis: {result.trace.clocks[0].describe()}", err=True)
        console().print(receipt_table(result.receipt))
    trace = result.trace
    counts = trace.counts() | {"tracks": len(trace.tracks)}
    written = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    click.echo(f"{'<stdout>' if output == '-' else output}: {written or 'no events'}", err=True)


def print_source(source: SourceInfo, verbose: bool) -> None:
    """The balance, the notes and the diagnostics of one input."""
    click.echo(f"{source.name} ({source.format}): {source.balance.describe()}", err=True)
    for note in source.notes:
        click.echo(f"  note: {note}", err=True)
    for entry in source.diagnostics:
        if verbose or entry.code.severity > Severity.INFO:
            click.echo(f"  {_describe(entry)}", err=True)


def _describe(entry: Diagnostic) -> str:
    times = f"{entry.count} x " if entry.count > 1 else ""
    places = f" [{'; '.join(entry.places)}{'; ...' if entry.count > len(entry.places) else ''}]" if entry.places else ""
    return f"{entry.code.severity.label}: {times}{entry.code.help} ({entry.code.name}){places}"


def receipt_table(receipt: list[ReceiptLine]) -> Table:
    """The receipt for people: one row for each clock of each input; columns that would stay empty are left out."""
    from rich.table import Table

    columns: dict[str, Callable[[ReceiptLine], str]] = {
        "file": lambda line: line.file,
        "clock": lambda line: line.clock,
        "placed by": lambda line: line.method,
        "offset": lambda line: f"{'+' if line.offset_ns >= 0 else ''}{format_time(line.offset_ns)}",
        "drift": lambda line: format_drift(line.drift_ppm) if line.drift_ppm else "",
        "within": lambda line: format_bound(line.bound_ns),
        "matches": _matches,
        "verdict": lambda line: line.verdict,
    }
    rows = {title: [cell(line) for line in receipt] for title, cell in columns.items()}
    shown = [title for title, cells in rows.items() if any(cells)]
    table = Table(box=None, pad_edge=False, header_style="")
    for title in shown:
        table.add_column(title, overflow="fold")
    for cells in zip(*(rows[title] for title in shown), strict=True):
        table.add_row(*cells)
    return table


def _matches(line: ReceiptLine) -> str:
    if not line.matches or line.residual_ns is None:
        return ""
    return f"{line.matches}, {format_time(line.residual_ns)} apart"

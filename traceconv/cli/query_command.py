"""`traceconv query`."""

from __future__ import annotations

import math
import os
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from traceconv import api
from traceconv.align.receipt import warning_lines
from traceconv.answers.frames import Frames
from traceconv.answers.section import Cell, Column, Section, Unit
from traceconv.cli.completion import complete_files
from traceconv.cli.options import HeadedCommand, Named, Verbosity, recordings_options, settings_options
from traceconv.cli.results import print_details, strict_option, verbosity_options
from traceconv.cli.tables import PARQUET, Shown, rendered, shown_options
from traceconv.cli.terminal import say, working
from traceconv.database.question import ask, check
from traceconv.database.views import listed
from traceconv.errors import UsageError
from traceconv.io.folders import check_all_there
from traceconv.io.output import write_output
from traceconv.io.shown import quantity
from traceconv.model.args import as_text
from traceconv.model.diagnostics import FILES, ROWS
from traceconv.model.trace import needed
from traceconv.recordings import Settings

if TYPE_CHECKING:
    import pyarrow

_FORMS = ("text", "csv", "json", PARQUET, "markdown")


def _section(table: pyarrow.Table) -> Section:
    """Return an answer as a table of cells: numbers and texts as they are, lists and structs as JSON.

    Numbers that JSON does not have are texts.
    """
    columns = [list(map(_cell, column.to_pylist())) for column in table.columns]
    is_number = [all(isinstance(value, int | float | None) for value in column) for column in columns]
    titles = tuple(
        Column(name, name, Unit.COUNT if number else Unit.TEXT, whole=True)
        for name, number in zip(table.column_names, is_number, strict=True)
    )
    columns = [list(map(_finite, column)) for column in columns]
    rows: list[tuple[Cell, ...]] = list(zip(*columns, strict=True))
    return Section("query", titles, rows)


def _cell(value: Any) -> Cell:
    plain = _plain(value)
    return as_text(plain) if isinstance(plain, list | dict) else plain


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: bytes as text, and decimals as text where a number loses digits."""
    if isinstance(value, list | tuple):
        return [_finite(_plain(part)) for part in value]
    if isinstance(value, dict):
        return {name: _finite(_plain(part)) for name, part in value.items()}
    if isinstance(value, Decimal):
        number = int(value) if value == value.to_integral_value() else float(value)
        return number if Decimal(repr(number)) == value else str(value)  # all its digits
    return value.hex() if isinstance(value, bytes) else value


def _finite(value: Any) -> Any:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


_list_option = click.option(
    "--list", is_flag=True, expose_value=False, help="List views and columns; without a question."
)


@click.command("query")
@_list_option
@shown_options(("text", "csv", "json", "markdown"), "views.json")
def _list_command(shown: Shown) -> None:
    """Print the views."""
    shown.check([])
    shown.put(rendered([listed()], shown, Verbosity()))


class _QueryCommand(HeadedCommand):
    """The command, which asks nothing of files with --list."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Return the arguments that are left; print the views instead, and end, with --list."""
        if "--list" in args and "--help" not in args:
            with _list_command.make_context(ctx.info_name, args, ctx.parent) as listing:
                _list_command.invoke(listing)
            ctx.exit()
        return super().parse_args(ctx, args)


@click.command("query", cls=_QueryCommand)
@_list_option
@click.option(
    "--allow",
    multiple=True,
    metavar="DIR",
    shell_complete=complete_files,
    help="Let the query read files in this folder: read_parquet('DIR/a.parquet'). May be repeated.",
)
@shown_options(_FORMS, "answer.parquet")
@strict_option
@recordings_options
@click.argument("question")
@settings_options(policy=True, memory=True)
@verbosity_options
def query_command(
    shown: Shown,
    allow: tuple[str, ...],
    strict: bool,
    named: Named,
    question: str,
    settings: Settings,
    verbosity: Verbosity,
) -> None:
    """Answer a question in SQL about recordings.

    \b
      traceconv query --list
      traceconv query kineto.json "select name, dur from slices where depth = 0"
      traceconv query rank0.json rank1.json "from collectives" --json
      traceconv query kineto.json "from counters" -o counters.parquet

    Several files are merged first, as by `merge`. The query sees views of the trace, and no file or variable: DuckDB is
    locked. It needs pip install 'traceconv[sql]'. docs/sql.md has the views, and questions to start from.
    """
    if os.path.isfile(question):
        raise UsageError(f"{question}: the last argument is the question, in SQL", hint="traceconv query --list")
    check(question)
    check_all_there([*named.files, *allow])
    shown.check(named.files)
    recordings = named.opened(settings, verbosity, shown.path)
    with working(f"reading {quantity(len(recordings.paths), FILES)}", verbosity.quiet, recordings.paths):
        trace, aligned = api.on_one_clock(recordings)
        if strict:
            api.refuse_losses(trace)
        table = ask(Frames(trace, aligned), question, allow, printed=shown.form != PARQUET)
    print_details(trace, aligned, verbosity)
    if not (verbosity.quiet or verbosity.verbose):  # with details they are printed
        say(*trace.losses(), *warning_lines(aligned.receipt))
    if shown.form == PARQUET:
        write, pa = needed("pyarrow.parquet", "sql").write_table, needed("pyarrow", "sql")
        try:
            write_output(shown.path, lambda sink: write(table, sink), binary=True, force=shown.force)
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
            raise UsageError(f"Parquet has no such type: {error}", hint="cast the column: column::varchar") from None
    else:
        shown.put(rendered([_section(table)], shown, verbosity))
    if shown.path != "-" and not verbosity.quiet:
        say(f"wrote {shown.path}: {quantity(table.num_rows, ROWS)}")

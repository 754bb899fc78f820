"""`traceconv query`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from traceconv import api
from traceconv.align.receipt import warning_lines
from traceconv.answers.frames import Frames
from traceconv.answers.render import RENDERERS, text
from traceconv.answers.section import Cell, Column, Section, Unit
from traceconv.cli.completion import complete_files
from traceconv.cli.options import HeadedCommand, Named, Verbosity, grouped, recordings_options, settings_options
from traceconv.cli.results import form_options, print_details, strict_option, verbosity_options
from traceconv.cli.terminal import put, say, width_of, working
from traceconv.database.question import ask, check
from traceconv.database.views import listed
from traceconv.errors import UsageError
from traceconv.io.folders import check_all_there
from traceconv.io.output import check_target, write_output
from traceconv.io.shown import quantity
from traceconv.model.args import as_text
from traceconv.model.diagnostics import FILES, ROWS
from traceconv.model.trace import needed
from traceconv.recordings import Settings

if TYPE_CHECKING:
    import pyarrow

_PARQUET = "parquet"
_FORMS = ("text", "csv", "json", _PARQUET, "markdown")
_ENDINGS = {".txt": "text", "": "text", ".csv": "csv", ".json": "json", ".parquet": _PARQUET, ".md": "markdown"}


@dataclass(frozen=True, slots=True)
class _Printed:
    """The form of the answer, and where it goes."""

    form: str
    path: str
    force: bool

    def check(self, files: Sequence[str] = ()) -> None:
        """Raise the errors about the output that are known before the inputs are read."""
        check_target(self.path, binary=self.form == _PARQUET, force=self.force, inputs=files)

    def put(self, table: pyarrow.Table) -> None:
        """Print or write an answer, whole or not at all."""
        if self.form == _PARQUET:
            write = needed("pyarrow.parquet", "sql").write_table
            write_output(self.path, lambda sink: write(table, sink), binary=True, force=self.force)
        else:
            self.put_section(_section(table))

    def put_section(self, section: Section) -> None:
        """Print or write a table of cells."""
        is_text = self.form == "text"
        width = width_of(sys.stdout) if self.path == "-" else 0
        rendered = text([section], 0, width) if is_text else RENDERERS[self.form]([section], 0)
        if self.path == "-":
            put(rendered)
        else:
            write_output(self.path, lambda sink: _write(sink, rendered), binary=False, force=self.force)


def _write(sink: BinaryIO, rendered: str) -> None:
    sink.write(rendered.encode())


def _printed(form: str | None, as_json: bool, path: str, force: bool) -> _Printed:
    """Raise UsageError if no format has the ending of the output, or two are asked for."""
    if as_json and form not in (None, "json"):
        raise UsageError(f"--json and --format {form} contradict each other")
    ending = PurePath(path).suffix.lower()
    form = "json" if as_json else form or _ENDINGS.get(ending)
    if form is None:
        known = ", ".join(filter(None, _ENDINGS))
        raise UsageError(f"{path}: no format has the ending {ending}", hint=f"--format, or one of {known}")
    return _Printed(form, path, force)


def _section(table: pyarrow.Table) -> Section:
    """Return an answer as a table of cells: numbers and texts as they are, all else as JSON."""
    columns = [column.to_pylist() for column in table.columns]
    is_number = [all(isinstance(value, int | float | None) for value in column) for column in columns]
    titles = tuple(
        Column(name, name, Unit.COUNT if number else Unit.TEXT, whole=True)
        for name, number in zip(table.column_names, is_number, strict=True)
    )
    cells = [column if number else list(map(_cell, column)) for column, number in zip(columns, is_number, strict=True)]
    rows: list[tuple[Cell, ...]] = list(zip(*cells, strict=True))
    return Section("query", titles, rows)


def _cell(value: Any) -> Cell:
    return value if value is None or isinstance(value, str | int | float) else as_text(value)


def _list(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:
    """Print the views, and end."""
    if wanted:
        put(text([listed()], 0, width_of(sys.stdout)))
        ctx.exit()


@click.command("query", cls=HeadedCommand)
@click.option("--list", is_flag=True, is_eager=True, expose_value=False, callback=_list, help="List views and columns.")
@click.option(
    "--allow",
    multiple=True,
    metavar="DIR",
    shell_complete=complete_files,
    help="Let the query read files in this folder: read_parquet('DIR/a.parquet'). May be repeated.",
)
@grouped(
    "printed",
    _printed,
    *form_options(_FORMS, "answer.parquet"),
)
@strict_option
@recordings_options
@click.argument("question")
@settings_options(policy=True, memory=True)
@verbosity_options
def query_command(
    printed: _Printed,
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
    printed.check(named.files)
    recordings = named.opened(settings, verbosity, printed.path)
    with working(f"reading {quantity(len(recordings.paths), FILES)}", verbosity.quiet, recordings.paths):
        trace, aligned = api.on_one_clock(recordings, Settings())
        if strict:
            api.refuse_losses(trace)
        table = ask(Frames(trace, aligned), question, allow)
    print_details(trace, aligned, verbosity)
    if not (verbosity.quiet or verbosity.verbose):  # with details they are printed
        say(*trace.losses(), *warning_lines(aligned.receipt))
    printed.put(table)
    if printed.path != "-" and not verbosity.quiet:
        say(f"wrote {printed.path}: {quantity(table.num_rows, ROWS)}")

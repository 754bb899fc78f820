"""How commands print tables: the options that say in what form and where, and the printing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any

import click
from msgspec import Struct

from traceconv.answers.render import RENDERERS, screen, text
from traceconv.answers.section import Section
from traceconv.cli.completion import complete_files
from traceconv.cli.options import Decorator, Verbosity, grouped
from traceconv.cli.results import force_option
from traceconv.cli.terminal import put, say, width_of
from traceconv.errors import UsageError
from traceconv.io.output import check_target, write_output

PARQUET = "parquet"
#: A trace, beside which tables are printed as text.
PICTURE = "pftrace"
_ENDINGS = {
    ".html": "html",
    ".htm": "html",
    ".md": "markdown",
    ".csv": "csv",
    ".json": "json",
    ".parquet": PARQUET,
    ".pftrace": PICTURE,
    ".txt": "text",
    "": "text",
}
#: The most rows of a table by its form; data has all.
_ROWS = {"text": 20, "markdown": 20, "html": 100}


class Shown(Struct, frozen=True):
    """How tables are printed, and where.

    Attributes:
        form: the form.
        path: the file; "-" for standard output.
        force: whether a file is replaced.
        details: whether columns that text omits are printed, too.
        top: the most rows of a table, 0 for all; None if the user does not say.
    """

    form: str
    path: str
    force: bool
    details: bool
    top: int | None

    @property
    def rows(self) -> int:
        """The most rows of a table, 0 for all."""
        return _ROWS.get(self.form, 0) if self.top is None else self.top

    def check(self, files: Sequence[str]) -> None:
        """Raise the errors about the output that are known before the inputs are read."""
        check_target(self.path, binary=self.form in (PARQUET, PICTURE), force=self.force, inputs=files)

    def put(self, rendered: str) -> None:
        """Print or write tables, whole or not at all."""
        if self.path == "-":
            put(rendered)
        else:
            write_output(self.path, lambda sink: sink.write(rendered.encode()), binary=False, force=self.force)


def shown_options(forms: Sequence[str], example: str, *others: Decorator[Any]) -> Decorator[Any]:
    """Return the options of commands that print tables, as `shown: Shown`.

    Args:
        forms: the forms that a command has.
        example: a name of an output.
        others: the options `--details` and `--top`, if a command has them.
    """

    def shown(
        form: str | None, as_json: bool, path: str, force: bool, details: bool = False, top: int | None = 0
    ) -> Shown:
        """Raise UsageError if no form has the ending of the output, or two are asked for."""
        if as_json and form not in (None, "json"):
            raise UsageError(f"--json and --format {form} contradict each other")
        endings = {ending: form for ending, form in _ENDINGS.items() if form in forms}
        ending = PurePath(path).suffix.lower()
        form = "json" if as_json else form or endings.get(ending)
        if form is None:
            known = ", ".join(filter(None, endings))
            raise UsageError(f"{path}: no format has the ending {ending}", hint=f"--format, or one of {known}")
        if form == PICTURE and path == "-":
            raise UsageError(f"--format {PICTURE}: the trace needs a file", hint=f"-o diff.{PICTURE}")
        return Shown(form, path, force, details, top)

    form_help = "Output format. Default: from the ending of the output, else text."
    output_help = f"The file to write, such as {example}. Default: standard output."
    return grouped(
        "shown",
        shown,
        *others,
        click.option("--format", "form", type=click.Choice(forms), help=form_help),
        click.option("--json", "as_json", is_flag=True, help="The same as --format json."),
        click.option(
            "-o", "--output", "path", shell_complete=complete_files, default="-", metavar="FILE", help=output_help
        ),
        force_option,
    )


def section_options(*others: str) -> Decorator[Any]:
    """Return the options of commands that print sections, which may have other forms, too."""
    return shown_options(
        [*RENDERERS, *others],
        "report.html",
        click.option(
            "--details",
            is_flag=True,
            help="Also print the columns that text output omits, such as the totals of layers.",
        ),
        click.option(
            "--top",
            type=click.IntRange(0),
            help="Print at most this many rows of each table; 0: all. Default: 20, 100 in HTML, all in JSON and CSV, "
            "and on a terminal what fits a screen.",
        ),
    )


def rendered(
    printed: Sequence[Section], shown: Shown, verbosity: Verbosity, more: Callable[[Sequence[str]], str] | None = None
) -> str:
    """Return tables in their form.

    Args:
        printed: the tables.
        shown: their form, and the place.
        verbosity: how much is printed.
        more: returns the options that print all rows of some tables; a terminal gets a screen, unless the user asked
            for more. None for all tables.
    """
    if shown.form != "text":
        return RENDERERS[shown.form](printed, shown.rows)
    width = width_of(sys.stdout) if shown.path == "-" else 0
    if more is not None and width and shown.top is None and not verbosity.verbose:
        return screen(printed, width, more)
    return text(printed, shown.rows, width, legends=verbosity.verbose)


def print_sections(
    printed: Sequence[Section], shown: Shown, verbosity: Verbosity, more: Callable[[Sequence[str]], str] | None
) -> None:
    """Print or write tables, and say which were written; the arguments are those of `rendered`."""
    tables = rendered(printed, shown, verbosity, more)
    if shown.form == "csv" and not verbosity.quiet:  # it has no place for notes, and losses and warnings are among them
        say(*(f"{section.name}: {note}" for section in printed for note in section.first(shown.rows)[1]))
        say(*(note for section in printed for note in section.notes))
    shown.put(tables)
    if shown.path != "-" and not verbosity.quiet:
        say(f"wrote {shown.path}: {', '.join(section.name for section in printed)}")

"""`traceconv export`."""

from __future__ import annotations

import click

from traceconv import api
from traceconv.cli import _common as common
from traceconv.cli._inputs import Verbosity
from traceconv.cli._progress import working
from traceconv.cli._recordings import Named, recordings_options, settings_options
from traceconv.cli._terminal import say
from traceconv.inputs import Settings
from traceconv.io.folders import check_all_there
from traceconv.io.shown import quantity
from traceconv.model.counted import FILES, TABLES


@click.command("export")
@click.option(
    "-o",
    "--output",
    "path",
    required=True,
    metavar="FOLDER",
    help="Folder to write, with a name ending in .parquet, .csv or .arrow.",
)
@click.option("--arg", "args", multiple=True, metavar="KEY", help="Add a column args.KEY for this arg.")
@common.force_option
@common.strict_option
@recordings_options
@settings_options(policy=True, memory=True)
@common.verbosity_options
def command(
    path: str,
    args: tuple[str, ...],
    force: bool,
    strict: bool,
    named: Named,
    settings: Settings,
    verbosity: Verbosity,
) -> None:
    """Write recordings as tables for pandas, polars, DuckDB and spreadsheets.

    \b
      traceconv export kineto.json -o run.parquet
      traceconv export kineto.json onednn.log -o run.csv
      traceconv export kineto.json --arg device --arg stream -o run.arrow

    Several files are merged first, as by `merge`. The folder gets one file per table; docs/python-api.md lists their
    columns. This needs pyarrow: pip install 'traceconv[arrow]'.
    """
    from traceconv.answers.export import check_export

    check_all_there(named.files)
    check_export(path, None, force=force)
    recordings = named.opened(settings, verbosity, path)
    with working(f"reading {quantity(len(recordings.paths), FILES)}", verbosity.quiet, recordings.paths):
        tables = api.export(recordings, api.Output(path, force=force, strict=strict), args=args)
    common.print_details(tables.trace, tables.aligned, verbosity)
    if not verbosity.quiet:
        if not verbosity.verbose:  # else they were printed with the details
            say(*tables.losses, *tables.warnings)
        empty = "no event here has it, so its columns are empty"
        say(*(f"--arg {key}: {empty}" for key in tables.absent_args()))
        say(f"{path}: {quantity(len(tables), TABLES)}")

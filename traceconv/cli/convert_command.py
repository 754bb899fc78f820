"""`traceconv convert`."""

from __future__ import annotations

import click

from traceconv import api
from traceconv.cli import _common as common
from traceconv.cli._inputs import Verbosity
from traceconv.cli._progress import working
from traceconv.cli._recordings import Named, recording_options, settings_options
from traceconv.inputs import Settings
from traceconv.io.folders import shown


@click.command("convert")
@common.output_options
@recording_options
@settings_options(memory=True)
@common.verbosity_options
def command(output: api.Output, named: Named, settings: Settings, verbosity: Verbosity) -> None:
    """Turn one recording into a trace.

    \b
      traceconv convert onednn.log                      # writes onednn.pftrace
      traceconv convert profile.json.gz -o profile.json
      some-program | traceconv convert - --to chrome-json > trace.json
      TMPDIR=/scratch traceconv convert huge.json --memory 2G -o huge.pftrace

    FILE may be - for standard input. gzip, zip and UTF-16 are detected from the content. FILE may also be a folder or
    an archive with one recording in it.
    """
    output = common.named(output, named.files)
    recording = named.opened(settings, verbosity, output.path, single=True)
    with working(f"converting {shown(recording.paths[0])}", verbosity.quiet, recording.paths):
        result = api.merge(recording, output)
    common.print_summary(result, output.path, verbosity)

"""`traceconv convert`."""

from __future__ import annotations

import click

from traceconv import api
from traceconv.cli import _common as common
from traceconv.cli import _complete
from traceconv.cli._inputs import Verbosity
from traceconv.cli._limits import limit_options
from traceconv.cli._progress import working
from traceconv.expanding import one_recording
from traceconv.io.folders import shown
from traceconv.io.limits import Limits


@click.command("convert")
@common.output_options
@common.recording
@click.option(
    "--from",
    "format_name",
    metavar="FORMAT",
    shell_complete=_complete.formats,
    help="Read the input as this format, instead of the one found.",
)
@common.memory_option
@limit_options
@common.verbosity_options
def command(
    output: api.Output,
    recording: common.Recordings,
    format_name: str | None,
    memory: int | None,
    limits: Limits,
    said: Verbosity,
) -> None:
    """Turn one recording into a trace.

    \b
      traceconv convert onednn.log                      # writes onednn.pftrace
      traceconv convert profile.json.gz -o profile.json
      some-program | traceconv convert - --to chrome-json > trace.json
      TMPDIR=/scratch traceconv convert huge.json --memory 2G -o huge.pftrace

    FILE may be - for standard input; gzip, zip and UTF-16 are seen by content. It may be a folder or an archive with
    one recording in it.
    """
    output = common.named(output, recording.files)
    path = one_recording(recording.files[0], limits, output.path)
    recording = recording.of(path)
    (one,), shared = recording.inputs()
    with working(f"converting {shown(path)}", said.quiet, [path]):
        result = api.convert(
            one.path,
            output,
            format=format_name,
            options=shared | dict(one.options),
            constraints=recording.constraints(),
            memory=memory,
            limits=limits,
        )
    common.print_summary(result, output, said)

"""`traceconv convert`, `merge` and `demo`."""

from __future__ import annotations

import importlib.resources
import shlex
import sys
import tempfile
from pathlib import Path

import click

from traceconv import api
from traceconv.cli.completion import complete_files
from traceconv.cli.options import (
    HeadedCommand,
    Named,
    Verbosity,
    recording_options,
    recordings_options,
    settings_options,
)
from traceconv.cli.results import (
    force_option,
    merged_output_options,
    output_named,
    output_options,
    print_summary,
    report_option,
    verbosity_options,
)
from traceconv.cli.terminal import put, say, width_of, working
from traceconv.io.folders import shown
from traceconv.io.shown import quantity
from traceconv.model.diagnostics import FILES, MORE_ROWS
from traceconv.recordings import Settings


@click.command("convert", cls=HeadedCommand)
@output_options
@recording_options
@settings_options(memory=True)
@verbosity_options
def convert_command(output: api.Output, named: Named, settings: Settings, verbosity: Verbosity) -> None:
    """Turn one recording into a trace.

    \b
      traceconv convert onednn.log                      # writes onednn.pftrace
      traceconv convert profile.json.gz -o profile.json
      some-program | traceconv convert - --to chrome-json > trace.json
      TMPDIR=/scratch traceconv convert huge.json --memory 2G -o huge.pftrace

    FILE may be - for standard input, or a folder or an archive with one recording in it. gzip, zip, UTF-16 and UTF-32
    are detected.
    """
    output = output_named(output, named.files)
    recording = named.opened(settings, verbosity, output.path, single=True)
    with working(f"converting {shown(recording.paths[0])}", verbosity.quiet, recording.paths):
        result = api.merge(recording, output)
    print_summary(result, output.path, verbosity)


@click.command("merge", cls=HeadedCommand)
@merged_output_options
@recordings_options
@report_option
@settings_options(policy=True, memory=True)
@verbosity_options
def merge_command(
    output: api.Output, named: Named, reports: tuple[str, ...], settings: Settings, verbosity: Verbosity
) -> None:
    """Put several recordings on one time axis.

    \b
      traceconv merge kineto.json onednn.log -o out.pftrace
      traceconv merge kineto.json onednn.log      # writes kineto-merged.pftrace
      traceconv merge runs/ -o out.pftrace        # a folder or an archive
      traceconv merge rank0.json rank1.json --offset rank1.json=-350us
      traceconv merge viztracer.json run.log --clock run.log=monotonic \\
          --clock viztracer.json=monotonic -o out.pftrace
      traceconv merge ort.json onednn.log -o out.pftrace \\
          --anchor 'ort.json:conv1#1.end=onednn.log:convolution#1.end'

    A folder, a zip or a tar archive stands for the recordings in it. Each file is placed by the clock that it states,
    or by its events. The receipt shows the evidence and the uncertainty. If nothing relates the clocks of two files,
    merge refuses.
    """
    output = output_named(output, named.files, reports)
    recordings = named.opened(settings, verbosity, str(output.path))
    with working(f"merging {quantity(len(recordings.paths), FILES)}", verbosity.quiet, recordings.paths):
        result = api.merge(recordings, output, report=reports)
    print_summary(result, output.path, verbosity)


#: The recordings that the package carries, and where a source tree has them: a PyTorch profile, and the oneDNN log of
#: the same process.
_RECORDINGS = {
    "kineto.json": "golden/pytorch-kineto/torch-convnet-process/input.json",
    "onednn.log": "golden/onednn-verbose/torch-convnet-process/input.log",
}
_ROWS = 10


@click.command("demo")
@click.option(
    "-o",
    "--output",
    "path",
    default="demo.pftrace",
    show_default=True,
    metavar="FILE",
    shell_complete=complete_files,
    help="The file to write.",
)
@force_option
@verbosity_options
def demo_command(path: str, force: bool, verbosity: Verbosity) -> None:
    """Merge two recordings that come with traceconv, to see what it does.

    \b
      traceconv demo -o demo.pftrace

    They are a PyTorch profile and the oneDNN log of the same process. The receipt shows how they were aligned. The
    table shows how long the primitives of each layer took.
    """
    from traceconv.answers import Questions  # convert and merge need no answers
    from traceconv.answers.render import text

    output = api.Output(path, force=force)
    with tempfile.TemporaryDirectory(prefix="traceconv-") as folder:
        inputs = [Path(folder, name) for name in _RECORDINGS]
        for file in inputs:
            file.write_bytes(_recording(file.name))
        result = api.merge(inputs, output)
    print_summary(result, output.path, verbosity)
    if verbosity.quiet:
        return
    (layers,) = api.report(result.trace, Questions(("layers",)))
    hidden = len(layers.rows) - _ROWS
    del layers.rows[_ROWS:]
    put("\n" + text([layers], 0, width_of(sys.stdout)))
    if path != "-":
        shown = shlex.quote(path)
        say("", f"{quantity(hidden, MORE_ROWS)}: traceconv report {shown} --section layers", err=False)
        say("", f"to see it: traceconv open {shown} (or drop {shown} on https://ui.perfetto.dev)", err=False)


def _recording(name: str) -> bytes:
    package = importlib.resources.files("traceconv")
    packaged = package / "demo" / name
    return packaged.read_bytes() if packaged.is_file() else Path(str(package), "..", _RECORDINGS[name]).read_bytes()

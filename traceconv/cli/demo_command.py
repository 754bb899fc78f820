"""`traceconv demo`."""

from __future__ import annotations

import importlib.resources
import shlex
import sys
import tempfile
from pathlib import Path

import click

from traceconv import api
from traceconv.answers import Questions
from traceconv.answers.render import text
from traceconv.cli import _common as common
from traceconv.cli import _complete
from traceconv.cli._inputs import Verbosity
from traceconv.cli._terminal import put, say, width_of
from traceconv.io.shown import quantity
from traceconv.model.counted import MORE_ROWS

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
    shell_complete=_complete.files,
    help="The file to write.",
)
@common.force_option
@common.verbosity_options
def command(path: str, force: bool, verbosity: Verbosity) -> None:
    """Merge two recordings that come with traceconv, to see what it does.

    \b
      traceconv demo -o demo.pftrace

    They are a PyTorch profile and the oneDNN log of the same process. The receipt shows how they were aligned. The
    table shows how long the primitives of each layer took.
    """
    output = api.Output(path, force=force)
    with tempfile.TemporaryDirectory(prefix="traceconv-") as folder:
        inputs = [Path(folder, name) for name in _RECORDINGS]
        for file in inputs:
            file.write_bytes(_recording(file.name))
        result = api.merge(inputs, output)
    common.print_summary(result, output.path, verbosity)
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

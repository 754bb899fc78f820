"""`traceconv merge`."""

from __future__ import annotations

import click

from traceconv import api
from traceconv.cli import _common as common
from traceconv.cli._inputs import Verbosity
from traceconv.cli._progress import working
from traceconv.cli._recordings import Named, recordings_options, settings_options
from traceconv.inputs import Settings
from traceconv.io.shown import quantity
from traceconv.model.counted import FILES


@click.command("merge")
@common.merged_output_options
@recordings_options
@common.report_option
@settings_options(policy=True, memory=True)
@common.verbosity_options
def command(
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

    A folder, a zip or a tar archive stands for the recordings in it, in sorted order. Files that are left out are
    listed. Each file is placed by the clock that it states, or by its events. The receipt at the end shows the
    evidence and the uncertainty. If nothing relates the clocks of two files, merge refuses.
    """
    output = common.named(output, named.files, reports)
    recordings = named.opened(settings, verbosity, str(output.path))
    with working(f"merging {quantity(len(recordings.paths), FILES)}", verbosity.quiet, recordings.paths):
        result = api.merge(recordings, output, report=reports)
    common.print_summary(result, output.path, verbosity)

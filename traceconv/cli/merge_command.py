"""`traceconv merge`."""

from __future__ import annotations

import click

from traceconv import api
from traceconv.align import Policy
from traceconv.cli import _common as common
from traceconv.cli._inputs import Verbosity
from traceconv.cli._limits import limit_options
from traceconv.cli._progress import working
from traceconv.cli._recordings import Named, policy_options, recordings_options
from traceconv.io.limits import Limits


@click.command("merge")
@common.merged_output_options
@recordings_options
@policy_options
@common.report_option
@common.memory_option
@limit_options
@common.verbosity_options
def command(
    output: api.Output,
    named: Named,
    policy: Policy,
    reports: tuple[str, ...],
    memory: int | None,
    limits: Limits,
    said: Verbosity,
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
    output = common.named(output, named.files)
    recordings = named.opened(limits, said, str(output.path))
    with working(f"merging {len(recordings.paths)} files", said.quiet, recordings.paths):
        result = api.merge(
            recordings.inputs,
            output,
            options=recordings.options,
            constraints=recordings.constraints,
            policy=policy,
            report=reports,
            memory=memory,
            limits=limits,
        )
    common.print_summary(result, output, said)

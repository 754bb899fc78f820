"""`traceconv merge`."""

from __future__ import annotations

import click

from traceconv import api
from traceconv.align import Policy
from traceconv.cli import _common as common
from traceconv.cli._inputs import Verbosity
from traceconv.cli._limits import limit_options
from traceconv.cli._progress import working
from traceconv.io.limits import Limits


@click.command("merge")
@common.merged_output_options
@common.recordings
@common.policy_options
@common.report_option
@common.memory_option
@limit_options
@common.verbosity_options
def command(
    output: api.Output,
    recordings: common.Recordings,
    policy: Policy,
    reports: tuple[str, ...],
    memory: int | None,
    limits: Limits,
    said: Verbosity,
) -> None:
    """Put several recordings on one time axis.

    \b
      traceconv merge kineto.json onednn.log -o out.pftrace
      traceconv merge kineto.json onednn.log            # writes kineto-merged.pftrace
      traceconv merge runs/ -o out.pftrace              # all recordings in a folder or an archive
      traceconv merge rank0.json rank1.json --offset rank1.json=-350us -o out.pftrace
      traceconv merge viztracer.json run.log --clock run.log=monotonic --clock viztracer.json=monotonic -o out.pftrace
      traceconv merge ort.json onednn.log --anchor 'ort.json:Conv#1.start=onednn.log:convolution#1.start' -o out.pftrace

    Of a folder, a zip or a tar archive the recordings are taken in sorted order, and listed, as is what is left out.
    Each file is placed by what it says about its clock; the receipt at the end says how, and how sure that is. Files
    whose clocks nothing relates are refused.
    """
    output = common.named(output, recordings.files)
    recordings = recordings.expanded(limits, said, str(output.path))
    (inputs, options), constraints = recordings.inputs(), recordings.constraints()
    with working(f"merging {len(inputs)} files", said.quiet, recordings.paths):
        result = api.merge(
            inputs,
            output,
            options=options,
            constraints=constraints,
            policy=policy,
            report=reports,
            memory=memory,
            limits=limits,
        )
    common.print_summary(result, output, said)

"""`traceconv merge`."""

from __future__ import annotations

import click

from traceconv import api
from traceconv.cli import _common as common
from traceconv.cli._limits import limit_options
from traceconv.io.limits import Limits


@click.command("merge")
@click.argument("files", nargs=-1, required=True)
@common.output_option
@common.to_option
@common.input_options
@common.fact_options
@common.policy_options
@common.importer_option
@common.force_option
@common.strict_option
@common.memory_option
@limit_options
@common.quiet_option
@common.verbose_option
def command(
    files: tuple[str, ...],
    output: str,
    to: str | None,
    formats: tuple[str, ...],
    offsets: tuple[str, ...],
    same_machine: bool,
    options: tuple[str, ...],
    anchors: tuple[str, ...],
    drifts: tuple[str, ...],
    clocks: tuple[str, ...],
    zones: tuple[str, ...],
    dates: tuple[str, ...],
    on_ambiguous: str,
    same_run: bool,
    classes: tuple[str, ...],
    reports: tuple[str, ...],
    force: bool,
    strict: bool,
    memory: int | None,
    quiet: bool,
    verbose: bool,
    limits: Limits,
) -> None:
    """Put several recordings on one time axis.

    \b
      traceconv merge kineto.json onednn.log -o out.pftrace
      traceconv merge rank0.json rank1.json --offset rank1.json=-350us -o out.pftrace
      traceconv merge viztracer.json run.log --clock run.log=monotonic --clock viztracer.json=monotonic -o out.pftrace
      traceconv merge ort.json onednn.log --anchor 'ort.json:Conv#1.start=onednn.log:convolution#1.start' -o out.pftrace

    Each file is placed by what it says about its clock; the receipt at the end says how, and how sure that is. Files
    whose clocks nothing relates are refused.
    """
    inputs, shared = common.inputs_of(files, formats, offsets, options)
    facts = common.facts_of(files, anchors, drifts, clocks, zones, dates)
    policy = common.policy_of(on_ambiguous, same_run, classes)
    with common.working(f"merging {len(files)} files", quiet):
        result = api.merge(
            inputs,
            output,
            to=to,
            options=shared,
            same_machine=same_machine,
            facts=facts,
            policy=policy,
            report=reports,
            force=force,
            strict=strict,
            memory=memory,
            limits=limits,
        )
    common.print_summary(result, output, quiet=quiet, verbose=verbose)

"""`traceconv align`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from traceconv import api
from traceconv.align import Policy
from traceconv.cli import _common as common
from traceconv.cli._inputs import Verbosity
from traceconv.cli._progress import working
from traceconv.cli._recordings import Named, policy_options, recordings_options
from traceconv.cli._terminal import say

if TYPE_CHECKING:
    from traceconv.align.pairs import PairEstimate


from traceconv.cli._limits import limit_options
from traceconv.io.limits import Limits


@click.command("align")
@recordings_options
@policy_options
@common.report_option
@common.force_option
@limit_options
@common.verbosity_options
def command(
    named: Named,
    policy: Policy,
    reports: tuple[str, ...],
    force: bool,
    limits: Limits,
    said: Verbosity,
) -> None:
    """Print how recordings can be aligned, and how certain that is, without writing a trace.

    \b
      traceconv align ort.json perf.data
      traceconv align kineto.json onednn.log --report align.html
    """
    recordings = named.opened(limits, said)
    with working(f"aligning {len(recordings.paths)} files", said.quiet, recordings.paths):
        alignment, checks = api.estimate(
            recordings.inputs,
            options=recordings.options,
            constraints=recordings.constraints,
            policy=policy,
            report=reports,
            force=force,
            limits=limits,
        )
    if said.quiet:
        return
    say(f"On one time axis: {alignment.clock.describe()}")
    common.print_receipt(alignment.receipt, checks, alignment.together, alignment.files, verbose=said.verbose)
    for apart in alignment.hosts_apart:
        say(apart.describe())
    for pair in alignment.pairs:
        say(_what_events_say(pair))


def _what_events_say(pair: PairEstimate) -> str:
    """Return what the events of two files say, and whether they were placed by it."""
    names, found = (pair.a.name, pair.b.name), pair.estimate
    verdict = f"not used ({found.verdict})" if found.verdict.refused and not pair.taken else found.verdict
    return f"{' and '.join(names)}: {pair.way.method}: {verdict}: {found.reason}"

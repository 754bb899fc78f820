"""`traceconv align`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from traceconv import api
from traceconv.align.receipt import likewise
from traceconv.cli import _common as common
from traceconv.cli._inputs import Verbosity
from traceconv.cli._progress import working
from traceconv.cli._recordings import Named, recordings_options, settings_options
from traceconv.cli._terminal import say
from traceconv.inputs import Settings
from traceconv.io.folders import check_all_there
from traceconv.io.shown import quantity
from traceconv.model.counted import FILES

if TYPE_CHECKING:
    from traceconv.align.pairs import PairEstimate


@click.command("align")
@recordings_options
@common.report_option
@common.force_option
@settings_options(policy=True)
@common.verbosity_options
def command(named: Named, reports: tuple[str, ...], force: bool, settings: Settings, verbosity: Verbosity) -> None:
    """Print how recordings can be aligned, and how certain that is, without writing a trace.

    \b
      traceconv align ort.json perf.data
      traceconv align kineto.json onednn.log --report align.html
    """
    check_all_there(named.files)
    api.check_reports(reports, "", named.files, force=force)
    recordings = named.opened(settings, verbosity)
    with working(f"aligning {quantity(len(recordings.paths), FILES)}", verbosity.quiet, recordings.paths):
        alignment, checks = api.estimate(recordings, report=reports, force=force)
    if verbosity.quiet:
        return
    say(f"On one time axis: {alignment.clock.describe()}")
    common.print_receipt(alignment.receipt, checks, alignment.together, alignment.files, verbose=verbosity.verbose)
    for apart in alignment.hosts_apart:
        say(apart.describe())
    others_of: dict[tuple[str, str], list[str]] = {}
    for pair in alignment.pairs:
        others_of.setdefault((pair.a.name, _what_events_say(pair)), []).append(pair.b.name)
    for (name, text), (first, *others) in others_of.items():
        say(f"{name} and {first}: {text}", *[f"  {more}" for more in [likewise(others)] if more])


def _what_events_say(pair: PairEstimate) -> str:
    """Return the estimate for two files, and whether it placed them."""
    estimate = pair.estimate
    verdict = f"not used ({estimate.verdict})" if estimate.verdict.refused and not pair.taken else estimate.verdict
    return f"{pair.clock_map.method}: {verdict}: {estimate.reason}"

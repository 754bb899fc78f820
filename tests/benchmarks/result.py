"""The .pftrace itself: how fast the trace processor loads it, and how large it is, beside the same trace as JSON."""

from __future__ import annotations

import subprocess
from functools import partial
from pathlib import Path

from tests.benchmarks.frame import ROOT, Contestant, Goal, Measured, Race, Reached, Work, at_most, traceconv
from tests.benchmarks.generate import Summary, generate
from tests.benchmarks.judge import expect, load_command
from tests.benchmarks.to_pftrace import describe

AS_JSON, AS_PFTRACE = "loading the JSON", "loading the pftrace"
_SHARE = 0.45


def _prepare(folder: Path, events: int) -> Race:
    source, converted = folder / "trace.json", folder / "trace.pftrace"
    compact = generate(source, events, pretty=False).bytes
    summary = generate(source, events)
    subprocess.run(traceconv("convert", source, "-o", converted), cwd=ROOT, check=True, capture_output=True)
    size = converted.stat().st_size
    return Race(
        {AS_JSON: Contestant(load_command(source)), AS_PFTRACE: Contestant(load_command(converted))},
        f"{describe(summary)}, {compact / 1e6:.1f} MB without white space; as pftrace {size / 1e6:.1f} MB",
        {"input_bytes": float(summary.bytes), "output_bytes": float(size)},
        verify=partial(_verify, source, converted, summary),
    )


def _verify(source: Path, converted: Path, summary: Summary) -> list[str]:
    return [f"as JSON: {expect(source, summary)}", f"as pftrace: {expect(converted, summary)}"]


def _size(measured: Measured) -> Reached:
    share = measured.race.info["output_bytes"] / measured.race.info["input_bytes"]
    return Reached(f"{share:.0%}", share / _SHARE)


RESULT = Work(
    name="result",
    title="The result, in the trace processor",
    goals=(at_most(1.0, AS_PFTRACE, AS_JSON), Goal(f"≤ {_SHARE:.0%} of the size of the JSON", _size)),
    events=500_000,
    small=100_000,
    prepare=_prepare,
)

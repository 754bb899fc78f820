"""Chrome JSON as the output: from Chrome JSON, and from .pftrace."""

from __future__ import annotations

import subprocess
from functools import partial
from pathlib import Path

from tests.benchmarks.frame import ROOT, Contestant, Race, Work, at_most, script, traceconv
from tests.benchmarks.generate import Summary, generate
from tests.benchmarks.judge import expect
from tests.benchmarks.to_pftrace import OURS, describe

PEER = "orjson.loads + dumps"


def _prepare(folder: Path, events: int, *, of_pftrace: bool) -> Race:
    source, output, dumped = folder / "trace.json", folder / "traceconv.json", folder / "dumped.json"
    summary = generate(source, events)
    inputs = describe(summary)
    read = source
    if of_pftrace:
        read = folder / "trace.pftrace"
        subprocess.run(traceconv("convert", source, "-o", read), cwd=ROOT, check=True, capture_output=True)
        inputs += f"; as pftrace {read.stat().st_size / 1e6:.1f} MB"
    contestants = {
        PEER: Contestant(script("load_and_dump", source, dumped), dumped, needs="orjson"),
        OURS: Contestant(traceconv("convert", read, "-o", output), output),
    }
    return Race(contestants, inputs, verify=partial(_verify, output, summary))


def _verify(output: Path, summary: Summary) -> list[str]:
    return [f"{output.name}: {output.stat().st_size / 1e6:.1f} MB, {expect(output, summary)}"]


FROM_JSON = Work(
    name="json",
    title="Chrome JSON to Chrome JSON",
    goals=(at_most(1.5, OURS, PEER),),
    events=500_000,
    small=100_000,
    prepare=partial(_prepare, of_pftrace=False),
)
FROM_PFTRACE = Work(
    name="pftrace-json",
    title="pftrace to Chrome JSON",
    goals=(at_most(1.5, OURS, PEER),),
    events=500_000,
    small=100_000,
    prepare=partial(_prepare, of_pftrace=True),
)

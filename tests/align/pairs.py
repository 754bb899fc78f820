"""Two recordings of one simulated run, as traces on clocks that nothing relates."""

from __future__ import annotations

import numpy as np

from tests.benchmarks.alignment.simulate import Shape, Truth, inner, outer, run
from traceconv.align.estimate import Events
from traceconv.model.builder import Builder
from traceconv.model.clocks import ClockDomain, Run, Zero
from traceconv.model.layout import lay_out
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import Trace

TRUTH = Truth(offset=4_300_000_000.0, drift=37e-6)
_NAMES = ("convolution", "softmax", "pooling", "matmul")


def private(name: str, zero: Zero = Zero.UNKNOWN) -> ClockDomain:
    """A clock in whole microseconds that says nothing about others."""
    return ClockDomain(name, zero, Run.MONOTONIC, 1000)


def trace_of(events: Events, name: str, clock: ClockDomain | None = None) -> Trace:
    """A recording that holds events."""
    out = Builder(SourceInfo(name, name.partition(".")[0]), clock or private(f"clock of {name}"))
    track = out.tracks.thread(out.tracks.process("run", pid=1), 1, "work")
    rows = zip(events.start.tolist(), events.dur.tolist(), events.kind.tolist(), strict=True)
    for at, (start, dur, kind) in enumerate(rows, 1):
        out.slice(track, events.zero_ns + int(start), int(dur), _NAMES[kind], at=at)
    return lay_out(out.finish())


def recordings(seed: int = 1, shape: Shape | None = None, *, part: tuple[float, float] = (0.0, 1.0)) -> list[Trace]:
    """What a framework and the library below it wrote down of one run."""
    rng = np.random.default_rng(seed)
    made = run(rng, shape or Shape(iterations=60))
    seen, _ = inner(rng, made, TRUTH, part=part)
    return [trace_of(outer(made), "framework.json"), trace_of(seen, "library.log")]

"""What a thread did at each time narrows a relation down, and never past the truth."""

from __future__ import annotations

import numpy as np
import pytest

from tests.align.pairs import private
from tests.benchmarks.alignment.simulate import US
from traceconv.align.constraints import NameMap
from traceconv.align.estimate import Events
from traceconv.align.features import nested_work, shared_work
from traceconv.align.geometry import Line, Region, box
from traceconv.align.matching import UNNAMED, ThreadStretches, best_near, fits_on, possible
from traceconv.model.builder import Builder
from traceconv.model.layout import lay_out
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import Trace

OFFSET, DRIFT = 3_000_000.0, 20e-6
OPERATORS = 300


def framework(operators: list[tuple[int, int, list[tuple[int, int]]]]) -> Trace:
    """Convolutions, each with what it calls."""
    out = Builder(SourceInfo("framework.json", "framework"), private("framework"))
    track = out.tracks.thread(out.tracks.process("run", pid=1), 1, "work")
    for at, (start, dur, called) in enumerate(operators, 1):
        out.slice(track, start, dur, "aten::conv2d", at=at)
        for first, long in called:
            out.slice(track, first, long, "aten::empty", at=at)
    return lay_out(out.finish())


def library(calls: list[tuple[int, int, str]]) -> Trace:
    """Primitives one after the other."""
    out = Builder(SourceInfo("library.log", "library"), private("library"))
    track = out.tracks.thread(out.tracks.process("run", pid=1), 1, "work")
    for at, (start, dur, name) in enumerate(calls, 1):
        out.slice(track, start, dur, name, at=at)
    return lay_out(out.finish())


def recorded(rng: np.random.Generator) -> tuple[Trace, Trace]:
    """Operators of 200 us that call something for 60 us, then reorder and convolve in the 60 us before they call again.

    A primitive begins at least 4 us after what was called before it, and ends at least 4 us before what is next.
    """
    operators, calls = [], []
    at = 0
    for _ in range(OPERATORS):
        at += int(rng.integers(20, 900)) * 1000
        spare = rng.exponential(5.0, 3) * US
        first = at + 60_000 + 4_000 + int(spare[0])
        reorder, convolution = 10_000, int(rng.integers(25, 45)) * 1000
        then = first + reorder + 2_000 + int(spare[1])
        after = then + convolution + 4_000 + int(spare[2])
        operators.append((at, after + 60_000 - at, [(at + 5_000, 55_000), (after, 50_000)]))
        calls += [(first, reorder, "reorder"), (then, convolution, "convolution")]
        at = after + 60_000
    moved = [(int(start * (1 + DRIFT) + OFFSET), dur, name) for start, dur, name in calls]
    cut = [(start // 1000 * 1000, dur, called) for start, dur, called in operators]
    return framework(cut), library([(start // 1000 * 1000, dur, name) for start, dur, name in moved])


def nest_of(a: Trace, b: Trace) -> ThreadStretches:
    views = shared_work(a, 0, b, 0, NameMap())
    assert views is not None
    found = nested_work(a, b, views)
    assert found is not None
    return found


def around(nest: ThreadStretches, a: Trace) -> tuple[Region, float]:
    """What is known before, +-80 us at the middle and +-50 ppm, and the true offset there."""
    first = int(a.slices.ts[0])
    middle = float(np.mean(nest.calls.span)) - OFFSET
    true = OFFSET + DRIFT * (middle + first) + first - nest.calls.zero_ns
    return box(middle, true - 80 * US, true + 80 * US, 50e-6), true


def test_a_region_is_narrowed_to_the_gaps_between_calls() -> None:
    a, b = recorded(np.random.default_rng(1))
    nest = nest_of(a, b)
    region, true = around(nest, a)
    found = possible(nest, Line(true + 30 * US, 0.0, region.x0), (0.0, float(a.slices.ts[-1] - a.slices.ts[0])), region)
    assert found is not None
    low, high = found.bounds(region.x0)
    assert low[0] <= true <= high[0]
    assert 8 * US <= high[0] - low[0] <= 16 * US  # 4 us on either side, and the resolution of 1 us of three times
    ends = np.array([0.0, float(a.slices.ts[-1] - a.slices.ts[0])])
    low, high = found.bounds(ends)
    expected = true + DRIFT * (ends - region.x0)
    assert ((low <= expected) & (expected <= high)).all()


def test_without_the_gaps_nothing_is_said() -> None:
    """Primitives that lie anywhere do not obey the law, and narrow nothing."""
    rng = np.random.default_rng(2)
    a, b = recorded(rng)
    nest = nest_of(a, b)
    calls = nest.calls
    shaken = calls.start + rng.uniform(-60, 60, len(calls)) * US
    order = np.argsort(shaken)
    other = Events(shaken[order], calls.dur[order], calls.kind[order], calls.zero_ns, calls.quantum_ns)
    region, true = around(nest, a)
    span = (0.0, float(a.slices.ts[-1] - a.slices.ts[0]))
    assert (
        possible(ThreadStretches(nest.threads, other, nest.quantum_ns), Line(true, DRIFT, region.x0), span, region)
        is None
    )


def test_a_few_wrong_calls_do_not_mislead() -> None:
    rng = np.random.default_rng(3)
    a, b = recorded(rng)
    nest = nest_of(a, b)
    calls = nest.calls
    start = calls.start + np.where(rng.random(len(calls)) < 0.03, rng.uniform(-90, 90, len(calls)) * US, 0.0)
    order = np.argsort(start)
    other = Events(start[order], calls.dur[order], calls.kind[order], calls.zero_ns, calls.quantum_ns)
    region, true = around(nest, a)
    span = (0.0, float(a.slices.ts[-1] - a.slices.ts[0]))
    found = possible(ThreadStretches(nest.threads, other, nest.quantum_ns), Line(true, DRIFT, region.x0), span, region)
    assert found is not None
    low, high = found.bounds(region.x0)
    assert low[0] <= true <= high[0]
    assert high[0] - low[0] <= 30 * US


def test_the_best_line_near_another_one() -> None:
    a, b = recorded(np.random.default_rng(4))
    nest = nest_of(a, b)
    region, true = around(nest, a)
    rows = np.arange(len(nest.calls))
    found = best_near(nest, rows, Line(true - 60 * US, 0.0, region.x0), 100 * US, (-50e-6, 50e-6))
    assert found.offset == pytest.approx(true, abs=8 * US)
    assert fits_on(nest, rows, Line(true, DRIFT, region.x0)).all()
    assert fits_on(nest, rows, Line(true + 40 * US, DRIFT, region.x0)).mean() < 0.7


def test_stretches_are_what_is_left_of_each_slice() -> None:
    a = framework([(1000, 9000, [(2000, 3000), (7000, 1000)]), (20_000, 1000, [])])
    b = library([(5500, 1000, "convolution"), (6600, 100, "reorder"), (20_100, 500, "convolution")])
    nest = nest_of(a, b)
    (thread,) = nest.threads
    found = list(zip(thread.begin.tolist(), thread.end.tolist(), thread.kind.tolist(), strict=True))
    assert found == [
        (0, 1000, 0), (1000, 4000, UNNAMED), (4000, 6000, 0), (6000, 7000, UNNAMED), (7000, 9000, 0),
        (9000, 19_000, UNNAMED), (19_000, 20_000, 0),
    ]  # fmt: skip
    assert nest.calls.kind.tolist() == [0, UNNAMED, 0]


def test_flat_traces_have_no_nest() -> None:
    a, b = (
        framework([(k * 1000, 900, []) for k in range(9)]),
        library([(k * 1000, 800, "convolution") for k in range(9)]),
    )
    views = shared_work(a, 0, b, 0, NameMap())
    assert views is not None
    assert nested_work(a, b, views) is None

"""Clocks that were slewed or set while both recorded."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.align.pairs import trace_of
from tests.benchmarks.alignment.simulate import MS, US, BentTruth, Run, S, Shape, inner, outer, run, set_at, slewed
from traceconv.align import align
from traceconv.align.causality import causality
from traceconv.align.estimate import Estimate, Events, Prior
from traceconv.align.geometry import F64
from traceconv.align.sequences import align_sequences
from traceconv.merging.traces import merge_traces
from traceconv.model.clocks import Verdict


def made(more: Callable[[F64], F64], seed: int = 701, iterations: int = 600) -> tuple[Run, Events, Events, BentTruth]:
    rng = np.random.default_rng(seed)
    work, truth = run(rng, Shape(iterations=iterations)), BentTruth(300 * S, 10e-6, more)
    return work, outer(work), inner(rng, work, truth)[0], truth


def check(found: Estimate, work: Run, b: Events, truth: BentTruth, lines: int) -> None:
    assert found.verdict is Verdict.OK, found.reason
    assert len(found.chain.lines) == lines
    true = truth.map(work.start) - b.zero_ns
    # Between the last event before a step and the first one after it nobody can tell.
    known = np.all([np.abs(work.start - segment.begin) > 3 * MS for segment in found.chain.lines[1:]], axis=0)
    assert np.abs(found.chain.map(work.start) - true)[known].max() <= 2 * US
    low, high = found.chain.bounds(work.start)
    inside = (low <= true - work.start) & (true - work.start <= high)
    assert inside.all()
    assert np.max((high - low)[known]) <= 10 * US
    assert np.abs(found.chain.back(true) - work.start)[known].max() <= 2 * US
    assert all(segment.matches >= 20 for segment in found.chain.lines)


@pytest.mark.parametrize("by", [200e-6, -300e-6])
def test_a_clock_that_is_slewed_for_a_while(by: float) -> None:
    work, a, b, truth = made(slewed(by, 1.6 * S, 3.1 * S))
    found = align_sequences(a, b, Prior())
    check(found, work, b, truth, 3)
    assert [segment.begin / S for segment in found.chain.lines[1:]] == pytest.approx([1.6, 3.1], abs=0.05)
    assert found.chain.lines[1].drift == pytest.approx(10e-6 + by, abs=2e-6)
    assert "the drift changed from +" in str(found.reason)


@pytest.mark.parametrize(
    ("when", "by"), [(2.7, 400 * MS), (2.7, 2 * MS), (0.15, 400 * MS), (0.15, 30 * MS), (4.1, 440 * MS), (4.1, 30 * MS)]
)
def test_a_clock_that_is_set_ahead(when: float, by: float) -> None:
    work, a, b, truth = made(set_at(when * S, by))
    found = align_sequences(a, b, Prior())
    check(found, work, b, truth, 2)
    assert f"set ahead by {by / MS:.0f} ms" in str(found.reason)


def test_beside_a_step_the_bound_is_as_wide_as_that() -> None:
    """An event between the last match before a step and the first one after it may lie on either side."""
    _, a, b, truth = made(set_at(2.7 * S, 30 * MS))
    found = align_sequences(a, b, Prior())
    doubt = found.chain.lines[1].doubt
    assert doubt is not None
    assert doubt[0] < 2.7 * S < doubt[1]
    for at in np.linspace(*doubt, 5)[1:-1]:
        ((low,), (high,)) = found.chain.bounds(at)
        assert high - low == pytest.approx(30 * MS, abs=20 * US)
    traces = [trace_of(a, "framework.json"), trace_of(b, "library.log")]
    alignment = align(traces)
    way = alignment.maps[0][0].then(alignment.maps[1][0].inverse())
    times = np.concatenate((a.start, a.end))
    wrong = np.abs(way.apply(times.astype(np.int64)) - truth.map(times))
    (pair,) = alignment.pairs
    assert wrong.max() <= pair.bound_ns + 2 * US
    undoubted = (times <= doubt[0]) | (times >= doubt[1])
    assert wrong[undoubted].max() <= 10 * US
    assert (pair.bound_ns > 29 * MS) == (not undoubted.all())


def test_a_clock_that_is_set_back_is_refused() -> None:
    _, a, b, _ = made(set_at(2.7 * S, -40 * MS))
    found = align_sequences(a, b, Prior())
    assert found.verdict is Verdict.INCONSISTENT
    assert "set back by 40 ms" in str(found.reason)


def test_one_line_with_ends_left_over_is_no_step() -> None:
    """What only one of the two saw, and what a tool missed while it paused, fits nowhere else."""
    _, a, b, _ = made(np.zeros_like)
    late = a.take(slice(len(a) // 10, len(a)))
    paused = b.take(np.flatnonzero((b.start < 0.5 * S) | (b.start > 0.9 * S)))
    for one, other in ((late, b), (a.take(slice(0, len(a) * 9 // 10)), b), (late, paused)):
        found = align_sequences(one, other, Prior())
        assert (found.verdict, len(found.chain.lines)) == (Verdict.OK, 1)


def test_a_straight_line_stays_one() -> None:
    work, a, b, truth = made(np.zeros_like)
    found = align_sequences(a, b, Prior())
    assert found.verdict is Verdict.OK
    assert len(found.chain.lines) == 1
    assert np.abs(found.chain.map(work.start) + b.zero_ns - truth.map(work.start)).max() <= 2 * US


def test_what_fits_nowhere_after_a_step_is_refused() -> None:
    _, a, b, _ = made(np.zeros_like, iterations=400)
    _, _, other, _ = made(np.zeros_like, seed=702, iterations=400)
    half = len(b) // 2
    start = np.concatenate((b.start[:half], b.start[half] + other.start[half:] - other.start[half]))
    dur, kind = (np.concatenate((getattr(b, name)[:half], getattr(other, name)[half:])) for name in ("dur", "kind"))
    found = align_sequences(a, Events(start, dur, kind, b.zero_ns, US), Prior())
    assert found.verdict is Verdict.INCONSISTENT


def test_a_merge_follows_the_bends() -> None:
    work, a, b, truth = made(slewed(300e-6, 1.6 * S, 3.1 * S))
    traces = [trace_of(a, "framework.json"), trace_of(b, "library.log")]
    found = align(traces)
    line = found.receipt[1]
    assert (line.verdict, line.method) == ("ok", "the same events in both, in 3 segments of time")
    (way,) = found.maps[1].values()
    for x in work.start[::500].tolist():
        assert abs(way.at(round(float(truth.map(np.array(x))))) - x) <= (line.bound_ns or 0) <= 10 * US
    assert causality(traces, found).violations <= 0.05 * line.matches
    merged = merge_traces(traces, found)
    assert len(merged.slices.ts) == len(a) + len(b)
    turned = align(traces[::-1])
    assert len(next(iter(turned.maps[1].values())).bends) == 2

"""Alignment by activity: samples and counters against slices, on simulated pairs whose relation is known."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from tests.benchmarks.alignment.simulate import MS, US, Run, S, Shape, Truth, as_bins, as_samples, outer, run
from traceconv.align.activity import Busy, align_bins, align_samples, set_clock
from traceconv.align.estimate import Estimate, Events, Prior, Samples
from traceconv.align.features import bins_of, busy_slices, libraries_of, samples_of
from traceconv.align.geometry import Line
from traceconv.families.registry import importers
from traceconv.model.builder import Builder
from traceconv.model.clocks import ClockDomain, Verdict, Zero
from traceconv.model.clocks import Run as ClockRun
from traceconv.model.marks import NO_MARKS
from traceconv.model.source_info import SourceInfo

TRUTH = Truth(345.6 * S, 30e-6)
IDLE = Shape(iterations=60, idle_every=10, idle_ms=30.0)
LIMIT = Prior(max_drift=100e-6)
CLOCK = ClockDomain("a clock", Zero.UNKNOWN, ClockRun.MONOTONIC)


def made(seed: int, shape: Shape = IDLE) -> Run:
    return run(np.random.default_rng(seed), shape)


def expected(slices: Events, zero_ns: int) -> tuple[float, float]:
    """The middle of the slices, and the offset there."""
    middle = float(np.mean(slices.span))
    return middle, float(TRUTH.map(np.array([middle]))[0]) - middle - zero_ns


def error_of(found: Estimate, slices: Events, zero_ns: int) -> tuple[float, bool]:
    """How wrong the offset in the middle is, ns, and whether the bounds hold there."""
    middle, offset = expected(slices, zero_ns)
    low, high = found.chain.bounds(middle)
    return float(found.chain.map(np.array([middle]))[0]) - middle - offset, bool(low[0] <= offset <= high[0])


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_samples_with_idle_gaps_need_nothing_else(seed: int) -> None:
    what = made(seed)
    samples = as_samples(np.random.default_rng(seed), what, TRUTH)
    found = align_samples(outer(what), samples, LIMIT)
    error, held = error_of(found, outer(what), samples.zero_ns)
    assert found.verdict is Verdict.OK, found.reason
    assert abs(error) <= 20 * US
    assert held
    assert found.region is not None
    assert found.region.width(found.region.x0) < 400 * US


def test_samples_of_a_part_within_a_window() -> None:
    what = made(4)
    samples = as_samples(np.random.default_rng(4), what, TRUTH, part=(0.2, 0.9))
    _, offset = expected(outer(what), samples.zero_ns)
    prior = Prior(offset - 1.1 * MS, offset + 1.9 * MS, 100e-6)
    found = align_samples(outer(what), samples, prior)
    assert found.verdict is Verdict.OK, found.reason
    assert abs(error_of(found, outer(what), samples.zero_ns)[0]) <= 20 * US
    assert prior.low <= found.line.offset <= prior.high


@pytest.mark.parametrize("seed", range(3))
def test_periodic_work_is_refused(seed: int) -> None:
    what = made(seed, Shape(iterations=80).periodic())
    samples = as_samples(np.random.default_rng(seed), what, TRUTH, part=(0.3, 0.8))
    found = align_samples(outer(what), samples, LIMIT)
    assert found.verdict is Verdict.AMBIGUOUS
    assert found.rivals


@pytest.mark.parametrize("seed", range(4))
def test_another_run_is_refused(seed: int) -> None:
    samples = as_samples(np.random.default_rng(seed), made(100 + seed), TRUTH)
    assert align_samples(outer(made(seed)), samples, LIMIT).verdict.unusable
    bins = as_bins(np.random.default_rng(seed), made(100 + seed), TRUTH)
    assert align_bins(outer(made(seed)), bins, LIMIT).verdict.unusable


def test_drift_over_a_long_time_is_found() -> None:
    what = made(5, Shape(iterations=600, idle_every=10, idle_ms=30.0))
    truth = Truth(TRUTH.offset, 80e-6)
    samples = as_samples(np.random.default_rng(5), what, truth)
    slices = outer(what)
    found = align_samples(slices, samples, Prior())
    x = np.linspace(*slices.span, 7)
    assert found.verdict is Verdict.OK, found.reason
    assert found.line.drift == pytest.approx(80e-6, abs=10e-6)
    assert float(np.max(np.abs(found.chain.map(x) + samples.zero_ns - truth.map(x)))) <= 40 * US


@pytest.mark.parametrize("seed", [1, 2])
def test_counters_with_idle_gaps(seed: int) -> None:
    what = made(seed, Shape(idle_every=10, idle_ms=30.0))
    bins = as_bins(np.random.default_rng(seed), what, TRUTH)
    found = align_bins(outer(what), bins, LIMIT)
    error, held = error_of(found, outer(what), bins.zero_ns)
    assert found.verdict is Verdict.OK, found.reason
    assert abs(error) <= 500 * US
    assert held


def test_too_little_is_insufficient() -> None:
    what = made(1)
    samples = as_samples(np.random.default_rng(1), what, TRUTH)
    few = Samples(samples.t[:20], samples.busy[:20], samples.zero_ns)
    always = Samples(samples.t, np.ones(len(samples.t), bool), samples.zero_ns)
    no_overlap = Prior(1e15, 1e15 + MS)
    for one, prior in ((few, LIMIT), (always, LIMIT), (samples, no_overlap)):
        assert align_samples(outer(what), one, prior).verdict is Verdict.INSUFFICIENT


def test_busy_slices_are_the_leaves_and_taken_together() -> None:
    out = Builder(SourceInfo("a.json", "test"), CLOCK)
    thread = out.tracks.thread(out.tracks.process(pid=1), 1)
    for start, dur in ((100, 1000), (100, 50), (150, 50), (300, 100)):
        out.slice(thread, start, dur, "work")
    other = out.tracks.thread(out.tracks.process(pid=2), 2)
    out.slice(other, 380, 100, "work")
    found = busy_slices(out.finish(), 0)
    assert found is not None
    assert found.zero_ns == 100
    assert found.start.tolist() == [0, 50, 200, 280]
    assert found.dur.tolist() == [50, 50, 100, 100]
    union = Busy.of_slices(found)
    assert union.start.tolist() == [0, 200]
    assert union.end.tolist() == [100, 380]


def test_labels_of_call_stacks() -> None:
    out = Builder(SourceInfo("perf.data", "test"), CLOCK)
    thread = out.tracks.thread(out.tracks.process(pid=1), 7, "python")
    runtime = out.frame("Compute", "/lib/libonnxruntime.so.1")
    libc = out.frame("memcpy", "/lib/libc.so.6", runtime)
    python = out.frame("eval", "/usr/bin/python3")
    for at, stack in enumerate((runtime, libc, python, python)):
        out.sample(thread, 1000 + at, stack)
    ends, holds = samples_of(out.finish(), 0, ["libtvm", "onnxruntime"])
    assert ends.busy.tolist() == [True, False, False, False]
    assert holds.busy.tolist() == [True, True, False, False]
    assert ends.zero_ns == holds.zero_ns == 1000


def test_the_libraries_of_a_format_come_before_those_of_others() -> None:
    declared = {name: getattr(cls, "marks", NO_MARKS) for name, cls in importers().items()}
    assert {name for name, marks in declared.items() if marks.libraries} >= {"mxnet", "onnxruntime", "pytorch-kineto"}
    of_any = libraries_of(Builder(SourceInfo("a.json", "test"), CLOCK).finish())
    mxnet = libraries_of(Builder(SourceInfo("a.json", "mxnet", marks=declared["mxnet"]), CLOCK).finish())
    assert mxnet[0] == declared["mxnet"].libraries
    assert sorted(mxnet) == sorted(of_any)
    assert len(of_any) == len(set(of_any)) >= 9


def test_deltas_of_counters() -> None:
    out = Builder(SourceInfo("perf.csv", "test"), CLOCK)
    for name, values in (("page-faults", (9, 9, 0)), ("instructions", (5, 6, 0)), ("task-clock", (1, 2, 0))):
        track = out.tracks.counter(name)
        for at, value in enumerate(values):
            out.counter(track, 50 + 10 * at, value)
    found = bins_of(out.finish(), 0)
    assert [bins.amount.tolist() for bins in found] == [[1, 2], [5, 6]]
    assert found[0].edge.tolist() == [0, 10, 20]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_few_begins_and_ends_make_the_bound_wide(seed: int) -> None:
    """Eight iterations of 20 ms: each of 16 begins and ends lies somewhere between two samples."""
    shape = Shape(iterations=8, operators=150, idle_every=1, idle_ms=20.0)
    what = made(seed, shape)
    samples = as_samples(np.random.default_rng(seed), what, TRUTH)
    found = align_samples(outer(what), samples, LIMIT)
    error, held = error_of(found, outer(what), samples.zero_ns)
    assert found.verdict is Verdict.OK, found.reason
    assert held
    assert found.region is not None
    assert 100 * US < found.region.width(found.region.x0) < 3 * MS
    assert abs(error) < MS


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("by", [0.0, 7 * MS])
def test_samples_show_a_set_clock_only_beside_others_that_fit_here(by: float, seed: int) -> None:
    """The work goes on when the recording of slices ends: that alone fits later, where samples without slices fit."""
    rng = np.random.default_rng(seed)
    t = np.arange(10_000) * MS
    chance = np.full(len(t), 0.01)
    chance[:800], chance[9_030:9_220], chance[9_220:9_270] = 0.5, 0.3, 0.6  # it starts up; in the slice; after it
    busy = rng.random(len(t)) < chance
    start, dur = np.array([100, 9_000, 9_800]) * MS, np.array([1, 220, 1]) * MS
    slices = Events(start, dur, np.zeros(3, np.int32), 0, 1.0)
    if by:
        start = np.cumsum(rng.uniform(10, 40, 400)) * MS
        slices = Events(start, np.full(400, 5 * MS), np.zeros(400, np.int32), 0, 1.0)
        busy = np.asarray(Busy.of_slices(slices).inside(t))
    found = set_clock(slices, Samples(t + np.where(t >= 9_000 * MS, by, 0.0), busy, 0), Line(0.0, 0.0, 0.0))
    if not by:
        assert found is None
    else:
        assert found is not None
        assert abs(found[1] + by) < MS


@pytest.mark.parametrize("kind", ["samples", "counters"])
def test_a_slice_far_from_all_others_takes_limited_memory(kind: str) -> None:
    """The largest arrays of a coarse search take 32 MiB each, however long the recordings are."""
    what, rng = made(1), np.random.default_rng(1)
    slices = outer(what)
    slices.start[0] -= 50 * 86400 * S
    tracemalloc.start()
    if kind == "samples":
        align_samples(slices, as_samples(rng, what, TRUTH), LIMIT)
    else:
        align_bins(slices, as_bins(rng, what, TRUTH), LIMIT)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 400_000_000

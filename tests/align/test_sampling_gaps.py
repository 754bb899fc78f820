"""Alignment by sampling interrupts: samples of a thread keep away from the times that it read from its clock."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from tests.benchmarks.alignment.simulate import MS, US, S, Shape, Truth, as_samples, interrupted, outer, run
from tests.benchmarks.alignment.trials import watched_pair, watched_trial
from traceconv.align import sampling_gaps
from traceconv.align.constraints import NameMap
from traceconv.align.estimate import Estimate, Method, SampledThreads
from traceconv.align.evidence import estimate_pair
from traceconv.align.features import sampled_threads
from traceconv.align.geometry import F64
from traceconv.align.sampling_gaps import align_interruptions
from traceconv.model.builder import Builder
from traceconv.model.clocks import ClockDomain, ClockMap, Step, Verdict, Zero
from traceconv.model.clocks import Run as ClockRun
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import Trace

TRUTH = Truth(12.5 * S, 40e-6)
LIMIT = 100e-6
BUSY = Shape(iterations=150, operators=20, idle_every=5, idle_ms=8.0)
CLOCK = ClockDomain("a clock", Zero.UNKNOWN, ClockRun.MONOTONIC)


def readings(seed: int = 1, shape: Shape = BUSY) -> SampledThreads:
    """A thread that was interrupted about a thousand times a second."""
    rng = np.random.default_rng(seed)
    made, times, _ = interrupted(rng, run(rng, shape))
    return watched(outer_ends(made), TRUTH.map(times))


def outer_ends(made: object) -> F64:
    slices = outer(made)  # type: ignore[arg-type]
    return np.unique(np.concatenate((slices.start, slices.end)))


def watched(reads: F64, samples: F64) -> SampledThreads:
    zeros = int(reads[0]), int(samples[0])
    return SampledThreads(((reads - zeros[0], samples - zeros[1]),), *zeros, US)


def right_offset(what: SampledThreads) -> float:
    """In the middle of the samples."""
    samples = what.threads[0][1]
    middle = float(samples[0] + samples[-1]) / 2 + what.zero_ns
    return middle - (middle - TRUTH.offset) / (1 + TRUTH.drift) - what.zero_ns + what.zero_reads_ns


def errors(found: Estimate, what: SampledThreads) -> tuple[F64, bool]:
    """How wrong the map is over the readings, and whether the bounds hold everywhere."""
    reads = what.threads[0][0]
    right = TRUTH.map(reads + what.zero_reads_ns) - what.zero_ns
    low, high = found.chain.bounds(reads)
    return np.abs(found.chain.map(reads) - right), bool(((low <= right - reads) & (right - reads <= high)).all())


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_neither_labels_nor_names_are_needed(seed: int) -> None:
    what = readings(seed)
    middle = right_offset(what)
    found = align_interruptions(what, [(middle - 0.9 * MS, middle + 0.5 * MS)], LIMIT, hard=True)
    assert found.verdict is Verdict.OK, found.reason
    error, held = errors(found, what)
    assert error.max() <= 20 * US
    assert held
    assert found.region is not None
    assert found.region.width(found.region.x0) <= 80 * US


def test_the_right_guess_is_found_among_wrong_ones() -> None:
    what = readings()
    middle = right_offset(what)
    guesses = [(middle + away - 0.4 * MS, middle + away + 0.4 * MS) for away in (-90 * MS, 0.1 * MS, 41.3 * MS)]
    found = align_interruptions(what, guesses, LIMIT, hard=True)
    assert found.verdict is Verdict.OK, found.reason
    assert errors(found, what)[0].max() <= 20 * US


def test_an_echo_is_never_taken_for_its_origin() -> None:
    """A whole sampling period away most samples find the gap of the one before."""
    found_right = 0
    for seed in range(1, 9):
        what = readings(seed, replace(BUSY, idle_every=1, idle_ms=2.0))
        middle = right_offset(what) + what.period
        found = align_interruptions(what, [(middle - 0.3 * MS, middle + 0.3 * MS)], LIMIT, hard=False)
        if not found.verdict.unusable:
            assert errors(found, what)[0].max() <= 30 * US
            found_right += 1
    assert found_right >= 2


def test_where_echoes_are_as_good_none_is_believed() -> None:
    """A thread that always runs is sampled at equal distances: the place is known but for whole periods."""
    rng = np.random.default_rng(4)
    made, times, _ = interrupted(rng, run(rng, Shape(iterations=150, operators=20)))
    even = times[0] + np.arange(len(times)) * np.median(np.diff(times))
    keep = np.min(np.abs(even[:, None] - outer_ends(made)[None, :]), axis=1) > 15 * US  # as if it were so
    what = watched(outer_ends(made), TRUTH.map(even[keep]))
    middle = right_offset(what)
    found = align_interruptions(what, [(middle - 2.5 * MS, middle + 2.5 * MS)], LIMIT, hard=False)
    assert found.verdict.unusable or errors(found, what)[0].max() <= 30 * US


def test_a_long_recording_with_drift() -> None:
    what = readings(5, replace(BUSY, iterations=3500))
    middle = right_offset(what)
    assert what.threads[0][1][-1] > 15 * S
    found = align_interruptions(what, [(middle - 0.5 * MS, middle + 0.5 * MS)], 200e-6, hard=True)
    assert found.verdict is Verdict.OK, found.reason
    error, held = errors(found, what)
    assert error.max() <= 20 * US
    assert held
    assert found.line.drift == pytest.approx(TRUTH.drift, abs=3e-6)


def test_samples_that_interrupt_nothing_tell_nothing() -> None:
    made = run(np.random.default_rng(6), BUSY)
    samples = as_samples(np.random.default_rng(6), made, TRUTH)
    what = watched(outer_ends(made), samples.t + samples.zero_ns)
    middle = right_offset(what)
    found = align_interruptions(what, [(middle - MS, middle + MS)], LIMIT, hard=True)
    assert found.verdict is Verdict.AMBIGUOUS
    assert "chance" in str(found.reason)


def test_a_dozen_samples_are_too_few() -> None:
    what = readings()
    few = structs.replace(what, threads=((what.threads[0][0], what.threads[0][1][:12]),))
    found = align_interruptions(few, [(right_offset(what) - MS, right_offset(what) + MS)], LIMIT, hard=True)
    assert found.verdict is Verdict.AMBIGUOUS
    assert "too few" in str(found.reason)


@pytest.mark.parametrize("count", [20, 40, 2000])
@pytest.mark.parametrize("within", [0, 1, 2_000, 100_000])
@pytest.mark.parametrize("hard", [False, True])
def test_samples_at_nearly_one_time_are_too_few(count: int, within: int, hard: bool) -> None:
    """They are close to a reading together, so that many of them tell no more than one."""
    what = readings()
    reads, samples = what.threads[0]
    bunch = np.sort(samples[500] + np.random.default_rng(count).integers(0, within + 1, count))
    middle = right_offset(what)
    at_once = structs.replace(what, threads=((reads, bunch),))
    found = align_interruptions(at_once, [(middle - 0.3 * MS, middle + 0.3 * MS)], LIMIT, hard=hard)
    assert found.verdict is Verdict.AMBIGUOUS
    assert "too few" in str(found.reason)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 10**8) | st.sampled_from([0, 1, 10**6]), min_size=1, max_size=60), st.booleans())
def test_any_times_of_samples_are_answered(times: list[int], hard: bool) -> None:
    what = readings()
    reads, samples = what.threads[0]
    some = structs.replace(what, threads=((reads, np.sort(samples[100] + np.array(times, np.float64))),))
    middle = right_offset(what)
    align_interruptions(some, [(middle - 0.3 * MS, middle + 0.3 * MS)], LIMIT, hard=hard)


@pytest.mark.filterwarnings("error")
def test_threads_with_one_sample_each_have_no_period() -> None:
    what = readings()
    reads, samples = what.threads[0]
    single = structs.replace(what, threads=tuple((reads, samples[at : at + 1]) for at in range(100, 900)))
    middle = right_offset(what)
    found = align_interruptions(single, [(middle - MS, middle + MS)], LIMIT, hard=False)
    assert found.verdict is Verdict.AMBIGUOUS
    assert "too few" in str(found.reason)


@pytest.mark.parametrize("regular", [False, True])
@pytest.mark.parametrize("narrowed", [False, True])
def test_another_run_is_refused(regular: bool, narrowed: bool) -> None:
    for seed in range(3):
        assert not watched_trial(seed, narrowed=narrowed, same=False, regular=regular).accepted


def test_traces_are_lined_up_with_and_without_metadata() -> None:
    for narrowed in (True, False):
        found = watched_trial(1, narrowed=narrowed)
        assert found.estimate.method is Method.SAMPLING_GAPS
        assert found.accepted
        assert found.errors.max() <= 20 * US
        assert found.inside.all()


def test_what_is_known_better_already_stays() -> None:
    a, b, truth = watched_pair(1)
    middle = sum(a.span) // 2
    right = round(float(truth.map(np.array([middle], np.float64))[0])) - middle
    found = estimate_pair(a, b, ClockMap(right, 3_000, (Step("exactly"),)), NameMap())
    assert found is not None
    assert found.estimate.verdict.unusable


def threads_of(tids: tuple[int, ...], *, sampled: bool) -> Trace:
    """The first thread does the most."""
    out = Builder(SourceInfo("a.json", "test"), CLOCK)
    process = out.tracks.process(pid=1)
    for number, tid in enumerate(tids):
        thread = out.tracks.thread(process, tid)
        for at in range(5 - number):
            if sampled:
                out.sample(thread, 70 + 10 * at + number, out.frame("main"))
            else:
                out.slice(thread, 1000 + 10 * at + number, 3, "work")
    return out.finish()


def test_threads_with_one_number_are_one() -> None:
    (found,) = sampled_threads(threads_of((7, 8), sampled=False), 0, threads_of((9, 8), sampled=True), 0)
    assert found.zero_reads_ns == 1000
    assert found.zero_ns == 70
    ((reads, samples),) = found.threads
    assert reads.tolist() == [1, 4, 11, 14, 21, 24, 31, 34]
    assert samples.tolist() == [1, 11, 21, 31]


def test_without_common_numbers_the_busiest_may_be_any() -> None:
    found = sampled_threads(threads_of((7, 8), sampled=False), 0, threads_of((3, 4), sampled=True), 0)
    assert [len(one.threads[0][1]) for one in found] == [5, 4]
    assert all(len(one.threads[0][0]) == 10 for one in found)
    assert not sampled_threads(threads_of((7,), sampled=True), 0, threads_of((7,), sampled=True), 0)


@pytest.mark.parametrize(
    ("turns", "surprise", "close", "is_rival"),
    [(0.3, 60.0, 10.0, True), (0.3, 40.0, 10.0, False), (2.0, 80.0, 60.0, False), (2.0, 95.0, 60.0, True)],
)
def test_a_rival_is_nearly_as_good_and_no_echo(turns: float, surprise: float, close: float, is_rival: bool) -> None:
    """An echo is a whole number of sampling periods away, and worse than its origin by more than chance."""
    period = 1e6
    best = sampling_gaps._Gap(0.0, 0.0, 100.0, 10.0)
    rival = sampling_gaps._Gap(turns * period, 0.0, surprise, close)
    assert (sampling_gaps._too_good(best, [rival], period) is rival) is is_rival

"""Clocks that are known to run apart: what is known is searched where the events are, not where the traces begin."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from tests.align.pairs import private
from tests.align.test_launches import DEVICE_ZERO, HOST_ZERO, device_file, error, host_file, related, run
from tests.benchmarks.alignment.simulate import MS, Shape, Truth, as_samples, outer
from tests.benchmarks.alignment.simulate import run as simulated
from traceconv.align.activity import align_samples
from traceconv.align.constraints import NameMap
from traceconv.align.estimate import Estimate, PairEstimate
from traceconv.align.evidence import Known, estimate_pair
from traceconv.align.geometry import Chain, Line, box
from traceconv.align.inputs import ClockInput
from traceconv.model.builder import Builder
from traceconv.model.clocks import DRIFT_UNIT, Bend, ClockMap, Step, Verdict
from traceconv.model.layout import lay_out
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import Trace

US, S = 1e3, 10**9
DRIFT = 100e-6
EPOCH = 1_790_000_000 * S
NAMES = ("Conv", "MatMul", "Relu", "Softmax")


def trace_of(name: str, start: np.ndarray, dur: np.ndarray, zero: int) -> Trace:
    out = Builder(SourceInfo(name, name), replace(private(name), resolution_ns=1))
    track = out.tracks.thread(out.tracks.process("run", pid=1), 1, "work")
    for at, (ts, length) in enumerate(zip(start.tolist(), dur.tolist(), strict=True)):
        out.slice(track, zero + int(ts), int(length), NAMES[at % 4])
    return lay_out(out.finish())


def iterations(late: float, jitter: float) -> tuple[Trace, Trace, ClockMap]:
    """70 s of iterations of 6 ms, 10 s of which a library noted down from `late` s on, and what is known of the clocks.

    The clock of the library is exact, that of the framework runs 100 ppm faster and counts from 1970.
    """
    rng = np.random.default_rng(1)
    begins = np.arange(11_600) * 6e6 + jitter * rng.normal(size=11_600)
    true = (begins[:, None] + np.array([0, 0.7e6, 1.9e6, 2.6e6])).ravel()
    dur = 300 * US * (1 + 0.02 * rng.normal(size=len(true)))
    seen = slice(*(4 * np.searchsorted(begins, (late * S, (late + 10) * S))))
    outer = trace_of("framework", true * (1 + DRIFT), dur, EPOCH)
    inner = trace_of("library", true[seen] + 30 * US, dur[seen] - 60 * US, 0)
    back = round((1 / (1 + DRIFT) - 1) / DRIFT_UNIT)
    return outer, inner, ClockMap(-EPOCH, 15_000, (Step("read twice"),), drift=back, at_ns=EPOCH)


def worst(pair: PairEstimate, late: float) -> float:
    """The greatest error of the map from the framework to the library where both have events, ns."""
    times = np.linspace(late * S, (late + 10) * S, 9).tolist()
    return max(abs(pair.clock_map.at(EPOCH + round(time * (1 + DRIFT))) - time) for time in times)


@pytest.mark.parametrize("jitter", [3 * US, 300 * US])
@pytest.mark.parametrize("late", [0, 59.5])
def test_the_right_iteration_is_found_however_late_the_inner_trace_begins(late: float, jitter: float) -> None:
    """In 60 s the clocks run 6 ms apart: as long as an iteration."""
    outer, inner, known = iterations(late, jitter)
    pair = estimate_pair(ClockInput(0, 0, outer), ClockInput(1, 0, inner), known, NameMap())
    assert pair is not None
    assert pair.estimate.verdict is Verdict.OK, pair.estimate.reason
    assert worst(pair, late) < 2 * US
    assert pair.clock_map.drift_ppm == pytest.approx(-DRIFT * 1e6, abs=0.5)


def test_launches_within_what_is_known_of_clocks_that_run_apart() -> None:
    made = run(5, waits=False, jitter=0.6)
    shift = 90 * US
    drift = 150e-6
    offset = int(DEVICE_ZERO - HOST_ZERO + shift)
    known = ClockMap(offset, 100_000, (Step("known"),), drift=round(drift / DRIFT_UNIT), at_ns=HOST_ZERO)
    pair = related(host_file(made), device_file(made, 0.0, drift), known)
    assert pair.estimate.verdict is Verdict.OK
    assert pair.bound_ns < 20 * US
    assert error(pair, 0.0, drift, made.calls[-1][0]) <= pair.bound_ns


def test_samples_of_a_late_part_within_what_is_known_of_clocks_that_run_apart() -> None:
    truth = Truth(20e9, 150e-6)
    made = simulated(np.random.default_rng(4), Shape(iterations=400, idle_every=10, idle_ms=30.0))
    slices, samples = outer(made), as_samples(np.random.default_rng(4), made, truth, part=(0.8, 1.0))
    at = float(truth.map(np.array([slices.start[0]]))[0])
    offset = round(at - slices.start[0])
    way = ClockMap(
        offset, 200_000, (Step("known"),), drift=round(truth.drift / DRIFT_UNIT), at_ns=round(slices.start[0])
    )
    span = round(slices.span[1] * 0.8), round(slices.span[1])
    known = Known.of_map(way, span, (slices.zero_ns, samples.zero_ns))
    assert known.prior.high - known.prior.low < 0.5 * MS
    found = known.with_drift(align_samples(slices, samples.scaled(known.rate), known.prior))
    assert found.verdict is Verdict.OK, found.reason
    middle = np.array([sum(span) / 2])
    true = float(truth.map(middle)[0]) - samples.zero_ns
    assert abs(float(found.chain.map(middle)[0]) - true) <= 50 * US
    low, high = found.chain.bounds(middle)
    assert low[0] <= true - middle[0] <= high[0]


def test_what_is_put_back_is_the_same_line() -> None:
    """By the definition: y' is y / (1 + d), and what maps x to y' maps it to y with the drift put back."""
    known = Known.of_map(ClockMap(0, 10, drift=round(300e-6 / DRIFT_UNIT)), (0, S), (0, 0))
    region = box(4e9, 900.0, 1100.0, 20e-6)
    line = Line(1500.0, -7e-6, 3e9, 2e9, region, 5)
    found = Chain((Line(1000.0, 5e-6, 2e9, region=region),))
    times = np.linspace(-1e9, 9e9, 7)
    rate = 1 + known.drift
    estimate = Estimate("", Verdict.OK, "", found)
    with_drift = known.with_drift(estimate).chain
    assert np.allclose(with_drift.map(times), rate * found.map(times), rtol=0, atol=1e-3)
    for one, other in zip(with_drift.bounds(times), found.bounds(times), strict=True):
        assert np.allclose(times + one, rate * (times + other), rtol=0, atol=1e-3)
    bent = known.with_drift(replace(estimate, chain=Chain((line, replace(line, begin=5e9))))).chain
    assert np.allclose(bent.map(times), rate * line.map(times), rtol=0, atol=1e-3)


def test_a_clock_that_was_set_is_searched_on_both_sides() -> None:
    way = ClockMap(1_000, 100, bends=(Bend(S, 5_000, 0),))
    assert Known.of_map(way, (0, 2 * S), (0, 0)).prior == replace(Known.of_map(way, (0, 1), (0, 0)).prior, high=5_100.0)
    late = Known.of_map(way, (S + 1, 2 * S), (0, 0)).prior
    assert (late.low, late.high) == (4_900, 5_100)

"""Simulated pairs with a known relation of their clocks, and how an estimator does on them.

Thresholds are chosen on seeds 0 to 999. What is reported comes from `FIRST_SEED` on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from typing import TypeVar

import numpy as np
from msgspec import structs

from tests.benchmarks.alignment.simulate import (
    MS,
    US,
    BentTruth,
    Run,
    S,
    Shape,
    Truth,
    inner,
    interrupted,
    network,
    outer,
    run,
    set_at,
    slewed,
)
from traceconv.align import align
from traceconv.align.causality import believed, causality
from traceconv.align.constraints import NameMap
from traceconv.align.estimate import Array, Bins, Estimate, Events, Prior, Samples
from traceconv.align.evidence import estimate_pair
from traceconv.align.geometry import F64
from traceconv.align.inputs import ClockInput
from traceconv.align.sequences import align_sequences
from traceconv.errors import AlignmentError
from traceconv.model.builder import Builder
from traceconv.model.clocks import ClockDomain, ClockMap, Step, Verdict, Zero
from traceconv.model.clocks import Run as Clock
from traceconv.model.layout import lay_out
from traceconv.model.source_info import Layer, SourceInfo
from traceconv.model.trace import Trace

FIRST_SEED = 1000
#: From so many seeds on it pays to start processes.
_MANY = 100
Result = TypeVar("Result")
#: An estimate that is further off than this somewhere is in a wrong place, not inexact.
WRONG_NS = 100 * US
JITTERS = (0.02, 0.01, 0.002, 0.001, 0.0001, 0.0)
PARTS = ((0.0, 1.0), (0.0, 0.5), (0.3, 0.8), (0.5, 1.0))


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one trial ended.

    Attributes:
        estimate: the answer.
        errors: ns, at 50 times over what both saw and a tenth of it on either side; None without a true relation.
        inside: for each of these times whether the truth is within the bounds.
        width: the greatest width of the bounds where both saw something, ns.
        drift_error: as a ratio.
        seen_ns: how long both saw something.
        seconds: how much time of the processor it took.
    """

    estimate: Estimate
    errors: F64 = field(default_factory=lambda: np.empty(0))
    inside: Array = field(default_factory=lambda: np.empty(0, bool))
    width: float = 0.0
    drift_error: float = 0.0
    seen_ns: float = 0.0
    seconds: float = 0.0

    @property
    def accepted(self) -> bool:
        """Whether the traces would be put together."""
        return self.estimate.verdict is Verdict.OK

    @property
    def wrong(self) -> bool:
        """Whether the estimate is in another place."""
        return bool(len(self.errors) and self.errors.max() > WRONG_NS)

    @property
    def held(self) -> bool:
        """Whether the truth is within the bounds at nearly all times."""
        return not len(self.inside) or float(self.inside.mean()) >= 0.95


def tried(trial: Callable[[int], Result], seeds: range) -> list[Result]:
    """The outcome of each seed; many of them by one process for each core."""
    if len(seeds) < _MANY:
        return [trial(seed) for seed in seeds]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        return list(pool.map(trial, seeds, chunksize=5))


def judged(estimate: Estimate, truth: Truth, zero_x: float, zero_y: float, seen: tuple[float, float]) -> Outcome:
    """Compare an estimate with the truth.

    Args:
        estimate: relative to the zeros.
        truth: between the clocks themselves.
        zero_x, zero_y: the zeros, ns.
        seen: the times of x, from its zero, at which both saw something.
    """
    low, high = seen
    x = np.linspace(low - 0.1 * (high - low), high + 0.1 * (high - low), 50)
    right = truth.map(x + zero_x) - zero_y
    errors = np.abs(estimate.chain.map(x) - right)
    first, last = estimate.chain.bounds(x)
    middle, end = estimate.chain.bounds(np.array([low, high]))
    return Outcome(
        estimate,
        errors,
        (first <= right - x) & (right - x <= last),
        float(np.max(end - middle)),
        abs(estimate.line.drift - truth.drift),
        high - low,
    )


def some_truth(rng: np.random.Generator) -> Truth:
    """Zeros up to 1000 s apart, drifts up to 50 ppm."""
    return Truth(float(rng.uniform(-1e12, 1e12)), float(rng.uniform(-50e-6, 50e-6)))


def some_shape(rng: np.random.Generator, jitter: float) -> Shape:
    """A run whose iterations differ by so much; below 0.2 % nothing else tells them apart but pauses."""
    regular = jitter < 0.002
    return Shape(
        iterations=int(rng.integers(60, 121)),
        operators=int(rng.integers(20, 41)),
        jitter_iteration=jitter / 2,
        jitter_operator=jitter,
        warm_up=0 if regular or rng.random() < 0.5 else 3,
        gap_jitter=5 * jitter,
        operator_gap_us=float(rng.choice([3.0, 0.02])) if jitter == 0 else 3.0,
        outliers=0.0 if regular else 0.01,
    )


def sequence_pair(seed: int) -> tuple[Events, Events, Truth]:
    """Two logs of one run: events missing, extra and twice, a capture that may start mid-run."""
    rng = np.random.default_rng(seed)
    made = run(rng, some_shape(rng, JITTERS[seed % len(JITTERS)]))
    truth = some_truth(rng)
    part = PARTS[seed // len(JITTERS) % len(PARTS)]
    missing, extra = rng.uniform(0.3, 0.6), rng.uniform(0.05, 0.1)
    events, _ = inner(rng, made, truth, missing=missing, extra=extra, part=part)
    return outer(made), events, truth


def sequence_trial(seed: int) -> Outcome:
    """One pair of logs with timestamps."""
    a, b, truth = sequence_pair(seed)
    begin = time.process_time()
    estimate = align_sequences(a, b, Prior())
    seconds = time.process_time() - begin
    return replace(judged(estimate, truth, a.zero_ns, b.zero_ns, _seen(a, b, truth)), seconds=seconds)


def _seen(a: Events, b: Events, truth: Truth) -> tuple[float, float]:
    """The times of a at which b has events."""
    first, last = (
        (t + b.zero_ns - truth.offset) / (1 + truth.drift) - a.zero_ns for t in (float(b.start[0]), float(b.start[-1]))
    )
    return max(first, a.span[0]), min(last, a.span[1])


def periodic_trial(seed: int) -> Outcome:
    """A run whose iterations are all equal, seen in its middle: there is no way to tell."""
    rng = np.random.default_rng(seed)
    made = run(rng, Shape(iterations=80, operators=int(rng.integers(15, 41))).periodic())
    truth = some_truth(rng)
    a, (b, _) = outer(made), inner(rng, made, truth, part=(0.25, 0.7))
    return judged(align_sequences(a, b, Prior()), truth, a.zero_ns, b.zero_ns, _seen(a, b, truth))


def equal_layers_pair(seed: int, jitter: float = 0.0) -> tuple[Events, Events, Truth]:
    """A run of equal layers, of which one tool lost a fifth to two fifths of the calls.

    Without jitter each call takes as long each time, and lies where it lay in the layer before: what is missing is all
    that differs.
    """
    rng = np.random.default_rng(seed)
    layers, calls, iterations = 24, int(rng.integers(1, 6)), int(rng.integers(20, 41))
    shape = replace(Shape(iterations=iterations).periodic(), gap_ms=float(rng.choice([0.0, 0.3])))
    shape = replace(shape, jitter_iteration=jitter / 2, jitter_operator=jitter)
    layer = np.arange(calls) % 4, rng.uniform(40 * US, 400 * US, calls)
    made = run(rng, shape, (np.tile(layer[0], layers), np.tile(layer[1], layers)))
    if seed % 2:
        made = replace(made, start=np.round(made.start / US) * US, dur=np.round(made.dur / US) * US)
    truth = some_truth(rng) if rng.random() < 0.5 else Truth(float(rng.integers(-(10**9), 10**9)) * US, 0.0)
    first, last = PARTS[seed % len(PARTS)]
    seen = (made.iteration >= first * iterations) & (made.iteration < last * iterations)
    rows = np.flatnonzero(seen & (rng.random(len(made.start)) >= rng.uniform(0.2, 0.4)))
    times = (made.start + 2 * US)[rows], (made.start + made.dur - 2 * US)[rows]
    begin, end = (np.floor(truth.map(t) / US) * US for t in times)
    zero = float(begin[0])
    return outer(made), Events(begin - zero, end - begin, made.kind[rows].astype(np.int32), int(zero), US), truth


def equal_layers_trial(seed: int, jitter: float = 0.0) -> Outcome:
    """Equal layers, by their timestamps."""
    a, b, truth = equal_layers_pair(seed, jitter)
    return judged(align_sequences(a, b, Prior()), truth, a.zero_ns, b.zero_ns, _seen(a, b, truth))


def two_runs(seed: int) -> tuple[Events, Events]:
    """Logs of two runs of one programme."""
    rng = np.random.default_rng(seed)
    shape = some_shape(rng, JITTERS[seed % len(JITTERS)])
    net = network(rng, shape.operators)
    first, second = run(rng, shape, net), run(rng, shape, net)
    return outer(first), inner(rng, second, some_truth(rng), part=PARTS[seed % len(PARTS)])[0]


def unrelated_trial(seed: int) -> Outcome:
    """Two runs, by their timestamps."""
    return Outcome(align_sequences(*two_runs(seed), Prior()))


def replayed_pair(seed: int, *, same: bool) -> tuple[Events, Events]:
    """Logs of one run, or of two that a load generator gave the same work at the same times, some us late each time."""
    rng = np.random.default_rng(seed)
    arrivals = np.cumsum(2.5 * MS + rng.exponential(5 * MS, 600))
    kind = rng.integers(0, 3, len(arrivals)).astype(np.int32)
    late = (5 * US, 20 * US, 50 * US, 100 * US)[seed % 4]

    def one_run() -> tuple[Array, Array]:
        start = arrivals + late * np.abs(rng.normal(size=len(arrivals)))
        return start, 2 * MS * (1 + 0.02 * rng.normal(size=len(arrivals)))

    first = one_run()
    start, dur = first if same else one_run()
    start = start + 150 * US * (1 + 0.1 * rng.random(len(start)))
    dur = dur - 300 * US * (1 + 0.1 * rng.random(len(dur)))
    inside = Events(np.floor((start - start[0]) / US) * US, np.floor(dur / US) * US, kind, int(start[0]), US)
    return Events(*(np.floor(column / US) * US for column in first), kind, 0, US), inside


def replayed_trial(seed: int, *, same: bool) -> Outcome:
    """Logs with timestamps of a replayed schedule."""
    return Outcome(align_sequences(*replayed_pair(seed, same=same), Prior()))


def long_trial(seed: int, iterations: int) -> Outcome:
    """A long run with 50 ppm, of which b saw three quarters."""
    rng = np.random.default_rng(seed)
    made = run(rng, Shape(iterations=iterations))
    truth = Truth(float(rng.uniform(-1e12, 1e12)), 50e-6)
    a, (b, _) = outer(made), inner(rng, made, truth, part=(0.2, 0.95))
    begin = time.process_time()
    estimate = align_sequences(a, b, Prior())
    seconds = time.process_time() - begin
    return replace(judged(estimate, truth, a.zero_ns, b.zero_ns, _seen(a, b, truth)), seconds=seconds)


def bent_trial(seed: int) -> Outcome:
    """A clock that is slewed for a while, or set ahead, by more than what both may drift.

    Times within 3 ms of where the relation changes are left out: both saw events only before and after it.
    """
    rng = np.random.default_rng(seed)
    made = run(rng, Shape(iterations=600))
    length = float(made.start[-1])
    first, last = sorted(rng.uniform(0.03, 0.97, 2) * length)
    if seed % 2:
        knots, more = [first], set_at(first, float(rng.uniform(0.5, 500)) * MS)
    else:
        last = max(last, first + 0.5 * S)
        rate = float(rng.choice([-1, 1]) * rng.uniform(100e-6, 500e-6))
        knots, more = [first, last], slewed(rate, first, last)
    line = some_truth(rng)
    truth = BentTruth(line.offset, line.drift, more)
    a, (b, _) = outer(made), inner(rng, made, truth)
    found = align_sequences(a, b, Prior())
    apart = np.all([np.abs(made.start - knot) > 3 * MS for knot in knots], axis=0)
    x = made.start[apart]
    right = truth.map(x) - b.zero_ns
    low, high = found.chain.bounds(x - a.zero_ns)
    way = found.chain.map(x - a.zero_ns)
    inside = (low <= right - x + a.zero_ns) & (right - x + a.zero_ns <= high)
    return Outcome(found, np.abs(way - right), inside, float(np.max(high - low)))


def set_trial(seed: int) -> Outcome:
    """A clock that is set ahead, looked at within 20 ms of that only, at all begins and ends."""
    rng = np.random.default_rng(seed)
    made = run(rng, Shape(iterations=300))
    when = rng.uniform(0.03, 0.97) * float(made.start[-1])
    line = some_truth(rng)
    truth = BentTruth(line.offset, line.drift, set_at(when, float(rng.uniform(0.5, 500)) * MS))
    a, (b, _) = outer(made), inner(rng, made, truth)
    found = align_sequences(a, b, Prior())
    x = np.sort(np.concatenate((made.start, made.start + made.dur)))
    x = x[np.abs(x - when) < 20 * MS]
    right = truth.map(x) - b.zero_ns - x
    low, high = found.chain.bounds(x)
    return Outcome(found, np.abs(found.chain.map(x) - x - right), (low <= right) & (right <= high))


# -- recordings of five to ten iterations ---------------------------------------------------------------------------

_SHORT_JITTERS = (0.05, 0.02, 0.01, 0.002, 0.0)


def short_pair(seed: int, *, same: bool = True) -> tuple[Events, Events, Truth]:
    """Five to ten iterations of one run, or of two; the inner log may begin earlier, and hold a part only.

    Iterations follow at once or after a pause; a third of the networks are equal layers.
    """
    rng = np.random.default_rng(seed)
    jitter = _SHORT_JITTERS[seed % len(_SHORT_JITTERS)]
    count, before = int(rng.integers(5, 11)), int(rng.integers(0, 4))
    operators = int(rng.choice([3, 6, 12, 24]))
    shape = Shape(
        iterations=before + count,
        operators=operators,
        jitter_iteration=jitter / 2,
        jitter_operator=jitter,
        warm_up=int(rng.integers(0, 4)),
        gap_jitter=5 * jitter,
        outliers=0.01 if jitter >= 0.01 else 0.0,
        operator_gap_us=float(rng.choice([0.02, 3.0, 20.0])),
    )
    layer = int(rng.integers(1, 4)) if rng.random() < 1 / 3 else operators
    kinds, typical = network(rng, max(layer, 2))
    net = (np.resize(kinds[:layer], operators), np.resize(typical[:layer], operators))
    pause = float(rng.choice([0.0, 0.0, 1.0, 5.0])) * MS

    def one_run() -> Run:
        made = run(rng, shape, net)
        later = np.cumsum(2 * MS + rng.exponential(pause, shape.iterations)) if pause else np.zeros(shape.iterations)
        return replace(made, start=made.start + later[made.iteration])

    first = one_run()
    second = first if same else one_run()
    kept = first.iteration >= before
    seen = Run(*(column[kept] for column in (first.start, first.dur, first.kind, first.iteration)))
    truth = some_truth(rng)
    part = ((0.0, 1.0), (0.0, 1.0), (0.0, 0.6), (0.3, 0.8), (0.5, 1.0))[seed // len(_SHORT_JITTERS) % 5]
    lost, more = float(rng.choice([0.0, 0.0, 0.1, 0.3, 0.5])), float(rng.choice([0.0, 0.05]))
    events, _ = inner(rng, second, truth, missing=lost, extra=more, twice=more / 5, part=part)
    return outer(seen), events, truth


def short_trial(seed: int, *, same: bool = True) -> Outcome:
    """Few iterations, by their timestamps."""
    a, b, truth = short_pair(seed, same=same)
    estimate = align_sequences(a, b, Prior())
    return judged(estimate, truth, a.zero_ns, b.zero_ns, _seen(a, b, truth)) if same else Outcome(estimate)


def short_watched_trial(seed: int, *, same: bool = True) -> Outcome:
    """Slices and samples of few iterations, of one run or of two, by all that samples tell."""
    rng = np.random.default_rng(seed)
    jitter = float(rng.choice([0.0, 0.002, 0.02, 0.1]))
    shape = Shape(
        iterations=int(rng.integers(5, 11)),
        operators=int(rng.choice([60, 150])),
        jitter_iteration=jitter / 2,
        jitter_operator=jitter,
        warm_up=int(rng.integers(0, 3)),
        idle_every=seed % 4 and 1,
        idle_ms=float(rng.choice([2.0, 5.0, 20.0])),
    )
    a, b, truth = _watched(rng, shape, PARTS[seed % 2], same=same)
    return _watched_outcome(a, b, truth, None)


# -- work that runs in no call --------------------------------------------------------------------------------------

_WORK = ("convolution", "softmax", "pooling", "matmul")


def recorded(events: Events, name: str, layer: Layer | None) -> Trace:
    """Events as a recording on a clock that nothing relates."""
    out = Builder(SourceInfo(name, name, layer=layer), ClockDomain(name, Zero.UNKNOWN, Clock.MONOTONIC, 1000))
    track = out.tracks.thread(out.tracks.process("run", pid=1), 1, "work")
    rows = zip(events.start.tolist(), events.dur.tolist(), events.kind.tolist(), strict=True)
    for at, (start, dur, kind) in enumerate(rows, 1):
        out.slice(track, events.zero_ns + int(start), int(dur), _WORK[kind], at=at)
    return lay_out(out.finish())


def late_pair(seed: int, *, queue: bool) -> tuple[Events, Events, Truth]:
    """The calls that ask for work, and the work, which is done later, in none of these calls.

    A third of the calls are short; others last nearly as long as their work, and vary by themselves.

    Args:
        seed: of everything.
        queue: whether calls run ahead, so that work waits for the work before it; else each starts as long after its
            call.
    """
    rng = np.random.default_rng(seed)
    jitter = JITTERS[seed % 4]
    made = run(rng, replace(some_shape(rng, jitter), gap_ms=3.0 if queue else 0.3))
    latency = rng.uniform(10, 200) * US
    calls = np.bincount(made.iteration)[0]
    usual = np.tile(np.median(made.dur.reshape(-1, calls), axis=0), len(made.dur) // calls)
    share = 0.0 if seed % 3 == 0 else rng.uniform(0.5, 0.9)
    last = share * usual * np.exp(jitter * rng.standard_normal(len(usual))) + rng.uniform(3, 10) * US
    asked = made.start - latency
    if queue:
        first = np.flatnonzero(np.diff(made.iteration, prepend=-1))
        begin = np.repeat(made.start[first], np.diff(np.append(first, len(made.start))))
        asked = begin + 0.3 * (made.start - begin) - latency
        last = np.minimum(last, 0.25 * made.dur)
    last = np.minimum(last, np.diff(asked, append=np.inf) - US).clip(US)
    asking = replace(made, start=asked - asked[0], dur=last)
    truth = some_truth(rng)
    events, _ = inner(rng, replace(made, start=made.start - asked[0]), truth, missing=0.2)
    return outer(asking), events, truth


def late_trial(seed: int, *, queue: bool) -> Outcome:
    """Work that runs in no call, as files, in either order; some are of formats that say what they are.

    A library that works in no call is not what its format says: only calls that are too short can show that.
    """
    a, b, truth = late_pair(seed, queue=queue)
    stated = (Layer.FRAMEWORK, Layer.DEVICE if seed % 3 else Layer.LIBRARY)
    layers = stated if seed % 2 else (None, None)
    traces = [recorded(a, "calls.json", layers[0]), recorded(b, "work.log", layers[1])]
    return merged(traces[:: -1 if seed // 2 % 2 else 1], "calls.json", truth)


def held_trial(seed: int) -> Outcome:
    """Work that runs in its calls, as files in either order, whose formats say so."""
    rng = np.random.default_rng(seed)
    made, truth = run(rng, some_shape(rng, JITTERS[seed % 3])), some_truth(rng)
    b, _ = inner(rng, made, truth, missing=0.2)
    traces = [recorded(outer(made), "calls.json", Layer.FRAMEWORK), recorded(b, "work.log", Layer.LIBRARY)]
    return merged(traces[:: -1 if seed % 2 else 1], "calls.json", truth)


def merged(traces: Sequence[Trace], outer_name: str, truth: Truth) -> Outcome:
    """How two files are merged, with all checks: the truth is from the clock of the one named to that of the other."""
    try:
        alignment = align(list(traces))
        alignment = believed(alignment, causality(traces, alignment))
    except AlignmentError as refusal:
        return Outcome(Estimate("", Verdict(refusal.verdict), refusal.message))
    (pair,) = [pair for pair in alignment.pairs if pair.taken]
    names = [trace.sources[0].name for trace in traces]
    a, b = names.index(outer_name), 1 - names.index(outer_name)
    first, last = traces[a].span() or (0, 0)
    x = np.linspace(first, last, 50)
    there = [alignment.maps[b][0].inverse().at(alignment.maps[a][0].at(int(t))) for t in x.tolist()]
    errors = np.abs(np.array(there) - truth.map(x))
    bound = pair.bound_ns + sum(trace.clocks[0].resolution_ns for trace in traces)
    return Outcome(pair.estimate, errors, errors <= bound, 2.0 * bound)


# -- durations only -------------------------------------------------------------------------------------------------

Durations = Callable[[Events, Events], Estimate]


@dataclass(frozen=True, slots=True)
class Placement:
    """How the matches of a log without times are: shares of all matches; None if none are given."""

    estimate: Estimate
    right: float
    wrong_iteration: float

    @property
    def placed(self) -> bool:
        """Whether it is put somewhere, be it only as the user states."""
        return self.estimate.verdict in (Verdict.OK, Verdict.UNVERIFIED)


def durations_trial(seed: int, estimator: Durations) -> Placement:
    """One pair of logs, of which the inner has durations and an order only."""
    rng = np.random.default_rng(seed)
    made = run(rng, some_shape(rng, JITTERS[seed % 4]))
    a = outer(made)
    part = PARTS[seed // 4 % len(PARTS)]
    events, source = inner(rng, made, Truth(0.0, 0.0), missing=0.1, extra=0.02, part=part)
    estimate = estimator(a, _without_times(events))
    if estimate.pairs is None or not len(estimate.pairs[0]):
        return Placement(estimate, 0.0, 0.0)
    rows, found = np.asarray(estimate.pairs[0]), source[np.asarray(estimate.pairs[1])]
    real = found >= 0
    other = real & (made.iteration[rows] != made.iteration[np.maximum(found, 0)])
    return Placement(estimate, float(np.mean(rows == found)), float(np.mean(other)))


def durations_of_two_runs(seed: int, estimator: Durations) -> Estimate:
    """Two runs, by their durations."""
    a, b = two_runs(seed)
    return estimator(a, _without_times(b))


def _without_times(events: Events) -> Events:
    """The events end to end."""
    return structs.replace(events, start=np.concatenate(([0.0], np.cumsum(events.dur)[:-1])), zero_ns=0)


# -- activity -------------------------------------------------------------------------------------------------------

SamplesEstimator = Callable[[Events, Samples, Prior], Estimate]
BinsEstimator = Callable[[Events, Bins, Prior], Estimate]
SAMPLE_NS = 1e6
BIN_NS = 10e6


def _idle_run(rng: np.random.Generator) -> Run:
    """A run with pauses of some milliseconds, irregularly long."""
    return run(rng, Shape(iterations=250, operators=25, idle_every=4, idle_ms=6.0))


def _busy_before(made: Run, times: F64) -> F64:
    """How much work was done before each time, ns."""
    ends = np.concatenate(([0.0], np.cumsum(made.dur)))
    row = np.searchsorted(made.start, times, "right") - 1
    inside = np.clip(times - made.start[np.maximum(row, 0)], 0, made.dur[np.maximum(row, 0)])
    return np.where(row >= 0, ends[np.maximum(row, 0)] + inside, 0.0)


def _window(rng: np.random.Generator, made: Run) -> tuple[float, float]:
    """What a sampler that is attached somewhere in the run sees."""
    length = float(made.start[-1] + made.dur[-1])
    begin = rng.uniform(0.0, 0.3) * length
    return begin, begin + rng.uniform(0.5, 0.7) * length


def _known(rng: np.random.Generator, truth: Truth, zero_y: float, narrowed: bool) -> Prior:
    """What file name and header would tell: a window of about a millisecond on either side."""
    if not narrowed:
        return Prior()
    offset = truth.offset - zero_y + rng.uniform(-0.5, 0.5) * MS
    return Prior(offset - 1.5 * MS, offset + 1.5 * MS, 200e-6)


def samples_trial(seed: int, estimator: SamplesEstimator, *, narrowed: bool) -> Outcome:
    """A sampler at 1 kHz that sees whether work is done, wrong about it in one of fifty."""
    rng = np.random.default_rng(seed)
    made, truth = _idle_run(rng), some_truth(rng)
    first, last = _window(rng, made)
    count = int((last - first) / SAMPLE_NS)
    true = first + (np.arange(count) + 0.02 * rng.standard_normal(count)) * SAMPLE_NS
    row = np.searchsorted(made.start, true, "right") - 1
    busy = (row >= 0) & (true < made.start[np.maximum(row, 0)] + made.dur[np.maximum(row, 0)])
    busy ^= rng.random(count) < 0.02
    t = truth.map(true)
    zero = int(t[0])
    estimate = estimator(outer(made), Samples(t - zero, busy, zero), _known(rng, truth, zero, narrowed))
    return judged(estimate, truth, 0, zero, (first, last))


def watched_pair(seed: int, *, same: bool = True, regular: bool = False) -> tuple[ClockInput, ClockInput, Truth]:
    """Slices of a run and samples of its thread, or of the thread of another run, as traces.

    Args:
        seed: of everything.
        same: whether both are of one run.
        regular: whether nothing tells one iteration from the next.
    """
    rng = np.random.default_rng(seed)
    shape = Shape(iterations=250, operators=25, idle_every=4, idle_ms=6.0)
    shape = replace(shape.periodic(), idle_every=0) if regular else shape
    return _watched(rng, shape, None, same=same)


def _watched(
    rng: np.random.Generator, shape: Shape, part: tuple[float, float] | None, *, same: bool
) -> tuple[ClockInput, ClockInput, Truth]:
    net = network(rng, shape.operators)
    if part is None:
        begin = rng.uniform(0.0, 0.3)
        part = (begin, begin + rng.uniform(0.5, 0.7))
    made, times, working = interrupted(rng, run(rng, shape, net), part=part)
    slices = outer(made if same else interrupted(rng, run(rng, shape, net), part=part)[0])
    truth = some_truth(rng)
    one = Builder(SourceInfo("slices.json", "slices"), ClockDomain("one", Zero.UNKNOWN, Clock.MONOTONIC, 1000))
    thread = one.tracks.thread(one.tracks.process("run", pid=1), 1, "work")
    for start, dur, kind in zip(slices.start.tolist(), slices.dur.tolist(), slices.kind.tolist(), strict=True):
        one.slice(thread, int(start), int(dur), f"operator {kind}")
    other = Builder(SourceInfo("samples.txt", "samples"), ClockDomain("other", Zero.UNKNOWN, Clock.MONOTONIC))
    thread = other.tracks.thread(other.tracks.process("run", pid=1), 1, "work")
    stacks = other.frame("main", "/usr/bin/python3"), other.frame("Compute", "/lib/libonnxruntime.so.1")
    labels = working ^ (rng.random(len(working)) < 0.02)
    for at, label in zip(truth.map(times).tolist(), labels.tolist(), strict=True):
        other.sample(thread, int(at), stacks[label])
    return ClockInput(0, 0, one.finish()), ClockInput(1, 0, other.finish()), truth


def watched_trial(seed: int, *, narrowed: bool, same: bool = True, regular: bool = False) -> Outcome:
    """All that samples tell, with what file name and header would tell besides, or alone."""
    a, b, truth = watched_pair(seed, same=same, regular=regular)
    first, last = a.span
    known = None
    if narrowed:
        middle = (first + last) // 2
        right = round(float(truth.map(np.array([middle], np.float64))[0])) - middle
        known = ClockMap(
            right + round(np.random.default_rng(seed).uniform(-0.5, 0.5) * MS), round(1.5 * MS), (Step("names"),)
        )
    return _watched_outcome(a, b, truth, known)


def _watched_outcome(a: ClockInput, b: ClockInput, truth: Truth, known: ClockMap | None) -> Outcome:
    first, last = a.span
    found = estimate_pair(a, b, known, NameMap())
    if found is None:
        return Outcome(Estimate("", Verdict.INSUFFICIENT, "nothing in common"))
    low, high = ((t - truth.offset) / (1 + truth.drift) for t in b.span)
    seen = max(low, first) - found.zero_a, min(high, last) - found.zero_a
    return judged(found.estimate, truth, found.zero_a, found.zero_b, seen)


def bins_trial(seed: int, estimator: BinsEstimator, *, narrowed: bool) -> Outcome:
    """Counter deltas every 10 ms, which come with some noise and at slightly irregular times."""
    rng = np.random.default_rng(seed)
    made, truth = _idle_run(rng), some_truth(rng)
    first, last = _window(rng, made)
    count = int((last - first) / BIN_NS)
    edges = first + np.cumsum(np.concatenate(([0.0], BIN_NS * (1 + 0.01 * rng.standard_normal(count)))))
    amount = np.diff(_busy_before(made, edges)) * (1 + 0.02 * rng.standard_normal(count)) + 0.01 * BIN_NS * rng.random()
    y = truth.map(edges)
    zero = int(y[0])
    estimate = estimator(outer(made), Bins(y - zero, amount, zero), _known(rng, truth, zero, narrowed))
    return judged(estimate, truth, 0, zero, (first, last))

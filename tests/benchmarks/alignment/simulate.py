"""Pairs of traces of one run with a known relation of their clocks.

A run is a number of iterations over a network of operators; durations vary between iterations and operators. One tool
sees it as a framework does (whole microseconds, everything), another one as the library below does: a little inside of
each operator, on a clock with another zero and a drift, with events missing, extra and twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from traceconv.align.estimate import Array, Bins, Events, Samples
from traceconv.align.geometry import F64

US, MS, S = 1e3, 1e6, 1e9
KINDS = 4


@dataclass(frozen=True, slots=True)
class Run:
    """What really happened: ns from the start of the run."""

    start: F64
    dur: F64
    kind: Array
    iteration: Array


@dataclass(frozen=True, slots=True)
class Shape:
    """How a run is.

    Attributes:
        iterations, operators: how many.
        jitter_iteration, jitter_operator: standard deviations of the logarithm of durations.
        warm_up: how many iterations at the start take longer.
        gap_ms, gap_jitter: the pause between iterations.
        operator_gap_us: the mean pause between operators, 0 for none.
        idle_every: after how many iterations a longer pause comes, 0 for never.
        idle_ms: its mean length.
        outliers: the share of operators that take much longer.
    """

    iterations: int = 100
    operators: int = 40
    jitter_iteration: float = 0.01
    jitter_operator: float = 0.02
    warm_up: int = 3
    gap_ms: float = 0.3
    gap_jitter: float = 0.1
    operator_gap_us: float = 3.0
    idle_every: int = 0
    idle_ms: float = 0.0
    outliers: float = 0.01

    def periodic(self) -> Shape:
        """The same without anything that tells two iterations apart."""
        nothing = {"jitter_iteration": 0.0, "jitter_operator": 0.0, "gap_jitter": 0.0, "operator_gap_us": 0.0}
        return replace(self, warm_up=0, outliers=0.0, **nothing)


def network(rng: np.random.Generator, operators: int) -> tuple[Array, F64]:
    """The kind and the typical duration of each operator."""
    kinds = np.array([(0, 1, 0, 1, 2)[i % 5] for i in range(operators)])
    kinds[-2:] = 3
    typical = np.array([300.0, 40.0, 60.0, 120.0])[kinds] * np.exp(rng.normal(0, 0.5, operators))
    return kinds, typical * US


def run(rng: np.random.Generator, shape: Shape, net: tuple[Array, F64] | None = None) -> Run:
    """One run of a network."""
    kinds, typical = net if net is not None else network(rng, shape.operators)
    n, ops = shape.iterations, len(kinds)
    wander = np.zeros(n)
    for i in range(1, n):
        wander[i] = 0.7 * wander[i - 1] + shape.jitter_iteration * np.sqrt(0.51) * rng.standard_normal()
    warm = 1 + np.where(np.arange(n) < shape.warm_up, 2.0 / (np.arange(n) + 1), 0.0)
    dur = typical * np.exp(wander[:, None] + shape.jitter_operator * rng.standard_normal((n, ops))) * warm[:, None]
    dur = np.where(rng.random((n, ops)) < shape.outliers, dur * (1 + 2 * rng.random((n, ops))), dur)
    pause = 2 * US + (rng.exponential(shape.operator_gap_us * US, (n, ops)) if shape.operator_gap_us else 0.0)
    gap = shape.gap_ms * MS * np.exp(shape.gap_jitter * rng.standard_normal(n))
    if shape.idle_every:
        idle = (np.arange(n) + 1) % shape.idle_every == 0
        gap = gap + idle * shape.idle_ms * MS * rng.exponential(1, n)
    step = dur + pause
    step[:, -1] += gap
    start = np.concatenate(([0.0], np.cumsum(step.ravel())[:-1]))
    return Run(start, dur.ravel(), np.tile(kinds, n), np.repeat(np.arange(n), ops))


@dataclass(frozen=True, slots=True)
class Truth:
    """The relation of two clocks: y = x + offset + drift * x, in ns of a run."""

    offset: float
    drift: float

    def map(self, x: F64) -> F64:
        """Times of the first clock on the second."""
        return x + self.offset + self.drift * x


@dataclass(frozen=True, slots=True)
class BentTruth(Truth):
    """A relation that is more than a line; `more` gives what comes on top of it, for times of the first clock."""

    more: Callable[[F64], F64] = np.zeros_like

    def map(self, x: F64) -> F64:
        """Times of the first clock on the second."""
        return x + self.offset + self.drift * x + self.more(x)


def slewed(by: float, first: float, last: float) -> Callable[[F64], F64]:
    """A second clock that runs too fast by a ratio for a while."""
    return lambda x: by * np.clip(x - first, 0, last - first)


def set_at(when: float, by: float) -> Callable[[F64], F64]:
    """A second clock that is set ahead, by ns."""
    return lambda x: np.where(x > when, by, 0.0)


def outer(made: Run) -> Events:
    """What a framework writes: all operators, whole microseconds."""
    start, end = np.floor(made.start / US) * US, np.floor((made.start + made.dur) / US) * US
    return Events(start, end - start, made.kind.astype(np.int32), 0, US)


def inner(
    rng: np.random.Generator,
    made: Run,
    truth: Truth,
    *,
    missing: float = 0.3,
    extra: float = 0.05,
    twice: float = 0.01,
    part: tuple[float, float] = (0.0, 1.0),
) -> tuple[Events, Array]:
    """What the library below writes, and for each event the operator that it comes from (-1 for none)."""
    last = made.iteration[-1] + 1
    seen = (made.iteration >= part[0] * last) & (made.iteration < part[1] * last)
    rows = np.flatnonzero(seen & (rng.random(len(made.start)) >= missing))
    before = (1 + rng.exponential(1.0, len(rows))) * US
    after = (0.5 + rng.exponential(1.0, len(rows))) * US
    fits = np.minimum(1.0, 0.8 * made.dur[rows] / (before + after))
    start, dur = made.start[rows] + before * fits, made.dur[rows] - (before + after) * fits
    kind, source = made.kind[rows], rows
    more = rng.integers(0, len(rows), rng.binomial(len(rows), extra))
    again = rng.integers(0, len(rows), rng.binomial(len(rows), twice))
    start = np.concatenate((start, start[more] + dur[more] + US, start[again] + 2 * US))
    dur = np.concatenate((dur, np.exp(rng.normal(np.log(30), 0.5, len(more))) * US, dur[again]))
    kind = np.concatenate((kind, rng.choice(made.kind, len(more)), kind[again]))
    source = np.concatenate((source, np.full(len(more) + len(again), -1)))
    order = np.argsort(start, kind="stable")
    begins = np.floor(truth.map(start[order]) / US) * US
    ends = np.floor(truth.map((start + dur)[order]) / US) * US
    order_again = np.argsort(begins, kind="stable")
    zero = float(begins.min())
    events = Events(
        (begins - zero)[order_again],
        (ends - begins)[order_again],
        kind[order][order_again].astype(np.int32),
        int(zero),
        US,
    )
    return events, source[order][order_again]


def as_samples(
    rng: np.random.Generator,
    made: Run,
    truth: Truth,
    *,
    hz: float = 1000.0,
    part: tuple[float, float] | None = None,
    on_cpu: float = 0.7,
    wrong: float = 0.02,
) -> Samples:
    """What a profiler that samples one thread sees, while the thread is on a CPU.

    Args:
        part: the shares of the run between which it records; None: from before the start to after the end.
        on_cpu: how often the thread runs between operators.
        wrong: the share of labels that are wrong.
    """
    end = float(made.start[-1] + made.dur[-1])
    first, last = (-20 * MS, end + 20 * MS) if part is None else (part[0] * end, part[1] * end)
    period = S / hz
    t = np.arange(first + rng.random() * period, last, period)
    t = t + rng.exponential(5 * US, len(t))
    rows = np.searchsorted(made.start, t, "right") - 1
    inside = (rows >= 0) & (t < (made.start + made.dur)[np.maximum(rows, 0)])
    busy = inside ^ (rng.random(len(t)) < wrong)
    seen = busy | (rng.random(len(t)) < on_cpu)
    times = np.sort(np.floor(truth.map(t[seen])))
    return Samples(times - times[0], busy[seen], int(times[0]))


def interrupted(
    rng: np.random.Generator, made: Run, *, hz: float = 1000.0, part: tuple[float, float] = (0.0, 1.0)
) -> tuple[Run, F64, Array]:
    """The run as it goes when a profiler interrupts it, the times of the samples, and whether it was at work at each.

    The thread stands still while an interrupt is handled, for some µs before the sample gets its time stamp and for
    some after. The time on a CPU counts, as perf's cpu-clock does: in a pause of milliseconds the thread sleeps, and
    one sample in thirty comes late by the clock on the wall, since another program ran.
    """
    end = float(made.start[-1] + made.dur[-1])
    before, after = rng.uniform(2 * US, 20 * US, 2)
    idle = np.flatnonzero(made.start[1:] - (made.start + made.dur)[:-1] > MS)
    asleep = (made.start + made.dur)[idle] + 0.1 * MS, made.start[idle + 1] - 0.1 * MS
    wall = np.concatenate(([0.0], np.column_stack(asleep).ravel(), [end]))
    running = np.concatenate(([0.0], np.cumsum(np.diff(wall) * (np.arange(len(wall) - 1) % 2 == 0))))
    due = np.interp(np.arange(rng.random() * S / hz, running[-1], S / hz), running, wall)
    due = due + rng.exponential(2 * US, len(due)) + np.cumsum((rng.random(len(due)) < 1 / 30) * rng.exponential(MS))
    due = due[(due >= part[0] * end) & (due < part[1] * end)]
    pause = rng.normal(1.0, 0.1, (2, len(due))).clip(0.5) * np.array([[before], [after]])
    lost = np.concatenate(([0.0], np.cumsum(pause.sum(axis=0))))
    row = np.searchsorted(made.start, due, "right") - 1
    working = (row >= 0) & (due < (made.start + made.dur)[np.maximum(row, 0)])
    start, finish = (t + lost[np.searchsorted(due, t)] for t in (made.start, made.start + made.dur))
    return replace(made, start=start, dur=finish - start), due + lost[:-1] + pause[0], working


def as_bins(
    rng: np.random.Generator,
    made: Run,
    truth: Truth,
    *,
    interval_ms: float = 10.0,
    part: tuple[float, float] | None = None,
    idle: float = 0.05,
    noise: float = 0.03,
) -> Bins:
    """What a counter that is read at intervals counts: CPU time of a process that works in its operators."""
    end = float(made.start[-1] + made.dur[-1])
    first, last = (-50 * MS, end + 50 * MS) if part is None else (part[0] * end, part[1] * end)
    width = interval_ms * MS
    edge = np.arange(first + rng.random() * width, last, width)
    edge = edge + rng.exponential(80 * US, len(edge))
    borders = np.column_stack((made.start, made.start + made.dur)).ravel()
    lasted = np.column_stack((np.concatenate(([0.0], np.cumsum(made.dur)[:-1])), np.cumsum(made.dur))).ravel()
    busy = np.diff(np.interp(edge, borders, lasted))
    wide = np.diff(edge)
    amount = busy + idle * (wide - busy) + noise * wide * rng.standard_normal(len(wide))
    mapped = np.floor(truth.map(edge))
    return Bins(mapped - mapped[0], np.maximum(amount, 0.0), int(mapped[0]))

"""Simulated pairs of files of one host, in regimes in which none may be placed outside of its bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from msgspec import structs

from tests.benchmarks.alignment.simulate import MS, US, BentTruth, S, Shape, Truth, inner, network, outer, run, set_at
from tests.benchmarks.alignment.trials import JITTERS, merged, recorded, some_shape, some_truth, watched_pair
from traceconv.align import Alignment, align
from traceconv.align.causality import believed, causality
from traceconv.align.constraints import Constraints, NameMap
from traceconv.align.estimate import Array, Events, Prior
from traceconv.align.evidence import estimate_pair
from traceconv.align.sequences import align_sequences
from traceconv.errors import AlignmentError
from traceconv.model.clocks import REALTIME, Verdict
from traceconv.model.source_info import Layer
from traceconv.model.trace import Trace, take

_NOW = 1_790_000_000 * int(S)


@dataclass(frozen=True, slots=True)
class Placed:
    """What becomes of a pair.

    Attributes:
        refused: whether it is not merged.
        wrong: whether it is merged, and a time is outside of its bound.
    """

    refused: bool
    wrong: bool = False


def small_step(seed: int) -> Placed:
    """The clock of a log is set ahead by 3 to 300 µs while both record."""
    rng = np.random.default_rng(seed)
    made = run(rng, Shape(iterations=100))
    when = rng.uniform(0.03, 0.97) * float(made.start[-1])
    line = some_truth(rng)
    by = float(np.exp(rng.uniform(np.log(3), np.log(300)))) * US
    truth = BentTruth(line.offset, line.drift, set_at(when, by))
    a, (b, _) = outer(made), inner(rng, made, truth)
    found = align_sequences(a, b, Prior())
    if found.verdict is not Verdict.OK:
        return Placed(refused=True)
    x = np.sort(np.concatenate((made.start, made.start + made.dur)))
    right = truth.map(x) - b.zero_ns - x
    low, high = found.chain.bounds(x)
    return Placed(refused=False, wrong=float(((low <= right) & (right <= high)).mean()) < 0.999)


def late_step(seed: int, *, is_set: bool = True) -> Placed:
    """Both files state the wall clock, and that of the log is set by 1 to 50 ms in its last tenth, or never."""
    traces, _ = set_late(seed, Truth(0.0, 0.0), is_set=is_set)
    try:
        _believed([_on_wall(trace, 0) for trace in traces])
    except AlignmentError:
        return Placed(refused=True)
    return Placed(refused=False, wrong=is_set)


def late_step_unstated(seed: int, *, is_set: bool = True) -> Placed:
    """The same, though nothing but their events relates the two files."""
    traces, truth = set_late(seed, some_truth(np.random.default_rng(seed)), is_set=is_set)
    try:
        alignment = _believed(traces)
    except AlignmentError:
        return Placed(refused=True)
    return Placed(refused=False, wrong=_is_outside(alignment, traces, truth))


def late_step_samples(seed: int, *, is_set: bool = True) -> Placed:
    """Slices, and samples at 1 kHz whose clock is set by 3 to 50 ms in their last 7 to 15 %, or never."""
    rng = np.random.default_rng(seed)
    a, b, line = watched_pair(seed)
    first, last = ((ts - line.offset) / (1 + line.drift) for ts in b.span)
    when = first + rng.uniform(0.85, 0.93) * (last - first)
    by = float(rng.choice([-1, 1]) * rng.uniform(3, 50)) * MS
    truth = BentTruth(line.offset, line.drift, set_at(when, by) if is_set else np.zeros_like)
    ts = b.trace.samples.ts
    true = (ts - line.offset) / (1 + line.drift)
    samples = replace(b.trace.samples, ts=ts + truth.more(true).astype(np.int64))
    b = structs.replace(b, trace=b.trace.with_tables(samples=take(samples, np.argsort(samples.ts, kind="stable"))))
    found = estimate_pair(a, b, None, NameMap())
    if found is None or found.estimate.verdict is not Verdict.OK:
        return Placed(refused=True)
    right = truth.map(true)
    there = found.clock_map.apply(np.round(true).astype(np.int64))
    return Placed(refused=False, wrong=float(np.mean(np.abs(there - right) > found.bound_ns + 2 * US)) > 0.001)


def set_late(seed: int, line: Truth, *, is_set: bool) -> tuple[list[Trace], BentTruth]:
    """Return a trace, and a log whose clock is set by 1 to 50 ms in its last tenth, or never; and the true relation."""
    rng = np.random.default_rng(seed)
    made = run(rng, replace(some_shape(rng, JITTERS[seed % 3]), iterations=30))
    when = rng.uniform(0.9, 0.97) * float(made.start[-1])
    by = float(rng.choice([-1, 1]) * rng.uniform(1, 50)) * MS
    truth = BentTruth(line.offset, line.drift, set_at(when, by) if is_set else np.zeros_like)
    b, _ = inner(rng, made, truth, missing=0.1 * (seed % 2), extra=0.0)
    return [recorded(outer(made), "a.json", Layer.FRAMEWORK), recorded(b, "b.log", Layer.LIBRARY)], truth


def _believed(traces: Sequence[Trace]) -> Alignment:
    """Return the alignment of files, with all checks."""
    alignment = align(traces)
    return believed(alignment, causality(traces, alignment))


def _is_outside(alignment: Alignment, traces: Sequence[Trace], truth: Truth) -> bool:
    """Return whether the second file is placed outside of its bound at some times of the first one."""
    one, other = (maps[0] for maps in alignment.maps)
    bound = other.bound_ns
    times = traces[0].slices.ts
    right = truth.map(times.astype(np.float64)) - times
    there = other.inverse().apply(one.apply(times)) - times
    return bound is not None and float(np.mean(np.abs(there - right) > bound + 2 * US)) > 0.001


def _on_wall(trace: Trace, off: int) -> Trace:
    """Return a recording as one on the wall clock."""
    slices = replace(trace.slices, ts=trace.slices.ts + _NOW + off)
    return trace.with_tables(slices=slices, clocks=[structs.replace(REALTIME, machine="here", resolution_ns=1000)])


def log_of_two(seed: int, *, stated: bool = False, processes: int = 2) -> tuple[list[Trace], Truth, Array]:
    """Return a trace, and a log that holds the calls of a second process of the program as well.

    Args:
        seed: of everything.
        stated: whether both files state the wall clock.
        processes: 1 for a log of the recorded process alone.

    Returns:
        The two, the relation of their clocks, and for each call of the log its process: 0 for the recorded one, 1 for
        the other one, and -1 where a call was made up.
    """
    rng = np.random.default_rng(seed)
    shape = some_shape(rng, JITTERS[seed % 3])
    net = network(rng, shape.operators)
    made, other, truth = run(rng, shape, net), run(rng, shape, net), Truth(0.0, 0.0) if stated else some_truth(rng)
    length = float(made.start[-1])
    apart = rng.uniform(-0.3, 0.3) * length
    logs = [
        inner(rng, one, replace(truth, offset=truth.offset + away), missing=0.1)
        for one, away in ((made, 0.0), (other, apart))
    ][:processes]
    log, order = _together([events for events, _ in logs])
    whose = np.concatenate([np.where(source < 0, -1, number) for number, (_, source) in enumerate(logs)])[order]
    traces = [recorded(outer(made), "calls.json", Layer.FRAMEWORK), recorded(log, "work.log", Layer.LIBRARY)]
    traces[1].sources[0].runs_in = (traces[0].sources[0].format,)
    return [_on_wall(trace, 0) for trace in traces] if stated else traces, truth, whose[traces[1].slices.origin - 1]


def two_processes(seed: int) -> Placed:
    """The log holds the calls of a second process of the program as well."""
    traces, truth, _ = log_of_two(seed)
    found = merged(traces, "calls.json", truth)
    return Placed(refused=not found.accepted, wrong=found.accepted and not found.held)


def _together(logs: Sequence[Events]) -> tuple[Events, Array]:
    """Return the events of logs on one clock as one log, and their order in it."""
    zero = min(log.zero_ns for log in logs)
    start, dur, kind = (
        np.concatenate(column)
        for column in zip(*((one.start + (one.zero_ns - zero), one.dur, one.kind) for one in logs), strict=True)
    )
    order = np.argsort(start, kind="stable")
    return Events(start[order], dur[order], kind[order], zero, US), order


def wrong_option(seed: int) -> Placed:
    """An --offset that is off by 50 µs to 30 s, though stated to the ns."""
    rng = np.random.default_rng(seed)
    made = run(rng, some_shape(rng, JITTERS[seed % 3]))
    truth = Truth(float(rng.uniform(-1e12, 1e12)), float(rng.uniform(-50, 50)) * 1e-6)
    b, _ = inner(rng, made, truth)
    traces = [recorded(outer(made), "calls.json", Layer.FRAMEWORK), recorded(b, "work.log", Layer.LIBRARY)]
    off = float(rng.choice([-1, 1]) * np.exp(rng.uniform(np.log(50 * US), np.log(30 * S))))
    try:
        alignment = align(traces, constraints=Constraints(offsets={1: round(off - truth.offset)}))
    except AlignmentError:
        return Placed(refused=True)
    bound = alignment.maps[1][0].bound_ns
    return Placed(refused=False, wrong=bound is not None and bound < 0.9 * abs(off))


def steep_log(seed: int) -> Placed:
    """The clocks of a trace and of a log drift apart by 60 to 190 ppm."""
    rng = np.random.default_rng(seed)
    made = run(rng, some_shape(rng, JITTERS[seed % 3]))
    drift = float(rng.choice([-1, 1]) * rng.uniform(60, 190)) * 1e-6
    truth = Truth(float(rng.uniform(-1e12, 1e12)), drift)
    traces = [recorded(outer(made), "calls.json", Layer.FRAMEWORK)]
    traces.append(recorded(inner(rng, made, truth)[0], "work.log", Layer.LIBRARY))
    found = merged(traces, "calls.json", truth)
    return Placed(refused=not found.accepted, wrong=found.accepted)


#: Each regime with its trial.
TRIALS: dict[str, tuple[str, Callable[[int], Placed]]] = {
    "small-step": ("the clock of a log set ahead by 3 to 300 µs, simulated", small_step),
    "late-step": ("the stated clock of a log set by 1 to 50 ms in its last tenth, simulated", late_step),
    "late-step-unstated": ("the same without stated clocks, simulated", late_step_unstated),
    "late-step-samples": (
        "the clock of samples set by 3 to 50 ms near their end, simulated",
        late_step_samples,
    ),
    "two-processes": ("a log of two processes, simulated", two_processes),
    "steep-log": ("the clock of a log 60 to 190 ppm too fast or slow, simulated", steep_log),
    "wrong-option": ("an --offset that is 50 µs to 30 s off, simulated", wrong_option),
}

"""Clocks since boot of one host that are of two boots; what the user gets who asks for the best or for separate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.benchmarks.alignment.simulate import Shape, Truth, inner, outer, run
from traceconv.align import Policy, align
from traceconv.clocks import MONOTONIC, REALTIME, ClockDomain, ClockSnapshot, Run, Verdict, Zero
from traceconv.errors import AmbiguousAlignment
from traceconv.ir.builder import Builder
from traceconv.ir.trace import SourceInfo, Trace
from traceconv.lanes import lay_out
from traceconv.merging import merge_traces
from traceconv.times import earlier_or_later

HERE = replace(MONOTONIC, machine="vm")
NOW = 1_700_000_000_000_000_000
HOUR = 3600 * 10**9


def recording(name: str, at: int, boot: int | None, clock: ClockDomain = HERE) -> Trace:
    """A slice on the clock since boot, and a reading of it beside the wall clock."""
    out = Builder(SourceInfo(name, "format"), clock)
    out.slice(out.track("work"), at, 10, "x")
    if boot is not None:
        out.snapshot(ClockSnapshot(clock, at, REALTIME, boot + at, 5000, "header"))
    out.balance.read = out.balance.written = 1
    return lay_out(out.finish())


def test_two_boots_of_one_host_are_two_clocks() -> None:
    traces = [recording("a", HOUR, NOW), recording("b", 2 * HOUR, NOW + 5 * HOUR)]
    alignment = align(traces)
    assert [line.offset_ns for line in alignment.receipt] == [NOW, NOW + 5 * HOUR]
    merged = merge_traces(traces, alignment)
    assert all(any("another boot" in note for note in source.notes) for source in merged.sources)


def test_one_boot_is_one_clock_also_hours_later() -> None:
    traces = [recording("a", HOUR, NOW), recording("b", 9 * HOUR, NOW + 10**9), recording("c", HOUR, None)]
    alignment = align(traces)
    assert alignment.receipt[2].offset_ns in (NOW, NOW + 10**9)
    assert not any("boot" in note for trace in traces for note in trace.sources[0].notes)


def periodic() -> tuple[Trace, Trace]:
    rng = np.random.default_rng(3)
    made = run(rng, Shape(iterations=30, operators=20).periodic())
    framework, (library, _) = outer(made), inner(rng, made, Truth(0.0, 0.0), part=(0.25, 0.75))
    private = ClockDomain("private", Zero.UNKNOWN, Run.MONOTONIC, 1000)
    traces = []
    for name, events, clock in (("a.json", framework, REALTIME), ("b.log", library, private)):
        out = Builder(SourceInfo(name, "format"), clock)
        track = out.track("cpu")
        for ts, dur, kind in zip(events.start.tolist(), events.dur.tolist(), events.kind.tolist(), strict=True):
            out.slice(track, (NOW if clock is REALTIME else 0) + round(ts), round(dur), f"conv{kind}d")
        out.balance.read = out.balance.written = len(events)
        traces.append(lay_out(out.finish()))
    return traces[0], traces[1]


def test_what_is_ambiguous_is_refused_unless_the_user_wants_it() -> None:
    traces = periodic()
    with pytest.raises(AmbiguousAlignment, match=r"a\.json and b\.log cannot be lined up"):
        align(traces)
    best = align(traces, policy=Policy(on_ambiguous="best"))
    assert best.receipt[1].verdict == Verdict.AMBIGUOUS
    assert best.receipt[1].bound_ns is None
    (pair,) = best.pairs
    assert pair.taken
    assert best.receipt[1].offset_ns == pair.way.inverse().offset_ns
    assert best.receipt[1].warnings[0].startswith("it lies where it fits best, though that is ambiguous")
    assert pair.estimate.reason in best.receipt[1].warnings[0]
    assert earlier_or_later(pair.rival_offsets()[0]) in best.receipt[1].warnings[0]
    separate = align(traces, policy=Policy(on_ambiguous="separate"))
    assert separate.receipt[1].offset_ns == int(traces[0].slices.ts[0]) - int(traces[1].slices.ts[0])
    assert separate.receipt[1].verdict == Verdict.SEPARATE
    assert pair.estimate.reason in separate.receipt[1].warnings[0]
    assert not separate.pairs[0].taken


def test_separate_is_beside_inputs_that_the_user_placed() -> None:
    a, b = periodic()
    alignment = align([a, b], {0: 10**9}, Policy(on_ambiguous="separate"))
    begins = [line.offset_ns + int(trace.slices.ts[0]) for line, trace in zip(alignment.receipt, (a, b), strict=True)]
    assert begins == [int(a.slices.ts[0]) + 10**9] * 2


def test_separate_is_beside_inputs_without_times() -> None:
    order = recording("a", 0, None, ClockDomain("order of the log", Zero.UNKNOWN, Run.NONE, 1000))
    private = recording("b", HOUR, None, ClockDomain("private", Zero.UNKNOWN, Run.MONOTONIC, 1000))
    for traces in ([order, private], [private, order]):
        alignment = align(traces, policy=Policy(on_ambiguous="separate"))
        assert (
            len({line.offset_ns + int(t.slices.ts[0]) for line, t in zip(alignment.receipt, traces, strict=True)}) == 1
        )

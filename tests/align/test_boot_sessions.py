"""Clocks since boot of one host that are of two boots; what the user gets who asks for the best or for separate."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from tests.benchmarks.alignment.simulate import Shape, Truth, inner, outer, run
from traceconv.align import Policy, align
from traceconv.align.constraints import Constraints
from traceconv.errors import AmbiguousAlignment, InconsistentClocks, UnrelatedClocks
from traceconv.merging.traces import merge_traces
from traceconv.model.builder import Builder
from traceconv.model.clocks import BOOTTIME, MONOTONIC, REALTIME, ClockDomain, ClockSnapshot, Run, Verdict, Zero
from traceconv.model.layout import lay_out
from traceconv.model.numbers import earlier_or_later
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import Trace

HERE = replace(MONOTONIC, machine="vm")
NOW = 1_700_000_000_000_000_000
HOUR = 3600 * 10**9


def recording(name: str, at: int, boot: int | None, clock: ClockDomain = HERE) -> Trace:
    """A slice on the clock since boot, and a reading of it beside the wall clock."""
    out = Builder(SourceInfo(name, "format"), clock)
    out.slice(out.tracks.add("work"), at, 10, "x")
    if boot is not None:
        out.clocks.snapshot(ClockSnapshot(clock, at, REALTIME, boot + at, 5000, "header"))
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
    assert not alignment.notes


def test_inputs_are_left_as_they_are() -> None:
    traces = [recording("a", HOUR, NOW), recording("b", 2 * HOUR, NOW + 5 * HOUR)]
    for _ in range(2):
        alignment = align(traces)
        assert [len(notes) for notes in alignment.notes.values()] == [1, 1]
    assert not any(trace.sources[0].notes for trace in traces)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_what_two_files_of_one_boot_have_in_common_does_not_depend_on_a_third(order: tuple[int, ...]) -> None:
    """The two read the wall clock 40 ms apart: one clock all the same, as without the file of another boot."""
    traces = [recording("a", HOUR, NOW), recording("b", HOUR, NOW + 40_000_000), recording("c", HOUR, NOW + 5 * HOUR)]
    found = align([traces[number] for number in order])
    offsets = {line.file: line.offset_ns for line in found.receipt}
    assert offsets["a"] == offsets["b"] == align(traces[:2]).receipt[0].offset_ns
    assert offsets["c"] == NOW + 5 * HOUR


def test_what_one_boot_has_in_common_with_another_is_the_wall_clock_alone() -> None:
    """Other clocks since boot of the two, which files relate to the first one, are two as well."""
    boottime = replace(BOOTTIME, machine="vm")
    traces = [recording("a", HOUR, NOW), recording("b", 2 * HOUR, NOW + 5 * HOUR)]
    for trace, at in zip(traces, (HOUR, 2 * HOUR), strict=True):
        trace.snapshots.append(ClockSnapshot(HERE, at, boottime, at, 0, "header"))
    assert [line.offset_ns for line in align(traces).receipt] == [NOW, NOW + 5 * HOUR]


def with_boot_id(name: str, at: int, boot: int, id: str) -> Trace:
    out = Builder(SourceInfo(name, "format"), HERE)
    out.slice(out.tracks.add("work"), at, 10, "x")
    out.clocks.snapshot(ClockSnapshot(HERE, at, REALTIME, boot + at, 5000, "header"))
    out.info.boot_id = id
    return lay_out(out.finish())


def test_the_id_of_a_boot_is_believed_rather_than_the_wall_clock() -> None:
    """The wall clock was set by a minute within one boot; two boots seem to have begun at one time."""
    same = align([with_boot_id("a", HOUR, NOW, "1"), with_boot_id("b", HOUR + 9, NOW + 60 * 10**9, "1")])
    assert not same.notes
    assert same.receipt[0].offset_ns == same.receipt[1].offset_ns
    assert all("moved apart by 60 s" in line.warnings[0] for line in same.receipt)
    other = align([with_boot_id("a", HOUR, NOW, "1"), with_boot_id("b", HOUR + 9, NOW + 10**6, "2")])
    assert [line.offset_ns for line in other.receipt] == [NOW, NOW + 10**6]


def test_two_boots_are_not_one_as_same_machine_says() -> None:
    with pytest.raises(InconsistentClocks, match=r"^--same-machine: a and b are of two boots$"):
        align(
            [recording("a", HOUR, NOW), recording("b", HOUR, NOW + 5 * HOUR)],
            constraints=Constraints(same_machine=True),
        )


def periodic(part: tuple[float, float] = (0.25, 0.75)) -> tuple[Trace, Trace]:
    rng = np.random.default_rng(3)
    made = run(rng, Shape(iterations=30, operators=20).periodic())
    framework, (library, _) = outer(made), inner(rng, made, Truth(0.0, 0.0), part=part)
    private = ClockDomain("private", Zero.UNKNOWN, Run.MONOTONIC, 1000)
    traces = []
    for name, events, clock in (("a.json", framework, REALTIME), ("b.log", library, private)):
        out = Builder(SourceInfo(name, "format"), clock)
        track = out.tracks.add("cpu")
        for ts, dur, kind in zip(events.start.tolist(), events.dur.tolist(), events.kind.tolist(), strict=True):
            out.slice(track, (NOW if clock is REALTIME else 0) + round(ts), round(dur), f"conv{kind}d")
        out.balance.read = out.balance.written = len(events)
        traces.append(lay_out(out.finish()))
    return traces[0], traces[1]


def test_what_is_ambiguous_is_refused_unless_the_user_wants_it() -> None:
    traces = periodic()
    with pytest.raises(AmbiguousAlignment, match=r"a\.json and b\.log cannot be aligned"):
        align(traces)
    best = align(traces, policy=Policy(on_ambiguous="best"))
    assert best.receipt[1].verdict == Verdict.AMBIGUOUS
    assert best.receipt[1].bound_ns is None
    (pair,) = best.pairs
    assert pair.taken
    assert best.receipt[1].offset_ns == pair.clock_map.inverse().offset_ns
    assert (
        best.receipt[1].warnings[0].startswith("placed at the best offset (--on-ambiguous best), but that is ambiguous")
    )
    assert str(pair.estimate.reason) in best.receipt[1].warnings[0]
    assert (
        f"of b.log, relative to the best one: {earlier_or_later(pair.rival_moves(pair.b)[0])}"
        in (best.receipt[1].warnings[0])
    )
    separate = align(traces, policy=Policy(on_ambiguous="separate"))
    assert separate.receipt[1].offset_ns == int(traces[0].slices.ts[0]) - int(traces[1].slices.ts[0])
    assert separate.receipt[1].verdict == Verdict.SEPARATE
    assert str(pair.estimate.reason) in separate.receipt[1].warnings[0]
    assert not separate.pairs[0].taken


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_other_offsets_of_a_file_are_moves_of_it(order: tuple[int, int]) -> None:
    """The log has nearly all iterations: at the strongest rivals, it still lies inside the framework's trace."""
    traces = periodic((0.0, 0.9))
    both = [traces[index] for index in order]
    found = align(both, policy=Policy(on_ambiguous="best"))
    (pair,) = found.pairs
    (log,) = (one for one in (pair.a, pair.b) if one.name == "b.log")
    (host,) = (one for one in (pair.a, pair.b) if one.name == "a.json")
    to_host = pair.clock_map if log is pair.a else pair.back
    first, last = map(to_host.at, log.span)
    moves = pair.rival_moves(log)[:2]
    assert [-move for move in moves] == pair.rival_moves(host)[:2]

    def outside(move: int) -> int:
        return max(0, host.span[0] - (first + move), last + move - host.span[1])

    assert [outside(move) < 10**6 for move in moves] == [True, True]
    assert [outside(-move) < 10**6 for move in moves] == [False, False]


def test_separate_is_beside_inputs_that_the_user_placed() -> None:
    a, b = periodic()
    alignment = align([a, b], policy=Policy(on_ambiguous="separate"), constraints=Constraints(offsets={0: 10**9}))
    begins = [line.offset_ns + int(trace.slices.ts[0]) for line, trace in zip(alignment.receipt, (a, b), strict=True)]
    assert begins == [int(a.slices.ts[0]) + 10**9] * 2


def test_a_refusal_says_that_moved_files_are_not_compared() -> None:
    clocks = (ClockDomain("its own", Zero.UNKNOWN, Run.MONOTONIC, 1000), REALTIME)
    traces = [recording(name, HOUR, None, clock) for name, clock in zip("ab", clocks, strict=True)]
    with pytest.raises(UnrelatedClocks, match=r"events are not compared where --offset moves a file \(b\) \("):
        align(traces, constraints=Constraints(offsets={1: 10**9}))


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1)])
def test_clocks_that_are_related_stay_so_beside_the_others(order: tuple[int, ...]) -> None:
    """The first of the two starts with the other input, and no gap between inputs that are not aligned is said."""
    wall = recording("wall", NOW, None, REALTIME)
    traces = [wall, recording("early", HOUR, None), recording("late", HOUR + 5 * 10**9, None)]
    found = align([traces[number] for number in order], policy=Policy(on_ambiguous="separate"))
    lines = {line.file: line for line in found.receipt}
    assert {lines[name].offset_ns for name in ("early", "late")} == {NOW - HOUR}
    assert {lines[name].verdict for name in ("early", "late")} == {Verdict.SEPARATE}
    (reason,) = {text for line in found.receipt for text in line.warnings}
    assert reason.startswith("not aligned: do not compare its times with those of other files (both files show")


def test_separate_is_beside_inputs_without_times() -> None:
    order = recording("a", 0, None, ClockDomain("order of the log", Zero.UNKNOWN, Run.NONE, 1000))
    private = recording("b", HOUR, None, ClockDomain("private", Zero.UNKNOWN, Run.MONOTONIC, 1000))
    for traces in ([order, private], [private, order]):
        alignment = align(traces, policy=Policy(on_ambiguous="separate"))
        assert (
            len({line.offset_ns + int(t.slices.ts[0]) for line, t in zip(alignment.receipt, traces, strict=True)}) == 1
        )

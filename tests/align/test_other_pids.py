"""Which recordings are compared by their events where their pids are known: those of one process, if pids tell it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.align.pairs import TRUTH, private
from tests.benchmarks.alignment.simulate import Shape, inner, outer, run
from traceconv.align import Alignment, Policy, align, comparison, duration_layout
from traceconv.align.estimate import Events, PairEstimate
from traceconv.align.inputs import gathered, of_other_pids
from traceconv.errors import UnrelatedClocks
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME, ClockDomain, ClockSnapshot, Run, Zero
from traceconv.model.layout import lay_out
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import Trace

NAMES = ("convolution", "softmax", "pooling", "matmul")
NO_TIMES = ClockDomain("order of lines", Zero.UNKNOWN, Run.NONE)


def recording(events: Events, name: str, tool: str, pid: int | None, clock: ClockDomain | None = None) -> Trace:
    out = Builder(SourceInfo(name, tool, real_ids=True), clock or private(f"clock of {name}"))
    parent = out.tracks.add("calls") if pid is None else out.tracks.process("run", pid=pid)
    track = out.tracks.add("work", parent)
    for at, (start, dur, kind) in enumerate(
        zip(events.start.tolist(), events.dur.tolist(), events.kind.tolist(), strict=True), 1
    ):
        out.slice(track, events.zero_ns + int(start), int(dur), NAMES[kind], at=at)
    if tool == "framework":
        out.clocks.snapshot(ClockSnapshot(private(f"clock of {name}"), 0, REALTIME, 10**18, 1000, "stated"))
    return lay_out(out.finish())


def job(pids: Sequence[int | None], *, timed: bool = True, equal: bool = False) -> list[Trace]:
    """A profile and a log of each process; the pids are those of the logs, the profiles have 100, 101, and so on."""
    profiles, logs = [], []
    for number, pid in enumerate(pids):
        rng = np.random.default_rng(1 if equal else 1 + number)
        made = run(rng, Shape(iterations=10, operators=20))
        seen, _ = inner(rng, made, TRUTH, missing=0.1)
        profiles.append(recording(outer(made), f"profile{number}.json", "framework", 100 + number))
        logs.append(recording(seen, f"log{number}.txt", "library", pid, None if timed else NO_TIMES))
    return [*profiles, *logs]


def pairs_of(found: Alignment) -> dict[frozenset[str], tuple[object, ...]]:
    """For each pair of inputs that was compared what came out of it."""
    return {
        frozenset((pair.a.name, pair.b.name)): (pair.estimate.verdict, pair.estimate.chain.lines[0].offset, pair.taken)
        for pair in found.pairs
    }


def compared_all(traces: Sequence[Trace], policy: Policy, monkeypatch: pytest.MonkeyPatch) -> Alignment:
    """The alignment where no pair is left out by pids."""
    with monkeypatch.context() as patch:
        for module in (comparison, duration_layout):
            patch.setattr(module, "of_other_pids", lambda *_: False)
        return align(traces, policy=policy)


@pytest.mark.parametrize("timed", [True, False])
def test_only_recordings_of_one_process_are_compared_with_equal_results(
    timed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    traces = job([100, 101, 102], timed=timed)
    policy = Policy(same_run=not timed)
    few, every = align(traces, policy=policy), compared_all(traces, policy, monkeypatch)
    assert few.receipt == every.receipt
    assert few.maps == every.maps
    own = {frozenset((f"profile{number}.json", f"log{number}.txt")) for number in range(3)}
    assert own == set(pairs_of(few)) < set(pairs_of(every))
    assert pairs_of(few) == {pair: pairs_of(every)[pair] for pair in own}
    assert {pair for pair, (_, _, taken) in pairs_of(every).items() if taken} == own


def test_logs_that_do_not_say_their_process_are_compared_with_all() -> None:
    found = pairs_of(align(job([None, None])))
    assert {frozenset((f"profile{one}.json", f"log{other}.txt")) for one in (0, 1) for other in (0, 1)} <= set(found)


def test_a_log_that_fits_into_two_processes_is_refused_unless_its_pid_tells() -> None:
    unknown, known = job([None, None], timed=False, equal=True), job([100, 101], timed=False, equal=True)
    apart = [trace if at != 1 else later(trace) for at, trace in enumerate(unknown)]
    with pytest.raises(UnrelatedClocks, match=r"match profile0\.json and profile1\.json"):
        align(apart, policy=Policy(same_run=True))
    apart = [trace if at != 1 else later(trace) for at, trace in enumerate(known)]
    found = align(apart, policy=Policy(same_run=True))
    assert {at: placement.host for at, placement in found.placements.items()} == {2: 0, 3: 1}


def later(trace: Trace) -> Trace:
    """The same an hour later."""
    (snap,) = trace.snapshots
    moved = ClockSnapshot(snap.clock, snap.ts, snap.other, snap.other_ts + 3_600 * 10**9, snap.bound_ns, snap.method)
    return trace.with_tables(snapshots=[moved])


@pytest.mark.parametrize(
    ("pids", "different"),
    [
        ((100, 101), True),
        ((100, None), False),  # it does not say
        ((100, 5), False),  # a container may number processes anew: no other recording is of process 5
        ((5, 101), False),
    ],
)
def test_pids_count_where_both_processes_have_another_recording(
    pids: tuple[int | None, int | None], different: bool
) -> None:
    clocks = gathered(job(pids)).clocks
    profile, log = clocks[0], clocks[3]
    assert of_other_pids(profile, log, clocks) is different
    assert of_other_pids(log, profile, clocks) is different


# -- many recordings, of which no pid is known ------------------------------------------------------------------------


def test_of_many_those_that_are_certain_of_another_one_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Equal work, in an order of the logs that is not that of the profiles: each still finds its own."""
    traces = job([None] * 4)
    traces = [*traces[:4], *traces[:3:-1]]
    compared = []
    estimate = comparison.estimate_pair

    def counted(*args: Any) -> PairEstimate | None:
        compared.append(args[:2])
        return estimate(*args)

    monkeypatch.setattr(comparison, "estimate_pair", counted)
    found = align(traces)
    assert [line.verdict for line in found.receipt] == ["ok"] * 8
    assert all(abs(line.offset_ns - found.receipt[4].offset_ns) < 10**5 for line in found.receipt[4:])
    assert len(compared) == 10
    monkeypatch.setattr(comparison, "of_other_events", lambda *_: False)
    every = align(traces)
    assert len(every.receipt) == 8
    assert [line.verdict for line in every.receipt] == [line.verdict for line in found.receipt]
    assert [line.offset_ns for line in every.receipt] == [line.offset_ns for line in found.receipt]
    assert len(compared) > 10

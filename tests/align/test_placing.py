"""Logs without times in a merge: their slices inside those of the framework that they were matched to."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from tests.benchmarks.alignment.simulate import Shape, Truth, inner, outer, run
from traceconv.align import Policy, align
from traceconv.clocks import REALTIME, ClockDomain, Run, Verdict, Zero
from traceconv.errors import UnrelatedClocks
from traceconv.ir.builder import Builder
from traceconv.ir.trace import SourceInfo, Trace
from traceconv.lanes import lay_out
from traceconv.merging import merge_traces
from traceconv.validate import validate

ORDER = ClockDomain("order of the log", Zero.UNKNOWN, Run.NONE, 1000)
ZERO = 1_700_000_000_000_000_000
NAMES = ("convolution", "eltwise", "pooling", "matmul")


def pair(seed: int, shape: Shape) -> tuple[Trace, Trace]:
    """A framework on the wall clock, and the log of the library below it, without times."""
    rng = np.random.default_rng(seed)
    made = run(rng, shape)
    framework, (library, _) = outer(made), inner(rng, made, Truth(0.0, 0.0))
    host = Builder(SourceInfo("framework.json", "framework"), REALTIME)
    thread = host.thread(host.process("python", pid=1), 2)
    for ts, dur, kind in zip(framework.start.tolist(), framework.dur.tolist(), framework.kind.tolist(), strict=True):
        host.slice(thread, ZERO + round(ts), round(dur), NAMES[kind])
    guest = Builder(SourceInfo("library.log", "library", "line"), ORDER)
    track, at = guest.track("cpu (synthetic)"), 0
    for number, (dur, kind) in enumerate(zip(library.dur.tolist(), library.kind.tolist(), strict=True)):
        guest.slice(track, at, round(dur), NAMES[kind], at=number)
        at += round(dur)
    for out, count in ((host, len(framework)), (guest, len(library))):
        out.balance.read = out.balance.written = count
    return lay_out(host.finish()), lay_out(guest.finish())


def test_slices_lie_inside_their_parents() -> None:
    host, guest = pair(1, Shape(iterations=40, operators=30, jitter_operator=0.05))
    alignment = align([host, guest])
    trace = merge_traces([host, guest], alignment)
    validate(trace)
    of_guest = [n for n, track in enumerate(trace.tracks) if track.source == 1]
    rows = np.flatnonzero(np.isin(trace.slices.track, of_guest))
    args = [
        json.loads(trace.args.get(int(trace.slices.args_at[row]), int(trace.slices.args_len[row])))
        for row in rows.tolist()
    ]
    assert all("placed" in one for one in args)
    inside = [row for row, one in zip(rows.tolist(), args, strict=True) if one["placed"].startswith("inside")]
    assert len(inside) > 0.8 * len(rows)
    parents = trace.slices.ts[~np.isin(trace.slices.track, of_guest)]
    ends = parents + trace.slices.dur[~np.isin(trace.slices.track, of_guest)]
    for row in inside:
        at = int(np.searchsorted(parents, trace.slices.ts[row], "right")) - 1
        assert trace.slices.ts[row] + trace.slices.dur[row] <= ends[at]
    # The order of the log is kept.
    in_time = rows[np.lexsort((trace.slices.origin[rows], trace.slices.ts[rows]))]
    assert (np.diff(trace.slices.origin[in_time]) > 0).all()
    assert [line.verdict for line in alignment.receipt] == [Verdict.OK, Verdict.ASSUMED]
    assert alignment.receipt[1].bound_ns is None


def test_a_periodic_workload_is_refused() -> None:
    with pytest.raises(UnrelatedClocks, match="nor do their events tell"):
        align(pair(2, Shape(iterations=40, operators=30).periodic()))


def again(host: Trace, name: str, later: int = 0) -> Trace:
    """Another recording of the same work."""
    source = replace(host.sources[0], name=name)
    moved = replace(host.slices, ts=host.slices.ts + later)
    return replace(host, sources=[source]).with_tables(slices=moved)


def test_the_host_of_the_same_run_wins() -> None:
    shape = Shape(iterations=40, operators=30, jitter_operator=0.05)
    other, _ = pair(3, shape)
    host, guest = pair(1, shape)
    for traces, expected in (([again(other, "other.json"), host, guest], 1), ([host, other, guest], 0)):
        assert align(traces).placements[2].host == expected


def test_two_hosts_at_different_times_are_refused() -> None:
    host, guest = pair(1, Shape(iterations=40, operators=30, jitter_operator=0.05))
    later = again(host, "later.json", 10**10)
    with pytest.raises(UnrelatedClocks, match=r"framework\.json and later\.json, at different times"):
        align([host, later, guest])
    assert not align([host, later, guest], policy=Policy(on_ambiguous="separate")).placements
    assert align([host, later, guest], policy=Policy(on_ambiguous="best")).placements[2].host in (0, 1)


def test_two_recordings_that_agree_are_no_rivals() -> None:
    host, guest = pair(1, Shape(iterations=40, operators=30, jitter_operator=0.05))
    assert align([host, again(host, "twin.json", 5), guest]).placements[2].host in (0, 1)


def test_nothing_is_estimated_if_the_user_says_so() -> None:
    with pytest.raises(UnrelatedClocks) as raised:
        align(pair(1, Shape(iterations=40, operators=30, jitter_operator=0.05)), policy=Policy(estimate=False))
    assert "events" not in raised.value.message


def test_an_offset_wins() -> None:
    host, guest = pair(1, Shape(iterations=40, operators=30, jitter_operator=0.05))
    alignment = align([host, guest], {1: ZERO + 5})
    assert not alignment.placements
    trace = merge_traces([host, guest], alignment)
    of_guest = [n for n, track in enumerate(trace.tracks) if track.source == 1]
    assert int(trace.slices.ts[np.isin(trace.slices.track, of_guest)].min()) == ZERO + 5

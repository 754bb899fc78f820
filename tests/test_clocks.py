"""Clocks: the graph that relates them, and the alignment that is drawn from it."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from traceconv.align import Alignment, Policy, align
from traceconv.align.constraints import Constraints
from traceconv.errors import UnrelatedClocks
from traceconv.model.builder import Builder
from traceconv.model.clocks import (
    DRIFT_UNIT,
    REALTIME,
    Bend,
    ClockDomain,
    ClockGraph,
    ClockMap,
    ClockSnapshot,
    Provenance,
    Run,
    Step,
    Verdict,
    Zero,
)
from traceconv.model.layout import lay_out
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import Trace
from traceconv.model.track_table import ClockId

PRIVATE = ClockDomain("private", Zero.UNKNOWN, Run.MONOTONIC, 10)
START = ClockDomain("since start", Zero.RUN_START, Run.MONOTONIC)
BOOT = ClockDomain("boot", Zero.BOOT, Run.MONOTONIC)
NONE = ClockDomain("no times", Zero.UNKNOWN, Run.NONE)
A, B, C, D = (replace(PRIVATE, name=name) for name in "ABCD")


def snap(
    clock: ClockDomain, ts: int, other: ClockDomain, other_ts: int, bound: int = 0, how: str = ""
) -> ClockSnapshot:
    return ClockSnapshot(clock, ts, other, other_ts, bound, how or f"{clock.name}-{other.name}")


# -- domains ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (PRIVATE, PRIVATE, True),
        (PRIVATE, replace(PRIVATE, resolution_ns=1), False),
        (PRIVATE.owned_by("a"), PRIVATE.owned_by("b"), False),
        (PRIVATE.owned_by("a"), PRIVATE, False),
        (START, replace(START, name="other"), False),
        (REALTIME, ClockDomain("system_clock", Zero.UNIX_EPOCH, Run.UNKNOWN, 1000), True),
        (REALTIME, replace(REALTIME, machine="elsewhere"), True),
        (replace(REALTIME, resolution_ns=5), REALTIME.owned_by("a"), False),
        (REALTIME, BOOT, False),
        (replace(BOOT, name="x"), BOOT, False),
        (replace(BOOT, name="x", machine="m"), replace(BOOT, machine="m"), True),
        (replace(BOOT, machine="m"), replace(BOOT, machine="n"), False),
        (replace(BOOT, machine="m"), BOOT, False),
        (replace(PRIVATE, machine="m"), replace(PRIVATE, machine="m", name="x"), False),
        (NONE, replace(NONE, name="x"), False),
    ],
)
def test_same_timebase(one: ClockDomain, other: ClockDomain, same: bool) -> None:
    assert one.same_timebase(other) is same
    assert other.same_timebase(one) is same


def test_words() -> None:
    assert REALTIME.describe() == "CLOCK_REALTIME (wall clock, zero at Unix epoch)"
    assert NONE.describe() == "no times (no clock: order and durations only)"
    assert (NONE.synthetic, PRIVATE.synthetic) == (True, False)


# -- the graph --------------------------------------------------------------------------------------------------------


def test_a_snapshot_leads_both_ways() -> None:
    graph = ClockGraph([A, B], [snap(A, 100, B, 1000, 7, "read")])
    assert graph.maps_to(B) == {B: ClockMap(), A: ClockMap(900, 7, (Step("read"),))}
    assert graph.maps_to(A) == {A: ClockMap(), B: ClockMap(-900, 7, (Step("read"),))}


def test_bounds_and_methods_add_up_along_the_way() -> None:
    graph = ClockGraph([A, B, C, D], [snap(A, 0, B, 10, 1), snap(C, 0, B, 100, 2), snap(C, 0, D, 1000, 4)])
    assert graph.maps_to(D)[A] == ClockMap(10 - 100 + 1000, 7, (Step("A-B"), Step("C-B"), Step("C-D")))
    assert graph.maps_to(A)[D] == ClockMap(-(10 - 100 + 1000), 7, (Step("C-D"), Step("C-B"), Step("A-B")))


def test_the_smallest_bound_wins_not_the_shortest_way() -> None:
    graph = ClockGraph([A, B, C], [snap(A, 0, C, 50, 100), snap(A, 0, B, 20, 30), snap(B, 0, C, 31, 30)])
    assert graph.maps_to(C)[A] == ClockMap(51, 60, (Step("A-B"), Step("B-C")))
    assert graph.maps_to(C)[B] == ClockMap(31, 30, (Step("B-C"),))


def test_of_equal_bounds_the_shorter_way_wins() -> None:
    graph = ClockGraph([A, B, C], [snap(A, 0, B, 1), snap(B, 0, C, 1), snap(A, 0, C, 5)])
    assert graph.maps_to(C)[A] == ClockMap(5, 0, (Step("A-C"),))


def test_of_two_snapshots_the_better_one_wins() -> None:
    for order in (1, -1):
        graph = ClockGraph([A, B], [snap(A, 0, B, 5, 9, "bad"), snap(A, 0, B, 6, 2, "good")][::order])
        assert graph.maps_to(B)[A] == ClockMap(6, 2, (Step("good"),))


def test_equal_timebases_are_joined_for_nothing() -> None:
    wall = ClockDomain("system_clock", Zero.UNIX_EPOCH, Run.WALL, 1000)
    graph = ClockGraph([wall, A], [snap(A, 0, REALTIME, 5, 3)])
    assert graph.maps_to(wall) == {
        wall: ClockMap(),
        REALTIME: ClockMap(),
        A: ClockMap(5, 3, (Step("A-CLOCK_REALTIME"),)),
    }


def test_what_is_unrelated_has_no_map() -> None:
    graph = ClockGraph([A, B, C], [snap(A, 0, B, 1)])
    assert C not in graph.maps_to(A)
    assert graph.maps_to(D) == {D: ClockMap()}


def test_a_large_graph_against_all_paths() -> None:
    """The bound of each map is the length of the shortest path, found here by relaxing all edges often enough."""
    rng = random.Random(2)
    nodes = [replace(PRIVATE, name=str(number)) for number in range(30)]
    place = {node: rng.randrange(10**18) for node in nodes}  # what each clock shows at one instant
    pairs = [rng.sample(nodes, 2) for _ in range(60)]
    edges = [(one, other, rng.randrange(1000)) for one, other in pairs]
    snapshots = [snap(one, place[one] + 5, other, place[other] + 5, bound) for one, other, bound in edges]
    found = ClockGraph(nodes, snapshots).maps_to(nodes[0])
    best = {nodes[0]: 0}
    for _ in nodes:
        for one, other, bound in edges:
            for here, there in ((one, other), (other, one)):
                if here in best and best[here] + bound < best.get(there, 10**9):
                    best[there] = best[here] + bound
    assert {node: way.bound_ns for node, way in found.items()} == best
    assert all(way.offset_ns == place[nodes[0]] - place[node] for node, way in found.items())


# -- alignment --------------------------------------------------------------------------------------------------------


def trace(
    name: str, clock: ClockDomain, *times: int, snapshots: Any = (), beside: dict[ClockDomain, int] | None = None
) -> Trace:
    """A trace with an event at each of these times, and one on a track of each further clock."""
    out = Builder(SourceInfo(name, "test"), clock)
    track = out.tracks.add("t")
    for ts in times:
        out.slice(track, ts, 10, "x")
    for other, ts in (beside or {}).items():
        out.slice(out.tracks.add(other.name, clock=out.clocks.add(other)), ts, 10, "y")
    for snapshot in snapshots:
        out.clocks.snapshot(snapshot)
    return lay_out(out.finish())


def offsets(alignment: Alignment) -> list[dict[int, int]]:
    return [{clock: found.offset_ns for clock, found in maps.items()} for maps in alignment.maps]


def test_one_file_keeps_its_own_times() -> None:
    alignment = align([trace("a", PRIVATE, 5)])
    assert alignment.clock.name == "private"
    assert offsets(alignment) == [{0: 0}]
    (line,) = alignment.receipt
    assert (line.method, line.verdict, line.bound_ns) == ("its own times", "ok", 10)


def test_wall_clocks_are_one() -> None:
    other = ClockDomain("system_clock", Zero.UNIX_EPOCH, Run.WALL, 1000, machine="m")
    alignment = align([trace("a", REALTIME, 5), trace("b", other, 7)])
    assert alignment.clock == REALTIME
    assert offsets(alignment) == [{0: 0}, {0: 0}]
    assert [line.bound_ns for line in alignment.receipt] == [1, 1000]


@pytest.mark.parametrize("first", [0, 1])
def test_unix_time_is_the_target_when_any_file_knows_it(first: int) -> None:
    traces = [trace("a", START, 5, snapshots=[snap(START, 0, REALTIME, 10**18, 50, "header")]), trace("b", REALTIME, 9)]
    alignment = align(traces if first == 0 else traces[::-1])
    assert alignment.clock == REALTIME
    assert offsets(alignment)[first] == {0: 10**18}
    line = alignment.receipt[first]
    assert (line.file, line.method, line.offset_ns, line.bound_ns, line.verdict) == ("a", "header", 10**18, 51, "ok")
    assert line.as_json()["offset_ns"] == 10**18


def test_unix_time_also_when_only_a_snapshot_knows_it() -> None:
    alignment = align([trace("a", START, 5, snapshots=[snap(START, 1, REALTIME, 101)])])
    assert alignment.clock == REALTIME
    assert offsets(alignment) == [{0: 100}]


def test_boot_clocks_of_one_machine_are_one() -> None:
    here = replace(BOOT, machine="m")
    alignment = align([trace("a", here, 5), trace("b", replace(here, name="x"), 7)])
    assert alignment.clock == here
    assert offsets(alignment) == [{0: 0}, {0: 0}]


@pytest.mark.parametrize(
    "clock",
    [PRIVATE, START, BOOT, replace(PRIVATE, machine="m"), NONE],
    ids=lambda clock: f"{clock.name}{clock.machine}",
)
def test_private_clocks_of_two_files_are_never_the_same(clock: ClockDomain) -> None:
    with pytest.raises(UnrelatedClocks):
        align([trace("a", clock, 5), trace("b", clock, 5)])


def test_two_files_of_one_name_are_two_files() -> None:
    with pytest.raises(UnrelatedClocks):
        align([trace("a", PRIVATE, 5), trace("a", PRIVATE, 5)])


def test_private_clocks_stay_apart_when_only_snapshots_name_them() -> None:
    """Both files speak of a clock "B" that no event is on: it is another B in each."""
    with pytest.raises(UnrelatedClocks):
        align([trace("a", A, 5, snapshots=[snap(A, 0, B, 10)]), trace("b", A, 5, snapshots=[snap(A, 0, B, 20)])])


def test_a_snapshot_through_a_clock_without_events() -> None:
    ways = [snap(A, 0, B, 10, 1), snap(B, 10, REALTIME, 1000, 2)]
    alignment = align([trace("a", A, 5, snapshots=ways), trace("b", REALTIME, 5)])
    assert offsets(alignment)[0] == {0: 1000}
    assert alignment.receipt[0].bound_ns == 3 + A.resolution_ns


def test_unrelated_clocks_are_refused_with_all_that_is_needed() -> None:
    with pytest.raises(UnrelatedClocks) as error:
        align([trace("a.json", REALTIME, 10**18), trace("b.log", PRIVATE, 500, 700)])
    for word in ("a.json", "b.log", REALTIME.describe(), PRIVATE.describe()):
        assert word in error.value.message
    assert "--offset b.log=" in error.value.hint
    # No offset is guessed; what lets both start together says that they are not aligned.
    assert "--offset b.log=TIME" in error.value.hint
    assert "--on-ambiguous separate" in error.value.hint
    aligned = align(
        [trace("a.json", REALTIME, 10**18), trace("b.log", PRIVATE, 500, 700)], policy=Policy(on_ambiguous="separate")
    )
    assert 500 + offsets(aligned)[1][0] == 10**18
    assert aligned.receipt[1].verdict == "separate"


def test_the_third_file_is_named() -> None:
    with pytest.raises(UnrelatedClocks, match="a and c have no common clock"):
        align([trace("a", REALTIME, 1), trace("b", REALTIME, 1), trace("c", START, 1)])


def test_an_offset_settles_it() -> None:
    alignment = align([trace("a", REALTIME, 10), trace("b", PRIVATE, 5)], constraints=Constraints(offsets={1: -7}))
    assert offsets(alignment) == [{0: 0}, {0: -7}]
    line = alignment.receipt[1]
    assert (line.method, line.verdict) == ("--offset", "assumed")


def test_an_offset_comes_on_top_of_what_files_say() -> None:
    snapshots = [snap(START, 0, REALTIME, 1000, 5, "header")]
    alignment = align(
        [trace("a", START, 5, snapshots=snapshots), trace("b", REALTIME, 9)], constraints=Constraints(offsets={0: 33})
    )
    assert offsets(alignment)[0] == {0: 1033}
    assert (alignment.receipt[0].method, alignment.receipt[0].verdict) == ("header, then --offset", "assumed")


def test_an_offset_of_the_first_file_alone_relates_nothing() -> None:
    with pytest.raises(UnrelatedClocks):
        align([trace("a", PRIVATE, 10), trace("b", PRIVATE, 5)], constraints=Constraints(offsets={0: 100}))


def test_without_unix_time_the_clock_of_the_first_file_counts() -> None:
    alignment = align([trace("a", PRIVATE, 10), trace("b", START, 5)], constraints=Constraints(offsets={1: 100}))
    assert alignment.clock.name == "private"
    assert offsets(alignment) == [{0: 0}, {0: 100}]


def test_an_offset_of_zero_is_a_word_too() -> None:
    assert offsets(
        align([trace("a", REALTIME, 10), trace("b", PRIVATE, 5)], constraints=Constraints(offsets={1: 0}))
    ) == [{0: 0}, {0: 0}]


def test_tracks_without_times_begin_with_the_timed_ones_of_their_file() -> None:
    snapshots = [snap(START, 0, REALTIME, 1000)]
    mixed = trace("a", START, 40, 50, snapshots=snapshots, beside={NONE: 3})
    alignment = align([mixed, trace("b", REALTIME, 9)])
    assert offsets(alignment)[0] == {0: 1000, 1: 1040}
    line = alignment.receipt[1]
    assert (line.verdict, line.clock) == ("assumed", NONE.name)
    assert "no times in the file" in line.method


def test_an_offset_moves_both_parts_of_a_mixed_file() -> None:
    alignment = align([trace("a", REALTIME, 40, beside={NONE: 3})], constraints=Constraints(offsets={0: 5}))
    assert offsets(alignment) == [{0: 5, 1: 45}]


def test_a_file_without_times_alone() -> None:
    alignment = align([trace("a", NONE, 0)])
    assert offsets(alignment) == [{0: 0}]
    assert alignment.receipt[0].verdict == "assumed"


def test_two_files_without_times_are_unrelated() -> None:
    with pytest.raises(UnrelatedClocks, match="order and durations only"):
        align([trace("a", REALTIME, 1), trace("b", NONE, 0)])


def test_empty_traces_are_no_obstacle() -> None:
    assert align([trace("a", PRIVATE)]).clock == REALTIME
    alignment = align([trace("a", PRIVATE), trace("b", START, 5), trace("c", NONE)])
    assert alignment.clock.name == "since start"
    assert offsets(alignment) == [{}, {0: 0}, {}]
    assert [line.file for line in alignment.receipt] == ["b"]


def test_a_clock_that_no_event_uses_needs_no_relation() -> None:
    out = Builder(SourceInfo("a", "test"), PRIVATE)
    wall = out.clocks.add(REALTIME)
    out.slice(out.tracks.add("t", clock=ClockId(wall)), 5, 5, "x")
    alignment = align([lay_out(out.finish()), trace("b", REALTIME, 1)])
    assert offsets(alignment) == [{1: 0}, {0: 0}]


# -- maps -------------------------------------------------------------------------------------------------------------


@given(
    st.integers(-(2**60), 2**60),
    st.integers(-round(500e-6 / DRIFT_UNIT), round(500e-6 / DRIFT_UNIT)),
    st.integers(-(10**18), 10**18),
    st.lists(st.integers(-(2**61), 2**61), min_size=1, max_size=20),
)
def test_a_map_with_drift(offset: int, drift: int, at: int, away: list[int]) -> None:
    there = ClockMap(offset, drift=drift, at_ns=at)
    ts = sorted(at + step for step in away)
    mapped = there.apply(np.array(ts, np.int64)).tolist()
    assert mapped == sorted(mapped)
    for t, found in zip(ts, mapped, strict=True):
        assert found == there.at(t) == math.floor(t + offset + Fraction(drift * (t - at), 2**40))
        # The way back has a rate of its own, rounded to the unit of drifts.
        assert abs(there.inverse().at(found) - t) <= 3 + abs(t - at) * DRIFT_UNIT


def test_maps_with_drift_follow_each_other() -> None:
    first, second = (
        ClockMap(100, 3, (Step("a"),), drift=50_000_000, at_ns=1000),
        ClockMap(-7, 4, (Step("b"),), drift=-20_000_000, at_ns=0),
    )
    both = first.then(second)
    for t in (0, 1000, 10**12):
        assert abs(both.at(t) - second.at(first.at(t))) <= 3
    assert (both.bound_ns, both.method) == (7, "a, then b")
    assert first.then(first).then(second).method == "a, then b"  # equal steps in a row are named once
    assert ClockMap().then(first).at(10**12) == first.at(10**12)


def test_a_drift_reaches_as_far_as_times_do() -> None:
    """A clock since 1970 whose drift is known at zero of another one: 56 years away."""
    way = ClockMap(0, drift=round(900e-6 / DRIFT_UNIT), at_ns=0)
    far = 2**62
    assert way.apply(np.array([far, -far], np.int64)).tolist() == [way.at(far), way.at(-far)]
    with pytest.raises(OverflowError):
        ClockMap(2**62).apply(np.array([2**62], np.int64))
    assert ClockMap(5).at(2**60) == 2**60 + 5


_PPM = round(1e-6 / DRIFT_UNIT)


def bent(start: int, drift: int, parts: list[tuple[int, int, int]]) -> ClockMap:
    """A map of lines that follow each other: each after some ns, a step ahead, along a drift."""
    way, at = ClockMap(start, 7, (Step("bent"),), drift=drift, at_ns=0), 0
    for after, step, its in parts:
        at += after
        way = replace(way, bends=(*way.bends, Bend(at, way.at(at) - at + step, its)))
    return way


drifts = st.integers(-600 * _PPM, 600 * _PPM)
bent_maps = st.builds(
    bent,
    st.integers(-(10**15), 10**15),
    drifts,
    st.lists(st.tuples(st.integers(10**6, 10**12), st.sampled_from([0, 0, 10**4, 10**9]), drifts), max_size=4),
)
times = st.lists(st.integers(-(10**12), 5 * 10**12), min_size=1, max_size=30)


@given(bent_maps, times)
def test_a_bent_map_keeps_the_order_and_leads_back(way: ClockMap, ts: list[int]) -> None:
    around = [bend.at_ns + by for bend in way.bends for by in (-1, 0, 1)]
    ts = sorted([*ts, *around])
    mapped = way.apply(np.array(ts, np.int64)).tolist()
    assert mapped == [way.at(t) for t in ts]
    assert mapped == sorted(mapped)
    back = way.inverse()
    for t, found in zip(ts, mapped, strict=True):
        assert abs(back.at(found) - t) <= 10
    gaps = sorted(found + by for found in mapped for by in (-5000, 0, 5000))
    returned = back.apply(np.array(gaps, np.int64)).tolist()
    assert returned == sorted(returned) == [back.at(t) for t in gaps]


@given(bent_maps, bent_maps, times)
def test_bent_maps_follow_each_other(first: ClockMap, second: ClockMap, ts: list[int]) -> None:
    both = first.then(second)
    for t in ts:
        there = first.at(t)
        near = min((abs(there - bend.at_ns) for bend in second.bends), default=10**9) < 20
        # Drift is counted in steps of 2**-40, so one that is made of two may be half a step off.
        far = max((abs(t - bend.at_ns) for bend in both.bends), default=0)
        assert near or abs(both.at(t) - second.at(there)) <= 20 + (far >> 40)
    mapped = [both.at(t) for t in sorted(ts)]
    assert mapped == sorted(mapped)


def test_a_line_that_begins_lower_waits() -> None:
    way = ClockMap(0, bends=(Bend(1000, -100),))
    assert [way.at(t) for t in (800, 900, 950, 999, 1000, 1100)] == [800, 900, 900, 900, 900, 1000]


def test_the_worst_verdict_counts() -> None:
    ok, assumed, unverified = (
        ClockMap(verdict=verdict) for verdict in (Verdict.OK, Verdict.ASSUMED, Verdict.UNVERIFIED)
    )
    assert ok.then(assumed).verdict is Verdict.ASSUMED
    assert unverified.then(assumed).then(ok).verdict is Verdict.UNVERIFIED


@pytest.mark.parametrize("text", ["--offset", "start time given by the user", "as --same-machine says", "a, then --tz"])
def test_what_a_text_says_decides_nothing(text: str) -> None:
    """File names stand in such texts, too."""
    assert not ClockMap(5, 0, (Step(text),)).by_user
    assert ClockMap(5, 0, (Step("anything", Provenance.USER),)).then(ClockMap(1, 0, (Step(text),))).by_user
    snapshot = ClockSnapshot(A, 0, B, 5, 0, "anything", provenance=Provenance.USER)
    assert ClockGraph([A, B], [snapshot]).maps_to(B)[A].by_user


def test_the_clocks_of_many_hosts_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[ClockDomain] = []
    monkeypatch.setattr(ClockDomain, "same_timebase", lambda one, other: compared.append(one))
    ClockGraph([replace(REALTIME, owner=f"host {number}") for number in range(300)], [])
    assert not compared
    ClockGraph([replace(REALTIME, owner="one", resolution_ns=number) for number in (1, 2, 3)], [])
    assert len(compared) == 3

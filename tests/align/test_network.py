"""Networks of clocks with known relations: who is found out, who is refused, and whether bounds hold."""

from __future__ import annotations

import numpy as np
import pytest

from traceconv.align.decision import Edge, relate_all, solve
from traceconv.align.domains import with_own_domains
from traceconv.align.estimate import Estimate, Method, PairEstimate
from traceconv.align.inputs import ClockInput
from traceconv.model.builder import Builder
from traceconv.model.clocks import DRIFT_UNIT, ClockDomain, ClockGraph, ClockMap, Run, Verdict, Zero
from traceconv.model.layout import lay_out
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import Trace

SPAN_NS = 10**9
EPOCH_NS = 1_790_000_000 * 10**9


def truth_of(rng: np.random.Generator, clocks: int, drift: float = 0.0) -> list[ClockMap]:
    """For each clock its map to clock 0; the zeros are far apart, as those of wall clocks and clocks since boot."""
    maps = [ClockMap()]
    for number in range(1, clocks):
        zero = int(rng.integers(0, 10**15)) + (EPOCH_NS if number % 2 else 0)
        drifts = round(rng.uniform(-drift, drift) / DRIFT_UNIT)
        maps.append(ClockMap(zero, 0, (), Verdict.OK, drifts, SPAN_NS // 2 - zero))
    return maps


def edge(
    maps: list[ClockMap], a: int, b: int, *, error: int = 0, bound: int | None = 1000, exact: bool = False
) -> Edge:
    """A relation that is wrong by `error`, over the second of clock a that is the first of clock 0's."""
    back = maps[b].inverse()
    first = maps[a].inverse().at(0)
    last = maps[a].inverse().at(SPAN_NS)
    way = maps[a].then(back)
    drift = way.drift
    at = (first + last) // 2
    offset = back.at(maps[a].at(at)) - at + error
    return Edge(a, b, ClockMap(offset, bound, (), Verdict.OK, drift, at), (first, last), exact)


def off(found: ClockMap, true: ClockMap) -> int:
    """How wrong a map is at most, over the second."""
    times = [true.inverse().at(ts) for ts in (0, SPAN_NS // 2, SPAN_NS)]
    return max(abs(found.at(ts) - true.at(ts)) for ts in times)


def test_a_chain_is_followed_and_called_unchecked() -> None:
    maps = truth_of(np.random.default_rng(1), 3)
    edges = [edge(maps, 0, 1, error=7, bound=10), edge(maps, 2, 1, error=-5, bound=20)]
    found = solve(edges, 0)
    assert found.verdict is Verdict.OK
    assert found.loops == ()
    assert [found.maps[node].bound_ns for node in range(3)] == [0, 10, 30]
    assert off(found.maps[1], maps[1]) == 7
    assert off(found.maps[2], maps[2]) == 12


def test_a_loop_shares_its_misclosure_by_weight() -> None:
    maps = truth_of(np.random.default_rng(2), 3)
    edges = [edge(maps, 0, 1, bound=100), edge(maps, 1, 2, bound=100), edge(maps, 0, 2, error=90, bound=100)]
    found = solve(edges, 0)
    assert found.verdict is Verdict.OK
    (loop,) = found.loops
    assert abs(loop.misclosure_ns) == 90
    assert loop.bound_ns == 300
    assert loop.clocks[0] == loop.clocks[-1]
    assert set(loop.clocks) == {0, 1, 2}
    assert off(found.maps[1], maps[1]) == 30
    assert off(found.maps[2], maps[2]) == 60
    assert found.chi2 == pytest.approx(3 * 0.3**2, rel=0.01)


@pytest.mark.parametrize(("error", "strained"), [(2900, 0), (3100, 1), (6400, 1)])
def test_a_loop_that_misses_by_more_than_is_possible_is_not_passed_over(error: int, strained: int) -> None:
    maps = truth_of(np.random.default_rng(2), 3)
    edges = [edge(maps, 0, 1), edge(maps, 1, 2), edge(maps, 0, 2, error=error)]
    found = solve(edges, 2)
    assert found.verdict is Verdict.OK
    assert len(found.strained) == strained
    assert not solve([*edges[:2], edge(maps, 0, 2, error=error, bound=None)], 2).strained


def test_an_exact_relation_is_not_moved() -> None:
    maps = truth_of(np.random.default_rng(3), 3)
    edges = [
        edge(maps, 0, 1, bound=0, exact=True),
        edge(maps, 1, 2, error=400, bound=1000),
        edge(maps, 0, 2, error=-400, bound=1000),
    ]
    found = solve(edges, 0)
    assert off(found.maps[1], maps[1]) <= 1
    assert off(found.maps[2], maps[2]) <= 1
    assert found.maps[2].bound_ns <= 1000


def test_a_drift_is_fitted_too() -> None:
    maps = truth_of(np.random.default_rng(4), 4, drift=50e-6)
    edges = [edge(maps, a, b, bound=1000) for a, b in ((0, 1), (1, 2), (2, 3), (3, 0), (0, 2))]
    found = solve(edges, 0)
    assert found.verdict is Verdict.OK
    for node in range(4):
        assert off(found.maps[node], maps[node]) <= 5
        assert found.maps[node].drift_ppm == pytest.approx(maps[node].drift_ppm, abs=0.01)


def test_the_only_explanation_is_dropped() -> None:
    maps = truth_of(np.random.default_rng(5), 4)
    pairs = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3)]
    edges = [edge(maps, a, b, error=8_000_000 if (a, b) == (1, 3) else 100) for a, b in pairs]
    found = solve(edges, 0)
    assert found.verdict is Verdict.OK
    assert found.dropped == (5,)
    assert abs(found.worst.misclosure_ns) > 7_000_000
    assert all(off(found.maps[node], maps[node]) <= 500 for node in range(4))


def test_one_loop_cannot_tell_which_is_wrong() -> None:
    maps = truth_of(np.random.default_rng(6), 3)
    edges = [edge(maps, 0, 1), edge(maps, 1, 2), edge(maps, 0, 2, error=8_000_000)]
    found = solve(edges, 0)
    assert found.verdict is Verdict.INCONSISTENT
    assert found.dropped == ()
    assert abs(found.worst.misclosure_ns) == 8_000_000
    assert found.chi2 > found.limit


def test_what_a_file_says_is_not_dropped() -> None:
    maps = truth_of(np.random.default_rng(7), 4)
    pairs = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3)]
    edges = [edge(maps, a, b, error=8_000_000 if (a, b) == (1, 3) else 0, exact=(a, b) == (1, 3)) for a, b in pairs]
    assert solve(edges, 0).verdict is Verdict.INCONSISTENT


def test_a_relation_without_a_bound_places_but_checks_nothing() -> None:
    maps = truth_of(np.random.default_rng(8), 3)
    edges = [edge(maps, 0, 1), edge(maps, 1, 2), edge(maps, 0, 2, error=8_000_000, bound=None)]
    found = solve(edges, 0)
    assert found.verdict is Verdict.OK
    assert off(found.maps[2], maps[2]) <= 1
    alone = solve([edge(maps, 0, 1, bound=None)], 0)
    assert alone.maps[1].bound_ns is None
    assert off(alone.maps[1], maps[1]) <= 1


def test_two_relations_of_one_pair_are_a_loop() -> None:
    maps = truth_of(np.random.default_rng(9), 2)
    found = solve([edge(maps, 0, 1, bound=500), edge(maps, 1, 0, error=50_000, bound=1000)], 0)
    assert found.verdict is Verdict.INCONSISTENT
    assert found.loops[0].clocks == (1, 0, 1)
    good = solve([edge(maps, 0, 1, bound=500), edge(maps, 1, 0, error=300, bound=1000)], 0)
    assert good.verdict is Verdict.OK
    assert off(good.maps[1], maps[1]) <= 300


def test_what_is_not_connected_is_left_alone() -> None:
    maps = truth_of(np.random.default_rng(10), 4)
    found = solve([edge(maps, 0, 1), edge(maps, 2, 3)], 0)
    assert set(found.maps) == {0, 1}


@pytest.mark.parametrize("seed", range(1000, 1040))
def test_right_networks_are_never_refused_and_bounds_hold(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(3, 7))
    maps = truth_of(rng, count, drift=20e-6)
    edges = []
    for a in range(count):
        for b in range(a + 1, count):
            if b == a + 1 or rng.random() < 0.5:
                bound = int(10 ** rng.uniform(2, 6))
                edges.append(edge(maps, a, b, error=int(rng.uniform(-1, 1) * bound), bound=bound))
    found = solve(edges, 0)
    assert found.verdict is Verdict.OK
    assert found.dropped == ()
    assert not found.strained
    assert len(found.loops) == len(edges) - count + 1
    for node in range(count):
        assert off(found.maps[node], maps[node]) <= (found.maps[node].bound_ns or 0) + 5


def test_one_wrong_relation_of_nine_is_found_or_refused_but_never_another_one_dropped() -> None:
    dropped = refused = 0
    for seed in range(1000, 1060):
        rng = np.random.default_rng(seed)
        maps = truth_of(rng, 6)
        ring = [(i, (i + 1) % 6) for i in range(6)]
        chords = rng.permutation([(0, 2), (0, 3), (1, 3), (1, 4), (2, 4), (2, 5), (3, 5), (0, 4), (1, 5)])[:3].tolist()
        pairs = [*ring, *chords]
        wrong = int(rng.integers(0, 9))
        edges = [
            edge(maps, a, b, error=8_000_000 if i == wrong else int(rng.normal(0, 500)), bound=1000)
            for i, (a, b) in enumerate(pairs)
        ]
        found = solve(edges, 0)
        assert found.chi2 <= found.limit or found.verdict is Verdict.INCONSISTENT
        if found.verdict is Verdict.INCONSISTENT:
            refused += 1
        else:
            assert found.dropped == (wrong,)
            dropped += 1
    assert dropped + refused == 60
    assert dropped >= 20


def test_files_on_such_a_loop_are_warned_of() -> None:
    sides = [ClockInput(index, 0, with_own_domains(one(name, 0), index)) for index, name in enumerate("abc")]
    accepted = [
        PairEstimate(sides[a], sides[b], Estimate(Method.SEQUENCE, Verdict.OK, ""), 0, 0, way, 1000)
        for a, b, way in ((0, 1, ClockMap(0, 1000)), (1, 2, ClockMap(0, 1000)), (0, 2, ClockMap(6400, 1000)))
    ]
    graph = ClockGraph([side.domain for side in sides], [])
    warnings = relate_all(sides, accepted, graph, sides[2].domain, set()).warnings
    assert [key for key, _ in warnings] == [(0, 0), (1, 0), (2, 0)]
    assert all("comes back 6.4 µs off, expected 3 µs at most" in str(text) for _, text in warnings)


def one(name: str, at: int) -> Trace:
    out = Builder(SourceInfo(name, "format"), ClockDomain("private", Zero.UNKNOWN, Run.MONOTONIC))
    out.slice(out.tracks.add("t"), at, SPAN_NS, "x")
    return lay_out(out.finish())


def test_two_hosts_stay_where_their_wall_clocks_are_whatever_their_own_files_leave_over() -> None:
    """A relation without a known bound weighs next to nothing, beside some of 1 ns that miss each other by as much."""
    maps = truth_of(np.random.default_rng(2), 6)
    edges = [
        edge(maps, 1, 0, bound=None, exact=False),
        edge(maps, 1, 2, bound=1, error=1),
        edge(maps, 2, 3, bound=20_000, error=700),
        edge(maps, 3, 4, bound=1, error=-1),
        edge(maps, 4, 1, bound=3_000, error=-400),
        edge(maps, 2, 4, bound=40_000, error=9_000),
        edge(maps, 5, 0, bound=None),
    ]
    found = solve(edges, 0)
    assert found.verdict is Verdict.OK
    assert all(off(found.maps[node], maps[node]) < 10_000 for node in range(6))

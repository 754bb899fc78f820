"""Hosts that the numbered collectives of their ranks place on one clock: simulated, so that the truth is known."""

from __future__ import annotations

import gzip
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from tests import GROWTH_S
from tests.benchmarks.alignment.apart import main as place_apart
from tests.benchmarks.alignment.apart import moved_apart
from tests.benchmarks.alignment.hosts import errors, jobs
from tests.benchmarks.alignment.record_gloo import FOLDER
from traceconv import cli
from traceconv.align import Alignment, Policy, align, report
from traceconv.align.causality import believed, causality
from traceconv.align.checks import Rule
from traceconv.align.clock_overview import survey
from traceconv.align.collective_hosts import _apart, _islands, placed_hosts
from traceconv.align.constraints import Anchor, Constraints, TimePoint
from traceconv.align.host_clocks import NO_TIME, HostIntervals, HostLines, host_intervals, lines_of_hosts, map_of_host
from traceconv.align.inputs import HostsApart
from traceconv.align.report import page
from traceconv.api import read
from traceconv.check.chrome_text import load_schema
from traceconv.errors import AlignmentError, AmbiguousAlignment, InconsistentClocks, UnverifiedAlignment
from traceconv.model.clocks import DRIFT_UNIT, HOSTS_DRIFT, ClockMap
from traceconv.model.trace import Trace

US, MS, SECOND = 10**3, 10**6, 10**9
BASE = 1_790_857_026_000_000_000
Json = dict[str, Any]
#: Of a contradiction: a collective, and where its two ranks stand.
BOTH_RANKS = (
    r"'ncclDevKernel_AllReduce' number \d+ \(rank (0|1) left it at rank\1.json:event \d+, "
    r"rank (?!\1)(0|1) entered it at rank\2.json:event \d+\)"
)
#: What waits for all.
GLOO = ("gloo:all_reduce", "gloo:all_gather", "gloo:barrier")


# -- the mathematics --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Job:
    """Simulated collectives, as the hosts recorded them, and how far ahead each clock is at a time of the truth."""

    entered: np.ndarray[Any, np.dtype[np.int64]]
    left: np.ndarray[Any, np.dtype[np.int64]]
    ahead: np.ndarray[Any, np.dtype[np.float64]]
    drift: np.ndarray[Any, np.dtype[np.float64]]


def simulated(seed: int, hosts: int, ranks: int, count: int, ahead: int = 5 * MS, pairs: bool = False) -> Job:
    """Ranks that enter up to 10 ms apart and leave within some us, every 20 ms; by pairs of neighbours if wanted."""
    random = np.random.default_rng(seed)
    offset, drift = random.uniform(-ahead, ahead, hosts), random.uniform(-50e-6, 50e-6, hosts)
    host = np.arange(ranks) * hosts // ranks
    entered, left = (np.full((count, hosts), NO_TIME) for _ in range(2))
    now = 0.0
    for row in range(count):
        first = int(random.integers(hosts - 1)) if pairs and hosts > 1 else 0
        used = [first, first + 1] if pairs and hosts > 1 else list(range(hosts))
        enters = now + random.uniform(0, 10 * MS * random.random() ** 2, ranks)
        leaves = enters[np.isin(host, used)].max() + random.uniform(0.1, 5) * MS + random.exponential(5 * US, ranks)
        for one in used:
            mine = host == one
            read = (times + offset[one] + drift[one] * times for times in (enters[mine].max(), leaves[mine].min()))
            entered[row, one], left[row, one] = (round(reading) for reading in read)
        now = leaves.max() + random.uniform(4, 36) * MS
    return Job(entered, left, offset, drift)


def intervals(job: Job, rate: float = HOSTS_DRIFT) -> tuple[HostLines, HostIntervals]:
    lines = lines_of_hosts(job.entered, job.left)
    came, went = lines.apply(job.entered), lines.apply(job.left)
    return lines, host_intervals(came, went, (float(np.nanmin(came)), float(np.nanmax(went))), rate)


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize(("hosts", "ranks"), [(2, 2), (2, 8), (8, 8), (4, 64), (8, 64)])
@pytest.mark.parametrize("count", [20, 100])
@pytest.mark.parametrize("seed", range(5))
def test_the_truth_is_within(seed: int, count: int, hosts: int, ranks: int, pairs: bool) -> None:
    job = simulated(seed, hosts, ranks, count, pairs=pairs)
    lines, found = intervals(job)
    assert not found.contradicting
    for host in range(1, hosts):
        assert found.known(host) == bool(np.any(np.isfinite(found.most[:, host])))
        if found.known(host):
            way = map_of_host(found, intervals(job, 0.0)[1], lines, host)
            at = np.linspace(*(lines.base + found.instants[[0, -1]]), 7)
            here, there = (at + job.ahead[one] + job.drift[one] * at for one in (host, 0))
            off = np.abs(way.apply(np.round(here).astype(np.int64)) - there)
            assert np.all(off <= way.stated_bound_ns)


def test_one_that_contradicts_is_named_also_around_several_hosts() -> None:
    job = simulated(3, 4, 4, 60)
    job.entered[41, 2] += 30 * MS
    job.left[41, 2] += 30 * MS
    _, found = intervals(job)
    assert 41 in [row for row, *_ in found.contradicting]
    assert all(2 in hosts for _, *hosts in found.contradicting)


def test_a_contradiction_around_three_hosts_is_found() -> None:
    """Each two of them agree with a constant, but those around do not add up to nothing."""
    at = np.arange(0, 90, 10) * MS
    entered = np.full((9, 3), NO_TIME)
    for row, now in enumerate(at.tolist()):
        one, other = row % 3, (row + 1) % 3
        entered[row, one], entered[row, other] = now, now + MS
    left = np.where(entered < NO_TIME, entered + 100 * US, NO_TIME)
    came, went = (np.where(column < NO_TIME, column, np.nan) for column in (entered, left))
    found = host_intervals(came, went, (0.0, 90.0 * MS))
    assert len(found.contradicting) == 3


def test_hosts_without_a_way_between_them_are_not_related() -> None:
    entered = np.array([[0, 5, np.nan], [30, 33, np.nan]])
    found = host_intervals(entered, entered + 10, (0.0, 43.0))
    assert found.known(1)
    assert not found.known(2)


@pytest.mark.parametrize(("hosts", "count"), [(64, 1000), (125, 200)])
def test_many_hosts_are_quick(hosts: int, count: int) -> None:
    random = np.random.default_rng(0)
    entered = np.arange(count)[:, None] * 20 * MS + random.integers(0, 10 * MS, (count, hosts))
    left = np.repeat(entered.max(axis=1, keepdims=True) + 100 * US, hosts, axis=1)
    began = time.process_time()
    lines = lines_of_hosts(entered, left)
    found = host_intervals(lines.apply(entered), lines.apply(left), (0.0, 20.0 * SECOND))
    assert not found.contradicting
    assert time.process_time() - began < GROWTH_S


# -- merges -----------------------------------------------------------------------------------------------------------


def recorded(
    folder: Path,
    ahead: Sequence[int],
    count: int = 60,
    *,
    drift: float = 0.0,
    step: int = 0,
    without: Sequence[int] = (),
    shuffled: bool = False,
    seq: bool = True,
    period: int = 0,
    kind: tuple[str, str] = ("allreduce", "AllReduce"),
    sizes: bool = False,
    groups: Sequence[Sequence[int]] = (),
    named: bool = True,
) -> list[Trace]:
    """A rank for each host, whose clock is ahead: it drifts, steps at half time, some collectives are not recorded.

    Steps are uneven, or equal if a period is given; each has its own size if wanted. All ranks are one group, or of
    those that are given; hosts are named or not.
    """
    random = np.random.default_rng(7)
    steps = np.arange(count) * period if period else np.cumsum(random.integers(4 * MS, 30 * MS, count))
    enters = steps[:, None] + random.integers(0, 3 * MS, (count, len(ahead)))
    leaves = enters.max(axis=1) + random.integers(100 * US, 2 * MS, count)
    if period:
        enters, leaves = enters[0] + steps[:, None], leaves[0] + steps
    traces = []
    for rank, offset in enumerate(ahead):
        events = []
        for n in range(count):
            if rank and n in without:
                continue
            ends = int(leaves[n]) + int(random.exponential(5 * US))
            here = (step if rank and n >= count // 2 else 0) + (drift * int(enters[n, rank]) if rank else 0)
            number = (n ^ 1) if shuffled and rank else n
            args = {"Collective name": kind[0], "In msg nelems": 64, "Out msg nelems": 64, "dtype": "Float"}
            group = next((its for its in groups if rank in its), range(len(ahead)))
            args |= {"Process Group Name": str(group[0]), "Process Group Ranks": str(list(group))}
            args |= ({"Seq": number} if seq else {}) | ({"In msg nelems": number} if sizes else {})
            event = {"ph": "X", "cat": "kernel", "name": f"ncclDevKernel_{kind[1]}(x)", "pid": 0, "tid": 20}
            start = (int(enters[n, rank]) + round(here)) / 1000
            events.append({**event, "ts": start, "dur": (ends - int(enters[n, rank])) / 1000, "args": args})
        info = {"backend": "nccl", "rank": rank, "world_size": len(ahead)}
        top: Json = {"schemaVersion": 1, "deviceProperties": [], "distributedInfo": info}
        top |= {"host_name": f"node{rank}"} if named else {}
        path = folder / f"rank{rank}.json"
        path.write_text(json.dumps({**top, "baseTimeNanoseconds": BASE + offset, "traceEvents": events}))
        traces.append(read(path))
    return traces


def moved(alignment: Alignment, index: int = 1) -> tuple[int, int | None]:
    line = alignment.receipt[index]
    return line.offset_ns, line.bound_ns


@pytest.mark.parametrize("ahead", [0, 3_700_000, -4_900_000, 300 * MS])
def test_two_hosts_are_placed_within_what_is_stated(ahead: int, tmp_path: Path) -> None:
    alignment = align(recorded(tmp_path, [0, ahead]))
    line = alignment.receipt[1]
    assert (line.verdict, line.two_hosts) == ("ok", False)
    assert "60 collectives of 1 group" in line.method
    assert line.bound_ns is not None
    assert abs(line.offset_ns - BASE) <= line.bound_ns < 2 * MS


def test_several_hosts_that_drift(tmp_path: Path) -> None:
    traces = recorded(tmp_path, [0, 2 * MS, -3 * MS], 300, drift=50e-6)
    alignment = align(traces)
    for index, trace in enumerate(traces[1:], 1):
        (way,) = alignment.maps[index].values()
        first = alignment.maps[0][0]
        assert way.bound_ns is not None
        assert way.bound_ns < 2 * MS
        for ts in (trace.slices.ts[0], trace.slices.ts[-1]):
            true = (int(ts)) / (1 + 50e-6)
            assert abs(way.at(int(ts)) - first.at(round(true))) <= way.bound_ns


@pytest.mark.parametrize("without", [[20], range(10), range(50, 60)])
def test_some_that_were_not_recorded_do_not_matter(without: Sequence[int], tmp_path: Path) -> None:
    offset, bound = moved(align(recorded(tmp_path, [0, 3_700_000], without=without)))
    assert bound is not None
    assert abs(offset - BASE) <= bound


@pytest.mark.parametrize("more", [{"step": 20 * MS}, {"shuffled": True}])
def test_what_no_offset_explains_is_refused_and_named(more: Json, tmp_path: Path) -> None:
    traces = recorded(tmp_path, [0, 3_700_000], **more)
    with pytest.raises(InconsistentClocks, match=BOTH_RANKS):
        align(traces)
    assert InconsistentClocks.exit_code == 4
    left = align(traces, policy=Policy(on_ambiguous="best"))
    assert left.receipt[1].two_hosts


@pytest.mark.parametrize("kind", [("broadcast", "Broadcast_RING_LL"), ("reduce", "Reduce_Sum_f32_RING_LL")])
def test_broadcasts_and_reduces_place_nothing(kind: tuple[str, str], tmp_path: Path) -> None:
    line = align(recorded(tmp_path, [0, MS], kind=kind)).receipt[1]
    assert (line.two_hosts, line.bound_ns) == (True, None)


def test_few_place_nothing(tmp_path: Path) -> None:
    for seq in (True, False):
        assert align(recorded(tmp_path, [0, 10 * US], 7, seq=seq)).receipt[1].two_hosts


@pytest.mark.parametrize("ahead", [0, 3_700_000, -4_900_000, 300 * MS])
@pytest.mark.parametrize("without", [(), range(3)])
def test_without_numbers_uneven_steps_tell(ahead: int, without: Sequence[int], tmp_path: Path) -> None:
    """Also where one recording lacks the first ones: no other shift lets all of them happen."""
    line = align(recorded(tmp_path, [0, ahead], seq=False, without=without)).receipt[1]
    assert line.verdict == "ok"
    assert f"{60 - len(without)} collectives of 1 group" in line.method
    assert line.bound_ns is not None
    assert abs(line.offset_ns - BASE) <= line.bound_ns < 2 * MS


@pytest.mark.parametrize("without", [(), range(3)])
@pytest.mark.parametrize(("ahead", "period", "placed"), [(4 * MS, 25, True), (4 * MS, 15, False), (14 * MS, 50, False)])
def test_without_numbers_equal_steps_are_told_by_the_wall_clocks(
    ahead: int, period: int, placed: bool, without: Sequence[int], tmp_path: Path
) -> None:
    """They are taken to agree to 10 ms: where a step is shorter than twice that, or they are farther apart, refused."""
    traces = recorded(tmp_path, [0, ahead], seq=False, period=period * MS, without=without)
    if not placed:
        with pytest.raises(AmbiguousAlignment, match="have no numbers") as refused:
            align(traces)
        assert refused.value.exit_code == 3
        assert align(traces, policy=Policy(on_ambiguous="best")).receipt[1].two_hosts
        return
    line = align(traces).receipt[1]
    assert (line.two_hosts, line.verdict) == (False, "assumed")
    assert line.bound_ns is not None
    assert abs(line.offset_ns - BASE) <= line.bound_ns < 2.1 * MS  # with the skew of both devices


@pytest.mark.parametrize(("period", "step"), [(0, 20 * MS), (50, 15 * MS), (50, -15 * MS), (200, 60 * MS)])
def test_without_numbers_a_clock_that_was_set_contradicts(period: int, step: int, tmp_path: Path) -> None:
    """By less than half a step, so that the wall clocks tell which collectives are one; or each is of another size."""
    traces = recorded(tmp_path, [0, MS], seq=False, period=period * MS, step=step, sizes=not period)
    with pytest.raises(InconsistentClocks, match=BOTH_RANKS.replace(r" number \d+", "")) as refused:
        align(traces)
    assert refused.value.exit_code == 4
    assert align(traces, policy=Policy(on_ambiguous="best")).receipt[1].two_hosts


@pytest.mark.parametrize("step", [30 * MS, 50 * MS])
def test_without_numbers_a_clock_that_was_set_by_more_is_refused(step: int, tmp_path: Path) -> None:
    """It may be that records are missing, since a step is 50 ms long."""
    traces = recorded(tmp_path, [0, MS], seq=False, period=50 * MS, step=step)
    with pytest.raises(UnverifiedAlignment) as refused:
        believed(align(traces), causality(traces, align(traces)))
    assert refused.value.exit_code == 3


def test_without_numbers_a_shuffled_order_is_refused(tmp_path: Path) -> None:
    """Records of one rank are of each other's collectives: it did not do the same in the same order."""
    with pytest.raises(UnverifiedAlignment, match="it is not certain which records are one collective") as refused:
        align(recorded(tmp_path, [0, MS], seq=False, shuffled=True, sizes=True))
    assert refused.value.exit_code == 3


@pytest.mark.parametrize("period", [0, 50])
def test_without_numbers_a_dropped_record_is_refused(period: int, tmp_path: Path) -> None:
    traces = recorded(tmp_path, [0, MS], seq=False, without=[30], period=period * MS)
    with pytest.raises(AlignmentError, match="their collectives have no numbers") as refused:
        align(traces)
    assert refused.value.exit_code == 3


def test_wall_clocks_do_not_tell_that_both_recordings_lack_steps(tmp_path: Path) -> None:
    """Wall clocks 50 ms apart look like recordings of which each lacks another step; nothing tells which it is."""
    traces = recorded(tmp_path, [0, 50 * MS], seq=False, period=50 * MS)
    assert align(traces, policy=Policy(on_ambiguous="best")).receipt[1].two_hosts


@pytest.mark.parametrize("without", [[20], [0, 59], [7, 8, 9]])
def test_without_numbers_one_that_was_not_recorded_places_nothing(without: Sequence[int], tmp_path: Path) -> None:
    for period in (0, 50 * MS):
        traces = recorded(tmp_path, [0, 3 * MS], seq=False, without=without, period=period)
        line = align(traces, policy=Policy(on_ambiguous="best")).receipt[1]
        assert line.two_hosts or abs(line.offset_ns - BASE) <= (line.bound_ns or 0)


@pytest.mark.parametrize("groups", [[[0, 1], [2, 3]], [[0], [1, 2, 3]], [[1], [2], [0, 3]]])
@pytest.mark.parametrize("first", range(4))
def test_hosts_that_share_nothing_with_the_first_one_are_placed_beside_each_other(
    groups: Sequence[Sequence[int]], first: int, tmp_path: Path
) -> None:
    """Whichever input comes first; how those of two groups are related is not known."""
    ahead = [0, 3 * MS, -2 * MS, 4 * MS]
    traces = recorded(tmp_path, ahead, groups=groups)
    order = [*range(first, 4), *range(first)]
    alignment = align([traces[rank] for rank in order])
    ways = dict(zip(order, (found[0] for found in alignment.maps), strict=True))
    names = dict(zip(order, alignment.apart, strict=True))
    for group in groups:
        assert len({names[rank] for rank in group}) == 1
        beside, *others = sorted(group, key=order.index)
        assert ways[beside].two_hosts == (first not in group)
        for rank in others:
            assert f"its wall clock and that of node{beside} are" in ways[rank].method
            assert ways[rank].two_hosts == (first not in group)
            bound = ways[rank].bound_in_step_ns
            assert bound is not None
            assert abs(ways[rank].offset_ns - (ways[beside].offset_ns)) <= bound < 2 * MS
    assert len(set(names.values())) == len(groups)
    checks = causality([traces[rank] for rank in order], alignment).checks
    assert [check.contradictions for check in checks if check.rule == Rule.COLLECTIVE] == [()]


def test_a_contradiction_leaves_other_hosts_where_they_are_placed(tmp_path: Path) -> None:
    """With `--on-ambiguous best`; else it is refused."""
    traces = recorded(tmp_path, [0, 3 * MS, -2 * MS, 4 * MS], groups=[[0, 1], [2, 3]])
    path = tmp_path / "rank3.json"
    document = json.loads(path.read_text())
    for event in document["traceEvents"]:
        event["args"]["Seq"] ^= 1
    path.write_text(json.dumps(document))
    traces[3] = read(path)
    with pytest.raises(InconsistentClocks, match=r"^rank2.json, rank3.json: "):
        align(traces)
    found = align(traces, policy=Policy(on_ambiguous="best")).receipt
    assert [line.two_hosts for line in found] == [False, False, True, True]
    assert abs(found[1].offset_ns - BASE) <= (found[1].bound_ns or 0)


def test_hosts_that_share_few_collectives_are_not_joined_by_these() -> None:
    part = np.repeat(
        np.array([[1, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 1, 1, 0, 0], [0, 0, 0, 1, 1]], bool), [8, 8, 7, 3], 0
    )
    assert [hosts.tolist() for hosts in _islands(part)] == [[0, 1], [2, 3]]
    assert [hosts.tolist() for hosts in _islands(np.append(part, part[16:17], 0))] == [[0, 1, 2, 3]]


def test_a_host_is_placed_beside_two_that_the_user_relates(tmp_path: Path) -> None:
    traces = recorded(tmp_path, [0, 3 * MS, -2 * MS])
    said = Constraints(anchors=(Anchor(TimePoint(0, 5 * MS), TimePoint(1, 5 * MS), 5 * US),))
    found = align(traces, constraints=said).receipt
    assert [line.two_hosts for line in found] == [False, False, False]
    assert "60 collectives of 1 group" in found[2].method
    assert found[2].bound_ns is not None
    assert abs(found[2].offset_ns - BASE) <= found[2].bound_ns < 2 * MS


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0), (2, 0, 1), (0, 2, 1)])
@pytest.mark.parametrize("off", [0, 50 * MS])
def test_an_anchor_of_two_hosts_is_used_and_checked_in_any_order(
    off: int, order: tuple[int, ...], tmp_path: Path
) -> None:
    """A right anchor is used besides the collectives; one that these contradict is used, with a warning."""
    every = recorded(tmp_path, [0, 3 * MS, -2 * MS])
    traces = [every[rank] for rank in order]
    points = (TimePoint(order.index(rank), at) for rank, at in ((1, 5 * MS), (2, 5 * MS + off)))
    alignment = align(traces, constraints=Constraints(anchors=(Anchor(*points, 5 * US),)))
    checks = causality(traces, alignment)
    lines = {line.rank: line for line in believed(alignment, checks, "fail").receipt}
    maps = {rank: alignment.maps[order.index(rank)][0] for rank in range(3)}
    one, other = (maps[rank].at(at) for rank, at in ((1, 5 * MS), (2, 5 * MS + off)))
    assert abs(one - other) <= 5 * US
    warned = [warning for line in lines.values() for warning in line.warnings]
    if off:
        assert any("60 of 60" in warning for warning in warned)
    else:
        assert not warned
        assert not any(line.two_hosts for line in lines.values())
        bound = lines[1].bound_ns, lines[2].bound_ns
        offs = (lines[rank].offset_ns - lines[0].offset_ns for rank in (1, 2))
        assert all(abs(away) <= (its or 0) + (lines[0].bound_ns or 0) for away, its in zip(offs, bound, strict=True))


def test_hosts_that_only_the_user_relates_are_moved_together(tmp_path: Path) -> None:
    """Without collectives in common, and whichever host is the first."""
    traces = recorded(tmp_path, [0, 3 * MS, -2 * MS], groups=[[0], [1], [2]])
    said = Constraints(anchors=(Anchor(TimePoint(1, 5 * MS), TimePoint(2, 7 * MS), 5 * US),))
    for policy in (Policy(), Policy(estimate=False)):
        alignment = align(traces, constraints=said, policy=policy)
        assert alignment.maps[1][0].at(5 * MS) == alignment.maps[2][0].at(7 * MS)
        assert [line.two_hosts for line in alignment.receipt] == [False, True, True]
        assert alignment.hosts[1] == alignment.hosts[2]


@pytest.mark.parametrize("related", [1, 2])
def test_a_host_is_placed_by_one_that_the_user_relates_to_the_first(related: int, tmp_path: Path) -> None:
    """It rests on the statement of the user, so its verdict is not better."""
    traces = recorded(tmp_path, [0, 3 * MS, -2 * MS], groups=[[0], [1, 2]])
    said = Constraints(anchors=(Anchor(TimePoint(0, 5 * MS), TimePoint(related, 5 * MS), 5 * US),))
    found = align(traces, constraints=said).receipt
    for line in found[1:]:
        assert (line.two_hosts, line.verdict) == (False, "assumed")
        assert abs(line.offset_ns - BASE) <= (line.bound_ns or 0)


def test_hosts_that_the_user_relates_stay_if_one_is_moved(tmp_path: Path) -> None:
    traces = recorded(tmp_path, [0, 3 * MS, -2 * MS])
    said = Constraints(anchors=(Anchor(TimePoint(1, 5 * MS), TimePoint(2, 5 * MS), 5 * US),))
    found = align(traces, constraints=replace(said, offsets={1: 3 * US}, offsets_within={1: 0})).receipt
    assert not any("collectives" in line.method for line in found)


@pytest.mark.parametrize("which", [0, 1])
def test_a_file_of_the_first_host_that_the_user_moves_places_nothing(which: int, tmp_path: Path) -> None:
    """The other one of this host still places the others."""
    traces = recorded(tmp_path, [0, 0, 3 * MS])
    path = tmp_path / "rank1.json"
    path.write_text(path.read_text().replace('"node1"', '"node0"'))
    found = align([traces[0], read(path), traces[2]], constraints=Constraints(offsets={which: 700 * US})).receipt
    assert "60 collectives" in found[2].method
    assert found[2].bound_ns is not None
    assert abs(found[2].offset_ns - BASE) <= found[2].bound_ns < 2 * MS


def test_a_recording_that_is_given_twice_counts_once(tmp_path: Path) -> None:
    recorded(tmp_path, [0, 3 * MS])
    first, second, again = tmp_path / "rank0.json", tmp_path / "rank1.json", tmp_path / "again.json.gz"
    again.write_bytes(gzip.compress(second.read_bytes()))
    for paths in ([first, second, again], [again, first, second]):
        said = CliRunner().invoke(cli.cli, ["align", *map(str, paths)]).stderr
        assert "the same recording, given twice: ok" in said
        assert "60 collectives of ranks 0 and 1 checked" in said
        assert "clocks of hosts may differ" not in said


def test_a_recording_that_is_given_twice_in_other_bytes_counts_once(tmp_path: Path) -> None:
    traces = recorded(tmp_path, [0, 3 * MS])
    again = tmp_path / "again.json"
    again.write_text(json.dumps({**json.loads((tmp_path / "rank1.json").read_text()), "extra": 1}))
    alignment = align([*traces, read(again)])
    assert [line.two_hosts for line in alignment.receipt] == [False, False, False]
    assert alignment.receipt[1].verdict == "ok"
    assert alignment.repeats == {2: 1}
    checked = causality([*traces, read(again)], alignment).describe()
    assert checked[0] == "causality: 60 collectives checked, all in order"


def test_hosts_that_no_input_names(tmp_path: Path) -> None:
    """They are called like their files."""
    traces = recorded(tmp_path, [0, 3 * MS], named=False)
    alignment = align(traces)
    assert alignment.receipt[1].verdict == "ok"
    assert "its wall clock and that of rank0.json are" in alignment.receipt[1].method
    assert [(one.host, one.other) for one in alignment.hosts_apart] == [("rank1.json", "rank0.json")]
    assert all("if all are of one host: --same-machine" in line.warnings[0] for line in alignment.receipt)


def test_recordings_at_other_times_may_be_of_another_run(tmp_path: Path) -> None:
    assert align(recorded(tmp_path, [0, 3600 * SECOND])).receipt[1].two_hosts


@pytest.mark.parametrize("odd", [0, 1, 2])
@pytest.mark.parametrize("seq", [True, False])
def test_a_host_with_a_wrong_wall_clock_does_not_unplace_the_others(odd: int, seq: bool, tmp_path: Path) -> None:
    ahead = [0, 3 * MS, -2 * MS]
    ahead[odd] += 5 * SECOND
    alignment = align(recorded(tmp_path, ahead, seq=seq), policy=Policy(on_ambiguous="best"))
    one, other = (rank for rank in range(3) if rank != odd)
    assert alignment.hosts[one] == alignment.hosts[other] != alignment.hosts[odd]
    lines = alignment.receipt
    apart = abs(lines[one].offset_ns - lines[other].offset_ns - (ahead[one] if odd != 0 else 0))
    assert apart < 2 * MS


def test_two_sets_of_recordings_at_two_times_are_two_islands(tmp_path: Path) -> None:
    found = align(recorded(tmp_path, [0, 3 * MS, 3600 * SECOND, 3600 * SECOND + 4 * MS]))
    assert [found.hosts[rank] for rank in range(4)] == ["node0", "node0", "node2", "node2"]
    assert [line.two_hosts for line in found.receipt] == [False, False, True, True]


def test_ranks_of_a_host_that_contradict_each_other_do_not_unplace_other_hosts(tmp_path: Path) -> None:
    traces = recorded(tmp_path, [0, 3 * MS, 0, 50 * MS])
    path = tmp_path / "rank3.json"
    path.write_text(path.read_text().replace('"node3"', '"node2"'))
    found = align([*traces[:3], read(path)]).receipt
    assert [line.verdict for line in found[:2]] == ["ok", "ok"]
    assert [line.two_hosts for line in found] == [False, False, True, True]


# -- recordings of gloo and NCCL, of one machine, and simulated jobs --------------------------------------------------


def recordings_apart(name: str, ahead: Sequence[int], folder: Path) -> list[Trace]:
    """A recording of one machine as that of several hosts, whose clocks are ahead by some us."""
    paths = [FOLDER / name / f"rank{rank}.json.gz" for rank in range(len(ahead))]
    return moved_apart(paths, [by * US for by in ahead], folder)[0]


def left_open(traces: Sequence[Trace]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """By how much the clock of each rank is ahead of that of each other one at most, ns, if none drifts."""
    columns: list[dict[Any, tuple[int, int]]] = []
    for trace in traces:
        seen: dict[Any, tuple[int, int]] = {}
        start = trace.slices.ts + trace.snapshots[0].other_ts - trace.snapshots[0].ts
        for row in np.argsort(start).tolist():
            name = trace.strings[trace.slices.name[row]]
            args = (
                trace.args.get(int(trace.slices.args_at[row]), int(trace.slices.args_len[row])) if name in GLOO else b""
            )
            if name in GLOO:
                key = (name, str(json.loads(args).get("Input Dims")))
                nth = sum(one[:2] == key for one in seen)
                seen[*key, nth] = (int(start[row]), int(start[row] + trace.slices.dur[row]))
        columns.append(seen)
    most = np.array([[min(a[key][1] - b[key][0] for key in a) for b in columns] for a in columns])
    np.fill_diagonal(most, 0)
    for by in range(len(most)):
        most = np.minimum(most, most[:, by, None] + most[by])
    return most


@pytest.mark.parametrize(
    ("name", "ahead", "count"),
    [
        ("gloo_mixed_4", [0, -2500, 4000, 900], 98),
        ("gloo_mixed_4", [0, 7000, -9000, 0], 98),
        ("gloo_async_2", [0, 3700], 80),
    ],
)
def test_recorded_ranks_are_within_what_their_collectives_leave_open(
    name: str, ahead: Sequence[int], count: int, tmp_path: Path
) -> None:
    traces = recordings_apart(name, ahead, tmp_path)
    alignment = align(traces)
    most = left_open(traces)
    for rank, line in enumerate(alignment.receipt[1:], 1):
        assert line.verdict == "ok"
        assert f"{count} collectives of 1 group" in line.method
        placed = BASE + ahead[rank] * US - line.offset_ns
        assert -most[0, rank] - US <= placed <= most[rank, 0] + US
        assert line.bound_ns is not None
        assert abs(line.offset_ns - BASE) <= line.bound_ns


def test_what_one_machine_recorded_is_placed_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As docs/alignment.md has it; kernels of old versions of torch name neither group nor number."""
    assert place_apart(*(str(FOLDER / "gloo_async_2" / f"rank{rank}.json.gz") for rank in (0, 1))) == 0
    assert "8.2 µs off, ok: " in capsys.readouterr().out
    recorded(tmp_path, [0, 0])
    paths = [tmp_path / f"rank{rank}.json" for rank in (0, 1)]
    for path in paths:
        document = json.loads(path.read_text())
        base = document.pop("baseTimeNanoseconds")
        for event in document["traceEvents"]:
            event |= {"ts": event["ts"] + base / US, "args": {}, "name": "ncclKernel_SendRecv_RING_SIMPLE(x)"}
        path.write_text(json.dumps(document))
    assert place_apart("--one-group", *map(str, paths)) == 0
    assert "then 60 collectives of 1 group" in capsys.readouterr().out


@pytest.mark.parametrize("numbered", [False, True])
@pytest.mark.parametrize(
    ("name", "ranks"),
    [("nccl_2", (0, 1)), *(("nccl_4", some) for count in (2, 3, 4) for some in combinations(range(4), count))],
)
def test_recorded_ranks_of_nccl_are_within_their_bounds(
    name: str, ranks: Sequence[int], numbered: bool, tmp_path: Path
) -> None:
    """Kernels of torch 2.11, by their order and with the numbers of later versions; the truth is known to be 0.

    The processes take turns of about 2.2 ms on one GPU, so the intervals are as wide as some turns.
    """
    paths = [FOLDER / name / f"rank{rank}.json.gz" for rank in ranks]
    ahead = [0, -2_500_000, 4_000_000, 900_000][: len(ranks)]
    traces, zeros = moved_apart(paths, ahead, tmp_path, numbered=numbered)
    alignment = align(traces)
    for trace, zero, maps, line in zip(traces, zeros, alignment.maps, alignment.receipt, strict=True):
        (way,) = maps.values()
        assert line.bound_ns is not None
        assert max(abs(way.at(ts) - ts - zero) for ts in trace.slices.ts[[0, -1]].tolist()) <= line.bound_ns
    assert {line.verdict for line in alignment.receipt[1:]} == {"ok" if numbered else "assumed"}


def test_the_interval_of_each_two_hosts_is_told(tmp_path: Path) -> None:
    """In the report, for people and in `clocks`; the truth is within, and no wider than what is stated of a host."""
    ahead = [0, -2500, 4000, 900]
    traces = recordings_apart("gloo_mixed_4", ahead, tmp_path)
    alignment = align(traces)
    document = report.document(traces, alignment, causality(traces, alignment))
    jsonschema.Draft202012Validator(load_schema(report.SCHEMA)).validate(document)
    assert len(document["hosts"]) == 6
    for one in document["hosts"]:
        host, other = (int(one[end].removeprefix("node")) for end in ("host", "other"))
        assert one["least_ns"] < (ahead[host] - ahead[other]) * US < one["most_ns"]
        assert one["most_ns"] - one["least_ns"] < 1200 * US
        assert one["collectives"] == 98
    assert "Host by host" in page(document)
    assert survey(traces).hosts == alignment.hosts_apart
    first, second, *_ = (one.describe() for one in alignment.hosts_apart)
    assert first.startswith("by 98 collectives of both, the wall clock of node0 is 2.")
    assert second.startswith("by 98 collectives of both, the wall clock of node2 is 3.")
    both = HostsApart("one", "other", -20 * US, 300 * US, 98).describe()
    assert "the wall clock of one is at most 20 µs behind and 300 µs ahead of that of other" in both


@pytest.mark.parametrize("name", ["gloo_broadcast_2", "gloo_reduce_2"])
def test_recorded_broadcasts_and_reduces_place_nothing(name: str, tmp_path: Path) -> None:
    line = align(recordings_apart(name, [0, 3700], tmp_path)).receipt[1]
    assert (line.two_hosts, line.bound_ns) == (True, None)


def test_calls_of_the_host_and_messages_of_gloo_place_nothing(tmp_path: Path) -> None:
    """They return, or end, before all are there: `c10d::*`, `nccl:*`, `record_param_comms`, gloo's send and receive."""
    recordings_apart("gloo_mixed_4", [0, 3700], tmp_path)
    paths = [tmp_path / f"rank{rank}.json" for rank in (0, 1)]
    for path in paths:
        document = json.loads(path.read_text())
        calls = [event for event in document["traceEvents"] if event["name"] not in GLOO]
        of_nccl = [{**event, "name": event["name"].replace("c10d::", "nccl:"), "tid": 1} for event in calls]
        of_params = [{**event, "name": "record_param_comms", "tid": 2} for event in calls if event["ph"] == "X"]
        document["traceEvents"] = calls + of_nccl + of_params
        path.write_text(json.dumps(document))
    line = align([read(path) for path in paths]).receipt[1]
    assert (line.two_hosts, line.bound_ns) == (True, None)


def test_simulated_jobs_are_within_their_bounds_or_refused() -> None:
    """As `python -m tests.benchmarks.alignment.hosts`, of fewer jobs."""
    for job in jobs(40):
        placed = placed_hosts(job.records, job.host_of, job.spans())
        assert all(error <= bound for error, bound in errors(job, placed).values()), job.name
        assert job.damage or len(placed.hosts) == len(job.ahead) - 1
        assert not placed.contradicting or job.damage in ("shuffled", "stepped clock")


@pytest.mark.parametrize("others", [(), (40 * MS,)])
def test_a_rough_offset_is_refined(others: tuple[int, ...], tmp_path: Path) -> None:
    """A host whose wall clock is too wrong to be placed is, once the user says roughly how far it is off."""
    traces = recorded(tmp_path, [0, 5_200 * MS, *others])
    rough = Constraints(offsets={1: -5_000 * MS}, offsets_within={1: 1_000 * MS})
    line = align(traces, constraints=rough).receipt[1]
    assert line.verdict == "assumed"
    assert "--offset" in line.method
    assert "60 collectives of 1 group" in line.method
    assert line.bound_ns is not None
    assert abs(line.offset_ns - BASE) <= line.bound_ns < 2 * MS


@pytest.mark.parametrize("others", [(), (40 * MS,)])
@pytest.mark.parametrize("drift", [0, 100_000])
def test_wall_clocks_are_said_to_differ_as_they_were_recorded(
    others: tuple[int, ...], drift: int, tmp_path: Path
) -> None:
    """Neither --offset nor --drift changes what is said of them."""
    traces = recorded(tmp_path, [0, 5_200 * MS, *others])
    drifts = {1: round(drift * 1e-9 / DRIFT_UNIT)} if drift else {}
    found = align(
        traces, constraints=Constraints(offsets={1: -5_000 * MS}, offsets_within={1: 1_000 * MS}, drifts=drifts)
    )
    assert found.hosts_apart
    for one in found.hosts_apart:
        ahead = {"node0": 0, "node1": 5_200 * MS, "node2": 40 * MS}
        assert one.least_ns <= ahead[one.host] - ahead[one.other] <= one.most_ns
    assert "are 5.2 s apart" in found.receipt[1].method


@pytest.mark.parametrize(("offset", "within"), [(-5_000 * MS, 100 * MS), (-5_200_100 * US, 100 * US)])
def test_an_offset_that_collectives_contradict_or_do_not_refine_stays(offset: int, within: int, tmp_path: Path) -> None:
    traces = recorded(tmp_path, [0, 5_200 * MS])
    said = Constraints(offsets={1: offset}, offsets_within={1: within})
    line = align(traces, constraints=said).receipt[1]
    assert (line.offset_ns, line.bound_ns, line.verdict) == (BASE + 5_200 * MS + offset, None, "assumed")


def test_what_the_user_places_stays_there(tmp_path: Path) -> None:
    line = align(recorded(tmp_path, [0, 3_700_000]), constraints=Constraints(offsets={1: 0})).receipt[1]
    assert line.offset_ns == BASE + 3_700_000
    assert line.verdict == "assumed"


@pytest.mark.parametrize("hosts", [12, 140])
def test_hosts_in_a_chain_are_apart_from_the_first_one(hosts: int) -> None:
    """Each host shares collectives with the next one only, and each lets 10 ns to either side."""
    entered, left = np.full((2, 2 * (hosts - 1), hosts), np.nan)
    for number in range(2 * (hosts - 1)):
        pair = [number // 2, number // 2 + 1]
        entered[number, pair] = 1000 * number
        left[number, pair] = 1000 * number + 10
    found = host_intervals(entered, left, (0.0, 2000.0 * hosts), 0.0)
    lines = HostLines(0, np.zeros(hosts, np.int64), np.zeros(hosts))
    apart = list(_apart(found, lines, np.arange(hosts), np.isfinite(entered)))
    of_first = [(other, least, most) for other, first, least, most, _ in apart if first == 0]
    assert of_first == [(host, -10 * host, 10 * host) for host in range(1, hosts)]


def test_the_clocks_of_all_hosts_are_not_looked_at_for_each_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four times as many hosts take four times as many steps from clock to clock."""
    steps, then = Counter[int](), ClockMap.then

    def counted(self: ClockMap, after: ClockMap) -> ClockMap:
        steps[hosts] += 1
        return then(self, after)

    monkeypatch.setattr(ClockMap, "then", counted)
    for hosts in (10, 40):
        traces = recorded(tmp_path, [20 * US * (n * 37 % 100) for n in range(hosts)], 12)
        assert {line.verdict for line in align(traces).receipt} == {"ok"}
    assert 0 < steps[40] < 5 * steps[10]


@pytest.mark.parametrize(
    ("least", "most", "said"),
    [
        (499_931_000, 500_071_000, "one is 499.93 ms to 500.07 ms ahead of that of two"),
        (-500_071_000, -499_931_000, "two is 499.93 ms to 500.07 ms ahead of that of one"),
        (3_600_001_000_000, 3_600_003_000_000, "one is 1 h 1 ms to 1 h 3 ms ahead of that of two"),
        (-20_000, 300_000, "one is at most 20 µs behind and 300 µs ahead of that of two"),
    ],
)
def test_the_ends_of_an_interval_differ(least: int, most: int, said: str) -> None:
    assert f"the wall clock of {said} " in HostsApart("one", "two", least, most, 60).describe()

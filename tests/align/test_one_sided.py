"""Operations of a job of which only one side waits: they narrow what collectives leave open, and never tell it alone.

Written by hand with the args that Kineto writes; two ranks on two hosts, so that the truth is known.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.align.test_ranks import job, kernel, matched
from traceconv.align import align
from traceconv.align.causality import causality
from traceconv.api import read
from traceconv.errors import InconsistentClocks, UnverifiedAlignment
from traceconv.model.stated_collectives import MESSAGES, Side, stated_collectives
from traceconv.model.trace import Trace

US, MS = 10**3, 10**6
BASE = 1_790_857_026_000_000_000
Json = dict[str, Any]
KERNELS = {
    "allreduce": "AllReduce_Sum_f32_RING_LL",
    "broadcast": "Broadcast_RING_LL",
    "reduce": "Reduce_Sum_f32_RING_LL",
    **dict.fromkeys(("scatter", "gather", "send", "recv"), "SendRecv"),
}
#: What rank 0 and rank 1 do, and which of them others wait for: the latter enters last, and leaves at once.
OPERATIONS = {
    "broadcast": (("broadcast", "broadcast"), 0),
    "scatter": (("scatter", "scatter"), 0),
    "reduce": (("reduce", "reduce"), 1),
    "gather": (("gather", "gather"), 1),
    "message": (("send", "recv"), 0),
    "message back": (("recv", "send"), 1),
}


def did(name: str, rank: int, at: int, dur: int, number: int, *, root: int = 0, seq: int | None = None) -> list[Json]:
    """The kernel of an operation of ranks 0 and 1, and the call that launched it."""
    group = {"Process Group Name": "0", "Process Group Ranks": "[0, 1]", "Group size": 2}
    args: Json = {"Collective name": name, "In msg nelems": 64, "Out msg nelems": 64, "dtype": "Float", **group}
    args |= {"External id": number, "Seq": number if seq is None else seq}
    ends = {"send": {"Dst Rank": 1 - rank}, "recv": {"Src Rank": 1 - rank}}.get(name, {})
    launched = {"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 7, "tid": 7, "ts": at / 1000 - 50}
    call = launched | {"dur": 8, "args": args | {"Rank": 1 - rank if name in MESSAGES else root}}
    run = kernel(at, dur, f"ncclDevKernel_{KERNELS[name]}(x)")
    return [call, run | {"args": run["args"] | args | ends}]


def mixed(names: Sequence[str], count: int = 40, *, early: int = 0, **more: Any) -> dict[int, list[Json]]:
    """All_reduces of 2 ms, and between them operations of which the one that waits leaves 20 us after the other came.

    Args:
        names: of OPERATIONS, in turn.
        count: how many.
        early: how long before that it leaves, ns: that cannot be.
        more: for all operations.
    """
    ranks: dict[int, list[Json]] = {0: [], 1: []}
    messages = 0
    for n in range(count if names else 0):
        called, first = OPERATIONS[names[n % len(names)]]
        messages += called[0] in MESSAGES
        for rank in ranks:
            at = n * 20 * MS + 10 * MS
            start, end = (at, at + 3 * MS) if rank == first else (at - 3 * MS, at + 20 * US - early)
            seq = messages if called[0] in MESSAGES else 2 * n + 2
            ranks[rank] += did(called[rank], rank, start, end - start, 2 * n + 2, seq=seq, **more)
    return ranks


def waits(count: int = 40) -> dict[int, list[Json]]:
    """All_reduces of 2 ms."""
    return {
        rank: [one for n in range(count) for one in did("allreduce", rank, n * 20 * MS, 2 * MS, 2 * n + 1)]
        for rank in (0, 1)
    }


def of_two_hosts(folder: Path, *ranks: dict[int, list[Json]], ahead: int = 0) -> list[Trace]:
    """Two ranks of two hosts, the clock of the second one ahead."""
    job(folder, {rank: [event for one in ranks for event in one[rank]] for rank in (0, 1)}, ahead={1: ahead})
    paths = [folder / f"rank{rank}.json" for rank in (0, 1)]
    paths[1].write_text(paths[1].read_text().replace("node7", "node8"))
    return [read(path) for path in paths]


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("ahead", [0, 3_700_000])
def test_alone_they_place_nothing(name: str, ahead: int, tmp_path: Path) -> None:
    alignment = align(of_two_hosts(tmp_path, mixed([name]), ahead=ahead))
    assert (alignment.receipt[1].two_hosts, alignment.receipt[1].bound_ns) == (True, None)


def test_both_directions_together_place_nothing_either(tmp_path: Path) -> None:
    line = align(of_two_hosts(tmp_path, mixed(["broadcast", "reduce"]))).receipt[1]
    assert (line.two_hosts, line.verdict) == (True, "assumed")


@pytest.mark.parametrize("names", [["broadcast", "reduce"], ["scatter", "gather"], ["message", "message back"]])
@pytest.mark.parametrize("ahead", [0, 3_700_000, -2 * MS])
def test_with_collectives_they_narrow_the_interval(names: list[str], ahead: int, tmp_path: Path) -> None:
    wide, narrow = (
        align(of_two_hosts(tmp_path, waits(), *more, ahead=ahead)).receipt[1] for more in ([], [mixed(names)])
    )
    assert wide.bound_ns is not None
    assert narrow.bound_ns is not None
    assert wide.bound_ns > 2 * MS
    assert narrow.bound_ns < 200 * US
    assert "40 collectives of 1 group" in narrow.method
    assert abs(narrow.offset_ns - BASE) <= narrow.bound_ns


@pytest.mark.parametrize("name", OPERATIONS)
def test_each_bounds_one_side(name: str, tmp_path: Path) -> None:
    """A clock of one host that is wrong in one direction, by less than the all_reduces tell, and in the other one."""
    for ahead in (MS, -MS):
        ranks = {rank: events + mixed([name])[rank] for rank, events in waits().items()}
        traces = job(tmp_path, ranks, ahead={1: ahead})
        (check,) = causality(traces, align(traces)).checks
        waiting = 1 - OPERATIONS[name][1]
        impossible = (ahead < 0) == (waiting == 1)
        assert (check.checked, check.after.count) == (80, 40 * impossible)


@pytest.mark.parametrize("name", OPERATIONS)
def test_one_that_contradicts_is_named(name: str, tmp_path: Path) -> None:
    traces = of_two_hosts(tmp_path, waits(), mixed([name], early=4 * MS))
    with pytest.raises(InconsistentClocks, match=KERNELS[OPERATIONS[name][0][0]].split("_")[0]):
        align(traces)


def test_alone_they_still_contradict_wall_clocks(tmp_path: Path) -> None:
    """As collectives do that place nothing: which of the clocks is wrong nobody knows."""
    traces = of_two_hosts(tmp_path, mixed(["broadcast"]), ahead=-5 * MS)
    (check,) = causality(traces, align(traces)).checks
    assert (check.after.count, str(check.verdict)) == (40, UnverifiedAlignment.verdict)


@pytest.mark.parametrize(
    ("changed", "more"),
    [
        ("the root is not listed", {"Rank": 5}),
        ("the root is not told", {"Rank": None}),
        ("its ranks are not in the order of their numbers", {"Process Group Ranks": "[1, 0]"}),
        ("another call", {"External id": 10**6}),
        ("the name is that of a part of something else", {"Collective name": "reduce_scatter"}),
        ("no number", {"Seq": None}),
    ],
)
def test_what_is_not_known_for_certain_does_not_count(changed: str, more: Json, tmp_path: Path) -> None:
    ranks = mixed(["broadcast"])
    for event in (event for events in ranks.values() for event in events):
        own = {"Rank", "External id"} & {*more}
        if event["cat"] == ("cpu_op" if own or "Ranks" in str(more) else "kernel"):
            event["args"] |= more
    traces = of_two_hosts(tmp_path, ranks)
    assert not causality(traces, align(traces)).checks


@pytest.mark.parametrize("cut", [slice(2, None), slice(None, 30, 2)])
def test_messages_count_only_if_all_are_recorded_from_the_first_on(cut: slice, tmp_path: Path) -> None:
    """A process numbers those to and from all others together: a number alone does not tell which message it is."""
    ranks = {rank: events[cut] for rank, events in mixed(["message"]).items()}
    traces = of_two_hosts(tmp_path, ranks)
    assert not causality(traces, align(traces)).checks


def test_messages_of_two_directions_have_numbers_of_their_own(tmp_path: Path) -> None:
    """One rank sends twice before it receives, the other one receives in between: numbers are not equal, order is."""
    orders = {0: ["send", "send", "recv", "recv"], 1: ["recv", "send", "recv", "send"]}
    ranks = {
        rank: [one for n, name in enumerate(order) for one in did(name, rank, n * MS, MS // 2, n + 1)]
        for rank, order in orders.items()
    }
    traces = job(tmp_path, ranks)
    told = [[(one.ends, one.seq) for one in stated_collectives(trace).each] for trace in traces]
    assert told == [
        [((0, 1), 1), ((0, 1), 2), ((1, 0), 1), ((1, 0), 2)],
        [((0, 1), 1), ((1, 0), 1), ((0, 1), 2), ((1, 0), 2)],
    ]
    found = matched(traces)
    assert (found.occurrences.count, found.one_sided.count) == (0, 4)
    assert set(found.one_sided.side.tolist()) == {Side.START, Side.END}


def test_the_root_is_a_rank_of_the_group(tmp_path: Path) -> None:
    """Of ranks 4 and 5 number 1 is rank 5."""
    events = did("broadcast", 1, MS, MS, 1, root=1)
    told = json.loads(json.dumps({5: events}).replace("[0, 1]", "[4, 5]"))
    (trace,) = job(tmp_path, {5: told["5"]}, world=8)
    (one,) = stated_collectives(trace).each
    assert (one.kind, one.ends, one.side) == ("broadcast", (5,), Side.START)

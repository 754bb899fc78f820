"""Simulated ranks of two hosts, written as Kineto does, in regimes in which they must not be placed wrongly."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from traceconv.align import align
from traceconv.align.constraints import NO_CONSTRAINTS, Constraints
from traceconv.align.geometry import F64
from traceconv.api import read
from traceconv.errors import AlignmentError

US, MS, SECOND = 10**3, 10**6, 10**9
_BASE = 1_790_857_026 * SECOND
_KINDS = (("allreduce", "AllReduce"), ("allgather", "AllGather"), ("reduce_scatter", "ReduceScatter"))


@dataclass(frozen=True, slots=True)
class HostClock:
    """The wall clock of a host.

    Attributes:
        ahead: how far it is ahead of the truth at the start, ns.
        drift: how much faster it runs, as a ratio.
        set_at, set_by: when it is set ahead, ns since the start, and by how much, ns.
        back_at: when it is set back by as much, ns since the start.
    """

    ahead: float = 0.0
    drift: float = 0.0
    set_at: float = np.inf
    set_by: float = 0.0
    back_at: float = np.inf

    def read(self, true: F64) -> F64:
        """Return its times since `_BASE` at times of the truth, ns."""
        return (
            self.ahead
            + (1 + self.drift) * true
            + np.where((true >= self.set_at) & (true < self.back_at), self.set_by, 0.0)
        )


@dataclass(frozen=True, slots=True)
class Rank:
    """What a rank did, in times of the truth, ns.

    Attributes:
        enters, leaves: the starts and ends of its collectives.
        place: the position of each in its step.
        first: the number of the first one.
    """

    enters: F64
    leaves: F64
    place: F64
    first: int = 0

    def cut(self, begin: int, end: int) -> Rank:
        """Return the collectives from one number to another one."""
        return Rank(self.enters[begin:end], self.leaves[begin:end], self.place[begin:end], begin)


@dataclass(frozen=True, slots=True)
class Script:
    """What all jobs of a script have in common.

    Attributes:
        steps: how many steps it has.
        pauses, lasting: between the collectives of a step, and how long each takes when all are there, ns.
        late, jitter: how late ranks come, and how much pauses vary, ns.
        paced: whether steps begin at given times, so that variations do not add up.
    """

    steps: int
    pauses: F64
    lasting: F64
    late: float
    jitter: float
    paced: bool

    def job(self, rng: np.random.Generator, rate: float = 0.0, given: F64 | None = None, size: int = 2) -> list[Rank]:
        """Return the ranks of a job, whose pauses are longer by a ratio, and by what its input determines, ns."""
        places = len(self.pauses)
        given = np.zeros(self.steps * places) if given is None else given
        enters, leaves = np.zeros((2, size, self.steps * places))
        ready, step = np.zeros(size), float((self.pauses + self.lasting).sum() + places * self.late) * (1 + rate)
        step += float(given.reshape(-1, places).sum(axis=1).max())
        for number in range(self.steps * places):
            turn, place = divmod(number, places)
            if self.paced and not place:
                ready = np.maximum(ready, turn * step)
            pause = self.pauses[place] * (1 + rate) + given[number] + abs(self.jitter * rng.standard_normal())
            enters[:, number] = ready + pause + self.late * rng.random(size)
            end = enters[:, number].max() + self.lasting[place] * (1 + 0.01 * rng.random())
            ready = leaves[:, number] = end + rng.exponential(5 * US, size)
        place = np.tile(np.arange(places, dtype=float), self.steps)
        return [Rank(enters[rank], leaves[rank], place) for rank in range(size)]


def script(rng: np.random.Generator) -> Script:
    """Return a random script."""
    places = int(rng.integers(1, 5))
    return Script(
        int(rng.integers(30, 80)),
        rng.uniform(3, 20, places) * MS,
        np.exp(rng.uniform(np.log(60), np.log(4000), places)) * US,
        float(np.exp(rng.uniform(np.log(10), np.log(3000)))) * US,
        float(np.exp(rng.uniform(np.log(20), np.log(2000)))) * US,
        bool(rng.integers(2)),
    )


@dataclass(frozen=True, slots=True)
class Recorded:
    """How the ranks are recorded.

    Attributes:
        ranks: what they did.
        clocks: the wall clocks of their hosts, one for each rank.
        skews: by how much the clock of each device is ahead of that of its host at the start, ns.
        faster: how much faster the clock of each device runs than that of its host, as a ratio.
        waits: whether each file ends with a wait for the device.
        seq: whether collectives have numbers.
        constraints: the options of the user.
        per_host: how many ranks each host has.
    """

    ranks: list[Rank]
    clocks: Sequence[HostClock]
    skews: Sequence[float] = (0.0, 0.0)
    faster: Sequence[float] = (0.0,) * 4
    waits: bool = False
    seq: bool = True
    constraints: Constraints = field(default_factory=lambda: NO_CONSTRAINTS)
    per_host: int = 1


@dataclass(frozen=True, slots=True)
class PlacedRank:
    """What becomes of the second host.

    Attributes:
        bound_ns: the stated bound, ns; None if it is refused or its bound is not known.
        error_ns: how far it is off at most, ns; 0 if it is refused.
        refused: whether the merge is.
    """

    bound_ns: float | None
    error_ns: float
    refused: bool = False

    @property
    def wrong(self) -> bool:
        """Whether it is placed outside of its bound."""
        return self.bound_ns is not None and self.error_ns > self.bound_ns


def placed(recorded: Recorded, rng: np.random.Generator) -> PlacedRank:
    """Merge the two ranks."""
    with tempfile.TemporaryDirectory() as folder:
        traces = [read(path) for path in written(recorded, Path(folder), rng)]
    try:
        found = align(traces, constraints=recorded.constraints)
    except AlignmentError:
        return PlacedRank(None, 0.0, refused=True)
    (way,) = found.maps[1].values()
    first, last = recorded.ranks[1].enters[0], recorded.ranks[1].leaves[-1]
    true = np.linspace(float(first), float(last), 50)
    here, there = (clock.read(true) for clock in (recorded.clocks[1], recorded.clocks[0]))
    off = way.apply(np.round(here).astype(np.int64)) - _BASE - there
    return PlacedRank(way.bound_ns, float(np.max(np.abs(off))))


def written(recorded: Recorded, folder: Path, rng: np.random.Generator) -> list[Path]:
    """Write the files of the ranks."""
    paths = [folder / f"rank{number}.json" for number in range(len(recorded.ranks))]
    for number, path in enumerate(paths):
        path.write_text(json.dumps(_document(recorded, number, rng)))
    return paths


def _document(recorded: Recorded, number: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return what Kineto writes of a rank."""
    rank, clock, size = recorded.ranks[number], recorded.clocks[number], len(recorded.ranks)
    shortest = rng.uniform(4, 30) * US
    latency = shortest + rng.exponential(20 * US, len(rank.enters)) * (rng.random(len(rank.enters)) < 0.8)
    launches = clock.read(rank.enters - latency)
    skew, faster = recorded.skews[number], recorded.faster[number]
    begins, ends = (clock.read(times) + skew + faster * times for times in (rank.enters, rank.leaves))
    events: list[dict[str, Any]] = []
    for row, place in enumerate(rank.place.astype(int).tolist()):
        name, kernel = _KINDS[place % len(_KINDS)]
        ids = {"correlation": row + 1, "External id": row + 1}
        call = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernelExC", "pid": 500, "tid": 500, "dur": 3.0}
        events.append({**call, "ts": round(float(launches[row]) / US, 3), "args": ids})
        args = {**ids, "stream": 20, "device": number, "Collective name": name, "In msg nelems": 1000 + place}
        args |= {"Out msg nelems": 1000, "Group size": size, "dtype": "Float", "Process Group Name": "0"}
        args |= {"Process Group Ranks": str([*range(size)])} | ({"Seq": rank.first + row} if recorded.seq else {})
        event = {"ph": "X", "cat": "kernel", "name": f"ncclDevKernel_{kernel}_Sum_f32_RING_LL(x)", "pid": 0, "tid": 20}
        times = float(begins[row]) / US, float(ends[row] - begins[row]) / US
        events.append({**event, "ts": round(times[0], 3), "dur": round(times[1], 3), "args": args})
    if recorded.waits:
        since, until = launches[-1] + 5 * US, clock.read(rank.leaves[-1:] + rng.uniform(2, 20) * US)[0]
        wait = {"ph": "X", "cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "pid": 500, "tid": 500}
        events.append({**wait, "ts": round(float(since) / US, 3), "dur": round(float(until - since) / US, 3)})
    return {
        "schemaVersion": 1,
        "deviceProperties": [],
        "distributedInfo": {"backend": "nccl", "rank": number, "world_size": size},
        "host_name": f"node{number // recorded.per_host}",
        "baseTimeNanoseconds": _BASE,
        "traceEvents": events,
    }


def _clocks(rng: np.random.Generator, most: float = 40e-6) -> tuple[HostClock, HostClock]:
    """Return two clocks up to 5 ms apart that drift by up to 40 ppm each, or by up to another ratio."""
    ahead, drift = rng.uniform(-5, 5) * MS, rng.uniform(-most, most, 2)
    return HostClock(0.0, float(drift[0])), HostClock(ahead, float(drift[1]))


def one_job(seed: int) -> PlacedRank:
    """Place two ranks of one job."""
    rng = np.random.default_rng([1, seed])
    return placed(Recorded(script(rng).job(rng), _clocks(rng), waits=bool(rng.integers(2))), rng)


def two_jobs(seed: int) -> PlacedRank:
    """Place a rank each of two jobs of one script, which began at about the same time."""
    rng = np.random.default_rng([2, seed])
    work = script(rng)
    work = replace(work, lasting=np.maximum(work.lasting, rng.uniform(0.5, 5) * MS))  # else the limits tell
    one, other = work.job(rng)[0], work.job(rng, rng.uniform(-60e-6, 60e-6))[1]
    return placed(Recorded([one, other], _clocks(rng)), rng)


def same_input(seed: int) -> PlacedRank:
    """Place a rank each of two jobs of one script with the same input, by which their steps vary together."""
    rng = np.random.default_rng([9, seed])
    work = script(rng)
    work = replace(work, lasting=np.maximum(work.lasting, rng.uniform(0.5, 5) * MS))
    given = rng.exponential(rng.uniform(0.5, 5) * MS, work.steps * len(work.pauses))
    one, other = work.job(rng, given=given)[0], work.job(rng, given=given)[1]
    return placed(Recorded([one, other], _clocks(rng)), rng)


def set_back(seed: int, *, busy: bool = False) -> PlacedRank:
    """Place two ranks of one job, of which the clock of one is set by 20 µs to 50 ms, and set back before the end.

    With `busy` a busy machine scatters the ends, the clock is set by up to 5 ms, and back after any four collectives or
    more.
    """
    rng = np.random.default_rng([13 if busy else 10, seed])
    ranks, (one, other) = script(rng).job(rng), _clocks(rng)
    by = float(np.exp(rng.uniform(np.log(20), np.log(5_000 if busy else 50_000)))) * US * rng.choice((-1, 1))
    count = len(ranks[1].leaves)
    if busy:
        ranks = _scattered(ranks, rng)
        first = int(rng.integers(count - 4))
        numbers = first, int(rng.integers(first + 4, count))
    else:
        numbers = int(count * rng.uniform(0.1, 0.5)), int(count * rng.uniform(0.55, 0.9))
    at, back = (float(ranks[1].leaves[number]) + 1 for number in numbers)
    return placed(Recorded(ranks, (one, replace(other, set_at=at, set_by=by, back_at=back))), rng)


def set_clock(seed: int, *, beside_end: bool = False) -> PlacedRank:
    """Place two ranks of one job, of which the clock of one is set by 20 µs to 50 ms between two collectives.

    With `beside_end` it is set by up to 5 ms, and no more than 6 collectives come before or after that.
    """
    rng = np.random.default_rng([12 if beside_end else 3, seed])
    ranks, (one, other) = script(rng).job(rng), _clocks(rng)
    by = float(np.exp(rng.uniform(np.log(20), np.log(5_000 if beside_end else 50_000)))) * US * rng.choice((-1, 1))
    last = len(ranks[1].leaves) - 2
    after = int(rng.choice((*range(6), *range(last - 5, last + 1))) if beside_end else rng.integers(last + 1))
    at = float(rng.uniform(ranks[1].leaves[after], ranks[1].enters[after + 1]))
    return placed(Recorded(ranks, (one, replace(other, set_at=at, set_by=by))), rng)


def small_step(seed: int) -> PlacedRank:
    """Place two ranks of one job, whose ends a busy machine scatters; a clock is set by 0.2 to 1.5 of the bound."""
    rng = np.random.default_rng([8, seed])
    ranks, (one, other) = script(rng).job(rng), _clocks(rng)
    ranks = _scattered(ranks, rng)
    as_it_is = placed(Recorded(ranks, (one, other)), np.random.default_rng(seed))
    if as_it_is.bound_ns is None:
        return as_it_is
    by = as_it_is.bound_ns * float(rng.uniform(0.2, 1.5)) * rng.choice((-1, 1))
    count = len(ranks[1].leaves)
    after = int(rng.integers(count // 10, count * 9 // 10))
    at = float(rng.uniform(ranks[1].leaves[after], ranks[1].enters[after + 1]))
    return placed(Recorded(ranks, (one, replace(other, set_at=at, set_by=by))), np.random.default_rng(seed))


def _scattered(ranks: Sequence[Rank], rng: np.random.Generator) -> list[Rank]:
    """Return ranks that leave up to some ms later."""
    late = float(np.exp(rng.uniform(np.log(20), np.log(1000)))) * US
    return [
        _later(rank, rng.exponential(late, len(rank.leaves)) * (rng.random(len(rank.leaves)) < 0.8)) for rank in ranks
    ]


def _later(rank: Rank, late: F64) -> Rank:
    """Return a rank that leaves later, ns, but before it enters the next collective."""
    return replace(rank, leaves=np.minimum(rank.leaves + late, np.append(rank.enters[1:] - 20 * US, np.inf)))


def steep(seed: int) -> PlacedRank:
    """Place two ranks of one job whose clocks drift by 110 to 600 ppm."""
    rng = np.random.default_rng([4, seed])
    ranks, (one, other) = script(rng).job(rng), _clocks(rng)
    drift = one.drift + float(rng.uniform(110e-6, 600e-6)) * rng.choice((-1, 1))
    return placed(Recorded(ranks, (one, replace(other, drift=drift))), rng)


def skewed(seed: int) -> PlacedRank:
    """Place two ranks of one job, the clocks of whose devices are up to 500 µs ahead or behind."""
    rng = np.random.default_rng([5, seed])
    ranks = script(rng).job(rng)
    one, other = (rng.uniform(-500, 500, 2) * US).tolist()
    return placed(Recorded(ranks, _clocks(rng), (one * rng.integers(2), other), waits=bool(rng.integers(2))), rng)


def ahead(seed: int) -> PlacedRank:
    """Place two ranks of one job, of which the clock of a device is 1 or 3 ms ahead, and drifts by up to 50 ppm."""
    rng = np.random.default_rng([7, seed])
    ranks = script(rng).job(rng)
    one, other = (1, 3)[seed % 2] * MS, float(rng.uniform(-50, 50)) * US
    faster = float(rng.uniform(-50e-6, 50e-6))
    first = bool(rng.integers(2))
    skews, rates = ((one, other), (faster, 0.0)) if first else ((other, one), (0.0, faster))
    return placed(Recorded(ranks, _clocks(rng, 20e-6), skews, rates, bool(rng.integers(2))), rng)


def cut(seed: int, *, rough: bool = False) -> PlacedRank:
    """Place two ranks without numbers that lack some steps each, and that the user leaves in place.

    With `rough` their wall clocks are seconds apart, collectives have numbers, and the user says by how much, to 1 s.
    """
    rng = np.random.default_rng([6, seed])
    ranks, (one, other) = script(rng).job(rng), _clocks(rng)
    count = len(ranks[0].enters)
    ranks = [
        ranks[0].cut(0, int(count * rng.uniform(0.7, 0.95))),
        ranks[1].cut(int(count * rng.uniform(0.05, 0.3)), count),
    ]
    if not rough:
        return placed(Recorded(ranks, (one, other), seq=False, constraints=Constraints(offsets={1: 0})), rng)
    other = replace(other, ahead=float(rng.uniform(2, 60)) * SECOND * rng.choice((-1, 1)))
    said = Constraints(offsets={1: -round(other.ahead / SECOND) * SECOND}, offsets_within={1: SECOND})
    return placed(Recorded(ranks, (one, other), constraints=said), rng)


#: The regimes by name.
TRIALS: dict[str, Callable[[int], PlacedRank]] = {
    "one job": one_job,
    "two jobs": two_jobs,
    "same input": same_input,
    "set back": set_back,
    "set back, busy": lambda seed: set_back(seed, busy=True),
    "set clock": set_clock,
    "beside an end": lambda seed: set_clock(seed, beside_end=True),
    "small step": small_step,
    "steep": steep,
    "skewed": skewed,
    "ahead": ahead,
    "cut": cut,
    "rough": lambda seed: cut(seed, rough=True),
}

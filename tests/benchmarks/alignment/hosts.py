"""Simulated jobs of ranks on several hosts: the truth is within the bound of each host that is placed.

    python -m tests.benchmarks.alignment.hosts [JOBS]

Jobs have 2, 8 or 64 ranks on up to 8 hosts, whose clocks are up to 5 ms off and drift by up to 50 ppm. Groups are of
all ranks, or those of a job that is parallel by data, tensor and pipeline; ranks enter up to 10 ms apart. Steps are
uneven or equal, collectives have numbers or not, and a quarter of the jobs is damaged. Intervals are compared to the
exact hull of all lines of up to 200 ppm between each two hosts, closed over all hosts, if SciPy is there. It prints
what was found, and exits with 1 if a host lies outside its bound, if fewer than 95 % of the undamaged jobs are placed,
if more than 5 % of the intervals are more than 1.1 times as wide as the hull (an interval is wider where a clock may
have been set), or if it takes too long.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import permutations

import numpy as np
from msgspec import structs

from traceconv.align.collective_hosts import PlacedHosts, columns_of_hosts, placed_hosts
from traceconv.align.collectives import Occurrences
from traceconv.align.geometry import F64
from traceconv.align.host_clocks import lines_of_hosts
from traceconv.model.columns import I64

US, MS, SECOND = 10**3, 10**6, 10**9
#: Unix time of the start of each job.
BASE = 1_790_857_026 * SECOND
#: What a job may have been through. A clock that was set is wrong wherever it is placed.
DAMAGES = ("missing head", "both lack some", "dropped", "shuffled", "stepped clock", "clocks far off")
_STEEPEST = 200e-6


@dataclass(frozen=True, slots=True)
class Job:
    """A simulated job.

    Attributes:
        seen: what its ranks recorded, on the clocks of their hosts.
        host_of: the host of each rank.
        ahead: how far ahead of the truth the clock of each host was at the start, ns.
        drift: how much faster it runs, as a ratio.
        step: how long a step took, ns.
        name: what it was.
    """

    records: Occurrences
    host_of: I64
    ahead: F64
    drift: F64
    step: float
    name: dict[str, str] = field(default_factory=dict)

    @property
    def damage(self) -> str:
        """What happened to it; "" for nothing."""
        return self.name["damage"]

    def reading(self, host: int, true: F64) -> I64:
        """Return what the clock of a host read at times of the truth since the start, ns."""
        found: I64 = BASE + np.round(self.ahead[host] + (1 + self.drift[host]) * true).astype(np.int64)
        return found

    def spans(self) -> I64:
        """Return the first and the last time that each host recorded, ns."""
        return np.array(
            [
                [ends(times[self.host_of[self.records.input] == host]) for host in range(len(self.ahead))]
                for ends, times in ((np.min, self.records.start), (np.max, self.records.end))
            ]
        )


def simulated(seed: int, ranks: int, hosts: int, count: int, named: Mapping[str, str]) -> Job:
    """Return a job.

    Args:
        seed: of all that is random.
        ranks: how many, a power of 2.
        hosts: how many; each has equally many ranks.
        count: how many steps.
        named: `groups` ("all", or "3D" for groups by data, tensor and pipeline), `steps` ("equal" or "uneven"), `seq`
            ("yes" or "no"), `damage` (of DAMAGES, or "").
    """
    random = np.random.default_rng(seed)
    host_of = np.arange(ranks) * hosts // ranks
    members = _groups(ranks) if named["groups"] == "3D" else {"all": [list(range(ranks))] * 1}
    plan = [kind for kind in members for _ in range(2)]
    skew, lasting = 10 * MS * random.random((len(plan), 1)) ** 2, random.uniform(0.1, 5, (count, len(plan))) * MS
    late = skew * random.random((count, len(plan), ranks))
    if named["steps"] == "equal":
        late, lasting = np.broadcast_to(late[0], late.shape), np.broadcast_to(lasting[0], lasting.shape)
    pause = random.uniform(20, 60, count) * MS if named["steps"] == "uneven" else np.full(count, 40.0 * MS)
    ready = np.zeros(ranks)
    columns: list[tuple[int, int, int, int, float, float]] = []
    counts: Counter[int] = Counter()
    group_of = {(kind, at): number for number, (kind, at) in enumerate((k, a) for k in members for a in range(ranks))}
    for step in range(count):
        ready += pause[step]
        for turn, kind in enumerate(plan):
            for at, group in enumerate(members[kind]):
                enters = ready[group] + late[step, turn, group]
                leaves = enters.max() + lasting[step, turn] + random.exponential(5 * US, len(group))
                number = group_of[kind, at]
                columns += [
                    (rank, number, turn, counts[number], float(start), float(end))
                    for rank, start, end in zip(group, enters, leaves, strict=True)
                ]
                counts[number] += 1
                ready[group] = leaves
    rank, group, what, seq, start, end = map(np.array, zip(*columns, strict=True))
    most = (300 if named["damage"] == "clocks far off" else 5) * MS
    ahead, drift = random.uniform(-most, most, hosts), random.uniform(-50e-6, 50e-6, hosts)
    start, end = (BASE + np.round(ahead[host_of[rank]] + (1 + drift[host_of[rank]]) * at) for at in (start, end))
    raw = np.arange(len(rank))
    seen = Occurrences(
        raw * 0,
        rank,
        raw,
        rank,
        start.astype(np.int64),
        end.astype(np.int64),
        raw * 0,
        group,
        raw * 0,
        what,
        seq,
        *[raw * 0] * 4,
    )
    job = Job(seen, host_of, ahead, drift, float(ready.max()) / count, dict(named))
    job = _damaged(job, random)
    return (
        job
        if named["seq"] == "yes"
        else replace(job, records=structs.replace(job.records, seq=raw[: len(job.records.row)] * 0 - 1))
    )


def _groups(ranks: int) -> dict[str, list[list[int]]]:
    """Return the groups of a job by tensor, data and pipeline, each about the third root of the ranks."""
    bits = ranks.bit_length() - 1
    tensor, data = 2 ** (bits // 3 or 1), 2 ** (bits - 2 * (bits // 3 or 1)) if bits > 1 else 1
    grid = np.arange(ranks).reshape(-1, data, tensor)
    kinds = {"tensor": grid, "data": grid.swapaxes(1, 2), "pipeline": grid.transpose(1, 2, 0)}
    return {kind: at.reshape(-1, at.shape[2]).tolist() for kind, at in kinds.items() if at.shape[2] > 1}


def _damaged(job: Job, random: np.random.Generator) -> Job:
    """Return a job of which one rank or host is not as it should be."""
    seen, damage = job.records, job.damage
    rank = int(random.integers(1, len(job.host_of)))
    mine = np.flatnonzero(seen.rank == rank)
    if damage == "missing head":
        return replace(job, records=seen.where(np.delete(np.arange(len(seen.row)), mine[: len(mine) // 5])))
    if damage == "both lack some":
        other = np.flatnonzero(seen.rank != rank)
        late = other[seen.start[other] > np.quantile(seen.start[other], 0.8)]
        return replace(job, records=seen.where(np.delete(np.arange(len(seen.row)), [*mine[: len(mine) // 5], *late])))
    if damage == "dropped":
        return replace(job, records=seen.where(np.delete(np.arange(len(seen.row)), mine[len(mine) // 2])))
    if damage == "shuffled":
        pairs = mine[: len(mine) // 2 * 2].reshape(-1, 2)
        seq, what = seen.seq.copy(), seen.what.copy()
        seq[pairs], what[pairs] = seq[pairs[:, ::-1]], what[pairs[:, ::-1]]
        return replace(job, records=structs.replace(seen, seq=seq, what=what))
    if damage == "stepped clock":
        there = job.host_of[seen.rank] == job.host_of[rank]
        later = there & (seen.start > np.median(seen.start))
        by = int(random.choice((-1, 1)) * random.uniform(8, 80) * MS)
        return replace(job, records=structs.replace(seen, start=seen.start + by * later, end=seen.end + by * later))
    return job


def jobs(count: int) -> Iterator[Job]:
    """Yield jobs of all kinds."""
    for seed in range(count):
        random = np.random.default_rng([7, seed])
        ranks = int(random.choice((2, 8, 64), p=(0.4, 0.4, 0.2)))
        hosts = int(random.choice([n for n in (1, 2, 4, 8) if n <= ranks]))
        yield simulated(
            seed,
            ranks,
            hosts,
            int(random.integers(8, 40 if ranks == 64 else 100)),
            {
                "groups": str(random.choice(("all", "3D"))),
                "steps": str(random.choice(("equal", "uneven"))),
                "seq": str(random.choice(("yes", "no"))),
                "damage": str(random.choice(DAMAGES)) if random.random() < 0.25 else "",
            },
        )


def errors(job: Job, placed: PlacedHosts) -> dict[int, tuple[float, int]]:
    """Return for each placed host how far it is off the first host of its island at most, and its bound, ns."""
    spans = job.spans()
    true = np.linspace(int(spans.min()) - BASE - 10 * MS, int(spans.max()) - BASE, 50)
    found = {}
    for host, one in placed.hosts.items():
        within = (spans[0, host] <= job.reading(host, true)) & (job.reading(host, true) <= spans[1, host])
        here, there = (job.reading(at, true[within]) for at in (host, one.beside))
        found[host] = (float(np.max(np.abs(one.clock_map.apply(here) - there))), one.clock_map.stated_bound_ns)
    return found


def widths(job: Job, placed: PlacedHosts) -> Iterator[tuple[float, float]]:
    """Yield for each host the width of its interval, and that of the exact hull, in the middle of the job, ns."""
    try:
        from scipy.optimize import linprog
    except ImportError:
        return
    (found,), seen = placed.intervals, placed.records
    assert seen is not None
    number = len(found.instants) // 2
    middle = float(found.instants[number])
    columns = columns_of_hosts(seen, job.host_of[seen.input], len(job.ahead))
    lines = lines_of_hosts(*columns)
    (entered, left), drift = (lines.apply(times) for times in columns), lines.drift
    hosts = entered.shape[1]
    most = np.full((hosts, hosts), np.inf)
    np.fill_diagonal(most, 0)
    for one, other in permutations(range(hosts), 2):
        both = ~np.isnan(entered[:, one] + entered[:, other])
        if not both.any():
            continue
        above = np.stack((np.ones(both.sum()), (entered[both, other] - middle) / SECOND), axis=1)
        below = np.stack((np.ones(both.sum()), (entered[both, one] - middle) / SECOND), axis=1)
        ends = np.concatenate((left[both, one] - entered[both, other], left[both, other] - entered[both, one]))
        turned = (drift[one] - drift[other]) * SECOND
        slopes = (-_STEEPEST * SECOND - turned, _STEEPEST * SECOND - turned)
        solved = linprog((-1, 0), np.concatenate((above, -below)), ends, bounds=((None, None), slopes))
        if solved.status == 0:
            most[one, other] = -solved.fun
    for by in range(hosts):
        most = np.minimum(most, most[:, by, None] + most[by])
    for host in range(1, hosts):
        yield float(found.most[number, host] - found.least[number, host]), float(most[host, 0] + most[0, host])


def main(count: int = 1000) -> int:
    """Simulate jobs; the result is the exit code."""
    bounds: list[float] = []
    ratios: list[float] = []
    off: list[float] = []
    outcomes: Counter[tuple[str, str]] = Counter()
    outside = step_off = several = 0
    for job in jobs(count):
        hosts = len(job.ahead)
        if hosts == 1:
            continue
        placed = placed_hosts(job.records, job.host_of, job.spans())
        several += 1
        found = errors(job, placed)
        outcome = "placed" if len(found) == hosts - 1 else "refused" if placed.unsettled else "not placed"
        outcome = "contradiction" if placed.contradicting else outcome
        outcome = f"refused: {placed.uneven[2].shown.value}" if placed.uneven else outcome
        outcomes[job.damage or f"undamaged, {job.name['steps']} steps, Seq: {job.name['seq']}", outcome] += 1
        outside += sum(error > bound for error, bound in found.values())
        step_off += sum(error > job.step / 2 for error, _ in found.values())
        bounds += [bound for _, bound in found.values()]
        off += [error for error, _ in found.values()]
        if len(found) == hosts - 1:
            ratios += [mine / hull for mine, hull in widths(job, placed)]
    right = sum(n for (name, outcome), n in outcomes.items() if name.startswith("undamaged") and outcome == "placed")
    undamaged = sum(n for (name, _), n in outcomes.items() if name.startswith("undamaged"))
    print(f"{count} jobs, {several} of several hosts; {len(bounds)} hosts placed beside the first ones")
    for (name, outcome), number in sorted(outcomes.items()):
        print(f"    {name}: {outcome}: {number}")
    print(f"outside their bound: {outside}; off by more than half a step: {step_off}")
    print(f"undamaged jobs placed: {100 * right / undamaged:.1f} % of {undamaged}")
    print(f"bound: ±{np.median(bounds) / US:.0f} µs in the middle, ±{max(bounds) / US:.0f} µs at most")
    print(f"error: {np.median(off) / US:.1f} µs in the middle, {max(off) / US:.0f} µs at most")
    wide = float(np.mean(np.array(ratios) > 1.1)) if ratios else 0.0
    print(f"interval beside the exact hull: {np.median(ratios or 0):.3f} in the middle, {wide:.1%} more than 1.1")
    slow = [f"{ranks} x {n}: {took:.1f} s" for ranks, n, most, took in _timed() if took > most]
    return int(bool(outside or step_off or slow or right < 0.95 * undamaged or wide > 0.05))


def _timed() -> Iterator[tuple[int, int, float, float]]:
    """Print and yield how long jobs with many collectives take: ranks, collectives, limit and seconds of one core."""
    for ranks, hosts, count, most in ((64, 8, 1000, 2.0), (64, 64, 1000, 2.5), (1000, 125, 200, 10.0)):
        for numbered in (True, False):
            random = np.random.default_rng(0)
            enters = np.cumsum(random.integers(15 * MS, 25 * MS, count))[:, None] + random.integers(
                0, 10 * MS, (count, ranks)
            )
            leaves = enters.max(axis=1, keepdims=True) + random.integers(100 * US, 5 * MS, (count, 1))
            seq, rank = (at.ravel() for at in np.indices((count, ranks)))
            nothing = seq * 0
            times = ((BASE + at).ravel() for at in (enters, np.broadcast_to(leaves, enters.shape)))
            seen = Occurrences(
                nothing,
                rank,
                nothing,
                rank,
                *times,
                nothing,
                nothing,
                nothing,
                nothing,
                seq if numbered else nothing - 1,
                *[nothing] * 4,
            )
            host_of = np.arange(ranks) * hosts // ranks
            spans = np.repeat([[BASE], [BASE + 20 * MS * count]], hosts, axis=1)
            began = time.process_time()
            placed = placed_hosts(seen, host_of, spans)
            took = time.process_time() - began
            assert len(placed.hosts) == hosts - 1
            how = "with numbers" if numbered else "by order"
            print(f"{ranks} ranks on {hosts} hosts, {count} collectives each, {how}: {took:.2f} s of a core")
            yield ranks, count, most, took


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))

"""1,000 simulated jobs of ranks on several hosts: the truth is within the bound of each host that is placed.

    python -m tests.benchmarks.alignment.hosts [JOBS]

Clocks are up to 5 ms apart and drift by up to 50 ppm; ranks enter up to 10 ms apart; half of the jobs have groups that
join two neighbouring hosts only. It prints what was found, and exits with 1 if a host lies outside its bound, or if
collectives of an undamaged job contradict each other.
"""

from __future__ import annotations

import sys

import numpy as np

from tests.align.test_collective_hosts import simulated
from traceconv.align.collective_hosts import RATE, map_of_host, shifts_of_hosts
from traceconv.align.host_intervals import NO_LIMIT, host_intervals

#: Ranks, and hosts that they are on.
_SHAPES = ((2, 2), (8, 2), (8, 8), (64, 4), (64, 8))


def main(jobs: int = 1000) -> int:
    """Simulate jobs; the result is the exit code."""
    bounds: list[int] = []
    outside = refused = 0
    for seed in range(jobs):
        ranks, hosts = _SHAPES[seed % len(_SHAPES)]
        job = simulated(seed, hosts, ranks, 60, pairs=seed % 2 == 1)
        part = job.entered < NO_LIMIT
        shifts = shifts_of_hosts(job.entered, job.left)
        came, went = (np.where(part, column - shifts, NO_LIMIT) for column in (job.entered, job.left))
        span = int(np.min(came)), int(np.max(went[part]))
        found = host_intervals(came, went, RATE, span)
        refused += bool(found.contradicting)
        for host in range(1, hosts):
            limits = found.of(host, 0)
            if limits is not None:
                way = map_of_host(found, limits, int(shifts[host]))
                at = np.linspace(*span, 50)
                here, there = (at + job.ahead[one] + job.drift[one] * at for one in (host, 0))
                off = np.abs(way.apply(np.round(here).astype(np.int64)) - there)
                bounds.append(way.stated_bound_ns)
                outside += bool(np.any(off > way.stated_bound_ns))
    middle, widest = np.median(bounds) / 1e3, max(bounds) / 1e3
    print(f"{jobs} jobs, {len(bounds)} hosts placed, {outside} outside their bound, {refused} jobs refused")
    print(f"bound: ±{middle:.0f} µs in the middle, ±{widest:.0f} µs at most")
    return int(bool(outside or refused))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))

"""What the clocks of very many ranks cost, by simulated jobs: `python -m tests.benchmarks.fleet [JOB ...]`.

Ranks come to each collective within 3 ms and leave it within some µs; the clock of each host but the first is off by up
to 5 ms. The records go to `placed_hosts`, as an alignment has them; no file is written or read.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Sequence

import numpy as np

from traceconv.align.collective_hosts import placed_hosts
from traceconv.align.collectives import Occurrences
from traceconv.model.stated_collectives import Side

_US, _MS, _S = 1000, 10**6, 10**9
_BASE_NS = 1_790_857_026 * _S
JOBS = ("1000x200x125", "4000x100x500", "10000x200x1250", "1000x5000x125")


def measured(job: str) -> str:
    """Return the row of a job: its CPU, its memory, and how the found offsets and bounds are."""
    ranks, collectives, hosts = map(int, job.split("x"))
    rng = np.random.default_rng(1)
    shape = ranks, collectives
    came = np.cumsum(rng.integers(6 * _MS, 12 * _MS, collectives)) + _S + rng.integers(0, 3 * _MS, shape)
    left = came.max(axis=0) + rng.integers(50 * _US, 2 * _MS, collectives) + rng.exponential(5 * _US, shape).astype(int)
    host_of = np.arange(ranks) % hosts
    off = rng.integers(-5 * _MS, 5 * _MS, hosts)
    off[0] = 0
    start, end = ((times + off[host_of][:, None] + _BASE_NS).reshape(-1) for times in (came, left))
    zero, rank, seq = np.zeros(len(start), np.int64), np.repeat(np.arange(ranks), collectives), np.arange(collectives)
    seq = np.tile(seq, ranks)
    where = zero, rank, seq, rank, start, end, zero + 20 * _US, zero, zero, zero, seq, zero + Side.BOTH
    spans = np.stack([extreme.reshape(shape) for extreme in (start, end)])
    first, last = np.full(hosts, start.max()), np.full(hosts, start.min())
    np.minimum.at(first, host_of, spans[0].min(axis=1))
    np.maximum.at(last, host_of, spans[1].max(axis=1))
    began = time.process_time()
    placed = placed_hosts(Occurrences(*where, zero, zero, zero), host_of, np.stack((first, last))).hosts
    cpu, peak = time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    errors = np.array([abs(host.clock_map.offset_ns + off[number]) for number, host in placed.items()])
    bounds = np.array([host.clock_map.stated_bound_ns for host in placed.values()])
    outside, us = int(np.sum(errors > bounds)), (float(np.median(values)) / _US for values in (bounds, errors))
    told = " | ".join(f"{value:.1f}" for value in us)
    return f"| {job} | {cpu:.1f} | {peak} | {len(placed)} of {hosts - 1} | {told} | {outside} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure each job in a process of its own, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.fleet", description=__doc__.split("\n")[0])
    parser.add_argument("jobs", nargs="*", metavar="JOB", help=f"RANKSxCOLLECTIVESxHOSTS; by default {', '.join(JOBS)}")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    if args.here:
        print(*map(measured, args.jobs), sep="\n")
        return
    print("| job | CPU s | peak MB | hosts placed | bound, median µs | error, median µs | outside |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for job in args.jobs or JOBS:
        subprocess.run([sys.executable, "-m", "tests.benchmarks.fleet", "--here", job], check=True)


if __name__ == "__main__":
    main()

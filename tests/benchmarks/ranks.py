"""Who came last, told of simulated jobs whose truth is known: `python -m tests.benchmarks.ranks [--jobs N]`.

Each job is written as Kineto files, one for each rank, and read by `traceconv.report`. Ranks come to each collective by
a skew that is uniform, kernels leave it within some µs, and the clock of each rank is off by a constant. What is named
is compared with who came last by true time; beside it is what the rank with the shortest duration would have told,
which needs no clock.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import traceconv

BASE_NS = 1_790_857_026_000_000_000
_US, _MS = 1000, 1_000_000
_NAME = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


@dataclass(frozen=True, slots=True)
class Scene:
    """A kind of job.

    Attributes:
        ranks: how many.
        collectives: how many each of them takes part in.
        skew_ns: by how much ranks come apart at most.
        clock_ns: by how much the clock of a rank is off at most; 20 µs is what Kineto states.
        hosts: how many; ranks are dealt out in turn.
        host_ns: by how much the clock of each host but the first is off at most, too.
        stated_ns: within what the user states offsets of hosts to be, which are 0; None if the user says nothing.
        device_ns: by how much the clock of each device is off that of its host at most, as launches show; 0 for no
            launches.
    """

    ranks: int
    collectives: int
    skew_ns: int
    clock_ns: int
    hosts: int = 1
    host_ns: int = 0
    stated_ns: int | None = None
    device_ns: int = 0


@dataclass(frozen=True, slots=True)
class Job:
    """A job that was written.

    Attributes:
        inputs: its files, with what the user states of them.
        last: for each collective by its number who came last in truth.
        shortest: of how many collectives that is the rank with the shortest duration.
    """

    inputs: list[Path | traceconv.Input]
    last: list[int]
    shortest: int


@dataclass(frozen=True, slots=True)
class Judged:
    """How many collectives were matched, how many of them name who came last, and of how many that is true.

    Attributes:
        collectives: that were matched.
        named: of these, how many name who came last.
        right: of these, how many are true.
        shortest: of all, in how many the rank with the shortest duration came last.
    """

    collectives: int = 0
    named: int = 0
    right: int = 0
    shortest: int = 0

    def __add__(self, other: Judged) -> Judged:
        """Return the sums."""
        return Judged(
            self.collectives + other.collectives,
            self.named + other.named,
            self.right + other.right,
            self.shortest + other.shortest,
        )


def write_job(folder: Path, scene: Scene, seed: int) -> Job:
    """Write the files of a job to a folder."""
    rng = np.random.default_rng(seed)
    shape = (scene.collectives, scene.ranks)
    begin = np.cumsum(rng.integers(2 * scene.skew_ns, 4 * scene.skew_ns, scene.collectives)) + 10**9
    came = begin[:, None] + rng.integers(0, scene.skew_ns + 1, shape)
    done = came.max(axis=1) + rng.integers(50 * _US, 2 * _MS, scene.collectives)
    left = done[:, None] + rng.exponential(5 * _US, shape).astype(np.int64)
    off = rng.integers(-scene.clock_ns, scene.clock_ns + 1, scene.ranks)
    of_host = rng.integers(-scene.host_ns, scene.host_ns + 1, scene.hosts)
    of_host[0] = 0
    off += of_host[np.arange(scene.ranks) % scene.hosts]
    host_off = off.copy()
    if scene.device_ns:
        off += rng.integers(-scene.device_ns, scene.device_ns + 1, scene.ranks)
    launched = came - rng.integers(5 * _US, 50 * _US, shape)
    members = str(list(range(scene.ranks)))
    inputs: list[Path | traceconv.Input] = []
    for rank in range(scene.ranks):
        events = [
            {
                "ph": "X",
                "cat": "kernel",
                "name": _NAME,
                "pid": 0,
                "tid": 20,
                "ts": int(came[n, rank] + off[rank]) / 1000,
                "dur": int(left[n, rank] - came[n, rank]) / 1000,
                "args": {"device": 0, "Collective name": "allreduce", "Process Group Ranks": members, "Seq": n}
                | ({"correlation": n + 1} if scene.device_ns else {}),
            }
            for n in range(scene.collectives)
        ]
        events += [
            {
                "ph": "X",
                "cat": "cuda_runtime",
                "name": "cudaLaunchKernel",
                "pid": 9,
                "tid": 9,
                "ts": int(launched[n, rank] + host_off[rank]) / 1000,
                "dur": 3,
                "args": {"correlation": n + 1},
            }
            for n in range(scene.collectives if scene.device_ns else 0)
        ]
        info = {"backend": "nccl", "rank": rank, "world_size": scene.ranks}
        top = {"schemaVersion": 1, "deviceProperties": [], "distributedInfo": info}
        top |= {"host_name": f"node{rank % scene.hosts}", "baseTimeNanoseconds": BASE_NS}
        path = folder / f"rank{rank}.json"
        path.write_text(json.dumps(top | {"traceEvents": events}))
        within = scene.stated_ns if rank % scene.hosts else None
        inputs.append(path if within is None else traceconv.Input(path, offset_ns=0, offset_within_ns=within))
    last = came.argmax(axis=1)
    return Job(inputs, last.tolist(), int(np.sum((left - came).argmin(axis=1) == last)))


def judged(job: Job) -> Judged:
    """Return what the report says of a job, beside its truth."""
    policy = traceconv.Policy(on_ambiguous="best")  # clocks of hosts that contradict collectives name nobody
    sections = traceconv.report(job.inputs, traceconv.Questions(sections=("ranks",)), policy=policy)
    rows = next(section for section in sections if section.name == "collectives").records()
    named = [row for row in rows if row["last_rank"] is not None]
    right = sum(row["last_rank"] == job.last[row["seq"]] for row in named)
    return Judged(len(rows), len(named), right, job.shortest)


_HOST = Scene(ranks=8, collectives=200, skew_ns=3 * _MS, clock_ns=20 * _US)
SCENES = {
    "8 ranks of a host, skew up to 3 ms": _HOST,
    "8 ranks of a host, skew up to 300 µs": replace(_HOST, skew_ns=300 * _US),
    "8 ranks of a host, skew up to 50 µs": replace(_HOST, skew_ns=50 * _US),
    "64 ranks of a host, skew up to 3 ms": replace(_HOST, ranks=64),
    "the same 8, clocks twice as wrong as stated": replace(_HOST, clock_ns=40 * _US),
    "the same 8 on 2 hosts, related by the user within 200 µs": replace(
        _HOST, hosts=2, host_ns=200 * _US, stated_ns=200 * _US
    ),
    "the same 8 on 8 hosts, up to 5 ms apart, related by nobody": replace(_HOST, hosts=8, host_ns=5 * _MS),
    "8 on 8 hosts with devices up to 500 µs off": replace(_HOST, hosts=8, host_ns=5 * _MS, device_ns=500 * _US),
    "8 on 4 hosts with devices up to 500 µs off": replace(_HOST, hosts=4, host_ns=5 * _MS, device_ns=500 * _US),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate, read, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.ranks", description=__doc__.split("\n")[0])
    parser.add_argument("--jobs", type=int, default=20, help="how many of each kind")
    args = parser.parse_args(arguments)
    print(
        "| jobs | collectives | last is named | of these right | shortest duration came last |\n|---|---|---|---|---|"
    )
    for name, scene in SCENES.items():
        found = Judged()
        for seed in range(args.jobs):
            with tempfile.TemporaryDirectory() as folder:
                found += judged(write_job(Path(folder), scene, seed))
        print(
            f"| {name} | {found.collectives} | {_share(found.named, found.collectives)} "
            f"| {_share(found.right, found.named)} | {_share(found.shortest, found.collectives)} |"
        )


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


if __name__ == "__main__":
    main()

"""Databases of nvprof of any size, whose conversion is compared with the way of nvprof2json."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.benchmarks.frame import Contestant, Race, Work, Wrong, faster, script, traceconv
from tests.benchmarks.judge import judge
from tests.benchmarks.to_pftrace import OURS
from tests.make_nvprof import ASSUMED, EPOCH, PID, THREAD, Profile

PEER = "row by row"

_KERNELS = 60
_STREAMS = (7, 7, 7, 13)
_RUNTIME = ("cbid", "start", "end", "processId", "threadId", "correlationId", "returnValue")
_KERNEL = (
    *("registersPerThread", "start", "end", "completed", "deviceId", "contextId", "streamId"),
    *("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "staticSharedMemory", "dynamicSharedMemory"),
    *("correlationId", "gridId", "name", "queued", "submitted", "launchType"),
)


def generate(path: Path, count: int, *, seed: int = 1) -> None:
    """Write a database with `count` launches and their kernels, the same for the same seed."""
    path.unlink(missing_ok=True)
    profile = Profile(path)
    profile.machine()
    profile.add("STREAM", contextId=1, streamId=20, flag=2)
    launches = list(_launches(profile, count, random.Random(seed)))
    profile.bulk("RUNTIME", _RUNTIME, (launch for launch, _ in launches))
    profile.bulk("CONCURRENT_KERNEL", _KERNEL, (kernel for _, kernel in launches))
    profile.close()


def _launches(profile: Profile, count: int, rng: random.Random) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The rows of a call and its kernel."""
    kinds = [_kind(profile, number, rng) for number in range(_KERNELS)]
    free = dict.fromkeys(_STREAMS, 0)
    now = EPOCH
    for number in range(1, count + 1):
        name, registers, shared, block, grids, typical_ns = kinds[min(int(rng.expovariate(0.06)), _KERNELS - 1)]
        took = rng.randrange(2_500, 9_000)
        launch = (ASSUMED["cbid cudaLaunchKernel"], now, now + took, PID, THREAD, number, 0)
        stream = _STREAMS[number % len(_STREAMS)]
        start = max(now + took + rng.randrange(1_000, 3_000), free[stream] + 800)
        end = free[stream] = start + round(typical_ns * rng.uniform(0.9, 1.3))
        grid = rng.choice(grids)
        where = (start, end, end, 0, 1, stream)
        yield launch, (registers, *where, grid, 1, 1, block, 1, 1, 0, shared, number, number, name, 0, 0, 0)
        now += took + rng.randrange(500, 4_000)


def _kind(profile: Profile, number: int, rng: random.Random) -> tuple[int, int, int, int, list[int], int]:
    inner = f"elementwise_{number}"
    mangled = f"_ZN2at6native{len(inner)}{inner}IfLi4EEEviPT_S3_"
    grids = [rng.randrange(1, 4000) for _ in range(12)]
    block = rng.choice((128, 256, 512))
    registers, shared = rng.randrange(16, 128), rng.choice((0, 1024, 8192))
    return profile.text(mangled), registers, shared, block, grids, rng.randrange(1_500, 9_000)


def _prepare(folder: Path, count: int) -> Race:
    source, output, peers = folder / "profile.nvvp", folder / "nvprof.pftrace", folder / "rows.json"
    generate(source, count)
    contestants = {
        PEER: Contestant(script("row_by_row", source, peers), peers, slow=count > 300_000),
        OURS: Contestant(traceconv("convert", source, "-o", output), output),
    }
    inputs = f"{count:,} kernels and as many calls, {source.stat().st_size / 1e6:.1f} MB"
    return Race(contestants, inputs, verify=partial(_verify, output, count))


def _verify(output: Path, count: int) -> list[str]:
    seen = judge(output)
    if (seen.slices, seen.flows) != (2 * count, count):
        raise Wrong(f"{output.name} shows {seen}, the input has {count} kernels, each launched by a call")
    return [f"{output.name}: {output.stat().st_size / 1e6:.1f} MB, {seen}"]


NVPROF = Work(
    name="nvprof",
    title="nvprof database to pftrace",
    goals=(faster(5, OURS, PEER),),
    events=1_000_000,
    small=100_000,
    prepare=_prepare,
)

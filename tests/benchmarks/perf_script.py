"""Text of `perf script` of any length, and what its conversion is compared with.

Samples of a few threads with call stacks of about ten frames: calls that most samples share, an innermost function
that is hit at many addresses, now and then addresses without a symbol. The lines are those of perf 6.1 as it
prints them without options: Perfetto does not know a text with a header or with nanoseconds.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests import oracle
from tests.benchmarks.frame import Contestant, NotMeasured, Race, Work, Wrong, faster, traceconv
from tests.benchmarks.judge import load_command
from tests.benchmarks.to_pftrace import OURS

PEER = "trace processor (WebAssembly)"

_START_NS = 2674_579460047
_PERIOD_NS = 2_004_008
_LIBRARIES = (
    "/usr/lib/x86_64-linux-gnu/libc.so.6",
    "/opt/python/lib/libpython3.11.so.1.0",
    "/opt/python/lib/python3.11/site-packages/torch/lib/libtorch_cpu.so",
    "[kernel.kallsyms]",
)
_WORDS = ("at::native", "mkldnn", "PyEval", "vectorized_loop", "parallel_for", "gemm", "im2col", "copy", "alloc", "sys")


def generate(path: Path, count: int, *, seed: int = 1) -> None:
    """Write a text with `count` samples, the same for the same seed."""
    rng = random.Random(seed)
    stacks = _call_paths(rng)
    threads = [("python", 18571), ("python", 18582), ("pt_autograd_0", 18590), ("python", 18591)]
    now = _START_NS
    with path.open("w") as file:
        for _ in range(count):
            comm, tid = threads[min(int(rng.expovariate(1)), 3)]
            seconds, rest = divmod(now, 10**9)
            file.write(
                f"{comm} {tid} [{rng.randrange(2):03}] {seconds:5}.{rest // 1000:06}:    {_PERIOD_NS} cpu-clock: \n"
            )
            hot, outer = stacks[min(int(rng.expovariate(0.004)), len(stacks) - 1)]
            address, symbol, library, size = hot
            offset = rng.randrange(0, size, 4)  # instructions are about that long
            file.write(f"\t{address + offset:16x} {symbol}+{offset:#x} ({library})\n")
            if not rng.randrange(8):
                file.write(f"\t{0x7FA655F5CE48 + 16 * rng.randrange(200):16x} [unknown] ([unknown])\n")
            file.write(outer)
            now += _PERIOD_NS + rng.randrange(-40_000, 40_000)


def _call_paths(rng: random.Random) -> list[tuple[tuple[int, str, str, int], str]]:
    """Innermost functions, each with the lines of its callers and the blank line behind them."""
    functions = list(_functions(rng))
    roots = [_line(*function, rng) for function in functions[:8]]
    paths = []
    for _ in range(1500):
        depth = min(3 + int(rng.expovariate(0.25)), 60)
        middle = [_line(*functions[min(int(rng.expovariate(0.01)), 799)], rng) for _ in range(depth)]
        root = rng.randrange(4)
        paths.append((rng.choice(functions), "".join([*middle, roots[root], roots[root + 4], "\n"])))
    return paths


def _functions(rng: random.Random) -> Iterator[tuple[int, str, str, int]]:
    for number in range(800):
        library = rng.choice(_LIBRARIES)
        symbol = "_".join(rng.choice(_WORDS) for _ in range(rng.randrange(1, 5))) + f"_{number}"
        start = 0xFFFFFFFF81000000 if library.startswith("[") else 0x10000
        yield start + number * 0x1000, symbol, library, rng.choice((16, 64, 400, 2000))


def _line(address: int, symbol: str, library: str, size: int, rng: random.Random) -> str:
    offset = rng.randrange(0, size, 4)
    return f"\t{address + offset:16x} {symbol}+{offset:#x} ({library})\n"


def _prepare(folder: Path, count: int) -> Race:
    source, output = folder / "perf.txt", folder / "perf.pftrace"
    generate(source, count)
    contestants = {OURS: Contestant(traceconv("convert", source, "-o", output), output)}
    absent = {}
    try:
        contestants[PEER] = Contestant(load_command(source))
    except NotMeasured as missing:
        absent[PEER] = str(missing)
    inputs = f"{count:,} samples, {source.stat().st_size / 1e6:.1f} MB"
    return Race(contestants, inputs, absent=absent, verify=partial(_verify, source, output, count))


def _verify(source: Path, output: Path, count: int) -> list[str]:
    remarks = []
    for path, table in ((output, "perf_sample"), (source, "cpu_profile_stack_sample")):
        try:
            with oracle.open_trace(path) as processor:
                (row,) = oracle.rows(processor, f"select count() as samples from {table}")
        except oracle.OracleMissing as missing:
            raise NotMeasured(str(missing)) from missing
        finally:
            oracle.shutdown()  # it would keep the memory
        if row["samples"] != count:
            raise Wrong(f"{path.name} shows {row['samples']} samples, the input has {count}")
        remarks.append(f"{path.name}: {path.stat().st_size / 1e6:.1f} MB, {row['samples']:,} samples")
    return remarks


PERF_SCRIPT = Work(
    name="perf-script",
    title="perf script text to pftrace",
    goals=(faster(1, OURS, PEER),),
    events=1_000_000,
    small=10_000,
    prepare=_prepare,
)

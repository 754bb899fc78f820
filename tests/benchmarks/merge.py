"""Two ranks of a distributed job merged, by traceconv and by what people use today.

Both ranks are as two containers write them: the same pid, and ids of flows that count from 1 in each. Rank 1 began a
quarter of a second later. All outputs are looked at with the trace processor. A second pair, of a few events and
outside the race, was recorded across the turn of a quarter of a year, from which Kineto counts the times of a file.
"""

from __future__ import annotations

import gzip
import sys
import time
from functools import partial
from pathlib import Path

from tests import oracle
from tests.benchmarks.frame import (
    Contestant,
    Race,
    Work,
    Wrong,
    faster,
    measure,
    memory_share,
    script,
    traceconv,
)
from tests.benchmarks.generate import FIRST_NS, Summary, generate
from tests.benchmarks.judge import all_of, judge
from tests.benchmarks.to_pftrace import OURS

FUSE = "TraceFuse"
COMBINE = "viztracer --combine"
_LATER_NS = 250_000_000
# 2026-07-01 and 2026-10-01, UTC.
_QUARTERS_NS = (1782864000 * 10**9, 1790812800 * 10**9)
_FIRST_STEPS = "select ts from slice where name = 'ProfilerStep#0'"


def _prepare(folder: Path, events: int) -> Race:
    ranks = [folder / "rank0.json", folder / "rank1.json"]
    totals = [
        generate(path, events, seed=rank + 1, rank=rank, first_ns=FIRST_NS + rank * _LATER_NS)
        for rank, path in enumerate(ranks)
    ]
    contestants = _contestants(ranks, folder)
    size = sum(total.bytes for total in totals)
    inputs = f"two ranks, {totals[0].events:,} events each, {size / 1e6:.1f} MB together"
    return Race(contestants, inputs, verify=partial(_verify, contestants, totals, folder))


def _contestants(ranks: list[Path], folder: Path) -> dict[str, Contestant]:
    ours, combined, fused = folder / "merged.pftrace", folder / "combined.json", folder / "fused.json.gz"
    combine = [sys.executable, "-m", "viztracer", "--combine", *map(str, ranks), "-o", str(combined)]
    fuse = script("trace_fuse", fused.with_suffix(""), *ranks)  # it adds .gz itself
    return {
        OURS: Contestant(traceconv("merge", *ranks, "-o", ours), ours),
        COMBINE: Contestant(combine, combined, needs="viztracer"),
        FUSE: Contestant(fuse, fused, slow=True, needs="TraceLens"),
    }


def _verify(contestants: dict[str, Contestant], totals: list[Summary], folder: Path) -> list[str]:
    right = all_of(*totals)
    remarks = [f"the inputs: {right}"]
    shifts = _shifts(folder)
    for name, contestant in contestants.items():
        if not contestant.present:
            continue
        assert contestant.output is not None
        seen = judge(contestant.output)
        if name == OURS and (seen != right or shifts[name]):
            raise Wrong(f"{name} shows {seen!r}, off by {shifts[name]} ns; the inputs hold {right!r}")
        off = f"{shifts[name] / 86400e9:.2f} days off" if shifts[name] else "right"
        size = f"{contestant.output.stat().st_size / 1e6:.1f} MB"
        if contestant.output.suffix == ".gz":
            size += f", gzip: packing takes {_packing_s(contestant.output):.1f} of its CPU s"
        remarks.append(f"{name}: {seen}; across a quarter of a year {off}; {size}")
    return remarks


def _packing_s(packed: Path) -> float:
    """CPU seconds that packing takes, at the level that Python's gzip has by default."""
    content = gzip.decompress(packed.read_bytes())
    before = time.process_time()
    gzip.compress(content)
    return time.process_time() - before


def _shifts(folder: Path) -> dict[str, int]:
    """By how many ns rank 1 is off, where the times of the ranks count from different quarters of a year."""
    ranks = [folder / "quarter0.json", folder / "quarter1.json"]
    starts = (_QUARTERS_NS[1] - 100_000_000, _QUARTERS_NS[1] - 100_000_000 + _LATER_NS)
    for rank, path in enumerate(ranks):
        base = _QUARTERS_NS[rank]
        generate(path, 2000, seed=rank + 1, rank=rank, base_ns=base, first_ns=starts[rank] - base)
    contestants = _contestants(ranks, folder / "quarters")
    return {name: _shift(contestant) for name, contestant in contestants.items() if contestant.present}


def _shift(contestant: Contestant) -> int:
    assert contestant.output is not None
    contestant.output.parent.mkdir(exist_ok=True)
    measure(contestant)
    with oracle.open_trace(contestant.output) as processor:
        begins = sorted(row["ts"] for row in oracle.rows(processor, _FIRST_STEPS))
    if len(begins) != 2:
        raise Wrong(f"{contestant.output.name} has {len(begins)} first steps of two ranks")
    return int(begins[1] - begins[0]) - _LATER_NS


MERGE = Work(
    name="merge",
    title="Two ranks merged",
    goals=(
        faster(10, OURS, FUSE),
        faster(1, OURS, COMBINE),
        memory_share(1 / 3, OURS, COMBINE, "peak memory ≤ 1/3 of that of viztracer --combine"),
        memory_share(1 / 3, OURS, FUSE, "peak memory ≤ 1/3 of that of TraceFuse"),
    ),
    events=300_000,
    small=40_000,
    prepare=_prepare,
)

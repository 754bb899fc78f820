"""Places ranks that one machine recorded as if each was on its own host, so that the true offsets are known.

    python -m tests.benchmarks.alignment.apart [--one-group] [--numbered] rank0.json rank1.json ...

The inputs are Kineto traces of one job on one machine. Each gets its own host name, and a wall clock that is up to 5 ms
ahead or behind. For each rank it prints the error and the bound, and exits with 1 if an error is larger than its bound.

torch before 2.2 does not write the group of a kernel. With `--one-group` all collectives are taken for those of all
ranks, numbered by their order, and kernels called SendRecv for all_to_all: correct only if the job did nothing else.

torch before 2026 does not number collectives. `--numbered` numbers those of each group by the order of their launches:
correct only if all ranks recorded the same steps.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from traceconv.align import align
from traceconv.api import read
from traceconv.model.stated_collectives import MESSAGES
from traceconv.model.trace import Trace

US, MS = 10**3, 10**6
#: Times since 1970 are larger, in µs; others count from the base time of the file.
_SINCE_1970_US = 10**15
_MOST_AHEAD_NS = 5 * MS


def moved_apart(
    paths: Sequence[Path], ahead: Sequence[int], folder: Path, *, one_group: bool = False, numbered: bool = False
) -> tuple[list[Trace], list[int]]:
    """Write the ranks as those of several hosts, and read them.

    Args:
        paths: the recordings, packed or not, in order of rank.
        ahead: for each by how much its clock is ahead, ns.
        folder: where to write.
        one_group: whether to add groups and numbers to kernels.
        numbered: whether to add numbers to kernels whose group is stated.

    Returns:
        The traces, and for each the time of the machine at zero of its times, ns.
    """
    traces, zeros = [], []
    for rank, (source, by) in enumerate(zip(paths, ahead, strict=True)):
        data = source.read_bytes()
        document = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
        document["host_name"] = f"node{rank}"
        events = document["traceEvents"]
        if one_group:
            _with_one_group(events, len(paths))
        if numbered:
            _with_numbers(events)
        zero = document.get("baseTimeNanoseconds")
        if zero is None:
            for event in events:
                if isinstance(event.get("ts"), int | float) and event["ts"] > _SINCE_1970_US:
                    event["ts"] += by / US
        else:
            document["baseTimeNanoseconds"] = zero + by
        path = folder / f"rank{rank}.json"
        path.write_text(json.dumps(document))
        traces.append(read(path))
        zeros.append(-by if zero is None else zero)
    return traces, zeros


def _with_one_group(events: Sequence[dict[str, Any]], ranks: int) -> None:
    """Add to the kernels of collectives the group of all ranks and a number."""
    kernels = [one for one in events if one.get("cat") == "kernel" and one["name"].startswith("nccl")]
    group = {"Process Group Name": "0", "Process Group Ranks": str(list(range(ranks))), "Group size": ranks}
    for number, kernel in enumerate(sorted(kernels, key=lambda one: float(one["ts"]))):
        said = {"Collective name": "all_to_all"} if "SendRecv" in kernel["name"] else {}
        kernel["args"] = {**kernel.get("args", {}), **group, **said, "Seq": number}


def _with_numbers(events: Sequence[dict[str, Any]]) -> None:
    """Add numbers to the kernels of collectives, and apart from these to messages, by the order of their launches."""
    counts: Counter[tuple[str, bool]] = Counter()
    kernels = [one for one in events if one.get("cat") == "kernel" and "Process Group Name" in one["args"]]
    for kernel in sorted(kernels, key=lambda one: int(one["args"]["correlation"])):
        args = kernel["args"]
        series = args["Process Group Name"], args["Collective name"] in MESSAGES
        counts[series] += 1
        args["Seq"] = counts[series]


def main(*arguments: str) -> int:
    """Print the errors; the result is the exit code."""
    paths = [Path(one) for one in arguments if not one.startswith("--")]
    if not paths:
        print(__doc__)
        return 2
    ahead = np.random.default_rng(0).integers(-_MOST_AHEAD_NS, _MOST_AHEAD_NS, len(paths)).tolist()
    ahead[0] = 0
    outside = 0
    with tempfile.TemporaryDirectory() as folder:
        added = {"one_group": "--one-group" in arguments, "numbered": "--numbered" in arguments}
        traces, zeros = moved_apart(paths, ahead, Path(folder), **added)
    alignment = align(traces)
    for rank, line in enumerate(alignment.receipt):
        (way,) = alignment.maps[rank].values()
        ends = (int(np.min(traces[rank].slices.ts)), int(np.max(traces[rank].slices.ts)))
        off = max(abs(way.at(ts) - ts - zeros[rank]) for ts in ends)
        outside += line.bound_ns is not None and off > line.bound_ns
        print(f"rank {rank}: {line.bound_text}, {off / US:.1f} µs off, {line.verdict}: {line.method}")
    return int(outside > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

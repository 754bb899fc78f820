"""Profiles of the ranks of one training run, one file each, as Kineto writes them; written by hand, not recorded.

The shape is that of Kineto's Chrome traces (PyTorch 2): devices are processes 0, 1, ..., their streams threads; spans,
overhead and counters stand under processes of their own, which all ranks name alike. Pids are those of containers,
so that ranks share them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

BASE_NS = 1_790_857_026_000_000_000
_PID = 100
_LAUNCHES = 12

Event = dict[str, Any]


def write_ranks(folder: Path, ranks: int, devices: int, collectives: int = 0) -> list[Path]:
    """Write the files, with so many all_reduces of all ranks; returns their paths in the order of the ranks."""
    paths = []
    for rank in range(ranks):
        path = folder / f"rank{rank}.json"
        path.write_text(json.dumps(_profile(rank, ranks, devices, collectives)))
        paths.append(path)
    return paths


def _profile(rank: int, ranks: int, devices: int, collectives: int) -> dict[str, Any]:
    random = Random(rank)
    events = [*_naming(devices), *_spans(rank)]
    for number in range(_LAUNCHES):
        events += _launch(random, rank, number, number % devices)
    events += [_all_reduce(rank, ranks, number, number % devices) for number in range(collectives)]
    return {
        "schemaVersion": 1,
        "deviceProperties": [{"id": device, "name": "NVIDIA A100"} for device in range(devices)],
        "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": ranks},
        "baseTimeNanoseconds": BASE_NS,
        "displayTimeUnit": "ms",
        "traceEvents": events,
    }


def _naming(devices: int) -> Iterator[Event]:
    for pid, label in [(_PID, "CPU"), *((device, f"GPU {device}") for device in range(devices))]:
        yield _metadata("process_name", pid, 0, name="python")
        yield _metadata("process_labels", pid, 0, labels=label)
        for stream in (7, 20) if pid != _PID else ():
            yield _metadata("thread_name", pid, stream, name=f"stream {stream} ")
    yield _metadata("thread_name", _PID, _PID, name=f"thread {_PID} (python)")
    yield _metadata("process_name", "Spans", 0, name="Spans")


def _metadata(what: str, pid: int | str, tid: int, **args: Any) -> Event:
    return {"ph": "M", "name": what, "ts": 0, "pid": pid, "tid": tid, "args": args}


def _spans(rank: int) -> Iterator[Event]:
    yield _slice("Trace", "PyTorch Profiler (0)", "Spans", "PyTorch Profiler", 1000 + rank, 5000)
    yield _slice("overhead", "Activity Buffer Request", -1, 0, 1001 + rank, 1.5)
    for name, at in (("Iteration Start: PyTorch Profiler", 1000), ("Record Window End", 6000)):
        yield {"ph": "i", "s": "g", "name": name, "pid": "Traces", "tid": "Trace PyTorch Profiler", "ts": at + rank}


def _launch(random: Random, rank: int, number: int, device: int) -> Iterator[Event]:
    """An operator that launches two kernels, which overlap on their stream, and what the allocator says."""
    at, stream = 1100 + 300 * number + random.randrange(40), random.choice((7, 20))
    yield _slice("cpu_op", f"aten::mm {rank}.{number}", _PID, _PID, at, 90.25, **{"External id": number})
    for turn in range(2):
        correlation = 2 * number + turn + 1
        ids = {"correlation": correlation, "External id": number}
        launch, begin = at + 5 + 20 * turn, at + 60 + 10 * turn
        yield _slice("cuda_runtime", "cudaLaunchKernel", _PID, _PID, launch, 4.125, **ids)
        kernel = {"device": device, "stream": stream, "context": 1, "queued": 0, **ids}
        yield _slice("kernel", f"gemm rank {rank} device {device}", device, stream, begin, 50.5, **kernel)
        for phase, pid, tid, ts in (("s", _PID, _PID, launch), ("f", device, stream, begin)):
            flow = {"ph": phase, "id": correlation, "pid": pid, "tid": tid, "ts": ts, "cat": "ac2g", "name": "ac2g"}
            yield flow | ({"bp": "e"} if phase == "f" else {})
    sizes = {"Total Reserved": 2**21, "Total Allocated": 512 * (number + rank), "Bytes": 512}
    place = {"Device Id": device, "Device Type": 1, "Addr": 140_000_000_000_000 + number}
    yield {
        "ph": "i",
        "cat": "cpu_instant_event",
        "s": "t",
        "name": "[memory]",
        "pid": _PID,
        "tid": _PID,
        "ts": at + 2,
        "args": sizes | place,
    }


def _all_reduce(rank: int, ranks: int, number: int, device: int) -> Event:
    """A kernel of NCCL, which the ranks enter one after the other, the last ones first in every second one."""
    turn = rank if number % 2 else ranks - rank
    at, end = 1150 + 300 * number + 9 * turn, 1250 + 300 * number
    group = {"Process Group Name": "0", "Process Group Ranks": str(list(range(ranks))), "Group size": ranks}
    args = {"device": device, "Collective name": "allreduce", "In msg nelems": 1024, "dtype": "Float", "Seq": number}
    name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    return _slice("kernel", name, device, 30, at, end - at, **args, **group)


def _slice(category: str, name: str, pid: int | str, tid: int | str, ts: float, dur: float, **args: Any) -> Event:
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}

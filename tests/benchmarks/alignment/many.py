"""Measures merges of jobs of many processes: `python -m tests.benchmarks.alignment.many [PROCESSES ...]`.

Each process writes a Kineto profile, which says its host, pid and wall time, and a oneDNN log that says neither host
nor process. All run the same network, and begin each iteration together, as ranks that wait for each other do.
`--clock` says what the logs tell of time: `boot`, times of a clock that nothing relates; `wall`, Unix times; or `none`,
no times at all. Of several hosts (`--hosts`) the user says on which one each log was written, since no log
does; with `--pids`, by which process, too.

Printed is the CPU time of reading and of aligning, in a process of its own for each size, with how many pairs of clocks
were compared and what became of the logs.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import multiprocessing
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from unittest.mock import patch

import numpy as np

from tests.benchmarks.alignment.simulate import MS, US, Run, Shape, network, run
from tests.benchmarks.record import laid_out
from traceconv.align import Policy, align, comparison, duration_layout
from traceconv.align.constraints import ClockConstraint, ClockKind, Constraints
from traceconv.align.geometry import F64
from traceconv.api import read
from traceconv.errors import AlignmentError

_T = TypeVar("_T")

_BASE_NS = 1_795_244_023 * 10**9
_BOOT_NS = 86_400 * 10**9
_FIRST_PID = 26_000
_ITERATIONS = 60
_OPERATORS = ("aten::conv2d", "aten::relu", "aten::max_pool2d", "aten::linear")
_INNER = ("aten::mkldnn_convolution", "aten::clamp_min", "aten::mkldnn_max_pool2d", "aten::addmm")
_PRIMITIVES = ("convolution", "eltwise", "pooling", "inner_product")
_HEAD = "onednn_verbose,v1,info,oneDNN v3.12.0 (commit 80afa71049cd69a3df32adcccb623b12cd7baa22)\n"


def write_job(folder: Path, processes: int, *, hosts: int, clock: str, seed: int = 1) -> list[Path]:
    """Write the profiles, then the logs; returns their paths."""
    rng = np.random.default_rng(seed)
    net = network(rng, 40)
    runs = [run(rng, Shape(iterations=_ITERATIONS), net) for _ in range(processes)]
    begins = _begins(runs)
    drifts = {f"node{host}": rng.uniform(-20e-6, 20e-6) for host in range(hosts)}
    profiles, logs = [], []
    for number, one in enumerate(runs):
        first = np.array([one.start[one.iteration == at][0] for at in range(_ITERATIONS)])
        start = one.start + (begins - first)[one.iteration]
        pid, host = _FIRST_PID + number, host_of(number, processes, hosts)
        profiles.append(folder / f"kineto{number}.json")
        profiles[-1].write_text(json.dumps(_profile(start, one, pid, host)))
        logs.append(folder / f"onednn{number}.log")
        logs[-1].write_text(_log(rng, start, one, clock, drifts[host]))
    return [*profiles, *logs]


def host_of(number: int, processes: int, hosts: int) -> str:
    """The host of a process: the first ones run on the first host, and so on."""
    return f"node{number * hosts // processes}"


def _begins(runs: Sequence[Run]) -> F64:
    """When each iteration begins: the slowest process ends the one before."""
    steps = [[one.start[one.iteration == at][0] for at in range(_ITERATIONS)] for one in runs]
    longest = np.diff(np.array(steps), axis=1).max(axis=0)
    return np.concatenate(([0.0], np.cumsum(longest + 50 * US)))


def _profile(start: F64, made: Run, pid: int, host: str) -> dict[str, object]:
    events = []
    for row, (at, dur, kind) in enumerate(zip(start.tolist(), made.dur.tolist(), made.kind.tolist(), strict=True)):
        for depth, name in enumerate((_OPERATORS[kind], "aten::_convolution" if kind == 0 else "", _INNER[kind])):
            if name:
                inset = (2 - depth) * US if depth < 2 else 0.0
                events.append(
                    {
                        "ph": "X",
                        "cat": "cpu_op",
                        "name": name,
                        "pid": pid,
                        "tid": pid,
                        "ts": round((at + MS - inset) / 1e3, 3),
                        "dur": round((dur + 2 * inset) / 1e3, 3),
                        "args": {
                            "External id": 3 * row + depth,
                            "Record function id": 0,
                            "Input Dims": [[8, 3, 32, 32], [16, 3, 5, 5], []],
                            "Input type": ["float", "float", ""],
                            "Ev Idx": 3 * row + depth,
                        },
                    }
                )
    return {
        "schemaVersion": 1,
        "deviceProperties": [],
        "host_name": host,
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": _BASE_NS,
        "traceEvents": events,
    }


def _log(rng: np.random.Generator, start: F64, made: Run, clock: str, drift: float) -> str:
    """What the library prints: not all calls, a little inside of each operator, on the clock of its host."""
    seen = np.flatnonzero(rng.random(len(start)) >= 0.1)
    begins = start[seen] + MS + (1 + rng.exponential(1.0, len(seen))) * US
    ends = start[seen] + made.dur[seen] + MS - (0.5 + rng.exponential(0.5, len(seen))) * US
    lines = [_HEAD]
    for at, end, kind in zip(begins.tolist(), ends.tolist(), made.kind[seen].tolist(), strict=True):
        when = {"boot": _BOOT_NS + at * (1 + drift), "wall": _BASE_NS + at}.get(clock)
        lines.append(
            f"onednn_verbose,v1,{'' if when is None else f'{when / 1e6:.6f},'}primitive,exec,cpu,"
            f"{_PRIMITIVES[kind]},jit:avx512_core,forward_training,"
            f"src:f32::blocked:aBcd16b::f0 dst:f32::blocked:aBcd16b::f0,attr-scratchpad:user,,mb8_ic16oc32,"
            f"{max(end - at, 500.0) / 1e6:.6g}\n"
        )
    return "".join(lines)


@dataclass(frozen=True, slots=True)
class Measured:
    """What a merge takes.

    Attributes:
        processes: how many profiles, and as many logs.
        read_s, align_s: CPU time of both steps.
        compared: how often two clocks were compared by their events.
        outcome: how many logs have which verdict, or the refusal.
        wrong: how many logs lie more than 0.2 ms from their true offset at the start.
    """

    processes: int
    read_s: float
    align_s: float
    compared: int
    outcome: str
    wrong: int = 0


def measure(processes: int, hosts: int, clock: str, pids: bool) -> Measured:
    """Read and align a job."""
    with tempfile.TemporaryDirectory() as name:
        paths = write_job(Path(name), processes, hosts=hosts, clock=clock)
        began = time.process_time()
        options = [{}] * processes + [{"pid": str(_FIRST_PID + at)} if pids else {} for at in range(processes)]
        traces = [read(path, options=its) for path, its in zip(paths, options, strict=True)]
    have_read = time.process_time()
    compared = Counter[str]()
    kind = ClockKind.PERF if clock == "boot" else ClockKind.REALTIME
    stated = {processes + at: ClockConstraint(kind, host_of(at, processes, hosts)) for at in range(processes)}
    constraints = Constraints(clocks=stated if hosts > 1 and clock != "none" else {})
    wrong = 0
    with ExitStack() as patches:
        for module, name in (
            (comparison, "estimate_pair"),
            (comparison, "estimate_pair"),
            (duration_layout, "align_durations"),
        ):
            patches.enter_context(patch.object(module, name, _counted(getattr(module, name), compared)))
        try:
            found = align(traces, policy=Policy(same_run=clock == "none"), constraints=constraints)
        except AlignmentError as error:
            outcome = f"{type(error).__name__}: {error}"
        else:
            verdicts = Counter(line.verdict for line in found.receipt[processes:])
            outcome = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
            ways = [next(iter(found.maps[processes + at].values())) for at in range(processes)]
            begin = {"boot": _BOOT_NS, "wall": _BASE_NS}.get(clock)
            if begin is not None:
                wrong = sum(abs(way.at(begin) - _BASE_NS) > 0.2 * MS for way in ways)
    return Measured(processes, have_read - began, time.process_time() - have_read, compared.total(), outcome, wrong)


def _counted(function: Callable[..., _T], calls: Counter[str]) -> Callable[..., _T]:
    def counting(*arguments: object) -> _T:
        calls[function.__name__] += 1
        return function(*arguments)

    return counting


def main() -> None:
    """Print a line for each size."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.alignment.many", description=__doc__)
    parser.add_argument("processes", nargs="*", type=int, default=[2, 8, 32], help="how many processes")
    parser.add_argument("--hosts", type=int, default=1, help="on how many hosts they run")
    parser.add_argument("--clock", choices=("boot", "wall", "none"), default="boot", help="what logs tell of time")
    parser.add_argument("--pids", action="store_true", help="the user says of which process each log is")
    parser.add_argument("--profile", metavar="FILE", help="also write the profile of cProfile, of the one size given")
    args = parser.parse_args()
    if args.profile:
        (processes,) = args.processes
        cProfile.runctx("measure(processes, args.hosts, args.clock, args.pids)", globals(), locals(), args.profile)
        return
    rows = [("files", "read", "align", "compared", "wrong", "logs")]
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as pool:
        for processes in args.processes:
            one = pool.submit(measure, processes, min(args.hosts, processes), args.clock, args.pids).result()
            files = f"{processes} + {processes}"
            rows.append(
                (files, f"{one.read_s:.1f} s", f"{one.align_s:.1f} s", str(one.compared), str(one.wrong), one.outcome)
            )
            print(*laid_out([rows[0], rows[-1]]), sep="\n", flush=True)


if __name__ == "__main__":
    main()

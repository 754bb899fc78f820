"""Records ONNX Runtime and perf at one process, with the truth about their clocks, all in one command.

    python -m tests.benchmarks.alignment.record_activity FOLDER [CASE...]

It needs Linux, perf (with access to system call tracepoints) and the packages onnxruntime and onnx. For each case it
makes FOLDER/CASE with the profile of ONNX Runtime and the text of perf script or the intervals of perf stat, all
packed, and adds what the program knew about the clocks to FOLDER/truth.json.

The truth: ONNX Runtime tells its start exactly (`get_profiling_start_time_ns`). The program makes system calls that
perf records, with readings of CLOCK_MONOTONIC around each, and reads CLOCK_REALTIME between two of CLOCK_MONOTONIC.
The lines of perf stat come through a pipe: none is printed before its time, and the promptest one tells its zero.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

_MARKER, _MARKERS = 424200, 12
_READINGS = 400
_STAT_EVENTS = "task-clock,context-switches"
#: The least time between perf stat's reading of its clock and the arrival of the line here, and the usual one: it
#: reads the counters and prints in between.
_STAT_DELAY_NS, _STAT_SLACK_NS = 30_000, 30_000


@dataclass(frozen=True, slots=True)
class Case:
    """What is recorded.

    Attributes:
        seed: of pauses and shapes.
        requests: how many times the model runs.
        burst: how many of them come without a pause.
        pause_ms: the least and the greatest pause after that; None for none at all.
        threads: of ONNX Runtime.
        clock: what perf is told to use; "" for its own default.
        stacks: whether perf records call stacks; only the address otherwise.
        stat: whether perf stat counts every 10 ms, instead of samples.
        rows: the least and the greatest size of a request.
    """

    seed: int
    requests: int = 300
    burst: int = 1
    pause_ms: tuple[float, float] | None = (2.0, 12.0)
    threads: int = 1
    clock: str = "CLOCK_MONOTONIC"
    stacks: bool = True
    stat: bool = False
    rows: tuple[int, int] = (8, 96)


CASES = {
    "ort_perf_pauses": Case(1),
    "ort_perf_pauses_default_clock": Case(2, clock=""),
    "ort_perf_pauses_threads": Case(3, threads=2),
    "ort_perf_pauses_addresses": Case(4, stacks=False),
    "ort_perf_steady": Case(5, requests=700, pause_ms=None),
    "ort_perf_steady_threads": Case(6, requests=900, pause_ms=None, threads=2, stacks=False),
    "ort_stat_pauses": Case(7, requests=800, burst=10, pause_ms=(20.0, 80.0), stat=True),
}
_LARGE = (1000, 4000)
#: Five to ten requests only: small ones of less than a millisecond, or large ones of some 20.
SHORT = {
    "short_ort_small_7": Case(107, requests=7),
    "short_ort_small_10": Case(110, requests=10),
    "short_ort_5": Case(115, requests=5, rows=_LARGE),
    "short_ort_6": Case(116, requests=6, rows=_LARGE, clock=""),
    "short_ort_7": Case(117, requests=7, rows=_LARGE, stacks=False),
    "short_ort_8": Case(118, requests=8, rows=_LARGE),
    "short_ort_10": Case(120, requests=10, rows=_LARGE, clock=""),
    "short_ort_threads_8": Case(128, requests=8, rows=_LARGE, threads=2),
}
_ALL = {**CASES, **SHORT}


# -- the recorded program -------------------------------------------------------------------------------------------


def _nearest(clock: int) -> tuple[int, int]:
    """A clock minus CLOCK_MONOTONIC, and how wrong that can be: the narrowest of many readings."""
    best = (2**62, 0, 0)
    for _ in range(_READINGS):
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        other = time.clock_gettime_ns(clock)
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        best = min(best, (after - before, other, (before + after) // 2))
    return best[1] - best[2], (best[0] + 1) // 2


def _mark(number: int) -> tuple[int, int, int]:
    """A system call that perf sees, with the times before and after it."""
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    with suppress(OSError):
        os.getpriority(os.PRIO_USER, _MARKER + number)
    return _MARKER + number, before, time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def program(case: Case, notes: Path) -> None:
    """Answer requests with a model, and write down what the clocks show."""
    import onnxruntime

    real, real_error = _nearest(time.CLOCK_REALTIME)
    options = onnxruntime.SessionOptions()
    options.enable_profiling = True
    options.intra_op_num_threads = case.threads
    session = onnxruntime.InferenceSession(_model(case.seed), options, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(case.seed)
    marks = [_mark(number) for number in range(_MARKERS)]
    for number in range(1, case.requests + 1):
        rows = int(rng.integers(*case.rows))
        request = rng.random((rows, 256), np.float32)
        session.run(None, {"request": request})
        if case.pause_ms and number % case.burst == 0:
            time.sleep(float(rng.uniform(*case.pause_ms)) / 1e3)
    marks += [_mark(number) for number in range(_MARKERS, 2 * _MARKERS)]
    start = session.get_profiling_start_time_ns()
    session.end_profiling()
    later, later_error = _nearest(time.CLOCK_REALTIME)
    error = max(real_error, later_error) + (abs(later - real) + 1) // 2
    told = {"real_ns": (real + later) // 2, "real_error_ns": error, "ort_start_ns": start, "marks": marks}
    notes.write_text(json.dumps(told), encoding="utf-8")


def _model(seed: int) -> bytes:
    """Six layers for any number of rows."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(seed)
    nodes, weights, name = [], [], "request"
    for layer, (width, height) in enumerate(((256, 384), (384, 512), (512, 256))):
        weight = (rng.random((width, height), np.float32) - 0.5) / 16
        weights.append(numpy_helper.from_array(weight, f"weight{layer}"))
        nodes.append(helper.make_node("MatMul", [name, f"weight{layer}"], [f"product{layer}"], f"matmul{layer}"))
        kind = ("Sigmoid", "Tanh", "Softmax")[layer]
        nodes.append(helper.make_node(kind, [f"product{layer}"], [f"out{layer}"], kind.lower()))
        name = f"out{layer}"
    ends = (("request", 256), (name, 256))
    first, last = (helper.make_tensor_value_info(one, TensorProto.FLOAT, ["rows", size]) for one, size in ends)
    graph = helper.make_graph(nodes, "layers", [first], [last], weights)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(made)
    return bytes(made.SerializeToString())


# -- around it ------------------------------------------------------------------------------------------------------


def record(folder: Path, name: str) -> list[dict[str, Any]]:
    """Record a case.

    Returns:
        Its entry in truth.json.
    """
    case, place = _ALL[name], folder / name
    place.mkdir(parents=True, exist_ok=True)
    for old in place.iterdir():
        old.unlink()
    stacks, clock = ["-g"] if case.stacks else [], ["-k", case.clock] if case.clock else []
    events = ["-F", "1000", "-e", "cpu-clock", "-e", "syscalls:sys_enter_getpriority"]
    around = [] if case.stat else ["perf", "record", "-q", "-o", "perf.data", *clock, *events, *stacks]
    command = [sys.executable, "-m", "tests.benchmarks.alignment.record_activity", "--program", name, "notes.json"]
    root = str(Path(__file__).resolve().parents[3])
    environment = {**os.environ, "PYTHONPATH": root, "TZ": "UTC", "OPENBLAS_NUM_THREADS": "1"}
    begin = time.time_ns() - time.monotonic_ns()
    arrivals = _run([*around, *command], place, environment, stat=case.stat)
    if abs(time.time_ns() - time.monotonic_ns() - begin) > 1_000_000:
        raise SystemExit("CLOCK_REALTIME was set meanwhile: record again")
    told = json.loads((place / "notes.json").read_text(encoding="utf-8"))
    print(f"{name}: load average {os.getloadavg()[0]:.1f}", file=sys.stderr)
    seen = _intervals(place, name, arrivals) if case.stat else _samples(place, name, told, case)
    for temporary in ("perf.data", "notes.json"):
        (place / temporary).unlink(missing_ok=True)
    return [*_profile(place, name, told), seen]


def _run(command: list[str], place: Path, environment: dict[str, str], *, stat: bool) -> list[tuple[int, str]]:
    """Run it, under perf stat if wanted.

    Returns:
        The lines of perf stat with the Unix time of each one's arrival, ns.
    """
    if not stat:
        subprocess.run(command, cwd=place, env=environment, check=True)
        return []
    read_end, write_end = os.pipe()
    around = ["perf", "stat", "-I", "10", "-x", ",", "-e", _STAT_EVENTS, "--log-fd", str(write_end)]
    arrivals: list[tuple[int, str]] = []

    def listen() -> None:
        with os.fdopen(read_end, "r", encoding="utf-8") as lines:
            arrivals.extend((time.time_ns(), line) for line in lines)

    with subprocess.Popen([*around, *command], cwd=place, env=environment, pass_fds=(write_end,)) as process:
        os.close(write_end)
        listener = threading.Thread(target=listen)
        listener.start()
        if process.wait():
            raise SystemExit(f"perf stat failed: {process.returncode}")
    listener.join()
    return arrivals


def _packed(path: Path, text: str) -> str:
    """Write a packed file, the same bytes for the same text."""
    with gzip.GzipFile(path, "wb", mtime=0) as out:
        out.write(text.encode())
    return path.name


def _told(name: str, file: str, zero_ns: int, uncertainty_ns: int, how: str) -> dict[str, Any]:
    told = {"file": file, "from": f"{name}/{file}", "zero_ns": zero_ns, "uncertainty_ns": uncertainty_ns}
    return {**told, "how": how}


def _profile(place: Path, name: str, told: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for path in sorted(place.glob("onnxruntime_profile*.json")):
        file = _packed(path.with_name(f"{path.name}.gz"), path.read_text(encoding="utf-8"))
        path.unlink()
        how = "InferenceSession.get_profiling_start_time_ns(), unix ns; ts and dur are cut to whole microseconds"
        yield _told(name, file, told["ort_start_ns"], 1000, how)


def _samples(place: Path, name: str, told: dict[str, Any], case: Case) -> dict[str, Any]:
    fields = [] if case.stacks else ["-F", "comm,pid,tid,time,event,ip,sym,dso"]
    script = ["perf", "script", "-i", "perf.data", "--ns"]
    marks = subprocess.run([*script, "-F", "time,event,trace"], cwd=place, check=True, capture_output=True, text=True)
    known = {mark[0]: mark[1:] for mark in told["marks"]}
    bounds = []
    for line in marks.stdout.splitlines():
        found = re.search(r"(\d+)\.(\d{9}):.*sys_enter_getpriority:.*who: 0x([0-9a-f]+)", line)
        if found and int(found[3], 16) in known:
            at = int(found[1]) * 10**9 + int(found[2])
            before, after = known[int(found[3], 16)]
            bounds.append((before - at, after - at))
    low, high = max(one for one, _ in bounds), min(one for _, one in bounds)
    # Its default clock drifts a little against CLOCK_MONOTONIC: no difference may then fit all marks.
    zero, error = (low + high) // 2 + told["real_ns"], (abs(high - low) + 1) // 2 + told["real_error_ns"]
    text = subprocess.run([*script, "--header", *fields], cwd=place, check=True, capture_output=True, text=True).stdout
    file = _packed(place / "perf.script.txt.gz", "".join(_without_marks(text, stacks=case.stacks)))
    how = (
        f"{len(bounds)} marker system calls: perf time of sys_enter_getpriority against CLOCK_MONOTONIC read just "
        "before and after; intersection of the intervals"
    )
    return _told(name, file, zero, error, how)


def _without_marks(text: str, *, stacks: bool) -> Iterator[str]:
    """The samples without the markers, which tell the truth and are not part of what is aligned."""
    inside = False
    for line in text.splitlines(keepends=True):
        if not line.startswith("#") and (not stacks or not line.startswith(("\t", "\n"))):
            inside = "sys_enter_getpriority" in line
        if not inside or line.startswith("#"):
            yield line


def _intervals(place: Path, name: str, arrivals: list[tuple[int, str]]) -> dict[str, Any]:
    zeros = [at - round(float(line.partition(",")[0]) * 1e9) for at, line in arrivals if line[:1] in " 0123456789"]
    zero = min(zeros) - _STAT_DELAY_NS
    file = _packed(place / "perf.stat.csv.gz", "".join(line for _, line in arrivals))
    how = f"the promptest of {len(zeros)} lines came {_STAT_DELAY_NS // 1000} µs or less after its time"
    return _told(name, file, zero, _STAT_SLACK_NS, how)


def main() -> None:
    """Record what is asked for, or be the program that is recorded."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.alignment.record_activity")
    parser.add_argument("--program", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "cases", nargs="*", metavar="CASE", help=f"of {', '.join(_ALL)}; {', '.join(CASES)} if none is given"
    )
    args = parser.parse_args()
    if args.program:
        program(_ALL[str(args.folder)], Path(args.cases[0]))
        return
    truth = args.folder / "truth.json"
    told = json.loads(truth.read_text(encoding="utf-8")) if truth.exists() else {"recordings": {}}
    for name in args.cases or CASES:
        told["recordings"][name] = record(args.folder, name)
        truth.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Compare `traceconv report` with HTA and TraceLens on Kineto traces, in what they say and in how long they take.

    python -m tests.benchmarks.answers_compare --traces DIR --hta PYTHON --tracelens PYTHON

PYTHON is an interpreter that can import `hta` (HolisticTraceAnalysis 0.5) or `TraceLens`. All files below DIR that end
in .json or .json.gz are read. Each tool runs in a process of its own, from the file to its tables, its modules
compiled before; the time is the least of several runs: `seconds` from the file to the tables, `whole` with starting
Python and importing, `cpu` the CPU time of the whole process, which other work on the machine hardly changes. Times of
the tables are in us.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HTA = """
import json, logging, sys, time, warnings
logging.disable(logging.CRITICAL); warnings.simplefilter("ignore")
from hta.trace_analysis import TraceAnalysis
start = time.perf_counter()
a = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir=".", include_last_profiler_step=True)
_, kernels = a.get_gpu_kernel_breakdown(visualize=False, num_kernels=10**6)
times = a.get_temporal_breakdown(visualize=False).iloc[0].to_dict()
overlap = float(a.get_comm_comp_overlap(visualize=False).iloc[0, 1])
a.get_idle_time_breakdown(visualize=False)
delays = a.get_cuda_kernel_launch_stats(visualize=False)[0]["launch_delay"]
seconds = time.perf_counter() - start
waited = sorted(delays[delays > 0])
unit = lambda name: next(value for key, value in times.items() if key.startswith(name + "("))
print("\\n" + json.dumps({
    "seconds": seconds,
    "kernels": {row["name"]: row["sum (us)"] for _, row in kernels.iterrows()},
    "compute": unit("compute_time"), "idle": unit("idle_time"), "window": unit("kernel_time"),
    "overlap": None if overlap != overlap else overlap / 100,
    "queue_time_p50": waited[(len(waited) - 1) // 2] if waited else None, "launches": len(delays),
}))
"""
TRACELENS = """
import json, sys, time
from TraceLens import TreePerfAnalyzer
start = time.perf_counter()
p = TreePerfAnalyzer.from_file(sys.argv[1])
t = p.get_df_gpu_timeline().set_index("type")["time ms"].to_dict()
p.get_df_kernels()
seconds = time.perf_counter() - start
us = {key: 1000 * value for key, value in t.items()}
hidden = 1 - us["exposed_comm_time"] / us["total_comm_time"] if us["total_comm_time"] else None
print("\\n" + json.dumps({
    "seconds": seconds, "compute": us["computation_time"], "idle": us["idle_time"], "window": us["total_time"],
    "overlap": hidden,
}))
"""
OURS = """
import json, sys, time, traceconv.answers, traceconv.api
start = time.perf_counter()
asked = traceconv.Questions(["operations", "device"], by=("name", "category"))
operations, device, *_ = traceconv.report([sys.argv[1]], asked)
seconds = time.perf_counter() - start
row = next((one for one in device.records() if not one["queue"]), {})
us = lambda name: None if row.get(name) is None else row[name] / 1000
works = [one for one in operations.records() if one["category"] in ("kernel", "gpu_memcpy", "gpu_memset")]
kernels, calls = {}, {}
for one in works:
    kernels[one["name"]] = kernels.get(one["name"], 0) + one["count"] * one["mean_ns"] / 1000
    calls[one["name"]] = calls.get(one["name"], 0) + one["count"]
print("\\n" + json.dumps({
    "seconds": seconds, "kernels": kernels, "calls": calls, "compute": us("compute_ns"), "idle": us("idle_ns"),
    "window": us("window_ns"), "overlap": row.get("overlap_share"), "queue_time_p50": us("queue_time_p50_ns"),
    "launches": row.get("launches"), "devices": len({one["device"] for one in device.records()}),
}))
"""
TIMES = ("seconds", "whole", "cpu")
QUANTITIES = ("window", "compute", "idle", "overlap", "launches", "queue_time_p50")


def measured(python: str, script: str, path: Path, repeats: int) -> dict[str, Any] | None:
    """Return what a script prints of a trace, with the least time of several runs; None if it fails, which is said."""
    found: dict[str, Any] = {}
    compiling = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    for _ in range(repeats):
        start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [python, "-c", script, str(path)]
        run = subprocess.run(command, capture_output=True, text=True, check=False, env=compiling)
        whole, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        if run.returncode:
            print(f"  fails: {(run.stderr.strip().splitlines() or ['without a word'])[-1]}")
            return None
        one = json.loads(run.stdout.splitlines()[-1])
        one |= {"whole": whole, "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}
        one |= {key: min(one[key], found.get(key, one[key])) for key in TIMES}
        found = one
    return found


def kernels_said(ours: dict[str, Any], other: dict[str, Any]) -> str:
    """Return how many names have the same total: within 1 us a call, as HTA rounds times to whole us."""
    both = ours["kernels"].keys() & other["kernels"].keys()
    same = [name for name in both if abs(ours["kernels"][name] - other["kernels"][name]) <= ours["calls"][name]]
    sums = sum(ours["kernels"].values()), sum(other["kernels"].values())
    return (
        f"kernel totals: {len(same)} of {len(ours['kernels'])} names same, "
        f"{len(other['kernels'].keys() - both)} only there; sum {sums[0]:.1f} and {sums[1]:.1f} us"
    )


def main() -> None:
    """Print a table for each trace."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=Path, required=True, metavar="DIR")
    parser.add_argument("--hta", metavar="PYTHON")
    parser.add_argument("--tracelens", metavar="PYTHON")
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    for path in sorted(one for one in asked.traces.rglob("*") if one.name.endswith((".json", ".json.gz"))):
        print(f"{path.relative_to(asked.traces)}, {path.stat().st_size / 1e6:.1f} MB")
        columns = {"traceconv": measured(sys.executable, OURS, path, asked.repeats)}
        for name, python, script in (("HTA", asked.hta, HTA), ("TraceLens", asked.tracelens, TRACELENS)):
            columns |= {name: measured(python, script, path, asked.repeats)} if python else {}
        found = {name: one for name, one in columns.items() if one}
        print(f"  {'':<16}" + "".join(f"{name:>16}" for name in found))
        for quantity in (*QUANTITIES, *TIMES):
            cells = [one.get(quantity) for one in found.values()]
            shown = [
                "-" if cell is None else f"{cell:.4g}" if isinstance(cell, float) and cell < 10 else f"{cell:.1f}"
                for cell in cells
            ]
            print(f"  {quantity:<16}" + "".join(f"{cell:>16}" for cell in shown))
        ours = found.get("traceconv")
        if ours and "HTA" in found:
            print(f"  {kernels_said(ours, found['HTA'])}")
        for name in found.keys() - {"traceconv"} if ours else ():
            times = ", ".join(f"{found[name][key] / ours[key]:.1f} x {key}" for key in TIMES)
            print(f"  {name} takes {times}; devices in the trace: {ours['devices']}")


if __name__ == "__main__":
    main()

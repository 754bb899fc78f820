"""Compare the section on layers with what recorded networks are known to do.

    python -m tests.answers.compare_runtimes [FOLDER]

prints a table for the recordings of `record_runtimes` in a folder: for each layer its share of the operations, of the
time by the runtime's own profile, and of the CPU time by the samples of the same run. The profile is read here without
traceconv.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import traceconv
from tests.answers.record_runtimes import GFLOP, PROGRAMS
from traceconv import Constraints, Questions

RECORDED = Path(__file__).parents[1] / "data" / "layers"


class Compared(NamedTuple):
    """A layer: its calls, its time by the runtime (ns), its CPU time by samples (ns), and their number."""

    calls: int
    time_ns: int
    cpu_ns: int
    samples: int


def own_times(folder: Path) -> tuple[Counter[str], Counter[str]]:
    """Return the calls and the time (ns) of each layer, as the profile of the runtime states them."""
    profile = json.loads(gzip.decompress((folder / "profile.json.gz").read_bytes()))
    calls: Counter[str] = Counter()
    times: Counter[str] = Counter()
    begun: dict[str, float] = {}
    for event in profile if isinstance(profile, list) else profile["traceEvents"]:
        name = event.get("name", "").removesuffix("_kernel_time")
        if name not in GFLOP:
            continue
        if event["ph"] == "b":  # MXNet: a task of the user
            begun[name] = event["ts"]
        elif event["ph"] in "eX" and event.get("cat") in ("Node", "user_annotation", "network"):
            calls[name] += 1
            times[name] += round(1000 * (event["dur"] if event["ph"] == "X" else event["ts"] - begun[name]))
    return calls, times


def rows_of(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the rows of the section on layers by name."""
    start = folder / "start_ns.txt"
    options = {"start_ns": start.read_text(encoding="utf-8")} if start.exists() else {}
    inputs = [traceconv.Input(folder / "profile.json.gz", options=options), folder / "perf.data.gz"]
    (section,) = traceconv.report(inputs, Questions(["layers"]), constraints=Constraints(same_machine=True))
    return {row["name"]: row for row in section.records()}


def compared(folder: Path) -> dict[str, Compared]:
    """Return the known layers of a recording."""
    (calls, times), rows = own_times(folder), rows_of(folder)
    return {
        name: Compared(calls[name], times[name], rows[name]["cpu-clock_total"], rows[name]["samples_total"])
        for name in GFLOP
    }


def shares(amounts: list[float]) -> list[float]:
    """Return each amount as a share of all."""
    return [amount / sum(amounts) for amount in amounts]


def table(folder: Path) -> list[str]:
    """Return the lines that compare all recordings of a folder."""
    lines = ["runtime      layer         calls  operations     time  CPU time  samples  GFLOP per second of CPU"]
    for runtime in PROGRAMS:
        found = compared(folder / runtime)
        columns = [
            list(GFLOP.values()),
            [one.time_ns for one in found.values()],
            [one.cpu_ns for one in found.values()],
        ]
        for (name, one), *parts in zip(found.items(), *map(shares, columns), strict=True):
            percent = "  ".join(f"{100 * part:{width}.1f} %" for part, width in zip(parts, (8, 5, 6), strict=True))
            speed = GFLOP[name] * one.calls / one.cpu_ns * 1e9
            lines.append(f"{runtime:<11}  {name:<12}  {one.calls:5}  {percent}  {one.samples:7}  {speed:23.0f}")
    return lines


if __name__ == "__main__":
    print("\n".join(table(Path(sys.argv[1]) if len(sys.argv) > 1 else RECORDED)))

"""What it costs to start traceconv: before it does anything, and for a conversion of a few events."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.benchmarks.frame import ROOT, Contestant, Goal, Measured, Race, Reached, Work, at_most, traceconv

PYTHON, VERSION, HELP = "python -c pass", "traceconv --version", "traceconv --help"
LIBRARIES, CONVERT = "importing click, numpy, msgspec", "convert of 30 events"
_HEAVY = ("numpy", "google.protobuf")
_MORE_S = 0.060


def _prepare(folder: Path, events: int) -> Race:
    """The number of events is that of the runs."""
    imported = _imported(traceconv("--help"))
    source, output = folder / "few.json", folder / "few.pftrace"
    few = [{"ph": "X", "name": f"op {n}", "pid": 1, "tid": n % 3, "ts": n * 10, "dur": 5} for n in range(30)]
    source.write_text(json.dumps({"traceEvents": few}), encoding="utf-8")
    return Race(
        {
            PYTHON: Contestant([sys.executable, "-c", "pass"]),
            VERSION: Contestant(traceconv("--version")),
            HELP: Contestant(traceconv("--help")),
            LIBRARIES: Contestant([sys.executable, "-c", "import click, numpy, msgspec"]),
            CONVERT: Contestant(traceconv("convert", source, "-o", output), output),
        },
        f"no input, and {len(few)} events",
        {module: float(module in imported) for module in _HEAVY},
        least_turns=min(events, 11),
    )


def _imported(command: list[str]) -> set[str]:
    """The modules that a Python command imports."""
    timed = [command[0], "-X", "importtime", *command[1:]]
    told = subprocess.run(timed, cwd=ROOT, capture_output=True, text=True, check=True).stderr
    return {line.rpartition("|")[2].strip() for line in told.splitlines() if line.startswith("import time:")}


def _soon(measured: Measured) -> Reached:
    allowed, taken = 2 * measured.cpu(PYTHON) + _MORE_S, measured.cpu(VERSION)
    return Reached(f"{taken * 1e3:.0f} of {allowed * 1e3:.0f} ms", taken / allowed)


def _light(measured: Measured) -> Reached:
    found = [module for module in _HEAVY if measured.race.info[module]]
    return Reached(" and ".join(found) or "neither", 100.0 if found else 1.0)


START = Work(
    name="start",
    title="Start",
    goals=(
        Goal(f"{VERSION}: ≤ 2 × {PYTHON} + {_MORE_S * 1e3:.0f} ms", _soon),
        Goal(f"{HELP} imports neither numpy nor protobuf", _light),
        at_most(2, CONVERT, LIBRARIES, f"{CONVERT}: ≤ 2 × {LIBRARIES}"),
    ),
    events=11,
    small=11,
    prepare=_prepare,
)

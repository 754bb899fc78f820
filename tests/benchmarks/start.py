"""What it costs to start traceconv: before it does anything, and for a conversion of a few events.

`python -m tests.benchmarks.start` prints what a conversion of a few events takes beyond `python -c pass`, step by step:
each step is a process that does what the one before does, and more. CPU time, the minimum of several runs in turns.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.frame import ROOT, Contestant, Goal, Measured, Race, Reached, Work, at_most, compete, traceconv

PYTHON, VERSION, HELP = "python -c pass", "traceconv --version", "traceconv --help"
LIBRARIES, CONVERT = "importing click, numpy, msgspec", "convert of 30 events"
_HEAVY = ("numpy", "google.protobuf")
_MORE_S = 0.060
_TURNS = 25
_EVENTS = 30


def _prepare(folder: Path, events: int) -> Race:
    """The number of events is that of the runs."""
    imported = _imported(traceconv("--help"))
    source, output = _few(folder), folder / "few.pftrace"
    return Race(
        {
            PYTHON: Contestant([sys.executable, "-c", "pass"]),
            VERSION: Contestant(traceconv("--version")),
            HELP: Contestant(traceconv("--help")),
            LIBRARIES: Contestant([sys.executable, "-c", "import click, numpy, msgspec"]),
            CONVERT: Contestant(traceconv("convert", source, "-o", output), output),
        },
        f"no input, and {_EVENTS} events",
        {module: float(module in imported) for module in _HEAVY},
        least_turns=min(events, 11),
    )


def _few(folder: Path) -> Path:
    """A trace of a few events."""
    few = [{"ph": "X", "name": f"op {n}", "pid": 1, "tid": n % 3, "ts": n * 10, "dur": 5} for n in range(_EVENTS)]
    source = folder / "few.json"
    source.write_text(json.dumps({"traceEvents": few}), encoding="utf-8")
    return source


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


def steps(folder: Path) -> dict[str, list[str]]:
    """Commands by what each does in addition to the one before."""
    arguments = ["convert", str(_few(folder)), "-f", "-q", "-o", str(folder / "few.pftrace")]
    run = f"""import atexit, sys
atexit.register(lambda: print(*(name for name, one in sys.modules.items() if getattr(one, "__spec__", None))))
sys.argv[1:] = {arguments!r}
from traceconv.__main__ import main; main()"""
    told = subprocess.run([sys.executable, "-c", run], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    loaded = [name for name in told.split() if name != "__main__" and not name.startswith("_")]
    own = [name for name in loaded if name.partition(".")[0] == "traceconv"]
    libraries = ["click", "msgspec", "numpy"]
    # As the command does: without threads of BLAS, and without collecting garbage, at the end neither.
    imports = "import gc, os; gc.disable(); os.environ['OPENBLAS_NUM_THREADS'] = '1'\n"
    imports += "from importlib import import_module as load\nfor name in {}: load(name)\ngc.freeze()"
    return {
        PYTHON: [sys.executable, "-c", "pass"],
        "importing click, msgspec and numpy": [sys.executable, "-c", imports.format(libraries)],
        "the rest of the standard library": [
            sys.executable,
            "-c",
            imports.format(libraries + [name for name in loaded if name not in own and "." not in name]),
        ],
        f"the {len(own)} modules of traceconv": [sys.executable, "-c", imports.format(libraries + loaded)],
        f"the conversion of {_EVENTS} events": traceconv(*arguments),
    }


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name:
        commands = steps(Path(name))
        measured = compete(Race({step: Contestant(command) for step, command in commands.items()}, ""), _TURNS)
    least = {step: min(cost.cpu_s for cost in measured.runs[step]) for step in commands}
    before = first = least[PYTHON]
    for step in list(commands)[1:]:
        print(f"{(least[step] - before) * 1e3:6.0f} ms  {step}")
        before = least[step]
    print(f"{(before - first) * 1e3:6.0f} ms  together")


if __name__ == "__main__":
    main()

"""Measures the conversion of a generated trace in one run: `python -m tests.benchmarks --events 500000`.

Each contestant runs as a process of its own, in turns, and the kernel tells what it took: CPU seconds (user and
system) and the peak of its resident memory. The median runs are printed, beside their ratio to `orjson.loads` of
the same file. Needs `pip install traceconv[bench]` and a POSIX system. This process stays small on purpose: the
kernel counts the memory that a child had before it became another program, too.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.count import count_slices
from tests.benchmarks.generate import Summary, generate

_ROOT = Path(__file__).resolve().parents[2]
# ru_maxrss counts KiB on Linux and bytes on macOS.
_MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass
class Cost:
    """What one run took."""

    user_s: float
    system_s: float
    peak_bytes: int

    @property
    def cpu_s(self) -> float:
        """User and system time: getting memory from the kernel is part of the cost."""
        return self.user_s + self.system_s


def main() -> None:
    """Generate, measure in turns, verify, print."""
    args = _arguments()
    if importlib.util.find_spec("orjson") is None:
        sys.exit("orjson is missing\nhint: pip install traceconv[bench]")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "trace.json"
        summary = generate(source, args.events, pretty=not args.compact, seed=args.seed, begin_end=args.begin_end)
        print(f"{summary.events} events, {summary.slices} slices, {summary.bytes / 1e6:.1f} MB", flush=True)
        commands = _commands(source, Path(folder))
        if args.begin_end:
            del commands["TraceProtoBuilder"]  # knows complete events only
        costs: dict[str, list[Cost]] = {name: [] for name in commands}
        for _ in range(args.repeats):
            for name, command in commands.items():
                costs[name].append(measure(command))
        _print_table(costs)
        _verify(Path(folder) / "traceconv.pftrace", summary)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__.split("\n")[0])
    parser.add_argument("--events", type=int, default=500_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--compact", action="store_true", help="no white space in the JSON")
    parser.add_argument("--begin-end", action="store_true", help="slices of threads as pairs of begin and end events")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def _commands(source: Path, folder: Path) -> dict[str, list[str]]:
    contestant = [sys.executable, "-m", "tests.benchmarks.contestants"]
    return {
        "orjson.loads": [*contestant, "load_only", str(source), os.devnull],
        "traceconv": [
            sys.executable,
            "-m",
            "traceconv",
            "convert",
            str(source),
            "-o",
            str(folder / "traceconv.pftrace"),
        ],
        "TraceProtoBuilder": [*contestant, "proto_builder", str(source), str(folder / "builder.pftrace")],
    }


def measure(command: list[str]) -> Cost:
    """Run a command from the top of the repository; its output goes nowhere, a failure ends the benchmark."""
    _remove_outputs(command)
    pid = os.fork()
    if pid == 0:
        _become(command)
    _, status, usage = os.wait4(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code:
        sys.exit(f"exit code {code} from: {' '.join(command)}")
    return Cost(usage.ru_utime, usage.ru_stime, usage.ru_maxrss * _MAXRSS_UNIT)


def _remove_outputs(command: list[str]) -> None:
    # Each round writes anew.
    output = Path(command[-1])
    if output.suffix == ".pftrace":
        output.unlink(missing_ok=True)


def _become(command: list[str]) -> None:
    try:
        os.chdir(_ROOT)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.execv(command[0], command)
    finally:
        os._exit(127)


def _median(runs: list[Cost]) -> Cost:
    """The run in the middle by CPU time (the upper one of two), so that its figures belong together."""
    return sorted(runs, key=lambda run: run.cpu_s)[len(runs) // 2]


def _print_table(costs: dict[str, list[Cost]]) -> None:
    medians = {name: _median(runs) for name, runs in costs.items()}
    base = medians["orjson.loads"]
    print(f"{'':20}{'CPU s':>10}{'ratio':>8}{'user s':>10}{'peak MB':>10}{'ratio':>8}  CPU s, all runs")
    for name, cost in medians.items():
        runs = " ".join(f"{run.cpu_s:.2f}" for run in costs[name])
        print(
            f"{name:20}{cost.cpu_s:10.2f}{cost.cpu_s / base.cpu_s:8.2f}{cost.user_s:10.2f}"
            f"{cost.peak_bytes / 1e6:10.0f}{cost.peak_bytes / base.peak_bytes:8.2f}  {runs}"
        )


def _verify(output: Path, summary: Summary) -> None:
    slices = count_slices(output)
    print(f"{output.name}: {output.stat().st_size / 1e6:.1f} MB, {slices} slices")
    if slices != summary.slices:
        sys.exit(f"traceconv wrote {slices} slices, the input has {summary.slices}")


if __name__ == "__main__":
    main()

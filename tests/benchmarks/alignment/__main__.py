"""Prints how well clocks are related beside what is to reach: `python -m tests.benchmarks.alignment`.

Simulated pairs come from seeds of 1000 and up, on which no threshold was chosen. Recordings are of this machine's
tools, with the truth that the recorded programs read from the clocks. `--quick` takes some minutes, all of it about
half an hour on one core. `--record` keeps the figures in recorded.json and in docs/alignment.md. `--only NAME` measures
one row (several of them: given several times), and records it among those that are recorded.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Sequence

import numpy as np

from tests.benchmarks.__main__ import processor
from tests.benchmarks.alignment.figures import Figures, load, recording_rows, save, table, with_rows
from tests.benchmarks.alignment.recordings import Attempt, attempts, exact_attempts
from tests.benchmarks.alignment.rows import RECORDED, Row, all_rows
from tests.benchmarks.alignment.trials import FIRST_SEED
from tests.benchmarks.record import laid_out
from traceconv import __version__
from traceconv.kernel import COMPILED


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.alignment", description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=1000, help="how many simulated pairs")
    parser.add_argument("--quick", action="store_true", help="few pairs, and none of a million events")
    parser.add_argument("--record", action="store_true", help="keep the figures, in docs/alignment.md, too")
    parser.add_argument("--only", action="append", default=[], metavar="ROW", help="measure this row only")
    args = parser.parse_args(arguments)
    if args.record and args.quick:
        parser.error("--record is for all of it, not for --quick")
    seeds = min(args.seeds, 60) if args.quick else args.seeds
    recorded = attempts() if not args.only or RECORDED.intersection(args.only) else []
    rows = measured(seeds, args.quick, recorded, args.only)
    print(*table(rows), sep="\n")
    if args.only:
        if args.record:
            save(with_rows(load(), rows))
        return
    print("\nRecordings, with the error against what the recorded programs knew:")
    print_recordings(recorded)
    if args.record:
        save(Figures(header(seeds), rows, recording_rows(recorded)))


def header(seeds: int) -> list[str]:
    """What is measured, and with what."""
    return [
        f"{seeds} simulated pairs (seeds {FIRST_SEED} to {FIRST_SEED + seeds - 1}), a tenth of that in the other rows",
        f"{processor()}, {os.cpu_count()} CPUs, {platform.system()} {platform.machine()}",
        f"{platform.python_implementation()} {platform.python_version()}, numpy {np.__version__}, traceconv "
        f"{__version__}, kernel {'compiled' if COMPILED else 'not compiled'}",
    ]


def measured(seeds: int, quick: bool, recorded: Sequence[Attempt], only: Sequence[str] = ()) -> list[Row]:
    """All rows, or some; what is being measured is said on stderr, since it takes a while."""
    found = []
    exact = exact_attempts() if not only or "exact" in only else []
    rows = all_rows(seeds, quick, recorded, exact)
    if unknown := set(only) - set(rows):
        raise SystemExit(f"no row is called {', '.join(sorted(unknown))}; rows: {', '.join(rows)}")
    for name in only or rows:
        row = rows[name]()
        print(f"{row.regime}: {row.reached}", file=sys.stderr, flush=True)
        found.append(row)
    return found


def print_recordings(recorded: Sequence[Attempt]) -> None:
    """A line for each pair in each variant."""
    rows = [("recording", "files", "variant", "error", "stated", "verdict", "from, or why not")]
    for one in recorded:
        error = "refused" if one.error_ns is None else f"{one.error_ns / 1e3:.1f} µs"
        bound = "" if one.bound_ns is None else f"±{one.bound_ns / 1e3:.0f} µs"
        said = one.said if len(one.said) <= 110 else one.said[:107] + "..."
        rows.append(
            (one.recording, " + ".join(name[:12] for name in one.names), one.variant, error, bound, one.verdict, said)
        )
    print(*laid_out(rows), sep="\n")


if __name__ == "__main__":
    main()

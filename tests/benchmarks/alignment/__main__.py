"""Prints how well clocks are related beside what is to reach: `python -m tests.benchmarks.alignment`.

Simulated pairs come from seeds of 1000 and up, on which no threshold was chosen. Recordings are of this machine's
tools, with the truth that the recorded programs read from the clocks. `--quick` takes about a minute, all of it about
half an hour on one core.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tests.benchmarks.alignment.recordings import Attempt, attempts, exact_attempts
from tests.benchmarks.alignment.rows import Row, all_rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.alignment", description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=1000, help="how many simulated pairs")
    parser.add_argument("--quick", action="store_true", help="few pairs, and none of a million events")
    args = parser.parse_args(arguments)
    seeds = min(args.seeds, 60) if args.quick else args.seeds
    recorded = attempts()
    print_table([(row.regime, row.goal, row.reached, row.mark) for row in measured(seeds, args.quick, recorded)])
    print("\nRecordings, with the error against what the recorded programs knew:")
    print_recordings(recorded)


def measured(seeds: int, quick: bool, recorded: Sequence[Attempt]) -> list[Row]:
    """All rows; what is being measured is said on stderr, since it takes a while."""
    found = []
    for make in all_rows(seeds, quick, recorded, exact_attempts()):
        row = make()
        print(f"{row.regime}: {row.reached}", file=sys.stderr, flush=True)
        found.append(row)
    return found


def print_table(rows: Sequence[tuple[str, ...]], head: Sequence[str] = ("regime", "to reach", "reached", "")) -> None:
    """A table that reads well as text and as Markdown."""
    widths = [max(len(row[i]) for row in (*rows, tuple(head))) for i in range(len(head))]
    for row in (tuple(head), tuple("-" * width for width in widths), *rows):
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |")


def print_recordings(recorded: Sequence[Attempt]) -> None:
    """A line for each pair in each variant."""
    rows = []
    for one in recorded:
        error = "refused" if one.error_ns is None else f"{one.error_ns / 1e3:.1f} µs"
        bound = "" if one.bound_ns is None else f"±{one.bound_ns / 1e3:.0f} µs"
        said = one.said if len(one.said) <= 110 else one.said[:107] + "..."
        rows.append(
            (one.recording, " + ".join(name[:12] for name in one.names), one.variant, error, bound, one.verdict, said)
        )
    print_table(rows, ("recording", "files", "variant", "error", "stated", "verdict", "from, or why not"))


if __name__ == "__main__":
    main()

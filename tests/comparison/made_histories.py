"""Try `history` on series of known changes: `python -m tests.comparison.made_histories`."""

from __future__ import annotations

import numpy as np

from traceconv.comparison.change_points import change_points

RUNS = 20


def without_change(histories: int, seed: int) -> int:
    """Return in how many histories of eight equal operations, which differ with heavy tails, a change is found."""
    random = np.random.default_rng(seed)
    found = 0
    for _ in range(histories):
        series = 100 * np.exp(0.02 * random.standard_t(4, (8, RUNS)))
        found += any(change_points(series.tolist()))
    return found


def with_change(histories: int, seed: int) -> int:
    """Return in how many histories of fifty operations the change of one by 5 % is found, to within a run."""
    random = np.random.default_rng(seed)
    found = 0
    for _ in range(histories):
        series = 100 * np.exp(0.015 * random.standard_normal((50, RUNS)))
        series[3, 12:] *= 1.05
        changes = change_points(series.tolist())[3]
        found += bool(changes) and abs(changes[0].at - 12) <= 1
    return found


if __name__ == "__main__":
    print(f"{without_change(100, 5)} of 100 histories without a change have one")
    print(f"{with_change(40, 6)} of 40 changes of 5 % are found")

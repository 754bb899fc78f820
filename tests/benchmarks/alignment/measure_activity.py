"""Figures of the alignment by activity, over simulated runs.

Run it with the first seed and how many: `python -m tests.benchmarks.alignment.measure_activity 1000 100`.
"""

from __future__ import annotations

import sys

import numpy as np

from tests.benchmarks.alignment.simulate import MS, US, Run, S, Shape, Truth, as_bins, as_samples, outer, run
from traceconv.align.activity import align_bins, align_samples
from traceconv.align.estimate import Bins, Estimate, Prior, Samples

_IDLE = Shape(idle_every=10, idle_ms=30.0)
_HALF = (0.3, 0.8)
#: Name: the shape of the run, the part that is sampled, samples per second (or ms of an interval), whether a prior
#: of 1.5 ms on either side is known, whether both are of one run.
SAMPLED = {
    "full": (Shape(), None, 1000.0, False, True),
    "half": (Shape(), _HALF, 1000.0, False, True),
    "half, 1.5 ms": (Shape(), _HALF, 1000.0, True, True),
    "idle, half": (_IDLE, _HALF, 1000.0, False, True),
    "jitter 0.1 %": (Shape(jitter_iteration=0.001, gap_jitter=0.01), _HALF, 1000.0, False, True),
    "99 Hz": (Shape(), _HALF, 99.0, False, True),
    "periodic": (Shape().periodic(), _HALF, 1000.0, False, True),
    "idle, half, 1.5 ms": (_IDLE, _HALF, 1000.0, True, True),
    "other run": (_IDLE, _HALF, 1000.0, False, False),
    "other run, 1.5 ms": (_IDLE, _HALF, 1000.0, True, False),
    "other, no idle, 1.5 ms": (Shape(), _HALF, 1000.0, True, False),
}
COUNTED = {
    "10 ms, idle": (_IDLE, None, 10.0, False, True),
    "10 ms, idle, half": (_IDLE, _HALF, 10.0, False, True),
    "10 ms, half": (Shape(), _HALF, 10.0, False, True),
    "10 ms, periodic": (Shape().periodic(), _HALF, 10.0, False, True),
    "10 ms, other run": (_IDLE, _HALF, 10.0, False, False),
}


def trial(
    seed: int, counted: bool, case: tuple[Shape, tuple[float, float] | None, float, bool, bool]
) -> tuple[Estimate, float, bool]:
    """One estimate, how wrong it is in the middle of the run (ns), and whether its bounds hold there."""
    shape, part, rate, known, same = case
    rng = np.random.default_rng(seed)
    made: Run = run(rng, shape)
    truth = Truth(rng.uniform(-1000, 1000) * S, rng.uniform(-50e-6, 50e-6))
    seen_run = made if same else run(rng, shape)
    seen: Samples | Bins
    if counted:
        seen = as_bins(rng, seen_run, truth, interval_ms=rate, part=part)
    else:
        seen = as_samples(rng, seen_run, truth, hz=rate, part=part)
    slices = outer(made)
    middle = float(np.mean(slices.span))
    expected = float(truth.map(np.array([middle]))[0]) - middle - seen.zero_ns
    prior = Prior(max_drift=100e-6)
    if known:
        guess = expected + rng.uniform(-1.0, 1.0) * MS
        prior = Prior(guess - 1.5 * MS, guess + 1.5 * MS, 100e-6)
    found = align_bins(slices, seen, prior) if isinstance(seen, Bins) else align_samples(slices, seen, prior)
    low, high = found.chain.bounds(middle)
    error = float(found.chain.map(np.array([middle]))[0]) - middle - expected
    return found, error, bool(low[0] <= expected <= high[0])


def main(first: int, count: int) -> None:
    """Print a line for each scenario."""
    for counted, cases in ((False, SAMPLED), (True, COUNTED)):
        limit = 2 * MS if counted else 200 * US
        for name, case in cases.items():
            rows = [trial(seed, counted, case) for seed in range(first, first + count)]
            taken = [row for row in rows if not row[0].verdict.unusable]
            errors = np.abs(np.array([row[1] for row in taken] or [0.0])) / US
            right = sum(abs(row[1]) < limit for row in rows)
            wrong = sum(abs(row[1]) >= limit for row in taken) if case[4] else len(taken)
            print(
                f"{name:22} accepted {len(taken):3}/{count}  right {right:3}  wrong among accepted {wrong}  "
                f"error us median {np.median(errors):.1f} max {errors.max():.1f}  "
                f"covered {np.mean([row[2] for row in taken]) if taken else 0:.2f}  "
                f"margin {np.median([row[0].margin for row in rows]):.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))

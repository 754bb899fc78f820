"""How well launches and their kernels relate two clocks, on simulated runs of other seeds than the tests have.

python -m tests.benchmarks.alignment.measure_launches
"""

from __future__ import annotations

import numpy as np

from tests.align.test_launches import Made, device_file, error, host_file, judged, paced_run, related, run, without
from traceconv.model.clocks import Verdict

_RUNS, _OTHERS = range(2000, 2100), range(3000, 3025)


def main() -> None:
    """Print all tables."""
    for kind in ("idle", "busy", "copies"):
        for wrong in (0.0, 0.05):
            print(f"{kind}, {wrong:.0%} wrong ids: {_one_run(kind, wrong)}", flush=True)
    for busy in (False, True):
        for jitter in (0.2, 0.05, 0.01):
            name = "busy" if busy else "idle"
            print(f"{name}, gaps vary by {jitter:.0%}: {_other_runs(jitter, busy=busy)}", flush=True)
    for late in (0.03, 0.1, 0.3):
        made = [(paced_run(seed, late), paced_run(500 + seed, late)) for seed in _OTHERS]
        print(f"paced, whole microseconds, {late:.0%} of the requests late: {_judged(made, 0.0)}", flush=True)


def _one_run(kind: str, wrong: float) -> str:
    bounds, errors = [], []
    for seed in _RUNS:
        rng = np.random.default_rng(7000 + seed)
        offset, drift = rng.uniform(-1e9, 1e9), rng.uniform(-50e-6, 50e-6)
        made = run(seed, busy=kind == "busy", by_copies=kind == "copies")
        pair = related(host_file(made), device_file(made, offset, drift, wrong, seed))
        if pair.estimate.verdict is Verdict.OK:
            bounds.append(pair.bound_ns)
            errors.append(error(pair, offset, drift, made.calls[-1][0]))
    within = sum(far <= bound for far, bound in zip(errors, bounds, strict=True))
    return (
        f"{len(bounds)} of {len(_RUNS)} ok, {within} within the bound throughout; bound {np.median(bounds):.0f} ns in "
        f"the median, error {np.median(errors):.0f} ns, {max(errors):.0f} ns at most"
    )


def _other_runs(jitter: float, *, busy: bool) -> str:
    made = [(run(seed, busy=busy, jitter=jitter), run(500 + seed, busy=busy, jitter=jitter)) for seed in _OTHERS]
    return _judged(made, 20e-6)


def _judged(runs: list[tuple[Made, Made]], drift: float) -> str:
    right = wrong = 0
    for seed, (made, other) in enumerate(runs):
        host = host_file(made)
        right += judged(host, device_file(without(made, 0.05, seed), 1e6, drift)).verdict is Verdict.OK
        wrong += judged(host, device_file(without(other, 0.05, seed), 1e6, drift)).verdict is Verdict.OK
    return f"{right} of {len(runs)} of one run ok, {wrong} of {len(runs)} of two runs"


if __name__ == "__main__":
    main()

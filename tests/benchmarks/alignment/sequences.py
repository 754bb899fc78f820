"""How well sequences of named events are aligned, over many simulated runs of each regime.

`figures(seeds)` returns the rows of the table. A row counts what was accepted, what of that was wrong (further off than
the greatest distance within an operator), what was refused, and over the right ones the error against the truth at each
operator, whether the stated bounds hold it, and how wide they are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass, fields, replace

import numpy as np

from tests.benchmarks.alignment.simulate import US, Run, S, Shape, Truth, inner, network, outer, run
from traceconv.align.estimate import Array, Estimate, Events, Prior
from traceconv.align.geometry import F64
from traceconv.align.sequences import align_sequences
from traceconv.model.clocks import Verdict

#: A map further off than this is of another operator or iteration.
WRONG_US = 100.0

Pair = tuple[Events, Events, Truth | None, F64]


@dataclass(frozen=True, slots=True)
class Row:
    """Figures of one regime; the errors are of all operators in the overlap, over the right ones among the accepted."""

    name: str
    pairs: int
    accepted: int
    wrong: int
    refused: int
    median_us: float
    p99_us: float
    coverage: float
    width_us: float
    drift_ppm: float


def _relation(rng: np.random.Generator) -> Truth:
    return Truth(rng.uniform(-1000, 1000) * S, rng.uniform(-50, 50) * 1e-6)


def _related(shape: Shape, part: tuple[float, float] = (0.0, 1.0), missing: float = 0.3) -> Callable[[int], Pair]:
    def pair(seed: int) -> Pair:
        rng = np.random.default_rng(seed)
        made, truth = run(rng, shape), _relation(rng)
        a, (b, _) = outer(made), inner(rng, made, truth, missing=missing, part=part)
        return a, b, truth, _seen(made, shape, part)

    return pair


def _seen(made: Run, shape: Shape, part: tuple[float, float]) -> F64:
    first, last = (share * shape.iterations for share in part)
    return np.asarray(made.start[(made.iteration >= first) & (made.iteration < last)])


def _inner_first(shape: Shape) -> Callable[[int], Pair]:
    """The inner log covers everything, the outer one the last half."""

    def pair(seed: int) -> Pair:
        a, b, truth, seen = _related(shape)(seed)
        late = np.flatnonzero(a.start >= seen[len(seen) // 2])
        return a.take(late), b, truth, seen[len(seen) // 2 :]

    return pair


def _several(shape: Shape) -> Callable[[int], Pair]:
    """Each operator runs two primitives, with a pause before, between and after them."""

    def pair(seed: int) -> Pair:
        rng = np.random.default_rng(seed)
        made, truth = run(rng, shape), _relation(rng)
        a, (b, _) = outer(made), inner(rng, made, truth)
        start = np.concatenate((b.start + np.floor(b.dur * 0.2), b.start + np.floor(b.dur * 0.6)))
        order = np.argsort(start, kind="stable")
        which: Array = np.repeat([0, 1], len(b))[order]
        kind = np.tile(b.kind, 2)[order]
        dur = np.floor(np.tile(b.dur, 2) * 0.3 / US)[order] * US
        two = Events(start[order], dur, kind, b.zero_ns, b.quantum_ns, label=(2 * kind + which).astype(np.int32))
        return a, two, truth, _seen(made, shape, (0.0, 1.0))

    return pair


def _unrelated(shape: Shape, part: tuple[float, float] = (0.0, 1.0)) -> Callable[[int], Pair]:
    """Two runs of one network."""

    def pair(seed: int) -> Pair:
        rng = np.random.default_rng(seed)
        net = network(rng, shape.operators)
        one, other = run(rng, shape, net), run(rng, shape, net)
        return outer(one), inner(rng, other, _relation(rng), part=part)[0], None, np.empty(0)

    return pair


_STEADY = Shape(warm_up=0)
_HALF = (0.25, 0.75)


def _jitter(share: float) -> Shape:
    return replace(_STEADY, jitter_iteration=share, jitter_operator=2 * share, gap_jitter=share)


REGIMES: dict[str, Callable[[int], Pair]] = {
    "warm-up, full": _related(Shape()),
    "steady, full": _related(_STEADY),
    "half window": _related(_STEADY, _HALF),
    "half window, jitter 0.1 %": _related(_jitter(0.001), _HALF),
    "half window, jitter 0.01 %": _related(replace(_jitter(0.0001), outliers=0.0), _HALF),
    "half window, launch gaps of 3 us only": _related(replace(_STEADY.periodic(), operator_gap_us=3.0), _HALF),
    "half window, 60 % missing": _related(_STEADY, _HALF, 0.6),
    "five iterations": _related(replace(_STEADY, iterations=5)),
    "inner log begins first": _inner_first(_STEADY),
    "two primitives in an operator": _several(_STEADY),
    "periodic": _related(_STEADY.periodic(), _HALF),
    "two runs, warm-up": _unrelated(Shape()),
    "two runs, half window": _unrelated(_STEADY, _HALF),
    "two runs, jitter 0.1 %": _unrelated(_jitter(0.001), _HALF),
    "two runs, jitter 0.01 %": _unrelated(replace(_jitter(0.0001), outliers=0.0), _HALF),
    "two runs, five iterations": _unrelated(replace(_STEADY, iterations=5)),
}


@dataclass(frozen=True, slots=True)
class _Trial:
    error: F64
    covered: Array
    width: F64
    drift: float


def _compared(estimate: Estimate, b: Events, truth: Truth, seen: F64) -> _Trial:
    """An estimate against the truth, at the times of a where both have events."""
    true = truth.map(seen) - b.zero_ns - seen
    low, high = estimate.chain.bounds(seen)
    return _Trial(
        np.abs(estimate.chain.map(seen) - seen - true) / US,
        (low <= true) & (true <= high),
        (high - low) / US,
        abs(estimate.line.drift - truth.drift) * 1e6,
    )


def row(name: str, seeds: Iterable[int]) -> Row:
    """The figures of one regime."""
    right: list[_Trial] = []
    pairs = accepted = 0
    for seed in seeds:
        a, b, truth, seen = REGIMES[name](seed)
        estimate = align_sequences(a, b, Prior())
        pairs += 1
        if estimate.verdict is not Verdict.OK:
            continue
        accepted += 1
        if truth is not None:
            trial = _compared(estimate, b, truth, seen)
            if np.max(trial.error) <= WRONG_US:
                right.append(trial)
    if not right:
        return Row(name, pairs, accepted, accepted, pairs - accepted, *[float("nan")] * 5)
    error, covered, width = (np.concatenate([getattr(t, key) for t in right]) for key in ("error", "covered", "width"))
    return Row(
        name,
        pairs,
        accepted,
        accepted - len(right),
        pairs - accepted,
        float(np.median(error)),
        float(np.percentile(error, 99)),
        float(covered.mean()),
        float(np.median(width)),
        float(np.median([trial.drift for trial in right])),
    )


def figures(seeds: Iterable[int]) -> list[Row]:
    """The figures of all regimes."""
    seeds = list(seeds)
    return [row(name, seeds) for name in REGIMES]


def main() -> None:
    """Print the table: `python -m tests.benchmarks.alignment.sequences [FIRST [COUNT]]`."""
    first, count = (int(text) for text in (*sys.argv[1:], *("1000", "40")[len(sys.argv) - 1 :]))
    print(" | ".join(field.name for field in fields(Row)))
    for name in REGIMES:
        found = row(name, range(first, first + count))
        print(
            " | ".join(f"{value:.3g}" if isinstance(value, float) else str(value) for value in astuple(found)),
            flush=True,
        )


if __name__ == "__main__":
    main()

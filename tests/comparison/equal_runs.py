"""Compare recorded runs of equal code with one another: how often a verdict of a change is wrong, and a change found.

    python -m tests.comparison.equal_runs FOLDER [--splits N] [--seed N]

Each entry of the folder is a run, as for `diff --before-runs`. All runs are read once. Then they are divided at random
into two sides, `--splits` times; any verdict `slower` or `faster` is wrong, since the code is the same. At last, the
times of each operation are scaled so that runs differ by 1.5 % (standard deviation of the logarithms), and an operation
of ten runs is 5 % longer than in ten others. Prints how often either was told.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from traceconv.comparison.comparison import Comparison, Run, Verdict, compare
from traceconv.comparison.runs import Selection, runs_in
from traceconv.recordings import Settings, opened

_SPREAD, _SIDE, _SHARE = 0.015, 10, 5
_PLANTED = 1 + _SHARE / 100
#: The least change that has a verdict in steps of the clock, and as a share of the step.
_TICKS, _OF_STEP = 3, 0.0001
#: Medians of sides with a change of 5 % differ by less now and then.
_ROOM = 1.5


def _changes(comparison: Comparison) -> list[tuple[str, str, Verdict]]:
    return [
        (table.measure, judged.row.key[0], judged.verdict)
        for table in comparison.tables
        for judged in table.judged
        if judged.verdict in (Verdict.SLOWER, Verdict.FASTER)
    ]


def _divided(runs: Sequence[Run], random: np.random.Generator, side: int) -> tuple[list[Run], list[Run]]:
    order = random.permutation(len(runs))[: 2 * side].tolist()
    return [runs[at] for at in order[:side]], [runs[at] for at in order[side:]]


def _medians(runs: Sequence[Run]) -> dict[tuple[str, ...], list[int]]:
    """Return the value of each run for each operation that all runs have."""
    found: dict[tuple[str, ...], list[int]] = {}
    for run in runs:
        values = run.values["operations"]
        for key, median in zip(values.keys, values.medians, strict=True):
            found.setdefault(key, []).append(median)
    return {key: values for key, values in found.items() if len(values) == len(runs) and min(values) > 0}


@dataclass(frozen=True)
class _Scale:
    """How the values of an operation come nearer to their centre: (value / centre) ** power."""

    centre: float
    power: float


def _scale(values: Sequence[int]) -> _Scale:
    logarithms = [math.log(value) for value in values]
    return _Scale(math.exp(statistics.fmean(logarithms)), _SPREAD / statistics.stdev(logarithms))


def _scaled(run: Run, scales: Mapping[tuple[str, ...], _Scale], planted: tuple[str, ...] | None) -> Run:
    """Return a run of these operations alone, whose times are nearer to those of all runs; one of them is longer."""
    values = run.values["operations"]
    kept = [at for at, key in enumerate(values.keys) if key in scales]
    medians = []
    for at in kept:
        scale = scales[values.keys[at]]
        near = scale.centre * (values.medians[at] / scale.centre) ** scale.power
        medians.append(round(near * (_PLANTED if values.keys[at] == planted else 1)))
    total = sum(medians)
    scaled = replace(
        values,
        keys=[values.keys[at] for at in kept],
        sums=[median * values.steps for median in medians],
        medians=medians,
        calls=[values.calls[at] for at in kept],
        total=total * values.steps,
        median=total,
        paths=[values.paths[at] for at in kept],
        steps_of_keys=[values.steps_of_keys[at] for at in kept],
    )
    return replace(run, values={"operations": scaled})


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--splits", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    random = np.random.default_rng(arguments.seed)
    selection = Selection(("name",), "", "", "", keep_first=False)
    runs = [selection.run(selection.slices(path, opened([path], Settings()))) for path in runs_in(arguments.folder)]
    wrong = 0
    for _ in range(arguments.splits):
        found = _changes(compare(*_divided(runs, random, len(runs) // 2)))
        wrong += bool(found)
        for change in found:
            print("  wrong:", *change)
    rows = sum(len(values.keys) for values in runs[0].values.values())
    print(f"{len(runs)} runs of about {rows} rows: {wrong} of {arguments.splits} divisions name a change")

    scales = {key: _scale(values) for key, values in _medians(runs).items()}
    step_ns = sum(scale.centre for scale in scales.values())
    least = _ROOM * max(_TICKS * max(run.resolution_ns for run in runs), _OF_STEP * step_ns)
    large = [key for key, scale in scales.items() if (_PLANTED - 1) * scale.centre > least]
    if not large:
        print(f"no operation takes so long that {_SHARE} % of it are {least:.0f} ns: none can be found")
        return
    told = 0
    for _ in range(arguments.splits):
        before, after = _divided(runs, random, _SIDE)
        planted = large[int(random.integers(len(large)))]
        sides = [[_scaled(run, scales, None) for run in before], [_scaled(run, scales, planted) for run in after]]
        told += ("operations", planted[0], Verdict.SLOWER) in _changes(compare(*sides))
    print(
        f"{told} of {arguments.splits} changes of {_SHARE} % in one of {len(scales)} operations are found, with "
        f"{_SIDE} runs a side that differ by {100 * _SPREAD:.1f} % ({len(large)} take enough time)"
    )


if __name__ == "__main__":
    _main()

"""Logs of durations beside a trace with times: which events are which, and when that is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from tests.benchmarks.alignment.simulate import Run, Shape, Truth, inner, network, outer, run
from tests.golden import ROOT, Case
from traceconv.align import durations
from traceconv.align.constraints import NameMap
from traceconv.align.durations import align_durations
from traceconv.align.estimate import Array, Estimate, Events
from traceconv.align.features import shared_work
from traceconv.align.iterations import period_of, positions
from traceconv.model.clocks import Verdict

SMALL = Shape(iterations=30, operators=20, warm_up=0, jitter_iteration=0.02, jitter_operator=0.04)
NO_TIMES = Truth(0.0, 0.0)


def without_times(events: Events) -> Events:
    return structs.replace(events, start=np.zeros(len(events)))


def related(
    seed: int, shape: Shape = SMALL, missing_outer: float = 0.0, **how: object
) -> tuple[Events, Events, Array, Run, Array]:
    """Two views of one run; for each row of b the operator in the run (-1: none), and for each row of a."""
    rng = np.random.default_rng(seed)
    made = run(rng, shape)
    a = outer(made)
    b, source = inner(rng, made, NO_TIMES, **how)  # type: ignore[arg-type]
    rows = np.flatnonzero(rng.random(len(a)) >= missing_outer)
    return a.take(rows), without_times(b), source, made, rows


def right(found: Estimate, source: Array, rows: Array) -> tuple[float, float]:
    """The share of pairs that are true, and the share of true events that are found."""
    assert found.pairs is not None
    of_a, of_b = found.pairs
    good = rows[of_a] == source[of_b]
    return float(good.mean()), float(good.sum() / np.isin(source, rows).sum())


@pytest.mark.parametrize("seed", range(1000, 1004))
@pytest.mark.parametrize(
    ("missing_outer", "how", "least_found"),
    [
        (0.0, {"part": (0.25, 0.75)}, 0.9),
        (0.0, {"missing": 0.6, "extra": 0.1}, 0.8),
        (0.3, {"extra": 0.1}, 0.6),
    ],
)
def test_most_pairs_are_right(seed: int, missing_outer: float, how: dict[str, object], least_found: float) -> None:
    a, b, source, _, rows = related(seed, missing_outer=missing_outer, **how)
    found = align_durations(a, b)
    assert not found.verdict.unusable, found.reason
    precise, recall = right(found, source, rows)
    assert precise >= 0.97
    assert recall >= least_found
    assert found.margin >= durations.LEAST_MARGIN


def test_pairs_are_in_order_and_of_one_kind() -> None:
    a, b, *_ = related(1010)
    found = align_durations(a, b)
    assert found.pairs is not None
    of_a, of_b = found.pairs
    assert (np.diff(of_a) > 0).all()
    assert (np.diff(of_b) > 0).all()
    assert (a.kind[of_a] == b.kind[of_b]).all()


def test_starts_of_the_log_are_not_looked_at() -> None:
    a, b, *_ = related(1011)
    moved = structs.replace(b, start=np.random.default_rng(0).permutation(len(b)) * 1e9)
    one, other = align_durations(a, b), align_durations(a, moved)
    assert one.pairs is not None
    assert other.pairs is not None
    assert np.array_equal(one.pairs, other.pairs)


def test_durations_that_vary_much_prove_one_run() -> None:
    shape = replace(SMALL, jitter_iteration=0.05, jitter_operator=0.1)
    a, b, *_ = related(1020, shape)
    found = align_durations(a, b)
    assert found.verdict is Verdict.OK, found.reason


@pytest.mark.parametrize("seed", range(1030, 1036))
@pytest.mark.parametrize("part", [(0.0, 1.0), (0.25, 0.75)])
def test_another_run_of_the_same_network_is_never_ok(seed: int, part: tuple[float, float]) -> None:
    rng = np.random.default_rng(seed)
    shape = replace(SMALL, warm_up=2)
    net = network(rng, shape.operators)
    a = outer(run(rng, shape, net))
    b, _ = inner(rng, run(rng, shape, net), NO_TIMES, part=part)
    found = align_durations(a, without_times(b))
    assert found.verdict.unusable, found.reason


@pytest.mark.parametrize("seed", range(1040, 1044))
@pytest.mark.parametrize("part", [(0.0, 1.0), (0.25, 0.75)])
@pytest.mark.parametrize("missing_outer", [0.0, 0.3])
def test_exactly_periodic_work_is_refused(seed: int, part: tuple[float, float], missing_outer: float) -> None:
    a, b, *_ = related(seed, SMALL.periodic(), missing_outer, part=part)
    found = align_durations(a, b)
    assert found.verdict.unusable


def test_copies_of_one_iteration_are_ambiguous_by_their_spacing() -> None:
    dur = np.tile([300e3, 40e3, 60e3, 120e3, 80e3], 12)
    kind = np.tile([0, 1, 0, 1, 2], 12).astype(np.int32)
    start = np.arange(12).repeat(5) * 1e6 + np.tile([0, 310e3, 360e3, 430e3, 560e3], 12)
    a = Events(start, dur, kind, 0, 1000.0)
    b = structs.replace(a.take(np.arange(20, 40)), start=np.zeros(20), dur=dur[20:40] - 3000)
    found = align_durations(a, b)
    assert found.verdict is Verdict.AMBIGUOUS
    assert "other offsets, 1 ms apart; " in str(found.reason)
    assert found.landscape is not None
    best = float(np.max(found.landscape[1]))
    equal = np.array([rival.offset_ns for rival in found.rivals if rival.score > best - 0.01])
    assert len(equal) >= 5
    assert np.array_equal(equal, np.round(equal / 1e6) * 1e6)


@pytest.mark.parametrize("count", [0, 1, 5])
def test_few_events_are_refused(count: int) -> None:
    a, b, *_ = related(1051)
    few = b.take(np.arange(count))
    assert align_durations(a, few).verdict is Verdict.INSUFFICIENT
    assert align_durations(few, b).verdict is Verdict.INSUFFICIENT
    assert align_durations(a, structs.replace(b, dur=np.zeros(len(b)))).verdict is Verdict.INSUFFICIENT


def test_work_that_does_not_repeat_is_placed_but_not_verified() -> None:
    rng = np.random.default_rng(1052)
    made = run(rng, Shape(iterations=1, operators=200, warm_up=0))
    b, source = inner(rng, made, NO_TIMES)
    found = align_durations(outer(made), without_times(b))
    assert found.verdict is Verdict.UNVERIFIED, found.reason
    assert right(found, source, np.arange(200))[0] >= 0.97


def test_wrong_kinds_cost_only_their_own_pairs() -> None:
    a, b, source, _, rows = related(1053)
    kind = b.kind.copy()
    wrong = np.random.default_rng(0).random(len(b)) < 0.1
    kind[wrong] = (kind[wrong] + 1) % 4
    found = align_durations(a, structs.replace(b, kind=kind))
    assert not found.verdict.unusable, found.reason
    assert right(found, source, rows)[0] >= 0.97


def test_a_profile_of_a_part_of_the_log() -> None:
    a, b, source, _, _ = related(1054)
    rows = np.arange(200, 400)
    found = align_durations(a.take(rows), b)
    assert not found.verdict.unusable, found.reason
    assert right(found, source, rows)[0] >= 0.97


def test_a_band_finds_what_the_whole_table_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, *_ = related(1055, replace(SMALL, iterations=150), part=(0.2, 0.9))
    whole = align_durations(a, b)
    monkeypatch.setattr(durations, "_MOST_CELLS", 1e5)
    banded = align_durations(a, b)
    assert whole.pairs is not None
    assert banded.pairs is not None
    common = np.intersect1d(whole.pairs[1], banded.pairs[1])
    assert len(common) >= 0.98 * len(whole.pairs[1])
    of_whole = whole.pairs[0][np.searchsorted(whole.pairs[1], common)]
    of_band = banded.pairs[0][np.searchsorted(banded.pairs[1], common)]
    assert (of_whole == of_band).mean() >= 0.99


def test_the_margin_is_the_loss_of_the_best_other_way() -> None:
    """Against a table made the slow way, in which the best way is forbidden."""
    a, b, *_ = related(1056, replace(SMALL, iterations=4, operators=8))
    model = durations._wide(a, b)
    windows = durations._blocks(len(b), lambda _: (0, len(a)))
    half = 4
    path = durations._path(a, b, model, windows, half)
    table = durations._Table(a, b, model)
    whole = windows[0]
    ahead = np.array([table.entered(whole), *table.rows(table.entered(whole), whole)])
    for row in path.rows.tolist()[::7]:
        later = durations._Window(row + 1, len(b), 0, len(a))
        best = {}
        for place in range(len(a) + 1):
            scores = np.where(np.arange(len(a) + 1) >= place, ahead[row + 1][place], -np.inf)
            for after in table.rows(scores, later):
                scores = after
            best[place] = float(np.max(table.untilted(scores, whole)))
        first = int(path.match[row]) + 1
        assert max(best.values()) == pytest.approx(path.score, abs=1e-6)
        following = path.rows[path.rows > row]
        last = int(path.match[following[0]]) if len(following) else first
        far = max(score for place, score in best.items() if place <= first - half or place >= last + half)
        assert path.score - far == pytest.approx(path.margin[row], abs=1e-6)


@pytest.mark.parametrize(
    ("operators", "missing", "low", "high"), [(40, 0.0, 40, 40), (40, 0.3, 26, 30), (7, 0.0, 7, 7)]
)
def test_iterations_are_found(operators: int, missing: float, low: int, high: int) -> None:
    rng = np.random.default_rng(1060)
    made = run(rng, Shape(iterations=60, operators=operators))
    rows = np.flatnonzero(rng.random(len(made.start)) >= missing)
    events = outer(made).take(rows)
    period = period_of(events)
    assert period is not None
    assert low <= period <= high
    label = positions(events, period)
    assert (label >= 0).mean() > 0.95
    operator = rows % operators
    for number in np.unique(label[label >= 0]):
        of_it = operator[label == number]
        assert np.bincount(of_it).max() >= 0.9 * len(of_it)


def test_random_work_has_no_iterations() -> None:
    rng = np.random.default_rng(1061)
    n = 500
    events = Events(np.arange(n) * 1e5, np.exp(rng.normal(11, 1, n)), rng.integers(0, 4, n).astype(np.int32), 0, 1000.0)
    assert period_of(events) is None


def test_a_recorded_log_without_its_timestamps(tmp_path: Path) -> None:
    """DNNL under MXNet: the log has an iteration more than the profile; its timestamps say what is inside of what."""
    a, b = Case(ROOT / "merge" / "mxnet-dnnl").traces(tmp_path)
    views = shared_work(a, 0, b, 0, NameMap())
    assert views is not None
    of_a, of_b = views[0].events, views[1].events
    found = align_durations(of_a, without_times(of_b))
    assert found.verdict is Verdict.UNVERIFIED, found.reason
    assert found.pairs is not None
    start = of_b.start + (of_b.zero_ns - of_a.zero_ns)
    slack = 2000.0
    inside = (start[found.pairs[1]] >= of_a.start[found.pairs[0]] - slack) & (
        start[found.pairs[1]] <= of_a.end[found.pairs[0]] + slack
    )
    assert len(inside) >= 30
    assert inside.mean() >= 0.97

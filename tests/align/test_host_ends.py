"""What the ends of collectives show of two hosts: one job or several, a clock that was set, a drift that none has."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tests.benchmarks.alignment.host_trials import HostClock, Recorded, Script, placed, script, written
from tests.golden import ROOT
from traceconv import cli
from traceconv.align import Policy, align
from traceconv.align.constraints import Constraints
from traceconv.align.geometry import F64
from traceconv.align.host_clocks import Ends, ends_of_two
from traceconv.api import read
from traceconv.errors import InconsistentClocks, UnverifiedAlignment
from traceconv.model.columns import I64
from traceconv.model.trace import Trace

US, MS = 10**3, 10**6
#: Simulated ranks of two hosts, as Kineto writes them.
SIMULATED = Path(__file__).parents[1] / "data" / "hosts"


def ranks(name: str) -> list[Trace]:
    return [read(SIMULATED / name / f"rank{rank}.json.gz") for rank in (0, 1)]


def ends(
    count: int = 120, vary: float = 1.0, noise: float = 5.0, drift: float = 0.0, seed: int = 5
) -> tuple[I64, I64, I64]:
    """The starts and the ends on two hosts, with variation of steps and noise in µs, of three kinds in turn.

    The host that comes first waits for some ms.
    """
    random = np.random.default_rng(seed)
    kinds = np.arange(count) % 3
    true = np.cumsum(np.array([5.0, 9.0, 20.0])[kinds] * MS + vary * US * random.standard_normal(count))
    late = noise * US * random.exponential(size=(2, count))
    began = true - MS - np.where(random.integers(2, size=count) == [[0], [1]], 3 * MS * random.random(count), 0.0)
    return *(on_two_hosts(times, drift) for times in (began, true + late)), kinds


def on_two_hosts(times: F64, drift: float = 0.0) -> I64:
    """Times on the clocks of two hosts, which the second one is ahead on."""
    return np.stack((times[0], times[1] * (1 + drift) + 3.7 * MS)).astype(np.int64)


def without_waits(*left: F64) -> tuple[I64, I64]:
    """Starts and ends of collectives of 1 ms, for which no rank waits."""
    both = np.stack(left)
    return (both - MS).astype(np.int64), both.astype(np.int64)


@pytest.mark.parametrize("count", range(8))
def test_a_few_ends_show_nothing(count: int) -> None:
    assert ends_of_two(*ends(count)).shown is Ends.FEW


@pytest.mark.parametrize("vary", [0.0, 5.0, 500.0])
@pytest.mark.parametrize("drift", [0.0, 90e-6, -90e-6])
def test_ends_of_one_job(vary: float, drift: float) -> None:
    assert ends_of_two(*ends(vary=vary, drift=drift)).shown is Ends.OF_ONE_JOB


def test_ends_that_a_busy_machine_scatters_vary_together() -> None:
    assert ends_of_two(*ends(vary=2000.0, noise=500.0)).shown is Ends.OF_ONE_JOB


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("vary", [20.0, 500.0])
def test_ends_of_two_jobs(vary: float, seed: int) -> None:
    one, other = (ends(vary=vary, seed=number) for number in (seed, seed + 100))
    jobs = (np.stack((times[0], times_of_other[1])) for times, times_of_other in zip(one[:2], other[:2], strict=True))
    assert ends_of_two(*jobs, one[2]).shown is Ends.OF_NO_JOB


@pytest.mark.parametrize("seed", range(10))
def test_two_jobs_on_one_schedule_do_not_vary_together(seed: int) -> None:
    random = np.random.default_rng(seed)
    due = np.arange(120) * 15 * MS
    one, other = (due + 300 * US * random.standard_normal(120) for _ in range(2))
    assert ends_of_two(*without_waits(one, other), due * 0).shown is Ends.OF_NO_JOB


@pytest.mark.parametrize("shape", ["grows", "grows again and again", "falls at first"])
@pytest.mark.parametrize("seed", range(5))
def test_two_jobs_whose_steps_change_together_are_two(seed: int, shape: str) -> None:
    """As the steps of a script do, by 0.4 %; the ends scatter by more than single steps vary."""
    random, number = np.random.default_rng(seed), np.arange(600)
    change = {"grows": number / 600, "grows again and again": number % 60 / 60, "falls at first": np.exp(-number / 20)}
    steps = np.array([5.0, 9.0, 20.0])[number % 3] * MS * (1 + 0.004 * change[shape])
    one, other = (
        np.cumsum(steps + 5 * US * random.standard_normal(600)) + 40 * US * random.exponential(size=600)
        for _ in range(2)
    )
    found = ends_of_two(*without_waits(one, other), number % 3)
    assert found.shown is Ends.OF_NO_JOB


@pytest.mark.parametrize("paced", [True, False])
def test_two_jobs_with_the_same_input_are_two(paced: bool) -> None:
    """Their steps vary together, but no rank of one waits for those of the other."""
    random = np.random.default_rng(3)
    steps = 20 * MS + 3 * MS * random.random(120)
    late = 300 * US * random.standard_normal((2, 120))
    left = (np.cumsum(steps) + late if paced else np.cumsum(steps + late, axis=1)).astype(np.int64)
    entered = left - MS - random.integers(0, 900 * US, (2, 120))  # those of their job come later
    assert ends_of_two(entered, left, np.zeros(120, np.int64)).shown is Ends.OF_NO_JOB


@pytest.mark.parametrize(("vary", "shown"), [(260.0, Ends.OF_NO_JOB), (2000.0, Ends.OF_ONE_JOB)])
def test_scattered_ends_that_hardly_vary_together_show_no_job(vary: float, shown: Ends) -> None:
    """With many ends, chance explains no correlation of a fifth, but other causes do."""
    assert ends_of_two(*ends(1500, vary=vary, noise=500.0)).shown is shown


@pytest.mark.parametrize(
    ("noise", "wander_us", "shown"),
    [(1, 5, Ends.OF_ONE_JOB), (1, 8, Ends.UNEVEN), (5, 9, Ends.OF_ONE_JOB), (5, 13, Ends.UNEVEN)],
)
def test_close_ends_that_wander_are_uneven(noise: float, wander_us: float, shown: Ends) -> None:
    """As those of two jobs on one schedule do: by more than clocks, or by more than from one end to the next."""
    entered, left, kinds = ends(vary=0.0, noise=noise)
    slow = (wander_us * US * np.sin(np.arange(120) / 12)).astype(np.int64)
    entered[1], left[1] = entered[1] + slow, left[1] + slow
    assert ends_of_two(entered, left, kinds).shown is shown


@pytest.mark.parametrize("at", [8, 60, 108])
@pytest.mark.parametrize("by", [-900 * US, 100 * US, 20 * MS])
def test_a_clock_that_was_set(by: int, at: int) -> None:
    entered, left, kinds = ends(vary=500.0)
    for times in (entered, left):
        times[1, at:] += by
    found = ends_of_two(entered, left, kinds)
    assert (found.shown, found.after) == (Ends.SET, at - 1)
    assert abs(found.step_ns - by) < 10 * US + abs(by) / 100


@pytest.mark.parametrize("noise", [5.0, 500.0])
@pytest.mark.parametrize(("at", "back"), [(40, 80), (20, 50), (60, 68)])
def test_a_clock_that_was_set_and_set_back(at: int, back: int, noise: float) -> None:
    entered, left, kinds = ends(vary=5000.0, noise=noise)
    for times in (entered, left):
        times[1, at:back] += 4 * MS
    assert ends_of_two(entered, left, kinds).shown is Ends.UNEVEN


@pytest.mark.parametrize("drift", [300e-6, -600e-6])
def test_a_drift_that_no_clock_has(drift: float) -> None:
    found = ends_of_two(*ends(vary=500.0, drift=drift))
    assert found.shown is Ends.STEEP
    assert found.drift == pytest.approx(drift, abs=10e-6)


def test_patterns_of_steps_are_no_scatter() -> None:
    """On one GPU that processes use in turn, ends are apart by turns, alike in each step."""
    entered, left, kinds = ends(vary=5.0)
    left[1] += np.array([2200, -2200, 160])[kinds] * US
    assert ends_of_two(entered, left, kinds).shown is Ends.OF_ONE_JOB


def test_few_ends_that_scatter_tell_nothing() -> None:
    entered, left, kinds = (column[..., :20] for column in ends(vary=500.0))
    assert ends_of_two(entered, left, kinds).shown is Ends.OF_ONE_JOB
    left[1] += np.random.default_rng(1).integers(0, 2 * MS, 20)
    assert ends_of_two(entered, left, kinds).shown is Ends.FEW


# -- merges -----------------------------------------------------------------------------------------------------------


def test_ranks_of_two_jobs_are_refused() -> None:
    with pytest.raises(
        UnverifiedAlignment, match=r"rank0.json.gz, rank1.json.gz: .*different jobs.* scatter by 225 µs"
    ):
        align(ranks("two_jobs"))


def test_ranks_of_two_jobs_stay_on_their_wall_clocks_on_demand() -> None:
    line = align(ranks("two_jobs"), policy=Policy(on_ambiguous="best")).receipt[1]
    assert (line.offset_ns, line.bound_ns, line.two_hosts) == (1_795_300_000_000_000_000, None, True)


def test_a_clock_that_was_set_in_mid_run_is_no_drift() -> None:
    with pytest.raises(
        InconsistentClocks,
        match=r"clock of a host or device was set by 8[78]\d µs after 'nccl.*' at rank1.json.gz",
    ):
        align(ranks("rank_step"))


@pytest.mark.parametrize(
    ("share", "until", "by"),
    [(0.3, 1, 220), (0.35, 1, 200), (0.4, 1, 220), (0.5, 1, 150), (0.7, 1, 180), (0.3, 1, 0), (0.25, 0.4, 250)],
)
def test_the_bound_of_a_clock_that_was_set_by_less_holds_both_offsets(
    share: float, until: float, by: int, tmp_path: Path
) -> None:
    """The ends that gloo recorded scatter by more than the clock was set, and no collectives contradict each other."""
    documents = [
        json.loads(next((ROOT / f"pytorch-kineto/gloo-rank{rank}").glob("input*")).read_text()) for rank in (0, 1)
    ]
    documents[1]["host_name"] = "other"
    events = [event for event in documents[1]["traceEvents"] if event["ph"] == "X"]
    begin, end = (pick(event["ts"] for event in events) for pick in (min, max))
    for event in events:
        event["ts"] += by if share < (event["ts"] - begin) / (end - begin) <= until else 0
    for rank, document in enumerate(documents):
        (tmp_path / f"rank{rank}.json").write_text(json.dumps(document))
    found = align([read(tmp_path / f"rank{rank}.json") for rank in (0, 1)])
    line, (interval,) = found.receipt[1], found.hosts_apart
    assert line.bound_ns is not None
    assert max(abs(line.moved_ns + set_by) for set_by in (0, by * US)) <= line.bound_ns < 650 * US
    assert by or line.bound_ns < 170 * US
    assert interval.least_ns <= (by if share < 0.5 < until else 0) * US <= interval.most_ns


@pytest.mark.parametrize(("after", "by"), [(0, 700), (2, -700), (-4, 700), (-2, -700), (0, 0)])
def test_the_bound_of_a_clock_that_was_set_beside_the_first_or_last_few_holds(after: int, by: int) -> None:
    """Nothing tells this from a few collectives that were delayed."""
    random = np.random.default_rng(5)
    work = Script(30, np.array([5.0, 9.0, 20.0]) * MS, np.full(3, 300.0) * US, 300.0 * US, 500.0 * US, False)
    ranks = work.job(random)
    other = HostClock(set_at=float(ranks[1].leaves[after]) + 1, set_by=by * US)
    found = placed(Recorded(ranks, (HostClock(), other)), random)
    assert found.bound_ns is not None
    assert found.error_ns < found.bound_ns < (abs(by) + 450) * US


def test_no_option_makes_a_bound_of_two_hosts() -> None:
    """Without numbers, and with steps missing on both sides, it is not known which collectives are one."""
    traces = ranks("uneven_cut")
    with pytest.raises(UnverifiedAlignment, match="not certain which records are one collective"):
        align(traces)
    line = align(traces, constraints=Constraints(offsets={1: 0})).receipt[1]
    assert (line.bound_ns, line.verdict, line.two_hosts) == (None, "assumed", True)


@pytest.mark.parametrize("seed", [24, 35, 55])
def test_collectives_that_stay_impossible_doubt_the_hosts_that_they_placed(seed: int, tmp_path: Path) -> None:
    """The clock of a device is early for three collectives, which have no numbers."""
    random = np.random.default_rng([11, seed])
    one, other = script(random).job(random)
    clocks = HostClock(), HostClock(float(random.uniform(-5, 5)) * MS, float(random.uniform(-40e-6, 40e-6)))
    middle, early = len(other.enters) // 2, np.zeros(len(other.enters))
    early[middle : middle + 3] = -float(random.choice((150, 300, 600, 1500))) * US
    other = replace(other, enters=other.enters + early, leaves=other.leaves + early)
    paths = written(Recorded([one, other], clocks, seq=False), tmp_path, random)
    result = CliRunner().invoke(cli.cli, ["align", *map(str, paths)])
    assert isinstance(result.exception, UnverifiedAlignment)
    assert "no offset makes all of them possible" in str(result.exception)

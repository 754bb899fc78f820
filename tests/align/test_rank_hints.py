"""What is proposed for ranks of two hosts that recorded too little to be placed, and rough options of the user."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks.alignment.host_trials import HostClock, Rank, Recorded, Script, written
from traceconv.align import align
from traceconv.align.causality import believed, causality
from traceconv.align.checks import Breaches
from traceconv.align.constraints import Constraints
from traceconv.api import read
from traceconv.cli.options import _ns
from traceconv.errors import AlignmentError
from traceconv.model.numbers import parse_duration

US, MS, SECOND = 10**3, 10**6, 10**9
DOUBT = "the ends of these collectives do not show one job; if they are of one, with --offset rank1.json="


def script(steps: int, jitter: int = 100 * US) -> Script:
    return Script(steps, np.array([2.0 * MS]), np.array([80.0 * US]), 50.0 * US, float(jitter), paced=False)


def merged(
    recorded: Recorded, folder: Path, constraints: Constraints | None = None
) -> tuple[Breaches, str, int | None]:
    """How the collectives of the two files are out of order, the warnings, and the bound of the second one."""
    traces = [read(path) for path in written(recorded, folder, np.random.default_rng(8))]
    alignment = align(traces, constraints=constraints or recorded.constraints)
    checked = causality(traces, alignment)
    line = believed(alignment, checked).receipt[1]
    return checked.checks[-1].after, " ".join(map(str, line.warnings)), line.bound_ns


def hint(recorded: Recorded, folder: Path) -> str:
    with pytest.raises(AlignmentError) as found:
        merged(recorded, folder)
    return str(found.value.hint)


@pytest.mark.parametrize("skew", [0, 1_500 * US, -300 * US])
@pytest.mark.parametrize("seed", range(5))
def test_a_proposed_offset_holds_the_truth_of_few_collectives(skew: int, seed: int, tmp_path: Path) -> None:
    """The truth is 3 ms; the device of the second rank is ahead or behind."""
    ranks = script(6).job(np.random.default_rng(seed))
    recorded = Recorded(ranks, (HostClock(), HostClock(3.0 * MS)), (0.0, float(skew)))
    text = hint(recorded, tmp_path)
    assert text.startswith(DOUBT)
    moved, within = map(parse_duration, text.removeprefix(DOUBT).split()[0].split("~"))
    assert abs(moved + 3 * MS) <= within
    after, warnings, bound = merged(recorded, tmp_path, Constraints(offsets={1: moved}, offsets_within={1: within}))
    assert (after.count, bound) == (0, None)
    assert "impossible" not in warnings


@pytest.mark.parametrize("seed", range(8))
def test_few_collectives_of_two_jobs_are_called_that(seed: int, tmp_path: Path) -> None:
    work = script(8)
    ranks: list[Rank] = [work.job(np.random.default_rng([seed, job]))[job] for job in (0, 1)]
    text = hint(Recorded(ranks, (HostClock(), HostClock(3.0 * MS))), tmp_path)
    assert text.startswith(DOUBT) or "--offset" not in text  # it is tried first


@pytest.mark.parametrize("said", [-5.0, -6.0, -4.4])
def test_a_rough_offset_finds_recordings_that_do_not_overlap_by_it(said: float, tmp_path: Path) -> None:
    """0.3 s were recorded, the truth is 5.3 s, and the user says it to 1 s."""
    ranks = script(120).job(np.random.default_rng(4))
    recorded = Recorded(ranks, (HostClock(), HostClock(5.3 * SECOND)))
    rough = Constraints(offsets={1: round(said * SECOND)}, offsets_within={1: SECOND})
    after, _, bound = merged(recorded, tmp_path, rough)
    assert after.count == 0
    assert bound is not None
    assert bound < MS


@pytest.mark.parametrize("seq", [True, False])
def test_what_is_drawn_out_of_order_counts_within_the_room_of_an_option(seq: bool, tmp_path: Path) -> None:
    """The truth is 0.4 s away, beyond what the option leaves open; or steps are equal, so that several offsets fit."""
    ranks = script(120, 0).job(np.random.default_rng(4))
    recorded = Recorded(ranks, (HostClock(), HostClock(5.3 * SECOND)), seq=seq)
    within = SECOND // 4 if seq else SECOND
    after, warnings, bound = merged(
        recorded, tmp_path, Constraints(offsets={1: -4_900 * MS}, offsets_within={1: within})
    )
    assert after.count == 120
    assert abs(after.worst_ns - 400 * MS) < MS
    assert "120 of 120 collectives are impossible" in warnings
    assert bound is None


@pytest.mark.parametrize(
    ("skews", "said"),
    [
        ((0, 0, 0, 300), {}),
        ((0, 0, 0, 300), {3: -4_299_847}),
        ((0, 0, 0, 300), {3: -12 * MS}),
        ((0, 250, 0, 0), {}),
        ((0, 300, -100, 700), {}),
    ],
)
def test_a_hint_for_ranks_with_skewed_devices_is_right_as_it_stands(
    skews: tuple[int, ...], said: dict[int, int], tmp_path: Path
) -> None:
    """The second of two hosts is 4 ms ahead, and the devices of some ranks more; the user places one, or none."""
    ranks = replace(script(40), pauses=np.array([2.0, 4.0, 3.0]) * MS, lasting=np.full(3, 60.0 * US)).job(
        np.random.default_rng(1), size=4
    )
    clocks = [HostClock(ahead * MS) for ahead in (0.0, 0.0, 4.0, 4.0)]
    rough = Constraints(offsets=said, offsets_within=dict.fromkeys(said, 880 * US))
    recorded = Recorded(ranks, clocks, [skew * US for skew in skews], constraints=rough, per_host=2)
    told = {int(rank): _ns(value) for rank, value in re.findall(r"rank(\d)\.json=(\S+)", hint(recorded, tmp_path))}
    assert said.keys() <= told.keys()
    for rank, skew in enumerate(skews):
        move, within = told.get(rank, (0, 250 * US))
        assert abs(move + (4 * MS if rank > 1 else 0)) <= within + skew * US
    offsets, room = ({rank: value[at] for rank, value in told.items()} for at in (0, 1))
    after, warnings, _ = merged(recorded, tmp_path, Constraints(offsets=offsets, offsets_within=room))
    assert (after.count, "impossible" in warnings) == (0, False)

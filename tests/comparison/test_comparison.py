"""Comparisons of runs: verdicts, exact contributions, and how rows of both sides belong together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from traceconv.comparison.comparison import TOTAL, Comparison, Run, compare
from traceconv.comparison.rank_tests import found_change
from traceconv.comparison.run_values import Values
from traceconv.errors import UsageError

#: The operation of a simulated run that gets slower; it is 1 % of a step.
SLOWER = "op3"
Times = dict[str, int]
SECOND = 1_000_000_000
Row = dict[str, object]


def _run(times: Times, steps: int = 1, calls: dict[str, int] | None = None, around: str = "") -> Run:
    """Return a run in which each step takes these times, all inside of one slice if it is named."""
    total = sum(times.values())
    values = Values(
        [(name,) for name in times],
        [time * steps for time in times.values()],
        [*times.values()],
        [(calls or {}).get(name, 1) * steps for name in times],
        steps,
        total * steps,
        total,
        0.0,
        [((around,),) if around else () for _ in times],
        [steps for _ in times],
    )
    step = Values([("",)], [total * steps], [total], [steps], steps, total * steps, total, 0.01, [()], [steps])
    return Run("run", {"steps": step, "operations": values})


def _rows(comparison: Comparison, table: str = "diff_operations") -> dict[str, Row]:
    section = next(section for section in comparison.sections if section.name == table)
    return {str(row["name"]): row for row in section.records()}


def _noisy(random: np.random.Generator, runs: int, spread: float = 0.015, slower: float = 1.0) -> list[Run]:
    """Return runs of 100 operations, of which one is slower."""
    around = {f"op{at}": 100_000 * (1 + at % 7) for at in range(100)}
    around[SLOWER] = round(around[SLOWER] * slower)
    noise = random.lognormal(0, spread, (runs, 100))
    return [
        _run({name: round(time * each) for (name, time), each in zip(around.items(), run, strict=True)})
        for run in noise.tolist()
    ]


def test_equal_sides_have_no_verdict_of_a_change() -> None:
    random, changed = np.random.default_rng(1), 0
    for _ in range(40):
        rows = _rows(compare(_noisy(random, 10), _noisy(random, 10)))
        changed += any(row["verdict"] in ("slower", "faster") for row in rows.values())
    assert changed <= 4


def test_one_slower_operation_of_100_is_found() -> None:
    random, found = np.random.default_rng(2), 0
    for _ in range(40):
        rows = _rows(compare(_noisy(random, 10), _noisy(random, 10, slower=1.05)))
        found += rows[SLOWER]["verdict"] == "slower"
    assert found >= 38


@pytest.mark.parametrize(("spread", "found", "needed"), [(0.015, 5, 9), (0.3, 40, 44)])
def test_five_runs_a_side_say_that_they_cannot_decide_and_how_many_can(spread: float, found: int, needed: int) -> None:
    random = np.random.default_rng(3)
    comparison = compare(_noisy(random, 5, spread), _noisy(random, 5, spread, slower=1.5))
    assert {row["verdict"] for row in _rows(comparison).values()} <= {"unclear", "same"}
    (summary, *_) = comparison.sections
    assert summary.sentences[-1] == (
        "With 5 runs of each side, a change of one of 102 rows alone cannot be told: "
        f"record {needed} of each side to find a change of {found} % in one row."
    )


def test_a_run_a_side_has_differences_without_a_verdict() -> None:
    comparison = compare([_run({"a": 100, "b": 50})], [_run({"a": 300, "c": 10})])
    rows = _rows(comparison)
    assert {row["verdict"] for row in rows.values()} == {"unknown"}
    assert (rows["a"]["contribution_ns"], rows["a"]["ratio"]) == (200, 3)
    assert (rows["b"]["state"], rows["b"]["contribution_ns"], rows["b"]["after_ns"]) == ("only before", -50, None)
    assert (rows["c"]["state"], rows["c"]["contribution_ns"], rows["c"]["before_ns"]) == ("only after", 10, None)
    assert not comparison.slower(0.05, rows=True)
    assert comparison.undecided(rows=False) == [TOTAL]
    assert comparison.sections[0].sentences[-1] == (
        "With 1 run of each side, no change can be told from noise: if runs differ by as much as steps, 1.0 %, "
        "5 of each side find a change of 5 % in one row."
    )


def test_other_calls_are_other_work() -> None:
    before, after = ([_run({"a": time}, calls={"a": calls}) for time in range(1000, 1008)] for calls in (2, 3))
    rows = _rows(compare(before, after))
    assert (rows["a"]["state"], rows["a"]["verdict"]) == ("other calls", "unknown")
    assert (rows["a"]["calls_before"], rows["a"]["calls_after"]) == (2, 3)


def test_keys_of_one_side_meet_at_the_same_place() -> None:
    before = _run({"aten::cudnn_convolution": 70, "other": 5}, around="aten::_convolution")
    after = _run({"aten::miopen_convolution": 90, "other": 5}, around="aten::_convolution")
    rows = _rows(compare([before], [after]))
    row = rows["in aten::_convolution: aten::cudnn_convolution -> aten::miopen_convolution"]
    assert (row["state"], row["contribution_ns"], row["before_ns"], row["after_ns"]) == ("same place", 20, 70, 90)


@pytest.mark.parametrize("around", ["", "Net"])
def test_keys_without_a_text_are_counted(around: str) -> None:
    sides = []
    for names in ("ab", "cde"):
        values = _run(dict.fromkeys(names, 70 if "a" in names else 90)).values["operations"]
        path = ((around, "step"),)
        values = replace(values, keys=[("", name) for name in names], paths=[path for _ in names])
        sides.append([Run("run", {"operations": values})])
    comparison = compare(*sides, by=("module", "name"))
    (row,) = comparison.sections[1].rows[1:]
    assert row[:3] == (f"in {around or 'step'}: 2 x (no module) -> 3 x (no module)", "step", "same place")


def test_a_row_without_a_key_is_said_to_have_none() -> None:
    text = compare([_run({"": 70})], [_run({"": 90})], by=("shape",)).sections[0].rows[1][1]
    assert text == "Of +20 ns: (no shape) +20 ns."


def test_functions_at_other_lines_are_the_same() -> None:
    rows = _rows(compare([_run({"model.py(10): forward": 20})], [_run({"model.py(12): forward": 30})]))
    assert rows.keys() == {TOTAL, "model.py(12): forward"}
    assert (rows["model.py(12): forward"]["state"], rows["model.py(12): forward"]["contribution_ns"]) == ("", 10)


def test_functions_whose_lines_do_not_tell_them_apart_stay_apart() -> None:
    before = _run({"model.py(10): forward": 20, "model.py(50): forward": 30})
    after = _run({"model.py(12): forward": 20, "model.py(52): forward": 30})
    assert len(_rows(compare([before], [after]))) == 5


_TIMES = st.dictionaries(st.sampled_from([f"op{at}" for at in range(8)]), st.integers(0, 10**12), min_size=1)
_SIDE = st.lists(st.tuples(_TIMES, st.integers(1, 7)), min_size=1, max_size=4)


@settings(max_examples=50)
@given(before=_SIDE, after=_SIDE)
def test_contributions_add_up_and_swapped_sides_are_opposite(
    before: list[tuple[Times, int]], after: list[tuple[Times, int]]
) -> None:
    sides = [[_run(times, steps) for times, steps in side] for side in (before, after)]
    there, back = _rows(compare(sides[0], sides[1])), _rows(compare(sides[1], sides[0]))
    assert there.keys() == back.keys()
    total = there.pop(TOTAL)
    assert sum(int(str(row["contribution_ns"])) for row in there.values()) == total["contribution_ns"]
    opposite = {"slower": "faster", "faster": "slower"}
    for name, row in there.items():
        assert row["contribution_ns"] == -int(str(back[name]["contribution_ns"]))
        assert row["p"] == back[name]["p"]
        assert opposite.get(str(row["verdict"]), row["verdict"]) == back[name]["verdict"]


@pytest.mark.parametrize("slower", [1.0, 1.2])
def test_the_gate_opens_for_slower_alone(slower: float) -> None:
    random = np.random.default_rng(4)
    before = [_run({"a": round(1_000_000 * each)}) for each in random.lognormal(0, 0.005, 10)]
    after = [_run({"a": round(1_000_000 * slower * each)}) for each in random.lognormal(0, 0.005, 10)]
    comparison = compare(before, after)
    assert not comparison.undecided(rows=True)
    assert all(bool(comparison.slower(0.05, rows=rows)) == (slower > 1) for rows in (False, True))
    assert not comparison.slower(0.5, rows=True)
    assert not compare(after, before).slower(0.0, rows=True)
    verdict = _rows(comparison)["a"]["verdict"]
    assert verdict == ("slower" if slower > 1 else "same")


def _ids(comparison: Comparison) -> dict[str, str]:
    return {str(row["id"]): str(row["text"]) for row in comparison.sections[0].records()}


def test_properties_that_differ_between_the_sides_are_told() -> None:
    a100 = replace(_run({"a": 1000}), environment={"device": "A100", "with_stack": "", "driver": "1", "host": "x"})
    h100 = replace(a100, environment={"device": "H100", "with_stack": "1", "driver": "1", "threads": "8"})
    comparison = compare([a100], [h100])
    told = _ids(comparison)["environment"].partition(": ")[2]
    assert told == "device (A100 before, H100 after), with_stack (not stated before, 1 after)."
    section = next(section for section in comparison.sections if section.name == "diff_environment")
    assert section.rows == [("device", "A100", "H100"), ("with_stack", "", "1")]


def test_properties_that_differ_of_both_sides_are_in_the_table_alone() -> None:
    runs = [replace(_run({"a": 1000}), environment={"host": host}) for host in "xy"]
    comparison = compare(runs, runs)
    assert "environment" not in _ids(comparison)
    assert next(s for s in comparison.sections if s.name == "diff_environment").rows == [("host", "x; y", "x; y")]
    assert "diff_environment" not in [section.name for section in compare(runs[:1], runs[:1]).sections]


def _at(*seconds: int) -> list[Run]:
    return [replace(_run({"a": 1000}), span_ns=(each * SECOND, each * SECOND + SECOND)) for each in seconds]


def test_runs_that_were_not_recorded_in_turns_are_told() -> None:
    assert "All runs before the change were recorded earlier" in _ids(compare(_at(1, 2), _at(3, 4)))["turns"]
    assert "All runs after the change were recorded earlier" in _ids(compare(_at(3, 4), _at(1, 2)))["turns"]
    assert "turns" not in _ids(compare(_at(1, 3), _at(2, 4)))
    assert "turns" not in _ids(compare(_at(1), _at(2)))
    assert "turns" not in _ids(compare([_run({"a": 1000})] * 2, _at(3, 4)))


@pytest.mark.parametrize(
    ("before", "after", "resolution", "verdict"),
    [
        (1_000, 2_000, 1_000, "unclear"),
        (1_000, 2_000, 100, "slower"),
        (2_500, 6_000, 1_000, "slower"),
        (10, 20, 1, "same"),
        (1_000, 2_000, 10_000, "unclear"),
    ],
)
def test_rows_of_few_steps_of_the_clock_are_unclear(before: int, after: int, resolution: int, verdict: str) -> None:
    """A run takes 1 ms, of which 100 ns are no change."""
    sides = [
        [replace(_run({"a": time + at, "rest": 1_000_000 + at}), resolution_ns=resolution) for at in range(8)]
        for time in (before, after)
    ]
    assert _rows(compare(*sides))["a"]["verdict"] == verdict


def test_values_that_are_equal_in_all_runs_are_the_same() -> None:
    runs = [_run({"a": 1000, "": 10})] * 3
    rows = _rows(compare(runs, runs))
    assert rows.keys() == {TOTAL, "a", ""}
    assert {row["verdict"] for row in rows.values()} == {"same"}


def test_contributions_are_told_without_steps() -> None:
    before, after = (
        replace(run, values={"operations": run.values["operations"]}) for run in map(_run, ({"a": 1}, {"a": 3}))
    )
    assert _ids(compare([before], [after]))["contributions"] == "Of +2 ns: a +2 ns."


@pytest.mark.parametrize(("later", "total", "verdict"), [(800, "unclear", "slower"), (400, "same", "same")])
def test_what_few_steps_do_is_judged_by_the_mean(later: int, total: str, verdict: str) -> None:
    """The medians of a row that runs in one of four steps are 0, and those of the total do not change."""
    sides = []
    for rare in (400, later):
        values = Values(
            [("often",), ("rare",)], [4000, rare], [1000, 0], [4, 1], 4, 4000 + rare, 1000, 0.0, [(), ()], [4, 4]
        )
        steps = Values([("",)], [4000 + rare], [1000], [4], 4, 4000 + rare, 1000, 0.0, [()], [4])
        sides.append([Run(f"{run}", {"steps": steps, "operations": values}) for run in range(6)])
    comparison = compare(*sides)
    rows = _rows(comparison)
    assert [rows[name]["verdict"] for name in (TOTAL, "rare", "often")] == [total, verdict, "same"]
    assert (rows["rare"]["before_ns"], rows["rare"]["after_ns"]) == (100, later // 4)
    undecided = [f"{TOTAL} (diff_steps)", f"{TOTAL} (diff_operations)"] if total == "unclear" else []
    assert comparison.undecided(rows=True) == undecided


def test_what_takes_time_only_after_the_change_is_slower() -> None:
    runs = [[_run({"a": 10**6 + at, "b": took * (100_000 + at)}) for at in range(8)] for took in (0, 1)]
    comparison = compare(*runs)
    assert _rows(comparison)["b"]["verdict"] == "slower"
    assert comparison.slower(0.6, rows=True) == ["b (diff_operations)"]


def test_a_small_change_has_to_be_seen_above_the_least_one() -> None:
    """Of 40 comparisons with the stated change, nearly all find it."""
    random, found = np.random.default_rng(3), 0
    change = found_change(8, 8, 0.006, 100, 0.02)
    assert change is not None
    assert 0.023 < change < 0.04
    for _ in range(40):
        rows = _rows(compare(_noisy(random, 8, 0.006), _noisy(random, 8, 0.006, 1 + change)))
        found += rows[SLOWER]["verdict"] == "slower"
    assert found >= 34


def test_copies_are_told() -> None:
    runs = [replace(_run({"a": 1000}), content=("same",)) for _ in range(3)]
    assert _ids(compare(runs, runs))["copies"].startswith("4 of 6 runs are copies of others of their side")


def test_what_a_side_does_in_few_steps_is_judged_by_means() -> None:
    """Its median is 0 before the change and not after it, for as much time in as many calls."""
    sides = []
    for seldom in ([0, 0, 3, 0, 0], [1, 1, 1, 0, 0]):
        runs = []
        for at in range(6):
            steps = [1_000_000 + at, *([0] * 4)]
            times = [100_000 * each + at for each in seldom]
            values = Values(
                [("often",), ("seldom",)],
                [5 * steps[0], sum(times)],
                [steps[0], sorted(times)[2]],
                [5, 3],
                5,
                5 * steps[0] + sum(times),
                steps[0],
                0.0,
                [(), ()],
                [5, 5],
            )
            runs.append(Run("run", {"operations": values}))
        sides.append(runs)
    assert _rows(compare(*sides))["seldom"]["verdict"] == "same"


def test_a_verdict_is_none_that_its_ratio_contradicts() -> None:
    """Runs have two modes: most pairs are faster after the change, the medians say the opposite."""
    before = [_run({"a": 1_000_000 + at}) for at in range(16)] + [_run({"a": 2_000_000 + at}) for at in range(14)]
    after = [_run({"a": 500_000 + at}) for at in range(14)] + [_run({"a": 1_100_000 + at}) for at in range(16)]
    row = _rows(compare(before, after))["a"]
    assert isinstance(row["ratio"], float)
    assert (row["ratio"] < 1, row["before_ns"] < row["after_ns"], row["verdict"]) == (True, True, "unclear")


def test_sides_without_a_measure_in_common_are_refused() -> None:
    host, device = _run({"a": 5}), _run({"b": 5})
    with pytest.raises(UsageError, match="nothing to compare: before, operations are recorded, after, kernels"):
        compare(
            [replace(host, values={"operations": host.values["operations"]})],
            [replace(device, values={"kernels": device.values["operations"]})],
        )


def test_what_is_in_a_function_at_another_line_is_in_the_same_place() -> None:
    before, after = _run({"cudnn": 5}, around="m.py(1): conv"), _run({"miopen": 6}, around="m.py(9): conv")
    sides = []
    for run, line in ((before, 1), (after, 9)):
        values = run.values["operations"]
        keys = [*values.keys, (f"m.py({line}): conv",)]
        doubled = {name: [*getattr(values, name) * 2] for name in ("sums", "medians", "calls", "steps_of_keys")}
        both = replace(values, keys=keys, paths=[*values.paths, ()], **doubled)
        sides.append([Run("run", {"operations": both})])
    row = _rows(compare(*sides))["in m.py(9): conv: cudnn -> miopen"]
    assert (row["state"], row["before_ns"], row["after_ns"]) == ("same place", 5, 6)

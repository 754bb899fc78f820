"""What a run spent: against sums over single slices, and exact on real recordings of many formats."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.answers.test_sections import KINETO, event, kineto
from tests.golden import ROOT
from traceconv.answers.device_work import work
from traceconv.answers.slice_tables import SliceTable
from traceconv.answers.steps import NOT_RECORDED, step_rows
from traceconv.api import merge, on_one_clock
from traceconv.comparison.comparison import Comparison, Run, compare
from traceconv.comparison.run_values import Part, Values, part_of, run_values
from traceconv.comparison.runs import Selection
from traceconv.errors import UsageError
from traceconv.recordings import Settings, opened

#: Real recordings with steps or without, of devices and hosts.
RECORDINGS = sorted(
    path
    for format in ("pytorch-kineto", "onnxruntime", "xplane", "nvprof", "deepsparse", "onednn-verbose", "mxnet")
    for path in (ROOT / format).glob("*/input.*")
    if "pathological" not in path.parent.name
)


def _table(path: Path) -> SliceTable:
    return SliceTable(on_one_clock([str(path)])[0])


def _readable() -> list[Path]:
    return [path for path in RECORDINGS if (path.parent / "expect.txt").exists()]


@pytest.mark.parametrize("path", _readable()[::4], ids=lambda path: path.parent.name)
def test_the_times_of_all_keys_add_up(path: Path) -> None:
    table = _table(path)
    for by in (("name",), ("name", "shape")):
        for measure, values in run_values(table, by).items():
            assert sum(values.sums) == values.total, measure
            assert len(set(values.keys)) == len(values.keys)
            assert {len(key) for key in values.keys} == {len(by)}
            assert all(calls >= 0 for calls in values.calls)


@pytest.mark.parametrize("path", _readable()[::2], ids=lambda path: path.parent.name)
def test_the_parts_of_steps_add_up_to_their_durations(path: Path) -> None:
    """Of several devices, each has all of each step."""
    values = run_values(_table(path), ("name",))
    if "parts" in values:
        devices = values["parts"].steps // values["steps"].steps
        assert values["parts"].total == devices * values["steps"].total


@pytest.mark.parametrize("path", _readable()[::4], ids=lambda path: path.parent.name)
def test_steps_are_those_of_the_recording(path: Path) -> None:
    table = _table(path)
    slices, rows = table.trace.slices, step_rows(table)
    rows = rows[table.timed[rows] & table.drawn_in_time[slices.track[rows]]]
    values = run_values(table, ("name",))
    assert ("steps" in values) == bool(len(rows))
    if len(rows) and values["steps"].steps == len(rows):
        assert values["steps"].total == int(np.sum(slices.dur[rows]))
    if not len(rows) and "kernels" in values:
        assert values["kernels"].total == int(np.sum(slices.dur[work(table).rows]))


BEGIN = 1_000_000
#: The length of a step, and the starts, lengths and names of operations in it.
_STEPS = st.lists(
    st.tuples(
        st.integers(20, 60),
        st.lists(st.tuples(st.integers(0, 15), st.integers(1, 20), st.sampled_from("abc")), max_size=4),
    ),
    min_size=1,
    max_size=5,
)


def _recorded(steps: list[tuple[int, list[tuple[int, int, str]]]]) -> tuple[list[dict[str, Any]], list[dict[str, int]]]:
    """Return events of steps in a row with operations one after the other, and the self times in each step, µs."""
    events, times, at = [], [], BEGIN
    for number, (length, operations) in enumerate(steps):
        events.append(event(f"ProfilerStep#{number}", at, length, cat="user_annotation"))
        begin, self_times = at, {NOT_RECORDED: length}
        for gap, duration, name in operations:
            begin += gap
            if begin + duration > at + length:
                break
            events.append(event(f"aten::{name}", begin, duration))
            self_times[f"aten::{name}"] = self_times.get(f"aten::{name}", 0) + duration
            self_times[NOT_RECORDED] -= duration
            begin += duration
        times.append(self_times)
        at += length + 1
    return events, times


@settings(max_examples=40)
@given(steps=_STEPS, keep_first=st.booleans())
def test_sums_and_medians_of_steps(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, list[tuple[int, int, str]]]], keep_first: bool
) -> None:
    events, times = _recorded(steps)
    table = kineto(tmp_path_factory.mktemp("steps") / "k.json", events)
    values = run_values(table, ("name",), part_of(table, Part.STEPS if keep_first else Part.LATER))["operations"]
    kept = times if keep_first or len(times) == 1 else times[1:]
    assert values.steps == len(kept)
    names = {name for step in kept for name, time in step.items() if time}
    found = {
        key[0]: (total, median) for key, total, median in zip(values.keys, values.sums, values.medians, strict=True)
    }
    assert {name for name, (total, _) in found.items() if total} == names
    for name in names:
        of_steps = [1000 * step.get(name, 0) for step in kept]
        assert found[name] == (sum(of_steps), round(statistics.median(of_steps)))


def _values(tmp_path: Path, *events: dict[str, Any]) -> dict[str, Values]:
    return run_values(kineto(tmp_path / "k.json", [*events]), ("name",))


def test_what_is_as_long_as_a_step_is_in_it_wherever_the_file_has_it(tmp_path: Path) -> None:
    marks = [event(f"ProfilerStep#{at}", 1000 + 100 * at, 100, cat="user_annotation") for at in range(3)]
    values = _values(tmp_path, *(each for mark in marks for each in (event("aten::mm", mark["ts"], 100), mark)))
    assert dict(zip(values["operations"].keys, values["operations"].sums, strict=True))[("aten::mm",)] == 300_000
    assert values["parts"].keys == [("host",)]


def test_device_work_belongs_to_the_step_that_launched_it(tmp_path: Path) -> None:
    values = _values(
        tmp_path,
        event("ProfilerStep#1", 1000, 100, cat="user_annotation"),
        event("ProfilerStep#2", 1100, 100, cat="user_annotation"),
        event("aten::mm", 1010, 50),
        event("cudaLaunchKernel", 1020, 10, cat="cuda_runtime", args={"correlation": 7}),
        event("gemm", 1150, 30, pid=0, tid=7, cat="kernel", args={"correlation": 7, "device": 0, "stream": 7}),
        event("lost", 1190, 5, pid=0, tid=7, cat="kernel", args={"device": 0, "stream": 7}),
    )
    assert dict(zip(values["device"].keys, values["device"].sums, strict=True)) == {
        ("aten::mm",): 30_000,
        ("(no operator)",): 5_000,
    }
    kernels = values["kernels"]
    assert dict(zip(kernels.keys, kernels.sums, strict=True)) == {("gemm",): 30_000, ("lost",): 5_000}
    assert kernels.paths[kernels.keys.index(("gemm",))] == (("aten::mm",),)
    assert (kernels.steps, kernels.median) == (2, 17_500)


def test_a_kernel_is_where_most_of_its_time_is(tmp_path: Path) -> None:
    """Not where it was launched last, and nowhere if no operator is known to have launched it."""

    def kernel(name: str, at: int, length: int, **args: int) -> dict[str, Any]:
        return event(name, at, length, pid=0, tid=7, cat="kernel", args={"device": 0, "stream": 7, **args})

    launches = []
    for number, (operator, length) in enumerate((("aten::mm", 90), ("aten::conv", 5)), 1):
        launches += [event(operator, 1000 + 10 * number, 9)]
        launches += [event("cudaLaunchKernel", 1001 + 10 * number, 5, cat="cuda_runtime", args={"correlation": number})]
        launches += [kernel("gemm", 1000 + 100 * number, length, correlation=number)]
    kernels = _values(tmp_path, *launches, kernel("lost", 1300, 5))["kernels"]
    assert dict(zip(kernels.keys, kernels.paths, strict=True)) == {("gemm",): (("aten::mm",),), ("lost",): ()}


def test_slices_may_have_the_names_of_rows_that_are_no_slices(tmp_path: Path) -> None:
    values = _values(tmp_path, *_marks(100, count=1), event("(nothing recorded)", 1000, 30), event("(total)", 1030, 20))
    found = dict(zip(values["operations"].keys, values["operations"].sums, strict=True))
    assert found == {(NOT_RECORDED,): 50_000, ('"(nothing recorded)"',): 30_000, ('"(total)"',): 20_000}


def test_the_parts_are_those_of_the_outer_step_of_two_that_begin_together(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(
        json.dumps(
            KINETO | {"traceEvents": [event("step 1", 1000, 90), event("step 2", 1000, 40), event("mm", 1000, 9)]}
        )
    )
    values = run_values(replace(_table(tmp_path / "a.json"), step_name="step .*"), ("name",))
    assert values["parts"].total == values["steps"].total == 90_000


def test_without_steps_the_run_is_one(tmp_path: Path) -> None:
    values = _values(tmp_path, event("aten::mm", 1000, 50), event("aten::add", 1010, 20))
    assert list(values) == ["operations"]
    assert dict(zip(values["operations"].keys, values["operations"].sums, strict=True)) == {
        ("aten::mm",): 30_000,
        ("aten::add",): 20_000,
    }
    assert values["operations"].steps == 1


def test_a_path_is_where_a_key_usually_is(tmp_path: Path) -> None:
    values = _values(
        tmp_path,
        *(event("outer", 1000 + 100 * at, 50) for at in range(3)),
        *(event("inner", 1010 + 100 * at, 20) for at in range(3)),
        event("inner", 2000, 5),
    )["operations"]
    assert values.paths[values.keys.index(("inner",))] == (("outer",),)
    assert values.paths[values.keys.index(("outer",))] == ()


def _run(path: Path, events: list[dict[str, Any]], between: str = "", step_name: str = "") -> Run:
    path.write_text(json.dumps(KINETO | {"traceEvents": events}))
    selection = Selection(("name",), "", between, step_name, keep_first=False)
    return selection.run(selection.slices(path.name, opened([path], Settings())))


def _marks(apart: int, length: int = 100, count: int = 6) -> list[dict[str, Any]]:
    return [event(f"ProfilerStep#{at}", 1000 + at * apart, length, cat="user_annotation") for at in range(count)]


def test_a_run_without_steps_is_compared_with_the_whole_of_others(tmp_path: Path) -> None:
    operations = [event("aten::mm", 1000 + 100 * at, 100) for at in range(6)]
    comparison = compare(
        [_run(tmp_path / "a.json", [*_marks(100), *operations])], [_run(tmp_path / "b.json", operations)]
    )
    (table,) = comparison.tables
    assert table.total.values == ((600_000,), (600_000,))
    whole = next(row for row in comparison.sections[0].records() if row["id"] == "whole_runs")
    assert str(whole["text"]).startswith("Whole runs are compared: 1 of 2 runs have no steps, such as b.json.")


def _found(comparison: Comparison, finding: str) -> list[Any]:
    return [row["numbers"] for row in comparison.sections[0].records() if row["id"] == finding]


@pytest.mark.parametrize("several", [0, 1])
def test_first_steps_are_compared_with_first_steps(tmp_path: Path, several: int) -> None:
    """The step that warms up takes longer; a run has no other one."""
    marks = [mark | {"dur": 150 if not at else 100} for at, mark in enumerate(_marks(200))]
    runs = [_run(tmp_path / "a.json", marks[:1]), _run(tmp_path / "b.json", marks)]
    comparison = compare([runs[several]], [runs[1 - several]])
    assert comparison.tables[0].total.values == ((150_000,), (150_000,))
    assert _found(comparison, "first_steps") == [{"without": 1, "runs": 2}]
    assert not _found(comparison, "step_counts")
    fewer = _run(tmp_path / "a.json", marks[:4])
    assert _found(compare([fewer], [runs[1]]), "step_counts") == [{"before": 3, "after": 5}]


@pytest.mark.parametrize("is_one", [False, True])
def test_all_runs_have_operations_of_the_same_threads(tmp_path: Path, is_one: bool) -> None:
    """On the thread of the steps nothing runs in one or in both runs; another one runs something in both."""
    marks = _marks(100)
    other, own = ([event(name, mark["ts"], 50, tid=tid) for mark in marks] for name, tid in (("b", 2), ("a", 1)))
    before = _run(tmp_path / "a.json", [*marks, *other])
    after = _run(tmp_path / "b.json", [*marks, *other, *([] if is_one else own)])
    names = {
        table.measure: [row.key[0] for row in table.rows] for table in compare([before], [after]).tables if table.rows
    }
    of_threads = {"parts": ["host", "not recorded"], "operations": ["(nothing recorded)", "a"]}
    assert names == of_threads | ({"operations": ["b"]} if is_one else {})


def test_a_stated_name_of_steps_that_matches_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"a\.json: --step-name Step: no slice has a whole name that matches"):
        _run(tmp_path / "a.json", _marks(100), step_name="Step")


@pytest.mark.parametrize(
    ("apart", "between", "steps"),
    [
        (100, "", 5),
        (80, "", 5),  # every second one is on a lane
        (100, "ProfilerStep#2..ProfilerStep#4", 3),
        (100, "ProfilerStep#0", 1),
    ],
)
def test_the_first_step_of_each_thread_is_left_out_unless_it_is_alone(
    tmp_path: Path, apart: int, between: str, steps: int
) -> None:
    assert _run(tmp_path / "a.json", _marks(apart), between).values["steps"].steps == steps


@pytest.mark.parametrize("name", ["<function f at 0x{:x}>", "v{}"])
def test_names_that_become_the_same_have_a_median_together(tmp_path: Path, name: str) -> None:
    calls = [event(name.format(at % 2), 1000 + 100 * at, 10 + at, cat="user_annotation") for at in range(5)]
    table = kineto(tmp_path / "k.json", [*_marks(100, count=5), *calls])
    values = run_values(table, ("name",), renamed={"v0": "v", "v1": "v"})["operations"]
    at = values.keys.index(("v" if name == "v{}" else "<function f at 0x...>",))
    assert (values.medians[at], values.sums[at], values.calls[at]) == (12_000, 60_000, 5)


def test_work_of_a_merged_job_belongs_to_the_step_of_its_process(tmp_path: Path) -> None:
    """The steps of another process in the output begin between a step and its launch calls."""
    for rank in (0, 1):
        of_rank = {"pid": 10 + rank}
        events = [mark | of_rank | {"ts": mark["ts"] + 30 * rank} for mark in _marks(100)]
        for at in range(6):
            args = {"correlation": 1 + at, "device": rank, "stream": 7}
            begin = 1040 + 100 * at + 30 * rank
            events.append(event("cudaLaunchKernel", begin, 10, cat="cuda_runtime", args=args, **of_rank))
            events.append(event("gemm", begin + 5, 20 + 20 * rank, cat="kernel", pid=rank, tid=7, args=args))
        job = {"backend": "nccl", "rank": rank, "world_size": 2}
        stated = KINETO | {"baseTimeNanoseconds": 10**18, "host_name": "h", "distributedInfo": job}
        (tmp_path / f"rank{rank}.json").write_text(json.dumps(stated | {"traceEvents": events}))
    paths = [tmp_path / f"rank{rank}.json" for rank in (0, 1)]
    merged = tmp_path / "job.pftrace"
    merge([*map(str, paths)], merged)
    alone, together = (
        run_values(SliceTable(on_one_clock([*map(str, of_run)])[0]), ("name",))["kernels"]
        for of_run in (paths, [merged])
    )
    assert (alone.sums, alone.medians, round(alone.spread, 2)) == ([360_000], [30_000], 0.49)
    assert together == alone


@pytest.mark.parametrize(
    ("by", "where", "expected"),
    [
        ("rank,name", "", {("2", "a"): (70, 6), ("1", "a"): (50, 6), ("0", "a"): (50, 6)}),
        ("name", "rank=2 and name=a", {("a",): (70, 6), ("(others)",): (50, 18)}),
        ("name", "not (rank!=2 or name=b)", {("a",): (70, 6), ("(others)",): (50, 18)}),
        ("name", "name=a", {("a",): (50, 18)}),
        ("shape", "name!=a", {("(others)",): (50, 18)}),
    ],
)
def test_a_rank_has_no_part_in_the_steps_of_others(
    tmp_path: Path, by: str, where: str, expected: dict[tuple[str, ...], tuple[int, int]]
) -> None:
    """Of three ranks, the last one takes longer."""
    for rank in range(3):
        events = [mark | {"pid": 10 + rank} for mark in _marks(100)]
        events += [event("a", mark["ts"] + 5, 70 if rank == 2 else 50, pid=10 + rank) for mark in _marks(100)]
        job = {"backend": "nccl", "rank": rank, "world_size": 3}
        stated = KINETO | {"baseTimeNanoseconds": 10**18, "host_name": "h", "distributedInfo": job}
        (tmp_path / f"rank{rank}.json").write_text(json.dumps(stated | {"traceEvents": events}))
    selection = Selection(by.split(","), where, "", "", keep_first=True)
    recordings = opened(sorted(tmp_path.iterdir()), Settings())
    values = selection.run(selection.slices("job", recordings)).values["operations"]
    counts = zip((median // 1000 for median in values.medians), values.steps_of_keys, strict=True)
    found = dict(zip(values.keys, counts, strict=True))
    assert found == found | expected


@pytest.mark.parametrize("steps", [2, 3, 6])
def test_steps_are_no_place_in_which_others_are(tmp_path: Path, steps: int) -> None:
    runs = []
    for name in ("aten::c", "aten::d"):
        marks = [event(f"ProfilerStep#{at}", 1000 + at * 100, 100, cat="user_annotation") for at in range(steps)]
        runs.append(_run(tmp_path / f"{steps}.json", [*marks, *(event(name, mark["ts"] + 1, 90) for mark in marks)]))
    rows = compare(runs[:1], runs[1:]).sections[-2].records()
    states = {row["name"]: row["state"] for row in rows}
    assert states.get("aten::c") == "only before"
    assert states.get("aten::d") == "only after"

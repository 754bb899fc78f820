"""The table on ratios of a whole run, against quotients by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import traceconv
from tests.golden import ROOT
from traceconv.align import Constraints, Policy
from traceconv.answers import Questions, Section

HARDWARE = """# started on Sun Sep  9 01:46:40 2001

#           time             counts unit events
     0.100000000             50.00 msec task-clock
     0.100000000           1000000      cycles
     0.100000000           1500000      instructions
     0.100000000              4000      cache-references
     0.100000000              1000      cache-misses
     0.100000000                 0      branches
     0.100000000                 0      branch-misses
     0.100000000            900000      cycles:u
     0.200000000            150.00 msec task-clock
     0.200000000           3000000      cycles
     0.200000000            500000      instructions
     0.200000000              6000      cache-references
     0.200000000              1000      cache-misses
     0.200000000                 0      branches
     0.200000000                 0      branch-misses
     0.200000000            100000      cycles:u
"""


def _ratios(path: Path, between: str = "") -> Section:
    inputs = [traceconv.Input(path, "perf-stat")]
    *_, section = traceconv.report(inputs, Questions(["run_ratios"], between=between))
    assert section.name == "run_ratios"
    return section


def _values(section: Section) -> dict[tuple[str, str], float]:
    return {(row["name"], row["formula"]): row["value"] for row in section.records()}


def test_ratios_are_of_the_sums_over_all_intervals(tmp_path: Path) -> None:
    (tmp_path / "stat.txt").write_text(HARDWARE)
    section = _ratios(tmp_path / "stat.txt")
    found = _values(section)
    seconds = {formula: value for (name, formula), value in found.items() if name == "per second"}
    assert seconds["cache-misses / time"] == pytest.approx(2000 / 0.2)
    assert {key: value for key, value in found.items() if key[0] != "per second"} == {
        ("CPUs used", "task-clock / time"): pytest.approx(1),
        ("instructions per cycle", "instructions / cycles"): 0.5,
        ("GHz", "cycles / task-clock"): pytest.approx(0.02),
        ("miss rate", "cache-misses / cache-references"): 0.2,
        ("per 1000 instructions", "cache-misses / instructions"): 1,
        ("per 1000 instructions", "branch-misses / instructions"): 0,
    }
    assert section.notes[0] == "stat.txt: not per layer: no input has layers"


@pytest.mark.parametrize(
    ("case", "cpus"), [("text", 664.69 / 1355.723603), ("text_intervals", None), ("text_repeated", None)]
)
def test_cpus_used_are_what_perf_says(case: str, cpus: float | None) -> None:
    (path,) = (ROOT / "perf-stat" / case).glob("input.*")
    value = _values(_ratios(path))["CPUs used", "task-clock / time"]
    if cpus is not None:
        assert value == pytest.approx(cpus)
        assert "0.490 CPUs utilized" in path.read_text()
    assert 0.1 < value < 2


def test_a_run_without_a_length_is_divided_by_its_cpu_time() -> None:
    section = _ratios(ROOT / "perf-stat" / "json" / "input.json")
    found = _values(section)
    assert found["per CPU second", "page-faults / task-clock"] == pytest.approx(11_839 / 0.756961618)
    assert not any(name in ("CPUs used", "per second") for name, _ in found)
    assert section.notes[:2] == [
        "input.json: not per layer: one count for the whole run; record intervals (-I)",
        "input.json: does not state how long it ran: how many CPUs it used is not known",
    ]


def test_intervals_and_runs_of_one_file_are_apart() -> None:
    section = _ratios(ROOT / "perf-stat" / "appended" / "input.txt")
    used = [(row["counted"], row["formula"], row["value"]) for row in section.records() if row["name"] == "CPUs used"]
    assert [used[at][:2] for at in range(3)] == [
        ("intervals", "task-clock / time"),
        ("intervals", "cpu-clock / time"),
        ("whole run", "task-clock / time"),
    ], "one of the two runs has no cpu-clock"
    assert all(value < 2 for _, _, value in used)


def _profile(tmp_path: Path, dur_us: int) -> Path:
    event = {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 40, "tid": 40, "ts": 0, "dur": dur_us, "args": {}}
    profile = {"schemaVersion": 1, "baseTimeNanoseconds": 10**18, "traceEvents": [event]}
    (tmp_path / "profile.json").write_text(json.dumps(profile))
    return tmp_path / "profile.json"


def test_counts_that_are_not_aligned_are_of_no_layer(tmp_path: Path) -> None:
    (tmp_path / "stat.txt").write_text(HARDWARE)
    inputs = [_profile(tmp_path, 100_000), tmp_path / "stat.txt"]
    asked: dict[str, Any] = {"constraints": Constraints(same_machine=True), "policy": Policy(on_ambiguous="separate")}
    sections = {section.name: section for section in traceconv.report(inputs, Questions(["layers"]), **asked)}
    layer, nowhere = sorted(sections["layers"].records(), key=lambda row: str(row["name"]), reverse=True)
    assert (layer["name"], layer["cycles"], layer["ipc"]) == ("a", None, None), "not 0: nothing is known"
    assert nowhere["cycles"] == 4_000_000
    why = "stat.txt: not per layer: not aligned with the layers, or of another host, process or thread"
    assert why in sections["run_ratios"].notes
    assert _values(sections["run_ratios"])["instructions per cycle", "instructions / cycles"] == 0.5


@pytest.mark.parametrize(("dur_us", "is_said"), [(50_000, True), (100_000, False)])
def test_layers_shorter_than_an_interval_are_told(tmp_path: Path, dur_us: int, is_said: bool) -> None:
    (tmp_path / "stat.txt").write_text(HARDWARE)
    stat = traceconv.Input(tmp_path / "stat.txt", "perf-stat", offset_ns=10**18)
    section, ratios = traceconv.report([_profile(tmp_path, dur_us), stat], Questions(["layers"]))
    note = (
        "stat.txt: half of the layers last at most 50 ms, its intervals 100 ms: such layers have their share of what "
        "ran in an interval"
    )
    assert (note in section.notes) is is_said
    assert not any("not per layer" in note for note in ratios.notes)


def _of_intervals(tmp_path: Path, lines: list[str], between: str = "") -> Section:
    path = tmp_path / "intervals.txt"
    path.write_text("# started on Sat Nov 21 11:18:16 2026\n\n" + "\n".join(lines) + "\n")
    return _ratios(path, between)


def test_a_cpu_without_a_value_in_a_part_of_the_time_does_not_count(tmp_path: Path) -> None:
    """The first value of the second CPU is behind that time."""
    lines = [
        f"     {time} S0-D0-C{core} 1 {value} msec task-clock"
        for time, core, value in (("0.050115689", 0, "50.60"), ("0.100882739", 0, "50.42"), ("0.100882739", 1, "50.42"))
    ]
    values = _values(_of_intervals(tmp_path, lines, "20us..45us"))
    assert values == {("CPUs used", "task-clock / time"): pytest.approx(50.60 / 50.115689, abs=1e-4)}


@pytest.mark.parametrize(("unit", "used"), [("msec", 2), ("m{}", None)])
def test_a_ratio_of_time_needs_its_unit(unit: str, used: float | None, tmp_path: Path) -> None:
    lines = [
        f"     {time} {value} {what}"
        for time in ("0.050000000", "0.100000000")
        for value, what in (
            ("100.00", f"{unit} task-clock"),
            ("150000000", "     cycles"),
            ("300000000", "     instructions"),
        )
    ]
    values = _values(_of_intervals(tmp_path, lines))
    assert values.get(("CPUs used", "task-clock / time")) == used
    assert values.get(("GHz", "cycles / task-clock")) == (used and 1.5)
    assert values["instructions per cycle", "instructions / cycles"] == 2


def _of_run(*counts: str) -> str:
    return "\n".join(
        ["", " Performance counter stats for 'a.out':", "", *counts, "", "   2.000000000 seconds time elapsed"]
    )


_HYBRID = (
    "   9,000,000      cpu_atom/cycles/              (0.68%)",
    "   4,000,000      cpu_core/cycles/              (88.79%)",
    "   9,900,000      cpu_atom/instructions/        (0.85%)",
    "   8,000,000      cpu_core/instructions/        (88.71%)",
    "   2,000.00 msec task-clock",
    "   2,000.00 msec cpu-clock",
)


@pytest.mark.parametrize("order", [1, -1])
def test_the_kind_of_core_that_was_counted_longest_is_first(tmp_path: Path, order: int) -> None:
    """Its counts can be the smaller ones: perf scales those of counters that hardly ran."""
    (tmp_path / "stat.txt").write_text(_of_run(*_HYBRID[::order]))
    summary, *_ = traceconv.report([tmp_path / "stat.txt"], Questions(["summary", "run_ratios"]))
    assert list(summary.records()[0]["numbers"]) == [
        "task-clock / time" if order == 1 else "cpu-clock / time",
        "cpu_core/instructions/ / cpu_core/cycles/",
        f"cpu_core/{'cycles' if order == 1 else 'instructions'}/ / time",
    ], "each ratio once"


def test_the_part_that_counted_most_is_first_if_none_was_counted_longer(tmp_path: Path) -> None:
    counts = [f"   {count}      {event}" for event, count in (("cycles:u", 10), ("cycles", 30))]
    (tmp_path / "stat.txt").write_text(_of_run(*counts))
    formulas = [row["formula"] for row in _ratios(tmp_path / "stat.txt").records()]
    assert formulas == ["cycles / time", "cycles:u / time"]


def test_runs_that_are_added_up_are_counted(tmp_path: Path) -> None:
    own = [f"   {count}      cycles" for count in (1_000_000, 9_000_000)]
    other = "   5,000      cycles:u"
    (tmp_path / "stat.txt").write_text("\n".join([*map(_of_run, own), _of_run(other)]))
    summary, *_ = traceconv.report([tmp_path / "stat.txt"], Questions(["summary", "run_ratios"]))
    assert summary.records()[0]["text"].startswith(
        "Counts of 2 runs, added up, are recorded, and no slices: 2,500,000 "
    )
    section = _ratios(tmp_path / "stat.txt")
    assert [(row["formula"], row["runs"], row["value"]) for row in section.records()] == [
        ("cycles / time", 2, 2_500_000),
        ("cycles:u / time", 1, 2_500),
    ]
    assert section.notes[1:3] == [
        "stat.txt: counts of 2 runs are added up",
        "stat.txt: states no CPU time (task-clock): how many CPUs it used is not known",
    ]


@pytest.mark.parametrize("case", ["text_cpus/input.txt", "csv_cores/input.csv", "text_repeated/input.txt"])
def test_counts_of_several_cpus_are_of_one_run(case: str) -> None:
    assert {row["runs"] for row in _ratios(ROOT / "perf-stat" / case).records()} == {1}

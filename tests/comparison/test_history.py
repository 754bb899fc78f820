"""`history`: since which run operations take another time."""

from __future__ import annotations

import json
from itertools import permutations, product
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from tests import commands
from tests.answers import test_sections
from tests.comparison import made_histories
from tests.golden import ROOT
from traceconv.comparison.change_points import LEAST, _differences, can_show, change_points

SCHEMA = json.loads((ROOT.parent / "schemas" / "history.schema.json").read_text(encoding="utf-8"))
STEPS = ("--step-name", "step .*")


def divided(values: list[float]) -> list[int]:
    return [division.at for division in change_points([values])[0]]


def noisy(*levels: tuple[float, int], seed: int = 1) -> list[float]:
    random = np.random.default_rng(seed)
    return [level * (1 + 0.01 * random.standard_normal()) for level, runs in levels for _ in range(runs)]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (noisy((100, 20)), []),
        (noisy((100, 10), (110, 10)), [10]),
        (noisy((110, 10), (100, 10)), [10]),
        (noisy((100, 10), (120, 10), (100, 10)), [10, 20]),
        (noisy((100, 9), (200, 1), (100, 9)), []),  # a run astray
        ([5.0] * 20, []),
        ([0.0] * 10 + [5.0] * 10, [10]),
        (noisy((100, 2), (200, 3)), []),
    ],
)
def test_where_a_series_changed(values: list[float], expected: list[int]) -> None:
    assert divided(values) == expected
    assert divided([7 * value for value in values]) == expected
    assert divided(values[::-1]) == [len(values) - at for at in expected][::-1]


def test_the_statistic_is_that_of_the_definition() -> None:
    """Against the sums over all pairs, as they are defined."""
    values = np.random.default_rng(3).standard_normal(12)
    distances = np.abs(values[:, None] - values[None, :])
    found = _differences(distances)
    for first, end in product(range(13), repeat=2):
        sides = values[:first], values[first:end]
        if min(map(len, sides)) < LEAST:
            assert found[first, end] == 0
            continue
        between = np.mean([abs(x - y) for x in sides[0] for y in sides[1]])
        inside = [np.mean([abs(x - y) for x, y in permutations(side, 2)]) for side in sides]
        size = first * (end - first) / end
        assert np.isclose(found[first, end], size * (2 * between - sum(inside)))


def test_changes_by_chance_are_rare_and_true_ones_are_found() -> None:
    assert made_histories.without_change(12, 1) <= 2
    assert made_histories.with_change(3, 2) >= 2


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Twenty runs of twelve steps with three operations, of which one takes 30 % longer since the 13th."""
    folder, random = tmp_path / "runs", np.random.default_rng(4)
    folder.mkdir()
    for run in range(20):
        events: list[dict[str, Any]] = []
        at = 0.0
        for step in range(12):
            begin, speed = at, 1 + 0.005 * random.standard_normal()
            for name, length in (("conv", 100.0), ("mm", 130.0 if run >= 12 else 100.0), ("add", 50.0)):
                took = round(length * speed * (1 + 0.01 * random.standard_normal()), 3)
                events.append({"ph": "X", "pid": 1, "tid": 1, "name": name, "ts": at, "dur": took})
                at = round(at + took + 1, 3)
            events.append({"ph": "X", "pid": 1, "tid": 1, "name": f"step {step}", "ts": begin, "dur": at - begin})
            at += 20
        (folder / f"{run}.json").write_text(json.dumps({"traceEvents": events}))
    return folder


def test_the_run_since_which_an_operation_is_slower_is_named(runs: Path) -> None:
    result = commands.run("history", runs, *STEPS, "--json")
    found = json.loads(result.stdout)
    jsonschema.validate(found, SCHEMA)
    assert {row["name"]: row["changes"] for row in found["history"]} == {
        "(total)": 1,
        "mm": 1,
        "conv": 0,
        "add": 0,
        "(nothing recorded)": 0,
    }
    assert [row["run"] for row in found["history_runs"]] == [str(runs / f"{run}.json") for run in range(20)]
    total, change = found["history_changes"]
    assert (total["name"], change["name"], change["run"], change["number"]) == (
        "(total)",
        "mm",
        str(runs / "12.json"),
        13,
    )
    assert 1.27 < change["ratio"] < 1.33
    assert change["change_ns"] == change["after_ns"] - change["before_ns"]
    assert [row["id"] for row in found["summary"]] == ["total", "operations", "power"]
    assert "1 operation changed: mm (+" in found["summary"][1]["text"]


def test_small_changes_are_none(runs: Path) -> None:
    small = json.loads(commands.run("history", runs, *STEPS, "--min-change", "50%", "--json").stdout)
    assert not small["history_changes"]
    assert small["summary"][0]["text"].endswith(" (median), which is not found to have changed.")
    assert small["summary"][1]["numbers"]["found_share"] > 0.5


@pytest.mark.parametrize(("count", "needed"), [(5, 10), (9, 10), (10, None)])
def test_how_many_runs_could_show_a_change_is_told(runs: Path, count: int, needed: int | None) -> None:
    """Of five rows: 2 of 252 orders of ten runs have such sides, which is rarer than 1 %."""
    folder = sorted(runs.iterdir(), key=lambda path: int(path.stem))[:count]
    found = json.loads(commands.run("history", *folder, *STEPS, "--json").stdout)
    jsonschema.validate(found, SCHEMA)
    power = found["summary"][-1]
    assert (power["id"], power["numbers"]["rows"], power["numbers"].get("runs_needed")) == ("power", 5, needed)
    assert (f"{needed} or more can show one" in power["text"]) == (needed is not None)
    assert needed is not None or 0.02 < power["numbers"]["found_share"] < 0.2


@pytest.mark.parametrize("count", [7, 8])
def test_no_change_is_found_in_fewer_values_than_can_show_one(count: int) -> None:
    values = [100.0 + 0.1 * at + 100 * (at >= count // 2) for at in range(count)]
    assert bool(divided(values)) == can_show(count, 1) == (count == 8)


def test_the_page_draws_what_changed(runs: Path, tmp_path: Path) -> None:
    page = tmp_path / "history.html"
    assert commands.run("history", runs, "-o", page, "-q").returncode == 0
    text = page.read_text(encoding="utf-8")
    assert "What each run took" in text
    assert text.count("<path class=") >= 4


def test_runs_without_steps_and_small_operations_are_told(runs: Path) -> None:
    """Also of an operation that has the name of the total."""
    for path in runs.iterdir():
        document = json.loads(path.read_text())
        for event in document["traceEvents"]:
            event["name"] = {"mm": "(total)", "step 0": "begin"}.get(event["name"], event["name"])
        first = document["traceEvents"][0]
        document["traceEvents"].append(first | {"name": "short", "ts": 9_000_000, "dur": 0.002})
        path.write_text(json.dumps(document))
    whole = json.loads((runs / "0.json").read_text())
    whole["traceEvents"] = [event for event in whole["traceEvents"] if not event["name"].startswith("step")]
    (runs / "0.json").write_text(json.dumps(whole))
    found = json.loads(commands.run("history", runs, "--json").stdout)
    jsonschema.validate(found, SCHEMA)
    assert [row["id"] for row in found["summary"]] == ["whole_runs", "total", "operations", "power"]
    assert '1 operation changed: "(total)" (+' in found["summary"][2]["text"]
    assert any(note.startswith("1 operation took at most ") for note in found["notes"]["history"])


def test_wrong_calls_are_one_line(runs: Path) -> None:
    for arguments, words in (
        ([runs / "0.json"], "a history has two runs or more"),
        ([runs, "--by", "nothing"], "nothing"),
        ([runs, "--min-change", "much"], "is not a share"),
    ):
        wrong = commands.run("history", *arguments)
        assert (wrong.returncode, words in wrong.stderr, wrong.stderr.count("error:")) == (2, True, 1)


def test_runs_without_operations_of_the_host_keep_their_places(tmp_path: Path) -> None:
    def kernel(length: float) -> dict[str, Any]:
        on_device = {"pid": 0, "tid": 7, "cat": "kernel", "args": {"device": 0, "stream": 7}}
        return test_sections.event("gemm", 500, length, **on_device)

    for number in range(20):
        events = [kernel(10)] if number < 3 else [kernel(10), test_sections.event("op", 0, 200 if number > 12 else 100)]
        test_sections.kineto(tmp_path / f"{number}.json", events)
    runs = [tmp_path / f"{number}.json" for number in range(20)]
    found = json.loads(commands.run("history", *runs, "--json").stdout)
    operation = next(row for row in found["history"] if row["name"] == "op")
    assert operation["values_ns"] == [0] * 3 + [100_000] * 10 + [200_000] * 7
    assert (str(runs[13]), 14) in [(row["run"], row["number"]) for row in found["history_changes"]]
    (alone,) = (row for row in json.loads(commands.run("history", *runs[:3], "--json").stdout)["history"][1:])
    assert (alone["name"], alone["values_ns"]) == ("gemm", [10_000] * 3)


def test_runs_of_another_device_are_told(tmp_path: Path) -> None:
    for run, device in enumerate(("A100", "A100", "H100")):
        events = [test_sections.event(f"ProfilerStep#{step}", 100 * step, 90) for step in range(3)]
        properties = {"deviceProperties": [{"id": 0, "name": device}]}
        (tmp_path / f"{run}.json").write_text(json.dumps(test_sections.KINETO | properties | {"traceEvents": events}))
    found = json.loads(commands.run("history", tmp_path, "--json").stdout)
    jsonschema.validate(found, SCHEMA)
    run = str(tmp_path / "2.json")
    assert found["history_environment"] == [{"run": run, "property": "device", "before": "A100", "after": "H100"}]
    text = f"The runs were recorded in different ways: device (since {run}: H100, before A100)."
    assert text in [row["text"] for row in found["summary"]]

"""Slices that cross others of their thread, beside which they are drawn: ranges of the user, operators."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.answers.test_sections import event, kineto
from traceconv import Questions, read, report
from traceconv.answers.slice_tables import SliceTable
from traceconv.comparison.run_values import run_values


@pytest.mark.parametrize("is_crossed", [False, True])
def test_they_are_around_the_operators_in_them(tmp_path: Path, is_crossed: bool) -> None:
    """A frame that began before the range ends in it: the operators in the range are rows, and in it by --by range."""
    path = tmp_path / "a.json"
    events = [
        event("aten::addmm", 1050, 800, cat="cpu_op"),
        event("forward", 1010, 900, cat="user_annotation"),
        event("aten::relu", 2050, 100, cat="cpu_op"),
    ]
    kineto(path, [*events, *([event("enter", 1005, 10, cat="python_function")] if is_crossed else [])])
    tables = {
        by: next(section for section in report([path], Questions(by=(by,), sections=("operations",))) if section.rows)
        for by in ("name", "range")
    }
    times = {by: {row[by]: row["self_ns"] for row in table.records()} for by, table in tables.items()}
    frame = {"enter": 10_000} if is_crossed else {}
    assert times["name"] == {"aten::addmm": 800_000, "aten::relu": 100_000} | frame
    assert times["range"]["forward"] == (800_000 if is_crossed else 900_000)
    assert sum(times["range"].values()) == (910_000 if is_crossed else 1_000_000)
    ((_, found),) = run_values(SliceTable(read(path)), ("name",)).items()
    compared = dict(zip(found.keys, found.sums, strict=True))
    assert compared.get(("forward",), 0) == (0 if is_crossed else 100_000)
    assert found.total == (910_000 if is_crossed else 1_000_000)


@pytest.mark.parametrize("crossed", ["python_function", "user_annotation", "cpu_op"])
def test_launches_belong_to_operators_that_are_drawn_beside_them(tmp_path: Path, crossed: str) -> None:
    """The operator that started last and runs at the launch counts, on whichever lane it is."""
    path = tmp_path / "a.json"
    events = [event("aten::x", 1000, 100, cat=crossed), event("aten::y", 1050, 100, cat="cpu_op")]
    for number, start in enumerate((1060, 1120), 1):
        launch = event("cudaLaunchKernel", start, 5, cat="cuda_runtime", args={"correlation": number})
        args = {"correlation": number, "device": 0, "stream": 7}
        kernel = event(f"k{number}", start + 100, 10 * number, cat="kernel", tid=7, args=args)
        events += [launch, kernel | {"pid": 0}]
    kineto(path, events)
    (table,) = (section for section in report([path], Questions(sections=("operations",))) if section.rows)
    assert {row["name"]: row["device_ns"] for row in table.records() if row["device_ns"]} == {"aten::y": 30_000}

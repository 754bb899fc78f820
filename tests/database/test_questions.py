"""The questions of docs/sql.md, asked of golden inputs, and compared with `report` where it answers them, too."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import traceconv
from tests.answers.test_sections import event, kineto
from tests.golden import ROOT
from traceconv.answers import answers
from traceconv.answers.frames import Frames
from traceconv.answers.operations import NO_OPERATOR
from traceconv.database.question import ask

PAGE = ROOT.parent / "docs" / "sql.md"
TORCH = ("pytorch-kineto/torch-convnet-process/input.json",)
MERGED = (
    *TORCH,
    "onednn-verbose/torch-convnet-process/input.log",
    "perf-script/torch-convnet-process/input.txt",
)
CUDA = ("pytorch-kineto/cuda-streams/input.json",)
RANKS = ("pytorch-kineto/nccl-rank0/input.json", "pytorch-kineto/nccl-rank1/input.json")
MEMORY = ("pytorch-kineto/memory-and-stacks/input.json",)
#: The inputs that each question is asked of.
INPUTS = {
    "What took the most time?": TORCH,
    "Which calls were the longest?": TORCH,
    "How do the durations of a name spread?": TORCH,
    "How much did each thread record?": MERGED,
    "What is inside a slice?": TORCH,
    "Where did a thread record nothing?": CUDA,
    "What did each shape cost?": TORCH,
    "How long did launched work wait?": CUDA,
    "What ran while something else did?": MERGED,
    "Which functions were sampled most?": MERGED,
    "What is the peak of each counter, and when?": MEMORY,
    "Which kernels took the time of devices?": CUDA,
    "Which operators launched them?": CUDA,
    "How busy was each device?": RANKS,
    "What did launch calls cost, and which came late?": CUDA,
    "How long did steps take?": CUDA,
    "Which rank held the others up?": RANKS,
    "How do ranks differ?": RANKS,
    "How certain are the clocks?": MERGED,
    "What was lost in reading?": MERGED,
}


def questions() -> dict[str, str]:
    """Return the questions of the page, and the SQL of each."""
    return dict(re.findall(r"^\*\*(.*?)\*\*.*?^```sql\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL))


@cache
def _frames(names: tuple[str, ...]) -> Frames:
    return traceconv.frames([ROOT / name for name in names])


def answer(question: str) -> list[dict[str, Any]]:
    """Return the rows of the answer to a question of the page."""
    rows: list[dict[str, Any]] = ask(_frames(INPUTS[question]), questions()[question]).to_pylist()
    return rows


def reported(section: str, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the rows of a table of `report`."""
    frames, asked = _frames(names), traceconv.Questions(sections=[section])
    return next(found for found in answers(frames.trace, frames.aligned, asked) if found.name == section).records()


def test_each_question_has_inputs() -> None:
    assert list(questions()) == list(INPUTS)


@pytest.mark.parametrize("question", INPUTS)
def test_each_question_has_an_answer(question: str) -> None:
    assert answer(question)


def test_threads_with_lanes_record_each_instant_once(tmp_path: Path) -> None:
    times = (0, 100), (90, 110), (110, 10), (150, 50), (260, 40)
    kineto(path := tmp_path / "a.json", [event("conv", *each) for each in times])
    frames = traceconv.frames([path])
    (recorded,) = ask(frames, questions()["How much did each thread record?"]).to_pylist()
    assert (recorded["slices"], recorded["dur"]) == (5, 240_000)
    (gap,) = ask(frames, questions()["Where did a thread record nothing?"]).to_pylist()
    assert (gap["since"], gap["gap"]) == (200_000, 60_000)


def test_operations_are_those_of_the_report() -> None:
    rows = {row["name"]: row for row in reported("operations", TORCH)}
    for found in answer("What took the most time?"):
        row = rows[found["name"]]
        assert (found["calls"], found["dur"], found["self_dur"]) == (row["count"], row["total_ns"], row["self_ns"])


def test_kernels_are_those_of_the_report() -> None:
    expected = [(row["name"], row["kind"], row["count"], row["total_ns"]) for row in reported("kernels", CUDA)]
    found = [tuple(row.values()) for row in answer("Which kernels took the time of devices?")]
    assert sorted(found) == sorted(expected)


def test_device_time_of_operators_is_that_of_the_report() -> None:
    rows = reported("operations", CUDA)
    expected = {row["name"]: (row["kernels"], row["device_ns"]) for row in rows if row["kernels"]}
    found = {row["operator"]: (row["kernels"], row["device_dur"]) for row in answer("Which operators launched them?")}
    found[NO_OPERATOR] = found.pop(None)
    assert found == expected


def test_busy_times_are_those_of_the_report() -> None:
    expected = {row["device"]: row["busy_ns"] for row in reported("device", RANKS) if not row["queue"]}
    found = {row["device"]: row["busy"] for row in answer("How busy was each device?")}
    assert found.items() <= expected.items()
    assert len(found) == 2


def test_launches_are_those_of_the_report() -> None:
    columns = ("name", "count", "host_ns", "device_ns", "late")
    expected = {tuple(row[column] for column in columns) for row in reported("launches", CUDA) if row["count"]}
    assert {tuple(row.values()) for row in answer("What did launch calls cost, and which came late?")} == expected


def test_steps_are_those_of_the_report() -> None:
    columns = ("step", "start_ns", "duration_ns", "interval_ns")
    expected = [tuple(row[column] for column in columns) for row in reported("steps", CUDA)]
    assert [tuple(row.values()) for row in answer("How long did steps take?")] == expected


def test_the_ranks_that_came_last_are_those_of_the_report() -> None:
    columns = ("collective", "longest_wait_ns", "last_rank")
    expected = [tuple(row[column] for column in columns) for row in reported("collectives", RANKS)][:20]
    found = [(row["kind"], row["longest_wait"], row["last_rank"]) for row in answer("Which rank held the others up?")]
    assert sorted(found, key=str) == sorted(expected, key=str)

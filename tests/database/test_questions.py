"""The questions of docs/sql.md, asked of golden inputs, and compared with `report` where it answers them, too."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest

import traceconv
from tests.golden import ROOT
from traceconv.answers.frames import Frames
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
    asked = traceconv.Questions(sections=[section])
    return next(found for found in traceconv.report(_frames(names).trace, asked) if found.name == section).records()


def test_each_question_has_inputs() -> None:
    assert list(questions()) == list(INPUTS)


@pytest.mark.parametrize("question", INPUTS)
def test_each_question_has_an_answer(question: str) -> None:
    assert answer(question)


def test_operations_are_those_of_the_report() -> None:
    rows = {row["name"]: row for row in reported("operations", TORCH)}
    for found in answer("What took the most time?"):
        row = rows[found["name"]]
        assert (found["calls"], found["dur"], found["self_dur"]) == (row["count"], row["total_ns"], row["self_ns"])

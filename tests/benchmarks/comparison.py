"""Comparisons of large and of many small recordings, and what the questions of docs/sql.md cost."""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path

from tests.benchmarks.frame import Contestant, Goal, Measured, Race, Reached, Work, Wrong, at_most, script, traceconv
from tests.benchmarks.generate import generate
from tests.benchmarks.report import REPORT
from tests.benchmarks.to_pftrace import describe
from tests.database.test_questions import questions

DIFF, READING, QUESTIONS = "diff", "reading", "the questions of docs/sql.md"
_EVENTS_OF_RUN, _SHARE = 2000, 0.2


def _prepare(folder: Path, events: int) -> Race:
    """A trace beside itself: its copy has another name, so that both are read."""
    source, copy = folder / "before.json", folder / "after.json"
    summary = generate(source, events)
    shutil.copyfile(source, copy)
    asked, found = folder / "report.json", folder / "diff.json"
    contestants = {
        REPORT: Contestant(traceconv("report", source, "-o", asked, "--top", "0"), asked),
        DIFF: Contestant(traceconv("diff", source, copy, "-o", found, "--top", "0"), found),
    }
    return Race(contestants, f"twice {describe(summary)}", verify=partial(_verify, found, 2))


def _prepare_many(folder: Path, events: int) -> Race:
    """Small recordings, half of them of each side."""
    runs = max(events // (2 * _EVENTS_OF_RUN), 2)
    found, sides = folder / "diff.json", (folder / "base", folder / "head")
    for side in sides:
        side.mkdir()
        for number in range(runs):
            summary = generate(side / f"{number}.json", _EVENTS_OF_RUN)
    before, after = sides
    contestants = {
        READING: Contestant(script("read_all", *sorted(before.iterdir()), *sorted(after.iterdir()))),
        DIFF: Contestant(traceconv("diff", "--before-runs", before, "--after-runs", after, "-o", found), found),
    }
    return Race(contestants, f"{2 * runs} times {describe(summary)}", verify=partial(_verify, found, 2 * runs))


def _verify(found: Path, runs: int) -> list[str]:
    """Equal runs have not changed.

    Raises:
        Wrong: they have.
    """
    tables = json.loads(found.read_text(encoding="utf-8"))
    total, *rows = tables["diff_operations"]
    if len(tables["diff_runs"]) != runs or any(row["contribution_ns"] for row in (total, *rows)):
        raise Wrong(f"{len(tables['diff_runs'])} runs; equal runs differ: {total}")
    return [f"diff.json: {runs} runs, {len(rows)} operations, total {total['verdict']}"]


def _prepare_questions(folder: Path, events: int) -> Race:
    source = folder / "trace.json"
    summary = generate(source, events)
    answers = folder / "answers.json"
    contestants = {
        READING: Contestant(script("read_all", source)),
        QUESTIONS: Contestant(script("ask_all", source), stdout=answers),
    }
    info = {"questions": float(len(questions()))}
    return Race(contestants, describe(summary), info, verify=partial(_remark, answers))


def _remark(answers: Path) -> list[str]:
    spent = json.loads(answers.read_text(encoding="utf-8"))
    slowest = sorted(spent, key=spent.__getitem__)[-3:]
    return [
        f"{len(spent)} questions; the most CPU: {', '.join(f'{spent[name]:.2f} s {name}' for name in slowest[::-1])}"
    ]


def _share(measured: Measured) -> Reached:
    reading = measured.cpu(READING)
    share = (measured.cpu(QUESTIONS) - reading) / measured.race.info["questions"] / reading
    return Reached(f"{share:.2f} ×", share / _SHARE)


COMPARISON = Work(
    name="diff",
    title="Two traces compared",
    goals=(at_most(2.3, DIFF, REPORT, "≤ 2.3 × a report of one"),),
    events=500_000,
    small=100_000,
    prepare=_prepare,
)
MANY_RUNS = Work(
    name="diff-runs",
    title="40 small runs compared with 40",
    goals=(at_most(1.5, DIFF, READING),),
    events=2 * 40 * _EVENTS_OF_RUN,
    small=2 * 10 * _EVENTS_OF_RUN,
    prepare=_prepare_many,
)
SQL = Work(
    name="query",
    title="Questions in SQL",
    goals=(Goal(f"≤ {_SHARE:g} × reading, on average", _share),),
    events=1_400_000,
    small=100_000,
    prepare=_prepare_questions,
)

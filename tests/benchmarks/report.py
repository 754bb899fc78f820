"""Answers about Chrome JSON of the PyTorch profiler: what all sections of a report cost beside the conversion."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

from tests.benchmarks.frame import Contestant, Goal, Race, Work, Wrong, at_most, memory_share, traceconv
from tests.benchmarks.to_pftrace import BUDGET_BYTES, OURS, has_room, prepare, within_budget

REPORT = "report, all sections"


def _report(folder: Path, *options: str) -> Contestant:
    """The command for the trace that `prepare` generates."""
    output = folder / "report.json"
    return Contestant(traceconv("report", folder / "trace.json", "-o", output, "--top", "0", *options), output)


def _prepare(folder: Path, events: int) -> Race:
    """One trace, converted and asked."""
    race = prepare(folder, events, peers=False)
    race.contestants[REPORT] = _report(folder)
    return replace(race, verify=partial(_verify, race, folder))


def _prepare_launches(folder: Path, events: int) -> Race:
    """One trace of operators that each launch a kernel, in equal parts."""
    source, output = folder / "trace.json", folder / "traceconv.pftrace"
    operators = events // 3
    with source.open("w", encoding="utf-8") as file:
        file.write('{"schemaVersion":1,"deviceProperties":[{"id":0,"name":"Generated GPU"}],"traceEvents":[')
        for number in range(operators):
            start = 10 * number
            file.write(",\n" if number else "\n")
            file.write(
                f'{{"ph":"X","cat":"cpu_op","name":"aten::op{number % 60}","pid":1,"tid":1,"ts":{start},"dur":8,'
                f'"args":{{"External id":{number + 1}}}}},\n'
                f'{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":{start + 1},"dur":3,'
                f'"args":{{"correlation":{number + 1}}}}},\n'
                f'{{"ph":"X","cat":"kernel","name":"kernel_{number % 80}","pid":0,"tid":7,"ts":{start + 6},"dur":7,'
                f'"args":{{"correlation":{number + 1},"device":0,"stream":7}}}}'
            )
        file.write("]}\n")
    contestants = {
        OURS: Contestant(traceconv("convert", source, "-o", output), output),
        REPORT: _report(folder),
    }
    size = source.stat().st_size
    info = {"input_bytes": float(size), "slices": float(3 * operators)}
    race = Race(contestants, f"{3 * operators:,} slices, {size / 1e6:.1f} MB", info, verify=list)
    return replace(race, verify=partial(_verify, race, folder))


def _prepare_spill(folder: Path, events: int) -> Race:
    """One trace that is larger than the memory that may be used."""
    has_room(folder, events)
    race = prepare(folder, events, peers=False)
    asked = replace(_report(folder, "--memory", f"{BUDGET_BYTES // 2**20}M"), slow=True)
    return replace(race, contestants={OURS: asked}, verify=partial(_verify, race, folder))


def _verify(race: Race, folder: Path) -> list[str]:
    """Every slice is in the overview, and operations, kernels, waits and steps count each.

    Raises:
        Wrong: some are not.
    """
    tables = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    counted = sum(row["count"] or 0 for name in ("operations", "kernels", "waits") for row in tables[name])
    found = {sum(row["slices"] for row in tables["overview"]), counted + len(tables["steps"])}
    if found != {int(race.info["slices"])}:
        raise Wrong(f"the report counts {sorted(found)} slices, the input has {race.info['slices']:.0f}")
    filled = [name for name, rows in tables.items() if rows]
    return [f"report.json: all {found.pop():,} slices, {len(tables['operations'])} operations; {', '.join(filled)}"]


ANSWERS = Work(
    name="report",
    title="A report of Chrome JSON",
    goals=(
        at_most(1.5, REPORT, OURS, "≤ 1.5 × the conversion"),
        memory_share(1.5, REPORT, OURS, "peak memory ≤ 1.5 × that of the conversion"),
    ),
    events=500_000,
    small=200_000,
    prepare=_prepare,
)
ANSWERS_LAUNCHES = Work(
    name="report-launches",
    title="A report of launches and kernels",
    goals=ANSWERS.goals,
    events=500_000,
    small=200_000,
    prepare=_prepare_launches,
)
ANSWERS_SPILL = Work(
    name="report-spill",
    title="A report of Chrome JSON, --memory of 2 GB",
    goals=(Goal("an input of 5 GB passes in 2 GB", within_budget),),
    events=13_000_000,
    small=0,
    prepare=_prepare_spill,
    by_default=False,
)

"""Chrome JSON of the PyTorch profiler to .pftrace: the main work, its memory, and how both grow."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

from tests.benchmarks.count import count_slices
from tests.benchmarks.frame import (
    Contestant,
    Goal,
    Measured,
    NotMeasured,
    Race,
    Reached,
    Work,
    Wrong,
    at_most,
    faster,
    memory_for_input,
    script,
    traceconv,
)
from tests.benchmarks.generate import Summary, generate
from tests.benchmarks.judge import expect

PARSER = "orjson.loads"
FLOOR = "msgspec, args raw"
BUILDER = "TraceProtoBuilder"
OURS = "traceconv"
_LEAST = "traceconv, all in files"
BUDGET_BYTES = 2 * 10**9
_BYTES_OF_EVENT = 400
MEMORY = memory_for_input(0.8, 100e6, OURS)


def prepare(folder: Path, events: int, *, peers: bool = True) -> Race:
    """One trace; with the peers, or traceconv alone."""
    source, output = folder / "trace.json", folder / "traceconv.pftrace"
    summary = generate(source, events)
    contestants = {OURS: Contestant(traceconv("convert", source, "-o", output), output)}
    if peers:
        built = folder / "builder.pftrace"
        parse = Contestant(script("load_only", source, os.devnull), needs="orjson")
        floor = Contestant(script("load_typed", source, os.devnull))
        contestants = {PARSER: parse, FLOOR: floor} | contestants
        contestants[BUILDER] = Contestant(script("proto_builder", source, built), built, slow=True, needs="orjson")
    info = {"input_bytes": float(summary.bytes), "slices": float(summary.slices)}
    verify = partial(_verify, output, summary) if peers else partial(_verify_slices, output, summary.slices)
    return Race(contestants, describe(summary), info, verify=verify)


def describe(summary: Summary) -> str:
    """What was generated."""
    return f"{summary.events:,} events, {summary.slices:,} slices, {summary.bytes / 1e6:.1f} MB"


def _verify(output: Path, summary: Summary) -> list[str]:
    """All that was generated is in the output."""
    try:
        seen = expect(output, summary)
    except NotMeasured:  # no trace processor
        return _verify_slices(output, summary.slices)
    return [f"{output.name}: {output.stat().st_size / 1e6:.1f} MB, {seen}"]


def _verify_slices(output: Path, slices: int) -> list[str]:
    """Every slice is in an output that is too large for the trace processor.

    Raises:
        Wrong: it is not.
    """
    found = count_slices(output)
    if found != slices:
        raise Wrong(f"{output.name} has {found} slices, the input {slices}")
    return [f"{output.name}: {output.stat().st_size / 1e6:.1f} MB, all {found:,} slices"]


def _prepare_growth(folder: Path, events: int) -> Race:
    """The same kind of trace at two sizes, one ten times the other."""
    contestants, totals = {}, []
    for name, count in (("small", events // 10), ("large", events)):
        source, output = folder / f"{name}.json", folder / f"{name}.pftrace"
        totals.append(generate(source, count))
        contestants[name] = Contestant(traceconv("convert", source, "-o", output), output)
    sizes = " and ".join(f"{total.events:,} events ({total.bytes / 1e6:.0f} MB)" for total in totals)
    info = {"events small": float(totals[0].events), "events large": float(totals[1].events)}
    return Race(contestants, sizes, info, verify=partial(_verify_slices, folder / "large.pftrace", totals[1].slices))


def _growth(measured: Measured) -> Reached:
    small, large = measured.median("small"), measured.median("large")
    per_event = measured.race.info["events small"] / measured.race.info["events large"]
    ratio = large.cpu_s / small.cpu_s * per_event
    # What the operating system takes for a page depends on the machine, and on how many are asked for.
    own = large.user_s / small.user_s * per_event
    return Reached(f"{ratio:.2f} × (user time {own:.2f} ×)", ratio / 1.15)


def _prepare_spill(folder: Path, events: int) -> Race:
    """One trace that is larger than the memory that may be used; also with all that can go to files in files."""
    has_room(folder, events)
    race = prepare(folder, events, peers=False)
    ours = race.contestants[OURS]
    budgets = {OURS: f"{BUDGET_BYTES // 2**20}M", _LEAST: "1K"}
    contestants = {
        name: replace(ours, command=[*ours.command, "--memory", budget], slow=True) for name, budget in budgets.items()
    }
    return replace(race, contestants=contestants)


def has_room(folder: Path, events: int) -> None:
    """Return if a folder has room for the input, the output, and what is spilled.

    Raises:
        NotMeasured: it has not.
    """
    needed = events * _BYTES_OF_EVENT * 3
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise NotMeasured(f"{folder} has {free / 1e9:.0f} GB free, {needed / 1e9:.0f} are needed")


def within_budget(measured: Measured) -> Reached:
    """What the command took of the memory that it may use."""
    peak = measured.peak(OURS)
    return Reached(f"{peak / 1e6:.0f} MB", peak / BUDGET_BYTES)


CONVERT = Work(
    name="pftrace",
    title="Chrome JSON to pftrace",
    goals=(at_most(1.0, OURS, PARSER), faster(12, OURS, BUILDER), MEMORY),
    events=500_000,
    small=200_000,
    prepare=prepare,
)
LARGE = Work(
    name="large",
    title="Chrome JSON to pftrace, a large file",
    goals=(MEMORY,),
    events=4_200_000,
    small=0,
    prepare=partial(prepare, peers=False),
    by_default=False,
)
SPILL = Work(
    name="spill",
    title="Chrome JSON to pftrace, --memory of 2 GB",
    goals=(Goal("an input of 5 GB passes in 2 GB", within_budget),),
    events=13_000_000,
    small=0,
    prepare=_prepare_spill,
    by_default=False,
)
GROWTH = Work(
    name="growth",
    title="Chrome JSON to pftrace, growth",
    goals=(Goal("time per event ≤ 1.15 × that of a tenth of the events", _growth),),
    events=10_000_000,
    small=0,
    prepare=_prepare_growth,
    by_default=False,
)

"""Run all commands over damaged golden inputs, and list what is wrong.

    python -m tests.fuzz --state /tmp/fuzz --runs 20000
    python -m tests.fuzz --state /tmp/fuzz --again            # only the runs that failed
    python -m tests.fuzz --state /tmp/fuzz --only 4711        # one run; its folder stays

Each run has random inputs and options that depend on the seed and its number only. It goes on where it stopped; --runs
counts all runs. A run is wrong if it raises an error that is none of ours, takes more than 20 s of CPU time, or more
memory than its inputs and 500 MB above an idle process, leaves a part of an output or a temporary file, or changes an
input. Conversions, and every fourth of the other runs, must say and write the same without the kernel. Some of the
traces are loaded in the trace processor, which must count no import problem, and `check` must pass. What is wrong stays
in FOLDER/failures/NUMBER: the inputs, the command (run.json), what it said and wrote. The exit code is 1 if any is.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import shutil
import signal
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from tests.fuzz import execution, judging
from tests.fuzz.commands import Run, laid_out

#: So many runs are handed to the processes at a time.
_BATCH = 50


@dataclass
class State:
    """What was done: kept in a file, so that it goes on after an interruption.

    Attributes:
        seed: of all runs.
        done: the runs that were done.
        loaded: the traces that the trace processor has judged.
        compared: the runs that were repeated without the kernel.
        ended: the runs by command and exit code.
        failures: the faults of each run that has some, by its number.
        seconds, memory: the most that a run took: s of CPU time, bytes above the idle process.
    """

    seed: int
    done: int = 0
    loaded: int = 0
    compared: int = 0
    ended: dict[str, int] = field(default_factory=dict)
    failures: dict[str, list[str]] = field(default_factory=dict)
    seconds: float = 0.0
    memory: int = 0

    def save(self, folder: Path) -> None:
        """Replace the file by a whole one."""
        part = folder / "state.json.part"
        part.write_text(json.dumps(asdict(self), indent=1))
        part.replace(folder / "state.json")

    @staticmethod
    def load(folder: Path, seed: int) -> State:
        """The state of a folder."""
        path = folder / "state.json"
        state = State(**json.loads(path.read_text())) if path.exists() else State(seed)
        if state.seed != seed:
            sys.exit(f"{path}: its runs have the seed {state.seed}: --seed {state.seed}, or another folder")
        return state


@dataclass(frozen=True)
class Outcome:
    """What came out of a run."""

    run: Run
    faults: list[str]
    code: int
    seconds: float
    memory: int
    loaded: bool


def judged(folder: Path, load: bool) -> Outcome:
    """Carry out the run of a folder."""
    run = Run.load(folder)
    idle = execution.idle_memory()
    faults, ended = judging.faults_of(run, folder, idle)
    trace = judging.trace_of(run, folder) if load else None
    if trace:
        faults += judging.faults_of_trace(trace, folder)
    return Outcome(run, faults, ended.code, ended.seconds, ended.memory - idle, trace is not None)


def one(job: tuple[int, int, bool, Path]) -> Outcome:
    """Carry out the run of a number; its folder stays if something is wrong."""
    number, seed, load, failures = job
    with tempfile.TemporaryDirectory(prefix="traceconv-fuzz-") as name:
        folder = Path(name)
        laid_out(number, seed, folder)
        outcome = judged(folder, load)
        if outcome.faults:
            kept = failures / str(number)
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(folder, kept)
            (kept / "faults.txt").write_text("\n".join(outcome.faults) + "\n")
    return outcome


def search(state: State, folder: Path, runs: int, outputs: int, jobs: int) -> None:
    """Do the runs that are left."""
    numbers = iter(range(state.done, runs))
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(jobs, context, initializer=execution.import_everything) as pool:
        while batch := list(islice(numbers, _BATCH)):
            # Each batch has its share of traces to load, in a fixed order.
            wanted = outputs * (batch[-1] + 1) // runs - state.loaded
            every = max(1, len(batch) // (3 * wanted)) if wanted > 0 else 0
            given = [(n, state.seed, bool(every) and n % every == 0, folder / "failures") for n in batch]
            for outcome in pool.map(one, given):
                _add(state, outcome)
            state.save(folder)
            print(f"{state.done} runs, {state.loaded} traces loaded, {len(state.failures)} failures", flush=True)


def _add(state: State, outcome: Outcome) -> None:
    command = f"{outcome.run.words[0]} {outcome.code}"
    state.ended = dict(sorted((Counter(state.ended) + Counter([command])).items()))
    state.done += 1
    state.loaded += outcome.loaded
    state.compared += outcome.run.compared
    state.seconds, state.memory = max(state.seconds, outcome.seconds), max(state.memory, outcome.memory)
    if outcome.faults:
        state.failures[str(outcome.run.number)] = outcome.faults
        print(f"{outcome.run.number}: {' '.join(outcome.run.words)}\n    {outcome.faults}", flush=True)


def again(state: State, folder: Path) -> None:
    """Repeat the runs that failed, with their inputs, and forget those that are right now."""
    execution.import_everything()
    for number in list(state.failures):
        with tempfile.TemporaryDirectory() as name:
            place = Path(name) / number
            shutil.copytree(folder / "failures" / number, place)
            faults = judged(place, load=True).faults
        if faults:
            state.failures[number] = faults
        else:
            del state.failures[number]
        state.save(folder)


def summary(state: State) -> str:
    """What was done, and what is wrong."""
    ended = ", ".join(f"{command}: {count}" for command, count in state.ended.items())
    lines = [
        f"{state.done} runs of seed {state.seed}, {state.compared} of them also without the kernel",
        f"{state.loaded} traces loaded in the trace processor",
        f"at most {state.seconds:.1f} s and {state.memory >> 20} MB",
        f"by command and exit code: {ended}",
        *(f"{number}: {fault}" for number, faults in state.failures.items() for fault in faults),
        f"{len(state.failures)} failures",
    ]
    return "\n".join(lines)


def main(args: list[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser("python -m tests.fuzz", description=__doc__, formatter_class=_Plain)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=1000, help="all runs, those done before included")
    parser.add_argument("--outputs", type=int, default=500, help="traces to load in the trace processor")
    parser.add_argument("--state", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--again", action="store_true", help="repeat the runs that failed")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="do one run, and keep its folder")
    given = parser.parse_args(args)
    folder = given.state.resolve()
    (folder / "failures").mkdir(parents=True, exist_ok=True)
    if given.only is not None:
        return _only(given.only, given.seed, folder)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the processes of the pool end with it
    state = State.load(folder, given.seed)
    if given.again:
        again(state, folder)
    else:
        search(state, folder, given.runs, given.outputs, given.jobs)
    print(summary(state))
    return 1 if state.failures else 0


def _only(number: int, seed: int, folder: Path) -> int:
    execution.import_everything()
    place = folder / "only" / str(number)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    laid_out(number, seed, place)
    outcome: Any = judged(place, load=True)
    print(place, " ".join(outcome.run.words), *outcome.faults, sep="\n")
    return 1 if outcome.faults else 0


class _Plain(argparse.RawDescriptionHelpFormatter):
    """Keeps the lines of the description."""


if __name__ == "__main__":
    sys.exit(main())

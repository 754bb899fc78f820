"""What a benchmark is made of: works, their contestants, what each run takes, and what is to reach.

A work prepares its inputs and names its contestants, each a command. They run in turns, each in a process of its own,
and the kernel tells what it took: CPU seconds (user and system, of all its threads and of the children it waited for)
and the peak of its resident memory. Times of two contestants are compared only within one such race.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LAUNCHER = Path(__file__).with_name("_launch.py")
# ru_maxrss counts KiB on Linux and bytes on macOS.
_MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024
#: What runs longer hangs: the slowest, a trace processor in Node, takes a minute on a busy machine.
LIMIT_S = 300


class Wrong(Exception):
    """A contestant failed, or its output is not what the input holds."""


class NotMeasured(Exception):
    """Something that a goal needs is not there; the text says what."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one run took."""

    user_s: float
    system_s: float
    peak_bytes: int

    @property
    def cpu_s(self) -> float:
        """User and system time: getting memory from the kernel is part of the cost."""
        return self.user_s + self.system_s


@dataclass(frozen=True, slots=True)
class Contestant:
    """A command.

    Attributes:
        command: program and arguments; it runs at the top of the repository.
        output: what it writes, which is removed before each run; None if nothing is kept.
        stdout: the file that its standard output goes to; by default nowhere.
        slow: so much slower than the others that one run is enough.
        needs: the module that has to be installed for it, if any.
    """

    command: Sequence[str]
    output: Path | None = None
    stdout: Path | None = None
    slow: bool = False
    needs: str = ""

    @property
    def present(self) -> bool:
        """Whether it can run here."""
        return not self.needs or importlib.util.find_spec(self.needs) is not None


@dataclass(slots=True)
class Race:
    """The contestants of a work on inputs that are there.

    Attributes:
        contestants: by name.
        inputs: what they read, in a few words.
        info: figures that goals need besides the costs, such as the size of the input in bytes.
        absent: what else the goals compare with but cannot run here, with the reason.
        verify: looks at the outputs after the last run; gives back remarks for the reader, raises `Wrong`.
        least_turns: how often contestants run at least, where one run takes milliseconds.
    """

    contestants: dict[str, Contestant]
    inputs: str
    info: dict[str, float] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    verify: Callable[[], list[str]] = list
    least_turns: int = 1


@dataclass(frozen=True, slots=True)
class Measured:
    """What the runs of a race took.

    Attributes:
        race: the race.
        runs: the costs of each contestant's runs.
    """

    race: Race
    runs: Mapping[str, Sequence[Cost]]

    def median(self, name: str) -> Cost:
        """The run in the middle by CPU time (the upper one of two), so that its figures belong together.

        Raises:
            NotMeasured: the contestant did not run.
        """
        if name not in self.runs:
            why = self.race.absent.get(name)
            raise NotMeasured(why or f"{self.race.contestants[name].needs} is not installed")
        runs = sorted(self.runs[name], key=lambda run: run.cpu_s)
        return runs[len(runs) // 2]

    def cpu(self, name: str) -> float:
        """CPU seconds of the median run."""
        return self.median(name).cpu_s

    def peak(self, name: str) -> float:
        """Peak memory of the median run in bytes."""
        return self.median(name).peak_bytes


@dataclass(frozen=True, slots=True)
class Reached:
    """How a goal was met.

    Attributes:
        text: the figure as the table shows it.
        off: the figure as a multiple of the goal: up to 1 it is reached.
    """

    text: str
    off: float


@dataclass(frozen=True, slots=True)
class Goal:
    """One row of the table.

    Attributes:
        text: what is to reach.
        judge: compares the costs with it.
    """

    text: str
    judge: Callable[[Measured], Reached]


@dataclass(frozen=True, slots=True)
class Work:
    """One kind of work.

    Attributes:
        name: to choose it on the command line.
        title: what the table calls it.
        goals: what is to reach, at least one.
        events: the size of the inputs, in events, lines or samples.
        small: their size in the small version; 0 leaves the work out of it.
        prepare: generates inputs of that size in a folder.
        by_default: whether it runs without being named; what takes very long does not.
    """

    name: str
    title: str
    goals: Sequence[Goal]
    events: int
    small: int
    prepare: Callable[[Path, int], Race]
    by_default: bool = True


def at_most(limit: float, of: str, to: str, text: str | None = None) -> Goal:
    """CPU time of one contestant as a multiple of another's."""

    def judge(measured: Measured) -> Reached:
        ratio = measured.cpu(of) / measured.cpu(to)
        return Reached(f"{ratio:.2f} ×", ratio / limit)

    return Goal(text or f"≤ {limit:g} × {to}", judge)


def faster(factor: float, of: str, than: str) -> Goal:
    """How many times the CPU time of `of` the other takes; a factor of 1 means faster at all."""

    def judge(measured: Measured) -> Reached:
        ratio = measured.cpu(than) / measured.cpu(of)
        return Reached(f"{ratio:.1f} ×", factor / ratio)

    return Goal(f"≥ {factor:g} × faster than {than}" if factor != 1 else f"faster than {than}", judge)


def memory_share(share: float, of: str, to: str, text: str | None = None) -> Goal:
    """Peak memory of one contestant as a multiple of another's."""

    def judge(measured: Measured) -> Reached:
        ratio = measured.peak(of) / measured.peak(to)
        return Reached(f"{ratio:.2f} × ({measured.peak(of) / 1e6:.0f} MB)", ratio / share)

    return Goal(text or f"peak memory ≤ {share:g} × that of {to}", judge)


def memory_for_input(share: float, plus_bytes: float, of: str) -> Goal:
    """Peak memory as a multiple of the size of the input (the fact `input_bytes`), and a constant."""

    def judge(measured: Measured) -> Reached:
        allowed = share * measured.race.info["input_bytes"] + plus_bytes
        peak = measured.peak(of)
        return Reached(f"{peak / 1e6:.0f} of {allowed / 1e6:.0f} MB", peak / allowed)

    return Goal(f"peak memory ≤ {share:g} × input + {plus_bytes / 1e6:g} MB", judge)


def traceconv(*arguments: str | Path) -> list[str]:
    """The command of the `traceconv` that belongs to this interpreter."""
    return [sys.executable, "-m", "traceconv", *map(str, arguments)]


def script(contestant: str, *arguments: str | Path) -> list[str]:
    """The command of a contestant of `tests.benchmarks.contestants`."""
    return [sys.executable, "-m", "tests.benchmarks.contestants", contestant, *map(str, arguments)]


def compete(race: Race, repeats: int, *, limit_s: int = LIMIT_S) -> Measured:
    """Run in turns all contestants that can run here.

    Raises:
        Wrong: a command failed, or ran longer than `limit_s` twice.
    """
    present = {name: contestant for name, contestant in race.contestants.items() if contestant.present}
    runs: dict[str, list[Cost]] = {name: [] for name in present}
    for turn in range(max(repeats, race.least_turns)):
        for name, contestant in present.items():
            if turn == 0 or not contestant.slow:
                runs[name].append(measure(contestant, limit_s=limit_s))
    return Measured(race, runs)


def measure(contestant: Contestant, *, limit_s: int = LIMIT_S) -> Cost:
    """Run a command once, from the top of the repository; once more if it hangs, as Node seldom does at its end.

    Raises:
        Wrong: it failed, or ran longer than `limit_s` twice; the text has the end of what it said.
    """
    for _ in range(2):
        cost, code, said = _run(contestant, limit_s)
        if code == 0:
            return cost
        if code != -signal.SIGALRM:
            break
        said = f"it ran for {limit_s} s"
    raise Wrong(f"exit code {code} from: {' '.join(contestant.command)}\n{said}")


def _run(contestant: Contestant, limit_s: int) -> tuple[Cost, int, str]:
    """What a run took, its exit code, and the end of what it said."""
    if contestant.output is not None:
        contestant.output.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        launch = [sys.executable, "-I", "-S", str(LAUNCHER), str(report), str(contestant.stdout or os.devnull)]
        launch.append(str(limit_s))
        ended = subprocess.run(
            [*launch, *contestant.command],
            cwd=ROOT,
            env=_environment(),
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        said = ended.stderr.decode(errors="replace")[-2000:]
        if ended.returncode:
            raise Wrong(f"the launcher failed: {said}")
        user_s, system_s, peak, code = json.loads(report.read_text(encoding="ascii"))
    return Cost(user_s, system_s, peak * _MAXRSS_UNIT), code, said


def _environment() -> dict[str, str]:
    # Users have the byte code of what they installed: from the first run on, if need be.
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

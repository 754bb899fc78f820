"""The command that looks for faults finds those that are put there, and nothing where there are none."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import click
import pytest

from tests.fuzz import inputs, structure
from tests.fuzz.__main__ import State
from tests.fuzz.commands import COMMANDS, Run, laid_out
from tests.fuzz.execution import MOST_MEMORY, MOST_SECONDS, Ended
from tests.fuzz.judging import Files, _faults, files
from tests.golden import ROOT
from traceconv.cli import cli
from traceconv.errors import TraceconvError

#: A process of its own forks: the tests may run beside threads.
_PROGRAM = """
import json, sys
from pathlib import Path
from unittest import mock
from tests.fuzz import execution, judging
from tests.fuzz.commands import Run
from traceconv import kernel
from traceconv import api
from traceconv.cli import cli
from traceconv.families.pytorch.kineto import PytorchKineto

folder = Path(sys.argv[1])
merge = api.merge

def refuse(*args, **keywords):
    raise KeyError("planted")

def leave(*args, **keywords):
    Path("out/.traceconv-1.part").write_text("")
    Path("tmp/spill").write_text("")
    Path("in/input.json").write_text("")
    return merge(*args, **keywords)

def differ(*args, **keywords):
    print("compiled" if kernel.module("scan") else "plain")
    return merge(*args, **keywords)

def wait(*args, **keywords):
    while True:
        pass

PLANTED = {
    "nothing": (api, "merge", merge),
    "error": (api, "merge", refuse),
    "importer": (PytorchKineto, "read", refuse),
    "look": (PytorchKineto, "sniff", refuse),
    "left": (api, "merge", leave),
    "kernel": (api, "merge", differ),
    "time": (api, "merge", wait),
}
execution.MOST_SECONDS = judging.MOST_SECONDS = 1
run = Run.load(folder)
found = {}
for name, place in PLANTED.items():
    with mock.patch.object(*place):
        found[name], ended = judging.faults_of(run, folder, execution.idle_memory())
    if name == "left":
        (folder / "tmp" / "spill").unlink()
print(json.dumps(found))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "input.json").write_bytes((ROOT / "pytorch-kineto" / "cuda-streams" / "input.json").read_bytes())
    words = ["convert", "in/input.json", "-o", "out/o.pftrace"]
    Run(0, words, "", compared=True).save(tmp_path)
    return tmp_path


def python(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *args], capture_output=True, text=True, cwd=ROOT.parent, check=False)


def test_what_is_wrong_is_found(folder: Path) -> None:
    done = python("-c", _PROGRAM, str(folder))
    assert done.returncode == 0, done.stderr
    found = {
        name: [fault for fault in faults if "without the kernel" not in fault]
        for name, faults in json.loads(done.stdout).items()
    }
    assert found.pop("nothing") == []
    assert found.pop("left") == ["left ['.traceconv-1.part']", "changed its inputs", "left temporary files"]
    assert found.pop("kernel") == ["the kernel changes stdout"]
    # The kernel ends a process a little before or after its limit of 2 s: it looks once a tick.
    ended, took = found.pop("time")
    assert ended == f"ended with -{signal.SIGXCPU}"
    assert took.startswith("took ")
    planted = [fault for faults in found.values() for fault in faults]
    assert len(planted) == len(found) == 3
    assert all("a foreign exception" in fault and "planted" in fault for fault in planted)


def ended(**changed: Any) -> Ended:
    return Ended(**{"code": 0, "stdout": b"", "stderr": b"", "foreign": "", "seconds": 1.0, "memory": 0, **changed})


@pytest.mark.parametrize(
    ("changed", "outputs", "faults"),
    [
        ({}, {"o.pftrace": b""}, []),
        ({"code": 3}, {}, []),
        ({"code": 1}, {"o.pftrace": b""}, ["ended with 1, and the output is there"]),
        ({}, {}, ["ended with 0, and the output is not there"]),
        ({"code": 5}, {}, ["ended with 5"]),
        ({"code": 1, "stderr": b"Traceback (most recent call last):"}, {}, ["a traceback was printed"]),
        ({"memory": 10 + 5 + MOST_MEMORY}, {"o.pftrace": b""}, []),
        ({"memory": 11 + 5 + MOST_MEMORY}, {"o.pftrace": b""}, ["took 500 MB for 10 bytes"]),
        ({"seconds": MOST_SECONDS + 1}, {"o.pftrace": b""}, ["took 21 s"]),
        ({"code": -signal.SIGALRM}, {}, [f"ended with -{signal.SIGALRM}", "did not end in 600 s"]),
    ],
)
def test_faults_of_a_run(changed: dict[str, Any], outputs: Files, faults: list[str]) -> None:
    run = Run(0, ["convert", "in/a.json", "-o", "out/o.pftrace"], "", compared=False)
    assert _faults(ended(**changed), outputs, run, size=10, idle=5) == faults


@pytest.mark.parametrize("code", [0, 5, 6])
def test_verdicts_of_diff_come_with_its_output(code: int) -> None:
    run = Run(0, ["diff", "in/a.json", "in/b.json", "-o", "out/d.json"], "", compared=False)
    assert _faults(ended(code=code), {"d.json": b""}, run, size=10, idle=5) == []
    assert _faults(ended(code=code), {}, run, size=10, idle=5) == [f"ended with {code}, and the output is not there"]


def test_all_commands_that_read_recordings_are_run() -> None:
    apart = {"formats", "how", "demo", "anchor", "open"}
    assert {name for name in cli.list_commands(click.Context(cli)) if name not in apart} == set(COMMANDS)


def test_a_run_depends_on_its_number_and_the_seed(tmp_path: Path) -> None:
    runs = [
        (laid_out(number, seed, tmp_path / str(place)), files(tmp_path / str(place)))
        for place, (number, seed) in enumerate([(7, 1), (7, 1), (8, 1), (7, 2)])
    ]
    assert runs[0] == runs[1]
    assert runs[2] != runs[0] != runs[3]
    assert Run.load(tmp_path / "0") == runs[0][0]


def test_all_commands_and_options_are_known(tmp_path: Path) -> None:
    """A run that is refused for its options would look at nothing."""
    for number in range(150):
        run = laid_out(number, 5, tmp_path / str(number))
        command = cli.get_command(click.Context(cli), run.words[0])
        assert command is not None
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(tmp_path / str(number))
            (tmp_path / str(number) / "out").mkdir()
            try:
                command.make_context("traceconv", list(run.words[1:]))
            except TraceconvError as error:
                assert "such option" not in str(error)  # noqa: PT017 - a value that is refused is one of the inputs


@pytest.mark.parametrize("case", ["xplane/device", "perfetto/sdk"])
def test_messages_are_taken_apart_and_put_together(case: str) -> None:
    (path,) = (ROOT / case).glob("input.*")
    data = path.read_bytes()
    assert structure._parsed(data)
    assert structure._encoded(structure._parsed(data)) == data


@pytest.mark.parametrize("format", inputs.by_format())
def test_damage_of_each_format(format: str) -> None:
    data = inputs.by_format()[format][0].input.read_bytes()
    changed = [inputs.damaged(Random(seed), data) for seed in range(20)]
    assert sum(one != data for one in changed) > 10


def test_it_goes_on_where_it_stopped(tmp_path: Path) -> None:
    command = ["-m", "tests.fuzz", "--state", str(tmp_path), "--jobs", "1", "--outputs", "0"]
    for runs in (2, 3):
        done = python(*command, "--runs", str(runs))
        assert done.returncode == 0, done.stdout + done.stderr
        assert json.loads((tmp_path / "state.json").read_text())["done"] == runs
    assert "0 failures" in done.stdout
    other = python(*command, "--seed", "2")
    assert "its runs have the seed 1" in other.stderr


def test_a_failure_is_forgotten_when_it_is_mended(folder: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    shutil.copytree(folder / "in", state / "failures" / "0" / "in")
    shutil.copy(folder / "run.json", state / "failures" / "0")
    State(1, done=1, failures={"0": ["took 21 s"]}).save(state)
    done = python("-m", "tests.fuzz", "--state", str(state), "--again")
    assert done.returncode == 0, done.stdout + done.stderr
    assert State.load(state, 1).failures == {}

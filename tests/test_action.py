"""The GitHub action, run as a runner does: each step is a script of bash, with the values of its expressions."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

ROOT = Path(__file__).parent.parent


class Outcome(NamedTuple):
    """What a job sees of the action."""

    code: int
    outputs: dict[str, str]
    summary: str
    printed: str


def _expanded(text: str, values: dict[str, str]) -> str:
    return re.sub(r"\$\{\{ *([\w.-]+) *\}\}", lambda found: values[found[1]], text)


def ran(folder: Path, **inputs: str) -> Outcome:
    """Run the action in a folder, with a Python whose new environments have this traceconv and install nothing."""
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    python, installed = folder / "python", folder / "installed"
    traceconv = shlex.quote(str(Path(sys.executable).with_name("traceconv")))
    python.write_text(
        f"""#!/bin/sh
        mkdir -p "$3/bin" && ln -sf {traceconv} "$3/bin/traceconv"
        printf '#!/bin/sh\\necho "$@" >{installed}\\n' >"$3/bin/pip" && chmod +x "$3/bin/pip"
        """
    )
    python.chmod(0o755)
    given = {name: value.get("default", "") for name, value in action["inputs"].items()}
    given |= {"python": str(python)} | {name.replace("_", "-"): value for name, value in inputs.items()}
    values = {f"inputs.{name}": value for name, value in given.items()}
    values |= {"github.action_path": str(ROOT), "runner.temp": str(folder / "temp of job")}
    files = {name: folder / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for path in files.values():
        path.touch()
    code, printed = 0, ""
    for step in action["runs"]["steps"]:
        variables = {name: _expanded(text, values) for name, text in step["env"].items()}
        script = folder / "script.sh"
        script.write_text(step["run"])
        result = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", script],
            env=os.environ | variables | {name: str(path) for name, path in files.items()},
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        code, printed = result.returncode, printed + result.stdout + result.stderr
        if code:
            break
    assert installed.read_text() == f"install --quiet {ROOT}\n"
    lines = (line.partition("=") for line in files["GITHUB_OUTPUT"].read_text().splitlines())
    return Outcome(code, {name: value for name, _, value in lines}, files["GITHUB_STEP_SUMMARY"].read_text(), printed)


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Six runs before a change and six after it, of eight steps that take 20 % longer."""
    for side, length in (("base", 1000), ("head", 1200)):
        (tmp_path / side).mkdir()
        for number in range(6):
            step = length + number
            events = [
                {"ph": "X", "pid": 1, "tid": 1, "name": name, "ts": at * 2000, "dur": step - shorter}
                for at in range(8)
                for name, shorter in ((f"step {at}", 0), ("work", 10))
            ]
            (tmp_path / side / f"{number}.json").write_text(json.dumps({"traceEvents": events}))
    return tmp_path


STEPS = r"--step-name 'step \d+'"


def test_what_is_slower_fails_and_is_told(runs: Path) -> None:
    found = ran(runs, before="base", after="head", options=STEPS)
    assert (found.code, found.outputs["verdict"]) == (5, "slower"), found.printed
    assert found.summary == Path(found.outputs["report"]).read_text()
    assert "slower" in found.summary


def test_what_is_faster_passes(runs: Path) -> None:
    found = ran(runs, before="head", after="base", options=STEPS)
    assert (found.code, found.outputs["verdict"]) == (0, "passed"), found.printed
    assert "faster" in found.summary


def test_what_cannot_be_decided_fails_if_that_is_asked_for(runs: Path) -> None:
    for side in ("base", "head"):
        for number in range(1, 6):
            (runs / side / f"{number}.json").unlink()
    assert ran(runs, before="base", after="head").outputs["verdict"] == "passed"
    assert ran(runs, before="base", after="head", options="--strict").outputs["verdict"] == "undecided"


def test_nothing_of_a_value_is_run(runs: Path) -> None:
    """Values are data, whatever characters they hold."""
    found = ran(runs, before="base; touch hacked", after="$(touch hacked)", options="--where 'name=$(touch hacked)'")
    assert (found.code, found.outputs) == (1, {}), found.printed
    assert not (runs / "hacked").exists()

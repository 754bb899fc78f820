"""What starting costs: which modules a command loads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import HANG_S
from tests.golden import ROOT

CHROME = ROOT / "chrome-trace" / "flows-v2" / "input.json"


def loaded(*arguments: object) -> set[str]:
    """The modules that there are when a command ends."""
    code = (
        "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); "
        "from traceconv.cli import main; main()"
    )
    command = [sys.executable, "-c", code, *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, timeout=HANG_S, check=True, text=True)
    modules = set(result.stderr.splitlines()[-1].split())
    assert {"click", "traceconv.cli"} <= modules
    return modules


def of(modules: set[str], *packages: str) -> set[str]:
    """Those of the packages, and what is in them."""
    return {name for name in modules if any(f"{name}.".startswith(f"{package}.") for package in packages)}


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_the_command_alone_loads_nothing_that_takes_long(option: str) -> None:
    heavy = ("numpy", "msgspec", "google", "perfetto", "jsonschema", "jinja2")
    assert of(loaded(option), *heavy, "traceconv.families", "traceconv.align") == set()


def test_a_conversion_loads_what_it_uses(tmp_path: Path) -> None:
    modules = loaded("convert", CHROME, "-o", tmp_path / "out.pftrace")
    assert {"numpy", "msgspec", "traceconv.families.chrome.document", "traceconv.families.perfetto.writer"} <= modules
    assert of(modules, "google", "perfetto", "jsonschema", "jinja2", "numpy.ma", "http") == set()
    unused = (
        "align.comparison",
        "align.evidence",
        "align.report",
        "align.clock_overview",
        "check",
        "families.chrome.writer",
        "cli.open_command",
    )
    assert of(modules, *(f"traceconv.{name}" for name in unused)) == set()


def test_no_threads_spin_and_programmes_of_the_user_keep_their_environment(tmp_path: Path) -> None:
    """BLAS reads the variable when it is loaded."""
    name = "OPENBLAS_NUM_THREADS"
    environment = {key: value for key, value in os.environ.items() if key != name}
    code = f"import atexit, os, sys; atexit.register(lambda: print(os.environ.get('{name}'), file=sys.stderr)); "
    code += "from traceconv.cli import main; main()"
    child = [sys.executable, "-c", f"import os, sys; print(os.environ.get('{name}'), file=sys.stderr)"]
    for command, expected in (
        (["convert", CHROME, "-o", tmp_path / "out.pftrace"], "1"),
        (["anchor", "-o", tmp_path / "anchor.json", "--", *child], "None"),
    ):
        line = [sys.executable, "-c", code, *map(str, command)]
        result = subprocess.run(line, capture_output=True, timeout=HANG_S, check=True, text=True, env=environment)
        assert expected in result.stderr.split()


@pytest.mark.parametrize("report", ["report.html", "report.json"])
def test_a_merge_of_recordings_on_unrelated_clocks_loads_the_estimators(report: str, tmp_path: Path) -> None:
    """The counterpart: the names above are those of modules that there are."""
    modules = loaded(
        *("merge", CHROME, ROOT / "chrome-trace" / "metadata" / "input.json", "--on-ambiguous", "separate"),
        *("-o", tmp_path / "out.json", "--report", tmp_path / report),
    )
    used = {"align.comparison", "align.evidence", "align.report", "families.chrome.writer"}
    assert {f"traceconv.{name}" for name in used} <= modules
    assert bool(of(modules, "jinja2")) == (report == "report.html")

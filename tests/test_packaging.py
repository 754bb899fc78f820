"""What pyproject.toml says of the package, and of the wheels that cibuildwheel builds."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

PROJECT: dict[str, Any] = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text("utf-8"))
PYTHONS = {"3.11", "3.12", "3.13", "3.14"}
#: Options of cibuildwheel, and the machines that it knows by these names (resources/cibuildwheel.schema.json, 4.3).
OPTIONS = {"build", "skip", "test-command", "archs", "manylinux-x86_64-image", "manylinux-aarch64-image"}
MACHINES = {"linux": {"x86_64", "aarch64"}, "macos": {"x86_64", "arm64"}, "windows": {"AMD64", "ARM64"}}


def test_wheels_are_built_for_all_pythons_and_systems() -> None:
    wheels = PROJECT["tool"]["cibuildwheel"]
    systems = {name: wheels[name] for name in MACHINES}
    for options in (wheels, *systems.values()):
        assert options.keys() - systems.keys() <= OPTIONS
    assert wheels["build"] == [f"cp{python.replace('.', '')}-*" for python in sorted(PYTHONS)]
    for name, options in systems.items():
        assert set(options["archs"]) <= MACHINES[name]
    assert set(systems["linux"]["archs"]) == MACHINES["linux"]
    for path in re.findall(r"\{project\}/(\S+)", " ".join(wheels["test-command"])):
        assert Path(__file__).parents[1].joinpath(path).exists()


def test_classifiers_name_the_pythons_that_wheels_are_built_for() -> None:
    project = PROJECT["project"]
    named = {line.rpartition(" ")[2] for line in project["classifiers"] if re.search(r"Python :: 3\.\d+$", line)}
    assert named == PYTHONS
    assert project["requires-python"] == f">={min(PYTHONS)}"


def test_nothing_that_frameworks_pin_is_asked_for() -> None:
    """TensorFlow 2.18 wants protobuf below 6 and numpy below 2.1, which is below what others want."""
    needed = {re.split("[<>=~]", line)[0]: line for line in PROJECT["project"]["dependencies"]}
    assert not needed.keys() & {"protobuf", "perfetto"}
    assert not [line for line in needed.values() if "<" in line or "==" in line]

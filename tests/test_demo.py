"""`traceconv demo`: a merge of two recordings that the package carries."""

from __future__ import annotations

import gzip
import re
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from traceconv.api import read
from traceconv.cli import cli, trace_commands

ROOT = Path(__file__).parent.parent


def test_it_prints_the_receipt_the_layers_and_how_to_open_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, ["demo", "-o", "a b.pftrace"])
    assert result.exit_code == 0, result.output
    assert re.search(r"^onednn\.log +CLOCK_REALTIME .* ok *$", result.stderr, re.MULTILINE)
    assert "wrote a b.pftrace: " in result.stderr
    assert result.stdout.startswith("\nlayers\n")
    assert "aten::mkldnn_convolution" in result.stdout
    assert "--top" not in result.stdout
    assert re.search(r"^63 more rows: traceconv report 'a b.pftrace' --section layers$", result.stdout, re.MULTILINE)
    assert "to see it: traceconv open 'a b.pftrace'" in result.stdout
    assert read(tmp_path / "a b.pftrace").counts()["flows"] == 40
    assert CliRunner().invoke(cli, ["demo", "-q"]).output == ""
    assert (tmp_path / "demo.pftrace").exists()
    assert "the file exists" in str(CliRunner().invoke(cli, ["demo"]).exception)


def test_the_wheel_carries_them_and_they_are_small() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    for name, path in trace_commands._RECORDINGS.items():
        assert included[path] == f"traceconv/demo/{name}"
    sizes = [len(gzip.compress((ROOT / path).read_bytes())) for path in trace_commands._RECORDINGS.values()]
    assert sum(sizes) < 25_000


def test_the_readme_begins_with_it() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert re.fullmatch(
        r"    pip install \. && traceconv demo -o demo\.pftrace +# in a clone of this repository", lines[2]
    )

"""`traceconv report`, as it is typed."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

import traceconv
from tests.golden import ROOT
from traceconv.answers import SECTIONS, Questions
from traceconv.answers.render import text
from traceconv.answers.section import Unit

KINETO = ROOT / "pytorch-kineto" / "torch-convnet-process" / "input.json"
ONEDNN = ROOT / "onednn-verbose" / "torch-convnet-process" / "input.log"
CUDA = ROOT / "pytorch-kineto" / "cuda-streams" / "input.json"
SCHEMA = json.loads((ROOT.parent / "schemas" / "report.schema.json").read_text(encoding="utf-8"))


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "traceconv", "report", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_text_has_a_table_for_each_section() -> None:
    result = run(CUDA, "--top", 3)
    assert result.returncode == 0, result.stderr
    for word in ("overview", "operations", "steps", "device", "ProfilerStep#2", "more rows: --top"):
        assert word in result.stdout
    assert "  exposed copies         4 µs" in result.stdout.splitlines()


def test_json_follows_its_schema_and_says_what_the_library_says() -> None:
    result = run(KINETO, ONEDNN, "--format", "json", "--top", 0)
    document = json.loads(result.stdout)
    jsonschema.validate(document, SCHEMA)
    sections = traceconv.report([KINETO, ONEDNN])
    assert {section.name: section.records() for section in sections}.items() <= document.items()
    assert [row["verdict"] for row in document["overview"]] == ["ok", "ok"]
    for section in sections:
        assert all(column.name.endswith("_ns") == (column.unit is Unit.NS) for column in section.columns)


def test_a_window_is_named_by_each_section() -> None:
    window = "from 14 µs to 17 µs after the start"
    of_time = [f"--section={name}" for name in SECTIONS if name != "overview"]
    text = run(CUDA, "--between", "cudaLaunchKernel[2]", "--section=overview", *of_time).stdout
    assert text.count(window) == len(of_time)
    assert "--between does not apply to this section" in text
    document = json.loads(run(CUDA, "--between", "cudaLaunchKernel[2]", "--format", "json").stdout)
    jsonschema.validate(document, SCHEMA)
    assert document["between"] == {"asked": "cudaLaunchKernel[2]", "start_ns": 14_000, "end_ns": 17_000}
    assert {row["name"] for row in document["operations"]} == {"cudaLaunchKernel", "sgemm_128x128"}
    (section,) = traceconv.report([CUDA], Questions(["operations"], between="cudaLaunchKernel[2]"))
    assert section.records() == document["operations"]


def test_csv_and_markdown_hold_the_same_rows() -> None:
    rows = list(csv.DictReader(io.StringIO(run(CUDA, "--section", "operations", "--format", "csv").stdout)))
    assert rows[0]["name"] == "cudaDeviceSynchronize"
    assert int(rows[0]["self_ns"]) == 50_000
    text = run(CUDA, "--section", "operations", "--format", "markdown").stdout
    assert "| cudaDeviceSynchronize | 1 | 50 µs |" in text


def test_groups_by_what_is_asked() -> None:
    document = json.loads(run(CUDA, "--section", "operations", "--by", "category, thread", "--format", "json").stdout)
    assert {"category", "thread"} <= document["operations"][0].keys()
    assert document.keys() == {"schema_version", "operations", "notes"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--by", "nmae"), "'nmae' is not a key"),
        (("--sort", "slef"), "columns: name, count, total_ns, self_ns"),
        (("--where", "dur>1"), "at character 5 of 'dur>1'"),
        (("--between", "ProfilerStep#9"), "no slice is named 'ProfilerStep#9', at character 1 of"),
        (("--between", "cudaLaunchKernel"), "3 slices are named 'cudaLaunchKernel', at character 1"),
        (("--between", "1us..5xs"), "at character 6 of '1us..5xs'"),
        (("--step-name", "("), "--step-name '('"),
        (("--section", "devcie"), "'devcie' is not one of"),
    ],
)
def test_what_cannot_be_asked_is_a_wrong_call(arguments: tuple[str, ...], message: str) -> None:
    result = run(CUDA, *arguments)
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_clocks_that_nothing_relates_are_refused_as_by_merge() -> None:
    other = ROOT / "chrome-trace" / "metadata" / "input.json"
    result = run(ROOT / "chrome-trace" / "flows-v2" / "input.json", other)
    assert result.returncode == 3


def test_an_input_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(CUDA.read_bytes())
    result = run(path, "-o", path, "-f")
    assert result.returncode == 2
    assert result.stderr.startswith(f"error: {path}: the output would replace an input")
    assert path.read_bytes() == CUDA.read_bytes()


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_tables_without_rows_are_left_out_unless_asked_for(form: str) -> None:
    found = run(CUDA, "--format", form).stdout
    headings = [line.removeprefix("## ") for line in found.splitlines() if line and line[:2] not in ("  ", "| ", "- ")]
    assert headings == ["overview", "operations", "steps", "device", "memory"]
    assert "nothing to show in ranks, logs, primitives, layers: --section NAME says why" in found
    assert "no input holds log entries" in run(CUDA, "--format", form, "--section", "logs").stdout
    assert json.loads(run(CUDA, "--format", "json").stdout)["logs"] == []


def test_notes_are_wrapped_on_a_terminal() -> None:
    sections = traceconv.report([CUDA])
    wide, narrow = (text(sections, 3, width).split("\n") for width in (0, 60))
    assert max(len(line) for line in wide) > 160
    notes = [line for line in narrow if line not in wide]
    assert notes
    assert 50 < max(map(len, notes)) <= 60
    assert " ".join("\n".join(narrow).split()) == " ".join("\n".join(wide).split())


def test_a_terminal_is_known_as_one() -> None:
    pty = pytest.importorskip("pty")
    shown: list[bytes] = []

    def read(descriptor: int) -> bytes:
        shown.append(os.read(descriptor, 1 << 16))
        return shown[-1]

    command = [sys.executable, "-m", "traceconv", "report", str(CUDA), "--section", "device"]
    assert pty.spawn(command, read) == 0
    assert max(len(line) for line in b"".join(shown).decode().splitlines()) <= 80

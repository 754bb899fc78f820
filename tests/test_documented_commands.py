"""Every command that the README, the documents and the help pages show runs as it is printed.

Commands with files of the repository run on these. Names such as `kineto.json` stand for golden inputs. Left out are
`open`, which waits for a browser, and commands that other tests run: those that install traceconv, and those of
docs/add-a-format.md.
"""

from __future__ import annotations

import gzip
import re
import shlex
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from traceconv import cli, convert

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
#: The golden inputs behind the names in examples.
FILES = {
    "kineto.json": "pytorch-kineto/torch-convnet-process/input.json",
    "profile.json": "pytorch-kineto/torch-convnet-process/input.json",
    "a.json": "pytorch-kineto/torch-convnet-process/input.json",
    "huge.json": "pytorch-kineto/torch-convnet-process/input.json",
    "other.json": "pytorch-kineto/torch-convnet-process/input.json",
    "onednn.log": "onednn-verbose/torch-convnet-process/input.log",
    "b.log": "onednn-verbose/torch-convnet-process/input.log",
    "ort.json": "onnxruntime/gpu-streams/input.json",
    "perf.data": "perf-data/realtime_clock/input.data",
    "rank0.json": "pytorch-kineto/gloo-rank0/input.json",
    "rank1.json": "pytorch-kineto/gloo-rank1/input.json",
    "runs/rank0.json": "pytorch-kineto/gloo-rank0/input.json",
    "runs/rank1.json": "pytorch-kineto/gloo-rank1/input.json",
    "viztracer.json": "viztracer/functions/input.json",
    "run.log": "timed-log/monotonic-said/input.txt",
    "strange.txt": "timed-log/monotonic-said/input.txt",
    "report.sqlite": "nsight-systems/session/input.sqlite",
    "ncu.csv": "nsight-compute/raw/input.csv",
    "anchor.json": "clock-anchor/alone/input.json",
    **dict.fromkeys(
        [
            *("before.json", "after.json", "a1.json", "a2.json", "b1.json", "b2.json"),
            *("base/1.json", "head/1.json", "recordings/base/1.json", "recordings/head/1.json"),
            *("nightly/1.json", "nightly/2.json"),
        ],
        "onnxruntime/perf-counters-hw/input.json",
    ),
}
#: Two files of one run, for the command that aligns by their events.
ALIGNED = ROOT / "tests" / "benchmarks" / "alignment" / "recordings" / "ort_perf_pauses_default_clock"


def commands() -> list[str]:
    """Return the lines that begin with traceconv, and such commands inside the tables of a page."""
    found: dict[str, None] = {}
    for page in PAGES:
        if page.name in ("add-a-format.md", "formats.md"):
            continue
        text = page.read_text(encoding="utf-8").replace("\\\n", " ")
        lines = re.findall(r"^ {4,}((?:TMPDIR=\S+ |some-program \| )?traceconv [a-z].*)$", text, re.MULTILINE)
        cells = re.findall(r"^\|.*`(traceconv (?:merge|clocks) [^`]*)`", text, re.MULTILINE)
        found |= dict.fromkeys(line for line in lines + cells if not line.startswith("traceconv open"))
    return list(found)


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace that traceconv wrote, `out.pftrace` in examples."""
    path = tmp_path_factory.mktemp("example") / "out.pftrace"
    convert(ROOT / "golden" / FILES["a.json"], path)
    return path


@pytest.fixture
def folder(tmp_path: Path, example: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with all files of the examples, and golden and tests as in a clone."""
    for name, golden in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / "golden" / golden).read_bytes())
    (tmp_path / "profile.json.gz").write_bytes(gzip.compress((tmp_path / "profile.json").read_bytes()))
    (tmp_path / "run.py").write_text("print('run')\n")
    for name in ("golden", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_examples_are_found() -> None:
    found = commands()
    assert len(found) > 40
    assert {line.split("traceconv ")[1].split()[0] for line in found} == {*cli._COMMANDS} - {"open"}


@pytest.mark.parametrize("line", commands())
def test_runs_as_printed(line: str, folder: Path, example: Path) -> None:
    for command in line.split("; "):
        if not command.startswith(("traceconv", "TMPDIR", "some-program")):
            continue  # the program of the user
        words = shlex.split(command, comments=True)
        words = words[words.index("traceconv") + 1 :]
        if ">" in words:
            words = words[: words.index(">")]
        if words[1:3] == ["ort.json", "perf.data"]:
            for name, pattern in (("ort.json", "onnxruntime_profile*"), ("perf.data", "perf.script*")):
                Path(name).write_bytes(next(ALIGNED.glob(pattern)).read_bytes())
        if "-o" in words:
            (folder / words[words.index("-o") + 1]).unlink(missing_ok=True)
        words = [sys.executable if word == "python" else word for word in words]
        expanded = [
            name for word in words for name in (sorted(map(str, folder.glob(word))) if "*." in word else [word])
        ]
        if "out.pftrace" in words and words[0] == "check":
            Path("out.pftrace").write_bytes(example.read_bytes())
        given = (folder / "a.json").read_bytes() if "-" in words else None
        result = CliRunner().invoke(cli.cli, expanded, input=given)
        refused = getattr(result.exception, "message", "")
        assert result.exit_code == 0, f"{command}: {refused or result.output}"


def test_the_python_of_the_readme_runs(folder: Path) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", PAGES[0].read_text(encoding="utf-8"), re.DOTALL)
    exec(block, {})
    assert (folder / "out.pftrace").is_file()

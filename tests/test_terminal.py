"""`traceconv.cli.terminal`: lines that are too long for a terminal."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys

import pytest

from tests.golden import ROOT
from traceconv.cli.terminal import folded
from traceconv.families.registry import importer_class


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("short", ["short"]),
        ("", [""]),
        ("warning: a word that goes on below", ["warning: a word that", "  goes on below"]),
        (
            "  clock  a time whose words go below it",
            ["  clock  a time whose", "         words go", "         below it"],
        ),
        ("  a note stays below its own start", ["  a note stays below", "    its own start"]),
        ("# a comment stays a comment in each", ["# a comment stays a", "# comment in each"]),
        ("#   and keeps its indentation there", ["#   and keeps its", "#   indentation there"]),
        ("see https://a.example/long/address for more", ["see", "  https://a.example/long/address", "  for more"]),
        ("https://a.example/long/address/alone", ["https://a.example/long/address/alone"]),
        ("xxxx  " + "y" * 30, ["xxxx  " + "y" * 30]),
        (" " * 30, [" " * 30]),
    ],
)
def test_a_long_line_is_folded_between_words(line: str, parts: list[str]) -> None:
    assert folded(line, 21) == parts


PROFILE = ROOT / "pytorch-kineto" / "torch-convnet-process" / "input.json"
LOG = ROOT / "onednn-verbose" / "torch-convnet-process" / "input.log"


@pytest.mark.parametrize(
    "arguments",
    [
        ("merge", PROFILE, LOG, "-o", os.devnull, "--to", "json", "-f"),
        ("align", PROFILE, LOG, "-v"),
        ("clocks", PROFILE, LOG),
        ("info", PROFILE),
        ("formats", "perf"),
        ("formats", "kineto"),
        ("identify", "--all", LOG),
        ("report", PROFILE),
        ("report", "--section", "layers", PROFILE, LOG),
        ("how", "xplane"),
        ("merge", LOG, "-o", "out.txt"),
    ],
    ids=lambda arguments: " ".join(str(one).rpartition("/")[2] for one in arguments[:3]),
)
def test_nothing_is_wider_than_a_terminal(arguments: tuple[object, ...]) -> None:
    """A line of a command that is to be copied, and a path without spaces, may be."""
    lines = [line for line in shown(*arguments) if str(ROOT) not in line]
    wide = [line for line in lines if len(line) > 80]
    assert lines
    assert wide == [] if arguments[0] != "how" else all("#" not in line for line in wide)


@pytest.mark.parametrize("name", ["onnxruntime", "pytorch-kineto", "mxnet", "tvm-profile"])
def test_commands_of_recipes_can_be_copied(name: str) -> None:
    lines = shown("how", name)
    recipe = importer_class(name).with_perf.splitlines()
    code = [line for line in recipe if not line.startswith("#")]
    assert [line for line in code if line not in lines] == []
    words = [re.split(r"\s+", line) for line in lines if line.startswith("#")]
    assert [
        line for line in words if line[1] in ("print(", "open(", "counters") or line[-1] in ("-e", "-F", "-O")
    ] == []
    if "perf record" in importer_class(name).with_perf:
        fields = "comm,pid,tid,time,event,period,ip,sym,symoff,dso"
        assert f"perf script --header --ns -F {fields} > perf.script.txt" in lines


def shown(*arguments: object) -> list[str]:
    """Return the lines of a command in a terminal of 80 columns."""
    reader, writer = pty.openpty()
    command = [sys.executable, "-m", "traceconv", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=writer, stderr=writer, env=os.environ | {"COLUMNS": "80"})
    os.close(writer)
    said = b""
    try:
        while data := os.read(reader, 1 << 16):
            said += data
    except OSError:  # the other side was closed
        pass
    os.close(reader)
    process.wait()
    return said.decode().replace("\r\n", "\n").splitlines()

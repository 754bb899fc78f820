"""Completion in shells, through what click gives them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import HANG_S

MAIN = "import sys; from traceconv.cli import main; sys.argv[0] = 'traceconv'; main()"
PAGE = Path(__file__).parent.parent / "docs" / "cli.md"


def answered(shell: str, instruction: str, **words: str) -> str:
    environment = os.environ | words | {"_TRACECONV_COMPLETE": f"{shell}_{instruction}"}
    command = [sys.executable, "-c", MAIN]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=HANG_S, check=False).stdout


def completed(shell: str, line: str) -> list[str]:
    """What a shell is told of the last word of a line."""
    if shell == "bash":
        line = line.replace("=", " = ")  # bash breaks words there
    begun = line.rpartition(" ")[2]
    words = {"COMP_WORDS": line if shell != "fish" else line.rpartition(" ")[0]}
    words["COMP_CWORD"] = begun if shell == "fish" else str(line.count(" "))
    lines = answered(shell, "complete", **words).split("\n")
    if shell == "zsh":
        return [word for kind, word in zip(lines[::3], lines[1::3], strict=False) if kind]
    return [one.partition(",")[2] for one in lines if one]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("traceconv me", ["merge"]),
        ("traceconv how kin", ["kineto"]),
        ("traceconv formats pytorch", ["pytorch-kineto", "pytorch-table"]),
        ("traceconv convert x --from py", ["pytorch-kineto", "pytorch-table"]),
        ("traceconv convert x --to ch", ["chrome-json"]),
        ("traceconv convert x --to pf", ["pftrace"]),
        ("traceconv merge a b --from a.json=one", ["a.json=onednn-verbose"]),
        ("traceconv report x --sec", ["--section"]),
        ("traceconv report x --section ran", ["ranks"]),
    ],
)
def test_words_are_completed(shell: str, line: str, words: list[str]) -> None:
    if shell == "bash":  # which replaces what stands behind the = only
        words = [word.rpartition("=")[2] for word in words]
    assert [word.partition("\t")[0] for word in completed(shell, line)] == words


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_documented_line_gives_a_script(shell: str) -> None:
    line = next(line for line in PAGE.read_text(encoding="utf-8").splitlines() if f"={shell}_source traceconv" in line)
    assert "_TRACECONV_COMPLETE" in line
    script = answered(shell, "source")
    assert f"{shell}_complete" in script
    assert "_TRACECONV_COMPLETE" in script


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_bash_completes_files_and_formats(tmp_path: Path) -> None:
    (tmp_path / "profile.json").touch()
    (tmp_path / "traceconv").write_text(f'#!/bin/sh\nexec {sys.executable} -c "{MAIN}"\n')
    (tmp_path / "traceconv").chmod(0o755)
    (tmp_path / "script").write_text(answered("bash", "source"))
    tried = """
        PATH="$PWD:$PATH"; source ./script
        for COMP_LINE in "traceconv convert prof" "traceconv how onedn" "traceconv merge --from p.json = onedn"; do
          COMP_WORDS=($COMP_LINE); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=()
          _traceconv_completion traceconv "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
          echo "${COMPREPLY[*]}"
        done; complete -p traceconv
    """
    found = subprocess.run(
        ["bash", "-c", tried], capture_output=True, text=True, timeout=HANG_S, check=False, cwd=tmp_path
    )
    _, *formats, registered = found.stdout.splitlines()
    assert formats == ["onednn-verbose"] * 2, found.stderr
    assert registered.endswith("-F _traceconv_completion traceconv")

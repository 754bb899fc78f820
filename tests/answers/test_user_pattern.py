"""Patterns of users are those of `re`, and end."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from traceconv.answers import Questions
from traceconv.api import report
from traceconv.errors import UsageError
from traceconv.io import limits
from traceconv.io.limits import UserPattern

TEXTS = ["", "conv", "Conv 2", "ab" * 300, "a\nb", "é\ud800", "naïve (1)", "x" * 70000, "step 12"]
PATTERNS = [
    "conv",
    "(?i)CONV",
    r"\d+$",
    "a.b",
    "(?s)a.b",
    "^$",
    "a|é",
    r"(?P<n>ab)+(?P=n)",
    "(?<=o)n",
    "x{70000}",
    "[[a]",
]
SLOW = ["(a+)+$", "(a|aa)+$", "(.*)*,"]
NAME = "a" * 60 + "!"
#: Of each sign with which `re` may try several ways.
SEVERAL_WAYS = ["a*", "a+", "a?", "a{1,2}", "a|b"]


@pytest.mark.parametrize("how", ["search", "fullmatch"])
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.filterwarnings("ignore:Possible nested set")
def test_it_is_that_of_python(pattern: str, how: str) -> None:
    expected = [getattr(re, how)(pattern, text) is not None for text in TEXTS]
    assert limits.user_pattern("--where", pattern).accepted(TEXTS, whole=how == "fullmatch") == expected


def test_many_texts() -> None:
    texts = [f"step {number}" for number in range(3000)]
    accepted = UserPattern("--where", "9+$").accepted(texts)
    assert [text for text, yes in zip(texts, accepted, strict=True) if yes] == [
        text for text in texts if text[-1] == "9"
    ]


@pytest.mark.parametrize("pattern", SLOW)
@pytest.mark.parametrize("option", ["--step-name", "--where"])
def test_a_pattern_that_takes_too_long_is_refused(
    option: str, pattern: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LIMIT_S", 0.1)
    path = tmp_path / "a.json"
    rows = [
        {"ph": "X", "name": name, "pid": 1, "tid": 1, "ts": 9 * at, "dur": 5} for at, name in enumerate(["ok", NAME])
    ]
    path.write_text(json.dumps({"traceEvents": rows, "displayTimeUnit": "ns"}))
    stated = pattern if option == "--step-name" else f"name~'{pattern}'"
    questions = Questions(step_name=pattern) if option == "--step-name" else Questions(where=stated)
    with pytest.raises(UsageError) as refused:
        report([path], questions)
    assert str(refused.value) == f"{option}: the pattern {pattern} takes too long on '{NAME[:60]}...'"
    assert "(a+)+" in refused.value.hint


@pytest.mark.parametrize("pattern", ["a+$", "a++$", "(?:a++)+$"])
def test_what_the_hint_proposes_ends(pattern: str) -> None:
    assert UserPattern("--where", pattern).accepted([NAME, "aa"]) == [False, True]


PYTHON = Path(sys.executable).resolve()


def program(folder: Path, name: str, lines: str) -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{lines}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ("exit 3", "exit code 3"),
        ("kill -TERM $$", "signal 15"),
        ("cat > /dev/null; printf -- -1", "exit code 0"),
        (f'ulimit -v 4000; exec {PYTHON} "$@"', "(signal|exit code)"),
    ],
    ids=["fails", "killed", "stops early", "no memory"],
)
def test_without_a_limit_it_is_refused(lines: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", program(tmp_path, "python3", lines))
    with pytest.raises(UsageError, match=rf"^--where: no Python could match .*\({why}") as refused:
        UserPattern("--where", "(a+)+$").accepted([NAME, "aa"])
    assert "\n" not in refused.value.message
    assert UserPattern("--where", "a").accepted(["ba", "b"]) == [True, False]  # needs none, as the hint says


def test_the_last_resort_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "")
    monkeypatch.setattr(sys, "base_prefix", "/no/such/folder")
    with pytest.raises(UsageError, match="No such file"):
        UserPattern("--where", "a+").accepted(["ba", "b"])


@pytest.mark.parametrize("name", SEVERAL_WAYS)
def test_each_sign_of_several_ways_needs_the_limit(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", program(tmp_path, "python3", "exit 1"))
    with pytest.raises(UsageError, match="within a limit"):
        UserPattern("--where", name).accepted(["ab"])


@pytest.mark.parametrize("executable", ["", "/usr/sbin/uwsgi", "/no/such/folder/python3", "/bin/interpreter"])
def test_a_program_that_is_no_python_takes_the_installed_one(executable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", executable)
    monkeypatch.setattr(limits, "LIMIT_S", 0.1)
    assert UserPattern("--where", "a+").accepted(["ba", "b"]) == [True, False]
    with pytest.raises(UsageError, match="takes too long"):
        UserPattern("--where", "(a+)+$").accepted([NAME])


@pytest.mark.parametrize("state", ["ignored", "blocked"])
def test_the_signals_of_who_started_us_do_not_matter(state: str, tmp_path: Path) -> None:
    signals = "[signal.SIGPROF, signal.SIGXCPU]"
    said = f"[signal.signal(one, signal.SIG_IGN) for one in {signals}]"
    if state == "blocked":
        said = f"signal.pthread_sigmask(signal.SIG_BLOCK, {signals})"
    code = (
        f"import signal; {said}\nfrom traceconv.io import limits as u\nu.LIMIT_S = 0.1\n"
        f"u.UserPattern('--where', '(a+)+$').accepted(['{NAME}'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "takes too long" in done.stderr


@pytest.mark.parametrize("pattern", ["(", "a{99999999999999999999}", "(" * 9999 + ")" * 9999])
@pytest.mark.parametrize("option", ["--step-name", "--where"])
def test_what_is_no_pattern_is_refused(option: str, pattern: str) -> None:
    questions = Questions(step_name=pattern) if option == "--step-name" else Questions(where=f"name~'{pattern}'")
    with pytest.raises(UsageError, match=f"^{option}"):
        questions.check()

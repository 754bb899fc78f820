"""Patterns of users are those of `re`, and end."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from traceconv.answers import Questions
from traceconv.api import report
from traceconv.errors import UsageError
from traceconv.io import user_pattern
from traceconv.io.user_pattern import UserPattern

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


@pytest.mark.parametrize("how", ["search", "fullmatch"])
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.filterwarnings("ignore:Possible nested set")
def test_it_is_that_of_python(pattern: str, how: str) -> None:
    expected = [getattr(re, how)(pattern, text) is not None for text in TEXTS]
    assert user_pattern.user_pattern("--where", pattern).accepted(TEXTS, whole=how == "fullmatch") == expected


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
    monkeypatch.setattr(user_pattern, "LIMIT_S", 0.1)
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


def test_a_python_that_does_not_start_is_no_slow_pattern(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "python3"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(broken))
    assert UserPattern("--where", "a+").accepted(["ba", "b"]) == [True, False]


@pytest.mark.parametrize("executable", ["", "/usr/sbin/uwsgi", "/no/such/folder/python3"])
def test_without_another_python_it_is_matched_here(executable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", executable)
    assert UserPattern("--where", "a+").accepted(["ba", "b"]) == [True, False]


@pytest.mark.parametrize("pattern", ["(", "a{99999999999999999999}", "(" * 9999 + ")" * 9999])
@pytest.mark.parametrize("option", ["--step-name", "--where"])
def test_what_is_no_pattern_is_refused(option: str, pattern: str) -> None:
    questions = Questions(step_name=pattern) if option == "--step-name" else Questions(where=f"name~'{pattern}'")
    with pytest.raises(UsageError, match=f"^{option}"):
        questions.check()

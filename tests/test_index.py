"""What is asked about an input is enough: whoever would claim it is a candidate of the index."""

from __future__ import annotations

import gzip
import json
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import HANG_S
from tests.golden import ROOT, cases
from tests.test_conformance import CASES, IMPORTERS, heads, odd_lines
from tests.test_saved_again import CASES as JSON_CASES
from tests.test_saved_again import STYLES, saved
from traceconv.errors import AmbiguousFormat, UnrecognizedFormat
from traceconv.families.importer import Match
from traceconv.families.index import FORMATS, Certainty, searched
from traceconv.families.registry import answers, identify
from traceconv.io.source import Head, Source


def check(head: Head, what: object) -> None:
    """Nobody fails; whoever claims the head is a candidate, and is never surer than the index says."""
    text = searched(head, to_end=True)
    for name, cls in IMPORTERS.items():
        match = cls().sniff(head)
        assert isinstance(match, Match)
        assert match.reason
        assert "\n" not in match.reason
        assert match.certainty <= FORMATS[name].most, (what, name)
        assert match.certainty is Certainty.NO or FORMATS[name].fits(text), (what, name)


def whose(source: Source) -> str | type[Exception]:
    """Whose an input is after all importers were asked: the name, or the error."""
    found = answers(source)
    surest = max(match.certainty for match in found.values())
    names = [name for name, match in found.items() if match.certainty is surest]
    if surest is Certainty.NO:
        return UnrecognizedFormat
    return names[0] if len(names) == 1 else AmbiguousFormat


def found(source: Source) -> str | type[Exception]:
    try:
        return identify(source)[0].name
    except (AmbiguousFormat, UnrecognizedFormat) as error:
        return type(error)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_inputs_damaged_inputs_and_odd_lines(case: object) -> None:
    rng = random.Random(case.name)  # type: ignore[attr-defined]
    source = Source(case.input)  # type: ignore[attr-defined]
    assert found(source) == whose(source)
    head = source.head()
    check(head, "as it is")
    for cls in IMPORTERS.values():
        importer = cls()
        assert importer.sniff(head) == importer.sniff(head) == cls().sniff(head)
    lines = head.data.split(b"\n")[:30]
    for _ in range(10):
        check(Head(odd_lines(lines, rng), rng.random() < 0.5, "x"), "odd lines")
    coloured = b"\n".join(b"\x1b[1m" + re.sub(rb"(\w)", b"\\1\x1b[0m", line, count=3) for line in lines)
    check(Head(coloured, head.complete, "x"), "in colour")


@pytest.mark.slow
def test_chunks_and_noise() -> None:
    for head in heads():
        check(head, head.data[:100])


@pytest.mark.parametrize("case", JSON_CASES, ids=[case.name for case in JSON_CASES])
def test_json_saved_again(case: object, tmp_path: Path) -> None:
    """In other styles, with letters escaped, and with what tells the format behind what can be seen."""
    document = saved(case)  # type: ignore[arg-type]
    texts = [json.dumps(document, **style) for style in STYLES.values()]
    texts.append(texts[0].replace("/", "\\/"))
    texts.append(re.sub(r'"(\w)', lambda one: f'"\\u{ord(one[1]):04X}', texts[0]))
    if isinstance(document, dict):
        texts.append(json.dumps({"padding": "x" * 70_000} | document))
        texts.append(json.dumps(dict(reversed(document.items())) | {"~": ["y" * 70_000]}))
    path = tmp_path / "input"
    for number, text in enumerate(texts):
        path.write_bytes(gzip.compress(text.encode(), 1) if number % 2 else text.encode())
        source = Source(path)
        check(source.head(), text[:60])
        assert found(source) == whose(source)


def test_formats_have_classes_of_their_own() -> None:
    assert sorted(FORMATS) == list(FORMATS), "in alphabetical order"
    assert len({format.importer for format in FORMATS.values()}) == len(FORMATS)
    for format in FORMATS.values():
        for word in format.words:
            assert word == (word.lower() if isinstance(word, bytes) else tuple(one.lower() for one in word))
        assert format.words or format.pattern


@pytest.mark.parametrize("name", sorted({case.format for case in cases()} - {"merge"}))
def test_few_importers_are_loaded(name: str) -> None:
    """Of no golden input more than six; those that need no others' modules load the one that reads them."""
    for folder in (ROOT / name).iterdir():
        (path,) = folder.glob("input.*")
        text = searched(Source(path).head(), to_end=True)
        assert sum(format.fits(text) for format in FORMATS.values()) <= 6


def test_an_importer_that_cannot_fit_is_not_loaded() -> None:
    path = ROOT / "onednn-verbose" / "v2-threads-ts" / "input.log"
    code = (
        "import sys; from traceconv.io.source import Source; from traceconv.families.registry import identify; "
        f"print(identify(Source({str(path)!r}))[0].name); print(*sorted(sys.modules))"
    )
    name, modules = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=HANG_S
    ).stdout.splitlines()
    assert name == "onednn-verbose"
    families = {one.split(".")[2] for one in modules.split() if one.startswith("traceconv.families.")}
    assert families <= {"common", "importer", "index", "onednn", "plugins", "registry"}

"""What is asked about an input is enough: whoever would claim it is a candidate of the index."""

from __future__ import annotations

import ast
import gzip
import importlib
import inspect
import json
import pkgutil
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import HANG_S
from tests.golden import ROOT, Case, by_format, cases
from tests.test_conformance import CASES, IMPORTERS, heads, odd_lines
from tests.test_saved_again import CASES as JSON_CASES
from tests.test_saved_again import STYLES, saved
from tests.together import together
from traceconv import families
from traceconv.errors import AmbiguousFormat, UnrecognizedFormat
from traceconv.families import index
from traceconv.families.identification import searched
from traceconv.families.importer import Certainty, Importer, Match
from traceconv.families.index import FORMATS
from traceconv.families.registry import identify
from traceconv.io.source import Head, Source

INDEX = '''"""The index of formats: where each importer is, and what its inputs contain. Only those that fit are loaded.

It repeats what the importers declare, and is written by `pytest tests/test_index.py --update-golden`.
"""

from traceconv.families.importer import FIELD_1, Certainty, Signature

FORMATS = {{
{}
}}
'''


def check(head: Head, what: object) -> dict[str, Match]:
    """Return what each importer says. Who claims the head is a candidate, no surer than the index says."""
    text = searched(head, to_end=True)
    found = {name: cls().sniff(head) for name, cls in IMPORTERS.items()}
    for name, match in found.items():
        assert isinstance(match, Match)
        assert match.reason
        assert "\n" not in match.reason
        assert match.certainty <= FORMATS[name][1].most, (what, name)
        assert match.certainty is Certainty.NO or FORMATS[name][1].fits(text), (what, name)
    return found


def whose(found: dict[str, Match]) -> str | type[Exception]:
    """Whose an input is after all importers were asked: the name, or the error."""
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


@by_format(CASES)
def test_inputs_damaged_inputs_and_odd_lines(cases: list[Case]) -> None:
    for case in cases:
        rng = random.Random(case.name)
        source = Source(case.input)
        head = source.head()
        assert found(source) == whose(check(head, f"{case.name} as it is")), case.name
        for cls in IMPORTERS.values():
            importer = cls()
            assert importer.sniff(head) == importer.sniff(head) == cls().sniff(head), (case.name, cls.name)
        lines = head.data.split(b"\n")[:30]
        for _ in range(3):
            check(Head(odd_lines(lines, rng), rng.random() < 0.5, "x"), f"odd lines of {case.name}")
        coloured = b"\n".join(b"\x1b[1m" + re.sub(rb"(\w)", b"\\1\x1b[0m", line, count=3) for line in lines)
        check(Head(coloured, head.complete, "x"), f"{case.name} in colour")


@pytest.mark.slow
def test_chunks_and_noise() -> None:
    for head in heads():
        check(head, head.data[:100])


@by_format(JSON_CASES)
def test_json_saved_again(cases: list[Case], tmp_path: Path) -> None:
    """In other styles, with letters escaped, and with what tells the format behind what can be seen."""
    with together() as each:
        for case in cases:
            with each(case.name):
                check_saved(case, tmp_path / "input")


def check_saved(case: Case, path: Path) -> None:
    document = saved(case)
    texts = [json.dumps(document, **style) for style in STYLES.values()]
    texts.append(texts[0].replace("/", "\\/"))
    texts.append(re.sub(r'"(\w)', lambda one: f'"\\u{ord(one[1]):04X}', texts[0]))
    if isinstance(document, dict):
        texts.append(json.dumps({"padding": "x" * 70_000} | document))
        texts.append(json.dumps(dict(reversed(document.items())) | {"~": ["y" * 70_000]}))
    for number, text in enumerate(texts):
        path.write_bytes(gzip.compress(text.encode(), 1) if number % 2 else text.encode())
        source = Source(path)
        assert found(source) == whose(check(source.head(), text[:60]))


def declared() -> dict[str, type[Importer]]:
    """The importers of all modules, by name, without use of the index."""
    for module in pkgutil.walk_packages(families.__path__, f"{families.__name__}."):
        importlib.import_module(module.name)
    found = [cls for cls in Importer.__subclasses__() if cls.__module__.startswith(f"{families.__name__}.")]
    assert len({cls.name for cls in found}) == len(found)
    return {cls.name: cls for cls in sorted(found, key=lambda cls: cls.name)}


def place_of(cls: type[Importer]) -> str:
    return f"{cls.__module__.removeprefix(f'{families.__name__}.')}:{cls.__name__}"


def index_text() -> str:
    """The module of the index, with each signature as it stands in its class."""
    rows = []
    for name, cls in declared().items():
        source = inspect.getsource(cls)
        (body,) = ast.parse(source).body
        (said,) = [line for line in body.body if isinstance(line, ast.Assign) and line.targets[0].id == "signature"]
        rows.append(f"{name!r}: ({place_of(cls)!r}, {ast.get_source_segment(source, said.value)}),")
    text = INDEX.format("\n".join(rows))
    ruff = [sys.executable, "-m", "ruff", "format", "--stdin-filename", index.__file__, "-"]
    return subprocess.run(ruff, input=text, capture_output=True, text=True, check=True, timeout=HANG_S).stdout


def test_the_index_says_what_importers_declare(update_golden: bool) -> None:
    if update_golden:
        Path(index.__file__).write_text(index_text(), encoding="utf-8")
        importlib.reload(index)
    wanted = {name: (place_of(cls), cls.signature) for name, cls in declared().items()}
    assert list(index.FORMATS.items()) == list(wanted.items()), f"run pytest {__file__} --update-golden"


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_the_facts_and_options_of_a_format_are_few(name: str) -> None:
    """At the head of its class, before the texts for people, in at most 25 lines."""
    (body,) = ast.parse(inspect.getsource(IMPORTERS[name])).body
    facts = next(line for line in body.body if not isinstance(line, ast.Expr))  # behind the docstring, if there is one
    texts = next(line for line in body.body if ast.unparse(line).startswith("line_up ="))
    assert ast.unparse(facts) == f"name = {name!r}"
    assert texts.lineno - 1 - facts.lineno <= 25


def test_signatures_are_not_empty_and_in_lower_case() -> None:
    for _, signature in FORMATS.values():
        assert signature.words == signature.words.lower()
        assert signature.words or signature.patterns


@pytest.mark.parametrize("name", sorted({case.format for case in cases()} - {"merge"}))
def test_few_importers_are_loaded(name: str) -> None:
    """Of no golden input more than six; those that need no others' modules load the one that reads them."""
    for folder in (ROOT / name).iterdir():
        (path,) = folder.glob("input.*")
        text = searched(Source(path).head(), to_end=True)
        assert sum(signature.fits(text) for _, signature in FORMATS.values()) <= 6


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
    assert families <= {"common", "identification", "importer", "index", "onednn", "plugins", "registry"}

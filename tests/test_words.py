"""One word for one thing: those that the glossary replaces are in no text and no name of the product."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import traceconv
from tests.literals import texts_of
from traceconv.model.diagnostics import DECLARED

ROOT = Path(__file__).parent.parent
#: What must not be said, as a pattern, and what to say.
FORBIDDEN = {
    r"word of the user": "what the user states",
    r"lonely": "half a flow, alone",
    r"mend(ed|s|ing)?": "repair",
    r"twins?": "duplicate inputs",
    r"(the|a|its|their|each|same) begins?": "start",
    r"arrows?": "flow",
    r"facts": "constraints, metadata, or what is known",
    r"alike": "equal, similar, together",
    r"pieces?": "chunk, part, segment",
    r"meanwhile": "in between, or while it lasts",
    r"lined up": "aligned",
    r"begins of": "starts of",
    r"(?<!there )(is|are|was|were) no (?!longer|more|better|wider|further|less|greater|such|other|one)": "is not",
    r"strangers?": "unknown names or inputs",
    r"amid": "between",
    r"in the words of": "in the terms of, by the names of",
    r"of which the": "its, or a sentence of its own",
    r"what is said of": "the message, error or note about",
    r"(none|nothing else|nobody) (says|knows)": "not stated, not known, not documented",
    r"says? nothing of": "ignores, does not state",
    r"that says? so": "that tells this, that state it",
    r"((here|there|where)(of|in|upon|with)|[wt]hence|hitherto|heretofore|upon|thrice|whose own)": "plain English",
    r"what (stands|lies|joins|relates|tells|speaks|rests|ties|surrounds|separates|holds|contains)": "a noun",
}
#: Names that do not say what they hold: with a noun they do, as `its_form`.
NOT_NAMES = {"one", "its", "own", "both", "of", "it", "mine", "every"}
#: Apache Arrow.
ALLOWED = re.compile(
    r"Apache Arrow|Arrow('s| table| array| or |, )|pyarrow|[_.]arrow|\[arrow\]|arrow_c|arrow;|`arrow`|\"arrow\"|"
    r"parquet, csv or arrow|CSV, Arrow|CSV or Arrow"
)
SUFFIXES = (".py", ".pyx", ".pxi", ".j2")
TEXTS = sorted(
    [path for path in (ROOT / "traceconv").rglob("*") if path.suffix in SUFFIXES]
    + [*ROOT.glob("docs/*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("schemas/*.json")]
)


@cache
def _said() -> dict[Path, str]:
    """Return the texts without what is allowed."""
    return {path: ALLOWED.sub("", path.read_text(encoding="utf-8")) for path in TEXTS}


@pytest.mark.parametrize("word", FORBIDDEN, ids=FORBIDDEN.values())
def test_what_the_glossary_replaces_is_not_said(word: str) -> None:
    # Names are words too: `_LONELY`, `mended_text`.
    pattern = re.compile(rf"(?<![a-z]){word}(?![a-z])", re.IGNORECASE)
    found = [
        f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}: {match[0]}"
        for path, text in _said().items()
        for match in pattern.finditer(text)
    ]
    assert not found, f"say {FORBIDDEN[word]}:\n" + "\n".join(found)


def _given_names(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each variable, argument, attribute and function that a module makes."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Name(name, ast.Store()) | ast.arg(name) | ast.Attribute(_, name, ast.Store()):
                yield node.lineno, name
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
                yield node.lineno, name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield node.lineno, name
            case ast.alias(asname=str(name)):
                yield node.lineno, name


def test_each_kind_of_name_is_found() -> None:
    kinds = (
        "one = 1", "for one in (): pass", "[one for one in ()]", "a, *one = x", "with f as one: pass", "(one := 1)",
        "class A:\n one: int", "a.one = 1", "def one(): pass", "async def one(): pass", "def f(one): pass",
        "def f(*one): pass", "def f(**one): pass", "def f(*, one=1): pass", "lambda one: 0", "class one: pass",
        "try: pass\nexcept A as one: pass", "import a as one", "from a import b as one",
        "match x:\n case one: pass", "match x:\n case [*one]: pass", "match x:\n case A() as one: pass",
    )  # fmt: skip
    assert [text for text in kinds if "one" not in {name for _, name in _given_names(text)}] == []
    assert "one" not in {name for _, name in _given_names("print(a.one, one(one=1))")}  # these are only used


def test_names_say_what_they_hold() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in TEXTS
        if path.suffix == ".py"
        for line, name in _given_names(path.read_text(encoding="utf-8"))
        if name.strip("_") in NOT_NAMES
    ]
    assert not found, "say what it is, as a noun:\n" + "\n".join(found)


def _long_sentences(text: str) -> list[str]:
    """Return the sentences, clauses and brackets of a text with more than 20 words; a field counts as one."""
    parts = re.split(r"(?<=[.!?:;])\s+|\s(?=\()", re.sub(r"\{[^}]*\}", "X", text))
    return [part for part in parts if sum(bool(re.search(r"\w", word)) for word in part.split()) > 20]


def test_messages_have_at_most_20_words_a_sentence() -> None:
    for module in pkgutil.walk_packages(traceconv.__path__, "traceconv."):
        if "._" not in module.name or module.name.startswith(("traceconv.families", "traceconv.check")):
            importlib.import_module(module.name)
    texts = dict(texts_of(Path(traceconv.__file__).parent / "align"))
    texts |= {code.name: code.help for code in DECLARED.values()}
    assert len(texts) > 300
    assert not {name: long for name, text in texts.items() if (long := _long_sentences(text))}

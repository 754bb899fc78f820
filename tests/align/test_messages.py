"""Texts of alignment: each is said somewhere, about the fields that it names, and shown as its template asks for."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest

import traceconv
from traceconv.align import messages
from traceconv.align.messages import Text

_PACKAGE = Path(traceconv.__file__).parent


def _fields(template: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(template) if name is not None}


def _said() -> Iterator[tuple[str, str, set[str] | None]]:
    """Each text that the package says: where, its name, and the fields, None where they are not listed there."""
    for path in sorted(_PACKAGE.rglob("*.py")):
        if path.name == "messages.py":
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        called = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                called[node.func] = {keyword.arg or "**" for keyword in node.keywords}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Text":
                yield f"{path.name}:{node.lineno}", node.attr, called.get(node)


def test_each_text_is_said_and_about_its_fields() -> None:
    said = Counter[str]()
    for where, name, fields in _said():
        said[name] += 1
        if fields is not None and "**" not in fields:
            assert fields == _fields(Text[name].value), where
    assert set(Text.__members__) == set(said)
    assert len(Text) == len(Text.__members__), "two names of one text"


@pytest.mark.parametrize(
    ("template", "value", "shown"),
    [
        ("{x:time}", 1_500_000, "1.5 ms"),
        ("{x:short}", 71_512_345, "71.5 ms"),
        ("{x:us}", 250_400, "250 µs"),
        ("{x:move}", -1_500_000, "1.5 ms earlier"),
        ("{x:option}", 1_500_000, "+1.5ms"),
        ("{x:bound}", None, "not known"),
        ("{x:file}", "a b.json", "'a b.json'"),
        ("{x:files}", ["a", "b c"], "a 'b c'"),
        ("{x:list}", ("a", 2), "a, 2"),
        ("{x:and}", ("a", "b"), "a and b"),
        ("{x:repr}", "a", "'a'"),
        ("{x:slice s}", 1, "1 slice"),
        ("{x:slice s}", 2, "2 slices"),
        ("{x:.1f}", 2.25, "2.2"),
        ("{x}", Text.VIEWS_APART(), Text.VIEWS_APART.value),
    ],
)
def test_a_field_is_shown_as_its_template_asks(
    template: str, value: object, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(messages.TEMPLATES, Text.QUEUED, template)
    assert str(Text.QUEUED(x=value)) == shown

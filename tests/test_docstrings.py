"""Docstrings of functions begin with a verb: D401 of ruff lets nouns pass, such as `Rows that have times`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
_VERBS = """
Add Allow Anchor Answer Append Begin Bind Bring Call Change Check Close Compare Convert Copy Count Create Decide
Declare Decode Describe Do Double Draw Drop End Find Finish Fit Follow Forget Give Go Hand Handle Have Ignore Join
Keep Know Lay Learn Leave Let List Look Make Map Merge Move Name Note Open Pair Pass Place Prepare Print Put Raise
Rank Read Recognise Refuse Register Relate Remove Render Replace Report Return Run Say Search See Send Serve Set Show
Skip Sort Split Start Store Take Tell Turn Widen Write Yield
"""
VERBS = frozenset(_VERBS.split())


def first_words(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and first word of the docstrings of all functions but properties."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node)
            is_property = any("property" in ast.unparse(decorator) for decorator in node.decorator_list)
            if docstring is not None and not is_property:
                yield node.lineno, docstring.split()[0].rstrip(",:;.")


def test_docstrings_of_functions_begin_with_a_verb() -> None:
    odd = [
        f"{path.relative_to(ROOT)}:{line}: {word}"
        for path in sorted((ROOT / "traceconv").rglob("*.py"))
        for line, word in first_words(ast.parse(path.read_text(encoding="utf-8")))
        if word not in VERBS
    ]
    assert not odd, "say what is done or returned, or add the verb to VERBS:\n" + "\n".join(odd)

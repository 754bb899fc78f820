"""The texts in the source of the product."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path


def texts_of(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield each text in the modules of a folder, with its place, but no docstring. A field of an f-string is an X."""
    for path in sorted(folder.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        inner = {value for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for value in node.values}
        documented = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                yield f"{path.name}:{node.lineno}", "".join(map(_shown, node.values))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inner | documented:
                yield f"{path.name}:{node.lineno}", node.value


def _shown(part: ast.expr) -> str:
    return str(part.value) if isinstance(part, ast.Constant) else "X"

"""Prove that a change touches docstrings and comments alone: `python -m tests.only_words_changed [BASE]`.

Compares the syntax trees of all Python files of the product, without docstrings, with those at a commit (by default
HEAD).
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

_WITH_DOCSTRINGS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def without_docstrings(text: str) -> str:
    """Return the syntax tree of a module, in words, without docstrings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, _WITH_DOCSTRINGS) and ast.get_docstring(node) is not None:
            del node.body[0]
    return ast.dump(tree)


def main(base: str = "HEAD") -> int:
    """Print the files that differ in more than words; return the exit status."""
    listing = subprocess.check_output(["git", "diff", "--name-only", base, "--", "traceconv/"], text=True)
    changed = []
    for path in listing.splitlines():
        before = subprocess.run(["git", "show", f"{base}:{path}"], capture_output=True, check=False).stdout.decode()
        after = Path(path).read_text(encoding="utf-8") if Path(path).exists() else ""
        if not path.endswith(".py") or without_docstrings(before) != without_docstrings(after):
            changed.append(path)
    print("\n".join(f"more than words: {path}" for path in changed) or "only docstrings and comments differ")
    return bool(changed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""Prove that a change touches docstrings and comments alone: `python -m tests.only_words_changed [--names] [BASE]`.

Compares the syntax trees of all Python files of the product, without docstrings, with those at a commit (by default
HEAD). With `--names`, names of variables, parameters, attributes and functions may differ, too; mypy and the tests show
whether they still agree.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

_WITH_DOCSTRINGS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_NAMES = ("id", "attr", "arg", "name")


def without_docstrings(text: str, names: bool) -> str:
    """Return the syntax tree of a module, in words, without docstrings, and without names if `names` may differ."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, _WITH_DOCSTRINGS) and ast.get_docstring(node) is not None:
            del node.body[0]
        for name in _NAMES if names else ():
            if isinstance(getattr(node, name, None), str):
                setattr(node, name, "_")
    return ast.dump(tree)


def main(*args: str) -> int:
    """Print the files that differ in more than words; return the exit status."""
    names = "--names" in args
    base = next((arg for arg in args if arg != "--names"), "HEAD")
    listing = subprocess.check_output(["git", "diff", "--name-only", base, "--", "traceconv/"], text=True)
    changed = []
    for path in listing.splitlines():
        before = subprocess.run(["git", "show", f"{base}:{path}"], capture_output=True, check=False).stdout.decode()
        after = Path(path).read_text(encoding="utf-8") if Path(path).exists() else ""
        if not path.endswith(".py") or without_docstrings(before, names) != without_docstrings(after, names):
            changed.append(path)
    print(
        "\n".join(f"more than words: {path}" for path in changed)
        or f"only {'names, ' * names}docstrings and comments differ"
    )
    return bool(changed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

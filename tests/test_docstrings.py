"""Docstrings are true, where a program can tell, and those of functions begin with a verb.

D401 of ruff lets nouns pass, such as `Rows that have times`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
_VERBS = """
Accept Adapt Add Advance Aggregate Allow Anchor Answer Append Apply Ask Assemble Assign Attach Attribute Begin Bind
Bring Cache Call Change Check Choose Clamp Clear Close Collapse Combine Compare Complete Compute Concatenate Connect
Convert Copy Correct Count Create Cut Decide Declare Decode Define Delete Demangle Describe Detect Discard Divide Do
Double Drain Draw Drop Dump Encode End Escape Estimate Evaluate Execute Expand Expose Extend Extract Fetch Fill Find
Finish Fit Fold Follow Forget Format Forward Free Give Go Group Guess Hand Handle Have Identify Ignore Infer
Initialise Insert Intern Interrupt Join Keep Know Lay Learn Leave Let Limit Link List Listen Load Look Make Map Mark
Match Measure Merge Move Name Normalise Note Number Open Order Pair Parse Pass Place Point Prepare Print Put Query
Queue Raise Rank Read Recognise Recover Reduce Refuse Register Relate Remove Rename Render Renumber Reorder Repair
Replace Report Reserve Reset Resolve Restore Return Rewrite Run Save Say Scan Schedule Search See Select Send Separate
Serve Set Shift Shorten Show Skip Sort Split Start State Stop Store Subtract Sum Swap Take Tell Test Trace Track Trim
Truncate Turn Undo Unpack Update Validate Verify Visit Wait Walk Warn Weigh Widen Wrap Write Yield
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
        f"{path}:{line}: {word}"
        for path, tree in trees().items()
        for line, word in first_words(tree)
        if word not in VERBS
    ]
    assert not odd, "say what is done or returned, or add the verb to VERBS:\n" + "\n".join(odd)


@cache
def trees() -> dict[str, ast.Module]:
    """The modules of the package, by path."""
    paths = sorted((ROOT / "traceconv").rglob("*.py"))
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def documented(docstring: str) -> list[str]:
    """The names under `Attributes:`, which are indented less than their continued lines."""
    _, _, section = docstring.partition("Attributes:\n")
    section = re.split(r"\n\n(?! )", section)[0]
    return [
        name for names in re.findall(r"^    (\w+(?:, \w+)*): ", section, re.MULTILINE) for name in names.split(", ")
    ]


def attributes(of: ast.ClassDef) -> set[str]:
    """What a class or its methods define."""
    names = {node.name for node in of.body if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(of):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr)
    return names


def test_documented_attributes_are_there() -> None:
    found, odd = 0, []
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                names = documented(ast.get_docstring(node) or "")
                found += len(names)
                odd += [f"{path}:{node.lineno}: {node.name}.{name}" for name in names if name not in attributes(node)]
    assert found > 500
    assert not odd, "these do not exist:\n" + "\n".join(odd)


def test_functions_that_yield_are_those_that_say_so() -> None:
    odd = []
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and (ast.get_docstring(node) or "").startswith("Yield "):
                returned = ast.unparse(node.returns) if node.returns else ""
                if not re.match(r"(?:Async)?(?:Iterator|Generator|Iterable)\b", returned):
                    odd.append(f"{path}:{node.lineno}: {node.name} returns {returned}")
    assert not odd, "these yield nothing:\n" + "\n".join(odd)

"""Modules import each other in one direction, also inside functions; imports for annotations alone do not count."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import traceconv

FOLDER = Path(traceconv.__file__).parent
#: It loads the names of the library when they are asked for, from modules that import it.
PACKAGE = "traceconv"


def modules() -> dict[str, Path]:
    """All modules by name."""
    paths = sorted(FOLDER.rglob("*.py"))
    return {
        ".".join(path.relative_to(FOLDER.parent).with_suffix("").parts).removesuffix(".__init__"): path
        for path in paths
    }


def imported(node: ast.AST) -> Iterator[str]:
    """The names that code imports, each with the module that it is of."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert not child.level
            yield from (f"{child.module}.{alias.name}" for alias in child.names)
        yield from imported(child)


@cache
def imports() -> dict[str, set[str]]:
    """The modules that each module imports."""
    known = modules()
    graph: dict[str, set[str]] = {}
    for module, path in known.items():
        names = imported(ast.parse(path.read_text("utf-8")))
        whole = {name if name in known else name.rpartition(".")[0] for name in names}
        graph[module] = {name for name in whole if name in known and name not in (module, PACKAGE)}
    return graph


def test_no_two_modules_import_each_other() -> None:
    graph = imports()
    assert sum(map(len, graph.values())) > 1000
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" -> ".join(error.args[1])) from None


def test_reading_knows_no_alignment_and_the_model_no_importer() -> None:
    graph = imports()

    def behind(start: str) -> set[str]:
        """The modules that one needs, directly or through others."""
        found, left = set[str](), {start}
        while left:
            found |= left
            left = set().union(*(graph[name] for name in left)) - found
        return found

    assert not [name for name in behind("traceconv.reading") if name.startswith("traceconv.align")]
    for module in graph:
        if module.startswith("traceconv.model."):
            above = ("traceconv.families", "traceconv.writers", "traceconv.align", "traceconv.reading")
            assert not [name for name in behind(module) if name.startswith(above)], module

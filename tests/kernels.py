"""The kernel's modules as they are compiled, and the same sources uncompiled."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from types import ModuleType

import traceconv.kernel as kernel


def uncompiled(name: str) -> ModuleType:
    """A module of the kernel, run from its source."""
    path = Path(str(kernel.__file__)).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"uncompiled_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def variants(name: str) -> dict[str, ModuleType]:
    """The module from its source, and compiled if that is there."""
    found = {"uncompiled": uncompiled(name)}
    if kernel.COMPILED:
        found["compiled"] = importlib.import_module(f"traceconv.kernel.{name}")
    return found

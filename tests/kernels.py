"""The kernel's modules as they are compiled, and the same sources uncompiled; traceconv with one of them, or none."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import ModuleType

import pytest

from traceconv import kernel


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
    compiled = kernel.module(name)
    return {"uncompiled": uncompiled(name)} | ({} if compiled is None else {"compiled": compiled})


@contextmanager
def using(name: str, module: ModuleType | None) -> Iterator[None]:
    """All of traceconv uses this as the module of that name, and no other module of the kernel; None: no kernel."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "module", {name: module}.get)
        yield


def without() -> AbstractContextManager[None]:
    """All of traceconv uses no module of the kernel."""
    return using("none", None)

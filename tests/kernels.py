"""The kernel's modules; traceconv with one of them, or none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import ModuleType

import pytest

from traceconv import kernel


def variants(name: str) -> dict[str, ModuleType]:
    """The compiled module if that is there."""
    compiled = kernel.module(name)
    return {} if compiled is None else {"compiled": compiled}


@contextmanager
def using(name: str, module: ModuleType | None) -> Iterator[None]:
    """All of traceconv uses this as the module of that name, and no other module of the kernel; None: no kernel."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "module", {name: module}.get)
        yield


def without() -> AbstractContextManager[None]:
    """All of traceconv uses no module of the kernel."""
    return using("none", None)

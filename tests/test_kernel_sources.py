"""The compiled modules are those of the sources beside them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from traceconv import kernel

FOLDER = Path(kernel.__file__).parent


def test_modules_are_all_there_are() -> None:
    assert sorted(kernel.MODULES) == sorted(path.stem for path in FOLDER.glob("[a-z]*.py"))


@pytest.mark.skipif(not kernel.COMPILED, reason="the kernel is not compiled (no C compiler at build time)")
@pytest.mark.parametrize("name", kernel.MODULES)
def test_modules_are_compiled_from_the_sources(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "_checked", set())
    assert hasattr(kernel.module(name), kernel.CHECKSUM), "compiled by an older hatch_build.py: compile it anew"
    source = Path(shutil.copy(FOLDER / f"{name}.py", tmp_path))
    monkeypatch.setattr(kernel, "__file__", str(tmp_path / "__init__.py"))
    monkeypatch.setattr(kernel, "_checked", set())
    assert kernel.module(name) is not None
    with source.open("a") as file:
        file.write("# more\n")
    assert kernel.module(name) is not None  # seen once is enough
    monkeypatch.setattr(kernel, "_checked", set())
    with pytest.raises(kernel.StaleKernel, match=f"{name}.py was changed after it was compiled") as caught:
        kernel.module(name)
    assert "pip install" in caught.value.hint
    source.unlink()
    assert kernel.module(name) is not None  # nothing to compare with


def test_no_module_is_used_where_the_kernel_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "COMPILED", False)
    assert kernel.module("scan") is None

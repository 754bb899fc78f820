"""The compiled modules are those of the sources beside them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import traceconv
from traceconv import kernel

ROOT = Path(traceconv.__file__).parents[1]


def test_modules_are_all_there_are() -> None:
    sources = {kernel.source_of(name) for name in kernel.MODULES}
    assert {path for path in sources if path.suffix == ".pyx"} == set(ROOT.glob("traceconv/**/*.pyx"))
    assert all(path.exists() for path in sources)


def test_all_that_is_included_is_there() -> None:
    included = {path for name in kernel.MODULES for path in _included(kernel.source_of(name))}
    assert included == set(ROOT.glob("traceconv/**/*.pxi"))
    assert not any(_included(path) for path in included), "the checksum goes one level deep"


def _included(path: Path) -> set[Path]:
    return {ROOT / found for found in re.findall(r"^\s*include\s+['\"](.+)['\"]", path.read_text(), re.MULTILINE)}


@pytest.mark.skipif(not kernel.COMPILED, reason="the kernel is not compiled (no C compiler at build time)")
@pytest.mark.parametrize("name", kernel.MODULES)
def test_modules_are_compiled_from_the_sources(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "_checked", set())
    assert hasattr(kernel.module(name), kernel.CHECKSUM), "compiled by an older hatch_build.py: compile it anew"
    original = kernel.source_of(name)
    for path in (original, *_included(original)):
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    monkeypatch.setattr(kernel, "_ROOT", tmp_path)
    source = kernel.source_of(name)
    for path in (source, *_included(original)):
        path = tmp_path / path.relative_to(tmp_path if path.is_relative_to(tmp_path) else ROOT)
        monkeypatch.setattr(kernel, "_checked", set())
        assert kernel.module(name) is not None
        before = path.read_bytes()
        path.write_bytes(before + b"# more\n")
        assert kernel.module(name) is not None  # seen once is enough
        monkeypatch.setattr(kernel, "_checked", set())
        with pytest.raises(kernel.StaleKernel, match=f"{source.name}.* was changed after it was compiled") as caught:
            kernel.module(name)
        assert "pip install" in caught.value.hint
        path.write_bytes(before)
    source.unlink()
    assert kernel.module(name) is not None  # nothing to compare with


def test_no_module_is_used_where_the_kernel_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "COMPILED", False)
    assert kernel.module("scan") is None

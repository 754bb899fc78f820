"""The compiled modules are those of the sources beside them."""

from __future__ import annotations

import importlib
import os
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


@pytest.mark.skipif(not kernel.COMPILED, reason="the kernel is not compiled (no C compiler at build time)")
@pytest.mark.slow
def test_modules_are_compiled_anew_when_their_origin_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("Cython", "hatchling", "setuptools"):
        pytest.importorskip(name, reason="what builds the package is not installed")
    monkeypatch.syspath_prepend(ROOT)
    hatch_build = importlib.import_module("hatch_build")
    source, included = tmp_path / "traceconv" / "_one.pyx", tmp_path / "traceconv" / "_part.pxi"
    source.parent.mkdir()
    source.write_text('include "traceconv/_part.pxi"\n')
    included.write_text("ONE = 1\n")
    assert hatch_build._still_good(tmp_path) == []
    built = hatch_build._compile(tmp_path)
    os.utime(source)  # newer, but the same
    assert sorted(hatch_build._still_good(tmp_path)) == sorted(built)
    for path in (source, included):
        before = path.read_text()
        path.write_text(f"{before}# more\n")
        os.utime(path, (0, 0))  # as rsync -a and cp -p may leave it
        assert hatch_build._still_good(tmp_path) == []
        path.write_text(before)
        assert len(hatch_build._still_good(tmp_path)) == 2
    monkeypatch.setattr("Cython.__version__", "another one")
    assert hatch_build._still_good(tmp_path) == []

"""The library as a user of it sees it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import traceconv
from tests.golden import ROOT

KINETO = ROOT / "pytorch-kineto" / "torch-convnet-process" / "input.json"
ONEDNN = ROOT / "onednn-verbose" / "torch-convnet-process" / "input.log"


def test_the_names_stay_what_they_are_after_use(tmp_path: Path) -> None:
    """Importing a submodule sets an attribute of the package: none may have the name of a function."""
    code = (
        "import traceconv, sys\n"
        "for name in ('a', 'b'):\n"
        f"    traceconv.merge([{str(KINETO)!r}, {str(ONEDNN)!r}], {str(tmp_path)!r} + '/' + name + '.pftrace')\n"
        f"    traceconv.convert({str(ONEDNN)!r}, {str(tmp_path)!r} + '/' + name + '.json')\n"
        f"    traceconv.identify({str(ONEDNN)!r}); traceconv.formats(); traceconv.read({str(ONEDNN)!r})\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr.decode()
    assert (tmp_path / "a.pftrace").read_bytes() == (tmp_path / "b.pftrace").read_bytes()


@pytest.mark.parametrize("name", [name for name in traceconv.__all__ if name.islower()])
def test_every_public_function_is_documented(name: str) -> None:
    assert (getattr(traceconv, name).__doc__ if name != "__version__" else "text").strip()


def test_a_read_trace_can_be_written(tmp_path: Path) -> None:
    trace = traceconv.read(KINETO)
    traceconv.write(trace, tmp_path / "a.pftrace")
    traceconv.convert(KINETO, tmp_path / "b.pftrace")
    assert (tmp_path / "a.pftrace").read_bytes() == (tmp_path / "b.pftrace").read_bytes()


def test_a_trace_on_unrelated_clocks_is_not_written(tmp_path: Path) -> None:
    log = tmp_path / "two.log"
    line = "onednn_verbose,v1,{},primitive,exec,cpu,reorder,jit:uni,undef,src:f32::blocked:a::f0,,,16,0.25"
    log.write_text(line.format("1795245457236.579102") + "\n" + line.format("12345.5") + "\n")
    with pytest.raises(traceconv.TraceconvError, match="two clocks that nothing relates"):
        traceconv.write(traceconv.read(log), tmp_path / "a.pftrace")

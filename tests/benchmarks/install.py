"""Measures how long pip takes to install traceconv: `python -m tests.benchmarks.install`.

Prints wall times in seconds of `pip install` into new virtual environments: of the wheel alone, of the wheel with
what it needs, and of the sources, which builds the wheel. Downloads are done before, into the cache of pip.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks.frame import ROOT


def main() -> None:
    """Build the wheel, install, print."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([sys.executable, "-m", "pip", "wheel", "-qq", "--no-deps", "-w", name, str(ROOT)], check=True)
        (wheel,) = folder.glob("*.whl")
        _install(folder / "warm", str(wheel))
        size = wheel.stat().st_size / 1e6
        print(f"the wheel of {size:.2f} MB alone: {_install(folder / 'a', str(wheel), '--no-deps'):.1f} s")
        print(f"the wheel and what it needs: {_install(folder / 'b', str(wheel)):.1f} s")
        print(f"pip install . (builds the wheel): {_install(folder / 'c', str(ROOT)):.1f} s")


def _install(venv: Path, *what: str) -> float:
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    command = [str(venv / "bin" / "python"), "-m", "pip", "install", "-qq", "--disable-pip-version-check", *what]
    start = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()

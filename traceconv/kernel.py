"""Find the compiled modules: the loops that see every byte, of some importers and writers and of the model.

They lie beside the Python modules that use them, in Cython, and know bytes, arrays and integers only. Plain Python does
the same, only slower, and is the specification. It handles what a compiled module leaves to it, and everything where no
C compiler was there when the package was built: `COMPILED` is False then. Setting TRACECONV_KERNEL to off (or
0, no, false) has the same effect.

Callers get a module from `kernel.module` at each use and keep no reference to it, so that tests can replace it.
"""

from __future__ import annotations

import importlib
import os
import re
import zlib
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

from traceconv.errors import TraceconvError

#: The modules that are compiled.
MODULES = {
    "encode": "traceconv.families.perfetto._encode",
    "json_rows": "traceconv.families.chrome._json_rows",
    "lines": "traceconv.families.common._lines",
    "nesting": "traceconv.model._nesting",
    "packets": "traceconv.families.perfetto._decode",
    "scan": "traceconv.families.chrome._scan",
    "strings": "traceconv.model._strings",
}
#: What a compiled module calls the CRC-32 of its source and of what that includes; hatch_build.py adds it.
CHECKSUM = "SOURCE_CRC32"
#: The folder of the package.
_ROOT = Path(__file__).parents[1]
_OFF = ("off", "0", "no", "false")
_INCLUDE = re.compile(rb'^include "(.+)"', re.MULTILINE)


def source_of(name: str) -> Path:
    """Return where the source of a module is, if it is there."""
    return _ROOT.joinpath(*MODULES[name].split(".")).with_suffix(".pyx")


def _is_compiled(name: str) -> bool:
    source = source_of(name)
    return any(source.with_name(f"{source.stem}{suffix}").exists() for suffix in EXTENSION_SUFFIXES)


_THERE = all(map(_is_compiled, MODULES))
#: Whether the compiled modules are there and wanted.
COMPILED = _THERE and os.environ.get("TRACECONV_KERNEL", "").lower() not in _OFF
_checked: set[str] = set()


class StaleKernel(TraceconvError):
    """A module of the kernel was changed after it was compiled."""


def module(name: str) -> Any:
    """Return a compiled module by its name; None where the kernel is not used.

    Raises:
        StaleKernel: its source is there and not the one that it was compiled from.
    """
    if not COMPILED:
        return None
    loaded = importlib.import_module(MODULES[name])
    if name not in _checked:
        source = source_of(name)
        expected = getattr(loaded, CHECKSUM, None)  # none where it was compiled by other means than hatch_build.py
        if expected is not None and source.exists() and _checksum(source) != expected:
            raise StaleKernel(
                f"{source.name} (of {MODULES[name]}), or what it includes, was changed after it was compiled",
                hint="compile it: pip install -e . in the checkout; or do without it: TRACECONV_KERNEL=off",
            )
        _checked.add(name)
    return loaded


def _checksum(source: Path) -> int:
    """Return the CRC-32 of a source and of what it includes."""
    text = source.read_bytes()
    return zlib.crc32(text + b"".join((_ROOT / os.fsdecode(path)).read_bytes() for path in _INCLUDE.findall(text)))


def about() -> str:
    """Return one sentence on whether the kernel is used, and what to do about it if not."""
    if COMPILED:
        return "The kernel is compiled."
    if _THERE:
        return "The kernel is compiled but not used, since TRACECONV_KERNEL is off: large files take longer."
    return "The kernel is not compiled, so large files take longer: reinstall traceconv with a C compiler."

"""The loops that see every byte: plain JSON events and lines that repeat into columns, columns into packets.

Each module here is Python that Cython compiles (its pure-Python mode), and knows bytes, arrays and integers only. Where
no C compiler was at hand when the package was built, the modules stay as they are; byte by byte they would be slower
in the interpreter than what the importers and writers do without them, so nobody uses them then: `COMPILED` is False,
and the same results take longer. Setting TRACECONV_KERNEL to off (or 0, no, false) has the same effect.

Who has a use for a module asks `kernel.module` each time, so that tests may put another one in its place.
"""

from __future__ import annotations

import importlib.util
import os
import zlib
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

from traceconv.errors import TraceconvError


def _is_compiled(module: str) -> bool:
    spec = importlib.util.find_spec(f"{__name__}.{module}")
    return spec is not None and (spec.origin or "").endswith(tuple(EXTENSION_SUFFIXES))


#: The modules that are compiled, by name.
MODULES = ("encode", "json_rows", "lines", "nesting", "packets", "pair_rows", "scan")
#: What a compiled module calls the CRC-32 of its source; hatch_build.py adds it.
CHECKSUM = "SOURCE_CRC32"
_OFF = ("off", "0", "no", "false")
#: Whether the compiled modules are there and wanted.
COMPILED = os.environ.get("TRACECONV_KERNEL", "").lower() not in _OFF and all(map(_is_compiled, MODULES))
_checked: set[str] = set()


class StaleKernel(TraceconvError):
    """A module of the kernel was changed after it was compiled."""


def module(name: str) -> Any:
    """A compiled module by its name; None where the kernel is not used.

    Raises:
        StaleKernel: its source lies beside it and is not the one that it was compiled from.
    """
    if not COMPILED:
        return None
    found = importlib.import_module(f"{__name__}.{name}")
    if name not in _checked:
        source = Path(__file__).with_name(f"{name}.py")
        expected = getattr(found, CHECKSUM, None)  # none where it was compiled by other means than hatch_build.py
        if expected is not None and source.exists() and zlib.crc32(source.read_bytes()) != expected:
            raise StaleKernel(
                f"traceconv/kernel/{name}.py was changed after it was compiled",
                hint="compile it: pip install -e . in the checkout; or do without it: TRACECONV_KERNEL=off",
            )
        _checked.add(name)
    return found


def about() -> str:
    """One sentence on whether the kernel is used, and what to do about it if not."""
    if COMPILED:
        return "The kernel is compiled."
    if all(map(_is_compiled, MODULES)):
        return "The kernel is compiled but not used, since TRACECONV_KERNEL is off: large files take longer."
    return "The kernel is not compiled, so large files take longer: install traceconv anew where there is a C compiler."

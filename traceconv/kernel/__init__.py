"""The loops that see every byte: plain JSON events and lines that repeat into columns, columns into packets.

Each module here is Python that Cython compiles (its pure-Python mode), and knows bytes, arrays and integers only. Where
no C compiler was at hand when the package was built, the modules stay as they are; byte by byte they would be slower
in the interpreter than what the importers and writers do without them, so nobody uses them then: `COMPILED` is False,
and the same results take longer. Setting TRACECONV_KERNEL=off has the same effect.
"""

from __future__ import annotations

import importlib.util
import os
from importlib.machinery import EXTENSION_SUFFIXES


def _is_compiled(module: str) -> bool:
    spec = importlib.util.find_spec(f"{__name__}.{module}")
    return spec is not None and (spec.origin or "").endswith(tuple(EXTENSION_SUFFIXES))


#: The modules that are compiled, by name.
MODULES = ("encode", "json_rows", "lines", "nesting", "packets", "pages", "pair_rows", "scan")
#: Whether the compiled modules are there and wanted.
COMPILED = os.environ.get("TRACECONV_KERNEL") != "off" and all(map(_is_compiled, MODULES))


def about() -> str:
    """One sentence on whether the kernel is used, and what to do about it if not."""
    if COMPILED:
        return "The kernel is compiled."
    if all(map(_is_compiled, MODULES)):
        return "The kernel is compiled but not used, since TRACECONV_KERNEL is off: large files take longer."
    return "The kernel is not compiled, so large files take longer: install traceconv anew where there is a C compiler."

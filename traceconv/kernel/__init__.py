"""The loops that see every byte: plain JSON events into columns, columns into packets.

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
MODULES: tuple[str, ...] = ()
#: Whether the compiled modules are there and wanted.
COMPILED = os.environ.get("TRACECONV_KERNEL") != "off" and bool(MODULES) and all(map(_is_compiled, MODULES))

"""Names of C++ functions as they stand in the source, from what the compiler has made of them.

    _ZN2at6native4gemmIfLi4EEEvPT_i   ->   void at::native::gemm<float, 4>(float*, int)

The grammar is that of the Itanium C++ ABI (https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling), which nvcc and
all compilers on Linux and macOS follow; the text is that of c++filt. What the names of kernels hold is understood:
templates with packs and values, lambdas, local and unnamed types, pointers to functions and members, simple
expressions. For anything else, and for names that are no such names, `demangle` gives back what it got.

No library does this everywhere: cxxfilt calls the C++ runtime of the machine, which Windows does not have and whose
text differs from release to release; cpp_demangle (0.1.3, compiled for Linux on x86-64 only) tells 33 of the 94 names
of the tests otherwise than c++filt, some wrongly (packs of pointers); itanium_demangler (1.1) tells 73 otherwise or not
at all.
"""

from __future__ import annotations

import re
from functools import lru_cache

from traceconv.demangle._cursor import Unknown
from traceconv.demangle._grammar import MAX_LENGTH, Grammar

_MANGLED = re.compile(r"_?_Z[A-Za-z0-9_]")


@lru_cache(maxsize=1 << 14)
def demangle(name: str) -> str:
    """Return the name as in the source, or `name` itself where that is not known."""
    if not _MANGLED.match(name) or len(name) > MAX_LENGTH:
        return name
    try:
        return Grammar(name).whole()
    except (Unknown, LookupError, ValueError, RecursionError):
        return name

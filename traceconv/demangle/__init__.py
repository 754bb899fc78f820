"""Demangle C++ names.

    _ZN2at6native4gemmIfLi4EEEvPT_i   ->   void at::native::gemm<float, 4>(float*, int)

Source of the grammar: the Itanium C++ ABI (https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling), which nvcc and
all compilers on Linux and macOS follow; the text is that of c++filt. The constructs in names of kernels are supported:
templates with packs and values, lambdas, local and unnamed types, pointers to functions and members, simple
expressions. Other names are returned unchanged.

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
def demangle(name: str, *, parameters: bool = True) -> str:
    """Return the demangled name, or `name` itself if it is not mangled or not supported.

    Args:
        name: the mangled name.
        parameters: whether functions get their parameters and their result; perf prints names without.
    """
    if not _MANGLED.match(name) or len(name) > MAX_LENGTH:
        return name
    try:
        return Grammar(name).whole(parameters=parameters)
    except (Unknown, LookupError, ValueError, RecursionError):
        return name

"""Tell how much memory a process may have; loads nothing that itself needs much."""

from __future__ import annotations

import mmap

try:
    import resource  # here, since it may not load when memory has run out
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

#: The address space that numpy takes when it is loaded, with one thread of OpenBLAS: 73 MB for numpy 2.
_OF_NUMPY = 75 << 20


def require_memory() -> None:
    """Raise MemoryError if memory is limited and numpy would not fit: OpenBLAS ends the process without a reason."""
    if _limit() is not None:
        try:
            mmap.mmap(-1, _OF_NUMPY).close()
        except OSError:
            raise MemoryError from None


def memory_hint() -> str:
    """Return what to do about too little memory: if it is limited, as by `ulimit -v`, what the limit is."""
    limit = _limit()
    if limit is None:
        return ""
    return f"the memory of this process is limited to {limit >> 20} MB (ulimit -v): allow 200 MB besides the input"


def _limit() -> int | None:
    """Return the limit of the address space, bytes; None without one."""
    if resource is None:
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit

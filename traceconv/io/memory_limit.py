"""Tell how much memory a process may have; loads nothing that itself needs much."""

from __future__ import annotations

try:
    import resource  # here, since it may not load when memory has run out
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]


def memory_hint() -> str:
    """Return what to do about too little memory: if it is limited, as by `ulimit -v`, what the limit is."""
    if resource is None:
        return ""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return ""
    return f"the memory of this process is limited to {limit >> 20} MB (ulimit -v): allow 200 MB besides the input"

"""Ctrl-C, and the memory that the process may have. This module imports as little as possible.

Ctrl-C ends the command with one line and exit code 130, at any time. While modules are imported, KeyboardInterrupt does
not work: some imports swallow or print it. Nothing needs to be cleaned up then, so the process ends at once.
"""

from __future__ import annotations

import mmap
import os
import signal

TYPE_CHECKING = False  # that of typing, which takes longer to import than all of this
if TYPE_CHECKING:
    from types import FrameType

EXIT_CODE = 130


def end_at_once() -> None:
    """Make Ctrl-C end the process at once, unless it is ignored (as in the background) or handled."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def raise_again() -> None:
    """Make Ctrl-C raise KeyboardInterrupt again, if `end_at_once` has changed that."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def end_silently() -> None:
    """Make Ctrl-C end the process silently, if it raised KeyboardInterrupt: the work is done, and Python shuts down."""
    if signal.getsignal(signal.SIGINT) in (_end, signal.default_int_handler):
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _end(_number: int, _frame: FrameType | None) -> None:
    os.write(2, b"\ninterrupted\n")
    os._exit(EXIT_CODE)


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

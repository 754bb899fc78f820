"""What Ctrl-C does to the command: it ends with one line and exit code 130, at any time.

While modules are imported, an exception would not do: imports swallow it in places, or show it. Nothing is begun then
that would have to be cleared away, so the process ends at once. This module imports as little as can be.
"""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False  # that of typing, which takes longer to import than all of this
if TYPE_CHECKING:
    from types import FrameType

EXIT_CODE = 130


def end_at_once() -> None:
    """Let Ctrl-C end the process at once from here on, unless it is ignored (as in the background) or handled."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def raise_again() -> None:
    """Let Ctrl-C be an exception again from here on, if `end_at_once` has changed that."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def end_silently() -> None:
    """Let Ctrl-C end the process without a word, if it was an exception: all is done, Python shuts down."""
    if signal.getsignal(signal.SIGINT) in (_end, signal.default_int_handler):
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _end(_number: int, _frame: FrameType | None) -> None:
    os.write(2, b"\ninterrupted\n")
    os._exit(EXIT_CODE)

"""Make Ctrl-C end the command with one line and exit code 130, at any time.

While modules are imported, KeyboardInterrupt does not work: some imports swallow or print it. Nothing needs to be
cleaned up then, so the process ends at once. This module imports as little as possible.
"""

from __future__ import annotations

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

"""How far a long command is: bytes, rate and time left, on a terminal only."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence

from traceconv.cli._terminal import show
from traceconv.io import progress
from traceconv.io.folders import AnyPath, shown

#: What takes no longer is not worth a line, s.
_AFTER_S = 1.0
_EVERY_S = 0.2
_UNITS = ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB"), (1, "B"))


@contextlib.contextmanager
def working(text: str, quiet: bool, inputs: Sequence[AnyPath] = ()) -> Iterator[None]:
    """Show how far the work is, if somebody looks at a terminal and it takes longer than a second.

    Args:
        text: what is done.
        quiet: whether nothing is shown.
        inputs: what is read for it.
    """
    if quiet or not sys.stderr.isatty():
        yield
        return
    sizes = {shown(path): os.path.getsize(path) for path in inputs if os.path.isfile(path)}
    done = threading.Event()
    progress.start()
    thread = threading.Thread(target=_show, args=(text, sizes, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        progress.stop()


def _show(text: str, sizes: dict[str, int], done: threading.Event) -> None:
    started, printed = time.monotonic(), False
    read: dict[str, int] = {}
    while not done.wait(_EVERY_S):
        seconds, writing = time.monotonic() - started, ("", 0)
        for name, at in progress.positions():
            if name not in sizes:
                writing = (name, at or 0)
            else:  # a closed file was read to its end
                read[name] = sizes[name] if at is None else min(at, sizes[name])
        if seconds > _AFTER_S:
            show(described(text, sizes, read, progress.stage(), writing, seconds))
            printed = True
    if printed:
        show("")


def described(
    text: str, sizes: dict[str, int], read: dict[str, int], stage: str, writing: tuple[str, int], seconds: float
) -> str:
    """Return one line: what is done, and how far it is.

    Args:
        text: what is done.
        sizes: the bytes of each input.
        read: how many of them were read.
        stage: what is done besides reading and writing, "" for nothing else.
        writing: the file that is written, "" for none yet, and how many bytes it has.
        seconds: since the start.
    """
    if writing[0]:
        return f"writing {writing[0]}: {_bytes(writing[1])}, {_time(seconds)}"
    done, total = sum(read.values()), sum(sizes.values())
    if not done:
        return f"{text}: {_listed(stage, seconds)}"
    if done >= total:
        return f"{text}: {_bytes(total)} read, {_listed(stage, seconds)}"
    if stage:
        return f"{text}: {_bytes(done)} of {_bytes(total)} read, {_listed(stage, seconds)}"
    rate = done / seconds
    return f"{text}: {_bytes(done)} of {_bytes(total)}, {_bytes(rate)}/s, {_time((total - done) / rate)} left to read"


def _listed(stage: str, seconds: float) -> str:
    return ", ".join(filter(None, (stage, _time(seconds))))


def _bytes(count: float) -> str:
    size, unit = next(one for one in _UNITS if count >= one[0] or one[0] == 1)
    return f"{count / size:.0f} {unit}" if count >= 10 * size or unit == "B" else f"{count / size:.1f} {unit}"


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02}:{rest:02}"

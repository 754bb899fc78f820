"""What is being done, and the files that are being read and written, for the display of progress.

It costs nothing per byte.
"""

from __future__ import annotations

from typing import Protocol


class _File(Protocol):
    """What is read or written: a file, or one in memory whose reader moves it along."""

    def tell(self) -> int: ...


#: The files that were opened since `start`, by name; None if progress is not displayed.
_files: dict[str, _File] | None = None
#: What is done besides reading and writing, such as "aligning"; "" for nothing else.
_stage = ""


def start() -> None:
    """Start to note files."""
    global _files, _stage
    _files, _stage = {}, ""


def stop() -> None:
    """Forget the files."""
    global _files
    _files = None


def is_on() -> bool:
    """Return whether progress is displayed."""
    return _files is not None


def set_stage(doing: str) -> None:
    """Note what is done from now on, until a file is opened."""
    global _stage
    _stage = doing


def stage() -> str:
    """Return what is done besides reading and writing, "" for nothing else."""
    return _stage


def note(name: str, file: _File) -> None:
    """Note a file that was opened."""
    global _stage
    if _files is not None:
        _stage = ""
        _files.pop(name, None)  # keeps the latest file last
        _files[name] = file


def forget(name: str) -> None:
    """Forget a file that was opened to look at it, not to read it."""
    if _files is not None:
        _files.pop(name, None)


def positions() -> list[tuple[str, int | None]]:
    """Return the bytes read or written of each file, the latest file last; None for a closed file."""
    return [(name, _position(file)) for name, file in list((_files or {}).items())]


def _position(file: _File) -> int | None:
    try:
        return file.tell()
    except (OSError, ValueError):
        return None

"""Which files are being read and written, for whoever shows how far that is: nothing is counted on the way."""

from __future__ import annotations

from typing import IO

#: By name, the files that were opened since `start`; None if nobody wants to know.
_files: dict[str, IO[bytes]] | None = None


def start() -> None:
    """Begin to note files."""
    global _files
    _files = {}


def stop() -> None:
    """Forget the files."""
    global _files
    _files = None


def note(name: str, file: IO[bytes]) -> None:
    """Note a file that was opened."""
    if _files is not None:
        _files.pop(name, None)  # the latest one is the last
        _files[name] = file


def positions() -> list[tuple[str, int | None]]:
    """Return for each file, the latest one last, how many bytes of it were read or written; None once it is closed."""
    return [(name, _position(file)) for name, file in list((_files or {}).items())]


def _position(file: IO[bytes]) -> int | None:
    try:
        return file.tell()
    except (OSError, ValueError):
        return None

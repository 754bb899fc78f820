"""Files and folders that outputs are written to before they take their names, and what killed runs left of them.

Such a part is locked while it is written, and the system drops the lock with the process, however that ends. The name
tells the output and the running system: a lock is known for sure only to the system that holds it, so other machines
that share a folder leave a part alone, and so does this one after a restart.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, where nothing is cleaned up
    fcntl = None  # type: ignore[assignment]

#: What is put under this name into a part that is a folder is not removed by later runs.
KEPT = "old"
_SUFFIX = ".part"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@contextlib.contextmanager
def part_of(final: str, *, folder: bool = False) -> Iterator[str]:
    """Yield the path of a new empty file, or folder, beside an output; it is removed at the end if it is still there.

    What earlier runs for the same output left there is removed first.

    Args:
        final: the absolute path of the output.
        folder: whether to make a folder.

    Raises:
        OSError: it cannot be made.
    """
    beside, prefix = os.path.dirname(final), _prefix(os.path.basename(final))
    _remove_left_ones(beside, prefix)
    path, lock = "", None
    try:
        while lock is None:  # another run may remove it before it is locked
            if folder:
                path = tempfile.mkdtemp(prefix=prefix, suffix=_SUFFIX, dir=beside)
            else:
                handle, path = tempfile.mkstemp(prefix=prefix, suffix=_SUFFIX, dir=beside)
                os.close(handle)
            lock = _locked(path)
        yield path
    finally:
        if path:
            _remove(path)
        if lock:
            os.close(lock)


def _prefix(name: str) -> str:
    """Return the start of the names of the parts of an output, on this system."""
    try:
        system = _BOOT.read_text(encoding="ascii")
    except OSError:
        system = socket.gethostname()
    key = hashlib.blake2b(f"{system}\0{name}".encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return f".traceconv-{key}-"


def _locked(path: str) -> int | None:
    """Return what keeps a file or folder locked while it is open; 0 if the file system has no locks.

    Return None if another process has it, or if it is gone.
    """
    if fcntl is None:
        return 0
    handle = 0
    try:
        mode = os.O_RDONLY if os.path.isdir(path) else os.O_RDWR  # network folders lock files open for writing
        handle = os.open(path, mode | os.O_NOFOLLOW | os.O_NONBLOCK)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        own, there = os.fstat(handle), os.stat(path, follow_symlinks=False)
        if (own.st_dev, own.st_ino) == (there.st_dev, there.st_ino):
            kept, handle = handle, 0
            return kept
        return None
    except (FileNotFoundError, BlockingIOError):
        return None
    except OSError:
        return 0
    finally:
        if handle:
            os.close(handle)


def _remove_left_ones(folder: str, prefix: str) -> None:
    """Remove the parts that no running process writes."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        left = [entry.path for entry in entries if entry.name.startswith(prefix) and entry.name.endswith(_SUFFIX)]
        for path in left:
            # A folder was being replaced: the old one may be the only one.
            if not os.path.lexists(os.path.join(path, KEPT)) and (lock := _locked(path)):
                _remove(path)
                os.close(lock)


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        if stat.S_ISDIR(os.stat(path, follow_symlinks=False).st_mode):
            shutil.rmtree(path, ignore_errors=True)
        else:
            os.unlink(path)

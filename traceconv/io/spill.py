"""Move args and columns to temporary files when memory is short.

Most of a large trace are the args of its events, which are written once and read once. Beyond the budget they go to an
unlinked file, so that nothing remains however the command ends, and are read through a mapping of it. If the columns
(times, names, tracks) alone exceed the budget, they are moved in the same way. A mapping cannot run out of disk, since
the file is written first; columns are sorted in place, which needs more disk only on copy-on-write file systems.

The budget is a target, by default the size of the inputs plus 500 MB. Strings, tracks, the state that connects flows,
and one column at a time with its sort order are always in memory.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import re
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, cast

from traceconv.errors import OutputError, UsageError
from traceconv.model.numbers import decimal_of

#: The memory of a command besides events: Python, numpy, buffers; an estimate, like the next two.
_BASE_BYTES = 96 << 20
#: The bytes to sort and write a row, besides its columns.
_WORK_BYTES = 32
#: The bytes to merge a row of several inputs, besides its columns.
_JOINED_BYTES = 48
#: The default budget is this much above the size of the inputs.
_BEYOND_INPUTS = 480_000_000
#: Less than this is not spilled, unless the user sets a budget.
_SMALL_BYTES = _SPOOL_BYTES = 64 << 20
_MANY_FILES = 10_240  # the most that macOS allows
_SIZE = re.compile(r"(\d+(?:\.\d*)?)\s*([kmgt]?)(?:i?b)?", re.ASCII | re.IGNORECASE)
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_CGROUPS = Path("/sys/fs/cgroup")
#: The files of a control group (version 2, version 1): limit, usage, and the key of the cache that the kernel can drop.
_CGROUP_FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def parse_size(text: str, option: str = "--memory") -> int:
    """Return the bytes of a size such as "2G", "500M" or "1.5GiB"; the units are powers of 1024.

    Args:
        text: the size.
        option: the option that it is the value of, for messages.

    Raises:
        UsageError: the text is not a size.
    """
    match = _SIZE.fullmatch(text.strip())
    size = int((decimal_of(match[1]) or 0) * (1 << _UNITS[match[2].lower()])) if match else 0
    if not size:
        raise UsageError(f"{option} {text}: not a size of memory", hint="give a unit, such as 2G or 500M")
    return size


def free_bytes() -> int | None:
    """Return the bytes of memory that are free on this machine and in the control groups of the process.

    Return None if not known.
    """
    free = [_of_machine(), *_of_groups()]
    return min((size for size in free if size is not None), default=None)


def _of_machine() -> int | None:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    if sys.platform != "win32":
        with contextlib.suppress(OSError, ValueError):
            return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def _of_groups() -> Iterator[int | None]:
    """Yield the bytes that are free in the control group of this process, and in each group around it."""
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, group = line.split(":", 2)
        if controllers not in ("", "memory") and "memory" not in controllers.split(","):
            continue
        root = _CGROUPS / "memory" if controllers else _CGROUPS
        innermost = root / group.lstrip("/")
        # In a container the group may have another name inside than outside; its files are at the root then.
        for folder in (innermost, *innermost.parents):
            yield _of_group(folder)
            if folder == root:
                break


def _of_group(folder: Path) -> int | None:
    for limit, used, droppable in _CGROUP_FILES:
        with contextlib.suppress(OSError, ValueError):  # no such file, or "max"
            free = int((folder / limit).read_text()) - int((folder / used).read_text())
            for line in (folder / "memory.stat").read_text().splitlines():
                if line.startswith(f"{droppable} "):
                    free += int(line.split()[1])
            return max(free, 0)
    return None


class Memory:
    """The memory budget that the traces of one command share.

    Args:
        budget: in bytes; by default the size of the inputs plus 500 MB, or half of the memory that is free when the
            first larger input is read, if that is less.

    Raises:
        UsageError: the budget is not positive.
    """

    def __init__(self, budget: int | None = None) -> None:
        if budget is not None and (not isinstance(budget, int) or budget < 1):
            raise UsageError(f"memory {budget!r}: not a number of bytes")
        self._budget = budget
        self._least = 0 if budget is not None else _SMALL_BYTES
        self._free: int | None = None
        self._inputs: list[Callable[[], int]] = []
        self._users: list[Parts] = []

    def add_input(self, size: Callable[[], int]) -> None:
        """Count an input; `size` returns its bytes as far as they are known."""
        self._inputs.append(size)

    def parts(self) -> Parts:
        """Return an empty store for the args of one more input, which also reports the size of its rows."""
        self._users.append(Parts(self))
        return self._users[-1]

    def is_short(self) -> bool:
        """Return whether args have to go to a file."""
        return self._is_exceeded_by(sum(user.kept for user in self._users))

    def is_short_for_columns(self) -> bool:
        """Return whether columns have to go to a file: they exceed the budget even with all args in files."""
        return self._is_exceeded_by(0)

    def _is_exceeded_by(self, args: int) -> bool:
        """Return whether this many bytes of args, with the rows, exceed the budget."""
        work = _WORK_BYTES + (_JOINED_BYTES if len(self._inputs) > 1 else 0)
        rows = sum(user.row_bytes + work * user.rows for user in self._users)
        return args + rows > self._least and _BASE_BYTES + args + rows > self._allowed(args)

    def _allowed(self, args: int) -> int:
        """Return the budget in bytes; `args` are the bytes of args in memory."""
        if self._budget is not None:
            return self._budget
        if self._free is None:
            free = free_bytes()
            self._free = sys.maxsize if free is None else (free + args) // 2
        return min(self._free, _BEYOND_INPUTS + sum(size() for size in self._inputs)) if self._inputs else self._free


class Parts:
    """A sequence of chunks of bytes, in memory or in a file; created by `Memory.parts`.

    Attributes:
        kept: the bytes in memory.
        rows, row_bytes: the rows that share the memory, and the bytes of their columns.
    """

    def __init__(self, memory: Memory) -> None:
        self.kept = self.rows = self.row_bytes = 0
        self._memory = memory
        self._chunks: list[bytes | bytearray | mmap.mmap] = []
        self._file: IO[bytes] | None = None

    def append(self, chunk: bytes | bytearray) -> None:
        """Append a chunk, which the caller must not change any more.

        Raises:
            OutputError: the temporary file cannot be written.
        """
        if not chunk:
            return
        self.kept += len(chunk)
        self._chunks.append(chunk)
        if self._file is not None or self._memory.is_short():
            self.spill()

    def so_far(self) -> list[bytes | bytearray | mmap.mmap]:
        """Return all chunks so far; others may be added later.

        Raises:
            OutputError: the temporary file cannot be written.
        """
        if self._file is None:
            return list(self._chunks)
        with failures():
            self._file.flush()
            return [mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)]

    def take(self) -> list[bytes | bytearray | mmap.mmap]:
        """Return all chunks, and end adding; those in memory still count in the budget."""
        chunks = self.so_far()
        self._chunks = []
        if self._file is not None:
            self._file.close()  # a mapping keeps its file
            self._file = None
        return chunks

    def spill(self) -> None:
        """Move all chunks to a file, to which others are added from then on.

        Raises:
            OutputError: the temporary file cannot be written.
        """
        is_first = self._file is None
        with failures():
            if self._file is None:
                self._file = temporary_file()
                weakref.finalize(self, close, self._file)
            for chunk in self._chunks:
                self._file.write(chunk)
        self._chunks.clear()
        self.kept = 0
        if is_first:
            give_back()


def give_back() -> None:
    """Return freed memory to the system: the allocator of glibc keeps it otherwise."""
    import ctypes

    with contextlib.suppress(AttributeError, OSError, TypeError):  # another system, another allocator
        ctypes.CDLL(None).malloc_trim(0)


def _folder() -> str:
    # A TMPDIR that the user sets is used or refused; Python would silently take another folder.
    return os.environ.get("TMPDIR") or tempfile.gettempdir()


def temporary_file() -> IO[bytes]:
    """Return a new unlinked file, open for reading and writing; call it within `failures`."""
    _allow_many_files()
    return tempfile.TemporaryFile(prefix="traceconv-", dir=_folder())


def _allow_many_files() -> None:
    """Raise the limit of open files to the maximum: each input takes some, and the usual limit is low."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if 0 <= soft < _MANY_FILES:
            wanted = _MANY_FILES if hard == resource.RLIM_INFINITY else min(hard, _MANY_FILES)
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def spooled_file() -> IO[bytes]:
    """Return a temporary file that stays in memory until it is large."""
    spooled = tempfile.SpooledTemporaryFile(_SPOOL_BYTES, prefix="traceconv-", dir=_folder())  # noqa: SIM115
    return cast(IO[bytes], spooled)


def close(file: IO[bytes]) -> None:
    """Close a temporary file that is not needed any more; errors in writing its buffer are ignored."""
    with contextlib.suppress(OSError):
        file.close()


@contextlib.contextmanager
def failures() -> Iterator[None]:
    """Raise errors of temporary files as OutputError with a hint."""
    try:
        yield
    except OSError as error:
        hint = "name a folder with room by TMPDIR, or allow more by --memory"
        if error.errno in (errno.EMFILE, errno.ENFILE):
            hint = "allow more open files (ulimit -n), or more memory by --memory"
        raise OutputError(f"temporary file in {_folder()}: {error.strerror or error}", hint=hint) from None


def forget(mapping: mmap.mmap) -> None:
    """Drop the resident pages of a mapping; the next access loads them from the file again."""
    if hasattr(mapping, "madvise") and hasattr(mmap, "MADV_DONTNEED"):
        mapping.madvise(mmap.MADV_DONTNEED)

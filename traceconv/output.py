"""Where outputs go: a file that appears whole or not at all, or standard output unless it is a terminal."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, TypeVar

from traceconv.errors import OutputError, UsageError

Result = TypeVar("Result")


def write_output(target: str, write: Callable[[BinaryIO], Result], *, binary: bool, force: bool) -> Result:
    """Let `write` fill the target.

    Args:
        target: a path, or "-" for standard output.
        write: gets the open sink; what it returns is returned.
        binary: whether the bytes would garble a terminal.
        force: whether a file that exists may be replaced.

    Raises:
        OutputError: it cannot be written; no part of it stays behind.
        UsageError: binary data for a terminal, or the file exists and force is not given.
    """
    if target == "-":
        return _to_stdout(write, binary)
    path = Path(target)
    try:
        mode = path.stat().st_mode
    except OSError:
        return _to_new_file(path, write)
    except ValueError as error:  # a path with a NUL character
        raise OutputError(f"{target}: {error}") from None
    if stat.S_ISDIR(mode):
        raise OutputError(f"{target}: is a directory", hint="name a file in it, such as out.pftrace")
    if not stat.S_ISREG(mode):
        return _to_device(path, write)
    if not force:
        raise UsageError(f"{target}: the file exists", hint="--force replaces it")
    return _to_new_file(path, write)


def _to_stdout(write: Callable[[BinaryIO], Result], binary: bool) -> Result:
    sink = sys.stdout.buffer
    if binary and sink.isatty():
        raise UsageError("standard output is a terminal and the trace is binary", hint="name a file: -o out.pftrace")
    try:
        result = write(sink)
        sink.flush()
    except BrokenPipeError:
        # Whoever reads has seen enough; keep Python from complaining again when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sink.fileno())
        raise OutputError("standard output was closed before the trace was written") from None
    except OSError as error:
        raise OutputError(f"standard output: {error.strerror or error}") from None
    return result


def _to_device(path: Path, write: Callable[[BinaryIO], Result]) -> Result:
    try:
        with path.open("wb") as sink:
            return write(sink)
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror or error}") from None


def _to_new_file(path: Path, write: Callable[[BinaryIO], Result]) -> Result:
    """Write beside the target, flush to disk, then rename: a reader never sees half a trace.

    A link stays a link: what it points to is replaced.
    """
    temporary: str | None = None
    final = os.path.realpath(path)
    try:
        handle, temporary = tempfile.mkstemp(prefix=".traceconv-", suffix=".part", dir=os.path.dirname(final))
        with os.fdopen(handle, "wb") as sink:
            result = write(sink)
            sink.flush()
            os.fsync(sink.fileno())
        os.chmod(temporary, _usual_mode())
        os.replace(temporary, final)
        temporary = None
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror or error}", hint=_hint(error)) from None
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
    return result


def _usual_mode() -> int:
    """The permissions that a new file would have; temporary files are private."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _hint(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "the folder must exist"
    return "free some space, or write elsewhere" if error.errno == 28 else ""

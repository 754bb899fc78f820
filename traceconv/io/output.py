"""Write outputs: to a file, which appears whole or not at all, or to standard output, unless that is a terminal."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import BinaryIO, TypeVar

from traceconv.errors import OutputError, UsageError
from traceconv.io import progress
from traceconv.io.parts import KEPT, part_of

Result = TypeVar("Result")

#: The errors of file systems without hard links.
_NO_LINKS = (errno.EPERM, errno.EACCES, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK)


def check_target(target: str, *, binary: bool, force: bool, inputs: Sequence[str | os.PathLike[str]] = ()) -> None:
    """Raise the errors of `write_output` that are known before the work is done.

    Args:
        target: a path, or "-" for standard output.
        binary: whether the bytes would garble a terminal.
        force: whether a file that exists may be replaced.
        inputs: files that it must never replace, by whatever name.

    Raises:
        OutputError: the path is a directory, or its folder does not exist.
        UsageError: binary data for a terminal, or the file exists and force is not given, or is one of the inputs.
    """
    if target == "-":
        if binary and sys.stdout.buffer.isatty():
            raise UsageError(
                "standard output is a terminal and the trace is binary", hint="name a file: -o out.pftrace"
            )
        return
    if any(_is_same_file(path, target) for path in inputs):
        raise would_replace(target)
    mode = _mode_of(Path(target))
    if mode is not None and stat.S_ISDIR(mode):
        raise OutputError(f"{target}: is a directory", hint="name a file in it, such as out.pftrace")
    if mode is not None and stat.S_ISREG(mode) and not force:
        raise UsageError(f"{target}: the file exists", hint="--force replaces it")


def would_replace(target: str) -> UsageError:
    """Return the error for an output that is one of the inputs."""
    return UsageError(f"{target}: the output would replace an input", hint="give the output another name")


def _is_same_file(path: str | os.PathLike[str], other: str) -> bool:
    """Return whether two paths lead to one file; "-" is none."""
    try:
        return os.fspath(path) != "-" and os.path.samefile(path, other)
    except (OSError, ValueError):
        return False


def _mode_of(path: Path) -> int | None:
    """Return the mode (type and permissions) of a path; None if it does not exist, but its folder does."""
    try:
        with contextlib.suppress(FileNotFoundError):
            return path.stat().st_mode
        os.stat(os.path.dirname(os.path.realpath(path)))
        return None
    except OSError as error:
        raise _failure(path, error) from None
    except ValueError as error:  # a path with a NUL character
        raise OutputError(f"{path}: {error}") from None


def write_output(target: str, write: Callable[[BinaryIO], Result], *, binary: bool, force: bool) -> Result:
    """Write an output by calling `write` with an open file.

    Args:
        target: a path, or "-" for standard output.
        write: gets the open file; its result is returned.
        binary: whether the bytes would garble a terminal.
        force: whether a file that exists may be replaced; it keeps its permissions.

    Raises:
        OutputError: the output cannot be written; no partial output remains.
        UsageError: binary data for a terminal, or the file exists and force is not given.
    """
    check_target(target, binary=binary, force=force)
    if target == "-":
        return _to_stdout(write)
    path = Path(target)
    mode = _mode_of(path)
    if mode is not None and not stat.S_ISREG(mode):
        return _to_device(path, write)
    return _to_new_file(path, write, _usual_mode() if mode is None else stat.S_IMODE(mode), force)


def _to_stdout(write: Callable[[BinaryIO], Result]) -> Result:
    sink = sys.stdout.buffer
    try:
        result = write(sink)
        sink.flush()
    except BrokenPipeError:
        give_up_stdout()
        raise OutputError("standard output was closed before the trace was written") from None
    except OSError as error:
        raise stdout_failure(error) from None
    return result


def stdout_failure(error: OSError) -> OutputError:
    """Return the error of a write to standard output as one for the user; nothing more is written there."""
    give_up_stdout()
    return OutputError(f"standard output: {error.strerror or error}")


def give_up_stdout() -> None:
    """Drop what is still to be written to standard output, so that Python does not report its failure at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _to_device(path: Path, write: Callable[[BinaryIO], Result]) -> Result:
    try:
        with path.open("wb") as sink:
            return write(sink)
    except OSError as error:
        raise OutputError(f"{path}: {error.strerror or error}") from None


def _to_new_file(path: Path, write: Callable[[BinaryIO], Result], mode: int, force: bool) -> Result:
    """Write a temporary file beside the target, flush it to disk, then rename it: a reader never sees half a trace.

    A symbolic link stays: its target is replaced.

    Raises:
        UsageError: without force, a file of that name has appeared; it is not changed.
    """
    final = os.path.realpath(path)
    try:
        with part_of(final) as temporary:
            with open(temporary, "wb") as sink:
                progress.note(str(path), sink)
                result = write(sink)
                sink.flush()
                os.fsync(sink.fileno())
            os.chmod(temporary, mode)
            if force:
                os.replace(temporary, final)
            else:
                _take_free_name(temporary, final)
    except FileExistsError:
        raise UsageError(
            f"{path}: the file exists: it appeared while the trace was written", hint="--force replaces it"
        ) from None
    except OSError as error:
        raise _failure(path, error) from None
    return result


def check_folder(target: str, *, force: bool) -> None:
    """Raise the errors of `write_folder` that are known before the work is done."""
    mode = _mode_of(Path(target))
    if mode is not None and not stat.S_ISDIR(mode):
        raise OutputError(f"{target}: is not a folder", hint="name a new folder")
    if mode is not None and not force:
        raise UsageError(f"{target}: the folder exists", hint="--force replaces the tables in it")


def write_folder(target: str, write: Callable[[Path], Iterable[str]], *, force: bool) -> None:
    """Write a folder, which appears whole or not at all, by calling `write` with the path of a temporary one.

    Args:
        target: a path.
        write: gets the path of an empty folder, and returns the names of the files that it wrote.
        force: whether a folder that exists may be replaced, if it holds nothing but files of these names.

    Raises:
        OutputError: the folder cannot be written, and no part of it remains; or the old folder holds other files.
        UsageError: the folder exists and force is not given.
    """
    check_folder(target, force=force)
    final = os.path.realpath(target)
    try:
        with part_of(final, folder=True) as temporary:
            new, old = Path(temporary, "new"), Path(temporary, KEPT)
            new.mkdir()
            names = set(write(new))
            if os.path.isdir(final):
                others = sorted(set(os.listdir(final)) - names)
                if others:
                    raise OutputError(f"{target}: holds other files, such as {others[0]}", hint="name another folder")
                os.rename(final, old)
            try:
                os.rename(new, final)
            except BaseException:  # also after an interrupt, or the old tables would be removed with the part
                if old.exists() and not os.path.exists(final):
                    os.rename(old, final)
                raise
    except OSError as error:
        raise _failure(Path(target), error) from None


def _take_free_name(temporary: str, final: str) -> None:
    """Give a file a name that must be free; its other name may stay.

    Raises:
        FileExistsError: the name is not free.
    """
    try:
        os.link(temporary, final)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # Reserve the name with an empty file.
        os.close(os.open(final, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        os.replace(temporary, final)


def _usual_mode() -> int:
    """Return the permissions of a new file; those of temporary files are private."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _failure(path: Path, error: OSError) -> OutputError:
    hint = "free some space, or write elsewhere" if error.errno == errno.ENOSPC else ""
    if isinstance(error, FileNotFoundError):
        hint = "the folder must exist"
    return OutputError(f"{path}: {error.strerror or error}", hint=hint)

"""Write outputs: to a file, which appears whole or not at all, or to standard output, unless that is a terminal.

A file or folder is written under a temporary name beside the output, and takes its name when it is complete. Such a
part is locked while it is written, and the system drops the lock with the process, however that ends. The name tells
the output and the running system: a lock is known for sure only to the system that holds it, so other machines that
share a folder leave a part alone, and so does this one after a restart.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
import os
import shutil
import socket
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec

from traceconv.errors import OutputError, UsageError
from traceconv.io import progress
from traceconv.io.shown import NOT_ON_PAGES

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
        opened, there = os.fstat(handle), os.stat(path, follow_symlinks=False)
        if (opened.st_dev, opened.st_ino) == (there.st_dev, there.st_ino):
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
        write: gets the path of an empty folder, and returns the names of the files that it wrote, from there, with /.
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
                others = sorted(_files_in(Path(final)) - names)
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


def _files_in(folder: Path) -> set[str]:
    """Return the names of all that is no folder, from the folder, with /."""
    entries = (entry for entry in folder.rglob("*") if entry.is_symlink() or not entry.is_dir())
    return {entry.relative_to(folder).as_posix() for entry in entries}


def _take_free_name(temporary: str, final: str) -> None:
    """Give a file a name that must be free; its other name may stay."""
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


def as_json(document: object) -> str:
    """Return a document as JSON, with a line for each value; what must not be shown is an escape of JSON.

    So the text is complete: whoever prints or writes it changes nothing. Numbers that are not finite are null, and what
    JSON does not know is text.
    """
    try:
        text = msgspec.json.format(msgspec.json.encode(document), indent=1).decode()
    except (UnicodeEncodeError, OverflowError, TypeError):  # halves of surrogate pairs, and integers above 64 bits
        text = json.dumps(_plain(document), indent=1, ensure_ascii=False)
    return NOT_ON_PAGES.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"


def _plain(value: object) -> object:
    """Return a value as JSON can hold it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(element) for element in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)

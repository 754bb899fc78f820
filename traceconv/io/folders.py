"""List the files of folders and of archives (zip, tar, tar.gz).

Links and names that lead out of the folder or archive are not followed. Archives are unpacked to a temporary folder,
within the limits of an input.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import shutil
import stat
import tempfile
import weakref
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Literal

from msgspec import Struct

from traceconv.errors import InputError
from traceconv.io.limits import Limits, Unpacked
from traceconv.io.source import DAMAGED, GZIP, ZIP, Source, unreadable
from traceconv.io.spill import failures

AnyPath = str | os.PathLike[str]

#: More files than any folder of recordings holds: the user gave the wrong folder.
MOST_FILES = 10_000
_COPIED = 1 << 20  # bytes at a time
_BLOCK = 512  # the bytes of a block of a tar archive
_TAR_MAGIC = slice(257, 262)
_LEADS_OUT, _HIDDEN, _LINK, _NO_FILE = "its name leads out of the archive", "hidden", "a link", "not a regular file"


class _TemporaryFolder:
    """A temporary folder, removed when this object is no longer referenced."""

    def __init__(self) -> None:
        with failures():
            self.path = tempfile.mkdtemp(prefix="traceconv-")
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


class Member(os.PathLike[str]):
    """An unpacked file of an archive.

    Attributes:
        display: the archive as the user named it, with the name of the file in it.
        archive: the path of the archive.
    """

    def __init__(self, display: str, archive: str, folder: _TemporaryFolder, path: str) -> None:
        self.display, self.archive, self._folder, self._path = display, archive, folder, path

    def __fspath__(self) -> str:
        return self._path

    def __str__(self) -> str:
        return self.display


class Files(Struct):
    """The files of a folder or archive.

    Attributes:
        name: the folder or archive.
        paths: the files that can be read, in sorted order.
        left_out: the files that are not read, with the reason.
    """

    name: str
    paths: list[AnyPath] = []
    left_out: dict[str, str] = {}

    def add(self, path: AnyPath) -> None:
        """Add a file. Raises InputError if there are more than MOST_FILES."""
        self.paths.append(path)
        if len(self.paths) + len(self.left_out) > MOST_FILES:
            raise InputError(
                f"more than {MOST_FILES} files", hint="name the recordings, or a smaller folder", at=self.name
            )


def shown(path: AnyPath) -> str:
    """Return the text for a path in messages."""
    return path.display if isinstance(path, Member) else os.fspath(path)


def natural(name: str) -> tuple[list[tuple[int, str]], str]:
    """Return a sort key of a name in which numbers count as such: rank2 comes before rank10."""
    parts = re.split(r"([0-9]+)", name)
    # A number has as many digits as it needs: then the longer one is the larger one.
    digits = (part.lstrip("0") if at % 2 else part for at, part in enumerate(parts))
    return [(len(part) if at % 2 else 0, part) for at, part in enumerate(digits)], name


def check_all_there(paths: Iterable[AnyPath]) -> None:
    """Raise InputError for the first path without a file or folder; "-" is standard input."""
    for path in paths:
        try:
            if os.fspath(path) != "-":
                os.stat(path)
        except ValueError:
            continue  # the error is raised when it is opened
        except OSError as error:
            raise unreadable(shown(path), error) from None


def files_of(path: AnyPath, limits: Limits) -> Files | None:
    """Return the files of a folder, or of an archive of several files; None for any other input.

    Raises:
        InputError: there are too many files, or they unpack to more than `limits` allows.
    """
    name = os.fspath(path)
    files = Files(name)
    try:
        if name == "-" or isinstance(path, Member):
            return None
        if os.path.isdir(name):
            _walk(name, limits, files)
        elif not os.path.isfile(name) or not _unpack(name, limits, files):
            return None
    except (OSError, ValueError):
        return None  # the error is raised when it is opened
    files.paths.sort(key=lambda file: [*map(natural, shown(file).split(os.sep))])
    return files


def _walk(root: str, limits: Limits, files: Files) -> None:
    """Add the files below a folder, and those of archives in it."""
    top = os.path.realpath(root)
    seen: set[str] = set()
    try:
        os.scandir(root).close()  # os.walk ignores a folder that cannot be read
    except OSError as error:
        raise unreadable(root, error) from None
    for folder, folders, names in os.walk(root):
        for name in sorted(folders):
            path = os.path.join(folder, name)
            reason = _HIDDEN if name.startswith(".") else "a link to a folder" if os.path.islink(path) else ""
            if not reason and not os.access(path, os.R_OK | os.X_OK):
                reason = "cannot be read"
            if reason:
                files.left_out[path] = reason
                folders.remove(name)
        folders.sort()
        for name in sorted(names, key=lambda file: (os.path.islink(os.path.join(folder, file)), file)):
            path = os.path.join(folder, name)
            real = os.path.realpath(path)
            reason = _not_taken(path, real, top) or ("a link to another file in it" if real in seen else "")
            seen.add(real)
            if reason:
                files.left_out[path] = reason
            elif not _unpack(path, limits, files):
                files.add(path)


def _not_taken(path: str, real: str, top: str) -> str:
    """Return the reason why a file of a folder is left out, "" if it is taken."""
    if os.path.basename(path).startswith("."):
        return _HIDDEN
    if os.path.commonpath((top, real)) != top:
        return "a link out of the folder"
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return _NO_FILE
    except OSError as error:
        return error.strerror or str(error)
    return "" if os.access(path, os.R_OK) else "cannot be read"


def _unpack(path: str, limits: Limits, files: Files) -> bool:
    """Add the files of an archive of several files; return whether `path` is one."""
    kind = _kind(path)
    if not kind:
        return False
    from tarfile import TarError

    folder = _TemporaryFolder()
    counted = Unpacked(path, os.path.getsize(path), limits)
    for name, stream in _tar_members(path, limits, files) if kind == "tar" else _zip_members(path, files):
        display, target = f"{path}/{name}", os.path.join(folder.path, name)
        try:
            _copy(stream, target, counted)
        except FileExistsError:
            files.left_out[f"{display} (again)"] = "its name is that of another file there"
        except (EOFError, NotImplementedError, *DAMAGED, TarError) as error:
            files.left_out[display] = f"cannot be unpacked: {error}"
        else:
            if _kind(target):
                files.left_out[display] = "an archive in an archive: unpack it first"
            else:
                files.add(Member(display, path, folder, target))
    return True


def _kind(path: str) -> Literal["tar", "zip", ""]:
    """Return which archive of several files it is, "" for any other file."""
    with open(path, "rb") as raw:
        block = raw.read(_BLOCK)
        if block.startswith(GZIP):
            raw.seek(0)
            with contextlib.suppress(EOFError, *DAMAGED), gzip.GzipFile(fileobj=raw) as plain:
                block = plain.read(_BLOCK)
    if block[_TAR_MAGIC] == b"ustar":
        return "tar"
    return "zip" if block.startswith(ZIP) and _is_of_several(path) else ""


def _is_of_several(path: str) -> bool:
    """Return whether a zip archive holds several files, or one that is left out for its name."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [info.filename for info in archive.infolist() if not info.is_dir()]
            return len(names) > 1 or any(map(_leads_out, names))
    except (EOFError, *DAMAGED):
        return False  # the error is raised when it is opened


def _zip_members(path: str, files: Files) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if info.is_dir():
                continue
            reason = _LINK if stat.S_ISLNK(info.external_attr >> 16) else _refused(info.filename)
            display = f"{path}/{info.filename}"
            if reason:
                files.left_out[display] = reason
                continue
            try:
                stream = archive.open(info)
            except (EOFError, NotImplementedError, *DAMAGED) as error:
                files.left_out[display] = f"cannot be unpacked: {error}"
                continue
            with stream:
                yield info.filename, stream


def _tar_members(path: str, limits: Limits, files: Files) -> Iterator[tuple[str, IO[bytes]]]:
    import tarfile

    source = Source(path, limits=limits)
    damage = ""
    try:
        with source.open() as plain, tarfile.open(fileobj=plain, mode="r|") as archive:
            for info in archive:
                if info.isdir():
                    continue
                reason = _LINK if info.issym() or info.islnk() else "" if info.isreg() else _NO_FILE
                stream = None if reason or (reason := _refused(info.name)) else archive.extractfile(info)
                if stream is None:
                    files.left_out[f"{path}/{info.name}"] = reason
                else:
                    yield os.path.normpath(info.name), stream
    except tarfile.TarError as error:
        damage = str(error)
    if damage or source.damage:
        files.left_out[f"{path} (its end)"] = f"cut off or damaged: {damage or source.damage}"


def _refused(name: str) -> str:
    """Return the reason why a file of an archive is left out for its name, "" if it is taken."""
    if _leads_out(name):
        return _LEADS_OUT
    return _HIDDEN if any(part.startswith(".") or part == "__MACOSX" for part in PurePosixPath(name).parts) else ""


def _leads_out(name: str) -> bool:
    """Return whether the name of a file in an archive is no path below it, on Linux or on Windows."""
    parts = PurePosixPath(name).parts
    return not parts or parts[0].startswith("/") or ".." in parts or "\0" in name or "\\" in name or ":" in parts[0]


def _copy(stream: IO[bytes], target: str, counted: Unpacked) -> None:
    """Copy a stream to a new file."""
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    with open(target, "xb") as file:
        while data := stream.read(_COPIED):
            counted.add(len(data))
            with failures():
                file.write(data)

"""Open an input, a path or standard input, compressed or not: as bytes, as a bounded head, or as numbered lines.

Compression and encoding are recognised by content, never by name: gzip (1f 8b), zip (PK), UTF-16 and UTF-32 (byte order
mark). Importers get plain bytes; these texts are converted to UTF-8.
"""

from __future__ import annotations

import codecs
import contextlib
import gzip
import io
import lzma
import os
import shutil
import stat
import struct
import sys
import tempfile
import weakref
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import IO, NamedTuple, cast

from msgspec import Struct

from traceconv.errors import InputError, MalformedInput
from traceconv.io import progress, sqlite
from traceconv.io.limits import DEFAULT_LIMITS, Limits, Unpacked, too_large
from traceconv.io.outline import Outline, outline
from traceconv.io.spill import close, failures, spooled_file

#: The size of the head by which importers recognise their format.
HEAD_BYTES = 64 * 1024
CHUNK_BYTES = 4 * 1024 * 1024
#: The bytes of text that are split into lines at a time.
BATCH_BYTES = 64 * 1024

_COPIED = 1 << 20  # bytes at a time
GZIP = b"\x1f\x8b"
#: The second one is an archive without files.
ZIP = (b"PK\x03\x04", b"PK\x05\x06")
#: The errors of the standard library for damaged archives, besides EOFError for those that are cut.
DAMAGED = (OSError, RuntimeError, ValueError, struct.error, zlib.error, lzma.LZMAError, zipfile.BadZipFile)
#: Byte order marks, longest first: that of UTF-32 begins as that of UTF-16.
_ENCODINGS = {
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}


class Line(NamedTuple):
    """A line of a text input: its number (from 1) and its bytes."""

    number: int
    text: bytes


class Head(Struct, frozen=True, dict=True):
    """The first bytes of an input, by which its format is recognised.

    Attributes:
        data: up to HEAD_BYTES, decompressed, in UTF-8 if the file is UTF-16 or UTF-32.
        complete: whether `data` is the whole input.
        name: the base name of the file; only to decide between formats that fit equally.
        tables: the names of the tables, if the input is an SQLite database.
        read_tail: a function that reads the last bytes, if `data` is not the whole input.
    """

    data: bytes
    complete: bool
    name: str
    tables: tuple[str, ...] = ()
    read_tail: Callable[[], bytes] | None = None

    @property
    def text(self) -> bytes:
        """The data without byte order mark and leading white space."""
        return self.data.removeprefix(codecs.BOM_UTF8).lstrip()

    @cached_property
    def json(self) -> Outline:
        """The outline of the text as JSON, computed once."""
        return outline(self.text)

    @cached_property
    def tail(self) -> bytes:
        """The last bytes, up to HEAD_BYTES: some tools write metadata behind their events. Read on first use.

        An archive is unpacked to its end for this; b"" if it is damaged.
        """
        return self.data if self.read_tail is None else self.read_tail()


class Source:
    """One input of the user.

    Args:
        path: a path, or "-" for standard input, which is copied to a temporary file, since inputs are read twice; or a
            `Member` of an archive.
        whole: the input that this one is a part of, and that opens it; None for an input of its own.
        limits: its limits; those of `whole`, if given.

    Attributes:
        display: the input as the user named it, for messages.
        argument: the input as a command takes it: "-" for standard input.
        damage: the damage of a compressed file whose start could be unpacked, such as a missing end; set by reading, ""
            if there is none.
        recoded: whether the file is UTF-16 or UTF-32, and converted to UTF-8; set by opening.
        long_lines: the numbers of the lines that exceed the limit, and are read as empty ones; set by reading.
        unpacked: counts the unpacked bytes, from 0 each time that the input is opened.

    Raises:
        InputError: the input does not exist or cannot be read.
    """

    _path: Path
    unpacked: Unpacked

    def __init__(
        self, path: str | os.PathLike[str], *, whole: Source | None = None, limits: Limits = DEFAULT_LIMITS
    ) -> None:
        self.damage = ""
        self.recoded = False
        self.limits: Limits = limits if whole is None else whole.limits
        self.long_lines: dict[int, None] = {}
        self.display = str(getattr(path, "display", "")) or os.fspath(path)
        self.argument: str = self.display if whole is None else whole.argument
        self._spooled: IO[bytes] | None = None
        # the unpacked file is removed with its `Member`
        self._given, self._archive = path, getattr(path, "archive", None)
        self._head: Head | None = None
        self._largest = 0
        self._database: sqlite.DatabaseFile | None = None
        self._path = Path(path) if whole is None else whole._path
        if whole is not None:
            self.damage, self.recoded = whole.damage, whole.recoded
            self._spooled = whole._spooled
            return
        if self.display == "-":
            self.display = "<stdin>"
            self._spooled = _spool(sys.stdin.buffer, self.display)
        else:
            self._spooled = _spool_if_stream(self._path, self.display)
        if self._spooled is not None:
            weakref.finalize(self, close, self._spooled)

    @property
    def name(self) -> str:
        """The base name, such as "profile.json"."""
        return os.path.basename(self.display)

    @property
    def path(self) -> Path | None:
        """The path of the file, to find files beside it; None for standard input and pipes."""
        return None if self._spooled else self._path

    @property
    def size(self) -> int:
        """The bytes of the file, or of the data unpacked so far if these are more; 0 before it is opened."""
        return max(self._largest, self.unpacked.size if hasattr(self, "unpacked") else 0)

    def allow_args(self, count: int) -> None:
        """Raise InputError if args of `count` bytes are far more than the input."""
        room = self.limits.room(self.size)
        if room and count > room:
            raise too_large(self.display, self.size, count, "hold args of more than", self.limits.ratio)

    @property
    def is_packed(self) -> bool:
        """Whether the file is compressed.

        Raises:
            InputError: it cannot be read.
        """
        with contextlib.ExitStack() as stack:
            return _is_packed(_magic(self._open_raw(stack), self.display))

    def is_same_file(self, path: str | os.PathLike[str]) -> bool:
        """Return whether `path` is this file, so that an output never replaces an input."""
        try:
            files = [file for file in (self.path, self._archive) if file is not None]
            return os.path.exists(path) and any(os.path.samefile(file, path) for file in files)
        except OSError:
            return False

    @contextlib.contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Yield an open file of the plain bytes, at their start.

        Raises:
            InputError: the input cannot be read; also raised while reading a damaged compressed file.
        """
        with contextlib.ExitStack() as stack:
            raw = self._open_raw(stack)
            if self._spooled is None:
                progress.note(self.display, raw)
            yield self._open_plain(raw, stack)

    def _open_plain(self, raw: IO[bytes], stack: contextlib.ExitStack) -> IO[bytes]:
        magic = _magic(raw, self.display)
        self._largest = self.size
        self.unpacked = Unpacked(self.display, _size(raw), self.limits)
        if magic.startswith(GZIP):
            raw = cast(IO[bytes], stack.enter_context(gzip.GzipFile(fileobj=raw, mode="rb")))
        elif magic in ZIP:
            raw = self._zip_member(raw, stack)
        plain = io.BufferedReader(cast(io.RawIOBase, _Plain(raw, _is_packed(magic), self)), buffer_size=1 << 18)
        mark = next(filter(plain.peek(4).startswith, _ENCODINGS), None)
        if mark is None:
            return plain
        plain.read(len(mark))
        self.recoded = True
        return joined(_recoded(plain, _ENCODINGS[mark]))

    def _open_raw(self, stack: contextlib.ExitStack) -> IO[bytes]:
        if self._spooled is not None:
            self._spooled.seek(0)
            return self._spooled
        try:
            return stack.enter_context(self._path.open("rb", buffering=0))
        except OSError as error:
            raise unreadable(self.display, error) from None

    def _zip_member(self, raw: IO[bytes], stack: contextlib.ExitStack) -> IO[bytes]:
        try:
            archive = stack.enter_context(zipfile.ZipFile(raw))
            members = [info for info in archive.infolist() if not info.is_dir()]
            if len(members) == 1:
                return stack.enter_context(archive.open(members[0]))
        except (*DAMAGED, EOFError) as error:
            raise InputError(f"broken zip archive: {error}", at=self.display) from None
        if not members:
            raise InputError("the zip archive is empty", at=self.display)
        names = ", ".join(info.filename for info in members[:5])
        raise InputError(
            f"a zip archive with {len(members)} files ({names}), expected one",
            hint="traceconv merge reads all recordings in it",
            at=self.display,
        )

    def head(self) -> Head:
        """Return the head, which is read once."""
        if self._head is None:
            with self.open() as stream:
                data = stream.read(HEAD_BYTES + 1)
            progress.forget(self.display)
            tables = self._tables() if data.startswith(sqlite.MAGIC) else ()
            is_whole = len(data) <= HEAD_BYTES
            self._head = Head(data[:HEAD_BYTES], is_whole, self.name, tables, None if is_whole else self._tail)
        return self._head

    def _tables(self) -> tuple[str, ...]:
        """Return the names of the tables of a database, () if it is too damaged to read them."""
        try:
            with sqlite.open_database(self.database()) as database:
                return tuple(database.tables)
        except InputError:
            return ()

    def database(self) -> sqlite.DatabaseFile:
        """Return a file for SQLite: the input itself, or a copy if it is compressed, a pipe, or was not closed.

        A copy is made once, and removed with this source.

        Raises:
            InputError: the log or journal beside a database that was not closed does not fit it.
            OutputError: the disk is too full for the copy.
        """
        if self._database is not None:
            return self._database
        path = self._path.resolve() if self.path is not None and not self.is_packed else None
        others = sqlite.beside(path) if path is not None else []
        if path is not None and not others:
            return sqlite.DatabaseFile(path, self.display)
        with failures():
            folder = Path(tempfile.mkdtemp(prefix="traceconv-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        if path is None:
            opened = sqlite.DatabaseFile(folder / "input.sqlite", self.display)
            with self.open() as stream, failures(), opened.path.open("wb") as file:
                shutil.copyfileobj(stream, file)
        else:
            other_names = " and ".join(other.name for other in others)
            note = (
                f"the database was not closed: {other_names} beside it was applied to a copy, which was read; "
                "nothing was changed"
            )
            copy = sqlite.completed(path, others, self.display, folder)
            opened = sqlite.DatabaseFile(copy, self.display, (note,))
        self._database = opened
        return opened

    def _tail(self) -> bytes:
        """Return the last bytes, up to HEAD_BYTES; b"" if they cannot be read."""
        tail = b""
        try:
            with contextlib.ExitStack() as stack:
                if self.is_whole and not self.recoded and not self.is_packed:
                    stream = self._open_raw(stack)
                    stream.seek(max(0, stream.seek(0, os.SEEK_END) - HEAD_BYTES))
                else:
                    stream = stack.enter_context(self.open())
                while data := stream.read(_COPIED):
                    tail = (tail + data)[-HEAD_BYTES:]
        except (InputError, OSError):
            return b""
        finally:
            progress.forget(self.display)
        return tail

    def malformed(self, reason: str, *, hint: str = "", where: str = "") -> MalformedInput:
        """Return the error that the content is invalid as a whole; see `MalformedInput`."""
        return MalformedInput(self.display, where, reason, hint=hint)

    @property
    def is_whole(self) -> bool:
        """Whether the source holds all lines of the file, so that line numbers are consecutive."""
        return True

    def chunks(self) -> Iterator[bytes]:
        """Yield the text in chunks of whole lines with their ends."""
        rest: list[bytes] = []  # the parts of a line that is not complete yet
        length, number, limit = 0, 1, self.limits.length  # the bytes of that line so far
        with self.open() as stream:
            mark = codecs.BOM_UTF8
            while data := stream.read(min(CHUNK_BYTES, limit)):
                data, mark = data.removeprefix(mark), b""
                end = data.find(b"\n")
                length += end if end >= 0 else len(data)
                if length > limit:
                    self.long_lines[number] = None
                    rest.clear()
                    data = data[end:] if end >= 0 else b""
                cut = data.rfind(b"\n") + 1
                if cut:
                    yield b"".join([*rest, memoryview(data)[:cut]])
                    rest.clear()
                    number += data.count(b"\n")
                    length = len(data) - cut
                rest.append(data[cut:])
        if any(rest):
            yield b"".join(rest)

    def blocks(self) -> Iterator[tuple[Sequence[int], bytes]]:
        """Yield the text in chunks of whole lines with their ends, and the numbers of the lines of each."""
        number = 1
        for chunk in self.chunks():
            count = chunk.count(b"\n") + (not chunk.endswith(b"\n"))
            yield range(number, number + count), chunk
            number += count

    def batches(self) -> Iterator[tuple[Sequence[int], list[bytes]]]:
        """Yield the lines with their ends in batches, and their numbers."""
        for numbers, text in self.blocks():
            stream, at = io.BytesIO(text), 0
            while lines := stream.readlines(BATCH_BYTES):
                yield numbers[at : at + len(lines)], lines
                at += len(lines)

    def lines(self, *, keep_ends: bool = False) -> Iterator[Line]:
        """Yield the lines, numbered from 1; line ends may be \\n or \\r\\n.

        With `keep_ends` they stay in the text: whether the last line has one says whether it is complete.
        """
        with self.open() as stream:
            limit = self.limits.length
            for number, text in enumerate(iter(partial(stream.readline, limit + 1), b""), 1):
                if len(text) > limit and text[-1:] != b"\n":
                    self.long_lines[number] = None
                    text = _end_of_line(stream)
                if number == 1:
                    text = text.removeprefix(codecs.BOM_UTF8)
                yield Line(number, text if keep_ends else text.rstrip(b"\r\n"))


class _Plain(io.RawIOBase):
    """Reads unpacked bytes, and raises InputError for errors on the way; a cut compressed file ends early."""

    def __init__(self, inner: IO[bytes], packed: bool, source: Source) -> None:
        self._inner = cast(io.BufferedReader, inner)
        self._packed = packed
        self._source = source
        self._any = False  # whether anything was unpacked
        self._is_damaged = False  # behind the damage, an archive goes on with whatever bytes follow

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(cast(bytearray, buffer))
        if self._is_damaged:
            return 0
        try:
            if not self._packed:
                return self._inner.readinto(view) or 0
            data = self._inner.read1(len(view))
        except (EOFError, *DAMAGED) as error:
            if not self._packed or not (self._any or isinstance(error, EOFError)):
                what = "damaged, nothing of it can be unpacked" if self._packed else "cannot be read"
                raise InputError(f"{what}: {error}", hint="copy it again", at=self._source.display) from None
            self._source.damage = str(error)  # the bytes before the damage were returned already
            self._is_damaged = True
            return 0
        self._any = True
        self._source.unpacked.add(len(data))
        view[: len(data)] = data
        return len(data)


def joined(chunks: Iterator[bytes]) -> io.BufferedReader:
    """Return a readable file of texts, one behind the other."""
    return io.BufferedReader(cast(io.RawIOBase, _Joined(chunks)), buffer_size=1 << 18)


class _Joined(io.RawIOBase):
    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = filter(None, chunks)
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(cast(bytearray, buffer))
        rest = self._rest or next(self._chunks, b"")
        chunk, self._rest = rest[: len(view)], rest[len(view) :]
        view[: len(chunk)] = chunk
        return len(chunk)


def _recoded(inner: IO[bytes], encoding: str) -> Iterator[bytes]:
    """Yield the UTF-8 of a file in another encoding."""
    decode = codecs.getincrementaldecoder(encoding)("replace").decode
    while data := inner.read(1 << 16):
        yield decode(data).encode("utf-8", "replace")
    yield decode(b"", True).encode("utf-8", "replace")


def _magic(raw: IO[bytes], display: str) -> bytes:
    """Return the first four bytes of an open file, and rewind it."""
    try:
        magic = raw.read(4)
    except OSError as error:
        raise unreadable(display, error) from None
    raw.seek(0)
    return magic


def _size(raw: IO[bytes]) -> int:
    """Return the size of an open file in bytes, and rewind it."""
    size = raw.seek(0, os.SEEK_END)
    raw.seek(0)
    return size


def _end_of_line(stream: IO[bytes]) -> bytes:
    """Skip the rest of a line; return its end."""
    while chunk := stream.readline(_COPIED):
        if chunk[-1:] == b"\n":
            return b"\n"
    return b""


def _is_packed(magic: bytes) -> bool:
    return magic.startswith(GZIP) or magic in ZIP


def _refuse_device(stream: IO[bytes], display: str) -> None:
    """Raise InputError for a device that may never end, as /dev/zero: any but a terminal and the empty one."""
    try:
        status, is_terminal = os.fstat(stream.fileno()), stream.isatty()
    except OSError:  # standard input that a caller replaced
        return
    is_device = stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode)
    if is_device and not is_terminal and not os.path.samestat(status, os.stat(os.devnull)):
        raise InputError("is a device, expected a file or a pipe", hint="copy what is to be read to a file", at=display)


def _spool(stream: IO[bytes], display: str) -> IO[bytes]:
    _refuse_device(stream, display)
    with failures():
        spooled = spooled_file()
    try:
        for block in iter(partial(stream.read, _COPIED), b""):
            with failures():
                spooled.write(block)
    except BaseException:
        close(spooled)
        raise
    return spooled


def _spool_if_stream(path: Path, display: str) -> IO[bytes] | None:
    """Return a copy of a pipe or process substitution, which can be read only once; None for a regular file."""
    try:
        if path.is_dir():
            raise InputError("is a directory, expected a file", hint="name the files inside it", at=display)
        if path.is_file():
            return None
        with path.open("rb") as stream:
            return _spool(stream, display)
    except OSError as error:
        raise unreadable(display, error) from None
    except ValueError as error:  # a path with a NUL character
        raise InputError(error, at=repr(display)) from None


def unreadable(display: str, error: OSError) -> InputError:
    """Return the error for a path that cannot be opened."""
    absent = "check the spelling and the current folder"
    scheme, is_address, _ = display.partition(":/")
    if scheme.lower() == "file" and is_address:
        absent = "an address is not read: name the path alone, without file://"
    elif len(scheme) > 1 and is_address:  # not a drive of Windows
        absent = "an address is not read: download the file first, and name the copy"
    hint = {
        FileNotFoundError: absent,
        NotADirectoryError: "a part of the path is a file; files in an archive cannot be named: name the archive",
        PermissionError: "ask for read permission, or run as the user that owns the file",
    }.get(type(error), "")
    return InputError(error.strerror or error, hint=hint, at=display)


#: The bytes of a file that are read at a time for its fingerprint.
_PART_BYTES = 1 << 18


def digests(sources: Sequence[Source]) -> list[bytes]:
    """Return a hash of the unpacked content of each input; b"" for inputs whose start is unique.

    Raises:
        InputError: an input cannot be read.
    """
    heads = [source.head().data for source in sources] if len(sources) > 1 else []
    counts = Counter(heads)
    digests = [_digest(source) if counts[head] > 1 else b"" for head, source in zip(heads, sources, strict=False)]
    return digests or [b""] * len(sources)


def _digest(source: Source) -> bytes:
    import hashlib  # takes some ms to load

    hashed = hashlib.blake2b()
    with source.open() as stream:
        while data := stream.read(CHUNK_BYTES):
            hashed.update(data)
    return hashed.digest()


def fingerprint(source: Source) -> str:
    """Return the size of a file, as it is stored, and a checksum of all its bytes; "" for a stream.

    Copies of a file have the same one, whenever they were made.

    Raises:
        InputError: the file cannot be read.
    """
    if source.path is None:
        return ""
    try:
        with source.path.open("rb", buffering=0) as file:
            size = checksum = 0
            while data := file.read(_PART_BYTES):
                size += len(data)
                checksum = zlib.crc32(data, checksum)
    except OSError as error:
        raise unreadable(source.display, error) from None
    return f"{size}-{checksum:08x}"


def present(fingerprints: Collection[str], sources: Sequence[Source]) -> set[str]:
    """Return the fingerprints whose files are among the inputs. Only files of these sizes are read.

    Raises:
        InputError: a file cannot be read.
    """
    sizes = {known.partition("-")[0] for known in fingerprints}
    return {fingerprint(source) for source in sources if _stored_size(source) in sizes} & set(fingerprints)


def _stored_size(source: Source) -> str:
    """Return the size of a file, as it is stored, in bytes; "" for a stream."""
    try:
        return str(source.path.stat().st_size) if source.path is not None else ""
    except OSError as error:
        raise unreadable(source.display, error) from None

"""Recover SQLite databases that were not closed, on a copy: the input is never changed.

A program that was killed, or still runs, leaves files beside its database: `NAME-wal` holds commits that are not in the
database yet, `NAME-journal` the old content that an open transaction has overwritten. Reading the database alone would
miss the former, and include changes that were never committed. So all files are copied, and SQLite recovers the copy,
as it would recover the database itself on the next write.

SQLite treats damage in a log as its end. Here a header with a wrong checksum, commits behind the end, and a journal
that is too short for its records raise errors. Source: "The Write-Ahead Log" and "The Rollback Journal" of
sqlite.org/fileformat2.html.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import struct
from pathlib import Path

from traceconv.errors import InputError
from traceconv.io.spill import failures

LOG, JOURNAL = "-wal", "-journal"

_LOG_MAGIC = 0x377F0682  # the last bit is the byte order of checksums
_LOG_HEADER = struct.Struct(">8I")
_FRAME_HEADER = struct.Struct(">4I8x")
_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
_JOURNAL_HEADER = struct.Struct(">8s5I")
_ALL_RECORDS = 0xFFFFFFFF  # as many as the file holds
_BESIDE_PAGE = 8  # the page number and the checksum of a journal record
_LARGEST_PAGE = 65536


def beside(path: Path) -> list[Path]:
    """Return the log and journal files beside a database that hold changes of it.

    Args:
        path: the database, with links resolved, as SQLite does.
    """
    log, journal = (path.with_name(path.name + ending) for ending in (LOG, JOURNAL))
    with contextlib.suppress(OSError):
        logs = [log] if log.is_file() and log.stat().st_size else []
        return logs + ([journal] if journal.is_file() and _is_hot(journal) else [])
    return []


def _is_hot(journal: Path) -> bool:
    """Return whether a journal has something to undo: after a commit its header is zeroed or gone."""
    with journal.open("rb") as file:
        return file.read(1).strip(b"\0") != b""


def completed(path: Path, others: list[Path], display: str, folder: Path) -> Path:
    """Return the path of a copy of a database that SQLite has recovered with the files beside it.

    Args:
        path: the database.
        others: the result of `beside`.
        display: the database as the user named it.
        folder: the folder for the copy.

    Raises:
        InputError: the files are damaged or do not belong together.
        OutputError: there is no room for the copy.
    """
    names = " and ".join(other.name for other in others)
    copy = folder / "input.sqlite"
    with failures():
        shutil.copyfile(path, copy)
        for other in others:
            shutil.copyfile(other, copy.with_name(copy.name + other.name[len(path.name) :]))
    wrong = _complete(copy)
    if wrong:
        raise InputError(
            f"the database was not closed, and does not match {names}: {wrong}",
            hint=f"move {names} away to read the database without the changes in them, or try: sqlite3 COPY .recover",
            at=display,
        )
    return copy


def _complete(copy: Path) -> str:
    """Make SQLite apply and remove the files beside a copy; return the error, "" if there is none."""
    log, journal = (copy.with_name(copy.name + ending) for ending in (LOG, JOURNAL))
    wrong = _wrong_journal(journal) if journal.exists() else ""
    if wrong:
        return wrong
    header = _log_header(log) if log.exists() else b""
    if header is None:
        return "the header of the write-ahead log is damaged"
    try:
        with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as connection:
            for setting in ("trusted_schema = OFF", "ignore_check_constraints = ON", "mmap_size = 0"):
                connection.execute(f"PRAGMA {setting}")
            connection.execute("PRAGMA schema_version").fetchone()
            frames = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[1]
            if header and _has_commits(log, header, max(frames, 0)):
                return f"the write-ahead log is damaged behind frame {max(frames, 0)}"
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
            (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return str(error)
    if pages * page_bytes != copy.stat().st_size:  # each commit, and the first page, state the number of pages
        return f"it makes {copy.stat().st_size} bytes of a database of {pages} pages"
    return "" if verdict == "ok" else " ".join(str(verdict).split())


def _wrong_journal(journal: Path) -> str:
    """Return the reason why SQLite must not apply a journal, "" if it may."""
    size = journal.stat().st_size
    with journal.open("rb") as file:
        magic, records, _, _, sector_bytes, page_bytes = _JOURNAL_HEADER.unpack(
            file.read(_JOURNAL_HEADER.size).ljust(_JOURNAL_HEADER.size, b"\0")
        )
        file.seek(max(size - len(_JOURNAL_MAGIC), 0))
        end = file.read()
    if magic != _JOURNAL_MAGIC:
        return "the header of the journal is damaged"
    if size > len(_JOURNAL_MAGIC) and end == _JOURNAL_MAGIC:  # SQLite may delete the file that such a journal names
        return "the journal is part of a transaction over several databases"
    is_cut = records != _ALL_RECORDS and size < sector_bytes + records * (page_bytes + _BESIDE_PAGE)
    return "the journal is cut" if is_cut else ""


def _log_header(log: Path) -> bytes | None:
    """Return the header of a write-ahead log; None if the file is not one."""
    with log.open("rb") as file:
        header = file.read(_LOG_HEADER.size)
    if len(header) < _LOG_HEADER.size or int.from_bytes(header[:4], "big") & ~1 != _LOG_MAGIC:
        return None
    words = struct.unpack(">6I" if header[3] & 1 else "<6I", header[:24])
    first = second = 0
    for one, other in zip(words[::2], words[1::2], strict=True):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + other + first) & 0xFFFFFFFF
    return header if (first, second) == _LOG_HEADER.unpack(header)[6:] else None


def _has_commits(log: Path, header: bytes, frames: int) -> bool:
    """Return whether commits of this log follow the first `frames`, which SQLite has accepted."""
    _, _, page_bytes, _, *salts = _LOG_HEADER.unpack(header)[:6]
    frame_bytes = _FRAME_HEADER.size + (page_bytes if 512 <= page_bytes <= _LARGEST_PAGE else 512)
    with log.open("rb") as file:
        for at in range(_LOG_HEADER.size + frames * frame_bytes, log.stat().st_size - _FRAME_HEADER.size, frame_bytes):
            file.seek(at)
            _, pages, *mine = _FRAME_HEADER.unpack(file.read(_FRAME_HEADER.size))
            if mine == salts and pages:
                return True
    return False

"""Logs whose lines bear the mark of whoever collected them: the rank, the container, the time of arrival.

    [rank0]: onednn_verbose,v1,primitive,exec,...        torchrun and scripts
    [1,0]<stdout>:onednn_verbose,v1,...                  mpirun --tag-output
    0: onednn_verbose,v1,...                             srun --label
    worker_1  | onednn_verbose,v1,...                    docker compose
    2026-03-04T10:11:12.123456789Z stdout F onednn_...   Kubernetes, docker logs -t
    Mar 04 10:11:12 host python[123]: onednn_...         journald, syslog

The mark is not part of the format inside, and the lines of several writers stand there interleaved. Each writer becomes
a stream, as if it had written a file of its own; lines without a mark stay with the line before. Marks that name a
writer are taken off from every known format. A bare number or a time of arrival is taken off only if what is behind it
is more than a log with times, since such a time may be all that a log has; an importer that makes use of times of
arrival says so (`reads_arrivals`).

Writers write several lines each. Where nearly each line has a mark of its own, as the numbers of lines are
(`nl -s ': '`), the marks are taken off, and the lines stay together as one stream.
"""

from __future__ import annotations

import io
import re
import weakref
from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, NamedTuple, cast

from traceconv.io.source import BATCH_BYTES, Line, Source
from traceconv.io.spill import close, failures, spooled_file

_COLOUR = rb"(?:\x1b\[[0-9;:]*m)*"
_GAP = rb"(?: |(?=\r?\n|\Z))"  # behind a mark; some collectors cut it off where the line is empty
_WRITERS = (
    re.compile(rb"\[((?:rank|default|worker|node) ?\d{1,6})\]:?" + _GAP),
    re.compile(rb"((?:rank|worker|node)[ _-]?\d{1,6}):" + _GAP),
    re.compile(rb"\[(\d{1,6},\d{1,6})\]<std(?:out|err)>: ?"),
    re.compile(_COLOUR + rb"([\w.-]{1,60}[-_]\d{1,6}) {1,60}\|" + _COLOUR + _GAP),
)
_RANK = re.compile(rb"rank[ _-]?(\d{1,6})|\d{1,6},(\d{1,6})")  # as torchrun and mpirun call a writer
_NUMBERS = (re.compile(rb" {0,5}(\d{1,9}):" + _GAP),)
_ARRIVALS = (
    re.compile(rb"()\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d) (?:std(?:out|err) [FP] )?"),
    re.compile(rb"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)? ([\w.-]+ [\w./-]+(?:\[\d+\])?):" + _GAP),
)
_LINE_ENDS = re.compile(rb"\n{2,}")
_LEAST_LINES = 3
#: So many of the lines must bear the mark; others are continued lines or output that went another way.
_LEAST_SHARE = 0.8
#: No job has more writers, nor does a log with more of them get a track for each.
_MOST_WRITERS = 10_000
#: So many lines writers have on the average; any oneDNN log has two before its first primitive.
_LEAST_LINES_EACH = 3
#: As many writers are believed to have written less, if the mark is a name, and if it may be the number of a line.
_SURE_NAMES, _SURE_NUMBERS = 256, 2
_BUFFER_BYTES = 16 << 20


class _Chunk(NamedTuple):
    """Some lines of a writer in a temporary file: their numbers, in 8 bytes each, and behind these the text."""

    at: int
    lines: int
    size: int


class _Parted:
    """The lines of all writers of a log, put apart in one pass over it, however many writers there are.

    Args:
        whole: the log.
        mark: the expression of the mark; its group names the writer.
    """

    def __init__(self, whole: Source, mark: re.Pattern[bytes]) -> None:
        self._whole, self._mark = whole, mark
        self._file: IO[bytes] | None = None
        self._chunks: defaultdict[bytes, list[_Chunk]] = defaultdict(list)

    def chunks(self, writer: bytes) -> Iterator[tuple[array[int], bytes]]:
        """Yield the lines of a writer: the numbers of some, and their text without marks."""
        if self._file is None:
            self._file = self._part()
        for chunk in self._chunks[writer]:
            self._file.seek(chunk.at)
            numbers = array("q", self._file.read(8 * chunk.lines))
            yield numbers, self._file.read(chunk.size)

    def _part(self) -> IO[bytes]:
        with failures():
            file = spooled_file()
        weakref.finalize(self, close, file)
        buffers: dict[bytes, tuple[array[int], bytearray]] = {}
        buffered = 0
        for first, count, writer, text in _texts_of_writers(self._whole, self._mark):
            if writer not in buffers:
                buffers[writer] = (array("q"), bytearray())
            numbers, lines = buffers[writer]
            numbers.extend(range(first, first + count))
            lines += text
            buffered += 8 * count + len(text)
            if buffered > _BUFFER_BYTES:
                self._write(file, buffers)
                buffers, buffered = {}, 0
        self._write(file, buffers)
        return file

    def _write(self, file: IO[bytes], buffers: dict[bytes, tuple[array[int], bytearray]]) -> None:
        for writer, (numbers, text) in buffers.items():
            self._chunks[writer].append(_Chunk(file.tell(), len(numbers), len(text)))
            with failures():
                file.write(numbers.tobytes())
                file.write(text)


def _texts_of_writers(whole: Source, mark: re.Pattern[bytes]) -> Iterator[tuple[int, int, bytes, bytes]]:
    """Yield the lines of a log, each marked one with those behind it that are not.

    Yields:
        The number of the first one, how many they are, their writer, and their text.
    """
    writer, number = b"", 1
    marks = re.compile(b"^" + mark.pattern, re.MULTILINE)
    for chunk in whole.chunks():
        begin = 0
        for found in marks.finditer(chunk):
            if found.start() > begin:
                text = chunk[begin : found.start()]
                count = text.count(b"\n")
                yield number, count, writer, text
                number += count
            writer, begin = found[1], found.end()
        text = chunk[begin:]
        if text:
            count = text.count(b"\n") + (not text.endswith(b"\n"))
            yield number, count, writer, text
            number += count


class Stream(Source):
    """Lines of a log without their marks: those of one writer, or all.

    Args:
        whole: the log.
        mark: the expression of the mark; its group names the writer.
        writer: the name of the writer; None for the lines of all, where the marks name none.
        parted: the lines of all writers, if there are several.
    """

    def __init__(
        self, whole: Source, mark: re.Pattern[bytes], writer: bytes | None, parted: _Parted | None = None
    ) -> None:
        super().__init__(whole.display, whole=whole)
        self._whole, self._mark, self._writer, self._parted = whole, mark, writer, parted
        self.unpacked = whole.unpacked  # its head was read

    @property
    def writer(self) -> str:
        """Who wrote the lines: "rank0"; "" if the mark does not say."""
        return (self._writer or b"").decode("utf-8", "replace")

    @property
    def rank(self) -> int | None:
        """The number in its job of the process that wrote the lines; None if the mark names none."""
        found = _RANK.fullmatch(self._writer or b"")
        return int(found[1] or found[2]) if found else None

    @property
    def whole(self) -> Source:
        """The log."""
        return self._whole

    @property
    def is_whole(self) -> bool:
        """Never: lines of others stand between, or marks before."""
        return False

    @property
    def notes(self) -> list[str]:
        """What users should know about the marks."""
        if self._writer is not None:
            return []
        return ["nearly each line has a mark of its own before it, such as its number: the marks were taken off"]

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Yield a file that reads the lines as one text."""
        yield io.BufferedReader(cast(io.RawIOBase, _Chunks(text for _, text in self._own())), buffer_size=1 << 18)

    def lines(self, *, keep_ends: bool = False) -> Iterator[Line]:
        """Yield the lines, with their numbers in the log."""
        for numbers, lines in self.batches():
            for number, text in zip(numbers, lines, strict=True):
                yield Line(number, text if keep_ends else text.rstrip(b"\r\n"))

    def blocks(self) -> Iterator[tuple[Sequence[int], bytes]]:
        """Return the text in chunks of whole lines with their ends, and the numbers of these lines in the log."""
        return ((numbers, text) for numbers, text in self._own() if text)

    def _own(self) -> Iterator[tuple[Sequence[int], bytes]]:
        """Yield the lines, some at a time: their numbers, and their text."""
        if self._parted is None or self._writer is None:
            numbers, lines = array("q"), bytearray()
            for first, count, writer, text in _texts_of_writers(self._whole, self._mark):
                if self._writer in (None, writer):
                    numbers.extend(range(first, first + count))
                    lines += text
                if len(lines) > BATCH_BYTES:
                    yield numbers, bytes(lines)
                    numbers, lines = array("q"), bytearray()
            yield numbers, bytes(lines)
        else:
            yield from self._parted.chunks(self._writer)
        self.damage = self._whole.damage


class _Chunks(io.RawIOBase):
    """Texts one behind the other, as a file."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(cast(bytearray, buffer))
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = chunk
        chunk, self._rest = self._rest[: len(view)], self._rest[len(view) :]
        view[: len(chunk)] = chunk
        return len(chunk)


def _streams(source: Source, marks: tuple[re.Pattern[bytes], ...]) -> list[Stream]:
    """Return the streams of a log whose lines bear one of these marks, none if they do not."""
    lines = [line for line in source.head().data.splitlines()[:400] if line.strip()]
    if len(lines) < _LEAST_LINES or b"\0" in source.head().data[:4096]:
        return []
    for mark in marks:
        found = [mark.match(line) for line in lines]
        if sum(one is not None for one in found) >= _LEAST_SHARE * len(lines):
            names = _names(source, mark, _SURE_NAMES if marks is _WRITERS else _SURE_NUMBERS)
            if names is None:
                return [Stream(source, mark, None)]
            parted = _Parted(source, mark) if len(names) > 1 else None
            return [Stream(source, mark, name, parted) for name in names]
    return []


def _names(source: Source, mark: re.Pattern[bytes], sure: int) -> list[bytes] | None:
    """Return the writers in the order in which they appear; None if there are too many of them for the lines.

    Args:
        sure: so many are never too many.
    """
    names: dict[bytes, None] = {}
    count = 0
    marks = re.compile(b"^" + mark.pattern, re.MULTILINE)
    for chunk in source.chunks():
        for one in marks.finditer(_LINE_ENDS.sub(b"\n", chunk)):
            count += 1
            names.setdefault(one[1])
            if len(names) > _MOST_WRITERS:
                return None
    return list(names) if len(names) <= max(sure, count // _LEAST_LINES_EACH) else None


class Collected(NamedTuple):
    """What a log may be read as: its lines without the marks of one collector.

    Attributes:
        streams: those of each writer, or one.
        by_name: whether the marks name the writers, and can be nothing else.
        arrivals: whether the marks are times of arrival, which an importer may make use of.
    """

    streams: list[Stream]
    by_name: bool
    arrivals: bool


def collected(source: Source) -> Iterator[Collected]:
    """Yield what an input may be read as, if nearly all of its lines bear marks."""
    for marks in (_WRITERS, _NUMBERS, _ARRIVALS):
        if streams := _streams(source, marks):
            yield Collected(streams, marks is _WRITERS, marks is _ARRIVALS)

"""Logs whose lines have a prefix from a log collector: the rank, the container, the arrival time.

    [rank0]: onednn_verbose,v1,primitive,exec,...        torchrun and scripts
    [1,0]<stdout>:onednn_verbose,v1,...                  mpirun --tag-output
    0: onednn_verbose,v1,...                             srun --label
    worker_1  | onednn_verbose,v1,...                    docker compose
    2026-03-04T10:11:12.123456789Z stdout F onednn_...   Kubernetes, docker logs -t
    Mar 04 10:11:12 host python[123]: onednn_...         journald, syslog

The prefix is not part of the format behind it, and the lines of several processes ("writers") are interleaved. The
lines of each writer become a stream, as if it had written a file of its own; a line without a prefix belongs to the
writer of the line before. A prefix that names a writer is removed for every known format. A bare number or an arrival
time is removed only if the rest is of a more specific format than a log with times, since a plain log may have no other
times. An importer that uses arrival times itself declares `reads_arrivals`.

A writer writes several lines. Where nearly each line has a different prefix, such as line numbers (`nl -s ': '`), the
prefixes are removed, and all lines are one stream.
"""

from __future__ import annotations

import re
import weakref
from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, NamedTuple

from traceconv.io.source import BATCH_BYTES, Line, Source, joined
from traceconv.io.spill import close, failures, spooled_file
from traceconv.model.numbers import whole

_COLOUR = rb"(?:\x1b\[[0-9;:]*m)*"
_GAP = rb"(?: |(?=\r?\n|\Z))"  # behind a prefix; some collectors drop it on empty lines
_WRITERS = (
    re.compile(rb"\[((?:rank|default|worker|node) ?\d{1,6})\]:?" + _GAP),
    re.compile(rb"((?:rank|worker|node)[ _-]?\d{1,6}):" + _GAP),
    re.compile(rb"\[(\d{1,6},\d{1,6})\]<std(?:out|err)>: ?"),
    re.compile(_COLOUR + rb"([\w.-]{1,60}[-_]\d{1,6}) {1,60}\|" + _COLOUR + _GAP),
)
_RANK = re.compile(rb"rank[ _-]?(\d{1,6})|\d{1,6},(\d{1,6})")  # the name of a writer by torchrun and mpirun
_NUMBERS = (re.compile(rb" {0,5}(\d{1,9}):" + _GAP),)
_ARRIVALS = (
    re.compile(rb"()\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d) (?:std(?:out|err) [FP] )?"),
    re.compile(rb"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)? ([\w.-]+ [\w./-]+(?:\[\d+\])?):" + _GAP),
)
_LINE_ENDS = re.compile(rb"\n{2,}")
_LEAST_LINES = 3
#: The least share of lines with the prefix; others are continuation lines or uncollected output.
_LEAST_SHARE = 0.8
#: More writers than any job has, and more than get tracks of their own.
_MOST_WRITERS = 10_000
#: The least number of lines of a writer on average; any oneDNN log has two before its first primitive.
_LEAST_LINES_EACH = 3
#: Up to this many writers may have written fewer lines: if prefixes are names, and if they may be line numbers.
_SURE_NAMES, _SURE_NUMBERS = 256, 2
_BUFFER_BYTES = 16 << 20


class _Chunk(NamedTuple):
    """A batch of lines of a writer in a temporary file: their numbers, in 8 bytes each, then their text."""

    at: int
    lines: int
    size: int


class _Parted:
    """The lines of a log, separated by writer in one pass."""

    def __init__(self, whole: Source, mark: re.Pattern[bytes]) -> None:
        self._whole, self._mark = whole, mark
        self._file: IO[bytes] | None = None
        self._chunks: defaultdict[bytes, list[_Chunk]] = defaultdict(list)

    def chunks(self, writer: bytes) -> Iterator[tuple[array[int], bytes]]:
        """Yield the lines of a writer in batches: their numbers, and their text without prefixes."""
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
    """Yield the lines of a log, each with those behind it without a prefix: first number, count, writer, text."""
    writer, number = b"", 1
    marks = re.compile(b"^" + mark.pattern, re.MULTILINE)
    for chunk in whole.chunks():
        begin = 0
        for match in marks.finditer(chunk):
            if match.start() > begin:
                text = chunk[begin : match.start()]
                count = text.count(b"\n")
                yield number, count, writer, text
                number += count
            writer, begin = match[1], match.end()
        text = chunk[begin:]
        if text:
            count = text.count(b"\n") + (not text.endswith(b"\n"))
            yield number, count, writer, text
            number += count


class Stream(Source):
    """The lines of a log without prefixes: those of one writer, or all.

    Args:
        whole: the log.
        mark: the pattern of the prefix; its group is the name of the writer.
        writer: the name of the writer; None for all lines, where the prefixes name no writers.
        parted: the lines of all writers, if there are several.
    """

    def __init__(
        self, whole: Source, mark: re.Pattern[bytes], writer: bytes | None, parted: _Parted | None = None
    ) -> None:
        super().__init__(whole.display, whole=whole)
        self._whole, self._mark, self._writer, self._parted = whole, mark, writer, parted
        self.unpacked = whole.unpacked  # its head was read already

    @property
    def writer(self) -> str:
        """The name of the writer, such as "rank0"; "" if the prefix states none."""
        return (self._writer or b"").decode("utf-8", "replace")

    @property
    def rank(self) -> int | None:
        """The rank of the writer; None if the prefix states none."""
        match = _RANK.fullmatch(self._writer or b"")
        return whole(match[1] or match[2]) if match else None

    @property
    def whole(self) -> Source:
        """The log."""
        return self._whole

    @property
    def is_whole(self) -> bool:
        """Always False: lines of other writers or prefixes are missing."""
        return False

    @property
    def notes(self) -> list[str]:
        """Notes for users about the removed prefixes."""
        if self._writer is not None:
            return []
        return ["nearly every line has a prefix of its own, such as its number: the prefixes were removed"]

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """Yield a binary file object with the lines as one text."""
        yield joined(text for _, text in self._chunks())

    def lines(self, *, keep_ends: bool = False) -> Iterator[Line]:
        """Yield the lines, with their numbers in the log."""
        for numbers, lines in self.batches():
            for number, text in zip(numbers, lines, strict=True):
                yield Line(number, text if keep_ends else text.rstrip(b"\r\n"))

    def blocks(self) -> Iterator[tuple[Sequence[int], bytes]]:
        """Yield the text in chunks of whole lines with their ends, and the numbers of these lines in the log."""
        return ((numbers, text) for numbers, text in self._chunks() if text)

    def _chunks(self) -> Iterator[tuple[Sequence[int], bytes]]:
        """Yield the lines in batches: their numbers, and their text."""
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


def _streams(source: Source, lines: Sequence[bytes], marks: tuple[re.Pattern[bytes], ...]) -> list[Stream]:
    """Return the streams of a log whose first lines have one of these prefixes; none if they have not."""
    for mark in marks:
        matches = [mark.match(line) for line in lines]
        if sum(match is not None for match in matches) >= _LEAST_SHARE * len(lines):
            names = _names(source, mark, _SURE_NAMES if marks is _WRITERS else _SURE_NUMBERS)
            if names is None:
                return [Stream(source, mark, None)]
            parted = _Parted(source, mark) if len(names) > 1 else None
            return [Stream(source, mark, name, parted) for name in names]
    return []


def _names(source: Source, mark: re.Pattern[bytes], sure: int) -> list[bytes] | None:
    """Return the writers in order of appearance; None if there are too many of them for the number of lines."""
    names: dict[bytes, None] = {}
    count = 0
    marks = re.compile(b"^" + mark.pattern, re.MULTILINE)
    for chunk in source.chunks():
        for prefix in marks.finditer(_LINE_ENDS.sub(b"\n", chunk)):
            count += 1
            names.setdefault(prefix[1])
            if len(names) > _MOST_WRITERS:
                return None
    return list(names) if len(names) <= max(sure, count // _LEAST_LINES_EACH) else None


class Collected(NamedTuple):
    """A way to read a log: its lines without the prefixes of one collector.

    Attributes:
        streams: one for each writer, or one for all lines.
        by_name: whether the prefixes are names of writers beyond doubt.
        arrivals: whether the prefixes are arrival times, which an importer may use.
    """

    streams: list[Stream]
    by_name: bool
    arrivals: bool


def collected(source: Source) -> Iterator[Collected]:
    """Yield the ways to read an input of which nearly all lines have prefixes; none for others."""
    head = source.head().data
    lines = [line for line in head.splitlines()[:400] if line.strip()]
    if len(lines) < _LEAST_LINES or b"\0" in head[:4096]:
        return
    for marks in (_WRITERS, _NUMBERS, _ARRIVALS):
        if streams := _streams(source, lines, marks):
            yield Collected(streams, marks is _WRITERS, marks is _ARRIVALS)

"""Logs whose lines bear the mark of whoever collected them: the rank, the container, the time of arrival.

    [rank0]: onednn_verbose,v1,primitive,exec,...        torchrun and scripts
    [1,0]<stdout>:onednn_verbose,v1,...                  mpirun --tag-output
    0: onednn_verbose,v1,...                             srun --label
    worker_1  | onednn_verbose,v1,...                    docker compose
    2026-03-04T10:11:12.123456789Z stdout F onednn_...   Kubernetes, docker logs -t
    Mar 04 10:11:12 host python[123]: onednn_...         journald, syslog

The mark is no part of the format inside, and the lines of several writers stand there interleaved. Each writer becomes
a stream, as if it had written a file of its own; lines without a mark stay with the line before. Marks that name a
writer are taken off from every known format. A bare number or a time of arrival is taken off only if what is behind it
is more than a log with times, since such a time may be all that a log has; an importer that makes use of times of
arrival says so (`reads_arrivals`).
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import IO, cast

from traceconv.diagnostics import Severity, declare
from traceconv.errors import AmbiguousFormat, UnrecognizedFormat
from traceconv.ir.trace import NO_TRACK, ClockId, SourceInfo, Trace, Track, TrackKind
from traceconv.merging import concatenate_traces
from traceconv.patterns import regex
from traceconv.registry import Certainty, identify, importer_class
from traceconv.source import Head, Line, Source

REFUSED = declare(
    "streams.refused",
    Severity.DATA_LOSS,
    "the lines of one writer of the log could not be read, those of others could",
)

_COLOUR = rb"(?:\x1b\[[0-9;:]*m)*"
_GAP = rb"(?: |(?=\r?\n|\Z))"  # behind a mark; some collectors cut it off where the line is empty
_WRITERS = (
    regex(rb"\[((?:rank|default|worker|node) ?\d{1,6})\]:?" + _GAP),
    regex(rb"((?:rank|worker|node)[ _-]?\d{1,6}):" + _GAP),
    regex(rb"\[(\d{1,6},\d{1,6})\]<std(?:out|err)>: ?"),
    regex(_COLOUR + rb"([\w.-]{1,60}[-_]\d{1,6}) {1,60}\|" + _COLOUR + _GAP),
)
_NUMBERS = (regex(rb" {0,5}(\d{1,6}):" + _GAP),)
_ARRIVALS = (
    regex(rb"()\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d) (?:std(?:out|err) [FP] )?"),
    regex(rb"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)? ([\w.-]+ [\w./-]+(?:\[\d+\])?):" + _GAP),
)
_LEAST_LINES = 3
#: So many of the lines must bear the mark; others are continued lines or output that went another way.
_LEAST_SHARE = 0.8


class Stream(Source):
    """The lines of one writer of a log, without the mark.

    Args:
        whole: the log.
        mark: the expression of the mark; its group names the writer.
        writer: the name of the writer.
    """

    def __init__(self, whole: Source, mark: re.Pattern[bytes], writer: bytes) -> None:
        self._whole, self._mark, self._writer = whole, mark, writer
        self.display = whole.display
        self.damage, self.recoded = whole.damage, whole.recoded
        self._spooled = whole._spooled
        if whole.path is not None:
            self._path = whole.path
        self._head: Head | None = None

    @property
    def writer(self) -> str:
        """Who wrote the lines: "rank0"; "" if the mark does not say."""
        return self._writer.decode("utf-8", "replace")

    @property
    def is_whole(self) -> bool:
        """Never: lines of others stand between."""
        return False

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """The lines of the writer as one text."""
        yield io.BufferedReader(cast(io.RawIOBase, _Pieces(text for _, text in self._own())), buffer_size=1 << 18)

    def lines(self, *, keep_ends: bool = False) -> Iterator[Line]:
        """The lines of the writer, with their numbers in the log."""
        for number, text in self._own():
            yield Line(number, text if keep_ends else text.rstrip(b"\r\n"))

    def _own(self) -> Iterator[tuple[int, bytes]]:
        writer = b""
        for number, text in self._whole.lines(keep_ends=True):
            found = self._mark.match(text)
            if found is not None:
                writer = found[1]
            if writer == self._writer:
                yield number, text if found is None else text[found.end() :]
        self.damage = self._whole.damage


class _Pieces(io.RawIOBase):
    """Texts one behind the other, as a file."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(cast(bytearray, buffer))
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = piece
        piece, self._rest = self._rest[: len(view)], self._rest[len(view) :]
        view[: len(piece)] = piece
        return len(piece)


def _streams(source: Source, marks: tuple[re.Pattern[bytes], ...]) -> list[Stream]:
    """The streams of a log whose lines bear one of these marks, none if they do not."""
    lines = [line for line in source.head().data.splitlines()[:400] if line.strip()]
    if len(lines) < _LEAST_LINES or b"\0" in source.head().data[:4096]:
        return []
    for mark in marks:
        found = [mark.match(line) for line in lines]
        if sum(one is not None for one in found) >= _LEAST_SHARE * len(lines):
            names: dict[bytes, None] = {}
            for _, text in source.lines():
                one = mark.match(text)
                if one is not None:
                    names.setdefault(one[1])
            return [Stream(source, mark, name) for name in names]
    return []


def streams_of(source: Source, format: str | None) -> list[Source]:
    """What an input is read as: itself, or the streams of its writers.

    Args:
        source: the input.
        format: the importer that the user named, if any.
    """
    for marks in (_WRITERS, _NUMBERS, _ARRIVALS):
        found: list[Source] = [one for one in _streams(source, marks) if _is_known(one, format, marks is _WRITERS)]
        if found and not (marks is _ARRIVALS and _reads_arrivals(source, format)):
            return found
    return [source]


def _is_known(stream: Source, format: str | None, by_name: bool) -> bool:
    """Whether a stream is of a format; a log with times counts only behind the name of a writer."""
    if format:
        return by_name or importer_class(format)().sniff(stream.head()).certainty > Certainty.NO
    return _certainty(stream) > (Certainty.NO if by_name else Certainty.FALLBACK)


def _reads_arrivals(source: Source, format: str | None) -> bool:
    """Whether the format makes use of the times itself."""
    try:
        cls = importer_class(format) if format else identify(source)[0]
    except (UnrecognizedFormat, AmbiguousFormat):
        return False
    return getattr(cls, "reads_arrivals", False)


def _certainty(source: Source) -> Certainty:
    try:
        return identify(source)[1].certainty
    except (UnrecognizedFormat, AmbiguousFormat):
        return Certainty.NO


def join_streams(traces: Sequence[Trace], writers: Sequence[str]) -> Trace:
    """One trace of the streams of one input; each track at the top says whose it is."""
    clocks = list(dict.fromkeys(clock for trace in traces for clock in trace.clocks))
    marked = [
        trace.with_tables(
            tracks=[
                replace(_marked(track, writer), clock=ClockId(clocks.index(trace.clocks[track.clock])))
                for track in trace.tracks
            ]
        )
        for trace, writer in zip(traces, writers, strict=True)
    ]
    return concatenate_traces(marked).with_tables(
        sources=[_joined_info([trace.sources[0] for trace in traces])],
        clocks=clocks,
        snapshots=list(dict.fromkeys(snapshot for trace in traces for snapshot in trace.snapshots)),
        metadata={
            f"{writer}: {key}" if writer else key: value
            for trace, writer in zip(traces, writers, strict=True)
            for key, value in trace.metadata.items()
        },
    )


def _marked(track: Track, writer: str) -> Track:
    if not writer or track.parent != NO_TRACK:
        return track
    if track.kind is TrackKind.PROCESS:
        return replace(track, labels=(*track.labels, writer))
    return replace(track, name=f"{writer}: {track.name}")


def _joined_info(infos: Sequence[SourceInfo]) -> SourceInfo:
    joined = infos[0].copy()
    for info in infos[1:]:
        balance = joined.balance
        balance.read += info.balance.read
        balance.written += info.balance.written
        balance.merged.update(info.balance.merged)
        balance.skipped.update(info.balance.skipped)
        joined.diagnostics.extend(info.diagnostics)
        joined.notes.extend(note for note in info.notes if note not in joined.notes)
    return joined

"""Write a laid-out trace to a file.

A trace is laid out if all tracks use the clock `trace.clocks[0]`, slices are sorted by (track, ts, -dur, input order)
and nest, and the other tables are sorted by (track, ts). A writer does not change the trace, and equal traces give
equal bytes.
"""

from __future__ import annotations

import contextlib
import gzip
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Protocol

from msgspec import Struct

from traceconv.errors import OutputError

if TYPE_CHECKING:
    from traceconv.io.source import Source
    from traceconv.model.trace import Trace


class WriteCounts(Struct, frozen=True):
    """The number of rows written of each table."""

    slices: int = 0
    instants: int = 0
    counters: int = 0
    flows: int = 0
    samples: int = 0
    logs: int = 0


class Writer(Protocol):
    """An output format.

    Attributes:
        name: lowercase, unique, stable.
        suffixes: the file name endings, the usual one first.
        binary: whether the output is not text, and not for a terminal.
    """

    name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    binary: ClassVar[bool]

    def write(self, trace: Trace, sink: BinaryIO) -> WriteCounts:
        """Write the whole trace."""

    def notes(self, trace: Trace) -> list[str]:
        """Return sentences for the user about data that is in the file, but that Perfetto does not show."""

    @staticmethod
    def stated_sources(source: Source) -> Any:
        """Return the `sources` of `recording_metadata` from a file of this writer; None for any other file.

        It is read where `write` puts it, before the events; a file that another program rearranged may not have it
        there.

        Raises:
            InputError: the file cannot be read.
        """


class Sink:
    """Takes the bytes of an output.

    Args:
        file: gets them.
        room: the most bytes that it may get; 0 for no limit.
        instead: the start of the hint where they are too many.
    """

    def __init__(self, file: BinaryIO | gzip.GzipFile, room: int, instead: str) -> None:
        self._write, self._room, self._count, self._instead = file.write, room, 0, instead

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write bytes. Raises OutputError if they are too many."""
        self._count += len(data)
        if self._room and self._count > self._room:
            raise outgrown(self._room, self._instead)
        self._write(data)


def room_of(trace: Trace) -> int:
    """Return the most bytes that an output of a trace may take; 0 for no limit."""
    rooms = [source.room for source in trace.sources]
    return sum(rooms) if all(rooms) else 0


def outgrown(room: int, instead: str) -> OutputError:
    """Return the error that an output takes more than `room` bytes; the hint begins with `instead`."""
    return OutputError(
        f"the output takes more than {room >> 20} MB, far more than the input: long texts stand in it again for each "
        "event",
        hint=f"{instead}--max-ratio 0 writes it without this limit",
    )


@contextlib.contextmanager
def sink_of(trace: Trace, file: BinaryIO, compress: bool, instead: str = "") -> Iterator[Sink]:
    """Yield the sink of a trace; see `Sink`.

    It compresses reproducibly if wanted, without name and time in the header.
    """
    room = room_of(trace)
    if not compress:
        yield Sink(file, room, instead)
        return
    with gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=6, mtime=0) as packed:
        yield Sink(packed, room, instead)

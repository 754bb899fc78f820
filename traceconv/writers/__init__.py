"""Write a laid-out trace to a file.

A trace is laid out if all tracks use the clock `trace.clocks[0]`, slices are sorted by (track, ts, -dur, input order)
and nest, and the other tables are sorted by (track, ts). A writer does not change the trace, and equal traces give
equal bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Protocol

from msgspec import Struct

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

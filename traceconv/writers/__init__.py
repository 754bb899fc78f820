"""Writers: a laid-out trace to the bytes of a file.

A trace is laid out when all tracks use the clock `trace.clocks[0]`, slices are sorted by (track, ts, -dur, order of
input) and nest, and the other tables are sorted by (track, ts). A writer changes nothing of it, and the same trace
always becomes the same bytes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, ClassVar, Protocol

from traceconv.errors import UsageError

if TYPE_CHECKING:
    from traceconv.ir.trace import Trace


@dataclass(frozen=True, slots=True)
class WriteCounts:
    """How many rows of each table were written."""

    slices: int = 0
    instants: int = 0
    counters: int = 0
    flows: int = 0
    samples: int = 0


class Writer(Protocol):
    """A format that goes out.

    Attributes:
        name: lowercase, unique, stable.
        suffixes: how file names of this format end, the usual one first.
        binary: whether the output is no text, so that it does not belong on a terminal.
    """

    name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    binary: ClassVar[bool]

    def write(self, trace: Trace, sink: BinaryIO) -> WriteCounts:
        """Write the whole trace."""


def writers() -> tuple[type[Writer], ...]:
    """All writers."""
    from traceconv.writers.chrome_json import ChromeJson
    from traceconv.writers.perfetto_proto import PerfettoProto

    return PerfettoProto, ChromeJson


def writer_for(path_or_name: str | os.PathLike[str]) -> Writer:
    """The writer of that name, or the one for files with such a suffix; ".gz" compresses.

    Raises:
        UsageError: there is none; the hint lists the names and suffixes.
    """
    wanted = os.path.basename(os.fspath(path_or_name)).lower()
    for cls in writers():
        if wanted == cls.name:
            return cls()
        if wanted.endswith(cls.suffixes):
            return cls(compress=wanted.endswith(".gz"))  # type: ignore[call-arg]
    known = "; ".join(f"{cls.name}: {' '.join(cls.suffixes)}" for cls in writers())
    raise UsageError(f"no output format is called {wanted!r} or has such files", hint=f"known: {known}")

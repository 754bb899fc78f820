"""Writers: a laid-out trace to the bytes of a file.

A trace is laid out when all tracks use the clock `trace.clocks[0]`, slices are sorted by (track, ts, -dur, order of
input) and nest, and the other tables are sorted by (track, ts). A writer changes nothing of it, and the same trace
always becomes the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO, ClassVar, Protocol

from msgspec import Struct

from traceconv.errors import UsageError

if TYPE_CHECKING:
    from traceconv.model.trace import Trace


class WriteCounts(Struct, frozen=True):
    """How many rows of each table were written."""

    slices: int = 0
    instants: int = 0
    counters: int = 0
    flows: int = 0
    samples: int = 0
    logs: int = 0


class Writer(Protocol):
    """A format that goes out.

    Attributes:
        name: lowercase, unique, stable.
        suffixes: how file names of this format end, the usual one first.
        binary: whether the output is not text, so that it does not belong on a terminal.
    """

    name: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]
    binary: ClassVar[bool]

    def write(self, trace: Trace, sink: BinaryIO) -> WriteCounts:
        """Write the whole trace."""

    def notes(self, trace: Trace) -> list[str]:
        """Return what of the trace is in the file but not seen in Perfetto, in sentences for the user."""


def writers() -> Iterator[type[Writer]]:
    """Yield all writers.

    Each is loaded when its turn comes, so that a conversion does not pay for those after its own.
    """
    from traceconv.families.perfetto.writer import PerfettoProto

    yield PerfettoProto
    from traceconv.families.chrome.writer import ChromeJson

    yield ChromeJson


#: What the output formats are called besides.
ALIASES = {"pftrace": "perfetto", "proto": "perfetto", "json": "chrome-json", "chrome": "chrome-json"}


def writer_named(name: str, *, compress: bool = False) -> Writer:
    """Return the writer of that name or alias, which may compress.

    Raises:
        UsageError: there is none; the hint lists the names.
    """
    for cls in writers():
        if ALIASES.get(name.lower(), name.lower()) == cls.name:
            return cls(compress=compress)  # type: ignore[call-arg]
    import difflib

    names = [cls.name for cls in writers()]
    similar = difflib.get_close_matches(name.lower(), [*names, *ALIASES], 1)
    hint = f"did you mean {similar[0]}?" if similar else f"known: {', '.join(names)}"
    raise UsageError(f"no output format is called {name!r}", hint=hint)


def writer_for_path(path: str | os.PathLike[str]) -> Writer:
    """Return the writer for files with such an ending.

    Raises:
        UsageError: there is none; the hint lists the endings.
    """
    for cls in writers():
        if os.fspath(path).lower().endswith(cls.suffixes):
            return cls(compress=is_compressed(path))  # type: ignore[call-arg]
    known = "; ".join(f"{cls.name}: {' '.join(cls.suffixes)}" for cls in writers())
    raise UsageError(
        f"{os.fspath(path)}: the ending is not of an output format", hint=f"name one with --to; known: {known}"
    )


def is_compressed(path: str | os.PathLike[str]) -> bool:
    """Return whether the name of an output asks for gzip."""
    return os.fspath(path).lower().endswith(".gz")

"""Write a laid-out trace to a file.

A trace is laid out if all tracks use the clock `trace.clocks[0]`, slices are sorted by (track, ts, -dur, input order)
and nest, and the other tables are sorted by (track, ts). A writer does not change the trace, and equal traces give
equal bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Protocol

from msgspec import Struct

from traceconv.errors import UsageError

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


def writers() -> Iterator[type[Writer]]:
    """Yield all writers.

    Each is loaded when it is yielded, so that a conversion does not load those after its own.
    """
    from traceconv.families.perfetto.writer import PerfettoProto

    yield PerfettoProto
    from traceconv.families.chrome.writer import ChromeJson

    yield ChromeJson


#: Other names of the output formats.
ALIASES = {"pftrace": "perfetto", "proto": "perfetto", "json": "chrome-json", "chrome": "chrome-json"}


def writer_named(name: str, *, compress: bool = False) -> Writer:
    """Return the writer of a name or alias; with `compress`, its output is compressed.

    Raises:
        UsageError: the name is unknown; the hint lists the names.
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
    """Return the writer for the ending of a path.

    Raises:
        UsageError: the ending is unknown; the hint lists the endings.
    """
    for cls in writers():
        if os.fspath(path).lower().endswith(cls.suffixes):
            return cls(compress=is_compressed(path))  # type: ignore[call-arg]
    known = "; ".join(f"{cls.name}: {' '.join(cls.suffixes)}" for cls in writers())
    raise UsageError(
        f"{os.fspath(path)}: the ending matches no output format", hint=f"name one with --to; known: {known}"
    )


def is_compressed(path: str | os.PathLike[str]) -> bool:
    """Return whether the name of an output asks for gzip."""
    return os.fspath(path).lower().endswith(".gz")

"""Find the writer of an output."""

from __future__ import annotations

import os
from collections.abc import Iterator

from traceconv.errors import UsageError
from traceconv.writers import Writer


def writers() -> Iterator[type[Writer]]:
    """Yield all writers. Each is loaded when it is yielded, so that a conversion does not load those after its own."""
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

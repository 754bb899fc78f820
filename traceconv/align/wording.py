"""Words of messages: lists, counts, names for a shell."""

from __future__ import annotations

from collections.abc import Iterable
from shlex import quote

from traceconv.model.numbers import earlier_or_later

#: The hint for clocks that contradict each other.
KEEP_CLOCKS = "--on-ambiguous best keeps all clocks, and marks them"


def listed(several: Iterable[object], between: str = ", ") -> str:
    """Return several things, such as "a, b"."""
    return between.join(map(str, several))


def counted(count: int, noun: str, ending: str = "s") -> str:
    """Return a count with its noun, whose plural has the ending: "1 slice", "2 slices"."""
    return f"{count} {noun}{'' if count == 1 else ending}"


def quoted(names: Iterable[str]) -> str:
    """Return names as arguments for a shell."""
    return " ".join(map(quote, names))


def place_it(file: str) -> str:
    """Return the hint for a file whose clock contradicts its events."""
    return f"place it by --anchor or --offset {quote(file)}=TIME; --on-ambiguous best leaves it here and marks it"


def moves(several: Iterable[int]) -> str:
    """Return moves in time, ns, such as "1 ms later, 2 ms earlier"."""
    return ", ".join(map(earlier_or_later, several))

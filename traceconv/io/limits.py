"""How much an input may take that is not what it seems: bounds that no real recording meets."""

from __future__ import annotations

from dataclasses import dataclass

from traceconv.errors import InputError

#: So much may always be unpacked, whatever the file takes packed.
FREE_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one input.

    Attributes:
        length: how many bytes a line of a text, a name or an arg of an event may have. Longer lines and args are left
            out, longer names are cut; each is counted. JSON documents, tensors and values of databases may be longer.
        ratio: how many times its size a file may unpack to, once that is more than FREE_BYTES; 0 for any.
    """

    length: int = 16 << 20
    ratio: int = 200


DEFAULT_LIMITS = Limits()


class Unpacked:
    """Counts what one pass over an input unpacks.

    Args:
        display: the input, for messages.
        packed: its bytes as they lie in the file.
        limits: its bounds.
    """

    def __init__(self, display: str, packed: int, limits: Limits) -> None:
        self._display, self._packed, self._ratio = display, packed, limits.ratio
        self._bytes = 0

    @property
    def size(self) -> int:
        """The bytes of the input: those of the file, or those that were unpacked if these are more."""
        return max(self._packed, self._bytes)

    def add(self, count: int) -> None:
        """Count some bytes. Raises InputError if it becomes more than the file may unpack to."""
        self._bytes += count
        if self._ratio and self._bytes > max(FREE_BYTES, self._ratio * self._packed):
            raise InputError(
                f"its {self._packed} bytes unpack to more than {self._bytes >> 20} MB, over "
                f"{self._ratio} times as much: is it damaged, or made to fill memory?",
                hint="--max-ratio 0 reads it whatever it unpacks to",
                at=self._display,
            )

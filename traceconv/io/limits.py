"""Limits for hostile inputs, which no real recording reaches."""

from __future__ import annotations

from dataclasses import dataclass

from traceconv.errors import InputError

#: Unpacking this much is always allowed, whatever the packed size.
FREE_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one input.

    Attributes:
        length: the most bytes of a line of a text, and of a name or an arg of an event. Longer lines and args are left
            out, longer names are cut; each is counted. JSON documents, tensors and values of databases may be longer.
        ratio: the highest ratio of unpacked to packed size, checked beyond FREE_BYTES; 0 for no limit.
    """

    length: int = 16 << 20
    ratio: int = 200


DEFAULT_LIMITS = Limits()


class Unpacked:
    """Counts the unpacked bytes in one pass over an input.

    Args:
        display: the input, for messages.
        packed: its size in the file, bytes.
        limits: its limits.
    """

    def __init__(self, display: str, packed: int, limits: Limits) -> None:
        self._display, self._packed, self._ratio = display, packed, limits.ratio
        self._bytes = 0

    @property
    def size(self) -> int:
        """The size of the input in bytes: of the file, or of the unpacked data so far if that is more."""
        return max(self._packed, self._bytes)

    def add(self, count: int) -> None:
        """Count unpacked bytes. Raises InputError if they exceed the ratio."""
        self._bytes += count
        if self._ratio and self._bytes > max(FREE_BYTES, self._ratio * self._packed):
            raise InputError(
                f"its {self._packed} bytes unpack to more than {self._bytes >> 20} MB, over "
                f"{self._ratio} times as much: is it damaged, or made to fill memory?",
                hint="--max-ratio 0 reads it without this limit",
                at=self._display,
            )

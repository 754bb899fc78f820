"""Limits for hostile inputs, which no real recording reaches."""

from __future__ import annotations

from dataclasses import dataclass

from traceconv.errors import InputError

#: So much is always allowed, whatever the size of the input. Unpacked bytes take longer than texts that are repeated.
FREE_BYTES, FREE_UNPACKED_BYTES = 256 << 20, 32 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one input.

    Attributes:
        length: the most bytes of a line of a text, and of a name or an arg of an event. Longer lines and args are left
            out, longer names are cut; each is counted. JSON documents, tensors and values of databases may be longer.
        ratio: how many times its size an input may take unpacked, in the args of its events, and in an output; checked
            beyond FREE_UNPACKED_BYTES and FREE_BYTES; 0 for no limit.
    """

    length: int = 16 << 20
    ratio: int = 200

    def room(self, size: int) -> int:
        """Return the bytes that args or an output of an input of this size may take; 0 for no limit."""
        return max(FREE_BYTES, self.ratio * size) if self.ratio else 0

    def unpacked_room(self, size: int) -> int:
        """Return the bytes that an input of this packed size may take when it is unpacked; 0 for no limit."""
        return max(FREE_UNPACKED_BYTES, self.ratio * size) if self.ratio else 0


DEFAULT_LIMITS = Limits()


class Unpacked:
    """Counts the unpacked bytes in one pass over an input.

    Args:
        display: the input, for messages.
        packed: its size in the file, bytes.
        limits: its limits.
    """

    def __init__(self, display: str, packed: int, limits: Limits) -> None:
        self._display, self._packed, self._limits = display, packed, limits
        self._bytes = self._repeated = 0

    @property
    def size(self) -> int:
        """The size of the input in bytes: of the file, or of the unpacked data so far if that is more."""
        return max(self._packed, self._bytes)

    def add(self, count: int) -> None:
        """Count unpacked bytes. Raises InputError if they exceed the ratio."""
        self._bytes += count
        self._check(self._packed, self._bytes, self._limits.unpacked_room(self._packed), "unpack to")

    def repeat(self, count: int) -> None:
        """Count bytes of texts that stand in the file once, and are used again. Raises InputError as `add` does."""
        self._repeated += count
        self._check(self.size, self._repeated, self._limits.room(self.size), "repeat texts of")

    def _check(self, size: int, count: int, room: int, what: str) -> None:
        if room and count > room:
            raise too_large(self._display, size, count, f"{what} more than", self._limits.ratio)


def too_large(display: str, size: int, count: int, what: str, ratio: int) -> InputError:
    """Return the error that something takes far more than the input that it is of.

    Args:
        display: the input.
        size: its bytes.
        count: the bytes that are taken.
        what: the verb of the sentence, such as "unpack to more than".
        ratio: how many times the size is allowed.
    """
    return InputError(
        f"its {size} bytes {what} {count >> 20} MB, over {ratio} times as much: is it damaged, or made to fill memory?",
        hint="--max-ratio 0 reads it without this limit",
        at=display,
    )

"""The bytes of all args of a trace, in memory or in files."""

from __future__ import annotations

import mmap
from bisect import bisect_right
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from traceconv.io.spill import forget
from traceconv.model.ordering import occurring

#: The bytes of args that are searched at a time.
_SEARCHED = 1 << 24
#: After this many reads of args in files, their resident pages are dropped: each read may load 64 KiB.
_MANY_LOOKS = 256
#: The number of args in files that a reader of many gets at a time, for the same reason.
_READ_OF_FILE = 1 << 10
#: The number and size of args that are joined at a time: each byte takes dozens of bytes then.
_JOINED, _LONGEST_JOINED = 1 << 13, 1 << 9


class Args:
    """The bytes of all args, in parts in memory or in files; a row locates its args by position and length."""

    def __init__(self, parts: Sequence[bytes | bytearray | mmap.mmap] = ()) -> None:
        self.parts = [part for part in parts if len(part)]
        self._mappings = [part for part in self.parts if isinstance(part, mmap.mmap)]
        self._looks = 0
        self._views = [memoryview(part) for part in self.parts] or [memoryview(b"")]
        self._starts = [0]
        for part in self.parts:
            self._starts.append(self._starts[-1] + len(part))

    def __len__(self) -> int:
        return self._starts[-1]

    def view(self, at: int, length: int) -> memoryview:
        """Return the bytes of one JSON object without a copy; empty if the length is 0."""
        part = bisect_right(self._starts, at) - 1 if len(self._views) > 1 and length else 0
        start = at - self._starts[part]
        if self._mappings:
            self._looks += 1
            if self._looks % _MANY_LOOKS == 0:
                self.forget()
        return self._views[part][start : start + length]

    def joined(self, at: npt.NDArray[np.int64], length: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
        """Return the concatenated bytes of many JSON objects, without a Python object for each short one."""
        result = np.empty(int(np.sum(length)), np.uint8)
        to = np.cumsum(length) - length
        part_of = np.where(length > 0, np.searchsorted(self._starts, at, "right") - 1, 0)
        for number in occurring(part_of) if len(result) else ():
            part = np.frombuffer(self.parts[number], np.uint8)
            here, is_long = part_of == number, length > _LONGEST_JOINED
            for row in np.flatnonzero(here & is_long).tolist():
                start = at[row] - self._starts[number]
                result[to[row] : to[row] + length[row]] = part[start : start + length[row]]
            places = np.flatnonzero(here & ~is_long)
            for some in (places[start : start + _JOINED] for start in range(0, len(places), _JOINED)):
                sizes = length[some]
                inside = np.arange(int(np.sum(sizes))) - np.repeat(np.cumsum(sizes) - sizes, sizes)
                source = np.repeat(at[some] - self._starts[number], sizes) + inside
                result[np.repeat(to[some], sizes) + inside] = part[source]
        self.forget()
        return result

    def by_part(
        self, at: npt.NDArray[np.int64], length: npt.NDArray[np.int32]
    ) -> Iterator[tuple[npt.NDArray[np.intp], npt.NDArray[np.int64], npt.NDArray[np.uint8]]]:
        """Yield, for each part with JSON objects, which these are, where they start in it, and its bytes.

        Those of a part in a file come a few at a time.
        """
        some = np.flatnonzero(length > 0)
        part_of = np.searchsorted(self._starts, at[some], "right") - 1
        for number in occurring(part_of):
            part, of_part = self.parts[number], some[part_of == number]
            step = _READ_OF_FILE if isinstance(part, mmap.mmap) else len(of_part)
            for start in range(0, len(of_part), step):
                rows = of_part[start : start + step]
                yield rows, at[rows] - self._starts[number], np.frombuffer(part, np.uint8)
                self.forget()

    def places(self, text: bytes) -> Iterator[int]:
        """Yield the positions at which a text occurs in the bytes of all args."""
        for start, part in zip(self._starts, self.parts, strict=False):
            for begin in range(0, len(part), _SEARCHED):
                end = begin + _SEARCHED + len(text) - 1
                at = part.find(text, begin, end)
                while at >= 0:
                    yield start + at
                    at = part.find(text, at + len(text), end)
                self.forget()  # a file would become resident as a whole

    def forget(self) -> None:
        """Drop the resident pages of args in files; to be called after reading `parts` directly."""
        for mapping in self._mappings:
            forget(mapping)

    def get(self, at: int, length: int) -> bytes:
        """Return a copy of the bytes of one JSON object; empty if the length is 0."""
        return bytes(self.view(at, length))

"""The interned strings of a trace.

The first strings are objects, which is fastest: almost all traces have few. A trace in which each event has a name of
its own has millions, and a str with its place in a dict takes 200 bytes. So further strings are UTF-8 in the kernel.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, overload

from traceconv import kernel

#: The strings that are objects. Without the kernel all of them are.
_MOST_OBJECTS = 1 << 16
#: The approximate bytes of a string that is an object, and of another one; with what its importer keeps of it.
_OBJECT_BYTES, _BYTES = 250, 100


class Strings(Sequence[str]):
    """Distinct strings with numbers, from 0 on in the order in which they came.

    Args:
        texts: the first strings.
    """

    __slots__ = ("_numbers", "_objects", "_rest")

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._numbers: dict[str, int] = {}
        self._objects: list[str] = []
        self._rest: Any = None  # the strings that are no objects
        for text in texts:
            self.number(text)

    def number(self, text: str) -> int:
        """Return the number of a string, which gets one if it has none."""
        number = self._numbers.get(text)
        return self._further(text) if number is None else number

    def _further(self, text: str) -> int:
        if self._rest is None and len(self._objects) >= _MOST_OBJECTS:
            module = kernel.module("strings")
            self._rest = None if module is None else module.Texts()
        if self._rest is not None:
            number: int = self._rest.number(utf8(text), True)
            return len(self._objects) + number
        number = self._numbers[text] = len(self._objects)
        self._objects.append(text)
        return number

    def for_reading(self) -> Sequence[str]:
        """Return the strings by number: a list if all are objects, which is faster and does not grow; else these."""
        return list(self._objects) if self._rest is None else self

    @property
    def nbytes(self) -> int:
        """The approximate bytes of all strings."""
        return _OBJECT_BYTES * len(self._objects) + _BYTES * (len(self) - len(self._objects))

    def __len__(self) -> int:
        return len(self._objects) + (0 if self._rest is None else len(self._rest))

    @overload
    def __getitem__(self, number: int) -> str: ...
    @overload
    def __getitem__(self, number: slice) -> list[str]: ...
    def __getitem__(self, number: int | slice) -> str | list[str]:
        if isinstance(number, slice):
            return [self[at] for at in range(*number.indices(len(self)))]
        at = operator.index(number)
        at += len(self) if at < 0 else 0
        if not 0 <= at < len(self):
            raise IndexError(f"no string has the number {number}")
        objects = self._objects
        return objects[at] if at < len(objects) else self._rest.text(at - len(objects))

    def __iter__(self) -> Iterator[str]:
        """Yield the strings that there are now; others may be added while this is read."""
        count, objects = len(self), len(self._objects)
        yield from islice(self._objects, objects)
        if self._rest is not None:
            yield from map(self._rest.text, range(count - objects))

    def __contains__(self, text: object) -> bool:
        return self._find(text) >= 0

    def index(self, text: str, start: int = 0, stop: int | None = None) -> int:
        """Return the number of a string.

        Raises:
            ValueError: no number from `start` to before `stop` is that of the string.
        """
        number = self._find(text)
        if number not in range(*slice(start, stop).indices(len(self))):
            raise ValueError(f"{text!r} is not among the strings")
        return number

    def _find(self, text: object) -> int:
        if not isinstance(text, str):
            return -1
        number = self._numbers.get(text, -1)
        if number < 0 and self._rest is not None:
            known = self._rest.number(utf8(text), False)
            return len(self._objects) + known if known >= 0 else -1
        return number

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str):
            return NotImplemented
        return len(self) == len(other) and all(map(operator.eq, self, other))

    __hash__ = None  # type: ignore[assignment]


def utf8(text: str) -> bytes:
    """Return a text in UTF-8; a surrogate without its other half keeps its code."""
    return text.encode("utf-8", "surrogatepass")

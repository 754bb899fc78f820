"""The args of events: the bytes of all of them, JSON objects joined to them, and chosen values decoded."""

from __future__ import annotations

import math
import mmap
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import astuple

from traceconv.io.spill import Parts, forget
from traceconv.model.columns import I32, I64, chunks, occurring
from traceconv.model.numbers import decode_json

if TYPE_CHECKING:
    from traceconv.model.trace import Slices, Trace

# -- bytes ------------------------------------------------------------------------------------------------------------

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


# -- objects ----------------------------------------------------------------------------------------------------------

#: A JSON object as bytes, or a dict; None for none.
AnyArgs = bytes | dict[str, Any] | None

#: The args that are in memory before the store gets them.
_CHUNK_BYTES = 1 << 20
_encode = msgspec.json.Encoder(enc_hook=str).encode


def as_bytes(args: AnyArgs) -> bytes:
    """Return args as the bytes of a JSON object; b"" for an empty dict and for None."""
    if not isinstance(args, dict):
        return args or b""
    encoded = _encode(args) if args else b""
    # JSON cannot express infinity and NaN: msgspec would write null. They are kept as text.
    return _encode(_with_text(args)) if b"null" in encoded else encoded


def _with_text(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_text(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_with_text(inner) for inner in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def join_args(first: AnyArgs, second: AnyArgs) -> bytes:
    """Return one JSON object with the members of both. A key of both stays twice: readers take the second value."""
    members, more = as_bytes(first).strip(), as_bytes(second).strip()
    if len(members) <= 2 or not members[1:-1].strip():
        return more
    if len(more) <= 2 or not more[1:-1].strip():
        return members
    return members[:-1] + b"," + more[1:]


def with_more_args(trace: Trace, rows: Iterable[int], more: Iterable[AnyArgs], kept: Parts | None = None) -> Trace:
    """Return the trace with more args of some slices, each once; `kept` is the store for them, None for memory."""
    slices, parts = trace.slices, list[bytearray]()
    args_at, args_len = slices.args_at.copy(), slices.args_len.copy()
    end, chunk, add = len(trace.args), bytearray(), parts.append if kept is None else kept.append
    for row, args in zip(rows, more, strict=True):
        new = join_args(trace.args.get(int(args_at[row]), int(args_len[row])), args)
        args_at[row], args_len[row] = end + len(chunk), len(new)
        chunk += new
        if len(chunk) >= _CHUNK_BYTES:
            add(chunk)
            end, chunk = end + len(chunk), bytearray()
    add(chunk)
    changed = replace(slices, args_at=args_at, args_len=args_len)
    added = parts if kept is None else kept.take()
    return trace.with_tables(slices=changed, args=Args([*trace.args.parts, *added]))


# -- values -----------------------------------------------------------------------------------------------------------

#: The value of an arg that an event does not have.
ABSENT: Any = msgspec.UNSET
#: The args of which one is true if no duration of a slice was recorded: its end is missing, or the input has no times.
NO_DURATION = ("unfinished", "no_duration")


def arg_values(
    args: Args, at: I64, length: I32, keys: Sequence[str], *, repeated: bool = False
) -> tuple[npt.NDArray[np.intp], list[tuple[Any, ...]]]:
    """Return for each event the number of its values, and the values of the keys by number.

    Args:
        at, length: where the args of each event start, and how many bytes they have; 0 for none.
        keys: the members to decode; the others are passed over.
        repeated: whether events with equal values get one number, decoded once: lists that most events share take a
            fifth of the time, values that all differ more than twice the time.
    """
    places, first, numbers = np.unique(np.where(length > 0, at, -1), return_index=True, return_inverse=True)
    numbers, where = numbers.reshape(-1), list(zip(places.tolist(), length[first].tolist(), strict=True))
    if repeated and (decode := _decoder(keys, msgspec.Raw, msgspec.Raw())):
        known: dict[bytes, int] = {}
        written = (b"" if place < 0 else b",".join(astuple(decode(args.view(place, size)))) for place, size in where)
        same = np.fromiter((known.setdefault(text, len(known)) for text in written), np.intp)
        _, first = np.unique(same, return_index=True)
        numbers, where = same[numbers], [where[number] for number in first.tolist()]
    read, nothing = _reader(keys), (ABSENT,) * len(keys)
    return numbers, [nothing if place < 0 else read(args.view(place, size)) for place, size in where]


def durations_recorded(slices: Slices, args: Args) -> npt.NDArray[np.bool_]:
    """Return a mask of the slices whose duration was recorded; others are drawn without a recorded end."""
    recorded = np.ones(len(slices.ts), bool)
    for rows, values in _some_values(args, slices.args_at, slices.args_len, NO_DURATION):
        recorded[rows] = [True not in of_slice for of_slice in values]
    return recorded


def having_any(at: I64, length: I32, args: Args, keys: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Return a mask of the events that have one of the args; `at` and `length` locate theirs."""
    has_any = np.zeros(len(at), bool)
    for rows, values in _some_values(args, at, length, keys):
        has_any[rows] = [any(value is not ABSENT for value in of_event) for of_event in values]
    return has_any


def _some_values(
    args: Args, at: I64, length: I32, keys: Sequence[str]
) -> Iterator[tuple[npt.NDArray[np.intp], list[tuple[Any, ...]]]]:
    """Yield the numbers of the events whose args hold one of the keys as text, and the values of the keys of each."""
    quoted = [b'"%b"' % key.encode() for key in keys]
    places = np.sort(np.array([place for key in quoted for place in args.places(key)], np.int64))
    for rows in chunks(len(at)) if len(places) else ():
        next_place = np.append(places, np.iinfo(np.int64).max)[np.searchsorted(places, at[rows])]
        some = np.flatnonzero(next_place < at[rows] + length[rows])
        numbers, values = arg_values(args, at[rows][some], length[rows][some], keys)
        yield rows.start + some, [values[number] for number in numbers.tolist()]


def as_text(value: Any) -> str:
    """Return a value of an arg as people read it: a text as it is, JSON of anything else."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _reader(keys: Sequence[str]) -> Callable[[memoryview], tuple[Any, ...]]:
    """Return a function that decodes the values of the keys from a JSON object."""
    decode = _decoder(keys, Any, ABSENT)
    if decode is None:
        return lambda text: _each_value(text, keys)

    def read(text: memoryview) -> tuple[Any, ...]:
        try:
            return astuple(decode(text))
        except msgspec.ValidationError:  # a number that is too large
            return _each_value(text, keys)

    return read


def _decoder(keys: Sequence[str], kind: Any, absent: Any) -> Callable[[memoryview], Any] | None:
    """Return a function that decodes the keys of a JSON object as members of a structure; None for odd keys."""
    names = [f"key_{number}" for number in range(len(keys))]
    fields = [(name, kind, absent) for name in names]
    try:
        chosen = msgspec.defstruct("Chosen", fields, rename=dict(zip(names, keys, strict=True)))
    except ValueError:  # no field may have quotes, backslashes, control characters or what is not text in its name
        return None
    return msgspec.json.Decoder(chosen).decode


def _each_value(text: memoryview, keys: Sequence[str]) -> tuple[Any, ...]:
    """Return the values of the keys; a number that is too large to decode as its text."""
    values: list[Any] = []
    members = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    for key in keys:
        values.append(decode_json(members[key]) if key in members else ABSENT)
    return tuple(values)

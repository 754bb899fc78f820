"""The args of events: the bytes of all of them, JSON objects joined to them, and chosen values decoded."""

from __future__ import annotations

import math
import mmap
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import astuple

from traceconv import kernel
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
#: The bytes of args whose members are decoded at a time.
_DECODED = 1 << 24
#: The keys whose members the kernel finds at once.
MOST_KEYS = 8


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


def arg_values(args: Args, at: I64, length: I32, keys: Sequence[str]) -> tuple[I64, list[tuple[Any, ...]]]:
    """Return for each event the number of its values, and the values of the keys by number.

    Values that events share are decoded once.

    Args:
        at, length: where the args of each event start, and how many bytes they have; 0 for none.
        keys: the members to decode; the others are passed over.
    """
    numbers, values = np.empty(len(at), np.int64), list[tuple[Any, ...]]()
    for rows in _portions(length):
        numbers[rows], texts = _numbered(args, at[rows], length[rows], keys)
        numbers[rows] += len(values)
        values += _decoded(texts, keys)
    return numbers, values


def _portions(length: I32) -> Iterator[slice]:
    """Yield ranges of rows whose args have at most _DECODED bytes together, unless one alone has more."""
    ends = np.cumsum(length, dtype=np.int64)
    start = 0
    while start < len(ends):
        before = int(ends[start - 1]) if start else 0
        end = max(int(np.searchsorted(ends, before + _DECODED, "right")), start + 1)
        yield slice(start, end)
        start = end


def _decoded(texts: bytearray, keys: Sequence[str]) -> Iterable[tuple[Any, ...]]:
    """Return the values of the keys in each object of a JSON array."""
    if structure := _structure(tuple(keys), of_text=False):
        try:
            return map(astuple, msgspec.json.decode(texts, type=list[structure]))  # type: ignore[valid-type]
        except msgspec.ValidationError:  # a number that is too large
            pass
    return (_each_value(memoryview(text), keys) for text in msgspec.json.decode(texts, type=list[msgspec.Raw]))


def _numbered(args: Args, at: I64, length: I32, keys: Sequence[str]) -> tuple[I64, bytearray]:
    """Return for each event the number of its args with these members only, and these as an array of JSON objects."""
    numbers, texts, count = np.full(len(at), -1, np.int64), bytearray(b"["), 0
    structure = _structure(tuple(keys), of_text=True)
    module = kernel.module("strings") if structure and len(keys) <= MOST_KEYS else None
    if module is not None:
        found, members = module.Texts(), tuple(key.encode() for key in keys)
        for rows, starts, data in args.by_part(at, length):
            of_part = np.empty(len(rows), np.int64)
            found.number_members(data, starts, length[rows], members, of_part)
            numbers[rows] = of_part
        texts += found.joined()
        count = len(found)
    left, known = np.flatnonzero(numbers < 0), dict[bytes, int]()
    places, first, which = np.unique(np.where(length > 0, at, -1)[left], return_index=True, return_inverse=True)
    decode = msgspec.json.Decoder(structure).decode if structure else None
    new = np.empty(len(places), np.int64)
    for row, (place, size) in enumerate(zip(places.tolist(), length[left][first].tolist(), strict=True)):
        view = args.view(place, size) if place >= 0 else memoryview(b"{}")
        pairs = zip(keys, astuple(decode(view)), strict=True) if decode else ()
        written = b",".join(b'"%b":%b' % (key.encode(), value) for key, value in pairs if bytes(value))
        new[row] = known.setdefault(b"{%b}" % written if decode else bytes(view), count + len(known))
    numbers[left] = new[which.reshape(-1)]
    for text in known:
        texts += text + b","
    texts[-1 if len(texts) > 1 else len(texts) :] = b"]"
    return numbers, texts


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


@lru_cache(maxsize=64)
def _structure(keys: tuple[str, ...], *, of_text: bool) -> type[msgspec.Struct] | None:
    """Return a structure with the keys of a JSON object as members, decoded or as text; None for odd keys."""
    names = [f"key_{number}" for number in range(len(keys))]
    member = (msgspec.Raw, msgspec.Raw()) if of_text else (Any, ABSENT)
    try:
        return msgspec.defstruct(
            "Chosen", [(name, *member) for name in names], rename=dict(zip(names, keys, strict=True))
        )
    except ValueError:  # no field may have quotes, backslashes, control characters or what is not text in its name
        return None


def _each_value(text: memoryview, keys: Sequence[str]) -> tuple[Any, ...]:
    """Return the values of the keys; a number that is too large to decode as its text."""
    values: list[Any] = []
    members = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    for key in keys:
        values.append(decode_json(members[key]) if key in members else ABSENT)
    return tuple(values)

"""Chosen args of events, decoded once for each object that the trace holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from traceconv.model.arg_bytes import Args
from traceconv.model.json_values import decode_json
from traceconv.model.ordering import chunks
from traceconv.model.trace import I32, I64, Slices

#: The value of an arg that an event does not have.
ABSENT: Any = msgspec.UNSET
#: The args of which one is true if no duration of a slice was recorded: its end is missing, or the input has no times.
NO_DURATION = ("unfinished", "no_duration")


def arg_values(
    args: Args, at: I64, length: I32, keys: Sequence[str]
) -> tuple[npt.NDArray[np.intp], list[tuple[Any, ...]]]:
    """Return for each event the number of its values, and the values of the keys by number.

    Args:
        args: of the trace.
        at: where the args of each event start.
        length: how many bytes they have; 0 for an event without args.
        keys: the members to decode; the others are passed over.
    """
    read = _reader(keys)
    places, first, numbers = np.unique(np.where(length > 0, at, -1), return_index=True, return_inverse=True)
    nothing = (ABSENT,) * len(keys)
    values = [
        nothing if place < 0 else read(args.view(place, size))
        for place, size in zip(places.tolist(), length[first].tolist(), strict=True)
    ]
    return numbers.reshape(-1), values


def durations_recorded(slices: Slices, args: Args) -> npt.NDArray[np.bool_]:
    """Return a mask of the slices whose duration was recorded; others are drawn without a recorded end."""
    recorded = np.ones(len(slices.ts), bool)
    for rows, values in _some_values(args, slices.args_at, slices.args_len, NO_DURATION):
        recorded[rows] = [True not in one for one in values]
    return recorded


def having_any(at: I64, length: I32, args: Args, keys: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Return a mask of the events that have one of the args.

    Args:
        at, length: where the args of each event start, and how many bytes they have.
        args: of the trace.
        keys: the args.
    """
    has_any = np.zeros(len(at), bool)
    for rows, values in _some_values(args, at, length, keys):
        has_any[rows] = [any(value is not ABSENT for value in one) for one in values]
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
    names = [f"key_{number}" for number in range(len(keys))]
    fields = [(name, Any, ABSENT) for name in names]
    try:
        chosen = msgspec.defstruct("Chosen", fields, rename=dict(zip(names, keys, strict=True)))
    except ValueError:  # no field may have quotes, backslashes, control characters or what is not text in its name
        return lambda text: _each_value(text, keys)
    decode = msgspec.json.Decoder(chosen).decode

    def read(text: memoryview) -> tuple[Any, ...]:
        try:
            return msgspec.structs.astuple(decode(text))
        except msgspec.ValidationError:  # a number that is too large
            return _each_value(text, keys)

    return read


def _each_value(text: memoryview, keys: Sequence[str]) -> tuple[Any, ...]:
    """Return the values of the keys; a number that is too large to decode as its text."""
    values: list[Any] = []
    members = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    for key in keys:
        values.append(decode_json(members[key]) if key in members else ABSENT)
    return tuple(values)

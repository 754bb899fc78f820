"""Chosen args of events, decoded once for each object that the trace holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from traceconv.model.trace import I32, I64, Args

#: The value of an arg that an event does not have.
ABSENT: Any = msgspec.UNSET


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
    decode = _decoder(keys)
    places, first, numbers = np.unique(np.where(length > 0, at, -1), return_index=True, return_inverse=True)
    nothing = (ABSENT,) * len(keys)
    values = [
        nothing if place < 0 else decode(args.view(place, size))
        for place, size in zip(places.tolist(), length[first].tolist(), strict=True)
    ]
    return numbers.reshape(-1), values


def _decoder(keys: Sequence[str]) -> Callable[[bytes | memoryview], tuple[Any, ...]]:
    """Return what decodes the keys of an object: alone, or with all others where msgspec cannot name one of them."""
    if not all(key.isprintable() and not {'"', "\\"} & set(key) for key in keys):
        whole = msgspec.json.Decoder(dict[str, Any]).decode
        return lambda text: tuple(map(whole(text).get, keys, repeat(ABSENT)))
    names = [f"key_{number}" for number in range(len(keys))]
    chosen = msgspec.defstruct(
        "Chosen", [(name, Any, ABSENT) for name in names], rename=dict(zip(names, keys, strict=True))
    )
    decode = msgspec.json.Decoder(chosen).decode
    return lambda text: msgspec.structs.astuple(decode(text))

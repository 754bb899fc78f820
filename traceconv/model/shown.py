"""Names of slices for pictures: calls of primitives also say the size of their result and their implementation.

Tables, comparisons and JSON have the name itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from traceconv.model.inputs_of import inputs_of
from traceconv.model.marks import PrimitiveMarks
from traceconv.model.strings import Strings
from traceconv.model.trace import Trace


def as_shown(trace: Trace) -> Trace:
    """Return the trace with the names for pictures: calls of primitives include their problem and implementation."""
    return _renamed(trace, lambda name, suffix: f"{name} {suffix}")


def as_recorded(trace: Trace) -> Trace:
    """Undo `as_shown` for a trace that was read from an output of traceconv."""
    return _renamed(trace, lambda name, suffix: name.removesuffix(f" {suffix}"))


def _renamed(trace: Trace, rename: Callable[[str, str], str]) -> Trace:
    """Return the trace with `rename(name, suffix)` as names of calls of primitives; the suffix comes from the args."""
    marks = [source.marks.primitives for source in trace.sources]
    if not any(marks):
        return trace
    slices, strings = trace.slices, Strings(trace.strings)
    input_of = inputs_of(trace, "slices")
    names = slices.name.copy()
    for source, one in enumerate(marks):
        if one is None:
            continue
        calls = [strings.index(category) for category in one.calls if category in strings]
        rows = np.flatnonzero((input_of == source) & np.isin(slices.category, calls))
        rows = rows[slices.args_len[rows] > 0]
        first, same = _distinct(slices.args_at[rows], slices.name[rows])
        columns = (column[rows[first]].tolist() for column in (slices.name, slices.args_at, slices.args_len))
        tell, view, numbers = _Telling(one), trace.args.view, dict[tuple[int, bytes, bytes], int]()
        renamed = np.empty(len(first), np.int32)
        for row, (name, at, length) in enumerate(zip(*columns, strict=True)):
            key = name, *tell.parts(view(at, length))
            number = numbers.get(key)
            if number is None:
                text = tell.renamed(rename, trace.strings[name], *key[1:])
                number = numbers[key] = strings.number(text)
            renamed[row] = number
        names[rows] = renamed[same]
    return trace.with_tables(slices=replace(slices, name=names), strings=strings.for_reading())


def _distinct(*columns: npt.NDArray[Any]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the first row of each distinct combination of values, and for each row the number of its combination.

    `np.unique` would do, but it loads numpy's masked arrays, which costs more than a small conversion.
    """
    order = np.lexsort(columns)
    starts = np.ones(len(order), bool)
    starts[1:] = np.any([np.diff(column[order]) != 0 for column in columns], axis=0)
    first = order[starts]  # the sort is stable
    number = np.empty(len(order), np.intp)
    number[order] = np.argsort(np.argsort(first))[np.cumsum(starts) - 1]
    return np.sort(first), number


class _Telling:
    """Builds the names of calls of primitives."""

    def __init__(self, marks: PrimitiveMarks) -> None:
        renamed = {"problem": marks.problem, "implementation": marks.implementation}
        fields = [(name, msgspec.Raw, msgspec.Raw()) for name in renamed]
        self._decode = msgspec.json.Decoder(msgspec.defstruct("Told", fields, rename=renamed)).decode
        self._sizes = re.compile(marks.sizes).findall

    def parts(self, args: memoryview) -> tuple[bytes, bytes]:
        """Return the problem and the implementation from the args of a call, as JSON values; b"" for a missing one."""
        decoded: Any = self._decode(args)
        return bytes(decoded.problem), bytes(decoded.implementation)

    def renamed(self, rename: Callable[[str, str], str], name: str, *parts: bytes) -> str:
        """Return the new name of a call with this problem and implementation; the old one if both are unknown."""
        problem, implementation = map(_text, parts)
        suffix = " ".join(filter(None, ("x".join(self._sizes(problem)) or problem, implementation)))
        return rename(name, suffix) if suffix else name


def _text(value: bytes) -> str:
    """Return the text that a JSON value holds, "" if it is not a string."""
    decoded = msgspec.json.decode(value) if value else ""
    return decoded if isinstance(decoded, str) else ""

"""Names of slices for pictures: calls of primitives also say the size of their result and their implementation.

Tables, comparisons and JSON have the name itself.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from traceconv.model.marks import PrimitiveMarks
from traceconv.model.trace import Trace


def as_shown(trace: Trace) -> Trace:
    """Return the trace with the names that pictures show: calls of primitives say their problem and implementation."""
    marks = [source.marks.primitives for source in trace.sources]
    if not any(marks):
        return trace
    slices, strings = trace.slices, {text: number for number, text in enumerate(trace.strings)}
    source_of = np.array([track.source for track in trace.tracks], np.int32)
    names = slices.name.copy()
    for number, one in enumerate(marks):
        if one is None:
            continue
        calls = [strings[category] for category in one.calls if category in strings]
        rows = np.flatnonzero((source_of[slices.track] == number) & np.isin(slices.category, calls))
        tell = _Telling(one)
        columns = slices.name[rows], slices.args_at[rows], slices.args_len[rows]
        for row, name, at, length in zip(rows.tolist(), *(column.tolist() for column in columns), strict=True):
            text = tell.name(trace.strings[name], trace.args.view(at, length))
            names[row] = strings.setdefault(text, len(strings))
    return trace.with_tables(slices=replace(slices, name=names), strings=list(strings))


class _Telling:
    """Makes names of calls of primitives."""

    def __init__(self, marks: PrimitiveMarks) -> None:
        renamed = {"problem": marks.problem, "implementation": marks.implementation}
        fields = [(name, msgspec.Raw, msgspec.Raw()) for name in renamed]
        self._decode = msgspec.json.Decoder(msgspec.defstruct("Told", fields, rename=renamed)).decode
        self._sizes = re.compile(marks.sizes).findall
        self._parts: dict[tuple[bytes, bytes], str] = {}

    def name(self, name: str, args: memoryview) -> str:
        """Return the name of a call with these args, the name alone where they do not tell."""
        if not args:
            return name
        found: Any = self._decode(args)
        key = bytes(found.problem), bytes(found.implementation)
        told = self._parts.get(key)
        if told is None:
            problem, implementation = map(_text, key)
            told = self._parts[key] = " ".join(
                filter(None, ("x".join(self._sizes(problem)) or problem, implementation))
            )
        return f"{name} {told}" if told else name


def _text(value: bytes) -> str:
    """Return a text of JSON, "" for anything else."""
    found = msgspec.json.decode(value) if value else ""
    return found if isinstance(found, str) else ""

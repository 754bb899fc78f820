"""Cut names, and drop args, that are longer than in any real recording: viewers would fail on them."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import msgspec
import numpy as np

from traceconv.model.arg_bytes import Args
from traceconv.model.diagnostics import ProblemKind, declare
from traceconv.model.strings import utf8
from traceconv.model.trace import SourceInfo, Trace

LONG_NAME = declare(
    "source.long_name", ProblemKind.LOST, "a name is longer than --max-length allows: it was cut to that length"
)
LONG_ARG = declare(
    "source.long_arg", ProblemKind.LOST, "an arg of an event is longer than --max-length allows: it was left out"
)

_SHOWN = 60
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def shorten(trace: Trace, length: int) -> Trace:
    """Return the trace of one input with its names cut, and without args that are too long; both are counted.

    Args:
        trace: the trace, which is consumed.
        length: the most bytes of a name or an arg.
    """
    _shorten_args(trace, length)
    names = chain(trace.strings, trace.tracks.texts("name"), (frame.name for frame in trace.frames))
    long = [name for name in names if _is_long(name, length)]
    if not long:
        return trace
    for name in long:
        trace.sources[0].diagnostics.add(LONG_NAME, f"{name[:_SHOWN]}...")
    return trace.with_tables(
        strings=[_cut(text, length) for text in trace.strings],
        tracks=trace.tracks.replaced(name=[_cut(name, length) for name in trace.tracks.texts("name")]),
        frames=[replace(frame, name=_cut(frame.name, length)) for frame in trace.frames],
    )


def _is_long(text: str, length: int) -> bool:
    """Return whether a text has more than `length` bytes in UTF-8; fast, since almost all are far shorter."""
    return 4 * len(text) > length and len(utf8(text)) > length


def _cut(text: str, length: int) -> str:
    """Return the longest prefix of a text that has at most `length` bytes in UTF-8."""
    return utf8(text)[:length].decode("utf-8", "ignore") if _is_long(text, length) else text


def _shorten_args(trace: Trace, length: int) -> None:
    parts, end = list(trace.args.parts), len(trace.args)
    for table in (trace.slices, trace.instants, trace.logs):
        for row in np.flatnonzero(np.asarray(table.args_len) > length).tolist():
            args = trace.args.view(int(table.args_at[row]), int(table.args_len[row]))
            short = _without_long(args, length, int(table.origin[row]), trace.sources[0])
            table.args_at[row], table.args_len[row] = end, len(short)
            parts.append(short)
            end += len(short)
    if len(parts) > len(trace.args.parts):
        trace.args = Args(parts)


def _without_long(args: memoryview, length: int, origin: int, source: SourceInfo) -> bytes:
    """Return the args of one event without those that are too long."""
    kept: dict[str, msgspec.Raw] = {}
    for key, value in _members(args).items():
        size = memoryview(value).nbytes
        if size <= length and not _is_long(key, length):
            kept[key] = value
        else:
            place = f"{source.name}:{source.unit} {origin}: {key[:_SHOWN]!r} has {size} bytes"
            source.diagnostics.add(LONG_ARG, place, number=origin)
    return msgspec.json.encode(kept)

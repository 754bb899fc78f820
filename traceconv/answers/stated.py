"""The inputs that an output of traceconv states, as inputs of their own: it answers like its inputs."""

from __future__ import annotations

import posixpath
import re
from dataclasses import replace
from typing import Any

from traceconv.answers.tables import SliceTable, Uncut
from traceconv.model.marks import NO_MARKS
from traceconv.model.trace import Frame, Trace
from traceconv.model.tracks import Tracks


def by_stated_inputs(table: SliceTable) -> SliceTable:
    """Return the table with the tracks of outputs of traceconv assigned to the inputs that these state."""
    if not any(source.stated for source in table.trace.sources):
        return table
    uncut = table.uncut
    if uncut is not None:
        uncut = Uncut(by_stated_inputs(uncut.table), uncut.rows, uncut.window)
    return replace(table, trace=_by_stated_inputs(table.trace), uncut=uncut)


def _by_stated_inputs(trace: Trace) -> Trace:
    sources = list(trace.sources)
    first: dict[int, int] = {}
    for number, source in enumerate(trace.sources):
        if source.stated:
            first[number] = len(sources)
            sources[number] = replace(source, marks=NO_MARKS, sampled=(), stated=())
            sources += source.stated
    tracks = Tracks(
        replace(track, source=first[track.source] + track.stated, pid=None if track.invented else track.pid)
        if track.source in first
        else track
        for track in trace.tracks
    )
    frames = [replace(frame, named=frame.named and not _is_place(frame)) for frame in trace.frames]
    return trace.with_tables(sources=sources, tracks=tracks, frames=frames, metadata=_with_bounds(trace))


def _with_bounds(trace: Trace) -> dict[str, Any]:
    """Return the metadata of a trace; if it has a single input, with the clock bounds that this states for its own."""
    (source, *others) = trace.sources
    for one in trace.metadata.get("inputs", ()) if not others else ():
        if one["file"] == source.name and "traceconv.sources" in one["facts"]:
            return trace.metadata | {"alignment": one["facts"].get("alignment", [])}
    return trace.metadata


def _is_place(frame: Frame) -> bool:
    """Return whether the name of a frame is that of unknown code: an address, or an offset in its file."""
    name = frame.name.removeprefix(posixpath.basename(frame.category))
    return frame.name == "[unknown]" or re.fullmatch(r"\+?0x[0-9a-f]+", name) is not None

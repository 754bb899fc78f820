"""The inputs that an output of traceconv states, as inputs of their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from traceconv.model.marks import NO_MARKS
from traceconv.model.placing import Placing, placing_of
from traceconv.model.trace import Trace, Track


def by_stated_inputs(trace: Trace) -> Trace:
    """Return the trace with the tracks of outputs of traceconv assigned to the inputs that these state.

    The outputs stay in the list of inputs, with their diagnostics and without tracks. How certain events are that are
    still theirs, on a thread of another input, is not known.
    """
    if not any(source.stated for source in trace.sources):
        return trace
    sources = list(trace.sources)
    first: dict[int, int] = {}
    for number, (source, placings) in enumerate(zip(trace.sources, placings_of(trace), strict=True)):
        if source.stated:
            first[number] = len(sources)
            sources[number] = replace(source, marks=NO_MARKS, sampled=(), stated=(), placings=(Placing(),))
            sources += (replace(one, placings=one.placings + placings) for one in source.stated)
    new_number = np.array([first.get(one, one) for one in range(len(trace.sources))], np.int32)
    source_of = new_number[trace.tracks.column("source")]
    changed: dict[int, Track] = {}
    for index, track in trace.tracks.special():
        if track.source in first:
            source_of[index] += track.stated
            own = ((table, first[track.source] + number, since) for table, number, since in track.stated_carries)
            pid = None if track.invented else track.pid
            changed[index] = replace(track, source=int(source_of[index]), carries=(*track.carries, *own), pid=pid)
    tracks = trace.tracks.replaced(source=source_of)
    for index, track in changed.items():
        tracks.put(index, track)
    return trace.with_tables(sources=sources, tracks=tracks)


def placings_of(trace: Trace) -> list[tuple[Placing, ...]]:
    """Return how each input of a trace was placed: in the outputs that held it, innermost first, then in the trace."""
    lines = trace.metadata.get("alignment")
    return [source.placings or (placing_of(source.name, lines),) for source in trace.sources]

"""The inputs that an output of traceconv states, as inputs of their own."""

from __future__ import annotations

from dataclasses import replace

from traceconv.model.marks import NO_MARKS
from traceconv.model.placing import Placing, placing_of
from traceconv.model.trace import Trace
from traceconv.model.tracks import Tracks


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
    tracks = Tracks(
        replace(
            track,
            source=first[track.source] + track.stated,
            carries=(
                *track.carries,
                *((table, first[track.source] + number, since) for table, number, since in track.stated_carries),
            ),
            pid=None if track.invented else track.pid,
        )
        if track.source in first
        else track
        for track in trace.tracks
    )
    return trace.with_tables(sources=sources, tracks=tracks)


def placings_of(trace: Trace) -> list[tuple[Placing, ...]]:
    """Return how each input of a trace was placed: in the outputs that held it, innermost first, then in the trace."""
    lines = trace.metadata.get("alignment")
    return [source.placings or (placing_of(source.name, lines),) for source in trace.sources]

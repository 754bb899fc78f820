"""Join the traces of the writers of one log, on their own clocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from traceconv.merging.traces import concatenate_traces
from traceconv.model.trace import NO_TRACK, ClockId, SourceInfo, Trace, Track, TrackKind
from traceconv.model.tracks import Tracks


def join_streams(traces: Sequence[Trace], writers: Sequence[str]) -> Trace:
    """Return one trace of the streams of an input; the tracks at the top name the writer."""
    clocks = list(dict.fromkeys(clock for trace in traces for clock in trace.clocks))
    marked = [
        trace.with_tables(
            tracks=Tracks(
                replace(_marked(track, writer), clock=ClockId(clocks.index(trace.clocks[track.clock])))
                for track in trace.tracks
            )
        )
        for trace, writer in zip(traces, writers, strict=True)
    ]
    return concatenate_traces(marked).with_tables(
        sources=[_joined_info([trace.sources[0] for trace in traces])],
        clocks=clocks,
        snapshots=list(dict.fromkeys(snapshot for trace in traces for snapshot in trace.snapshots)),
        metadata={
            f"{writer}: {key}" if writer else key: value
            for trace, writer in zip(traces, writers, strict=True)
            for key, value in trace.metadata.items()
        },
    )


def _marked(track: Track, writer: str) -> Track:
    if not writer or track.parent != NO_TRACK:
        return track
    if track.kind is TrackKind.PROCESS:
        return replace(track, labels=(*track.labels, writer))
    return replace(track, name=f"{writer}: {track.name}")


def _joined_info(infos: Sequence[SourceInfo]) -> SourceInfo:
    joined = infos[0].copy()
    if len(infos) > 1:
        joined.rank = joined.world_size = None  # it records several processes
    for info in infos[1:]:
        joined.balance.extend(info.balance)
        joined.diagnostics.extend(info.diagnostics)
        joined.notes.extend(note for note in info.notes if note not in joined.notes)
    return joined

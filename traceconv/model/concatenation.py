"""Concatenate traces, each on its own clocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from traceconv.model.arg_bytes import Args
from traceconv.model.columns import Column, finished
from traceconv.model.ordering import chunks
from traceconv.model.strings import Strings
from traceconv.model.trace import (
    NO_TRACK,
    TABLES,
    TEXTS,
    ClockId,
    Frame,
    SourceInfo,
    Trace,
    Track,
    TrackKind,
    column_types,
)
from traceconv.model.tracks import Tracks


def concatenate_traces(traces: Sequence[Trace]) -> Trace:
    """Concatenate the rows of all traces, with their references adapted to common tables."""
    strings = Strings()
    tracks = Tracks()
    frames: list[Frame] = []
    moves: list[dict[str, Any]] = []
    args_before = rows_before = 0
    for trace in traces:
        string = np.fromiter(map(strings.number, trace.strings), np.int32, len(trace.strings))
        move = {"track": len(tracks), "args_at": args_before, "stack": len(frames)}
        moves.append(move | {"from_slice": rows_before, "to_slice": rows_before} | dict.fromkeys(TEXTS, string))
        frames += [replace(f, parent=f.parent + len(frames) if f.parent >= 0 else -1) for f in trace.frames]
        tracks.extend(trace.tracks)
        args_before += len(trace.args)
        rows_before += len(trace.slices.ts)
    columns = {
        (name, column): _joined_column(traces, moves, name, column, dtype)
        for name, cls in TABLES.items()
        for column, dtype in column_types(cls).items()
    }
    arrays, mappings = finished(list(columns.values()), in_file=any(trace.mappings for trace in traces))
    by_column = dict(zip(columns, arrays, strict=True))
    tables = {
        name: cls(**{column: by_column[name, column] for column in column_types(cls)}) for name, cls in TABLES.items()
    }
    return Trace(
        sources=[source for trace in traces for source in trace.sources],
        strings=strings.for_reading(),
        tracks=tracks,
        clocks=[],
        snapshots=[],
        frames=frames,
        args=Args([part for trace in traces for part in trace.args.parts]),
        metadata={},
        mappings=mappings,
        **tables,
    )


def _joined_column(
    traces: Sequence[Trace], moves: Sequence[dict[str, Any]], table: str, name: str, dtype: Any
) -> Column:
    """Return the concatenation of one column of all traces.

    Columns are large: resident pages of those in files are dropped, and their result goes to a file.
    """
    joined = Column(dtype)
    for trace, move in zip(traces, moves, strict=True):
        values = getattr(getattr(trace, table), name)
        for rows in chunks(len(values)):
            joined.put(_moved(name, values[rows], move.get(name)))
            if trace.mappings:
                joined.spill()
                trace.forget()
    return joined


def _moved(column: str, values: Any, move: Any) -> Any:
    """Return the values of a column, adapted to the common table that it refers to.

    `move` is what to add to the numbers, or the new number of each string.
    """
    if move is None:
        return values
    if column in TEXTS:
        return move[values]
    moved = np.where(values >= 0, values + move, -1) if column == "stack" else values + move
    return moved.astype(values.dtype, copy=False)


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

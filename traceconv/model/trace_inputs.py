"""Traces of several inputs: concatenated, the input of each row, and what outputs of traceconv state of theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from traceconv import __version__
from traceconv.model.args import Args
from traceconv.model.columns import I64, Column, Strings, chunks, finished
from traceconv.model.marks import NO_MARKS
from traceconv.model.source_info import Placing, SourceInfo, placing_of
from traceconv.model.trace import TABLES, TEXTS, Frame, Trace, column_types
from traceconv.model.track_table import NO_TRACK, ClockId, Track, TrackKind, Tracks

# -- concatenation ----------------------------------------------------------------------------------------------------


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


# -- inputs of rows ---------------------------------------------------------------------------------------------------

Numbers = npt.NDArray[np.int32]


class Inputs:
    """The inputs of the rows of a table, as indices into Trace.sources; a flow is of the input where it starts.

    If several inputs have such rows on one track, and those of one are not all before those of the other, they count
    for the first of them, but samples with the names of another input for that one.
    """

    def __init__(self, trace: Trace, name: str) -> None:
        self._trace, self._name = trace, name
        table = "slices" if name == "flows" else name
        self._of_track = trace.tracks.column("source")
        self._shared: dict[int, tuple[I64, Numbers]] = {}
        for number, track in trace.tracks.special():
            inputs = track.inputs_over_time(table) if track.carries else ()
            if len(inputs) > 1:
                since, sources = zip(*inputs, strict=True)
                self._shared[number] = np.array(since, np.int64), np.array(sources, np.int32)

    def of_rows(self, rows: slice) -> Numbers:
        """Return the input of each of some rows."""
        trace, table = self._trace, getattr(self._trace, self._name)
        timed, at = (trace.slices, table.from_slice[rows]) if self._name == "flows" else (table, rows)
        track = timed.track[at]
        if not len(track):
            return np.empty(0, np.int32)
        found: Numbers = self._of_track[track]
        if self._shared:
            shared = np.flatnonzero(np.isin(track, list(self._shared)))
            on, times = track[shared], timed.ts[at][shared]
            for number in np.unique(on).tolist():
                since, sources = self._shared[number]
                here = on == number
                found[shared[here]] = sources[np.searchsorted(since, times[here], "right") - 1]
        return _of_samples(trace, table.name[rows], found) if self._name == "samples" else found


def inputs_of(trace: Trace, name: str) -> Numbers:
    """Return the input of each row of a table, as `Inputs` has it."""
    return Inputs(trace, name).of_rows(slice(None))


def _of_samples(trace: Trace, name: Numbers, numbers: Numbers) -> Numbers:
    """Return the inputs of samples that are on threads of other inputs in an output of traceconv: by their names."""
    names, which = np.unique(name, return_inverse=True)
    texts = [trace.strings[number] for number in names.tolist()]
    sampled = np.array([[text in source.sampled for text in texts] for source in trace.sources], bool)
    elsewhere = np.any(sampled, axis=0)[which] & ~sampled[numbers, which]
    return np.where(elsewhere, np.argmax(sampled, axis=0)[which], numbers).astype(np.int32)


# -- stated inputs ----------------------------------------------------------------------------------------------------


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
            sources += (replace(stated, placings=stated.placings + placings) for stated in source.stated)
    new_number = np.array([first.get(stated, stated) for stated in range(len(trace.sources))], np.int32)
    source_of = new_number[trace.tracks.column("source")]
    changed: dict[int, Track] = {}
    for index, track in trace.tracks.special():
        if track.source in first:
            stated = track.stated
            source_of[index] += stated.input
            carried = ((table, first[track.source] + number, since) for table, number, since in stated.carries)
            pid = None if stated.without_pid else track.pid
            changed[index] = replace(track, source=int(source_of[index]), carries=(*track.carries, *carried), pid=pid)
    tracks = trace.tracks.replaced(source=source_of)
    for index, track in changed.items():
        tracks.put(index, track)
    return trace.with_tables(sources=sources, tracks=tracks)


def placings_of(trace: Trace) -> list[tuple[Placing, ...]]:
    """Return how each input of a trace was placed: in the outputs that held it, innermost first, then in the trace."""
    lines = trace.metadata.get("alignment")
    return [source.placings or (placing_of(source.name, lines),) for source in trace.sources]


def recording_metadata(trace: Trace) -> dict[str, Any]:
    """Return the tool, the clock, the inputs with notes, and the files left out, without `Trace.metadata`."""
    return {
        "version": __version__,
        "clock": trace.clocks[0].describe() if trace.clocks else "",
        "sources": [_described(source) for source in trace.sources],
    } | ({"left_out": trace.left_out} if trace.left_out else {})


def _described(source: SourceInfo) -> dict[str, Any]:
    described = {"name": source.name, "format": source.format, "notes": source.notes}
    return described | ({"fingerprint": source.fingerprint} if source.fingerprint else {})


def names_of_sources(sources: Any) -> dict[str, str]:
    """Return the names of the inputs of a trace by their fingerprints, from the `sources` that its writer states.

    It is empty for any other value, and if one of the inputs was a stream.
    """
    if not isinstance(sources, list):
        return {}
    names = [
        (str(source.get("fingerprint", "")), str(source.get("name", "")))
        for source in sources
        if isinstance(source, dict)
    ]
    return dict(names) if len(names) == len(sources) and all(key for key, _ in names) else {}


def is_output(metadata: Mapping[str, Any]) -> bool:
    """Return whether traceconv wrote a trace, from its metadata: those of Perfetto or of Chrome JSON."""
    if "traceconv.sources" in metadata:
        return True
    inside = metadata.get("metadata")
    return isinstance(inside, dict) and isinstance(about := inside.get("traceconv"), dict) and "sources" in about


def ranks_of_inputs(metadata: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the different ranks of the inputs that a trace of traceconv states, ascending."""
    inside = metadata if "traceconv.sources" in metadata else metadata.get("metadata")
    lines = inside.get("alignment") if isinstance(inside, dict) else None
    stated = {line.get("rank") for line in lines if isinstance(line, dict)} if isinstance(lines, list) else set()
    return tuple(sorted(rank for rank in stated if type(rank) is int))

"""Merge laid-out traces into one trace on one time axis.

Each input keeps its own tracks: equal pids or tids of two files do not join them. Only processes and threads that are
known to be the same are joined; `traceconv.align.identity` decides which.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import structs

from traceconv.align import Alignment, ReceiptLine
from traceconv.align.checks import Causality
from traceconv.align.domains import clocks_of_tracks, on_trace_time
from traceconv.merging.processes import adopt_totals, join_totals, put_together, set_apart, with_ranks_named
from traceconv.model.clocks import ClockMap, Verdict
from traceconv.model.columns import I64, Column, chunks, finished, occurring
from traceconv.model.diagnostics import noted
from traceconv.model.numbers import format_drift, format_time
from traceconv.model.trace import TIMED, Flows, Trace
from traceconv.model.trace_inputs import concatenate_traces
from traceconv.model.track_table import NO_TRACK, Tracks

if TYPE_CHECKING:
    from traceconv.align.collective_matching import Matched
    from traceconv.align.collectives import Occurrences

# -- flows of collectives -------------------------------------------------------------------------------------------

_NAME = "collective"


def with_collective_flows(
    merged: Trace, traces: Sequence[Trace], alignment: Alignment, matched: Matched | None
) -> Trace:
    """Return the trace with flows between the slices of each collective, by rank; a note states their number.

    Only collectives are connected whose group has known ranks. Either each rank has their sequence number once; or the
    clocks of the ranks are related within a bound, and their order shows which are one (`collective_matching`).
    Equal order alone is not enough, since training repeats its steps.
    """
    notes = merged.sources[0].notes
    count = 0
    if matched is not None:
        source, target, count = _pairs(traces, alignment, matched.occurrences)
    if not count:
        notes.append(
            "no flows are drawn between collectives: "
            "it is not certain which records of several ranks are one collective"
        )
        return merged
    notes.append(f"{len(source)} flows are drawn between the members of {count} collectives")
    strings = list(dict.fromkeys((*merged.strings, _NAME)))
    name = np.full(len(source), strings.index(_NAME), np.int32)
    added = Flows(source, target, name, name, merged.slices.origin[source])
    flows = merged.flows
    columns = {column: np.concatenate((getattr(flows, column), getattr(added, column))) for column in Flows.__slots__}
    return merged.with_tables(strings=strings, flows=replace(flows, **columns))


def _pairs(traces: Sequence[Trace], alignment: Alignment, seen: Occurrences) -> tuple[I64, I64, int]:
    """Return the rows of the slices that flows start at and end at, and the number of collectives."""
    clock = np.array(alignment.related, np.int64)[seen.input]
    first, last = np.full((2, len(clock)), [[len(traces)], [-1]])
    np.minimum.at(first, seen.number, clock)
    np.maximum.at(last, seen.number, clock)
    of_one_clock = (first == last) & (first >= 0)
    seen = seen.where((seen.seq >= 0) | of_one_clock[seen.number])
    seen = seen.where(np.lexsort((seen.rank, seen.number)))
    starts = np.array(list(accumulate((len(trace.slices.ts) for trace in traces), initial=0)))
    rows, of_one = starts[seen.input] + seen.row, np.flatnonzero(np.diff(seen.number) == 0)
    return rows[of_one], rows[of_one + 1], seen.count


# -- merging --------------------------------------------------------------------------------------------------------

BACKWARD_FLOW = noted(
    "flow.backward",
    "a flow leads to a slice that began earlier: viewers draw it in the other direction, from that slice",
)


def merge_traces(traces: Sequence[Trace], alignment: Alignment, *, flows_of: Causality | None = None) -> Trace:
    """Return the merged trace; the inputs are not changed.

    Args:
        traces: laid-out traces of one input each.
        alignment: the maps of their clocks to trace time, and the processes and threads that they share.
        flows_of: the checks of the alignment, to add flows between the members of their collectives; None for no flows.
    """
    recorded = traces
    traces = [trace.with_tables(sources=[source.copy() for source in trace.sources]) for trace in traces]
    for trace in traces:
        trace.sources[0].sampled = tuple(trace.strings[name] for name in occurring(trace.samples.name))
    for index, notes in alignment.notes.items():
        traces[index].sources[0].notes += map(str, notes)
    for index in alignment.zones_told:
        questions = {snap.local.question for snap in traces[index].snapshots if snap.local}
        source = traces[index].sources[0]
        source.notes = [note for note in source.notes if note not in questions]
    timed = [
        _on_trace_time(trace, maps, index)
        for index, (trace, maps) in enumerate(zip(join_totals(traces), alignment.maps, strict=True))
    ]
    for index, rows in alignment.others.items():
        timed[index] = set_apart(timed[index], rows)
    for index, placement in alignment.placements.items():
        from traceconv.align.duration_layout import laid_inside

        timed[index] = laid_inside(timed[index], timed[placement.host], placement)
    merged = timed[0] if len(timed) == 1 else concatenate_traces(timed)
    _report_backward_flows(merged)
    if flows_of is not None:
        merged = with_collective_flows(merged, recorded, alignment, flows_of.matched)
    if len(timed) > 1:
        starts = list(accumulate((len(trace.tracks) for trace in timed), initial=0))
        merged = adopt_totals(put_together(merged, alignment.together, starts))
        merged = with_ranks_named(merged, [machine.host for machine in alignment.machines])
    _note_times_before_zero(merged)
    tracks = _described(merged, alignment.lines)
    inputs = [{"file": trace.sources[0].name, "metadata": trace.metadata} for trace in timed if trace.metadata]
    metadata = {"alignment": [line.as_json() for line in alignment.receipt], "inputs": inputs}
    if processes := alignment.together.as_json():
        metadata["processes"] = processes
    left_out = {path: reason for trace in recorded for path, reason in trace.left_out.items()}
    return merged.with_tables(
        clocks=[alignment.clock],
        snapshots=[],
        tracks=tracks,
        metadata=metadata,
        left_out=left_out,
        receipt=tuple(alignment.receipt),
        one_machine=all(machine.by_user for machine in alignment.machines),
    )


# -- time -----------------------------------------------------------------------------------------------------------


def _on_trace_time(trace: Trace, maps: dict[int, ClockMap], index: int) -> Trace:
    """Return the trace with all times mapped. Maps are monotonic, so the layout stays valid."""
    trace = trace.with_tables(tracks=_with_doubts(trace.tracks, maps))
    if not all(clock_map.changes_nothing for clock_map in maps.values()):
        trace = _with_moved_times(trace, maps)
    clock, source = trace.tracks.column("clock"), trace.tracks.column("source")
    synthetic = np.flatnonzero(np.array([domain.synthetic for domain in trace.clocks], bool)[clock]).tolist()
    if not synthetic and not clock.any() and np.all(source == index):
        return trace
    clock[:], source[:] = 0, index
    tracks = trace.tracks.replaced(clock=clock, source=source)
    for number in synthetic:
        tracks.put(number, structs.replace(tracks[number], synthetic=True))
    return trace.with_tables(tracks=tracks)


def _with_moved_times(trace: Trace, maps: dict[int, ClockMap]) -> Trace:
    """Return the trace with its times mapped; columns in a file stay in a file."""
    clocks = clocks_of_tracks(trace)
    columns = {(name, "ts"): Column(np.int64) for name in TIMED} | {("slices", "dur"): Column(np.int64)}
    for name, table in trace.timed_tables():
        for rows in chunks(len(table.ts)):
            ts, clock = table.ts[rows], clocks[table.track[rows]]
            moved = on_trace_time(ts, clock, maps)
            columns[name, "ts"].put(moved)
            if name == "slices":
                columns[name, "dur"].put(on_trace_time(ts + table.dur[rows], clock, maps) - moved)
            if trace.mappings:
                columns[name, "ts"].spill()
                columns["slices", "dur"].spill()
                trace.forget()
    arrays, mappings = finished(list(columns.values()), in_file=bool(trace.mappings))
    instants: dict[str, dict[str, Any]] = {}
    for (name, column), values in zip(columns, arrays, strict=True):
        instants.setdefault(name, {})[column] = values
    tables = {name: replace(getattr(trace, name), **moved) for name, moved in instants.items()}
    return trace.with_tables(**tables, mappings=trace.mappings + mappings)


def _with_doubts(tracks: Tracks, maps: dict[int, ClockMap]) -> Tracks:
    """Return the tracks; the topmost ones of a clock that was not placed, or only by a guess, state that."""
    doubt = {clock: _doubt(clock_map.verdict) for clock, clock_map in maps.items()}
    if not any(doubt.values()):
        return tracks
    return Tracks(
        structs.replace(track, doubts=(*track.doubts, words))
        if (words := doubt.get(track.clock))
        and words not in track.doubts
        and (track.parent == NO_TRACK or doubt.get(tracks[track.parent].clock) != words)
        else track
        for track in tracks
    )


def _doubt(verdict: Verdict) -> str:
    if verdict is Verdict.SEPARATE:
        return "not aligned"
    return "place uncertain" if verdict.unusable else ""


def _note_times_before_zero(trace: Trace) -> None:
    span = trace.span()
    if span is not None and span[0] < 0:
        shift = format_time(-span[0])
        note = f"there are times before zero: outputs add {shift} to all, since Perfetto drops such events"
        notes = trace.sources[0].notes
        notes.extend([] if note in notes else [note])


def _report_backward_flows(trace: Trace) -> None:
    """Report the flows that no viewer draws as recorded: Perfetto orders the ends of a flow by the starts of slices."""
    flows, slices = trace.flows, trace.slices
    source_of = trace.tracks.column("source")
    for rows in chunks(len(flows.from_slice)):
        origin, target = flows.from_slice[rows], flows.to_slice[rows]
        back = np.flatnonzero(slices.ts[target] < slices.ts[origin])
        origin, target = origin[back], target[back]
        source = source_of[slices.track[origin]]
        for number in occurring(source):
            here = np.flatnonzero(source == number)
            first = here[0]
            names = (trace.strings[slices.name[ends[first]]] for ends in (origin, target))
            trace.sources[number].diagnostics.add(BACKWARD_FLOW, " to ".join(map(repr, names)), len(here))
        trace.forget()


# -- words ----------------------------------------------------------------------------------------------------------


def _described(trace: Trace, receipt: list[list[ReceiptLine]]) -> Tracks:
    """Return the tracks; the descriptions of those at the top name their input and its alignment."""
    parent, source = trace.tracks.column("parent"), trace.tracks.column("source")
    descriptions = trace.tracks.texts("description")
    words: dict[tuple[str, int], str] = {}  # many tracks may share them
    for number in np.flatnonzero((parent == NO_TRACK) | (source[parent] != source)).tolist():
        key = descriptions[number], int(source[number])
        if key not in words:
            words[key] = _description(*key, trace, receipt)
        descriptions[number] = words[key]
    return trace.tracks.replaced(description=descriptions)


def _description(stated: str, number: int, trace: Trace, receipt: list[list[ReceiptLine]]) -> str:
    words = [stated] if stated else []
    words.append(f"From {trace.sources[number].name} ({trace.sources[number].format}).")
    words += [_placing(line) for line in receipt[number]]
    return "\n".join(words)


def _placing(line: ReceiptLine) -> str:
    words = [f"Clock: {line.clock}; placed by {line.method}, within {line.bound_text}"]
    if line.drift_ppm:
        words.append(f"drift {format_drift(line.drift_ppm)}")
    if line.matches:
        apart = "" if line.residual_ns is None else f", {format_time(line.residual_ns)} apart in the median"
        words.append(f"{line.matches} matches{apart}")
    if line.verdict not in (Verdict.OK, Verdict.ASSUMED):
        words.append("not aligned" if line.verdict == Verdict.SEPARATE else line.verdict)
    if line.note:
        words.append(line.note)
    words += [f"but {warning}" for warning in line.warnings]
    return "; ".join(words) + "."

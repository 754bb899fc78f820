"""Add the costs of layers to a trace: as args of their slices, as frames of call stacks, and as counters.

The numbers are those of the section on layers, where each slice is a layer of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from traceconv.answers.attribution import NONE
from traceconv.answers.layer_sums import Apart, Event, Layers, Sampled, interval_counts, nearest_above, slice_counts
from traceconv.answers.layers import (
    NO_LAYER,
    NOTHING,
    TAKEN,
    Calls,
    counted_samples,
    events_of,
    notes_of,
    notes_of_events,
    of_samples,
    ratios_of,
)
from traceconv.answers.owners import Owners
from traceconv.answers.slice_counts import Counts, counts_of, rows_of
from traceconv.answers.stated import by_stated_inputs
from traceconv.answers.steps import marked
from traceconv.answers.tables import SliceTable
from traceconv.io.shown import quantity
from traceconv.io.spill import Parts
from traceconv.model.arg_values import ABSENT, arg_values
from traceconv.model.args import with_more_args
from traceconv.model.counted import SLICES
from traceconv.model.inputs_of import inputs_of
from traceconv.model.ordering import chunks, distinct_values
from traceconv.model.times import format_short
from traceconv.model.trace import I32, I64, Counters, Frame, Trace, Track, TrackId, TrackKind, column_types
from traceconv.model.tracks import Tracks

#: The module of the frames for layers.
_MODULE = "layer"
_DIGITS = 9  # the decimals of counts that are not integers
_COUNTER_HELP = "of the innermost layer, from its start to its end; 0 where none runs. Its slices have it as an arg"


def attributed(trace: Trace, kept: Parts, *, counters: bool = False) -> Trace:
    """Return the trace with the costs of its layers; a note of their input has the costs outside of layers.

    Counts of slices are args already, and do not change; they are in the totals of the layers that launched them.

    Args:
        trace: on one clock, as `merge` makes it.
        kept: the store for the new args.
        counters: whether to draw the events of each layer as counters.
    """
    owners = Owners(by_stated_inputs(SliceTable(trace)))
    rows = owners.rows
    if not len(rows):
        trace.sources[-1].notes.append("--attribute adds nothing: no input has layers")
        return trace
    notes = trace.sources[inputs_of(trace, "slices")[rows[0]]].notes
    sums = _each(owners)
    sampled, counts, calls = sums.samples(), [*interval_counts(sums), *slice_counts(sums)], Calls(sums)
    if not (len(sampled.rows) or counts or len(calls.rows)):
        notes.append(f"--attribute adds nothing: {NOTHING}")
        return trace
    events = events_of(sums, sampled, counts, TAKEN)
    counted = counted_samples(sums, sampled, events)
    cells = of_samples(sums, counted) | calls.sums()
    for name, event in events.items():
        cells |= {name: event.shown(sums.own), f"{name}_total": event.shown(sums.total)}
    cells |= ratios_of(sums, events, cells)
    notes.append(f"{quantity(len(rows), SLICES)} got args with their samples, counts and primitives")
    notes += notes_of(sums, counted, cells, "uncertain_samples") + notes_of_events(events)
    if not any(cells.get("worker_samples", ())):
        cells.pop("worker_samples", None)
    outside = [
        f"{format_short(amount) if event.unit == 'ns' else round(amount, _DIGITS)} of {name}"
        for name, event in events.items()
        if (amount := cells[name][-1])
    ]
    notes += [f"outside of all layers: {', '.join(outside)}"] if outside else []
    trace = _with_frames(_with_args(trace, rows, cells, kept), sums, sampled)
    return _with_counters(trace, owners, events, cells) if counters else trace


def _each(owners: Owners) -> Layers:
    """Return the layers, each by itself, then the kernels and other slices with counts of their own."""
    is_layer = np.zeros(len(owners.table.trace.slices.ts), bool)
    is_layer[owners.rows] = True
    counts = {
        key: Counts(one.slices, amounts=one.amounts[: len(one.slices)], unit=one.unit)
        for key, one in counts_of(owners.table)[0].items()
        if one.slices and not np.any(is_layer[one.slices])
    }
    apart = rows_of(list(counts.values()))
    segment = owners.launched_in(apart) if counts else apart
    group = np.arange(len(owners.rows) + len(apart))
    inner = Apart(apart, group[len(owners.rows) :], segment)
    return Layers(owners, group[: len(owners.rows)], len(group), counts, inner)


# -- args -----------------------------------------------------------------------------------------------------------


def _with_args(trace: Trace, rows: I64, cells: dict[str, list[Any]], kept: Parts) -> Trace:
    """Return the trace with the cells as args of slices, without those that are None.

    A key that one of these slices has already is not replaced: the new one gets another name.
    """
    slices = trace.slices
    _, values = arg_values(trace.args, slices.args_at[rows], slices.args_len[rows], list(cells))
    taken = {key for key, *known in zip(cells, *values, strict=True) if any(one is not ABSENT for one in known)}
    named = {f"{key} (attributed)" if key in taken else key: column for key, column in cells.items()}
    return with_more_args(trace, rows.tolist(), _objects(named, len(rows)), kept)


def _objects(cells: dict[str, list[Any]], count: int) -> Iterator[bytes]:
    """Yield the JSON object of each row, without the cells that are None."""
    for rows in chunks(count):
        texts = [_members(key, column[rows]) for key, column in cells.items()]
        for members in zip(*texts, strict=True):
            yield b"{%s}" % "".join(members)[:-1].encode()


def _members(key: str, values: Sequence[Any]) -> list[str]:
    """Return members of JSON objects, each with a comma behind it; "" for None."""
    start, known = json.dumps(key), {None: ""}
    for one in set(values) - {None}:  # few are different
        rounded = round(one, _DIGITS) + 0.0 if isinstance(one, float) else one  # no -0.0
        known[one] = f"{start}:{rounded},"
    return [known[one] for one in values]


# -- call stacks ----------------------------------------------------------------------------------------------------


def _with_frames(trace: Trace, sums: Layers, sampled: Sampled) -> Trace:
    """Return the trace with the layers at each sample as its outermost frames, the outermost layer first.

    A slice of one iteration is a frame only where no layer ran inside it, so that a flame graph joins all iterations.
    Samples of threads without layers do not change.
    """
    owners, slices = sums.owners, trace.slices
    is_step = marked(owners.table)
    is_frame = np.zeros(len(slices.ts), bool)
    is_frame[owners.rows] = ~is_step[owners.rows]
    outer = np.full(len(slices.ts) + 1, NONE, np.int64)
    outer[owners.rows] = nearest_above(owners.table.nesting.parent, owners.rows, is_frame)
    layer = np.append(owners.timelines.rows, NONE)[sampled.segment]
    needed = np.zeros(len(slices.ts) + 1, bool)  # the last one is for no layer
    level = layer[sampled.line != NONE]
    while len(level := np.unique(level[~needed[level]])):
        needed[level] = True
        level = outer[level[level != NONE]]
        level = level[level != NONE]
    frames: dict[tuple[int, str], int] = {}
    of_layer = np.full(len(needed), NONE, np.int64)
    for row in np.flatnonzero(needed).tolist():  # an outer slice comes before those inside it
        name = trace.strings[slices.name[row]] if row < len(slices.ts) else NO_LAYER
        caller = int(of_layer[outer[row]]) if outer[row] != NONE else NONE
        of_layer[row] = frames.setdefault((caller, name), len(frames))
    callers = np.where(sampled.line != NONE, of_layer[layer], NONE)
    stack = trace.samples.stack.copy()
    with_layers, stack[sampled.rows] = _grafted(
        [Frame(name, _MODULE, caller) for caller, name in frames], trace.frames, callers, stack[sampled.rows]
    )
    return trace.with_tables(samples=replace(trace.samples, stack=stack), frames=with_layers)


def _grafted(
    outermost: list[Frame], frames: Sequence[Frame], callers: I64, stack: I32
) -> tuple[list[Frame], npt.NDArray[np.int32]]:
    """Return the frames and stacks of samples, with the outermost frames put below them.

    Args:
        outermost: the new outermost frames, with their parents.
        frames: the frames of the stacks.
        callers: for each sample the outermost frame that calls its stack; NONE for none.
        stack: for each sample its innermost frame; NONE for none.
    """
    parent = np.array([NONE, *(frame.parent for frame in frames)], np.int64) + 1
    size = np.int64(len(parent))
    wanted = (callers + 1) * size + stack + 1
    level = distinct_values(wanted)
    levels = [np.empty(0, np.int64)]
    while len(level := level[level % size > 0]):
        levels.append(level)
        caller, inner = np.divmod(level, size)
        level = distinct_values(caller * size + parent[inner])
    used = distinct_values(np.concatenate(levels))

    def number(key: I64) -> I64:
        """Return the new numbers of frames with their callers; the number of the caller for no frame."""
        caller, inner = np.divmod(key, size)
        return np.where(inner > 0, len(outermost) + np.searchsorted(used, key), caller - 1)

    caller, inner = np.divmod(used, size)
    above = number(caller * size + parent[inner])
    of_stacks = zip((inner - 1).tolist(), above.tolist(), strict=True)
    # Not `replace`: there may be a frame for each sample.
    grafted = [Frame((one := frames[at]).name, one.category, up, one.named) for at, up in of_stacks]
    return [*outermost, *grafted], number(wanted).astype(np.int32)


# -- counters -------------------------------------------------------------------------------------------------------


def _with_counters(trace: Trace, owners: Owners, events: dict[str, Event], cells: dict[str, list[Any]]) -> Trace:
    """Return the trace with a counter for each event, below each thread with layers that has counts of it."""
    lines, tracks = owners.timelines, Tracks(trace.tracks)
    columns: dict[str, list[npt.NDArray[Any]]] = {name: [getattr(trace.counters, name)] for name in Counters.__slots__}
    for name, event in events.items():
        counts = np.array(cells[name][: len(owners.rows)])
        of_row = np.zeros(len(trace.slices.ts) + 1, counts.dtype)
        of_row[owners.rows] = counts
        for line, thread in enumerate(owners.tracks):
            rows = lines.rows[lines.span(line)][1:]
            if not np.any(values := of_row[rows]):
                continue
            of_thread = trace.tracks[thread]
            tracks.append(
                Track(
                    TrackKind.COUNTER,
                    f"{name} by layer",
                    TrackId(thread),
                    unit=event.unit or "count",
                    description=f"{name} {_COUNTER_HELP}",
                    clock=of_thread.clock,
                    source=of_thread.source,
                )
            )
            whole = values.dtype == np.int64
            added = {
                "ts": lines.starts[lines.span(line)][1:],
                "track": np.full(len(rows), len(tracks) - 1),
                "value": values,
                "integer": values if whole else np.zeros(len(rows)),
                "is_integer": np.full(len(rows), whole),
                "origin": trace.slices.origin[rows],
            }
            for column, dtype in column_types(Counters).items():
                columns[column].append(added[column].astype(dtype))
    joined = Counters(**{name: np.concatenate(parts) for name, parts in columns.items()})
    return trace.with_tables(tracks=tracks, counters=joined)

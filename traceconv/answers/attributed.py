"""Add the costs of layers to a trace, as args, frames of call stacks and counters; and the section `stacks`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from traceconv.answers.attribution import NONE
from traceconv.answers.device_work import first_above
from traceconv.answers.layer_sums import (
    Apart,
    Counts,
    Event,
    Layers,
    Sampled,
    counts_of,
    interval_counts,
    rows_of,
    slice_counts,
)
from traceconv.answers.layers import (
    NO_LAYER,
    NOTHING,
    TAKEN,
    Calls,
    Costs,
    called,
    columns_of,
    counted_samples,
    events_of,
    main_event,
    notes_of,
    notes_of_events,
    of_samples,
    ratios_of,
)
from traceconv.answers.owners import Owners
from traceconv.answers.section import Cell, Column, Section, Unit
from traceconv.answers.slice_tables import SliceTable, table_by_stated_inputs
from traceconv.answers.steps import is_step
from traceconv.errors import UsageError
from traceconv.io.shown import quantity
from traceconv.io.spill import Parts
from traceconv.model.args import ABSENT, arg_values, with_more_args
from traceconv.model.columns import I32, I64, chunks, distinct_values
from traceconv.model.diagnostics import SAMPLES, SLICES
from traceconv.model.numbers import format_short
from traceconv.model.trace import Counters, Frame, Trace, column_types
from traceconv.model.trace_inputs import inputs_of
from traceconv.model.track_table import Track, TrackId, TrackKind, Tracks

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
    owners = Owners(table_by_stated_inputs(SliceTable(trace)))
    rows = owners.rows
    if not len(rows):
        trace.sources[-1].notes.append("--attribute adds nothing: no input has layers")
        return trace
    notes = trace.sources[inputs_of(trace, "slices")[rows[0]]].notes
    sums = each(owners)
    sampled, counts, calls = sums.samples(), [*interval_counts(sums), *slice_counts(sums)], Calls(sums)
    if not (len(sampled.rows) or counts or len(calls.rows)):
        notes.append(f"--attribute adds nothing: {NOTHING}")
        return trace
    events = events_of(sums, sampled, counts, TAKEN)
    counted = counted_samples(sums, sampled, events)
    cells = of_samples(sums, counted) | calls.sums()
    for name, event in events.items():
        cells |= {name: event.shown(sums.self_sums), f"{name}_total": event.shown(sums.totals)}
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
    trace = with_layer_frames(_with_args(trace, rows, cells, kept), sums, sampled)
    return _with_counters(trace, owners, events, cells) if counters else trace


def each(owners: Owners) -> Layers:
    """Return the layers, each by itself, then the kernels and other slices with counts of their own."""
    is_layer = np.zeros(len(owners.table.trace.slices.ts), bool)
    is_layer[owners.rows] = True
    counts = {
        key: Counts(of_event.slices, amounts=of_event.amounts[: len(of_event.slices)], unit=of_event.unit)
        for key, of_event in counts_of(owners.table)[0].items()
        if of_event.slices and not np.any(is_layer[of_event.slices])
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
    taken = {key for key, *known in zip(cells, *values, strict=True) if any(value is not ABSENT for value in known)}
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
    for value in set(values) - {None}:  # few are different
        rounded = round(value, _DIGITS) + 0.0 if isinstance(value, float) else value  # no -0.0
        known[value] = f"{start}:{rounded},"
    return [known[value] for value in values]


# -- call stacks ----------------------------------------------------------------------------------------------------


def with_layer_frames(trace: Trace, sums: Layers, sampled: Sampled) -> Trace:
    """Return the trace with the layers at each sample as its outermost frames, the outermost layer first.

    A slice of one iteration is a frame only where no layer ran inside it, so that a flame graph joins all iterations.
    Samples of threads without layers do not change.
    """
    owners, slices = sums.owners, trace.slices
    steps = is_step(owners.table)
    is_frame = np.zeros(len(slices.ts), bool)
    is_frame[owners.rows] = ~steps[owners.rows]
    outer = np.full(len(slices.ts) + 1, NONE, np.int64)
    outer[owners.rows] = first_above(owners.table, owners.table.nesting.parent[owners.rows], is_frame)
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
    """Return the frames and stacks of samples, with the outermost frames put below them."""
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
    grafted = [Frame((frame := frames[at]).name, frame.category, up, frame.named) for at, up in of_stacks]
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


# -- The section `stacks`: the call tree of the samples of one layer -------------------------------------------------

_COLUMNS = (
    Column("depth", "depth", Unit.COUNT, detail=True),
    Column("frame", "frame", Unit.TEXT, detail=True),
    Column("file", "file", Unit.TEXT, detail=True),
    Column("samples", "samples", Unit.COUNT),
    Column("self_samples", "self", Unit.COUNT),
    Column("share", "of the layer", Unit.SHARE),
)
_TREE = Column("tree", "tree", Unit.TEXT)
_NO_STACK = "(no call stack)"
_SHOWN_NAMES = 5


def stacks(costs: Costs, layer: str) -> Section:
    """Return a row for each frame, below its caller, of the samples while a layer ran; the most CPU first.

    Unknown functions of one file below one caller are one row.

    Args:
        costs: the layers.
        layer: the layer, by its text in the first column of `layers`.

    Raises:
        UsageError: there is no such layer.
    """
    table, sums, names = costs.table, costs.sums, costs.names
    groups = [at for at, texts in enumerate(names) if texts[0] == layer]
    if not groups:
        known = ", ".join(dict.fromkeys(texts[0] for texts in names[:_SHOWN_NAMES]))
        raise UsageError(f"--stacks: there is no layer {layer!r}", hint=f"layers are, among others: {known}")
    sampled, samples = costs.sampled, table.trace.samples
    taken = [column.name for column in (*_COLUMNS, _TREE)]
    events = events_of(sums, sampled, [], taken)
    rows = sampled.rows[sums.during(groups)[sampled.segment]]
    kinds, weights = samples.name[rows], samples.weight[rows]
    counted = np.isin(rows, counted_samples(sums, sampled, events).rows)
    amounts = [counted.astype(np.int64), *(np.where(kinds == event.number, weights, 0) for event in events.values())]
    tree = _Tree(table.trace.frames, samples.stack[rows], amounts)
    main = 1 + list(events).index(main_event(events)) if events else 0
    main = main if np.any(amounts[main]) else 0
    shown = [columns_of(name, event)[0] for name, event in events.items()] if len(events) > 1 else []
    section = Section("stacks", (*_COLUMNS, *shown, _TREE))
    if not len(rows):
        section.notes.append(f"no sample while {layer} ran" if len(samples.ts) else "no input has samples")
        return section
    everything = float(np.sum(amounts[main], dtype=np.float64))
    section.rows = tree.rows(main, everything, len(shown))
    ran = f"{quantity(int(np.count_nonzero(counted)), SAMPLES)} while {layer} ran, with all inside it"
    of_what = f", {list(events)[main - 1]}" if main and shown else ""
    section.notes.append(f"{ran}; of the layer: the share of them{of_what}; self: samples in the function itself")
    return section


class _Tree:
    """Call stacks as a tree, and what was sampled in each node with all that it called."""

    def __init__(self, frames: Sequence[Frame], stack: I64 | npt.NDArray[np.int32], amounts: list[I64]) -> None:
        numbers, at = np.unique(stack, return_inverse=True)
        known: dict[tuple[int, str, str], int] = {}
        of_frame = {-1: -1}
        for number in self._with_callers(frames, numbers.tolist()):
            frame = frames[number]
            key = of_frame[frame.parent], called(frame), frame.category
            of_frame[number] = known.setdefault(key, len(known))
        #: Of each node its caller, what it is called, and its file.
        self._nodes = list(known)
        node = np.array([of_frame[number] for number in numbers.tolist()], np.int64)[at.reshape(-1)]
        self_amounts = np.zeros((len(self._nodes) + 1, len(amounts)), object)
        for place, column in enumerate(amounts):
            np.add.at(self_amounts[:, place], node, column.astype(object))
        #: The amounts of each node itself. The last row is of samples without a call stack.
        self._self_amounts: list[list[Any]] = self_amounts.tolist()
        self._whole = [list(row) for row in self._self_amounts]
        self._callees: dict[int, list[int]] = {}
        for number in range(len(self._nodes) - 1, -1, -1):  # a caller has a smaller number than what it calls
            caller = self._nodes[number][0]
            self._callees.setdefault(caller, []).append(number)
            if caller >= 0:
                self._whole[caller] = [
                    amount + more for amount, more in zip(self._whole[caller], self._whole[number], strict=True)
                ]

    @staticmethod
    def _with_callers(frames: Sequence[Frame], numbers: Sequence[int]) -> list[int]:
        """Return frames and all their callers, each once, callers first."""
        callers: set[int] = set()
        for number in numbers:
            while number >= 0 and number not in callers:
                callers.add(number)
                number = frames[number].parent
        return sorted(callers)

    def rows(self, main: int, everything: float, events: int) -> list[tuple[Cell, ...]]:
        """Return the rows of the table, each below its caller; those with most of the main amount come first."""

        def row(depth: int, name: str, file: str, number: int) -> tuple[Cell, ...]:
            whole = self._whole[number]
            amounts = [whole[0], self._self_amounts[number][0], whole[main] / everything, *whole[1 : 1 + events]]
            return depth, name, file, *amounts, "  " * depth + name

        def in_order(caller: int) -> list[int]:
            return sorted(
                self._callees.get(caller, []),
                key=lambda callee: (self._whole[callee][main], self._whole[callee][0], -callee),
            )

        rows = []
        todo = [(0, number) for number in in_order(-1)]
        while todo:
            depth, number = todo.pop()
            rows.append(row(depth, *self._nodes[number][1:], number))
            todo += [(depth + 1, callee) for callee in in_order(number)]
        return [*rows, row(0, _NO_STACK, "", -1)] if self._self_amounts[-1][0] else rows

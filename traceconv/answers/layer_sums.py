"""Attribute samples, counts and library calls to layers, and collect the hardware counts of single slices."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from enum import Enum, auto
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from traceconv.answers.attribution import BEHIND, NONE, distinct, expanded, grouped
from traceconv.answers.device_work import first_above
from traceconv.answers.owners import Owners, Pool
from traceconv.answers.slice_tables import Rows, SliceTable, interval_counters
from traceconv.model.columns import I32, I64
from traceconv.model.marks import CountMarks
from traceconv.model.numbers import decode_json
from traceconv.model.trace import Instants, Slices
from traceconv.model.trace_inputs import inputs_of

# -- Collect hardware counts of single slices: of layers, of kernels, and in rows of tables without times ------------

NO_CALL = -1
#: The units of times that inputs count, in ns.
UNITS_NS = {"ns": 1, "msec": 1_000_000}


class Counts(Struct):
    """The counts of one event in one input.

    Attributes:
        slices: the rows of the slices that have a count.
        amounts: the counts of the slices, then those of the rows of tables.
        layers: the name of the layer of each row of tables.
        calls: the call of each of these rows; NO_CALL for a sum of several.
        unit: the unit of the amounts; "" for plain counts.
    """

    slices: list[int] = []
    layers: list[str] = []
    calls: list[int] = []
    amounts: list[float] = []
    unit: str = ""

    def values(self) -> npt.NDArray[Any]:
        """Return the amounts, as integers if all are."""
        whole = all(float(amount).is_integer() for amount in self.amounts)
        return np.array(self.amounts, np.int64 if whole else np.float64)


class _Found(NamedTuple):
    """A count in the args of a row."""

    row: int
    name: str
    amount: float
    unit: str


def counts_of(table: SliceTable) -> tuple[dict[tuple[str, int], Counts], dict[int, set[str]]]:
    """Return the counts of slices and rows of tables, and the names of what was measured, but is no count.

    The counts are by event and number of the input, the names by that number.
    """
    trace = table.trace
    counts: dict[tuple[str, int], Counts] = {}
    others: dict[int, set[str]] = {}
    for number, source in enumerate(trace.sources):
        marks = source.marks.counts
        if marks is None:
            continue
        of_input = table.of_source(number)
        if source.join_category:  # the rows were moved into slices of another input
            of_input |= table.of_categories((source.join_category,))
        counted = (of_input & table.of_categories(marks.categories))[table.recorded]
        no_counts = others.setdefault(number, set())
        slices = [] if marks.layer else _counted(table, trace.slices, table.recorded[counted], marks, no_counts)
        for row, event, amount, unit in slices:
            of_event = counts.setdefault((event, number), Counts(unit=unit))
            of_event.slices.append(row)
            of_event.amounts.append(amount)
        categories = [at for at, text in enumerate(trace.strings) if text in marks.categories]
        instants = trace.instants
        rows = np.flatnonzero((inputs_of(trace, "instants") == number) & np.isin(instants.category, categories))
        for row, layer, amount, unit in _counted(table, instants, rows, marks, no_counts):
            name = trace.strings[instants.name[row]]
            event, layer = (name, layer) if marks.layer else (layer, name)
            of_event = counts.setdefault((event, number), Counts(unit=unit))
            of_event.layers.append(layer)
            of_event.calls.append(row if marks.rows_are_calls else NO_CALL)
            of_event.amounts.append(amount)
    return counts, others


def _counted(
    table: SliceTable, events: Slices | Instants, rows: Rows, marks: CountMarks, others: set[str]
) -> list[_Found]:
    """Return each count in the args of rows, by event (or layer, in tables of layers); times in ns.

    Negative counts mark values that the tool could not read. What is measured, but no count, is added to `others`.
    """
    is_count, is_other = re.compile(marks.names).fullmatch, re.compile(marks.others or "(?!)").fullmatch
    known: dict[str, bool] = {}
    counted: list[_Found] = []
    for row in rows[events.args_len[rows] > 0].tolist():
        args = decode_json(table.trace.args.view(int(events.args_at[row]), int(events.args_len[row])))
        layer = args.get(marks.layer)
        members = args.get(marks.inside) if marks.inside else args
        for name, value in members.items() if isinstance(members, dict) else ():
            if name not in known:
                known[name] = is_count(name) is not None
                if not known[name] and is_other(name) and _is_amount(value):
                    others.add(name)
            if known[name] and (not marks.layer or isinstance(layer, str)):
                amount, unit = _amount(value, marks)
                if _is_amount(amount):
                    counted.append(_Found(row, str(layer) if marks.layer else name, amount, unit))
    return counted


def _amount(value: Any, marks: CountMarks) -> tuple[Any, str]:
    """Return the amount and the unit of a count."""
    if not marks.value:
        return value, ""
    if not isinstance(value, dict):
        return None, ""
    amount: Any = value.get(marks.value)
    unit = str(value.get(marks.unit, ""))
    if unit in UNITS_NS and _is_amount(amount):
        return round(amount * UNITS_NS[unit]), "ns"
    return amount, unit


def _is_amount(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < 1 << 62 and math.isfinite(value)


def rows_of(counts: Sequence[Counts]) -> Rows:
    """Return the rows of all slices that have counts, sorted."""
    rows: Rows = np.unique(np.array([row for of_event in counts for row in of_event.slices], np.int64))
    return rows


# -- Attribute samples, counts of intervals and library calls to layers, as sums over segments of timelines ----------


class Sampled(NamedTuple):
    """Samples, sorted by segment.

    Attributes:
        rows: the rows of the samples.
        segment: the segment of each; the number of segments for those without one.
        line: the timeline of each, NONE for those without one.
        worker: whether its thread has no layers of its own.
        shared: whether it is of a worker, taken while several threads ran layers.
    """

    rows: Rows
    segment: I64
    line: I64
    worker: npt.NDArray[np.bool_]
    shared: npt.NDArray[np.bool_]

    def where(self, chosen: npt.NDArray[np.bool_]) -> Sampled:
        """Return some of the samples."""
        rows, segment, line, worker, shared = self
        return Sampled(rows[chosen], segment[chosen], line[chosen], worker[chosen], shared[chosen])


class Apart(NamedTuple):
    """Slices with counts of their own on no timeline: device work, slices without duration, rows of tables.

    Attributes:
        rows: the rows of the slices; rows of tables follow.
        group: the row of the result for each.
        segment: the segment in which the slice was launched or lies; `Layers.nowhere` for none.
    """

    rows: Rows
    group: I64
    segment: I64


class Kind(Enum):
    """How an event was counted."""

    #: Samples with periods.
    PERIODS = auto()
    #: Samples without periods: each counts as one event.
    SAMPLES = auto()
    INTERVALS = auto()
    SLICES = auto()


class Event(NamedTuple):
    """The counts of an event by segment.

    Attributes:
        name: the event, as the inputs name it.
        sources: the numbers of the inputs that counted it.
        kind: how they counted it.
        values: the sums.
        counts: the number of counts in each; None if everything that ran was counted.
        unit: the unit of the values; "" for plain counts.
        number: the index of the name of the samples in the strings; None for counts.
    """

    name: str
    sources: tuple[int, ...]
    kind: Kind
    values: npt.NDArray[Any]
    counts: npt.NDArray[Any] | None = None
    unit: str = ""
    number: int | None = None

    def shown(self, sums: Callable[[npt.NDArray[Any]], list[Any]]) -> list[Any]:
        """Return the sums by row, None without any count; `sums` is `Layers.self_sums` or `Layers.totals`."""
        if self.counts is None:
            return sums(self.values)
        return [value if count else None for value, count in zip(sums(self.values), sums(self.counts), strict=True)]


class Layers(Struct, dict=True):
    """The costs of the layers of a trace, by segment and by layer.

    Costs outside of timelines have a segment of their own.

    Attributes:
        owners: the layers, and the rules of attribution.
        group: the row of the result for each layer, in the order of `owners.rows`.
        groups: the number of rows; costs outside of layers have this number.
        counts: the counts of slices.
        apart: those of slices on no timeline.
    """

    owners: Owners
    group: I64
    groups: int
    counts: dict[tuple[str, int], Counts]
    apart: Apart

    def __post_init__(self) -> None:
        lines, slices = self.owners.timelines, self.owners.table.trace.slices
        of_row = np.full(len(slices.ts) + 1, self.groups, np.int64)
        of_row[self.owners.rows] = self.group
        #: The layer of each segment; the last segment is for costs outside of layers.
        self.of_segment = np.concatenate([of_row[lines.rows], [self.groups], self.apart.group])
        starts = slices.ts[self.owners.rows]
        low = lines.locate(self.owners.line_of_layer, starts)
        high = lines.locate(self.owners.line_of_layer, starts + slices.dur[self.owners.rows])
        inside = distinct(self.group, low, high)
        order = np.argsort(self.apart.segment, kind="stable")
        around, inner = expanded(*(np.searchsorted(self.apart.segment[order], edge) for edge in inside[1:]))
        apart = self.nowhere + 1 + np.append(order[inner], np.arange(len(order)))
        of_apart = distinct(np.append(inside[0][around], self.apart.group), apart, apart + 1)
        #: The rows of the result, and the ranges of segments while they ran.
        self._inside = [np.concatenate(columns) for columns in zip(inside, of_apart, strict=True)]

    @property
    def nowhere(self) -> int:
        """The segment for costs outside of layers."""
        return len(self.owners.timelines.rows)

    def outside(self) -> I64:
        """Return the number of counts in each segment, if no layer has any."""
        counts = np.zeros(len(self.of_segment), np.int64)
        counts[self.nowhere] = 1
        return counts

    def self_sums(self, values: npt.NDArray[Any]) -> list[Any]:
        """Return the sums over the segments of each layer itself, and of no layer."""
        sums = np.zeros(self.groups + 1, values.dtype)
        np.add.at(sums, self.of_segment, values)
        whole: list[Any] = sums.tolist()
        return whole

    def totals(self, values: npt.NDArray[Any]) -> list[Any]:
        """Return the sums over all segments while each layer ran, and of no layer."""
        sums = np.zeros(self.groups + 1, values.dtype)
        group, low, high = self._inside
        before = np.append(np.zeros(1, values.dtype), np.cumsum(values))
        np.add.at(sums, group, before[high] - before[low])
        np.add.at(sums, self.groups, np.sum(values[self.of_segment == self.groups]))
        whole: list[Any] = sums.tolist()
        return whole

    def during(self, groups: Sequence[int]) -> npt.NDArray[np.bool_]:
        """Return a mask of the segments while one of some layers ran; for no layer, of those while none ran."""
        group, low, high = self._inside
        chosen = np.isin(group, groups)
        edges = np.zeros(len(self.of_segment) + 1, np.int64)
        np.add.at(edges, low[chosen], 1)
        np.add.at(edges, high[chosen], -1)
        of_none = (self.of_segment == self.groups) & (self.groups in groups)
        running: npt.NDArray[np.bool_] = (np.cumsum(edges)[:-1] > 0) | of_none
        return running

    def by_segment(self, segments: I64, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the sum of the values in each segment; as doubles if integers could exceed 63 bits."""
        exact = values.dtype == np.int64 and np.sum(np.abs(values.astype(np.float64))) < 1 << 62
        sums = np.zeros(len(self.of_segment), np.int64 if exact else np.float64)
        np.add.at(sums, segments, values)
        return sums

    # -- samples ----------------------------------------------------------------------------------------------------

    def samples(self) -> Sampled:
        """Return the samples with their segments, sorted by timeline and time."""
        samples = self.owners.table.trace.samples
        segment, line, worker, shared = self.placed(samples.track, samples.ts, self.input_of_sample)
        order = np.lexsort((samples.ts, line))
        return Sampled(order, segment[order], line[order], worker[order], shared[order])

    def placed(
        self, tracks: I32, times: I64, inputs: I32
    ) -> tuple[I64, I64, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Return segment and timeline of events, and whether the timeline is of another thread.

        The last result says at which of the latter several threads ran layers.

        Args:
            tracks: their tracks.
            times: their times, ns.
            inputs: the inputs that they come from.
        """
        lines = self.owners.timelines
        line = np.full(len(times), NONE, np.int64)
        worker, shared = np.zeros((2, len(times)), bool)
        pools: dict[Pool, list[I64]] = {}
        for track, rows in grouped(tracks.astype(np.int64)):
            for source, of_input in grouped(inputs[rows].astype(np.int64)):
                pool, is_own = self.owners.pool(track, source)
                if is_own and pool:
                    line[rows[of_input]] = pool[0]
                elif pool:
                    pools.setdefault(pool, []).append(rows[of_input])
        for pool, parts in pools.items():
            rows = np.concatenate(parts)
            rows = rows[np.argsort(times[rows], kind="stable")]
            line[rows], shared[rows] = lines.chosen(pool, times[rows])
            worker[rows] = True
        segment = np.full(len(times), self.nowhere, np.int64)
        known = line != NONE
        segment[known] = lines.locate(line[known], times[known])
        return segment, line, worker, shared

    @cached_property
    def input_of_sample(self) -> I32:
        """Return the input of each sample."""
        return inputs_of(self.owners.table.trace, "samples")

    def _possible(self, name: int, track: int, source: int) -> list[int]:
        """Return the inputs that samples of an event on a track, which count for an input, can be from."""
        trace = self.owners.table.trace
        known = [number for number, info in enumerate(trace.sources) if trace.strings[name] in info.sampled]
        on_track = [number for _, number in trace.tracks[track].inputs_over_time("samples")]
        return known if known and source not in on_track else [source]

    def uncertain(self, sampled: Sampled) -> tuple[list[int], list[int]] | None:
        """Return the uncertainty of the samples of each layer, itself and with all inside; None if not known.

        Samples nearer to an edge of the layer than the bound of the clock may be on the other side of it. Those inside
        the layer and those outside are counted; the larger number is the uncertainty.
        """
        trace, owners = self.owners.table.trace, self.owners
        lines, slices = owners.timelines, trace.slices
        of_line = dict(grouped(owners.line_of_layer))
        columns = (column[sampled.rows] for column in (trace.samples.name, trace.samples.track, self.input_of_sample))
        shape = len(trace.strings), len(trace.tracks), len(trace.sources)
        kinds = np.ravel_multi_index(tuple(columns), shape)
        different = np.unique(kinds)
        parts = np.unravel_index(different, shape)
        sources = {
            kind: self._possible(*map(int, each)) for kind, *each in zip(different.tolist(), *parts, strict=True)
        }
        wrong = np.zeros((2, 2, self.groups + 1), np.int64)
        for line, rows in grouped(sampled.line):
            span = lines.span(line)
            group = self.of_segment[span]
            opens = np.append(True, np.diff(group) != 0)
            starts = lines.starts[span][opens]
            innermost = group[opens], starts, np.append(starts[1:], BEHIND)
            numbers = of_line.get(line, np.empty(0, np.int64))
            of_layers = owners.rows[numbers]
            whole = self.group[numbers], slices.ts[of_layers], owners.table.ends(of_layers)
            bounds = {kind: owners.bound(sources[kind], line) for kind in np.unique(kinds[rows]).tolist()}
            for bound in set(bounds.values()):
                if bound is None:
                    return None
                of_bound = np.isin(kinds[rows], [kind for kind, other in bounds.items() if other == bound])
                times = trace.samples.ts[sampled.rows[rows[of_bound]]]
                for which, (codes, since, until) in enumerate((innermost, whole)):
                    sure, counted, possible = (
                        self._within(times, codes, since + by, until - by) for by in (bound, 0, -bound)
                    )
                    wrong[which] += counted - sure, possible - counted
        of_own, of_all = np.max(wrong, axis=1).tolist()
        return of_own, of_all[:-1] + of_own[-1:]

    def _within(self, times: I64, group: I64, starts: I64, ends: I64) -> I64:
        """Return the number of sorted times in the intervals of each layer."""
        counts = np.zeros(self.groups + 1, np.int64)
        group, low, high = distinct(group, np.searchsorted(times, starts), np.searchsorted(times, ends))
        np.add.at(counts, group, high - low)
        return counts


# -- counts --------------------------------------------------------------------------------------------------------


def interval_counts(layers: Layers) -> list[Event]:
    """Return the counts of intervals, one for each event and input; those that no layer can have are outside of all."""
    trace = layers.owners.table.trace
    counters = trace.counters
    events: dict[tuple[str, int], Event] = {}
    placed: set[tuple[str, int]] = set()
    wanted = set(interval_counters(trace))
    for track, rows in grouped(counters.track.astype(np.int64)):
        if track not in wanted:
            continue
        counter = trace.tracks[track]
        rows = rows[np.argsort(counters.ts[rows], kind="stable")]
        whole = bool(np.all(counters.is_integer[rows] == 1))
        counts = counters.integer[rows] if whole else counters.value[rows]
        unit = "" if counter.unit == "count" else counter.unit
        if unit in UNITS_NS:
            counts, unit = _in_ns(counts, UNITS_NS[unit]), "ns"
        pool, _ = layers.owners.counted(track)
        values = _divided(layers, pool, counters.ts[rows], counts)
        key = counter.name, counter.source
        values = events[key].values + values if key in events else values
        placed.update([key] if pool else [])
        counted = None if key in placed else layers.outside()
        events[key] = Event(counter.name, (counter.source,), Kind.INTERVALS, values, counted, unit)
    return list(events.values())


def _in_ns(times: npt.NDArray[Any], unit: int) -> npt.NDArray[Any]:
    """Return times in ns: whole ones, or doubles if they could exceed 63 bits; `unit` is theirs, in ns."""
    scaled: npt.NDArray[Any] = times * float(unit)
    if not np.all(np.abs(scaled) < 1 << 62):
        return scaled
    return times * unit if times.dtype == np.int64 else np.rint(scaled).astype(np.int64)


def slice_counts(layers: Layers) -> list[Event]:
    """Return the counts of slices, one for each event and input.

    A count of a slice includes those of the slices inside it.
    """
    table = layers.owners.table
    slices = table.trace.slices
    lines = layers.owners.timelines
    events: list[Event] = []
    # A layer that is filled by others has no segment: its own count is put at its start.
    segment = np.full(len(slices.ts) + 1, layers.nowhere, np.int64)
    segment[layers.owners.rows] = lines.locate(layers.owners.line_of_layer, slices.ts[layers.owners.rows])
    segment[lines.rows[::-1]] = np.arange(len(lines.rows))[::-1]
    segment[layers.apart.rows] = layers.nowhere + 1 + np.arange(len(layers.apart.rows))
    in_table = layers.nowhere + 1 + len(layers.apart.rows)
    for (name, source), of_event in layers.counts.items():
        counts, rows = of_event.values(), np.array(of_event.slices, np.int64)
        self_counts = np.zeros(len(slices.ts) + 1, counts.dtype)
        self_counts[rows] = counts[: len(rows)]
        has_count = np.zeros(len(slices.ts), bool)
        has_count[rows] = True
        outer = first_above(table, table.nesting.parent[rows], has_count)
        np.subtract.at(self_counts, outer[outer != NONE], counts[: len(rows)][outer != NONE])
        of_tables = in_table + np.arange(len(of_event.layers))
        in_table += len(of_event.layers)
        segments, amounts = (
            np.concatenate([segment[rows], of_tables]),
            np.concatenate([self_counts[rows], counts[len(rows) :]]),
        )
        ones = np.ones(len(segments), np.int64)
        sums, number = layers.by_segment(segments, amounts), layers.by_segment(segments, ones)
        events.append(Event(name, (source,), Kind.SLICES, sums, number, of_event.unit))
    return events


def _divided(layers: Layers, pool: Pool, times: I64, counts: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Divide counts, each up to the next time, among the segments that ran; integers stay integers.

    Their sum is kept. Counts without duration belong to no layer.
    """
    lasting = np.append(np.diff(times) > 0, False) & bool(pool)
    sums = layers.by_segment(np.full(int(np.sum(~lasting)), layers.nowhere), counts[~lasting])
    starts, counts = times[lasting], counts[lasting]
    if not len(starts):
        return sums
    interval, segment, share, outside = layers.owners.timelines.divided(pool, starts, np.append(times, 0)[1:][lasting])
    rounded = np.rint if counts.dtype == np.int64 else np.asarray
    some = np.bincount(interval, minlength=len(starts)) > 0
    of_none = np.where(some, rounded(counts * outside).astype(counts.dtype), counts)
    first = np.append(True, np.diff(interval) != 0)[: len(interval)]
    so_far = np.cumsum(share)
    before = (so_far - share)[first][np.cumsum(first) - 1]
    until = rounded(counts[interval] * np.minimum(outside[interval] + (so_far - before), 1)).astype(counts.dtype)
    last = np.append(first[1:], True)[: len(first)]
    until = np.where(last, counts[interval], until)
    sums += layers.by_segment(segment, until - np.where(first, of_none[interval], np.append(until[:1], until)[:-1]))
    sums[layers.nowhere] += np.sum(of_none)
    return sums

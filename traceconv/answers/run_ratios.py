"""The table `run_ratios`: what counts of a whole run say, whether or not they belong to layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from traceconv.answers.layer_sums import Event, Kind
from traceconv.answers.layers import CYCLES, INSTRUCTIONS, MISS, Costs, parts_of
from traceconv.answers.section import Column, Section, Unit
from traceconv.answers.slice_tables import SliceTable, interval_counters, union

_COLUMNS = (
    Column("name", "ratio", Unit.TEXT),
    Column("value", "value", Unit.RATE),
    Column("formula", "formula", Unit.TEXT, whole=True),
    Column("above", "above", Unit.RATE, detail=True),
    Column("below", "below", Unit.RATE, detail=True),
    Column("counted", "counted", Unit.TEXT, detail=True),
    Column("input", "input", Unit.TEXT, spare=True),
)
_CLOCKS = ("task-clock", "cpu-clock")
_SECOND_NS = 10**9


_CPUS, _IPC, _GHZ, _MISSES, _PER_1000 = (
    "CPUs used",
    "instructions per cycle",
    "GHz",
    "miss rate",
    "per 1000 instructions",
)
_PER_SECOND, _PER_CPU_SECOND = "per second", "per CPU second"
_ORDER = (_CPUS, _IPC, _GHZ, _MISSES, _PER_1000, _PER_SECOND, _PER_CPU_SECOND)


class _Ratio(NamedTuple):
    """A ratio: its name, the two counts by name, their amounts, and by how much their quotient is multiplied."""

    name: str
    formula: str
    above: float
    below: float
    scale: float = 1


def run_ratios(costs: Costs) -> Section:
    """Return the ratios of all that each input of counts of intervals, or of whole runs, counted.

    A note says for each input why its counts do not belong to layers, if they do not.
    """
    section = Section("run_ratios", _COLUMNS)
    trace = costs.table.trace
    inputs = [number for number, source in enumerate(trace.sources) if source.marks.interval_counts]
    events = costs.events if inputs else []
    for number in inputs:
        name = trace.sources[number].name
        for kind, counted in ((Kind.INTERVALS, "intervals"), (Kind.SLICES, "whole run")):
            of_kind = {event.name: event for event in events if event.sources == (number,) and event.kind is kind}
            times = {event: _time(costs.table, number, count) for event, count in of_kind.items()}
            for ratio in sorted(_ratios(of_kind, times), key=lambda ratio: _ORDER.index(ratio.name)):
                value = ratio.scale * ratio.above / ratio.below
                section.rows.append((ratio.name, value, ratio.formula, ratio.above, ratio.below, counted, name))
            if of_kind:
                section.notes += [f"{name}: not per layer: {why}" for why in _why_not_by_layer(costs, number, kind)]
            if of_kind and not any(times.values()):
                section.notes.append(f"{name}: does not state how long it ran: how many CPUs it used is not known")
    section.legend.append("CPUs used: CPU time / time of the run; of a whole system (-a), idle CPUs count as used")
    return section


def _time(table: SliceTable, number: int, event: Event) -> int:
    """Return how long an input counted an event, ns; 0 if it does not state it."""
    trace = table.trace
    if event.kind is Kind.INTERVALS:
        tracks = [at for at in _tracks(table, number) if trace.tracks[at].name == event.name]
        times = [trace.counters.ts[trace.counters.track == track] for track in tracks]
        spans = np.array([(np.min(ts), np.max(ts)) for ts in times if len(ts)], np.int64).reshape(-1, 2)
        return union(spans[:, 0], spans[:, 1]).length
    marks, rows = trace.sources[number].marks.counts, table.rows_of(number)
    rows = rows[table.of_categories(marks.categories if marks else (), rows)]
    return table.busy(rows).length if event.counts is not None and np.sum(event.counts) == len(rows) else 0


def _tracks(table: SliceTable, number: int) -> list[int]:
    """Return the counters of intervals of an input."""
    return [at for at in interval_counters(table.trace) if table.trace.tracks[at].source == number]


def _ratios(events: Mapping[str, Event], times: Mapping[str, int]) -> Iterator[_Ratio]:
    """Yield the ratios of the events of one input whose divisor is not 0, given the time of each, ns."""
    totals = {name: float(np.sum(event.values)) for name, event in events.items()}
    parts = {name: parts_of(name) for name in events}
    of_unknown_unit = {name for name, (event, _) in parts.items() if event in _CLOCKS and events[name].unit != "ns"}
    cpu = next((name for name in _CLOCKS if name in events.keys() - of_unknown_unit), "")
    for name, (event, how) in parts.items():
        amount, time, plain = totals[name], times[name], not events[name].unit
        others = {other: full for full, (other, part) in parts.items() if part == how}
        if event in _CLOCKS and name not in of_unknown_unit and time:
            yield _Ratio(_CPUS, f"{name} / time", amount, time)
        for below, ratio, scale in _pairs(event, others):
            if totals[below] and below not in of_unknown_unit and _as_often(events[name], events[below]):
                yield _Ratio(ratio, f"{name} / {below}", amount, totals[below], scale)
        if plain and time:
            yield _Ratio(_PER_SECOND, f"{name} / time", amount, time, _SECOND_NS)
        elif plain and cpu and totals[cpu] and _as_often(events[name], events[cpu]):
            yield _Ratio(_PER_CPU_SECOND, f"{name} / {cpu}", amount, totals[cpu], _SECOND_NS)


def _pairs(event: str, others: Mapping[str, str]) -> Iterator[tuple[str, str, float]]:
    """Yield the events by which an event is divided, of those of the same part of the CPU, with name and scale."""
    kinds = []
    if event in INSTRUCTIONS:
        kinds = [(cycles, _IPC, 1) for cycles in CYCLES]
    elif event in CYCLES:
        kinds = [(_CLOCKS[0], _GHZ, 1)]
    elif MISS.fullmatch(event):
        base = event.removesuffix("-misses")
        kinds = [(f"{base}{end}", _MISSES, 1) for end in ("s", "es", "-references")]
        kinds += [(instructions, _PER_1000, 1000) for instructions in INSTRUCTIONS]
    return ((others[below], ratio, scale) for below, ratio, scale in kinds if below in others)


def _as_often(event: Event, other: Event) -> bool:
    """Return whether as many slices have one count as the other."""
    return event.counts is None or other.counts is None or np.sum(event.counts) == np.sum(other.counts)


def _why_not_by_layer(costs: Costs, number: int, kind: Kind) -> list[str]:
    """Return why the counts of an input belong to no layer; nothing if they do."""
    owners = costs.sums.owners
    if kind is Kind.SLICES:
        return ["one count for the whole run; record intervals (-I)"]
    if not len(owners.rows):
        return ["no input has layers"]
    if any(owners.counted(track)[0] for track in _tracks(costs.table, number)):
        return []
    return ["not aligned with the layers, or of another host, process or thread"]

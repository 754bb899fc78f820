"""The table `run_ratios`: what counts of a whole run say, whether or not they belong to layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from traceconv.answers.layer_sums import Event, Kind
from traceconv.answers.layers import CYCLES, INSTRUCTIONS, MISS, Costs, parts_of
from traceconv.answers.section import Column, Section, Unit
from traceconv.answers.slice_tables import SliceTable, interval_counters, union
from traceconv.model.args import arg_values
from traceconv.model.trace_inputs import inputs_of

_COLUMNS = (
    Column("name", "ratio", Unit.TEXT),
    Column("value", "value", Unit.RATE),
    Column("formula", "formula", Unit.TEXT, whole=True),
    Column("above", "above", Unit.RATE, detail=True),
    Column("below", "below", Unit.RATE, detail=True),
    Column("counted", "counted", Unit.TEXT, detail=True),
    Column("runs", "runs", Unit.COUNT, detail=True),
    Column("input", "input", Unit.TEXT, spare=True),
)
_CLOCKS = ("task-clock", "cpu-clock")
_SECOND_NS = 10**9
#: Per cent of the time: that of an event which was counted all the time.
_ALWAYS = 100.0


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
    """A ratio: its name, its upper event and what that is divided by, the amounts, and a factor of their quotient."""

    name: str
    event: str
    divisor: str
    above: float
    below: float
    scale: float = 1


def run_ratios(costs: Costs) -> Section:
    """Return the ratios of all that each input of counts of intervals, or of whole runs, counted.

    Of ratios of events that differ only in the part of the CPU, the first is that whose counters ran the longest, then
    that which counted most. A note says for each input why its counts do not belong to layers, if they do not.
    """
    section = Section("run_ratios", _COLUMNS)
    trace = costs.table.trace
    inputs = [number for number, source in enumerate(trace.sources) if source.marks.interval_counts]
    events = costs.events if inputs else []
    for number in inputs:
        name = trace.sources[number].name
        for kind, counted in ((Kind.INTERVALS, "intervals"), (Kind.SLICES, "whole run")):
            of_kind = {event.name: event for event in events if event.sources == (number,) and event.kind is kind}
            times = {event: _time(costs, number, count) for event, count in of_kind.items()}
            runs = {event: _runs(costs, number, count) for event, count in of_kind.items()}
            ratios = _ordered(costs.table, number, list(_ratios(of_kind, times)))
            for title, event, divisor, above, below, scale in ratios:
                value, formula = scale * above / below, f"{event} / {divisor}"
                section.rows.append((title, value, formula, above, below, counted, runs[event], name))
            if of_kind:
                section.notes += [f"{name}: not per layer: {why}" for why in _why_not_by_layer(costs, number, kind)]
                if max(runs.values()) > 1:
                    section.notes.append(f"{name}: counts of {max(runs.values())} runs are added up")
            if of_kind and not any(ratio.name == _CPUS for ratio in ratios):
                missing = "states no CPU time (task-clock)" if any(times.values()) else "does not state how long it ran"
                section.notes.append(f"{name}: {missing}: how many CPUs it used is not known")
    section.legend.append("CPUs used: CPU time / time of the run; of a whole system (-a), idle CPUs count as used")
    return section


def _ordered(table: SliceTable, number: int, ratios: Sequence[_Ratio]) -> list[_Ratio]:
    """Return the ratios by name, those of one event together, with the one first that was counted the longest."""
    plain = [(ratio.name, parts_of(ratio.event)[0]) for ratio in ratios]
    shares = _shares(table, number, sorted({ratio.event for ratio in ratios})) if len({*plain}) < len(plain) else {}

    def key(at: int) -> tuple[int, int, float, float]:
        ratio = ratios[at]
        share = shares.get(ratio.event, _ALWAYS)
        return _ORDER.index(ratio.name), plain.index(plain[at]), -share, -ratio.above

    return [ratios[at] for at in sorted(range(len(ratios)), key=key)]


def _shares(table: SliceTable, number: int, events: Sequence[str]) -> dict[str, float]:
    """Return in which part of the time an input counted each event, per cent, where its args say so."""
    trace, marks = table.trace, table.trace.sources[number].marks.counts
    found: dict[str, list[float]] = {event: [] for event in events}
    instants = np.flatnonzero(inputs_of(trace, "instants") == number)
    for rows, of_rows in ((trace.slices, table.rows_of(number)), (trace.instants, instants)):
        for values in arg_values(trace.args, rows.args_at[of_rows], rows.args_len[of_rows], events)[1]:
            for event, value in zip(events, values, strict=True):
                if marks is not None and isinstance(value, dict):
                    found[event].append(value.get(marks.share, _ALWAYS))
    return {event: sum(shares) / len(shares) for event, shares in found.items() if shares}


def _runs(costs: Costs, number: int, event: Event) -> int:
    """Return in how many runs an input counted an event: of each, the most counts of one CPU, core or thread."""
    trace = costs.table.trace
    tracks = np.array(_tracks_of(costs.table, number, event.name), np.int64)
    if event.kind is Kind.SLICES:
        counts = costs.counts[event.name, number]
        tracks = np.append(trace.slices.track[counts.slices], trace.instants.track[counts.calls])
    places, counted = np.unique(trace.tracks.column("parent")[tracks], return_counts=True)
    most = np.zeros(len(trace.tracks), np.int64)
    np.maximum.at(most, costs.table.processes[places], counted)
    return int(np.sum(most))


def _time(costs: Costs, number: int, event: Event) -> int:
    """Return how long an input counted an event, ns; 0 if it does not state it."""
    table, trace = costs.table, costs.table.trace
    if event.kind is Kind.INTERVALS:
        times = [trace.counters.ts[trace.counters.track == track] for track in _tracks_of(table, number, event.name)]
        spans = np.array([(np.min(ts), np.max(ts)) for ts in times if len(ts)], np.int64).reshape(-1, 2)
        return union(spans[:, 0], spans[:, 1]).length
    return table.busy(np.array(costs.counts[event.name, number].slices, np.int64)).length


def _tracks(table: SliceTable, number: int) -> list[int]:
    """Return the counters of intervals of an input."""
    return [at for at in interval_counters(table.trace) if table.trace.tracks[at].source == number]


def _tracks_of(table: SliceTable, number: int, event: str) -> list[int]:
    return [at for at in _tracks(table, number) if table.trace.tracks[at].name == event]


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
            yield _Ratio(_CPUS, name, "time", amount, time)
        for below, ratio, scale in _pairs(event, others):
            if totals[below] and below not in of_unknown_unit and _as_often(events[name], events[below]):
                yield _Ratio(ratio, name, below, amount, totals[below], scale)
        if plain and time:
            yield _Ratio(_PER_SECOND, name, "time", amount, time, _SECOND_NS)
        elif plain and cpu and totals[cpu] and _as_often(events[name], events[cpu]):
            yield _Ratio(_PER_CPU_SECOND, name, cpu, amount, totals[cpu], _SECOND_NS)


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

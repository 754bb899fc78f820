"""The section `layers`: samples, counts and primitives of other files by the layer that ran.

docs/answers.md has the definitions; `owners`, `attribution` and `layer_sums` attribute costs to layers.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from itertools import chain, count
from math import nan
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from traceconv.answers.attribution import NONE
from traceconv.answers.layer_sums import (
    NO_CALL,
    Apart,
    Counts,
    Event,
    Kind,
    Layers,
    Sampled,
    counts_of,
    interval_counts,
    rows_of,
    slice_counts,
)
from traceconv.answers.operations import combined, in_order, key_of, without_values
from traceconv.answers.owners import Outside, Owners, Pool
from traceconv.answers.section import Column, Section, Unit, is_certain, place_of
from traceconv.answers.slice_tables import SliceTable, interval_counters, table_by_stated_inputs
from traceconv.io.shown import Counted, quantity
from traceconv.model.args import ABSENT, arg_values
from traceconv.model.columns import I64, occurring
from traceconv.model.dump import name_of_unknown
from traceconv.model.numbers import format_short
from traceconv.model.trace import Frame
from traceconv.model.trace_inputs import inputs_of

PRIMITIVES = Counted("primitive", "primitives")

_COLUMNS = (
    Column("calls", "calls", Unit.COUNT),
    Column("self_ns", "self", Unit.NS),
    Column("total_ns", "total", Unit.NS),
    Column("samples", "samples", Unit.COUNT, within="uncertain_samples"),
    Column("uncertain_samples", "± samples", Unit.COUNT, detail=True),
    Column("samples_total", "samples, total", Unit.COUNT, spare=True, within="uncertain_samples_total"),
    Column("uncertain_samples_total", "± samples, total", Unit.COUNT, detail=True),
    Column("worker_samples", "samples of workers", Unit.COUNT, detail=True),
    Column("primitives", "primitives", Unit.COUNT, detail=True),
    Column("primitives_total", "primitives, total", Unit.COUNT, detail=True),
    Column("primitives_ns", "time of primitives", Unit.NS),
    Column("primitives_total_ns", "time of primitives, total", Unit.NS, detail=True),
    Column("gflop_per_s", "GFLOP/s", Unit.RATE),
    Column("gb_per_s", "GB/s", Unit.RATE),
)
#: The columns behind those of events.
_TEXTS = (
    Column("implementations", "implementations", Unit.TEXT, below=True),
    Column("symbols", "top symbols", Unit.TEXT, below=True, beside="samples"),
    Column("sampled_threads", "top threads", Unit.TEXT, detail=True, below=True, beside="samples"),
)
#: The names that events cannot have.
TAKEN = frozenset(column.name for column in (*_COLUMNS, *_TEXTS))
#: The row for costs outside of layers.
NO_LAYER = "(no layer)"
NOTHING = "no input has samples, counts or primitives inside of layers"
_SHOWN = 3  # the most symbols, threads and implementations of a row
_LEAST_SHARE = 0.5  # per cent
CYCLES = ("cycles", "cpu-cycles", "PAPI_TOT_CYC")
INSTRUCTIONS = ("instructions", "PAPI_TOT_INS")
MISS = re.compile(r"(?i).*miss.*|PAPI_(?:L\d_[DIT]C|TLB_[DI])M|PAPI_TLB_TL|PAPI_BR_MSP")
_PAPI = re.compile(r"perf::(?P<name>[\w-]+)|(?P<preset>PAPI_\w+)")


class Costs:
    """The layers of a table with what they cost, for `layers` and `stacks`: each part is found once, when it is needed.

    Args:
        table: the slices.
        by: the keys that layers are grouped by, as in `operations`.
    """

    def __init__(self, table: SliceTable, by: Sequence[str] = ("name",)) -> None:
        self.table, self.by = table_by_stated_inputs(table), by

    @property
    def counts(self) -> dict[tuple[str, int], Counts]:
        """Return what inputs counted in slices."""
        return self._counted[0]

    @cached_property
    def _counted(self) -> tuple[dict[tuple[str, int], Counts], dict[int, set[str]]]:
        return counts_of(self.table)

    def other_notes(self) -> list[str]:
        """Return a note for each input on what is measured in its slices, but no count."""
        notes = []
        for number, names in self._counted[1].items():
            if names:
                some = ", ".join(sorted(names)[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
                file = self.table.trace.sources[number].name
                notes.append(f"{file}: averages, shares and the like are not added up, and are only in args: {some}")
        return notes

    @cached_property
    def _layers(self) -> tuple[Layers, list[tuple[str, ...]]]:
        return layers_of(self.table, self.by, self.counts)

    @property
    def sums(self) -> Layers:
        """The layers."""
        return self._layers[0]

    @property
    def names(self) -> list[tuple[str, ...]]:
        """The texts of the keys of each row; the last row is for no layer."""
        return self._layers[1]

    @cached_property
    def events(self) -> list[Event]:
        """Return the counts of intervals and of slices."""
        return [*interval_counts(self.sums), *slice_counts(self.sums)]

    @cached_property
    def sampled(self) -> Sampled:
        """Return the samples."""
        return self.sums.samples()


def layers(costs: Costs, sort: str = "") -> Section:
    """Return a row for each value of the keys of layers, the most CPU first, and one for costs outside of layers.

    Args:
        costs: the layers.
        sort: the name or the title of a column; without such a column, the event that measures the use of the CPU
            decides, else samples.

    Raises:
        UsageError: a key is not known.
    """
    table, by = costs.table, costs.by
    section = Section("layers", (*(Column(key, key, Unit.TEXT) for key in by), *_COLUMNS))
    marks = [source.marks for source in table.trace.sources]
    declared = any(of_input.primitives or of_input.interval_counts for of_input in marks)
    if not (costs.counts or len(table.trace.samples.ts) or declared):
        section.notes += [NOTHING, *costs.other_notes()]
        return section
    trace = table.trace
    sums, names = costs.sums, costs.names
    sampled, counts = costs.sampled, costs.events
    calls = Calls(sums)
    if not (len(sampled.rows) or counts or len(calls.rows)):
        section.notes.append(NOTHING)
        return section
    section.notes += without_values(by, names[:-1])
    cells: dict[str, list[Any]] = {key: [texts[at] for texts in names] for at, key in enumerate(by)}
    events = events_of(sums, sampled, counts, TAKEN.union(by))
    main = main_event(events)
    events = {name: events[name] for name in sorted(events, key=lambda name: name != main)}
    counted = counted_samples(sums, sampled, events)
    cells |= _times(sums) | of_samples(sums, counted)
    cells |= calls.columns() if len(calls.rows) else {}
    cells |= _most_sampled(sums, sampled, events.get(counted_event(events)))
    for name, event in events.items():
        cells |= {name: event.shown(sums.self_sums), f"{name}_total": event.shown(sums.totals)}
        section.columns += columns_of(name, event)
        if event.number is None:
            continue
        samples = "samples"
        if not _is_counted(event, events):
            samples = _own_name(f"{name}_samples", "event", {*events, *cells})
            section.columns += (Column(samples, samples.replace("_", " "), Unit.COUNT, detail=True),)
            of_event = sampled.where(trace.samples.name[sampled.rows] == event.number)
            cells[samples] = of_samples(sums, of_event)["samples"]
        section.columns = tuple(
            replace(column, beside=samples) if column.name in (name, f"{name}_total") else column
            for column in section.columns
        )
    for name, ratios in ratios_of(sums, events, cells).items():
        title = name.replace("_total", ", total").replace("_per_1000_", " per 1000 ")
        beside = "samples" if all(event.number is not None for event in events.values()) else ""
        section.columns += (Column(name, title, Unit.RATE, detail=name.endswith("_total"), beside=beside),)
        cells[name] = ratios
    section.columns += _TEXTS
    nothing = [None] * (sums.groups + 1)
    rows = list(zip(*(cells.get(column.name, nothing) for column in section.columns), strict=True))
    amounts = [cells[name] for name in (main, "samples", "self_ns", *events) if name in cells]
    # What was not counted comes behind 0.
    order = sorted(
        range(len(rows)), key=lambda at: ([1 if column[at] is None else -column[at] for column in amounts], names[at])
    )
    place = place_of(sort, section.columns)
    section.rows = [rows[at] for at in order] if place is None else in_order(rows, place)
    section.notes += notes_of(sums, counted, cells) + _hidden(cells)
    section.notes += calls.notes()
    section.notes += costs.other_notes()
    section.notes += table.untimed_notes(table.recorded, "layers leave out")
    section.notes += [f"top symbols and {note}" for note in notes_of_events(events)]
    section.legend.append(
        "self: only while the layer was the innermost one; total: with the layers inside; self adds up to the input"
    )
    return section


def layers_of(
    table: SliceTable, by: Sequence[str], counts: dict[tuple[str, int], Counts]
) -> tuple[Layers, list[tuple[str, ...]]]:
    """Return the layers of a trace grouped by keys, and the texts of each row; the last row is for no layer.

    Args:
        table: the slices.
        by: what layers are grouped by, as in `operations`.
        counts: what inputs counted in slices.
    """
    owners = Owners(table)
    codes, texts_of = combined([key_of(table, key) for key in by])
    rows = np.setdiff1d(rows_of(list(counts.values())), owners.rows)
    used, group = np.unique(codes[np.concatenate([owners.rows, rows])], return_inverse=True)
    numbers = {texts_of(code): at for at, code in enumerate(used.tolist())}
    in_tables = [
        numbers.setdefault(tuple(layer if key == "name" else "" for key in by), len(numbers))
        for of_event in counts.values()
        for layer in of_event.layers
    ]
    group = np.append(group.reshape(-1), np.array(in_tables, np.int64))
    count = len(owners.rows)
    segment = np.append(owners.launched_in(rows), np.full(len(in_tables), len(owners.timelines.rows)))
    layers = Layers(owners, group[:count], len(numbers), counts, Apart(rows, group[count:], segment))
    return layers, [*numbers, (NO_LAYER, *[""] * (len(by) - 1))]


def _times(sums: Layers) -> dict[str, list[Any]]:
    """Return the number of runs and the time (ns) of each layer."""
    lines, apart, table = sums.owners.timelines, sums.apart, sums.owners.table
    lasting = np.zeros(len(sums.of_segment), np.int64)
    lasting[: sums.nowhere] = np.where(lines.rows == NONE, 0, lines.ends - lines.starts)
    rows = np.append(sums.owners.rows, apart.rows)
    calls = np.zeros(sums.groups, np.int64)
    of_group = np.append(sums.group, apart.group[: len(apart.rows)])
    np.add.at(calls, of_group, 1 if table.calls is None else table.calls[rows])
    in_tables = np.array([call for of_event in sums.counts.values() for call in of_event.calls], np.int64)
    known, first = np.unique(in_tables, return_index=True)
    without_time = np.bincount(apart.group[len(apart.rows) :][first[known != NO_CALL]], minlength=sums.groups)
    times = {"self_ns": np.array(sums.self_sums(lasting)), "total_ns": np.array(sums.totals(lasting))}
    for name, values in (("self_ns", table.nesting.self_ns), ("total_ns", table.trace.slices.dur)):
        recorded = np.where(table.timed[apart.rows], values[apart.rows], 0)
        np.add.at(times[name], apart.group[: len(apart.rows)], recorded)
    columns = {"calls": (calls + without_time, calls + without_time)}
    columns |= {name: (values[:-1], calls) for name, values in times.items()}
    # Rows of tables have no times, and those that sum up calls do not state their number.
    return {
        name: [*(v if n else None for v, n in zip(values.tolist(), count.tolist(), strict=True)), None]
        for name, (values, count) in columns.items()
    }


def of_samples(sums: Layers, sampled: Sampled) -> dict[str, list[Any]]:
    """Return the number of samples of each layer, and its uncertainty; empty without samples.

    If no sample is of a thread with layers, nothing is known of layers.
    """
    if not len(sampled.rows):
        return {}
    count = sums.by_segment(sampled.segment, np.ones(len(sampled.rows), np.int64))
    workers = sums.by_segment(sampled.segment, sampled.worker.astype(np.int64))
    unknown: list[int | None] = [None] * (sums.groups + 1)
    uncertain = sums.uncertain(sampled) or (unknown, unknown)
    columns = {
        "samples": sums.self_sums(count),
        "samples_total": sums.totals(count),
        "uncertain_samples": uncertain[0],
        "uncertain_samples_total": uncertain[1],
        "worker_samples": sums.self_sums(workers),
    }
    if np.any(sampled.line != NONE):
        return columns
    return {name: [*unknown[:-1], column[-1]] for name, column in columns.items()}


def events_of(sums: Layers, sampled: Sampled, counts: Sequence[Event], taken: Collection[str]) -> dict[str, Event]:
    """Return the events by the name of their column: first those of samples, then those of counts.

    Args:
        sums: the layers.
        sampled: the samples.
        counts: the counts.
        taken: the names of other columns: an event with such a name is renamed to "NAME (event)".
    """
    trace = sums.owners.table.trace
    names = trace.samples.name[sampled.rows]
    events: dict[str, Event] = {}
    for number in occurring(names):
        of_name = names == number
        values = sums.by_segment(sampled.segment[of_name], trace.samples.weight[sampled.rows[of_name]])
        name = trace.strings[number]
        inputs = tuple(at for at, source in enumerate(trace.sources) if name in source.sampled)
        inputs = inputs or tuple(np.unique(sums.input_of_sample[sampled.rows[of_name]]).tolist())
        stated = not any(name in trace.sources[at].without_periods for at in inputs)
        kind = Kind.PERIODS if stated else Kind.SAMPLES
        known = None if np.any(sampled.line[of_name] != NONE) else sums.outside()
        is_time = stated and all(re.fullmatch(trace.sources[at].marks.times or "(?!)", name) for at in inputs)
        event = Event(name, inputs, kind, values, known, "ns" if is_time else "", number)
        events[_free(name, taken)] = event
    for event in counts:
        name = _free(event.name, taken)
        events[_own_name(name, trace.sources[event.sources[0]].name, events)] = event
    return events


def _own_name(name: str, file: str, taken: Collection[str]) -> str:
    """Return a name; if it is taken, with the file appended, and with a number if that is taken as well."""
    names = chain((name, f"{name} ({file})"), (f"{name} ({file}, {number})" for number in count(2)))
    return next(candidate for candidate in names if candidate not in taken)


def _free(event: str, taken: Collection[str]) -> str:
    """Return a name for an event so that neither it nor its sum has a taken name."""
    return f"{event} (event)" if event in taken or f"{event}_total" in taken or event.endswith("_total") else event


def main_event(events: dict[str, Event]) -> str:
    """Return which event tells the use of the CPU; "" if none does.

    It is a sampled time, else sampled or counted cycles, else the first sampled event.
    """

    def key(name: str) -> tuple[bool, bool, bool]:
        event = events[name]
        is_sampled = event.number is not None
        return not is_sampled or event.unit != "ns", not _is_cycles(event), not is_sampled

    return min(
        (name for name, event in events.items() if event.number is not None or _is_cycles(event)), key=key, default=""
    )


def _is_cycles(event: Event) -> bool:
    return parts_of(event.name)[0] in CYCLES


def counted_event(events: dict[str, Event]) -> str:
    """Return the event whose samples are counted, the one that tells the use of the CPU; "" without samples."""
    return main_event({name: event for name, event in events.items() if event.number is not None})


def notes_of_events(events: dict[str, Event]) -> list[str]:
    """Return a note on the event whose samples are counted, if several were sampled."""
    several = sum(event.number is not None for event in events.values()) > 1
    return [f"samples: of {counted_event(events)}; other events have only their own numbers"] if several else []


def counted_samples(sums: Layers, sampled: Sampled, events: dict[str, Event]) -> Sampled:
    """Return the samples of the counted event: numbers of samples of different events are not added.

    The cycles of several kinds of cores, or privilege levels, count as one event.
    """
    main = events.get(counted_event(events))
    if main is None:
        return sampled
    numbers = [event.number for event in events.values() if event.number is not None and _is_counted(event, events)]
    return sampled.where(np.isin(sums.owners.table.trace.samples.name[sampled.rows], numbers))


def _is_counted(event: Event, events: dict[str, Event]) -> bool:
    """Return whether `counted_samples` counts the samples of an event."""
    main = events[counted_event(events)]
    return event is main or (_is_cycles(event) and _is_cycles(main))


def _hidden(cells: dict[str, list[Any]]) -> list[str]:
    """Return a note on layers whose numbers of samples are too uncertain to be shown."""
    samples = cells.get("samples", [None])[:-1]
    around = [k or 0 for k in cells.get("uncertain_samples", [])]
    hidden = sum(not is_certain(n, k) for n, k in zip(samples, around, strict=False) if n is not None)
    return [f"not shown for {hidden} of {len(samples)} layers: fewer samples than their uncertainty"] if hidden else []


def columns_of(name: str, event: Event) -> tuple[Column, Column]:
    """Return the columns of an event: of the layer itself, and with all that ran inside it."""
    whole = event.values.dtype == np.int64
    unit = (Unit.NS if event.unit == "ns" else Unit.COUNT) if whole else Unit.RATE
    title = f"{name}, {event.unit}" if event.unit and unit is not Unit.NS else name
    return Column(name, title, unit), Column(f"{name}_total", f"{title}, total", unit, detail=True)


def ratios_of(sums: Layers, events: Mapping[str, Event], cells: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return instructions per cycle and misses per 1,000 instructions, where both were counted in the same way.

    That is: in the same input, by samples with periods, intervals or slices, and in the same part of the CPU, privilege
    level and control group. Counts of slices are only divided where as many slices have the one count as the other.

    Args:
        sums: the layers.
        events: the events by the name of their column.
        cells: the columns, those of the events among them.
    """
    ratios: dict[str, list[Any]] = {}
    parts = {title: parts_of(event.name) for title, event in events.items()}
    for whole, instructions in events.items():
        name, how = parts[whole]
        if name not in INSTRUCTIONS or instructions.kind is Kind.SAMPLES:
            continue
        for part, event in events.items():
            other, other_how = parts[part]
            if (event.sources, event.kind, other_how) != (instructions.sources, instructions.kind, how):
                continue
            if other in CYCLES:
                above, below, scale, ratio = whole, part, 1, f"ipc{how}"
            elif MISS.fullmatch(other):
                above, below, scale, ratio = part, whole, 1000, f"{event.name}_per_1000_instructions"
            else:
                continue
            renamed = (whole, part) != (instructions.name, event.name)
            file = sums.owners.table.trace.sources[event.sources[0]].name
            ratio = _own_name(ratio, file, {*ratios, *cells, *([ratio] if renamed else [])})
            for end, sums_of in (("", sums.self_sums), ("_total", sums.totals)):
                ratios[ratio + end] = [
                    scale * upper / lower if lower and upper is not None and same else None
                    for upper, lower, same in zip(
                        cells[above + end], cells[below + end], _as_many(event, instructions, sums_of), strict=True
                    )
                ]
    return ratios


def _as_many(event: Event, other: Event, sums: Callable[[npt.NDArray[Any]], list[Any]]) -> list[bool]:
    """Return for each row whether two events have as many counts; `sums` is `Layers.self_sums` or `Layers.totals`."""
    if event.counts is None or other.counts is None:
        return [True] * len(sums(event.values))
    return [a == b for a, b in zip(sums(event.counts), sums(other.counts), strict=True)]


def parts_of(event: str) -> tuple[str, str]:
    """Split an event into its plain name, and its part of the CPU, privilege level and control group.

    These are the names of perf and of PAPI. `perf stat` states a control group behind the event.
    """
    if papi := _PAPI.match(event):
        return papi["preset"] or papi["name"].lower(), " (PAPI)"
    match = re.fullmatch(r"(?:(\w+)/)?([\w.-]+)(?:,[^/:]*)?(?:/?([^ ]*))( .*)?", event)
    if match is None:
        return event, ""
    unit = "" if match[1] in (None, "cpu") else f"{match[1]}/"
    privilege = re.search(r"[:/]([ukhGHpP]+):?$", event.removesuffix(match[4] or ""))
    how = f":{unit}{privilege[1] if privilege else ''}" if unit or privilege else ""
    return match[2], how + (match[4] or "")


def _most_sampled(sums: Layers, sampled: Sampled, event: Event | None) -> dict[str, list[str]]:
    """Return the innermost functions and the threads with most of an event in each layer, with their shares."""
    table = sums.owners.table
    trace = table.trace
    if event is not None:
        sampled = sampled.where(trace.samples.name[sampled.rows] == event.number)
    amounts = trace.samples.weight[sampled.rows]
    amounts = amounts if np.any(amounts) else np.ones(len(amounts), np.int64)  # periods of 0
    layer, stack = sums.of_segment[sampled.segment], trace.samples.stack[sampled.rows]
    numbers: dict[str, int] = {}
    of_frame = np.array([numbers.setdefault(called(frame), len(numbers)) for frame in trace.frames], np.int64)
    known = stack >= 0
    tracks, thread = np.unique(table.row_of_track[trace.samples.track[sampled.rows]], return_inverse=True)
    titles = [table.title(track) for track in tracks.tolist()]
    return {
        "symbols": _most(layer[known], of_frame[stack[known]], amounts[known], list(numbers), sums.groups),
        "sampled_threads": _most(layer, thread.reshape(-1).astype(np.int64), amounts, titles, sums.groups),
    }


def called(frame: Frame) -> str:
    """Return the function of a frame; if it is not known, the file that its code is in."""
    return frame.name if frame.named else posixpath.basename(frame.category) or name_of_unknown("")


def _most(group: I64, number: I64, amounts: I64, texts: Sequence[str], groups: int) -> list[str]:
    """Return the texts with the largest sums of amounts for each row, with their shares."""
    pairs, at = np.unique(group * (len(texts) + 1) + number, return_inverse=True)
    sums = np.bincount(at.reshape(-1), amounts, len(pairs))
    group, number = np.divmod(pairs, len(texts) + 1)
    order = np.lexsort((number, -sums, group))
    whole = np.bincount(group, sums, groups + 1)
    symbols: list[list[str]] = [[] for _ in range(groups + 1)]
    for row, text, amount in zip(group[order].tolist(), number[order].tolist(), sums[order].tolist(), strict=True):
        share = 100 * amount / whole[row] if amount else 0
        if len(symbols[row]) < _SHOWN and share >= _LEAST_SHARE:
            symbols[row].append(f"{share:.0f} % {texts[text]}")
    return [", ".join(shown) for shown in symbols]


class Calls:
    """The calls of library primitives, by the layer in which their middle lies."""

    def __init__(self, sums: Layers) -> None:
        self._sums = sums
        table = sums.owners.table
        slices, trace = table.trace.slices, table.trace
        parts, work = [np.empty(0, np.int64)], [np.empty((0, 2))]
        what = [np.empty(0, np.int64)]
        known: dict[str, int] = {}
        for number, source in enumerate(trace.sources):
            marks = source.marks.primitives
            of_input = table.of_source(number)
            if marks is None or np.any(of_input[sums.owners.rows]):
                continue
            calls = of_input & table.of_categories(marks.calls) & table.timed
            rows = table.recorded[calls[table.recorded]]
            args = slices.args_at[rows], slices.args_len[rows]
            numbers, values = arg_values(trace.args, *args, [marks.implementation, marks.gflop, marks.size])
            of_value = np.array(
                [[nan if amount is ABSENT else float(amount) for amount in amounts] for _, *amounts in values]
            )
            implementations = ["" if value is ABSENT else str(value) for value, *_ in values]
            texts = [
                f"{trace.strings[name]} {implementations[at]}".strip()
                for name, at in zip(slices.name[rows].tolist(), numbers.tolist(), strict=True)
            ]
            what.append(np.array([known.setdefault(text, len(known)) for text in texts], np.int64))
            work.append(of_value.reshape(-1, 2)[numbers])
            parts.append(rows)
        self.rows = np.concatenate(parts)
        self._what, self._work, self._texts = np.concatenate(what), np.concatenate(work), list(known)

    def columns(self) -> dict[str, list[Any]]:
        """Return the columns about calls: number, time (ns), kinds and implementations for each layer."""
        sums = self._sums
        most = _most(sums.of_segment[self._segment], self._what, self._dur, self._texts, sums.groups)
        rates = {name: self._rates(*amounts) for name, amounts in self._amounts().items()}
        return self.sums() | rates | {"implementations": most}

    def notes(self) -> list[str]:
        """Return how many calls the speeds leave out."""
        titles = {column.name: column.title for column in _COLUMNS}
        left_out = {titles[name]: int(np.count_nonzero(~known)) for name, (_, known, _) in self._amounts().items()}
        return [
            f"{title}: {quantity(count, PRIMITIVES)} left out: {work} not known, or a time of 0"
            for (title, count), work in zip(left_out.items(), ("operations", "bytes"), strict=True)
            if 0 < count < len(self.rows)
        ]

    def _amounts(self) -> dict[str, tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_], float]]:
        """Return the work of calls, of which it is known with a time, and its scale, by the column of its speed."""
        timed = self._dur > 0
        gflop, size = self._work.T
        return {
            "gflop_per_s": (gflop, timed & ~np.isnan(gflop), 1e9),
            "gb_per_s": (size, timed & ~np.isnan(size), 1),
        }

    def _rates(self, work: npt.NDArray[np.float64], known: npt.NDArray[np.bool_], scale: float) -> list[float | None]:
        """Return the known work of each layer per ns of the calls that did it, times a scale; None without any."""
        of_segment = self._sums.by_segment
        amounts = self._sums.self_sums(of_segment(self._segment, np.where(known, work, 0.0)))
        times = self._sums.self_sums(of_segment(self._segment, np.where(known, self._dur, 0)))
        return [scale * amount / ns if ns else None for amount, ns in zip(amounts, times, strict=True)]

    def sums(self) -> dict[str, list[Any]]:
        """Return the number of calls and their time, ns, for each layer; empty without calls."""
        if not len(self.rows):
            return {}
        sums = self._sums
        count = sums.by_segment(self._segment, np.ones(len(self.rows), np.int64))
        lasting = sums.by_segment(self._segment, self._dur)
        return {
            "primitives": sums.self_sums(count),
            "primitives_total": sums.totals(count),
            "primitives_ns": sums.self_sums(lasting),
            "primitives_total_ns": sums.totals(lasting),
        }

    @property
    def _dur(self) -> I64:
        return self._sums.owners.table.trace.slices.dur[self.rows]

    @cached_property
    def _segment(self) -> I64:
        """Return the segment of the middle of each call."""
        trace = self._sums.owners.table.trace
        middle = trace.slices.ts[self.rows] + self._dur // 2

        return self._sums.placed(trace.slices.track[self.rows], middle, inputs_of(trace, "slices")[self.rows])[0]


def notes_of(sums: Layers, sampled: Sampled, cells: dict[str, list[Any]], called: str = "± samples") -> list[str]:
    """Return the notes; `called` is the title of the column of uncertain samples."""
    notes = []
    count = len(sampled.rows)
    if count:
        outside = cells["samples"][-1]
        why = f": {_why_in_none(sums, sampled, cells)}" if outside else ""
        notes.append(f"{outside} of {count} samples are in no layer{why}")
        uncertain = cells["uncertain_samples"]
        if not np.any(sampled.line != NONE):
            pass  # no layer has samples
        elif uncertain[0] is None:
            notes.append(f"{called}: not known, since the clock bound between samples and layers is not known")
        else:
            shares = [k / n for n, k in zip(cells["samples"][:-1], uncertain, strict=False) if n]
            notes.append(f"{called}: samples within the clock bound of an edge of the layer{_how_many(shares)}")
    workers = sum(filter(None, cells.get("worker_samples", ())))
    if workers:
        placed = workers - cells["worker_samples"][-1]
        notes.append(
            f"{placed} of {workers} samples of worker threads count for the layer that their process was running"
        )
    if shared := int(np.count_nonzero(sampled.shared)):
        notes.append(f"{shared} of these were taken while several threads ran layers: assigned to them in turn")
    return notes + _notes_of_intervals(sums.owners)


def _how_many(shares: list[float]) -> str:
    """Return how many samples are uncertain, given their share of the samples of each layer."""
    if not shares:
        return ""
    middle = sorted(shares)[(len(shares) - 1) // 2]
    return f" (median over layers: {100 * middle:.1f} % of the samples of a layer)" if middle <= 1 else ""


def _why_in_none(sums: Layers, sampled: Sampled, cells: dict[str, list[Any]]) -> str:
    """Return the reasons why samples are in no layer, with the number of samples of each if there are several."""
    owners, tracks = sums.owners, sums.owners.table.trace.samples.track[sampled.rows]
    foreign = tracks[sampled.line == NONE]
    idle = cells["samples"][-1] - len(foreign)
    counts, renamed = Counter[Outside](), False
    for track in np.unique(foreign).tolist():
        counts[why := owners.outside(track)] += int(np.count_nonzero(foreign == track))
        renamed |= why is Outside.NO_LAYERS and owners.can_be_renamed(track)
    reasons = (
        []
        if counts and not idle
        else [("at the time of {} no layer was running", "no layer was running at their time", idle)]
    )
    for why in Outside:
        words = why.value.format(processes=owners.processes, file=owners.without_pid)
        if why is Outside.NO_LAYERS and renamed and not owners.table.trace.one_machine:
            words += " (if these are one machine under two names: --same-machine)"
        reasons += [(f"of {{}}, {words}", words, counts[why])] if counts[why] else []
    if len(reasons) == 1:
        return reasons[0][1]
    return "; ".join(several.format(number) for several, _, number in reasons)


def _notes_of_intervals(owners: Owners) -> list[str]:
    """Return how certain it is which layers counts of intervals belong to, for each input that has some."""
    trace, notes = owners.table.trace, []
    of_source: dict[int, list[tuple[Pool, bool]]] = {}
    tracks_of: dict[int, list[int]] = {}
    for track in interval_counters(trace):
        of_source.setdefault(trace.tracks[track].source, []).append(owners.counted(track))
        tracks_of.setdefault(trace.tracks[track].source, []).append(track)
    # A layer that does not last as long as an interval has no counts of its own.
    lasting = int(np.median(trace.slices.dur[owners.rows])) if len(owners.rows) else 0
    for number, counted in sorted(of_source.items()):
        source = trace.sources[number]
        lines = {line for pool, _ in counted for line in pool}
        if not lines:
            continue
        times = np.unique(trace.counters.ts[np.isin(trace.counters.track, tracks_of[number])])
        if len(times) > 1 and (interval := int(np.median(np.diff(times)))) > lasting:
            text = f"{source.name}: half of the layers last at most {format_short(lasting)}, its intervals"
            notes.append(f"{text} {format_short(interval)}: such layers have their share of what ran in an interval")
        bounds = [owners.bound([number], line) for line in sorted(lines)]
        known = [bound for bound in bounds if bound is not None]
        if len(known) < len(bounds):
            notes.append(f"{source.name}: the clock bound between its intervals and the layers is not known")
        elif max(known):
            text = f"{source.name}: the intervals are placed within {format_short(max(known))}"
            notes.append(f"{text}: a layer that is not longer can have the counts of its neighbours")
        if any(pool and not named for pool, named in counted):
            notes.append(f"{source.name}: no thread is named, so counts of a whole CPU can include other programs")
    return notes

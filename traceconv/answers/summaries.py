"""The sections `overview`, `logs`, `memory` and `stated_totals`: inputs, warnings, memory, and sums of tools."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from traceconv.align.receipt import ReceiptLine
from traceconv.answers.section import Cell, Column, Section, Unit, place_of
from traceconv.answers.slice_tables import NO_PARENT, Rows, SliceTable, stated_inputs, table_by_stated_inputs
from traceconv.io.shown import Counted, quantity
from traceconv.model.args import ABSENT, arg_values
from traceconv.model.builder import TOTALS_ENDING
from traceconv.model.columns import I64, chunks, like_next, stable_order
from traceconv.model.diagnostics import ROWS, SLICES
from traceconv.model.marks import TotalsMarks
from traceconv.model.numbers import LIMIT_NS
from traceconv.model.trace import Level, Trace
from traceconv.model.trace_inputs import Inputs, by_stated_inputs, inputs_of
from traceconv.model.track_table import TrackKind

NUMBERS = Counted("number", "numbers")
VALUES = Counted("value", "values")

# -- The section `overview`: the inputs with balance, clock, verdict and losses --------------------------------------

_OVERVIEW = (
    Column("input", "input", Unit.TEXT),
    Column("format", "format", Unit.TEXT),
    Column("clock", "clock", Unit.TEXT),
    Column("method", "placed by", Unit.TEXT, whole=True),
    Column("verdict", "verdict", Unit.TEXT),
    Column("bound_ns", "within", Unit.NS),
    Column("start_ns", "start", Unit.NS),
    Column("span_ns", "span", Unit.NS),
    Column("tracks", "tracks", Unit.COUNT),
    Column("slices", "slices", Unit.COUNT),
    Column("lost", "lost", Unit.COUNT),
)
#: Where an input states how long the whole run was.
_PART_OF_RUN = (Column("recorded_ns", "recorded", Unit.NS), Column("run_ns", "of a run of", Unit.NS))

#: The most left-out files that are named, and inputs of an output of traceconv.
_MOST_NAMED = 20


def overview(trace: Trace, receipt: Sequence[ReceiptLine]) -> Section:
    """Return a row for each input and clock; the events of an input are counted in its first row.

    `start_ns` counts from the first event of the trace. Inputs without real times have no start and no span. The slices
    of an input take `recorded_ns` of a run that lasted `run_ns`, if it states that, and they are only a part of it. A
    note names the inputs that an output of traceconv states, with their slices.
    """
    is_part = any(source.part_of_run for source in trace.sources)
    section = Section("overview", (*_OVERVIEW, *(_PART_OF_RUN if is_part else ())))
    whole = trace.span()
    by_input = by_stated_inputs(trace)
    starts, ends, slices = _of_inputs(by_input)
    stated = len(trace.sources)
    tracks_of = np.bincount(trace.tracks.column("source"), minlength=stated)
    for _, track in trace.tracks.special():
        tracks_of[list({carried for _, carried, _ in track.carries} - {track.source})] += 1
    for number, source in enumerate(trace.sources):
        if source.stated:
            parts = slice(stated, stated := stated + len(source.stated))
            starts[number] = min(starts[number], np.min(starts[parts]))
            ends[number] = max(ends[number], np.max(ends[parts]))
            made_of = [
                f"{part.name} ({part.format}): {quantity(int(count), SLICES)}"
                for part, count in zip(source.stated[:_MOST_NAMED], slices[parts].tolist(), strict=False)
            ]
            more = len(source.stated) - _MOST_NAMED
            section.notes.append(
                f"{source.name}: made of {'; '.join(made_of)}{f'; and {more} more' if more > 0 else ''}"
            )
            slices[number] += np.sum(slices[parts])
        start, end = (None, None) if starts[number] > ends[number] else (int(starts[number]), int(ends[number]))
        lines: list[ReceiptLine | None] = [line for line in receipt if line.file == source.name]
        tracks = int(tracks_of[number])
        part = source.part_of_run
        of_run = (part.recorded_ns, part.run_ns) if part else (None, None)
        events: tuple[int | None, ...] = (
            None if start is None or whole is None else start - whole[0],
            None if start is None or end is None else end - start,
            tracks,
            int(slices[number]),
            source.diagnostics.lost,
            *(of_run if is_part else ()),
        )
        for line in lines or [None]:
            section.rows.append(
                (
                    source.name,
                    source.format,
                    line.clock if line else "",
                    line.method if line else "not known" if tracks and not receipt else "nothing to place",
                    line.verdict if line else "",
                    line.bound_ns if line else None,
                    *events,
                )
            )
            events = (None,) * len(events)
        section.notes += [f"{source.name}: {note}" for note in source.notes]
    left_out = list(trace.left_out.items())
    section.notes += [f"left out: {path}: {reason}" for path, reason in left_out[:_MOST_NAMED]]
    if len(left_out) > _MOST_NAMED:
        section.notes.append(f"left out: {len(left_out) - _MOST_NAMED} more files")
    return section


def _of_inputs(trace: Trace) -> tuple[I64, I64, I64]:
    """Return the first and the last time (ns) of the events of each input, and the number of its slices.

    The times are real ones; of an input without any, the first is after the last.
    """
    count = len(trace.sources)
    starts, ends = np.full(count, np.iinfo(np.int64).max), np.full(count, np.iinfo(np.int64).min)
    slices = np.zeros(count, np.int64)
    in_time = SliceTable(trace).drawn_in_time
    for name, table in trace.timed_tables():
        inputs_of = Inputs(trace, name)
        for rows in chunks(len(table.ts)):
            inputs, ts = inputs_of.of_rows(rows), table.ts[rows]
            last = ts + table.dur[rows] if name == "slices" else ts
            if name == "slices":
                slices += np.bincount(inputs, minlength=count)
            if np.any(untimed := ~in_time[table.track[rows]]):
                inputs, ts, last = inputs[~untimed], ts[~untimed], last[~untimed]
            np.minimum.at(starts, inputs, ts)
            np.maximum.at(ends, inputs, last)
        trace.forget()
    return starts, ends, slices


# -- The section `logs`: warnings and errors in the inputs, with their number ----------------------------------------

_LOGS = (
    Column("level", "level", Unit.TEXT),
    Column("text", "text", Unit.TEXT),
    Column("count", "count", Unit.COUNT),
    Column("first_ns", "first", Unit.NS),
    Column("input", "input", Unit.TEXT),
)


def logs(table: SliceTable) -> Section:
    """Return a row for each text, level and input, from WARNING on, the most severe first.

    `first_ns` counts from the first event of the trace; it is None if the entries have no real times.
    """
    trace, entries = table.trace, table.trace.logs
    section = Section("logs", _LOGS)
    source = inputs_of(trace, "logs")
    silent = sorted(set(range(len(trace.sources))) - set(source.tolist()))
    if not len(source):
        section.notes.append("no input holds log entries")
        return section
    section.notes += [f"{trace.sources[number].name}: holds no log entries" for number in silent]
    in_window = table.in_window(entries.ts)
    rows = np.flatnonzero(in_window & (entries.level >= Level.WARNING))
    if not len(rows):
        section.notes.append(f"none of {np.count_nonzero(in_window)} log entries is a warning or an error")
        return section
    stated = by_stated_inputs(trace)
    of_stated = inputs_of(stated, "logs")[rows]
    keys = np.stack((-entries.level[rows].astype(np.int64), entries.text[rows].astype(np.int64), of_stated))
    groups, numbers, counts = np.unique(keys, axis=1, return_inverse=True, return_counts=True)
    in_time = table.drawn_in_time[entries.track[rows]]
    first = np.full(len(counts), np.iinfo(np.int64).max)
    np.minimum.at(first, numbers.reshape(-1), entries.ts[rows])
    known = np.zeros(len(counts), bool)
    known[numbers.reshape(-1)[in_time]] = True
    first -= table.start
    for at in np.lexsort((first, -counts, groups[0])).tolist():
        level, text, number = groups[:, at].tolist()
        name = Level(-level).name.lower()
        begin = int(first[at]) if known[at] else None
        section.rows.append((name, trace.strings[text], int(counts[at]), begin, stated.sources[number].name))
    if not all(known):
        section.notes.append("an empty time: the input states none")
    return section


# -- The section `memory`: the peaks of allocated memory -------------------------------------------------------------

_MEMORY = (
    Column("counter", "counter", Unit.TEXT),
    Column("peak_bytes", "peak", Unit.BYTES),
    Column("peak_at_ns", "first at", Unit.NS),
    Column("first_bytes", "first", Unit.BYTES),
    Column("last_bytes", "last", Unit.BYTES),
    Column("values", "values", Unit.COUNT),
    Column("input", "input", Unit.TEXT, spare=True),
)


def memory(table: SliceTable) -> Section:
    """Return a row for each counter of memory, the largest peak first, and the peaks that tables of sums state.

    The formats of the inputs declare the counters. `peak_at_ns` is the first time of the peak, from the first event of
    the trace, None if the input states no times. Sums cannot be divided: with a window, those of tables are left out.
    """
    trace, counters = table.trace, table.trace.counters
    section = Section("memory", _MEMORY)
    telling: set[int] = set()
    rows: list[tuple[Cell, ...]] = []
    for number, of_counter in memory_counters(table):
        telling.add(trace.tracks[number].source)
        whole = of_counter[counters.is_integer[of_counter] == 1]
        if len(whole) < len(of_counter):
            section.notes.append(
                f"{table.title(number)}: left out: {quantity(len(of_counter) - len(whole), VALUES)} not in whole bytes"
            )
        if not len(whole):
            continue
        times, inside = counters.ts[whole], len(whole)
        if window := table.window:
            # The value at the start of the window was set before it.
            first, last = np.searchsorted(times, (window.start, window.end)).tolist()
            inside = last - first
            first -= first > 0 and (not inside or int(times[first]) > window.start)
            whole, times = whole[first:last], np.maximum(times[first:last], window.start)
            if not len(whole):
                section.notes.append(f"{table.title(number)}: has no value before the end of the window")
                continue
        values = counters.integer[whole]
        top = int(np.argmax(values))
        ends = (int(values[0]), int(values[-1]))
        at = int(times[top]) - table.start if table.drawn_in_time[number] else None
        rows.append((table.title(number), int(values[top]), at, *ends, inside, table.input_of(number)))
    of_sums = stated_peaks(table)
    telling |= {trace.tracks[peak.track].source for peak in of_sums}
    if table.window is None:
        for peak in of_sums:
            name, source = f"{title(table, peak.track)} / {peak.name}", trace.sources[trace.tracks[peak.track].source]
            rows.append((name, peak.peak, None, None, None, peak.changes, source.name))
    else:
        names = dict.fromkeys(trace.sources[trace.tracks[peak.track].source].name for peak in of_sums)
        section.notes += [f"{name}: its sums cannot be divided: they are left out" for name in names]
    section.rows = sorted(rows, key=lambda row: (-int(row[1] or 0), str(row[0])))
    silent = [source.name for number, source in enumerate(trace.sources) if number not in telling]
    if not telling:
        section.notes.append("no input tells how much memory is held")
        return section
    section.notes += [f"{name}: does not tell how much memory is held" for name in silent]
    if rows:
        section.notes.append(
            "a peak between two values is not seen; counters may count the same memory: they do not add up"
        )
    if any(row[2] is None for row in rows):
        section.notes.append("an empty time: the input states none")
    return section


def memory_counters(table: SliceTable) -> Iterator[tuple[int, Rows]]:
    """Yield the track of each counter of memory that has values, and its values in order of time."""
    trace, counters = table.trace, table.trace.counters
    order = np.lexsort((np.arange(len(counters.ts)), counters.ts, counters.track))
    bounds = np.searchsorted(counters.track[order], np.arange(len(trace.tracks) + 1)).tolist()
    for number, track in enumerate(trace.tracks):
        pattern, values = trace.sources[track.source].marks.memory, order[bounds[number] : bounds[number + 1]]
        is_memory = pattern and track.kind is TrackKind.COUNTER and re.fullmatch(pattern, track.name)
        if is_memory and len(values):
            yield number, values


# -- Compare the table of sums that a tool prints with the events of its run, if both are inputs; else list its rows -

#: The relative tolerance: tools print four digits or more.
_CLOSE = 5e-4
#: The end of a name that was cut.
_CUT = "..."
_SHOWN = 3
_Key = tuple[str, str]
#: A pattern of the names that a table sums up in one row, and the name of that row; None without any.
_Joined = tuple[str, str] | None


class _Row(NamedTuple):
    """A row of a table; None where it states nothing."""

    name: str
    category: str
    track: int
    numbers: dict[str, float | None]
    peak: float | None
    single: bool
    nested: bool
    too_large: int

    @property
    def calls(self) -> float | None:
        """Return the number of calls."""
        return self.numbers["calls"]

    @property
    def totals(self) -> list[float]:
        """Return the possible total times of the slices of the row, ns."""
        return [total for total in map(self.numbers.get, ("total", "device_total")) if total is not None]


class _Calls(NamedTuple):
    """The slices of an input, in groups by the name of their row and category, and these keys in order."""

    groups: dict[_Key, list[Rows]]
    keys: list[_Key]


def with_totals(section: Section, table: SliceTable, sort: str = "", by: Sequence[str] = ("name",)) -> list[Section]:
    """Return the operations and, if an input is a table of sums, its rows; add notes to the operations.

    The rows of a table are left out if its run is among the inputs, since the operations have them, and if a part of
    the time or of the slices was asked for, since sums cannot be divided.

    Args:
        section: the operations.
        table: the slices.
        sort: the name or title of a column; without such a column, the largest total is first, then the largest self.
        by: the keys that operations are grouped by; rows of a table are not.
    """
    table, rows = _tables_of_sums(table)
    numbers = list(rows)
    if not numbers:
        return [section]
    if table.chosen is not None or table.window is not None:
        names = [table.trace.sources[number].name for number in numbers if any(map(_states_time, rows[number]))]
        section.notes += [f"{name}: its sums cannot be divided: they are left out" for name in names]
        return [section]
    for number in numbers:
        too_large = sum(row.too_large for row in rows[number])
        if too_large:
            name = table.trace.sources[number].name
            section.notes.append(f"{name}: {quantity(too_large, NUMBERS)} of its sums too large: taken as not stated")
    sentences = compared(table, rows)
    section.notes += sentences.values()
    others = [number for number in numbers if number not in sentences and rows[number]]
    alone = [number for number in others if any(map(_states_time, rows[number]))]
    for number in sorted({*others} - {*alone}):
        name, count = table.trace.sources[number].name, quantity(len(rows[number]), ROWS)
        section.notes.append(f"{name}: none of its {count} states a time or a share")
    if not alone:
        return [section]
    section.notes.append("what tools summed up themselves is in the table stated_totals")
    listed = _listed(table, {number: rows[number] for number in alone}, sort)
    if tuple(by) != ("name",):
        listed.notes.append(f"--by {','.join(by)} does not apply to this table: its sums cannot be divided")
    return [section, listed]


class StatedPeak(NamedTuple):
    """The most memory that was held, as a row of a table of sums states it.

    Attributes:
        track: the table.
        name: of the row.
        peak: bytes.
        changes: how many times it changed; None if not stated.
    """

    track: int
    name: str
    peak: int
    changes: int | None


def stated_peaks(table: SliceTable) -> list[StatedPeak]:
    """Return the rows about memory of the inputs that are tables of sums."""
    rows_of = _tables_of_sums(table)[1]
    return [
        StatedPeak(row.track, row.name, round(row.peak), _whole(row.calls))
        for rows in rows_of.values()
        for row in rows
        if row.peak is not None
    ]


def _tables_of_sums(table: SliceTable) -> tuple[SliceTable, dict[int, list[_Row]]]:
    """Return the rows of the inputs that are tables of sums by their number, and the slices with these inputs."""
    if not any(source.marks.totals for source in stated_inputs(table.trace)):
        return table, {}
    table = table_by_stated_inputs(table)
    return table, _printed(table, [number for number, source in enumerate(table.trace.sources) if source.marks.totals])


#: The columns of `stated_totals`.
STATED_TOTALS = (
    Column("name", "name", Unit.TEXT),
    Column("table", "table", Unit.TEXT, spare=True),
    Column("count", "count", Unit.COUNT),
    Column("total_ns", "total", Unit.NS),
    Column("self_ns", "self", Unit.NS),
    Column("mean_ns", "mean", Unit.NS),
    Column("min_ns", "min", Unit.NS, spare=True),
    Column("max_ns", "max", Unit.NS),
    Column("device_total_ns", "device total", Unit.NS),
    Column("device_self_ns", "device self", Unit.NS),
    Column("stated_share", "share", Unit.SHARE),
    Column("category", "category", Unit.TEXT, detail=True),
    Column("input", "input", Unit.TEXT, detail=True),
)
#: The columns with the numbers of rows.
_NUMBERS = ("calls", "total", "self_time", "mean", "least", "most", "device_total", "device_self_time", "percent")
#: The columns that rows are sorted by, where they are equal in the one before.
_SORTED_BY = ("total_ns", "self_ns", "mean_ns", "stated_share", "count")


def _states_time(row: _Row) -> bool:
    return not row.nested and any(row.numbers[key] is not None for key in _NUMBERS[1:])


def _listed(table: SliceTable, rows_of: dict[int, list[_Row]], sort: str) -> Section:
    """Return the rows of tables of sums; rows that are about one call each are added up by name."""
    several_inputs = len(rows_of) > 1
    section = Section("stated_totals", STATED_TOTALS)
    without = nested = several = of_memory = 0
    for number, rows in rows_of.items():
        name = table.trace.sources[number].name
        single: dict[tuple[str, str, int], list[float]] = {}
        for row in rows:
            if not _states_time(row):
                nested += row.nested
                of_memory += row.peak is not None
                without += not row.nested and row.peak is None
            elif row.single:
                single.setdefault((row.name, row.category, row.track), []).append(row.numbers["total"] or 0)
            else:
                cells = [_whole(row.numbers[key]) for key in _NUMBERS[:-1]]
                share = _share(row.numbers["percent"])
                section.rows.append((row.name, title(table, row.track), *cells, share, row.category, name))
        for (text, category, track), times in single.items():
            several += len(times) > 1
            whole, mean, least, most = map(_whole, (sum(times), sum(times) / len(times), min(times), max(times)))
            if whole is not None and abs(whole) > LIMIT_NS:
                whole = None
            numbers = (len(times), whole, None, mean, least, most, None, None, None)
            section.rows.append((text, title(table, track), *numbers, category, name))
    shown = {"category"} if _mixes_shares(section) else set()
    shown |= {"input"} if several_inputs else set()
    section.columns = tuple(
        replace(column, detail=False) if column.name in shown else column for column in STATED_TOTALS
    )
    asked = place_of(sort, STATED_TOTALS)
    places = [*([] if asked is None else [asked]), *map(section.place, _SORTED_BY)]
    section.rows.sort(key=lambda row: (*(_falling(row[at]) for at in places), str(row[0])))
    names = [table.trace.sources[number].name for number in rows_of]
    stated = f"{len(names)} inputs state" if several_inputs else f"{names[0]} states"
    section.notes.append(f"as {stated} them, not computed from events; empty: not stated")
    section.notes += [f"{quantity(nested, ROWS)} about a part of another one: left out"] if nested else []
    section.notes += [f"{quantity(without, ROWS)} without a time or a share: left out"] if without else []
    section.notes += [f"{quantity(of_memory, ROWS)} about memory: in the section memory"] if of_memory else []
    section.notes += ["rows about a single call were added up by name"] if several else []
    return section


def _mixes_shares(section: Section) -> bool:
    """Return whether a table states shares of several categories, as of API calls and of GPU activities."""
    share, *kind = map(section.place, ("stated_share", "input", "table", "category"))
    kinds = {tuple(row[at] for at in kind) for row in section.rows if row[share] is not None}
    return len({key[:2] for key in kinds}) < len(kinds)


def _falling(cell: Cell) -> tuple[bool, float, str]:
    """Return a key that sorts numbers descending, texts ascending, and None last."""
    return (cell is None, 0, cell) if isinstance(cell, str) else (cell is None, -(cell or 0), "")


def _whole(number: float | None) -> int | None:
    return None if number is None else round(number)


def _share(percent: float | None) -> float | None:
    """Return a percentage as a share with the same digits."""
    return None if percent is None else float(Decimal(repr(percent)).scaleb(-2))


def title(table: SliceTable, track: int) -> str:
    """Return the path of a table of sums for people."""
    return table.title(track).removesuffix(TOTALS_ENDING)


def compared(table: SliceTable, printed: dict[int, list[_Row]]) -> dict[int, str]:
    """Return a sentence for each input that is a table of sums: the number of rows that agree with the events.

    A row agrees if the number of calls is equal, and the total to four digits, either with all calls of its name, or
    with those that are not directly inside another one. Totals leave out durations that were not recorded. A name may
    be that of several kinds of slices, such as ranges on the host and their copies on a device, and a name that was cut
    may stand for several names: the row agrees if one of them does.

    Args:
        table: the slices.
        printed: the rows of the tables, by the numbers of their inputs.
    """
    sources = table.trace.sources
    notes = {}
    known: dict[_Joined, list[_Calls]] = {}
    for number, all_rows in printed.items():
        source, rows = sources[number], [row for row in all_rows if row.calls is not None and row.totals]
        marks = source.marks.totals
        if marks is None or not marks.as_slices:
            continue
        if marks.joined not in known:
            known[marks.joined] = [_calls(table, candidate, marks) for candidate in range(len(sources))]
        slices_of = [[_named(row, calls) for row in rows] for calls in known[marks.joined]]
        other = max(range(len(sources)), key=lambda candidate: sum(map(bool, slices_of[candidate])))
        pairs = list(zip(rows, slices_of[other], strict=True))
        missing = [row.name for row, named in pairs if not named]
        if len(missing) == len(rows):
            continue
        wrong = [row.name for row, named in pairs if named and not any(_agrees(table, group, row) for group in named)]
        agree = len(rows) - len(wrong) - len(missing)
        sentence = f"{source.name}: {agree} of {len(rows)} rows agree with {sources[other].name}"
        on_device = any(len(row.totals) > 1 for row in rows)
        about = ["compared: calls and total, but not what host rows took on the device"] if on_device else []
        notes[number] = "; ".join([sentence, *_some(wrong, "differ"), *_some(missing, "have no slices there"), *about])
    return notes


def _some(names: Sequence[str], state: str) -> list[str]:
    if not names:
        return []
    return [f"{len(names)} {state}: {', '.join(names[:_SHOWN])}{', ...' if len(names) > _SHOWN else ''}"]


def _calls(table: SliceTable, number: int, marks: TotalsMarks) -> _Calls:
    """Return the slices of an input by the name of their row and category.

    By name alone, there is one group for each category, and one of all slices but the copies of others.
    """
    strings, slices, rows = table.trace.strings, table.trace.slices, table.rows_of(number)
    if not len(rows):
        return _Calls({}, [])
    names, categories = slices.name[rows], slices.category[rows]
    order = stable_order([names, categories], table.trace.forget)
    edges = np.flatnonzero(~like_next(order, names, categories)) + 1
    by_kind: dict[_Key, list[Rows]] = {}
    for some in np.split(rows[order], edges):
        key = marks.name_of(strings[slices.name[some[0]]]), strings[slices.category[some[0]]]
        by_kind.setdefault(key, []).append(some)
    rows_of: dict[_Key, list[Rows]] = {}
    for (name, category), parts in by_kind.items():
        for key in {(name, category), (name, "")}:
            rows_of.setdefault(key, []).append(np.concatenate(parts))
    recorded = np.zeros(len(slices.ts), bool)
    recorded[table.recorded] = True
    for (_, category), groups in rows_of.items():
        if not category and len(groups) > 1:
            joined = np.concatenate(groups)
            groups.append(joined[recorded[joined]])
    return _Calls(rows_of, sorted(rows_of))


def _named(row: _Row, calls: _Calls) -> list[Rows]:
    """Return the slices that a row may stand for, in groups; for a name that was cut, those of all names that fit."""
    if (row.name, row.category) in calls.groups:
        return calls.groups[row.name, row.category]
    start = row.name.removesuffix(_CUT)
    if start == row.name:
        return []
    groups: list[Rows] = []
    for at in range(bisect_left(calls.keys, (start, "")), len(calls.keys)):
        name, category = calls.keys[at]
        if not name.startswith(start):
            break
        groups += calls.groups[name, category] if category == row.category else []
    return groups


def _printed(table: SliceTable, inputs: Sequence[int]) -> dict[int, list[_Row]]:
    """Return the rows of each of the inputs, all of which are tables of sums."""
    trace = table.trace
    input_of = inputs_of(trace, "instants")
    rows = np.flatnonzero(np.isin(input_of, inputs))
    input_of = input_of[rows]
    marks_of = {number: trace.sources[number].marks.totals for number in inputs}
    printed: dict[int, list[_Row]] = {number: [] for number in inputs}
    for marks in dict.fromkeys(marks_of.values()):
        assert marks is not None
        some = np.isin(input_of, [number for number in inputs if marks_of[number] == marks])
        for number, row in zip(input_of[some].tolist(), _rows(trace, rows[some], marks), strict=True):
            printed[number].append(row)
    return printed


def _rows(trace: Trace, rows: Rows, marks: TotalsMarks) -> Iterator[_Row]:
    """Yield rows of tables with these marks. A number is not stated if it is not finite, or beyond LIMIT_NS."""
    instants = trace.instants
    kinds = {kind: getattr(marks, kind) for kind in (*_NUMBERS, "peak", "single", "nested")}
    keys = list(dict.fromkeys(key for some in kinds.values() for key in some))
    read = [marks.inside] if marks.inside else keys
    numbers, values = arg_values(trace.args, instants.args_at[rows], instants.args_len[rows], read)
    for row, at in zip(rows.tolist(), numbers.tolist(), strict=True):
        args = dict(zip(read, values[at], strict=True))
        if marks.inside:
            members = args[marks.inside]
            args = {key: members.get(key, ABSENT) if isinstance(members, dict) else ABSENT for key in keys}
        first: dict[str, float | None] = {}
        too_large = 0
        for kind, some in kinds.items():
            number = next((args[key] for key in some if _is_number(args[key])), None)
            if number is not None and kind not in ("calls", "percent"):
                number *= marks.unit_bytes if kind == "peak" else marks.unit_ns
            if number is not None and not abs(number) <= LIMIT_NS:
                number, too_large = None, too_large + 1
            first[kind] = number
        peak, single, nested = (first.pop(kind) for kind in ("peak", "single", "nested"))
        if single is not None:
            first |= {"calls": 1, "total": single}
        name, category = trace.strings[instants.name[row]], trace.strings[instants.category[row]]
        track = int(instants.track[row])
        yield _Row(name, category, track, first, peak, single is not None, nested is not None, too_large)


def _is_number(value: Any) -> bool:
    return value is not ABSENT and isinstance(value, int | float) and not isinstance(value, bool)


def _agrees(table: SliceTable, rows: Rows, printed: _Row) -> bool:
    """Return whether all of the slices, or the outermost ones, agree with the calls and one of the totals.

    The total is that of the slices whose duration was recorded.
    """
    parent, slices = table.nesting.parent, table.trace.slices
    outermost = rows[(parent[rows] == NO_PARENT) | (slices.name[parent[rows]] != slices.name[rows])]
    counted = [some for some in (rows, outermost) if len(some) == printed.calls]
    sums = {int(slices.dur[some[table.timed[some]]].sum()) for some in counted}
    return any(abs(whole - total) <= _CLOSE * abs(total) for whole in sums for total in printed.totals)

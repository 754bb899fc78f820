"""Find inputs that are one recording, given twice or in two forms, or that share samples, and warn of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import combinations
from typing import Any

import numpy as np
from msgspec.structs import replace

from traceconv.model.columns import I32, I64, chunks, distinct_values, occurring
from traceconv.model.source_info import other_forms
from traceconv.model.trace import TABLES, Trace
from traceconv.model.track_table import Track

#: Fewer events than this may be equal by chance.
_LEAST_EVENTS = 8
#: The times that are looked up first. If half of the samples are shared, all are missed once in 2**this. Not tuned.
_LOOKED_UP = 64
#: The columns that hold positions in files, and are not compared.
_PLACES = ("args_at", "origin")


def same_recording(trace: Trace, other: Trace) -> bool:
    """Return whether two traces hold the same recording, as copies or in two forms."""
    return same_events(trace, other) or bool(forms_among([trace, other]))


def forms_among(traces: Sequence[Trace]) -> dict[int, int]:
    """Return the traces that are another form of the recording of another one, each with that one, by numbers."""
    by_marks = defaultdict[object, list[tuple[int, int]]](list)
    for index, trace in enumerate(traces):
        if form := trace.sources[0].form:
            by_marks[form.marks].append((form.rank, index))
    found: dict[int, int] = {}
    for ranked in by_marks.values():
        if len({rank for rank, _ in ranked}) > 1:
            numbers = [index for _, index in sorted(ranked)]
            files = [(form, form.marks(traces[index])) for index in numbers if (form := traces[index].sources[0].form)]
            found |= {numbers[at]: numbers[owner] for at, owner in other_forms(files).items()}
    return found


def same_events(trace: Trace, other: Trace) -> bool:
    """Return whether all events of two traces agree in written times, values, stacks and args.

    Different recordings almost always differ in the first comparison, which is cheap.
    """
    if trace.sources[0].format != other.sources[0].format or trace.counts() != other.counts():
        return False
    if sum(trace.counts().values()) < _LEAST_EVENTS:
        return False
    if trace.strings != other.strings or trace.frames != other.frames or _tracks(trace) != _tracks(other):
        return False
    tables = [(getattr(trace, name), getattr(other, name)) for name in TABLES]
    same = all(
        np.array_equal(getattr(table, column.name), getattr(other_table, column.name))
        for table, other_table in tables
        for column in fields(table)
        if column.name not in _PLACES
    )
    return same and all(_same_args(trace, other, *pair) for pair in tables)


def _tracks(trace: Trace) -> list[Track]:
    """Return the tracks of one input, without the name of those that are named after their file."""
    file = trace.sources[0].name
    return [replace(track, name="") if track.name == file else track for track in trace.tracks]


def _same_args(trace: Trace, other: Trace, table: Any, other_table: Any) -> bool:
    """Return whether the args of two equal tables have the same bytes."""
    if not hasattr(table, "args_at"):
        return True
    return all(
        np.array_equal(
            trace.args.joined(table.args_at[rows], table.args_len[rows]),
            other.args.joined(other_table.args_at[rows], other_table.args_len[rows]),
        )
        for rows in chunks(len(table.args_len))
    )


class _SharedSamples:
    """Counts the samples that inputs have in common, at the coarser resolution of two; each is sorted once for each."""

    def __init__(self, traces: Sequence[Trace]) -> None:
        self._traces = traces
        self._threads: dict[tuple[str, int], int] = {}
        self._sorted: dict[tuple[int, int], tuple[I32, I64]] = {}
        self._steps = [_resolution(trace) for trace in traces]

    def count(self, first: int, second: int) -> int:
        """Return how many samples agree in event, thread and time; 0 if some that are looked up show less than half."""
        if not self._steps[first] or not self._steps[second]:
            return 0
        step = max(self._steps[first], self._steps[second])
        samples = (self._thread_times(index, step) for index in (first, second))
        short, long = sorted(samples, key=lambda rows: len(rows[1]))
        if not len(short[1]):
            return 0
        some = short[1][np.random.default_rng(0).integers(len(short[1]), size=_LOOKED_UP)]
        at = np.minimum(np.searchsorted(long[1], some), len(long[1]) - 1)
        if not np.any(long[1][at] == some):
            return 0
        return len(short[1]) + len(long[1]) - len(_different(*map(np.concatenate, zip(short, long, strict=True)))[1])

    def _thread_times(self, index: int, step: int) -> tuple[I32, I64]:
        """Return the distinct samples of an input by time: numbers for their event and thread, and times in steps."""
        if (index, step) not in self._sorted:
            trace, samples = self._traces[index], self._traces[index].samples
            pairs = samples.name * np.int64(len(trace.tracks)) + samples.track
            occur = distinct_values(pairs)
            numbers = np.full(len(occur), -1, np.int32)
            for at, (name, track) in enumerate(zip(*np.divmod(occur, len(trace.tracks)), strict=True)):
                tid = trace.tracks[track].tid
                if tid is not None:
                    numbers[at] = self._threads.setdefault((trace.strings[name], tid), len(self._threads))
            threads = numbers[np.searchsorted(occur, pairs)]
            self._sorted[index, step] = _different(threads[threads >= 0], samples.ts[threads >= 0] // step)
        return self._sorted[index, step]


def _resolution(trace: Trace) -> int:
    """Return the coarsest resolution of the times of samples, ns; 0 without samples."""
    clocks = (trace.clocks[trace.tracks[track].clock] for track in occurring(trace.samples.track))
    return max((clock.resolution_ns for clock in clocks), default=0)


def _different(threads: I32, times: I64) -> tuple[I32, I64]:
    """Return the distinct pairs, by time; `np.unique` would load numpy's masked arrays."""
    order = np.lexsort((threads, times))
    threads, times = threads[order], times[order]
    new = np.append(True, (threads[1:] != threads[:-1]) | (times[1:] != times[:-1]))[: len(times)]
    return threads[new], times[new]


def repeated(traces: Sequence[Trace]) -> dict[int, int]:
    """Return for each input that repeats another one that input, by numbers; for all of a recording it is the same one.

    It does if the files have the same content, or hold the same recording, maybe in another form.
    """
    copies = _copies(traces)
    single = [index for index in range(len(traces)) if index not in copies]
    forms = {single[at]: single[owner] for at, owner in forms_among([traces[index] for index in single]).items()}
    return {index: forms.get(first, first) for index, first in copies.items()} | forms


def _copies(traces: Sequence[Trace]) -> dict[int, int]:
    """Return for each input with the content or all the events of an earlier one the first such input, by numbers."""
    repeats: dict[int, int] = {}
    contents: dict[bytes, int] = {}
    candidates = defaultdict[object, list[int]](list)  # there may be many inputs: others are not compared
    for index, trace in enumerate(traces):
        source = trace.sources[0]
        begins = [table.ts[:1].tobytes() for _, table in trace.timed_tables()]
        others = candidates[source.format, *trace.counts().values(), *begins]
        first = contents.get(source.digest)
        if first is None:
            first = next((earlier for earlier in others if same_events(traces[earlier], trace)), None)
        if first is not None:
            repeats[index] = first
            continue
        others.append(index)
        if source.digest:
            contents[source.digest] = index
    return repeats


def warnings_of_duplicates(
    traces: Sequence[Trace], hosts: Sequence[str], repeats: Mapping[int, int]
) -> Iterator[tuple[int, str]]:
    """Yield a warning for each input that repeats another one, or has the samples of another one: both are drawn.

    Args:
        hosts: the host of the clocks of each input, "" if not known.
    """
    samples_of = _SharedSamples(traces)
    for (first, earlier), (index, trace) in combinations(enumerate(traces), 2):
        name = earlier.sources[0].name
        if repeats.get(index, index) == repeats.get(first, first):
            if first == repeats.get(index, min(index, first)):
                text = f"its events are those of {name}: the same recording is drawn twice; leave one of the two out"
                yield index, text
        elif not hosts[first] or not hosts[index] or hosts[first] == hosts[index]:
            shared, samples = samples_of.count(first, index), len(trace.samples.ts)
            if shared >= _LEAST_EVENTS and 2 * shared >= min(len(earlier.samples.ts), samples):
                text = f"{shared} of its {samples} samples are samples of {name} (same events, threads and times)"
                yield index, f"{text}: they are drawn twice; leave one of the two out"

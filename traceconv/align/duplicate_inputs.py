"""Two inputs that are one and the same recording, or hold the same samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from itertools import combinations
from typing import Any

import numpy as np

from traceconv.align.messages import Message, Text
from traceconv.model.trace import I64, TABLES, Trace, Track, occurring

#: Fewer events than this may be equal by chance.
_LEAST_EVENTS = 8
#: Where something stands in the file is no part of what was recorded.
_PLACES = ("args_at", "origin")


def same_recording(one: Trace, other: Trace) -> bool:
    """Whether two traces say the same of the same things: all events with times as written, values, stacks and args.

    Almost all pairs differ in what is compared first, which costs next to nothing.
    """
    if one.sources[0].format != other.sources[0].format or one.counts() != other.counts():
        return False
    if sum(one.counts().values()) < _LEAST_EVENTS:
        return False
    if one.strings != other.strings or one.frames != other.frames or _tracks(one) != _tracks(other):
        return False
    tables = [(getattr(one, name), getattr(other, name)) for name in TABLES]
    return all(_same_columns(*pair) for pair in tables) and all(_same_args(one, other, *pair) for pair in tables)


def _tracks(trace: Trace) -> list[Track]:
    """The tracks of one input; those that are called like its file without that name."""
    file = trace.sources[0].name
    return [replace(track, name="") if track.name == file else track for track in trace.tracks]


def _same_columns(table: Any, other: Any) -> bool:
    columns = [column.name for column in fields(table) if column.name not in _PLACES]
    return all(np.array_equal(getattr(table, column), getattr(other, column)) for column in columns)


def _same_args(one: Trace, other: Trace, table: Any, its: Any) -> bool:
    """Whether the args of rows that are otherwise equal, and so are as long, have the same bytes."""
    if not hasattr(table, "args_at"):
        return True
    rows = np.flatnonzero(table.args_len)
    places = (column[rows].tolist() for column in (table.args_at, its.args_at, table.args_len))
    return all(one.args.get(here, n) == other.args.get(there, n) for here, there, n in zip(*places, strict=True))


def shared_samples(one: Trace, other: Trace) -> int:
    """How many samples of two inputs are of one event, thread and time, as written and as far as both have digits.

    A recording of perf and what is printed of it have nothing else in common.
    """
    if not len(one.samples.ts) or not len(other.samples.ts):
        return 0
    step = max(
        trace.clocks[trace.tracks[track].clock].resolution_ns
        for trace in (one, other)
        for track in occurring(trace.samples.track)
    )
    names: dict[str, int] = {}
    first, second = (_thread_times(trace, step, names) for trace in (one, other))
    either = _different(np.concatenate((first, second), axis=1))
    return len(first[0]) + len(second[0]) - len(either[0])


def _thread_times(trace: Trace, step: int, names: dict[str, int]) -> I64:
    """The events, threads and times of the samples of an input, each once; times in steps.

    Args:
        trace: the input.
        step: ns.
        names: a number for each name of an event; new ones are added.
    """
    samples = trace.samples
    tids = np.array([-1 if track.tid is None else track.tid for track in trace.tracks], np.int64)[samples.track]
    events = np.zeros(len(trace.strings), np.int64)
    for name in occurring(samples.name):
        events[name] = names.setdefault(trace.strings[name], len(names))
    return _different(np.stack((events[samples.name], tids, samples.ts // step))[:, tids >= 0])


def _different(pairs: I64) -> I64:
    """Columns in order, each once; `np.unique` would load numpy's masked arrays."""
    pairs = pairs[:, np.lexsort(pairs)]
    return pairs[:, np.any(np.diff(pairs, axis=1, prepend=-1), axis=0)]


def warnings_of_duplicates(traces: Sequence[Trace], hosts: Sequence[str]) -> Iterator[tuple[int, Message]]:
    """For inputs that are an earlier one, or have its samples, what to say of that: both are drawn.

    Args:
        traces: the inputs.
        hosts: for each the host of its clocks, "" where nothing says it.
    """
    for (first, one), (index, other) in combinations(enumerate(traces), 2):
        name = one.sources[0].name
        if same_recording(one, other):
            yield index, Text.SAME_RECORDING(other=name)
        elif not hosts[first] or not hosts[index] or hosts[first] == hosts[index]:
            shared, samples = shared_samples(one, other), len(other.samples.ts)
            if shared >= _LEAST_EVENTS and 2 * shared >= min(len(one.samples.ts), samples):
                yield index, Text.SAME_SAMPLES(shared=shared, samples=samples, other=name)

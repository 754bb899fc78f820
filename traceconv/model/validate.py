"""What must hold for every trace, whoever made it. A violation is a bug in traceconv, not in the input."""

from __future__ import annotations

from typing import Any

import numpy as np

from traceconv import kernel
from traceconv.model.trace import I64, NO_CPU, NO_TRACK, TABLES, TEXTS, Slices, Trace, TrackKind, column_types

_DEEP = 1 << 10
_TEXT_COLUMNS = [(table, text) for table, cls in TABLES.items() for text in TEXTS if text in column_types(cls)]


class InvalidTrace(AssertionError):
    """A trace breaks a rule of the representation; the argument says which."""


def validate(trace: Trace) -> None:
    """Check a laid-out trace: columns, references, order, nesting, balance. Costs a few passes over the columns.

    Raises:
        InvalidTrace: with the rule that is broken and the first row that breaks it.
    """
    _check_tracks(trace)
    _check_frames(trace)
    for name in TABLES:
        _check_columns(name, getattr(trace, name))
    for name, table in trace.timed_tables():
        _require(_in_range(table.track, len(trace.tracks)), f"{name}: track out of range")
        _require(_sorted(table), f"{name}: not sorted by track and time")
    for name, text in _TEXT_COLUMNS:
        _require(_in_range(getattr(getattr(trace, name), text), len(trace.strings)), f"{name}: {text} out of range")
    for name in ("slices", "instants", "logs"):
        table = getattr(trace, name)
        ends = table.args_at + table.args_len
        inside = (table.args_at >= 0) & (table.args_len >= 0) & (ends <= len(trace.args))
        _require(inside, f"{name}: args out of range")
    slices, flows = trace.slices, trace.flows
    _require(slices.dur >= 0, "slices: negative duration")
    for column in (flows.from_slice, flows.to_slice):
        _require(_in_range(column, len(slices.ts)), "flows: slice out of range")
    on_lines = [track.kind not in (TrackKind.PROCESS, TrackKind.COUNTER) for track in trace.tracks]
    _require(np.array(on_lines, bool)[trace.logs.track], "logs: on the track of a process or counter")
    _require(_in_range(trace.samples.stack + 1, len(trace.frames) + 1), "samples: stack out of range")
    _require(trace.samples.cpu >= NO_CPU, "samples: cpu out of range")
    _check_nesting(trace)
    for source in trace.sources:
        if not source.balance.even:
            raise InvalidTrace(f"the balance of {source.name} is not even: {source.balance.describe()}")


def _require(holds: Any, rule: str) -> None:
    if not np.all(holds):
        raise InvalidTrace(f"{rule} (row {int(np.argmin(holds))})")


def _in_range(column: Any, size: int) -> Any:
    return (column >= 0) & (column < size)


def _sorted(table: Any) -> Any:
    step = np.diff(table.track)
    return (step > 0) | ((step == 0) & (np.diff(table.ts) >= 0))


def _check_columns(name: str, table: Any) -> None:
    lengths = {column: len(getattr(table, column)) for column in column_types(type(table))}
    if len(set(lengths.values())) > 1:
        raise InvalidTrace(f"{name}: columns of different lengths: {lengths}")


def _check_frames(trace: Trace) -> None:
    for number, frame in enumerate(trace.frames):
        if not -1 <= frame.parent < number:
            raise InvalidTrace(f"frame {number} ({frame.name!r}) does not stand behind its parent, {frame.parent}")


def _is_process(trace: Trace, track: int) -> bool:
    return track != NO_TRACK and trace.tracks[track].kind is TrackKind.PROCESS


def _check_tracks(trace: Trace) -> None:
    for number, track in enumerate(trace.tracks):
        if not NO_TRACK <= track.lane_of < len(trace.tracks):
            raise InvalidTrace(f"track {number} ({track.name!r}): lane_of out of range")
        if not 0 <= track.clock < len(trace.clocks):
            raise InvalidTrace(f"track {number} ({track.name!r}): clock out of range")
        if not 0 <= track.source < len(trace.sources):
            raise InvalidTrace(f"track {number} ({track.name!r}): source out of range")
        if track.parent < NO_TRACK:
            raise InvalidTrace(f"track {number} ({track.name!r}): parent out of range")
        if track.parent >= number:
            raise InvalidTrace(f"track {number} ({track.name!r}) stands before its parent")
        if track.kind is TrackKind.PROCESS and track.parent != NO_TRACK:
            raise InvalidTrace(f"process {number} ({track.name!r}) has a parent")
        if track.kind is TrackKind.THREAD and not _is_process(trace, track.parent):
            raise InvalidTrace(f"thread {number} ({track.name!r}) belongs to no process")


def _nest_surely(slices: Slices, ends: I64) -> bool:
    """Whether all slices nest, no deeper than the kernel looks; without a kernel, nobody knows."""
    nesting = kernel.module("nesting")
    if nesting is None:
        return False
    count = len(slices.ts)
    tracks, starts, stops = map(np.ascontiguousarray, (slices.track, slices.ts, ends))
    return bool(nesting.first_crossing(tracks, starts, stops, 0, count, _DEEP) == count)


def _check_nesting(trace: Trace) -> None:
    """Each slice ends no later than the slice around it."""
    slices = trace.slices
    ends = slices.ts + slices.dur
    follows = (np.diff(slices.track) > 0) | (slices.ts[1:] >= ends[:-1])
    if follows.all() or _nest_surely(slices, ends):
        return
    open_ends: list[int] = []
    on_track = -1
    for row, (track, start, end) in enumerate(
        zip(slices.track.tolist(), slices.ts.tolist(), ends.tolist(), strict=True)
    ):
        if track != on_track:
            on_track, open_ends = track, []
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        if open_ends and end > open_ends[-1]:
            raise InvalidTrace(f"slice {row} crosses the slice around it on track {track}")
        open_ends.append(end)

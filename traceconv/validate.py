"""What must hold for every trace, whoever made it. A violation is a bug in traceconv, not in the input."""

from __future__ import annotations

from typing import Any

import numpy as np

from traceconv.ir.trace import NO_TRACK, Trace, TrackKind

_TIMED = ("slices", "instants", "counters", "samples")


class InvalidTrace(AssertionError):
    """A trace breaks a rule of the representation; the argument says which."""


def validate(trace: Trace) -> None:
    """Check a laid-out trace: references, order, nesting, balance. Costs a few passes over the columns.

    Raises:
        InvalidTrace: with the rule that is broken and the first row that breaks it.
    """
    _check_tracks(trace)
    for name in _TIMED:
        table = getattr(trace, name)
        _require(_in_range(table.track, len(trace.tracks)), f"{name}: track out of range")
        _require(_sorted(table), f"{name}: not sorted by track and time")
    for name in ("slices", "instants"):
        table = getattr(trace, name)
        _require(_in_range(table.name, len(trace.strings)), f"{name}: name out of range")
        _require(_in_range(table.category, len(trace.strings)), f"{name}: category out of range")
        ends = table.args_at + table.args_len
        _require((table.args_at >= 0) & (ends <= len(trace.args)), f"{name}: args out of range")
    slices, flows = trace.slices, trace.flows
    _require(slices.dur >= 0, "slices: negative duration")
    for column in (flows.from_slice, flows.to_slice):
        _require(_in_range(column, len(slices.ts)), "flows: slice out of range")
    _require(_in_range(trace.samples.stack, len(trace.frames)), "samples: stack out of range")
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


def _check_tracks(trace: Trace) -> None:
    for number, track in enumerate(trace.tracks):
        if track.parent >= number:
            raise InvalidTrace(f"track {number} ({track.name!r}) stands before its parent")
        if track.kind is TrackKind.PROCESS and track.parent != NO_TRACK:
            raise InvalidTrace(f"process {number} ({track.name!r}) has a parent")
        if track.kind is TrackKind.THREAD and trace.tracks[track.parent].kind is not TrackKind.PROCESS:
            raise InvalidTrace(f"thread {number} ({track.name!r}) belongs to no process")


def _check_nesting(trace: Trace) -> None:
    """Each slice ends no later than the slice around it."""
    slices = trace.slices
    ends = slices.ts + slices.dur
    follows = (np.diff(slices.track) > 0) | (slices.ts[1:] >= ends[:-1])
    if follows.all():
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

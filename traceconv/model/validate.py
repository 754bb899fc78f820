"""Check the rules that hold for every trace. A violation is a bug of the importer or of traceconv."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from traceconv import kernel
from traceconv.model.ordering import overlapping_chunks
from traceconv.model.trace import NO_CPU, NO_TRACK, TABLES, TEXTS, TIMED, Slices, Trace, TrackKind, column_types

_DEEP = 1 << 10


class InvalidTrace(AssertionError):
    """A trace breaks a rule of the representation, which the argument names."""


def validate(trace: Trace) -> None:
    """Check a laid-out trace: columns, references, order, nesting, balance. Costs a few passes over the columns.

    Raises:
        InvalidTrace: with the rule that is broken and the first row that breaks it.
    """
    _check_tracks(trace)
    _check_frames(trace)
    for name in TABLES:
        _check_columns(name, getattr(trace, name))
        for rule, holds, columns in _rules(trace, name):
            _require_of_rows(rule, holds, [getattr(getattr(trace, name), column) for column in columns])
            trace.forget()
    _check_nesting(trace)
    trace.forget()
    for source in trace.sources:
        if not source.balance.even:
            raise InvalidTrace(f"the balance of {source.name} is not even: {source.balance.describe()}")


def _rules(trace: Trace, name: str) -> Iterator[tuple[str, Callable[..., Any], tuple[str, ...]]]:
    """Yield the rules for the rows of a table: the rule in words, a function of columns, and the names of these."""
    if name in TIMED:
        yield f"{name}: track out of range", _in_range(len(trace.tracks)), ("track",)
        yield f"{name}: not sorted by track and time", _sorted, ("track", "ts")
    for text in TEXTS:
        if text in column_types(TABLES[name]):
            yield f"{name}: {text} out of range", _in_range(len(trace.strings)), (text,)
    if name in ("slices", "instants", "logs"):
        size = len(trace.args)
        yield f"{name}: args out of range", lambda at, length: _in_range(size + 1)(at + length), ("args_at", "args_len")
        yield f"{name}: args out of range", lambda at, length: (at >= 0) & (length >= 0), ("args_at", "args_len")
    if name == "slices":
        yield "slices: negative duration", lambda dur: dur >= 0, ("dur",)
    elif name == "flows":
        for column in ("from_slice", "to_slice"):
            yield "flows: slice out of range", _in_range(len(trace.slices.ts)), (column,)
    elif name == "logs":
        kind = trace.tracks.column("kind")
        on_lines = (kind != TrackKind.PROCESS) & (kind != TrackKind.COUNTER)
        yield "logs: on the track of a process or counter", on_lines.__getitem__, ("track",)
    elif name == "samples":
        yield "samples: stack out of range", lambda stack: _in_range(len(trace.frames) + 1)(stack + 1), ("stack",)
        yield "samples: cpu out of range", lambda cpu: cpu >= NO_CPU, ("cpu",)


def _require_of_rows(rule: str, holds: Callable[..., Any], columns: Sequence[Any]) -> None:
    """Check a rule in chunks of rows; chunks overlap by one row for rules about neighbours. Raises InvalidTrace."""
    for rows in overlapping_chunks(len(columns[0])):
        holding = holds(*(column[rows] for column in columns))
        if not np.all(holding):
            raise InvalidTrace(f"{rule} (row {rows.start + int(np.argmin(holding))})")


def _in_range(size: int) -> Callable[[Any], Any]:
    return lambda column: (column >= 0) & (column < size)


def _sorted(track: Any, ts: Any) -> Any:
    step = np.diff(track)
    return (step > 0) | ((step == 0) & (np.diff(ts) >= 0))


def _check_columns(name: str, table: Any) -> None:
    lengths = {column: len(getattr(table, column)) for column in column_types(type(table))}
    if len(set(lengths.values())) > 1:
        raise InvalidTrace(f"{name}: columns of different lengths: {lengths}")


def _check_frames(trace: Trace) -> None:
    for number, frame in enumerate(trace.frames):
        if not -1 <= frame.parent < number:
            raise InvalidTrace(f"frame {number} ({frame.name!r}) does not stand behind its parent, {frame.parent}")


def _check_tracks(trace: Trace) -> None:
    tracks = trace.tracks
    kind, parent, lane_of = tracks.column("kind"), tracks.column("parent"), tracks.column("lane_of")
    number = np.arange(len(tracks))
    _require_of_tracks(trace, "lane_of out of range", _in_range(len(tracks) + 1)(lane_of + 1))
    _require_of_tracks(trace, "clock out of range", _in_range(len(trace.clocks))(tracks.column("clock")))
    _require_of_tracks(trace, "source out of range", _in_range(len(trace.sources))(tracks.column("source")))
    _require_of_tracks(trace, "parent out of range", parent >= NO_TRACK)
    _require_of_tracks(trace, "stands before its parent", parent < number)
    _require_of_tracks(trace, "a process has a parent", (kind != TrackKind.PROCESS) | (parent == NO_TRACK))
    in_process = (parent != NO_TRACK) & (kind[parent] == TrackKind.PROCESS)
    _require_of_tracks(trace, "a thread belongs to no process", (kind != TrackKind.THREAD) | in_process)


def _require_of_tracks(trace: Trace, rule: str, holds: npt.NDArray[np.bool_]) -> None:
    if not np.all(holds):
        number = int(np.argmin(holds))
        raise InvalidTrace(f"track {number} ({trace.tracks[number].name!r}): {rule}")


def _nest_surely(slices: Slices) -> bool:
    """Return True if the compiled kernel finds that all slices nest; False if not, or without the kernel."""
    nesting = kernel.module("nesting")
    if nesting is None:
        return False
    count = len(slices.ts)
    columns = map(np.ascontiguousarray, (slices.track, slices.ts, slices.dur))
    return bool(nesting.first_crossing(*columns, 0, count, _DEEP) == count)


def _follow(slices: Slices, rows: slice) -> bool:
    """Return whether each slice of these rows ends before the next one starts, or is the last one of its track."""
    track, ts, dur = slices.track[rows], slices.ts[rows], slices.dur[rows]
    return bool(np.all((track[1:] > track[:-1]) | (ts[1:] >= ts[:-1] + dur[:-1])))


def _check_nesting(trace: Trace) -> None:
    """Check that each slice ends no later than the slice around it. Raises InvalidTrace."""
    slices = trace.slices
    for rows in overlapping_chunks(len(slices.ts)):
        if not _follow(slices, rows):
            break
        trace.forget()
    else:
        return
    if _nest_surely(slices):
        return
    ends = slices.ts + slices.dur
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

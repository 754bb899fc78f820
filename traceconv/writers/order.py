"""Order the events of a file by time, and at equal times so that slices nest.

Intervals are half open. At one time, per track: ends come first, inner before outer; then starts, outer before inner,
where a slice of duration 0 ends at once; then instants, counters, samples, log entries. Across tracks the order does
not matter. All tables are sorted by (track, ts, -dur), so the rows of each of these groups are in order, and a stable
sort by time of the concatenated groups gives the file order.

Also choose the window of time to show first, for recordings that are much longer than their work.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from traceconv.model.columns import I64, occurring
from traceconv.model.numbers import EVER, FOREVER
from traceconv.model.trace import TIMED, Trace

_BLOCK = 16 * 1024
_WINDOW = 512 * 1024  # the approximate number of entries of a window
_MAX_WINDOWS = 256
_SAMPLED = 64 * 1024


class Kind(enum.IntEnum):
    """The kind of an entry of the file."""

    END = 0
    BEGIN = 1
    INSTANT = 2
    COUNTER = 3
    SAMPLE = 4
    LOG = 5


class FileOrder(Struct, frozen=True):
    """Entries of the file: time in ns, kind, and row in the table."""

    ts: I64
    kind: npt.NDArray[np.uint8]
    row: I64

    def places_of(self, kind: Kind) -> npt.NDArray[Any]:
        """Return the positions of the entries of a kind."""
        return np.flatnonzero(self.kind == kind)


def file_order(trace: Trace) -> Iterator[FileOrder]:
    """Yield the entries of a file with starts and ends, in order, in chunks that fit into a cache.

    There are two entries per slice, and sorting takes a multiple of their memory: so it is done for one window of time
    after the other.
    """
    slices = trace.slices
    windows = Windows(
        [(slices.ts, None), (slices.ts, slices.dur), *((table.ts, None) for table in _points(trace).values())]
    )
    trace.forget()
    for number in range(windows.count):
        ts, kinds, rows = _entries(trace, windows, number)
        order = np.argsort(ts, kind="stable")
        for start in range(0, len(order), _BLOCK):
            chunk = order[start : start + _BLOCK]
            yield FileOrder(ts[chunk], kinds[chunk], rows[chunk])


class Windows:
    """Rows of columns of times, divided into windows, since sorting all at once takes a multiple of their memory.

    Args:
        columns: starts in ns; with durations, ends are divided.

    Attributes:
        count: the number of windows, at most 256.
    """

    def __init__(self, columns: Sequence[tuple[I64, I64 | None]]) -> None:
        bounds = _bounds(columns)
        self.count = 1 + len(bounds)
        self._windows = [_window_of(bounds, *column) for column in columns]

    def rows(self, column: int, window: int) -> I64:
        """Return the rows of a column in a window."""
        return np.flatnonzero(self._windows[column] == window)


def _bounds(columns: Sequence[tuple[I64, I64 | None]]) -> I64:
    """Return the start times of all windows but the first; rows of equal time are in one window."""
    entries = sum(len(ts) for ts, _ in columns)
    wanted = min(-(-entries // _WINDOW), _MAX_WINDOWS)
    if wanted <= 1:
        return np.empty(0, np.int64)
    step = -(-entries // _SAMPLED)
    times = np.sort(np.concatenate([ts[::step] if dur is None else ts[::step] + dur[::step] for ts, dur in columns]))
    bounds: I64 = np.unique(times[np.arange(1, wanted) * len(times) // wanted])
    return bounds


def _entries(trace: Trace, windows: Windows, window: int) -> tuple[I64, npt.NDArray[np.uint8], I64]:
    """Return times, kinds and rows of the entries in a window, to be sorted stably by time."""
    slices = trace.slices
    late = windows.rows(1, window)[::-1]
    late = late[slices.dur[late] > 0]
    # Each start, and directly after it the end of a slice of duration 0.
    begins = windows.rows(0, window)
    begins = np.repeat(begins, 1 + (slices.dur[begins] == 0))
    begin_kinds = np.full(len(begins), Kind.BEGIN, np.uint8)
    begin_kinds[1:][begins[1:] == begins[:-1]] = Kind.END
    rows = [late, begins]
    times = [slices.ts[late] + slices.dur[late], slices.ts[begins]]
    kinds = [np.full(len(late), Kind.END, np.uint8), begin_kinds]
    for column, (kind, table) in enumerate(_points(trace).items(), 2):
        rows_of_window = windows.rows(column, window)
        rows.append(rows_of_window)
        times.append(table.ts[rows_of_window])
        kinds.append(np.full(len(rows_of_window), kind, np.uint8))
    return np.concatenate(times), np.concatenate(kinds), np.concatenate(rows)


def _points(trace: Trace) -> dict[Kind, Any]:
    """Return the tables without durations, in the order of their entries at equal times."""
    tables = trace.instants, trace.counters, trace.samples, trace.logs
    return dict(zip((Kind.INSTANT, Kind.COUNTER, Kind.SAMPLE, Kind.LOG), tables, strict=True))


def _window_of(bounds: I64, ts: I64, dur: I64 | None) -> npt.NDArray[np.uint8]:
    """Return the window of each start, or of each end if `dur` is given."""
    windows = np.zeros(len(ts), np.uint8)
    if len(bounds):
        for start in range(0, len(ts), _BLOCK):
            part = slice(start, start + _BLOCK)
            times = ts[part] if dur is None else ts[part] + dur[part]
            windows[part] = np.searchsorted(bounds, times, "right")
    return windows


Span = tuple[int, int]

#: The largest share of the trace that is worth a window; the share of the window added at each side.
_MOST, _MARGIN = 0.8, 0.02
#: A ratio of durations from which on one is "much longer".
_MUCH_LONGER = 1.5


def window(trace: Trace) -> Span | None:
    """Return start and end (ns) of the window to show first; None for the whole trace.

    It spans all slices, samples and log entries, but not instants and counter values, which may lie far from the work.
    If an input is much longer than the time that all inputs share, it is the shared time: a start-up that only one of
    them recorded does not hide the work. For inputs far from each other it is the time of the longest.
    """
    whole = trace.span()
    spans = _near(sorted(_spans(trace)))
    if whole is None or not spans:
        return None
    start, end = _span_of(spans)
    common = max(span[0] for span in spans), min(span[1] for span in spans)
    if 0 < (common[1] - common[0]) * _MUCH_LONGER < max(span[1] - span[0] for span in spans):
        start, end = common
    margin = int((end - start) * _MARGIN)
    start, end = max(start - margin, whole[0]), min(end + margin, whole[1])
    return (start, end) if 0 < end - start < _MOST * (whole[1] - whole[0]) else None


def _spans(trace: Trace) -> Iterator[Span]:
    """Yield the time span of the work of each input, except tables of totals."""
    waiting = {number for number, source in enumerate(trace.sources) if not source.belongs_to}
    # Samples and log entries of an input may be on threads of another one, slices may not.
    of_work = [("slices",), ("samples", "logs")] if len(trace.sources) > 1 else [("slices", "samples", "logs")]
    asides, source = _asides(trace), trace.tracks.column("source")
    for tables in (*of_work, TIMED):
        firsts, lasts = trace.extents(tables)
        counts = firsts <= lasts
        if tables is not TIMED:
            counts[list(asides)] = False
        starts, ends = np.full(len(trace.sources), FOREVER), np.full(len(trace.sources), EVER)
        np.minimum.at(starts, source[counts], firsts[counts])
        np.maximum.at(ends, source[counts], lasts[counts])
        of_tables = waiting.intersection(np.flatnonzero(starts <= ends).tolist())
        waiting -= of_tables
        yield from (
            (int(starts[number]), int(ends[number])) for number in sorted(of_tables) if starts[number] < ends[number]
        )


def is_aside(trace: Trace) -> npt.NDArray[np.bool_]:
    """Return which slices their format declares as asides: they repeat others, or are about the recording itself."""
    aside = np.zeros(len(trace.slices.ts), bool)
    for number, source in enumerate(trace.sources):
        asides = frozenset(source.marks.asides)
        names = [index for index, text in enumerate(trace.strings) if text in asides] if asides else []
        if names:
            is_mine = trace.tracks.column("source") == number
            aside |= np.isin(trace.slices.category, names) & is_mine[trace.slices.track]
    return aside


def _asides(trace: Trace) -> set[int]:
    """Return the tracks that have only asides."""
    aside, track = is_aside(trace), trace.slices.track
    return set(occurring(track[aside])).difference(occurring(track[~aside])) if aside.any() else set()


def _near(spans: Sequence[Span]) -> Sequence[Span]:
    """Return the sorted spans; if they cover little of their range, only the longest group of overlapping ones."""
    runs: list[list[Span]] = []
    for span in spans:
        if runs and span[0] <= _span_of(runs[-1])[1]:
            runs[-1].append(span)
        else:
            runs.append([span])
    lengths = [end - start for start, end in map(_span_of, runs)]
    if len(runs) < 2 or sum(lengths) * _MUCH_LONGER >= spans[-1][0] - spans[0][0]:
        return spans
    return runs[lengths.index(max(lengths))]


def _span_of(spans: Sequence[Span]) -> Span:
    """Return the first start and the last end, ns."""
    return min(span[0] for span in spans), max(span[1] for span in spans)

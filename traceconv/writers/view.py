"""Choose the window of time to show first, for recordings that are much longer than their work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traceconv.model.numbers import EVER, FOREVER
from traceconv.model.trace import TIMED, Trace

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
    start, end = _bounds(spans)
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
        yield from ((int(starts[one]), int(ends[one])) for one in sorted(of_tables) if starts[one] < ends[one])


def _asides(trace: Trace) -> set[int]:
    """Return the tracks that have only slices about the recording itself, such as how long it took."""
    sources_aside: set[int] = set()
    for number, source in enumerate(trace.sources):
        asides = frozenset(source.marks.asides)
        names = [index for index, text in enumerate(trace.strings) if text in asides] if asides else []
        if names:
            is_aside = np.isin(trace.slices.category, names)
            of_source = {
                track
                for track in np.unique(trace.slices.track[is_aside]).tolist()
                if trace.tracks[track].source == number
            }
            sources_aside |= of_source.difference(np.unique(trace.slices.track[~is_aside]).tolist())
    return sources_aside


def _near(spans: Sequence[Span]) -> Sequence[Span]:
    """Return the sorted spans; if they cover little of their range, only the longest group of overlapping ones."""
    runs: list[list[Span]] = []
    for span in spans:
        if runs and span[0] <= _bounds(runs[-1])[1]:
            runs[-1].append(span)
        else:
            runs.append([span])
    lengths = [end - start for start, end in map(_bounds, runs)]
    if len(runs) < 2 or sum(lengths) * _MUCH_LONGER >= spans[-1][0] - spans[0][0]:
        return spans
    return runs[lengths.index(max(lengths))]


def _bounds(spans: Sequence[Span]) -> Span:
    """Return the first start and the last end, ns."""
    return min(span[0] for span in spans), max(span[1] for span in spans)

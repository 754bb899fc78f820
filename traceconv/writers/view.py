"""Where to look first: the window of time in which the work is, where a recording is much longer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traceconv.model.trace import TIMED, Trace

Span = tuple[int, int]

#: Only a window that leaves out so much of the trace is worth it; what is added to each side of it.
_MOST, _MARGIN = 0.8, 0.02
#: What is so many times as long as a part of it is much longer.
_MUCH_LONGER = 1.5


def window(trace: Trace) -> Span | None:
    """Return the start and the end in ns of the time to show first; None where that is the whole trace.

    It is the time of all slices, samples and log entries: marks and counter values may lie far from the work. Where one
    of several inputs is much longer than the time that they have in common, it is that time: a start-up that only one
    of them recorded does not hide the work. Of inputs far from each other it is the time of the longest.
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
    """Yield the time of each input that says when it worked: no tables of totals."""
    waiting = {number for number, source in enumerate(trace.sources) if not source.belongs_to}
    # Samples and log entries of an input may stand on threads of another one, slices do not.
    of_work = [("slices",), ("samples", "logs")] if len(trace.sources) > 1 else [("slices", "samples", "logs")]
    for tables in (*of_work, TIMED):
        found: dict[int, Span] = {}
        for track, (start, end) in trace.extents(tables).items():
            source = trace.tracks[track].source
            if source in waiting:
                before = found.get(source, (start, end))
                found[source] = min(start, before[0]), max(end, before[1])
        waiting -= found.keys()
        yield from (span for span in found.values() if span[0] < span[1])


def _near(spans: Sequence[Span]) -> Sequence[Span]:
    """Return the spans, given in order; where they cover little, only the longest run of those that overlap."""
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
    """Return the first start and the last end."""
    return min(span[0] for span in spans), max(span[1] for span in spans)

"""The forms of one recording: what a tool records, and what it or others convert that to.

An importer whose files may lie in a folder beside others of the same recording has the method `form`. It returns the
rank of a file, and the marks that all forms of a recording share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from traceconv.model.trace import Trace

#: A part of a recording that all its forms hold: its time in µs, 0 if it has none, and what it is.
Mark = tuple[int, Hashable]

#: No more samples are compared.
_FIRST_SAMPLES = 256
#: Tools print durations in hundredths of a microsecond.
_PRINTED_NS = 10


@dataclass(frozen=True, slots=True)
class Form:
    """The form of a file.

    Attributes:
        rank: 0 for the recording itself, higher for what was made of it. The file of the lowest rank is read.
        marks: returns the marks of the start of a trace.
        least: the fewest shared marks that show that two files are of one recording. They are at least half of those
            that both could hold, too.
    """

    rank: int
    marks: Callable[[Trace], set[Mark]]
    least: int = 8


def samples(trace: Trace) -> set[Mark]:
    """Return the first samples: their times and threads."""
    times, tracks = trace.samples.ts[:_FIRST_SAMPLES].tolist(), trace.samples.track[:_FIRST_SAMPLES].tolist()
    return {(ts // 1000, trace.tracks[track].tid or 0) for ts, track in zip(times, tracks, strict=True)}


def slices(trace: Trace) -> set[Mark]:
    """Return the slices: their times and durations."""
    times, durations = trace.slices.ts.tolist(), trace.slices.dur.tolist()
    return {(ts // 1000, ("slice", dur // 1000)) for ts, dur in zip(times, durations, strict=True)}


def sums(trace: Trace) -> set[Mark]:
    """Return the sums of the durations of all slices of a name, for reports whose positions say nothing."""
    total: Counter[int] = Counter()
    for name, dur in zip(trace.slices.name.tolist(), trace.slices.dur.tolist(), strict=True):
        total[name] += dur
    return {(0, ("sum", trace.strings[name], round(dur / _PRINTED_NS))) for name, dur in total.items()}

"""The forms of one recording: what a tool records, and what it or others convert that to.

An importer whose files may be such a form has the method `form`. It returns the rank of a file, and the function for
the marks that all forms of a recording share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from traceconv.model.ordering import occurring

if TYPE_CHECKING:
    from traceconv.model.trace import I64, Trace

#: A part of a recording that all its forms hold: its time in µs, 0 if it has none, and what it is.
Mark = tuple[int, Hashable]

#: The unit of the times of marks, ns.
MARK_NS = 1000
#: No more samples, and no more slices, are compared: the earliest ones.
_MOST_SAMPLES, _MOST_SLICES = 256, 4096
#: Tools print durations in hundredths of a microsecond.
_PRINTED_NS = 10


class Form(Struct, frozen=True):
    """The form of a file.

    Attributes:
        rank: 0 for the recording itself, higher for what was made of it. The file of the lowest rank is read.
        marks: returns the marks of a trace, or of the start of one.
        timed: whether the times of a file are those of the recording, so that all forms have the same.
        least: the fewest shared marks that show that two files are of one recording. They are at least half of those
            that both could hold, too.
    """

    rank: int
    marks: Callable[[Trace], set[Mark]]
    least: int = 8
    timed: bool = True


def other_forms(files: Sequence[tuple[Form, set[Mark]]]) -> dict[int, int]:
    """Return the files that are another form of the recording of an earlier one, each with that one, by numbers.

    They share half of the marks in the time of both.

    Args:
        files: the forms and marks of files, the best form first.
    """
    owners: dict[Mark, int] = {}
    found: dict[int, int] = {}
    for number, (form, marks) in enumerate(files):
        shared = Counter(owners[mark] for mark in marks if mark in owners)
        for owner, count in shared.most_common(1):
            its_form, its_marks = files[owner]
            end = min(max(at for at, _ in one) for one in (marks, its_marks))
            least = min(sum(at <= end for at, _ in one) for one in (marks, its_marks))
            if form.rank != its_form.rank and count >= form.least and 2 * count >= least:
                found[number] = owner
        if number not in found:
            for mark in marks:
                owners.setdefault(mark, number)
    return found


def samples(trace: Trace) -> set[Mark]:
    """Return the earliest samples: their times and threads."""
    rows = _earliest(trace.samples.ts, _MOST_SAMPLES)
    times, tracks = trace.samples.ts[rows].tolist(), trace.samples.track[rows].tolist()
    return {(ts // MARK_NS, trace.tracks[track].tid or 0) for ts, track in zip(times, tracks, strict=True)}


def slices(trace: Trace) -> set[Mark]:
    """Return the earliest slices: their times and durations."""
    rows = _earliest(trace.slices.ts, _MOST_SLICES)
    times, durations = trace.slices.ts[rows].tolist(), trace.slices.dur[rows].tolist()
    return {(ts // MARK_NS, ("slice", dur // 1000)) for ts, dur in zip(times, durations, strict=True)}


def sums(trace: Trace) -> set[Mark]:
    """Return the sums of the durations of all slices of a name, for reports whose positions say nothing."""
    total = np.zeros(len(trace.strings), np.int64)
    np.add.at(total, trace.slices.name, trace.slices.dur)
    return {
        (0, ("sum", trace.strings[name], round(int(total[name]) / _PRINTED_NS)))
        for name in occurring(trace.slices.name)
    }


def _earliest(times: I64, most: int) -> I64:
    """Return the rows of the earliest times, and of all that are equal to the last one of these."""
    if len(times) <= most:
        return np.arange(len(times))
    return np.flatnonzero(times <= np.partition(times, most - 1)[most - 1])

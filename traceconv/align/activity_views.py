"""What the estimators of activity see of a trace: when it was busy, by slices, by call stacks or by counters."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from traceconv.align.domains import rows_on
from traceconv.align.estimate import Array, Bins, Events, SampledThreads, Samples
from traceconv.align.features import innermost
from traceconv.families.registry import importers
from traceconv.model.marks import NO_MARKS
from traceconv.model.trace import Trace, TrackKind

#: Counters of perf that grow while a program works, the surest first.
_COUNTERS = ("task-clock", "cpu-clock", "cpu-cycles", "cycles", "instructions")
_LEAST_BUSY = 0.05  # The least share of busy samples of a candidate. Not tuned: fewer hardly tell when work begins.
_MOST_BUSY = 0.95  # The greatest share. Not tuned: as many idle ones.
_MOST_THREADS = 3  # Threads that are candidates of their own: the busiest. Not tuned: each one takes a search.


def busy_slices(trace: Trace, clock: int) -> Events | None:
    """When the operators of a trace were at work: the slices that hold no others; None without any."""
    slices = trace.slices
    rows = rows_on(trace, clock, slices.track)
    rows = rows[slices.dur[rows] > 0]
    if not len(rows):
        return None
    rows, kind = innermost(trace, rows, np.zeros(len(rows), np.int32))
    rows = rows[np.argsort(slices.ts[rows], kind="stable")]
    start, dur = _from_first(slices.ts[rows]), slices.dur[rows].astype(np.float64)
    return Events(start, dur, kind, int(slices.ts[rows[0]]), float(trace.clocks[clock].resolution_ns))


def libraries_of(trace: Trace) -> list[str]:
    """Patterns of the files that may do the work of the slices of a trace: those of its format, then those of others.

    A framework calls libraries and has others built in; a format that any tool writes may be of any runtime.
    """
    marks = [trace.sources[0].marks, *(getattr(cls, "marks", NO_MARKS) for cls in importers().values())]
    return list(dict.fromkeys(mark.libraries for mark in marks if mark.libraries))


def samples_of(trace: Trace, clock: int, libraries: Iterable[str]) -> list[Samples]:
    """Candidates for the label of the call stacks on a clock: the stack ends, or is anywhere, in files of a runtime.

    The threads of a pool may spin between the operators, so that each thread is a candidate of its own; all that
    are in the runtime at all come together, too. A label that nearly all stacks have, or nearly none, is left out.

    Args:
        trace: with samples.
        clock: that of the samples.
        libraries: patterns of files, one for each runtime.
    """
    table = trace.samples
    rows = rows_on(trace, clock, table.track)
    rows = rows[table.stack[rows] >= 0]
    rows = rows[np.argsort(table.ts[rows], kind="stable")]
    found: list[Samples] = []
    for files in libraries:
        for frames in _frames_in(trace, re.compile(files)):
            busy = frames[table.stack[rows]]
            threads, counts = np.unique(table.track[rows[busy]], return_counts=True)
            chosen = threads[np.argsort(-counts, kind="stable")[:_MOST_THREADS]]
            for tracks in (threads, *chosen[:, None]):
                of = np.isin(table.track[rows], tracks)
                samples = _labelled(table.ts[rows[of]], busy[of])
                if samples is not None and not any(_equal(samples, other) for other in found):
                    found.append(samples)
    return found


def sampled_threads(a: Trace, clock_a: int, b: Trace, clock_b: int) -> list[SampledThreads]:
    """Threads whose slices are on a clock of a, since they read it, and that were sampled on a clock of b.

    Where the numbers of threads agree they tell which is which. Where none does (containers number their own) the
    thread with the most slices may be any of those with the most samples.
    """
    slices, kinds = a.slices, np.array([track.kind in (TrackKind.THREAD, TrackKind.TRACK) for track in a.tracks])
    rows = rows_on(a, clock_a, slices.track)
    rows = rows[kinds[slices.track[rows]] & (slices.dur[rows] > 0)]
    reads = _by_thread(a, slices.track[rows], slices.ts[rows], slices.ts[rows] + slices.dur[rows])
    reads = {tid: np.unique(times) for tid, times in reads.items()}
    rows = rows_on(b, clock_b, b.samples.track)
    samples = _by_thread(b, b.samples.track[rows], b.samples.ts[rows])
    if not reads or not samples:
        return []
    zeros = min(int(one[0]) for one in reads.values()), min(int(one[0]) for one in samples.values())
    busiest = max(reads, key=lambda one: len(reads[one]))
    most = sorted(samples, key=lambda one: -len(samples[one]))[:_MOST_THREADS]
    groups = [[(tid, tid) for tid in reads if tid in samples]]
    return [
        SampledThreads(
            tuple(
                ((reads[one] - zeros[0]).astype(np.float64), (samples[other] - zeros[1]).astype(np.float64))
                for one, other in group
            ),
            *zeros,
            float(a.clocks[clock_a].resolution_ns),
        )
        for group in (groups if groups[0] else [[(busiest, tid)] for tid in most])
    ]


def _by_thread(trace: Trace, track: Array, *times: Array) -> dict[int, Array]:
    """Times by the number of their thread, ascending; a track without a number is a thread of its own."""
    found: dict[int, list[Array]] = {}
    for number in np.unique(track).tolist():
        tid = trace.tracks[number].tid
        found.setdefault(-1 - number if tid is None else tid, []).extend(one[track == number] for one in times)
    return {tid: np.sort(np.concatenate(parts)) for tid, parts in found.items()}


def bins_of(trace: Trace, clock: int) -> list[Bins]:
    """Candidates among the counters on a clock that hold what was counted in each interval, the surest first."""
    found: list[tuple[int, Bins]] = []
    table = trace.counters
    for number, track in enumerate(trace.tracks):
        name = track.name.partition(":")[0].partition(" ")[0]
        if track.kind is not TrackKind.COUNTER or track.clock != clock or name not in _COUNTERS:
            continue
        rows = np.flatnonzero(table.track == number)
        rows = rows[np.argsort(table.ts[rows], kind="stable")]
        rows = rows[np.concatenate((np.diff(table.ts[rows]) > 0, [True]))] if len(rows) else rows
        if len(rows) < 2 or track.name.endswith(" running"):
            continue
        # The value from a time on is what was counted until the next time.
        bins = Bins(_from_first(table.ts[rows]), table.value[rows[:-1]], int(table.ts[rows[0]]))
        found.append((_COUNTERS.index(name), bins))
    return [bins for _, bins in sorted(found, key=lambda one: one[0])]


def _frames_in(trace: Trace, files: re.Pattern[str]) -> tuple[Array, Array]:
    """For each frame whether it is in one of the files, and whether it or any of its callers is."""
    ends, holds = np.zeros(len(trace.frames), bool), np.zeros(len(trace.frames), bool)
    for number, frame in enumerate(trace.frames):  # a caller stands before what it calls
        ends[number] = files.search(frame.category) is not None
        holds[number] = ends[number] or (frame.parent >= 0 and holds[frame.parent])
    return ends, holds


def _labelled(ts: Array, busy: Array) -> Samples | None:
    if not len(ts) or not _LEAST_BUSY <= float(np.mean(busy)) <= _MOST_BUSY:
        return None
    return Samples(_from_first(ts), busy, int(ts[0]))


def _from_first(ts: Array) -> Array:
    return np.asarray(ts - int(ts[0]), np.float64)


def _equal(one: Samples, other: Samples) -> bool:
    return one.zero_ns == other.zero_ns and np.array_equal(one.t, other.t) and np.array_equal(one.busy, other.busy)

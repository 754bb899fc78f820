"""The events of a trace as estimators compare them: slices, samples and deltas of counters, each on one clock."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from traceconv.align.constraints import NameMap
from traceconv.align.domains import rows_on
from traceconv.align.estimate import Array, Bins, Events, SampledThreads, Samples
from traceconv.align.matching import UNNAMED, Stretches, ThreadStretches
from traceconv.families.registry import importers
from traceconv.model.args import arg_values
from traceconv.model.clocks import Run
from traceconv.model.columns import I32
from traceconv.model.trace import Trace
from traceconv.model.track_table import TrackKind

#: Args that tell the type of an operator whose slice is named after the node.
_TYPES = ("op_name", "op_type", "layer_type")
#: Args that tell the problem that an event solves: oneDNN's direction and sizes, the shapes of PyTorch's inputs.
_PROBLEM = ("prop_kind", "problem", "Input Dims")

#: Counters of perf that grow while a program works, the surest first.
_COUNTERS = ("task-clock", "cpu-clock", "cpu-cycles", "cycles", "instructions")
_LEAST_BUSY = 0.05  # The least share of busy samples of a candidate. Not tuned: fewer hardly tell when work begins.
_MOST_BUSY = 0.95  # The greatest share. Not tuned: as many idle ones.
_MOST_THREADS = 3  # Threads that are candidates of their own: the busiest. Not tuned: each one takes a search.


class SharedWork(Struct, frozen=True):
    """The slices on one clock of one input whose kinds another trace has, too, and their rows in the trace."""

    events: Events
    rows: Array


def shared_work(a: Trace, clock_a: int, b: Trace, clock_b: int, names: NameMap) -> tuple[SharedWork, SharedWork] | None:
    """Return the slices of two clocks of the kinds that both have; None if there are none.

    Of slices of one kind inside each other on a track, only the innermost one counts: that call does the work.
    """
    kinds_a, kinds_b = _kinds(a, clock_a, names), _kinds(b, clock_b, names)
    numbers = {kind: number for number, kind in enumerate(sorted(set(kinds_a.values()) & set(kinds_b.values())))}
    if not numbers:
        return None
    work = (_work_on(a, clock_a, kinds_a, numbers), _work_on(b, clock_b, kinds_b, numbers))
    return work if all(len(side.events) for side in work) else None


def nested_work(a: Trace, b: Trace, work: tuple[SharedWork, SharedWork]) -> ThreadStretches | None:
    """Return the nested work of an outer and an inner trace, given their slices of common kinds.

    It is None if no slice contains another one and b has no other work.
    """
    nest = nest_of(a, b, work)
    flat = sum(len(thread.begin) for thread in nest.threads) <= 2 * len(work[0].rows) + 1
    return None if flat and len(nest.calls) == len(work[1].rows) else nest


def nest_of(a: Trace, b: Trace, work: tuple[SharedWork, SharedWork]) -> ThreadStretches:
    """Return the stretches of the threads of a with common work, and all calls of b on the tracks of such work."""
    outer, inner = work
    kinds = np.full(len(a.slices.ts), UNNAMED, np.int32)
    kinds[outer.rows] = outer.events.kind
    tracks = np.unique(a.slices.track[outer.rows]).tolist()
    threads = tuple(_stretches(a, track, kinds, outer.events.zero_ns) for track in tracks)
    return ThreadStretches(threads, _calls(b, inner, unnamed=len(tracks) == 1), outer.events.quantum_ns)


def _stretches(trace: Trace, track: int, kinds: I32, zero: int) -> Stretches:
    """Return the stretches of a thread; slices are sorted by time on each track, outer ones first."""
    slices = trace.slices
    rows = np.flatnonzero(slices.track == track)
    starts, ends = slices.ts[rows].tolist(), (slices.ts[rows] + slices.dur[rows]).tolist()
    stretches = []
    opened: list[tuple[int, int]] = []  # when each ends, and its kind
    at, last = starts[0], max(ends)
    for start, until, number in zip([*starts, last], [*ends, last], [*kinds[rows].tolist(), UNNAMED], strict=True):
        while opened and opened[-1][0] <= start:
            closing, closed = opened.pop()
            stretches.append((at, closing, closed))
            at = closing
        stretches.append((at, start, opened[-1][1] if opened else UNNAMED))
        opened.append((until, number))
        at = start
    lasting = [stretch for stretch in stretches[:-1] if stretch[1] > stretch[0]]
    begin, end, kind = np.array(lasting or np.empty((0, 3)), np.int64).T
    return Stretches((begin - zero).astype(np.float64), (end - zero).astype(np.float64), kind.astype(np.int32))


def _calls(trace: Trace, work: SharedWork, *, unnamed: bool) -> Events:
    """Return the common events, and those of other kinds on their tracks, without those that contain others."""
    slices = trace.slices
    kinds = np.full(len(slices.ts), UNNAMED, np.int32)
    kinds[work.rows] = work.events.kind
    rows = work.rows
    if unnamed:
        rows = np.flatnonzero(np.isin(slices.track, np.unique(slices.track[rows])))
        end = slices.ts[rows] + slices.dur[rows]
        holds = (slices.track[rows[1:]] == slices.track[rows[:-1]]) & (slices.ts[rows[1:]] < end[:-1])
        kept = np.append(~holds, True) | (kinds[rows] != UNNAMED)
        rows = rows[kept]
        rows = rows[np.argsort(slices.ts[rows], kind="stable")]
    start = (slices.ts[rows] - work.events.zero_ns).astype(np.float64)
    return replace(work.events, start=start, dur=slices.dur[rows].astype(np.float64), kind=kinds[rows], label=None)


def _kinds(trace: Trace, clock: int, names: NameMap) -> dict[int, str]:
    """Return the kind of work of each name of the slices on a clock."""
    kinds: dict[int, str] = {}
    for name, typed in _names(trace, rows_on(trace, clock, trace.slices.track)):
        kinds[name] = (names.class_of(typed) if typed else None) or names.kind(trace.strings[name])
    return kinds


def _names(trace: Trace, rows: Array) -> Iterator[tuple[int, str]]:
    """Yield the names of slices, as numbers, each with the type of its operator; "" without one."""
    used, first = np.unique(trace.slices.name[rows], return_index=True)
    slices, at = trace.slices, rows[first]
    numbers, values = arg_values(trace.args, slices.args_at[at], slices.args_len[at], _TYPES)
    types = [next((value for value in row if value and isinstance(value, str)), "") for row in values]
    yield from zip(used.tolist(), (types[number] for number in numbers.tolist()), strict=True)


def names_of(trace: Trace) -> set[str]:
    """Return the names and the operator types of the slices of a trace."""
    names = {
        text for name, typed in _names(trace, np.arange(len(trace.slices.ts))) for text in (trace.strings[name], typed)
    }
    return names - {""}


def _work_on(trace: Trace, clock: int, kinds: dict[int, str], numbers: dict[str, int]) -> SharedWork:
    slices = trace.slices
    number_of = np.full(len(trace.strings), -1, np.int32)
    for name, kind in kinds.items():
        number_of[name] = numbers.get(kind, -1)
    rows = rows_on(trace, clock, slices.track)
    shared = number_of[slices.name[rows]]
    rows, shared = innermost(trace, rows[shared >= 0], shared[shared >= 0])
    # Without times, the order is that of the log: positions may begin anew in it, and lengths may be 0.
    order = np.argsort(slices.origin[rows] if trace.clocks[clock].run is Run.NONE else slices.ts[rows], kind="stable")
    rows, shared = rows[order], shared[order]
    return SharedWork(replace(_events(trace, clock, rows, shared), label=_labels(trace, rows)), rows)


def _events(trace: Trace, clock: int, rows: Array, kind: Array) -> Events:
    """Return slices on a clock as events that count from the first of them."""
    slices = trace.slices
    zero = int(slices.ts[rows[0]]) if len(rows) else 0
    start, dur = (slices.ts[rows] - zero).astype(np.float64), slices.dur[rows].astype(np.float64)
    return Events(start, dur, kind.astype(np.int32), zero, float(trace.clocks[clock].resolution_ns))


def _labels(trace: Trace, rows: Array) -> I32:
    """Return a number for each combination of a name and a problem."""
    slices = trace.slices
    problem, values = arg_values(trace.args, slices.args_at[rows], slices.args_len[rows], _PROBLEM)
    number_of: dict[str, int] = {}
    same = np.array([number_of.setdefault(repr(value), len(number_of)) for value in values], np.int64)
    numbers: dict[tuple[int, int], int] = {}
    keys = zip(slices.name[rows].tolist(), same[problem].tolist(), strict=True)
    return np.fromiter((numbers.setdefault(key, len(numbers)) for key in keys), np.int32, len(rows))


def innermost(trace: Trace, rows: Array, kind: Array) -> tuple[Array, Array]:
    """Return rows and kinds of slices that contain none of their kind, in order of track and time, outer ones first."""
    slices = trace.slices
    end = slices.ts[rows] + slices.dur[rows]
    order = np.lexsort((np.arange(len(rows)), kind, slices.track[rows]))
    outer, inner = order[:-1], order[1:]
    holds = (
        (slices.track[rows[outer]] == slices.track[rows[inner]])
        & (kind[outer] == kind[inner])
        & (slices.ts[rows[inner]] < end[outer])
        & (end[inner] <= end[outer])
    )
    keep = np.ones(len(rows), bool)
    keep[outer[holds]] = False
    return rows[keep], kind[keep]


# -- activity ---------------------------------------------------------------------------------------------------------


def busy_slices(trace: Trace, clock: int) -> Events | None:
    """Return the operators of a trace that contain no others: when it was busy; None without any."""
    slices = trace.slices
    rows = rows_on(trace, clock, slices.track)
    rows = rows[slices.dur[rows] > 0]
    if not len(rows):
        return None
    rows, kind = innermost(trace, rows, np.zeros(len(rows), np.int32))
    return _events(trace, clock, rows[np.argsort(slices.ts[rows], kind="stable")], kind)


def libraries_of(trace: Trace) -> list[str]:
    """Return patterns of the library files that may do the work of a trace's slices: of its format, then of others.

    A framework calls libraries and has others built in. A format that any tool writes may be of any runtime.
    """
    marks = [trace.sources[0].marks, *(cls.marks for cls in importers().values())]
    return list(dict.fromkeys(mark.libraries for mark in marks if mark.libraries))


def samples_of(trace: Trace, clock: int, libraries: Iterable[str]) -> list[Samples]:
    """Return samples with labels from call stacks: whether the stack ends in files of a runtime, or has any of them.

    Pool threads may spin between the operators. So each thread is a candidate, and all threads with the runtime
    together are one, too. A label that nearly all stacks have, or nearly none, is left out. The files of each runtime
    are a pattern.
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
                seen = np.isin(table.track[rows], tracks)
                samples = _labelled(table.ts[rows[seen]], busy[seen])
                if samples is not None and not any(_equal(samples, earlier) for earlier in found):
                    found.append(samples)
    return found


def sampled_threads(a: Trace, clock_a: int, b: Trace, clock_b: int) -> list[SampledThreads]:
    """Return threads with slices on a clock of a, which they read, and with samples on a clock of b.

    Equal thread numbers tell which is which. If none are equal (containers number their own), the thread with the most
    slices may be any of those with the most samples.
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
    zero_a, zero_b = (min(int(times[0]) for times in side.values()) for side in (reads, samples))
    read = {tid: (times - zero_a).astype(np.float64) for tid, times in reads.items()}
    sampled = {tid: (times - zero_b).astype(np.float64) for tid, times in samples.items()}
    busiest = max(read, key=lambda tid: len(read[tid]))
    most = sorted(sampled, key=lambda tid: -len(sampled[tid]))[:_MOST_THREADS]
    equal = tuple((read[tid], sampled[tid]) for tid in read if tid in sampled)
    groups = [equal] if equal else [((read[busiest], sampled[tid]),) for tid in most]
    return [SampledThreads(group, zero_a, zero_b, float(a.clocks[clock_a].resolution_ns)) for group in groups]


def _by_thread(trace: Trace, track: Array, *times: Array) -> dict[int, Array]:
    """Return ascending times by the number of their thread; a track without a number is a thread of its own."""
    by_thread: dict[int, list[Array]] = {}
    for number in np.unique(track).tolist():
        tid = trace.tracks[number].tid
        by_thread.setdefault(-1 - number if tid is None else tid, []).extend(ts[track == number] for ts in times)
    return {tid: np.sort(np.concatenate(parts)) for tid, parts in by_thread.items()}


def bins_of(trace: Trace, clock: int) -> list[Bins]:
    """Return the counters on a clock that hold a count per interval, the surest first."""
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
    return [bins for _, bins in sorted(found, key=lambda ranked: ranked[0])]


def _frames_in(trace: Trace, files: re.Pattern[str]) -> tuple[Array, Array]:
    """Return for each frame whether it is in one of the files, and whether it or any of its callers is."""
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


def _equal(left: Samples, right: Samples) -> bool:
    return left.zero_ns == right.zero_ns and np.array_equal(left.t, right.t) and np.array_equal(left.busy, right.busy)

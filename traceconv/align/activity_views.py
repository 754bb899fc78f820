"""What the estimators of activity see of a trace: when it was busy, by slices, by call stacks or by counters."""

from __future__ import annotations

import re

import numpy as np

from traceconv.align.estimate import Array, Bins, Events, SampledThreads, Samples
from traceconv.ir.trace import Trace, TrackKind

#: Files (the category of a frame) that belong to a runtime.
_RUNTIMES = {
    "ONNX Runtime": re.compile(r"onnxruntime"),
    "oneDNN": re.compile(r"dnnl|mkldnn|onednn"),
    "PyTorch": re.compile(r"libtorch|torch_cpu|torch_cuda|libc10|/torch/lib/"),
    "TensorFlow": re.compile(r"tensorflow"),
    "MXNet": re.compile(r"mxnet"),
    "TVM": re.compile(r"libtvm"),
    "DeepSparse": re.compile(r"deepsparse"),
    "OpenVINO": re.compile(r"openvino|inference_engine"),
    "TensorRT": re.compile(r"libnvinfer"),
}
#: Counters that grow while a programme works, the surest first.
_COUNTERS = ("task-clock", "cpu-clock", "cpu-cycles", "cycles", "instructions")
_LEAST_SHARE, _GREATEST_SHARE = 0.05, 0.95
_MOST_THREADS = 3


def busy_slices(trace: Trace, clock: int) -> Events | None:
    """When the operators of a trace were at work: the union of the slices that hold no others; None without any."""
    clocks = _clock_of_track(trace)
    slices = trace.slices
    rows = np.flatnonzero((clocks[slices.track] == clock) & (slices.dur > 0))
    if not len(rows):
        return None
    rows = rows[_leaves(slices.track[rows], slices.ts[rows], slices.dur[rows])]
    rows = rows[np.argsort(slices.ts[rows], kind="stable")]
    start, end = slices.ts[rows], np.maximum.accumulate(slices.ts[rows] + slices.dur[rows])
    first = np.flatnonzero(np.concatenate(([True], start[1:] > end[:-1])))
    begins, ends = start[first], end[np.concatenate((first[1:] - 1, [len(rows) - 1]))]
    zero = int(begins[0])
    return Events(
        (begins - zero).astype(np.float64),
        (ends - begins).astype(np.float64),
        np.zeros(len(begins), np.int32),
        zero,
        float(trace.clocks[clock].resolution_ns),
    )


def samples_of(trace: Trace, clock: int) -> list[tuple[str, Samples]]:
    """Candidates for the label of the call stacks on a clock: the stack is, or ends, in files of a runtime.

    The threads of a pool may spin between the operators, so that each thread is a candidate of its own; all that
    are in the runtime at all come together, too. A label that nearly all stacks have, or nearly none, is left out.

    Returns:
        What each one means, in words, with the samples.
    """
    clocks = _clock_of_track(trace)
    table = trace.samples
    rows = np.flatnonzero((clocks[table.track] == clock) & (table.stack >= 0))
    rows = rows[np.argsort(table.ts[rows], kind="stable")]
    found: list[tuple[str, Samples]] = []
    for runtime, files in _RUNTIMES.items():
        ends, holds = _frames_in(trace, files)
        for words, frames in ((f"stacks that end in {runtime}", ends), (f"stacks in {runtime}", holds)):
            busy = frames[table.stack[rows]]
            threads, counts = np.unique(table.track[rows[busy]], return_counts=True)
            chosen = threads[np.argsort(-counts, kind="stable")[:_MOST_THREADS]].tolist()
            groups = [(words, threads), *((f"{words}, {_thread(trace, one)}", np.array([one])) for one in chosen)]
            for name, tracks in groups:
                of = np.isin(table.track[rows], tracks)
                samples = _labelled(table.ts[rows[of]], busy[of])
                if samples is not None and not any(_equal(samples, other) for _, other in found):
                    found.append((name, samples))
    return found


def watched_of(a: Trace, clock_a: int, b: Trace, clock_b: int) -> list[SampledThreads]:
    """Threads whose slices are on a clock of a, since they read it, and that were sampled on a clock of b.

    Where the numbers of threads agree they tell which is which. Where none does (containers number their own) the
    thread with the most slices may be any of those with the most samples.
    """
    reads, samples = _reads_of_threads(a, clock_a), _samples_of_threads(b, clock_b)
    if not reads or not samples:
        return []
    zeros = min(int(one[0]) for one in reads.values()), min(int(one[0]) for one in samples.values())
    shared = [tid for tid in reads if tid in samples]
    busiest = max(reads, key=lambda one: len(reads[one]))
    groups = [[(tid, tid) for tid in shared]] if shared else [[(busiest, tid)] for tid in list(samples)[:_MOST_THREADS]]
    return [
        SampledThreads(
            tuple(
                ((reads[one] - zeros[0]).astype(np.float64), (samples[other] - zeros[1]).astype(np.float64))
                for one, other in group
            ),
            *zeros,
            float(a.clocks[clock_a].resolution_ns),
        )
        for group in groups
    ]


def _reads_of_threads(trace: Trace, clock: int) -> dict[int, Array]:
    """The begins and ends of slices by thread (tracks without a number are threads of their own)."""
    slices = trace.slices
    found: dict[int, list[Array]] = {}
    for number, track in enumerate(trace.tracks):
        if track.clock == clock and track.kind in (TrackKind.THREAD, TrackKind.TRACK):
            rows = np.flatnonzero((slices.track == number) & (slices.dur > 0))
            tid = -1 - number if track.tid is None else track.tid
            found.setdefault(tid, []).extend((slices.ts[rows], slices.ts[rows] + slices.dur[rows]))
    times = {tid: np.unique(np.concatenate(parts)) for tid, parts in found.items()}
    return {tid: one for tid, one in times.items() if len(one)}


def _samples_of_threads(trace: Trace, clock: int) -> dict[int, Array]:
    """The times of samples by thread, those with the most samples first."""
    clocks = _clock_of_track(trace)
    table = trace.samples
    rows = np.flatnonzero(clocks[table.track] == clock)
    found: dict[int, list[Array]] = {}
    for number in np.unique(table.track[rows]).tolist():
        tid = trace.tracks[number].tid
        found.setdefault(-1 - number if tid is None else tid, []).append(table.ts[rows[table.track[rows] == number]])
    times = {tid: np.sort(np.concatenate(parts)) for tid, parts in found.items()}
    return dict(sorted(times.items(), key=lambda one: -len(one[1])))


def bins_of(trace: Trace, clock: int) -> list[tuple[str, Bins]]:
    """Candidates among the counters on a clock that hold what was counted in each interval, the surest first.

    Returns:
        The name of each one, with its deltas.
    """
    found: list[tuple[int, str, Bins]] = []
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
        zero = int(table.ts[rows[0]])
        # The value from a time on is what was counted until the next time.
        bins = Bins((table.ts[rows] - zero).astype(np.float64), table.value[rows[:-1]], zero)
        found.append((_COUNTERS.index(name), track.name, bins))
    return [(name, bins) for _, name, bins in sorted(found, key=lambda one: one[0])]


def _clock_of_track(trace: Trace) -> Array:
    return np.array([int(track.clock) for track in trace.tracks] or [0])


def _leaves(track: Array, ts: Array, dur: Array) -> Array:
    """The rows that hold no other slice of their track."""
    order = np.lexsort((-dur, ts, track))
    end = ts + dur
    one, following = order[:-1], order[1:]
    holds = (track[one] == track[following]) & (end[following] <= end[one])
    keep = np.ones(len(ts), bool)
    keep[one[holds & (ts[following] < end[one])]] = False
    return np.flatnonzero(keep)


def _frames_in(trace: Trace, files: re.Pattern[str]) -> tuple[Array, Array]:
    """For each frame whether it is in one of the files, and whether it or any of its callers is."""
    ends, holds = np.zeros(len(trace.frames), bool), np.zeros(len(trace.frames), bool)
    for number, frame in enumerate(trace.frames):  # a caller stands before what it calls
        ends[number] = files.search(frame.category) is not None
        holds[number] = ends[number] or (frame.parent >= 0 and holds[frame.parent])
    return ends, holds


def _thread(trace: Trace, track: int) -> str:
    found = trace.tracks[track]
    return f"thread {found.name or 'without name'}{'' if found.tid is None else f' ({found.tid})'}"


def _labelled(ts: Array, busy: Array) -> Samples | None:
    if not len(ts) or not _LEAST_SHARE <= float(np.mean(busy)) <= _GREATEST_SHARE:
        return None
    zero = int(ts[0])
    return Samples((ts - zero).astype(np.float64), busy, zero)


def _equal(one: Samples, other: Samples) -> bool:
    return one.zero_ns == other.zero_ns and np.array_equal(one.t, other.t) and np.array_equal(one.busy, other.busy)

"""Estimate the offset between a file with host calls and a file with device work by common correlation ids.

No kernel starts before the call that launched it, and a call that waits for the device returns after the kernels that
were launched before it. Launches bound the relation of the clocks on one side, waits on the other. Which kernels a call
waits for is known from the host alone: those that its thread launched before.

Equal ids alone are not evidence: every process counts from 1, and each run of a program gives the same ids to the same
work. The files are of one run only if some relation of the clocks satisfies the bounds, and if the gaps between
launches (or between waits) vary together in both files, also for the same work.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from itertools import product

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from traceconv.align.domains import rows_on
from traceconv.align.estimate import OTHER_RUN, Array, Estimate, Method, Prior, insufficient
from traceconv.align.geometry import (
    F64,
    Chain,
    Line,
    LinearConstraints,
    Region,
    everything,
    feasible,
    robust_line,
    since_last,
    vary_together,
)
from traceconv.model.clocks import ClockMap, Verdict
from traceconv.model.columns import I64
from traceconv.model.marks import LaunchMarks, ids_of
from traceconv.model.numbers import format_time
from traceconv.model.trace import Trace
from traceconv.model.track_table import processes

# "Simulated" are the pairs of tests/benchmarks/alignment/measure_launches.py with the seeds that tests have; there are
# no recordings. "Not tuned" means that nothing tells that other values were tried; then comes the reason for the size.

_LEAST_PAIRS = 30  # The least number of launches in common. Not tuned: enough gaps (`_LEAST_GAPS`) with some left out.
_LEAST_WAITS = 5  # The least number of waits for bounds on both sides. Not tuned: one or two may be wrong.
WRONG_IDS = 0.02  # The share of the work that may be too early by wrong ids. Not tuned: a few of a long log.
LEAST_SHARE = 0.5  # The least share of the work with a launch in one run. Not tuned: half of the calls may be missing.
_LEAST_ORDER = 0.8  # The least share of pairs in order. Simulated, with wrong ids each in twenty, more than 0.9 are.
#: The share of the tightest bounds that is left out if some pairs are out of order, in addition to half their share,
#: since other pairs may be wrong and in order. Set with simulated pairs with wrong ids: the bound holds the truth.
_TRIM = 0.01
_MOST_TRIM = 0.05  # The greatest share that is left out. Set with the same pairs.
_BLOCKS = 40  # The most blocks for a line along the bounds. Not tuned: the bounds themselves decide in the end.
_LEAST_BLOCK = 5  # The least number of bounds in a block. Not tuned: one of them is below the bound.
_TIGHT_SHARE = 0.2  # The bound of a block: this many of its differences are tighter. Not tuned: a few may be wrong.
_LEAST_SCALE_NS = 1e3  # The least standard deviation of these bounds, ns: what most tools print.
_USUAL_DRIFT = 100e-6  # Standard deviation of drifts before any data, as a ratio. Not tuned: usual of computers.
_LEAST_GAPS = 20  # The least number of gaps that are compared. Not tuned: fewer correlate by chance.
#: The rank correlation of gaps from which on it is one run. Durations in logs of different runs of one program reach
#: 0.7; with this no simulated pair of two runs is accepted.
_SURE = 0.75
_SURE_ALONE = 0.9  # The same with bounds on one side only, which contradict nothing. Not tuned: more is required then.
_CHANCE = 0.3  # Below this it is another run, or chance. Not tuned: of 20 unrelated gaps a tenth reach it.


class OwnIds(Struct, frozen=True):
    """Slices with an id that no other one of their process has.

    Attributes:
        ids: ascending.
        process: the track of the process of each.
        repeated: the number of slices that were left out since their id occurs more than once.
    """

    ids: Array
    rows: Array
    process: Array
    repeated: int

    def of_one_process(self) -> OwnIds:
        """Return those whose id only one process has; each process counts its ids from 1."""
        _, number, count = np.unique(self.ids, return_inverse=True, return_counts=True)
        alone = count[number.reshape(-1)] == 1
        left_out = self.repeated + int((~alone).sum())
        return OwnIds(self.ids[alone], self.rows[alone], self.process[alone], left_out)


class Joined(Struct, frozen=True):
    """Calls of a host and the work that they launched, joined by ids, in order of the calls.

    Attributes:
        calls, work: the rows of the slices in the two files.
        share: the share of device work with a launch, where the ids of both files overlap.
        repeated: the number of slices that were left out since their id occurs more than once.
    """

    calls: Array
    work: Array
    ids: Array
    share: float
    repeated: int


class Launches(Struct, frozen=True):
    """Launches of a host (clock x) and their work (clock y), in order of the launches, with the waits.

    Attributes:
        launch, begin, end: the start of the launch, ns from `zero_x`; the start and end of the work, ns from `zero_y`.
        thread, stream: the tracks.
        name: of the work, as a number.
        wait_end, waited: the return of each wait, ns from `zero_x`, and the last row of the pairs that it waited for.
        zero_x, zero_y: the zeros of the times.
        quantum_x, quantum_y: the resolution of the times as printed, ns.
    """

    launch: F64
    begin: F64
    end: F64
    thread: Array
    stream: Array
    name: Array
    wait_end: F64
    waited: Array
    zero_x: int
    zero_y: int
    quantum_x: float
    quantum_y: float
    joined: Joined

    def __len__(self) -> int:
        return len(self.launch)

    def scaled(self, rate: float) -> Launches:
        """Return them with the work on a clock that runs slower by this ratio."""
        return replace(self, begin=self.begin / rate, end=self.end / rate)

    def constraints(self, kept: Array) -> LinearConstraints:
        """Return the constraints of launches and waits; printed times are cut to their resolution."""
        launch, waits = self.launch[kept], kept[self.waited]
        returned = self.wait_end[waits] + 2 * self.quantum_x
        lower = self.end[self.waited[waits]] - returned
        return LinearConstraints(returned, lower, launch, self.begin[kept] + self.quantum_y - launch)


def _marks(trace: Trace) -> LaunchMarks:
    """Return the marks of launches in a trace; empty ones if its format has none."""
    return trace.sources[0].marks.launches or LaunchMarks()


def launched_work(trace: Trace, clock: int) -> tuple[Array, Array]:
    """Return the calls on one clock of a file and the work in it with the same ids, as rows, in order of the calls."""
    calls, work, _ = _of_equal_ids(trace, _calls_of(trace, clock), _work_of(trace, clock))
    return calls, work


def waits_within(trace: Trace, clock: int, calls: Array, work: Array) -> tuple[Array, Array]:
    """Return the calls of a file that wait for its `launched_work`, as rows, and the last pair each waited for."""
    return _waits(trace, clock, calls, trace, work, _streams(trace, work))


def _of_equal_ids(host: Trace, calls: OwnIds, work: OwnIds) -> tuple[Array, Array, Array]:
    """Return the rows of calls, those of work with the same ids, and the ids, in order of the calls."""
    ids, of_calls, of_work = np.intersect1d(calls.ids, work.ids, assume_unique=True, return_indices=True)
    order = np.argsort(host.slices.ts[calls.rows[of_calls]], kind="stable")
    return calls.rows[of_calls][order], work.rows[of_work][order], ids[order]


def _streams(device: Trace, work: Array) -> Array:
    """Return the stream of each slice of work: the main track of its lanes."""
    stream = np.array([track if row.lane_of < 0 else row.lane_of for track, row in enumerate(device.tracks)])
    return stream[device.slices.track[work]]


def joined(host: Trace, clock_host: int, device: Trace, clock_device: int) -> Joined | None:
    """Return the calls on one clock and the work on another one with the same ids; None if there are none.

    A file with both calls and their work relates its clocks itself: its ids are not evidence about other files.
    """
    calls, work = _calls_of(host, clock_host), _work_of(device, clock_device)
    call_rows, work_rows, ids = _of_equal_ids(host, calls, work)
    if not len(ids) or _meet(calls, _work_of(host)) or _meet(work, _calls_of(device)):
        return None
    first, last = max(calls.ids[0], work.ids[0]), min(calls.ids[-1], work.ids[-1])
    common = int(((work.ids >= first) & (work.ids <= last)).sum())
    return Joined(call_rows, work_rows, ids, len(ids) / common, calls.repeated + work.repeated)


def host_and_device(traces: Sequence[Trace]) -> tuple[int, int] | None:
    """Return the numbers of the file with the calls and of the file with the work; None unless there is one of each.

    Each process counts its ids from 1: if several files could be the other half, none is chosen.
    """
    alone: dict[tuple[bool, bool], list[int]] = defaultdict(list)
    for index, trace in enumerate(traces):
        marks, texts = _marks(trace), set(trace.strings)  # cheap, and False in doubt
        alone[not texts.isdisjoint(marks.calls), not texts.isdisjoint(marks.work)].append(index)
    hosts, devices = alone[True, False], alone[False, True]
    return (hosts[0], devices[0]) if len(hosts) == len(devices) == 1 else None


def early_work(
    host: Trace, clock_host: int, device: Trace, clock_device: int, maps: tuple[ClockMap, ClockMap], left_open: int
) -> tuple[str, int] | None:
    """Return how much work starts before its calls, given the maps of two clocks, and by how much at most, ns.

    Returns:
        None with too few common launches. None also unless most of the work is early, and some of it by more than the
        uncertainty (ns): a few ids may be wrong.
    """
    pairs = joined(host, clock_host, device, clock_device)
    if pairs is None or pairs.share < LEAST_SHARE or len(pairs.ids) < _LEAST_PAIRS:
        return None
    by_ns = maps[0].apply(host.slices.ts[pairs.calls]) - maps[1].apply(device.slices.ts[pairs.work])
    early, worst = int((by_ns > 0).sum()), int(np.max(by_ns))
    if 2 * early <= len(by_ns) or int((by_ns > left_open).sum()) <= WRONG_IDS * len(by_ns):
        return None
    text = f"{early} of {len(by_ns)} kernels start before the calls that launched them, by up to {format_time(worst)}"
    return text, worst


def launches_of(host: Trace, clock_host: int, device: Trace, clock_device: int) -> Launches | None:
    """Return the launches and waits that two files have in common; None if there are none."""
    pairs = joined(host, clock_host, device, clock_device)
    if pairs is None:
        return None
    hosts, devices, calls, work = host.slices, device.slices, pairs.calls, pairs.work
    zero_x, zero_y = int(hosts.ts[calls[0]]), int(np.min(devices.ts[work]))
    begin = (devices.ts[work] - zero_y).astype(np.float64)
    stream = _streams(device, work)
    wait_rows, waited = waits_for(host, clock_host, device, pairs)
    return Launches(
        (hosts.ts[calls] - zero_x).astype(np.float64),
        begin,
        begin + devices.dur[work],
        hosts.track[calls],
        stream,
        devices.name[work],
        (hosts.ts[wait_rows] + hosts.dur[wait_rows] - zero_x).astype(np.float64),
        waited,
        zero_x,
        zero_y,
        max(float(host.clocks[clock_host].resolution_ns), 1.0),
        max(float(device.clocks[int(device.tracks[int(devices.track[work[0]])].clock)].resolution_ns), 1.0),
        pairs,
    )


def waits_for(host: Trace, clock_host: int, device: Trace, pairs: Joined) -> tuple[Array, Array]:
    """Return the calls of a host that wait for work, as rows, and the last of the pairs that each waited for."""
    return _waits(host, clock_host, pairs.calls, device, pairs.work, _streams(device, pairs.work))


def _calls_of(trace: Trace, clock: int | None = None) -> OwnIds:
    """Return the calls of a trace that have an id, on one clock or on all."""
    return _slices_of(trace, clock, _marks(trace).calls)


def _work_of(trace: Trace, clock: int | None = None) -> OwnIds:
    """Return the device work of a trace that has an id."""
    return _slices_of(trace, clock, [_marks(trace).work])


def _meet(side: OwnIds, other: OwnIds) -> bool:
    """Return whether most ids have their other ends among these."""
    return 2 * len(np.intersect1d(side.ids, other.ids)) > min(len(side.ids), len(other.ids))


def _slices_of(trace: Trace, clock: int | None, groups: Sequence[str | Sequence[str]]) -> OwnIds:
    """Return the slices of some categories with an id that is unique in its process and of no other process."""
    on_clock = np.arange(len(trace.slices.ts)) if clock is None else rows_on(trace, clock, trace.slices.track)
    rank_of, process_of = group_numbers(trace.strings, groups), processes(trace.tracks)
    return own_ids(trace, on_clock, _marks(trace), rank_of, process_of, len(groups)).of_one_process()


def group_numbers(strings: Sequence[str], groups: Sequence[str | Sequence[str]]) -> I64:
    """Return the number of the first group of categories that each string is in; the number of groups for none."""
    number_of: dict[str, int] = {}
    for number, group in enumerate(groups):
        number_of = dict.fromkeys([group] if isinstance(group, str) else group, number) | number_of
    return np.array([number_of.get(text, len(groups)) for text in strings], np.int64)


def own_ids(trace: Trace, rows: Array, marks: LaunchMarks, rank_of: I64, process_of: I64, groups: int) -> OwnIds:
    """Return the slices of some categories with an id that no other one of their process has.

    Args:
        rows: those that count.
        rank_of: `group_numbers` of the categories; if slices of several groups of a process have an id, it belongs to
            the first group.
        process_of: the process of each track.
    """
    rank = rank_of[trace.slices.category[rows]]
    here, ids = with_ids(trace, rows[rank < groups], marks)
    rank = rank_of[trace.slices.category[here]]
    process = process_of[trace.slices.track[here]]
    order = np.lexsort((rank, process, ids))
    here, ids, process, rank = here[order], ids[order], process[order], rank[order]
    first = np.flatnonzero(np.append(True, (np.diff(ids) != 0) | (np.diff(process) != 0))) if len(ids) else order
    key = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(ids))))
    count = np.bincount(key[rank == rank[first][key]], minlength=len(first))
    unique = first[count == 1]
    return OwnIds(ids[unique], here[unique], process[unique], int(count[count > 1].sum()))


def with_ids(trace: Trace, rows: Array, marks: LaunchMarks) -> tuple[Array, Array]:
    """Return those of some slices that have an id, and the ids; without failed calls, which launched nothing."""
    ids = ids_of(trace.args, trace.slices.args_at[rows], trace.slices.args_len[rows], marks)
    return rows[ids > 0], ids[ids > 0]


def _waits(host: Trace, clock: int, calls: Array, device: Trace, work: Array, stream: Array) -> tuple[Array, Array]:
    """Return the calls that wait, as rows of the host, and the last row of the pairs that each waited for."""
    slices, marks = host.slices, _marks(host)
    copies, names = (
        [number for number, text in enumerate(host.strings) if text and fits(text)]
        for fits in (re.compile(marks.copies).fullmatch, re.compile(marks.waits).fullmatch)
    )
    direction = _marks(device).to_host or r"(?!)"  # without a pattern for copies to the host there are none
    to_host = [number for number, text in enumerate(device.strings) if re.search(direction, text)]
    copied = np.flatnonzero(np.isin(slices.name[calls], copies) & np.isin(device.slices.name[work], to_host))
    rows, waited = [calls[copied]], [copied]
    waits = rows_on(host, clock, slices.track)
    waits = waits[np.isin(slices.name[waits], names)]
    if len({device.tracks[track].parent for track in np.unique(stream).tolist()}) == 1:  # one device, one context
        for thread, target in product(np.unique(slices.track[waits]).tolist(), np.unique(stream).tolist()):
            # The last launch of the thread to the stream before each call that waits, unless one waited for it.
            of_thread = waits[slices.track[waits] == thread]
            pairs = np.flatnonzero((slices.track[calls] == thread) & (stream == target))
            before = np.searchsorted(slices.ts[calls[pairs]], slices.ts[of_thread], "right") - 1
            last, first = np.unique(before, return_index=True)
            rows.append(of_thread[first[last >= 0]])
            waited.append(pairs[last[last >= 0]])
    done = np.concatenate(waited)
    order = np.argsort(done, kind="stable")
    return np.concatenate(rows)[order], done[order]


def align_launches(pairs: Launches, prior: Prior) -> Estimate:
    """Return the relation of the clock of a host (x) to that of a device (y)."""
    estimate, repeated = _estimate(pairs, prior), pairs.joined.repeated
    left_out = f" (left out: {repeated} slices whose id belongs to another slice)" if repeated else ""
    return replace(estimate, reason=f"{estimate.reason}{left_out}")


def _estimate(pairs: Launches, prior: Prior) -> Estimate:
    if len(pairs) < _LEAST_PAIRS:
        return insufficient(Method.LAUNCHES, f"only {len(pairs)} launch ids are in both files")
    if pairs.joined.share < LEAST_SHARE:
        return insufficient(
            Method.LAUNCHES,
            f"only {pairs.joined.share:.0%} of the device work has a launch with its id: these look like two runs",
        )
    kept = _in_order(pairs)
    in_order = float(kept.mean())
    if in_order < _LEAST_ORDER:
        return insufficient(
            Method.LAUNCHES,
            f"only {in_order:.0%} of the device work is in the order of its launches: these look like two runs",
        )
    bounds = pairs.constraints(kept)
    line, wrong = _line(bounds, prior), 1 - in_order
    trimmed = bounds.trimmed(line.drift, line.x0, min(_TRIM + wrong / 2, _MOST_TRIM)) if wrong else bounds
    region = feasible(trimmed, everything(line.x0, prior.max_drift))
    verdict, reason, region = _judged(trimmed, region, prior, *_same_gaps(pairs, kept))
    span = float(pairs.launch[0]), float(pairs.launch[-1])
    offset, drift = (line.offset, line.drift) if region is None else region.middle(span)
    return Estimate(
        Method.LAUNCHES,
        verdict,
        reason,
        Chain((Line(offset, drift, line.x0, region=region),)),
        matches=int(kept.sum()),
        dropped=int(len(pairs) - kept.sum()) + len(bounds) - len(trimmed),
        wrong=max(WRONG_IDS, wrong + _MOST_TRIM if wrong else 0.0),
    )


def _judged(
    bounds: LinearConstraints, region: Region | None, prior: Prior, same: float, gaps: int
) -> tuple[Verdict, str, Region | None]:
    """Return the verdict, its reason, and the region."""
    waits, launches = len(bounds.lower), len(bounds.upper)
    if region is None:
        reason = f"{launches} launches and {waits} waits contradict each other: {OTHER_RUN}"
        return Verdict.INSUFFICIENT, reason, None
    if prior.known:
        ends = np.array([bounds.upper_x[0], bounds.upper_x[-1]])
        region = feasible(LinearConstraints(ends, np.full(2, prior.low), ends, np.full(2, prior.high)), region)
        if region is None:
            verdict = Verdict.INCONSISTENT if same >= _SURE else Verdict.INSUFFICIENT
            return verdict, f"{launches} launches and {waits} waits contradict what is known of the clocks", None
    elif waits < _LEAST_WAITS:
        reason = (
            f"{launches} kernels start after their launches, which limits the offset on one side; on the other side, "
            f"only {waits} calls wait for the device: record more of them (cudaDeviceSynchronize), or state roughly "
            "how the clocks are related"
        )
        return Verdict.INSUFFICIENT, reason, None
    compared = f"{gaps} gaps between them in both files are correlated to {max(same, 0):.0%}"
    if gaps < _LEAST_GAPS or same < _CHANCE:
        reason = f"ids are equal, but too little shows that the files are of one run ({compared})"
        return Verdict.INSUFFICIENT, reason, None
    if same < (_SURE if waits >= _LEAST_WAITS else _SURE_ALONE):
        return Verdict.UNVERIFIED, f"launches and kernels fit, but may be of two runs ({compared})", region
    reason = f"{launches} kernels start after their launches, {waits} waits end after the kernels ({compared})"
    return Verdict.OK, reason, region


def _in_order(pairs: Launches) -> Array:
    """Return the largest set of pairs of each thread and stream whose work starts in the order of the launches."""
    kept = np.zeros(len(pairs), bool)
    lanes = pairs.thread.astype(np.int64) * (int(pairs.stream.max()) + 1) + pairs.stream
    for lane in np.unique(lanes).tolist():
        rows = np.flatnonzero(lanes == lane)
        kept[rows[_longest_ascent(pairs.begin[rows])]] = True
    return kept


def _longest_ascent(values: F64) -> list[int]:
    """Return the positions of a longest part of a sequence that never descends."""
    lows: list[float] = []
    ends: list[int] = []
    before = [-1] * len(values)
    for place, value in enumerate(values.tolist()):
        length = bisect_right(lows, value)
        before[place] = ends[length - 1] if length else -1
        lows[length : length + 1] = [value]
        ends[length : length + 1] = [place]
    ascent = []
    at = ends[-1] if ends else -1
    while at >= 0:
        ascent.append(at)
        at = before[at]
    return ascent[::-1]


def _line(bounds: LinearConstraints, prior: Prior) -> Line:
    """Return a line near the bounds: along the side that is straighter, block by block."""
    lines = []
    for x, y in ((bounds.upper_x, bounds.upper), (bounds.lower_x, -bounds.lower)):
        blocks = min(_BLOCKS, len(x) // _LEAST_BLOCK)
        if blocks < 2:
            continue
        order = np.array_split(np.argsort(x, kind="stable"), blocks)
        middles = np.array([float(x[rows].mean()) for rows in order])
        tight = np.array([float(np.quantile(y[rows], _TIGHT_SHARE)) for rows in order])
        offset, drift, scale = robust_line(middles, tight, _LEAST_SCALE_NS, prior.max_drift, _USUAL_DRIFT)
        sign = 1 if x is bounds.upper_x else -1
        lines.append((scale, Line(sign * offset, sign * drift, float(middles.mean()))))
    return min(lines, key=lambda fit: fit[0])[1]


def _same_gaps(pairs: Launches, kept: Array) -> tuple[float, int]:
    """Return how well gaps vary together, and how many were compared: of launches or of waits, whichever is better.

    An idle device works when it is asked to. A busy one is waited for, and the calls return when it is done.
    """
    waits = kept[pairs.waited]
    done = pairs.waited[waits]
    rows, ids = np.flatnonzero(kept), pairs.joined.ids
    looks = [
        _agreement(pairs.launch[rows], pairs.begin[rows], pairs.name[rows], ids[rows]),
        _agreement(pairs.wait_end[waits], pairs.end[done], pairs.name[done], ids[done]),
    ]
    enough = [look for look in looks if look[1] >= _LEAST_GAPS]
    return max(enough or looks)


def _agreement(x: F64, y: F64, name: Array, ids: Array) -> tuple[float, int]:
    """Return the rank correlation of the gaps between events in both inputs, and how many gaps count.

    Where work is missing a gap is longer in both, whichever run they are of. So gaps are compared within a kind:
    between the same work, as many ids apart.
    """
    if len(x) < 3:
        return 0.0, 0
    return vary_together(*since_last((name[:-1], name[1:], np.diff(ids)), np.diff(x), np.diff(y)))

"""A file with the calls of a host, another one with the work of a device: related by the ids that both wrote down.

No kernel begins before the call that launched it, and a call that waits for the device returns after the kernels that
were launched before. The first bounds the relation of the clocks on one side, the second on the other one. Which
kernels a call waits for is known from the host alone: those that its thread launched before.

Ids prove nothing by themselves, since every process counts from 1, and the same programme gives the same work the same
ids each time. So the files are of one run only if the bounds leave room for a relation, and if what lies between two
launches (or two waits) is longer or shorter than the last time in both files alike, also for the same work.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np

from traceconv.align.estimate import OTHER_RUN, Array, Estimate, Method, Prior, insufficient
from traceconv.align.geometry import F64, Constraints, Region, everything, feasible
from traceconv.align.matching import Line
from traceconv.align.robust import robust_line, since_last, vary_alike
from traceconv.clocks import ClockMap, Verdict
from traceconv.ir.marks import LaunchMarks
from traceconv.ir.trace import I64, Trace
from traceconv.times import format_time

_LEAST_PAIRS = 30
_LEAST_WAITS = 5
#: Where more than this share of the work is too early, wrong ids do not explain it.
WRONG_IDS = 0.02
#: Of the work of the device, so much must have a call, or it is of another run.
LEAST_SHARE = 0.5
#: So many pairs must be in order: with wrong ids each in twenty, more than 0.9 are.
_LEAST_ORDER = 0.8
#: Where some pairs are out of order, others may be wrong and in order: so many of the tightest bounds are left out,
#: and half as many as were out of order, but no more than the second.
_TRIM, _MOST_TRIM = 0.01, 0.05
_BLOCKS, _LEAST_BLOCK = 40, 5
_LEAST_SCALE_NS, _PRIOR_DRIFT = 1000.0, 100e-6
#: With so many gaps that can be compared, and this rank correlation, it is one run: of logs of different runs of one
#: programme, durations reach 0.7. Bounds on one side contradict nothing, so more is asked of the gaps then. With less
#: than the last it is another run, or chance.
_LEAST_GAPS, _SURE, _SURE_ALONE, _CHANCE = 20, 0.75, 0.9, 0.3
_US = 1e3


@dataclass(frozen=True, slots=True)
class _Side:
    """Slices with an id that no other one on this clock has.

    Attributes:
        ids: ascending.
        rows: of the slices.
        repeated: how many slices were left out because their id is not their own.
    """

    ids: Array
    rows: Array
    repeated: int


@dataclass(frozen=True, slots=True)
class Pairs:
    """Launches of a host (clock x) and what they launched (clock y), in order of the launches, with the waits.

    Attributes:
        launch, begin, end: when it was launched, ns from `zero_x`; when the work begins and ends, ns from `zero_y`.
        thread, stream: the tracks.
        name: of the work, in numbers.
        id: what both sides wrote down.
        wait_end, waited: when a call returns, and for which row of the pairs it waited at least.
        zero_x, zero_y: what times count from.
        quantum_x, quantum_y: the resolution of the times as printed, ns.
        share: how much of the work of the device, as far as ids go in both files, has a launch.
        repeated: how many slices were left out because their id is not their own.
    """

    launch: F64
    begin: F64
    end: F64
    thread: Array
    stream: Array
    name: Array
    id: Array
    wait_end: F64
    waited: Array
    zero_x: int
    zero_y: int
    quantum_x: float
    quantum_y: float
    share: float
    repeated: int

    def __len__(self) -> int:
        return len(self.launch)

    def constraints(self, kept: Array) -> Constraints:
        """What the pairs mean, but for some; printed times are cut to their resolution."""
        launch = self.launch[kept]
        waits = kept[self.waited]
        returned = self.wait_end[waits] + 2 * self.quantum_x
        return Constraints(
            returned,
            self.end[self.waited[waits]] - returned,
            launch,
            self.begin[kept] + self.quantum_y - launch,
        )


@dataclass(frozen=True, slots=True)
class Joined:
    """Calls of a host and what they launched, by their ids, in order of the calls.

    Attributes:
        calls, work: the rows of the slices in the two files.
        ids: that they share.
        share: how much of the work of the device, as far as ids go in both files, has a launch.
        repeated: how many slices were left out because their id is not their own.
    """

    calls: Array
    work: Array
    ids: Array
    share: float
    repeated: int


def are_apart(host: Trace, device: Trace) -> bool:
    """Whether one file has the calls and no work, the other one the work and no calls: cheap, and says no in doubt."""
    marks = [_marks(trace) for trace in (host, device)]
    texts = [set(trace.strings) for trace in (host, device)]
    calls = [not text.isdisjoint(mark.calls) for text, mark in zip(texts, marks, strict=True)]
    work = [not text.isdisjoint(mark.work) for text, mark in zip(texts, marks, strict=True)]
    return calls == [True, False] and work == [False, True]


def _marks(trace: Trace) -> LaunchMarks:
    """How launches are told in a trace; nothing is one where its format has none."""
    return trace.sources[0].marks.launches or LaunchMarks()


def joined(host: Trace, clock_host: int, device: Trace, clock_device: int) -> Joined | None:
    """The calls of one clock and the work of another one with the same ids; None if these are no such files.

    A file with calls and their work knows its clocks: its ids are no evidence about other files.
    """
    calls = _slices_of(host, clock_host, [[text] for text in _marks(host).calls])
    work = _slices_of(device, clock_device, [_marks(device).work])
    if calls is None or work is None:
        return None
    if _own(host, calls, [_marks(host).work]) or _own(device, work, [[text] for text in _marks(device).calls]):
        return None
    ids, of_calls, of_work = np.intersect1d(calls.ids, work.ids, assume_unique=True, return_indices=True)
    if not len(ids):
        return None
    first, last = max(calls.ids[0], work.ids[0]), min(calls.ids[-1], work.ids[-1])
    common = int(((work.ids >= first) & (work.ids <= last)).sum())
    call_rows, work_rows = calls.rows[of_calls], work.rows[of_work]
    order = np.argsort(host.slices.ts[call_rows], kind="stable")
    return Joined(call_rows[order], work_rows[order], ids[order], len(ids) / common, calls.repeated + work.repeated)


def host_and_device(traces: Sequence[Trace]) -> tuple[int, int] | None:
    """The numbers of the file with the calls and of the one with the work; None if there are not just these two.

    Each process counts its ids from 1: where several files could be the other half, none is taken for it.
    """
    places = permutations(range(len(traces)), 2)
    apart = [(host, device) for host, device in places if are_apart(traces[host], traces[device])]
    return apart[0] if len(apart) == 1 else None


@dataclass(frozen=True, slots=True)
class EarlyWork:
    """By how much each of some work begins before the call that launched it, ns; less than 0 if after it."""

    by_ns: I64

    @property
    def worst_ns(self) -> int:
        """The most."""
        return int(np.max(self.by_ns))

    def beyond(self, left_open: int) -> bool:
        """Whether most of it is early, and some of it by more than is possible; a few ids may be wrong."""
        impossible = int((self.by_ns > left_open).sum())
        return 2 * int((self.by_ns > 0).sum()) > len(self.by_ns) and impossible > WRONG_IDS * len(self.by_ns)

    def describe(self) -> str:
        """How much is early, for people."""
        count = int((self.by_ns > 0).sum())
        worst = format_time(self.worst_ns)
        return f"{count} of {len(self.by_ns)} kernels begin before the calls that launched them, by up to {worst}"


def early_work(
    host: Trace, clock_host: int, device: Trace, clock_device: int, ways: tuple[ClockMap, ClockMap]
) -> EarlyWork | None:
    """By how much work begins before its calls, two clocks put on one by maps; None with too few launches in common."""
    both = joined(host, clock_host, device, clock_device)
    if both is None or both.share < LEAST_SHARE or len(both.ids) < _LEAST_PAIRS:
        return None
    return EarlyWork(ways[0].apply(host.slices.ts[both.calls]) - ways[1].apply(device.slices.ts[both.work]))


def launches_of(host: Trace, clock_host: int, device: Trace, clock_device: int) -> Pairs | None:
    """What is known of the launches that two files have in common; None if there are none."""
    both = joined(host, clock_host, device, clock_device)
    return None if both is None else _paired(host, device, both, clock_host)


def _paired(host: Trace, device: Trace, both: Joined, clock: int) -> Pairs:
    hosts, devices, calls, work = host.slices, device.slices, both.calls, both.work
    zero_x, zero_y = int(hosts.ts[calls[0]]), int(np.min(devices.ts[work]))
    begin = (devices.ts[work] - zero_y).astype(np.float64)
    stream = np.array([track if own.lane_of < 0 else own.lane_of for track, own in enumerate(device.tracks)])
    stream = stream[devices.track[work]]
    wait_rows, waited = _waits(host, clock, calls, device, work, stream)
    return Pairs(
        (hosts.ts[calls] - zero_x).astype(np.float64),
        begin,
        begin + devices.dur[work],
        hosts.track[calls],
        stream,
        devices.name[work],
        both.ids,
        (hosts.ts[wait_rows] + hosts.dur[wait_rows] - zero_x).astype(np.float64),
        waited,
        zero_x,
        zero_y,
        max(float(host.clocks[clock].resolution_ns), 1.0),
        max(float(device.clocks[int(device.tracks[int(devices.track[work[0]])].clock)].resolution_ns), 1.0),
        both.share,
        both.repeated,
    )


def _slices_of(trace: Trace, clock: int | None, groups: Sequence[Sequence[str]]) -> _Side | None:
    """The slices of some categories with an id of their own; None if there are none.

    Args:
        trace: an input.
        clock: only those on this clock, or all.
        groups: the categories; of an id that slices of several groups have, those of the first group have it.
    """
    slices = trace.slices
    clocks = np.array([int(track.clock) for track in trace.tracks] or [0])
    on_clock = np.ones(len(slices.ts), bool) if clock is None else clocks[slices.track] == clock
    ids, rows, repeated = np.zeros(0, np.int64), np.zeros(0, np.int64), 0
    for group in groups:
        numbers = [number for number, text in enumerate(trace.strings) if text in group]
        if not numbers:
            continue
        here, found = _ids(trace, np.flatnonzero(on_clock & np.isin(slices.category, numbers)))
        new = ~np.isin(found, ids)
        values, first, count = np.unique(found[new], return_index=True, return_counts=True)
        ids = np.concatenate((ids, values[count == 1]))
        rows = np.concatenate((rows, here[new][first[count == 1]]))
        repeated += int(count[count > 1].sum())
    order = np.argsort(ids)
    return _Side(ids[order], rows[order], repeated) if len(ids) else None


def _ids(trace: Trace, rows: Array) -> tuple[Array, Array]:
    """The rows that have an id, and the ids; calls that failed launched nothing."""
    slices, marks = trace.slices, _marks(trace)
    names = "|".join(map(re.escape, marks.ids)).encode()
    of_id = re.compile(rb'"(?:%b)"\s*:\s*(\d{1,18})\s*[,}]' % names)
    failed = re.compile(rb'"%b"\s*:\s*[1-9]' % re.escape(marks.failed).encode())
    kept, ids = [], []
    located = zip(rows.tolist(), slices.args_at[rows].tolist(), slices.args_len[rows].tolist(), strict=True)
    for row, at, size in located:
        args = trace.args.get(at, size)
        found = of_id.search(args)
        if found is not None and int(found[1]) and not (marks.failed and failed.search(args)):
            kept.append(row)
            ids.append(int(found[1]))
    return np.array(kept, np.int64), np.array(ids, np.int64)


def _own(trace: Trace, side: _Side, others: Sequence[Sequence[str]]) -> bool:
    """Whether a file has the other ends of its ids itself."""
    here = _slices_of(trace, None, others)
    return here is not None and 2 * len(np.intersect1d(side.ids, here.ids)) > min(len(side.ids), len(here.ids))


def _fully_named(trace: Trace, pattern: str) -> list[int]:
    """The numbers of the texts of a trace that fit a pattern as a whole."""
    fits = re.compile(pattern)
    return [number for number, text in enumerate(trace.strings) if text and fits.fullmatch(text)]


def _waits(host: Trace, clock: int, calls: Array, device: Trace, work: Array, stream: Array) -> tuple[Array, Array]:
    """The calls that wait, as rows of the host, and for each one a row of the pairs that was done when it returned."""
    slices = host.slices
    asked = _marks(host)
    copies, names = _fully_named(host, asked.copies), _fully_named(host, asked.waits)
    to_host = [number for number, text in enumerate(device.strings) if re.search(_marks(device).to_host, text)]
    copied = np.flatnonzero(np.isin(slices.name[calls], copies) & np.isin(device.slices.name[work], to_host))
    rows, waited = calls[copied].tolist(), copied.tolist()
    waits = np.flatnonzero(np.isin(slices.name, names))
    waits = waits[[int(host.tracks[track].clock) == clock for track in slices.track[waits].tolist()]]
    if len({device.tracks[track].parent for track in np.unique(stream).tolist()}) == 1:  # one device, one context
        for row, pair in _last_before(slices.ts, slices.track, calls, stream, waits):
            rows.append(row)
            waited.append(pair)
    order = np.argsort(waited, kind="stable")
    return np.array(rows, np.int64)[order], np.array(waited, np.int64)[order]


def _last_before(ts: Array, track: Array, calls: Array, stream: Array, waits: Array) -> list[tuple[int, int]]:
    """For each call that waits the last launch of its thread to each stream before it, unless one waited for it."""
    found: dict[int, int] = {}
    for thread in np.unique(track[waits]).tolist():
        for target in np.unique(stream).tolist():
            pairs = np.flatnonzero((track[calls] == thread) & (stream == target)).tolist()
            times = ts[calls[pairs]].tolist()
            for row in waits[track[waits] == thread].tolist():
                at = bisect_right(times, int(ts[row])) - 1
                if at >= 0:
                    found.setdefault(pairs[at], row)
    return [(row, pair) for pair, row in found.items()]


# -- the estimate ---------------------------------------------------------------------------------------------------


def align_launches(pairs: Pairs, prior: Prior) -> Estimate:
    """Relate the clock of a host (x) to that of a device (y).

    Args:
        pairs: what both know.
        prior: what is known beforehand, for the whole of the evidence.
    """
    dropped = f" ({pairs.repeated} slices with ids that are not their own are left out)" if pairs.repeated else ""
    if len(pairs) < _LEAST_PAIRS:
        return insufficient(Method.LAUNCHES, f"only {len(pairs)} ids of launches are in both files{dropped}")
    if pairs.share < LEAST_SHARE:
        reason = f"only {pairs.share:.0%} of the work has a launch with its id: these look like two different runs"
        return insufficient(Method.LAUNCHES, reason + dropped)
    kept = _in_order(pairs)
    if kept.mean() < _LEAST_ORDER:
        reason = f"only {kept.mean():.0%} of the work is in the order of its launches: these look like different runs"
        return insufficient(Method.LAUNCHES, reason + dropped)
    bounds = pairs.constraints(kept)
    line = _line(bounds, prior)
    wrong = 1 - float(kept.mean())
    trimmed = bounds.trimmed(line.drift, line.x0, min(_TRIM + wrong / 2, _MOST_TRIM)) if wrong else bounds
    region = feasible(trimmed, everything(line.x0, prior.max_drift))
    same, gaps = _same_gaps(pairs, kept)
    base = Estimate(
        Method.LAUNCHES,
        Verdict.INSUFFICIENT,
        "",
        line.offset,
        line.drift,
        line.x0,
        matches=int(kept.sum()),
        dropped=int(len(pairs) - kept.sum()) + len(bounds) - len(trimmed),
        wrong=max(WRONG_IDS, wrong + _MOST_TRIM if wrong else 0.0),
    )
    verdict, reason, region = _judged(trimmed, region, prior, same, gaps)
    if region is None:
        return replace(base, verdict=verdict, reason=reason + dropped)
    offset, drift = region.middle((float(pairs.launch[0]), float(pairs.launch[-1])))
    return replace(base, verdict=verdict, reason=reason + dropped, region=region, offset_ns=offset, drift=drift)


def _judged(
    bounds: Constraints, region: Region | None, prior: Prior, same: float, gaps: int
) -> tuple[Verdict, str, Region | None]:
    """The verdict, why, and the relations that are possible."""
    waits, launches = len(bounds.lower), len(bounds.upper)
    if region is None:
        reason = f"{launches} launches and {waits} waits contradict each other, {OTHER_RUN}"
        return Verdict.INSUFFICIENT, reason, None
    if prior.known:
        ends = np.array([bounds.upper_x[0], bounds.upper_x[-1]])
        known = Constraints(ends, np.full(2, prior.low), ends, np.full(2, prior.high))
        region = feasible(known, region)
        if region is None:
            reason = f"{launches} launches and {waits} waits contradict what is known of the clocks"
            return (Verdict.INCONSISTENT if same >= _SURE else Verdict.INSUFFICIENT), reason, None
    elif waits < _LEAST_WAITS:
        reason = (
            f"{launches} kernels begin after their launches, which says how late they are at most, and {waits} calls "
            "wait for the device, which would say how early: record calls that do (cudaDeviceSynchronize), or say "
            "roughly how the clocks are related"
        )
        return Verdict.INSUFFICIENT, reason, None
    compared = f"{gaps} gaps between them vary alike in both, to {max(same, 0):.0%}"
    if gaps < _LEAST_GAPS or same < _CHANCE:
        reason = f"ids are the same, but too little shows that it is one run ({compared})"
        return Verdict.INSUFFICIENT, reason, None
    if same < (_SURE if waits >= _LEAST_WAITS else _SURE_ALONE):
        return Verdict.UNVERIFIED, f"launches and kernels fit, but may be of two runs ({compared})", region
    return (
        Verdict.OK,
        f"{launches} kernels begin after their launches, {waits} waits end after them ({compared})",
        region,
    )


def _in_order(pairs: Pairs) -> Array:
    """The pairs of each thread and stream whose work begins in the order of the launches: the most that do together."""
    kept = np.zeros(len(pairs), bool)
    lanes = pairs.thread.astype(np.int64) * (int(pairs.stream.max()) + 1) + pairs.stream
    for lane in np.unique(lanes).tolist():
        rows = np.flatnonzero(lanes == lane)
        kept[rows[_longest_ascent(pairs.begin[rows])]] = True
    return kept


def _longest_ascent(values: F64) -> list[int]:
    """The places of a longest part of a sequence that never descends."""
    lows: list[float] = []
    ends: list[int] = []
    before = [-1] * len(values)
    for place, value in enumerate(values.tolist()):
        length = bisect_right(lows, value)
        before[place] = ends[length - 1] if length else -1
        lows[length : length + 1] = [value]
        ends[length : length + 1] = [place]
    found = []
    at = ends[-1] if ends else -1
    while at >= 0:
        found.append(at)
        at = before[at]
    return found[::-1]


def _line(bounds: Constraints, prior: Prior) -> Line:
    """A line near the bounds: along that side which lies straighter, block by block."""
    found = []
    for x, y in ((bounds.upper_x, bounds.upper), (bounds.lower_x, -bounds.lower)):
        blocks = min(_BLOCKS, len(x) // _LEAST_BLOCK)
        if blocks < 2:
            continue
        order = np.array_split(np.argsort(x, kind="stable"), blocks)
        middles = np.array([float(x[rows].mean()) for rows in order])
        tight = np.array([float(np.quantile(y[rows], 0.2)) for rows in order])
        offset, drift, scale = robust_line(middles, tight, _LEAST_SCALE_NS, prior.max_drift, _PRIOR_DRIFT)
        sign = 1 if x is bounds.upper_x else -1
        found.append((scale, Line(sign * offset, sign * drift, float(middles.mean()))))
    return min(found, key=lambda one: one[0])[1]


def _same_gaps(pairs: Pairs, kept: Array) -> tuple[float, int]:
    """How well gaps go up and down together: the better of launches and waits, and how many gaps were compared.

    Where the device is idle it works when it is asked to; where it is busy, calls that wait return when it is done.
    """
    waits = kept[pairs.waited]
    done = pairs.waited[waits]
    rows = np.flatnonzero(kept)
    looks = [
        _agreement(pairs.launch[rows], pairs.begin[rows], pairs.name[rows], pairs.id[rows]),
        _agreement(pairs.wait_end[waits], pairs.end[done], pairs.name[done], pairs.id[done]),
    ]
    enough = [look for look in looks if look[1] >= _LEAST_GAPS]
    return max(enough or looks)


def _agreement(x: F64, y: F64, name: Array, ids: Array) -> tuple[float, int]:
    """Whether what is between two events varies alike in both, and how many gaps tell.

    Where some of the work is lost, a gap is longer in both, whichever run they are of: so gaps are of one kind that are
    between the same work, as many ids apart.
    """
    if len(x) < 3:
        return 0.0, 0
    return vary_alike(*since_last((name[:-1], name[1:], np.diff(ids)), np.diff(x), np.diff(y)))

"""Bound the offsets between the clocks of hosts by collectives in which all members wait for all.

When the last member on host b enters such a collective, no member on host a has left it: at that instant the offset of
a against b is at most end(a) - start(b). Bounds add up along paths through other hosts: the tightest one is the
shortest path. A loop of negative length is a contradiction: no offsets satisfy all collectives.

Two clocks differ by a line, except for a small change of their rate (wander). The lines within all bounds of two hosts
are a convex region. The offset at an instant follows from two bounds at a time: one before and one after it, or an
upper and a lower one on one side, which limit the slope. The wander between the instant and the time of a bound is
added to that bound.

A clock that was set, or set and set back, by less than their width makes no contradiction: what the collectives of that
stretch and the others allow overlaps, and the overlap may hold neither offset. So if the overlap of a stretch of the
recording and the rest is clearly narrower than both, what either allows is kept.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct, field

from traceconv.align.geometry import F64, median, quantile, rank_correlation, robust_line, spread_of
from traceconv.model.clocks import DRIFT_UNIT, HOSTS_DRIFT, SLEWED_DRIFT, ClockMap
from traceconv.model.columns import I64

#: The largest change of this rate within a recording, from temperature and corrections of the kernel.
WANDER = 2e-6
#: To limit the cost, only the tightest bound of two hosts is used in each of this many parts of the recording; there
#: are fewer parts with many hosts.
_PARTS, _PARTS_OF_MANY, _MANY = 16, 4, 130
#: The number of instants at which intervals are computed; between them, the wander is added.
_INSTANTS, _INSTANTS_OF_MANY = 9, 3
#: A clock may have been set if the overlap of what a stretch and the rest allow is less than this part of the narrower
#: one. If it is more, an offset in the overlap is off by no more than half of it.
_CLEARLY = 0.6
#: With up to this many hosts, one part is left out where a stretch begins and ends; with more, to limit time, two.
_FEW = 16
#: The pairs of bounds that are computed together, to limit memory.
_PAIRS_TOGETHER = 1 << 14
#: The rounding error of two bounds in 64-bit floats, ns.
_ROUNDING = 2.0


class HostIntervals(Struct, frozen=True):
    """The limits of the offset of the clock of each host against the first one.

    Attributes:
        least, most: the limits by instant and host, ns; infinite if not known.
        contradicting: the collectives that contradict each other, each with its row, the host of the first exit, and
            the host of the last entry; empty without a contradiction.
        between: the greatest offset of each host against each other one in the middle of the recordings, ns.
    """

    instants: F64
    least: F64
    most: F64
    contradicting: tuple[tuple[int, int, int], ...] = ()
    between: F64 = field(default_factory=lambda: np.zeros((0, 0)))

    def known(self, host: int) -> bool:
        """Return whether the offset of a host is limited."""
        return bool(np.all(np.isfinite(self.least[:, host]) & np.isfinite(self.most[:, host])))


def host_intervals(entered: F64, left: F64, span: tuple[float, float], rate: float = HOSTS_DRIFT) -> HostIntervals:
    """Return the limits of the offsets between the clocks of hosts.

    Args:
        entered: the earliest possible time of the last entry, by collective and host, on the clock of the host, ns; NaN
            for a host that did not take part. The clocks must agree roughly already.
        left: the latest possible time of the first exit, likewise.
        span: the first and the last time of the limits, ns.
        rate: the largest drift, as a ratio.
    """
    many = entered.shape[1] > _MANY
    at = np.linspace(*span, _INSTANTS_OF_MANY if many else _INSTANTS)
    return _intervals(entered, left, at if rate else at[:1], rate)


def _intervals(entered: F64, left: F64, at: F64, rate: float) -> HostIntervals:
    """Return the limits at some instants for a largest drift; without drift there is no wander, either."""
    hosts = entered.shape[1]
    limits = _Limits(entered, left, _PARTS_OF_MANY if hosts > _MANY else _PARTS, rate)
    (most,) = limits.between_all(at)
    around = most + most.transpose(0, 2, 1)
    worst = np.unravel_index(int(np.argmin(around)), around.shape)
    if around[worst] < -_ROUNDING:
        return HostIntervals(at, -most[:, 0], most[:, :, 0], limits.contradicting(int(worst[1]), int(worst[2])))
    ahead, steps = _shortest(most)
    wrong = {(limits.tightest(host, other, at[number]), host, other) for number, host, other in steps}
    if len(at) > 1 and not wrong and _widen_at_steps(most, limits, at):
        ahead, _ = _shortest(most)
    behind, _ = _shortest(most.transpose(0, 2, 1))
    between = most[len(at) // 2]
    for by in range(hosts) if hosts <= _MANY else ():  # with many hosts, a path through the first host is as good
        between = np.minimum(between, between[:, by, None] + between[by])
    return HostIntervals(at, -behind, ahead, tuple(sorted(wrong)), between)


def _widen_at_steps(most: F64, limits: _Limits, at: F64) -> bool:
    """Widen the limits of hosts whose clocks may have been set, or set and set back; return whether there are any."""
    share, without = np.full(most.shape[1:], _CLEARLY), np.zeros((2, *most.shape[1:]), np.int64)
    out = 1 if len(share) <= _FEW else 2
    for first in range(out, limits.parts - out, out):
        # The clock was set in the parts from the first one on, and back in those from the last one on, if it was.
        lasts = range(first + 2 * out, limits.parts + out, out)
        sides = [side for last in lasts for side in limits.sides(first, last, out)]
        found = limits.between_all(limits.begin[[first]], sides)[:, 0]
        for last, stretch, rest in zip(lasts, found[::2], found[1::2], strict=True):
            narrower, overlap = np.minimum(stretch + stretch.T, rest + rest.T), np.minimum(stretch, rest)
            known = np.isfinite(narrower)
            ratio = np.where(known, overlap + overlap.T, np.inf) / np.where(known & (narrower > 0), narrower, 1)
            more = ratio < share
            share[more] = ratio[more]
            without[:, more] = np.array([[first], [last]])
    around, begin = float(np.max(np.diff(at))), np.append(limits.begin, [np.inf] * out)
    for first, last in np.unique(without[:, share < _CLEARLY], axis=1).T.tolist():
        hosts, others = np.nonzero((without[0] == first) & (without[1] == last))
        within = (at >= begin[first] - around) & (at <= begin[min(last + out, limits.parts)] + around)
        beside = (at <= begin[first + out] + around) | (at >= begin[last] - around)
        for side, where in zip(limits.sides(first, last, out), (within, beside), strict=True):
            rows = np.unique(hosts)
            either = limits.between_all(at[where], [side], rows)[0][:, np.searchsorted(rows, hosts), others]
            index = np.flatnonzero(where)[:, None], hosts, others
            most[index] = np.maximum(most[index], either)
    return bool(np.any(share < _CLEARLY))


def can_agree(entered: F64, left: F64) -> bool:
    """Return whether any offsets of two hosts satisfy all collectives, also if one clock is being slewed.

    The columns are those of `host_intervals`.
    """
    return not _intervals(entered, left, np.array([np.nanmin(entered)]), SLEWED_DRIFT).contradicting


def _shortest(most: F64) -> tuple[F64, list[tuple[int, int, int]]]:
    """Return the shortest paths to the first host by instant, and the steps of a loop of negative length, if any."""
    instants, hosts = most.shape[:2]
    length = np.full((instants, hosts), np.inf)
    length[:, 0] = 0
    through = np.zeros((instants, hosts), np.int64)
    for _ in range(hosts + 1):
        maps = most + length[:, None, :]
        best = np.min(maps, axis=2)
        shorter = best < length - _ROUNDING
        if not np.any(shorter):
            return length, []
        through[shorter] = np.argmin(maps, axis=2)[shorter]
        length[shorter] = best[shorter]
    number, host = (int(place[0]) for place in np.nonzero(shorter))
    following = through[number].tolist()
    for _ in range(hosts):
        host = following[host]
    steps = [(number, host, following[host])]
    while steps[-1][2] != host:
        steps.append((number, steps[-1][2], following[steps[-1][2]]))
    return length, steps


class _Limits:
    """The tightest bound of each two hosts in each part of the recording."""

    def __init__(self, entered: F64, left: F64, parts: int, rate: float) -> None:
        self.rate, self.wander = rate, WANDER if rate else 0.0
        hosts = entered.shape[1]
        first = np.min(np.where(np.isnan(entered), np.inf, entered), axis=1)
        order = np.argsort(first, kind="stable")
        begins = np.unique(np.arange(parts) * len(order) // parts)
        self.begin, self.parts = first[order[begins]], len(begins)
        shape = (hosts, len(begins), hosts)
        self.ahead, self.when, self.row = np.full(shape, np.inf), np.zeros(shape), np.zeros(shape, np.int64)
        sorted_entered, sorted_left = entered[order], left[order]
        for host in range(hosts):
            taken = np.flatnonzero(~np.isnan(sorted_left[:, host]))
            ahead = sorted_left[taken, host, None] - sorted_entered[taken]
            ahead += self.rate * np.abs(ahead)  # the time of the bound, on which the clocks of both do not agree
            ahead[np.isnan(ahead)] = np.inf
            for part, rows in enumerate(np.split(np.arange(len(taken)), np.searchsorted(taken, begins[1:]))):
                if len(rows):
                    at = rows[np.argmin(ahead[rows], axis=0)]
                    self.ahead[host, part] = ahead[at, np.arange(hosts)]
                    self.when[host, part] = np.nan_to_num(sorted_entered[taken[at], np.arange(hosts)])
                    self.row[host, part] = order[taken[at]]

    def sides(self, first: int, last: int, out: int) -> tuple[I64, I64]:
        """Return the parts of a stretch and the others, without some parts where it begins and ends."""
        parts = np.arange(self.parts)
        return parts[first + out : last], np.append(parts[:first], parts[last + out :])

    def between_all(self, at: F64, sides: Sequence[I64] = (), rows: I64 | None = None) -> F64:
        """Return the upper bound of the offset of each host against each other one at some instants, ns.

        It is that of some parts of the recording each, or of all.
        """
        hosts = np.arange(len(self.ahead)) if rows is None else rows
        most = np.empty((max(len(sides), 1), len(at), len(hosts), len(self.ahead)))
        step = max(1, _PAIRS_TOGETHER // (len(self.ahead) * self.parts**2))
        for begin in range(0, len(hosts), step):
            some = hosts[begin : begin + step]
            for number, instant in enumerate(at.tolist()):
                most[:, number, begin : begin + step] = self._most(some, instant, sides)
        most += self.wander * float(np.max(np.diff(at), initial=0)) / 2
        most[:, :, np.arange(len(hosts)), hosts] = 0
        return most

    def _most(self, hosts: I64, instant: float, sides: Sequence[I64]) -> F64:
        """Return the upper bounds of the offsets of hosts against each other one at an instant, ns, by sides."""
        others = np.flatnonzero(np.any(np.isfinite(self.ahead[hosts]), axis=(0, 1)))
        pairs, pairs_back = (hosts[:, None], slice(None), others), (others, slice(None), hosts[:, None])
        away, away_back = self.when[pairs] - instant, self.when[pairs_back] - instant
        most = self.ahead[pairs] + self.wander * np.abs(away)
        least = -self.ahead[pairs_back] - self.wander * np.abs(away_back)
        with np.errstate(invalid="ignore"):  # unknown bounds are infinite
            of_two = _between(most, away)
            np.fmin(of_two, _beyond(most, away, least, away_back), out=of_two)
            np.fmin(of_two, _beyond(most, -away, least, -away_back), out=of_two)
        parts = np.arange(self.parts)
        of_two[..., parts, parts] = np.fmin(of_two[..., parts, parts], most + self.rate * np.abs(away))
        of_two[np.isnan(of_two)] = np.inf
        widest = np.full((max(len(sides), 1), len(hosts), len(self.ahead)), np.inf)
        for number, side in enumerate(sides or [parts]):
            widest[number][:, others] = of_two[..., side[:, None], side].min(axis=(2, 3))
        return widest

    def contradicting(self, host: int, other: int) -> tuple[tuple[int, int, int], ...]:
        """Return the bounds of two hosts that contradict each other most, as rows and hosts."""
        most, least = self.ahead[host, :, other], -self.ahead[other, :, host]
        away = np.abs(self.when[host, :, other, None] - self.when[other, None, :, host])
        worst = np.unravel_index(int(np.argmin(most[:, None] - least + self.rate * away)), away.shape)
        wrong = (int(self.row[host, worst[0], other]), host, other), (int(self.row[other, worst[1], host]), other, host)
        return tuple(sorted(wrong))

    def tightest(self, host: int, other: int, instant: float) -> int:
        """Return the row of the tightest bound for an instant."""
        away = np.abs(self.when[host, :, other] - instant)
        return int(self.row[host, int(np.argmin(self.ahead[host, :, other] + self.rate * away)), other])


def _between(most: F64, away: F64) -> F64:
    """Return the upper limits at an instant from an upper bound before it and one after it; NaN for others."""
    before, after = np.where(away <= 0, -away, np.nan)[..., None], np.where(away > 0, away, np.nan)[..., None, :]
    limits: F64 = (most[..., None] * after + most[..., None, :] * before) / (after + before)
    return limits


def _beyond(most: F64, away: F64, least: F64, away_of_least: F64) -> F64:
    """Return the upper limits at an instant from an upper bound before it, and a lower bound before that, likewise."""
    near, far = np.where(away < 0, -away, np.nan)[..., None], -away_of_least[..., None, :]
    since = np.where(far > near, far - near, np.nan)
    limits: F64 = most[..., None] + (most[..., None] - least[..., None, :]) * near / since
    return limits


# -- Estimate the offsets of the clocks of hosts by the ends of collectives, and make the map of each to the first ---

#: Marks a missing time in columns of times, ns; the sum of two fits into 64 bits.
NO_TIME = 2**61
#: The least spread of ends, ns.
_LEAST_SPREAD_NS = 1000.0
#: The shortest tenth of the collectives is used, but at least this many.
_LEAST_SMALL = 8
#: The shortest time of common collectives from which a drift is estimated, unless the intervals require one, ns.
_LONG_ENOUGH = 10**9
#: The error of a time by rounding offset and drift to integers, ns.
_ROUNDED_NS = 4


class HostLines(Struct, frozen=True):
    """The estimated offset of the clock of each host against the first one.

    Attributes:
        base: a time of the first host, ns.
        ahead: the offsets of the hosts at that time, ns.
        drift: the drifts of the hosts, as ratios; positive if they run fast.
        pairs: the hosts that were compared, each with one that was compared before.
    """

    base: int
    ahead: I64
    drift: F64
    pairs: tuple[tuple[int, int], ...] = ()

    def apply(self, times: I64) -> F64:
        """Convert times, a column for each host, to the clock of the first host, ns from the base; NaN for NO_TIME."""
        since = np.where(times < NO_TIME, times - self.base - self.ahead, 0).astype(np.float64)
        return np.where(times < NO_TIME, since / (1 + self.drift), np.nan)


def lines_of_hosts(entered: I64, left: I64) -> HostLines:
    """Estimate the offset of each clock against the first one.

    The hosts are connected one after the other, those with most common collectives first.

    Args:
        entered: the time of the last entry by collective and host, ns; NO_TIME for a host that did not take part.
        left: the time of the first exit, likewise.
    """
    part = entered < NO_TIME
    common = part.T.astype(np.float64) @ part
    base = int(np.min(entered[:, 0]))
    ahead, drift = np.zeros(len(common), np.int64), np.zeros(len(common))
    known, pairs = np.zeros(len(common), bool), list[tuple[int, int]]()
    known[0] = True
    while not known.all():
        ties = np.where(known[:, None] & ~known, common, 0)
        placed, other = (int(at) for at in np.unravel_index(int(np.argmax(ties)), ties.shape))
        if not ties[placed, other]:
            break
        shared = part[:, placed] & part[:, other]
        line = HostLines(base, ahead[[placed]], drift[[placed]])
        ends, enters = (line.apply(times[shared][:, [placed]])[:, 0] for times in (left, entered))
        roughly = int(np.median(left[shared, other] - base - ends))
        late = (left[shared, other] - base - roughly).astype(np.float64)
        lasts = np.minimum(late, ends) - np.maximum(
            (entered[shared, other] - base - roughly).astype(np.float64), enters
        )
        small = np.argsort(lasts, kind="stable")[: max(_LEAST_SMALL, len(lasts) // 10)]
        middle = float(np.median((late - ends)[small]))
        if np.ptp(ends) >= _LONG_ENOUGH:
            middle, drift[other], _ = robust_line(
                ends[small], (late - ends)[small], _LEAST_SPREAD_NS, HOSTS_DRIFT, HOSTS_DRIFT
            )
        ahead[other] = roughly + round(middle - drift[other] * float(ends[small].mean()))
        known[other] = True
        pairs.append((placed, other))
    return HostLines(base, ahead, drift, tuple(pairs))


def map_of_host(
    intervals: HostIntervals, level: HostIntervals, lines: HostLines, host: int, drawn: HostIntervals | None = None
) -> ClockMap:
    """Return the map from a host to the first one: its line, moved or turned as little as the intervals require.

    Args:
        intervals: the limits of the offset of the host against its line.
        level: the same limits under the assumptions of no drift against the line and exact records; ignored if they
            contradict each other.
        drawn: the limits if the times of devices are those of their hosts, which the line satisfies if it can; the
            limits of the hosts then only give the bound.
    """
    at, within = intervals.instants, intervals if drawn is None or drawn.contradicting else drawn
    least, most = within.least[:, host], within.most[:, host]
    line = np.zeros(len(at))
    if not level.contradicting:
        line += min(max(0.0, float(level.least[0, host])), float(level.most[0, host]))
    elif np.max(least) > np.min(most):
        first, last = np.clip(np.zeros(2), least[[0, -1]], most[[0, -1]]).tolist()
        line = np.linspace(first, last, len(at))
    low, high = float(np.max(least - line)), float(np.min(most - line))
    line += min(max(0.0, low), high) if low <= high else (low + high) / 2
    off = float(np.max(np.maximum(intervals.most[:, host] - line, line - intervals.least[:, host])))
    host_times = (1 + float(lines.drift[host])) * (at[[0, -1]] + line[[0, -1]])
    lasts = host_times[1] - host_times[0]
    drift = round(((at[-1] - at[0]) / lasts - 1) / DRIFT_UNIT) if lasts > 0 else 0
    begin = int(lines.ahead[host]) + round(host_times[0])
    bound = int(off * (1 + HOSTS_DRIFT)) + _ROUNDED_NS
    return ClockMap(round(at[0]) - begin, bound, drift=drift, at_ns=lines.base + begin if drift else 0)


# -- Judge by the ends of collectives whether two hosts recorded one job, and whether their clocks ran evenly --------

#: Ends this close to the line are together, ns: the error of the profilers.
_CLOSE_NS = 20_000.0
#: Close ends show one job only if they do not wander by more than this besides, ns. Clocks may be uneven by
#: `_CLOSE_NS`, since profilers convert the times of devices by several lines. Of 1,000 simulated pairs of two jobs on
#: one schedule, 33 pass for one (also at half of this; at three times 57, at `_CLOSE_NS` 70); of 400 pairs of one job
#: with such lines, 390 do (390, 398, 400).
_STEADY_NS = 5_000.0
#: The least rank correlation of the times between ends, and by how many standard deviations it must exceed 0.
_LEAST_SHARED, _LEAST_SIGMAS = 0.3, 4.0
#: Scattered ends of one job scatter by at most this part of how differently its ranks wait (recorded with gloo: 0.04 to
#: 0.37; simulated jobs of two ranks each that get the same input: 1 and more).
_MOST_SCATTERED = 0.5
#: A remainder whose steps from one end to the next are this part of those of independent ends changes slowly. Of the
#: same 1,000 pairs, 64 pass at half of this, 8 at 0.75, 2 at 1.5, and 65 without it; of the same 400, 398, 330, 266 and
#: 398. Of 1,000 clocks that are set and set back, 1 is placed outside of its bound only without it.
_SLOW = 0.5
#: The fewest ends from which scattered ends show that there are two jobs: random times between fewer may be correlated.
_ENOUGH = 26
#: The fewest ends at each position of a step, if there are enough and if not; the most positions of a step; to limit
#: time, the most numbers of positions that are compared.
_LEAST_STEPS, _LEAST_STEPS_OF_FEW, _MOST_POSITIONS, _MOST_COMPARED = 4, 2, 512, 64
#: A shorter step is taken if its ends repeat this much worse than those of the best one.
_NEARLY = 1.25
#: The fewest ends before and after the instant at which a clock was set.
_LEAST_PART = 4
#: A jump must be this many times what this share of the values is off besides. To limit time, so many rows are tried
#: first.
_JUMP, _NEARLY_ALL, _MOST_TRIED = 2.0, 0.9, 32
#: How often the line and the usual difference of each position are found in turn.
_ROUNDS = 3


class Ends(enum.Enum):
    """What the ends of the collectives of two hosts show."""

    OF_ONE_JOB = "one job, and clocks that run evenly"
    OF_NO_JOB = "no one job"
    FEW = "nothing, since they are too few"
    SET = "a clock that was set"
    STEEP = "a drift that is greater than that of clocks"
    UNEVEN = "clocks that do not run evenly"


class EndsOfTwo(Struct, frozen=True):
    """What the ends of the collectives of two hosts show.

    Attributes:
        scatter_ns: the standard deviation of the ends from a line.
        drift: the drift of the second host against the first one, as a ratio.
        step_ns: by how much the second clock was set ahead of the first one, if one was set.
        after: the number of the last collective before that, in order.
        edge_ns: how far the first or the last few ends are off, if a clock may have been set beside them; else 0.
    """

    shown: Ends
    scatter_ns: float
    drift: float
    step_ns: float = 0.0
    after: int = 0
    edge_ns: float = 0.0


def ends_of_two(entered: I64, left: I64, kinds: I64) -> EndsOfTwo:
    """Compare the ends of the common collectives of two hosts.

    Args:
        entered, left: when the last rank of each host entered each, and the first one left it, on the clock of that
            host, ns, in two rows; in order of the first host.
        kinds: the numbers of the groups, operations and sizes of the collectives.
    """
    ends, other_ends = left
    if len(ends) < 2 * _LEAST_PART:
        return EndsOfTwo(Ends.FEW, 0.0, 0.0)
    at = (ends - ends[0]).astype(np.float64)
    apart = (other_ends - ends - int(np.median(other_ends - ends))).astype(np.float64)
    between = np.diff(ends).astype(np.float64), np.diff(other_ends).astype(np.float64)
    place = _places(*between, kinds)
    pairs = _numbered(place[:-1] * (int(np.max(place)) + 1) + place[1:])
    shared = rank_correlation(*(_off(times, pairs) for times in between))
    wander_ns = WANDER * float(at[-1])
    steady_ns = _CLOSE_NS + wander_ns
    rest, drift = _along_line(at, apart, place, HOSTS_DRIFT)
    scatter = spread_of(rest) * math.sqrt(len(rest) / (len(rest) - len(np.unique(place))))
    close = scatter <= _CLOSE_NS and _is_even(rest, _STEADY_NS + wander_ns)
    # Who comes late makes the others wait, so that all leave together. Two jobs with the same input vary together, too.
    waits = _off((np.diff(left, axis=0) - np.diff(entered, axis=0))[0].astype(np.float64), place)
    scattered, waited = min(scatter, spread_of(np.diff(rest)) / math.sqrt(2)), spread_of(waits)
    varies_together = shared >= max(_LEAST_SHARED, _LEAST_SIGMAS / math.sqrt(len(at) - 1))
    varies_together = varies_together and scattered <= _MOST_SCATTERED * waited
    if not (varies_together or close):
        of_no_job = Ends.OF_NO_JOB if scatter > _CLOSE_NS else Ends.UNEVEN
        return EndsOfTwo(of_no_job if len(at) >= _ENOUGH else Ends.FEW, scatter, drift)
    if close or _is_even(rest, steady_ns):
        return EndsOfTwo(Ends.OF_ONE_JOB, scatter, drift, edge_ns=_edge(rest))
    steep_rest, steep = _along_line(at, apart, place, SLEWED_DRIFT)
    if _is_even(steep_rest, steady_ns):
        return EndsOfTwo(Ends.STEEP, spread_of(steep_rest), steep)
    after, step = _step(rest + drift * at - _usual_drift(at, rest + drift * at) * at)
    parted = apart - np.where(np.arange(len(at)) > after, step, 0.0)
    parted_rest, drift = _along_line(at, parted, place, HOSTS_DRIFT)
    shown = Ends.SET if _is_even(parted_rest, steady_ns) else Ends.UNEVEN
    return EndsOfTwo(shown, spread_of(parted_rest), drift, step, after)


def _places(between: F64, other_between: F64, kinds: I64) -> I64:
    """Return the position of each collective in its step; by its kind if no number of collectives is a step."""
    most = min(len(kinds) // _least_steps(len(kinds)), _MOST_POSITIONS)
    found: list[tuple[int, float]] = []
    for number in range(1, most + 1):
        if len(found) < _MOST_COMPARED and np.array_equal(kinds[number:], kinds[:-number]):
            off = sum(median(np.abs(times[number:] - times[:-number])) for times in (between, other_between))
            found.append((number, off))
    if not found:
        return _numbered(kinds)
    best = min(off for _, off in found)
    return np.arange(len(kinds)) % next(number for number, off in found if off <= best * _NEARLY)


def _numbered(values: I64) -> I64:
    """Return numbers from 1 for equal values, and 0 for all that are rare."""
    _, number, count = np.unique(values, return_inverse=True, return_counts=True)
    numbers: I64 = np.where(count[number] >= _least_steps(len(values)), number + 1, 0).astype(np.int64)
    return numbers


def _least_steps(count: int) -> int:
    """Return the fewest of so many ends at each position of a step."""
    return _LEAST_STEPS if count >= _ENOUGH else _LEAST_STEPS_OF_FEW


def _off(values: F64, place: I64) -> F64:
    """Return values without the median of their position."""
    rest = values.copy()
    for number in np.unique(place).tolist():
        rest[place == number] -= median(values[place == number])
    return rest


def _along_line(at: F64, apart: F64, place: I64, most: float) -> tuple[F64, float]:
    """Return what is left of the differences without a line and the usual one of each position, and the drift."""
    level, drift = apart, 0.0
    for _ in range(_ROUNDS):  # the line and the positions depend on each other
        _, drift, _ = robust_line(at, level, 1.0, most, most)
        along = drift * (at - at.mean())
        rest = _off(apart - along, place)
        level = rest + along
    return rest, drift


def _usual_drift(at: F64, apart: F64) -> float:
    """Return the drift of most pairs of collectives some time apart, to which a single jump does not matter."""
    away = max(1, len(at) // 5)
    drifts = (apart[away:] - apart[:-away]) / (at[away:] - at[:-away])
    return min(max(median(drifts), -HOSTS_DRIFT), HOSTS_DRIFT)


def _is_even(rest: F64, steady_ns: float) -> bool:
    """Return whether what remains changes from one collective to the next, and does not wander or jump for longer."""
    scatter = spread_of(rest)
    if scatter > steady_ns and spread_of(np.diff(rest)) < _SLOW * math.sqrt(2) * scatter:
        return False
    # How far most are off is taken from one to the next, so that no jump counts.
    most = max(steady_ns, _JUMP * quantile(np.abs(np.diff(rest)), _NEARLY_ALL) / math.sqrt(2))
    values, others = _stretch(rest, most / 2)
    return min(len(values), len(others)) < _LEAST_PART or abs(median(values) - median(others)) <= most


def _stretch(values: F64, least: float) -> tuple[F64, F64]:
    """Return the longest stretch of values of which most are off by more than this, and all other values.

    A clock that was set leaves such a stretch at an end, one that was set back, too, one in between.
    """
    off = values - median(values)
    found = []
    for sign in (-1, 1):
        total = np.append(0, np.cumsum(np.where(sign * off > least, 1, -1)))
        gain = total - np.minimum.accumulate(total)
        end = int(np.argmax(gain))
        found.append((int(gain[end]), int(np.argmin(total[: end + 1])), end))
    _, begin, end = max(found)
    return values[begin:end], np.delete(values, slice(begin, end))


def _edge(rest: F64) -> float:
    """Return how far the first or the last few values are off, if they are farther off than all others; else 0.

    So few may have been delayed, or a clock may have been set beside them.
    """
    off = np.abs(rest - median(rest))
    edge = 0.0
    for few in range(1, _LEAST_PART):
        for part, others in ((off[:few], off[few:]), (off[-few:], off[:-few])):
            if np.min(part) > max(_CLOSE_NS, _JUMP * float(np.max(others))):
                edge = max(edge, float(np.max(part)))
    return edge


def _step(rest: F64) -> tuple[int, float]:
    """Return after which row values jump, and by how much, by the least sum of distances from the two medians."""
    rows = np.arange(_LEAST_PART - 1, len(rest) - _LEAST_PART)
    stride = max(1, len(rows) // _MOST_TRIED)
    after = _best(rest, rows[::stride])
    if stride > 1:
        after = _best(rest, rows[(rows > after - stride) & (rows < after + stride)])
    return after, median(rest[after + 1 :]) - median(rest[: after + 1])


def _best(rest: F64, rows: I64) -> int:
    """Return the row after which a jump leaves the least sum of distances."""
    parts = [[rest[: row + 1], rest[row + 1 :]] for row in rows.tolist()]
    off = [sum(float(np.abs(part - median(part)).sum()) for part in sides) for sides in parts]
    return int(rows[int(np.argmin(off))])

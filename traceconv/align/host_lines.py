"""Estimate the offsets of the clocks of hosts by the ends of collectives, and make the map of each to the first.

All members of a small collective leave it within microseconds. So a robust line through the differences of these ends
is far more exact than an interval of `host_intervals`, but not certain. It is kept inside the interval, and its bound
is the greatest distance to an end of the interval.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceconv.align.geometry import F64
from traceconv.align.host_intervals import HostIntervals
from traceconv.align.robust import robust_line
from traceconv.model.clocks import DRIFT_UNIT, HOSTS_DRIFT, ClockMap
from traceconv.model.columns import I64

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


@dataclass(frozen=True, slots=True)
class HostLines:
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
        one, other = (int(at) for at in np.unravel_index(int(np.argmax(ties)), ties.shape))
        if not ties[one, other]:
            break
        both = part[:, one] & part[:, other]
        ends = HostLines(base, ahead[[one]], drift[[one]]).apply(left[both][:, [one]])[:, 0]
        enters = HostLines(base, ahead[[one]], drift[[one]]).apply(entered[both][:, [one]])[:, 0]
        roughly = int(np.median(left[both, other] - base - ends))
        late = (left[both, other] - base - roughly).astype(np.float64)
        lasts = np.minimum(late, ends) - np.maximum((entered[both, other] - base - roughly).astype(np.float64), enters)
        small = np.argsort(lasts, kind="stable")[: max(_LEAST_SMALL, len(lasts) // 10)]
        middle = float(np.median((late - ends)[small]))
        if np.ptp(ends) >= _LONG_ENOUGH:
            middle, drift[other], _ = robust_line(
                ends[small], (late - ends)[small], _LEAST_SPREAD_NS, HOSTS_DRIFT, HOSTS_DRIFT
            )
        ahead[other] = roughly + round(middle - drift[other] * float(ends[small].mean()))
        known[other] = True
        pairs.append((one, other))
    return HostLines(base, ahead, drift, tuple(pairs))


def map_of_host(
    intervals: HostIntervals, level: HostIntervals, lines: HostLines, host: int, drawn: HostIntervals | None = None
) -> ClockMap:
    """Return the map from a host to the first one: its line, moved or turned as little as the intervals require.

    Args:
        intervals: the limits of the offset of the host against its line.
        level: the same limits under the assumptions of no drift against the line and exact records; ignored if they
            contradict each other.
        lines: the lines of the hosts.
        host: the number of the host.
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
    drift = (
        round(((at[-1] - at[0]) / (host_times[1] - host_times[0]) - 1) / DRIFT_UNIT)
        if host_times[1] > host_times[0]
        else 0
    )
    begin = int(lines.ahead[host]) + round(host_times[0])
    bound = int(off * (1 + HOSTS_DRIFT)) + _ROUNDED_NS
    return ClockMap(round(at[0]) - begin, bound, drift=drift, at_ns=lines.base + begin if drift else 0)

"""About how far the clocks of hosts are apart, by where collectives end, and how a host's times become the first one's.

All members of a small collective leave it within microseconds: a line through the differences of these ends, which
some late ones do not spoil, is far closer than an interval tells. Nothing makes it certain, so it is kept inside the
interval, and the bound is the farthest that the interval reaches from it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceconv.align.geometry import F64
from traceconv.align.host_intervals import HostIntervals
from traceconv.align.robust import robust_line
from traceconv.model.clocks import DRIFT_UNIT, FREE_DRIFT, I64, ClockMap

#: Stands for no time in columns of times, ns; sums of two fit into 64 bits.
NO_TIME = 2**61
#: Ends are not believed to be closer than this, ns.
_LEAST_SPREAD_NS = 1000.0
#: The shortest tenth of the collectives counts, but no fewer than this.
_LEAST_SMALL = 8
#: So long two hosts have recorded collectives at least for a drift that nothing forces, ns.
_LONG_ENOUGH = 10**9
#: By how much whole ns and units of drift move a time, ns.
_ROUNDED_NS = 4


@dataclass(frozen=True, slots=True)
class HostLines:
    """By how much the clock of each host is ahead of that of the first one, about.

    Attributes:
        base: a time of the first host, ns.
        ahead: by how much the others are ahead then, ns.
        drift: how much faster they run, as a ratio.
    """

    base: int
    ahead: I64
    drift: F64

    def apply(self, times: I64) -> F64:
        """Return times in columns of the hosts as the first host has them, since the base, ns; NaN for no time."""
        since = np.where(times < NO_TIME, times - self.base - self.ahead, 0).astype(np.float64)
        return np.where(times < NO_TIME, since / (1 + self.drift), np.nan)


def lines_of_hosts(entered: I64, left: I64) -> HostLines:
    """Return about how far each clock is ahead of the first one.

    It goes from one host to the next, those first that have most in common.

    Args:
        entered: for each collective and host when the last member of it entered; NO_TIME where none took part.
        left: likewise, when the first one left.
    """
    part = entered < NO_TIME
    common = part.T.astype(np.float64) @ part
    base = int(np.min(entered[:, 0]))
    ahead, drift = np.zeros(len(common), np.int64), np.zeros(len(common))
    known = np.zeros(len(common), bool)
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
                ends[small], (late - ends)[small], _LEAST_SPREAD_NS, FREE_DRIFT, FREE_DRIFT / 2
            )
        ahead[other] = roughly + round(middle - drift[other] * float(ends[small].mean()))
        known[other] = True
    return HostLines(base, ahead, drift)


def map_of_host(found: HostIntervals, level: HostIntervals, lines: HostLines, host: int) -> ClockMap:
    """Return the way of a host to the first one: along its line, moved or turned as far as it would lie outside.

    Args:
        found: between what the host is ahead of its line.
        level: the same if it does not drift beside its line, and if what was recorded is exact, for all times; what
            contradicts itself tells nothing.
        lines: where it is, about.
        host: which host.
    """
    least, most, at = found.least[:, host], found.most[:, host], found.instants
    drawn = np.zeros(len(at))
    if not level.contradicting:
        drawn += min(max(0.0, float(level.least[0, host])), float(level.most[0, host]))
    elif np.max(least) > np.min(most):
        first, last = np.clip(np.zeros(2), least[[0, -1]], most[[0, -1]]).tolist()
        drawn = np.linspace(first, last, len(at))
    low, high = float(np.max(least - drawn)), float(np.min(most - drawn))
    drawn += min(max(0.0, low), high) if low <= high else (low + high) / 2
    off = float(np.max(np.maximum(most - drawn, drawn - least)))
    own = (1 + float(lines.drift[host])) * (at[[0, -1]] + drawn[[0, -1]])
    drift = round(((at[-1] - at[0]) / (own[1] - own[0]) - 1) / DRIFT_UNIT) if own[1] > own[0] else 0
    begin = int(lines.ahead[host]) + round(own[0])
    bound = int(off * (1 + FREE_DRIFT)) + _ROUNDED_NS
    return ClockMap(round(at[0]) - begin, bound, drift=drift, at_ns=lines.base + begin if drift else 0)

"""Between what the clocks of several hosts differ, by operations that none of a group leaves before all have entered.

For each such collective there is an instant within the records of all members. At that instant the clock of a host
reads no later than its first member leaves, and no earlier than its last one enters, so that two hosts a and b differ
by no more than end(a) - start(b). Differences add up along ways through other hosts: the tightest bound is the shortest
path. A path around of negative length is a contradiction: no offsets let all collectives happen.

Clocks of hosts run apart, by a rate that is bounded and not constant. A collective tells of the instant at which it
happened; some time before or after it, it tells as much less as the clocks may have run apart meanwhile. All bounds are
taken at a few instants; between two of them they widen by the same rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from traceconv.model.clocks import I64

#: Stands for no bound, ns; sums of two fit into 64 bits.
NO_LIMIT = 2**61
#: How far differences of times may reach here, ns: 13 days. What is larger is taken for no bound.
_FARTHEST = 2**50
#: The bounds are taken at so many instants of the recording. Not tuned: more cost more, and narrow little.
_INSTANTS = 33


@dataclass(frozen=True, slots=True)
class HostIntervals:
    """By how much the clock of each host is ahead of that of each other one.

    Attributes:
        instants: at which times, ns.
        most: for each instant, host and other host by how much the host is ahead of the other one at most, ns;
            NO_LIMIT where nothing tells.
        widening: by how much bounds grow, at most, between two instants, ns.
        contradicting: the rows of collectives that contradict each other; none if none do.
    """

    instants: I64
    most: I64
    widening: int
    contradicting: tuple[int, ...] = ()

    def of(self, host: int, reference: int) -> tuple[I64, I64] | None:
        """Return between what a host is ahead of another one at each instant, ns; None if nothing tells, or fits."""
        least, most = -self.most[:, reference, host], self.most[:, host, reference]
        known = bool(np.all(np.maximum(-least, most) < NO_LIMIT))
        return (least, most) if known and not self.contradicting else None


def host_intervals(entered: I64, left: I64, rate: Fraction, span: tuple[int, int]) -> HostIntervals:
    """Return between what the clocks of hosts differ.

    Args:
        entered: for each collective and host when the last of its members entered, at the earliest, on the clock of
            the host, ns; NO_LIMIT where none took part.
        left: when the first of its members left, at the latest; NO_LIMIT where none took part.
        rate: how fast two clocks may run apart at most.
        span: the first and the last time that bounds are asked for.
    """
    hosts = entered.shape[1]
    part = entered < NO_LIMIT
    begin = np.where(part, np.minimum(entered, left), NO_LIMIT).min(axis=1)
    finish = np.where(part, np.maximum(entered, left), -NO_LIMIT).max(axis=1)
    at = span[0] + (np.linspace(0, 1, _INSTANTS) * (span[1] - span[0])).astype(np.int64)
    # A collective happened at some instant between its start and its end, on whatever clock.
    away = np.maximum(np.maximum(begin[:, None] - at, at - finish[:, None]), 0) + (finish - begin)[:, None]
    loosened = -(-away * rate.numerator // rate.denominator)
    most = np.full((len(at), hosts, hosts), NO_LIMIT)
    source = np.full((len(at), hosts, hosts), -1)
    for host in range(hosts):
        ahead = left[:, host, None] - entered
        ahead[~(part[:, host, None] & part) | (np.abs(ahead) > _FARTHEST)] = NO_LIMIT
        for number, loose in enumerate(loosened.T):
            limits = np.where(ahead < NO_LIMIT, ahead + loose[:, None], NO_LIMIT)
            rows = limits.argmin(axis=0)
            most[number, host] = limits[rows, np.arange(hosts)]
            source[number, host] = rows
    each = np.arange(hosts)
    wrong: tuple[int, ...] = ()
    worst = np.unravel_index(int(np.argmin(most[:, each, each])), (len(at), hosts))
    if most[worst[0], worst[1], worst[1]] < 0:
        wrong = (int(source[worst[0], worst[1], worst[1]]),)
    most[:, each, each] = np.minimum(most[:, each, each], 0)
    for by in range(hosts):
        if wrong:
            break
        around = most[:, :, by, None] + most[:, None, by, :]
        shorter = (most[:, :, by, None] < NO_LIMIT) & (most[:, None, by, :] < NO_LIMIT) & (around < most)
        worst = np.unravel_index(int(np.argmin(around[:, each, each])), (len(at), hosts))
        if around[worst[0], worst[1], worst[1]] < 0:
            wrong = tuple(sorted({int(source[worst[0], worst[1], by]), int(source[worst[0], by, worst[1]])}))
        most = np.where(shorter, around, most)
        source = np.where(shorter, source[:, :, by, None], source)
    step = int(np.max(np.diff(at), initial=0))
    return HostIntervals(at, most, -(-step * rate.numerator // (2 * rate.denominator)) + 1, wrong)

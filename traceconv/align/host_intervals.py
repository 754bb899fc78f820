"""Between what the clocks of several hosts differ, by operations that none of a group leaves before all have entered.

When the last member of host b enters such a collective, no member of host a has left it: at that instant a is ahead of
b by no more than end(a) - start(b). Differences add up along ways through other hosts: the tightest bound is the
shortest path. A path around of negative length is a contradiction: no clocks let all collectives happen.

Two clocks differ by a line, but for a little that they wander. The lines that all bounds of two hosts leave are a
convex region. How far ahead the one is at an instant follows from two of the bounds at a time: from those before and
after it, or from an upper and a lower one on one side, which leave so steep a line at most. What clocks may wander
from the instant to that of a bound, the bound tells less.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from traceconv.align.geometry import F64
from traceconv.model.clocks import FREE_DRIFT, SLEWED_DRIFT

#: How fast two clocks run apart at most: as oscillators do, or, where that explains nothing, as one that is slewed.
RATES = (FREE_DRIFT, SLEWED_DRIFT)
#: By how much this rate changes within a recording, at most: temperature, and corrections as the kernel makes them.
WANDER = 2e-6
#: For what it costs: of each of so many parts of the recording the tightest bound of two hosts counts. With many hosts
#: there are fewer parts.
_PARTS, _PARTS_OF_MANY, _MANY = 16, 4, 130
#: Intervals are taken at so many instants; between two of them clocks wander, too.
_INSTANTS, _INSTANTS_OF_MANY = 9, 3
#: What two bounds in 64-bit floats may contradict each other by, ns, and still agree.
_ROUNDING = 2.0


@dataclass(frozen=True, slots=True)
class HostIntervals:
    """By how much the clock of each host is ahead of that of the first one.

    Attributes:
        instants: at which times, ns.
        least, most: for each instant and host between what it is ahead, ns; infinite where nothing tells.
        contradicting: the collectives that contradict each other, each as its row, the host that left it first, and
            the one that entered it last; none if none do.
        between: in the middle, by how much each host is ahead of each other one at most, ns.
    """

    instants: F64
    least: F64
    most: F64
    contradicting: tuple[tuple[int, int, int], ...] = ()
    between: F64 = field(default_factory=lambda: np.zeros((0, 0)))

    def known(self, host: int) -> bool:
        """Return whether anything tells how far ahead a host is."""
        return bool(np.all(np.isfinite(self.least[:, host]) & np.isfinite(self.most[:, host])))


def host_intervals(
    entered: F64, left: F64, span: tuple[float, float], rates: tuple[float, ...] = RATES
) -> HostIntervals:
    """Return between what the clocks of hosts differ.

    Args:
        entered: for each collective and host when the last of its members entered, at the earliest, on the clock of
            the host, ns; not a number where none took part. Clocks agree roughly already.
        left: when the first of its members left, at the latest.
        span: the first and the last time that bounds are asked for.
        rates: how fast two clocks run apart at most; the first of these that explains all counts.
    """
    many = entered.shape[1] > _MANY
    at = np.linspace(*span, _INSTANTS_OF_MANY if many else _INSTANTS)
    for rate in rates:
        found = _intervals(entered, left, at if rate else at[:1], rate)
        if not found.contradicting:
            break
    return found


def _intervals(entered: F64, left: F64, at: F64, rate: float) -> HostIntervals:
    """Return the intervals at some instants for a rate by which clocks run apart; those without one do not wander."""
    hosts = entered.shape[1]
    limits = _Limits(entered, left, _PARTS_OF_MANY if hosts > _MANY else _PARTS, rate)
    most = np.full((len(at), hosts, hosts), np.inf)
    for host in range(hosts):
        for number, instant in enumerate(at.tolist()):
            most[number, host] = limits.most(host, instant)
    most += limits.wander * float(np.max(np.diff(at), initial=0)) / 2
    most[:, np.arange(hosts), np.arange(hosts)] = 0
    around = most + most.transpose(0, 2, 1)
    worst = np.unravel_index(int(np.argmin(around)), around.shape)
    if around[worst] < -_ROUNDING:
        return HostIntervals(at, -most[:, 0], most[:, :, 0], limits.contradicting(int(worst[1]), int(worst[2])))
    ahead, steps = _shortest(most)
    behind, _ = _shortest(most.transpose(0, 2, 1))
    wrong = {(limits.tightest(host, other, at[number]), host, other) for number, host, other in steps}
    between = most[len(at) // 2]
    for by in range(hosts) if hosts <= _MANY else ():  # beside many, a way through the first host is as good
        between = np.minimum(between, between[:, by, None] + between[by])
    return HostIntervals(at, -behind, ahead, tuple(sorted(wrong)), between)


def can_agree(entered: F64, left: F64) -> bool:
    """Return whether the clocks of two hosts can be such that all collectives happen; the columns as above."""
    return not _intervals(entered, left, np.array([np.nanmin(entered)]), RATES[-1]).contradicting


def _shortest(most: F64) -> tuple[F64, list[tuple[int, int, int]]]:
    """Return how long the shortest way of each host to the first one is, at each instant.

    The second result are the steps of a way around of negative length: instant, host and other host; none if there is
    no such way.
    """
    instants, hosts = most.shape[:2]
    length = np.full((instants, hosts), np.inf)
    length[:, 0] = 0
    through = np.zeros((instants, hosts), np.int64)
    for _ in range(hosts + 1):
        ways = most + length[:, None, :]
        best = np.min(ways, axis=2)
        shorter = best < length - _ROUNDING
        if not np.any(shorter):
            return length, []
        through[shorter] = np.argmin(ways, axis=2)[shorter]
        length[shorter] = best[shorter]
    number, host = (int(one[0]) for one in np.nonzero(shorter))
    following = through[number].tolist()
    for _ in range(hosts):
        host = following[host]
    steps = [(number, host, following[host])]
    while steps[-1][2] != host:
        steps.append((number, steps[-1][2], following[steps[-1][2]]))
    return length, steps


class _Limits:
    """The tightest bounds of each two hosts, one of each part of the recording.

    Attributes:
        ahead: for each host, part and other host by how much it is ahead of the other one at most, ns.
        when: at which time, ns.
        row: by which collective.
        rate: how fast two clocks run apart at most.
        wander: by how much this changes at most.
    """

    def __init__(self, entered: F64, left: F64, parts: int, rate: float) -> None:
        self.rate, self.wander = rate, WANDER if rate else 0.0
        hosts = entered.shape[1]
        order = np.argsort(np.nanmin(np.where(np.isnan(entered), np.inf, entered), axis=1), kind="stable")
        begins = np.unique(np.arange(parts) * len(order) // parts)
        shape = (hosts, len(begins), hosts)
        self.ahead, self.when, self.row = np.full(shape, np.inf), np.zeros(shape), np.zeros(shape, np.int64)
        sorted_entered, sorted_left = entered[order], left[order]
        for host in range(hosts):
            taken = np.flatnonzero(~np.isnan(sorted_left[:, host]))
            ahead = sorted_left[taken, host, None] - sorted_entered[taken]
            ahead += self.rate * np.abs(ahead)  # the clocks of both do not agree when it was
            ahead[np.isnan(ahead)] = np.inf
            for part, rows in enumerate(np.split(np.arange(len(taken)), np.searchsorted(taken, begins[1:]))):
                if len(rows):
                    at = rows[np.argmin(ahead[rows], axis=0)]
                    self.ahead[host, part] = ahead[at, np.arange(hosts)]
                    self.when[host, part] = np.nan_to_num(sorted_entered[taken[at], np.arange(hosts)])
                    self.row[host, part] = order[taken[at]]

    def most(self, host: int, instant: float) -> F64:
        """Return by how much a host is ahead of each other one at an instant, at most, ns."""
        others = np.flatnonzero(np.any(np.isfinite(self.ahead[host]), axis=0))
        most, least = self.ahead[host][:, others].T, -self.ahead[others][:, :, host]
        away, away_back = (self.when[host][:, others] - instant).T, self.when[others][:, :, host] - instant
        most, least = most + self.wander * np.abs(away), least - self.wander * np.abs(away_back)
        found = np.full(self.ahead.shape[2], np.inf)
        with np.errstate(invalid="ignore"):  # where nothing tells, bounds are infinite
            closest = [
                np.min(most + self.rate * np.abs(away), axis=1),
                _between(most, away),
                _beyond(most, away, least, away_back),
                _beyond(most, -away, least, -away_back),
            ]
        found[others] = np.min(closest, axis=0)
        return found

    def contradicting(self, host: int, other: int) -> tuple[tuple[int, int, int], ...]:
        """Return those bounds of two hosts that contradict each other most, as rows and hosts."""
        most, least = self.ahead[host, :, other], -self.ahead[other, :, host]
        away = np.abs(self.when[host, :, other, None] - self.when[other, None, :, host])
        worst = np.unravel_index(int(np.argmin(most[:, None] - least + self.rate * away)), away.shape)
        both = (int(self.row[host, worst[0], other]), host, other), (int(self.row[other, worst[1], host]), other, host)
        return tuple(sorted(both))

    def tightest(self, host: int, other: int, instant: float) -> int:
        """Return the row of the bound that tells most of an instant."""
        away = np.abs(self.when[host, :, other] - instant)
        return int(self.row[host, int(np.argmin(self.ahead[host, :, other] + self.rate * away)), other])


def _between(most: F64, away: F64) -> F64:
    """Return what a line is at most that is below a bound before an instant and below one after it.

    Args:
        most: for each pair of hosts its bounds.
        away: how long after the instant they hold, ns.
    """
    before, after = np.where(away <= 0, -away, np.nan)[:, :, None], np.where(away > 0, away, np.nan)[:, None, :]
    return _least((most[:, :, None] * after + most[:, None, :] * before) / (after + before))


def _beyond(most: F64, away: F64, least: F64, away_of_least: F64) -> F64:
    """Return what a line is at most that is below a bound before an instant, and above one even before that.

    Args:
        most: for each pair of hosts its upper bounds.
        away: how long after the instant they hold, ns.
        least: their lower bounds, and `away_of_least` likewise.
    """
    near, far = np.where(away < 0, -away, np.nan)[:, :, None], -away_of_least[:, None, :]
    since = np.where(far > near, far - near, np.nan)
    return _least(most[:, :, None] + (most[:, :, None] - least[:, None, :]) * near / since)


def _least(values: F64) -> F64:
    """Return the least of all values of each pair of hosts that are numbers."""
    found: F64 = np.where(np.isnan(values), np.inf, values).min(axis=(1, 2))
    return found

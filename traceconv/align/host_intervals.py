"""Bound the offsets between the clocks of hosts by collectives in which all members wait for all.

When the last member on host b enters such a collective, no member on host a has left it: at that instant the offset of
a against b is at most end(a) - start(b). Bounds add up along paths through other hosts: the tightest one is the
shortest path. A loop of negative length is a contradiction: no offsets satisfy all collectives.

Two clocks differ by a line, except for a small change of their rate (wander). The lines within all bounds of two hosts
are a convex region. The offset at an instant follows from two bounds at a time: one before and one after it, or an
upper and a lower one on one side, which limit the slope. The wander between the instant and the time of a bound is
added to that bound.

A clock that was set by less than their width makes no contradiction: what the collectives before and after that allow
overlaps, and the overlap may hold neither offset. So if the overlap of two parts of the recording is clearly narrower
than both, what either allows is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from traceconv.align.geometry import F64
from traceconv.model.clocks import HOSTS_DRIFT, SLEWED_DRIFT
from traceconv.model.columns import I64

#: The largest change of this rate within a recording, from temperature and corrections of the kernel.
WANDER = 2e-6
#: To limit the cost, only the tightest bound of two hosts is used in each of this many parts of the recording; there
#: are fewer parts with many hosts.
_PARTS, _PARTS_OF_MANY, _MANY = 16, 4, 130
#: The number of instants at which intervals are computed; between them, the wander is added.
_INSTANTS, _INSTANTS_OF_MANY = 9, 3
#: A clock may have been set if the overlap of what the two parts beside an instant allow is less than this part of the
#: narrower one. If it is more, an offset in the overlap is off by no more than half of it.
_CLEARLY = 0.6
#: With up to this many hosts, one part is left out between the two that are compared; with more, to limit time, two.
_FEW = 16
#: The rounding error of two bounds in 64-bit floats, ns.
_ROUNDING = 2.0


@dataclass(frozen=True, slots=True)
class HostIntervals:
    """The limits of the offset of the clock of each host against the first one.

    Attributes:
        instants: the times of the limits, ns.
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
    most = limits.between_all(at)
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
    """Widen the limits of hosts whose clocks may have been set, and return whether there are any.

    Args:
        most: the greatest offset of each host against each other one at some instants, ns; changed.
        limits: the bounds.
        at: the instants, ns.
    """
    lost, without = np.zeros(most.shape[1:]), np.zeros(most.shape[1:], np.int64)
    out = 1 if len(lost) <= _FEW else 2
    for part in range(out, limits.parts - out, out):
        sides = slice(part), slice(part + out, None)  # the step lies between them
        one, other = (limits.between_all(limits.begin[[part]], side)[0] for side in sides)
        narrower, both = np.minimum(one + one.T, other + other.T), np.minimum(one, other)
        known = np.isfinite(narrower)
        less = np.where(known, narrower, 0) - np.where(known, both + both.T, 0)
        more = (less > lost) & (both + both.T < _CLEARLY * narrower)
        lost[more], without[more] = less[more], part  # less is lost if a side has bounds from before and after the step
    around = float(np.max(np.diff(at)))
    for part in np.unique(without[lost > 0]).tolist():
        hosts, others = np.nonzero(without == part)
        until, since = limits.begin[min(part + out, limits.parts - 1)] + around, limits.begin[part] - around
        for side, where in ((slice(part), at <= until), (slice(part + out, None), at >= since)):
            rows = np.unique(hosts)
            either = limits.between_all(at[where], side, rows)[:, np.searchsorted(rows, hosts), others]
            index = np.flatnonzero(where)[:, None], hosts, others
            most[index] = np.maximum(most[index], either)
    return bool(np.any(lost))


def can_agree(entered: F64, left: F64) -> bool:
    """Return whether any offsets of two hosts satisfy all collectives, also if one clock is being slewed.

    The columns are those of `host_intervals`.
    """
    return not _intervals(entered, left, np.array([np.nanmin(entered)]), SLEWED_DRIFT).contradicting


def _shortest(most: F64) -> tuple[F64, list[tuple[int, int, int]]]:
    """Return the lengths of the shortest paths from each host to the first one, at each instant.

    The second result are the steps of a loop of negative length: instant, host, other host; empty without one.
    """
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
    number, host = (int(one[0]) for one in np.nonzero(shorter))
    following = through[number].tolist()
    for _ in range(hosts):
        host = following[host]
    steps = [(number, host, following[host])]
    while steps[-1][2] != host:
        steps.append((number, steps[-1][2], following[steps[-1][2]]))
    return length, steps


class _Limits:
    """The tightest bound of each two hosts in each part of the recording.

    Attributes:
        ahead: the upper bound of the offset of a host against another one, by host, part and other host, ns.
        when: the time of the bound, ns.
        row: the collective of the bound.
        begin: the first time of each part, ns.
        rate: the largest drift, as a ratio.
        wander: the largest change of the drift, as a ratio.
    """

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

    def between_all(self, at: F64, parts: slice = slice(None), rows: I64 | None = None) -> F64:
        """Return the upper bound of the offset of each host against each other one at some instants, ns.

        Args:
            at: the instants, ns.
            parts: the parts whose bounds count.
            rows: the hosts whose offsets are wanted; all by default.
        """
        hosts = np.arange(len(self.ahead)) if rows is None else rows
        most = np.array([[self._most(host, instant, parts) for host in hosts] for instant in at.tolist()])
        most += self.wander * float(np.max(np.diff(at), initial=0)) / 2
        most[:, np.arange(len(hosts)), hosts] = 0
        return most

    def _most(self, host: int, instant: float, parts: slice) -> F64:
        """Return the upper bound of the offset of a host against each other one at an instant, ns."""
        ahead, when = self.ahead[:, parts], self.when[:, parts]
        others = np.flatnonzero(np.any(np.isfinite(ahead[host]), axis=0))
        most, least = ahead[host][:, others].T, -ahead[others][:, :, host]
        away, away_back = (when[host][:, others] - instant).T, when[others][:, :, host] - instant
        most, least = most + self.wander * np.abs(away), least - self.wander * np.abs(away_back)
        widest = np.full(len(self.ahead), np.inf)
        with np.errstate(invalid="ignore"):  # unknown bounds are infinite
            closest = [
                np.min(most + self.rate * np.abs(away), axis=1),
                _between(most, away),
                _beyond(most, away, least, away_back),
                _beyond(most, -away, least, -away_back),
            ]
        widest[others] = np.min(closest, axis=0)
        return widest

    def contradicting(self, host: int, other: int) -> tuple[tuple[int, int, int], ...]:
        """Return the bounds of two hosts that contradict each other most, as rows and hosts."""
        most, least = self.ahead[host, :, other], -self.ahead[other, :, host]
        away = np.abs(self.when[host, :, other, None] - self.when[other, None, :, host])
        worst = np.unravel_index(int(np.argmin(most[:, None] - least + self.rate * away)), away.shape)
        both = (int(self.row[host, worst[0], other]), host, other), (int(self.row[other, worst[1], host]), other, host)
        return tuple(sorted(both))

    def tightest(self, host: int, other: int, instant: float) -> int:
        """Return the row of the tightest bound for an instant."""
        away = np.abs(self.when[host, :, other] - instant)
        return int(self.row[host, int(np.argmin(self.ahead[host, :, other] + self.rate * away)), other])


def _between(most: F64, away: F64) -> F64:
    """Return the upper limit at an instant from an upper bound before it and one after it.

    Args:
        most: the upper bounds of each pair of hosts, ns.
        away: the times of these bounds after the instant, ns.
    """
    before, after = np.where(away <= 0, -away, np.nan)[:, :, None], np.where(away > 0, away, np.nan)[:, None, :]
    return _least((most[:, :, None] * after + most[:, None, :] * before) / (after + before))


def _beyond(most: F64, away: F64, least: F64, away_of_least: F64) -> F64:
    """Return the upper limit at an instant from an upper bound before it, and a lower bound before that.

    Args:
        most: the upper bounds of each pair of hosts, ns.
        away: the times of these bounds after the instant, ns.
        least: the lower bounds, ns, with their times `away_of_least`.
    """
    near, far = np.where(away < 0, -away, np.nan)[:, :, None], -away_of_least[:, None, :]
    since = np.where(far > near, far - near, np.nan)
    return _least(most[:, :, None] + (most[:, :, None] - least[:, None, :]) * near / since)


def _least(values: F64) -> F64:
    """Return the least value of each pair of hosts, without NaN."""
    least: F64 = np.where(np.isnan(values), np.inf, values).min(axis=(1, 2))
    return least

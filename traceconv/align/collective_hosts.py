"""How far the wall clocks of hosts are apart, by the collectives of their ranks.

Only collectives with numbers count: training looks alike from step to step, so that without them a step of one rank can
be taken for another one, and nothing in the files tells how far the wall clocks of two hosts may be off. Hosts that
files or user relate within a bound, and those of which the user moves an input, are left as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from traceconv.align.collectives import Occurrences, match_collectives
from traceconv.align.host_intervals import NO_LIMIT, HostIntervals, host_intervals
from traceconv.align.inputs import Inputs
from traceconv.align.messages import Text
from traceconv.errors import InconsistentClocks
from traceconv.model.clocks import DRIFT_UNIT, SLEWED_DRIFT, ClockDomain, ClockMap, Provenance, Step
from traceconv.model.trace import I64

#: So many collectives at least place a host: recordings of two runs of a job may have a few that fit by chance.
_LEAST = 8
#: How fast two wall clocks may run apart: one is slewed by its kernel.
RATE = Fraction(SLEWED_DRIFT).limit_denominator(10**6)


def with_hosts_related(inputs: Inputs, *, leave_contradictions: bool = False) -> Inputs:
    """Return the inputs, whose graph relates the wall clocks of hosts as their collectives tell.

    Args:
        inputs: the clocks, with what files and user say.
        leave_contradictions: whether collectives that contradict each other tell nothing instead of an error.

    Raises:
        InconsistentClocks: no offsets of the hosts let all collectives happen.
    """
    hosts = _hosts(inputs)
    if len(hosts) < 2:
        return inputs
    seen = _recorded(inputs, hosts)
    if seen is None:
        return inputs
    host = np.array([hosts.index(wall) if wall in hosts else -1 for wall in inputs.stated.walls])[seen.input]
    entered, left = _columns(seen, host, len(hosts))
    between = (entered < NO_LIMIT) & ((entered < NO_LIMIT).sum(axis=1, keepdims=True) > 1)
    used = np.flatnonzero(between.sum(axis=0) >= _LEAST)
    if len(used) < 2 or used[0] or not _overlap(entered[:, used], left[:, used]):
        return inputs
    if np.any((entered > left) & (entered < NO_LIMIT)):  # ranks of one host contradict each other: see `check_of_ranks`
        return inputs
    shifts = shifts_of_hosts(entered[:, used], left[:, used])
    came, went = (
        np.where(column < NO_LIMIT, column - shifts, NO_LIMIT) for column in (entered[:, used], left[:, used])
    )
    found = host_intervals(came, went, RATE, _span(inputs, [hosts[number] for number in used], shifts))
    if found.contradicting:
        if leave_contradictions:
            return inputs
        raise _contradiction(inputs, seen, found.contradicting)
    graph = inputs.graph.copy()
    for number, at in enumerate(used.tolist()):
        limits = found.of(number, 0)
        if number and limits is not None:
            mine = seen.where(between[seen.number, at])
            way = map_of_host(found, limits, int(shifts[number]))
            text = Text.PLACED_BY_COLLECTIVES(
                count=mine.count, groups=len(np.unique(mine.group)), other=hosts[0].owner, apart=abs(way.offset_ns)
            )
            graph.relate(hosts[at], hosts[0], replace(way, steps=(Step(text, Provenance.ESTIMATED),)))
    return replace(inputs, graph=graph)


def _hosts(inputs: Inputs) -> list[ClockDomain]:
    """Return the wall clocks of hosts that nothing relates within a bound, first that which stands for trace time."""
    known = inputs.graph.maps_to(inputs.target)
    walls = list(dict.fromkeys(wall for wall in inputs.stated.walls if wall.owner and wall in known))
    first = [wall for wall in walls if not known[wall].two_hosts]
    return [*first[:1], *(wall for wall in walls if known[wall].two_hosts)] if len(first) == 1 else []


def _recorded(inputs: Inputs, hosts: Sequence[ClockDomain]) -> Occurrences | None:
    """Return the collectives with numbers, on the wall clocks of their hosts; None if no two ranks have any."""
    maps: list[dict[int, ClockMap]] = [{} for _ in inputs.traces]
    moved = {clock.wall for clock in inputs.clocks if clock.offset is not None or clock.correction.steps}
    for wall in hosts:
        if wall in moved:
            continue
        own = {domain: way for domain, way in inputs.graph.maps_to(wall).items() if not way.two_hosts}
        for clock in inputs.clocks:
            is_known = clock.domain in own and own[clock.domain].bound_ns is not None
            if clock.wall == wall and is_known:
                maps[clock.index][clock.clock] = own[clock.domain]
    matched = match_collectives(inputs.traces, maps)
    if matched is None:
        return None
    seen = matched.occurrences
    seen = seen.where(seen.seq >= 0)
    return replace(seen, bound=np.maximum(seen.bound, 0)) if len(seen.row) else None


def _columns(seen: Occurrences, host: I64, hosts: int) -> tuple[I64, I64]:
    """Return when the last rank of each host entered a collective at the earliest, and the first left at last."""
    entered = np.full((int(np.max(seen.number)) + 1, hosts), -NO_LIMIT)
    left = np.full(entered.shape, NO_LIMIT)
    np.maximum.at(entered, (seen.number, host), seen.start - seen.bound)
    np.minimum.at(left, (seen.number, host), seen.end + seen.bound)
    entered[entered == -NO_LIMIT] = NO_LIMIT
    return entered, left


def shifts_of_hosts(entered: I64, left: I64) -> I64:
    """Return by how much each clock is ahead of the first one, about: by where the ends of collectives are.

    What follows from one host to the next, as hosts may have no collectives with the first one.
    """
    part = entered < NO_LIMIT
    shifts = {0: 0}
    while True:
        ties = [(np.count_nonzero(part[:, a] & part[:, b]), a, b) for a in shifts for b in range(len(part.T))]
        count, known, other = max((tie for tie in ties if tie[2] not in shifts), default=(0, 0, 0))
        if not count:
            return np.array([shifts.get(number, 0) for number in range(len(part.T))], np.int64)
        both = part[:, known] & part[:, other]
        shifts[other] = shifts[known] + int(np.median(left[both, other] - left[both, known]))


def _span(inputs: Inputs, hosts: Sequence[ClockDomain], shifts: I64) -> tuple[int, int]:
    """Return the first and the last time of the inputs of hosts, as far as they are known, with their clocks moved."""
    times: list[int] = []
    for wall, shift in zip(hosts, shifts.tolist(), strict=True):
        own = {domain: way for domain, way in inputs.graph.maps_to(wall).items() if not way.two_hosts}
        clocks = [clock for clock in inputs.clocks if clock.wall == wall and clock.domain in own]
        times += [own[clock.domain].at(ts) - shift for clock in clocks for ts in clock.span()]
    return min(times), max(times)


def _overlap(entered: I64, left: I64) -> bool:
    """Return whether hosts recorded collectives at the same time by their wall clocks: else it may be another run."""
    part = entered < NO_LIMIT
    first = np.where(part, entered, NO_LIMIT).min(axis=0)
    last = np.where(part, left, -NO_LIMIT).max(axis=0)
    return bool(first.max() < last.min())


def map_of_host(found: HostIntervals, limits: tuple[I64, I64], shift: int) -> ClockMap:
    """Return the way to the wall clock of the first host: by a constant if one fits everywhere, else by a line."""
    least, most = limits
    low, high = int(np.max(least)), int(np.min(most))
    at, ahead, drift = int(found.instants[0]), (low + high) // 2, 0
    since = (found.instants - at).astype(np.float64)
    if low > high:
        slope, begin = np.polyfit(since / 1e9, (least + most) / 2, 1)
        ahead, drift = round(float(begin)), round(float(slope) / 1e9 / DRIFT_UNIT)
    drawn = ahead + np.round(drift * DRIFT_UNIT * since).astype(np.int64)
    off = int(np.max(np.maximum(most - drawn, drawn - least)))
    # The instants are of either clock, which makes a difference where they run apart.
    either = int(abs(drift) * DRIFT_UNIT * np.abs([least, most]).max())
    bound = off + found.widening + either + 2
    return ClockMap(-ahead - shift, bound, drift=-drift, at_ns=at + shift if drift else 0)


def _contradiction(inputs: Inputs, seen: Occurrences, numbers: Sequence[int]) -> InconsistentClocks:
    """Return which collectives contradict each other, of which files."""
    rows = np.flatnonzero(np.isin(seen.number, numbers))
    files = tuple(dict.fromkeys(inputs.traces[index].sources[0].name for index in seen.input[rows].tolist()))
    named: dict[int, str] = {}
    for row in rows.tolist():
        trace = inputs.traces[int(seen.input[row])]
        name = trace.strings[trace.slices.name[int(seen.row[row])]].partition("(")[0]
        named.setdefault(int(seen.number[row]), f"'{name}' (number {seen.seq[row]})")
    text = Text.NO_CLOCKS_OF_HOSTS_FIT(files=files, names=tuple(named.values()))
    return InconsistentClocks(text, hint=Text.LEAVE_IT(name=files[-1]))

"""Collectives of several hosts that have no numbers: which of one rank is which of another one.

Ranks of a group do the same in the same order, but one recording may begin some collectives later than another one, and
training looks the same from step to step. So each shift of the one against the other that leaves half of them is tried.
If only one lets all collectives happen, with whatever offset of the clocks, it is the right one. If there are several,
a step apart, the wall clocks settle it, if these agree to less than half a step. If none is right, but both did the
same, and wall clocks agree to less than half a step, it is certain which are one: they contradict each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceconv.align.collectives import Occurrences, fit_in_no_way
from traceconv.align.host_intervals import can_agree
from traceconv.model.clocks import I64, SLEWED_DRIFT

#: How well the wall clocks of hosts of a job are taken to agree where several shifts are possible, ns: NTP does better.
_WALL_CLOCKS_AGREE = 10 * 10**6
#: So many collectives have to fit: fewer fit by chance. So many at least tell that a shift is wrong.
_LEAST, _LEAST_TRIED = 8, 4
#: For what it costs: so many collectives of each shift are tried first, and all of them until so many shifts fit: one,
#: and those a step before and after it.
_TRIED_FIRST, _MOST_SHIFTS = 32, 3


@dataclass(frozen=True, slots=True)
class Shift:
    """A shift of the collectives of a rank against those of another one.

    Attributes:
        by: the number in the one of the first of the other.
        count: how many both have then.
        least, most: between what the clock of the one is ahead of that of the other, ns.
    """

    by: int
    count: int
    least: int
    most: int

    @property
    def apart(self) -> int:
        """How far the clocks are apart, about, ns."""
        return abs(self.least + self.most) // 2


@dataclass(frozen=True, slots=True)
class Unsettled:
    """Two inputs of different hosts of which it is not certain which collectives are one.

    Attributes:
        inputs: their numbers.
        several: whether they fit at several offsets; else at none.
    """

    inputs: tuple[int, int]
    several: bool


@dataclass(frozen=True, slots=True)
class ByOrder:
    """Collectives without numbers, as far as they are certain.

    Attributes:
        found: those.
        by_wall_clocks: whether wall clocks had to settle any.
        unsettled: what is not certain.
    """

    found: Occurrences
    by_wall_clocks: bool
    unsettled: tuple[Unsettled, ...]


def ordered_collectives(seen: Occurrences, host: I64) -> ByOrder:
    """Return the collectives without numbers as far as they are certain.

    Where ranks do not agree in the order of all that a group did, as of asynchronous calls, that of each kind and size
    counts.

    Args:
        seen: what the ranks recorded.
        host: the host of each of these.
    """
    order = np.lexsort((seen.start, seen.rank, seen.group))
    seen, host = seen.where(order), host[order]
    matched: list[_Ordered] = []
    unsettled: list[Unsettled] = []
    for group in np.unique(seen.group).tolist():
        rows = np.flatnonzero(seen.group == group)
        every = _ordered(seen, host, rows)
        if every.complete:
            matched.append(every)
        else:
            unsettled += every.unsettled
            matched += [_ordered(seen, host, rows[seen.what[rows] == what]) for what in np.unique(seen.what[rows])]
    begins = np.cumsum([0, *(one.count for one in matched)]).tolist()
    rows = np.concatenate([np.zeros(0, np.int64), *(one.rows for one in matched)])
    number = [begin + one.number for begin, one in zip(begins[:-1], matched, strict=True)]
    found = seen.where(rows).numbered(np.concatenate([np.zeros(0, np.int64), *number]))
    unsettled += [pair for one in matched for pair in one.unsettled]
    return ByOrder(found, any(one.by_wall_clocks for one in matched), tuple(dict.fromkeys(unsettled)))


@dataclass(frozen=True, slots=True)
class _Ordered:
    """Collectives of one group by their order.

    Attributes:
        rows: of the ranks that took part.
        number: of the collective, for each of these.
        count: how many numbers there are.
        by_wall_clocks: whether wall clocks had to settle which is which.
        complete: whether this is known of all ranks.
        unsettled: of which ranks of other hosts it is not known.
    """

    rows: I64
    number: I64
    count: int
    by_wall_clocks: bool
    complete: bool
    unsettled: tuple[Unsettled, ...]


def _ordered(seen: Occurrences, host: I64, rows: I64) -> _Ordered:
    """Return which collectives of some ranks are one; each rank is held against the first.

    Args:
        seen: what the ranks recorded.
        host: the host of each of these.
        rows: those that are asked, by rank and time.
    """
    reference, *others = np.split(rows, np.flatnonzero(np.diff(seen.rank[rows])) + 1)
    taken, number = [reference], [np.arange(len(reference))]
    by_wall_clocks, complete, unsettled = False, True, []
    for mine in others:
        of_one_host = bool(host[mine[0]] == host[reference[0]])
        shifts = possible_shifts(seen, reference, mine)
        shift, settled = _chosen(shifts, seen, reference, mine, of_one_host)
        if shift is None and not of_one_host and all(one.by for one in shifts) and _is_certain(seen, reference, mine):
            shift = Shift(0, len(mine), 0, 0)
        complete &= shift is not None
        if shift is not None:
            begin = max(shift.by, 0)
            taken.append(mine[begin - shift.by : begin - shift.by + shift.count])
            number.append(begin + np.arange(shift.count))
            by_wall_clocks |= settled
        elif not of_one_host and _is_open(seen, reference, mine, shifts):
            unsettled.append(Unsettled((int(seen.input[reference[0]]), int(seen.input[mine[0]])), len(shifts) > 1))
    taken_rows, numbers = np.concatenate(taken), np.concatenate(number)
    return _Ordered(taken_rows, numbers, len(reference), by_wall_clocks, complete, tuple(unsettled))


def _is_open(seen: Occurrences, one: I64, other: I64, shifts: list[Shift]) -> bool:
    """Return whether two ranks recorded enough, and it is not certain which are one.

    Where both did the same, and the nth of both is certain to be wrong, the check of what is drawn says more.
    """
    if min(len(one), len(other)) < _LEAST or not _did_the_same(seen, one, other):
        return min(len(one), len(other)) >= _LEAST
    others = [shift for shift in shifts if shift.by]
    return bool(others) if len(others) < len(shifts) else not fit_in_no_way(seen, one, other)


def _is_certain(seen: Occurrences, one: I64, other: I64) -> bool:
    """Return whether the nth of a rank is the nth of another one, though these contradict each other.

    Both did the same, as often; and either no other shift would have them do the same, or each left less than half a
    step from where the other one did, which most did where wall clocks agree.
    """
    count = len(one)
    if count < _LEAST or not _did_the_same(seen, one, other):
        return False
    what = seen.what[one]
    step = next((by for by in range(1, count // 2 + 1) if np.array_equal(what[by:], what[:-by])), None)
    if step is None:
        return True
    longest = min(int(np.min(seen.end[rows[step:]] - seen.end[rows[:-step]])) for rows in (one, other))
    apart = np.abs(seen.end[one] - seen.end[other])
    agree = 2 * int(np.sum(apart <= _WALL_CLOCKS_AGREE)) >= count
    return agree and longest > 2 * max(_WALL_CLOCKS_AGREE, int(np.max(apart)))


def _did_the_same(seen: Occurrences, one: I64, other: I64) -> bool:
    """Return whether two ranks did the same in the same order."""
    return np.array_equal(seen.what[one], seen.what[other])


def possible_shifts(seen: Occurrences, one: I64, other: I64) -> list[Shift]:
    """Return the shifts that let all collectives happen, with whatever offset, those of the least offset.

    Args:
        seen: what the ranks recorded.
        one: the rows of a rank, in order.
        other: likewise, of another rank.
    """
    least = max(_LEAST_TRIED, (min(len(one), len(other)) + 1) // 2)
    by = np.arange(least - len(other), len(one) - least + 1)
    first = np.maximum(by, 0)
    count = np.minimum(len(one), by + len(other)) - first
    if not len(by):
        return []
    tried = first[:, None] + (np.linspace(0, 1, _TRIED_FIRST) * (count - 1)[:, None]).astype(np.int64)
    low, high, same = _offsets(seen, one[tried], other[tried - by[:, None]])
    fit = np.flatnonzero(same & (low <= high))
    found: list[Shift] = []
    for at in fit[np.argsort(np.abs(low[fit] + high[fit]), kind="stable")].tolist():
        here = first[at] + np.arange(count[at])
        here_one, here_other = one[here], other[here - by[at]]
        lows, highs, equal = _offsets(seen, here_one[None], here_other[None])
        if equal[0] and lows[0] <= highs[0] and _agree(seen, here_one, here_other, int(lows[0] + highs[0]) // 2):
            found.append(Shift(int(by[at]), int(count[at]), int(lows[0]), int(highs[0])))
            if len(found) >= _MOST_SHIFTS:
                break
    return found


def _agree(seen: Occurrences, one: I64, other: I64, ahead: int) -> bool:
    """Return whether two clocks can be such that rows are of one collective each, the one ahead by some ns, about."""
    moved = np.array([0, ahead]) - seen.start[one[0]]
    entered, left = (
        np.stack((times[one], times[other]), axis=1) + moved
        for times in (seen.start - seen.bound, seen.end + seen.bound)
    )
    return can_agree(entered.astype(np.float64), left.astype(np.float64))


def _offsets(seen: Occurrences, one: I64, other: I64) -> tuple[I64, I64, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Return between what a clock is ahead of another one if rows are of one collective each, and whether they can be.

    The clocks may run apart: what they can meanwhile is added on both sides.
    """
    bound = seen.bound[one] + seen.bound[other]
    low = np.max(seen.start[one] - seen.end[other] - bound, axis=1)
    high = np.min(seen.end[one] - seen.start[other] + bound, axis=1)
    apart = ((seen.start[one[:, -1]] - seen.start[one[:, 0]]) * (SLEWED_DRIFT / 2)).astype(np.int64)
    return low - apart, high + apart, np.all(seen.what[one] == seen.what[other], axis=1)


def _chosen(
    shifts: list[Shift], seen: Occurrences, one: I64, other: I64, of_one_host: bool
) -> tuple[Shift | None, bool]:
    """Return the right one of several shifts, None if it is not certain; and whether only the wall clocks tell it."""
    if of_one_host:
        near = [shift for shift in shifts if shift.least <= 0 <= shift.most]
        return (near[0] if len(near) == 1 else None), False
    if not shifts:
        return None, False
    best, *others = sorted(shifts, key=lambda shift: shift.apart)
    # If both lacked some, or a clock was set, the rest could fit elsewhere by chance.
    whole = _LEAST <= best.count == min(len(one), len(other))
    if not others:
        # A single step that was recorded of one rank may be the next one of the other.
        recorded = min(int(seen.end[rows[-1]] - seen.start[rows[0]]) for rows in (one, other))
        return (best if whole and 2 * best.apart < recorded else None), False
    step = min(abs(best.least + best.most - shift.least - shift.most) // 2 for shift in others)
    known = best.apart <= _WALL_CLOCKS_AGREE and step > 2 * _WALL_CLOCKS_AGREE
    return (best if known and whole else None), True

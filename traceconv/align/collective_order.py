"""Collectives that have no numbers: which of one rank is which of another one.

Ranks of a group do the same in the same order, but one recording may begin some collectives later than another one, and
training looks the same from step to step. So each shift of the one against the other that leaves half of them is tried.

Where it is known how their clocks are related, the only shift that lets all collectives happen as drawn is the right
one. If none is, but both did the same as often, it is the clocks that are wrong, as long as a move of a recording would
let all happen. If not, they are odd: recordings lack some in between, or a clock was set meanwhile.

Of two hosts, if only one shift lets all happen, with whatever offset of the clocks, it is the right one. If there are
several, a step apart, the wall clocks settle it, if these agree to less than half a step. If none is right, but both
did the same, and wall clocks agree to less than half a step, it is certain which are one: they contradict each other.

Where two ranks do not agree in the order of all that their group did, as of asynchronous calls, or one lacks some, that
of each kind and size counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from traceconv.align.collectives import Impossible, Occurrences, of_several_ranks
from traceconv.align.host_intervals import can_agree
from traceconv.model.clocks import I64, SLEWED_DRIFT

#: How well the wall clocks of hosts of a job are taken to agree where several shifts are possible, ns: NTP does better.
_WALL_CLOCKS_AGREE = 10 * 10**6
#: So many collectives have to fit: fewer fit by chance. So many at least tell that a shift is wrong.
_LEAST, _LEAST_TRIED = 8, 4
#: For what it costs: so many collectives of each shift are tried first, and all of them until so many shifts fit: one,
#: and those a step before and after it.
_TRIED_FIRST, _MOST_SHIFTS = 32, 3
#: So many collectives are at least before and after the instant at which a clock was set: fewer fit by chance.
_LEAST_CHUNK = 3


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
    least: int = 0
    most: int = 0

    @property
    def apart(self) -> int:
        """How far the clocks are apart, about, ns."""
        return abs(self.least + self.most) // 2

    def of(self, one: I64, other: I64) -> tuple[I64, I64]:
        """Return of the rows of both those that are one."""
        begin = max(self.by, 0)
        return one[begin : begin + self.count], other[begin - self.by : begin - self.by + self.count]


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
class Odd:
    """Two ranks that did the same in the same order, but fit neither as drawn, nor moved, nor shifted.

    Attributes:
        wrong: what cannot have happened as drawn if the nth of one rank is the nth of the other one.
        set_by_ns: how far one of their clocks was set meanwhile, about, if that alone explains it.
    """

    wrong: Impossible
    set_by_ns: int | None = None


@dataclass(frozen=True, slots=True)
class ByOrder:
    """Collectives without numbers, as far as they are certain.

    Attributes:
        found: those.
        by_wall_clocks: whether wall clocks had to settle any.
        unsettled: what is not certain.
        odd: pairs of ranks whose records fit in no way.
    """

    found: Occurrences
    by_wall_clocks: bool = False
    unsettled: tuple[Unsettled, ...] = ()
    odd: tuple[Odd, ...] = ()


def ordered_collectives(seen: Occurrences, host: I64, *, drawn: bool = False) -> ByOrder:
    """Return the collectives without numbers as far as they are certain.

    Args:
        seen: what the ranks recorded.
        host: the host of each of these; the clocks of one host are related within the bounds.
        drawn: whether the clocks of all hosts are taken to agree, so that it is told if they do not.
    """
    without = np.flatnonzero(seen.seq < 0)
    order = without[np.lexsort((seen.start[without], seen.rank[without], seen.group[without]))]
    seen, host = seen.where(order), host[order]
    rows: list[I64] = [np.zeros(0, np.int64)]
    number: list[I64] = [np.zeros(0, np.int64)]
    by_wall_clocks, unsettled, odd = False, dict[Unsettled, None](), list[Odd]()
    for group in _parts(np.arange(len(order)), seen.group):
        reference, *others = _reference_first(seen, _parts(group, seen.rank))
        rows, number = [*rows, reference], [*number, reference]
        for mine in others:
            for pair in _pairs(seen, reference, mine, bool(host[mine[0]] == host[reference[0]]), drawn):
                rows, number = [*rows, pair.other], [*number, pair.one]
                by_wall_clocks |= pair.by_wall_clocks
                unsettled |= dict.fromkeys(pair.unsettled)
                odd += pair.odd
    found = of_several_ranks(seen.where(np.concatenate(rows)).numbered(np.concatenate(number)))
    return ByOrder(found, by_wall_clocks, tuple(unsettled), tuple(odd))


@dataclass(frozen=True, slots=True)
class _Pair:
    """What is known of two ranks.

    Attributes:
        one, other: the rows of what is one.
        by_wall_clocks: whether wall clocks had to settle that.
        unsettled: why nothing is known.
        odd: likewise, if both did the same and their clocks are said to be known.
    """

    one: I64
    other: I64
    by_wall_clocks: bool = False
    unsettled: tuple[Unsettled, ...] = ()
    odd: tuple[Odd, ...] = ()


_NOTHING = _Pair(np.zeros(0, np.int64), np.zeros(0, np.int64))


def _parts(rows: I64, values: I64) -> list[I64]:
    """Return rows in parts of equal values, which are in order."""
    return np.split(rows, np.flatnonzero(np.diff(values[rows])) + 1) if len(rows) else []


def _reference_first(seen: Occurrences, ranks: list[I64]) -> list[I64]:
    """Return the rows of each rank, first of that which all others are held against.

    It did what most did, and contradicts the middle of these least often, so that one odd rank, whichever it is, does
    not keep the others from being matched.
    """
    did = [seen.what[rows].tobytes() for rows in ranks]
    (most, _), *_ = Counter(did).most_common(1)
    same = [number for number, what in enumerate(did) if what == most]
    start, end, within = (np.array([column[ranks[at]] for at in same]) for column in (seen.start, seen.end, seen.bound))
    middle = len(same) // 2
    late = start - np.sort(end, axis=0)[middle] > within
    early = np.sort(start, axis=0)[middle] - end > within
    first = same[int(np.argmin(np.count_nonzero(late | early, axis=1)))]
    return [ranks[first], *ranks[:first], *ranks[first + 1 :]]


def _pairs(seen: Occurrences, one: I64, other: I64, of_one_host: bool, drawn: bool) -> Iterator[_Pair]:
    """Yield which rows of two ranks are one: of all that they did, or of each thing that they did.

    Args:
        seen: what the ranks recorded.
        one, other: the rows of each, in order.
        of_one_host: whether their clocks are related within the bounds.
        drawn: whether they are taken to be.
    """
    pair = _as_drawn(seen, one, other, of_one_host) if of_one_host or drawn else _of_two_hosts(seen, one, other)
    yield pair
    if len(pair.one) or pair.odd:
        return
    by_what = (rows[np.argsort(seen.what[rows], kind="stable")] for rows in (one, other))
    ones, others = ({int(seen.what[rows[0]]): rows for rows in _parts(every, seen.what)} for every in by_what)
    for what in sorted(ones.keys() & others.keys()) if len(ones) > 1 or len(others) > 1 else ():
        mine, its = ones[what], others[what]
        if of_one_host or drawn:
            part = _as_drawn(seen, mine, its, of_one_host)
            yield part if _happened(seen, part.one, part.other) else _NOTHING
        else:
            yield _of_two_hosts(seen, mine, its)


def _as_drawn(seen: Occurrences, one: I64, other: I64, of_one_host: bool) -> _Pair:
    """Return which rows of two ranks are one, if their clocks are what they are said to be.

    Other clocks let other shifts happen: where nobody knows them, only the nth of one rank is the nth of the other one.
    """
    same = _did_the_same(seen, one, other)
    if same and _happened(seen, one, other):
        return _Pair(one, other)
    shifts = possible_shifts(seen, one, other, drawn=True)
    if len(shifts) == 1 and shifts[0].count >= _LEAST_TRIED and of_one_host:
        return _Pair(*shifts[0].of(one, other))
    if shifts or not same:
        return _NOTHING
    # From where to where the recording can be moved so that each collective can happen.
    bound = seen.bound[one] + seen.bound[other]
    least, most = seen.start[one] - seen.end[other] - bound, seen.end[one] - seen.start[other] + bound
    if np.max(least) <= np.min(most):
        return _Pair(one, other)
    wrong = seen.where(np.concatenate((one, other))).numbered(np.tile(np.arange(len(one)), 2)).impossible()
    return replace(_NOTHING, odd=(Odd(wrong, _set_meanwhile(least, most)),))


def _happened(seen: Occurrences, one: I64, other: I64) -> bool:
    """Return whether rows of two ranks can be of one collective each as drawn."""
    within = seen.bound[one] + seen.bound[other]
    apart = np.maximum(seen.start[one] - seen.end[other], seen.start[other] - seen.end[one])
    return bool(np.all(apart <= within))


def _set_meanwhile(least: I64, most: I64) -> int | None:
    """Return how far one of two clocks was set, about, if all can have happened with one such step; None if not.

    All before the step fit with one move of the recording, all after it with another one.

    Args:
        least, most: between what moves each collective can have happened, ns.
    """
    first = np.maximum.accumulate(least), np.minimum.accumulate(most)
    last = np.maximum.accumulate(least[::-1])[::-1], np.minimum.accumulate(most[::-1])[::-1]
    fit = (first[0] <= first[1])[:-1] & (last[0] <= last[1])[1:]
    fit[: _LEAST_CHUNK - 1] = fit[len(fit) - _LEAST_CHUNK + 1 :] = False
    steps = np.flatnonzero(fit)
    if not len(steps):
        return None
    step = int(steps[len(steps) // 2])
    before, after = (int(part[0][at]) + int(part[1][at]) for part, at in ((first, step), (last, step + 1)))
    return abs(before - after) // 2


def _of_two_hosts(seen: Occurrences, one: I64, other: I64) -> _Pair:
    """Return which rows of two ranks are one, if nothing is known of their clocks but what wall clocks show."""
    shifts = possible_shifts(seen, one, other)
    shift, settled = _chosen(shifts, seen, one, other)
    if shift is None and all(each.by for each in shifts) and _is_certain(seen, one, other):
        return _Pair(one, other)
    if shift is not None:
        return _Pair(*shift.of(one, other), by_wall_clocks=settled)
    if not _is_open(seen, one, other, shifts):
        return _NOTHING
    both = int(seen.input[one[0]]), int(seen.input[other[0]])
    return replace(_NOTHING, unsettled=(Unsettled(both, len(shifts) > 1),))


def _is_open(seen: Occurrences, one: I64, other: I64, shifts: list[Shift]) -> bool:
    """Return whether two ranks recorded enough, and it is not certain which are one.

    Where both did the same, and the nth of both is certain to be wrong, the check of what is drawn says more.
    """
    if min(len(one), len(other)) < _LEAST or not _did_the_same(seen, one, other):
        return min(len(one), len(other)) >= _LEAST
    others = [shift for shift in shifts if shift.by]
    return bool(others if len(others) < len(shifts) else possible_shifts(seen, one, other, drawn=True))


def _is_certain(seen: Occurrences, one: I64, other: I64) -> bool:
    """Return whether the nth of a rank is the nth of another one, though these contradict each other.

    Both did the same, as often; and either no other shift would have them do the same, or each left less than half a
    step from where the other one did, which most did where wall clocks agree.
    """
    count = len(one)
    if count < _LEAST or not _did_the_same(seen, one, other):
        return False
    step = _period(seen.what[one].tolist())
    if 2 * step > count:
        return True
    longest = min(int(np.min(seen.end[rows[step:]] - seen.end[rows[:-step]])) for rows in (one, other))
    apart = np.abs(seen.end[one] - seen.end[other])
    agree = 2 * int(np.sum(apart <= _WALL_CLOCKS_AGREE)) >= count
    return agree and longest > 2 * max(_WALL_CLOCKS_AGREE, int(np.max(apart)))


def _period(values: list[int]) -> int:
    """Return after how many of some values they repeat themselves; their number if they do not."""
    border = [0] * len(values)  # of each beginning: so many of its first values are its last ones
    for at in range(1, len(values)):
        length = border[at - 1]
        while length and values[at] != values[length]:
            length = border[length - 1]
        border[at] = length + (values[at] == values[length])
    return len(values) - border[-1]


def _did_the_same(seen: Occurrences, one: I64, other: I64) -> bool:
    """Return whether two ranks did the same in the same order."""
    return np.array_equal(seen.what[one], seen.what[other])


def possible_shifts(seen: Occurrences, one: I64, other: I64, *, drawn: bool = False) -> list[Shift]:
    """Return the shifts that let all collectives happen, with whatever offset, those of the least offset.

    Args:
        seen: what the ranks recorded.
        one: the rows of a rank, in order.
        other: likewise, of another rank.
        drawn: whether with no offset, and no drift.
    """
    least = max(1 if drawn else _LEAST_TRIED, (min(len(one), len(other)) + 1) // 2)
    by = np.arange(least - len(other), len(one) - least + 1)
    first = np.maximum(by, 0)
    count = np.minimum(len(one), by + len(other)) - first
    if not len(by):
        return []
    tried = first[:, None] + (np.linspace(0, 1, _TRIED_FIRST) * (count - 1)[:, None]).astype(np.int64)
    low, high, same = _offsets(seen, one[tried], other[tried - by[:, None]], drawn)
    fit = np.flatnonzero(same & (low <= high))
    found: list[Shift] = []
    for at in fit[np.argsort(np.abs(low[fit] + high[fit]), kind="stable")].tolist():
        shift = Shift(int(by[at]), int(count[at]))
        mine, its = shift.of(one, other)
        lows, highs, equal = _offsets(seen, mine[None], its[None], drawn)
        if equal[0] and lows[0] <= highs[0] and (drawn or _agree(seen, mine, its, int(lows[0] + highs[0]) // 2)):
            found.append(replace(shift, least=int(lows[0]), most=int(highs[0])))
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


def _offsets(
    seen: Occurrences, one: I64, other: I64, drawn: bool
) -> tuple[I64, I64, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Return between what a clock is ahead of another one if rows are of one collective each, and whether they can be.

    As drawn it is not ahead. Else the clocks may run apart: what they can meanwhile is added on both sides.
    """
    bound = seen.bound[one] + seen.bound[other]
    low = np.max(seen.start[one] - seen.end[other] - bound, axis=1)
    high = np.min(seen.end[one] - seen.start[other] + bound, axis=1)
    equal = np.all(seen.what[one] == seen.what[other], axis=1)
    if drawn:
        return np.maximum(low, 0), np.minimum(high, 0), equal
    apart = ((seen.start[one[:, -1]] - seen.start[one[:, 0]]) * (SLEWED_DRIFT / 2)).astype(np.int64)
    return low - apart, high + apart, equal


def _chosen(shifts: list[Shift], seen: Occurrences, one: I64, other: I64) -> tuple[Shift | None, bool]:
    """Return the right one of several shifts, None if it is not certain; and whether only the wall clocks tell it."""
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

"""Match the collectives of two ranks that have no sequence numbers.

The ranks of a group run the same collectives in the same order. But one recording may start some collectives later than
another one, and training repeats its steps. So each shift between the two sequences that leaves half of them in common
is tried.

If the clocks are related, the right shift is the only one at which all collectives are possible as drawn. If there is
none, but both sequences are equal, the clocks are wrong if some offset makes all collectives possible. If no offset
does, the pair is odd: records are missing in between, or a clock was set.

For two hosts, the right shift is the only one that is possible with any offset of the clocks. If several shifts, a step
apart, are possible, the wall clocks decide, if they agree to less than half a step. If none is possible, but both
sequences are equal and the wall clocks agree to less than half a step, the match is certain, and the collectives
contradict each other.

If the sequences of two ranks differ, as with asynchronous calls or missing records, the sequence of each kind and size
is matched by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from traceconv.align.collectives import (
    Impossible,
    Occurrences,
    Terms,
    joined_numbers,
    numbered_collectives,
    of_several_ranks,
    one_sided_collectives,
    recorded_collectives,
)
from traceconv.align.host_clocks import can_agree
from traceconv.model.clocks import SLEWED_DRIFT
from traceconv.model.columns import I64
from traceconv.model.stated_collectives import Side
from traceconv.model.trace import Trace

if TYPE_CHECKING:
    from traceconv.align.receipt import Alignment


#: Where several shifts are possible, the wall clocks of hosts are assumed to agree within this, ns: NTP does better.
WALL_CLOCKS_AGREE_NS = 10 * 10**6
#: The fewest collectives for a match, since fewer fit by chance, and the fewest that show that a shift is wrong.
_LEAST, _LEAST_TRIED = 8, 4
#: To limit time: of each shift this many collectives are tried first; then all of them, until this many shifts fit: the
#: right one, and those a step before and after it.
_TRIED_FIRST, _MOST_SHIFTS = 32, 3
#: The fewest collectives before and after the instant at which a clock was set, since fewer fit by chance.
_LEAST_CHUNK = 3


class Shift(Struct, frozen=True):
    """A shift between the sequences of collectives of two ranks.

    Attributes:
        by: the position in the first sequence of the start of the other.
        least, most: the limits of the offset of the first clock against the other, ns.
    """

    by: int
    count: int
    least: int = 0
    most: int = 0

    @property
    def apart(self) -> int:
        """The approximate offset between the clocks, as a distance, ns."""
        return abs(self.least + self.most) // 2

    def matched(self, rows: I64, partners: I64) -> tuple[I64, I64]:
        """Return the matched rows of both ranks."""
        begin = max(self.by, 0)
        return rows[begin : begin + self.count], partners[begin - self.by : begin - self.by + self.count]


class Unsettled(Struct, frozen=True):
    """Two inputs of different hosts whose collectives cannot be matched for certain.

    Attributes:
        several: whether they fit at several offsets; else they fit at none.
    """

    inputs: tuple[int, int]
    several: bool


class Odd(Struct, frozen=True):
    """Two ranks with equal sequences that fit neither as drawn, nor with an offset, nor with a shift.

    Attributes:
        wrong: the collectives that are impossible as drawn if the nth of one rank is the nth of the other.
        set_by_ns: the approximate step of one of their clocks, if a single step explains it; else None.
    """

    wrong: Impossible
    set_by_ns: int | None = None


class ByOrder(Struct, frozen=True):
    """The matches of collectives without sequence numbers.

    Attributes:
        by_wall_clocks: whether wall clocks had to decide any of them.
    """

    matches: Occurrences
    by_wall_clocks: bool = False
    unsettled: tuple[Unsettled, ...] = ()
    odd: tuple[Odd, ...] = ()


def ordered_collectives(records: Occurrences, host: I64, *, drawn: bool = False) -> ByOrder:
    """Match the collectives without sequence numbers, where it is certain.

    Args:
        host: the host of each record; the clocks of one host are related within their bounds.
        drawn: whether the clocks of all hosts are taken to agree, so that contradictions are found.
    """
    without = np.flatnonzero(records.seq < 0)
    order = without[np.lexsort((records.start[without], records.rank[without], records.group[without]))]
    records, host = records.where(order), host[order]
    rows: list[I64] = [np.zeros(0, np.int64)]
    number: list[I64] = [np.zeros(0, np.int64)]
    by_wall_clocks, unsettled, odd = False, dict[Unsettled, None](), list[Odd]()
    for group in _parts(np.arange(len(order)), records.group):
        reference, *others = _reference_first(records, _parts(group, records.rank))
        rows, number = [*rows, reference], [*number, reference]
        for compared in others:
            for pair in _pairs(records, reference, compared, bool(host[compared[0]] == host[reference[0]]), drawn):
                rows, number = [*rows, pair.partners], [*number, pair.rows]
                by_wall_clocks |= pair.by_wall_clocks
                unsettled |= dict.fromkeys(pair.unsettled)
                odd += pair.odd
    matched = of_several_ranks(records.where(np.concatenate(rows)).numbered(np.concatenate(number)))
    return ByOrder(matched, by_wall_clocks, tuple(unsettled), tuple(odd))


class _Pair(Struct, frozen=True):
    """The match of two ranks."""

    rows: I64
    partners: I64
    by_wall_clocks: bool = False
    unsettled: tuple[Unsettled, ...] = ()
    odd: tuple[Odd, ...] = ()


_NOTHING = _Pair(np.zeros(0, np.int64), np.zeros(0, np.int64))


def _parts(rows: I64, values: I64) -> list[I64]:
    """Split rows into groups of equal values, in order of the values."""
    return np.split(rows, np.flatnonzero(np.diff(values[rows])) + 1) if len(rows) else []


def _reference_first(records: Occurrences, ranks: list[I64]) -> list[I64]:
    """Return the rows of each rank; the first rank is the reference that all others are matched with.

    The reference has the most frequent sequence, and contradicts the median of these ranks least often, so that a
    single odd rank does not prevent the match of the others.
    """
    did = [records.what[rows].tobytes() for rows in ranks]
    (most, _), *_ = Counter(did).most_common(1)
    same = [number for number, what in enumerate(did) if what == most]
    start, end, within = (
        np.array([column[ranks[at]] for at in same]) for column in (records.start, records.end, records.bound)
    )
    middle = len(same) // 2
    late = start - np.sort(end, axis=0)[middle] > within
    early = np.sort(start, axis=0)[middle] - end > within
    first = same[int(np.argmin(np.count_nonzero(late | early, axis=1)))]
    return [ranks[first], *ranks[:first], *ranks[first + 1 :]]


def _pairs(records: Occurrences, reference: I64, compared: I64, of_one_host: bool, drawn: bool) -> Iterator[_Pair]:
    """Yield the matches of two ranks: of their whole sequences, or of the sequence of each kind and size."""

    def match(rows: I64, partners: I64) -> _Pair:
        if of_one_host or drawn:
            return _as_drawn(records, rows, partners, of_one_host)
        return _of_two_hosts(records, rows, partners)

    pair = match(reference, compared)
    yield pair
    if len(pair.rows) or pair.odd:
        return
    by_what = (rows[np.argsort(records.what[rows], kind="stable")] for rows in (reference, compared))
    first, second = ({int(records.what[part[0]]): part for part in _parts(rows, records.what)} for rows in by_what)
    for what in sorted(first.keys() & second.keys()) if len(first) > 1 or len(second) > 1 else ():
        part = match(first[what], second[what])
        is_possible = not (of_one_host or drawn) or _happened(records, part.rows, part.partners)
        yield part if is_possible else _NOTHING


def _as_drawn(records: Occurrences, rows: I64, partners: I64, of_one_host: bool) -> _Pair:
    """Match two ranks whose clocks are related.

    With other offsets, other shifts would be possible. So unless the clocks are of one host, only the match of the nth
    with the nth is accepted.
    """
    same = _did_the_same(records, rows, partners)
    if same and _happened(records, rows, partners):
        return _Pair(rows, partners)
    shifts = possible_shifts(records, rows, partners, drawn=True)
    if len(shifts) == 1 and shifts[0].count >= _LEAST_TRIED and of_one_host:
        return _Pair(*shifts[0].matched(rows, partners))
    if shifts or not same:
        return _NOTHING
    # The limits of the offset at which each collective is possible.
    bound = records.bound[rows] + records.bound[partners]
    least = records.start[rows] - records.end[partners] - bound
    most = records.end[rows] - records.start[partners] + bound
    if np.max(least) <= np.min(most):
        return _Pair(rows, partners)
    wrong = records.where(np.concatenate((rows, partners))).numbered(np.tile(np.arange(len(rows)), 2)).impossible()
    return replace(_NOTHING, odd=(Odd(wrong, _set_in_between(least, most)),))


def _happened(records: Occurrences, rows: I64, partners: I64) -> bool:
    """Return whether all matched rows of two ranks are possible as drawn."""
    within = records.bound[rows] + records.bound[partners]
    apart = np.maximum(records.start[rows] - records.end[partners], records.start[partners] - records.end[rows])
    return bool(np.all(apart <= within))


def _set_in_between(least: I64, most: I64) -> int | None:
    """Return the approximate step by which a clock was set, if one step makes all collectives possible; else None."""
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


def _of_two_hosts(records: Occurrences, rows: I64, partners: I64) -> _Pair:
    """Match two ranks whose clocks are related by wall clocks of two hosts only."""
    shifts = possible_shifts(records, rows, partners)
    shift, settled = _chosen(shifts, records, rows, partners)
    if shift is None and all(tried.by for tried in shifts) and _is_certain(records, rows, partners):
        return _Pair(rows, partners)
    if shift is not None:
        return _Pair(*shift.matched(rows, partners), by_wall_clocks=settled)
    if not _is_open(records, rows, partners, shifts):
        return _NOTHING
    inputs = int(records.input[rows[0]]), int(records.input[partners[0]])
    return replace(_NOTHING, unsettled=(Unsettled(inputs, len(shifts) > 1),))


def _is_open(records: Occurrences, rows: I64, partners: I64, shifts: list[Shift]) -> bool:
    """Return whether two ranks recorded enough collectives, but their match is not certain.

    False if both sequences are equal and the match of the nth with the nth is certain to be impossible: then the check
    of the drawn times reports it.
    """
    if min(len(rows), len(partners)) < _LEAST or not _did_the_same(records, rows, partners):
        return min(len(rows), len(partners)) >= _LEAST
    others = [shift for shift in shifts if shift.by]
    return bool(others if len(others) < len(shifts) else possible_shifts(records, rows, partners, drawn=True))


def _is_certain(records: Occurrences, rows: I64, partners: I64) -> bool:
    """Return whether the nth of one rank is certainly the nth of the other, though they contradict each other.

    Both sequences must be equal; and either no other shift makes them equal, or each exit is less than half a step from
    that of the other rank, as on hosts whose wall clocks agree.
    """
    count = len(rows)
    if count < _LEAST or not _did_the_same(records, rows, partners):
        return False
    step = _period(records.what[rows].tolist())
    if 2 * step > count:
        return True
    longest = min(int(np.min(records.end[side[step:]] - records.end[side[:-step]])) for side in (rows, partners))
    apart = np.abs(records.end[rows] - records.end[partners])
    agree = 2 * int(np.sum(apart <= WALL_CLOCKS_AGREE_NS)) >= count
    return agree and longest > 2 * max(WALL_CLOCKS_AGREE_NS, int(np.max(apart)))


def _period(values: list[int]) -> int:
    """Return the period of a sequence; its length if it does not repeat."""
    border = [0] * len(values)  # for each prefix: the length of its longest border
    for at in range(1, len(values)):
        length = border[at - 1]
        while length and values[at] != values[length]:
            length = border[length - 1]
        border[at] = length + (values[at] == values[length])
    return len(values) - border[-1]


def _did_the_same(records: Occurrences, rows: I64, partners: I64) -> bool:
    """Return whether two ranks have equal sequences."""
    return np.array_equal(records.what[rows], records.what[partners])


def possible_shifts(records: Occurrences, rows: I64, partners: I64, *, drawn: bool = False) -> list[Shift]:
    """Return the shifts at which all collectives are possible, those of the least offset first.

    Args:
        drawn: whether to allow no offset and no drift.
    """
    least = max(1 if drawn else _LEAST_TRIED, (min(len(rows), len(partners)) + 1) // 2)
    by = np.arange(least - len(partners), len(rows) - least + 1)
    first = np.maximum(by, 0)
    count = np.minimum(len(rows), by + len(partners)) - first
    if not len(by):
        return []
    tried = first[:, None] + (np.linspace(0, 1, _TRIED_FIRST) * (count - 1)[:, None]).astype(np.int64)
    low, high, same = _offsets(records, rows[tried], partners[tried - by[:, None]], drawn)
    fit = np.flatnonzero(same & (low <= high))
    shifts: list[Shift] = []
    for at in fit[np.argsort(np.abs(low[fit] + high[fit]), kind="stable")].tolist():
        shift = Shift(int(by[at]), int(count[at]))
        left, right = shift.matched(rows, partners)
        lows, highs, equal = _offsets(records, left[None], right[None], drawn)
        if equal[0] and lows[0] <= highs[0] and (drawn or _agree(records, left, right, int(lows[0] + highs[0]) // 2)):
            shifts.append(replace(shift, least=int(lows[0]), most=int(highs[0])))
            if len(shifts) >= _MOST_SHIFTS:
                break
    return shifts


def _agree(records: Occurrences, rows: I64, partners: I64, ahead: int) -> bool:
    """Return whether all matched rows are possible with the first clock ahead by about `ahead` ns."""
    moved = np.array([0, ahead]) - records.start[rows[0]]
    entered, left = (
        np.stack((times[rows], times[partners]), axis=1) + moved
        for times in (records.start - records.bound, records.end + records.bound)
    )
    return can_agree(entered.astype(np.float64), left.astype(np.float64))


def _offsets(
    records: Occurrences, rows: I64, partners: I64, drawn: bool
) -> tuple[I64, I64, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Return the limits of the offset of each matched row (ns; as drawn 0), and whether each is possible."""
    bound = records.bound[rows] + records.bound[partners]
    low = np.max(records.start[rows] - records.end[partners] - bound, axis=1)
    high = np.min(records.end[rows] - records.start[partners] + bound, axis=1)
    equal = np.all(records.what[rows] == records.what[partners], axis=1)
    if drawn:
        return np.maximum(low, 0), np.minimum(high, 0), equal
    apart = ((records.start[rows[:, -1]] - records.start[rows[:, 0]]) * (SLEWED_DRIFT / 2)).astype(np.int64)
    return low - apart, high + apart, equal


def _chosen(shifts: list[Shift], records: Occurrences, rows: I64, partners: I64) -> tuple[Shift | None, bool]:
    """Return the right one of several shifts, None if it is not certain; and whether wall clocks had to decide."""
    if not shifts:
        return None, False
    best, *others = sorted(shifts, key=lambda shift: shift.apart)
    # If both lack some records, or a clock was set, the rest could fit at another shift by chance.
    whole = _LEAST <= best.count == min(len(rows), len(partners))
    if not others:
        # A single recorded step of one rank may be the next step of the other.
        recorded = min(int(records.end[side[-1]] - records.start[side[0]]) for side in (rows, partners))
        return (best if whole and 2 * best.apart < recorded else None), False
    step = min(abs(best.least + best.most - shift.least - shift.most) // 2 for shift in others)
    known = best.apart <= WALL_CLOCKS_AGREE_NS and step > 2 * WALL_CLOCKS_AGREE_NS
    return (best if known and whole else None), True


# -- Match the collectives that several ranks recorded, on trace time, for checks, flows and reports -----------------


class Matched(Struct, frozen=True):
    """The collectives that several ranks recorded.

    Attributes:
        occurrences: the records of all ranks that took part.
        unmatched: the records without a certain partner on another rank.
        one_sided: the records of collectives in which only some ranks wait, with numbers of their own.
    """

    occurrences: Occurrences
    ranks: tuple[int, ...]
    unmatched: Occurrences
    terms: Terms
    odd: tuple[Odd, ...]
    one_sided: Occurrences

    @property
    def is_empty(self) -> bool:
        """Whether fewer than two ranks recorded collectives that can be compared."""
        return not self.ranks and not len(self.one_sided.row)

    @property
    def checked(self) -> Occurrences:
        """All records that can be checked for whether they can have happened as drawn."""
        return joined_numbers(self.occurrences, self.one_sided)

    @property
    def alone(self) -> int:
        """The number of records without a certain partner."""
        return len(self.unmatched.row)


def match_collectives(traces: Sequence[Trace], alignment: Alignment) -> Matched:
    """Match the collectives of inputs of different ranks; none, with their terms, if fewer than two ranks have any."""
    recorded = alignment.collectives or recorded_collectives(traces, alignment.repeats, alignment.skews)
    terms, seen = (recorded.terms, recorded.placed(alignment.maps)) if recorded else (Terms(), None)
    nothing = Occurrences.none()
    none = Matched(nothing, (), nothing, terms, (), nothing)
    if seen is None:
        return none
    one_sided = one_sided_collectives(seen)
    seen = seen.where(seen.side == Side.BOTH)
    if len(np.unique(seen.rank)) < 2 and not len(one_sided.row):
        return none
    hosts = alignment.apart
    host_of = np.array([hosts.index(host) for host in hosts], np.int64)
    ordered = ordered_collectives(seen, host_of[seen.input], drawn=True)
    found = joined_numbers(numbered_collectives(seen), ordered.matches)
    slices = int(np.max(seen.row, initial=0)) + 1
    used = np.isin(seen.input * slices + seen.row, found.input * slices + found.row)
    return Matched(found, tuple(np.unique(seen.rank).tolist()), seen.where(~used), terms, ordered.odd, one_sided)

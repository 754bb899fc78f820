"""Collectives of several ranks: no process leaves one before all of its group have entered it.

Which collectives are one is told by the ranks of their group and their number in it. Where they have no numbers, by
what was done, with how much, and in which order, if all ranks of the group did the same in the same order. Recordings
of training look the same from step to step, may begin with different steps, and may lack some: such collectives are not
taken for one if they also fit shifted against each other, or if no move of a recording would let all of them happen.
The latter are odd: recordings lack some in between, or a clock was set meanwhile.

Of a broadcast, a reduction to one rank, or a message only one side waits. These count by their numbers alone, and only
where it is known who waits for whom.

What it costs is linear in the collectives, however many ranks there are: of each collective only the rank that leaves
first and the one that enters last are compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, replace
from itertools import compress, count
from typing import Any

import numpy as np
import numpy.typing as npt

from traceconv.align.domains import on_trace_time
from traceconv.model.clocks import NO_BOUND_NS, UNSTATED_BOUND_NS, ClockMap
from traceconv.model.collectives import MESSAGES, Group
from traceconv.model.stated_collectives import GroupStated, Side, stated_collectives
from traceconv.model.trace import I64, Trace

Mask = npt.NDArray[np.bool_]
#: For what it costs: so many shifts of one recording against another one are tried, those first that bring the most
#: collectives together in time.
_MOST_SHIFTS = 24
#: So many collectives are at least before and after the instant at which a clock was set: fewer fit by chance.
_LEAST_CHUNK = 3


@dataclass(frozen=True, slots=True)
class Occurrences:
    """Collectives as their ranks recorded them, in columns of equal length.

    Attributes:
        number: which collective it is: equal for all ranks that took part, in ascending order; 0 as long as nobody
            knows.
        input: which input recorded it, and `row` its slice there.
        rank: of the process.
        start, end: on trace time, ns.
        bound: how wrong they can be at most if the wall clocks of all hosts agree, ns.
        group, kind, what: numbers for its group, for what is done, and for what is done with how much.
        seq: its number in the group, -1 for none.
        side: which end of it counts, a `Side`.
    """

    number: I64
    input: I64
    row: I64
    rank: I64
    start: I64
    end: I64
    bound: I64
    group: I64
    kind: I64
    what: I64
    seq: I64
    side: I64

    @staticmethod
    def joined(several: Sequence[Occurrences]) -> Occurrences:
        """Return those of several tables."""
        columns = ([getattr(one, column.name) for one in several] for column in fields(Occurrences))
        return Occurrences(*map(np.concatenate, columns))

    def where(self, chosen: Any) -> Occurrences:
        """Return those that are chosen, by a mask or by their rows in an order."""
        return Occurrences(*(getattr(self, column.name)[chosen] for column in fields(self)))

    def numbered(self, number: I64) -> Occurrences:
        """Return the same as occurrences of collectives of these numbers, in their order."""
        order = np.argsort(number, kind="stable")
        return replace(self.where(order), number=number[order])

    @property
    def count(self) -> int:
        """How many collectives there are."""
        return len(np.unique(self.number))

    def impossible(self) -> Impossible:
        """Return the collectives that one rank left before another one had entered, beyond the bounds of both."""
        left = np.where(self.side == Side.START, NO_BOUND_NS, self.end + self.bound)
        entered = np.where(self.side == Side.END, -NO_BOUND_NS, self.start - self.bound)
        begins = np.flatnonzero(np.diff(self.number, prepend=-1))
        early = np.lexsort((left, self.number))[begins]
        late = np.lexsort((-entered, self.number))[begins]
        bad = np.flatnonzero(entered[late] > left[early])
        bad = bad[np.argsort(self.end[early[bad]] - self.start[late[bad]], kind="stable")]
        return Impossible(self, early[bad], late[bad])


@dataclass(frozen=True, slots=True)
class Impossible:
    """Collectives that cannot have happened as drawn, those first that were left the longest before they were entered.

    Attributes:
        of: the occurrences that were asked.
        early, late: for each of the collectives the row of the rank that left it first, and of the one that entered it
            last.
    """

    of: Occurrences
    early: I64
    late: I64

    def where(self, chosen: Mask) -> Impossible:
        """Return those that are chosen."""
        return Impossible(self.of, self.early[chosen], self.late[chosen])

    @property
    def count(self) -> int:
        """How many."""
        return len(self.early)

    @property
    def numbers(self) -> I64:
        """Which collectives."""
        return self.of.number[self.early]

    @property
    def worst_ns(self) -> int:
        """How long before another rank entered the first of them one had left it; only of some."""
        return int(self.of.start[self.late[0]] - self.of.end[self.early[0]])


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
class Terms:
    """What the numbers in occurrences stand for.

    Attributes:
        kinds, whats: the number of each thing that is done, and of each that is done with how much.
        groups: the number of each group of a job.
        members: the ranks of each group by its number.
        of_unknown_group: for each input how many of its collectives are of a group that it does not tell.
    """

    kinds: defaultdict[str, int] = field(default_factory=lambda: defaultdict(count().__next__))
    whats: defaultdict[Hashable, int] = field(default_factory=lambda: defaultdict(count().__next__))
    groups: defaultdict[Hashable, int] = field(default_factory=lambda: defaultdict(count().__next__))
    members: dict[int, Group] = field(default_factory=dict)
    of_unknown_group: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Matched:
    """The collectives that several ranks recorded.

    Attributes:
        occurrences: of the ranks that took part.
        ranks: all ranks of which inputs have collectives.
        unmatched: the occurrences of these that have no partner, or none for certain.
        terms: what the numbers of groups and kinds stand for.
        odd: pairs of ranks whose records fit in no way.
        one_sided: of what only some wait for others, likewise with numbers of their own.
    """

    occurrences: Occurrences
    ranks: tuple[int, ...]
    unmatched: Occurrences
    terms: Terms
    odd: tuple[Odd, ...]
    one_sided: Occurrences

    @property
    def checked(self) -> Occurrences:
        """All of which it can be told whether they can have happened as drawn."""
        return joined_numbers(self.occurrences, self.one_sided)

    @property
    def alone(self) -> int:
        """How many occurrences have no certain partner."""
        return len(self.unmatched.row)


def recorded_collectives(
    traces: Sequence[Trace], maps: Sequence[Mapping[int, ClockMap]], terms: Terms
) -> Occurrences | None:
    """Return what inputs of different ranks recorded, all without the number of a collective; None of fewer than two.

    Args:
        traces: the inputs.
        maps: for each the way of its clocks to trace time.
        terms: gets what the numbers of the occurrences stand for.
    """
    stated = [index for index, trace in enumerate(traces) if trace.collectives and trace.sources[0].rank is not None]
    if len({traces[index].sources[0].rank for index in stated}) < 2:
        return None
    seen = Occurrences.joined([_recorded(traces[index], index, maps[index], terms) for index in stated])
    return seen if len(np.unique(seen.rank)) > 1 else None


def match_collectives(traces: Sequence[Trace], maps: Sequence[Mapping[int, ClockMap]]) -> Matched | None:
    """Find what inputs of different ranks recorded of the same collectives; None if no two ranks have any.

    Args:
        traces: the inputs.
        maps: for each the way of its clocks to trace time.
    """
    terms = Terms()
    seen = recorded_collectives(traces, maps, terms)
    if seen is None:
        return None
    one_sided = one_sided_collectives(seen)
    seen = seen.where(seen.side == Side.BOTH)
    if len(np.unique(seen.rank)) < 2 and not len(one_sided.row):
        return None
    numbered = numbered_collectives(seen)
    ordered, odd = _by_order(seen.where(seen.seq < 0), int(numbered.number[-1]) + 1 if len(numbered.number) else 0)
    every = Occurrences.joined((numbered, ordered))
    slices = int(np.max(seen.row, initial=0)) + 1
    used = np.isin(seen.input * slices + seen.row, every.input * slices + every.row)
    return Matched(every, tuple(np.unique(seen.rank).tolist()), seen.where(~used), terms, tuple(odd), one_sided)


# -- what an input recorded -------------------------------------------------------------------------------------------


def _recorded(trace: Trace, index: int, maps: Mapping[int, ClockMap], terms: Terms) -> Occurrences:
    """Return the collectives of an input whose group is known, and has more ranks than its own.

    Args:
        trace: the input.
        index: its number.
        maps: the way of its clocks to trace time.
        terms: gets what the input has.
    """
    declared, rank, slices = trace.collectives, trace.sources[0].rank, trace.slices
    assert declared is not None
    assert rank is not None
    clock_of_track = np.array([int(track.clock) for track in trace.tracks] or [0])
    stated = stated_collectives(trace)
    size = trace.sources[0].world_size  # ranks of jobs of another size are of another job
    keys = _groups(set(stated.groups), declared.groups, rank)
    terms.of_unknown_group[index] = sum(1 for one in stated.each if stated.groups[one.group].ranks is None)
    chosen = [one for one in stated.each if stated.groups[one.group] in keys]
    # Who is the root tells a broadcast from another one, as who sends and receives does a message.
    groups = {(one.group, one.ends): terms.groups[size, keys[stated.groups[one.group]], one.ends] for one in chosen}
    terms.members.update((number, stated.groups[group].ranks or ()) for (group, _), number in groups.items())
    rows = np.array([one.row for one in chosen], np.int64)
    kept = np.isin(clock_of_track[slices.track[rows]], list(maps))
    chosen, rows = list(compress(chosen, kept)), rows[kept]
    clocks = clock_of_track[slices.track[rows]]
    start = on_trace_time(slices.ts[rows], clocks, maps)
    end = on_trace_time(slices.ts[rows] + slices.dur[rows], clocks, maps)
    bounds = np.zeros(len(trace.clocks), np.int64)
    for clock, way in maps.items():
        within = UNSTATED_BOUND_NS if way.bound_in_step_ns is None else way.bound_in_step_ns
        bounds[clock] = within + trace.clocks[clock].resolution_ns
    same = np.ones(len(rows), np.int64)
    numbered = [
        (
            groups[one.group, one.ends],
            terms.kinds[kind],
            terms.whats[kind, one.sizes],
            one.seq,
            one.side,
        )
        for one, kind in zip(chosen, ("message" if one.kind in MESSAGES else one.kind for one in chosen), strict=True)
    ]
    columns = np.array(numbered, np.int64).reshape(-1, 5).T
    return Occurrences(same * 0, same * index, rows, same * rank, start, end, bounds[clocks], *columns)


def _groups(stated: Set[GroupStated], declared: Mapping[str, Group], rank: int) -> dict[GroupStated, Hashable]:
    """Return the key of each known group of a process, which tells it from others and is the same in all of them.

    Names are those of the process. Of groups that have equal ranks, the order in which all of them made their groups
    tells which is which. A recording may lack what some of them did, so the order is that of all that are declared; of
    several that are not, each is one of this process alone.

    Args:
        stated: the groups of which there are collectives.
        declared: the ranks of all groups of the process by name, as far as the file lists them.
        rank: of the process.
    """
    of_ranks: defaultdict[Group, list[str]] = defaultdict(list)
    for name, ranks in declared.items():
        of_ranks[ranks].append(name)
    names_of: defaultdict[tuple[Group, str], set[str]] = defaultdict(set)
    for one in stated:
        if one.ranks is not None and rank in one.ranks and len(one.ranks) > 1:
            names_of[one.ranks, one.about].add(one.name)
    found: dict[GroupStated, Hashable] = {}
    for (ranks, about), names in names_of.items():
        listed = of_ranks.get(ranks, [])
        for name in names:
            key: Hashable = (ranks, about, name, "of rank", rank)
            if name in listed:
                key = (ranks, about, listed.index(name), len(listed))
            elif len(names) == 1 and not (name and listed):
                key = (ranks, about, 0, 1)
            found[GroupStated(ranks, about, name)] = key
    return found


# -- which are one ----------------------------------------------------------------------------------------------------


def numbered_collectives(seen: Occurrences) -> Occurrences:
    """Return the collectives with numbers: of one group, kind and number, which each rank has equally often."""
    seen = seen.where(seen.seq >= 0)
    seen = seen.where(np.lexsort((seen.start, seen.rank, seen.seq, seen.kind, seen.group)))
    of_one = _runs(seen.group, seen.kind, seen.seq)
    of_rank = _runs(of_one, seen.rank)
    nth = np.arange(len(of_rank)) - np.searchsorted(of_rank, of_rank)
    times = np.bincount(of_rank)[of_rank] if len(of_rank) else of_rank
    most, least = (_over(of_one, times, ufunc) for ufunc in (np.maximum, np.minimum))
    kept = most == least
    number = _renumbered(np.stack((of_one[kept], nth[kept])))
    return _of_several_ranks(seen.where(kept).numbered(number))


def one_sided_collectives(seen: Occurrences) -> Occurrences:
    """Return those with numbers of which only some wait for others, of which such ranks and others are recorded."""
    found = numbered_collectives(seen.where(seen.side != Side.BOTH))
    both = [np.bincount(found.number, found.side == side, found.count) > 0 for side in (Side.START, Side.END)]
    return found.where((both[0] & both[1])[found.number])


def joined_numbers(one: Occurrences, other: Occurrences) -> Occurrences:
    """Return the occurrences of both; the numbers of the latter come after those of the former."""
    return Occurrences.joined((one, replace(other, number=other.number + int(np.max(one.number, initial=-1)) + 1)))


def _runs(*columns: I64) -> I64:
    """Return for rows in order of some columns the number of their run of equal values."""
    if not len(columns[0]):
        return np.zeros(0, np.int64)
    changed = np.any([np.diff(column) != 0 for column in columns], axis=0)
    found: I64 = np.r_[0, np.cumsum(changed)].astype(np.int64)
    return found


def _over(runs: I64, values: I64, ufunc: np.ufunc) -> I64:
    """Return for each row the result of its run."""
    if not len(runs):
        return values
    begins = np.searchsorted(runs, np.arange(runs[-1] + 1))
    found: I64 = ufunc.reduceat(values, begins)[runs]
    return found


def _renumbered(keys: I64) -> I64:
    """Return numbers from 0 on for keys, which are the columns."""
    if not keys.shape[1]:
        return np.zeros(0, np.int64)
    found: I64 = np.unique(keys, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return found


def _of_several_ranks(occurrences: Occurrences) -> Occurrences:
    """Return the collectives that more than one rank recorded, numbered anew."""
    number = occurrences.number
    often = np.bincount(number)[number] > 1 if len(number) else np.zeros(0, bool)
    kept = occurrences.where(often)
    return replace(kept, number=_runs(kept.number))


def _by_order(seen: Occurrences, first: int) -> tuple[Occurrences, list[Odd]]:
    """Return the collectives without numbers: the nth of each rank, of the ranks that did the same in the same order.

    The ranks among them that fit in no way are the second result.
    """
    seen = seen.where(np.lexsort((seen.start, seen.rank, seen.group)))
    same: defaultdict[tuple[int, bytes], list[I64]] = defaultdict(list)
    runs = _runs(seen.group, seen.rank)
    begins = np.searchsorted(runs, np.arange(runs[-1] + 2)) if len(runs) else np.zeros(1, np.int64)
    for begin, end in zip(begins[:-1].tolist(), begins[1:].tolist(), strict=True):
        same[int(seen.group[begin]), seen.what[begin:end].tobytes()].append(np.arange(begin, end))
    rows: list[I64] = []
    number: list[I64] = []
    odd: list[Odd] = []
    for (_, what), members in same.items():
        members, of_these = _without_shifted(seen, members)
        odd += of_these
        if len(members) > 1:
            size = len(what) // seen.what.itemsize
            rows += members
            number += [np.arange(first, first + size)] * len(members)
            first += size
    empty = [np.zeros(0, np.int64)]
    return seen.where(np.concatenate(rows or empty)).numbered(np.concatenate(number or empty)), odd


def _without_shifted(seen: Occurrences, members: list[I64]) -> tuple[list[I64], list[Odd]]:
    """Return the ranks without those whose order, and not whose clock, may be wrong and contradicts the others.

    All are held against the rank that contradicts the middle of them least often, so that one odd rank, whichever it
    is, does not keep the others from being checked.

    Args:
        seen: all collectives.
        members: for each rank the rows of its collectives, in order.

    Returns:
        The rows of those ranks, and the ranks that fit in no way.
    """
    if len(members) < 2 or not _impossible(seen, members).count:
        return members, []
    start, end, within = (np.array([column[rows] for rows in members]) for column in (seen.start, seen.end, seen.bound))
    middle = len(members) // 2
    late = start - np.sort(end, axis=0)[middle] > within
    early = np.sort(start, axis=0)[middle] - end > within
    reference = members[int(np.argmin(np.count_nonzero(late | early, axis=1)))]
    kept: list[I64] = []
    odd: list[Odd] = []
    for rows in members:
        wrong = _impossible(seen, [reference, rows])
        if rows is reference or not wrong.count:
            kept.append(rows)
        elif not _fit_shifted(seen, reference, rows):
            # From where to where the recording can be moved so that each collective can happen.
            bound = seen.bound[reference] + seen.bound[rows]
            least = seen.start[reference] - seen.end[rows] - bound
            most = seen.end[reference] - seen.start[rows] + bound
            if np.max(least) <= np.min(most):
                kept.append(rows)
            else:
                odd.append(Odd(wrong, _set_meanwhile(least, most)))
    return kept, odd


def fit_in_no_way(seen: Occurrences, one: I64, other: I64) -> bool:
    """Return whether two ranks that did the same fit neither as drawn, nor shifted by some collectives."""
    return _impossible(seen, [one, other]).count > 0 and not _fit_shifted(seen, one, other)


def _impossible(seen: Occurrences, members: list[I64]) -> Impossible:
    """Return the collectives of some ranks that cannot have happened as drawn."""
    numbers = np.tile(np.arange(len(members[0])), len(members))
    return seen.where(np.concatenate(members)).numbered(numbers).impossible()


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


def _fit_shifted(seen: Occurrences, one: I64, other: I64) -> bool:
    """Return whether the nth of one rank can be the one before or after the nth of another one."""
    count = len(one)
    away = np.searchsorted(seen.start[other], seen.start[one]) - np.arange(count)
    shifts, times = np.unique(np.concatenate((away - 1, away, away + 1)), return_counts=True)
    for shift in shifts[np.argsort(-times, kind="stable")][:_MOST_SHIFTS].tolist():
        if not shift or 2 * abs(shift) > count:
            continue
        here, there = (one[: count - shift], other[shift:]) if shift > 0 else (one[-shift:], other[: count + shift])
        if np.array_equal(seen.what[here], seen.what[there]):
            pairs = seen.where(np.concatenate((here, there))).numbered(np.tile(np.arange(len(here)), 2))
            if not pairs.impossible().count:
                return True
    return False

"""Collectives of several ranks: no process leaves one before all of its group have entered it.

Which collectives are one is told by the ranks of their group and their number in it; where they have no numbers, see
`collective_order`. Of a broadcast, a reduction to one rank, or a message only one side waits. These count by their
numbers alone, and only where it is known who waits for whom.

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
    return of_several_ranks(seen.where(kept).numbered(number))


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


def of_several_ranks(occurrences: Occurrences) -> Occurrences:
    """Return the collectives that more than one rank recorded, numbered anew."""
    number = occurrences.number
    often = np.bincount(number)[number] > 1 if len(number) else np.zeros(0, bool)
    kept = occurrences.where(often)
    return replace(kept, number=_runs(kept.number))

"""The collectives that several ranks recorded, in columns: no rank leaves one before all of its group have entered.

Records of one collective have the same group and sequence number; without numbers, see `collective_matching`. In a
broadcast, a reduction to one rank, or a message, only one side waits. These are matched by sequence numbers alone, and
only where the waiting side is known.

The cost is linear in the records, however many ranks there are: of each collective only the first exit and the last
entry are compared.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, replace
from itertools import compress, count
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from traceconv.align.devices import NOTHING_KNOWN, DeviceSkew
from traceconv.align.domains import clocks_of_tracks, on_trace_time
from traceconv.model.args import durations_recorded
from traceconv.model.clocks import NO_BOUND_NS, UNSTATED_BOUND_NS, ClockMap
from traceconv.model.columns import I64
from traceconv.model.stated_collectives import MESSAGES, Group, GroupStated, Side, stated_collectives
from traceconv.model.trace import Trace
from traceconv.model.track_table import processes

if TYPE_CHECKING:
    from traceconv.align.inputs import Skews

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Occurrences:
    """Records of collectives, one for each rank that took part, in columns of equal length.

    Attributes:
        number: the number of the collective, equal in the records of all its ranks, ascending; 0 before they are
            matched.
        input: the number of the input; `row` is the slice there.
        start, end: on trace time, ns.
        bound: how wrong these can be if the wall clocks of all hosts agree, ns.
        group, kind, what: the numbers of its group, of its operation, and of operation and sizes together; see `Terms`.
        seq: its sequence number in the group, -1 for none.
        side: the ends that bound other ranks, a `Side`.
        least, most: the least and the greatest skew of the clock of a device, ns: its times plus the skew are those of
            the host; 0 for records of a host. See `devices`.
        device: the number of the device in its input, 0 for records of a host.
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
    least: I64
    most: I64
    device: I64

    @staticmethod
    def joined(several: Sequence[Occurrences]) -> Occurrences:
        """Concatenate the records of several tables."""
        columns = ([getattr(table, column.name) for table in several] for column in fields(Occurrences))
        return Occurrences(*map(np.concatenate, columns))

    @staticmethod
    def none() -> Occurrences:
        """Return no records."""
        return Occurrences(*[np.zeros(0, np.int64)] * len(fields(Occurrences)))

    def where(self, chosen: Any) -> Occurrences:
        """Return the records chosen by a mask or by rows."""
        return Occurrences(*(getattr(self, column.name)[chosen] for column in fields(self)))

    def numbered(self, number: I64) -> Occurrences:
        """Return the records with these numbers of collectives, sorted by them."""
        order = np.argsort(number, kind="stable")
        return replace(self.where(order), number=number[order])

    @property
    def count(self) -> int:
        """The number of collectives."""
        return len(np.unique(self.number))

    @property
    def exact(self) -> Occurrences:
        """The same records with neither bounds nor skews."""
        return replace(self.without_skews, bound=self.bound * 0)

    @property
    def without_skews(self) -> Occurrences:
        """The same records with the times of devices taken for those of their hosts."""
        return replace(self, least=self.bound * 0, most=self.bound * 0)

    def impossible(self) -> Impossible:
        """Return the collectives that one rank left before another one entered, by more than the bounds of both.

        Where kernels begin before their launches, their device is behind: then it may have left as much later.
        """
        later = np.where(self.least > 0, self.most, 0)
        left = np.where(self.side == Side.START, NO_BOUND_NS, self.end + self.bound + later)
        entered = np.where(self.side == Side.END, -NO_BOUND_NS, self.start - self.bound)
        begins = np.flatnonzero(np.diff(self.number, prepend=-1))
        early = np.lexsort((left, self.number))[begins]
        late = np.lexsort((-entered, self.number))[begins]
        bad = np.flatnonzero(entered[late] > left[early])
        bad = bad[np.argsort(self.end[early[bad]] - self.start[late[bad]], kind="stable")]
        return Impossible(self, early[bad], late[bad])


@dataclass(frozen=True, slots=True)
class Impossible:
    """Collectives that are impossible as drawn, the worst first: a rank left before another one entered.

    Attributes:
        early, late: for each collective the row of the first exit, and of the last entry.
    """

    records: Occurrences
    early: I64
    late: I64

    def where(self, chosen: Mask) -> Impossible:
        """Return the chosen collectives."""
        return Impossible(self.records, self.early[chosen], self.late[chosen])

    @property
    def count(self) -> int:
        """The number of collectives."""
        return len(self.early)

    @property
    def numbers(self) -> I64:
        """The numbers of the collectives."""
        return self.records.number[self.early]

    @property
    def worst_ns(self) -> int:
        """The time from the first exit to the last entry of the worst one, ns; there must be one."""
        return int(self.records.start[self.late[0]] - self.records.end[self.early[0]])


@dataclass(frozen=True, slots=True)
class Terms:
    """The meaning of the numbers in `Occurrences`.

    Attributes:
        kinds, whats: the number of each operation, and of each combination of operation and sizes.
        members: the ranks of each group by its number.
        of_unknown_group: for each input the number of its collectives without a known group.
        untimed: for each input the number of its collectives whose duration was not recorded.
        not_for_all: for each input how often each operation occurs in which not every rank is known to wait for all.
    """

    kinds: defaultdict[str, int] = field(default_factory=lambda: defaultdict(count().__next__))
    whats: defaultdict[Hashable, int] = field(default_factory=lambda: defaultdict(count().__next__))
    groups: defaultdict[Hashable, int] = field(default_factory=lambda: defaultdict(count().__next__))
    members: dict[int, Group] = field(default_factory=dict)
    of_unknown_group: dict[int, int] = field(default_factory=dict)
    untimed: dict[int, int] = field(default_factory=dict)
    not_for_all: dict[int, Counter[str]] = field(default_factory=dict)


def recorded_collectives(
    traces: Sequence[Trace],
    maps: Sequence[Mapping[int, ClockMap]],
    terms: Terms,
    repeats: Mapping[int, int],
    skews: Skews = (),
) -> Occurrences | None:
    """Return the records of inputs of different ranks, not matched yet; None if fewer than two ranks have any.

    Args:
        repeats: the inputs that repeat another one; their collectives do not count twice.
        skews: for each input the skews of its devices; empty if they were not determined.
    """
    stated = [
        index
        for index, trace in enumerate(traces)
        if trace.collectives and trace.sources[0].rank is not None and index not in repeats
    ]
    if len({traces[index].sources[0].rank for index in stated}) < 2:
        return None
    seen = Occurrences.joined(
        [_recorded(traces[index], index, maps[index], terms, skews[index] if skews else {}) for index in stated]
    )
    return seen if len(np.unique(seen.rank)) > 1 else None


def _recorded(
    trace: Trace,
    index: int,
    maps: Mapping[int, ClockMap],
    terms: Terms,
    skews: Mapping[int, Mapping[int, DeviceSkew]],
) -> Occurrences:
    """Return the records of an input whose group is known and has several ranks."""
    declared, rank, slices = trace.collectives, trace.sources[0].rank, trace.slices
    assert declared is not None
    assert rank is not None
    clock_of_track = clocks_of_tracks(trace)
    stated = stated_collectives(trace)
    size = trace.sources[0].world_size  # ranks with another size of the job are of another job
    keys = _groups(set(stated.groups), declared.groups, rank)
    unknown = sum(stated.groups[made.group].ranks is None for made in stated.each)
    terms.of_unknown_group[index] = stated.without_group + unknown
    terms.not_for_all[index] = stated.not_for_all
    chosen = [made for made in stated.each if stated.groups[made.group] in keys]
    # The root distinguishes broadcasts of one group, sender and receiver distinguish messages.
    groups = {
        (made.group, made.ends): terms.groups[size, keys[stated.groups[made.group]], made.ends] for made in chosen
    }
    terms.members.update((number, stated.groups[group].ranks or ()) for (group, _), number in groups.items())
    rows = np.array([made.row for made in chosen], np.int64)
    timed = durations_recorded(slices, trace.args)[rows]
    terms.untimed[index] = int(np.count_nonzero(~timed))
    kept = np.isin(clock_of_track[slices.track[rows]], list(maps)) & timed
    chosen, rows = list(compress(chosen, kept)), rows[kept]
    clocks = clock_of_track[slices.track[rows]]
    start = on_trace_time(slices.ts[rows], clocks, maps)
    end = on_trace_time(slices.ts[rows] + slices.dur[rows], clocks, maps)
    bounds = np.zeros(len(trace.clocks), np.int64)
    for clock, clock_map in maps.items():
        within = UNSTATED_BOUND_NS if clock_map.bound_in_step_ns is None else clock_map.bound_in_step_ns
        bounds[clock] = within + trace.clocks[clock].resolution_ns
    same = np.ones(len(rows), np.int64)
    kinds = ("message" if made.kind in MESSAGES else made.kind for made in chosen)
    numbered = [
        (groups[made.group, made.ends], terms.kinds[kind], terms.whats[kind, made.sizes], made.seq, made.side)
        for made, kind in zip(chosen, kinds, strict=True)
    ]
    columns = np.array(numbered, np.int64).reshape(-1, 5).T
    skew = _skews_of(trace, rows, clocks, skews)
    return Occurrences(same * 0, same * index, rows, same * rank, start, end, bounds[clocks], *(*columns, *skew))


def _skews_of(
    trace: Trace, rows: I64, clocks: I64, skews: Mapping[int, Mapping[int, DeviceSkew]]
) -> tuple[I64, I64, I64]:
    """Return the least and greatest skew (ns) of the device of each record, 0 for those of a host, and its number."""
    slices, marks = trace.slices, trace.sources[0].marks.launches
    least, most = np.zeros((2, len(rows)), np.int64)
    work = np.array([marks is not None and text in marks.work for text in trace.strings], bool)
    on_device = work[slices.category[rows]]
    of_track = processes(trace.tracks)[slices.track[rows]]
    for clock, track in sorted(set(zip(clocks[on_device].tolist(), of_track[on_device].tolist(), strict=True))):
        here = np.flatnonzero(on_device & (clocks == clock) & (of_track == track))
        skew = skews.get(clock, {}).get(track, NOTHING_KNOWN)
        least[here], most[here] = skew.at(slices.ts[rows[here]])
    return least, most, np.where(on_device, of_track + 1, 0)


def _groups(stated: Set[GroupStated], declared: Mapping[str, Group], rank: int) -> dict[GroupStated, Hashable]:
    """Return a key for each known group of a process that identifies the group in all processes.

    Names are local to a process. Groups of equal ranks are distinguished by the order of their creation, which is the
    same in all processes. A recording may lack the collectives of some groups, so the order is that of all declared
    groups. If several groups of equal ranks are not declared, they are matched with no other process.
    """
    of_ranks: defaultdict[Group, list[str]] = defaultdict(list)
    for name, ranks in declared.items():
        of_ranks[ranks].append(name)
    names_of: defaultdict[tuple[Group, str], set[str]] = defaultdict(set)
    for group in stated:
        if group.ranks is not None and rank in group.ranks and len(group.ranks) > 1:
            names_of[group.ranks, group.about].add(group.name)
    groups: dict[GroupStated, Hashable] = {}
    for (ranks, about), names in names_of.items():
        listed = of_ranks.get(ranks, [])
        for name in names:
            key: Hashable = (ranks, about, name, "of rank", rank)
            if name in listed:
                key = (ranks, about, listed.index(name), len(listed))
            elif len(names) == 1 and not (name and listed):
                key = (ranks, about, 0, 1)
            groups[GroupStated(ranks, about, name)] = key
    return groups


def numbered_collectives(records: Occurrences) -> Occurrences:
    """Match the records of equal group, kind and sequence number, if each rank has the number equally often."""
    records = records.where(records.seq >= 0)
    if not len(records.row):
        return records
    records = records.where(np.lexsort((records.start, records.rank, records.seq, records.kind, records.group)))
    of_collective = _runs(records.group, records.kind, records.seq)
    of_rank = _runs(of_collective, records.rank)
    nth = np.arange(len(of_rank)) - np.searchsorted(of_rank, of_rank)
    times, begins = np.bincount(of_rank)[of_rank], np.flatnonzero(np.diff(of_collective, prepend=-1))
    kept = (np.maximum.reduceat(times, begins) == np.minimum.reduceat(times, begins))[of_collective]
    number = np.unique(of_collective[kept] * len(nth) + nth[kept], return_inverse=True)[1]
    return of_several_ranks(records.where(kept).numbered(number))


def one_sided_collectives(records: Occurrences) -> Occurrences:
    """Match the records of collectives in which only one side waits, if both sides are recorded."""
    numbered = numbered_collectives(records.where(records.side != Side.BOTH))
    start, end = (np.bincount(numbered.number, numbered.side == side) > 0 for side in (Side.START, Side.END))
    return numbered.where((start & end)[numbered.number])


def joined_numbers(first: Occurrences, second: Occurrences) -> Occurrences:
    """Concatenate two tables; the numbers of the second one follow those of the first."""
    following = second.number + int(np.max(first.number, initial=-1)) + 1
    return Occurrences.joined((first, replace(second, number=following)))


def _runs(*columns: I64) -> I64:
    """Return the number of the run of equal values of each row; rows are sorted by the columns."""
    changed = np.any([np.diff(column, prepend=column[:1]) != 0 for column in columns], axis=0)
    runs: I64 = np.cumsum(changed)
    return runs


def of_several_ranks(occurrences: Occurrences) -> Occurrences:
    """Return the collectives with records of more than one rank, renumbered."""
    kept = occurrences.where(np.bincount(occurrences.number)[occurrences.number] > 1)
    return replace(kept, number=_runs(kept.number))

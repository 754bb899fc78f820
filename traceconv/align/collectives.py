"""The collectives that several ranks recorded, in columns: no rank leaves one before all of its group have entered.

Records of one collective have the same group and sequence number; without numbers, see `collective_matching`. In a
broadcast, a reduction to one rank, or a message, only one side waits. These are matched by sequence numbers alone, and
only where the waiting side is known.

The cost is linear in the records, however many ranks there are: of each collective only the first exit and the last
entry are compared. A check shows whether the collectives are possible as drawn, and which clocks are wrong if not.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence, Set
from itertools import compress, count
from operator import attrgetter
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field
from msgspec.structs import astuple, replace

from traceconv.align.checks import Breaches, Check, Contradiction, Rule
from traceconv.align.constraints import KEEP_CLOCKS, Constraints
from traceconv.align.devices import NOTHING_KNOWN, DeviceSkew
from traceconv.align.domains import clocks_of_tracks, on_trace_time
from traceconv.align.host_clocks import Ends, ends_of_two
from traceconv.errors import TraceconvError
from traceconv.io.shown import listed
from traceconv.model.args import durations_recorded
from traceconv.model.clocks import HOSTS_DRIFT, NO_BOUND_NS, UNSTATED_BOUND_NS, ClockMap, Verdict
from traceconv.model.columns import I64, occurring
from traceconv.model.numbers import format_option, format_short, format_uncertainty
from traceconv.model.stated_collectives import MESSAGES, Group, GroupStated, Side, stated_collectives
from traceconv.model.trace import Trace
from traceconv.model.track_table import processes

if TYPE_CHECKING:
    from traceconv.align import Alignment
    from traceconv.align.collective_matching import Matched, Odd
    from traceconv.align.inputs import Skews

Mask = npt.NDArray[np.bool_]
#: A proposed offset is the roundest of at most this many that make all collectives possible.
_MOST_STEPS = 20
#: Of two inputs that contradict each other, the wrong one is found by comparison with at most this many others. Not
#: tuned.
_MOST_ASKED = 16


class Occurrences(Struct, frozen=True):
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
        return Occurrences(*map(np.concatenate, zip(*map(astuple, several), strict=True)))

    @staticmethod
    def none() -> Occurrences:
        """Return no records."""
        return Occurrences(*[np.zeros(0, np.int64)] * len(Occurrences.__struct_fields__))

    def where(self, chosen: Any) -> Occurrences:
        """Return the records chosen by a mask or by rows."""
        return Occurrences(*(column[chosen] for column in astuple(self)))

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


class Impossible(Struct, frozen=True):
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


class Terms(Struct, frozen=True):
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
    members: dict[int, Group] = {}
    of_unknown_group: dict[int, int] = {}
    untimed: dict[int, int] = {}
    not_for_all: dict[int, Counter[str]] = {}


class Recorded(Struct, frozen=True):
    """The records of the collectives of several ranks, not matched yet, as their inputs state them.

    Attributes:
        records: with times on the clocks of their inputs; the bound is the resolution of the clock, ns.
        clock: the number of the clock of each record in its input.
    """

    records: Occurrences
    clock: I64
    terms: Terms

    def placed(self, maps: Sequence[Mapping[int, ClockMap]]) -> Occurrences | None:
        """Return the records on trace time, by the maps of the clocks of each input; those without a map are left out.

        None if fewer than two ranks have any.
        """
        records, kept = self.records, np.zeros(len(self.clock), bool)
        start, end, bound = records.start.copy(), records.end.copy(), records.bound.copy()
        begins = np.flatnonzero(np.diff(records.input, prepend=-1))
        for rows in np.split(np.arange(len(kept)), begins[1:]) if len(kept) else ():
            maps_of = maps[records.input[rows[0]]]
            rows = rows[np.isin(self.clock[rows], list(maps_of))]
            kept[rows], clock = True, self.clock[rows]
            for times in (start, end):
                times[rows] = on_trace_time(times[rows], clock, maps_of)
            for number in occurring(clock):
                bound[rows[clock == number]] += maps_of[number].stated_bound_in_step_ns
        seen = replace(records, start=start, end=end, bound=bound).where(kept)
        return seen if len(np.unique(seen.rank)) > 1 else None


def recorded_collectives(traces: Sequence[Trace], repeats: Mapping[int, int], skews: Skews = ()) -> Recorded | None:
    """Return the records of inputs of different ranks; None if fewer than two ranks declare any.

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
    terms = Terms()
    each = [_recorded(traces[index], index, terms, skews[index] if skews else {}) for index in stated]
    records, clocks = zip(*each, strict=True)
    return Recorded(Occurrences.joined(records), np.concatenate(clocks), terms)


def _recorded(
    trace: Trace, index: int, terms: Terms, skews: Mapping[int, Mapping[int, DeviceSkew]]
) -> tuple[Occurrences, I64]:
    """Return the records of an input whose group is known and has several ranks, and the clock of each."""
    declared, rank, slices = trace.collectives, trace.sources[0].rank, trace.slices
    assert declared is not None
    assert rank is not None
    stated = stated_collectives(trace)
    size = trace.sources[0].world_size  # ranks with another size of the job are of another job
    keys = _groups(set(stated.groups), declared.groups, rank)
    of_group = [keys.get(group) for group in stated.groups]
    unknown = sum(stated.groups[made.group].ranks is None for made in stated.each)
    terms.of_unknown_group[index] = stated.without_group + unknown
    terms.not_for_all[index] = stated.not_for_all
    chosen = [made for made in stated.each if of_group[made.group] is not None]
    rows = np.array([made.row for made in chosen], np.int64)
    timed = durations_recorded(slices, trace.args)[rows]
    terms.untimed[index] = int(np.count_nonzero(~timed))
    chosen, rows = list(compress(chosen, timed)), rows[timed]
    # The root distinguishes broadcasts of one group, sender and receiver distinguish messages.
    groups = {
        (group, ends): terms.groups[size, of_group[group], ends]
        for group, ends in dict.fromkeys((made.group, made.ends) for made in chosen)
    }
    terms.members.update((number, stated.groups[group].ranks or ()) for (group, _), number in groups.items())
    clocks = clocks_of_tracks(trace)[slices.track[rows]]
    resolutions = np.array([clock.resolution_ns for clock in trace.clocks], np.int64)
    same = np.ones(len(rows), np.int64)
    kinds = ("message" if made.kind in MESSAGES else made.kind for made in chosen)
    numbered = [
        (groups[made.group, made.ends], terms.kinds[kind], terms.whats[kind, made.sizes], made.seq, made.side)
        for made, kind in zip(chosen, kinds, strict=True)
    ]
    columns = np.array(numbered, np.int64).reshape(-1, 5).T
    skew = _skews_of(trace, rows, clocks, skews)
    start, end = slices.ts[rows], slices.ts[rows] + slices.dur[rows]
    records = Occurrences(
        same * 0, same * index, rows, same * rank, start, end, resolutions[clocks], *(*columns, *skew)
    )
    return records, clocks.astype(np.int64)


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


# -- checks ------------------------------------------------------------------------------------------------------------


def check_of_ranks(traces: Sequence[Trace], alignment: Alignment, matched: Matched) -> list[Check]:
    """Return a check of all collectives that inputs of several ranks recorded."""
    seen = matched.checked
    inputs = np.unique(seen.input).tolist() or [index for index, trace in enumerate(traces) if trace.collectives]
    files = tuple(dict.fromkeys(traces[index].sources[0].name for index in inputs))
    ranks = tuple(np.unique(seen.rank).tolist()) or matched.ranks
    related = Hosts(alignment)
    wrong = related.impossible(seen)
    after = Breaches(0, 0)
    # these first: they may be the reason why hosts are not placed
    found = [_of_odd(traces, related, odd) for odd in matched.odd]
    if wrong:
        count = len(np.unique(np.concatenate([impossible.numbers for impossible in wrong])))
        worst = max(wrong, key=attrgetter("worst_ns"))
        after = Breaches(count, worst.worst_ns, _place(traces, worst))
        found += _contradictions(traces, related, seen)
    alone, contradictions = matched.alone, tuple(found)
    return [Check(Rule.COLLECTIVE, files, seen.count, after, ranks=ranks, alone=alone, contradictions=contradictions)]


def _place(traces: Sequence[Trace], wrong: Impossible) -> str:
    """Return the worst collective in words: the positions of its first exit and its last entry."""
    seen, rows = wrong.records, (wrong.early[0], wrong.late[0])
    sides = [(traces[seen.input[row]], int(seen.row[row]), int(seen.rank[row])) for row in rows]
    (early, row, left), (_, _, entered) = sides
    name = early.strings[early.slices.name[row]].partition("(")[0]
    there = [trace.place_of_slice(at) for trace, at, _ in sides]
    return f"rank {left} left {name!r} before rank {entered} entered it: {there[0]}, {there[1]}"


class Hosts:
    """The inputs whose clocks are related within their bounds: those of one host, and placed hosts.

    Attributes:
        names: for each input the host that it is placed with by a wall clock that is assumed to be right; "" for none.
        users, estimated: for each input whether the user placed it, and whether events did.
        moved: for each input by how much it is drawn later than its file states, ns; None if that is not known.
        by_hand: for each input whether the user alone placed it: then the times as drawn are checked, whatever room
            the option leaves.
    """

    def __init__(self, alignment: Alignment) -> None:
        self.alignment = alignment
        self.names = alignment.apart
        maps = [list(maps_of.values()) for maps_of in alignment.maps]
        self.users = np.array([any(clock_map.by_user for clock_map in maps_of) for maps_of in maps], bool)
        self.estimated = np.array([any(clock_map.estimated for clock_map in maps_of) for maps_of in maps], bool)
        self.by_hand = self.users & ~self.estimated
        self._host = np.array([self.names.index(host) for host in self.names], np.int64)
        self.moved = [lines[0].moved_ns if lines else None for lines in alignment.lines]

    def impossible(self, records: Occurrences) -> list[Impossible]:
        """Return the impossible collectives within each host, then those between hosts; empty sets are left out."""
        host = self._host[records.input]
        drawn = np.minimum(records.bound, UNSTATED_BOUND_NS)
        records = replace(records, bound=np.where(self.by_hand[records.input], drawn, records.bound))
        within = [records.where(host == number).impossible() for number in np.unique(host).tolist()]
        # Two hosts have no known bound: errors beyond those of the two profilers are reported.
        between = replace(records, bound=records.bound // 2).impossible()
        between = between.where(host[between.early] != host[between.late])
        return [wrong for wrong in (*within, between) if wrong.count]

    def units(self, impossible: Sequence[Impossible]) -> I64:
        """Return for each input a number, equal for those that move together.

        These are the inputs of a host without contradictions that the user does not place.
        """
        units, hosts = np.arange(len(self._host)), self._host
        ends = [hosts[wrong.records.input[[wrong.early[0], wrong.late[0]]]] for wrong in impossible]
        torn = {left for left, entered in ends if left == entered}
        for host in np.unique(hosts).tolist():
            if host not in torn:
                free = np.flatnonzero((hosts == host) & ~self.users)
                units[free] = np.min(free, initial=len(units))
        return units

    def offsets(self, moves: Mapping[int, tuple[int, int]]) -> Constraints:
        """Return the options of the user, with offsets that move some inputs from where they are drawn.

        Collectives no longer place the other inputs of their hosts, nor, if one is of the first host, those of any
        host. So these get the offsets at which they are drawn.

        Args:
            moves: for each of these inputs by how much to move it, and how wrong that may be, ns.
        """
        before = self.alignment.constraints
        machines = [machine.key or index for index, machine in enumerate(self.alignment.machines)]
        beside = set(machines if any(not self.estimated[index] for index in moves) else (machines[i] for i in moves))
        offsets, within = dict(before.offsets), dict(before.offsets_within)
        for index, moved in enumerate(self.moved):
            is_named = index in moves or (moved and self.estimated[index] and machines[index] in beside)
            if moved is not None and is_named:
                bound = self.alignment.lines[index][0].bound_ns or 0
                by, within[index] = moves.get(index, (0, bound))
                offsets[index] = moved + by
        return replace(before, offsets=dict(sorted(offsets.items())), offsets_within=within)

    def are_unsure(self, *pair: int) -> bool:
        """Return whether two inputs are of different hosts, or events placed either."""
        return self.are_apart(*pair) or bool(self.estimated[list(pair)].any())

    def are_apart(self, index: int, other: int) -> bool:
        """Return whether two inputs have wall clocks of different hosts."""
        return self.names[index] != self.names[other]


def _contradictions(traces: Sequence[Trace], related: Hosts, records: Occurrences) -> Iterator[Contradiction]:
    """Yield the contradictions from impossible collectives: against clocks of one host, of two hosts, or of the user.

    Clocks of one host, and clocks that are related within a bound, are wrong then. For two hosts, the assumption is
    wrong that they agree. All have the same hint.
    """
    free = records.where(~related.users[records.input])
    impossible = related.impossible(free)
    hint = _Hint(traces, related, records, impossible)
    for wrong in impossible:
        first, second = _inputs(wrong, free)
        if related.are_apart(first, second):
            doubted = {related.names[index] for index in (first, second)} - {""}
            last = second if related.names[second] else first
            inputs = [index for index, host in enumerate(related.names) if host in doubted and index != last]
            yield _contradiction(traces, wrong, records, Verdict.UNVERIFIED, (*inputs, last), hint, hosts=True)
        else:
            yield _contradiction(traces, wrong, records, Verdict.INCONSISTENT, (first, second), hint)
    for wrong in related.impossible(records):
        placed = tuple(index for index in _inputs(wrong, records) if related.users[index])
        if placed:
            yield _contradiction(traces, wrong, records, Verdict.ASSUMED, placed)


def _of_odd(traces: Sequence[Trace], related: Hosts, odd: Odd) -> Contradiction:
    """Return the contradiction for two ranks with equal sequences that fit in no way.

    Either records are missing, so that nothing is known of the clocks, or a clock was set. If a single step explains
    all, the clock was set. Clocks of two hosts are doubted in both cases, also those that these collectives placed.
    """
    pair = _inputs(odd.wrong, odd.wrong.records)
    placed = tuple(index for index in pair if related.users[index])
    why, doubted = "no offset makes all of them possible: a clock was set in between", related.are_unsure(*pair)
    if odd.set_by_ns is not None:
        why, doubted = f"one clock was set in between, by about {format_short(odd.set_by_ns)}", True
    verdict = Verdict.UNVERIFIED if doubted and not placed else Verdict.ASSUMED
    hint = _Hint(traces, related, odd.wrong.records, [odd.wrong])
    contradiction = _contradiction(traces, odd.wrong, odd.wrong.records, verdict, placed or pair, hint)
    return replace(contradiction, text=f"{contradiction.text}: {why}, or records are missing")


def _inputs(wrong: Impossible, records: Occurrences) -> tuple[int, int]:
    """Return the two inputs that contradict each other most; the one that also contradicts more others comes last."""
    first, second = sorted(int(wrong.records.input[row]) for row in (wrong.early[0], wrong.late[0]))
    return _by_blame(records, first, second)


def _by_blame(records: Occurrences, first: int, second: int) -> tuple[int, int]:
    """Return two inputs, the one that contradicts more of the others last; else as they are."""
    others = np.setdiff1d(records.input, (first, second))[:_MOST_ASKED].tolist()
    against = [
        sum(records.where(np.isin(records.input, (side, third))).impossible().count > 0 for third in others)
        for side in (first, second)
    ]
    return (second, first) if against[0] > against[1] else (first, second)


def _contradiction(
    traces: Sequence[Trace],
    wrong: Impossible,
    records: Occurrences,
    verdict: Verdict,
    inputs: tuple[int, ...],
    hint: object = KEEP_CLOCKS,
    *,
    hosts: bool = False,
) -> Contradiction:
    """Return the contradiction, which names the last of `inputs`."""
    first, second = _inputs(wrong, records)
    names = [trace.sources[0].name for trace in traces]
    other = names[first if inputs[-1] == second else second]
    clocks = f"the wall clocks of its host and of {other}, taken as equal"
    clocks = clocks if hosts else f"its clock and that of {other}"
    text = (
        f"by {clocks}, {wrong.count} of {wrong.records.count} collectives are impossible, by up to "
        f"{format_short(wrong.worst_ns)} ({_place(traces, wrong)})"
    )
    return Contradiction(verdict, inputs, names[inputs[-1]], text, hint)


class _Hint(Struct, frozen=True, eq=False):
    """The hint for inputs that contradict each other, found when it is printed: all offsets that are needed.

    The inputs are aligned with them first: what is refused, or leaves collectives impossible, is not proposed.

    Attributes:
        records: the collectives of all inputs.
        impossible: those of the inputs that the user does not place.
    """

    traces: Sequence[Trace]
    related: Hosts
    records: Occurrences
    impossible: Sequence[Impossible]

    def __str__(self) -> str:
        """Return the hint as text."""
        related, records = self.related, self.records
        free = records.where(~related.users[records.input])
        pair = _inputs(max(self.impossible, key=attrgetter("worst_ns")), free)
        first, _ = _by_blame(free, int(np.min(free.input)), pair[0])
        unit, shown = related.units(self.impossible), _ends_of(free, pair)
        moves = _moves(records, unit, int(unit[first]))
        options = related.offsets({index: moves[by] for index, by in enumerate(unit.tolist()) if by in moves})
        if not moves or shown not in (Ends.OF_ONE_JOB, Ends.FEW) or not self._are_right(options):
            return KEEP_CLOCKS
        named = [
            f"--offset {quote(self.traces[index].sources[0].name)}={format_option(ns)}~"
            f"{format_uncertainty(options.offsets_within.get(index, 0))}"
            for index, ns in options.offsets.items()
        ]
        doubt = "the ends of these collectives do not show one job; if they are of one, "
        doubt = "" if shown is Ends.OF_ONE_JOB else doubt
        return f"{doubt}with {listed(named, ' ')} all these collectives are possible; {KEEP_CLOCKS}"

    def _are_right(self, constraints: Constraints) -> bool:
        """Return whether an alignment with these options is accepted, and makes all collectives possible."""
        again = self.related.alignment.again
        try:
            checks = again(constraints) if again else None
        except TraceconvError:
            return False
        if checks is None:
            return False
        of_ranks = [check for check in checks.checks if check.rule is Rule.COLLECTIVE]
        refused = any(contradiction.refuses for contradiction in checks.contradictions)
        return not refused and not any(check.contradictions or check.after.count for check in of_ranks)


def _ends_of(records: Occurrences, pair: tuple[int, int]) -> Ends:
    """Return what the ends of the common collectives of two inputs show, in which all wait for all."""
    seen, other = (records.where((records.input == index) & (records.side == Side.BOTH)) for index in pair)
    _, rows, partners = np.intersect1d(seen.number, other.number, return_indices=True)
    rows, partners = (found[np.argsort(seen.end[rows], kind="stable")] for found in (rows, partners))
    kinds = np.unique(np.stack((seen.group[rows], seen.what[rows])), axis=1, return_inverse=True)[1].reshape(-1)
    times = (np.stack((seen.start[rows], other.start[partners])), np.stack((seen.end[rows], other.end[partners])))
    return ends_of_two(*times, kinds.astype(np.int64)).shown


def _moves(records: Occurrences, unit: I64, first: int) -> dict[int, tuple[int, int]]:
    """Return by how much to move units so that their collectives become possible, and how wrong that may be, ns.

    The times of devices are moved as they are drawn. How wrong that is contains what is open of the clocks of devices.
    """
    unit_of = unit[records.input]
    placed = _Placed(int(np.max(records.number)) + 1)
    placed.add(records.where(unit_of == first), 0)
    moves: dict[int, tuple[int, int]] = {}
    rest = [number for number in np.unique(unit_of).tolist() if number != first]
    for may_move in (False, True):  # first those that can stay
        before: list[int] = []
        while rest != before:  # one that has its place may relate others
            before, rest = rest, []
            for number in before:
                moving = records.where(unit_of == number)
                move, within = placed.move_of(moving)
                if move is None or (move and not may_move):
                    rest.append(number)
                    continue
                placed.add(moving, move)
                if move:
                    moves[number] = move, within + max((more for _, more in moves.values()), default=0)
    return moves


class _Placed:
    """The units of inputs that have their place, by what their collectives allow others."""

    def __init__(self, collectives: int) -> None:
        self.entered = np.full((2, collectives), -NO_BOUND_NS)
        self.left = np.full((2, collectives), NO_BOUND_NS)

    def add(self, records: Occurrences, move: int) -> None:
        """Add the records of a unit that is moved by so many ns."""
        enters, leaves = records.side != Side.END, records.side != Side.START
        for row, (entered, left) in enumerate(_drawn_and_certain(records)):
            np.maximum.at(self.entered[row], records.number[enters], entered[enters] + move)
            np.minimum.at(self.left[row], records.number[leaves], left[leaves] + move)

    def move_of(self, records: Occurrences) -> tuple[int | None, int]:
        """Return by how much to move the records of a unit, and how wrong that may be, ns."""
        (least, most), certain = self._limits(records)
        ends = least > -NO_BOUND_NS // 2, most < NO_BOUND_NS // 2
        if least <= 0 <= most:
            return (0 if any(ends) else None), 0
        if not all(ends) or least > most:
            return None, 0
        move = _short(least, most)
        drift = round(HOSTS_DRIFT * int(np.max(records.end) - np.min(records.start)))
        return move, max(abs(move - limit) for limit in (least, most, *certain)) + drift

    def _limits(self, records: Occurrences) -> Iterator[tuple[int, int]]:
        """Yield by how much a unit must be moved at least, and may be at most, ns: as drawn, then as is certain."""
        enters, leaves = records.side != Side.END, records.side != Side.START
        for row, (entered, left) in enumerate(_drawn_and_certain(records)):
            after = (self.entered[row][records.number] - left)[leaves]
            before = (self.left[row][records.number] - entered)[enters]
            yield int(np.max(after, initial=-NO_BOUND_NS)), int(np.min(before, initial=NO_BOUND_NS))


def _drawn_and_certain(records: Occurrences) -> tuple[tuple[I64, I64], tuple[I64, I64]]:
    """Return the earliest entries and latest exits (ns): as drawn by options, then as is certain."""
    half = np.minimum(records.bound, UNSTATED_BOUND_NS) // 2
    entered, left = records.start + records.least - records.bound, records.end + records.most + records.bound
    return (records.start - half, records.end + half), (entered, left)


def _short(least: int, most: int) -> int:
    """Return a time between two others (ns), near their middle, with few digits."""
    middle, step = (least + most) // 2, 1
    while most - least > _MOST_STEPS * step:
        step *= 10
    short = (middle + step // 2) // step * step
    return short if least <= short <= most else middle

"""Collectives of several ranks: no process leaves one before all of its group have entered it.

Which collectives are one is told by the ranks of their group and their number in it. Where they have no numbers, by
what was done, with how much, and in which order, if all ranks of the group did the same in the same order. Recordings
of training look the same from step to step, may begin with different steps, and may lack some: such collectives are not
taken for one if they also fit shifted against each other, or if no move of a recording would let all of them happen.
The latter are odd: recordings lack some in between, or a clock was set meanwhile.

What it costs is linear in the collectives, however many ranks there are: of each collective only the rank that leaves
first and the one that enters last are compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, fields, replace
from itertools import count
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from traceconv.align.causality import on_trace_time
from traceconv.model.clocks import UNSTATED_BOUND_NS, ClockMap
from traceconv.model.collectives import CollectiveArgs, Collectives, Group, parse_ranks
from traceconv.model.trace import I64, Trace

Mask = npt.NDArray[np.bool_]
#: For what it costs: so many shifts of one recording against another one are tried, those first that bring the most
#: collectives together in time.
_MOST_SHIFTS = 24
#: For the memory that it takes: so many slices are looked through at once.
_AT_ONCE = 1 << 18
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
        left, entered = self.end + self.bound, self.start - self.bound
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
class Matched:
    """The collectives that several ranks recorded.

    Attributes:
        occurrences: of the ranks that took part.
        ranks: all ranks of which inputs have collectives.
        alone: how many occurrences of these have no partner, or none for certain.
        odd: pairs of ranks whose records fit in no way.
    """

    occurrences: Occurrences
    ranks: tuple[int, ...]
    alone: int
    odd: tuple[Odd, ...] = ()


def recorded_collectives(traces: Sequence[Trace], maps: Sequence[Mapping[int, ClockMap]]) -> Occurrences | None:
    """Return what inputs of different ranks recorded, all without the number of a collective; None of fewer than two.

    Args:
        traces: the inputs.
        maps: for each the way of its clocks to trace time.
    """
    stated = [index for index, trace in enumerate(traces) if trace.collectives and trace.sources[0].rank is not None]
    if len({traces[index].sources[0].rank for index in stated}) < 2:
        return None
    numbers: defaultdict[Hashable, int] = defaultdict(count().__next__)
    seen = Occurrences.joined([_recorded(traces[index], index, maps[index], numbers) for index in stated])
    return seen if len(np.unique(seen.rank)) > 1 else None


def match_collectives(traces: Sequence[Trace], maps: Sequence[Mapping[int, ClockMap]]) -> Matched | None:
    """Find what inputs of different ranks recorded of the same collectives; None if no two ranks have any.

    Args:
        traces: the inputs.
        maps: for each the way of its clocks to trace time.
    """
    seen = recorded_collectives(traces, maps)
    if seen is None:
        return None
    numbered = numbered_collectives(seen)
    ordered, odd = _by_order(seen.where(seen.seq < 0), int(numbered.number[-1]) + 1 if len(numbered.number) else 0)
    every = Occurrences.joined((numbered, ordered))
    return Matched(every, tuple(np.unique(seen.rank).tolist()), len(seen.row) - len(every.row), tuple(odd))


# -- what an input recorded -------------------------------------------------------------------------------------------


def _recorded(trace: Trace, index: int, maps: Mapping[int, ClockMap], numbers: dict[Hashable, int]) -> Occurrences:
    """Return the collectives of an input whose group is known, and has more ranks than its own.

    Args:
        trace: the input.
        index: its number.
        maps: the way of its clocks to trace time.
        numbers: for things that can be told apart; a new one for each that it does not know.
    """
    declared, rank, slices = trace.collectives, trace.sources[0].rank, trace.slices
    assert declared is not None
    assert rank is not None
    clock_of_track = np.array([int(track.clock) for track in trace.tracks] or [0])
    rows = _rows(trace, declared)
    rows = rows[np.isin(clock_of_track[slices.track[rows]], list(maps))]
    told = list(_told(trace, declared, rows))
    size = trace.sources[0].world_size  # ranks of jobs of another size are of another job
    keys = _groups({one.group for one in told}, declared.groups, rank)
    groups = {group: numbers[size, key] for group, key in keys.items()}
    used = [i for i, one in enumerate(told) if one.kind and one.group in groups]
    rows = rows[used]
    clocks = clock_of_track[slices.track[rows]]
    start = on_trace_time(slices.ts[rows], clocks, maps)
    end = on_trace_time(slices.ts[rows] + slices.dur[rows], clocks, maps)
    bounds = np.zeros(len(trace.clocks), np.int64)
    for clock, way in maps.items():
        within = UNSTATED_BOUND_NS if way.bound_in_step_ns is None else way.bound_in_step_ns
        bounds[clock] = within + trace.clocks[clock].resolution_ns
    chosen = [told[i] for i in used]
    same = np.ones(len(rows), np.int64)
    kinds = [(numbers["kind", one.kind], numbers["what", one.kind, one.sizes]) for one in chosen]
    numbered = [(groups[one.group], *kind, one.seq) for one, kind in zip(chosen, kinds, strict=True)]
    columns = np.array(numbered, np.int64).reshape(-1, 4).T
    return Occurrences(same * 0, same * index, rows, same * rank, start, end, bounds[clocks], *columns)


def _rows(trace: Trace, declared: Collectives) -> I64:
    """Return which slices are declared, looked for a part at a time: there may be many slices."""
    slices, count = trace.slices, len(trace.strings)
    wanted = [name * count + category for name, category in declared.kinds]
    found = [np.zeros(0, np.int64)]
    for begin in range(0, len(slices.ts), _AT_ONCE):
        part = slice(begin, begin + _AT_ONCE)
        codes = slices.name[part].astype(np.int64) * count + slices.category[part]
        found.append(begin + np.flatnonzero(np.isin(codes, wanted)))
    return np.concatenate(found)


@dataclass(frozen=True, slots=True)
class _GroupStated:
    """A group as a process states it: its ranks, None if it does not; what it is for; its name in this process."""

    ranks: Group | None
    about: str
    name: str


@dataclass(frozen=True, slots=True)
class _Told:
    """What name and args tell of a collective: "" for a kind that is not meant, -1 for no number."""

    kind: str
    group: _GroupStated
    sizes: tuple[str, ...]
    seq: int


def _told(trace: Trace, declared: Collectives, rows: I64) -> Iterator[_Told]:
    """Yield what is known of each of some slices.

    Of a category of which some slices tell their group, those that do not may be of any.
    """
    decode = _decoder(declared.args)
    slices = trace.slices
    places = zip(slices.args_at[rows].tolist(), slices.args_len[rows].tolist(), strict=True)
    args = [decode(trace.args.get(at, size)) if size else {} for at, size in places]
    categories = slices.category[rows].tolist()
    telling = {category for category, one in zip(categories, args, strict=True) if _tells(one)}
    names = slices.name[rows].tolist()
    groups: dict[str, _GroupStated] = {}
    for name, category, one in zip(names, categories, args, strict=True):
        silent = category in telling and not _tells(one)
        kind = declared.kinds[name, category] or declared.said.get(str(one.get("kind", "")), "")
        key = " ".join(str(one.get(part, "")) for part in ("ranks", "group", "about", "group_size"))
        if key not in groups:
            groups[key] = _group(one, declared)
        sizes = (trace.strings[name], *(str(one.get(part)) for part in one if part.startswith("size")))
        seq = one.get("seq")
        number = seq if isinstance(seq, int) and not isinstance(seq, bool) and 0 <= seq < 2**62 else -1
        yield _Told("" if silent else kind, groups[key], sizes, number)


def _tells(args: Mapping[str, Any]) -> bool:
    return any(part in args for part in ("ranks", "group", "group_size", "kind"))


def _decoder(args: CollectiveArgs) -> Any:
    """Return what decodes args to the members that matter, by what they are called here."""
    names = {"kind": args.kind, "ranks": args.ranks, "group": args.group, "about": args.about, "seq": args.seq}
    names |= {"group_size": args.group_size} | {f"size{number}": size for number, size in enumerate(args.sizes)}
    names = {part: name for part, name in names.items() if name}
    members = [(part, Any, msgspec.UNSET) for part in names]
    decode = msgspec.json.Decoder(msgspec.defstruct("Args", members, rename=names)).decode

    def members_of(raw: bytes) -> dict[str, Any]:
        try:
            one = decode(raw)
        except (msgspec.MsgspecError, RecursionError):
            return {}
        found = ((part, getattr(one, part)) for part in names)
        return {part: value for part, value in found if value is not msgspec.UNSET}

    return members_of


def _group(args: Mapping[str, Any], declared: Collectives) -> _GroupStated:
    """Return the group that args state."""
    name, size = str(args.get("group", "")), args.get("group_size")
    ranks = parse_ranks(args.get("ranks")) or declared.groups.get(name)
    if ranks is None:
        ranks = declared.world if declared.world and size == len(declared.world) else declared.only_group
    if ranks is not None and size is not None and size != len(ranks):
        ranks = None
    return _GroupStated(ranks, str(args.get("about", "")), name)


def _groups(stated: Set[_GroupStated], declared: Mapping[str, Group], rank: int) -> dict[_GroupStated, Hashable]:
    """Return the key of each known group of a process from others, and is the same in all of its processes.

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
    found: dict[_GroupStated, Hashable] = {}
    for (ranks, about), names in names_of.items():
        listed = of_ranks.get(ranks, [])
        for name in names:
            key: Hashable = (ranks, about, name, "of rank", rank)
            if name in listed:
                key = (ranks, about, listed.index(name), len(listed))
            elif len(names) == 1 and not (name and listed):
                key = (ranks, about, 0, 1)
            found[_GroupStated(ranks, about, name)] = key
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

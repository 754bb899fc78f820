"""Check that the collectives of several ranks are possible as drawn, and conclude which clocks are wrong if not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from msgspec import structs

from traceconv.align.checks import Breaches, Check, Contradiction, Rule
from traceconv.align.collective_matching import Matched
from traceconv.align.collective_order import Odd
from traceconv.align.collectives import Impossible, Occurrences
from traceconv.align.messages import Message, Text
from traceconv.model.clocks import NO_BOUND_NS, Verdict
from traceconv.model.stated_collectives import Side
from traceconv.model.trace import Trace

if TYPE_CHECKING:
    from traceconv.align import Alignment

#: A proposed offset is the roundest of at most this many that make all collectives possible.
_MOST_STEPS = 20
#: Of two inputs that contradict each other, the wrong one is found by comparison with at most this many others. Not
#: tuned.
_MOST_ASKED = 16


def check_of_ranks(traces: Sequence[Trace], alignment: Alignment, matched: Matched) -> list[Check]:
    """Return a check of all collectives that inputs of several ranks recorded.

    Args:
        traces: the inputs.
        alignment: the maps of their clocks to trace time.
        matched: the matched collectives of their ranks.
    """
    seen = matched.checked
    inputs = np.unique(seen.input).tolist() or [index for index, trace in enumerate(traces) if trace.collectives]
    files = tuple(dict.fromkeys(traces[index].sources[0].name for index in inputs))
    ranks = tuple(np.unique(seen.rank).tolist()) or matched.ranks
    related = Hosts(alignment)
    wrong = related.impossible(seen)
    after = Breaches(0, 0)
    # these first: they may be the reason why hosts are not placed
    checks = [_of_odd(traces, related, odd) for odd in matched.odd]
    if wrong:
        count = len(np.unique(np.concatenate([one.numbers for one in wrong])))
        worst = max(wrong, key=lambda one: one.worst_ns)
        after = Breaches(count, worst.worst_ns, _place(traces, worst))
        checks += _contradictions(traces, related, seen)
    contradictions = tuple(checks)
    return [
        Check(
            Rule.COLLECTIVE, files, seen.count, after, ranks=ranks, alone=matched.alone, contradictions=contradictions
        )
    ]


def _place(traces: Sequence[Trace], wrong: Impossible) -> Message:
    """Return the worst collective in words: the positions of its first exit and its last entry."""
    seen, rows = wrong.of, (wrong.early[0], wrong.late[0])
    sides = [(traces[seen.input[row]], int(seen.row[row]), int(seen.rank[row])) for row in rows]
    (early, row, left), (_, _, entered) = sides
    name = early.strings[early.slices.name[row]].partition("(")[0]
    there = [trace.place(int(trace.slices.track[at]), int(trace.slices.origin[at])) for trace, at, _ in sides]
    return Text.LEFT_BEFORE_ENTERED(left=left, name=name, entered=entered, early=there[0], late=there[1])


class Hosts:
    """The inputs whose clocks are related within their bounds: those of one host, and placed hosts.

    Attributes:
        of: for each input the host that it is placed with by a wall clock that is assumed to be right; "" for none.
        users: for each input whether the user placed it.
    """

    def __init__(self, alignment: Alignment) -> None:
        self.of = alignment.apart
        self.users = np.array(
            [any(clock_map.by_user for clock_map in maps_of.values()) for maps_of in alignment.maps], bool
        )
        numbers = {host: number for number, host in enumerate(dict.fromkeys(self.of))}
        self._host = np.array([numbers[host] for host in self.of], np.int64)

    def impossible(self, records: Occurrences) -> list[Impossible]:
        """Return the impossible collectives within each host, then those between hosts; empty sets are left out."""
        host = self._host[records.input]
        within = [records.where(host == number).impossible() for number in np.unique(host).tolist()]
        # Two hosts have no known bound: errors beyond those of the two profilers are reported.
        between = replace(records, bound=records.bound // 2).impossible()
        between = between.where(host[between.early] != host[between.late])
        return [one for one in (*within, between) if one.count]

    def are_apart(self, one: int, other: int) -> bool:
        """Return whether two inputs have wall clocks of different hosts."""
        return self.of[one] != self.of[other]


def _contradictions(traces: Sequence[Trace], related: Hosts, records: Occurrences) -> Iterator[Contradiction]:
    """Yield the contradictions from impossible collectives: against clocks of one host, of two hosts, or of the user.

    Clocks of one host, and clocks that are related within a bound, are wrong then. For two hosts, the assumption is
    wrong that they agree.
    """
    for wrong in related.impossible(records.where(~related.users[records.input])):
        first, second = _inputs(wrong, records)
        if related.are_apart(first, second):
            doubted = {related.of[index] for index in (first, second)} - {""}
            last = second if related.of[second] else first
            inputs = [index for index, host in enumerate(related.of) if host in doubted and index != last]
            yield _contradiction(traces, wrong, records, Verdict.UNVERIFIED, (*inputs, last), hosts=True)
        else:
            yield _contradiction(traces, wrong, records, Verdict.INCONSISTENT, (first, second))
    for wrong in related.impossible(records):
        placed = tuple(index for index in _inputs(wrong, records) if related.users[index])
        if placed:
            yield _contradiction(traces, wrong, records, Verdict.ASSUMED, placed)


def _of_odd(traces: Sequence[Trace], related: Hosts, odd: Odd) -> Contradiction:
    """Return the contradiction for two ranks with equal sequences that fit in no way.

    Either records are missing, so that nothing is known of the clocks, or a clock was set. If a single step explains
    all, the clock was set. Clocks of two hosts are doubted in both cases.
    """
    pair = _inputs(odd.wrong, odd.wrong.of)
    placed = tuple(index for index in pair if related.users[index])
    set_by = odd.set_by_ns
    why = Text.NO_OFFSET_EXPLAINS() if set_by is None else Text.ONE_CLOCK_WAS_SET(by=set_by)
    doubted = set_by is not None or related.are_apart(*pair)
    verdict = Verdict.UNVERIFIED if doubted and not placed else Verdict.ASSUMED
    contradiction = _contradiction(traces, odd.wrong, odd.wrong.of, verdict, placed or pair)
    return structs.replace(contradiction, text=Text.BECAUSE(text=contradiction.text, why=why))


def _inputs(wrong: Impossible, records: Occurrences) -> tuple[int, int]:
    """Return the two inputs that contradict each other most; the one that also contradicts more others comes last."""
    first, second = sorted(int(wrong.of.input[row]) for row in (wrong.early[0], wrong.late[0]))
    others = np.setdiff1d(records.input, (first, second))[:_MOST_ASKED].tolist()
    against = [
        sum(records.where(np.isin(records.input, (one, other))).impossible().count > 0 for other in others)
        for one in (first, second)
    ]
    return (second, first) if against[0] > against[1] else (first, second)


def _contradiction(
    traces: Sequence[Trace],
    wrong: Impossible,
    records: Occurrences,
    verdict: Verdict,
    inputs: tuple[int, ...],
    *,
    hosts: bool = False,
) -> Contradiction:
    """Return the contradiction, which names the last of `inputs`, with a hint.

    Args:
        traces: the inputs.
        wrong: the impossible collectives.
        records: all compared records.
        verdict: the verdict on the clocks of `inputs`.
        inputs: the last one is one of the two that contradict each other most.
        hosts: whether it is about the wall clocks of two hosts.
    """
    first, second = _inputs(wrong, records)
    names = [trace.sources[0].name for trace in traces]
    other = names[first if inputs[-1] == second else second]
    clocks = (Text.WALL_CLOCKS_TAKEN_FOR_ONE if hosts else Text.CLOCKS_OF_BOTH)(other=other)
    place, worst = _place(traces, wrong), wrong.worst_ns
    text = Text.COLLECTIVES_CONTRADICT(clocks=clocks, count=wrong.count, all=wrong.of.count, worst=worst, place=place)
    return Contradiction(verdict, inputs, names[inputs[-1]], text, _hint(wrong.of, first, second, names))


def _hint(records: Occurrences, first: int, second: int, names: Sequence[str]) -> Message:
    """Return the hint for two inputs that contradict each other.

    It proposes an offset of the second one that makes all of their collectives possible, if there is one. It says
    nothing of third inputs, which may contradict both.
    """
    stay = Text.LEAVE_IT(name=names[second])
    pair = records.where(np.isin(records.input, (first, second)))
    both = np.bincount(pair.number)[pair.number] == 2 if len(pair.number) else np.zeros(0, bool)
    pair = pair.where(both)
    one, other = pair.where(pair.input == first), pair.where(pair.input == second)
    behind = (one.side != Side.END) & (other.side != Side.START)
    ahead = (one.side != Side.START) & (other.side != Side.END)
    least = int(np.max((one.start - other.end)[behind], initial=-NO_BOUND_NS))
    most = int(np.min((one.end - other.start)[ahead], initial=NO_BOUND_NS))
    if least > most or least == -NO_BOUND_NS or most == NO_BOUND_NS:
        return stay
    return Text.MOVE_IT_OR_LEAVE_IT(name=names[second], other=names[first], move=_short(least, most), leave=stay)


def _short(least: int, most: int) -> int:
    """Return a time between two others (ns), near their middle, with few digits."""
    middle, step = (least + most) // 2, 1
    while most - least > _MOST_STEPS * step:
        step *= 10
    short = (middle + step // 2) // step * step
    return short if least <= short <= most else middle

"""Whether the collectives of several ranks can have happened as drawn, and what it says against clocks if not."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from traceconv.align.causality import Breaches, Check, Contradiction, Rule
from traceconv.align.collectives import Impossible, Mask, Matched, Occurrences, match_collectives
from traceconv.clocks import Verdict
from traceconv.ir.trace import Trace
from traceconv.times import format_option, format_short

if TYPE_CHECKING:
    from traceconv.align import Alignment


def check_of_ranks(traces: Sequence[Trace], alignment: Alignment) -> list[Check]:
    """A check of all collectives that inputs of several ranks recorded; none if there are none.

    Args:
        traces: the inputs.
        alignment: how they are put on one time axis.
    """
    matched = match_collectives(traces, alignment.maps)
    if matched is None:
        return []
    seen = matched.occurrences
    files = tuple(dict.fromkeys(traces[index].sources[0].name for index in np.unique(seen.input).tolist()))
    ranks = tuple(np.unique(seen.rank).tolist()) or matched.ranks
    wrong = seen.impossible()
    place = _place(traces, seen, wrong) if wrong.count else ""
    found = tuple(_contradictions(traces, alignment, matched)) if wrong.count else ()
    after = Breaches(wrong.count, wrong.worst_ns, place)
    files = files or tuple(trace.sources[0].name for trace in traces if trace.collectives)
    return [Check(Rule.COLLECTIVE, files, seen.count, after, ranks=ranks, alone=matched.alone, contradictions=found)]


def _place(traces: Sequence[Trace], seen: Occurrences, wrong: Impossible) -> str:
    """Which collective was left before it was entered, and where both stand."""
    rows = (wrong.early, wrong.late)
    sides = [(traces[seen.input[row]], int(seen.row[row]), int(seen.rank[row])) for row in rows]
    (early, row, left), (_, _, entered) = sides
    name = early.strings[early.slices.name[row]]
    there = [trace.place(int(trace.slices.track[at]), int(trace.slices.origin[at])) for trace, at, _ in sides]
    return f"rank {left} left {name!r} before rank {entered} entered it: {there[0]}, {there[1]}"


def _contradictions(traces: Sequence[Trace], alignment: Alignment, matched: Matched) -> Iterator[Contradiction]:
    """What impossible collectives say against the clocks: of one host, of two hosts, or against the user.

    Clocks of one host, and such that are related within a bound, are wrong then. Of those of two hosts it was assumed
    that they agree.
    """
    seen = matched.occurrences
    users = np.array([any(way.by_user for way in found.values()) for found in alignment.maps])
    apart = [any(way.two_hosts for way in found.values()) for found in alignment.maps]
    hosts = [host if alone else "" for host, alone in zip(alignment.hosts, apart, strict=True)]
    numbers = {host: number for number, host in enumerate(dict.fromkeys(hosts))}
    host_of = np.array([numbers[host] for host in hosts])[seen.input]
    free: Mask = ~users[seen.input]
    for number in numbers.values():
        for pair, words in _against(traces, seen.where(free & (host_of == number)), "their clocks"):
            yield Contradiction(Verdict.INCONSISTENT, pair, *words)
    for pair, words in _against(traces, seen.where(free), "the wall clocks of their hosts, taken for one,"):
        doubted = {hosts[index] for index in pair} - {""}
        if hosts[pair[0]] != hosts[pair[1]]:
            of_hosts = (index for index, host in enumerate(hosts) if host in doubted and not users[index])
            one_machine = f"{words[1]}; --same-machine says that both hosts are one"
            yield Contradiction(Verdict.UNVERIFIED, tuple(of_hosts), words[0], one_machine)
    for pair, words in _against(traces, seen, "their clocks"):
        placed = tuple(index for index in pair if users[index])
        if placed:
            yield Contradiction(Verdict.ASSUMED, placed, *words)


def _against(
    traces: Sequence[Trace], seen: Occurrences, clocks: str
) -> Iterator[tuple[tuple[int, int], tuple[str, str]]]:
    """If anything is impossible among some collectives: the two inputs, what is wrong, and what can be done."""
    wrong = seen.impossible()
    if not wrong.count:
        return
    first, second = sorted(int(seen.input[row]) for row in (wrong.early, wrong.late))
    names = [traces[index].sources[0].name for index in (first, second)]
    text = (
        f"{names[0]} and {names[1]}: {clocks} contradict their collectives: {wrong.count} of {seen.count} cannot have "
        f"happened as drawn, by up to {format_short(wrong.worst_ns)} ({_place(traces, seen, wrong)})"
    )
    yield (first, second), (text, _hint(seen, first, second, names[1]))


def _hint(seen: Occurrences, first: int, second: int, name: str) -> str:
    """What can be done: the move of the second of two inputs that lets all of their collectives happen, if one does."""
    file = shlex.quote(name)
    stay = f"--offset {file}=0ns leaves it where it is, and --on-ambiguous best all files"
    pair = seen.where(np.isin(seen.input, (first, second)))
    both = np.bincount(pair.number)[pair.number] == 2 if len(pair.number) else np.zeros(0, bool)
    pair = pair.where(both)
    one, other = pair.where(pair.input == first), pair.where(pair.input == second)
    least = int(np.max(one.start - other.end, initial=-(2**62)))
    most = int(np.min(one.end - other.start, initial=2**62))
    if least > most or not len(one.number):
        return stay
    middle = _short(least, most)
    return f"--offset {file}={format_option(middle)} lets all of them happen; {stay}"


def _short(least: int, most: int) -> int:
    """A time between two others, near to the middle, with few digits."""
    middle, step = (least + most) // 2, 1
    while most - least > 20 * step:
        step *= 10
    short = (middle + step // 2) // step * step
    return short if least <= short <= most else middle

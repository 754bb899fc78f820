"""Whether everything that is known about the clocks of several inputs agrees, and what is made of it if it does not."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from traceconv.align.ladder import PairEstimate, Side, estimate_pair
from traceconv.align.names import NameMap
from traceconv.align.network import Edge, Loop, Solution, solve
from traceconv.align.sequences import LEAST_MARGIN, METHOD
from traceconv.clocks import ClockDomain, ClockGraph, ClockMap, Verdict
from traceconv.errors import InconsistentClocks
from traceconv.times import earlier_or_later, format_option, format_time

#: Files are not contradicted by traces with more slices: it would cost too much to find nothing, nearly always.
_MOST_SLICES = 50_000
#: Files are not contradicted for less than this, nor for less than so many times their bound.
_LEAST_CONTRADICTION_NS = 1_000_000
_CONTRADICTED_BOUNDS = 10
#: A relation that is assumed within less than this is the exact word of somebody, not a guess.
LEAST_GUESS_NS = 100_000

#: How far from the word of the user events are looked for that fit in several places.
_NEAR_NS = (50_000, _LEAST_CONTRADICTION_NS)
#: An estimate lists no more rivals than this.
_ALL_RIVALS = 10

Placed = tuple[ClockDomain, Side]


@dataclass(frozen=True, slots=True)
class Accepted:
    """An estimate that traces are put together on: the numbers of its two clocks, and what it says."""

    a: int
    b: int
    pair: PairEstimate


def relate_all(
    sides: Sequence[Placed],
    accepted: Sequence[Accepted],
    graph: ClockGraph,
    target: ClockDomain,
    overruled: set[int],
) -> None:
    """Add what the events say to the graph, after a check against each other and against the files.

    Args:
        sides: the clocks.
        accepted: what their events say.
        graph: what files and user say; the estimates are added.
        target: the clock that all shall be put on.
        overruled: clocks whose place was only assumed, and wrongly.

    Raises:
        InconsistentClocks: it contradicts itself, and it is not clear which estimate is wrong.
    """
    edges = [*_declared(sides, graph, target, overruled), *(_edge(one) for one in accepted)]
    first = len(edges) - len(accepted)
    solution = solve(range(len(sides)), edges, len(sides))
    if solution.verdict is Verdict.INCONSISTENT:
        raise _inconsistent(solution, sides, target, [one.pair for one in accepted])
    for number in solution.dropped:
        if number < first:
            note_overruled(sides[edges[number].a][1], edges[number].way, solution.worst.misclosure_ns)
        else:
            _note_dropped(accepted[number - first], solution.worst)
    kept = [one for row, one in enumerate(accepted, first) if row not in solution.dropped]
    for one in kept:
        if not solution.loops or one.a not in solution.maps:
            graph.relate(sides[one.a][0], sides[one.b][0], one.pair.way, one.pair.back)
    if solution.loops:
        for number in {number for one in kept for number in (one.a, one.b)} & set(solution.maps):
            graph.relate(sides[number][0], target, solution.maps[number])


def _declared(sides: Sequence[Placed], graph: ClockGraph, target: ClockDomain, overruled: set[int]) -> list[Edge]:
    """What files and user say, as few edges as it takes: one for each clock but the first of those that are related."""
    edges: list[Edge] = []
    placed: set[int] = set(overruled)
    for root, domain in [(len(sides), target), *((number, domain) for number, (domain, _) in enumerate(sides))]:
        if root in placed:
            continue
        placed.add(root)
        known = graph.maps_to(domain)
        for number, (other, side) in enumerate(sides):
            if number not in placed and other in known:
                placed.add(number)
                way = known[other]
                edges.append(Edge(number, root, way, side.span(), way.by_user or way.verdict is Verdict.OK))
    return edges


def _edge(one: Accepted) -> Edge:
    return Edge(one.a, one.b, one.pair.way, one.pair.a.span(), back_way=one.pair.back)


def _inconsistent(
    solution: Solution, sides: Sequence[Placed], target: ClockDomain, pairs: Sequence[PairEstimate]
) -> InconsistentClocks:
    """Which loop does not close, and by how much."""
    loop = solution.worst
    names = [sides[number][1].name if number < len(sides) else target.name for number in loop.clocks]
    files = list(dict.fromkeys(name for name, number in zip(names, loop.clocks, strict=True) if number < len(sides)))
    return InconsistentClocks(
        f"the clocks of {', '.join(files)} contradict each other: a time that is taken from one to the next, "
        f"{' -> '.join(names)}, comes back {format_time(abs(loop.misclosure_ns))} off, and at most "
        f"{format_time(loop.bound_ns)} are possible",
        hint=f"one of these relations is wrong, and nothing tells which: leave a file out, or say where one belongs, "
        f"for instance --offset {PurePath(files[-1]).name}=TIME",
        pairs=pairs,
    )


def _note_dropped(one: Accepted, loop: Loop) -> None:
    note = (
        f"the events of {one.pair.a.name} and {one.pair.b.name} alone would put them "
        f"{format_time(abs(loop.misclosure_ns))} from where all others put them, and were left out"
    )
    for side in (one.pair.a, one.pair.b):
        notes = side.trace.sources[0].notes
        if note not in notes:
            notes.append(note)


def contradiction(a: Side, b: Side, known: ClockMap, names: NameMap) -> PairEstimate | None:
    """What the events say, if it is certain and far from what files say; None otherwise.

    Files are believed unless the two traces overlap in time as the files have it, and yet their events do not fit at
    all there, but fit for certain somewhere else. What was only guessed, and so has a wide bound, is overruled wherever
    it puts them; what the user says to the point is not.
    """
    if known.bound_ns is None or max(len(side.trace.slices.ts) for side in (a, b)) > _MOST_SLICES:
        return None
    if not (_overlap(a, b, known) if known.verdict is Verdict.OK else _is_guess(known)):
        return None
    near = replace(known, bound_ns=max(known.bound_ns, _LEAST_CONTRADICTION_NS))
    there = estimate_pair(a, b, near, names)
    if there is None or there.estimate.method != METHOD or there.estimate.verdict is not Verdict.INSUFFICIENT:
        return None
    found = estimate_pair(a, b, None, names)
    if found is None or found.estimate.verdict is not Verdict.OK or found.estimate.margin < 2 * LEAST_MARGIN:
        return None
    apart = min(abs(found.way.at(ts) - known.at(ts)) for ts in a.span())
    least = _CONTRADICTED_BOUNDS * (known.bound_ns + found.bound_ns) + _LEAST_CONTRADICTION_NS
    return found if apart > least else None


def _is_guess(known: ClockMap) -> bool:
    return not known.by_user and known.uncertainty > LEAST_GUESS_NS


@dataclass(frozen=True, slots=True)
class Doubt:
    """What the events say against the word of the user.

    Attributes:
        pair: what they say.
        begin, end: by how much they would move clock a of it further, at its first and at its last time, ns.
        allowed: how much of that both leave open, ns; 0 if the events fit elsewhere, but in several places.
    """

    pair: PairEstimate
    begin: int
    end: int
    allowed: int

    def against(self, side: Side, offset: int | None) -> str:
        """The warning for one of the two clocks; `offset` is what --offset says of it, None if it does not."""
        is_a = side.key == self.pair.a.key
        moves = (self.begin, self.end) if is_a else (-self.begin, -self.end)
        other = self.pair.b if is_a else self.pair.a
        if not self.allowed:
            return f"its events and those of {other.name} do not fit each other here, but elsewhere, in several places"
        steady = abs(moves[1] - moves[0]) <= self.allowed
        words = [earlier_or_later(move) for move in (moves[:1] if steady else moves)]
        where = words[0] if steady else f"{words[0]} at its begin and {words[-1]} at its end"
        text = (
            f"its events and those of {other.name} say that it belongs {where} "
            f"({self.pair.estimate.matches} matches, within {format_time(self.allowed)})"
        )
        if offset is None or not steady:
            return text
        return f"{text}; --offset {shlex.quote(side.name)}={format_option(offset + moves[0])} would agree"


def doubt(a: Side, b: Side, said: ClockMap, names: NameMap, made: Sequence[PairEstimate] = ()) -> Doubt | None:
    """What the events say, if they are certain, and of something else than what the user says; None otherwise.

    Args:
        a, b: two clocks.
        said: from a to b, as the user has it.
        names: which names mean the same work.
        made: what was estimated before; it is not estimated again.
    """
    if max(len(side.trace.slices.ts) for side in (a, b)) > _MOST_SLICES:
        return None
    keys = [a.key, b.key]
    known = [one for one in made if [one.a.key, one.b.key] == keys]
    found = known[0] if known else estimate_pair(a, b, None, names)
    if found is None:
        return None
    steps = sum(side.trace.clocks[side.clock].resolution_ns for side in (a, b))
    left_open = (said.bound_ns or 0) + steps
    if found.estimate.verdict is not Verdict.OK:
        near = [pair for within in _NEAR_NS if (pair := _near(a, b, said, names, within)) is not None]
        fits = [pair for pair in near if pair.estimate.verdict is Verdict.OK]
        if not fits:
            elsewhere = found.estimate.verdict is Verdict.AMBIGUOUS and found.estimate.method == METHOD
            return (
                Doubt(found, 0, 0, 0) if elsewhere and not any(_fits(pair, said, left_open) for pair in near) else None
            )
        found = fits[0]
    if found.way.bound_ns is None:
        return None
    begin, end = (found.way.at(ts) - said.at(ts) for ts in a.span())
    allowed = found.way.bound_ns + left_open
    return Doubt(found, begin, end, allowed) if max(abs(begin), abs(end)) > allowed else None


def _fits(pair: PairEstimate, said: ClockMap, left_open: int) -> bool:
    """Whether one of the places of an estimate, which is not certain of any, is that of the user."""
    if pair.estimate.verdict is Verdict.INSUFFICIENT:
        return False
    if len(pair.estimate.rivals) >= _ALL_RIVALS:
        return True  # there may be more than are listed
    begin = pair.a.span()[0]
    apart, sign = pair.way.at(begin) - said.at(begin), -1 if pair.turned else 1
    places = [apart, *(apart + sign * offset for offset in pair.rival_offsets())]
    return any(abs(place) <= left_open + (pair.way.bound_ns or _LEAST_CONTRADICTION_NS) for place in places)


def _near(a: Side, b: Side, said: ClockMap, names: NameMap, within_ns: int) -> PairEstimate | None:
    return estimate_pair(a, b, replace(said, bound_ns=max(said.bound_ns or 0, within_ns)), names)


def contradicted(pair: PairEstimate, known: ClockMap) -> InconsistentClocks:
    """What is said about two files whose events contradict their clocks."""
    apart = pair.way.at(pair.a.span()[0]) - known.at(pair.a.span()[0])
    return InconsistentClocks(
        f"{pair.a.name} and {pair.b.name}: their clocks ({known.method}) contradict their events: "
        f"{pair.estimate.matches} events fit if {pair.a.name} is moved by {format_time(apart)}, and they do not fit as "
        "it is",
        hint=f"--offset {shlex.quote(pair.a.name)}=0ns leaves it where it is; --offset {shlex.quote(pair.a.name)}="
        f"{format_option(apart)} believes the events",
        pairs=[pair],
    )


def note_overruled(side: Side, known: ClockMap, apart_ns: int) -> None:
    """Say on an input that its place was assumed, and that its events tell another one."""
    side.trace.sources[0].notes.append(
        f"{known.method}: its events say that this is {format_time(abs(apart_ns))} off, and they are believed"
    )


def _overlap(a: Side, b: Side, known: ClockMap) -> bool:
    """Whether the shorter of two traces lies in the other one by half, as files have it."""
    (first, last), (low, high) = a.span(), b.span()
    first, last = known.at(first), known.at(last)
    return 2 * (min(last, high) - max(first, low)) >= min(last - first, high - low)

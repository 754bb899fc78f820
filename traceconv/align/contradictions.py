"""Whether everything that is known about the clocks of several inputs agrees, and what is made of it if it does not."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from traceconv.align.constraints import Instant, Warnings
from traceconv.align.estimate import Method
from traceconv.align.launches import early_work
from traceconv.align.names import NameMap
from traceconv.align.network import UNSTATED_BOUND_NS, Edge, Loop, Solution, solve
from traceconv.align.non_overlapping import local_time_of, zone_behind, zone_text
from traceconv.align.select_estimator import PairEstimate, Side, estimate_pair, is_accepted, stated_outer
from traceconv.align.sequences import LEAST_MARGIN
from traceconv.clocks import ClockDomain, ClockGraph, ClockMap, Verdict
from traceconv.errors import InconsistentClocks
from traceconv.ir.trace import Layer
from traceconv.times import earlier_or_later, format_option, format_time

if TYPE_CHECKING:
    from traceconv.align import Policy

#: What files state is not held against estimates from traces with more slices: they would cost too much.
_MOST_SLICES = 50_000
#: What files state is not contradicted by activity for less than this, nor for less than so many times the bounds.
_LEAST_CONTRADICTION_NS = 1_000_000
_CONTRADICTED_BOUNDS = 10
#: Clocks that are related within this are left alone.
WELL_KNOWN_NS = 20_000

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
    warnings: Warnings,
) -> list[PairEstimate]:
    """Add what the events say to the graph, after a check against each other and against the files.

    Args:
        sides: the clocks.
        accepted: what their events say.
        graph: what files and user say; the estimates are added.
        target: the clock that all shall be put on.
        overruled: clocks whose place was only assumed, and wrongly.
        warnings: what is left out is said here.

    Returns:
        The estimates that are left out.

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
            side = sides[edges[number].a][1]
            warnings[side.key].append(_left_out(edges[number].way, solution.worst.misclosure_ns))
        else:
            _warn_of_dropped(accepted[number - first], solution.worst, warnings)
    for loop in solution.strained:
        _warn_of_strained(loop, sides, target, warnings)
    kept = [one for row, one in enumerate(accepted, first) if row not in solution.dropped]
    for one in kept:
        if not solution.loops or one.a not in solution.maps:
            graph.relate(sides[one.a][0], sides[one.b][0], one.pair.way, one.pair.back)
    if solution.loops:
        for number in {number for one in kept for number in (one.a, one.b)} & set(solution.maps):
            graph.relate(sides[number][0], target, solution.maps[number])
    return [accepted[row - first].pair for row in solution.dropped if row >= first]


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
            if number in placed or other not in known:
                continue
            placed.add(number)
            edges.append(_stated_edge(number, root, known[other], side))
            if known[other].two_hosts:
                # The others of that host are related to this one, by what is known of the clocks of one host.
                there = {one: way for one, way in graph.maps_to(other).items() if not way.two_hosts}
                same = [n for n, (one, _) in enumerate(sides) if n not in placed and one in there]
                edges += [_stated_edge(n, number, there[sides[n][0]], sides[n][1]) for n in same]
                placed.update(same)
    return edges


def _stated_edge(number: int, root: int, way: ClockMap, side: Side) -> Edge:
    return Edge(number, root, way, side.span(), way.by_user or way.verdict is Verdict.OK)


def _edge(one: Accepted) -> Edge:
    return Edge(one.a, one.b, one.pair.way, one.pair.a.span(), back_way=one.pair.back)


def _inconsistent(
    solution: Solution, sides: Sequence[Placed], target: ClockDomain, pairs: Sequence[PairEstimate]
) -> InconsistentClocks:
    """Which loop does not close, and by how much."""
    loop = solution.worst
    names = _names(loop, sides, target)
    files = list(dict.fromkeys(name for name, number in zip(names, loop.clocks, strict=True) if number < len(sides)))
    return InconsistentClocks(
        f"the clocks of {', '.join(files)} contradict each other: a time that is taken from one to the next, "
        f"{' -> '.join(names)}, comes back {format_time(abs(loop.misclosure_ns))} off, and at most "
        f"{format_time(loop.bound_ns)} are possible",
        hint=f"one of these relations is wrong, and nothing tells which: leave a file out, or say where one belongs, "
        f"for instance --offset {PurePath(files[-1]).name}=TIME",
        pairs=pairs,
    )


def _names(loop: Loop, sides: Sequence[Placed], target: ClockDomain) -> list[str]:
    """What a loop leads through."""
    return [sides[number][1].name if number < len(sides) else target.name for number in loop.clocks]


def _warn_of_strained(loop: Loop, sides: Sequence[Placed], target: ClockDomain, warnings: Warnings) -> None:
    text = (
        f"a time that is taken from one clock to the next, {' -> '.join(_names(loop, sides, target))}, comes back "
        f"{format_time(abs(loop.misclosure_ns))} off, where at most {format_time(loop.bound_ns)} are possible: one of "
        "these relations is less exact than it says"
    )
    for number in sorted({number for number in loop.clocks if number < len(sides)}):
        warnings[sides[number][1].key].append(text)


def _warn_of_dropped(one: Accepted, loop: Loop, warnings: Warnings) -> None:
    text = (
        f"the events of {one.pair.a.name} and {one.pair.b.name} alone would put them "
        f"{format_time(abs(loop.misclosure_ns))} from where all others put them, and were left out"
    )
    for side in (one.pair.a, one.pair.b):
        warnings[side.key].append(text)


def contradiction(
    a: Side, b: Side, known: ClockMap, policy: Policy, made: PairEstimate | None, warnings: Warnings
) -> PairEstimate | None:
    """What the events say, if it is certain and something else than what files say; None otherwise.

    The two must be further apart than the bounds of both allow. Against what a file states, activity counts only from
    far away, since its bound is a probable one. What the user says is not judged here.

    Args:
        a, b: two clocks.
        known: from a to b, as files have it.
        policy: which names mean the same work, and whether the user says that all is of one run.
        made: what the events said without anything known, where no bound is stated; else it is not looked at.
        warnings: gets one where the events fit elsewhere in several places, or hardly here, and where they were too
            many to compare.
    """
    names = policy.names
    stated = known.verdict is Verdict.OK
    if known.by_user or (known.bound_ns is None and not stated):
        return None
    if stated and known.bound_ns is not None and _too_many(a, b):
        if stated_outer(a, b) is None or Layer.DEVICE in (a.layer, b.layer):
            warnings[a.key].append(_not_compared(b))  # else the calls in operators are checked, in parts of the traces
        return None
    left_open = stated_bound(known) + _steps(a, b)
    found = made
    if known.bound_ns is not None:
        found = estimate_pair(a, b, replace(known, bound_ns=max(known.bound_ns, _LEAST_CONTRADICTION_NS)), names)
        if found is None or (found.estimate.verdict.refused and not _is_looked_for_elsewhere(found, stated=stated)):
            if stated and found is not None and _fits_elsewhere(found) and not _fits(found, known, left_open):
                warnings[a.key].append(_wrong_or_two_runs(b))
            return None
        if found.estimate.verdict.refused:
            found = estimate_pair(a, b, None, names)
            if stated and found is not None and _fits_elsewhere(found):
                warnings[a.key].append(_wrong_or_two_runs(b))
    if found is None or not _is_certain(found, stated=stated, same_run=policy.same_run):
        return None
    apart = min(abs(found.way.at(ts) - known.at(ts)) for ts in a.span())
    least = left_open + found.bound_ns
    if stated and found.estimate.method not in (Method.SEQUENCE, Method.LAUNCHES):
        least = _CONTRADICTED_BOUNDS * least + _LEAST_CONTRADICTION_NS
    return found if apart > least else None


def stated_bound(known: ClockMap) -> int:
    """How far off what files state of two clocks can be, ns; where they do not say, as much as for similar files."""
    return UNSTATED_BOUND_NS if known.bound_ns is None else known.bound_ns


def _too_many(a: Side, b: Side) -> bool:
    return max(len(side.trace.slices.ts) for side in (a, b)) > _MOST_SLICES


def _not_compared(other: Side) -> str:
    return (
        f"whether its clock is right was not checked by its events and those of {other.name}, since there are more "
        f"than {_MOST_SLICES} slices"
    )


def _several_places(other: Side) -> str:
    return f"its events and those of {other.name} do not fit each other here, but elsewhere, in several places"


def _wrong_or_two_runs(other: Side) -> str:
    return f"{_several_places(other)}: a clock is wrong, or they are of two runs"


def _is_looked_for_elsewhere(near: PairEstimate, *, stated: bool) -> bool:
    """Whether events that tell no place near to what files say may tell one far from it."""
    by_names = near.estimate.method is Method.SEQUENCE
    return near.estimate.verdict is Verdict.INSUFFICIENT if by_names else not stated


def _fits_elsewhere(found: PairEstimate) -> bool:
    return found.estimate.verdict is Verdict.AMBIGUOUS and found.estimate.method is Method.SEQUENCE


def _is_certain(found: PairEstimate, *, stated: bool, same_run: bool) -> bool:
    """Whether files are contradicted on it: what they state is refused then, but what was assumed is moved."""
    if not is_accepted(found.estimate, same_run=same_run):
        return False
    return stated or found.estimate.method is not Method.SEQUENCE or found.estimate.margin >= 2 * LEAST_MARGIN


def _stated_by(known: ClockMap) -> str:
    """Where it is known from how two clocks relate, each way once."""
    ways = dict.fromkeys(str(step.text) for step in known.steps)
    return ", then ".join(ways) or "by what both files say of their times"


def refuse_early_work(host: Side, device: Side, ways: tuple[ClockMap, ClockMap]) -> None:
    """Refuse what files state of two clocks if work of the one begins before the calls of the other one launched it.

    Args:
        host, device: the clock of the calls, and that of the work.
        ways: how both become times of one clock.

    Raises:
        InconsistentClocks: it does, by more than the files leave open.
    """
    known = ways[0].then(ways[1].inverse())
    if known.verdict is not Verdict.OK or known.by_user:
        return
    left_open = stated_bound(known) + _steps(host, device)
    early = early_work(host.trace, host.clock, device.trace, device.clock, ways)
    if early is None or not early.beyond(left_open):
        return
    file, move = shlex.quote(device.name), format_option(early.worst_ns)
    raise InconsistentClocks(
        f"{host.name} and {device.name}: their clocks ({_stated_by(known)}) contradict their events: "
        f"{early.describe()}, and at most {format_time(left_open)} are possible",
        hint=f"--offset {file}={move} lets none begin before its call; --offset {file}=0ns leaves it where it is",
    )


def early_work_doubt(host: Side, device: Side, ways: tuple[ClockMap, ClockMap]) -> str:
    """The warning if work begins before its calls, by more than is possible where the user put it; "" if not."""
    left_open = stated_bound(ways[0].then(ways[1].inverse())) + _steps(host, device)
    early = early_work(host.trace, host.clock, device.trace, device.clock, ways)
    if early is None or not early.beyond(left_open):
        return ""
    return f"the clocks of {host.name} and {device.name} contradict their events: {early.describe()}"


@dataclass(frozen=True, slots=True)
class Doubt:
    """What the events say against the word of the user.

    Attributes:
        pair: what they say.
        begin, end: by how much they would move clock a of it further, at its first and at its last time, ns.
        allowed: how much of that both leave open, ns; 0 if the events fit elsewhere, but in several places.
        weak: whether the events are not certain of it themselves.
    """

    pair: PairEstimate
    begin: int
    end: int
    allowed: int
    weak: bool = False

    def against(self, side: Side, offset: int | None) -> str:
        """The warning for one of the two clocks; `offset` is what --offset says of it, None if it does not."""
        is_a = side.key == self.pair.a.key
        moves = (self.begin, self.end) if is_a else (-self.begin, -self.end)
        other = self.pair.b if is_a else self.pair.a
        if not self.allowed:
            return _several_places(other)
        steady = abs(moves[1] - moves[0]) <= self.allowed
        words = [earlier_or_later(move) for move in (moves[:1] if steady else moves)]
        where = words[0] if steady else f"{words[0]} at its begin and {words[-1]} at its end"
        if self.weak:
            verdict = self.pair.estimate.verdict
            why = self.pair.estimate.reason
            return f"its events and those of {other.name} fit better {where}, though that is {verdict}: {why}"
        text = (
            f"its events and those of {other.name} say that it belongs {where} "
            f"({self.pair.estimate.matches} matches, within {format_time(self.allowed)})"
        )
        if offset is None or not steady:
            return text
        return f"{text}; --offset {shlex.quote(side.name)}={format_option(offset + moves[0])} would agree"


def doubt(
    a: Side,
    b: Side,
    said: ClockMap,
    names: NameMap,
    made: Sequence[PairEstimate] = (),
    instants: Sequence[Instant] = (),
) -> Doubt | None:
    """What the events say, if they are certain, and of something else than what the user says; None otherwise.

    Args:
        a, b: two clocks.
        said: from a to b, as the user has it.
        names: which names mean the same work.
        made: what was estimated before; it is not estimated again.
        instants: the anchors of the two clocks: there, what the user says is more exact than anywhere else.
    """
    if _too_many(a, b):
        return None
    keys = [a.key, b.key]
    # What was looked for near a wrong place says nothing of other places.
    known = [one for one in made if [one.a.key, one.b.key] == keys and (one.known is None or is_accepted(one.estimate))]
    found = known[0] if known else estimate_pair(a, b, None, names)
    if found is None:
        return None
    instants = [one for one in instants if [one.one, one.other] == keys]
    within = max((one.within_ns for one in instants), default=said.bound_ns or 0)
    left_open = within + _steps(a, b)
    if found.estimate.verdict is not Verdict.OK:
        near = [pair for within in _NEAR_NS if (pair := _near(a, b, said, names, within)) is not None]
        fits = [pair for pair in near if pair.estimate.verdict is Verdict.OK]
        if not fits:
            if found.estimate.verdict is Verdict.AMBIGUOUS and found.estimate.method is Method.SEQUENCE:
                return None if any(_fits(pair, said, left_open) for pair in near) else Doubt(found, 0, 0, 0)
            return _weak_doubt(found, said, left_open)
        found = fits[0]
    if found.way.bound_ns is None:
        return None
    begin, end = (found.way.at(ts) - said.at(ts) for ts in (_ends_of(instants) or a.span()))
    allowed = found.way.bound_ns + left_open
    return Doubt(found, begin, end, allowed) if max(abs(begin), abs(end)) > allowed else None


def _weak_doubt(found: PairEstimate, said: ClockMap, left_open: int) -> Doubt | None:
    """What events say that are not certain of any place, if the user's is none of those that they name."""
    weak = found.estimate.verdict in (Verdict.AMBIGUOUS, Verdict.UNVERIFIED) and found.estimate.matches > 0
    if not weak or _fits(found, said, left_open):
        return None
    begin, end = (found.way.at(ts) - said.at(ts) for ts in found.a.span())
    return Doubt(found, begin, end, left_open + (found.way.bound_ns or _LEAST_CONTRADICTION_NS), weak=True)


def _ends_of(instants: Sequence[Instant]) -> tuple[int, int] | None:
    """The first and the last of some anchors, on their first clock."""
    return (min(one.ts for one in instants), max(one.ts for one in instants)) if instants else None


def contradicts(pair: PairEstimate, instants: Sequence[Instant]) -> bool:
    """Whether what the events of two clocks say leaves an anchor of the two out."""
    sides = {pair.a.key: pair.a, pair.b.key: pair.b}
    return any(
        abs(pair.way.at(one.ts) - one.other_ts) > pair.bound_ns + one.within_ns + _steps(*sides.values())
        for one in instants
        if [one.one, one.other] == list(sides)
    )


def _steps(a: Side, b: Side) -> int:
    """How coarse the times of two clocks are, together, ns."""
    return sum(side.trace.clocks[side.clock].resolution_ns for side in (a, b))


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


def overrule(pair: PairEstimate, known: ClockMap, ways: Sequence[ClockMap], warnings: Warnings) -> Side:
    """Which of two clocks is not where its file puts it, since only the zone of its local time was guessed; says so.

    Args:
        pair: what the events are certain of.
        known: what files say, from a to b of the pair.
        ways: how the two were placed, in the order of the pair.
        warnings: gets one.

    Raises:
        InconsistentClocks: it is more than a zone.
    """
    apart = pair.way.at(pair.a.span()[0]) - known.at(pair.a.span()[0])
    assumed = [side for side, way in zip((pair.a, pair.b), ways, strict=True) if way.verdict is Verdict.ASSUMED]
    moves = [(side, apart if side is pair.a else -apart) for side in assumed or [pair.a]]
    zones = []
    for side, move in moves:
        local = local_time_of(side.trace, side.clock)
        zone = zone_behind(local, move, (known.bound_ns or 0) + pair.bound_ns) if local else None
        if local is None or zone is None:
            continue
        option = f"--tz {shlex.quote(side.name)}={zone_text(zone)}"
        if local.guessed:
            warnings[side.key].append(
                f"its local time was read as {zone_text(local.ahead_ns)}, but {pair.estimate.matches} events of it and "
                f"of {(pair.b if side is pair.a else pair.a).name} fit in {zone_text(zone)} only, and are believed: "
                f"{option} says so"
            )
            return side
        zones.append(option)
    raise _contradicted(pair, known, *moves[0], zones)


def _contradicted(
    pair: PairEstimate, known: ClockMap, side: Side, move: int, options: Sequence[str]
) -> InconsistentClocks:
    """What is said about two files whose events contradict their clocks; `move` would bring a side where they fit."""
    file = shlex.quote(side.name)
    settle = "".join(f"{option} would agree with the events; " for option in options)
    return InconsistentClocks(
        f"{pair.a.name} and {pair.b.name}: their clocks ({_stated_by(known)}) contradict their events: "
        f"{pair.estimate.matches} events fit if {side.name} is moved by {format_time(move)}, and they do not fit as it "
        "is",
        hint=f"{settle}--offset {file}={format_option(move)} believes the events; --offset {file}=0ns leaves it where "
        "it is; --anchor says of an event what it is in the other file",
        pairs=[pair],
    )


def _left_out(known: ClockMap, apart_ns: int) -> str:
    """What is said about a clock whose place was assumed where its events tell another one."""
    return f"{known.method}: its events say that this is {format_time(abs(apart_ns))} off, and they are believed"

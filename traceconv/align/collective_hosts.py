"""Estimate the offsets between the wall clocks of hosts from the collectives of their ranks.

Collectives with sequence numbers are matched by these, others by their order where it is certain. Collectives in which
all wait for all place hosts. Those with one-sided bounds only narrow the intervals, or contradict them. Hosts that the
user relates count as one host, and are placed together. Hosts of inputs that the user moves are not placed.

Hosts with enough common collectives, directly or through others, are an island: each is placed relative to the first
host of its island. The relation between islands is not known. A host whose recordings do not overlap in time with those
of the others, or whose ranks contradict each other, is left out of the island.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from itertools import combinations

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from traceconv.align.collective_matching import WALL_CLOCKS_AGREE_NS, ByOrder, Unsettled, ordered_collectives
from traceconv.align.collectives import (
    Mask,
    Occurrences,
    joined_numbers,
    numbered_collectives,
    one_sided_collectives,
    recorded_collectives,
)
from traceconv.align.constraints import KEEP_CLOCKS
from traceconv.align.domains import called
from traceconv.align.host_clocks import (
    NO_TIME,
    Ends,
    EndsOfTwo,
    HostIntervals,
    HostLines,
    ends_of_two,
    host_intervals,
    lines_of_hosts,
    map_of_host,
)
from traceconv.align.inputs import ClockInput, HostsApart, Inputs
from traceconv.errors import AlignmentError, AmbiguousAlignment, InconsistentClocks, UnverifiedAlignment
from traceconv.io.shown import counted, listed
from traceconv.model.clocks import HOSTS_DRIFT, IN_STEP, ClockDomain, ClockMap, Provenance, Step, Verdict
from traceconv.model.columns import I64
from traceconv.model.numbers import format_short
from traceconv.model.stated_collectives import Side
from traceconv.model.trace import Trace
from traceconv.model.track_table import processes

#: The fewest collectives that place a host: recordings of two runs of a job may have a few that fit by chance.
_LEAST = 8
#: Up to this many hosts, limits are reported for all pairs; beyond it, only against the first host.
_MOST_PAIRED = 16


class PlacedHost(Struct, frozen=True):
    """The placement of the wall clock of a host.

    Attributes:
        beside: the first host of its island.
        collectives, groups: the numbers of collectives and groups that place it.
    """

    beside: int
    clock_map: ClockMap
    collectives: int
    groups: int


class PlacedHosts(Struct, frozen=True):
    """The placements of the wall clocks of hosts.

    Attributes:
        hosts: the placed hosts by number; without the first host of each island, and those that are not certain.
        contradicting: the collectives that contradict each other, as in `HostIntervals`.
        apart: for pairs of hosts of an island: their numbers, the least and the greatest offset of the first, ns, and
            the number of common collectives.
        unsettled: inputs of hosts that were not placed, since the match of their collectives is not certain.
        torn: the hosts whose ranks contradict each other, so that they place nothing.
        uneven: two hosts, by number, whose ends are not those of one job with clocks that run evenly, what they show,
            and the collectives, in order, that were compared; None without such hosts.
    """

    hosts: dict[int, PlacedHost] = {}
    contradicting: tuple[tuple[int, int, int], ...] = ()
    records: Occurrences | None = None
    intervals: tuple[HostIntervals, ...] = ()
    apart: tuple[tuple[int, int, int, int, int], ...] = ()
    unsettled: tuple[Unsettled, ...] = ()
    torn: tuple[int, ...] = ()
    uneven: tuple[int, int, EndsOfTwo, I64] | None = None


def with_hosts_related(inputs: Inputs, *, leave_contradictions: bool = False) -> Inputs:
    """Return the inputs with the wall clocks of hosts related by their collectives.

    A host that an --offset moves stays there, unless collectives place it more exactly within the digits of the option.

    Args:
        leave_contradictions: whether to ignore collectives that contradict each other or are ambiguous, instead of
            raising an error.

    Raises:
        InconsistentClocks: no offsets of the hosts satisfy all collectives.
        AmbiguousAlignment: the collectives have no sequence numbers, and several offsets satisfy all of them.
        UnverifiedAlignment: the collectives have no sequence numbers, and no offset satisfies them, since recordings
            lack some.
    """
    if len(_hosts(inputs)) < 2:
        return inputs
    inputs = replace(inputs, collectives=recorded_collectives(inputs.traces, inputs.repeats, inputs.skews))
    roughly = _roughly_moved(inputs)
    while roughly:
        found = _with_hosts_related(_corrected(inputs, roughly), roughly, leave_contradictions=True)
        refined = {wall: offset for wall, offset in roughly.items() if _is_refined(found, wall, offset)}
        if len(refined) == len(roughly):
            return found
        roughly = refined
    return _with_hosts_related(inputs, {}, leave_contradictions=leave_contradictions)


def _roughly_moved(inputs: Inputs) -> dict[ClockDomain, ClockMap]:
    """Return the --offset of each host whose files all have the same one, with an uncertainty; not the first host."""
    first = next(iter(_hosts(inputs)), None)
    roughly: dict[ClockDomain, ClockMap] = {}
    for wall in dict.fromkeys(inputs.stated.walls):
        offset, *others = {clock.offset for clock in inputs.clocks if clock.wall == wall} or {None}
        fixed = wall in inputs.beside or wall == first or not wall.owner
        if offset is not None and not others and offset.bound_ns and not fixed:
            roughly[wall] = offset
    return roughly


def _corrected(inputs: Inputs, roughly: Mapping[ClockDomain, ClockMap]) -> Inputs:
    """Return the inputs with the offsets of some hosts as corrections of their times."""
    clocks = [
        replace(clock, correction=clock.correction.then(replace(roughly[clock.wall], bound_ns=0)), offset=None)
        if clock.wall in roughly
        else clock
        for clock in inputs.clocks
    ]
    return replace(inputs, clocks=clocks)


def _moved_by(inputs: Inputs, wall: ClockDomain) -> tuple[int, int]:
    """Return by how much corrections move the times of a host on its wall clock, at least and at most, ns."""
    clocks = [clock for clock in inputs.clocks if clock.wall == wall]
    moves = [corrected - recorded for recorded, corrected in _ends(inputs, wall, clocks)]
    return min(moves, default=0), max(moves, default=0)


def _ends(inputs: Inputs, wall: ClockDomain, clocks: Sequence[ClockInput]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last time of clocks on a wall clock, each as recorded and as corrected, ns."""
    maps = _on_host(inputs, wall)
    for clock in clocks:
        if clock.domain in maps:
            for ts in clock.span:
                yield maps[clock.domain].at(ts), maps[clock.domain].at(clock.correction.at(ts))


def _is_refined(inputs: Inputs, wall: ClockDomain, offset: ClockMap) -> bool:
    """Return whether collectives place a host more exactly than its --offset, and within its digits."""
    clock_map = inputs.graph.maps_to(inputs.beside[wall])[wall] if wall in inputs.beside else IN_STEP
    if clock_map.bound_ns is None or offset.bound_ns is None or clock_map.bound_ns >= offset.bound_ns:
        return False
    within, clocks = offset.bound_ns + clock_map.bound_ns, [clock for clock in inputs.clocks if clock.wall == wall]
    return all(abs(clock_map.at(ts) - ts) <= within for _, ts in _ends(inputs, wall, clocks))


def _with_hosts_related(
    inputs: Inputs, roughly: Mapping[ClockDomain, ClockMap], *, leave_contradictions: bool
) -> Inputs:
    """Return the inputs as `with_hosts_related` does."""
    hosts = _hosts(inputs)
    maps = _maps(inputs, hosts, roughly)
    seen = inputs.collectives.placed(maps) if inputs.collectives else None
    if seen is None:
        return inputs
    host_of = np.array([hosts.index(wall) if wall in hosts else -1 for wall in _firsts(inputs)])
    spans = _spans(inputs, hosts)
    room = np.array([(roughly[wall].bound_ns or 0) if wall in roughly else 0 for wall in hosts], np.int64)
    placed = placed_hosts(seen, host_of, spans, room)
    added = np.array([wall in inputs.beside for wall in inputs.stated.walls])
    torn = np.isin(host_of, placed.torn) & added
    if np.any(torn[seen.input]):  # the collectives contradict how the user relates these hosts: their first one counts
        seen = seen.where(~torn[seen.input])
        placed = placed_hosts(seen, host_of, spans, room)
    if not leave_contradictions:
        _refuse(inputs, placed, host_of)
    names = [called(wall, inputs.traces, inputs.stated.walls) for wall in hosts]
    islands = {number: host.beside for number, host in placed.hosts.items()}
    by_user = [any(clock_map.by_user for clock_map in maps_of.values()) for maps_of in maps]
    said = np.unique(host_of[seen.input[np.array(by_user)[seen.input]]]).tolist()
    doubted = {islands.get(host, host) for host in said}  # islands that rest on a statement of the user
    untied = set(host_of[_untied(inputs, seen)].tolist())
    moved = [_moved_by(inputs, wall) if wall in roughly else (0, 0) for wall in hosts]
    graph = inputs.graph.copy()
    for number, host in placed.hosts.items():
        first = hosts[host.beside]
        middle, of_first = (sum(moved[at]) // 2 for at in (number, host.beside))
        recorded = abs(host.clock_map.offset_ns + middle - of_first)
        taken = _taken(untied, number, host.beside)
        text = (
            f"{counted(host.collectives, 'collective')} of {counted(host.groups, 'group')}{taken}; its wall clock "
            f"and that of {names[host.beside]} are {format_short(recorded)} apart"
        )
        verdict = Verdict.ASSUMED if taken or host.beside in doubted else host.clock_map.verdict
        clock_map = replace(host.clock_map, steps=(Step(text, Provenance.ESTIMATED),), verdict=verdict)
        graph.relate_instead(hosts[number], first, clock_map)
        alone = np.unique(seen.input[host_of[seen.input] == number])
        if len(alone) == 1:  # the placed times are those of this input, with its bound
            known = _on_host(inputs, hosts[number])
            for domain in {clock.domain for clock in inputs.clocks_of(int(alone[0]))} & known.keys():
                graph.relate(domain, first, replace(known[domain].then(clock_map), bound_ns=clock_map.bound_ns))
    apart = [
        HostsApart(
            *(names[a], names[b], least - moved[a][1] + moved[b][0], most - moved[a][0] + moved[b][1], count),
            _taken(untied, a, b),
        )
        for a, b, least, most, count in placed.apart
    ]
    to = {hosts[number]: hosts[host.beside] for number, host in placed.hosts.items()}
    beside = {wall: to.get(first, first) for wall, first in inputs.beside.items()} | to
    return replace(inputs, graph=graph, hosts_apart=apart, beside=beside)


def _untied(inputs: Inputs, seen: Occurrences) -> list[int]:
    """Return the inputs with events of a host whose collectives ran on a device that no launch ties to that host."""
    found = []
    for index in np.unique(seen.input[seen.device > 0]).tolist():
        trace, of_input = inputs.traces[index], (seen.input == index) & (seen.device > 0)
        devices = np.unique(seen.device[of_input]) - 1
        of_host = ~np.isin(processes(trace.tracks)[trace.slices.track], devices)
        tied = {track for skews in inputs.skews[index].values() for track in skews}
        if not tied.issuperset(devices.tolist()) and bool(of_host.any()):
            found.append(index)
    return found


def _taken(untied: Set[int], *hosts: int) -> str:
    """Return what is assumed for hosts of which some have devices that nothing ties to them; "" for none."""
    return "" if untied.isdisjoint(hosts) else ", taking the clocks of devices for those of their hosts"


def _refuse(inputs: Inputs, placed: PlacedHosts, host_of: I64) -> None:
    """Raise the error for collectives that place no hosts, if there are such."""
    if placed.contradicting and placed.records is not None:
        raise _contradiction(inputs, placed.records, host_of, placed.contradicting)
    if placed.uneven and placed.records is not None:
        raise _uneven(inputs, placed.records, host_of, *placed.uneven)
    if placed.unsettled:
        raise _not_settled(inputs, placed.unsettled)


def placed_hosts(records: Occurrences, host_of: I64, spans: I64, room: I64 | None = None) -> PlacedHosts:
    """Return the placements of the wall clocks of hosts.

    Args:
        records: the collectives of their ranks, on the wall clocks of the hosts.
        spans: the first and the last time recorded on each host, ns.
        room: how far off the user says that each host may be drawn, ns; 0 for what no option moves.
    """
    room = np.zeros(spans.shape[1], np.int64) if room is None else room
    waiting = records.where(records.side == Side.BOTH)
    matched = numbered_collectives(waiting)
    if len(matched.row):
        return _placed(records, ByOrder(matched, False, ()), host_of, spans, room)
    ordered = ordered_collectives(waiting, host_of[waiting.input])
    if ordered.by_wall_clocks and np.max(room) > WALL_CLOCKS_AGREE_NS:  # as corrected by a rough option
        return PlacedHosts()
    placed = _placed(records, ordered, host_of, spans, room) if len(ordered.matches.row) else PlacedHosts()
    islands = {number: host.beside for number, host in placed.hosts.items()}
    unsettled = tuple(pair for pair in ordered.unsettled if _may_be_common(waiting, pair, host_of, islands))
    return placed if placed.contradicting or placed.uneven else replace(placed, unsettled=unsettled)


def _may_be_common(records: Occurrences, pair: Unsettled, host_of: I64, islands: Mapping[int, int]) -> bool:
    """Return whether two inputs recorded at one time on hosts of different islands."""
    side, other = (int(host_of[number]) for number in pair.inputs)
    if islands.get(side, side) == islands.get(other, other):
        return False
    sides = [records.where(records.input == number) for number in pair.inputs]
    return bool(max(np.min(side.start) for side in sides) < min(np.max(side.end) for side in sides))


def _placed(records: Occurrences, which: ByOrder, host_of: I64, spans: I64, room: I64) -> PlacedHosts:
    """Return the placements of the wall clocks of hosts from matched collectives."""
    found = joined_numbers(which.matches, one_sided_collectives(records))
    columns = columns_of_hosts(found, host_of[found.input], spans.shape[1])
    part = columns[0][: which.matches.number[-1] + 1] < NO_TIME
    torn = np.any((columns[0] > columns[1]) & (columns[0] < NO_TIME), axis=0)  # see `check_of_ranks`
    part &= ~torn
    part &= part.sum(axis=1, keepdims=True) > 1
    islands = _overlapping(part, columns[0][: len(part)], columns[1][: len(part)], room)
    placed = [_island(found, which, columns, part, used, host_of, spans) for used in islands]
    return PlacedHosts(
        {number: host for island in placed for number, host in island.hosts.items()},
        next((island.contradicting for island in placed if island.contradicting), ()),
        records=found,
        intervals=tuple(intervals for island in placed for intervals in island.intervals),
        apart=tuple(pair for island in placed for pair in island.apart),
        torn=tuple(np.flatnonzero(torn).tolist()),
        uneven=next((island.uneven for island in placed if island.uneven), None),
    )


def _island(
    found: Occurrences, which: ByOrder, columns: tuple[I64, I64], part: Mask, used: I64, host_of: I64, spans: I64
) -> PlacedHosts:
    """Return the placements of the wall clocks of the hosts of an island."""
    stated, exact = (
        columns_of_hosts(records, host_of[found.input], spans.shape[1])
        for records in (found.without_skews, found.exact)
    )
    lines = lines_of_hosts(stated[0][: len(part), used], stated[1][: len(part), used])
    uneven, edge_ns = _uneven_pair(which.matches, exact, part, used, lines)
    ends = lines.apply(spans[:, used])
    span = float(np.min(ends)), float(np.max(ends))

    def limits(entered: I64, left: I64, rate: float = HOSTS_DRIFT) -> HostIntervals:
        return host_intervals(lines.apply(entered[:, used]), lines.apply(left[:, used]), span, rate)

    intervals = limits(*columns)
    if intervals.contradicting and not (uneven and uneven[2].shown is Ends.STEEP):
        wrong = tuple((number, int(used[host]), int(used[other])) for number, host, other in intervals.contradicting)
        return PlacedHosts(contradicting=wrong)
    if uneven:
        return PlacedHosts() if uneven[2].shown is Ends.FEW else PlacedHosts(uneven=uneven)
    drawn, level = limits(*stated) if np.any(found.most) else None, limits(*exact, 0.0)
    hosts: dict[int, PlacedHost] = {}
    group_of = np.zeros(len(part), np.int64)
    group_of[which.matches.number] = which.matches.group
    collective, host = np.nonzero(part)
    groups = np.bincount(np.unique(np.stack((host, group_of[collective])), axis=1)[0], minlength=part.shape[1])
    for number, at in enumerate(used.tolist()):
        if number:
            clock_map = map_of_host(intervals, level, lines, number, drawn)
            clock_map = replace(clock_map, bound_ns=clock_map.stated_bound_ns + edge_ns)
            clock_map = replace(clock_map, verdict=Verdict.ASSUMED) if which.by_wall_clocks else clock_map
            hosts[at] = PlacedHost(int(used[0]), clock_map, int(np.sum(part[:, at])), int(groups[at]))
    return PlacedHosts(hosts, intervals=(intervals,), apart=tuple(_apart(intervals, lines, used, part[:, used])))


def _uneven_pair(
    matches: Occurrences, columns: tuple[I64, I64], part: Mask, used: I64, lines: HostLines
) -> tuple[tuple[int, int, EndsOfTwo, I64] | None, int]:
    """Return the first two hosts whose ends are not those of one job with even clocks, as in `PlacedHosts.uneven`.

    The second result is how far the first or the last few ends of any two are off, ns.
    """
    kinds = np.zeros(len(part), np.int64)
    kinds[matches.number] = matches.group * (int(np.max(matches.what)) + 1) + matches.what
    edge_ns, (entered, left) = 0.0, columns
    for pair in lines.pairs:
        host, other = (int(used[at]) for at in pair)
        common = np.flatnonzero(part[:, host] & part[:, other])
        common = common[np.argsort(left[common, host], kind="stable")]
        of_both = np.ix_(common, (host, other))
        found = ends_of_two(entered[of_both].T, left[of_both].T, kinds[common])
        if found.shown is not Ends.OF_ONE_JOB:
            return (host, other, found, common), 0
        edge_ns = max(edge_ns, found.edge_ns)
    return None, round(edge_ns)


def _apart(
    intervals: HostIntervals, lines: HostLines, used: I64, part: Mask
) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield the limits of the offset of each two hosts in the middle of the recordings; of many, to the first only."""
    middle = len(intervals.instants) // 2
    ahead = lines.ahead + np.round(lines.drift * intervals.instants[middle]).astype(np.int64)
    firsts = len(used) if len(used) <= _MOST_PAIRED else 1
    for host, other in combinations(range(len(used)), 2):
        if host >= firsts:
            break
        drawn = int(ahead[other] - ahead[host])
        if firsts == 1:  # for many hosts, the shortest paths between the others are not computed
            least, most = (drawn + int(limits[middle, other]) for limits in (intervals.least, intervals.most))
        else:
            least, most = drawn - int(intervals.between[host, other]), drawn + int(intervals.between[other, host])
        yield int(used[other]), int(used[host]), least, most, int(np.sum(part[:, host] & part[:, other]))


def _hosts(inputs: Inputs) -> list[ClockDomain]:
    """Return the wall clock of the first host of each group that the user relates; that of trace time comes first."""
    known = inputs.graph.maps_to(inputs.target)
    walls = list(dict.fromkeys(wall for wall in _firsts(inputs) if wall.owner and wall in known))
    first = [wall for wall in walls if not known[wall].two_hosts]
    return [*first[:1], *(wall for wall in walls if known[wall].two_hosts)] if first else []


def _firsts(inputs: Inputs) -> list[ClockDomain]:
    """Return for each input the wall clock of the first host of those that the user relates to its host."""
    return [inputs.beside.get(wall, wall) for wall in inputs.stated.walls]


def _maps(inputs: Inputs, hosts: Sequence[ClockDomain], roughly: Collection[ClockDomain]) -> list[dict[int, ClockMap]]:
    """Return for each input the maps of its clocks to the wall clock of its host; none for one that stays in place."""
    maps: list[dict[int, ClockMap]] = [{} for _ in inputs.traces]
    moved = {
        clock.key: clock.wall
        for clock in inputs.clocks
        if clock.offset is not None or (clock.correction.steps and clock.wall not in roughly)
    }
    firsts = _firsts(inputs)
    for wall in hosts:
        group = {host for host, first in zip(inputs.stated.walls, firsts, strict=True) if first == wall}
        if wall != hosts[0] and not group.isdisjoint(moved.values()):  # the group would be placed as a whole
            continue
        known = _on_host(inputs, wall)
        for clock in inputs.clocks:
            is_known = clock.domain in known and known[clock.domain].bound_ns is not None
            if clock.wall in group and clock.key not in moved and is_known:
                maps[clock.index][clock.clock] = clock.correction.then(known[clock.domain])
    return maps


def _on_host(inputs: Inputs, wall: ClockDomain) -> dict[ClockDomain, ClockMap]:
    """Return the maps to the wall clock of a host, for the clocks that files or options relate to it."""
    return inputs.graph.maps_to(wall, of_one_host=True)


def columns_of_hosts(records: Occurrences, host: I64, hosts: int) -> tuple[I64, I64]:
    """Return the earliest possible last entry and the latest possible first exit of the ranks of each host, ns.

    Only entries that others wait for, and exits of ranks that wait, are counted.
    """
    entered = np.full((int(np.max(records.number)) + 1, hosts), -NO_TIME)
    left = np.full(entered.shape, NO_TIME)
    starts, ends = records.side != Side.END, records.side != Side.START
    enters = records.start + records.least - records.bound
    leaves = records.end + records.most + records.bound
    np.maximum.at(entered, (records.number[starts], host[starts]), enters[starts])
    np.minimum.at(left, (records.number[ends], host[ends]), leaves[ends])
    entered[entered == -NO_TIME] = NO_TIME
    return entered, left


def _spans(inputs: Inputs, hosts: Sequence[ClockDomain]) -> I64:
    """Return the first and the last known time of the inputs of each host on its wall clock, ns."""
    spans = np.zeros((2, len(hosts)), np.int64)
    firsts = _firsts(inputs)
    for number, wall in enumerate(hosts):
        clocks = [clock for clock in inputs.clocks if firsts[clock.index] == wall]
        ends = [corrected for _, corrected in _ends(inputs, wall, clocks)]
        spans[:, number] = min(ends, default=0), max(ends, default=0)
    return spans


def _islands(part: Mask) -> Iterator[I64]:
    """Yield the hosts of each island of two or more hosts."""
    joined = part.T.astype(np.int64) @ part >= _LEAST
    left = np.ones(len(joined), bool)
    for first in range(len(joined)):
        reached = np.arange(len(joined)) == first
        while left[first] and np.any(joined[reached].any(axis=0) & ~reached):
            reached |= joined[reached].any(axis=0)
        if left[first] and reached.sum() > 1:
            yield np.flatnonzero(reached)
        left &= ~reached


def _overlapping(part: Mask, entered: I64, left: I64, room: I64) -> Iterator[I64]:
    """Yield the hosts of each island whose recordings overlap by their wall clocks: others may be of different runs."""
    for used in _islands(part):
        first = np.where(part[:, used], entered[:, used], NO_TIME).min(axis=0) - room[used]
        last = np.where(part[:, used], left[:, used], -NO_TIME).max(axis=0) + room[used]
        there = (first <= first[:, None]) & (first[:, None] < last)  # by instant, then host
        kept = there[int(np.argmax(there.sum(axis=1)))]
        if kept.all():
            yield used
        elif kept.any():
            for side in (kept, ~kept):
                yield from _overlapping(part & np.isin(np.arange(part.shape[1]), used[side]), entered, left, room)


def _contradiction(
    inputs: Inputs, records: Occurrences, host_of: I64, wrong: Sequence[tuple[int, int, int]]
) -> InconsistentClocks:
    """Return the error for collectives of two hosts that contradict each other."""
    named: list[str] = []
    used: set[int] = set()
    for number, host, other in wrong:
        rows, hosts = np.flatnonzero(records.number == number), host_of[records.input[records.number == number]]
        left = rows[(hosts == host) & (records.side[rows] != Side.START)]
        entered = rows[(hosts == other) & (records.side[rows] != Side.END)]
        early = int(left[np.argmin((records.end + records.bound)[left])])
        late = int(entered[np.argmax((records.start - records.bound)[entered])])
        used |= {int(records.input[early]), int(records.input[late])}
        (where, name), (there, _) = (
            _record(inputs.traces[records.input[row]], int(records.row[row])) for row in (early, late)
        )
        called = f"{name!r} number {int(records.seq[early])}" if records.seq[early] >= 0 else repr(name)
        named.append(
            f"{called} (rank {records.rank[early]} left it at {where}, rank {records.rank[late]} entered it at {there})"
        )
    text = (
        f"{_names(inputs, used)}: no offsets between their hosts make all their collectives possible; "
        f"{listed(named, ' and ')} contradict each other: a clock was set in between, records are wrong, or they are "
        "of different jobs"
    )
    return InconsistentClocks(text, hint=KEEP_CLOCKS)


def _uneven(
    inputs: Inputs, records: Occurrences, host_of: I64, first: int, second: int, found: EndsOfTwo, common: I64
) -> AlignmentError:
    """Return the error for two hosts whose ends are not those of one job with clocks that run evenly."""
    inputs_of = [np.unique(records.input[host_of[records.input] == host]).tolist() for host in (first, second)]
    error = UnverifiedAlignment if found.shown in (Ends.OF_NO_JOB, Ends.STEEP) else InconsistentClocks
    if found.shown is Ends.OF_NO_JOB:
        why = (
            "these may be records of different jobs, or of different collectives: the ranks of a job wait for each "
            f"other, and leave a collective together; here the ends scatter by {format_short(found.scatter_ns)}"
        )
    elif found.shown is Ends.STEEP:
        why = (
            f"by the ends of their collectives, the clocks of their hosts drift by {found.drift * 1e6:+.0f} ppm, "
            f"expected {HOSTS_DRIFT * 1e6:.0f} ppm at most: one is being slewed, or the records are of different jobs"
        )
    elif found.shown is Ends.UNEVEN:
        why = (
            "the ends of their collectives wander apart as those of no two clocks: a clock was set or slewed several "
            "times, or the records are of different jobs"
        )
    else:
        last = records.where((records.number == common[found.after]) & np.isin(records.input, inputs_of[1]))
        place, name = _record(inputs.traces[last.input[0]], int(last.row[0]))
        step = format_short(abs(found.step_ns))
        after = f"after {name!r} at {place}"
        why = f"by the ends of collectives, the clock of a host or device was set by {step} {after}"
    return error(f"{_names(inputs, {*inputs_of[0], *inputs_of[1]})}: {why}", hint=KEEP_CLOCKS)


def _record(trace: Trace, row: int) -> tuple[str, str]:
    """Return the position of a slice in its file, and its name without parameters."""
    return trace.place_of_slice(row), trace.strings[trace.slices.name[row]].partition("(")[0]


def _not_settled(inputs: Inputs, unsettled: Sequence[Unsettled]) -> AlignmentError:
    """Return the error for files whose collectives cannot be matched for certain."""
    files = _names(inputs, {index for pair in unsettled for index in pair.inputs})
    if any(pair.several for pair in unsettled):
        return AmbiguousAlignment(
            f"{files}: their collectives have no numbers (Seq) and fit at several offsets between their hosts; the "
            "wall clocks do not decide",
            hint=KEEP_CLOCKS,
        )
    return UnverifiedAlignment(
        f"{files}: their collectives have no numbers (Seq), and it is not certain which records are one collective: "
        "one file lacks some, or a clock was set in between",
        hint=KEEP_CLOCKS,
    )


def _names(inputs: Inputs, numbers: Collection[int]) -> str:
    """Return the names of the files of some inputs."""
    return listed(inputs.traces[index].sources[0].name for index in sorted(numbers))

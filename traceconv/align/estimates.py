"""Compare the events of each two clocks: to relate those that are not related well enough, and to check the others.

Nothing is decided here: `decide` makes one time axis of the estimates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, product

from traceconv.align.contradictions import (
    ALL_PAIRS,
    contradiction,
    contradicts_anchor,
    of_one_tool,
    of_other_events,
    refuse_early_work,
)
from traceconv.align.domains import Key, Warnings
from traceconv.align.duplicates import same_recording
from traceconv.align.estimators import estimate_pair
from traceconv.align.inputs import ClockInput, Inputs, Policy, of_other_pids
from traceconv.align.launches import host_and_device
from traceconv.align.pairs import PairEstimate, is_accepted, relined
from traceconv.model.clocks import DRIFT_UNIT, ONE_HOST_DRIFT, ClockDomain, ClockGraph, ClockMap, Verdict

#: Clocks that are related within this bound, ns, are not compared: named events are not more exact.
_WELL_KNOWN_NS = 20_000


@dataclass(frozen=True, slots=True)
class Finding:
    """The estimate for two clocks.

    Attributes:
        pair: the estimate, with whether it is used.
        known: the map from a to b by the files, if the estimate contradicts it; None if it does not.
        maps: in that case the maps of both clocks to trace time by the files.
    """

    pair: PairEstimate
    known: ClockMap | None = None
    maps: tuple[ClockMap, ...] = ()


@dataclass(frozen=True, slots=True)
class Findings:
    """The estimates for all clocks.

    Attributes:
        clocks: the clocks that were compared.
        estimates: the estimates, one for each pair that has one.
        warnings: warnings, each with its clock.
    """

    clocks: Sequence[ClockInput] = ()
    estimates: Sequence[Finding] = ()
    warnings: Warnings = ()


def estimates(inputs: Inputs, policy: Policy) -> Findings:
    """Return estimates for the clocks that are not related well enough, and those that contradict the files.

    With a few inputs all pairs are compared. Fewer would connect them, but pairs that form a loop check each other.
    With many inputs, a clock is compared with those that are related already, until no more of them become related.
    A copy of an input is compared with that input only, unless the events of that one contradict the files.

    Raises:
        InconsistentClocks: with the clocks that files state, work starts before the calls that launched it.
    """
    clocks = [one for one in inputs.clocks if not one.domain.synthetic and one.offset is None]
    with_drift = {one.index for one in inputs.clocks if one.correction.steps}  # as the user states
    clocks = [one for one in clocks if one.index not in with_drift or not _is_related(one, clocks, inputs.graph)]
    graph = inputs.graph.copy()
    stated = _Relations(graph, inputs.target)
    files = host_and_device(inputs.traces)
    for host, device in product(*([one for one in clocks if one.index == file] for file in files)) if files else ():
        clock_map = stated.between(host, device)
        if clock_map is not None:
            refuse_early_work(host, device, (clock_map, ClockMap()))
    all_pairs = len({one.index for one in clocks}) <= ALL_PAIRS
    findings: list[Finding] = []
    warnings: list[tuple[Key, str]] = []
    compared: set[tuple[ClockInput, ClockInput]] = set()
    certain: list[PairEstimate] = []
    known_tools, firsts = cache(of_one_tool), _first_copies(clocks, inputs.repeats, stated)
    contradicted: set[frozenset[ClockInput]] = set()
    progress = True
    while progress:
        progress = False
        related = _Relations(graph, inputs.target)
        for a, b in combinations(clocks, 2):
            neither = a.domain not in related.maps and b.domain not in related.maps
            if a.index == b.index or (a, b) in compared or (neither and not all_pairs):
                continue
            first_a, first_b = firsts.get(a, a), firsts.get(b, b)
            if first_a is first_b and first_a not in (a, b):
                continue
            if first_a is not first_b and {first_a, first_b} != {a, b} and {first_a, first_b} not in contradicted:
                continue
            if not all_pairs and of_other_events(a, b, certain, known_tools):
                continue
            compared.add((a, b))
            # If all pairs are compared, estimates of other pairs do not count as known: loops are to check them.
            finding, more = _compared(a, b, stated if all_pairs else related, clocks, inputs, policy)
            warnings += more
            if finding is not None:
                findings.append(finding)
                if finding.known is not None:
                    contradicted.add(frozenset({a, b}))
                if finding.pair.taken and finding.known is None:
                    pair = without_drifts(finding.pair)
                    graph.relate(a.domain, b.domain, pair.clock_map, pair.back)
                    certain.append(pair)
                    progress = True
    return Findings(clocks, findings, warnings)


def _first_copies(
    clocks: Sequence[ClockInput], repeats: Mapping[int, int], stated: _Relations
) -> dict[ClockInput, ClockInput]:
    """Return for the clocks of inputs with the content of an earlier one the same clock there.

    What the events of the first one say holds for its copies, which are compared with it alone: with many copies of a
    few files nearly all pairs would be compared again.

    Args:
        clocks: the clocks that are compared.
        repeats: the inputs that repeat another one, as in `repeated`.
        stated: what files and user state; copies that they put at different times are compared as any two inputs.
    """
    by_key = {one.key: one for one in clocks}
    firsts: dict[ClockInput, ClockInput] = {}
    for one in clocks:
        first = by_key.get((repeats.get(one.index, one.index), one.clock))
        if first is None or first is one or one.correction.steps or first.correction.steps:
            continue
        content, its_content = (side.trace.sources[0].digest for side in (one, first))
        between = stated.between(one, first)
        is_placed_equally = between is not None and not between.by_user and all(between.at(ts) == ts for ts in one.span)
        if (
            content
            and content == its_content
            and (is_placed_equally or (between is None and same_recording(one.trace, first.trace)))
        ):
            firsts[one] = first
    return firsts


def _compared(
    a: ClockInput, b: ClockInput, known: _Relations, clocks: Sequence[ClockInput], inputs: Inputs, policy: Policy
) -> tuple[Finding | None, Warnings]:
    """Return the estimate for two clocks, None if there is nothing to compare; and warnings.

    Args:
        a, b: the two clocks.
        known: what is known of them.
        clocks: all clocks that are compared.
        inputs: the inputs, with the anchors of the user.
        policy: how uncertain an estimate may be.
    """
    if len({clock.trace.sources[0].rank for clock in (a, b)} - {None}) > 1:
        return None, ()  # ranks of a job do similar work, but not the same
    rough = known.between(a, b)
    if rough is not None:
        rough = a.correction.then(rough).then(b.correction.inverse())
    # Hosts of a job do equal work at one time, so that it would seem to relate their clocks.
    of_hosts = a.wall != b.wall and rough is not None and not rough.by_user
    if (rough is not None and (of_hosts or rough.two_hosts or of_one_tool(a, b))) or _of_other_processes(a, b, clocks):
        return None, ()
    exact = rough is not None and rough.uncertainty <= _WELL_KNOWN_NS
    found = None if exact else estimate_pair(a, b, rough, policy.names)
    pair = None if found is None else _of_steady_clocks(found, rough)
    accepted = pair is not None and is_accepted(pair.estimate, same_run=policy.same_run)
    if accepted and pair is not None and pair.clock_map.verdict is Verdict.UNVERIFIED:
        pair = replace(
            pair, clock_map=replace(pair.clock_map, verdict=Verdict.ASSUMED)
        )  # the user states that it is one run
    warnings: Warnings = ()
    if rough is not None and (not accepted or rough.bound_ns is None):
        against, warnings = contradiction(a, b, rough, policy, found)
        if against is not None:
            maps = known.maps[a.domain], known.maps[b.domain]
            return Finding(replace(against, taken=True), rough, maps), warnings
    if pair is None:
        return None, warnings
    taken = accepted and not contradicts_anchor(pair, inputs.stated.instants)
    return Finding(replace(pair, taken=taken)), warnings


def _of_steady_clocks(pair: PairEstimate, known: ClockMap | None) -> PairEstimate:
    """Return the estimate with no more drift than two clocks of one host have; unverified if no such line is possible.

    Its bound still contains all lines that the evidence allows. A drift that is known is taken off, one that the user
    states is the user's. Several lines have evidence of their own that a clock was slewed.
    """
    region = pair.estimate.region
    stated = pair.a.correction.steps or pair.b.correction.steps or (known is not None and known.bends)
    if pair.estimate.verdict is not Verdict.OK or region is None or stated:
        return pair
    sign = -1 if pair.swapped else 1
    before = sign * (known.drift * DRIFT_UNIT if known is not None else 0.0)
    line, least, most = pair.estimate.line, before - ONE_HOST_DRIFT, before + ONE_HOST_DRIFT
    if least <= line.drift <= most:
        return pair
    steady = min(max(line.drift, least), most)
    offsets = region.offsets_at(steady)
    if offsets is None:
        drift = sign * (line.drift - before)
        reason = (
            f"{pair.estimate.reason}; but the clocks would drift by {drift * 1e6:+.0f} ppm, "
            f"expected {ONE_HOST_DRIFT * 1e6:.0f} ppm at most within one host"
        )
        estimate = replace(pair.estimate, verdict=Verdict.UNVERIFIED, reason=reason)
        return replace(pair, estimate=estimate, clock_map=replace(pair.clock_map, verdict=Verdict.UNVERIFIED))
    line = replace(line, offset=sum(offsets) / 2, drift=steady, x0=region.x0)
    return relined(pair, line)


class _Relations:
    """Maps between the clocks of a graph, as it is when this is made.

    Two clocks of one host, which is not that of trace time, are related through the wall clock of their host: how well
    the hosts are synchronised does not matter to them. All others are related through trace time.

    Attributes:
        maps: the map to trace time of each clock that is related to it.
    """

    def __init__(self, graph: ClockGraph, target: ClockDomain) -> None:
        self._graph, self.maps = graph.copy(), graph.maps_to(target)

    def between(self, one: ClockInput, other: ClockInput) -> ClockMap | None:
        """Return the map from one clock to another; None unless both are related to trace time."""
        clock_map, its_way = self.maps.get(one.domain), self.maps.get(other.domain)
        if clock_map is None or its_way is None:
            return None
        if clock_map.two_hosts and its_way.two_hosts and one.wall == other.wall:
            on_host = self._graph.maps_to(one.wall)
            clock_map, its_way = on_host.get(one.domain, clock_map), on_host.get(other.domain, its_way)
        return clock_map.then(its_way.inverse())


def without_drifts(pair: PairEstimate) -> PairEstimate:
    """Return the estimate for the clocks without the drifts that the user states; as it is if none is stated.

    Then no drift is left between the two, and the smaller bound of both directions holds for all of their events.
    """
    if not (pair.a.correction.steps or pair.b.correction.steps):
        return pair
    middle, bound = sum(pair.a.span) // 2, pair.clock_map.bound_ns
    if pair.back_bound_ns is not None and (bound is None or pair.back_bound_ns < bound):
        middle, bound = pair.back.at(sum(pair.b.span) // 2), pair.back_bound_ns
    at, at_other = pair.a.correction.at(middle), pair.b.correction.at(pair.clock_map.at(middle))
    clock_map = ClockMap(
        at_other - at, bound, pair.clock_map.steps, pair.clock_map.verdict, rests_on=pair.clock_map.rests_on
    )
    return replace(pair, clock_map=clock_map, back_bound_ns=clock_map.bound_ns)


def _is_related(one: ClockInput, clocks: Sequence[ClockInput], graph: ClockGraph) -> bool:
    """Return whether a clock is related to that of any other input."""
    known = graph.maps_to(one.domain)
    return any(other.domain in known for other in clocks if other.index != one.index)


def _of_other_processes(one: ClockInput, other: ClockInput, clocks: Sequence[ClockInput]) -> bool:
    """Return whether two recordings are of different processes, and so share no events.

    They are if their pids differ. They are, too, if their host names differ and a third recording has one of these.
    Else the two names may mean one machine: a tool in a container has a host name of its own.
    """
    if of_other_pids(one, other, clocks):
        return True
    if one.wall.owner == other.wall.owner:
        return False
    hosts = list({clock.index: clock.wall.owner for clock in clocks}.values())
    return any(hosts.count(clock.wall.owner) > 1 for clock in (one, other))

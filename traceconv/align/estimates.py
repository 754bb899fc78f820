"""Estimates by events: for clocks that files and user do not relate well enough, and as checks of the others.

Nothing is decided here: `decide` makes one time axis of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

from traceconv.align.contradictions import (
    ALL_PAIRS,
    contradiction,
    leaves_anchor_out,
    of_one_tool,
    of_other_events,
    refuse_early_work,
)
from traceconv.align.domains import Key, Warnings
from traceconv.align.estimators import estimate_pair
from traceconv.align.inputs import ClockInput, Inputs, Policy, of_other_pids
from traceconv.align.launches import host_and_device
from traceconv.align.messages import Message
from traceconv.align.pairs import PairEstimate, is_accepted
from traceconv.model.clocks import ClockDomain, ClockGraph, ClockMap, Verdict

#: Clocks that are related within this, ns, are not estimated: named events tell no more than this.
_WELL_KNOWN_NS = 20_000


@dataclass(frozen=True, slots=True)
class Finding:
    """The estimate for two clocks.

    Attributes:
        pair: the estimate, and whether it is used.
        known: if it contradicts the files: the map from a to b by the files.
        ways: if so, the maps of both clocks to trace time by the files.
    """

    pair: PairEstimate
    known: ClockMap | None = None
    ways: tuple[ClockMap, ...] = ()


@dataclass(frozen=True, slots=True)
class Findings:
    """The estimates for all clocks.

    Attributes:
        clocks: the clocks that were compared.
        found: the estimates, by pair.
        warnings: remarks on clocks.
    """

    clocks: Sequence[ClockInput] = ()
    found: Sequence[Finding] = ()
    warnings: Warnings = ()


def estimates(inputs: Inputs, policy: Policy) -> Findings:
    """Return estimates for each two clocks that are not related well enough.

    With a few inputs all pairs are compared. Fewer would connect them, but a loop of pairs is a check.

    Raises:
        InconsistentClocks: by what the files state, work starts before the calls that launched it.
    """
    clocks = [one for one in inputs.clocks if not one.domain.synthetic and one.offset is None]
    drifting = {one.index for one in inputs.clocks if one.correction.steps}  # the user says how
    clocks = [one for one in clocks if one.index not in drifting or not _is_related(one, clocks, inputs.graph)]
    work = inputs.graph.copy()
    stated = _Relations(work, inputs.target)
    files = host_and_device(inputs.traces)
    for host, device in product(*([one for one in clocks if one.index == file] for file in files)) if files else ():
        way = stated.between(host, device)
        if way is not None:
            refuse_early_work(host, device, (way, ClockMap()))
    everything = len({one.index for one in clocks}) <= ALL_PAIRS
    found: list[Finding] = []
    warnings: list[tuple[Key, Message]] = []
    asked: set[tuple[ClockInput, ClockInput]] = set()
    certain: list[PairEstimate] = []
    progress = True
    while progress:
        progress = False
        known = _Relations(work, inputs.target)
        for a, b in combinations(clocks, 2):
            neither = a.domain not in known.known and b.domain not in known.known
            if a.index == b.index or (a, b) in asked or (neither and not everything):
                continue
            if not everything and of_other_events(a, b, certain):
                continue
            asked.add((a, b))
            # What events of other pairs say is not a reason to be content: it could not be checked.
            finding, said = _asked(a, b, stated if everything else known, clocks, inputs, policy)
            warnings += said
            if finding is not None:
                found.append(finding)
                if finding.pair.taken and finding.known is None:
                    pair = without_drifts(finding.pair)
                    work.relate(a.domain, b.domain, pair.way, pair.back)
                    certain.append(pair)
                    progress = True
    return Findings(clocks, found, warnings)


def _asked(
    a: ClockInput, b: ClockInput, there: _Relations, clocks: Sequence[ClockInput], inputs: Inputs, policy: Policy
) -> tuple[Finding | None, Warnings]:
    """Return the estimate for two clocks and the warnings; None if there is nothing to compare."""
    rough = there.between(a, b)
    if rough is not None:
        rough = a.correction.then(rough).then(b.correction.inverse())
    of_hosts = a.wall != b.wall and rough is not None and not rough.by_user  # they do the same at one time
    if (rough is not None and (of_hosts or rough.two_hosts or of_one_tool(a, b))) or _of_other_processes(a, b, clocks):
        return None, ()
    exact = rough is not None and rough.uncertainty <= _WELL_KNOWN_NS
    pair = None if exact else estimate_pair(a, b, rough, policy.names)
    believed = pair is not None and is_accepted(pair.estimate, same_run=policy.same_run)
    if believed and pair is not None and pair.way.verdict is Verdict.UNVERIFIED:
        pair = replace(pair, way=replace(pair.way, verdict=Verdict.ASSUMED))  # the user says that it is one run
    warnings: Warnings = ()
    if rough is not None and (not believed or rough.bound_ns is None):
        against, warnings = contradiction(a, b, rough, policy, pair)
        if against is not None:
            ways = there.known[a.domain], there.known[b.domain]
            return Finding(replace(against, taken=True), rough, ways), warnings
    if pair is None:
        return None, warnings
    taken = believed and not leaves_anchor_out(pair, inputs.stated.instants)
    return Finding(replace(pair, taken=taken)), warnings


class _Relations:
    """Maps between clocks of a graph.

    They mostly lead through trace time. Two clocks of another host than that of trace time are related through the wall
    clock of their host: the synchronisation of the hosts does not matter to them.

    Attributes:
        known: the map of each related clock to trace time.
    """

    def __init__(self, graph: ClockGraph, target: ClockDomain) -> None:
        self._graph, self.known = graph.copy(), graph.maps_to(target)

    def between(self, one: ClockInput, other: ClockInput) -> ClockMap | None:
        """Return the map from one clock to another; None unless both are related to trace time."""
        way, there = self.known.get(one.domain), self.known.get(other.domain)
        if way is None or there is None:
            return None
        if way.two_hosts and there.two_hosts and one.wall == other.wall:
            known = self._graph.maps_to(one.wall)
            way, there = known.get(one.domain, way), known.get(other.domain, there)
        return way.then(there.inverse())


def without_drifts(pair: PairEstimate) -> PairEstimate:
    """Return the estimate between clocks whose stated drifts are taken out, so that no other drift is left.

    The bound in the middle of a side holds for all of its events, since there is no drift.
    """
    if not (pair.a.correction.steps or pair.b.correction.steps):
        return pair
    middle, bound = sum(pair.a.span()) // 2, pair.way.bound_ns
    if pair.back_bound_ns is not None and (bound is None or pair.back_bound_ns < bound):
        middle, bound = pair.back.at(sum(pair.b.span()) // 2), pair.back_bound_ns
    at, there = pair.a.correction.at(middle), pair.b.correction.at(pair.way.at(middle))
    way = ClockMap(there - at, bound, pair.way.steps, pair.way.verdict, rests_on=pair.way.rests_on)
    return replace(pair, way=way, back_bound_ns=way.bound_ns)


def _is_related(one: ClockInput, clocks: Sequence[ClockInput], graph: ClockGraph) -> bool:
    """Return whether a clock is related to that of any other input."""
    known = graph.maps_to(one.domain)
    return any(other.domain in known for other in clocks if other.index != one.index)


def _of_other_processes(one: ClockInput, other: ClockInput, clocks: Sequence[ClockInput]) -> bool:
    """Return whether two recordings are of two ranks or processes, or of two hosts of which one has other recordings.

    Ranks of a job do similar work, but not the same. Two host names may be one machine, if one of two tools ran in a
    container: so events count only if no other recording is of these hosts.
    """
    ranks = {clock.trace.sources[0].rank for clock in (one, other)} - {None}
    if len(ranks) > 1 or of_other_pids(one, other, clocks):
        return True
    if one.wall.owner == other.wall.owner:
        return False
    hosts = list({clock.index: clock.wall.owner for clock in clocks}.values())
    return any(hosts.count(clock.wall.owner) > 1 for clock in (one, other))

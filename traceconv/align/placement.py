"""Where everything lies on trace time: what the user moves, what has no times, and tables of totals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from traceconv.align.decision import Decision, Warnings, beside, not_aligned, taken_as_best
from traceconv.align.domains import one_machine_advice, zone_option
from traceconv.align.duplicate_inputs import same_recording
from traceconv.align.inputs import Inputs, Key, Policy, Ways, is_timed
from traceconv.align.messages import Message, Text
from traceconv.errors import InconsistentClocks, UnrelatedClocks, UsageError
from traceconv.model.clocks import DRIFT_UNIT, MOST_DRIFT, ClockMap, Provenance, Run, Step, Verdict
from traceconv.model.times import LIMIT_NS
from traceconv.model.trace import Trace

if TYPE_CHECKING:
    from traceconv.align.duration_layout import Placement
    from traceconv.align.pairs import PairEstimate


@dataclass(frozen=True, slots=True)
class Placed:
    """Where all clocks lie.

    Attributes:
        ways: for each clock that lies somewhere, its map to trace time.
        pairs: what the events say.
        warnings: what is to be said of clocks.
        placements: for inputs without times whose slices lie inside those of others, which in which.
    """

    ways: Ways
    pairs: Sequence[PairEstimate] = ()
    warnings: Warnings = ()
    placements: Mapping[int, Placement] = field(default_factory=dict)


def place(inputs: Inputs, decision: Decision, policy: Policy) -> Placed:
    """Return where all clocks lie.

    Args:
        inputs: the clocks.
        decision: where those with times lie.
        policy: whether to ask durations, and what to do where they do not tell.

    Raises:
        UnrelatedClocks: two inputs have clocks that nothing relates.
        InconsistentClocks: what is said of a clock makes it run faster than any does.
        UsageError: a time lies farther from zero than can be written.
    """
    ways = _with_offsets(inputs, _with_synthetic(inputs, decision.ways))
    found = Placed(ways, decision.pairs, decision.warnings)
    if policy.estimate and any(not is_related(inputs, ways, index) for index in range(len(inputs.traces))):
        found = _with_durations(inputs, found, policy)
    found = replace(found, ways=_with_totals(inputs, found.ways))
    _refuse_unrelated(inputs, found, policy)
    _refuse_far(inputs, found.ways)
    return found


def is_related(inputs: Inputs, ways: Ways, index: int) -> bool:
    """Whether any clock of an input that has events lies somewhere; True of one without events."""
    clocks = inputs.of(index)
    return not clocks or any(one.key in ways for one in clocks)


def _with_synthetic(inputs: Inputs, ways: Ways) -> Ways:
    """Tracks without times, beside others of the same file that have times: from the first of these on."""
    found = dict(ways)
    for one in inputs.clocks:
        if one.key not in ways and one.domain.synthetic:
            starts = [ways[its.key].at(its.span()[0]) for its in inputs.of(one.index) if its.key in ways]
            if starts:
                found[one.key] = ClockMap(min(starts), 0, (Step(Text.NO_TIMES(), Provenance.ASSUMED),))
    return found


def _with_offsets(inputs: Inputs, ways: Ways) -> Ways:
    """What the user moves."""
    moved = {
        one.key: ways.get(one.key, one.correction).then(one.offset) for one in inputs.clocks if one.offset is not None
    }
    return {**ways, **moved}


def _with_totals(inputs: Inputs, ways: Ways) -> Ways:
    """Tables without times stand at the start of everything that has times."""
    totals = [one for one in inputs.clocks if one.domain.run is Run.TOTALS]
    starts = [ways[one.key].at(one.span()[0]) for one in inputs.clocks if one.key in ways and one not in totals]
    if not starts or not totals:
        return ways
    way = ClockMap(min(starts), 0, (Step(Text.TOTALS(), Provenance.ASSUMED),))
    return {**ways, **{one.key: way for one in totals}}


# -- logs without times -----------------------------------------------------------------------------------------------


def _with_durations(inputs: Inputs, placed: Placed, policy: Policy) -> Placed:
    """Inputs without times where their durations say that they belong."""
    from traceconv.align.duration_placement import placement_of  # most merges have no use for it
    from traceconv.align.pairs import is_accepted

    hosts = {one: placed.ways[one.key] for one in inputs.clocks if is_timed(one, placed.ways)}
    ways, pairs, warnings = dict(placed.ways), list(placed.pairs), list(placed.warnings)
    placements: dict[int, Placement] = {}
    for index in range(len(inputs.traces)):
        alone = [one for one in inputs.of(index) if one.domain.run is Run.NONE]
        if not alone or is_related(inputs, placed.ways, index):
            continue
        tried = placement_of(alone[0], hosts, policy.names, same_run=policy.same_run)
        best, placement = _best(tried)
        accepted = best is not None and is_accepted(best.estimate, same_run=policy.same_run)
        if best is not None and placement is not None and (accepted or policy.on_ambiguous == "best"):
            placements[index] = placement
            step = Step(Text.DURATIONS_IN(file=best.a.name), Provenance.ESTIMATED)
            verdict = Verdict.ASSUMED if accepted else best.estimate.verdict
            way = ClockMap(hosts[best.a].at(best.a.span()[0]), None, (step,), verdict)
            said = [] if accepted else [taken_as_best(best)]
            tried = [replace(pair, taken=pair is best) for pair in tried]
        elif policy.on_ambiguous == "separate" and hosts:
            way, said = beside(min(its.at(host.span()[0]) for host, its in hosts.items())), [not_aligned(tried)]
        else:
            pairs += tried
            continue
        pairs += tried
        for one in alone:
            ways[one.key] = replace(way, offset_ns=way.offset_ns - one.span()[0])
            warnings += [(one.key, text) for text in said]
    warnings += _shared_slices(inputs.traces, placements, ways)
    return Placed(ways, pairs, warnings, placements)


def _best(tried: Sequence[PairEstimate]) -> tuple[PairEstimate | None, Placement | None]:
    """The first estimate by which a log can be laid somewhere, and where."""
    from traceconv.align.duration_layout import placement_in

    for pair in tried:
        if pair.rows is not None and len(pair.rows[0]):
            placement = placement_in(pair.a.trace, pair.a.index, pair.b.trace, pair.b.clock, pair.rows)
            if placement is not None:
                return pair, placement
    return None, None


def _shared_slices(traces: Sequence[Trace], placements: Mapping[int, Placement], ways: Ways) -> Warnings:
    """Two logs of one tool in the same slices: a tool prints what it does once, so one of them is of another run."""
    found: list[tuple[Key, Message]] = []
    for one, other in combinations(placements, 2):
        parents = placements[one].parents(), placements[other].parents()
        shared = len(np.intersect1d(parents[0], parents[1]))
        sources = [traces[index].sources[0] for index in (one, other)]
        alike = placements[one].host == placements[other].host and sources[0].format == sources[1].format
        if alike and 2 * shared > min(map(len, parents)) and not same_recording(traces[one], traces[other]):
            names = {one: sources[1].name, other: sources[0].name}
            found += [(key, Text.IN_THE_SAME_SLICES(other=names[key[0]])) for key in ways if key[0] in names]
    return found


# -- refusals ---------------------------------------------------------------------------------------------------------


def _refuse_unrelated(inputs: Inputs, placed: Placed, policy: Policy) -> None:
    """Refuse the first input of which a clock lies nowhere."""
    lost = next((one for one in inputs.clocks if one.key not in placed.ways), None)
    if lost is None:
        return
    clock, target = lost.domain.describe(), inputs.target.describe()
    other = next(one for one in inputs.clocks if one.key in placed.ways)
    if other.index == lost.index:
        raise UnrelatedClocks(
            Text.TWO_CLOCKS_IN_ONE_FILE(file=lost.name, one=target, other=clock), hint=Text.SPLIT_IT()
        )
    start = min(placed.ways[its.key].at(its.span()[0]) for its in inputs.of(other.index) if its.key in placed.ways)
    tried = [pair.estimate for pair in placed.pairs if lost.index in (pair.a.index, pair.b.index)]
    one_run = not policy.same_run and any(estimate.verdict is Verdict.UNVERIFIED for estimate in tried)
    advice = (
        one_machine_advice(other.trace, other.domain, lost.trace, lost.domain),
        Text.SAY_SAME_RUN() if one_run else "",
        zone_option(lost.trace, lost.domain),
        Text.CLOCKS_COMMAND(files=tuple(trace.sources[0].name for trace in inputs.traces)),
        Text.SAY_OFFSET(file=lost.name),
        Text.GUESS_OFFSET(file=lost.name, move=start - lost.span()[0]),
    )
    events = Text.NOR_DO_EVENTS_TELL(reason=tried[0].reason) if tried else ""
    raise UnrelatedClocks(
        Text.CANNOT_BE_RELATED(a=other.name, b=lost.name, one=target, other=clock, events=events),
        hint=Text.ELSE(advice=tuple(filter(None, advice))),
        pairs=placed.pairs,
        verdict=Verdict.UNVERIFIED.value if one_run else "",
    )


def _refuse_far(inputs: Inputs, ways: Ways) -> None:
    """Refuse a clock that runs faster than any does, and times that cannot be written."""
    for one in inputs.clocks:
        if one.key not in ways:
            continue
        drift = max(abs(line.drift) for line in ways[one.key].lines)
        if drift > MOST_DRIFT:
            ppm = drift * DRIFT_UNIT * 1e6
            raise InconsistentClocks(Text.WOULD_RUN_OFF(file=one.name, drift=ppm), hint=Text.LEAVE_OUT_OR_PLACE())
        if any(abs(ways[one.key].at(end)) > LIMIT_NS for end in one.span()):
            raise UsageError(Text.TOO_FAR(file=one.name), hint=Text.CHECK_OFFSET_AND_UNIT())

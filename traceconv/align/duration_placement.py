"""Find the input whose slices contain the work of a log without times.

`durations` matches the events of the log with slices, and `duration_layout` lays them there. The times of such a log
stay synthetic, but are wrong by no more than the slice that each event lies in. Every slice says how it was placed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from traceconv.align.domains import Key, Warnings
from traceconv.align.duplicates import same_recording
from traceconv.align.duration_layout import Placement, placement_in
from traceconv.align.durations import align_durations
from traceconv.align.estimate import some_of
from traceconv.align.features import shared_work
from traceconv.align.inputs import ClockInput, Inputs, Maps, Policy, is_timed, of_other_pids
from traceconv.align.names import NameMap
from traceconv.align.pairs import PairEstimate, is_accepted
from traceconv.align.placed import Placed, beside, is_related, not_aligned, taken_as_best
from traceconv.align.wording import listed
from traceconv.model.clocks import ClockMap, Provenance, Run, Step, Verdict
from traceconv.model.trace import Trace

#: The number of slices that are compared to see whether two hosts agree.
_LOOKED_AT = 200


def with_durations(inputs: Inputs, placed: Placed, policy: Policy) -> Placed:
    """Return the clocks on trace time, also those of logs without times that durations place inside other inputs."""
    hosts = {one: placed.maps[one.key] for one in inputs.clocks if is_timed(one, placed.maps)}
    maps, pairs, warnings = dict(placed.maps), list(placed.pairs), list(placed.warnings)
    placements: dict[int, Placement] = {}
    for index in range(len(inputs.traces)):
        alone = [one for one in inputs.of(index) if one.domain.run is Run.NONE]
        if not alone or is_related(inputs, placed.maps, index):
            continue
        around = {one: clock_map for one, clock_map in hosts.items() if not of_other_pids(alone[0], one, inputs.clocks)}
        tried = _tried(alone[0], around, policy.names, same_run=policy.same_run)
        best, placement = _best(tried)
        accepted = best is not None and is_accepted(best.estimate, same_run=policy.same_run)
        if best is not None and placement is not None and (accepted or policy.on_ambiguous == "best"):
            placements[index] = placement
            step = Step(f"durations of the same work in {best.a.name}", Provenance.ESTIMATED)
            verdict = Verdict.ASSUMED if accepted else best.estimate.verdict
            clock_map = ClockMap(hosts[best.a].at(best.a.span[0]), None, (step,), verdict)
            texts = [] if accepted else [taken_as_best(best, best.b)]
            tried = [replace(pair, taken=pair is best) for pair in tried]
        elif policy.on_ambiguous == "separate" and hosts:
            clock_map, texts = beside(min(its.at(host.span[0]) for host, its in hosts.items())), [not_aligned(tried)]
        else:
            pairs += tried
            continue
        pairs += tried
        for one in alone:
            maps[one.key] = replace(clock_map, offset_ns=clock_map.offset_ns - one.span[0])
            warnings += [(one.key, text) for text in texts]
    warnings += _shared_slices(inputs.traces, placements, maps)
    return Placed(maps, pairs, warnings, placements)


def _best(tried: Sequence[PairEstimate]) -> tuple[PairEstimate | None, Placement | None]:
    """Return the first estimate by which a log can be laid inside slices, and how it lies there; None without any."""
    for pair in tried:
        if pair.rows is not None and len(pair.rows[0]):
            placement = placement_in(pair.a.trace, pair.a.index, pair.b.trace, pair.b.clock, pair.rows)
            if placement is not None:
                return pair, placement
    return None, None


def _shared_slices(traces: Sequence[Trace], placements: Mapping[int, Placement], maps: Maps) -> Warnings:
    """Return a warning for each two logs of one tool that lie in the same slices.

    A tool prints each event once, so one of the two logs is of another run.
    """
    warnings: list[tuple[Key, str]] = []
    for one, other in combinations(placements, 2):
        parents = placements[one].parents(), placements[other].parents()
        shared = len(np.intersect1d(parents[0], parents[1]))
        sources = [traces[index].sources[0] for index in (one, other)]
        same_kind = placements[one].host == placements[other].host and sources[0].format == sources[1].format
        if same_kind and 2 * shared > min(map(len, parents)) and not same_recording(traces[one], traces[other]):
            names = {one: sources[1].name, other: sources[0].name}
            warnings += [
                (key, f"it lies in the same slices as {names[key[0]]}, so one of the two must be of another run")
                for key in maps
                if key[0] in names
            ]
    return warnings


def _tried(
    guest: ClockInput, hosts: Mapping[ClockInput, ClockMap], names: NameMap, *, same_run: bool
) -> list[PairEstimate]:
    """Return the estimates by durations for an input without times and each possible host, the best one first.

    Estimates that are accepted for several hosts are made ambiguous, unless they agree.

    Args:
        guest: the clock of the input without times.
        hosts: the clocks that it may belong to, each with its map to trace time.
        names: which names mean the same work.
        same_run: whether the user states that all inputs are of one run.
    """
    pairs: list[PairEstimate] = []
    for host in hosts:
        views = shared_work(host.trace, host.clock, guest.trace, guest.clock, names)
        if views is None:
            continue
        outer, inner = views
        estimate = align_durations(outer.events, inner.events)
        rows = None
        if estimate.pairs is not None:
            rows = (outer.rows[estimate.pairs[0]], inner.rows[estimate.pairs[1]])
        clock_map = ClockMap(
            steps=(Step("durations of the same work", Provenance.ESTIMATED),), verdict=estimate.verdict
        )
        zeros = outer.events.zero_ns, inner.events.zero_ns
        pairs.append(PairEstimate(host, guest, estimate, *zeros, clock_map, rows=rows))
    pairs.sort(key=lambda pair: (pair.estimate.verdict.badness, -pair.estimate.margin))
    accepted = [pair for pair in pairs if is_accepted(pair.estimate, same_run=same_run)]
    rivals = [pair for pair in accepted[1:] if _is_rival(pair, accepted[0], hosts)]
    if not rivals:
        return pairs
    files = [pair.a.name for pair in (accepted[0], *rivals)]
    why = f"its durations match {listed(files, ' and ')}, at different times"
    refused = [
        replace(
            pair,
            estimate=replace(pair.estimate, verdict=Verdict.AMBIGUOUS, reason=why),
            clock_map=replace(pair.clock_map, verdict=Verdict.AMBIGUOUS),
        )
        for pair in accepted
    ]
    return [*refused, *pairs[len(accepted) :]]


def _is_rival(other: PairEstimate, best: PairEstimate, hosts: Mapping[ClockInput, ClockMap]) -> bool:
    """Return whether another host fits as well as the best one, at other times.

    Only verdicts are compared: margins compare positions within one host, and not two hosts. Two recordings of one run
    are not rivals: in both, the events of the guest lie at the same times.
    """
    if best.estimate.verdict is not other.estimate.verdict:
        return False
    if best.rows is None or other.rows is None:
        return True
    _, one, two = np.intersect1d(best.rows[1], other.rows[1], return_indices=True)
    seen = some_of(np.arange(len(one)), _LOOKED_AT)
    overlapping = 0
    for row, its_row in zip(best.rows[0][one[seen]].tolist(), other.rows[0][two[seen]].tolist(), strict=True):
        (start, end), (its_start, its_end) = _interval(best.a, row, hosts), _interval(other.a, its_row, hosts)
        overlapping += start <= its_end and its_start <= end
    return 2 * overlapping <= len(seen)


def _interval(host: ClockInput, row: int, hosts: Mapping[ClockInput, ClockMap]) -> tuple[int, int]:
    """Return the start and the end of a slice on trace time, ns."""
    start, dur = int(host.trace.slices.ts[row]), int(host.trace.slices.dur[row])
    return hosts[host].at(start), hosts[host].at(start + dur)

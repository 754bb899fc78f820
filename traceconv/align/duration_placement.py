"""Logs without times: which other input they belong to.

Which event of the log is which slice is decided by `durations`; where it then lies by `synthetic_times`. Times of such
a log stay invented, but no longer wrong by more than the slice that each lies in. Every slice says how it was placed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from traceconv.align.durations import align_durations
from traceconv.align.estimate import some_of
from traceconv.align.features import shared_work
from traceconv.align.inputs import ClockInput
from traceconv.align.messages import Message, Text
from traceconv.align.names import NameMap
from traceconv.align.pairs import PairEstimate, is_accepted
from traceconv.model.clocks import ClockMap, Provenance, Step, Verdict

#: So many slices are looked at to see whether two hosts agree.
_LOOKED_AT = 200


def placement_of(
    guest: ClockInput, hosts: Mapping[ClockInput, ClockMap], names: NameMap, *, same_run: bool
) -> list[PairEstimate]:
    """What durations say about where an input without times belongs, the best answer first.

    Args:
        guest: the input without times.
        hosts: the clocks that it may belong to, each with its way to trace time.
        names: which names mean the same work.
        same_run: the word of the user that all inputs are of one run.
    """
    found: list[PairEstimate] = []
    for host in hosts:
        views = shared_work(host.trace, host.clock, guest.trace, guest.clock, names)
        if views is None:
            continue
        outer, inner = views
        estimate = align_durations(outer.events, inner.events)
        rows = None
        if estimate.pairs is not None:
            rows = (outer.rows[estimate.pairs[0]], inner.rows[estimate.pairs[1]])
        way = ClockMap(steps=(Step(Text.DURATIONS_ONLY(), Provenance.ESTIMATED),), verdict=estimate.verdict)
        zeros = outer.events.zero_ns, inner.events.zero_ns
        found.append(PairEstimate(host, guest, estimate, *zeros, way, rows=rows))
    found.sort(key=lambda pair: (pair.estimate.verdict.badness, -pair.estimate.margin))
    accepted = [pair for pair in found if is_accepted(pair.estimate, same_run=same_run)]
    rivals = [pair for pair in accepted[1:] if _rivals(accepted[0], pair, hosts)]
    if not rivals:
        return found
    why = Text.DURATIONS_FIT_FILES(files=[pair.a.name for pair in (accepted[0], *rivals)])
    refused = [_ambiguous(pair, why) for pair in accepted]
    return [*refused, *found[len(accepted) :]]


def _rivals(best: PairEstimate, other: PairEstimate, hosts: Mapping[ClockInput, ClockMap]) -> bool:
    """Whether another host is as good an answer as the best one, and another place.

    Margins are of places within one host and do not compare two; only what is known of the run does. Two recordings of
    one run agree: a guest's slice lies in both at one time.
    """
    if best.estimate.verdict is not other.estimate.verdict:
        return False
    if best.rows is None or other.rows is None:
        return True
    _, one, two = np.intersect1d(best.rows[1], other.rows[1], return_indices=True)
    seen = some_of(np.arange(len(one)), _LOOKED_AT)
    together = 0
    for row, its in zip(best.rows[0][one[seen]].tolist(), other.rows[0][two[seen]].tolist(), strict=True):
        (begin, end), (start, stop) = _interval(best.a, row, hosts), _interval(other.a, its, hosts)
        together += begin <= stop and start <= end
    return 2 * together <= len(seen)


def _interval(host: ClockInput, row: int, hosts: Mapping[ClockInput, ClockMap]) -> tuple[int, int]:
    """Begin and end of a slice on trace time."""
    begin, dur = int(host.trace.slices.ts[row]), int(host.trace.slices.dur[row])
    return hosts[host].at(begin), hosts[host].at(begin + dur)


def _ambiguous(pair: PairEstimate, why: Message) -> PairEstimate:
    estimate = replace(pair.estimate, verdict=Verdict.AMBIGUOUS, reason=why)
    return replace(pair, estimate=estimate, way=replace(pair.way, verdict=Verdict.AMBIGUOUS))

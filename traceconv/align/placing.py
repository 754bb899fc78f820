"""Logs without times, laid inside the slices of another input whose work they are.

Which event of the log is which slice is decided by `durations`; where it then lies by `layout`. Times of such a log
stay invented, but no longer wrong by more than the slice that each lies in, and every slice says how it was placed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from traceconv.align.durations import align_durations
from traceconv.align.estimate import Array, some_of
from traceconv.align.ladder import PairEstimate, Side, is_accepted
from traceconv.align.layout import lay_inside, placed_args
from traceconv.align.names import NameMap
from traceconv.align.views import shared_work
from traceconv.clocks import ClockMap, Verdict
from traceconv.ir.builder import join_args
from traceconv.ir.trace import Args, Slices, Trace
from traceconv.lanes import sort_events

#: So many slices are looked at to see whether two hosts agree.
_LOOKED_AT = 200


@dataclass(frozen=True, slots=True)
class Placement:
    """Which slices of an input without times lie in which of another one.

    Attributes:
        host: the index of the other input.
        host_rows, rows: matched rows of the slices of the host and of the input itself.
    """

    host: int
    host_rows: Array
    rows: Array


def placement_of(guest: Side, hosts: Mapping[Side, ClockMap], names: NameMap, *, same_run: bool) -> list[PairEstimate]:
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
        way = ClockMap(method="durations of the same work", verdict=estimate.verdict)
        zeros = outer.events.zero_ns, inner.events.zero_ns
        found.append(PairEstimate(host, guest, estimate, *zeros, way, rows=rows))
    order = list(Verdict)
    found.sort(key=lambda pair: (order.index(pair.estimate.verdict), -pair.estimate.margin))
    accepted = [pair for pair in found if is_accepted(pair.estimate, same_run=same_run)]
    rivals = [pair for pair in accepted[1:] if _rivals(accepted[0], pair, hosts)]
    if not rivals:
        return found
    files = " and ".join(pair.a.name for pair in (accepted[0], *rivals))
    refused = [_ambiguous(pair, f"its durations fit into {files}, at different times") for pair in accepted]
    return [*refused, *found[len(accepted) :]]


def _rivals(best: PairEstimate, other: PairEstimate, hosts: Mapping[Side, ClockMap]) -> bool:
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


def _interval(host: Side, row: int, hosts: Mapping[Side, ClockMap]) -> tuple[int, int]:
    """Begin and end of a slice on trace time."""
    begin, dur = int(host.trace.slices.ts[row]), int(host.trace.slices.dur[row])
    return hosts[host].at(begin), hosts[host].at(begin + dur)


def _ambiguous(pair: PairEstimate, why: str) -> PairEstimate:
    estimate = replace(pair.estimate, verdict=Verdict.AMBIGUOUS, reason=why)
    return replace(pair, estimate=estimate, way=replace(pair.way, verdict=Verdict.AMBIGUOUS))


def laid_inside(guest: Trace, host: Trace, placement: Placement) -> Trace:
    """The guest with the matched slices inside those of the host, and all others of their tracks between them.

    Args:
        guest, host: on trace time already.
        placement: which slices belong together.
    """
    slices = guest.slices
    parent_of = np.full(len(slices.ts), -1, np.int64)
    parent_of[placement.rows] = placement.host_rows
    ts, dur = slices.ts.copy(), slices.dur.copy()
    said: dict[int, dict[str, object]] = {}
    for track in np.unique(slices.track[placement.rows]).tolist():
        rows = np.flatnonzero(slices.track == track)
        rows = rows[np.argsort(slices.origin[rows], kind="stable")]  # as in the log, also where lengths are 0
        if _is_flat(slices, rows):
            said |= _lay_track(slices, rows, parent_of[rows], host, ts, dur)
    moved = _with_words(guest.with_tables(slices=replace(slices, ts=ts, dur=dur)), said)
    placed = sum(1 for words in said.values() if str(words["placed"]).startswith("inside"))
    moved.sources[0].notes.append(
        f"{placed} of {len(slices.ts)} slices lie inside those of {host.sources[0].name} that they were matched to by "
        "their durations, the others in order between them; each says so in its args"
    )
    return sort_events(moved)


def _is_flat(slices: Slices, rows: Array) -> bool:
    """Whether no slice of a track lies in another one."""
    ends = slices.ts[rows] + slices.dur[rows]
    return bool((slices.ts[rows][1:] >= ends[:-1]).all())


def _lay_track(
    slices: Slices, rows: Array, parents: Array, host: Trace, ts: Array, dur: Array
) -> dict[int, dict[str, object]]:
    """Write the new times of one track; what each of its slices says about it, by row."""
    matched = np.flatnonzero(parents >= 0)
    wanted, place = np.unique(parents[matched], return_inverse=True)
    order = np.argsort(host.slices.ts[wanted], kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    wanted = wanted[order]
    of_parent = rank[place]
    in_order = np.maximum.accumulate(of_parent) == of_parent  # a match that would cross another one is none
    pairs = of_parent[in_order], matched[in_order]
    laid = lay_inside(slices.dur[rows], pairs, host.slices.ts[wanted], host.slices.dur[wanted])
    ts[rows], dur[rows] = laid.ts, laid.dur
    names = [host.strings[name] for name in host.slices.name[wanted].tolist()]
    return dict(zip(rows.tolist(), placed_args(laid, slices.dur[rows], names), strict=True))


def _with_words(trace: Trace, said: dict[int, dict[str, object]]) -> Trace:
    slices = trace.slices
    args_at, args_len = slices.args_at.copy(), slices.args_len.copy()
    more = bytearray()
    for row, words in said.items():
        new = join_args(trace.args.get(int(args_at[row]), int(args_len[row])), words)
        args_at[row], args_len[row] = len(trace.args) + len(more), len(new)
        more += new
    joined = replace(slices, args_at=args_at, args_len=args_len)
    return trace.with_tables(slices=joined, args=Args([*trace.args.parts, more]))

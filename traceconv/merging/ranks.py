"""Name the processes of a job by rank and host, and order them by rank, each with the tracks of its input below.

Names start with the rank, padded to equal width, so that viewers that sort by name keep the order of ranks.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from traceconv.model.layout import renumbered, sort_events
from traceconv.model.trace import Trace
from traceconv.model.track_table import NO_TRACK, Track, TrackId, TrackKind, Tracks


def with_ranks_named(trace: Trace, hosts: Sequence[str]) -> Trace:
    """Return the trace with named and ordered ranks; unchanged if its inputs state fewer than two ranks.

    Args:
        trace: the concatenated inputs; it is consumed, as its columns are sorted in place.
        hosts: the host of each input, "" if it states none.
    """
    ranks = {index: source.rank for index, source in enumerate(trace.sources) if source.rank is not None}
    if len(set(ranks.values())) < 2:
        return trace
    processes = _processes(trace)
    digits = len(str(max(ranks.values())))
    changed: dict[int, Track] = {}
    rank_of: dict[int, int] = {}
    for source, rank in ranks.items():
        for number in processes[source]:
            track = trace.tracks[number]
            parts = f"rank {rank:0{digits}}", hosts[source], track.name
            labels = tuple(label for label in track.labels if label != f"rank {rank}")
            changed[number] = replace(track, name=" · ".join(filter(None, parts)), labels=labels)
            rank_of[number] = rank
    for number, track in enumerate(trace.tracks):
        if track.source not in ranks or track.kind is TrackKind.PROCESS or track.parent != NO_TRACK:
            continue
        rank, own = ranks[track.source], processes[track.source]
        if len(own) == 1:  # tracks below the only process of a rank need not name the rank
            name = track.name_in_rank or track.name
            changed[number] = replace(track, name=name, name_in_rank="", parent=TrackId(*own))
        else:
            rank_of[number] = rank
    tracks = Tracks(changed.get(number, track) for number, track in enumerate(trace.tracks))
    return _in_tree_order(trace.with_tables(tracks=Tracks(_with_ranks(tracks, rank_of))))


def _processes(trace: Trace) -> dict[int, set[int]]:
    """Return the processes that hold tracks of each input."""
    processes: defaultdict[int, set[int]] = defaultdict(set)
    top: list[int] = []
    for number, track in enumerate(trace.tracks):
        above = track.lane_of if track.parent == NO_TRACK else track.parent
        top.append(number if above == NO_TRACK else top[above])
        if trace.tracks[top[-1]].kind is TrackKind.PROCESS:
            processes[track.source].add(top[-1])
    return processes


def _with_ranks(tracks: Tracks, rank_of: Mapping[int, int]) -> Iterator[Track]:
    """Yield the tracks; those at the top are ordered by rank, then those without a rank in their old order."""

    def place(number: int) -> tuple[float, float]:
        own = tracks[number].rank
        return rank_of.get(number, math.inf), math.inf if own is None else own

    top = [number for number, track in enumerate(tracks) if track.parent == NO_TRACK and track.lane_of == NO_TRACK]
    position = {number: position for position, number in enumerate(sorted(top, key=place))}
    for number, track in enumerate(tracks):
        yield replace(track, rank=position[number]) if number in position else track


def _in_tree_order(trace: Trace) -> Trace:
    """Return the trace with its tracks in depth-first order.

    In Chrome JSON, where all tracks are threads, this keeps the numbers of the tracks of a device together.
    """
    children: defaultdict[int, list[int]] = defaultdict(list)
    for number, track in enumerate(trace.tracks):
        children[track.parent].append(number)

    def place(number: int) -> tuple[bool, int, int, int]:
        main = number if trace.tracks[number].lane_of == NO_TRACK else int(trace.tracks[number].lane_of)
        rank = trace.tracks[main].rank
        return rank is None, rank or 0, main, number

    order: list[int] = []
    waiting = sorted(children[NO_TRACK], key=place, reverse=True)
    while waiting:
        order.append(waiting.pop())
        waiting += sorted(children[order[-1]], key=place, reverse=True)
    ordered = renumbered(trace, order)
    return trace if ordered is trace else sort_events(ordered, in_place=True)

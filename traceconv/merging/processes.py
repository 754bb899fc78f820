"""Put the tracks of several inputs where they belong: shared processes and threads, ranks, and tables of sums.

If two inputs record the same thread (`traceconv.align.identity`), and the events of one come before all of the other,
they share its track. Slices that overlap in time get a track beside it. Samples and log entries are always on the
thread itself, since they cross nothing, so that samples can be queried by the slices around them.

Names of the processes of a job start with the rank, padded to equal width, so that viewers that sort by name keep the
order of ranks.

In a merge with exactly one input of a format that a table without times may summarise, the tracks of the table go under
the process of that input. Where each row describes one slice (a kernel that was measured by replay), the row becomes
args of that slice: the nth row of a name belongs to the nth slice of that name in order of launch, and only if there
are as many rows as slices. All other rows stay where they are, with a note.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct, structs

from traceconv.align.identity import Span, Together, Why, gap
from traceconv.io.shown import Counted
from traceconv.model.args import with_more_args
from traceconv.model.columns import I64, occurring
from traceconv.model.diagnostics import noted
from traceconv.model.layout import drop_unused_tracks, renumbered, sort_events
from traceconv.model.numbers import EVER
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import Instants, Slices, Trace, take
from traceconv.model.track_table import NO_TRACK, Track, TrackId, TrackKind, Tracks, possible

# -- shared processes and threads -----------------------------------------------------------------------------------

SAME_PID = noted(
    "merge.same_pid",
    "another input has a process of the same pid at the same time; they were kept apart, since "
    "no input shows that both pids are of one machine and one pid namespace; if they are: --same-machine",
)

#: The name of the process of calls that lie in no operator of the recorded one.
OTHERS = "another process or thread"
#: The tables that are always on the thread itself.
_CROSS_NOTHING = ("samples", "logs")


def put_together(trace: Trace, together: Together, starts: Sequence[int]) -> Trace:
    """Return the trace with shared processes and threads once; `starts` has the first track of each input."""
    goes_under: dict[int, TrackId] = {}
    for identity in together.identities:
        first, *others = identity.tracks
        if identity.why is Why.UNSAID:
            file, neighbour = (together.recordings[seen.input].source.name for seen in identity.tracks)
            trace.sources[first.input].diagnostics.add(SAME_PID, f"{file}: pid {first.number}, also in {neighbour}")
        if isinstance(identity.why, Why):
            continue
        into = starts[first.input] + first.track
        if not first.is_process:
            into = int(trace.tracks[into].parent)
        goes_under |= {starts[seen.input] + seen.track: TrackId(into) for seen in others}
    if not goes_under:
        return drop_unused_tracks(trace)
    moved = _Moves(trace, goes_under).made()
    return drop_unused_tracks(sort_events(renumbered(moved, _parents_first(moved.tracks))))


def set_apart(trace: Trace, rows: I64) -> Trace:
    """Return the trace of one log with some slices on tracks like their own, below a process of their own."""
    tracks = list(trace.tracks)
    goes_to = np.arange(len(tracks), dtype=np.int32)
    wanted: set[int] = set()
    for number in occurring(trace.slices.track[rows]):
        while number != NO_TRACK:
            wanted.add(number)
            number = int(tracks[number].parent if tracks[number].lane_of == NO_TRACK else tracks[number].lane_of)
    apart = TrackId(len(tracks))
    tracks.append(Track(TrackKind.PROCESS, OTHERS, source=tracks[min(wanted)].source, clock=tracks[min(wanted)].clock))
    for number in sorted(wanted):
        track = tracks[number]
        goes_to[number] = len(tracks)
        parent = apart if track.parent == NO_TRACK else TrackId(int(goes_to[track.parent]))
        lane_of = track.lane_of if track.lane_of == NO_TRACK else TrackId(int(goes_to[track.lane_of]))
        tracks.append(structs.replace(track, parent=parent, lane_of=lane_of))
    of_rows = np.array(trace.slices.track)
    of_rows[rows] = goes_to[of_rows[rows]]
    slices = replace(trace.slices, track=of_rows)
    return sort_events(trace.with_tables(tracks=Tracks(tracks), slices=slices))


class _Thread(Struct, frozen=True):
    """A thread that several inputs record: its track, and by input the time span of its slices, None without slices."""

    track: int
    spans: dict[int, Span | None] = {}

    def has_room(self, span: Span | None) -> bool:
        """Return whether slices in a time span overlap none of the thread."""
        return span is None or all(other is None or gap(span, other) >= 0 for other in self.spans.values())


class _Moves:
    """The new parents and numbers of tracks, given the process of another input that each belongs to."""

    def __init__(self, trace: Trace, goes_under: dict[int, TrackId]) -> None:
        self._trace = trace
        self._goes_under = goes_under
        self._shared = set(goes_under.values())
        self._sliced = trace.extents(("slices",))
        self._tracks = list(trace.tracks)
        self._events_to = list(range(len(self._tracks)))
        self._on_thread_to = list(range(len(self._tracks)))
        self._threads: dict[tuple[TrackId, int], _Thread] = {}

    def made(self) -> Trace:
        """Return the trace with all tracks moved; parents may come after their children."""
        late = self._late()
        for number in sorted(range(len(self._tracks)), key=lambda number: (number in late, number)):
            self._move(number)
        tables: dict[str, Any] = {}
        for name, table in self._trace.timed_tables():
            goes_to = np.array(self._on_thread_to if name in _CROSS_NOTHING else self._events_to, np.int32)
            self._carry(name, goes_to)
            tables[name] = replace(table, track=goes_to[table.track])
        return self._trace.with_tables(tracks=Tracks(self._tracks), **tables)

    def _carry(self, name: str, goes_to: npt.NDArray[np.int32]) -> None:
        """Note at the tracks which rows of a table are of which input.

        Of inputs whose rows are not one after the other in time, none is noted: all count for the input of the track.
        """
        spans: dict[int, list[tuple[int, int, int]]] = {}
        firsts, lasts = self._trace.extents((name,))
        for number in np.flatnonzero(firsts <= lasts).tolist():
            span = int(firsts[number]), int(lasts[number])
            spans.setdefault(int(goes_to[number]), []).append((*span, self._tracks[number].source))
        for number, parts in spans.items():
            track = self._tracks[number]
            parts.sort()
            if any(last > first for (_, last, _), (first, *_) in pairwise(parts)):
                continue
            inputs = [(name, source, first if at else EVER) for at, (first, _, source) in enumerate(parts)]
            if parts[0][2] == track.source:
                inputs = inputs[1:]
            if inputs:
                self._tracks[number] = structs.replace(track, carries=(*track.carries, *inputs))

    def _late(self) -> set[int]:
        """Return the tracks that move below another one, and their descendants."""
        late: set[int] = set()
        for number, track in enumerate(self._tracks):
            if number in self._goes_under or int(track.parent) in late or int(track.lane_of) in late:
                late.add(number)
        return late

    def _move(self, number: int) -> None:
        track = self._trace.tracks[number]
        under = self._goes_under.get(number)
        if track.kind is TrackKind.PROCESS:
            if under is not None:
                self._tracks[number] = self._beside(track, under, "process")
                self._name(under, track.name)
            return
        parent = self._parent(track) if under is None else under
        lane_of = TrackId(self._events_to[track.lane_of]) if track.lane_of != NO_TRACK else NO_TRACK
        self._tracks[number] = structs.replace(track, parent=parent, lane_of=lane_of)
        if track.kind is TrackKind.THREAD and track.tid is not None and parent in self._shared:
            self._share(number, self._tracks[number], parent, track.tid)

    def _parent(self, track: Track) -> TrackId:
        above = int(track.parent)
        if above == NO_TRACK:
            return self._goes_under.get(int(track.lane_of), NO_TRACK)
        if above in self._goes_under and self._trace.tracks[above].kind is TrackKind.PROCESS:
            return self._goes_under[above]
        return TrackId(self._events_to[above])

    def _share(self, number: int, track: Track, parent: TrackId, tid: int) -> None:
        """Merge a thread into the one with its tid, if there is one of another input."""
        same = self._threads.setdefault((parent, tid), _Thread(number))
        first, last = (int(times[number]) for times in self._sliced)
        slices = (first, last) if first <= last else None
        if track.source in same.spans:
            return
        if same.track != number:
            self._on_thread_to[number] = same.track
            self._name(same.track, track.name)
        if same.has_room(slices):
            self._events_to[number] = same.track
            same.spans[track.source] = slices
        else:
            self._tracks[number] = self._beside(track, TrackId(same.track), f"thread {tid}")

    def _name(self, number: int, name: str) -> None:
        """Name a process or thread by another input, if its own input does not."""
        if not self._tracks[number].name:
            self._tracks[number] = structs.replace(self._tracks[number], name=name)

    def _beside(self, track: Track, parent: TrackId, role: str) -> Track:
        name = f"{self._trace.sources[track.source].format}: {track.name or role}"
        return structs.replace(track, kind=TrackKind.TRACK, parent=parent, name=name, pid=None, tid=None, labels=())


def _parents_first(tracks: Sequence[Track]) -> list[int]:
    """Return the numbers of tracks in order, but each after its parent and after the track whose lane it is."""
    order: dict[int, None] = {}
    for number in range(len(tracks)):
        above = [number]
        while above:
            track = tracks[above[-1]]
            missing = [n for n in (int(track.parent), int(track.lane_of)) if n != NO_TRACK and n not in order]
            if missing:
                above.append(missing[0])
            else:
                order.setdefault(above.pop())
    return list(order)


# -- ranks ----------------------------------------------------------------------------------------------------------


def with_ranks_named(trace: Trace, hosts: Sequence[str]) -> Trace:
    """Return the trace with named and ordered ranks; unchanged if its inputs state fewer than two ranks.

    The trace is consumed, as its columns are sorted in place. The host of an input is "" if it states none.
    """
    ranks = {index: source.rank for index, source in enumerate(trace.sources) if source.rank is not None}
    if len(set(ranks.values())) < 2:
        return trace
    processes = _processes(trace)
    digits = len(str(max(ranks.values())))
    changed: dict[int, Track] = {}
    rank_of: dict[int, int] = {}
    for source, rank in ranks.items():
        for number in processes.get(source, ()):
            track = trace.tracks[number]
            parts = f"rank {rank:0{digits}}", hosts[source], track.name
            labels = tuple(label for label in track.labels if label != f"rank {rank}")
            changed[number] = structs.replace(track, name=" · ".join(filter(None, parts)), labels=labels)
            rank_of[number] = rank
    for number, track in enumerate(trace.tracks):
        if track.source not in ranks or track.kind is TrackKind.PROCESS or track.parent != NO_TRACK:
            continue
        rank, of_rank = ranks[track.source], processes.get(track.source, set())
        if len(of_rank) == 1:  # tracks below the only process of a rank need not name the rank
            name = track.name_in_rank or track.name
            changed[number] = structs.replace(track, name=name, name_in_rank="", parent=TrackId(*of_rank))
        else:
            rank_of[number] = rank
    tracks = Tracks(changed.get(number, track) for number, track in enumerate(trace.tracks))
    return _in_tree_order(trace.with_tables(tracks=Tracks(_with_ranks(tracks, rank_of))))


def _processes(trace: Trace) -> dict[int, set[int]]:
    """Return the processes that hold tracks of each input; those with possible pids, if it has some."""
    processes: defaultdict[int, set[int]] = defaultdict(set)
    can_be = possible(trace.tracks.numbers())
    top: list[int] = []
    for number, track in enumerate(trace.tracks):
        above = track.lane_of if track.parent == NO_TRACK else track.parent
        top.append(number if above == NO_TRACK else top[above])
        if trace.tracks[top[-1]].kind is TrackKind.PROCESS:
            processes[track.source].add(top[-1])
    return {source: {track for track in found if can_be[track]} or found for source, found in processes.items()}


def _with_ranks(tracks: Tracks, rank_of: Mapping[int, int]) -> Iterator[Track]:
    """Yield the tracks; those at the top are ordered by rank, then those without a rank in their old order."""

    def place(number: int) -> tuple[float, float]:
        rank = tracks[number].rank
        return rank_of.get(number, math.inf), math.inf if rank is None else rank

    top = [number for number, track in enumerate(tracks) if track.parent == NO_TRACK and track.lane_of == NO_TRACK]
    position = {number: position for position, number in enumerate(sorted(top, key=place))}
    for number, track in enumerate(tracks):
        yield structs.replace(track, rank=position[number]) if number in position else track


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


# -- tables of sums -------------------------------------------------------------------------------------------------

COUNTS_DIFFER = noted(
    "merge.rows_and_slices_differ",
    "a name has more or fewer rows than slices, so it is not known which belong together: the rows stay in their table",
)

_ANONYMOUS = re.compile(r"\((?:anonymous namespace|unnamed)\)::|<unnamed>::")
_MANY_UNKNOWN = 0.8


def host_of(sources: Sequence[SourceInfo], index: int) -> int | None:
    """Return the only input that the totals of input `index` may summarise; None if there is none or more than one."""
    hosts = _possible_hosts(sources, index)
    return hosts[0] if len(hosts) == 1 else None


def _possible_hosts(sources: Sequence[SourceInfo], index: int) -> list[int]:
    """Return the inputs of the right format that are no totals themselves: a format may have recordings and totals."""
    formats = sources[index].belongs_to
    return [number for number, other in enumerate(sources) if other.format in formats and not other.belongs_to]


def join_totals(traces: Sequence[Trace]) -> list[Trace]:
    """Move rows that describe a slice of another trace into the args of that slice; return the traces."""
    joined = list(traces)
    sources = [trace.sources[0] for trace in traces]
    for index, source in enumerate(sources):
        host = host_of(sources, index)
        if host is not None:
            _note_unknown_names(joined[index], joined[host])
        if host is not None and source.join_category:
            joined[index], joined[host] = _join(joined[index], joined[host], source.join_category)
    return joined


def adopt_totals(trace: Trace) -> Trace:
    """Return the merged trace with each table of totals under the process of the input that it summarises."""
    parents: dict[int, TrackId] = {}
    for index, source in enumerate(trace.sources):
        if source.belongs_to:
            host = host_of(trace.sources, index)
            _note(trace.sources, index, host)
            if host is not None:
                parents[index] = _top_process(trace, host)
    if not parents:
        return trace
    kind, parent, source_of = (
        trace.tracks.column("kind"),
        trace.tracks.column("parent"),
        trace.tracks.column("source"),
    )
    is_top = (kind == TrackKind.TRACK) & (parent == NO_TRACK)
    for index, process in parents.items():
        parent[is_top & (source_of == index)] = process
    return _sources_last(trace.with_tables(tracks=trace.tracks.replaced(parent=parent)), list(parents))


def _sources_last(trace: Trace, last: list[int]) -> Trace:
    """Return the trace with the tracks of the inputs `last` behind all others, since parents come first."""
    ordered = renumbered(trace, np.argsort(np.isin(trace.tracks.column("source"), last), kind="stable"))
    return trace if ordered is trace else sort_events(ordered)


def _top_process(trace: Trace, source: int) -> TrackId:
    """Return the first process of an input; NO_TRACK if it has none: then a table is put beside its tracks."""
    kind, sources = trace.tracks.column("kind"), trace.tracks.column("source")
    numbers = np.flatnonzero((sources == source) & (kind == TrackKind.PROCESS))
    return TrackId(int(numbers[0])) if len(numbers) else NO_TRACK


def _note(sources: Sequence[SourceInfo], index: int, host: int | None) -> None:
    source = sources[index]
    if host is None:
        fitting = [sources[number].name for number in _possible_hosts(sources, index)]
        what = f"could be about {' or '.join(fitting)}" if fitting else f"no {' or '.join(source.belongs_to)} input"
        source.notes.append(f"the table is shown on its own: {what}")
    else:
        source.notes.append(f"the table is shown with {sources[host].name}")


def _note_unknown_names(totals: Trace, host: Trace) -> None:
    """Add a note if the table shares few names with the recording: it may be of another run."""
    names = {plain_name(totals.strings[name]) for name in np.unique(totals.instants.name).tolist()}
    known = {plain_name(text) for text in host.strings} | {plain_name(frame.name) for frame in host.frames}
    unknown_names = names - known
    if not len(host.slices.ts):
        return  # samples may hold addresses where the table has function names
    if len(unknown_names) > _MANY_UNKNOWN * len(names):
        totals.sources[0].notes.append(
            f"{len(unknown_names)} of the {len(names)} names in the table do not occur in {host.sources[0].name}: "
            "is it of the same run?"
        )


def plain_name(name: str) -> str:
    """Return a function name without return type, namespaces, template arguments and parameters.

    >>> plain_name("void at::native::(anonymous namespace)::add_kernel<float, 4>(int, float*)")
    'add_kernel'
    """
    head = re.split(r"[<(]", _ANONYMOUS.sub("", name), maxsplit=1)[0].strip()
    return head.rpartition(" ")[2].rpartition("::")[2] or name


# -- rows that describe slices --------------------------------------------------------------------------------------


def _join(totals: Trace, host: Trace, category: str) -> tuple[Trace, Trace]:
    rows = _by_name(totals, totals.instants, totals.instants.ts, np.arange(len(totals.instants.ts)))
    kernels = np.flatnonzero(host.slices.category == _string(host, category))
    slices = _by_name(host, host.slices, _launches(host), kernels)
    pairs: list[tuple[int, int]] = []
    for name, rows_of_name in rows.items():
        slices_of_name = slices.get(name, [])
        if len(rows_of_name) == len(slices_of_name):
            pairs += zip(rows_of_name, slices_of_name, strict=True)
        else:
            source = totals.sources[0]
            source.diagnostics.add(
                COUNTS_DIFFER, f"{name}: {len(rows_of_name)} rows, {len(slices_of_name)} slices", len(rows_of_name)
            )
    table, args = totals.instants, totals.args
    more = (args.get(int(table.args_at[row]), int(table.args_len[row])) for row, _ in pairs)
    return _without(totals, [row for row, _ in pairs], host), with_more_args(host, (at for _, at in pairs), more)


def _string(trace: Trace, text: str) -> int:
    return trace.strings.index(text) if text in trace.strings else -1


def _by_name(trace: Trace, table: Instants | Slices, order: Any, rows: Any) -> dict[str, list[int]]:
    """Return the rows of each name, in the given order."""
    by_name: dict[str, list[int]] = defaultdict(list)
    for row in rows[np.argsort(order[rows], kind="stable")].tolist():
        by_name[plain_name(trace.strings[table.name[row]])].append(row)
    return by_name


def _launches(trace: Trace) -> Any:
    """Return the launch time of each slice, ns: the start of the slice that a flow comes from, else its own start."""
    times = trace.slices.ts.copy()
    times[trace.flows.to_slice] = trace.slices.ts[trace.flows.from_slice]
    return times


def _without(totals: Trace, rows: list[int], host: Trace) -> Trace:
    source = totals.sources[0]
    onto = host.sources[0].name
    joined = Counted(f"row joined onto a slice of {onto}", f"rows joined onto the slices of {onto}")
    balance = structs.replace(source.balance, written=source.balance.written - len(rows))
    balance.merged = balance.merged + Counter({joined: len(rows)})
    kept = np.ones(len(totals.instants.ts), bool)
    kept[rows] = False
    instants = take(totals.instants, np.flatnonzero(kept))
    return totals.with_tables(sources=[structs.replace(source, balance=balance)], instants=instants)

"""Find the processes and threads that several inputs share.

A process is identified by machine and pid, a thread by machine and tid, which is unique on a machine at a time: an
input that states only the tid still identifies the thread. Tracks of several inputs are joined in one process if

- the inputs are of one machine (see `traceconv.align.domains`), their numbers are those of the operating system, and
  they recorded the process at about the same time;
- an input does not state its process, and only one process of the merge fits: on the same machine, at the same time, of
  a runtime that can have recorded it.

Processes of different machines, of different ranks, or of two recordings of one runtime at the same time are never
joined: a runtime has one profiler, so the latter are two processes, in containers with pids of their own. If several
processes fit, none is chosen. Decisions are data; the end of this module makes sentences of them.
"""

from __future__ import annotations

import enum
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from traceconv.align.domains import Basis, Machine, clocks_of_tracks
from traceconv.io.shown import listed
from traceconv.model.clocks import ClockMap, Run
from traceconv.model.columns import I64, occurring
from traceconv.model.numbers import EVER, FOREVER
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import Trace
from traceconv.model.track_table import BEYOND, NO_TRACK, Track, TrackKind

if TYPE_CHECKING:
    from traceconv.align import Alignment
    from traceconv.align.duration_layout import Placement

#: A pid is not reused within this time, ns: systems count pids up to 32768 or more before they start again.
REUSE_NS = 60 * 10**9
#: The most files, numbers or names in a list.
_MOST_LISTED = 4

Span = tuple[int, int]


class By(enum.StrEnum):
    """The reason why tracks belong to a process."""

    PID = "pid"
    TID = "tid"
    WRITER = "only process that can have written it"
    CALLS = "calls inside slices of the process"


class Why(enum.StrEnum):
    """The reason why tracks that could belong together stay apart."""

    OWN = "its input shows them as two"
    MACHINES = "different machines"
    RANKS = "different ranks"
    TWICE = "recordings of one runtime at the same time"
    SEVERAL = "several processes can be meant"
    UNKNOWN = "no input tells the process"
    UNSAID = "nothing says that it is one machine"


class Recording(Struct, frozen=True):
    """An input and its machine."""

    source: SourceInfo
    machine: Machine


class Seen(Struct, frozen=True):
    """A process, a thread of an unknown process, or a track without a process, in one input.

    Attributes:
        span: its first and last time on trace time, ns.
        number: the pid or tid, None if there is none.
        inside: the process, by input and track, whose slices its own were laid into; None if it has times of its own.
    """

    input: int
    track: int
    span: Span
    number: int | None = None
    is_process: bool = True
    tids: frozenset[int] = frozenset()
    name: str = ""
    inside: tuple[int, int] | None = None


#: A process in one or several inputs; the first one keeps its track.
Process = list[Seen]
#: Candidates for a process, each with the basis on which both are taken to be of one machine; None if not needed.
Bases = dict[Seen, Basis | None]


class View(Struct, frozen=True):
    """The processes, threads and tracks of all inputs that are compared.

    Attributes:
        strays: the tracks without a process, of inputs that do not state their process.
    """

    recordings: list[Recording]
    processes: list[Seen] = []
    threads: list[Seen] = []
    strays: list[Seen] = []

    def basis(self, seen: Seen, other: Seen) -> Basis | None:
        """Return the basis on which equal numbers of two inputs are the same process; None without one."""
        a, b = self.recordings[seen.input], self.recordings[other.input]
        basis = a.machine.same_as(b.machine)
        counts = (a.source.real_ids and b.source.real_ids) or (a.machine.by_user and b.machine.by_user)
        return basis if counts and basis is not Basis.NOBODY else None

    def bar(self, seen: Seen, other: Seen) -> Why | None:
        """Return the reason why two tracks of equal number are not the same; None if they can be."""
        if seen.input == other.input:
            return Why.OWN
        a, b = self.recordings[seen.input], self.recordings[other.input]
        if a.machine.key and b.machine.key and a.machine.key != b.machine.key:
            return Why.MACHINES
        if a.source.rank is not None and b.source.rank is not None and a.source.rank != b.source.rank:
            return Why.RANKS
        if a.source.format == b.source.format and not a.source.several_at_once and gap(seen.span, other.span) < 0:
            return Why.TWICE
        return Why.UNSAID if self.basis(seen, other) is None else None


class Identity(Struct, frozen=True):
    """Tracks that are joined, or that could be and stay apart.

    Attributes:
        tracks: if joined: the process, or the thread of an unknown process, then the tracks of one other input that
            join it. If apart: the tracks, then those they could be joined with. Threads whose process no input states
            are all listed.
        basis: the basis on which both are taken to be of one machine; None if not needed.
    """

    why: By | Why
    tracks: tuple[Seen, ...]
    basis: Basis | None = None


class Together(Struct, frozen=True):
    """The processes and threads that several inputs share, then those that stay apart though they look the same."""

    recordings: list[Recording] = []
    identities: list[Identity] = []

    def without(self, inputs: Collection[int]) -> Together:
        """Return a copy without the results that rest on the times of some inputs."""
        left = [found for found in self.identities if not {seen.input for seen in found.tracks}.intersection(inputs)]
        return Together(self.recordings, left)

    def describe(self) -> list[str]:
        """Return a line for each file that joined a process, and for each result that stays apart."""
        same: dict[object, list[Identity]] = defaultdict(list)
        for number, found in enumerate(self.identities):
            if found.why is not Why.UNSAID:
                # these reasons hold for all processes of the inputs
                shared = found.why in (Why.MACHINES, Why.RANKS, Why.TWICE)
                same[found.why, tuple(seen.input for seen in found.tracks), 0 if shared else number].append(found)
        return [_words(self.recordings, identities) for identities in same.values()]

    def as_json(self) -> list[dict[str, Any]]:
        """Return the members for the report and the metadata of the output."""
        return [_as_json(self.recordings, found) for found in self.identities]


def viewed(traces: Sequence[Trace], alignment: Alignment) -> View:
    """Return the processes, threads and tracks of all inputs, on trace time.

    Args:
        alignment: the maps of their clocks to trace time; inputs that are placed by a guess only are left out.
    """
    view = View([Recording(trace.sources[0], alignment.machines[index]) for index, trace in enumerate(traces)])
    for index, (trace, maps) in enumerate(zip(traces, alignment.maps, strict=True)):
        if any(clock_map.verdict.unusable for clock_map in maps.values()):
            continue
        placement = alignment.placements.get(index)
        inside = None if placement is None else _around(traces[placement.host], placement)
        can_stray = trace.sources[0].runs_in and (placement is None or inside is not None)
        for track, seen in _shown(trace, index, maps, inside):
            if seen.is_process and not track.unknown:
                view.processes.append(seen)
            elif track.kind is TrackKind.THREAD and track.tid is not None and trace.tracks[track.parent].unknown:
                view.threads.append(seen)
            elif not seen.is_process and track.parent == NO_TRACK and can_stray:
                view.strays.append(seen)
    return view


def _shown(
    trace: Trace, index: int, maps: Mapping[int, ClockMap], inside: tuple[int, int] | None
) -> Iterator[tuple[Track, Seen]]:
    """Yield the tracks of an input that have events, except lanes."""
    tids: dict[int, set[int]] = defaultdict(set)
    kind, parent, tid = trace.tracks.column("kind"), trace.tracks.column("parent"), trace.tracks.numbers()
    for number in np.flatnonzero((kind == TrackKind.THREAD) & (tid > BEYOND)).tolist():
        tids[int(parent[number])].add(int(tid[number]))
    firsts, lasts = _spans(trace, maps)
    for number in np.flatnonzero(firsts <= lasts).tolist():
        track = trace.tracks[number]
        if track.lane_of == NO_TRACK:
            is_process = track.kind is TrackKind.PROCESS
            stated, span = track.pid if is_process else track.tid, (int(firsts[number]), int(lasts[number]))
            yield track, Seen(index, number, span, stated, is_process, frozenset(tids[number]), track.name, inside)


def _around(host: Trace, placement: Placement) -> tuple[int, int] | None:
    """Return the process, by input and track, whose slices contain those of a log; None unless it is one process."""
    around = set()
    for number in np.unique(host.slices.track[placement.parents()]).tolist():
        while host.tracks[number].parent != NO_TRACK:
            number = int(host.tracks[number].parent)
        around.add(number)
    (process, *others) = around
    return (placement.host, process) if not others and host.tracks[process].kind is TrackKind.PROCESS else None


def _spans(trace: Trace, maps: Mapping[int, ClockMap]) -> tuple[I64, I64]:
    """Return the first and last time (ns) on each track and below, of totals if alone; without any, reversed."""
    firsts, lasts = trace.extents()
    clocks, has_events = clocks_of_tracks(trace), firsts <= lasts
    is_timed = np.zeros(len(firsts), bool)
    for clock in occurring(clocks[: len(firsts)][has_events]):
        on_clock = has_events & (clocks == clock)
        firsts[on_clock], lasts[on_clock] = maps[clock].apply(firsts[on_clock]), maps[clock].apply(lasts[on_clock])
        is_timed[on_clock] = trace.clocks[clock].run is not Run.TOTALS
    totals, timed = (
        _around_children(trace, np.where(rows, firsts, FOREVER), np.where(rows, lasts, EVER))
        for rows in (has_events & ~is_timed, is_timed)
    )
    known = timed[0] <= timed[1]
    return np.where(known, timed[0], totals[0]), np.where(known, timed[1], totals[1])


def _around_children(trace: Trace, firsts: I64, lasts: I64) -> tuple[I64, I64]:
    """Widen the span of each track to those of its descendants, in place; return the spans."""
    parents, first, last = trace.tracks.column("parent").data, firsts.data, lasts.data
    for number in range(len(parents) - 1, -1, -1):  # parents come before their children
        parent = parents[number]
        if parent != NO_TRACK:
            first[parent], last[parent] = min(first[parent], first[number]), max(last[parent], last[number])
    return firsts, lasts


def gap(first: Span, second: Span) -> int:
    """Return the distance of two spans in ns; negative if they overlap."""
    return max(first[0] - second[1], second[0] - first[1])


def identified(view: View) -> Together:
    """Decide which processes and threads are the same."""
    # 0 is the idle task of each CPU, and the pid that tools give to devices.
    numbered = [seen for seen in view.processes if seen.number is not None and seen.number > 0]
    processes, identities = _by_number(view, numbered, By.PID)
    processes += [[seen] for seen in view.processes if seen.number is None or seen.number <= 0]
    processes.sort(key=lambda process: _IN_ORDER(process[0]))
    for same in _grouped(numbered, attrgetter("number")):
        if len(same) > 1:
            identities += _not_of_one_machine(view, same)
    identities += _threads(view, processes) + _strays(view, processes)
    return Together(view.recordings, sorted(identities, key=lambda identity: isinstance(identity.why, Why)))


def _by_number(view: View, members: Iterable[Seen], by: By) -> tuple[list[Process], list[Identity]]:
    """Join processes or threads of equal number on one machine at about the same time."""
    processes: list[Process] = []
    identities: list[Identity] = []
    for same in _grouped(members, lambda seen: (view.recordings[seen.input].machine.key or seen.input, seen.number)):
        for run in _runs(same, REUSE_NS):
            clusters, apart = _clusters(view, run) if len(run) > 1 else ([run], [])
            processes += clusters
            identities += apart
            pairs = [(first, other) for first, *others in clusters for other in others]
            identities += [Identity(by, pair, view.basis(*pair)) for pair in pairs]
    return processes, identities


def _clusters(view: View, members: Sequence[Seen]) -> tuple[list[Process], list[Identity]]:
    """Join tracks of equal number and time, and return the groups and those that stay apart.

    Two that can be the same are joined, unless one of them could also be the same as a third one that the other cannot
    be.
    """
    bars = {frozenset(pair): why for pair in combinations(members, 2) if (why := view.bar(*pair)) is not None}
    clusters: dict[object, Process] = defaultdict(list)
    apart: list[Identity] = []
    for seen in members:
        near = [other for other in members if frozenset((seen, other)) not in bars]
        clear = all(frozenset(pair) not in bars for pair in combinations(near, 2))
        clusters[frozenset(near) if clear else seen].append(seen)
        if not clear and len({other.input for other in near}) > 1:
            apart.append(Identity(Why.SEVERAL, (seen, *(other for other in near if other != seen))))
    for why in (Why.RANKS, Why.TWICE):
        apart += _apart(why, members, {pair for pair, why_apart in bars.items() if why_apart is why})
    return list(clusters.values()), apart


def _not_of_one_machine(view: View, members: Sequence[Seen]) -> Iterator[Identity]:
    """Yield processes of equal pid and time that are not known to be of one machine, or known not to be."""
    for number, seen in enumerate(members):
        for other in members[:number]:
            if gap(seen.span, other.span) <= 0 and view.bar(seen, other) is Why.UNSAID:
                yield Identity(Why.UNSAID, (seen, other))
                break
    real = [seen for seen in members if view.recordings[seen.input].source.real_ids]
    pairs = [(seen, other) for seen, other in combinations(real, 2) if gap(seen.span, other.span) < 0]
    yield from _apart(Why.MACHINES, real, {frozenset(pair) for pair in pairs if view.bar(*pair) is Why.MACHINES})


def _apart(why: Why, members: Sequence[Seen], pairs: Collection[frozenset[Seen]]) -> Iterator[Identity]:
    """Yield the results for pairs that stay apart for one reason: each track with those that it stays apart from."""
    for number, seen in enumerate(members):
        others = [other for other in members[number + 1 :] if frozenset((seen, other)) in pairs]
        if others and not any(frozenset((before, seen)) in pairs for before in members[:number]):
            yield Identity(why, (seen, *others))


def _threads(view: View, processes: Sequence[Process]) -> list[Identity]:
    """Join threads of unknown processes to the process that has a thread of that tid, or to each other."""
    having: dict[int | None, list[Process]] = defaultdict(list)
    for process in processes:
        for tid in {tid for seen in process for tid in (*seen.tids, seen.number)}:
            having[tid].append(process)
    numbered = [seen for seen in view.threads if seen.number is not None and seen.number > 0]
    able = {seen: _having(view, having[seen.number], seen) for seen in numbered}
    owned, identities = _owned(able)
    alone = [thread for thread, owners in able.items() if not owners]
    if processes:
        identities += [Identity(Why.UNKNOWN, tuple(group)) for group in _grouped(alone, attrgetter("input"))]
    identities += [found for process, threads in owned.items() for found in _moved(By.TID, process, threads)]
    return identities + _by_number(view, alone, By.TID)[1]


def _having(view: View, processes: Iterable[Process], thread: Seen) -> Bases:
    """Return the processes that have the tid of a thread, with bases; those at its time before those near it."""
    having: dict[Seen, tuple[int, Basis]] = {}
    for process in processes:
        threads = [seen for seen in process if thread.number in (*seen.tids, seen.number)]
        basis = next(filter(None, (view.basis(seen, thread) for seen in threads)), None)
        if basis is not None:
            firsts, lasts = zip(*(seen.span for seen in process), strict=True)
            having[process[0]] = gap((min(firsts), max(lasts)), thread.span), basis
    most = 0 if any(apart <= 0 for apart, _ in having.values()) else REUSE_NS
    return {process: basis for process, (apart, basis) in having.items() if apart <= most}


def _strays(view: View, processes: Sequence[Process]) -> list[Identity]:
    """Join tracks of inputs that state no process to the only process that can have written them."""
    runtimes = {format for recording in view.recordings for format in recording.source.runs_in}
    shown = [(process[0], seen) for process in processes for seen in process]
    writing = [(first, seen) for first, seen in shown if view.recordings[seen.input].source.format in runtimes]
    around = {(seen.input, seen.track): first for first, seen in shown}
    able: dict[Seen, Bases] = {}
    for stray in view.strays:
        if stray.inside is None:
            able[stray] = _writers(view, writing, stray)
        elif stray.inside in around:
            able[stray] = {around[stray.inside]: None}
    owned, identities = _owned(able)
    for process, strays in owned.items():
        at_once = _at_once(view, strays)
        identities += [Identity(Why.TWICE, tuple(run)) for run in at_once]
        apart = {stray for run in at_once for stray in run}
        identities += _moved(By.WRITER, process, {seen: basis for seen, basis in strays.items() if seen not in apart})
    return identities


def _writers(view: View, shown: Iterable[tuple[Seen, Seen]], stray: Seen) -> Bases:
    """Return the processes that can have written a track, with bases; without pids, those of an input are one."""
    recording = view.recordings[stray.input]
    bases: Bases = {}
    without_number: set[int] = set()
    for process, seen in shown:
        other = view.recordings[seen.input]
        if process in bases or seen.input in without_number or other.source.format not in recording.source.runs_in:
            continue
        basis = other.machine.same_as(recording.machine)
        if basis is not None and gap(seen.span, stray.span) <= 0:
            bases[process] = basis
            without_number |= {seen.input} if seen.number is None else set()
    return bases


def _at_once(view: View, strays: Iterable[Seen]) -> list[list[Seen]]:
    """Return groups of tracks at one time that cannot all be of one process, since a process writes one log of a kind.

    Tracks that were laid into slices are left out: their times are those of the slices.
    """
    kinds = _grouped(strays, lambda seen: view.recordings[seen.input].source.format)
    pauses = [math.inf if any(seen.inside is not None for seen in group) else -1 for group in kinds]
    return [run for group, pause in zip(kinds, pauses, strict=True) for run in _runs(group, pause) if len(run) > 1]


def _owned(able: Mapping[Seen, Bases]) -> tuple[dict[Seen, Bases], list[Identity]]:
    """Return the tracks that fit one process only, by process; and the results for tracks that fit several."""
    owned: dict[Seen, Bases] = defaultdict(dict)
    for seen, owners in able.items():
        if len(owners) == 1:
            ((process, basis),) = owners.items()
            owned[process][seen] = basis
    return owned, [Identity(Why.SEVERAL, (seen, *owners)) for seen, owners in able.items() if len(owners) > 1]


def _moved(by: By, process: Seen, bases: Bases) -> list[Identity]:
    """Return the results for tracks that join a process, by input; without a basis, its slices contain theirs."""
    groups = [(bases[group[0]], group) for group in _grouped(bases, lambda seen: (seen.input, bases[seen]))]
    return [Identity(By.CALLS if basis is None else by, (process, *group), basis) for basis, group in groups]


def _runs(members: Iterable[Seen], pause: float) -> list[list[Seen]]:
    """Group tracks whose spans follow each other within `pause` (ns); each group is in order of inputs and tracks."""
    runs: list[list[Seen]] = []
    until = 0
    for seen in sorted(members, key=attrgetter("span", "input")):
        if not runs or seen.span[0] - until > pause:
            runs.append([])
            until = seen.span[1]
        runs[-1].append(seen)
        until = max(until, seen.span[1])
    return [sorted(run, key=_IN_ORDER) for run in runs]


_IN_ORDER = attrgetter("input", "track")


def _grouped(members: Iterable[Seen], key: Callable[[Seen], object]) -> list[list[Seen]]:
    """Return the items grouped by key, groups in order of their first item."""
    groups: dict[object, list[Seen]] = defaultdict(list)
    for seen in members:
        groups[key(seen)].append(seen)
    return list(groups.values())


def _words(recordings: Sequence[Recording], same: Sequence[Identity]) -> str:
    """Return the sentence for results; those that stay apart in the same files for the same reason share one."""
    if isinstance(same[0].why, Why):
        return _apart_words(recordings, same)
    (identity,) = same
    into, moved = (recordings[seen.input].source.name for seen in identity.tracks[:2])
    what, name, why = "process", _name(identity.tracks[0]), _basis_words(recordings, identity)
    if identity.why is By.CALLS:
        why = "the calls of the log lie inside its slices"
    elif identity.why is By.WRITER:
        why = f"only this process can have written the log; {why}"
    elif identity.why is By.TID and identity.tracks[0].is_process:
        moved = f"{moved} ({_name(*identity.tracks[1:])})"
    elif identity.why is By.TID:
        what = "thread"
    return f"{name}: one {what} in {into} and {moved}: {why}"


def _basis_words(recordings: Sequence[Recording], identity: Identity) -> str:
    """Return the words for the basis on which both are of one machine."""
    sides = [recordings[seen.input] for seen in identity.tracks[:2]]
    a, b = (side.machine.host for side in sides)
    if identity.basis is Basis.HOST:
        return f"both are from host {a}"
    if identity.basis is Basis.BOOT:
        return "both are from one boot" if a == b or not (a and b) else f"{a} and {b} are from one boot"
    if identity.basis is Basis.USER:
        return "--same-machine says that it is one machine"
    if identity.basis is Basis.NOBODY:
        return "assumed: no input names its machine"
    unnamed = [side.source.name for side in sides if not side.machine.host]
    none = f"{unnamed[0]} names no machine" if len(unnamed) == 1 else "neither names a machine"
    machines = [recording.machine for recording in recordings if recording.machine.key == sides[0].machine.key]
    host = next((machine.host for machine in machines if machine.host), "")
    return f"assumed: {none}, all others are from {f'host {host}' if host else 'one machine'}"


def _apart_words(recordings: Sequence[Recording], same: Sequence[Identity]) -> str:
    """Return the sentence for tracks that stay apart in the same files for the same reason."""
    identity = same[0]
    recordings_of = [recordings[seen.input] for seen in identity.tracks]
    file, name = recordings_of[0].source.name, _name(identity.tracks[0])
    if identity.why is Why.SEVERAL:
        others = zip(identity.tracks[1:], recordings_of[1:], strict=True)
        meant = [f"{_name(seen)} of {other.source.name}" for seen, other in others]
        return f"{name} of {file} stays apart: it may belong to {_few(meant, 'or')}"
    if identity.why is Why.UNKNOWN:
        stay, their = ("stays", "its") if len(identity.tracks) == 1 else ("stay", "their")
        return f"{_name(*identity.tracks)} of {file} {stay} apart: no input names {their} process"
    each = "" if len(same) == 1 else " each"
    files = _few([recording.source.name for recording in recordings_of])
    names = _few([_name(part.tracks[0]) for part in same])
    return f"{names}: not one process{each} in {files}: {_why_words(identity.why, recordings_of)}"


def _why_words(why: By | Why, recordings: Sequence[Recording]) -> str:
    """Return the words for the reason why processes stay apart."""
    if why is Why.MACHINES:
        hosts = list(dict.fromkeys(recording.machine.host for recording in recordings))
        differ = len(hosts) > 1 and all(hosts)
        return f"they are from the hosts {_few(hosts)}" if differ else "they are from different boots"
    if why is Why.RANKS:
        return f"they are of the ranks {_few([recording.source.rank for recording in recordings])}"
    if why is Why.TWICE:
        return f"both are recordings of {recordings[0].source.format} at the same time"
    return "no input shows that they are from one machine"


def _name(first: Seen, *others: Seen) -> str:
    """Return the words for a process, a track, or several threads."""
    if others:
        return f"threads {_few([seen.number for seen in (first, *others)])}"
    return first.name if first.number is None else f"{'pid' if first.is_process else 'thread'} {first.number}"


def _few(words: Sequence[object], last: str = "and") -> str:
    """Return a list of words, cut after the first few: "a, b and 3 more"."""
    shown = list(words[:_MOST_LISTED])
    if len(words) > len(shown):
        shown.append(f"{len(words) - len(shown)} more")
    return f"{listed(shown[:-1])} {last} {shown[-1]}" if len(shown) > 1 else str(shown[0])


def _as_json(recordings: Sequence[Recording], identity: Identity) -> dict[str, Any]:
    """Return the members for the report; joined tracks include the two files."""
    joined = isinstance(identity.why, By)
    numbered = [seen for seen in identity.tracks if seen.number is not None]
    return {
        "one": joined,
        "files": [recordings[seen.input].source.name for seen in (identity.tracks[:2] if joined else identity.tracks)],
        "pids": list(dict.fromkeys(seen.number for seen in numbered if seen.is_process)),
        "tids": list(dict.fromkeys(seen.number for seen in numbered if not seen.is_process)),
        "by": str(identity.why),
        "machine": identity.basis and str(identity.basis),
        "assumed": identity.basis is not None and identity.basis.assumed,
        "words": _words(recordings, [identity]),
    }

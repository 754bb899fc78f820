"""Which processes and threads of several inputs are one.

A process is known by its machine and pid, a thread by its machine and tid, which is unique there at a time: an input
that names only the tid still names the thread. So what several inputs say of one process comes together where

- they are of one machine (`traceconv.align.machines` says how that is known), their numbers are those of the operating
  system, and they saw it at about the same time;
- an input does not say which process wrote it, and only one of the merge can have: on the same machine, at the same
  time, of a runtime that its writer runs in.

Never one are processes of inputs of several machines, of inputs that state different ranks, or of recordings of one
runtime at the same time: a runtime has one profiler, so there are two of it, in containers that count pids anew. Where
several could be meant, none is taken. What is decided is data; the sentences are made at the end of this module.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from traceconv.align.machines import Basis, Machine
from traceconv.clocks import Run
from traceconv.ir.trace import NO_TRACK, SourceInfo, Trace, TrackKind

if TYPE_CHECKING:
    from traceconv.align import Alignment
    from traceconv.align.duration_layout import Placement

#: A process that ends is not replaced by another one of the same pid within this time.
REUSE_NS = 60 * 10**9

Span = tuple[int, int]


class By(enum.StrEnum):
    """What tells that something is of a process."""

    PID = "pid"
    TID = "tid"
    WRITER = "only process that can have written it"
    CALLS = "calls inside slices of the process"


class Why(enum.StrEnum):
    """Why something stays apart that could be one."""

    OWN = "its input shows them as two"
    MACHINES = "different machines"
    RANKS = "different ranks"
    TWICE = "recordings of one runtime at the same time"
    SEVERAL = "several processes can be meant"
    UNKNOWN = "no input tells the process"
    UNSAID = "nothing says that it is one machine"


@dataclass(frozen=True, slots=True)
class Recording:
    """What is known of an input as a whole."""

    file: str
    format: str
    machine: Machine
    rank: int | None = None
    real_ids: bool = False
    several_at_once: bool = False
    runs_in: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Seen:
    """A process, a thread of an unknown process, or a track that belongs to no process, as one input shows it.

    Attributes:
        input: its index.
        track: its number there.
        span: its first and last instant on trace time, ns.
        number: the pid or tid, None if there is none.
        is_process: whether it is a process.
        tids: of the threads of a process.
        name: of the track.
        inside: the process whose slices its own were laid into, by input and track; None if it has times of its own.
    """

    input: int
    track: int
    span: Span
    number: int | None = None
    is_process: bool = True
    tids: frozenset[int] = frozenset()
    name: str = ""
    inside: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class View:
    """All that is known of some inputs for telling what is one.

    Attributes:
        recordings: the inputs.
        processes: the processes that they show, by input and in order of their tracks.
        threads: the threads whose process is not known.
        strays: the tracks without a process of inputs that do not say which process wrote them.
    """

    recordings: list[Recording]
    processes: list[Seen] = field(default_factory=list)
    threads: list[Seen] = field(default_factory=list)
    strays: list[Seen] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Joined:
    """Tracks of one input that are of a process that another one shows.

    Attributes:
        by: what tells it.
        basis: how it is known that both are of one machine; None if nobody needs to know.
        into: the process, or the thread of an unknown process.
        moved: what comes there, of one input.
    """

    by: By
    basis: Basis | None
    into: Seen
    moved: tuple[Seen, ...]


#: Reasons that lie in the files, so that they hold for all their processes.
_OF_FILES = (Why.MACHINES, Why.RANKS, Why.TWICE)


@dataclass(frozen=True, slots=True)
class Apart:
    """What could be one and stays apart: the first of `seen`, and what it could be one with.

    Threads of which no input tells the process are all in `seen`.
    """

    why: Why
    seen: tuple[Seen, ...]


@dataclass(frozen=True, slots=True)
class Together:
    """Which processes and threads of several inputs are one, and which are not though they might seem so."""

    recordings: list[Recording] = field(default_factory=list)
    joined: list[Joined] = field(default_factory=list)
    apart: list[Apart] = field(default_factory=list)

    def without(self, inputs: Collection[int]) -> Together:
        """The same, but for what rests on the times of some inputs."""
        joined = [one for one in self.joined if not {one.into.input, one.moved[0].input}.intersection(inputs)]
        apart = [one for one in self.apart if not {seen.input for seen in one.seen}.intersection(inputs)]
        return Together(self.recordings, joined, apart)

    def describe(self) -> list[str]:
        """A line for each process and file that joined it, and for each that stays apart."""
        lines = [_joined_words(self.recordings, one) for one in self.joined]
        alike: dict[tuple[Why, tuple[int, ...], int], list[Apart]] = defaultdict(list)
        for number, one in enumerate(self.apart):
            if one.why is not Why.UNSAID:
                own = 0 if one.why in _OF_FILES else number
                alike[one.why, tuple(seen.input for seen in one.seen), own].append(one)
        return lines + [_apart_words(self.recordings, ones) for ones in alike.values()]

    def as_json(self) -> list[dict[str, Any]]:
        """For the report and the metadata of the output."""
        return [
            *(_joined_json(self.recordings, one) for one in self.joined),
            *(_apart_json(self.recordings, one) for one in self.apart),
        ]


# -- what inputs show -----------------------------------------------------------------------------------------------


def viewed(traces: Sequence[Trace], alignment: Alignment) -> View:
    """What some inputs show of processes, on trace time.

    Args:
        traces: the inputs, laid out.
        alignment: how their clocks are put on trace time; what is there by a guess only tells nothing.
    """
    view = View(
        [_recording(trace.sources[0], one) for trace, one in zip(traces, alignment.machines, strict=True)],
    )
    for index, (trace, maps) in enumerate(zip(traces, alignment.maps, strict=True)):
        if any(found.verdict.refused for found in maps.values()):
            continue
        inside = None
        if (placement := alignment.placements.get(index)) is not None:
            inside = _around(traces[placement.host], placement)
        can_stray = trace.sources[0].runs_in and (placement is None or inside is not None)
        tids = _tids(trace)
        for number, span in sorted(_spans(trace, alignment, index).items()):
            seen = _seen(trace, index, number, span, tids[number], inside)
            track = trace.tracks[number]
            if track.lane_of != NO_TRACK:
                continue
            if track.kind is TrackKind.PROCESS and not track.unknown:
                view.processes.append(seen)
            elif track.kind is TrackKind.THREAD and track.tid is not None and trace.tracks[track.parent].unknown:
                view.threads.append(seen)
            elif track.kind is not TrackKind.PROCESS and track.parent == NO_TRACK and can_stray:
                view.strays.append(seen)
    return view


def _recording(source: SourceInfo, machine: Machine) -> Recording:
    return Recording(
        source.name,
        source.format,
        machine,
        source.rank,
        source.real_ids,
        source.several_at_once,
        source.runs_in,
    )


def _tids(trace: Trace) -> dict[int, set[int]]:
    """The numbers of the threads of each process."""
    found: dict[int, set[int]] = defaultdict(set)
    for track in trace.tracks:
        if track.kind is TrackKind.THREAD and track.tid is not None:
            found[int(track.parent)].add(track.tid)
    return found


def _seen(trace: Trace, index: int, number: int, span: Span, tids: set[int], inside: tuple[int, int] | None) -> Seen:
    track = trace.tracks[number]
    is_process = track.kind is TrackKind.PROCESS
    return Seen(
        index, number, span, track.pid if is_process else track.tid, is_process, frozenset(tids), track.name, inside
    )


def _around(host: Trace, placement: Placement) -> tuple[int, int] | None:
    """The process whose slices hold those of a log, by input and track; None if there is none, or more than one."""
    found = set()
    for number in np.unique(host.slices.track[placement.parents()]).tolist():
        while host.tracks[number].parent != NO_TRACK:
            number = int(host.tracks[number].parent)
        found.add(number)
    (one, *others) = found
    return (placement.host, one) if not others and host.tracks[one].kind is TrackKind.PROCESS else None


def _spans(trace: Trace, alignment: Alignment, index: int) -> dict[int, Span]:
    """For each track the first and last instant of what is on and below it; of totals only if there is nothing else."""
    maps = alignment.maps[index]
    timed: dict[int, Span] = {}
    totals: dict[int, Span] = {}
    for number, (first, last) in trace.extents().items():
        clock = trace.tracks[number].clock
        span = maps[clock].at(first), maps[clock].at(last)
        (totals if trace.clocks[clock].run is Run.TOTALS else timed)[number] = span
    for spans in (timed, totals):
        for number in range(len(trace.tracks) - 1, -1, -1):  # parents stand before their children
            parent = int(trace.tracks[number].parent)
            if number in spans and parent != NO_TRACK:
                spans[parent] = _hull(spans[number], spans.get(parent, spans[number]))
    return totals | timed


def _hull(one: Span, other: Span) -> Span:
    return min(one[0], other[0]), max(one[1], other[1])


def gap(one: Span, other: Span) -> int:
    """How far two spans are apart in ns; negative when they overlap."""
    return max(one[0] - other[1], other[0] - one[1])


# -- which are one --------------------------------------------------------------------------------------------------


def together(traces: Sequence[Trace], alignment: Alignment) -> Together:
    """Which processes and threads of laid-out inputs are one, as they are put on one time axis."""
    return decide(viewed(traces, alignment))


def decide(view: View) -> Together:
    """Which of the processes and threads that are seen are one."""
    decision = _Decision(view)
    processes = decision.processes()
    decision.threads(processes)
    decision.strays(processes)
    return Together(view.recordings, decision.joined, decision.apart)


@dataclass(frozen=True, slots=True)
class _Process:
    """A process, as one or several inputs show it; the first one keeps its track."""

    members: list[Seen]

    @property
    def first(self) -> Seen:
        return self.members[0]

    @property
    def span(self) -> Span:
        return min(one.span[0] for one in self.members), max(one.span[1] for one in self.members)


class _Decision:
    """Decides what is one in a view, and collects that."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._recordings = view.recordings
        self.joined: list[Joined] = []
        self.apart: list[Apart] = []

    # -- by numbers -----------------------------------------------------------------------------------------------

    def _basis(self, one: Seen, other: Seen) -> Basis | None:
        """How it is known that equal numbers of two inputs mean the same; None if they need not."""
        a, b = self._recordings[one.input], self._recordings[other.input]
        basis = a.machine.same_as(b.machine)
        counts = (a.real_ids and b.real_ids) or a.machine.by_user
        return basis if counts and basis is not Basis.NOBODY else None

    def _bar(self, one: Seen, other: Seen) -> Why | None:
        """Why two of one number are not one; None if they can be."""
        if one.input == other.input:
            return Why.OWN
        a, b = self._recordings[one.input], self._recordings[other.input]
        if a.rank is not None and b.rank is not None and a.rank != b.rank:
            return Why.RANKS
        if a.format == b.format and not a.several_at_once and gap(one.span, other.span) < 0:
            return Why.TWICE
        return Why.UNSAID if self._basis(one, other) is None else None

    def _machine(self, seen: Seen) -> str:
        """What is equal for what is of one machine."""
        return self._recordings[seen.input].machine.key or f"input {seen.input}"

    def processes(self) -> list[_Process]:
        """All processes, those of several inputs as one."""
        found: list[_Process] = []
        of_pid: dict[tuple[str, int], list[Seen]] = defaultdict(list)
        unsaid: dict[int, list[Seen]] = defaultdict(list)
        for seen in self._view.processes:
            if seen.number is None or seen.number <= 0:
                found.append(_Process([seen]))
            else:
                of_pid[self._machine(seen), seen.number].append(seen)
                unsaid[seen.number].append(seen)
        for recorded in of_pid.values():
            for chain in _chains(recorded):
                for first, *others in self._clusters(chain):
                    found.append(_Process([first, *others]))
                    self.joined += [Joined(By.PID, self._basis(first, other), first, (other,)) for other in others]
        for seen_there in unsaid.values():
            self._note_unsaid(seen_there)
            self._note_machines(seen_there)
        return sorted(found, key=lambda process: (process.first.input, process.first.track))

    def _clusters(self, chain: list[Seen]) -> list[list[Seen]]:
        """Processes, or threads, of one number, machine and time, by which of them are one.

        Two that can be one are, unless one of them could as well be one with a third that the other one is not.
        """
        bars = {frozenset(pair): why for pair in combinations(chain, 2) if (why := self._bar(*pair)) is not None}
        clusters: dict[object, list[Seen]] = defaultdict(list)
        for one in chain:
            near = [other for other in chain if frozenset((one, other)) not in bars]
            clear = all(frozenset(pair) not in bars for pair in combinations(near, 2))
            clusters[frozenset(near) if clear else one].append(one)
            if not clear and len({other.input for other in near}) > 1:
                self.apart.append(Apart(Why.SEVERAL, (one, *(other for other in near if other != one))))
        for why in (Why.RANKS, Why.TWICE):
            pairs = {pair for pair, its in bars.items() if its is why}
            self.apart += _apart(why, chain, pairs)
        return list(clusters.values())

    def _note_unsaid(self, seen: Sequence[Seen]) -> None:
        """Equal pids at one time that would be one if someone said that it is one machine: each of the later input."""
        for number, one in enumerate(seen):
            machine = self._recordings[one.input].machine
            for other in seen[:number]:
                its = self._recordings[other.input].machine
                may_be = machine.same_as(its) is not None or not (machine.key and its.key)
                if may_be and self._bar(one, other) is Why.UNSAID and gap(one.span, other.span) <= 0:
                    self.apart.append(Apart(Why.UNSAID, (one, other)))
                    break

    def _note_machines(self, seen: Sequence[Seen]) -> None:
        """Equal pids at one time on machines that are known to be several."""
        real = [one for one in seen if self._recordings[one.input].real_ids and self._recordings[one.input].machine.key]
        pairs = {
            frozenset((one, other))
            for one, other in combinations(real, 2)
            if self._machine(one) != self._machine(other) and gap(one.span, other.span) < 0
        }
        self.apart += _apart(Why.MACHINES, real, pairs)

    def threads(self, processes: Sequence[_Process]) -> None:
        """Threads of unknown processes: of the one that has a thread of that number, or one with others like them."""
        having: dict[int | None, list[_Process]] = defaultdict(list)
        for process in processes:
            for tid in {tid for one in process.members for tid in (*one.tids, one.number)}:
                having[tid].append(process)
        moved: dict[tuple[Seen, int, Basis], list[Seen]] = defaultdict(list)
        alone: dict[tuple[str, int], list[Seen]] = defaultdict(list)
        for thread in self._view.threads:
            if thread.number is None or thread.number <= 0:
                continue
            able = [(one, basis) for one in having[thread.number] if (basis := self._can_have(one, thread)) is not None]
            able = [(one, basis) for one, basis in able if gap(one.span, thread.span) <= 0] or able
            if len(able) == 1:
                moved[able[0][0].first, thread.input, able[0][1]].append(thread)
            elif able:
                self.apart.append(Apart(Why.SEVERAL, (thread, *(process.first for process, _ in able))))
            else:
                alone[self._machine(thread), thread.number].append(thread)
        by_input: dict[int, list[Seen]] = defaultdict(list)
        for ones in alone.values():
            for one in ones:
                by_input[one.input].append(one)
        if processes:
            self.apart += [Apart(Why.UNKNOWN, tuple(ones)) for ones in by_input.values()]
        self.joined += [Joined(By.TID, basis, into, tuple(ones)) for (into, _, basis), ones in moved.items()]
        for ones in alone.values():
            for chain in _chains(ones):
                for first, *others in self._clusters(chain):
                    self.joined += [Joined(By.TID, self._basis(first, other), first, (other,)) for other in others]

    def _can_have(self, process: _Process, thread: Seen) -> Basis | None:
        """How it is known that a thread is of the machine of a process, which has one of its number at that time."""
        if gap(process.span, thread.span) > REUSE_NS:
            return None
        its = (one for one in process.members if thread.number in (*one.tids, one.number))
        return next(filter(None, (self._basis(one, thread) for one in its)), None)

    # -- by what writes them --------------------------------------------------------------------------------------

    def strays(self, processes: Sequence[_Process]) -> None:
        """Tracks of inputs that name no process: of the only one that can have written them."""
        runtimes = {format for recording in self._recordings for format in recording.runs_in}
        around = {stray.inside for stray in self._view.strays}
        processes = [
            process
            for process in processes
            if any(self._recordings[one.input].format in runtimes for one in process.members)
            or any((one.input, one.track) in around for one in process.members)
        ]
        chosen: dict[Seen, dict[Seen, Basis | None]] = defaultdict(dict)
        for stray in self._view.strays:
            able = dict(self._writers(processes, stray))
            if len(able) == 1:
                (process, basis), *_ = able.items()
                chosen[process][stray] = basis
            elif able:
                self.apart.append(Apart(Why.SEVERAL, (stray, *able)))
        for process, strays in chosen.items():
            at_once = self._at_once(strays)
            self.apart += [Apart(Why.TWICE, tuple(ones)) for ones in at_once]
            not_its = {one for ones in at_once for one in ones}
            moved: dict[tuple[int, Basis | None], list[Seen]] = defaultdict(list)
            for stray, basis in strays.items():
                if stray not in not_its:
                    moved[stray.input, basis].append(stray)
            self.joined += [
                Joined(By.WRITER if ones[0].inside is None else By.CALLS, basis, process, tuple(ones))
                for (_, basis), ones in moved.items()
            ]

    def _writers(self, processes: Sequence[_Process], stray: Seen) -> Iterator[tuple[Seen, Basis | None]]:
        """The processes that can have written something, with how it is known that they are of its machine.

        What one input shows without numbers is one process: the first one stands for all.
        """
        without_number: set[int] = set()
        for process in processes:
            if stray.inside is not None:
                if any((one.input, one.track) == stray.inside for one in process.members):
                    yield process.first, None
                continue
            for one in process.members:
                basis = self._can_write(one, stray)
                if basis is None or one.input in without_number:
                    continue
                yield process.first, basis
                without_number |= {one.input} if one.number is None else set()
                break

    def _can_write(self, process: Seen, stray: Seen) -> Basis | None:
        """How it is known that a process is on the machine of something that it can have written; None if it cannot."""
        its, recording = self._recordings[process.input], self._recordings[stray.input]
        if its.format not in recording.runs_in or gap(process.span, stray.span) > 0:
            return None
        return its.machine.same_as(recording.machine)

    def _at_once(self, strays: Iterable[Seen]) -> list[list[Seen]]:
        """Those that one process cannot have written all, since they are of one time: it writes one log of a kind."""
        groups: list[list[Seen]] = []
        by_format: dict[str, list[Seen]] = defaultdict(list)
        for stray in strays:
            by_format[self._recordings[stray.input].format].append(stray)
        for ones in by_format.values():
            without_times = any(one.inside is not None for one in ones)
            until: int | None = None
            for one in sorted(ones, key=lambda one: one.span):
                if until is None or (one.span[0] >= until and not without_times):
                    groups.append([])
                groups[-1].append(one)
                until = one.span[1] if until is None else max(until, one.span[1])
        return [sorted(ones, key=lambda one: (one.input, one.track)) for ones in groups if len(ones) > 1]


def _chains(seen: Iterable[Seen]) -> list[list[Seen]]:
    """What has one number, by what it is: the number is not used again as soon as it is free."""
    chains: list[list[Seen]] = []
    until = 0
    for one in sorted(seen, key=lambda one: (one.span, one.input)):
        if not chains or one.span[0] - until > REUSE_NS:
            chains.append([])
            until = one.span[1]
        chains[-1].append(one)
        until = max(until, one.span[1])
    return [sorted(chain, key=lambda one: (one.input, one.track)) for chain in chains]


def _apart(why: Why, seen: Sequence[Seen], pairs: set[frozenset[Seen]]) -> Iterator[Apart]:
    """What stays apart for one reason, by pairs: the first of several, with those that it is apart from."""
    for number, one in enumerate(seen):
        others = [other for other in seen[number + 1 :] if frozenset((one, other)) in pairs]
        if others and not any(frozenset((before, one)) in pairs for before in seen[:number]):
            yield Apart(why, (one, *others))


# -- words ----------------------------------------------------------------------------------------------------------


def _joined_words(recordings: Sequence[Recording], one: Joined) -> str:
    into, moved = recordings[one.into.input], recordings[one.moved[0].input]
    files = f"{into.file} and {moved.file}"
    if one.by is By.PID:
        return f"{_name(one.into)}: one process in {files}: {_basis_words(recordings, one)}"
    if one.by is By.TID and not one.into.is_process:
        return f"thread {one.into.number}: one thread in {files}: {_basis_words(recordings, one)}"
    if one.by is By.TID:
        tids = _few([str(thread.number) for thread in one.moved])
        threads = f"thread{'s' if len(one.moved) > 1 else ''} {tids}"
        return f"{_name(one.into)}: one process in {files} ({threads}): {_basis_words(recordings, one)}"
    if one.by is By.CALLS:
        return f"{_name(one.into)}: one process in {files}: the calls of the log lie inside its slices"
    why = _basis_words(recordings, one)
    return f"{_name(one.into)}: one process in {files}: no other one here can have written the log; {why}"


def _basis_words(recordings: Sequence[Recording], one: Joined) -> str:
    a, b = recordings[one.into.input], recordings[one.moved[0].input]
    if one.basis is Basis.HOST:
        return f"both are of host {a.machine.host}"
    if one.basis is Basis.BOOT:
        same = a.machine.host == b.machine.host or not (a.machine.host and b.machine.host)
        return "both are of one boot" if same else f"{a.machine.host} and {b.machine.host} are of one boot"
    if one.basis is Basis.USER:
        return "the user says that it is one machine"
    unnamed = [recording.file for recording in (a, b) if not recording.machine.host]
    none = f"{unnamed[0]} names no machine" if len(unnamed) == 1 else "neither names a machine"
    if one.basis is Basis.NOBODY:
        return "assumed: no input names its machine"
    hosts = (recording.machine.host for recording in recordings if recording.machine.key == a.machine.key)
    host = next(filter(None, hosts), "")
    return f"assumed: {none}, all others are of {f'host {host}' if host else 'one machine'}"


def _apart_words(recordings: Sequence[Recording], alike: Sequence[Apart]) -> str:
    """What is said of what stays apart in the same files for the same reason."""
    one = alike[0]
    first, *others = one.seen
    names = _few([_name(each.seen[0]) for each in alike])
    apart = "not one process" if len(alike) == 1 else "not one process each"
    files = _few([recordings[seen.input].file for seen in one.seen])
    if one.why is Why.MACHINES:
        hosts = dict.fromkeys(recordings[seen.input].machine.host for seen in one.seen)
        words = f"the hosts {_few(list(hosts))}" if len(hosts) > 1 and all(hosts) else "different boots"
        return f"{names}: {apart} in {files}: they are of {words}"
    if one.why is Why.RANKS:
        ranks = _few([str(recordings[seen.input].rank) for seen in one.seen])
        return f"{names}: {apart} in {files}: they are of the ranks {ranks}"
    if one.why is Why.TWICE:
        format = recordings[first.input].format
        return f"{names}: {apart} in {files}: both are recordings of {format} at the same time"
    if one.why is Why.UNSAID:
        return f"{_name(first)}: not one process in {files}: nothing says that these are of one machine"
    file = recordings[first.input].file
    if one.why is Why.UNKNOWN:
        threads = f"threads {_few([str(seen.number) for seen in one.seen])}" if others else _name(first)
        return f"{threads} of {file} stay{'' if others else 's'} apart: no input tells the process"
    meant = _few([f"{_name(seen)} of {recordings[seen.input].file}" for seen in others], "or")
    return f"{_name(first)} of {file} stays apart: it can belong to {meant}"


def _name(seen: Seen) -> str:
    if seen.number is None:
        return seen.name
    return f"{'pid' if seen.is_process else 'thread'} {seen.number}"


def _few(words: Sequence[str], last: str = "and") -> str:
    """The first few of some words: "a, b and 3 more"."""
    shown = [*words[:4], *([f"{len(words) - 4} more"] if len(words) > 4 else [])]
    return f"{', '.join(shown[:-1])} {last} {shown[-1]}" if len(shown) > 1 else shown[0]


def _joined_json(recordings: Sequence[Recording], one: Joined) -> dict[str, Any]:
    return {
        "one": True,
        "files": [recordings[one.into.input].file, recordings[one.moved[0].input].file],
        **_numbers([one.into, *one.moved]),
        "by": str(one.by),
        "machine": None if one.basis is None else str(one.basis),
        "assumed": one.basis is not None and one.basis.assumed,
        "words": _joined_words(recordings, one),
    }


def _apart_json(recordings: Sequence[Recording], one: Apart) -> dict[str, Any]:
    return {
        "one": False,
        "files": [recordings[seen.input].file for seen in one.seen],
        **_numbers(one.seen),
        "by": str(one.why),
        "machine": None,
        "assumed": False,
        "words": _apart_words(recordings, [one]),
    }


def _numbers(seen: Sequence[Seen]) -> dict[str, Any]:
    pids = dict.fromkeys(one.number for one in seen if one.is_process and one.number is not None)
    tids = dict.fromkeys(one.number for one in seen if not one.is_process and one.number is not None)
    return {"pids": list(pids), "tids": list(tids)}

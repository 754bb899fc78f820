"""What a Perfetto trace declares: its tracks, its clocks, and the inputs of a trace that traceconv wrote.

Source: protos/perfetto/trace/track_event/track_descriptor.proto and its neighbours, clock_snapshot.proto,
builtin_clock.proto and docs/concepts/clock-sync.md in github.com/google/perfetto.

Declarations may be anywhere in the file. Threads belong to the process of their pid, whatever parent they state; two
processes of one pid follow each other in time. Tracks of equal name and parent are drawn in one row, unless they state
otherwise: they become lanes of the first one.

A timestamp is on the clock that its packet states, else on the default clock of the sequence, else on the clock of the
trace. Snapshots are readings of several clocks at one instant. As in Perfetto, a time is converted over at most four
snapshots, each with the offset of the latest snapshot at or before it, without drift. Unlike Perfetto, all snapshots of
the file are used, also those after the event, so that no event is lost for its position.
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from traceconv.families.common.wire_reader import Message, Value, as_bytes, as_text, fields, signed, unsigned
from traceconv.families.index import FORMATS
from traceconv.families.perfetto.tree import INPUTS, STATED_CATEGORY, STATED_TEXTS
from traceconv.families.registry import importer_class
from traceconv.model.builder import Builder
from traceconv.model.clocks import BOOTTIME, MONOTONIC, MONOTONIC_RAW, REALTIME, ClockDomain, ClockSnapshot, Run, Zero
from traceconv.model.columns import I64
from traceconv.model.diagnostics import absent, lost
from traceconv.model.marks import NO_MARKS
from traceconv.model.numbers import EVER, LIMIT_NS
from traceconv.model.source_info import Layer, Placing, SourceInfo, placing_of, read_placing
from traceconv.model.trace import TIMED
from traceconv.model.track_table import NO_TRACK, Track, TrackId, TrackKind
from traceconv.writers.ids import without_doubts

NO_PARENT = absent(
    "perfetto.no_parent", "the parent of a track is not declared, or is the track itself: drawn at the top"
)
UNDECLARED = absent("perfetto.undeclared_track", "events are on a track that is not declared, so it has no name")

BAD_INPUTS = lost(
    "perfetto.bad_inputs",
    "what the file states of its inputs is damaged: a part was ignored, so answers about layers can lack an input",
)

# TrackDescriptor
_UUID, _NAME, _PROCESS, _THREAD, _PARENT, _COUNTER, _STATIC_NAME, _CHILD_ORDERING = 1, 2, 3, 4, 5, 8, 10, 11
_RANK, _ATRACE_NAME, _DESCRIPTION, _MERGE_BEHAVIOR, _MERGE_KEY, _MERGE_KEY_INT = 12, 13, 14, 15, 16, 17
_LEXICOGRAPHIC, _EXPLICIT = 1, 3
_MERGE_NONE, _MERGE_BY_KEY = 2, 3
_UNITS = {1: "ns", 2: "count", 3: "bytes"}
_COUNTER_TYPES = {1: ("thread time", "ns"), 2: ("thread instruction count", "count")}

#: The key of a track: its uuid, or pid and tid of a process or thread without one.
TrackKey = int | tuple[str | int, ...]
DEFAULT_TRACK: TrackKey = 0

_REALTIME, _BOOTTIME = 1, 6
_SEQUENCE_CLOCKS = range(64, 128)
_MAX_HOPS = 4
#: The clock of the trace, whichever that is.
TRACE_TIME = 0

_DOMAINS = {
    _REALTIME: REALTIME,
    2: ClockDomain("CLOCK_REALTIME_COARSE", Zero.UNKNOWN, Run.WALL),
    3: MONOTONIC,
    4: ClockDomain("CLOCK_MONOTONIC_COARSE", Zero.UNKNOWN, Run.MONOTONIC),
    5: MONOTONIC_RAW,
    _BOOTTIME: BOOTTIME,
    9: ClockDomain("TSC", Zero.UNKNOWN, Run.MONOTONIC),
    10: ClockDomain("perf clock", Zero.UNKNOWN, Run.MONOTONIC),
    11: ClockDomain("trace file clock", Zero.UNKNOWN, Run.UNKNOWN),
}
#: The words of `ClockDomain.describe`.
_CLOCK_WORDS = re.compile(r"(?P<name>.*) \((?P<run>[^()]*?)(?:, zero at (?P<zero>[^()]*))?\)")
_METHOD = "clock snapshot of the file"


# -- tracks ------------------------------------------------------------------------------------------------------------


class Descriptor(msgspec.Struct):
    """The descriptor of a track; later descriptors replace the fields that they hold."""

    key: TrackKey
    kind: TrackKind = TrackKind.TRACK
    name: str = ""
    pid: int = 0
    tid: int = 0
    machine: int = 0
    parent: TrackKey = 0
    declared: bool = False
    description: str = ""
    unit: str = ""
    multiplier: int = 1
    incremental: bool = False
    labels: tuple[str, ...] = ()
    rank: int | None = None
    ordering: int = 0
    # the key that tracks of one name must share to be drawn in one row; the track itself if it is not shared
    merge: object = None
    process: Descriptor | None = None
    shares_lanes: bool = False


class Tracks:
    """All tracks, in the order of their first occurrence in the file."""

    def __init__(self) -> None:
        self._numbers: dict[TrackKey, int] = {}
        self._known: list[Descriptor] = []
        self._latest_process: dict[tuple[int, int], Descriptor] = {}
        self._names: dict[tuple[str, int], str] = {}
        self._made: dict[int, TrackId] = {}
        self._processes: dict[tuple[int, int], TrackId] = {}  # by machine and pid
        self._out: Builder

    def number(self, key: TrackKey) -> int:
        """Return the number of a track, known or not."""
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._known)
            self._known.append(Descriptor(key))
        return number

    def __getitem__(self, number: int) -> Descriptor:
        return self._known[number]

    # -- what the file says -----------------------------------------------------------------------------------

    def declare(self, data: Value, machine: int) -> None:
        message = dict(fields(as_bytes(data)))  # there may be millions, and of these fields the last one counts
        track = self._known[self.number(unsigned(message.pop(_UUID, 0)))]
        track.declared, track.machine = True, machine
        if parent := unsigned(message.pop(_PARENT, 0)):
            track.parent = parent
        for field in (_ATRACE_NAME, _STATIC_NAME, _NAME):
            track.name = as_text(message.pop(field, b"")) or track.name
        if message:
            self._rare(track, message)

    def _rare(self, track: Descriptor, message: dict[int, Value]) -> None:
        """Read the fields of a descriptor that few tracks have."""
        track.description = as_text(message.get(_DESCRIPTION, b"")) or track.description
        track.ordering = unsigned(message.get(_CHILD_ORDERING, track.ordering))
        if _RANK in message:
            track.rank = signed(message[_RANK])
        behavior = unsigned(message.get(_MERGE_BEHAVIOR, 0))
        if behavior == _MERGE_NONE:
            track.merge = track.key
        elif behavior == _MERGE_BY_KEY:
            track.merge = as_text(message.get(_MERGE_KEY, b"")) or str(unsigned(message.get(_MERGE_KEY_INT, 0)))
        if _PROCESS in message:
            self._process(track, Message(message[_PROCESS]))
        elif _THREAD in message:
            self._thread(track, Message(message[_THREAD]))
        elif _COUNTER in message:
            _set_counter(track, Message(message[_COUNTER]))

    def _process(self, track: Descriptor, process: Message) -> None:
        """Read ProcessDescriptor: pid 1, cmdline 2*, process_name 6, process_labels 8*."""
        track.kind, track.pid = TrackKind.PROCESS, process.signed(1)
        track.name = process.text(6) or " ".join(process.texts(2)) or track.name
        track.labels = tuple(process.texts(8)) or track.labels
        self._latest_process[track.machine, track.pid] = track

    def _thread(self, track: Descriptor, thread: Message) -> None:
        """Read ThreadDescriptor: pid 1, tid 2, thread_name 5."""
        track.kind, track.pid, track.tid = TrackKind.THREAD, thread.signed(1), thread.signed(2)
        track.name = thread.text(5) or track.name
        track.process = track.process or self._latest_process.get((track.machine, track.pid))

    def legacy_process(self, data: Value, machine: int) -> None:
        """Declare a ProcessDescriptor in a packet of its own, as before track descriptors."""
        process = Message(data)
        track = self._known[self.number(("process", process.signed(1), 0))]
        track.declared, track.machine = True, machine
        self._process(track, process)

    def legacy_thread(self, data: Value, machine: int) -> tuple[int, int]:
        """Declare a ThreadDescriptor in a packet of its own; return its pid and tid."""
        thread = Message(data)
        pid, tid = thread.signed(1), thread.signed(2)
        track = self._known[self.number(("thread", pid, tid))]
        track.declared, track.machine = True, machine
        self._thread(track, thread)
        return pid, tid

    def asynchronous(self, pid: int, id: str, name: str) -> int:
        """Return the number of the track of an id of asynchronous events of an old trace, named by its first event."""
        number = self.number(("async", pid, id))
        track = self._known[number]
        track.declared, track.shares_lanes, track.parent = True, True, ("process", pid, 0)
        track.name = track.name or name
        return number

    def process_tree(self, data: Value) -> None:
        """Read names from ProcessTree: processes 1* {pid 1, cmdline 3*}, threads 2* {tid 1, name 2, tgid 3}."""
        tree = Message(data)
        for process in map(Message, tree.all(1)):
            self._names["process", process.signed(1)] = " ".join(process.texts(3))
        for thread in map(Message, tree.all(2)):
            self._names["thread", thread.signed(1)] = thread.text(2)

    def sampled_threads(self, threads: Iterable[tuple[int, int]]) -> dict[tuple[int, int], int]:
        """Return the numbers of threads that are stated by pid and tid only.

        traceconv writes tid = pid for samples of a process as a whole.
        """
        known = {(t.pid, t.tid): n for n, t in enumerate(self._known) if t.kind is TrackKind.THREAD and t.declared}
        tracks_by_thread: dict[tuple[int, int], int] = {}
        for pid, tid in threads:
            whole = self._latest_process.get((0, pid)) if tid == pid else None
            if (pid, tid) in known:
                tracks_by_thread[pid, tid] = known[pid, tid]
            elif whole is not None:
                tracks_by_thread[pid, tid] = self._numbers[whole.key]
            else:
                tracks_by_thread[pid, tid] = self.thread(pid, tid)
        return tracks_by_thread

    def thread(self, pid: int, tid: int) -> int:
        """Return the number of a thread that has no uuid."""
        number = self.number(("thread", pid, tid))
        track = self._known[number]
        track.kind, track.pid, track.tid, track.declared = TrackKind.THREAD, pid, tid, True
        return number

    # -- the tracks of the trace ------------------------------------------------------------------------------

    def leave_out_groups(self, attribute: Any) -> None:
        """Take the groups of inputs out of the tree, unless they are in others: what they hold comes to the top."""
        stated = _elements(int, attribute.get("groups")) if isinstance(attribute, dict) else []
        groups = {uuid for uuid in stated if uuid in self._numbers and not self._known[self._numbers[uuid]].parent}
        for track in self._known:
            if track.key in groups:
                track.declared = False
            elif track.parent in groups:
                track.parent = 0

    def build(self, out: Builder, used: Iterable[int]) -> list[TrackId]:
        """Create the tracks that are used, parents before children; return the track of each number."""
        self._out, used = out, set(used)
        # Processes first: threads may come before the process of their pid in the file.
        for number, track in enumerate(self._known):
            if track.kind is TrackKind.PROCESS:
                self._processes.setdefault((track.machine, track.pid), self._make(number))
        for number, track in enumerate(self._known):
            if number in used or (track.declared and track.key != DEFAULT_TRACK):
                self._make(number)
        self._rank_by_name()
        self._join_lanes(used)
        return [self._made.get(number, NO_TRACK) for number in range(len(self._known))]

    def built(self, uuid: int) -> TrackId | None:
        """Return the track of a uuid after `build`; None if there is none."""
        return self._made.get(self._numbers.get(uuid, -1))

    def _make(self, number: int) -> TrackId:
        # No recursion, since the file determines the depth of tracks.
        above: dict[int, None] = {}
        at: int | None = number
        while at is not None and at not in self._made and at not in above:
            above[at] = None
            at = self._declared_parent(at)
        for inner in reversed(above):
            self._made[inner] = self._new(inner, self._known[inner])
        return self._made[number]

    def _new(self, number: int, track: Descriptor) -> TrackId:
        """Create a track; its parent exists, unless it has none or is its own ancestor."""
        if not track.declared and track.key != DEFAULT_TRACK:
            self._out.problem(UNDECLARED, f"uuid {track.key}")
        rank = track.rank if self._ordering(track) == _EXPLICIT else None
        name = self._name(track)
        if track.kind is TrackKind.PROCESS:
            labels = (*track.labels, *((f"machine {track.machine}",) if track.machine else ()))
            new = Track(track.kind, name, pid=track.pid, labels=labels, rank=rank)
        elif track.kind is TrackKind.THREAD:
            new = Track(track.kind, name, self._process_of(track), tid=track.tid, rank=rank)
        elif track.kind is TrackKind.TRACK and rank is None and not track.shares_lanes:
            return self._out.tracks.add(name, self._parent(number, track), description=track.description)
        else:
            new = Track(track.kind, name, self._parent(number, track), unit=track.unit, rank=rank)
        new.description, new.shares_lanes = track.description, track.shares_lanes
        return self._out.tracks.append(new)

    def _name(self, track: Descriptor) -> str:
        if track.key == DEFAULT_TRACK:
            return "Default track"
        if track.name or track.kind not in (TrackKind.PROCESS, TrackKind.THREAD):
            return track.name
        is_process = track.kind is TrackKind.PROCESS
        return self._names.get(("process", track.pid) if is_process else ("thread", track.tid), "")

    def _ordering(self, track: Descriptor) -> int:
        """Return the order of the siblings of a track, which their parent (or the root, 0) states."""
        is_of_system = track.kind in (TrackKind.PROCESS, TrackKind.THREAD)
        if is_of_system and track.rank is not None:
            return _EXPLICIT
        above = self._numbers.get(0 if is_of_system else track.parent)
        return self._known[above].ordering if above is not None else 0

    def _process_of(self, track: Descriptor) -> TrackId:
        if track.process is not None:
            return self._made[self._numbers[track.process.key]]
        key = track.machine, track.pid
        if key not in self._processes:
            name = self._names.get(("process", track.pid), "")
            self._processes[key] = self._out.tracks.process(name, pid=track.pid)
        return self._processes[key]

    def _declared_parent(self, number: int) -> int | None:
        """Return the parent that a track states, unless it belongs to a process."""
        track = self._known[number]
        if track.kind in (TrackKind.PROCESS, TrackKind.THREAD) or not track.parent:
            return None
        parent = self._numbers.get(track.parent)
        return parent if parent is not None and self._known[parent].declared else None

    def _parent(self, number: int, track: Descriptor) -> TrackId:
        if not track.parent:
            return NO_TRACK
        parent = self._declared_parent(number)
        if parent is None or parent not in self._made:
            self._out.problem(NO_PARENT, repr(track.name))
            return NO_TRACK
        return self._made[parent]

    def _rank_by_name(self) -> None:
        """Rank children by name, if the parent states so."""
        children: dict[TrackKey, list[int]] = defaultdict(list)
        for number in self._made:
            track = self._known[number]
            if self._ordering(track) == _LEXICOGRAPHIC:
                children[track.parent].append(number)
        for siblings in children.values():
            for rank, number in enumerate(sorted(siblings, key=lambda inner: self._known[inner].name)):
                self._out.tracks[self._made[number]].rank = rank

    def _join_lanes(self, used: set[int]) -> None:
        """Turn tracks of one key or, without keys, one name into lanes of the first, or of what is around."""
        with_children = {self._numbers[track.parent] for track in self._known if track.parent in self._numbers}
        mains: dict[tuple[TrackId, str, object], TrackId] = {}
        tracks = self._out.tables.tracks
        for number in sorted(self._made):
            track, made = self._known[number], self._made[number]
            info = tracks[made]
            if info.kind is not TrackKind.TRACK or not track.declared or info.shares_lanes:
                continue
            if not info.name and track.merge is None:
                continue
            around = info.parent
            if around != NO_TRACK and tracks[around].kind in (TrackKind.PROCESS, TrackKind.THREAD):
                is_lane = (
                    track.merge == str(track.parent) if track.merge is not None else info.name == tracks[around].name
                )
                if is_lane:
                    self._out.tracks[made].lane_of = around
                    self._out.tracks[made].name = tracks[around].name or info.name
                    continue
            key = around, info.name, track.merge
            if key not in mains and number in used:
                mains[key] = made
            elif key in mains and number not in with_children:
                self._out.tracks[made].lane_of = mains[key]


def _set_counter(track: Descriptor, counter: Message) -> None:
    """Read CounterDescriptor: type 1, unit 3, unit_multiplier 4, is_incremental 5, unit_name 6."""
    name, unit = _COUNTER_TYPES.get(counter.unsigned(1), ("", ""))
    track.kind = TrackKind.COUNTER
    track.name = track.name or name
    track.unit = counter.text(6) or _UNITS.get(counter.unsigned(3), unit)
    track.multiplier = counter.signed(4) or 1
    track.incremental = bool(counter.unsigned(5))


# -- clocks ------------------------------------------------------------------------------------------------------------


class Clocks:
    """The clocks of packets, by small numbers; 0 is the clock of the trace."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        # The clock id; for one that is private to a sequence, the inverted number of both.
        self._keys = [0]
        self._multipliers: dict[int, int] = {}  # those that are not 1
        self._running: dict[int, int] = {}
        # Snapshots of two or more clocks, in columns, since there may be a million: where each ends, and its readings.
        self._ends, self._read_clocks, self._read_times = array("q", [0]), array("i"), array("q")
        self._pairs: dict[tuple[int, ...], I64] = {}
        self._primary = self._goal = 0  # the id and the number of the clock of the trace

    def number(self, clock_id: int, sequence: int) -> int:
        """Return the number of a clock id in a sequence."""
        if clock_id == 0:
            return TRACE_TIME
        key = clock_id if clock_id not in _SEQUENCE_CLOCKS else ~(sequence * len(_SEQUENCE_CLOCKS) + clock_id - 64)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._keys)
            self._keys.append(key)
        return number

    def _clock(self, number: int) -> tuple[int, int]:
        """Return a clock id and the sequence that it is private to, 0 for none."""
        key = self._keys[number]
        if key >= 0:
            return key, 0
        sequence, clock_id = divmod(~key, len(_SEQUENCE_CLOCKS))
        return _SEQUENCE_CLOCKS[clock_id], sequence

    def is_incremental(self, number: int) -> bool:
        """Return whether timestamps of the clock count from the one before."""
        return number in self._running

    def advance(self, number: int, step: int) -> int:
        """Return the reading of an incremental clock after a step."""
        self._running[number] += step
        return self._running[number]

    def snapshot(self, data: Value, sequence: int) -> bool:
        """Note a ClockSnapshot: clocks 1* {id 1, timestamp 2, is_incremental 3, multiplier 4}, primary clock 2.

        Return whether a clock became incremental.
        """
        running, primary = len(self._running), 0
        readings: dict[int, int] = {}
        for field, value in fields(as_bytes(data)):
            if field == 2:
                primary = unsigned(value)
            if field != 1:
                continue
            entry = dict(fields(as_bytes(value)))
            number = self.number(unsigned(entry.get(1, 0)), sequence)
            multiplier, time = unsigned(entry.get(4, 0)) or 1, unsigned(entry.get(2, 0))
            if multiplier != 1 or number in self._multipliers:
                self._multipliers[number] = multiplier
            if unsigned(entry.get(3, 0)):
                self._running[number] = time
            readings[number] = min(time * multiplier, LIMIT_NS)
        self._primary = self._primary or primary
        if len(readings) > 1:
            self._read_clocks.extend(readings)
            self._read_times.extend(readings.values())
            self._ends.append(len(self._read_clocks))
        return len(self._running) > running

    @cached_property
    def _snapshot(self) -> I64:
        """The snapshot of each reading."""
        ends = np.asarray(self._ends)
        return np.repeat(np.arange(len(ends) - 1), np.diff(ends))

    @cached_property
    def _order(self) -> tuple[I64, I64]:
        """The readings by clock, in the order of the file; and where those of each clock begin."""
        clocks = np.asarray(self._read_clocks)
        order = np.argsort(clocks, kind="stable")
        return order, np.searchsorted(clocks[order], np.arange(len(self._keys) + 1))

    def _times(self, clock: int) -> tuple[I64, I64]:
        """Return the snapshots of a clock, in order, and its readings in them."""
        order, begins = self._order
        places = order[begins[clock] : begins[clock + 1]]
        return self._snapshot[places], np.asarray(self._read_times)[places]

    def settle(self, used: set[int]) -> None:
        """Choose the clock of the trace, given the clocks of all events."""
        if not self._primary:
            only = {self._clock(number)[0] for number in used}
            alone = len(only) == 1 and len(self._ends) == 1
            self._primary = (only.pop() if alone else 0) or _BOOTTIME
        self._goal = self.number(self._primary, 0)

    @property
    def domain(self) -> ClockDomain:
        """The domain of the clock of the trace; `settle` comes first."""
        return _DOMAINS.get(self._primary, ClockDomain(f"Perfetto clock {self._primary}", Zero.UNKNOWN, Run.UNKNOWN))

    def to_trace_time(self, number: int, ts: I64) -> I64 | None:
        """Return times in ns on the clock of the trace; None if nothing relates the clock to it."""
        path = self._path(number)
        if path is None:
            return None
        multiplier = self._multipliers.get(number, 1)
        if multiplier != 1:
            ts = np.array([max(-(2**63), min(time * multiplier, 2**63 - 1)) for time in ts.tolist()], np.int64)
        for clock, following in pairwise(path):
            readings = self._readings(clock, following)
            latest = np.searchsorted(readings[:, 0], ts, side="right") - 1
            ts = moved(ts, (readings[:, 1] - readings[:, 0])[np.maximum(latest, 0)])
        return ts

    def _path(self, number: int) -> list[int] | None:
        """Return the path of clocks to the clock of the trace, including it."""
        goal = self._goal
        if number in (TRACE_TIME, goal):
            return [goal]
        path = [number]
        while path[-1] != goal and (following := int(self._next[path[-1]])) >= 0:
            path.append(following)
        return path if path[-1] == goal else None

    @cached_property
    def _next(self) -> I64:
        """The next clock on the shortest path to the clock of the trace; of several the first one in the file.

        It is -1 for clocks that no path of at most _MAX_HOPS snapshots relates.
        """
        clocks, begins = np.asarray(self._read_clocks), np.asarray(self._ends)[:-1]
        hops = np.full(len(self._keys), _MAX_HOPS + 2)
        following = np.full(len(self._keys), -1)
        hops[self._goal] = 0
        for far in range(1, _MAX_HOPS + 1):
            met = np.zeros(len(begins), bool)
            met[self._snapshot[hops[clocks] == far - 1]] = True
            reached = clocks[met[self._snapshot]]
            hops[reached] = np.minimum(hops[reached], far)
        of_reading = hops[clocks]
        least = np.minimum.reduceat(of_reading, begins)[self._snapshot] if len(begins) else of_reading
        _, nearest = np.unique(self._snapshot[of_reading == least], return_index=True)
        first = clocks[of_reading == least][nearest][self._snapshot]
        steps = np.flatnonzero((of_reading == least + 1) & (of_reading <= _MAX_HOPS))[::-1]
        following[clocks[steps]] = first[steps]  # the first one in the file is written last
        return following

    def _readings(self, *clocks: int) -> I64:
        """Return all readings of two clocks, in order of the first one's."""
        if clocks not in self._pairs:
            here, there = self._in_file_order(*clocks)
            self._pairs[clocks] = np.column_stack((here, there))[np.lexsort((there, here))]
        return self._pairs[clocks]

    def _in_file_order(self, clock: int, partner: int) -> tuple[I64, I64]:
        """Return the readings of two clocks in the snapshots that have both."""
        (places, here), (partner_places, there) = self._times(clock), self._times(partner)
        at = np.searchsorted(partner_places, places)
        shared = at < len(partner_places)
        shared[shared] = partner_places[at[shared]] == places[shared]
        return here[shared], there[at[shared]]

    def describe(self, number: int) -> str:
        """Return a clock for messages."""
        clock_id, sequence = self._clock(number)
        return f"clock {clock_id}" + (f" of sequence {sequence}" if sequence else "")

    def snapshots(self, domain: ClockDomain) -> list[ClockSnapshot]:
        """Return readings of the clock of the trace, in its domain, and of others, which agree within the bound."""
        goal = self._goal
        clocks, places = np.asarray(self._read_clocks), self._times(goal)[0]
        others, first = np.unique(clocks[np.isin(self._snapshot, places)], return_index=True)
        snapshots = []
        for other in others[np.argsort(first)].tolist():
            if other == goal or self._clock(other)[0] not in _DOMAINS:
                continue
            here, there = self._in_file_order(goal, other)
            offsets = there - here
            bound = int(np.max(offsets) - np.min(offsets)) if len(offsets) > 1 else None
            other_domain = _DOMAINS[self._clock(other)[0]]
            snapshots.append(ClockSnapshot(domain, int(here[0]), other_domain, int(there[0]), bound, _METHOD))
        return snapshots


def stated_domain(words: object) -> ClockDomain | None:
    """Return the clock domain from the text of `ClockDomain.describe` in the output of traceconv."""
    match = _CLOCK_WORDS.fullmatch(words) if isinstance(words, str) else None
    if match is None:
        return None
    run = Run.UNKNOWN if match["run"] == "unknown clock" else _member(Run, match["run"])
    zero = Zero.UNKNOWN if match["zero"] is None else _member(Zero, match["zero"])
    return ClockDomain(match["name"], zero, run) if run is not None and zero is not None else None


def _member(enum: Any, value: str) -> Any:
    return next((member for member in enum if member.value == value), None)


def moved(ts: I64, by: I64 | int) -> I64:
    """Return times in ns, moved by at most LIMIT_NS.

    Results are limited to LIMIT_NS, where the builder recognises them as impossible, and never overflow.
    """
    possible = (ts >= -LIMIT_NS) & (ts <= LIMIT_NS)
    return ts + by if possible.all() else np.where(possible, ts + by, ts)


# -- inputs of a trace of traceconv ------------------------------------------------------------------------------------


def stated_inputs(sources: Any, attribute: Any, alignment: Any) -> tuple[SourceInfo, ...]:
    """Return the inputs that a file of traceconv states: their sources and formats, and how they were placed."""
    attribute = attribute if isinstance(attribute, dict) else {}
    known, files = _elements(dict, attribute.get("sources")), _elements(dict, sources)
    if known and all("placed" in stated for stated in known):
        steps = list(map(read_placing, _list(attribute.get("placings"))))
        return tuple(_stated(stated, stated, _placings(stated["placed"], steps)) for stated in known)
    known = known if len(known) == len(files) else [{}] * len(files)
    placed = [(placing_of(str(file.get("name")), alignment),) for file in files]
    return tuple(map(_stated, files, known, placed))


def _placings(numbers: Any, steps: Sequence[Placing]) -> tuple[Placing, ...]:
    """Return the placings with these numbers; one that states nothing if some are wrong."""
    placings = [steps[at] for at in _list(numbers) if type(at) is int and 0 <= at < len(steps)]
    return tuple(placings) if placings and len(placings) == len(_list(numbers)) else (Placing(),)


def _stated(stated: dict[str, Any], more: dict[str, Any], placings: tuple[Placing, ...]) -> SourceInfo:
    name = str(stated.get("format"))
    known = importer_class(name) if name in FORMATS else None
    layer = Layer.__members__.get(str(more["layer"])) if "layer" in more else known.layer if known else None
    marks = known.marks if known else NO_MARKS
    source = SourceInfo(str(stated.get("name")), name, layer=layer, marks=marks, placings=placings)
    source.without_periods, source.sampled = (tuple(_elements(str, more.get(key))) for key in STATED_TEXTS)
    source.join_category = category if isinstance(category := more.get(STATED_CATEGORY), str) else ""
    return source


def restore(attribute: Any, out: Builder, track_of: Callable[[int], TrackId | None]) -> None:
    """Restore the input of each track, as far as the file states it; count damaged statements."""
    if not isinstance(attribute, dict | None):
        out.problem(BAD_INPUTS, INPUTS, "no JSON object")
    attribute = attribute if isinstance(attribute, dict) else {}

    def tracks(uuids: Any) -> list[Track]:
        found = map(track_of, _elements(int, uuids))
        return [out.tracks[track] for track in found if track is not None]

    numbers = {str(number): number for number in range(len(out.info.stated))}
    of_source = attribute.get("tracks", {})
    for key, uuids in of_source.items() if isinstance(of_source, dict) else (("", None),):
        if key not in numbers or not isinstance(uuids, list):
            out.problem(BAD_INPUTS, INPUTS, f"tracks of input {key!r:.40}")
            continue
        for track in tracks(uuids):
            track.stated = replace(track.stated, input=numbers[key])
    for entry in _list(attribute.get("carries")):
        known = type(entry) is list and [type(part) for part in entry] == [int, str, int, int]
        if not known or entry[1] not in TIMED or not 0 <= entry[2] < len(numbers) or not EVER <= entry[3] <= LIMIT_NS:
            out.problem(BAD_INPUTS, INPUTS, f"rows of an input {entry!r:.40}")
            continue
        for track in tracks(entry[:1]):
            track.stated = replace(track.stated, carries=(*track.stated.carries, tuple(entry[1:])))
    for entry in _list(attribute.get("doubts")):
        if type(entry) is not list or not entry[1:] or len(_elements(str, entry)) < len(entry) - 1:
            out.problem(BAD_INPUTS, INPUTS, f"doubts of a track {entry!r:.40}")
            continue
        for track in tracks(entry[:1]):
            track.doubts = tuple(_elements(str, entry))
            track.name = without_doubts(track.name, track, track.doubts)
    _restore_numbers(attribute, out, tracks)
    for key in ("synthetic", "unknown"):
        for track in tracks(attribute.get(key)):
            setattr(track, key, True)
    for track in tracks(attribute.get("without_pid")):
        track.stated = replace(track.stated, without_pid=True)


def _restore_numbers(attribute: Any, out: Builder, tracks: Callable[[Any], list[Track]]) -> None:
    """Restore the processes and threads that are groups and rows in the file, as their numbers cannot be shown."""
    for entry in _list(attribute.get("processes")):
        known = type(entry) is list and _are_texts(entry[2:], 1)
        if not known or type(entry[0]) is not int or not isinstance(entry[1], int | None):
            out.problem(BAD_INPUTS, INPUTS, f"a process {entry!r:.40}")
            continue
        for track in tracks(entry[:1]):
            if track.kind is TrackKind.TRACK:
                track.kind, track.parent, track.pid = TrackKind.PROCESS, NO_TRACK, entry[1]
                track.name, track.labels = entry[2], tuple(entry[3:])
    for entry in _list(attribute.get("threads")):
        if type(entry) is not list or [type(part) for part in entry] != [int, int, str]:
            out.problem(BAD_INPUTS, INPUTS, f"a thread {entry!r:.40}")
            continue
        for track in tracks(entry[:1]):
            in_process = track.parent != NO_TRACK and out.tracks[track.parent].kind is TrackKind.PROCESS
            if track.kind is TrackKind.TRACK and in_process:
                track.kind, track.tid, track.name = TrackKind.THREAD, *entry[1:]


def _are_texts(values: list[Any], least: int) -> bool:
    return len(values) >= least and all(isinstance(value, str) for value in values)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _elements(kind: type, value: Any) -> list[Any]:
    """Return the elements of a kind, if a value is a list."""
    return [element for element in _list(value) if isinstance(element, kind)]

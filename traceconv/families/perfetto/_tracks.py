"""The tracks of a Perfetto trace: collect descriptors from anywhere in the file, and create tracks with parents.

Source: protos/perfetto/trace/track_event/track_descriptor.proto and its neighbours in github.com/google/perfetto.

Threads belong to the process of their pid, whatever parent they state; two processes of one pid follow each other in
time. Tracks of equal name and parent are drawn in one row, unless they state otherwise: they become lanes of the first
one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

import msgspec

from traceconv.families.common.wire_reader import Message, Value, as_bytes, as_text, fields, signed, unsigned
from traceconv.model.builder import Builder
from traceconv.model.diagnostics import absent
from traceconv.model.trace import NO_TRACK, Track, TrackId, TrackKind

NO_PARENT = absent(
    "perfetto.no_parent", "the parent of a track is not declared, or is the track itself: drawn at the top"
)
UNDECLARED = absent("perfetto.undeclared_track", "events are on a track that is not declared, so it has no name")

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
        self._made: list[TrackId] = []

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
        """Declare a TrackDescriptor."""
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

    def thread(self, pid: int, tid: int) -> int:
        """Return the number of a thread of an old trace, which has no uuid."""
        return self._thread_without_track(pid, tid)

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
                tracks_by_thread[pid, tid] = self._thread_without_track(pid, tid)
        return tracks_by_thread

    def _thread_without_track(self, pid: int, tid: int) -> int:
        number = self.number(("thread", pid, tid))
        track = self._known[number]
        track.kind, track.pid, track.tid, track.declared = TrackKind.THREAD, pid, tid, True
        return number

    # -- the tracks of the trace ------------------------------------------------------------------------------

    def leave_out(self, uuids: Collection[int]) -> None:
        """Take tracks out of the tree, unless they are in others: those directly inside come to the top."""
        groups = {uuid for uuid in uuids if uuid in self._numbers and not self._known[self._numbers[uuid]].parent}
        for track in self._known:
            if track.key in groups:
                track.declared = False
            elif track.parent in groups:
                track.parent = 0

    def build(self, out: Builder, used: Iterable[int]) -> list[TrackId]:
        """Create the tracks; return the track of each number.

        Args:
            out: the builder.
            used: the numbers of the tracks with events, in any order.
        """
        self._made = _Building(self._known, self._numbers, self._names, out, set(used)).run()
        return self._made

    def built(self, uuid: int) -> TrackId | None:
        """Return the track of a uuid after `build`; None if there is none."""
        number = self._numbers.get(uuid)
        return None if number is None or self._made[number] == NO_TRACK else self._made[number]


def _set_counter(track: Descriptor, counter: Message) -> None:
    """Read CounterDescriptor: type 1, unit 3, unit_multiplier 4, is_incremental 5, unit_name 6."""
    name, unit = _COUNTER_TYPES.get(counter.unsigned(1), ("", ""))
    track.kind = TrackKind.COUNTER
    track.name = track.name or name
    track.unit = counter.text(6) or _UNITS.get(counter.unsigned(3), unit)
    track.multiplier = counter.signed(4) or 1
    track.incremental = bool(counter.unsigned(5))


class _Building(msgspec.Struct):
    """Creates the tracks, parents before children."""

    known: list[Descriptor]
    numbers: dict[TrackKey, int]
    names: dict[tuple[str, int], str]
    out: Builder
    used: set[int]
    made: dict[int, TrackId] = msgspec.field(default_factory=dict)
    processes: dict[tuple[int, int], TrackId] = msgspec.field(default_factory=dict)

    def run(self) -> list[TrackId]:
        # Processes first: threads may come before the process of their pid in the file.
        for number, track in enumerate(self.known):
            if track.kind is TrackKind.PROCESS:
                self.processes.setdefault((track.machine, track.pid), self._make(number))
        for number, track in enumerate(self.known):
            if number in self.used or (track.declared and track.key != DEFAULT_TRACK):
                self._make(number)
        self._rank_by_name()
        self._join_lanes()
        return [self.made.get(number, NO_TRACK) for number in range(len(self.known))]

    def _make(self, number: int) -> TrackId:
        # No recursion, since the file determines the depth of tracks.
        above: dict[int, None] = {}
        at: int | None = number
        while at is not None and at not in self.made and at not in above:
            above[at] = None
            at = self._declared_parent(at)
        for one in reversed(above):
            self._make_one(one)
        return self.made[number]

    def _make_one(self, number: int) -> None:
        """Create a track; its parent exists, unless it has none or is its own ancestor."""
        track = self.known[number]
        if not track.declared and track.key != DEFAULT_TRACK:
            self.out.problem(UNDECLARED, f"uuid {track.key}")
        self.made[number] = self._new(number, track)

    def _new(self, number: int, track: Descriptor) -> TrackId:
        rank = track.rank if self._ordering(track) == _EXPLICIT else None
        name = self._name(track)
        if track.kind is TrackKind.PROCESS:
            labels = (*track.labels, *((f"machine {track.machine}",) if track.machine else ()))
            new = Track(track.kind, name, pid=track.pid, labels=labels, rank=rank)
        elif track.kind is TrackKind.THREAD:
            new = Track(track.kind, name, self._process_of(track), tid=track.tid, rank=rank)
        elif track.kind is TrackKind.TRACK and rank is None and not track.shares_lanes:
            return self.out.tracks.add(name, self._parent(number, track), description=track.description)
        else:
            new = Track(track.kind, name, self._parent(number, track), unit=track.unit, rank=rank)
        new.description, new.shares_lanes = track.description, track.shares_lanes
        return self.out.tracks.append(new)

    def _name(self, track: Descriptor) -> str:
        if track.key == DEFAULT_TRACK:
            return "Default track"
        if track.name or track.kind not in (TrackKind.PROCESS, TrackKind.THREAD):
            return track.name
        is_process = track.kind is TrackKind.PROCESS
        return self.names.get(("process", track.pid) if is_process else ("thread", track.tid), "")

    def _ordering(self, track: Descriptor) -> int:
        """Return the order of the siblings of a track, which their parent (or the root, 0) states."""
        own = track.kind in (TrackKind.PROCESS, TrackKind.THREAD)
        above = self.numbers.get(0 if own else track.parent)
        return _EXPLICIT if own and track.rank is not None else self.known[above].ordering if above is not None else 0

    def _process_of(self, track: Descriptor) -> TrackId:
        if track.process is not None:
            return self.made[self.numbers[track.process.key]]
        key = track.machine, track.pid
        if key not in self.processes:
            name = self.names.get(("process", track.pid), "")
            self.processes[key] = self.out.tracks.process(name, pid=track.pid)
        return self.processes[key]

    def _declared_parent(self, number: int) -> int | None:
        """Return the parent that a track states, unless it belongs to a process."""
        track = self.known[number]
        if track.kind in (TrackKind.PROCESS, TrackKind.THREAD) or not track.parent:
            return None
        parent = self.numbers.get(track.parent)
        return parent if parent is not None and self.known[parent].declared else None

    def _parent(self, number: int, track: Descriptor) -> TrackId:
        if not track.parent:
            return NO_TRACK
        parent = self._declared_parent(number)
        if parent is None or parent not in self.made:
            self.out.problem(NO_PARENT, repr(track.name))
            return NO_TRACK
        return self.made[parent]

    def _rank_by_name(self) -> None:
        """Rank children by name, if the parent states so."""
        children: dict[TrackKey, list[int]] = defaultdict(list)
        for number in self.made:
            track = self.known[number]
            if self._ordering(track) == _LEXICOGRAPHIC:
                children[track.parent].append(number)
        for siblings in children.values():
            for rank, number in enumerate(sorted(siblings, key=lambda one: self.known[one].name)):
                self.out.tracks[self.made[number]].rank = rank

    def _join_lanes(self) -> None:
        """Turn tracks of one row into lanes of the first one, or of the thread or process around them.

        Tracks with a key are of one row if they share it, as in traces of traceconv; others if they share a name.
        """
        with_children = {self.numbers[track.parent] for track in self.known if track.parent in self.numbers}
        mains: dict[tuple[TrackId, str, object], TrackId] = {}
        tracks = self.out.tables.tracks
        for number in sorted(self.made):
            track, made = self.known[number], self.made[number]
            info = tracks[made]
            if info.kind is not TrackKind.TRACK or not track.declared or info.shares_lanes:
                continue
            if not info.name and track.merge is None:
                continue
            around = info.parent
            above = tracks[around] if around != NO_TRACK else None
            if (
                above is not None
                and above.kind in (TrackKind.PROCESS, TrackKind.THREAD)
                and (above.name == info.name if track.merge is None else track.merge == str(track.parent))
            ):
                self.out.tracks[made].lane_of = around
                continue
            key = around, info.name, track.merge
            if key not in mains and number in self.used:
                mains[key] = made
            elif key in mains and number not in with_children:
                self.out.tracks[made].lane_of = mains[key]

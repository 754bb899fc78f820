"""Check the clocks and tracks of a Perfetto trace, and how the slices of each track open, close and nest."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from traceconv.check.findings import Zeros, data_loss, notice, refusal
from traceconv.check.pftrace_fields import Fields
from traceconv.model.diagnostics import Code, Diagnostics
from traceconv.model.drawable import FAR_NS, AtZero

UNKNOWN_CLOCK = data_loss("check-pftrace.unknown_clock", "no earlier snapshot relates the clock to the timeline")

CLOCK_TWICE = refusal(
    "check-pftrace.clock_twice", "a snapshot reads one clock twice: Perfetto does not use the snapshot"
)
TIMELINE_BACK = refusal(
    "check-pftrace.timeline_back",
    "the clock of the timeline reads less than in an earlier snapshot: Perfetto does not use the snapshot",
)
CLOCK_BACK = data_loss(
    "check-pftrace.clock_back", "an event on a clock that read less than in an earlier snapshot is dropped"
)

BOOTTIME = 6
_SINCE_BOOT = ((BOOTTIME, 0), (3, 0))
_SEQUENCE_CLOCKS = range(64, 128)

#: A clock id, and the sequence that it is private to (0: none).
Clock = tuple[int, int]


class Clocks:
    """The clocks so far."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        self._diagnostics = diagnostics
        self._timeline: Clock = (BOOTTIME, 0)
        self._has_snapshot = False
        self._related: dict[Clock, set[Clock]] = {}  # the clocks that snapshots relate to each
        self._multipliers: dict[Clock, int] = {}  # those that are not 1
        self._running: dict[Clock, int] = {}
        self._offsets: dict[Clock, int] = {}
        self._readings: dict[Clock, int] = {}  # the last ones, ns
        self._back: set[Clock] = set()
        self._since_boot = False

    def snapshot(self, message: Fields, sequence: int, packet: int) -> None:
        """Note a ClockSnapshot message, in the packet of this number."""
        if not self._has_snapshot:
            self._has_snapshot = True
            if "primary_trace_clock" in message:
                self._timeline = (message["primary_trace_clock"], 0)
        read = [self._read(entry, sequence) for entry in message.get("clocks", ())]
        readings = dict(read)
        if len(readings) < len(read):
            self._diagnostics.add(CLOCK_TWICE, f"packet {packet}")
            return
        back = {clock for clock, ns in readings.items() if self._readings.get(clock, ns) > ns}
        if self._timeline in back:
            self._diagnostics.add(TIMELINE_BACK, f"packet {packet}")
            return
        self._back |= back
        self._readings.update(readings)
        self._join(readings)
        for clock, ns in readings.items():
            self._offsets[clock] = readings.get(self._timeline, ns) - ns
        if len(readings) > 1 and self._timeline in _SINCE_BOOT:
            self._since_boot |= readings.get(self._timeline, 0) >= FAR_NS

    def tell(self, at_zero: AtZero) -> None:
        """Set whether readings show that the timeline counts from boot."""
        at_zero.since_boot = self._since_boot

    def _read(self, entry: Fields, sequence: int) -> tuple[Clock, int]:
        """Return a clock and its reading in ns; also note the unit of the clock."""
        clock, reading = _clock(entry.get("clock_id", 0), sequence), entry.get("timestamp", 0)
        multiplier = entry.get("unit_multiplier_ns") or 1
        if multiplier != 1 or clock in self._multipliers:
            self._multipliers[clock] = multiplier
        if entry.get("is_incremental"):
            self._running[clock] = reading
        return clock, reading * multiplier

    def _join(self, clocks: Iterable[Clock]) -> None:
        """Relate clocks. The largest group takes the others in: there may be many clocks."""
        groups = {id(group): group for group in (self._related.get(clock, {clock}) for clock in clocks)}
        largest = max(groups.values(), key=len, default=set[Clock]())
        for group in groups.values():
            if group is not largest or len(group) == 1:
                largest.update(group)
                self._related.update(dict.fromkeys(group, largest))

    def _is_known(self, clock: Clock) -> bool:
        """Return whether snapshots relate a clock to the timeline."""
        return clock == self._timeline or clock in self._related.get(self._timeline, ())

    def to_timeline(self, timestamp: int, clock_id: int | None, sequence: int, packet: int) -> int:
        """Return a time on the timeline, ns, as far as known; a clock of None is the timeline itself."""
        if clock_id is None:
            return timestamp
        clock = _clock(clock_id, sequence)
        if not self._is_known(clock):
            self._diagnostics.add(UNKNOWN_CLOCK, f"packet {packet}: clock {clock_id}")
        elif clock in self._back:
            self._diagnostics.add(CLOCK_BACK, f"packet {packet}: clock {clock_id}")
        if clock in self._running:
            timestamp = self._running[clock] = self._running[clock] + timestamp
        return timestamp * self._multipliers.get(clock, 1) + self._offsets.get(clock, 0)


def _clock(clock_id: int, sequence: int) -> Clock:
    return clock_id, sequence if clock_id in _SEQUENCE_CLOCKS else 0


END_ALONE = data_loss("check-pftrace.end_without_begin", "an end finds no open slice on its track")
END_CROSSES = data_loss(
    "check-pftrace.end_crosses", "a named end closes a slice that is not the innermost; Perfetto cuts the slices inside"
)
END_EARLY = data_loss("check-pftrace.end_before_begin", "a slice ends before it begins")
NOT_CLOSED = data_loss("check-pftrace.not_closed", 'a slice is shown as "did not end"')
TOO_DEEP = data_loss("check-pftrace.too_deep", "below 512 levels Perfetto loses slices or their ends")
UNSORTED = notice("check-pftrace.unsorted", "times on a track go back; viewers sort, which reads the file twice")
ORDER_MATTERS = notice(
    "check-pftrace.order_matters", "sorted by time, as in Perfetto, starts and ends pair differently than in the file"
)

_MAX_DEPTH = 512
_UNNAMED = 0


class Edges:
    """The starts and ends of one track, as columns."""

    def __init__(self) -> None:
        self._ts = array("q")
        self._packets = array("q")
        # Positive for a start, negative for an end; the number is that of the name (1: no name).
        self._kinds = array("q")

    def begin(self, ts: int, packet: int, name: int) -> None:
        self._ts.append(ts)
        self._packets.append(packet)
        self._kinds.append(name + 1)

    def end(self, ts: int, packet: int, name: int) -> None:
        self._ts.append(ts)
        self._packets.append(packet)
        self._kinds.append(-name - 1)

    def check(self, diagnostics: Diagnostics, zeros: Zeros) -> int:
        """Pair by time, and in file order if that differs; note slices from 0; return the number of slices."""
        ts = np.array(self._ts, np.int64)
        backwards = np.flatnonzero(ts[1:] < ts[:-1])
        if len(backwards):
            place = f"packet {self._packets[int(backwards[0]) + 1]}"
            diagnostics.add(UNSORTED, place, len(backwards))
            pairs = self._check_both_orders(np.argsort(ts, kind="stable").tolist(), place, diagnostics)
        else:
            pairs = self._pair(range(len(ts)), diagnostics)
        self._note_zeros(pairs, zeros)
        return sum(kind > 0 for kind in self._kinds)

    def _note_zeros(self, pairs: dict[int, int], zeros: Zeros) -> None:
        """Note the slices from 0, and the times of the others."""
        for row, kind in enumerate(self._kinds):
            if kind < 0:
                continue
            begin, packet = self._ts[row], self._packets[row]
            if row not in pairs:
                zeros.unended(begin, packet)
            elif begin:
                zeros.time(begin, self._ts[pairs[row]])
            else:
                zeros.slice(0, self._ts[pairs[row]], packet)

    def _check_both_orders(self, by_time: list[int], place: str, diagnostics: Diagnostics) -> dict[int, int]:
        wrong = Diagnostics()
        pairs = self._pair(by_time, wrong)
        in_file = self._pair(range(len(by_time)), Diagnostics())
        # At equal times it does not matter which end closes which slice.
        if {b: self._ts[e] for b, e in pairs.items()} != {b: self._ts[e] for b, e in in_file.items()}:
            diagnostics.add(ORDER_MATTERS, place)
        if len(wrong):
            diagnostics.extend(wrong)
            for begin, end in in_file.items():
                if self._ts[end] < self._ts[begin]:
                    diagnostics.add(END_EARLY, f"packet {self._packets[end]}")
        return pairs

    def _pair(self, order: range | list[int], diagnostics: Diagnostics) -> dict[int, int]:
        """Return the row of the end by the row of the start."""
        pairs: dict[int, int] = {}
        stack: list[int] = []
        kinds = self._kinds
        for row in order:
            if kinds[row] > 0:
                stack.append(row)
                if len(stack) > _MAX_DEPTH:
                    diagnostics.add(TOO_DEEP, f"packet {self._packets[row]}")
                continue
            begin = self._close(stack, row, diagnostics)
            if begin is not None:
                pairs[begin] = row
        for row in stack:
            diagnostics.add(NOT_CLOSED, f"packet {self._packets[row]}")
        return pairs

    def _close(self, stack: list[int], row: int, diagnostics: Diagnostics) -> int | None:
        wanted = -self._kinds[row]
        if stack and (wanted == _UNNAMED + 1 or self._kinds[stack[-1]] == wanted):
            return stack.pop()
        for depth in range(len(stack) - 1, -1, -1):
            if self._kinds[stack[depth]] == wanted:
                diagnostics.add(END_CROSSES, f"packet {self._packets[row]}")
                begin = stack[depth]
                # The cut slices are closed here, too.
                del stack[depth:]
                return begin
        diagnostics.add(END_ALONE, f"packet {self._packets[row]}")
        return None


NO_UUID = data_loss("check-pftrace.no_uuid", "a track without a uuid is not shown")
UNDECLARED = data_loss(
    "check-pftrace.undeclared_track",
    "events on a track that nothing declares are shown on a row named after the first of them; values are lost",
)
LATE = notice("check-pftrace.late_track", "a track is declared after its first event")
NO_PARENT = data_loss("check-pftrace.no_parent", "the parent of a track is not declared; the track is not shown")
LOOP = data_loss("check-pftrace.track_loop", "tracks are their own ancestors or nest above 100 levels")
CONFLICT = data_loss(
    "check-pftrace.track_conflict", "one uuid is declared for two different tracks; all events land on one of them"
)
PID_REUSED = data_loss("check-pftrace.pid_reused", "two tracks claim one pid; threads land under the later process")
TID_REUSED = data_loss("check-pftrace.tid_reused", "two tracks claim one thread")
ID_ZERO = data_loss("check-pftrace.id_zero", "pid or tid 0 stands for the idle task in a viewer")
NO_PROCESS = notice("check-pftrace.no_process", "the process of a thread is not declared")
ON_COUNTER = data_loss("check-pftrace.slice_on_counter", "slices and instants are not shown on a counter track")
NOT_COUNTER = data_loss(
    "check-pftrace.not_a_counter", "a value is not shown on a track that is not declared as counter"
)
MERGED = data_loss(
    "check-pftrace.merged_tracks",
    "tracks of different names have one sibling_merge_key: Perfetto draws them, and what is below them, as one",
)

_MAX_PARENTS = 100
_DEFAULT_TRACK = 0
_MERGE_BY_KEY = 3


@dataclass(slots=True)
class Track:
    """A track by its uuid.

    Attributes:
        kind: "process", "thread", "counter", "state", "plain", or "" before its declaration.
        identity: the part that may not change in a second declaration.
        merge_key: the key that siblings must share to be drawn in one row; None for the name, or if never.
        first_slice: packet of the first slice or instant, or -1; likewise first_value for counters.
    """

    kind: str = ""
    identity: tuple[object, ...] = ()
    parent: int = 0
    merge_key: object = None
    declared: int = -1
    first_slice: int = -1
    first_value: int = -1
    edges: Edges = field(default_factory=Edges)


class Tracks:
    """All tracks of a trace, by uuid."""

    def __init__(self, diagnostics: Diagnostics) -> None:
        self._diagnostics = diagnostics
        self._tracks: dict[int, Track] = {}
        self._owners: dict[tuple[object, ...], int] = {}

    def declare(self, descriptor: Fields, machine: int, packet: int) -> None:
        """Note a TrackDescriptor message."""
        uuid = descriptor.get("uuid")
        if uuid is None:
            self._diagnostics.add(NO_UUID, f"packet {packet}")
            return
        identity = _identity(descriptor, machine)
        track = self._at(uuid)
        if track.declared >= 0 and track.identity != identity:
            self._diagnostics.add(CONFLICT, f"packet {packet}: uuid {uuid}")
        if track.declared < 0:
            track.declared = packet
        track.kind, track.identity = str(identity[0]), identity
        track.parent = descriptor.get("parent_uuid", 0)
        track.merge_key = _merge_key(descriptor)
        self._claim(identity, uuid, packet)

    def _claim(self, identity: tuple[object, ...], uuid: int, packet: int) -> None:
        kind = identity[0]
        if kind not in ("process", "thread"):
            return
        ids = identity[2:]
        if 0 in ids:
            self._diagnostics.add(ID_ZERO, f"packet {packet}")
        if self._owners.setdefault(identity, uuid) != uuid:
            self._diagnostics.add(PID_REUSED if kind == "process" else TID_REUSED, f"packet {packet}: {kind} {ids}")

    def _at(self, uuid: int) -> Track:
        track = self._tracks.get(uuid)
        if track is None:
            track = self._tracks[uuid] = Track()
        return track

    def for_slice(self, uuid: int, packet: int) -> Track:
        """Return the track of a slice or instant."""
        track = self._at(uuid)
        if track.first_slice < 0:
            track.first_slice = packet
        return track

    def for_value(self, uuid: int, packet: int) -> None:
        """Note a counter value."""
        track = self._at(uuid)
        if track.first_value < 0:
            track.first_value = packet

    def finish(self, zeros: Zeros) -> tuple[int, int]:
        """Make the checks that need all packets; return the numbers of tracks and of slices."""
        slices = 0
        for uuid, track in self._tracks.items():
            slices += track.edges.check(self._diagnostics, zeros)
            if uuid == _DEFAULT_TRACK and track.declared < 0:
                continue
            for code, packet in self._problems(track):
                self._diagnostics.add(code, f"packet {packet}: uuid {uuid}")
        self._check_rows()
        return sum(track.declared >= 0 for track in self._tracks.values()), slices

    def _check_rows(self) -> None:
        """Report siblings of different names that are drawn in one row for equal merge keys."""
        names: dict[tuple[int, object], object] = {}
        for uuid, track in self._tracks.items():
            if track.kind in ("plain", "state") and track.merge_key is not None:
                name = track.identity[2]
                if names.setdefault((track.parent, track.merge_key), name) != name:
                    self._diagnostics.add(MERGED, f"packet {track.declared}: uuid {uuid} {str(name)!r}")

    def _problems(self, track: Track) -> list[tuple[Code, int]]:
        uses = [packet for packet in (track.first_slice, track.first_value) if packet >= 0]
        if track.declared < 0:
            return [(UNDECLARED, min(uses))]
        problems = []
        if uses and min(uses) < track.declared:
            problems.append((LATE, min(uses)))
        if track.kind == "counter" and track.first_slice >= 0:
            problems.append((ON_COUNTER, track.first_slice))
        if track.kind != "counter" and track.first_value >= 0:
            problems.append((NOT_COUNTER, track.first_value))
        if track.kind == "thread" and ("process", *track.identity[1:3]) not in self._owners:
            problems.append((NO_PROCESS, track.declared))
        return problems + self._ancestry(track)

    def _ancestry(self, track: Track) -> list[tuple[Code, int]]:
        ancestor = track
        for _ in range(_MAX_PARENTS):
            # Processes and threads are placed by their ids, whatever their parent; 0 is the root.
            if ancestor.kind in ("process", "thread") or ancestor.parent == 0:
                return []
            parent = self._tracks.get(ancestor.parent)
            if parent is None or parent.declared < 0:
                return [(NO_PARENT, track.declared)]
            ancestor = parent
        return [(LOOP, track.declared)]


def _merge_key(descriptor: Fields) -> object:
    """Return the key that merges siblings; None without the behavior that uses it."""
    if descriptor.get("sibling_merge_behavior") != _MERGE_BY_KEY:
        return None
    field = descriptor.get("sibling_merge_key_field")
    return (field, descriptor[field]) if field else ""


def _identity(descriptor: Fields, machine: int) -> tuple[object, ...]:
    for kind, ids in (("process", ("pid",)), ("thread", ("pid", "tid"))):
        if kind in descriptor:
            return kind, machine, *(descriptor[kind].get(id, 0) for id in ids)
    name, parent = descriptor.get("name", b"").decode("utf-8", "replace"), descriptor.get("parent_uuid", 0)
    for kind in ("counter", "state"):
        if kind in descriptor:
            return kind, machine, name, parent
    return "plain", machine, name, parent

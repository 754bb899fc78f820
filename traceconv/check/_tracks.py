"""Check that the tracks of a Perfetto trace are declared, connected and used as declared."""

from __future__ import annotations

from dataclasses import dataclass, field

from traceconv.check._balance import Edges
from traceconv.check._messages import Fields
from traceconv.check._report import declare
from traceconv.check._zeros import Zeros
from traceconv.model.diagnostics import Code, Diagnostics, Severity

NO_UUID = declare("check-pftrace.no_uuid", Severity.DATA_LOSS, "a track without a uuid is not shown")
UNDECLARED = declare(
    "check-pftrace.undeclared_track",
    Severity.DATA_LOSS,
    "events on a track that nothing declares are shown on a row named after the first of them; values are lost",
)
LATE = declare("check-pftrace.late_track", Severity.NOTICE, "a track is declared after its first event")
NO_PARENT = declare(
    "check-pftrace.no_parent", Severity.DATA_LOSS, "the parent of a track is not declared; the track is not shown"
)
LOOP = declare(
    "check-pftrace.track_loop", Severity.DATA_LOSS, "tracks are their own ancestors or nest above 100 levels"
)
CONFLICT = declare(
    "check-pftrace.track_conflict",
    Severity.DATA_LOSS,
    "one uuid is declared for two different tracks; all events land on one of them",
)
PID_REUSED = declare(
    "check-pftrace.pid_reused", Severity.DATA_LOSS, "two tracks claim one pid; threads land under the later process"
)
TID_REUSED = declare("check-pftrace.tid_reused", Severity.DATA_LOSS, "two tracks claim one thread")
ID_ZERO = declare("check-pftrace.id_zero", Severity.DATA_LOSS, "pid or tid 0 stands for the idle task in a viewer")
NO_PROCESS = declare("check-pftrace.no_process", Severity.NOTICE, "the process of a thread is not declared")
ON_COUNTER = declare(
    "check-pftrace.slice_on_counter", Severity.DATA_LOSS, "slices and instants are not shown on a counter track"
)
NOT_COUNTER = declare(
    "check-pftrace.not_a_counter", Severity.DATA_LOSS, "a value is not shown on a track that is not declared as counter"
)
MERGED = declare(
    "check-pftrace.merged_tracks",
    Severity.DATA_LOSS,
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

"""Write the packets before the events of a Perfetto trace: attributes, the window to show first, and tracks.

The last packet of the trace states how many bytes come before it. So it is known whether another trace was appended.

Times are not on a clock of Perfetto: the UI would show a snapshot of the only clock as a group above all others. The
attribute `traceconv.clock` states the clock.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from json.encoder import encode_basestring_ascii
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from traceconv.families.perfetto import _fields as proto
from traceconv.families.perfetto import _wire as wire
from traceconv.families.perfetto._about import SIZE, SOURCES, TO_SOURCES, json_attribute
from traceconv.families.perfetto._arranged import Arrangement
from traceconv.families.perfetto._inputs import attribute_of
from traceconv.families.perfetto.view import VIEW, view_of
from traceconv.io.packets import read_packets
from traceconv.io.source import Source
from traceconv.model.ordering import chunks
from traceconv.model.trace import NO_TRACK, Trace, TrackKind
from traceconv.model.tracks import NO_NUMBER
from traceconv.writers.ids import Identities
from traceconv.writers.metadata import recording_metadata
from traceconv.writers.view import window

_ROOT_UUID = 0
#: More bytes than the last packet takes.
_ENDING = 64
_LONG_PATH = 1000
_UNITS = {"ns": 1, "count": 2, "bytes": 3}


class Head:
    """The packets before the first event, and the values from them that events need.

    Attributes:
        ids: the identity of each track.
        shift: the offset that is added to all times, ns.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace, self._kind = trace, trace.tracks.column("kind")
        self.ids = Identities(trace)
        self._uuids = track_uuids(trace)
        self._first, self.shift = _start(trace)
        self._shown = Arrangement(trace, self.ids)

    def track(self, index: int) -> bytes:
        """Return the field that names the track of events."""
        return wire.integer(proto.TRACK_UUID, self._uuids[index])

    def tracks(self) -> Iterator[bytes]:
        """Yield `track` of each track."""
        return self._all_uuids(proto.TRACK_UUID)

    def _all_uuids(self, field: int) -> Iterator[bytes]:
        """Yield a field with the uuid of each track."""
        return _integers(field, np.asarray(self._uuids, np.int64))

    def task(self, index: int) -> bytes:
        """Return the fields of process and thread for samples on a track."""
        identity = self.ids[index]
        tid = identity.pid if self._trace.tracks[index].kind is TrackKind.PROCESS else identity.tid
        return wire.integer(2, identity.pid) + wire.integer(3, tid)

    def packets(self) -> Iterator[bytes]:
        """Yield the packets before the first event."""
        yield self._first_packet()
        times = window(self._trace)
        moved = (times[0] + self.shift, times[1] + self.shift) if times else None
        # A packet of its own, and the first one, so that it is in the head of the file.
        yield from _attributes({VIEW: view_of(self._trace, self.ids, self._shown, moved)})
        inputs = attribute_of(self._trace, self._uuids, self._shown, list(map(self._input_uuid, self._shown.inputs)))
        yield from _attributes({**_about(self._trace, self.shift), **self._trace.metadata, **inputs})
        yield from _window(moved)
        for fields in self._descriptors():
            yield self._descriptor_packet(fields)

    def _first_packet(self) -> bytes:
        payload = proto.in_sequence(proto.SEQUENCE, proto.CLEARED)
        return wire.packet(payload + wire.integer(proto.FIRST_PACKET, 1))

    def _descriptor_packet(self, fields: bytes) -> bytes:
        """Return the packet of a track descriptor, outside of the sequence.

        Inside of it, Perfetto would assign all events to the last thread.
        """
        return wire.packet(wire.integer(proto.TIMESTAMP, self._first) + wire.blob(proto.TRACK_DESCRIPTOR, fields))

    def _descriptors(self) -> Iterator[bytes]:
        # Perfetto sorts processes and threads by rank from v57 on, and the other tracks in all versions.
        yield (
            wire.integer(proto.UUID, _ROOT_UUID)
            + wire.integer(proto.CHILD_ORDERING, proto.EXPLICIT)
            + wire.integer(proto.PROCESS_ORDERING, 1)
            + wire.integer(proto.THREAD_ORDERING, 1)
        )
        shown = self._shown
        yield from map(self._input, shown.inputs)
        ordering = wire.integer(proto.CHILD_ORDERING, proto.EXPLICIT)
        merging = wire.integer(proto.MERGE_BEHAVIOR, proto.MERGE_BY_KEY)
        rows, natives = self._trace.tracks.column("lane_of"), self.ids.native.data
        rows = np.where(rows == NO_TRACK, np.arange(len(rows)), rows)
        is_thread = (self.ids.native & (self._kind != TrackKind.PROCESS) & (self._kind != TrackKind.COUNTER)).data
        is_left_out = np.zeros(len(rows), bool)
        is_left_out[list(shown.left_out)] = True
        columns = (
            self._all_uuids(proto.UUID),
            _integers(1, self.ids.pid),
            _integers(2, self.ids.tid),
            _integers(proto.ORDER_RANK, shown.positions),
        )
        for index, (uuid, pid, tid, rank) in enumerate(zip(*columns, strict=True)):
            if is_left_out[index]:
                continue
            is_native = bool(natives[index])
            if is_native and self.ids.process[index] == index and self._kind[index] != TrackKind.PROCESS:
                yield self._process_without_track(index)
            kind = self._thread_field(index, pid + tid) if is_thread[index] else self._kind_fields(index, is_native)
            fields = [uuid, kind, ordering, rank]
            if description := shown.description(index):
                fields.append(wire.text(proto.DESCRIPTION, description))
            if not is_native:  # Perfetto draws siblings with equal keys in one row, whatever their names: lanes
                fields += merging, wire.integer(proto.MERGE_KEY, self._uuids[rows[index]])
            yield b"".join(fields)
        yield from map(self._counters, shown.counted)

    def _input(self, number: int) -> bytes:
        """Return the descriptor of the group of an input, which is apart from a group of the same name."""
        uuid = self._input_uuid(number)
        fields = wire.integer(proto.UUID, uuid) + wire.text(proto.NAME, self._shown.inputs[number])
        fields += wire.integer(proto.CHILD_ORDERING, proto.EXPLICIT)
        return fields + wire.integer(proto.MERGE_BEHAVIOR, proto.MERGE_BY_KEY) + wire.integer(proto.MERGE_KEY, uuid)

    def _input_uuid(self, number: int) -> int:
        return _hash(["tracks of", str(number), self._shown.inputs[number]])

    def _counters(self, index: int) -> bytes:
        """Return the descriptor of the group of counters of a track."""
        fields = wire.integer(proto.UUID, self._counters_uuid(index)) + wire.integer(proto.PARENT, self._uuids[index])
        fields += wire.text(proto.NAME, self._shown.group_name(index))
        fields += wire.integer(proto.CHILD_ORDERING, proto.EXPLICIT)
        return fields + wire.integer(proto.ORDER_RANK, self._shown.group_position(index))

    def _counters_uuid(self, index: int) -> int:
        return _hash(["counters of", str(self._uuids[index])])

    def _process_without_track(self, index: int) -> bytes:
        """Return the descriptor of a process for a sampled track without one."""
        uuid = _hash(["process of", str(self._uuids[index])])
        return wire.integer(proto.UUID, uuid) + self._process_field(index)

    def _process_field(self, index: int) -> bytes:
        track, name = self._trace.tracks.special_of(index), self.ids.title(index)
        process = wire.integer(1, int(self.ids.pid[index]))
        if name:
            process += wire.text(6, name)
        for label in [*self.ids.groups_above(index), *(track.labels if track else ())]:
            process += wire.text(8, label)
        return wire.blob(proto.PROCESS, process)

    def _thread_field(self, index: int, numbers: bytes) -> bytes:
        name = self.ids.title(index)
        return wire.blob(proto.THREAD, numbers + wire.text(5, name) if name else numbers)

    def _kind_fields(self, index: int, is_native: bool) -> bytes:
        kind = self._kind[index]
        if is_native and kind == TrackKind.PROCESS:
            return self._process_field(index)
        fields = wire.text(proto.NAME, self._shown.name(index))
        parent = self._shown.parent(index)
        if parent != NO_TRACK:
            uuid = self._counters_uuid(parent) if self._shown.is_grouped(index) else self._uuids[parent]
            fields += wire.integer(proto.PARENT, uuid)
        elif (number := self._shown.input_of(index)) is not None:
            fields += wire.integer(proto.PARENT, self._input_uuid(number))
        if kind == TrackKind.COUNTER:
            fields += wire.blob(proto.COUNTER, _unit(self._trace.tracks[index].unit))
        return fields


def _integers(field: int, values: npt.NDArray[Any]) -> Iterator[bytes]:
    """Yield an integer field for each value, which must not be negative."""
    return (one for rows in chunks(len(values)) for one in wire.integers(field, values[rows].astype(np.int64)))


def ending(size: int) -> bytes:
    """Return the last packet of a trace, after `size` bytes."""
    return b"".join(_attributes({SIZE: size}))


def stated_sources(source: Source) -> Any:
    """Return the attribute with the inputs from a trace that is there from its first to its last packet; else None.

    Raises:
        InputError: the file cannot be read.
    """
    with source.open() as trace:
        sources = json_attribute(islice(read_packets(trace), TO_SOURCES), SOURCES)
    return sources if sources is not None and _is_whole(source) else None


def _is_whole(source: Source) -> bool:
    """Return whether a trace ends with its last packet, so that no other trace was appended."""
    head = source.head()
    end = head.tail[-_ENDING:]
    size = len(head.data) if head.complete else source.size
    return any(end.endswith(ending(size - length)) for length in range(len(ending(0)), _ENDING))


def _start(trace: Trace) -> tuple[int, int]:
    """Return the first time in the file, and the offset to add to all times (ns): Perfetto drops events before 0."""
    span = trace.span()
    first = span[0] if span else 0
    return max(first, 0), max(-first, 0)


def _window(times: tuple[int, int] | None) -> Iterator[bytes]:
    """Yield the packets that make the UI open at the work: it shows the time between them first."""
    for time, event in zip(times or (), (proto.TRACING_STARTED, proto.TRACING_DISABLED), strict=False):
        head = wire.integer(proto.TIMESTAMP, time) + wire.integer(proto.SEQUENCE_ID, proto.SEQUENCE)
        yield wire.packet(head + wire.blob(proto.SERVICE_EVENT, wire.integer(event, 1)))


def _about(trace: Trace, shift: int) -> dict[str, Any]:
    """Return the attributes of the trace."""
    values: dict[str, Any] = {f"traceconv.{key}": value for key, value in recording_metadata(trace).items()}
    return values | ({"traceconv.time_shift_ns": shift} if shift else {})


def _attributes(values: dict[str, Any]) -> list[bytes]:
    """Return the packet of the attributes, in chunks, since it may be large."""
    parts = []
    for key, value in values.items():
        shown = wire.utf8(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        parts += wire.headed(1, [wire.text(1, key), *wire.headed(3, [shown])])
    return wire.headed(proto.PACKET, [*wire.headed(proto.ATTRIBUTES, parts), proto.STATE])


def _unit(unit: str) -> bytes:
    if unit in _UNITS:
        return wire.integer(3, _UNITS[unit])
    return wire.text(6, unit) if unit else b""


def track_uuids(trace: Trace) -> Sequence[int]:
    """Return a uuid for each track from its path, so that tracks of concatenated files are not mixed up."""
    paths = _Paths(trace)
    firsts = array("q", (paths.hash_of(index, 0) for index in range(len(trace.tracks))))
    numbers = np.sort(np.frombuffer(firsts, np.int64))
    if not (len(numbers) and (numbers[0] == _ROOT_UUID or np.any(numbers[1:] == numbers[:-1]))):
        return firsts
    del numbers
    repeated: dict[int, int] = defaultdict(int)
    uuids = array("q")
    used = {_ROOT_UUID}
    for index, uuid in enumerate(firsts):
        if uuid in used:  # another track with that path
            repeated[uuid] += 1
            uuid = paths.hash_of(index, repeated[uuid])
        while uuid in used:
            uuid += 1
        used.add(uuid)
        uuids.append(uuid)
    return uuids


class _Path(NamedTuple):
    """The path of a track: names, kinds and numbers, outermost first, as the members of a JSON array."""

    members: str
    characters: int

    def below(self, *parts: str) -> _Path:
        """Return the path with more parts behind it."""
        more = ", ".join(map(encode_basestring_ascii, parts))
        return _Path(f"{self.members}, {more}", self.characters + sum(map(len, parts)))

    def short(self) -> _Path:
        """Return the path, or its hash if it is long, so that the size does not grow with the depth."""
        return self if self.characters <= _LONG_PATH else _path(str(_hash_of(self.members)))


def _path(part: str) -> _Path:
    return _Path(encode_basestring_ascii(part), len(part))


class _Paths:
    """The paths of the tracks of a trace, which identify them."""

    def __init__(self, trace: Trace) -> None:
        tracks = trace.tracks
        self._tracks, self._names, self._sources = tracks, tracks.texts("name"), tracks.column("source").data
        self._kinds, self._parents = tracks.column("kind").data, tracks.column("parent").data
        self._numbers = tracks.numbers().data
        has_children = np.zeros(len(tracks) + 1, bool)  # the last one is for NO_TRACK
        has_children[tracks.column("parent")] = True
        self._has_children = has_children.data
        self._origins = [_path(source.name) for source in trace.sources]
        self._kept: dict[int, _Path] = {}  # the paths of inner tracks with children
        self._top = int(NO_TRACK), _path("")  # the last track at the top, which many may be in, with its path

    def hash_of(self, index: int, repeat: int) -> int:
        """Return the hash of the path of a track and a number; those of its parents must have been requested before."""
        parent = self._parents[index]
        if self._has_children[index]:
            members = self._of(index).members
        else:
            above = self._above(parent) if parent != NO_TRACK else self._origins[self._sources[index]]
            pid, tid = self._pid_and_tid(index)
            name = encode_basestring_ascii(self._names[index])
            members = f'{above.members}, "{_KINDS[self._kinds[index]]}", {name}, "{pid}", "{tid}"'
        return _hash_of(f'{members}, "{repeat}"')

    def _of(self, index: int) -> _Path:
        parent, source = self._parents[index], self._sources[index]
        above = self._above(parent) if parent != NO_TRACK else self._origins[source]
        path = above.below(_KINDS[self._kinds[index]], self._names[index], *self._pid_and_tid(index))
        if parent != NO_TRACK and self._has_children[index]:
            self._kept[index] = path.short()
        return path

    def _above(self, index: int) -> _Path:
        """Return the prefix of the paths of the children of a track."""
        if index in self._kept:
            return self._kept[index]
        if index != self._top[0]:
            self._top = index, self._of(index).short()
        return self._top[1]

    def _pid_and_tid(self, index: int) -> tuple[str, str]:
        if track := self._tracks.special_of(index):
            return str(track.pid), str(track.tid)
        number = "None" if self._numbers[index] == NO_NUMBER else str(self._numbers[index])
        return (number, "None") if self._kinds[index] == TrackKind.PROCESS else ("None", number)


#: The names of the kinds of tracks.
_KINDS = [kind.name for kind in TrackKind]


def _hash(parts: list[str]) -> int:
    """Return a hash of 62 bits, so that it stays positive everywhere and takes nine bytes."""
    return _hash_of(", ".join(map(encode_basestring_ascii, parts)))


def _hash_of(members: str) -> int:
    """Return the hash of texts, given as the members of a JSON array."""
    return int.from_bytes(hashlib.blake2b(b"[%s]" % members.encode(), digest_size=8).digest(), "big") >> 2

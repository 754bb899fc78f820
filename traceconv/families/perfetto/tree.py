"""The tracks of a Perfetto trace as they are written: described in packets, with their inputs.

An attribute of the trace states what answers need of its inputs: the input of each track, and how events were counted.
It is JSON: {"sources": [{"without_periods": ["cycles"]}, ...], "tracks": {"1": [uuid, ...]}, ...}. A track that is not
in it is of the first input. In "carries", a thread that several inputs recorded one after the other has
[uuid, table, input, time (ns) from which rows of the table are of it]. "synthetic" has the tracks without real times,
beside others that have them, and "doubts" a list [uuid, "not aligned"] for each track whose name in the file ends in
doubts. "processes" has a list [uuid, pid, name, label, ...] for each process that is written as a group, "threads" a
list [uuid, tid, name] for each thread that is a row. Without the attribute, answers would attribute costs by guesses.

An output that was made of outputs states the inputs of these. Then each source has its name and format, and in "placed"
how it was placed: in the output that held it, in the one that held that, and so on, as indices into "placings".
"""

from __future__ import annotations

import hashlib
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from traceconv.families.common import wire_writer as wire
from traceconv.families.common.wire_reader import Message, Value
from traceconv.families.index import FORMATS
from traceconv.families.perfetto.arrangement import COUNTERS, MARKS, NO_INPUT, Arrangement, Mask
from traceconv.families.registry import importer_class
from traceconv.model.clocks import Verdict
from traceconv.model.columns import I32, I64, occurring
from traceconv.model.numbers import read_json
from traceconv.model.source_info import Layer, Placing, SourceInfo
from traceconv.model.trace import Trace
from traceconv.model.trace_inputs import by_stated_inputs, placings_of
from traceconv.model.track_table import NO_NUMBER, NO_TRACK, TrackKind, topmost
from traceconv.writers.ids import Identities

#: The attributes with the files that an output was made of, with its clock as `ClockDomain.describe` says it, with the
#: first view, and with the offset that was added to all times (ns).
SOURCES, CLOCK, VIEW, SHIFT = "traceconv.sources", "traceconv.clock", "traceconv.view", "traceconv.time_shift_ns"
#: The attribute in its last packet: how many bytes come before.
SIZE = "traceconv.size"
#: The packets of such a trace up to SOURCES: the first one, the view, the attributes.
TO_SOURCES = 3
#: The attribute about inputs, and what it may state of each.
INPUTS = "traceconv.inputs"
STATED_TEXTS = ("without_periods", "sampled")
STATED_CATEGORY = "join_category"

_PROCESS, _THREAD, _, _COUNTER = TrackKind
#: The approximate number of rows of a screen.
_ROWS = 30
_ROOT_UUID = 0
#: What the uuids of groups are made of.
_OF_GROUPS = {COUNTERS: "counters of", MARKS: "marks of"}
_ATTRIBUTES = 126  # of TracePacket
#: The fields about parents that are kept: siblings follow one another mostly.
_MOST_PARENTS = 1 << 10
#: The values of a column that are encoded at a time.
_ENCODED = 1 << 14
_LONG_PATH = 1000

# TrackDescriptor, and values of it
_UUID, _NAME, _PROCESS_FIELD, _THREAD_FIELD, _PARENT, _COUNTER_FIELD, _CHILD_ORDERING = 1, 2, 3, 4, 5, 8, 11
_ORDER_RANK, _DESCRIPTION, _MERGE_BEHAVIOR, _MERGE_KEY, _PROCESS_ORDERING, _THREAD_ORDERING = 12, 14, 15, 17, 19, 20
_UNITS = {"ns": 1, "count": 2, "bytes": 3}
#: The stated order of the tracks inside one; and that the tracks of one key are drawn in one row.
_ORDERED = wire.integer(_CHILD_ORDERING, 3)
_MERGED_BY_KEY, _KEY_TAG = wire.integer(_MERGE_BEHAVIOR, 3), wire.tag(_MERGE_KEY, 0)


class Tree:
    """The tracks of a file: numbered, arranged and described."""

    def __init__(self, trace: Trace) -> None:
        self._trace, self._kinds = trace, trace.tracks.column("kind").data
        self.ids = Identities(trace)
        self.uuids = track_uuids(trace)
        self.shown = Arrangement(trace, self.ids)
        self._parent_field = lru_cache(_MOST_PARENTS)(self._parent_field_of)

    def task(self, index: int) -> bytes:
        """Return the fields of process and thread for samples on a track."""
        identity = self.ids[index]
        tid = identity.pid if self._trace.tracks[index].kind is _PROCESS else identity.tid
        return wire.integer(2, identity.pid) + wire.integer(3, tid)

    def descriptors(self) -> Iterator[bytes]:
        """Yield the fields of all track descriptors."""
        # Perfetto sorts processes and threads by rank from v57 on, and the other tracks in all versions.
        ordered = wire.integer(_PROCESS_ORDERING, 1) + wire.integer(_THREAD_ORDERING, 1)
        yield wire.integer(_UUID, _ROOT_UUID) + _ORDERED + ordered
        shown = self.shown
        yield from map(self._input, shown.inputs)
        lane_of, natives = self._trace.tracks.column("lane_of"), self.ids.native.data
        rows = np.where(lane_of == NO_TRACK, np.arange(len(lane_of)), lane_of).data
        parents, inputs, groups = shown.parents.data, shown.inputs_of.data, shown.groups_of.data
        kind, process = self._trace.tracks.column("kind"), self.ids.process.data
        is_thread = (self.ids.native & (kind != _PROCESS) & (kind != _COUNTER)).data
        columns = (
            _integers(_UUID, np.asarray(self.uuids, np.int64)),
            _integers(1, self.ids.pid),
            _integers(2, self.ids.tid),
            _integers(_ORDER_RANK, shown.positions),
            shown.descriptions,
        )
        for index, (uuid, pid, tid, rank, description) in enumerate(zip(*columns, strict=True)):
            if index in shown.left_out:
                continue
            is_native = bool(natives[index])
            if is_thread[index]:
                if process[index] == index:
                    of_thread = _hash(["process of", str(self.uuids[index])])  # a sampled track without a process
                    yield wire.integer(_UUID, of_thread) + self._process_field(index, pid)
                fields = [uuid, self._thread_field(index, pid + tid), _ORDERED, rank]
            elif is_native and self._kinds[index] == _PROCESS:
                fields = [uuid, self._process_field(index, pid), _ORDERED, rank]
            else:
                fields = [uuid, self._row_fields(index, parents[index], inputs[index], groups[index]), _ORDERED, rank]
            if description:
                fields.append(wire.text(_DESCRIPTION, description))
            if not is_native:  # Perfetto draws siblings with equal keys in one row, whatever their names: lanes
                main = rows[index]
                key = uuid[1:] if main == index else wire.varint(self.uuids[main])
                fields += _MERGED_BY_KEY, _KEY_TAG, key
            yield b"".join(fields)
        yield from (self._group(parent, group) for parent, group in shown.groups)

    def input_uuid(self, number: int) -> int:
        """Return the uuid of the group of an input."""
        return _hash(["tracks of", str(number), self.shown.inputs[number]])

    def _input(self, number: int) -> bytes:
        """Return the descriptor of the group of an input, which is apart from a group of the same name."""
        uuid = self.input_uuid(number)
        fields = wire.integer(_UUID, uuid) + wire.text(_NAME, self.shown.inputs[number]) + _ORDERED
        return fields + _MERGED_BY_KEY + wire.integer(_MERGE_KEY, uuid)

    def _group(self, parent: int, group: int) -> bytes:
        """Return the descriptor of a group of counters or marks of a track."""
        fields = wire.integer(_UUID, self._group_uuid(parent, group)) + wire.integer(_PARENT, self.uuids[parent])
        fields += wire.text(_NAME, self.shown.group_name(parent, group)) + _ORDERED
        return fields + wire.integer(_ORDER_RANK, self.shown.groups[parent, group])

    def _group_uuid(self, parent: int, group: int) -> int:
        return _hash([_OF_GROUPS[group], str(self.uuids[parent])])

    def _process_field(self, index: int, pid: bytes) -> bytes:
        track, name = self._trace.tracks.special_of(index), self.ids.title(index)
        fields = pid + wire.text(6, name) if name else pid
        for label in [*self.ids.groups_above(index), *(track.labels if track else ())]:
            fields += wire.text(8, label)
        return wire.blob(_PROCESS_FIELD, fields)

    def _thread_field(self, index: int, numbers: bytes) -> bytes:
        name = self.ids.title(index)
        return wire.blob(_THREAD_FIELD, numbers + wire.text(5, name) if name else numbers)

    def _row_fields(self, index: int, parent: int, number: int, group: int) -> bytes:
        """Return the fields of a track that is neither a process nor a thread with a number."""
        fields = wire.text(_NAME, self.shown.name(index)) + self._parent_field(parent, number, group)
        if self._kinds[index] == _COUNTER:
            track = self._trace.tracks.special_of(index)
            fields += _counter_field(track.unit) if track else _COUNTED
        return fields

    def _parent_field_of(self, parent: int, number: int, group: int) -> bytes:
        """Return the field with what a row is in: a track, a group of its tracks, the group of an input, or nothing."""
        if parent != NO_TRACK:
            return wire.integer(_PARENT, self._group_uuid(parent, group) if group else self.uuids[parent])
        return wire.integer(_PARENT, self.input_uuid(number)) if number != NO_INPUT else b""


def _counter_field(unit: str) -> bytes:
    known = wire.integer(3, _UNITS[unit]) if unit in _UNITS else wire.text(6, unit) if unit else b""
    return wire.blob(_COUNTER_FIELD, known)


#: The field of a counter without a unit.
_COUNTED = _counter_field("")


def _integers(field: int, values: npt.NDArray[Any]) -> Iterator[bytes]:
    """Yield an integer field for each value, which must not be negative."""
    some = (values[start : start + _ENCODED].astype(np.int64) for start in range(0, len(values), _ENCODED))
    return (number for part in some for number in wire.integers(field, part))


# -- the identity of tracks ---------------------------------------------------------------------------------------


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
        members = self._path_of(index).members if self._has_children[index] else self._members(index)
        return _hash_of(f'{members}, "{repeat}"')

    def _members(self, index: int) -> str:
        kind, name, (pid, tid) = self._kinds[index], self._names[index], self._pid_and_tid(index)
        return f'{self._above(index).members}, "{_KINDS[kind]}", {encode_basestring_ascii(name)}, "{pid}", "{tid}"'

    def _path_of(self, index: int) -> _Path:
        """Return the path of a track with children, and keep it for them."""
        parts = _KINDS[self._kinds[index]], self._names[index], *map(str, self._pid_and_tid(index))
        path = _Path(self._members(index), self._above(index).characters + sum(map(len, parts)))
        if self._parents[index] == NO_TRACK:
            self._top = index, path.short()
        else:
            self._kept[index] = path.short()
        return path

    def _above(self, index: int) -> _Path:
        """Return the path of the parent of a track, or of its input."""
        parent = self._parents[index]
        if parent == NO_TRACK:
            return self._origins[self._sources[index]]
        if parent in self._kept:
            return self._kept[parent]
        if parent != self._top[0]:
            self._path_of(parent)
        return self._top[1]

    def _pid_and_tid(self, index: int) -> tuple[int | None, int | None]:
        if track := self._tracks.special_of(index):
            return track.pid, track.tid
        number = None if self._numbers[index] == NO_NUMBER else self._numbers[index]
        return (number, None) if self._kinds[index] == _PROCESS else (None, number)


#: The names of the kinds of tracks.
_KINDS = [kind.name for kind in TrackKind]


def _hash(parts: list[str]) -> int:
    """Return a hash of 62 bits, so that it stays positive everywhere and takes nine bytes."""
    return _hash_of(", ".join(map(encode_basestring_ascii, parts)))


def _hash_of(members: str) -> int:
    """Return the hash of texts, given as the members of a JSON array."""
    return int.from_bytes(hashlib.blake2b(b"[%s]" % members.encode(), digest_size=8).digest(), "big") >> 2


# -- the first view -----------------------------------------------------------------------------------------------


def expanded(trace: Trace, tree: Tree) -> list[str]:
    """Return the titles of the nodes to expand: the framework with its children, then others while there is room.

    Groups of counters and other nodes without slices stay collapsed. A trace without slices is expanded to its samples,
    or else to its counters, instants or log entries.
    """
    ids, shown, count = tree.ids, tree.shown, len(tree.ids)
    tables = (trace.slices, trace.samples, trace.counters, trace.instants, trace.logs)
    events = np.bincount(next((table for table in tables if len(table.ts)), trace.slices).track, minlength=count)
    counted = np.flatnonzero(events)
    # A node is a track, or the group of an input: the number of the input behind those of all tracks.
    inputs, nodes = shown.inputs_of, np.arange(count + max(shown.inputs, default=-1) + 1, dtype=np.int32)
    above = nodes.copy()
    above[:count] = np.where(inputs >= 0, count + inputs, shown.parents)
    above = np.where(above == NO_TRACK, nodes, above)
    first = _first_below(above, shown.mains[counted], counted)
    children = nodes[(first != NO_TRACK) & (above != nodes)]
    children = children[np.argsort(first[children], kind="stable")]
    above_children = above[children]
    child_counts = np.bincount(above_children, minlength=len(nodes))
    is_thread = ids.native & (trace.tracks.column("kind") != _PROCESS)
    names: dict[str, None] = {}
    room = _ROWS
    for top in _tops(trace, topmost(above)[shown.mains[counted]], events[counted], counted):
        waiting = [top]
        for node in waiting:
            if child_counts[node] and (not names or child_counts[node] <= room):
                inside = children[above_children == node]
                names[shown.inputs[node - count] if node >= count else _title(tree, node)] = None
                room -= len(inside)
                waiting += inside[~is_thread[inside] & (child_counts[inside] > 0)].tolist()
        if names and room < 1:
            break
    return list(names)


def _first_below(above: I32, nodes: I32, tracks: I64) -> I32:
    """Return for each node the first of the tracks that are drawn in or below it; NO_TRACK for none.

    `above` is the node around each node (itself at the top), `nodes` the node of each of the tracks.
    """
    first = np.full(len(above), NO_TRACK, np.int32)
    around, found = above.data, first.data
    for node, track in zip(nodes.data, tracks.data, strict=True):
        while found[node] == NO_TRACK:
            found[node] = track
            node = around[node]
    return first


def _tops(trace: Trace, top: I32, events: I64, tracks: I64) -> list[int]:
    """Return the topmost nodes: those with the most events of a framework on threads first, then the most others.

    `top` is the topmost node of each of the tracks, `events` their numbers of events.
    """
    frameworks = np.array([source.layer is Layer.FRAMEWORK for source in trace.sources], bool)
    of_framework = frameworks[trace.tracks.column("source")[tracks]]
    of_framework &= trace.tracks.column("kind")[tracks] == _THREAD
    nodes = np.array(occurring(top), np.int64)
    weights = [
        np.bincount(top, np.where(weighed, events, 0), len(nodes) and int(nodes[-1]) + 1)[nodes]
        for weighed in (of_framework, ~of_framework)
    ]
    is_group = nodes >= len(trace.tracks)
    order = np.lexsort((np.where(is_group, -nodes, nodes), is_group, -weights[1], -weights[0]))
    ordered: list[int] = nodes[order].tolist()
    return ordered


def _title(tree: Tree, index: int) -> str:
    """Return the title of a track in the UI."""
    identity, name = tree.ids[index], tree.shown.name(index)
    if not identity.native:
        return name
    return f"{name.rpartition('/')[2] if name.startswith('/') else name or 'Process'} {identity.pid}"


# -- the inputs ---------------------------------------------------------------------------------------------------


def attribute_of(trace: Trace, tree: Tree) -> dict[str, Any]:
    """Return the attribute about the inputs of a trace by its name; nothing if there is nothing to state."""
    outputs = {number for number, source in enumerate(trace.sources) if source.stated}
    trace = by_stated_inputs(trace)
    number_of = {number: at for at, number in enumerate(sorted({*range(len(trace.sources))} - outputs))}
    sources = [_counted(trace.sources[number]) for number in number_of]
    attribute: dict[str, Any] = {}
    if outputs:
        all_placings, placings = placings_of(trace), list[Placing]()
        for number, stated in zip(number_of, sources, strict=True):
            placings += (step for step in all_placings[number] if step not in placings)
            stated |= {"name": trace.sources[number].name, "format": trace.sources[number].format}
            stated |= {"placed": [placings.index(step) for step in all_placings[number]]}
        attribute["placings"] = [
            [step.bound_ns, Verdict.SEPARATE if step.apart else "", step.host] for step in placings
        ]
    tracks, uuids = trace.tracks, np.asarray(tree.uuids, np.int64)
    is_written = np.ones(len(tracks), bool)
    is_written[list(tree.shown.left_out)] = False
    numbers = np.array([number_of.get(number, 0) for number in range(len(trace.sources))])[tracks.column("source")]
    of_source = {
        number: uuids[is_written & (numbers == number)].tolist()
        for number in dict.fromkeys(numbers[is_written].tolist())
        if number
    }
    lacks_pid = is_written & (tracks.column("kind") == _PROCESS) & (tracks.numbers() == NO_NUMBER)
    attribute |= {"sources": sources if any(sources) else [], "tracks": of_source}
    groups = list(map(tree.input_uuid, tree.shown.inputs))
    attribute |= {"without_pid": uuids[lacks_pid].tolist(), "unknown": [], "groups": groups}
    attribute |= _special(trace, tree, is_written, number_of) | _plain_people(trace, tree, is_written)
    stated = {key: value for key, value in attribute.items() if value}
    return {INPUTS: stated} if stated else {}


def _special(trace: Trace, tree: Tree, is_written: Mask, number_of: dict[int, int]) -> dict[str, Any]:
    """Return the uuids of the tracks with something to state that few have."""
    unknown, synthetic, carries, doubts = [], [], [], []
    for index in sorted({*tree.shown.joined_doubts, *(index for index, _ in trace.tracks.special())}):
        if not is_written[index]:
            continue
        track, uuid = trace.tracks[index], tree.uuids[index]
        carries += [
            (uuid, table, number_of[source], since) for table, source, since in track.carries if source in number_of
        ]
        if texts := tree.shown.doubts(index):
            doubts.append([uuid, *texts])
        if track.synthetic and not trace.clocks[track.clock].synthetic:
            synthetic.append(uuid)
        if track.unknown:
            unknown.append(uuid)
    return {"unknown": unknown, "synthetic": synthetic, "carries": carries, "doubts": doubts}


def _plain_people(trace: Trace, tree: Tree, is_written: Mask) -> dict[str, Any]:
    """Return the processes and threads that are written as groups and rows although they have numbers."""
    tracks, process = trace.tracks, tree.ids.process
    kind, numbers = tracks.column("kind"), tracks.numbers()
    is_plain = is_written & ~tree.ids.native & (numbers != NO_NUMBER)
    threads = np.flatnonzero(is_plain & (kind == _THREAD) & is_written[process]).tolist()
    processes = is_plain & (kind == _PROCESS)
    processes[process[threads]] |= ~tree.ids.native[process[threads]]
    return {
        "processes": [
            [tree.uuids[index], (track := tracks[index]).pid, track.name, *track.labels]
            for index in np.flatnonzero(processes).tolist()
        ],
        "threads": [[tree.uuids[index], (track := tracks[index]).tid, track.name] for index in threads],
    }


def _counted(source: SourceInfo) -> dict[str, Any]:
    """Return what is stated of an input: how its events were counted, and a layer that its format does not declare."""
    texts = {key: value for key in (*STATED_TEXTS, STATED_CATEGORY) if (value := getattr(source, key))}
    if source.layer is not (importer_class(source.format).layer if source.format in FORMATS else None):
        texts["layer"] = source.layer and source.layer.name
    return texts


def attributes_of(message: Message) -> dict[str, Any]:
    """Read TraceAttributes: attribute 1* {key 1, long_value 2, string_value 3}."""
    attributes = map(Message, message.all(1))
    return {entry.text(1): entry.text(3) if 3 in entry else entry.signed(2) for entry in attributes}


def json_attribute(packets: Iterable[Value], name: str) -> Any:
    """Return the value of an attribute that is JSON, from the first packet that has it; None if none has."""
    for packet in packets:
        try:
            value = attributes_of(Message(packet).message(_ATTRIBUTES)).get(name)
            if isinstance(value, str):
                return read_json(value.encode())
        except ValueError:
            continue
    return None

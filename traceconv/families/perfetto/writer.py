"""Perfetto's protobuf trace: exact nanoseconds, named and nested tracks, counters with units, typed annotations.

Described by protos/perfetto/trace/*.proto in github.com/google/perfetto and docs/reference/synthetic-track-event.md;
the field numbers below are those of the files. The packets are put together from bytes, since building a message
object per event costs ten times as much.

One packet sequence holds all events but call stack samples, which need a sequence for each name of samples, since the
name belongs to the defaults of a sequence; samples whose CPU is not known have one of their own. Interned data of a
block of events stands in a packet before the block.

The kernel, where it is compiled, puts the plain events together; the result is the same without it, byte by byte.
For that, what a block interns comes in a fixed order: names of events by their number, texts in log entries, then
texts in other args in the order of the file.

An arrow points from the earlier slice to the later one, whatever the trace says: Perfetto takes the direction from
the times. A module of a stack frame is shown by Perfetto with a leading slash.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, pairwise
from typing import Any, BinaryIO, ClassVar

import numpy as np
import numpy.typing as npt

from traceconv import kernel
from traceconv.families.perfetto import _wire as wire
from traceconv.families.perfetto._annotations import Annotations, Interner, Interning, Limits
from traceconv.io.packets import CPU_UNKNOWN
from traceconv.model.clocks import Zero
from traceconv.model.trace import (
    I32,
    I64,
    NO_TRACK,
    Counters,
    Instants,
    Logs,
    Samples,
    Slices,
    Trace,
    Track,
    TrackKind,
    occurring,
    take,
)
from traceconv.writers import WriteCounts
from traceconv.writers.compress import compressed
from traceconv.writers.facts import facts
from traceconv.writers.ids import Identity, groups_above, identities
from traceconv.writers.order import FileOrder, Kind, file_order

_PACKET = 1  # of Trace
# TracePacket
_CLOCK_SNAPSHOT, _TIMESTAMP, _SEQUENCE_ID, _TRACK_EVENT, _INTERNED_DATA, _SEQUENCE_FLAGS = 6, 8, 10, 11, 12, 13
_TIMESTAMP_CLOCK, _DEFAULTS, _TRACK_DESCRIPTOR, _PERF_SAMPLE, _FIRST_PACKET, _ATTRIBUTES = 58, 59, 60, 66, 87, 126
# TracePacketDefaults
_DEFAULT_CLOCK, _DEFAULT_SAMPLE = 58, 12
_CLEARED, _NEEDS_STATE = 1, 2
# TrackEvent
_CATEGORY_IID, _TYPE, _NAME_IID, _TRACK_UUID, _COUNTER_VALUE = 3, 9, 10, 11, 30
_DOUBLE_COUNTER_VALUE, _FLOW, _TERMINATING_FLOW = 44, 47, 48
_LOG_MESSAGE = 21
_FLOW_TAG_SIZE, _FLOW_SIZE = 2, 10
_TYPE_BEGIN, _TYPE_END, _TYPE_INSTANT, _TYPE_COUNTER = 1, 2, 3, 4
# TrackDescriptor
_UUID, _NAME, _PROCESS, _THREAD, _PARENT, _COUNTER, _CHILD_ORDERING = 1, 2, 3, 4, 5, 8, 11
_ORDER_RANK, _DESCRIPTION, _MERGE_BEHAVIOR, _MERGE_KEY, _PROCESS_ORDERING, _THREAD_ORDERING = 12, 14, 15, 17, 19, 20
_EXPLICIT, _MERGE_BY_KEY = 3, 3
_ROOT_UUID = 0
_MAX_TOTAL = 2**64 - 1
# InternedData
_CATEGORIES, _NAMES, _SOURCES, _FUNCTIONS, _FRAMES, _CALLSTACKS, _MAPPING_PATHS = 1, 2, 4, 5, 6, 7, 17
_MAPPINGS, _LOG_BODIES = 19, 20

U64 = npt.NDArray[np.uint64]

_SEQUENCE = 1
_REALTIME, _MONOTONIC, _BOOTTIME = 1, 3, 6
_UNITS = {"ns": 1, "count": 2, "bytes": 3}
_MAX_PIECES = 1 << 16
_LONG_PATH = 1000
_LIMITS = Limits()


@dataclass(frozen=True)
class PerfettoProto:
    """Writes Perfetto's own format.

    Attributes:
        compress: whether to wrap the file into gzip.
    """

    compress: bool = False

    name: ClassVar[str] = "perfetto"
    suffixes: ClassVar[tuple[str, ...]] = (".pftrace", ".perfetto-trace", ".pftrace.gz", ".perfetto-trace.gz")
    binary: ClassVar[bool] = True

    def notes(self, trace: Trace) -> list[str]:
        """The weights that the format has no place for; Perfetto shows all else."""
        bounded = _bounded_weights(trace.samples)
        told = (
            f"{bounded} call stack samples have another weight in the .pftrace: it holds totals from 0 to 2^64 - 1, "
            "and the weights of one name on one CPU add up to more, or to less than 0"
        )
        return [told] if bounded else []

    def write(self, trace: Trace, sink: BinaryIO) -> WriteCounts:
        """Write the whole trace."""
        with compressed(sink, self.compress) as out:
            writing = _Writing(trace)
            for packet in writing.head():
                out.write(packet)
            for block in file_order(trace):
                for packets in writing.block(block):
                    out.write(packets)
                trace.forget()
        return writing.counts()


class _Writing:
    """One file in the making."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._ids = identities(trace)
        self._uuids = track_uuids(trace)
        self._first, self._shift = _start(trace)
        self._clock_id = None if self._shift else _clock_id(trace)
        empty = [number for number, text in enumerate(trace.strings) if not text]
        self._has_text = np.ones(len(trace.strings), np.uint8)
        self._has_text[empty] = 0
        # By table of interned data, which strings need not be interned any more; those without text never.
        known = 1 - self._has_text
        self._known = {table: known.copy() for table in (_CATEGORIES, _NAMES, _LOG_BODIES, _SOURCES)}
        self._pieces: dict[tuple[int, int, int, int], bytes] = {}
        end = wire.integer(_TYPE, _TYPE_END)
        self._ends, self._ends_at = _joined(_event_tail(end + self._track(n)) for n in range(len(self._uuids)))
        self._flows, self._flows_at = _flow_fields(trace)
        self._encoder = self._kernel_encoder()
        self._interning: Interning = self._encoder or Interner(_LIMITS)
        self._annotations = Annotations(self._interning)
        #: By name, and by whether the CPU is known.
        self._sampling: dict[tuple[int, bool], _Sampling] = {}
        self._written: dict[Kind, int] = defaultdict(int)

    def _kernel_encoder(self) -> Any:
        """The kernel's encoder for this trace, None where it is not compiled."""
        module = kernel.module("encode")
        if module is None:
            return None
        tracks = _joined(map(self._track, range(len(self._uuids))))
        pieces = tracks, (self._ends, self._ends_at), (self._flows, self._flows_at)
        shared = _share_args(self._trace)
        return module.Encoder(
            self._trace, _EVENT_HEAD, pieces, self._has_text, shift=self._shift, shared=shared, limits=_LIMITS
        )

    def counts(self) -> WriteCounts:
        written = self._written
        flows = len(self._trace.flows.from_slice)
        return WriteCounts(
            slices=written[Kind.BEGIN],
            instants=written[Kind.INSTANT],
            counters=written[Kind.COUNTER],
            flows=flows,
            samples=written[Kind.SAMPLE],
            logs=written[Kind.LOG],
        )

    # -- before the events ------------------------------------------------------------------------------------

    def head(self) -> Iterator[bytes]:
        """The packets before the first event."""
        yield self._first_packet()
        yield from _attributes(self._trace, self._shift)
        for fields in self._descriptors():
            yield self._descriptor_packet(fields)

    def _first_packet(self) -> bytes:
        payload = wire.integer(_SEQUENCE_ID, _SEQUENCE) + wire.integer(_SEQUENCE_FLAGS, _CLEARED)
        payload += wire.integer(_FIRST_PACKET, 1)
        if self._clock_id is not None:
            payload += wire.blob(_DEFAULTS, wire.integer(_DEFAULT_CLOCK, self._clock_id))
            payload += wire.blob(_CLOCK_SNAPSHOT, self._snapshot(self._clock_id))
        return wire.packet(payload)

    def _snapshot(self, clock_id: int) -> bytes:
        """The clock of the trace; for the wall clock this gives the UI its ruler."""
        reading = wire.blob(1, wire.integer(1, clock_id) + wire.integer(2, self._first))
        return reading + wire.integer(2, clock_id)

    def _descriptor_packet(self, fields: bytes) -> bytes:
        """A track, outside of the sequence: there, Perfetto would take the last thread for that of all events."""
        clock = wire.integer(_TIMESTAMP_CLOCK, self._clock_id) if self._clock_id is not None else b""
        return wire.packet(wire.integer(_TIMESTAMP, self._first) + clock + wire.blob(_TRACK_DESCRIPTOR, fields))

    def _descriptors(self) -> Iterator[bytes]:
        # Perfetto sorts processes and threads by rank from v57 on, and the other tracks in all versions.
        yield (
            wire.integer(_UUID, _ROOT_UUID)
            + wire.integer(_CHILD_ORDERING, _EXPLICIT)
            + wire.integer(_PROCESS_ORDERING, 1)
            + wire.integer(_THREAD_ORDERING, 1)
        )
        for index, track in enumerate(self._trace.tracks):
            identity = self._ids[index]
            if identity.native and identity.process == index and track.kind is not TrackKind.PROCESS:
                yield self._process_without_track(index)
            fields = wire.integer(_UUID, self._uuids[index]) + self._kind_fields(index, track, identity)
            fields += wire.integer(_CHILD_ORDERING, _EXPLICIT) + wire.integer(_ORDER_RANK, identity.position)
            if track.description:
                fields += wire.text(_DESCRIPTION, track.description)
            if not identity.native:
                fields += wire.integer(_MERGE_BEHAVIOR, _MERGE_BY_KEY) + wire.integer(_MERGE_KEY, self._row(index))
            yield fields

    def _row(self, index: int) -> int:
        """A number for the row that a track is drawn in: its own one, but lanes share that of their main track.

        Perfetto draws siblings with equal keys as one, whatever their names.
        """
        main = self._trace.tracks[index].lane_of
        return self._uuids[index if main == NO_TRACK else main]

    def _process_without_track(self, index: int) -> bytes:
        """A process for a sampled track that belongs to none."""
        uuid = _hash(["process of", str(self._uuids[index])])
        return wire.integer(_UUID, uuid) + self._process_field(index, self._trace.tracks[index])

    def _process_field(self, index: int, track: Track) -> bytes:
        identity = self._ids[index]
        process = wire.integer(1, identity.pid)
        if identity.name:
            process += wire.text(6, identity.name)
        for label in [*groups_above(self._trace, index), *track.labels]:
            process += wire.text(8, label)
        return wire.blob(_PROCESS, process)

    def _kind_fields(self, index: int, track: Track, identity: Identity) -> bytes:
        if identity.native and track.kind is TrackKind.PROCESS:
            return self._process_field(index, track)
        if identity.native and track.kind is not TrackKind.COUNTER:
            name = wire.text(5, identity.name) if identity.name else b""
            return wire.blob(_THREAD, wire.integer(1, identity.pid) + wire.integer(2, identity.tid) + name)
        fields = wire.text(_NAME, ", ".join([identity.name, *track.labels]))
        if identity.parent != NO_TRACK:
            fields += wire.integer(_PARENT, self._uuids[identity.parent])
        if track.kind is TrackKind.COUNTER:
            fields += wire.blob(_COUNTER, _unit(track.unit))
        return fields

    def _track(self, index: int) -> bytes:
        """How events name their track."""
        return wire.integer(_TRACK_UUID, self._uuids[index])

    # -- the events -------------------------------------------------------------------------------------------

    def block(self, order: FileOrder) -> Iterator[bytes | memoryview]:
        """The packets of some events, and before them what they rely on."""
        for kind, count in enumerate(np.bincount(order.kind, minlength=len(Kind)).tolist()):
            self._written[Kind(kind)] += count
        self._interned = self._event_names(order)
        others = self._others(order)
        packets = self._in_kernel(order, others) if self._encoder else b"".join(self._in_python(order, others))
        yield self._block_head()
        yield packets

    def _block_head(self) -> bytes:
        interned = b"".join(self._interned) + self._interning.take_interned()
        own = _packet(wire.blob(_INTERNED_DATA, interned)) if interned else b""
        return own + b"".join([sampling.take_head() for sampling in self._sampling.values()])

    def _event_names(self, order: FileOrder) -> list[bytes]:
        """Categories and names that no event before had."""
        fields = []
        tables: tuple[Any, ...] = (self._trace.slices, self._trace.instants)
        rows = [order.row[order.of(kind)] for kind in (Kind.BEGIN, Kind.INSTANT)]
        categories = [table.category[at] for table, at in zip(tables, rows, strict=True)]
        names = [table.name[at] for table, at in zip(tables, rows, strict=True)]
        names.append(self._trace.logs.text[order.row[order.of(Kind.LOG)]])
        for table, strings in ((_CATEGORIES, categories), (_NAMES, names)):
            fields += self._new_texts(table, np.concatenate(strings))
        return fields

    def _new_texts(self, table: int, strings: I32) -> list[bytes]:
        texts = self._trace.strings
        return [
            wire.blob(table, wire.integer(1, string + 1) + wire.text(2, texts[string]))
            for string in self._new(table, strings)
        ]

    def _new(self, table: int, strings: I32) -> list[int]:
        """Which of the strings have text and are not interned yet."""
        known = self._known[table]
        new = occurring(strings[known[strings] == 0])
        known[new] = 1
        return new

    def _in_kernel(self, order: FileOrder, others: Iterator[tuple[int, bytes]]) -> memoryview:
        encoder, at = self._encoder, 0
        kinds, times, rows = map(np.ascontiguousarray, (order.kind, order.ts, order.row))
        taken = np.flatnonzero((kinds != Kind.SAMPLE) & (kinds != Kind.LOG))
        annotations = None
        while True:
            at = encoder.encode(kinds, times, rows, at, annotations)
            if at == len(kinds):
                packets: memoryview = encoder.take()
                return packets
            annotations = None
            if kinds[at] in (Kind.BEGIN, Kind.INSTANT):
                table: Any = self._trace.slices if kinds[at] == Kind.BEGIN else self._trace.instants
                annotations = self._annotated(int(table.args_at[rows[at]]), int(table.args_len[rows[at]]))
            else:
                following = int(np.searchsorted(taken, at))
                end = int(taken[following]) if following < len(taken) else len(kinds)
                encoder.append(b"".join([packet for _, packet in islice(others, end - at)]))
                at = end

    def _in_python(self, order: FileOrder, others: Iterator[tuple[int, bytes]]) -> list[bytes]:
        packets = [b""] * len(order.ts)
        for place, packet in others:
            packets[place] = packet
        annotations = self._annotations_of(order)
        stamps = wire.integers(_TIMESTAMP, order.ts + self._shift)
        for kind in (Kind.BEGIN, Kind.END, Kind.INSTANT, Kind.COUNTER):
            places = order.of(kind)
            if len(places):
                at = places.tolist()
                args = [annotations[i] for i in at] if kind in (Kind.BEGIN, Kind.INSTANT) else []
                encoded = self._encoded(kind, order.row[places], [stamps[i] for i in at], args)
                for i, payload in zip(at, encoded, strict=True):
                    packets[i] = payload
        return packets

    def _encoded(self, kind: Kind, rows: I64, stamps: list[bytes], annotations: list[bytes]) -> list[bytes]:
        """The packets of entries of one kind, of which begins and instants have annotations."""
        if kind is Kind.BEGIN:
            return self._begins(rows, stamps, annotations)
        if kind is Kind.INSTANT:
            return self._instants(rows, stamps, annotations)
        return self._end_packets(rows, stamps) if kind is Kind.END else self._counters(rows, stamps)

    def _others(self, order: FileOrder) -> Iterator[tuple[int, bytes]]:
        """The packets that the kernel leaves out, with their places."""
        found: list[tuple[int, bytes]] = []
        for kind, encode in ((Kind.SAMPLE, self._samples), (Kind.LOG, self._logs)):
            places = order.of(kind)
            if len(places):
                stamps = wire.integers(_TIMESTAMP, order.ts[places] + self._shift)
                found += zip(places.tolist(), encode(order.row[places], stamps), strict=True)
        return iter(sorted(found))

    def _annotations_of(self, order: FileOrder) -> list[bytes]:
        """Of each begin and instant its args, encoded in the order of the file."""
        at, size = np.zeros(len(order.ts), np.int64), np.zeros(len(order.ts), np.int64)
        tables: dict[Kind, Any] = {Kind.BEGIN: self._trace.slices, Kind.INSTANT: self._trace.instants}
        for kind, table in tables.items():
            places = order.of(kind)
            at[places], size[places] = table.args_at[order.row[places]], table.args_len[order.row[places]]
        annotations = [b""] * len(order.ts)
        there = np.flatnonzero(size)
        annotated = self._annotated
        for place, start, length in zip(there.tolist(), at[there].tolist(), size[there].tolist(), strict=True):
            annotations[place] = annotated(start, length)
        return annotations

    def _annotated(self, at: int, size: int) -> bytes:
        return self._annotations.encode(self._trace.args.view(at, size)) if size else b""

    def _begins(self, rows: I64, stamps: list[bytes], annotations: list[bytes]) -> list[bytes]:
        flows = [b""] * len(stamps)
        if self._flows:
            bounds = zip(self._flows_at[rows].tolist(), self._flows_at[rows + 1].tolist(), strict=True)
            flows = [self._flows[first:end] for first, end in bounds]
        return self._named(_TYPE_BEGIN, take(self._trace.slices, rows), stamps, flows, annotations)

    def _instants(self, rows: I64, stamps: list[bytes], annotations: list[bytes]) -> list[bytes]:
        return self._named(_TYPE_INSTANT, take(self._trace.instants, rows), stamps, [b""] * len(stamps), annotations)

    def _named(
        self, kind: int, table: Slices | Instants, stamps: list[bytes], flows: list[bytes], annotations: list[bytes]
    ) -> list[bytes]:
        pieces, new_piece = self._pieces, self._piece
        head, length = _EVENT_HEAD, wire.length
        packets = []
        columns = (table.track, table.name, table.category)
        for stamp, flow, args, track, name, category in zip(
            stamps, flows, annotations, *(column.tolist() for column in columns), strict=True
        ):
            key = (kind, track, name, category)
            common = pieces.get(key) or new_piece(*key)
            # What _event_packet does, without the copies: this sees every event.
            event_size = length(len(common) + len(flow) + len(args))
            inside = len(stamp) + len(head) + len(event_size) + len(common) + len(flow) + len(args)
            packets.append(b"".join((b"\x0a", length(inside), stamp, head, event_size, common, flow, args)))
        return packets

    def _piece(self, kind: int, track: int, name: int, category: int) -> bytes:
        """The fields that events of one track and name have in common, kept for the next ones."""
        if len(self._pieces) >= _MAX_PIECES:
            self._pieces.clear()
        piece = wire.integer(_TYPE, kind) + self._track(track)
        piece += self._text_iid(_CATEGORY_IID, category) + self._text_iid(_NAME_IID, name)
        self._pieces[kind, track, name, category] = piece
        return piece

    def _text_iid(self, field: int, string: int) -> bytes:
        return wire.integer(field, string + 1) if self._has_text[string] else b""

    def _end_packets(self, rows: I64, stamps: list[bytes]) -> list[bytes]:
        tracks = self._trace.slices.track[rows]
        bounds = zip(self._ends_at[tracks].tolist(), self._ends_at[tracks + 1].tolist(), strict=True)
        ends = [bytes(self._ends[first:end]) for first, end in bounds]
        return [
            b"".join((_PACKET_HEADS[len(stamp) + len(end)], stamp, end))
            for stamp, end in zip(stamps, ends, strict=True)
        ]

    def _counters(self, rows: I64, stamps: list[bytes]) -> list[bytes]:
        table: Counters = take(self._trace.counters, rows)
        head = wire.integer(_TYPE, _TYPE_COUNTER)
        columns = (table.track, table.value, table.integer, table.is_integer)
        packets = []
        for stamp, track, value, integer, exact in zip(stamps, *(column.tolist() for column in columns), strict=True):
            number = wire.integer(_COUNTER_VALUE, integer) if exact else wire.double(_DOUBLE_COUNTER_VALUE, value)
            packets.append(_event_packet(stamp, head + self._track(track) + number))
        return packets

    def _logs(self, rows: I64, stamps: list[bytes]) -> list[bytes]:
        """Each entry is an instant named by its text, with what makes it a row of Perfetto's table of logs."""
        table: Logs = take(self._trace.logs, rows)
        self._interned += self._new_texts(_LOG_BODIES, table.text)
        self._interned += [self._source(string) for string in self._new(_SOURCES, table.source)]
        packets = []
        columns = (table.track, table.level, table.text, table.source, table.args_at, table.args_len)
        for stamp, track, level, text, source, at, size in zip(
            stamps, *(column.tolist() for column in columns), strict=True
        ):
            body = self._text_iid(2, text) + self._text_iid(1, source)
            message = wire.blob(_LOG_MESSAGE, body + wire.integer(3, level))
            common = wire.integer(_TYPE, _TYPE_INSTANT) + self._track(track) + self._text_iid(_NAME_IID, text)
            packets.append(_event_packet(stamp, common + message + self._annotated(at, size)))
        return packets

    def _source(self, string: int) -> bytes:
        """A place in the source code; given as "file.cpp:77", or as the name of a logger."""
        text = self._trace.strings[string]
        file, _, line = text.rpartition(":")
        is_line = bool(file) and line.isascii() and line.isdigit() and len(line) < 10
        place = wire.text(2, file) + wire.integer(4, int(line)) if is_line else wire.text(2, text)
        return wire.blob(_SOURCES, wire.integer(1, string + 1) + place)

    def _samples(self, rows: I64, stamps: list[bytes]) -> list[bytes]:
        table: Samples = take(self._trace.samples, rows)
        counts = self._counts(table)
        packets = []
        columns = (table.track, table.stack, table.name, table.cpu)
        for stamp, count, track, stack, name, cpu in zip(
            stamps, counts, *(column.tolist() for column in columns), strict=True
        ):
            packets.append(self._sampling[name, cpu >= 0].sample(stamp, track, stack, count))
        return packets

    def _counts(self, table: Samples) -> list[bytes]:
        """For each sample its CPU, and the total of what was counted so far under its name on that CPU."""
        counts: npt.NDArray[Any] = np.empty(len(table.ts), object)
        for name, cpu, own in _by_name_and_cpu(table, np.arange(len(table.ts))):
            sampling = self._sampling.get((name, cpu >= 0))
            if sampling is None:
                number = _SEQUENCE + 1 + len(self._sampling)
                sampling = _Sampling(self._trace, number, name, cpu >= 0, self._clock_id, self._who)
                self._sampling[name, cpu >= 0] = sampling
            counts[own] = sampling.counted(cpu, table.weight[own])
        found: list[bytes] = counts.tolist()
        return found

    def _who(self, track: int) -> bytes:
        """The process and the thread of the samples on a track."""
        identity = self._ids[track]
        tid = identity.pid if self._trace.tracks[track].kind is TrackKind.PROCESS else identity.tid
        return wire.integer(2, identity.pid) + wire.integer(3, tid)


class _Sampling:
    """The packet sequence of all samples of one name whose CPU is known, or of those where it is not.

    Perfetto keeps no weight per sample but the running total of what was counted on a CPU; the difference of two is the
    weight of the second. A sample of no known CPU has no such total, since Perfetto would draw it as that of CPU 0: its
    total stands where counts of further events go, which Perfetto does not read unless the defaults announce such
    events. Perfetto v52 makes a row "Cpu 0" for all samples, whatever they have: its name then says that no CPU is
    known.
    """

    def __init__(
        self,
        trace: Trace,
        sequence: int,
        name: int,
        has_cpu: bool,
        clock_id: int | None,
        who: Callable[[int], bytes],
    ) -> None:
        self._frames = trace.frames
        self._who = who
        self._fields: dict[tuple[int, int], bytes] = {}
        self._state = wire.integer(_SEQUENCE_ID, sequence) + wire.integer(_SEQUENCE_FLAGS, _NEEDS_STATE)
        defaults = wire.integer(_DEFAULT_CLOCK, clock_id) if clock_id is not None else b""
        timebase = wire.text(10, (trace.strings[name] or "samples") + ("" if has_cpu else CPU_UNKNOWN))
        defaults += wire.blob(_DEFAULT_SAMPLE, wire.blob(1, timebase))
        cleared = wire.integer(_SEQUENCE_ID, sequence) + wire.integer(_SEQUENCE_FLAGS, _CLEARED)
        first = cleared + wire.integer(_FIRST_PACKET, 1) + wire.blob(_DEFAULTS, defaults)
        self._head = wire.packet(first)
        self._interned: list[bytes] = []
        self._texts: dict[tuple[int, str], int] = {}
        self._mappings: dict[str, int] = {}
        self._known_frames: set[int] = set()
        self._known_stacks: set[int] = set()
        self._totals: dict[int, int] = {}

    def take_head(self) -> bytes:
        """The packets that must come before the samples encoded since the last call."""
        head, self._head = self._head, b""
        if self._interned:
            head += wire.packet(self._state + wire.blob(_INTERNED_DATA, b"".join(self._interned)))
            self._interned = []
        return head

    def counted(self, cpu: int, weights: I64) -> list[bytes]:
        """The running totals of the next samples on a CPU, encoded, with the CPU if it is known."""
        totals = _totals(self._totals.get(cpu, 0), weights)
        self._totals[cpu] = int(totals[-1])
        if cpu < 0:
            return wire.integers(_HIDDEN_TOTAL, totals)
        on_cpu = wire.integer(1, cpu)
        return [total + on_cpu for total in wire.integers(_SAMPLE_TOTAL, totals)]

    def sample(self, stamp: bytes, track: int, stack: int, count: bytes) -> bytes:
        """A packet; `count` is CPU and total, encoded."""
        fields = self._fields.get((track, stack)) or self._new_fields(track, stack)
        size = wire.length(len(fields) + len(count))
        state = self._state
        inside = len(stamp) + len(state) + len(_SAMPLE_HEAD) + len(size) + len(fields) + len(count)
        return b"".join((b"\x0a", wire.length(inside), stamp, state, _SAMPLE_HEAD, size, fields, count))

    def _new_fields(self, track: int, stack: int) -> bytes:
        """What samples of one thread and stack have in common, kept for the next ones."""
        if len(self._fields) >= _MAX_PIECES:
            self._fields.clear()
        fields = self._who(track) + (wire.integer(4, self._stack(stack)) if stack >= 0 else b"")
        self._fields[track, stack] = fields
        return fields

    def _stack(self, stack: int) -> int:
        if stack not in self._known_stacks:
            self._known_stacks.add(stack)
            frames = []
            at = stack
            while at >= 0:
                frames.append(self._frame(at))
                at = self._frames[at].parent
            outermost_first = b"".join([wire.integer(2, frame) for frame in reversed(frames)])
            self._interned.append(wire.blob(_CALLSTACKS, wire.integer(1, stack + 1) + outermost_first))
        return stack + 1

    def _frame(self, index: int) -> int:
        if index not in self._known_frames:
            self._known_frames.add(index)
            frame = self._frames[index]
            fields = wire.integer(1, index + 1) + wire.integer(2, self._text(_FUNCTIONS, frame.name))
            fields += wire.integer(3, self._mapping(frame.category)) + wire.integer(4, 0)
            self._interned.append(wire.blob(_FRAMES, fields))
        return index + 1

    def _mapping(self, module: str) -> int:
        """The module of a frame; Perfetto drops frames without any, so there is one without a name, too."""
        iid = self._mappings.get(module)
        if iid is None:
            iid = self._mappings[module] = len(self._mappings) + 1
            path = [self._text(_MAPPING_PATHS, part) for part in module.strip("/").split("/") if part]
            fields = wire.integer(1, iid) + b"".join([wire.integer(7, part) for part in path])
            self._interned.append(wire.blob(_MAPPINGS, fields))
        return iid

    def _text(self, table: int, text: str) -> int:
        iid = self._texts.get((table, text))
        if iid is None:
            iid = self._texts[table, text] = len(self._texts) + 1
            self._interned.append(wire.blob(table, wire.integer(1, iid) + wire.text(2, text)))
        return iid


_STATE = wire.integer(_SEQUENCE_ID, _SEQUENCE) + wire.integer(_SEQUENCE_FLAGS, _NEEDS_STATE)
_SAMPLE_HEAD, _SAMPLE_TOTAL, _HIDDEN_TOTAL = wire.tag(_PERF_SAMPLE, 2), 6, 7
_EVENT_HEAD = _STATE + wire.tag(_TRACK_EVENT, 2)


def _packet(payload: bytes) -> bytes:
    return wire.packet(payload + _STATE)


#: Tag and length of a packet, by its size, for small ones.
_PACKET_HEADS = [b"\x0a" + wire.length(size) for size in range(256)]


def _event_tail(event: bytes) -> bytes:
    """A packet with an event, from behind its timestamp on."""
    return _EVENT_HEAD + wire.length(len(event)) + event


def _event_packet(stamp: bytes, event: bytes) -> bytes:
    size = wire.length(len(event))
    whole = wire.length(len(stamp) + len(_EVENT_HEAD) + len(size) + len(event))
    return b"".join((b"\x0a", whole, stamp, _EVENT_HEAD, size, event))


def _start(trace: Trace) -> tuple[int, int]:
    """The first time in the file in ns, and what is added to all times: Perfetto drops events before 0."""
    span = trace.span()
    first = span[0] if span else 0
    return max(first, 0), max(-first, 0)


def _clock_id(trace: Trace) -> int | None:
    """The number that Perfetto has for the clock, None for a private clock."""
    if not trace.clocks:
        return None
    clock = trace.clocks[0]
    return {Zero.UNIX_EPOCH: _REALTIME, Zero.BOOT: _MONOTONIC, Zero.BOOT_AND_SLEEP: _BOOTTIME}.get(clock.zero)


def _attributes(trace: Trace, shift: int) -> list[bytes]:
    """The packet of what is said of the whole trace, in pieces: there may be much of it."""
    values: dict[str, Any] = {f"traceconv.{key}": value for key, value in facts(trace).items()}
    if shift:
        values["traceconv.time_shift_ns"] = shift
    pieces = []
    for key, value in {**values, **trace.metadata}.items():
        shown = wire.utf8(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        pieces += wire.headed(1, [wire.text(1, key), *wire.headed(3, [shown])])
    return wire.headed(_PACKET, [*wire.headed(_ATTRIBUTES, pieces), _STATE])


def _unit(unit: str) -> bytes:
    if unit in _UNITS:
        return wire.integer(3, _UNITS[unit])
    return wire.text(6, unit) if unit else b""


def track_uuids(trace: Trace) -> Sequence[int]:
    """A number for each track that depends on what it is, so that files put together do not mix their tracks up."""
    paths = _Paths(trace)
    firsts = array("q", (_hash([*paths.of(index), "0"]) for index in range(len(trace.tracks))))
    numbers = np.sort(np.frombuffer(firsts, np.int64))
    if not (len(numbers) and (numbers[0] == _ROOT_UUID or np.any(numbers[1:] == numbers[:-1]))):
        return firsts
    del numbers
    repeated: dict[int, int] = defaultdict(int)
    uuids = array("q")
    used = {_ROOT_UUID}
    for index, uuid in enumerate(firsts):
        if uuid in used:  # another one of that path
            repeated[uuid] += 1
            uuid = _hash([*paths.of(index), str(repeated[uuid])])
        while uuid in used:
            uuid += 1
        used.add(uuid)
        uuids.append(uuid)
    return uuids


class _Paths:
    """What tells the tracks of a trace apart: what each is, and what it is inside of."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._has_children = np.zeros(len(trace.tracks), bool)
        for track in trace.tracks:
            if track.parent != NO_TRACK:
                self._has_children[track.parent] = True
        self._kept: dict[int, list[str]] = {}  # of tracks inside of others, with children

    def of(self, index: int) -> list[str]:
        """The path of a track, once those of the tracks around it were asked for."""
        track = self._trace.tracks[index]
        above = [_origin(self._trace, track)] if track.parent == NO_TRACK else self._above(track.parent)
        path = [*above, track.kind.name, track.name, str(track.pid), str(track.tid)]
        if track.parent != NO_TRACK and self._has_children[index]:
            self._kept[index] = _short(path)
        return path

    def _above(self, index: int) -> list[str]:
        """The path that those of children begin with."""
        return self._kept[index] if index in self._kept else _short(self.of(index))


def _short(path: list[str]) -> list[str]:
    """What lies deep needs no longer path than what lies at the top."""
    return path if sum(map(len, path)) <= _LONG_PATH else [str(_hash(path))]


def _origin(trace: Trace, track: Track) -> str:
    return trace.sources[track.source].name if track.source < len(trace.sources) else ""


def _hash(parts: list[str]) -> int:
    """62 bits, so that it stays positive everywhere and takes nine bytes."""
    data = wire.utf8(json.dumps(parts))
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big") >> 2


def _totals(before: int, weights: I64) -> U64:
    """The running totals behind one, which stay at the ends of what the format can hold."""
    if _fits(before, weights):
        return np.cumsum(weights.astype(np.uint64), dtype=np.uint64) + np.uint64(before)
    totals = accumulate(weights.tolist(), lambda total, one: max(0, min(total + one, _MAX_TOTAL)), initial=before)
    return np.array(list(totals)[1:], np.uint64)


def _fits(before: int, weights: I64) -> bool:
    """Whether no total behind one can leave what the format can hold."""
    return int(np.min(weights)) >= 0 and before + int(np.max(weights)) * len(weights) <= _MAX_TOTAL


def _by_name_and_cpu(samples: Samples, order: npt.NDArray[np.intp]) -> Iterator[tuple[int, int, npt.NDArray[np.intp]]]:
    """Name, CPU and rows of the samples that have both in common, in the given order."""
    names, cpus = samples.name[order], samples.cpu[order]
    by_both = np.lexsort((cpus, names))
    names, cpus = names[by_both], cpus[by_both]
    begins = np.flatnonzero((np.diff(names) != 0) | (np.diff(cpus) != 0)) + 1
    for start, stop in pairwise([0, *begins.tolist(), len(order)] if len(order) else []):
        yield int(names[start]), int(cpus[start]), order[by_both[start:stop]]


def _bounded_weights(samples: Samples) -> int:
    """How many samples get another weight by that."""
    if not len(samples.ts) or _fits(0, samples.weight):
        return 0
    found = 0
    for _, _, own in _by_name_and_cpu(samples, np.argsort(samples.ts, kind="stable")):
        weights = samples.weight[own]
        written = np.diff(_totals(0, weights), prepend=np.uint64(0)).view(np.int64)
        found += int(np.count_nonzero(written != weights))
    return found


def _flow_fields(trace: Trace) -> tuple[bytes, I64]:
    """The arrows that begin and end at each slice, and where those of each slice begin, with the end of the last one.

    An arrow has its row plus 1 as its id.
    """
    flows, slices = trace.flows, trace.slices
    if not len(flows.from_slice):
        return b"", np.empty(0, np.int64)
    origin, target = flows.from_slice, flows.to_slice
    step = slices.ts[target] - slices.ts[origin]
    first = np.where((step < 0) | ((step == 0) & (target < origin)), target, origin)
    last = flows.from_slice + flows.to_slice - first
    # Begin and end of each arrow in turn, then by slice.
    at = np.column_stack((first, last)).ravel()
    fields = np.empty((len(at), _FLOW_SIZE), np.uint8)
    fields[0::2, :_FLOW_TAG_SIZE] = np.frombuffer(wire.tag(_FLOW, 1), np.uint8)
    fields[1::2, :_FLOW_TAG_SIZE] = np.frombuffer(wire.tag(_TERMINATING_FLOW, 1), np.uint8)
    numbers = np.repeat(np.arange(1, len(first) + 1, dtype="<u8"), 2)
    fields[:, _FLOW_TAG_SIZE:] = numbers.view(np.uint8).reshape(-1, 8)
    counts = np.bincount(at, minlength=len(slices.ts))
    return fields[np.argsort(at, kind="stable")].tobytes(), np.append(0, np.cumsum(counts) * _FLOW_SIZE)


def _joined(pieces: Iterable[bytes]) -> tuple[bytearray, I64]:
    """All in one, and where each begins, with the end of the last one."""
    joined, bounds = bytearray(), array("q", [0])
    for piece in pieces:
        joined += piece
        bounds.append(len(joined))
    return joined, np.frombuffer(bounds, np.int64)


def _share_args(trace: Trace) -> bool:
    """Whether events have, on the average, the args of other ones."""
    size = sum(int(table.args_len.sum(dtype=np.int64)) for table in (trace.slices, trace.instants))
    return size > 2 * sum(map(len, trace.args.parts))

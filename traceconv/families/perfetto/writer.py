"""Perfetto's protobuf trace: exact nanoseconds, named and nested tracks, counters with units, typed annotations.

Source: protos/perfetto/trace/*.proto in github.com/google/perfetto and docs/reference/synthetic-track-event.md. Packets
are built from bytes, since a message object for each event costs ten times as much. One packet sequence holds all
events except call stack samples. A packet with the interned data of a block of events precedes the block. Times are not
on a clock of Perfetto: the UI would show a snapshot of the only clock as a group above all others; an attribute states
the clock. The last packet states how many bytes come before it, so that it is known whether another trace was appended.
A flow points from the earlier slice to the later one, since Perfetto derives the direction from the times.

The kernel, where it is compiled, puts the plain events together; the result is the same without it, byte by byte.
For that, what a block interns comes in a fixed order: names of events, texts and places of log entries by their
number, then texts in args in the order of the file.

Args keep their types: integers, doubles, bools, texts, nested objects and arrays. Values that a debug annotation cannot
express become text for Perfetto, and JSON for those who read the file again: null, an empty object or array, integers
beyond int64 (Perfetto shows the upper half of uint64 as negative numbers) and doubles out of range, with their exact
digits. Values nested deeper than 64 levels become text, as JSON. Of a key that occurs twice the last value counts.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, islice, pairwise
from typing import Any, BinaryIO, ClassVar

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct

from traceconv import kernel
from traceconv.families.common import wire_writer as wire
from traceconv.families.common.wire_reader import CPU_UNKNOWN, read_packets
from traceconv.families.perfetto.tree import (
    SHIFT,
    SIZE,
    SOURCES,
    TO_SOURCES,
    VIEW,
    Tree,
    attribute_of,
    expanded,
    json_attribute,
)
from traceconv.io.source import Source
from traceconv.model.columns import I32, I64, occurring
from traceconv.model.dump import as_shown
from traceconv.model.numbers import double_of, fits_int64, read_json, whole, whole_of
from traceconv.model.trace import Counters, Instants, Logs, Samples, Slices, Trace, take
from traceconv.model.trace_inputs import recording_metadata
from traceconv.writers import WriteCounts, sink_of
from traceconv.writers.order import FileOrder, Kind, file_order, window

_PACKET = 1  # of Trace
# TracePacket
_TIMESTAMP, _SEQUENCE_ID, _TRACK_EVENT, _INTERNED_DATA, _SEQUENCE_FLAGS, _DEFAULTS = 8, 10, 11, 12, 13, 59
_TRACK_DESCRIPTOR, _PERF_SAMPLE, _SERVICE_EVENT, _FIRST_PACKET, _ATTRIBUTES = 60, 66, 69, 87, 126
_CLEARED, _NEEDS_STATE = 1, 2
_DEFAULT_SAMPLE = 12  # of TracePacketDefaults
_TRACING_STARTED, _TRACING_DISABLED = 2, 5  # of TracingServiceEvent
# TrackEvent
_CATEGORY_IID, _ANNOTATION, _TYPE, _NAME_IID, _TRACK_UUID, _LOG_MESSAGE = 3, 4, 9, 10, 11, 21
_COUNTER_VALUE, _DOUBLE_COUNTER_VALUE, _FLOW, _TERMINATING_FLOW = 30, 44, 47, 48
_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4
# InternedData
_CATEGORIES, _NAMES, _ANNOTATION_NAMES, _PLACES, _FUNCTIONS, _FRAMES, _CALLSTACKS = 1, 2, 3, 4, 5, 6, 7
_MAPPING_PATHS, _MAPPINGS, _LOG_BODIES, _ANNOTATION_TEXTS = 17, 19, 20, 29
# DebugAnnotation
_KEY_IID, _BOOL, _INT, _DOUBLE, _TEXT, _JSON, _KEY, _ENTRY, _ITEM, _TEXT_IID = 1, 2, 4, 5, 6, 9, 10, 11, 12, 17

#: The packet sequence of all events but call stack samples; each name of samples has one of those behind it.
_SEQUENCE = 1
#: More bytes than the last packet takes.
_ENDING = 64
_FLOW_TAG_SIZE, _FLOW_SIZE = 2, 10
_MOST_KNOWN, _SHORT = 1 << 16, 256
_MAX_DEPTH, _MAX_TOTAL = 64, 2**64 - 1

_members = msgspec.json.Decoder(dict[str, Any]).decode
_dump = msgspec.json.Encoder().encode
_raw_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_raw_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_text = msgspec.json.Decoder(str).decode
# msgspec's errors and bad UTF-8 are ValueErrors; nesting beyond its limit is a RecursionError.
_BROKEN = (ValueError, RecursionError)


def _in_sequence(sequence: int, flags: int = _NEEDS_STATE) -> bytes:
    """Return the fields of a packet about its sequence."""
    return wire.integer(_SEQUENCE_ID, sequence) + wire.integer(_SEQUENCE_FLAGS, flags)


_STATE = _in_sequence(_SEQUENCE)
_EVENT_HEAD, _SAMPLE_HEAD = _STATE + wire.tag(_TRACK_EVENT, 2), wire.tag(_PERF_SAMPLE, 2)


class Limits(Struct, frozen=True):
    """The limits of interning, since a text that never repeats costs more: `text_overhead` is bytes of each text."""

    max_keys: int = 1 << 16
    max_texts_per_key: int = 4096
    max_text_bytes: int = 32 << 20
    text_overhead: int = 64


_LIMITS = Limits()


@dataclass(frozen=True)
class PerfettoProto:
    """Writes Perfetto's own format; with `compress`, wrapped into gzip."""

    compress: bool = False

    name: ClassVar[str] = "perfetto"
    suffixes: ClassVar[tuple[str, ...]] = (".pftrace", ".perfetto-trace", ".pftrace.gz", ".perfetto-trace.gz")
    binary: ClassVar[bool] = True

    def notes(self, trace: Trace) -> list[str]:
        """Return a note on weights of samples that the format cannot hold; Perfetto shows everything else."""
        bounded = _bounded_weights(trace.samples)
        note = f"{bounded} call stack samples have another weight in the .pftrace: the weights of one name on one CPU "
        return [note + "add up to a total outside 0 to 2^64 - 1"] if bounded else []

    @staticmethod
    def stated_sources(source: Source) -> Any:
        """Return the inputs that a file states; None if it was cut or another trace was appended. Raises InputError."""
        with source.open() as trace:
            sources = json_attribute(islice(read_packets(trace), TO_SOURCES), SOURCES)
        head = source.head()
        end = head.tail[-_ENDING:]  # before the size: a packed file is unpacked up to it
        size = len(head.data) if head.complete else source.size
        endings = tuple(_ending(size - length) for length in range(len(_ending(0)), _ENDING))
        return sources if end.endswith(endings) else None

    def write(self, trace: Trace, sink: BinaryIO) -> WriteCounts:
        with sink_of(trace, sink, self.compress) as out:
            writing = _Writing(as_shown(trace))
            size = 0
            for packets in writing.packets():
                out.write(packets)
                size += len(packets)
            out.write(_ending(size))
        return writing.counts()


def _ending(size: int) -> bytes:
    """Return the last packet of a trace, after `size` bytes."""
    return b"".join(_attributes({SIZE: size}))


def _attributes(values: dict[str, Any]) -> list[bytes]:
    """Return the packet of the attributes, in chunks, since it may be large."""
    parts = []
    for key, value in values.items():
        shown = wire.utf8(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        parts += wire.headed(1, [wire.text(1, key), *wire.headed(3, [shown])])
    return wire.headed(_PACKET, [*wire.headed(_ATTRIBUTES, parts), _STATE])


#: The descriptors of tracks that are written at a time.
_DESCRIPTORS = 1 << 10


class _Writing:
    def __init__(self, trace: Trace) -> None:
        self._trace, self._tree = trace, Tree(trace)
        first, _ = trace.span() or (0, 0)
        self._first, self._shift = max(first, 0), max(-first, 0)  # ns; Perfetto drops events before 0
        self._has_text = np.fromiter(map(bool, trace.strings), np.uint8, len(trace.strings))
        # By table of interned data: the strings that are interned already; empty ones never need to be.
        known = 1 - self._has_text
        self._known = {table: known.copy() for table in (_CATEGORIES, _NAMES, _LOG_BODIES, _PLACES)}
        self._flows, self._flows_at = _flow_fields(trace)
        self._encoder = self._kernel_encoder()
        self._interning: Any = self._encoder or Interner(_LIMITS)  # both with equal results
        self._annotations = Annotations(self._interning)
        self._samples = SamplePackets(trace, self._tree)
        self._tables: dict[Kind, Any] = {Kind.BEGIN: trace.slices, Kind.INSTANT: trace.instants, Kind.LOG: trace.logs}
        self._written: dict[Kind, int] = defaultdict(int)
        self._common = lru_cache(_MOST_KNOWN)(self._common_fields)

    def _kernel_encoder(self) -> Any:
        """Return the encoder of the kernel for this trace, None if it is not compiled."""
        module = kernel.module("encode")
        if module is None:
            return None
        uuids, end = np.asarray(self._tree.uuids, np.int64), wire.integer(_TYPE, _END)
        tracks = wire.joined_integers(_TRACK_UUID, uuids)

        def head(size: int) -> bytes:
            return _STATE + wire.tag(_TRACK_EVENT, 2) + wire.varint(len(end) + size) + end

        ends = wire.joined_integers(_TRACK_UUID, uuids, head)
        chunks = tracks, ends, (self._flows, self._flows_at)
        # Whether most events share their args with others.
        size = sum(int(table.args_len.sum(dtype=np.int64)) for table in (self._trace.slices, self._trace.instants))
        shared = size > 2 * sum(map(len, self._trace.args.parts))
        return module.Encoder(
            self._trace, _EVENT_HEAD, chunks, self._has_text, shift=self._shift, shared=shared, limits=_LIMITS
        )

    def counts(self) -> WriteCounts:
        kinds = Kind.BEGIN, Kind.INSTANT, Kind.COUNTER, Kind.SAMPLE, Kind.LOG
        slices, instants, counters, samples, logs = (self._written[kind] for kind in kinds)
        return WriteCounts(slices, instants, counters, len(self._trace.flows.from_slice), samples, logs)

    def packets(self) -> Iterator[bytes | memoryview]:
        """Yield all packets but the last one."""
        yield from self._head()
        for block in file_order(self._trace):
            yield from self._block(block)
            self._trace.forget()

    def _head(self) -> Iterator[bytes]:
        """Yield the packets before the first event: attributes, the window to show first, tracks."""
        trace, tree = self._trace, self._tree
        yield wire.blob(_PACKET, _in_sequence(_SEQUENCE, _CLEARED) + wire.integer(_FIRST_PACKET, 1))
        shown = window(trace)
        times = (shown[0] + self._shift, shown[1] + self._shift) if shown else ()
        view: dict[str, Any] = {"expand": expanded(trace, tree)} | ({"window_ns": times} if times else {})
        # A packet of its own, and the first one, so that it is in the head of the file.
        yield from _attributes({VIEW: json.dumps(view, ensure_ascii=False)})
        about = {f"traceconv.{key}": value for key, value in recording_metadata(trace).items()}
        about |= {SHIFT: self._shift} if self._shift else {}
        yield from _attributes({**about, **trace.metadata, **attribute_of(trace, tree)})
        for time, event in zip(times, (_TRACING_STARTED, _TRACING_DISABLED), strict=False):
            head = wire.integer(_TIMESTAMP, time) + wire.integer(_SEQUENCE_ID, _SEQUENCE)
            yield wire.blob(_PACKET, head + wire.blob(_SERVICE_EVENT, wire.integer(event, 1)))
        stamp, blob = wire.integer(_TIMESTAMP, self._first), wire.blob
        # Inside of the sequence, all events would be those of the last thread.
        packets = (blob(_PACKET, stamp + blob(_TRACK_DESCRIPTOR, fields)) for fields in tree.descriptors())
        while together := b"".join(islice(packets, _DESCRIPTORS)):
            yield together

    # -- blocks of events ---------------------------------------------------------------------------------------

    def _block(self, order: FileOrder) -> Iterator[bytes | memoryview]:
        """Yield the packets of a block of events, after the packets that they rely on."""
        for kind, count in enumerate(np.bincount(order.kind, minlength=len(Kind)).tolist()):
            self._written[Kind(kind)] += count
        texts = self._event_texts(order)
        places = order.places_of(Kind.SAMPLE)
        stamps = wire.integers(_TIMESTAMP, order.ts[places] + self._shift)
        samples = zip(places.tolist(), self._samples.packets(order.row[places], stamps), strict=True)
        packets = self._in_kernel(order, samples) if self._encoder else b"".join(self._in_python(order, samples))
        interned = b"".join(texts) + self._interning.take_interned()
        head = wire.blob(_PACKET, wire.blob(_INTERNED_DATA, interned) + _STATE) if interned else b""
        yield head + self._samples.take_head()
        yield packets

    def _event_texts(self, order: FileOrder) -> list[bytes | memoryview]:
        """Return the fields that intern categories and names, texts and places of logs that no event before had."""
        begins, instants, logs = (order.row[order.places_of(kind)] for kind in self._tables)
        slices, points, bodies = self._trace.slices, self._trace.instants, self._trace.logs.text[logs]
        categories = np.concatenate((slices.category[begins], points.category[instants]))
        names = np.concatenate((slices.name[begins], points.name[instants], bodies))
        fields = [self._new_texts(_CATEGORIES, categories), self._new_texts(_NAMES, names)]
        fields.append(self._new_texts(_LOG_BODIES, bodies))
        return fields + [self._place(string) for string in self._new(_PLACES, self._trace.logs.source[logs])]

    def _new_texts(self, table: int, strings: I32) -> bytes | memoryview:
        new = self._new(table, strings)
        texts = [wire.utf8(self._trace.strings[string]) for string in new]  # there may be as many of them as events
        if self._encoder:
            fields: memoryview = self._encoder.interned(table, new, texts)
            return fields
        numbered = zip(new, texts, strict=True)
        return b"".join(wire.blob(table, wire.integer(1, string + 1) + wire.blob(2, text)) for string, text in numbered)

    def _new(self, table: int, strings: I32) -> list[int]:
        """Return the strings that are not empty and not interned yet."""
        known = self._known[table]
        new = occurring(strings[known[strings] == 0])
        known[new] = 1
        return new

    def _place(self, string: int) -> bytes:
        """Return the encoded source location, given as "file.cpp:77" or as the name of a logger."""
        text = self._trace.strings[string]
        file, _, line = text.rpartition(":")
        is_line = bool(file) and line.isascii() and line.isdigit() and len(line) < 10
        place = wire.text(2, file) + wire.integer(4, whole(line)) if is_line else wire.text(2, text)
        return wire.blob(_PLACES, wire.integer(1, string + 1) + place)

    def _in_kernel(self, order: FileOrder, samples: Iterator[tuple[int, bytes]]) -> Any:
        encoder, at = self._encoder, 0
        kinds, times, rows = map(np.ascontiguousarray, (order.kind, order.ts, order.row))
        taken = np.flatnonzero(kinds != Kind.SAMPLE)
        annotations, tables = None, {int(kind): table for kind, table in self._tables.items()}
        while (at := encoder.encode(kinds, times, rows, at, annotations)) < len(kinds):
            annotations = None
            if kinds[at] != Kind.SAMPLE:
                table = tables[int(kinds[at])]
                annotations = self._annotated(int(table.args_at[rows[at]]), int(table.args_len[rows[at]]))
            else:
                following = int(np.searchsorted(taken, at))
                end = int(taken[following]) if following < len(taken) else len(kinds)
                encoder.append(b"".join([packet for _, packet in islice(samples, end - at)]))
                at = end
        return encoder.take()

    # -- events without the kernel ------------------------------------------------------------------------------

    def _in_python(self, order: FileOrder, samples: Iterator[tuple[int, bytes]]) -> list[bytes]:
        """Return the packets of a block in its order; the specification of the kernel."""
        packets = [b""] * len(order.ts)
        for place, packet in samples:
            packets[place] = packet
        annotations = self._annotations_of(order)
        stamps = wire.integers(_TIMESTAMP, order.ts + self._shift)
        makers = {Kind.BEGIN: self._begins, Kind.END: self._ends, Kind.INSTANT: self._instants}
        makers |= {Kind.COUNTER: self._counters, Kind.LOG: self._logs}
        head, varint = _EVENT_HEAD, wire.varint
        for kind, events_of in makers.items():
            places = order.places_of(kind)
            for place, event in zip(places.tolist(), events_of(order.row[places]), strict=True):
                event += annotations[place]
                payload = b"".join((stamps[place], head, varint(len(event)), event))
                packets[place] = b"".join((b"\x0a", varint(len(payload)), payload))
        return packets

    def _annotations_of(self, order: FileOrder) -> list[bytes]:
        """Return the encoded args of each entry that has some, in the order of the file."""
        at, size = np.zeros((2, len(order.ts)), np.int64)
        for kind, table in self._tables.items():
            places = order.places_of(kind)
            at[places], size[places] = table.args_at[order.row[places]], table.args_len[order.row[places]]
        return [self._annotated(*place) for place in zip(at.tolist(), size.tolist(), strict=True)]

    def _annotated(self, at: int, size: int) -> bytes:
        return self._annotations.encode(self._trace.args.view(at, size)) if size else b""

    def _begins(self, rows: I64) -> Iterator[bytes]:
        events, flows = self._named(_BEGIN, take(self._trace.slices, rows)), self._flows
        if not flows:
            return events
        bounds = zip(self._flows_at[rows].tolist(), self._flows_at[rows + 1].tolist(), strict=True)
        return (event + flows[first:end] for event, (first, end) in zip(events, bounds, strict=True))

    def _instants(self, rows: I64) -> Iterator[bytes]:
        return self._named(_INSTANT, take(self._trace.instants, rows))

    def _named(self, kind: int, table: Slices | Instants) -> Iterator[bytes]:
        columns = (column.tolist() for column in (table.track, table.name, table.category))
        return (self._common(kind, *texts) for texts in zip(*columns, strict=True))

    def _common_fields(self, kind: int, track: int, name: int, category: int) -> bytes:
        """Return the fields that events of one track and name share."""
        return (
            self._track_event(kind, track) + self._text_iid(_CATEGORY_IID, category) + self._text_iid(_NAME_IID, name)
        )

    def _text_iid(self, field: int, string: int) -> bytes:
        return wire.integer(field, string + 1) if self._has_text[string] else b""

    def _ends(self, rows: I64) -> Iterator[bytes]:
        return (self._track_event(_END, track) for track in self._trace.slices.track[rows].tolist())

    def _track_event(self, kind: int, track: int) -> bytes:
        return wire.integer(_TYPE, kind) + wire.integer(_TRACK_UUID, self._tree.uuids[track])

    def _counters(self, rows: I64) -> Iterator[bytes]:
        table: Counters = take(self._trace.counters, rows)
        columns = (table.track, table.value, table.integer, table.is_integer)
        for track, value, integer, is_exact in zip(*(column.tolist() for column in columns), strict=True):
            number = wire.integer(_COUNTER_VALUE, integer) if is_exact else wire.double(_DOUBLE_COUNTER_VALUE, value)
            yield self._track_event(_COUNTER, track) + number

    def _logs(self, rows: I64) -> Iterator[bytes]:
        """Yield log entries as instants named by their text, with the fields of Perfetto's table of logs."""
        table: Logs = take(self._trace.logs, rows)
        columns = (table.track, table.level, table.text, table.source)
        for track, level, text, source in zip(*(column.tolist() for column in columns), strict=True):
            body = self._text_iid(2, text) + self._text_iid(1, source) + wire.integer(3, level)
            named = self._track_event(_INSTANT, track) + self._text_iid(_NAME_IID, text)
            yield named + wire.blob(_LOG_MESSAGE, body)


def _flow_fields(trace: Trace) -> tuple[bytes, I64]:
    """Return the flow fields of all slices (ids are rows plus 1), and the offset of those of each, and a last one."""
    origin, target, slices = trace.flows.from_slice, trace.flows.to_slice, trace.slices
    if not len(origin):
        return b"", np.empty(0, np.int64)
    step = slices.ts[target] - slices.ts[origin]
    first = np.where((step < 0) | ((step == 0) & (target < origin)), target, origin)
    last = origin + target - first
    # The start and the end of each flow in turn, then sorted by slice.
    at = np.column_stack((first, last)).ravel()
    fields = np.empty((len(at), _FLOW_SIZE), np.uint8)
    fields[0::2, :_FLOW_TAG_SIZE] = np.frombuffer(wire.tag(_FLOW, 1), np.uint8)
    fields[1::2, :_FLOW_TAG_SIZE] = np.frombuffer(wire.tag(_TERMINATING_FLOW, 1), np.uint8)
    numbers = np.repeat(np.arange(1, len(first) + 1, dtype="<u8"), 2)
    fields[:, _FLOW_TAG_SIZE:] = numbers.view(np.uint8).reshape(-1, 8)
    counts = np.bincount(at, minlength=len(slices.ts))
    return fields[np.argsort(at, kind="stable")].tobytes(), np.append(0, np.cumsum(counts) * _FLOW_SIZE)


# -- call stack samples -----------------------------------------------------------------------------------------------


class SamplePackets:
    """The packets of all samples. Each name needs a sequence, whose default it is, and one more for unknown CPUs."""

    def __init__(self, trace: Trace, tree: Tree) -> None:
        self._trace = trace
        self._tasks = {track: tree.task(track) for track in occurring(trace.samples.track)}
        self._sampling: dict[tuple[int, bool], _Sampling] = {}

    def take_head(self) -> bytes:
        """Return the packets that must precede those encoded since the last call."""
        return b"".join([sampling.take_head() for sampling in self._sampling.values()])

    def packets(self, rows: I64, stamps: list[bytes]) -> list[bytes]:
        """Return the packets of some samples, whose times are encoded."""
        table: Samples = take(self._trace.samples, rows)
        stacks = _stack_fields(table.stack)
        packets = [b""] * len(rows)
        for name, cpu, places in _by_name_and_cpu(table, np.arange(len(rows))):
            sampling = self._sampling.get((name, cpu >= 0))
            if sampling is None:
                sampling = _Sampling(self._trace, _SEQUENCE + 1 + len(self._sampling), name, cpu >= 0)
                self._sampling[name, cpu >= 0] = sampling
            sampling.intern(table.stack[places])
            counts = sampling.counted(cpu, table.weight[places])
            columns = places.tolist(), table.track[places].tolist(), stacks[places].tolist(), counts
            for place, track, stack, count in zip(*columns, strict=True):
                packets[place] = sampling.sample(stamps[place], self._tasks[track], stack, count)
        return packets


class _Sampling:
    """The packet sequence of the samples of one name, with or without a known CPU.

    Perfetto has no weight of a sample, but the running total of a CPU; the difference of two is the weight of the
    second. For a sample without a CPU, Perfetto would draw the total as that of CPU 0. So its total is in the field of
    follower counts, which Perfetto ignores unless the defaults declare such events. Perfetto v52 creates a row "Cpu 0"
    for all samples: its name states then that the CPU is not known. The module of a frame has a leading slash there.
    """

    def __init__(self, trace: Trace, sequence: int, name: int, has_cpu: bool) -> None:
        self._frames = trace.frames
        self._state = _in_sequence(sequence)
        timebase = wire.text(10, (trace.strings[name] or "samples") + ("" if has_cpu else CPU_UNKNOWN))
        defaults = wire.blob(_DEFAULT_SAMPLE, wire.blob(1, timebase))
        first = _in_sequence(sequence, _CLEARED) + wire.integer(_FIRST_PACKET, 1)
        self._head = wire.blob(_PACKET, first + wire.blob(_DEFAULTS, defaults))
        self._interned: list[bytes] = []
        self._texts: dict[tuple[int, str], int] = {}
        self._mappings: dict[str, int] = {}
        self._known_frames: dict[tuple[str, str], bytes] = {}
        self._known_stacks: set[int] = set()  # not a mask of all frames: there may be thousands of names
        self._totals: dict[int, int] = {}

    def take_head(self) -> bytes:
        """See SamplePackets."""
        head, self._head = self._head, b""
        if self._interned:
            head += wire.blob(_PACKET, self._state + wire.blob(_INTERNED_DATA, b"".join(self._interned)))
            self._interned = []
        return head

    def counted(self, cpu: int, weights: I64) -> list[bytes]:
        """Return the running totals of the next samples on a CPU, encoded, with the CPU if it is known."""
        totals = _totals(self._totals.get(cpu, 0), weights)
        self._totals[cpu] = int(totals[-1])
        if cpu < 0:
            return wire.integers(7, totals)
        on_cpu = wire.integer(1, cpu)
        return [total + on_cpu for total in wire.integers(6, totals)]

    def sample(self, stamp: bytes, task: bytes, stack: bytes, count: bytes) -> bytes:
        """Return a packet from its encoded fields; `task` is process and thread, `count` is CPU and total."""
        state = self._state
        fields = len(task) + len(stack) + len(count)
        size = wire.varint(fields)
        inside = len(stamp) + len(state) + len(_SAMPLE_HEAD) + len(size) + fields
        return b"".join((b"\x0a", wire.varint(inside), stamp, state, _SAMPLE_HEAD, size, task, stack, count))

    def intern(self, stacks: I32) -> None:
        """Intern the stacks of samples that are new."""
        new = sorted(set(stacks[stacks >= 0].tolist()) - self._known_stacks)
        self._known_stacks.update(new)
        frames, known, numbered = self._frames, self._known_frames, wire.integers(1, np.array(new, np.int64) + 1)
        for stack, number in zip(new, numbered, strict=True):
            stack_fields, at = [], stack
            while at >= 0:
                frame = frames[at]
                stack_fields.append(known.get((frame.name, frame.category)) or self._frame(frame.name, frame.category))
                at = frame.parent
            stack_fields.append(number)
            self._interned.append(wire.blob(_CALLSTACKS, b"".join(reversed(stack_fields))))

    def _frame(self, name: str, module: str) -> bytes:
        """Intern a frame, and return its field in a stack. Perfetto drops frames without a module."""
        function = self._text(_FUNCTIONS, name)
        path = [wire.integer(7, self._text(_MAPPING_PATHS, part)) for part in module.strip("/").split("/") if part]
        mapping = self._number(self._mappings, _MAPPINGS, module, b"".join(path))
        iid = len(self._known_frames) + 1
        fields = wire.integer(1, iid) + wire.integer(2, function) + wire.integer(3, mapping) + wire.integer(4, 0)
        self._interned.append(wire.blob(_FRAMES, fields))
        field = self._known_frames[name, module] = wire.integer(2, iid)
        return field

    def _text(self, table: int, text: str) -> int:
        return self._number(self._texts, table, (table, text), wire.text(2, text))

    def _number(self, known: dict[Any, int], table: int, key: Any, fields: bytes) -> int:
        """Return the number of what has these fields, which is interned if its key is new."""
        if key not in known:
            known[key] = len(known) + 1
            self._interned.append(wire.blob(table, wire.integer(1, known[key]) + fields))
        return known[key]


def _stack_fields(stacks: I32) -> npt.NDArray[Any]:
    """Return the field of the stack of each sample; b"" for none."""
    order = np.argsort(stacks)
    ascending = stacks[order].astype(np.int64)
    of_none = int(np.searchsorted(ascending, 0))
    fields = np.empty(len(stacks), object)
    fields[order] = [b""] * of_none + wire.integers(4, ascending[of_none:] + 1)
    return fields


def _totals(before: int, weights: I64) -> npt.NDArray[np.uint64]:
    """Return the running totals after one, limited to the range of the format."""
    if _fits(before, weights):
        return np.cumsum(weights.astype(np.uint64), dtype=np.uint64) + np.uint64(before)
    totals = accumulate(weights.tolist(), lambda total, weight: max(0, min(total + weight, _MAX_TOTAL)), initial=before)
    return np.array(list(totals)[1:], np.uint64)


def _fits(before: int, weights: I64) -> bool:
    """Return whether all running totals after one are in the range of the format."""
    return int(np.min(weights)) >= 0 and before + int(np.max(weights)) * len(weights) <= _MAX_TOTAL


def _by_name_and_cpu(samples: Samples, order: npt.NDArray[np.intp]) -> Iterator[tuple[int, int, npt.NDArray[np.intp]]]:
    """Yield name, CPU and rows of the samples that share both, in the given order."""
    names, cpus = samples.name[order], samples.cpu[order]
    by_both = np.lexsort((cpus, names))
    names, cpus = names[by_both], cpus[by_both]
    begins = np.flatnonzero((np.diff(names) != 0) | (np.diff(cpus) != 0)) + 1
    for start, stop in pairwise([0, *begins.tolist(), len(order)] if len(order) else []):
        yield int(names[start]), int(cpus[start]), order[by_both[start:stop]]


def _bounded_weights(samples: Samples) -> int:
    """Return the number of samples whose weight is changed by the range of the totals."""
    if not len(samples.ts) or _fits(0, samples.weight):
        return 0
    groups = _by_name_and_cpu(samples, np.argsort(samples.ts, kind="stable"))
    weights = [samples.weight[rows] for _, _, rows in groups]
    written = [np.diff(_totals(0, group), prepend=np.uint64(0)).view(np.int64) for group in weights]
    return sum(int(np.count_nonzero(after != before)) for after, before in zip(written, weights, strict=True))


# -- args ---------------------------------------------------------------------------------------------------------


class Interner:
    """The names and texts of one packet sequence, numbered in the order of their first occurrence in the file."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._names: dict[bytes, int] = {}
        self._texts: dict[bytes, int] = {}
        self._texts_of_key: defaultdict[int, int] = defaultdict(int)
        self._text_bytes = 0
        self._fields: list[bytes] = []

    def name(self, key: bytes) -> int:
        """Return the number of the name of an annotation, 0 if there are too many names."""
        iid = self._names.get(key, 0)
        if not iid and len(self._names) < self._limits.max_keys:
            iid = self._names[key] = len(self._names) + 1
            self._fields.append(wire.blob(_ANNOTATION_NAMES, wire.integer(1, iid) + wire.blob(2, key)))
        return iid

    def text(self, value: bytes, key: int) -> int:
        """Return the number of a text under a key, given by its number; 0 if it is to be written in the event."""
        if iid := self._texts.get(value):
            return iid
        limits = self._limits
        size = self._text_bytes + len(value) + limits.text_overhead
        if not key or self._texts_of_key[key] >= limits.max_texts_per_key or size > limits.max_text_bytes:
            return 0
        self._text_bytes = size
        self._texts_of_key[key] += 1
        iid = self._texts[value] = len(self._texts) + 1
        self._fields.append(wire.blob(_ANNOTATION_TEXTS, wire.integer(1, iid) + wire.blob(2, value)))
        return iid

    def take_interned(self) -> bytes:
        """Return the new fields of InternedData since the last call."""
        fields, self._fields = self._fields, []
        return b"".join(fields)


class Annotations:
    """Encodes the args of events of one packet sequence, the bytes of JSON objects, as debug annotations."""

    def __init__(self, interning: Any) -> None:
        self._interning = interning
        self._memo: dict[tuple[str, str | bytes], bytes] = {}  # what short values of keys became
        self._left_inline = 0

    def encode(self, args: bytes | memoryview) -> bytes:
        try:
            members = {key: value if type(value) is str else _dump(value) for key, value in _members(args).items()}
        except _BROKEN:  # also for numbers beyond a double
            try:
                raw_members = _raw_members(bytes(args))
            except _BROKEN:
                raw_members = _raw_members(_repaired(bytes(args)))
            members = {key: bytes(value) for key, value in raw_members.items()}
        memo, new = self._memo, self._annotation
        return b"".join([memo.get(member) or new(*member) for member in members.items()])

    def _annotation(self, key: str, value: str | bytes) -> bytes:
        left_inline = self._left_inline
        annotation = wire.blob(_ANNOTATION, self._member(key, value, 0))
        # A text that was written in an event may be interned later, under another key.
        if left_inline == self._left_inline and len(value) < _SHORT and len(self._memo) < _MOST_KNOWN:
            self._memo[key, value] = annotation
        return annotation

    def _member(self, key: str, value: str | bytes, depth: int) -> bytes:
        """Return the fields of a member of an object, whose value is a text, or JSON."""
        name = wire.utf8(key)
        iid = self._interning.name(name)
        field = wire.integer(_KEY_IID, iid) if iid else wire.blob(_KEY, name)
        return field + (self._text(value, iid) if isinstance(value, str) else self._value(value, depth, iid))

    def _value(self, raw: bytes, depth: int, key: int) -> bytes:
        first = raw[:1]
        if first == b'"':
            return self._text(_decoded_text(raw), key)
        if first in (b"{", b"["):
            return self._nested(raw, depth, key)
        if first in (b"t", b"f"):
            return wire.integer(_BOOL, first == b"t")
        return _shown(b"null") if first == b"n" else _number(raw)

    def _nested(self, raw: bytes, depth: int, key: int) -> bytes:
        if depth >= _MAX_DEPTH:
            return wire.blob(_TEXT, raw)
        if not raw[1:-1].strip():
            return _shown(raw[:1] + raw[-1:])
        try:
            if raw[:1] == b"[":
                items = [self._value(bytes(item), depth + 1, key) for item in _raw_items(raw)]
                return b"".join([wire.blob(_ITEM, item) for item in items])
            members = _raw_members(raw).items()
        except _BROKEN:
            return wire.text(_TEXT, raw.decode("utf-8", "replace"))
        return b"".join([wire.blob(_ENTRY, self._member(name, bytes(value), depth + 1)) for name, value in members])

    def _text(self, value: str, key: int) -> bytes:
        data = wire.utf8(value)
        iid = self._interning.text(data, key)
        self._left_inline += not iid
        return wire.integer(_TEXT_IID, iid) if iid else wire.blob(_TEXT, data)


def _number(raw: bytes) -> bytes:
    if raw.lstrip(b"-").isdigit():
        whole = whole_of(raw)
        return wire.integer(_INT, whole) if whole is not None and fits_int64(whole) else _shown(raw)
    number = double_of(raw.decode("latin-1"))
    return _shown(raw) if number is None else wire.double(_DOUBLE, number)


def _shown(raw: bytes) -> bytes:
    """Return the value fields of JSON as text, which Perfetto shows, and as JSON, which it reads only without the text.

    Of a oneof, protobuf keeps the last one.
    """
    return wire.blob(_TEXT, raw) + wire.blob(_JSON, raw)


def _decoded_text(raw: bytes) -> str:
    try:
        return _text(raw)
    except _BROKEN:  # a lone surrogate as an escape, or bytes that are not UTF-8
        return str(read_json(raw))


def _repaired(args: bytes) -> bytes:
    """Return a valid JSON object for one that strict parsers refuse, or an object that holds its text."""
    with suppress(*_BROKEN):
        members = read_json(args)
        if isinstance(members, dict):
            return wire.utf8(json.dumps(members, ensure_ascii=False))
    return wire.utf8(json.dumps({"args": args.decode("utf-8", "replace")}, ensure_ascii=False))

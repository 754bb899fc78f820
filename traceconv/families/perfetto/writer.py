"""Perfetto's protobuf trace: exact nanoseconds, named and nested tracks, counters with units, typed annotations.

Source: protos/perfetto/trace/*.proto in github.com/google/perfetto and docs/reference/synthetic-track-event.md. Packets
are built from bytes, since a message object for each event costs ten times as much.

One packet sequence holds all events except call stack samples. A packet with the interned data of a block of events
precedes the block.

The kernel, where it is compiled, puts the plain events together; the result is the same without it, byte by byte.
For that, what a block interns comes in a fixed order: names of events, texts and places of log entries by their
number, then texts in args in the order of the file.

A flow always points from the earlier slice to the later one, since Perfetto derives the direction from the times.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, BinaryIO, ClassVar

import numpy as np

from traceconv import kernel
from traceconv.families.perfetto import _fields as proto
from traceconv.families.perfetto import _wire as wire
from traceconv.families.perfetto._annotations import Annotations, Interner, Interning, Limits
from traceconv.families.perfetto._head import Head, ending, stated_sources
from traceconv.families.perfetto._samples import SamplePackets, bounded_weights
from traceconv.io.source import Source
from traceconv.model.numbers import whole
from traceconv.model.ordering import occurring
from traceconv.model.shown import as_shown
from traceconv.model.trace import I32, I64, Counters, Instants, Logs, Slices, Trace, take
from traceconv.writers import WriteCounts
from traceconv.writers.order import FileOrder, Kind, file_order
from traceconv.writers.sink import sink_of

_FLOW_TAG_SIZE, _FLOW_SIZE = 2, 10
_MAX_CHUNKS = 1 << 16
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
        """Return a note on weights of samples that the format cannot hold; Perfetto shows everything else."""
        bounded = bounded_weights(trace.samples)
        notes = (
            f"{bounded} call stack samples have another weight in the .pftrace: the weights of one name on one CPU "
            "add up to a total outside 0 to 2^64 - 1"
        )
        return [notes] if bounded else []

    @staticmethod
    def stated_sources(source: Source) -> Any:
        """Return the inputs that a file states; None if another trace was appended. Raises InputError."""
        return stated_sources(source)

    def write(self, trace: Trace, sink: BinaryIO) -> WriteCounts:
        """Write the whole trace."""
        with sink_of(trace, sink, self.compress) as out:
            writing = _Writing(as_shown(trace))
            size = 0
            for packets in writing.packets():
                out.write(packets)
                size += len(packets)
            out.write(ending(size))
        return writing.counts()


class _Writing:
    """The state of writing one file."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.head = Head(trace)
        self._track, self._shift = self.head.track, self.head.shift
        empty = [number for number, text in enumerate(trace.strings) if not text]
        self._has_text = np.ones(len(trace.strings), np.uint8)
        self._has_text[empty] = 0
        # By table of interned data: the strings that are interned already; empty ones never need to be.
        known = 1 - self._has_text
        self._known = {
            table: known.copy() for table in (proto.CATEGORIES, proto.NAMES, proto.LOG_BODIES, proto.SOURCES)
        }
        self._chunks: dict[tuple[int, int, int, int], bytes] = {}
        end = wire.integer(proto.TYPE, proto.TYPE_END)
        self._ends, self._ends_at = _joined(_event_tail(end + track) for track in self.head.tracks())
        self._flows, self._flows_at = _flow_fields(trace)
        self._encoder = self._kernel_encoder()
        self._interning: Interning = self._encoder or Interner(_LIMITS)
        self._annotations = Annotations(self._interning)
        self._samples = SamplePackets(trace, self.head)
        self._written: dict[Kind, int] = defaultdict(int)

    def _kernel_encoder(self) -> Any:
        """Return the encoder of the kernel for this trace, None if it is not compiled."""
        module = kernel.module("encode")
        if module is None:
            return None
        tracks = _joined(self.head.tracks())
        chunks = tracks, (self._ends, self._ends_at), (self._flows, self._flows_at)
        shared = _share_args(self._trace)
        return module.Encoder(
            self._trace, _EVENT_HEAD, chunks, self._has_text, shift=self._shift, shared=shared, limits=_LIMITS
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

    # -- the events -------------------------------------------------------------------------------------------

    def packets(self) -> Iterator[bytes | memoryview]:
        """Yield all packets but the last one."""
        yield from self.head.packets()
        for block in file_order(self._trace):
            yield from self.block(block)
            self._trace.forget()

    def block(self, order: FileOrder) -> Iterator[bytes | memoryview]:
        """Yield the packets of a block of events, after the packets that they rely on."""
        for kind, count in enumerate(np.bincount(order.kind, minlength=len(Kind)).tolist()):
            self._written[Kind(kind)] += count
        texts = self._event_texts(order)
        others = self._samples_of(order)
        packets = self._in_kernel(order, others) if self._encoder else b"".join(self._in_python(order, others))
        yield self._block_head(texts)
        yield packets

    def _block_head(self, texts: list[bytes]) -> bytes:
        interned = b"".join(texts) + self._interning.take_interned()
        own = _packet(wire.blob(proto.INTERNED_DATA, interned)) if interned else b""
        return own + self._samples.take_head()

    def _event_texts(self, order: FileOrder) -> list[bytes]:
        """Return the fields that intern categories and names, texts and places of logs that no event before had."""
        fields = []
        tables: tuple[Any, ...] = (self._trace.slices, self._trace.instants)
        rows = [order.row[order.of(kind)] for kind in (Kind.BEGIN, Kind.INSTANT)]
        categories = [table.category[at] for table, at in zip(tables, rows, strict=True)]
        names = [table.name[at] for table, at in zip(tables, rows, strict=True)]
        logs = order.row[order.of(Kind.LOG)]
        bodies = self._trace.logs.text[logs]
        for table, strings in ((proto.CATEGORIES, categories), (proto.NAMES, [*names, bodies])):
            fields += self._new_texts(table, np.concatenate(strings))
        fields += self._new_texts(proto.LOG_BODIES, bodies)
        fields += [self._source(string) for string in self._new(proto.SOURCES, self._trace.logs.source[logs])]
        return fields

    def _new_texts(self, table: int, strings: I32) -> list[bytes]:
        new = self._new(table, strings)
        texts, utf8, blob, of_text = self._trace.strings, wire.utf8, wire.blob, wire.tag(2, 2)
        numbers = wire.integers(1, np.array(new, np.int64) + 1)
        fields = []
        for number, string in zip(numbers, new, strict=True):
            text = utf8(texts[string])  # there may be as many of them as events
            fields.append(blob(table, b"".join((number, of_text, wire.length(len(text)), text))))
        return fields

    def _new(self, table: int, strings: I32) -> list[int]:
        """Return the strings that are not empty and not interned yet."""
        known = self._known[table]
        new = occurring(strings[known[strings] == 0])
        known[new] = 1
        return new

    def _in_kernel(self, order: FileOrder, others: Iterator[tuple[int, bytes]]) -> memoryview:
        encoder, at = self._encoder, 0
        kinds, times, rows = map(np.ascontiguousarray, (order.kind, order.ts, order.row))
        taken = np.flatnonzero(kinds != Kind.SAMPLE)
        annotations = None
        while True:
            at = encoder.encode(kinds, times, rows, at, annotations)
            if at == len(kinds):
                packets: memoryview = encoder.take()
                return packets
            annotations = None
            if kinds[at] != Kind.SAMPLE:
                table = self._with_args()[Kind(kinds[at])]
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
        stamps = wire.integers(proto.TIMESTAMP, order.ts + self._shift)
        for kind in (Kind.BEGIN, Kind.END, Kind.INSTANT, Kind.COUNTER, Kind.LOG):
            places = order.of(kind)
            if len(places):
                at = places.tolist()
                args = [annotations[i] for i in at] if kind in self._with_args() else []
                encoded = self._encoded(kind, order.row[places], [stamps[i] for i in at], args)
                for i, payload in zip(at, encoded, strict=True):
                    packets[i] = payload
        return packets

    def _encoded(self, kind: Kind, rows: I64, stamps: list[bytes], annotations: list[bytes]) -> list[bytes]:
        """Return the packets of entries of one kind, with their annotations if they have some."""
        if kind is Kind.BEGIN:
            return self._begins(rows, stamps, annotations)
        if kind is Kind.INSTANT:
            return self._instants(rows, stamps, annotations)
        if kind is Kind.LOG:
            return self._logs(rows, stamps, annotations)
        return self._end_packets(rows, stamps) if kind is Kind.END else self._counters(rows, stamps)

    def _samples_of(self, order: FileOrder) -> Iterator[tuple[int, bytes]]:
        """Return the packets of the samples, which the kernel leaves out, with their places."""
        places = order.of(Kind.SAMPLE)
        if not len(places):
            return iter(())
        stamps = wire.integers(proto.TIMESTAMP, order.ts[places] + self._shift)
        return zip(places.tolist(), self._samples.packets(order.row[places], stamps), strict=True)

    def _with_args(self) -> dict[Kind, Any]:
        """Return the tables whose rows have args."""
        return {Kind.BEGIN: self._trace.slices, Kind.INSTANT: self._trace.instants, Kind.LOG: self._trace.logs}

    def _annotations_of(self, order: FileOrder) -> list[bytes]:
        """Return the encoded args of each entry that has some, in the order of the file."""
        at, size = np.zeros(len(order.ts), np.int64), np.zeros(len(order.ts), np.int64)
        for kind, table in self._with_args().items():
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
        return self._named(proto.TYPE_BEGIN, take(self._trace.slices, rows), stamps, flows, annotations)

    def _instants(self, rows: I64, stamps: list[bytes], annotations: list[bytes]) -> list[bytes]:
        return self._named(
            proto.TYPE_INSTANT, take(self._trace.instants, rows), stamps, [b""] * len(stamps), annotations
        )

    def _named(
        self, kind: int, table: Slices | Instants, stamps: list[bytes], flows: list[bytes], annotations: list[bytes]
    ) -> list[bytes]:
        chunks, new_chunk = self._chunks, self._chunk
        head, length = _EVENT_HEAD, wire.length
        packets = []
        columns = (table.track, table.name, table.category)
        for stamp, flow, args, track, name, category in zip(
            stamps, flows, annotations, *(column.tolist() for column in columns), strict=True
        ):
            key = (kind, track, name, category)
            common = chunks.get(key) or new_chunk(*key)
            # _event_packet, inlined without copies: this runs for every event.
            event_size = length(len(common) + len(flow) + len(args))
            inside = len(stamp) + len(head) + len(event_size) + len(common) + len(flow) + len(args)
            packets.append(b"".join((b"\x0a", length(inside), stamp, head, event_size, common, flow, args)))
        return packets

    def _chunk(self, kind: int, track: int, name: int, category: int) -> bytes:
        """Return the fields that events of one track and name share, and cache them."""
        if len(self._chunks) >= _MAX_CHUNKS:
            self._chunks.clear()
        chunk = wire.integer(proto.TYPE, kind) + self._track(track)
        chunk += self._text_iid(proto.CATEGORY_IID, category) + self._text_iid(proto.NAME_IID, name)
        self._chunks[kind, track, name, category] = chunk
        return chunk

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
        head = wire.integer(proto.TYPE, proto.TYPE_COUNTER)
        columns = (table.track, table.value, table.integer, table.is_integer)
        packets = []
        for stamp, track, value, integer, exact in zip(stamps, *(column.tolist() for column in columns), strict=True):
            number = (
                wire.integer(proto.COUNTER_VALUE, integer) if exact else wire.double(proto.DOUBLE_COUNTER_VALUE, value)
            )
            packets.append(_event_packet(stamp, head + self._track(track) + number))
        return packets

    def _logs(self, rows: I64, stamps: list[bytes], annotations: list[bytes]) -> list[bytes]:
        """Return log entries as instants named by their text, with the fields of Perfetto's table of logs."""
        table: Logs = take(self._trace.logs, rows)
        packets = []
        columns = (table.track, table.level, table.text, table.source)
        for stamp, args, track, level, text, source in zip(
            stamps, annotations, *(column.tolist() for column in columns), strict=True
        ):
            body = self._text_iid(2, text) + self._text_iid(1, source)
            message = wire.blob(proto.LOG_MESSAGE, body + wire.integer(3, level))
            common = (
                wire.integer(proto.TYPE, proto.TYPE_INSTANT) + self._track(track) + self._text_iid(proto.NAME_IID, text)
            )
            packets.append(_event_packet(stamp, common + message + args))
        return packets

    def _source(self, string: int) -> bytes:
        """Return the encoded source location, given as "file.cpp:77" or as the name of a logger."""
        text = self._trace.strings[string]
        file, _, line = text.rpartition(":")
        is_line = bool(file) and line.isascii() and line.isdigit() and len(line) < 10
        place = wire.text(2, file) + wire.integer(4, whole(line)) if is_line else wire.text(2, text)
        return wire.blob(proto.SOURCES, wire.integer(1, string + 1) + place)


_EVENT_HEAD = proto.STATE + wire.tag(proto.TRACK_EVENT, 2)


def _packet(payload: bytes) -> bytes:
    return wire.packet(payload + proto.STATE)


#: Tag and length of a packet, by its size, for small ones.
_PACKET_HEADS = [b"\x0a" + wire.length(size) for size in range(256)]


def _event_tail(event: bytes) -> bytes:
    """Return the bytes of an event packet after its timestamp."""
    return _EVENT_HEAD + wire.length(len(event)) + event


def _event_packet(stamp: bytes, event: bytes) -> bytes:
    size = wire.length(len(event))
    whole = wire.length(len(stamp) + len(_EVENT_HEAD) + len(size) + len(event))
    return b"".join((b"\x0a", whole, stamp, _EVENT_HEAD, size, event))


def _flow_fields(trace: Trace) -> tuple[bytes, I64]:
    """Return the encoded flow fields of all slices, and the offset of those of each slice, with the end of the last.

    A flow has its row plus 1 as its id.
    """
    flows, slices = trace.flows, trace.slices
    if not len(flows.from_slice):
        return b"", np.empty(0, np.int64)
    origin, target = flows.from_slice, flows.to_slice
    step = slices.ts[target] - slices.ts[origin]
    first = np.where((step < 0) | ((step == 0) & (target < origin)), target, origin)
    last = flows.from_slice + flows.to_slice - first
    # The start and the end of each flow in turn, then sorted by slice.
    at = np.column_stack((first, last)).ravel()
    fields = np.empty((len(at), _FLOW_SIZE), np.uint8)
    fields[0::2, :_FLOW_TAG_SIZE] = np.frombuffer(wire.tag(proto.FLOW, 1), np.uint8)
    fields[1::2, :_FLOW_TAG_SIZE] = np.frombuffer(wire.tag(proto.TERMINATING_FLOW, 1), np.uint8)
    numbers = np.repeat(np.arange(1, len(first) + 1, dtype="<u8"), 2)
    fields[:, _FLOW_TAG_SIZE:] = numbers.view(np.uint8).reshape(-1, 8)
    counts = np.bincount(at, minlength=len(slices.ts))
    return fields[np.argsort(at, kind="stable")].tobytes(), np.append(0, np.cumsum(counts) * _FLOW_SIZE)


def _joined(chunks: Iterable[bytes]) -> tuple[bytearray, I64]:
    """Join chunks; return the bytes, and the offset of each chunk, with the end of the last one."""
    joined, bounds = bytearray(), array("q", [0])
    for chunk in chunks:
        joined += chunk
        bounds.append(len(joined))
    return joined, np.frombuffer(bounds, np.int64)


def _share_args(trace: Trace) -> bool:
    """Return whether most events share their args with others."""
    size = sum(int(table.args_len.sum(dtype=np.int64)) for table in (trace.slices, trace.instants))
    return size > 2 * sum(map(len, trace.args.parts))

"""Collect the events of a Perfetto trace in columns, and add them to the builder at the end.

Clocks, tracks and their parents may be declared anywhere in the file, also after the events. So events are kept until
everything is known. The compiled kernel reads packets with plain track events, nearly all of a large trace.
"""

from __future__ import annotations

import struct
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from traceconv.families.chrome.flows import FlowSteps
from traceconv.families.common.wire_reader import BadWire, Damage, PacketBuffer, as_double, as_text
from traceconv.families.perfetto.packets import PacketSequence
from traceconv.families.perfetto.tracks import Clocks, Tracks, moved
from traceconv.io.shown import Counted
from traceconv.model.builder import Builder
from traceconv.model.columns import I32
from traceconv.model.diagnostics import JOINED_ENDS, absent, lost
from traceconv.model.trace import Level, StackId
from traceconv.model.track_table import TrackId, TrackKind

STATE_ENDS = Counted("end of a state", "ends of states")

UNKNOWN_CLOCK = lost(
    "perfetto.unknown_clock",
    "the clock of an event is not related to the clock of the trace by any snapshot of the file",
)
HALF_FLOW = absent("perfetto.half_flow", "a flow has only one slice in the file, so it is not drawn")

_CHUNK = 1 << 13
_PART_BYTES = 4 << 20
_ROWS = 1 << 14
_ARGS_ROOM = 4 << 20
_MAX_IDS = 1 << 22
_FEW = 8  # the number of clocks from which on they are sorted; fewer are searched one by one
_Indices = npt.NDArray[np.intp]


class Kind(IntEnum):
    """The kind of a row."""

    BEGIN = 0
    END = 1
    INSTANT = 2
    SLICE = 3  # with a duration of its own
    STATE = 4  # lasts until the next one on its track
    LOG = 5
    COUNTER = 6
    SAMPLE = 7
    STEP = 8  # a flow event of an old trace


class Entry(NamedTuple):
    """The fields of a log row beside the columns."""

    text: str
    level: Level
    source: str


class Taken(NamedTuple):
    """The fields of a sample row beside the columns."""

    thread: tuple[int, int]
    stack: StackId
    weight: int
    cpu: int


class Step(NamedTuple):
    """A flow event of an old trace, which belongs to the slice around it or to the next one."""

    row: int
    phase: str
    id: bytes
    to_next: bool
    counts: bool


class Row(NamedTuple):
    """One event; `ts` in ns on the clock of the trace, `track` a number of Tracks, `name` and `category` strings."""

    place: int
    kind: int
    track: int
    ts: int
    name: int
    category: int
    args: bytes
    at: int
    counts: int


class Shift(NamedTuple):
    """An offset that a writer added to the times of some packets: `begin` <= number < `end`; `by` in ns."""

    begin: int
    end: int
    by: int


class Rows:
    """The columns.

    Attributes:
        args_end: the end of the args of each row in those of the builder.
        counts: whether the row stands for a packet in the balance, or comes in addition to one that does.
        durations, entries, samples: fields of rows of some kinds, by row.
        values: the values of counters, and whether they are integers; counter rows hold the position here as their
            name.
        flow_row, flow_id, flow_ends: the rows with flows, the flow ids, and whether the flow ends there.
        steps: flow events of old traces.
    """

    def __init__(self, out: Builder) -> None:
        self._out = out
        self.string = out.tables.string
        self.kind, self.counts = array("B"), array("B")
        self.track, self.clock = array("i"), array("i")
        self.ts, self.at = array("q"), array("q")
        self.name, self.category = array("i"), array("i")
        self._args = bytearray()  # since the last part
        self.args_size = out.tables.args_part(b"")
        self.args_end = array("q", [self.args_size])
        self.durations: dict[int, int] = {}
        self.values, self.is_integer = array("q"), array("B")  # integers, or the bits of a double
        self.entries: dict[int, Entry] = {}
        self.samples: dict[int, Taken] = {}
        self.flow_row, self.flow_id, self.flow_ends = array("q"), array("q"), array("B")  # ids as signed numbers
        self.steps: list[Step] = []

    def add(
        self,
        kind: int,
        track: int,
        time: tuple[int, int],
        name: int,
        category: int,
        args: bytes,
        at: int,
        counts: bool = True,
    ) -> None:
        """Add an event; `track` is a number of Tracks, `time` ns and a number of Clocks, the names are strings."""
        ts, clock = time
        self.ts.append(ts)
        self.kind.append(kind)
        self.track.append(track)
        self.clock.append(clock)
        self.name.append(name)
        self.category.append(category)
        self.at.append(at)
        self.counts.append(counts)
        if args:
            self.keep_args(args)
        self.args_end.append(self.args_size)

    def keep_args(self, args: bytes | memoryview) -> None:
        """Keep the args of the next rows in the builder."""
        self._args += args
        self.args_size += len(args)
        if len(self._args) >= _PART_BYTES:
            self.part_args()

    def part_args(self) -> None:
        """Pass the args so far to the builder, which may move them to a file."""
        self._out.tables.args_part(self._args, len(self.kind))
        self._args = bytearray()

    @property
    def last(self) -> int:
        return len(self.kind) - 1

    def add_value(
        self, track: int, time: tuple[int, int], value: float, series: int, at: int, counts: bool = True
    ) -> None:
        """Add a counter value; incremental values of one series and track add up."""
        self.add(Kind.COUNTER, track, time, len(self.values), series, b"", at, counts)
        is_integer = isinstance(value, int)
        self.values.append(int(value) if is_integer else struct.unpack("<q", struct.pack("<d", value))[0])
        self.is_integer.append(is_integer)

    def add_flow(self, id: int, ends: bool) -> None:
        """Add the last row to a flow."""
        self.flow_row.append(self.last)
        self.flow_id.append(id - (1 << 64) if id >> 63 else id)
        self.flow_ends.append(ends)

    def value(self, place: int) -> float:
        bits = self.values[place]
        return bits if self.is_integer[place] else as_double(bits % (1 << 64))


#: By event type of the file, and a type of the kernel for an instant that becomes a slice.
_KINDS = np.array([0, Kind.BEGIN, Kind.END, Kind.INSTANT, Kind.COUNTER, Kind.STATE, Kind.SLICE], np.uint8)


class PlainPackets:
    """Reads plain packets into rows, by the kernel module.

    `default_track` and `series` return the number of the default track and that of the counter values of a sequence.
    """

    def __init__(
        self,
        module: Any,
        rows: Rows,
        clocks: Clocks,
        tracks: Tracks,
        default_track: Callable[[PacketSequence], int],
        series: Callable[[PacketSequence], int],
    ) -> None:
        self._rows, self._clocks, self._tracks = rows, clocks, tracks
        self._kernel = module
        self._packets = module.Packets(_ROWS, _ARGS_ROOM, _json_of_double)
        self._by_slot: list[PacketSequence] = []
        self._states: dict[int, tuple[object, ...]] = {}
        self._answers: dict[int, Callable[[PacketSequence, int], int]] = {
            module.NAME: lambda sequence, iid: sequence.name(iid),
            module.CATEGORY: lambda sequence, iid: sequence.category((iid,)),
            module.DEFAULT_TRACK: lambda sequence, _: default_track(sequence),
            module.SERIES: lambda sequence, _: series(sequence),
        }

    @property
    def number(self) -> int:
        return int(self._packets.number)

    def pass_over_empty(self, buffer: PacketBuffer) -> int:
        """Skip the empty packets that come next; return their number."""
        count = buffer.pass_over_empty()
        self._packets.number += count
        return count

    def read(self, buffer: PacketBuffer) -> bytes | Damage | None:
        """Read packets up to one that is not plain, and return it; or the damage; or None at the end.

        The events before it are in the rows after `flush`.
        """
        packets = self._packets
        while True:
            ended = packets.run(buffer.data, buffer.at)
            buffer.at = packets.at
            if ended == self._kernel.FULL:
                self.flush()
                continue
            if ended == self._kernel.NEED and self._answer(buffer.data):
                continue
            begin, end = packets.begin, packets.end
            if ended == self._kernel.MORE:
                before = buffer.data
                frame = buffer.frame()
                if frame is None or isinstance(frame, Damage):
                    self.flush()
                    return frame
                if buffer.data is not before:
                    continue
                begin, end = frame
            buffer.at = end
            packets.number += 1
            return buffer.data[begin:end]

    def _answer(self, data: bytes) -> bool:
        """Answer a request of the kernel, which reads `data`; return whether the answer is known."""
        packets = self._packets
        need, iid = packets.need, packets.key
        if packets.ids() > _MAX_IDS:
            packets.forget()
        try:
            if need == self._kernel.TRACK:
                packets.answer(self._tracks.number(iid))
                return True
            if need == self._kernel.STRING:
                text = data[iid : iid + packets.slot]
                packets.answer_string(text, self._rows.string(as_text(text)))
                return True
            sequence = self._by_slot[packets.slot]
            if need in self._answers:
                packets.answer(self._answers[need](sequence, iid))
                return True
            if (known := sequence.known(need == self._kernel.KEY, iid)) is not None:
                packets.answer_text(known)
            return known is not None
        except BadWire:  # counted when the whole packet is read
            return False

    def update(self, sequences: Iterable[PacketSequence]) -> None:
        """Pass the state of sequences, which a packet may have changed, to the kernel."""
        packets = self._packets
        for sequence in sequences:
            odd = not sequence.has_packets or self._clocks.is_incremental(sequence.clock)
            state = sequence.version, sequence.clock, sequence.cleared, sequence.track, sequence.thread, odd
            if self._states.get(sequence.number) == state:
                continue
            self._states[sequence.number] = state
            if odd:
                packets.set_sequence(sequence.number, -1)
                continue
            # A new slot, without cached state.
            self._by_slot.append(sequence)
            packets.set_sequence(sequence.number, packets.add_slot(sequence.clock, sequence.cleared))

    def flush(self) -> None:
        """Move the events that the kernel read into the rows."""
        rows, packets = self._rows, self._packets
        if not packets.count:
            return
        before = len(rows.kind)
        kind, track, ts, clock, name, category, at, args_end = packets.fields[:, : packets.count]
        kinds = _KINDS[kind]
        name = np.where(kinds == Kind.COUNTER, name + len(rows.values), name)
        rows.kind.frombytes(kinds.tobytes())
        rows.ts.frombytes(ts.tobytes())
        rows.at.frombytes(at.tobytes())
        for column, value in ((rows.track, track), (rows.clock, clock), (rows.name, name), (rows.category, category)):
            column.frombytes(value.astype(np.int32).tobytes())
        rows.counts.frombytes(b"\x01" * packets.count)
        rows.args_end.frombytes((args_end + rows.args_size).tobytes())
        rows.keep_args(memoryview(packets.args)[: packets.args_size])
        rows.values.frombytes(packets.values[: packets.value_count].tobytes())
        rows.is_integer.frombytes(packets.kinds[: packets.value_count].tobytes())
        row, id, ends = packets.flows[:, : packets.flow_count]
        rows.flow_row.frombytes((row + before).tobytes())
        rows.flow_id.frombytes(id.tobytes())
        rows.flow_ends.frombytes(ends.astype(np.uint8).tobytes())
        packets.clear()


def _json_of_double(bits: int) -> bytes:
    return msgspec.json.encode(as_double(bits))


class Emission:
    def __init__(self, rows: Rows, clocks: Clocks, tracks: Tracks, out: Builder) -> None:
        self._rows, self._clocks, self._tracks, self._out = rows, clocks, tracks, out
        self._strings = out.tables.strings()
        self._beside: dict[tuple[TrackId, TrackKind], TrackId] = {}

    def run(self, shifts: Iterable[Shift]) -> None:
        """Add times, tracks, events, flows; subtract offsets from the times."""
        rows = self._rows
        kept = self._to_trace_time(shifts)
        threads = self._tracks.sampled_threads(dict.fromkeys(sample.thread for sample in rows.samples.values()))
        for place, sample in rows.samples.items():
            rows.track[place] = threads[sample.thread]
        self._made = self._tracks.build(self._out, np.unique(np.frombuffer(rows.track, np.int32)).tolist())
        kinds = np.frombuffer(rows.kind, np.uint8)
        rows.part_args()
        self._args = self._out.tables.kept_args()
        self._marks(np.flatnonzero(kept & (kinds <= Kind.END)))
        self._instants(np.flatnonzero(kept & (kinds == Kind.INSTANT)))
        for kind, handle in ((Kind.SLICE, self._slice), (Kind.LOG, self._log), (Kind.SAMPLE, self._sample)):
            for row in self._each(np.flatnonzero(kept & (kinds == kind))):
                handle(row)
        self._counters(np.flatnonzero(kept & (kinds == Kind.COUNTER)))
        self._states(np.flatnonzero(kept & (kinds == Kind.STATE)))
        self._out.pair()
        self._flows()
        self._old_flows(kept)

    def _to_trace_time(self, shifts: Iterable[Shift]) -> npt.NDArray[np.bool_]:
        """Convert all times to the clock of the trace; return which rows have a known time."""
        rows = self._rows
        self._ts = np.array(rows.ts, np.int64)
        clock, counts = np.frombuffer(rows.clock, np.int32), np.frombuffer(rows.counts, np.uint8)
        kept = np.ones(len(clock), bool)
        numbers = np.unique(clock).tolist()
        self._clocks.settle(set(numbers))
        for number, here in _places(clock, numbers):
            times = self._clocks.to_trace_time(number, self._ts[here])
            if times is None:
                kept[here] = False
                lost = int(counts[here].sum())
                self._out.skip(UNKNOWN_CLOCK, rows.at[int(here[0])], self._clocks.describe(number), count=lost)
            else:
                self._ts[here] = times
        packets = np.frombuffer(rows.at, np.int64)  # in ascending order
        for shift in shifts:
            some = slice(*np.searchsorted(packets, (shift.begin, shift.end)).tolist())
            self._ts[some] = moved(self._ts[some], -shift.by)
        return kept

    def _each(self, indices: _Indices) -> Iterator[Row]:
        """Yield the rows with given numbers."""
        rows = self._rows
        ends = np.frombuffer(rows.args_end, np.int64)
        columns = [
            np.frombuffer(column, column.typecode)
            for column in (rows.kind, rows.track, rows.name, rows.category, rows.at, rows.counts)
        ]
        for start in range(0, len(indices), _CHUNK):
            part = indices[start : start + _CHUNK]
            picked = (part, self._ts[part], ends[part], ends[part + 1], *(column[part] for column in columns))
            for index, ts, begin, end, kind, track, name, category, at, counts in zip(
                *(column.tolist() for column in picked), strict=True
            ):
                yield Row(index, kind, track, ts, name, category, self._args.get(begin, end - begin), at, counts)

    # -- tracks -----------------------------------------------------------------------------------------------

    def _beside_track(self, track: TrackId, kind: TrackKind) -> TrackId:
        """Return a track of another kind beside a track, for events that this one cannot hold."""
        beside = self._beside.get((track, kind))
        if beside is None:
            info = self._out.tracks[track]
            parent = info.parent if info.kind is TrackKind.COUNTER else track
            add = self._out.tracks.counter if kind is TrackKind.COUNTER else self._out.tracks.add
            beside = self._beside[track, kind] = add(info.name, parent)
        return beside

    def _drawn(self, number: int) -> TrackId:
        """Return the track for slices and instants of a track."""
        track = self._made[number]
        if self._tracks[number].kind is TrackKind.COUNTER:
            return self._beside_track(track, TrackKind.TRACK)
        return track

    def _drawn_tracks(self, indices: _Indices) -> I32:
        """Return the tracks for slices and instants of rows."""
        where = np.frombuffer(self._rows.track, np.int32)[indices]
        drawn = np.zeros(len(self._made), np.int32)
        for number in np.unique(where).tolist():
            drawn[number] = self._drawn(number)
        tracks: I32 = drawn[where]
        return tracks

    # -- events -----------------------------------------------------------------------------------------------

    def _marks(self, indices: _Indices) -> None:
        is_begin = np.frombuffer(self._rows.kind, np.uint8)[indices] == Kind.BEGIN
        track, ts, name, category, *rest = self._columns(indices)
        category = np.where(is_begin, category, 0).astype(np.int32)
        self._out.bulk.begins_and_ends(track, ts, is_begin.astype(np.uint8), name, category, *rest)

    def _instants(self, indices: _Indices) -> None:
        self._out.bulk.instants(*self._columns(indices))
        self._out.balance.written += int(np.frombuffer(self._rows.counts, np.uint8)[indices].sum())

    def _columns(self, indices: _Indices) -> tuple[npt.NDArray[Any], ...]:
        """Return track, time, name, category, place and length of args, and number of rows."""
        rows = self._rows
        ends = np.frombuffer(rows.args_end, np.int64)
        name, category = (np.frombuffer(column, np.int32)[indices] for column in (rows.name, rows.category))
        lengths = (ends[indices + 1] - ends[indices]).astype(np.int32)
        at = np.frombuffer(rows.at, np.int64)[indices]
        return self._drawn_tracks(indices), self._ts[indices], name, category, ends[indices], lengths, at

    def _slice(self, row: Row) -> None:
        name, category = self._strings[row.name], self._strings[row.category]
        dur = self._rows.durations.get(row.place, 0)
        self._out.slice(self._drawn(row.track), row.ts, dur, name, category, row.args, row.at)
        self._out.balance.written += row.counts

    def _log(self, row: Row) -> None:
        track = self._drawn(row.track)
        if self._out.tracks[track].kind is TrackKind.PROCESS:
            track = self._beside_track(track, TrackKind.TRACK)
        self._out.log(track, row.ts, *self._rows.entries[row.place], row.args, row.at)
        self._out.balance.written += row.counts

    def _sample(self, row: Row) -> None:
        _, stack, weight, cpu = self._rows.samples[row.place]
        self._out.sample(self._made[row.track], row.ts, stack, self._strings[row.name], weight, row.at, cpu=cpu)
        self._out.balance.written += row.counts

    def _counters(self, indices: _Indices) -> None:
        rows, made = self._rows, self._made
        where = np.frombuffer(rows.track, np.int32)[indices]
        is_plain = np.zeros(len(made), bool)
        for number in np.unique(where).tolist():
            info = self._tracks[number]
            is_plain[number] = info.kind is TrackKind.COUNTER and info.multiplier == 1 and not info.incremental
        plain = indices[is_plain[where]]
        places = np.frombuffer(rows.name, np.int32)[plain]
        values = np.frombuffer(rows.values, np.int64)[places]
        good = self._out.bulk.counters(
            np.array(made, np.int32)[np.frombuffer(rows.track, np.int32)[plain]],
            self._ts[plain],
            values,
            np.frombuffer(rows.is_integer, np.uint8)[places],
            np.frombuffer(rows.at, np.int64)[plain],
        )
        counts = np.frombuffer(rows.counts, np.uint8)[plain]
        self._out.count_values(int(counts[good].sum()), int(counts[~good].sum()))
        self._computed_counters(indices[~is_plain[where]])

    def _computed_counters(self, indices: _Indices) -> None:
        """Add values of counters that are incremental, have a factor, or are on a track of another kind."""
        totals: dict[tuple[int, int], float] = defaultdict(int)
        for _, _, number, ts, index, series, _, at, counts in self._each(indices):
            track, info = self._made[number], self._tracks[number]
            value = self._rows.value(index) * info.multiplier
            if info.kind is not TrackKind.COUNTER:
                track = self._beside_track(track, TrackKind.COUNTER)
            elif info.incremental:
                value = totals[number, series] = totals[number, series] + value
            is_there = self._out.counter(track, ts, value, at)
            self._out.count_values(counts * is_there, counts * (not is_there))

    def _states(self, indices: _Indices) -> None:
        """Draw each state until the next one of its track; one without a name only ends the one before."""
        order = np.lexsort((indices, self._ts[indices], np.array(self._rows.track, np.int32)[indices]))
        before: Row | None = None
        for row in self._each(indices[order]):
            if before is not None:
                self._state(before, row.ts if before.track == row.track else None)
            before = row
        if before is not None:
            self._state(before, None)

    def _state(self, row: Row, until: int | None) -> None:
        track, name = self._drawn(row.track), self._strings[row.name]
        if not name:
            self._out.balance.merged[STATE_ENDS] += row.counts
            return
        # A state that never ends is closed like other slices without an end.
        self._out.begin(track, row.ts, name, self._strings[row.category], row.args, row.at)
        if until is not None:
            self._out.end(track, until, name, at=row.at)
            self._out.balance.merged[JOINED_ENDS] -= 1

    # -- flows -----------------------------------------------------------------------------------------------

    def _flows(self) -> None:
        """Connect each member of a flow with the next one in time; an id may be reused after its end."""
        rows = self._rows
        if not rows.flow_row:
            return
        origins = np.frombuffer(rows.at, np.int64)
        slice_of = np.full(int(np.max(origins)) + 1, -1, np.int64)
        (origin,) = self._out.tables.slice_columns("origin")
        slice_of[origin] = np.arange(len(origin))
        row, ids = np.frombuffer(rows.flow_row, np.int64), np.frombuffer(rows.flow_id, np.int64)
        ends = np.frombuffer(rows.flow_ends, np.uint8)
        here = slice_of[origins[row]]
        drawn = here >= 0
        row, ids, ends, here = row[drawn], ids[drawn], ends[drawn], here[drawn]
        if not len(row):
            return
        # Ordered by the first member of each flow, then by time.
        _, first, flow = np.unique(ids, return_index=True, return_inverse=True)
        order = np.lexsort((ends, row, self._ts[row], first[flow]))
        row, ids, ends, here, flow = row[order], ids[order], ends[order], here[order], flow[order]
        goes_on = np.append((flow[1:] == flow[:-1]) & (ends[:-1] == 0), False)
        joined = np.concatenate(([False], goes_on[:-1]))
        at, none = origins[row], np.zeros(int(joined.sum()), np.int32)
        self._out.bulk.flows(
            here[:-1][joined[1:]].tolist(), here[joined].tolist(), none.tolist(), none.tolist(), at[joined].tolist()
        )
        is_last = np.append(flow[1:] != flow[:-1], True)
        for alone in np.flatnonzero(~joined & ((ends == 1) | is_last)).tolist():
            self._out.problem(HALF_FLOW, int(at[alone]), f"flow {int(ids[alone]) % (1 << 64)}")

    def _old_flows(self, kept: npt.NDArray[np.bool_]) -> None:
        """Bind the flow events of old traces, which name a thread and a time."""
        steps = FlowSteps()
        rows = self._rows
        for row, phase, id, to_next, counts in rows.steps:
            if kept[row]:
                track = self._drawn(rows.track[row])
                key = (self._strings[rows.category[row]], self._strings[rows.name[row]], id) if counts else ("", "", id)
                ts, at = int(self._ts[row]), rows.at[row]
                steps.add(key, phase, track, ts, at, to_next=to_next, counts=counts)
        steps.resolve(self._out)


def _places(clock: I32, numbers: list[int]) -> Iterator[tuple[int, _Indices]]:
    """Yield the rows of each clock, in order."""
    if len(numbers) <= _FEW:
        for number in numbers:
            yield number, np.flatnonzero(clock == number)
        return
    order = np.argsort(clock, kind="stable")
    begins = np.searchsorted(clock[order], numbers)
    yield from zip(numbers, np.split(order, begins[1:]), strict=True)

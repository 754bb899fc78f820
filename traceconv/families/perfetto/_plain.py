"""Read packets with plain track events, nearly all of a large trace, with the compiled kernel."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import numpy as np

from traceconv.families.common.wire_reader import BadWire, as_text
from traceconv.families.perfetto._clocks import Clocks
from traceconv.families.perfetto._rows import Kind, Rows
from traceconv.families.perfetto._sequence import Sequence
from traceconv.families.perfetto._tracks import Tracks
from traceconv.io.packets import Damage, PacketBuffer

_ROWS = 1 << 14
_ARGS_ROOM = 4 << 20
_MAX_IDS = 1 << 22
#: By event type of the file, and a type of the kernel for an instant that becomes a slice.
_KINDS = np.array([0, Kind.BEGIN, Kind.END, Kind.INSTANT, Kind.COUNTER, Kind.STATE, Kind.SLICE], np.uint8)


class PlainPackets:
    """Reads plain packets into rows.

    Args:
        module: the kernel module with the reader.
        rows, clocks, tracks: those of the trace.
        default_track: the number of the default track of a sequence.
        series: the number of the series of counter values of a sequence.

    Attributes:
        number: the number of packets read, in any way.
    """

    def __init__(
        self,
        module: Any,
        rows: Rows,
        clocks: Clocks,
        tracks: Tracks,
        default_track: Callable[[Sequence], int],
        series: Callable[[Sequence], int],
    ) -> None:
        self._rows, self._clocks, self._tracks = rows, clocks, tracks
        self._default_track, self._series = default_track, series
        self._kernel = module
        self._packets = module.Packets(_ROWS, _ARGS_ROOM, _json_of_double)
        self._by_slot: list[Sequence] = []
        self._states: dict[int, tuple[object, ...]] = {}

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
            if need in (self._kernel.KEY, self._kernel.TEXT):
                text = sequence.known_key(iid) if need == self._kernel.KEY else sequence.known_text(iid)
                if text is not None:
                    packets.answer_text(text)
                return text is not None
            if need == self._kernel.NAME:
                packets.answer(sequence.name(iid))
            elif need == self._kernel.CATEGORY:
                packets.answer(sequence.category((iid,)))
            elif need == self._kernel.DEFAULT_TRACK:
                packets.answer(self._default_track(sequence))
            else:
                packets.answer(self._series(sequence))
        except BadWire:  # counted when the whole packet is read
            return False
        return True

    def update(self, sequences: Iterable[Sequence]) -> None:
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
    return msgspec.json.encode(struct.unpack("<d", bits.to_bytes(8, "little"))[0])

"""Write call stack samples to a Perfetto trace.

Each name of samples needs a packet sequence, since the name is a default of the sequence; samples without a known CPU
have another one. Perfetto shows the module of a frame with a leading slash.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from traceconv.families.perfetto import _fields as proto
from traceconv.families.perfetto import _wire as wire
from traceconv.families.perfetto._head import Head
from traceconv.io.packets import CPU_UNKNOWN
from traceconv.model.trace import I64, Samples, Trace, take

U64 = npt.NDArray[np.uint64]

_MAX_CHUNKS = 1 << 16
_MAX_TOTAL = 2**64 - 1
_SAMPLE_HEAD, _SAMPLE_TOTAL, _HIDDEN_TOTAL = wire.tag(proto.PERF_SAMPLE, 2), 6, 7


class SamplePackets:
    """The packets of all samples, with a sequence for each name of samples."""

    def __init__(self, trace: Trace, head: Head) -> None:
        self._trace, self._head = trace, head
        #: The sequences by name, and by whether the CPU is known.
        self._sampling: dict[tuple[int, bool], _Sampling] = {}

    def take_head(self) -> bytes:
        """Return the packets that must precede those encoded since the last call."""
        return b"".join([sampling.take_head() for sampling in self._sampling.values()])

    def packets(self, rows: I64, stamps: list[bytes]) -> list[bytes]:
        """Return the packets of some samples, whose times are encoded."""
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
        """Return, encoded, the CPU and the running total of the weights of its name on that CPU, for each sample."""
        counts: npt.NDArray[Any] = np.empty(len(table.ts), object)
        for name, cpu, own in _by_name_and_cpu(table, np.arange(len(table.ts))):
            sampling = self._sampling.get((name, cpu >= 0))
            if sampling is None:
                number = proto.SEQUENCE + 1 + len(self._sampling)
                sampling = _Sampling(self._trace, self._head, number, name, cpu >= 0)
                self._sampling[name, cpu >= 0] = sampling
            counts[own] = sampling.counted(cpu, table.weight[own])
        values: list[bytes] = counts.tolist()
        return values


class _Sampling:
    """The packet sequence of the samples of one name, with or without a known CPU.

    Perfetto has no weight of a sample, but the running total of a CPU; the difference of two is the weight of the
    second. For a sample without a CPU, Perfetto would draw the total as that of CPU 0. So its total is in the field of
    follower counts, which Perfetto ignores unless the defaults declare such events. Perfetto v52 creates a row "Cpu 0"
    for all samples: its name states then that the CPU is not known.
    """

    def __init__(self, trace: Trace, head: Head, sequence: int, name: int, has_cpu: bool) -> None:
        self._frames = trace.frames
        self._task = head.task
        self._fields: dict[tuple[int, int], bytes] = {}
        self._state = proto.in_sequence(sequence)
        timebase = wire.text(10, (trace.strings[name] or "samples") + ("" if has_cpu else CPU_UNKNOWN))
        defaults = wire.blob(proto.DEFAULT_SAMPLE, wire.blob(1, timebase))
        cleared = proto.in_sequence(sequence, proto.CLEARED)
        first = cleared + wire.integer(proto.FIRST_PACKET, 1) + wire.blob(proto.DEFAULTS, defaults)
        self._head = wire.packet(first)
        self._interned: list[bytes] = []
        self._texts: dict[tuple[int, str], int] = {}
        self._mappings: dict[str, int] = {}
        self._known_frames: set[int] = set()
        self._known_stacks: set[int] = set()
        self._totals: dict[int, int] = {}

    def take_head(self) -> bytes:
        """Return the packets that must come before the samples encoded since the last call."""
        head, self._head = self._head, b""
        if self._interned:
            head += wire.packet(self._state + wire.blob(proto.INTERNED_DATA, b"".join(self._interned)))
            self._interned = []
        return head

    def counted(self, cpu: int, weights: I64) -> list[bytes]:
        """Return the running totals of the next samples on a CPU, encoded, with the CPU if it is known."""
        totals = _totals(self._totals.get(cpu, 0), weights)
        self._totals[cpu] = int(totals[-1])
        if cpu < 0:
            return wire.integers(_HIDDEN_TOTAL, totals)
        on_cpu = wire.integer(1, cpu)
        return [total + on_cpu for total in wire.integers(_SAMPLE_TOTAL, totals)]

    def sample(self, stamp: bytes, track: int, stack: int, count: bytes) -> bytes:
        """Return a packet; `count` is CPU and total, encoded."""
        fields = self._fields.get((track, stack)) or self._new_fields(track, stack)
        size = wire.length(len(fields) + len(count))
        state = self._state
        inside = len(stamp) + len(state) + len(_SAMPLE_HEAD) + len(size) + len(fields) + len(count)
        return b"".join((b"\x0a", wire.length(inside), stamp, state, _SAMPLE_HEAD, size, fields, count))

    def _new_fields(self, track: int, stack: int) -> bytes:
        """Return the fields that samples of one thread and stack share, and cache them."""
        if len(self._fields) >= _MAX_CHUNKS:
            self._fields.clear()
        fields = self._task(track) + (wire.integer(4, self._stack(stack)) if stack >= 0 else b"")
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
            self._interned.append(wire.blob(proto.CALLSTACKS, wire.integer(1, stack + 1) + outermost_first))
        return stack + 1

    def _frame(self, index: int) -> int:
        if index not in self._known_frames:
            self._known_frames.add(index)
            frame = self._frames[index]
            fields = wire.integer(1, index + 1) + wire.integer(2, self._text(proto.FUNCTIONS, frame.name))
            fields += wire.integer(3, self._mapping(frame.category)) + wire.integer(4, 0)
            self._interned.append(wire.blob(proto.FRAMES, fields))
        return index + 1

    def _mapping(self, module: str) -> int:
        """Return the number of the module of a frame; one is unnamed, since Perfetto drops frames without a module."""
        iid = self._mappings.get(module)
        if iid is None:
            iid = self._mappings[module] = len(self._mappings) + 1
            path = [self._text(proto.MAPPING_PATHS, part) for part in module.strip("/").split("/") if part]
            fields = wire.integer(1, iid) + b"".join([wire.integer(7, part) for part in path])
            self._interned.append(wire.blob(proto.MAPPINGS, fields))
        return iid

    def _text(self, table: int, text: str) -> int:
        iid = self._texts.get((table, text))
        if iid is None:
            iid = self._texts[table, text] = len(self._texts) + 1
            self._interned.append(wire.blob(table, wire.integer(1, iid) + wire.text(2, text)))
        return iid


def _totals(before: int, weights: I64) -> U64:
    """Return the running totals after one, limited to the range of the format."""
    if _fits(before, weights):
        return np.cumsum(weights.astype(np.uint64), dtype=np.uint64) + np.uint64(before)
    totals = accumulate(weights.tolist(), lambda total, one: max(0, min(total + one, _MAX_TOTAL)), initial=before)
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


def bounded_weights(samples: Samples) -> int:
    """Return the number of samples whose weight is changed by the range of the totals."""
    if not len(samples.ts) or _fits(0, samples.weight):
        return 0
    cut = 0
    for _, _, own in _by_name_and_cpu(samples, np.argsort(samples.ts, kind="stable")):
        weights = samples.weight[own]
        written = np.diff(_totals(0, weights), prepend=np.uint64(0)).view(np.int64)
        cut += int(np.count_nonzero(written != weights))
    return cut

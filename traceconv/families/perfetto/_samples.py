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
from traceconv.model.ordering import occurring
from traceconv.model.trace import I32, I64, Samples, Trace, take

U64 = npt.NDArray[np.uint64]

_MAX_TOTAL = 2**64 - 1
_SAMPLE_HEAD, _SAMPLE_TOTAL, _HIDDEN_TOTAL = wire.tag(proto.PERF_SAMPLE, 2), 6, 7


class SamplePackets:
    """The packets of all samples, with a sequence for each name of samples."""

    def __init__(self, trace: Trace, head: Head) -> None:
        self._trace = trace
        #: The fields of process and thread of each track with samples.
        self._tasks = {track: head.task(track) for track in occurring(trace.samples.track)}
        #: The sequences by name, and by whether the CPU is known.
        self._sampling: dict[tuple[int, bool], _Sampling] = {}

    def take_head(self) -> bytes:
        """Return the packets that must precede those encoded since the last call."""
        return b"".join([sampling.take_head() for sampling in self._sampling.values()])

    def packets(self, rows: I64, stamps: list[bytes]) -> list[bytes]:
        """Return the packets of some samples, whose times are encoded."""
        table: Samples = take(self._trace.samples, rows)
        counts = self._counts(table)
        stacks = _stack_fields(table.stack)
        packets = []
        columns = (table.track, table.name, table.cpu)
        for stamp, stack, count, track, name, cpu in zip(
            stamps, stacks, counts, *(column.tolist() for column in columns), strict=True
        ):
            packets.append(self._sampling[name, cpu >= 0].sample(stamp, track, stack, count))
        return packets

    def _counts(self, table: Samples) -> list[bytes]:
        """Return, encoded, the CPU and the running total of the weights of its name on that CPU, for each sample.

        Intern the stacks.
        """
        counts: npt.NDArray[Any] = np.empty(len(table.ts), object)
        for name, cpu, own in _by_name_and_cpu(table, np.arange(len(table.ts))):
            sampling = self._sampling.get((name, cpu >= 0))
            if sampling is None:
                number = proto.SEQUENCE + 1 + len(self._sampling)
                sampling = _Sampling(self._trace, self._tasks, number, name, cpu >= 0)
                self._sampling[name, cpu >= 0] = sampling
            counts[own] = sampling.counted(cpu, table.weight[own])
            sampling.intern(table.stack[own])
        values: list[bytes] = counts.tolist()
        return values


class _Sampling:
    """The packet sequence of the samples of one name, with or without a known CPU.

    Perfetto has no weight of a sample, but the running total of a CPU; the difference of two is the weight of the
    second. For a sample without a CPU, Perfetto would draw the total as that of CPU 0. So its total is in the field of
    follower counts, which Perfetto ignores unless the defaults declare such events. Perfetto v52 creates a row "Cpu 0"
    for all samples: its name states then that the CPU is not known.
    """

    def __init__(self, trace: Trace, tasks: dict[int, bytes], sequence: int, name: int, has_cpu: bool) -> None:
        self._frames = trace.frames
        self._tasks = tasks
        self._state = proto.in_sequence(sequence)
        timebase = wire.text(10, (trace.strings[name] or "samples") + ("" if has_cpu else CPU_UNKNOWN))
        defaults = wire.blob(proto.DEFAULT_SAMPLE, wire.blob(1, timebase))
        cleared = proto.in_sequence(sequence, proto.CLEARED)
        first = cleared + wire.integer(proto.FIRST_PACKET, 1) + wire.blob(proto.DEFAULTS, defaults)
        self._head = wire.packet(first)
        self._interned: list[bytes] = []
        self._texts: dict[tuple[int, str], int] = {}
        self._mappings: dict[str, int] = {}
        self._known_frames: dict[tuple[str, str], bytes] = {}
        self._known_stacks: set[int] = set()  # not a mask of all frames: there may be thousands of names
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

    def sample(self, stamp: bytes, track: int, stack: bytes, count: bytes) -> bytes:
        """Return a packet; `stack` is its field, `count` is CPU and total, encoded."""
        task, state = self._tasks[track], self._state
        fields = len(task) + len(stack) + len(count)
        size = wire.length(fields)
        inside = len(stamp) + len(state) + len(_SAMPLE_HEAD) + len(size) + fields
        return b"".join((b"\x0a", wire.length(inside), stamp, state, _SAMPLE_HEAD, size, task, stack, count))

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
            self._interned.append(wire.blob(proto.CALLSTACKS, b"".join(reversed(stack_fields))))

    def _frame(self, name: str, module: str) -> bytes:
        """Intern a frame, and return its field in a stack."""
        iid = len(self._known_frames) + 1
        fields = wire.integer(1, iid) + wire.integer(2, self._text(proto.FUNCTIONS, name))
        fields += wire.integer(3, self._mapping(module)) + wire.integer(4, 0)
        self._interned.append(wire.blob(proto.FRAMES, fields))
        field = self._known_frames[name, module] = wire.integer(2, iid)
        return field

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


def _stack_fields(stacks: I32) -> list[bytes]:
    """Return the field of the stack of each sample; b"" for none."""
    order = np.argsort(stacks)
    ascending = stacks[order].astype(np.int64)
    of_none = int(np.searchsorted(ascending, 0))
    fields: npt.NDArray[Any] = np.empty(len(stacks), object)
    fields[order] = [b""] * of_none + wire.integers(4, ascending[of_none:] + 1)
    in_order: list[bytes] = fields.tolist()
    return in_order


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

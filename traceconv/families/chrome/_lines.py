"""Build the lines of Chrome JSON from precomputed parts; the compiled kernel writes plain ones."""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from json.encoder import encode_basestring
from typing import Any

import numpy as np
import numpy.typing as npt

from traceconv.families.common.wire_writer import utf8
from traceconv.model.ordering import occurring
from traceconv.model.trace import I64, Instants, Slices, Trace, TrackKind
from traceconv.writers.ids import Identities

# The tables, in the order of their events at equal times.
SLICE, FLOW, INSTANT, COUNTER, SAMPLE, LOG = range(6)
_FINAL_BACKSLASH = re.compile(rb'(?<!\\)((?:\\\\)*)\\\\"')


@dataclass(frozen=True, slots=True)
class FlowEnds:
    """Starts and ends of the flows: row 2i is where flow i starts, 2i + 1 where it ends."""

    slice: I64
    ts: I64


def flow_ends(trace: Trace) -> FlowEnds:
    """Return where the flows of a trace start and end."""
    flows, slices = trace.flows, trace.slices
    starts = slices.ts
    one, other = flows.from_slice, flows.to_slice
    backward = (starts[other] < starts[one]) | ((starts[other] == starts[one]) & (other < one))
    rows = np.empty(2 * len(one), np.int64)
    rows[0::2], rows[1::2] = np.where(backward, other, one), np.where(backward, one, other)
    ts = starts[rows]
    followed = np.zeros(len(starts) + 1, bool)
    followed[: max(len(starts) - 1, 0)] = (starts[1:] == starts[:-1]) & (slices.track[1:] == slices.track[:-1])
    places = np.flatnonzero(followed[rows])
    distinct, which = np.unique(rows[places], return_inverse=True)
    ts[places] = np.array([_own_time(slices, row) for row in distinct.tolist()], np.int64)[which]
    crossed = ts[0::2] > ts[1::2]
    for part in (0, 1):
        ts[part::2][crossed] = starts[rows[part::2][crossed]]
    return FlowEnds(rows, ts)


def _own_time(slices: Slices, row: int) -> int:
    """Return the first time at which a slice is the innermost one; its start if there is none."""
    start, track = int(slices.ts[row]), slices.track[row]
    end, time = start + int(slices.dur[row]), start
    child = row + 1
    while child < len(slices.ts) and slices.track[child] == track and slices.ts[child] <= time < end:
        time = max(time, int(slices.ts[child] + max(slices.dur[child], 1)))
        child += 1
    return time if time < end else start


def json_text(value: Any) -> bytes:
    """Return a value as JSON on one line that all viewers can read."""
    if type(value) is str:  # there may be millions
        return loadable(utf8(encode_basestring(value)))
    return loadable(utf8(json.dumps(value, ensure_ascii=False, separators=(",", ":"))))


def loadable(text: bytes) -> bytes:
    """Return JSON text without an escaped backslash before a closing quote.

    Perfetto v52 reads that quote as escaped.
    """
    return _FINAL_BACKSLASH.sub(rb'\1\\u005c"', text) if b'\\\\"' in text else text


def task_text(ids: Identities, track: int) -> bytes:
    """Return the keys of the process and thread of a track."""
    return b',"pid":%d,"tid":%d' % (ids.pid[track], ids.tid[track])


#: Doubles of microseconds hold all nanoseconds up to here (52 days).
_EXACT_NS = 2**52 // 1000 * 1000


class Origin:
    """The time that the times of a file count from: the first of the trace, on a whole microsecond.

    Readers of the format take times as doubles. Those far from the origin are whole microseconds, which doubles hold:
    otherwise, starts are rounded and durations are not, and viewers drop slices that overlap by it.

    Attributes:
        ns: its time.
        is_rounding: whether any time is rounded.
    """

    def __init__(self, trace: Trace) -> None:
        first, last = trace.span() or (0, 0)
        self.ns = first // 1000 * 1000
        self.is_rounding = last - self.ns >= _EXACT_NS

    def since(self, ts: I64) -> I64:
        """Return times as they are written, ns."""
        since = ts - self.ns
        return np.where(since < _EXACT_NS, since, since // 1000 * 1000) if self.is_rounding else since

    def durations(self, slices: Slices, rows: I64) -> I64:
        """Return the durations of slices as they are written, ns."""
        dur = slices.dur[rows]
        if not self.is_rounding:
            return dur
        ts = slices.ts[rows]
        return self.since(ts + dur) - self.since(ts)


class PlainLines:
    """Writes the lines of plain events with the compiled kernel.

    Args:
        module: the kernel module with the writer of lines.
        trace: the trace.
        ids: the identity of each track.
        counters: for each counter track, the text before the time and the text before the value.
        ends: the starts and ends of flows.
        origin: the time that those of the file count from.
    """

    def __init__(
        self,
        module: Any,
        trace: Trace,
        ids: Identities,
        counters: Mapping[int, tuple[bytes, bytes]],
        ends: FlowEnds,
        origin: Origin,
    ) -> None:
        self._kernel, self._origin = module, origin
        self._trace, self._flow_ends = trace, ends
        texts = len(trace.strings)
        self._flow_chunk, self._first_task = texts, texts + 1
        self._is_empty = np.array([not text for text in trace.strings], bool)
        self._is_process = trace.tracks.column("kind") == TrackKind.PROCESS
        used = self._used_texts()
        chunks = [json_text(text) if known else b"" for text, known in zip(trace.strings, used.tolist(), strict=True)]
        chunks.append(json_text("flow"))
        joined, bounds = bytearray(), array("q", [0])
        self._heads = np.full(len(trace.tracks), -1, np.int32)
        self._heads[list(counters)] = np.arange(len(counters)) * 2 + len(chunks) + len(ids)
        tasks = (task_text(ids, track) for track in range(len(ids)))
        for chunk in chain(chunks, tasks, chain.from_iterable(counters.values())):
            joined += chunk
            bounds.append(len(joined))
        chunk_ends = np.frombuffer(bounds, np.int64)
        self._writer = module.LineWriter(np.frombuffer(joined, np.uint8), chunk_ends, trace.args.parts)

    def _used_texts(self) -> npt.NDArray[np.bool_]:
        used = np.zeros(len(self._trace.strings), bool)
        for table in (self._trace.slices, self._trace.instants, self._trace.flows):
            used[occurring(table.name)] = True
            used[occurring(table.category)] = True
        return used

    def block(self, ts: I64, table: npt.NDArray[np.uint8], row: I64) -> tuple[memoryview, I64]:
        """Return the plain lines of events, and the end of each; for another line, -1 minus its position.

        The buffer of the lines is reused for the next block.
        """
        columns = _Columns(np.ascontiguousarray(ts), self._kernel.OTHER)
        for number, fill in (
            (SLICE, self._slices),
            (FLOW, self._flows),
            (INSTANT, self._instants),
            (COUNTER, self._counters),
        ):
            at = np.flatnonzero(table == number)
            if len(at):
                fill(columns, at, row[at])
        ends = np.empty(len(ts), np.int64)
        return self._writer.write(columns, ends), ends

    def _slices(self, columns: _Columns, at: I64, rows: I64) -> None:
        columns.kind[at] = self._kernel.SLICE
        columns.number[at] = self._origin.durations(self._trace.slices, rows)
        self._named(columns, at, rows, self._trace.slices)

    def _instants(self, columns: _Columns, at: I64, rows: I64) -> None:
        table = self._trace.instants
        on_process = self._is_process[table.track[rows]]
        columns.kind[at] = np.where(on_process, self._kernel.PROCESS_INSTANT, self._kernel.INSTANT)
        self._named(columns, at, rows, table)

    def _named(self, columns: _Columns, at: I64, rows: I64, table: Slices | Instants) -> None:
        category = table.category[rows]
        columns.task[at] = table.track[rows] + self._first_task
        columns.name[at] = table.name[rows]
        columns.category[at] = np.where(category, category, -1)
        columns.args_at[at] = table.args_at[rows]
        columns.args_len[at] = table.args_len[rows]

    def _flows(self, columns: _Columns, at: I64, rows: I64) -> None:
        flows, flow = self._trace.flows, rows // 2
        columns.kind[at] = np.where(rows % 2, self._kernel.END, self._kernel.START)
        columns.number[at] = flow + 1
        columns.task[at] = self._trace.slices.track[self._flow_ends.slice[rows]] + self._first_task
        for target, texts in ((columns.name, flows.name[flow]), (columns.category, flows.category[flow])):
            target[at] = np.where(self._is_empty[texts], self._flow_chunk, texts)

    def _counters(self, columns: _Columns, at: I64, rows: I64) -> None:
        table = self._trace.counters
        head = self._heads[table.track[rows]]
        columns.kind[at] = np.where(table.is_integer[rows], self._kernel.INTEGER, self._kernel.DOUBLE)
        columns.number[at] = table.integer[rows]
        columns.value[at] = table.value[rows]
        columns.name[at] = head
        columns.category[at] = head + 1


class _Columns:
    """The rows of a block in the form that the kernel takes."""

    def __init__(self, ts: I64, kind: int) -> None:
        count = len(ts)
        self.ts = ts
        self.kind = np.full(count, kind, np.uint8)
        self.number = np.zeros(count, np.int64)
        self.value = np.zeros(count, np.float64)
        self.task = np.zeros(count, np.int32)
        self.name = np.zeros(count, np.int32)
        self.category = np.full(count, -1, np.int32)
        self.args_at = np.zeros(count, np.int64)
        self.args_len = np.zeros(count, np.int32)

"""Chrome Trace Event JSON in the object form, one event per line.

Source: the Trace Event Format document. Times are microseconds from the first event, since viewers read them as
doubles, which cannot hold nanoseconds since 1970; later than 52 days, they are whole ones. The origin is
`baseTimeNanoseconds` if the clock counts from 1970, else `metadata.traceconv.origin_ns`.

The format has processes and threads only. Other tracks become threads with invented numbers, named by their path below
the process; tracks outside of all processes get a process named after the top track. A counter becomes a counter of the
process, with its unit as the key of the value. Descriptions of tracks are left out.

Viewers bind a flow to the innermost slice at its time: it starts and ends where its slice is innermost, if possible
at the start of the slice. As in the Perfetto writer, a flow points from the earlier slice to the later one.
"""

from __future__ import annotations

import json
import re
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice, pairwise
from json.encoder import encode_basestring
from typing import Any, BinaryIO, ClassVar

import numpy as np
import numpy.typing as npt

from traceconv import kernel
from traceconv.families.common.wire_writer import utf8
from traceconv.io.outline import outline
from traceconv.io.shown import counted
from traceconv.io.source import HEAD_BYTES, Source
from traceconv.model.clocks import Zero
from traceconv.model.columns import I64, occurring
from traceconv.model.numbers import format_us, read_json
from traceconv.model.trace import NO_CPU, Instants, Level, Slices, Trace, take
from traceconv.model.trace_inputs import recording_metadata
from traceconv.model.track_table import NO_TRACK, TrackKind
from traceconv.writers import WriteCounts, sink_of
from traceconv.writers.ids import Identities, tree_order
from traceconv.writers.order import Windows

U8 = npt.NDArray[np.uint8]

# The tables, in the order of their events at equal times.
SLICE, FLOW, INSTANT, COUNTER, SAMPLE, LOG = range(6)
#: Doubles of microseconds hold all nanoseconds up to here (52 days).
_EXACT_NS = 2**52 // 1000 * 1000
_FINAL_BACKSLASH = re.compile(rb'(?<!\\)((?:\\\\)*)\\\\"')
_BLOCK = 16 * 1024
#: The importer leaves out a larger value, too.
_LARGEST_METADATA = 16 << 20
_MOST_HEADS = 1 << 12
#: About the most bytes of texts and args of the events that are written at once.
_PART_BYTES = 16 << 20
_FRACTIONS = [f".{ns:03d}".rstrip("0").rstrip(".").encode() for ns in range(1000)]
_LINE_BREAK = re.compile(rb"(?<!\s)\s*?[\r\n]\s*+")
# An escaped backslash is matched first, so that \\ud83d is not changed.
_ESCAPES = re.compile(rb"\\\\|(?:\\u[0-9a-fA-F]{4})+")
_HUGE_NUMBER = re.compile(rb"\d[eE]\+?\d{3}")
_KEPT_ESCAPES = re.compile('[\x00-\x1f"\\\\]')


@dataclass(frozen=True)
class ChromeJson:
    """Writes JSON for chrome://tracing and other readers of the format; with `compress`, wrapped into gzip."""

    compress: bool = False

    name: ClassVar[str] = "chrome-json"
    suffixes: ClassVar[tuple[str, ...]] = (".json", ".json.gz")
    binary: ClassVar[bool] = False

    def notes(self, trace: Trace) -> list[str]:
        """Return notes on samples, which Perfetto skips, and on times that doubles do not hold."""
        samples = len(trace.samples.ts)
        unseen = f"the JSON has {counted(samples, 'call stack sample')}, which Perfetto does not show: write a .pftrace"
        rounded = "times more than 52 days after the first are whole µs in the JSON: write a .pftrace"
        return [unseen] * bool(samples) + [rounded] * Origin(trace).is_rounding

    @staticmethod
    def stated_sources(source: Source) -> Any:
        """Return the inputs that `metadata` before the events states. Raises InputError."""
        members = source.head().json.members
        size = HEAD_BYTES
        while size < _LARGEST_METADATA and list(members.items())[-1:] == [("metadata", {})]:  # it is cut
            size *= 4
            with source.open() as stream:
                members = outline(stream.read(size)).members
        metadata = members.get("metadata")
        stated = metadata.get("traceconv") if isinstance(metadata, dict) else None
        return stated.get("sources") if isinstance(stated, dict) else None

    def write(self, trace: Trace, sink: BinaryIO) -> WriteCounts:
        with sink_of(trace, sink, self.compress, "a .pftrace holds each name once; ") as out:
            writing = _Writing(trace)
            for text in writing.head():
                out.write(text)
            for lines in writing.lines():
                out.write(lines)
            out.write(b"\n]}\n")
        return writing.counts()


class _Writing:
    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._ids, self._kind = Identities(trace), trace.tracks.column("kind")
        self._origin = Origin(trace)
        self._head = lru_cache(_MOST_HEADS)(self._new_head)
        self._parent = trace.tracks.column("parent")
        self._numbers = self._ids.pid.data, self._ids.tid.data, tree_order(self._ids).data
        self._counter_heads = self._heads_of_counters()
        self._flow_ends = flow_ends(trace)
        self._written = [0] * 6

    def counts(self) -> WriteCounts:
        slices, flows, instants, counters, samples, logs = self._written
        return WriteCounts(slices, instants, counters, flows // 2, samples, logs)

    # -- around the events ------------------------------------------------------------------------------------

    def head(self) -> Iterator[bytes]:
        """Yield the text before the events, with those that name processes and threads."""
        about: dict[str, Any] = recording_metadata(self._trace)
        members: dict[str, Any] = {"displayTimeUnit": "ns"}
        if self._trace.clocks and self._trace.clocks[0].zero is Zero.UNIX_EPOCH:
            members["baseTimeNanoseconds"] = self._origin.ns
        else:
            about["origin_ns"] = self._origin.ns
        members["metadata"] = {"traceconv": about, **self._trace.metadata}
        texts = [json_text(key) + b":" + json_text(value) for key, value in members.items()]
        for text in (b"{" + b",\n".join(texts), *self._stack_frames()):
            # Perfetto refuses a raw DEL outside of events, and does not decode its escape inside of them.
            yield text.replace(b"\x7f", b"\\u007f")
        yield b',\n"traceEvents":[\n'
        naming, comma = self._naming(), b""
        while lines := b",\n".join(islice(naming, _BLOCK)):
            yield comma + lines
            comma = b",\n"

    def _stack_frames(self) -> Iterator[bytes]:
        """Yield the text of the member with the stack frames, in parts; nothing without frames."""
        before, size = b',\n"stackFrames":{', 0
        part: dict[str, dict[str, str]] = {}
        for index, frame in enumerate(self._trace.frames):
            members = part[str(index)] = {"name": frame.name, "category": frame.category}
            if frame.parent >= 0:
                members["parent"] = str(frame.parent)
            size += len(frame.name) + len(frame.category)
            if len(part) == _BLOCK or size > _PART_BYTES or index == len(self._trace.frames) - 1:
                yield before + json_text(part)[1:-1]
                before, size, part = b",", 0, {}
        if self._trace.frames:
            yield b"}"

    def _naming(self) -> Iterator[bytes]:
        """Yield the metadata events."""
        is_used = self._tracks_with_lines()
        is_named = self._kind == TrackKind.PROCESS
        is_named[self._ids.process[is_used]] = is_named[self._ids.process[list(self._counter_heads)]] = True
        is_named &= self._ids.process == np.arange(len(self._ids))
        for index in np.flatnonzero(is_named | is_used).tolist():
            if is_named[index]:
                yield from self._process_naming(index)
            if is_used[index]:
                yield from self._thread_naming(index)

    def _process_naming(self, index: int) -> Iterator[bytes]:
        ids, track = self._ids, self._trace.tracks.special_of(index)
        pid, title = self._numbers[0][index], ids.title(index)
        labels = [*ids.groups_above(index), *(track.labels if track else ())]
        if title:
            yield _naming(b"process_name", pid, 0, b"name", title)
        if labels:
            yield _naming(b"process_labels", pid, 0, b"labels", ", ".join(labels))
        yield _sort_index(b"process_sort_index", pid, 0, int(ids.position[index]))

    def _thread_naming(self, index: int) -> Iterator[bytes]:
        (pids, tids, positions), ids = self._numbers, self._ids
        pid, tid = pids[index], tids[index]
        plain = self._kind[index] == TrackKind.THREAD and self._parent[index] == ids.process[index]
        if name := ids.title(index) if plain else ids.path_below_process(index):
            yield _naming(b"thread_name", pid, tid, b"name", name)
        yield _sort_index(b"thread_sort_index", pid, tid, positions[index])

    def _tracks_with_lines(self) -> npt.NDArray[np.bool_]:
        """Return which tracks are written as threads."""
        trace = self._trace
        is_used = np.zeros(len(trace.tracks), bool)
        is_used[occurring(trace.instants.track)] = True
        is_used &= self._kind != TrackKind.PROCESS
        is_used |= (self._kind == TrackKind.THREAD) & (trace.tracks.column("lane_of") == NO_TRACK)
        for table in (trace.slices, trace.samples, trace.logs):
            is_used[occurring(table.track)] = True
        return is_used

    def _heads_of_counters(self) -> dict[int, tuple[bytes, bytes]]:
        """Return for each counter track the text before the time, and before the value."""
        heads: dict[int, tuple[bytes, bytes]] = {}
        seen: dict[tuple[int, str], int] = defaultdict(int)
        for index in np.flatnonzero(self._kind == TrackKind.COUNTER).tolist():
            track = self._trace.tracks[index]
            pid, name = int(self._ids.pid[index]), self._ids.path_below_process(index)
            seen[pid, name] += 1
            if seen[pid, name] > 1:  # viewers join counters of equal name in a process
                name = f"{name} ({seen[pid, name]})"
            head = b'{"ph":"C","name":' + json_text(name) + b',"pid":%d,"tid":0' % pid + b',"ts":'
            heads[index] = head, b',"args":{' + json_text(track.unit or "value") + b":"
        return heads

    def lines(self) -> Iterator[bytes | memoryview]:
        """Yield the events in order of time, in blocks."""
        module, plain = kernel.module("json_rows"), None
        if module is not None:
            parts = self._trace, self._ids, self._counter_heads, self._flow_ends, self._origin
            plain = PlainLines(module, *parts)
        for ts, table, row in self._parts():
            events = self._origin.since(ts), table, row
            for number, count in enumerate(np.bincount(table, minlength=len(self._written)).tolist()):
                self._written[number] += count
            if plain is None:
                yield b"".join(self._texts(*events))
            else:
                yield from self._mixed(plain, *events)
            self._trace.forget()

    def _mixed(self, plain: PlainLines, ts: I64, table: U8, row: I64) -> Iterator[bytes | memoryview]:
        """Yield the lines of a block: plain ones from the kernel, with the others between them."""
        lines, ends = plain.block(ts, table, row)
        others = np.flatnonzero(ends < 0)
        at = 0
        if len(others):
            texts = self._texts(ts[others], table[others], row[others])
            for end, text in zip((-1 - ends[others]).tolist(), texts, strict=True):
                if end > at:
                    yield lines[at:end]
                at = end
                yield text
        yield lines[at:]

    def _texts(self, ts: I64, table: U8, row: I64) -> list[bytes]:
        """Return the lines of events, each behind a comma and a line break; the specification of the kernel."""
        makers = (self._slices, self._flows, self._instants, self._counters, self._samples, self._logs)
        times = [_micros(ns) for ns in ts.tolist()]
        lines = [b""] * len(times)
        for number, make in enumerate(makers):
            places = np.flatnonzero(table == number)
            at = places.tolist()
            if at:
                for i, line in zip(at, make(row[places], [times[i] for i in at]), strict=True):
                    lines[i] = b",\n" + line
        return lines

    def _parts(self) -> Iterator[tuple[I64, U8, I64]]:
        """Yield what `_order` does, in smaller chunks where texts or args are long."""
        trace = self._trace
        named = ((SLICE, trace.slices), (FLOW, trace.flows), (INSTANT, trace.instants))
        texts = {number: [table.name, table.category] for number, table in named}
        texts |= {SAMPLE: [trace.samples.name], LOG: [trace.logs.text, trace.logs.source]}
        args = {SLICE: trace.slices.args_len, INSTANT: trace.instants.args_len, LOG: trace.logs.args_len}
        length = np.fromiter(map(len, trace.strings), np.int64, len(trace.strings))
        longest = 2 * int(np.max(length)) + max(int(np.max(sizes, initial=0)) for sizes in args.values())
        if longest * _BLOCK <= _PART_BYTES:
            yield from self._order()
            return
        for ts, table, row in self._order():
            size = np.zeros(len(ts), np.int64)
            for number, columns in texts.items():
                at = np.flatnonzero(table == number)
                rows = row[at] // 2 if number == FLOW else row[at]
                for column in columns:
                    size[at] += length[column[rows]]
                if number in args:
                    size[at] += args[number][rows]
            part = (np.cumsum(size) - size) // _PART_BYTES
            bounds = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), len(ts)]
            for first, end in pairwise(bounds):
                yield ts[first:end], table[first:end], row[first:end]

    def _order(self) -> Iterator[tuple[I64, U8, I64]]:
        """Yield time, table and row of all events in file order, in chunks; ends of flows follow their slices."""
        trace, ends = self._trace, self._flow_ends
        by_slice = np.argsort(ends.slice, kind="stable")
        points: dict[int, Any] = {
            INSTANT: trace.instants,
            COUNTER: trace.counters,
            SAMPLE: trace.samples,
            LOG: trace.logs,
        }
        windows = Windows(
            [(trace.slices.ts, None), (ends.ts[by_slice], None), *((table.ts, None) for table in points.values())]
        )
        trace.forget()
        for window in range(windows.count):
            slices, steps = windows.rows(0, window), by_slice[windows.rows(1, window)]
            behind = np.searchsorted(slices, ends.slice[steps], "right")
            times = [np.insert(trace.slices.ts[slices], behind, ends.ts[steps])]
            tables = [np.insert(np.full(len(slices), SLICE, np.uint8), behind, FLOW)]
            rows = [np.insert(slices, behind, steps)]
            for column, (number, table) in enumerate(points.items(), 2):
                rows_of_window = windows.rows(column, window)
                times.append(table.ts[rows_of_window])
                tables.append(np.full(len(rows_of_window), number, np.uint8))
                rows.append(rows_of_window)
            ts, number_of_table, row = np.concatenate(times), np.concatenate(tables), np.concatenate(rows)
            order = np.argsort(ts, kind="stable")
            for start in range(0, len(order), _BLOCK):
                chunk = order[start : start + _BLOCK]
                yield ts[chunk], number_of_table[chunk], row[chunk]

    def _slices(self, rows: I64, times: list[bytes]) -> list[bytes]:
        table: Slices = take(self._trace.slices, rows)
        durations = self._origin.durations(self._trace.slices, rows)
        lines = []
        for time, dur, head, args in zip(
            times, durations.tolist(), self._heads(b"X", table), self._args(table), strict=True
        ):
            lines.append(b"".join((head, time, b',"dur":', _micros(dur), args)))
        return lines

    def _instants(self, rows: I64, times: list[bytes]) -> list[bytes]:
        table: Instants = take(self._trace.instants, rows)
        on_process = self._kind[table.track] == TrackKind.PROCESS
        scopes = [b',"s":"p"' if is_process else b',"s":"t"' for is_process in on_process.tolist()]
        columns = zip(times, scopes, self._heads(b"i", table), self._args(table), strict=True)
        return [b"".join((head, time, scope, args)) for time, scope, head, args in columns]

    def _heads(self, phase: bytes, table: Slices | Instants) -> Iterator[bytes]:
        head = self._head
        for texts in zip(table.track.tolist(), table.name.tolist(), table.category.tolist(), strict=True):
            yield head(phase, *texts)

    def _new_head(self, phase: bytes, track: int, name: int, category: int) -> bytes:
        texts = self._trace.strings
        cat = b',"cat":' + json_text(texts[category]) if category else b""
        return b'{"ph":"%s","name":%s%s%s,"ts":' % (phase, json_text(texts[name]), cat, task_text(self._ids, track))

    def _args(self, table: Slices | Instants) -> Iterator[bytes]:
        get = self._trace.args.get
        for at, size in zip(table.args_at.tolist(), table.args_len.tolist(), strict=True):
            yield b',"args":' + _spliced(get(at, size)) + b"}" if size else b"}"

    def _counters(self, rows: I64, times: list[bytes]) -> list[bytes]:
        table = take(self._trace.counters, rows)
        columns = (table.track, table.value, table.integer, table.is_integer)
        lines = []
        for time, track, value, integer, exact in zip(times, *(column.tolist() for column in columns), strict=True):
            head, key = self._counter_heads[track]
            lines.append(head + time + key + repr(integer if exact else value).encode() + b"}}")
        return lines

    def _flows(self, rows: I64, times: list[bytes]) -> list[bytes]:
        trace, flows, track = self._trace, self._trace.flows, self._trace.slices.track
        lines = []
        for time, row in zip(times, rows.tolist(), strict=True):
            flow, is_end = divmod(row, 2)
            name = trace.strings[flows.name[flow]] or "flow"
            category = trace.strings[flows.category[flow]] or "flow"
            task = task_text(self._ids, track[self._flow_ends.slice[row]])
            head = b'{"ph":"f","bp":"e","id":%d' if is_end else b'{"ph":"s","id":%d'
            text = b',"name":' + json_text(name) + b',"cat":' + json_text(category)
            lines.append(head % (flow + 1) + text + task + b',"ts":' + time + b"}")
        return lines

    def _logs(self, rows: I64, times: list[bytes]) -> list[bytes]:
        """Return log entries as lines of instants, with level and source in the args."""
        table = take(self._trace.logs, rows)
        texts, get = self._trace.strings, self._trace.args.get
        columns = (table.track, table.level, table.text, table.source, table.args_at, table.args_len)
        lines = []
        for time, track, level, text, source, at, size in zip(
            times, *(column.tolist() for column in columns), strict=True
        ):
            about = {"level": Level(level).name.lower()} | ({"source": texts[source]} if texts[source] else {})
            more = _spliced(get(at, size))[1:] if size > 2 else b"}"
            head = b'{"ph":"i","name":' + json_text(texts[text]) + b',"cat":"log"' + task_text(self._ids, track)
            comma = b"," if size > 2 else b""
            lines.append(head + b',"ts":' + time + b',"s":"t","args":' + json_text(about)[:-1] + comma + more + b"}")
        return lines

    def _samples(self, rows: I64, times: list[bytes]) -> list[bytes]:
        table = take(self._trace.samples, rows)
        columns = (table.track, table.stack, table.name, table.weight, table.cpu)
        lines = []
        for time, track, stack, name, weight, cpu in zip(times, *(column.tolist() for column in columns), strict=True):
            head = (
                b'{"ph":"P","name":' + json_text(self._trace.strings[name] or "samples") + task_text(self._ids, track)
            )
            frame = b',"sf":"%d"' % stack if stack >= 0 else b""
            where = b',"cpu":%d' % cpu if cpu != NO_CPU else b""
            lines.append(head + b',"ts":' + time + frame + where + b',"weight":%d}' % weight)
        return lines


def _micros(ns: int) -> bytes:
    """Return a time (ns) in microseconds, with as many decimals as needed."""
    if ns < 0:
        return format_us(ns).encode()
    whole, rest = divmod(ns, 1000)
    return b"%d%s" % (whole, _FRACTIONS[rest])


def _naming(name: bytes, pid: int, tid: int, key: bytes, text: str) -> bytes:
    return b'{"ph":"M","name":"%b","pid":%d,"tid":%d,"args":{"%b":%b}}' % (name, pid, tid, key, json_text(text))


def _sort_index(name: bytes, pid: int, tid: int, position: int) -> bytes:
    return b'{"ph":"M","name":"%b","pid":%d,"tid":%d,"args":{"sort_index":%d}}' % (name, pid, tid, position)


def _spliced(args: bytes) -> bytes:
    """Return args on one line, in UTF-8, without unnecessary escapes, which Perfetto does not decode."""
    args = args.strip()
    if b"\n" in args or b"\r" in args:
        args = _LINE_BREAK.sub(b"", args)
    if b"\\u" in args:
        args = _ESCAPES.sub(_unescaped, args)
    if _HUGE_NUMBER.search(args):
        args = json_text(read_json(args))
    args = args if args.isascii() else args.decode("utf-8", "replace").encode()
    return loadable(args)


def _unescaped(match: re.Match[bytes]) -> bytes:
    text = match[0]
    if text == b"\\\\":
        return text
    units = bytes.fromhex(text.decode().replace("\\u", "")).decode("utf-16-be", "replace")
    return _KEPT_ESCAPES.sub(lambda kept: f"\\u{ord(kept[0]):04x}", units).encode()


@dataclass(frozen=True, slots=True)
class FlowEnds:
    """Starts and ends of the flows: row 2i is where flow i starts, 2i + 1 where it ends."""

    slice: I64
    ts: I64


def flow_ends(trace: Trace) -> FlowEnds:
    """Return where the flows of a trace start and end."""
    flows, slices = trace.flows, trace.slices
    starts = slices.ts
    origin, target = flows.from_slice, flows.to_slice
    backward = (starts[target] < starts[origin]) | ((starts[target] == starts[origin]) & (target < origin))
    rows = np.empty(2 * len(origin), np.int64)
    rows[0::2], rows[1::2] = np.where(backward, target, origin), np.where(backward, origin, target)
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
    """Return JSON text without an escaped backslash before a closing quote, which Perfetto v52 reads as escaped."""
    return _FINAL_BACKSLASH.sub(rb'\1\\u005c"', text) if b'\\\\"' in text else text


def task_text(ids: Identities, track: int) -> bytes:
    """Return the keys of the process and thread of a track."""
    return b',"pid":%d,"tid":%d' % (ids.pid[track], ids.tid[track])


class Origin:
    """The time (ns) that the times of a file count from: the first of the trace, on a whole microsecond.

    Readers of the format take times as doubles. Those far from the origin are whole microseconds, which doubles hold:
    otherwise, starts are rounded and durations are not, and viewers drop slices that overlap by it.
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

    `counters` are, for each counter track, the text before the time and the text before the value.
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
        """Return the plain lines, in a reused buffer, and the end of each; for another one -1 minus its place."""
        columns = _Columns(np.ascontiguousarray(ts), self._kernel.OTHER)
        for number, fill in enumerate((self._slices, self._flows, self._instants, self._counters)):
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

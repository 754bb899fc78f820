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
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any, BinaryIO, ClassVar

import numpy as np
import numpy.typing as npt

from traceconv import kernel
from traceconv.families.chrome._lines import (
    COUNTER,
    FLOW,
    INSTANT,
    LOG,
    SAMPLE,
    SLICE,
    Origin,
    PlainLines,
    flow_ends,
    json_text,
    loadable,
    task_text,
)
from traceconv.io.outline import outline
from traceconv.io.source import HEAD_BYTES, Source
from traceconv.model.clocks import Zero
from traceconv.model.json_values import number_or_text
from traceconv.model.ordering import occurring
from traceconv.model.times import format_us
from traceconv.model.trace import I64, NO_CPU, NO_TRACK, Instants, Level, Slices, Trace, TrackKind, take
from traceconv.writers import WriteCounts
from traceconv.writers.ids import Identities, tree_order
from traceconv.writers.metadata import recording_metadata
from traceconv.writers.order import Windows
from traceconv.writers.sink import sink_of

U8 = npt.NDArray[np.uint8]

_BLOCK = 16 * 1024
#: The importer leaves out a larger value, too.
_LARGEST_METADATA = 16 << 20
_MAX_CHUNKS, _MAX_CHUNK_BYTES = 1 << 16, 64 << 20
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
    """Writes JSON for chrome://tracing and other readers of the format.

    Attributes:
        compress: whether to wrap the file into gzip.
    """

    compress: bool = False

    name: ClassVar[str] = "chrome-json"
    suffixes: ClassVar[tuple[str, ...]] = (".json", ".json.gz")
    binary: ClassVar[bool] = False

    def notes(self, trace: Trace) -> list[str]:
        """Return notes on samples, which Perfetto skips, and on times that doubles do not hold."""
        samples = len(trace.samples.ts)
        unseen = f"{samples} call stack samples are in the JSON, but Perfetto does not show them: write a .pftrace"
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
        own = metadata.get("traceconv") if isinstance(metadata, dict) else None
        return own.get("sources") if isinstance(own, dict) else None

    def write(self, trace: Trace, sink: BinaryIO) -> WriteCounts:
        """Write the whole trace."""
        with sink_of(trace, sink, self.compress, "a .pftrace holds each name once; ") as out:
            writing = _Writing(trace)
            for text in writing.head():
                out.write(text)
            for lines in writing.lines():
                out.write(lines)
            out.write(writing.tail())
        return writing.counts()


class _Writing:
    """The state of writing one file."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._ids, self._kind = Identities(trace), trace.tracks.column("kind")
        self._origin = Origin(trace)
        self._chunks: dict[tuple[int, int, int, int], bytes] = {}
        self._chunk_bytes = 0
        self._parent = trace.tracks.column("parent")
        self._numbers = self._ids.pid.data, self._ids.tid.data, tree_order(self._ids).data
        self._counter_heads = self._heads_of_counters()
        self._flow_ends = flow_ends(trace)
        self._written = [0] * 6

    def counts(self) -> WriteCounts:
        written = self._written
        return WriteCounts(
            slices=written[SLICE],
            instants=written[INSTANT],
            counters=written[COUNTER],
            flows=written[FLOW] // 2,
            samples=written[SAMPLE],
            logs=written[LOG],
        )

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

    def tail(self) -> bytes:
        return b"\n]}\n"

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

    # -- the events -------------------------------------------------------------------------------------------

    def lines(self) -> Iterator[bytes | memoryview]:
        """Yield the events in order of time, in blocks."""
        module = kernel.module("json_rows")
        plain = (
            PlainLines(module, self._trace, self._ids, self._counter_heads, self._flow_ends, self._origin)
            if module is not None
            else None
        )
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
        """Return the lines of events, each with a comma and a line break before it."""
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
        """Yield time, table and row of all events in file order, in chunks that fit into a cache.

        The start and the end of a flow come after the slice that they belong to.
        """
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
        chunks = self._chunks
        for key in zip(table.track.tolist(), table.name.tolist(), table.category.tolist(), strict=True):
            chunk = chunks.get((phase[0], *key))
            if chunk is None:
                if len(chunks) >= _MAX_CHUNKS or self._chunk_bytes > _MAX_CHUNK_BYTES:
                    chunks.clear()
                    self._chunk_bytes = 0
                chunk = chunks[(phase[0], *key)] = self._head(phase, *key)
                self._chunk_bytes += len(chunk)
            yield chunk

    def _head(self, phase: bytes, track: int, name: int, category: int) -> bytes:
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
    """Return args on one line, in valid UTF-8, without unnecessary escapes.

    Perfetto shows escapes in args undecoded, and refuses surrogate pairs in names.
    """
    args = args.strip()
    if b"\n" in args or b"\r" in args:
        args = _LINE_BREAK.sub(b"", args)
    if b"\\u" in args:
        args = _ESCAPES.sub(_unescaped, args)
    if _HUGE_NUMBER.search(args):
        args = json_text(json.loads(args, parse_float=number_or_text, parse_int=number_or_text))
    args = args if args.isascii() else args.decode("utf-8", "replace").encode()
    return loadable(args)


def _unescaped(match: re.Match[bytes]) -> bytes:
    text = match[0]
    if text == b"\\\\":
        return text
    units = bytes.fromhex(text.decode().replace("\\u", "")).decode("utf-16-be", "replace")
    return _KEPT_ESCAPES.sub(lambda kept: f"\\u{ord(kept[0]):04x}", units).encode()

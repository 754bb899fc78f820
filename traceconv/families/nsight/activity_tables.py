"""Tables of Nsight Systems with times: device work, memory, samples, thread states, counters; rows as slices.

A row has times, columns that select the track, columns that describe the event, and columns that differ in each row.
Tracks and descriptions are created once for each combination of values.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec
import numpy as np

from traceconv.families.common import cupti as _cupti
from traceconv.families.common import sqlite_tables
from traceconv.families.common.sqlite_tables import IDS_END, Known, Launches, Row, Spans, whole
from traceconv.families.nsight import exported
from traceconv.families.nsight.exported import Export, Tracks
from traceconv.model.builder import Builder
from traceconv.model.columns import I64
from traceconv.model.diagnostics import absent, lost, repaired
from traceconv.model.trace import NO_CPU, StackId
from traceconv.model.track_table import TrackId

NO_TIME = lost(
    "nsys.no_time",
    "a row has no start, or one that is not a whole number: it cannot be placed and was left out",
)
OPEN_END = absent(
    "nsys.open_end",
    "a row has a start and no end: the slice was closed at the last instant of the trace and is marked `unfinished`",
)

#: What begins the names of the tables with records of CUPTI.
_OF_CUPTI = ("CUPTI_", "CUDA_")
#: Of rows without a process; no global id is the smallest number.
_NO_PROCESS = -(2**63)
_encode = msgspec.json.Encoder(enc_hook=str).encode


class Described(NamedTuple):
    """The name, category and args of an event."""

    name: str
    category: str
    args: dict[str, Any]


class Shape(NamedTuple):
    """The mapping of a table to slices."""

    table: str  # its name
    place: tuple[str, ...]  # the columns that choose the track; the first is a global id
    described: tuple[str, ...]  # the columns that describe the event
    #: columns of whole numbers that differ from row to row, and their names in the args; if one of them is
    #: "correlationId" it is the first
    varying: tuple[tuple[str, str], ...]
    track: Callable[..., TrackId]  # the track for the values of `place`
    describe: Callable[[dict[str, Any]], Described]  # the event for the values of `described`, by column
    role: str = ""  # "call" and "work" are joined by correlationId, "" is not
    copies: bool = False  # whether the throughput is shown; then "bytes" is the last of `varying`


class Slices:
    """Writes the rows of a table as slices.

    Exports of before 2021 have no NULL: an end of 0 behind a later start is none. CUPTI writes its records when they
    have ended, so an end of 0 there was never set.
    """

    def __init__(self, shape: Shape, timeline: Timeline) -> None:
        self.shape = shape
        self._timeline = timeline
        self._out = timeline.out
        self._is_ended = shape.table.startswith(_OF_CUPTI)
        self._varying_at = 2 + len(shape.place) + len(shape.described)
        self._kinds = Known(self._kind)
        numbers = b",".join(b'"%b":%%d' % name.encode() for _, name in shape.varying)
        self._form = b"%b" + numbers + b"}"

    def _kind(self, key: Row) -> sqlite_tables.Described:
        """Return the description of rows with that key: the columns of the track, then those of the event."""
        place, described = key[: len(self.shape.place)], key[len(self.shape.place) :]
        event = self.shape.describe(dict(zip(self.shape.described, described, strict=True)))
        comma = b"," if event.args and self.shape.varying else b""
        args = _encode(event.args)[:-1] + comma
        name, category = self._out.tables.string(event.name), self._out.tables.string(event.category)
        process = self._timeline.process_of_work if key[0] is None else key[0]
        known = exported.process_of(process) if isinstance(process, int) else _NO_PROCESS
        return sqlite_tables.Described(self.shape.track(*place), name, category, args, known)

    def read(self, export: Export, start: str = "start", end: str = "end") -> None:
        """Read all rows of the table; they are instants if no column of ends is named."""
        table, columns = self.shape.table, (*self.shape.place, *self.shape.described)
        if end:
            varying = (column for column, _ in self.shape.varying)
            for first, rows in export.portions(table, (start, end, *columns, *varying)):
                self.add(range(first, first + len(rows)), rows)
            return
        placed_to = 1 + len(self.shape.place)
        for number, row in export.counted(table, (start, *columns)):
            if type(row[0]) is not int:
                self._out.skip(NO_TIME, f"{table} row {number}", f"{start} {row[0]!r:.40}")
                continue
            event = self.shape.describe(dict(zip(self.shape.described, row[placed_to:], strict=True)))
            track = self.shape.track(*row[1:placed_to])
            self._out.instant(track, row[0], event.name, event.category, event.args, number)
            self._out.balance.written += 1

    def add(self, numbers: Sequence[int], rows: Sequence[Row]) -> None:
        self._out.balance.read += len(rows)
        starts, ends = whole([row[0] for row in rows]), whole([row[1] for row in rows])
        if starts is None or ends is None or not (self._is_ended or ends.all()):
            numbers, rows = self._placed(numbers, rows)
            starts, ends = (np.array([row[at] for row in rows], np.int64) for at in (0, 1))
        self.write(Spans(rows, numbers, starts, ends - starts))

    def _placed(self, numbers: Sequence[int], rows: Sequence[Row]) -> tuple[list[int], list[Row]]:
        """Return the rows with start and end, and their numbers; the others are skipped, or closed later."""
        kept_numbers, kept = [], []
        for number, row in zip(numbers, rows, strict=True):
            start, end = row[0], row[1]
            if type(start) is int and start > 0 and end == 0 and not self._is_ended:
                end = None
            if type(start) is not int or not (end is None or type(end) is int):
                place = f"{self.shape.table} row {number}"
                self._out.skip(NO_TIME, place, f"start {start!r:.40}, end {end!r:.40}")
            elif end is None:
                self._timeline.open.append((self, number, row))
            else:
                kept_numbers.append(number)
                kept.append(row)
        return kept_numbers, kept

    def write(self, spans: Spans, more: bytes = b"") -> None:
        """Write rows with times; `more` is appended to their args."""
        if not spans.rows:
            return
        keys = [row[2 : self._varying_at] for row in spans.rows]
        kinds = self._kinds.entries(keys, keys)
        slices, processes = spans.add_to(self._out, kinds, self._args(spans, kinds, more))
        if self.shape.role:
            ids = [row[self._varying_at] for row in spans.rows]
            self._timeline.link(self.shape.role, processes, ids, slices)

    def _args(self, spans: Spans, kinds: Sequence[sqlite_tables.Described], more: bytes) -> list[bytes]:
        at, form = self._varying_at, self._form
        pairs = list(zip(kinds, spans.rows, strict=True))
        is_plain = not (more or self.shape.copies)
        if is_plain and not self.shape.varying:
            return [form % kind.args if len(kind.args) > 1 else b"" for kind in kinds]
        if is_plain and all(row[at] for row in spans.rows):
            try:
                return [form % (kind.args, *row[at:]) for kind, row in pairs]
            except TypeError:  # one of the numbers is none
                pass
        lengths = map(int, spans.dur)
        return [self._args_of(kind.args, row, dur, more) for (kind, row), dur in zip(pairs, lengths, strict=True)]

    def _args_of(self, head: bytes, row: Row, dur: int, more: bytes) -> bytes:
        """Return the args of one row; nothing for an empty object."""
        members = []
        for value, (column, name) in zip(row[self._varying_at :], self.shape.varying, strict=True):
            if type(value) is int and (value or column != "correlationId"):
                members.append(b'"%b":%d' % (name.encode(), value))
        rate = _cupti.throughput_gb_per_s(row[-1], dur) if self.shape.copies and type(row[-1]) is int else None
        if rate is not None:
            members.append(b'"%b":%a' % (_cupti.THROUGHPUT.encode(), rate))
        members += [more] if more else []
        inside = b",".join([head[1:].removesuffix(b",")] * (len(head) > 1) + members)
        return b"{" + inside + b"}" if inside else b""


class Timeline:
    """The state shared by the slices of all tables: open slices, and launches."""

    def __init__(self, out: Builder) -> None:
        self.out = out
        self.open: list[tuple[Slices, int, Row]] = []
        #: The process of works whose rows do not say it.
        self.process_of_work: int | None = None
        self._launches = Launches()

    def link(self, role: str, processes: I64, ids: Sequence[int | None], slices: I64) -> None:
        """Register slices as calls or work, to be linked."""
        correlations = whole(ids)
        numbers = np.array([number or 0 for number in ids], np.int64) if correlations is None else correlations
        joinable = (processes != _NO_PROCESS) & (numbers > 0) & (numbers < IDS_END)
        add = self._launches.add_calls if role == "call" else self._launches.add_work
        add(processes[joinable], numbers[joinable], slices[joinable])

    def close(self) -> None:
        """Write the slices without an end, up to the last time of the recording."""
        last = max([self.out.tables.last_ts(), *(row[0] for _, _, row in self.open)], default=0)
        for slices, number, row in self.open:
            self.out.problem(OPEN_END, f"{slices.shape.table} row {number}")
            slices.write(Spans([row], [number], [row[0]], [last - row[0]]), b'"unfinished":true')
        self.open.clear()

    def join(self) -> None:
        """Add flows from calls to the work that they launched."""
        calls, works, _, _ = self._launches.pairs()
        name, category = self.out.tables.string("launch"), self.out.tables.string(_cupti.LAUNCH_FLOW)
        (origins,) = self.out.tables.slice_columns("origin")
        self.out.bulk.flows(calls, works, np.full(len(calls), name), np.full(len(calls), category), origins[works])


EVENT_WITHOUT_TIME = absent(
    "nsys.cuda_event_without_time",
    "a record of a CUDA event has no time: only new versions write it, and only on request",
    quiet=True,
)
UNMATCHED_FREE = absent(
    "nsys.free_without_allocation",
    "memory was freed that had been allocated before the recording: the counter of its device does not include it",
)
SWAPPED = repaired(
    "nsys.swapped_memory_operations",
    "the export says that all memory is freed before it is allocated: the two operations were swapped",
)

#: The fewest addresses that show that two words of the export are swapped.
_ADDRESSES = 3
_KERNEL_SIZES = ("grid", "block", "cluster")
_KERNEL = exported.words(
    "demangledName shortName mangledName gridX gridY gridZ blockX blockY blockZ clusterX clusterY clusterZ "
    "registersPerThread staticSharedMemory dynamicSharedMemory sharedMemoryExecuted localMemoryPerThread "
    "localMemoryTotal launchType cacheConfig sharedMemoryLimitConfig graphId graphNodeId"
)
_COPY = exported.words(
    "copyKind srcKind dstKind srcDeviceId srcContextId dstDeviceId dstContextId migrationCause graphNodeId copyCount"
)
_STREAM = ("globalPid", "deviceId", "contextId", "greenContextId", "streamId")
CORRELATION = ("correlationId", "correlation")
_UNIFIED_HELP = "Transfers and page faults of unified (managed) memory."


class DeviceWork:
    def __init__(self, export: Export, out: Builder, tracks: Tracks, timeline: Timeline) -> None:
        self._export = export
        self._out = out
        self._tracks = tracks
        self._timeline = timeline

    def read(self) -> None:
        for shape in self._work():
            self._device_table(shape._replace(table=f"CUPTI_ACTIVITY_KIND_{shape.table}", role="work"))
        self._device_table(
            Shape(
                "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
                ("globalPid", "deviceId", "contextId"),
                ("syncType", "deprecatedSyncType", "streamId", "eventId", "eventSyncId"),
                (CORRELATION,),
                lambda *key: self._tracks.part_of(self._tracks.context(*key), "Synchronization"),
                self._synchronization,
            )
        )
        self._page_faults()
        self._cuda_events()

    def _work(self) -> list[Shape]:
        """Return the shapes of the tables of work on streams, named without their common prefix."""
        stream, plain = self._tracks.stream, self._plain
        sized = (CORRELATION, ("bytes", "bytes"))
        memset = partial(plain, "Memset", _cupti.MEMSET)
        graph = partial(plain, "CUDA graph", "cuda_graph")
        unpack = partial(plain, "Memory decompression", _cupti.MEMCPY)
        host = partial(plain, "Host function", "cuda_host_callback")
        grid = (CORRELATION, ("gridId", "grid_id"))
        copied = (CORRELATION, ("virtualAddress", "virtual_address"), ("bytes", "bytes"))
        packed = (CORRELATION, ("sourceBytes", "bytes"))
        nodes = ("graphId", "graphNodeId")
        return [
            Shape("KERNEL", _STREAM, _KERNEL, grid, stream, self._kernel),
            Shape("MEMCPY", (*_STREAM, "copyKind"), _COPY, copied, self._copy_track, self._copy, copies=True),
            Shape("MEMSET", _STREAM, ("value", "memKind", "graphNodeId"), sized, stream, memset, copies=True),
            Shape("GRAPH_TRACE", _STREAM, ("graphId", "graphExecId"), (CORRELATION,), stream, graph),
            Shape("MEM_DECOMPRESS", _STREAM, ("ChannelID", "NumberOfOperations"), packed, stream, unpack),
            Shape("GRAPH_HOST_NODE_AND_HOST_LAUNCH", _STREAM, nodes, (CORRELATION,), stream, host),
        ]

    def _copy_track(self, process: Any, device: Any, *rest: Any) -> TrackId:
        *stream, kind = rest
        if isinstance(kind, int) and kind >= exported.UNIFIED_COPY_FROM:
            return self._unified(process, device)
        return self._tracks.stream(process, device, *stream)

    def _device_table(self, shape: Shape) -> None:
        if not self._export.take(shape.table):
            return
        only = self._tracks.only_process()
        track = shape.track
        shape = shape._replace(track=lambda *key: track(only if key[0] is None else key[0], *key[1:]))
        Slices(shape, self._timeline).read(self._export)

    def _kernel(self, values: dict[str, Any]) -> Described:
        text = self._export.text
        full, short, mangled = (text(values.pop(f"{kind}Name")) for kind in ("demangled", "short", "mangled"))
        name = full or short or mangled or "[kernel]"
        args: dict[str, Any] = {}
        for size in _KERNEL_SIZES:
            axes = [values.pop(size + axis) for axis in "XYZ"]
            if any(axis is not None for axis in axes) and (size != "cluster" or any(axes)):
                args[size] = axes
        args |= self._export.args("CUPTI_ACTIVITY_KIND_KERNEL", values)
        if short and short != name:
            args["short_name"] = short
        if mangled and mangled != name:
            args["mangled_name"] = mangled
        return Described(name, _cupti.KERNEL, args)

    def _copy(self, values: dict[str, Any]) -> Described:
        kind = self._export.enum("copyKind", values.pop("copyKind"))
        args = self._export.args("CUPTI_ACTIVITY_KIND_MEMCPY", values)
        return Described(f"Memcpy {'' if kind is None else kind}".strip(), _cupti.MEMCPY, args)

    def _plain(self, name: str, category: str, values: dict[str, Any]) -> Described:
        if "graphExecId" in values:
            name = f"{name} {values['graphExecId']}"
        return Described(name, category, self._export.args("", values))

    def _synchronization(self, values: dict[str, Any]) -> Described:
        kind, older, stream = values.pop("syncType"), values.pop("deprecatedSyncType"), values.pop("streamId")
        table = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
        values = {column: value for column, value in values.items() if value not in exported.NO_STREAM}
        args = self._export.args(table, values)
        if not self._export.has(table, "deprecatedSyncType"):
            kind, older = None, kind
        name = self._export.enum("syncType", kind)
        if kind is None and older is not None:  # the numbers of recordings before 2025 do not mean what the enum says
            args["sync_type"] = older
        if stream is not None and stream not in exported.NO_STREAM:
            args = {"stream": stream, **args}
        return Described(str(name or "Synchronization"), _cupti.SYNC, args)

    def _unified(self, process: Any, device: Any) -> TrackId:
        device_track = self._tracks.device(process, device)
        return self._tracks.part_of(device_track, "Unified memory", description=_UNIFIED_HELP)

    def _page_faults(self) -> None:
        self._device_table(
            Shape(
                "CUDA_UM_GPU_PAGE_FAULT_EVENTS",
                ("globalPid", "deviceId"),
                ("faultAccessType",),
                (("numberOfPageFaults", "page_faults"), ("address", "address")),
                self._unified,
                partial(self._plain, "GPU page faults", "unified_memory"),
            )
        )
        table = "CUDA_UM_CPU_PAGE_FAULT_EVENTS"
        if self._export.take(table):
            described = tuple(c for c in self._export.tables[table] if c not in ("start", "globalPid"))
            shape = Shape(
                table,
                ("globalPid",),
                described,
                (),
                lambda number: self._tracks.group("CPU page faults", number, description=_UNIFIED_HELP),
                partial(self._plain, "CPU page fault", "unified_memory"),
            )
            Slices(shape, self._timeline).read(self._export, end="")

    def _cuda_events(self) -> None:
        table, out = "CUPTI_ACTIVITY_KIND_CUDA_EVENT", self._out
        if not self._export.take(table):
            return
        columns = ("timestamp", *_STREAM, "eventId", "eventSyncId", "correlationId")
        for number, row in self._export.counted(table, columns):
            if type(row[0]) is not int or not row[0]:
                out.skip(EVENT_WITHOUT_TIME, f"{table} row {number}")
                continue
            names = ("event", "event_sync", "correlation")
            args = {name: value for name, value in zip(names, row[6:], strict=True) if value is not None}
            track = self._tracks.stream(*row[1:6])
            out.instant(track, row[0], f"CUDA event {row[6]}", "cuda_event", args, number)
            out.balance.written += 1


def read_memory(export: Export, out: Builder, tracks: Tracks) -> None:
    """Read allocations and frees, which become a counter of bytes in use for each device and kind of memory."""
    table = "CUDA_GPU_MEMORY_USAGE_EVENTS"
    export.take(table)
    columns = ("start", "globalPid", "deviceId", "address", "bytes", "memKind", "memoryOperationType")
    ranges: list[tuple[int, int, Row]] = []
    for number, row in export.counted(table, columns):
        if type(row[0]) is not int or type(row[4]) is not int:
            out.skip(NO_TIME, f"{table} row {number}", f"start {row[0]!r:.40}, bytes {row[4]!r:.40}")
        else:
            ranges.append((row[0], number, row[1:]))
    ranges.sort(key=lambda row: row[:2])
    words = {row[-1]: str(export.enum("memoryOperationType", row[-1])).lower() for _, _, row in ranges}
    frees = {number for number, word in words.items() if word.startswith(("dealloc", "free"))}
    if _freed_first(ranges, frees):
        out.problem(SWAPPED, table)
        frees = words.keys() - frees
    totals: dict[TrackId, int] = defaultdict(int)
    held: dict[tuple[Any, Any, Any], tuple[TrackId, int]] = {}
    for start, number, (process, device, address, size, kind, operation) in ranges:
        key = (process, device, address)
        if operation not in frees:
            word = str(export.enum("memKind", kind)).lower()
            track = tracks.counter(tracks.device(process, device), f"Allocated memory ({word})", "bytes")
            held[key] = (track, size)
            totals[track] += size
        elif key in held:
            track, size = held.pop(key)
            totals[track] -= size
        else:
            out.skip(UNMATCHED_FREE, f"{table} row {number}", f"address {address}")
            continue
        out.counter(track, start, totals[track], number)
        out.balance.written += 1


def _freed_first(rows: list[tuple[int, int, Row]], frees: set[Any]) -> bool:
    """Return whether each address that is both allocated and freed is freed first: then the two words are swapped."""
    first: dict[tuple[Any, Any, Any], bool] = {}
    reused: set[tuple[Any, Any, Any]] = set()
    for _, _, (process, device, address, _, _, operation) in rows:
        key, is_free = (process, device, address), operation in frees
        if first.setdefault(key, is_free) != is_free:
            reused.add(key)
    return len(reused) >= _ADDRESSES and all(first[key] for key in reused)


NO_VALUE = lost("nsys.no_value", "a row of a counter has no time or no number")
NEGATIVE = repaired(
    "nsys.negative_unsigned",
    "a value is below zero, but the export says that its metric is an unsigned integer of so many bytes: it was read "
    "as one",
)
UNPAIRED = absent(
    "nsys.unpaired_schedule",
    "a thread is scheduled out but not in, or in but not out before the end of the recording: only one "
    "side of its state is known",
)

_RUNNING = "Running"
#: Users count those with cycles only as samples; what the others are is not described.
_NOT_SAMPLED = "call stack without CPU cycles"
_NO_STACK = "[no call stack]"
_UNKNOWN = "[unknown]"


class Sampled:
    def __init__(self, export: Export, out: Builder, tracks: Tracks) -> None:
        self._export = export
        self._out = out
        self._tracks = tracks
        self._frames: dict[tuple[Any, Any, Any], StackId] = {}

    def read(self) -> None:
        self._samples()
        self._schedules()
        for table, (value, key) in exported.COUNTERS.items():
            if self._export.take(table):
                self._counters(table, value, key)

    def _samples(self) -> None:
        """Read the samples: both tables in the order of their id, so that no stack has to be kept."""
        out = self._out
        if not self._export.take("COMPOSITE_EVENTS"):
            return
        stacks = self._stacks()
        waiting = next(stacks, None)
        columns = ("id", "start", "globalTid", "cpuCycles", "cpu")
        rows = self._export.counted("COMPOSITE_EVENTS", columns, order=self._order("COMPOSITE_EVENTS", "id"))
        for number, (sample, ts, thread, cycles, cpu) in rows:
            stack: StackId | None = None
            while waiting is not None and isinstance(sample, int) and waiting[0] <= sample:
                stack = waiting[1] if waiting[0] == sample else None
                waiting = next(stacks, None)
            if type(ts) is not int:
                out.skip(NO_TIME, f"COMPOSITE_EVENTS row {number}", f"start {ts!r:.40}")
                continue
            if stack is None:
                stack = out.frame(_NO_STACK)
            name = _NOT_SAMPLED if cycles == 0 else "CPU sample"
            on_cpu = cpu if type(cpu) is int and cpu >= 0 else NO_CPU
            out.sample(self._tracks.thread(thread), ts, stack, name, 1, number, cpu=on_cpu)
            out.balance.written += 1

    def _order(self, table: str, *columns: str) -> tuple[str, ...]:
        return columns if self._export.has(table, *columns) else ()

    def _stacks(self) -> Iterator[tuple[int, StackId]]:
        """Yield the innermost frame of each stack, by id."""
        table = "SAMPLING_CALLCHAINS"
        order = ("id", "stackDepth DESC") if self._export.has(table, "id", "stackDepth") else ()
        current, parent = None, StackId(-1)
        for number, symbol, module in self._export.rows(table, ("id", "symbol", "module"), order=order):
            if not isinstance(number, int):
                continue
            if number != current:
                if current is not None:
                    yield current, parent
                current, parent = number, StackId(-1)
            parent = self._frame(symbol, module, parent)
        if current is not None:
            yield current, parent

    def _frame(self, symbol: Any, module: Any, parent: StackId) -> StackId:
        key = (symbol, module, parent)
        known = self._frames.get(key)
        if known is None:
            text = self._export.text
            known = self._frames[key] = self._out.frame(
                text(symbol) or _UNKNOWN, text(module), parent, named=bool(text(symbol))
            )
        return known

    def _schedules(self) -> None:
        """Draw slices for the time on a CPU, and for the time off it with the reason that the export states."""
        table, out = "SCHED_EVENTS", self._out
        self._export.take(table)
        columns = ("start", "cpu", "isSchedIn", "globalTid", "threadState", "threadBlock")
        last: dict[Any, tuple[int, Row]] = {}
        for number, row in self._export.counted(table, columns, order=self._order(table, "start")):
            if type(row[0]) is not int:
                out.skip(NO_TIME, f"{table} row {number}", f"start {row[0]!r:.40}")
                continue
            thread = row[3]
            before = last.get(thread)
            last[thread] = (number, row)
            if before is None:
                if not row[2]:
                    out.problem(UNPAIRED, f"{table} row {number}")
                continue
            self._state(thread, before, row)
        for row_number, row in last.values():
            self._state_to_the_end(row_number, row)

    def _state(self, thread: Any, before: tuple[int, Row], row: Row) -> None:
        number, (start, cpu, is_in, _, state, block) = before
        name = _RUNNING
        args: dict[str, Any] = {"cpu": cpu}
        if not is_in:
            name = str(self._export.enum("threadState", state)) if state is not None else "Not running"
            word = self._export.enum("threadBlock", block)
            args = {} if word is None else {"blocked_by": word}
        self._out.slice(self._states_of(thread), start, row[0] - start, name, exported.THREAD_STATE, args, number)
        self._out.balance.written += 1

    def _state_to_the_end(self, number: int, row: Row) -> None:
        """Draw the last state of a thread, of unknown duration, as an instant."""
        name = _RUNNING if row[2] else "Not running"
        self._out.instant(self._states_of(row[3]), row[0], name, exported.THREAD_STATE, {"cpu": row[1]}, number)
        self._out.balance.written += 1

    def _states_of(self, thread: Any) -> TrackId:
        return self._tracks.part_of(self._tracks.thread(thread), "state")

    def _counters(self, table: str, value: str, key: tuple[str, ...]) -> None:
        out, export = self._out, self._export
        time = "timestamp" if export.has(table, "timestamp") else "start"
        names = self._names(table)
        ranges = self._unsigned_ranges() if table == "GPU_METRICS" else {}
        tracks: dict[Row, TrackId] = {}
        for number, row in export.counted(table, (time, value, *key)):
            if type(row[0]) is not int or not isinstance(row[1], int | float):
                out.skip(NO_VALUE, f"{table} row {number}", f"{time} {row[0]!r:.40}, {value} {row[1]!r:.40}")
                continue
            metric = row[2:]
            track = tracks.get(metric)
            if track is None:
                track = tracks[metric] = self._counter(table, metric, names)
            counted = row[1]
            if counted < 0 and metric in ranges and counted + ranges[metric] >= 0:
                counted += ranges[metric]
                out.problem(NEGATIVE, f"{table} row {number}", f"{row[1]} is {counted}")
            is_there = out.counter(track, row[0], counted, number)
            out.count_values(is_there, not is_there)

    def _unsigned_ranges(self) -> dict[Row, int]:
        """Return the number of values of the metrics (type, metric) that are unsigned integers of a known size.

        GPU metrics are fields of a generic event. nsys 2025.3 exports a field of one byte as if it were signed.
        """
        columns = ("typeId", "fieldIdx", "size", "type")
        return {
            (kind, field): 1 << 8 * size
            for kind, field, size, number in self._export.rows("GENERIC_EVENT_TYPE_FIELDS", columns)
            if number == exported.UNSIGNED_FIELD and isinstance(size, int) and 0 < size <= 8
        }

    def _names(self, table: str) -> dict[Row, tuple[str, str, str]]:
        """Return name, unit and description of each metric."""
        if table in ("GPU_METRICS", "SOC_METRICS"):
            rows = self._export.rows(f"TARGET_INFO_{table}", ("typeId", "metricId", "metricName"))
            stored = exported.STORED_UNIT if table == "GPU_METRICS" else {}
            units = ((row, _unit(str(row[2]))) for row in rows)
            return {row[:2]: (str(row[2]), *stored.get(unit, (unit, ""))) for row, unit in units}
        is_net = table.startswith("NET_")
        names, key = ("NETWORK_METRICS", ("metricsListId", "metricsIdx")) if is_net else ("PERF_METRIC", ("id",))
        rows = self._export.rows(f"TARGET_INFO_{names}", (*key, "name", "unit", "description"))
        return {row[:-3]: (str(row[-3]), str(row[-2] or ""), str(row[-1] or "")) for row in rows}

    def _counter(self, table: str, key: Row, names: dict[Row, tuple[str, str, str]]) -> TrackId:
        tracks = self._tracks
        if table == "GPU_METRICS":
            gpu = key[0] & exported.GPU_OF_TYPE_MASK if isinstance(key[0], int) else key[0]
            parent = tracks.metrics_of(gpu)
        elif table == "SOC_METRICS":
            parent = tracks.group("SoC metrics")
        elif table.startswith("NET_"):
            parent = tracks.group(f"Network device {key[0]} port {key[1]}")
        else:
            component = self._component(key[0])
            parent = tracks.group(f"CPU metrics {component}".strip())
        metric = key[-1:] if table.startswith("PERF_") else key[-2:]
        name, unit, description = names.get(metric, (f"metric {key[-1]}", "", ""))
        return tracks.counter(parent, name, unit, description=description)

    def _component(self, number: Any) -> str:
        for component, name, instance in self._export.rows(
            "TARGET_INFO_COMPONENT", ("componentId", "name", "instance")
        ):
            if component == number and number is not None:
                return f"{name} {'' if instance is None else instance}".strip()
        return "" if number is None else str(number)


def _unit(name: str) -> str:
    """Return the unit in a name: SMs Active [Throughput %] -> %, GPC Clock Frequency [MHz] -> MHz."""
    inside = name.rpartition("[")[2].removesuffix("]") if name.endswith("]") else ""
    return "%" if "%" in inside else inside

"""Databases of nvprof: `nvprof -o FILE`, `--export-profile FILE`; the endings vary (.nvvp, .nvprof, .sqlite).

    StringTable(_id_, value)                                   all names; other tables refer to them by number
    CUPTI_ACTIVITY_KIND_RUNTIME(_id_, cbid, start, end, processId, threadId, correlationId, returnValue)
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL(_id_, ..., start, end, deviceId, contextId, streamId, ..., name)

Each row is a record of CUPTI, the library below the profiler (`cupti_activity.h`). Times are nanoseconds since 1970:
CUPTI converts the times of the device to the wall clock of the host while it records. Not in the file: names of events
and metrics, numbers of threads as the operating system counts them. Rows about single instructions, source lines and
modules have no time and are counted only.

Compared by table and column with public databases of nvprof (versions 11, 12, 22; docs/formats.md names them): calls,
kernels, copies, memsets, synchronization, overhead, unified memory, names, devices, contexts, streams. Not seen in one:
NVTX, events and metrics, OpenACC, OpenMP, sensors, allocations; they rest on `cupti_activity.h`.

Kernel names are stored as the compiler mangled them; they are shown as in the source, in the way of c++filt. Copies
have no name in the file; they get the one that nvprof prints.

A call and what it launched have the same correlation id, which is unique within a process. If a runtime call made a
driver call, both have it: the flow starts at the runtime call, which the program made. Events and metrics are measured
per kernel and are stored by its correlation id, without a time: they become args of the kernel.

An NVTX range is two rows of MARKER with one id: where it starts (with the name) and where it ends (without). Whether it
was pushed and popped on a thread or started and ended anywhere is not stored. It is drawn on the thread where it
started; ranges that cross there go to lanes. Colour, category and payload are in MARKER_DATA, under the same id.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import msgspec
import numpy as np

from traceconv.demangle import demangle
from traceconv.errors import MalformedInput
from traceconv.families.common import cupti as _cupti
from traceconv.families.common import torch_ranges
from traceconv.families.common.sqlite_tables import Described, Known, Launches, Row, Spans
from traceconv.families.importer import Importer, Match, Signature
from traceconv.families.nvprof.activities import (
    CONTEXT,
    DEVICE,
    GRID,
    PREFIX,
    PROCESS,
    SHAPE,
    STREAM,
    THREAD,
    Activities,
    ObjectId,
    RareTables,
    Tracks,
    correlation,
    correlations,
    metric_value,
)
from traceconv.io.shown import Counted
from traceconv.io.source import Head, Source
from traceconv.io.sqlite import open_database
from traceconv.model.args import join_args
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME, ClockDomain, Run, Zero, looks_like_unix_time
from traceconv.model.columns import I64
from traceconv.model.diagnostics import JOINED_ENDS, ROWS, absent, lost, noted, skipped
from traceconv.model.event_tables import UNBEGUN_END, UNENDED
from traceconv.model.marks import GPU_MARKS, CountMarks
from traceconv.model.source_info import Layer
from traceconv.model.track_table import TrackId

SOURCE_LEVEL = skipped(
    "nvprof.source_level",
    "rows about instructions, source lines, modules or links have no time: left out (nvvp shows them)",
)
UNKNOWN_TABLE = lost("nvprof.unknown_table", "an activity table is not known: its rows were left out")

#: Rows without any time, about the code or the machine.
_SOURCE_LEVEL = {
    *("BRANCH", "DEVICE_ATTRIBUTE", "FUNCTION", "GLOBAL_ACCESS", "INSTRUCTION_CORRELATION", "INSTRUCTION_EXECUTION"),
    *("MODULE", "NVLINK", "PC_SAMPLING", "PC_SAMPLING_RECORD_INFO", "PCIE", "SHARED_ACCESS", "SOURCE_LOCATOR"),
}
UNKNOWN_CALL = noted(
    "nvprof.unknown_call", "a call has a number (cbid) that is newer than the list of names: the number is shown"
)
NO_LAUNCH = absent(
    "nvprof.no_launch",
    "the correlation id of device work is in no recorded call, or in calls of several processes: no flow",
)
UNMATCHED = absent(
    "nvprof.unmatched_row",
    "a row describes a call, kernel or marker by an id that no other row has: left out",
)

_API = {
    "RUNTIME": (_cupti.RUNTIME_CALLS, _cupti.RUNTIME_API),
    "DRIVER": (_cupti.DRIVER_CALLS, _cupti.DRIVER_API),
}
_API_COLUMNS = ("processId", "threadId", "cbid", "returnValue", "correlationId")
#: The args of what has a correlation id: the id, and the rest.
ID_ARG = b'{"correlation_id":%d%b'
_encode = msgspec.json.Encoder(enc_hook=str).encode


class Extras:
    """Rows that belong to another one, kept by its id until that one is read; each is counted in the balance."""

    def __init__(self, out: Builder) -> None:
        self._out = out
        self._args: dict[int, dict[str, Any]] = {}
        self._tables: dict[int, Counter[str]] = {}

    def __bool__(self) -> bool:
        return bool(self._args)

    def add(self, number: int, table: str, args: dict[str, Any]) -> None:
        """Keep the args of a row for another one; all values of one key are kept."""
        kept = self._args.setdefault(number, {})
        for key, value in args.items():
            before = kept.get(key)
            kept[key] = value if before is None else [*before, value] if isinstance(before, list) else [before, value]
        self._tables.setdefault(number, Counter())[table] += 1

    def take(self, number: int, owner: str) -> dict[str, Any]:
        """Remove and return the args that are kept for a row."""
        args = self._args.pop(number, None)
        if args is None:
            return {}
        became = Counted(f"row that became args of {owner}", f"rows that became args of {owner}")
        self._out.balance.merged[became] += self._tables.pop(number).total()
        return args

    def report_left(self, place: str) -> None:
        """Count the rows that were not used."""
        left: Counter[str] = Counter()
        for tables in self._tables.values():
            left.update(tables)
        for table, count in left.items():
            self._out.skip(UNMATCHED, f"{place}:{table}", count=count)


class ProcessLaunches(Launches):
    """Joins device work to the calls that launched it, when all rows are read. Processes may be of any value."""

    def __init__(self, out: Builder) -> None:
        super().__init__()
        self._out = out
        self._numbers: dict[Any, int] = {}
        self._pids: dict[int, Any] = {}

    def number(self, pid: Any) -> int:
        """Return the number that stands for a process here, a new one for a new pid."""
        return self._numbers.setdefault(pid, len(self._numbers))

    def pid_of(self, number: int) -> Any:
        """Return the only process with a call of that correlation id, None if there is none or more than one.

        To be asked once all calls are there.
        """
        if not self._pids:
            pids = list(self._numbers)
            for processes, ids, _ in self._calls:
                for process, call in zip(processes.tolist(), ids.tolist(), strict=True):
                    pid = pids[process]
                    self._pids[call] = pid if self._pids.get(call, pid) == pid else None
        return self._pids.get(number)

    def draw(self, place: str) -> None:
        sources, targets, origins, missing = self.pairs()
        if missing:
            self._out.problem(NO_LAUNCH, place, count=missing)
        same = np.full(len(sources), self._out.tables.string(_cupti.LAUNCH_FLOW))
        self._out.bulk.flows(sources, targets, same, same, origins)


class Calls:
    def __init__(self, activities: Activities, tracks: Tracks, launches: ProcessLaunches, out: Builder) -> None:
        self._activities = activities
        self._tracks = tracks
        self._launches = launches
        self._out = out
        self._extras = Extras(out)
        self._unknown: set[tuple[str, Any]] = set()
        self.failed = 0

    def read(self) -> None:
        """Read all calls, with what other tables say about them."""
        self._read_cuda_events()
        self._read_external()
        for table in _API:  # of two calls with one id that of the runtime comes first, and is the launch
            self._read_table(table)
        self._extras.report_left(self._out.info.name)

    def _read_cuda_events(self) -> None:
        """Read cudaEventRecord: which event, on which stream."""
        columns = ("correlationId", "contextId", "streamId", "eventId")
        for _, number, context, stream, event in self._activities.rows("CUDA_EVENT", columns):
            args = {"event_id": event, "event_context": context, "event_stream": stream}
            self._extras.add(correlation(number), "CUDA_EVENT", args)

    def _read_external(self) -> None:
        """Read what another library (OpenACC, a framework) calls the operation that this call is part of."""
        columns = ("correlationId", "externalKind", "externalId")
        for _, number, kind, external in self._activities.rows("EXTERNAL_CORRELATION", columns):
            self._extras.add(correlation(number), "EXTERNAL_CORRELATION", {f"external_id_kind_{kind}": external})

    def _read_table(self, table: str) -> None:
        kinds = Known(partial(self._kind, table))
        for spans in self._activities.spans(table, _API_COLUMNS):
            kinds_of_rows = kinds.entries([row[3:7] for row in spans.rows], spans.rows)
            ids = correlations([row[7] for row in spans.rows])
            slices, processes = spans.add_to(self._out, kinds_of_rows, self._args(ids, kinds_of_rows))
            self._launches.add_calls(processes, ids, slices)
            self.failed += len(kinds_of_rows) - [row[6] or 0 for row in spans.rows].count(0)

    def _kind(self, table: str, row: Row) -> Described:
        pid, thread, cbid, result = row[3:7]
        names, category = _API[table]
        category_string = self._out.tables.string(category)
        name = names.get(cbid, f"{category}#{cbid!s:.20}")
        if cbid not in names and (table, cbid) not in self._unknown:
            self._unknown.add((table, cbid))
            self._out.problem(UNKNOWN_CALL, self._activities.place(table, row[0]), name)
        info = {"cbid": cbid} | ({"return_value": result} if result else {})
        args = b"," + _encode(info)[1:]
        track = self._tracks.thread(pid, thread)
        return Described(track, self._out.tables.string(name), category_string, args, self._launches.number(pid))

    def _args(self, ids: I64, kinds: list[Described]) -> list[bytes]:
        args = [ID_ARG % (number, kind.args) for number, kind in zip(ids.tolist(), kinds, strict=True)]
        if not self._extras:
            return args
        pairs = zip(args, ids.tolist(), strict=True)
        return [join_args(known, self._extras.take(number, "calls")) if number else known for known, number in pairs]


#: One of these, but for devices without concurrent kernels, holds all; the third those that kernels launched.
_KERNEL_TABLES = ("CONCURRENT_KERNEL", "KERNEL", "CDP_KERNEL")
#: After the row id and the times: where it ran, what is equal for all launches of a kernel of one shape, and the rest.
_PLACE = ("deviceId", "contextId", "streamId")
_SHAPE = ("name", "launchType", *GRID, *SHAPE)
_LAUNCH = ("correlationId", "gridId", "completed", "queued", "submitted")
#: Of kernels that kernels launched only.
_PARENT = ("parentGridId", "parentBlockX", "parentBlockY", "parentBlockZ")
_SHAPE_FROM = 3 + len(_PLACE)
_SHAPE_TO = _SHAPE_FROM + len(_SHAPE)
#: Left out where they are 0.
_RARE = frozenset(("localMemoryPerThread", "localMemoryTotal", "sharedMemoryExecuted"))

_COPY_COLUMNS = (*_PLACE, "correlationId", "copyKind", "srcKind", "dstKind", "flags", "bytes")
_PEER_COLUMNS = ("srcDeviceId", "srcContextId", "dstDeviceId", "dstContextId")
_MEMSET_COLUMNS = (*_PLACE, "correlationId", "value", "memoryKind", "flags", "bytes")
_COUNTED_COLUMNS = ("id", "value", "instance", "correlationId")
#: The args of nearly all kernels.
_USUAL = ID_ARG.replace(b"%b", b',"grid_id":%d%b')


class DeviceWork:
    def __init__(self, activities: Activities, tracks: Tracks, launches: ProcessLaunches, out: Builder) -> None:
        self._activities = activities
        self._tracks = tracks
        self._launches = launches
        self._out = out
        self._counted = Extras(out)
        self._names: dict[Any, int] = {}
        self._mangled: dict[Any, str] = {}
        self._grids: dict[Any, int] = {}
        self._grids_of: list[tuple[list[Any], I64]] = []

    def read(self) -> None:
        self._read_counted()
        for table in _KERNEL_TABLES:
            self._read_kernels(table)
        for table, more in (("MEMCPY", ()), ("MEMCPY2", _PEER_COLUMNS)):
            for spans in self._activities.spans(table, (*_COPY_COLUMNS, *more)):
                self._add(spans, _cupti.MEMCPY, self._copy_name, self._copy_args)
        for spans in self._activities.spans("MEMSET", _MEMSET_COLUMNS):
            self._add(spans, _cupti.MEMSET, lambda _: "[CUDA memset]", self._memset_args)
        self._counted.report_left(self._out.info.name)

    def _add(
        self, spans: Spans, category: str, name: Callable[[Row], str], args: Callable[[Row, int], dict[str, Any]]
    ) -> None:
        """Read copies and memsets, whose args are made one by one."""
        string, tracks = self._out.tables.string, Known(self._track)
        places = tracks.entries([row[3:6] for row in spans.rows], spans.rows)
        kinds = [
            Described(track, string(name(row)), string(category), b"", process)
            for row, (track, process) in zip(spans.rows, places, strict=True)
        ]
        ids = correlations([row[6] for row in spans.rows])
        self._put(spans, kinds, ids, [_encode(args(row, dur)) for row, _, dur in spans.each()])

    def _track(self, row: Row, number: int | None = None) -> tuple[int, int]:
        """Return the stream of a row and a number for its process: without a correlation id (0) that of no process."""
        known = self._tracks.pids
        if len(known) > 1 and number is None:
            return -1, 0  # the call that launched it tells, once its correlation id is known
        pid = known[0] if len(known) == 1 else self._launches.pid_of(number) if number else None
        return self._tracks.stream(pid, *row[3:6]), self._launches.number(pid)

    def _put(self, spans: Spans, kinds: Sequence[Described], ids: I64, args: Sequence[bytes]) -> I64:
        if len(self._tracks.pids) > 1:
            places = map(self._track, spans.rows, ids.tolist())
            kinds = [kind._replace(track=at[0], process=at[1]) for kind, at in zip(kinds, places, strict=True)]
        slices, processes = spans.add_to(self._out, kinds, args)
        self._launches.add_work(processes, ids, slices)
        return slices

    def _read_kernels(self, table: str) -> None:
        kinds = Known(partial(self._kind, table))
        parent = _PARENT if self._activities.has(table, *_PARENT[:1]) else ()
        for spans in self._activities.spans(table, (*_PLACE, *_SHAPE, *_LAUNCH, *parent)):
            rows = spans.rows
            kinds_of_rows = kinds.entries([row[3:_SHAPE_TO] for row in rows], rows)
            ids = correlations([row[_SHAPE_TO] for row in rows])
            slices = self._put(spans, kinds_of_rows, ids, self._args(rows, ids.tolist(), kinds_of_rows))
            if table == "CDP_KERNEL":
                self._join_to_parents(spans, slices)
            else:
                self._grids_of.append(([row[_SHAPE_TO + 1] for row in rows], slices))

    def _kind(self, table: str, row: Row) -> Described:
        """Return the properties that launches of a kernel of one shape share."""
        category, name = self._out.tables.string(_cupti.KERNEL), self._kernel_name(table, row)
        mangled = self._mangled.get(row[_SHAPE_FROM])
        args = _shape_args(row[_SHAPE_FROM:_SHAPE_TO]) | ({"mangled": mangled} if mangled else {})
        track, process = self._track(row)
        return Described(track, name, category, _members(args), process)

    def _args(self, rows: Sequence[Row], ids: list[int], kinds: list[Described]) -> list[bytes]:
        launches = [row[_SHAPE_TO + 1 :] for row in rows]
        made = [
            _USUAL % (number, launch[0], kind[3])
            if number and launch[0] and launch[1] == row[2] and not any(launch[2:])
            else join_args(_launch_args(row, number), b"{" + kind.args.lstrip(b","))
            for row, launch, number, kind in zip(rows, launches, ids, kinds, strict=True)
        ]
        if not self._counted:
            return made
        pairs = zip(made, ids, strict=True)
        return [join_args(args, self._counted.take(number, "kernels")) if number else args for args, number in pairs]

    def _kernel_name(self, table: str, row: Row) -> int:
        number = row[_SHAPE_FROM]
        name = self._names.get(number)
        if name is None:
            text = self._activities.text(number, self._activities.place(table, row[0])) or "kernel without a name"
            name = self._names[number] = self._out.tables.string(demangle(text))
            if demangle(text) != text:
                self._mangled[number] = text
        return name

    def _join_to_parents(self, spans: Spans, slices: I64) -> None:
        """Add flows to kernels from the kernels that launched them on the device."""
        for grids, of_grids in self._grids_of:
            self._grids.update((grid, kernel) for grid, kernel in zip(grids, of_grids.tolist(), strict=True) if grid)
        self._grids_of.clear()
        parent_at = _SHAPE_TO + len(_LAUNCH)
        pairs = [
            (self._grids[row[parent_at]], kernel, row[0])
            for row, kernel in zip(spans.rows, slices.tolist(), strict=True)
            if row[parent_at:] and row[parent_at] and row[parent_at] in self._grids
        ]
        same = [self._out.tables.string(_cupti.LAUNCH_FLOW)] * len(pairs)
        sources, targets, origins = ([pair[column] for pair in pairs] for column in range(3))
        self._out.bulk.flows(sources, targets, same, same, origins)

    def _read_counted(self) -> None:
        for table in ("EVENT", "EVENT_INSTANCE", "METRIC", "METRIC_INSTANCE"):
            word, _, per_instance = table.lower().partition("_")
            for _, number, value, instance, kernel in self._activities.rows(table, _COUNTED_COLUMNS):
                name = f"{word}_{number}_instance_{instance}" if per_instance else f"{word}_{number}"
                self._counted.add(correlation(kernel), table, {name: value if word == "event" else metric_value(value)})

    def _copy_name(self, row: Row) -> str:
        return f"[CUDA memcpy {_cupti.named(_cupti.MEMCPY_KIND, row[7])}]"

    def _copy_args(self, row: Row, dur: int) -> dict[str, Any]:
        args = _sized(row, row[11], dur)
        args["src"] = _cupti.named(_cupti.MEMORY_KIND, row[8])
        args["dst"] = _cupti.named(_cupti.MEMORY_KIND, row[9])
        args["async"] = _is_async(row[10])
        names = ("src_device", "src_context", "dst_device", "dst_context")
        args |= dict(zip(names, row[12:], strict=False))
        return args

    def _memset_args(self, row: Row, dur: int) -> dict[str, Any]:
        args = _sized(row, row[10], dur)
        args["value"] = row[7]
        if row[8] is not None:
            args["memory"] = _cupti.named(_cupti.MEMORY_KIND, row[8])
        args["async"] = _is_async(row[9])
        return args


def _sized(row: Row, size: Any, dur: int) -> dict[str, Any]:
    """Return the args of all that moves bytes."""
    args: dict[str, Any] = {"correlation_id": correlation(row[6])} if correlation(row[6]) else {}
    args["bytes"] = size
    rate = _cupti.throughput_gb_per_s(size, dur) if isinstance(size, int) else None
    return args | ({_cupti.THROUGHPUT: rate} if rate is not None else {})


def _is_async(flags: Any) -> bool:
    return isinstance(flags, int) and bool(flags & 1)


def _shape_args(shape: Row) -> dict[str, Any]:
    """Return the args that all launches of a kernel of one shape have in common; `shape` is the values of _SHAPE."""
    grid, rest = shape[2:8], shape[8:]
    args: dict[str, Any] = {}
    if any(size is not None for size in grid):
        args = {"grid": grid[:3], "block": grid[3:]}
    used = zip(SHAPE.items(), rest, strict=True)
    args |= {name: value for (column, name), value in used if value or (value == 0 and column not in _RARE)}
    if shape[1]:
        args["launch_type"] = _cupti.named(_cupti.LAUNCH_TYPE, shape[1])
    return args


def _members(args: dict[str, Any]) -> bytes:
    """Return the end of a JSON object, after its first member."""
    return b"," + _encode(args)[1:] if args else b"}"


def _launch_args(row: Row, number: int) -> dict[str, Any]:
    """Return the args of one launch: how long it waited, and its place in a tree of kernels."""
    start, end = row[1:3]
    grid, completed, queued, submitted, *parent = row[_SHAPE_TO + 1 :]
    args: dict[str, Any] = {"correlation_id": number} if number else {}
    for name, since, until in (
        ("queued_before_start_ns", queued, start),
        ("submitted_before_start_ns", submitted, start),
        ("completed_after_end_ns", end, completed),
    ):
        if isinstance(since, int) and isinstance(until, int) and 0 < since < until:
            args[name] = until - since
    if grid:
        args["grid_id"] = grid
    if parent and parent[0]:
        args |= {"parent_grid_id": parent[0], "parent_block": parent[1:]}
    return args


_INSTANT, _START, _END = 1, 2, 4
_SYNC = {8: "acquire", 16: "acquired", 32: "acquire failed", 64: "release"}
_COLOR_ARGB = 2
#: CUpti_MetricValueKind, of payloads.
_PAYLOADS = {0: "<d", 1: "<Q", 2: "<d", 3: "<Q", 4: "<q", 5: "<I"}
_MARKER_COLUMNS = ("flags", "timestamp", "id", "objectKind", "objectId", "name", "domain")
_DATA_COLUMNS = ("flags", "id", "payloadKind", "payload", "color", "category")


class _Open(NamedTuple):
    track: TrackId
    ts: int
    described: tuple[str, str, dict[str, Any]]  # name, category, args
    row: int


class Marks:
    def __init__(self, activities: Activities, tracks: Tracks, out: Builder) -> None:
        self._activities = activities
        self._tracks = tracks
        self._out = out
        self._data = Extras(out)
        self._open: dict[Any, list[_Open]] = {}

    def read(self) -> None:
        """Read all ranges and marks; those that are open at the end stay so until `close`."""
        for row, flags, number, kind, payload, color, category in self._activities.rows("MARKER_DATA", _DATA_COLUMNS):
            place = self._activities.place("MARKER_DATA", row)
            self._data.add(number, "MARKER_DATA", self._data_args(place, flags, kind, payload, color, category))
        for row, flags, ts, *rest in self._activities.moments("MARKER", "timestamp", _MARKER_COLUMNS, "timestamp"):
            self._mark(row, flags if isinstance(flags, int) else 0, ts, *rest)
        self._data.report_left(self._out.info.name)

    def _data_args(self, place: str, flags: Any, kind: Any, payload: Any, color: Any, category: Any) -> dict[str, Any]:
        args: dict[str, Any] = {}
        if category:
            args["nvtx_category"] = self._activities.text(category, place)
        if isinstance(color, int) and isinstance(flags, int) and flags & _COLOR_ARGB:
            args["color_argb"] = f"{color & 0xFFFFFFFF:08x}"
        value = _payload(kind, payload)
        if value:
            args["payload"] = value
        return args

    def _mark(self, row: int, flags: int, ts: int, number: Any, kind: Any, blob: Any, name: Any, domain: Any) -> None:
        place = self._activities.place("MARKER", row)
        if flags & _END:
            self._end(place, ts, number)
            return
        about = ObjectId.of_columns(kind, blob)
        track = self._track(about)
        args = {"domain": self._activities.text(domain, place)} if domain else {}
        args |= self._data.take(number, "ranges and marks")
        sync = [word for bit, word in _SYNC.items() if flags & bit]
        args |= {"sync": ", ".join(sync)} if sync else {}
        text, category, more = torch_ranges.described(self._activities.text(name, place))
        args |= more
        if flags & _START:
            self._open.setdefault(number, []).append(_Open(track, ts, (text, category, args), row))
        else:
            self._out.instant(track, ts, text, category, args, row)
            self._out.balance.written += 1

    def _end(self, place: str, ts: int, number: Any) -> None:
        started = self._open.get(number)
        if not started:
            self._out.skip(UNBEGUN_END, place)
            return
        mark = started.pop()
        if not started:
            del self._open[number]
        self._out.slice(mark.track, mark.ts, ts - mark.ts, *mark.described, mark.row)
        self._out.balance.written += 1
        self._out.balance.merged[JOINED_ENDS] += 1

    def close(self) -> None:
        """End all open ranges where the recording ends."""
        last = self._out.tables.last_ts()
        for started in self._open.values():
            for mark in started:
                name, category, args = mark.described
                self._out.problem(UNENDED, self._activities.place("MARKER", mark.row), repr(name))
                args |= {"unfinished": True}
                self._out.slice(mark.track, mark.ts, max(last - mark.ts, 0), name, category, args, mark.row)
                self._out.balance.written += 1

    def _track(self, about: ObjectId) -> TrackId:
        if about.kind == THREAD:
            return self._tracks.thread(about.first, about.second)
        pid = self._tracks.pids[0] if len(self._tracks.pids) == 1 else None
        if about.kind == DEVICE:
            return self._tracks.below_device(pid, about.first, "NVTX")
        if about.kind == CONTEXT:
            return self._tracks.context(pid, about.first, about.second)
        if about.kind == STREAM:
            return self._tracks.stream(pid, about.first, about.second, about.third)
        return self._tracks.below_process(about.first if about.kind == PROCESS else None, "NVTX")


def _payload(kind: Any, payload: Any) -> Any:
    """Return the number that a program gave along; None for none, which is stored as 0."""
    if not isinstance(payload, bytes) or kind not in _PAYLOADS:
        return payload if isinstance(payload, int | float) else None
    layout = struct.Struct(_PAYLOADS[kind])
    (value,) = layout.unpack(payload[: layout.size].ljust(layout.size, b"\0"))
    return value if value == value and abs(value) != float("inf") else str(value)


@dataclass(frozen=True)
class NvprofSqlite(Importer):
    name = "nvprof"
    title = "nvprof database (SQLite, also of the Visual Profiler)"
    url = "https://docs.nvidia.com/cuda/archive/12.9.1/profiler-users-guide/"
    versions = "nvprof of CUDA 5 to 12; tried: databases of 2019 to 2024"
    signature = Signature("cupti_activity_kind_")
    clock = REALTIME
    layer = Layer.DEVICE
    record = "nvprof -o run.%p.nvvp python run.py"
    skips = (SOURCE_LEVEL,)

    line_up = "Times are nanoseconds since 1970: nothing is needed."
    becomes = (
        ("kernels", "slices on their stream, below context and device, with grid, block, registers, memory as args"),
        ("copies and memsets", "slices on their stream, under the name that nvprof prints, with bytes and throughput"),
        ("runtime and driver calls", "slices on their thread"),
        ("correlation ids", "flows from the call to what it launched"),
        (
            "NVTX ranges and marks",
            "slices and instants on their thread; for operators of PyTorch (emit_nvtx), sequence number, shapes and "
            "call ids are args",
        ),
        ("synchronization, overhead, OpenACC, OpenMP", "slices"),
        ("unified memory", "slices for migrations, instants for faults, per device"),
        ("allocations", "instants and a counter of the bytes in use"),
        ("events and metrics", "args of the kernel; sampled ones and sensors are counters"),
        ("names of devices, contexts, streams, threads", "names and descriptions of tracks"),
    )
    lost = (
        "Events and metrics, whose names the file lacks, are called by their numbers: event_12, metric_34.",
        "Threads have the number that nvprof stores, not the tid.",
        "Rows about instructions, source lines and modules have no time, and are left out.",
        "Kernel names are demangled as by c++filt; nvprof prints float const *.",
        torch_ranges.LOST,
    )
    unrecorded = "nvprof runs on GPUs up to compute capability 7; none was at hand. Public databases were read, too."
    marks = msgspec.structs.replace(
        GPU_MARKS,
        counts=CountMarks((_cupti.KERNEL,), r"event_\d+"),
        waits=r"(?:event|stream|context) synchronize|stream wait event",
        environment={"device": ("nvprof", "devices", "name")},
        **torch_ranges.MARKS,
    )

    def sniff(self, head: Head) -> Match:
        """Recognise the tables: StringTable and CUPTI activities; Nsight Systems has StringIds instead."""
        if not head.tables:
            return _sniff_damaged(head)
        activities = any(table.startswith(PREFIX) for table in head.tables)
        if activities and "StringTable" in head.tables and "StringIds" not in head.tables:
            return Match.yes("tables StringTable and CUPTI_ACTIVITY_KIND_*")
        return Match.no("no tables StringTable and CUPTI_ACTIVITY_KIND_*")

    def read(self, source: Source, out: Builder) -> None:
        out.info.real_ids = True
        out.counts(ROWS)
        with open_database(source.database()) as database:
            for note in database.notes:
                out.note(note)
            activities = Activities(database, out)
            if not activities.tables:
                raise MalformedInput(
                    source.display,
                    "",
                    f"no table {PREFIX}* found, expected a database of nvprof",
                    hint=f"record one with {self.record}",
                )
            _read(activities, out)
            if activities.error is not None and not activities.has_rows:
                raise activities.error


def _sniff_damaged(head: Head) -> Match:
    """Return a match for a damaged database by the statements at its start that make nvprof's tables."""
    if head.data.startswith(b"SQLite format 3\0"):
        marks = (b"CREATE TABLE StringTable", b"CREATE TABLE CUPTI_ACTIVITY_KIND_")
        if all(mark in head.data for mark in marks):
            return Match.yes("a damaged database with the tables of nvprof")
    return Match.no("no SQLite database that can be opened")


def _read(activities: Activities, out: Builder) -> None:
    tracks = Tracks(activities, out)
    launches = ProcessLaunches(out)
    calls = Calls(activities, tracks, launches, out)
    calls.read()
    marks = Marks(activities, tracks, out)
    marks.read()
    DeviceWork(activities, tracks, launches, out).read()
    RareTables(activities, tracks, out).read()
    marks.close()
    launches.draw(out.info.name)
    for table, count in activities.unread().items():
        out.balance.read += count
        out.skip(SOURCE_LEVEL if table in _SOURCE_LEVEL else UNKNOWN_TABLE, f"{out.info.name}:{table}", count=count)
    _set_clock(out)
    _tell(activities, tracks, calls, out)


def _set_clock(out: Builder) -> None:
    """Set the wall clock, unless some tool has moved the times."""
    last = out.tables.last_ts()
    if not looks_like_unix_time(last) and last != 0:
        out.clocks.set_default(
            ClockDomain("clock of the nvprof database", Zero.UNKNOWN, Run.MONOTONIC, owner=out.info.name)
        )
        out.note(
            "the times do not count from 1970 as nvprof writes them: another tool moved them; only --offset aligns "
            "them with other files"
        )


def _tell(activities: Activities, tracks: Tracks, calls: Calls, out: Builder) -> None:
    info: dict[str, Any] = {"schema_version": activities.version, "devices": list(tracks.devices.values())}
    out.metadata["nvprof"] = {key: value for key, value in info.items() if value not in (None, [])}
    if calls.failed:
        out.note(f"calls that returned an error: {calls.failed}; see return_value in their args")
    if len(tracks.pids) > 1:
        out.note(
            f"{len(tracks.pids)} processes in one database: device work is drawn below the process whose call "
            "launched it, if only one process has such a call"
        )
    if not activities.has_rows:
        out.note("the database has no rows: nothing ran on a GPU, or the profiler was stopped before it wrote them")

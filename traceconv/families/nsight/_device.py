"""Read the tables of Nsight Systems about devices: work, synchronization, page faults, CUDA events, memory."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import Any

from traceconv.families.common import cupti as _cupti
from traceconv.families.common.sqlite_tables import Row
from traceconv.families.nsight import _schema as schema
from traceconv.families.nsight._export import Export, Tracks
from traceconv.families.nsight._slices import NO_TIME, Described, Shape, Slices, Timeline
from traceconv.model.builder import Builder
from traceconv.model.diagnostics import ProblemKind, declare
from traceconv.model.trace import TrackId

EVENT_WITHOUT_TIME = declare(
    "nsys.cuda_event_without_time",
    ProblemKind.ABSENT,
    "a record of a CUDA event has no time: only new versions write it, and only on request",
    quiet=True,
)
UNMATCHED_FREE = declare(
    "nsys.free_without_allocation",
    ProblemKind.ABSENT,
    "memory was freed that had been allocated before the recording: the counter of its device does not include it",
)
SWAPPED = declare(
    "nsys.swapped_memory_operations",
    ProblemKind.REPAIRED,
    "the export says that all memory is freed before it is allocated: the two operations were swapped",
)

#: The fewest addresses that show that two words of the export are swapped.
_ADDRESSES = 3
_KERNEL_SIZES = ("grid", "block", "cluster")
_KERNEL = schema.words(
    "demangledName shortName mangledName gridX gridY gridZ blockX blockY blockZ clusterX clusterY clusterZ "
    "registersPerThread staticSharedMemory dynamicSharedMemory sharedMemoryExecuted localMemoryPerThread "
    "localMemoryTotal launchType cacheConfig sharedMemoryLimitConfig graphId graphNodeId"
)
_COPY = schema.words(
    "copyKind srcKind dstKind srcDeviceId srcContextId dstDeviceId dstContextId migrationCause graphNodeId copyCount"
)
_STREAM = ("globalPid", "deviceId", "contextId", "greenContextId", "streamId")
CORRELATION = ("correlationId", "correlation")
_UNIFIED_HELP = "Transfers and page faults of unified (managed) memory."


class DeviceWork:
    """Reads the tables of device work."""

    def __init__(self, export: Export, out: Builder, tracks: Tracks, timeline: Timeline) -> None:
        self._export = export
        self._out = out
        self._tracks = tracks
        self._timeline = timeline
        self._drawn: set[str] = set()

    def read(self) -> set[str]:
        """Read the tables of devices; return their names."""
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
        return self._drawn

    def _take(self, table: str) -> bool:
        """Return whether the table is there; it counts as read from now on."""
        self._drawn.add(table)
        return table in self._export.tables

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
        if isinstance(kind, int) and kind >= schema.UNIFIED_COPY_FROM:
            return self._unified(process, device)
        return self._tracks.stream(process, device, *stream)

    def _device_table(self, shape: Shape) -> None:
        if not self._take(shape.table):
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
        values = {column: value for column, value in values.items() if value not in schema.NO_STREAM}
        args = self._export.args(table, values)
        if not self._export.has(table, "deprecatedSyncType"):
            kind, older = None, kind
        name = self._export.enum("syncType", kind)
        if kind is None and older is not None:  # the numbers of recordings before 2025 do not mean what the enum says
            args["sync_type"] = older
        if stream is not None and stream not in schema.NO_STREAM:
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
        if self._take(table):
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
        if not self._take(table):
            return
        columns = ("timestamp", *_STREAM, "eventId", "eventSyncId", "correlationId")
        for first, rows in self._export.portions(table, columns):
            out.balance.read += len(rows)
            for number, row in enumerate(rows, first):
                if type(row[0]) is not int or not row[0]:
                    out.skip(EVENT_WITHOUT_TIME, f"{table} row {number}")
                    continue
                names = ("event", "event_sync", "correlation")
                args = {name: value for name, value in zip(names, row[6:], strict=True) if value is not None}
                track = self._tracks.stream(*row[1:6])
                out.instant(track, row[0], f"CUDA event {row[6]}", "cuda_event", args, number)
                out.balance.written += 1


class Memory:
    """Reads allocations and frees, which become a counter of bytes in use for each device and kind of memory."""

    def __init__(self, export: Export, out: Builder, tracks: Tracks) -> None:
        self._export = export
        self._out = out
        self._tracks = tracks

    def read(self) -> set[str]:
        """Read the table, if it is there; return its name."""
        table = "CUDA_GPU_MEMORY_USAGE_EVENTS"
        columns = ("start", "globalPid", "deviceId", "address", "bytes", "memKind", "memoryOperationType")
        ranges: list[tuple[int, int, Row]] = []
        for first, rows in self._export.portions(table, columns):
            self._out.balance.read += len(rows)
            for number, row in enumerate(rows, first):
                if type(row[0]) is not int or type(row[4]) is not int:
                    self._out.skip(NO_TIME, f"{table} row {number}", f"start {row[0]!r:.40}, bytes {row[4]!r:.40}")
                else:
                    ranges.append((row[0], number, row[1:]))
        ranges.sort(key=lambda one: one[:2])
        words = {row[-1]: str(self._export.enum("memoryOperationType", row[-1])).lower() for _, _, row in ranges}
        frees = {number for number, word in words.items() if word.startswith(("dealloc", "free"))}
        if _freed_first(ranges, frees):
            self._out.problem(SWAPPED, table)
            frees = words.keys() - frees
        self._sum_up(table, ranges, frees)
        return {table}

    def _sum_up(self, table: str, rows: list[tuple[int, int, Row]], frees: set[Any]) -> None:
        out = self._out
        totals: dict[TrackId, int] = defaultdict(int)
        held: dict[tuple[Any, Any, Any], tuple[TrackId, int]] = {}
        for start, number, (process, device, address, size, kind, operation) in rows:
            key = (process, device, address)
            if operation not in frees:
                word = str(self._export.enum("memKind", kind)).lower()
                parent = self._tracks.device(process, device)
                track = self._tracks.counter(parent, f"Allocated memory ({word})", "bytes")
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
    both: set[tuple[Any, Any, Any]] = set()
    for _, _, (process, device, address, _, _, operation) in rows:
        key, is_free = (process, device, address), operation in frees
        if first.setdefault(key, is_free) != is_free:
            both.add(key)
    return len(both) >= _ADDRESSES and all(first[key] for key in both)

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

Kernel names are stored as the compiler mangled them; they are shown as in the source, in the way of c++filt.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from msgspec import structs

from traceconv.errors import MalformedInput
from traceconv.families.common import cupti as _cupti
from traceconv.families.common.sqlite_tables import Row
from traceconv.families.identification import Signature
from traceconv.families.importer import Importer, Match
from traceconv.families.nvprof.activities import PREFIX, PROCESS, THREAD, Activities, ObjectId, Tracks
from traceconv.families.nvprof.work import Calls, DeviceWork, Marks, ProcessLaunches, correlation, metric_value
from traceconv.io.source import Head, Source
from traceconv.io.sqlite import open_database
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME, ClockDomain, Run, Zero, looks_like_unix_time
from traceconv.model.diagnostics import ROWS, lost, skipped
from traceconv.model.marks import GPU_MARKS, CountMarks
from traceconv.model.source_info import Layer
from traceconv.model.track_table import TrackId

SOURCE_LEVEL = skipped(
    "nvprof.source_level",
    "rows about instructions, source lines, modules or links have no time: left out (nvvp shows them)",
)
UNKNOWN_TABLE = lost("nvprof.unknown_table", "an activity table is not known: its rows were left out")
UNKNOWN_SENSOR = lost("nvprof.unknown_sensor", "a row of ENVIRONMENT is of an unknown kind: left out")

#: Rows without any time, about the code or the machine.
_SOURCE_LEVEL = {
    *("BRANCH", "DEVICE_ATTRIBUTE", "FUNCTION", "GLOBAL_ACCESS", "INSTRUCTION_CORRELATION", "INSTRUCTION_EXECUTION"),
    *("MODULE", "NVLINK", "PC_SAMPLING", "PC_SAMPLING_RECORD_INFO", "PCIE", "SHARED_ACCESS", "SOURCE_LOCATOR"),
}

#: CUpti_ActivityUnifiedMemoryCounterKind: what nvprof itself prints, and whether the end means anything.
_UNIFIED = {
    1: ("[Unified Memory Memcpy HtoD]", True),
    2: ("[Unified Memory Memcpy DtoH]", True),
    3: ("[Unified Memory CPU page fault]", False),
    4: ("[Unified Memory GPU page faults]", True),
    5: ("[Unified Memory thrashing]", False),
    6: ("[Unified Memory throttling]", True),
    7: ("[Unified Memory remote map]", False),
    8: ("[Unified Memory Memcpy DtoD]", True),
}
_CPU_FAULT, _GPU_FAULT = 3, 4
#: Their value is a number of bytes.
_BYTES = frozenset((1, 2, 8))
_UNIFIED_COLUMNS = ("start", "end", "counterKind", "value", "address", "srcId", "dstId", "processId", "flags")
_UNIFIED_OLD = ("timestamp", "counterKind", "value", "deviceId", "processId")
#: CUpti_ActivitySynchronizationType of waits for an event.
_OF_EVENTS = (1, 2)
_CPU = (0xFFFFFFFF, -1, None)

_CLOCKS = (("SM clock", "MHz"), ("Memory clock", "MHz"))
#: CUpti_ActivityEnvironmentKind: layout of the data, then name and unit of each number in it.
_SENSORS: dict[Any, tuple[str, tuple[tuple[str, str], ...]]] = {
    1: ("<IIIII", (*_CLOCKS, ("PCIe generation", ""), ("PCIe width", "lanes"), ("Clock throttle reasons", "bits"))),
    2: ("<I", (("Temperature", "°C"),)),
    3: ("<II", (("Power", "mW"), ("Power limit", "mW"))),
    4: ("<I", (("Fan speed", "%"),)),
}

#: CUpti_OpenAccEventKind and CUpti_OpenMpEventKind.
_OPENACC = (
    *("invalid", "device init", "device shutdown", "runtime shutdown", "enqueue launch", "enqueue upload"),
    *("enqueue download", "wait", "implicit wait", "compute construct", "update", "enter data", "exit data"),
    *("create", "delete", "alloc", "free"),
)
_OPENMP = ("invalid", "parallel", "task", "thread", "idle", "wait barrier", "wait taskwait")
_OPENACC_COLUMNS = ("eventKind", "cuProcessId", "cuThreadId", "implicit", "lineNo", "srcFile", "funcName", "externalId")
_OPENACC_MORE = {
    "OPENACC_DATA": {"bytes": "bytes", "varName": "variable"},
    "OPENACC_LAUNCH": {"numGangs": "gangs", "numWorkers": "workers", "vectorLength": "vector_length", "kernelName": ""},
    "OPENACC_OTHER": {},
}
_TEXTS = ("varName", "kernelName")

_PREEMPTION = {1: "preempted: saved", 2: "preempted: restored"}


class RareTables:
    """Reads the tables that few recordings have."""

    def __init__(self, activities: Activities, tracks: Tracks, out: Builder) -> None:
        self._activities = activities
        self._tracks = tracks
        self._out = out
        self._in_use: dict[tuple[Any, Any, str], list[tuple[int, int, int]]] = {}
        pids = tracks.pids
        self._pid = pids[0] if len(pids) == 1 else None

    def read(self) -> None:
        """Read all of them."""
        self._synchronization()
        self._overhead()
        self._unified_memory()
        self._memory()
        self._environment()
        self._sampled()
        self._preemption()
        for table, more in _OPENACC_MORE.items():
            self._openacc(table, more)
        self._openmp()

    def _slice(
        self, track: TrackId, ts: int, dur: int, name: str, category: str, args: dict[str, Any], row: int
    ) -> None:
        self._out.slice(track, ts, dur, name, category, args, row)
        self._out.balance.written += 1

    def _synchronization(self) -> None:
        columns = ("type", "correlationId", "contextId", "streamId", "cudaEventId")
        for spans in self._activities.spans("SYNCHRONIZATION", columns):
            track = self._tracks.below_process(self._pid, "CUDA synchronization")
            for row, ts, dur in spans.each():
                info = {"correlation_id": correlation(row[4]), "context": row[5], "stream": row[6]}
                args = {key: value for key, value in info.items() if value not in _CPU}
                args |= {"event_id": row[7]} if row[3] in _OF_EVENTS else {}
                self._slice(track, ts, dur, _cupti.named(_cupti.SYNCHRONIZATION, row[3]), _cupti.SYNC, args, row[0])

    def _overhead(self) -> None:
        for spans in self._activities.spans("OVERHEAD", ("overheadKind", "objectKind", "objectId")):
            for row, ts, dur in spans.each():
                about = ObjectId.of(row[4], row[5])
                pid = about.first if about.kind in (PROCESS, THREAD) else self._pid
                args = {"thread": about.second} if about.kind == THREAD else {}
                track = self._tracks.below_process(pid, "Profiler overhead")
                self._slice(track, ts, dur, _cupti.named(_cupti.OVERHEAD, row[3]), "overhead", args, row[0])

    def _unified_memory(self) -> None:
        table = "UNIFIED_MEMORY_COUNTER"
        if not self._activities.has(table, "start"):
            self._unified_memory_old(table)
            return
        for row in self._activities.moments(table, "start", _UNIFIED_COLUMNS):
            number, start, end, kind, value, address, source, target, pid, flags = row
            name, has_length = _unified(kind)
            device = target if source in _CPU else source
            args = _unified_args(kind, value, flags)
            args |= {"address": _hex(address)} if isinstance(address, int) and address else {}
            track = self._tracks.below_device(pid, None if kind == _CPU_FAULT else device, "Unified memory")
            if has_length and type(end) is int and end >= start:
                if kind in _BYTES and isinstance(value, int) and end > start:
                    args[_cupti.THROUGHPUT] = _cupti.throughput_gb_per_s(value, end - start)
                self._slice(track, start, end - start, name, "unified_memory", args, number)
            else:
                self._instant(track, start, name, "unified_memory", args, number)

    def _unified_memory_old(self, table: str) -> None:
        """Read the unified memory of CUDA 6 and 7: a value at a point in time."""
        for row, ts, kind, value, device, pid in self._activities.moments(table, "timestamp", _UNIFIED_OLD):
            name, _ = _unified(kind)
            track = self._tracks.below_device(pid, device, "Unified memory")
            self._instant(track, ts, name, "unified_memory", _unified_args(kind, value, None), row)

    def _memory(self) -> None:
        columns = ("memoryKind", "address", "bytes", "start", "end", "processId", "deviceId", "contextId", "name")
        for values in self._activities.moments("MEMORY", "start", columns):
            row, kind, address, size, start, end, pid, device, context, name = values
            memory = _cupti.named(_cupti.MEMORY_KIND, kind)
            args = {"bytes": size, "memory": memory, "context": context}
            args |= {"address": _hex(address)} if isinstance(address, int) else {}
            if name:
                args["variable"] = self._activities.text(name, self._activities.place("MEMORY", row))
            freed = end if type(end) is int and end > start else None
            if freed is not None:
                args["lifetime_ns"] = freed - start
            self._instant(self._tracks.below_device(pid, device, "Allocations"), start, "allocate", "memory", args, row)
            if isinstance(size, int):
                changes = self._in_use.setdefault((pid, device, memory), [])
                changes.append((start, size, row))
                changes += [(freed, -size, row)] if freed is not None else []
        self._draw_in_use()

    def _draw_in_use(self) -> None:
        for (pid, device, memory), changes in self._in_use.items():
            track = self._tracks.counter(
                pid, device, f"Allocated {memory} memory", "bytes", "from the allocations seen"
            )
            total = 0
            for ts, change, row in sorted(changes):
                total += change
                self._out.counter(track, ts, total, row)

    def _environment(self) -> None:
        table, columns = "ENVIRONMENT", ("deviceId", "timestamp", "environmentKind", "data")
        for row, device, ts, kind, data in self._activities.moments(table, "timestamp", columns):
            layout, sensors = _SENSORS.get(kind, ("", ()))
            if not sensors or not isinstance(data, bytes) or len(data) < struct.calcsize(layout):
                self._out.skip(UNKNOWN_SENSOR, self._activities.place(table, row), f"kind {kind!s:.20}")
                continue
            values = struct.unpack_from(layout, data)
            for (name, unit), value in zip(sensors, values, strict=True):
                self._out.counter(self._tracks.counter(self._pid, device, name, unit), ts, value, row)
            self._out.balance.written += 1

    def _sampled(self) -> None:
        """Read events and metrics that were read at points in time."""
        for table, word in (("EVENT", "Event"), ("METRIC", "Metric")):
            for suffix in ("", "_INSTANCE"):
                name = f"INSTANTANEOUS_{table}{suffix}"
                columns = ("timestamp", "deviceId", "id", "value", "instance")
                for row, ts, device, number, value, instance in self._activities.moments(name, "timestamp", columns):
                    title = f"{word} {number}" + (f" instance {instance}" if suffix else "")
                    self._counter_value(name, title, device, ts, value, row)

    def _counter_value(self, table: str, title: str, device: Any, ts: int, value: Any, row: int) -> None:
        number = metric_value(value)
        if not isinstance(number, int | float):
            self._out.skip(UNKNOWN_SENSOR, self._activities.place(table, row), f"value {number!s:.20}")
            return
        is_there = self._out.counter(self._tracks.counter(self._pid, device, title, ""), ts, number, row)
        self._out.count_values(is_there, not is_there)

    def _preemption(self) -> None:
        columns = ("timestamp", "preemptionKind", "gridId", "blockX", "blockY", "blockZ")
        for row, ts, kind, grid, *block in self._activities.moments("PREEMPTION", "timestamp", columns):
            name = _PREEMPTION.get(kind, f"preemption {_cupti.named({}, kind)}")
            track = self._tracks.below_process(self._pid, "Preemption")
            self._instant(track, ts, name, "preemption", {"grid_id": grid, "block": block}, row)

    def _openacc(self, table: str, more: dict[str, str]) -> None:
        for spans in self._activities.spans(table, (*_OPENACC_COLUMNS, *more)):
            for row, ts, dur in spans.each():
                name = _word(_OPENACC, row[3])
                args = self._openacc_args(table, row, more)
                self._slice(self._tracks.thread(row[4], row[5]), ts, dur, f"OpenACC {name}", "openacc", args, row[0])

    def _openacc_args(self, table: str, row: Row, more: dict[str, str]) -> dict[str, Any]:
        place = self._activities.place(table, row[0])
        args = {
            "implicit": bool(row[6]),
            "line": row[7],
            "file": self._activities.text(row[8], place),
            "function": self._activities.text(row[9], place),
            "external_id": row[10],
        }
        for column, value in zip(more, row[11:], strict=True):
            args[more[column] or "kernel"] = self._activities.text(value, place) if column in _TEXTS else value
        return {key: value for key, value in args.items() if value not in (None, "")}

    def _openmp(self) -> None:
        for spans in self._activities.spans("OPENMP", ("eventKind", "cuProcessId", "cuThreadId", "threadId")):
            for row, ts, dur in spans.each():
                name = _word(_OPENMP, row[3])
                args = {"openmp_thread": row[6]}
                self._slice(self._tracks.thread(row[4], row[5]), ts, dur, f"OpenMP {name}", "openmp", args, row[0])

    def _instant(self, track: TrackId, ts: int, name: str, category: str, args: dict[str, Any], row: int) -> None:
        self._out.instant(track, ts, name, category, args, row)
        self._out.balance.written += 1


def _word(words: tuple[str, ...], number: Any) -> str:
    return words[number] if isinstance(number, int) and 0 <= number < len(words) else f"kind {number}"


def _unified(kind: Any) -> tuple[str, bool]:
    return _UNIFIED.get(kind, (f"[Unified Memory {_cupti.named({}, kind)}]", False))


def _hex(number: int) -> str:
    """Return a 64-bit number, stored as signed."""
    return f"0x{number & (1 << 64) - 1:x}"


def _unified_args(kind: Any, value: Any, flags: Any) -> dict[str, Any]:
    """Return the args of a unified memory event; its kind tells the meaning of value and flags."""
    if kind in _BYTES:
        return {"bytes": value} | ({"cause": _cupti.named(_cupti.MIGRATION_CAUSE, flags)} if flags else {})
    if kind == _CPU_FAULT:
        args = {"program_counter": _hex(value)} if isinstance(value, int) else {}
        return args | ({"access": _cupti.named(_cupti.ACCESS_TYPE, flags)} if flags else {})
    if kind == _GPU_FAULT:
        return {"faults": value} | ({"access": _cupti.named(_cupti.ACCESS_TYPE, flags)} if flags else {})
    return {"value": value} | ({"flags": flags} if flags else {})


@dataclass(frozen=True)
class NvprofSqlite(Importer):
    """Importer of nvprof databases."""

    name = "nvprof"
    title = "nvprof database (SQLite, also of the Visual Profiler)"
    url = "https://docs.nvidia.com/cuda/archive/12.9.1/profiler-users-guide/"
    versions = "nvprof of CUDA 5 to 12; databases of 2019 to 2024 were tried"
    signature = Signature("cupti_activity_kind_")
    clock = REALTIME
    layer = Layer.DEVICE
    record = "nvprof -o run.%p.nvvp python run.py"
    skips = (SOURCE_LEVEL,)

    line_up = (
        "Times are nanoseconds since 1970, so nothing is needed to align it with files on the wall clock. "
        "Files of several processes or ranks of one host share that clock."
    )
    becomes = (
        ("kernels", "slices on their stream, below context and device, with grid, block, registers, memory as args"),
        ("copies and memsets", "slices on their stream, under the name that nvprof prints, with bytes and throughput"),
        ("runtime and driver calls", "slices on their thread"),
        ("correlation ids", "flows from the call to what it launched"),
        ("NVTX ranges and marks", "slices and instants on their thread"),
        ("synchronization, overhead, OpenACC, OpenMP", "slices"),
        ("unified memory", "slices for migrations, instants for faults, per device"),
        ("allocations", "instants and a counter of the bytes in use"),
        ("events and metrics", "args of the kernel; sampled ones and sensors are counters"),
        ("names of devices, contexts, streams, threads", "names and descriptions of tracks"),
    )
    lost = (
        "The file does not hold the names of events and metrics: they are called event_12, metric_34 by their numbers.",
        "Threads have the number that nvprof stores, which differs from the tid.",
        "Rows about instructions, source lines and modules have no time; they are counted and left out.",
        "Kernel names are demangled as by c++filt; nvprof itself prints them slightly differently (float const *).",
    )
    unrecorded = "nvprof runs on GPUs up to compute capability 7; none was at hand. Public databases were read, too."
    marks = structs.replace(GPU_MARKS, counts=CountMarks((_cupti.KERNEL,), r"event_\d+"))

    def sniff(self, head: Head) -> Match:
        """Recognise the tables: StringTable and CUPTI activities; Nsight Systems has StringIds instead."""
        if not head.tables:
            return _sniff_damaged(head)
        activities = any(table.startswith(PREFIX) for table in head.tables)
        if activities and "StringTable" in head.tables and "StringIds" not in head.tables:
            return Match.yes("tables StringTable and CUPTI_ACTIVITY_KIND_*")
        return Match.no("no tables StringTable and CUPTI_ACTIVITY_KIND_*")

    def read(self, source: Source, out: Builder) -> None:
        """Read the whole database."""
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

"""Read other tables of nvprof: synchronisation, overhead, unified memory, allocations, sensors, OpenACC.

Of unified memory, migrations and throttling have a length, faults and mappings are points. Sensors of the device and
sampled events are counters. Allocations would overlap for the whole run as slices: they are instants and a counter of
the bytes in use.
"""

from __future__ import annotations

import struct
from typing import Any

from traceconv.families.common import cupti as _cupti
from traceconv.families.common.sqlite_tables import Row
from traceconv.families.nvprof._calls import correlation
from traceconv.families.nvprof._device import metric_value
from traceconv.families.nvprof._tables import Activities
from traceconv.families.nvprof._tracks import PROCESS, THREAD, ObjectId, Tracks
from traceconv.model.builder import Builder
from traceconv.model.diagnostics import lost
from traceconv.model.trace import TrackId

UNKNOWN_SENSOR = lost("nvprof.unknown_sensor", "a row of ENVIRONMENT is of an unknown kind: left out")

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
_UNIFIED_COLUMNS = (
    "start",
    "end",
    "counterKind",
    "value",
    "address",
    "srcId",
    "dstId",
    "processId",
    "flags",
)
_UNIFIED_OLD = ("timestamp", "counterKind", "value", "deviceId", "processId")
#: CUpti_ActivitySynchronizationType of waits for an event.
_OF_EVENTS = (1, 2)
_CPU = (0xFFFFFFFF, -1, None)

#: CUpti_ActivityEnvironmentKind: layout of the data, then name and unit of each number in it.
_SENSORS: dict[Any, tuple[str, tuple[tuple[str, str], ...]]] = {
    1: (
        "<IIIII",
        (
            ("SM clock", "MHz"),
            ("Memory clock", "MHz"),
            ("PCIe generation", ""),
            ("PCIe width", "lanes"),
            ("Clock throttle reasons", "bits"),
        ),
    ),
    2: ("<I", (("Temperature", "°C"),)),
    3: ("<II", (("Power", "mW"), ("Power limit", "mW"))),
    4: ("<I", (("Fan speed", "%"),)),
}

#: CUpti_OpenAccEventKind and CUpti_OpenMpEventKind.
_OPENACC = (
    "invalid",
    "device init",
    "device shutdown",
    "runtime shutdown",
    "enqueue launch",
    "enqueue upload",
    "enqueue download",
    "wait",
    "implicit wait",
    "compute construct",
    "update",
    "enter data",
    "exit data",
    "create",
    "delete",
    "alloc",
    "free",
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


class Others:
    """Reads the tables that few recordings have."""

    def __init__(self, activities: Activities, tracks: Tracks, out: Builder) -> None:
        self._activities = activities
        self._tracks = tracks
        self._out = out
        self._in_use: dict[tuple[Any, Any, str], list[tuple[int, int, int]]] = {}
        pids = tracks.pids()
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

    # -- memory -----------------------------------------------------------------------------------------------------

    def _unified_memory(self) -> None:
        table = "UNIFIED_MEMORY_COUNTER"
        if not self._activities.has(table, "start"):
            self._unified_memory_old(table)
            return
        for row in self._activities.rows(table, _UNIFIED_COLUMNS):
            number, start, end, kind, value, address, source, target, pid, flags = row
            if not self._activities.is_time(table, number, start):
                continue
            name, has_length = _UNIFIED.get(kind, (f"[Unified Memory {_cupti.named({}, kind)}]", False))
            device = target if source in _CPU else source
            args = _unified_args(kind, value, flags)
            args |= {"address": f"0x{address & (1 << 64) - 1:x}"} if isinstance(address, int) and address else {}
            track = self._tracks.below_device(pid, None if kind == _CPU_FAULT else device, "Unified memory")
            if has_length and type(end) is int and end >= start:
                if kind in _BYTES and isinstance(value, int) and end > start:
                    args[_cupti.THROUGHPUT] = _cupti.throughput_gb_per_s(value, end - start)
                self._slice(track, start, end - start, name, "unified_memory", args, number)
            else:
                self._instant(track, start, name, "unified_memory", args, number)

    def _unified_memory_old(self, table: str) -> None:
        """Read the unified memory of CUDA 6 and 7: a value at a point in time."""
        for row, ts, kind, value, device, pid in self._activities.rows(table, _UNIFIED_OLD):
            if self._activities.is_time(table, row, ts):
                name = _UNIFIED.get(kind, (f"[Unified Memory {_cupti.named({}, kind)}]", False))[0]
                track = self._tracks.below_device(pid, device, "Unified memory")
                self._instant(track, ts, name, "unified_memory", _unified_args(kind, value, None), row)

    def _memory(self) -> None:
        columns = ("memoryKind", "address", "bytes", "start", "end", "processId", "deviceId", "contextId", "name")
        for row, kind, address, size, start, end, pid, device, context, name in self._activities.rows(
            "MEMORY", columns
        ):
            if not self._activities.is_time("MEMORY", row, start):
                continue
            memory = _cupti.named(_cupti.MEMORY_KIND, kind)
            args = {"bytes": size, "memory": memory, "context": context}
            args |= {"address": f"0x{address & (1 << 64) - 1:x}"} if isinstance(address, int) else {}
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

    # -- sensors ------------------------------------------------------------------------------------------------------

    def _environment(self) -> None:
        table = "ENVIRONMENT"
        for row, device, ts, kind, data in self._activities.rows(
            table, ("deviceId", "timestamp", "environmentKind", "data")
        ):
            if not self._activities.is_time(table, row, ts):
                continue
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
                for row, ts, device, number, value, instance in self._activities.rows(name, columns):
                    if self._activities.is_time(name, row, ts):
                        title = f"{word} {number}" + (f" instance {instance}" if suffix else "")
                        self._counter_value(name, title, device, ts, value, row)

    def _counter_value(self, table: str, title: str, device: Any, ts: int, value: Any, row: int) -> None:
        number = metric_value(value)
        if not isinstance(number, int | float):
            self._out.skip(UNKNOWN_SENSOR, self._activities.place(table, row), f"value {number!s:.20}")
            return
        is_there = self._out.counter(self._tracks.counter(self._pid, device, title, ""), ts, number, row)
        self._out.count_values(is_there, not is_there)

    # -- host -----------------------------------------------------------------------------------------------------

    def _preemption(self) -> None:
        columns = ("timestamp", "preemptionKind", "gridId", "blockX", "blockY", "blockZ")
        for row, ts, kind, grid, *block in self._activities.rows("PREEMPTION", columns):
            if self._activities.is_time("PREEMPTION", row, ts):
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


def _unified_args(kind: Any, value: Any, flags: Any) -> dict[str, Any]:
    """Return the args of a unified memory event; its kind tells the meaning of value and flags."""
    if kind in _BYTES:
        return {"bytes": value} | ({"cause": _cupti.named(_cupti.MIGRATION_CAUSE, flags)} if flags else {})
    if kind == _CPU_FAULT:
        args = {"program_counter": f"0x{value & (1 << 64) - 1:x}"} if isinstance(value, int) else {}
        return args | ({"access": _cupti.named(_cupti.ACCESS_TYPE, flags)} if flags else {})
    if kind == _GPU_FAULT:
        return {"faults": value} | ({"access": _cupti.named(_cupti.ACCESS_TYPE, flags)} if flags else {})
    return {"value": value} | ({"flags": flags} if flags else {})

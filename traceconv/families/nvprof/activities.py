"""The tables and tracks of a database of nvprof, and its rare tables: times checked, damage and losses counted.

nvprof creates every table up front, and each release adds some tables and columns. So a table or column may be absent
in an older file; an absent column reads as NULL. Nothing is taken from what a type is declared to be: SQLite stores any
value in any column, so what is not a number where numbers are wanted reads as NULL, too, and is counted.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from traceconv.errors import InputError
from traceconv.families.common import cupti as _cupti
from traceconv.families.common.sqlite_tables import IDS_END, PORTION, Row, Spans, Tables, whole
from traceconv.io.shown import Counted
from traceconv.io.sqlite import Database, Kind, as_text, quoted
from traceconv.model.builder import Builder
from traceconv.model.columns import I64
from traceconv.model.diagnostics import Code, absent, lost
from traceconv.model.drawable import NEVER_SET
from traceconv.model.numbers import LIMIT_NS
from traceconv.model.track_table import NO_TRACK, TrackId

DESCRIBING_ROWS = Counted(
    "row that describes a device, context, stream or thread",
    "rows that describe devices, contexts, streams and threads",
)

NO_TIME = lost("nvprof.no_time", "a row has no start or end that is a whole number: left out")
DAMAGED = lost(
    "nvprof.damaged_table",
    "the database is damaged inside this table (cut, or still being written): the rows before the damage were read",
)
NO_STRING = absent(
    "nvprof.no_string", "a row refers to a string that StringTable does not hold: its number is shown instead"
)

ODD_VALUE = lost(
    "nvprof.odd_value",
    "a column of numbers or bytes holds another value: it was left out, the rest of the row was read",
)

UNKNOWN_SENSOR = lost("nvprof.unknown_sensor", "a row of ENVIRONMENT is of an unknown kind: left out")

PREFIX = "CUPTI_ACTIVITY_KIND_"
#: Columns of kernels that are shown only, as far as they hold anything, by their names in the args.
SHAPE = {
    "registersPerThread": "registers_per_thread",
    "staticSharedMemory": "static_shared_memory_bytes",
    "dynamicSharedMemory": "dynamic_shared_memory_bytes",
    "localMemoryPerThread": "local_memory_per_thread_bytes",
    "localMemoryTotal": "local_memory_total_bytes",
    "sharedMemoryExecuted": "shared_memory_executed_bytes",
}
GRID = ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ")
#: All other columns are numbers. `_timed` checks times; values are checked where they are shown.
_KINDS = {
    **dict.fromkeys(("start", "end", "timestamp", "value", "payload", "uuid", "data", *SHAPE, *GRID), Kind.ANY),
    "objectId": Kind.BYTES,
}

#: CUpti_ActivityObjectKind.
PROCESS, THREAD, DEVICE, CONTEXT, STREAM = 1, 2, 3, 4, 5

_UNION = struct.Struct("<III")
#: "No stream", "no context", and the CPU as a device of unified memory.
_NONE = 0xFFFFFFFF
#: CUpti_ActivityStreamFlag: the context says the same.
_NULL_STREAM = 3
_DEVICE_COLUMNS = (
    *("id", "name", "computeCapabilityMajor", "computeCapabilityMinor", "numMultiprocessors"),
    *("globalMemorySize", "globalMemoryBandwidth", "coreClockRate", "uuid"),
)


class Activities(Tables):
    """The activity tables of one database, and its version if it states one."""

    prefix: ClassVar[str] = PREFIX
    damaged: ClassVar[Code] = DAMAGED
    odd_value: ClassVar[Code] = ODD_VALUE
    kinds: ClassVar[dict[str, Kind]] = _KINDS
    other_kind: ClassVar[Kind] = Kind.WHOLE

    def __init__(self, database: Database, out: Builder) -> None:
        super().__init__(database, out)
        self.has_rows = False
        strings = self._all("StringTable", ("_id_", "value"))
        self._strings: dict[Any, str] = {number: as_text(text) for number, text in strings if text is not None}
        versions = (row[0] for row in self._all("Version", ("version",)))
        self.version = next((version for version in versions if isinstance(version, int | str)), None)
        self._is_read: set[str] = set()

    def text(self, number: Any, at: str) -> str:
        """Return the string of that number, "" for none; a number without a string stays visible."""
        if not number:
            return ""
        known = self._strings.get(number)
        if known is None:
            self._out.problem(NO_STRING, at, f"string {number!s:.20}")
            return f"string {number!s:.20}"
        return known

    def unread(self) -> dict[str, int]:
        """Return the number of rows of each table that was not read."""
        counts = {name: self.count(name) for name in self.tables if name not in self._is_read}
        return {name: count for name, count in counts.items() if count}

    def rows(self, table: str, columns: Sequence[str], order: str = "") -> Iterator[Row]:
        """Yield all rows of a table: its row id, then the columns asked for; each is counted as read."""
        for rows in self._portions(table, columns, order):
            yield from rows

    def spans(self, table: str, columns: Sequence[str]) -> Iterator[Spans]:
        """Yield the rows that have a start and an end: row id, start, end, then the columns asked for."""
        for rows in self._portions(table, ("start", "end", *columns)):
            spans = self._timed(table, rows)
            if spans.rows:
                yield spans

    def moments(self, table: str, time: str, columns: Sequence[str], order: str = "") -> Iterator[Row]:
        """Yield the rows whose time, one of the columns, was set; others are counted as left out."""
        at = 1 + columns.index(time)
        for row in self.rows(table, columns, order):
            if type(row[at]) is int and row[at] != 0:
                yield row
            else:
                self._out.skip(NEVER_SET if row[at] == 0 else NO_TIME, self.place(table, row[0]))

    def place(self, table: str, number: Any = "") -> str:
        """Return where a row is, or a table, for messages."""
        return f"{self._out.info.name}:{super().place(table, number)}"

    def _portions(self, table: str, columns: Sequence[str], order: str = "") -> Iterator[Sequence[Row]]:
        self._is_read.add(table)
        if table not in self.tables:
            return
        key = self._database.row_id(PREFIX + table)
        sorted_by = [quoted(order), key] if self.has(table, order) else []
        for _, rows in self.portions(table, columns, order=sorted_by, number=key):
            self._out.balance.read += len(rows)
            self.has_rows = True
            yield [(0, *row[1:]) for row in rows] if rows[0][0] is None else rows

    def _all(self, table: str, columns: Sequence[str]) -> Iterator[Row]:
        """Yield the rows of one of the tables that hold no activities."""
        known = self._database.tables.get(table, ())
        if all(column in known for column in columns):
            try:
                for rows in self._database.batches(table, [quoted(column) for column in columns], PORTION):
                    yield from rows
            except InputError as error:
                self._damage(error, self.place(table))

    def _timed(self, table: str, rows: Sequence[Row]) -> Spans:
        starts, ends = whole([row[1] for row in rows]), whole([row[2] for row in rows])
        if starts is not None and ends is not None and _all_usable(starts) and _all_usable(ends):
            return Spans(rows, [row[0] for row in rows], starts, ends - starts)
        rows = [row for row in rows if self._has_time(table, row)]
        lengths = [row[2] - row[1] for row in rows]
        return Spans(rows, [row[0] for row in rows], [row[1] for row in rows], lengths)

    def _has_time(self, table: str, row: Row) -> bool:
        usable = type(row[1]) is int and type(row[2]) is int
        if not usable:
            self._out.skip(NO_TIME, self.place(table, row[0]))
        return usable


def _all_usable(times: I64) -> bool:
    return bool(np.min(times) > 0 and np.max(times) < LIMIT_NS)


class ObjectId(NamedTuple):
    """The object of a row: pid and thread of a process or thread, else device, context and stream."""

    kind: int
    first: int
    second: int
    third: int

    @classmethod
    def of_columns(cls, kind: Any, blob: Any) -> ObjectId:
        """Return the id that two columns hold; missing parts are 0."""
        data = blob if isinstance(blob, bytes) else b""
        return cls(kind if isinstance(kind, int) else 0, *_UNION.unpack(data[:12].ljust(12, b"\0")))


class Tracks:
    """The tracks of a database, each made when it is first asked for.

        process 4711
          thread 2857740288            API calls and NVTX ranges
          GPU 0: Tesla V100
            Context 1
              Stream 7                 kernels, copies, memsets

    Devices, contexts and streams are numbered within a process, so that they are drawn below it. Which process a kernel
    belongs to is not stored: there is one process in a file, unless somebody has joined several; then the call that
    launched it tells.
    """

    def __init__(self, activities: Activities, out: Builder) -> None:
        self._activities = activities
        self._out = out
        self._names: dict[ObjectId, str] = {}
        self._streams: dict[tuple[Any, Any], str] = {}
        self._contexts: dict[Any, str] = {}
        self._null_streams: set[tuple[Any, Any]] = set()
        self.pids: list[int] = []
        self.devices: dict[Any, dict[str, Any]] = {}
        self.process, self.below_process = cache(self._process), cache(self._below_process)
        self.device, self.below_device = cache(self._device), cache(self._below_device)
        self.context, self.stream = cache(self._context), cache(self._stream)
        self.counter, self._unsigned_thread = cache(self._counter), cache(self._thread)
        self._read_names()
        self._read_devices()
        self._read_contexts()
        self._read_streams()

    def _read_names(self) -> None:
        for row, kind, blob, name in self._rows("NAME", ("objectKind", "objectId", "name")):
            text = self._activities.text(name, self._activities.place("NAME", row))
            named = ObjectId.of_columns(kind, blob)
            self._names[named._replace(third=0) if kind in (PROCESS, THREAD) else named] = text

    def _read_devices(self) -> None:
        for row, number, name, major, minor, processors, size, bandwidth, clock, uuid in self._rows(
            "DEVICE", _DEVICE_COLUMNS
        ):
            info = {
                "id": number,
                "name": self._activities.text(name, self._activities.place("DEVICE", row)),
                "compute_capability": f"{major}.{minor}" if major is not None else None,
                "multiprocessors": processors,
                "memory_bytes": size,
                "memory_bandwidth_kb_per_s": bandwidth,
                "core_clock_khz": clock,
                "uuid": uuid.hex() if isinstance(uuid, bytes) else None,
            }
            self.devices[number] = {key: value for key, value in info.items() if value is not None}

    def _read_contexts(self) -> None:
        for _, context, api, null_stream in self._rows("CONTEXT", ("contextId", "computeApiKind", "nullStreamId")):
            self._contexts[context] = _cupti.named(_cupti.COMPUTE_API, api)
            self._null_streams.add((context, null_stream))

    def _read_streams(self) -> None:
        for _, context, stream, priority, flag in self._rows("STREAM", ("contextId", "streamId", "priority", "flag")):
            kind = _cupti.named(_cupti.STREAM_FLAG, flag)
            words = (kind if flag != _NULL_STREAM else "", f"priority {priority}" if priority else "")
            self._streams[context, stream] = ", ".join(filter(None, words))

    def _rows(self, table: str, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
        rows = list(self._activities.rows(table, columns))
        if rows:
            self._out.balance.merged[DESCRIBING_ROWS] += len(rows)
        return rows

    def _process(self, pid: Any) -> TrackId:
        """Return a process; NO_TRACK if the number is none."""
        if not isinstance(pid, int) or pid <= 0:
            return NO_TRACK
        self.pids.append(pid)
        return self._out.tracks.process(self._names.get(ObjectId(PROCESS, pid, 0, 0), ""), pid=pid)

    def thread(self, pid: Any, number: Any) -> TrackId:
        """Return a thread: its number is the lower half of a pthread handle, stored as signed, and no tid."""
        return self._unsigned_thread(pid, number & _NONE if isinstance(number, int) else number)

    def _thread(self, pid: Any, number: Any) -> TrackId:
        of_pid = pid if isinstance(pid, int) else 0
        name = self._names.get(ObjectId(THREAD, of_pid, number, 0), "") if isinstance(number, int) else ""
        process = self.process(pid)
        label = f"thread {number}"
        if process == NO_TRACK:
            return self._out.tracks.add(name or label)
        return self._out.tracks.thread(process, None, f"{name} ({label})" if name else label)

    def _below_process(self, pid: Any, name: str, description: str = "") -> TrackId:
        return self._out.tracks.add(name, self.process(pid), description=description)

    def _device(self, pid: Any, device: Any) -> TrackId:
        info = self.devices.get(device, {})
        name = info.get("name") or self._names.get(ObjectId(DEVICE, _u32(device), 0, 0))
        label = f"GPU {device}" if device is not None else "GPU"
        words = [f"compute capability {info['compute_capability']}"] if "compute_capability" in info else []
        words += [f"{info['multiprocessors']} multiprocessors"] if "multiprocessors" in info else []
        words += [f"{info['memory_bytes'] >> 20} MiB"] if isinstance(info.get("memory_bytes"), int) else []
        return self._add(label, name, self.process(pid), ", ".join(words))

    def _below_device(self, pid: Any, device: Any, name: str, description: str = "") -> TrackId:
        parent = self.device(pid, device) if device not in (None, _NONE, -1) else self.process(pid)
        return self._out.tracks.add(name, parent, description=description)

    def _counter(self, pid: Any, device: Any, name: str, unit: str, description: str = "") -> TrackId:
        return self._out.tracks.counter(name, self.device(pid, device), unit=unit, description=description)

    def _context(self, pid: Any, device: Any, context: Any) -> TrackId:
        name = self._names.get(ObjectId(CONTEXT, _u32(device), _u32(context), 0), "")
        label = f"Context {context}" if context is not None else "no context"
        return self._add(label, name, self.device(pid, device), self._contexts.get(context, ""))

    def _stream(self, pid: Any, device: Any, context: Any, stream: Any) -> TrackId:
        if stream in (None, _NONE, -1):
            return self.context(pid, device, context)
        name = self._names.get(ObjectId(STREAM, _u32(device), _u32(context), _u32(stream)), "")
        default = "default stream" if (context, stream) in self._null_streams else ""
        words = ", ".join(filter(None, (default, self._streams.get((context, stream), ""))))
        return self._add(f"Stream {stream}", name, self.context(pid, device, context), words)

    def _add(self, label: str, name: str | None, parent: TrackId, description: str) -> TrackId:
        return self._out.tracks.add(f"{label}: {name}" if name else label, parent, description=description)


def _u32(number: Any) -> int:
    return number & _NONE if isinstance(number, int) else 0


def correlation(number: Any) -> int:
    """Return a stored correlation id, 0 for other values."""
    if not isinstance(number, int):
        return 0
    return number if 0 < number < IDS_END else number & 0xFFFFFFFF if number < 0 else 0


def correlations(numbers: Sequence[Any]) -> I64:
    """Return stored correlation ids, 0 for other values."""
    ids = whole(numbers)
    ids = np.array([number or 0 for number in numbers], np.int64) if ids is None else ids
    return np.where(ids < IDS_END, np.where(ids < 0, ids & 0xFFFFFFFF, ids), 0)


_UNSIGNED, _DOUBLE, _SIGNED = struct.Struct("<Q"), struct.Struct("<d"), struct.Struct("<q")


def metric_value(value: Any) -> Any:
    """Return the number in the union CUpti_MetricValue, whose type the file does not state.

    The exponent of a double decides: 0 there is an integer below 2**52 (or 0.0), all ones is a negative integer, and
    anything else would be an integer above 2**52, which nothing counts in a kernel.

    >>> metric_value(struct.pack("<d", 0.5)), metric_value(struct.pack("<Q", 12)), metric_value(struct.pack("<q", -1))
    (0.5, 12, -1)
    """
    if not isinstance(value, bytes):
        return value
    if len(value) != _DOUBLE.size:
        return value.hex()
    (unsigned,) = _UNSIGNED.unpack(value)
    exponent = unsigned >> 52 & 0x7FF
    (number,) = (_UNSIGNED if exponent == 0 and unsigned < 1 << 52 else _DOUBLE).unpack(value)
    if exponent == 0x7FF and math.isnan(number):
        (number,) = _SIGNED.unpack(value)
    return number if not isinstance(number, float) or math.isfinite(number) else str(number)


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
    "OPENACC_LAUNCH": {
        "numGangs": "gangs",
        "numWorkers": "workers",
        "vectorLength": "vector_length",
        "kernelName": "kernel",
    },
    "OPENACC_OTHER": {},
}
_TEXTS = ("varName", "kernelName")

_PREEMPTION = {1: "preempted: saved", 2: "preempted: restored"}


class RareTables:
    def __init__(self, activities: Activities, tracks: Tracks, out: Builder) -> None:
        self._activities = activities
        self._tracks = tracks
        self._out = out
        self._in_use: dict[tuple[Any, Any, str], list[tuple[int, int, int]]] = {}
        pids = tracks.pids
        self._pid = pids[0] if len(pids) == 1 else None

    def read(self) -> None:
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
                about = ObjectId.of_columns(row[4], row[5])
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
            args[more[column]] = self._activities.text(value, place) if column in _TEXTS else value
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

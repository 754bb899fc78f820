"""Exports of Nsight Systems as databases: what is assumed about their numbers and names, and their tracks.

Sources: the vendor's "SQLite Schema Reference" and "SQLite Schema Event Values" (schema 3.28.1 of release 2026.4, and
the texts of 2020 and 2021.5), the enumerations that exports of 2024.4 to 2025.3 carry in their ENUM tables. Public
exports of 2020 to 2025.3 agree with it as far as they go: calls, kernels, copies, memsets, synchronization, NVTX
ranges, OS runtime, samples, schedules, overhead, messages, allocations. So do recordings of 2023.4 and 2025.3 on an
H100 (golden/nsight-systems/h100_*): GPU metrics, CUDA graphs, unified memory. Not seen in one: MPI, UCX, OpenACC,
OpenMP, page faults, payloads. A real export that differs refutes a line here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Final

import numpy as np

from traceconv.families.common import cupti as _cupti
from traceconv.families.common.sqlite_tables import Row, Tables, whole
from traceconv.io.sqlite import Database, Kind, as_text
from traceconv.model.builder import Builder
from traceconv.model.diagnostics import Code, absent, lost
from traceconv.model.track_table import NO_TRACK, TrackId


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


#: One of these tables makes a database an export of Nsight Systems, besides StringIds(id, value).
MARKS: Final = (
    *("META_DATA_EXPORT", "EXPORT_META_DATA", "META_DATA_CAPTURE", "TARGET_INFO_SESSION_START_TIME", "ThreadNames"),
    *("TARGET_INFO_SYSTEM_ENV", "TARGET_INFO_GPU", "ANALYSIS_DETAILS", "ProcessStreams", "NVTX_EVENTS", "OSRT_API"),
    *("COMPOSITE_EVENTS", "SCHED_EVENTS", "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_KERNEL"),
)
#: Old names of tables about the export.
META_DATA: Final = {"EXPORT_META_DATA": "META_DATA_EXPORT"}
#: Tables of others that hold strings and kernels as well: nvprof, AMD rocpd, Ascend msprof.
NOT_MARKS: Final = ("StringTable", "STRING_IDS")

# -- ids ----------------------------------------------------------------------------------------------------------
# A global id: bits 0 to 23 the thread, 24 to 47 the process, 48 to 55 the virtual machine, 56 to 63 the hardware. It is
# stored as a signed number, so that masks are right and divisions are not. The id of a process has thread 0.

_ID_MASK = 0xFFFFFF
PROCESS_MASK: Final = ~_ID_MASK


def tid_of(global_id: int) -> int:
    """Return the thread of the operating system, cut to 24 bits."""
    return global_id & _ID_MASK


def pid_of(global_id: int) -> int:
    """Return the process of the operating system, cut to 24 bits."""
    return global_id >> 24 & _ID_MASK


def process_of(global_id: int) -> int:
    """Return the global id of the process that a thread belongs to."""
    return global_id & PROCESS_MASK


#: Which GPU a sampled metric is of: the vendor's text says the lowest 8 bits of typeId.
GPU_OF_TYPE_MASK: Final = 0xFF
#: Ids of streams and events that mean none: synchronization with a whole context.
NO_STREAM: Final = (2**32 - 1, 2**64 - 1, -1)

#: The names of waits for a stream, an event or a context: ENUM_CUPTI_SYNC_TYPE of exports of 2023.4 and 2025.3 on an
#: H100, and what they are called where the export names none.
SYNCHRONIZATION: Final = r"(?:Context|Stream|Event|Unknown) sync|Stream wait sync|Synchronization"
#: The category of the states of threads, as the scheduler has them.
THREAD_STATE: Final = "thread_state"

# -- times --------------------------------------------------------------------------------------------------------
# Integer nanoseconds since the start of the session; negative ones are from before the capture range. The start of
# the session since 1970 is TARGET_INFO_SESSION_START_TIME.utcEpochNs (since about 2021). How the two clocks were read
# is not documented, so its error has no known bound.

#: Columns of times.
TIMES: Final = frozenset(("start", "end", "timestamp", "startedAt", "endedAt"))
#: No session is that long: larger numbers are times since 1970 (observed in diagnostics with host times).
SESSION_LIMIT_NS: Final = 10**17

# -- NVTX ---------------------------------------------------------------------------------------------------------

NVTX_CATEGORY: Final = 33
NVTX_MARK: Final = 34
NVTX_THREAD_NAME: Final = 39
NVTX_PUSH_POP: Final = 59
NVTX_START_END: Final = 60
NVTX_DOMAIN: Final = 75
NVTX_DOMAIN_END: Final = 76
NVTX_DEFINITIONS: Final = (NVTX_CATEGORY, NVTX_THREAD_NAME, NVTX_DOMAIN, NVTX_DOMAIN_END)
#: Exactly one of these holds the payload of an event.
NVTX_PAYLOADS: Final = ("uint64Value", "int64Value", "doubleValue", "uint32Value", "int32Value", "floatValue")

# -- enumerations -------------------------------------------------------------------------------------------------
# Newer exports bring their own tables ENUM_*(id, name, label); these come first. The second table is for older ones;
# where the older numbers are not known it is empty, and the number itself is shown.

#: Not the numbers of CUPTI.
MEMORY_KIND: Final = dict(
    enumerate(("pageable", "pinned", "device", "array", "managed", "device static", "managed static", "unknown"))
)
MEMORY_OPERATION: Final = {0: "allocation", 1: "deallocation"}
EVENT_CLASS: Final = {0: _cupti.RUNTIME_API, 1: _cupti.DRIVER_API}
SEVERITY: Final = {1: "Info", 2: "Warning", 3: "Error"}

ENUMS: Final[dict[str, tuple[str, dict[int, str]]]] = {
    "copyKind": ("ENUM_CUDA_MEMCPY_OPER", _cupti.MEMCPY_KIND),
    "srcKind": ("ENUM_CUDA_MEM_KIND", MEMORY_KIND),
    "dstKind": ("ENUM_CUDA_MEM_KIND", MEMORY_KIND),
    "memKind": ("ENUM_CUDA_MEM_KIND", MEMORY_KIND),
    "memoryOperationType": ("ENUM_CUDA_DEV_MEM_EVENT_OPER", MEMORY_OPERATION),
    "operationType": ("ENUM_CUDA_MEMPOOL_OPER", {}),
    "poolType": ("ENUM_CUDA_MEMPOOL_TYPE", {}),
    "migrationCause": ("ENUM_CUDA_UNIF_MEM_MIGRATION", _cupti.MIGRATION_CAUSE),
    "faultAccessType": ("ENUM_CUDA_UNIF_MEM_ACCESS_TYPE", _cupti.ACCESS_TYPE),
    "launchType": ("ENUM_CUDA_KERNEL_LAUNCH_TYPE", {}),
    "cacheConfig": ("ENUM_CUDA_FUNC_CACHE_CONFIG", {}),
    "sharedMemoryLimitConfig": ("ENUM_CUDA_SHARED_MEM_LIMIT_CONFIG", {}),
    "flag": ("ENUM_CUPTI_STREAM_TYPE", _cupti.STREAM_FLAG),
    "syncType": ("ENUM_CUPTI_SYNC_TYPE", _cupti.SYNCHRONIZATION),
    "overheadType": ("ENUM_CUPTI_OVERHEAD_TYPE", {}),
    "jitEntryType": ("ENUM_CUPTI_JIT_ENTRY_TYPE", {}),
    "jitOperationType": ("ENUM_CUPTI_JIT_OPERATION_TYPE", {}),
    "threadState": ("ENUM_SAMPLING_THREAD_STATE", {}),
    "threadBlock": ("ENUM_SCHEDULING_THREAD_BLOCK", {}),
    "eventClass": ("ENUM_NSYS_EVENT_CLASS", {}),
    "severity": ("ENUM_DIAGNOSTIC_SEVERITY_LEVEL", SEVERITY),
    "source": ("ENUM_DIAGNOSTIC_SOURCE_TYPE", {}),
}
#: ENUM_DIAGNOSTIC_TIMESTAMP_SOURCE: the time of a message is of the host that shows the report, on another clock.
HOST_TIMESTAMP: Final = 2
#: ENUM_NSYS_GENERIC_EVENT_FIELD_TYPE: the field is an unsigned integer.
UNSIGNED_FIELD: Final = 1
#: Units in names of GPU metrics whose values are stored in another one, and the description of such a track. nsys
#: scales them when it shows them: recordings of 2023.4 and 2025.3 on an H100, figures of public scripts for other GPUs.
STORED_UNIT: Final = {"MHz": ("Hz", "Nsight Systems names the unit MHz; it stores Hz.")}
_COPY_WORDS: Final = {word.upper().replace("UNIFIED ", "UVM_"): word for word in _cupti.MEMCPY_KIND.values()}
#: Copies that the driver makes for unified memory.
UNIFIED_COPY_FROM: Final = 11

# -- columns ------------------------------------------------------------------------------------------------------

#: Columns whose numbers are ids of StringIds, in any table.
TEXT_IDS: Final = frozenset(
    words(
        "nameId endNameId textId objectNameId srcFile funcName varName kernelName CpuInstruction module sourceFile "
        "apiCallId jsonTextId fieldNameId symbol"
    )
)
#: Columns whose numbers are looked up, joined, masked or summed; what is not a number there reads as NULL. Times are
#: looked at by those who need them, and what is shown only can be anything.
KINDS: Final = dict.fromkeys(
    (
        *TEXT_IDS,
        *words(
            "globalTid endGlobalTid globalPid globalId pid processId id cuDevice cudaId gpuId deviceId contextId "
            "greenContextId nullStreamId parentContextId streamId correlationId eventType eventClass domainId "
            "category color rangeId uint64Value int64Value uint32Value int32Value bytes sourceBytes address "
            "virtualAddress gridId numberOfPageFaults copyKind srcKind dstKind memKind memoryOperationType "
            "fieldIdx syncType deprecatedSyncType flag severity source timestampType priority rank cpu isSchedIn "
            "threadState threadBlock cpuCycles stackDepth typeId metricId metricsListId metricsIdx portId "
            "componentId eventId duration utcEpochNs demangledName shortName mangledName"
        ),
    ),
    Kind.WHOLE,
)
#: What names an event, the first that has a value.
NAME_COLUMNS: Final = ("nameId", "textId", "text", "name", "apiCallId")
#: The string that stands for none (StringIds 0).
NO_STRING: Final = "[Unknown]"
#: Columns that say when and where, or nothing to a reader.
NOT_ARGS: Final = frozenset(
    words(
        "id start end timestamp rawTimestamp eventClass globalTid endGlobalTid globalPid globalVm globalVid "
        "deviceId contextId greenContextId streamId"
    )
)
#: The names of columns in the args, with the unit if known, or a shorter name of the tools.
ARG_NAMES: Final = {
    "correlationId": "correlation",
    "returnValue": "return_value",
    "nestingLevel": "nesting_level",
    "srcKind": "source_memory",
    "dstKind": "destination_memory",
    "srcDeviceId": "source_device",
    "dstDeviceId": "destination_device",
    "srcContextId": "source_context",
    "dstContextId": "destination_context",
    "memKind": "memory",
    "migrationCause": "migration_cause",
    "faultAccessType": "access",
    "launchType": "launch_type",
    "cacheConfig": "cache_config",
    "sharedMemoryLimitConfig": "shared_memory_limit",
    "graphId": "graph",
    "graphExecId": "graph_exec",
    "graphNodeId": "graph_node",
    "eventId": "event",
    "eventSyncId": "event_sync",
    "overheadType": "overhead",
    "gpuId": "gpu",
    "staticSharedMemory": "static_shared_memory_bytes",
    "dynamicSharedMemory": "dynamic_shared_memory_bytes",
    "sharedMemoryExecuted": "shared_memory_executed_bytes",
    "localMemoryPerThread": "local_memory_per_thread_bytes",
    "localMemoryTotal": "local_memory_total_bytes",
    "registersPerThread": "registers_per_thread",
    "bytesProcessed": "bytes",
    "sourceBytes": "bytes",
    "size": "bytes",
    "recvSize": "received_bytes",
    "packedSize": "bytes",
}

# -- tables -------------------------------------------------------------------------------------------------------

#: Categories of slices on threads; other tables with a globalTid get their own name in small letters.
THREAD_TABLES: Final = {
    "CUPTI_ACTIVITY_KIND_RUNTIME": _cupti.RUNTIME_API,
    "CUPTI_ACTIVITY_KIND_DRIVER": _cupti.DRIVER_API,
    "OSRT_API": "osrt",
    "SYSCALL": "syscall",
    "CUDNN_EVENTS": "cudnn",
    "CUBLAS_EVENTS": "cublas",
    **{f"MPI_{kind}_EVENTS": "mpi" for kind in ("P2P", "COLLECTIVES", "START_WAIT", "OTHER")},
    **dict.fromkeys(("UCP_SUBMIT_EVENTS", "UCP_PROGRESS_EVENTS", "UCP_EVENTS"), "ucp"),
    "OPENGL_API": "opengl",
    "VULKAN_API": "vulkan",
    "DX12_API": "dx12",
    "OPENMP": "openmp",
    **{f"CUPTI_ACTIVITY_KIND_OPENACC_{kind}": "openacc" for kind in ("DATA", "LAUNCH", "OTHER")},
    "CUDA_HOST_CALLBACK": "cuda_host_callback",
    **dict.fromkeys(("CUDA_GRAPH_NODE_EVENTS", "CUDA_GRAPH_EVENTS"), "cuda_graph"),
    **dict.fromkeys(("PROFILER_OVERHEAD", "CUPTI_ACTIVITY_KIND_OVERHEAD"), "overhead"),
    "CUPTI_ACTIVITY_KIND_JIT": "jit",
}
#: Tables that hold the call stacks of others, by the column that leads there.
CALL_STACKS: Final = {
    "OSRT_API": "OSRT_CALLCHAINS",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "CUDA_CALLCHAINS",
    "CUPTI_ACTIVITY_KIND_DRIVER": "CUDA_CALLCHAINS",
    "SYSCALL": "SYSCALL_CALLCHAINS",
}
#: Tables without times whose rows are names and properties of what is drawn.
PROPERTIES: Final = frozenset(
    words(
        "StringIds ThreadNames PROCESSES META_DATA_CAPTURE META_DATA_EXPORT ANALYSIS_DETAILS MPI_RANKS "
        "TARGET_INFO_SESSION_START_TIME TARGET_INFO_SYSTEM_ENV TARGET_INFO_GPU TARGET_INFO_CUDA_DEVICE "
        "TARGET_INFO_CUDA_CONTEXT_INFO TARGET_INFO_CUDA_STREAM TARGET_INFO_NVTX_CUDA_DEVICE "
        "TARGET_INFO_NVTX_CUDA_CONTEXT TARGET_INFO_NVTX_CUDA_STREAM TARGET_INFO_GPU_METRICS "
        "TARGET_INFO_SOC_METRICS TARGET_INFO_CUDA_NULL_STREAM EXPORT_META_DATA TARGET_INFO_NETWORK_METRICS "
        "TARGET_INFO_PERF_METRIC TARGET_INFO_COMPONENT NET_IB_DEVICE_INFO TARGET_INFO_NIC_INFO NIC_ID_MAP "
        "GENERIC_EVENT_TYPE_FIELDS SAMPLING_CALLCHAINS OSRT_CALLCHAINS CUDA_CALLCHAINS SYSCALL_CALLCHAINS"
    )
)
#: Counters by table: the column of the value, and the columns of its owner.
COUNTERS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "GPU_METRICS": ("value", ("typeId", "metricId")),
    "SOC_METRICS": ("value", ("typeId", "metricId")),
    "NET_NIC_METRIC": ("value", ("globalId", "portId", "metricsListId", "metricsIdx")),
    "NET_IB_SWITCH_METRIC": ("value", ("globalId", "portId", "metricsListId", "metricsIdx")),
    "PERF_EVENT_SOC_OR_CPU_RAW_EVENT": ("count", ("componentId", "eventId")),
    "PERF_EVENT_SOC_OR_CPU_METRIC_EVENT": ("value", ("componentId", "metricId")),
    "PERF_EVENT_CPU_RAW_EVENT": ("count", ("componentId", "eventId")),
    "PERF_EVENT_CPU_METRIC_EVENT": ("value", ("componentId", "metricId")),
}


DAMAGED = lost(
    "nsys.damaged_table",
    "a table of the database cannot be read to its end: the file is cut or damaged, the rows before that were read",
)
UNKNOWN_STRING = absent(
    "nsys.unknown_string",
    "a row refers to a string that the export does not hold: the number of the string is shown instead",
)

ODD_VALUE = lost(
    "nsys.odd_value",
    "a number column holds another value, or a time that no session can have: it was left out, the rest "
    "of the row was read",
)


class Export(Tables):
    """The database of one input, with the text of each id of a string, and the tables that are read so far."""

    damaged: ClassVar[Code] = DAMAGED
    odd_value: ClassVar[Code] = ODD_VALUE
    kinds: ClassVar[dict[str, Kind]] = KINDS

    def __init__(self, database: Database, out: Builder) -> None:
        super().__init__(database, out)
        self.taken: set[str] = set(PROPERTIES)
        self._enums: dict[str, dict[int, str]] = {}
        self._stacks: dict[str, dict[Any, list[str]]] = {}
        self.strings: dict[Any, str] = {
            number: as_text(text) for number, text in self.rows("StringIds", ("id", "value")) if text is not None
        }

    def take(self, table: str) -> bool:
        """Return whether the table is there; it counts as read from now on."""
        self.taken.add(table)
        return table in self.tables

    def rows(self, table: str, columns: Sequence[str], *, order: Sequence[str] = ()) -> Iterator[Row]:
        """Yield the rows of a table one by one."""
        for _, portion in self.portions(table, columns, order=order):
            yield from portion

    def counted(self, table: str, columns: Sequence[str], *, order: Sequence[str] = ()) -> Iterator[tuple[int, Row]]:
        """Yield the rows of a table one by one with their positions; they are counted as read."""
        for first, portion in self.portions(table, columns, order=order):
            self._out.balance.read += len(portion)
            yield from enumerate(portion, first)

    def _possible(
        self, columns: Sequence[str], rows: Sequence[Row], report: Callable[[int, int, object], None]
    ) -> Sequence[Row]:
        for place, column in enumerate(columns):
            if column in TIMES:
                rows = _in_a_session(rows, place, report)
        return rows

    def text(self, number: Any) -> str:
        """Return the string of an id; "" for none."""
        known = self.strings.get(number)
        if known is None:
            if not number:  # NULL, and 0 in exports from before 2021
                return ""
            self._out.problem(UNKNOWN_STRING, f"StringIds {number}")
            known = self.strings[number] = f"[string {number}]"
        return known

    def enum(self, column: str, value: Any) -> Any:
        """Return the name of a number in a column, from the export, else the known one; the number if it has none."""
        if not isinstance(value, int):
            return value
        table, fallback = ENUMS[column]
        if column not in self._enums:
            rows = self.rows(table, ("id", "name", "label"))
            word = _copy_word if column == "copyKind" else lambda name, label: label or name
            self._enums[column] = {number: word(*names) for number, *names in rows} or fallback
        names = self._enums[column]
        return _cupti.named(names, value) if names else value

    def call_stack(self, table: str, number: Any) -> list[str]:
        """Return the frames of a stack, innermost first, as "function (module)"; [] if there is none."""
        stacks = CALL_STACKS.get(table, "")
        if not number or stacks not in self.tables:
            return []
        if stacks not in self._stacks:
            self._stacks[stacks] = self._read_stacks(stacks)
        return self._stacks[stacks].get(number, [])

    def _read_stacks(self, table: str) -> dict[Any, list[str]]:
        stacks: dict[Any, list[tuple[Any, Any, Any]]] = {}
        for number, depth, symbol, module in self.rows(table, ("id", "stackDepth", "symbol", "module")):
            stacks.setdefault(number, []).append((depth if isinstance(depth, int) else 0, symbol, module))
        frames: dict[tuple[Any, Any], str] = {}
        result: dict[Any, list[str]] = {}
        for number, stack in stacks.items():
            stack.sort(key=lambda frame: frame[0])
            result[number] = [
                frames.setdefault((symbol, module), self._frame(symbol, module)) for _, symbol, module in stack
            ]
        return result

    def _frame(self, symbol: Any, module: Any) -> str:
        where = self.text(module)
        return f"{self.text(symbol) or '[unknown]'} ({where})" if where else self.text(symbol) or "[unknown]"

    def args(self, table: str, values: dict[str, Any]) -> dict[str, Any]:
        """Return the columns of a row for the args, with names for enumerations, without missing values."""
        result: dict[str, Any] = {}
        for column, value in values.items():
            if value is None or value == "" or column in NOT_ARGS:
                continue
            if column in TEXT_IDS:
                value = self.text(value)
            elif column in ENUMS and not table.startswith("WDDM"):
                value = self.enum(column, value)
            elif column == "callchainId":
                column, value = "call_stack", self.call_stack(table, value)
            if value not in ("", []):
                result[ARG_NAMES.get(column, column)] = value
        return result


def _copy_word(name: Any, label: Any) -> str:
    """Return a kind of copy as CUDA's tools print it: CUDA_MEMCPY_KIND_HTOD -> HtoD, ..._UVM_HTOD -> unified HtoD."""
    return _COPY_WORDS.get(str(name or "").removeprefix("CUDA_MEMCPY_KIND_")) or str(label or name or "")


def _in_a_session(rows: Sequence[Row], place: int, report: Callable[[int, int, object], None]) -> Sequence[Row]:
    """Return the rows with None for impossible times."""
    limit = SESSION_LIMIT_NS
    times = [row[place] for row in rows]
    numbers = whole(times)
    if numbers is not None and -limit < np.min(numbers) and np.max(numbers) < limit:
        return rows
    beyond = {at for at, time in enumerate(times) if type(time) is int and not -limit < time < limit}
    for at in sorted(beyond):
        report(at, place, times[at])
    if not beyond:
        return rows
    return [(*row[:place], None, *row[place + 1 :]) if at in beyond else row for at, row in enumerate(rows)]


class Tracks:
    """The tracks of an export: processes, threads, devices and streams, each declared on first use."""

    def __init__(self, export: Export, out: Builder) -> None:
        self._export = export
        self._out = out
        self._known_tracks: dict[tuple[Any, ...], TrackId] = {}
        self._pids: dict[int, Any] = {}
        self._process_names: dict[int, str] = {}
        self.thread_names: dict[int, tuple[Any, str]] = {}
        self._labels: dict[int, list[str]] = {}
        self._streams: dict[tuple[Any, ...], list[str]] = {}
        self._stream_names: dict[tuple[Any, ...], str] = {}
        self._contexts: dict[tuple[Any, ...], list[str]] = {}
        self._device_names: dict[Any, str] = {}
        self._devices_of: dict[tuple[Any, Any], str] = {}
        self.gpus: dict[Any, str] = {}
        self._read_names()
        self._read_devices()
        self._read_streams()

    def _read_names(self) -> None:
        export = self._export
        for number, pid, name in export.rows("PROCESSES", ("globalPid", "pid", "name")):
            if isinstance(number, int):
                self._pids[process_of(number)] = pid
                self._process_names[process_of(number)] = str(name or "")
        for name, priority, number in export.rows("ThreadNames", ("nameId", "priority", "globalTid")):
            self.name_thread(number, priority, export.text(name))
        for number, rank in export.rows("MPI_RANKS", ("globalTid", "rank")):
            if isinstance(number, int):
                self._labels.setdefault(process_of(number), []).append(f"MPI rank {rank}")

    def name_thread(self, number: Any, priority: Any, name: str) -> None:
        """Keep the name of the highest priority."""
        rank = priority if isinstance(priority, int) else 0
        if isinstance(number, int) and name and rank >= self.thread_names.get(number, (rank, ""))[0]:
            self.thread_names[number] = (rank, name)

    def _read_devices(self) -> None:
        export = self._export
        columns = ("id", "deviceId", "cuDevice", "name", "smCount")
        for number, older, device, name, processors in export.rows("TARGET_INFO_GPU", columns):
            number = older if number is None else number  # until 2021
            self.gpus[number] = as_text(name or "")
            if processors != 0:  # else a display adapter, which stands there with the device 0
                self._device_names.setdefault(number if device is None else device, self.gpus[number])
        for gpu, device, pid in export.rows("TARGET_INFO_CUDA_DEVICE", ("gpuId", "cudaId", "pid")):
            if gpu in self.gpus:
                self._devices_of[pid, device] = self.gpus[gpu]
        for name, device in export.rows("TARGET_INFO_NVTX_CUDA_DEVICE", ("name", "deviceId")):
            known = self._device_names.get(device)
            self._device_names[device] = f"{known} ({name})" if known else str(name)

    def _read_streams(self) -> None:
        export = self._export
        ids = ("processId", "contextId", "streamId")
        for pid, context, stream, flag, priority in export.rows("TARGET_INFO_CUDA_STREAM", (*ids, "flag", "priority")):
            words = [str(export.enum("flag", flag)), f"priority {priority}"]
            self._streams[pid, context, stream] = [word for word in words if word != "None"]
        for pid, context, stream, parent, green in export.rows(
            "TARGET_INFO_CUDA_CONTEXT_INFO",
            ("processId", "contextId", "nullStreamId", "parentContextId", "isGreenContext"),
        ):
            self._stream_names[pid, context, stream] = "null stream of the context"
            if green:
                self._contexts[pid, context] = [f"green context of context {parent}"]
        for pid, context, stream in export.rows("TARGET_INFO_CUDA_NULL_STREAM", ids):  # until 2023
            self._stream_names[pid, context, stream] = "null stream of the context"
        for pid, context, stream, name in export.rows("TARGET_INFO_NVTX_CUDA_STREAM", (*ids, "name")):
            self._stream_names[pid, context, stream] = as_text(name)
        for pid, context, name in export.rows("TARGET_INFO_NVTX_CUDA_CONTEXT", ("processId", "contextId", "name")):
            self._contexts.setdefault((pid, context), []).insert(0, str(name))

    def only_process(self) -> int | None:
        """Return the only process of an export, since old tables of devices state none; None if there are several."""
        known = {key[1] for key in self._known_tracks if key[0] == "process"} | set(self._process_names)
        return known.pop() if len(known) == 1 else None

    def process(self, number: int) -> TrackId:
        number = process_of(number)
        track = self._known_tracks.get(("process", number))
        if track is None:
            pid = self._pids.get(number)
            pid = pid if isinstance(pid, int) else pid_of(number)
            track = self._out.tracks.process(self._process_names.get(number, ""), pid=pid)
            self._out.tracks[track].labels = tuple(dict.fromkeys(self._labels.get(number, ())))
            self._known_tracks["process", number] = track
        return track

    def thread(self, number: Any) -> TrackId:
        """Return the thread of a global id, or a track of its process if the id names no thread."""
        if not isinstance(number, int):
            return self.group("events without a thread")
        if not tid_of(number):
            return self.group("events without a thread", number)
        track = self._known_tracks.get(("thread", number))
        if track is None:
            name = self.thread_names.get(number, (0, ""))[1]
            track = self._out.tracks.thread(self.process(number), tid_of(number), name)
            self._known_tracks["thread", number] = track
        return track

    def group(self, title: str, number: Any = None, *, description: str = "") -> TrackId:
        """Return a track of the machine, or of the process of a global id; 0 is not a process."""
        parent = self.process(number) if isinstance(number, int) and pid_of(number) else NO_TRACK
        return self.part_of(parent, title, description=description)

    def metrics_of(self, number: Any) -> TrackId:
        """Return the parent of the metrics of a GPU: all share a group, as such groups are shown before processes."""
        name = self.gpus.get(number, "")
        return self.part_of(self.group("GPU metrics"), f"GPU {_shown(number)} {name}".strip())

    def device(self, process: Any, device: Any) -> TrackId:
        """Return a device as a process sees it."""
        parent = self.process(process) if isinstance(process, int) else NO_TRACK
        key = ("device", parent, device)
        if key not in self._known_tracks:
            pid = self._pid(process)
            name = self._devices_of.get((pid, device)) or self._device_names.get(device, "")
            self._known_tracks[key] = track = self._out.tracks.add(f"GPU {_shown(device)} {name}".strip(), parent)
            self._rank(track, device)
        return self._known_tracks[key]

    def context(self, process: Any, device: Any, context: Any, green: Any = None) -> TrackId:
        """Return a context on a device; a green one stands beside the one that it is a part of (0 is none, as NULL)."""
        number = green or context
        key = ("context", self.device(process, device), number)
        if key not in self._known_tracks:
            words = self._contexts.get((self._pid(process), number), [])
            title = f"Context {_shown(number)}" + (f" ({', '.join(words)})" if words else "")
            self._known_tracks[key] = track = self._out.tracks.add(title, self.device(process, device))
            self._rank(track, number)
        return self._known_tracks[key]

    def stream(self, process: Any, device: Any, context: Any, green: Any, stream: Any) -> TrackId:
        parent = self.context(process, device, context, green)
        key = ("stream", parent, stream)
        if key not in self._known_tracks:
            pid = self._pid(process)
            keys = (pid, context, stream), (pid, green, stream)
            name = next((self._stream_names[place] for place in keys if place in self._stream_names), "")
            words = [name] * bool(name) + next((self._streams[place] for place in keys if place in self._streams), [])
            title = f"Stream {_shown(stream)}" + (f" ({name})" if name else "")
            self._known_tracks[key] = track = self._out.tracks.add(title, parent, description=", ".join(words))
            self._rank(track, stream)
        return self._known_tracks[key]

    def part_of(self, parent: TrackId, title: str, *, description: str = "") -> TrackId:
        key = ("part", parent, title)
        if key not in self._known_tracks:
            self._known_tracks[key] = self._out.tracks.add(title, parent, description=description)
        return self._known_tracks[key]

    def counter(self, parent: TrackId, title: str, unit: str, *, description: str = "") -> TrackId:
        key = ("counter", parent, title)
        if key not in self._known_tracks:
            self._known_tracks[key] = self._out.tracks.counter(title, parent, unit=unit, description=description)
        return self._known_tracks[key]

    def _pid(self, process: Any) -> Any:
        return self._pids.get(process, pid_of(process)) if isinstance(process, int) else None

    def _rank(self, track: TrackId, number: Any) -> None:
        if isinstance(number, int) and 0 <= number < 10**6:
            self._out.tracks[track].rank = number


def _shown(number: Any) -> str:
    """Return the number of a device, context or stream in the name of its track."""
    return "(unknown)" if number is None else str(number)

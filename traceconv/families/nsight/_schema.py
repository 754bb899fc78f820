"""All numbers and names that the importer of Nsight Systems assumes about exports.

Sources: the vendor's "SQLite Schema Reference" and "SQLite Schema Event Values" (schema 3.28.1 of release 2026.4, and
the texts of 2020 and 2021.5), the enumerations that exports of 2024.4 to 2025.3 carry in their ENUM tables. Public
exports of 2020 to 2025.3 agree with it as far as they go: calls, kernels, copies, memsets, synchronization, NVTX
ranges, OS runtime, samples, schedules, overhead, messages, allocations. So do recordings of 2023.4 and 2025.3 on an
H100 (golden/nsight-systems/h100_*): GPU metrics, CUDA graphs, unified memory. Not seen in one: MPI, UCX, OpenACC,
OpenMP, page faults, payloads. A real export that differs refutes a line here.
"""

from __future__ import annotations

from typing import Final

from traceconv.families.common import cupti as _cupti
from traceconv.io.sqlite import Kind


def words(text: str) -> tuple[str, ...]:
    """Return the words of a list of names."""
    return tuple(text.split())


#: One of these tables makes a database an export of Nsight Systems, besides StringIds(id, value).
MARKS: Final = (
    "META_DATA_EXPORT",
    "EXPORT_META_DATA",
    "META_DATA_CAPTURE",
    "TARGET_INFO_SESSION_START_TIME",
    "TARGET_INFO_SYSTEM_ENV",
    "TARGET_INFO_GPU",
    "ANALYSIS_DETAILS",
    "ThreadNames",
    "ProcessStreams",
    "NVTX_EVENTS",
    "OSRT_API",
    "COMPOSITE_EVENTS",
    "SCHED_EVENTS",
    "CUPTI_ACTIVITY_KIND_RUNTIME",
    "CUPTI_ACTIVITY_KIND_KERNEL",
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
MEMORY_KIND: Final = {
    0: "pageable",
    1: "pinned",
    2: "device",
    3: "array",
    4: "managed",
    5: "device static",
    6: "managed static",
    7: "unknown",
}
ALLOCATION, DEALLOCATION = "allocation", "deallocation"
MEMORY_OPERATION: Final = {0: ALLOCATION, 1: DEALLOCATION}
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
#: CUDA_MEMCPY_KIND_UVM_HTOD -> the word for it.
COPY_SYMBOL: Final = "CUDA_MEMCPY_KIND_"
COPY_WORDS: Final = {word.upper().replace("UNIFIED ", "UVM_"): word for word in _cupti.MEMCPY_KIND.values()}
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
    "MPI_P2P_EVENTS": "mpi",
    "MPI_COLLECTIVES_EVENTS": "mpi",
    "MPI_START_WAIT_EVENTS": "mpi",
    "MPI_OTHER_EVENTS": "mpi",
    "UCP_SUBMIT_EVENTS": "ucp",
    "UCP_PROGRESS_EVENTS": "ucp",
    "UCP_EVENTS": "ucp",
    "OPENGL_API": "opengl",
    "VULKAN_API": "vulkan",
    "DX12_API": "dx12",
    "OPENMP": "openmp",
    "CUPTI_ACTIVITY_KIND_OPENACC_DATA": "openacc",
    "CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH": "openacc",
    "CUPTI_ACTIVITY_KIND_OPENACC_OTHER": "openacc",
    "CUDA_HOST_CALLBACK": "cuda_host_callback",
    "CUDA_GRAPH_NODE_EVENTS": "cuda_graph",
    "CUDA_GRAPH_EVENTS": "cuda_graph",
    "PROFILER_OVERHEAD": "overhead",
    "CUPTI_ACTIVITY_KIND_OVERHEAD": "overhead",
    "CUPTI_ACTIVITY_KIND_JIT": "overhead",
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

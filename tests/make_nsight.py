"""Synthetic exports of Nsight Systems, built from the description of the schema and the layouts of public exports.

    python -m tests.make_nsight          writes golden/nsight-systems/*/input.sqlite anew

Everything that is assumed about an export stands here: SCHEMA (the columns that the importer reads, as the vendor's
"SQLite Schema Reference" of 2020, 2021.5 and 2026.4 names them, and SCHEMA_2022 and SCHEMA_2024 as exports of 2022.1 to
2025.3 have them), ENUMS (as exports of 2024.4 to 2025.3 carry them), and the numbers in the functions below. Whoever
has a real export can check: `sqlite3 report.sqlite .schema`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Container, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parent.parent / "golden" / "nsight-systems"

#: Columns of the tables, newest layout.
SCHEMA = {
    "StringIds": "id value",
    "ThreadNames": "nameId priority globalTid",
    "PROCESSES": "globalPid pid name",
    "META_DATA_EXPORT": "name value",
    "META_DATA_CAPTURE": "name value",
    "TARGET_INFO_SYSTEM_ENV": "globalVid devStateName name nameEnum value",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs utcTime localTime systemClockNs",
    "ANALYSIS_DETAILS": "globalVid duration startTime stopTime",
    "TARGET_INFO_GPU": "vmId id name busLocation smCount uuid cuDevice",
    "TARGET_INFO_CUDA_DEVICE": "gpuId cudaId pid uuid numMultiprocessors",
    "TARGET_INFO_CUDA_CONTEXT_INFO": "nullStreamId vmId processId deviceId contextId parentContextId isGreenContext",
    "TARGET_INFO_CUDA_STREAM": "streamId hwId vmId processId contextId priority flag",
    "TARGET_INFO_NVTX_CUDA_STREAM": "name hwId vmId processId deviceId contextId streamId",
    "TARGET_INFO_GPU_METRICS": "typeId sourceId typeName metricId metricName",
    "GPU_METRICS": "rawTimestamp timestamp typeId metricId value",
    "MPI_RANKS": "globalTid rank",
    "CUPTI_ACTIVITY_KIND_RUNTIME": ("start end eventClass globalTid correlationId nameId returnValue callchainId"),
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        "start end deviceId contextId greenContextId streamId correlationId globalPid demangledName shortName "
        "mangledName launchType cacheConfig registersPerThread gridX gridY gridZ blockX blockY blockZ "
        "staticSharedMemory dynamicSharedMemory localMemoryPerThread localMemoryTotal gridId "
        "sharedMemoryExecuted graphNodeId sharedMemoryLimitConfig"
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY": (
        "start end deviceId contextId greenContextId streamId correlationId globalPid bytes copyKind deprecatedSrcId "
        "srcKind dstKind srcDeviceId srcContextId dstDeviceId dstContextId migrationCause graphNodeId "
        "virtualAddress copyCount"
    ),
    "CUPTI_ACTIVITY_KIND_MEMSET": (
        "start end deviceId contextId greenContextId streamId correlationId globalPid value bytes graphNodeId memKind"
    ),
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": (
        "start end deviceId contextId greenContextId streamId correlationId globalPid deprecatedSyncType "
        "syncType eventId"
    ),
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT": (
        "timestamp deviceId contextId greenContextId streamId correlationId globalPid eventId eventSyncId"
    ),
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": (
        "start end deviceId contextId greenContextId streamId correlationId globalPid graphId graphExecId"
    ),
    "CUDA_CALLCHAINS": "id symbol module unresolved originalIP stackDepth",
    "CUDA_UM_CPU_PAGE_FAULT_EVENTS": "start globalPid address originalFaultPc CpuInstruction module",
    "CUDA_UM_GPU_PAGE_FAULT_EVENTS": "start end globalPid deviceId address numberOfPageFaults faultAccessType",
    "CUDA_GPU_MEMORY_USAGE_EVENTS": (
        "start globalPid deviceId contextId address pc bytes memKind memoryOperationType name correlationId streamId"
    ),
    "NVTX_EVENTS": (
        "start end eventType rangeId category color text globalTid endGlobalTid textId domainId uint64Value int64Value "
        "doubleValue uint32Value int32Value floatValue jsonTextId jsonText binaryData"
    ),
    "OSRT_API": "start end eventClass globalTid correlationId nameId returnValue nestingLevel callchainId",
    "OSRT_CALLCHAINS": (
        "id symbol module kernelMode thumbCode unresolved specialEntry originalIP unwindMethod stackDepth"
    ),
    "CUBLAS_EVENTS": "start end eventClass globalTid nameId",
    "MPI_COLLECTIVES_EVENTS": "start end globalTid textId commHandle rootRank size recvSize requestHandle",
    "COMPOSITE_EVENTS": "id start cpu threadState globalTid cpuCycles",
    "SAMPLING_CALLCHAINS": (
        "id symbol module kernelMode thumbCode unresolved specialEntry originalIP unwindMethod stackDepth"
    ),
    "SCHED_EVENTS": "start cpu isSchedIn globalTid threadState threadBlock",
    "PROFILER_OVERHEAD": "start end globalTid nameId overheadType",
    "DIAGNOSTIC_EVENT": "timestamp timestampType source severity text globalPid",
    "GPU_CONTEXT_SWITCH_EVENTS": "tag vmId seqNo contextId timestamp globalPid gpuId",
    "NVTX_PAYLOAD_SCHEMAS": "domainId schemaId name type flags numEntries payloadSize alignTo",
}

#: How 2020 differs: no NULL (0 for what is not there), no globalPid, no processes, enumerations or start time.
SCHEMA_2020 = {
    "StringIds": "id value",
    "ThreadNames": "nameId priority globalTid",
    "TARGET_INFO_SYSTEM_ENV": "name value",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start end globalTid correlationId nameId returnValue",
    "CUPTI_ACTIVITY_KIND_DRIVER": "start end globalTid correlationId nameId returnValue",
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        "start end deviceId contextId streamId correlationId demangledName shortName registersPerThread gridX gridY "
        "gridZ blockX blockY blockZ staticSharedMemory dynamicSharedMemory localMemoryPerThread localMemoryTotal"
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY": "start end deviceId contextId streamId correlationId bytes copyKind srcId",
    "NVTX_EVENTS": "start end eventType rangeId category color text globalTid endGlobalTid textId domainId",
}

_GPU = "vmId id name busLocation isDiscrete totalMemory smCount pwGpuId uuid luid chipName cuDevice"
_SYNC = "deviceId contextId streamId correlationId globalPid syncType eventId"
#: How 2022 differs: no enumerations, descriptions and null streams in tables of other names, no green contexts.
SCHEMA_2022 = SCHEMA | {
    "EXPORT_META_DATA": "name value",
    "TARGET_INFO_GPU": _GPU,
    "TARGET_INFO_CUDA_NULL_STREAM": "streamId hwId vmId processId deviceId contextId",
    "CUPTI_ACTIVITY_KIND_KERNEL": SCHEMA["CUPTI_ACTIVITY_KIND_KERNEL"].replace("greenContextId ", ""),
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": f"start end {_SYNC}",
}
#: How 2024 differs from the newest: kernels of no green context have the green context 0, kinds of synchronization are
#: numbers of their own (of 2024.4 and 2024.5: 1 for cudaDeviceSynchronize, which the enumeration calls "Event sync").
SCHEMA_2024 = SCHEMA | {
    "TARGET_INFO_GPU": _GPU,
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": f"start end greenContextId {_SYNC}",
}

#: id, name, label.
ENUMS = {
    "ENUM_CUDA_MEMCPY_OPER": [
        (1, "CUDA_MEMCPY_KIND_HTOD", "Host-to-Device"),
        (2, "CUDA_MEMCPY_KIND_DTOH", "Device-to-Host"),
        (8, "CUDA_MEMCPY_KIND_DTOD", "Device-to-Device"),
        (11, "CUDA_MEMCPY_KIND_UVM_HTOD", "Unified Host-to-Device"),
        (12, "CUDA_MEMCPY_KIND_UVM_DTOH", "Unified Device-to-Host"),
    ],
    "ENUM_CUDA_MEM_KIND": [
        (0, "CUDA_MEMOPR_MEMORY_KIND_PAGEABLE", "Pageable"),
        (1, "CUDA_MEMOPR_MEMORY_KIND_PINNED", "Pinned"),
        (2, "CUDA_MEMOPR_MEMORY_KIND_DEVICE", "Device"),
        (4, "CUDA_MEMOPR_MEMORY_KIND_MANAGED", "Managed"),
    ],
    "ENUM_CUDA_DEV_MEM_EVENT_OPER": [
        (0, "CUDA_DEV_MEM_EVENT_OPR_ALLOCATION", "Allocation"),
        (1, "CUDA_DEV_MEM_EVENT_OPR_DEALLOCATION", "Deallocation"),
    ],
    "ENUM_CUDA_UNIF_MEM_MIGRATION": [(1, "USER", "User prefetch"), (2, "COHERENCE", "Page fault")],
    "ENUM_CUDA_UNIF_MEM_ACCESS_TYPE": [(1, "READ", "Read"), (2, "WRITE", "Write")],
    "ENUM_CUDA_KERNEL_LAUNCH_TYPE": [(1, "CUDA_KERNEL_LAUNCH_TYPE_REGULAR", "Regular")],
    "ENUM_CUPTI_STREAM_TYPE": [
        (1, "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_DEFAULT", "Default stream"),
        (2, "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING", "Non-blocking stream"),
        (3, "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NULL", "Null stream"),
    ],
    "ENUM_CUPTI_SYNC_TYPE": [
        (3, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE", "Stream sync"),
        (4, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE", "Context sync"),
    ],
    "ENUM_CUPTI_OVERHEAD_TYPE": [(3, "OVERHEAD_CUPTI_BUFFER_FLUSH", "Buffer flush")],
    "ENUM_SAMPLING_THREAD_STATE": [(1, "Running", "Running"), (2, "Interruptible", "Interruptible")],
    "ENUM_SCHEDULING_THREAD_BLOCK": [(0, "NonBlocked", "NonBlocked"), (7, "CondVar", "CondVar")],
    "ENUM_DIAGNOSTIC_SEVERITY_LEVEL": [(1, "Info", "Info"), (2, "Warning", "Warning"), (3, "Error", "Error")],
    "ENUM_DIAGNOSTIC_SOURCE_TYPE": [(1, "Injection", "Injection"), (3, "Analysis", "Analysis")],
}

#: Start of the synthetic session: 2026-11-21 10:00:00.123456789 UTC.
UTC_NS = 1795255200123456789
RUNTIME_CLASS, DRIVER_CLASS, OSRT_CLASS = 0, 1, 27
#: The stream of a synchronization with a whole context.
NO_STREAM = 2**32 - 1

Rows = Iterable[Mapping[str, Any]]


def global_id(pid: int, tid: int = 0, *, hardware: int = 0, vm: int = 0) -> int:
    """A global id as it is stored: signed, 8 bits hardware, 8 bits virtual machine, 24 bits process, 24 bits thread."""
    number = hardware << 56 | vm << 48 | pid << 24 | tid
    return number - 2**64 if number >= 2**63 else number


class Strings:
    """The table StringIds while a database is made up."""

    def __init__(self, first: int = 1) -> None:
        self.ids: dict[str, int] = {}
        self._first = first

    def __call__(self, text: str) -> int:
        return self.ids.setdefault(text, len(self.ids) + self._first)

    def rows(self) -> list[dict[str, Any]]:
        return [{"id": number, "value": text} for text, number in self.ids.items()]


def build(
    path: Path,
    tables: Mapping[str, Rows],
    *,
    schema: Mapping[str, str] = SCHEMA,
    enums: Mapping[str, list[tuple[int, str, str]]] = ENUMS,
    missing: Any = None,
    page_size: int = 512,
) -> None:
    """Write a database with these tables only, as exports are made lazily.

    Args:
        missing: what a column holds that a row does not give: NULL, or 0 before 2021.
        page_size: small pages keep small databases small; exports have pages of 4096 bytes.
    """
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f"PRAGMA page_size = {page_size}")
        for table, rows in tables.items():
            columns = schema[table].split()
            names = ", ".join(f'"{column}"' for column in columns)
            database.execute(f"CREATE TABLE {table} ({names})")
            marks = ", ".join("?" * len(columns))
            database.executemany(
                f"INSERT INTO {table} VALUES ({marks})", ([row.get(c, missing) for c in columns] for row in rows)
            )
        for table, words in enums.items():
            database.execute(f"CREATE TABLE {table} (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT)")
            database.executemany(f"INSERT INTO {table} VALUES (?, ?, ?)", words)
    database.close()


def kernel(string: Strings, name: str, start: int, dur: int, **more: Any) -> dict[str, Any]:
    """A row of CUPTI_ACTIVITY_KIND_KERNEL; `name` is the demangled one."""
    short = name.partition("<")[0].partition("(")[0].split()[-1].rpartition("::")[2]
    sizes = {"gridX": 128, "gridY": 1, "gridZ": 1, "blockX": 256, "blockY": 1, "blockZ": 1}
    memory = {"staticSharedMemory": 0, "dynamicSharedMemory": 8192, "localMemoryPerThread": 0, "localMemoryTotal": 0}
    row = {"start": start, "end": start + dur, "deviceId": 0, "contextId": 1, "streamId": 7, "registersPerThread": 32}
    names = {"demangledName": string(name), "shortName": string(short)}
    return row | names | sizes | memory | {"launchType": 1, "gridId": 1} | more


def call(string: Strings, name: str, thread: int, start: int, dur: int, **more: Any) -> dict[str, Any]:
    """A row of CUPTI_ACTIVITY_KIND_RUNTIME, or of other tables of calls."""
    row = {"start": start, "end": start + dur, "globalTid": thread, "nameId": string(name), "returnValue": 0}
    return {"eventClass": RUNTIME_CLASS, **row, **more}


# -- the cases --------------------------------------------------------------------------------------------------

RANK0, RANK1 = global_id(4100), global_id(4200)
MAIN0, WORKER0, MAIN1 = global_id(4100, 4100), global_id(4100, 4123), global_id(4200, 4200)
GEMM = "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128>(T1::Params)"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int, T2, T3)"


def session(path: Path) -> None:
    """Two ranks, each with a GPU of its own, and a little of everything that an export can hold."""
    string = Strings()
    tables: dict[str, Rows] = {
        "CUPTI_ACTIVITY_KIND_RUNTIME": _calls(string),
        "CUPTI_ACTIVITY_KIND_KERNEL": _kernels(string),
        **_copies(),
        **_nvtx(string),
        **_host(string),
        **_sampled(string),
        **_memory(string),
        **_metadata(string),
    }
    build(path, {"StringIds": string.rows(), **tables})


def _calls(string: Strings) -> list[dict[str, Any]]:
    launch, copy = "cudaLaunchKernel_v7000", "cudaMemcpyAsync_v3020"
    return [
        call(string, copy, MAIN0, 10_000, 4_000, correlationId=101),
        call(string, launch, MAIN0, 20_000, 3_000, correlationId=102, callchainId=1),
        call(string, "cuLaunchKernel", MAIN0, 20_500, 2_000, correlationId=103, eventClass=DRIVER_CLASS),
        call(string, launch, MAIN0, 30_000, 2_500, correlationId=104),
        call(string, "cudaMemsetAsync_v3020", MAIN0, 34_000, 1_500, correlationId=105),
        call(string, "cudaStreamSynchronize_v3020", MAIN0, 40_000, 60_000, correlationId=106),
        call(string, "cudaMalloc_v3020", WORKER0, 2_000, 1_000, returnValue=2),
        call(string, "cudaGraphLaunch_v10000", WORKER0, 50_000, 5_000, correlationId=107),
        call(string, launch, MAIN1, 21_000, 3_000, correlationId=102),
        call(string, copy, MAIN1, 26_000, 3_000, correlationId=103),
    ]


def _kernels(string: Strings) -> list[dict[str, Any]]:
    rank0 = {
        "globalPid": RANK0,
        "mangledName": string("_ZN7cutlass7Kernel2I37cutlass_80_tensorop_s1688gemm_128x128EEvNT_6ParamsE"),
    }
    return [
        kernel(string, GEMM, 24_000, 20_000, correlationId=102, **rank0),
        kernel(string, ADD, 33_000, 9_000, correlationId=104, globalPid=RANK0, streamId=13, gridId=2, blockX=128),
        kernel(string, GEMM, 25_000, 21_000, correlationId=102, globalPid=RANK1, deviceId=1, gridId=1),
    ]


def _copies() -> dict[str, Rows]:
    stream = {"deviceId": 0, "contextId": 1, "streamId": 7, "globalPid": RANK0}
    unified = {"deviceId": 0, "contextId": 1, "streamId": 0, "globalPid": RANK0, "srcKind": 4, "dstKind": 4}
    return {
        "CUPTI_ACTIVITY_KIND_MEMCPY": [
            {
                **stream,
                "start": 14_000,
                "end": 22_192,
                "correlationId": 101,
                "bytes": 1 << 16,
                "copyKind": 1,
                "srcKind": 1,
                "dstKind": 2,
            },
            {
                **unified,
                "start": 60_000,
                "end": 60_000,
                "bytes": 4096,
                "copyKind": 11,
                "migrationCause": 2,
                "virtualAddress": 0x7F0000000000,
            },
            {
                **stream,
                "globalPid": RANK1,
                "deviceId": 1,
                "start": 47_000,
                "end": 48_000,
                "correlationId": 103,
                "bytes": 2000,
                "copyKind": 2,
                "srcKind": 2,
                "dstKind": 0,
            },
        ],
        "CUPTI_ACTIVITY_KIND_MEMSET": [
            {**stream, "start": 45_000, "end": 46_000, "correlationId": 105, "value": 0, "bytes": 1024, "memKind": 2}
        ],
        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": [
            {
                **stream,
                "streamId": 14,
                "start": 56_000,
                "end": 90_000,
                "correlationId": 107,
                "graphId": 1,
                "graphExecId": 3,
            }
        ],
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": [
            {**stream, "start": 40_500, "end": 99_500, "correlationId": 106, "syncType": 3, "eventId": 0},
            {**stream, "streamId": NO_STREAM, "start": 100_000, "end": 101_000, "syncType": 4, "eventId": NO_STREAM},
        ],
        "CUPTI_ACTIVITY_KIND_CUDA_EVENT": [
            {**stream, "timestamp": 46_500, "correlationId": 108, "eventId": 5, "eventSyncId": 1},
            {**stream, "timestamp": 0, "correlationId": 109, "eventId": 6},
        ],
    }


def _nvtx(string: Strings) -> dict[str, Rows]:
    def event(kind: int, thread: int, start: int, end: int | None = None, **more: Any) -> dict[str, Any]:
        return {"eventType": kind, "globalTid": thread, "start": start, "end": end, "domainId": 0, **more}

    return {
        "NVTX_EVENTS": [
            event(75, MAIN0, 0, text="NCCL", domainId=1),
            event(33, MAIN0, 0, category=3, text="collective", domainId=1),
            event(39, WORKER0, 0, text="data loader"),
            event(59, MAIN0, 9_000, 110_000, text="step 0", color=-16711936),
            event(59, MAIN0, 19_000, 33_500, textId=string("forward"), uint64Value=-1),
            event(
                59,
                MAIN0,
                35_700,
                39_000,
                textId=string("ncclAllReduce"),
                domainId=1,
                category=3,
                jsonText='{"bytes": 4096}',
            ),
            event(59, MAIN1, 20_500, 30_000, text="forward", doubleValue=0.5),
            event(60, MAIN0, 15_000, 70_000, text="prefetch", endGlobalTid=WORKER0, rangeId=1),
            event(60, WORKER0, 60_000, 80_000, text="prefetch", endGlobalTid=WORKER0, rangeId=2, domainId=1),
            event(34, WORKER0, 55_000, text="batch ready", int32Value=-7),
            event(59, WORKER0, 1_000, None, text="loading"),
            event(76, MAIN0, 120_000, domainId=1),
        ],
        "NVTX_PAYLOAD_SCHEMAS": [{"domainId": 1, "schemaId": 1, "name": "nccl", "numEntries": 2}],
    }


def _host(string: Strings) -> dict[str, Rows]:
    libc, python = string("/usr/lib/libc.so.6"), string("/usr/bin/python3")
    return {
        "OSRT_API": [
            call(
                string,
                "pthread_cond_wait",
                WORKER0,
                4_000,
                46_000,
                eventClass=OSRT_CLASS,
                nestingLevel=0,
                callchainId=9,
            ),
            call(
                string, "poll", global_id(4100, 4150), 0, 100_000, eventClass=OSRT_CLASS, nestingLevel=0, callchainId=0
            ),
        ],
        "OSRT_CALLCHAINS": [
            {"id": 9, "stackDepth": 1, "symbol": string("worker_loop"), "module": python},
            {"id": 9, "stackDepth": 0, "symbol": string("__futex_wait"), "module": libc},
        ],
        "CUDA_CALLCHAINS": [
            {"id": 1, "stackDepth": 0, "symbol": string("launch_gemm"), "module": python},
            {"id": 1, "stackDepth": 1, "symbol": string("main"), "module": python},
        ],
        "CUBLAS_EVENTS": [call(string, "cublasSgemm", MAIN0, 19_500, 4_000)],
        "MPI_COLLECTIVES_EVENTS": [
            {
                "start": 36_000,
                "end": 38_000,
                "globalTid": MAIN0,
                "textId": string("MPI_Allreduce"),
                "commHandle": 1,
                "size": 4096,
                "recvSize": 4096,
            }
        ],
        "PROFILER_OVERHEAD": [
            {"start": 102_000, "end": 103_000, "globalTid": MAIN0, "nameId": string("CUPTI flush"), "overheadType": 3}
        ],
    }


def _sampled(string: Strings) -> dict[str, Rows]:
    python = string("/usr/bin/python3")
    gpu0, gpu1 = 0x0500_0001_0000_0100, 0x0500_0001_0000_0101
    metrics = [
        (gpu, number, name)
        for gpu in (gpu0, gpu1)
        for number, name in ((1, "GPC Clock Frequency [MHz]"), (2, "SMs Active [Throughput %]"))
    ]
    return {
        "COMPOSITE_EVENTS": [
            {"id": 1, "start": 11_000, "cpu": 2, "threadState": 1, "globalTid": MAIN0, "cpuCycles": 900},
            {"id": 2, "start": 12_000, "cpu": 2, "threadState": 1, "globalTid": MAIN0, "cpuCycles": 1000},
            {"id": 4, "start": 13_000, "cpu": 3, "threadState": 1, "globalTid": MAIN1, "cpuCycles": 1000},
        ],
        "SAMPLING_CALLCHAINS": [
            {"id": 1, "stackDepth": 0, "symbol": string("memcpy"), "module": python},
            {"id": 1, "stackDepth": 1, "symbol": string("main"), "module": python},
            {"id": 2, "stackDepth": 0, "symbol": string("launch_gemm"), "module": python},
            {"id": 2, "stackDepth": 1, "symbol": string("main"), "module": python},
            {"id": 3, "stackDepth": 0, "symbol": string("nobody"), "module": python},
        ],
        "SCHED_EVENTS": [
            {"start": 1_000, "cpu": 2, "isSchedIn": 1, "globalTid": MAIN0},
            {"start": 41_000, "cpu": 2, "isSchedIn": 0, "globalTid": MAIN0, "threadState": 2, "threadBlock": 7},
            {"start": 99_000, "cpu": 5, "isSchedIn": 1, "globalTid": MAIN0},
            {"start": 4_500, "cpu": 3, "isSchedIn": 0, "globalTid": WORKER0, "threadState": 2},
        ],
        "TARGET_INFO_GPU_METRICS": [
            {"typeId": gpu, "sourceId": 1, "typeName": "GPU Metrics", "metricId": n, "metricName": name}
            for gpu, n, name in metrics
        ],
        "GPU_METRICS": [
            {"timestamp": 10_000 * step, "typeId": gpu, "metricId": n, "value": step * n * 10}
            for step in range(3)
            for gpu, n, _ in metrics
        ],
        "GPU_CONTEXT_SWITCH_EVENTS": [
            {"tag": 7, "vmId": 0, "seqNo": 1, "contextId": 1, "timestamp": 23_000, "globalPid": RANK0, "gpuId": 0}
        ],
    }


def _memory(string: Strings) -> dict[str, Rows]:
    base = {"globalPid": RANK0, "deviceId": 0, "contextId": 1, "memKind": 2}
    return {
        "CUDA_GPU_MEMORY_USAGE_EVENTS": [
            {**base, "start": 2_500, "address": 0x1000, "bytes": 65536, "memoryOperationType": 0},
            {**base, "start": 105_000, "address": 0x1000, "bytes": 65536, "memoryOperationType": 1},
            {**base, "start": 3_000, "address": 0x9000, "bytes": 1024, "memoryOperationType": 0},
            {**base, "start": 1_000, "address": 0x5000, "bytes": 512, "memoryOperationType": 1},
        ],
        "CUDA_UM_CPU_PAGE_FAULT_EVENTS": [
            {
                "start": 61_000,
                "globalPid": RANK0,
                "address": 0x7F0000000000,
                "CpuInstruction": string("touch"),
                "module": string("/usr/bin/python3"),
            }
        ],
        "CUDA_UM_GPU_PAGE_FAULT_EVENTS": [
            {
                "start": 58_000,
                "end": 60_000,
                "globalPid": RANK0,
                "deviceId": 0,
                "address": 0x7F0000000000,
                "numberOfPageFaults": 12,
                "faultAccessType": 2,
            }
        ],
        "DIAGNOSTIC_EVENT": [
            {
                "timestamp": 0,
                "timestampType": 1,
                "source": 1,
                "severity": 1,
                "text": "Common injection library initialized successfully.",
                "globalPid": RANK0,
            },
            {
                "timestamp": 120_000,
                "timestampType": 2,
                "source": 3,
                "severity": 2,
                "text": "CUDA device 1: Unified Memory cannot be traced.",
            },
        ],
    }


def _metadata(string: Strings) -> dict[str, Rows]:
    streams = [(7, 4100, 1), (13, 4100, 2), (14, 4100, 2), (7, 4200, 1)]
    return {
        "ThreadNames": [
            {"nameId": string("python3"), "priority": 10, "globalTid": MAIN0},
            {"nameId": string("pt_main_thread"), "priority": 20, "globalTid": MAIN0},
            {"nameId": string("python3"), "priority": 10, "globalTid": MAIN1},
        ],
        "PROCESSES": [
            {"globalPid": RANK0, "pid": 4100, "name": "/usr/bin/python3"},
            {"globalPid": RANK1, "pid": 4200, "name": "/usr/bin/python3"},
        ],
        "MPI_RANKS": [{"globalTid": MAIN0, "rank": 0}, {"globalTid": MAIN1, "rank": 1}],
        "META_DATA_EXPORT": [
            {"name": "EXPORT_SCHEMA_VERSION", "value": "3.16.1"},
            {"name": "EXPORT_PRODUCT_VERSION", "value": "2024.6.2.225"},
        ],
        "META_DATA_CAPTURE": [{"name": "CAPTURE_TRACE_OPTIONS", "value": "cuda,nvtx,osrt"}],
        "TARGET_INFO_SYSTEM_ENV": [{"devStateName": "System", "name": "Hostname", "nameEnum": 3, "value": "node17"}],
        "TARGET_INFO_SESSION_START_TIME": [
            {"utcEpochNs": UTC_NS, "utcTime": "2026-11-21 10:00:00", "localTime": "2026-11-21 11:00:00"}
        ],
        "ANALYSIS_DETAILS": [{"globalVid": 0, "duration": 130_000, "startTime": 0, "stopTime": 130_000}],
        "TARGET_INFO_GPU": [
            {"vmId": 0, "id": n, "name": "NVIDIA A100-SXM4-40GB", "busLocation": f"0000:0{n}:00.0", "cuDevice": n}
            for n in (0, 1)
        ],
        "TARGET_INFO_CUDA_DEVICE": [{"gpuId": 0, "cudaId": 0, "pid": 4100}, {"gpuId": 1, "cudaId": 1, "pid": 4200}],
        "TARGET_INFO_CUDA_CONTEXT_INFO": [
            {"nullStreamId": 7, "processId": pid, "deviceId": n, "contextId": 1} for n, pid in enumerate((4100, 4200))
        ],
        "TARGET_INFO_CUDA_STREAM": [
            {"streamId": stream, "processId": pid, "contextId": 1, "priority": 0, "flag": flag}
            for stream, pid, flag in streams
        ],
        "TARGET_INFO_NVTX_CUDA_STREAM": [
            {"name": "copies", "processId": 4100, "deviceId": 0, "contextId": 1, "streamId": 13}
        ],
    }


def export_2020(path: Path) -> None:
    """An export of 2020: zeros for what is not there, no processes of kernels, driver calls in a table of their own."""
    string = Strings()
    thread = global_id(900, 900, hardware=0x80, vm=1)
    kernels = [kernel(string, ADD, 3_000, 5_000, correlationId=2)]
    tables: dict[str, Rows] = {
        "CUPTI_ACTIVITY_KIND_RUNTIME": [call(string, "cudaLaunchKernel_v7000", thread, 1_000, 1_500, correlationId=2)],
        "CUPTI_ACTIVITY_KIND_DRIVER": [call(string, "cuMemAlloc_v2", thread, -500, 900, correlationId=1)],
        "CUPTI_ACTIVITY_KIND_KERNEL": kernels,
        "CUPTI_ACTIVITY_KIND_MEMCPY": [
            {
                "start": 9_000,
                "end": 9_500,
                "deviceId": 0,
                "contextId": 1,
                "streamId": 7,
                "correlationId": 0,
                "bytes": 4000,
                "copyKind": 2,
            }
        ],
        "NVTX_EVENTS": [
            {"start": 800, "end": 9_000, "eventType": 59, "text": "epoch", "globalTid": thread},
            {
                "start": 2_000,
                "end": 0,
                "eventType": 34,
                "text": "",
                "textId": string("registered mark"),
                "globalTid": thread,
            },
            {"start": 2_500, "end": 0, "eventType": 59, "text": "never ended", "globalTid": thread},
        ],
        "ThreadNames": [{"nameId": string("trainer"), "priority": 0, "globalTid": thread}],
        "TARGET_INFO_SYSTEM_ENV": [],
    }
    build(path, {"StringIds": string.rows(), **tables}, schema=SCHEMA_2020, enums={}, missing=0)


def _older(string: Strings, green: int | None) -> dict[str, Rows]:
    """A launch and its kernel, and a synchronization with the context, before 2025."""
    gpu = {"vmId": 1 << 48, "isDiscrete": 1}
    return {
        "CUPTI_ACTIVITY_KIND_RUNTIME": [
            call(string, "cudaLaunchKernel_v7000", MAIN0, 1_000, 500, correlationId=2),
            call(string, "cudaDeviceSynchronize_v3020", MAIN0, 2_000, 7_000, correlationId=3),
        ],
        "CUPTI_ACTIVITY_KIND_KERNEL": [
            kernel(string, ADD, 3_000, 5_000, correlationId=2, globalPid=RANK0, greenContextId=green)
        ],
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": [
            {"start": 2_100, "end": 8_900, "deviceId": 0, "contextId": 1, "greenContextId": green}
            | {"streamId": NO_STREAM, "correlationId": 3, "globalPid": RANK0, "syncType": 1, "eventId": NO_STREAM}
        ],
        "TARGET_INFO_GPU": [
            gpu | {"id": 0, "name": "NVIDIA A100-SXM4-40GB", "smCount": 108, "cuDevice": 0},
            gpu | {"id": 1, "name": "Display adapter", "smCount": 0, "cuDevice": 0},
        ],
        "TARGET_INFO_SESSION_START_TIME": [{"utcEpochNs": UTC_NS}],
    }


def export_2022(path: Path) -> None:
    """An export of 2022: descriptions and null streams in tables of other names, a display adapter among the GPUs."""
    string = Strings()
    tables = _older(string, None) | {
        "EXPORT_META_DATA": [{"name": "EXPORT_PRODUCT_VERSION", "value": "2022.2.1.31"}],
        "TARGET_INFO_CUDA_NULL_STREAM": [
            {"streamId": 7, "hwId": 0, "vmId": 1, "processId": 4100, "deviceId": 0, "contextId": 1}
        ],
        "TARGET_INFO_CUDA_STREAM": [{"streamId": 7, "processId": 4100, "contextId": 1, "priority": 0, "flag": 3}],
    }
    build(path, {"StringIds": string.rows(), **tables}, schema=SCHEMA_2022, enums={})


def export_2024(path: Path) -> None:
    """An export of 2024.5: the green context 0 is none, and a message belongs to no process."""
    string = Strings()
    tables = _older(string, 0) | {
        "META_DATA_EXPORT": [{"name": "EXPORT_PRODUCT_VERSION", "value": "2024.5.1.113"}],
        "DIAGNOSTIC_EVENT": [
            {"timestamp": 100, "timestampType": 1, "source": 3, "severity": 1, "text": "Done.", "globalPid": -(2**57)}
        ],
    }
    build(path, {"StringIds": string.rows(), **tables}, schema=SCHEMA_2024)


def emit_nvtx(path: Path) -> None:
    """Ranges of PyTorch for operators, with shapes, inside of ranges of the program; the backward pass has a thread."""
    string = Strings()

    def pushed(thread: int, start: int, end: int, text: str) -> dict[str, Any]:
        return {"eventType": 59, "globalTid": thread, "start": start, "end": end, "domainId": 0, "textId": string(text)}

    shapes = "sizes = [[3], [2, 4], [4, 3], [], []], input_op_ids = [(0,-1), (11,0), (12,0), (0,-1), (0,-1)]"
    node = "AddmmBackward0, seq = 45328, op_id = 21"
    tables: dict[str, Rows] = {
        "CUPTI_ACTIVITY_KIND_RUNTIME": [
            call(string, "cudaLaunchKernel_v7000", thread, start, 500, correlationId=number)
            for number, (thread, start) in enumerate(
                ((MAIN0, 13_000), (WORKER0, 33_000), (WORKER0, 34_000), (MAIN0, 41_000)), 1
            )
        ],
        "CUPTI_ACTIVITY_KIND_KERNEL": [
            kernel(string, name, start, dur, correlationId=number, globalPid=RANK0)
            for number, (name, start, dur) in enumerate(
                ((GEMM, 14_000, 4_000), (GEMM, 35_000, 2_000), (GEMM, 37_000, 1_000), (ADD, 42_000, 300)), 1
            )
        ],
        "NVTX_EVENTS": [
            pushed(MAIN0, 10_000, 20_000, "## forward, loss ##"),
            pushed(MAIN0, 11_000, 16_000, f"aten::linear, seq = 45328, op_id = 12, {shapes.partition(', input')[0]}"),
            pushed(MAIN0, 12_000, 15_000, f"aten::addmm, seq = 45328, op_id = 13, {shapes}"),
            pushed(WORKER0, 31_000, 36_000, f"autograd::engine::evaluate_function: {node}"),
            pushed(WORKER0, 32_000, 35_500, node.replace("21", "22")),
            pushed(WORKER0, 32_500, 33_700, "aten::mm, op_id = 23"),
            pushed(WORKER0, 33_800, 34_600, "aten::mm, op_id = 24, sizes = [[2, 4], [4, "),
            pushed(MAIN0, 40_000, 43_000, "update, lr = 3, op_id = x"),
            pushed(MAIN0, 40_500, 42_500, "Optimizer.step#SGD.step, op_id = 31"),
        ],
    }
    build(path, {"StringIds": string.rows(), **tables}, enums={})


def odd_rows(path: Path) -> None:
    """Rows that no export should hold: dangling ids, no times, times that are not numbers, ends before starts."""
    string = Strings()
    kernels = [
        kernel(string, GEMM, 1_000, 500, correlationId=1, globalPid=RANK0),
        kernel(string, GEMM, 2_000, -300, correlationId=2**40, globalPid=RANK0),
        kernel(string, GEMM, 3_000, 10, globalPid=RANK0) | {"demangledName": 777, "shortName": None},
        kernel(string, GEMM, 4_000, 10, globalPid=RANK0) | {"start": None},
        kernel(string, GEMM, 5_000, 10, globalPid=RANK0) | {"start": "soon"},
        kernel(string, GEMM, 6_000, 10, globalPid=None, deviceId=None, contextId=None, streamId=None),
        kernel(string, GEMM, 7_000, 10, globalPid=global_id(55), correlationId=1),
        kernel(string, GEMM, 2**50, 2**50, globalPid=RANK0),
    ]
    tables: dict[str, Rows] = {
        "CUPTI_ACTIVITY_KIND_KERNEL": kernels,
        "CUPTI_ACTIVITY_KIND_RUNTIME": [
            call(string, "cudaLaunchKernel_v7000", MAIN0, -5_000, 5_200, correlationId=1),
            call(string, "cudaLaunchKernel_v7000", MAIN0, 900, 50, correlationId=1) | {"globalTid": None},
        ],
        "NVTX_EVENTS": [
            {"start": 10, "end": 20, "eventType": 99, "globalTid": MAIN0, "text": "of a newer version"},
            {"start": None, "end": 20, "eventType": 34, "globalTid": MAIN0, "text": "nowhere"},
            {"start": 50, "eventType": 34, "globalTid": MAIN0},
            {"start": 60, "end": 70, "eventType": 59, "globalTid": MAIN0, "text": "bad payload", "jsonText": "{oops"},
        ],
        "GPU_METRICS": [
            {"timestamp": 100, "typeId": 3, "metricId": 1, "value": 5},
            {"timestamp": 200, "typeId": 3, "metricId": 1, "value": "n/a"},
        ],
    }
    build(path, {"StringIds": string.rows(), **tables}, enums={})


def empty(path: Path) -> None:
    """An export of a report in which nothing was recorded."""
    build(
        path,
        {
            "StringIds": [{"id": 0, "value": "unused"}],
            "META_DATA_EXPORT": [{"name": "EXPORT_SCHEMA_VERSION", "value": "3.16.1"}],
        },
        enums={},
    )


def many_kernels(path: Path, count: int) -> None:
    """For measurements: launches and their kernels, of a few dozen names, on four streams of one process."""
    string = Strings()
    names = [f"void kernel_{n}<float, {n}>(float const*, float*, int)" for n in range(40)]
    base = [kernel(string, name, 0, 0, globalPid=RANK0) for name in names]
    launch = call(string, "cudaLaunchKernel_v7000", MAIN0, 0, 0)

    def kernels() -> Iterable[dict[str, Any]]:
        for n in range(count):
            start = 2_000 + n * 1_000
            row = {
                "start": start,
                "end": start + 800 + n % 100,
                "correlationId": n + 1,
                "gridId": n,
                "streamId": 7 + n % 4,
            }
            yield base[n % 40] | row | {"gridX": 1 + n % 16}

    def calls() -> Iterable[dict[str, Any]]:
        return (launch | {"start": n * 1_000, "end": n * 1_000 + 600, "correlationId": n + 1} for n in range(count))

    tables: dict[str, Rows] = {
        "StringIds": string.rows(),
        "META_DATA_EXPORT": [],
        "CUPTI_ACTIVITY_KIND_KERNEL": kernels(),
        "CUPTI_ACTIVITY_KIND_RUNTIME": calls(),
    }
    build(path, tables, enums={}, page_size=4096)


def never_set(path: Path, zeros: Container[int] = (9, 25, 41), ends: bool = False) -> None:
    """50 kernels; CUPTI could not collect the times of some of them, and left 0. `ends`: only as start."""
    string = Strings()
    calls, kernels = [], []
    for n in range(50):
        number, start = n + 1, 3_000_000 + n * 100_000
        calls.append(call(string, "cudaLaunchKernel_v7000", MAIN0, start, 6_000, correlationId=number))
        row = kernel(string, GEMM, start + 10_000, 80_000, globalPid=RANK0, correlationId=number)
        unset = {"start": 0} if ends else {"start": 0, "end": 0}
        kernels.append(row | unset if n in zeros else row)
    tables: dict[str, Rows] = {"CUPTI_ACTIVITY_KIND_KERNEL": kernels, "CUPTI_ACTIVITY_KIND_RUNTIME": calls}
    build(path, {"StringIds": string.rows(), **tables}, enums={})


def cut(path: Path) -> None:
    """The first half of an export, as a full disk leaves it: SQLite refuses it as a whole."""
    many_kernels(path, 100)
    data = path.read_bytes()
    path.write_bytes(data[: 4096 * (len(data) // 4096 // 2)])


def damaged(path: Path) -> None:
    """An export with a page that was never written: what comes before it in its table can be read."""
    many_kernels(path, 200)
    data = bytearray(path.read_bytes())
    page = len(data) // 4096 // 2
    data[4096 * page : 4096 * (page + 1)] = b"\xff" * 4096
    path.write_bytes(data)


CASES = {
    "session": session,
    "export_2020": export_2020,
    "export_2022": export_2022,
    "export_2024": export_2024,
    "odd_rows": odd_rows,
    "emit_nvtx": emit_nvtx,
    "never_set": never_set,
    "empty": empty,
    "cut": cut,
    "damaged": damaged,
}

if __name__ == "__main__":
    for name, make in CASES.items():
        (GOLDEN / name).mkdir(parents=True, exist_ok=True)
        make(GOLDEN / name / "input.sqlite")

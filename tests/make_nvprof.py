"""Synthetic databases of nvprof, since no GPU that nvprof can trace is at hand.

What these databases assume of real ones is in this module, in SCHEMA, ASSUMED and `Profile`; a real file that says
otherwise refutes it here. The schema is that of CUDA 10: compared with public databases of
versions 11, 12 and 22, it lacks tables and columns that are not read, and is right in the rest. Each case of CASES is
written by

    python -m tests.make_nvprof

to golden/nvprof/<case>/input.nvvp, unless it is there already.
"""

from __future__ import annotations

import sqlite3
import struct
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

#: Bytes; the default of 4096 would make large files of small ones.
PAGE = 512
PREFIX = "CUPTI_ACTIVITY_KIND_"

#: Columns after `_id_` of the tables that are filled here; "!" marks the columns that hold bytes.
SCHEMA = {
    "RUNTIME": "cbid start end processId threadId correlationId returnValue",
    "DRIVER": "cbid start end processId threadId correlationId returnValue",
    "CONCURRENT_KERNEL": (
        "cacheConfig! sharedMemoryConfig registersPerThread partitionedGlobalCacheRequested "
        "partitionedGlobalCacheExecuted start end completed deviceId contextId streamId gridX gridY gridZ blockX "
        "blockY blockZ staticSharedMemory dynamicSharedMemory localMemoryPerThread localMemoryTotal correlationId "
        "gridId name queued submitted launchType isSharedMemoryCarveoutRequested sharedMemoryCarveoutRequested "
        "sharedMemoryExecuted"
    ),
    "CDP_KERNEL": (
        "cacheConfig! sharedMemoryConfig registersPerThread start end deviceId contextId streamId gridX gridY "
        "gridZ blockX blockY blockZ staticSharedMemory dynamicSharedMemory localMemoryPerThread localMemoryTotal "
        "correlationId gridId parentGridId queued submitted completed parentBlockX parentBlockY parentBlockZ name"
    ),
    "MEMCPY": (
        "copyKind srcKind dstKind flags bytes start end deviceId contextId streamId correlationId runtimeCorrelationId"
    ),
    "MEMCPY2": (
        "copyKind srcKind dstKind flags bytes start end deviceId contextId streamId srcDeviceId srcContextId "
        "dstDeviceId dstContextId correlationId"
    ),
    "MEMSET": "value bytes start end deviceId contextId streamId correlationId flags memoryKind",
    "MEMORY": "memoryKind address bytes start end allocPC freePC processId deviceId contextId name",
    "MARKER": "flags timestamp id objectKind objectId! name domain",
    "MARKER_DATA": "flags id payloadKind payload! color category",
    "NAME": "objectKind objectId! name",
    "SYNCHRONIZATION": "type start end correlationId contextId streamId cudaEventId",
    "CUDA_EVENT": "correlationId contextId streamId eventId",
    "EXTERNAL_CORRELATION": "externalKind externalId correlationId",
    "OVERHEAD": "overheadKind objectKind objectId! start end",
    "UNIFIED_MEMORY_COUNTER": "counterKind value start end address srcId dstId streamId processId flags",
    "ENVIRONMENT": "deviceId timestamp environmentKind data!",
    "EVENT": "id value domain correlationId",
    "EVENT_INSTANCE": "id domain instance value correlationId",
    "METRIC": "id value! correlationId flags",
    "METRIC_INSTANCE": "id value! instance correlationId flags",
    "INSTANTANEOUS_EVENT": "id value timestamp deviceId",
    "INSTANTANEOUS_METRIC": "id value! timestamp deviceId flags",
    "DEVICE": (
        "flags globalMemoryBandwidth globalMemorySize constantMemorySize l2CacheSize numThreadsPerWarp "
        "coreClockRate numMemcpyEngines numMultiprocessors computeCapabilityMajor computeCapabilityMinor id "
        "eccEnabled uuid! name"
    ),
    "CONTEXT": "contextId deviceId computeApiKind nullStreamId",
    "STREAM": "contextId streamId priority flag correlationId",
    "PREEMPTION": "preemptionKind timestamp gridId blockX blockY blockZ",
    "OPENACC_DATA": (
        "eventKind parentConstruct version implicit deviceType deviceNumber threadId async asyncMap lineNo "
        "endLineNo funcLineNo funcEndLineNo start end cuDeviceId cuContextId cuStreamId cuProcessId cuThreadId "
        "externalId srcFile funcName bytes hostPtr devicePtr varName"
    ),
    "OPENMP": "eventKind version threadId start end cuProcessId cuThreadId",
    "SOURCE_LOCATOR": "id lineNumber fileName",
    "PC_SAMPLING": "flags sourceLocatorId correlationId functionId latencySamples samples stallReason pcOffset",
}

#: Each table has an index on the first of these that it has.
INDEXED = ("correlationId", "timestamp", "start")

#: What the generated rows use as numbers with a meaning.
ASSUMED = {
    "schema version": 11,
    "times": "nanoseconds since 1970",
    "thread id": "lower 32 bits of the pthread handle, stored as a signed number",
    "cbid cudaMalloc": 20,
    "cbid cudaMemcpy": 31,
    "cbid cudaMemcpyAsync": 41,
    "cbid cudaEventRecord": 135,
    "cbid cudaDeviceSynchronize": 165,
    "cbid cudaLaunchKernel": 211,
    "cbid cuLaunchKernel": 307,
    "cbid cudaMemset": 49,
    "copy HtoD": 1,
    "copy DtoH": 2,
    "copy PtoP": 10,
    "memory pageable": 1,
    "memory pinned": 2,
    "memory device": 3,
    "no stream": 0xFFFFFFFF,
    "cpu": 0xFFFFFFFF,
}
EPOCH = 1_511_000_000_000_000_000  # 18 November 2017
PID = 4711
THREAD = -1437227136
HALF = struct.pack("<d", 0.5)


def process_thread(pid: int = PID, thread: int = THREAD) -> bytes:
    """An object id of a process or thread."""
    return struct.pack("<III", pid, thread & 0xFFFFFFFF, 0)


class Profile:
    """A database that is being filled.

    Args:
        path: where; must not exist.
        schema: other columns for some tables, as other versions have; None leaves a table out.
    """

    def __init__(self, path: Path, schema: dict[str, str | None] | None = None) -> None:
        self.connection = sqlite3.connect(path)
        self.connection.execute(f"PRAGMA page_size = {PAGE}")
        self.connection.execute("PRAGMA journal_mode = OFF")
        self.connection.execute("PRAGMA synchronous = OFF")
        self.strings: dict[str, int] = {}
        self.correlation = 100
        self.schema = {table: columns for table, columns in (SCHEMA | (schema or {})).items() if columns is not None}
        self.run("CREATE TABLE Version(version INTEGER)")
        self.run("INSERT INTO Version VALUES(?)", ASSUMED["schema version"])
        self.run("CREATE TABLE StringTable(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, value TEXT NOT NULL UNIQUE)")
        for table, columns in self.schema.items():
            declared = [f"{name.rstrip('!')} {'BLOB' if name.endswith('!') else 'INT'}" for name in columns.split()]
            self.run(f"CREATE TABLE {PREFIX}{table}(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, {', '.join(declared)})")
            for column in INDEXED:
                if column in columns.replace("!", "").split():
                    self.run(f"CREATE INDEX INDEX_{PREFIX}{table} ON {PREFIX}{table}({column})")
                    break

    def run(self, sql: str, *values: Any) -> None:
        """One statement."""
        self.connection.execute(sql, values)

    def text(self, value: str) -> int:
        """The number of a string."""
        if value not in self.strings:
            self.strings[value] = len(self.strings) + 1
            self.run("INSERT INTO StringTable VALUES(?, ?)", self.strings[value], value)
        return self.strings[value]

    def add(self, table: str, **values: Any) -> None:
        """A row; columns that are not named are 0 or empty."""
        columns = [name.rstrip("!") for name in self.schema[table].split()]
        assert values.keys() <= set(columns), values.keys() - set(columns)
        row = [values.get(name, b"" if f"{name}!" in self.schema[table] else 0) for name in columns]
        marks = ", ".join("?" * len(columns))
        self.run(f"INSERT INTO {PREFIX}{table}({', '.join(columns)}) VALUES({marks})", *row)

    def bulk(self, table: str, columns: Iterable[str], rows: Iterable[tuple[Any, ...]]) -> None:
        """Many rows of some columns."""
        names = list(columns)
        marks = ", ".join("?" * len(names))
        self.connection.executemany(f"INSERT INTO {PREFIX}{table}({', '.join(names)}) VALUES({marks})", rows)

    def close(self) -> None:
        """Write it all."""
        self.connection.commit()
        self.connection.execute("VACUUM")
        self.connection.close()

    # -- what a program does --------------------------------------------------------------------------------------

    def call(self, name: str, begin: int, dur: int, *, table: str = "RUNTIME", number: int = 0, **values: Any) -> int:
        """A call, at EPOCH + begin; its correlation id."""
        if not number:
            self.correlation += 1
            number = self.correlation
        at = {"start": EPOCH + begin, "end": EPOCH + begin + dur}
        row = {"cbid": ASSUMED[f"cbid {name}"], "processId": PID, "threadId": THREAD, "correlationId": number}
        self.add(table, **(row | at | values))
        return number

    def kernel(self, function: str, begin: int, dur: int, number: int, **values: Any) -> None:
        """A kernel on stream 7."""
        at = {"start": EPOCH + begin, "end": EPOCH + begin + dur, "completed": EPOCH + begin + dur}
        where = {"deviceId": 0, "contextId": 1, "streamId": 7, "correlationId": number, "name": self.text(function)}
        shape = dict(
            zip(("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"), (196, 1, 1, 256, 1, 1), strict=True)
        )
        memory = {"registersPerThread": 14, "staticSharedMemory": 1024, "dynamicSharedMemory": 0}
        self.add("CONCURRENT_KERNEL", **(where | at | shape | memory | values))

    def copy(self, kind: str, size: int, begin: int, dur: int, number: int, **values: Any) -> None:
        """A copy between pageable and device memory."""
        ends = {"HtoD": ("pageable", "device"), "DtoH": ("device", "pageable"), "PtoP": ("device", "device")}[kind]
        memory = {"srcKind": ASSUMED[f"memory {ends[0]}"], "dstKind": ASSUMED[f"memory {ends[1]}"]}
        where = {"deviceId": 0, "contextId": 1, "streamId": 7, "correlationId": number, "bytes": size}
        at = {"start": EPOCH + begin, "end": EPOCH + begin + dur, "copyKind": ASSUMED[f"copy {kind}"]}
        self.add("MEMCPY2" if kind == "PtoP" else "MEMCPY", **(where | at | memory | values))

    def machine(self) -> None:
        """A device, a context, a stream."""
        self.add(
            "DEVICE",
            id=0,
            name=self.text("Tesla V100-SXM2-16GB"),
            computeCapabilityMajor=7,
            computeCapabilityMinor=0,
            numMultiprocessors=80,
            globalMemorySize=16945512448,
            globalMemoryBandwidth=898048000,
            coreClockRate=1530000,
            uuid=bytes(range(16)),
        )
        self.add("CONTEXT", contextId=1, deviceId=0, computeApiKind=1, nullStreamId=7)
        self.add("STREAM", contextId=1, streamId=7, flag=3)
        self.add("STREAM", contextId=1, streamId=13, flag=2, priority=-1)


ADD = "_Z9vectorAddPKfS0_Pfi"


def vector_add(profile: Profile) -> None:
    """The program of the manuals: two copies in, a kernel, a copy out."""
    profile.machine()
    profile.call("cudaMalloc", 0, 150_000)
    for start in (200_000, 260_000):
        profile.copy("HtoD", 200_000, start + 12_000, 21_500, profile.call("cudaMemcpy", start, 45_000))
    number = profile.call("cudaLaunchKernel", 320_000, 9_000)
    profile.call("cuLaunchKernel", 321_000, 7_500, table="DRIVER", number=number)
    profile.kernel(ADD, 331_000, 4_321, number)
    profile.copy("DtoH", 200_000, 345_000, 19_250, profile.call("cudaMemcpy", 336_000, 60_000))
    number = profile.call("cudaMemset", 400_000, 8_000)
    at = {"start": EPOCH + 409_000, "end": EPOCH + 410_500}
    where = {"deviceId": 0, "contextId": 1, "streamId": 7, "correlationId": number}
    profile.add("MEMSET", value=0, bytes=4096, memoryKind=ASSUMED["memory device"], **at, **where)
    profile.call("cudaDeviceSynchronize", 411_000, 30_000, returnValue=4)


def streams_and_ranges(profile: Profile) -> None:
    """Two streams at a time, NVTX ranges that nest and one that crosses, marks, names, synchronisation, events."""
    profile.machine()
    texts = profile.text
    profile.add("NAME", objectKind=1, objectId=process_thread(PID, 0), name=texts("trainer"))
    profile.add("NAME", objectKind=2, objectId=process_thread(), name=texts("main"))
    profile.add("NAME", objectKind=5, objectId=struct.pack("<III", 0, 1, 13), name=texts("copies"))
    marker = {"objectKind": 2, "objectId": process_thread(), "domain": 0}
    for number, name, start, end in (
        (1, "epoch 0", 0, 900_000),
        (2, "forward", 10_000, 500_000),
        (3, "crossing", 400_000, 600_000),
    ):
        profile.add("MARKER", flags=2, timestamp=EPOCH + start, id=number, name=texts(name), **marker)
        profile.add("MARKER", flags=4, timestamp=EPOCH + end, id=number, name=0, **marker)
    in_domain = marker | {"domain": texts("cudnn")}
    profile.add("MARKER", flags=1, timestamp=EPOCH + 450_000, id=4, name=texts('checkpoint, "a"'), **in_domain)
    profile.add("MARKER", flags=2, timestamp=EPOCH + 700_000, id=5, name=texts("never ended"), **marker)
    profile.add("MARKER", flags=4, timestamp=EPOCH + 710_000, id=77, name=0, **marker)
    profile.add(
        "MARKER_DATA",
        flags=2,
        id=2,
        payloadKind=1,
        payload=struct.pack("<Q", 64),
        color=-16711936,
        category=texts("net"),
    )
    one = profile.call("cudaLaunchKernel", 20_000, 8_000)
    profile.kernel("_Z4gemmIfLi4EEvPT_i", 40_000, 200_000, one, queued=EPOCH + 25_000, submitted=EPOCH + 30_000)
    two = profile.call("cudaMemcpyAsync", 60_000, 9_000)
    profile.copy("HtoD", 1 << 20, 80_000, 90_000, two, streamId=13, flags=1, srcKind=2)
    peer = profile.call("cudaMemcpyAsync", 100_000, 9_000)
    devices = {"srcDeviceId": 0, "srcContextId": 1, "dstDeviceId": 1, "dstContextId": 2}
    profile.copy("PtoP", 1 << 16, 180_000, 10_000, peer, streamId=13, flags=1, **devices)
    three = profile.call("cudaLaunchKernel", 250_000, 8_000)
    profile.kernel("_Z4gemmIfLi4EEvPT_i", 230_000, 50_000, three, launchType=1)  # overlaps the one before
    record = profile.call("cudaEventRecord", 300_000, 4_000)
    profile.add("CUDA_EVENT", correlationId=record, contextId=1, streamId=7, eventId=3)
    profile.add("EXTERNAL_CORRELATION", correlationId=three, externalKind=3, externalId=42)
    wait = profile.call("cudaDeviceSynchronize", 310_000, 90_000)
    at = {"start": EPOCH + 312_000, "end": EPOCH + 398_000}
    profile.add("SYNCHRONIZATION", type=4, correlationId=wait, contextId=1, streamId=ASSUMED["no stream"], **at)
    for kernel, value in ((one, 1000), (three, 900)):
        profile.add("EVENT", id=12, value=value, correlationId=kernel)
        profile.add("METRIC", id=34, value=HALF, correlationId=kernel)
    profile.add("METRIC", id=35, value=struct.pack("<Q", 123456), correlationId=one)
    profile.add("EVENT", id=12, value=1, correlationId=999_999)


def unified_memory(profile: Profile) -> None:
    """Migrations and faults, allocations, sensors, overhead, OpenACC, a kernel that launches one."""
    profile.machine()
    number = profile.call("cudaLaunchKernel", 0, 9_000)
    profile.kernel("_Z6parentv", 20_000, 300_000, number, gridId=5, completed=EPOCH + 340_000)
    at = {"start": EPOCH + 100_000, "end": EPOCH + 150_000}
    where = {"deviceId": 0, "contextId": 1, "streamId": 8, "name": profile.text("_Z5childi")}
    profile.add("CDP_KERNEL", gridId=6, parentGridId=5, parentBlockX=2, gridX=1, gridY=1, gridZ=1, **at, **where)
    unified = {"processId": PID, "streamId": 0}
    for kind, value, start, end, source, target, flags in (
        (1, 65536, 10_000, 15_000, ASSUMED["cpu"], 0, 1),
        (2, 4096, 320_000, 321_000, 0, ASSUMED["cpu"], 2),
        (3, 0x401234, 330_000, 0, ASSUMED["cpu"], 0, 1),
        (4, 12, 30_000, 60_000, 0, 0, 2),
        (5, 4096, 200_000, 0, 0, 0, 0),
    ):
        at = {"start": EPOCH + start, "end": EPOCH + end if end else 0, "address": 0x7F0000000000}
        profile.add(
            "UNIFIED_MEMORY_COUNTER",
            counterKind=kind,
            value=value,
            srcId=source,
            dstId=target,
            flags=flags,
            **at,
            **unified,
        )
    memory = {"memoryKind": ASSUMED["memory device"], "processId": PID, "contextId": 1}
    for size, start, end in ((1 << 20, 1_000, 350_000), (1 << 10, 2_000, 100_000), (512, 3_000, 0)):
        at = {"start": EPOCH + start, "end": EPOCH + end if end else 0, "address": 0x500000000 + size}
        profile.add("MEMORY", bytes=size, **at, **memory)
    for kind, layout, values in (
        (1, "<IIIII", (1380, 877, 3, 16, 0)),
        (2, "<I", (41,)),
        (3, "<II", (56_000, 300_000)),
        (9, "<I", (1,)),
    ):
        profile.add("ENVIRONMENT", timestamp=EPOCH + 5_000, environmentKind=kind, data=struct.pack(layout, *values))
    profile.add("INSTANTANEOUS_EVENT", id=7, value=99, timestamp=EPOCH + 50_000)
    profile.add("INSTANTANEOUS_METRIC", id=8, value=HALF, timestamp=EPOCH + 50_000)
    overhead = {"objectKind": 2, "objectId": process_thread()}
    profile.add("OVERHEAD", overheadKind=1 << 16, start=EPOCH + 350_000, end=EPOCH + 360_000, **overhead)
    acc = {
        "cuProcessId": PID,
        "cuThreadId": THREAD,
        "srcFile": profile.text("main.c"),
        "funcName": profile.text("main"),
    }
    at = {"start": EPOCH + 1_000, "end": EPOCH + 4_000}
    profile.add("OPENACC_DATA", eventKind=5, lineNo=12, bytes=4096, varName=profile.text("a"), **acc, **at)
    profile.add("OPENMP", eventKind=1, cuProcessId=PID, cuThreadId=THREAD, threadId=2, **at)
    profile.add("PREEMPTION", preemptionKind=1, timestamp=EPOCH + 60_000, gridId=5, blockX=1)
    profile.add("SOURCE_LOCATOR", id=1, lineNumber=12, fileName=profile.text("main.c"))


def oddities(profile: Profile) -> None:
    """Rows that a real database may hold although they make no sense."""
    number = profile.call("cudaLaunchKernel", 0, 5_000)
    profile.kernel(ADD, 10_000, 1_000, number)
    nothing = {"start": 0, "end": 0}
    profile.kernel(ADD, 0, 0, number, **nothing)
    profile.kernel(ADD, 20_000, 0, number, end=0)
    profile.kernel(ADD, 30_000, -500, number)
    profile.kernel(ADD, 40_000, 100, number, start=None)
    profile.kernel(ADD, 50_000, 100, number, start="soon")
    profile.kernel(ADD, 60_000, 100, number, name=4000)
    profile.kernel(ADD, 70_000, 100, number, name=0, deviceId=None, streamId=None, contextId=None)
    profile.kernel(ADD, 80_000, 100, 123456, gridX=None, registersPerThread="many")
    profile.call("cudaMalloc", 90_000, 100, cbid=99_999)
    profile.call("cudaMalloc", 91_000, 100, cbid=None, processId=None, threadId=None)
    profile.copy("HtoD", 1, 92_000, 100, number, bytes=None, copyKind=77)
    profile.add("MARKER", flags=2, timestamp=0, id=1, name=profile.text("no time"))
    profile.add("MARKER", flags=1, timestamp=EPOCH + 95_000, id=2, objectKind=2, objectId=b"\1", name=4001)
    profile.connection.execute("UPDATE StringTable SET value = CAST(x'6b65726e656cff' AS TEXT) WHERE _id_ = 1")


def two_processes(profile: Profile) -> None:
    """Two databases joined by hand: the same correlation id in both, and one that only one of them has."""
    profile.machine()
    for pid, start in ((PID, 0), (PID + 1, 50_000)):
        both = profile.call("cudaLaunchKernel", start, 5_000, number=200, processId=pid)
        own = profile.call("cudaLaunchKernel", start + 10_000, 5_000, processId=pid)
        profile.kernel(ADD, start + 7_000, 1_000, both)
        profile.kernel(ADD, start + 17_000, 1_000, own)


_CUDA_7: dict[str, str | None] = dict.fromkeys(
    ("MEMCPY2", "SYNCHRONIZATION", "CUDA_EVENT", "MEMORY", "STREAM", "CDP_KERNEL")
)
_CUDA_7["CONCURRENT_KERNEL"] = (
    "cacheConfig! sharedMemoryConfig registersPerThread start end completed deviceId contextId streamId gridX "
    "gridY gridZ blockX blockY blockZ staticSharedMemory dynamicSharedMemory localMemoryPerThread "
    "localMemoryTotal correlationId gridId name"
)
_CUDA_7["UNIFIED_MEMORY_COUNTER"] = "counterKind scope deviceId value timestamp processId"


def old_schema(profile: Profile) -> None:
    """Fewer tables and columns; unified memory as values at points in time."""
    number = profile.call("cudaLaunchKernel", 0, 9_000)
    profile.kernel(ADD, 20_000, 3_000, number)
    profile.add(
        "UNIFIED_MEMORY_COUNTER", counterKind=1, value=65536, timestamp=EPOCH + 30_000, processId=PID, deviceId=0
    )


def only_tables(profile: Profile) -> None:
    """A program that used no GPU."""


def moved_times(profile: Profile) -> None:
    """Times from 0 on, as tools make them that cut databases."""
    profile.machine()
    number = profile.call("cudaLaunchKernel", 0, 0, start=1_000, end=6_000)
    profile.kernel(ADD, 0, 0, number, start=7_000, end=9_000, completed=9_000)


def many(profile: Profile) -> None:
    """Enough rows for tables of several pages."""
    vector_add(profile)
    for step in range(40):
        start = 1_000_000 + step * 10_000
        profile.kernel(ADD, start + 3_000, 2_000, profile.call("cudaLaunchKernel", start, 2_500))


CASES: dict[str, tuple[Callable[[Profile], None], dict[str, str | None]]] = {
    "vector-add": (vector_add, {}),
    "streams-and-ranges": (streams_and_ranges, {}),
    "unified-memory": (unified_memory, {}),
    "oddities": (oddities, {}),
    "two-processes": (two_processes, {}),
    "old-schema": (old_schema, _CUDA_7),
    "only-tables": (only_tables, {}),
    "moved-times": (moved_times, {}),
    "cut": (many, {}),
    "damaged": (many, {}),
    "journal": (vector_add, {}),
}


#: What happens to the files of some cases: cut after so many bytes, a page overwritten.
KEPT = {"cut": 32_000}
OVERWRITTEN = {"damaged": 65}


def make(case: str, path: Path) -> Path:
    """Write the database of a case."""
    fill, schema = CASES[case]
    profile = Profile(path, schema)
    fill(profile)
    profile.close()
    data = path.read_bytes()
    if case in KEPT:
        assert len(data) > KEPT[case]
        path.write_bytes(data[: KEPT[case]])
    if case in OVERWRITTEN:
        at = OVERWRITTEN[case] * PAGE
        path.write_bytes(data[:at] + b"\xff" * PAGE + data[at + PAGE :])
    return path


def main(folder: Path = Path(__file__).parent.parent / "golden" / "nvprof") -> None:
    """Write what is missing."""
    for case in CASES:
        path = folder / case / "input.nvvp"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            make(case, path)


if __name__ == "__main__":
    sys.exit(main())

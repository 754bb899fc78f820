"""Databases of nvprof: `nvprof -o FILE`, `--export-profile FILE`; the endings vary (.nvvp, .nvprof, .sqlite).

    StringTable(_id_, value)                                   all names; other tables refer to them by number
    CUPTI_ACTIVITY_KIND_RUNTIME(_id_, cbid, start, end, processId, threadId, correlationId, returnValue)
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL(_id_, ..., start, end, deviceId, contextId, streamId, ..., name)

Each row is a record of CUPTI, the library below the profiler (`cupti_activity.h`). Times are nanoseconds since 1970:
CUPTI converts the times of the device to the wall clock of the host while it records. The other modules of this name
say what each table holds. Not in the file: names of events and metrics, numbers of threads as the operating system
counts them. Rows about single instructions, source lines and modules have no time and are counted only.

Compared by table and column with public databases of nvprof (versions 11, 12, 22; docs/formats.md names them): calls,
kernels, copies, memsets, synchronization, overhead, unified memory, names, devices, contexts, streams. Not seen in one:
NVTX, events and metrics, OpenACC, OpenMP, sensors, allocations; they rest on `cupti_activity.h`.

Kernel names are stored as the compiler mangled them; they are shown as in the source, in the way of c++filt.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from msgspec import structs

from traceconv.errors import MalformedInput
from traceconv.families.common.cupti import KERNEL
from traceconv.families.importer import Match
from traceconv.families.nvprof._calls import Calls, ProcessLaunches
from traceconv.families.nvprof._device import DeviceWork
from traceconv.families.nvprof._marks import Marks
from traceconv.families.nvprof._other import Others
from traceconv.families.nvprof._tables import Activities
from traceconv.families.nvprof._tracks import Tracks
from traceconv.io.source import Head, Source
from traceconv.io.sqlite import open_database
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME, ClockDomain, Run, Zero, looks_like_unix_time
from traceconv.model.counted import ROWS
from traceconv.model.diagnostics import ProblemKind, declare
from traceconv.model.marks import GPU_MARKS, CountMarks, FormatMarks
from traceconv.model.trace import Layer

SOURCE_LEVEL = declare(
    "nvprof.source_level",
    ProblemKind.SKIPPED,
    "rows about instructions, source lines, modules or links have no time: left out (nvvp shows them)",
)
UNKNOWN_TABLE = declare(
    "nvprof.unknown_table", ProblemKind.LOST, "an activity table is not known: its rows were left out"
)

#: Rows without any time, about the code or the machine.
_SOURCE_LEVEL = frozenset(
    (
        "BRANCH",
        "DEVICE_ATTRIBUTE",
        "FUNCTION",
        "GLOBAL_ACCESS",
        "INSTRUCTION_CORRELATION",
        "INSTRUCTION_EXECUTION",
        "MODULE",
        "NVLINK",
        "PC_SAMPLING",
        "PC_SAMPLING_RECORD_INFO",
        "PCIE",
        "SHARED_ACCESS",
        "SOURCE_LOCATOR",
    )
)
_UNKNOWN_CLOCK = ClockDomain("clock of the nvprof database", Zero.UNKNOWN, Run.MONOTONIC)
_PREFIX = "CUPTI_ACTIVITY_KIND_"


@dataclass(frozen=True)
class NvprofSqlite:
    """Importer of nvprof databases."""

    name: ClassVar[str] = "nvprof"
    title: ClassVar[str] = "nvprof database (SQLite, also of the Visual Profiler)"
    url: ClassVar[str] = "https://docs.nvidia.com/cuda/archive/12.9.1/profiler-users-guide/"
    versions: ClassVar[str] = "nvprof of CUDA 5 to 12; databases of 2019 to 2024 were tried"
    clock: ClassVar[ClockDomain] = REALTIME
    layer: ClassVar[Layer] = Layer.DEVICE
    marks: ClassVar[FormatMarks] = structs.replace(GPU_MARKS, counts=CountMarks((KERNEL,), r"event_\d+"))
    record: ClassVar[str] = "nvprof -o run.%p.nvvp python run.py"
    line_up: ClassVar[str] = (
        "Times are nanoseconds since 1970, so nothing is needed to align it with files on the wall clock. "
        "Files of several processes or ranks of one host share that clock."
    )
    becomes: ClassVar[tuple[tuple[str, str], ...]] = (
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
    skips = (SOURCE_LEVEL,)
    unrecorded = (
        "nvprof runs on GPUs up to compute capability 7, and none was at hand. Public databases were read, too. "
        "Goldens are made by hand after the sources in docs/formats.md."
    )
    checked = (
        (
            "databases of versions 11, 12 and 22 (CUDA 8 to 12, recorded 2019 to 2024)",
            "9 public databases (repositories dipsankarb/csl7520, SwatikSahoo/profile, brett90063/CGCLB, "
            "m-goldstein/GPU_ML, afroozrahmati/MatrixMultiplicationCUDA, scat97/Test, "
            "gonzalo-villegas-curulla/CUDA_Python_intro)",
            "tables, columns, declared types, indexes; calls, kernels, copies, memsets, synchronization, overhead, "
            "unified memory, names, devices, contexts, streams, CUDA events",
        ),
        (
            "databases of version 11, recorded 2018: a timeline, and metrics of one kernel",
            "2 public databases (repository esarmstrong/ece408)",
            "by queries of our own: number, sum, first start and last end of 2,295 rows with times; 200 metrics",
        ),
        (
            "NVTX, events, OpenACC, OpenMP, sensors, allocations",
            "`cupti_activity.h` of CUDA 11.8 to 13.5",
            "no database with such rows was found: they rest on the header; their tables are there, and empty",
        ),
    )
    lost: ClassVar[tuple[str, ...]] = (
        "The file does not hold the names of events and metrics: they are called event_12, metric_34 by their numbers.",
        "Threads have the number that nvprof stores, which differs from the tid.",
        "Rows whose times could not be collected (start and end 0) are counted, and not drawn.",
        "Rows about instructions, source lines and modules have no time; they are counted and left out.",
        "Kernel names are demangled as by c++filt; nvprof itself prints them slightly differently (float const *).",
    )

    def sniff(self, head: Head) -> Match:
        """Recognise the tables: StringTable and CUPTI activities; Nsight Systems has StringIds instead."""
        if not head.tables:
            return _sniff_damaged(head)
        activities = any(table.startswith(_PREFIX) for table in head.tables)
        if activities and "StringTable" in head.tables and "StringIds" not in head.tables:
            return Match.yes("tables StringTable and CUPTI_ACTIVITY_KIND_*")
        return Match.no("no tables StringTable and CUPTI_ACTIVITY_KIND_*")

    def read(self, source: Source, out: Builder) -> None:
        """Read the whole database."""
        out.info.real_ids = True

        out.info.unit = "row"
        out.balance.unit = ROWS
        with open_database(source.database()) as database:
            for note in database.notes:
                out.note(note)
            activities = Activities(database, out)
            if not activities.tables:
                raise MalformedInput(
                    source.display,
                    "",
                    f"no table {_PREFIX}* found, expected a database of nvprof",
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
    Others(activities, tracks, out).read()
    marks.close()
    launches.draw(out.info.name)
    _count_unread(activities, out)
    _set_clock(out)
    _tell(activities, tracks, calls, out)


def _count_unread(activities: Activities, out: Builder) -> None:
    for table, count in activities.unread().items():
        out.balance.read += count
        out.skip(SOURCE_LEVEL if table in _SOURCE_LEVEL else UNKNOWN_TABLE, f"{out.info.name}:{table}", count=count)


def _set_clock(out: Builder) -> None:
    """Set the wall clock, unless some tool has moved the times."""
    last = out.tables.last_ts()
    if looks_like_unix_time(last) or last == 0:
        return
    out.clocks.set_default(replace(_UNKNOWN_CLOCK, owner=out.info.name))
    out.note(
        "the times do not count from 1970 as nvprof writes them: another tool moved them; only --offset aligns them "
        "with other files"
    )


def _tell(activities: Activities, tracks: Tracks, calls: Calls, out: Builder) -> None:
    info: dict[str, Any] = {"schema_version": activities.version, "devices": list(tracks.devices.values())}
    out.metadata["nvprof"] = {key: value for key, value in info.items() if value not in (None, [])}
    if calls.failed:
        out.note(f"calls that returned an error: {calls.failed}; see return_value in their args")
    if len(tracks.pids()) > 1:
        out.note(
            f"{len(tracks.pids())} processes in one database: device work is drawn below the process whose call "
            "launched it, if only one process has such a call"
        )
    if not activities.has_rows:
        out.note("the database has no rows: nothing ran on a GPU, or the profiler was stopped before it wrote them")
